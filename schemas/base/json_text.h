/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_text.h - writes valid JSON texts and numbers, whatever the input bytes are.
 *
 * Invalid UTF-8 becomes U+FFFD, one for each maximal bad sequence; control characters are escaped;
 * a number that JSON cannot represent (infinity, not a number) becomes null.
 */
#pragma once

#include "schemas/base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* Appends a text with its quotes.  Returns how many bad sequences were replaced. */
size_t json_put_text(struct buf *b, const char *text, size_t len);
/* Does the same for a text that ends with a NUL. */
size_t json_put_word(struct buf *b, const char *text);

/* Appends the shortest decimal that reads back as the same double.  It has a point or an exponent,
 * so that readers take it for a double. */
void json_put_f64(struct buf *b, double value);

/* Returns whether a text is one JSON value, which may then be written verbatim.  It must follow RFC
 * 8259 in UTF-8 with at most 64 levels; blanks around it are allowed. */
bool json_is_value(const char *text, size_t len);

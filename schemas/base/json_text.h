/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_text.h - the texts and numbers of JSON, always valid, whatever the bytes were.
 *
 * Invalid UTF-8 becomes U+FFFD, one for each maximal bad sequence; control characters are escaped;
 * a number that JSON does not know (infinity, not a number) becomes null.
 */
#pragma once

#include "schemas/base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* With its quotes.  Returns how many bad sequences were repaired. */
size_t json_put_text(struct buf *b, const char *text, size_t len);
/* The same of a text that ends with 0. */
size_t json_put_word(struct buf *b, const char *text);

/* The shortest decimal that reads back as the same double, always with a point or an exponent so
 * that it reads back as a double too. */
void json_put_f64(struct buf *b, double value);

/*
 * Whether a text is one JSON value, so that it may be written verbatim.
 */

/* RFC 8259, in UTF-8, blanks around it allowed, nested at most 64 deep. */
bool json_is_value(const char *text, size_t len);

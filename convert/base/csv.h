/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - text cells of comma-separated tables (RFC 4180). */
#pragma once

#include "schemas/base/buf.h"

/*
 * Appends one cell, quoted if it contains a quote, a comma or a control character, or begins or
 * ends with a blank.  Invalid UTF-8 and NUL become U+FFFD.
 *
 * A text that a spreadsheet would treat as a formula (it begins with = + - @, a tab or the end of a
 * line, and is not a number) gets an apostrophe in front, because names in a trace are not trusted.
 */
void csv_put_text(struct buf *out, const char *text, size_t len);

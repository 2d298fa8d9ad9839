/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - cells of text in comma-separated tables, RFC 4180. */
#pragma once

#include "schemas/base/buf.h"

/*
 * Appends one cell, quoted where it holds a quote, a comma or a control character, or begins or
 * ends with a blank.  What is no UTF-8, and NUL, is U+FFFD.
 *
 * A text that a spreadsheet would take for a formula (it begins with = + - @, a tab or the end of a
 * line, and is no number) gets an apostrophe before it: names in a trace come from whoever wrote
 * the traced program.
 */
void csv_put_text(struct buf *out, const char *text, size_t len);

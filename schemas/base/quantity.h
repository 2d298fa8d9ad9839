/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantity.h - converts "256M", "50us" and "2%" to numbers and back.
 *
 * A text is a pointer and a length, so that a part of a longer one can be read in place.  Parsing
 * is exact and does not depend on the locale: fractions of a byte or nanosecond and numbers that do
 * not fit are errors.  Errors quote the text and are ST_USAGE.
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>

enum { UNIT_TEXT = 32 }; /* bytes for any text of unit_format_ functions, with its NUL */

/* Parses "1234": only decimal digits. */
enum status unit_parse_count(const char *text, size_t len, uint64_t *count, struct error *err);
/* Parses "4096", "256M" or "1.5G": K M G T in either case are powers of 1024; no unit means
 * bytes. */
enum status unit_parse_size(const char *text, size_t len, uint64_t *bytes, struct error *err);
/* Parses "50us", "1.5s" or "10m" with the units ns us ms s m h; only 0 needs no unit. */
enum status unit_parse_time(const char *text, size_t len, uint64_t *ns, struct error *err);
/* Parses "2%" or "0.02", which must be from 0 to 1. */
enum status unit_parse_share(const char *text, size_t len, double *share, struct error *err);
/* Parses "2026-11-20T12:00:00Z", with up to nine digits after the seconds, to ns since the Unix
 * epoch (UTC). */
enum status unit_parse_instant(const char *text, size_t len, uint64_t *ns, struct error *err);

/*
 * These are the exact inverse of parsing, in the largest unit that gives a whole number: 256M,
 * 1000, 90s, 1500us, 0.  An instant has 0, 3, 6 or 9 digits after the seconds, as few as it needs.
 * Reports round figures with functions of their own.  Each function returns `out`.
 */
char *unit_format_size(uint64_t bytes, char out[UNIT_TEXT]);
char *unit_format_time(uint64_t ns, char out[UNIT_TEXT]);
char *unit_format_instant(uint64_t ns, char out[UNIT_TEXT]);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - characters of texts from anywhere: names in traces are bytes, and not always UTF-8.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_DAMAGED = 0xfffd }; /* what stands for bytes that are no character */

/* Length of the well-formed UTF-8 sequence at text[0..len), 0 when there is none (RFC 3629). */
size_t utf8_sequence(const char *text, size_t len);
/* The next character of a text that ends with 0, never beyond its end; UTF8_DAMAGED for a byte
 * that begins none. */
uint32_t utf8_next(const char **text);
/* Returns its bytes; what is no character (a surrogate, beyond U+10FFFF) is UTF8_DAMAGED. */
size_t utf8_put(char out[4], uint32_t c);

/*
 * Writes text[0..len) to out[cap], cap >= 64, with a NUL, and returns the bytes before it.  What
 * does not fit loses its middle, in whose place stands a hash of the whole: templates differ in
 * their arguments, which stand at the end, and names that differ stay different.
 */
size_t utf8_shorten(const char *text, size_t len, char *out, size_t cap);

/* Whether a terminal or a browser obeys the character instead of showing it: C0 and C1 controls,
 * line separators, and what turns the direction of the text around it. */
bool utf8_is_control(uint32_t c);
/* Puts one '?' in place of each control and of each byte that begins no character. */
void utf8_tame(char *text);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - characters of texts that may not be valid UTF-8, as names in traces are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_DAMAGED = 0xfffd }; /* replaces bytes that are no character */

/* Returns the length of the valid UTF-8 sequence (RFC 3629) at text[0..len), or 0. */
size_t utf8_sequence(const char *text, size_t len);
/* Returns the next character of a text that ends with a NUL and advances *text, never beyond the
 * end; returns UTF8_DAMAGED for a byte that begins no character. */
uint32_t utf8_next(const char **text);
/* Writes a character and returns its length in bytes; a surrogate or a number beyond U+10FFFF
 * becomes UTF8_DAMAGED. */
size_t utf8_put(char out[4], uint32_t c);

/*
 * Writes text[0..len) to out[cap], cap >= 64, with a NUL, and returns the bytes before it.  In a
 * text that does not fit, a hash of the whole replaces the middle, so different names stay
 * different and the end, where templates have their arguments, stays readable.
 */
size_t utf8_shorten(const char *text, size_t len, char *out, size_t cap);

/* Returns whether a terminal or a browser interprets the character instead of showing it: C0 and C1
 * controls, line separators, and characters that change the direction of text. */
bool utf8_is_control(uint32_t c);
/* Replaces each control and each byte that begins no character by '?'. */
void utf8_tame(char *text);

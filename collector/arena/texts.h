/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texts.h - texts of the program as small numbers: looked up without a lock, added under one.
 *
 * Ids are dense from 1, the same on all threads, and constant.  The table lies in the arena; a
 * child of fork() reads its parent's until it adds a text, and then has its own with the same ids.
 * When the table is full, or there is no memory for one, the id is 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAMES_MAX = (1 << 18) - 1, NAMES_TEXT_MAX = 4095, NAMES_BYTES = 32 << 20 };

/* Makes the arena of this process, with the table in it, if it has none; false: it cannot. */
bool names_open(void);
/* After arena_adopt(): takes the table in it; false: it is damaged. */
bool names_adopt(void);
/*
 * The id of a text, added if it is new; texts over NAMES_TEXT_MAX are truncated.  NULL: the empty
 * text.
 */
uint32_t name_find(const char *text);
/* The same for text[0..len), without NUL bytes; truncated at a character of UTF-8. */
uint32_t name_find_text(const char *text, size_t len);
/* The id of a text that was added before, or 0; takes no lock. */
uint32_t name_lookup(const char *text, size_t len);
/* The text of an id; "" when there is no such id. */
const char *name_text(uint32_t id, size_t *len);
/* The number of texts: ids are 1 .. name_count(). */
uint32_t name_count(void);
/*
 * To be called before and after fork(), in both processes, so that no thread is adding a text.
 * False: the fork is made by a handler over a thread that does, and names_after_fork() is not to be
 * called.
 */
bool names_before_fork(void);
void names_after_fork(void);

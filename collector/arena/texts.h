/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texts.h - maps texts of the program to small numbers.  Lookups take no lock, additions take one.
 *
 * Ids are dense from 1, the same on all threads, and constant.  The table is in the arena; a child
 * of fork() reads its parent's until it adds a text, and then has a table of its own with the same
 * ids.  If the table is full, or there is no memory for one, the id is 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAMES_MAX = (1 << 18) - 1, NAMES_TEXT_MAX = 4095, NAMES_BYTES = 32 << 20 };

/* Makes the arena of this process and its table if there is none; returns false if that fails. */
bool names_open(void);
/* Uses the table of an arena after arena_adopt(); returns false if it is damaged. */
bool names_adopt(void);
/*
 * Finds or adds a text and returns its id; texts over NAMES_TEXT_MAX are truncated.  NULL is the
 * empty text.
 */
uint32_t name_find(const char *text);
/* Does the same for text[0..len), which has no NUL bytes and is truncated between characters of
 * UTF-8. */
uint32_t name_find_text(const char *text, size_t len);
/* Returns the id of a text that was added before, or 0; takes no lock. */
uint32_t name_lookup(const char *text, size_t len);
/* Returns the text of an id, or "" if there is no such id. */
const char *name_text(uint32_t id, size_t *len);
/* Returns the number of texts; ids are 1 .. name_count(). */
uint32_t name_count(void);
/*
 * Call these before fork(), and after it in both processes, so that no thread is adding a text.
 * Returns false if a signal handler forks that has interrupted a thread that adds one; do not call
 * names_after_fork() then.
 */
bool names_before_fork(void);
void names_after_fork(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - texts of the program as small numbers: found without a lock, added under one.
 *
 * Ids are dense from 1, the same for all threads, and never change or go away; the table is
 * static, its pages are touched as names come.  Over the ceiling the id is 0.
 */
#ifndef COLLECTOR_NAMES_H
#define COLLECTOR_NAMES_H

#include <stddef.h>
#include <stdint.h>

enum { NAMES_MAX = (1 << 18) - 1, NAMES_TEXT_MAX = 4095, NAMES_BYTES = 32 << 20 };

/* The id of a text, found or added; longer ones are cut.  NULL is the empty text. */
uint32_t name_find(const char *text);
/* The same for text[0..len), cut at a whole character of UTF-8; without zeros in it. */
uint32_t name_find_text(const char *text, size_t len);
/* The id of a text that was added, or 0; takes no lock. */
uint32_t name_known(const char *text, size_t len);
/* "" for ids that are none. */
const char *name_text(uint32_t id, size_t *len);
/* Names so far: ids are 1 .. name_count(). */
uint32_t name_count(void);
/* Before and after fork(), in both processes: nobody is in the middle of adding one. */
void names_before_fork(void);
void names_after_fork(void);

#endif

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

enum { NAMES_MAX = 65535, NAMES_TEXT_MAX = 4095, NAMES_BYTES = 8 << 20 };

/* The id of a text, found or added; longer ones are cut.  NULL is the empty text. */
uint32_t name_find(const char *text);
/* "" for ids that are none. */
const char *name_text(uint32_t id, size_t *len);
/* Names so far: ids are 1 .. name_count(). */
uint32_t name_count(void);
/* Before and after fork(), in both processes: nobody is in the middle of adding one. */
void names_before_fork(void);
void names_after_fork(void);

#endif

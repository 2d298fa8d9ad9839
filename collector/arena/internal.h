/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the arena's memory and its file share. */
#pragma once

#include "collector/arena/arena.h"

#include <sys/resource.h>

/* Notes whether the kernel has what was asked of it. */
bool arena_note(enum arena_need need, bool works);
/* Whether it is to be asked for. */
bool arena_allows(enum arena_need need);
/* What arena_refused() returns, with this limit of the process; -1: none. */
void arena_refuse(enum arena_refusal why, int resource);
/* A descriptor of a new file of so many bytes, of which threads use some at first; -1: refused. */
int arena_file_make(const struct arena_texts *texts, size_t bytes, size_t threads_first);
/* Gives it its name, if it is to have one. */
void arena_file_name(struct arena_header *a, int fd);
/* Whether stores to it may find its file system full. */
bool arena_file_may_be_full(void);

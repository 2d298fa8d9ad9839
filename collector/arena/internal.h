/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - definitions for the arena's memory and its file. */
#pragma once

#include "collector/arena/arena.h"

#include <sys/resource.h>

/* Sets the result of arena_refused(), with the value of a resource limit; -1: no limit. */
void arena_refuse(enum arena_refusal why, int resource);
/* Creates a file of `bytes` bytes, with space for `threads_first` bytes of threads; returns its
 * descriptor, or -1 after arena_refuse(). */
int arena_file_make(const struct arena_texts *texts, size_t bytes, size_t threads_first);
/* Links the file into the folder, if it is to have a name. */
void arena_file_name(struct arena_header *a, int fd);
/* Returns whether the file system may become full, so that stores to new pages fail. */
bool arena_file_may_be_full(void);

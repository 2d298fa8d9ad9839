/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the program's command line as a log may hold it: without what looks like a secret.
 *
 * A value after an option, or behind NAME=, whose name speaks of keys, tokens, passwords, secrets
 * or credentials becomes "***".  Pure but for command_read().
 */
#ifndef COLLECTOR_COMMAND_H
#define COLLECTOR_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* `args`: NUL-terminated words one after the other, as in /proc/self/cmdline. */
void command_mask(const char *args, size_t len, struct buf *out);
/* This process's own; what goes beyond some thousand bytes is cut. */
void command_read(struct buf *out);

/* This process was spawned by a multiprocessing library, as workers of data loaders are. */
bool command_is_worker(void);
/* The same of a command line, words as above. */
bool command_names_worker(const char *args, size_t len);

#endif

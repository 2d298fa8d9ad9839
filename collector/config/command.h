/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the program's command line as a log may hold it, without secrets.
 *
 * The value of an option, or of NAME=, is replaced by "***" when the name contains a word such as
 * key, token, password, secret or credential.  Pure, except for command_read().
 */
#ifndef COLLECTOR_CONFIG_COMMAND_H
#define COLLECTOR_CONFIG_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* `args`: NUL-terminated words one after the other, as in /proc/self/cmdline. */
void command_mask(const char *args, size_t len, struct buf *out);
/* This process's own command line, truncated after 8 KiB. */
void command_read(struct buf *out);

/* This process was spawned by a multiprocessing library, as workers of data loaders are. */
bool command_is_worker(void);
/* The same of a command line, words as above. */
bool command_names_worker(const char *args, size_t len);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the program's command line as a log may hold it, without secrets.
 *
 * "***" takes the place of what looks like a secret, anywhere in a word: the value of a name that
 * contains key, token, pass, pwd, secret, credential or auth (an option's, a variable's, a
 * header's, a member's of JSON, a parameter's of a URL), the password of user:password@, what
 * follows Bearer or Basic, what begins as keys of well-known services do, and -p of programs whose
 * password it is. More is masked than is secret, rather than less.  Pure, except for
 * command_read().
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

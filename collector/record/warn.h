/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warn.h - options that are right each for itself and have no effect in this run.
 */
#ifndef COLLECTOR_RECORD_WARN_H
#define COLLECTOR_RECORD_WARN_H

struct buf;
struct config;

/* Appends a line for each, without what is in front of and behind it. */
void warn_of_options(const struct config *c, struct buf *out);

#endif

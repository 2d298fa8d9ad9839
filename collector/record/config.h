/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - a config file to options, and options to a config file.
 *
 * A file is one JSON object.  Keys are options, with dashes or underscores, or keys of a guide,
 * which may lie in an object "profiling" as they do there; members that begin with "//" are
 * remarks.  Part of tacho-record; the library reads variables only.
 */
#ifndef COLLECTOR_RECORD_CONFIG_H
#define COLLECTOR_RECORD_CONFIG_H

#include "schemas/base/option.h"

struct buf;
struct config;

/* Texts stay for good: options borrow them.  Errors name the file, the byte and the key. */
enum status record_config_take(const char *path, const struct option_set *sets, struct error *err);

/* `c` as a file that record_config_take() reads back, each key with its explanation. */
enum status record_config_print(const struct config *c, struct buf *out, struct error *err);

#endif

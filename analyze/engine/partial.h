/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partial.h - the result of some inputs as a file, for jobs whose ranks are analyzed on several
 * machines: tacho-analyze --partial writes it, --merge reads any number of them.
 *
 *	"TACHOPRT"  u32 version  u32 CRC-32C of the body  u64 its length
 *	and the body, all little-endian:
 *	  settings: text         the options of the run; partials of two settings do not merge
 *	  inputs: varint count, each { path: text, varint status, u8 is_in_tables, varint damaged,
 *	          varint place in the file + 1, error: text }
 *	  windows: varint count, each { varint rank + 1, host: text, varint pid + 1, varint begin,
 *	           varint end, varint input }
 *	  tables and texts as in table_partial.h
 *
 * Every report's tables are in it, so that --merge can print any.  A new column or table needs no
 * new version; a change of meaning does.
 */
#pragma once

#include "analyze/engine/result.h"
#include "schemas/base/buf.h"

#define PARTIAL_MAGIC "TACHOPRT"
enum { PARTIAL_VERSION = 2, PARTIAL_HEADER_BYTES = 24 };

/* Appends the encoded result to `out`. */
enum status engine_partial_put(const struct engine_result *r, const char *settings, struct buf *out,
			       struct error *err);
/* Merges a partial result into `r`, which engine_result_init() has initialized. If *settings is
 * NULL it is set to the settings in the file (owned by the tables); otherwise it is an error if
 * they differ. After an error `r` can only be released. */
enum status engine_partial_take(struct engine_result *r, const void *bytes, size_t len,
				size_t ceiling, const char **settings, struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - the ids of one plane of an XSpace that is being written: names of events
 * and of stats, given out as they are met and written behind the lines.
 *
 * One plane at a time: tb_names_clear() begins the next.
 */
#ifndef CONVERT_SINK_TENSORBOARD_NAMES_H
#define CONVERT_SINK_TENSORBOARD_NAMES_H

#include "schemas/base/buf.h"
#include "schemas/base/map.h"
#include "schemas/base/vec.h"
#include "schemas/model/trace.h"

/* Stats that readers look for on a host's plane have the first ids, in this order. */
/* clang-format off */
#define TB_KEY_LIST(X)                                                                         \
	X("group_id") X("correlation_id") X("flow") X("_r") X("step_num") X("value")           \
	X("tf_op") X("hlo_op") X("hlo_module") X("program_id") X("name") X("is_eager")         \
	X("equation") X("shape") X(XSTAT_CLASS_NAME) X(XSTAT_KIND_NAME) X("process_id")        \
	X("allocator_name") X("fragmentation") X("bytes_reserved") X("bytes_allocated")        \
	X("bytes_available") X("peak_bytes_in_use") X("requested_bytes") X("allocation_bytes") \
	X("addr") X("data_type")
/* clang-format on */

#define TB_ENTRIES_BYTES ((size_t)256 << 20)

enum tb_domain { TB_KEY, TB_NAME, TB_SCOPE, TB_DETAILS, TB_EVENT }; /* what a pair of words is */

struct tb_row {
	uint64_t a, b, id;
	uint32_t at, len; /* of TB_EVENT: its stats that are the same for all, in `constants` */
	uint8_t domain;
};
struct tb_names {
	const struct trace *trace; /* borrowed */
	struct tb_row *rows;
	size_t count, cap;
	struct hash_index index; /* of rows */
	uint64_t events, stats;  /* of these given out */
	struct buf entries;      /* serialized fields of the plane: event and stat metadata */
	struct buf constants;
};

void tb_names_init(struct tb_names *n, const struct trace *trace);
void tb_names_release(struct tb_names *n);
void tb_names_clear(struct tb_names *n);

/* The id of a stat's name, one of the few that the writer itself uses. */
uint64_t tb_key(struct tb_names *n, const char *text, struct error *err);
/* Of a name of the trace: as a stat's name, or as a text that a stat refers to. */
uint64_t tb_name(struct tb_names *n, uint32_t name, struct error *err);

/* NULL: there is none yet.  A row stays until the next tb_add(). */
struct tb_row *tb_find(const struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b);
enum status tb_add(struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b, uint64_t id,
		   struct tb_row **row, struct error *err);
/* A new stat name of that text; 0 and *err. */
uint64_t tb_new_stat(struct tb_names *n, const char *text, size_t len, struct error *err);
/* A new event name; `stats` are serialized fields of an event's metadata. */
uint64_t tb_new_event(struct tb_names *n, const char *text, size_t len, const struct buf *stats,
		      struct error *err);

#endif

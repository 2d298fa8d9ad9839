/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - what the ids in one plane of an XSpace mean: names of events and of stats, and
 * stats as values.  One plane at a time; texts become names of the trace.
 */
#ifndef CONVERT_SOURCE_XPLANE_NAMES_H
#define CONVERT_SOURCE_XPLANE_NAMES_H

#include "convert/source/xplane/file.h"
#include "schemas/base/buf.h"
#include "schemas/base/map.h"
#include "schemas/model/trace.h"
#include "schemas/proto/xspace.h"

/* Stats that are looked at by themselves; all others are attributes under their own name. */
/* clang-format off */
#define XPLANE_ROLE_LIST(X)                                                                  \
	X(CORRELATION, "correlation_id") X(KERNEL_DETAILS, "kernel_details")                 \
	X(MEMCPY_DETAILS, "memcpy_details") X(MEMSET_DETAILS, "Memset_details")              \
	X(ROOT, "_r") X(STEP_NUM, "step_num") X(ITER_NUM, "iter_num")                        \
	X(ADDRESS, "addr") X(ALLOCATED, "bytes_allocated") X(TAKEN, "allocation_bytes")      \
	X(ALLOCATOR, "allocator_name") X(ORDINAL, "device_ordinal")                          \
	X(GRAPH_EXEC, "cuda_graph_exec_id") X(CLASS, XSTAT_CLASS_NAME) X(KIND, XSTAT_KIND_NAME)
/* clang-format on */
enum xplane_role {
	XROLE_NONE,
#define X(name, text) XROLE_##name,
	XPLANE_ROLE_LIST(X)
#undef X
		XROLE_END,
};

struct xplane_value {
	uint32_t key;       /* a name; 0: the stat's metadata is missing, or it has no value */
	uint8_t role, type; /* enum attr_type */
	bool is_constant;   /* stands with the name: the same for all its events */
	uint64_t bits;
};
struct xplane_stat_name {
	int64_t id;
	uint32_t name, key; /* the text of a reference; the key of an attribute */
	uint8_t role;
};
struct xplane_event_name {
	int64_t id;
	uint32_t name;
	uint32_t first, count; /* of its constant stats, in `values` */
};

struct xplane_names {
	struct trace *trace;            /* borrowed */
	struct xplane_file *file;       /* borrowed */
	struct buf stats, events;       /* struct xplane_stat_name, struct xplane_event_name */
	struct map stat_ids, event_ids; /* their ids to the index there */
	struct buf values;              /* struct xplane_value */
	struct buf text;                /* scratch */
	uint64_t damaged, left_out;     /* stats without meaning; texts that are too long */
};

void xplane_names_init(struct xplane_names *n, struct trace *trace, struct xplane_file *file);
void xplane_names_release(struct xplane_names *n);

/* Reads those of the plane, in place of the ones before. */
enum status xplane_names_read(struct xplane_names *n, struct xplane_span plane, struct error *err);
/* NULL: there is none. */
const struct xplane_event_name *xplane_event_name(const struct xplane_names *n, int64_t id);

/* An XStat in memory; key 0 when it has no meaning. */
enum status xplane_value_take(struct xplane_names *n, struct bytes stat, struct xplane_value *out,
			      struct error *err);
/* The same where the message may be long: Hlo Proto and its like are passed over. */
enum status xplane_value_read(struct xplane_names *n, const struct xplane_span *stat,
			      struct xplane_value *out, struct error *err);

/* A whole number >= 0, of whatever type the writer chose. */
bool xplane_value_u64(const struct xplane_names *n, const struct xplane_value *v, uint64_t *out);

#endif

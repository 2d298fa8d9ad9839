/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the stage, and the state of each track while the stage reads its input. */
#pragma once

#include "convert/spool/spool.h"
#include "convert/stage/context/context.h"
#include "convert/stage/lod/lod.h"
#include "schemas/base/map.h"

enum { LOD_PARTS = 8, LOD_NAMES = 8 };
enum { LOD_KEY_COUNT, LOD_KEY_SUM, LOD_KEY_LONGEST, LOD_KEYS };

struct lod_held { /* a copy of an event that outlives its batch */
	struct event event;
	uint64_t *args;
	size_t cap;
};
/* A group of short neighbours of one kind; ranges in a group also have the same class. */
struct lod_part {
	struct lod_held first;
	uint64_t begin_ns, end_ns, bytes;
	uint64_t count, sum_ns, longest_ns;
	uint64_t records; /* input events, which may already stand for others */
	struct lod_name {
		uint32_t name;
		uint64_t count;
	} names[LOD_NAMES]; /* the first different names in the group */
	unsigned name_count;
};
/* The samples of a counter or an allocator within one interval of time. */
struct lod_bin {
	struct lod_held low,
		high; /* least and greatest sample of a counter; first event of an allocator */
	uint64_t interval, count, records;
	int64_t running, begin_bytes, most_bytes; /* bytes in use of an allocator */
	uint64_t most_ns, last_ns;
};
struct lod_track {
	struct lod_part *parts; /* LOD_PARTS groups that may still grow; NULL: never used */
	unsigned part_count;
	uint64_t interval, end_ns;
	uint64_t limit_ns; /* end of the kept event around the groups */
	uint64_t *ends;    /* ends of open kept events, the innermost last */
	size_t end_count, end_cap;
	uint64_t merged_end_ns; /* end of the last merged event */
	uint64_t min_ns;        /* threshold of events that begin before merged_end_ns */
	struct lod_bin *bin;
};

struct lod {
	struct source source, *below;
	struct trace *trace;
	struct lod_request how;
	struct lod_track *tracks;
	struct lod_totals *totals; /* by process */
	uint32_t track_count, process_count, schema_count;
	struct map ids; /* see lod_note_id() */
	struct spool *spool;
	uint32_t keys[LOD_KEYS]; /* argument names of input events that stand for others; 0: none */
	uint32_t *made_schemas;  /* schema of a merged event, by the schema of its first event */
	struct map made_names;   /* name of a merged event, by its most frequent name */
	enum status fault;       /* error of the source below; returned after the last event */
	struct error why;
	struct interval_list intervals; /* all intervals of the input */
	struct step_mark *marks;
	size_t mark_count, mark_cap;
};

enum lod_what { IDS_MERGED_HOST, IDS_MERGED_GPU, IDS_KEPT_GPU, IDS_FLOW };
enum { LOD_IDS_MOST = 1 << 20 }; /* map entries; each holds 64 neighbouring ids */

/* Remembers what became of the event with an id, by process.  If there are more than LOD_IDS_MOST
 * entries, new ids are forgotten, and an output may draw an arrow too many. */
void lod_note_id(struct map *ids, uint32_t process, enum lod_what what, uint64_t id);
bool lod_has_id(const struct map *ids, uint32_t process, enum lod_what what, uint64_t id);

enum status lod_hold(struct lod *d, struct lod_held *h, const struct event *e, struct error *err);
/* Returns how many events an event stands for, their total and their longest duration: 1 and its
 * own duration for an ordinary event. */
void lod_weigh(struct lod *d, const struct event *e, uint64_t *count, uint64_t *sum_ns,
	       uint64_t *longest_ns);
/* Puts an event into the spool: as it is, or as one that stands for `p->records` input events. */
enum status lod_put_kept(struct lod *d, const struct event *e, struct error *err);
enum status lod_put_made(struct lod *d, struct event *e, const struct lod_part *p,
			 struct error *err);

/* spans.c: handles an event of a thread or stream, and writes the current groups of a track. */
enum status lod_span_put(struct lod *d, const struct event *e, uint64_t interval_ns,
			 struct error *err);
enum status lod_spans_close(struct lod *d, struct lod_track *t, struct error *err);
/* samples.c: handles an event of a counter or allocator, and writes the current interval of a
 * track. */
enum status lod_sample_put(struct lod *d, const struct event *e, uint64_t interval,
			   struct error *err);
enum status lod_samples_close(struct lod *d, struct lod_track *t, struct error *err);

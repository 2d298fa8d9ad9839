/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the stage, and the state of each track while it reads its input. */
#pragma once

#include "convert/spool/spool.h"
#include "convert/stage/context/context.h"
#include "convert/stage/lod/lod.h"
#include "schemas/base/map.h"

enum { LOD_PARTS = 8, LOD_NAMES = 8 };
enum { LOD_KEY_COUNT, LOD_KEY_SUM, LOD_KEY_LONGEST, LOD_KEYS };

struct lod_held { /* an event that outlives its batch */
	struct event event;
	uint64_t *args;
	size_t cap;
};
/* Short neighbours of one kind, and of one class where they are ranges. */
struct lod_part {
	struct lod_held first;
	uint64_t begin_ns, end_ns, bytes;
	uint64_t count, sum_ns, longest_ns;
	uint64_t records; /* events of the input, which may stand for others already */
	struct lod_name {
		uint32_t name;
		uint64_t count;
	} names[LOD_NAMES]; /* the first that occur */
	unsigned name_count;
};
/* The samples of a counter or an allocator within one interval of time. */
struct lod_bin {
	struct lod_held low,
		high; /* of a counter least and most; of an allocator the first, none */
	uint64_t interval, count, records;
	int64_t running, begin_bytes, most_bytes; /* of an allocator */
	uint64_t most_ns, last_ns;
};
struct lod_track {
	struct lod_part *parts; /* LOD_PARTS short neighbours in the making; NULL: never needed */
	unsigned part_count;
	uint64_t interval, end_ns;
	uint64_t limit_ns; /* where the kept event around them ends */
	uint64_t *ends;    /* of kept events that are open, the innermost last */
	size_t end_count, end_cap;
	uint64_t merged_end_ns; /* where the last event ends that was merged */
	uint64_t min_ns;        /* threshold of what begins before that */
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
	uint32_t keys[LOD_KEYS]; /* names of the arguments of input that stands for others; 0: none
				  */
	uint32_t *made_schemas;  /* of merged events, by the schema of the first of them */
	struct map made_names;   /* of merged events, by the name of the most frequent */
	enum status fault;       /* of what is below; returned after the last event */
	struct error why;
	struct interval_list intervals; /* of the whole input */
	struct step_mark *marks;
	size_t mark_count, mark_cap;
};

enum lod_what { IDS_MERGED_HOST, IDS_MERGED_GPU, IDS_KEPT_GPU, IDS_FLOW };
enum { LOD_IDS_MOST = 1 << 20 }; /* entries of 64 neighbouring ids each */

/* Ids by process and what became of them.  Those over the ceiling are forgotten: then an arrow more
 * is drawn than there should be. */
void lod_note_id(struct map *ids, uint32_t process, enum lod_what what, uint64_t id);
bool lod_has_id(const struct map *ids, uint32_t process, enum lod_what what, uint64_t id);

enum status lod_hold(struct lod *d, struct lod_held *h, const struct event *e, struct error *err);
/* What an event counts for: 1 and its duration, unless it stands for others. */
void lod_weigh(struct lod *d, const struct event *e, uint64_t *count, uint64_t *sum_ns,
	       uint64_t *longest_ns);
/* Into the spool: an event as it is, or one that stands for `records` events of the input. */
enum status lod_put_kept(struct lod *d, const struct event *e, struct error *err);
enum status lod_put_made(struct lod *d, struct event *e, const struct lod_part *p,
			 struct error *err);

/* spans.c: an event of a thread or a stream; the end of its short neighbours. */
enum status lod_span_put(struct lod *d, const struct event *e, uint64_t interval_ns,
			 struct error *err);
enum status lod_spans_close(struct lod *d, struct lod_track *t, struct error *err);
/* samples.c: an event of a counter or an allocator; the end of an interval. */
enum status lod_sample_put(struct lod *d, const struct event *e, uint64_t interval,
			   struct error *err);
enum status lod_samples_close(struct lod *d, struct lod_track *t, struct error *err);

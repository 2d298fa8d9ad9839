/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detail/parts.h - the parts of the level of detail: lengths and cells, groups of short events,
 * bins of samples, sets of ids.
 */
#ifndef CONVERT_DETAIL_PARTS_H
#define CONVERT_DETAIL_PARTS_H

#include "convert/detail.h"
#include "convert/spool.h"

/* --- lengths: four classes to an octave, so that floors are exact in integers --- */

/* The class of a length: it is kept at levels up to this one. */
unsigned detail_class(uint64_t ns);
/* How long an event counts; UINT64_MAX: always kept. */
uint64_t detail_length(const struct event *e);
/* Cells of time are some 16 floors long and never straddled: the picture keeps its shape. */
unsigned detail_cell_shift(unsigned level);
/* Of a fine level, at an instant: the level or the next. */
unsigned detail_level_at(unsigned fine, uint64_t ns);
/* Levels below this one see a border of a cell between two instants. */
unsigned detail_cell_class(uint64_t a_ns, uint64_t b_ns);

/* --- a set of (process, what, id); ids that are close together cost a bit each --- */

struct detail_set {
	struct detail_page *pages; /* open addressing */
	size_t room, count;
};
enum detail_what { IDS_MERGED_HOST, IDS_MERGED_GPU, IDS_KEPT_GPU, IDS_FLOW, IDS_WHATS };

void detail_set_release(struct detail_set *s);
/* What is over the ceiling is forgotten: an arrow more than there should be. */
void detail_set_add(struct detail_set *s, uint32_t process, enum detail_what what, uint64_t id);
bool detail_set_has(const struct detail_set *s, uint32_t process, enum detail_what what,
		    uint64_t id);

/* --- events in the making --- */

enum { DETAIL_PARTS = 8, DETAIL_NAMES = 8 };

struct detail_held { /* an event that outlives its batch */
	struct event event;
	uint64_t *vary;
	uint32_t words, room;
};
struct detail_part { /* of one group: those of one kind, and class where it is a range */
	struct detail_held first;
	uint64_t begin_ns, end_ns, count, sum_ns, longest_ns, bytes;
	struct detail_name {
		uint32_t name;
		uint64_t count;
	} names[DETAIL_NAMES];
	unsigned name_count;
	uint64_t records; /* events of the input: an event may stand for others already */
};
struct detail_group { /* the short neighbours at hand of one track */
	struct detail_part *parts; /* DETAIL_PARTS; NULL: never needed */
	unsigned part_count;       /* 0: none is open */
	uint64_t end_ns, limit_ns; /* limit: where the kept event around it ends */
	uint64_t cell;
	unsigned level;
};
struct detail_bin { /* of a counter or a pool */
	struct detail_held low, high; /* counter: least and most; pool: only low, the first */
	uint64_t cell, count, records;
	unsigned level;
	int64_t running, begin_bytes, most_bytes; /* of a pool */
	uint64_t most_ns, last_ns;
};
struct detail_track {
	struct detail_group group;
	struct detail_bin *bin;
	uint64_t *ends; /* of kept events that are open, the innermost last */
	size_t end_count, end_room;
	uint64_t merged_end_ns; /* where the last event ends that was merged */
	unsigned level;         /* of what begins before that */
};

struct detail {
	struct source source, *below;
	struct trace *trace;
	struct detail_request how;
	struct detail_track *tracks;
	uint32_t track_count;
	struct detail_totals *totals; /* by process, [0] of all */
	uint32_t process_count;
	struct detail_set ids;
	struct spool *spool;
	uint32_t *made_shapes; /* of what stands for others, by shape of the first of them */
	uint8_t *shapes;    /* by shape of the input: 1 unknown, 2 stands for others, 0 not yet asked */
	uint32_t shape_count;
	size_t name_bytes; /* of names that were made */
	enum status fault;  /* of what is below: given at the end */
	struct error why;
};

enum status detail_hold(struct detail *d, struct detail_held *h, const struct event *e,
			struct error *err);
/* What an event counts for: 1 and its duration, but where it stands for others. */
void detail_worth(struct detail *d, const struct event *e, uint64_t *count, uint64_t *sum_ns,
		  uint64_t *longest_ns);
/* Into the spool: kept, or made of `records` events of the input. */
enum status detail_put_kept(struct detail *d, const struct event *e, struct error *err);
enum status detail_put_made(struct detail *d, struct event *e, uint64_t count, uint64_t sum_ns,
			    uint64_t longest_ns, uint64_t records, struct error *err);

/* detail/group.c */
enum status detail_group_put(struct detail *d, const struct event *e, unsigned level,
			     struct error *err);
enum status detail_group_close(struct detail *d, struct detail_group *g, struct error *err);
/* detail/bin.c */
enum status detail_bin_put(struct detail *d, const struct event *e, unsigned level,
			   struct error *err);
enum status detail_bin_close(struct detail *d, struct detail_bin *b, enum home home,
			     struct error *err);

#endif

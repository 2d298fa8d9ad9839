/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - the rows of the viewer: which there are, in which order, and where in a row an
 * interval has its place.
 *
 *	process (rank 0)
 *		its threads
 *		"Steps", "Phases", counters of the host
 *		"GPU 0"
 *			"GPU time", its counters
 *			"Stream 7", "Stream 7: waits", "Stream 7: ranges" ...
 *
 * A row is one or more subtracks, each a track of the format, because intervals on one track must
 * not overlap but be within each other (on a thread) or not even that (on a stream): the first
 * subtrack with place is taken.  Descriptors are written when a subtrack gets its first event.
 */
#ifndef CONVERT_SINK_PERFETTO_ROWS_H
#define CONVERT_SINK_PERFETTO_ROWS_H

#include "convert/sink/perfetto/file.h"
#include "convert/sink/perfetto/wire.h"
#include "schemas/base/arena.h"
#include "schemas/base/vec.h"

enum perfetto_role {
	ROLE_MAIN,   /* of a thread: everything; of a stream: the work of the GPU */
	ROLE_WAITS,  /* of a stream */
	ROLE_RANGES, /* of a stream: intervals with a name, and instants */
	ROLE_COUNT,
};
enum perfetto_form { FORM_FLAT, FORM_NESTED, FORM_COUNTER };
enum { SUBTRACKS_MOST = 64, NEST_MOST = 500 /* Perfetto's reader ends at 512 */ };

/* What packets begin with. */
struct perfetto_heads {
	struct wire_head begin, wide, instant, wide_instant, end, counter;
};

struct perfetto_subtrack {
	struct wire_track track;
	uint64_t *ends; /* of the intervals that are open, the innermost last */
	size_t depth, cap;
};
struct perfetto_row {
	struct perfetto_subtrack *subtracks;
	size_t subtrack_count, subtrack_cap;
	uint8_t form;
	uint32_t process, gpu, thread; /* gpu: 1 + its place; thread: its track; 0: none */
	int32_t rank;
	const char *name, *unit; /* unit: of a counter, else NULL */
	uint64_t first_uuid;
	struct perfetto_row *before; /* the one that was made before */
};

struct perfetto_gpu {
	uint32_t process, device; /* NO_ID: unknown which */
	uint32_t next;            /* of the same process: 1 + its place */
	uint64_t uuid;            /* 0: not written yet */
};
struct perfetto_process {
	uint64_t space, uuid; /* uuid 0: not written yet */
	int32_t pid;          /* of the file */
	uint32_t gpus;        /* 1 + the place of the first */
	uint32_t tracks;      /* uuids given out */
};

struct perfetto_rows {
	struct perfetto_file *file;
	struct perfetto_heads heads;
	struct perfetto_process *processes; /* index: id of the process */
	struct perfetto_gpu *gpus;
	size_t gpu_count;
	uint32_t *gpu_of, *place_of; /* index: track; 1 + its place, its place among the streams */
	struct perfetto_row **rows;  /* index: track * ROLE_COUNT + role */
	struct perfetto_row *made;   /* the last one; all are linked */
	size_t track_count, process_count;
	struct arena arena;
};

enum status perfetto_rows_init(struct perfetto_rows *r, struct perfetto_file *file,
			       struct error *err);
void perfetto_rows_release(struct perfetto_rows *r); /* accepts a zeroed one */

/* The row of a track of the trace. */
enum status perfetto_row_make(struct perfetto_rows *r, uint32_t track, enum perfetto_role role,
			      struct perfetto_row **out, struct error *err);
static inline enum status perfetto_row(struct perfetto_rows *r, uint32_t track,
				       enum perfetto_role role, struct perfetto_row **out,
				       struct error *err)
{
	*out = r->rows[(size_t)track * ROLE_COUNT + role];
	return *out ? ST_OK : perfetto_row_make(r, track, role, out, err);
}
/* One more row, of a process or of a GPU; name and unit stay borrowed. */
enum status perfetto_row_add(struct perfetto_rows *r, const struct perfetto_row *what,
			     struct perfetto_row **out, struct error *err);
/* 1 + the place of the GPU of (process, device). */
uint32_t perfetto_find_gpu(const struct perfetto_rows *r, uint32_t process, uint32_t device);

/* Whether [begin, end) fits into the subtrack; then it is in it. */
static inline bool perfetto_subtrack_take(struct perfetto_subtrack *s, bool nests,
					  uint64_t begin_ns, uint64_t end_ns)
{
	while (s->depth && s->ends[s->depth - 1] <= begin_ns)
		s->depth--;
	if (s->depth && (!nests || end_ns > s->ends[s->depth - 1] || s->depth == NEST_MOST))
		return false;
	if (vec_reserve(&s->ends, &s->cap, s->depth + 1, NULL) != ST_OK)
		return false;
	s->ends[s->depth++] = end_ns;
	return true;
}

/* The first subtrack with place for an interval; NULL: none has, and there are SUBTRACKS_MOST or no
 * numbers left for tracks. */
enum status perfetto_row_place_more(struct perfetto_rows *r, struct perfetto_row *row,
				    uint64_t begin_ns, uint64_t end_ns,
				    const struct wire_track **out, struct error *err);
static inline enum status perfetto_row_place(struct perfetto_rows *r, struct perfetto_row *row,
					     uint64_t begin_ns, uint64_t end_ns,
					     const struct wire_track **out, struct error *err)
{
	if (row->subtrack_count &&
	    perfetto_subtrack_take(row->subtracks, row->form == FORM_NESTED, begin_ns, end_ns)) {
		*out = &row->subtracks->track;
		return ST_OK;
	}
	return perfetto_row_place_more(r, row, begin_ns, end_ns, out, err);
}
/* The first subtrack, for instants and samples; NULL: there is none. */
enum status perfetto_row_first(struct perfetto_rows *r, struct perfetto_row *row,
			       const struct wire_track **out, struct error *err);

#endif

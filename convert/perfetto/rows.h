/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto/rows.h - the rows of the viewer: which there are, in which order, and where in a row an
 * interval has its place.
 *
 *	process (rank 0)
 *		its threads
 *		"Steps", "Phases", counters of the host
 *		"GPU 0"
 *			"GPU time", its counters
 *			"Stream 7", "Stream 7: waits", "Stream 7: ranges" ...
 *
 * A row is one or more lanes, each a track of the format, because intervals on one track must not
 * overlap but be within each other (on a thread) or not even that (on a stream): the first lane
 * with room is taken.  Descriptors are written when a lane gets its first event.
 */
#ifndef CONVERT_PERFETTO_ROWS_H
#define CONVERT_PERFETTO_ROWS_H

#include "convert/perfetto/file.h"
#include "convert/perfetto/wire.h"
#include "schemas/arena.h"

enum perfetto_role {
	ROLE_MAIN,   /* of a thread: everything; of a stream: the work of the GPU */
	ROLE_WAITS,  /* of a stream */
	ROLE_RANGES, /* of a stream: intervals with a name, and instants */
	ROLE_COUNT,
};
enum perfetto_form { FORM_FLAT, FORM_NESTED, FORM_COUNTER };
enum { LANES_MOST = 64, NEST_MOST = 500 /* Perfetto's reader ends at 512 */, ENDS_FIRST = 3 };

/* What packets begin with. */
struct perfetto_heads {
	struct wire_head begin, wide, instant, wide_instant, end, counter;
};

/*
 * Of a thousand processes each event is of another one, so what it needs of its row stands on one
 * cache line: the first lane, with room for the ends of a few intervals.
 */
struct perfetto_lane {
	struct wire_track track;
	uint64_t *ends; /* of the intervals that are open, the innermost last */
	uint32_t depth, room;
	uint64_t first_ends[ENDS_FIRST];
};
struct perfetto_row {
	struct perfetto_lane first;
	uint32_t lane_count;
	uint8_t form;
	struct perfetto_lane **more; /* lanes behind the first */
	uint32_t process, gpu, thread; /* gpu: 1 + its place; thread: its track; 0 none */
	int32_t rank;
	const char *name, *unit; /* unit: of a counter, NULL none */
	uint64_t first_uuid;
	struct perfetto_row *before; /* the one that was made before */
};
enum { PERFETTO_LINE = 64 }; /* bytes of a cache line, on which a row begins */
_Static_assert(offsetof(struct perfetto_row, more) <= PERFETTO_LINE, "it is what an event needs");

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

/* One more lane; NULL: there are LANES_MOST, or no numbers left for tracks. */
enum status perfetto_lane_add(struct perfetto_rows *r, struct perfetto_row *row,
			      struct perfetto_lane **out, struct error *err);

bool perfetto_lane_grow(struct perfetto_lane *l);

/* Whether [begin, end) fits into the lane; then it is in it. */
static inline bool perfetto_lane_take(struct perfetto_lane *l, bool nests, uint64_t begin_ns,
				      uint64_t end_ns)
{
	while (l->depth && l->ends[l->depth - 1] <= begin_ns)
		l->depth--;
	if (l->depth && (!nests || end_ns > l->ends[l->depth - 1] || l->depth == NEST_MOST))
		return false;
	if (l->depth == l->room && !perfetto_lane_grow(l))
		return false;
	l->ends[l->depth++] = end_ns;
	return true;
}

/* The first lane with room for an interval; NULL: it has no place. */
enum status perfetto_row_place_more(struct perfetto_rows *r, struct perfetto_row *row,
				    uint64_t begin_ns, uint64_t end_ns, struct perfetto_lane **out,
				    struct error *err);
static inline enum status perfetto_row_place(struct perfetto_rows *r, struct perfetto_row *row,
					     uint64_t begin_ns, uint64_t end_ns,
					     struct perfetto_lane **out, struct error *err)
{
	*out = &row->first;
	if (row->lane_count &&
	    perfetto_lane_take(&row->first, row->form == FORM_NESTED, begin_ns, end_ns))
		return ST_OK;
	return perfetto_row_place_more(r, row, begin_ns, end_ns, out, err);
}
/* The first lane, for instants and samples; NULL: there is none. */
static inline enum status perfetto_row_first(struct perfetto_rows *r, struct perfetto_row *row,
					     struct perfetto_lane **out, struct error *err)
{
	*out = row->lane_count ? &row->first : NULL;
	return *out ? ST_OK : perfetto_lane_add(r, row, out, err);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the parts of the Perfetto sink: the file, its rows, the arguments of events, derived
 * rows.
 */
#pragma once

#include "convert/name/rules.h"
#include "convert/output/output.h"
#include "convert/sink/perfetto/wire.h"
#include "convert/sink/template.h"
#include "schemas/base/map.h"
#include "schemas/base/pb.h"
#include "schemas/base/vec.h"

/* ---- file.c: the packets of a file, and the texts that they point to ----
 *
 * A text is written once, when it is first used; from then on packets contain its number.  Events
 * are on one sequence and descriptors of tracks on another.  Numbers of sequences, tracks and
 * arrows are made from rank, host and pid, so that files of several ranks can be concatenated.
 */

/* Fields of schemas/proto/perfetto.proto for packets that are less numerous than events. */
enum perfetto_field {
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_TRACK = 60,
	PACKET_GPU_MEMORY = 71,
	PACKET_ATTRIBUTES = 126,
};
enum perfetto_space { SPACE_CATEGORY, SPACE_NAME, SPACE_KEY, SPACE_TEXT, SPACE_COUNT };
enum { PERFETTO_WORDS = 512 };

struct perfetto_file {
	struct trace *trace;            /* borrowed */
	uint32_t sequence;              /* sequence of events; descriptors use one less */
	uint32_t names;                 /* number of names; ids above are those of `words` */
	uint64_t *written[SPACE_COUNT]; /* a bit per name: its text is in the file */
	uint64_t *written_paths; /* a bit per path node, whose numbers follow those of `words` */
	size_t written_path_words;
	struct { /* constant texts of this program */
		const char *text;
		unsigned space;
	} words[PERFETTO_WORDS];
	size_t word_count;
	uint64_t repaired; /* number of texts with invalid UTF-8 */
	struct buf packet; /* the packet between begin and end */
	size_t packet_at;
	struct buf text;
	struct out_cursor cursor;
};

/* Begins a file of one process, or of all processes if `process` is 0. */
enum status perfetto_file_init(struct perfetto_file *f, struct trace *trace, struct out *out,
			       uint32_t process, struct error *err);
void perfetto_file_release(struct perfetto_file *f); /* accepts a zeroed one */

/* A packet is written by begin, its fields in ascending order of their numbers, and end. */
struct buf *perfetto_begin_packet(struct perfetto_file *f);
enum status perfetto_end_packet(struct perfetto_file *f, struct error *err);

enum status perfetto_write_name(struct perfetto_file *f, enum perfetto_space space, uint32_t name,
				struct error *err);
/* Makes sure that the text of a name of the trace is in the file, so that the name's id stands for
 * it. */
static inline enum status perfetto_need_name(struct perfetto_file *f, enum perfetto_space space,
					     uint32_t name, struct error *err)
{
	if (f->written[space][name / 64] >> (name % 64) & 1)
		return ST_OK;
	return perfetto_write_name(f, space, name, err);
}
/* Writes the text of a call path if it is not in the file yet, and returns its number in
 * SPACE_TEXT. */
enum status perfetto_need_path(struct perfetto_file *f, uint32_t path, uint64_t *out,
			       struct error *err);
/* Writes a constant text if it is not in the file yet, and returns its number, found by a linear
 * search.  The text's address is kept. */
enum status perfetto_word(struct perfetto_file *f, enum perfetto_space space, const char *text,
			  uint64_t *out, struct error *err);
/* Writes attributes that describe the file and the number of lost events.  `process` 0: the file
 * has all processes. */
enum status perfetto_put_attributes(struct perfetto_file *f, uint32_t process, uint64_t written,
				    struct error *err);
/* Returns the text as UTF-8 without a NUL, valid until the next call.  Invalid bytes become U+FFFD.
 */
const char *perfetto_utf8(struct perfetto_file *f, const char *text, size_t len);
/* Returns the high bits of all numbers of a process: its rank and a hash of its identity. */
uint64_t perfetto_space_of(const struct trace *t, uint32_t process);

/* ---- rows.c: the rows of the viewer, in which order, and where in a row an interval lies ----
 *
 *	"Overview", of all processes in the order of their ranks
 *		"rank 0 (node-a): Steps", "...: Phases", "...: GPU 0 time"
 *	process (rank 0)
 *		its threads
 *		counters of the host
 *		"GPU 0"
 *			its counters
 *			"Stream 7", "Stream 7: waits", "Stream 7: ranges" ...
 *
 * A row has one or more subtracks, each a track of the format, because intervals on one track must
 * nest (on a thread) or be disjoint (on a stream).  An interval goes to the first subtrack with
 * room.  A subtrack's descriptor is written with its first event.
 */

enum perfetto_role {
	ROLE_MAIN,   /* thread: everything; stream: the work of the GPU */
	ROLE_WAITS,  /* waits of a stream */
	ROLE_RANGES, /* named intervals and instants of a stream */
	ROLE_COUNT,
};
/* The order of a process's rows in the overview.  GPUs follow in order of their numbers. */
enum perfetto_top { TOP_STEPS, TOP_PHASES, TOP_GPU, TOP_COUNT = 64 };
enum perfetto_form { FORM_FLAT, FORM_NESTED, FORM_COUNTER };
enum { SUBTRACKS_MOST = 64, NEST_MOST = 500 /* Perfetto's reader allows 512 */ };

/* The constant beginning of each type of packet. */
struct perfetto_heads {
	struct wire_head begin, wide, instant, wide_instant, end, counter;
};

struct perfetto_subtrack {
	struct wire_track track;
	uint64_t *ends; /* ends of the open intervals, the innermost last */
	size_t depth, cap;
};
struct perfetto_row {
	struct perfetto_subtrack *subtracks;
	size_t subtrack_count, subtrack_cap;
	uint8_t form;
	bool on_top;                   /* in the overview, not under its process */
	bool is_memory;                /* an allocator's counter */
	bool is_derived;               /* computed from events that are also in the file */
	uint32_t process, gpu, thread; /* gpu: index + 1; thread: its track; 0: none */
	int32_t rank;
	const char *name, *unit; /* unit: of a counter, otherwise NULL */
	uint64_t first_uuid;
	struct perfetto_row *before; /* the row that was made before */
};

struct perfetto_gpu {
	uint32_t process, device; /* device NO_ID: unknown */
	uint32_t next;            /* next GPU of the process: index + 1 */
	uint64_t uuid;            /* 0: not written yet */
};
struct perfetto_process {
	uint64_t space, uuid; /* uuid 0: not written yet */
	int32_t pid;          /* pid in the file */
	uint32_t gpus;        /* first GPU: index + 1 */
	uint32_t tracks;      /* number of uuids used so far */
};

struct perfetto_rows {
	struct perfetto_file *file;
	struct perfetto_heads heads;
	struct perfetto_process *processes; /* by process */
	struct perfetto_gpu *gpus;
	size_t gpu_count;
	uint32_t *gpu_of, *place_of; /* by track: GPU index + 1; place among its streams */
	struct perfetto_row **rows;  /* by track * ROLE_COUNT + role */
	struct perfetto_row *made;   /* the latest row; all rows are linked */
	size_t track_count, process_count;
	bool has_overview; /* its descriptor is in the file */
	bool has_memory;   /* the file also has each allocation and free */
	struct arena arena;
};

/* Initializes the rows of a file of one process, or of all processes if `process` is 0. */
enum status perfetto_rows_init(struct perfetto_rows *r, struct perfetto_file *file,
			       uint32_t process, struct error *err);
void perfetto_rows_release(struct perfetto_rows *r); /* accepts a zeroed one */

/* Makes or finds the row of a track of the trace. */
enum status perfetto_row_make(struct perfetto_rows *r, uint32_t track, enum perfetto_role role,
			      struct perfetto_row **out, struct error *err);
static inline enum status perfetto_row(struct perfetto_rows *r, uint32_t track,
				       enum perfetto_role role, struct perfetto_row **out,
				       struct error *err)
{
	*out = r->rows[(size_t)track * ROLE_COUNT + role];
	return *out ? ST_OK : perfetto_row_make(r, track, role, out, err);
}
/* Makes a row without a track if *row is NULL: a row of GPU `gpu` (index + 1), or of `process` if
 * gpu is 0.  `like` has its properties. */
enum status perfetto_row_need(struct perfetto_rows *r, struct perfetto_row **row,
			      const struct perfetto_row *like, uint32_t process, uint32_t gpu,
			      struct error *err);

/* Adds the interval [begin, end) to the subtrack and returns true, if it fits. */
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

/* Returns the first subtrack with room for an interval.  NULL: none has room, and there are
 * SUBTRACKS_MOST or no numbers left for tracks. */
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
/* Returns the first subtrack, for instants and samples.  NULL: there are no numbers left for
 * tracks. */
enum status perfetto_row_first(struct perfetto_rows *r, struct perfetto_row *row,
			       const struct wire_track **out, struct error *err);

/* Writes a sample of a counter.  *has_place (`has_place` may be NULL) is set to whether there is a
 * subtrack for it. */
enum status perfetto_put_sample(struct perfetto_rows *r, struct perfetto_row *row, uint64_t at_ns,
				double value, bool *has_place, struct error *err);
/* Writes a slice of a row without a track.  `name` 0: its name is "step " and `number`. */
enum status perfetto_put_span(struct perfetto_rows *r, struct perfetto_row *row, uint64_t name,
			      uint64_t number, uint64_t category, uint64_t begin_ns,
			      uint64_t end_ns, struct error *err);

/* ---- args.c: name, category and arguments of slices, as templates ----
 *
 * Lean slices have only the arguments that people need most: bytes and bandwidth of copies, results
 * of failed calls, and whether times were clipped.  Full slices have all arguments of the trace.
 * Texts are written as numbers, so a template is short.
 */

/*
 * Parts are the keys of debug annotations, and the types of their placeholders are fields of
 * DebugAnnotation.  The last part is everything that is the same for each event.
 */
struct perfetto_template {
	struct template base;
	bool has_text; /* an argument that varies from event to event is a text */
	uint8_t category[16], category_len; /* an encoded field of TrackEvent */
	uint64_t name;         /* for events without a name; 0: made from the event's number */
	uint32_t common_count; /* number of parts for every event; the others are rare */
	uint32_t most;         /* most bytes of the arguments without rare ones */
	uint32_t rare_most;    /* most bytes of the arguments with rare ones */
};
struct perfetto_args {
	struct perfetto_file *file; /* borrowed */
	bool all;
	struct templates templates;
};

enum status perfetto_args_init(struct perfetto_args *a, struct perfetto_file *file, bool all,
			       struct error *err);
enum status perfetto_args_make(struct perfetto_args *a, const struct event *e,
			       const struct perfetto_template **out, struct error *err);
/* Returns the template of an event.  The texts that its arguments refer to are in the file then. */
static inline enum status perfetto_args_find(struct perfetto_args *a, const struct event *e,
					     const struct perfetto_template **out,
					     struct error *err)
{
	*out = (const struct perfetto_template *)template_find(&a->templates, e);
	return *out && !(*out)->has_text ? ST_OK : perfetto_args_make(a, e, out, err);
}

/* Returns whether an event has rare arguments: a call that failed, or times that were clipped. */
static inline bool perfetto_is_rare(const struct event *e)
{
	return (e->flags & (EVENT_BEGAN_EARLIER | EVENT_NEVER_ENDED)) ||
	       (e->flags & EVENT_RESULT && e->result);
}

/* Writes the arguments, at most t->most or t->rare_most bytes, and returns their end. */
uint8_t *perfetto_put_args(uint8_t *p, const struct perfetto_template *t, const struct event *e,
			   const struct track *k);
/* Writes one more argument, whose value is a text in the file, and returns its end. */
enum { TEXT_ARG_MOST = 24 };
uint8_t *perfetto_put_text_arg(uint8_t *p, uint64_t key, uint64_t text);

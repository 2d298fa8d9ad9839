/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the parts of the Perfetto sink: the file, its rows, what events say, what is
 * derived.
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
 * A text is written once, when it is first used; from then on its number stands for it.  Events are
 * on one sequence and descriptors of tracks on another.  Numbers of sequences, tracks and arrows
 * are made from rank, host and pid, so that files of ranks may be put behind each other.
 */

/* Fields of schemas/proto/perfetto.proto, for packets that are not as many as events. */
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
	uint32_t sequence;              /* of events; that of descriptors is one less */
	uint32_t names;                 /* ids below are the trace's, above those of `words` */
	uint64_t *written[SPACE_COUNT]; /* a bit for each name whose text is in the file */
	uint64_t *written_paths;        /* the same for nodes, whose numbers follow the words' */
	size_t written_path_words;
	struct { /* constant texts of ours */
		const char *text;
		unsigned space;
	} words[PERFETTO_WORDS];
	size_t word_count;
	uint64_t repaired; /* texts with bytes that were no UTF-8 */
	struct buf packet; /* the one between begin and end */
	size_t packet_at;
	struct buf text;
	struct out_cursor cursor;
};

/* Begins the file: `process` 0 is one of all processes. */
enum status perfetto_file_init(struct perfetto_file *f, struct trace *trace, struct out *out,
			       uint32_t process, struct error *err);
void perfetto_file_release(struct perfetto_file *f); /* accepts a zeroed one */

/* One packet: begin, its fields by ascending numbers, end. */
struct buf *perfetto_begin_packet(struct perfetto_file *f);
enum status perfetto_end_packet(struct perfetto_file *f, struct error *err);

enum status perfetto_write_name(struct perfetto_file *f, enum perfetto_space space, uint32_t name,
				struct error *err);
/* The text of a name of the trace is in the file; then its id stands for it. */
static inline enum status perfetto_need_name(struct perfetto_file *f, enum perfetto_space space,
					     uint32_t name, struct error *err)
{
	if (f->written[space][name / 64] >> (name % 64) & 1)
		return ST_OK;
	return perfetto_write_name(f, space, name, err);
}
/* The number of a text of SPACE_TEXT that says a call path, which is in the file then. */
enum status perfetto_need_path(struct perfetto_file *f, uint32_t path, uint64_t *out,
			       struct error *err);
/* Of a constant text, which is kept by its address: the number that stands for it, by a search. */
enum status perfetto_word(struct perfetto_file *f, enum perfetto_space space, const char *text,
			  uint64_t *out, struct error *err);
/* What the file says of itself and of how much was lost; `process` 0: of all. */
enum status perfetto_put_attributes(struct perfetto_file *f, uint32_t process, uint64_t written,
				    struct error *err);
/* The text as UTF-8 without a NUL, until the next call; bytes that are none become U+FFFD. */
const char *perfetto_utf8(struct perfetto_file *f, const char *text, size_t len);
/* The high bits of all numbers of a process: its rank and a hash of its identity. */
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
	ROLE_MAIN,   /* of a thread: everything; of a stream: the work of the GPU */
	ROLE_WAITS,  /* of a stream */
	ROLE_RANGES, /* of a stream: intervals with a name, and instants */
	ROLE_COUNT,
};
/* The order of a process's rows in the overview; GPUs follow by their number. */
enum perfetto_top { TOP_STEPS, TOP_PHASES, TOP_GPU, TOP_COUNT = 64 };
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
	bool on_top;                   /* in the overview, not under its process */
	bool is_memory;                /* of the allocator */
	bool is_derived;               /* from events that are in the file too */
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
	bool has_overview; /* its descriptor is in the file */
	bool has_memory;   /* what allocators do is there event by event */
	struct arena arena;
};

/* `process` 0: the file is of all processes. */
enum status perfetto_rows_init(struct perfetto_rows *r, struct perfetto_file *file,
			       uint32_t process, struct error *err);
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
/* A row that no track is in, made where *row is NULL: of a GPU, or of a process with gpu 0. */
enum status perfetto_row_need(struct perfetto_rows *r, struct perfetto_row **row,
			      const struct perfetto_row *like, uint32_t process, uint32_t gpu,
			      struct error *err);

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

/* A sample of a counter; *has_place, which may be NULL, is whether there is a subtrack for it. */
enum status perfetto_put_sample(struct perfetto_rows *r, struct perfetto_row *row, uint64_t at_ns,
				double value, bool *has_place, struct error *err);
/* A slice of a row that no track is in; name 0: "step " and the number. */
enum status perfetto_put_span(struct perfetto_rows *r, struct perfetto_row *row, uint64_t name,
			      uint64_t number, uint64_t category, uint64_t begin_ns,
			      uint64_t end_ns, struct error *err);

/* ---- args.c: name, category and arguments of slices, as templates ----
 *
 * Lean slices have only what people need beyond the name: bytes and bandwidth of copies, results of
 * failed calls, and faults of the times.  Full ones have all that the trace has.  Texts are written
 * as numbers, so a template is short.
 */

/*
 * Parts hold the keys of debug annotations; their placeholders' types are fields of
 * DebugAnnotation.  The last part is all that is the same for each event.
 */
struct perfetto_template {
	struct template base;
	bool has_text; /* an argument that differs from event to event is a text */
	uint8_t category[16], category_len; /* a field of TrackEvent, encoded */
	uint64_t name;         /* for events without one; 0: it is made of the event's number */
	uint32_t common_count; /* parts of every event; behind them those that few events have */
	uint32_t most;         /* bytes of all arguments, at most */
	uint32_t rare_most;    /* the same with those that few events have */
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
/* How to write an event; the texts to which its arguments point are in the file then. */
static inline enum status perfetto_args_find(struct perfetto_args *a, const struct event *e,
					     const struct perfetto_template **out,
					     struct error *err)
{
	*out = (const struct perfetto_template *)template_find(&a->templates, e);
	return *out && !(*out)->has_text ? ST_OK : perfetto_args_make(a, e, out, err);
}

/* A call that failed, or times that are not the event's own. */
static inline bool perfetto_is_rare(const struct event *e)
{
	return (e->flags & (EVENT_BEGAN_EARLIER | EVENT_NEVER_ENDED)) ||
	       (e->flags & EVENT_RESULT && e->result);
}

/* Writes the arguments, at most t->most or ->rare_most bytes, and returns their end. */
uint8_t *perfetto_put_args(uint8_t *p, const struct perfetto_template *t, const struct event *e,
			   const struct track *k);
/* One more, whose value is a text of the file. */
enum { TEXT_ARG_MOST = 24 };
uint8_t *perfetto_put_text_arg(uint8_t *p, uint64_t key, uint64_t text);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - one process as an XSpace, as XProf reads it best.
 *
 *	/device:GPU:N          a line for each stream with work only, a line "Steps", counters
 *	/host:CPU              a line for each thread, memory events, counters
 *	/device:CUSTOM:...     waits, annotations and marks on streams: XProf takes all that stands
 *	                       on a GPU's plane for computation
 *	Task Environment       when it began and ended
 *
 * XProf gets the steps instead of guessing them: every plane has group_id, so it derives nothing,
 * and a line "Steps" has the times of the marks.  An XSpace of JAX or TensorFlow is written as it
 * was read, with the compiler's programs and without our groups, so that XProf derives the same as
 * from the original.  Lengths precede contents, so a spool sorts events by line, and each plane is
 * built in a pile before it is written.
 */
#pragma once

#include "convert/sink/sink.h"
#include "convert/spool/spool.h"
#include "convert/stage/step_list.h"
#include "schemas/base/map.h"
#include "schemas/base/pb.h"
#include "schemas/base/vec.h"
#include "schemas/proto/xspace.h"

struct scratch;

/* ---- names.c: the ids of the names of events and stats of the plane that is being written ---- */

enum tb_domain { TB_KEY, TB_NAME, TB_SCOPE, TB_DETAILS, TB_EVENT }; /* what a pair of words is */

struct tb_row {
	uint64_t a, b, domain; /* the key */
	uint64_t id;
	uint32_t at, len; /* of TB_EVENT: its stats that are the same for all, in `constants` */
};
struct tb_names {
	const struct trace *trace; /* borrowed */
	struct tb_row *rows;
	size_t count, cap;
	struct hash_index index; /* of rows */
	uint64_t events, stats;  /* of these given out */
	struct buf entries;      /* serialized fields of the plane: event and stat metadata */
	struct buf constants;
	enum status status; /* sticks, as a buf's does; the same is true of the two above */
	struct tb_row none; /* stands for a row that could not be added */
};

void tb_names_init(struct tb_names *n, const struct trace *trace);
void tb_names_release(struct tb_names *n);
void tb_names_clear(struct tb_names *n); /* begins the next plane */
enum status tb_names_status(const struct tb_names *n, struct error *err);

/* The id of a stat's name, one of the few that the writer itself uses. */
uint64_t tb_key(struct tb_names *n, const char *text);
/* Of a name of the trace: as a stat's name, or as a text that a stat refers to. */
uint64_t tb_name(struct tb_names *n, uint32_t name);

/* NULL: there is none yet.  A row stays until the next tb_add(). */
struct tb_row *tb_find(const struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b);
struct tb_row *tb_add(struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b,
		      uint64_t id);
/* The id of a new stat name of that text. */
uint64_t tb_new_stat(struct tb_names *n, const char *text, size_t len);
/* Of a new event name; `stats` are serialized fields of an event's metadata, or NULL. */
uint64_t tb_new_event(struct tb_names *n, const char *text, size_t len, const struct buf *stats);

/* One XStat as field `field` of what stands around it; `type` is the field of its value. */
void tb_stat(struct buf *b, uint32_t field, uint64_t key, uint32_t type, uint64_t bits);
void tb_stat_f64(struct buf *b, uint32_t field, uint64_t key, double v);
void tb_stat_text(struct buf *b, uint32_t field, uint64_t key, const char *text, size_t len);

/* ---- steps.c: the steps as intervals by the clock (analyze/DEFINITIONS.md 3) ----
 *
 * If the output has no marks, the first annotation of a step replaces its mark.  Numbers may
 * repeat, but XProf takes all events of one group_id as one step, so the group of the second step 7
 * is 17, 107, 1007 ..., by the least power of ten that no number reaches.
 */

/* Zeroed at first, but for `context`. */
struct tb_steps {
	struct step_list list;
	uint64_t *groups; /* by row of the list, after tb_steps_finish() */
	uint32_t last;    /* event.step of the last mark */
	bool is_stand_in; /* that is the first annotation of its step */
	bool any_event;
	uint64_t first_ns, last_ns;    /* of all events */
	size_t at;                     /* where the last search ended */
	const struct context *context; /* borrowed; recognises marks; NULL: marks
					* are the records of steps */
};

/* Events of host threads and GPUs, in time order, after the stage `context`. */
enum status tb_steps_put(struct tb_steps *s, const struct event *e, struct error *err);
/* Sets the ends of steps; a process without marks has one step, number 0. */
enum status tb_steps_finish(struct tb_steps *s, struct error *err);
/* The row of the step at this time, or list.count; cheap when times ascend. */
size_t tb_steps_find(struct tb_steps *s, uint64_t at_ns);
/* The group of the step of this number that began last by then. */
uint64_t tb_steps_group(const struct tb_steps *s, uint64_t number, uint64_t at_ns);

/* ---- space.c: the whole ---- */

/* Protobuf's readers hold lengths as int: a file has less. */
#define TB_SPACE_MOST ((uint64_t)INT32_MAX)

enum { TB_DEVICES = 64 }; /* whose memory is followed; others share the last */

struct tb_line {         /* also the spool's group: its place in the list */
	uint32_t track;  /* 0: of several tracks */
	uint32_t device; /* of its plane; NO_ID: the host's */
	uint8_t plane, kind;
};
enum tb_plane { TB_PLANE_GPU, TB_PLANE_HOST, TB_PLANE_CUSTOM };
enum tb_line_kind { TB_LINE_EVENTS, TB_LINE_MEMORY, TB_LINE_COUNTERS, TB_LINE_INPUT };

struct tb_gauge {
	uint64_t total, peak;
};

struct tb_span {
	uint64_t begin_ns, end_ns;
};
struct tb_input {                /* zeroed: empty */
	struct tb_span *loading; /* of the step thread, by begin */
	size_t count, cap;
	uint64_t until_ns[TB_DEVICES]; /* end of the work so far; 0: none yet */
	uint32_t groups[TB_DEVICES];   /* of the line; 0: none */
};

struct tb_pile { /* bytes of a plane's lines; all but the last in a scratch file */
	struct buf tail;
	struct scratch *scratch;
	const char *folder;
	uint64_t len, begin; /* of this plane; where it begins in the file */
};

struct tb_space {
	struct trace *trace; /* borrowed */
	struct out *out;
	const struct context *context; /* names of phases; NULL: none */
	uint32_t process;
	bool all_args;
	bool has_gpu;         /* there is a stream of one */
	bool is_xspace;       /* the trace is of XProf's own tracers */
	uint64_t origin_ns;   /* times are written relative to it */
	uint64_t limit_bytes; /* TB_SPACE_MOST, but in tests */
	const char *host;     /* as in the file's name; borrowed until close */
	struct spool *spool;
	struct buf lines; /* struct tb_line, by plane */
	uint32_t *groups; /* index: 2 * track, and + 1 for what is not work; group + 1, 0 none */
	uint32_t memory_group;
	struct tb_steps steps;
	struct tb_input input;
	struct tb_names names;
	struct tb_pile pile;
	struct buf event;                          /* one line's bytes being made */
	struct buf scratch;                        /* one text or message */
	struct tb_gauge gauges[2][TB_DEVICES + 1]; /* allocations; samples */
	uint32_t in_use_name;                      /* of tracks of samples */
	uint64_t bytes;                            /* of the file so far */
	uint64_t call_at; /* place among all that this call writes: its arrows' ids */
};

enum status tb_space_open(struct tb_space **out, const struct sink_request *req,
			  uint64_t limit_bytes, struct error *err);
void tb_space_free(struct tb_space *s); /* accepts NULL */
/* An event of the process; one that has no place in an XSpace is left out. */
enum status tb_space_put(struct tb_space *s, const struct event *e, struct error *err);
/* Writes the file to s->out, which the caller began. */
enum status tb_space_write(struct tb_space *s, const char *host, uint64_t origin_ns,
			   struct error *err);

/* ---- event.c: one event as a field of its line, appended to s->event ---- */

enum status tb_event_put(struct tb_space *s, const struct tb_line *line, const struct event *e,
			 struct error *err);
/* A row of the list of steps as an event of the line "Steps". */
enum status tb_step_put(struct tb_space *s, size_t row, struct error *err);
/* A number of the schema; 0: it has none of that key. */
uint64_t tb_const_u64(const struct tb_space *s, const struct event *e, const char *key);
/* The word of an argument value; false: the event has none of that key. */
bool tb_arg_bits(const struct tb_space *s, const struct event *e, const char *key, uint64_t *bits);
/* All attributes and arguments of an event, under their own names. */
void tb_put_own_stats(struct tb_space *s, const struct event *e);
/* tf_op of the phase and range that launched it. */
void tb_put_op(struct tb_space *s, const struct event *e);

/* ---- input.c: waits for the next batch ---- */

struct phase_interval;
/* What the step thread did, before the work that comes after it. */
enum status tb_input_put_interval(struct tb_input *in, const struct phase_interval *p,
				  struct error *err);
/* Work of a GPU, in time order: puts the waits before it into the spool. */
enum status tb_input_put_work(struct tb_space *s, const struct event *e, struct error *err);

/* ---- memory.c: stats of a memory event ---- */

void tb_put_memory(struct tb_space *s, const struct event *e);

/* ---- scalars.c: what the program counted ---- */

enum { TB_TURN = 64 }; /* counters of which each step may have many samples */
struct tb_scalar {
	uint64_t at_ns;
	double value;
	uint32_t track, step; /* step: as in the event; 0: none */
};
struct tb_scalars { /* zeroed: empty */
	struct tb_scalar *rows;
	size_t count, cap;
};

enum status tb_scalars_put(struct tb_scalars *s, struct trace *t, const struct event *e,
			   struct error *err);
/* The file of the run, where there is any; after tb_space_write(). */
enum status tb_scalars_write(const struct tb_scalars *s, const struct tb_space *space,
			     const struct sink_request *req, struct error *err);

/* ---- plane.c: what stands around the lines ---- */

/* `line` NULL: the line "Steps". */
void tb_put_line_head(struct tb_space *s, const struct tb_line *line, struct buf *out);
enum status tb_put_plane_head(struct tb_space *s, const struct tb_line *line, struct buf *out,
			      struct error *err);
/* Stats of the plane; they make names, so before the names are written. */
enum status tb_put_plane_stats(struct tb_space *s, const struct tb_line *line, struct buf *out,
			       struct error *err);
/* Programs, losses, times: what is of no plane above. */
enum status tb_put_environment(struct tb_space *s, struct buf *out, struct error *err);

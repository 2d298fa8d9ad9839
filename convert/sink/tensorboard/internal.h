/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - writes one process as an XSpace in the form that XProf reads best.
 *
 *	/device:GPU:N          a line for each stream, with work only; a line "Steps"; counters
 *	/host:CPU              a line for each thread, memory events, counters
 *	/device:CUSTOM:...     waits, annotations and marks on streams, because XProf counts
 *	                       everything on a GPU's plane as computation
 *	Task Environment       begin and end of the recording
 *
 * XProf gets the steps instead of guessing them: every plane has the stat group_id, so XProf
 * derives no groups, and a line "Steps" has the times of the marks.  An XSpace of JAX or TensorFlow
 * is written as it was read, with the compiler's programs and without our groups, so that XProf
 * derives the same as from the original.  Lengths precede contents, so a spool sorts events by
 * line, and the bytes of each plane are collected in a pile before they are written.
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

enum tb_domain { TB_KEY, TB_NAME, TB_SCOPE, TB_DETAILS, TB_EVENT }; /* meaning of a row's key */

struct tb_row {
	uint64_t a, b, domain; /* the key */
	uint64_t id;
	uint32_t at, len; /* for TB_EVENT: its constant stats, in `constants` */
};
struct tb_names {
	const struct trace *trace; /* borrowed */
	struct tb_row *rows;
	size_t count, cap;
	struct hash_index index; /* index of `rows` */
	uint64_t events, stats;  /* number of event and stat ids so far */
	struct buf entries;      /* serialized fields of the plane: event and stat metadata */
	struct buf constants;
	enum status status; /* keeps the first error, as the two buffers above do */
	struct tb_row none; /* stands for a row that could not be added */
};

void tb_names_init(struct tb_names *n, const struct trace *trace);
void tb_names_release(struct tb_names *n);
void tb_names_clear(struct tb_names *n); /* begins the next plane */
enum status tb_names_status(const struct tb_names *n, struct error *err);

/* Returns the id of a stat's name that the writer itself uses. */
uint64_t tb_key(struct tb_names *n, const char *text);
/* Returns the id of a name of the trace, as the name of a stat or as a text that a stat refers to.
 */
uint64_t tb_name(struct tb_names *n, uint32_t name);

/* Returns a row, or NULL if there is none yet.  It is valid until the next tb_add(). */
struct tb_row *tb_find(const struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b);
struct tb_row *tb_add(struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b,
		      uint64_t id);
/* Adds a stat's name and returns its id. */
uint64_t tb_new_stat(struct tb_names *n, const char *text, size_t len);
/* Adds an event's name and returns its id.  `stats` are serialized fields of its metadata, or NULL.
 */
uint64_t tb_new_event(struct tb_names *n, const char *text, size_t len, const struct buf *stats);

/* Appends an XStat as field `field` of the enclosing message; `type` is the field of its value. */
void tb_stat(struct buf *b, uint32_t field, uint64_t key, uint32_t type, uint64_t bits);
void tb_stat_f64(struct buf *b, uint32_t field, uint64_t key, double v);
void tb_stat_text(struct buf *b, uint32_t field, uint64_t key, const char *text, size_t len);

/* ---- steps.c: the steps as intervals by the clock (analyze/DEFINITIONS.md 3) ----
 *
 * If the output has no marks, the first annotation of a step replaces its mark.  Step numbers may
 * repeat, but XProf counts all events of one group_id as one step.  So the second step 7 has the
 * group 17, 107, 1007 ...: the number plus the least power of ten above all numbers.
 */

/* The owner zeroes it and sets `context`. */
struct tb_steps {
	struct step_list list;
	uint64_t *groups; /* group_id by row of the list, after tb_steps_finish() */
	uint32_t last;    /* event.step of the last mark */
	bool is_stand_in; /* the last mark is an annotation instead */
	bool any_event;
	uint64_t first_ns, last_ns;    /* first begin and last end of all events */
	size_t at;                     /* row at which the last search ended */
	const struct context *context; /* borrowed; NULL: only step records are marks */
};

/* Adds an event of a host thread or GPU, in time order, after the stage `context`. */
enum status tb_steps_put(struct tb_steps *s, const struct event *e, struct error *err);
/* Sets the ends and groups of steps. */
enum status tb_steps_finish(struct tb_steps *s, struct error *err);
/* Returns the row of the step at `at_ns`, or list.count.  It is fast for ascending times. */
size_t tb_steps_find(struct tb_steps *s, uint64_t at_ns);
/* Returns the group of the latest step with this number that began at or before `at_ns`. */
uint64_t tb_steps_group(const struct tb_steps *s, uint64_t number, uint64_t at_ns);

/* ---- space.c: the whole ---- */

/* Protobuf readers store lengths as int, so a file must have fewer bytes. */
#define TB_SPACE_MOST ((uint64_t)INT32_MAX)

enum { TB_DEVICES = 64 }; /* devices with a memory gauge of their own; others share the last */

struct tb_line {         /* its index is also the spool's group */
	uint32_t track;  /* 0: several tracks */
	uint32_t device; /* device of its plane; NO_ID: the host */
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
	struct tb_span *loading; /* loading of data on the step thread, ordered by begin */
	size_t count, cap;
	uint64_t until_ns[TB_DEVICES]; /* latest end of GPU work, by device; 0: none yet */
	uint32_t groups[TB_DEVICES];   /* index of the line + 1, by device; 0: none */
};

struct tb_pile { /* bytes of a plane's lines: earlier ones in a scratch file */
	struct buf tail;
	struct scratch *scratch;
	const char *folder;
	uint64_t len, begin; /* length of this plane; its offset in the file */
};

struct tb_space {
	struct trace *trace; /* borrowed */
	struct out *out;
	const struct context *context; /* for names of phases; NULL: none */
	uint32_t process;
	bool all_args;
	bool has_gpu;         /* there is a GPU stream */
	bool is_xspace;       /* XProf's own tracers recorded the trace */
	uint64_t origin_ns;   /* times are written relative to it */
	uint64_t limit_bytes; /* TB_SPACE_MOST, except in tests */
	const char *host;     /* host in the file's name; borrowed until close */
	struct spool *spool;
	struct buf lines; /* array of struct tb_line, ordered by plane */
	uint32_t *groups; /* group + 1 of a track's work [2 * track] and other events [+ 1]; 0: none
			   */
	uint32_t memory_group;
	struct tb_steps steps;
	struct tb_input input;
	struct tb_names names;
	struct tb_pile pile;
	struct buf event;                          /* bytes of the current line */
	struct buf scratch;                        /* a text or message */
	struct tb_gauge gauges[2][TB_DEVICES + 1]; /* allocations; samples */
	uint32_t in_use_name;                      /* name of counters that sample memory in use */
	uint64_t bytes;                            /* bytes of the file so far */
	uint64_t call_at; /* number of this XSpace among those of the run; makes ids of arrows
			   * unique */
};

enum status tb_space_open(struct tb_space **out, const struct sink_request *req,
			  uint64_t limit_bytes, struct error *err);
void tb_space_free(struct tb_space *s); /* accepts NULL */
/* Adds an event of the process.  An event that an XSpace cannot represent is left out. */
enum status tb_space_put(struct tb_space *s, const struct event *e, struct error *err);
/* Writes the file to s->out, which the caller has begun. */
enum status tb_space_write(struct tb_space *s, const char *host, uint64_t origin_ns,
			   struct error *err);

/* ---- event.c: appends one event as a field of its line to s->event ---- */

enum status tb_event_put(struct tb_space *s, const struct tb_line *line, const struct event *e,
			 struct error *err);
/* Appends a row of the list of steps as an event of the line "Steps". */
enum status tb_step_put(struct tb_space *s, size_t row, struct error *err);
/* Returns a constant argument of an event, or 0 if it has none with that key. */
uint64_t tb_const_u64(const struct tb_space *s, const struct event *e, const char *key);
/* Returns the bits of an argument value.  Returns false if the event has none with that key. */
bool tb_arg_bits(const struct tb_space *s, const struct event *e, const char *key, uint64_t *bits);
/* Appends all attributes and arguments of an event, under their own names. */
void tb_put_own_stats(struct tb_space *s, const struct event *e);
/* Appends tf_op, which names the phase and range that launched the event. */
void tb_put_op(struct tb_space *s, const struct event *e);

/* ---- input.c: waits for the next batch ---- */

struct phase_interval;
/* Adds a phase interval of the step thread.  It must come before the work that begins after it. */
enum status tb_input_put_interval(struct tb_input *in, const struct phase_interval *p,
				  struct error *err);
/* Adds GPU work, in time order.  Puts the waits before it into the spool. */
enum status tb_input_put_work(struct tb_space *s, const struct event *e, struct error *err);

/* ---- memory.c: stats of a memory event ---- */

void tb_put_memory(struct tb_space *s, const struct event *e);

/* ---- scalars.c: counters of the program ---- */

enum { TB_TURN = 64 }; /* most counters that may have several samples per step */
struct tb_scalar {
	uint64_t at_ns;
	double value;
	uint32_t track, step; /* step: event.step; 0: outside of steps */
};
struct tb_scalars { /* zeroed: empty */
	struct tb_scalar *rows;
	size_t count, cap;
};

enum status tb_scalars_put(struct tb_scalars *s, struct trace *t, const struct event *e,
			   struct error *err);
/* Writes the scalars of the process to a file of their own.  Call it after tb_space_write(). */
enum status tb_scalars_write(const struct tb_scalars *s, const struct tb_space *space,
			     const struct sink_request *req, struct error *err);

/* ---- plane.c: everything but the events of lines ---- */

/* Appends the fields of a line before its events.  `line` NULL: the line "Steps". */
void tb_put_line_head(struct tb_space *s, const struct tb_line *line, struct buf *out);
enum status tb_put_plane_head(struct tb_space *s, const struct tb_line *line, struct buf *out,
			      struct error *err);
/* Appends the stats of the plane.  They add names, so call it before the names are written. */
enum status tb_put_plane_stats(struct tb_space *s, const struct tb_line *line, struct buf *out,
			       struct error *err);
/* Appends data of the whole run: compiled programs, losses, times. */
enum status tb_put_environment(struct tb_space *s, struct buf *out, struct error *err);

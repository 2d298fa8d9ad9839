/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - one process as an XSpace, the way XProf reads it best.
 *
 *	/device:GPU:N          a line for each stream with work only, a line "Steps", counters
 *	/host:CPU              a line for each thread, memory events, counters
 *	/device:CUSTOM:...     waits, annotations and marks on streams: XProf takes all that stands
 *	                       on a GPU's plane for computation
 *	Task Environment       when it began and ended
 *
 * XProf is given the steps instead of letting it guess: group_id stands in every plane, so it
 * derives nothing, and a line "Steps" has the marks' own times.  Lengths stand before contents, so
 * events are sorted by line in a spool, and each plane is built in a pile before it is written.
 */
#ifndef CONVERT_SINK_TENSORBOARD_SPACE_H
#define CONVERT_SINK_TENSORBOARD_SPACE_H

#include "convert/sink/sink.h"
#include "convert/spool/spool.h"
#include "convert/sink/tensorboard/names.h"
#include "convert/sink/tensorboard/steps.h"
#include "schemas/base/pb.h"

struct scratch;

/* Protobuf's readers hold lengths as int: a file has less. */
#define TB_SPACE_MOST ((uint64_t)INT32_MAX)

enum { TB_DEVICES = 64 }; /* whose memory is followed; others share the last */

struct tb_line {         /* also the spool's group: its place in the list */
	uint32_t track;  /* 0: of several tracks */
	uint32_t device; /* of its plane; NO_ID: the host's */
	uint8_t plane, kind;
};
enum tb_plane { TB_PLANE_GPU, TB_PLANE_HOST, TB_PLANE_CUSTOM };
enum tb_line_kind { TB_LINE_EVENTS, TB_LINE_MEMORY, TB_LINE_COUNTERS };

struct tb_gauge {
	uint64_t total, peak;
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
	uint64_t origin_ns;   /* times are written relative to it */
	uint64_t limit_bytes; /* TB_SPACE_MOST, but in tests */
	const char *host;     /* as in the file's name; borrowed until close */
	struct spool *spool;
	struct buf lines; /* struct tb_line, by plane */
	uint32_t *groups; /* index: 2 * track, and + 1 for what is not work; group + 1, 0 none */
	uint32_t memory_group, counter_groups_at;
	struct tb_steps steps;
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

/* tensorboard/event.c: one event as a field of its line, appended to s->event. */
enum status tb_event_put(struct tb_space *s, const struct tb_line *line, const struct event *e,
			 struct error *err);
/* A row of the list of steps as an event of the line "Steps". */
enum status tb_step_put(struct tb_space *s, size_t row, struct error *err);

/* tensorboard/lookup.c: arguments of an event by name; NULL, 0 or false where it has none. */
const struct attr *tb_const_attr(const struct tb_space *s, const struct event *e, const char *key);
uint64_t tb_const_u64(const struct tb_space *s, const struct event *e, const char *key);
bool tb_arg_bits(const struct tb_space *s, const struct event *e, const char *key, uint64_t *bits);
/* tf_op of the phase and range that launched it. */
enum status tb_put_op(struct tb_space *s, const struct event *e, struct error *err);

/* tensorboard/memory.c: stats of a memory event. */
enum status tb_put_memory(struct tb_space *s, const struct event *e, struct error *err);

/* Declares the id of a stat's name, or returns why there is none; needs s and err. */
#define TB_KEY_OR_FAIL(var, text)                                                                  \
	uint64_t var = tb_key(&s->names, text, err);                                               \
	if (!(var))                                                                                \
	return err->status

/* tensorboard/plane.c: what stands around the lines. */
void tb_put_line_head(struct tb_space *s, const struct tb_line *line, struct buf *out);
void tb_put_steps_head(struct buf *out);
enum status tb_put_plane_head(struct tb_space *s, const struct tb_line *line, struct buf *out,
			      struct error *err);
/* Stats of the plane; they make names, so before the names are written. */
enum status tb_put_plane_stats(struct tb_space *s, const struct tb_line *line, struct buf *out,
			       struct error *err);
enum status tb_put_environment(struct tb_space *s, struct buf *out, struct error *err);

/* tensorboard/stats.c: one XStat as field `field` of what stands around it. */
void tb_stat_u64(struct buf *b, uint32_t field, uint64_t key, uint64_t v);
void tb_stat_i64(struct buf *b, uint32_t field, uint64_t key, int64_t v);
void tb_stat_f64(struct buf *b, uint32_t field, uint64_t key, double v);
void tb_stat_ref(struct buf *b, uint32_t field, uint64_t key, uint64_t ref);
void tb_stat_text(struct buf *b, uint32_t field, uint64_t key, const char *text, size_t len);

#endif

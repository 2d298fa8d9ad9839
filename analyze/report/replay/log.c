/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/replay/log.h"

#include "analyze/report/comm/comm.h"
#include "schemas/base/arena.h"
#include "schemas/base/map.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

const struct table_type table_replay_log = {
	.name = "replay_log",
	.under = &table_ranks,
	.nest = NEST_NEVER,
	.rows_most = LOG_WINDOWS,
	.columns = COLUMNS(RANK_COLUMNS,
			   { "first_ns", NULL, CELL_U64, KEY, NULL, "tells inputs apart" },
			   { "packed", NULL, CELL_TEXT, MAX, NULL, "packed points of a replay" },
			   { "steps", NULL, CELL_TEXT, MAX, NULL, "packed begins and lengths" }, ),
};

/* Flags of a shape: one number stands for all properties that points have in common. */
enum {
	SHAPE_WORK = 1,
	SHAPE_CORRELATED = 2, /* work with a known launch */
	SHAPE_DEVICE_WIDE = 4,
	SHAPE_STREAM_WAIT = 8,
	SHAPE_MARK = 16,
	SHAPE_STEP_THREAD = 32,
	KIND_SHORT = 1,
	KIND_BATCHED = 2,
	NAME_MOST = 1 << 12,
	KINDS_MOST = 1 << 16,
	SHAPES_MOST = 1 << 20,
};
struct shape {
	uint32_t track, kind, between, flags;
};
struct last {
	/* latest begin on the host; latest correlations of host and GPU events */
	uint64_t begin_ns, correlation[2];
};

struct log {
	struct buf packed;
	struct map shapes, kinds; /* index numbers in the log */
	struct last last;
	uint64_t first_ns;
	size_t shape_count, kind_count;
	size_t count, bytes; /* in the first log, which belongs to no process: over all others */
	bool is_full, is_open;
};

/* ---- writing ----------------------------------------------------------------------------- */

enum status logs_open(struct log **out, const struct accumulator *f, struct error *err)
{
	uint32_t count = trace_count(f->trace, TRACE_PROCESSES);

	*out = calloc((size_t)count + 1, sizeof(**out));
	if (!*out)
		return fail_memory(err);
	(*out)->count = count;
	for (uint32_t i = 1; i <= count; i++) {
		struct log *l = &(*out)[i];
		uint32_t rank = trace_get_process(f->trace, i)->rank;

		buf_init(&l->packed, (size_t)LOG_MOST + 2 * NAME_MOST);
		l->is_full = rank != NO_ID && rank >= LOG_RANKS;
	}
	return ST_OK;
}

void logs_close(struct log *all)
{
	for (size_t i = 1; all && i <= all->count; i++) {
		buf_release(&all[i].packed);
		map_release(&all[i].shapes);
		map_release(&all[i].kinds);
	}
	free(all);
}

static enum status kind_put(struct log *l, const struct points *points, uint32_t kind,
			    struct error *err)
{
	const struct edit_subject *s = &points_kinds(points)->all[kind];
	bool is_new;
	uint64_t *number = map_put(&l->kinds, kind, &is_new);
	size_t len = strlen(s->name) < NAME_MOST ? strlen(s->name) : NAME_MOST;

	if (!number)
		return fail_memory(err);
	if (is_new)
		*number = l->kind_count++;
	packed_put(&l->packed, *number);
	if (!is_new)
		return ST_OK;
	packed_put(&l->packed, s->is_work ? s->work_class : s->phase);
	packed_put(&l->packed, s->is_work ? s->work : s->activity);
	packed_put(&l->packed,
		   (s->is_short ? KIND_SHORT : 0u) | (s->is_batched ? KIND_BATCHED : 0u));
	packed_put(&l->packed, s->places);
	packed_put(&l->packed, len);
	buf_put(&l->packed, s->name, len);
	return ST_OK;
}

static enum status shape_put(struct log *l, const struct points *points, const struct shape *s,
			     struct error *err)
{
	bool is_new;
	uint64_t *number = map_put(&l->shapes,
				   (uint64_t)s->track << 44 ^ (uint64_t)s->between << 26 ^
					   (uint64_t)s->kind << 6 ^ s->flags,
				   &is_new);

	if (!number)
		return fail_memory(err);
	if (is_new)
		*number = l->shape_count++;
	packed_put(&l->packed, *number);
	if (!is_new)
		return ST_OK;
	packed_put(&l->packed, s->flags);
	packed_put(&l->packed, s->track);
	TRY(kind_put(l, points, s->kind, err));
	return s->flags & SHAPE_WORK ? ST_OK : kind_put(l, points, s->between, err);
}

static void delta_put(struct buf *out, uint64_t *last, uint64_t value)
{
	packed_put(out, zigzag((int64_t)(value - *last)));
	*last = value;
}

enum status logs_put(struct log *all, struct accumulator *f, const struct points *points,
		     const struct event *e, const struct point *p, struct error *err)
{
	struct log *l = &all[acc_process(f, e->track)];
	const struct replay_host *h = &p->host;
	const struct replay_work *w = &p->work;
	bool is_work = p->type == POINT_WORK;
	struct shape s = { .track = e->track };

	if (l->is_full || !l->packed.ceiling)
		return ST_OK;
	if (!l->is_open)
		l->first_ns = e->begin_ns;
	l->is_open = true;
	size_t before = l->packed.len;
	if (is_work) {
		s.kind = w->kind;
		s.flags = SHAPE_WORK | (w->launch_ns ? SHAPE_CORRELATED : 0u);
	} else {
		s.kind = h->kind;
		s.between = h->between;
		s.flags = (h->correlation ? SHAPE_CORRELATED : 0u) |
			  (h->is_device_wide ? SHAPE_DEVICE_WIDE : 0u) |
			  (h->is_stream_wait ? SHAPE_STREAM_WAIT : 0u) |
			  (h->is_mark ? SHAPE_MARK : 0u) |
			  (h->is_step_thread ? SHAPE_STEP_THREAD : 0u);
	}
	TRY(shape_put(l, points, &s, err));
	delta_put(&l->packed, &l->last.begin_ns, e->begin_ns);
	packed_put(&l->packed, e->end_ns - e->begin_ns);
	if (s.flags & SHAPE_CORRELATED)
		delta_put(&l->packed, &l->last.correlation[is_work], e->correlation);
	if (is_work && w->launch_ns)
		packed_put(&l->packed, zigzag((int64_t)(w->begin_ns - w->launch_ns)));
	all->bytes += l->packed.len - before;
	l->is_full = l->packed.len >= LOG_MOST || all->bytes >= LOG_INPUT_MOST ||
		     l->kind_count + 2 >= KINDS_MOST || l->shape_count + 1 >= SHAPES_MOST;
	return buf_status(&l->packed, err);
}

/* Writes the length of the points, the number of steps, and the steps. A step counts if it is
 * completely in the log. If the log is full, the last step may lack work, so it is left out. */
static void log_steps(const struct log *l, const struct step_list *steps, struct buf *out)
{
	uint64_t last = 0, count = 0;
	struct buf packed;

	buf_init(&packed, LOG_MOST);
	for (size_t i = 0; i < steps->count && count < LOG_STEPS_MOST; i++) {
		const struct step_row *s = &steps->rows[i];

		if (!s->is_counted || s->is_out)
			continue;
		if (l->is_full &&
		    (i + 1 == steps->count || steps->rows[i + 1].end_ns > l->last.begin_ns))
			break;
		delta_put(&packed, &last, s->begin_ns);
		packed_put(&packed, s->end_ns - s->begin_ns);
		count++;
	}
	packed_put(out, l->packed.len);
	packed_put(out, count);
	buf_put(out, packed.data, packed.len);
	buf_release(&packed);
}

enum status logs_end(struct log *all, struct accumulator *f, struct error *err)
{
	for (uint32_t i = 1; i <= all->count; i++) {
		struct log *l = &all[i];
		union value keys[LOG_KEYS], *row;
		struct buf steps;

		if (!l->is_open)
			continue;
		keys[LOG_FIRST].u64 = l->first_ns;
		TRY(acc_row(f, "replay_log", i, keys, &row, err));
		TRY(acc_text(f, "replay_log", &row[LOG_PACKED], buf_text(&l->packed), err));
		buf_init(&steps, LOG_MOST);
		log_steps(l, &f->steps[i], &steps);
		enum status status =
			acc_text(f, "replay_log", &row[LOG_STEPS], buf_text(&steps), err);
		buf_release(&steps);
		TRY(status);
	}
	return ST_OK;
}

/* ---- reading ----------------------------------------------------------------------------- */

struct log_reader {
	const char *at; /* NULL: damaged */
	struct shape *shapes;
	struct edit_kinds kinds;
	size_t shape_count, shape_cap;
	struct last last;
	struct arena names;
};

enum status log_open(struct log_reader **out, const char *packed, struct error *err)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return fail_memory(err);
	(*out)->at = packed;
	arena_init(&(*out)->names, SIZE_MAX);
	return ST_OK;
}

void log_close(struct log_reader *r)
{
	if (!r)
		return;
	arena_release(&r->names);
	free(r->shapes);
	free(r->kinds.all);
	free(r);
}

bool log_is_damaged(const struct log_reader *r)
{
	return !r->at;
}

/* Returns the next number; 0 if the log is damaged. */
static uint64_t number_take(struct log_reader *r)
{
	uint64_t value = 0;

	if (r->at && !packed_next(&r->at, &value))
		r->at = NULL;
	return value;
}

const struct edit_kinds *log_kinds(const struct log_reader *r)
{
	return &r->kinds;
}

static enum status kind_take(struct log_reader *r, bool is_work, bool is_step_thread, uint32_t *out,
			     struct error *err)
{
	uint64_t number = number_take(r);
	struct edit_subject s = { .is_work = is_work, .is_step_thread = is_step_thread };

	*out = (uint32_t)number;
	if (r->at && number < r->kinds.count)
		return ST_OK;
	if (!r->at || number > r->kinds.count || number >= KINDS_MOST)
		goto damaged;
	uint64_t of = number_take(r), does = number_take(r), flags = number_take(r);
	s.places = (uint32_t)number_take(r);
	uint64_t len = number_take(r);
	if (!r->at || len > NAME_MOST || strnlen(r->at, len) < len || of >= 256 ||
	    (is_work ? of > CLASS_COPY : does >= REPLAY_ACTIVITIES))
		goto damaged;
	s.work_class = is_work ? (enum gpu_class)of : CLASS_COMPUTE;
	s.work = is_work && does < WORK_COUNT ? (enum work)does : WORK_OTHER;
	s.phase = is_work ? 0 : (unsigned)of;
	s.activity = is_work ? 0 : (unsigned)does;
	s.is_short = flags & KIND_SHORT;
	s.is_batched = flags & KIND_BATCHED;
	s.name = arena_text(&r->names, r->at, len);
	r->at += len;
	if (!s.name)
		return fail_memory(err);
	TRY(vec_reserve(&r->kinds.all, &r->kinds.cap, r->kinds.count + 1, err));
	r->kinds.all[r->kinds.count++] = s;
	return ST_OK;
damaged:
	r->at = NULL;
	return ST_OK;
}

static enum status shape_take(struct log_reader *r, struct shape *out, struct error *err)
{
	uint64_t number = number_take(r);
	struct shape s = { .flags = 0 };

	if (r->at && number < r->shape_count) {
		*out = r->shapes[number];
		return ST_OK;
	}
	if (number > r->shape_count || number >= SHAPES_MOST)
		r->at = NULL;
	if (!r->at)
		return ST_OK;
	s.flags = (uint32_t)number_take(r);
	s.track = (uint32_t)number_take(r);
	bool is_work = s.flags & SHAPE_WORK, is_step = s.flags & SHAPE_STEP_THREAD;
	TRY(kind_take(r, is_work, is_step, &s.kind, err));
	if (!is_work && r->at)
		TRY(kind_take(r, false, is_step, &s.between, err));
	if (!r->at)
		return ST_OK;
	*out = s;
	TRY(vec_reserve(&r->shapes, &r->shape_cap, r->shape_count + 1, err));
	r->shapes[r->shape_count++] = s;
	return ST_OK;
}

static uint64_t delta_take(struct log_reader *r, uint64_t *last)
{
	*last += (uint64_t)unzigzag(number_take(r));
	return *last;
}

enum status log_take(struct log_reader *r, struct point *out, struct error *err)
{
	struct shape s = { .flags = 0 };
	uint64_t begin_ns, ns, correlation = 0, launch_ns = 0;

	out->type = POINT_NONE;
	if (!r->at || !*r->at)
		return ST_OK;
	TRY(shape_take(r, &s, err));
	if (!r->at)
		return ST_OK;
	bool is_work = s.flags & SHAPE_WORK;
	uint64_t before_ns = r->last.begin_ns;
	begin_ns = delta_take(r, &r->last.begin_ns);
	ns = number_take(r);
	if (s.flags & SHAPE_CORRELATED)
		correlation = delta_take(r, &r->last.correlation[is_work]);
	if (is_work && s.flags & SHAPE_CORRELATED)
		launch_ns = begin_ns - (uint64_t)unzigzag(number_take(r));
	/* Bounds prevent overflow of sums of damaged numbers. */
	if (!r->at || begin_ns < before_ns || begin_ns > INT64_MAX / 2 || ns > INT64_MAX / 4) {
		r->at = NULL;
		return ST_OK;
	}
	out->type = is_work ? POINT_WORK : POINT_HOST;
	const struct edit_subject *kind = &r->kinds.all[s.kind];
	if (is_work) {
		out->work = (struct replay_work){
			.begin_ns = begin_ns,
			.end_ns = begin_ns + ns,
			.correlation = correlation,
			.launch_ns = launch_ns,
			.stream = s.track,
			.kind = s.kind,
			.work_class = (uint8_t)kind->work_class,
		};
		return ST_OK;
	}
	out->host = (struct replay_host){
		.begin_ns = begin_ns,
		.end_ns = begin_ns + ns,
		.correlation = correlation,
		.thread = s.track,
		.kind = s.kind,
		.between = s.between,
		.activity = (uint8_t)kind->activity,
		.is_device_wide = s.flags & SHAPE_DEVICE_WIDE,
		.is_stream_wait = s.flags & SHAPE_STREAM_WAIT,
		.is_mark = s.flags & SHAPE_MARK,
		.is_step_thread = s.flags & SHAPE_STEP_THREAD,
	};
	return ST_OK;
}

enum status log_steps_take(const char *packed, const char *steps, struct replay_step **out,
			   size_t *count, struct error *err)
{
	uint64_t len, left, begin_ns = 0, delta, ns;

	*out = NULL;
	*count = 0;
	if (!packed || !steps || !packed_next(&steps, &len) || len != strlen(packed) ||
	    !packed_next(&steps, &left) || left > LOG_STEPS_MOST)
		return ST_OK;
	*out = calloc((size_t)left + 1, sizeof(**out));
	if (!*out)
		return fail_memory(err);
	for (; left; left--) {
		bool is_whole = packed_next(&steps, &delta) && packed_next(&steps, &ns);

		begin_ns += is_whole ? (uint64_t)unzigzag(delta) : 0;
		if (!is_whole || begin_ns > INT64_MAX / 2 || ns > INT64_MAX / 4 ||
		    (*count && begin_ns < (*out)[*count - 1].begin_ns)) {
			*count = 0;
			return ST_OK;
		}
		(*out)[(*count)++] =
			(struct replay_step){ .begin_ns = begin_ns, .end_ns = begin_ns + ns };
	}
	*count = *steps ? 0 : *count;
	return ST_OK;
}

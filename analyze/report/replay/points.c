/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/replay/points.h"

#include "analyze/findings/launched.h"
#include "analyze/report/shared.h"
#include "schemas/base/arena.h"
#include "schemas/base/buf.h"
#include "schemas/base/map.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum {
	CALL_ACTIVITY = 0x0f,
	CALL_DEVICE_WIDE = 0x10,
	CALL_STREAM_WAIT = 0x20,
	SHORT_NS = 10000,
	SHORT_COMM_NS = 5 * SHORT_NS,
	PATH_TEXT = 1 << 14, /* longer paths match only by their names */
	PLACE_LEVELS = 256,  /* the same for paths with more levels */
};

struct points {
	struct launched *launched;
	const char *const *globs;
	size_t glob_count;
	uint8_t *calls;   /* cache by name: what the call does + 1; 0: none */
	uint8_t *works;   /* cache by name: enum work + 1 */
	uint8_t *batches; /* cache by name of an owner: 1: other, 2: aten::bmm */
	uint32_t *places; /* cache by path: matching globs + 1 */
	size_t call_cap, place_cap;
	uint32_t name_count; /* size of `works` and `batches` */
	struct edit_kinds kinds;
	struct map by_key; /* index of a kind */
	struct arena texts;
};

enum status points_open(struct points **out, const struct accumulator *f, const char *const *globs,
			size_t glob_count, struct error *err)
{
	struct points *p = *out = calloc(1, sizeof(*p));

	if (!p)
		return fail_memory(err);
	arena_init(&p->texts, SIZE_MAX);
	p->globs = globs;
	p->glob_count = glob_count;
	p->name_count = trace_count(f->trace, TRACE_NAMES);
	p->works = calloc((size_t)p->name_count + 1, 1);
	p->batches = calloc((size_t)p->name_count + 1, 1);
	if (!p->works || !p->batches)
		return fail_memory(err);
	return launched_open(&p->launched, f->trace, err);
}

void points_close(struct points *p)
{
	if (!p)
		return;
	launched_close(p->launched);
	map_release(&p->by_key);
	arena_release(&p->texts);
	free(p->calls);
	free(p->works);
	free(p->batches);
	free(p->places);
	free(p->kinds.all);
	free(p);
}

const struct edit_kinds *points_kinds(const struct points *p)
{
	return &p->kinds;
}

bool points_offload(const struct points *p, uint32_t process)
{
	return launched_offloads(p->launched, process);
}

/* ---- what kernels do --------------------------------------------------------------------- */

static enum work work_by_name(struct points *p, struct accumulator *f, const struct event *e)
{
	uint8_t *known = e->name <= p->name_count ? &p->works[e->name] : NULL;

	if (e->kind == KIND_GRAPH)
		return WORK_GRAPH;
	if (known && *known)
		return (enum work)(*known - 1);
	enum work work = sweep_communicates(f->sweep, e->name)
				 ? WORK_COMM
				 : work_of(trace_text(f->trace, e->name, NULL));
	if (known)
		*known = (uint8_t)(work + 1);
	return work;
}

/* Returns whether a matrix product was launched by aten::bmm, as in attention. */
static bool is_batch(struct points *p, struct accumulator *f, const struct event *e, enum work work)
{
	uint32_t owner = trace_owner(f->trace, e->path);

	if (work < WORK_GEMM || work > WORK_GEMM_FP32 || !owner || owner > p->name_count)
		return false;
	if (!p->batches[owner])
		p->batches[owner] = strstr(trace_text(f->trace, owner, NULL), "bmm") ? 2 : 1;
	return p->batches[owner] == 2;
}

enum work points_work(struct points *p, struct accumulator *f, const struct event *e,
		      bool *is_batched)
{
	enum work work = work_by_name(p, f, e);

	if (work == WORK_GEMM && launched_is_odd(p->launched, batch_launch(f->batch, e)))
		work = WORK_GEMM_UNALIGNED;
	*is_batched = is_batch(p, f, e, work);
	return work;
}

/* ---- places ------------------------------------------------------------------------------ */

/* Limits the cost of deeply nested ranges. */
static bool is_deep(const struct trace *t, uint32_t path)
{
	size_t levels = 0;

	while (levels < PLACE_LEVELS && (path = trace_get_path(t, path)->parent))
		levels++;
	return levels == PLACE_LEVELS;
}

static void path_put(const struct trace *t, uint32_t path, struct buf *out)
{
	const struct path_node *n = trace_get_path(t, path);

	if (!n->parent)
		return;
	path_put(t, n->parent, out);
	if (n->class >= PATH_IDLE)
		return;
	if (out->len)
		buf_put_byte(out, '/');
	buf_put_text(out, trace_text(t, n->name, NULL));
}

/* Returns in *out the globs that match a path or a range around it. */
static enum status places_of(struct points *p, const struct trace *t, uint32_t path, uint32_t *out,
			     struct error *err)
{
	struct buf text;

	*out = 0;
	if (!p->glob_count || !path)
		return ST_OK;
	TRY(vec_reserve(&p->places, &p->place_cap, (size_t)path + 1, err));
	if (p->places[path]) {
		*out = p->places[path] - 1;
		return ST_OK;
	}
	const struct path_node *n = trace_get_path(t, path);
	TRY(places_of(p, t, n->parent, out, err));
	buf_init(&text, PATH_TEXT);
	if (!is_deep(t, path))
		path_put(t, path, &text);
	for (size_t i = 0; n->parent && n->class < PATH_IDLE && i < p->glob_count; i++)
		if (edit_is_place(p->globs[i], trace_text(t, n->name, NULL), buf_text(&text)))
			*out |= 1u << i;
	buf_release(&text);
	p->places[path] = *out + 1;
	return ST_OK;
}

/* ---- kinds ------------------------------------------------------------------------------- */

/* Finds or adds a kind; the caller fills a new one. */
static enum status kind_of(struct points *p, uint64_t key, bool *is_new, uint32_t *out,
			   struct error *err)
{
	uint64_t *number = map_put(&p->by_key, key, is_new);

	if (!number)
		return fail_memory(err);
	*out = (uint32_t)*number;
	if (!*is_new)
		return ST_OK;
	*number = *out = (uint32_t)p->kinds.count;
	TRY(vec_reserve(&p->kinds.all, &p->kinds.cap, p->kinds.count + 1, err));
	p->kinds.all[p->kinds.count++] = (struct edit_subject){ .name = "" };
	return ST_OK;
}

static enum status host_kind(struct points *p, const struct accumulator *f, uint8_t phase,
			     uint8_t activity, bool is_step_thread, uint32_t places, uint32_t *out,
			     struct error *err)
{
	uint64_t key = ((uint64_t)places << 32 | (uint64_t)phase << 16 | (uint64_t)activity << 8 |
			is_step_thread) *
		       2;
	bool is_new;

	TRY(kind_of(p, key, &is_new, out, err));
	if (is_new)
		p->kinds.all[*out] = (struct edit_subject){
			.name = context_phase(f->context, phase).name,
			.phase = phase,
			.activity = activity,
			.is_step_thread = is_step_thread,
			.places = places,
		};
	return ST_OK;
}

static enum status work_kind(struct points *p, struct accumulator *f, const struct event *e,
			     struct replay_work *out, struct error *err)
{
	bool is_copy = e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET;
	struct edit_subject s = { .is_work = true,
				  .work_class = (enum gpu_class)out->work_class,
				  .is_short = e->end_ns - e->begin_ns <
					      (out->work_class == CLASS_COMM ? SHORT_COMM_NS
									     : SHORT_NS) };
	char text[COPY_TEXT];
	bool is_new;

	if (!is_copy)
		s.work = points_work(p, f, e, &s.is_batched);
	uint32_t part = is_copy ? e->subkind % 16 : s.work;
	TRY(places_of(p, f->trace, e->path, &s.places, err));
	uint64_t key = (uint64_t)e->name << 28 | (uint64_t)s.places << 12 | (uint64_t)part << 8 |
		       (uint64_t)out->work_class << 4 | (uint64_t)is_copy << 3 |
		       (uint64_t)s.is_short << 2 | (uint64_t)s.is_batched << 1 | 1;
	TRY(kind_of(p, key, &is_new, &out->kind, err));
	if (!is_new)
		return ST_OK;
	s.name = trace_text(f->trace, e->name, NULL);
	if (is_copy) {
		copy_text(f, e, text);
		s.name = arena_text(&p->texts, text, strlen(text));
		if (!s.name)
			return fail_memory(err);
	}
	p->kinds.all[out->kind] = s;
	return ST_OK;
}

/* ---- points ------------------------------------------------------------------------------ */

static enum status call_of(struct points *p, struct accumulator *f, uint32_t name, uint8_t *out,
			   struct error *err)
{
	static const uint8_t activities[] = {
		[CALL_OTHER] = REPLAY_OTHER,        [CALL_KERNELS] = REPLAY_LAUNCH,
		[CALL_SYNC] = REPLAY_SYNC,          [CALL_COPY] = REPLAY_COPY,
		[CALL_BLOCKING_COPY] = REPLAY_COPY, [CALL_ALLOCATOR] = REPLAY_ALLOCATOR,
		[CALL_COMPILE] = REPLAY_COMPILE,
	};

	TRY(vec_reserve(&p->calls, &p->call_cap, (size_t)name + 1, err));
	if (!p->calls[name]) {
		const char *text = trace_text(f->trace, name, NULL);
		unsigned call = activities[causes_call_class(f->causes, name)];

		if (strstr(text, "DeviceSynchronize") || strstr(text, "CtxSynchronize"))
			call |= CALL_DEVICE_WIDE;
		if (strstr(text, "StreamWaitEvent"))
			call |= CALL_STREAM_WAIT;
		p->calls[name] = (uint8_t)(call + 1);
	}
	*out = (uint8_t)(p->calls[name] - 1);
	return ST_OK;
}

static bool is_host(const struct event *e)
{
	if (e->kind == KIND_RANGE)
		return e->subkind != RANGE_GPU_ANNOTATION && e->subkind != RANGE_PROFILER;
	return e->kind == KIND_API || e->kind == KIND_JIT || e->kind == KIND_STEP;
}

static enum status take_host(struct points *p, struct accumulator *f, const struct event *e,
			     struct replay_host *out, struct error *err)
{
	uint32_t process = acc_process(f, e->track), places;
	uint8_t call = REPLAY_OTHER;

	if (e->kind == KIND_API)
		TRY(call_of(p, f, e->name, &call, err));
	else if (e->kind == KIND_JIT)
		call = REPLAY_COMPILE;
	else if (e->kind == KIND_RANGE && e->subkind == RANGE_GC)
		call = REPLAY_GC;
	bool is_step_thread = e->track == context_step_thread(f->context, process);
	*out = (struct replay_host){
		.begin_ns = e->begin_ns,
		.end_ns = e->end_ns,
		.correlation = e->kind == KIND_API ? e->correlation : 0,
		.thread = e->track,
		.activity = call & CALL_ACTIVITY,
		.is_device_wide = call & CALL_DEVICE_WIDE,
		.is_stream_wait = call & CALL_STREAM_WAIT,
		.is_mark = is_step_thread && context_is_mark(f->context, e),
		.is_step_thread = is_step_thread,
	};
	uint32_t path = e->path;
	if (p->glob_count && e->kind == KIND_RANGE && !out->is_mark)
		/* include the range itself */
		path = trace_path(f->trace, path, e->name, e->subkind);
	TRY(places_of(p, f->trace, path, &places, err));
	TRY(host_kind(p, f, e->phase, out->activity, is_step_thread, places, &out->kind, err));
	return host_kind(p, f, e->phase, REPLAY_OTHER, is_step_thread, 0, &out->between, err);
}

enum status points_take(struct points *p, struct accumulator *f, const struct event *e,
			struct point *out, struct error *err)
{
	out->type = POINT_NONE;
	if (event_is_gpu_work(e)) {
		const struct launch *l = batch_launch(f->batch, e);

		if (e->kind == KIND_MEMCPY)
			launched_copy(p->launched, acc_process(f, e->track), e, l);
		out->type = POINT_WORK;
		out->work = (struct replay_work){
			.begin_ns = e->begin_ns,
			.end_ns = e->end_ns,
			.correlation = e->correlation,
			.launch_ns = l ? l->begin_ns : 0,
			.stream = e->track,
			.work_class = (uint8_t)sweep_class(f->sweep, e),
		};
		return work_kind(p, f, e, &out->work, err);
	}
	if (e->kind == KIND_RANGE)
		TRY(launched_range(p->launched, e, err));
	if (!is_host(e))
		return ST_OK;
	out->type = POINT_HOST;
	return take_host(p, f, e, &out->host, err);
}

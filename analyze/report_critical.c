/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path (DEFINITIONS.md 8) of the median and of the slowest step: what, if it were
 * shorter, would have made the step shorter.  All work and waits of an input are kept, up to a
 * ceiling; beyond, the paths are refused in words.
 */
#include "analyze/report_critical.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CRITICAL_WHICH = RANK_KEYS, CRITICAL_STEP, CRITICAL_KIND, CRITICAL_NAME, CRITICAL_NS,
	CRITICAL_COUNT, CRITICAL_PCT };
static const struct column critical_columns[] = {
	RANK_COLUMNS,
	{ "which", "which", CELL_TEXT, KEY, NULL, "median or slowest; refused: too many events" },
	{ "step", "step", CELL_U64, KEY, NULL, "its number" },
	{ "kind", "kind", CELL_TEXT, KEY, NULL,
	  "host: S in a phase; launch: from a call to its work; dispatch: behind other work; "
	  "stream_wait: behind another stream; compute, comm, copy: GPU work; unknown: no launch" },
	{ "name", "name", CELL_TEXT, KEY, NULL, "the phase, the call or the GPU work" },
	{ "ns", "on the path", CELL_U64, SUM, NULL, "all rows of a step are its wall time" },
	{ "count", "times", CELL_U64, SUM, NULL, "pieces of the path" },
	{ "pct", "%", CELL_F64, DERIVED, "step", "share" },
	{ .name = NULL },
};
static const struct table_type table_critical = {
	.name = "critical", .member = "critical", .under = &table_ranks, .by = "ns",
	.columns = critical_columns,
};

/* Of each sort; together some 200 MB at most. */
enum { RECORDS_FIRST = 1 << 10, RECORDS_MAX = 1 << 20 };

struct critical {
	struct critical_graph graph;
	uint32_t *last; /* by track */
	bool is_refused;
};

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory for critical paths");
}

/* Room for one more; false in `out` when the ceiling is reached. */
static enum status room(struct critical *s, void **items, size_t count, size_t *cap, size_t size,
			struct error *err)
{
	size_t wider = *cap ? *cap * 2 : RECORDS_FIRST;
	void *moved;

	if (count < *cap)
		return ST_OK;
	if (wider > RECORDS_MAX) {
		s->is_refused = true;
		return ST_OK;
	}
	moved = realloc(*items, wider * size);
	if (!moved)
		return no_memory(err);
	*items = moved;
	*cap = wider;
	return ST_OK;
}
#define ROOM(s, items, count, cap, err)                                                            \
	room(s, (void **)&(s)->graph.items, (s)->graph.count, &(s)->graph.cap,                     \
	     sizeof(*(s)->graph.items), err)

static enum path_kind kind_of(struct fold *f, const struct event *e)
{
	if (e->kind != KIND_KERNEL && e->kind != KIND_GRAPH)
		return PATH_COPY;
	return e->kind == KIND_KERNEL && sweep_communicates(f->sweep, e->name) ? PATH_COMM
									      : PATH_COMPUTE;
}

static enum status put_work(struct fold *f, const struct event *e, struct error *err)
{
	struct critical *s = f->state;
	const struct launch *l = f->link ? link_launch(f->link, e) : NULL;
	const struct track *t = trace_get_track(f->trace, e->track);
	struct work_node *to;

	TRY(ROOM(s, work, work_count, work_cap, err));
	if (s->is_refused)
		return ST_OK;
	to = &s->graph.work[s->graph.work_count];
	*to = (struct work_node){
		.begin_ns = e->begin_ns, .end_ns = e->end_ns, .correlation = e->correlation,
		.stream = t->id, .arrival = s->graph.work_count, .track = e->track,
		.gpu = sweep_gpu_of(f->sweep, e->track), .process = t->process, .name = e->name,
		.class = (uint8_t)kind_of(f, e), .has_launch = l != NULL,
	};
	s->graph.work_count++;
	if (!l)
		return ST_OK;
	to->launch_begin_ns = l->begin_ns;
	to->launch_track = l->track;
	to->launch_name = l->name;
	return ST_OK;
}

static enum status put_call(struct fold *f, const struct event *e, struct error *err)
{
	struct critical *s = f->state;
	enum call_class class = cause_call_class(trace_text(f->trace, e->name, NULL));
	bool is_copy = class == CALL_COPY || class == CALL_BLOCKING_COPY;

	if (class != CALL_SYNC && !is_copy)
		return ST_OK;
	TRY(ROOM(s, waits, wait_count, wait_cap, err));
	if (s->is_refused)
		return ST_OK;
	s->graph.waits[s->graph.wait_count++] = (struct wait_node){
		.begin_ns = e->begin_ns, .end_ns = e->end_ns, .correlation = e->correlation,
		.track = e->track, .process = trace_get_track(f->trace, e->track)->process,
		.is_copy = is_copy,
	};
	return ST_OK;
}

static enum status put_event(struct fold *f, const struct event *e, struct error *err)
{
	struct critical *s = f->state;

	if (event_is_gpu_work(e))
		return put_work(f, e, err);
	if (e->kind == KIND_API)
		return put_call(f, e, err);
	if (e->kind != KIND_SYNC || e->subkind != SYNC_STREAM_WAIT)
		return ST_OK;
	TRY(ROOM(s, stream_waits, stream_count, stream_cap, err));
	if (!s->is_refused)
		s->graph.stream_waits[s->graph.stream_count++] =
			(struct stream_wait){ e->begin_ns, e->track };
	return ST_OK;
}

static enum status critical_put(struct fold *f, const struct warm *w, struct error *err)
{
	struct critical *s = f->state;
	size_t i;

	for (i = 0; i < w->in->count && !s->is_refused; i++)
		TRY(put_event(f, &w->in->events[i], err));
	for (i = 0; i < w->in->stretch_count && !s->is_refused; i++) {
		TRY(ROOM(s, stretches, stretch_count, stretch_cap, err));
		if (!s->is_refused)
			s->graph.stretches[s->graph.stretch_count++] = w->in->stretches[i];
	}
	return ST_OK;
}

static void critical_release(struct fold *f)
{
	struct critical *s = f->state;

	free(s->graph.work);
	free(s->graph.by_end);
	free(s->graph.waits);
	free(s->graph.stream_waits);
	free(s->graph.stretches);
	free(s->last);
}

/* ---- end -------------------------------------------------------------------------------- */

struct path {
	struct fold *f;
	uint32_t process;
	const char *which;
	uint64_t step;
};

static enum status put_piece(void *self, const struct path_piece *p, struct error *err)
{
	static const char *const words[PATH_KINDS] = {
		[PATH_COMPUTE] = "compute", [PATH_COMM] = "comm", [PATH_COPY] = "copy",
		[PATH_LAUNCH] = "launch", [PATH_DISPATCH] = "dispatch",
		[PATH_STREAM_WAIT] = "stream_wait", [PATH_UNKNOWN] = "unknown",
		[PATH_HOST] = "host",
	};
	struct path *path = self;
	union value keys[CRITICAL_NAME + 1], *row;

	keys[CRITICAL_WHICH].text = path->which;
	keys[CRITICAL_STEP].u64 = path->step;
	keys[CRITICAL_KIND].text = words[p->kind];
	keys[CRITICAL_NAME].text = p->kind == PATH_HOST ? step_phase(path->f->step, p->id).name
							: trace_text(path->f->trace, p->id, NULL);
	TRY(fold_row(path->f, "critical", path->process, keys, &row, err));
	row[CRITICAL_NS].u64 += p->end_ns - p->begin_ns;
	row[CRITICAL_COUNT].u64++;
	return ST_OK;
}

static int compare_walls(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return (a > b) - (a < b);
}

static uint64_t wall_of(const struct step_row *row)
{
	return row->end_ns - row->begin_ns;
}

/* The counted step nearest to the median, of two the later; the slowest, of two the earlier. */
static enum status choose(const struct step_list *l, const struct step_row *out[2],
			  struct error *err)
{
	uint64_t *walls = calloc(l->count + 1, sizeof(*walls));
	size_t count = 0, i;
	double middle, best = 0;

	out[0] = out[1] = NULL;
	if (!walls)
		return no_memory(err);
	for (i = 0; i < l->count; i++)
		if (l->rows[i].is_counted && !l->rows[i].is_out)
			walls[count++] = wall_of(&l->rows[i]);
	qsort(walls, count, sizeof(*walls), compare_walls);
	middle = count ? ((double)walls[(count - 1) / 2] + (double)walls[count / 2]) / 2 : 0;
	free(walls);
	for (i = 0; i < l->count; i++) {
		const struct step_row *row = &l->rows[i];
		double apart = (double)wall_of(row) - middle;

		if (!row->is_counted || row->is_out)
			continue;
		apart = apart < 0 ? -apart : apart;
		if (!out[0] || apart <= best) {
			out[0] = row;
			best = apart;
		}
		if (!out[1] || wall_of(row) > wall_of(out[1]))
			out[1] = row;
	}
	return ST_OK;
}

static enum status end_process(struct fold *f, uint32_t process, struct error *err)
{
	static const char *const which[] = { "median", "slowest" };
	struct critical *s = f->state;
	const struct step_row *steps[2];
	struct path path = { .f = f, .process = process };
	size_t i;

	TRY(choose(&f->steps[process], steps, err));
	for (i = 0; i < 2; i++) {
		if (!steps[i])
			continue;
		path.which = which[i];
		path.step = steps[i]->number;
		TRY(critical_walk(&s->graph, process, steps[i]->begin_ns, steps[i]->end_ns,
				  put_piece, &path, err));
	}
	return ST_OK;
}

static enum status refuse(struct fold *f, uint32_t process, struct error *err)
{
	union value keys[CRITICAL_NAME + 1], *row;
	char text[128];

	snprintf(text, sizeof(text), "over %d GPU events, calls that wait or stretches: take fewer "
		 "with --steps", RECORDS_MAX);
	keys[CRITICAL_WHICH].text = "refused";
	keys[CRITICAL_STEP].u64 = NO_U64;
	keys[CRITICAL_KIND].text = "unknown";
	keys[CRITICAL_NAME].text = text;
	return fold_row(f, "critical", process, keys, &row, err);
}

static enum status critical_end(struct fold *f, struct error *err)
{
	struct critical *s = f->state;
	size_t tracks = trace_count(f->trace, TRACE_TRACKS) + 1;
	uint32_t processes = trace_count(f->trace, TRACE_PROCESSES), i;

	s->graph.by_end = calloc(s->graph.work_count + 1, sizeof(*s->graph.by_end));
	s->last = calloc(tracks, sizeof(*s->last));
	if (!s->graph.by_end || !s->last)
		return no_memory(err);
	if (!s->is_refused)
		critical_sort(&s->graph, s->last, tracks);
	for (i = 1; i <= processes; i++) {
		if (!sweep_process(f->sweep, i).has_gpu || !fold_wants(f, i))
			continue;
		TRY(s->is_refused ? refuse(f, i, err) : end_process(f, i, err));
	}
	return ST_OK;
}

static enum status critical_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "critical");
	size_t count = table_count(t), first, last, i;

	(void)err;
	for (first = 0; first < count; first = last) {
		uint64_t whole = 0;

		for (last = first; last < count; last++) {
			if (memcmp(table_at(t, last), table_at(t, first),
				   CRITICAL_KIND * sizeof(union value)))
				break;
			whole += table_at(t, last)[CRITICAL_NS].u64;
		}
		for (i = first; i < last; i++)
			table_at(t, i)[CRITICAL_PCT].f64 =
				percent_of(table_at(t, i)[CRITICAL_NS].u64, whole);
	}
	return ST_OK;
}

static const struct table_type *const critical_tables[] = { &table_critical, NULL };

const struct report_type report_critical = {
	.name = "critical",
	.help = "the longest chain through the median and the slowest step",
	.tables = critical_tables,
	.state_size = sizeof(struct critical),
	.put = critical_put,
	.end = critical_end,
	.release = critical_release,
	.finish = critical_finish,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the facts by which a recording is judged (DEFINITIONS.md 8); judge.c has the verdicts. */
#include "analyze/report/check/internal.h"

#include "schemas/base/map.h"
#include "schemas/base/vec.h"
#include "schemas/model/call.h"
#include "schemas/base/sort.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static RANK_TABLE_TYPE(checks, &table_ranks, CHECK_COLUMNS, .is_finished = true);

static const struct column fact_columns[] = {
	RANK_COLUMNS,
#define X(name, combine) { #name, NULL, CELL_U64, combine, NULL, "a fact for checks" },
	FACT_LIST(X)
#undef X
		{ "path", NULL, CELL_TEXT, MIN, NULL, "path of the first unclosed input" },
	{ "format", NULL, CELL_TEXT, MAX, NULL, "format of the input" },
	{ .name = NULL },
};
static const struct table_type table_facts = {
	.name = "check_facts",
	.under = &table_ranks,
	.nest = NEST_NEVER,
	.null_texts = "path",
	.columns = fact_columns,
};

static RANK_TABLE_TYPE(check_told, &table_ranks, METADATA_COLUMNS, .nest = NEST_NEVER);

static RANK_TABLE_TYPE(check_windows, &table_ranks, SPAN_COLUMNS, .nest = NEST_NEVER);

/* ---- state ------------------------------------------------------------------------------ */

enum {
	/* tolerance, because threads run while a window opens and closes */
	EDGE_NS = 1000000,
	STEPS_COMPARED = 5,       /* fewer steps prove nothing */
	APART_NS = 1000000,       /* more drift of two clocks between anchors is a step, */
	SLEW_PER_SECOND = 500000, /* if it also exceeds the greatest slew of a clock */
	GRAPHS_MAX = 1 << 16,     /* limit of graph launches that are kept */
};
enum { NAME_ASKED = 0x80, NAME_TRAITS = CALL_LAUNCHES_KERNELS | CALL_LAUNCHES_GRAPH };

struct span {
	uint64_t begin_ns, end_ns; /* end_ns UINT64_MAX: never closed */
};
struct graph_launch {
	uint64_t begin_ns, correlation; /* of the call; begin_ns 0: unknown */
	/* the graph's number with the top bit set, otherwise the name of the first work */
	uint64_t key;
	uint64_t events;
	uint32_t process;
};
struct process_facts { /* the facts of one process */
	uint64_t at[FACT_END];
	struct span *spans; /* by begin */
	size_t span_count, span_at;
};
struct check {
	struct rules *rules;
	struct process_facts *processes; /* by process id */
	uint32_t process_count, name_count;
	uint8_t *names; /* cache by name: NAME_ASKED and NAME_TRAITS; 0: none */
	struct graph_launch *graphs;
	size_t graph_count, graph_cap;
	/* hash table of `graphs`, by process, correlation and begin */
	struct hash_index graph_index;
};

static enum status spans_make(struct accumulator *f, struct process_facts *s, uint32_t process,
			      struct error *err)
{
	uint32_t count = trace_count(f->trace, TRACE_WINDOWS);

	for (uint32_t i = 1; i <= count; i++)
		s->span_count += trace_get_window(f->trace, i)->process == process;
	TRY(vec_new(&s->spans, s->span_count + 1, err));
	s->span_count = 0;
	for (uint32_t i = 1; i <= count; i++) {
		const struct window *w = trace_get_window(f->trace, i);

		if (w->process == process)
			s->spans[s->span_count++] =
				(struct span){ w->begin_ns, w->end_ns ? w->end_ns : UINT64_MAX };
	}
	SORT_BY(s->spans, s->span_count, UP(struct span, begin_ns));
	return ST_OK;
}

static enum status check_begin(struct accumulator *f, struct error *err)
{
	struct check *c = f->state;

	c->process_count = trace_count(f->trace, TRACE_PROCESSES);
	c->name_count = trace_count(f->trace, TRACE_NAMES);
	c->processes = calloc((size_t)c->process_count + 1, sizeof(*c->processes));
	c->names = calloc((size_t)c->name_count + 1, 1);
	c->rules = rules_new(f->trace);
	if (!c->processes || !c->names || !c->rules)
		return fail_memory(err);
	for (uint32_t i = 1; i <= c->process_count; i++)
		TRY(spans_make(f, &c->processes[i], i, err));
	return ST_OK;
}

static void check_release(struct accumulator *f)
{
	struct check *c = f->state;

	for (uint32_t i = 0; c->processes && i <= c->process_count; i++)
		free(c->processes[i].spans);
	free(c->processes);
	rules_free(c->rules);
	free(c->names);
	free(c->graphs);
	hash_release(&c->graph_index);
}

/* ---- calls and graphs ------------------------------------------------------------------- */

/* Returns what a call of this name launches. */
static unsigned traits_of(const struct accumulator *f, struct check *c, uint32_t name)
{
	if (name > c->name_count || !c->names[name]) {
		size_t len;
		const char *text = trace_text(f->trace, name, &len);
		unsigned traits = NAME_ASKED | (call_traits(text, len) & NAME_TRAITS);

		if (name > c->name_count)
			return traits;
		c->names[name] = (uint8_t)traits;
	}
	return c->names[name];
}

/* Finds or adds the launch with this process, correlation and begin; *out is NULL if GRAPHS_MAX
 * others are kept. */
static enum status graph_find(struct check *c, const struct graph_launch *want,
			      struct graph_launch **out, struct error *err)
{
	uint64_t hash = hash_word(hash_word(want->process, want->correlation), want->begin_ns);
	uint32_t i;

	for (size_t at = hash_first(&c->graph_index, hash);
	     (i = hash_item(&c->graph_index, &at, hash)) != HASH_NONE;
	     at = hash_next(&c->graph_index, at)) {
		*out = &c->graphs[i];
		if ((*out)->process == want->process && (*out)->correlation == want->correlation &&
		    (*out)->begin_ns == want->begin_ns)
			return ST_OK;
	}
	*out = NULL;
	if (c->graph_count >= GRAPHS_MAX)
		return ST_OK;
	TRY(vec_reserve(&c->graphs, &c->graph_cap, c->graph_count + 1, err));
	TRY(hash_add(&c->graph_index, hash, (uint32_t)c->graph_count, err));
	*out = &c->graphs[c->graph_count++];
	**out = *want;
	return ST_OK;
}

/* Counts one more event of a graph launch. */
static enum status put_graph_work(struct accumulator *f, const struct event *e, uint32_t process,
				  struct error *err)
{
	struct check *c = f->state;
	const struct launch *l = batch_launch(f->batch, e);
	struct graph_launch want = { .process = process,
				     .correlation = e->correlation,
				     .begin_ns = l ? l->begin_ns : 0 };
	uint64_t number = 0;

	if (l && !(traits_of(f, c, l->name) & CALL_LAUNCHES_GRAPH))
		return ST_OK;
	/* The number of the work's graph; 0: none or unknown. */
	const struct attr *a = trace_find_attr(f->trace, e->schema, "graph");
	number = a && a->bits != UINT32_MAX && a->type <= ATTR_I64 ? a->bits : 0;
	if (!e->correlation || (!l && !number))
		return ST_OK;
	struct graph_launch *launch;
	want.key = number ? number | UINT64_C(1) << 63 : e->name;
	TRY(graph_find(c, &want, &launch, err));
	if (launch)
		launch->events++;
	else
		c->processes[process].at[FACT_graphs_unchecked]++;
	return ST_OK;
}

/* ---- events ----------------------------------------------------------------------------- */

/* Notes a host event outside of its window. Host events and windows come in the order of their
 * begins. */
static void put_bounds(struct process_facts *s, uint64_t begin_ns)
{
	uint64_t away = 0;

	while (s->span_at + 1 < s->span_count && s->spans[s->span_at + 1].begin_ns <= begin_ns)
		s->span_at++;
	if (!s->span_count)
		return;
	const struct span *in = &s->spans[s->span_at];
	const struct span *next = s->span_at + 1 < s->span_count ? in + 1 : NULL;
	if (begin_ns < in->begin_ns)
		away = in->begin_ns - begin_ns;
	else if (begin_ns > in->end_ns)
		away = begin_ns - in->end_ns;
	if (next && next->begin_ns - begin_ns < away)
		away = next->begin_ns - begin_ns;
	if (away <= EDGE_NS)
		return;
	s->at[FACT_outside]++;
	s->at[FACT_outside_most_ns] = later(s->at[FACT_outside_most_ns], away);
}

static enum status check_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	struct check *c = f->state;

	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];
		const struct track *k = trace_get_track(f->trace, e->track);
		uint32_t process = k->process <= c->process_count ? k->process : 0;
		struct process_facts *s = &c->processes[process];

		if (e->kind == KIND_UNKNOWN || e->kind >= KIND_END)
			s->at[FACT_unknown_kinds]++;
		else if (k->type == TRACK_THREAD) {
			if (e->kind == KIND_API &&
			    (traits_of(f, f->state, e->name) & CALL_LAUNCHES_KERNELS))
				s->at[FACT_kernel_launches]++;
			if (e->kind == KIND_OVERHEAD) {
				s->at[FACT_tracer_events]++;
				s->at[FACT_tracer_ns] += e->end_ns - e->begin_ns;
			}
			put_bounds(s, e->begin_ns);
		}
		rules_put(c->rules, f->batch, e, process, s->at);
		s->at[FACT_kernels] += e->kind == KIND_KERNEL || e->kind == KIND_GRAPH;
		if (event_is_gpu_work(e) && e->kind != KIND_GRAPH)
			TRY(put_graph_work(f, e, process, err));
		s->at[FACT_collectives] +=
			e->kind == KIND_KERNEL && sweep_class(f->sweep, e) == CLASS_COMM;
	}
	return ST_OK;
}

/* ---- the end of an input ---------------------------------------------------------------- */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static uint64_t count_steps(const struct step_list *l, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t count = 0;

	for (size_t i = 0; i < l->count && !l->is_inferred && l->rows[i].begin_ns <= end_ns; i++)
		count += l->rows[i].begin_ns >= begin_ns && !l->rows[i].is_out;
	return count;
}

static uint64_t metadata_number(const struct accumulator *f, uint32_t process, const char *key)
{
	const struct attr *a =
		trace_find_attr(f->trace, trace_get_process(f->trace, process)->schema, key);

	if (!a)
		return 0;
	if (a->type != ATTR_JSON && a->type != ATTR_TEXT)
		return a->bits;
	return strtoull(trace_text(f->trace, (uint32_t)a->bits, NULL), NULL, 10);
}

/* Stores the attributes with which a recorder describes itself. */
static enum status end_metadata(struct accumulator *f, uint32_t process, struct error *err)
{
	union value keys[RANK_KEYS + 1], *row;
	char number[32];

	for (size_t i = 0; check_metadata_key(i); i++) {
		const struct attr *a =
			trace_find_attr(f->trace, trace_get_process(f->trace, process)->schema,
					check_metadata_key(i));

		if (!a)
			continue;
		snprintf(number, sizeof(number), "%" PRIu64, a->bits);
		const char *text = a->type == ATTR_TEXT || a->type == ATTR_JSON
					   ? trace_text(f->trace, (uint32_t)a->bits, NULL)
					   : number;
		if (!text[0])
			continue;
		keys[METADATA_KEY].text = check_metadata_key(i);
		TRY(acc_row(f, "check_told", process, keys, &row, err));
		TRY(acc_text(f, "check_told", &row[METADATA_TEXT], text, err));
	}
	return ST_OK;
}

/* Returns losses with a reason that this version does not define. Losses of the whole input are
 * added to its first process.
 */
static uint64_t count_newer(const struct accumulator *f, uint32_t process)
{
	uint64_t count = trace_lost(f->trace, process, (enum loss)0);

	if (process != 1)
		return count;
	count = trace_lost(f->trace, 0, (enum loss)0);
	for (uint32_t i = 2; i <= trace_count(f->trace, TRACE_PROCESSES); i++)
		count -= trace_lost(f->trace, i, (enum loss)0);
	return count;
}

static enum status end_facts(struct accumulator *f, uint32_t process, struct error *err)
{
	static const enum combine how[] = {
#define X(name, combine) [FACT_##name] = combine,
		FACT_LIST(X)
#undef X
	};
	const struct provenance *p = trace_provenance(f->trace);
	const struct filter *filter = f->filter;
	struct check *c = f->state;
	uint64_t *at = c->processes[process].at;
	union value keys[RANK_KEYS], *row;

	at[FACT_files] = 1;
	at[FACT_not_closed] = !p->is_whole;
	at[FACT_unread_bytes] = p->unread_bytes;
	at[FACT_no_epoch] = !p->epoch_known;
	at[FACT_synthetic] = p->is_synthetic;
	/* what options filter out is not a fault of the recording */
	at[FACT_is_cut] =
		filter && (filter->has_steps || filter->has_devices || filter->kinds_mask ||
			   filter->names || filter->from || filter->to);
	at[FACT_windows] = c->processes[process].span_count;
	at[FACT_newer] = count_newer(f, process);
	/* Compare REALTIME with MONOTONIC from anchor to anchor. */
	const struct anchor *last = NULL;
	for (uint32_t i = 1; i <= trace_count(f->trace, TRACE_ANCHORS); i++) {
		const struct anchor *a = trace_get_anchor(f->trace, i);

		if (a->process != process)
			continue;
		at[FACT_anchors]++;
		if (last) {
			/* both may wrap, but their difference is small and its step does not */
			uint64_t apart = distance(
				a->realtime_ns - last->realtime_ns + (UINT64_C(1) << 63),
				a->monotonic_ns - last->monotonic_ns + (UINT64_C(1) << 63));
			uint64_t passed = distance(a->monotonic_ns, last->monotonic_ns);
			uint64_t may = passed / 1000000000 * SLEW_PER_SECOND;
			at[FACT_clock_steps] += apart > APART_NS && apart > may;
			at[FACT_clock_most_ns] = later(at[FACT_clock_most_ns], apart);
		}
		last = a;
	}
	TRY(acc_row(f, "check_facts", process, keys, &row, err));
	for (size_t i = FACT_KEYS + 1; i < FACT_END; i++)
		if (how[i] == SUM)
			row[i].u64 += at[i];
		else if (at[i] > row[i].u64)
			row[i].u64 = at[i];
	if (!p->is_whole)
		TRY(acc_text(f, "check_facts", &row[FACT_PATH], f->path, err));
	return acc_text(f, "check_facts", &row[FACT_FORMAT], trace_text(f->trace, p->format, NULL),
			err);
}

static enum status check_end(struct accumulator *f, struct error *err)
{
	struct check *c = f->state;

	/* Compare each launch with the one of the same graph that has most events and comes
	 * first. */
	const struct graph_launch *first = NULL;
	SORT_BY(c->graphs, c->graph_count, UP(struct graph_launch, process),
		UP(struct graph_launch, key), DOWN(struct graph_launch, events));
	for (size_t i = 0; i < c->graph_count; i++) {
		const struct graph_launch *g = &c->graphs[i];
		uint64_t *at = c->processes[g->process].at;

		if (!first || first->process != g->process || first->key != g->key)
			first = g;
		at[FACT_graph_launches]++;
		at[FACT_graphs_short] += g->events < first->events;
		at[FACT_graph_events_missing] += first->events - g->events;
	}
	const struct sweep_window *w;
	size_t count = sweep_windows(f->sweep, &w);
	union value keys[RANK_KEYS + 2], *row;
	for (size_t i = 0; i < count; i++) {
		const struct window *of = trace_get_window(f->trace, w[i].window);
		uint64_t *at = c->processes[w[i].process].at;

		keys[SPAN_BEGIN].u64 = w[i].begin_ns;
		keys[SPAN_END].u64 = w[i].end_ns;
		TRY(acc_row(f, "check_windows", w[i].process, keys, &row, err));
		row[SPAN_STEPS].u64 +=
			count_steps(&f->steps[w[i].process], w[i].begin_ns, w[i].end_ns);
		row[SPAN_OPEN].u64 |= w[i].window && !of->end_ns;
		at[FACT_window_ns] += w[i].end_ns - w[i].begin_ns;
		at[FACT_own_ns] += of->own_ns;
	}
	for (uint32_t i = 1; i <= c->process_count; i++) {
		if (!acc_wants(f, i) || acc_is_helper(f, i))
			continue;
		/* Step times with and without recording, as the recorder measured them. */
		enum { STEPS_MAX = 1000000000 };
		uint64_t *at = c->processes[i].at;
		uint64_t around = metadata_number(f, i, "steps_around");
		uint64_t recorded = metadata_number(f, i, "steps_recorded");
		uint64_t around_ns = metadata_number(f, i, "steps_around_median_ns");
		uint64_t recorded_ns = metadata_number(f, i, "steps_recorded_median_ns");
		if (around >= STEPS_COMPARED && recorded >= STEPS_COMPARED && around <= STEPS_MAX &&
		    recorded <= STEPS_MAX && around_ns <= STEPS_MAX * 10ull &&
		    recorded_ns <= STEPS_MAX * 10ull) {
			at[FACT_steps_around] += around;
			at[FACT_steps_around_ns] += around * around_ns;
			at[FACT_steps_recorded] += recorded;
			at[FACT_steps_recorded_ns] += recorded * recorded_ns;
		}
		TRY(end_facts(f, i, err));
		TRY(end_metadata(f, i, err));
	}
	return ST_OK;
}

const struct report_type report_check = {
	.name = "check",
	.help = "is the recording complete and consistent? losses, clocks, overhead",
	.tables = TABLES(&table_checks, &table_facts, &table_check_told, &table_check_windows),
	.state_size = sizeof(struct check),
	.begin = check_begin,
	.put = check_put,
	.end = check_end,
	.release = check_release,
	.finish = check_judge,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The report `serving`: steps of a server (DEFINITIONS.md 3): batch size and tokens from the
 * annotation around each step, and which steps belong to the steady state. */
#include "analyze/engine/report.h"

#include "convert/name/name.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdlib.h>

enum {
	STEADY_LEAST = 32, /* fewer steps in a row are no steady state */
	STEADY_BATCH = 90, /* least percentage of the largest batch */
};

#define SERVING_COLUMNS(X)                                                                         \
	X(SERVING_PHASE = RANK_KEYS, "phase", "phase", TEXT, KEY,                                  \
	  "prefill, decode or mixed; other: the annotation does not tell")                         \
	X(SERVING_STEPS, "steps", "steps", U64, SUM, "number of counted steps")                    \
	X(SERVING_WALL, "wall_ns", "wall", U64, SUM, "wall time of counted steps")                 \
	X(SERVING_REQUESTS, "requests", NULL, U64, SUM, "sum of the steps' batch sizes")           \
	X(SERVING_BATCH, "batch_mean", "batch", F64, DERIVED, "requests / steps")                  \
	X(SERVING_TOKENS, "tokens", "tokens", U64, SUM, "tokens of the steps, if known")           \
	X(SERVING_TOKEN_WALL, "token_wall_ns", NULL, U64, SUM, "wall of steps with known tokens")  \
	X(SERVING_RATE, "tokens_per_s", "tokens/s", F64, DERIVED, "tokens / token_wall")           \
	X(SERVING_STEADY, "steady_steps", "steady", U64, SUM, "steps in the steady state")         \
	X(SERVING_STEADY_TOKENS, "steady_tokens", NULL, U64, SUM, "tokens of the steady steps")    \
	X(SERVING_STEADY_WALL, "steady_wall_ns", NULL, U64, SUM,                                   \
	  "wall time of the steady steps with known tokens")                                       \
	X(SERVING_STEADY_RATE, "steady_tokens_per_s", "steady tokens/s", F64, DERIVED,             \
	  "steady_tokens / steady_wall")
static RANK_TABLE(serving, &table_ranks, SERVING_COLUMNS, .by = "wall_ns", .is_seldom = true);

#define ROW_COLUMNS(X)                                                                             \
	X(ROW_STEP = RANK_KEYS, "step", "step", U64, KEY, "number of the step")                    \
	X(ROW_BEGIN, "begin_ns", NULL, U64, KEY, "begin of the step since the Unix epoch")         \
	X(ROW_PHASE, "phase", "phase", TEXT, KEY, "prefill, decode, mixed or other")               \
	X(ROW_BATCH, "batch_size", "batch", U64, KEY, "number of requests or images")              \
	X(ROW_PADDED, "padded_batch", "padded", U64, KEY,                                          \
	  "batch size padded to that of the graph")                                                \
	X(ROW_PREFILL, "prefill_requests", "prefill", U64, KEY, "requests in prefill")             \
	X(ROW_DECODE, "decode_requests", "decode", U64, KEY, "requests in decode")                 \
	X(ROW_TOKENS, "tokens", "tokens", U64, KEY, "tokens that the step computes")               \
	X(ROW_WALL, "wall_ns", "wall", U64, SUM, "wall time, as in steps")                         \
	X(ROW_STEADY, "steady", "steady", BOOL, MAX, "the step belongs to the steady state")
static RANK_TABLE(serving_steps, &table_ranks, ROW_COLUMNS, .since = "begin_ns", .is_seldom = true);

struct served {
	uint64_t begin_ns;
	struct serving_step step;
	uint32_t process, name;
	size_t row; /* row in step_list; valid in end() */
	bool is_steady;
};
struct serving {
	struct served *items; /* of each process in the order of begins */
	size_t count, cap;
};

static enum status serving_put(struct accumulator *f, const struct sorted_batch *w,
			       struct error *err)
{
	struct serving *s = f->state;

	for (size_t i = 0; i < w->in->mark_count; i++) {
		const struct step_mark *m = &w->in->marks[i];
		struct served one = { .begin_ns = m->begin_ns,
				      .process = m->process,
				      .name = m->name };

		if (!m->name || !serving_step_of(trace_text(f->trace, m->name, NULL), &one.step))
			continue;
		TRY(vec_reserve(&s->items, &s->cap, s->count + 1, err));
		s->items[s->count++] = one;
	}
	return ST_OK;
}

static const struct step_row *row_of(const struct accumulator *f, const struct served *one)
{
	return &f->steps[one->process].rows[one->row];
}

/* Finds the longest run of steps with no pause longer than the median step, each with a batch near
 * the largest. Of equal ones the first. */
static enum status find_steady(struct accumulator *f, uint32_t process, struct error *err)
{
	struct serving *s = f->state;
	uint64_t *walls = malloc((s->count + 1) * sizeof(*walls));
	size_t count = 0, length = 0, best = 0, best_end = 0, last = SIZE_MAX;
	uint64_t largest = 0, pause_ns;

	if (!walls)
		return fail_memory(err);
	for (size_t i = 0; i < s->count; i++) {
		const struct served *one = &s->items[i];

		if (one->process != process)
			continue;
		walls[count++] = row_of(f, one)->mark_end_ns - row_of(f, one)->begin_ns;
		if (one->step.batch != SERVING_UNKNOWN && one->step.batch > largest)
			largest = one->step.batch;
	}
	pause_ns = count ? (uint64_t)median_u64(walls, count) : 0;
	free(walls);
	for (size_t i = 0; i < s->count; i++) {
		const struct served *one = &s->items[i];

		if (one->process != process)
			continue;
		const struct step_row *row = row_of(f, one);
		bool goes_on = last != SIZE_MAX && s->items[last].row + 1 == one->row &&
			       row->begin_ns <= row_of(f, &s->items[last])->mark_end_ns + pause_ns;
		bool is_large = row->is_counted && one->step.batch != SERVING_UNKNOWN &&
				(uint64_t)one->step.batch * 100 >= largest * STEADY_BATCH;
		length = is_large ? (goes_on ? length : 0) + 1 : 0;
		if (length > best) {
			best = length;
			best_end = i;
		}
		last = i;
	}
	if (best < STEADY_LEAST)
		return ST_OK;
	for (size_t i = best_end + 1; best; i--) {
		struct served *one = &s->items[i - 1];

		if (one->process != process)
			continue;
		one->is_steady = true;
		best--;
	}
	return ST_OK;
}

static uint64_t cell_of(uint32_t figure)
{
	return figure == SERVING_UNKNOWN ? NO_U64 : figure;
}

static enum status end_step(struct accumulator *f, const struct served *one, struct error *err)
{
	const struct step_row *row = row_of(f, one);
	const char *name = trace_text(f->trace, one->name, NULL);
	uint64_t wall_ns = row->end_ns - row->begin_ns;
	unsigned phase = name_rules_phase(f->rules, name);
	union value keys[ROW_WALL], *into;

	keys[ROW_PHASE].text = phase >= PHASE_PREFILL && phase <= PHASE_MIXED
				       ? name_rules_phase_name(f->rules, phase)
				       : "other";
	if (row->is_counted) {
		union value sums[SERVING_STEPS];

		sums[SERVING_PHASE].text = keys[ROW_PHASE].text;
		TRY(acc_row(f, "serving", one->process, sums, &into, err));
		into[SERVING_STEPS].u64++;
		into[SERVING_WALL].u64 += wall_ns;
		into[SERVING_STEADY].u64 += one->is_steady;
		if (one->step.batch != SERVING_UNKNOWN)
			into[SERVING_REQUESTS].u64 += one->step.batch;
		if (one->step.tokens != SERVING_UNKNOWN) {
			into[SERVING_TOKENS].u64 += one->step.tokens;
			into[SERVING_TOKEN_WALL].u64 += wall_ns;
			into[SERVING_STEADY_TOKENS].u64 += one->is_steady ? one->step.tokens : 0;
			into[SERVING_STEADY_WALL].u64 += one->is_steady ? wall_ns : 0;
		}
	}
	if (!row->is_kept)
		return ST_OK;
	keys[ROW_STEP].u64 = row->number;
	keys[ROW_BEGIN].u64 = row->begin_ns;
	keys[ROW_BATCH].u64 = cell_of(one->step.batch);
	keys[ROW_PADDED].u64 = cell_of(one->step.padded);
	keys[ROW_PREFILL].u64 = cell_of(one->step.prefill);
	keys[ROW_DECODE].u64 = cell_of(one->step.decode);
	keys[ROW_TOKENS].u64 = cell_of(one->step.tokens);
	TRY(acc_row(f, "serving_steps", one->process, keys, &into, err));
	into[ROW_WALL].u64 += wall_ns;
	into[ROW_STEADY].u64 |= one->is_steady;
	return ST_OK;
}

static enum status serving_end(struct accumulator *f, struct error *err)
{
	struct serving *s = f->state;
	uint32_t processes = trace_count(f->trace, TRACE_PROCESSES);
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct step_list *l = &f->steps[s->items[i].process];

		s->items[kept] = s->items[i];
		s->items[kept].row = steps_begun(l, s->items[i].begin_ns);
		kept += s->items[kept].row < l->count;
	}
	s->count = kept;
	for (uint32_t process = 1; s->count && process <= processes; process++)
		TRY(find_steady(f, process, err));
	for (size_t i = 0; i < s->count; i++)
		if (acc_wants(f, s->items[i].process))
			TRY(end_step(f, &s->items[i], err));
	return ST_OK;
}

static double per_second(uint64_t count, uint64_t ns)
{
	return ns ? (double)count * 1e9 / (double)ns : NAN;
}

static enum status serving_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "serving");
	union value *row;

	(void)err;
	for (size_t i = 0; (row = table_at(t, i)); i++) {
		row[SERVING_BATCH].f64 =
			(double)row[SERVING_REQUESTS].u64 / (double)row[SERVING_STEPS].u64;
		row[SERVING_RATE].f64 =
			per_second(row[SERVING_TOKENS].u64, row[SERVING_TOKEN_WALL].u64);
		row[SERVING_STEADY_RATE].f64 =
			per_second(row[SERVING_STEADY_TOKENS].u64, row[SERVING_STEADY_WALL].u64);
	}
	return ST_OK;
}

const struct report_type report_serving = {
	.name = "serving",
	.help = "steps of an inference server: prefill and decode, batch size, tokens, steady "
		"state",
	.tables = TABLES(&table_serving, &table_serving_steps),
	.state_size = sizeof(struct serving),
	.owned = OWNED(offsetof(struct serving, items)),
	.put = serving_put,
	.end = serving_end,
	.finish = serving_finish,
};

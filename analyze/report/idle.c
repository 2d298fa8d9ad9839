/* SPDX-License-Identifier: Apache-2.0 */
/* The report `idle`: the causes and owners of idle gaps (DEFINITIONS.md 6), and their share of each
 * step. */
#include "analyze/engine/report.h"

#include "schemas/base/map.h"
#include "schemas/base/vec.h"

#include <stdio.h>

#define IDLE_COLUMNS(X)                                                                            \
	X(IDLE_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY,                                      \
	  "the device's number in its process")                                                    \
	X(IDLE_CAUSE, "cause", "cause", TEXT, KEY,                                                 \
	  "why nothing ran; host:PHASE: what the step thread did meanwhile")                       \
	X(IDLE_THREAD, "thread", "thread", TEXT, KEY,                                              \
	  "thread of the cause: that of the launch or the call, or the step thread")               \
	X(IDLE_TID, "tid", NULL, U64, KEY, "id of the thread")                                     \
	X(IDLE_RANGE, "range", "in", TEXT, KEY,                                                    \
	  "innermost operator or annotation around most of a gap; for a launch: around the call")  \
	X(IDLE_PYTHON, "python", "Python frame", TEXT, KEY,                                        \
	  "innermost Python function around most of a gap; for a launch: around the call")         \
	X(IDLE_CALL, "call", "call", TEXT, KEY, "call or record that is the cause")                \
	X(IDLE_NS, "ns", "not busy", U64, SUM, "part of lead, idle and tail")                      \
	X(IDLE_COUNT, "count", "times", U64, SUM, "number of idle segments")                       \
	X(IDLE_LONGEST, "longest_ns", "longest", U64, MAX, "longest idle segment")                 \
	X(IDLE_PER_STEP, "per_step_ns", "per step", U64, DERIVED,                                  \
	  "ns / window_steps of the rank, rounded down")                                           \
	X(IDLE_PCT, "pct", "%", F64, DERIVED, "share of the GPU's lead, idle and tail",            \
	  .of = "not busy")
static RANK_TABLE(idle, &table_ranks, IDLE_COLUMNS, .by = "ns",
		  .null_texts = "thread range python call");

enum { OWNERS_MAX = 1 << 14 };

struct owner {
	uint32_t gpu, thread, range, python, call; /* the key: members up to `phase` */
	uint8_t cause, phase;
	uint64_t ns, count, longest_ns;
};
struct idle {
	struct owner *owners; /* after OWNERS_MAX owners the rest is summed by cause */
	size_t count, cap;
	struct hash_index index; /* hash table of `owners` */
};

/* Finds or adds the sums of an owner; *out is NULL if there are OWNERS_MAX others. */
static enum status owner_find(struct idle *s, const struct owner *key, struct owner **out,
			      struct error *err)
{
	enum { KEY_BYTES = offsetof(struct owner, phase) + 1 };
	uint64_t hash = hash_text((const char *)key, KEY_BYTES);
	uint32_t i = hash_find(&s->index, hash, s->owners, sizeof(*key), key, KEY_BYTES);

	*out = i == HASH_NONE ? NULL : &s->owners[i];
	if (*out ||
	    (s->count >= OWNERS_MAX && (key->thread | key->range | key->python | key->call)))
		return ST_OK;
	TRY(vec_reserve(&s->owners, &s->cap, s->count + 1, err));
	TRY(hash_add(&s->index, hash, (uint32_t)s->count, err));
	*out = &s->owners[s->count++];
	**out = *key;
	return ST_OK;
}

static enum status idle_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	struct idle *s = f->state;

	for (size_t i = 0; i < w->idle_count; i++) {
		const struct idle_segment *p = &w->idle[i];
		struct owner key = { .gpu = p->gpu,
				     .thread = p->thread,
				     .range = p->range,
				     .python = p->python,
				     .call = p->call,
				     .cause = p->cause,
				     .phase = p->cause == CAUSE_HOST ? p->phase : 0 };
		uint64_t ns = p->end_ns - p->begin_ns;
		struct owner *o;

		TRY(owner_find(s, &key, &o, err));
		if (!o) {
			key.thread = key.range = key.python = key.call = 0;
			TRY(owner_find(s, &key, &o, err));
		}
		o->ns += ns;
		o->count++;
		o->longest_ns = later(o->longest_ns, ns);
	}
	return ST_OK;
}

static const char *name_or_null(const struct accumulator *f, uint32_t name)
{
	return name ? trace_text(f->trace, name, NULL) : NULL;
}

static enum status idle_end(struct accumulator *f, struct error *err)
{
	struct idle *s = f->state;

	for (size_t i = 0; i < s->count; i++) {
		const struct owner *o = &s->owners[i];
		const struct track *t = trace_get_track(f->trace, o->thread);
		union value keys[IDLE_NS], *row;
		char cause[512], thread[64];

		cause_text(f, o->cause, o->phase, cause, sizeof(cause));
		snprintf(thread, sizeof(thread), "thread %llu", (unsigned long long)t->id);
		keys[IDLE_CAUSE].text = cause;
		keys[IDLE_THREAD].text = !o->thread ? NULL
					 : t->name  ? trace_text(f->trace, t->name, NULL)
						    : thread;
		keys[IDLE_TID].u64 = o->thread ? t->id : NO_U64;
		keys[IDLE_RANGE].text = name_or_null(f, o->range);
		keys[IDLE_PYTHON].text = name_or_null(f, o->python);
		keys[IDLE_CALL].text = name_or_null(f, o->call);
		TRY(acc_gpu_row(f, "idle", o->gpu, keys, &row, err));
		row[IDLE_NS].u64 += o->ns;
		row[IDLE_COUNT].u64 += o->count;
		cell_raise(&row[IDLE_LONGEST], o->longest_ns);
	}
	return ST_OK;
}

static enum status idle_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "idle"), *ranks = tables_find(all, "ranks");
	size_t steps = table_column(ranks, "window_steps");
	union value *rank, *row;

	finish_shares(all, "idle", IDLE_DEVICE + 1, IDLE_NS, IDLE_PCT);
	for (size_t i = 0; (row = table_at(t, i)); i++) {
		TRY(table_have(ranks, row, &rank, err));
		row[IDLE_PER_STEP].u64 = row[IDLE_NS].u64 / (rank[steps].u64 ? rank[steps].u64 : 1);
	}
	return ST_OK;
}

const struct report_type report_idle = {
	.name = "idle",
	.help = "why GPUs were idle, and which code caused it",
	.tables = TABLES(&table_idle),
	.state_size = sizeof(struct idle),
	.owned = OWNED(offsetof(struct idle, owners), offsetof(struct idle, index.slots)),
	.needs_owners = true,
	.put = idle_put,
	.end = idle_end,
	.finish = idle_finish,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/align/read.h"

#include "convert/stage/collective.h"
#include "convert/input/input.h"
#include "convert/stage/pump.h"
#include "schemas/base/hash.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { ENDED_MOST = 1 << 14, TABLES_LEAST = 16 << 20 };

struct reader {
	struct trace *trace;
	struct collectives *collectives;
	const struct name_rules *rules;
	uint8_t *communicates; /* by name; 0: not looked up; 1: no; 2: yes */
	uint32_t name_count;
	struct candidate {
		struct ended ended; /* key: hash of group, operation, and sequence number or step */
		bool by_seq;
	} * candidates;
	size_t count, cap;
	uint64_t mask; /* keys with one of these bits are dropped, the same ones on each host */
};

static bool communicates(struct reader *r, uint32_t name)
{
	if (name > r->name_count)
		return false;
	if (!r->communicates[name])
		r->communicates[name] =
			1 + name_rules_communicates(r->rules, trace_text(r->trace, name, NULL));
	return r->communicates[name] == 2;
}

static enum status put_kernel(struct reader *r, const struct event *e, const struct launch *launch,
			      struct error *err)
{
	struct candidate one = { .ended = { .end_ns = e->end_ns } };
	struct collective c;

	collectives_find(r->collectives, e, launch, &c);
	if (c.operation != OPERATION_ALL_REDUCE && c.operation != OPERATION_BARRIER)
		return ST_OK;
	if (!c.has_seq && !e->step)
		return ST_OK;
	uint64_t key = hash_word(hash_text(c.group, strlen(c.group)), c.operation);
	one.by_seq = c.has_seq;
	one.ended.key = hash_word(key, c.has_seq ? c.seq : UINT64_MAX - (e->step & ~STEP_GAP));
	while (r->count == ENDED_MOST && r->mask != UINT64_MAX) {
		/* Drop half of the candidates by their keys, so that all hosts drop the same ones.
		 */
		size_t kept = 0;

		r->mask = r->mask << 1 | 1;
		for (size_t i = 0; i < r->count; i++)
			if (!(r->candidates[i].ended.key & r->mask))
				r->candidates[kept++] = r->candidates[i];
		r->count = kept;
	}
	if ((one.ended.key & r->mask) || r->count == ENDED_MOST)
		return ST_OK;
	TRY(vec_reserve(&r->candidates, &r->cap, r->count + 1, err));
	r->candidates[r->count++] = one;
	return ST_OK;
}

static enum status reader_put(void *self, const struct batch *batch, struct error *err)
{
	struct reader *r = self;

	for (size_t i = 0; i < batch->count; i++) {
		const struct event *e = &batch->events[i];

		if (e->kind == KIND_RANGE)
			TRY(collectives_note(r->collectives, e, err));
		else if (e->kind == KIND_KERNEL && communicates(r, e->name))
			TRY(put_kernel(r, e, batch_launch(batch, e), err));
	}
	return ST_OK;
}

/*
 * Makes the final list.  Without a sequence number, a collective is identified by its place among
 * the equal ones of its step.  The key includes their number, so hosts with different numbers share
 * no key.  A sequence number that came twice identifies nothing and is dropped.
 */
static enum status conclude(struct reader *r, struct ended **out, size_t *count, struct error *err)
{
	*out = calloc(r->count + 1, sizeof(**out));
	if (!*out)
		return fail_memory(err);
	SORT_BY(r->candidates, r->count, UP(struct candidate, ended.key),
		UP(struct candidate, ended.end_ns));
	for (size_t first = 0, end; first < r->count; first = end) {
		uint64_t key = r->candidates[first].ended.key;

		for (end = first + 1; end < r->count && r->candidates[end].ended.key == key; end++)
			;
		for (size_t i = first; i < end && (!r->candidates[i].by_seq || end - first == 1);
		     i++)
			(*out)[(*count)++] =
				(struct ended){ hash_word(hash_word(key, end - first), i - first),
						r->candidates[i].ended.end_ns };
	}
	SORT_BY(*out, *count, UP(struct ended, key), UP(struct ended, end_ns));
	return ST_OK;
}

static enum status read_all(struct reader *r, struct input *in, const struct budget *budget,
			    struct error *err)
{
	struct pipeline_request how = { .rules = r->rules,
					.budget = budget,
					.needs = NEED_STEP | NEED_LINK };
	struct consumer consumer = { reader_put, r };
	bool source_failed = false;
	struct pipeline p;

	TRY(pipeline_open(&p, r->trace, &in, 1, &how, err));
	r->name_count = trace_count(r->trace, TRACE_NAMES);
	r->communicates = calloc((size_t)r->name_count + 1, 1);
	enum status status = r->communicates ? collectives_new(&r->collectives, r->trace, err)
					     : fail_memory(err);
	if (status == ST_OK)
		status = pump(p.top, &consumer, 1, NULL, NULL, &source_failed, err);
	collectives_free(r->collectives);
	free(r->communicates);
	pipeline_close(&p);
	return source_failed ? ST_OK : status; /* the later full pass reports it */
}

enum status align_read(const char *path, const struct name_rules *rules,
		       const struct budget *budget, struct ended **out, size_t *count,
		       struct error *err)
{
	size_t tables = budget->opening < TABLES_LEAST ? TABLES_LEAST : budget->opening;
	struct reader r = { .rules = rules };
	struct input *in = NULL;

	*out = NULL;
	*count = 0;
	TRY(input_open(&in, path, budget->scratch, err));
	enum status status = trace_new(&r.trace, tables, err);
	if (status == ST_OK)
		status = read_all(&r, in, budget, err);
	if (status == ST_OK)
		status = conclude(&r, out, count, err);
	free(r.candidates);
	trace_free(r.trace);
	input_close(in);
	return status;
}

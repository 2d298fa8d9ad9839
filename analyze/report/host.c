/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/shared.h"

#include "convert/stage/collective.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

static RANK_TABLE_TYPE(host_time, &table_ranks, HOST_COLUMNS, .nest = NEST_NEVER);

enum what { WHAT_NOTHING, WHAT_COMM, WHAT_GC, WHAT_OPERATOR, WHAT_PHASE, WHAT_EXPOSED, WHAT_COUNT };
enum { SPANS_MOST = 1 << 16 /* of a rank and kind; further spans are not counted */ };

struct span {
	uint64_t begin_ns, end_ns;
};
struct spans { /* sorted, and no two touch */
	struct span *items;
	size_t count, cap;
};
struct process_time {
	struct spans spans[WHAT_COUNT];
	uint64_t comm_count;
	uint64_t at_ns, until_ns[WHAT_COUNT]; /* of the latest event; latest ends */
	uint32_t tracks[WHAT_COUNT];          /* track of the latest event of each kind */
};
struct host {
	struct process_time *processes; /* by process id */
	uint8_t *names;                 /* cache by name: enum what + 1; 0: none */
	uint32_t process_count, name_count;
};

static enum status host_begin(struct accumulator *f, struct error *err)
{
	struct host *h = f->state;

	h->process_count = trace_count(f->trace, TRACE_PROCESSES);
	h->name_count = trace_count(f->trace, TRACE_NAMES);
	TRY(vec_new(&h->processes, (size_t)h->process_count + 1, err));
	return vec_new(&h->names, (size_t)h->name_count + 1, err);
}

static void host_release(struct accumulator *f)
{
	struct host *h = f->state;

	for (uint32_t i = 0; h->processes && i <= h->process_count; i++)
		for (size_t k = 0; k < WHAT_COUNT; k++)
			free(h->processes[i].spans[k].items);
}

static enum what what_of_phase(unsigned phase)
{
	return phase == PHASE_COMMUNICATION ? WHAT_COMM
	       : phase == PHASE_FORWARD || phase == PHASE_BACKWARD || phase == PHASE_OPTIMIZER
		       ? WHAT_PHASE
		       : WHAT_NOTHING;
}

static enum what what_is(struct accumulator *f, const struct event *e)
{
	struct host *h = f->state;
	uint8_t *known = e->name <= h->name_count ? &h->names[e->name] : NULL;

	if (e->subkind == RANGE_GC)
		return WHAT_GC;
	if (e->subkind != RANGE_OP && e->subkind != RANGE_PYTHON && e->subkind != RANGE_PHASE &&
	    e->subkind != RANGE_ANNOTATION && e->subkind != RANGE_NVTX)
		return WHAT_NOTHING;
	if (known && *known)
		return (enum what)(*known - 1);
	const char *name = trace_text(f->trace, e->name, NULL);
	enum what is = WHAT_NOTHING;

	if (e->subkind == RANGE_PYTHON) /* gc.collect() called by the program */
		is = strcmp(name, "<built-in function collect>") ? WHAT_NOTHING : WHAT_GC;
	else if (e->subkind == RANGE_OP)
		is = strstr(name, "c10d") || strstr(name, "comms") ? WHAT_NOTHING : WHAT_OPERATOR;
	else if (backend_operation(name))
		is = WHAT_COMM;
	else
		is = what_of_phase(name_rules_pushed(f->rules, name));
	if (known)
		*known = (uint8_t)(is + 1);
	return is;
}

static enum status spans_add(struct spans *s, uint64_t begin_ns, uint64_t end_ns, struct error *err)
{
	struct span *last = s->count ? &s->items[s->count - 1] : NULL;

	if (last && begin_ns <= last->end_ns) {
		last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
		return ST_OK;
	}
	if (begin_ns >= end_ns || s->count == SPANS_MOST)
		return ST_OK;
	TRY(vec_reserve(&s->items, &s->cap, s->count + 1, err));
	s->items[s->count++] = (struct span){ begin_ns, end_ns };
	return ST_OK;
}

/* Adds exposed communication up to an instant, before which nothing more begins. */
static enum status exposed_add(struct process_time *p, uint64_t at_ns, struct error *err)
{
	uint64_t operators_ns = p->until_ns[WHAT_OPERATOR], comm_ns = p->until_ns[WHAT_COMM];

	/* without operators, phases of another thread count as compute */
	if (!operators_ns && p->tracks[WHAT_PHASE] != p->tracks[WHAT_COMM])
		operators_ns = p->until_ns[WHAT_PHASE];
	uint64_t begin_ns = p->at_ns > operators_ns ? p->at_ns : operators_ns;
	uint64_t end_ns = at_ns < comm_ns ? at_ns : comm_ns;

	p->at_ns = at_ns;
	return begin_ns < end_ns ? spans_add(&p->spans[WHAT_EXPOSED], begin_ns, end_ns, err)
				 : ST_OK;
}

static enum status host_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	struct host *h = f->state;

	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];

		if (e->kind != KIND_RANGE)
			continue;
		enum what is = what_is(f, e);
		uint32_t process = is ? acc_process(f, e->track) : 0;
		if (!is || process > h->process_count || !acc_wants(f, process))
			continue;
		struct process_time *p = &h->processes[process];
		p->comm_count += is == WHAT_COMM;
		if (is != WHAT_GC)
			TRY(exposed_add(p, e->begin_ns, err));
		p->until_ns[is] = later(p->until_ns[is], e->end_ns);
		p->tracks[is] = e->track;
		if (is == WHAT_COMM || is == WHAT_GC)
			TRY(spans_add(&p->spans[is], e->begin_ns, e->end_ns, err));
	}
	return ST_OK;
}

static uint64_t in_steps(const struct spans *s, const struct step_list *steps)
{
	uint64_t sum = 0;

	for (size_t i = 0, k = 0; i < steps->count; i++) {
		const struct step_row *step = &steps->rows[i];

		while (k && s->items[k - 1].end_ns > step->begin_ns)
			k--;
		for (; k < s->count && s->items[k].begin_ns < step->end_ns; k++) {
			const struct span *one = &s->items[k];
			uint64_t begin =
				one->begin_ns > step->begin_ns ? one->begin_ns : step->begin_ns;
			uint64_t end = one->end_ns < step->end_ns ? one->end_ns : step->end_ns;

			sum += step->is_counted && begin < end ? end - begin : 0;
		}
	}
	return sum;
}

static enum status host_end(struct accumulator *f, struct error *err)
{
	struct host *h = f->state;
	union value keys[RANK_KEYS], *row;

	for (uint32_t i = 1; i <= h->process_count; i++) {
		struct process_time *p = &h->processes[i];

		TRY(exposed_add(p, UINT64_MAX, err));
		if (!p->spans[WHAT_COMM].count && !p->spans[WHAT_GC].count)
			continue;
		TRY(acc_row(f, "host_time", i, keys, &row, err));
		row[HOST_COMM].u64 += in_steps(&p->spans[WHAT_COMM], &f->steps[i]);
		row[HOST_COMM_COUNT].u64 += p->comm_count;
		row[HOST_EXPOSED].u64 += in_steps(&p->spans[WHAT_EXPOSED], &f->steps[i]);
		row[HOST_GC].u64 += in_steps(&p->spans[WHAT_GC], &f->steps[i]);
	}
	return ST_OK;
}

const struct report_type report_host = {
	.name = "host",
	.help = "what the threads of a rank do together, for rules",
	.tables = TABLES(&table_host_time),
	.state_size = sizeof(struct host),
	.owned = OWNED(offsetof(struct host, processes), offsetof(struct host, names)),
	.begin = host_begin,
	.put = host_put,
	.end = host_end,
	.release = host_release,
};

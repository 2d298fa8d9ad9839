/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool/merge.h"

#include "schemas/base/heap.h"

#include <stdlib.h>

/* Each input provides a window of its batch at a time, so that a batch of many inputs has about
 * OUT_EVENTS events, whatever the sizes of the inputs' batches. */
enum { OUT_EVENTS = 4096, WINDOW_LEAST = 64 };

struct merge_input {
	struct run_input is;
	uint64_t begin_ns, end_ns; /* of the next event; here they are in the cache */
	const struct event *at, *window_end, *end; /* next event; ends of window, batch */
	struct event last; /* only its times: rounding by a fit must not change the order */
};

struct merge_source {
	struct source source;
	struct merge_input *inputs;
	size_t count, window;
	struct heap heap;  /* inputs with events in their windows */
	size_t fill_from;  /* first input to refill; equal to fill_until: none */
	size_t fill_until; /* one past the last */
	input_fault fault;
	void *self;
	struct event out[OUT_EVENTS];
};

uint64_t clock_fit_at(const struct clock_fit *fit, uint64_t t_ns)
{
	double away_ns = (double)(int64_t)(t_ns - fit->origin_ns) * fit->drift;
	int64_t shift_ns = fit->offset_ns + (int64_t)(away_ns + (away_ns < 0 ? -0.5 : 0.5));

	if (shift_ns < 0 && t_ns < 0 - (uint64_t)shift_ns)
		return 0;
	return t_ns + (uint64_t)shift_ns;
}

/* Maps the times of a batch.  If two begins become equal and the longer event would be second, it
 * begins 1 ns later. */
static void fit_batch(struct merge_input *in, struct batch *batch)
{
	struct event *e = batch->events, *end = e + batch->count;

	for (; e < end; e++) {
		e->begin_ns = clock_fit_at(&in->is.fit, e->begin_ns);
		e->end_ns = clock_fit_at(&in->is.fit, e->end_ns);
		if (event_before(e, &in->last))
			e->begin_ns = in->last.begin_ns + (e->end_ns > in->last.end_ns);
		if (e->end_ns < e->begin_ns)
			e->end_ns = e->begin_ns;
		in->last.begin_ns = e->begin_ns;
		in->last.end_ns = e->end_ns;
	}
}

static bool input_before(const void *self, uint32_t a, uint32_t b)
{
	const struct merge_input *inputs = self, *x = &inputs[a], *y = &inputs[b];

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns;
	return x->end_ns != y->end_ns ? x->end_ns > y->end_ns : a < b;
}

static void input_advance(struct merge_input *in, const struct event *to)
{
	in->at = to;
	in->begin_ns = to->begin_ns;
	in->end_ns = to->end_ns;
}

/* Opens the next window of an input and puts the input into the heap, unless it has ended. */
static enum status input_fill(struct merge_source *m, size_t index, struct error *err)
{
	struct merge_input *in = &m->inputs[index];
	struct batch batch;
	struct error own = { .at = NOWHERE };

	while (in->at == in->end) {
		enum status status = source_next(in->is.source, &batch, &own);

		if (status != ST_OK && status != ST_END)
			m->fault(m->self, in->is.path, &own);
		if (status != ST_OK)
			return ST_OK;
		if (in->is.fit.offset_ns || in->is.fit.drift != 0)
			fit_batch(in, &batch);
		in->at = batch.events;
		in->end = batch.events + batch.count;
	}
	in->window_end = (size_t)(in->end - in->at) > m->window ? in->at + m->window : in->end;
	input_advance(in, in->at);
	return heap_push(&m->heap, (uint32_t)index, input_before, err);
}

static enum status merge_next(struct source *source, struct batch *out, struct error *err)
{
	struct merge_source *m = (struct merge_source *)source;
	size_t n = 0;

	for (; m->fill_from < m->fill_until; m->fill_from++)
		TRY(input_fill(m, m->fill_from, err));
	while (n < OUT_EVENTS && m->heap.count) {
		struct merge_input *in = &m->inputs[m->heap.items[0]];

		m->out[n++] = *in->at;
		if (in->at + 1 == in->window_end) {
			in->at++;
			m->fill_from = heap_pop(&m->heap, input_before);
			m->fill_until = m->fill_from + 1;
			break;
		}
		input_advance(in, in->at + 1);
		heap_sink(&m->heap, 0, input_before);
	}
	*out = (struct batch){ .events = m->out, .count = n };
	return n ? ST_OK : ST_END;
}

static void merge_close(struct source *source)
{
	struct merge_source *m = (struct merge_source *)source;

	for (size_t i = 0; i < m->count; i++)
		source_close(m->inputs[i].is.source);
	free(m->heap.items);
	free(m->inputs);
	free(m);
}

static const struct source_type merge_type = {
	.name = "merge",
	.help = "several sources as one",
	.next = merge_next,
	.close = merge_close,
};

enum status merge_open(struct source **out, const struct run_input *inputs, size_t count,
		       input_fault fault, void *self, struct error *err)
{
	struct merge_source *m = calloc(1, sizeof(*m));
	enum status status = ST_OK;

	*out = NULL;
	if (m)
		m->inputs = calloc(count + 1, sizeof(*m->inputs));
	if (!m || !m->inputs)
		status = fail_memory(err);
	for (size_t i = 0; i < count && status == ST_OK; i++)
		if (!(inputs[i].fit.drift > -1e-3 && inputs[i].fit.drift < 1e-3))
			status = fail(err, ST_FORMAT, NOWHERE,
				      "the clock of input %zu drifts by %g; the maximum is 0.001",
				      i, inputs[i].fit.drift);
	if (status != ST_OK) {
		for (size_t i = 0; i < count; i++)
			source_close(inputs[i].source);
		free(m ? m->inputs : NULL);
		free(m);
		return status;
	}
	m->source.type = &merge_type;
	m->window = count && OUT_EVENTS / count > WINDOW_LEAST ? OUT_EVENTS / count : WINDOW_LEAST;
	m->heap.self = m->inputs;
	m->count = m->fill_until = count;
	m->fault = fault;
	m->self = self;
	for (size_t i = 0; i < count; i++)
		m->inputs[i].is = inputs[i];
	*out = &m->source;
	return ST_OK;
}

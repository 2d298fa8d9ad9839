/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool/merge.h"

#include "schemas/base/heap.h"

#include <stdlib.h>

/* Each input gives a window of its batch at a time, so that a batch of many inputs has about
 * OUT_EVENTS events however large the batches of the inputs are. */
enum { OUT_EVENTS = 4096, WINDOW_LEAST = 64 };

struct merge_input {
	struct source *source;
	uint64_t begin_ns, end_ns; /* of the next event, where comparing finds them in the cache */
	const struct event *at, *window_end, *end; /* of its batch */
	struct clock_fit fit;
	struct event last; /* times only: rounding by a fit must not change the order */
	bool has_fit;
};

struct merge_source {
	struct source source;
	struct merge_input *inputs;
	size_t count, window;
	struct heap heap;  /* of inputs with events in their windows */
	size_t fill_from;  /* first input to be asked for more; fill_until: none is */
	size_t fill_until; /* one past the last */
	enum status fault; /* the first failure, returned at the end */
	struct error err;
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

/* Two begins may become equal, and then the longer event would be second: it begins 1 ns later
 * instead. */
static void fit_batch(struct merge_input *in, struct batch *batch)
{
	struct event *e = batch->events, *end = e + batch->count;

	for (; e < end; e++) {
		e->begin_ns = clock_fit_at(&in->fit, e->begin_ns);
		e->end_ns = clock_fit_at(&in->fit, e->end_ns);
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
	struct error own = { 0 };

	while (in->at == in->end) {
		enum status status = source_next(in->source, &batch, &own);

		if (status != ST_OK) {
			if (status != ST_END && !m->fault) {
				m->fault = status;
				m->err = own;
			}
			return ST_OK;
		}
		if (in->has_fit)
			fit_batch(in, &batch);
		in->at = batch.events;
		in->end = batch.events + batch.count;
	}
	in->window_end = (size_t)(in->end - in->at) > m->window ? in->at + m->window : in->end;
	input_advance(in, in->at);
	return heap_push(&m->heap, (uint32_t)index, err);
}

static enum status merge_next(struct source *source, struct batch *out, struct error *err)
{
	struct merge_source *m = (struct merge_source *)source;
	enum status fault;
	size_t n = 0;

	for (; m->fill_from < m->fill_until; m->fill_from++)
		TRY(input_fill(m, m->fill_from, err));
	while (n < OUT_EVENTS && m->heap.count) {
		struct merge_input *in = &m->inputs[m->heap.items[0]];

		m->out[n++] = *in->at;
		if (in->at + 1 == in->window_end) {
			in->at++;
			m->fill_from = heap_pop(&m->heap);
			m->fill_until = m->fill_from + 1;
			break;
		}
		input_advance(in, in->at + 1);
		heap_sink(&m->heap, 0);
	}
	*out = (struct batch){ .events = m->out, .count = n };
	if (n)
		return ST_OK;
	fault = m->fault;
	m->fault = ST_OK;
	return fault ? fail(err, fault, m->err.at, "%s", m->err.text) : ST_END;
}

static void merge_close(struct source *source)
{
	struct merge_source *m = (struct merge_source *)source;

	for (size_t i = 0; i < m->count; i++)
		source_close(m->inputs[i].source);
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

static bool has_fit(const struct clock_fit *fits, size_t i)
{
	return fits && (fits[i].offset_ns || fits[i].drift != 0);
}

static enum status merge_new(struct merge_source **out, struct source **inputs,
			     const struct clock_fit *fits, size_t count, struct error *err)
{
	struct merge_source *m;

	for (size_t i = 0; fits && i < count; i++)
		if (!(fits[i].drift > -1e-3 && fits[i].drift < 1e-3))
			return fail(err, ST_FORMAT, NOWHERE,
				    "the clock of input %zu drifts by %g, 0.001 is too much", i,
				    fits[i].drift);
	m = calloc(1, sizeof(*m));
	if (!m)
		return fail_memory(err);
	m->inputs = calloc(count + 1, sizeof(*m->inputs));
	if (!m->inputs) {
		free(m);
		return fail_memory(err);
	}
	m->source.type = &merge_type;
	m->window = count && OUT_EVENTS / count > WINDOW_LEAST ? OUT_EVENTS / count : WINDOW_LEAST;
	m->heap.is_before = input_before;
	m->heap.self = m->inputs;
	m->count = m->fill_until = count;
	for (size_t i = 0; i < count; i++) {
		m->inputs[i].source = inputs[i];
		m->inputs[i].has_fit = has_fit(fits, i);
		if (fits)
			m->inputs[i].fit = fits[i];
	}
	*out = m;
	return ST_OK;
}

enum status merge_open(struct source **out, struct source **inputs, const struct clock_fit *fits,
		       size_t count, struct error *err)
{
	struct merge_source *m = NULL;
	enum status status;

	*out = NULL;
	if (count == 1 && !has_fit(fits, 0)) {
		*out = inputs[0];
		return ST_OK;
	}
	status = merge_new(&m, inputs, fits, count, err);
	if (status == ST_OK)
		*out = &m->source;
	else
		for (size_t i = 0; i < count; i++)
			source_close(inputs[i]);
	return status;
}

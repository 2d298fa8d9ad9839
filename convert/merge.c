/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/merge.h"

#include <stdlib.h>
#include <string.h>

/* BUCKETS: on the stack.  CROWDED: mean square of what a bucket holds, per event.  NEXT: events of
 * a run that are asked of the memory before they are looked at. */
enum { BUCKETS = 2048, CROWDED = 16, NEXT = 4 };

/* Nothing up to here can still be preceded by what is not resident. */
struct mark {
	uint64_t begin_ns, end_ns;
	size_t run;
	bool is_promise; /* of the first begin only: nothing that begins there is final yet */
};

static bool has_more(const struct run *r)
{
	return r->at < r->count || r->promise_ns != UINT64_MAX;
}

static struct mark mark_of_run(const struct run *r, size_t index)
{
	if (r->at >= r->count)
		return (struct mark){ r->promise_ns, UINT64_MAX, index, true };
	return (struct mark){ r->last_begin_ns, r->last_end_ns, index, false };
}

/*
 * Of many runs each is looked at for a few events, and by then has left the caches.  So its last
 * event is remembered, and the first ones come while others are looked at.
 */
static void run_near(struct run *r)
{
	const struct event *last;

	if (r->at >= r->count)
		return;
	last = &r->events[r->count - 1];
	if (!r->last_begin_ns) {
		r->last_begin_ns = last->begin_ns;
		r->last_end_ns = last->end_ns;
	}
	for (size_t i = r->at; i < r->count && i < r->at + NEXT; i++)
		__builtin_prefetch(&r->events[i]);
}

static bool mark_before(const struct mark *a, const struct mark *b)
{
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns;
	if (a->is_promise != b->is_promise)
		return a->is_promise;
	return a->end_ns > b->end_ns; /* equal ones: the run that was looked at first */
}

/* false: all have ended. */
static bool mark_find(struct run *runs, size_t count, struct mark *mark)
{
	struct mark own;
	bool found = false;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!has_more(&runs[i]))
			continue;
		run_near(&runs[i]);
		own = mark_of_run(&runs[i], i);
		if (!found || mark_before(&own, mark))
			*mark = own;
		found = true;
	}
	return found;
}

static bool is_final(uint64_t begin_ns, uint64_t end_ns, size_t run, const struct mark *m)
{
	if (begin_ns != m->begin_ns)
		return begin_ns < m->begin_ns;
	if (m->is_promise)
		return false;
	return end_ns != m->end_ns ? end_ns > m->end_ns : run <= m->run;
}

static bool event_is_final(const struct event *e, size_t run, const struct mark *m)
{
	return is_final(e->begin_ns, e->end_ns, run, m);
}

/* The place after the last final event of a run: looked for from its next one on, in strides that
 * double, because mostly it is near. */
static size_t run_until(const struct run *r, size_t index, const struct mark *m)
{
	size_t low = r->at, high = r->count, stride = 1, middle;

	if (low < high && is_final(r->last_begin_ns, r->last_end_ns, index, m))
		return high;
	for (; low + stride < high; stride *= 2) {
		if (!event_is_final(&r->events[low + stride - 1], index, m)) {
			high = low + stride - 1;
			break;
		}
		low += stride;
	}
	while (low < high) {
		middle = low + (high - low) / 2;
		if (event_is_final(&r->events[middle], index, m))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct slice {
	struct run *runs;
	size_t count; /* of runs */
	size_t total; /* events in the slice */
	size_t alone; /* a run that gives some */
	uint64_t first_ns, last_ns;
};

static struct slice slice_find(struct run *runs, size_t count, const struct mark *m)
{
	struct slice s = { .runs = runs, .count = count, .first_ns = UINT64_MAX };
	uint64_t first_ns, last_ns;
	size_t i;

	for (i = 0; i < count; i++) {
		struct run *r = &runs[i];

		r->until = run_until(r, i, m);
		if (r->until == r->at)
			continue;
		s.total += r->until - r->at;
		s.alone = i;
		first_ns = r->events[r->at].begin_ns;
		last_ns = r->events[r->until - 1].begin_ns;
		s.first_ns = first_ns < s.first_ns ? first_ns : s.first_ns;
		s.last_ns = last_ns > s.last_ns ? last_ns : s.last_ns;
	}
	return s;
}

/* Buckets of equal time, in the order of the runs inside each; false: they fill unevenly. */
static bool slice_place(const struct slice *s, struct event *out)
{
	uint32_t at[BUCKETS], n, sum = 0;
	uint64_t span = s->last_ns - s->first_ns, squares = 0;
	unsigned shift = 0;
	size_t buckets = s->total < BUCKETS ? s->total : BUCKETS, i, j;

	while (span >> shift >= buckets)
		shift++;
	memset(at, 0, buckets * sizeof(at[0]));
	for (i = 0; i < s->count; i++)
		for (j = s->runs[i].at; j < s->runs[i].until; j++)
			at[(s->runs[i].events[j].begin_ns - s->first_ns) >> shift]++;
	for (i = 0; i < buckets; i++) {
		n = at[i];
		squares += (uint64_t)n * n;
		at[i] = sum;
		sum += n;
	}
	if (squares > (uint64_t)s->total * CROWDED)
		return false;
	for (i = 0; i < s->count; i++)
		for (j = s->runs[i].at; j < s->runs[i].until; j++) {
			const struct event *e = &s->runs[i].events[j];

			out[at[(e->begin_ns - s->first_ns) >> shift]++] = *e;
		}
	return true;
}

/* What is out of order is so inside its bucket only; equal ones stay as they are. */
static void slice_straighten(struct event *out, size_t total)
{
	struct event moved;
	size_t i, j;

	for (i = 1; i < total; i++) {
		if (!event_before(&out[i], &out[i - 1]))
			continue;
		moved = out[i];
		for (j = i; j > 0 && event_before(&moved, &out[j - 1]); j--)
			out[j] = out[j - 1];
		out[j] = moved;
	}
}

/* A heap of runs by their next event; runs[k].heap is what stands at place k. */
static bool heap_before(const struct run *runs, size_t a, size_t b)
{
	const struct event *x = &runs[a].events[runs[a].at], *y = &runs[b].events[runs[b].at];

	if (x->begin_ns == y->begin_ns && x->end_ns == y->end_ns)
		return a < b;
	return event_before(x, y);
}

static void heap_sink(struct run *runs, size_t place, size_t size)
{
	size_t child, moved = runs[place].heap;

	for (; (child = 2 * place + 1) < size; place = child) {
		if (child + 1 < size && heap_before(runs, runs[child + 1].heap, runs[child].heap))
			child++;
		if (!heap_before(runs, runs[child].heap, moved))
			break;
		runs[place].heap = runs[child].heap;
	}
	runs[place].heap = moved;
}

static void slice_merge(const struct slice *s, struct event *out)
{
	struct run *runs = s->runs, *top;
	size_t size = 0, i, done;

	for (i = 0; i < s->count; i++)
		if (runs[i].at < runs[i].until)
			runs[size++].heap = i;
	for (i = size / 2; i-- > 0;)
		heap_sink(runs, i, size);
	for (done = 0; done < s->total; done++) {
		top = &runs[runs[0].heap];
		out[done] = top->events[top->at++];
		if (top->at == top->until)
			runs[0].heap = runs[--size].heap;
		if (size)
			heap_sink(runs, 0, size);
	}
}

size_t merge_slice(struct run *runs, size_t count, struct event *out, size_t cap, size_t *lowest)
{
	struct mark mark = { 0 };
	struct slice s;
	struct run *r;
	size_t i;

	*lowest = count;
	if (!mark_find(runs, count, &mark))
		return 0;
	*lowest = mark.run;
	s = slice_find(runs, count, &mark);
	if (!s.total || s.total > cap)
		return 0;
	r = &runs[s.alone];
	if (r->until - r->at == s.total)
		memcpy(out, r->events + r->at, s.total * sizeof(*out));
	else if (slice_place(&s, out))
		slice_straighten(out, s.total);
	else
		slice_merge(&s, out);
	for (i = 0; i < count; i++)
		runs[i].at = runs[i].until;
	return s.total;
}

/* The source over sources */

enum {
	OUT_EVENTS = 4096, /* of all windows together, while they are not too many */
	GROUP_INPUTS = 32,
};

struct merge_input {
	struct source *source;
	struct clock_fit fit;
	struct event *events; /* the rest of its batch, beyond the window */
	size_t count;
	struct event last; /* times only: order must survive the rounding of a fit */
	bool has_fit, ended;
};

struct merge_source {
	struct source source;
	struct merge_input *inputs;
	struct run *runs;
	struct event *out;
	size_t count, window;
	size_t refill; /* the run whose slice was handed out last; count: none */
	enum status fault; /* the first, given at the end */
	struct error err;
};

uint64_t clock_fit_at(const struct clock_fit *fit, uint64_t t_ns)
{
	double away_ns = (double)(int64_t)(t_ns - fit->origin_ns) * fit->drift;
	int64_t shift_ns = fit->offset_ns + (int64_t)(away_ns + (away_ns < 0 ? -0.5 : 0.5));

	if (shift_ns < 0 && t_ns < 0 - (uint64_t)shift_ns)
		return 0;
	return t_ns + (uint64_t)shift_ns;
}

/* Two begins may become one, and then the longer would be second: it begins 1 ns later instead. */
static void fit_batch(struct merge_input *in)
{
	struct event *e = in->events, *end = e + in->count;

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

static void input_pull(struct merge_source *m, struct merge_input *in)
{
	struct batch batch;
	struct error err = { 0 };
	enum status status = source_next(in->source, &batch, &err);

	in->events = batch.events;
	in->count = status == ST_OK ? batch.count : 0;
	in->ended = status != ST_OK;
	if (in->ended && status != ST_END && !m->fault) {
		m->fault = status;
		m->err = err;
	}
	if (in->has_fit)
		fit_batch(in);
}

static void run_fill(struct merge_source *m, size_t index)
{
	struct merge_input *in = &m->inputs[index];
	struct run *r = &m->runs[index];

	while (!in->count && !in->ended)
		input_pull(m, in);
	*r = (struct run){ .events = in->events, .promise_ns = UINT64_MAX };
	r->count = in->count < m->window ? in->count : m->window;
	if (!r->count) /* nothing has come: events may be NULL */
		return;
	in->events += r->count;
	in->count -= r->count;
}

static enum status merge_next(struct source *source, struct batch *out, struct error *err)
{
	struct merge_source *m = (struct merge_source *)source;
	size_t total = 0, lowest = m->refill;
	enum status fault;

	while (!total) {
		if (lowest < m->count)
			run_fill(m, lowest);
		total = merge_slice(m->runs, m->count, m->out, m->window * m->count, &lowest);
		if (lowest == m->count)
			break;
	}
	m->refill = lowest;
	*out = (struct batch){ m->out, total };
	if (total)
		return ST_OK;
	fault = m->fault;
	if (!fault)
		return ST_END;
	m->fault = ST_OK;
	return fail(err, fault, m->err.at, "%s", m->err.text);
}

static void merge_close(struct source *source)
{
	struct merge_source *m = (struct merge_source *)source;
	size_t i;

	for (i = 0; i < m->count && m->inputs; i++)
		source_close(m->inputs[i].source);
	free(m->inputs);
	free(m->runs);
	free(m->out);
	free(m);
}

static const struct source_type merge_type = {
	.name = "merge",
	.help = "several sources as one",
	.next = merge_next,
	.close = merge_close,
};

static enum status merge_new(struct merge_source **out, size_t count, struct error *err)
{
	struct merge_source *m = calloc(1, sizeof(*m));

	*out = m;
	if (!m)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to merge %zu inputs", count);
	m->source.type = &merge_type;
	m->window = count && OUT_EVENTS / count > MERGE_WINDOW ? OUT_EVENTS / count : MERGE_WINDOW;
	m->refill = count; /* none */
	m->inputs = calloc(count + 1, sizeof(*m->inputs));
	m->runs = calloc(count + 1, sizeof(*m->runs));
	m->out = malloc((count * m->window + 1) * sizeof(*m->out));
	if (!m->inputs || !m->runs || !m->out)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to merge %zu inputs", count);
	return ST_OK;
}

static bool fit_is_empty(const struct clock_fit *fit)
{
	return !fit->offset_ns && fit->drift == 0;
}

static enum status fits_check(const struct clock_fit *fits, size_t count, struct error *err)
{
	size_t i;

	for (i = 0; fits && i < count; i++)
		if (!(fits[i].drift > -1e-3 && fits[i].drift < 1e-3))
			return fail(err, ST_FORMAT, NOWHERE,
				    "the clock of input %zu drifts by %g, 0.001 is too much", i,
				    fits[i].drift);
	return ST_OK;
}

static void close_all(struct source **inputs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		source_close(inputs[i]);
}

/* All inputs side by side; owns them, even on failure. */
static enum status merge_flat(struct source **out, struct source **inputs,
			      const struct clock_fit *fits, size_t count, struct error *err)
{
	struct merge_source *m = NULL;
	enum status status;
	size_t i;

	*out = NULL;
	if (count == 1 && (!fits || fit_is_empty(fits))) {
		*out = inputs[0];
		return ST_OK;
	}
	status = merge_new(&m, count, err);
	if (status != ST_OK) {
		close_all(inputs, count);
		if (m)
			merge_close(&m->source);
		return status;
	}
	m->count = count;
	for (i = 0; i < count; i++) {
		m->inputs[i].source = inputs[i];
		m->inputs[i].has_fit = fits && !fit_is_empty(&fits[i]);
		if (fits)
			m->inputs[i].fit = fits[i];
	}
	*out = &m->source;
	return ST_OK;
}

/*
 * Each slice looks at all inputs and ends where the first of them has no more at hand, after some
 * sixty events however many there are.  So many are merged in groups of neighbours, and the groups
 * after that: what comes is the same.
 */
static enum status merge_groups(struct source **out, struct source **inputs,
				const struct clock_fit *fits, size_t count, struct error *err)
{
	size_t groups = (count + GROUP_INPUTS - 1) / GROUP_INPUTS, made, done = 0;
	struct source **tops = calloc(groups, sizeof(*tops));
	enum status status = tops ? ST_OK : fail(err, ST_MEMORY, NOWHERE,
						 "no memory to merge %zu inputs", count);

	*out = NULL;
	for (made = 0; made < groups && status == ST_OK; made++) {
		size_t next = (made + 1) * count / groups;

		status = merge_flat(&tops[made], inputs + done, fits ? fits + done : NULL,
				    next - done, err);
		done = next;
	}
	if (status == ST_OK) {
		status = merge_flat(out, tops, NULL, groups, err);
	} else {
		for (size_t i = 0; tops && i < groups; i++)
			source_close(tops[i]);
		close_all(inputs + done, count - done);
	}
	free(tops);
	return status;
}

enum status merge_open(struct source **out, struct source **inputs, const struct clock_fit *fits,
		       size_t count, const struct budget *budget, struct error *err)
{
	enum status status = fits_check(fits, count, err);

	(void)budget; /* windows are smaller than any */
	*out = NULL;
	if (status != ST_OK) {
		close_all(inputs, count);
		return status;
	}
	return count > 2 * GROUP_INPUTS ? merge_groups(out, inputs, fits, count, err)
					: merge_flat(out, inputs, fits, count, err);
}

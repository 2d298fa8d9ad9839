/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include "convert/detail/parts.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS = 4000, KINDS = KIND_END, TRACKS = 4 };

struct scene {
	struct trace *trace;
	uint32_t thread, stream, counter, pool, name_a, name_b;
	struct event events[EVENTS];
	size_t count;
};

static void scene_init(struct scene *s)
{
	struct process p = { .pid = 10, .rank = 0 };
	uint32_t process;

	memset(s, 0, sizeof(*s));
	CHECK_OK(trace_new(&s->trace, 16 << 20, NULL), NULL);
	process = trace_process(s->trace, &p, NULL);
	s->thread = trace_track(s->trace, &(struct track){ HOME_THREAD, process, 0, NO_ID, NO_ID, 1,
							   0 }, NULL);
	s->stream = trace_track(s->trace, &(struct track){ HOME_STREAM, process, 0, 0, 1, 7, 0 },
				NULL);
	s->counter = trace_track(s->trace, &(struct track){ HOME_COUNTER, process, 0, 0, NO_ID, 0,
							    0 }, NULL);
	s->pool = trace_track(s->trace, &(struct track){ HOME_POOL, process, 0, 0, NO_ID, 1, 0 },
			      NULL);
	s->name_a = trace_name(s->trace, "aten::mm", 8, NULL);
	s->name_b = trace_name(s->trace, "sgemm", 5, NULL);
}

static struct event *add(struct scene *s, unsigned kind, uint32_t track, uint64_t begin_ns,
			 uint64_t end_ns)
{
	struct event *e = &s->events[s->count++];

	*e = (struct event){ .begin_ns = begin_ns, .end_ns = end_ns, .kind = (uint8_t)kind,
			     .track = track, .name = s->name_a };
	if (kind == KIND_RANGE)
		e->subkind = RANGE_OP;
	if (event_is_gpu_work(e))
		e->name = s->name_b;
	return e;
}

static int compare(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return event_before(x, y) ? -1 : event_before(y, x) ? 1 : x->track < y->track ? -1 : 1;
}

/* All at one level; NULL and a failed check where it cannot be opened. */
static struct source *detail_of(struct scene *s, unsigned fine, enum status fault)
{
	static uint16_t levels[2];
	static const struct budget budget = { .opening = 1 << 20, .resident = 1 << 16,
					      .scratch = "/tmp" };
	struct detail_request how = { .levels = levels, .level_count = 2, .name_bytes = 1 << 16,
				      .budget = &budget };
	struct source *below, *top = NULL;
	struct error err = { 0 };

	levels[0] = levels[1] = (uint16_t)fine;
	qsort(s->events, s->count, sizeof(*s->events), compare);
	CHECK_OK(array_source_fail(&below, s->events, s->count, 7, fault), NULL);
	CHECK_OK(detail_open(&top, below, s->trace, &how, &err), &err);
	return top;
}

/* ---- levels ---- */

void test_detail_classes(void)
{
	for (unsigned level = 1; level < DETAIL_LEVELS; level++) {
		CHECK_U64(detail_class(detail_floor_ns(level)), level);
		CHECK_U64(detail_class(detail_floor_ns(level) - 1), level - 1);
	}
	CHECK_U64(detail_class(UINT64_MAX), DETAIL_LEVELS - 1);
}

void test_detail_cells(void)
{
	uint64_t state = 5;

	for (int i = 0; i < 2000; i++) {
		uint64_t a = random_u64(&state) >> (2 + i % 60), b = a + (random_u64(&state) >> (2 + i % 60));
		unsigned class = detail_cell_class(a, b);

		for (unsigned level = 0; b >= a && level < DETAIL_LEVELS - 8; level++) {
			unsigned shift = detail_cell_shift(level);
			bool differ = a >> shift != b >> shift;

			if (!CHECK(differ == (level < class)))
				return;
		}
	}
}

/* ---- sums ---- */

struct sums {
	uint64_t count[TRACKS + 1][KINDS], ns[TRACKS + 1][KINDS];
};

static void sums_add(const struct scene *s, const struct event *e, struct sums *out)
{
	uint64_t count = 1, ns = e->end_ns - e->begin_ns;

	if (e->flags & EVENT_STANDS_FOR) {
		const struct shape *shape = trace_get_shape(s->trace, e->shape);

		CHECK_U64(shape->vary_count, 3);
		CHECK_STR(trace_text(s->trace, shape->vary[0].key, NULL), DETAIL_COUNT_KEY);
		count = e->vary[0];
		ns = e->vary[1];
		CHECK(e->vary[2] <= ns && ns <= e->vary[2] * count);
	}
	out->count[e->track][e->kind] += count;
	out->ns[e->track][e->kind] += ns;
}

/* Ranges with calls in them on a thread, kernels on a stream, gaps of all lengths. */
static void scene_fill(struct scene *s, uint64_t seed)
{
	uint64_t state = seed, at = 1000000, gpu = 1000500;

	while (s->count + 4 < EVENTS) {
		uint64_t len = random_u64(&state) >> (40 + random_u64(&state) % 23), third = len / 3;

		add(s, KIND_RANGE, s->thread, at, at + len);
		add(s, KIND_API, s->thread, at + third / 2, at + third);
		add(s, KIND_API, s->thread, at + third * 2, at + third * 2 + third / 2);
		at += len + (random_u64(&state) >> (44 + random_u64(&state) % 20));
		gpu = gpu > at ? gpu : at;
		len = random_u64(&state) >> (40 + random_u64(&state) % 23);
		add(s, KIND_KERNEL, s->stream, gpu, gpu + len);
		gpu += len;
	}
	qsort(s->events, s->count, sizeof(*s->events), compare);
}

struct outcome {
	struct sums sums;
	size_t events, kept_long, crossings;
	bool in_order;
};

static void look_at(const struct scene *s, const struct event *e, unsigned level,
		    struct outcome *out, uint64_t open[64], unsigned *depth)
{
	sums_add(s, e, &out->sums);
	out->events++;
	out->kept_long += !(e->flags & EVENT_STANDS_FOR) &&
			  e->end_ns - e->begin_ns >= detail_floor_ns(level);
	if (e->track != s->thread)
		return;
	while (*depth && open[*depth - 1] <= e->begin_ns)
		--*depth;
	out->crossings += *depth && e->end_ns > open[*depth - 1];
	if (*depth < 64)
		open[(*depth)++] = e->end_ns;
}

static struct outcome outcome_of(struct scene *s, unsigned fine)
{
	struct outcome out = { .in_order = true };
	struct source *top = detail_of(s, fine, ST_END);
	struct event last = { 0 };
	uint64_t open[64];
	unsigned depth = 0;
	struct batch batch;

	while (top && source_next(top, &batch, NULL) == ST_OK)
		for (size_t i = 0; i < batch.count; i++) {
			out.in_order &= !event_before(&batch.events[i], &last);
			last = batch.events[i];
			look_at(s, &batch.events[i], (fine + DETAIL_FINE - 1) / DETAIL_FINE, &out,
				open, &depth);
		}
	source_close(top);
	return out;
}

/* What the count foretells is what comes, more or less. */
static void check_count(const struct detail_count *c, unsigned fine, size_t events)
{
	struct detail_left left = detail_count_at(c, 1, fine);
	double foretold = (double)(left.kept + left.made);

	CHECK_F64(foretold, (double)events, (double)events * 0.15 + 8);
}

void test_detail_sums(void)
{
	static const unsigned fine[] = { 16, 64, 20 * 64, 40 * 64 + 1, 60 * 64 + 32, 79 * 64 + 63,
					 DETAIL_MOST };
	struct scene *s = calloc(1, sizeof(*s));
	struct detail_count *c;
	struct outcome all;

	scene_init(s);
	scene_fill(s, 99);
	CHECK_OK(detail_count_new(&c, s->trace, NULL), NULL);
	CHECK_OK(detail_count_put(c, s->events, s->count, NULL), NULL);
	all = outcome_of(s, 0);
	CHECK_U64(all.events, s->count);
	CHECK_U64(detail_count_at(c, 0, 0).kept, s->count);
	for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++) {
		struct outcome out = outcome_of(s, fine[i]);
		size_t longs = 0;

		for (size_t k = 0; k < s->count; k++)
			longs += s->events[k].end_ns - s->events[k].begin_ns >=
				 detail_floor_ns((fine[i] + DETAIL_FINE - 1) / DETAIL_FINE);
		CHECK_MEM(&out.sums, &all.sums, sizeof(out.sums));
		CHECK(out.kept_long >= longs);
		CHECK_U64(out.crossings, 0);
		CHECK(out.in_order);
		CHECK(out.events < all.events);
		check_count(c, fine[i], out.events);
	}
	CHECK(outcome_of(s, DETAIL_MOST).events <= 4);
	detail_count_free(c);
	trace_free(s->trace);
	free(s);
}

/* Merged ones are merged again: what they stand for stays. */
void test_detail_again(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	static uint64_t words[EVENTS][3];
	struct outcome first, second;
	struct source *top;
	struct batch batch;
	size_t n = 0;

	scene_init(s);
	scene_fill(s, 7);
	first = outcome_of(s, 30 * DETAIL_FINE);
	top = detail_of(s, 30 * DETAIL_FINE, ST_END);
	struct scene *t = calloc(1, sizeof(*t));
	*t = *s;
	while (source_next(top, &batch, NULL) == ST_OK)
		for (size_t i = 0; i < batch.count; i++, n++) {
			t->events[n] = batch.events[i];
			if (batch.events[i].vary)
				t->events[n].vary = memcpy(words[n], batch.events[i].vary,
							   sizeof(words[n]));
		}
	source_close(top);
	t->count = n;
	second = outcome_of(t, 60 * DETAIL_FINE);
	CHECK_MEM(&second.sums, &first.sums, sizeof(first.sums));
	CHECK(second.events < first.events);
	trace_free(s->trace);
	free(t);
	free(s);
}

/* ---- what else is in a trace ---- */

static size_t take(struct source *top, struct event *out, size_t most)
{
	struct batch batch;
	size_t n = 0;

	while (source_next(top, &batch, NULL) == ST_OK)
		for (size_t i = 0; i < batch.count && n < most; i++)
			out[n++] = batch.events[i];
	return n;
}

void test_detail_names(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct event out[8];
	struct source *top;
	size_t n;

	scene_init(s);
	for (uint64_t i = 0; i < 3; i++)
		add(s, KIND_KERNEL, s->stream, 1000 + i * 20, 1010 + i * 20);
	s->events[1].name = s->name_a;
	add(s, KIND_KERNEL, s->stream, 2000, 9000);
	top = detail_of(s, detail_class(1000) * DETAIL_FINE, ST_END);
	n = take(top, out, 8);
	if (CHECK_U64(n, 2)) {
		CHECK_STR(trace_text(s->trace, out[0].name, NULL), "sgemm + 2 more");
		CHECK_U64(out[0].begin_ns, 1000);
		CHECK_U64(out[0].end_ns, 1050);
		CHECK_U64(out[1].name, s->name_b);
	}
	CHECK_U64(detail_totals(top, 0).merged, 3);
	CHECK_U64(detail_totals(top, 1).into, 1);
	CHECK_U64(trace_lost(s->trace, 1, LOSS_SUMMED), 2);
	CHECK(trace_find_attr(s->trace, trace_get_process(s->trace, 1)->shape, DETAIL_NOTE_KEY));
	source_close(top);
	trace_free(s->trace);
	free(s);
}

void test_detail_arrows(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct event out[8];
	struct source *top;

	scene_init(s);
	add(s, KIND_API, s->thread, 1000, 1010)->correlation = 1; /* merged, its kernel is kept */
	add(s, KIND_API, s->thread, 1015, 1025)->correlation = 2;
	add(s, KIND_API, s->thread, 2000, 8000)->correlation = 3; /* both are kept */
	add(s, KIND_KERNEL, s->stream, 9000, 19000)->correlation = 1;
	add(s, KIND_KERNEL, s->stream, 19000, 29000)->correlation = 3;
	top = detail_of(s, detail_class(1000) * DETAIL_FINE, ST_END);
	if (CHECK_U64(take(top, out, 8), 4)) {
		CHECK_U64(out[0].correlation, 0);
		CHECK_U64(out[1].correlation, 3);
		CHECK_U64(out[2].correlation, 0);
		CHECK_U64(out[3].correlation, 3);
	}
	CHECK_U64(detail_totals(top, 0).arrows, 1);
	source_close(top);
	trace_free(s->trace);
	free(s);
}

void test_detail_kept(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct event out[16];
	struct source *top;
	size_t n;

	scene_init(s);
	for (uint64_t i = 0; i < 4; i++) {
		add(s, KIND_STEP, s->thread, 1000 + i * 20, 1010 + i * 20)->number = i;
		add(s, KIND_RANGE, s->thread, 1001 + i * 20, 1002 + i * 20)->subkind = RANGE_PHASE;
		add(s, KIND_MEMCPY, s->stream, 1000 + i * 20, 1010 + i * 20)->bytes =
			i == 2 ? 1 << 30 : 4;
	}
	top = detail_of(s, detail_class(1000000) * DETAIL_FINE, ST_END);
	n = take(top, out, 16);
	CHECK_U64(n, 4 + 4 + 3); /* copies: the large one, the two before, the one after */
	source_close(top);
	trace_free(s->trace);
	free(s);
}

void test_detail_samples(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	double low = 1e9, high = -1, most = 0;
	struct event out[64];
	struct source *top;
	int64_t bytes = 0;
	uint64_t peak = 0;
	size_t n;

	scene_init(s);
	for (uint64_t i = 0; i < 200; i++) {
		struct event *e = add(s, KIND_COUNTER, s->counter, (1 << 20) + i, (1 << 20) + i);

		e->value = (double)(i * 7919 % 1000);
		most = e->value > most ? e->value : most;
		e = add(s, i % 3 ? KIND_ALLOC : KIND_FREE, s->pool, (1 << 20) + i, (1 << 20) + i);
		e->bytes = 64;
	}
	top = detail_of(s, detail_class(1 << 20) * DETAIL_FINE, ST_END);
	n = take(top, out, 64);
	CHECK(n <= 4);
	for (size_t i = 0; i < n; i++) {
		const struct event *e = &out[i];

		if (e->kind == KIND_COUNTER) {
			low = e->value < low ? e->value : low;
			high = e->value > high ? e->value : high;
			continue;
		}
		bytes += e->kind == KIND_ALLOC ? (int64_t)e->bytes : -(int64_t)e->bytes;
		peak = bytes > (int64_t)peak ? (uint64_t)bytes : peak;
	}
	CHECK_F64(low, 0, 0);
	CHECK_F64(high, most, 0);
	CHECK_I64(bytes, 64 * (133 - 67));
	CHECK_U64(peak, 64 * (133 - 67));
	source_close(top);
	trace_free(s->trace);
	free(s);
}

/* What was read before a fault is given, then the fault, then the end. */
void test_detail_fault(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct error err = { 0 };
	struct source *top;
	struct batch batch;

	scene_init(s);
	add(s, KIND_KERNEL, s->stream, 1000, 1010);
	add(s, KIND_KERNEL, s->stream, 1011, 1020);
	top = detail_of(s, 80 * DETAIL_FINE, ST_CUT);
	CHECK_U64(source_next(top, &batch, &err), ST_OK);
	CHECK_U64(batch.count, 1);
	CHECK_U64(source_next(top, &batch, &err), ST_CUT);
	CHECK_U64(source_next(top, &batch, &err), ST_END);
	source_close(top);
	CHECK_U64((uint64_t)array_sources_open(), 0);
	trace_free(s->trace);
	free(s);
}

void test_detail_set(void)
{
	struct detail_set set = { 0 };
	uint64_t state = 3;

	for (uint64_t i = 0; i < 100000; i++)
		detail_set_add(&set, 1 + i % 2, IDS_FLOW, i * 3);
	for (uint64_t i = 0; i < 100000; i++)
		if (!CHECK(detail_set_has(&set, 1 + i % 2, IDS_FLOW, i * 3)))
			break;
	CHECK(!detail_set_has(&set, 2, IDS_FLOW, 0));
	CHECK(!detail_set_has(&set, 1, IDS_MERGED_GPU, 0));
	CHECK(!detail_set_has(&set, 1, IDS_FLOW, 1));
	for (int i = 0; i < 300000; i++) /* far apart: there is a ceiling */
		detail_set_add(&set, 1, IDS_FLOW, random_u64(&state));
	CHECK(set.room <= 1 << 18);
	detail_set_release(&set);
}

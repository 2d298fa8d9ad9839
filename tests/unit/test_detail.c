/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include "convert/stage/lod/internal.h"

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
	s->thread = trace_track(
		s->trace, &(struct track){ TRACK_THREAD, process, 0, NO_ID, NO_ID, 1, 0 }, NULL);
	s->stream = trace_track(s->trace, &(struct track){ TRACK_STREAM, process, 0, 0, 1, 7, 0 },
				NULL);
	s->counter = trace_track(
		s->trace, &(struct track){ TRACK_COUNTER, process, 0, 0, NO_ID, 0, 0 }, NULL);
	s->pool = trace_track(s->trace,
			      &(struct track){ TRACK_ALLOCATOR, process, 0, 0, NO_ID, 1, 0 }, NULL);
	s->name_a = trace_name(s->trace, "aten::mm", 8, NULL);
	s->name_b = trace_name(s->trace, "sgemm", 5, NULL);
}

static struct event *add(struct scene *s, unsigned kind, uint32_t track, uint64_t begin_ns,
			 uint64_t end_ns)
{
	struct event *e = &s->events[s->count++];

	*e = (struct event){ .begin_ns = begin_ns,
			     .end_ns = end_ns,
			     .kind = (uint8_t)kind,
			     .track = track,
			     .name = s->name_a };
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

/* All at one threshold; NULL and a failed check where it cannot be opened. */
static struct source *lod_of(struct scene *s, uint64_t min_ns, enum status fault)
{
	static uint64_t thresholds[2];
	static const struct budget budget = { .opening = 1 << 20,
					      .resident = 1 << 16,
					      .scratch = "/tmp" };
	struct lod_request how = { .min_ns = thresholds, .count = 2, .budget = &budget };
	struct source *below, *top = NULL;
	struct error err = { 0 };

	thresholds[0] = thresholds[1] = min_ns;
	qsort(s->events, s->count, sizeof(*s->events), compare);
	CHECK_OK(array_source_fail(&below, s->events, s->count, 7, fault), NULL);
	CHECK_OK(lod_open(&top, below, s->trace, &how, &err), &err);
	return top;
}

/* ---- thresholds ---- */

/* At any instant it is within an eighth, and over time it takes all values between. */
void test_lod_thresholds(void)
{
	uint64_t state = 5;

	CHECK_U64(lod_threshold_ns(0, 12345), 0);
	CHECK_U64(lod_all_from_ns(0), 0);
	for (uint64_t min_ns = 1; min_ns < LOD_MOST_NS / 3; min_ns *= 3) {
		uint64_t low = UINT64_MAX, high = 0;

		for (uint64_t i = 0; i < 1000; i++) {
			uint64_t at = i % 2 ? random_u64(&state) : min_ns * 64 * i;
			uint64_t ns = lod_threshold_ns(min_ns, at);

			low = ns < low ? ns : low;
			high = ns > high ? ns : high;
		}
		CHECK(low >= min_ns && high < lod_all_from_ns(min_ns));
		CHECK(low <= min_ns + min_ns / 64);
		CHECK(min_ns > 1 << 20 || high >= min_ns + min_ns / 9);
	}
	CHECK(lod_all_from_ns(LOD_MOST_NS) > LOD_MOST_NS);
	CHECK_U64(lod_threshold_ns(LOD_MOST_NS, 1700000000000000000), LOD_MOST_NS);
}

/* Events of one length are not all kept at one threshold and all merged at the next. */
void test_lod_even(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	size_t last = EVENTS, steps = 0;

	scene_init(s);
	for (uint64_t i = 0; i < EVENTS; i++)
		add(s, KIND_KERNEL, s->stream, i * 2000, i * 2000 + 1000);
	for (uint64_t min_ns = 870; min_ns <= 1010; min_ns += 20) {
		struct source *top = lod_of(s, min_ns, ST_END);
		size_t kept = (size_t)lod_totals(top, 0).kept;

		CHECK(kept <= last);
		steps += kept != last;
		last = kept;
		source_close(top);
	}
	CHECK(steps >= 5);
	CHECK_U64(last, 0);
	trace_free(s->trace);
	free(s);
}

/* ---- sums ---- */

struct sums {
	uint64_t count[TRACKS + 1][KINDS], ns[TRACKS + 1][KINDS];
};

static void sums_add(const struct scene *s, const struct event *e, struct sums *out)
{
	uint64_t count = 1, ns = e->end_ns - e->begin_ns;

	if (e->flags & EVENT_STANDS_FOR) {
		const struct arg_schema *schema = trace_get_schema(s->trace, e->schema);

		CHECK_U64(schema->arg_count, 3);
		CHECK_STR(trace_text(s->trace, schema->args[0].key, NULL), LOD_COUNT_KEY);
		count = e->args[0];
		ns = e->args[1];
		CHECK(e->args[2] <= ns && ns <= e->args[2] * count);
	}
	out->count[e->track][e->kind] += count;
	out->ns[e->track][e->kind] += ns;
}

/* Ranges with calls in them on a thread, kernels on a stream, gaps of all lengths. */
static void scene_fill(struct scene *s, uint64_t seed)
{
	uint64_t state = seed, at = 1000000, gpu = 1000500;

	while (s->count + 4 < EVENTS) {
		uint64_t len = random_u64(&state) >> (40 + random_u64(&state) % 23),
			 third = len / 3;

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

static void look_at(const struct scene *s, const struct event *e, uint64_t from_ns,
		    struct outcome *out, uint64_t open[64], unsigned *depth)
{
	sums_add(s, e, &out->sums);
	out->events++;
	out->kept_long += !(e->flags & EVENT_STANDS_FOR) && e->end_ns - e->begin_ns >= from_ns;
	if (e->track != s->thread)
		return;
	while (*depth && open[*depth - 1] <= e->begin_ns)
		--*depth;
	out->crossings += *depth && e->end_ns > open[*depth - 1];
	if (*depth < 64)
		open[(*depth)++] = e->end_ns;
}

static struct outcome outcome_of(struct scene *s, uint64_t min_ns)
{
	struct outcome out = { .in_order = true };
	struct source *top = lod_of(s, min_ns, ST_END);
	struct event last = { 0 };
	uint64_t open[64];
	unsigned depth = 0;
	struct batch batch;

	while (top && source_next(top, &batch, NULL) == ST_OK)
		for (size_t i = 0; i < batch.count; i++) {
			out.in_order &= !event_before(&batch.events[i], &last);
			last = batch.events[i];
			look_at(s, &batch.events[i], lod_all_from_ns(min_ns), &out, open, &depth);
		}
	source_close(top);
	return out;
}

void test_lod_sums(void)
{
	static const uint64_t min_ns[] = { 1, 7, 100, 5000, 200000, 3333333, LOD_MOST_NS };
	struct scene *s = calloc(1, sizeof(*s));
	struct outcome all;

	scene_init(s);
	scene_fill(s, 99);
	all = outcome_of(s, 0);
	CHECK_U64(all.events, s->count);
	for (size_t i = 0; i < sizeof(min_ns) / sizeof(*min_ns); i++) {
		struct outcome out = outcome_of(s, min_ns[i]);
		size_t longs = 0;

		for (size_t k = 0; k < s->count; k++)
			longs += s->events[k].end_ns - s->events[k].begin_ns >=
				 lod_all_from_ns(min_ns[i]);
		CHECK_MEM(&out.sums, &all.sums, sizeof(out.sums));
		CHECK(out.kept_long >= longs);
		CHECK_U64(out.crossings, 0);
		CHECK(out.in_order);
		CHECK(out.events < all.events || min_ns[i] < 100);
	}
	CHECK(outcome_of(s, LOD_MOST_NS).events <= 4);
	trace_free(s->trace);
	free(s);
}

/* Merged ones are merged again: what they stand for stays. */
void test_lod_again(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	static uint64_t words[EVENTS][3];
	struct outcome first, second;
	struct source *top;
	struct batch batch;
	size_t n = 0;

	scene_init(s);
	scene_fill(s, 7);
	first = outcome_of(s, 500);
	top = lod_of(s, 500, ST_END);
	struct scene *t = calloc(1, sizeof(*t));
	*t = *s;
	while (source_next(top, &batch, NULL) == ST_OK)
		for (size_t i = 0; i < batch.count; i++, n++) {
			t->events[n] = batch.events[i];
			if (batch.events[i].args)
				t->events[n].args =
					memcpy(words[n], batch.events[i].args, sizeof(words[n]));
		}
	source_close(top);
	t->count = n;
	second = outcome_of(t, 100000);
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

void test_lod_names(void)
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
	top = lod_of(s, 1000, ST_END);
	n = take(top, out, 8);
	if (CHECK_U64(n, 2)) {
		CHECK_STR(trace_text(s->trace, out[0].name, NULL), "sgemm + more");
		CHECK_U64(out[0].begin_ns, 1000);
		CHECK_U64(out[0].end_ns, 1050);
		CHECK_U64(out[1].name, s->name_b);
	}
	CHECK_U64(lod_totals(top, 0).merged, 3);
	CHECK_U64(lod_totals(top, 1).into, 1);
	CHECK_U64(trace_lost(s->trace, 1, LOSS_SUMMED), 2);
	CHECK(trace_find_attr(s->trace, trace_get_process(s->trace, 1)->schema, LOD_NOTE_KEY));
	source_close(top);
	trace_free(s->trace);
	free(s);
}

void test_lod_arrows(void)
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
	top = lod_of(s, 1000, ST_END);
	if (CHECK_U64(take(top, out, 8), 4)) {
		CHECK_U64(out[0].correlation, 0);
		CHECK_U64(out[1].correlation, 3);
		CHECK_U64(out[2].correlation, 0);
		CHECK_U64(out[3].correlation, 3);
	}
	CHECK_U64(lod_totals(top, 0).arrows, 1);
	source_close(top);
	trace_free(s->trace);
	free(s);
}

void test_lod_kept(void)
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
	top = lod_of(s, 1000000, ST_END);
	n = take(top, out, 16);
	CHECK_U64(n, 4 + 4 + 3); /* copies: the large one, the two before, the one after */
	source_close(top);
	trace_free(s->trace);
	free(s);
}

void test_lod_samples(void)
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
	top = lod_of(s, 1 << 20, ST_END);
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
void test_lod_fault(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct error err = { 0 };
	struct source *top;
	struct batch batch;

	scene_init(s);
	add(s, KIND_KERNEL, s->stream, 1000, 1010);
	add(s, KIND_KERNEL, s->stream, 1011, 1020);
	top = lod_of(s, 1000000, ST_TRUNCATED);
	CHECK_U64(source_next(top, &batch, &err), ST_OK);
	CHECK_U64(batch.count, 1);
	CHECK_U64(source_next(top, &batch, &err), ST_TRUNCATED);
	CHECK_U64(source_next(top, &batch, &err), ST_END);
	source_close(top);
	CHECK_U64((uint64_t)array_sources_open(), 0);
	trace_free(s->trace);
	free(s);
}

void test_lod_ids(void)
{
	struct map ids = { 0 };
	uint64_t state = 3;

	for (uint64_t i = 0; i < 100000; i++)
		lod_note_id(&ids, 1 + i % 2, IDS_FLOW, i * 3);
	for (uint64_t i = 0; i < 100000; i++)
		if (!CHECK(lod_has_id(&ids, 1 + i % 2, IDS_FLOW, i * 3)))
			break;
	CHECK(!lod_has_id(&ids, 2, IDS_FLOW, 0));
	CHECK(!lod_has_id(&ids, 1, IDS_MERGED_GPU, 0));
	CHECK(!lod_has_id(&ids, 1, IDS_FLOW, 1));
	for (int i = 0; i < LOD_IDS_MOST + 1000; i++) /* far apart: there is a ceiling */
		lod_note_id(&ids, 1, IDS_FLOW, random_u64(&state));
	CHECK_U64(ids.count, LOD_IDS_MOST);
	CHECK(lod_has_id(&ids, 1, IDS_FLOW, 0));
	map_release(&ids);
}

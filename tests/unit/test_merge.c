/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include "convert/spool/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MOST = 100 };

/* Runs of random events, each in order; `subkind` says which run, `name` the place in it. */
struct runs {
	struct event *events[RUNS_MOST];
	size_t counts[RUNS_MOST], count, total;
};

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (event_before(x, y) != event_before(y, x))
		return event_before(x, y) ? -1 : 1;
	if (x->subkind != y->subkind)
		return x->subkind < y->subkind ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static void runs_init(struct runs *r, size_t count, size_t most, uint64_t span_ns, uint64_t seed)
{
	uint64_t random = seed;
	size_t i, j;

	r->count = count;
	r->total = 0;
	for (i = 0; i < count; i++) {
		r->counts[i] = random_u64(&random) % (most + 1);
		r->total += r->counts[i];
		r->events[i] = calloc(r->counts[i] + 1, sizeof(struct event));
		for (j = 0; j < r->counts[i]; j++) {
			struct event *e = &r->events[i][j];

			e->begin_ns = 1000 + random_u64(&random) % span_ns;
			/* A few events are far away from the others. */
			if (random_u64(&random) % 500 == 0)
				e->begin_ns += UINT64_C(1) << 60;
			e->end_ns = e->begin_ns + random_u64(&random) % 3;
			e->subkind = (uint8_t)i;
		}
		qsort(r->events[i], r->counts[i], sizeof(struct event), by_time);
		for (j = 0; j < r->counts[i]; j++)
			r->events[i][j].name = (uint32_t)j;
	}
}

static struct event *runs_sorted(const struct runs *r)
{
	struct event *all = calloc(r->total + 1, sizeof(*all));
	size_t i, at = 0;

	for (i = 0; i < r->count; i++) {
		memcpy(all + at, r->events[i], r->counts[i] * sizeof(*all));
		at += r->counts[i];
	}
	qsort(all, r->total, sizeof(*all), by_time);
	return all;
}

static void runs_release(struct runs *r)
{
	size_t i;

	for (i = 0; i < r->count; i++)
		free(r->events[i]);
}

static struct source *merge_of(const struct runs *r, const struct clock_fit *fits, size_t batch)
{
	struct run_input inputs[RUNS_MOST] = { { .path = NULL } };
	struct source *merged = NULL;
	struct error err = { 0 };

	for (size_t i = 0; i < r->count; i++) {
		CHECK_OK(array_source_open(&inputs[i].source, r->events[i], r->counts[i], batch),
			 NULL);
		if (fits)
			inputs[i].fit = fits[i];
	}
	CHECK_OK(merge_open(&merged, inputs, r->count, NULL, NULL, &err), &err);
	return merged;
}

static void sources_check(size_t count, size_t most, uint64_t span_ns, size_t batch)
{
	struct event *want, *got;
	struct source *merged;
	struct runs r;
	size_t n;

	runs_init(&r, count, most, span_ns, 99);
	want = runs_sorted(&r);
	merged = merge_of(&r, NULL, batch);
	got = events_of(merged, &n);
	CHECK_U64(n, r.total);
	CHECK(got && n == r.total && memcmp(got, want, n * sizeof(*got)) == 0);
	source_close(merged);
	CHECK_U64((uint64_t)array_sources_open(), 0);
	free(want);
	free(got);
	runs_release(&r);
}

void test_merge_sources(void)
{
	sources_check(0, 0, 1, 1);
	sources_check(1, 100, 1000, 7);
	sources_check(3, 5000, 100000, 256);
	sources_check(3, 5000, 2, 10000);
	sources_check(100, 300, 1000000, 1);
	sources_check(65, 200, 20, 64);
}

/* Batches end where an input has no more, so their sizes must not change what comes. */
void test_merge_batches(void)
{
	sources_check(1, 1000, 100000, 64);
	sources_check(2, 1000, 10, 1);
	sources_check(17, 300, UINT64_C(1) << 40, 32);
	sources_check(100, 100, 1000, 7);
	sources_check(64, 2000, 100000000, 500);
	sources_check(5, 0, 1, 4);
	/* Ties across many inputs are decided by the input's number. */
	sources_check(100, 300, 2, 5);
	sources_check(100, 100, 1, 7);
}

/* Offsets and drifts: times move, nothing is lost, order holds. */
void test_merge_clocks(void)
{
	struct clock_fit fits[3] = { { .offset_ns = -900 },
				     { .drift = -9e-4, .origin_ns = 1000 },
				     { .offset_ns = 50, .drift = 9e-4 } };
	struct source *merged;
	struct event *got;
	struct runs r;
	size_t n, i, bad = 0;

	runs_init(&r, 3, 20000, 100000, 5);
	merged = merge_of(&r, fits, 64);
	got = events_of(merged, &n);
	CHECK_U64(n, r.total);
	for (i = 0; got && i < n; i++) {
		const struct event *from = &r.events[got[i].subkind][got[i].name];

		bad += i && event_before(&got[i], &got[i - 1]);
		bad += got[i].end_ns < got[i].begin_ns;
		if (got[i].subkind == 0)
			bad += got[i].begin_ns != from->begin_ns - 900;
		if (got[i].subkind == 1 && from->begin_ns < 1000000)
			bad += from->begin_ns - got[i].begin_ns > 100;
	}
	CHECK_U64(bad, 0);
	source_close(merged);
	free(got);
	runs_release(&r);
}

void test_merge_refuses_drift(void)
{
	struct run_input inputs[2] = { { .path = NULL }, { .fit = { .drift = 2e-3 } } };
	struct source *merged;
	struct error err = { 0 };

	CHECK_OK(array_source_open(&inputs[0].source, NULL, 0, 1), NULL);
	CHECK_OK(array_source_open(&inputs[1].source, NULL, 0, 1), NULL);
	CHECK_U64(merge_open(&merged, inputs, 2, NULL, NULL, &err), ST_FORMAT);
	CHECK(merged == NULL);
	CHECK_U64((uint64_t)array_sources_open(), 0);
}

struct faults {
	unsigned count;
	char path[8];
	struct error last;
};

static void take_fault(void *self, const char *path, const struct error *why)
{
	struct faults *f = self;

	f->count++;
	snprintf(f->path, sizeof(f->path), "%s", path);
	f->last = *why;
}

/* The others go on to their ends; the fault is told once, with the path of its input. */
void test_merge_fault(void)
{
	struct event events[4] = { { .begin_ns = 1, .end_ns = 1 },
				   { .begin_ns = 2, .end_ns = 2 },
				   { .begin_ns = 8, .end_ns = 8 },
				   { .begin_ns = 9, .end_ns = 9 } };
	struct run_input inputs[2] = { { .path = "a" }, { .path = "b" } };
	struct faults faults = { 0 };
	struct source *merged;
	struct error err = { 0 };
	struct batch batch;
	enum status status;
	size_t n = 0;

	CHECK_OK(array_source_fail(&inputs[0].source, events, 2, 1, ST_TRUNCATED), NULL);
	CHECK_OK(array_source_open(&inputs[1].source, events, 4, 3), NULL);
	CHECK_OK(merge_open(&merged, inputs, 2, take_fault, &faults, &err), &err);
	while ((status = source_next(merged, &batch, &err)) == ST_OK)
		n += batch.count;
	CHECK_U64(n, 6);
	CHECK_U64(status, ST_END);
	CHECK_U64(faults.count, 1);
	CHECK_STR(faults.path, "a");
	CHECK_U64(faults.last.status, ST_TRUNCATED);
	CHECK_STR(faults.last.text, "the array source was told to fail");
	CHECK_U64(source_next(merged, &batch, &err), ST_END);
	source_close(merged);
}

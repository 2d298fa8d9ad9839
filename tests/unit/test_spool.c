/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include "convert/spool/spool.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { ARG = 3 };

/* What goes in, and what a plain sort makes of it. */
struct model {
	struct trace *trace;
	struct event *events;
	uint32_t *groups;
	size_t *order; /* by qsort */
	uint64_t *words;
	size_t count;
	uint32_t schema; /* with VARY keys */
};

static const struct model *sorting; /* qsort has no argument of its own */

static int model_compare(const void *a, const void *b)
{
	size_t i = *(const size_t *)a, j = *(const size_t *)b;
	const struct event *x = &sorting->events[i], *y = &sorting->events[j];

	if (sorting->groups[i] != sorting->groups[j])
		return sorting->groups[i] < sorting->groups[j] ? -1 : 1;
	if (event_before(x, y) != event_before(y, x))
		return event_before(x, y) ? -1 : 1;
	return i < j ? -1 : i > j;
}

static uint32_t arg_schema_only(struct trace *t, uint32_t keys)
{
	struct attr *args = calloc(keys, sizeof(*args));
	struct arg_schema schema = { .args = args, .arg_count = keys };
	uint32_t i, id;

	for (i = 0; i < keys; i++)
		args[i].key = i + 1;
	id = trace_schema(t, &schema, NULL);
	free(args);
	return id;
}

static void model_event(struct model *m, size_t i, uint64_t span_ns, uint32_t groups,
			uint64_t *random)
{
	struct event *e = &m->events[i];
	uint64_t bits = random_u64(random);

	e->begin_ns = UINT64_C(1700000000000000000) + random_u64(random) % span_ns;
	e->end_ns = e->begin_ns + (bits & 3 ? bits >> 8 & 7 : 0);
	e->name = (uint32_t)i; /* tells events apart that are otherwise equal */
	e->track = (uint32_t)(bits >> 16 & 63);
	e->kind = (uint8_t)(1 + (bits >> 24) % (KIND_END - 1));
	e->subkind = (uint8_t)(bits >> 32);
	e->correlation = bits & 16 ? random_u64(random) >> (bits & 63) : 0;
	e->bytes = bits & 32 ? random_u64(random) >> (bits >> 6 & 63) : 0;
	e->flags = bits & 64 ? 5 : 0;
	e->step = bits & 128 ? STEP_GAP | 7 : 0;
	e->path = bits & 256 ? 12345 : 0;
	e->phase = bits & 512 ? 200 : 0;
	m->groups[i] = (uint32_t)((bits >> 48) % groups) * 1000003u;
	if (bits & 1024) {
		e->schema = m->schema;
		e->args = &m->words[i * ARG];
		m->words[i * ARG] = i;
		m->words[i * ARG + 1] = random_u64(random);
	}
}

static void model_init(struct model *m, size_t count, uint64_t span_ns, uint32_t groups)
{
	uint64_t random = 42 + count;
	size_t i;

	memset(m, 0, sizeof(*m));
	CHECK_OK(trace_new(&m->trace, 1 << 20, NULL), NULL);
	m->schema = arg_schema_only(m->trace, ARG);
	m->count = count;
	m->events = calloc(count + 1, sizeof(*m->events));
	m->groups = calloc(count + 1, sizeof(*m->groups));
	m->order = calloc(count + 1, sizeof(*m->order));
	m->words = calloc(count * ARG + 1, sizeof(*m->words));
	for (i = 0; i < count; i++) {
		model_event(m, i, span_ns, groups, &random);
		m->order[i] = i;
	}
	sorting = m;
	qsort(m->order, count, sizeof(*m->order), model_compare);
}

static void model_release(struct model *m)
{
	trace_free(m->trace);
	free(m->events);
	free(m->groups);
	free(m->order);
	free(m->words);
}

static bool event_same(const struct event *a, const struct event *b)
{
	struct event x = *a, y = *b;

	x.args = y.args = NULL;
	if (memcmp(&x, &y, sizeof(x)) != 0 || !a->args != !b->args)
		return false;
	return !a->args || memcmp(a->args, b->args, ARG * sizeof(uint64_t)) == 0;
}

static void model_put(const struct model *m, struct spool *s)
{
	struct error err = { 0 };
	size_t i, n;

	for (i = 0; i < m->count; i += n) {
		for (n = 1; i + n < m->count && n < 100; n++)
			if (m->groups[i + n] != m->groups[i])
				break;
		if (!CHECK_OK(spool_put(s, m->groups[i], m->events + i, n, &err), &err))
			return;
	}
}

/* In order, whole, each batch of one group, and the end again and again. */
static void model_check(const struct model *m, struct spool *s)
{
	struct error err = { 0 };
	struct batch batch;
	uint32_t group = 0;
	size_t at = 0, i, bad = 0;
	enum status status;

	while ((status = spool_next(s, &group, &batch, &err)) == ST_OK) {
		bad += batch.count == 0;
		for (i = 0; i < batch.count && at < m->count; i++, at++) {
			bad += !event_same(&batch.events[i], &m->events[m->order[at]]);
			bad += group != m->groups[m->order[at]];
		}
	}
	if (status != ST_END)
		CHECK_OK(status, &err);
	CHECK_U64(at, m->count);
	CHECK_U64(bad, 0);
	CHECK_U64(spool_next(s, &group, &batch, &err), ST_END);
}

static struct spool_totals spool_round(size_t count, uint64_t span_ns, uint32_t groups,
				       size_t opening)
{
	struct budget budget = { .opening = opening, .scratch = "/tmp" };
	struct spool_totals totals = { 0 };
	struct error err = { 0 };
	struct spool *s;
	struct model m;
	size_t most;

	model_init(&m, count, span_ns, groups);
	if (CHECK_OK(spool_open(&s, m.trace, &budget, &err), &err)) {
		model_put(&m, s);
		model_check(&m, s);
		totals = spool_totals(s);
		CHECK_U64(totals.events, count);
		most = opening / 2 > SPOOL_LEAST ? opening / 2 : SPOOL_LEAST;
		CHECK(totals.peak_bytes <= most + (groups > 1 ? totals.runs * 80 : 0));
		spool_close(s);
	}
	model_release(&m);
	return totals;
}

void test_spool_in_memory(void)
{
	CHECK_U64(spool_round(0, 1, 1, 1 << 24).runs, 0);
	CHECK_U64(spool_round(1, 1, 1, 1 << 24).runs, 0);
	CHECK_U64(spool_round(20000, 1000000000, 1, 1 << 24).runs, 0);
	CHECK_U64(spool_round(20000, 1000000000, 1, 1 << 24).scratch_bytes, 0);
	CHECK_U64(spool_round(20000, 1000000000, 7, 1 << 24).runs, 0);
}

void test_spool_runs(void)
{
	struct spool_totals totals = spool_round(50000, UINT64_C(1) << 40, 1, 1 << 20);

	CHECK(totals.runs > 5 && totals.runs < 40);
	CHECK(totals.scratch_bytes > 50000 * 10 && totals.scratch_bytes < 50000 * 70);
	/* so many runs that they are merged among themselves first */
	totals = spool_round(300000, UINT64_C(1) << 40, 1, 1);
	CHECK(totals.runs > 100);
	CHECK(totals.scratch_bytes > 300000 * 10);
}

/* Equal times keep the order in which they came, in memory, in a run and between runs. */
void test_spool_ties(void)
{
	spool_round(20000, 1, 1, 1 << 24);
	spool_round(20000, 3, 1, 1 << 20);
	CHECK(spool_round(60000, 100, 2, 1).runs > 20);
}

void test_spool_groups(void)
{
	CHECK(spool_round(50000, 1000000, 5, 1 << 20).runs > 20);
	CHECK(spool_round(50000, 1000000, 300, 1).runs > 300);
}

/* Begins an event; every third one equals the last of these but for its times. */
static enum status begin_one(struct model *m, struct spool *s, size_t i, uint32_t *shared,
			     uint32_t place, struct error *err)
{
	struct event *e = &m->events[i], other;

	if (i % 3)
		return spool_begin(s, e, place, err);
	if (!*shared || i % 1000 == 0) {
		other = *e;
		other.args = NULL;
		TRY(spool_share(s, &other, shared, err));
	}
	other = *spool_shared(s, *shared);
	other.begin_ns = e->begin_ns;
	other.end_ns = e->end_ns;
	*e = other;
	return spool_begin_shared(s, *shared, e->begin_ns, place, err);
}

/*
 * Events that are begun before their end is known come out as if they had been put then, however
 * often the rest went to disk meanwhile; some never end, and some are taken back.
 */
void test_spool_open(void)
{
	enum { OPEN = 200, EVERY = 997, ODD = OPEN, LATE };
	struct budget budget = { .opening = 1, .scratch = "/tmp" };
	uint32_t late_count = 0, shared = 0;
	struct event back;
	struct error err = { 0 };
	struct spool *s;
	struct model m;
	size_t i, bad = 0;

	model_init(&m, 60000, 20000, 1); /* three at each time: many end together */
	CHECK_OK(spool_open(&s, m.trace, &budget, &err), &err);
	for (i = 0; i < m.count; i++) {
		uint32_t place = i % EVERY ? (uint32_t)i % OPEN : LATE + late_count++;

		if (i >= OPEN && (i - OPEN) % EVERY)
			spool_finish(s, (uint32_t)i % OPEN, m.events[i - OPEN].end_ns);
		CHECK_OK(begin_one(&m, s, i, &shared, place, &err), &err);
		if (i % 300 == 10)
			CHECK_OK(begin_one(&m, s, i / 2, &shared, ODD, &err), &err);
		if (i % 300 != 250)
			continue;
		CHECK_OK(spool_take_back(s, ODD, &back, &err), &err);
		back.end_ns = m.events[(i - 240) / 2].end_ns;
		bad += !event_same(&back, &m.events[(i - 240) / 2]);
	}
	CHECK_U64(bad, 0);
	for (i = m.count - OPEN; i < m.count; i++)
		if (i % EVERY)
			spool_finish(s, (uint32_t)i % OPEN, m.events[i].end_ns);
	for (i = 0; i < late_count; i++)
		spool_finish(s, LATE + (uint32_t)i, m.events[i * EVERY].end_ns);
	CHECK(spool_totals(s).runs > 5);
	CHECK_U64(spool_totals(s).events, m.count);
	model_check(&m, s);
	spool_close(s);
	model_release(&m);
}

/* Events that equal another one, of which some are long or begin long after the one before. */
void test_spool_shared(void)
{
	enum { COUNT = 60000 };
	struct budget budget = { .opening = 1, .scratch = "/tmp" };
	struct event kind = { .kind = KIND_RANGE, .name = 7, .track = 3 };
	uint64_t begin_ns = 0, bad = 0, at = 0,
		 lengths[] = { 0, 50, (1 << 24) - 1, 1 << 24, 1ull << 40 };
	uint64_t gaps[] = { 1, (1 << 25) - 1, 1 << 25, 1ull << 40 };
	struct error err = { 0 };
	struct batch batch;
	struct spool *s;
	struct trace *trace;
	uint32_t shared, group;

	CHECK_OK(trace_new(&trace, 1 << 20, NULL), NULL);
	CHECK_OK(spool_open(&s, trace, &budget, &err), &err);
	CHECK_OK(spool_share(s, &kind, &shared, &err), &err);
	for (uint64_t i = 0; i < COUNT; i++) {
		begin_ns += gaps[i % 9 % 4];
		CHECK_OK(spool_begin_shared(s, shared, begin_ns, 0, &err), &err);
		spool_finish(s, 0, begin_ns + lengths[i % 7 % 5]);
	}
	CHECK(spool_totals(s).runs > 5);
	begin_ns = 0;
	while (spool_next(s, &group, &batch, &err) == ST_OK)
		for (size_t i = 0; i < batch.count; i++, at++) {
			const struct event *e = &batch.events[i];

			begin_ns += gaps[at % 9 % 4];
			bad += e->begin_ns != begin_ns || e->name != 7 || e->track != 3 ||
			       e->end_ns != begin_ns + lengths[at % 7 % 5];
		}
	CHECK_U64(at, COUNT);
	CHECK_U64(bad, 0);
	spool_close(s);
	trace_free(trace);
}

/* Times of a damaged log, up to the greatest. */
void test_spool_greatest(void)
{
	enum { COUNT = 20000 };
	struct budget budget = { .opening = 1, .scratch = "/tmp" };
	struct event e = { .kind = KIND_RANGE };
	struct error err = { 0 };
	struct batch batch;
	struct spool *s;
	struct trace *trace;
	uint64_t at = 0, bad = 0;
	uint32_t group;

	CHECK_OK(trace_new(&trace, 1 << 20, NULL), NULL);
	CHECK_OK(spool_open(&s, trace, &budget, &err), &err);
	for (uint64_t i = 0; i < COUNT; i++) {
		e.begin_ns = UINT64_MAX - COUNT + i;
		e.end_ns = UINT64_MAX;
		CHECK_OK(spool_put(s, 0, &e, 1, &err), &err);
	}
	CHECK(spool_totals(s).runs > 2);
	while (spool_next(s, &group, &batch, &err) == ST_OK)
		for (size_t i = 0; i < batch.count; i++, at++)
			bad += batch.events[i].begin_ns != UINT64_MAX - COUNT + at ||
			       batch.events[i].end_ns != UINT64_MAX;
	CHECK_U64(at, COUNT);
	CHECK_U64(bad, 0);
	spool_close(s);
	trace_free(trace);
}

/* What is in order already takes a shorter way. */
void test_spool_sorted(void)
{
	struct budget budget = { .opening = 1 << 20 };
	struct error err = { 0 };
	struct spool *s;
	struct model m;
	size_t i;

	model_init(&m, 40000, 1000, 1);
	for (i = 0; i < m.count; i++)
		m.events[i].end_ns = (m.events[i].begin_ns += i * 1000) + 10;
	for (i = 0; i < m.count; i++)
		m.order[i] = i;
	if (CHECK_OK(spool_open(&s, m.trace, &budget, &err), &err)) {
		model_put(&m, s);
		model_check(&m, s);
		CHECK(spool_totals(s).runs > 3);
		spool_close(s);
	}
	model_release(&m);
}

/* An event with more words than any buffer has. */
void test_spool_wide(void)
{
	enum { WIDE = 20000 };
	struct budget budget = { .opening = 1 };
	struct error err = { 0 };
	struct event e = { .begin_ns = 50, .end_ns = 60, .kind = KIND_RANGE };
	uint64_t *words = calloc(WIDE, sizeof(*words));
	struct batch batch = { .count = 0 };
	struct trace *trace;
	struct spool *s;
	uint32_t group, i;
	size_t n = 0, bad = 0, at;

	CHECK_OK(trace_new(&trace, 1 << 24, NULL), NULL);
	e.schema = arg_schema_only(trace, WIDE);
	e.args = words;
	CHECK_OK(spool_open(&s, trace, &budget, &err), &err);
	for (i = 0; i < 10; i++) {
		e.begin_ns--;
		words[WIDE - 1] = UINT64_MAX - e.begin_ns;
		CHECK_OK(spool_put(s, 0, &e, 1, &err), &err);
	}
	while (spool_next(s, &group, &batch, &err) == ST_OK)
		for (at = 0; at < batch.count; at++, n++) {
			bad += batch.events[at].begin_ns != 40 + n;
			bad += batch.events[at].args[WIDE - 1] != UINT64_MAX - 40 - n;
		}
	CHECK_U64(n, 10);
	CHECK_U64(bad, 0);
	CHECK(spool_totals(s).runs > 2);
	spool_close(s);
	trace_free(trace);
	free(words);
}

static enum status spool_into(const char *folder, struct error *err)
{
	struct budget budget = { .opening = 1, .scratch = folder };
	enum status status;
	struct spool *s;
	struct model m;
	size_t i;

	model_init(&m, 10000, 1000000, 1);
	status = spool_open(&s, m.trace, &budget, err);
	for (i = 0; i < m.count && status == ST_OK; i++)
		status = spool_put(s, 0, &m.events[i], 1, err);
	spool_close(s);
	model_release(&m);
	return status;
}

void test_spool_no_scratch(void)
{
	struct error err = { 0 };

	CHECK_U64(spool_into("/nowhere/at/all", &err), ST_IO);
	CHECK_STR(err.text, "temporary folder /nowhere/at/all: No such file or directory");
	CHECK_OK(spool_into("/tmp", &err), &err);
}

/* A limit on file sizes stands for a full disk: it fails a write in its middle just so. */
void test_spool_full_scratch(void)
{
	void (*old_handler)(int) = signal(SIGXFSZ, SIG_IGN);
	struct rlimit old_limit, limit;
	struct error err = { 0 };
	enum status status;

	getrlimit(RLIMIT_FSIZE, &old_limit);
	limit = old_limit;
	limit.rlim_cur = 50000;
	if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
		SKIP("no limit on file sizes here");
		return;
	}
	status = spool_into("/tmp", &err);
	setrlimit(RLIMIT_FSIZE, &old_limit);
	signal(SIGXFSZ, old_handler);
	CHECK_U64(status, ST_IO);
	CHECK_STR(err.text, "temporary folder /tmp: File too large");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome JSON of other tools. */
#include "convert/input/input.h"
#include "convert/source/source.h"
#include "schemas/base/buf.h"
#include "tests/unit/events.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct read {
	struct folder folder;
	struct trace *trace;
	struct input *in;
	struct source *source;
	struct error err;
	enum status status, last; /* of the opening, of the end */
	struct event *events;
	size_t count;
};

static void read_text(struct read *r, const char *text, size_t len)
{
	struct budget budget = { .opening = 32 << 20, .resident = 65536, .scratch = "/tmp" };
	struct batch batch;

	*r = (struct read){ .last = ST_OK };
	folder_make(&r->folder);
	CHECK_OK(trace_new(&r->trace, 64 << 20, &r->err), &r->err);
	if (!CHECK_OK(input_open(&r->in, folder_write(&r->folder, "a.json", text, len), "/tmp",
				 &r->err),
		      &r->err))
		return;
	r->status = source_open(&r->source, r->in, r->trace, &budget, NULL, &r->err);
	if (r->status != ST_OK)
		return;
	r->events = calloc(256, sizeof(*r->events));
	while (r->events && (r->last = source_next(r->source, &batch, &r->err)) == ST_OK)
		for (size_t i = 0; i < batch.count && r->count < 256; i++)
			r->events[r->count++] = batch.events[i];
}

static void release(struct read *r)
{
	free(r->events);
	source_close(r->source);
	input_close(r->in);
	trace_free(r->trace);
	folder_remove(&r->folder);
}

static const struct event *named(const struct read *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(trace_text(r->trace, r->events[i].name, NULL), name) == 0)
			return &r->events[i];
	return NULL;
}

/* Begin and duration in ns, track's thread. */
static void check_range(const struct read *r, const char *name, uint64_t begin, uint64_t dur,
			uint64_t tid)
{
	const struct event *e = named(r, name);

	if (!CHECK(e != NULL)) {
		fprintf(stderr, "\tno %s\n", name);
		return;
	}
	CHECK_U64(e->begin_ns, begin);
	CHECK_U64(e->end_ns - e->begin_ns, dur);
	CHECK_U64(trace_get_track(r->trace, e->track)->id, tid);
}

static const char all_letters[] =
	"[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":7,\"args\":{\"name\":\"proc\"}},"
	"{\"ph\":\"B\",\"name\":\"outer\",\"pid\":7,\"tid\":1,\"ts\":100.5,\"args\":{\"a\":1}},"
	"{\"ph\":\"E\",\"pid\":7,\"tid\":1,\"ts\":110,\"args\":{\"b\":\"x\",\"c\":2.5}},"
	"{\"ph\":\"B\",\"name\":\"inner\",\"pid\":7,\"tid\":1,\"ts\":101.25},"
	"{\"ph\":\"E\",\"pid\":7,\"tid\":1,\"ts\":102},"
	"{\"ph\":\"b\",\"cat\":\"net\",\"id\":\"0x10\",\"name\":\"one\",\"pid\":7,\"ts\":100},"
	"{\"ph\":\"b\",\"cat\":\"net\",\"id\":\"0x11\",\"name\":\"two\",\"pid\":7,\"ts\":101},"
	"{\"ph\":\"n\",\"cat\":\"net\",\"id\":\"0x11\",\"name\":\"inst\",\"pid\":7,\"ts\":101.5},"
	"{\"ph\":\"e\",\"cat\":\"net\",\"id\":\"0x10\",\"name\":\"one\",\"pid\":7,\"ts\":105},"
	"{\"ph\":\"e\",\"cat\":\"net\",\"id\":\"0x11\",\"name\":\"two\",\"pid\":7,\"ts\":106},"
	"{\"ph\":\"C\",\"name\":\"mem\",\"pid\":7,\"ts\":103,\"args\":{\"used\":10,\"free\":90}},"
	"{\"ph\":\"X\",\"name\":\"f\",\"cat\":\"FEE\",\"pid\":\"p\",\"tid\":\"t\",\"ts\":99.9,"
	"\"dur\":3.0005},"
	"{\"ph\":\"s\",\"id\":5,\"name\":\"flow\",\"pid\":7,\"tid\":1,\"ts\":101},"
	"{\"ph\":\"f\",\"id\":5,\"name\":\"flow end\",\"pid\":7,\"tid\":1,\"ts\":104},"
	"{\"ph\":\"i\",\"name\":\"mark\",\"pid\":7,\"tid\":1,\"ts\":104,\"s\":\"p\"},"
	"{\"ph\":\"E\",\"pid\":7,\"tid\":9,\"ts\":104},"
	"{\"ph\":\"X\",\"name\":\"neg\",\"pid\":7,\"tid\":2,\"ts\":104,\"dur\":-4},"
	"{\"ph\":\"B\",\"name\":\"open\",\"pid\":7,\"tid\":2,\"ts\":105}]";

void test_chrome_letters(void)
{
	struct read r;
	const struct event *e;

	read_text(&r, all_letters, sizeof(all_letters) - 1);
	if (CHECK_OK(r.status, &r.err)) {
		CHECK_U64(r.last, ST_END);
		CHECK_U64(r.count, 13);
		check_range(&r, "outer", 100500, 9500, 1);
		check_range(&r, "inner", 101250, 750, 1);
		check_range(&r, "neg", 104000, 0, 2);
		check_range(&r, "open", 105000, 5000, 2);
		check_range(&r, "one", 100000, 5000, UINT64_C(1) << 41);
		check_range(&r, "two", 101000, 5000, (UINT64_C(1) << 41) + 1);
		CHECK_U64(trace_lost(r.trace, 0, LOSS_DAMAGED), 2); /* E of thread 9, dur < 0 */
		CHECK((e = named(&r, "open")) && e->flags & EVENT_NEVER_ENDED);
		CHECK((e = named(&r, "f")) && e->subkind == RANGE_PYTHON &&
		      e->end_ns - e->begin_ns == 3001);
		CHECK((e = named(&r, "mem free")) && e->kind == KIND_COUNTER && e->value == 90);
		CHECK((e = named(&r, "flow")) && e->subkind == MARK_FLOW_BEGIN && e->number == 5);
		CHECK((e = named(&r, "flow end")) && e->subkind == MARK_FLOW_END && e->number == 5);
		CHECK((e = named(&r, "outer")) && trace_find_attr(r.trace, e->schema, "b") &&
		      trace_find_attr(r.trace, e->schema, "c"));
		CHECK_STR(trace_text(r.trace, trace_get_process(r.trace, 1)->command, NULL),
			  "proc");
		CHECK_STR(trace_text(r.trace, trace_provenance(r.trace)->format, NULL),
			  "Chrome JSON");
		CHECK(!trace_provenance(r.trace)->epoch_known);
	}
	release(&r);
}

/* Who reads what: Kineto's files stay Kineto's. */
void test_chrome_bids(void)
{
	static const struct {
		const char *head;
		bool is_chrome;
	} rows[] = {
		{ "[{\"ph\": \"X\", \"ts\": 1, \"name\": \"a\"}]", true },
		{ "{\"traceEvents\": [{\"ph\": \"B\"}]}", true },
		{ "{\"viztracer_metadata\": {}, \"traceEvents\": []}", true },
		{ "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [{\"ph\": \"X\"}]}", true },
		{ "{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"X\"}]}", false },
		{ "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\"}]}", false },
		{ "[{\"ph\": \"X\", \"cat\": \"kernel\"}]", false },
		{ "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"Operator\"}]}", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const uint8_t *head = (const uint8_t *)rows[i].head;
		size_t len = strlen(rows[i].head);
		int chrome = source_chrome.bid(head, len), kineto = source_kineto.bid(head, len);

		if (!CHECK(chrome != kineto && (chrome > kineto) == rows[i].is_chrome))
			fprintf(stderr, "\t%s: chrome %d, kineto %d\n", rows[i].head, chrome,
				kineto);
	}
}

/* The format lets a writer that died leave the last bracket out, and nothing else. */
void test_chrome_open_array(void)
{
	static const char good[] = "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2},\n";
	static const char bad[] = "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2},\n{\"ph\":";
	static const char object[] = "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1}";
	struct read r;

	read_text(&r, good, sizeof(good) - 1);
	CHECK(r.status == ST_OK && r.last == ST_END && r.count == 1);
	release(&r);
	read_text(&r, bad, sizeof(bad) - 1);
	CHECK(r.status == ST_OK && r.last == ST_TRUNCATED && r.count == 1);
	release(&r);
	read_text(&r, object, sizeof(object) - 1);
	CHECK(r.status == ST_OK && r.last == ST_TRUNCATED && r.count == 1);
	release(&r);
}

void test_chrome_base_time(void)
{
	static const char text[] =
		"{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"cat\":\"FEE\",\"ts\":1.5,"
		"\"dur\":2}],\"viztracer_metadata\":{\"version\":\"1.0\","
		"\"baseTimeNanoseconds\":1700000000000000000}}";
	struct read r;

	read_text(&r, text, sizeof(text) - 1);
	if (CHECK_OK(r.status, &r.err) && CHECK_U64(r.count, 1)) {
		CHECK_U64(r.events[0].begin_ns, UINT64_C(1700000000000001500));
		CHECK(trace_provenance(r.trace)->epoch_known);
	}
	release(&r);
}

/* Short before long, as a file may list them: the order of event.h holds whatever their times. */
#define BELOW_ZERO                                                                                 \
	"{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"short\",\"cat\":\"FEE\",\"ts\":-7.5,\"dur\":"  \
	"1},"                                                                                      \
	"{\"ph\":\"X\",\"name\":\"long\",\"cat\":\"FEE\",\"ts\":-5,\"dur\":20},"                   \
	"{\"ph\":\"X\",\"name\":\"zero\",\"cat\":\"FEE\",\"ts\":0,\"dur\":50}]"

/* Counted from nobody knows what: all of it moves, nothing is lost. */
void test_chrome_below_zero(void)
{
	static const char text[] = BELOW_ZERO "}";
	struct read r;

	read_text(&r, text, sizeof(text) - 1);
	if (CHECK_OK(r.status, &r.err) && CHECK_U64(r.count, 3)) {
		check_range(&r, "short", 0, 1000, 0);
		check_range(&r, "long", 2500, 20000, 0);
		check_range(&r, "zero", 7500, 50000, 0);
		CHECK(!trace_provenance(r.trace)->epoch_known);
		CHECK_U64(trace_lost(r.trace, 0, LOSS_NO_TIME), 0);
	}
	release(&r);
}

/* The clock is known: what lies before 1970 has no time, the rest keeps its own. */
void test_chrome_before_epoch(void)
{
	static const char text[] = BELOW_ZERO ",\"viztracer_metadata\":{"
					      "\"baseTimeNanoseconds\":6000}}";
	struct read r;

	read_text(&r, text, sizeof(text) - 1);
	if (CHECK_OK(r.status, &r.err) && CHECK_U64(r.count, 2)) {
		check_range(&r, "long", 1000, 20000, 0);
		check_range(&r, "zero", 6000, 50000, 0);
		CHECK_U64(trace_lost(r.trace, 0, LOSS_NO_TIME), 1);
	}
	release(&r);
}

/* Times within quotes, as JavaScript writes numbers of 64 bits. */
void test_chrome_quoted_times(void)
{
	static const char text[] =
		"[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":\"100\",\"dur\":\"2.5\"},"
		"{\"ph\":\"X\",\"name\":\"b\",\"pid\":\"1\",\"tid\":\"2\",\"ts\":\"110.25\","
		"\"dur\":1},"
		"{\"ph\":\"X\",\"name\":\"bad\",\"pid\":1,\"tid\":2,\"ts\":\"1.2.3\",\"dur\":1},"
		"{\"ph\":\"X\",\"name\":\"no\",\"pid\":1,\"tid\":2,\"ts\":\"\",\"dur\":1}]";
	struct read r;

	read_text(&r, text, sizeof(text) - 1);
	CHECK_U64(r.count, 2);
	check_range(&r, "a", 100000, 2500, 2);
	check_range(&r, "b", 110250, 1000, 2);
	CHECK_U64(trace_lost(r.trace, 0, LOSS_NO_TIME) + trace_lost(r.trace, 0, LOSS_DAMAGED), 2);
	release(&r);
}

void test_chrome_cut(void)
{
	for (size_t len = 1; len < sizeof(all_letters) - 1; len++) {
		struct read r;

		read_text(&r, all_letters, len);
		CHECK(r.status == ST_OK ? r.last != ST_OK : r.err.text[0] != 0);
		release(&r);
	}
}

void test_chrome_damage(void)
{
	uint64_t seed = 3;
	char bad[sizeof(all_letters)];

	for (unsigned round = 0; round < 300; round++) {
		struct read r;

		memcpy(bad, all_letters, sizeof(bad));
		for (unsigned i = 0; i < 1 + round % 16; i++)
			bad[random_u64(&seed) % (sizeof(bad) - 1)] = (char)random_u64(&seed);
		read_text(&r, bad, sizeof(bad) - 1);
		CHECK(r.status == ST_OK ? r.last != ST_OK : r.err.text[0] != 0);
		release(&r);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include "convert/stage/pump.h"

struct counter {
	uint64_t events, calls, empty_calls, fail_at; /* fail_at: a call; 0 never */
};

static enum status counter_put(void *self, const struct batch *batch, struct error *err)
{
	struct counter *c = self;
	size_t i;

	c->calls++;
	c->empty_calls += !batch->count;
	for (i = 0; i < batch->count; i++)
		c->events += batch->events[i].kind == KIND_RANGE;
	if (c->calls == c->fail_at)
		return fail(err, ST_IO, NOWHERE, "the disk is full");
	return ST_OK;
}

static void note_progress(void *self, uint64_t events)
{
	*(uint64_t *)self = events;
}

static enum status pump_into(struct counter *a, struct counter *b, enum status fault, bool *failed,
			     struct error *err)
{
	struct consumer consumers[] = { { counter_put, a }, { counter_put, b } };
	struct event events[10];
	struct source *source;
	uint64_t seen = 0;
	enum status status;
	size_t i;

	for (i = 0; i < 10; i++)
		events[i] = (struct event){ .begin_ns = i, .end_ns = i, .kind = KIND_RANGE };
	CHECK_OK(array_source_fail(&source, events, 10, 4, fault), NULL);
	status = pump(source, consumers, 2, note_progress, &seen, failed, err);
	source_close(source);
	CHECK_U64(seen, status == ST_IO ? 4 : 10);
	return status;
}

void test_pump_all(void)
{
	struct counter a = { 0 }, b = { 0 };
	struct error err = { 0 };
	bool failed = true;

	CHECK_OK(pump_into(&a, &b, ST_OK, &failed, &err), &err);
	CHECK(!failed);
	CHECK_U64(a.events, 10);
	CHECK_U64(b.events, 10);
	CHECK_U64(a.calls, 4);
	CHECK_U64(a.empty_calls, 1);
}

/* What was readable has been delivered, and the last call came. */
void test_pump_source_fault(void)
{
	struct counter a = { 0 }, b = { 0 };
	struct error err = { 0 };
	bool failed = false;

	CHECK_U64(pump_into(&a, &b, ST_TRUNCATED, &failed, &err), ST_TRUNCATED);
	CHECK(failed);
	CHECK_STR(err.text, "the array source was told to fail");
	CHECK_U64(b.events, 10);
	CHECK_U64(b.empty_calls, 1);
}

/* At once, and nobody is called again. */
void test_pump_consumer_fault(void)
{
	struct counter a = { .fail_at = 2 }, b = { 0 };
	struct error err = { 0 };
	bool failed = true;

	CHECK_U64(pump_into(&a, &b, ST_OK, &failed, &err), ST_IO);
	CHECK(!failed);
	CHECK_STR(err.text, "the disk is full");
	CHECK_U64(a.calls, 2);
	CHECK_U64(b.calls, 1);
}

void test_pump_no_input(void)
{
	struct pipeline_request how = { 0 };
	struct error err = { 0 };
	struct pipeline p;

	CHECK_U64(pipeline_open(&p, NULL, NULL, 0, &how, &err), ST_USAGE);
	CHECK(p.top == NULL);
	pipeline_close(&p);
}

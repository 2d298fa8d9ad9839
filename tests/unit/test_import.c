/* SPDX-License-Identifier: Apache-2.0 */
/* The common end of imported events. */
#include "convert/source/import.h"
#include "schemas/log/log.h"
#include "tests/unit/unit.h"

static const struct budget budget = { .opening = 8 << 20, .resident = 65536, .scratch = "/tmp" };

struct made {
	struct trace *trace;
	struct spool *spool;
	struct import import;
};

static void make(struct made *m)
{
	struct error err = { 0 };

	CHECK_OK(trace_new(&m->trace, 16 << 20, &err), &err);
	CHECK_OK(spool_open(&m->spool, m->trace, &budget, &err), &err);
	import_init(&m->import, m->trace, m->spool, 0);
}

static void release(struct made *m)
{
	import_release(&m->import);
	spool_close(m->spool);
	trace_free(m->trace);
}

/* A call that launches counts for its thread; other calls and ranges of that name do not. */
void test_import_counts_launches(void)
{
	static const struct {
		const char *name;
		uint8_t kind;
	} rows[] = { { "cudaLaunchKernel", KIND_API },
		     { "cudaLaunchKernel", KIND_RANGE },
		     { "cudaMalloc", KIND_API },
		     { "cudaMemcpyAsync", KIND_API } };
	struct track t = { .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID, .id = 7 };
	struct error err = { 0 };
	struct batch batch;
	uint32_t group;
	struct made m;

	make(&m);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct event e = { .kind = rows[i].kind, .begin_ns = i, .end_ns = i };

		e.track = trace_track(m.trace, &t, &err);
		e.name = trace_name(m.trace, rows[i].name, strlen(rows[i].name), &err);
		CHECK_OK(import_put(&m.import, &e, &err), &err);
	}
	CHECK_U64(trace_launches(m.trace, 1), 2);
	CHECK_U64(m.import.events, 4);
	CHECK_U64(trace_count(m.trace, TRACE_DESCS), 4);
	CHECK(spool_next(m.spool, &group, &batch, &err) == ST_OK && batch.count == 4);
	release(&m);
}

void test_import_times(void)
{
	struct event e = { 0 };
	struct made m;

	make(&m);
	CHECK(import_times(&m.import, &e, -5, 7));
	CHECK_I64((int64_t)e.begin_ns, SPOOL_BIAS - 5);
	CHECK_I64((int64_t)e.end_ns, SPOOL_BIAS + 2);
	CHECK(import_times(&m.import, &e, 10, -1)); /* damage, and no duration */
	CHECK_U64(e.end_ns, e.begin_ns);
	CHECK_U64(trace_lost(m.trace, 0, LOSS_DAMAGED), 1);
	CHECK(!import_times(&m.import, &e, IMPORT_TIME_MOST + 1, 0));
	CHECK(!import_times(&m.import, &e, -IMPORT_TIME_MOST - 1, 0));
	CHECK(!import_times(&m.import, &e, 0, IMPORT_TIME_MOST + 1));
	CHECK_I64(m.import.first_ns, -5);
	CHECK_I64(m.import.last_ns, 10);
	release(&m);
}

/* Numbers are argument values, up to as many as a layout holds; everything else is constant. */
void test_import_attributes(void)
{
	struct error err = { 0 };
	struct event e = { 0 };
	struct made m;

	make(&m);
	import_begin(&m.import);
	CHECK_OK(import_schema(&m.import, &e, &err), &err);
	CHECK_U64(e.schema, 0);
	for (unsigned i = 0; i <= LOG_LAYOUT_ARG; i++) {
		struct attr a = { .type = ATTR_U64, .bits = i };
		char key[2] = { (char)('0' + i / 10), (char)('0' + i % 10) };

		CHECK_OK(import_attr_named(&m.import, key, 2, &a, true, &err), &err);
	}
	import_attr(&m.import, &(struct attr){ .key = 1, .type = ATTR_TEXT, .bits = 1 }, true);
	CHECK_OK(import_schema(&m.import, &e, &err), &err);
	CHECK_U64(trace_get_schema(m.trace, e.schema)->arg_count, LOG_LAYOUT_ARG);
	CHECK_U64(trace_get_schema(m.trace, e.schema)->const_count, 2);
	CHECK_U64(e.args[3], 3);
	import_begin(&m.import);
	CHECK_OK(import_schema(&m.import, &e, &err), &err);
	CHECK(!e.schema && !e.args);
	release(&m);
}

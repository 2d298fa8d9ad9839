/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/folder.h"
#include "schemas/model/call.h"
#include "tests/unit/unit.h"

#include "convert/input/input.h"
#include "convert/source/source.h"
#include "schemas/model/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One document, read to its end. */
struct import {
	struct folder folder;
	struct trace *trace;
	struct input *in;
	struct source *source;
	struct event *events; /* vary words are in `words` */
	uint64_t (*words)[32];
	size_t count;
	enum status opened, ended;
	struct error err;
};

enum { EVENTS_MOST = 4096 };

static void import_drain(struct import *m)
{
	struct batch batch;
	size_t i, j;

	while ((m->ended = source_next(m->source, &batch, &m->err)) == ST_OK) {
		for (i = 0; i < batch.count && m->count < EVENTS_MOST; i++, m->count++) {
			const struct arg_schema *s =
				trace_get_schema(m->trace, batch.events[i].schema);

			m->events[m->count] = batch.events[i];
			for (j = 0; j < s->arg_count && batch.events[i].args; j++)
				m->words[m->count][j] = batch.events[i].args[j];
		}
	}
}

static void import_path(struct import *m, const char *path)
{
	struct budget budget = { .opening = 32 << 20,
				 .resident = 65536,
				 .scratch = m->folder.folder };

	CHECK_OK(trace_new(&m->trace, 64 << 20, &m->err), &m->err);
	m->events = calloc(EVENTS_MOST, sizeof(*m->events));
	m->words = calloc(EVENTS_MOST, sizeof(*m->words));
	m->opened = input_open(&m->in, path, m->folder.folder, &m->err);
	if (m->opened == ST_OK)
		m->opened = source_open(&m->source, m->in, m->trace, &budget, NULL, &m->err);
	if (m->opened == ST_OK && m->events && m->words)
		import_drain(m);
}

static void import_bytes(struct import *m, const char *name, const char *text, size_t len)
{
	*m = (struct import){ 0 };
	folder_make(&m->folder);
	import_path(m, folder_write(&m->folder, name, text, len));
}

static void import_text(struct import *m, const char *text)
{
	import_bytes(m, "a.json", text, strlen(text));
	CHECK_OK(m->opened, &m->err);
	CHECK_U64(m->ended, ST_END);
}

/* Elements of traceEvents after a head that says nothing. */
static void import_elements(struct import *m, const char *elements)
{
	char text[8192];

	snprintf(text, sizeof(text), "{\"traceEvents\": [%s]}", elements);
	import_text(m, text);
}

static void import_end(struct import *m)
{
	source_close(m->source);
	input_close(m->in);
	trace_free(m->trace);
	free(m->events);
	free(m->words);
	folder_remove(&m->folder);
}

static const char *text_of(const struct import *m, uint32_t name)
{
	return trace_text(m->trace, name, NULL);
}

/* An attribute as text: fixed ones by value, varying ones by the event's word; "" none. */
static const char *attr_text(const struct import *m, size_t event, const char *key)
{
	static char text[64];
	const struct event *e = &m->events[event];
	const struct arg_schema *s = trace_get_schema(m->trace, e->schema);
	struct attr found = { 0 };
	double real;
	uint32_t i;

	for (i = 0; i < s->const_count; i++)
		if (strcmp(text_of(m, s->consts[i].key), key) == 0)
			found = s->consts[i];
	for (i = 0; i < s->arg_count; i++) {
		if (strcmp(text_of(m, s->args[i].key), key) == 0) {
			found = s->args[i];
			found.bits = m->words[event][i];
		}
	}
	if (!found.key)
		return "";
	memcpy(&real, &found.bits, sizeof(real));
	switch (found.type) {
	case ATTR_U64:
		snprintf(text, sizeof(text), "%llu", (unsigned long long)found.bits);
		return text;
	case ATTR_I64:
		snprintf(text, sizeof(text), "%lld", (long long)found.bits);
		return text;
	case ATTR_F64:
		snprintf(text, sizeof(text), "%.17gf", real);
		return text;
	default:
		return text_of(m, (uint32_t)found.bits);
	}
}

#define BASE      UINT64_C(1700000000000000000)
#define BASE_LAST "], \"baseTimeNanoseconds\": 1700000000000000000}"

void test_kineto_kernel(void)
{
	struct import m;
	const struct event *e;
	const struct track *k;

	import_text(&m, "{\"traceEvents\": [{\"args\": {\"External id\": 12, \"queued\": 0, "
			"\"device\": 1, \"context\": 2, \"stream\": 7, \"correlation\": 99, "
			"\"registers per thread\": 32, \"shared memory\": 64, "
			"\"blocks per SM\": 0.25, \"grid\": [4, 5, 6], \"block\": [128, 1, 1], "
			"\"mine\": \"text\", \"list\": [1, {\"a\": null}], \"extra\": -3}, "
			"\"dur\": 1.5, \"name\": \"gemm\", \"cat\": \"kernel\", \"pid\": 1, "
			"\"tid\": 7, \"ts\": 1000.25, \"ph\": \"X\"}" BASE_LAST);
	if (!CHECK_U64(m.count, 1)) {
		import_end(&m);
		return;
	}
	e = &m.events[0];
	k = trace_get_track(m.trace, e->track);
	CHECK_U64(e->kind, KIND_KERNEL);
	CHECK_U64(e->begin_ns, BASE + 1000250);
	CHECK_U64(e->end_ns, BASE + 1001750);
	CHECK_U64(e->correlation, 99);
	CHECK_STR(text_of(&m, e->name), "gemm");
	CHECK_U64(k->type, TRACK_STREAM);
	CHECK_U64(k->device, 1);
	CHECK_U64(k->context, 2);
	CHECK_U64(k->id, 7);
	CHECK_STR(attr_text(&m, 0, "external_id"), "12");
	CHECK_STR(attr_text(&m, 0, "grid_y"), "5");
	CHECK_STR(attr_text(&m, 0, "block_x"), "128");
	CHECK_STR(attr_text(&m, 0, "registers"), "32");
	CHECK_STR(attr_text(&m, 0, "shared"), "64");
	CHECK_STR(attr_text(&m, 0, "blocks_per_sm"), "0.25f");
	CHECK_STR(attr_text(&m, 0, "mine"), "text");
	CHECK_STR(attr_text(&m, 0, "list"), "[1,{\"a\":null}]");
	CHECK_STR(attr_text(&m, 0, "extra"), "-3");
	CHECK_STR(attr_text(&m, 0, "correlation"), ""); /* a member is no attribute too */
	CHECK_STR(attr_text(&m, 0, ".cat"), "");
	CHECK_STR(attr_text(&m, 0, ".tid"), "");
	CHECK(trace_find_device(m.trace, k->process, 1) != 0);
	CHECK_U64(trace_count(m.trace, TRACE_DESCS), 1);
	CHECK(trace_provenance(m.trace)->is_whole && trace_provenance(m.trace)->epoch_known);
	import_end(&m);
}

void test_kineto_head(void)
{
	struct import m;
	const struct process *p;
	const struct device *d;
	const struct attr *a;

	import_text(&m, "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": "
			"\"V100\", \"numSms\": 80}, {\"id\": 3, \"name\": \"A100\"}], "
			"\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"op\", "
			"\"pid\": 55, \"tid\": 56, \"ts\": 1, \"dur\": 1}], \"distributedInfo\": "
			"{\"pg_config\": [{\"rank\": 7}], \"backend\": \"nccl\", \"rank\": 3, "
			"\"world_size\": 8}, \"host_name\": \"node1\", \"synthetic\": true, "
			"\"baseTimeNanoseconds\": 1700000000000000000}");
	p = trace_get_process(m.trace, 1);
	CHECK_U64(p->pid, 55);
	CHECK_U64(p->rank, 3);
	CHECK_U64(p->world_size, 8);
	CHECK_STR(text_of(&m, p->host), "node1");
	CHECK_U64(m.count ? m.events[0].begin_ns : 0, BASE + 1000);
	a = trace_find_attr(m.trace, p->schema, "distributedInfo");
	CHECK(a && a->type == ATTR_JSON);
	CHECK_STR(a ? text_of(&m, (uint32_t)a->bits) : "",
		  "{\"pg_config\":[{\"rank\":7}],\"backend\":\"nccl\",\"rank\":3,"
		  "\"world_size\":8}");
	a = trace_find_attr(m.trace, p->schema, "baseTimeNanoseconds");
	CHECK(a && a->bits == BASE);
	CHECK(trace_find_attr(m.trace, p->schema, ".imported") != NULL);
	CHECK(trace_find_attr(m.trace, p->schema, "deviceProperties") == NULL);
	CHECK_U64(trace_count(m.trace, TRACE_DEVICES), 2);
	d = trace_get_device(m.trace, trace_find_device(m.trace, 1, 0));
	CHECK_STR(text_of(&m, d->name), "V100");
	a = trace_find_attr(m.trace, d->schema, "numSms");
	CHECK(a && a->bits == 80);
	d = trace_get_device(m.trace, trace_find_device(m.trace, 1, 3));
	CHECK_STR(text_of(&m, d->name), "A100");
	CHECK(trace_provenance(m.trace)->is_synthetic);
	import_end(&m);
}

void test_kineto_no_head(void)
{
	static const char text[] = "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":1,"
				   "\"tid\":1,\"ts\":5,\"dur\":1}]";
	struct import m;

	import_bytes(&m, "node7_4711.1690000000000000000.pt.trace.json", text, sizeof(text) - 1);
	CHECK_OK(m.opened, &m.err);
	CHECK_U64(m.ended, ST_END);
	CHECK_U64(m.count, 1);
	CHECK_U64(trace_get_process(m.trace, 1)->rank, NO_RANK);
	CHECK_STR(text_of(&m, trace_get_process(m.trace, 1)->host), "node7");
	CHECK(!trace_provenance(m.trace)->epoch_known);
	import_end(&m);
}

/* Names before and after what they name; pids and tids as text; pids that are not the process. */
static const char track_elements[] =
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":5,\"tid\":6,\"args\":"
	"{\"name\":\"old\"}},"
	"{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::add\",\"pid\":5,"
	"\"tid\":\"6\",\"ts\":1,\"dur\":1},"
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"f\",\"pid\":0,"
	"\"tid\":0,\"ts\":2,\"dur\":1},"
	"{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"Resource\",\"pid\":-1,"
	"\"tid\":0,\"ts\":3,\"dur\":1},"
	"{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"T\",\"pid\":\"Spans\","
	"\"tid\":\"PyTorch Profiler\",\"ts\":4,\"dur\":1},"
	"{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"k\",\"pid\":0,\"tid\":"
	"\"stream 7\",\"ts\":5,\"dur\":1,\"args\":{\"device\":0,\"stream\":7}},"
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
	"\"pid\":5,\"tid\":-2,\"ts\":6,\"dur\":1},"
	"{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Sync\",\"pid\":0,"
	"\"tid\":-1,\"ts\":7,\"dur\":1,\"args\":{\"device\":0,\"context\":1,"
	"\"stream\":4294967295,\"correlation\":0}},"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":5,\"tid\":6,\"args\":"
	"{\"name\":\"pt_main\"}},"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":\"stream 7\",\"args\":"
	"{\"name\":\"stream 7 \"}},"
	"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":5,\"args\":"
	"{\"name\":\"python3\"}},"
	"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":\"gpu\"}}";

void test_kineto_threads(void)
{
	struct import m;
	const struct track *a, *b;

	import_elements(&m, track_elements);
	if (!CHECK_U64(m.count, 7)) {
		import_end(&m);
		return;
	}
	CHECK_U64(trace_count(m.trace, TRACE_PROCESSES), 1);
	CHECK_U64(trace_get_process(m.trace, 1)->pid, 5);
	CHECK_STR(text_of(&m, trace_get_process(m.trace, 1)->command), "python3");
	a = trace_get_track(m.trace, m.events[0].track);
	CHECK_U64(a->id, 6);
	CHECK_U64(a->context, NO_ID);
	CHECK_STR(text_of(&m, a->name), "pt_main");
	CHECK_STR(attr_text(&m, 0, ".cat"), "Operator");
	CHECK_STR(attr_text(&m, 0, ".tid"), "");
	a = trace_get_track(m.trace, m.events[1].track);
	b = trace_get_track(m.trace, m.events[2].track);
	CHECK(a != b && a->id == 0 && b->id == 0 && a->type == TRACK_THREAD);
	CHECK_STR(attr_text(&m, 1, ".pid"), "0");
	CHECK_STR(attr_text(&m, 2, ".pid"), "-1");
	CHECK_STR(attr_text(&m, 3, ".pid"), "Spans");
	CHECK_STR(attr_text(&m, 3, ".tid"), "PyTorch Profiler");
	a = trace_get_track(m.trace, m.events[3].track);
	CHECK_STR(text_of(&m, a->name), "Spans / PyTorch Profiler");
	CHECK_U64(trace_get_track(m.trace, m.events[5].track)->id, (uint64_t)-2);
	CHECK_U64(trace_launches(m.trace, m.events[5].track), 1);
	CHECK_U64(trace_launches(m.trace, m.events[0].track), 0);
	import_end(&m);
}

/* A row that does not show whose pid it has comes before one that does: one thread all the same. */
void test_kineto_pid_late(void)
{
	static const char elements[] =
		"{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"Buffer Flush\",\"pid\":5,\"tid\":6,"
		"\"ts\":1,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"Resource\",\"pid\":-1,\"tid\":6,"
		"\"ts\":2,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":5,\"tid\":6,"
		"\"ts\":3,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"Buffer Flush\",\"pid\":5,\"tid\":6,"
		"\"ts\":4,\"dur\":1}";
	struct import m;

	import_elements(&m, elements);
	if (CHECK_U64(m.count, 4)) {
		CHECK_U64(trace_get_process(m.trace, 1)->pid, 5);
		CHECK_U64(m.events[0].track, m.events[2].track);
		CHECK_U64(m.events[0].track, m.events[3].track);
		CHECK(m.events[0].track != m.events[1].track);
	}
	import_end(&m);
}

void test_kineto_streams(void)
{
	struct import m;
	const struct track *k;

	import_elements(&m, track_elements);
	if (!CHECK_U64(m.count, 7)) {
		import_end(&m);
		return;
	}
	k = trace_get_track(m.trace, m.events[4].track);
	CHECK_U64(k->type, TRACK_STREAM);
	CHECK_U64(k->id, 7);
	CHECK_U64(k->context, NO_ID);
	CHECK_STR(text_of(&m, k->name), "stream 7 ");
	CHECK_STR(attr_text(&m, 4, ".tid"), "");
	CHECK_STR(attr_text(&m, 4, ".cat"), "Kernel");
	k = trace_get_track(m.trace, m.events[6].track);
	CHECK_U64(k->context, 1);
	CHECK_U64(k->id, UINT32_MAX);
	CHECK_U64(m.events[6].subkind, 3);
	CHECK_STR(attr_text(&m, 6, ".tid"), "-1");
	CHECK_STR(attr_text(&m, 6, "correlation"), "0");
	import_end(&m);
}

void test_kineto_ranges(void)
{
	static const uint8_t classes[] = { RANGE_OP,         RANGE_ANNOTATION,     RANGE_ANNOTATION,
					   RANGE_ANNOTATION, RANGE_GPU_ANNOTATION, RANGE_ANNOTATION,
					   RANGE_OP,         RANGE_OTHER };
	struct import m;
	size_t i;

	import_elements(
		&m,
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a#b\",\"pid\":5,\"tid\":6,\"ts\":1,"
		"\"dur\":1,\"args\":{\"Sequence number\":17,\"Fwd thread id\":1,\"Ev Idx\":9}},"
		"{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"ProfilerStep#6\",\"pid\":5,"
		"\"tid\":6,\"ts\":2,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"enumerate(DataLoader)\",\"pid\":5,"
		"\"tid\":6,\"ts\":3,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"## fwd ##\",\"pid\":5,"
		"\"tid\":6,\"ts\":4,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"## fwd ##\",\"pid\":2,"
		"\"tid\":7,\"ts\":5,\"dur\":1,\"args\":{\"External id\":4}},"
		"{\"ph\":\"X\",\"cat\":\"weather\",\"name\":\"rain\",\"pid\":5,\"tid\":6,\"ts\":6,"
		"\"dur\":1,\"id\":\"0x1\",\"args\":{\"Sequence number\":-1}},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"w\",\"pid\":5,\"tid\":6,\"ts\":7,"
		"\"dur\":1,\"args\":{\"a\":1,\"b\":2,\"a\":3}},"
		"{\"ph\":\"X\",\"cat\":\"weather\",\"name\":\"rain\",\"pid\":2,\"tid\":7,\"ts\":8,"
		"\"dur\":1,\"args\":{\"device\":2,\"stream\":7}}");
	if (CHECK_U64(m.count, 8)) {
		for (i = 0; i < 8; i++) {
			CHECK_U64(m.events[i].kind, KIND_RANGE);
			CHECK_U64(m.events[i].subkind, classes[i]);
		}
		CHECK_U64(m.events[0].number, 17);
		CHECK_STR(attr_text(&m, 0, "fwd_thread"), "1");
		CHECK_STR(attr_text(&m, 0, "ev_idx"), "9");
		CHECK_STR(attr_text(&m, 1, ".cat"), "Operator");
		CHECK_U64(trace_get_track(m.trace, m.events[4].track)->device, 2);
		CHECK_STR(attr_text(&m, 5, ".cat"), "weather");
		CHECK_STR(attr_text(&m, 5, ".id"), "0x1");
		CHECK_STR(attr_text(&m, 5, "sequence"), "-1");
		CHECK_U64(m.events[5].number, 0);
		CHECK_STR(attr_text(&m, 6, "a"), "3"); /* as other readers have it: the last */
		CHECK_STR(attr_text(&m, 6, "b"), "2");
		CHECK_U64(trace_get_schema(m.trace, m.events[6].schema)->arg_count, 2);
	}
	import_end(&m);
}

void test_kineto_instants(void)
{
	struct import m;
	const struct track *k;

	import_elements(
		&m,
		"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\","
		"\"pid\":5,\"tid\":6,\"ts\":1,\"args\":{\"Bytes\":512,\"Addr\":4096,"
		"\"Device Id\":0,\"Device Type\":1,\"Total Allocated\":1024}},"
		"{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":5,\"tid\":6,\"ts\":2,"
		"\"args\":{\"Bytes\":-512,\"Device Id\":-1,\"Device Type\":0}},"
		"{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\","
		"\"tid\":\"\",\"ts\":3},"
		"{\"ph\":\"s\",\"id\":7,\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"pid\":5,\"tid\":6,"
		"\"ts\":4},"
		"{\"ph\":\"f\",\"bp\":\"e\",\"id\":7,\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\","
		"\"pid\":5,\"tid\":6,\"ts\":5},"
		"{\"ph\":\"f\",\"bp\":\"e\",\"id\":7,\"cat\":\"ac2g\",\"name\":\"ac2g\","
		"\"pid\":5,\"tid\":6,\"ts\":5},"
		"{\"ph\":\"C\",\"name\":\"queue\",\"pid\":5,\"ts\":6,\"args\":{\"depth\":2.5}},"
		"{\"ph\":\"B\",\"cat\":\"old\",\"name\":\"begin\",\"pid\":5,\"tid\":6,\"ts\":7}");
	if (CHECK_U64(m.count, 7)) {
		k = trace_get_track(m.trace, m.events[0].track);
		CHECK_U64(m.events[0].kind, KIND_ALLOC);
		CHECK_U64(m.events[0].bytes, 512);
		CHECK_U64(m.events[0].address, 4096);
		CHECK_STR(attr_text(&m, 0, "total_allocated"), "1024");
		CHECK(k->type == TRACK_ALLOCATOR && k->device == 0 && k->context == 1 &&
		      k->id == 6);
		k = trace_get_track(m.trace, m.events[1].track);
		CHECK_U64(m.events[1].kind, KIND_FREE);
		CHECK_U64(m.events[1].bytes, 512);
		CHECK(k->device == NO_ID && k->context == 0);
		CHECK_U64(m.events[2].kind, KIND_MARK);
		CHECK_STR(attr_text(&m, 2, ".s"), "g");
		CHECK_U64(m.events[3].subkind, MARK_FLOW_BEGIN);
		CHECK_U64(m.events[4].subkind, MARK_FLOW_END);
		CHECK_U64(m.events[4].number, 7);
		CHECK_STR(attr_text(&m, 4, ".bp"), "e");
		CHECK_STR(attr_text(&m, 4, ".cat"), "fwdbwd");
		CHECK_U64(m.events[5].kind, KIND_COUNTER);
		CHECK_F64(m.events[5].value, 2.5, 0);
		CHECK_STR(attr_text(&m, 5, "depth"), "2.5f");
		CHECK_STR(attr_text(&m, 6, ".ph"), "B");
	}
	CHECK_U64(trace_lost(m.trace, 0, LOSS_DERIVED), 1);
	import_end(&m);
}

/* Single records that are wrong are counted; the others are given. */
void test_kineto_damage(void)
{
	struct import m;

	import_elements(
		&m,
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"no dur\",\"pid\":0,\"tid\":7,"
		"\"ts\":1},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"no ts\",\"pid\":0,\"tid\":7,"
		"\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"nan\",\"pid\":0,\"tid\":7,\"ts\":NaN,"
		"\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"far\",\"pid\":0,\"tid\":7,"
		"\"ts\":1e300,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"back\",\"pid\":0,\"tid\":7,\"ts\":5,"
		"\"dur\":-1},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"\xff\xfe\",\"pid\":1,\"tid\":1,"
		"\"ts\":6,\"dur\":0,\"args\":{\"x\":N/A,\"big\":123456789012345678901234567890}},"
		"17,{\"name\":\"no ph\"}");
	if (CHECK_U64(m.count, 2)) {
		CHECK_U64(m.events[0].begin_ns, 5000);
		CHECK_U64(m.events[0].end_ns, 5000);
		CHECK_STR(text_of(&m, m.events[1].name), "\xef\xbf\xbd\xef\xbf\xbd");
		CHECK_STR(attr_text(&m, 1, "x"), "N/A");
		CHECK_STR(attr_text(&m, 1, "big"), "123456789012345678901234567890");
	}
	CHECK_U64(trace_lost(m.trace, 0, LOSS_NO_TIME), 4);
	CHECK_U64(trace_lost(m.trace, 0, LOSS_DAMAGED), 4);
	import_end(&m);
}

static void check_refused(const char *text, size_t len, enum status want, uint64_t at,
			  const char *sentence)
{
	struct import m;

	import_bytes(&m, "a.json", text, len);
	CHECK_U64(m.opened, want);
	CHECK_U64(m.err.at, at);
	CHECK_STR(m.err.text, sentence);
	CHECK(m.source == NULL);
	import_end(&m);
}

void test_kineto_refused(void)
{
	static const char report[] = "{\"schema\": \"tacho.report/1\", \"ranks\": []}";

	check_refused("", 0, ST_FORMAT, 0, "the input is empty");
	check_refused(report, sizeof(report) - 1, ST_FORMAT, 0,
		      "JSON, but not a trace: it has no traceEvents");
	check_refused("[1,2,3]", 7, ST_FORMAT, 0, "JSON, but not a trace: it has no traceEvents");
	check_refused("{\"traceEvents\": 5}", 18, ST_FORMAT, 0,
		      "JSON, but not a trace: it has no traceEvents");
	check_refused("{\"schemaVersion\": 1, \"dev", 25, ST_TRUNCATED, 25,
		      "JSON is truncated inside a string");
	check_refused("{\"schemaVersion\": oops}", 23, ST_FORMAT, 18,
		      "invalid JSON: 'o' instead of a value");
}

/* Cut anywhere: what precedes the cut is given, then the fault with its place. */
void test_kineto_cut_anywhere(void)
{
	static const char text[] =
		"{\"schemaVersion\": 1, \"traceEvents\": [\n"
		"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"pid\": 5, \"tid\": 6, "
		"\"ts\": 1.5, \"dur\": 2, \"args\": {\"External id\": 1}},\n"
		"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7, "
		"\"ts\": 2.5, \"dur\": 2, \"args\": {\"device\": 0, \"stream\": 7}}\n" BASE_LAST;
	const char *first = strchr(strstr(text, "External"), '}') + 1;
	const char *second = strchr(strstr(text, "\"device\""), '}') + 1;
	const char *events = strchr(text, '[');
	size_t len;

	for (len = 1; len < sizeof(text) - 1; len++) {
		size_t want = (len > (size_t)(first - text)) + (len > (size_t)(second - text));
		struct import m;

		import_bytes(&m, "a.json", text, len);
		if (len <= (size_t)(events - text)) {
			CHECK(m.opened == ST_TRUNCATED);
			CHECK_U64(m.err.at, len);
		} else if (CHECK_OK(m.opened, &m.err)) {
			CHECK_U64(m.count, want);
			CHECK_U64(m.ended, ST_TRUNCATED);
			CHECK_U64(m.err.at, len);
			CHECK(!trace_provenance(m.trace)->is_whole);
		}
		import_end(&m);
	}
}

void test_kineto_gzip_cut(void)
{
	struct folder folder;
	struct import m = { 0 };
	char *text = malloc(200000), *packed = malloc(200000);
	size_t at = 0, len;
	FILE *f;
	int i;

	at += (size_t)sprintf(text, "{\"traceEvents\": [");
	for (i = 0; i < 1000; i++)
		at += (size_t)sprintf(text + at,
				      "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op%d\","
				      "\"pid\":5,\"tid\":6,\"ts\":%d,\"dur\":%d}",
				      i ? "," : "", i * 7919 % 1009, i, i % 17);
	at += (size_t)sprintf(text + at, "]}");
	folder_make(&folder);
	f = fopen(folder_gzip(&folder, "a.json.gz", text, at, 0), "rb");
	len = f ? fread(packed, 1, 200000, f) : 0;
	if (f)
		fclose(f);
	import_bytes(&m, "cut.json.gz", packed, len / 2);
	CHECK_OK(m.opened, &m.err);
	CHECK(m.count > 200 && m.count < 800);
	CHECK_U64(m.ended, ST_TRUNCATED);
	CHECK(strstr(m.err.text, "the gzip data is truncated after") == m.err.text);
	CHECK(m.err.at > at / 4 && m.err.at < at);
	import_end(&m);
	folder_remove(&folder);
	free(text);
	free(packed);
}

/* TSL ends each list with {}, which saves it the last comma; elsewhere something is missing. */
void test_kineto_empty_elements(void)
{
	static const char *const categories[] = { "cpu_op", "other" }; /* of Kineto; of anybody */
	static const struct {
		const char *before, *after;
		uint64_t damaged;
	} rows[] = { { "", "{}", 0 }, { "{},", "{}", 1 }, { "{}, {},", "{}", 2 } };
	char text[2048];

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct import m;
		size_t at = (size_t)snprintf(text, sizeof(text), "%s", rows[i / 2].before);

		for (unsigned k = 0; k < 8; k++) /* the later ones are taken by their template */
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"f\", "
					       "\"pid\": 1, \"tid\": 1, \"ts\": %u, \"dur\": 1},",
					       categories[i % 2], 10 * k);
		snprintf(text + at, sizeof(text) - at, "%s", rows[i / 2].after);
		import_elements(&m, text);
		CHECK_U64(m.count, 8);
		CHECK_U64(trace_lost(m.trace, 0, LOSS_DAMAGED), rows[i / 2].damaged);
		import_end(&m);
	}
}

/* Meta's MTIA and Intel's GPUs: their events are work of a device, and the calls that launch it. */
void test_kineto_accelerators(void)
{
	static const struct {
		const char *category, *name;
		unsigned kind;
		bool launches;
	} rows[] = {
		{ "mtia_runtime", "runFunction - job_prep_and_submit_for_execution", KIND_API,
		  true },
		{ "mtia_ccp_events", "fc.1", KIND_KERNEL, false },
		{ "xpu_runtime", "urEnqueueKernelLaunch", KIND_API, true },
		{ "xpu_driver", "zeCommandListAppendMemoryCopy", KIND_API, true },
		{ "xpu_driver", "zeEventHostSynchronize", KIND_API, false },
		{ "kernel", "gemm", KIND_KERNEL, false },
	};
	enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
	char text[4096] = "";
	size_t at = 0;
	struct import m;

	for (unsigned i = 0; i < ROWS; i++)
		at += (size_t)snprintf(
			text + at, sizeof(text) - at,
			"%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, "
			"\"tid\": 7, \"ts\": %u, \"dur\": 1, \"args\": {\"correlation\": 5}}",
			i ? ", " : "", rows[i].category, rows[i].name,
			rows[i].kind == KIND_KERNEL ? 0 : 99, 10 * i);
	import_elements(&m, text);
	if (CHECK_U64(m.count, ROWS))
		for (unsigned i = 0; i < ROWS; i++) {
			const struct event *e = &m.events[i];

			CHECK_U64(e->kind, rows[i].kind);
			CHECK_U64(e->correlation, 5);
			CHECK_U64(trace_get_track(m.trace, e->track)->type,
				  rows[i].kind == KIND_KERNEL ? TRACK_STREAM : TRACK_THREAD);
			CHECK_U64(call_launches(rows[i].name, strlen(rows[i].name)),
				  rows[i].launches);
		}
	import_end(&m);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* rocprofv3's JSON: what a record may lack, cuts, damage. */
#include "convert/input/input.h"
#include "convert/source/source.h"
#include "tests/unit/events.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

struct seen {
	enum status status, last; /* of the opening, of the end */
	size_t count, kernels;
	uint64_t lost, stream, end_ns;
	char name[64];
	struct error err;
};

static void read_text(struct seen *r, const char *text, size_t len)
{
	struct budget budget = { .opening = 32 << 20, .resident = 65536, .scratch = "/tmp" };
	struct folder folder;
	struct trace *trace;
	struct input *in;
	struct source *source = NULL;
	struct batch batch;

	*r = (struct seen){ .last = ST_OK };
	folder_make(&folder);
	CHECK_OK(trace_new(&trace, 64 << 20, &r->err), &r->err);
	CHECK_OK(input_open(&in, folder_write(&folder, "a.json", text, len), "/tmp", &r->err),
		 &r->err);
	r->status = source_open(&source, in, trace, &budget, NULL, &r->err);
	while (r->status == ST_OK && (r->last = source_next(source, &batch, &r->err)) == ST_OK)
		for (size_t i = 0; i < batch.count; i++, r->count++) {
			const struct event *e = &batch.events[i];

			if (e->kind != KIND_KERNEL)
				continue;
			r->kernels++;
			r->stream = trace_get_track(trace, e->track)->id;
			r->end_ns = e->end_ns;
			snprintf(r->name, sizeof(r->name), "%s", trace_text(trace, e->name, NULL));
		}
	r->lost = trace_lost_total(trace, 0);
	source_close(source);
	input_close(in);
	trace_free(trace);
	folder_remove(&folder);
}

#define HEAD                                                                                       \
	"{\"rocprofiler-sdk-tool\": [{\"metadata\": {\"pid\": 7, \"command\": [\"a\", \"b\"]},"    \
	"\"agents\": [{\"id\": {\"handle\": 9}, \"type\": 2, \"gpu_index\": 1}],"                  \
	"\"kernel_symbols\": [{\"kernel_id\": 3, \"kernel_name\": \"k.kd\","                       \
	"\"formatted_kernel_name\": \"k\"}], \"buffer_records\": {\"kernel_dispatch\": ["
#define TAIL "]}}]}"
#define KERNEL(begin, end, agent, id)                                                              \
	"{\"start_timestamp\": " begin ", \"end_timestamp\": " end                                 \
	", \"correlation_id\": {\"internal\": 5}, \"dispatch_info\": {\"agent_id\": "              \
	"{\"handle\": " agent "}, \"queue_id\": {\"handle\": 18446744073709551615}, "              \
	"\"kernel_id\": " id "}}"
static const char whole[] =
	HEAD KERNEL("100", "300", "9", "3") "," KERNEL("400", "500", "9", "4") TAIL;

void test_rocprof_records(void)
{
	static const struct {
		const char *text;
		size_t kernels;
		uint64_t lost;
	} rows[] = {
		{ HEAD KERNEL("1", "2", "9", "3") TAIL, 1, 0 },
		{ HEAD KERNEL("1", "2", "8", "3") TAIL, 0, 1 },    /* of no GPU */
		{ HEAD KERNEL("null", "2", "9", "3") TAIL, 0, 1 }, /* without a time */
		{ HEAD KERNEL("1e300", "2", "9", "3") TAIL, 0, 1 },
		{ HEAD KERNEL("-9223372036854775808", "9223372036854775807", "9", "3") TAIL, 0, 1 },
		{ HEAD KERNEL("2", "1", "9", "3") TAIL, 1, 1 }, /* ends before it begins */
		{ HEAD "7, null, [[1]], {\"dispatch_info\": 7}" TAIL, 0, 4 },
		{ HEAD TAIL, 0, 0 },
	};
	struct seen r;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		read_text(&r, rows[i].text, strlen(rows[i].text));
		CHECK(r.status == ST_OK && r.last == ST_END);
		CHECK_U64(r.kernels, rows[i].kernels);
		CHECK_U64(r.lost, rows[i].lost);
	}
	read_text(&r, whole, sizeof(whole) - 1);
	CHECK_U64(r.kernels, 2);
	CHECK_U64(r.end_ns, 500);
	CHECK_STR(r.name, "kernel 4"); /* its symbol is not in the file */
	CHECK(r.stream == UINT64_MAX); /* without a stream it is its queue's */
}

void test_rocprof_not_mine(void)
{
	static const char none[] = "{\"a\": \"rocprofiler-sdk-tool\", \"b\": []}";
	static const char after[] = HEAD TAIL " 1";
	struct seen r;

	read_text(&r, none, sizeof(none) - 1);
	CHECK(r.status == ST_FORMAT && strstr(r.err.text, "no rocprofiler-sdk-tool"));
	read_text(&r, after, sizeof(after) - 1);
	CHECK(r.status == ST_OK && r.last == ST_FORMAT);
}

void test_rocprof_cut(void)
{
	size_t before = 0;
	struct seen r;

	for (size_t len = 1; len < sizeof(whole) - 1; len++) {
		read_text(&r, whole, len);
		CHECK(r.status == ST_OK ? r.last == ST_TRUNCATED : r.err.text[0] != 0);
		CHECK(r.kernels >= before && r.kernels <= 2);
		before = r.kernels;
	}
	CHECK_U64(before, 2);
}

void test_rocprof_damage(void)
{
	uint64_t seed = 3;
	char bad[sizeof(whole)];
	struct seen r;

	for (unsigned round = 0; round < 300; round++) {
		memcpy(bad, whole, sizeof(bad));
		for (unsigned i = 0; i < 1 + round % 8; i++)
			bad[random_u64(&seed) % (sizeof(bad) - 1)] = (char)random_u64(&seed);
		read_text(&r, bad, sizeof(bad) - 1);
		CHECK(r.status == ST_OK ? r.last != ST_OK : r.err.text[0] != 0);
	}
}

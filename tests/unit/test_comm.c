/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include "analyze/report/comm/comm.h"
#include "analyze/report/frontier/frontier.h"
#include "convert/stage/collective.h"

#include <stdio.h>
#include <string.h>

enum { METS = 200, PACKED_CEILING = 1 << 16 };

static struct rank_call random_met(uint64_t *random)
{
	struct rank_call m = { .index = random_u64(random) >> random_u64(random) % 64,
			       .place = random_u64(random) % 100,
			       .ns = random_u64(random) % 9000000,
			       .bytes = random_u64(random) % 5 ? random_u64(random) % 70000
							       : NO_U64 };
	uint64_t at = 0;

	m.exposed_count = random_u64(random) % (EXPOSED_MOST + 1);
	for (size_t i = 0; i < m.exposed_count; i++) {
		at += random_u64(random) % 500;
		m.exposed[i].at_ns = at;
		m.exposed[i].span_ns = 1 + random_u64(random) % 3000;
		m.exposed[i].exposed_ns = random_u64(random) % (m.exposed[i].span_ns + 1);
		at += m.exposed[i].span_ns;
	}
	return m;
}

static bool same(const struct rank_call *a, const struct rank_call *b)
{
	return a->index == b->index && a->place == b->place && a->ns == b->ns &&
	       a->bytes == b->bytes && a->exposed_count == b->exposed_count &&
	       !memcmp(a->exposed, b->exposed, a->exposed_count * sizeof(a->exposed[0]));
}

void test_comm_packed(void)
{
	static struct rank_call all[METS];
	struct rank_call got;
	struct buf text;
	const char *at;
	struct packed_last last = { 0, 0 };
	uint64_t random = 7;
	size_t i = 0, len, taken;

	buf_init(&text, PACKED_CEILING);
	for (i = 0; i < METS; i++) {
		all[i] = random_met(&random);
		call_pack(&text, &all[i], &last);
	}
	CHECK_OK(buf_status(&text, NULL), NULL);
	at = buf_text(&text);
	len = strlen(at);
	CHECK_U64(len, text.len); /* nothing in it ends a text */
	for (i = 0, last = (struct packed_last){ 0, 0 }; call_unpack(&at, &got, &last); i++)
		if (!CHECK(i < METS && same(&got, &all[i])))
			break;
	CHECK_U64(i, METS);
	/* cut anywhere it ends */
	for (; len-- > 0;) {
		text.data[len] = '\0';
		at = (const char *)text.data;
		for (taken = 0, last = (struct packed_last){ 0, 0 }; call_unpack(&at, &got, &last);
		     taken++)
			;
		CHECK(taken <= METS);
	}
	buf_release(&text);
}

void test_comm_hostile(void)
{
	char text[64];
	struct rank_call got;
	struct packed_last last;
	uint64_t random = 3;
	size_t i, k, taken;

	for (i = 0; i < 20000; i++) {
		const char *at = text;

		for (k = 0; k + 1 < sizeof(text); k++)
			text[k] = (char)(random_u64(&random) % 255 + 1);
		text[k] = '\0';
		for (taken = 0, last = (struct packed_last){ 0, 0 }; call_unpack(&at, &got, &last);
		     taken++)
			call_exposed_ns(&got, random_u64(&random));
		if (taken > sizeof(text))
			break;
	}
	CHECK_U64(i, 20000);
}

void test_comm_exposed(void)
{
	struct rank_call m = { .ns = 1000,
			       .exposed = { { 100, 50, 50 }, { 300, 200, 100 } },
			       .exposed_count = 2 };

	CHECK_U64(call_exposed_ns(&m, 0), 0);
	CHECK_U64(call_exposed_ns(&m, 100), 0);
	CHECK_U64(call_exposed_ns(&m, 120), 20);
	CHECK_U64(call_exposed_ns(&m, 200), 50);
	CHECK_U64(call_exposed_ns(&m, 400), 100); /* of what was summed up a share */
	CHECK_U64(call_exposed_ns(&m, 500), 150);
	CHECK_U64(call_exposed_ns(&m, UINT64_MAX), 150);
}

void test_comm_operations(void)
{
	CHECK_F64(operation_factor(OPERATION_ALL_REDUCE, 8), 1.75, 1e-12);
	CHECK_F64(operation_factor(OPERATION_ALL_GATHER, 4), 0.75, 1e-12);
	CHECK_F64(operation_factor(OPERATION_REDUCE_SCATTER, 2), 0.5, 1e-12);
	CHECK_F64(operation_factor(OPERATION_BROADCAST, 8), 1, 0);
	CHECK_F64(operation_factor(OPERATION_BARRIER, 8), 0, 0);
	CHECK_F64(operation_factor(OPERATION_ALL_REDUCE, 0), 0, 0);
	CHECK(operation_find("all_to_all") == OPERATION_ALL_TO_ALL);
	CHECK(operation_find("nonsense") == OPERATION_OTHER);
	CHECK(operation_is_point(OPERATION_SEND_RECV) && !operation_is_point(OPERATION_REDUCE));
}

/* ---- what a kernel says, or the range that it was launched in, or its name ---- */

static uint32_t schema_of(struct trace *t, const char *operation, uint64_t comm)
{
	struct attr consts[] = {
		{ .key = trace_name(t, "collective", 10, NULL),
		  .type = ATTR_TEXT,
		  .bits = trace_name(t, operation, strlen(operation), NULL) },
		{ .key = trace_name(t, "comms_id", 8, NULL), .type = ATTR_U64, .bits = comm },
	};
	struct attr args = { .key = trace_name(t, "bytes", 5, NULL), .type = ATTR_U64 };
	struct arg_schema s = { .consts = consts, .const_count = 2, .args = &args, .arg_count = 1 };

	return trace_schema(t, &s, NULL);
}

void test_comm_of_event(void)
{
	static const char name[] = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*)";
	const uint64_t bytes = 4096;
	struct trace *t = NULL;
	struct collectives *c = NULL;
	struct collective got;
	struct event e = { .kind = KIND_KERNEL, .args = &bytes };

	CHECK_OK(trace_new(&t, 1 << 20, NULL), NULL);
	e.name = trace_name(t, name, strlen(name), NULL);
	e.schema = schema_of(t, "ncclAllReduce", 0xabc);
	CHECK_OK(collectives_new(&c, t, NULL), NULL);
	collectives_find(c, &e, NULL, &got);
	CHECK(got.operation == OPERATION_ALL_REDUCE);
	CHECK_STR(got.group, "0xabc");
	CHECK_U64(got.bytes, 4096);
	CHECK(!got.has_seq);
	e.schema = 0; /* then only its name speaks */
	collectives_find(c, &e, NULL, &got);
	CHECK(got.operation == OPERATION_REDUCE_SCATTER);
	CHECK_STR(got.group, "");
	CHECK_STR(got.type, "BFloat16");
	CHECK_U64(got.bytes, UINT64_MAX);
	collectives_free(c);
	trace_free(t);
}

/* All-to-alls are kernels called SendRecv: their range says what they are, however far the GPU is
 * behind the thread that launched them. */
void test_comm_of_range(void)
{
	enum { AHEAD = 3000 };
	static const char kernel[] = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)";
	const uint64_t bytes = 64;
	struct trace *t = NULL;
	struct collectives *c = NULL;
	struct collective got;
	struct launch launch = { .track = 0 };
	struct event range = { .kind = KIND_RANGE }, e = { .kind = KIND_KERNEL };
	uint32_t detailed, all_to_all, send;

	CHECK_OK(trace_new(&t, 1 << 20, NULL), NULL);
	e.name = trace_name(t, kernel, strlen(kernel), NULL);
	detailed = schema_of(t, "all_to_allv", 0xabc);
	all_to_all = trace_name(t, "nccl:all_to_all", 15, NULL);
	send = trace_name(t, "nccl:send 0->1", 14, NULL);
	CHECK_OK(collectives_new(&c, t, NULL), NULL);
	for (uint64_t i = 0; i < AHEAD; i++) {
		/* record_param_comms around nccl:all_to_all; or nccl:send alone */
		range.begin_ns = 100 * i;
		range.end_ns = 100 * i + 50;
		range.schema = i % 2 ? 0 : detailed;
		range.args = i % 2 ? NULL : &bytes;
		range.name = i % 2 ? send : 0;
		CHECK_OK(collectives_note(c, &range, NULL), NULL);
		if (i % 2)
			continue;
		range.begin_ns += 10;
		range.end_ns -= 10;
		range.schema = 0;
		range.name = all_to_all;
		CHECK_OK(collectives_note(c, &range, NULL), NULL);
	}
	for (uint64_t i = AHEAD - 1000; i < AHEAD; i++) {
		launch.begin_ns = 100 * i + 20;
		collectives_find(c, &e, &launch, &got);
		if (!CHECK(got.operation == (i % 2 ? OPERATION_SEND : OPERATION_ALL_TO_ALL)) ||
		    !CHECK_STR(got.group, i % 2 ? "" : "0xabc"))
			break;
	}
	launch.begin_ns += 50; /* in none */
	collectives_find(c, &e, &launch, &got);
	CHECK(got.operation == OPERATION_SEND_RECV);
	CHECK_STR(got.type, ""); /* bytes are what any data is sent as */
	collectives_free(c);
	trace_free(t);
}

void test_comm_link(void)
{
	static const struct {
		const char *gpu, *group;
		uint64_t ranks;
		double gb_per_s;
	} rows[] = {
		{ "NVIDIA H100 80GB HBM3", "0 [0, 1, 2, 3]", 4, 450 },
		{ "NVIDIA H100 80GB HBM3", "1 [0, 8]", 2, 50 },
		{ "NVIDIA H100 80GB HBM3", "1 [8, 15]", 2, 450 },
		{ "NVIDIA H100 80GB HBM3", "0 [0, 1, 2, 3, 4, 5, 6\xe2\x80\xa6 #0badcafe", 16, 50 },
		{ "NVIDIA H100 80GB HBM3", "", 0, 0 },
		{ "NVIDIA H100 PCIe", "", 2, 64 },
		{ "NVIDIA H200", "0x77", 8, 450 },
		{ "NVIDIA H200 NVL", "", 2, 0 },
		{ "NVIDIA GB200", "", 72, 900 },
		{ "NVIDIA A100-SXM4-40GB", "", 8, 300 },
		{ "NVIDIA A100-PCIE-40GB", "", 8, 32 },
		{ "NVIDIA A10G", "", 4, 32 },
		{ "NVIDIA H100 80GB HBM3", "", 16, 50 },
		{ "Tesla V100-SXM2-32GB", "", 16, 0 },
		{ "AMD Instinct MI300X", "0 [0, 1, 2, 3, 4, 5, 6, 7]", 8, 448 },
		{ "synthetic GPU", "", 8, 0 },
		{ NULL, "", 8, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!CHECK_F64(link_gb_per_s(rows[i].gpu, rows[i].group, rows[i].ranks),
			       rows[i].gb_per_s, 0))
			printf("  %s %s\n", rows[i].gpu ? rows[i].gpu : "", rows[i].group);
}

/* Numbers with long runs of nothing between them; what is not written is nothing. */
void test_comm_frontier_list(void)
{
	enum { NUMBERS = 3000 };
	static uint64_t all[NUMBERS];
	struct packed_list out = { 0, 0 }, in = { 0, 0 };
	uint64_t random = 11, value;
	struct buf text;
	const char *at;
	size_t i;

	buf_init(&text, PACKED_CEILING);
	for (i = 0; i < NUMBERS; i++) {
		all[i] = random_u64(&random) % 9 ? 0 : random_u64(&random) >> random % 60;
		all[i] = i % 700 < 300 || i > NUMBERS - 50 ? 0 : all[i];
		list_put(&text, &out, all[i]);
	}
	CHECK_OK(buf_status(&text, NULL), NULL);
	CHECK(text.len < NUMBERS * 2);
	at = buf_text(&text);
	for (i = 0; i < NUMBERS; i++) {
		list_take(&at, &in, &value);
		if (!CHECK_U64(value, all[i]))
			break;
	}
	CHECK(!list_take(&at, &in, &value));
	buf_release(&text);
}

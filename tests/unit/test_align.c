/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "convert/stage/align/align.h"
#include "convert/stage/align/read.h"
#include "convert/spool/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 41 };
#define SECOND_NS UINT64_C(1000000000)
#define AT_NS     (UINT64_C(1790000000) * SECOND_NS)

/* What a host with a clock of its own says of collectives that end every `gap_ns`. */
static void see(struct ended *out, size_t count, uint64_t gap_ns, int64_t offset_ns, double drift)
{
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t true_ns = AT_NS + i * gap_ns;
		double away_ns = (double)(i * gap_ns) * drift;

		out[i] = (struct ended){ i * 3, true_ns + (uint64_t)offset_ns +
							(uint64_t)(int64_t)away_ns };
	}
}

void test_align_offset(void)
{
	struct ended a[PAIRS], b[PAIRS];
	struct aligned fit;
	struct error err = { 0 };

	see(a, PAIRS, 1000000, 0, 0);
	see(b, PAIRS, 1000000, -7300, 0);
	if (!CHECK_OK(align_pairs(b, PAIRS, a, PAIRS, &fit, &err), &err))
		return;
	CHECK_U64(fit.pairs, PAIRS);
	CHECK_I64(fit.fit.offset_ns, 7300);
	CHECK_F64(fit.fit.drift, 0, 0);
	CHECK_U64(fit.fit.error_ns, 0);
	CHECK_U64(clock_fit_at(&fit.fit, b[5].end_ns), a[5].end_ns);
	b[3].end_ns += 90 * SECOND_NS; /* a few that are far off move no median */
	b[9].end_ns -= 5000000;
	CHECK_OK(align_pairs(b, PAIRS, a, PAIRS, &fit, &err), &err);
	CHECK_I64(fit.fit.offset_ns, 7300);
	CHECK_OK(align_pairs(b, 2, a, PAIRS, &fit, &err), &err);
	CHECK_U64(fit.pairs, 2);
	CHECK_I64(fit.fit.offset_ns, 0);
}

void test_align_unmatched(void)
{
	struct ended a[PAIRS], b[PAIRS];
	struct aligned fit;
	size_t i;

	see(a, PAIRS, 1000000, 0, 0);
	see(b, PAIRS, 1000000, 40, 0);
	for (i = 0; i < PAIRS; i++)
		b[i].key += i % 2; /* every other one is another's */
	CHECK_OK(align_pairs(b, PAIRS, a, PAIRS, &fit, NULL), NULL);
	CHECK_U64(fit.pairs, (PAIRS + 1) / 2);
	CHECK_I64(fit.fit.offset_ns, -40);
	CHECK_OK(align_pairs(b, PAIRS, a, 0, &fit, NULL), NULL);
	CHECK_U64(fit.pairs, 0);
}

void test_align_drift(void)
{
	struct ended a[PAIRS], b[PAIRS];
	struct aligned fit;
	size_t i;

	see(a, PAIRS, SECOND_NS, 0, 0);
	see(b, PAIRS, SECOND_NS, 2000000, 20e-6);
	for (i = 0; i < PAIRS; i++)
		b[i].end_ns += (i * 7919) % 400; /* seen a little late */
	CHECK_OK(align_pairs(b, PAIRS, a, PAIRS, &fit, NULL), NULL);
	CHECK_F64(fit.fit.drift, -20e-6, 0.1e-6);
	CHECK(fit.fit.error_ns > 0 && fit.fit.error_ns < 400);
	for (i = 0; i < PAIRS; i++)
		CHECK_F64((double)(int64_t)(clock_fit_at(&fit.fit, b[i].end_ns) - a[i].end_ns), 0,
			  1500);
	/* ten seconds are needed to tell a drift from a delay */
	see(a, PAIRS, SECOND_NS / 10, 0, 0);
	see(b, PAIRS, SECOND_NS / 10, 2000000, 20e-6);
	CHECK_OK(align_pairs(b, PAIRS, a, PAIRS, &fit, NULL), NULL);
	CHECK_F64(fit.fit.drift, 0, 0);
	see(a, PAIRS, SECOND_NS, 0, 0);
	see(b, PAIRS, SECOND_NS, 0, 5e-3); /* that is no clock */
	CHECK_OK(align_pairs(b, PAIRS, a, PAIRS, &fit, NULL), NULL);
	CHECK_F64(fit.fit.drift, 0, 0);
}

/* ---- hosts ------------------------------------------------------------------------------ */

struct told {
	char text[2000];
};

static void take_line(void *self, const char *line)
{
	struct told *t = self;

	strncat(t->text, line, sizeof(t->text) - strlen(t->text) - 1);
	strncat(t->text, "\n", sizeof(t->text) - strlen(t->text) - 1);
}

/* A rank of one communicator, on a host whose clock is ahead by `ahead_us`. */
static void write_rank(const char *path, unsigned rank, unsigned ahead_us)
{
	FILE *f = fopen(path, "w");
	unsigned i;

	if (!CHECK(f != NULL))
		return;
	fprintf(f,
		"{\"schemaVersion\":1,\"distributedInfo\":{\"rank\":%u,\"world_size\":2},"
		"\"traceEvents\":[",
		rank);
	for (i = 0; i < 10; i++)
		fprintf(f,
			"%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\","
			"\"pid\":0,\"tid\":20,\"ts\":%llu,\"dur\":%u,\"args\":{\"device\":0,"
			"\"stream\":20,\"correlation\":%u,\"Collective name\":\"allreduce\","
			"\"Process Group Name\":\"0\",\"Process Group Ranks\":\"[0, 1]\","
			"\"Seq\":%u}}",
			i ? "," : "", 1790000000000000ULL + i * 5000 + ahead_us - rank * 30,
			400 + rank * 30, i + 1, i + 7);
	fprintf(f, "]}\n");
	fclose(f);
}

static uint32_t add_process(struct trace *t, const char *host, uint32_t rank)
{
	struct process p = { .host = trace_name(t, host, strlen(host), NULL),
			     .pid = 10,
			     .rank = rank };

	return trace_process(t, &p, NULL);
}

static void add_anchors(struct trace *t, uint32_t process, uint64_t error_ns)
{
	unsigned i;

	for (i = 0; i < 3; i++) {
		struct anchor a = { .process = process,
				    .monotonic_ns = 1000 + i * SECOND_NS,
				    .realtime_ns = AT_NS + i * SECOND_NS + i % 2 * error_ns };

		trace_anchor(t, &a, NULL);
	}
}

struct hosts {
	struct folder folder;
	char path[2][128];
	struct trace *trace;
	struct run_input inputs[2];
	struct told told;
};

static void hosts_make(struct hosts *h, const char *first, const char *second, uint64_t error_ns)
{
	struct window w = { .begin_ns = AT_NS + 50000, .end_ns = AT_NS + SECOND_NS };
	unsigned i;

	memset(h, 0, sizeof(*h));
	folder_make(&h->folder);
	CHECK_OK(trace_new(&h->trace, 1 << 20, NULL), NULL);
	for (i = 0; i < 2; i++) {
		snprintf(h->path[i], sizeof(h->path[i]), "%s/rank%u.json", h->folder.folder, i);
		write_rank(h->path[i], i, i * 50);
		w.process = add_process(h->trace, i ? second : first, i);
		if (error_ns)
			add_anchors(h->trace, w.process, error_ns);
		trace_window(h->trace, &w, NULL);
		h->inputs[i] = (struct run_input){ .path = h->path[i],
						   .first_process = i + 1,
						   .end_process = i + 2,
						   .epoch_known = true };
	}
}

static void hosts_release(struct hosts *h)
{
	trace_free(h->trace);
	folder_remove(&h->folder);
}

static void fit(struct hosts *h, enum align_mode mode)
{
	struct budget budget = { .opening = 16 << 20, .resident = 65536, .scratch = "/tmp" };
	struct name_rules *rules = NULL;
	struct align_request how = { .trace = h->trace,
				     .inputs = h->inputs,
				     .count = 2,
				     .mode = mode,
				     .budget = &budget,
				     .report = take_line,
				     .self = &h->told };
	struct error err = { 0 };

	CHECK_OK(name_rules_new(&rules, NULL, 0, &err), &err);
	how.rules = rules;
	h->told.text[0] = '\0';
	CHECK_OK(align_fit(&how, &err), &err);
	name_rules_free(rules);
}

void test_align_hosts(void)
{
	struct hosts h;

	hosts_make(&h, "a", "b", 0);
	fit(&h, ALIGN_ANCHORS);
	CHECK_I64(h.inputs[1].fit.offset_ns, 0);
	CHECK(strstr(h.told.text, "clock of b: +50.0 us from that of a, by 10 collectives") !=
	      NULL);
	CHECK(strstr(h.told.text, "not applied, because the log has no clock anchors") != NULL);
	fit(&h, ALIGN_NONE);
	CHECK_I64(h.inputs[1].fit.offset_ns, 0);
	CHECK_STR(h.told.text, "");
	fit(&h, ALIGN_COLLECTIVES);
	CHECK_I64(h.inputs[0].fit.offset_ns, 0);
	CHECK_I64(h.inputs[1].fit.offset_ns, -50000);
	CHECK(strstr(h.told.text,
		     "1 compared with the first, 1 corrected; remaining error at most 0.0 us") !=
	      NULL);
	/* windows go with their events */
	CHECK_U64(trace_get_window(h.trace, 1)->begin_ns, AT_NS + 50000);
	CHECK_U64(trace_get_window(h.trace, 2)->begin_ns, AT_NS);
	hosts_release(&h);
}

void test_align_anchors(void)
{
	struct hosts h;

	hosts_make(&h, "a", "b", 20000);
	CHECK_U64(align_anchor_error(h.trace, 1), 20000);
	CHECK_U64(align_anchor_error(h.trace, 7), UINT64_MAX);
	fit(&h, ALIGN_ANCHORS); /* 50 us are more than both clocks' 20 */
	CHECK_I64(h.inputs[1].fit.offset_ns, 0);
	CHECK(strstr(h.told.text, "the clock anchors allow an error of only 40.0 us") != NULL);
	hosts_release(&h);
	hosts_make(&h, "a", "b", 30000);
	fit(&h, ALIGN_ANCHORS);
	CHECK_I64(h.inputs[1].fit.offset_ns, -50000);
	hosts_release(&h);
}

void test_align_never(void)
{
	struct hosts h;

	hosts_make(&h, "a", "a", 30000); /* never per rank */
	fit(&h, ALIGN_COLLECTIVES);
	CHECK_I64(h.inputs[1].fit.offset_ns, 0);
	CHECK_STR(h.told.text, "");
	hosts_release(&h);
	hosts_make(&h, "a", "b", 30000);
	h.inputs[1].epoch_known = false;
	fit(&h, ALIGN_COLLECTIVES);
	CHECK_I64(h.inputs[1].fit.offset_ns, 0);
	CHECK(strstr(h.told.text, "the times of 1 of 2 inputs do not count from the Unix epoch") !=
	      NULL);
	hosts_release(&h);
	hosts_make(&h, "a", "b", 30000);
	remove(h.path[1]); /* what cannot be read is told, and ends nothing */
	fit(&h, ALIGN_COLLECTIVES);
	CHECK_I64(h.inputs[1].fit.offset_ns, 0);
	CHECK(strstr(h.told.text, "clock of b cannot be compared") != NULL);
	hosts_release(&h);
}

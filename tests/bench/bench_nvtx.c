/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_nvtx.c - what NVTX costs the thread that calls it, through NVTX's own headers: without a
 * handler, and with ours by state of the collector.  Prints a table; best of several runs, ns for a
 * range (its begin and its end) or a mark.
 *
 *	bench_nvtx LIBTACHO
 *
 * It is not linked with libtacho, which comes the way that NVTX finds it.
 */
#include "tests/bench/bench.h"

#include <nvtx3/nvToolsExtPayload.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A batch fits into the thread's ring; between two of them the writer has time to empty it. */
enum { BATCH = 4000, RUNS = 30, PAUSE_US = 20000 };

static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t registered, with_payload;
static char texts[BATCH][96];

struct reduce {
	uint64_t communicator;
	size_t bytes;
	int operation;
};
static struct reduce reduce = { 1, 4096, 0 };
static nvtxPayloadData_t payload;

static nvtxEventAttributes_t attributes(const char *name)
{
	nvtxEventAttributes_t a;

	memset(&a, 0, sizeof(a));
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = nvtxDomainRegisterStringA(domain, name);
	return a;
}

static uint64_t make_schema(void)
{
	static const nvtxPayloadSchemaEntry_t entries[] = {
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", NULL, 0, 0, NULL,
		  NULL },
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", NULL, 0, 8, NULL, NULL },
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Root", NULL, 0, 16, NULL, NULL },
	};
	nvtxPayloadSchemaAttr_t a;

	memset(&a, 0, sizeof(a));
	a.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
		      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
	a.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
	a.entries = entries;
	a.numEntries = sizeof(entries) / sizeof(entries[0]);
	return nvtxPayloadSchemaRegister(domain, &a);
}

static void prepare(void)
{
	int i;

	domain = nvtxDomainCreateA("NCCL");
	registered = attributes("ncclAllReduce");
	with_payload = registered;
	payload = (nvtxPayloadData_t){ make_schema(), sizeof(reduce), &reduce };
	with_payload.payloadType = (int32_t)NVTX_PAYLOAD_TYPE_EXT;
	with_payload.reserved0 = 1;
	with_payload.payload.ullValue = (uint64_t)(uintptr_t)&payload;
	for (i = 0; i < BATCH; i++)
		snprintf(
			texts[i], sizeof(texts[i]),
			"aten::addmm, seq = %d, op_id = %d, sizes = [[512], [64, 512], [512, 512]]",
			i, 3 * i);
}

LOOP(run_text, BATCH, nvtxRangePushA("forward"); nvtxRangePop())
LOOP(run_registered, BATCH, nvtxDomainRangePushEx(domain, &registered); nvtxDomainRangePop(domain))
LOOP(run_new, BATCH, nvtxRangePushA(texts[i]); nvtxRangePop())
LOOP(run_payload, BATCH, nvtxDomainRangePushEx(domain, &with_payload); nvtxDomainRangePop(domain))
LOOP(run_started, BATCH, nvtxRangeEnd(nvtxRangeStartA("forward")))
LOOP(run_mark, BATCH, nvtxMarkA("here"))

static const struct {
	const char *what;
	double (*run)(void);
} rows[] = {
	{ "push and pop, same text", run_text },
	{ "push and pop, registered, a domain", run_registered },
	{ "push and pop, new text (emit_nvtx)", run_new },
	{ "push and pop, NCCL's payload", run_payload },
	{ "start and end", run_started },
	{ "mark", run_mark },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* In the child: one line of figures. */
static int measure_rows(int pause)
{
	size_t i;

	prepare();
	for (i = 0; i < ROWS; i++)
		printf("%.2f ", best_of(rows[i].run, RUNS, pause ? PAUSE_US : 0));
	return 0;
}

static const struct {
	const char *name, *set;
} states[] = {
	{ "none", "TACHO_ENABLED=0" },
	{ "off", "TACHO_ENABLED=" },
	{ "armed", "TACHO_WINDOW=signal" },
	{ "recording", "TACHO_WINDOW=all" },
};
enum { STATES = sizeof(states) / sizeof(states[0]) };

static int ask(const char *self, const char *library, const char *folder, size_t which,
	       double ns[ROWS])
{
	char command[1024];
	FILE *f;
	size_t i;

	snprintf(command, sizeof(command),
		 "NVTX_INJECTION64_PATH=%s TACHO_SAMPLE=none TACHO_OUT=%s %s %s rows %d",
		 which ? library : "/none", folder, states[which].set, self, which == STATES - 1);
	f = popen(command, "r");
	if (!f)
		return 0;
	for (i = 0; i < ROWS; i++)
		if (fscanf(f, "%lf", &ns[i]) != 1)
			ns[i] = -1;
	return pclose(f) == 0;
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/tacho-bench-XXXXXX", command[64];
	double ns[STATES][ROWS];
	size_t state, i;

	if (argc == 3 && !strcmp(argv[1], "rows"))
		return measure_rows(atoi(argv[2]));
	if (argc != 2 || !mkdtemp(folder))
		return 1;
	for (state = 0; state < STATES; state++)
		if (!ask(argv[0], argv[1], folder, state, ns[state])) {
			fprintf(stderr, "bench_nvtx: not %s\n", states[state].name);
			return 1;
		}
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	printf("%-34s", "");
	for (state = 0; state < STATES; state++)
		printf(" %9s", states[state].name);
	printf("  ns\n");
	for (i = 0; i < ROWS; i++) {
		printf("%-34s", rows[i].what);
		for (state = 0; state < STATES; state++)
			printf(" %9.1f", ns[state][i]);
		printf("\n");
	}
	return system(command) != 0;
}

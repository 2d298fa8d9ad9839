/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe for health, which shows why the same code is slower on some host: figures of the GPUs that
 * this process uses and of its host, once a second, as counters with the names in gpu.h and
 * HEALTH_HOST.
 */
#include "collector/config/config.h"
#include "collector/probe/health/gpu.h"
#include "collector/probe/probe.h"
#include "collector/probe/rows.h"
#include "collector/session/session.h"
#include "collector/store/writer.h"
#include "schemas/base/buf.h"
#include "schemas/model/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERIOD_NS UINT64_C(1000000000)
/* X(name, unit, meaning) */
/* clang-format off */
#define HEALTH_HOST(X)                                                                             \
	X(processor_share, PERCENT, "of one processor, since the sample before; above 100: threads") \
	X(runnable_wait, PERCENT, "time in which the first thread could have run and did not")     \
	X(page_faults, COUNT, "that read from a disk, since the sample before")                    \
	X(memory_pressure, PERCENT, "time in which some process of the host waited for memory")    \
	X(thread_numa_node, NONE, "of the processor that the first thread runs on")
/* clang-format on */
enum health_host {
#define X(name, unit, meaning) HEALTH_##name,
	HEALTH_HOST(X)
#undef X
		HEALTH_HOST_COUNT,
};
enum { HOST = HEALTH_GPUS, PLACES = HEALTH_GPUS + 1, FIGURES = 32 };
_Static_assert((int)HEALTH_GPU_COUNT <= FIGURES, "places of figures");
_Static_assert((int)HEALTH_HOST_COUNT <= FIGURES, "places of figures");

static const struct figure {
	const char *name;
	uint8_t unit;
} gpu_figures[] = {
#define X(name, unit, meaning) { #name, UNIT_##unit },
	HEALTH_GPU(X)
#undef X
}, host_figures[] = {
#define X(name, unit, meaning) { #name, UNIT_##unit },
	HEALTH_HOST(X)
#undef X
};

static struct {
	const struct config *config;
	uint64_t next_ns, log;
	bool has_gpus;
	struct host_state {
		uint64_t sampled_ns, processor_ns, wait_ns, faults;
	} host;                          /* the previous reading */
	uint32_t descs[PLACES][FIGURES]; /* descriptors in that log */
	bool said[HEALTH_GPUS];          /* constant figures have been put into that log */
} state;

static enum status health_open(const struct config *config, struct error *err)
{
	if (!config->health)
		return fail(err, ST_ABSENT, NOWHERE, "health is not requested");
	state.config = config;
	return ST_OK;
}

static enum status health_begin(uint64_t now_ns, struct error *err)
{
	state.next_ns = now_ns;
	return ST_OK;
}

static void put_host(struct writer *w, enum health_host what, uint64_t at_ns, double value)
{
	probe_put_counter(w, &state.descs[HOST][what], NO_ID, host_figures[what].name,
			  host_figures[what].unit, at_ns, value);
}

/* Returns the number in word `number` (from 3 on) of /proc/PID/stat; the second word may contain
 * blanks and brackets. */
static uint64_t stat_word(const char *text, unsigned number)
{
	const char *at = strrchr(text, ')');

	for (unsigned i = 2; at && i < number; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void put_node(struct writer *w, uint64_t processor, uint64_t at_ns)
{
	enum { NODES = 64 };
	char path[96];

	for (unsigned node = 0; node < NODES; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpu%llu", node,
			 (unsigned long long)processor);
		if (access(path, F_OK) == 0) {
			put_host(w, HEALTH_thread_numa_node, at_ns, node);
			return;
		}
	}
}

/* Reads /proc, for which only the number of the process is needed. */
static void sample_host(struct writer *w, uint64_t now_ns)
{
	enum { MAJOR_FAULTS = 12, USER = 14, SYSTEM = 15, PROCESSOR = 39 };
	const struct host_state *before = &state.host;
	double passed_ns = (double)(now_ns - before->sampled_ns);
	bool has_before = before->sampled_ns && now_ns > before->sampled_ns;
	struct host_state now = { .sampled_ns = now_ns };
	char path[64], text[1024];

	snprintf(path, sizeof(path), "%s/stat", session_proc());
	if (probe_read(path, text, sizeof(text))) {
		uint64_t ticks = stat_word(text, USER) + stat_word(text, SYSTEM);

		now.processor_ns = ticks * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
		now.faults = stat_word(text, MAJOR_FAULTS);
		if (has_before && now.processor_ns >= before->processor_ns)
			put_host(w, HEALTH_processor_share, now_ns,
				 (double)(now.processor_ns - before->processor_ns) / passed_ns *
					 100);
		if (has_before && now.faults >= before->faults)
			put_host(w, HEALTH_page_faults, now_ns,
				 (double)(now.faults - before->faults));
		put_node(w, stat_word(text, PROCESSOR), now_ns);
	}
	snprintf(path, sizeof(path), "%s/schedstat", session_proc());
	const char *second = probe_read(path, text, sizeof(text)) ? strchr(text, ' ') : NULL;
	now.wait_ns = second ? strtoull(second, NULL, 10) : 0;
	if (has_before && second && now.wait_ns >= before->wait_ns)
		put_host(w, HEALTH_runnable_wait, now_ns,
			 (double)(now.wait_ns - before->wait_ns) / passed_ns * 100);
	probe_read("/proc/pressure/memory", text, sizeof(text));
	const char *some = strstr(text, "avg10=");
	if (some)
		put_host(w, HEALTH_memory_pressure, now_ns, strtod(some + 6, NULL));
	state.host = now;
}

static void sample_gpus(struct writer *w, uint64_t now_ns)
{
	struct gpu_values v;
	uint32_t place;
	int gpu;

	for (unsigned n = 0; (gpu = health_gpu_used(state.config, n, &place)) >= 0; n++) {
		if (place >= HEALTH_GPUS)
			continue;
		health_gpu_sample(gpu, now_ns, &v);
		for (unsigned i = 0; i < HEALTH_GPU_COUNT; i++)
			if (v.known >> i & 1 && (i < HEALTH_sm_clock_max || !state.said[place]))
				probe_put_counter(w, &state.descs[place][i], place,
						  gpu_figures[i].name, gpu_figures[i].unit, now_ns,
						  v.value[i]);
		state.said[place] = true;
	}
}

static unsigned health_drain(struct writer *w, uint64_t now_ns)
{
	if (now_ns < state.next_ns || writer_is_last(w) || !writer_ready(w))
		return 0;
	if (writer_log_changed(w, &state.log)) {
		memset(state.descs, 0, sizeof(state.descs));
		memset(state.said, 0, sizeof(state.said));
	}
	if (!state.has_gpus) /* not at the start, as it may take seconds */
		state.has_gpus = health_gpu_open(NULL) == ST_OK;
	if (state.has_gpus)
		sample_gpus(w, now_ns);
	sample_host(w, now_ns);
	state.next_ns = now_ns + PERIOD_NS;
	return 0;
}

static uint64_t health_due(uint64_t now_ns)
{
	return state.next_ns > now_ns ? state.next_ns - now_ns : 0;
}

static void health_forked(void)
{
	memset(&state, 0, sizeof(state));
	health_gpu_forget();
}

const struct probe_type probe_health = {
	.name = "health",
	.help = "clocks, power, temperature, links and errors of the GPUs, and the host's load",
	.open = health_open,
	.begin = health_begin,
	.drain = health_drain,
	.due = health_due,
	.forked = health_forked,
};

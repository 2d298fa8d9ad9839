/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the same code is slower here: figures of the GPUs that this process uses and of its host,
 * once a second, as counters under the names of gpu.h and host.h.
 */
#include "collector/config/config.h"
#include "collector/probe/health/gpu.h"
#include "collector/probe/health/host.h"
#include "collector/probe/probe.h"
#include "collector/session/session.h"
#include "collector/store/writer.h"
#include "schemas/base/buf.h"
#include "schemas/model/records.h"

#include <stdio.h>
#include <string.h>

#define PERIOD_NS UINT64_C(1000000000)
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
	struct host_state host;
	uint32_t descs[PLACES][FIGURES]; /* of that log */
	bool said[HEALTH_GPUS];          /* what does not change, in that log */
} state;

static enum status health_open(const struct config *config, struct error *err)
{
	if (!config->health)
		return fail(err, ST_ABSENT, NOWHERE, "health is not asked for");
	state.config = config;
	return ST_OK;
}

static enum status health_begin(uint64_t now_ns, struct error *err)
{
	state.next_ns = now_ns;
	return ST_OK;
}

static void put(struct writer *w, unsigned place, const struct figure *f, unsigned number,
		uint64_t at_ns, double value)
{
	struct event e = { .begin_ns = at_ns, .end_ns = at_ns, .value = value };
	struct track track = { .type = TRACK_COUNTER,
			       .context = NO_ID,
			       .unit = f->unit,
			       .device = place == HOST ? NO_ID : place };
	struct event_desc desc = { .kind = KIND_COUNTER };
	uint32_t *known = &state.descs[place][number];

	if (!*known) {
		track.name = desc.name = writer_name(w, f->name, strlen(f->name));
		desc.track = writer_track(w, &track);
		*known = writer_desc(w, &desc);
	}
	writer_put(w, &e, *known);
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
				put(w, place, &gpu_figures[i], i, now_ns, v.value[i]);
		state.said[place] = true;
	}
}

static unsigned health_drain(struct writer *w, uint64_t now_ns)
{
	struct host_values v;

	if (now_ns < state.next_ns || writer_is_last(w) || !writer_ready(w))
		return 0;
	if (writer_log_changed(w, &state.log)) {
		memset(state.descs, 0, sizeof(state.descs));
		memset(state.said, 0, sizeof(state.said));
	}
	if (!state.has_gpus) /* not before the first sample, as it may take seconds */
		state.has_gpus = health_gpu_open(NULL) == ST_OK;
	if (state.has_gpus)
		sample_gpus(w, now_ns);
	health_host_sample(&state.host, session_proc(), now_ns, &v);
	for (unsigned i = 0; i < HEALTH_HOST_COUNT; i++)
		if (v.known >> i & 1)
			put(w, HOST, &host_figures[i], i, now_ns, v.value[i]);
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

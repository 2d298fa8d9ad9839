/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe for memory: samples of host memory (this process's resident set) and of device memory (all
 * of a GPU that this process uses, from the driver, at most once a second), as counters
 * "bytes_in_use" and "peak_bytes_in_use" of a device, or of no device for the host.  A device's
 * peak is the largest sample of this process.  A sample that a step requested has the time of the
 * request.
 */
#include "collector/config/config.h"
#include "collector/probe/health/gpu.h"
#include "collector/probe/cupti/lib.h"
#include "collector/session/session.h"
#include "collector/probe/probe.h"
#include "collector/probe/rows.h"
#include "collector/store/writer.h"
#include "schemas/base/buf.h"
#include "schemas/model/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IN_USE, PEAK, SERIES };
static const char *const series_names[SERIES] = { "bytes_in_use", "peak_bytes_in_use" };
enum { HOST = HEALTH_GPUS, PLACES = HEALTH_GPUS + 1, TEXT = 4096 };
#define DEVICE_NS UINT64_C(1000000000) /* least period, because the driver takes a global lock */

static struct {
	const struct config *config;
	uint64_t period_ns, next_ns;
	uint64_t next_device_ns;
	uint64_t log;
	uint32_t descs[PLACES][SERIES]; /* descriptors in that log */
	uint64_t peaks[HEALTH_GPUS];
} state;

static enum status memory_open(const struct config *config, struct error *err)
{
	state.config = config;
	state.period_ns = config->sample_ns;
	return ST_OK;
}

static enum status memory_begin(uint64_t now_ns, struct error *err)
{
	state.next_ns = state.next_device_ns = now_ns;
	return ST_OK;
}

/* Returns the text after `key` in a small file of the process in /proc, or NULL. */
static const char *find_in(const char *name, const char *key, char text[TEXT])
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", session_proc(), name);
	probe_read(path, text, TEXT);
	const char *at = strstr(text, key);
	return at ? at + strlen(key) : NULL;
}

/* Returns the resident set in bytes, or 0. */
static uint64_t resident_bytes(void)
{
	char text[TEXT];
	const char *second = find_in("statm", " ", text);

	return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Returns the peak of this program in bytes; getrusage() would include the program before
 * exec(). */
static uint64_t peak_resident_bytes(void)
{
	char text[TEXT];
	const char *peak = find_in("status", "VmHWM:", text);

	return peak ? strtoull(peak, NULL, 10) * 1024 : 0;
}

static void put(struct writer *w, unsigned place, unsigned series, uint64_t at_ns, uint64_t bytes)
{
	if (!writer_ready(w))
		return;
	if (writer_log_changed(w, &state.log))
		memset(state.descs, 0, sizeof(state.descs));
	probe_put_counter(w, &state.descs[place][series], place == HOST ? NO_ID : place,
			  series_names[series], UNIT_BYTES, at_ns, (double)bytes);
}

/*
 * The begin of the step is converted to ns later than the sample's time, and a new calibration of
 * the clock in between may move it.  Adding this keeps a sample within the step that requested it;
 * the sample was indeed taken after the begin.
 */
enum { AFTER_MARK_NS = 1000 };

static void sample_host(struct writer *w, uint64_t at_ns)
{
	uint64_t used = resident_bytes(), peak = peak_resident_bytes();

	if (!used) /* the process has ended */
		return;
	/* The two values are read one after the other; make sure that the peak is not below the
	 * use. */
	put(w, HOST, IN_USE, at_ns, used);
	put(w, HOST, PEAK, at_ns, peak > used ? peak : used);
}

/*
 * Samples the GPUs.  The driver's library is opened here, not at the start, because that may take
 * seconds.  Returns false if no GPU of this process is known yet.
 */
static bool sample_devices(struct writer *w, uint64_t at_ns)
{
	uint64_t used, total;
	bool any = false;
	uint32_t id;
	int gpu;

	if (!cuda_is_initialized() || health_gpu_open(NULL) != ST_OK)
		return true;
	for (unsigned n = 0; (gpu = health_gpu_used(state.config, n, &id)) >= 0; n++) {
		any = true;
		if (id >= HEALTH_GPUS || !health_gpu_memory(gpu, &used, &total))
			continue;
		if (used > state.peaks[id])
			state.peaks[id] = used;
		put(w, id, IN_USE, at_ns, used);
		put(w, id, PEAK, at_ns, state.peaks[id]);
	}
	return any;
}

static unsigned memory_drain(struct writer *w, uint64_t now_ns)
{
	uint64_t at;

	while (session_next_sample(&at))
		if (writer_wants(w, KIND_COUNTER)) {
			sample_host(w, tick_to_ns(at) + AFTER_MARK_NS);
			sample_devices(w, tick_to_ns(at) + AFTER_MARK_NS);
		}
	if (!state.period_ns || now_ns < state.next_ns || !writer_wants(w, KIND_COUNTER))
		return 0;
	sample_host(w, now_ns);
	if (now_ns >= state.next_device_ns && sample_devices(w, now_ns))
		state.next_device_ns = now_ns + DEVICE_NS;
	state.next_ns += state.period_ns;
	if (state.next_ns <= now_ns) /* too slow for this period: skip samples */
		state.next_ns = now_ns + state.period_ns;
	return 0;
}

static uint64_t memory_due(uint64_t now_ns)
{
	if (!state.period_ns)
		return UINT64_MAX;
	return state.next_ns > now_ns ? state.next_ns - now_ns : 0;
}

static void memory_forked(void)
{
	memset(&state, 0, sizeof(state));
	health_gpu_forget();
}

static void memory_doctor(struct buf *out)
{
	struct error err;
	enum status status = health_gpu_open(&err);
	char text[HEALTH_NAME];
	uint64_t used, total;
	int gpu;

	buf_putf(out, "host      %.1f MiB resident, by /proc/self/statm\n",
		 (double)resident_bytes() / (1 << 20));
	if (status == ST_OK && health_gpu_visible(session_config(), 0) < 0)
		status = fail(&err, ST_ABSENT, NOWHERE, "no visible GPU");
	if (status != ST_OK) {
		buf_putf(out, "GPU       %s: no device memory\n", err.text);
		return;
	}
	health_gpu_driver(text);
	buf_putf(out, "driver    %s\n", text);
	for (unsigned i = 0; (gpu = health_gpu_visible(session_config(), i)) >= 0; i++) {
		health_gpu_name(gpu, text);
		if (health_gpu_memory(gpu, &used, &total))
			buf_putf(out, "cuda:%u    %s, %.1f of %.1f GiB in use\n", i, text,
				 (double)used / (1 << 30), (double)total / (1 << 30));
	}
}

const struct probe_type probe_memory = {
	.name = "memory",
	.help = "resident memory of the process, memory of its GPUs",
	.open = memory_open,
	.begin = memory_begin,
	.drain = memory_drain,
	.due = memory_due,
	.forked = memory_forked,
	.doctor = memory_doctor,
};

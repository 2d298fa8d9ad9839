/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/health/gpu.h"

#include "collector/config/config.h"
#include "collector/probe/cupti/lib.h"
#include "collector/probe/cupti/tables.h"
#include "collector/session/clock.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define PATIENCE_NS UINT64_C(2500000000) /* limit of waiting for CUPTI's list of GPUs */

struct nvml_device;
struct utilization {
	unsigned gpu, memory;
};
struct memory_info {
	unsigned long long total, free, used;
};
struct memory_info_2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct field_value {
	uint32_t field, scope;
	int64_t timestamp, latency;
	int type, result;
	union {
		double f64;
		uint32_t u32;
		uint64_t u64;
		int64_t i64;
	} value;
};
struct event_data {
	struct nvml_device *device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};
struct gpm_support {
	unsigned version, is_supported;
};
struct gpm_metric {
	unsigned id;
	int result;
	double value;
	const char *texts[3];
};
enum { GPM_METRICS = 333, GPM_VERSION = 1 }; /* capacity for the metrics of the newest driver */
struct gpm_request {
	unsigned version, count;
	void *before, *now;
	struct gpm_metric metrics[GPM_METRICS];
};

/* X(member, symbol, arguments); results are nvmlReturn_t, 0 is success. */
/* clang-format off */
#define NVML_FUNCTIONS(X)                                                                          \
	X(init, "nvmlInit_v2", (void))                                                             \
	X(by_uuid, "nvmlDeviceGetHandleByUUID", (const char *, struct nvml_device **))             \
	X(by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned, struct nvml_device **))            \
	X(memory, "nvmlDeviceGetMemoryInfo", (struct nvml_device *, struct memory_info *))         \
	X(memory_2, "nvmlDeviceGetMemoryInfo_v2", (struct nvml_device *, struct memory_info_2 *))  \
	X(name, "nvmlDeviceGetName", (struct nvml_device *, char *, unsigned))                     \
	X(driver, "nvmlSystemGetDriverVersion", (char *, unsigned))                                \
	X(clock, "nvmlDeviceGetClockInfo", (struct nvml_device *, int, unsigned *))                \
	X(clock_max, "nvmlDeviceGetMaxClockInfo", (struct nvml_device *, int, unsigned *))         \
	X(clock_base, "nvmlDeviceGetDefaultApplicationsClock",                                     \
	  (struct nvml_device *, int, unsigned *))                                                 \
	X(power, "nvmlDeviceGetPowerUsage", (struct nvml_device *, unsigned *))                    \
	X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (struct nvml_device *, unsigned *))      \
	X(temperature, "nvmlDeviceGetTemperature", (struct nvml_device *, int, unsigned *))        \
	X(reasons, "nvmlDeviceGetCurrentClocksEventReasons",                                       \
	  (struct nvml_device *, unsigned long long *))                                            \
	X(old_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons",                                \
	  (struct nvml_device *, unsigned long long *))                                            \
	X(utilization, "nvmlDeviceGetUtilizationRates",                                            \
	  (struct nvml_device *, struct utilization *))                                            \
	X(fields, "nvmlDeviceGetFieldValues", (struct nvml_device *, int, struct field_value *))   \
	X(ecc, "nvmlDeviceGetTotalEccErrors",                                                      \
	  (struct nvml_device *, int, int, unsigned long long *))                                  \
	X(width, "nvmlDeviceGetCurrPcieLinkWidth", (struct nvml_device *, unsigned *))             \
	X(width_max, "nvmlDeviceGetMaxPcieLinkWidth", (struct nvml_device *, unsigned *))          \
	X(generation, "nvmlDeviceGetCurrPcieLinkGeneration", (struct nvml_device *, unsigned *))   \
	X(generation_max, "nvmlDeviceGetMaxPcieLinkGeneration",                                    \
	  (struct nvml_device *, unsigned *))                                                      \
	X(nodes, "nvmlDeviceGetMemoryAffinity",                                                    \
	  (struct nvml_device *, unsigned, unsigned long *, int))                                  \
	X(set_create, "nvmlEventSetCreate", (void **))                                             \
	X(set_add, "nvmlDeviceRegisterEvents", (struct nvml_device *, unsigned long long, void *)) \
	X(set_wait, "nvmlEventSetWait_v2", (void *, struct event_data *, unsigned))                \
	X(gpm_support, "nvmlGpmQueryDeviceSupport",                                                \
	  (struct nvml_device *, struct gpm_support *))                                            \
	X(gpm_alloc, "nvmlGpmSampleAlloc", (void **))                                              \
	X(gpm_sample, "nvmlGpmSampleGet", (struct nvml_device *, void *))                          \
	X(gpm_metrics, "nvmlGpmMetricsGet", (struct gpm_request *))
/* clang-format on */
static struct {
#define X(member, symbol, arguments) int(*member) arguments;
	NVML_FUNCTIONS(X)
#undef X
} nvml;

/* Cumulative counts of bytes.  NVLink's are in KiB, and their scope means all links. */
enum { COUNTERS = 4, ALL_LINKS = -1 };
static const struct {
	uint32_t field, scope, unit;
	enum health_gpu rate;
} counters[COUNTERS] = {
	{ 197, 0, 1, HEALTH_pcie_sent_per_s },
	{ 198, 0, 1, HEALTH_pcie_received_per_s },
	{ 138, (uint32_t)ALL_LINKS, 1024, HEALTH_nvlink_sent_per_s },
	{ 139, (uint32_t)ALL_LINKS, 1024, HEALTH_nvlink_received_per_s },
};
/* Metrics of NVML GPM and their figures. */
static const struct {
	unsigned id;
	enum health_gpu is;
} metrics[] = {
	{ 2, HEALTH_sm_activity },
	{ 3, HEALTH_sm_occupancy },
	{ 5, HEALTH_tensor_activity },
	{ 10, HEALTH_dram_activity },
};
enum { METRICS = sizeof(metrics) / sizeof(metrics[0]) };

static struct gpu {
	struct nvml_device *device;
	uint64_t sampled_ns, counted[COUNTERS], xids;
	bool has_counted[COUNTERS], is_set_up;
	void *gpm[2]; /* the previous sample and the next one; NULL: the GPU has no GPM */
	bool has_gpm;
} gpus[HEALTH_GPUS];
static int gpu_count;
static void *events;
static bool is_open;
static uint64_t asked_ns; /* first call for a GPU that CUPTI had not reported */

enum status health_gpu_open(struct error *err)
{
	static const struct {
		const char *symbol;
		size_t at;
	} functions[] = {
#define X(member, symbol, arguments) { symbol, offsetof(__typeof__(nvml), member) },
		NVML_FUNCTIONS(X)
#undef X
	};
	void *handle;

	if (is_open)
		return ST_OK;
	handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return fail(err, ST_ABSENT, NOWHERE, "no NVIDIA driver (libnvidia-ml.so.1)");
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *symbol = dlsym(handle, functions[i].symbol);

		memcpy((char *)&nvml + functions[i].at, &symbol, sizeof(symbol));
	}
	int failed = nvml.init ? nvml.init() : -1;
	if (failed)
		return fail(err, ST_ABSENT, NOWHERE, "the driver does not answer (error %d)",
			    failed);
	is_open = true;
	return ST_OK;
}

static int add(struct nvml_device *device)
{
	int i;

	for (i = 0; i < gpu_count && gpus[i].device != device; i++)
		;
	if (i < gpu_count || i == HEALTH_GPUS)
		return i < gpu_count ? i : -1;
	gpus[gpu_count++] = (struct gpu){ .device = device };
	return i;
}

static int find(const char *uuid)
{
	struct nvml_device *device;

	return nvml.by_uuid && nvml.by_uuid(uuid, &device) == 0 ? add(device) : -1;
}

static int at_index(unsigned index)
{
	struct nvml_device *device;

	return nvml.by_index && nvml.by_index(index, &device) == 0 ? add(device) : -1;
}

int health_gpu_visible(const struct config *c, unsigned n)
{
	if (!c->has_devices)
		return at_index(n);
	if (n >= c->device_count)
		return -1;
	return c->devices[n] >= 0 ? at_index((unsigned)c->devices[n]) : find(c->device_uuids[n]);
}

int health_gpu_used(const struct config *c, unsigned n, uint32_t *id)
{
	uint64_t now_ns = tick_clock_ns(CLOCK_MONOTONIC);
	char uuid[HEALTH_UUID];

	if (cupti_tables_uuid(n, id, uuid))
		return find(uuid);
	asked_ns = asked_ns ? asked_ns : now_ns;
	*id = n;
	if (cupti_tables_uuid(0, &(uint32_t){ 0 }, uuid) || now_ns - asked_ns < PATIENCE_NS ||
	    !cuda_is_initialized())
		return -1;
	return health_gpu_visible(c, n);
}

bool health_gpu_memory(int gpu, uint64_t *used, uint64_t *total)
{
	enum { VERSION_2 = 2 << 24 };
	struct memory_info_2 m2 = { .version = (unsigned)sizeof(m2) | VERSION_2 };
	struct memory_info m;

	if (nvml.memory_2 && nvml.memory_2(gpus[gpu].device, &m2) == 0)
		m = (struct memory_info){ m2.total, m2.free, m2.used };
	else if (!nvml.memory || nvml.memory(gpus[gpu].device, &m) != 0)
		return false;
	*used = m.used;
	*total = m.total;
	return true;
}

void health_gpu_name(int gpu, char out[HEALTH_NAME])
{
	if (!nvml.name || nvml.name(gpus[gpu].device, out, HEALTH_NAME) != 0)
		out[0] = '\0';
}

void health_gpu_driver(char out[HEALTH_NAME])
{
	if (!nvml.driver || nvml.driver(out, HEALTH_NAME) != 0)
		out[0] = '\0';
}

/* Sets up what only samples of health need. */
static void set_up(struct gpu *g)
{
	enum { XID_EVENTS = 8 };
	struct gpm_support support = { .version = GPM_VERSION };

	g->is_set_up = true;
	if (!events && (!nvml.set_create || nvml.set_create(&events) != 0))
		events = NULL;
	if (events && nvml.set_add)
		nvml.set_add(g->device, XID_EVENTS, events);
	if (nvml.gpm_support && nvml.gpm_alloc && nvml.gpm_sample && nvml.gpm_metrics &&
	    nvml.gpm_support(g->device, &support) == 0 && support.is_supported &&
	    (nvml.gpm_alloc(&g->gpm[0]) != 0 || nvml.gpm_alloc(&g->gpm[1]) != 0))
		g->gpm[0] = g->gpm[1] = NULL;
}

static void put(struct gpu_values *out, enum health_gpu what, double value)
{
	out->value[what] = value;
	out->known |= UINT64_C(1) << what;
}

/* Puts a figure of one number if its function exists and succeeds. */
#define PUT(what, function, scale, ...)                                                            \
	do {                                                                                       \
		if (nvml.function && nvml.function(g->device, __VA_ARGS__ & number) == 0)          \
			put(out, HEALTH_##what, (double)number *(scale));                          \
	} while (0)

static void sample_plain(const struct gpu *g, struct gpu_values *out)
{
	enum { SM = 1, MEMORY = 2, CHIP = 0 };
	unsigned number;

	PUT(sm_clock, clock, 1.0, SM, );
	PUT(memory_clock, clock, 1.0, MEMORY, );
	PUT(power, power, 0.001, );
	PUT(temperature, temperature, 1.0, CHIP, );
	PUT(pcie_width, width, 1.0, );
	PUT(pcie_generation, generation, 1.0, );
	PUT(sm_clock_max, clock_max, 1.0, SM, );
	PUT(sm_clock_base, clock_base, 1.0, SM, );
	PUT(power_limit, power_limit, 0.001, );
	PUT(pcie_width_max, width_max, 1.0, );
	PUT(pcie_generation_max, generation_max, 1.0, );
}

static void sample_counters(struct gpu *g, uint64_t now_ns, struct gpu_values *out)
{
	struct field_value values[COUNTERS];

	memset(values, 0, sizeof(values));
	for (unsigned i = 0; i < COUNTERS; i++) {
		values[i].field = counters[i].field;
		values[i].scope = counters[i].scope;
	}
	if (!nvml.fields || nvml.fields(g->device, COUNTERS, values) != 0)
		return;
	for (unsigned i = 0; i < COUNTERS; i++) {
		enum { U32 = 1 };
		uint64_t count = values[i].type == U32 ? values[i].value.u32 : values[i].value.u64;

		if (values[i].result != 0 || values[i].type == 0)
			continue;
		if (g->has_counted[i] && now_ns > g->sampled_ns && count >= g->counted[i])
			put(out, counters[i].rate,
			    (double)((count - g->counted[i]) * counters[i].unit) /
				    ((double)(now_ns - g->sampled_ns) * 1e-9));
		g->counted[i] = count;
		g->has_counted[i] = true;
	}
}

static void sample_gpm(struct gpu *g, struct gpu_values *out)
{
	static struct gpm_request request;
	void *now = g->gpm[1];

	if (!now || nvml.gpm_sample(g->device, now) != 0)
		return;
	memset(&request, 0, sizeof(request));
	request.version = GPM_VERSION;
	request.count = METRICS;
	request.before = g->gpm[0];
	request.now = now;
	for (unsigned i = 0; i < METRICS; i++)
		request.metrics[i].id = metrics[i].id;
	if (g->has_gpm && nvml.gpm_metrics(&request) == 0)
		for (unsigned i = 0; i < METRICS; i++)
			if (request.metrics[i].result == 0)
				put(out, metrics[i].is, request.metrics[i].value);
	g->gpm[1] = g->gpm[0];
	g->gpm[0] = now;
	g->has_gpm = true;
}

/* Counts XID events, which come in one queue for all GPUs. */
static void take_events(void)
{
	struct event_data e;

	for (int most = 100; events && nvml.set_wait && most-- > 0;) {
		if (nvml.set_wait(events, &e, 0) != 0)
			return;
		for (int i = 0; i < gpu_count; i++)
			gpus[i].xids += gpus[i].device == e.device;
	}
}

void health_gpu_sample(int gpu, uint64_t now_ns, struct gpu_values *out)
{
	struct gpu *g = &gpus[gpu];
	enum { THE_NODE = 0 };
	struct utilization u;
	unsigned long long number;
	unsigned long nodes = 0;

	out->known = 0;
	if (!g->is_set_up)
		set_up(g);
	sample_plain(g, out);
	if (nvml.reasons ? nvml.reasons(g->device, &number) == 0
			 : nvml.old_reasons && nvml.old_reasons(g->device, &number) == 0)
		put(out, HEALTH_clock_limits, (double)number);
	if (nvml.utilization && nvml.utilization(g->device, &u) == 0) {
		put(out, HEALTH_gpu_utilization, u.gpu);
		put(out, HEALTH_memory_utilization, u.memory);
	}
	PUT(ecc_corrected, ecc, 1.0, 0, 0, );
	PUT(ecc_uncorrected, ecc, 1.0, 1, 0, );
	if (nvml.nodes && nvml.nodes(g->device, 1, &nodes, THE_NODE) == 0 && nodes)
		put(out, HEALTH_gpu_numa_node, __builtin_ctzl(nodes));
	take_events();
	if (events)
		put(out, HEALTH_xid_errors, (double)g->xids);
	sample_counters(g, now_ns, out);
	sample_gpm(g, out);
	g->sampled_ns = now_ns;
}

void health_gpu_forget(void)
{
	is_open = false;
	gpu_count = 0;
	events = NULL;
	asked_ns = 0;
}

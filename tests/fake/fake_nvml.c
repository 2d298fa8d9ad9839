/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvml.c - a libnvidia-ml.so.1 whose answers the environment gives.
 *
 *	FAKE_NVML_DEVICES      1     GPUs; 0: none
 *	FAKE_NVML_INIT         0     what nvmlInit_v2 returns (9: driver not loaded, 18: mismatch)
 *	FAKE_NVML_ERROR        0     what every other call returns; 0: it succeeds
 *	FAKE_NVML_ERROR_AFTER  0     ... after so many calls that succeeded
 *	FAKE_NVML_LOST         -1    this GPU answers 15, "fallen off the bus"
 *	FAKE_NVML_LATENCY_US   0     each call takes this long
 *	FAKE_NVML_TOTAL_MB     143771
 *	FAKE_NVML_USED_MB      1024  at first; then FAKE_NVML_GROW_MB (0) more with each question
 *	FAKE_NVML_EACH_MB      0     more that each GPU has in use than the one before
 *	FAKE_NVML_TURN         0     GPU i is CUDA's i + TURN: the orders of the two differ
 *	FAKE_NVML_NAME         NVIDIA H200
 *	FAKE_NVML_DRIVER       580.95.05
 *	FAKE_NVML_CLOCK        1980  of the multiprocessors, of GPU 0
 *	FAKE_NVML_STEP         10    MHz that each GPU has less than the one before
 *	FAKE_NVML_REASONS      0     what holds the clock down
 *	FAKE_NVML_WIDTH        16    lanes
 *	FAKE_NVML_XIDS         0     critical errors of GPU 0
 *	FAKE_NVML_GPM          1     0: as before Hopper
 *	FAKE_NVML_REPORT       file  at the end: calls by function, and how many at a time, as JSON
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	OK = 0,
	UNINITIALIZED = 1,
	INVALID = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	NO_ROOM = 7,
	GPU_LOST = 15
};

struct device {
	unsigned index;
};
struct memory {
	unsigned long long total, free, used;
};
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct utilization {
	unsigned gpu, memory;
};
struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};
struct pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char name[32];
};

/* clang-format off */
#define FUNCTIONS(X) \
	X(nvmlInit_v2) X(nvmlShutdown) X(nvmlDeviceGetCount_v2) \
	X(nvmlDeviceGetHandleByIndex_v2) X(nvmlDeviceGetHandleByUUID) \
	X(nvmlDeviceGetHandleByPciBusId_v2) X(nvmlDeviceGetMemoryInfo) \
	X(nvmlDeviceGetMemoryInfo_v2) X(nvmlDeviceGetName) X(nvmlDeviceGetUUID) \
	X(nvmlDeviceGetPciInfo_v3) X(nvmlDeviceGetUtilizationRates) X(nvmlDeviceGetClockInfo) \
	X(nvmlDeviceGetPowerUsage) X(nvmlDeviceGetTemperature) \
	X(nvmlDeviceGetComputeRunningProcesses_v3) X(nvmlDeviceGetMigMode) \
	X(nvmlSystemGetDriverVersion) X(nvmlSystemGetCudaDriverVersion) \
	X(nvmlDeviceGetMaxClockInfo) X(nvmlDeviceGetMemoryAffinity) X(nvmlDeviceGetDefaultApplicationsClock) \
	X(nvmlDeviceGetEnforcedPowerLimit) X(nvmlDeviceGetCurrentClocksEventReasons) \
	X(nvmlDeviceGetFieldValues) X(nvmlDeviceGetTotalEccErrors) \
	X(nvmlDeviceGetCurrPcieLinkWidth) X(nvmlDeviceGetMaxPcieLinkWidth) \
	X(nvmlDeviceGetCurrPcieLinkGeneration) X(nvmlDeviceGetMaxPcieLinkGeneration) \
	X(nvmlEventSetCreate) X(nvmlDeviceRegisterEvents) X(nvmlEventSetWait_v2) \
	X(nvmlGpmQueryDeviceSupport) X(nvmlGpmSampleAlloc) X(nvmlGpmSampleGet) \
	X(nvmlGpmMetricsGet)
/* clang-format on */
enum function {
#define X(name) AT_##name,
	FUNCTIONS(X)
#undef X
		FUNCTION_COUNT
};

static struct device devices[64];
static _Atomic unsigned long counts[FUNCTION_COUNT], total_calls, memory_calls;
static _Atomic unsigned under_way, most_under_way;
static _Atomic bool ready;

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 0) : otherwise;
}

static unsigned device_count(void)
{
	long count = number("FAKE_NVML_DEVICES", 1);

	return count < 0 ? 0 : count > 64 ? 64 : (unsigned)count;
}

static int begin(enum function function)
{
	struct timespec t = { .tv_nsec = number("FAKE_NVML_LATENCY_US", 0) * 1000 };
	unsigned now = ++under_way, most = most_under_way;
	long error = number("FAKE_NVML_ERROR", 0);

	while (now > most && !atomic_compare_exchange_weak(&most_under_way, &most, now))
		;
	counts[function]++;
	total_calls++;
	t.tv_sec = t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	if (t.tv_sec || t.tv_nsec)
		nanosleep(&t, NULL);
	under_way--;
	if (function == AT_nvmlInit_v2)
		return (int)number("FAKE_NVML_INIT", 0);
	if (!ready)
		return UNINITIALIZED;
	return error && total_calls > (unsigned long)number("FAKE_NVML_ERROR_AFTER", 0) ? (int)error
											: OK;
}

static int begin_device(enum function function, const struct device *d)
{
	int rc = begin(function);

	if (rc)
		return rc;
	if (d < devices || d >= devices + device_count())
		return INVALID;
	return (long)d->index == number("FAKE_NVML_LOST", -1) ? GPU_LOST : OK;
}

/* The body is what happens when the call succeeds. */
#define SHOW(name, arguments, ...)                                                                 \
	int name arguments;                                                                        \
	int name arguments                                                                         \
	{                                                                                          \
		int rc = begin(AT_##name);                                                         \
		if (!rc)                                                                           \
			__VA_ARGS__                                                                \
		return rc;                                                                         \
	}
#define SHOW_DEVICE(name, arguments, ...)                                                          \
	int name arguments;                                                                        \
	int name arguments                                                                         \
	{                                                                                          \
		int rc = begin_device(AT_##name, d);                                               \
		if (!rc)                                                                           \
			__VA_ARGS__                                                                \
		return rc;                                                                         \
	}

static int copy_text(char *out, unsigned room, const char *text)
{
	if (strlen(text) >= room)
		return NO_ROOM;
	strcpy(out, text);
	return OK;
}

static const char *text(const char *variable, const char *otherwise)
{
	const char *value = getenv(variable);

	return value ? value : otherwise;
}

static int find_device(unsigned index, struct device **out)
{
	if (index >= device_count())
		return INVALID;
	devices[index].index = index;
	*out = &devices[index];
	return OK;
}

static void uuid_of(unsigned index, char out[48])
{
	unsigned number_of_cuda = (index + (unsigned)number("FAKE_NVML_TURN", 0)) % device_count();
	unsigned byte = 0x10 + number_of_cuda, four = byte * 0x01010101u;

	/* as the stand-in for CUPTI has it */
	snprintf(out, 48, "GPU-%08x-%04x-%04x-%04x-%04x%08x", four, four & 0xffff, four & 0xffff,
		 four & 0xffff, four & 0xffff, four);
}

static int find_uuid(const char *uuid, struct device **out)
{
	char have[48];
	unsigned i;

	for (i = 0; i < device_count(); i++) {
		uuid_of(i, have);
		if (!strncmp(have, uuid, strlen(uuid)) && strlen(uuid) >= 8)
			return find_device(i, out);
	}
	return NOT_FOUND;
}

static unsigned long long used_bytes(const struct device *d)
{
	long asked = (long)memory_calls++;
	long mb = number("FAKE_NVML_USED_MB", 1024) + asked * number("FAKE_NVML_GROW_MB", 0) +
		  (long)d->index * number("FAKE_NVML_EACH_MB", 0);

	return (unsigned long long)mb << 20;
}

static unsigned long long total_bytes(void)
{
	return (unsigned long long)number("FAKE_NVML_TOTAL_MB", 143771) << 20;
}

/* The older question counts what the driver reserves. */
static void fill_memory(const struct device *d, struct memory *m)
{
	m->total = total_bytes();
	m->used = used_bytes(d) + (512ull << 20);
	m->free = m->total - m->used;
}

static int fill_memory_v2(const struct device *d, struct memory_v2 *m)
{
	if (m->version != (sizeof(*m) | 2u << 24))
		return 25; /* argument version mismatch */
	m->total = total_bytes();
	m->reserved = 512ull << 20;
	m->used = used_bytes(d);
	m->free = m->total - m->used - m->reserved;
	return OK;
}

SHOW(nvmlInit_v2, (void), { ready = true; })
SHOW(nvmlShutdown, (void), { ready = false; })
SHOW(nvmlDeviceGetCount_v2, (unsigned *count), { *count = device_count(); })
SHOW(nvmlDeviceGetHandleByIndex_v2, (unsigned index, struct device **out),
     { rc = find_device(index, out); })
SHOW(nvmlDeviceGetHandleByUUID, (const char *uuid, struct device **out),
     { rc = find_uuid(uuid, out); })
SHOW(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, struct device **out),
     { rc = find_device((unsigned)strtoul(bus + 9, NULL, 16), out); })
SHOW_DEVICE(nvmlDeviceGetMemoryInfo, (struct device * d, struct memory *m), { fill_memory(d, m); })
SHOW_DEVICE(nvmlDeviceGetMemoryInfo_v2, (struct device * d, struct memory_v2 *m),
	    { rc = fill_memory_v2(d, m); })
SHOW_DEVICE(nvmlDeviceGetName, (struct device * d, char *out, unsigned room),
	    { rc = copy_text(out, room, text("FAKE_NVML_NAME", "NVIDIA H200")); })
SHOW_DEVICE(nvmlDeviceGetUUID, (struct device * d, char *out, unsigned room), {
	char uuid[48];

	uuid_of(d->index, uuid);
	rc = copy_text(out, room, uuid);
})
SHOW_DEVICE(nvmlDeviceGetPciInfo_v3, (struct device * d, struct pci *out), {
	memset(out, 0, sizeof(*out));
	out->bus = d->index;
	snprintf(out->name, sizeof(out->name), "00000000:%02X:00.0", d->index);
})
SHOW_DEVICE(nvmlDeviceGetUtilizationRates, (struct device * d, struct utilization *u), {
	u->gpu = 87;
	u->memory = 43;
})
SHOW_DEVICE(nvmlDeviceGetClockInfo, (struct device * d, int type, unsigned *mhz), {
	*mhz = type == 2 ? 3201
			 : (unsigned)number("FAKE_NVML_CLOCK", 1980) -
				   (unsigned)number("FAKE_NVML_STEP", 10) * d->index;
})
SHOW_DEVICE(nvmlDeviceGetPowerUsage, (struct device * d, unsigned *mw), { *mw = 512000; })
SHOW_DEVICE(nvmlDeviceGetTemperature, (struct device * d, int sensor, unsigned *celsius),
	    { *celsius = 55; })
SHOW_DEVICE(nvmlDeviceGetComputeRunningProcesses_v3,
	    (struct device * d, unsigned *count, struct process *out), {
		    if (*count < 1)
			    rc = NO_ROOM;
		    else
			    *out = (struct process){ .pid = (unsigned)getpid(),
						     .used = used_bytes(d) };
		    *count = 1;
	    })
SHOW_DEVICE(nvmlDeviceGetMigMode, (struct device * d, unsigned *now, unsigned *next),
	    { rc = NOT_SUPPORTED; })
SHOW(nvmlSystemGetDriverVersion, (char *out, unsigned room),
     { rc = copy_text(out, room, text("FAKE_NVML_DRIVER", "580.95.05")); })
SHOW(nvmlSystemGetCudaDriverVersion, (int *version), { *version = 13000; })

/* ---- health ---- */

struct field_value {
	uint32_t field, scope;
	int64_t timestamp, latency;
	int type, result;
	uint64_t value;
};
struct event_data {
	struct device *device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};
struct gpm_metric {
	unsigned id;
	int result;
	double value;
	const char *texts[3];
};
struct gpm_request {
	unsigned version, count;
	unsigned *before, *now;
	struct gpm_metric metrics[];
};
static unsigned gpm_samples[128], gpm_given, xids_told;
static uint64_t asked_of_fields;

SHOW_DEVICE(nvmlDeviceGetMaxClockInfo, (struct device * d, int type, unsigned *mhz),
	    { *mhz = type == 2 ? 3201 : 1980; })
SHOW_DEVICE(nvmlDeviceGetDefaultApplicationsClock, (struct device * d, int type, unsigned *mhz),
	    { *mhz = 1590; })
SHOW_DEVICE(nvmlDeviceGetEnforcedPowerLimit, (struct device * d, unsigned *mw), { *mw = 700000; })
SHOW_DEVICE(nvmlDeviceGetCurrentClocksEventReasons, (struct device * d, unsigned long long *bits),
	    { *bits = (unsigned long long)number("FAKE_NVML_REASONS", 0); })
/* PCIe: 1,000,000 bytes more with each question; NVLink: 1,000 KiB; one that it does not know. */
SHOW_DEVICE(nvmlDeviceGetFieldValues, (struct device * d, int count, struct field_value *v), {
	asked_of_fields++;
	for (int i = 0; i < count; i++) {
		bool is_link = v[i].field == 138 || v[i].field == 139;

		v[i].type = 3;
		v[i].result = v[i].field == 198 ? NOT_SUPPORTED : OK;
		v[i].value = asked_of_fields * (is_link ? 1000 : 1000000);
	}
})
SHOW_DEVICE(nvmlDeviceGetTotalEccErrors,
	    (struct device * d, int type, int counter, unsigned long long *errors),
	    { *errors = type ? 0 : 3; })
SHOW_DEVICE(nvmlDeviceGetCurrPcieLinkWidth, (struct device * d, unsigned *width),
	    { *width = (unsigned)number("FAKE_NVML_WIDTH", 16); })
SHOW_DEVICE(nvmlDeviceGetMaxPcieLinkWidth, (struct device * d, unsigned *width), { *width = 16; })
SHOW_DEVICE(nvmlDeviceGetCurrPcieLinkGeneration, (struct device * d, unsigned *g), { *g = 5; })
SHOW_DEVICE(nvmlDeviceGetMaxPcieLinkGeneration, (struct device * d, unsigned *g), { *g = 5; })
SHOW_DEVICE(nvmlDeviceGetMemoryAffinity,
	    (struct device * d, unsigned words, unsigned long *nodes, int scope),
	    { nodes[0] = words && !scope ? 2 : 0; })
SHOW(nvmlEventSetCreate, (void **set), { *set = devices; })
SHOW_DEVICE(nvmlDeviceRegisterEvents, (struct device * d, unsigned long long types, void *set),
	    { rc = types == 8 ? OK : INVALID; })
SHOW(nvmlEventSetWait_v2, (void *set, struct event_data *e, unsigned ms), {
	if (xids_told++ >= number("FAKE_NVML_XIDS", 0))
		rc = 10;
	else
		*e = (struct event_data){ .device = &devices[0], .type = 8, .data = 79 };
})
SHOW_DEVICE(nvmlGpmQueryDeviceSupport, (struct device * d, unsigned *support),
	    { support[1] = number("FAKE_NVML_GPM", 1) != 0; })
SHOW(nvmlGpmSampleAlloc, (void **sample), { *sample = &gpm_samples[gpm_given++ % 128]; })
SHOW_DEVICE(nvmlGpmSampleGet, (struct device * d, unsigned *sample), { *sample = 1; })
SHOW(nvmlGpmMetricsGet, (struct gpm_request * r), {
	rc = r->version == 1 && *r->before && *r->now && r->before != r->now ? OK : INVALID;
	for (unsigned i = 0; i < r->count; i++) {
		r->metrics[i].result = r->metrics[i].id == 3 ? NOT_SUPPORTED : OK;
		r->metrics[i].value = 10.5 * r->metrics[i].id;
	}
})

const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result)
{
	return result ? "an error of the stand-in" : "Success";
}

static __attribute__((destructor)) void finish(void)
{
	static const char *const names[] = {
#define X(name) #name,
		FUNCTIONS(X)
#undef X
	};
	const char *path = getenv("FAKE_NVML_REPORT");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	unsigned i;

	if (fd < 0)
		return;
	dprintf(fd, "{\"at_a_time\": %u", most_under_way);
	for (i = 0; i < FUNCTION_COUNT; i++)
		if (counts[i])
			dprintf(fd, ", \"%s\": %lu", names[i], counts[i]);
	dprintf(fd, "}\n");
	close(fd);
}

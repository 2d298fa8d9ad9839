/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/memory/nvml.h"

#include "collector/config/config.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/*
 * The functions of NVML that are called here; its interface is stable, and 0 is success.  A
 * function that the driver's library lacks is NULL, and only what it would tell is missing.
 */
struct nvml_device;
struct memory_info {
	unsigned long long total, free, used;
};
struct library {
	int (*init)(void);
	int (*count)(unsigned *count);
	int (*by_index)(unsigned index, struct nvml_device **device);
	int (*by_uuid)(const char *uuid, struct nvml_device **device);
	int (*memory)(struct nvml_device *device, struct memory_info *memory);
	int (*name)(struct nvml_device *device, char *name, unsigned length);
	int (*driver)(char *version, unsigned length);
};
static const struct {
	const char *name;
	size_t at;
} symbols[] = {
	{ "nvmlInit_v2", offsetof(struct library, init) },
	{ "nvmlDeviceGetCount_v2", offsetof(struct library, count) },
	{ "nvmlDeviceGetHandleByIndex_v2", offsetof(struct library, by_index) },
	{ "nvmlDeviceGetHandleByUUID", offsetof(struct library, by_uuid) },
	{ "nvmlDeviceGetMemoryInfo", offsetof(struct library, memory) },
	{ "nvmlDeviceGetName", offsetof(struct library, name) },
	{ "nvmlSystemGetDriverVersion", offsetof(struct library, driver) },
};

static struct library lib;
static struct nvml_device *devices[NVML_DEVICES];
static unsigned device_count;

static enum status load(struct error *err)
{
	void *handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return fail(err, ST_ABSENT, NOWHERE, "no NVIDIA driver (libnvidia-ml.so.1)");
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlsym(handle, symbols[i].name);

		memcpy((char *)&lib + symbols[i].at, &symbol, sizeof(symbol));
	}
	if (!lib.init)
		return fail(err, ST_ABSENT, NOWHERE, "libnvidia-ml.so.1 has no nvmlInit_v2");
	return ST_OK; /* stays loaded: the driver's library does not like to go */
}

static void add_all(void)
{
	unsigned count = 0;

	if (!lib.count || !lib.by_index || lib.count(&count) != 0)
		return;
	for (unsigned i = 0; i < count && device_count < NVML_DEVICES; i++)
		if (lib.by_index(i, &devices[device_count]) == 0)
			device_count++;
}

/* CUDA numbers what is visible from 0, and stops at the first that it cannot find. */
static void add_visible(const struct config *c)
{
	bool found;

	for (unsigned i = 0; i < c->device_count && device_count < NVML_DEVICES; i++) {
		if (c->devices[i] >= 0)
			found = lib.by_index &&
				lib.by_index((unsigned)c->devices[i], &devices[device_count]) == 0;
		else
			found = lib.by_uuid &&
				lib.by_uuid(c->device_uuids[i], &devices[device_count]) == 0;
		if (!found)
			return;
		device_count++;
	}
}

enum status nvml_open(const struct config *config, struct error *err)
{
	device_count = 0;
	TRY(load(err));
	int failed = lib.init();
	if (failed)
		return fail(err, ST_ABSENT, NOWHERE, "the driver does not answer (error %d)",
			    failed);
	if (config->has_devices)
		add_visible(config);
	else
		add_all();
	return device_count ? ST_OK : fail(err, ST_ABSENT, NOWHERE, "no visible GPU");
}

unsigned nvml_count(void)
{
	return device_count;
}

bool nvml_memory(unsigned device, uint64_t *used, uint64_t *total)
{
	struct memory_info m;

	if (device >= device_count || !lib.memory || lib.memory(devices[device], &m) != 0)
		return false;
	*used = m.used;
	*total = m.total;
	return true;
}

void nvml_device_name(unsigned device, char out[NVML_NAME])
{
	if (device >= device_count || !lib.name || lib.name(devices[device], out, NVML_NAME) != 0)
		out[0] = '\0';
}

void nvml_driver(char out[NVML_NAME])
{
	if (!device_count || !lib.driver || lib.driver(out, NVML_NAME) != 0)
		out[0] = '\0';
}

void nvml_forget(void)
{
	device_count = 0;
}

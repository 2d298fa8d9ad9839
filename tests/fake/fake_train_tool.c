/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch's profiler does with CUPTI in this process, from one step to another: callbacks and
 * a clock of its own, in ticks, which stay when it has ended; buffers that nobody has cleared.
 */
#include "tests/fake/fake_train.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { TOOL_BYTES = 1 << 16, TICKS_PER_10_NS = 21 };
static const int kinds[] = { 4, 5, 10, 1, 22, 2, 38, 36, 17, 39 };
static _Atomic unsigned long tool_kernels;

/* The functions by name, as this program is built without the headers of CUPTI. */
static struct {
	int (*register_callbacks)(void (*)(uint8_t **, size_t *, size_t *),
				  void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
	int (*register_timestamp)(uint64_t (*)(void));
	int (*enable)(int);
	int (*disable)(int);
	int (*flush)(uint32_t);
	int (*next)(uint8_t *, size_t, uint8_t **);
} f;

static bool find_cupti(void)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.14" };
	const struct {
		void *to;
		const char *name;
	} wanted[] = {
		{ &f.register_callbacks, "cuptiActivityRegisterCallbacks" },
		{ &f.register_timestamp, "cuptiActivityRegisterTimestampCallback" },
		{ &f.enable, "cuptiActivityEnable" },
		{ &f.disable, "cuptiActivityDisable" },
		{ &f.flush, "cuptiActivityFlushAll" },
		{ &f.next, "cuptiActivityGetNextRecord" },
	};
	void *handle = NULL, *symbol;
	size_t i;

	for (i = 0; !handle && i < sizeof(names) / sizeof(names[0]); i++)
		handle = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
	for (i = 0; handle && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		symbol = dlsym(handle, wanted[i].name);
		if (!symbol)
			return false;
		memcpy(wanted[i].to, &symbol, sizeof(symbol));
	}
	return handle;
}

static uint64_t ticks(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec) / 10 * TICKS_PER_10_NS;
}

static void request(uint8_t **buffer, size_t *size, size_t *records)
{
	*size = TOOL_BYTES;
	*records = 0;
	*buffer = aligned_alloc(8, TOOL_BYTES);
	if (*buffer)
		memset(*buffer, 0xCC, TOOL_BYTES);
}

/* It may be one of another client, who will miss it. */
static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;
	uint32_t kind;

	while (f.next(buffer, valid, &record) == 0) {
		memcpy(&kind, record, sizeof(kind));
		tool_kernels += kind == 10;
	}
}

void tool_begins(void)
{
	size_t i;

	if (!find_cupti())
		return;
	f.register_timestamp(ticks);
	f.register_callbacks(request, complete);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		f.enable(kinds[i]);
}

void tool_ends(void)
{
	size_t i;

	if (!f.flush)
		return;
	f.flush(0);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		f.disable(kinds[i]);
}

unsigned long tool_count(void)
{
	return tool_kernels;
}

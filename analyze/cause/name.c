/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/cause.h"

#include <string.h>

const char *cause_word(enum cause cause)
{
	static const char *const words[] = {
#define X(name, word, meaning) word,
		CAUSE_LIST(X)
#undef X
	};

	return cause < CAUSE_COUNT ? words[cause] : "";
}

const char *cause_meaning(enum cause cause)
{
	static const char *const meanings[] = {
#define X(name, word, meaning) meaning,
		CAUSE_LIST(X)
#undef X
	};

	return cause < CAUSE_COUNT ? meanings[cause] : "";
}

/* Parts of names of runtime and driver calls of CUDA and HIP; first match wins. */
static const struct {
	const char *part;
	enum call_class class;
} call_parts[] = {
	{ "Node", CALL_OTHER }, /* describes work of a graph */
	{ "Synchronize", CALL_SYNC },
	{ "ModuleLoad", CALL_COMPILE },
	{ "LibraryLoad", CALL_COMPILE },
	{ "LinkCreate", CALL_COMPILE },
	{ "LinkAdd", CALL_COMPILE },
	{ "LinkComplete", CALL_COMPILE },
	{ "rtcCompileProgram", CALL_COMPILE },
	{ "Malloc", CALL_ALLOCATOR },
	{ "MemAlloc", CALL_ALLOCATOR },
	{ "MemHostAlloc", CALL_ALLOCATOR },
	{ "HostAlloc", CALL_ALLOCATOR },
	{ "HostRegister", CALL_ALLOCATOR },
	{ "HostUnregister", CALL_ALLOCATOR },
	{ "MemFree", CALL_ALLOCATOR },
	{ "cudaFree", CALL_ALLOCATOR },
	{ "hipFree", CALL_ALLOCATOR },
	{ "HostFree", CALL_ALLOCATOR },
	{ "MemCreate", CALL_ALLOCATOR },
	{ "MemMap", CALL_ALLOCATOR },
	{ "MemUnmap", CALL_ALLOCATOR },
	{ "MemRelease", CALL_ALLOCATOR },
	{ "MemSetAccess", CALL_ALLOCATOR },
	{ "MemAddress", CALL_ALLOCATOR },
	{ "MemPoolTrim", CALL_ALLOCATOR },
};

enum call_class cause_call_class(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(call_parts) / sizeof(call_parts[0]); i++)
		if (strstr(name, call_parts[i].part))
			return call_parts[i].class;
	if (!strstr(name, "Memcpy"))
		return CALL_OTHER;
	return strstr(name, "Async") ? CALL_COPY : CALL_BLOCKING_COPY;
}

enum cause cause_overhead(const char *name)
{
	if (strstr(name, "Loading") || strstr(name, "Compiler"))
		return CAUSE_COMPILE;
	/* the driver's queue of launches is full: the GPU is behind, not the tracer */
	return strstr(name, "Command Buffer Full") ? CAUSE_COUNT : CAUSE_PROFILER;
}

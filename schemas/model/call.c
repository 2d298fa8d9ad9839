/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/model/call.h"

#include "schemas/model/event.h"

#include <string.h>

enum { VERSION_DIGITS = 4 };

static bool has(const char *name, size_t len, const char *part)
{
	return memmem(name, len, part, strlen(part)) != NULL;
}

/* Calls such as cudaGraphAddMemcpyNode describe work of a graph, which a later call launches. */
static bool describes_node(const char *name, size_t len)
{
	return has(name, len, "Node");
}

bool call_launches(const char *name, size_t len)
{
	/* The last three are Level Zero's, SYCL's and MTIA's. */
	static const char *const parts[] = { "Launch",     "Memcpy",  "Memset",
					     "MemoryCopy", "USMFill", "job_prep_and_submit" };
	size_t i = 0;

	while (i < sizeof(parts) / sizeof(parts[0]) && !has(name, len, parts[i]))
		i++;
	if (i == sizeof(parts) / sizeof(parts[0]))
		return false;
	return !describes_node(name, len) && !has(name, len, "HostFunc");
}

/* Parts of names, and what each adds to the traits of a call. */
static const struct {
	const char *part;
	unsigned traits;
} call_parts[] = {
	{ "Memcpy", CALL_COPIES },
	{ "MemoryCopy", CALL_COPIES },
	{ "Async", CALL_IS_ASYNC },
	{ "Synchronize", CALL_WAITS },
	{ "cudaStreamSynchronize", CALL_BEGINS_ARROW },
	{ "cudaDeviceSynchronize", CALL_BEGINS_ARROW },
	{ "cudaStreamWaitEvent", CALL_BEGINS_ARROW },
	{ "ModuleLoad", CALL_LOADS_CODE },
	{ "LibraryLoad", CALL_LOADS_CODE },
	{ "LinkCreate", CALL_LOADS_CODE },
	{ "LinkAdd", CALL_LOADS_CODE },
	{ "LinkComplete", CALL_LOADS_CODE },
	{ "rtcCompileProgram", CALL_LOADS_CODE },
	{ "Malloc", CALL_ALLOCATES },
	{ "MemAlloc", CALL_ALLOCATES },
	{ "HostAlloc", CALL_ALLOCATES },
	{ "HostRegister", CALL_ALLOCATES },
	{ "HostUnregister", CALL_ALLOCATES },
	{ "MemFree", CALL_ALLOCATES },
	{ "cudaFree", CALL_ALLOCATES },
	{ "hipFree", CALL_ALLOCATES },
	{ "HostFree", CALL_ALLOCATES },
	{ "MemCreate", CALL_ALLOCATES },
	{ "MemMap", CALL_ALLOCATES },
	{ "MemUnmap", CALL_ALLOCATES },
	{ "MemRelease", CALL_ALLOCATES },
	{ "MemSetAccess", CALL_ALLOCATES },
	{ "MemAddress", CALL_ALLOCATES },
	{ "MemPoolTrim", CALL_ALLOCATES },
	{ "StreamCreate", CALL_SETS_UP },
	{ "EventCreate", CALL_SETS_UP },
	{ "CtxCreate", CALL_SETS_UP },
	{ "CtxRetain", CALL_SETS_UP },
	{ "cuInit", CALL_SETS_UP },
	{ "hipInit", CALL_SETS_UP },
	{ "SetDevice", CALL_SETS_UP },
	{ "GetStreamPriorityRange", CALL_SETS_UP }, /* PyTorch's first call */
	{ "FuncGetAttribute", CALL_SETS_UP },
	{ "FuncSetAttribute", CALL_SETS_UP },
	{ "GetFunction", CALL_SETS_UP },
	{ "GetFuncBySymbol", CALL_SETS_UP },
	{ "Occupancy", CALL_SETS_UP },
};

unsigned call_traits(const char *name, size_t len)
{
	unsigned traits = 0;

	if (describes_node(name, len))
		return 0;
	if (call_launches(name, len)) {
		traits |= CALL_LAUNCHES | CALL_BEGINS_ARROW;
		if (has(name, len, "Launch") || has(name, len, "job_prep_and_submit"))
			traits |= CALL_LAUNCHES_KERNELS;
		if (has(name, len, "GraphLaunch"))
			traits |= CALL_LAUNCHES_GRAPH;
	}
	for (size_t i = 0; i < sizeof(call_parts) / sizeof(*call_parts); i++)
		if (has(name, len, call_parts[i].part))
			traits |= call_parts[i].traits;
	return traits;
}

unsigned call_class_traits(unsigned api_class, const char *name, size_t len)
{
	if (api_class == API_OF_KERNEL)
		return CALL_LAUNCHES | CALL_LAUNCHES_KERNELS | CALL_BEGINS_ARROW;
	return call_traits(name, len) | (api_class == API_OF_ASYNC_COPY ? CALL_IS_ASYNC : 0);
}

size_t call_name_length(const char *name, size_t len)
{
	size_t digits = 0;

	while (digits < len && name[len - 1 - digits] >= '0' && name[len - 1 - digits] <= '9')
		digits++;
	if (digits < VERSION_DIGITS || len < digits + 3 ||
	    memcmp(name + len - digits - 2, "_v", 2) != 0)
		return len;
	return len - digits - 2;
}

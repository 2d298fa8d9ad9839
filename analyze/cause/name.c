/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/cause/cause.h"

#include "schemas/model/call.h"

#include <string.h>

const struct cause_type cause_types[] = {
#define X(name, word, meaning) { word, meaning },
	CAUSE_LIST(X)
#undef X
};

enum call_class cause_call_class(const char *name)
{
	unsigned traits = call_traits(name, strlen(name));

	if (traits & CALL_WAITS)
		return CALL_SYNC;
	if (traits & CALL_LOADS_CODE)
		return CALL_COMPILE;
	if (traits & CALL_ALLOCATES)
		return CALL_ALLOCATOR;
	if (traits & CALL_SETS_UP)
		return CALL_SETUP;
	if (!(traits & CALL_COPIES))
		return traits & CALL_LAUNCHES_KERNELS ? CALL_KERNELS : CALL_OTHER;
	return traits & CALL_IS_ASYNC ? CALL_COPY : CALL_BLOCKING_COPY;
}

enum call_class causes_class_of(struct causes *c, const struct event *call)
{
	if (call->subkind == API_OF_KERNEL)
		return CALL_KERNELS;
	return call->subkind == API_OF_ASYNC_COPY ? CALL_COPY : causes_call_class(c, call->name);
}

enum cause cause_overhead(const char *name)
{
	if (strstr(name, "Loading") || strstr(name, "Compiler"))
		return CAUSE_COMPILE;
	/* the driver's launch queue is full because the GPU is late, not because of the tracer */
	return strstr(name, "Command Buffer Full") ? CAUSE_COUNT : CAUSE_PROFILER;
}

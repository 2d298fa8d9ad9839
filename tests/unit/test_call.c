/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "schemas/model/call.h"
#include "schemas/model/records.h"

#include <string.h>

void test_call_traits(void)
{
	enum {
		LAUNCH = CALL_LAUNCHES | CALL_BEGINS_ARROW,
		KERNEL = LAUNCH | CALL_LAUNCHES_KERNELS,
		COPY = LAUNCH | CALL_COPIES,
	};
	static const struct {
		const char *name;
		unsigned traits;
	} rows[] = {
		{ "cudaLaunchKernel_v7000", KERNEL },
		{ "cudaLaunchKernelExC_ptsz", KERNEL },
		{ "cudaLaunchCooperativeKernel", KERNEL },
		{ "cuLaunchKernelEx", KERNEL },
		{ "hipExtModuleLaunchKernel", KERNEL },
		{ "hipLaunchByPtr", KERNEL },
		{ "cudaGraphLaunch_v10000", KERNEL | CALL_LAUNCHES_GRAPH },
		{ "cuGraphLaunch", KERNEL | CALL_LAUNCHES_GRAPH },
		{ "cudaLaunchHostFunc", 0 }, /* a stream runs it on the host */
		{ "cudaGraphAddMemcpyNode", 0 },
		{ "cudaGraphExecKernelNodeSetParams", 0 },
		{ "cudaGraphAddMemAllocNode", 0 },
		{ "cudaMemcpy", COPY },
		{ "cudaMemcpyAsync", COPY | CALL_IS_ASYNC },
		{ "cuMemcpyHtoDAsync_v2", COPY | CALL_IS_ASYNC },
		{ "hipMemcpyWithStream", COPY },
		{ "cudaMemsetAsync", LAUNCH | CALL_IS_ASYNC },
		{ "cudaStreamSynchronize", CALL_WAITS | CALL_BEGINS_ARROW },
		{ "cudaStreamWaitEvent", CALL_BEGINS_ARROW },
		{ "cuStreamSynchronize_ptsz", CALL_WAITS },
		{ "hipEventSynchronize", CALL_WAITS },
		{ "cudaFreeAsync", CALL_ALLOCATES | CALL_IS_ASYNC },
		{ "cuMemHostAlloc", CALL_ALLOCATES },
		{ "cuModuleLoadDataEx", CALL_LOADS_CODE },
		{ "cudaStreamCreateWithFlags", CALL_SETS_UP },
		{ "cudaDeviceGetStreamPriorityRange", CALL_SETS_UP },
		{ "cuDevicePrimaryCtxRetain", CALL_SETS_UP },
		{ "cudaFuncGetAttributes", CALL_SETS_UP },
		{ "cudaGetLastError", 0 },
		{ "", 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t len = strlen(rows[i].name);

		if (!CHECK_U64(call_traits(rows[i].name, len), rows[i].traits))
			CHECK_STR(rows[i].name, "");
		CHECK(call_launches(rows[i].name, len) == !!(rows[i].traits & CALL_LAUNCHES));
	}
	CHECK(!call_launches("cudaLaunchKernel", 6)); /* `len` ends the name */
}

void test_call_copy_and_sync_names(void)
{
	CHECK_STR(copy_kind_name(1), "Memcpy HtoD");
	CHECK_STR(copy_kind_word(10), "PtoP");
	CHECK_STR(copy_kind_name(11), "Memcpy UnifiedHtoD");
	CHECK_STR(copy_kind_name(14), "Memcpy");
	CHECK_STR(copy_kind_word(0), "");
	CHECK_U64(copy_kind_of_word("DtoD", 4), 8);
	CHECK_U64(copy_kind_of_word("", 0), 0);
	CHECK_STR(sync_kind_word(SYNC_STREAM_WAIT), "Stream Wait Event");
	CHECK_STR(sync_kind_word(SYNC_KIND_END), "");
	CHECK_U64(sync_kind_of_word("Context Sync", 12), SYNC_CONTEXT);
	CHECK_U64(sync_kind_of_word("", 0), 0);
}

void test_call_name_lengths(void)
{
	static const struct {
		const char *name;
		size_t len;
	} rows[] = {
		{ "cudaLaunchKernel_v7000", 16 },
		{ "cuMemAlloc_v2", 13 },
		{ "cudaMalloc", 10 },
		{ "_v7000", 6 },
		{ "a_v10000", 1 },
		{ "7000", 4 },
		{ "", 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_U64(call_name_length(rows[i].name, strlen(rows[i].name)), rows[i].len);
}

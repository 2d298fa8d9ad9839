/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CUPTI this build is: version, record sizes, texts.  FAKE_PROFILE is 1204, 1300, 1305 or
 * 1400.  Sizes of 12.4 and 13.0 are those of the headers' structs; those of 13.5 were taken from
 * its headers.  fake_names.inc is made of the headers' enumerations (fake.mk).
 */
#include "tests/fake/fake_inside.h"

#include <stdio.h>
#include <string.h>

/* kind, struct of 13.0, struct of 12.4; None: not served */
struct None {
	char nothing[1];
};
typedef struct None CUpti_ActivityNone;
/* clang-format off */
#define RECORDS(X) \
	X(1, Memcpy6, Memcpy5) X(2, Memset4, Memset4) X(3, Kernel10, Kernel9) X(4, API, API) \
	X(5, API, API) X(6, None, Event) X(7, None, Metric) X(8, Device5, Device5) \
	X(9, Context3, Context2) X(10, Kernel10, Kernel9) X(11, Name, Name) \
	X(12, Marker2, Marker2) X(13, MarkerData2, MarkerData) X(14, None, SourceLocator) \
	X(15, None, GlobalAccess3) X(16, None, Branch2) X(17, Overhead3, Overhead3) \
	X(18, CdpKernel, CdpKernel) X(19, Preemption, Preemption) \
	X(20, Environment, Environment) X(21, None, EventInstance) \
	X(22, MemcpyPtoP4, MemcpyPtoP4) X(23, None, MetricInstance) \
	X(24, None, InstructionExecution) \
	X(25, UnifiedMemoryCounter3, UnifiedMemoryCounter2) X(26, Function, Function) \
	X(27, Module, Module) X(28, DeviceAttribute, DeviceAttribute) X(29, None, SharedAccess) \
	X(30, None, PCSampling3) X(31, None, PCSamplingRecordInfo) \
	X(32, None, InstructionCorrelation) X(36, CudaEvent2, CudaEvent) X(37, Stream, Stream) \
	X(38, Synchronization2, Synchronization) X(39, ExternalCorrelation, ExternalCorrelation) \
	X(40, NvLink4, NvLink4) X(41, None, InstantaneousEvent) \
	X(42, None, InstantaneousEventInstance) X(43, None, InstantaneousMetric) \
	X(44, None, InstantaneousMetricInstance) X(45, Memory, Memory) X(46, Pcie, Pcie) \
	X(48, API, API) X(49, Memory4, Memory3) X(50, MemoryPool3, MemoryPool2) \
	X(51, GraphTrace2, GraphTrace2) X(52, Jit2, Jit2) X(53, DeviceGraphTrace, None) \
	X(54, MemDecompress, None) X(55, ConfidentialComputeRotation, None)
/* clang-format on */

/* OpenACC and OpenMP have headers of their own, which need not be there. */
#define DIRECTIVES [33] = 152, [34] = 152, [35] = 120, [47] = 40

/* What 13.5 changed; times of 13.0 otherwise. */
enum {
	KERNEL_13 = 248,
	MEMCPY_7 = 112,
	MEMSET_5 = 104,
	CONTEXT_4 = 40,
	DEVICE_6 = 192,
	CUDA_EVENT_3 = 80,
	NVLINK_5 = 88
};
#define GROWN(more)                                                                                \
	[1] = MEMCPY_7 + (more), [2] = MEMSET_5 + (more), [3] = KERNEL_13 + (more),                \
	[4] = 40 + (more), [5] = 40 + (more), [8] = DEVICE_6 + (more), [9] = CONTEXT_4 + (more),   \
	[10] = KERNEL_13 + (more), [11] = 32 + (more), [12] = 56 + (more), [13] = 40 + (more),     \
	[17] = 56 + (more), [18] = 144 + (more), [19] = 40 + (more), [20] = 40 + (more),           \
	[22] = 96 + (more), [25] = 104 + (more), [26] = 32 + (more), [27] = 24 + (more),           \
	[28] = 24 + (more), [36] = CUDA_EVENT_3 + (more), [37] = 24 + (more), [38] = 56 + (more),  \
	[39] = 24 + (more), [40] = NVLINK_5 + (more), [45] = 80 + (more), [46] = 168 + (more),     \
	[48] = 40 + (more), [49] = 128 + (more), [50] = 80 + (more), [51] = 56 + (more),           \
	[52] = 72 + (more), [53] = 56 + (more), [54] = 64 + (more), [55] = 32 + (more),            \
	[56] = 56 + (more), [57] = 24 + (more), [58] = 48 + (more), [59] = 304 + (more)

#define SIZE_OF(name) (sizeof(CUpti_Activity##name) == 1 ? 0 : sizeof(CUpti_Activity##name))

const struct fake_profile fake_profile = {
#if FAKE_PROFILE == 1204
	.version = 22,
	.newest_kind = 52,
	.strange_kind = 19,
	.driver_names = 754,
	.runtime_names = 468,
	.newest_result = 42,
	.no_driver = CUPTI_ERROR_NOT_INITIALIZED,
#define X(kind, now, then) [kind] = SIZE_OF(then),
	.sizes = { RECORDS(X) DIRECTIVES },
#undef X
#elif FAKE_PROFILE == 1300
	.version = 130001,
	.newest_kind = 55,
	.strange_kind = 55,
	.driver_names = 807,
	.runtime_names = 523,
	.newest_result = 46,
	.no_driver = UNKNOWN_RESULT,
#define X(kind, now, then) [kind] = SIZE_OF(now),
	.sizes = { RECORDS(X) DIRECTIVES },
#undef X
#elif FAKE_PROFILE == 1305
	.version = 130500,
	.newest_kind = 59,
	.strange_kind = 59,
	.driver_names = 807,
	.runtime_names = 523,
	.newest_result = 47,
	.no_driver = UNKNOWN_RESULT,
	.silent = true,
	.sizes = { GROWN(0), DIRECTIVES },
#elif FAKE_PROFILE == 1400
	.version = 140000,
	.newest_kind = 60,
	.strange_kind = 60,
	.driver_names = 807,
	.runtime_names = 523,
	.newest_result = 60,
	.no_driver = UNKNOWN_RESULT,
	.silent = true,
	.sizes = { GROWN(16), [60] = 64, DIRECTIVES },
#else
#error FAKE_PROFILE
#endif
};

uint32_t fake_version(void)
{
	int64_t asked = OPTION(api_version);

	return asked ? (uint32_t)asked : fake_profile.version;
}

/* ---- texts ---- */

#define N(domain, cbid, name) [domain][cbid] = name,
#define R(code, name)
static const char *const names[3][1024] = {
#include "fake_names.inc"
};
#undef N
#undef R
#define N(domain, cbid, name)
#define R(code, name) [code] = name,
static const char *const results[1024] = {
#include "fake_names.inc"
	[47] = "CUPTI_ERROR_HES_TRACE_NOT_SUPPORTED_ON_MPS",
	[60] = "CUPTI_ERROR_OF_THE_FUTURE",
	[1000] = "CUPTI_ERROR_CANT_OPEN_FILE", /* in the libraries, not in the headers */
};
#undef N
#undef R

/* Runtime functions that bore another name in 12.4. */
static const struct {
	uint32_t cbid;
	const char *name;
} former[] = {
	{ 393, "cudaSignalExternalSemaphoresAsync_v2_v11020" },
	{ 394, "cudaSignalExternalSemaphoresAsync_v2_ptsz_v11020" },
	{ 395, "cudaWaitExternalSemaphoresAsync_v2_v11020" },
	{ 396, "cudaWaitExternalSemaphoresAsync_v2_ptsz_v11020" },
	{ 440, "cudaGetDeviceProperties_v2_v12000" },
	{ 448, "cudaMemAdvise_v2_v12020" },
	{ 449, "cudaMemPrefetchAsync_v2_v12020" },
	{ 450, "cudaMemPrefetchAsync_v2_ptsz_v12020" },
	{ 455, "cudaGraphGetEdges_v2_v12030" },
	{ 456, "cudaGraphNodeGetDependencies_v2_v12030" },
	{ 457, "cudaGraphNodeGetDependentNodes_v2_v12030" },
	{ 458, "cudaGraphAddDependencies_v2_v12030" },
	{ 459, "cudaGraphRemoveDependencies_v2_v12030" },
	{ 460, "cudaGraphAddNode_v2_v12030" },
	{ 461, "cudaStreamGetCaptureInfo_v3_v12030" },
	{ 462, "cudaStreamGetCaptureInfo_v3_ptsz_v12030" },
	{ 463, "cudaStreamUpdateCaptureDependencies_v2_v12030" },
	{ 464, "cudaStreamUpdateCaptureDependencies_v2_ptsz_v12030" },
	{ 465, "cuda465_v12040" },
	{ 466, "cuda466_v12040" },
};

const char *fake_callback_name(unsigned domain, uint32_t cbid)
{
	size_t i;

	if (domain != FAKE_DRIVER && domain != FAKE_RUNTIME)
		return NULL;
	if (cbid >=
	    (domain == FAKE_DRIVER ? fake_profile.driver_names : fake_profile.runtime_names))
		return NULL;
	if (fake_profile.version == 22 && domain == FAKE_RUNTIME)
		for (i = 0; i < sizeof(former) / sizeof(former[0]); i++)
			if (former[i].cbid == cbid)
				return former[i].name;
	return names[domain][cbid];
}

static const char *result_name(int result)
{
	const char *name = NULL;

	if (result == UNKNOWN_RESULT || result == UNKNOWN_RESULT + 1)
		return results[result];
	if (result >= 0 && (uint32_t)result <= fake_profile.newest_result && result != 36 &&
	    result != 37)
		name = results[result];
	return name;
}

/* Without a driver the newer ones say nothing at all. */
static bool is_silent(void)
{
	return fake_profile.silent && !fake_has_driver();
}

SHOWN CUptiResult cuptiGetVersion(uint32_t *version)
{
	fake_called(__func__);
	if (is_silent())
		return CUPTI_ERROR_UNKNOWN;
	if (!version)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*version = fake_version();
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
				       const char **name)
{
	fake_called(__func__);
	if (is_silent())
		return CUPTI_ERROR_UNKNOWN;
	if (!name)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*name = fake_callback_name(domain, cbid);
	return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

SHOWN CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
	const char *name;

	if (is_silent())
		return CUPTI_ERROR_UNKNOWN;
	if (!text)
		return CUPTI_ERROR_INVALID_PARAMETER;
	name = result_name((int)result);
	*text = name ? name : "<unknown>";
	return name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

SHOWN CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **text)
{
	const char *name;

	if (is_silent())
		return CUPTI_ERROR_UNKNOWN;
	if (!text)
		return CUPTI_ERROR_INVALID_PARAMETER;
	name = result_name((int)result);
	*text = name ? name : "<unknown>";
	return CUPTI_SUCCESS;
}

/* ---- records in a buffer ---- */

static size_t size_at(const uint8_t *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind < KINDS ? fake_profile.sizes[kind] : 0;
}

SHOWN CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
	const uint8_t *next = buffer, *end = buffer + valid;
	size_t size;

	if (is_silent())
		return CUPTI_ERROR_UNKNOWN;
	if (!buffer || !record)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (OPTION(fail_next))
		return (CUptiResult)OPTION(fail_next);
	if (*record) {
		size = size_at((const uint8_t *)*record);
		if (!size)
			return CUPTI_ERROR_INVALID_KIND;
		next = (const uint8_t *)*record + size;
	}
	if (next >= end)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	size = size_at(next);
	if (!size)
		return CUPTI_ERROR_INVALID_KIND;
	if (size > (size_t)(end - next))
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)(uintptr_t)next;
	return CUPTI_SUCCESS;
}

#if FAKE_PROFILE >= 1305
CUptiResult cuptiActivityGetStructSize(CUpti_ActivityKind kind, uint32_t version, size_t *size);

SHOWN CUptiResult cuptiActivityGetStructSize(CUpti_ActivityKind kind, uint32_t version,
					     size_t *size)
{
	fake_called(__func__);
	if (is_silent())
		return CUPTI_ERROR_UNKNOWN;
	if (!size || (unsigned)kind >= KINDS || !fake_profile.sizes[kind])
		return CUPTI_ERROR_INVALID_PARAMETER;
	*size = fake_profile.sizes[kind];
	return CUPTI_SUCCESS;
}
#endif

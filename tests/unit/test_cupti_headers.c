/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of CUPTI that the collector has without its headers, beside the headers where they are.
 */
#include "collector/probe/cupti/lib.h"
#include "collector/probe/cupti/layout.h"
#include "collector/probe/cupti/tables.h"
#include "tests/unit/unit.h"

#if defined(__has_include)
#if __has_include(<cupti_activity.h>) && __has_include(<cuda.h>)
#include <cuda.h>
#include <cupti.h>
#if CUPTI_API_VERSION >= 130000
#define HAVE_CUPTI 1
#endif
#endif
#endif

#ifdef HAVE_CUPTI

#define SAME(ours, theirs) CHECK_U64((uint64_t)(ours), (uint64_t)(theirs))

static void check_kinds(void)
{
	SAME(CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	SAME(CUPTI_KERNEL_SERIAL, CUPTI_ACTIVITY_KIND_KERNEL);
	SAME(CUPTI_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE);
	SAME(CUPTI_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
	SAME(CUPTI_STREAM, CUPTI_ACTIVITY_KIND_STREAM);
	SAME(CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
	SAME(CUPTI_CUDA_EVENT, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
	SAME(CUPTI_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
	SAME(CUPTI_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2);
	SAME(CUPTI_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	/* cupti/kinds.c has these as numbers */
	SAME(5, CUPTI_ACTIVITY_KIND_RUNTIME);
	SAME(4, CUPTI_ACTIVITY_KIND_DRIVER);
	SAME(38, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
	SAME(52, CUPTI_ACTIVITY_KIND_JIT);
	SAME(50, CUPTI_ACTIVITY_KIND_MEMORY_POOL);
	SAME(1, CUPTI_ACTIVITY_KIND_MEMCPY);
	SAME(22, CUPTI_ACTIVITY_KIND_MEMCPY2);
	SAME(2, CUPTI_ACTIVITY_KIND_MEMSET);
	SAME(54, CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS);
}

static void check_constants(void)
{
	SAME(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
	SAME(CUPTI_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
	SAME(CUPTI_NO_PRIVILEGE, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
	SAME(CUPTI_TAKEN, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	SAME(CUPTI_UNKNOWN, CUPTI_ERROR_UNKNOWN);
	SAME(CUPTI_ATTRIBUTE_ZEROED, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
	SAME(CUPTI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
	SAME(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	SAME(CUPTI_CALLBACK_EXIT, CUPTI_API_EXIT);
	SAME(CUPTI_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
	SAME(CUPTI_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
	SAME(offsetof(CUpti_CallbackData, callbackSite), 0);
}

static void check_places(void)
{
#define X(key, member, at, bytes, unit)                                                            \
	SAME(at, offsetof(CUpti_ActivityDevice5, member));                                         \
	SAME(bytes, sizeof(((CUpti_ActivityDevice5 *)0)->member));
	CUPTI_DEVICE_NUMBERS(X)
#undef X
	SAME(120, offsetof(CUpti_ActivityDevice5, uuid));
	SAME(136, offsetof(CUpti_ActivityDevice5, name));
	SAME(160, offsetof(CUpti_ActivityDevice5, migUuid));
	SAME(48, offsetof(CUpti_ActivityOverhead3, overheadData));
	SAME(8, offsetof(CUpti_ActivityContext3, deviceId));
	SAME(14, offsetof(CUpti_ActivityContext3, nullStreamId));
	SAME(20, offsetof(CUpti_ActivityContext3, isGreenContext));
	SAME(22, offsetof(CUpti_ActivityContext3, numMultiprocessors));
	SAME(16, offsetof(CUpti_ActivityStream, flag));
	SAME(8, offsetof(CUpti_ActivityExternalCorrelation, externalId));
	SAME(16, offsetof(CUpti_ActivityExternalCorrelation, correlationId));
	SAME(sizeof(struct cupti_subscriber_params), sizeof(CUpti_SubscriberParams));
	SAME(offsetof(struct cupti_subscriber_params, old_name_size),
	     offsetof(CUpti_SubscriberParams, oldSubscriberSize));
}

void test_cupti_headers(void)
{
	check_kinds();
	check_constants();
	check_places();
}

#else

void test_cupti_headers(void)
{
	SKIP("no headers of CUPTI 13.0 or later here");
}

#endif

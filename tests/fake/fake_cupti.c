/* SPDX-License-Identifier: Apache-2.0 */
/* The exported functions of the stand-in for libcupti that switch things. */
#include "tests/fake/fake_inside.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Without a driver: what each function returns before it looks at its arguments.  Newer ones say
 * the same to everything; to some, older ones say what is wrong with an argument first. */
#define NEEDS_DRIVER                                                                               \
	do {                                                                                       \
		fake_called(__func__);                                                             \
		if (!fake_has_driver())                                                            \
			return fail_last(fake_profile.no_driver);                                  \
	} while (0)
#define CHECKS_FIRST(good)                                                                         \
	do {                                                                                       \
		fake_called(__func__);                                                             \
		if (fake_profile.silent && !fake_has_driver())                                     \
			return fail_last(fake_profile.no_driver);                                  \
		if (!(good))                                                                       \
			return CUPTI_ERROR_INVALID_PARAMETER;                                      \
	} while (0)
#define THEN_DRIVER                                                                                \
	do {                                                                                       \
		if (!fake_has_driver())                                                            \
			return fail_last(fake_profile.no_driver);                                  \
	} while (0)

static _Thread_local int last_error;
static char subscriber_name[64];
static struct subscriber {
	int nothing;
} the_subscriber;

static int fail_last(int result)
{
	last_error = result;
	return result;
}

static void pause_us(int64_t us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	if (us > 0)
		nanosleep(&t, NULL);
}

/* ---- the driver ---- */

static struct {
	pthread_mutex_t lock;
	bool looked, there, watching;
	bool (*watch)(fake_watch, bool);
	void (*list)(fake_watch);
	void (*tracing)(bool);
	uint32_t (*context_id)(const void *);
	uint32_t (*stream_id)(const void *, const void *);
} driver = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void look_for_driver(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW), *symbol;

	driver.looked = true;
	driver.there = handle != NULL;
	if (!handle)
		return;
	symbol = dlsym(handle, "fake_cuda_watch");
	memcpy(&driver.watch, &symbol, sizeof(symbol));
	symbol = dlsym(handle, "fake_cuda_list");
	memcpy(&driver.list, &symbol, sizeof(symbol));
	symbol = dlsym(handle, "fake_cuda_tracing");
	memcpy(&driver.tracing, &symbol, sizeof(symbol));
	symbol = dlsym(handle, "fake_cuda_context_id");
	memcpy(&driver.context_id, &symbol, sizeof(symbol));
	symbol = dlsym(handle, "fake_cuda_stream_id");
	memcpy(&driver.stream_id, &symbol, sizeof(symbol));
}

bool fake_has_driver(void)
{
	bool there;

	pthread_mutex_lock(&driver.lock);
	if (!driver.looked)
		look_for_driver();
	pthread_mutex_unlock(&driver.lock);
	there = OPTION(driver) < 0 ? driver.there : OPTION(driver) > 0;
	if (!there && OPTION(driver_crash))
		abort();
	return there;
}

void fake_watch_driver(bool on)
{
	if (!driver.watch || driver.watching == on)
		return;
	driver.watching = on;
	driver.watch(fake_watch_fact, on);
}

void fake_list(fake_watch watch)
{
	if (driver.list)
		driver.list(watch);
}

void fake_set_tracing(bool on)
{
	if (driver.tracing)
		driver.tracing(on);
}

/* ---- kinds ---- */

static bool is_legacy(unsigned kind)
{
	return kind == 6 || kind == 7 || (kind >= 14 && kind <= 16) || kind == 21 || kind == 23 ||
	       kind == 24 || (kind >= 29 && kind <= 32) || (kind >= 41 && kind <= 44);
}

/* What stands against it; 0 nothing. */
static int refuse(unsigned kind)
{
	int64_t asked = OPTION(fail_enable), only = OPTION(fail_kind);
	_Atomic bool *on = fake_state.enabled;

	if (asked && (!only || only == kind))
		return (int)asked;
	if (!kind || kind > fake_profile.newest_kind || kind == 27 || kind == 53)
		return CUPTI_ERROR_INVALID_KIND;
	if (is_legacy(kind))
		return CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED;
	if (kind == 18 || kind == 20 || kind == 28)
		return CUPTI_ERROR_NOT_COMPATIBLE;
	if ((kind == 3 && on[10]) || (kind == 10 && on[3]))
		return CUPTI_ERROR_NOT_COMPATIBLE;
	if (OPTION(graph_conflict) &&
	    ((kind == 51 && (on[3] || on[10])) || ((kind == 3 || kind == 10) && on[51])))
		return CUPTI_ERROR_NOT_COMPATIBLE;
	return 0;
}

static bool traces_work(void)
{
	static const unsigned kinds[] = { 1, 2, 3, 10, 22, 51 };
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (fake_state.enabled[kinds[i]])
			return true;
	return false;
}

static void unmute(unsigned kind)
{
	unsigned domain = kind == 4 ? FAKE_DRIVER : FAKE_RUNTIME, i;

	for (i = 0; (kind == 4 || kind == 5) && i < 1024; i++)
		fake_state.muted[domain][i] = false;
}

static int enable(unsigned kind, bool dump)
{
	uint64_t none = 0;
	int refused = refuse(kind);
	bool was;

	if (refused)
		return fail_last(refused);
	if (atomic_compare_exchange_strong(&fake_state.first_enable_ns, &none, fake_realtime()))
		pause_us(OPTION(enable_us));
	fake_counts.enables++;
	unmute(kind);
	fake_worker_start();
	fake_watch_driver(true);
	was = atomic_exchange(&fake_state.enabled[kind], true);
	if (kind == 38)
		fake_state.all_syncs = fake_version() >= 130000;
	if (kind == 1)
		fake_state.implied_peer = true;
	fake_set_tracing(traces_work());
	if (dump || (kind == 8 && !was))
		fake_dump(kind, dump);
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	NEEDS_DRIVER;
	return enable(kind, false);
}

SHOWN CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
	NEEDS_DRIVER;
	return enable(kind, true);
}

SHOWN CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	NEEDS_DRIVER;
	if (!kind || kind > fake_profile.newest_kind)
		return fail_last(CUPTI_ERROR_INVALID_KIND);
	fake_state.enabled[kind] = false;
	if (kind == 1)
		fake_state.implied_peer = false;
	fake_set_tracing(traces_work());
	return CUPTI_SUCCESS;
}

#if FAKE_PROFILE >= 1300
static int mute(unsigned domain, uint32_t cbid, bool on)
{
	if (!fake_callback_name(domain, cbid))
		return fail_last(CUPTI_ERROR_INVALID_PARAMETER);
	fake_state.muted[domain][cbid] = !on;
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t on)
{
	NEEDS_DRIVER;
	return mute(FAKE_RUNTIME, cbid, on);
}

SHOWN CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t on)
{
	NEEDS_DRIVER;
	return mute(FAKE_DRIVER, cbid, on);
}
#endif

/* Switches that change nothing here. */
#define SWITCH(name)                                                                               \
	SHOWN CUptiResult name(uint8_t on)                                                         \
	{                                                                                          \
		NEEDS_DRIVER;                                                                      \
		return CUPTI_SUCCESS;                                                              \
	}
SWITCH(cuptiActivityEnableLatencyTimestamps)
SWITCH(cuptiActivityEnableDeviceGraph)
SWITCH(cuptiActivityEnableLaunchAttributes)
#if FAKE_PROFILE >= 1300
SWITCH(cuptiActivityEnableHWTrace)
SWITCH(cuptiActivityEnableAllocationSource)
SWITCH(cuptiActivityEnableCudaEventDeviceTimestamps)
#endif

#if FAKE_PROFILE >= 1300
SHOWN CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t on)
{
	NEEDS_DRIVER;
	if (!fake_is_on(38)) /* it says something of a kind that is enabled */
		return fail_last(CUPTI_ERROR_NOT_READY);
	fake_state.all_syncs = on;
	return CUPTI_SUCCESS;
}
#endif

/* ---- callbacks, clock, threads ---- */

SHOWN CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
						 CUpti_BuffersCallbackCompleteFunc complete)
{
	CHECKS_FIRST(request && complete);
	if (OPTION(fail_register))
		return fail_last((int)OPTION(fail_register));
	fake_counts.registers++;
	fake_state.request = request;
	fake_state.complete = complete;
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc stamp)
{
	CHECKS_FIRST(stamp);
	THEN_DRIVER;
	fake_state.stamp_since_ns = fake_realtime();
	fake_state.stamp_zero = stamp();
	fake_state.stamp = stamp;
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiGetTimestamp(uint64_t *ns)
{
	CHECKS_FIRST(ns);
	*ns = fake_now();
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id)
{
	NEEDS_DRIVER;
	if (!context || !id)
		return fail_last(context ? CUPTI_ERROR_INVALID_PARAMETER
					 : CUPTI_ERROR_INVALID_CONTEXT);
	*id = driver.context_id(context);
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
				     uint32_t *id)
{
	NEEDS_DRIVER;
	if (!context || !id)
		return fail_last(CUPTI_ERROR_INVALID_PARAMETER);
	*id = driver.stream_id(context, stream);
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	NEEDS_DRIVER;
	if (OPTION(fail_thread_id))
		return fail_last((int)OPTION(fail_thread_id));
	if ((unsigned)type >= CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE)
		return fail_last(CUPTI_ERROR_INVALID_PARAMETER);
	fake_state.thread_ids = type;
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
	CHECKS_FIRST(type);
	THEN_DRIVER;
	*type = (CUpti_ActivityThreadIdType)fake_state.thread_ids;
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiGetLastError(void)
{
	int error = last_error;

	fake_called(__func__);
	if (fake_profile.no_driver == UNKNOWN_RESULT && !fake_profile.silent)
		last_error = 0;
	return error == UNKNOWN_RESULT && !fake_profile.silent ? CUPTI_SUCCESS : error;
}

/* ---- attributes ---- */

static struct {
	uint8_t size;
	_Atomic uint64_t value;
} attributes[] = {
	[0] = { 8, 3200000 }, [1] = { 8, 8388608 }, [2] = { 8, 250 }, [5] = { 1, 0 },
	[6] = { 8, 3 },       [8] = { 1, 0 },       [9] = { 1, 0 },   [10] = { 8, 16777216 },
};

static int check_attribute(unsigned attribute, const size_t *size)
{
	if (attribute >= sizeof(attributes) / sizeof(attributes[0]) ||
	    !attributes[attribute].size || (attribute == 10 && fake_version() < 27))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*size < attributes[attribute].size)
		return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
	return 0;
}

SHOWN CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t *size,
					    void *value)
{
	uint64_t found;
	int wrong;

	CHECKS_FIRST(size && value);
	THEN_DRIVER;
	wrong = check_attribute(attribute, size);
	if (wrong)
		return fail_last(wrong);
	found = attribute == 9   ? fake_state.per_thread
		: attribute == 5 ? fake_state.zeroed
				 : attributes[attribute].value;
	*size = attributes[attribute].size;
	memcpy(value, &found, *size);
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *size,
					    void *value)
{
	uint64_t given = 0;
	int wrong;

	CHECKS_FIRST(size && value);
	THEN_DRIVER;
	if (OPTION(fail_attribute))
		return fail_last((int)OPTION(fail_attribute));
	wrong = check_attribute(attribute, size);
	if (wrong)
		return fail_last(wrong);
	memcpy(&given, value, attributes[attribute].size);
	attributes[attribute].value = given;
	if (attribute == 5)
		fake_state.zeroed = given != 0;
	if (attribute == 9 && !fake_counts.enables) /* later it is too late */
		fake_state.per_thread = given != 0;
	return CUPTI_SUCCESS;
}

/* ---- flushing, losses, the end ---- */

SHOWN CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	NEEDS_DRIVER;
	if (fake_is_inside()) /* the real one may well never return */
		return fail_last(CUPTI_ERROR_INVALID_OPERATION);
	if (OPTION(fail_flush))
		return fail_last((int)OPTION(fail_flush));
	fake_counts.flushing++;
	pause_us(OPTION(flush_us));
	CUptiResult result = fake_flush(flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

	fake_counts.flushing--;
	return result;
}

SHOWN CUptiResult cuptiActivityFlushPeriod(uint32_t ms)
{
	NEEDS_DRIVER;
	fake_state.flush_period_ms = ms;
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
						    size_t *dropped)
{
	CHECKS_FIRST(dropped);
	if (fake_profile.version == 22)
		THEN_DRIVER;
	if (OPTION(fail_dropped))
		return fail_last((int)OPTION(fail_dropped));
	*dropped = atomic_exchange(&fake_counts.unasked, 0);
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiFinalize(void)
{
	unsigned i;

	fake_called(__func__);
	if (fake_profile.silent && !fake_has_driver())
		return CUPTI_ERROR_UNKNOWN;
	fake_counts.finalizes++;
	if (OPTION(finalize_crashes))
		abort();
	for (i = 0; i < KINDS; i++)
		fake_state.enabled[i] = false;
	fake_state.subscribed = false;
	fake_state.callback = NULL;
	fake_watch_driver(false);
	return CUPTI_SUCCESS;
}

/* ---- external correlation ---- */

SHOWN CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
							 uint64_t id)
{
	NEEDS_DRIVER;
	return fail_last(fake_push_external(kind, id));
}

SHOWN CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
							uint64_t *id)
{
	NEEDS_DRIVER;
	return fail_last(fake_pop_external(kind, id));
}

/* ---- subscribers ---- */

static int subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *data,
		     int api)
{
	if (!handle)
		return CUPTI_ERROR_INVALID_PARAMETER;
	/* where several may be, all are to use the interface of the first */
	if (OPTION(mixed) && OPTION(mixed) != api)
		return fail_last(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	if (OPTION(fail_subscribe))
		return fail_last((int)OPTION(fail_subscribe));
	if (atomic_exchange(&fake_state.subscribed, true))
		return fail_last(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	fake_state.callback_data = data;
	fake_state.callback = callback;
	fake_watch_driver(true);
	*handle = (CUpti_SubscriberHandle)(void *)&the_subscriber;
	snprintf(subscriber_name, sizeof(subscriber_name), "CUPTI");
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
				 void *data)
{
	NEEDS_DRIVER;
	return subscribe(handle, callback, data, 1);
}

#if FAKE_PROFILE >= 1300
static void tell_old_name(const CUpti_SubscriberParams *p)
{
	if (p->oldSubscriberName && p->oldSubscriberSize)
		snprintf(p->oldSubscriberName, p->oldSubscriberSize, "%s",
			 OPTION(fail_subscribe) ? "Nsight Systems" : subscriber_name);
}

SHOWN CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
				    void *data, CUpti_SubscriberParams *p)
{
	int rc;

	NEEDS_DRIVER;
	if (p && p->structSize < CUpti_SubscriberParams_STRUCT_SIZE)
		return CUPTI_ERROR_INVALID_PARAMETER;
	rc = subscribe(handle, callback, data, 2);
	if (rc == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && p)
		tell_old_name(p);
	if (!rc && p && p->subscriberName)
		snprintf(subscriber_name, sizeof(subscriber_name), "CUPTI for %.53s",
			 p->subscriberName);
	return rc;
}
#endif

static bool is_ours(CUpti_SubscriberHandle handle)
{
	return (void *)handle == &the_subscriber && fake_state.subscribed;
}

SHOWN CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	CHECKS_FIRST(is_ours(handle));
	fake_state.callback = NULL;
	memset((void *)fake_state.wanted, 0, sizeof(fake_state.wanted));
	fake_state.subscribed = false;
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle handle,
				      CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	CHECKS_FIRST(is_ours(handle) && domain < CUPTI_CB_DOMAIN_SIZE && cbid < 1024);
	fake_state.wanted[domain][cbid] = on;
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle handle,
				    CUpti_CallbackDomain domain)
{
	unsigned i;

	CHECKS_FIRST(is_ours(handle) && domain < CUPTI_CB_DOMAIN_SIZE);
	for (i = 0; i < 1024; i++)
		fake_state.wanted[domain][i] = on;
	return CUPTI_SUCCESS;
}

/* ---- of 13.2 and later ---- */

#if FAKE_PROFILE >= 1305
CUptiResult cuptiActivityGetEnabledKinds(CUpti_SubscriberHandle handle, CUpti_ActivityKind *out,
					 uint32_t *size, uint32_t *count);
CUptiResult cuptiIsTracingSessionRunning(uint8_t *running);

SHOWN CUptiResult cuptiActivityGetEnabledKinds(CUpti_SubscriberHandle handle,
					       CUpti_ActivityKind *out, uint32_t *size,
					       uint32_t *count)
{
	uint32_t i, room = out && size ? *size : 0;

	NEEDS_DRIVER;
	if (!count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*count = 0;
	for (i = 0; i < KINDS; i++) {
		if (!fake_state.enabled[i])
			continue;
		if (*count < room)
			out[*count] = (CUpti_ActivityKind)i;
		++*count;
	}
	return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiIsTracingSessionRunning(uint8_t *running)
{
	unsigned i;

	NEEDS_DRIVER;
	if (!running)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*running = fake_state.subscribed;
	for (i = 0; i < KINDS; i++)
		*running |= fake_state.enabled[i];
	return CUPTI_SUCCESS;
}
#endif

/* ---- NVTX by way of CUPTI: refused, as without a driver ---- */

#define REFUSES(name)                                                                              \
	int name(void *table);                                                                     \
	SHOWN int name(void *table)                                                                \
	{                                                                                          \
		return 0;                                                                          \
	}
REFUSES(InitializeInjectionNvtx)
REFUSES(InitializeInjectionNvtx2)

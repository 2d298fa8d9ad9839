/* SPDX-License-Identifier: Apache-2.0 */
/* Rows about errors, subscribers, load, and what callbacks may not do. */
#include "tests/fake/fake_guard.h"
#include "tests/fake/check_standin.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void nothing(uint8_t **buffer, size_t *size, size_t *most)
{
	*buffer = NULL;
	*size = *most = 0;
}

static void take(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
}

void row_errors(void)
{
	const char *text = NULL;
	uint8_t value = 1;
	size_t size = 1;

	fake.set("fail_enable", 35);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)10), 35);
	fake.set("fail_kind", 38);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)10), 0);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)38), 35);
	fake.set("fail_register", 999);
	CHECK_EQ(cupti.cuptiActivityRegisterCallbacks(nothing, take), 999);
	fake.set("fail_attribute", 1);
	CHECK_EQ(cupti.cuptiActivitySetAttribute((CUpti_ActivityAttribute)9, &size, &value), 1);
	fake.set("fail_flush", 15);
	CHECK_EQ(cupti.cuptiActivityFlushAll(0), 15);
	fake.set("fail_thread_id", 999);
	CHECK_EQ(cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), 999);
	fake.set("fail_dropped", 15);
	CHECK_EQ(cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &size), 15);
	fake.set("fail_next", 35);
	CHECK_EQ(cupti.cuptiActivityGetNextRecord(&value, 1, &(CUpti_Activity *){ NULL }), 35);
	CHECK_EQ(cupti.cuptiGetResultString((CUptiResult)60, &text), profile == 1400 ? 0 : 1);
	CHECK(!fake.set("no such option", 1));
	CHECK_EQ(fake.get("fail_flush"), 15);
	CHECK_EQ(fake.calls("cuptiActivityEnable"), 3);
	fake.set("driver", 0);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)10), profile == 1204 ? 15 : 999);
}

void row_kinds_refused(void)
{
	unsigned newest = profile == 1204 ? 52 : profile == 1300 ? 55 : profile == 1305 ? 59 : 60;

	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)0), CUPTI_ERROR_INVALID_KIND);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)newest), 0);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)(newest + 1)),
		 CUPTI_ERROR_INVALID_KIND);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)6), 38);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)27), CUPTI_ERROR_INVALID_KIND);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)10), 0);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)3), CUPTI_ERROR_NOT_COMPATIBLE);
	cupti.cuptiActivityDisable((CUpti_ActivityKind)10);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)3), 0);
	CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)10), CUPTI_ERROR_NOT_COMPATIBLE);
}

/* ---- subscribers ---- */

void row_one_subscriber(void)
{
	CUpti_SubscriberHandle one, two;
	CUpti_SubscriberParams params = { .structSize = CUpti_SubscriberParams_STRUCT_SIZE };
	char name[64] = "";

	CHECK_EQ(cupti.cuptiSubscribe(&one, NULL, NULL), 0);
	CHECK_EQ(cupti.cuptiSubscribe(&two, NULL, NULL), 39);
	CHECK_EQ(cupti.cuptiUnsubscribe(one), 0);
	CHECK_EQ(cupti.cuptiUnsubscribe(one), CUPTI_ERROR_INVALID_PARAMETER);
	CHECK_EQ(cupti.cuptiSubscribe(&two, NULL, NULL), 0);
	cupti.cuptiUnsubscribe(two);
	CHECK_EQ(cupti.subscribe_v2 != NULL, profile >= 1300);
	if (!cupti.subscribe_v2)
		return;
	params.subscriberName = "Kineto";
	CHECK_EQ(cupti.subscribe_v2(&one, NULL, NULL, &params), 0);
	params.oldSubscriberName = name;
	params.oldSubscriberSize = sizeof(name);
	CHECK_EQ(cupti.subscribe_v2(&two, NULL, NULL, &params), 39);
	CHECK(!strcmp(name, "CUPTI for Kineto"));
	cupti.cuptiUnsubscribe(one);
	fake.set("mixed", 2);
	CHECK_EQ(cupti.cuptiSubscribe(&two, NULL, NULL), 39);
	CHECK_EQ(cupti.subscribe_v2(&two, NULL, NULL, &params), 0);
	cupti.cuptiUnsubscribe(two);
	fake.set("mixed", 0);
	fake.set("fail_subscribe", 39);
	CHECK_EQ(cupti.subscribe_v2(&two, NULL, NULL, &params), 39);
	CHECK(!strcmp(name, "Nsight Systems"));
}

static unsigned entered, left;

static void on_call(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
		    const void *what)
{
	const CUpti_CallbackData *d = what;

	CHECK(data == &entered && cbid == 308 && domain == CUPTI_CB_DOMAIN_DRIVER_API);
	CHECK(!strcmp(d->functionName, "cuProfilerStart"));
	entered += d->callbackSite == CUPTI_API_ENTER;
	left += d->callbackSite == CUPTI_API_EXIT;
}

void row_subscriber_is_called(void)
{
	CUpti_SubscriberHandle one;

	CHECK_EQ(cupti.cuptiSubscribe(&one, on_call, &entered), 0);
	CHECK_EQ(cupti.cuptiEnableCallback(1, one, CUPTI_CB_DOMAIN_DRIVER_API, 308), 0);
	cudaProfilerStart();
	cudaProfilerStop();
	CHECK_EQ(entered, 1);
	CHECK_EQ(left, 1);
	cupti.cuptiUnsubscribe(one);
	cudaProfilerStart();
	CHECK_EQ(entered, 1);
}

/* ---- load ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

enum { LAUNCHES = 40000, THREADS = 8 };

static void *flood(void *unused)
{
	struct CUstream_st *stream;

	cudaSetDevice(0);
	cuStreamCreate(&stream, 1);
	launch(LAUNCHES);
	return NULL;
}

void row_load(void)
{
	pthread_t threads[THREADS];
	uint64_t begin = now_ns(), ns;
	unsigned i;

	client.bytes = 1 << 20;
	seen = NULL; /* only counted */
	fake.set("poison_names", 0);
	OPEN(10, 4, 5);
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, flood, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ns = now_ns() - begin;
	cupti.cuptiActivityFlushAll(1);
	CHECK_EQ(totals().handed_over, totals().made);
	CHECK_EQ(fake.made(10), LAUNCHES * THREADS);
	printf("# %s: %.2f M records/s from %d threads\n",
	       profile == 1204   ? "12"
	       : profile == 1300 ? "13"
	       : profile == 1305 ? "13.5"
				 : "14",
	       (double)totals().made * 1e3 / (double)ns, THREADS);
}

/* ---- what the guard sees; only where it is preloaded ---- */

void row_guarded(void)
{
	uint64_t (*count)(int, int);
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	void *symbol = dlsym(RTLD_DEFAULT, "fake_guard_count");

	if (!symbol) {
		printf("# no guard is preloaded\n");
		return;
	}
	memcpy(&count, &symbol, sizeof(count));
	client.lock = client.allocate = true;
	OPEN(10);
	launch(1);
	CHECK_EQ(count(GUARD_request, DID_lock), 1);
	CHECK_EQ(count(GUARD_request, DID_malloc), 1); /* the buffer */
	wait_ms(5);
	cupti.cuptiActivityFlushAll(0);
	CHECK_EQ(count(GUARD_complete, DID_malloc), 1);
	CHECK_EQ(count(GUARD_complete, DID_free), 1);
	CHECK_EQ(count(GUARD_complete, DID_lock), 0);
	CHECK_EQ(totals().faults, 0);
	pthread_mutex_lock(&mutex);
	cupti.cuptiActivityFlushAll(0);
	pthread_mutex_unlock(&mutex);
	CHECK_EQ(totals().faults, 1);
	CHECK(fake.fault(0) && strstr(fake.fault(0), "mutex"));
}

/* ---- the books ---- */

void row_books_balance(void)
{
	struct fake_cupti_totals t;
	unsigned kind, i;

	client.bytes = 2048;
	fake.set("drop_every", 13);
	fake.set("shuffle", 1);
	fake.set("late_every", 3);
	fake.set("late_ms", 1);
	OPEN(10, 4, 5, 1, 2);
	for (i = 0; i < 300; i++) {
		launch(3);
		cudaMemcpyAsync(NULL, NULL, 10, 1, NULL);
		cudaMemsetAsync(NULL, 0, 10, NULL);
		if (i % 50 == 0)
			cupti.cuptiActivityFlushAll(0);
	}
	wait_ms(20);
	cupti.cuptiActivityFlushAll(1);
	wait_ms(20);
	t = totals();
	CHECK_EQ(t.lent, 0);
	CHECK_EQ(t.made, t.handed_over + t.dropped);
	CHECK_EQ(t.handed_over, seen_count);
	for (kind = 0; kind < 60; kind++)
		CHECK_EQ(fake.handed_over(kind), count_kind(kind));
	CHECK_EQ(fake_cuda_count(FACT_KERNEL), 900);
	CHECK_EQ(fake.made(10), 900);
}

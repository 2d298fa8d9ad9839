/* SPDX-License-Identifier: Apache-2.0 */
/* Calls, watchers, and the life of the stub driver; its functions are in fake_cuda_api.c. */
#include "tests/fake/fake_cuda_inside.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WATCHERS = 4, CBIDS = 1024 };

static _Atomic(fake_watch) watchers[WATCHERS];
static _Atomic unsigned inside; /* threads that are telling a fact */
static _Atomic uint32_t last_correlation;
static _Atomic uint64_t counts[32], calls[3][CBIDS];
static _Atomic bool tracing;

static _Thread_local struct {
	uint32_t depth, correlation;
	unsigned inside;
	struct CUctx_st *context;
} mine;

uint64_t fake_cuda_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- watchers ---- */

bool fake_cuda_watch(fake_watch watch, bool on)
{
	unsigned i;

	for (i = 0; i < WATCHERS; i++) {
		fake_watch was = on ? NULL : watch;

		if (!atomic_compare_exchange_strong(&watchers[i], &was, on ? watch : NULL))
			continue;
		while (!on && atomic_load(&inside) > mine.inside)
			; /* a fact is under way on another thread */
		return true;
	}
	return false;
}

void fake_cuda_tell(const struct fake_fact *told)
{
	struct fake_fact fact = *told;
	unsigned i;

	atomic_fetch_add_explicit(&counts[fact.type], 1, memory_order_relaxed);
	if (!fact.correlation)
		fact.correlation = mine.correlation;
	if (!fact.context && fact.type >= FACT_KERNEL && mine.context) {
		fact.context = mine.context->id;
		fact.device = mine.context->device;
	}
	atomic_fetch_add(&inside, 1);
	mine.inside++;
	for (i = 0; i < WATCHERS; i++) {
		fake_watch watch = atomic_load(&watchers[i]);

		if (watch)
			watch(&fact);
	}
	mine.inside--;
	atomic_fetch_sub(&inside, 1);
}

void fake_cuda_tracing(bool on)
{
	tracing = on;
}

bool fake_cuda_is_traced(void)
{
	return tracing;
}

uint64_t fake_cuda_count(unsigned type)
{
	return type < 32 ? counts[type] : 0;
}

uint64_t fake_cuda_calls(uint32_t domain, uint32_t cbid)
{
	return domain < 3 && cbid < CBIDS ? calls[domain][cbid] : 0;
}

/* ---- calls ---- */

uint64_t fake_cuda_enter(uint32_t domain, uint32_t cbid)
{
	struct fake_fact fact = { .type = FACT_ENTER, .domain = domain, .cbid = cbid };

	if (!mine.depth)
		mine.correlation = ++last_correlation;
	if (domain < 3 && cbid < CBIDS)
		calls[domain][cbid]++;
	fact.depth = mine.depth++;
	fact.correlation = mine.correlation;
	fact.begin_ns = fake_cuda_now();
	fake_cuda_tell(&fact);
	return fact.begin_ns;
}

int fake_cuda_leave(uint32_t domain, uint32_t cbid, uint64_t begin_ns, int result)
{
	struct fake_fact fact = { .type = FACT_LEAVE,
				  .domain = domain,
				  .cbid = cbid,
				  .begin_ns = begin_ns,
				  .result = (uint32_t)result };

	fact.depth = --mine.depth;
	fact.correlation = mine.correlation;
	fact.end_ns = fake_cuda_now();
	fake_cuda_tell(&fact);
	if (!mine.depth)
		mine.correlation = 0;
	return result;
}

/* ---- contexts ---- */

struct CUctx_st *fake_cuda_context(void)
{
	if (!mine.context) /* as the runtime does: the primary one of device 0 */
		mine.context = fake_cuda_primary(0);
	return mine.context;
}

void fake_cuda_set_context(struct CUctx_st *context)
{
	mine.context = context;
}

uint32_t fake_cuda_context_id(const struct CUctx_st *context)
{
	return context->id;
}

uint32_t fake_cuda_stream_id(const struct CUctx_st *context, const struct CUstream_st *stream)
{
	return stream ? stream->id : context->null.id;
}

/* ---- the library that the environment names ---- */

static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*initialize)(void);
	void *handle, *symbol;

	if (!path || !*path)
		return;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	symbol = handle ? dlsym(handle, "InitializeInjection") : NULL;
	if (!symbol) {
		if (handle)
			dlclose(handle);
		return;
	}
	memcpy(&initialize, &symbol, sizeof(initialize));
	if (!initialize())
		dlclose(handle);
}

static pthread_once_t injected = PTHREAD_ONCE_INIT;
static _Atomic bool ready;

bool fake_cuda_ready(void)
{
	return ready;
}

int cuInit(unsigned flags)
{
	const char *fails = getenv("FAKE_CUDA_INIT_FAILS");
	uint64_t begin;

	pthread_once(&injected, inject);
	if (fails)
		return atoi(fails);
	ready = true;
	begin = fake_cuda_enter(FAKE_DRIVER, 1);
	return fake_cuda_leave(FAKE_DRIVER, 1, begin, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What fake_train does and tells as tests/gpu/known.cu does, on a GPU. */
#include "tests/fake/fake_train.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Of all threads: what no fact counts. */
static _Atomic uint64_t lazies_done, externals_done, pools_done, driven, driven_ex, captured;

void tell_fact(const struct worker *w, enum fake_fact_type type, uint64_t number)
{
	struct fake_fact f = { .type = type, .number = number, .bytes = 1234, .stream = 7 };
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	f.begin_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	f.end_ns = f.begin_ns + 1000;
	f.address = type == FACT_POOL ? 0x5000 : 0;
	f.name = type == FACT_JIT ? "/cache/of/kernels" : NULL;
	fake_cuda_tell(&f);
}

void begin_as_known(struct worker *w)
{
	static const char *const lazies[] = { "_Z4lazyILi0EEvPi", "_Z4lazyILi1EEvPi",
					      "_Z4lazyILi2EEvPi", "_Z4lazyILi3EEvPi" };
	long i;

	for (i = 0; i < o.jits; i++)
		tell_fact(w, FACT_JIT, COMPILED);
	for (i = 0; i < o.lazies && w->number == 0; i++) {
		tell_fact(w, FACT_OVERHEAD, LAZY_LOADING);
		cudaLaunchKernel(lazies[i % 4], 1, 1, 1, 32, 1, 1, NULL, 0, stream(w, i));
		lazies_done++;
	}
}

void capture_as_known(struct worker *w)
{
	void *device = (void *)0x7f0000001000;
	struct CUgraph_st *graph;
	long i;

	cudaStreamBeginCapture(w->streams[0], 1);
	for (i = 0; i < 3; i++, captured++)
		launch(w, i);
	cudaMemcpyAsync(device, device, 4096, 3, w->streams[0]);
	cudaMemsetAsync(device, 0, 4096, w->streams[0]);
	cudaStreamEndCapture(w->streams[0], &graph);
	cuGraphInstantiateWithFlags(&w->exec, graph, 0);
}

static void launch_with_ids(struct worker *w)
{
	void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
	void *push_symbol = cupti ? dlsym(cupti, "cuptiActivityPushExternalCorrelationId") : NULL;
	void *pop_symbol = cupti ? dlsym(cupti, "cuptiActivityPopExternalCorrelationId") : NULL;
	int (*push)(int, uint64_t), (*pop)(int, uint64_t *);
	uint64_t id;
	long i;

	if (!push_symbol || !pop_symbol)
		return;
	memcpy(&push, &push_symbol, sizeof(push));
	memcpy(&pop, &pop_symbol, sizeof(pop));
	for (i = 0; i < o.externals; i++) {
		id = 1000000u * (uint64_t)(w->number + 1) + w->externals++;
		push(3, id);
		cudaLaunchKernel("under an id", 1, 1, 1, 32, 1, 1, NULL, 0, stream(w, i));
		pop(3, &id);
		externals_done++;
	}
}

static void use_pools(struct worker *w)
{
	uint64_t address;
	long i;

	for (i = 0; i < o.pools; i++) {
		tell_fact(w, FACT_POOL, MADE);
		cuMemAllocAsync(&address, ALLOC_BYTES, stream(w, 0));
		cuMemFreeAsync(address, stream(w, 0));
		tell_fact(w, FACT_POOL, TRIMMED);
		tell_fact(w, FACT_POOL, DESTROYED);
		pools_done++;
	}
}

static void drive(struct worker *w)
{
	struct CUlaunchConfig_st config = { .gridDimX = 1,
					    .gridDimY = 1,
					    .gridDimZ = 1,
					    .blockDimX = 32,
					    .blockDimY = 1,
					    .blockDimZ = 1,
					    .hStream = stream(w, 0) };
	long i;

	for (i = 0; i < o.drives; i++)
		cuLaunchKernel("driver_spin", 1, 1, 1, 32, 1, 1, 0, stream(w, i), NULL, NULL);
	for (i = 0; i < o.drives_ex; i++)
		cuLaunchKernelEx(&config, "driver_spin", NULL, NULL);
	driven += (uint64_t)o.drives;
	driven_ex += (uint64_t)o.drives_ex;
}

void step_as_known(struct worker *w, long step)
{
	long i;

	use_pools(w);
	if (step >= o.drives_from)
		drive(w);
	if (o.externals)
		launch_with_ids(w);
	for (i = 0; i < o.expands; i++)
		tell_fact(w, FACT_EXPAND, 2);
}

void tell_as_known(uint64_t before_ns, uint64_t after_ns)
{
#define COUNT(type) fake_cuda_count(FACT_##type)
	const struct {
		const char *name;
		uint64_t count;
	} told[] = {
		{ "kernels", COUNT(KERNEL) },
		{ "launches", fake_cuda_calls(FAKE_RUNTIME, 211) - captured },
		{ "captured", captured },
		{ "copies", COUNT(COPY) + COUNT(PEER) },
		{ "sets", COUNT(SET) },
		{ "graphs", COUNT(GRAPH) },
		{ "peers", COUNT(PEER) },
		{ "allocs", COUNT(MEMORY) / 2 },
		{ "pools", pools_done },
		{ "drives", driven },
		{ "drives_ex", driven_ex },
		{ "externals", externals_done },
		{ "expands", COUNT(EXPAND) },
		{ "jits", COUNT(JIT) },
		{ "lazies", lazies_done },
		{ "syncs", COUNT(SYNC) },
		{ "events", COUNT(EVENT) },
		{ "before_ns", before_ns },
		{ "after_ns", after_ns },
	};
	size_t i;

	printf("{\"steps\": %ld", o.steps);
	for (i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		printf(", \"%s\": %llu", told[i].name, (unsigned long long)told[i].count);
	puts("}");
	fflush(stdout);
#undef COUNT
}

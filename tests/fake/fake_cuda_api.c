/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the stub driver.  A context has streams as the real one announces them: the
 * default stream is 7, some are internal, the first of the program's is 14.  Streams, contexts,
 * events and graphs live until the process ends.
 */
#include "tests/fake/fake_cuda_inside.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES = 16, FIRST_STREAM = 7, INTERNAL_STREAMS = 7, NODES = 512 };
enum {
	OK = 0,
	INVALID = 1,
	OUT_OF_MEMORY = 2,
	UNINITIALIZED = 3,
	NO_DEVICE = 101,
	NOT_READY = 600
};
#define LATENCY_NS  UINT64_C(3000)
#define DURATION_NS UINT64_C(4000)

struct CUgraph_st {
	uint32_t id, count;
	bool untraced;
	struct {
		enum fake_fact_type type;
		uint64_t id;
		struct fake_work work;
	} nodes[NODES];
};
struct CUgraphExec_st {
	struct CUgraph_st graph;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct CUctx_st *) primaries[DEVICES]; /* written under the lock */
static _Atomic uint32_t last_graph, last_event;
static _Atomic uint64_t last_node, last_seq, next_address = UINT64_C(0x7f0000000000);
static _Thread_local struct fake_work next_work;

/* Zeroed, kept, and found by a leak checker. */
static void *make(size_t size)
{
	static struct kept {
		struct kept *next;
		max_align_t room[];
	} * _Atomic all;
	struct kept *k = calloc(1, sizeof(*k) + size);

	if (!k)
		return NULL;
	k->next = all;
	while (!atomic_compare_exchange_weak(&all, &k->next, k))
		;
	return k->room;
}

/* A function's frame: what it does stands between the two. */
#define BEGIN(number)                                                                              \
	const uint32_t cbid = (number);                                                            \
	uint64_t begin_ns;                                                                         \
	if (!fake_cuda_ready())                                                                    \
		return UNINITIALIZED;                                                              \
	begin_ns = fake_cuda_enter(FAKE_DRIVER, cbid)
#define END(result) return fake_cuda_leave(FAKE_DRIVER, cbid, begin_ns, (result))

static uint32_t device_count(void)
{
	const char *text = getenv("FAKE_CUDA_DEVICES");
	int count = text ? atoi(text) : 1;

	return count < 0 ? 0 : count > DEVICES ? DEVICES : (uint32_t)count;
}

static const char *device_name(void)
{
	const char *name = getenv("FAKE_CUDA_NAME");

	return name ? name : "Stand-in GPU";
}

/* ---- contexts and streams ---- */

static void tell_stream(const struct CUstream_st *s)
{
	struct fake_fact fact = { .type = FACT_STREAM,
				  .device = s->context->device,
				  .context = s->context->id,
				  .stream = s->id,
				  .number = s->flag };

	fake_cuda_tell(&fact);
}

static struct CUstream_st *stream_add(struct CUctx_st *c, uint32_t flag)
{
	struct CUstream_st *s = make(sizeof(*s));

	if (!s)
		return NULL;
	s->context = c;
	s->flag = flag;
	pthread_mutex_lock(&lock);
	s->id = c->streams++;
	s->next = c->null.next; /* who walks the list holds no lock, and nothing leaves it */
	c->null.next = s;
	pthread_mutex_unlock(&lock);
	tell_stream(s);
	return s;
}

static void announce(struct CUctx_st *c)
{
	struct fake_fact fact = {
		.type = FACT_CONTEXT, .device = c->device, .context = c->id, .stream = c->null.id
	};
	unsigned i;

	fake_cuda_tell(&fact);
	tell_stream(&c->null);
	for (i = 1; i < INTERNAL_STREAMS; i++)
		stream_add(c, 2);
}

struct CUctx_st *fake_cuda_primary(uint32_t device)
{
	struct CUctx_st *c, *made = NULL;

	if (device >= device_count())
		return NULL;
	pthread_mutex_lock(&lock);
	c = primaries[device];
	if (!c)
		c = made = make(sizeof(*c));
	if (made) {
		c->id = device + 1;
		c->device = device;
		c->null.context = c;
		c->null.id = FIRST_STREAM;
		c->null.flag = 3;
		c->streams = FIRST_STREAM + 1;
		primaries[device] = c;
	}
	pthread_mutex_unlock(&lock);
	if (made)
		announce(made);
	return c;
}

static struct CUstream_st *stream_of(struct CUstream_st *stream)
{
	struct CUctx_st *c = stream ? NULL : fake_cuda_context();

	return stream ? stream : &c->null;
}

void fake_cuda_list(fake_watch watch)
{
	struct fake_fact fact = { .type = FACT_DEVICE, .name = device_name() };
	struct CUstream_st *s;
	uint32_t i;

	for (i = 0; i < device_count(); i++) {
		fact.device = i;
		watch(&fact);
	}
	for (i = 0; i < DEVICES; i++) {
		struct CUctx_st *c = primaries[i];

		if (!c)
			continue;
		fact = (struct fake_fact){
			.type = FACT_CONTEXT, .device = i, .context = c->id, .stream = c->null.id
		};
		watch(&fact);
		for (s = &c->null; s; s = s->next) {
			fact = (struct fake_fact){ .type = FACT_STREAM,
						   .device = i,
						   .context = c->id,
						   .stream = s->id,
						   .number = s->flag };
			watch(&fact);
		}
	}
}

int cuDriverGetVersion(int *version)
{
	BEGIN(2);
	*version = 13000;
	END(OK);
}

int cuDeviceGetCount(int *count)
{
	BEGIN(4);
	*count = (int)device_count();
	END(OK);
}

int cuDeviceGet(int *device, int ordinal)
{
	BEGIN(3);
	*device = ordinal;
	END(ordinal >= 0 && (uint32_t)ordinal < device_count() ? OK : NO_DEVICE);
}

int cuDeviceGetName(char *name, int length, int device)
{
	BEGIN(5);
	snprintf(name, (size_t)length, "%s", device_name());
	END(OK);
}

int cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device)
{
	BEGIN(386);
	*context = device < 0 ? NULL : fake_cuda_primary((uint32_t)device);
	END(*context ? OK : NO_DEVICE);
}

int cuCtxSetCurrent(struct CUctx_st *context)
{
	BEGIN(303);
	fake_cuda_set_context(context);
	END(OK);
}

int cuCtxGetCurrent(struct CUctx_st **context)
{
	BEGIN(304);
	*context = fake_cuda_context();
	END(OK);
}

int cuStreamCreate(struct CUstream_st **stream, unsigned flags)
{
	BEGIN(124);
	*stream = fake_cuda_context() ? stream_add(fake_cuda_context(), flags ? 2 : 1) : NULL;
	END(*stream ? OK : OUT_OF_MEMORY);
}

/* ---- waiting ---- */

static void wait_until(uint64_t then_ns)
{
	uint64_t now = fake_cuda_now();
	struct timespec t;

	while (now < then_ns) {
		t.tv_sec = (time_t)((then_ns - now) / 1000000000);
		t.tv_nsec = (long)((then_ns - now) % 1000000000);
		nanosleep(&t, NULL);
		now = fake_cuda_now();
	}
}

static void tell_wait(enum fake_fact_type fact_type, uint64_t begin_ns, unsigned type,
		      uint32_t stream, uint32_t event, uint64_t seq, uint32_t result)
{
	struct fake_fact fact = { .type = fact_type,
				  .result = result,
				  .begin_ns = begin_ns,
				  .end_ns = fake_cuda_now(),
				  .number = type,
				  .stream = stream,
				  .event = event,
				  .seq = seq };

	fake_cuda_tell(&fact);
}

static void tell_sync(uint64_t begin_ns, unsigned type, uint32_t stream, uint32_t event,
		      uint64_t seq)
{
	tell_wait(FACT_SYNC, begin_ns, type, stream, event, seq, OK);
}

int cuStreamSynchronize(struct CUstream_st *stream)
{
	BEGIN(126);
	stream = stream_of(stream);
	wait_until(stream->free_ns);
	tell_sync(begin_ns, 3, stream->id, FAKE_NONE, 0);
	END(OK);
}

int cuStreamQuery(struct CUstream_st *stream)
{
	int result;
	BEGIN(125);

	stream = stream_of(stream);
	result = stream->free_ns <= fake_cuda_now() ? OK : NOT_READY;
	tell_wait(FACT_QUERY, begin_ns, 3, stream->id, FAKE_NONE, 0, (uint32_t)result);
	END(result);
}

int cuCtxSynchronize(void)
{
	struct CUstream_st *s;
	BEGIN(17);

	for (s = &fake_cuda_context()->null; s; s = s->next)
		wait_until(s->free_ns);
	tell_sync(begin_ns, 4, FAKE_NONE, FAKE_NONE, 0);
	END(OK);
}

int cuEventCreate(struct CUevent_st **event, unsigned flags)
{
	BEGIN(118);
	*event = make(sizeof(**event));
	if (*event)
		(*event)->id = ++last_event;
	END(*event ? OK : OUT_OF_MEMORY);
}

int cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
	struct fake_fact fact = { .type = FACT_EVENT };
	BEGIN(119);

	stream = stream_of(stream);
	event->seq = fact.seq = ++last_seq;
	event->done_ns = stream->free_ns;
	fact.stream = stream->id;
	fact.event = event->id;
	fact.begin_ns = fact.end_ns = event->done_ns;
	fake_cuda_tell(&fact);
	END(OK);
}

int cuEventQuery(struct CUevent_st *event)
{
	int result;
	BEGIN(120);

	result = event->done_ns <= fake_cuda_now() ? OK : NOT_READY;
	tell_wait(FACT_QUERY, begin_ns, 1, FAKE_NONE, event->id, event->seq, (uint32_t)result);
	END(result);
}

int cuEventSynchronize(struct CUevent_st *event)
{
	BEGIN(121);
	wait_until(event->done_ns);
	tell_sync(begin_ns, 1, FAKE_NONE, event->id, event->seq);
	END(OK);
}

int cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags)
{
	BEGIN(295);
	stream = stream_of(stream);
	if (stream->free_ns < event->done_ns)
		stream->free_ns = event->done_ns;
	tell_sync(begin_ns, 2, stream->id, event->id, event->seq);
	END(OK);
}

/* ---- work ---- */

void fake_cuda_next(const struct fake_work *work)
{
	next_work = *work;
}

static void take_work(const struct fake_work *w, struct fake_fact *fact)
{
	if (w->name)
		fact->name = w->name;
	if (w->bytes)
		fact->bytes = w->bytes;
	if (w->grid[0])
		memcpy(fact->grid, w->grid, sizeof(fact->grid));
	if (w->block[0])
		memcpy(fact->block, w->block, sizeof(fact->block));
	fact->registers = w->registers;
	fact->static_shared = w->static_shared;
	if (w->dynamic_shared)
		fact->dynamic_shared = w->dynamic_shared;
	fact->local = w->local;
}

/* A queue takes so much work; who launches more waits, and CUPTI calls that overhead. */
static void wait_for_room(struct CUstream_st *stream)
{
	uint64_t oldest_ns = stream->queue[stream->queued % QUEUE];
	struct fake_fact fact = { .type = FACT_OVERHEAD,
				  .number = 6 << 16,
				  .begin_ns = fake_cuda_now(),
				  .stream = stream->id };

	if (oldest_ns <= fact.begin_ns)
		return;
	wait_until(oldest_ns);
	fact.end_ns = fake_cuda_now();
	fake_cuda_tell(&fact);
}

static void put_work(struct CUstream_st *stream, const struct fake_work *w, struct fake_fact *fact)
{
	uint64_t free_ns = stream->free_ns, begin, end;

	take_work(w, fact);
	wait_for_room(stream);
	do {
		begin = fake_cuda_now() + LATENCY_NS;
		if (begin < free_ns)
			begin = free_ns;
		end = begin + (w->duration_ns ? w->duration_ns : DURATION_NS);
	} while (!atomic_compare_exchange_weak(&stream->free_ns, &free_ns, end));
	stream->queue[stream->queued++ % QUEUE] = end;
	fact->begin_ns = begin;
	fact->end_ns = end;
	fact->stream = stream->id;
	fact->context = stream->context->id;
	fact->device = stream->context->device;
	fake_cuda_tell(fact);
}

/* The node that the work becomes. */
static void capture(struct CUgraph_st *graph, const struct fake_work *w,
		    const struct fake_fact *fact)
{
	struct fake_work node = *w;

	node.name = w->name ? w->name : fact->name;
	node.bytes = w->bytes ? w->bytes : fact->bytes;
	graph->nodes[graph->count].type = fact->type;
	graph->nodes[graph->count].work = node;
	graph->nodes[graph->count].id = ++last_node;
	graph->count += graph->count + 1 < NODES;
}

void fake_cuda_work(struct CUstream_st *stream, struct fake_fact *fact)
{
	struct fake_work w = next_work;

	memset(&next_work, 0, sizeof(next_work));
	stream = stream_of(stream);
	if (stream->capture)
		capture(stream->capture, &w, fact);
	else
		put_work(stream, &w, fact);
}

int cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		   unsigned by, unsigned bz, unsigned shared, struct CUstream_st *stream,
		   void **params, void **extra)
{
	struct fake_fact fact = { .type = FACT_KERNEL,
				  .name = function,
				  .grid = { gx, gy, gz },
				  .block = { bx, by, bz },
				  .dynamic_shared = shared };
	BEGIN(307);

	fake_cuda_work(stream, &fact);
	END(OK);
}

int cuLaunchKernelEx(const struct CUlaunchConfig_st *c, const char *function, void **params,
		     void **extra)
{
	struct fake_fact fact = { .type = FACT_KERNEL,
				  .name = function,
				  .grid = { c->gridDimX, c->gridDimY, c->gridDimZ },
				  .block = { c->blockDimX, c->blockDimY, c->blockDimZ },
				  .dynamic_shared = c->sharedMemBytes };
	BEGIN(652);

	fake_cuda_work(c->hStream, &fact);
	END(OK);
}

static void copy(struct CUstream_st *stream, unsigned kind, unsigned from, unsigned to,
		 size_t bytes)
{
	struct fake_fact fact = { .type = FACT_COPY,
				  .number = kind,
				  .from = from,
				  .to = to,
				  .bytes = bytes,
				  .async = true };

	fake_cuda_work(stream, &fact);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, struct CUstream_st *stream)
{
	BEGIN(277);
	copy(stream, 1, 2, 3, bytes);
	END(OK);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct CUstream_st *stream)
{
	BEGIN(279);
	copy(stream, 2, 3, 1, bytes);
	END(OK);
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, struct CUstream_st *stream)
{
	BEGIN(281);
	copy(stream, 8, 3, 3, bytes);
	END(OK);
}

int cuMemcpyPeerAsync(uint64_t to, struct CUctx_st *to_context, uint64_t from,
		      struct CUctx_st *from_context, size_t bytes, struct CUstream_st *stream)
{
	struct fake_fact fact = {
		.type = FACT_PEER, .number = 10, .from = 3, .to = 3, .bytes = bytes, .async = true
	};
	BEGIN(319);

	fact.from_device = from_context->device;
	fact.from_context = from_context->id;
	fact.to_device = to_context->device;
	fact.to_context = to_context->id;
	fake_cuda_work(stream, &fact);
	END(OK);
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, struct CUstream_st *stream)
{
	struct fake_fact fact = {
		.type = FACT_SET, .number = value, .to = 3, .bytes = bytes, .async = true
	};
	BEGIN(216);

	fake_cuda_work(stream, &fact);
	END(OK);
}

/* ---- memory ---- */

static void tell_memory(unsigned what, uint64_t address, uint64_t bytes, uint32_t stream,
			uint64_t pool)
{
	struct fake_fact fact = { .type = FACT_MEMORY,
				  .number = what,
				  .address = address,
				  .bytes = bytes,
				  .to = 3,
				  .stream = stream,
				  .pool = pool,
				  .async = pool != 0,
				  .begin_ns = fake_cuda_now() };

	fact.end_ns = fact.begin_ns;
	fake_cuda_tell(&fact);
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	BEGIN(243);
	fake_cuda_context();
	*address = atomic_fetch_add(&next_address, (bytes + 511) & ~UINT64_C(511));
	tell_memory(1, *address, bytes, FAKE_NONE, 0);
	END(OK);
}

int cuMemFree_v2(uint64_t address)
{
	BEGIN(245);
	tell_memory(2, address, 0, FAKE_NONE, 0);
	END(OK);
}

int cuMemAllocAsync(uint64_t *address, size_t bytes, struct CUstream_st *stream)
{
	BEGIN(598);
	*address = atomic_fetch_add(&next_address, (bytes + 511) & ~UINT64_C(511));
	tell_memory(1, *address, bytes, stream_of(stream)->id, 0x5000);
	END(OK);
}

int cuMemFreeAsync(uint64_t address, struct CUstream_st *stream)
{
	BEGIN(600);
	tell_memory(2, address, 0, stream_of(stream)->id, 0x5000);
	END(OK);
}

/* ---- graphs ---- */

int cuGraphCreate(struct CUgraph_st **graph, unsigned flags)
{
	BEGIN(501);
	*graph = make(sizeof(**graph));
	if (*graph)
		(*graph)->id = ++last_graph;
	END(*graph ? OK : OUT_OF_MEMORY);
}

int cuStreamBeginCapture_v2(struct CUstream_st *stream, int mode)
{
	BEGIN(539);
	stream = stream_of(stream);
	cuGraphCreate(&stream->capture, 0);
	END(stream->capture ? OK : OUT_OF_MEMORY);
}

int cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph)
{
	BEGIN(497);
	stream = stream_of(stream);
	*graph = stream->capture;
	stream->capture = NULL;
	END(*graph ? OK : INVALID);
}

void fake_cuda_node(struct CUgraph_st *graph, enum fake_fact_type type,
		    const struct fake_work *work)
{
	uint64_t begin_ns = fake_cuda_enter(FAKE_DRIVER, 689);

	if (graph->count < NODES) {
		graph->nodes[graph->count].type = type;
		graph->nodes[graph->count].work = *work;
		graph->nodes[graph->count++].id = ++last_node;
	}
	fake_cuda_leave(FAKE_DRIVER, 689, begin_ns, OK);
}

int cuGraphInstantiateWithFlags(struct CUgraphExec_st **exec, struct CUgraph_st *graph,
				uint64_t flags)
{
	BEGIN(643);
	*exec = make(sizeof(**exec));
	if (*exec) {
		(*exec)->graph = *graph;
		(*exec)->graph.id = ++last_graph;
		(*exec)->graph.untraced = !fake_cuda_is_traced();
	}
	END(*exec ? OK : OUT_OF_MEMORY);
}

static void launch_node(struct CUgraph_st *g, uint32_t i, struct CUstream_st *stream)
{
	struct fake_fact fact = { .type = g->nodes[i].type,
				  .graph = g->id,
				  .node = g->nodes[i].id,
				  .untraced = g->untraced,
				  .grid = { 1, 1, 1 },
				  .block = { 32, 1, 1 },
				  .async = true };

	if (fact.type == FACT_COPY) {
		fact.number = 8;
		fact.from = 3;
	}
	if (fact.type != FACT_KERNEL)
		fact.to = 3;
	put_work(stream, &g->nodes[i].work, &fact);
}

int cuGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	struct CUgraph_st *g = &exec->graph;
	struct fake_fact whole = { .type = FACT_GRAPH, .graph = g->id };
	uint64_t now, i;
	BEGIN(514);

	stream = stream_of(stream);
	now = fake_cuda_now() + LATENCY_NS;
	whole.begin_ns = now > stream->free_ns ? now : stream->free_ns;
	whole.end_ns = whole.begin_ns;
	for (i = 0; i < g->count; i++)
		whole.end_ns +=
			g->nodes[i].work.duration_ns ? g->nodes[i].work.duration_ns : DURATION_NS;
	whole.stream = stream->id;
	whole.context = stream->context->id;
	whole.device = stream->context->device;
	fake_cuda_tell(&whole);
	for (i = 0; i < g->count; i++)
		launch_node(g, (uint32_t)i, stream);
	END(OK);
}

int cuProfilerStart(void)
{
	BEGIN(308);
	END(OK);
}

int cuProfilerStop(void)
{
	BEGIN(309);
	END(OK);
}

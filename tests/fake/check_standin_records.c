/* SPDX-License-Identifier: Apache-2.0 */
/* Rows about records: which come, in which order, with which values. */
#include "tests/fake/check_standin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t field64(const struct seen *s, size_t at)
{
	uint64_t value;

	memcpy(&value, s->bytes + at, sizeof(value));
	return value;
}

static uint32_t field32(const struct seen *s, size_t at)
{
	uint32_t value;

	memcpy(&value, s->bytes + at, sizeof(value));
	return value;
}
#define F64(s, type, member) field64((s), offsetof(CUpti_Activity##type, member))
#define F32(s, type, member) field32((s), offsetof(CUpti_Activity##type, member))

static void flush(void)
{
	wait_ms(5);
	CHECK_EQ(cupti.cuptiActivityFlushAll(0), 0);
}

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- order and ids ---- */

static const struct seen *call_of(unsigned kind, unsigned cbid)
{
	unsigned i;

	for (i = 0; i < seen_count; i++)
		if (seen[i].kind == kind && F32(&seen[i], API, cbid) == cbid)
			return &seen[i];
	CHECK(!"such a call");
	exit(1);
}

void row_kernel_before_call(void)
{
	OPEN(10, 4, 5);
	launch(1);
	flush();
	CHECK(find_kind(10, 0) < call_of(4, 307));
	CHECK(call_of(4, 307) < call_of(5, 211)); /* the inner call ends first */
}

void row_shuffled(void)
{
	unsigned i, falls = 0;

	fake.set("shuffle", 1);
	OPEN(10);
	launch(100);
	flush();
	CHECK_EQ(count_kind(10), 100);
	for (i = 1; i < 100; i++)
		falls += F32(&seen[i], Kernel10, gridX) < F32(&seen[i - 1], Kernel10, gridX);
	CHECK(falls > 20);
}

void row_pair_has_one_id(void)
{
	uint32_t id;

	OPEN(10, 4, 5);
	launch(2);
	flush();
	id = F32(call_of(5, 211), API, correlationId);
	CHECK(id != 0);
	CHECK_EQ(F32(call_of(4, 307), API, correlationId), id);
	CHECK_EQ(F32(find_kind(10, 0), Kernel10, correlationId), id);
	CHECK(F32(find_kind(10, 1), Kernel10, correlationId) != id);
	CHECK(F64(call_of(5, 211), API, start) <= F64(call_of(4, 307), API, start));
	CHECK(F64(call_of(5, 211), API, end) >= F64(call_of(4, 307), API, end));
}

void row_no_id_without_calls(void)
{
	OPEN(10);
	launch(1);
	flush();
	CHECK_EQ(F32(find_kind(10, 0), Kernel10, correlationId), 0);
}

void row_external_before_call(void)
{
	uint64_t id = 0;

	OPEN(5, 39);
	CHECK_EQ(cupti.cuptiActivityPopExternalCorrelationId(3, &id), CUPTI_ERROR_QUEUE_EMPTY);
	CHECK_EQ(cupti.cuptiActivityPushExternalCorrelationId(3, 77), 0);
	CHECK_EQ(cupti.cuptiActivityPushExternalCorrelationId(4, 88), 0);
	launch(1);
	CHECK_EQ(cupti.cuptiActivityPopExternalCorrelationId(3, &id), 0);
	CHECK_EQ(id, 77);
	cupti.cuptiActivityPopExternalCorrelationId(4, NULL);
	launch(1);
	flush();
	CHECK_EQ(F64(find_kind(39, 0), ExternalCorrelation, externalId), 77);
	CHECK_EQ(F64(find_kind(39, 1), ExternalCorrelation, externalId), 88);
	CHECK_EQ(count_kind(39) % 2, 0);
	CHECK(find_kind(39, 0) < call_of(5, 211));
	CHECK_EQ(F32(find_kind(39, count_kind(39) - 1), ExternalCorrelation, correlationId),
		 F32(call_of(5, 211), API, correlationId));
}

/* ---- graphs ---- */

static struct CUgraphExec_st *graph(void)
{
	static const enum fake_fact_type types[] = { FACT_KERNEL, FACT_KERNEL, FACT_COPY,
						     FACT_SET };
	struct fake_work work = { .name = "node", .bytes = 64 };
	struct CUgraphExec_st *exec;
	struct CUgraph_st *g;
	unsigned i;

	cudaSetDevice(0);
	cuGraphCreate(&g, 0);
	for (i = 0; i < 4; i++)
		fake_cuda_node(g, types[i], &work);
	cuGraphInstantiateWithFlags(&exec, g, 0);
	return exec;
}

void row_graph_by_node(void)
{
	unsigned i;

	OPEN(10, 1, 2, 4, 5);
	cudaGraphLaunch(graph(), NULL);
	flush();
	CHECK_EQ(count_kind(10), 2);
	CHECK_EQ(count_kind(1), 1);
	CHECK_EQ(count_kind(2), 1);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(F32(find_kind(10, i), Kernel10, correlationId),
			 F32(call_of(5, 311), API, correlationId));
		CHECK(F64(find_kind(10, i), Kernel10, graphNodeId) != 0);
		CHECK(F32(find_kind(10, i), Kernel10, graphId) != 0);
	}
	CHECK(F64(find_kind(10, 0), Kernel10, graphNodeId) !=
	      F64(find_kind(10, 1), Kernel10, graphNodeId));
}

void row_graph_as_whole(void)
{
	OPEN(10, 1, 2, 51, 5);
	cudaGraphLaunch(graph(), NULL);
	launch(1);
	flush();
	CHECK_EQ(count_kind(51), 1);
	CHECK_EQ(count_kind(10), 1);
	CHECK_EQ(count_kind(1), 0);
	CHECK_EQ(F32(find_kind(51, 0), GraphTrace2, correlationId),
		 F32(call_of(5, 311), API, correlationId));
	fake.set("graph_conflict", 1);
	CHECK_EQ(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE),
		 CUPTI_ERROR_NOT_COMPATIBLE);
}

void row_graph_made_early(void)
{
	struct CUgraphExec_st *early = graph();

	OPEN(10, 1, 2);
	cudaGraphLaunch(early, NULL);
	flush();
	CHECK_EQ(count_kind(10), 4);
	CHECK_EQ(count_kind(1) + count_kind(2), 0);
}

/* ---- losses, times ---- */

void row_dropped(void)
{
	size_t dropped = 0;

	fake.set("drop_every", 4);
	OPEN(10);
	launch(100);
	flush();
	CHECK_EQ(count_kind(10), 75);
	cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
	CHECK_EQ(dropped, 25);
	cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
	CHECK_EQ(dropped, 0);
	fake.drop(11);
	cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
	CHECK_EQ(dropped, 11);
}

void row_zero_and_reversed(void)
{
	unsigned i, zero = 0, reversed = 0;

	fake.set("zero_every", 5);
	fake.set("reverse_every", 4);
	OPEN(10);
	launch(100);
	flush();
	for (i = 0; i < 100; i++) {
		uint64_t start = F64(&seen[i], Kernel10, start), end = F64(&seen[i], Kernel10, end);

		zero += start == 0 && end == 0;
		reversed += end < start;
	}
	CHECK_EQ(zero, 20);
	CHECK_EQ(reversed, 20);
}

void row_clock_steps(void)
{
	uint64_t now = 0, real;

	OPEN(10, 5);
	real = realtime_ns();
	cupti.cuptiGetTimestamp(&now);
	CHECK(now >= real && now - real < 50000000);
	launch(1);
	fake.set("clock_offset_ns", -1000000000);
	cupti.cuptiGetTimestamp(&now);
	CHECK(now < real - 900000000);
	launch(1);
	flush();
	CHECK(F64(find_kind(10, 1), Kernel10, start) < F64(find_kind(10, 0), Kernel10, start));
	CHECK(F64(find_kind(5, count_kind(5) - 1), API, start) < real);
}

void row_unsettled(void)
{
	fake.set("unsettled_ms", 300);
	fake.set("unsettled_ns", 1000000000);
	OPEN(10);
	launch(1);
	flush();
	CHECK(F64(find_kind(10, 0), Kernel10, start) > realtime_ns());
	wait_ms(310);
	launch(1);
	flush();
	CHECK(F64(find_kind(10, 1), Kernel10, start) < realtime_ns());
}

static uint64_t stamp(void)
{
	return 12345;
}

void row_timestamp_callback(void)
{
	uint64_t now = 0;
	bool breaks = profile == 1300;

	fake.set("stamp_loses", breaks);
	OPEN(10, 5);
	CHECK_EQ(cupti.cuptiActivityRegisterTimestampCallback(stamp), 0);
	cupti.cuptiGetTimestamp(&now);
	CHECK_EQ(now, 12345);
	launch(1);
	flush();
	CHECK_EQ(F64(find_kind(10, 0), Kernel10, start) == 0, breaks);
	CHECK_EQ(F64(call_of(5, 211), API, start), 12345);
}

/* ---- names ---- */

void row_names_die(void)
{
	const struct seen *s;

	OPEN(10);
	launch(1);
	flush();
	s = find_kind(10, 0);
	CHECK(!strcmp(s->name, "kernel_a"));
	CHECK(memcmp(s->name_at, "kernel_a", 8) != 0);
}

void row_names_stay(void)
{
	fake.set("poison_names", 0);
	OPEN(10);
	launch(1);
	flush();
	CHECK(!strcmp(find_kind(10, 0)->name_at, "kernel_a"));
}

/* Only the address sanitizer can tell. */
#ifdef __SANITIZE_ADDRESS__
int __asan_address_is_poisoned(void const volatile *address);
#endif
void row_names_are_freed(void)
{
	fake.set("poison_names", 2);
	OPEN(10);
	launch(1);
	flush();
	CHECK(!strcmp(find_kind(10, 0)->name, "kernel_a"));
#ifdef __SANITIZE_ADDRESS__
	CHECK(__asan_address_is_poisoned(find_kind(10, 0)->name_at));
#endif
}

void row_names_move(void)
{
	unsigned i;

	OPEN(10);
	launch(3);
	flush();
	launch(3);
	flush();
	for (i = 0; i < 3; i++) {
		CHECK(!strcmp(find_kind(10, i)->name, find_kind(10, 3 + i)->name));
		CHECK(find_kind(10, i)->name_at != find_kind(10, 3 + i)->name_at);
	}
	/* and one's memory is now another's */
	for (i = 0; i < 3 && find_kind(10, i)->name_at != find_kind(10, 3)->name_at; i++)
		;
	CHECK(i < 3);
}

void row_memory_of_the_client(void)
{
	CUpti_ActivityOverheadCommandBufferFullData *full;
	struct fake_fact f = { .type = FACT_OVERHEAD, .number = 6 << 16 };
	const struct seen *device;

	OPEN(8, 17);
	cudaSetDevice(0);
	fake_cuda_tell(&f);
	flush();
	device = find_kind(8, 0);
	CHECK(!strcmp(device->name, "Stand-in GPU"));
	free((void *)(uintptr_t)device->name_at); /* glibc would not forgive an error here */
	memcpy(&full, find_kind(17, 0)->bytes + offsetof(CUpti_ActivityOverhead3, overheadData),
	       sizeof(full));
	CHECK(full != NULL);
	free(full);
}

/* ---- kinds ---- */

void row_peer_comes_with_copies(void)
{
	OPEN(1);
	cudaMemcpyPeerAsync(NULL, 1, NULL, 0, 100, NULL);
	flush();
	CHECK_EQ(count_kind(22), 1);
	CHECK_EQ(F32(find_kind(22, 0), MemcpyPtoP4, srcDeviceId), 0);
	CHECK_EQ(F32(find_kind(22, 0), MemcpyPtoP4, dstDeviceId), 1);
	CHECK_EQ(F64(find_kind(22, 0), MemcpyPtoP4, bytes), 100);
	cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY);
	cudaMemcpyPeerAsync(NULL, 1, NULL, 0, 100, NULL);
	flush();
	CHECK_EQ(count_kind(22), 1);
}

static unsigned calls_seen(unsigned cbid)
{
	unsigned i, count = 0;

	for (i = 0; i < seen_count; i++)
		count += seen[i].kind == 5 && F32(&seen[i], API, cbid) == cbid;
	return count;
}

void row_filter(void)
{
	CHECK_EQ(cupti.runtime_api == NULL, profile == 1204);
	if (!cupti.runtime_api)
		return;
	OPEN(5);
	CHECK_EQ(cupti.runtime_api(10, 0), 0);
	CHECK_EQ(cupti.runtime_api(4000, 0), CUPTI_ERROR_INVALID_PARAMETER);
	cudaGetLastError();
	launch(1);
	flush();
	CHECK_EQ(calls_seen(10), 0);
	CHECK_EQ(calls_seen(211), 1);
	CHECK_EQ(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), 0);
	cudaGetLastError();
	flush();
	CHECK_EQ(calls_seen(10), 1); /* enabling forgets the choice */
}

void row_device_once(void)
{
	OPEN(8);
	cudaSetDevice(0);
	cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DEVICE);
	flush();
	CHECK_EQ(count_kind(8), 2); /* FAKE_CUDA_DEVICES of them */
	CHECK_EQ(cupti.cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_DEVICE), 0);
	flush();
	CHECK_EQ(count_kind(8), 4);
	CHECK_EQ(F32(find_kind(8, 1), Device5, id), 1);
}

void row_streams_announced(void)
{
	struct CUstream_st *stream;
	unsigned i, lowest = 99;

	OPEN(9, 37);
	cudaSetDevice(0);
	flush();
	CHECK_EQ(count_kind(9), 1);
	CHECK_EQ(count_kind(37), 7);
	for (i = 0; i < 7; i++)
		if (F32(find_kind(37, i), Stream, streamId) < lowest)
			lowest = F32(find_kind(37, i), Stream, streamId);
	CHECK_EQ(lowest, 7);
	cuStreamCreate(&stream, 1);
	flush();
	CHECK_EQ(F32(find_kind(37, 7), Stream, streamId), 14);
	CHECK_EQ(F32(find_kind(37, 7), Stream, flag), 2);
	CHECK_EQ(cupti.cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_STREAM), 0);
	flush();
	CHECK_EQ(count_kind(37), 16);
}

/* Every kind of record once, with what was asked for. */
void row_values(void)
{
	struct fake_work work = { .registers = 48, .static_shared = 64, .duration_ns = 5000 };
	struct CUevent_st *event;
	const struct seen *s;
	void *memory;

	OPEN(10, 1, 2, 5, 38, 36, 49);
	cuInit(0);
	fake_cuda_next(&work);
	cudaLaunchKernel("k", 7, 8, 9, 128, 2, 1, NULL, 4096, NULL);
	cudaMemcpyAsync(NULL, NULL, 1000, 2, NULL);
	cudaMemsetAsync(NULL, 5, 2000, NULL);
	cudaMalloc(&memory, 3000);
	cuEventCreate(&event, 0);
	cudaEventRecord(event, NULL);
	cudaEventSynchronize(event);
	cudaStreamSynchronize(NULL);
	cudaDeviceSynchronize();
	flush();
	s = find_kind(10, 0);
	CHECK_EQ(F32(s, Kernel10, gridZ), 9);
	CHECK_EQ(F32(s, Kernel10, blockY), 2);
	CHECK_EQ(F32(s, Kernel10, dynamicSharedMemory), 4096);
	CHECK_EQ(F32(s, Kernel10, staticSharedMemory), 64);
	CHECK_EQ(F64(s, Kernel10, end) - F64(s, Kernel10, start), 5000);
	CHECK_EQ(F32(s, Kernel10, streamId), 7);
	CHECK_EQ(s->bytes[offsetof(CUpti_ActivityKernel10, registersPerThread)], 48);
	s = find_kind(1, 0);
	CHECK_EQ(F64(s, Memcpy6, bytes), 1000);
	CHECK_EQ(s->bytes[4], 2);
	CHECK(F64(s, Memcpy6, start) >= F64(find_kind(10, 0), Kernel10, end)); /* one stream */
	CHECK_EQ(F64(find_kind(2, 0), Memset4, bytes), 2000);
	CHECK_EQ(F32(find_kind(2, 0), Memset4, value), 5);
	CHECK_EQ(F64(find_kind(49, 0), Memory4, bytes), 3000);
	CHECK_EQ(F64(find_kind(49, 0), Memory4, address), (uintptr_t)memory);
	CHECK_EQ(F32(find_kind(36, 0), CudaEvent2, eventId), 1);
	CHECK_EQ(F32(find_kind(38, 0), Synchronization2, type), 1);
	CHECK_EQ(F32(find_kind(38, 1), Synchronization2, type), 3);
	CHECK_EQ(F32(find_kind(38, 1), Synchronization2, cudaEventId), 0xFFFFFFFF);
	CHECK_EQ(F32(find_kind(38, 2), Synchronization2, streamId), 0xFFFFFFFF);
}

/* What a version does not know is never 0. */
void row_noise(void)
{
	OPEN(1, 9);
	cudaSetDevice(0);
	cudaMemcpyAsync(NULL, NULL, 1000, 2, NULL);
	flush();
	CHECK_EQ(find_kind(1, 0)->bytes[84], profile == 1204 ? 0xA5 : 0);   /* isDeviceLaunched */
	CHECK_EQ(find_kind(9, 0)->bytes[22], profile == 1204 ? 0xA5 : 132); /* processors */
	CHECK_EQ(find_kind(1, 0)->bytes[85], 0xA5);
	fake.set("noise", 0);
	cudaMemcpyAsync(NULL, NULL, 1000, 2, NULL);
	flush();
	CHECK_EQ(find_kind(1, 1)->bytes[85], 0);
}

void row_thread_ids(void)
{
	uint32_t own = (uint32_t)syscall(SYS_gettid);

	OPEN(5);
	launch(1);
	CHECK_EQ(cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), 0);
	launch(1);
	flush();
	CHECK(F32(call_of(5, 211), API, threadId) == (uint32_t)(uintptr_t)pthread_self());
	CHECK_EQ(F32(find_kind(5, count_kind(5) - 1), API, threadId), own);
}

void row_unknown_kind(void)
{
	uint32_t strange = profile == 1204 ? 19 : profile == 1300 ? 55 : profile == 1305 ? 59 : 60;
	uint32_t record[16] = { 53 };

	fake.set("strange_every", 2);
	OPEN(10);
	launch(10);
	flush();
	CHECK_EQ(count_kind(10), 10);
	CHECK_EQ(count_kind(strange), 5);
	CHECK_EQ(fake.emit(record, sizeof(record)), profile != 1204);
	record[0] = 17;
	CHECK(!fake.emit(record, sizeof(record))); /* not enabled */
	record[0] = 61;
	CHECK(!fake.emit(record, sizeof(record)));
}

void row_struct_sizes(void)
{
	size_t size = 0;

	/* kernel, memcpy, memset, API, context, device, memory, event */
	CHECK_EQ(fake.size(10), profile == 1204   ? 208
				: profile == 1300 ? 216
				: profile == 1305 ? 248
						  : 264);
	CHECK_EQ(fake.size(1), profile == 1204   ? 88
			       : profile == 1300 ? 96
			       : profile == 1305 ? 112
						 : 128);
	CHECK_EQ(fake.size(2), profile <= 1300 ? 88 : profile == 1305 ? 104 : 120);
	CHECK_EQ(fake.size(5), profile == 1400 ? 56 : 40);
	CHECK_EQ(fake.size(9), profile == 1204   ? 24
			       : profile == 1300 ? 32
			       : profile == 1305 ? 40
						 : 56);
	CHECK_EQ(fake.size(49), profile == 1204 ? 120 : profile == 1400 ? 144 : 128);
	CHECK_EQ(fake.size(36), profile == 1204   ? 24
				: profile == 1300 ? 56
				: profile == 1305 ? 80
						  : 96);
	CHECK_EQ(cupti.struct_size != NULL, profile >= 1305);
	if (!cupti.struct_size)
		return;
	CHECK_EQ(cupti.struct_size((CUpti_ActivityKind)10, 130500, &size), 0);
	CHECK_EQ(size, fake.size(10));
}

void row_enabled_kinds(void)
{
	CUpti_ActivityKind kinds[8];
	uint32_t room = 8, count = 0;

	CHECK_EQ(cupti.enabled_kinds != NULL, profile >= 1305);
	if (!cupti.enabled_kinds)
		return;
	OPEN(10, 1);
	CHECK_EQ(cupti.enabled_kinds(NULL, kinds, &room, &count), 0);
	CHECK_EQ(count, 2);
	CHECK_EQ(kinds[1], 10);
}

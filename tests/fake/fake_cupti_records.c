/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of the driver become records.  A record is made as the newest struct of its family that the
 * headers have, on a ground of noise, so that what an older CUPTI has as padding is not zero; then
 * as many bytes as this build's records have are put into a buffer.
 */
#include "tests/fake/fake_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGEST = 512 };

static _Atomic uint64_t zero_counter, reverse_counter, strange_counter, miss_counter;

union room {
	uint8_t bytes[LARGEST];
	uint64_t aligned;
};

void fake_put_record(unsigned kind, const void *record, size_t given,
		     const struct fake_pending *pending)
{
	size_t size = fake_profile.sizes[kind];
	union room room;

	if (!size || size > LARGEST)
		return;
	if (kind == (unsigned)OPTION(miss_kind) && ++miss_counter == (uint64_t)OPTION(miss_number))
		return;
	memset(room.bytes, OPTION(noise) ? NOISE : 0, size);
	memcpy(room.bytes, record, given < size ? given : size);
	memcpy(room.bytes, &kind, sizeof(uint32_t));
	fake_put(room.bytes, size, pending);
	if (!fake_each(&strange_counter, OPTION(strange_every)))
		return;
	kind = fake_profile.strange_kind;
	size = fake_profile.sizes[kind];
	memset(room.bytes, NOISE, size);
	memcpy(room.bytes, &kind, sizeof(uint32_t));
	fake_put(room.bytes, size, NULL);
}

static uint32_t correlation(const struct fake_fact *f)
{
	return fake_is_on(4) || fake_is_on(5) ? f->correlation : CUPTI_CORRELATION_ID_UNKNOWN;
}

uint32_t fake_thread_id(void)
{
	if (fake_state.thread_ids == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
		return (uint32_t)syscall(SYS_gettid);
	return (uint32_t)(uintptr_t)pthread_self();
}

/* ---- times of work ---- */

static bool loses_kernel_times(void)
{
	return fake_state.stamp && OPTION(stamp_loses);
}

static uint64_t gpu_time(uint64_t ns)
{
	CUpti_TimestampCallbackFunc stamp = fake_state.stamp;
	uint64_t since = fake_realtime() - fake_state.first_enable_ns;

	ns = stamp ? fake_stamp_at(ns) : fake_shift(ns);
	if (since < (uint64_t)OPTION(unsettled_ms) * 1000000)
		ns += (uint64_t)OPTION(unsettled_ns);
	return ns;
}

static struct fake_pending work_times(const struct fake_fact *f)
{
	struct fake_pending p = { .due_ns = f->end_ns };

	if (fake_each(&zero_counter, OPTION(zero_every)))
		return p;
	p.begin_ns = gpu_time(f->begin_ns);
	p.end_ns = fake_state.stamp ? gpu_time(f->end_ns) : p.begin_ns + (f->end_ns - f->begin_ns);
	if (!fake_each(&reverse_counter, OPTION(reverse_every)))
		return p;
	p.begin_ns = p.end_ns;
	p.end_ns -= f->end_ns - f->begin_ns;
	return p;
}

static void put_work(unsigned kind, void *record, size_t size, struct fake_pending p,
		     size_t begin_at, size_t end_at)
{
	p.begin_at = (uint32_t)begin_at;
	p.end_at = (uint32_t)end_at;
	memset((char *)record + begin_at, 0, 8);
	memset((char *)record + end_at, 0, 8);
	fake_put_record(kind, record, size, &p);
}
#define PUT_WORK(kind, r, p)                                                                       \
	put_work((kind), &(r), sizeof(r), (p), (size_t)((char *)&(r).start - (char *)&(r)),        \
		 (size_t)((char *)&(r).end - (char *)&(r)))

/* ---- work ---- */

static void put_kernel(const struct fake_fact *f)
{
	unsigned kind = fake_is_on(10) ? 10 : 3;
	struct fake_pending p = work_times(f);
	RECORD(Kernel10, k);

	if (!fake_is_on(10) && !fake_is_on(3))
		return;
	k.cacheConfig.both = 0;
	k.sharedMemoryConfig = 0;
	k.registersPerThread = (uint16_t)f->registers;
	k.partitionedGlobalCacheRequested = k.partitionedGlobalCacheExecuted =
		CUPTI_ACTIVITY_PARTITIONED_GLOBAL_CACHE_CONFIG_UNKNOWN;
	k.completed = 0;
	p.completed_at = offsetof(CUpti_ActivityKernel10, completed);
	if (loses_kernel_times())
		p.begin_ns = p.end_ns = 0;
	k.deviceId = f->device;
	k.contextId = f->context;
	k.streamId = f->stream;
	k.gridX = (int32_t)f->grid[0];
	k.gridY = (int32_t)f->grid[1];
	k.gridZ = (int32_t)f->grid[2];
	k.blockX = (int32_t)f->block[0];
	k.blockY = (int32_t)f->block[1];
	k.blockZ = (int32_t)f->block[2];
	k.staticSharedMemory = (int32_t)f->static_shared;
	k.dynamicSharedMemory = (int32_t)f->dynamic_shared;
	k.localMemoryPerThread = f->local;
	k.localMemoryTotal = f->local * 1024;
	k.localMemoryTotal_v2 = (uint64_t)f->local * 1024;
	k.correlationId = correlation(f);
	k.gridId = (int64_t)f->correlation;
	k.name = f->name ? f->name : "memcpy or memset of a graph";
	k.queued = k.submitted = CUPTI_TIMESTAMP_UNKNOWN;
	k.launchType = CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
	k.isSharedMemoryCarveoutRequested = 0;
	k.sharedMemoryCarveoutRequested = 0;
	k.sharedMemoryExecuted = 8192;
	k.graphNodeId = f->node;
	k.graphId = f->graph;
	k.shmemLimitConfig = (CUpti_FuncShmemLimitConfig)0;
	k.pAccessPolicyWindow = NULL;
	k.channelID = 3;
	k.channelType = (CUpti_ChannelType)1;
	k.clusterX = k.clusterY = k.clusterZ = k.clusterSchedulingPolicy = 0;
	k.maxPotentialClusterSize = k.maxActiveClusters = 0;
	k.isDeviceLaunched = 0;
	PUT_WORK(kind, k, p);
}

static void put_copy(const struct fake_fact *f)
{
	RECORD(Memcpy6, m);

	if (!fake_is_on(1))
		return;
	m.copyKind = (uint8_t)f->number;
	m.srcKind = (uint8_t)f->from;
	m.dstKind = (uint8_t)f->to;
	m.flags = f->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
	m.bytes = f->bytes;
	m.deviceId = f->device;
	m.contextId = f->context;
	m.streamId = f->stream;
	m.correlationId = m.runtimeCorrelationId = correlation(f);
	m.graphNodeId = f->node;
	m.graphId = f->graph;
	m.channelID = 9;
	m.channelType = (CUpti_ChannelType)2;
	if (fake_version() >= 130000)
		m.isDeviceLaunched = 0;
	m.copyCount = 1;
	PUT_WORK(1, m, work_times(f));
}

static void put_peer(const struct fake_fact *f)
{
	RECORD(MemcpyPtoP4, m);

	if (!fake_is_on(22) && !fake_state.implied_peer)
		return;
	m.copyKind = (uint8_t)f->number;
	m.srcKind = (uint8_t)f->from;
	m.dstKind = (uint8_t)f->to;
	m.flags = f->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
	m.bytes = f->bytes;
	m.deviceId = f->device;
	m.contextId = f->context;
	m.streamId = f->stream;
	m.srcDeviceId = f->from_device;
	m.srcContextId = f->from_context;
	m.dstDeviceId = f->to_device;
	m.dstContextId = f->to_context;
	m.correlationId = correlation(f);
	m.graphNodeId = f->node;
	m.graphId = f->graph;
	m.channelID = 9;
	m.channelType = (CUpti_ChannelType)2;
	PUT_WORK(22, m, work_times(f));
}

static void put_set(const struct fake_fact *f)
{
	RECORD(Memset4, m);

	if (!fake_is_on(2))
		return;
	m.value = (uint32_t)f->number;
	m.bytes = f->bytes;
	m.deviceId = f->device;
	m.contextId = f->context;
	m.streamId = f->stream;
	m.correlationId = correlation(f);
	m.flags = f->async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
	m.memoryKind = (uint16_t)f->to;
	m.graphNodeId = f->node;
	m.graphId = f->graph;
	m.channelID = 3;
	m.channelType = (CUpti_ChannelType)1;
	if (fake_version() >= 130000)
		m.isDeviceLaunched = 0;
	PUT_WORK(2, m, work_times(f));
}

static void put_graph(const struct fake_fact *f)
{
	RECORD(GraphTrace2, g);

	if (!fake_is_on(51))
		return;
	g.correlationId = correlation(f);
	g.deviceId = g.endDeviceId = f->device;
	g.contextId = g.endContextId = f->context;
	g.streamId = f->stream;
	g.graphId = f->graph;
	PUT_WORK(51, g, work_times(f));
}

static void put_expand(const struct fake_fact *f)
{
	RECORD(MemDecompress, m);

	if (fake_profile.newest_kind < 54 || !fake_is_on(54))
		return;
	m.deviceId = f->device;
	m.contextId = f->context;
	m.streamId = f->stream;
	m.channelID = 11;
	m.channelType = (CUpti_ChannelType)3;
	m.correlationId = correlation(f);
	m.numberOfOperations = (uint32_t)f->number;
	m.sourceBytes = f->bytes;
	PUT_WORK(54, m, work_times(f));
}

/* A node of a graph: not with GRAPH_TRACE; before there was tracing all are kernels. */
static void put_any_work(const struct fake_fact *f)
{
	if (f->node && fake_is_on(51))
		return;
	if (f->type == FACT_KERNEL || (f->node && f->untraced))
		put_kernel(f);
	else if (f->type == FACT_COPY)
		put_copy(f);
	else if (f->type == FACT_PEER)
		put_peer(f);
	else
		put_set(f);
}

/* ---- host ---- */

static void put_sync(const struct fake_fact *f)
{
	RECORD(Synchronization2, s);

	if (!fake_is_on(38))
		return;
	s.type = (CUpti_ActivitySynchronizationType)f->number;
	s.start = fake_stamp_at(f->begin_ns);
	s.end = fake_stamp_at(f->end_ns);
	s.correlationId = correlation(f);
	s.contextId = f->context;
	s.streamId = f->stream;
	s.cudaEventId = f->event;
	s.cudaEventSyncId = f->seq;
	s.returnValue = f->result;
	PUT(38, s);
}

/* Until 13.0 of what has completed only; then of every query, unless the client switches it off. */
static void put_query(const struct fake_fact *f)
{
	if (!f->result || fake_state.all_syncs)
		put_sync(f);
}

static void put_event(const struct fake_fact *f)
{
	RECORD(CudaEvent2, e);

	if (!fake_is_on(36))
		return;
	e.correlationId = correlation(f);
	e.contextId = f->context;
	e.streamId = f->stream;
	e.eventId = f->event;
	e.deviceId = f->device;
	/* on a clock of the GPU's that nobody knows, as if a tool had asked for it */
	e.deviceTimestamp = OPTION(event_ticks) ? f->begin_ns / 10 * 3 : 0;
	e.cudaEventSyncId = f->seq;
	PUT(36, e);
}

static void put_memory(const struct fake_fact *f)
{
	RECORD(Memory4, m);

	if (!fake_is_on(49))
		return;
	m.memoryOperationType = (CUpti_ActivityMemoryOperationType)f->number;
	m.memoryKind = (CUpti_ActivityMemoryKind)f->to;
	m.correlationId = correlation(f);
	m.address = f->address;
	m.bytes = f->bytes;
	m.timestamp = fake_shift(f->begin_ns);
	m.PC = 0;
	m.processId = (uint32_t)getpid();
	m.deviceId = f->device;
	m.contextId = f->context;
	m.streamId = f->stream;
	m.name = f->name;
	m.isAsync = f->pool != 0;
	m.memoryPoolConfig.memoryPoolType = (CUpti_ActivityMemoryPoolType)(f->pool != 0);
	m.memoryPoolConfig.address = f->pool;
	m.memoryPoolConfig.releaseThreshold = 0;
	m.memoryPoolConfig.pool.size = f->pool ? UINT64_C(1) << 30 : 0;
	m.memoryPoolConfig.utilizedSize = f->pool ? f->bytes : 0;
	m.source = NULL;
	PUT(49, m);
}

static void put_pool(const struct fake_fact *f)
{
	RECORD(MemoryPool3, m);

	if (!fake_is_on(50))
		return;
	m.memoryPoolOperationType = (CUpti_ActivityMemoryPoolOperationType)f->number;
	m.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
	m.correlationId = correlation(f);
	m.processId = (uint32_t)getpid();
	m.deviceId = f->device;
	m.minBytesToKeep = 0;
	m.address = f->address;
	m.size = f->bytes;
	m.releaseThreshold = 0;
	m.timestamp = fake_shift(f->begin_ns);
	m.utilizedSize = 0;
	m.isManagedPool = 0;
	PUT(50, m);
}

static void put_jit(const struct fake_fact *f)
{
	RECORD(Jit2, j);

	if (!fake_is_on(52))
		return;
	j.jitEntryType = CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN;
	j.jitOperationType = (CUpti_ActivityJitOperationType)f->number;
	j.deviceId = f->device;
	j.start = fake_shift(f->begin_ns);
	j.end = fake_shift(f->end_ns);
	j.correlationId = correlation(f);
	j.jitOperationCorrelationId = f->correlation;
	j.cacheSize = f->bytes;
	j.cachePath = f->name;
	j.processId = (uint32_t)getpid();
	j.threadId = fake_thread_id();
	PUT(52, j);
}

static void put_overhead(const struct fake_fact *f)
{
	RECORD(Overhead3, o);

	if (!fake_is_on(17))
		return;
	o.overheadKind = (CUpti_ActivityOverheadKind)f->number;
	o.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
	o.objectId.dcs.streamId = 0;
	o.objectId.pt.processId = (uint32_t)getpid();
	o.objectId.pt.threadId =
		fake_version() < 22 ? (uint32_t)(uintptr_t)pthread_self() : fake_thread_id();
	o.start = fake_shift(f->begin_ns);
	o.end = fake_shift(f->end_ns);
	o.correlationId = correlation(f);
	o.overheadData = NULL;
	if (f->number == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL) {
		CUpti_ActivityOverheadCommandBufferFullData *full = calloc(1, sizeof(*full));

		fake_lend_memory(full); /* the client's to free */
		o.overheadData = full;
	}
	PUT(17, o);
}

/* ---- devices, contexts, streams ---- */

static void put_device(const struct fake_fact *f)
{
	RECORD(Device5, d);

	if (!fake_is_on(8))
		return;
	memset(&d, 0, sizeof(d));
	d.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS;
	d.globalMemoryBandwidth = UINT64_C(4800000000);
	d.globalMemorySize = UINT64_C(150) << 30;
	d.l2CacheSize = 60 << 20;
	d.numThreadsPerWarp = 32;
	d.coreClockRate = 1980000;
	d.numMultiprocessors = 132;
	d.maxSharedMemoryPerMultiprocessor = 233472;
	d.maxThreadsPerBlock = 1024;
	d.computeCapabilityMajor = 9;
	d.id = f->device;
	d.eccEnabled = 1;
	memset(d.uuid.bytes, 0x10 + (int)f->device, sizeof(d.uuid.bytes));
	d.name = strdup(f->name ? f->name : "");
	fake_lend_memory((void *)(uintptr_t)d.name);
	d.isCudaVisible = 1;
	d.gpuInstanceId = d.computeInstanceId = FAKE_NONE;
	d.numaId = FAKE_NONE;
	PUT(8, d);
}

static void put_context(const struct fake_fact *f)
{
	RECORD(Context3, c);

	if (!fake_is_on(9))
		return;
	c.contextId = f->context;
	c.deviceId = f->device;
	c.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
	c.nullStreamId = (uint16_t)f->stream;
	c.parentContextId = FAKE_NONE;
	c.isGreenContext = 0;
	if (fake_version() >= 23)
		c.numMultiprocessors = 132;
	c.cigMode = (CUpti_ContextCigMode)0;
	PUT(9, c);
}

static void put_stream(const struct fake_fact *f)
{
	RECORD(Stream, s);

	if (!fake_is_on(37))
		return;
	s.contextId = f->context;
	s.streamId = f->stream;
	s.priority = 0;
	s.flag = (CUpti_ActivityStreamFlag)f->number;
	s.correlationId = correlation(f);
	PUT(37, s);
}

static _Thread_local unsigned dumped_kind;

static void dump_fact(const struct fake_fact *f)
{
	if (f->type == FACT_DEVICE && dumped_kind == 8)
		put_device(f);
	if (f->type == FACT_CONTEXT && dumped_kind == 9)
		put_context(f);
	if (f->type == FACT_STREAM && dumped_kind == 37)
		put_stream(f);
}

void fake_dump(unsigned kind, bool existing)
{
	dumped_kind = kind;
	fake_list(dump_fact);
}

void fake_watch_fact(const struct fake_fact *f)
{
	static void (*const put_fact[])(const struct fake_fact *) = {
		[FACT_ENTER] = fake_call_enter, [FACT_LEAVE] = fake_call_leave,
		[FACT_KERNEL] = put_any_work,   [FACT_COPY] = put_any_work,
		[FACT_PEER] = put_any_work,     [FACT_SET] = put_any_work,
		[FACT_GRAPH] = put_graph,       [FACT_EXPAND] = put_expand,
		[FACT_SYNC] = put_sync,         [FACT_EVENT] = put_event,
		[FACT_MEMORY] = put_memory,     [FACT_POOL] = put_pool,
		[FACT_JIT] = put_jit,           [FACT_OVERHEAD] = put_overhead,
		[FACT_DEVICE] = put_device,     [FACT_CONTEXT] = put_context,
		[FACT_STREAM] = put_stream,     [FACT_QUERY] = put_query,
	};

	if (!fake_forked)
		put_fact[f->type](f);
}

SHOWN bool fake_cupti_emit(const void *record, size_t size)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	if (kind >= KINDS || !fake_profile.sizes[kind])
		return false;
	/* without a switch: device graphs come with EnableDeviceGraph */
	if (!fake_is_on(kind) && kind != 53)
		return false;
	fake_put_record(kind, record, size, NULL);
	return true;
}

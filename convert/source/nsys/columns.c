/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/nsys/internal.h"

#include "schemas/model/records.h"

#include <string.h>

const struct nsys_table nsys_tables[] = {
	{ "CUPTI_ACTIVITY_KIND_KERNEL", KIND_KERNEL, 0, TRACK_STREAM, NULL },
	{ "CUPTI_ACTIVITY_KIND_MEMCPY", KIND_MEMCPY, 0, TRACK_STREAM, NULL },
	{ "CUPTI_ACTIVITY_KIND_MEMSET", KIND_MEMSET, 0, TRACK_STREAM, NULL },
	{ "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", KIND_GRAPH, 0, TRACK_STREAM, NULL },
	{ "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", KIND_SYNC, 0, TRACK_STREAM, NULL },
	{ "CUPTI_ACTIVITY_KIND_CUDA_EVENT", KIND_MARK, MARK_INSTANT, TRACK_STREAM, NULL },
	{ "CUPTI_ACTIVITY_KIND_RUNTIME", KIND_API, API_RUNTIME, TRACK_THREAD, NULL },
	{ "CUPTI_ACTIVITY_KIND_DRIVER", KIND_API, API_DRIVER, TRACK_THREAD, NULL },
	{ "CUPTI_ACTIVITY_KIND_OVERHEAD", KIND_OVERHEAD, 0, TRACK_THREAD, NULL },
	{ "PROFILER_OVERHEAD", KIND_OVERHEAD, 0, TRACK_THREAD, NULL },
	{ "CUDA_GPU_MEMORY_USAGE_EVENTS", KIND_ALLOC, 0, TRACK_ALLOCATOR, NULL },
	{ "NVTX_EVENTS", KIND_RANGE, RANGE_NVTX, TRACK_THREAD, NULL },
	{ "OSRT_API", KIND_RANGE, RANGE_OTHER, TRACK_THREAD, "osrt" },
	{ "CUBLAS_EVENTS", KIND_RANGE, RANGE_OTHER, TRACK_THREAD, "cublas" },
	{ "CUDNN_EVENTS", KIND_RANGE, RANGE_OTHER, TRACK_THREAD, "cudnn" },
	{ "MPI_COLLECTIVES_EVENTS", KIND_RANGE, RANGE_OTHER, TRACK_THREAD, "mpi" },
	{ "MPI_P2P_EVENTS", KIND_RANGE, RANGE_OTHER, TRACK_THREAD, "mpi" },
	{ "MPI_START_WAIT_EVENTS", KIND_RANGE, RANGE_OTHER, TRACK_THREAD, "mpi" },
	{ "MPI_OTHER_EVENTS", KIND_RANGE, RANGE_OTHER, TRACK_THREAD, "mpi" },
	{ NULL, 0, 0, 0, NULL },
};

static const struct {
	const char *column;
	uint8_t role, rank;
	const char *field; /* key in records.def; NULL: the column's own name */
} meanings[] = {
	{ "start", NSYS_BEGIN, 0, NULL },
	{ "timestamp", NSYS_BEGIN, 0, NULL },
	{ "end", NSYS_END, 0, NULL },
	{ "deviceId", NSYS_DEVICE, 0, NULL },
	{ "contextId", NSYS_CONTEXT, 0, NULL },
	{ "streamId", NSYS_STREAM, 0, "stream" },
	{ "globalPid", NSYS_GLOBAL_PID, 0, NULL },
	{ "globalTid", NSYS_GLOBAL_TID, 0, NULL },
	{ "endGlobalTid", NSYS_END_TID, 0, "endGlobalTid" },
	{ "correlationId", NSYS_CORRELATION, 0, "correlation" },
	{ "address", NSYS_ADDRESS, 0, "address" },
	{ "bytes", NSYS_BYTES, 0, "bytes" },
	{ "returnValue", NSYS_RESULT, 0, "result" },
	{ "copyKind", NSYS_SUBKIND, 0, "copy_kind" },
	{ "syncType", NSYS_SUBKIND, 0, "sync_type" },
	{ "eventClass", NSYS_API_CLASS, 0, NULL },
	{ "eventType", NSYS_NVTX_TYPE, 0, NULL },
	{ "domainId", NSYS_DOMAIN, 0, "domain" },
	{ "memoryOperationType", NSYS_OPERATION, 0, NULL },
	{ "srcKind", NSYS_MEMORY_KIND, 0, "src_kind" },
	{ "dstKind", NSYS_MEMORY_KIND, 0, "dst_kind" },
	{ "memKind", NSYS_MEMORY_KIND, 0, "memory_kind" },
	{ "text", NSYS_NAME, 0, NULL },
	{ "name", NSYS_NAME, 0, NULL },
	{ "demangledName", NSYS_NAME, 1, NULL },
	{ "textId", NSYS_NAME, 1, NULL },
	{ "nameId", NSYS_NAME, 1, NULL },
	{ "shortName", NSYS_NAME, 2, NULL }, /* a part of the demangled name */
	{ "mangledName", NSYS_TEXT_ID, 0, "mangled" },
	{ "jsonTextId", NSYS_TEXT_ID, 0, "jsonText" },
	{ "callchainId", NSYS_SKIP, 0, NULL }, /* refers to tables that are not read */
	{ "binaryData", NSYS_SKIP, 0, NULL },  /* the file does not define its meaning */
	{ "deprecatedSrcId", NSYS_SKIP, 0, NULL },
	{ "deprecatedSyncType", NSYS_SKIP, 0, NULL },
	{ "gridId", NSYS_FIELD, 0, "grid_id" },
	{ "gridX", NSYS_FIELD, 0, "grid_x" },
	{ "gridY", NSYS_FIELD, 0, "grid_y" },
	{ "gridZ", NSYS_FIELD, 0, "grid_z" },
	{ "blockX", NSYS_FIELD, 0, "block_x" },
	{ "blockY", NSYS_FIELD, 0, "block_y" },
	{ "blockZ", NSYS_FIELD, 0, "block_z" },
	{ "registersPerThread", NSYS_FIELD, 0, "registers" },
	{ "staticSharedMemory", NSYS_FIELD, 0, "static_shared" },
	{ "dynamicSharedMemory", NSYS_FIELD, 0, "dynamic_shared" },
	{ "sharedMemoryExecuted", NSYS_FIELD, 0, "shared_executed" },
	{ "sharedMemoryLimitConfig", NSYS_FIELD, 0, "shared_limit" },
	{ "sharedMemoryRequestedPercentage", NSYS_FIELD, 0, "carveout" },
	{ "localMemoryPerThread", NSYS_FIELD, 0, "local_per_thread" },
	{ "localMemoryTotal", NSYS_FIELD, 0, "local_total" },
	{ "launchType", NSYS_FIELD, 0, "launch_type" },
	{ "cacheConfig", NSYS_FIELD, 0, "cache_config" },
	{ "graphNodeId", NSYS_FIELD, 0, "graph_node" },
	{ "graphId", NSYS_FIELD, 0, "graph" },
	{ "clusterX", NSYS_FIELD, 0, "cluster_x" },
	{ "clusterY", NSYS_FIELD, 0, "cluster_y" },
	{ "clusterZ", NSYS_FIELD, 0, "cluster_z" },
	{ "clusterSchedulingPolicy", NSYS_FIELD, 0, "cluster_policy" },
	{ "maxPotentialClusterSize", NSYS_FIELD, 0, "cluster_most" },
	{ "maxActiveClusters", NSYS_FIELD, 0, "cluster_active" },
	{ "greenContextId", NSYS_FIELD, 0, "green_context" },
	{ "srcDeviceId", NSYS_FIELD, 0, "src_device" },
	{ "srcContextId", NSYS_FIELD, 0, "src_context" },
	{ "dstDeviceId", NSYS_FIELD, 0, "dst_device" },
	{ "dstContextId", NSYS_FIELD, 0, "dst_context" },
	{ "copyCount", NSYS_FIELD, 0, "copies" },
	{ "value", NSYS_FIELD, 0, "value" },
	{ "eventId", NSYS_FIELD, 0, "event_id" },
	{ "eventSyncId", NSYS_FIELD, 0, "event_sync_id" },
	{ "category", NSYS_FIELD, 0, "category" },
	{ "color", NSYS_FIELD, 0, "color" },
	{ "pc", NSYS_FIELD, 0, "pc" },
	{ "overheadType", NSYS_FIELD, 0, "overheadType" },
};

enum status nsys_column(struct import *to, unsigned kind, const char *name, struct nsys_column *out,
			struct error *err)
{
	const char *key = name;
	const struct field *f;

	*out = (struct nsys_column){ .role = NSYS_OTHER, .is_arg = true };
	for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++) {
		if (strcmp(meanings[i].column, name) != 0)
			continue;
		out->role = meanings[i].role;
		out->rank = meanings[i].rank;
		out->is_arg = false;
		key = meanings[i].field ? meanings[i].field : name;
		break;
	}
	f = kind_field(kind, key, strlen(key));
	if (f) {
		out->attr.unit = f->unit;
		out->is_arg = f->place == PLACE_ARG;
	}
	return import_name(to, key, strlen(key), &out->attr.key, err);
}

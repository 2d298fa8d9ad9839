/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cuda.h - the stub driver (libcuda.so.1) and runtime (libcudart.so.N): what a program sees.
 *
 * Both export the names of the real ones, for a program that is linked to them; no header of CUDA
 * is needed.  Handles are pointers to what only the stub knows, named as in cuda.h.  The GPU is a
 * clock: work of a stream runs in order, and ends when CLOCK_REALTIME says so.  cuInit() does what
 * the real one does for CUDA_INJECTION64_PATH.
 *
 * Behind the scenes every call and every piece of work is a `struct fake_fact`; a library that
 * watches (the stand-in of CUPTI, one or more copies of it) is told each of them on the thread that
 * makes it.  With nobody watching a launch costs some 100 ns.
 *
 * Environment: FAKE_CUDA_DEVICES (default 1), FAKE_CUDA_NAME, FAKE_CUDA_INIT_FAILS (a CUresult).
 */
#ifndef TESTS_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_H

#include "tests/fake/fake_fact.h"

#include <stddef.h>

/* Of work on a stream; 0 where not said: 4 us, stream 0 of device 0. */
struct fake_work {
	const char *name;
	uint64_t duration_ns, bytes;
	uint32_t grid[3], block[3];
	uint32_t registers, static_shared, dynamic_shared, local;
};

struct CUstream_st;
struct CUevent_st;
struct CUctx_st;
struct CUgraph_st;
struct CUgraphExec_st;

/*
 * Driver API: names, results and meaning of the real one, as far as it goes.  Where cuda.h was
 * included before, its declarations are the ones.
 */
#ifndef __cuda_cuda_h__
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int length, int device);
int cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device);
int cuCtxSetCurrent(struct CUctx_st *context);
int cuCtxGetCurrent(struct CUctx_st **context);
int cuCtxSynchronize(void);
int cuStreamCreate(struct CUstream_st **stream, unsigned flags);
int cuStreamSynchronize(struct CUstream_st *stream);
int cuStreamQuery(struct CUstream_st *stream);
/* Work on the stream becomes nodes of a graph, which is known when it ends. */
int cuStreamBeginCapture_v2(struct CUstream_st *stream, int mode);
int cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph);
int cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags);
int cuEventCreate(struct CUevent_st **event, unsigned flags);
int cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream);
int cuEventQuery(struct CUevent_st *event);
int cuEventSynchronize(struct CUevent_st *event);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemAllocAsync(uint64_t *address, size_t bytes, struct CUstream_st *stream);
int cuMemFreeAsync(uint64_t address, struct CUstream_st *stream);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, struct CUstream_st *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct CUstream_st *stream);
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, struct CUstream_st *stream);
int cuMemcpyPeerAsync(uint64_t to, struct CUctx_st *to_context, uint64_t from,
		      struct CUctx_st *from_context, size_t bytes, struct CUstream_st *stream);
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, struct CUstream_st *stream);
/* `function` is its name: there are no modules. */
int cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		   unsigned by, unsigned bz, unsigned shared, struct CUstream_st *stream,
		   void **params, void **extra);
struct CUlaunchConfig_st {
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	struct CUstream_st *hStream;
	void *attrs;
	unsigned numAttrs;
};
int cuLaunchKernelEx(const struct CUlaunchConfig_st *config, const char *function, void **params,
		     void **extra);
int cuGraphCreate(struct CUgraph_st **graph, unsigned flags);
int cuGraphInstantiateWithFlags(struct CUgraphExec_st **exec, struct CUgraph_st *graph,
				uint64_t flags);
int cuGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *stream);
int cuProfilerStart(void);
int cuProfilerStop(void);
#endif

/* ---- runtime API (libcudart), each around its call of the driver ---- */
int cudaGetDevice(int *device);
int cudaSetDevice(int device);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaStreamIsCapturing(struct CUstream_st *stream, int *status);
int cudaStreamBeginCapture(struct CUstream_st *stream, int mode);
int cudaStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph);
int cudaLaunchKernel(const void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		     unsigned by, unsigned bz, void **args, size_t shared,
		     struct CUstream_st *stream);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, struct CUstream_st *stream);
int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
			struct CUstream_st *stream);
int cudaMemsetAsync(void *to, int value, size_t bytes, struct CUstream_st *stream);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaStreamSynchronize(struct CUstream_st *stream);
int cudaStreamQuery(struct CUstream_st *stream);
int cudaDeviceSynchronize(void);
int cudaEventRecord(struct CUevent_st *event, struct CUstream_st *stream);
int cudaEventSynchronize(struct CUevent_st *event);
int cudaStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags);
int cudaGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *stream);
int cudaProfilerStart(void);
int cudaProfilerStop(void);

/* ---- what the real ones do not have ---- */

/* The next work that this thread launches; members that are 0 keep their defaults. */
void fake_cuda_next(const struct fake_work *work);
/* A node of a graph: FACT_KERNEL, FACT_COPY or FACT_SET. */
void fake_cuda_node(struct CUgraph_st *graph, enum fake_fact_type type,
		    const struct fake_work *work);
/* Tells a fact of this thread's context: FACT_JIT, FACT_OVERHEAD, FACT_POOL, FACT_EXPAND ... */
void fake_cuda_tell(const struct fake_fact *fact);
/* Brackets of one call; libcudart's way in.  The outermost gives the correlation id. */
uint64_t fake_cuda_enter(uint32_t domain, uint32_t cbid);
int fake_cuda_leave(uint32_t domain, uint32_t cbid, uint64_t begin_ns, int result);
/* By which numbers CUPTI knows them; stream NULL: the default one. */
uint32_t fake_cuda_context_id(const struct CUctx_st *context);
uint32_t fake_cuda_stream_id(const struct CUctx_st *context, const struct CUstream_st *stream);
/* Calls and work so far: the truth that a log is held against.  Index: enum fake_fact_type. */
uint64_t fake_cuda_count(unsigned type);
/* Calls of one function so far. */
uint64_t fake_cuda_calls(uint32_t domain, uint32_t cbid);

#endif

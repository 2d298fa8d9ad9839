/* SPDX-License-Identifier: Apache-2.0 */
/* The stub runtime: each function around its call of the stub driver, with one correlation id. */
#include "tests/fake/fake_cuda.h"

#include <pthread.h>

static _Thread_local struct CUctx_st *current;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void initialize(void)
{
	cuInit(0);
}

static uint64_t enter(uint32_t cbid)
{
	uint64_t begin_ns;

	pthread_once(&once, initialize);
	begin_ns = fake_cuda_enter(FAKE_RUNTIME, cbid);
	if (!current) {
		cuDevicePrimaryCtxRetain(&current, 0);
		cuCtxSetCurrent(current);
	}
	return begin_ns;
}

/* `call` is evaluated inside the bracket of the runtime's function. */
#define WRAP(number, call)                                                                         \
	do {                                                                                       \
		uint64_t begin_ns = enter(number);                                                 \
		int result = (call);                                                               \
		return fake_cuda_leave(FAKE_RUNTIME, (number), begin_ns, result);                  \
	} while (0)

int cudaGetDevice(int *device)
{
	*device = 0;
	WRAP(17, 0);
}

static int set_device(int device)
{
	int rc = cuDevicePrimaryCtxRetain(&current, device);

	return rc ? rc : cuCtxSetCurrent(current);
}

int cudaSetDevice(int device)
{
	WRAP(16, set_device(device));
}

int cudaGetLastError(void)
{
	WRAP(10, 0);
}

int cudaPeekAtLastError(void)
{
	WRAP(11, 0);
}

int cudaStreamIsCapturing(struct CUstream_st *stream, int *status)
{
	*status = 0;
	WRAP(317, 0);
}

int cudaStreamBeginCapture(struct CUstream_st *stream, int mode)
{
	WRAP(315, cuStreamBeginCapture_v2(stream, mode));
}

int cudaStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph)
{
	WRAP(319, cuStreamEndCapture(stream, graph));
}

int cudaLaunchKernel(const void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		     unsigned by, unsigned bz, void **args, size_t shared,
		     struct CUstream_st *stream)
{
	WRAP(211, cuLaunchKernel(function, gx, gy, gz, bx, by, bz, (unsigned)shared, stream, args,
				 NULL));
}

static int copy(void *to, const void *from, size_t bytes, int kind, struct CUstream_st *stream)
{
	switch (kind) {
	case 1:
		return cuMemcpyHtoDAsync_v2((uintptr_t)to, from, bytes, stream);
	case 2:
		return cuMemcpyDtoHAsync_v2(to, (uintptr_t)from, bytes, stream);
	default:
		return cuMemcpyDtoDAsync_v2((uintptr_t)to, (uintptr_t)from, bytes, stream);
	}
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, struct CUstream_st *stream)
{
	WRAP(41, copy(to, from, bytes, kind, stream));
}

static int copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes,
		     struct CUstream_st *stream)
{
	struct CUctx_st *t, *f;

	if (cuDevicePrimaryCtxRetain(&t, to_device) || cuDevicePrimaryCtxRetain(&f, from_device))
		return 101;
	return cuMemcpyPeerAsync((uintptr_t)to, t, (uintptr_t)from, f, bytes, stream);
}

int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
			struct CUstream_st *stream)
{
	WRAP(161, copy_peer(to, to_device, from, from_device, bytes, stream));
}

int cudaMemsetAsync(void *to, int value, size_t bytes, struct CUstream_st *stream)
{
	WRAP(51, cuMemsetD8Async((uintptr_t)to, (unsigned char)value, bytes, stream));
}

static int allocate(void **address, size_t bytes)
{
	uint64_t at = 0;
	int rc = cuMemAlloc_v2(&at, bytes);

	*address = (void *)(uintptr_t)at;
	return rc;
}

int cudaMalloc(void **address, size_t bytes)
{
	WRAP(20, allocate(address, bytes));
}

int cudaFree(void *address)
{
	WRAP(22, cuMemFree_v2((uintptr_t)address));
}

int cudaStreamSynchronize(struct CUstream_st *stream)
{
	WRAP(131, cuStreamSynchronize(stream));
}

int cudaStreamQuery(struct CUstream_st *stream)
{
	WRAP(132, cuStreamQuery(stream));
}

int cudaDeviceSynchronize(void)
{
	WRAP(165, cuCtxSynchronize());
}

int cudaEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
	WRAP(135, cuEventRecord(event, stream));
}

int cudaEventSynchronize(struct CUevent_st *event)
{
	WRAP(137, cuEventSynchronize(event));
}

int cudaStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags)
{
	WRAP(147, cuStreamWaitEvent(stream, event, flags));
}

int cudaGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	WRAP(311, cuGraphLaunch(exec, stream));
}

int cudaProfilerStart(void)
{
	WRAP(171, cuProfilerStart());
}

int cudaProfilerStop(void)
{
	WRAP(172, cuProfilerStop());
}

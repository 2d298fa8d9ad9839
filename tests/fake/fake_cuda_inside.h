/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cuda_inside.h - between the files of the stub driver; its lock is taken by none of these. */
#ifndef TESTS_FAKE_CUDA_INSIDE_H
#define TESTS_FAKE_CUDA_INSIDE_H

#include "tests/fake/fake_cuda.h"

#include <stdatomic.h>

enum { QUEUE = 1024 };
struct CUstream_st {
	_Atomic uint64_t queue[QUEUE]; /* when its last works end */
	_Atomic uint64_t queued;
	_Atomic(struct CUstream_st *) next;
	uint32_t id, flag;
	_Atomic uint64_t free_ns; /* when its last work ends */
	struct CUctx_st *context;
	struct CUgraph_st *capture; /* of the thread that began it; NULL: work is done */
};
struct CUctx_st {
	uint32_t id, device;
	_Atomic uint32_t streams; /* the id that the next one gets */
	struct CUstream_st null;  /* the default stream; the others follow it */
};
struct CUevent_st {
	uint32_t id;
	_Atomic uint64_t seq, done_ns;
};

uint64_t fake_cuda_now(void);
bool fake_cuda_ready(void);
bool fake_cuda_is_traced(void);
/* The calling thread's; made when there is none. */
struct CUctx_st *fake_cuda_context(void);
void fake_cuda_set_context(struct CUctx_st *context);
/* NULL: no such device. */
struct CUctx_st *fake_cuda_primary(uint32_t device);
/* Puts work on a stream; fills in its times, and what fake_cuda_next() said. */
void fake_cuda_work(struct CUstream_st *stream, struct fake_fact *fact);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_train.h - between the files of fake_train: its options, a thread of it, and what it does as
 * tests/gpu/known.cu does (fake_train_known.c).
 */
#ifndef TESTS_FAKE_FAKE_TRAIN_H
#define TESTS_FAKE_FAKE_TRAIN_H

#include "tests/fake/fake_cuda.h"

#include <time.h>

/* clang-format off */
#define OPTIONS(X) \
	X(threads, 1, "threads that launch") \
	X(streams, 1, "streams of each thread") \
	X(devices, 1, "thread i uses device i modulo this (FAKE_CUDA_DEVICES)") \
	X(steps, 10, "") \
	X(kernels, 20, "kernels of a step") \
	X(copies, 2, "copies to the device of a step; one comes back if there are any") \
	X(sets, 1, "") \
	X(peers, 0, "copies from device 0 to device 1") \
	X(graphs, 0, "launches of a graph of 3 kernels, 1 copy, 1 set") \
	X(allocs, 1, "allocations and releases") \
	X(events, 1, "events recorded and waited for") \
	X(polls, 3, "cudaGetLastError, cudaGetDevice, cudaStreamIsCapturing in turn") \
	X(others, 0, "once a step: JIT, overhead (two kinds), a pool, a decompression") \
	X(drives, 0, "kernels of a step that the driver launches, without the runtime") \
	X(drives_from, 0, "the first step that has these") \
	X(drives_ex, 0, "the same by cuLaunchKernelEx") \
	X(externals, 0, "kernels of a step under an id that CUPTI was given") \
	X(jits, 0, "modules that a thread has compiled at first") \
	X(lazies, 0, "kernels at first, each of which is loaded then") \
	X(pools, 0, "pools that a step makes, uses, trims and destroys") \
	X(expands, 0, "decompressions of a step") \
	X(queries, 0, "queries of an event and of a stream in each step, after its kernels") \
	X(tool_from, 0, "another tool records from this step ...") \
	X(tool_to, 0, "... to this one; its callbacks and its clock stay") \
	X(sync, 1, "1: a step ends with a wait for its streams") \
	X(names, 8, "different kernel names") \
	X(shapes, 1, "grids of each name, which follow on each other") \
	X(name_bytes, 0, "length of each, padded as C++ would") \
	X(nccl, 0, "1: the first kernel is one of NCCL's") \
	X(wild, 0, "1: names hold bytes that are not UTF-8, quotes, control characters") \
	X(duration_ns, 4000, "of a kernel") \
	X(named, 0, "NVTX names streams, device and thread; 1: at first, 2: in the middle") \
	X(again, 0, "1: the injected library is initialized again: by two threads, at the exit") \
	X(known, 0, "1: it tells what it did in the words of tests/gpu/known.cu") \
	X(rate, 0, "launches per second and thread; 0: as fast as it goes") \
	X(early, 0, "1: a step is marked before the first call of CUDA") \
	X(before_ms, 0, "sleep before the first call of CUDA") \
	X(step_us, 0, "sleep in each step") \
	X(flush, 0, "after so many steps, again and again, it waits for the recorder") \
	X(after_ms, 0, "sleep after the last step") \
	X(no_cuda, 0, "1: no call of CUDA at all") \
	X(profiler, 0, "1: cudaProfilerStart and -Stop round the middle half of the steps") \
	X(churn, 0, "1: each thread ends and is replaced in the middle, its buffer half full") \
	X(fork, 0, "1: forks in the middle, the child exits; 2: by _exit; 3, 4: execs true, printenv") \
	X(second, 0, "1: loads another copy of CUPTI in the middle: FAKE_TRAIN_SECOND is its path") \
	X(unload, 0, "1: tries to dlclose the injected library in the middle") \
	X(exit, 0, "exit code") \
	X(quick, 0, "1: ends by _exit, 2: by exit from a thread, others running") \
	X(kill, 0, "signal that it sends itself after the last step")
/* clang-format on */

extern struct options {
#define X(name, value, help) long name;
	OPTIONS(X)
#undef X
} o;

enum { ALLOC_BYTES = 261 * 512 }; /* as known.cu has it: nobody else allocates so many */
/* Numbers of facts: of a JIT, of a pool, of an overhead. */
enum {
	COMPILED = 3,
	MADE = 1,
	DESTROYED = 2,
	TRIMMED = 3,
	LAZY_LOADING = 5 << 16,
	FULL_BUFFER = 6 << 16
};

struct worker {
	long number;
	struct CUstream_st *streams[64];
	struct CUevent_st *event;
	struct CUgraphExec_st *exec;
	struct timespec next;
	unsigned long externals;
};

static inline struct CUstream_st *stream(const struct worker *w, long i)
{
	return w->streams[i % o.streams];
}

void launch(struct worker *w, long i);
/* The other tool; kernels that it was given. */
void tool_begins(void);
void tool_ends(void);
unsigned long tool_count(void);
/* A fact that has a number and nothing else. */
void tell_fact(const struct worker *w, enum fake_fact_type type, uint64_t number);
/* The graph, by capturing a stream.  Before the first step, and in each. */
void capture_as_known(struct worker *w);
void begin_as_known(struct worker *w);
void step_as_known(struct worker *w, long step);
/* In the words of known.cu. */
void tell_as_known(uint64_t before_ns, uint64_t after_ns);

#endif

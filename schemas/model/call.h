/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - what a call of the runtime or driver of CUDA or HIP does, according to its name.
 *
 * No other file interprets names of calls; readers, stages, sinks and reports all use this one.  A
 * version or stream suffix of the name does not matter, and a name need not end with a NUL.  The
 * functions have no state; callers that need them for every event should cache the results by name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum call_trait {
	/* The call puts work on a stream that a trace shows as GPU work: kernels, a graph, a copy
	 * or a memset.  Host functions that a stream runs do not count. */
	CALL_LAUNCHES = 1 << 0,
	CALL_LAUNCHES_KERNELS = 1 << 1, /* that work is a kernel, or the kernels of a graph */
	CALL_LAUNCHES_GRAPH = 1 << 2,
	CALL_COPIES = 1 << 3,
	CALL_IS_ASYNC = 1 << 4,   /* the name says that the call returns before its work is done */
	CALL_WAITS = 1 << 5,      /* the calling thread waits for work of the GPU */
	CALL_ALLOCATES = 1 << 6,  /* allocates, maps or frees memory of the driver */
	CALL_LOADS_CODE = 1 << 7, /* loads, links or compiles code for the GPU */
	/* Kineto begins an arrow ("ac2g") here: at calls that launch, and at some calls that
	 * wait. */
	CALL_BEGINS_ARROW = 1 << 8,
	/* The call creates a stream or context, or looks up a function of a module: the first such
	 * calls of a process start the driver or load code. */
	CALL_SETS_UP = 1 << 9,
};
/* Returns the traits of a call, or-ed. */
unsigned call_traits(const char *name, size_t len);
/* Returns the same for a call with a class (enum api_class), whose name may be that of its work. */
unsigned call_class_traits(unsigned api_class, const char *name, size_t len);
/* Returns whether the traits include CALL_LAUNCHES.  This is faster than call_traits(), because
 * importers call it for every call. */
bool call_launches(const char *name, size_t len);

/*
 * Returns the length of name[0..len) without the version in which CUDA introduced the call: that of
 * "cudaMalloc" for CUPTI's "cudaMalloc_v3020".  "_v2" stays, because it is another function.
 */
size_t call_name_length(const char *name, size_t len);

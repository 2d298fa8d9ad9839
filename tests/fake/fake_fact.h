/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_fact.h - what the stub driver tells those that watch it: every call, every piece of work.
 *
 * A watcher is called on the thread that makes the fact; what a fact points to is borrowed until it
 * returns, but for the name of a kernel, which lives as long as the program.
 */
#ifndef TESTS_FAKE_FACT_H
#define TESTS_FAKE_FACT_H

#include <stdbool.h>
#include <stdint.h>

enum fake_fact_type {
	FACT_ENTER,    /* domain, cbid, correlation, depth, begin_ns */
	FACT_LEAVE,    /* the same and end_ns, result */
	FACT_KERNEL,   /* on a stream: begin_ns, end_ns, name, grid ... */
	FACT_COPY,     /* number: kind of copy; from, to: kinds of memory; bytes */
	FACT_PEER,     /* a copy from from_device to to_device */
	FACT_SET,      /* number: value; to: kind of memory; bytes */
	FACT_GRAPH,    /* a launch of a graph as a whole, before its nodes */
	FACT_EXPAND,   /* decompression: number: operations; bytes */
	FACT_SYNC,     /* number: type (1 event, 2 stream waits, 3 stream, 4 context); event, seq */
	FACT_EVENT,    /* a CUDA event was recorded: event, seq */
	FACT_MEMORY,   /* number: 1 allocated, 2 released; address, bytes, to; pool or 0 */
	FACT_POOL,     /* number: 1 created, 2 destroyed, 3 trimmed; address, bytes */
	FACT_JIT,      /* number: operation (1 load, 2 store, 3 compile); name: path; bytes */
	FACT_OVERHEAD, /* number: CUpti_ActivityOverheadKind */
	FACT_DEVICE,   /* also by fake_cuda_list() */
	FACT_CONTEXT,  /* also by fake_cuda_list() */
	FACT_QUERY,    /* as FACT_SYNC, of a query; result: 600 while it is not done */
	FACT_STREAM,   /* number: flag; also by fake_cuda_list() */
};

enum { FAKE_DRIVER = 1, FAKE_RUNTIME = 2 }; /* CUPTI's numbers of domains */
enum { FAKE_NONE = 0xFFFFFFFF };

/* Times are CLOCK_REALTIME.  What a type does not need is 0. */
struct fake_fact {
	enum fake_fact_type type;
	uint32_t domain, cbid, correlation, depth, result;
	uint32_t device, context, stream;
	uint64_t begin_ns, end_ns;
	const char *name;
	uint64_t bytes, address, number, seq, pool;
	uint32_t grid[3], block[3];
	uint32_t registers, static_shared, dynamic_shared, local;
	uint32_t from, to, from_device, from_context, to_device, to_context;
	uint32_t graph, event;
	uint64_t node; /* of a graph; the work has no call of its own */
	bool async;
	bool untraced; /* the graph was made before anybody traced: nodes are less known */
};

typedef void (*fake_watch)(const struct fake_fact *fact);
/* Up to four; false: no room.  `off` waits until nobody is inside. */
bool fake_cuda_watch(fake_watch watch, bool on);
/* All devices, contexts and streams that there are. */
void fake_cuda_list(fake_watch watch);
/* Somebody traces work now; graphs made while nobody does are `untraced`. */
void fake_cuda_tracing(bool on);

#endif

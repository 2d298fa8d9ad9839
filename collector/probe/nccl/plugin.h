/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.h - NCCL's interface for profiler plugins, from NCCL 2.23 to 2.31 (versions 1 to 7 of the
 * interface), and the offsets of the members of an event's descriptor.
 *
 * Everything that NCCL passes is borrowed for the call.  Results are ncclResult_t; 0 is success,
 * and no other value is ever returned, because a failure of ours must not affect NCCL.
 */
#pragma once

#include <stdint.h>
#include <string.h>

enum nccl_event_type { /* bits of the mask of events that NCCL shall report */
		       NCCL_COLLECTIVE = 1 << 1,
		       NCCL_POINT = 1 << 2,
		       NCCL_PROXY_OP = 1 << 3,
		       NCCL_PROXY_STEP = 1 << 4,
		       NCCL_KERNEL_CHANNEL = 1 << 6, /* from version 3 on */
		       NCCL_KERNEL_LAUNCH = 1 << 11, /* from version 5 on */
		       NCCL_COPY_ENGINE = 1 << 12,   /* a collective; from version 6 on */
};
enum nccl_state { /* states of a proxy step: what it begins to wait for */
		  NCCL_SEND_GPU = 8,
		  NCCL_SEND_NETWORK = 9,
		  NCCL_RECEIVE_NETWORK = 10,
		  NCCL_RECEIVE_FLUSH = 11,
		  NCCL_RECEIVE_GPU = 12,
		  NCCL_SEND_PEER = 20,
		  NCCL_CHANNEL_STOP = 22, /* state of a kernel channel */
};

/* Offsets in the descriptors of a proxy operation and a kernel channel, in all versions that have
 * them. */
enum {
	NCCL_AT_PARENT = 8,
	NCCL_AT_RANK = 16,
	NCCL_AT_PID = 24,
	NCCL_AT_OP_CHANNEL = 28,
	NCCL_AT_PEER = 32,
	NCCL_AT_STEPS = 36,
	NCCL_AT_IS_SEND = 44,
	NCCL_AT_CHANNEL = 24,
	NCCL_AT_TIMER = 32, /* GPU timer in ns; from version 4 on */
};

enum nccl_wait { WAIT_GPU, WAIT_PEER, WAIT_NETWORK, WAITS };
/* The recorded fields of an event.  Texts are ids of texts.h; 0: none. */
struct nccl_fields {
	uint64_t communicator, sequence, function, bytes, type, algorithm, protocol, channels,
		warps, ranks, rank, root, from, to;
	uint64_t channel, gpu_begin_ns, gpu_ns, took_ns, steps, waits[WAITS];
};

static inline uint64_t nccl_u64(const uint8_t *d, unsigned at)
{
	uint64_t v;

	memcpy(&v, d + at, sizeof(v));
	return v;
}

static inline uint64_t nccl_rank(const uint8_t *d, unsigned at)
{
	int32_t v;

	memcpy(&v, d + at, sizeof(v));
	return v < 0 ? 0 : (uint64_t)v;
}

/* Reads the fields of an event of type NCCL_COLLECTIVE, NCCL_POINT or NCCL_COPY_ENGINE; missing
 * ones are 0. */
struct nccl_fields nccl_read_call(int version, const uint8_t *descriptor, uint64_t type);

/* The functions of a plugin.  Only init() has other arguments in versions 1 to 3, in 4, and
 * later. */
struct nccl_profiler {
	const char *name;
	void *init;
	int (*start)(void *context, void **handle, const void *descriptor);
	int (*stop)(void *handle);
	int (*record_state)(void *handle, int state, const uint64_t *argument);
	int (*finalize)(void *context);
	void *later[4]; /* NULL: functions that some NCCLs have added to version 7 */
};

/* Tells NCCL that a window has begun or ended; called before the thread that has changed it
 * continues. */
void nccl_window_changed(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - how a process fares on its host, by /proc: nothing of it is needed but its number.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* name, unit, meaning */
/* clang-format off */
#define HEALTH_HOST(X)                                                                             \
	X(processor_share, PERCENT, "of one processor, since the sample before; above 100: threads") \
	X(runnable_wait, PERCENT, "time in which the first thread could have run and did not")     \
	X(page_faults, COUNT, "that read from a disk, since the sample before")                    \
	X(memory_pressure, PERCENT, "time in which some process of the host waited for memory")
/* clang-format on */
enum health_host {
#define X(name, unit, meaning) HEALTH_##name,
	HEALTH_HOST(X)
#undef X
		HEALTH_HOST_COUNT,
};

struct host_values {
	double value[HEALTH_HOST_COUNT];
	uint64_t known; /* bit of enum health_host */
};
/* What was read before; zeroed at first. */
struct host_state {
	uint64_t sampled_ns, processor_ns, wait_ns, faults;
};
void health_host_sample(struct host_state *state, const char *proc, uint64_t now_ns,
			struct host_values *out);

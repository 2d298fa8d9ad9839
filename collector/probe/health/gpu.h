/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - how a GPU is: clocks, power, temperature, what holds its clock down, links, errors and,
 * from Hopper on, what its units do.
 *
 * Only the driver's libnvidia-ml.so.1 is loaded, and no context is made.  Of each figure the
 * function is optional: what the driver or the GPU does not tell is not there.  A GPU is known by
 * its UUID, so any process of the machine may sample it.  The memory probe asks here, too.  State
 * is static; one thread at a time.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct config;

enum { HEALTH_GPUS = 64, HEALTH_UUID = 96, HEALTH_NAME = 96 };
/* name, unit (records.h), meaning; those after `sm_clock_max` do not change while a GPU is there */
/* clang-format off */
#define HEALTH_GPU(X)                                                                              \
	X(sm_clock, MHZ, "of the multiprocessors")                                                 \
	X(memory_clock, MHZ, "of its memory")                                                      \
	X(power, WATT, "now")                                                                      \
	X(temperature, CELSIUS, "of the chip")                                                     \
	X(clock_limits, NONE, "what holds the clock down: bits of NVML's clocks event reasons")    \
	X(gpu_utilization, PERCENT, "time with a kernel, by the driver's own sampling")            \
	X(memory_utilization, PERCENT, "time with memory traffic, by the same")                       \
	X(pcie_sent_per_s, BYTES, "since the sample before")                                       \
	X(pcie_received_per_s, BYTES, "since the sample before")                                   \
	X(nvlink_sent_per_s, BYTES, "of all links, since the sample before")                       \
	X(nvlink_received_per_s, BYTES, "of all links, since the sample before")                   \
	X(ecc_corrected, COUNT, "errors since the driver was loaded")                              \
	X(ecc_uncorrected, COUNT, "errors since the driver was loaded")                            \
	X(xid_errors, COUNT, "critical errors since the first sample")                             \
	X(sm_activity, PERCENT, "multiprocessors that had work")                                   \
	X(sm_occupancy, PERCENT, "warps of those that fit")                                        \
	X(tensor_activity, PERCENT, "time in which tensor cores worked")                           \
	X(dram_activity, PERCENT, "of the memory's bandwidth")                                     \
	X(pcie_width, COUNT, "lanes now")                                                          \
	X(pcie_generation, COUNT, "of the link now")                                               \
	X(sm_clock_max, MHZ, "the highest that the multiprocessors reach")                         \
	X(sm_clock_base, MHZ, "that the GPU keeps by default")                                     \
	X(power_limit, WATT, "that is enforced")                                                   \
	X(pcie_width_max, COUNT, "lanes that GPU and slot have")                                   \
	X(pcie_generation_max, COUNT, "that GPU and slot have")                                    \
	X(gpu_numa_node, NONE, "whose processors and memory are near to it")
/* clang-format on */
enum health_gpu {
#define X(name, unit, meaning) HEALTH_##name,
	HEALTH_GPU(X)
#undef X
		HEALTH_GPU_COUNT,
};

struct gpu_values {
	double value[HEALTH_GPU_COUNT];
	uint64_t known; /* bit of enum health_gpu */
};

/* ST_ABSENT: no driver, or it does not answer. */
enum status health_gpu_open(struct error *err);
/*
 * Number `n` of the GPUs that this process uses, for the functions below, and CUDA's number of it;
 * -1: there are no more.  CUPTI knows by their UUIDs in which the process has a context.  Where it
 * has not told for a while, though CUDA is alive, they are those that the process may see.
 */
int health_gpu_used(const struct config *c, unsigned n, uint32_t *id);
/* Number `n` of those that CUDA_VISIBLE_DEVICES names, else of all. */
int health_gpu_visible(const struct config *c, unsigned n);
/* Bytes in use by any process, without what the driver reserves where it tells that; false: none.
 */
bool health_gpu_memory(int gpu, uint64_t *used, uint64_t *total);
void health_gpu_name(int gpu, char out[HEALTH_NAME]);
void health_gpu_driver(char out[HEALTH_NAME]);
/* What is to be told now; rates need a sample before.  `now_ns`: any clock that does not step. */
void health_gpu_sample(int gpu, uint64_t now_ns, struct gpu_values *out);
/* The child of a fork must not use what the parent opened. */
void health_gpu_forget(void);

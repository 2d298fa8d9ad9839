/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - figures of a GPU: clocks, power, temperature, reasons that limit its clock, links, errors
 * and, from Hopper on, the activity of its units.
 *
 * Only the driver's libnvidia-ml.so.1 is loaded, and no context is created.  The function behind
 * each figure is optional: a figure that the driver or the GPU does not report is missing.  A GPU
 * is identified by its UUID, so any process of the machine may sample it.  The memory probe uses
 * these functions, too.  State is static; one thread at a time.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct config;

enum { HEALTH_GPUS = 64, HEALTH_UUID = 96, HEALTH_NAME = 96 };
/* X(name, unit (records.h), meaning).  The figures from `sm_clock_max` on do not change. */
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
	uint64_t known; /* one bit for each enum health_gpu */
};

/* Loads the driver's library.  ST_ABSENT: there is no driver, or it does not work. */
enum status health_gpu_open(struct error *err);
/*
 * Returns GPU number `n` of those that this process uses, for the functions below, and sets *id to
 * CUDA's number of it; -1: there are no more.  CUPTI reports by UUID in which GPUs the process has
 * a context.  If it has not reported any for a while although CUDA is in use, the GPUs are those
 * that the process can see.
 */
int health_gpu_used(const struct config *c, unsigned n, uint32_t *id);
/* Returns GPU number `n` of those in CUDA_VISIBLE_DEVICES, or of all if it is not set; -1: no
 * more. */
int health_gpu_visible(const struct config *c, unsigned n);
/* Gets the bytes in use by any process, without the driver's reserve if that is known, and all
 * bytes.  Returns false if they are not available. */
bool health_gpu_memory(int gpu, uint64_t *used, uint64_t *total);
void health_gpu_name(int gpu, char out[HEALTH_NAME]);
void health_gpu_driver(char out[HEALTH_NAME]);
/* Samples all figures; rates need a previous sample.  `now_ns` is of any clock that does not
 * step. */
void health_gpu_sample(int gpu, uint64_t now_ns, struct gpu_values *out);
/* Resets the state in the child of a fork, which must not use the parent's library handle. */
void health_gpu_forget(void);

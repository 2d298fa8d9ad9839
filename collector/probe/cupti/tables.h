/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - devices and contexts, from CUPTI's records of them.
 *
 * A device becomes a row of the log's device table, with Kineto's keys, of each log that is opened.
 * A context says which device its work is on.  State is static; writer thread only.
 */
#pragma once

#include "collector/probe/cupti/lib.h"

struct writer;

/* Key (Kineto's where it has one), member of CUpti_ActivityDevice4 and later, its place. */
#define CUPTI_DEVICE_NUMBERS(X)                                                                    \
	X("totalGlobalMem", globalMemorySize, 16, 8, BYTES)                                        \
	X("computeMajor", computeCapabilityMajor, 104, 4, NONE)                                    \
	X("computeMinor", computeCapabilityMinor, 108, 4, NONE)                                    \
	X("maxThreadsPerBlock", maxThreadsPerBlock, 76, 4, COUNT)                                  \
	X("regsPerBlock", maxRegistersPerBlock, 68, 4, COUNT)                                      \
	X("warpSize", numThreadsPerWarp, 32, 4, COUNT)                                             \
	X("sharedMemPerBlock", maxSharedMemoryPerBlock, 72, 4, BYTES)                              \
	X("numSms", numMultiprocessors, 44, 4, COUNT)                                              \
	X("sharedMemPerMultiprocessor", maxSharedMemoryPerMultiprocessor, 60, 4, BYTES)            \
	X("regsPerMultiprocessor", maxRegistersPerMultiprocessor, 64, 4, COUNT)                    \
	X("maxWarpsPerMultiprocessor", maxWarpsPerMultiprocessor, 52, 4, COUNT)                    \
	X("maxBlocksPerMultiprocessor", maxBlocksPerMultiprocessor, 56, 4, COUNT)                  \
	X("memoryBandwidthKBs", globalMemoryBandwidth, 8, 8, NONE)                                 \
	X("clockRateKHz", coreClockRate, 36, 4, NONE)                                              \
	X("l2CacheSize", l2CacheSize, 28, 4, BYTES)                                                \
	X("copyEngines", numMemcpyEngines, 40, 4, COUNT)                                           \
	X("eccEnabled", eccEnabled, 116, 4, FLAG)                                                  \
	X("migEnabled", isMigEnabled, 145, 1, FLAG)                                                \
	X("gpuInstanceId", gpuInstanceId, 152, 4, ID)                                              \
	X("computeInstanceId", computeInstanceId, 156, 4, ID)                                      \
	X("numaId", numaId, 180, 4, ID)

/* One record of CUPTI_DEVICE or CUPTI_CONTEXT. */
void cupti_tables_take(const struct cupti_lib *lib, uint32_t kind, const uint8_t *record);
/* Into the log that is open, as far as it has not got them. */
void cupti_tables_put(struct writer *w);
/* The device of a context; if it is not known, the only device there is, or NO_ID. */
uint32_t cupti_tables_device(uint32_t context);
void cupti_tables_note(uint32_t device, uint32_t context);
/* Device number `n` of those in which this process has a context: CUDA's id and "GPU-..."; false:
 * there are no more. */
bool cupti_tables_uuid(unsigned n, uint32_t *id, char uuid[48]);
void cupti_tables_forget(void);

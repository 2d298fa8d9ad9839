/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - devices and contexts, from CUPTI's records of them.
 *
 * A device becomes a row of the device table of each log, with Kineto's keys.  A context determines
 * the device of its work.  State is static; writer thread only.
 */
#pragma once

#include "collector/probe/cupti/lib.h"

struct writer;

/* X(key (Kineto's if it has one), member of CUpti_ActivityDevice4 and later, offset, bytes,
 * unit) */
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

/* Reads a record of CUPTI_DEVICE or CUPTI_CONTEXT. */
void cupti_tables_take(const struct cupti_lib *lib, uint32_t kind, const uint8_t *record);
/* Writes the devices to the open log if it does not have them. */
void cupti_tables_put(struct writer *w);
/* Returns the device of a context.  If it is unknown, returns the only device of all contexts, or
 * NO_ID. */
uint32_t cupti_tables_device(uint32_t context);
void cupti_tables_note(uint32_t device, uint32_t context);
/* Gets CUDA's id and the uuid ("GPU-...") of device number `n` of those in which this process has a
 * context; returns false if there are no more. */
bool cupti_tables_uuid(unsigned n, uint32_t *id, char uuid[48]);
void cupti_tables_forget(void);

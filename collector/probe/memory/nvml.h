/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.h - the memory of GPUs, from the driver's library, which is looked up at run time.
 *
 * Only libnvidia-ml.so.1 is loaded, never CUDA: no context is made, nothing is allocated on a
 * device.  A machine without a driver is not an error.  One thread at a time.
 */
#ifndef COLLECTOR_PROBE_MEMORY_NVML_H
#define COLLECTOR_PROBE_MEMORY_NVML_H

#include "schemas/base/status.h"

#include <stdbool.h>

struct config;

enum { NVML_DEVICES = 64, NVML_NAME = 96 };

/* What the process sees as CUDA devices 0, 1, ..., by CUDA_VISIBLE_DEVICES.  ST_ABSENT: none. */
enum status nvml_open(const struct config *config, struct error *err);
unsigned nvml_count(void);
/* Bytes in use on the device by all processes, and its size; false: no figure. */
bool nvml_memory(unsigned device, uint64_t *used, uint64_t *total);
/* "NVIDIA H200", and the driver's version, or "". */
void nvml_device_name(unsigned device, char out[NVML_NAME]);
void nvml_driver(char out[NVML_NAME]);
/* The child of a fork must not use what the parent opened; it may open its own. */
void nvml_forget(void);

#endif

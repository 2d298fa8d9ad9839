/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/internal.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
	int result;
	const char *text;
} results[] = {
	{ 8, "CUPTI has no memory left" },
	{ 14, "another tool records this process in a way that excludes ours: end it" },
	{ 15,
	  "no usable driver: nvidia-smi should work here; a container needs its GPU (--gpus all)" },
	{ 33, "the virtual GPU does not allow tracing: its host's administrator can" },
	{ 35, "the driver lets only administrators trace: load the nvidia module with "
	      "NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN" },
	{ 36, "an older profiling interface is in use in this process: do without that tool" },
	{ 38, "this CUPTI does not have the older profiling interface any more" },
	{ 39, "another tool traces this process (torch.profiler, Nsight, a debugger): end it, or "
	      "record "
	      "without it" },
	{ 40, "the virtual GPU does not allow tracing: its host's administrator can" },
	{ 41, "the GPU is in confidential computing mode, which forbids tracing" },
	{ 42, "this model of GPU does not allow tracing" },
	{ 43,
	  "this part of a GPU (MIG) does not allow tracing: use the whole GPU, or a newer driver" },
	{ 45, "the driver of this Windows host does not allow tracing under WSL: update it" },
	{ 999,
	  "no usable driver: nvidia-smi should work here; a container needs its GPU (--gpus all)" },
};

const char *cupti_result_message(const struct cupti_lib *lib, int result, char space[160])
{
	unsigned driver = cuda_driver_version();
	const char *name = NULL;
	char version[16];

	cupti_version_text(lib->api_version, version);
	/* "535" with a wheel of 12.8: nvidia-smi works, and CUPTI does not */
	if ((result == CUPTI_NOT_INITIALIZED || result == CUPTI_UNKNOWN) && driver &&
	    driver / 1000 * 100 + driver % 1000 / 10 <
		    (unsigned)(strtod(version, NULL) * 100 + 0.5)) {
		snprintf(space, 160,
			 "the driver is of CUDA %u.%u and CUPTI of CUDA %s: update the driver, or "
			 "use an older nvidia-cuda-cupti",
			 driver / 1000, driver % 1000 / 10, version);
		return space;
	}
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].result == result)
			return results[i].text;
	if (!lib->result_text || lib->result_text(result, &name) != CUPTI_OK || !name)
		name = "an unknown result";
	snprintf(space, 160, "CUPTI refuses: %s (%d)", name, result);
	return space;
}

static const struct {
	uint32_t from, to; /* cuptiGetVersion(), both inclusive */
	unsigned needs;    /* all of these */
	const char *text;
} faults[] = {
	{ 0, 17, 0, "CUPTI is older than CUDA 12.0: not tried" },
	{ 18, 23, FAULT_GRAPHS,
	  "CUPTI before CUDA 12.6 can crash or lose kernels of graphs that are "
	  "recorded by node: --graphs graph" },
	{ 24, 130001, FAULT_CLOCK,
	  "CUPTI before CUDA 13.1 may give kernels no times when another tool has "
	  "set its clock" },
	{ 130000, 130000, 0, "CUPTI of CUDA 13.0.0 can hang or crash: use that of 13.0 Update 1" },
	{ 18, 130100, FAULT_GRAPHS | FAULT_SECOND_WINDOW,
	  "CUPTI before CUDA 13.1 Update 1 may correlate graphs "
	  "wrongly from the second window on" },
	{ 130200, 130299, 0, "CUPTI of CUDA 13.2 makes each call slower than that of 13.3" },
};

const char *cupti_fault_message(uint32_t api_version, unsigned when, unsigned number)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (faults[i].from <= api_version && api_version <= faults[i].to &&
		    (faults[i].needs & ~when) == 0 && number-- == 0)
			return faults[i].text;
	return NULL;
}

bool cupti_can_finalize(uint32_t api_version)
{
	static const struct {
		uint32_t from, to;
	} good[] = { { 24, 28 }, { 130001, 139999 } }; /* 12.6 on; not the first 13.0 */

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (good[i].from <= api_version && api_version <= good[i].to)
			return true;
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti_library.h - a CUPTI that only walks, of several versions, for unit tests, fuzzing and the
 * benchmark.  Sizes of records are those of the real ones.
 */
#ifndef TESTS_UNIT_CUPTI_LIBRARY_H
#define TESTS_UNIT_CUPTI_LIBRARY_H

#include "collector/probe/cupti/lib.h"
#include "collector/session/clock.h"

#include <string.h>

struct library_version {
	uint32_t api;
	uint16_t sizes[CUPTI_KINDS];
};
enum { LIBRARY_12_4, LIBRARY_13_0, LIBRARY_13_4, LIBRARIES };
static const struct library_version libraries[LIBRARIES] = {
	{ 22,
	  { [1] = 88,
	    [2] = 88,
	    [4] = 40,
	    [5] = 40,
	    [8] = 184,
	    [9] = 24,
	    [10] = 208,
	    [17] = 56,
	    [22] = 96,
	    [36] = 24,
	    [37] = 24,
	    [38] = 40,
	    [39] = 24,
	    [49] = 120,
	    [50] = 72,
	    [51] = 56,
	    [52] = 72 } },
	{ 130001,
	  { [1] = 96,
	    [2] = 88,
	    [4] = 40,
	    [5] = 40,
	    [8] = 184,
	    [9] = 32,
	    [10] = 216,
	    [17] = 56,
	    [22] = 96,
	    [36] = 56,
	    [37] = 24,
	    [38] = 56,
	    [39] = 24,
	    [49] = 128,
	    [50] = 80,
	    [51] = 56,
	    [52] = 72,
	    [54] = 64,
	    [60] = 48 } },
	{ 130401, { [1] = 112, [2] = 104, [4] = 40, [5] = 40, [10] = 248, [38] = 56 } },
};
static const uint16_t *library_sizes; /* of the one that walks */

static inline int library_walk(uint8_t *bytes, size_t len, uint8_t **record)
{
	uint8_t *at = *record ? *record : bytes;
	uint32_t kind;

	memcpy(&kind, at, sizeof(kind));
	if (*record)
		at += library_sizes[kind];
	if (at >= bytes + len)
		return 12;
	*record = at;
	return 0;
}

static inline int library_realtime(uint64_t *ns)
{
	*ns = tick_clock_ns(CLOCK_REALTIME);
	return 0;
}

static inline int library_call_name(int domain, uint32_t cbid, const char **name)
{
	static const struct {
		int domain;
		uint32_t cbid;
		const char *name;
	} calls[] = { { CUPTI_RUNTIME, 211, "cudaLaunchKernel_v7000" },
		      { CUPTI_RUNTIME, 10, "cudaGetLastError_v3020" },
		      { CUPTI_DRIVER, 277, "cuMemcpyHtoDAsync_v2" } };
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].domain == domain && calls[i].cbid == cbid) {
			*name = calls[i].name;
			return 0;
		}
	return 1;
}

static inline void library_open(struct cupti_lib *lib, unsigned version)
{
	*lib = (struct cupti_lib){ .next_record = library_walk,
				   .api_version = libraries[version].api,
				   .callback_name = library_call_name };
	memcpy(lib->sizes, libraries[version].sizes, sizeof(lib->sizes));
	library_sizes = libraries[version].sizes;
}

#endif

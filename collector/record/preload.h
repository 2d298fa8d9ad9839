/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload.h - how libtacho.so comes into the command: the library's file, and the variables that
 * the command is started with.
 */
#ifndef COLLECTOR_RECORD_PRELOAD_H
#define COLLECTOR_RECORD_PRELOAD_H

#include "schemas/base/status.h"

#include <limits.h>

struct config;

/* `asked`, or where it is NULL the one beside the tool, as built, or in lib/ beside its bin/. */
enum status preload_find(const char *asked, char out[PATH_MAX], struct error *err);

/* What the user has set for other tools: NVTX's is left as it is; NULL: nothing. */
struct preload_others {
	const char *cuda, *nvtx; /* CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH; borrowed */
};
/* Sets our own environment, which the command inherits: settings, library, and tacho.py's folder.
 */
enum status preload_set(const struct config *c, const char *library, struct preload_others *others,
			struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serving.h - what a server says of a step in the annotation around it (DEFINITIONS.md 3).
 *
 * A request whose prompt is being read is in prefill; one that generates a token a step is in
 * decode. Stateless.
 */
#ifndef CONVERT_NAME_SERVING_H
#define CONVERT_NAME_SERVING_H

#include <stdbool.h>
#include <stdint.h>

enum { SERVING_UNKNOWN = UINT32_MAX };
struct serving_step {             /* SERVING_UNKNOWN where the annotation does not say it */
	uint32_t batch;           /* requests, or images */
	uint32_t padded;          /* requests with those that only fill up a graph's batch */
	uint32_t prefill, decode; /* requests of each kind */
	uint32_t tokens;          /* that are computed: prompts and one for each decode */
};
/* False: the name is none of a server's step. */
bool serving_step_of(const char *name, struct serving_step *out);

#endif

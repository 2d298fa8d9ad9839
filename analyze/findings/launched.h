/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launched.h - which ranges launched GPU work: matrix products with odd shapes, and FSDP's ranges.
 *
 * GPU work begins long after the operator that launched it, so the latest ranges of each host
 * thread are kept.
 */
#pragma once

#include "convert/stage/context/context.h"
#include "schemas/model/event.h"
#include "schemas/model/trace.h"

struct launched;
enum status launched_open(struct launched **out, const struct trace *trace, struct error *err);
void launched_close(struct launched *l); /* accepts NULL */
/* Adds a range of a host thread. Ranges come in the order of their begins. */
enum status launched_range(struct launched *l, const struct event *range, struct error *err);
/* Returns whether work was launched by an operator that multiplies 16-bit matrices whose rows, by
 * the recorded shapes and strides, do not begin at multiples of 8 elements (DEFINITIONS.md 8). */
bool launched_is_odd(const struct launched *l, const struct launch *launch);
/* Adds a copy to the GPU; `launch` may be NULL. */
void launched_copy(struct launched *l, uint32_t process, const struct event *copy,
		   const struct launch *launch);
/* Returns whether FSDP launches most bytes that a process copies to its GPUs. */
bool launched_offloads(const struct launched *l, uint32_t process);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launched.h - what GPU work was launched in: matrix products of odd shapes, and FSDP's ranges.
 *
 * GPU work comes long after the operator that launched it, so ranges of each host thread are kept
 * until then, of each thread the latest.
 */
#pragma once

#include "convert/stage/context/context.h"
#include "schemas/model/event.h"
#include "schemas/model/trace.h"

struct launched;
enum status launched_open(struct launched **out, const struct trace *trace, struct error *err);
void launched_close(struct launched *l); /* accepts NULL */
/* Ranges of host threads, in the order of their begins. */
enum status launched_range(struct launched *l, const struct event *range, struct error *err);
/* Whether an operator launched this that multiplies matrices of 16 bits whose rows, by the shapes
 * and strides that were recorded, do not begin at multiples of 8 elements (DEFINITIONS.md 8). */
bool launched_is_odd(const struct launched *l, const struct launch *launch);
/* A copy to the GPU; `launch` may be NULL. */
void launched_copy(struct launched *l, uint32_t process, const struct event *copy,
		   const struct launch *launch);
/* Whether FSDP launches most of what a process copies to its GPUs. */
bool launched_offloads(const struct launched *l, uint32_t process);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points.h - converts events to points of a replay, with the properties that edits select by.
 *
 * Points that no edit can distinguish have one kind. Kinds are numbered in the order in which they
 * appear. One input, one thread.
 */
#pragma once

#include "analyze/engine/report.h"
#include "analyze/replay/edit.h"

enum point_type { POINT_NONE, POINT_HOST, POINT_WORK };
struct point {
	enum point_type type;
	struct replay_host host;
	struct replay_work work;
};

struct points;
/* `globs` of places are borrowed; at most EDIT_PLACES. */
enum status points_open(struct points **out, const struct accumulator *f, const char *const *globs,
			size_t glob_count, struct error *err);
void points_close(struct points *p); /* accepts NULL */
/* Takes every event of the input, in order. out->type is POINT_NONE if it is no point. */
enum status points_take(struct points *p, struct accumulator *f, const struct event *e,
			struct point *out, struct error *err);
/* Returns what a kernel does; *is_batched: aten::bmm launched it. */
enum work points_work(struct points *p, struct accumulator *f, const struct event *e,
		      bool *is_batched);
bool points_offload(const struct points *p, uint32_t process);
/* The texts are valid as long as the points and the trace. */
const struct edit_kinds *points_kinds(const struct points *p);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points.h - events as points of a replay, and what edits may ask of them.
 *
 * Points that no edit can tell apart are of one kind; kinds are numbered in the order in which they
 * come.  One input, one thread.
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
/* `globs` of places are borrowed, at most EDIT_PLACES. */
enum status points_open(struct points **out, const struct accumulator *f, const char *const *globs,
			size_t glob_count, struct error *err);
void points_close(struct points *p); /* accepts NULL */
/* Every event of the input, in order. */
enum status points_take(struct points *p, struct accumulator *f, const struct event *e,
			struct point *out, struct error *err);
/* What a kernel does; *is_batched: aten::bmm launched it. */
enum work points_work(struct points *p, struct accumulator *f, const struct event *e,
		      bool *is_batched);
bool points_offload(const struct points *p, uint32_t process);
/* Its texts live as long as the points and the trace. */
const struct edit_kinds *points_kinds(const struct points *p);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the points of a rank as a text, which merges and is stored like any other figure, so that
 * edits can be replayed that are known only after all ranks were read.
 *
 * Kept are the first LOG_WINDOWS windows in the order of their keys, of the first ranks of a job
 * and of unknown ranks; of each the first LOG_MOST bytes, and of an input with several processes
 * LOG_INPUT_MOST.
 */
#pragma once

#include "analyze/report/replay/points.h"
#include "schemas/base/buf.h"

enum {
	LOG_MOST = 3 << 20, /* about 200,000 points */
	LOG_RANKS = 4,
	LOG_INPUT_MOST = LOG_RANKS * LOG_MOST,
	LOG_WINDOWS = 8,
	LOG_STEPS_MOST = REPLAY_STEPS_MAX / 2,
	LOG_FIRST = RANK_KEYS, /* distinguishes inputs */
	LOG_KEYS,
	LOG_PACKED = LOG_KEYS,
	LOG_STEPS, /* the counted steps */
};
extern const struct table_type table_replay_log;

struct log;
/* Makes one log for each process of an input. */
enum status logs_open(struct log **out, const struct accumulator *f, struct error *err);
enum status logs_put(struct log *all, struct accumulator *f, const struct points *points,
		     const struct event *e, const struct point *p, struct error *err);
enum status logs_end(struct log *all, struct accumulator *f, struct error *err);
void logs_close(struct log *all); /* accepts NULL */

/* ---- reading ----------------------------------------------------------------------------- */

struct log_reader;
/* `packed` is borrowed. If it is damaged, reading stops there and log_is_damaged() returns true. */
enum status log_open(struct log_reader **out, const char *packed, struct error *err);
void log_close(struct log_reader *r); /* accepts NULL */
/* Reads the next point; type POINT_NONE: there are no more. */
enum status log_take(struct log_reader *r, struct point *out, struct error *err);
bool log_is_damaged(const struct log_reader *r);
const struct edit_kinds *log_kinds(const struct log_reader *r);
/* Reads the steps; the caller frees *out. There are none if a text is damaged or `packed` has
 * another length than when it was written. */
enum status log_steps_take(const char *packed, const char *steps, struct replay_step **out,
			   size_t *count, struct error *err);

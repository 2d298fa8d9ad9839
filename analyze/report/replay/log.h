/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the points of a rank as a text, which merges and travels like any other figure, so that
 * edits can be replayed that are known only when all ranks have been read.
 *
 * The first ranks of a job are kept, of each the first LOG_MOST bytes.
 */
#ifndef ANALYZE_REPORT_REPLAY_LOG_H
#define ANALYZE_REPORT_REPLAY_LOG_H

#include "analyze/report/replay/points.h"
#include "schemas/base/buf.h"

enum {
	LOG_MOST = 3 << 20, /* some 200,000 points */
	LOG_RANKS = 4,
	LOG_FIRST = RANK_KEYS, /* tells inputs apart */
	LOG_KEYS,
	LOG_PACKED = LOG_KEYS,
	LOG_STEPS, /* the counted ones: twice as many numbers */
};
extern const struct table_type table_replay_log;

struct log;
/* One for each process of an input. */
enum status logs_open(struct log **out, const struct accumulator *f, struct error *err);
enum status logs_put(struct log *all, struct accumulator *f, const struct points *points,
		     const struct event *e, const struct point *p, struct error *err);
enum status logs_end(struct log *all, struct accumulator *f, struct error *err);
void logs_close(struct log *all); /* accepts NULL */

/* ---- reading ----------------------------------------------------------------------------- */

struct log_reader;
/* `packed` is borrowed and may be damaged: then it ends there. */
enum status log_open(struct log_reader **out, const char *packed, struct error *err);
void log_close(struct log_reader *r); /* accepts NULL */
/* type POINT_NONE: there is no more. */
enum status log_take(struct log_reader *r, struct point *out, struct error *err);
const struct edit_subject *log_kind(const struct log_reader *r, uint32_t kind);

#endif

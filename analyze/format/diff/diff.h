/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h - two runs: is B slower, and where the time went (DEFINITIONS.md 8).
 *
 * Per step and GPU each side is split into parts - work by class and phase of its launch, idle time
 * by cause, lead, tail - and one row closes what lies outside of the steps that the mean is taken
 * of.  Parts are made of owners (kernels, causes), each rounded to the nanosecond by itself; all
 * else is their sum, so the parts add up to the mean wall, and their differences to its
 * difference, exactly.
 */
#pragma once

#include "analyze/format/diff/stats.h"
#include "analyze/format/format.h"
#include "analyze/format/page/block.h"
#include "analyze/engine/number.h"
#include "schemas/base/buf.h"

struct diff_wall {                   /* of a step: the mean over the ranks that counted it */
	uint64_t number, occurrence; /* occurrence: windows may count from the same number */
	double wall_ns;
};
struct diff_side {
	const char *path; /* as given; borrowed */
	uint64_t inputs, ranks, gpus;
	uint64_t steps,
		window_steps; /* of all ranks: complete ones, and what parts are divided by */
	int64_t mean_ns;      /* wall of a step, rounded */
	int64_t window_ns;    /* per step and GPU: the parts without what closes */
	double deviation_ns, correlation, effective_steps;
	bool sampled, damaged;
	struct diff_series series; /* a value a step of the job */
	struct diff_wall *walls;   /* those values, series.count of them, by (occurrence, number) */
};
struct diff_times {
	int64_t a_ns, b_ns, difference_ns;
	int64_t size_ns; /* of the difference, without its sign */
};
struct diff_part {
	const char *class, *phase, *cause; /* phase or cause NULL: not of this class */
	struct diff_times ns;
};
struct diff_owner {
	const char *class, *phase, *name; /* of work: a kernel or copy */
	struct diff_times ns;
};
struct diff_place { /* where GPUs wait; texts may be NULL */
	const char *cause, *range, *python, *call;
	struct diff_times ns;
};
struct diff_step { /* that both sides have; size_ns: of what it differs from other steps by */
	uint64_t number;
	struct diff_times ns;
	bool is_apart; /* it changed by more than others */
};
enum { DIFF_VALUES = 160, DIFF_UNLIKES = 4 };
struct diff_unlike { /* not equal before any time is compared: GPUs, flags, what was recorded */
	const char *what;
	char a[DIFF_VALUES], b[DIFF_VALUES];
};
enum { DIFF_EDITS = 16 };
struct diff_edit { /* what one side has less of, taken from the other's replay */
	const char *edit, *of, *place; /* as in --what-if; "A" or "B"; of the model, or NULL */
	char text[64];                 /* what `edit` points to */
	struct diff_times ns;          /* the difference alone */
};
#define DIFF_UNCHANGED 0.0005 /* of A's mean step: below it a row did not change */
struct diff {                 /* texts are those of the tables that it was made of */
	struct diff_side a, b;
	struct diff_estimate estimate;
	double fail_over;
	struct diff_part *parts; /* what closes is the last one */
	size_t part_count;
	struct diff_owner *owners; /* the greatest differences first */
	size_t owner_count;
	struct diff_place *places; /* the greatest differences first */
	struct diff_place *model;  /* the same for work and waits by place in the model: `cause` is
				    * what work does, `range` the place */
	size_t place_count, model_count;
	struct diff_step *steps; /* in order */
	size_t step_count;
	struct diff_unlike unlikes[DIFF_UNLIKES];
	size_t unlike_count;
	struct diff_edit edits[DIFF_EDITS]; /* the greatest differences first */
	size_t edit_count;
	double replayed_ns, unexplained_ns; /* of the median steps that are replayed: their
					     * difference, and what of it no edit explains; NAN:
					     * steps could not be replayed */
};

/* What it is made of; ends with NULL. */
extern const struct report_type *const diff_reports[];

enum status diff_make(struct diff *d, struct tables *a, struct tables *b, double fail_over,
		      struct error *err);
void diff_release(struct diff *d);

const char *diff_verdict_word(enum diff_verdict verdict);
/* One sentence, with a full stop. */
enum { DIFF_SENTENCE = 320 };
void diff_sentence(const struct diff *d, char out[DIFF_SENTENCE]);

/* What most of the difference is, and a step that changed alone; "" if nothing is to be said. */
void diff_reason(const struct diff *d, char out[DIFF_SENTENCE]);
/* What the difference is by replay; "" if it is not known. */
void diff_edits_text(const struct diff *d, char out[DIFF_SENTENCE]);
enum { DIFF_PLACE = 240 };
void diff_place_text(const struct diff_place *p, char out[DIFF_PLACE]);
bool diff_is_unchanged(const struct diff *d, const struct diff_times *ns);

/* Parts of diff_make(). */
void diff_unlikes_take(struct diff *d, struct tables *a, struct tables *b);
enum status diff_steps_take(struct diff *d, struct error *err);
enum status diff_edits_take(struct diff *d, struct tables *a, struct tables *b, struct error *err);
enum status diff_places_take(struct diff *d, struct tables *a, struct tables *b, struct error *err);
/* A sum over all as a mean per step and GPU, rounded to the nanosecond. */
int64_t diff_mean(const struct diff_side *s, uint64_t ns);

void diff_times_add(struct diff_times *to, const struct diff_times *more);

/* The page for people; `how` says how wide it is and in which colours. */
enum status diff_put_page(const struct diff *d, enum medium medium,
			  const struct format_request *how, struct buf *out, struct error *err);
void diff_put_csv(const struct diff *d, struct buf *out);
void diff_put_json(const struct diff *d, struct buf *out);
void diff_put_schema(struct buf *out);
/* For those who build and test: a file of JUnit's, and a line that GitHub shows beside a change. */
void diff_put_junit(const struct diff *d, struct buf *out);
void diff_put_annotation(const struct diff *d, struct buf *out);

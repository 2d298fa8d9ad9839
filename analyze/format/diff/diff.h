/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h - compares two runs: is B slower, and where the time went (DEFINITIONS.md 8).
 *
 * Per step and GPU each side is split into parts - work by class and phase of its launch, idle time
 * by cause, lead, tail - and a closing part for time outside of the steps over which the mean is
 * taken. A part is the sum of its owners (kernels, causes), each of which is rounded to the
 * nanosecond. All other figures are sums of parts, so the parts add up to the mean wall time, and
 * their differences to its difference, exactly.
 */
#pragma once

#include "analyze/format/diff/stats.h"
#include "analyze/format/format.h"
#include "analyze/format/page/block.h"
#include "analyze/engine/number.h"
#include "schemas/base/buf.h"

struct diff_wall { /* wall time of a step: the mean over the ranks that counted it */
	/* occurrence: several windows may begin with the same number */
	uint64_t number, occurrence;
	double wall_ns;
};
struct diff_side {
	const char *path; /* as the user gave it; borrowed */
	uint64_t inputs, ranks, gpus;
	uint64_t steps, window_steps; /* of all ranks: complete steps; divisor of the parts */
	int64_t mean_ns;              /* mean length of a step, rounded */
	int64_t window_ns;            /* per step and GPU: the parts without the closing one */
	double deviation_ns, correlation, effective_steps;
	bool sampled, damaged;
	struct diff_series series; /* one value for each step of the job */
	struct diff_wall *walls;   /* the series.count values, by (occurrence, number) */
};
struct diff_times {
	int64_t a_ns, b_ns, difference_ns;
	int64_t size_ns; /* absolute value of difference_ns */
};
struct diff_part {
	const char *class, *phase, *cause; /* NULL: does not apply to this class */
	struct diff_times ns;
};
struct diff_row { /* the sums of both sides over rows with the same texts, which may be NULL */
	union {
		const char *texts[4];
		struct { /* for work: a kernel or copy */
			const char *class, *phase, *name;
		};
		struct { /* a place where GPUs wait */
			const char *cause, *range, *python, *call;
		};
	};
	struct diff_times ns;
};
struct diff_step { /* a step of both sides; size_ns: the deviation from other steps */
	uint64_t number;
	struct diff_times ns;
	bool is_apart; /* it changed by more than the others */
};
enum { DIFF_VALUES = 160, DIFF_UNLIKES = 4 };
struct diff_unlike { /* a setting that differs: GPUs, flags, recorded kinds */
	const char *what;
	char a[DIFF_VALUES], b[DIFF_VALUES];
};
enum { DIFF_EDITS = 16 };
struct diff_edit { /* what one side has less of, computed by the other's replay */
	/* as in --what-if; "A" or "B"; place in the model, or NULL */
	const char *edit, *of, *place;
	char text[64];        /* buffer for `edit` */
	struct diff_times ns; /* only difference_ns and size_ns are set */
};
#define DIFF_UNCHANGED 0.0005 /* share of A's mean step below which a row is unchanged */
struct diff {                 /* texts belong to the tables of both sides */
	struct diff_side a, b;
	struct diff_estimate estimate;
	double fail_over;
	struct diff_part *parts; /* the closing one is the last */
	size_t part_count;
	struct diff_row *owners; /* by descending difference */
	size_t owner_count;
	struct diff_row *places; /* by descending difference */
	/* the same for work and waits by place in the model: `cause` is the kind of work,
	 * `range` the place */
	struct diff_row *model;
	size_t place_count, model_count;
	struct diff_step *steps; /* in time order */
	size_t step_count;
	struct diff_unlike unlikes[DIFF_UNLIKES];
	size_t unlike_count;
	struct diff_edit edits[DIFF_EDITS]; /* by descending difference */
	size_t edit_count;
	/* difference of the replayed median steps, and the part that no edit explains; NAN: no
	 * replay */
	double replayed_ns, unexplained_ns;
};

/* The reports that a comparison needs; ends with NULL. */
extern const struct report_type *const diff_reports[];

enum status diff_make(struct diff *d, struct tables *a, struct tables *b, double fail_over,
		      struct error *err);
void diff_release(struct diff *d);

const char *diff_verdict_word(enum diff_verdict verdict);
/* Writes one sentence, with a full stop. */
enum { DIFF_SENTENCE = 320 };
void diff_sentence(const struct diff *d, char out[DIFF_SENTENCE]);

/* Describes most of the difference, and a step that changed alone; "" if there is nothing to
 * describe. */
void diff_reason(const struct diff *d, char out[DIFF_SENTENCE]);
/* Describes the difference by replay; "" if it is unknown. */
void diff_edits_text(const struct diff *d, char out[DIFF_SENTENCE]);
enum { DIFF_PLACE = 240 };
void diff_place_text(const struct diff_row *p, char out[DIFF_PLACE]);
bool diff_is_unchanged(const struct diff *d, const struct diff_times *ns);

/* These are called by diff_make(). */
void diff_unlikes_take(struct diff *d, struct tables *a, struct tables *b);
enum status diff_steps_take(struct diff *d, struct error *err);
enum status diff_edits_take(struct diff *d, struct tables *a, struct tables *b, struct error *err);
enum status diff_places_take(struct diff *d, struct tables *a, struct tables *b, struct error *err);
/* Sums up the rows of a table by the columns `texts` (NULL: no more), in the order of these texts.
 * The caller frees *out. */
enum status diff_rows_take(const struct diff *d, struct tables *a, struct tables *b,
			   const char *table, const char *const texts[4], struct diff_row **out,
			   size_t *count, struct error *err);
/* Sorts by descending difference. */
void diff_rows_sort(struct diff_row *rows, size_t count);
/* Converts a sum over all GPUs to a mean per step and GPU, rounded to the nanosecond. */
int64_t diff_mean(const struct diff_side *s, uint64_t ns);

void diff_times_add(struct diff_times *to, const struct diff_times *more);

/* Writes the page; `how` has its width and colours. */
enum status diff_put_page(const struct diff *d, enum medium medium,
			  const struct format_request *how, struct buf *out, struct error *err);
void diff_put_csv(const struct diff *d, struct buf *out);
void diff_put_json(const struct diff *d, struct buf *out);
void diff_put_schema(struct buf *out);
/* For CI systems: write a JUnit file, and a line that GitHub shows at a change. */
void diff_put_junit(const struct diff *d, struct buf *out);
void diff_put_annotation(const struct diff *d, struct buf *out);

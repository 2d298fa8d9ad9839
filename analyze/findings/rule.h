/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule.h - what to change first: rules over the figures of a run.
 *
 * A rule reads facts: means per step and GPU over all ranks.  If it applies, it describes in a
 * sentence what it found, and gives the time that it is about.  Savings overlap, so they do not
 * add up.  Thresholds are shares of a step.
 *
 * To add a rule: a row in the table of gpu.c, host.c, ranks.c (memory, steps, ranks) or health.c
 * (clocks, links), with the verdict's family; its labelled trace in labelled_findings.py.
 */
#pragma once

#include "analyze/engine/number.h"
#include "analyze/engine/report.h"
#include "analyze/model/peaks.h"
#include "convert/name/name.h"

#define OPERATORS_PREFIX "operators." /* prefix of operator categories, without a GPU */
#define BATCHED_WORK     "batched"    /* additional row for those kernels that aten::bmm launched */

/* What bounds a run; NONE: time that no change saves. The first finding has the verdict's
 * family. */
/* clang-format off */
#define FAMILY_LIST(X)                                                                             \
	X(NONE, "none") X(INPUT, "INPUT") X(HOST, "HOST") X(SYNC, "SYNC") X(COMPILE, "COMPILE")    \
	X(COMM, "COMM") X(COPY, "COPY") X(COMPUTE, "COMPUTE") X(UNBALANCED, "UNBALANCED")
/* clang-format on */
enum family {
#define X(name, word) FAMILY_##name,
	FAMILY_LIST(X)
#undef X
		FAMILY_COUNT,
};
extern const char *const family_words[FAMILY_COUNT];

/* What a job already uses, by names in its input; OFFLOAD by the ranges that launch copies. */
/* clang-format off */
#define TRAIT_LIST(X)                                                                              \
	X(GRAPHS, "graphs") X(CAPTURE, "capture") X(COMPILED, "compiled") X(FSDP, "fsdp")          \
	X(EXPERTS, "experts") X(FRAMES, "frames") X(VOLTA, "volta")                                \
	X(OFFLOAD, "offload") X(LOADER_ALONE, "loader_alone") X(LOADER_WORKERS, "loader_workers")
/* clang-format on */
enum trait {
#define X(name, word) TRAIT_##name,
	TRAIT_LIST(X)
#undef X
		TRAIT_COUNT,
};
extern const struct table_type table_traits;
enum status traits_end(struct accumulator *f, bool offloads, struct error *err);
/* The program that recorded the first input. Advice uses the names of its options. */
enum recorder {
	RECORDER_OTHER,
	RECORDER_TACHO,
	RECORDER_PYTORCH,
	RECORDER_NSYS,
	RECORDER_XPROF,
	RECORDER_INSPECTOR /* records only collectives */
};

#define SHORT_KERNEL_NS 10000u
#define LONG_CALL_NS    1000000u /* a launch takes microseconds; these loaded code or waited */
#define LATE_SHARE      0.1      /* least share of the window for a finding about lead or tail */
#define NEAR_SHARE      0.8      /* least share of the largest saving for a second family */

struct amount { /* per step and GPU */
	double count, ns, bytes, short_count, short_ns;
};
struct gap_sum { /* gaps of all ranks with these texts, which the tables own */
	const char *cause, *phase, *part, *kind;
	uint64_t ns, count;
};
struct facts {
	struct tables *tables;
	struct gap_sum *gaps;
	size_t gap_count, gap_cap;
	uint64_t steps, window_steps, settled_steps; /* counted; of windows; not settling */
	size_t ranks, gpus;
	double step_ns, window_ns; /* mean complete step; window per step */
	double compute_ns, comm_ns, exposed_comm_ns, exposed_copy_ns,
		launches;        /* launches: number of calls */
	double lead_ns, tail_ns; /* outside of marked steps; only causes with a family */
	bool has_steps, is_sampled, is_damaged;
	bool has_launches;         /* some GPU work has a known launch */
	enum family bound;         /* of the verdict; NONE: no verdict */
	struct time_unit unit;     /* unit of the savings on a page */
	struct replayed *replayed; /* borrowed; NULL: no replay */
};

/* Selects gaps; NULL matches all. */
struct gap_query {
	const char *cause; /* "data", "host:forward" */
	const char *phase; /* phase of the launched work */
	const char *part;  /* "lead", "span", "tail" */
	const char *kind;  /* "plain", "zero" (gradients), "search" (by DDP), "long" (over 1 ms) */
};
/* Fills `gaps`, which the caller frees even after an error. Call it before the functions below. */
enum status facts_gaps_take(struct facts *f, struct error *err);
/* Return idle time and the number of its segments, and all idle time of a cause in ns. */
struct amount facts_gaps(const struct facts *f, struct gap_query which);
double facts_cause(const struct facts *f, const char *cause);
/* Convert a sum over the windows of all ranks to a mean per step and GPU; a gap's by its part. */
double facts_per_gpu(const struct facts *f, double sum);
double facts_gap_per_gpu(const struct facts *f, const struct gap_sum *g, uint64_t sum);
/* Returns whether lead or tail are outside of steps, or have a finding: late_start, long_tail. */
bool facts_is_outside(const struct facts *f, const char *part);
/* Returns idle time inside marked steps; without marks, all but lead or tail with a finding. */
struct amount facts_wait(const struct facts *f, struct gap_query which);
/* Returns the time of "launch" or "dispatch" that has no rule for the optimizer, unused parameters
 * or long launches. */
double facts_issued(const struct facts *f, const char *cause);
/* Returns the time of host:NAME for the user's annotations; *longest becomes the longest one. */
double facts_own(const struct facts *f, const char **longest);
bool cause_is_own(const char *cause); /* whether it is such a host:NAME */
/* Returns the ns per step in which host collectives are open and no operator is; *all_ns is all ns
 * in which they are open. It uses the rank with least, for which the others wait. 0: none. */
double facts_host_comm(const struct facts *f, double *all_ns);
/* Returns the step thread's outermost operators of a category (NULL: any) per step, in a job
 * without a GPU. Short ones take less than SHORT_OPERATOR_NS on average over their name. */
#define SHORT_OPERATOR_NS 20000u
struct amount facts_operators(const struct facts *f, const char *category);
/* Returns the time per step of the category with most time, except communication, and its word; 0
 * and NULL: no operators. */
double facts_most_operators(const struct facts *f, const char **category);
/* Returns the owner with most time of a cause; its texts are "" if unknown. */
struct facts_owner {
	const char *range, *python, *call, *thread;
	double ns, count;
};
struct facts_owner facts_owner(const struct facts *f, const char *cause);
/* Write "; most of it in RANGE at FRAME" and " in RANGE"; "" if unknown. */
enum { OWNER_TEXT = 120, OWNER_BRIEF_NAME = 20, OWNER_BRIEF = 32 };
const char *owner_text(const struct facts_owner *o, char out[OWNER_TEXT]);
const char *owner_brief(const struct facts_owner *o, char out[OWNER_BRIEF]);
/* Returns whether its range, call or frame contains one of `words`, which end with NULL. */
bool owner_has(const struct facts_owner *o, const char *const *words);
/* Returns kernels of a kind that were launched in `phase`; NULL: in any phase. */
struct amount facts_work(const struct facts *f, enum work work, const char *phase);
/* Returns kernels of all kinds; `phase` as above. */
struct amount facts_kernels(const struct facts *f, const char *phase);
/* Returns the kernel name with most time, except communication; "" if there is none. */
struct facts_kernel {
	const char *name, *short_name; /* short_name: as in tables */
	struct amount amount;
};
struct facts_kernel facts_top_kernel(const struct facts *f);
/* Returns copies of a direction ("HtoD") and a kind of memory (NULL: any); `ns` is exposed time. */
struct amount facts_copies(const struct facts *f, const char *direction, const char *memory);
/* Returns batched matrix products: the kernels of facts_work() that aten::bmm launched. */
struct amount facts_batched(const struct facts *f);
/* Returns the operation with most exposed communication ("all_to_all"); "" if unknown. */
const char *facts_operation(const struct facts *f, double *exposed_ns);
bool facts_has(const struct facts *f, enum trait trait);
enum recorder facts_recorder(const struct facts *f);
/* Returns the step thread's time in a phase, per step. */
double facts_wall(const struct facts *f, const char *phase);
/* Returns whether the first GPU's name contains one of `words`, which end with NULL. */
bool facts_gpu_is(const struct facts *f, const char *const *words);
const struct peaks *facts_peaks(const struct facts *f); /* peaks of the first GPU; NULL: unknown */

/* The rank that takes longest in kernels that all ranks call equally often (DEFINITIONS.md 7). */
struct spread {
	uint64_t rank; /* the rank with most time */
	size_t names;
	double most_ns, mean_ns, least_ns; /* per step of a rank, over these names */
	const char *apart;                 /* the name with the largest difference; NULL: none */
	double apart_ns;                   /* its time on that rank less its mean */
};
/* false: fewer than two ranks, no common name, or out of memory. */
bool facts_spread(const struct facts *f, struct spread *out);

enum {
	OPERATORS_TEXT = 48,
	BRIEF_COLUMNS = 40,
	BRIEF_TEXT = 4 * BRIEF_COLUMNS + 1,
	FINDING_TEXT = 400
};
/* Writes "Host collectives take 178.8 ms of a step; no operator overlaps 12.1 ms of that." */
void facts_tell_host_comm(const struct facts *f, char out[FINDING_TEXT]);
struct finding {
	double saving_ns; /* per step: the time that the finding is about */
	enum family family;
	char evidence[FINDING_TEXT];
	char brief[BRIEF_TEXT]; /* the evidence in a few words, for lists */
	const char *advice;
	char operators[OPERATORS_TEXT]; /* "operators.convolution"; "": none or a job with GPUs */
	double operators_ns;            /* per step; places with more lie outside of steps too */
};

struct rule {
	const char *name;
	const char *help;    /* one line about the rule */
	const char *figures; /* names of the figures that it uses */
	/* Fills in a finding, whose advice and family are preset; false: the rule does not apply.
	 * NULL: `cause` is used. */
	bool (*look)(const struct facts *f, struct finding *out);
	const char *advice;
	enum family family;
	bool needs_trust;  /* uses idle time: not applied to sampled or damaged files */
	bool needs_no_gpu; /* outside of rules_cpu: also applied to jobs without a GPU */
	bool is_last;      /* only applied if no other finding has the verdict's family */
	/* Without look(): a cause, whose time the finding is about. Texts have {} for the time and
	 * {in} for where most of it is. */
	const char *cause, *evidence, *brief;
};
bool rule_look(const struct facts *f, const struct rule *r, struct finding *out);
/* Each list ends with .name == NULL. rules_cpu are for jobs without a GPU. */
extern const struct rule rules_gpu[], rules_host[], rules_ranks[], rules_cpu[], rules_health[];

/*
 * Predicts how long steps take with edits, by a replay of the ranks whose points are kept.
 *
 * An answer is the mean over these ranks of their median step, without the first. Answers are
 * cached. Not thread-safe.
 */
struct replay_answer {
	double step_ns, saves_ns; /* saves_ns: at least 0 */
	double changed_ns;        /* own time and work that the edits removed from a step */
	/* False: there are fewer than two steps, too much of them is unexplained, or the edits
	 * change nothing in half of them. */
	bool is_known;
};

struct replayed;
enum status replayed_open(struct replayed **out, struct tables *all, struct error *err);
void replayed_close(struct replayed *r); /* accepts NULL */
/* Replays in one run up to REPLAYED_SETS sets of edits that have no answer yet. */
enum { REPLAYED_SETS = 30 };
enum status replayed_ask(struct replayed *r, const char *const *edits, size_t count,
			 struct error *err);
/* Returns the answer for edits that were passed to replayed_ask(). */
struct replay_answer replayed_answer(const struct replayed *r, const char *edits);
/* Returns the length of a step without edits, in ns; 0: there is no replay. */
double replayed_baseline(const struct replayed *r);

/* How much shorter a step would be without all time of a family. */
struct savings {
	double most_ns[FAMILY_COUNT]; /* by the GPUs' measured time */
	double ns[FAMILY_COUNT];      /* the same, but at most what the replay predicts */
	double unexplained_ns;        /* idle time by causes of no family */
	enum family first, second;
	double second_ns; /* saving of the second family, alone or after the first one */
};
struct savings savings_take(const struct facts *f);
const char *family_edits(enum family family); /* "": none */
/* Replays the edits that savings_take() needs. */
enum status savings_replay(const struct facts *f, struct error *err);
/* Returns the family that saves most besides edits; NONE: less than NEXT_SHARE of that step. */
#define NEXT_SHARE 0.01
enum status savings_next(const struct facts *f, const char *before, enum family *next, double *ns,
			 struct error *err);
/* Fills in what bounds a step after the edits of each row of `what_if`. */
enum status what_if_next(const struct facts *f, struct error *err);
/* Writes the edits of a finding, or "". `most_ns` is the time that the finding is about. */
enum { EDITS_TEXT = 4 * 128 };
void finding_edits(const struct facts *f, const char *rule, double most_ns, char out[EDITS_TEXT]);
enum family family_of_cause(const char *cause);
/* Returns the time of a part of windows, such as "lead", whose cause has a family. */
double facts_part(const struct facts *f, const char *part);

#define SHARE_LEAST 0.005 /* share of a step; smaller savings are not reported */
enum { FOUND_MAX = 64 };
struct found {
	const struct rule *rule;
	struct finding finding;
	double saving_ns; /* from the replay, otherwise that of the finding */
	bool is_replayed;
	char edits[EDITS_TEXT]; /* "": no edits */
};
/* Returns the ns of the step of which the finding's saving is a share. */
double found_of(const struct facts *f, const struct found *one);
/* Replaces savings by those that the replay predicts. */
enum status found_replay(const struct facts *f, struct found *all, size_t count, struct error *err);
/* What the first three findings with replayed edits save together. */
extern const struct table_type table_together;
enum status together_put(const struct facts *f, const struct found *all, size_t count,
			 struct error *err);

/* verdict_put() fills these tables and f->bound; table_verdict has one row. */
extern const struct table_type table_verdict, table_families;
enum status verdict_put(struct facts *f, struct error *err);

bool rule_saves(struct finding *out, double saving_ns); /* sets the saving; false: it is 0 */
/* Adds to the evidence. */
void rule_tell(struct finding *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void rule_brief(struct finding *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes up to `most` (at most 120) bytes of a name, in whole characters; a mark shows a cut. */
enum { CUT_TEXT = 124 };
const char *cut_text(char out[CUT_TEXT], const char *name, size_t most);
/* Writes a duration for sentences ("12.3 ms", "480 us", "12.34 s"), in the unit of tables. */
enum { SPAN_TEXT = 32 };
const char *span_text(char out[SPAN_TEXT], double ns);
/* Like span_text(), in the unit of the longer one of two durations in a sentence. */
const char *span_beside(char out[SPAN_TEXT], double ns, double other_ns);
/* Write "1,140", and "1 kernel", "1,140 kernels" or "0.5 copies" from the singular `one`. */
const char *round_text(char out[NUMBER_TEXT], double count);
enum { MANY_TEXT = 64 };
const char *many_text(char out[MANY_TEXT], double count, const char *one);

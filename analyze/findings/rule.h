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

#define OPERATORS_PREFIX "operators." /* of a job without a GPU, before their category */
#define BATCHED_WORK     "batched"    /* beside those: a row of what aten::bmm launched of them */

/* What a run is bound by; its first finding belongs to the family of the verdict.  NONE: time that
 * no change would save. */
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
const char *family_word(enum family family);

/* What a job uses already, by names in its input; OFFLOAD by where copies are launched. */
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
/* The program that recorded the first input; advice names its options. */
enum recorder {
	RECORDER_OTHER,
	RECORDER_TACHO,
	RECORDER_PYTORCH,
	RECORDER_NSYS,
	RECORDER_XPROF,
	RECORDER_INSPECTOR /* collectives alone */
};

#define SHORT_KERNEL_NS 10000u
#define LONG_CALL_NS    1000000u /* a launch takes microseconds: this one loaded code, or waited */
#define LATE_SHARE      0.1      /* of the window: lead or tail that is a finding of its own */
#define NEAR_SHARE      0.8      /* of the largest saving: a second family that is named with it */

struct amount { /* per step and GPU */
	double count, ns, bytes, short_count, short_ns;
};
struct gap_sum { /* of gaps of all ranks; texts are those of the tables */
	const char *cause, *phase, *part, *kind;
	uint64_t ns, count;
};
struct facts {
	struct tables *tables;
	struct gap_sum *gaps;
	size_t gap_count, gap_cap;
	uint64_t steps, window_steps, settled_steps; /* counted, held, held but for settling ones */
	size_t ranks, gpus;
	double step_ns, window_ns; /* mean wall of a complete step; window per step */
	double compute_ns, comm_ns, exposed_comm_ns, exposed_copy_ns,
		launches;        /* launches: calls */
	double lead_ns, tail_ns; /* before and behind all marked steps, by causes of a family */
	bool has_steps, is_sampled, is_damaged;
	bool has_launches;         /* work of a GPU whose launch is known */
	enum family bound;         /* the verdict's; NONE: there is no verdict */
	struct time_unit unit;     /* of the savings on a page */
	struct replayed *replayed; /* borrowed */
};

/* Which gaps: NULL is any. */
struct gap_query {
	const char *cause; /* "data", "host:forward" */
	const char *phase; /* of what was launched */
	const char *part;  /* "lead", "span", "tail" */
	const char *kind;  /* "plain"; "zero": of filling gradients; "search": of DDP's for unused
			    * parameters; "long": a launch or allocation over 1 ms */
};
/* Call it once, before any of the next.  The caller frees `gaps`, also after an error. */
enum status facts_gaps_take(struct facts *f, struct error *err);
/* Time that is not busy, and the number of its idle segments; all time of a cause, in ns. */
struct amount facts_gaps(const struct facts *f, struct gap_query which);
double facts_cause(const struct facts *f, const char *cause);
/* A sum over the windows of all ranks as a mean per step and GPU; of a gap by its part. */
double facts_per_gpu(const struct facts *f, double sum);
double facts_gap_per_gpu(const struct facts *f, const struct gap_sum *g, uint64_t sum);
/* Whether lead or tail are outside of steps, or findings of their own: late_start, long_tail. */
bool facts_is_outside(const struct facts *f, const char *part);
/* Idle time inside marked steps; without marks, all but a lead or tail with its own finding. */
struct amount facts_wait(const struct facts *f, struct gap_query which);
/* Time of "launch" or "dispatch" that does not belong to the rules of the optimizer, of unused
 * parameters or of long launches. */
double facts_issued(const struct facts *f, const char *cause);
/* The same for host:NAME where NAME is an annotation of the user's; *longest is the longest. */
double facts_own(const struct facts *f, const char **longest);
bool cause_is_own(const char *cause); /* host:NAME of such an annotation */
/* Time per step in which collectives of the host are open and no operator is, in ns; *all_ns: in
 * which they are open.  It is that of the rank with least, for which the others wait.  0: none. */
double facts_host_comm(const struct facts *f, double *all_ns);
/* Outermost operators of the step thread in a job without a GPU: of a category (NULL: of any), per
 * step; short ones take less than SHORT_OPERATOR_NS on average over their name. */
#define SHORT_OPERATOR_NS 20000u
struct amount facts_operators(const struct facts *f, const char *category);
/* The time a step of the category of operators that takes most of it, communication aside, and
 * its word; 0 and NULL: the file has no operators. */
double facts_most_operators(const struct facts *f, const char **category);
/* The owner with most time of a cause: its range, call and thread; "" if it has none. */
struct facts_owner {
	const char *range, *python, *call, *thread;
	double ns, count;
};
struct facts_owner facts_owner(const struct facts *f, const char *cause);
/* "; most of it in RANGE at FRAME"; in short " in RANGE"; "" where it is not known. */
enum { OWNER_TEXT = 120, OWNER_BRIEF_NAME = 20, OWNER_BRIEF = 32 };
const char *owner_text(const struct facts_owner *o, char out[OWNER_TEXT]);
const char *owner_brief(const struct facts_owner *o, char out[OWNER_BRIEF]);
/* Whether its range, call or frame contains one of `words`, which end with NULL. */
bool owner_has(const struct facts_owner *o, const char *const *words);
/* Kernels of a kind that were launched in `phase`; NULL: in any phase. */
struct amount facts_work(const struct facts *f, enum work work, const char *phase);
/* Kernels of all kinds; `phase` as above. */
struct amount facts_kernels(const struct facts *f, const char *phase);
/* The kernel name with most time, without communication; "" if there is none. */
struct facts_kernel {
	const char *name, *short_name; /* the latter as tables show it */
	struct amount amount;
};
struct facts_kernel facts_top_kernel(const struct facts *f);
/* Copies of a direction ("HtoD") from or to a kind of memory (NULL: any); `ns` is exposed time. */
struct amount facts_copies(const struct facts *f, const char *direction, const char *memory);
/* Batched matrix products: those of facts_work() that aten::bmm launched. */
struct amount facts_batched(const struct facts *f);
/* The operation with most exposed communication, such as "all_to_all"; "" if none is known. */
const char *facts_operation(const struct facts *f, double *exposed_ns);
bool facts_has(const struct facts *f, enum trait trait);
enum recorder facts_recorder(const struct facts *f);
/* The step thread's time in a phase, and time of GPUs that is not busy meanwhile. */
double facts_wall(const struct facts *f, const char *phase);
/* Whether the first GPU's name contains one of `words`, which end with NULL. */
bool facts_gpu_is(const struct facts *f, const char *const *words);
const struct peaks *facts_peaks(const struct facts *f); /* its; NULL: not known by its name */

/* The rank on which kernels that all ranks call equally often take longest (DEFINITIONS.md 7). */
struct spread {
	uint64_t rank; /* with most time */
	size_t names;
	double most_ns, mean_ns, least_ns; /* per step of a rank, over these names */
	const char *apart;                 /* the name with most of it; NULL: nothing is apart */
	double apart_ns;                   /* its own: most less mean */
};
/* false: fewer than two ranks, or no name in common, or no memory. */
bool facts_spread(const struct facts *f, struct spread *out);

enum {
	OPERATORS_TEXT = 48,
	BRIEF_COLUMNS = 40,
	BRIEF_TEXT = 4 * BRIEF_COLUMNS + 1,
	FINDING_TEXT = 400
};
/* "Host collectives take 178.8 ms of a step; no operator overlaps 12.1 ms of that." */
void facts_tell_host_comm(const struct facts *f, char out[FINDING_TEXT]);
struct finding {
	double saving_ns; /* per step: the time that it is about */
	enum family family;
	char evidence[FINDING_TEXT];
	char brief[BRIEF_TEXT]; /* the same in a few words, for lists */
	const char *advice;
	char operators[OPERATORS_TEXT]; /* without a GPU: "operators.convolution"; "": about none */
	double operators_ns;            /* per step; places of more lie outside of steps, too */
};

struct rule {
	const char *name;
	const char *help;    /* one line: what it is about */
	const char *figures; /* keys of the figures that it rests on */
	/* False: the rule does not apply.  Advice and family are preset with the rule's.  NULL:
	 * see `cause`. */
	bool (*look)(const struct facts *f, struct finding *out);
	const char *advice;
	enum family family;
	bool needs_trust;  /* rests on idle time: not of a sampled or damaged file */
	bool needs_no_gpu; /* of those below but rules_cpu: also for jobs without a GPU */
	bool is_last;      /* looked at only if no other finding is of the verdict's family */
	/* Without look(): the finding is about the time of this cause.  In its texts {} stands for
	 * the time, {in} for where most of it is. */
	const char *cause, *evidence, *brief;
};
bool rule_look(const struct facts *f, const struct rule *r, struct finding *out);
/* Each ends with .name == NULL.  rules_cpu are for jobs without a GPU. */
extern const struct rule rules_gpu[], rules_host[], rules_ranks[], rules_cpu[], rules_health[];

/*
 * How long steps take with edits, by the replay of the ranks whose points are kept.
 *
 * An answer is the mean over these ranks of their median step, without the first.  Answers are
 * cached.  Not thread-safe.
 */
struct replay_answer {
	double step_ns, saves_ns; /* saves_ns: at least 0 */
	double changed_ns;        /* of a step, what the edits scaled away of own time and work */
	/* False: the replay has no answer.  There are fewer than two steps, too much of them is
	 * not explained, or the edits change nothing in half of the steps, because what they are
	 * about is elsewhere. */
	bool is_known;
};

struct replayed;
enum status replayed_open(struct replayed **out, struct tables *all, struct error *err);
void replayed_close(struct replayed *r); /* accepts NULL */
/* Replays in one run the sets of edits that have no answer yet, at most the first REPLAYED_SETS. */
enum { REPLAYED_SETS = 30 };
enum status replayed_ask(struct replayed *r, const char *const *edits, size_t count,
			 struct error *err);
/* The answer for edits that were given to replayed_ask(). */
struct replay_answer replayed_answer(const struct replayed *r, const char *edits);
/* The step without edits, in ns; 0: nothing is replayed. */
double replayed_baseline(const struct replayed *r);

/* How much shorter a step would be without all time of a family. */
struct savings {
	double most_ns[FAMILY_COUNT]; /* as the GPUs' time was counted */
	double ns[FAMILY_COUNT];      /* that, but no more than the replay says */
	double unexplained_ns;        /* not busy by causes of no family */
	enum family first, second;
	double second_ns; /* saved by the second, alone or once the first is gone */
};
struct savings savings_take(const struct facts *f);
const char *family_edits(enum family family); /* ""; none */
/* Replays the edits that savings_take() needs. */
enum status savings_replay(const struct facts *f, struct error *err);
/* The family that saves most beside edits, and how much; NONE: less than 1 % of that step. */
#define NEXT_SHARE 0.01
enum status savings_next(const struct facts *f, const char *before, enum family *next, double *ns,
			 struct error *err);
/* Fills in what bounds a step with the edits of each row of `what_if`. */
enum status what_if_next(const struct facts *f, struct error *err);
/* The edits of a finding, or "".  `most_ns` is the time that it is about. */
enum { EDITS_TEXT = 4 * 128 };
void finding_edits(const struct facts *f, const char *rule, double most_ns, char out[EDITS_TEXT]);
enum family family_of_cause(const char *cause);
/* Time of a part of windows, such as "lead", whose cause belongs to a family. */
double facts_part(const struct facts *f, const char *part);

#define SHARE_LEAST 0.005 /* of a step; smaller findings are not worth a day of work */
enum { FOUND_MAX = 64 };
struct found {
	const struct rule *rule;
	struct finding finding;
	double saving_ns; /* by the replay, or else that of the finding */
	bool is_replayed;
	char edits[EDITS_TEXT]; /* "": none */
};
/* The length of the step of which its saving is a share, in ns. */
double found_of(const struct facts *f, const struct found *one);
/* Sets the savings that the replay knows. */
enum status found_replay(const struct facts *f, struct found *all, size_t count, struct error *err);
/* What the first three findings whose edits were replayed save together. */
extern const struct table_type table_together;
enum status together_put(const struct facts *f, const struct found *all, size_t count,
			 struct error *err);

/* verdict_put() fills these tables and `bound` of the facts; table_verdict has one row. */
extern const struct table_type table_verdict, table_families;
enum status verdict_put(struct facts *f, struct error *err);

bool rule_saves(struct finding *out, double saving_ns); /* sets the saving; false: it is 0 */
void rule_brief(struct finding *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* At most `most` (up to 120) bytes of a name, by whole characters; a mark says if it was longer. */
enum { CUT_TEXT = 124 };
const char *cut_text(char out[CUT_TEXT], const char *name, size_t most);
/* A duration for sentences ("12.3 ms", "480 us", "12.34 s"), in the unit that tables use. */
enum { SPAN_TEXT = 32 };
const char *span_text(char out[SPAN_TEXT], double ns);
/* For a sentence with several: in the unit of the longer one. */
const char *span_beside(char out[SPAN_TEXT], double ns, double other_ns);
/* "1 kernel", "1,140 kernels", "0.5 copies"; `one` is the singular. */
const char *round_text(char out[NUMBER_TEXT], double count); /* "1,140" */
enum { MANY_TEXT = 64 };
const char *many_text(char out[MANY_TEXT], double count, const char *one);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - checks whether a recording is complete and can be trusted.
 *
 * The accumulator (check.c) counts facts about each rank, as sums that merge. After the merge
 * judge.c computes the verdicts from them, one row for each check and rank.
 *
 * To add a check: a row in CHECK_LIST and its judge in judge.c. What it needs to count while events
 * pass is a row in FACT_LIST.
 */
#pragma once

#include "analyze/engine/report.h"

/* Name and question of each check, in the order of pages. Names appear in JSON, so only add
 * some. */
#define CHECK_LIST(X)                                                                              \
	X(closed, "was the input closed properly")                                                 \
	X(unread, "could all bytes of the input be read")                                          \
	X(windows, "was the requested window recorded")                                            \
	X(losses, "are records missing, by the recorder's own count")                              \
	X(sampled, "are most correlation ids present, or is the input a sample")                   \
	X(no_kernels, "are there kernels if there are calls that launch kernels")                  \
	X(no_launch, "does each GPU event have a launch")                                          \
	X(no_gpu_event, "does each launch have a GPU event")                                       \
	X(graphs, "do all launches of a CUDA graph have the same number of GPU events")            \
	X(order, "does GPU work begin after the call that launched it")                            \
	X(waits, "does each wait for a CUDA event refer to an event recorded before it")           \
	X(stream_syncs, "has a stream finished when a synchronization record of it begins")        \
	X(comms, "does each record of a collective state what is sent")                            \
	X(sequences, "does each sequence number belong to one backward operator")                  \
	X(silent, "does a rank of a job with several ranks communicate")                           \
	X(clock, "was the wall clock never set")                                                   \
	X(bounds, "do host events begin inside their window")                                      \
	X(own_cost, "how much time did recording take")                                            \
	X(unknown_kinds, "are all records of kinds that this version knows")                       \
	X(epoch, "do times count from the Unix epoch, so that hosts can be compared")              \
	X(synthetic, "was the input recorded, or made by a generator")                             \
	X(models, "is no operator faster than its GPU's peak, by the report operators")            \
	X(recorder, "what does the recorder report about itself")

enum check_place {
#define X(name, meaning) OF_##name,
	CHECK_LIST(X)
#undef X
		CHECKS
};
extern const struct check_type {
	const char *name, *meaning;
} check_types[CHECKS];

/* From worst to best. */
#define VERDICT_LIST(X) X(BAD, "bad") X(DOUBT, "doubt") X(UNKNOWN, "unknown") X(GOOD, "good")
enum verdict {
#define X(name, word) VERDICT_##name,
	VERDICT_LIST(X)
#undef X
};

/* Numbers about one rank: column of the table `check_facts`, and how two parts combine. */
/* clang-format off */
#define FACT_LIST(X)                                                                               \
	X(files, SUM)                                                                              \
	X(not_closed, SUM)                                                                         \
	X(unread_bytes, SUM)                                                                       \
	X(no_epoch, SUM)                                                                           \
	X(synthetic, SUM)                                                                          \
	X(is_cut, MAX) /* an option filters events: related events may be missing */               \
	X(lost, SUM)                                                                               \
	X(windows, SUM) /* number of windows that the recorder listed */                           \
	X(windows_held, SUM) /* windows with events; set by the judge, as is `lost` */             \
	X(window_ns, SUM)                                                                          \
	X(own_ns, SUM)                                                                             \
	X(steps_around, SUM) /* compared steps, and their median length times this number */       \
	X(steps_around_ns, SUM)                                                                    \
	X(steps_recorded, SUM)                                                                     \
	X(steps_recorded_ns, SUM)                                                                  \
	X(kernels, SUM)                                                                            \
	X(collectives, SUM)                                                                        \
	X(kernel_launches, SUM)                                                                    \
	X(graph_launches, SUM)                                                                     \
	X(graphs_short, SUM)                                                                       \
	X(graph_events_missing, SUM)                                                               \
	X(graphs_unchecked, SUM)                                                                   \
	X(early_work, SUM)                                                                         \
	X(stream_waits, SUM)                                                                       \
	X(waits_unknown, SUM) /* they name no record of an event */                                \
	X(waits_ahead, SUM)   /* they name a later record */                                       \
	X(stream_syncs, SUM)                                                                       \
	X(syncs_early, SUM) /* while a kernel of the stream runs */                                \
	X(comms, SUM)                                                                              \
	X(comms_short, SUM)                                                                        \
	X(sequences, SUM)                                                                          \
	X(sequences_shared, SUM)                                                                   \
	X(anchors, SUM)                                                                            \
	X(clock_steps, SUM)                                                                        \
	X(clock_most_ns, MAX)                                                                      \
	X(outside, SUM)                                                                            \
	X(outside_most_ns, MAX)                                                                    \
	X(unknown_kinds, SUM)                                                                      \
	X(newer, SUM) /* records and blocks that this version cannot read as events */             \
	X(tracer_events, SUM)                                                                      \
	X(tracer_ns, SUM)
/* clang-format on */
enum fact { /* indices of cells in a row of check_facts */
	    FACT_KEYS = RANK_KEYS - 1,
#define X(name, combine) FACT_##name,
	    FACT_LIST(X)
#undef X
		    FACT_END,
	    FACT_PATH = FACT_END, /* path of the first input that was not closed */
	    FACT_FORMAT,
};

/* Attributes with which a log's process describes itself. */
#define METADATA_COLUMNS(X)                                                                        \
	X(METADATA_KEY = RANK_KEYS, "key", NULL, TEXT, KEY, "name of an attribute of the process") \
	X(METADATA_TEXT, "text", NULL, TEXT, MAX, "value of the attribute")
enum { METADATA_COLUMNS(COLUMN_PLACE) };
#define SPAN_COLUMNS(X)                                                                            \
	X(SPAN_BEGIN = RANK_KEYS, "begin_ns", NULL, U64, KEY, "begin since the Unix epoch")        \
	X(SPAN_END, "end_ns", NULL, U64, KEY, "end since the Unix epoch")                          \
	X(SPAN_STEPS, "steps", NULL, U64, SUM, "marked steps that begin in the window")            \
	X(SPAN_OPEN, "open", NULL, BOOL, MAX, "the window was never closed")
enum { SPAN_COLUMNS(COLUMN_PLACE) };
#define CHECK_COLUMNS(X)                                                                           \
	X(CHECK_NAME = RANK_KEYS, "check", "check", TEXT, KEY, "name of the check")                \
	X(CHECK_OF, "of", "of", TEXT, KEY,                                                         \
	  "checked window, reason or attribute, where a check has several rows; else empty")       \
	X(CHECK_VERDICT, "verdict", "verdict", TEXT, DERIVED, "good, doubt, bad or unknown")       \
	X(CHECK_COUNT, "count", "count", U64, DERIVED,                                             \
	  "number of records, launches, bytes or clock steps that speak against it")               \
	X(CHECK_TEXT, "text", "says", TEXT, DERIVED, "result of the check as a sentence")          \
	X(CHECK_MEANING, "meaning", NULL, TEXT, DERIVED, "question that the check answers")
enum { CHECK_COLUMNS(COLUMN_PLACE) };

/* Fills the table `checks`. */
enum status check_judge(struct tables *all, struct error *err);
/* Returns the number of bad rows in `checks`; 0 if the report was not requested. */
uint64_t check_bad(const struct tables *all);
/* Returns an attribute of a process with text by the recorder; NULL past the end. */
const char *check_metadata_key(size_t index);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evidence.h - the events that explain a figure, for --explain: the ten largest of each selection
 * and input. It is not printed as a report.
 *
 * Selections are words: those of EVIDENCE_LIST, "cause:NAME" and "phase:NAME" (what the step thread
 * did), "work:PHASE" (GPU work launched in a phase).
 */
#pragma once

#include "analyze/engine/report.h"

#define EVIDENCE_LIST(X)                                                                           \
	X(COMPUTE, "compute", "intervals in which a compute kernel runs")                          \
	X(EXPOSED_COMM, "exposed_comm",                                                            \
	  "intervals in which communication runs and no compute kernel")                           \
	X(EXPOSED_COPY, "exposed_copy",                                                            \
	  "intervals in which a copy or fill runs, and no compute or communication")               \
	X(OVERLAP_COMM, "overlap_comm",                                                            \
	  "intervals in which communication and compute kernels both run")                         \
	X(IDLE, "idle", "gaps between GPU events, and the work that ended each")                   \
	X(LEAD, "lead", "time before the first GPU event, and the name of that event")             \
	X(TAIL, "tail", "time after the last GPU event")                                           \
	X(NOT_BUSY, "not_busy", "idle intervals, with their cause and the code responsible")       \
	X(AFTER_SYNC, "after_sync",                                                                \
	  "idle intervals of gaps that began during a synchronizing call")                         \
	X(UNATTRIBUTED, "unattributed", "GPU work without a recorded launch")                      \
	X(GPU, "gpu", "kernels, copies, fills and graphs")                                         \
	X(KERNEL, "kernel", "kernels and graphs")                                                  \
	X(COMM, "comm", "communication kernels")                                                   \
	X(COPY, "copy", "copies and fills")                                                        \
	X(LAUNCH, "launch", "runtime and driver calls")                                            \
	X(SYNC, "sync", "synchronization records")                                                 \
	X(STEP, "step", "steps")                                                                   \
	X(HOST, "host", "phase intervals of the step thread")                                      \
	X(MEMORY, "memory", "allocations, the largest first")
enum evidence {
#define X(name, word, meaning) EVIDENCE_##name,
	EVIDENCE_LIST(X)
#undef X
		EVIDENCE_COUNT,
};
extern const struct evidence_type {
	const char *word, *meaning;
} evidence_types[EVIDENCE_COUNT];

enum { EVIDENCE_KEPT = 10 };
#define EVIDENCE_COLUMNS(X)                                                                        \
	X(EVIDENCE_SELECTION = RANK_KEYS, "selection", NULL, TEXT, KEY, "figure that it explains") \
	X(EVIDENCE_BEGIN, "begin_ns", NULL, U64, KEY, "begin of the event since the Unix epoch")   \
	X(EVIDENCE_TRACK, "track", NULL, TEXT, KEY, "track on which it ran")                       \
	X(EVIDENCE_NAME, "name", NULL, TEXT, KEY, "name of the event, or of the time's owner")     \
	X(EVIDENCE_SIZE, "size", NULL, U64, MAX, "duration in ns; bytes of an allocation")         \
	X(EVIDENCE_RANGE, "range", NULL, TEXT, MAX,                                                \
	  "innermost range around the event or its launch")                                        \
	X(EVIDENCE_PYTHON, "python", NULL, TEXT, MAX,                                              \
	  "innermost Python frame around the event or its launch")                                 \
	X(EVIDENCE_PATH, "path", NULL, TEXT, MAX,                                                  \
	  "ranges around the event or its launch, the outermost first")                            \
	X(EVIDENCE_CAUSE, "cause", NULL, TEXT, MAX, "cause of the idle time")                      \
	X(EVIDENCE_PHASE, "phase", NULL, TEXT, MAX, "phase of its launch")                         \
	X(EVIDENCE_IN_STEP, "step", NULL, U64, MIN, "step of its launch; null: outside of steps")
enum { EVIDENCE_COLUMNS(COLUMN_PLACE) };
extern const struct report_type report_evidence;

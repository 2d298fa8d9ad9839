/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_behind.h - the events behind a figure, for --explain: of each selection the ten that
 * contribute most, of each input.  Not printed by itself.
 *
 * Selections are words: those of BEHIND_LIST, "cause:NAME" and "phase:NAME" (what the step thread
 * did), "work:PHASE" (GPU work launched in a phase).
 */
#ifndef ANALYZE_REPORT_BEHIND_H
#define ANALYZE_REPORT_BEHIND_H

#include "analyze/report.h"

#define BEHIND_LIST(X)                                                                             \
	X(COMPUTE, "compute", "pieces of GPU time owned by compute")                               \
	X(EXPOSED_COMM, "exposed_comm", "pieces of communication beside which nothing computes")   \
	X(EXPOSED_COPY, "exposed_copy", "pieces of copies beside which nothing else runs")         \
	X(OVERLAP_COMM, "overlap_comm", "pieces of communication beside which something computes") \
	X(IDLE, "idle", "gaps between GPU events, and what ended them")                            \
	X(LEAD, "lead", "time before the first GPU event, which is named")                         \
	X(TAIL, "tail", "time after the last GPU event")                                           \
	X(NOT_BUSY, "not_busy", "pieces of gaps, with their cause and whose doing it was")         \
	X(AFTER_SYNC, "after_sync", "pieces of gaps that a synchronising call reached into")       \
	X(UNATTRIBUTED, "unattributed", "GPU work whose launch is not there")                      \
	X(GPU, "gpu", "kernels, copies and graphs")                                                \
	X(KERNEL, "kernel", "kernels and graphs")                                                  \
	X(COMM, "comm", "communication kernels")                                                   \
	X(COPY, "copy", "copies and fills")                                                        \
	X(LAUNCH, "launch", "runtime and driver calls")                                            \
	X(SYNC, "sync", "synchronisation records")                                                 \
	X(STEP, "step", "steps")                                                                   \
	X(HOST, "host", "what the step thread did, by phase")                                      \
	X(MEMORY, "memory", "allocations by size")
enum behind {
#define X(name, word, meaning) BEHIND_##name,
	BEHIND_LIST(X)
#undef X
	BEHIND_COUNT,
};
const char *behind_word(enum behind selection);
const char *behind_meaning(enum behind selection);

enum { BEHIND_KEPT = 10 };
enum { BEHIND_SELECTION = RANK_KEYS, BEHIND_BEGIN, BEHIND_TRACK, BEHIND_NAME, BEHIND_SIZE,
	BEHIND_RANGE, BEHIND_PYTHON, BEHIND_CAUSE, BEHIND_PHASE, BEHIND_IN_STEP };
extern const struct report_type report_behind;

#endif

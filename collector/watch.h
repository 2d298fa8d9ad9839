/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - producers of records: one file each, one constant each.
 *
 * Two kinds of threads meet in a watch, and the slots say which one calls:
 *
 *	theirs   the application's, CUPTI's, NVTX's: a watch's own callbacks.  No window open:
 *	         one relaxed load (NVTX keeps its nesting too).  In a window: read a clock, write
 *	         a ring.  No allocation, lock, print, I/O, CUDA call - except in CUPTI's buffer
 *	         completion, where names become ids in place, because its pointers die on return.
 *	ours     the writer thread: opens libraries, starts, stops, drains, encodes, stores.
 *
 * A watch never fails the job: open() that fails turns this watch off, once, with its sentence in
 * the log and in `tacho-record --doctor`.  What it cannot keep, it counts.  State is static: there
 * is one collector in a process, and CUPTI's callbacks carry no pointer of ours.  Any slot may be
 * NULL.
 *
 * To add a producer: write watch_NAME.c that exports `const struct watch_type watch_NAME`, add
 * X(NAME) to WATCH_LIST, its records to schemas/records.def, its fault rows to tests/collector/.
 */
#ifndef COLLECTOR_WATCH_H
#define COLLECTOR_WATCH_H

#include "schemas/status.h"

struct config; /* parsed options, constant after start (collector/config.h) */
struct writer; /* rows to blocks to store; one, on the writer thread (collector/writer.h) */
struct buf;

struct watch_type {
	const char *name; /* in losses, in --doctor */
	const char *help; /* one line */

	/* Ours.  Before the first window, in a process that uses what is watched - not in a
	 * data-loader worker.  ST_ABSENT: the library is not there, which is no news. */
	enum status (*open)(const struct config *config, struct error *err);
	/* Ours.  A window begins, or its warm-up does: from here on its callbacks record. */
	enum status (*begin)(uint64_t now_ns, struct error *err);
	/* Ours.  It ends: stop, flush, wait for what is under way until `deadline_ns`. */
	void (*end)(uint64_t now_ns, uint64_t deadline_ns);
	/* Ours.  About ten times a second and once after end(): rings and full buffers become
	 * rows (writer_put), samples that are due are taken, losses are handed over.  Returns how
	 * full its fullest ring was, in percent: the next call comes sooner. */
	unsigned (*drain)(struct writer *w, uint64_t now_ns);
	/* Ours.  As drain(), while a warm-up lasts: what came until now is of no window. */
	void (*warm)(void);
	/* Ours.  After the last drain of window number `window`: what is open in it is told. */
	void (*close_window)(struct writer *w, uint64_t window);
	/* Ours.  Its own clock now, in ns, for the log's anchors; 0: it does not answer. */
	uint64_t (*clock)(void);
	/* Ours.  When the watch wants to be called next, in ns from now; UINT64_MAX: no wish. */
	uint64_t (*due)(uint64_t now_ns);
	/* Theirs.  The child of a fork: forget everything, touch no library, write nothing. */
	void (*forked)(void);
	/* Ours.  The process ends; also after a crash of nobody's fault.  Returns in time. */
	void (*close)(struct writer *w, uint64_t deadline_ns);
	/* tacho-record --doctor: what works, what does not, the remedy.  No window needed. */
	void (*doctor)(struct buf *out);
};

#define WATCH_LIST(X) X(api) X(nvtx) X(memory) X(cupti)
#define X(name) extern const struct watch_type watch_##name;
WATCH_LIST(X)
#undef X

#endif

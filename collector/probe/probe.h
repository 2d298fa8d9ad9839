/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - data sources of the recorder: one folder and one constant each.
 *
 * A probe runs on two kinds of threads; each function below says which one calls it:
 *
 *	program   threads of the application, of CUPTI or NVTX, in the probe's callbacks
 *	writer    opens libraries, starts, stops, drains, encodes, stores
 *
 * While no window is open, a callback is one relaxed load (NVTX also tracks its nesting).  In a
 * window it reads a clock and writes a ring.  It does not allocate, lock, print, do I/O or call
 * CUDA, except when CUPTI completes a buffer: texts are then replaced by ids, as their pointers
 * become invalid.
 *
 * A probe never makes the job fail.  If open() fails, the probe is off, and the log and
 * `tacho-record --doctor` state the reason.  A probe counts the records that it drops.  State is
 * static, because there is one recorder in a process, and CUPTI's callbacks carry no pointer of
 * ours.  Any function may be NULL.
 *
 * Ids of a log (names, tracks, descriptors) are invalid when rows go to another log.  A probe that
 * keeps ids calls writer_log_changed() before it uses them.
 *
 * To add a probe, write NAME/probe.c with `const struct probe_type probe_NAME`, add X(NAME) to
 * PROBE_LIST, its records to schemas/model/records.def and its fault rows to tests/collector/.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>

struct config; /* parsed options, constant after start (collector/config/config.h) */
struct writer; /* turns rows into blocks and stores them; one, on the writer thread
		  (collector/store/writer.h) */
struct buf;

struct probe_type {
	const char *name; /* shown in losses and in --doctor */
	const char *help; /* a description of one line */

	/*
	 * Writer.  Called before the first window, in a process that uses the probed library, and
	 * not in a data-loader worker.  ST_ABSENT: the library is not there, which is no error.
	 */
	enum status (*open)(const struct config *config, struct error *err);
	/* Writer.  A window or its warmup begins: callbacks record from here on. */
	enum status (*begin)(uint64_t now_ns, struct error *err);
	/*
	 * Writer.  Stops and flushes at the end of a window.  A `deadline_ns` means that the
	 * process ends: wait for work in progress until then, and force the rest out.  0: do not
	 * wait.
	 */
	void (*end)(uint64_t now_ns, uint64_t deadline_ns);
	/*
	 * Writer.  Called repeatedly after end() without a deadline.  Returns true while a GPU
	 * still runs work of the window, whose rows come with a later drain().
	 */
	bool (*behind)(void);
	/*
	 * Writer.  Called about ten times a second and once after end(): puts rings and full
	 * buffers as rows (writer_put), takes samples that are due and reports losses.  Returns how
	 * full its fullest ring was, in percent; a full ring makes the next call come sooner.
	 */
	unsigned (*drain)(struct writer *w, uint64_t now_ns);
	/*
	 * Writer.  note_stored() is called when all rows that were put are stored, and notes this
	 * in shared memory under `parity`.  stored() is called when that is committed: the sources
	 * of these rows may then be overwritten.
	 */
	void (*note_stored)(unsigned parity);
	void (*stored)(void);
	/*
	 * Writer.  Called instead of drain() during a warmup: drops the records so far, which
	 * belong to no window.
	 */
	void (*warmup)(void);
	/*
	 * Writer.  Called after the last drain of window number `window`: puts the ranges that are
	 * still open in it.
	 */
	void (*close_window)(struct writer *w, uint64_t window);
	/* Writer.  Returns the probe's own clock in ns for the log's anchors, or 0 if it has
	 * none. */
	uint64_t (*clock)(void);
	/*
	 * Writer.  Returns in how many ns the probe wants to be called next; UINT64_MAX: at any
	 * time.
	 */
	uint64_t (*due)(uint64_t now_ns);
	/* Program.  Called in the child of a fork: discards all state, uses no library, writes
	 * nothing. */
	void (*forked)(void);
	/* Writer.  Called when the process ends, possibly in a crash.  Must return before
	 * `deadline_ns`. */
	void (*close)(struct writer *w, uint64_t deadline_ns);
	/* Appends what works and what does not, with a remedy, for tacho-record --doctor.  Needs no
	 * window. */
	void (*doctor)(struct buf *out);
};

/* The registry of probes, in the order in which the writer drains them. */

#define PROBE_LIST(X) X(api) X(nvtx) X(nccl) X(memory) X(cupti) X(health)

#define X(name) extern const struct probe_type probe_##name;
PROBE_LIST(X)
#undef X

extern const struct probe_type *const probe_types[]; /* ends with NULL */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper.h - the only thread that libtacho starts in a program, if that uses CUDA or NCCL.
 *
 *	recorder --requests--> helper --CUPTI, NCCL, NVML--> rows --queue--> recorder --> log
 *
 * CUPTI and NCCL work only inside the program.  The helper calls their probes: it begins and ends
 * windows when the recorder requests it, and puts the rows of the probes into the arena.  It opens
 * no file and no socket, blocks all signals, and makes no decisions.  The recorder reads the queue
 * even after the program has died.
 *
 * The recorder writes `request` and its members, then increments `asked`.  The helper sets `done`
 * when it has carried the request out.  In the meantime the recorder reads the queue, so that the
 * helper need not wait for space.
 */
#pragma once

#include "collector/helper/queue.h"
#include "schemas/model/event.h"

struct config;

enum helper_request {
	HELPER_BEGIN,   /* begin a window, or its warmup, at now_ns */
	HELPER_WARM_UP, /* drop the records so far, which are in no window */
	HELPER_END,     /* end the window at now_ns; `deadline_ns` is as in probe.h */
	HELPER_DRAIN,   /* put the records so far */
	HELPER_CLOSE,   /* close the probes until deadline_ns; the process ends */
};
struct helper {
	_Atomic uint32_t wake;  /* futex on which the helper waits; 0: nothing to do */
	_Atomic uint32_t asked; /* number of the latest request */
	_Atomic uint32_t done;  /* futex: number of the latest request that was carried out */
	_Atomic bool absent;    /* the thread could not be started */
	_Atomic bool holds;     /* CUPTI may have records of a window, which die with the program */
	uint32_t request;       /* enum helper_request */
	uint64_t now_ns, deadline_ns, window;
	_Atomic uint64_t begin_ns; /* begin of the open window; 0: no window is open */
	_Atomic bool has_log;      /* a log is open */
	_Atomic uint64_t log;      /* number of the log that rows go to */
	/*
	 * Counts of rows and losses.  `made` is incremented by the helper when it passes them on or
	 * finds no space, and `lost` when it finds no space.  `stored` has how many of both the
	 * recorder had read at a commit, so that rows that a killed writer had read can be counted.
	 */
	_Atomic uint64_t made, lost;
	struct helper_stored {
		uint64_t read, lost;
	} stored[2]; /* by the parity of arena_header.commit */
	struct queue queue;
};

/* Types of messages.  Ids count from 1 in the order of the messages since the latest RESET. */
enum helper_message {
	MESSAGE_RESET,
	MESSAGE_NAME,   /* a text */
	MESSAGE_TRACK,  /* struct track */
	MESSAGE_SCHEMA, /* two counts (uint64_t), and the attributes */
	MESSAGE_DESC,   /* struct event_desc */
	MESSAGE_DEVICE, /* struct device */
	MESSAGE_TRACK_NAME,
	MESSAGE_ATTRIBUTE, /* struct helper_attribute, key, 0, text, 0 */
	MESSAGE_ROW,       /* struct helper_row, argument values */
	MESSAGE_LOSS,
	MESSAGE_COST,
	MESSAGE_ANCHOR, /* struct anchor */
};
struct helper_pair { /* track and name; loss and count; 0 and ns */
	uint64_t what, value;
};
struct helper_attribute {
	uint64_t is_json;
};
struct helper_row {
	struct event event; /* `args` is not valid */
	uint64_t desc;
};

/* Starts the thread; returns false if it cannot be started.  Call it once per process. */
bool helper_start(const struct config *config);
/* Wakes a helper.  Async-signal-safe. */
void helper_wake(struct helper *h);

/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the parts of the CUPTI probe. */
#pragma once

#include "collector/probe/cupti/layout.h"
#include "collector/probe/cupti/lib.h"

/*
 * Names of CUDA functions by callback id, and which calls are left out as noise.
 *
 * Names are those of the loaded library, so they fit its version.  The table of noise lists
 * function names: calls that only query, poll or change a thread's state, of which a training step
 * makes thousands.  State is static, filled once and constant afterwards.
 */

void cupti_calls_open(const struct cupti_lib *lib);
/* Returns the name without the version that CUDA adds ("cudaLaunchKernel_v7000"), or NULL if there
 * is no such call. */
const char *cupti_call_name(enum cupti_domain domain, uint32_t cbid, size_t *len);
bool cupti_call_is_noise(enum cupti_domain domain, uint32_t cbid);
/* Returns the same by name, without a library. */
bool cupti_name_is_noise(const char *name, size_t len);

/*
 * Enables and disables the activity kinds of CUPTI that a window needs, from one table.
 *
 * The result of Enable shows what a library supports: a kind that it refuses or does not have is
 * noted and is no error.  Only the thread that has the turn (client.h) may call these.
 */

struct buf;

struct cupti_choice {
	uint32_t kinds_mask; /* bits of enum kind */
	bool memory;         /* also allocations and pools */
	bool graph_level;    /* one event for a graph launch, none for its nodes */
	bool no_driver;      /* no calls of the driver */
};
struct cupti_kinds {
	bool asked[CUPTI_KINDS], on[CUPTI_KINDS];
	int results[CUPTI_KINDS]; /* result of Enable, for kinds with `asked` */
	unsigned asked_count, on_count;
	bool work_asked, work_on; /* kernels, copies or graphs were requested, enabled */
	int refusal;              /* reason why no useful kind is on; CUPTI_OK: one is on */
};

void cupti_kinds_enable(const struct cupti_lib *lib, const struct cupti_choice *choice,
			struct cupti_kinds *out);
/* Switches one of the kinds that could be enabled, while others are on. */
void cupti_kinds_set(const struct cupti_lib *lib, struct cupti_kinds *k, int kind, bool on);
/* Enables again all kinds that are on, because another tool may have disabled them. */
void cupti_kinds_enable_again(const struct cupti_lib *lib, const struct cupti_kinds *k);
/* Disables the kinds that are on; the struct is not changed. */
void cupti_kinds_disable(const struct cupti_lib *lib, const struct cupti_kinds *k);
/* Appends JSON such as {"on": [10, 1], "off": {"54": 21}}; values of "off" are results of
 * Enable. */
void cupti_kinds_put_json(const struct cupti_kinds *k, struct buf *out);

/*
 * The steps that a buffer needs before CUPTI's completion callback returns.
 *
 * Pointers in records become invalid then, so every text is replaced by an id of texts.h: the eight
 * bytes of the pointer hold the id.  This allocates no memory, and takes a lock only for new names
 * (texts.h).
 */

/* Facts about a buffer, for the writer. */
enum names_mark {
	MARK_TABLES = 1, /* it has records of devices, contexts or streams */
	MARK_EVEN = 2, /* records follow each other by the library's sizes, so no call is needed to
			  step */
};

/* Program's threads.  Returns the marks. */
unsigned cupti_names_keep(const struct cupti_lib *lib, uint8_t *bytes, size_t valid);
/*
 * Any thread.  For a buffer that is discarded: counts the records that would have become events,
 * and frees the memory that CUPTI leaves to its client.
 */
uint64_t cupti_names_drop(const struct cupti_lib *lib, uint8_t *bytes, size_t valid);
/* Any thread.  Clears pointers in a copy of another client's buffer, because that client frees
 * their memory. */
void cupti_names_leave(const struct cupti_lib *lib, uint8_t *bytes, size_t valid);
/* Frees memory that CUPTI allocated for this record and leaves to its client; the pointer becomes
 * 0. */
void cupti_names_free(const struct cupti_lib *lib, uint32_t kind, uint8_t *record);

/*
 * Makes the event descriptor of a record: its track, name and argument schema.
 *
 * CUPTI has no names for copies, sets, waits and graph launches, and we invent none: kind and
 * arguments describe them.  Writer thread only.
 */

struct writer;

/* Sets the version of the library, cuptiGetVersion(). */
void cupti_desc_open(uint32_t api_version);
/* Needs an open log.  Returns 0 if a ceiling is reached.  *track is set to the descriptor's
 * track. */
uint32_t cupti_desc_make(struct writer *w, const struct cupti_layout *p, const uint8_t *record,
			 uint32_t *track);
/* Sets names that the program gave to streams since the last call. */
void cupti_desc_name_streams(struct writer *w);
/* Returns whether the record is noise: a call of the table, or a query of an event that has not
 * happened yet. */
bool cupti_desc_is_noise(const struct cupti_layout *p, const uint8_t *record);

/*
 * Explains results and versions of CUPTI to users: one sentence, with the remedy.  Constant data,
 * any thread.
 */

/* Never returns NULL; a result without a sentence of its own is described in `space`. */
const char *cupti_result_message(const struct cupti_lib *lib, int result, char space[160]);
/* Conditions under which a fault of a version matters. */
enum cupti_fault_condition {
	FAULT_CLOCK = 1,         /* another tool has set CUPTI's clock */
	FAULT_GRAPHS = 2,        /* CUDA graphs were recorded by node */
	FAULT_SECOND_WINDOW = 4, /* there was a window before */
	FAULT_ANY = 7,
};
/*
 * Returns fault `number` (from 0) of those of this version that matter under the conditions `when`,
 * or NULL if there are no more.
 */
const char *cupti_fault_message(uint32_t api_version, unsigned when, unsigned number);
/* Returns whether cuptiFinalize() of this version works. */
bool cupti_can_finalize(uint32_t api_version);

/*
 * Changes settings of CUPTI that apply to the whole process: buffers come zeroed, and thread ids
 * are the kernel's.  Returns false if the thread ids could not be set.  Reset restores the previous
 * settings, on which other tools rely.
 */
bool cupti_lib_set_process(const struct cupti_lib *lib);
void cupti_lib_reset_process(const struct cupti_lib *lib);

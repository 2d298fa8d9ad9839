/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the parts of the probe of CUPTI. */
#pragma once

#include "collector/probe/cupti/layout.h"
#include "collector/probe/cupti/lib.h"

/*
 * Names of CUDA functions by callback id, and which calls are left out as noise.
 *
 * Names come from the loaded library, so they fit its version.  The table of noise lists function
 * names: calls that only query, poll or change a thread's state, of which a training step makes
 * thousands.  State is static, filled once and constant afterwards.
 */

void cupti_calls_open(const struct cupti_lib *lib);
/* Without the version that CUDA adds ("cudaLaunchKernel_v7000"); NULL: no such call. */
const char *cupti_call_name(enum cupti_domain domain, uint32_t cbid, size_t *len);
bool cupti_call_is_noise(enum cupti_domain domain, uint32_t cbid);
/* By name, without a library. */
bool cupti_name_is_noise(const char *name, size_t len);

/*
 * Which activity kinds of CUPTI a window needs: one table, switched on and off.
 *
 * The result of Enable decides what a library can do: a kind that it does not know or refuses is
 * noted, never fatal.  Only the thread that has the turn (client.h).
 */

struct buf;

struct cupti_choice {
	uint32_t kinds_mask; /* bits of enum kind */
	bool memory;         /* allocations and pools too */
	bool graph_level;    /* one event for a graph, none for its nodes */
	bool no_driver;      /* no calls of the driver */
};
struct cupti_kinds {
	bool asked[CUPTI_KINDS], on[CUPTI_KINDS];
	int results[CUPTI_KINDS]; /* of Enable, where asked */
	unsigned asked_count, on_count;
	bool work_asked, work_on; /* kernels, copies or graphs */
	int refusal;              /* why nothing worth it is recorded; CUPTI_OK: it is */
};

void cupti_kinds_enable(const struct cupti_lib *lib, const struct cupti_choice *choice,
			struct cupti_kinds *out);
/* One of those that could be enabled, as long as others are on. */
void cupti_kinds_set(const struct cupti_lib *lib, struct cupti_kinds *k, int kind, bool on);
/* Those that are on, whatever another tool has done to them meanwhile. */
void cupti_kinds_enable_again(const struct cupti_lib *lib, const struct cupti_kinds *k);
/* Disables the kinds that are on; the struct is not changed. */
void cupti_kinds_disable(const struct cupti_lib *lib, const struct cupti_kinds *k);
/* {"on": [10, 1], "off": {"54": 21}} */
void cupti_kinds_put_json(const struct cupti_kinds *k, struct buf *out);

/*
 * What must happen to a buffer before CUPTI's completion callback returns.
 *
 * Pointers in records die then, so every text becomes an id of names.h, in place: the pointer's
 * eight bytes hold the id.  Takes no memory; a lock only for a name that is new (names.h).
 */

/* What the writer should know of a buffer. */
enum names_mark {
	MARK_TABLES = 1, /* devices, contexts or streams are in it */
	MARK_EVEN = 2,   /* the library steps by its record sizes, so we may */
};

/* Program's threads.  Returns marks; *records gets the number of records. */
unsigned cupti_names_keep(const struct cupti_lib *lib, uint8_t *bytes, size_t valid,
			  uint64_t *records);
/*
 * Any thread.  For a buffer that is not kept: counts the records that would have become events, and
 * frees what CUPTI leaves to its client.
 */
uint64_t cupti_names_drop(const struct cupti_lib *lib, uint8_t *bytes, size_t valid);
/* Any thread.  In a copy of another client's buffer: that client frees what CUPTI leaves to it. */
void cupti_names_leave(const struct cupti_lib *lib, uint8_t *bytes, size_t valid);
/* Memory that CUPTI allocated for this record and leaves to its client; the pointer becomes 0. */
void cupti_names_free(const struct cupti_lib *lib, uint32_t kind, uint8_t *record);

/*
 * Makes the event descriptor of a record: its track, name and argument schema.
 *
 * CUPTI has no names for copies, sets, waits and graph launches, and none is made up: kind and
 * arguments describe them.  Writer thread only.
 */

struct writer;

/* Of the library: cuptiGetVersion(). */
void cupti_desc_open(uint32_t api_version);
/* Needs an open log.  0: a ceiling is reached.  *track gets the descriptor's track. */
uint32_t cupti_desc_make(struct writer *w, const struct cupti_layout *p, const uint8_t *record,
			 uint32_t *track);
/* Streams that the program gave a name meanwhile. */
void cupti_desc_name_streams(struct writer *w);
/* A call that the table of noise leaves out, or a query that was not answered yet. */
bool cupti_desc_is_noise(const struct cupti_layout *p, const uint8_t *record);

/*
 * What results and versions of CUPTI mean for people: one sentence, with the remedy.
 * Constant data, any thread.
 */

/* Never NULL; a result without a sentence of its own is described in `space`. */
const char *cupti_result_message(const struct cupti_lib *lib, int result, char space[160]);
/* What a fault of a version needs to matter. */
enum cupti_fault_condition {
	FAULT_CLOCK = 1,         /* another tool has set CUPTI's clock */
	FAULT_GRAPHS = 2,        /* CUDA graphs were recorded by node */
	FAULT_SECOND_WINDOW = 4, /* there was a window before */
	FAULT_ANY = 7,
};
/*
 * Fault `number` (from 0) among those of this version that matter under the conditions `when`;
 * NULL: there are no more.
 */
const char *cupti_fault_message(uint32_t api_version, unsigned when, unsigned number);
/* Versions whose cuptiFinalize() works. */
bool cupti_can_finalize(uint32_t api_version);

/*
 * What we set that is not ours but the process's: buffers come zeroed, threads have the kernel's
 * ids.  False: they have not.  Reset sets it as it was before: others read their records by it.
 */
bool cupti_lib_set_process(const struct cupti_lib *lib);
void cupti_lib_reset_process(const struct cupti_lib *lib);

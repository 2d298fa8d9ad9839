/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit.h - the language of --what-if: sets of changes to a run.
 *
 * 	data=0              the step thread needs no time for its input (or a part: data=0.5)
 * 	launch=graph        the host launches each step as one graph: its own time outside of the
 * 	                    input is 0, and it waits for the GPU as before; steps that launch
 * 	                    no GPU work stay as they are
 * 	host:PHASE=0.5      own time of threads in a phase; * is every phase
 * 	kernel:GLOB=0.5     duration of compute kernels whose name matches
 * 	work:KIND=0.5       duration of kernels of a kind, by their names: gemm, elementwise, ...
 * 	                    (name.h), short (below 10 us), short_comm (communication below 50 us),
 * 	                    batched (launched by aten::bmm)
 * 	place:PATH=0        own time and GPU work of a place in the model: of everything below a
 * 	                    range whose name, or path from the outermost range with / between
 * 	                    names, matches
 * 	comm=0              duration of communication; comm=overlap: nothing waits for it
 * 	link=2x             communication twice as fast
 * 	copy=0              duration of copies and fills; copy:GLOB=0: of "HtoD pageable device",
 * 	                    "memset"
 * 	rank:N=median       operations of this rank take as long as those of its peers (job.h), in
 * 	                    the replay of ranks; only together with others of this form
 * 	cause:NAME=0        own time of threads in calls: launch, sync, blocking_copy, allocator,
 * 	                    compile, gc; with 0 they do not wait for the GPU either
 *
 * Edits of a set are separated by commas and apply together. Factors multiply. Sets are replayed
 * side by side, each against the run as it was.
 */
#pragma once

#include "analyze/replay/replay.h"
#include "convert/name/rules.h"
#include "convert/name/name.h"

enum edit_type {
	EDIT_DATA,
	EDIT_LAUNCH,
	EDIT_HOST,
	EDIT_KERNEL,
	EDIT_WORK,
	EDIT_PLACE,
	EDIT_COMM,
	EDIT_OVERLAP,
	EDIT_COPY,
	EDIT_CAUSE,
	EDIT_RANK
};
enum { EDITS_MAX = 16, EDIT_TEXT = 128, EDIT_SETS_MAX = REPLAY_STATES - 2, EDIT_PLACES = 16 };

struct edit {
	enum edit_type type;
	double factor;
	char pattern[EDIT_TEXT]; /* glob of kernels, copies or places; a phase; a kind of work */
	/* EDIT_CAUSE: enum replay_activity; EDIT_PLACE: the glob's number; EDIT_RANK: the rank */
	unsigned number;
};
struct edit_set {
	char text[4 * EDIT_TEXT]; /* as the user wrote it */
	struct edit edits[EDITS_MAX];
	size_t count;
};

/* Parses one set. ST_USAGE: the error names the wrong edit and lists the valid ones. */
enum status edit_parse(struct edit_set *out, const char *text, size_t len, struct error *err);
/* Parses sets separated by semicolons: "data=0;comm=0,copy=0". The caller frees *out with
 * free(). */
enum status edit_sets_parse(struct edit_set **out, size_t *count, const char *text,
			    struct error *err);

/* Adds the globs of places in `sets` to the first `known` ones of `globs`, without duplicates, and
 * numbers them. Returns their count, at most EDIT_PLACES; further globs match nothing. */
size_t edit_places(struct edit_set *sets, size_t count, const char *globs[EDIT_PLACES],
		   size_t known);
/* Returns whether a glob matches a range: its name, or its path from the outermost range. */
bool edit_is_place(const char *glob, const char *name, const char *path);

/* What edits are matched against: own time of a thread, or work on a GPU. */
struct edit_subject {
	/* the phase; for work the kernel, or a description of the copy */
	const char *name;
	enum gpu_class work_class; /* the members down to is_batched are for work */
	enum work work;
	bool is_short, is_batched;
	unsigned phase, activity; /* the members down to is_step_thread are for own time */
	bool is_step_thread;
	bool is_work;
	uint32_t places; /* bit set of the globs that the subject's place matches */
};
struct edit_kinds { /* indexed by the kind of a point; the owner frees `all` */
	struct edit_subject *all;
	size_t count, cap;
};
double edit_factor(const struct edit_set *set, const struct edit_subject *of);
bool edit_has(const struct edit_set *set, enum edit_type type);
/* Returns whether calls of this activity no longer wait: cause:sync=0, cause:blocking_copy=0. */
bool edit_drops_waits(const struct edit_set *set, unsigned activity);

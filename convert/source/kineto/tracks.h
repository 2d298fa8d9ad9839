/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracks.h - tracks from the pids and tids of a file in Chrome's JSON, and their names.
 *
 * A file of Kineto is one process: its pid is that of the operators and calls.  GPUs are written as
 * pids of their own and become devices.  Other pids (Python functions of pid 0, "Spans", overhead
 * of pid -1) become threads of the one process, distinguished by track.context, which no other host
 * thread has; the pid becomes an attribute.  In other files each pid is a process.  Names ("M"
 * events) may stand before or after the events, so they are set at the end.
 */
#pragma once

#include "convert/source/kineto/args.h"
#include "schemas/base/map.h"

/* A pid or tid: a number, also as text ("25738", "stream 7"), or a text. */
struct kineto_id {
	bool is_given, is_text;
	uint32_t text;  /* a name */
	int64_t number; /* of a text: one that no thread has */
};
enum status kineto_id_of(struct kineto_args *a, const struct json *value, struct kineto_id *out,
			 struct error *err);

struct kineto_tracks {
	struct trace *trace;
	uint32_t process;     /* the row of the trace; 0: each pid has one of its own ... */
	uint32_t host;        /* ... on this host, a name */
	struct kineto_id pid; /* of the process, once it was found */
	struct kineto_track *tracks;
	struct given_name *names;
	struct hash_index track_index, name_index;
	size_t track_cap, name_cap;
	uint32_t track_count, name_count;
	uint32_t last; /* the track that was found last */
	uint64_t names_lost;
};

void kineto_tracks_release(struct kineto_tracks *k);

/* The pid is the process's own: threads of it that came before are threads of the process. */
enum status kineto_tracks_set_pid(struct kineto_tracks *k, const struct kineto_id *pid,
				  struct error *err);

/* The track of an event: `t` without its process; the context of a thread is set here. */
enum status kineto_track_find(struct kineto_tracks *k, struct track *t, const struct kineto_id *pid,
			      const struct kineto_id *tid, uint32_t *track, struct error *err);

/* An "M" event names a thread, or the process when `tid` is NULL; the last one counts. */
enum status kineto_track_named(struct kineto_tracks *k, const struct kineto_id *pid,
			       const struct kineto_id *tid, uint32_t name, struct error *err);
/* Gives the tracks their names, and the processes that were made here also their constants.
 * Returns the name of the one process, 0: it has none. */
uint32_t kineto_tracks_finish(struct kineto_tracks *k, uint32_t schema);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracks.h - finds the tracks for the pids and tids of a file in Chrome's JSON, and their names.
 *
 * A file of Kineto contains one process: its pid is that of the operators and calls.  GPUs have
 * pids of their own in the file and become devices.  Other pids (Python functions of pid 0,
 * "Spans", overhead of pid -1) become threads of the one process, distinguished by track.context,
 * which no other host thread has; the pid becomes an attribute.  In files of other writers each pid
 * is a process.  Names ("M" events) may precede or follow the events, so they are set at the end.
 */
#pragma once

#include "convert/source/kineto/args.h"
#include "schemas/base/map.h"

/* A pid or tid: a number, also written as text ("25738", "stream 7"), or a text. */
struct kineto_id {
	bool is_given, is_text;
	uint32_t text;  /* name id of a text */
	int64_t number; /* for a text, a number that no thread has */
};
enum status kineto_id_of(struct kineto_args *a, const struct json *value, struct kineto_id *out,
			 struct error *err);

struct kineto_tracks {
	struct trace *trace;
	uint32_t process;     /* row of the trace; 0: each pid is a process of its own ... */
	uint32_t host;        /* ... on this host, a name id */
	struct kineto_id pid; /* pid of `process`, once it is known */
	struct kineto_track *tracks;
	struct given_name *names;
	struct hash_index track_index, name_index;
	size_t track_cap, name_cap;
	uint32_t track_count, name_count;
	uint32_t last; /* index of the track found last */
	uint64_t names_lost;
};

void kineto_tracks_release(struct kineto_tracks *k);

/* Sets the process's pid.  Threads with this pid that were found earlier become its threads. */
enum status kineto_tracks_set_pid(struct kineto_tracks *k, const struct kineto_id *pid,
				  struct error *err);

/* Finds or adds the track of an event.  `t` is given without its process; the context of a thread
 * is set here. */
enum status kineto_track_find(struct kineto_tracks *k, struct track *t, const struct kineto_id *pid,
			      const struct kineto_id *tid, uint32_t *track, struct error *err);

/* Records the name in an "M" event for a thread, or for the process if `tid` is NULL.  The last
 * name wins. */
enum status kineto_track_named(struct kineto_tracks *k, const struct kineto_id *pid,
			       const struct kineto_id *tid, uint32_t name, struct error *err);
/* Sets the names of tracks, and the names and constants (`schema`) of processes created here.
 * Returns the name of the one process, or 0 if it has none. */
uint32_t kineto_tracks_finish(struct kineto_tracks *k, uint32_t schema);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto/tracks.h - tracks from the pids and tids of a Kineto file, and their names.
 *
 * A file is one process: its pid is that of the ops and calls.  GPUs are written as pids of their
 * own and become devices.  What else has another pid (Python functions of pid 0, "Spans",
 * overhead of pid -1) are threads of the one process, kept apart by track.context, which no host
 * thread has otherwise; the pid itself is kept as an attribute.  Names ("M" events) may stand
 * before or after the events: they are set at the end.
 */
#ifndef CONVERT_KINETO_TRACKS_H
#define CONVERT_KINETO_TRACKS_H

#include "convert/json/scan.h"
#include "schemas/trace.h"

/* A pid or tid: a number, also as text ("25738", "stream 7"), or a text. */
struct kineto_id {
	bool is_given, is_text;
	uint32_t text;  /* a name */
	int64_t number; /* of a text: one that no thread has */
};

struct kineto_map { /* two words to one; open addressing */
	struct kineto_pair *rows;
	size_t count, cap; /* cap: 0 or a power of two */
};

struct kineto_tracks {
	struct trace *trace;
	uint32_t process; /* the row of the trace */
	struct kineto_id pid; /* of the process, once it is known */
	struct kineto_map tracks, names;
	struct buf list; /* struct kineto_track: those that were made */
	struct kineto_track *last;
	uint64_t names_lost;
};

void kineto_tracks_init(struct kineto_tracks *k, struct trace *trace, uint32_t process);
void kineto_tracks_release(struct kineto_tracks *k);

/* The pid is the process's own: threads of it that came before are threads of the process. */
enum status kineto_tracks_own(struct kineto_tracks *k, const struct kineto_id *pid,
			      struct error *err);

/* False: it is no number but the text, which the caller makes a name. */
bool kineto_id_number(const struct json *value, struct kineto_id *out);
void kineto_id_text(uint32_t name, struct kineto_id *out);

/* The track of an event: `t` without process and name; a thread's context is set here. */
enum status kineto_track_find(struct kineto_tracks *k, struct track *t,
			      const struct kineto_id *pid, const struct kineto_id *tid,
			      uint32_t *track, struct error *err);

/* "M" events: of a thread, or of the process when `tid` is NULL. */
enum status kineto_track_named(struct kineto_tracks *k, const struct kineto_id *pid,
			       const struct kineto_id *tid, uint32_t name, struct error *err);
/* At the end: names to the tracks; returns that of the process, 0 none. */
uint32_t kineto_tracks_finish(struct kineto_tracks *k);

#endif

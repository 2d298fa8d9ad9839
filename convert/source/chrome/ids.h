/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ids.h - pids and tids of a Chrome JSON file as rows of the trace.  Names ("M" events) may stand
 * before or after the events, so they are set at the end.
 */
#ifndef CONVERT_SOURCE_CHROME_IDS_H
#define CONVERT_SOURCE_CHROME_IDS_H

#include "convert/source/kineto/tracks.h"

struct chrome_ids {
	struct trace *trace;
	uint32_t host; /* a name: that of the file */
	struct chrome_id *rows;
	struct hash_index index;
	size_t cap;
	uint32_t count;
};

void chrome_ids_release(struct chrome_ids *k);

enum status chrome_ids_process(struct chrome_ids *k, const struct kineto_id *pid, uint32_t *process,
			       struct error *err);
enum status chrome_ids_thread(struct chrome_ids *k, const struct kineto_id *pid,
			      const struct kineto_id *tid, uint32_t *track, struct error *err);
/* The counter `name` of a process. */
enum status chrome_ids_counter(struct chrome_ids *k, const struct kineto_id *pid, uint32_t name,
			       uint32_t *track, struct error *err);
/* Names a thread, or the process when `tid` is NULL; the last name counts, as in viewers. */
enum status chrome_ids_name(struct chrome_ids *k, const struct kineto_id *pid,
			    const struct kineto_id *tid, uint32_t name, struct error *err);
/* Gives the rows their names, and every process of the file its constants. */
void chrome_ids_finish(struct chrome_ids *k, uint32_t schema);

#endif

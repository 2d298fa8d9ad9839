/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json/ids.h - pids and tids of a Chrome JSON file as rows of the trace.  Names ("M" events) may
 * stand before or behind the events: they are set at the end.
 */
#ifndef CONVERT_JSON_IDS_H
#define CONVERT_JSON_IDS_H

#include "convert/kineto/args.h"
#include "convert/kineto/tracks.h"

struct json_ids {
	struct trace *trace;
	uint32_t host; /* a name: that of the file */
	struct json_id *rows; /* open addressing */
	size_t count, cap;
};

void json_ids_init(struct json_ids *k, struct trace *trace, uint32_t host);
void json_ids_release(struct json_ids *k);

/* A number, or the name of a text. */
enum status json_id_of(struct kineto_args *a, const struct json *value, struct kineto_id *out,
		       struct error *err);

enum status json_ids_process(struct json_ids *k, const struct kineto_id *pid, uint32_t *process,
			     struct error *err);
enum status json_ids_thread(struct json_ids *k, const struct kineto_id *pid,
			    const struct kineto_id *tid, uint32_t *track, struct error *err);
/* The counter `name` of a process. */
enum status json_ids_counter(struct json_ids *k, const struct kineto_id *pid, uint32_t name,
			     uint32_t *track, struct error *err);
/* Of a thread, or of the process when `tid` is NULL; the last one counts, as in viewers. */
enum status json_ids_name(struct json_ids *k, const struct kineto_id *pid,
			  const struct kineto_id *tid, uint32_t name, struct error *err);
/* Names to the rows; every process of the file gets `shape`. */
void json_ids_finish(struct json_ids *k, uint32_t shape);

#endif

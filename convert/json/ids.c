/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/json/ids.h"

#include "schemas/hash.h"

#include <stdlib.h>

enum { ROWS_FIRST = 64, ROWS_MOST = 1 << 18 };

enum what { FREE_ROW, OF_PROCESS, OF_THREAD, OF_COUNTER };

struct json_id {
	uint8_t what;
	int64_t pid, tid; /* as in the file; of a counter tid is the name */
	uint32_t id;      /* in the trace; 0: only a name was met */
	uint32_t name;
};

void json_ids_init(struct json_ids *k, struct trace *trace, uint32_t host)
{
	*k = (struct json_ids){ .trace = trace, .host = host };
}

void json_ids_release(struct json_ids *k)
{
	free(k->rows);
	*k = (struct json_ids){ 0 };
}

enum status json_id_of(struct kineto_args *a, const struct json *value, struct kineto_id *out,
		       struct error *err)
{
	uint32_t name;

	*out = (struct kineto_id){ 0 };
	if (value->type == JSON_END || kineto_id_number(value, out))
		return ST_OK;
	name = kineto_name(a, value, err);
	if (!name)
		return err->status;
	kineto_id_text(name, out);
	return ST_OK;
}

static struct json_id *place(const struct json_ids *k, uint8_t what, int64_t pid, int64_t tid)
{
	size_t at = hash_word(hash_word(what, (uint64_t)pid), (uint64_t)tid) & (k->cap - 1);
	struct json_id *r = &k->rows[at];

	while (r->what && (r->what != what || r->pid != pid || r->tid != tid)) {
		at = (at + 1) & (k->cap - 1);
		r = &k->rows[at];
	}
	return r;
}

static enum status grow(struct json_ids *k, struct error *err)
{
	struct json_ids old = *k;

	if (k->count >= ROWS_MOST)
		return fail(err, ST_CEILING, NOWHERE, "more than %d processes, threads and counters",
			    ROWS_MOST);
	k->cap = old.cap ? old.cap * 2 : ROWS_FIRST;
	k->rows = calloc(k->cap, sizeof(*k->rows));
	if (!k->rows) {
		*k = old;
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the ids of threads");
	}
	for (size_t i = 0; i < old.cap; i++)
		if (old.rows[i].what)
			*place(k, old.rows[i].what, old.rows[i].pid, old.rows[i].tid) = old.rows[i];
	free(old.rows);
	return ST_OK;
}

static enum status find(struct json_ids *k, uint8_t what, int64_t pid, int64_t tid,
			struct json_id **out, struct error *err)
{
	if (k->count * 2 >= k->cap)
		TRY(grow(k, err));
	*out = place(k, what, pid, tid);
	if ((*out)->what)
		return ST_OK;
	**out = (struct json_id){ .what = what, .pid = pid, .tid = tid };
	k->count++;
	return ST_OK;
}

/* A number that a process can have; one that is not gets a number of its own. */
static uint32_t pid_number(int64_t pid)
{
	return pid >= 0 && pid <= INT32_MAX ? (uint32_t)pid
					    : (uint32_t)hash_word(0, (uint64_t)pid) | 0x80000000u;
}

enum status json_ids_process(struct json_ids *k, const struct kineto_id *pid, uint32_t *process,
			     struct error *err)
{
	struct process p = { .host = k->host, .pid = pid_number(pid->number), .rank = NO_RANK };
	struct json_id *r;

	TRY(find(k, OF_PROCESS, pid->number, 0, &r, err));
	if (!r->id) {
		r->id = trace_process(k->trace, &p, err);
		if (!r->id)
			return err->status;
		if (pid->is_text && !r->name)
			r->name = pid->text;
	}
	*process = r->id;
	return ST_OK;
}

static enum status find_track(struct json_ids *k, uint8_t what, const struct kineto_id *pid,
			      int64_t tid, const struct track *t, uint32_t *track,
			      struct error *err)
{
	struct track made = *t;
	struct json_id *r;

	TRY(json_ids_process(k, pid, &made.process, err));
	TRY(find(k, what, pid->number, tid, &r, err));
	if (!r->id) {
		r->id = trace_track(k->trace, &made, err);
		if (!r->id)
			return err->status;
	}
	*track = r->id;
	return ST_OK;
}

enum status json_ids_thread(struct json_ids *k, const struct kineto_id *pid,
			    const struct kineto_id *tid, uint32_t *track, struct error *err)
{
	struct track t = { .home = HOME_THREAD, .device = NO_ID, .context = NO_ID,
			   .id = (uint64_t)tid->number };

	TRY(find_track(k, OF_THREAD, pid, tid->number, &t, track, err));
	return tid->is_text ? json_ids_name(k, pid, tid, tid->text, err) : ST_OK;
}

enum status json_ids_counter(struct json_ids *k, const struct kineto_id *pid, uint32_t name,
			     uint32_t *track, struct error *err)
{
	struct track t = { .home = HOME_COUNTER, .device = NO_ID, .context = NO_ID, .name = name };

	return find_track(k, OF_COUNTER, pid, name, &t, track, err);
}

enum status json_ids_name(struct json_ids *k, const struct kineto_id *pid,
			  const struct kineto_id *tid, uint32_t name, struct error *err)
{
	struct json_id *r;

	TRY(find(k, tid ? OF_THREAD : OF_PROCESS, pid->number, tid ? tid->number : 0, &r, err));
	r->name = name;
	return ST_OK;
}

void json_ids_finish(struct json_ids *k, uint32_t shape)
{
	for (size_t i = 0; i < k->cap; i++) {
		const struct json_id *r = &k->rows[i];
		struct process p;

		if (!r->id)
			continue;
		if (r->what == OF_THREAD && r->name)
			trace_set_track_name(k->trace, r->id, r->name);
		if (r->what != OF_PROCESS)
			continue;
		p = *trace_get_process(k->trace, r->id);
		p.command = r->name;
		p.shape = shape;
		trace_set_process(k->trace, r->id, &p);
	}
}

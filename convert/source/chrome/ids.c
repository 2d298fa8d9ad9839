/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/chrome/ids.h"

#include "schemas/base/vec.h"

#include <stdlib.h>

enum { ROWS_MOST = 1 << 18 };

enum id_type { ID_PROCESS, ID_THREAD, ID_COUNTER };

struct chrome_id {
	uint8_t type;     /* enum id_type */
	int64_t pid, tid; /* as in the file; of a counter tid is the name */
	uint32_t id;      /* in the trace; 0: only its name was read so far */
	uint32_t name;
};

void chrome_ids_release(struct chrome_ids *k)
{
	hash_release(&k->index);
	free(k->rows);
	*k = (struct chrome_ids){ 0 };
}

/* The row of these ids, added unless it is there; until the next call. */
static enum status find(struct chrome_ids *k, uint8_t type, int64_t pid, int64_t tid,
			struct chrome_id **out, struct error *err)
{
	uint64_t hash = hash_word(hash_word(type, (uint64_t)pid), (uint64_t)tid);
	uint32_t item;

	for (size_t at = hash_first(&k->index, hash);
	     (item = hash_item(&k->index, &at, hash)) != HASH_NONE; at = hash_next(&k->index, at)) {
		*out = &k->rows[item];
		if ((*out)->type == type && (*out)->pid == pid && (*out)->tid == tid)
			return ST_OK;
	}
	if (k->count == ROWS_MOST)
		return fail(err, ST_CEILING, NOWHERE,
			    "more than %d processes, threads and counters", ROWS_MOST);
	TRY(vec_reserve(&k->rows, &k->cap, k->count + 1, err));
	TRY(hash_add(&k->index, hash, k->count, err));
	*out = &k->rows[k->count++];
	**out = (struct chrome_id){ .type = type, .pid = pid, .tid = tid };
	return ST_OK;
}

enum status chrome_ids_process(struct chrome_ids *k, const struct kineto_id *pid, uint32_t *process,
			       struct error *err)
{
	int64_t number = pid->number;
	struct process p = { .host = k->host, .pid = (uint32_t)number, .rank = NO_RANK };
	struct chrome_id *r;

	if (number < 0 || number > INT32_MAX) /* no process can have it */
		p.pid = (uint32_t)hash_word(0, (uint64_t)number) | 0x80000000u;
	TRY(find(k, ID_PROCESS, number, 0, &r, err));
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

static enum status find_track(struct chrome_ids *k, uint8_t type, const struct kineto_id *pid,
			      int64_t tid, struct track t, uint32_t *track, struct error *err)
{
	struct chrome_id *r;

	t.device = t.context = NO_ID;
	TRY(chrome_ids_process(k, pid, &t.process, err));
	TRY(find(k, type, pid->number, tid, &r, err));
	if (!r->id)
		r->id = trace_track(k->trace, &t, err);
	*track = r->id;
	return r->id ? ST_OK : err->status;
}

enum status chrome_ids_thread(struct chrome_ids *k, const struct kineto_id *pid,
			      const struct kineto_id *tid, uint32_t *track, struct error *err)
{
	struct track t = { .type = TRACK_THREAD, .id = (uint64_t)tid->number };

	TRY(find_track(k, ID_THREAD, pid, tid->number, t, track, err));
	return tid->is_text ? chrome_ids_name(k, pid, tid, tid->text, err) : ST_OK;
}

enum status chrome_ids_counter(struct chrome_ids *k, const struct kineto_id *pid, uint32_t name,
			       uint32_t *track, struct error *err)
{
	struct track t = { .type = TRACK_COUNTER, .name = name };

	return find_track(k, ID_COUNTER, pid, name, t, track, err);
}

enum status chrome_ids_name(struct chrome_ids *k, const struct kineto_id *pid,
			    const struct kineto_id *tid, uint32_t name, struct error *err)
{
	struct chrome_id *r;

	TRY(find(k, tid ? ID_THREAD : ID_PROCESS, pid->number, tid ? tid->number : 0, &r, err));
	r->name = name;
	return ST_OK;
}

void chrome_ids_finish(struct chrome_ids *k, uint32_t schema)
{
	for (uint32_t i = 0; i < k->count; i++) {
		const struct chrome_id *r = &k->rows[i];

		if (r->id && r->type == ID_THREAD && r->name)
			trace_set_track_name(k->trace, r->id, r->name);
		if (r->id && r->type == ID_PROCESS) {
			struct process p = *trace_get_process(k->trace, r->id);

			p.command = r->name;
			p.schema = schema;
			trace_set_process(k->trace, r->id, &p);
		}
	}
}

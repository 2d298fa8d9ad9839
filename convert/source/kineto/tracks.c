/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/tracks.h"

#include "schemas/base/vec.h"

#include <stdlib.h>

enum { ROWS_MOST = 1 << 16 }; /* names beyond are counted, not kept; tracks beyond are refused */

/* Outside of what pids and tids are, so that texts and numbers never collide. */
#define TEXT_NUMBERS   ((int64_t)1 << 40)
#define PROCESS_ITSELF INT64_MIN   /* in place of a tid */
#define FOREIGN_TEXT   0x80000000u /* in a context */

struct kineto_track {
	struct track track;
	int64_t pid, tid; /* as in the file */
	uint32_t id;      /* in the trace */
};
struct given_name {
	int64_t pid, tid;
	uint32_t name;
};

void kineto_tracks_init(struct kineto_tracks *k, struct trace *trace, uint32_t process)
{
	*k = (struct kineto_tracks){ .trace = trace, .process = process };
}

void kineto_tracks_release(struct kineto_tracks *k)
{
	hash_release(&k->track_index);
	hash_release(&k->name_index);
	free(k->tracks);
	free(k->names);
	*k = (struct kineto_tracks){ 0 };
}

enum status kineto_id_of(struct kineto_args *a, const struct json *value, struct kineto_id *out,
			 struct error *err)
{
	static const char stream[] = "stream ";
	const char *text = value->text;
	size_t len = value->len;

	*out = (struct kineto_id){ .is_given = value->type != JSON_END };
	if (value->type != JSON_NUMBER && value->type != JSON_STRING)
		return ST_OK; /* null and the like: as if it was pid 0 */
	if (value->type == JSON_STRING && len > sizeof(stream) - 1 &&
	    memcmp(text, stream, sizeof(stream) - 1) == 0) {
		text += sizeof(stream) - 1;
		len -= sizeof(stream) - 1;
	}
	if (json_i64(text, len, &out->number))
		return ST_OK;
	out->is_text = true;
	out->text = kineto_name(a, value, err);
	out->number = TEXT_NUMBERS + out->text;
	return out->text ? ST_OK : err->status;
}

static bool is_track(const struct kineto_track *k, const struct track *t, int64_t pid, int64_t tid)
{
	const struct track *of = &k->track;

	return of->type == t->type && of->device == t->device && of->context == t->context &&
	       of->id == t->id && of->name == t->name && k->pid == pid && k->tid == tid;
}

static uint64_t hash_of(const struct track *t, int64_t pid, int64_t tid)
{
	uint64_t hash =
		hash_word(hash_word(t->device, t->context), (uint64_t)t->name << 8 | t->type);

	return hash_word(hash_word(hash_word(hash, t->id), (uint64_t)pid), (uint64_t)tid);
}

enum status kineto_tracks_set_pid(struct kineto_tracks *k, const struct kineto_id *pid,
				  struct error *err)
{
	k->pid = *pid;
	for (uint32_t i = 0; i < k->track_count; i++) {
		struct kineto_track *t = &k->tracks[i];

		if (t->track.type != TRACK_THREAD || t->pid != pid->number)
			continue;
		t->track.context = NO_ID;
		TRY(hash_add(&k->track_index, hash_of(&t->track, t->pid, t->tid), i, err));
	}
	return ST_OK;
}

enum status kineto_track_find(struct kineto_tracks *k, struct track *t, const struct kineto_id *pid,
			      const struct kineto_id *tid, uint32_t *track, struct error *err)
{
	uint64_t hash;
	uint32_t item;

	t->process = k->process;
	if (t->type == TRACK_THREAD) { /* keeps threads of other pids apart from the process's */
		t->context = NO_ID;
		if (pid->is_given && pid->is_text)
			t->context = FOREIGN_TEXT | pid->text;
		else if (pid->is_given)
			t->context =
				(uint32_t)pid->number == NO_ID ? NO_ID - 1 : (uint32_t)pid->number;
		if (k->pid.is_given && pid->number == k->pid.number)
			t->context = NO_ID;
	}
	if (k->last < k->track_count &&
	    is_track(&k->tracks[k->last], t, pid->number, tid->number)) {
		*track = k->tracks[k->last].id;
		return ST_OK;
	}
	hash = hash_of(t, pid->number, tid->number);
	for (size_t at = hash_first(&k->track_index, hash);
	     (item = hash_item(&k->track_index, &at, hash)) != HASH_NONE;
	     at = hash_next(&k->track_index, at))
		if (is_track(&k->tracks[item], t, pid->number, tid->number))
			break;
	if (item == HASH_NONE) {
		struct kineto_track made = { .track = *t, .pid = pid->number, .tid = tid->number };

		if (k->track_count == ROWS_MOST)
			return fail(err, ST_CEILING, NOWHERE, "more than %d threads and streams",
				    ROWS_MOST);
		TRY(vec_reserve(&k->tracks, &k->track_cap, k->track_count + 1, err));
		made.id = trace_track(k->trace, t, err);
		if (!made.id)
			return err->status;
		item = k->track_count;
		TRY(hash_add(&k->track_index, hash, item, err));
		k->tracks[k->track_count++] = made;
	}
	k->last = item;
	*track = k->tracks[item].id;
	return ST_OK;
}

static struct given_name *find_name(const struct kineto_tracks *k, int64_t pid, int64_t tid)
{
	uint64_t hash = hash_word((uint64_t)pid, (uint64_t)tid);
	uint32_t item;

	for (size_t at = hash_first(&k->name_index, hash);
	     (item = hash_item(&k->name_index, &at, hash)) != HASH_NONE;
	     at = hash_next(&k->name_index, at))
		if (k->names[item].pid == pid && k->names[item].tid == tid)
			return &k->names[item];
	return NULL;
}

enum status kineto_track_named(struct kineto_tracks *k, const struct kineto_id *pid,
			       const struct kineto_id *tid, uint32_t name, struct error *err)
{
	int64_t of = tid ? tid->number : PROCESS_ITSELF;
	struct given_name *n = find_name(k, pid->number, of);

	if (!n && k->name_count == ROWS_MOST) {
		k->names_lost++;
		return ST_OK;
	}
	if (!n) {
		TRY(vec_reserve(&k->names, &k->name_cap, k->name_count + 1, err));
		TRY(hash_add(&k->name_index, hash_word((uint64_t)pid->number, (uint64_t)of),
			     k->name_count, err));
		n = &k->names[k->name_count++];
		*n = (struct given_name){ .pid = pid->number, .tid = of };
	}
	n->name = name; /* the last one counts, as in viewers */
	return ST_OK;
}

uint32_t kineto_tracks_finish(struct kineto_tracks *k)
{
	const struct given_name *n;

	if (k->names_lost)
		trace_lose(k->trace, k->process, LOSS_CEILING, k->names_lost);
	for (uint32_t i = 0; i < k->track_count; i++) {
		const struct kineto_track *t = &k->tracks[i];

		if (t->track.type != TRACK_THREAD && t->track.type != TRACK_STREAM)
			continue;
		n = find_name(k, t->pid, t->tid);
		if (n)
			trace_set_track_name(k->trace, t->id, n->name);
	}
	n = find_name(k, k->pid.number, PROCESS_ITSELF);
	return n ? n->name : 0;
}

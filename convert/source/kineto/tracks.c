/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/tracks.h"

#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_NAME_MOST = 512 };
enum { ROWS_MOST = 1 << 18 }; /* more names are counted as lost, more tracks are an error */

/* Texts get numbers outside the range of pids and tids, so that the two never collide. */
#define TEXT_NUMBERS   ((int64_t)1 << 40)
#define PROCESS_ITSELF INT64_MIN   /* instead of a tid */
#define FOREIGN_TEXT   0x80000000u /* bit of a context */

struct kineto_track {
	struct track track;
	int64_t pid, tid; /* as in the file */
	uint32_t id;      /* id in the trace */
};
struct given_name {
	int64_t pid, tid;
	uint32_t name;
	uint32_t process; /* process created for the pid, or 0 */
};

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
		return ST_OK; /* null and other types are treated as pid 0 */
	if (value->type == JSON_STRING && len > sizeof(stream) - 1 &&
	    memcmp(text, stream, sizeof(stream) - 1) == 0) {
		text += sizeof(stream) - 1;
		len -= sizeof(stream) - 1;
	}
	if (json_i64(text, len, &out->number))
		return ST_OK;
	out->is_text = true;
	TRY(kineto_name(a, value, &out->text, err));
	out->number = TEXT_NUMBERS + out->text;
	return ST_OK;
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

/* Finds or adds the row of a name.  *out is NULL if there are too many. */
static enum status name_row(struct kineto_tracks *k, int64_t pid, int64_t tid,
			    struct given_name **out, struct error *err)
{
	*out = find_name(k, pid, tid);
	if (*out || k->name_count == ROWS_MOST)
		return ST_OK;
	TRY(vec_reserve(&k->names, &k->name_cap, k->name_count + 1, err));
	TRY(hash_add(&k->name_index, hash_word((uint64_t)pid, (uint64_t)tid), k->name_count, err));
	*out = &k->names[k->name_count++];
	**out = (struct given_name){ .pid = pid, .tid = tid };
	return ST_OK;
}

enum status kineto_track_named(struct kineto_tracks *k, const struct kineto_id *pid,
			       const struct kineto_id *tid, uint32_t name, struct error *err)
{
	struct given_name *n;

	TRY(name_row(k, pid->number, tid ? tid->number : PROCESS_ITSELF, &n, err));
	if (n)
		n->name = name;
	else
		k->names_lost++;
	return ST_OK;
}

static enum status too_many(struct error *err)
{
	return fail(err, ST_CEILING, NOWHERE, "more than %d processes, threads and streams",
		    ROWS_MOST);
}

/* Finds or adds the process of a pid, in files in which each pid is a process. */
static enum status find_process(struct kineto_tracks *k, const struct kineto_id *pid,
				uint32_t *process, struct error *err)
{
	struct process p = { .host = k->host, .pid = (uint32_t)pid->number, .rank = NO_RANK };
	struct given_name *n;

	if (pid->number < 0 || pid->number > INT32_MAX) /* not a valid pid */
		p.pid = (uint32_t)hash_word(0, (uint64_t)pid->number) | 0x80000000u;
	TRY(name_row(k, pid->number, PROCESS_ITSELF, &n, err));
	if (!n)
		return too_many(err);
	if (!n->process) {
		n->process = trace_process(k->trace, &p, err);
		if (!n->process)
			return err->status;
		if (pid->is_text && !n->name)
			n->name = pid->text;
	}
	*process = n->process;
	return ST_OK;
}

enum status kineto_track_find(struct kineto_tracks *k, struct track *t, const struct kineto_id *pid,
			      const struct kineto_id *tid, uint32_t *track, struct error *err)
{
	uint64_t hash;
	uint32_t item;

	t->process = k->process;
	if (!k->process) {
		TRY(find_process(k, pid, &t->process, err));
	} else if (t->type == TRACK_THREAD) { /* keep threads of other pids apart */
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
			return too_many(err);
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

/* Returns the name of a thread whose tid is a text: that text, after the process's if its pid is a
 * text too. */
static uint32_t name_of_texts(const struct kineto_tracks *k, const struct kineto_track *t)
{
	char name[TEXT_NAME_MOST];
	size_t len, pid_len = 0, tid_len;
	const char *tid, *pid = "";

	if (t->track.type != TRACK_THREAD || t->tid < TEXT_NUMBERS)
		return 0;
	tid = trace_text(k->trace, (uint32_t)(t->tid - TEXT_NUMBERS), &tid_len);
	if (t->pid >= TEXT_NUMBERS)
		pid = trace_text(k->trace, (uint32_t)(t->pid - TEXT_NUMBERS), &pid_len);
	if (!tid_len)
		return pid_len ? (uint32_t)(t->pid - TEXT_NUMBERS) : 0;
	if (!pid_len)
		return (uint32_t)(t->tid - TEXT_NUMBERS);
	len = (size_t)snprintf(name, sizeof(name), "%s / %s", pid, tid);
	return trace_name(k->trace, name, len < sizeof(name) ? len : sizeof(name) - 1, NULL);
}

uint32_t kineto_tracks_finish(struct kineto_tracks *k, uint32_t schema)
{
	const struct given_name *n;
	uint32_t name;

	if (k->names_lost)
		trace_lose(k->trace, k->process, LOSS_CEILING, k->names_lost);
	for (uint32_t i = 0; i < k->track_count; i++) {
		const struct kineto_track *t = &k->tracks[i];

		n = find_name(k, t->pid, t->tid);
		name = n && n->name ? n->name : name_of_texts(k, t);
		if (name && (t->track.type == TRACK_THREAD || t->track.type == TRACK_STREAM))
			trace_set_track_name(k->trace, t->id, name);
	}
	for (uint32_t i = 0; i < k->name_count; i++) {
		struct process p = *trace_get_process(k->trace, k->names[i].process);

		p.command = k->names[i].name;
		p.schema = schema;
		if (k->names[i].process)
			trace_set_process(k->trace, k->names[i].process, &p);
	}
	n = find_name(k, k->pid.number, PROCESS_ITSELF);
	return n ? n->name : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/kineto/tracks.h"

#include "schemas/hash.h"

#include <stdlib.h>

enum {
	MAP_FIRST = 64,
	MAP_MOST = 1 << 16, /* names and tracks beyond are counted, not kept */
	LIST_BYTES = 64 << 20,
};

/* Outside of what pids and tids are, so that texts and numbers never meet. */
#define TEXT_NUMBERS ((int64_t)1 << 40)
#define PROCESS_ITSELF INT64_MIN /* in place of a tid */
#define FOREIGN_TEXT 0x80000000u /* in a context */

struct kineto_pair {
	uint64_t a, b;
	uint32_t value; /* 0: free */
};
struct kineto_track {
	struct track track;
	int64_t pid, tid; /* as in the file */
	uint32_t id;      /* in the trace */
};

static uint32_t *map_find(const struct kineto_map *m, uint64_t a, uint64_t b)
{
	size_t at = hash_word(a, b) & (m->cap - 1);

	while (m->rows[at].value && (m->rows[at].a != a || m->rows[at].b != b))
		at = (at + 1) & (m->cap - 1);
	m->rows[at].a = a;
	m->rows[at].b = b;
	return &m->rows[at].value;
}

static enum status map_grow(struct kineto_map *m, struct error *err)
{
	struct kineto_map old = *m;
	size_t i;

	m->cap = old.cap ? old.cap * 2 : MAP_FIRST;
	m->rows = calloc(m->cap, sizeof(*m->rows));
	if (!m->rows) {
		*m = old;
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the names of threads");
	}
	for (i = 0; i < old.cap; i++)
		if (old.rows[i].value)
			*map_find(m, old.rows[i].a, old.rows[i].b) = old.rows[i].value;
	free(old.rows);
	return ST_OK;
}

/* *place is 0 for a new pair, which exists once it is set; NULL: the map is full. */
static enum status map_place(struct kineto_map *m, uint64_t a, uint64_t b, uint32_t **place,
			     struct error *err)
{
	if (m->count * 2 >= m->cap)
		TRY(map_grow(m, err));
	*place = map_find(m, a, b);
	if (**place)
		return ST_OK;
	if (m->count == MAP_MOST)
		*place = NULL;
	else
		m->count++;
	return ST_OK;
}

void kineto_tracks_init(struct kineto_tracks *k, struct trace *trace, uint32_t process)
{
	*k = (struct kineto_tracks){ .trace = trace, .process = process };
	buf_init(&k->list, LIST_BYTES);
}

void kineto_tracks_release(struct kineto_tracks *k)
{
	free(k->tracks.rows);
	free(k->names.rows);
	buf_release(&k->list);
	k->tracks = k->names = (struct kineto_map){ 0 };
}

bool kineto_id_number(const struct json *value, struct kineto_id *out)
{
	static const char stream[] = "stream ";
	const char *text = value->text;
	size_t len = value->len;

	*out = (struct kineto_id){ .is_given = true };
	if (value->type != JSON_NUMBER && value->type != JSON_STRING)
		return true; /* null and the like: as if it was pid 0 */
	if (value->type == JSON_STRING && len > sizeof(stream) - 1 &&
	    memcmp(text, stream, sizeof(stream) - 1) == 0) {
		text += sizeof(stream) - 1;
		len -= sizeof(stream) - 1;
	}
	return json_i64(text, len, &out->number);
}

void kineto_id_text(uint32_t name, struct kineto_id *out)
{
	*out = (struct kineto_id){
		.is_given = true, .is_text = true, .text = name, .number = TEXT_NUMBERS + name
	};
}

static bool same_track(const struct track *a, const struct track *b)
{
	return a->home == b->home && a->device == b->device && a->context == b->context &&
	       a->id == b->id && a->name == b->name;
}

/* What keeps threads of other pids apart from those of the process. */
static uint32_t foreign_context(const struct kineto_tracks *k, const struct kineto_id *pid)
{
	if (!pid->is_given || (k->pid.is_given && pid->number == k->pid.number))
		return NO_ID;
	if (pid->is_text)
		return FOREIGN_TEXT | pid->text;
	return (uint32_t)pid->number == NO_ID ? NO_ID - 1 : (uint32_t)pid->number;
}

static struct kineto_track *track_at(const struct kineto_tracks *k, uint32_t index)
{
	return (struct kineto_track *)(void *)k->list.data + index;
}

/* Those of one row of a viewer: one, but for the contexts of a stream. */
static enum status track_make(struct kineto_tracks *k, const struct track *t, int64_t pid,
			      int64_t tid, uint32_t *index, struct error *err)
{
	struct kineto_track made = { .track = *t, .pid = pid, .tid = tid };

	made.track.process = k->process;
	made.id = trace_track(k->trace, &made.track, err);
	if (!made.id)
		return err->status;
	buf_put(&k->list, &made, sizeof(made));
	TRY(buf_status(&k->list, err));
	*index = (uint32_t)(k->list.len / sizeof(made));
	return ST_OK;
}

static enum status track_place(struct kineto_tracks *k, const struct track *t, int64_t pid,
			       int64_t tid, uint32_t **place, struct error *err)
{
	uint64_t where = hash_word(hash_word(t->device, t->context),
				   (uint64_t)t->name << 8 | t->home);
	uint64_t which = hash_word(hash_word(t->id, (uint64_t)pid), (uint64_t)tid);

	TRY(map_place(&k->tracks, where, which, place, err));
	if (!*place)
		return fail(err, ST_CEILING, NOWHERE, "more than %d threads and streams",
			    MAP_MOST);
	return ST_OK;
}

enum status kineto_tracks_own(struct kineto_tracks *k, const struct kineto_id *pid,
			      struct error *err)
{
	uint32_t i, *place, count = (uint32_t)(k->list.len / sizeof(struct kineto_track));

	k->pid = *pid;
	for (i = 0; i < count; i++) {
		struct kineto_track *t = track_at(k, i);

		if (t->track.home != HOME_THREAD || t->pid != pid->number)
			continue;
		t->track.context = NO_ID;
		TRY(track_place(k, &t->track, t->pid, t->tid, &place, err));
		*place = i + 1;
	}
	return ST_OK;
}

enum status kineto_track_find(struct kineto_tracks *k, struct track *t,
			      const struct kineto_id *pid, const struct kineto_id *tid,
			      uint32_t *track, struct error *err)
{
	uint32_t *place;

	t->process = k->process;
	if (t->home == HOME_THREAD)
		t->context = foreign_context(k, pid);
	if (k->last && same_track(&k->last->track, t) && k->last->pid == pid->number &&
	    k->last->tid == tid->number) {
		*track = k->last->id;
		return ST_OK;
	}
	TRY(track_place(k, t, pid->number, tid->number, &place, err));
	if (!*place)
		TRY(track_make(k, t, pid->number, tid->number, place, err));
	k->last = track_at(k, *place - 1);
	*track = k->last->id;
	return ST_OK;
}

enum status kineto_track_named(struct kineto_tracks *k, const struct kineto_id *pid,
			       const struct kineto_id *tid, uint32_t name, struct error *err)
{
	uint32_t *place;

	TRY(map_place(&k->names, (uint64_t)pid->number,
		      (uint64_t)(tid ? tid->number : PROCESS_ITSELF), &place, err));
	if (place)
		*place = name; /* the last one counts, as in viewers */
	else
		k->names_lost++;
	return ST_OK;
}

uint32_t kineto_tracks_finish(struct kineto_tracks *k)
{
	uint32_t i, count = (uint32_t)(k->list.len / sizeof(struct kineto_track));

	if (k->names_lost)
		trace_lose(k->trace, k->process, LOSS_CEILING, k->names_lost);
	if (!k->names.cap)
		return 0;
	for (i = 0; i < count; i++) {
		const struct kineto_track *t = track_at(k, i);
		uint32_t name;

		if (t->track.home != HOME_THREAD && t->track.home != HOME_STREAM)
			continue;
		name = *map_find(&k->names, (uint64_t)t->pid, (uint64_t)t->tid);
		if (name)
			trace_set_track_name(k->trace, t->id, name);
	}
	return *map_find(&k->names, (uint64_t)k->pid.number, (uint64_t)PROCESS_ITSELF);
}

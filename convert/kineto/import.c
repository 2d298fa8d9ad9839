/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/kineto/import.h"

#include "convert/json/walk.h"
#include "convert/kineto/known.h"
#include "convert/link_name.h"
#include "schemas/records.h"

#include <stdlib.h>

/* An element while it becomes an event. */
struct draft {
	struct event event;
	struct kineto_place place;
	const struct kineto_category *category;
	struct kineto_id pid, tid;
	struct track track;
	char ph;
	bool writes_ph;  /* the writer would write this ph by itself */
	bool writes_cat; /* likewise */
	bool shows_pid;
};

enum status kineto_import_init(struct kineto_import *k, struct trace *trace, struct spool *spool,
			       uint32_t process, struct error *err)
{
	*k = (struct kineto_import){ .trace = trace, .spool = spool, .process = process,
				     .first_ns = INT64_MAX };
	kineto_event_init(&k->event);
	kineto_tracks_init(&k->tracks, trace, process);
	kineto_known_init(k);
	TRY(kineto_args_init(&k->args, trace, err));
	return kineto_head_init(&k->head, &k->args, err);
}

void kineto_import_release(struct kineto_import *k)
{
	kineto_event_release(&k->event);
	kineto_tracks_release(&k->tracks);
	kineto_args_release(&k->args);
	kineto_head_release(&k->head);
	json_known_release(&k->known);
}

static enum status lose(struct kineto_import *k, enum loss why)
{
	trace_lose(k->trace, k->process, why, 1);
	return ST_OK;
}

static enum status make_id(struct kineto_import *k, const struct json *value,
			   struct kineto_id *out, struct error *err)
{
	uint32_t name;

	*out = (struct kineto_id){ 0 };
	if (value->type == JSON_END || kineto_id_number(value, out))
		return ST_OK;
	name = kineto_name(&k->args, value, err);
	if (!name)
		return err->status;
	kineto_id_text(name, out);
	return ST_OK;
}

/* What was made of elements before may be another now. */
static enum status learnt_pid(struct kineto_import *k, const struct kineto_id *pid,
			      struct error *err)
{
	json_known_forget(&k->known);
	return kineto_tracks_own(&k->tracks, pid, err);
}

/* Names of processes and threads */

static enum status import_name(struct kineto_import *k, struct error *err)
{
	const struct kineto_event *e = &k->event;
	bool of_thread = kineto_is(&e->name, "thread_name");
	bool of_labels = kineto_is(&e->name, "process_labels");
	const struct kineto_member *m;
	struct kineto_id pid, tid;
	uint32_t name;

	if (!of_thread && !of_labels && !kineto_is(&e->name, "process_name"))
		return ST_OK; /* how viewers sort */
	m = kineto_find(&e->args, of_labels ? "labels" : "name");
	if (!m || m->value.type != JSON_STRING)
		return ST_OK;
	TRY(make_id(k, &e->pid, &pid, err));
	if (of_labels) {
		if (kineto_is(&m->value, "CPU") && pid.is_given && !pid.is_text &&
		    !k->tracks.pid.is_given)
			return learnt_pid(k, &pid, err);
		return ST_OK;
	}
	TRY(make_id(k, &e->tid, &tid, err));
	name = kineto_name(&k->args, &m->value, err);
	if (!name)
		return err->status;
	return kineto_track_named(&k->tracks, &pid, of_thread ? &tid : NULL, name, err);
}

/* Times; false: it has none. */
static bool take_times(struct kineto_import *k, struct draft *d)
{
	const struct kineto_event *e = &k->event;
	int64_t begin_ns, dur_ns = 0;

	if (e->ts.type != JSON_NUMBER || !json_us_to_ns(e->ts.text, e->ts.len, &begin_ns) ||
	    begin_ns > KINETO_TIME_MOST || begin_ns < -KINETO_TIME_MOST)
		return false;
	if (d->ph == 'X' && (e->dur.type != JSON_NUMBER ||
			     !json_us_to_ns(e->dur.text, e->dur.len, &dur_ns) ||
			     dur_ns > KINETO_TIME_MOST))
		return false;
	if (dur_ns < 0) {
		dur_ns = 0;
		lose(k, LOSS_DAMAGED);
	}
	kineto_known_hole(k, &e->ts, KINETO_BEGIN);
	if (d->ph == 'X')
		kineto_known_hole(k, &e->dur, KINETO_DURATION);
	if (begin_ns < k->first_ns)
		k->first_ns = begin_ns;
	d->event.begin_ns = (uint64_t)(begin_ns + SPOOL_BIAS);
	d->event.end_ns = d->event.begin_ns + (uint64_t)dur_ns;
	return true;
}

/* What it is */

static bool is_old_annotation(const struct kineto_event *e, const struct kineto_category *c)
{
	static const char loader[] = "enumerate(";

	if (c->kind != KIND_RANGE || c->subkind != RANGE_OP || c->is_canonical ||
	    e->name.type != JSON_STRING)
		return false;
	return memchr(e->name.text, '#', e->name.len) ||
	       (e->name.len >= sizeof(loader) - 1 &&
		memcmp(e->name.text, loader, sizeof(loader) - 1) == 0);
}

/* On a GPU although the category is unknown: its own arguments say so. */
static bool says_stream(const struct kineto_event *e)
{
	const struct kineto_member *device = kineto_find(&e->args, "device");
	const struct kineto_member *stream = kineto_find(&e->args, "stream");
	int64_t pid, tid, on_device, on_stream;

	return device && stream && json_i64(e->pid.text, e->pid.len, &pid) &&
	       json_i64(e->tid.text, e->tid.len, &tid) &&
	       json_i64(device->value.text, device->value.len, &on_device) &&
	       json_i64(stream->value.text, stream->value.len, &on_stream) && pid == on_device &&
	       tid == on_stream;
}

static void classify_span(const struct kineto_event *e, struct draft *d)
{
	const struct kineto_category *c = d->category;

	d->writes_ph = true;
	d->event.kind = c ? c->kind : KIND_RANGE;
	d->event.subkind = c ? c->subkind : RANGE_OTHER;
	d->writes_cat = c && c->is_canonical && kineto_is(&e->cat, c->word);
	d->shows_pid = c && c->shows_pid;
	if (c && is_old_annotation(e, c))
		d->event.subkind = RANGE_ANNOTATION;
	d->track.home = HOME_THREAD;
	if (event_is_gpu_work(&d->event) || d->event.kind == KIND_SYNC ||
	    (c && d->event.kind == KIND_RANGE && c->subkind == RANGE_GPU_ANNOTATION) ||
	    (!c && says_stream(e)))
		d->track.home = HOME_STREAM;
}

static void classify_instant(const struct kineto_event *e, struct draft *d)
{
	const struct kineto_member *bytes = NULL;

	d->event.kind = KIND_MARK;
	d->track.home = HOME_THREAD;
	d->writes_cat = e->cat.type == JSON_END;
	d->writes_ph = d->ph == 'i';
	if (kineto_is(&e->name, "[memory]"))
		bytes = kineto_find(&e->args, "Bytes");
	if (!bytes || bytes->value.type != JSON_NUMBER)
		return;
	d->event.kind = bytes->value.text[0] == '-' ? KIND_FREE : KIND_ALLOC;
	d->track.home = HOME_POOL;
	d->writes_cat |= kineto_is(&e->cat, "cpu_instant_event");
	d->shows_pid = true;
}

static void classify(const struct kineto_event *e, struct draft *d)
{
	d->category = kineto_category_find(&e->cat);
	if (d->ph == 'X') {
		classify_span(e, d);
		return;
	}
	classify_instant(e, d);
	if (d->ph == 'C') {
		d->event.kind = KIND_COUNTER;
		d->track.home = HOME_COUNTER;
		d->writes_ph = true;
	} else if (d->ph == 's' || d->ph == 'f') {
		d->event.subkind = d->ph == 's' ? MARK_FLOW_BEGIN : MARK_FLOW_END;
		d->writes_ph = true;
	}
}

/* What is known from the name */

/* CUpti_ActivitySynchronizationType */
static unsigned sync_type(const struct json *name)
{
	static const char *const words[] = {
		"", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync",
	};
	unsigned i;

	for (i = 1; i < sizeof(words) / sizeof(words[0]); i++)
		if (kineto_is(name, words[i]))
			return i;
	return 0;
}

static enum status take_name(struct kineto_import *k, struct draft *d, struct error *err)
{
	static const char copy[] = "Memcpy ";
	const struct json *name = &k->event.name;

	if (name->type != JSON_STRING)
		return ST_OK;
	d->event.name = kineto_name(&k->args, name, err);
	if (!d->event.name)
		return err->status;
	if (d->event.kind == KIND_SYNC)
		d->event.subkind = (uint8_t)sync_type(name);
	if (d->event.kind == KIND_MEMCPY && name->len >= sizeof(copy) + 3 &&
	    memcmp(name->text, copy, sizeof(copy) - 1) == 0)
		d->event.subkind =
			(uint8_t)copy_kind_of_word(name->text + sizeof(copy) - 1, 4);
	return ST_OK;
}

/* Arguments, members, track */

static enum status take_args(struct kineto_import *k, struct draft *d, struct error *err)
{
	const struct kineto_member *m;
	size_t i, count;
	bool again = false;

	for (;;) {
		kineto_args_begin(&k->args);
		d->place = (struct kineto_place){ .device = NO_ID, .context = NO_ID };
		d->event.number = d->event.bytes = 0;
		count = kineto_members(&k->event.args, &m);
		for (i = 0; i < count; i++) {
			TRY(kineto_args_put(&k->args, &m[i], &d->event, &d->place, err));
			if (k->args.use != KINETO_KEPT)
				kineto_known_hole(k, &m[i].value, k->args.use);
		}
		if (!k->args.repeated || again)
			return ST_OK;
		kineto_drop_repeated(&k->event.args);
		again = true;
	}
}

/* The first number of a counter is its value; all of them are kept as arguments. */
static void take_counter(struct kineto_import *k, struct draft *d)
{
	const struct kineto_member *m;
	size_t i, count = kineto_members(&k->event.args, &m);

	for (i = 0; i < count; i++) {
		if (m[i].value.type == JSON_NUMBER) {
			d->event.value = json_f64(m[i].value.text, m[i].value.len);
			return;
		}
	}
}

static enum status take_flow_id(struct kineto_import *k, struct draft *d, struct error *err)
{
	const struct json *id = &k->event.id;
	uint64_t number = 0;

	if (id->type == JSON_END)
		return ST_OK;
	if (d->event.kind == KIND_MARK && d->event.subkind != MARK_INSTANT &&
	    id->type == JSON_NUMBER && json_u64(id->text, id->len, &number) && number) {
		d->event.number = number;
		kineto_known_hole(k, id, KINETO_JOIN);
		return ST_OK;
	}
	return kineto_args_put_fixed(&k->args, ".id", 3, id, err);
}

/* Members that the writer would not write by itself. */
static enum status take_members(struct kineto_import *k, struct draft *d, struct error *err)
{
	static const struct json none = { .type = JSON_NULL, .text = "null", .len = 4 };
	const struct kineto_event *e = &k->event;
	struct kineto_args *a = &k->args;
	const struct kineto_member *m;
	size_t i, count = kineto_members(&e->others, &m);
	struct buf key;
	enum status status = ST_OK;

	if (!d->writes_cat)
		TRY(kineto_args_put_fixed(a, ".cat", 4, e->cat.type ? &e->cat : &none, err));
	if (!d->writes_ph)
		TRY(kineto_args_put_fixed(a, ".ph", 3, &e->ph, err));
	TRY(take_flow_id(k, d, err));
	if (d->ph != 'X' && e->dur.type != JSON_END)
		TRY(kineto_args_put_fixed(a, ".dur", 4, &e->dur, err));
	if (!count)
		return ST_OK;
	buf_init(&key, (size_t)32 << 20);
	for (i = 0; i < count && status == ST_OK; i++) {
		buf_clear(&key);
		buf_put_byte(&key, '.');
		a->repairs += json_decode(m[i].key.text, m[i].key.len, &key);
		status = buf_status(&key, err);
		if (status == ST_OK)
			status = kineto_args_put_fixed(a, buf_text(&key), key.len, &m[i].value,
						       err);
	}
	buf_release(&key);
	return status;
}

static void find_device(struct draft *d)
{
	struct track *t = &d->track;

	t->device = t->context = NO_ID;
	t->id = (uint64_t)d->tid.number;
	if (t->home == HOME_STREAM) {
		if (d->place.has_device)
			t->device = d->place.device;
		else if (d->pid.is_given && !d->pid.is_text && d->pid.number >= 0 &&
			 d->pid.number < NO_ID)
			t->device = (uint32_t)d->pid.number;
		if (d->place.has_stream)
			t->id = (uint64_t)d->place.stream;
	}
	if (t->home == HOME_POOL)
		t->device = d->place.device;
	if (t->home == HOME_STREAM || t->home == HOME_POOL)
		t->context = d->place.context;
	if (t->home == HOME_COUNTER)
		t->name = d->event.name;
}

/* The process shows its pid in its ops and calls, else in Python functions of any pid but 0. */
static enum status learn_pid(struct kineto_import *k, const struct draft *d, struct error *err)
{
	bool python = d->event.kind == KIND_RANGE && d->event.subkind == RANGE_PYTHON;

	if (!k->tracks.pid.is_given && d->pid.is_given && !d->pid.is_text &&
	    (d->shows_pid || (python && d->pid.number)))
		return learnt_pid(k, &d->pid, err);
	return ST_OK;
}

static enum status take_track(struct kineto_import *k, struct draft *d, struct error *err)
{
	const struct kineto_event *e = &k->event;
	struct track *t = &d->track;
	int64_t writes_pid;

	TRY(make_id(k, &e->pid, &d->pid, err));
	TRY(make_id(k, &e->tid, &d->tid, err));
	TRY(learn_pid(k, d, err));
	find_device(d);
	TRY(kineto_track_find(&k->tracks, t, &d->pid, &d->tid, &d->event.track, err));
	writes_pid = t->home == HOME_STREAM ? (int64_t)t->device : k->tracks.pid.number;
	if (d->pid.is_given && (d->pid.number != writes_pid || d->pid.is_text ||
				(t->home != HOME_STREAM && !k->tracks.pid.is_given)))
		TRY(kineto_args_put_fixed(&k->args, ".pid", 4, &e->pid, err));
	if (d->tid.is_given && (d->tid.number != (int64_t)t->id || d->tid.is_text))
		TRY(kineto_args_put_fixed(&k->args, ".tid", 4, &e->tid, err));
	return ST_OK;
}

bool kineto_launches(const struct event *e, const struct kineto_event *element)
{
	return e->kind == KIND_API && launch_name(element->name.text, element->name.len);
}

static enum status put_event(struct kineto_import *k, struct draft *d, struct error *err)
{
	struct event *e = &d->event;
	struct site site;

	TRY(kineto_args_shape(&k->args, &e->shape, err));
	if (k->args.vary.len)
		e->vary = (const uint64_t *)(const void *)k->args.words.data;
	site = (struct site){ .track = e->track, .name = e->name, .shape = e->shape,
			      .kind = e->kind, .subkind = e->subkind };
	if (!trace_site(k->trace, &site, err))
		return err->status;
	if (kineto_launches(e, &k->event))
		trace_add_launches(k->trace, e->track, 1);
	if (k->args.repairs)
		lose(k, LOSS_DAMAGED);
	k->events++;
	kineto_known_learn(k, e);
	return spool_put(k->spool, 0, e, 1, err);
}

static enum status import_derived(struct kineto_import *k)
{
	kineto_known_hole(k, &k->event.id, KINETO_UNUSED);
	kineto_known_hole(k, &k->event.ts, KINETO_UNUSED);
	kineto_known_learn(k, NULL);
	return lose(k, LOSS_DERIVED);
}

enum status kineto_import_event(struct kineto_import *k, struct error *err)
{
	const struct kineto_event *e = &k->event;
	struct draft d = { 0 };

	k->hole_count = 0;
	if (!e->is_object || e->ph.type != JSON_STRING || e->ph.len != 1)
		return lose(k, LOSS_DAMAGED);
	d.ph = e->ph.text[0];
	if (d.ph == 'M')
		return import_name(k, err);
	if ((d.ph == 's' || d.ph == 'f' || d.ph == 't') && kineto_is_derived_flow(&e->cat))
		return import_derived(k);
	if (!take_times(k, &d))
		return lose(k, LOSS_NO_TIME);
	classify(e, &d);
	TRY(take_args(k, &d, err));
	TRY(take_name(k, &d, err));
	if (d.event.kind == KIND_COUNTER)
		take_counter(k, &d);
	TRY(take_track(k, &d, err));
	TRY(take_members(k, &d, err));
	return put_event(k, &d, err);
}

/* A GPU that is used without being described. */
static enum status add_devices(struct kineto_import *k, struct error *err)
{
	uint32_t i, count = trace_count(k->trace, TRACE_TRACKS);

	for (i = 1; i <= count; i++) {
		const struct track *t = trace_get_track(k->trace, i);
		struct device d = { .process = k->process, .id = t->device };

		if (t->process == k->process && t->home == HOME_STREAM && t->device != NO_ID &&
		    !trace_device(k->trace, &d, err))
			return err->status;
	}
	return ST_OK;
}

enum status kineto_import_finish(struct kineto_import *k, const char *path, struct error *err)
{
	uint32_t command = kineto_tracks_finish(&k->tracks);

	TRY(kineto_head_finish(&k->head, k->process, (uint32_t)k->tracks.pid.number, command, path,
			       err));
	if (k->head.damaged)
		trace_lose(k->trace, k->process, LOSS_DAMAGED, k->head.damaged);
	return add_devices(k, err);
}

static enum status take_event(void *self, struct error *err)
{
	return kineto_import_event(self, err);
}

static enum status take_key(void *self, const struct json *key, const struct json *value,
			    struct error *err)
{
	struct kineto_import *k = self;

	return kineto_head_put(&k->head, key, value, err);
}

enum status kineto_import_read(struct kineto_import *k, struct input *in, struct error *fault,
			       struct error *err)
{
	struct json_walk *w = calloc(1, sizeof(*w));
	enum status status;

	if (!w)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a reader of Kineto JSON");
	w->self = k;
	w->event = &k->event;
	w->take_event = take_event;
	w->take_key = take_key;
	w->take_known = k->scans_all ? NULL : kineto_known_take;
	status = json_walk(w, in, fault, err);
	free(w);
	if (k->derived)
		trace_lose(k->trace, k->process, LOSS_DERIVED, k->derived);
	k->derived = 0;
	return status;
}

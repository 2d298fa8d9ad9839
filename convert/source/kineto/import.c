/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/import.h"

#include "convert/source/kineto/cuspy.h"
#include "schemas/model/records.h"

#include <strings.h>

/* The meaning of a category. */
struct category {
	const char *word; /* compared without case: in 2021 they began with a capital */
	uint8_t kind, subkind;
	bool is_canonical; /* our Chrome sink writes this category for such events */
	bool shows_pid;    /* its pid is the real pid of the process */
};

/* State of an element while it is converted to an event. */
struct draft {
	struct event event;
	struct kineto_place place;
	const struct category *category;
	struct kineto_id pid, tid;
	struct track track;
	char ph;
	bool writes_ph;  /* our Chrome sink would write the same "ph" ... */
	bool writes_cat; /* ... and the same "cat" */
	bool shows_pid;
};

enum status kineto_import_init(struct kineto_import *k, struct trace *trace, struct spool *spool,
			       uint32_t process, struct error *err)
{
	*k = (struct kineto_import){ .tracks = { .trace = trace, .process = process } };
	kineto_fast_init(&k->fast);
	import_init(&k->to, trace, spool, process);
	TRY(kineto_args_init(&k->args, &k->to, err));
	k->args.fast = &k->fast;
	return kineto_head_init(k, err);
}

void kineto_import_release(struct kineto_import *k)
{
	import_release(&k->to);
	kineto_document_release(&k->document);
	kineto_tracks_release(&k->tracks);
	kineto_args_release(&k->args);
	kineto_head_release(&k->head);
	json_templates_release(&k->fast.templates);
	free(k->steps.items);
}

static enum status lose(struct kineto_import *k, enum loss why)
{
	import_lose(&k->to, why, 1);
	return ST_OK;
}

/* Sets the process's pid.  From now on threads of this pid belong to the process, so templates of
 * their elements, which have another track, are dropped. */
static enum status set_pid(struct kineto_import *k, const struct kineto_id *pid, struct error *err)
{
	json_templates_forget(&k->fast.templates);
	return kineto_tracks_set_pid(&k->tracks, pid, err);
}

/* ---- names of processes and threads ------------------------------------------------------- */

static enum status take_metadata(struct kineto_import *k, struct error *err)
{
	const struct kineto_event *e = &k->document.event;
	bool of_thread = kineto_is(&e->name, "thread_name");
	bool of_labels = kineto_is(&e->name, "process_labels");
	const struct kineto_member *m;
	struct kineto_id pid, tid;
	uint32_t name;

	if (!of_thread && !of_labels && !kineto_is(&e->name, "process_name"))
		return ST_OK; /* others only sort rows in viewers */
	m = kineto_find(&e->args, of_labels ? "labels" : "name");
	if (!m || m->value.type != JSON_STRING)
		return ST_OK;
	TRY(kineto_id_of(&k->args, &e->pid, &pid, err));
	if (of_labels) {
		if (kineto_is(&m->value, "CPU") && pid.is_given && !pid.is_text &&
		    !k->tracks.pid.is_given)
			return set_pid(k, &pid, err);
		return ST_OK;
	}
	TRY(kineto_id_of(&k->args, &e->tid, &tid, err));
	TRY(kineto_name(&k->args, &m->value, &name, err));
	return kineto_track_named(&k->tracks, &pid, of_thread ? &tid : NULL, name, err);
}

/* Sets the event's times.  Returns false if the element has no valid ones. */
static bool take_times(struct kineto_import *k, struct draft *d)
{
	const struct kineto_event *e = &k->document.event;
	int64_t begin_ns, dur_ns = 0;

	if (e->ts.type != JSON_NUMBER || !json_us_to_ns(e->ts.text, e->ts.len, &begin_ns))
		return false;
	if (d->ph == 'X' &&
	    (e->dur.type != JSON_NUMBER || !json_us_to_ns(e->dur.text, e->dur.len, &dur_ns)))
		return false;
	if (!import_times(&k->to, &d->event, begin_ns, dur_ns))
		return false;
	kineto_fast_number(&k->fast, &e->ts, KINETO_BEGIN);
	if (d->ph == 'X')
		kineto_fast_number(&k->fast, &e->dur, KINETO_DURATION);
	return true;
}

/* ---- classification ----------------------------------------------------------------------- */

/* For each kind and subkind, the category that sinks write comes first. */
static const struct category categories[] = {
	{ "cpu_op", KIND_RANGE, RANGE_OP, true, true },
	{ "cuda_runtime", KIND_API, API_RUNTIME, true, true },
	{ "kernel", KIND_KERNEL, 0, true, false },
	{ "python_function", KIND_RANGE, RANGE_PYTHON, true, false },
	{ "gpu_memcpy", KIND_MEMCPY, 0, true, false },
	{ "gpu_memset", KIND_MEMSET, 0, true, false },
	{ "cuda_driver", KIND_API, API_DRIVER, true, true },
	{ "user_annotation", KIND_RANGE, RANGE_ANNOTATION, true, true },
	{ "gpu_user_annotation", KIND_RANGE, RANGE_GPU_ANNOTATION, true, false },
	{ "cuda_sync", KIND_SYNC, 0, true, false },
	{ "overhead", KIND_OVERHEAD, 0, true, false },
	{ "Trace", KIND_RANGE, RANGE_PROFILER, true, false },
	/* Intel's GPUs, whose kernels and copies have the categories above, and Meta's MTIA */
	{ "xpu_runtime", KIND_API, API_RUNTIME, false, true },
	{ "xpu_driver", KIND_API, API_DRIVER, false, true },
	{ "privateuse1_runtime", KIND_API, API_RUNTIME, false, true },
	{ "privateuse1_driver", KIND_API, API_DRIVER, false, true },
	{ "mtia_runtime", KIND_API, API_RUNTIME, false, true },
	{ "mtia_ccp_events", KIND_KERNEL, 0, false, false },
	/* categories of 2021 and 2022 */
	{ "Operator", KIND_RANGE, RANGE_OP, false, true },
	{ "Runtime", KIND_API, API_RUNTIME, false, true },
	{ "Driver", KIND_API, API_DRIVER, false, true },
	{ "Memcpy", KIND_MEMCPY, 0, false, false },
	{ "Memset", KIND_MEMSET, 0, false, false },
	{ "Python", KIND_RANGE, RANGE_PYTHON, false, false },
};

/* Returns NULL if the category is unknown. */
static const struct category *find_category(const struct json *cat)
{
	for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++)
		if (cat->type == JSON_STRING && strlen(categories[i].word) == cat->len &&
		    strncasecmp(categories[i].word, cat->text, cat->len) == 0)
			return &categories[i];
	return NULL;
}

void kineto_name_subkind(const struct json *name, struct event *e)
{
	static const char copy[] = "Memcpy ";

	if (e->kind == KIND_SYNC)
		e->subkind = (uint8_t)sync_kind_of_word(name->text, name->len);
	if (e->kind == KIND_MEMCPY && name->len >= sizeof(copy) + 3 &&
	    memcmp(name->text, copy, sizeof(copy) - 1) == 0)
		e->subkind = (uint8_t)copy_kind_of_word(name->text + sizeof(copy) - 1, 4);
}

/* Returns whether an arrow leads from a call to its GPU work.  Sinks draw these again from
 * correlation ids. */
static bool is_derived_flow(const struct json *cat)
{
	return kineto_is(cat, "ac2g") || kineto_is(cat, "async_cpu_to_gpu") ||
	       kineto_is(cat, "async") || kineto_is(cat, "async_gpu");
}

/* Returns whether a range is an annotation of a version before 2022, in which annotations had the
 * category of operators. */
static bool is_old_annotation(const struct json *name, const struct category *c)
{
	static const char loader[] = "enumerate(";

	if (c->kind != KIND_RANGE || c->subkind != RANGE_OP || c->is_canonical ||
	    name->type != JSON_STRING)
		return false;
	return memchr(name->text, '#', name->len) ||
	       (name->len >= sizeof(loader) - 1 &&
		memcmp(name->text, loader, sizeof(loader) - 1) == 0);
}

bool kineto_category(const struct json *cat, const struct json *name, struct event *e)
{
	const struct category *c = find_category(cat);

	if (!c)
		return false;
	e->kind = c->kind;
	e->subkind = is_old_annotation(name, c) ? RANGE_ANNOTATION : c->subkind;
	return true;
}

/* Returns whether an element of an unknown category is on a GPU: its arguments "device" and
 * "stream" equal its pid and tid. */
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
	const struct category *c = d->category;

	d->writes_ph = true;
	d->event.kind = c ? c->kind : KIND_RANGE;
	d->event.subkind = c ? c->subkind : RANGE_ANNOTATION; /* as the Chrome reader does */
	d->writes_cat = c && c->is_canonical && kineto_is(&e->cat, c->word);
	d->shows_pid = c && c->shows_pid;
	if (c && is_old_annotation(&e->name, c))
		d->event.subkind = RANGE_ANNOTATION;
	d->track.type = TRACK_THREAD;
	if (event_is_gpu_work(&d->event) || d->event.kind == KIND_SYNC ||
	    (c && d->event.kind == KIND_RANGE && c->subkind == RANGE_GPU_ANNOTATION) ||
	    (!c && says_stream(e)))
		d->track.type = TRACK_STREAM;
	if (!c && d->track.type == TRACK_STREAM)
		d->event.subkind = RANGE_OTHER;
}

static void classify_instant(const struct kineto_event *e, struct draft *d)
{
	const struct kineto_member *bytes = NULL;

	d->event.kind = KIND_MARK;
	d->track.type = TRACK_THREAD;
	d->writes_cat = e->cat.type == JSON_END;
	d->writes_ph = d->ph == 'i';
	if (kineto_is(&e->name, "[memory]"))
		bytes = kineto_find(&e->args, "Bytes");
	if (bytes && bytes->value.type == JSON_NUMBER) {
		d->event.kind = bytes->value.text[0] == '-' ? KIND_FREE : KIND_ALLOC;
		d->track.type = TRACK_ALLOCATOR;
		d->writes_cat |= kineto_is(&e->cat, "cpu_instant_event");
		d->shows_pid = true;
	}
	if (d->ph == 'C') {
		d->event.kind = KIND_COUNTER;
		d->track.type = TRACK_COUNTER;
		d->writes_ph = true;
	} else if (d->ph == 's' || d->ph == 'f') {
		d->event.subkind = d->ph == 's' ? MARK_FLOW_BEGIN : MARK_FLOW_END;
		d->writes_ph = true;
	}
}

static enum status take_name(struct kineto_import *k, struct draft *d, struct error *err)
{
	const struct json *name = &k->document.event.name;
	char made[CUSPY_NAME];
	struct json as_kineto;

	if (name->type != JSON_STRING)
		return ST_OK;
	if (cuspy_name(&k->document.event, d->event.kind, made)) {
		as_kineto = (struct json){ .type = JSON_STRING, .text = made, .len = strlen(made) };
		name = &as_kineto;
	}
	TRY(kineto_name(&k->args, name, &d->event.name, err));
	kineto_name_subkind(name, &d->event);
	return ST_OK;
}

/* ---- arguments, members, track ------------------------------------------------------------ */

/* Keeps the members that sinks could not derive from the event as constants. */
static enum status take_members(struct kineto_import *k, struct draft *d, struct error *err)
{
	static const struct json none = { .type = JSON_NULL, .text = "null", .len = 4 };
	const struct kineto_event *e = &k->document.event;
	uint64_t number = 0;

	if (!d->writes_cat)
		TRY(kineto_args_put_const(&k->args, ".cat", 4, e->cat.type ? &e->cat : &none, err));
	if (!d->writes_ph)
		TRY(kineto_args_put_const(&k->args, ".ph", 3, &e->ph, err));
	if (d->event.kind == KIND_MARK && d->event.subkind != MARK_INSTANT &&
	    e->id.type == JSON_NUMBER && json_u64(e->id.text, e->id.len, &number) && number) {
		d->event.number = number;
		kineto_fast_number(&k->fast, &e->id, KINETO_CORRELATION);
	} else if (e->id.type != JSON_END) {
		TRY(kineto_args_put_const(&k->args, ".id", 3, &e->id, err));
	}
	if (d->ph != 'X' && e->dur.type != JSON_END)
		TRY(kineto_args_put_const(&k->args, ".dur", 4, &e->dur, err));
	return kineto_args_put_others(&k->args, e, err);
}

static enum status take_track(struct kineto_import *k, struct draft *d, struct error *err)
{
	const struct kineto_event *e = &k->document.event;
	struct track *t = &d->track;
	bool python = d->event.kind == KIND_RANGE && d->event.subkind == RANGE_PYTHON;
	int64_t writes_pid;

	TRY(kineto_id_of(&k->args, &e->pid, &d->pid, err));
	TRY(kineto_id_of(&k->args, &e->tid, &d->tid, err));
	/* The process's pid is that of an operator or call, or of a Python function with a pid
	 * other than 0. */
	if (!k->tracks.pid.is_given && d->pid.is_given && !d->pid.is_text &&
	    (d->shows_pid || (python && d->pid.number)))
		TRY(set_pid(k, &d->pid, err));
	t->device = t->context = NO_ID;
	t->id = (uint64_t)d->tid.number;
	if (t->type == TRACK_STREAM) {
		cuspy_stream(e, &d->place);
		if (d->place.has_device)
			t->device = d->place.device;
		else if (d->pid.is_given && !d->pid.is_text && d->pid.number >= 0 &&
			 d->pid.number < NO_ID)
			t->device = (uint32_t)d->pid.number;
		if (d->place.has_stream)
			t->id = (uint64_t)d->place.stream;
	}
	if (t->type == TRACK_ALLOCATOR)
		t->device = d->place.device;
	if (t->type == TRACK_STREAM || t->type == TRACK_ALLOCATOR)
		t->context = d->place.context;
	if (t->type == TRACK_COUNTER) {
		t->name = d->event.name;
		cuspy_counter(e, t);
	}
	TRY(kineto_track_find(&k->tracks, t, &d->pid, &d->tid, &d->event.track, err));
	writes_pid = t->type == TRACK_STREAM ? (int64_t)t->device : k->tracks.pid.number;
	if (d->pid.is_given && (d->pid.number != writes_pid || d->pid.is_text ||
				(t->type != TRACK_STREAM && !k->tracks.pid.is_given)))
		TRY(kineto_args_put_const(&k->args, ".pid", 4, &e->pid, err));
	if (d->tid.is_given && (d->tid.number != (int64_t)t->id || d->tid.is_text))
		TRY(kineto_args_put_const(&k->args, ".tid", 4, &e->tid, err));
	return ST_OK;
}

/* Converts k->document.event.  Returns only errors of memory, limits and disks, and counts damage.
 * */
static enum status take_event(struct kineto_import *k, struct error *err)
{
	const struct kineto_event *e = &k->document.event;
	struct draft d = { 0 };

	k->fast.number_count = 0;
	if (e->is_empty)
		return ST_OK;
	if (!e->has_ph)
		return lose(k, LOSS_DAMAGED);
	d.ph = e->ph.text[0];
	if (d.ph == 'M')
		return take_metadata(k, err);
	if ((d.ph == 's' || d.ph == 'f' || d.ph == 't') && is_derived_flow(&e->cat) &&
	    !cuspy_is_dependency(e)) {
		kineto_fast_number(&k->fast, &e->id, KINETO_ARROW);
		kineto_fast_number(&k->fast, &e->ts, KINETO_UNUSED);
		kineto_fast_learn(k, NULL);
		return lose(k, LOSS_DERIVED);
	}
	if (!take_times(k, &d))
		return lose(k, LOSS_NO_TIME);
	d.category = find_category(&e->cat);
	if (d.ph == 'X')
		classify_span(e, &d);
	else
		classify_instant(e, &d);
	TRY(kineto_args_take(&k->args, &k->document.event, &d.event, &d.place, err));
	TRY(take_name(k, &d, err));
	if (d.event.kind == KIND_COUNTER) {
		const struct kineto_member *m;
		size_t count = kineto_members(&e->args, &m), i = 0;

		/* The first number is the counter's value; all numbers are arguments too. */
		while (i < count && m[i].value.type != JSON_NUMBER)
			i++;
		if (i < count)
			d.event.value = json_f64(m[i].value.text, m[i].value.len);
	}
	TRY(take_track(k, &d, err));
	TRY(take_members(k, &d, err));
	TRY(import_schema(&k->to, &d.event, err));
	if (k->args.repairs)
		lose(k, LOSS_DAMAGED);
	TRY(kineto_steps_note(&k->steps, &e->name, &d.event, err));
	TRY(import_put(&k->to, &d.event, err));
	/* An arrow between nodes differs from derived arrows only by the size of its id, so it
	 * becomes no template. */
	if (!is_derived_flow(&e->cat))
		kineto_fast_learn(k, &d.event);
	return ST_OK;
}

enum status kineto_import_read(struct kineto_import *k, struct input *in, struct error *fault,
			       struct error *err)
{
	struct kineto_document *d = &k->document;
	enum status status;

	kineto_document_init(d, in);
	do {
		while (d->in_events && kineto_fast_take(k, &d->scan, &status, err)) {
			d->ends_empty = false;
			TRY(status);
		}
		TRY(kineto_document_next(d, fault, err));
		if (d->found == KINETO_EVENT)
			TRY(take_event(k, err));
		else if (d->found == KINETO_KEY)
			TRY(kineto_head_put(k, &d->key, err));
	} while (d->found != KINETO_END);
	return ST_OK;
}

enum status kineto_import_finish(struct kineto_import *k, const char *path, struct error *err)
{
	struct trace *trace = k->to.trace;
	uint32_t command = kineto_tracks_finish(&k->tracks, 0), count;

	TRY(kineto_head_finish(k, command, path, err));
	k->head.damaged += kineto_document_damaged(&k->document);
	if (k->head.damaged)
		import_lose(&k->to, LOSS_DAMAGED, k->head.damaged);
	/* A GPU that events use but no key describes becomes a device too. */
	count = trace_count(trace, TRACE_TRACKS);
	for (uint32_t i = 1; i <= count; i++) {
		const struct track *t = trace_get_track(trace, i);
		struct device d = { .process = k->to.process, .id = t->device };

		if (t->process == k->to.process && t->type == TRACK_STREAM && t->device != NO_ID &&
		    !trace_device(trace, &d, err))
			return err->status;
	}
	return ST_OK;
}

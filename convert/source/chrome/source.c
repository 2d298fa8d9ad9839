/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Chrome JSON that is not Kineto's: of viztracer, TensorFlow, Chrome, Perfetto's legacy
 * export or a user's own script.  It is {"traceEvents": [...], ...} or only the array, whose
 * closing bracket may be missing, as the format allows.  It is read once to its end, through a
 * spool.
 */
#include "convert/input/input.h"
#include "convert/source/chrome/internal.h"

#include <ctype.h>

enum {
	KEY_BYTES = 1 << 20,
	/* Most bytes of a top-level value that is kept: some files contain all their source code
	 * there. */
	KEPT_BYTES = 4096,
	MEMBERS_BYTES = 32 << 20,
};

#define BASE_MOST ((uint64_t)1 << 62)

/* The meaning of an element's letter; an unknown letter is an instant that keeps the letter. */
enum phase_type {
	AS_MARK,
	AS_SPAN,
	AS_BEGIN,
	AS_END,
	AS_ID_BEGIN,
	AS_ID_END,
	AS_FLOW_BEGIN,
	AS_FLOW_END,
	AS_COUNTER,
	AS_NAME
};

static enum phase_type type_of(char ph)
{
	static const char letters[] = "XBEbSeFsfCM";
	static const uint8_t types[] = { AS_SPAN,     AS_BEGIN,   AS_END,    AS_ID_BEGIN,
					 AS_ID_BEGIN, AS_ID_END,  AS_ID_END, AS_FLOW_BEGIN,
					 AS_FLOW_END, AS_COUNTER, AS_NAME };
	const char *at = ph ? strchr(letters, ph) : NULL;

	return at ? types[at - letters] : AS_MARK;
}

static enum status lose(struct chrome_import *j, enum loss why)
{
	import_lose(&j->to, why, 1);
	return ST_OK;
}

/* ---- times ---- */

static bool take_us(const struct json *value, int64_t *ns)
{
	return (value->type == JSON_NUMBER || value->type == JSON_STRING) &&
	       json_us_to_ns(value->text, value->len, ns) && *ns >= -IMPORT_TIME_MOST;
}

/* Sets the event's times.  Returns false if the element has no valid ones. */
static bool take_times(struct chrome_import *j, bool is_span, struct event *e)
{
	const struct kineto_event *k = &j->document.event;
	int64_t begin_ns, dur_ns = 0;

	if (!take_us(&k->ts, &begin_ns))
		return false;
	if (is_span && k->dur.type != JSON_END && !take_us(&k->dur, &dur_ns))
		return false;
	/* As in viewers, a span without a duration stays open, and its end is unknown. */
	if (is_span && k->dur.type == JSON_END)
		e->flags |= EVENT_NEVER_ENDED;
	return import_times(&j->to, e, begin_ns, dur_ns);
}

/* ---- names of processes and threads ---- */

static enum status take_metadata(struct chrome_import *j, struct error *err)
{
	const struct kineto_event *e = &j->document.event;
	bool of_thread = kineto_is(&e->name, "thread_name");
	const struct kineto_member *m = kineto_find(&e->args, "name");
	struct kineto_id pid, tid;
	uint32_t name;

	if ((!of_thread && !kineto_is(&e->name, "process_name")) || !m ||
	    m->value.type != JSON_STRING)
		return ST_OK; /* others only sort rows in viewers */
	TRY(kineto_id_of(&j->args, &e->pid, &pid, err));
	TRY(kineto_id_of(&j->args, &e->tid, &tid, err));
	TRY(kineto_name(&j->args, &m->value, &name, err));
	return kineto_track_named(&j->tracks, &pid, of_thread ? &tid : NULL, name, err);
}

/* ---- arguments and members ---- */

/* Returns the class of a range.  A category of no known tool is an annotation, because somebody
 * named the range; so it can be a phase or part of a path. */
uint8_t chrome_range_class(const struct json *cat)
{
	static const struct {
		const char *cat;
		uint8_t class;
	} rows[] = {
		{ "FEE", RANGE_PYTHON }, /* viztracer: function entry and exit */
		{ "Op", RANGE_OP },      /* TensorFlow's timeline */
		{ "cpu_op", RANGE_OP },
		{ "user_annotation", RANGE_ANNOTATION },
		{ "python_function", RANGE_PYTHON },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (kineto_is(cat, rows[i].cat))
			return rows[i].class;
	return RANGE_ANNOTATION;
}

static enum status put_pair(struct chrome_import *j, struct event *e, enum phase_type as,
			    struct error *err)
{
	const struct kineto_event *k = &j->document.event;
	const struct kineto_member *local = kineto_find(&k->others, "id2");
	const struct json *id = local ? &local->value : &k->id;
	uint32_t name;

	if (!j->pairs)
		TRY(spool_open(&j->pairs, j->to.trace, &j->budget, err));
	e->path = (uint32_t)e->subkind + 1; /* keeps the class, because `subkind` is the pair's */
	e->subkind = as == AS_BEGIN || as == AS_ID_BEGIN ? PAIR_BEGIN : PAIR_END;
	e->bytes = 0;
	if (as == AS_BEGIN || as == AS_END)
		return spool_put(j->pairs, 0, e, 1, err);
	/* An id is unique within its category, and if it is local, within its process. */
	buf_clear(&j->key);
	buf_put(&j->key, k->cat.text, k->cat.len);
	buf_put_byte(&j->key, '\n');
	buf_put(&j->key, id->text, id->len);
	if (local && memmem(id->text, id->len, "local", 5))
		buf_putf(&j->key, "\n%u", trace_get_track(j->to.trace, e->track)->process);
	TRY(buf_status(&j->key, err));
	TRY(import_name(&j->to, buf_text(&j->key), j->key.len, &name, err));
	e->step = name;
	return spool_put(j->pairs, 0, e, 1, err);
}

/* Returns an id as a number: it may be a text, also in hexadecimal.  Any other text is only valid
 * for a flow, and gets a number by its hash. */
static uint64_t number_of_id(const struct json *id, bool is_flow)
{
	uint64_t number = 0;

	if (id->type != JSON_NUMBER && id->type != JSON_STRING)
		return 0;
	if (json_u64(id->text, id->len, &number))
		return number;
	if (id->len > 2 && id->len <= 18 && id->text[0] == '0' && (id->text[1] | 32) == 'x')
		for (size_t i = 2; i < id->len && isxdigit((uint8_t)id->text[i]); i++)
			number = number << 4 |
				 (uint64_t)(id->text[i] <= '9' ? id->text[i] - '0'
							       : (id->text[i] | 32) - 'a' + 10);
	return number || !is_flow ? number : hash_text(id->text, id->len) | 1;
}

static enum status import_element(struct chrome_import *j, enum phase_type as, struct error *err)
{
	const struct kineto_event *k = &j->document.event;
	struct event e = { .kind = as == AS_MARK || as == AS_FLOW_BEGIN || as == AS_FLOW_END
					   ? KIND_MARK
					   : KIND_RANGE };
	struct kineto_id pid, tid;
	struct kineto_place place;
	struct track t = { .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID };
	bool is_pair = as >= AS_BEGIN && as <= AS_ID_END;

	if (!take_times(j, as == AS_SPAN, &e))
		return lose(j, LOSS_NO_TIME);
	e.subkind = e.kind == KIND_RANGE  ? chrome_range_class(&k->cat)
		    : as == AS_FLOW_BEGIN ? MARK_FLOW_BEGIN
		    : as == AS_FLOW_END   ? MARK_FLOW_END
					  : MARK_INSTANT;
	TRY(kineto_args_take(&j->args, &j->document.event, &e, &place, err));
	if (k->name.type == JSON_STRING)
		TRY(kineto_name(&j->args, &k->name, &e.name, err));
	TRY(kineto_id_of(&j->args, &k->pid, &pid, err));
	TRY(kineto_id_of(&j->args, &k->tid, &tid, err));
	t.id = (uint64_t)tid.number;
	TRY(kineto_track_find(&j->tracks, &t, &pid, &tid, &e.track, err));
	if (tid.is_text)
		TRY(kineto_track_named(&j->tracks, &pid, &tid, tid.text, err));
	/* Keep members that our events do not have: category, letter of an instant, colours. */
	if (k->cat.type == JSON_STRING && as != AS_END && as != AS_ID_END)
		TRY(kineto_args_put_const(&j->args, ".cat", 4, &k->cat, err));
	if (as == AS_MARK && !kineto_is(&k->ph, "i"))
		TRY(kineto_args_put_const(&j->args, ".ph", 3, &k->ph, err));
	TRY(kineto_args_put_others(&j->args, k, err));
	if (!is_pair && e.kind == KIND_MARK)
		e.number = number_of_id(&k->id, as != AS_MARK);
	TRY(import_schema(&j->to, &e, err));
	if (j->args.repairs)
		lose(j, LOSS_DAMAGED);
	return is_pair ? put_pair(j, &e, as, err) : import_put(&j->to, &e, err);
}

/* Converts a counter.  Each number is a series; if there are several, its name is "NAME ARGUMENT".
 * */
static enum status import_counter(struct chrome_import *j, struct error *err)
{
	const struct kineto_member *m;
	size_t count = kineto_members(&j->document.event.args, &m);
	struct event e = { .kind = KIND_COUNTER };
	struct track t = { .type = TRACK_COUNTER, .device = NO_ID, .context = NO_ID };
	struct kineto_id pid, none = { 0 };

	if (!take_times(j, false, &e))
		return lose(j, LOSS_NO_TIME);
	TRY(kineto_id_of(&j->args, &j->document.event.pid, &pid, err));
	for (size_t i = 0; i < count; i++) {
		if (m[i].value.type != JSON_NUMBER)
			continue;
		buf_clear(&j->key);
		json_decode(j->document.event.name.text, j->document.event.name.len, &j->key);
		if (count > 1) {
			buf_put_byte(&j->key, ' ');
			json_decode(m[i].key.text, m[i].key.len, &j->key);
		}
		TRY(buf_status(&j->key, err));
		TRY(import_name(&j->to, buf_text(&j->key), j->key.len, &e.name, err));
		t.name = e.name;
		TRY(kineto_track_find(&j->tracks, &t, &pid, &none, &e.track, err));
		e.value = json_f64(m[i].value.text, m[i].value.len);
		TRY(import_put(&j->to, &e, err));
	}
	return ST_OK;
}

static enum status take_event(struct chrome_import *j, struct error *err)
{
	const struct kineto_event *k = &j->document.event;
	enum phase_type as;

	if (k->is_empty)
		return ST_OK;
	if (!k->has_ph)
		return lose(j, LOSS_DAMAGED);
	as = type_of(k->ph.text[0]);
	if (as == AS_NAME)
		return take_metadata(j, err);
	return as == AS_COUNTER ? import_counter(j, err) : import_element(j, as, err);
}

/* ---- keys around the events ---- */

static void take_base(struct chrome_import *j, const struct kineto_member *m)
{
	if (kineto_is(&m->key, "baseTimeNanoseconds") && m->value.type == JSON_NUMBER &&
	    (!json_u64(m->value.text, m->value.len, &j->base_ns) || j->base_ns >= BASE_MOST))
		j->base_ns = 0;
}

static enum status take_key(struct chrome_import *j, struct error *err)
{
	const struct kineto_member *key = &j->document.key, *m;
	struct buf members;
	enum status status;

	take_base(j, key);
	if (kineto_is(&key->key, "viztracer_metadata")) { /* contains the base of the times */
		buf_init(&members, MEMBERS_BYTES);
		status = kineto_members_read(&members, &key->value, err);
		for (size_t i = 0, count = kineto_members(&members, &m); i < count; i++)
			take_base(j, &m[i]);
		buf_release(&members);
		TRY(status);
	}
	return key->value.len > KEPT_BYTES ? ST_OK
					   : kineto_put_member(&j->args, &j->attrs, key, err);
}

static enum status read_all(struct spool_source *s, struct chrome_import *j, const char *path,
			    struct error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct kineto_document *d = &j->document;
	uint32_t schema;

	TRY(import_name(&j->to, name, strlen(name), &j->tracks.host, err));
	TRY(kineto_args_init(&j->args, &j->to, err));
	TRY(import_text(&j->attrs, ".imported", "chrome", 6, err));
	do {
		TRY(kineto_document_next(d, &s->fault, err));
		if (d->found == KINETO_EVENT)
			TRY(take_event(j, err));
		else if (d->found == KINETO_KEY)
			TRY(take_key(j, err));
	} while (d->found != KINETO_END);
	if (kineto_document_damaged(d))
		import_lose(&j->to, LOSS_DAMAGED, kineto_document_damaged(d));
	spool_source_clock(s, j->base_ns, j->to.first_ns);
	TRY(import_schema_id(&j->attrs, &schema, err));
	if (j->pairs)
		TRY(chrome_pairs_match(&j->to, j->pairs, err));
	kineto_tracks_finish(&j->tracks, schema);
	return import_provenance(&j->to, "Chrome JSON", &s->fault, err);
}

static enum status chrome_read(struct spool_source *s, struct input *in, const struct budget *left,
			       struct error *err)
{
	struct chrome_import j = { .budget = *left, .tracks = { .trace = s->trace } };
	enum status status;

	if (left->threads)
		input_read_ahead(in);
	import_init(&j.to, s->trace, s->spool, 0);
	import_init(&j.attrs, s->trace, NULL, 0);
	buf_init(&j.key, KEY_BYTES);
	kineto_document_init(&j.document, in);
	j.document.may_stay_open = true;
	status = read_all(s, &j, input_path(in), err);
	import_release(&j.to);
	import_release(&j.attrs);
	kineto_document_release(&j.document);
	kineto_args_release(&j.args);
	kineto_tracks_release(&j.tracks);
	buf_release(&j.key);
	spool_close(j.pairs);
	return status;
}

/* ---- the source ---- */

/* Returns whether the head contains something that hardly any writer but Kineto writes. */
static bool is_kineto(const uint8_t *head, size_t len)
{
	static const char *const signs[] = { "\"schemaVersion\"",
					     "\"distributedInfo\"",
					     "\"deviceProperties\"",
					     "\"cpu_op\"",
					     "\"cuda_runtime\"",
					     "\"cuda_driver\"",
					     "\"kernel\"",
					     "\"gpu_memcpy\"",
					     "\"gpu_memset\"",
					     "\"user_annotation\"",
					     "\"gpu_user_annotation\"",
					     "ProfilerStep#",
					     "\"Operator\"",
					     "\"Kernel\"",
					     "\"Memcpy\"",
					     "\"Runtime\"",
					     "\"cuda_sync\"",
					     "\"ac2g\"",
					     "\"fwdbwd\"",
					     "\"cpu_instant_event\"",
					     "\"hip_runtime\"",
					     "\"python_function\"",
					     "\"record_shapes\"",
					     "PyTorch Profiler",
					     "\"[memory]\"" };

	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (head_has(head, len, signs[i]))
			return true;
	return false;
}

static int chrome_bid(const uint8_t *head, size_t len)
{
	size_t i;

	if (!json_begins(head, len, &i))
		return 0;
	if (head_has(head, len, "\"viztracer_metadata\""))
		return 96;
	if (!head_has(head, len, "\"ph\"") ||
	    (head[i] == '{' && !head_has(head, len, "\"traceEvents\"")))
		return 5;
	return is_kineto(head, len) ? 55 : 95;
}

static const struct spool_reader reader = {
	.own_bytes = 4 << 20,
	.spools = 2, /* events, and unmatched pairs */
	.read = chrome_read,
};

const struct source_type source_chrome = {
	.name = "chrome",
	.help = "other Chrome JSON: viztracer, TensorFlow, Chrome, Perfetto's "
		"legacy export",
	.bid = chrome_bid,
	.spooled = &reader,
	.next = spool_source_next,
	.close = spool_source_close,
};

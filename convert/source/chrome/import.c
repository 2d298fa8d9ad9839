/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/chrome/import.h"

#include "convert/source/chrome/pairs.h"
#include "convert/source/kineto/import.h"

#include <ctype.h>

enum {
	KEY_BYTES = 1 << 20,
	KEPT_BYTES =
		4096, /* of a value at the top level: some files hold all their sources there */
	ATTRS_BYTES = 1 << 20,
};

#define BASE_MOST ((uint64_t)1 << 62)

/* What the letter of an element means; one that is not listed is an instant that keeps it. */
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

enum status chrome_import_init(struct chrome_import *j, struct trace *trace, struct spool *spool,
			       const struct budget *budget, const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	uint32_t host = trace_name(trace, name, strlen(name), err);
	struct attr imported = { .type = ATTR_TEXT };

	*j = (struct chrome_import){ .budget = *budget, .ids = { .trace = trace, .host = host } };
	import_init(&j->to, trace, spool, 0);
	kineto_event_init(&j->event);
	buf_init(&j->key, KEY_BYTES);
	buf_init(&j->attrs, ATTRS_BYTES);
	TRY(kineto_args_init(&j->args, &j->to, err));
	imported.key = trace_name(trace, ".imported", 9, err);
	imported.bits = trace_name(trace, "chrome", 6, err);
	if (!host || !imported.key || !imported.bits)
		return err->status;
	buf_put(&j->attrs, &imported, sizeof(imported));
	return buf_status(&j->attrs, err);
}

void chrome_import_release(struct chrome_import *j)
{
	import_release(&j->to);
	kineto_event_release(&j->event);
	kineto_args_release(&j->args);
	chrome_ids_release(&j->ids);
	buf_release(&j->key);
	buf_release(&j->attrs);
	spool_close(j->pairs);
	j->pairs = NULL;
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

/* False: the element has no times. */
static bool take_times(struct chrome_import *j, bool is_span, struct event *e)
{
	const struct kineto_event *k = &j->event;
	int64_t begin_ns, dur_ns = 0;

	if (!take_us(&k->ts, &begin_ns))
		return false;
	if (is_span && k->dur.type != JSON_END && !take_us(&k->dur, &dur_ns))
		return false;
	/* As in viewers, a span without a duration is open to the end, which nobody knows. */
	if (is_span && k->dur.type == JSON_END)
		e->flags |= EVENT_NEVER_ENDED;
	return import_times(&j->to, e, begin_ns, dur_ns);
}

/* ---- names of processes and threads ---- */

static enum status take_metadata(struct chrome_import *j, struct error *err)
{
	const struct kineto_event *e = &j->event;
	bool of_thread = kineto_is(&e->name, "thread_name");
	const struct kineto_member *m = kineto_find(&e->args, "name");
	struct kineto_id pid, tid;
	uint32_t name;

	if ((!of_thread && !kineto_is(&e->name, "process_name")) || !m ||
	    m->value.type != JSON_STRING)
		return ST_OK; /* how viewers sort */
	TRY(kineto_id_of(&j->args, &e->pid, &pid, err));
	TRY(kineto_id_of(&j->args, &e->tid, &tid, err));
	name = kineto_name(&j->args, &m->value, err);
	return name ? chrome_ids_name(&j->ids, &pid, of_thread ? &tid : NULL, name, err)
		    : err->status;
}

/* ---- arguments and members ---- */

/* Members that an event of ours does not have: category, letter of an instant, colours, scopes. */
static enum status take_members(struct chrome_import *j, enum phase_type as, struct error *err)
{
	const struct kineto_event *e = &j->event;
	const struct kineto_member *m;
	size_t count = kineto_members(&e->others, &m);

	if (e->cat.type == JSON_STRING && as != AS_END && as != AS_ID_END)
		TRY(kineto_args_put_const(&j->args, ".cat", 4, &e->cat, err));
	if (as == AS_MARK && !kineto_is(&e->ph, "i"))
		TRY(kineto_args_put_const(&j->args, ".ph", 3, &e->ph, err));
	for (size_t i = 0; i < count; i++)
		TRY(kineto_args_put_member(&j->args, &m[i], err));
	return ST_OK;
}

static uint8_t range_class(const struct json *cat)
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
	return RANGE_OTHER;
}

static enum status put_pair(struct chrome_import *j, struct event *e, enum phase_type as,
			    struct error *err)
{
	const struct kineto_event *k = &j->event;
	const struct kineto_member *local = kineto_find(&k->others, "id2");
	const struct json *id = local ? &local->value : &k->id;

	if (!j->pairs)
		TRY(spool_open(&j->pairs, j->to.trace, &j->budget, err));
	e->owner = (uint32_t)e->subkind + 1; /* keeps the class, while subkind is of the pair */
	e->subkind = as == AS_BEGIN || as == AS_ID_BEGIN ? PAIR_BEGIN : PAIR_END;
	e->number = e->bytes = 0;
	if (as == AS_BEGIN || as == AS_END)
		return spool_put(j->pairs, 0, e, 1, err);
	/* An id belongs to its category, and to its process if it is local to that. */
	buf_clear(&j->key);
	buf_put(&j->key, k->cat.text, k->cat.len);
	buf_put_byte(&j->key, '\n');
	buf_put(&j->key, id->text, id->len);
	if (local && memmem(id->text, id->len, "local", 5))
		buf_putf(&j->key, "\n%u", trace_get_track(j->to.trace, e->track)->process);
	TRY(buf_status(&j->key, err));
	e->number = trace_name(j->to.trace, buf_text(&j->key), j->key.len, err);
	return e->number ? spool_put(j->pairs, 0, e, 1, err) : err->status;
}

/* An id is a number, also as text and in hexadecimal.  Another text is of a flow only, where any
 * number of its own will do. */
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
	const struct kineto_event *k = &j->event;
	struct event e = { .kind = as == AS_MARK || as == AS_FLOW_BEGIN || as == AS_FLOW_END
					   ? KIND_MARK
					   : KIND_RANGE };
	struct kineto_id pid, tid;
	struct kineto_place place;
	bool is_pair = as >= AS_BEGIN && as <= AS_ID_END;

	if (!take_times(j, as == AS_SPAN, &e))
		return lose(j, LOSS_NO_TIME);
	e.subkind = e.kind == KIND_RANGE  ? range_class(&k->cat)
		    : as == AS_FLOW_BEGIN ? MARK_FLOW_BEGIN
		    : as == AS_FLOW_END   ? MARK_FLOW_END
					  : MARK_INSTANT;
	TRY(kineto_take_args(&j->args, &j->event, &e, &place, NULL, err));
	if (k->name.type == JSON_STRING && !(e.name = kineto_name(&j->args, &k->name, err)))
		return err->status;
	TRY(kineto_id_of(&j->args, &k->pid, &pid, err));
	TRY(kineto_id_of(&j->args, &k->tid, &tid, err));
	TRY(chrome_ids_thread(&j->ids, &pid, &tid, &e.track, err));
	TRY(take_members(j, as, err));
	if (!is_pair && e.kind == KIND_MARK)
		e.number = number_of_id(&k->id, as != AS_MARK);
	TRY(import_schema(&j->to, &e, err));
	if (j->args.repairs)
		lose(j, LOSS_DAMAGED);
	return is_pair ? put_pair(j, &e, as, err) : import_put(&j->to, &e, err);
}

/* Each number of a counter is a series: of one that has several, under "NAME ARGUMENT". */
static enum status import_counter(struct chrome_import *j, struct error *err)
{
	const struct kineto_member *m;
	size_t count = kineto_members(&j->event.args, &m);
	struct event e = { .kind = KIND_COUNTER };
	struct kineto_id pid;

	if (!take_times(j, false, &e))
		return lose(j, LOSS_NO_TIME);
	TRY(kineto_id_of(&j->args, &j->event.pid, &pid, err));
	for (size_t i = 0; i < count; i++) {
		if (m[i].value.type != JSON_NUMBER)
			continue;
		buf_clear(&j->key);
		json_decode(j->event.name.text, j->event.name.len, &j->key);
		if (count > 1) {
			buf_put_byte(&j->key, ' ');
			json_decode(m[i].key.text, m[i].key.len, &j->key);
		}
		TRY(buf_status(&j->key, err));
		e.name = trace_name(j->to.trace, buf_text(&j->key), j->key.len, err);
		if (!e.name)
			return err->status;
		TRY(chrome_ids_counter(&j->ids, &pid, e.name, &e.track, err));
		e.value = json_f64(m[i].value.text, m[i].value.len);
		TRY(import_put(&j->to, &e, err));
	}
	return ST_OK;
}

enum status chrome_import_event(struct chrome_import *j, struct error *err)
{
	const struct kineto_event *k = &j->event;
	enum phase_type as;

	if (!k->is_object || k->ph.type != JSON_STRING || k->ph.len != 1)
		return lose(j, LOSS_DAMAGED);
	as = type_of(k->ph.text[0]);
	if (as == AS_NAME)
		return take_metadata(j, err);
	return as == AS_COUNTER ? import_counter(j, err) : import_element(j, as, err);
}

/* ---- around the events ---- */

/* viztracer keeps the base of its times one level down; the scanner has checked the text. */
static void find_base(struct chrome_import *j, const struct json *value)
{
	struct json_scan s;
	struct json key, v;

	json_open_text(&s, value->text, value->len);
	if (json_next(&s, &key, NULL) != ST_OK || key.type != JSON_OBJECT)
		return;
	while (json_next(&s, &key, NULL) == ST_OK && key.type == JSON_KEY) {
		if (json_next(&s, &v, NULL) != ST_OK)
			return;
		if (kineto_is(&key, "baseTimeNanoseconds") && v.type == JSON_NUMBER &&
		    !json_u64(v.text, v.len, &j->base_ns))
			j->base_ns = 0;
		if (json_skip(&s, &v, NULL) != ST_OK)
			return;
	}
}

enum status chrome_import_key(struct chrome_import *j, const struct json *key,
			      const struct json *value, struct error *err)
{
	if (kineto_is(key, "baseTimeNanoseconds") && value->type == JSON_NUMBER &&
	    !json_u64(value->text, value->len, &j->base_ns))
		j->base_ns = 0;
	if (kineto_is(key, "viztracer_metadata") && value->type == JSON_OBJECT)
		find_base(j, value);
	if (j->base_ns >= BASE_MOST)
		j->base_ns = 0;
	if (value->len > KEPT_BYTES)
		return ST_OK;
	return kineto_attr_append(&j->args, &j->attrs, key, value, err);
}

enum status chrome_import_finish(struct chrome_import *j, struct error *err)
{
	uint32_t schema = kineto_schema_of(j->to.trace, &j->attrs, err);

	if (!schema)
		return err->status;
	if (j->pairs)
		TRY(chrome_pairs_match(j, err));
	chrome_ids_finish(&j->ids, schema);
	return ST_OK;
}

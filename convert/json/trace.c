/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/json/trace.h"

#include "convert/json/pairs.h"
#include "schemas/hash.h"

#include <ctype.h>

enum {
	KEY_BYTES = 1 << 20,
	KEPT_BYTES = 4096, /* of a value at the top level: some files hold all their sources there */
	ATTRS_BYTES = 1 << 20,
};

#define TIME_MOST ((int64_t)1 << 61)
#define BASE_MOST ((uint64_t)1 << 62)

/* What a letter means; what is not here is an instant that keeps its letter. */
enum shape_of { AS_MARK, AS_SPAN, AS_BEGIN, AS_END, AS_ID_BEGIN, AS_ID_END, AS_FLOW_BEGIN,
		AS_FLOW_END, AS_COUNTER, AS_NAME };

static enum shape_of shape_of(char ph)
{
	switch (ph) {
	case 'X': return AS_SPAN;
	case 'B': return AS_BEGIN;
	case 'E': return AS_END;
	case 'b': case 'S': return AS_ID_BEGIN;
	case 'e': case 'F': return AS_ID_END;
	case 's': return AS_FLOW_BEGIN;
	case 'f': return AS_FLOW_END;
	case 'C': return AS_COUNTER;
	case 'M': return AS_NAME;
	}
	return AS_MARK;
}

enum status json_trace_init(struct json_trace *j, struct trace *trace, struct spool *spool,
			    const struct budget *budget, const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	uint32_t host = trace_name(trace, name, strlen(name), err);
	struct attr imported = { .type = ATTR_TEXT };

	*j = (struct json_trace){ .trace = trace, .spool = spool, .budget = *budget,
				  .first_ns = INT64_MAX, .last_ns = INT64_MIN };
	kineto_event_init(&j->event);
	buf_init(&j->key, KEY_BYTES);
	buf_init(&j->attrs, ATTRS_BYTES);
	json_ids_init(&j->ids, trace, host);
	TRY(kineto_args_init(&j->args, trace, err));
	imported.key = trace_name(trace, ".imported", 9, err);
	imported.bits = trace_name(trace, "chrome", 6, err);
	if (!host || !imported.key || !imported.bits)
		return err->status;
	buf_put(&j->attrs, &imported, sizeof(imported));
	return buf_status(&j->attrs, err);
}

void json_trace_release(struct json_trace *j)
{
	kineto_event_release(&j->event);
	kineto_args_release(&j->args);
	json_ids_release(&j->ids);
	buf_release(&j->key);
	buf_release(&j->attrs);
	spool_close(j->pairs);
	j->pairs = NULL;
}

static void lose(struct json_trace *j, enum loss why)
{
	trace_lose(j->trace, 0, why, 1);
}

/* ---- times ---- */

static bool take_us(const struct json *value, int64_t *ns)
{
	return (value->type == JSON_NUMBER || value->type == JSON_STRING) &&
	       json_us_to_ns(value->text, value->len, ns) && *ns <= TIME_MOST && *ns >= -TIME_MOST;
}

/* False: it has none. */
static bool take_times(struct json_trace *j, bool is_span, struct event *e)
{
	const struct kineto_event *k = &j->event;
	int64_t begin_ns, dur_ns = 0;

	if (!take_us(&k->ts, &begin_ns))
		return false;
	if (is_span && k->dur.type != JSON_END && !take_us(&k->dur, &dur_ns))
		return false;
	if (dur_ns < 0) {
		dur_ns = 0;
		lose(j, LOSS_DAMAGED);
	}
	if (is_span && k->dur.type == JSON_END) /* as viewers: open to the end; it is not known */
		e->flags |= EVENT_NEVER_ENDED;
	if (begin_ns < j->first_ns)
		j->first_ns = begin_ns;
	if (begin_ns + dur_ns > j->last_ns)
		j->last_ns = begin_ns + dur_ns;
	e->begin_ns = (uint64_t)(begin_ns + SPOOL_BIAS);
	e->end_ns = e->begin_ns + (uint64_t)dur_ns;
	return true;
}

/* ---- names of processes and threads ---- */

static enum status import_name(struct json_trace *j, struct error *err)
{
	const struct kineto_event *e = &j->event;
	bool of_thread = kineto_is(&e->name, "thread_name");
	const struct kineto_member *m = kineto_find(&e->args, "name");
	struct kineto_id pid, tid;
	uint32_t name;

	if ((!of_thread && !kineto_is(&e->name, "process_name")) || !m ||
	    m->value.type != JSON_STRING)
		return ST_OK; /* how viewers sort */
	TRY(json_id_of(&j->args, &e->pid, &pid, err));
	TRY(json_id_of(&j->args, &e->tid, &tid, err));
	name = kineto_name(&j->args, &m->value, err);
	return name ? json_ids_name(&j->ids, &pid, of_thread ? &tid : NULL, name, err)
		    : err->status;
}

/* ---- arguments and members ---- */

static enum status take_args(struct json_trace *j, struct event *e, struct error *err)
{
	struct kineto_place place;
	const struct kineto_member *m;
	bool again = false;

	for (;;) {
		size_t count = kineto_members(&j->event.args, &m);

		kineto_args_begin(&j->args);
		e->number = e->bytes = 0;
		for (size_t i = 0; i < count; i++)
			TRY(kineto_args_put(&j->args, &m[i], e, &place, err));
		if (!j->args.repeated || again)
			return ST_OK;
		kineto_drop_repeated(&j->event.args);
		again = true;
	}
}

static enum status put_member(struct json_trace *j, const struct json *key,
			      const struct json *value, struct error *err)
{
	buf_clear(&j->key);
	buf_put_byte(&j->key, '.');
	j->args.repairs += json_decode(key->text, key->len, &j->key);
	TRY(buf_status(&j->key, err));
	return kineto_args_put_fixed(&j->args, buf_text(&j->key), j->key.len, value, err);
}

/* The members that make it what it was: category, letter of an instant, colours, scopes. */
static enum status take_members(struct json_trace *j, enum shape_of as, struct error *err)
{
	const struct kineto_event *e = &j->event;
	const struct kineto_member *m;
	size_t count = kineto_members(&e->others, &m);

	if (e->cat.type == JSON_STRING && as != AS_END && as != AS_ID_END)
		TRY(kineto_args_put_fixed(&j->args, ".cat", 4, &e->cat, err));
	if (as == AS_MARK && !kineto_is(&e->ph, "i"))
		TRY(kineto_args_put_fixed(&j->args, ".ph", 3, &e->ph, err));
	for (size_t i = 0; i < count; i++)
		TRY(put_member(j, &m[i].key, &m[i].value, err));
	return ST_OK;
}

static enum status take_name(struct json_trace *j, struct event *e, struct error *err)
{
	if (j->event.name.type != JSON_STRING)
		return ST_OK;
	e->name = kineto_name(&j->args, &j->event.name, err);
	return e->name ? ST_OK : err->status;
}

/* ---- events ---- */

enum status json_trace_put(struct json_trace *j, const struct event *e, struct error *err)
{
	struct site site = { .track = e->track, .name = e->name, .shape = e->shape,
			     .kind = e->kind, .subkind = e->subkind };

	if (!trace_site(j->trace, &site, err))
		return err->status;
	j->events++;
	return spool_put(j->spool, 0, e, 1, err);
}

static uint8_t range_class(const struct json *cat)
{
	static const struct {
		const char *cat;
		uint8_t class;
	} rows[] = {
		{ "FEE", RANGE_PYTHON },      /* viztracer: function entry and exit */
		{ "Op", RANGE_OP },           /* TensorFlow's timeline */
		{ "cpu_op", RANGE_OP },
		{ "user_annotation", RANGE_ANNOTATION },
		{ "python_function", RANGE_PYTHON },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (kineto_is(cat, rows[i].cat))
			return rows[i].class;
	return RANGE_OTHER;
}

/* What pairs of an id belong to, as a name: category, id, and the process where ids are local. */
static enum status pair_key(struct json_trace *j, uint32_t process, uint64_t *number,
			    struct error *err)
{
	const struct kineto_event *e = &j->event;
	const struct kineto_member *local = kineto_find(&e->others, "id2");
	const struct json *id = local ? &local->value : &e->id;
	uint32_t name;

	buf_clear(&j->key);
	buf_put(&j->key, e->cat.text, e->cat.len);
	buf_put_byte(&j->key, '\n');
	buf_put(&j->key, id->text, id->len);
	if (local && memmem(id->text, id->len, "local", 5))
		buf_putf(&j->key, "\n%u", process);
	TRY(buf_status(&j->key, err));
	name = trace_name(j->trace, buf_text(&j->key), j->key.len, err);
	*number = name;
	return name ? ST_OK : err->status;
}

static enum status put_pair(struct json_trace *j, struct event *e, enum shape_of as,
			    struct error *err)
{
	bool by_id = as == AS_ID_BEGIN || as == AS_ID_END;

	if (!j->pairs)
		TRY(spool_open(&j->pairs, j->trace, &j->budget, err));
	e->owner = (uint32_t)e->subkind + 1; /* the class waits there: pairs are told by subkind */
	e->subkind = as == AS_BEGIN || as == AS_ID_BEGIN ? PAIR_BEGIN : PAIR_END;
	e->number = e->bytes = 0;
	if (by_id)
		TRY(pair_key(j, trace_get_track(j->trace, e->track)->process, &e->number, err));
	return spool_put(j->pairs, 0, e, 1, err);
}

/* Numbers, also as texts and hexadecimal; another text is of a flow only, where any number of its
 * own will do. */
static uint64_t number_of_id(const struct json *id, bool is_flow)
{
	uint64_t number = 0;

	if (id->type != JSON_NUMBER && id->type != JSON_STRING)
		return 0;
	if (json_u64(id->text, id->len, &number))
		return number;
	if (id->len > 2 && id->len <= 18 && id->text[0] == '0' && (id->text[1] | 32) == 'x')
		for (size_t i = 2; i < id->len && isxdigit((uint8_t)id->text[i]); i++)
			number = number << 4 | (uint64_t)(id->text[i] <= '9'
				? id->text[i] - '0' : (id->text[i] | 32) - 'a' + 10);
	return number || !is_flow ? number : hash_text(id->text, id->len) | 1;
}

static enum status import_element(struct json_trace *j, enum shape_of as, struct error *err)
{
	const struct kineto_event *k = &j->event;
	struct event e = { .kind = as == AS_MARK || as == AS_FLOW_BEGIN || as == AS_FLOW_END
					   ? KIND_MARK
					   : KIND_RANGE };
	struct kineto_id pid, tid;
	bool is_pair = as >= AS_BEGIN && as <= AS_ID_END;

	if (!take_times(j, as == AS_SPAN, &e)) {
		lose(j, LOSS_NO_TIME);
		return ST_OK;
	}
	e.subkind = e.kind == KIND_RANGE    ? range_class(&k->cat)
		    : as == AS_FLOW_BEGIN ? MARK_FLOW_BEGIN
		    : as == AS_FLOW_END   ? MARK_FLOW_END
					  : MARK_INSTANT;
	TRY(take_args(j, &e, err));
	TRY(take_name(j, &e, err));
	TRY(json_id_of(&j->args, &k->pid, &pid, err));
	TRY(json_id_of(&j->args, &k->tid, &tid, err));
	TRY(json_ids_thread(&j->ids, &pid, &tid, &e.track, err));
	TRY(take_members(j, as, err));
	if (!is_pair && e.kind == KIND_MARK)
		e.number = number_of_id(&k->id, as != AS_MARK);
	TRY(kineto_args_shape(&j->args, &e.shape, err));
	if (j->args.vary.len)
		e.vary = (const uint64_t *)(const void *)j->args.words.data;
	if (j->args.repairs)
		lose(j, LOSS_DAMAGED);
	return is_pair ? put_pair(j, &e, as, err) : json_trace_put(j, &e, err);
}

/* Each number of a counter is a series: of one that has several, under "NAME ARGUMENT". */
static enum status import_counter(struct json_trace *j, struct error *err)
{
	const struct kineto_member *m;
	size_t count = kineto_members(&j->event.args, &m);
	struct event e = { .kind = KIND_COUNTER };
	struct kineto_id pid;

	if (!take_times(j, false, &e)) {
		lose(j, LOSS_NO_TIME);
		return ST_OK;
	}
	TRY(json_id_of(&j->args, &j->event.pid, &pid, err));
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
		e.name = trace_name(j->trace, buf_text(&j->key), j->key.len, err);
		if (!e.name)
			return err->status;
		TRY(json_ids_counter(&j->ids, &pid, e.name, &e.track, err));
		e.value = json_f64(m[i].value.text, m[i].value.len);
		TRY(json_trace_put(j, &e, err));
	}
	return ST_OK;
}

enum status json_trace_event(struct json_trace *j, struct error *err)
{
	const struct kineto_event *k = &j->event;
	enum shape_of as;

	if (!k->is_object || k->ph.type != JSON_STRING || k->ph.len != 1) {
		lose(j, LOSS_DAMAGED);
		return ST_OK;
	}
	as = shape_of(k->ph.text[0]);
	if (as == AS_NAME)
		return import_name(j, err);
	return as == AS_COUNTER ? import_counter(j, err) : import_element(j, as, err);
}

/* ---- around the events ---- */

/* viztracer keeps the base of its times one level down; the text is known to be valid. */
static void find_base(struct json_trace *j, const struct json *value)
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

enum status json_trace_key(struct json_trace *j, const struct json *key, const struct json *value,
			   struct error *err)
{
	struct attr attr = { 0 };

	if (kineto_is(key, "baseTimeNanoseconds") && value->type == JSON_NUMBER &&
	    !json_u64(value->text, value->len, &j->base_ns))
		j->base_ns = 0;
	if (kineto_is(key, "viztracer_metadata") && value->type == JSON_OBJECT)
		find_base(j, value);
	if (j->base_ns >= BASE_MOST)
		j->base_ns = 0;
	if (value->len > KEPT_BYTES)
		return ST_OK;
	attr.key = kineto_name(&j->args, key, err);
	if (!attr.key)
		return err->status;
	TRY(kineto_attr(&j->args, value, &attr, err));
	buf_put(&j->attrs, &attr, sizeof(attr));
	return buf_status(&j->attrs, err);
}

enum status json_trace_finish(struct json_trace *j, struct error *err)
{
	struct shape shape = { .fixed = (const struct attr *)(const void *)j->attrs.data,
			       .fixed_count = (uint32_t)(j->attrs.len / sizeof(struct attr)) };
	uint32_t id = trace_shape(j->trace, &shape, err);

	if (!id)
		return err->status;
	if (j->pairs)
		TRY(json_pairs_join(j, err));
	json_ids_finish(&j->ids, id);
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/document.h"

#include "convert/input/input.h"

enum { MEMBERS_BYTES = 32 << 20 };

void kineto_document_init(struct kineto_document *d, struct input *in)
{
	*d = (struct kineto_document){ .is_begun = false };
	json_open(&d->scan, in);
	buf_init(&d->event.args, MEMBERS_BYTES);
	buf_init(&d->event.others, MEMBERS_BYTES);
}

void kineto_document_release(struct kineto_document *d)
{
	buf_release(&d->event.args);
	buf_release(&d->event.others);
}

/* ---- members ---- */

/* Lists the members of the object that the scanner has just entered, under a hold. */
static enum status read_members(struct buf *list, struct json_scan *s, struct error *err)
{
	struct kineto_member m;

	buf_clear(list);
	for (;;) {
		TRY(json_next(s, &m.key, err));
		if (m.key.type == JSON_OBJECT_END)
			return buf_status(list, err);
		TRY(json_next(s, &m.value, err));
		TRY(json_raw(s, &m.value, err));
		buf_put(list, &m, sizeof(m));
	}
}

enum status kineto_members_read(struct buf *list, const struct json *object, struct error *err)
{
	struct json_scan s;
	struct json first;

	buf_clear(list);
	if (object->type != JSON_OBJECT)
		return ST_OK;
	json_open_text(&s, object->text, object->len);
	json_hold(&s);
	TRY(json_next(&s, &first, err));
	return read_members(list, &s, err);
}

bool kineto_is(const struct json *value, const char *text)
{
	size_t len = strlen(text);

	return (value->type == JSON_STRING || value->type == JSON_KEY) && value->len == len &&
	       memcmp(value->text, text, len) == 0;
}

const struct kineto_member *kineto_find(const struct buf *list, const char *key)
{
	const struct kineto_member *m;

	for (size_t i = kineto_members(list, &m); i-- > 0;)
		if (kineto_is(&m[i].key, key))
			return &m[i];
	return NULL;
}

void kineto_drop_repeated(struct buf *list)
{
	struct kineto_member *m = (struct kineto_member *)(void *)list->data;
	size_t kept = 0, count = list->len / sizeof(*m);

	for (size_t i = 0; i < count; i++) {
		size_t j;

		for (j = i + 1; j < count; j++)
			if (m[j].key.len == m[i].key.len &&
			    memcmp(m[j].key.text, m[i].key.text, m[i].key.len) == 0)
				break;
		if (j == count)
			m[kept++] = m[i];
	}
	list->len = kept * sizeof(*m);
}

/* ---- elements and keys ---- */

static enum status read_object(struct kineto_event *e, struct json_scan *s, bool *has_members,
			       struct error *err)
{
	struct kineto_member m;
	struct json *member;

	for (;;) {
		TRY(json_next(s, &m.key, err));
		if (m.key.type == JSON_OBJECT_END)
			return buf_status(&e->others, err);
		*has_members = true;
		TRY(json_next(s, &m.value, err));
		if (m.value.type == JSON_OBJECT && kineto_is(&m.key, "args")) {
			TRY(read_members(&e->args, s, err)); /* a repeated "args" replaces it */
			continue;
		}
		TRY(json_raw(s, &m.value, err));
		member = NULL;
#define X(name)                                                                                    \
	if (m.key.len == sizeof(#name) - 1 && memcmp(m.key.text, #name, sizeof(#name) - 1) == 0)   \
		member = &e->name;
		KINETO_MEMBER_LIST(X)
#undef X
		if (member)
			*member = m.value;
		else
			buf_put(&e->others, &m, sizeof(m));
	}
}

/* Accepts a time in quotes, as Chrome and Perfetto do. */
static void unquote_time(struct json *time)
{
	int64_t ns;

	if (time->type == JSON_STRING && json_us_to_ns(time->text, time->len, &ns))
		time->type = JSON_NUMBER;
}

/* Reads the next element of the array, or its end. */
static enum status read_element(struct kineto_document *d, struct error *err)
{
	struct kineto_event *e = &d->event;
	struct json_scan *s = &d->scan;
	uint64_t begin = json_at(s);
	struct json token;
	bool has_members;

	do {
		json_hold(s);
		has_members = false;
		*e = (struct kineto_event){ .args = e->args, .others = e->others };
#define X(name) e->name.text = "";
		KINETO_MEMBER_LIST(X)
#undef X
		buf_clear(&e->args);
		buf_clear(&e->others);
		e->is_first = json_is_first(s);
		TRY(json_next(s, &token, err));
		d->in_events = token.type != JSON_ARRAY_END;
		if (token.type == JSON_OBJECT)
			TRY(read_object(e, s, &has_members, err));
		else if (d->in_events)
			TRY(json_raw(s, &token, err));
	} while (json_again(s));
	unquote_time(&e->ts);
	unquote_time(&e->dur);
	e->text_len = (size_t)(json_at(s) - begin);
	e->text = (const char *)s->at - e->text_len;
	e->is_empty = token.type == JSON_OBJECT && !has_members;
	d->ends_empty = d->in_events ? e->is_empty : d->ends_empty;
	d->empty_count += e->is_empty;
	e->has_ph = e->ph.type == JSON_STRING && e->ph.len == 1;
	d->has_elements |= d->in_events;
	d->has_ph |= e->has_ph;
	d->found = KINETO_EVENT;
	return ST_OK;
}

/* Reads a top-level key with its value; of traceEvents it reads only the bracket. */
static enum status read_key(struct kineto_document *d, struct error *err)
{
	struct json *key = &d->key.key, *value = &d->key.value;
	struct json_scan *s = &d->scan;

	do {
		json_hold(s);
		TRY(json_next(s, key, err));
		d->found = key->type == JSON_KEY ? KINETO_KEY : KINETO_END;
		if (d->found == KINETO_END)
			return ST_OK;
		TRY(json_next(s, value, err));
		d->in_events = value->type == JSON_ARRAY && kineto_is(key, "traceEvents");
		if (d->in_events) {
			json_release(s);
			d->has_events = true;
			return ST_OK;
		}
		TRY(json_raw(s, value, err));
	} while (json_again(s));
	return ST_OK;
}

static enum status find_next(struct kineto_document *d, struct error *err)
{
	struct json token;

	if (!d->is_begun) {
		d->is_begun = true;
		TRY(json_next(&d->scan, &token, err));
		d->is_bare = token.type != JSON_OBJECT;
		d->in_events = d->has_events = token.type == JSON_ARRAY;
	}
	while (d->in_events || !d->is_bare) {
		if (!d->in_events) {
			TRY(read_key(d, err));
			if (d->found == KINETO_END)
				break;
			if (!d->in_events)
				return ST_OK;
		}
		TRY(read_element(d, err));
		if (d->in_events)
			return ST_OK;
	}
	d->found = KINETO_END;
	return json_next(&d->scan, &token, err); /* fails if anything follows */
}

enum status kineto_document_next(struct kineto_document *d, struct error *fault, struct error *err)
{
	enum status status = find_next(d, err);
	const uint8_t *bytes;
	size_t len;

	/* Only the last bracket is missing.  A truncated compressed file is different: its input
	 * has an error. */
	if (status == ST_TRUNCATED && d->may_stay_open && d->is_bare && d->scan.depth == 1 &&
	    input_peek(d->scan.in, 1, &bytes, &len, NULL) == ST_OK) {
		d->found = KINETO_END;
		status = ST_OK;
	}
	if (status == ST_OK && d->found == KINETO_END &&
	    (!d->has_events || (d->has_elements && !d->has_ph)))
		return fail(err, ST_FORMAT, 0, "JSON, but not a trace: it has no traceEvents");
	if (status == ST_OK || status == ST_MEMORY || !d->has_events)
		return status;
	*fault = *err;
	d->found = KINETO_END;
	return ST_OK;
}

bool json_begins(const uint8_t *head, size_t len, size_t *at)
{
	size_t i = len >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (i < len && (head[i] == ' ' || (head[i] >= '\t' && head[i] <= '\r')))
		i++;
	*at = i;
	return i < len && (head[i] == '{' || head[i] == '[');
}

bool head_has(const uint8_t *head, size_t len, const char *text)
{
	return memmem(head, len, text, strlen(text)) != NULL;
}

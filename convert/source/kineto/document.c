/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/document.h"

#include "convert/input/input.h"

/* `input`: the fault is the input's, not of a taker, so what came before it counts. */
struct outcome {
	enum status status;
	bool input;
};

static struct outcome of_input(enum status status)
{
	return (struct outcome){ status, status == ST_FORMAT || status == ST_TRUNCATED ||
						 status == ST_CEILING || status == ST_IO };
}

static struct outcome of_taker(enum status status)
{
	return (struct outcome){ status, false };
}

static struct outcome read_events(struct json_walk *w, struct error *err)
{
	const struct kineto_event *e = w->event;
	bool end = false;
	enum status status;

	w->has_events = true;
	for (;;) {
		while (w->take_fast && w->take_fast(w->self, &w->scan, &status, err)) {
			w->elements++;
			w->with_ph++;
			if (status != ST_OK)
				return of_taker(status);
		}
		status = kineto_event_next(w->event, &w->scan, &end, err);
		if (status != ST_OK || end)
			return of_input(status);
		w->elements++;
		w->with_ph += e->is_object && e->ph.type == JSON_STRING && e->ph.len == 1;
		status = w->take_event(w->self, err);
		if (status != ST_OK)
			return of_taker(status);
	}
}

/* Reads a key of the top level with its value; *key is JSON_OBJECT_END after the last. */
static struct outcome read_key(struct json_walk *w, struct json *key, struct error *err)
{
	enum status status;
	struct json value;

	do {
		json_hold(&w->scan);
		status = json_next(&w->scan, key, err);
		if (status != ST_OK || key->type == JSON_OBJECT_END)
			return of_input(status);
		status = json_next(&w->scan, &value, err);
		if (status == ST_OK && value.type == JSON_ARRAY && kineto_is(key, "traceEvents")) {
			json_release(&w->scan);
			return read_events(w, err);
		}
		if (status == ST_OK)
			status = json_raw(&w->scan, &value, err);
		if (status != ST_OK)
			return of_input(status);
	} while (json_again(&w->scan));
	return of_taker(w->take_key(w->self, key, &value, err));
}

/* Whether the missing bracket is all that is missing: a compressed file that is truncated has a
 * fault. */
static bool may_end_here(const struct json_walk *w, const struct outcome *o)
{
	const uint8_t *bytes;
	size_t len;

	return w->may_stay_open && w->is_bare && o->status == ST_TRUNCATED && o->input &&
	       w->scan.depth == 1 && input_peek(w->scan.in, 1, &bytes, &len, NULL) == ST_OK;
}

static struct outcome read_all(struct json_walk *w, struct error *err)
{
	struct outcome outcome;
	struct json token;

	outcome = of_input(json_next(&w->scan, &token, err));
	if (outcome.status != ST_OK)
		return outcome;
	w->is_bare = token.type == JSON_ARRAY;
	if (w->is_bare) {
		outcome = read_events(w, err);
		if (may_end_here(w, &outcome))
			return of_taker(ST_OK);
	} else if (token.type == JSON_OBJECT) {
		do
			outcome = read_key(w, &token, err);
		while (outcome.status == ST_OK && token.type != JSON_OBJECT_END);
	}
	if (outcome.status == ST_OK)
		outcome = of_input(json_next(&w->scan, &token, err)); /* nothing may follow */
	return outcome;
}

enum status json_walk(struct json_walk *w, struct input *in, struct error *fault, struct error *err)
{
	struct error found = { 0 };
	struct outcome outcome;

	json_open(&w->scan, in);
	outcome = read_all(w, &found);
	if (outcome.status != ST_OK && (!outcome.input || !w->has_events)) {
		if (err)
			*err = found;
		return outcome.status;
	}
	if (outcome.status == ST_OK && (!w->has_events || (w->elements && !w->with_ph)))
		return fail(err, ST_FORMAT, 0, "JSON, but no trace: it has no traceEvents");
	if (outcome.status != ST_OK)
		*fault = found;
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

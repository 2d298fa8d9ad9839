/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink_words.h"

#include "schemas/json_text.h"
#include "schemas/records.h"
#include "schemas/utf8.h"

#include <string.h>

static struct words_text of_text(const char *text)
{
	return (struct words_text){ text, strlen(text) };
}

static struct words_text of_name(const struct trace *t, uint32_t name)
{
	struct words_text w;

	w.text = trace_text(t, name, &w.len);
	return w;
}

struct words_text words_kind(const struct trace *t, const struct event *e)
{
	const struct attr *own;
	const char *word = kind_word(e->kind);

	if (word[0])
		return of_text(word);
	own = trace_find_attr(t, e->shape, ".kind");
	return own && own->type == ATTR_TEXT ? of_name(t, (uint32_t)own->bits) : of_text("");
}

/* CUpti_ActivitySynchronizationType */
static const char *sync_word(unsigned subkind)
{
	static const char *const words[] = { "", "event", "stream_wait", "stream", "context" };

	return subkind < sizeof(words) / sizeof(*words) ? words[subkind] : "";
}

const char *words_class(const struct event *e)
{
	static const char *const marks[] = { "instant", "flow_begin", "flow_end" };

	switch (e->kind) {
	case KIND_API:
		return e->subkind == API_DRIVER ? "driver" : "runtime";
	case KIND_RANGE:
		return range_class_word(e->subkind);
	case KIND_MEMCPY:
		return copy_kind_word(e->subkind);
	case KIND_SYNC:
		return sync_word(e->subkind);
	case KIND_MARK:
		return e->subkind < sizeof(marks) / sizeof(*marks) ? marks[e->subkind] : "";
	}
	return "";
}

struct words_text words_name(const struct trace *t, const struct event *e)
{
	if (e->name)
		return of_name(t, e->name);
	if (e->kind == KIND_COUNTER)
		return of_name(t, trace_get_track(t, e->track)->name);
	if (e->kind == KIND_MEMCPY || e->kind == KIND_SYNC)
		return of_text(words_class(e));
	return of_text("");
}

const char *words_home(unsigned home)
{
	static const char *const words[] = { "stream", "thread", "pool", "counter" };

	return home < sizeof(words) / sizeof(*words) ? words[home] : "";
}

void words_put(struct buf *out, const char *text, size_t len)
{
	size_t good = 0;

	for (size_t at = 0; at < len;) {
		size_t n = text[at] ? utf8_sequence(text + at, len - at) : 0;

		if (!n) {
			buf_put(out, text + good, at - good);
			buf_put(out, "\xef\xbf\xbd", 3);
			good = at + 1;
		}
		at += n ? n : 1;
	}
	buf_put(out, text + good, len - good);
}

/* ---- arguments ---- */

/* Behind what stands in the buffer from `start` on. */
static void put_arg(struct buf *b, size_t start, const struct trace *t, const struct attr *a,
		    uint64_t bits)
{
	struct words_text key = of_name(t, a->key);

	buf_put_text(b, b->len == start ? "{" : ", ");
	json_put_text(b, key.text, key.len);
	buf_put_text(b, ": ");
	json_put_value(b, t, a->type, bits);
}

static bool is_wanted(const struct trace *t, const struct event *e, uint32_t key, bool all)
{
	struct words_text w = of_name(t, key);
	const struct field *f = all ? NULL : kind_field(e->kind, w.text, w.len);

	return !f || f->arg;
}

void words_put_args(struct buf *out, const struct trace *t, const struct event *e, bool all)
{
	const struct shape *s = trace_get_shape(t, e->shape);
	size_t start = out->len;

	for (uint32_t i = 0; e->vary && i < s->vary_count; i++)
		if (is_wanted(t, e, s->vary[i].key, all))
			put_arg(out, start, t, &s->vary[i], e->vary[i]);
	for (uint32_t i = 0; i < s->fixed_count; i++)
		if (is_wanted(t, e, s->fixed[i].key, all))
			put_arg(out, start, t, &s->fixed[i], s->fixed[i].bits);
	if (out->len > start)
		buf_put_byte(out, '}');
}

void words_put_vary(struct buf *out, const struct trace *t, const struct event *e)
{
	const struct shape *s = trace_get_shape(t, e->shape);
	size_t start = out->len;

	for (uint32_t i = 0; e->vary && i < s->vary_count; i++)
		put_arg(out, start, t, &s->vary[i], e->vary[i]);
	if (out->len > start)
		buf_put_byte(out, '}');
}

void words_put_fixed(struct buf *out, const struct trace *t, uint32_t shape)
{
	const struct shape *s = trace_get_shape(t, shape);
	size_t start = out->len;

	for (uint32_t i = 0; i < s->fixed_count; i++)
		put_arg(out, start, t, &s->fixed[i], s->fixed[i].bits);
	if (out->len > start)
		buf_put_byte(out, '}');
}

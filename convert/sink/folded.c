/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, which every flame-graph viewer reads: "frame;frame;frame 1234", one line for each
 * path, in ns.  GPU time by the path of its launch, with the work as the last frame; of an input
 * without GPU work the own time of the ranges of host threads.  Lines are in the order of their
 * text.
 */
#include "convert/sink/sink_list.h"
#include "schemas/base/map.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { TEXTS_MAX = 1 << 30 };

struct folded_row { /* what happened at a path */
	uint32_t path, name;
	int64_t ns; /* on the host: less what lies inside */
};
struct folded_rows {
	struct folded_row *items;
	size_t count, cap;
	struct hash_index by_key;
};
struct folded_line {
	const char *text;
	uint64_t at, ns; /* at: of the text, while they are made */
};
struct folded_sink {
	struct sink base;
	struct folded_rows gpu, host;
	bool is_alone; /* there is one process: stacks do not begin with its rank */
	struct buf texts;
	struct folded_line *lines;
	size_t line_count, line_cap;
};

static enum status rows_add(struct folded_rows *r, uint32_t path, uint32_t name, int64_t ns,
			    struct error *err)
{
	uint64_t hash = hash_word(path, name);
	size_t at = hash_first(&r->by_key, hash);
	uint32_t row;

	for (; (row = hash_item(&r->by_key, &at, hash)) != HASH_NONE;
	     at = hash_next(&r->by_key, at))
		if (r->items[row].path == path && r->items[row].name == name) {
			r->items[row].ns += ns;
			return ST_OK;
		}
	TRY(vec_reserve(&r->items, &r->cap, r->count + 1, err));
	r->items[r->count] = (struct folded_row){ path, name, ns };
	return hash_add(&r->by_key, hash, (uint32_t)r->count++, err);
}

static void rows_release(struct folded_rows *r)
{
	free(r->items);
	hash_release(&r->by_key);
}

static enum status folded_open(struct sink *sink, const struct sink_request *req, struct error *err)
{
	struct folded_sink *s = (struct folded_sink *)sink;

	(void)err;
	s->is_alone = trace_count(sink->trace, TRACE_PROCESSES) < 2 || req->is_alone;
	buf_init(&s->texts, TEXTS_MAX);
	return ST_OK;
}

static bool is_frame(const struct event *e)
{
	return e->kind == KIND_RANGE && e->end_ns > e->begin_ns &&
	       (e->subkind == RANGE_OP || e->subkind == RANGE_ANNOTATION ||
		e->subkind == RANGE_PYTHON || e->subkind == RANGE_PHASE ||
		e->subkind == RANGE_NVTX);
}

static enum status folded_put(struct sink *sink, const struct event *e, struct error *err)
{
	struct folded_sink *s = (struct folded_sink *)sink;
	const struct path_node *above = trace_get_path(sink->trace, e->path);
	int64_t ns = (int64_t)(e->end_ns - e->begin_ns);

	if (!event_is_gpu_work(e) && !is_frame(e)) {
		sink->left_out++;
		return ST_OK;
	}
	sink->written++;
	if (event_is_gpu_work(e))
		return rows_add(&s->gpu, e->path, e->name, ns, err);
	TRY(rows_add(&s->host, e->path, e->name, ns, err));
	return above->parent ? rows_add(&s->host, above->parent, above->name, -ns, err) : ST_OK;
}

/* A frame's name: what separates frames and lines is replaced. */
static void put_frame(const char *text, size_t len, struct buf *out)
{
	size_t at = out->len;

	sink_put_utf8(text, len, false, out);
	for (; at < out->len; at++)
		if (out->data[at] == ';' || out->data[at] < ' ')
			out->data[at] = out->data[at] == ';' ? ':' : ' ';
}

static void put_name(const struct trace *t, uint32_t name, struct buf *out)
{
	size_t len;
	const char *text = trace_text(t, name, &len);

	put_frame(text, len, out);
}

/* The frames from the root to a node, each with a semicolon behind it. */
static void put_path(const struct folded_sink *s, uint32_t path, struct buf *out)
{
	const struct trace *t = s->base.trace;
	const struct path_node *node = trace_get_path(t, path);

	if (node->class == PATH_ROOT) {
		const struct process *p = trace_get_process(t, node->name);

		if (s->is_alone)
			return;
		if (p->rank != NO_RANK)
			buf_putf(out, "rank %u;", p->rank);
		else
			buf_putf(out, "process %u;", p->pid);
		return;
	}
	if (node->parent)
		put_path(s, node->parent, out);
	if (node->class == PATH_OTHER)
		buf_put_text(out, "(other)");
	else
		put_name(t, node->name, out);
	buf_put_byte(out, ';');
}

static enum status lines_make(struct folded_sink *s, const struct folded_rows *r, struct error *err)
{
	for (size_t i = 0; i < r->count; i++) {
		uint64_t at = s->texts.len;

		if (r->items[i].ns <= 0)
			continue;
		put_path(s, r->items[i].path, &s->texts);
		put_name(s->base.trace, r->items[i].name, &s->texts);
		buf_put_byte(&s->texts, '\0');
		TRY(vec_reserve(&s->lines, &s->line_cap, s->line_count + 1, err));
		s->lines[s->line_count++] =
			(struct folded_line){ .at = at, .ns = (uint64_t)r->items[i].ns };
	}
	TRY(buf_status(&s->texts, err));
	for (size_t i = 0; i < s->line_count; i++) /* the texts move no more */
		s->lines[i].text = (const char *)s->texts.data + s->lines[i].at;
	SORT_BY(s->lines, s->line_count, UP(struct folded_line, text), UP(struct folded_line, at));
	return ST_OK;
}

/* Paths that differ in classes of ranges alone are one line. */
static enum status folded_close(struct sink *sink, struct error *err)
{
	struct folded_sink *s = (struct folded_sink *)sink;

	TRY(lines_make(s, s->gpu.count ? &s->gpu : &s->host, err));
	for (size_t i = 0, next; i < s->line_count; i = next) {
		uint64_t ns = 0;

		for (next = i;
		     next < s->line_count && !strcmp(s->lines[next].text, s->lines[i].text); next++)
			ns += s->lines[next].ns;
		buf_put_text(&sink->lines, s->lines[i].text);
		buf_putf(&sink->lines, " %llu\n", (unsigned long long)ns);
		TRY(sink_flush(sink, SINK_LINES_BYTES, err));
	}
	return sink_flush(sink, 0, err);
}

static void folded_release(struct sink *sink)
{
	struct folded_sink *s = (struct folded_sink *)sink;

	rows_release(&s->gpu);
	rows_release(&s->host);
	buf_release(&s->texts);
	free(s->lines);
}

const struct sink_type sink_folded = {
	.name = "folded",
	.help = "folded stacks for flame graphs: GPU time by path, or host time without a GPU",
	.scope = SINK_WHOLE,
	.needs = NEED_STEP | NEED_LINK,
	.size = sizeof(struct folded_sink),
	.open = folded_open,
	.put_event = folded_put,
	.close = folded_close,
	.release = folded_release,
};

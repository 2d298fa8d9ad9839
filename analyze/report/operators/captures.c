/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/operators/captures.h"

#include "analyze/report/where/where.h"
#include "convert/name/name.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"
#include "schemas/model/call.h"

#include <stdlib.h>

enum call_kind {
	CALL_KNOWN = 1,
	CALL_BEGINS = 2,
	CALL_ENDS = 4,
	CALL_CAPTURED = 8,
	CALL_REPLAYS = 16
};

enum {
	NODES_MAX = 1 << 17,    /* limit of captured calls, and of rows of replayed work */
	REPLAYED_MAX = 1 << 16, /* limit of one launch */
};

RANK_TABLE_TYPE(graphs, &table_ranks, GRAPH_COLUMNS, .nest = NEST_OBJECT, .is_seldom = true);

RANK_TABLE_TYPE(graph_nodes, &table_ranks, NODE_COLUMNS, .nest = NEST_NEVER,
		.null_texts = "kernel");

RANK_TABLE_TYPE(graph_work, &table_ranks, REPLAYED_COLUMNS, .nest = NEST_NEVER);

/* ---- captures --------------------------------------------------------------------------- */

/* Returns the size in "capture_32_FULL": the requests or tokens for which a server captured a
 * graph. */
static uint64_t size_of(const struct trace *t, uint32_t path)
{
	for (; path; path = trace_get_path(t, path)->parent) {
		const struct path_node *n = trace_get_path(t, path);
		const char *name = n->class == RANGE_ANNOTATION ? trace_text(t, n->name, NULL) : "";
		char *end;

		if (strncmp(name, "capture_", 8) != 0)
			continue;
		uint64_t size = strtoull(name + 8, &end, 10);
		if (end > name + 8)
			return size;
	}
	return NO_U64;
}

static enum status kind_of(struct accumulator *f, struct captures *c, uint32_t name, unsigned *out,
			   struct error *err)
{
	size_t len;

	TRY(vec_reserve(&c->kinds, &c->kind_cap, (size_t)name + 1, err));
	if (!c->kinds[name]) {
		const char *text = trace_text(f->trace, name, &len);
		unsigned traits = call_traits(text, len);

		c->kinds[name] = CALL_KNOWN;
		c->kinds[name] |= strstr(text, "StreamBeginCapture") ? CALL_BEGINS : 0;
		c->kinds[name] |= strstr(text, "StreamEndCapture") ? CALL_ENDS : 0;
		if (traits & CALL_LAUNCHES)
			c->kinds[name] |=
				traits & CALL_LAUNCHES_GRAPH ? CALL_REPLAYS : CALL_CAPTURED;
	}
	*out = c->kinds[name];
	return ST_OK;
}

enum status captures_wants(struct accumulator *f, struct captures *c, const struct event *e,
			   bool *wants, struct error *err)
{
	unsigned kind;

	TRY(kind_of(f, c, e->name, &kind, err));
	if (kind & (CALL_BEGINS | CALL_ENDS)) {
		TRY(vec_reserve(&c->open, &c->open_cap, (size_t)e->track + 1, err));
		c->open[e->track] = kind & CALL_BEGINS ? e->begin_ns : 0;
	}
	*wants = (kind & CALL_CAPTURED) && e->track < c->open_cap && c->open[e->track] &&
		 c->count < NODES_MAX;
	if (*wants && !c->texts.ceiling)
		buf_init(&c->texts, (size_t)64 << 20);
	return ST_OK;
}

static void put_field(struct buf *b, const char *text, uint8_t end)
{
	for (; text && *text; text++)
		buf_put_byte(b, (uint8_t)*text < ' ' ? ' ' : (uint8_t)*text);
	buf_put_byte(b, end);
}

void captures_put_operator(struct accumulator *f, struct captures *c, uint32_t name,
			   uint32_t schema)
{
	put_field(&c->texts, trace_text(f->trace, name, NULL), FIELD_END);
	put_field(&c->texts, trace_attr_text(f->trace, schema, "input_dims"), FIELD_END);
	put_field(&c->texts, trace_attr_text(f->trace, schema, "input_type"), OPERATOR_END);
}

/* Returns a common name for copies or fills, whose calls and work have different names. */
static enum status common_name(struct accumulator *f, struct captures *c, bool is_fill,
			       uint32_t *out, struct error *err)
{
	if (!c->names[is_fill])
		c->names[is_fill] = trace_name(f->trace, is_fill ? "Memset" : "Memcpy", 6, err);
	*out = c->names[is_fill];
	return *out ? ST_OK : ST_CEILING;
}

/* Writes the modules around a path, separated by slashes, the outermost first. */
static void put_modules(const struct trace *t, uint32_t path, struct buf *out)
{
	const struct path_node *node = trace_get_path(t, path);
	const char *name = path ? path_module(t, node) : NULL;

	if (!path)
		return;
	put_modules(t, node->parent, out);
	if (name && out->len && out->data[out->len - 1])
		buf_put_byte(out, '/');
	if (name)
		buf_put_text(out, name);
}

enum status captures_put_call(struct accumulator *f, struct captures *c, const struct event *e,
			      struct error *err)
{
	const char *name = trace_text(f->trace, e->name, NULL);
	const struct attr *kernel = trace_find_attr(f->trace, e->schema, "kernel");
	struct captured one = { .process = acc_process(f, e->track),
				.capture = c->open[e->track],
				.size = size_of(f->trace, e->path) };

	if (strstr(name, "Memcpy") || strstr(name, "Memset"))
		TRY(common_name(f, c, strstr(name, "Memset") != NULL, &one.name, err));
	else if (kernel && kernel->type >= ATTR_TEXT)
		one.name = (uint32_t)kernel->bits;
	one.operators = c->count ? c->calls[c->count - 1].module : 0;
	one.operators += c->count ? strlen((char *)c->texts.data + one.operators) + 1 : 0;
	buf_put_byte(&c->texts, '\0');
	one.module = c->texts.len;
	put_modules(f->trace, e->path, &c->texts);
	buf_put_byte(&c->texts, '\0');
	TRY(buf_status(&c->texts, err));
	TRY(vec_reserve(&c->calls, &c->cap, c->count + 1, err));
	c->calls[c->count++] = one;
	uint64_t *at = e->correlation ? map_put(&c->by_correlation, e->correlation, NULL) : NULL;
	if (at)
		*at = c->count;
	return ST_OK;
}

/* ---- replays ---------------------------------------------------------------------------- */

static enum status replay_flush(struct accumulator *f, struct captures *c, struct replay *r,
				struct error *err)
{
	union value keys[REPLAYED_COUNT], *row;
	uint64_t sequence = r->count;

	/* Sort by node: branches of a graph run in another order each time, but the ids of nodes
	 * stay. */
	SORT_BY(r->items, r->count, UP(struct replayed, node), UP(struct replayed, order));
	for (size_t i = 0; i < r->count; i++)
		sequence = hash_word(sequence, r->items[i].name);
	keys[REPLAYED_BATCH].u64 = r->batch;
	keys[REPLAYED_TOKENS].u64 = r->tokens;
	keys[REPLAYED_PLACE].u64 = r->place;
	keys[REPLAYED_SEQUENCE].u64 = sequence;
	for (size_t i = 0; i < r->count && acc_wants(f, r->process); i++) {
		keys[REPLAYED_INDEX].u64 = i;
		keys[REPLAYED_NAME].text = trace_text(f->trace, r->items[i].name, NULL);
		TRY(acc_row(f, "graph_work", r->process, keys, &row, err));
		if (!row[REPLAYED_COUNT].u64++ && c->rows++ >= NODES_MAX)
			break;
		row[REPLAYED_NS].u64 += r->items[i].ns;
	}
	r->count = 0;
	return ST_OK;
}

static enum status replay_of(struct accumulator *f, struct captures *c, uint32_t process,
			     const struct launch *l, struct replay **out, struct error *err)
{
	for (size_t i = 0; i < REPLAYS; i++) {
		*out = &c->replays[i];
		if ((*out)->count && (*out)->process == process &&
		    (*out)->correlation == l->correlation)
			return ST_OK;
	}
	struct replay *r = *out = &c->replays[c->next++ % REPLAYS];
	TRY(replay_flush(f, c, r, err));
	struct graph_sums *sums = &c->sums[process];
	sums->place = l->step && l->step == sums->step ? sums->place + 1 : 0;
	sums->step = l->step;
	sums->launches++;
	r->correlation = l->correlation;
	r->process = process;
	r->place = sums->place;
	/* Find the requests and tokens of the server's step around the launch. */
	uint32_t path = l->path;
	struct serving_step step;

	r->batch = r->tokens = NO_U64;
	for (; path; path = trace_get_path(f->trace, path)->parent) {
		const struct path_node *n = trace_get_path(f->trace, path);

		if (n->class != RANGE_ANNOTATION ||
		    !serving_step_of(trace_text(f->trace, n->name, NULL), &step))
			continue;
		uint32_t batch = step.padded != SERVING_UNKNOWN ? step.padded : step.batch;
		if (r->batch == NO_U64 && batch != SERVING_UNKNOWN)
			r->batch = batch;
		if (r->tokens == NO_U64 && step.tokens != SERVING_UNKNOWN)
			r->tokens = step.tokens;
	}
	return ST_OK;
}

enum status captures_put_work(struct accumulator *f, struct captures *c, const struct event *e,
			      const struct launch *l, struct error *err)
{
	uint32_t process = acc_process(f, e->track), name = e->name;
	uint64_t *call = c->count ? map_find(&c->by_correlation, e->correlation) : NULL;
	unsigned kind = 0;
	struct replay *r;

	if (call && c->calls[*call - 1].process == process)
		c->calls[*call - 1].has_work = true;
	if (l && e->kind != KIND_GRAPH)
		TRY(kind_of(f, c, l->name, &kind, err));
	if (!(kind & CALL_REPLAYS))
		return ST_OK;
	TRY(vec_reserve(&c->sums, &c->sum_cap, (size_t)process + 1, err));
	TRY(replay_of(f, c, process, l, &r, err));
	c->sums[process].work++;
	c->sums[process].ns += e->end_ns - e->begin_ns;
	if (r->count == REPLAYED_MAX)
		return ST_OK;
	if (e->kind != KIND_KERNEL)
		TRY(common_name(f, c, e->kind == KIND_MEMSET, &name, err));
	TRY(vec_reserve(&r->items, &r->cap, r->count + 1, err));
	r->items[r->count] = (struct replayed){
		.node = trace_attr_number(f->trace, e->schema, "graph_node"),
		.ns = e->end_ns - e->begin_ns,
		.name = name,
		.order = (uint32_t)r->count,
	};
	r->count++;
	return ST_OK;
}

enum status captures_end(struct accumulator *f, struct captures *c, struct error *err)
{
	union value keys[NODE_SEEN], *row;
	uint64_t capture = 0;

	for (size_t i = 0; i < REPLAYS; i++)
		TRY(replay_flush(f, c, &c->replays[i], err));
	for (size_t i = 0; i < c->sum_cap; i++) {
		const struct graph_sums *s = &c->sums[i];

		if (!s->launches || !acc_wants(f, (uint32_t)i))
			continue;
		TRY(acc_row(f, "graphs", (uint32_t)i, keys, &row, err));
		row[GRAPH_KERNELS].u64 += context_launch_totals(f->context, (uint32_t)i).gpu_events;
		row[GRAPH_LAUNCHES].u64 += s->launches;
		row[GRAPH_WORK].u64 += s->work;
		row[GRAPH_NS].u64 += s->ns;
	}
	for (size_t i = 0; i < c->count; i++) {
		const struct captured *one = &c->calls[i];

		if (one->capture != capture)
			keys[NODE_INDEX].u64 = 0;
		capture = one->capture;
		if (one->has_work || !acc_wants(f, one->process))
			continue;
		keys[NODE_CAPTURE].u64 = one->capture;
		keys[NODE_SIZE].u64 = one->size;
		keys[NODE_KERNEL].text = one->name ? trace_text(f->trace, one->name, NULL) : NULL;
		keys[NODE_OPERATORS].text = (const char *)c->texts.data + one->operators;
		keys[NODE_MODULE].text = (const char *)c->texts.data + one->module;
		TRY(acc_row(f, "graph_nodes", one->process, keys, &row, err));
		row[NODE_SEEN].u64++;
		keys[NODE_INDEX].u64++;
	}
	return ST_OK;
}

void captures_release(struct captures *c)
{
	for (size_t i = 0; i < REPLAYS; i++)
		free(c->replays[i].items);
	free(c->calls);
	free(c->open);
	free(c->sums);
	free(c->kinds);
	buf_release(&c->texts);
	map_release(&c->by_correlation);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the Chrome JSON that Kineto would have written, so that HTA and TensorBoard's plugin can
 * read it: name, cat and dur on every span, integers for pid and tid, finite numbers only,
 * microseconds since baseTimeNanoseconds, one call for each correlation id.
 */
#include "convert/output/output.h"
#include "convert/sink/chrome/internal.h"
#include "convert/sink/sink.h"
#include "schemas/model/call.h"
#include "schemas/base/json_text.h"
#include "schemas/base/plain.h"
#include "schemas/base/vec.h"
#include "schemas/model/records.h"

#include <stdlib.h>
#include <string.h>

enum {
	PATH_TEXT_MAX = 1 << 26,
	SYNC_TID = 1000000, /* added to the tid of waits, which overlap the stream's work */
	STEP_SHORTER_NS = 2,
};

struct chrome_track {
	uint64_t last_call; /* correlation of the track's last runtime call */
	bool is_ours;       /* the track belongs to the process that is written */
};
/* Members of JSON events that a source kept because they differ from what is written here. */
enum member { MEMBER_PHASE, MEMBER_CATEGORY, MEMBER_PID, MEMBER_TID, MEMBER_COUNT };

struct chrome {
	struct sink base; /* base.lines: an event that is written in full */
	struct out_cursor cursor;
	bool started;
	struct chrome_file file;
	struct chrome_args args;
	uint32_t members[MEMBER_COUNT]; /* names of their attributes; 0: no event has it */
	struct chrome_track *tracks;    /* by track */
	size_t track_count;
	struct chrome_notes notes;
	struct chrome_texts texts;       /* the fast path */
	struct collectives *collectives; /* NULL: no operators are written */
};

static enum status flush_lines(struct chrome *c, struct error *err)
{
	TRY(buf_status(&c->base.lines, err));
	TRY(out_cursor_put(&c->cursor, c->base.lines.data, c->base.lines.len, err));
	buf_clear(&c->base.lines);
	return ST_OK;
}

/* Category and letter of each kind.  A category that is NULL is not written. */
static const struct form {
	const char *cat, *ph;
} forms[KIND_END] = {
	[KIND_UNKNOWN] = { "unknown", "X" },
	[KIND_KERNEL] = { "kernel", "X" },
	[KIND_MEMCPY] = { "gpu_memcpy", "X" },
	[KIND_MEMSET] = { "gpu_memset", "X" },
	[KIND_GRAPH] = { "kernel", "X" },
	[KIND_SYNC] = { "cuda_sync", "X" },
	[KIND_API] = { "cuda_runtime", "X" },
	[KIND_RANGE] = { "cpu_op", "X" },
	[KIND_JIT] = { "overhead", "X" },
	[KIND_OVERHEAD] = { "overhead", "X" },
	[KIND_STEP] = { "user_annotation", "X" },
	[KIND_MARK] = { NULL, "i" },
	[KIND_ALLOC] = { "cpu_instant_event", "i" },
	[KIND_FREE] = { "cpu_instant_event", "i" },
	[KIND_COUNTER] = { NULL, "C" },
};

static const struct form *form_of(const struct event *e)
{
	return &forms[e->kind < KIND_END && forms[e->kind].ph ? e->kind : KIND_UNKNOWN];
}

/* Returns the category of an event, or NULL if none is written. */
static const char *cat_of(const struct chrome *c, const struct event *e)
{
	if (e->kind == KIND_API && e->subkind == API_DRIVER)
		return "cuda_driver";
	if (e->kind != KIND_RANGE)
		return form_of(e)->cat;
	switch (e->subkind) {
	case RANGE_PHASE:
	case RANGE_NVTX:
	case RANGE_GC:
		return "user_annotation"; /* Kineto's category of intervals that users name */
	case RANGE_OTHER:
		return c->file.is_native ? "user_annotation" : range_class_word(e->subkind);
	default:
		return range_class_word(e->subkind);
	}
}

/* ---- what differs from event to event ---- */

static void note(struct chrome *c, size_t begin, unsigned source)
{
	chrome_note(&c->notes, begin, (struct placeholder){ .source = (uint8_t)source });
}

/* Appends the correlation, or the number, which is in the same member of a union. */
static void put_correlation(struct chrome *c, const struct event *e)
{
	size_t begin = c->base.lines.len;

	buf_put_u64_text(&c->base.lines, e->correlation);
	note(c, begin, ARG_CORRELATION);
}

static void put_time(struct chrome *c, const struct event *e)
{
	size_t begin;

	buf_put_text(&c->base.lines, ", \"ts\": ");
	begin = c->base.lines.len;
	chrome_put_time(&c->base.lines, &c->file, e->begin_ns);
	note(c, begin, CHROME_TIME);
}

/*
 * Returns the duration to write.  Steps recorded by Tacho end where the next begins.  Readers add
 * ts and dur as doubles, which near 1e13 us have a resolution of only a nanosecond, and drop a
 * range that reaches into the next.  So those steps are shortened slightly.
 */
static uint64_t duration_of(const struct chrome *c, const struct event *e)
{
	uint64_t ns = e->end_ns - e->begin_ns;

	return e->kind == KIND_STEP && c->file.is_native && ns > STEP_SHORTER_NS
		       ? ns - STEP_SHORTER_NS
		       : ns;
}

/* ---- names ---- */

/* Returns the word for CUPTI's memory kind, which is in the schema. */
static const char *memory_word(const struct chrome *c, const struct event *e, const char *key)
{
	return memory_words((uint32_t)trace_attr_number(c->base.trace, e->schema, key))->kineto;
}

/* Appends a name for an event that was recorded without one. */
static void put_made_name(struct chrome *c, const struct event *e)
{
	const char *text = kind_word(e->kind), *copy = copy_kind_word(e->subkind);
	size_t len;

	switch (e->kind) {
	case KIND_MEMCPY:
		buf_putf(&c->base.lines, "\"Memcpy %s (%s -> %s)\"", copy[0] ? copy : "Unknown",
			 memory_word(c, e, "src_kind"), memory_word(c, e, "dst_kind"));
		return;
	case KIND_MEMSET:
		buf_putf(&c->base.lines, "\"Memset (%s)\"", memory_word(c, e, "memory_kind"));
		return;
	case KIND_STEP:
		buf_put_text(&c->base.lines, "\"ProfilerStep#");
		put_correlation(c, e);
		buf_put_byte(&c->base.lines, '"');
		return;
	case KIND_COUNTER:
		text = trace_text(c->base.trace, trace_get_track(c->base.trace, e->track)->name,
				  &len);
		json_put_text(&c->base.lines, text, len);
		return;
	case KIND_SYNC:
		if (sync_kind_word(e->subkind)[0])
			text = sync_kind_word(e->subkind);
		break;
	case KIND_GRAPH:
		text = "CUDA graph";
		break;
	case KIND_ALLOC:
	case KIND_FREE:
		text = "[memory]";
		break;
	}
	buf_putf(&c->base.lines, "\"%s\"", text[0] ? text : "unknown");
}

/* ---- members ---- */

/* Appends the member's value that the source kept.  Returns false if it kept none for this event.
 */
static bool put_kept(struct chrome *c, const struct event *e, enum member member)
{
	const struct arg_schema *s = trace_get_schema(c->base.trace, e->schema);
	uint32_t key = c->members[member], i = 0;

	while (key && i < s->const_count && s->consts[i].key != key)
		i++;
	if (!key || i == s->const_count)
		return false;
	json_put_value(&c->base.lines, c->base.trace, s->consts[i].type, s->consts[i].bits);
	return true;
}

/* Appends kept members that are not written elsewhere, such as `, "s": "g"`. */
static void put_other_members(struct chrome *c, const struct event *e)
{
	const struct arg_schema *s = trace_get_schema(c->base.trace, e->schema);
	struct buf *b = &c->base.lines;

	for (uint32_t i = 0; i < s->const_count; i++) {
		const struct attr *a = &s->consts[i];
		size_t len, n = 0;
		const char *key = trace_text(c->base.trace, a->key, &len);

		while (n < MEMBER_COUNT && a->key != c->members[n])
			n++;
		if (key[0] != '.' || n < MEMBER_COUNT)
			continue;
		buf_put_text(b, ", ");
		json_put_text(b, key + 1, len - 1);
		buf_put_text(b, ": ");
		json_put_value(b, c->base.trace, a->type, a->bits);
	}
}

static void put_where(struct chrome *c, const struct event *e)
{
	const struct track *k = trace_get_track(c->base.trace, e->track);
	struct buf *b = &c->base.lines;
	int64_t tid = (int64_t)k->id;

	if (c->file.is_native && e->kind == KIND_SYNC) {
		if (k->id == UINT32_MAX)
			tid = -1; /* a wait that is not on a single stream */
		else if (e->subkind == SYNC_STREAM)
			tid += SYNC_TID;
	}
	buf_put_text(b, ", \"pid\": ");
	if (!put_kept(c, e, MEMBER_PID))
		buf_put_i64_text(b, chrome_pid(c->base.trace, k));
	buf_put_text(b, ", \"tid\": ");
	if (!put_kept(c, e, MEMBER_TID))
		buf_put_i64_text(b, tid);
}

/* Appends an end of the arrow from a call to its work. */
static void put_arrow(struct chrome *c, const struct event *e)
{
	struct buf *b = &c->base.lines;
	bool begins = e->kind == KIND_API;
	size_t len;
	const char *name = trace_text(c->base.trace, e->name, &len);

	if (!e->correlation || (!begins && !event_is_gpu_work(e) && e->kind != KIND_SYNC) ||
	    (begins && !(call_class_traits(e->subkind, name, len) & CALL_BEGINS_ARROW)))
		return;
	buf_put_text(b, begins ? ",\n{\"ph\": \"s\", \"id\": " : ",\n{\"ph\": \"f\", \"id\": ");
	put_correlation(c, e);
	put_where(c, e);
	put_time(c, e);
	buf_put_text(b, ", \"cat\": \"ac2g\", \"name\": \"ac2g\"");
	buf_put_text(b, begins ? "}" : ", \"bp\": \"e\"}");
}

/* ---- events ---- */

/* Writes an event in full, and notes what the fast path needs to repeat it. */
static enum status put_plain(struct chrome *c, const struct event *e, struct error *err)
{
	const char *cat = cat_of(c, e), *ph = form_of(e)->ph;
	struct buf *b = &c->base.lines;
	size_t begin;
	size_t len;

	if (e->kind == KIND_MARK && e->subkind != MARK_INSTANT)
		ph = e->subkind == MARK_FLOW_BEGIN ? "s" : "f";
	chrome_notes_begin(&c->notes, b);
	buf_put_text(b, ",\n{\"ph\": "); /* the process's row comes before */
	if (!put_kept(c, e, MEMBER_PHASE))
		json_put_word(b, ph);
	begin = b->len;
	buf_put_text(b, ", \"cat\": ");
	if (!put_kept(c, e, MEMBER_CATEGORY)) {
		if (cat)
			json_put_word(b, cat);
		else
			b->len = begin;
	}
	buf_put_text(b, ", \"name\": ");
	const char *text = trace_text(c->base.trace, e->name, &len);

	if (c->file.is_native && e->kind == KIND_API)
		len = call_name_length(text, len);
	if (e->name && (e->kind != KIND_STEP || !c->file.is_native))
		json_put_text(&c->base.lines, text, len);
	else
		put_made_name(c, e);
	put_where(c, e);
	put_time(c, e);
	if (ph[0] == 'X') {
		buf_put_text(b, ", \"dur\": ");
		begin = b->len;
		chrome_put_us(b, duration_of(c, e));
		note(c, begin, CHROME_DURATION);
	} else if (e->kind == KIND_MARK && e->number) {
		buf_put_text(b, ", \"id\": ");
		put_correlation(c, e);
	}
	put_other_members(c, e);
	TRY(chrome_put_args(&c->args, b, e, &c->notes, err));
	buf_put_byte(b, '}');
	put_arrow(c, e);
	return ST_OK;
}

static enum status put_event(struct chrome *c, const struct event *e, struct error *err)
{
	bool is_plain = plain_ways || e->begin_ns < c->file.base_ns; /* a negative time */
	const struct chrome_text *text = NULL;
	uint8_t *at;

	c->base.written++;
	if (!is_plain)
		text = chrome_texts_find(&c->texts, chrome_key_of(e));
	if (!text) {
		TRY(put_plain(c, e, err));
		if (!is_plain)
			chrome_texts_note(&c->texts, chrome_key_of(e), &c->notes);
		return flush_lines(c, err);
	}
	at = out_cursor_reserve(&c->cursor, text->most);
	if (!at)
		return out_cursor_flush(&c->cursor, err);
	c->cursor.at = chrome_text_put(&c->texts, text, at, e, duration_of(c, e));
	return ST_OK;
}

static enum status start(struct chrome *c, uint64_t first_ns, struct error *err)
{
	c->file = chrome_file(c->base.trace, c->file.process, first_ns);
	c->texts.clock.base_ns = c->file.base_ns;
	c->started = true;
	chrome_put_head(&c->base.lines, &c->file);
	TRY(chrome_put_metas(&c->base.lines, &c->file, err));
	return flush_lines(c, err);
}

/* ---- the sink ---- */

static enum status chrome_open(struct sink *s, const struct sink_request *req, struct error *err)
{
	static const char *const members[] = { ".ph", ".cat", ".pid", ".tid" };
	struct chrome *c = (struct chrome *)s;

	c->cursor.out = req->out;
	c->file = chrome_file(req->trace, req->process, 0);
	c->track_count = (size_t)trace_count(req->trace, TRACE_TRACKS) + 1;
	TRY(vec_new(&c->tracks, c->track_count, err));
	for (uint32_t i = 0; i < c->track_count; i++)
		c->tracks[i].is_ours = trace_get_track(req->trace, i)->process == req->process;
	for (size_t i = 0; i < MEMBER_COUNT; i++)
		c->members[i] = trace_find_name(req->trace, members[i], strlen(members[i]));
	c->args = (struct chrome_args){ .trace = req->trace,
					.is_import = !c->file.is_native,
					.all_args = req->all_args,
					.has_operators = c->file.is_native && req->is_linked };
	buf_init(&c->args.path, PATH_TEXT_MAX);
	if (c->args.has_operators)
		TRY(collectives_new(&c->collectives, req->trace, err));
	return chrome_texts_init(&c->texts, err);
}

static enum status chrome_put(struct sink *s, const struct batch *batch, struct error *err)
{
	struct chrome *c = (struct chrome *)s;

	for (size_t i = 0; i < batch->count; i++) {
		const struct event *e = &batch->events[i];
		struct chrome_track *k = &c->tracks[e->track < c->track_count ? e->track : 0];
		struct event alone;

		if (!k->is_ours)
			continue;
		if (!c->started)
			TRY(start(c, e->begin_ns, err));
		/*
		 * CUPTI gives a runtime call and the driver call inside it the same correlation
		 * id.  Readers match work with calls by it and would count the work twice.  So only
		 * the outer call, which comes first, keeps it.
		 */
		if (e->kind != KIND_API || !c->file.is_native || !e->correlation) {
			TRY(put_event(c, e, err));
		} else if (e->subkind == API_DRIVER && k->last_call == e->correlation) {
			alone = *e;
			alone.correlation = 0;
			TRY(put_event(c, &alone, err));
		} else {
			if (e->subkind != API_DRIVER)
				k->last_call = e->correlation;
			TRY(put_event(c, e, err));
		}
		if (c->collectives && e->kind == KIND_RANGE)
			TRY(collectives_note(c->collectives, e, err));
		if (c->collectives && batch->launches && e->kind == KIND_KERNEL) {
			chrome_put_operator(&c->base.lines, &c->file, e, batch->launches[i],
					    c->collectives);
			TRY(flush_lines(c, err));
		}
	}
	return ST_OK;
}

static enum status chrome_close(struct sink *s, struct error *err)
{
	struct chrome *c = (struct chrome *)s;

	if (!c->started)
		TRY(start(c, 0, err));
	buf_put_text(&c->base.lines, "\n  ]\n}\n");
	TRY(flush_lines(c, err));
	return out_cursor_flush(&c->cursor, err);
}

static void chrome_release(struct sink *s)
{
	struct chrome *c = (struct chrome *)s;

	arg_list_release(&c->args.list);
	buf_release(&c->args.path);
	chrome_texts_release(&c->texts);
	collectives_free(c->collectives);
	free(c->tracks);
}

const struct sink_type sink_chrome = {
	.name = "chrome",
	.help = "Chrome JSON as Kineto writes it: HTA, TensorBoard's PyTorch plugin, Perfetto",
	.scope = SINK_PER_PROCESS,
	.draws_arrows = true,
	.file_name = "{host}_{pid}.{ns}.pt.trace.json.gz",
	.needs_for_args = NEED_STEP | NEED_LINK,
	.size = sizeof(struct chrome),
	.open = chrome_open,
	.put = chrome_put,
	.close = chrome_close,
	.release = chrome_release,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome JSON that Kineto would have written, so that HTA and TensorBoard's plugin read it:
 * name, cat and dur on every span, integers for pid and tid, finite numbers only, microseconds
 * since baseTimeNanoseconds, one call for each correlation id.
 */
#include "convert/chrome/args.h"
#include "convert/chrome/head.h"
#include "convert/out.h"
#include "convert/sink.h"
#include "schemas/call_name.h"
#include "schemas/json_text.h"
#include "schemas/records.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINES_CEILING = 256 << 20,
	SYNC_STREAM = 3,            /* CUPTI's number of "Stream Sync" */
	SYNC_TID = 1000000,         /* its row, off the stream's, because it overlaps the work */
	STEP_SHORTER_NS = 2,
};

struct chrome_row {
	uint64_t last_call; /* correlation of the track's last runtime call */
	bool is_ours;       /* of the process that is written */
};
struct chrome {
	struct sink base;
	struct trace *trace;
	struct out_pen pen;
	bool started;
	struct chrome_file file;
	struct chrome_args *args;
	struct chrome_row *rows; /* index: track */
	size_t row_count;
	struct buf lines;        /* of an event that is written the long way */
	struct chrome_holes holes;
	struct chrome_texts texts;
};

static enum status flush_lines(struct chrome *c, struct error *err)
{
	TRY(buf_status(&c->lines, err));
	TRY(out_pen_put(&c->pen, c->lines.data, c->lines.len, err));
	buf_clear(&c->lines);
	return ST_OK;
}

/* Category and letter of each kind; a NULL category: none is written. */
static const struct form {
	const char *cat, *ph;
} forms[KIND_END] = {
	[KIND_UNKNOWN] = {"unknown", "X"},
	[KIND_KERNEL] = {"kernel", "X"},
	[KIND_MEMCPY] = {"gpu_memcpy", "X"},
	[KIND_MEMSET] = {"gpu_memset", "X"},
	[KIND_GRAPH] = {"kernel", "X"},
	[KIND_SYNC] = {"cuda_sync", "X"},
	[KIND_API] = {"cuda_runtime", "X"},
	[KIND_RANGE] = {"cpu_op", "X"},
	[KIND_JIT] = {"overhead", "X"},
	[KIND_OVERHEAD] = {"overhead", "X"},
	[KIND_STEP] = {"user_annotation", "X"},
	[KIND_MARK] = {NULL, "i"},
	[KIND_ALLOC] = {"cpu_instant_event", "i"},
	[KIND_FREE] = {"cpu_instant_event", "i"},
	[KIND_COUNTER] = {NULL, "C"},
};

static const struct form *form_of(const struct event *e)
{
	return &forms[e->kind < KIND_END ? e->kind : KIND_UNKNOWN];
}

static const char *range_cat(const struct chrome *c, unsigned class)
{
	switch (class) {
	case RANGE_PHASE:
	case RANGE_NVTX:
	case RANGE_GC:
		return "user_annotation"; /* what Kineto has for an interval that a person named */
	case RANGE_OTHER:
		return c->file.is_native ? "user_annotation" : range_class_word(class);
	default:
		return range_class_word(class);
	}
}

static const char *cat_of(const struct chrome *c, const struct event *e)
{
	if (e->kind == KIND_RANGE)
		return range_cat(c, e->subkind);
	if (e->kind == KIND_API && e->subkind == API_DRIVER)
		return "cuda_driver";
	return form_of(e)->cat;
}

static const char *ph_of(const struct event *e)
{
	if (e->kind == KIND_MARK && e->subkind != MARK_INSTANT)
		return e->subkind == MARK_FLOW_BEGIN ? "s" : "f";
	return form_of(e)->ph;
}

/* ---- what differs from event to event ---- */

/* Correlation, address or number: one word. */
static void put_join(struct chrome *c, const struct event *e)
{
	size_t begin = c->lines.len;

	buf_put_u64_text(&c->lines, e->correlation);
	chrome_holes_add(&c->holes, begin, HOLE_JOIN, 0);
}

static void put_time(struct chrome *c, const struct event *e)
{
	size_t begin;

	buf_put_text(&c->lines, ", \"ts\": ");
	begin = c->lines.len;
	chrome_put_time(&c->lines, &c->file, e->begin_ns);
	chrome_holes_add(&c->holes, begin, HOLE_TIME, 0);
}

/*
 * Our steps end where the next begins.  Readers add ts and dur as doubles, which near 1e13 us are a
 * nanosecond coarse, and drop a range that reaches into the next: those steps are a bit shorter.
 */
static uint64_t duration_of(const struct chrome *c, const struct event *e)
{
	uint64_t ns = e->end_ns - e->begin_ns;

	return e->kind == KIND_STEP && c->file.is_native && ns > STEP_SHORTER_NS
		       ? ns - STEP_SHORTER_NS
		       : ns;
}

static void put_duration(struct chrome *c, const struct event *e)
{
	size_t begin;

	buf_put_text(&c->lines, ", \"dur\": ");
	begin = c->lines.len;
	chrome_put_us(&c->lines, duration_of(c, e));
	chrome_holes_add(&c->holes, begin, HOLE_DURATION, 0);
}

/* ---- names ---- */

/* By CUPTI's number of a kind of memory. */
static const char *memory_word(unsigned kind)
{
	static const char *const words[] = {"Unknown", "Pageable", "Pinned", "Device", "Array",
					    "Managed", "Device Static", "Managed Static"};

	return words[kind < sizeof(words) / sizeof(*words) ? kind : 0];
}

static unsigned shape_number(const struct chrome *c, const struct event *e, const char *key)
{
	const struct attr *a = trace_find_attr(c->trace, e->shape, key);

	return a && a->type <= ATTR_I64 ? (unsigned)a->bits : 0;
}

static void put_copy_name(struct chrome *c, const struct event *e)
{
	const char *word = copy_kind_word(e->subkind);

	buf_putf(&c->lines, "\"Memcpy %s (%s -> %s)\"", word[0] ? word : "Unknown",
		 memory_word(shape_number(c, e, "src_kind")),
		 memory_word(shape_number(c, e, "dst_kind")));
}

/* What was recorded without a name of its own. */
static void put_made_name(struct chrome *c, const struct event *e)
{
	const char *text = NULL;
	size_t len;

	switch (e->kind) {
	case KIND_MEMCPY:
		put_copy_name(c, e);
		return;
	case KIND_MEMSET:
		buf_putf(&c->lines, "\"Memset (%s)\"",
			 memory_word(shape_number(c, e, "memory_kind")));
		return;
	case KIND_STEP:
		buf_put_text(&c->lines, "\"ProfilerStep#");
		put_join(c, e);
		buf_put_byte(&c->lines, '"');
		return;
	case KIND_COUNTER:
		text = trace_text(c->trace, trace_get_track(c->trace, e->track)->name, &len);
		json_put_text(&c->lines, text, len);
		return;
	case KIND_SYNC:
		text = chrome_sync_name(e->subkind);
		break;
	case KIND_GRAPH:
		text = "CUDA graph";
		break;
	case KIND_ALLOC:
	case KIND_FREE:
		text = "[memory]";
		break;
	}
	if (!text)
		text = kind_word(e->kind);
	buf_putf(&c->lines, "\"%s\"", text[0] ? text : "unknown");
}

static void put_name(struct chrome *c, const struct event *e)
{
	size_t len;
	const char *text = trace_text(c->trace, e->name, &len);

	if (c->file.is_native && e->kind == KIND_API)
		len = call_name_length(text, len);
	if (e->name && (e->kind != KIND_STEP || !c->file.is_native))
		json_put_text(&c->lines, text, len);
	else
		put_made_name(c, e);
}

/* ---- where ---- */

static int64_t tid_of(const struct chrome *c, const struct event *e, const struct track *k)
{
	if (!c->file.is_native || e->kind != KIND_SYNC)
		return (int64_t)k->id;
	if (k->id == UINT32_MAX) /* a wait that is not on one stream */
		return -1;
	return (int64_t)k->id + (e->subkind == SYNC_STREAM ? SYNC_TID : 0);
}

static void put_where(struct chrome *c, const struct event *e, const struct chrome_members *m)
{
	const struct track *k = trace_get_track(c->trace, e->track);
	struct buf *b = &c->lines;

	buf_put_text(b, ", \"pid\": ");
	if (m->pid)
		buf_put_text(b, m->pid);
	else
		buf_put_i64_text(b, chrome_pid(c->trace, k));
	buf_put_text(b, ", \"tid\": ");
	if (m->tid)
		buf_put_text(b, m->tid);
	else
		buf_put_i64_text(b, tid_of(c, e, k));
}

/* ---- arrows from a call to its work ---- */

/* Calls from which Kineto begins an arrow; work on a GPU and waits for it end one. */
static bool begins_arrow(const char *name)
{
	static const char *const calls[] = {
		"cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaGraphLaunch",
		"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaStreamWaitEvent",
		"cudaMemcpy", "cudaMemset", "cuLaunchKernel", "hipLaunchKernel", "hipMemcpy",
		"hipMemset", "hipExtLaunch", "hipModuleLaunch", "hipExtModuleLaunch",
		"hipGraphLaunch",
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (strncmp(name, calls[i], strlen(calls[i])) == 0)
			return true;
	return false;
}

static void put_arrow(struct chrome *c, const struct event *e, const struct chrome_members *m)
{
	struct buf *b = &c->lines;
	bool begins = e->kind == KIND_API;

	if (!e->correlation || (!begins && !event_is_gpu_work(e) && e->kind != KIND_SYNC))
		return;
	if (begins && !begins_arrow(trace_text(c->trace, e->name, NULL)))
		return;
	buf_put_text(b, begins ? ",\n{\"ph\": \"s\", \"id\": " : ",\n{\"ph\": \"f\", \"id\": ");
	put_join(c, e);
	put_where(c, e, m);
	put_time(c, e);
	buf_put_text(b, ", \"cat\": \"ac2g\", \"name\": \"ac2g\"");
	buf_put_text(b, begins ? "}" : ", \"bp\": \"e\"}");
}

/* ---- events ---- */

static void put_quoted(struct buf *b, const char *word)
{
	buf_put_byte(b, '"');
	buf_put_text(b, word);
	buf_put_byte(b, '"');
}

/* `{"ph": "X", "cat": "kernel", "name": ` with the members that an import kept. */
static void begin_event(struct chrome *c, const struct event *e, const struct chrome_members *m)
{
	struct buf *b = &c->lines;
	const char *cat = cat_of(c, e);

	buf_put_text(b, ",\n{\"ph\": "); /* the row of the process stands before */
	if (m->ph)
		buf_put_text(b, m->ph);
	else
		put_quoted(b, ph_of(e));
	if (m->cat || cat)
		buf_put_text(b, ", \"cat\": ");
	if (m->cat)
		buf_put_text(b, m->cat);
	else if (cat)
		put_quoted(b, cat);
	buf_put_text(b, ", \"name\": ");
	put_name(c, e);
}

static enum status put_long(struct chrome *c, const struct event *e, struct error *err)
{
	struct buf *b = &c->lines;
	struct chrome_members m;
	const struct plan *plan = chrome_args_plan(c->args, e, &m);

	if (!plan)
		return fail(err, ST_CEILING, NOWHERE,
			    "the texts of one event's arguments need more memory than allowed");
	chrome_holes_begin(&c->holes, b);
	begin_event(c, e, &m);
	put_where(c, e, &m);
	put_time(c, e);
	if (ph_of(e)[0] == 'X') {
		put_duration(c, e);
	} else if (e->kind == KIND_MARK && e->number) {
		buf_put_text(b, ", \"id\": ");
		put_join(c, e);
	}
	buf_put_text(b, m.rest);
	chrome_args_put(c->args, plan, b, e, &c->holes);
	buf_put_byte(b, '}');
	put_arrow(c, e, &m);
	c->holes.is_odd |= e->begin_ns < c->file.base_ns; /* a time with a sign */
	chrome_texts_note(&c->texts, chrome_key_of(e), &c->holes);
	return flush_lines(c, err);
}

static enum status put_event(struct chrome *c, const struct event *e, struct error *err)
{
	const struct chrome_text *text = chrome_texts_find(&c->texts, chrome_key_of(e));
	uint8_t *room;

	c->base.written++;
	if (!text || e->begin_ns < c->file.base_ns)
		return put_long(c, e, err);
	room = out_pen_room(&c->pen, text->most);
	if (!room)
		return out_pen_flush(&c->pen, err);
	c->pen.at = chrome_text_put(&c->texts, text, room, e, duration_of(c, e));
	return ST_OK;
}

/*
 * CUPTI gives a runtime call and the driver call inside it one correlation id; readers join work
 * to calls by it and count twice.  The outer call, which comes first, keeps it.
 */
static enum status put_once_joined(struct chrome *c, const struct event *e, struct error *err)
{
	struct event alone;

	if (e->kind != KIND_API || !c->file.is_native || !e->correlation)
		return put_event(c, e, err);
	if (e->subkind != API_DRIVER)
		c->rows[e->track].last_call = e->correlation;
	else if (c->rows[e->track].last_call == e->correlation) {
		alone = *e;
		alone.correlation = 0;
		return put_event(c, &alone, err);
	}
	return put_event(c, e, err);
}

static enum status start(struct chrome *c, uint64_t first_ns, struct error *err)
{
	c->file = chrome_file(c->trace, c->file.process, first_ns);
	c->texts.clock.base_ns = c->file.base_ns;
	c->started = true;
	chrome_put_head(&c->lines, &c->file);
	TRY(chrome_put_metas(&c->lines, &c->file, err));
	return flush_lines(c, err);
}

/* ---- the sink ---- */

static void chrome_free(struct sink *s)
{
	struct chrome *c = (struct chrome *)s;

	if (!c)
		return;
	chrome_args_free(c->args);
	chrome_texts_release(&c->texts);
	free(c->rows);
	buf_release(&c->lines);
	free(c);
}

static enum status make_parts(struct chrome *c, const struct sink_request *req, struct error *err)
{
	c->row_count = (size_t)trace_count(req->trace, TRACE_TRACKS) + 1;
	c->rows = calloc(c->row_count, sizeof(*c->rows));
	if (!c->rows)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a list of tracks");
	for (uint32_t i = 0; i < c->row_count; i++)
		c->rows[i].is_ours = trace_get_track(req->trace, i)->process == req->process;
	TRY(chrome_texts_init(&c->texts, err));
	return chrome_args_new(&c->args, req->trace, c->file.is_native, req->all_args, err);
}

static enum status chrome_open(struct sink **out, const struct sink_request *req,
			       struct error *err)
{
	struct chrome *c = calloc(1, sizeof(*c));
	enum status st;

	*out = NULL;
	if (!c)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the writer of Chrome JSON");
	c->base.type = &sink_chrome;
	c->trace = req->trace;
	c->pen.out = req->out;
	c->file = chrome_file(req->trace, req->process, 0);
	buf_init(&c->lines, LINES_CEILING);
	st = make_parts(c, req, err);
	if (st != ST_OK) {
		chrome_free(&c->base);
		return st;
	}
	*out = &c->base;
	return ST_OK;
}

static enum status chrome_put(struct sink *s, const struct event *events, size_t count,
			      struct error *err)
{
	struct chrome *c = (struct chrome *)s;

	for (size_t i = 0; i < count; i++) {
		if (!c->rows[events[i].track < c->row_count ? events[i].track : 0].is_ours)
			continue;
		if (!c->started)
			TRY(start(c, events[i].begin_ns, err));
		TRY(put_once_joined(c, &events[i], err));
	}
	return ST_OK;
}

static enum status chrome_close(struct sink *s, struct error *err)
{
	struct chrome *c = (struct chrome *)s;

	if (!c->started)
		TRY(start(c, 0, err));
	buf_put_text(&c->lines, "\n  ]\n}\n");
	TRY(flush_lines(c, err));
	return out_pen_flush(&c->pen, err);
}

const struct sink_type sink_chrome = {
	.name = "chrome",
	.help = "Chrome JSON as Kineto writes it: HTA, TensorBoard's PyTorch plugin, Perfetto",
	.scope = SINK_PER_PROCESS,
	.file_name = "{host}_{pid}.{ns}.pt.trace.json.gz",
	.open = chrome_open,
	.put = chrome_put,
	.close = chrome_close,
	.free = chrome_free,
};

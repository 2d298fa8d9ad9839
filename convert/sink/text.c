/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line for each event, for people and for grep: time since the first event and duration, both
 * in ms to the nanosecond, kind, track, name, arguments.  Before them, behind '#', what the input
 * is: processes, devices, tracks, windows, losses; losses of the run itself follow at the end.
 * Columns are two or more blanks apart; control characters in names are escaped, so that a line is
 * an event.
 */
#include "convert/output/output.h"
#include "convert/sink/columns.h"
#include "convert/sink/sink.h"
#include "convert/sink/sink_list.h"
#include "schemas/base/json_text.h"
#include "schemas/model/records.h"
#include "schemas/base/quantity.h"
#include "schemas/base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
	LINES_CEILING = 64 << 20,
	LINES_BYTES = 32 * 1024,
	TIME_WIDTH = 16,
	DURATION_WIDTH = 14,
	KIND_WIDTH = 15,
	TRACK_WIDTH = 26,
};

struct text {
	struct sink base;
	struct trace *trace;
	struct out *out;
	struct column_args args;
	bool started, many; /* many: more than one process */
	uint64_t first_ns;
	uint64_t lost[LOSS_END]; /* as the header told */
	struct buf lines, words;
};

static enum status flush_lines(struct text *t, size_t over, struct error *err)
{
	TRY(buf_status(&t->words, err));
	TRY(buf_status(&t->lines, err));
	if (t->lines.len < over)
		return ST_OK;
	TRY(out_write(t->out, t->lines.data, t->lines.len, err));
	buf_clear(&t->lines);
	return ST_OK;
}

/* As it is, but for what would break the line or is no UTF-8. */
static void put_tame(struct buf *b, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t n = utf8_sequence(text + at, len - at);

		if (n == 0 || (uint8_t)text[at] < 0x20 || text[at] == 0x7F)
			buf_putf(b, "\\x%02x", (uint8_t)text[at]);
		else
			buf_put(b, text + at, n);
		at += n ? n : 1;
	}
}

static void put_name(struct buf *b, const struct trace *t, uint32_t name)
{
	size_t len;
	const char *text = trace_text(t, name, &len);

	put_tame(b, text, len);
}

/* Milliseconds to the nanosecond, right-aligned. */
static void put_ms(struct buf *b, uint64_t ns, int width)
{
	buf_putf(b, "%*llu.%06llu", width - 7, (unsigned long long)(ns / 1000000),
		 (unsigned long long)(ns % 1000000));
}

static void pad(struct buf *b, size_t from, size_t width)
{
	size_t len = b->len - from;

	buf_fill(b, ' ', len < width ? width - len + 2 : 2);
}

/* ---- tracks in words ---- */

static void put_process_word(struct text *t, struct buf *b, uint32_t process)
{
	const struct process *p = trace_get_process(t->trace, process);

	if (!t->many)
		return;
	if (p->rank != NO_RANK)
		buf_putf(b, "r%u ", p->rank);
	else
		buf_putf(b, "p%u ", p->pid);
}

static void put_device_word(struct buf *b, const struct track *k)
{
	if (k->device == NO_ID)
		buf_put_text(b, "host");
	else
		buf_putf(b, "GPU %u", k->device);
}

static void put_track(struct text *t, struct buf *b, const struct track *k)
{
	put_process_word(t, b, k->process);
	switch (k->type) {
	case TRACK_STREAM:
		put_device_word(b, k);
		buf_putf(b, " stream %lld", (long long)k->id);
		break;
	case TRACK_THREAD:
		buf_putf(b, "thread %lld", (long long)k->id);
		break;
	case TRACK_ALLOCATOR:
		put_device_word(b, k);
		buf_put_text(b, " memory");
		break;
	case TRACK_COUNTER:
		put_device_word(b, k);
		buf_put_text(b, " counter");
		break;
	}
}

/* ---- arguments ---- */

/* What came as JSON may have blanks that break the line. */
static void put_value(struct buf *b, const struct trace *t, uint8_t type, uint64_t bits)
{
	if (type == ATTR_JSON)
		put_name(b, t, (uint32_t)bits);
	else
		json_put_value(b, t, type, bits);
}

static void put_arg_key(struct buf *b, const char *key, size_t len)
{
	put_tame(b, key, len);
	buf_put_byte(b, '=');
}

static const struct arg_format text_args = { put_arg_key, put_value };

static void put_key(struct buf *b, const char *key, size_t len)
{
	if (b->len)
		buf_put_byte(b, ' ');
	put_arg_key(b, key, len);
}

static void put_number(struct text *t, const char *key, uint64_t number)
{
	if (!number)
		return;
	put_key(&t->words, key, strlen(key));
	buf_put_u64_text(&t->words, number);
}

/* Members of the event; what they are called differs by kind. */
static void put_members(struct text *t, const struct event *e)
{
	switch (e->kind) {
	case KIND_ALLOC:
	case KIND_FREE:
		put_key(&t->words, "bytes", 5);
		buf_put_u64_text(&t->words, e->bytes);
		put_key(&t->words, "address", 7);
		buf_putf(&t->words, "0x%llx", (unsigned long long)e->address);
		break;
	case KIND_COUNTER:
		put_key(&t->words, "value", 5);
		json_put_f64(&t->words, e->value);
		break;
	case KIND_STEP:
		put_key(&t->words, "number", 6); /* 0 is a step too */
		buf_put_u64_text(&t->words, e->number);
		break;
	case KIND_RANGE:
		put_number(t, "sequence", e->number);
		break;
	case KIND_MARK:
		put_number(t,
			   e->subkind == MARK_FLOW_BEGIN ? "flow_begin"
			   : e->subkind == MARK_FLOW_END ? "flow_end"
							 : "number",
			   e->number);
		break;
	default:
		put_number(t, "correlation", e->correlation);
	}
	if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET)
		put_number(t, "bytes", e->bytes);
	if (e->flags & EVENT_RESULT && e->result) {
		put_key(&t->words, "result", 6);
		buf_put_i64_text(&t->words, e->result);
	}
	if (e->flags & EVENT_BEGAN_EARLIER)
		put_number(t, "began_earlier", 1);
	if (e->flags & EVENT_NEVER_ENDED)
		put_number(t, "never_ended", 1);
}

/* ---- events ---- */

/* The word of a kind that only the writer of a log knew is in its shape. */
static void put_kind(struct text *t, struct buf *b, const struct event *e)
{
	const struct attr *own = trace_find_attr(t->trace, e->schema, ".kind");
	const char *word =
		e->kind == KIND_RANGE ? range_class_word(e->subkind) : kind_word(e->kind);

	if (e->kind == KIND_API && e->subkind == API_DRIVER)
		word = "driver";
	if (!word[0] && own && own->type == ATTR_TEXT)
		put_name(b, t->trace, (uint32_t)own->bits);
	else if (word[0])
		buf_put_text(b, word);
	else
		buf_putf(b, "kind_%u", e->kind);
}

static void put_event_name(struct text *t, const struct event *e)
{
	struct buf *b = &t->lines;
	const char *copy = e->kind == KIND_MEMCPY ? copy_kind_word(e->subkind) : "";

	if (e->name)
		put_name(b, t->trace, e->name);
	else if (e->kind == KIND_COUNTER)
		put_name(b, t->trace, trace_get_track(t->trace, e->track)->name);
	else if (copy[0])
		buf_put_text(b, copy);
	else
		buf_put_byte(b, '-');
}

static enum status put_event(struct text *t, const struct event *e, struct error *err)
{
	struct buf *b = &t->lines;
	size_t column;

	put_ms(b, e->begin_ns - t->first_ns, TIME_WIDTH);
	if (e->kind == KIND_MARK || e->kind == KIND_COUNTER || e->kind == KIND_ALLOC ||
	    e->kind == KIND_FREE)
		buf_putf(b, "%*s", DURATION_WIDTH, "-");
	else
		put_ms(b, e->end_ns - e->begin_ns, DURATION_WIDTH);
	buf_put_text(b, "  ");
	column = b->len;
	put_kind(t, b, e);
	pad(b, column, KIND_WIDTH);
	column = b->len;
	put_track(t, b, trace_get_track(t->trace, e->track));
	pad(b, column, TRACK_WIDTH);
	put_event_name(t, e);
	buf_clear(&t->words);
	put_members(t, e);
	TRY(column_args_put(&t->args, e, t->words.len ? " " : "", " ", &t->words, err));
	if (t->words.len) {
		buf_put_text(b, "  ");
		buf_put(b, t->words.data, t->words.len);
	}
	buf_put_byte(b, '\n');
	return flush_lines(t, LINES_BYTES, err);
}

/* ---- the header ---- */

static void put_processes(struct text *t)
{
	struct buf *b = &t->lines;

	for (uint32_t id = 1; id <= trace_count(t->trace, TRACE_PROCESSES); id++) {
		const struct process *p = trace_get_process(t->trace, id);

		buf_putf(b, "# process: pid %u", p->pid);
		if (p->rank != NO_RANK)
			buf_putf(b, ", rank %u of %u", p->rank, p->world_size);
		if (p->host) {
			buf_put_text(b, ", host ");
			put_name(b, t->trace, p->host);
		}
		if (p->command) {
			buf_put_text(b, ", command ");
			put_name(b, t->trace, p->command);
		}
		buf_put_byte(b, '\n');
	}
	for (uint32_t id = 1; id <= trace_count(t->trace, TRACE_DEVICES); id++) {
		const struct device *d = trace_get_device(t->trace, id);

		buf_put_text(b, "# device: ");
		put_process_word(t, b, d->process);
		buf_putf(b, "GPU %u ", d->id);
		put_name(b, t->trace, d->name);
		buf_put_byte(b, '\n');
	}
}

static void put_tracks(struct text *t)
{
	struct buf *b = &t->lines;

	for (uint32_t id = 1; id <= trace_count(t->trace, TRACE_TRACKS); id++) {
		const struct track *k = trace_get_track(t->trace, id);

		buf_put_text(b, "# track: ");
		put_track(t, b, k);
		if (k->context != NO_ID && k->type == TRACK_STREAM)
			buf_putf(b, ", context %u", k->context);
		if (k->name) {
			buf_put_text(b, ", ");
			put_name(b, t->trace, k->name);
		}
		if (k->type == TRACK_COUNTER && k->unit) {
			buf_put_text(b, " in ");
			buf_put_text(b, unit_name(k->unit));
		}
		buf_put_byte(b, '\n');
	}
}

static void put_windows(struct text *t)
{
	struct buf *b = &t->lines;
	char at[UNIT_TEXT];

	for (uint32_t id = 1; id <= trace_count(t->trace, TRACE_WINDOWS); id++) {
		const struct window *w = trace_get_window(t->trace, id);

		buf_put_text(b, "# window: ");
		put_process_word(t, b, w->process);
		buf_put_text(b, unit_format_instant(w->begin_ns, at));
		buf_put_text(b, " to ");
		buf_put_text(b, w->end_ns ? unit_format_instant(w->end_ns, at)
					  : "the end, never closed");
		buf_put_text(b, w->spec ? ", asked for " : "");
		put_name(b, t->trace, w->spec);
		buf_put_text(b, w->cut_short ? ", cut short\n" : "\n");
	}
}

/* What was lost since the last time. */
static void put_losses(struct text *t)
{
	for (unsigned why = 1; why < LOSS_END; why++) {
		uint64_t count = trace_lost(t->trace, 0, (enum loss)why);

		if (count > t->lost[why])
			buf_putf(&t->lines, "# note: %llu %s\n",
				 (unsigned long long)(count - t->lost[why]),
				 loss_text((enum loss)why));
		t->lost[why] = count;
	}
}

static void put_header(struct text *t, uint64_t first_ns)
{
	const struct provenance *p = trace_provenance(t->trace);
	char at[UNIT_TEXT];

	t->started = true;
	t->first_ns = first_ns;
	t->many = trace_count(t->trace, TRACE_PROCESSES) > 1;
	buf_put_text(&t->lines, "# input: ");
	put_name(&t->lines, t->trace, p->format);
	buf_put_text(&t->lines, p->is_whole ? "" : ", not closed properly");
	buf_put_text(&t->lines, p->is_synthetic ? ", synthetic\n" : "\n");
	put_processes(t);
	put_tracks(t);
	put_windows(t);
	put_losses(t);
	if (p->epoch_known && first_ns)
		buf_putf(&t->lines, "# times are ms since %s\n", unit_format_instant(first_ns, at));
	buf_putf(&t->lines, "#%*s%*s  %-*s  %-*s  name, arguments\n", TIME_WIDTH - 1, "time",
		 DURATION_WIDTH, "duration", KIND_WIDTH, "kind", TRACK_WIDTH, "track");
}

/* ---- the sink ---- */

static void text_free(struct sink *s)
{
	struct text *t = (struct text *)s;

	if (!t)
		return;
	column_args_release(&t->args);
	buf_release(&t->lines);
	buf_release(&t->words);
	free(t);
}

static enum status text_open(struct sink **out, const struct sink_request *req, struct error *err)
{
	struct text *t = calloc(1, sizeof(*t));
	enum status st;

	*out = NULL;
	if (!t)
		return fail_memory(err);
	t->base.type = &sink_text;
	t->trace = req->trace;
	t->out = req->out;
	buf_init(&t->lines, LINES_CEILING);
	buf_init(&t->words, LINES_CEILING);
	st = column_args_init(&t->args, req->trace, &text_args, req->all_args, err);
	if (st != ST_OK) {
		text_free(&t->base);
		return st;
	}
	*out = &t->base;
	return ST_OK;
}

static enum status text_put(struct sink *s, const struct batch *batch, struct error *err)
{
	struct text *t = (struct text *)s;

	if (batch->count && !t->started)
		put_header(t, batch->events[0].begin_ns);
	for (size_t i = 0; i < batch->count; i++) {
		TRY(put_event(t, &batch->events[i], err));
		t->base.written++;
	}
	return ST_OK;
}

static enum status text_close(struct sink *s, struct error *err)
{
	struct text *t = (struct text *)s;

	if (!t->started)
		put_header(t, 0);
	put_losses(t);
	return flush_lines(t, 0, err);
}

const struct sink_type sink_text = {
	.name = "text",
	.help = "one line for each event: time and duration in ms, kind, track, name, arguments",
	.scope = SINK_WHOLE,
	.open = text_open,
	.put = text_put,
	.close = text_close,
	.free = text_free,
};

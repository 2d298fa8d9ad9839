/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line per event, for people and grep: time since the first event and duration in ms, kind,
 * track, name, arguments.  Lines that begin with '#' describe the input before the events
 * (processes, devices, tracks, windows), and its losses also at the end.  Columns are at least two
 * blanks apart, and control characters in names are escaped.
 */
#include "convert/sink/columns.h"
#include "convert/sink/sink.h"
#include "schemas/base/quantity.h"
#include "schemas/base/utf8.h"
#include "schemas/model/records.h"

#include <string.h>

enum {
	WORDS_CEILING = 64 << 20,
	TIME_WIDTH = 16,
	DURATION_WIDTH = 14,
	KIND_WIDTH = 15,
	TRACK_WIDTH = 26,
};

struct text {
	struct sink base;
	struct column_args args;
	bool started, many; /* many: there is more than one process */
	uint64_t first_ns;
	uint64_t lost[LOSS_END]; /* number of losses already written */
	struct buf words;        /* scratch: members and arguments of an event */
};

/* Appends a text; control characters and bytes that are not UTF-8 are escaped. */
static void put_tame(struct buf *b, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t n = utf8_sequence(text + at, len - at);
		const char *next = text + at;

		if (n && text[at] && !utf8_is_control(utf8_next(&next))) {
			buf_put(b, text + at, n);
			at += n;
			continue;
		}
		for (size_t end = at + (n ? n : 1); at < end; at++)
			buf_putf(b, "\\x%02x", (uint8_t)text[at]);
	}
}

static void put_name(struct buf *b, const struct trace *t, uint32_t name)
{
	size_t len;
	const char *text = trace_text(t, name, &len);

	put_tame(b, text, len);
}

/* Appends a time in milliseconds with six decimals, right-aligned. */
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

static void put_process_word(struct text *t, uint32_t process)
{
	const struct process *p = trace_get_process(t->base.trace, process);
	bool has_rank = p->rank != NO_RANK;

	if (t->many)
		buf_putf(&t->base.lines, has_rank ? "r%u " : "p%u ", has_rank ? p->rank : p->pid);
}

static void put_track(struct text *t, const struct track *k)
{
	struct buf *b = &t->base.lines;

	put_process_word(t, k->process);
	if (k->type == TRACK_THREAD) {
		buf_putf(b, "thread %lld", (long long)k->id);
		return;
	}
	if (k->device == NO_ID)
		buf_put_text(b, "host");
	else
		buf_putf(b, "GPU %u", k->device);
	if (k->type == TRACK_STREAM)
		buf_putf(b, " stream %lld", (long long)k->id);
	else
		buf_put_text(b, k->type == TRACK_COUNTER ? " counter" : " memory");
}

/* ---- arguments ---- */

/* Appends a value as JSON.  JSON escapes only some of the control characters that a terminal obeys,
 * so texts are cleaned again. */
static void put_json(struct buf *b, const struct trace *t, uint8_t type, uint64_t bits)
{
	size_t from = b->len;

	json_put_value(b, t, type, bits);
	if (type != ATTR_TEXT || b->len == from)
		return;
	buf_text(b); /* appends the NUL */
	utf8_tame((char *)b->data + from);
	b->len = from + strlen((char *)b->data + from);
}

static void put_value(struct buf *b, const struct trace *t, uint8_t type, uint64_t bits)
{
	if (type == ATTR_JSON)
		put_name(b, t, (uint32_t)bits);
	else
		put_json(b, t, type, bits);
}

static void put_key(struct buf *b, const char *key, size_t len)
{
	put_tame(b, key, len);
	buf_put_byte(b, '=');
}

static const struct arg_format text_args = { put_key, put_value };

/* Members of an event by its kind.  A value that the event does not have is not written. */
#define K(kind)     (1u << KIND_##kind)
#define MEMORY      (K(ALLOC) | K(FREE))
#define IS_NUMBERED (MEMORY | K(COUNTER) | K(STEP) | K(RANGE) | K(MARK))
#define ANY_KIND    0xffffffffu
static const struct member {
	unsigned kinds;
	uint8_t source, type;
	const char *key;
} members[] = {
	{ MEMORY, ARG_BYTES, ATTR_U64, "bytes" },
	{ MEMORY, ARG_ADDRESS, ATTR_JSON, "address" }, /* in hexadecimal */
	{ K(COUNTER), ARG_VALUE, ATTR_F64, "value" },
	{ K(STEP), ARG_CORRELATION, ATTR_U64, "number" },
	{ K(RANGE), ARG_CORRELATION, ATTR_U64, "sequence" },
	{ K(MARK), ARG_CORRELATION, ATTR_U64, NULL }, /* the key depends on the class */
	{ ~IS_NUMBERED, ARG_CORRELATION, ATTR_U64, "correlation" },
	{ K(MEMCPY) | K(MEMSET), ARG_BYTES, ATTR_U64, "bytes" },
	{ ANY_KIND, ARG_RESULT, ATTR_I64, "result" },
	{ ANY_KIND, ARG_BEGAN_EARLIER, ATTR_U64, "began_earlier" },
	{ ANY_KIND, ARG_NEVER_ENDED, ATTR_U64, "never_ended" },
};

static void put_members(struct text *t, const struct event *e)
{
	static const char *const marks[] = { "number", "flow_begin", "flow_end" };
	unsigned kind = e->kind < KIND_END ? e->kind : KIND_UNKNOWN;
	struct buf *b = &t->words;

	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		const struct member *m = &members[i];
		const char *key =
			m->key ? m->key : marks[e->subkind <= MARK_FLOW_END ? e->subkind : 0];
		uint64_t bits;

		if (!(m->kinds >> kind & 1) ||
		    !arg_bits((struct placeholder){ .source = m->source }, e, NULL, &bits) ||
		    (!bits && m->source == ARG_BYTES && !(MEMORY >> kind & 1)))
			continue;
		buf_put_text(b, b->len ? " " : "");
		put_key(b, key, strlen(key));
		if (m->type == ATTR_JSON)
			buf_putf(b, "0x%llx", (unsigned long long)bits);
		else
			put_json(b, t->base.trace, m->type, bits);
	}
}

/* ---- the header ---- */

static void put_processes(struct text *t)
{
	struct buf *b = &t->base.lines;

	for (uint32_t id = 1; id <= trace_count(t->base.trace, TRACE_PROCESSES); id++) {
		const struct process *p = trace_get_process(t->base.trace, id);

		buf_putf(b, "# process: pid %u", p->pid);
		if (p->rank != NO_RANK)
			buf_putf(b, ", rank %u of %u", p->rank, p->world_size);
		if (p->host) {
			buf_put_text(b, ", host ");
			put_name(b, t->base.trace, p->host);
		}
		if (p->command) {
			buf_put_text(b, ", command ");
			put_name(b, t->base.trace, p->command);
		}
		buf_put_byte(b, '\n');
	}
	for (uint32_t id = 1; id <= trace_count(t->base.trace, TRACE_DEVICES); id++) {
		const struct device *d = trace_get_device(t->base.trace, id);

		buf_put_text(b, "# device: ");
		put_process_word(t, d->process);
		buf_putf(b, "GPU %u ", d->id);
		put_name(b, t->base.trace, d->name);
		buf_put_byte(b, '\n');
	}
}

static void put_windows(struct text *t)
{
	struct buf *b = &t->base.lines;
	char at[UNIT_TEXT];

	for (uint32_t id = 1; id <= trace_count(t->base.trace, TRACE_WINDOWS); id++) {
		const struct window *w = trace_get_window(t->base.trace, id);

		buf_put_text(b, "# window: ");
		put_process_word(t, w->process);
		buf_put_text(b, unit_format_instant(w->begin_ns, at));
		buf_put_text(b, " to ");
		buf_put_text(b, w->end_ns ? unit_format_instant(w->end_ns, at)
					  : "the end, never closed");
		buf_put_text(b, w->spec ? ", asked for " : "");
		put_name(b, t->base.trace, w->spec);
		buf_put_text(b, w->cut_short ? ", cut short\n" : "\n");
	}
}

/* Writes the losses since the last call. */
static void put_losses(struct text *t)
{
	for (unsigned why = 1; why < LOSS_END; why++) {
		uint64_t count = trace_lost(t->base.trace, 0, (enum loss)why);

		if (count > t->lost[why])
			buf_putf(&t->base.lines, "# note: %llu %s\n",
				 (unsigned long long)(count - t->lost[why]),
				 loss_text((enum loss)why));
		t->lost[why] = count;
	}
}

static void put_header(struct text *t, uint64_t first_ns)
{
	const struct provenance *p = trace_provenance(t->base.trace);
	char at[UNIT_TEXT];

	t->started = true;
	t->first_ns = first_ns;
	t->many = trace_count(t->base.trace, TRACE_PROCESSES) > 1;
	buf_put_text(&t->base.lines, "# input: ");
	put_name(&t->base.lines, t->base.trace, p->format);
	buf_put_text(&t->base.lines, p->is_whole ? "" : ", not closed properly");
	buf_put_text(&t->base.lines, p->is_synthetic ? ", synthetic\n" : "\n");
	put_processes(t);
	struct buf *b = &t->base.lines;

	for (uint32_t id = 1; id <= trace_count(t->base.trace, TRACE_TRACKS); id++) {
		const struct track *k = trace_get_track(t->base.trace, id);

		buf_put_text(b, "# track: ");
		put_track(t, k);
		if (k->context != NO_ID && k->type == TRACK_STREAM)
			buf_putf(b, ", context %u", k->context);
		if (k->name) {
			buf_put_text(b, ", ");
			put_name(b, t->base.trace, k->name);
		}
		if (k->type == TRACK_COUNTER && k->unit) {
			buf_put_text(b, " in ");
			buf_put_text(b, unit_name(k->unit));
		}
		buf_put_byte(b, '\n');
	}
	put_windows(t);
	put_losses(t);
	if (p->epoch_known && first_ns)
		buf_putf(&t->base.lines, "# times are ms since %s\n",
			 unit_format_instant(first_ns, at));
	buf_putf(&t->base.lines, "#%*s%*s  %-*s  %-*s  name, arguments\n", TIME_WIDTH - 1, "time",
		 DURATION_WIDTH, "duration", KIND_WIDTH, "kind", TRACK_WIDTH, "track");
}

/* ---- events ---- */

static enum status put_event(struct sink *s, const struct event *e, struct error *err)
{
	struct text *t = (struct text *)s;
	struct buf *b = &s->lines;
	const struct track *k = trace_get_track(s->trace, e->track);
	const char *kind = sink_kind_word(e);
	const char *copy = e->kind == KIND_MEMCPY ? copy_kind_word(e->subkind) : "";
	/* The word of an unknown kind, which only the log's writer knew, is in its schema. */
	const struct attr *own = kind[0] ? NULL : trace_find_attr(s->trace, e->schema, ".kind");
	size_t column;

	if (!t->started)
		put_header(t, e->begin_ns);
	put_ms(b, e->begin_ns - t->first_ns, TIME_WIDTH);
	if (e->kind == KIND_MARK || e->kind == KIND_COUNTER || e->kind == KIND_ALLOC ||
	    e->kind == KIND_FREE)
		buf_putf(b, "%*s", DURATION_WIDTH, "-");
	else
		put_ms(b, e->end_ns - e->begin_ns, DURATION_WIDTH);
	buf_put_text(b, "  ");
	column = b->len;
	if (own && own->type == ATTR_TEXT)
		put_name(b, s->trace, (uint32_t)own->bits);
	else if (kind[0])
		buf_put_text(b, kind);
	else
		buf_putf(b, "kind_%u", e->kind);
	pad(b, column, KIND_WIDTH);
	column = b->len;
	put_track(t, k);
	pad(b, column, TRACK_WIDTH);
	if (e->name || e->kind == KIND_COUNTER)
		put_name(b, s->trace, e->name ? e->name : k->name);
	else
		buf_put_text(b, copy[0] ? copy : "-");
	buf_clear(&t->words);
	put_members(t, e);
	TRY(column_args_put(&t->args, e, t->words.len ? " " : "", " ", &t->words, err));
	TRY(buf_status(&t->words, err));
	if (t->words.len) {
		buf_put_text(b, "  ");
		buf_put(b, t->words.data, t->words.len);
	}
	buf_put_byte(b, '\n');
	s->written++;
	return sink_flush(s, SINK_LINES_BYTES, err);
}

/* ---- the sink ---- */

static enum status text_open(struct sink *s, const struct sink_request *req, struct error *err)
{
	struct text *t = (struct text *)s;

	buf_init(&t->words, WORDS_CEILING);
	return column_args_init(&t->args, req->trace, &text_args, req->all_args, err);
}

static enum status text_close(struct sink *s, struct error *err)
{
	struct text *t = (struct text *)s;

	if (!t->started)
		put_header(t, 0);
	put_losses(t);
	return sink_flush(s, 0, err);
}

static void text_release(struct sink *s)
{
	struct text *t = (struct text *)s;

	templates_release(&t->args.templates);
	buf_release(&t->words);
}

const struct sink_type sink_text = {
	.name = "text",
	.help = "one line for each event: time and duration in ms, kind, track, name, arguments",
	.scope = SINK_WHOLE,
	.size = sizeof(struct text),
	.open = text_open,
	.put_event = put_event,
	.close = text_close,
	.release = text_release,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of the events, one row each, RFC 4180 with a header and lines that end in LF:
 *
 *	time_ns     begin, ns since the Unix epoch (or since what the input counts from)
 *	dur_ns      duration; 0 of an instant
 *	kind        kernel, memcpy, api ... (schemas/event.h)
 *	class       within the kind: runtime, driver; HtoD; nvtx, cpu_op; flow_begin
 *	name
 *	host, rank, pid             of the process; rank empty where it is unknown
 *	thread, device, context, stream   of the track, each empty where it has none
 *	correlation  joins GPU work and the call that launched it, within a process; empty: none
 *	bytes        of copies, fills and memory
 *	address      of memory
 *	value        of a counter
 *	result       of a call, where it was recorded
 *	number       of a step; sequence number of a range; id of a flow
 *	state        began_earlier, never_ended, or empty
 *	args         a JSON object of what else is known: --args lean or full
 *
 * A cell is quoted where it holds a quote, a comma or a control character.  Texts are UTF-8; what
 * was not is U+FFFD.
 */
#include "convert/out.h"
#include "convert/sink.h"
#include "convert/sink_words.h"
#include "schemas/json_text.h"

#include <stdlib.h>
#include <string.h>

enum { LINES_BYTES = 32 * 1024, LINES_CEILING = 256 << 20 };

static const char header[] = "time_ns,dur_ns,kind,class,name,host,rank,pid,thread,device,context,"
			     "stream,correlation,bytes,address,value,result,number,state,args\n";

struct csv {
	struct sink base;
	struct trace *trace;
	struct out *out;
	bool all_args;
	struct buf lines, cell;
};

static enum status flush_lines(struct csv *c, size_t over, struct error *err)
{
	TRY(buf_status(&c->lines, err));
	TRY(buf_status(&c->cell, err));
	if (c->lines.len < over)
		return ST_OK;
	TRY(out_write(c->out, c->lines.data, c->lines.len, err));
	buf_clear(&c->lines);
	return ST_OK;
}

static bool needs_quotes(const uint8_t *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] == '"' || text[i] == ',')
			return true;
	return len && (text[0] == ' ' || text[len - 1] == ' ');
}

/* What stands in c->cell, as a cell. */
static void put_cell(struct csv *c)
{
	const uint8_t *text = c->cell.data;
	size_t len = c->cell.len;

	if (!needs_quotes(text, len)) {
		buf_put(&c->lines, text, len);
	} else {
		buf_put_byte(&c->lines, '"');
		for (size_t i = 0; i < len; i++) {
			if (text[i] == '"')
				buf_put_byte(&c->lines, '"');
			buf_put_byte(&c->lines, text[i]);
		}
		buf_put_byte(&c->lines, '"');
	}
	buf_clear(&c->cell);
}

static void put_text(struct csv *c, const char *text, size_t len)
{
	buf_put_byte(&c->lines, ',');
	words_put(&c->cell, text, len);
	put_cell(c);
}

static void put_word(struct csv *c, const char *word)
{
	buf_put_byte(&c->lines, ',');
	buf_put_text(&c->lines, word);
}

static void put_number(struct csv *c, bool is_there, uint64_t number)
{
	buf_put_byte(&c->lines, ',');
	if (is_there)
		buf_put_u64_text(&c->lines, number);
}

/* Ids of threads and streams: some writers have -1. */
static void put_id(struct csv *c, bool is_there, uint64_t id)
{
	buf_put_byte(&c->lines, ',');
	if (is_there)
		buf_put_i64_text(&c->lines, (int64_t)id);
}

static void put_where(struct csv *c, const struct track *k)
{
	const struct process *p = trace_get_process(c->trace, k->process);
	size_t len;
	const char *host = trace_text(c->trace, p->host, &len);

	put_text(c, host, len);
	put_number(c, p->rank != NO_RANK, p->rank);
	put_number(c, true, p->pid);
	put_id(c, k->home == HOME_THREAD || k->home == HOME_POOL, k->id);
	put_number(c, k->device != NO_ID, k->device);
	put_number(c, k->context != NO_ID && k->home != HOME_THREAD, k->context);
	put_id(c, k->home == HOME_STREAM, k->id);
}

static bool is_pool(const struct event *e)
{
	return e->kind == KIND_ALLOC || e->kind == KIND_FREE;
}

static bool has_bytes(const struct event *e)
{
	return e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET || is_pool(e);
}

static bool has_number(const struct event *e)
{
	return e->kind == KIND_STEP || ((e->kind == KIND_RANGE || e->kind == KIND_MARK) &&
					e->number);
}

static bool has_correlation(const struct event *e)
{
	return e->correlation && (event_is_gpu_work(e) || e->kind == KIND_SYNC ||
				  e->kind == KIND_API || e->kind == KIND_OVERHEAD ||
				  e->kind == KIND_JIT || e->kind == KIND_UNKNOWN);
}

static void put_members(struct csv *c, const struct event *e)
{
	put_number(c, has_correlation(e), e->correlation);
	put_number(c, has_bytes(e), e->bytes);
	put_number(c, is_pool(e), e->address);
	buf_put_byte(&c->lines, ',');
	if (e->kind == KIND_COUNTER)
		json_put_f64(&c->lines, e->value);
	buf_put_byte(&c->lines, ',');
	if (e->kind == KIND_API && e->flags & EVENT_RESULT)
		buf_put_i64_text(&c->lines, e->result);
	put_number(c, has_number(e), e->number);
	put_word(c, e->flags & EVENT_BEGAN_EARLIER ? "began_earlier"
		    : e->flags & EVENT_NEVER_ENDED ? "never_ended"
						   : "");
}

static void put_event(struct csv *c, const struct event *e)
{
	struct words_text kind = words_kind(c->trace, e), name = words_name(c->trace, e);

	buf_put_u64_text(&c->lines, e->begin_ns);
	put_number(c, true, e->end_ns - e->begin_ns);
	if (kind.len) {
		put_text(c, kind.text, kind.len);
	} else {
		put_word(c, "kind_");
		buf_put_u64_text(&c->lines, e->kind);
	}
	put_word(c, words_class(e));
	put_text(c, name.text, name.len);
	put_where(c, trace_get_track(c->trace, e->track));
	put_members(c, e);
	buf_put_byte(&c->lines, ',');
	words_put_args(&c->cell, c->trace, e, c->all_args);
	put_cell(c);
	buf_put_byte(&c->lines, '\n');
}

static void csv_free(struct sink *s)
{
	struct csv *c = (struct csv *)s;

	if (!c)
		return;
	buf_release(&c->lines);
	buf_release(&c->cell);
	free(c);
}

static enum status csv_open(struct sink **out, const struct sink_request *req, struct error *err)
{
	struct csv *c = calloc(1, sizeof(*c));

	*out = NULL;
	if (!c)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the writer of CSV");
	c->base.type = &sink_csv;
	c->trace = req->trace;
	c->out = req->out;
	c->all_args = req->all_args;
	buf_init(&c->lines, LINES_CEILING);
	buf_init(&c->cell, LINES_CEILING);
	buf_put_text(&c->lines, header);
	*out = &c->base;
	return ST_OK;
}

static enum status csv_put(struct sink *s, const struct event *events, size_t count,
			   struct error *err)
{
	struct csv *c = (struct csv *)s;

	for (size_t i = 0; i < count; i++) {
		put_event(c, &events[i]);
		TRY(flush_lines(c, LINES_BYTES, err));
		c->base.written++;
	}
	return ST_OK;
}

static enum status csv_close(struct sink *s, struct error *err)
{
	return flush_lines((struct csv *)s, 0, err);
}

const struct sink_type sink_csv = {
	.name = "csv",
	.help = "one row for each event: times in ns, kind, name, process, track, args as JSON",
	.scope = SINK_WHOLE,
	.open = csv_open,
	.put = csv_put,
	.close = csv_close,
	.free = csv_free,
};

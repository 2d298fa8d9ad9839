/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/data_tables.h"

#include "schemas/base/vec.h"

#include <stdlib.h>

enum { ATTRS_CEILING = 256 << 20, PROGRAM_LEAST = 4096 };

struct data_process {
	struct phase_interval open; /* adjacent intervals are one row */
	uint64_t first_ns, last_ns; /* first begin and last end of events; last_ns 0: none yet */
};

const struct data_table data_tables[TABLE_COUNT] = {
	[TABLE_META] = { "meta",
			 "what is true of the whole",
			 { { "key", TABLE_TEXT, NULL, "",
			     "tool, input, whole (1: the input was closed properly), synthetic, "
			     "epoch_known (1: times count from the Unix epoch)" },
			   { "value", TABLE_ANY, NULL, "", "the key's value" } } },
	[TABLE_NAMES] = { "names",
			  "every text that events and tracks point to",
			  { { "id", TABLE_KEY, NULL, "", "the name's number" },
			    { "text", TABLE_TEXT, NULL, "",
			      "UTF-8; bytes that are none are U+FFFD" } } },
	[TABLE_PROCESSES] = { "processes",
			      "the processes that were recorded",
			      { { "id", TABLE_KEY, NULL, "", "the process's number in this trace" },
				{ "host", TABLE_TEXT, NULL, "", "its node" },
				{ "pid", TABLE_INTEGER, NULL, "", "the system's number of it" },
				{ "rank", TABLE_INTEGER, NULL, "", "in the job; NULL: unknown" },
				{ "world_size", TABLE_INTEGER, NULL, "",
				  "ranks of the job; NULL: unknown" },
				{ "command", TABLE_TEXT, NULL, "", "its command line or name" },
				{ "attrs", TABLE_TEXT, NULL, "", "JSON: what else is known" } } },
	[TABLE_DEVICES] = { "devices",
			    "GPUs as a process sees them",
			    { { "id", TABLE_KEY, NULL, "", "the row's number" },
			      { "process", TABLE_INTEGER, "processes", "", "who uses it" },
			      { "ordinal", TABLE_INTEGER, NULL, "",
				"CUDA's number of the GPU in that process" },
			      { "name", TABLE_TEXT, NULL, "", "model" },
			      { "attrs", TABLE_TEXT, NULL, "", "JSON: memory, SMs and so on" } } },
	[TABLE_TRACKS] = { "tracks",
			   "threads, streams, allocators and counters, which events are of",
			   { { "id", TABLE_KEY, NULL, "", "the track's number" },
			     { "process", TABLE_INTEGER, "processes", "", "whose it is" },
			     { "home", TABLE_TEXT, NULL, "", "stream, thread, pool or counter" },
			     { "name", TABLE_INTEGER, "names", "", "of a thread, a counter" },
			     { "device", TABLE_INTEGER, NULL, "", "ordinal of the GPU" },
			     { "context", TABLE_INTEGER, NULL, "", "CUDA's context" },
			     { "number", TABLE_INTEGER, NULL, "",
			       "id of the stream or thread" } } },
	[TABLE_SCHEMAS] = { "shapes",
			    "arguments that many events share",
			    { { "id", TABLE_KEY, NULL, "", "the row's number" },
			      { "args", TABLE_TEXT, NULL, "", "one JSON object" } } },
	[TABLE_WINDOWS] = { "windows",
			    "the spans of time that were recorded; none: all of the input",
			    { { "process", TABLE_INTEGER, "processes", "", "of which" },
			      { "asked", TABLE_TEXT, NULL, "", "what was asked for" },
			      { "begin_ns", TABLE_INTEGER, NULL, "ns", "its begin" },
			      { "end_ns", TABLE_INTEGER, NULL, "ns", "its end; NULL: unknown" },
			      { "own_ns", TABLE_INTEGER, NULL, "ns",
				"time that the recorder took in it" },
			      { "cut_short", TABLE_INTEGER, NULL, "",
				"1: it ended before what was asked for" } } },
	[TABLE_DESCRIPTION] = { "description",
				"what the tables, columns and views of this file are",
				{ { "table_name", TABLE_TEXT, NULL, "", "of the table or view" },
				  { "column_name", TABLE_TEXT, NULL, "",
				    "of the column; NULL: the row is of the table as a whole" },
				  { "unit", TABLE_TEXT, NULL, "", "of the column's values" },
				  { "refers_to", TABLE_TEXT, NULL, "",
				    "the table whose id the column holds" },
				  { "meaning", TABLE_TEXT, NULL, "", "in words" } } },
	[TABLE_EVENTS] = { "events",
			   "everything that was recorded, in order of time",
			   { { "id", TABLE_KEY, NULL, "", "the event's number" },
			     { "begin_ns", TABLE_INTEGER, NULL, "ns",
			       "since the Unix epoch, or what the input counts from" },
			     { "dur_ns", TABLE_INTEGER, NULL, "ns", "how long it took" },
			     { "kind", TABLE_TEXT, NULL, "",
			       "kernel, memcpy, memset, graph, sync, api, range, step, mark, "
			       "alloc, free, counter and so on" },
			     { "class", TABLE_TEXT, NULL, "",
			       "within the kind: runtime, driver; HtoD; cpu_op, nvtx" },
			     { "name", TABLE_INTEGER, "names", "", "its name" },
			     { "track", TABLE_INTEGER, "tracks", "", "where it happened" },
			     { "correlation", TABLE_INTEGER, NULL, "",
			       "joins work on a GPU to its call, within a process" },
			     { "bytes", TABLE_INTEGER, NULL, "bytes",
			       "of copies, fills and memory" },
			     { "address", TABLE_INTEGER, NULL, "", "of memory" },
			     { "value", TABLE_REAL, NULL, "", "of a counter" },
			     { "result", TABLE_INTEGER, NULL, "", "of a call; NULL: not recorded" },
			     { "number", TABLE_INTEGER, NULL, "",
			       "of a step; sequence number of a range; id of a flow" },
			     { "state", TABLE_TEXT, NULL, "", "began_earlier, never_ended" },
			     { "shape", TABLE_INTEGER, "shapes", "", "arguments it shares" },
			     { "args", TABLE_TEXT, NULL, "",
			       "JSON of this event alone, beside those of its shape" } } },
	[TABLE_STEPS] = { "steps",
			  "the marks of steps on their thread, by name or record",
			  { { "process", TABLE_INTEGER, "processes", "", "of which" },
			    { "number", TABLE_INTEGER, NULL, "", "of the step; may come again" },
			    { "begin_ns", TABLE_INTEGER, NULL, "ns", "begin of the mark" },
			    { "dur_ns", TABLE_INTEGER, NULL, "ns", "how long the mark is" } } },
	[TABLE_PHASES] = { "phases",
			   "what the step thread was at; time in no phase has no row",
			   { { "process", TABLE_INTEGER, "processes", "", "of which" },
			     { "step", TABLE_INTEGER, NULL, "", "its number; NULL: outside" },
			     { "phase", TABLE_TEXT, NULL, "", "data, forward, backward ..." },
			     { "begin_ns", TABLE_INTEGER, NULL, "ns", "its begin" },
			     { "dur_ns", TABLE_INTEGER, NULL, "ns", "how long it took" } } },
	[TABLE_LOSSES] = { "losses",
			   "what is missing, and why",
			   { { "process", TABLE_INTEGER, "processes", "",
			       "NULL: of the input as a whole" },
			     { "reason", TABLE_TEXT, NULL, "", "why" },
			     { "count", TABLE_INTEGER, NULL, "", "how many events" } } },
};

const struct data_view data_views[] = {
	{ "timeline", "events with names, tracks, processes and shared arguments in words",
	  "SELECT e.id, e.begin_ns, e.dur_ns, e.kind, e.class,"
	  " coalesce(n.text, tn.text, '') AS name, p.host, p.rank, p.pid, k.home, k.device,"
	  " k.context, CASE WHEN k.home = 'stream' THEN k.number END AS stream,"
	  " CASE WHEN k.home = 'thread' THEN k.number END AS thread, e.correlation, e.bytes,"
	  " e.address, e.value, e.result, e.number, e.state, e.args, s.args AS shape_args"
	  " FROM events e LEFT JOIN names n ON n.id = e.name LEFT JOIN tracks k ON k.id = e.track"
	  " LEFT JOIN names tn ON tn.id = k.name AND k.home = 'counter'"
	  " LEFT JOIN processes p ON p.id = k.process LEFT JOIN shapes s ON s.id = e.shape" },
	{ "launches",
	  "work on a GPU and the call that launched it; delay_ns is from the call's begin to the "
	  "work's; of a runtime call and the driver call in it the runtime's counts",
	  "SELECT w.id AS work, c.id AS call, k.process, k.device, wn.text AS work_name,"
	  " cn.text AS call_name, w.kind, c.begin_ns AS call_ns, w.begin_ns AS work_ns,"
	  " w.begin_ns - c.begin_ns AS delay_ns, w.dur_ns"
	  " FROM events w JOIN tracks k ON k.id = w.track AND k.home = 'stream'"
	  " JOIN events c ON c.id = (SELECT a.id FROM events a JOIN tracks t ON t.id = a.track"
	  "  WHERE a.correlation = w.correlation AND a.kind = 'api' AND t.process = k.process"
	  "  ORDER BY a.class = 'driver', a.id LIMIT 1)"
	  " LEFT JOIN names wn ON wn.id = w.name LEFT JOIN names cn ON cn.id = c.name"
	  " WHERE w.kind IN ('kernel', 'memcpy', 'memset', 'graph')" },
	{ "operators", "operators of the framework by process and name; times are inclusive, in ns",
	  "SELECT k.process, n.text AS name, count(*) AS calls, sum(e.dur_ns) AS total_ns,"
	  " min(e.dur_ns) AS min_ns, max(e.dur_ns) AS max_ns"
	  " FROM events e JOIN tracks k ON k.id = e.track JOIN names n ON n.id = e.name"
	  " WHERE e.kind = 'range' AND e.class = 'cpu_op' GROUP BY k.process, n.text" },
	{ NULL, NULL, NULL },
};

size_t data_table_width(const struct data_table *t)
{
	size_t count = 0;

	while (count < TABLE_COLUMNS_MOST && t->columns[count].name)
		count++;
	return count;
}

/* ---- cells ---- */

const char *cell_text(const struct cell *cell, struct buf *scratch, size_t *len)
{
	buf_clear(scratch);
	switch (cell->type) {
	case CELL_WORD:
		*len = cell->len;
		return cell->text;
	case CELL_TEXT:
		sink_put_utf8(cell->text, cell->len, false, scratch);
		break;
	case CELL_U64:
		buf_put_u64_text(scratch, cell->u64);
		break;
	case CELL_I64:
		buf_put_i64_text(scratch, (int64_t)cell->u64);
		break;
	case CELL_F64:
	case CELL_EMPTY:
		break;
	}
	*len = scratch->len;
	return buf_text(scratch);
}

/* Returns attributes as JSON; the text is valid until the next call. */
static struct cell cell_attrs(struct data_tables *t, const struct attr *attrs, size_t count,
			      const uint64_t *values)
{
	buf_clear(&t->attrs);
	put_json_attrs(&t->attrs, t->trace, attrs, count, values);
	return (struct cell){ .type = t->attrs.len ? CELL_WORD : CELL_EMPTY,
			      .text = buf_text(&t->attrs),
			      .len = t->attrs.len };
}

static struct cell cell_consts(struct data_tables *t, uint32_t schema)
{
	const struct arg_schema *s = trace_get_schema(t->trace, schema);

	return cell_attrs(t, s->consts, s->const_count, NULL);
}

#define PUT(table, ...)                                                                            \
	TRY(t->put(t->self, table, (const struct cell[TABLE_COLUMNS_MOST]){ __VA_ARGS__ }, err))

/* ---- tables that are complete before the first event ---- */

static enum status put_meta(struct data_tables *t, struct error *err)
{
	const struct provenance *from = trace_provenance(t->trace);

	PUT(TABLE_META, cell_word("tool"), cell_word("Tacho " TACHO_VERSION));
	PUT(TABLE_META, cell_word("input"), cell_name(t->trace, from->format));
	PUT(TABLE_META, cell_word("whole"), cell_u64(true, from->is_whole));
	PUT(TABLE_META, cell_word("synthetic"), cell_u64(true, from->is_synthetic));
	PUT(TABLE_META, cell_word("epoch_known"), cell_u64(true, from->epoch_known));
	return ST_OK;
}

static enum status put_process(struct data_tables *t, uint32_t i, struct error *err)
{
	const struct process *p = trace_get_process(t->trace, i);

	PUT(TABLE_PROCESSES, cell_u64(true, i), cell_name(t->trace, p->host),
	    cell_u64(true, p->pid), cell_u64(p->rank != NO_RANK, p->rank),
	    cell_u64(p->world_size > 0, p->world_size), cell_name(t->trace, p->command),
	    cell_consts(t, p->schema));
	return ST_OK;
}

static enum status put_device(struct data_tables *t, uint32_t i, struct error *err)
{
	const struct device *d = trace_get_device(t->trace, i);

	PUT(TABLE_DEVICES, cell_u64(true, i), cell_u64(d->process, d->process),
	    cell_u64(true, d->id), cell_name(t->trace, d->name), cell_consts(t, d->schema));
	return ST_OK;
}

static enum status put_track(struct data_tables *t, uint32_t i, struct error *err)
{
	const struct track *k = trace_get_track(t->trace, i);

	PUT(TABLE_TRACKS, cell_u64(true, i), cell_u64(k->process, k->process),
	    cell_word(track_type_word(k->type)), cell_u64(k->name != 0, k->name),
	    cell_u64(k->device != NO_ID, k->device),
	    cell_u64(k->context != NO_ID && k->type != TRACK_THREAD, k->context),
	    cell_u64(k->type != TRACK_COUNTER, k->id));
	return ST_OK;
}

static enum status put_window(struct data_tables *t, uint32_t i, struct error *err)
{
	const struct window *w = trace_get_window(t->trace, i);

	PUT(TABLE_WINDOWS, cell_u64(w->process, w->process), cell_name(t->trace, w->spec),
	    cell_u64(true, w->begin_ns), cell_u64(w->end_ns > 0, w->end_ns),
	    cell_u64(true, w->own_ns), cell_u64(true, w->cut_short));
	return ST_OK;
}

static enum status put_name(struct data_tables *t, uint32_t i, struct error *err)
{
	struct cell text = cell_name(t->trace, i);

	/* Leave out a program of XLA: it is not text, and only its process refers to it. */
	if (text.len >= PROGRAM_LEAST && memchr(text.text, '\0', text.len))
		return ST_OK;
	PUT(TABLE_NAMES, cell_u64(true, i), text);
	return ST_OK;
}

static enum status put_schema(struct data_tables *t, uint32_t i, struct error *err)
{
	PUT(TABLE_SCHEMAS, cell_u64(true, i), cell_consts(t, i));
	return ST_OK;
}

enum status data_tables_put_static(struct data_tables *t, enum data_table_id table,
				   struct error *err)
{
	static const struct {
		enum trace_table rows;
		enum status (*put)(struct data_tables *t, uint32_t i, struct error *err);
	} makers[TABLE_COUNT] = {
		[TABLE_NAMES] = { TRACE_NAMES, put_name },
		[TABLE_PROCESSES] = { TRACE_PROCESSES, put_process },
		[TABLE_DEVICES] = { TRACE_DEVICES, put_device },
		[TABLE_TRACKS] = { TRACE_TRACKS, put_track },
		[TABLE_SCHEMAS] = { TRACE_SCHEMAS, put_schema },
		[TABLE_WINDOWS] = { TRACE_WINDOWS, put_window },
	};

	if (table == TABLE_META)
		return put_meta(t, err);
	if (table == TABLE_DESCRIPTION) {
		for (size_t i = 0; i < TABLE_COUNT; i++) {
			PUT(TABLE_DESCRIPTION, cell_word(data_tables[i].name), cell_word(""),
			    cell_word(""), cell_word(""), cell_word(data_tables[i].meaning));
			for (size_t k = 0; k < data_table_width(&data_tables[i]); k++) {
				const struct data_column *c = &data_tables[i].columns[k];

				PUT(TABLE_DESCRIPTION, cell_word(data_tables[i].name),
				    cell_word(c->name), cell_word(c->unit),
				    cell_word(c->refers ? c->refers : ""), cell_word(c->meaning));
			}
		}
		for (const struct data_view *v = data_views; v->name; v++)
			PUT(TABLE_DESCRIPTION, cell_word(v->name), cell_word(""), cell_word(""),
			    cell_word(""), cell_word(v->meaning));
		return ST_OK;
	}
	for (uint32_t i = 1; i <= trace_count(t->trace, makers[table].rows); i++)
		TRY(makers[table].put(t, i, err));
	return buf_status(&t->attrs, err);
}

/* ---- while the trace is read ---- */

static enum status put_event(struct data_tables *t, const struct event *e, struct error *err)
{
	const struct arg_schema *schema = trace_get_schema(t->trace, e->schema);
	struct data_process *p = &t->processes[trace_get_track(t->trace, e->track)->process];
	struct cell of[COLUMN_END];

	if (!p->last_ns)
		p->first_ns = e->begin_ns;
	if (e->end_ns > p->last_ns)
		p->last_ns = e->end_ns;
	columns_of_event(t->trace, e, of);
	PUT(TABLE_EVENTS, cell_u64(true, ++t->events), of[COLUMN_TIME], of[COLUMN_DURATION],
	    of[COLUMN_KIND], of[COLUMN_CLASS], cell_u64(e->name, e->name),
	    cell_u64(e->track, e->track), of[COLUMN_CORRELATION], of[COLUMN_BYTES],
	    of[COLUMN_ADDRESS], of[COLUMN_VALUE], of[COLUMN_RESULT], of[COLUMN_NUMBER],
	    of[COLUMN_STATE], cell_u64(e->schema, e->schema),
	    cell_attrs(t, schema->args, e->args ? schema->arg_count : 0, e->args));
	return ST_OK;
}

static enum status end_phase(struct data_tables *t, const struct phase_interval *p,
			     struct error *err)
{
	bool has_step = p->step && !(p->step & STEP_GAP);

	if (p->begin_ns == p->end_ns || p->phase == PHASE_OTHER)
		return ST_OK;
	PUT(TABLE_PHASES, cell_u64(p->process, p->process), cell_u64(has_step, p->step - 1),
	    cell_word(t->context ? context_phase(t->context, p->phase).name : ""),
	    cell_u64(true, p->begin_ns), cell_u64(true, p->end_ns - p->begin_ns));
	return ST_OK;
}

/* Returns whether a span of time overlaps the events of its process.  Batches have steps and phases
 * of the whole input; those outside the filtered events are left out. */
static bool is_here(const struct data_tables *t, uint32_t process, uint64_t begin_ns,
		    uint64_t end_ns)
{
	const struct data_process *p = &t->processes[process];

	return p->last_ns && end_ns >= p->first_ns && begin_ns <= p->last_ns;
}

enum status data_tables_put_batch(struct data_tables *t, const struct batch *batch,
				  struct error *err)
{
	for (size_t i = 0; i < batch->count; i++)
		TRY(put_event(t, &batch->events[i], err));
	for (size_t i = 0; i < batch->mark_count; i++) {
		const struct step_mark *m = &batch->marks[i];

		if (!is_here(t, m->process, m->begin_ns, m->end_ns))
			continue;
		PUT(TABLE_STEPS, cell_u64(m->process, m->process), cell_u64(true, m->number),
		    cell_u64(true, m->begin_ns), cell_u64(true, m->end_ns - m->begin_ns));
	}
	for (size_t i = 0; i < batch->interval_count; i++) {
		const struct phase_interval *p = &batch->intervals[i];
		struct phase_interval *open = &t->processes[p->process].open;

		if (!is_here(t, p->process, p->begin_ns, p->end_ns))
			continue;
		if (phase_interval_extend(open, p))
			continue;
		TRY(end_phase(t, open, err));
		*open = *p;
	}
	return buf_status(&t->attrs, err);
}

/* Writes the losses, which are final only at the end.  A loss without a process is one of the input
 * as a whole. */
static enum status put_losses(struct data_tables *t, struct error *err)
{
	for (unsigned why = 0; why < LOSS_END; why++) {
		struct cell reason = cell_word(loss_text((enum loss)why));
		uint64_t rest = trace_lost(t->trace, 0, (enum loss)why);

		for (uint32_t i = 1; i <= trace_count(t->trace, TRACE_PROCESSES); i++) {
			uint64_t own = trace_lost(t->trace, i, (enum loss)why);

			rest -= own < rest ? own : rest;
			if (own)
				PUT(TABLE_LOSSES, cell_u64(true, i), reason, cell_u64(true, own));
		}
		if (rest)
			PUT(TABLE_LOSSES, cell_u64(false, 0), reason, cell_u64(true, rest));
	}
	return ST_OK;
}

enum status data_tables_put_end(struct data_tables *t, struct error *err)
{
	for (uint32_t i = 0; i <= trace_count(t->trace, TRACE_PROCESSES); i++)
		TRY(end_phase(t, &t->processes[i].open, err));
	return put_losses(t, err);
}

/* ---- the whole ---- */

enum status data_tables_init(struct data_tables *t, struct error *err)
{
	buf_init(&t->attrs, ATTRS_CEILING);
	return vec_new(&t->processes, (size_t)trace_count(t->trace, TRACE_PROCESSES) + 1, err);
}

void data_tables_release(struct data_tables *t)
{
	free(t->processes);
	buf_release(&t->attrs);
}

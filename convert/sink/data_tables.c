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
			 "properties of the whole trace",
			 { { "key", TABLE_TEXT, NULL, "",
			     "tool, input, whole (1: the input was closed properly), synthetic, "
			     "epoch_known (1: times count from the Unix epoch)" },
			   { "value", TABLE_ANY, NULL, "", "value of the key" } } },
	[TABLE_NAMES] = { "names",
			  "texts to which events and tracks refer",
			  { { "id", TABLE_KEY, NULL, "", "id of the text" },
			    { "text", TABLE_TEXT, NULL, "",
			      "UTF-8; invalid bytes are replaced by U+FFFD" } } },
	[TABLE_PROCESSES] = { "processes",
			      "recorded processes",
			      { { "id", TABLE_KEY, NULL, "", "id of the process in this trace" },
				{ "host", TABLE_TEXT, NULL, "", "name of the host" },
				{ "pid", TABLE_INTEGER, NULL, "",
				  "process id given by the operating system" },
				{ "rank", TABLE_INTEGER, NULL, "",
				  "rank in the job; NULL: unknown" },
				{ "world_size", TABLE_INTEGER, NULL, "",
				  "number of ranks in the job; NULL: unknown" },
				{ "command", TABLE_TEXT, NULL, "", "command line or name" },
				{ "attrs", TABLE_TEXT, NULL, "", "JSON: further attributes" } } },
	[TABLE_DEVICES] = { "devices",
			    "GPUs as a process sees them",
			    { { "id", TABLE_KEY, NULL, "", "id of the row" },
			      { "process", TABLE_INTEGER, "processes", "", "process that uses it" },
			      { "ordinal", TABLE_INTEGER, NULL, "",
				"CUDA's number of the GPU in that process" },
			      { "name", TABLE_TEXT, NULL, "", "model of the GPU" },
			      { "attrs", TABLE_TEXT, NULL, "", "JSON: memory, SMs and so on" } } },
	[TABLE_TRACKS] = { "tracks",
			   "threads, streams, allocators and counters to which events belong",
			   { { "id", TABLE_KEY, NULL, "", "id of the track" },
			     { "process", TABLE_INTEGER, "processes", "",
			       "process to which the track belongs" },
			     { "home", TABLE_TEXT, NULL, "", "stream, thread, pool or counter" },
			     { "name", TABLE_INTEGER, "names", "", "name of a thread or counter" },
			     { "device", TABLE_INTEGER, NULL, "", "CUDA's number of the GPU" },
			     { "context", TABLE_INTEGER, NULL, "", "id of the CUDA context" },
			     { "number", TABLE_INTEGER, NULL, "",
			       "id of the stream, or of the thread" } } },
	[TABLE_SCHEMAS] = { "shapes",
			    "arguments that many events share",
			    { { "id", TABLE_KEY, NULL, "", "id of the row" },
			      { "args", TABLE_TEXT, NULL, "", "arguments as a JSON object" } } },
	[TABLE_WINDOWS] = { "windows",
			    "recorded spans of time; no row: all of the input",
			    { { "process", TABLE_INTEGER, "processes", "", "recorded process" },
			      { "asked", TABLE_TEXT, NULL, "", "window as requested" },
			      { "begin_ns", TABLE_INTEGER, NULL, "ns", "begin of the window" },
			      { "end_ns", TABLE_INTEGER, NULL, "ns", "end; NULL: unknown" },
			      { "own_ns", TABLE_INTEGER, NULL, "ns",
				"time that the recorder used in the window" },
			      { "cut_short", TABLE_INTEGER, NULL, "",
				"1: it ended earlier than requested" } } },
	[TABLE_DESCRIPTION] = { "description",
				"tables, columns and views of this file",
				{ { "table_name", TABLE_TEXT, NULL, "", "table or view" },
				  { "column_name", TABLE_TEXT, NULL, "",
				    "name of the column; NULL: the row describes the table" },
				  { "unit", TABLE_TEXT, NULL, "", "unit of the column's values" },
				  { "refers_to", TABLE_TEXT, NULL, "",
				    "table whose id the column contains" },
				  { "meaning", TABLE_TEXT, NULL, "", "description in words" } } },
	[TABLE_EVENTS] = { "events",
			   "all recorded events in order of time",
			   { { "id", TABLE_KEY, NULL, "", "id of the event" },
			     { "begin_ns", TABLE_INTEGER, NULL, "ns",
			       "begin since the Unix epoch, or since the input's own origin" },
			     { "dur_ns", TABLE_INTEGER, NULL, "ns", "duration" },
			     { "kind", TABLE_TEXT, NULL, "",
			       "kernel, memcpy, memset, graph, sync, api, range, step, mark, "
			       "alloc, free, counter and so on" },
			     { "class", TABLE_TEXT, NULL, "",
			       "class within the kind: runtime, driver; HtoD; cpu_op, nvtx" },
			     { "name", TABLE_INTEGER, "names", "", "name of the event" },
			     { "track", TABLE_INTEGER, "tracks", "", "track on which it happened" },
			     { "correlation", TABLE_INTEGER, NULL, "",
			       "id that GPU work shares with its call, within a process" },
			     { "bytes", TABLE_INTEGER, NULL, "bytes",
			       "size of a copy, fill, allocation or free" },
			     { "address", TABLE_INTEGER, NULL, "", "address of memory" },
			     { "value", TABLE_REAL, NULL, "", "value of a counter" },
			     { "result", TABLE_INTEGER, NULL, "", "call's result; NULL: unknown" },
			     { "number", TABLE_INTEGER, NULL, "",
			       "number of a step; sequence number of a range; id of a flow" },
			     { "state", TABLE_TEXT, NULL, "", "began_earlier or never_ended" },
			     { "shape", TABLE_INTEGER, "shapes", "", "arguments that are shared" },
			     { "args", TABLE_TEXT, NULL, "",
			       "JSON: its own arguments, in addition to those of its shape" } } },
	[TABLE_STEPS] = { "steps",
			  "marks of steps on their thread, by name or record",
			  { { "process", TABLE_INTEGER, "processes", "", "process of the step" },
			    { "number", TABLE_INTEGER, NULL, "", "number of the step; may repeat" },
			    { "begin_ns", TABLE_INTEGER, NULL, "ns", "begin of the mark" },
			    { "dur_ns", TABLE_INTEGER, NULL, "ns", "duration of the mark" } } },
	[TABLE_PHASES] = { "phases",
			   "activity of the step thread; time in no phase has no row",
			   { { "process", TABLE_INTEGER, "processes", "", "process of the thread" },
			     { "step", TABLE_INTEGER, NULL, "", "step number; NULL: no step" },
			     { "phase", TABLE_TEXT, NULL, "", "name: data, forward, backward ..." },
			     { "begin_ns", TABLE_INTEGER, NULL, "ns", "begin of the interval" },
			     { "dur_ns", TABLE_INTEGER, NULL, "ns", "duration" } } },
	[TABLE_LOSSES] = { "losses",
			   "missing records, by reason",
			   { { "process", TABLE_INTEGER, "processes", "",
			       "process that lacks records; NULL: the input as a whole" },
			     { "reason", TABLE_TEXT, NULL, "", "reason why records are missing" },
			     { "count", TABLE_INTEGER, NULL, "", "number of records" } } },
};

const struct data_view data_views[] = {
	{ "timeline", "events with their names, tracks, processes and shared arguments as text",
	  "SELECT e.id, e.begin_ns, e.dur_ns, e.kind, e.class,"
	  " coalesce(n.text, tn.text, '') AS name, p.host, p.rank, p.pid, k.home, k.device,"
	  " k.context, CASE WHEN k.home = 'stream' THEN k.number END AS stream,"
	  " CASE WHEN k.home = 'thread' THEN k.number END AS thread, e.correlation, e.bytes,"
	  " e.address, e.value, e.result, e.number, e.state, e.args, s.args AS shape_args"
	  " FROM events e LEFT JOIN names n ON n.id = e.name LEFT JOIN tracks k ON k.id = e.track"
	  " LEFT JOIN names tn ON tn.id = k.name AND k.home = 'counter'"
	  " LEFT JOIN processes p ON p.id = k.process LEFT JOIN shapes s ON s.id = e.shape" },
	{ "launches",
	  "GPU work and the call that launched it; delay_ns is from the begin of the call to the "
	  "begin of the work; a runtime call counts, not the driver call in it",
	  "SELECT w.id AS work, c.id AS call, k.process, k.device, wn.text AS work_name,"
	  " cn.text AS call_name, w.kind, c.begin_ns AS call_ns, w.begin_ns AS work_ns,"
	  " w.begin_ns - c.begin_ns AS delay_ns, w.dur_ns"
	  " FROM events w JOIN tracks k ON k.id = w.track AND k.home = 'stream'"
	  " JOIN events c ON c.id = (SELECT a.id FROM events a JOIN tracks t ON t.id = a.track"
	  "  WHERE a.correlation = w.correlation AND a.kind = 'api' AND t.process = k.process"
	  "  ORDER BY a.class = 'driver', a.id LIMIT 1)"
	  " LEFT JOIN names wn ON wn.id = w.name LEFT JOIN names cn ON cn.id = c.name"
	  " WHERE w.kind IN ('kernel', 'memcpy', 'memset', 'graph')" },
	{ "operators", "framework operators by process and name; inclusive times in ns",
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

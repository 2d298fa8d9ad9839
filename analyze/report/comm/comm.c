/* SPDX-License-Identifier: Apache-2.0 */
/* The report `comm`: collectives by communicator, operation, type and size (DEFINITIONS.md 7):
 * time, bandwidth, exposed, hidden, waiting. Exposed is the communication time that a collective
 * owns, so the sum is exposed_comm_ns; hidden is the rest. The accumulator handles one rank;
 * waiting needs all. */
#include "analyze/report/comm/comm.h"

#include "convert/stage/collective.h"
#include "schemas/base/hash.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

RANK_TABLE_TYPE(comm, &table_ranks, COMM_COLUMNS, .by = "total_ns");

RANK_TABLE_TYPE(comm_events, &table_ranks, EVENTS_COLUMNS, .nest = NEST_NEVER, .null_texts = "gpu");

enum {
	PACKED_OF_JOB = 16 << 20,
	PACKED_LEAST = 16 << 10,
	PACKED_MOST = 512 << 10, /* limit of bytes of one GPU */
	CHUNKS_OF_JOB = 1 << 17,
	CHUNKS_LEAST = 64,
	CHUNKS_MOST = 1 << 12,
	RANKS_UNKNOWN = 256,    /* assumed ranks if the file does not contain the job's size */
	LOOK_BACK = 64,         /* rows to search backwards, because steps end soon */
	SIZES_MOST = 512,       /* rows of different sizes of a rank */
	CALL_PACKED_MOST = 512, /* upper bound for one collective */
};

struct open { /* a collective that may still be exposed */
	struct collective is;
	struct rank_call call;
	uint64_t begin_ns, end_ns, correlation, launch_ns;
	uint64_t stream; /* NO_U64: the communicator is known */
	uint32_t name, step, phase, track;
	uint32_t row; /* row of its step, + 1; 0: none */
};
struct counter { /* of a communicator, operation and step */
	char group[GROUP_TEXT];
	uint64_t stream, count;
	uint32_t row;
	enum operation operation;
};
struct chunk {
	struct buf packed;
	char group[GROUP_TEXT];
	const char *type;
	uint64_t stream, first_ns;
	struct packed_last last;
	uint32_t row, phase;
	uint32_t counter;
	enum operation operation;
	bool by_seq;
};
struct cached_row { /* cache of table rows; row NULL: unused */
	char group[GROUP_TEXT];
	const char *type;
	uint64_t bytes;
	union value *row;
	enum operation operation;
};
enum { ROWS_CACHED = 16 };
struct gpu {
	uint32_t process, device;
	struct cached_row cache[ROWS_CACHED]; /* by size and operation, until sizes are combined */
	struct open *open;                    /* in the order of begins */
	size_t first, count, cap;
	struct counter *counters;
	size_t counter_count, counter_cap;
	struct chunk *chunks;
	size_t chunk_count, chunk_cap;
	size_t packed; /* bytes of all chunks */
	uint64_t places, from_ns;
	size_t sizes;
};
struct comm {
	struct collectives *collectives;
	struct gpu **gpus; /* by the sweep's index */
	size_t gpu_count;
	bool any; /* a collective was seen */
};

static enum status comm_begin(struct accumulator *f, struct error *err)
{
	struct comm *c = f->state;

	return collectives_new(&c->collectives, f->trace, err);
}

static void gpu_release(struct gpu *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->chunk_count; i++)
		buf_release(&g->chunks[i].packed);
	free(g->open);
	free(g->counters);
	free(g->chunks);
	free(g);
}

static void comm_release(struct accumulator *f)
{
	struct comm *c = f->state;

	collectives_free(c->collectives);
	for (size_t i = 0; i < c->gpu_count; i++)
		gpu_release(c->gpus[i]);
}

/* Returns the part of the job's limit that a GPU may use. */
static size_t share_of(const struct accumulator *f, const struct gpu *g, size_t all, size_t least,
		       size_t most)
{
	uint32_t ranks = trace_get_process(f->trace, g->process)->world_size;
	size_t share = all / (ranks ? ranks : RANKS_UNKNOWN);

	return share < least ? least : share > most ? most : share;
}

static size_t chunks_most(const struct accumulator *f, const struct gpu *g)
{
	return share_of(f, g, CHUNKS_OF_JOB, CHUNKS_LEAST, CHUNKS_MOST);
}

/* ---- a finished collective -------------------------------------------------------------- */

static enum status row_find(struct accumulator *f, struct gpu *g, const struct open *o,
			    union value **row, struct error *err)
{
	struct table *t = tables_find(f->tables, "comm");
	union value keys[COMM_BYTES + 1];
	size_t before = table_count(t);

	keys[COMM_GROUP].text = o->is.group;
	keys[COMM_OPERATION].text = operation_word(o->is.operation);
	keys[COMM_TYPE].text = o->is.type;
	keys[COMM_BYTES].u64 = g->sizes < SIZES_MOST ? o->is.bytes : NO_U64;
	TRY(acc_row(f, "comm", g->process, keys, row, err));
	g->sizes += table_count(t) > before;
	return ST_OK;
}

static enum status row_of(struct accumulator *f, struct gpu *g, const struct open *o,
			  union value **row, struct error *err)
{
	size_t at = (size_t)(hash_word(o->is.bytes, o->is.operation) % ROWS_CACHED);
	struct cached_row *k = &g->cache[at];

	if (g->sizes >= SIZES_MOST)
		return row_find(f, g, o, row, err);
	if (!k->row || k->bytes != o->is.bytes || k->operation != o->is.operation ||
	    strcmp(k->type, o->is.type) != 0 || strcmp(k->group, o->is.group) != 0) {
		TRY(row_find(f, g, o, &k->row, err));
		memcpy(k->group, o->is.group, GROUP_TEXT);
		k->type = o->is.type;
		k->bytes = o->is.bytes;
		k->operation = o->is.operation;
	}
	*row = k->row;
	return ST_OK;
}

/* Finds or adds a counter; *out is NO_ID if there are too many. */
static enum status counter_find(const struct accumulator *f, struct gpu *g, const struct open *o,
				uint32_t *out, struct error *err)
{
	for (size_t i = g->counter_count; i && i + LOOK_BACK > g->counter_count; i--) {
		const struct counter *c = &g->counters[i - 1];

		if (c->row == o->row && c->operation == o->is.operation && c->stream == o->stream &&
		    !strcmp(c->group, o->is.group)) {
			*out = (uint32_t)(i - 1);
			return ST_OK;
		}
	}
	*out = NO_ID;
	if (g->counter_count == chunks_most(f, g))
		return ST_OK;
	TRY(vec_reserve(&g->counters, &g->counter_cap, g->counter_count + 1, err));
	struct counter *made = &g->counters[g->counter_count];
	*made = (struct counter){ .stream = o->stream,
				  .row = o->row,
				  .operation = o->is.operation };
	memcpy(made->group, o->is.group, GROUP_TEXT);
	*out = (uint32_t)g->counter_count++;
	return ST_OK;
}

static bool is_of(const struct chunk *c, const struct open *o, uint32_t counter)
{
	return c->counter == counter && c->phase == o->phase && c->by_seq == o->is.has_seq &&
	       !strcmp(c->type, o->is.type);
}

static enum status chunk_find(const struct accumulator *f, struct gpu *g, const struct open *o,
			      uint32_t counter, struct chunk **out, struct error *err)
{
	for (size_t i = g->chunk_count; i && i + LOOK_BACK > g->chunk_count; i--) {
		*out = &g->chunks[i - 1];
		if (is_of(*out, o, counter))
			return ST_OK;
	}
	*out = NULL;
	if (g->chunk_count == chunks_most(f, g))
		return ST_OK;
	TRY(vec_reserve(&g->chunks, &g->chunk_cap, g->chunk_count + 1, err));
	struct chunk *c = *out = &g->chunks[g->chunk_count++];
	*c = (struct chunk){ .type = o->is.type,
			     .stream = o->stream,
			     .first_ns = o->begin_ns,
			     .row = o->row,
			     .phase = o->phase,
			     .counter = counter,
			     .operation = o->is.operation,
			     .by_seq = o->is.has_seq };
	memcpy(c->group, o->is.group, GROUP_TEXT);
	buf_init(&c->packed, PACKED_MOST + CALL_PACKED_MOST);
	return ST_OK;
}

/* Finishes the collectives that ended by `until_ns`, up to which all segments were seen. */
static enum status close_some(struct accumulator *f, struct gpu *g, uint64_t until_ns,
			      struct error *err)
{
	while (g->first < g->count && g->open[g->first].end_ns <= until_ns) {
		struct open *o = &g->open[g->first++];
		uint64_t exposed = 0;
		union value *row;

		for (size_t i = 0; i < o->call.exposed_count; i++)
			exposed += o->call.exposed[i].exposed_ns;
		o->call.ns = o->end_ns - o->begin_ns;
		TRY(row_of(f, g, o, &row, err));
		o->call.bytes = row[COMM_BYTES].u64;
		cell_raise(&row[COMM_RANKS], o->is.ranks);
		row[COMM_COUNT].u64++;
		row[COMM_TOTAL].u64 += o->call.ns;
		row[COMM_EXPOSED].u64 += exposed;
		row[COMM_HIDDEN].u64 += o->call.ns - exposed;
		row[COMM_MIN].u64 = earlier(row[COMM_MIN].u64, o->call.ns);
		cell_raise(&row[COMM_MAX], o->call.ns);
		uint32_t counter = 0;
		struct chunk *chunk = NULL;
		/* Step numbers may repeat, so use the row of the mark before the launch, + 1; 0:
		 * none. */
		const struct step_list *steps = &f->steps[g->process];
		size_t at = o->step ? steps_begun(steps, o->launch_ns) : steps->count;
		o->row = at < steps->count ? (uint32_t)at + 1 : 0;
		TRY(counter_find(f, g, o, &counter, err));
		if (counter != NO_ID) {
			o->call.index = o->is.has_seq ? o->is.seq : g->counters[counter].count;
			g->counters[counter].count++;
			if (g->packed < share_of(f, g, PACKED_OF_JOB, PACKED_LEAST, PACKED_MOST))
				TRY(chunk_find(f, g, o, counter, &chunk, err));
		}
		if (!chunk) {
			row[COMM_LEFT_OUT].u64++;
			continue;
		}
		size_t before = chunk->packed.len;
		call_pack(&chunk->packed, &o->call, &chunk->last);
		g->packed += chunk->packed.len - before;
		TRY(buf_status(&chunk->packed, err));
	}
	if (g->first == g->count)
		g->first = g->count = 0;
	if (g->first > 64 && g->first * 2 > g->count) {
		g->count -= g->first;
		memmove(g->open, g->open + g->first, g->count * sizeof(*g->open));
		g->first = 0;
	}
	return ST_OK;
}

/* ---- running collectives ---------------------------------------------------------------- */

/* Orders two that began together as the sweep does. */
static bool owns_before(const struct accumulator *f, const struct open *a, const struct open *b)
{
	uint64_t x = trace_get_track(f->trace, a->track)->id;
	uint64_t y = trace_get_track(f->trace, b->track)->id;

	return x != y ? x < y : a->correlation < b->correlation;
}

/* Adds a segment to its owner, the running collective that began first. One that began before the
 * filter's begin is in no list but may own the segment; then it usually has another launch. */
static void put_segment(const struct accumulator *f, struct gpu *g, const struct segment *s)
{
	struct open *owner = NULL;

	for (size_t i = g->first; i < g->count && g->open[i].begin_ns <= s->begin_ns; i++) {
		struct open *o = &g->open[i];

		if (owner && o->begin_ns > owner->begin_ns)
			break;
		if (o->name == s->name && o->launch_ns == s->launch_begin_ns &&
		    o->end_ns >= s->end_ns && (!owner || owns_before(f, o, owner)))
			owner = o;
	}
	if (owner) {
		struct rank_call *m = &owner->call;
		uint64_t at_ns = s->begin_ns - owner->begin_ns;
		uint64_t ns = s->end_ns - s->begin_ns;
		struct exposed_interval *last =
			m->exposed_count ? &m->exposed[m->exposed_count - 1] : NULL;

		if (last &&
		    (last->at_ns + last->span_ns == at_ns || m->exposed_count == EXPOSED_MOST)) {
			last->span_ns = at_ns + ns - last->at_ns;
			last->exposed_ns += ns;
			return;
		}
		m->exposed[m->exposed_count++] = (struct exposed_interval){ at_ns, ns, ns };
	}
}

static enum status comm_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	const struct batch_events *ranges = &w->by[BATCH_SHAPED];
	const struct batch_events *kernels = &w->by[BATCH_COLLECTIVES];
	struct comm *c = f->state;
	size_t k = 0;

	for (size_t i = 0; i < kernels->count; i++) {
		for (; k < ranges->count && ranges->items[k] < kernels->items[i]; k++)
			TRY(collectives_note(c->collectives, ranges->items[k], err));
		const struct event *e = kernels->items[i];
		const struct launch *launch = batch_launch(f->batch, e);
		uint32_t gpu = sweep_gpu_of(f->sweep, e->track);
		size_t j = c->gpu_count;
		TRY(acc_gpus(f, &c->gpus, &c->gpu_count, sizeof(struct gpu *), err));
		for (; j < c->gpu_count; j++) {
			struct sweep_gpu of = sweep_gpu(f->sweep, j);

			TRY(vec_new(&c->gpus[j], 1, err));
			c->gpus[j]->process = of.process;
			c->gpus[j]->device = of.device;
		}
		if (gpu >= c->gpu_count || !acc_wants(f, c->gpus[gpu]->process))
			continue;
		struct gpu *g = c->gpus[gpu];
		TRY(vec_reserve(&g->open, &g->cap, g->count + 1, err));
		struct open *o = &g->open[g->count++];
		memset(o, 0, sizeof(*o));
		collectives_find(c->collectives, e, launch, &o->is);
		c->any = true;
		o->begin_ns = e->begin_ns;
		o->end_ns = e->end_ns;
		if (!g->places)
			g->from_ns = e->begin_ns;
		o->call.place = g->places++;
		o->correlation = e->correlation;
		o->launch_ns = launch ? launch->begin_ns : 0;
		o->track = e->track;
		o->name = e->name;
		o->step = e->step & ~STEP_GAP; /* work launched after a step belongs to it */
		o->phase = e->phase;
		o->stream = *o->is.group ? NO_U64 : trace_get_track(f->trace, e->track)->id;
	}
	for (; k < ranges->count; k++)
		TRY(collectives_note(c->collectives, ranges->items[k], err));
	for (size_t i = 0; c->any && i < w->segment_count; i++) {
		const struct segment *s = &w->segments[i];
		struct gpu *g = s->gpu < c->gpu_count ? c->gpus[s->gpu] : NULL;

		if (!g)
			continue;
		if (g->first < g->count && g->open[g->first].end_ns <= s->begin_ns)
			TRY(close_some(f, g, s->begin_ns, err));
		if ((s->busy & BUSY_COMM) && !(s->busy & BUSY_COMPUTE))
			put_segment(f, g, s);
	}
	return ST_OK;
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Returns whether a step is complete. Without marks that is the whole input, if nothing is
 * filtered. */
static bool is_whole(const struct accumulator *f, const struct step_list *steps, uint32_t row)
{
	if (!row)
		return steps->is_inferred && (!f->filter || filter_is_empty(f->filter));
	return !steps->is_inferred && !steps->rows[row - 1].is_cut && !steps->rows[row - 1].is_out;
}

static enum status end_chunk(struct accumulator *f, struct gpu *g, struct chunk *c,
			     const struct step_repeat *repeats, struct error *err)
{
	const struct step_list *steps = &f->steps[g->process];
	struct step_repeat of = step_repeat_at(repeats, c->row);
	union value keys[EVENTS_KEYS], *row;

	keys[EVENTS_DEVICE].u64 = g->device == NO_ID ? NO_U64 : g->device;
	keys[EVENTS_FROM].u64 = g->from_ns;
	keys[EVENTS_GROUP].text = c->group;
	keys[EVENTS_OPERATION].text = operation_word(c->operation);
	keys[EVENTS_TYPE].text = c->type;
	keys[EVENTS_STREAM].u64 = c->stream;
	keys[EVENTS_STEP].u64 = c->row ? steps->rows[c->row - 1].number : NO_U64;
	keys[EVENTS_NTH].u64 = of.nth;
	keys[EVENTS_PHASE].text = context_phase(f->context, c->phase).name;
	keys[EVENTS_BY_SEQ].u64 = c->by_seq;
	keys[EVENTS_FIRST].u64 = c->first_ns;
	TRY(acc_row(f, "comm_events", g->process, keys, &row, err));
	row[EVENTS_OF_STEP].u64 = g->counters[c->counter].count;
	row[EVENTS_WHOLE].u64 = is_whole(f, steps, c->row);
	row[EVENTS_SETTLES].u64 = c->row && steps->rows[c->row - 1].is_settling &&
				  !steps->rows[c->row - 1].is_counted;
	row[EVENTS_TIMES].u64 = of.times;
	const struct device *d =
		trace_get_device(f->trace, trace_find_device(f->trace, g->process, g->device));
	if (d->name)
		TRY(acc_text(f, "comm_events", &row[EVENTS_GPU],
			     trace_text(f->trace, d->name, NULL), err));
	return acc_text(f, "comm_events", &row[EVENTS_PACKED], buf_text(&c->packed), err);
}

static enum status end_gpu(struct accumulator *f, struct gpu *g, struct error *err)
{
	RELEASED_BY(vec_release) struct step_repeat *repeats = NULL;

	TRY(close_some(f, g, UINT64_MAX, err));
	TRY(step_repeats_find(&f->steps[g->process], &repeats, err));
	for (size_t i = 0; i < g->chunk_count; i++)
		TRY(end_chunk(f, g, &g->chunks[i], repeats, err));
	return ST_OK;
}

static enum status comm_end(struct accumulator *f, struct error *err)
{
	struct comm *c = f->state;

	for (size_t i = 0; i < c->gpu_count; i++)
		TRY(end_gpu(f, c->gpus[i], err));
	return ST_OK;
}

const struct report_type report_comm = {
	.name = "comm",
	.help = "collectives: time, bandwidth, exposed, hidden, waiting; which rank came last",
	.tables = TABLES(&table_comm, &table_groups, &table_waits, &table_waits_for,
			 &table_stragglers, &table_comm_events),
	.state_size = sizeof(struct comm),
	.owned = OWNED(offsetof(struct comm, gpus)),
	.begin = comm_begin,
	.put = comm_put,
	.end = comm_end,
	.release = comm_release,
	.join = comm_join,
	.finish = comm_match,
};

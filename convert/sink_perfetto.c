/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perfetto's protobuf: slices on the rows of perfetto/rows.h, arrows from calls to their work,
 * counters, instants; and rows that are derived: steps, phases, what each GPU did.
 *
 * One timeline of all ranks, or a file for each process: these may be put behind each other, gzip
 * or not, and are one timeline then.  A slice is two packets, a begin and an end, one behind the
 * other: readers sort, and ends close the innermost slice of their track, so that this order is
 * good wherever the intervals of a lane are within each other.
 */
#include "convert/out.h"
#include "convert/perfetto/args.h"
#include "convert/perfetto/derive.h"
#include "convert/perfetto/known.h"
#include "convert/perfetto/rows.h"
#include "convert/sink.h"
#include "schemas/hash.h"

#include <stdlib.h>

enum {
	BIG_CEILING = 256 << 20,
	ROOM_MOST = 32 * 1024,
	MANY = 32, /* processes: more than that are not in the caches at once */
	/* Events before its turn, when what an event needs is asked of the memory. */
	NEAR_TRACK = 16,
	NEAR_ROW = 12,
	NEAR_CALL = 6,
};

struct of_process {
	struct perfetto_row *steps, *phases;
	struct stretch open; /* its pieces so far; begin_ns == end_ns: none */
};
struct times { /* of what is in the file of a process; last_ns 0: nothing yet */
	uint64_t first_ns, last_ns;
};
struct perfetto {
	struct sink base;
	struct trace *trace;
	const struct source *step;
	const struct name_rules *rules;
	uint32_t process; /* 0: all */
	struct perfetto_file file;
	struct perfetto_rows rows;
	struct perfetto_args args;
	struct perfetto_derive derive;
	struct of_process *own; /* index: process */
	struct times *times;    /* the same: each event looks at it, so they stand side by side */
	uint64_t *last_call;    /* index: track; correlation of its last runtime call */
	uint8_t *name_flags;    /* index: name; enum perfetto_flag */
	struct perfetto_names names;
	struct track *tracks;   /* those of the trace, side by side */
	struct buf big;         /* of an event that is larger than the output's room */
};

static unsigned flags_of(struct perfetto *p, const struct event *e)
{
	const char *text;
	unsigned flags = NAME_KNOWN;

	if (e->name > p->file.names)
		return 0;
	if (p->name_flags[e->name])
		return p->name_flags[e->name];
	text = trace_text(p->trace, e->name, NULL);
	if (p->rules && name_rules_communicates(p->rules, text))
		flags |= NAME_COMMUNICATES;
	if (perfetto_launches(text))
		flags |= NAME_LAUNCHES;
	p->name_flags[e->name] = (uint8_t)flags;
	return flags;
}

static enum gpu_class class_of(const struct event *e, unsigned flags)
{
	if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET)
		return CLASS_COPY;
	return e->kind == KIND_KERNEL && flags & NAME_COMMUNICATES ? CLASS_COMM : CLASS_COMPUTE;
}

/* ---- packets of events ---- */

struct slice { /* what is to be written */
	const struct wire_track *lane;
	struct wire_head *small, *wide; /* of its first packet */
	struct wire_head *end;          /* of its last; NULL: it has one packet */
	const struct event *event;
	const struct perfetto_known *known;
	const struct track *track;
	uint64_t flow; /* 0: none */
};

static inline uint8_t *put_first(uint8_t *p, const struct slice *s)
{
	const struct perfetto_known *k = s->known;

	memcpy(p, k->bytes, sizeof(k->bytes));
	p += k->len;
	if (!k->len)
		p = wire_put_category(wire_put_numbered(p, "step ", s->event->number),
				      k->plan->category);
	return s->flow ? wire_put_flow(p, s->flow) : p;
}

static inline uint8_t *put_slice(uint8_t *room, const struct slice *s, size_t most)
{
	const struct perfetto_plan *plan = s->known->plan;
	const struct event *e = s->event;
	uint8_t *p;

	if (most <= WIRE_SMALL) {
		p = put_first(wire_begin(room, e->begin_ns, s->small, s->lane), s);
		if (most)
			p = perfetto_put_args(p, plan, e, s->track);
		wire_end(room, s->small, e->begin_ns, p);
	} else {
		p = put_first(wire_begin_wide(room, e->begin_ns, s->wide, s->lane), s);
		p = perfetto_put_args(p, plan, e, s->track);
		wire_end_wide(room, s->wide, e->begin_ns, p);
	}
	return s->end ? wire_put_end(p, e->end_ns, s->end, s->lane) : p;
}

static enum status write_big(struct perfetto *p, const struct slice *s, size_t most,
			     struct error *err)
{
	uint8_t *room;

	buf_clear(&p->big);
	room = buf_reserve(&p->big, most + WIRE_MOST + PERFETTO_ARGS_SLACK);
	TRY(buf_status(&p->big, err));
	return out_pen_put(&p->file.pen, room, (size_t)(put_slice(room, s, most) - room), err);
}

static inline enum status write_slice(struct perfetto *p, const struct slice *s, struct error *err)
{
	const struct perfetto_plan *plan = s->known->plan;
	size_t most = perfetto_is_rare(s->event) ? plan->rare_most : plan->most;
	uint8_t *room;

	p->base.written++;
	if (most > ROOM_MOST)
		return write_big(p, s, most, err);
	room = out_pen_room(&p->file.pen, most + WIRE_MOST + PERFETTO_ARGS_SLACK);
	if (!room)
		return out_pen_flush(&p->file.pen, err);
	p->file.pen.at = put_slice(room, s, most);
	return ST_OK;
}

static enum status no_place(struct perfetto *p, const struct track *k)
{
	trace_lose(p->trace, k->process, LOSS_NO_PLACE, 1);
	return ST_OK;
}

/* After the descriptor of its row is in the file, its texts may be. */
static inline enum status know(struct perfetto *p, struct slice *s, struct error *err)
{
	if (s->known)
		return ST_OK;
	return perfetto_known_make(&p->names, s->event, flags_of(p, s->event), &s->known, err);
}

static enum status put_interval(struct perfetto *p, const struct event *e, const struct track *k,
				enum perfetto_role role, uint64_t flow,
				const struct perfetto_known *known, struct error *err)
{
	struct perfetto_heads *h = &p->rows.heads;
	struct slice s = {.event = e, .track = k, .flow = flow, .known = known,
			  .small = &h->begin, .wide = &h->wide, .end = &h->end};
	struct perfetto_lane *lane;
	struct perfetto_row *row;

	TRY(perfetto_row(&p->rows, e->track, role, &row, err));
	TRY(perfetto_row_place(&p->rows, row, e->begin_ns, e->end_ns, &lane, err));
	if (!lane)
		return no_place(p, k);
	s.lane = &lane->track;
	TRY(know(p, &s, err));
	return write_slice(p, &s, err);
}

static enum status put_instant(struct perfetto *p, const struct event *e, const struct track *k,
			       enum perfetto_role role, uint64_t flow, struct error *err)
{
	struct perfetto_heads *h = &p->rows.heads;
	struct slice s = {.event = e, .track = k, .flow = flow,
			  .known = perfetto_known_find(&p->names, e),
			  .small = &h->instant, .wide = &h->wide_instant};
	struct perfetto_lane *lane;
	struct perfetto_row *row;

	TRY(perfetto_row(&p->rows, e->track, role, &row, err));
	TRY(perfetto_row_first(&p->rows, row, &lane, err));
	if (!lane)
		return no_place(p, k);
	s.lane = &lane->track;
	TRY(know(p, &s, err));
	return write_slice(p, &s, err);
}

/* ---- arrows ---- */

/* Both ends of an arrow have its number, which no other file of the job has. */
static uint64_t launch_flow(const struct perfetto *p, const struct event *e, const struct track *k)
{
	if (!e->correlation)
		return 0;
	return hash_word(p->rows.processes[k->process].space, e->correlation);
}

static uint64_t mark_flow(const struct perfetto *p, const struct event *e, const struct track *k)
{
	if (e->subkind != MARK_FLOW_BEGIN && e->subkind != MARK_FLOW_END)
		return 0;
	return hash_word(~p->rows.processes[k->process].space, hash_word(e->name, e->number));
}

/* A runtime call and the driver call in it have one correlation id: the outer begins the arrow. */
static uint64_t call_flow(struct perfetto *p, const struct event *e, const struct track *k)
{
	if (e->subkind != API_DRIVER)
		p->last_call[e->track] = e->correlation;
	else if (p->last_call[e->track] == e->correlation)
		return 0;
	return launch_flow(p, e, k);
}

/* ---- events by the home of their track ---- */

static enum status put_on_stream(struct perfetto *p, const struct event *e, const struct track *k,
				 struct error *err)
{
	const struct perfetto_known *known = perfetto_known_find(&p->names, e);
	unsigned flags = known ? known->flags : flags_of(p, e);

	if (e->kind == KIND_MARK)
		return put_instant(p, e, k, ROLE_RANGES, mark_flow(p, e, k), err);
	if (e->kind == KIND_SYNC)
		return put_interval(p, e, k, ROLE_WAITS, launch_flow(p, e, k), known, err);
	if (!event_is_gpu_work(e))
		return put_interval(p, e, k, ROLE_RANGES, 0, known, err);
	TRY(perfetto_derive_work(&p->derive, p->rows.gpu_of[e->track], class_of(e, flags), e, err));
	return put_interval(p, e, k, ROLE_MAIN, launch_flow(p, e, k), known, err);
}

static enum status put_on_thread(struct perfetto *p, const struct event *e, const struct track *k,
				 struct error *err)
{
	const struct perfetto_known *known = perfetto_known_find(&p->names, e);
	uint64_t flow = 0;

	switch (e->kind) {
	case KIND_MARK:
		return put_instant(p, e, k, ROLE_MAIN, mark_flow(p, e, k), err);
	case KIND_ALLOC:
	case KIND_FREE:
	case KIND_COUNTER:
		return no_place(p, k);
	}
	if (e->kind == KIND_API) {
		unsigned flags = known ? known->flags : flags_of(p, e);

		flow = call_flow(p, e, k);
		if (flow && flags & NAME_LAUNCHES)
			TRY(perfetto_derive_launch(&p->derive, k->process, e, err));
	}
	return put_interval(p, e, k, ROLE_MAIN, flow, known, err);
}

static enum status put_on_pool(struct perfetto *p, const struct event *e, const struct track *k,
			       struct error *err)
{
	bool has_place;

	if (e->kind != KIND_ALLOC && e->kind != KIND_FREE)
		return no_place(p, k);
	TRY(perfetto_derive_memory(&p->derive, e, &has_place, err));
	if (!has_place)
		return no_place(p, k);
	if (p->args.all) /* addresses and the like; else the counter is all */
		return put_instant(p, e, k, ROLE_MAIN, 0, err);
	p->base.written++;
	return ST_OK;
}

static enum status put_on_counter(struct perfetto *p, const struct event *e, const struct track *k,
				  struct error *err)
{
	struct perfetto_row *row;
	bool has_place;

	if (e->kind != KIND_COUNTER)
		return no_place(p, k);
	TRY(perfetto_row(&p->rows, e->track, ROLE_MAIN, &row, err));
	TRY(perfetto_put_sample(&p->rows, row, e->begin_ns, e->value, &has_place, err));
	if (!has_place)
		return no_place(p, k);
	p->base.written++;
	return ST_OK;
}

static void note_time(struct times *t, const struct event *e)
{
	if (!t->last_ns)
		t->first_ns = e->begin_ns;
	if (e->end_ns > t->last_ns)
		t->last_ns = e->end_ns;
}

static inline const struct track *track_of(const struct perfetto *p, const struct event *e)
{
	return &p->tracks[e->track <= p->rows.track_count ? e->track : 0];
}

static enum status put_event(struct perfetto *p, const struct event *e, struct error *err)
{
	const struct track *k = track_of(p, e);

	if (p->process && k->process != p->process)
		return ST_OK;
	if (!k->process)
		return no_place(p, k);
	note_time(&p->times[k->process], e);
	switch (k->home) {
	case HOME_STREAM:
		return put_on_stream(p, e, k, err);
	case HOME_THREAD:
		return put_on_thread(p, e, k, err);
	case HOME_POOL:
		return put_on_pool(p, e, k, err);
	case HOME_COUNTER:
		return put_on_counter(p, e, k, err);
	}
	return no_place(p, k);
}

/* ---- steps and phases ---- */

/* They are of the whole input; what was cut out of this output has none here. */
static bool is_here(const struct perfetto *p, uint32_t process, uint64_t begin_ns, uint64_t end_ns)
{
	const struct times *t = &p->times[process];

	return (!p->process || process == p->process) && t->last_ns &&
	       end_ns >= t->first_ns && begin_ns <= t->last_ns;
}

static enum status need_row(struct perfetto *p, struct perfetto_row **row, const char *name,
			    uint32_t process, struct error *err)
{
	struct perfetto_row what = {.process = process, .form = FORM_FLAT, .name = name};

	return *row ? ST_OK : perfetto_row_add(&p->rows, &what, row, err);
}

/* One token of colour for each phase. */
static const char *phase_token(unsigned phase)
{
	switch (phase) {
	case PHASE_DATA:
		return "data";
	case PHASE_FORWARD:
		return "forward";
	case PHASE_BACKWARD:
		return "backward";
	case PHASE_OPTIMIZER:
		return "optimizer";
	case PHASE_COMMUNICATION:
		return "comm";
	case PHASE_CHECKPOINT:
	case PHASE_VALIDATION:
		return "aside";
	default:
		return "other";
	}
}

/* Time in no phase is left empty. */
static enum status end_phase(struct perfetto *p, struct of_process *own, struct error *err)
{
	const struct stretch *s = &own->open;
	uint64_t name, token;

	if (s->begin_ns == s->end_ns || s->phase == PHASE_OTHER)
		return ST_OK;
	TRY(need_row(p, &own->phases, "Phases", s->process, err));
	TRY(perfetto_word(&p->file, SPACE_NAME, step_phase(p->step, s->phase).name, &name, err));
	TRY(perfetto_word(&p->file, SPACE_CATEGORY, phase_token(s->phase), &token, err));
	return perfetto_put_span(&p->rows, own->phases, name, token, s->begin_ns, s->end_ns, err);
}

static enum status put_stretch(struct perfetto *p, const struct stretch *s, struct error *err)
{
	struct of_process *own = &p->own[s->process];

	if (!is_here(p, s->process, s->begin_ns, s->end_ns))
		return ST_OK;
	if (own->open.end_ns == s->begin_ns && own->open.phase == s->phase &&
	    own->open.step == s->step && !s->begins_step) {
		own->open.end_ns = s->end_ns;
		return ST_OK;
	}
	TRY(end_phase(p, own, err));
	own->open = *s;
	return ST_OK;
}

static enum status put_mark(struct perfetto *p, const struct step_mark *m, struct error *err)
{
	struct of_process *own = &p->own[m->process];
	struct perfetto_heads *h = &p->rows.heads;
	struct perfetto_lane *lane;
	uint64_t token;
	uint8_t *room, *end;

	if (!is_here(p, m->process, m->begin_ns, m->end_ns))
		return ST_OK;
	TRY(need_row(p, &own->steps, "Steps", m->process, err));
	TRY(perfetto_word(&p->file, SPACE_CATEGORY, "step", &token, err));
	TRY(perfetto_row_place(&p->rows, own->steps, m->begin_ns, m->end_ns, &lane, err));
	if (!lane)
		return ST_OK;
	room = out_pen_room(&p->file.pen, WIRE_MOST);
	if (!room)
		return out_pen_flush(&p->file.pen, err);
	end = wire_put_numbered(wire_begin(room, m->begin_ns, &h->begin, &lane->track), "step ",
				m->number);
	end = wire_put_category(end, token);
	wire_end(room, &h->begin, m->begin_ns, end);
	p->file.pen.at = wire_put_end(end, m->end_ns, &h->end, &lane->track);
	return ST_OK;
}

static enum status put_steps(struct perfetto *p, struct error *err)
{
	const struct stretch *stretches;
	const struct step_mark *marks;
	size_t count = p->step ? step_marks(p->step, &marks) : 0;

	for (size_t i = 0; i < count; i++)
		TRY(put_mark(p, &marks[i], err));
	count = p->step ? step_stretches(p->step, &stretches) : 0;
	for (size_t i = 0; i < count; i++)
		TRY(put_stretch(p, &stretches[i], err));
	return ST_OK;
}

/* ---- the sink ---- */

static void sink_free(struct sink *s)
{
	struct perfetto *p = (struct perfetto *)s;

	if (!p)
		return;
	perfetto_derive_release(&p->derive);
	perfetto_names_release(&p->names);
	perfetto_args_release(&p->args);
	perfetto_rows_release(&p->rows);
	perfetto_file_release(&p->file);
	buf_release(&p->big);
	free(p->own);
	free(p->times);
	free(p->last_call);
	free(p->name_flags);
	free(p->tracks);
	free(p);
}

static enum status make_parts(struct perfetto *p, const struct sink_request *req,
			      struct error *err)
{
	TRY(perfetto_file_init(&p->file, req->trace, req->out, req->process, err));
	TRY(perfetto_rows_init(&p->rows, &p->file, err));
	TRY(perfetto_args_init(&p->args, &p->file, req->all_args, err));
	TRY(perfetto_names_init(&p->names, &p->args, err));
	TRY(perfetto_derive_init(&p->derive, &p->rows, err));
	buf_init(&p->big, BIG_CEILING);
	p->own = calloc(p->rows.process_count + 1, sizeof(*p->own));
	p->times = calloc(p->rows.process_count + 1, sizeof(*p->times));
	p->last_call = calloc(p->rows.track_count + 1, sizeof(*p->last_call));
	p->name_flags = calloc((size_t)p->file.names + 1, 1);
	p->tracks = calloc(p->rows.track_count + 1, sizeof(*p->tracks));
	if (!p->own || !p->times || !p->last_call || !p->name_flags || !p->tracks)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a list of tracks");
	for (uint32_t id = 0; id <= p->rows.track_count; id++)
		p->tracks[id] = *trace_get_track(p->trace, id);
	return ST_OK;
}

static enum status sink_open(struct sink **out, const struct sink_request *req, struct error *err)
{
	struct perfetto *p = calloc(1, sizeof(*p));
	enum status status;

	*out = NULL;
	if (!p)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the writer of Perfetto's format");
	p->base.type = &sink_perfetto;
	p->trace = req->trace;
	p->step = req->step;
	p->rules = req->rules;
	p->process = req->process;
	status = make_parts(p, req, err);
	if (status != ST_OK) {
		sink_free(&p->base);
		return status;
	}
	*out = &p->base;
	return ST_OK;
}

/*
 * Of a thousand processes each event is of another one, and nothing of that is in the caches.  So
 * what events need is asked of the memory some events before their turn, one step after the other
 * where one tells where the next one is.
 */
static void near_track(const struct perfetto *p, const struct event *e)
{
	const struct track *k = track_of(p, e);

	__builtin_prefetch(k);
	__builtin_prefetch(&p->rows.rows[(size_t)(k - p->tracks) * ROLE_COUNT + ROLE_MAIN]);
}

static void near_row(const struct perfetto *p, const struct event *e)
{
	const struct track *k = track_of(p, e);

	__builtin_prefetch(p->rows.rows[(size_t)(k - p->tracks) * ROLE_COUNT + ROLE_MAIN], 1);
	perfetto_derive_near(&p->derive, k->process, p->rows.gpu_of[k - p->tracks]);
}

static void near_call(const struct perfetto *p, const struct event *e)
{
	const struct track *k = track_of(p, e);

	if (k->home == HOME_STREAM || e->kind == KIND_API)
		perfetto_derive_near_call(&p->derive, k->process, p->rows.gpu_of[k - p->tracks],
					  e->correlation);
}

/* Place `i` of events whose turn is NEAR_TRACK later. */
static void near_event(const struct perfetto *p, const struct event *events, size_t count, size_t i)
{
	if (i < count)
		near_track(p, &events[i]);
	i -= NEAR_TRACK - NEAR_ROW; /* before the first one it is beyond any count */
	if (i < count)
		near_row(p, &events[i]);
	i -= NEAR_ROW - NEAR_CALL;
	if (i < count)
		near_call(p, &events[i]);
}

static enum status sink_put(struct sink *s, const struct event *events, size_t count,
			    struct error *err)
{
	struct perfetto *p = (struct perfetto *)s;
	size_t lead = p->rows.process_count > MANY && !p->process ? NEAR_TRACK : 0;

	for (size_t i = 0; i < count + lead; i++) {
		if (lead)
			near_event(p, events, count, i);
		if (i >= lead)
			TRY(put_event(p, &events[i - lead], err));
	}
	return put_steps(p, err);
}

static enum status sink_close(struct sink *s, struct error *err)
{
	struct perfetto *p = (struct perfetto *)s;

	for (size_t i = 0; i <= p->rows.process_count; i++)
		TRY(end_phase(p, &p->own[i], err));
	TRY(perfetto_derive_end(&p->derive, err));
	TRY(perfetto_put_attributes(&p->file, p->process, p->base.written, err));
	return out_pen_flush(&p->file.pen, err);
}

const struct sink_type sink_perfetto = {
	.name = "perfetto",
	.help = "Perfetto's protobuf; with -o FOLDER a file for each process, else one timeline",
	.scope = SINK_EITHER,
	.is_binary = true,
	.file_name = "{host}_{pid}.{rank}.pftrace",
	.needs = NEED_STEP,
	.open = sink_open,
	.put = sink_put,
	.close = sink_close,
	.free = sink_free,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Perfetto's protobuf: slices on the rows of rows.c, arrows from calls to their work,
 * counters, instants, and derived rows: steps, phases, GPU time.
 *
 * Files of several processes may be concatenated, compressed by gzip or not, to one timeline.  A
 * slice is a begin packet directly followed by its end packet.  Readers sort packets by time, and
 * an end closes the innermost slice of its track; that is the right one, because the intervals of a
 * subtrack are nested or disjoint.
 */
#include "convert/sink/perfetto/derive.h"
#include "convert/sink/sink.h"
#include "convert/stage/path_sums.h"
#include "schemas/model/call.h"

#include <stdlib.h>

enum { RESERVE_MOST = 32 * 1024 };

enum name_flag { NAME_CHECKED = 1, NAME_COMMUNICATES = 2, NAME_LAUNCHES = 4 };

struct of_process {
	struct perfetto_row *steps, *phases;
	/* Adjacent intervals with the same phase so far; empty: there is none. */
	struct phase_interval open;
	uint64_t first_ns, last_ns; /* first begin and last end of its events in the file; last_ns
				     * 0: none yet */
};
struct perfetto {
	struct sink base; /* base.lines: an event that is larger than the output can reserve */
	const struct context *context;
	const struct name_rules *rules;
	struct perfetto_file file;
	struct perfetto_rows rows;
	struct perfetto_args args;
	struct perfetto_derive derive;
	struct of_process *own; /* by process */
	uint64_t *last_call;    /* correlation of the last runtime call, by track */
	uint8_t *name_flags;    /* enum name_flag, by name */
	struct track *tracks;   /* copy of the trace's tracks in one array, for the cache */
	uint64_t path_key;      /* number of the name of the path argument */
};

static unsigned flags_of(struct perfetto *p, const struct event *e)
{
	const char *text;
	size_t len;
	unsigned flags = NAME_CHECKED;

	if (e->name > p->file.names)
		return 0;
	if (p->name_flags[e->name])
		return p->name_flags[e->name];
	text = trace_text(p->base.trace, e->name, &len);
	if (p->rules && name_rules_communicates(p->rules, text))
		flags |= NAME_COMMUNICATES;
	if (call_launches(text, len))
		flags |= NAME_LAUNCHES;
	p->name_flags[e->name] = (uint8_t)flags;
	return flags;
}

/* ---- packets of events ---- */

/* An event that is about to be written. */
struct slice {
	const struct event *event;
	const struct track *track;
	uint64_t flow; /* id of the arrow; 0: none */
	uint64_t path; /* number of its text; 0: not written */
	const struct perfetto_template *template;
	uint64_t name; /* 0: made from the event's number */
	const struct wire_track *subtrack;
	bool is_instant;
};

static uint8_t *put_slice(struct perfetto *p, uint8_t *packet, const struct slice *s, size_t most)
{
	struct perfetto_heads *h = &p->rows.heads;
	struct wire_head *small = s->is_instant ? &h->instant : &h->begin;
	struct wire_head *large = s->is_instant ? &h->wide_instant : &h->wide;
	bool is_wide = most > WIRE_SMALL;
	const struct event *e = s->event;
	uint8_t *at = is_wide ? wire_begin(packet, e->begin_ns, large, s->subtrack, WIRE_WIDE)
			      : wire_begin(packet, e->begin_ns, small, s->subtrack, 0);

	at = s->name ? wire_put_name(at, s->name) : wire_put_numbered(at, "step ", e->number);
	memcpy(at, s->template->category, sizeof(s->template->category));
	at += s->template->category_len;
	if (s->flow)
		at = wire_put_flow(at, s->flow);
	if (most)
		at = perfetto_put_args(at, s->template, e, s->track);
	if (s->path)
		at = perfetto_put_text_arg(at, p->path_key, s->path);
	if (is_wide)
		wire_end(packet, large, e->begin_ns, at, WIRE_WIDE);
	else
		wire_end(packet, small, e->begin_ns, at, 0);
	return s->is_instant ? at : wire_put_end(at, e->end_ns, &h->end, s->subtrack);
}

static enum status write_slice(struct perfetto *p, struct slice *s, struct error *err)
{
	const struct event *e = s->event;
	size_t most;
	uint8_t *at;

	/* The descriptor of the subtrack is already in the file; texts come after it. */
	TRY(perfetto_args_find(&p->args, e, &s->template, err));
	s->name = s->template->name;
	if (e->name && e->name <= p->file.names) {
		s->name = e->name;
		TRY(perfetto_need_name(&p->file, SPACE_NAME, e->name, err));
	}
	most = perfetto_is_rare(e) ? s->template->rare_most : s->template->most;
	if (p->args.all && path_is_argument(p->base.trace, e)) {
		TRY(perfetto_word(&p->file, SPACE_KEY, PATH_KEY, &p->path_key, err));
		TRY(perfetto_need_path(&p->file, e->path, &s->path, err));
		most += TEXT_ARG_MOST;
	}
	p->base.written++;
	if (most > RESERVE_MOST) {
		buf_clear(&p->base.lines);
		at = buf_reserve(&p->base.lines, most + WIRE_MOST + TEMPLATE_SLACK);
		TRY(buf_status(&p->base.lines, err));
		return out_cursor_put(&p->file.cursor, at, (size_t)(put_slice(p, at, s, most) - at),
				      err);
	}
	at = out_cursor_reserve(&p->file.cursor, most + WIRE_MOST + TEMPLATE_SLACK);
	if (!at)
		return out_cursor_flush(&p->file.cursor, err);
	p->file.cursor.at = put_slice(p, at, s, most);
	return ST_OK;
}

static enum status no_place(struct perfetto *p, const struct track *k)
{
	trace_lose(p->base.trace, k->process, LOSS_NO_PLACE, 1);
	return ST_OK;
}

static enum status put_interval(struct perfetto *p, const struct event *e, const struct track *k,
				enum perfetto_role role, uint64_t flow, struct error *err)
{
	struct slice s = { .event = e, .track = k, .flow = flow };
	struct perfetto_row *row;

	TRY(perfetto_row(&p->rows, e->track, role, &row, err));
	TRY(perfetto_row_place(&p->rows, row, e->begin_ns, e->end_ns, &s.subtrack, err));
	return s.subtrack ? write_slice(p, &s, err) : no_place(p, k);
}

static enum status put_instant(struct perfetto *p, const struct event *e, const struct track *k,
			       enum perfetto_role role, uint64_t flow, struct error *err)
{
	struct slice s = { .event = e, .track = k, .flow = flow, .is_instant = true };
	struct perfetto_row *row;

	TRY(perfetto_row(&p->rows, e->track, role, &row, err));
	TRY(perfetto_row_first(&p->rows, row, &s.subtrack, err));
	return s.subtrack ? write_slice(p, &s, err) : no_place(p, k);
}

/* ---- arrows ---- */

/* Returns the id of an arrow, which both of its ends have, and no other file of the job. */
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

/* ---- events by the type of their track ---- */

static enum status put_on_stream(struct perfetto *p, const struct event *e, const struct track *k,
				 struct error *err)
{
	enum gpu_class class;

	if (e->kind == KIND_MARK)
		return put_instant(p, e, k, ROLE_RANGES, mark_flow(p, e, k), err);
	if (e->kind == KIND_SYNC)
		return put_interval(p, e, k, ROLE_WAITS, launch_flow(p, e, k), err);
	if (!event_is_gpu_work(e))
		return put_interval(p, e, k, ROLE_RANGES, 0, err);
	class = event_class(e, e->kind == KIND_KERNEL && flags_of(p, e) & NAME_COMMUNICATES);
	TRY(perfetto_derive_work(&p->derive, p->rows.gpu_of[e->track], class, e, err));
	return put_interval(p, e, k, ROLE_MAIN, launch_flow(p, e, k), err);
}

static enum status put_on_thread(struct perfetto *p, const struct event *e, const struct track *k,
				 struct error *err)
{
	uint64_t flow = 0;

	switch (e->kind) {
	case KIND_MARK:
		return put_instant(p, e, k, ROLE_MAIN, mark_flow(p, e, k), err);
	case KIND_ALLOC:
	case KIND_FREE:
	case KIND_COUNTER:
		return no_place(p, k);
	case KIND_API:
		/* A runtime call and the driver call inside it have the same correlation id.  The
		 * arrow begins at the outer one. */
		if (e->subkind != API_DRIVER)
			p->last_call[e->track] = e->correlation;
		if (e->subkind != API_DRIVER || p->last_call[e->track] != e->correlation)
			flow = launch_flow(p, e, k);
		if (flow && (e->subkind == API_OF_KERNEL || flags_of(p, e) & NAME_LAUNCHES))
			TRY(perfetto_derive_call(&p->derive, k->process, e, err));
	}
	return put_interval(p, e, k, ROLE_MAIN, flow, err);
}

static enum status put_on_allocator(struct perfetto *p, const struct event *e,
				    const struct track *k, struct error *err)
{
	bool has_place;

	if (e->kind != KIND_ALLOC && e->kind != KIND_FREE)
		return no_place(p, k);
	TRY(perfetto_derive_memory(&p->derive, e, &has_place, err));
	if (!has_place)
		return no_place(p, k);
	if (p->args.all) /* has addresses and the like; otherwise only the counter is written */
		return put_instant(p, e, k, ROLE_MAIN, 0, err);
	p->base.written++;
	return ST_OK;
}

static enum status put_event(struct perfetto *p, const struct event *e, struct error *err)
{
	const struct track *k = &p->tracks[e->track <= p->rows.track_count ? e->track : 0];
	struct of_process *own = &p->own[k->process];
	struct perfetto_row *row;
	bool has_place;

	if (p->base.process && k->process != p->base.process)
		return ST_OK;
	if (!k->process)
		return no_place(p, k);
	if (!own->last_ns)
		own->first_ns = e->begin_ns;
	if (e->end_ns > own->last_ns)
		own->last_ns = e->end_ns;
	switch (k->type) {
	case TRACK_STREAM:
		return put_on_stream(p, e, k, err);
	case TRACK_THREAD:
		return put_on_thread(p, e, k, err);
	case TRACK_ALLOCATOR:
		return put_on_allocator(p, e, k, err);
	case TRACK_COUNTER:
		if (e->kind != KIND_COUNTER)
			break;
		TRY(perfetto_row(&p->rows, e->track, ROLE_MAIN, &row, err));
		TRY(perfetto_put_sample(&p->rows, row, e->begin_ns, e->value, &has_place, err));
		if (!has_place)
			break;
		p->base.written++;
		return ST_OK;
	}
	return no_place(p, k);
}

/* ---- steps and phases ---- */

/* Returns whether a span of time overlaps the events of this file.  Batches have steps and phases
 * of the whole input; those outside the filtered events are left out. */
static bool is_here(const struct perfetto *p, uint32_t process, uint64_t begin_ns, uint64_t end_ns)
{
	const struct of_process *own = &p->own[process];

	return (!p->base.process || process == p->base.process) && own->last_ns &&
	       end_ns >= own->first_ns && begin_ns <= own->last_ns;
}

/* Categories by which viewers choose the colours of phases. */
static const char *const phase_categories[] = {
	[PHASE_DATA] = "data",          [PHASE_FORWARD] = "forward",
	[PHASE_BACKWARD] = "backward",  [PHASE_OPTIMIZER] = "optimizer",
	[PHASE_COMMUNICATION] = "comm", [PHASE_CHECKPOINT] = "aside",
	[PHASE_VALIDATION] = "aside",
};
enum { PHASE_CATEGORIES = sizeof(phase_categories) / sizeof(*phase_categories) };

/* Writes the open phase interval.  Time without a phase is left empty. */
static enum status end_phase(struct perfetto *p, struct of_process *own, struct error *err)
{
	const struct phase_interval *s = &own->open;
	const char *category = s->phase < PHASE_CATEGORIES ? phase_categories[s->phase] : NULL;
	static const struct perfetto_row row = {
		.form = FORM_FLAT, .on_top = true, .rank = TOP_PHASES, .name = "Phases"
	};
	uint64_t name, category_id;

	if (s->begin_ns == s->end_ns || s->phase == PHASE_OTHER)
		return ST_OK;
	TRY(perfetto_row_need(&p->rows, &own->phases, &row, s->process, 0, err));
	TRY(perfetto_word(&p->file, SPACE_NAME, context_phase(p->context, s->phase).name, &name,
			  err));
	TRY(perfetto_word(&p->file, SPACE_CATEGORY, category ? category : "other", &category_id,
			  err));
	return perfetto_put_span(&p->rows, own->phases, name, 0, category_id, s->begin_ns,
				 s->end_ns, err);
}

static enum status put_phase_interval(struct perfetto *p, const struct phase_interval *s,
				      struct error *err)
{
	struct of_process *own = &p->own[s->process];

	if (!is_here(p, s->process, s->begin_ns, s->end_ns))
		return ST_OK;
	if (phase_interval_extend(&own->open, s))
		return ST_OK;
	TRY(end_phase(p, own, err));
	own->open = *s;
	return ST_OK;
}

static enum status put_mark(struct perfetto *p, const struct step_mark *m, struct error *err)
{
	static const struct perfetto_row row = {
		.form = FORM_FLAT, .on_top = true, .rank = TOP_STEPS, .name = "Steps"
	};
	struct of_process *own = &p->own[m->process];
	uint64_t category;

	if (!is_here(p, m->process, m->begin_ns, m->end_ns))
		return ST_OK;
	TRY(perfetto_row_need(&p->rows, &own->steps, &row, m->process, 0, err));
	TRY(perfetto_word(&p->file, SPACE_CATEGORY, "step", &category, err));
	return perfetto_put_span(&p->rows, own->steps, 0, m->number, category, m->begin_ns,
				 m->end_ns, err);
}

/* ---- the sink ---- */

static enum status perfetto_open(struct sink *s, const struct sink_request *req, struct error *err)
{
	struct perfetto *p = (struct perfetto *)s;

	p->context = req->context;
	p->rules = req->rules;
	TRY(perfetto_file_init(&p->file, req->trace, req->out, req->process, err));
	TRY(perfetto_rows_init(&p->rows, &p->file, req->process, err));
	p->rows.has_memory = req->all_args;
	TRY(perfetto_args_init(&p->args, &p->file, req->all_args, err));
	TRY(perfetto_derive_init(&p->derive, &p->rows, err));
	TRY(vec_new(&p->own, p->rows.process_count + 1, err));
	TRY(vec_new(&p->last_call, p->rows.track_count + 1, err));
	TRY(vec_new(&p->name_flags, (size_t)p->file.names + 1, err));
	TRY(vec_new(&p->tracks, p->rows.track_count + 1, err));
	for (uint32_t id = 0; id <= p->rows.track_count; id++)
		p->tracks[id] = *trace_get_track(s->trace, id);
	return ST_OK;
}

static enum status perfetto_put(struct sink *s, const struct batch *batch, struct error *err)
{
	struct perfetto *p = (struct perfetto *)s;

	for (size_t i = 0; i < batch->count; i++)
		TRY(put_event(p, &batch->events[i], err));
	for (size_t i = 0; i < batch->mark_count; i++)
		TRY(put_mark(p, &batch->marks[i], err));
	for (size_t i = 0; i < batch->interval_count; i++)
		TRY(put_phase_interval(p, &batch->intervals[i], err));
	return ST_OK;
}

static enum status perfetto_close(struct sink *s, struct error *err)
{
	struct perfetto *p = (struct perfetto *)s;

	for (size_t i = 0; i <= p->rows.process_count; i++)
		TRY(end_phase(p, &p->own[i], err));
	TRY(perfetto_derive_end(&p->derive, err));
	TRY(perfetto_put_attributes(&p->file, p->base.process, p->base.written, err));
	return out_cursor_flush(&p->file.cursor, err);
}

static void perfetto_release(struct sink *s)
{
	struct perfetto *p = (struct perfetto *)s;

	perfetto_derive_release(&p->derive);
	templates_release(&p->args.templates);
	perfetto_rows_release(&p->rows);
	perfetto_file_release(&p->file);
	free(p->own);
	free(p->last_call);
	free(p->name_flags);
	free(p->tracks);
}

const struct sink_type sink_perfetto = {
	.name = "perfetto",
	.help = "Perfetto's protobuf; with -o FOLDER a file for each process, else one timeline",
	.scope = SINK_EITHER,
	.is_binary = true,
	.shows_all_args = true,
	.draws_arrows = true,
	.file_name = "{n.}{host}_{pid}.{rank}.pftrace",
	.needs = NEED_STEP,
	.needs_for_args = NEED_LINK,
	.size = sizeof(struct perfetto),
	.open = perfetto_open,
	.put = perfetto_put,
	.close = perfetto_close,
	.release = perfetto_release,
};

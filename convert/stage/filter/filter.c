/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/filter/filter.h"

#include "convert/stage/context/context.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Most events that began before `from` and end after it: a host has no more open at once. */
enum { HELD_MAX = 1 << 20 };
enum name_state { NAME_UNKNOWN, NAME_WANTED, NAME_UNWANTED };

/* An event whose begin was clipped.  It waits until all clipped events are known, because events
 * that begin at the same time are ordered by their ends. */
struct held {
	struct event event;
	struct launch launch;
	bool has_launch;
	uint64_t index;
};

struct process_marks {
	struct step_mark *items; /* all marks so far, in time order */
	size_t count, cap;
};

struct filter_stage {
	struct source source, *below;
	struct trace *trace;
	const struct filter *filter;
	uint64_t from_ns, to_ns;
	bool has_origin; /* the first event has come, so from_ns and to_ns are absolute */
	uint8_t *names;  /* enum name_state, by name */
	uint32_t name_count;
	struct held *held;
	size_t held_count, held_cap;
	bool is_released;               /* the held events were returned */
	enum status end;                /* status to return after the held events; ST_OK: none */
	struct error why;               /* the error of `below` */
	struct event *out;              /* the held events and the rest of the batch after them */
	const struct launch **launches; /* launches of the events in `out` */
	struct interval_list intervals; /* intervals received since the last batch was returned */
	struct step_mark *marks;
	size_t mark_count, mark_cap;
	struct process_marks *processes; /* by process; used only if steps are filtered */
	uint32_t process_count;
};

/* ---- which events are wanted ---- */

static bool track_is_wanted(const struct filter_stage *s, const struct track *track)
{
	if (!filter_wants_rank(s->filter, trace_get_process(s->trace, track->process)->rank))
		return false;
	return !s->filter->has_devices || track->device == NO_ID ||
	       filter_lists(&s->filter->device_list, track->device);
}

static bool name_is_wanted(struct filter_stage *s, uint32_t name)
{
	uint32_t at = name < s->name_count ? name : 0;

	if (!s->filter->names)
		return true;
	if (s->names[at] == NAME_UNKNOWN)
		s->names[at] = fnmatch(s->filter->names, trace_text(s->trace, at, NULL), 0) == 0
				       ? NAME_WANTED
				       : NAME_UNWANTED;
	return s->names[at] == NAME_WANTED;
}

/*
 * Returns whether `t`, which lies between the mark of step `number` and the next mark, is at most a
 * hundredth of the mark's length behind the mark (DEFINITIONS.md 1).  Such an event belongs to the
 * step.
 */
static bool is_in_grace(const struct filter_stage *s, uint32_t process, uint64_t number, uint64_t t)
{
	const struct process_marks *marks = &s->processes[process < s->process_count ? process : 0];
	size_t begun;

	SEARCH(begun, 0, marks->count, marks->items[begun].begin_ns <= t);
	const struct step_mark *mark = begun ? &marks->items[begun - 1] : NULL;
	if (!mark || mark->number < number)
		return true; /* its mark has no length, begins at t and comes with the next batch */
	return t <= mark->end_ns + (mark->end_ns - mark->begin_ns) / 100;
}

/* GPU work belongs to the step in which it was launched. */
static bool step_is_wanted(const struct filter_stage *s, const struct event *e,
			   const struct launch *launch, uint32_t process)
{
	uint64_t number = (uint64_t)(e->step & ~STEP_GAP) - 1;

	if (!s->filter->has_steps)
		return true;
	if (!e->step || number < s->filter->first_step || number >= s->filter->end_step)
		return false;
	return !(e->step & STEP_GAP) ||
	       is_in_grace(s, process, number, launch ? launch->begin_ns : e->begin_ns);
}

/* Clips the event to the bounds.  Returns false if nothing is left. */
static bool time_clip(const struct filter_stage *s, struct event *e)
{
	if (e->begin_ns >= s->to_ns)
		return false;
	if (e->begin_ns < s->from_ns) {
		if (e->end_ns <= s->from_ns)
			return false;
		e->begin_ns = s->from_ns;
		e->flags |= EVENT_BEGAN_EARLIER;
	}
	if (e->end_ns > s->to_ns) {
		e->end_ns = s->to_ns;
		e->flags |= EVENT_NEVER_ENDED;
	}
	return true;
}

static bool event_is_wanted(struct filter_stage *s, struct event *e, const struct launch *launch)
{
	const struct track *track = trace_get_track(s->trace, e->track);
	uint32_t kinds = s->filter->kinds_mask;
	bool kind_is_wanted = !kinds || (e->kind < 32 && (kinds >> e->kind & 1));
	bool wanted = step_is_wanted(s, e, launch, track->process) && kind_is_wanted &&
		      track_is_wanted(s, track) && name_is_wanted(s, e->name) && time_clip(s, e);

	if (!wanted)
		trace_lose(s->trace, track->process, LOSS_CUT_OUT, 1);
	return wanted;
}

/* ---- events whose begin was clipped ---- */

/* Holds a clipped event.  `whole` is the event before it was clipped: a held call remains the
 * launch of its GPU work with its full times. */
static enum status held_put(struct filter_stage *s, const struct event *e,
			    const struct event *whole, const struct launch *launch,
			    struct error *err)
{
	uint32_t words = e->args ? trace_get_schema(s->trace, e->schema)->arg_count : 0;
	uint64_t *args = NULL;

	if (s->held_count == HELD_MAX) {
		trace_lose(s->trace, trace_get_track(s->trace, e->track)->process, LOSS_CEILING, 1);
		return ST_OK;
	}
	TRY(vec_reserve(&s->held, &s->held_cap, s->held_count + 1, err));
	if (words) {
		args = malloc(words * sizeof(*args));
		if (!args)
			return fail_memory(err);
		memcpy(args, e->args, words * sizeof(*args));
	}
	struct held *held = &s->held[s->held_count];
	*held = (struct held){ .event = *e, .index = s->held_count, .has_launch = launch != NULL };
	held->event.args = args;
	s->held_count++;
	if (launch)
		held->launch = *launch;
	else if (e->kind == KIND_API && e->correlation) {
		held->has_launch = true;
		held->launch = (struct launch){
			.begin_ns = whole->begin_ns,
			.end_ns = whole->end_ns,
			.correlation = e->correlation,
			.track = e->track,
			.name = e->name,
			.path = e->path,
			.step = e->step,
			.phase = e->phase,
		};
	}
	return ST_OK;
}

/* Returns the held events in `out`, followed by those of `all` from `first` on, which begin later.
 */
static enum status held_release(struct filter_stage *s, const struct batch *all, size_t first,
				struct batch *out, struct error *err)
{
	size_t kept = s->held_count, count = s->held_count + all->count - first;

	s->is_released = true;
	if (!count)
		return ST_OK;
	s->out = malloc(count * sizeof(*s->out));
	s->launches = malloc(count * sizeof(*s->launches));
	if (!s->out || !s->launches)
		return fail_memory(err);
	SORT_BY(s->held, s->held_count, DOWN(struct held, event.end_ns), UP(struct held, index));
	for (size_t i = 0; i < s->held_count; i++) {
		s->out[i] = s->held[i].event;
		s->launches[i] = s->held[i].has_launch ? &s->held[i].launch : NULL;
	}
	for (size_t i = first; i < all->count; i++) {
		const struct launch *launch = batch_launch(all, &all->events[i]);

		if (!event_is_wanted(s, &all->events[i], launch))
			continue;
		s->launches[kept] = launch;
		s->out[kept++] = all->events[i];
	}
	out->events = s->out;
	out->launches = s->launches;
	out->count = kept;
	return ST_OK;
}

/* ---- the stage ---- */

static uint64_t later(uint64_t origin_ns, uint64_t ns)
{
	return ns > UINT64_MAX - origin_ns ? UINT64_MAX : origin_ns + ns;
}

void filter_times(const struct filter *filter, uint64_t first_ns, uint64_t *from_ns,
		  uint64_t *to_ns)
{
	uint64_t origin_ns = filter->has_origin ? filter->origin_ns : first_ns;

	*from_ns = filter->from_ns;
	*to_ns = filter->to_ns ? filter->to_ns : UINT64_MAX;
	if (!filter->times_relative)
		return;
	*from_ns = *from_ns ? later(origin_ns, *from_ns) : 0;
	*to_ns = later(origin_ns, *to_ns);
}

/* Moves the wanted events of *all to its front and returns them in `out`. */
static enum status batch_filter(struct filter_stage *s, struct batch *all, struct batch *out,
				struct error *err)
{
	struct event *events = all->events;
	size_t kept = 0;

	if (all->count && !s->has_origin) {
		s->has_origin = true;
		filter_times(s->filter, events[0].begin_ns, &s->from_ns, &s->to_ns);
	}
	for (size_t i = 0; i < all->count; i++) {
		const struct launch *launch = batch_launch(all, &events[i]);
		struct event whole = events[i];

		if (!s->is_released && events[i].begin_ns > s->from_ns)
			return held_release(s, all, i, out, err);
		if (!event_is_wanted(s, &events[i], launch))
			continue;
		if (!s->is_released) {
			TRY(held_put(s, &events[i], &whole, launch, err));
			continue;
		}
		if (kept != i)
			events[kept] = events[i];
		if (all->launches)
			all->launches[kept] = launch;
		kept++;
	}
	out->events = events;
	out->launches = all->launches;
	out->count = kept;
	return ST_OK;
}

static enum status filter_next(struct source *source, struct batch *out, struct error *err)
{
	struct filter_stage *s = (struct filter_stage *)source;
	enum status status = ST_OK;

	s->intervals.count = s->mark_count = 0;
	while (status == ST_OK && !out->count) {
		struct batch in = { .count = 0 };

		status = s->end ? s->end : source_next(s->below, &in, &s->why);
		/* Intervals and marks are not clipped: sinks draw them whole, and steps are
		 * measured by whole marks. */
		for (size_t i = 0; i < in.interval_count; i++)
			TRY(interval_list_add(&s->intervals, &in.intervals[i], 0, err));
		TRY(vec_reserve(&s->marks, &s->mark_cap, s->mark_count + in.mark_count, err));
		for (size_t i = 0; i < in.mark_count; i++) {
			const struct step_mark *mark = &in.marks[i];
			struct process_marks *of =
				&s->processes[mark->process < s->process_count ? mark->process : 0];

			s->marks[s->mark_count++] = *mark;
			if (!s->filter->has_steps)
				continue;
			TRY(vec_reserve(&of->items, &of->cap, of->count + 1, err));
			of->items[of->count++] = *mark;
		}
		if (status == ST_OK) {
			TRY(batch_filter(s, &in, out, err));
		} else if (!s->is_released) {
			TRY(held_release(s, &in, 0, out, err));
			if (out->count) {
				s->end = status;
				status = ST_OK;
			}
		}
	}
	out->intervals = s->intervals.items;
	out->interval_count = s->intervals.count;
	out->marks = s->marks;
	out->mark_count = s->mark_count;
	out->from_ns = s->from_ns;
	out->to_ns = s->to_ns;
	if (status == ST_OK || status == ST_END)
		return status;
	s->end = ST_END;
	return fail(err, status, s->why.at, "%s", s->why.text);
}

static void filter_close(struct source *source)
{
	struct filter_stage *s = (struct filter_stage *)source;

	source_close(s->below);
	for (size_t i = 0; i < s->held_count; i++)
		free((uint64_t *)s->held[i].event.args);
	for (uint32_t i = 0; s->processes && i < s->process_count; i++)
		free(s->processes[i].items);
	free(s->processes);
	free(s->held);
	free(s->out);
	free(s->launches);
	free(s->intervals.items);
	free(s->marks);
	free(s->names);
	free(s);
}

static const struct source_type filter_type = {
	.name = "filter",
	.help = "what was asked for",
	.next = filter_next,
	.close = filter_close,
};

enum status filter_open(struct source **out, struct source *below, struct trace *trace,
			const struct filter *filter, struct error *err)
{
	struct filter_stage *s;

	*out = below;
	if (filter_is_empty(filter))
		return ST_OK;
	*out = NULL;
	s = calloc(1, sizeof(*s));
	if (!s) {
		source_close(below);
		return fail_memory(err);
	}
	s->source.type = &filter_type;
	s->below = below;
	s->trace = trace;
	s->filter = filter;
	s->from_ns = filter->from_ns;
	s->to_ns = filter->to_ns ? filter->to_ns : UINT64_MAX;
	s->is_released = !filter->from_ns;
	s->name_count = trace_count(trace, TRACE_NAMES) + 1;
	s->process_count = trace_count(trace, TRACE_PROCESSES) + 1;
	s->names = calloc(s->name_count, 1);
	s->processes = calloc(s->process_count, sizeof(*s->processes));
	if (!s->names || !s->processes) {
		filter_close(&s->source);
		return fail_memory(err);
	}
	*out = &s->source;
	return ST_OK;
}

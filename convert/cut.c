/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/cut.h"

#include "convert/step.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Of events that began before `from` and reach into it: no more than a host has open at once. */
enum { HELD_MOST = 1 << 20 };
enum name_answer { NAME_UNASKED, NAME_IN, NAME_OUT };

struct held {
	struct event event;
	size_t index;
};

struct cut_stage {
	struct source source, *below;
	struct trace *trace;
	const struct cut *cut;
	uint64_t from_ns, to_ns;
	bool has_origin; /* the first event was seen, relative times are absolute */
	uint8_t *names;            /* enum name_answer by name */
	uint32_t name_count;
	struct held *held; /* begin is from_ns already, but the order is not there yet */
	size_t held_count, held_cap;
	struct event *out; /* what was held, in order, and the rest of that batch below */
	bool is_released;
};

/* What an event is by its track */

static bool track_is_wanted(const struct cut_stage *s, const struct track *track)
{
	const struct cut_list *devices = &s->cut->device_list;
	size_t i;

	if (s->cut->has_ranks &&
	    !cut_wants_rank(s->cut, trace_get_process(s->trace, track->process)->rank))
		return false;
	if (!s->cut->has_devices || track->device == NO_ID)
		return true;
	for (i = 0; i < devices->count; i++)
		if (track->device >= devices->first[i] && track->device <= devices->last[i])
			return true;
	return false;
}

static bool name_is_wanted(struct cut_stage *s, uint32_t name)
{
	uint32_t at = name < s->name_count ? name : 0;

	if (!s->cut->names)
		return true;
	if (s->names[at] == NAME_UNASKED)
		s->names[at] = fnmatch(s->cut->names, trace_text(s->trace, at, NULL), 0) == 0 ?
				       NAME_IN : NAME_OUT;
	return s->names[at] == NAME_IN;
}

static bool kind_is_wanted(const struct cut_stage *s, unsigned kind)
{
	if (!s->cut->kinds_mask)
		return true;
	return kind < 32 && (s->cut->kinds_mask >> kind & 1);
}

/* What begins between two marks is of the step before while it is near that. */
static bool step_is_wanted(const struct cut_stage *s, struct event *e)
{
	bool is_near = !(e->step & STEP_GAP) || (e->step & STEP_NEAR);
	uint64_t number;

	if (!s->cut->has_steps)
		return true;
	e->step &= ~STEP_NEAR;
	number = (uint64_t)(e->step & ~STEP_GAP) - 1;
	return e->step && is_near && number >= s->cut->first_step && number < s->cut->end_step;
}

/* Whether any of it is left.  Clips what is; a begin that moved is to be put in order again. */
static bool time_clip(const struct cut_stage *s, struct event *e)
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

static bool event_is_wanted(struct cut_stage *s, struct event *e)
{
	const struct track *track = trace_get_track(s->trace, e->track);
	bool wanted = step_is_wanted(s, e) && kind_is_wanted(s, e->kind) &&
		      track_is_wanted(s, track) && name_is_wanted(s, e->name) && time_clip(s, e);

	if (!wanted)
		trace_lose(s->trace, track->process, LOSS_CUT_OUT, 1);
	return wanted;
}

/* Events that begin at from_ns now */

static enum status held_put(struct cut_stage *s, const struct event *e, struct error *err)
{
	uint32_t words = e->vary ? trace_get_shape(s->trace, e->shape)->vary_count : 0;
	size_t cap = s->held_cap ? s->held_cap * 2 : 64;
	struct held *bigger, *held;
	uint64_t *vary = NULL;

	if (s->held_count == HELD_MOST) {
		trace_lose(s->trace, trace_get_track(s->trace, e->track)->process, LOSS_CEILING, 1);
		return ST_OK;
	}
	if (s->held_count == s->held_cap) {
		bigger = realloc(s->held, cap * sizeof(*bigger));
		if (!bigger)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for a cut");
		s->held = bigger;
		s->held_cap = cap;
	}
	if (words) {
		vary = malloc(words * sizeof(*vary));
		if (!vary)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for a cut");
		memcpy(vary, e->vary, words * sizeof(*vary));
	}
	held = &s->held[s->held_count];
	*held = (struct held){ .event = *e, .index = s->held_count };
	held->event.vary = vary;
	s->held_count++;
	return ST_OK;
}

static int held_compare(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	if (x->event.end_ns != y->event.end_ns)
		return x->event.end_ns > y->event.end_ns ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

/* With what comes behind them in one batch: who looks at the stages below after each batch of ours
 * must not see theirs twice. */
static enum status held_release(struct cut_stage *s, const struct batch *rest, struct batch *out,
				struct error *err)
{
	size_t i, kept = s->held_count;

	s->is_released = true;
	if (!s->held_count && !rest->count)
		return ST_OK;
	s->out = malloc((s->held_count + rest->count) * sizeof(*s->out));
	if (!s->out)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a cut");
	if (s->held_count)
		qsort(s->held, s->held_count, sizeof(*s->held), held_compare);
	for (i = 0; i < s->held_count; i++)
		s->out[i] = s->held[i].event;
	for (i = 0; i < rest->count; i++)
		if (event_is_wanted(s, &rest->events[i]))
			s->out[kept++] = rest->events[i];
	*out = (struct batch){ s->out, kept };
	return ST_OK;
}

/* The stage */

static uint64_t later(uint64_t origin_ns, uint64_t ns)
{
	return ns > UINT64_MAX - origin_ns ? UINT64_MAX : origin_ns + ns;
}

static void origin_set(struct cut_stage *s, const struct event *first)
{
	uint64_t origin_ns = s->cut->has_origin ? s->cut->origin_ns : first->begin_ns;

	s->has_origin = true;
	if (!s->cut->times_relative)
		return;
	s->from_ns = s->from_ns ? later(origin_ns, s->from_ns) : 0;
	s->to_ns = later(origin_ns, s->to_ns);
}

/* Leaves what is wanted of *all at its front. */
static enum status batch_cut(struct cut_stage *s, const struct batch *all, struct batch *out,
			     struct error *err)
{
	struct event *events = all->events;
	struct batch rest;
	size_t i, kept = 0;

	if (all->count && !s->has_origin)
		origin_set(s, &events[0]);
	for (i = 0; i < all->count; i++) {
		if (!s->is_released && events[i].begin_ns > s->from_ns) {
			rest = (struct batch){ events + i, all->count - i };
			return held_release(s, &rest, out, err);
		}
		if (!event_is_wanted(s, &events[i]))
			continue;
		if (!s->is_released) {
			TRY(held_put(s, &events[i], err));
			continue;
		}
		if (kept != i)
			events[kept] = events[i];
		kept++;
	}
	*out = (struct batch){ events, kept };
	return ST_OK;
}

static enum status cut_next(struct source *source, struct batch *out, struct error *err)
{
	struct cut_stage *s = (struct cut_stage *)source;
	struct batch batch, nothing = { .count = 0 };
	enum status status;

	*out = nothing;
	while (!out->count) {
		status = source_next(s->below, &batch, err);
		if (status != ST_OK && !s->is_released) {
			TRY(held_release(s, &nothing, out, err));
			if (out->count)
				return ST_OK; /* the end or the fault comes again */
		}
		TRY(status);
		TRY(batch_cut(s, &batch, out, err));
	}
	return ST_OK;
}

static void cut_close(struct source *source)
{
	struct cut_stage *s = (struct cut_stage *)source;
	size_t i;

	source_close(s->below);
	for (i = 0; i < s->held_count; i++)
		free((uint64_t *)s->held[i].event.vary);
	free(s->held);
	free(s->out);
	free(s->names);
	free(s);
}

static const struct source_type cut_type = {
	.name = "cut",
	.help = "what was asked for",
	.next = cut_next,
	.close = cut_close,
};

enum status cut_open(struct source **out, struct source *below, struct trace *trace,
		     const struct cut *cut, struct error *err)
{
	struct cut_stage *s;

	*out = below;
	if (cut_is_empty(cut))
		return ST_OK;
	*out = NULL;
	s = calloc(1, sizeof(*s));
	if (!s) {
		source_close(below);
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a cut");
	}
	s->source.type = &cut_type;
	s->below = below;
	s->trace = trace;
	s->cut = cut;
	s->from_ns = cut->from_ns;
	s->to_ns = cut->to_ns ? cut->to_ns : UINT64_MAX;
	s->is_released = !cut->from_ns;
	s->name_count = trace_count(trace, TRACE_NAMES) + 1;
	s->names = calloc(s->name_count, 1);
	if (!s->names) {
		cut_close(&s->source);
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a cut");
	}
	*out = &s->source;
	return ST_OK;
}

void cut_times(const struct source *source, uint64_t *from_ns, uint64_t *to_ns)
{
	const struct cut_stage *s = (const struct cut_stage *)source;
	bool is_cut = source->type == &cut_type;

	*from_ns = is_cut ? s->from_ns : 0;
	*to_ns = is_cut ? s->to_ns : UINT64_MAX;
}

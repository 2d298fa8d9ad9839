/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/context/internal.h"

#include "convert/name/name.h"
#include "schemas/base/vec.h"
#include "schemas/base/sort.h"
#include "schemas/model/call.h"

#include <stdlib.h>
#include <string.h>

enum { OPEN_MAX = 1 << 20 }; /* most ranges that may be open at once on one thread */

/* ---- ranges that are open ---- */

static enum status open_reserve(struct open_range **items, size_t *cap, size_t count,
				struct error *err)
{
	if (count > OPEN_MAX)
		return fail(err, ST_CEILING, NOWHERE, "more than %d ranges open at once", OPEN_MAX);
	return vec_reserve(items, cap, count, err);
}

/* Pushes a range.  Older ranges that end before it can never be the innermost again, so they are
 * removed. */
static enum status open_push(struct open_stack *s, struct open_range range, struct error *err)
{
	while (s->count && s->items[s->count - 1].end_ns <= range.end_ns)
		s->count--;
	TRY(open_reserve(&s->items, &s->cap, s->count + 1, err));
	s->items[s->count++] = range;
	return ST_OK;
}

/* Enters a range below the node e->path. */
static enum status path_push(struct host *h, struct host_thread *t, const struct event *e,
			     struct error *err)
{
	struct open_range node = { e->end_ns, trace_path(h->trace, e->path, e->name, e->subkind),
				   0 };
	const struct open_range *named;

	TRY(open_push(e->subkind == RANGE_PYTHON ? &t->python : &t->named, node, err));
	named = open_last(&t->named, e->begin_ns);
	node.named = named ? named->value : 0;
	TRY(open_push(&t->paths, node, err));
	return autograd_entered(h, t, e, node.value, err);
}

/* If ranges do not nest, the path of the innermost range may contain a range that has ended.  Then
 * the path is rebuilt from the innermost open range. */
uint32_t host_path(struct host *h, struct host_thread *t, uint64_t at_ns)
{
	const struct open_range *last = open_last(&t->paths, at_ns);
	const struct open_range *named = open_last(&t->named, at_ns);
	const struct open_range *python = open_last(&t->python, at_ns);

	if (!last)
		return t->root;
	if (last->named == (named ? named->value : 0) || (!named && !python))
		return last->value;
	if (named)
		return named->value;
	return trace_path(h->trace, t->root, trace_get_path(h->trace, python->value)->name,
			  RANGE_PYTHON);
}

/* Appends a range, unless it ends before an open one: then it can never be the outermost. */
static enum status open_append(struct open_queue *q, struct open_range range, struct error *err)
{
	if (q->head < q->end && q->items[q->end - 1].end_ns >= range.end_ns)
		return ST_OK;
	if (q->head && q->head >= q->end - q->head) {
		memmove(q->items, q->items + q->head, (q->end - q->head) * sizeof(*q->items));
		q->end -= q->head;
		q->head = 0;
	}
	TRY(open_reserve(&q->items, &q->cap, q->end + 1, err));
	q->items[q->end++] = range;
	return ST_OK;
}

static const struct open_range *open_first(struct open_queue *q, uint64_t t)
{
	while (q->head < q->end && q->items[q->head].end_ns <= t)
		q->head++;
	return q->head < q->end ? &q->items[q->head] : NULL;
}

/* ---- names ---- */

static const char *host_text(const struct host *h, uint32_t name)
{
	return trace_text(h->trace, name, NULL);
}

bool host_name_is_step(struct host *h, uint32_t name, uint64_t *number)
{
	struct name_info *n = host_name_info(h, name);

	if (!n->step_known) {
		n->is_step = name_rules_step(h->rules, host_text(h, name), &n->number);
		n->grammar =
			n->is_step ? (uint8_t)name_rules_grammar(h->rules, host_text(h, name)) : 0;
		n->step_known = n != h->names;
	}
	if (n->is_step && number)
		*number = n->number;
	return n->is_step;
}

bool host_name_only_marks(struct host *h, uint32_t name)
{
	return host_name_is_step(h, name, NULL) && !host_name_info(h, name)->grammar;
}

/* Returns the phase of a range's name.  `is_pushed`: the range was pushed through tacho.h. */
static uint8_t name_phase(struct host *h, uint32_t name, bool is_pushed)
{
	struct name_info *n = host_name_info(h, name);

	if (is_pushed && !n->pushed_known) {
		n->pushed = (uint8_t)name_rules_pushed(h->rules, host_text(h, name));
		n->pushed_known = n != h->names;
	}
	if (!is_pushed && !n->mapped_known) {
		n->mapped = (uint8_t)name_rules_phase(h->rules, host_text(h, name));
		n->mapped_known = n != h->names;
	}
	return is_pushed ? n->pushed : n->mapped;
}

bool host_has_forward(struct host *h, uint32_t schema)
{
	bool is_late = schema > h->schema_count; /* not cached */

	if (schema && (is_late || !h->has_forward[schema])) {
		const struct attr *a = trace_find_attr(h->trace, schema, "fwd_thread");
		bool is = a && a->type == ATTR_U64 && a->bits;

		if (is_late)
			return is;
		h->has_forward[schema] = is ? 2 : 1;
	}
	return schema && h->has_forward[schema] == 2;
}

bool host_is_autograd(struct host *h, uint32_t name, uint32_t schema)
{
	struct name_info *n = host_name_info(h, name);

	if (!n->autograd_known) {
		n->is_autograd = name_is_autograd(host_text(h, name));
		n->autograd_known = n != h->names;
	}
	return n->is_autograd || host_has_forward(h, schema);
}

/* Returns the phase id of an unmapped annotation.  Names that come after all ids are used share the
 * last id. */
static uint8_t annotation_phase(struct host *h, uint32_t name)
{
	struct name_info *n = host_name_info(h, name);

	if (n->phase)
		return n->phase;
	if (h->phase_count == PHASE_IDS)
		return PHASE_IDS - 1;
	h->phase_names[h->phase_count] = h->phase_count == PHASE_IDS - 1 ? 0 : name;
	n->phase = (uint8_t)h->phase_count++;
	return n->phase;
}

/* ---- threads, from the tables ---- */

struct thread_key {
	uint64_t id;
	uint32_t process, track;
};

/* Finds the thread of each allocator track: the thread with the same id. */
static enum status find_allocator_threads(struct host *h, struct error *err)
{
	struct thread_key *keys;
	size_t count = 0;

	TRY(vec_new(&keys, h->thread_count + 1, err));
	for (uint32_t i = 1; i <= h->thread_count; i++)
		if (h->threads[i].type == TRACK_THREAD)
			keys[count++] = (struct thread_key){ trace_get_track(h->trace, i)->id,
							     h->threads[i].process, i };
	SORT_BY(keys, count, UP(struct thread_key, process), UP(struct thread_key, id));
	for (uint32_t i = 1; i <= h->thread_count; i++) {
		uint64_t id = trace_get_track(h->trace, i)->id;
		uint32_t process = h->threads[i].process;
		size_t at;

		if (h->threads[i].type != TRACK_ALLOCATOR)
			continue;
		SEARCH(at, 0, count,
		       keys[at].process < process ||
			       (keys[at].process == process && keys[at].id < id));
		if (at < count && keys[at].process == process && keys[at].id == id)
			h->threads[i].host = keys[at].track;
	}
	free(keys);
	return ST_OK;
}

/* Collects facts about tracks from an event descriptor.  Marks by tacho_step() take precedence over
 * ranges that look like steps.  If several threads mark steps, the first one to do so is the step
 * thread. */
static void take_desc(struct host *h, const struct event_desc *desc)
{
	struct host_thread *t = host_thread(h, desc->track);
	struct host_process *p = &h->processes[t->process];
	enum mark_source marks = desc->kind == KIND_STEP ? MARKS_STEP : MARKS_RANGE;
	uint8_t grammar;

	if (t->type != TRACK_THREAD || !t->process)
		return;
	if (desc->kind == KIND_RANGE && desc->subkind == RANGE_OP &&
	    host_is_autograd(h, desc->name, desc->schema)) {
		t->runs_autograd = true;
		p->has_numbers |= host_has_forward(h, desc->schema);
	}
	if (marks == MARKS_RANGE &&
	    (p->marks == MARKS_STEP || desc->kind != KIND_RANGE ||
	     (desc->subkind != RANGE_ANNOTATION && desc->subkind != RANGE_NVTX) ||
	     !host_name_is_step(h, desc->name, NULL)))
		return;
	grammar = marks == MARKS_RANGE ? host_name_info(h, desc->name)->grammar : 0;
	if (p->marks != marks || grammar < p->grammar) {
		p->marks = (uint8_t)marks;
		p->grammar = grammar;
		p->step_thread = desc->track;
		p->is_undecided = false;
	} else if (p->grammar == grammar && p->step_thread != desc->track) {
		p->is_undecided = true;
	}
}

/* For processes without marks, finds threads that wait for the GPU, and threads that run both
 * autograd and the training loop: there the engine was called directly and has no thread of its
 * own. */
static void find_habits(struct host *h, const struct event_desc *desc)
{
	struct host_thread *t = host_thread(h, desc->track);
	uint8_t phase;
	size_t len;

	if (t->type != TRACK_THREAD || h->processes[t->process].marks != MARKS_NONE)
		return;
	if (desc->kind == KIND_API && !t->waits) {
		const char *name = trace_text(h->trace, desc->name, &len);

		t->waits = (call_traits(name, len) & CALL_WAITS) != 0;
	}
	if (!t->runs_autograd || t->runs_loop || desc->kind != KIND_RANGE ||
	    (desc->subkind != RANGE_ANNOTATION && desc->subkind != RANGE_PHASE &&
	     desc->subkind != RANGE_NVTX))
		return;
	phase = name_phase(h, desc->name, desc->subkind == RANGE_PHASE);
	t->runs_loop = phase == PHASE_DATA || phase == PHASE_OPTIMIZER ||
		       phase == PHASE_VALIDATION || phase == PHASE_CHECKPOINT;
}

/* Returns how well a thread suits as step thread: a greater number is better; between equal ones
 * the number of launches decides. */
static unsigned thread_fitness(const struct host *h, uint32_t track)
{
	const struct host_thread *t = &h->threads[track];

	if (t->runs_autograd && (t->is_engine || !t->runs_loop))
		return 1;
	return trace_launches(h->trace, track) ? 3 : t->waits ? 2 : 1;
}

/* Returns less than 0 if `a` suits worse than `b`; `b` may be 0, no thread. */
static int thread_compare(const struct host *h, uint32_t a, uint32_t b)
{
	unsigned x = thread_fitness(h, a), y = b ? thread_fitness(h, b) : 0;
	uint64_t own = trace_launches(h->trace, a), other = trace_launches(h->trace, b);

	if (x != y)
		return x < y ? -1 : 1;
	return own < other ? -1 : own > other;
}

/* Without marks the step thread is the one that launches most.  If several launch equally often,
 * they become candidates, and events decide. */
static void find_busiest_threads(struct host *h)
{
	for (uint32_t i = 1; i <= trace_count(h->trace, TRACE_DESCS); i++)
		find_habits(h, trace_get_desc(h->trace, i));
	for (uint32_t i = 1; i <= h->thread_count; i++) {
		struct host_process *p = &h->processes[h->threads[i].process];
		int order;

		if (p->marks != MARKS_NONE || h->threads[i].type != TRACK_THREAD ||
		    !h->threads[i].process)
			continue;
		order = thread_compare(h, i, p->step_thread);
		if (order < 0)
			continue;
		p->is_undecided = order == 0;
		p->launches = trace_launches(h->trace, i) > 0;
		if (order > 0)
			p->step_thread = i;
	}
	for (uint32_t i = 1; i <= h->thread_count; i++) {
		struct host_process *p = &h->processes[h->threads[i].process];

		h->threads[i].is_candidate = p->is_undecided && p->marks == MARKS_NONE &&
					     h->threads[i].type == TRACK_THREAD &&
					     thread_compare(h, i, p->step_thread) == 0;
	}
}

enum status host_init(struct host *h, struct trace *trace, const struct name_rules *rules,
		      struct error *err)
{
	h->trace = trace;
	h->rules = rules;
	h->thread_count = trace_count(trace, TRACE_TRACKS);
	h->process_count = trace_count(trace, TRACE_PROCESSES);
	h->name_count = trace_count(trace, TRACE_NAMES);
	h->phase_count = name_rules_phase_count(rules);
	h->threads = calloc(h->thread_count + 1, sizeof(*h->threads));
	h->processes = calloc(h->process_count + 1, sizeof(*h->processes));
	h->names = calloc(h->name_count + 1, sizeof(*h->names));
	h->schema_count = trace_count(trace, TRACE_SCHEMAS);
	h->has_forward = calloc(h->schema_count + 1, 1);
	h->has_scope = calloc(h->schema_count + 1, 1);
	if (!h->threads || !h->processes || !h->names || !h->has_forward || !h->has_scope)
		return fail_memory(err);
	h->threads[0].type = TRACK_STREAM; /* so that events of row 0 are on no host thread */
	for (uint32_t i = 1; i <= h->thread_count; i++) {
		const struct track *k = trace_get_track(trace, i);
		struct host_thread *t = &h->threads[i];

		t->process = k->process <= h->process_count ? k->process : 0;
		t->type = (uint8_t)k->type;
		if (t->type != TRACK_THREAD)
			continue;
		t->host = i;
		t->root = trace_path(trace, 0, t->process, PATH_ROOT);
		t->is_engine = strstr(host_text(h, k->name), "pt_autograd_") != NULL;
		t->runs_autograd = t->is_engine;
	}
	for (uint32_t i = 1; i <= trace_count(trace, TRACE_DESCS); i++)
		take_desc(h, trace_get_desc(trace, i));
	find_busiest_threads(h);
	for (uint32_t i = 0; i <= h->process_count; i++) {
		h->processes[i].now.until_ns = UINT64_MAX;
		h->processes[i].work_ns = UINT64_MAX; /* never; 0 is a valid time */
		h->undecided += i && h->processes[i].is_undecided;
	}
	return find_allocator_threads(h, err);
}

void host_release(struct host *h)
{
	for (uint32_t i = 0; h->threads && i <= h->thread_count; i++) {
		free(h->threads[i].urgent.items);
		free(h->threads[i].mapped.items);
		free(h->threads[i].paths.items);
		free(h->threads[i].named.items);
		free(h->threads[i].python.items);
		free(h->threads[i].forwards.items);
	}
	for (uint32_t i = 0; h->processes && i <= h->process_count; i++)
		free(h->processes[i].unmapped.items);
	free(h->threads);
	free(h->processes);
	free(h->names);
	free(h->has_forward);
	free(h->has_scope);
	map_release(&h->forward_threads);
}

/* ---- threads, from the events ---- */

bool host_is_mark(struct host *h, const struct event *e)
{
	struct host_thread *t = host_thread(h, e->track);
	const struct host_process *p = &h->processes[t->process];
	enum mark_source marks = p->marks;

	if (t->type != TRACK_THREAD || marks == MARKS_NONE)
		return false;
	if (marks == MARKS_STEP)
		return e->kind == KIND_STEP;
	return e->kind == KIND_RANGE &&
	       (e->subkind == RANGE_ANNOTATION || e->subkind == RANGE_NVTX) &&
	       host_name_is_step(h, e->name, NULL) &&
	       host_name_info(h, e->name)->grammar == p->grammar;
}

/* Of candidates that launch equally often, the first to begin is the step thread.  If none
 * launches, it is the one on which calls and ranges are open longest, then the one with most
 * events.  Python functions do not count, because waiting threads have them, too. */
void host_decide(struct host *h, const struct event *e)
{
	struct host_thread *t = host_thread(h, e->track);
	struct host_process *p = &h->processes[t->process];
	bool is_host_event = e->kind == KIND_API;

	if (!p->is_undecided)
		return;
	if (e->kind == KIND_RANGE)
		is_host_event = e->subkind != RANGE_PROFILER && e->subkind != RANGE_OTHER;
	if (p->marks == MARKS_NONE ? !t->is_candidate || !is_host_event : !host_is_mark(h, e))
		return;
	if (p->marks == MARKS_NONE && !p->launches) {
		if (!t->events++)
			t->order = ++p->begun;
		if (e->end_ns > t->open_until_ns &&
		    (e->kind == KIND_API || e->subkind != RANGE_PYTHON)) {
			t->open_ns +=
				e->end_ns -
				(e->begin_ns > t->open_until_ns ? e->begin_ns : t->open_until_ns);
			t->open_until_ns = e->end_ns;
		}
		return;
	}
	p->is_undecided = false;
	p->step_thread = e->track;
	p->is_stale = true;
	h->undecided--;
}

/* ---- what the step thread does ---- */

struct host_state host_state_at(struct host *h, struct host_process *p, uint64_t t)
{
	struct host_state state = { PHASE_OTHER, false, UINT64_MAX };
	uint8_t own = thread_phase(host_thread(h, p->step_thread), t, &state.until_ns);
	const struct open_range *outermost;

	if (own != PHASE_NONE) {
		state.phase = own;
	} else if (p->saves_until_ns > t) {
		state = (struct host_state){ PHASE_CHECKPOINT, true, p->saves_until_ns };
	} else if (p->validates_until_ns > t) {
		state = (struct host_state){ PHASE_VALIDATION, true, p->validates_until_ns };
	} else if (p->data_until_ns > t) {
		state = (struct host_state){ PHASE_DATA, true, p->data_until_ns };
	} else if ((outermost = open_first(&p->unmapped, t))) {
		state.phase = annotation_phase(h, outermost->value);
		state.until_ns = outermost->end_ns;
	} else if (p->busy_until_ns > t) {
		state = (struct host_state){ PHASE_FORWARD, true, p->busy_until_ns };
		if (p->is_without_gradient &&
		    (p->mark_end_ns <= t || p->backward_at > p->mark_begin_ns))
			state.phase = PHASE_VALIDATION;
		else if (p->is_without_gradient && !p->gave_up)
			state.phase = PHASE_FORWARD_ONLY;
		else if (p->is_without_gradient && !p->expects_backward)
			state.phase = PHASE_VALIDATION;
		if (p->engine_until_ns > t)
			state = (struct host_state){ PHASE_BACKWARD, true, p->engine_until_ns };
	} else if (p->active_until_ns > t) {
		state = (struct host_state){ PHASE_BACKWARD, true, p->active_until_ns };
	} else if (p->active_until_ns > p->busy_until_ns) {
		state.phase = PHASE_GAP; /* autograd ran in this gap and may run again */
	}
	if (p->mark_end_ns > t && p->mark_end_ns < state.until_ns)
		state.until_ns = p->mark_end_ns;
	return state;
}

static enum status enter_annotation(struct host *h, struct host_process *p, struct host_thread *t,
				    const struct event *e, struct error *err)
{
	bool is_pushed = e->subkind == RANGE_PHASE, is_on_step_thread = e->track == p->step_thread;
	struct open_range range = { .end_ns = e->end_ns, .value = e->name };
	uint8_t phase;

	if (!is_on_step_thread)
		host_work(p, t, e);
	if (!is_pushed && host_name_only_marks(h, e->name))
		return ST_OK;
	TRY(path_push(h, t, e, err));
	/* Ranges in an NVTX domain come from a library, so they give no phase. */
	if (e->subkind == RANGE_NVTX && trace_find_attr(h->trace, e->schema, "domain"))
		return ST_OK;
	p->is_stale |= is_on_step_thread;
	phase = name_phase(h, e->name, is_pushed);
	if (phase == PHASE_NONE) {
		if (is_on_step_thread && !name_is_compiled(host_text(h, e->name)))
			return open_append(&p->unmapped, range, err);
		if (is_on_step_thread)
			host_work(p, t, e);
		return ST_OK;
	}
	range.value = phase;
	if (phase == PHASE_VALIDATION || phase == PHASE_CHECKPOINT)
		return open_push(&t->urgent, range, err);
	return open_push(&t->mapped, range, err);
}

/* Enters a Python function that loads input, validates or saves the model.  A function that
 * launches kernels does more than load input or validate; one that saves the model may launch
 * copies. */
static void enter_python(struct host *h, struct host_process *p, const struct event *e)
{
	struct name_info *n = host_name_info(h, e->name);

	if (!n->function_known) {
		n->function = (uint8_t)name_function_phase(host_text(h, e->name));
		n->function_known = n != h->names;
	}
	uint64_t *until_ns = n->function == PHASE_CHECKPOINT   ? &p->saves_until_ns
			     : n->function == PHASE_VALIDATION ? &p->validates_until_ns
							       : &p->data_until_ns;
	if (n->function == PHASE_NONE || e->end_ns <= *until_ns ||
	    (n->function != PHASE_CHECKPOINT && e->begin_ns == p->work_ns) ||
	    (n->function == PHASE_VALIDATION && p->data_until_ns > e->begin_ns))
		return;
	*until_ns = e->end_ns;
	p->is_stale = true;
}

void host_enter_call(struct host *h, struct host_process *p, const struct host_thread *t,
		     const struct event *e)
{
	struct name_info *n = host_name_info(h, e->name);

	host_work(p, t, e);
	if (e->track != p->step_thread)
		return;
	if (!n->kernels_known) {
		size_t len;
		const char *name = trace_text(h->trace, e->name, &len);

		n->puts_kernels = (call_traits(name, len) & CALL_LAUNCHES_KERNELS) != 0;
		n->kernels_known = n != h->names;
	}
	if (!n->puts_kernels && e->subkind != API_OF_KERNEL)
		return;
	p->work_ns = e->begin_ns;
	p->is_stale |= p->data_until_ns > e->begin_ns;
	p->data_until_ns = 0;
}

/* Detects whether gradients are off from an outermost operator: autograd numbers operators from 0,
 * but without gradients layers have no number and belong to validation.  Operators that are
 * numbered in neither case, such as aten::zeros, leave the state as it is. */
static void enter_outermost(struct host *h, struct host_process *p, const struct event *e)
{
	const struct attr *first =
		e->number ? NULL : trace_find_attr(h->trace, e->schema, "sequence");

	if (e->number || (first && first->type == ATTR_U64) ||
	    host_is_autograd(h, e->name, e->schema))
		p->is_without_gradient = false;
	else if (!p->is_without_gradient)
		p->is_without_gradient = name_is_layer(host_text(h, e->name));
}

enum status host_enter(struct host *h, struct host_process *p, struct host_thread *t,
		       const struct event *e, struct error *err)
{
	switch (e->subkind) {
	case RANGE_OP:
		if (p->has_numbers && e->track == p->step_thread && p->busy_until_ns <= e->begin_ns)
			enter_outermost(h, p, e);
		host_work(p, t, e);
		if (e->track == p->step_thread && host_is_autograd(h, e->name, e->schema)) {
			/* A function that runs autograd does more than validate or load input. */
			p->validates_until_ns = p->data_until_ns = 0;
			p->work_ns = e->begin_ns;
			p->is_stale = true;
			if (e->end_ns > p->engine_until_ns)
				p->engine_until_ns = e->end_ns;
		}
		return path_push(h, t, e, err);
	case RANGE_PYTHON:
		if (e->track == p->step_thread)
			enter_python(h, p, e);
		return path_push(h, t, e, err);
	case RANGE_ANNOTATION:
	case RANGE_PHASE:
	case RANGE_NVTX:
		return enter_annotation(h, p, t, e, err);
	default:
		return ST_OK;
	}
}

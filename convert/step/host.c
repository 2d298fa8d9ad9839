/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/step/host.h"

#include <stdlib.h>
#include <string.h>

enum { OPEN_MAX = 1 << 20 }; /* ranges open at once on one thread */

static enum status open_grow(struct open_range **items, uint32_t *cap, struct error *err)
{
	uint32_t more = *cap ? *cap * 2 : 16;
	struct open_range *grown;

	if (more > OPEN_MAX)
		return fail(err, ST_CEILING, NOWHERE, "more than %d ranges open at once",
			    OPEN_MAX);
	grown = realloc(*items, more * sizeof(*grown));
	if (!grown)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for open ranges");
	*items = grown;
	*cap = more;
	return ST_OK;
}

enum status open_push(struct open_stack *s, struct open_range range, struct error *err)
{
	while (s->count && s->items[s->count - 1].end_ns <= range.end_ns)
		s->count--;
	if (s->count == s->cap)
		TRY(open_grow(&s->items, &s->cap, err));
	s->items[s->count++] = range;
	return ST_OK;
}

enum status open_append(struct open_line *l, struct open_range range, struct error *err)
{
	if (l->head < l->end && l->items[l->end - 1].end_ns >= range.end_ns)
		return ST_OK;
	if (l->head && l->head >= l->end - l->head) {
		memmove(l->items, l->items + l->head, (l->end - l->head) * sizeof(*l->items));
		l->end -= l->head;
		l->head = 0;
	}
	if (l->end == l->cap)
		TRY(open_grow(&l->items, &l->cap, err));
	l->items[l->end++] = range;
	return ST_OK;
}

static const char *host_text(const struct host *h, uint32_t name)
{
	return trace_text(h->trace, name, NULL);
}

/* Row 0 stands for many names, and remembers nothing. */
static struct name_answer *host_answer(struct host *h, uint32_t name)
{
	return &h->answers[name <= h->name_count ? name : 0];
}

bool host_name_is_step(struct host *h, uint32_t name, uint64_t *number)
{
	struct name_answer *a = host_answer(h, name);

	if (!a->step_known) {
		a->is_step = name_rules_step(h->rules, host_text(h, name), &a->number);
		a->step_known = a != h->answers;
	}
	if (a->is_step && number)
		*number = a->number;
	return a->is_step;
}

uint8_t host_name_phase(struct host *h, uint32_t name, bool is_pushed)
{
	struct name_answer *a = host_answer(h, name);

	if (is_pushed && !a->pushed_known) {
		a->pushed = (uint8_t)name_rules_pushed(h->rules, host_text(h, name));
		a->pushed_known = a != h->answers;
	}
	if (!is_pushed && !a->mapped_known) {
		a->mapped = (uint8_t)name_rules_phase(h->rules, host_text(h, name));
		a->mapped_known = a != h->answers;
	}
	return is_pushed ? a->pushed : a->mapped;
}

/* The last id is for all names that came too late for one of their own. */
uint8_t host_row(struct host *h, uint32_t name)
{
	struct name_answer *a = host_answer(h, name);

	if (a->row)
		return a->row;
	if (h->row_count == PHASE_ROWS)
		return PHASE_ROWS - 1;
	h->rows[h->row_count] = h->row_count == PHASE_ROWS - 1 ? 0 : name;
	a->row = (uint8_t)h->row_count++;
	return a->row;
}

/* --- what the tables say ----------------------------------------------------------------- */

struct thread_key {
	uint64_t id;
	uint32_t process, track;
};

static int thread_key_compare(const void *a, const void *b)
{
	const struct thread_key *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* A pool belongs to the thread with its id. */
static enum status host_join_pools(struct host *h, struct error *err)
{
	struct thread_key *keys = calloc(h->thread_count + 1, sizeof(*keys)), *found;
	size_t count = 0;

	if (!keys)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for tracks");
	for (uint32_t i = 1; i <= h->thread_count; i++)
		if (h->threads[i].home == HOME_THREAD)
			keys[count++] = (struct thread_key){ trace_get_track(h->trace, i)->id,
							     h->threads[i].process, i };
	qsort(keys, count, sizeof(*keys), thread_key_compare);
	for (uint32_t i = 1; i <= h->thread_count; i++) {
		struct thread_key key = { trace_get_track(h->trace, i)->id,
					  h->threads[i].process, i };

		if (h->threads[i].home != HOME_POOL)
			continue;
		found = bsearch(&key, keys, count, sizeof(*keys), thread_key_compare);
		h->threads[i].host = found ? found->track : 0;
	}
	free(keys);
	return ST_OK;
}

static void host_take_tracks(struct host *h)
{
	for (uint32_t i = 1; i <= h->thread_count; i++) {
		const struct track *k = trace_get_track(h->trace, i);
		struct host_thread *t = &h->threads[i];

		t->process = k->process <= h->process_count ? k->process : 0;
		t->home = (uint8_t)k->home;
		if (t->home != HOME_THREAD)
			continue;
		t->host = i;
		t->runs_autograd = strstr(host_text(h, k->name), "pt_autograd_") != NULL;
	}
}

static enum mark_source site_marks(struct host *h, const struct site *site)
{
	if (site->kind == KIND_STEP)
		return MARKS_STEP;
	if (site->kind != KIND_RANGE)
		return MARKS_NONE;
	if (site->subkind != RANGE_ANNOTATION && site->subkind != RANGE_NVTX)
		return MARKS_NONE;
	return host_name_is_step(h, site->name, NULL) ? MARKS_RANGE : MARKS_NONE;
}

/* tacho_step() before ranges that look like steps; of several threads the first to mark. */
static void host_take_site(struct host *h, const struct site *site)
{
	struct host_thread *t = host_thread(h, site->track);
	struct host_process *p = &h->processes[t->process];
	enum mark_source marks;

	if (t->home != HOME_THREAD || !t->process)
		return;
	if (site->kind == KIND_RANGE && site->subkind == RANGE_OP &&
	    name_rules_autograd(h->rules, host_text(h, site->name)))
		t->runs_autograd = true;
	marks = site_marks(h, site);
	if (marks == MARKS_NONE || (p->marks == MARKS_STEP && marks == MARKS_RANGE))
		return;
	if (p->marks != marks) {
		p->marks = (uint8_t)marks;
		p->thread = site->track;
		p->tentative = false;
	} else if (p->thread != site->track) {
		p->tentative = true;
	}
}

/* Without marks: most launches; between equals the events decide. */
static void host_take_busiest(struct host *h)
{
	for (uint32_t i = 1; i <= h->thread_count; i++) {
		struct host_process *p = &h->processes[h->threads[i].process];
		uint64_t mine = trace_launches(h->trace, i);
		uint64_t best = trace_launches(h->trace, p->thread);

		if (p->marks != MARKS_NONE || h->threads[i].home != HOME_THREAD ||
		    !h->threads[i].process || (p->thread && mine < best))
			continue;
		p->tentative = p->thread && mine == best;
		p->launches = mine > 0;
		if (!p->tentative)
			p->thread = i;
	}
	for (uint32_t i = 1; i <= h->thread_count; i++) {
		struct host_process *p = &h->processes[h->threads[i].process];

		h->threads[i].is_candidate = p->tentative && p->marks == MARKS_NONE &&
			h->threads[i].home == HOME_THREAD &&
			trace_launches(h->trace, i) == trace_launches(h->trace, p->thread);
	}
}

static void host_find_threads(struct host *h)
{
	uint32_t count = trace_count(h->trace, TRACE_SITES);

	for (uint32_t i = 1; i <= count; i++)
		host_take_site(h, trace_get_site(h->trace, i));
	host_take_busiest(h);
	for (uint32_t i = 1; i <= h->process_count; i++)
		h->undecided += h->processes[i].tentative;
}

enum status host_init(struct host *h, struct trace *trace, const struct name_rules *rules,
		      struct error *err)
{
	memset(h, 0, sizeof(*h));
	h->trace = trace;
	h->rules = rules;
	h->thread_count = trace_count(trace, TRACE_TRACKS);
	h->process_count = trace_count(trace, TRACE_PROCESSES);
	h->name_count = trace_count(trace, TRACE_NAMES);
	h->row_count = name_rules_phase_count(rules);
	h->threads = calloc(h->thread_count + 1, sizeof(*h->threads));
	h->processes = calloc(h->process_count + 1, sizeof(*h->processes));
	h->answers = calloc(h->name_count + 1, sizeof(*h->answers));
	if (!h->threads || !h->processes || !h->answers)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for %u tracks", h->thread_count);
	h->threads[0].home = HOME_STREAM; /* nothing of row 0 is on a host thread */
	for (uint32_t i = 0; i <= h->process_count; i++)
		h->processes[i].now.until_ns = UINT64_MAX;
	host_take_tracks(h);
	host_find_threads(h);
	return host_join_pools(h, err);
}

void host_release(struct host *h)
{
	for (uint32_t i = 0; h->threads && i <= h->thread_count; i++) {
		free(h->threads[i].urgent.items);
		free(h->threads[i].mapped.items);
		free(h->threads[i].named.items);
		free(h->threads[i].python.items);
	}
	for (uint32_t i = 0; h->processes && i <= h->process_count; i++)
		free(h->processes[i].unmapped.items);
	free(h->threads);
	free(h->processes);
	free(h->answers);
	memset(h, 0, sizeof(*h));
}

bool host_is_mark(struct host *h, const struct event *e)
{
	struct host_thread *t = host_thread(h, e->track);
	enum mark_source marks = h->processes[t->process].marks;

	if (t->home != HOME_THREAD || marks == MARKS_NONE)
		return false;
	if (marks == MARKS_STEP)
		return e->kind == KIND_STEP;
	return e->kind == KIND_RANGE &&
	       (e->subkind == RANGE_ANNOTATION || e->subkind == RANGE_NVTX) &&
	       host_name_is_step(h, e->name, NULL);
}

/* What may begin the time of a thread without marks. */
static bool is_host_event(const struct event *e)
{
	if (e->kind != KIND_RANGE)
		return e->kind == KIND_API;
	return e->subkind != RANGE_PROFILER && e->subkind != RANGE_OTHER;
}

/* Of those who launch as often the first to begin; if nobody does, who has most events. */
void host_decide(struct host *h, const struct event *e)
{
	struct host_thread *t = host_thread(h, e->track);
	struct host_process *p = &h->processes[t->process];

	if (!p->tentative)
		return;
	if (p->marks == MARKS_NONE ? !t->is_candidate || !is_host_event(e) : !host_is_mark(h, e))
		return;
	if (p->marks == MARKS_NONE && !p->launches) {
		if (!t->events++)
			t->order = ++p->begun;
		return;
	}
	p->tentative = false;
	p->thread = e->track;
	p->is_stale = true;
	h->undecided--;
}

void host_settle(struct host *h)
{
	for (uint32_t i = 1; h->undecided && i <= h->thread_count; i++) {
		struct host_thread *t = &h->threads[i];
		struct host_process *p = &h->processes[t->process];
		struct host_thread *best = host_thread(h, p->thread);

		if (!t->is_candidate || !p->tentative || !t->events)
			continue;
		if (t->events > best->events ||
		    (t->events == best->events && t->order < best->order))
			p->thread = i;
	}
	for (uint32_t i = 1; h->undecided && i <= h->process_count; i++) {
		struct host_process *p = &h->processes[i];

		if (p->marks == MARKS_NONE && p->tentative) {
			p->tentative = false;
			h->undecided--;
		}
	}
}

/* --- what is open ------------------------------------------------------------------------ */

struct moment host_moment(struct host *h, struct host_process *p, uint64_t t)
{
	struct moment m = { PHASE_OTHER, false, UINT64_MAX };
	uint8_t own = thread_phase(host_thread(h, p->thread), t, &m.until_ns);
	const struct open_range *outer;

	if (own != PHASE_NONE) {
		m.phase = own;
	} else if ((outer = open_first(&p->unmapped, t))) {
		m.phase = host_row(h, outer->value);
		m.until_ns = outer->end_ns;
	} else if (p->busy_until_ns > t) {
		m = (struct moment){ PHASE_FORWARD, true, p->busy_until_ns };
	} else if (p->active_until_ns > t) {
		m = (struct moment){ PHASE_BACKWARD, true, p->active_until_ns };
	} else if (p->active_until_ns > p->busy_until_ns) {
		m.phase = PHASE_PENDING; /* there was work in this hole; will there be more? */
	}
	if (p->mark_end_ns > t && p->mark_end_ns < m.until_ns)
		m.until_ns = p->mark_end_ns;
	return m;
}

/* Ranges of a library's own NVTX domain are not the user's words for what he does. */
static bool is_annotation(const struct host *h, const struct event *e)
{
	return e->subkind != RANGE_NVTX || !trace_find_attr(h->trace, e->shape, "domain");
}

static enum status host_annotate(struct host *h, struct host_process *p, struct host_thread *t,
				 const struct event *e, struct error *err)
{
	bool is_pushed = e->subkind == RANGE_PHASE;
	struct open_range range = { .end_ns = e->end_ns };
	uint8_t phase;

	if (e->track != p->thread)
		host_work(p, t, e);
	if (!is_pushed && host_name_is_step(h, e->name, NULL))
		return ST_OK;
	TRY(open_push(&t->named, (struct open_range){ e->end_ns, e->name }, err));
	if (!is_annotation(h, e))
		return ST_OK;
	p->is_stale |= e->track == p->thread;
	range.value = phase = host_name_phase(h, e->name, is_pushed);
	if (phase == PHASE_VALIDATION || phase == PHASE_CHECKPOINT)
		return open_push(&t->urgent, range, err);
	if (phase != PHASE_NONE)
		return open_push(&t->mapped, range, err);
	if (e->track != p->thread)
		return ST_OK;
	range.value = e->name;
	return open_append(&p->unmapped, range, err);
}

enum status host_enter(struct host *h, struct host_process *p, struct host_thread *t,
		       const struct event *e, struct error *err)
{
	struct open_range range = { e->end_ns, e->name };

	switch (e->subkind) {
	case RANGE_OP:
		host_work(p, t, e);
		return open_push(&t->named, range, err);
	case RANGE_PYTHON:
		return open_push(&t->python, range, err);
	case RANGE_ANNOTATION: case RANGE_PHASE: case RANGE_NVTX:
		return host_annotate(h, p, t, e, err);
	default:
		return ST_OK;
	}
}

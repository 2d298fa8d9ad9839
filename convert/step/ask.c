/* SPDX-License-Identifier: Apache-2.0 */
/* What those above ask the stage `step`: stretches, marks, phases, and what an event is. */
#include "convert/step/stage.h"

bool step_is_mark(const struct source *source, const struct event *e)
{
	struct host *h = &step_of(source)->host;

	return event_may_be_mark(e) && host_is_mark(h, e) &&
	       e->track == h->processes[host_thread(h, e->track)->process].thread;
}

void step_tell_near(struct source *s)
{
	step_of(s)->tells_near = true;
}

static struct step_stage *step_look(const struct source *source)
{
	struct step_stage *s = step_of(source);

	s->has_reader = s->was_looked_at = true;
	return s;
}

void step_keep(struct source *source, uint64_t shortest_ns)
{
	step_of(source)->shortest_ns = shortest_ns ? shortest_ns : 1;
}

size_t step_stretches(const struct source *source, const struct stretch **out)
{
	struct step_stage *s = step_look(source);

	*out = s->out.items;
	return s->out.count;
}

size_t step_marks(const struct source *source, const struct step_mark **out)
{
	struct step_stage *s = step_look(source);

	*out = s->marks.items;
	return s->marks.given;
}

unsigned step_phase_count(const struct source *source)
{
	return step_of(source)->host.row_count;
}

struct step_phase step_phase(const struct source *source, unsigned id)
{
	const struct host *h = &step_of(source)->host;
	unsigned known = name_rules_phase_count(h->rules);

	if (id < known)
		return (struct step_phase){ name_rules_phase_name(h->rules, id), false };
	if (id >= h->row_count)
		return (struct step_phase){ "", false };
	if (!h->rows[id])
		return (struct step_phase){ "more annotations", true };
	return (struct step_phase){ trace_text(h->trace, h->rows[id], NULL), true };
}

bool step_is_named(const struct source *source, uint32_t name)
{
	return host_name_is_step(&step_of(source)->host, name, NULL);
}

uint32_t step_thread(const struct source *source, uint32_t process)
{
	const struct host *h = &step_of(source)->host;

	return process <= h->process_count ? h->processes[process].thread : 0;
}

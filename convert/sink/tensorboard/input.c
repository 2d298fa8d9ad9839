/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the time in which a GPU waited for the next batch: it was idle, and the step thread was
 * loading data.
 *
 * XProf divides a step by the names of the events on the GPU's plane.  It counts idle time as "All
 * Others" and gives the same advice for every program.  It counts copies from the host as "Input"
 * by their name, so these waits get a line of their own with a name that begins like such a copy.
 */
#include "convert/sink/tensorboard/internal.h"

enum { INTERVALS_MOST = 1 << 20 };

enum status tb_input_put_interval(struct tb_input *in, const struct phase_interval *p,
				  struct error *err)
{
	struct tb_span *last = in->count ? &in->loading[in->count - 1] : NULL;

	if (p->phase != PHASE_DATA || p->end_ns <= p->begin_ns)
		return ST_OK;
	if (last && p->begin_ns <= last->end_ns) {
		last->end_ns = p->end_ns > last->end_ns ? p->end_ns : last->end_ns;
		return ST_OK;
	}
	if (in->count == INTERVALS_MOST) /* time without a wait remains "All Others" */
		return ST_OK;
	TRY(vec_reserve(&in->loading, &in->cap, in->count + 1, err));
	in->loading[in->count++] = (struct tb_span){ p->begin_ns, p->end_ns };
	return ST_OK;
}

enum status tb_input_put_work(struct tb_space *s, const struct event *e, struct error *err)
{
	uint32_t device = trace_get_track(s->trace, e->track)->device;
	struct tb_input *in = &s->input;
	uint64_t *until_ns = &in->until_ns[device < TB_DEVICES ? device : 0];
	struct event wait = { .kind = KIND_OVERHEAD, .track = e->track };
	size_t first = in->count;

	if (device >= TB_DEVICES || !in->groups[device])
		return ST_OK;
	while (*until_ns && first && in->loading[first - 1].end_ns > *until_ns)
		first--;
	for (size_t i = first; *until_ns && i < in->count; i++) {
		const struct tb_span *load = &in->loading[i];

		wait.begin_ns = load->begin_ns > *until_ns ? load->begin_ns : *until_ns;
		wait.end_ns = load->end_ns < e->begin_ns ? load->end_ns : e->begin_ns;
		if (wait.begin_ns < wait.end_ns)
			TRY(spool_put(s->spool, in->groups[device] - 1, &wait, 1, err));
	}
	if (e->end_ns > *until_ns)
		*until_ns = e->end_ns;
	return ST_OK;
}

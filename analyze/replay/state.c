/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/replay/internal.h"

#include "schemas/base/vec.h"

#include <stdlib.h>

enum status instant_new(const struct replay *r, struct instant *out, struct error *err)
{
	*out = (struct instant){ .at = calloc(r->states, sizeof(*out->at)) };
	return out->at ? ST_OK : fail_memory(err);
}

enum status replay_open(struct replay **out, const struct replay_edits *edits, struct error *err)
{
	struct replay *r = calloc(1, sizeof(*r));

	*out = r;
	if (!r)
		return fail_memory(err);
	r->edits = edits;
	r->states = edits->states;
	r->shortest_launch_ns = r->shortest_gap_ns = UINT64_MAX;
	for (unsigned k = 1; k < r->states; k++) {
		r->overlaps[k] = edits->overlaps(edits->self, k);
		r->drops_rest[k] = edits->drops_rest(edits->self, k);
		for (unsigned a = 0; a < REPLAY_ACTIVITIES; a++)
			r->drops_waits[a][k] = edits->drops_waits(edits->self, k, a);
	}
	r->launched = calloc(CALLS, sizeof(*r->launched));
	return r->launched ? ST_OK : fail_memory(err);
}

void replay_close(struct replay *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->thread_count; i++) {
		free(r->threads[i].last.at);
		free(r->threads[i].open);
	}
	for (size_t i = 0; i < r->stream_count; i++)
		for (size_t k = 0; k < DONE; k++)
			free(r->streams[i].done[k].end.at);
	for (size_t i = 0; r->launched && i < CALLS; i++) {
		free(r->launched[i].begin.at);
		free(r->launched[i].work_end.at);
	}
	for (size_t i = 0; i < r->factor_cap; i++)
		free(r->factors[i]);
	map_release(&r->by_correlation);
	free(r->factors);
	free(r->launched);
	free(r->threads);
	free(r->streams);
	free(r->calls);
	free(r->free_calls);
	free(r->ends.items);
	free(r->step_ns);
	free(r->step_at);
	free(r->step_launches);
	free(r->step_changed);
	free(r);
}

const double *factors_of(struct replay *r, uint32_t kind, struct error *err)
{
	if (vec_reserve(&r->factors, &r->factor_cap, (size_t)kind + 1, err) != ST_OK)
		return NULL;
	double *f = r->factors[kind];
	if (f)
		return f;
	f = r->factors[kind] = calloc(r->states, sizeof(*f));
	if (!f) {
		fail_memory(err);
		return NULL;
	}
	for (unsigned k = 0; k < r->states; k++)
		f[k] = k ? r->edits->factor(r->edits->self, k, kind) : 1;
	return f;
}

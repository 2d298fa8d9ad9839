/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/critical/internal.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum { STREAM_WAITS_FEW = 1 << 19 };

/* ---- order ------------------------------------------------------------------------------ */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Orders by the end of the work, then by owner order; calls that waited for nothing come last. */
static int compare_waits(const void *pa, const void *pb, void *self)
{
	const struct wait_node *a = pa, *b = pb;
	const struct work_node *work = self;

	if (a->work == NO_ID || b->work == NO_ID)
		return compare(a->work, b->work);
	int order = compare(work[a->work].end_ns, work[b->work].end_ns);
	order = order ? order : compare(a->work, b->work);
	return order ? order : compare(a->begin_ns, b->begin_ns);
}

static bool could_wait(const struct wait_node *w, const struct work_node *n)
{
	uint64_t asked_ns = n->has_launch ? n->launch_begin_ns : n->begin_ns;

	if (n->process != w->process || n->end_ns <= w->begin_ns || n->end_ns > w->end_ns)
		return false;
	return w->is_copy ? n->has_launch && n->correlation == w->correlation &&
				    n->launch_begin_ns == w->asked_ns
			  : asked_ns <= w->begin_ns;
}

/* Returns the number of works that have ended by `at_ns`, in the order of ends. */
static size_t ended_by(const struct critical_graph *g, uint64_t at_ns)
{
	size_t at;

	SEARCH(at, 0, g->work_count, g->work[g->by_end[at]].end_ns <= at_ns);
	return at;
}

static int compare_ends(const void *pa, const void *pb, void *self)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	const struct work_node *work = self;
	int order = compare(work[a].end_ns, work[b].end_ns);

	return order ? order : compare(a, b);
}

void critical_sort(struct critical_graph *g, uint32_t *last, size_t tracks)
{
	SORT_BY(g->work, g->work_count, UP(struct work_node, begin_ns),
		UP(struct work_node, stream), UP(struct work_node, correlation),
		UP(struct work_node, end_ns), UP(struct work_node, arrival));
	SORT_BY(g->stream_waits, g->stream_count, UP(struct stream_wait, track),
		UP(struct stream_wait, at_ns));
	SORT_BY(g->intervals, g->interval_count, UP(struct phase_interval, process),
		UP(struct phase_interval, begin_ns));
	for (size_t i = 0; i < tracks; i++)
		last[i] = NO_ID;
	for (size_t i = 0; i < g->work_count; i++) {
		g->work[i].before = last[g->work[i].track];
		last[g->work[i].track] = (uint32_t)i;
		g->by_end[i] = (uint32_t)i;
	}
	if (g->work_count)
		qsort_r(g->by_end, g->work_count, sizeof(*g->by_end), compare_ends, g->work);
	for (size_t i = 0; i < g->wait_count; i++) {
		struct wait_node *w = &g->waits[i];
		size_t low = 0;

		/* Find the last work that ended within the call and was launched before it. */
		w->work = NO_ID;
		w->launches = w->track < tracks && g->launches[w->track];
		if (w->launches)
			low = ended_by(g, w->end_ns);
		for (; low && g->work[g->by_end[low - 1]].end_ns > w->begin_ns; low--)
			if (could_wait(w, &g->work[g->by_end[low - 1]])) {
				w->work = g->by_end[low - 1];
				break;
			}
	}
	if (g->wait_count)
		qsort_r(g->waits, g->wait_count, sizeof(*g->waits), compare_waits, g->work);
}

/* ---- old work --------------------------------------------------------------------------- */

static void tracks_keep(struct critical_graph *g, uint32_t *last, size_t tracks)
{
	for (size_t i = 0; i < tracks; i++) {
		if (last[i] != NO_ID)
			g->work[last[i]].is_kept = true;
		last[i] = NO_ID;
	}
}

/* Drops stream waits before the launch of the first kept work, once there are many. */
static void stream_waits_forget(struct critical_graph *g, uint32_t *last, size_t tracks)
{
	size_t count = 0;

	if (g->stream_count < STREAM_WAITS_FEW)
		return;
	for (size_t i = 0; i < tracks; i++)
		last[i] = NO_ID;
	for (size_t i = g->work_count; i; i--)
		last[g->work[i - 1].track] = (uint32_t)i - 1; /* the first one that is kept */
	for (size_t i = 0; i < g->stream_count; i++) {
		const struct stream_wait *w = &g->stream_waits[i];
		uint32_t first = w->track < tracks ? last[w->track] : NO_ID;
		const struct work_node *n = first == NO_ID ? NULL : &g->work[first];

		if (n && w->at_ns >= (n->has_launch ? n->launch_begin_ns : n->begin_ns))
			g->stream_waits[count++] = *w;
	}
	g->stream_count = count;
}

void critical_forget(struct critical_graph *g, const uint64_t *keep_ns, uint32_t *last,
		     size_t tracks)
{
	size_t count = 0;

	/* Keep also what needed work followed, and on each stream the last work to begin and the
	 * last to end. */
	for (size_t i = 0; i < tracks; i++)
		last[i] = NO_ID;
	for (size_t i = 0; i < g->work_count; i++) {
		g->work[i].is_kept = g->work[i].end_ns >= keep_ns[g->work[i].process];
		if (g->work[i].is_kept && g->work[i].before != NO_ID)
			g->work[g->work[i].before].is_kept = true;
		last[g->work[i].track] = (uint32_t)i;
	}
	tracks_keep(g, last, tracks);
	for (size_t i = 0; i < g->work_count; i++) {
		const struct work_node *n = &g->work[g->by_end[i]];

		if (n->end_ns < keep_ns[n->process])
			last[n->track] = g->by_end[i];
	}
	tracks_keep(g, last, tracks);
	for (size_t i = 0; i < g->work_count; i++)
		if (g->work[i].is_kept)
			g->work[count++] = g->work[i];
	g->work_count = count;
	for (size_t i = count = 0; i < g->wait_count; i++)
		if (g->waits[i].end_ns > keep_ns[g->waits[i].process])
			g->waits[count++] = g->waits[i];
	g->wait_count = count;
	for (size_t i = count = 0; i < g->interval_count; i++)
		if (g->intervals[i].end_ns > keep_ns[g->intervals[i].process])
			g->intervals[count++] = g->intervals[i];
	g->interval_count = count;
	stream_waits_forget(g, last, tracks);
}

/* ---- walk ------------------------------------------------------------------------------- */

struct walk {
	const struct critical_graph *g;
	uint32_t process;
	uint64_t begin_ns;
	size_t wait_at; /* waits below this index are not used yet */
	struct path_segments *out;
};

static enum status put_part(const struct walk *w, enum path_kind kind, uint32_t id,
			    uint64_t begin_ns, uint64_t end_ns, struct error *err)
{
	struct path_segments *out = w->out;

	begin_ns = later(begin_ns, w->begin_ns);
	if (begin_ns >= end_ns)
		return ST_OK;
	TRY(vec_reserve(&out->items, &out->cap, out->count + 1, err));
	out->items[out->count++] = (struct path_segment){ end_ns - begin_ns, kind, id };
	return ST_OK;
}

/* Adds what the step thread did, by phase. */
static enum status put_host(const struct walk *w, uint64_t begin_ns, uint64_t end_ns,
			    struct error *err)
{
	const struct phase_interval *all = w->g->intervals;
	uint64_t to_ns;
	size_t low;

	begin_ns = later(begin_ns, w->begin_ns);
	SEARCH(low, 0, w->g->interval_count,
	       all[low].process < w->process ||
		       (all[low].process == w->process && all[low].end_ns <= begin_ns));
	for (; begin_ns < end_ns; begin_ns = to_ns) {
		bool has_interval = low < w->g->interval_count && all[low].process == w->process;
		bool inside = has_interval && all[low].begin_ns <= begin_ns;

		to_ns = end_ns;
		if (has_interval)
			to_ns = earlier(end_ns, inside ? all[low].end_ns : all[low].begin_ns);
		TRY(put_part(w, PATH_HOST, inside ? all[low].phase : PHASE_OTHER, begin_ns, to_ns,
			     err));
		low += inside;
	}
	return ST_OK;
}

/* Returns the latest work that a call waited for which returned by `at_ns`; NO_ID: none in the
 * step. */
static uint32_t wait_take(struct walk *w, uint64_t at_ns)
{
	const struct critical_graph *g = w->g;

	while (w->wait_at) {
		const struct wait_node *one = &g->waits[--w->wait_at];

		if (one->work == NO_ID || one->process != w->process || one->end_ns > at_ns)
			continue;
		return g->work[one->work].end_ns > w->begin_ns ? one->work : NO_ID;
	}
	return NO_ID;
}

/* Returns the work for which a call waits that is open at the step's end. Of the works that began
 * by then it is one that still runs at that instant, otherwise the last to end. */
static uint32_t waits_for(const struct critical_graph *g, const struct wait_node *one,
			  uint64_t end_ns)
{
	struct wait_node open = *one;
	uint32_t best = NO_ID;

	open.end_ns = UINT64_MAX;
	for (size_t i = g->work_count; i; i--) {
		uint32_t at = g->by_end[i - 1];
		const struct work_node *n = &g->work[at];

		if (n->end_ns <= one->begin_ns || (best != NO_ID && n->end_ns < end_ns))
			break;
		if (n->begin_ns < end_ns && could_wait(&open, n) && (best == NO_ID || at > best))
			best = at;
	}
	return best;
}

/* Returns the latest work that is waited for at the step's end; NO_ID: none. */
static uint32_t waits_at_end(const struct walk *w, uint64_t end_ns)
{
	const struct critical_graph *g = w->g;
	uint64_t best_ns = w->begin_ns;
	uint32_t best = NO_ID;

	for (size_t i = 0; i < g->wait_count; i++) {
		const struct wait_node *one = &g->waits[i];
		uint32_t work = NO_ID;

		if (one->process == w->process && one->launches && one->begin_ns < end_ns &&
		    one->end_ns > end_ns)
			work = waits_for(g, one, end_ns);
		if (work == NO_ID)
			continue;
		uint64_t at_ns = earlier(g->work[work].end_ns, end_ns);
		if (at_ns > best_ns || (at_ns == best_ns && best != NO_ID && work > best)) {
			best_ns = at_ns;
			best = work;
		}
	}
	return best;
}

static bool has_waited(const struct critical_graph *g, const struct work_node *n)
{
	const struct work_node *before = n->before == NO_ID ? NULL : &g->work[n->before];
	uint64_t since_ns = !before              ? 0
			    : before->has_launch ? before->launch_begin_ns
						 : before->begin_ns;
	const struct stream_wait *all = g->stream_waits;
	size_t at;

	SEARCH(at, 0, g->stream_count,
	       all[at].track < n->track || (all[at].track == n->track && all[at].at_ns < since_ns));
	return n->has_launch && at < g->stream_count && all[at].track == n->track &&
	       all[at].at_ns <= n->launch_begin_ns;
}

/* Returns the work on other streams of the GPU that ended last before `at` began. */
static uint32_t ended_last(const struct critical_graph *g, uint32_t at)
{
	const struct work_node *n = &g->work[at];
	size_t low = ended_by(g, n->begin_ns);

	for (; low; low--) {
		const struct work_node *other = &g->work[g->by_end[low - 1]];
		if (other->gpu == n->gpu && other->track != n->track && g->by_end[low - 1] < at)
			return g->by_end[low - 1];
	}
	return NO_ID;
}

/* Returns the work for which `at` waited on the GPU; NO_ID: none. */
static uint32_t depends(const struct critical_graph *g, uint32_t at, bool *by_wait)
{
	uint32_t before = g->work[at].before;

	*by_wait = false;
	if (!has_waited(g, &g->work[at]))
		return before;
	uint32_t other = ended_last(g, at);
	if (other == NO_ID)
		return before;
	*by_wait = before == NO_ID || g->work[other].end_ns > g->work[before].end_ns;
	return *by_wait ? other : before;
}

/* Follows GPU work from the end of `at` back to a launch on the host, where *at_ns is then. */
static enum status walk_gpu(struct walk *w, uint32_t at, uint64_t *at_ns, struct error *err)
{
	const struct critical_graph *g = w->g;

	for (;;) {
		const struct work_node *n = &g->work[at];
		uint64_t free_ns = 0;
		bool by_wait;

		TRY(put_part(w, (enum path_kind)n->class, n->name, n->begin_ns, *at_ns, err));
		*at_ns = earlier(n->begin_ns, *at_ns);
		if (*at_ns <= w->begin_ns)
			return ST_OK;
		uint32_t other = depends(g, at, &by_wait);
		if (other != NO_ID)
			free_ns = earlier(g->work[other].end_ns, *at_ns);
		if (n->has_launch && (other == NO_ID || n->launch_begin_ns > free_ns)) {
			TRY(put_part(w, PATH_LAUNCH, n->launch_name, n->launch_begin_ns, *at_ns,
				     err));
			*at_ns = earlier(n->launch_begin_ns, *at_ns);
			return ST_OK;
		}
		if (other == NO_ID) {
			TRY(put_part(w, PATH_UNKNOWN, n->name, w->begin_ns, *at_ns, err));
			*at_ns = w->begin_ns;
			return ST_OK;
		}
		TRY(put_part(w, by_wait ? PATH_STREAM_WAIT : PATH_DISPATCH, n->name, free_ns,
			     *at_ns, err));
		*at_ns = free_ns;
		at = other;
	}
}

/* At the step's end all running work counts as ending at once. */
static bool ends_later(const struct critical_graph *g, uint32_t a, uint32_t b, uint64_t end_ns)
{
	uint64_t a_ns = earlier(g->work[a].end_ns, end_ns);
	uint64_t b_ns = earlier(g->work[b].end_ns, end_ns);

	return a_ns != b_ns ? a_ns > b_ns : a > b;
}

enum status critical_path_find(const struct critical_graph *g, uint32_t process, uint64_t begin_ns,
			       uint64_t end_ns, struct path_segments *out, struct error *err)
{
	struct walk w = { .g = g,
			  .process = process,
			  .begin_ns = begin_ns,
			  .wait_at = g->wait_count,
			  .out = out };
	uint64_t at_ns = end_ns;
	uint32_t open = waits_at_end(&w, end_ns);

	while (at_ns > begin_ns) {
		size_t before = w.wait_at;
		uint32_t work = wait_take(&w, at_ns);

		if (open != NO_ID && (work == NO_ID || ends_later(g, open, work, end_ns))) {
			work = open;
			w.wait_at = before;
		}
		open = NO_ID;
		if (work == NO_ID)
			return put_host(&w, begin_ns, at_ns, err);
		TRY(put_host(&w, g->work[work].end_ns, at_ns, err));
		at_ns = earlier(g->work[work].end_ns, at_ns);
		TRY(walk_gpu(&w, work, &at_ns, err));
	}
	return ST_OK;
}

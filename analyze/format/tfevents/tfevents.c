/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorBoard's event files: one run for each rank (r0, r1 ...; a single rank is the folder's run),
 * and the summary as a text card in the first.
 *
 * 	step/time_s                       each step: its wall time
 * 	gpuN/compute_share ...            each step: shares of its wall time, which add to 1; gpu0
 * 	                                  is the rank's first GPU, so that charts of ranks overlay
 * 	memory/gpuN_WHAT_bytes            each step: the most in use (report `memory`)
 * 	profiling/PHASE_avg_time, _total_time, _count    at the last step, in seconds; also ranges
 * 	                                                 that are no phase
 * 	phases/PHASE_share                at the last step: share of the wall time of counted steps
 *
 * If a step number repeats, TensorBoard drops all points from that number on. So the second step 7
 * of a run is shown as 17, 107, 1007 ..., by the least power of ten that no number reaches.
 */
#include "analyze/format/format.h"

#include "convert/output/tfevents.h"
#include "schemas/base/utf8.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAG_BYTES = 512, GPUS_MOST = 64 };
#define CARD_BYTES ((size_t)64 << 20)

struct maker {
	const struct format_request *how;
	struct view *views;
	struct buf *out;
	const union value *rank; /* keys of the rank */
	uint64_t first_ns, last_ns;
	int64_t last_step;
	struct shown *shown; /* steps of the rank, by number and begin */
	size_t shown_count;
	bool is_again;            /* some number repeats */
	uint64_t gpus[GPUS_MOST]; /* device numbers of the rank */
	size_t gpu_count;
};
struct shown {
	uint64_t number, begin_ns;
	int64_t step; /* number that is shown */
};

static struct view below_rank(const struct maker *m, const char *table)
{
	struct view all = view_find(m->views, m->how->tables, table);

	return view_below(&all, m->rank, RANK_KEYS);
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* Writes a point of the chart GROUP NAME WHAT. The name may contain any bytes. */
static void put_point(struct maker *m, uint64_t at_ns, int64_t step, double value,
		      const char *group, const char *name, const char *what)
{
	struct buf tag;
	char bytes[4];

	buf_init(&tag, TAG_BYTES);
	buf_put_text(&tag, group);
	while (name && *name) {
		uint32_t c = utf8_next(&name);

		buf_put(&tag, bytes, utf8_put(bytes, c < ' ' ? '_' : c));
	}
	buf_put_text(&tag, what);
	if (tag.status == ST_OK && isfinite(value))
		tfevents_put_scalar(m->out, at_ns, step, buf_text(&tag), value);
	buf_release(&tag);
}

/* Writes a point at the last step. */
static void put_figure(struct maker *m, const char *group, const char *name, const char *what,
		       double value)
{
	put_point(m, m->last_ns, m->last_step, value, group, name, what);
}

/* ---- repeated numbers ---- */

static int compare_shown(const void *a, const void *b)
{
	return sort_compare(a, b, SORT_KEYS(UP(struct shown, number), UP(struct shown, begin_ns)));
}

/* Adds to a step number, limited to TensorBoard's largest one. */
static int64_t step_plus(int64_t step, uint64_t more)
{
	uint64_t sum = (uint64_t)step + (more < INT64_MAX ? more : INT64_MAX);

	return sum < INT64_MAX ? (int64_t)sum : INT64_MAX;
}

/* Returns the shown step for a row of `steps` or of a table below it. */
static int64_t step_of(const struct maker *m, const struct view *v, size_t i)
{
	struct shown key = { view_u64(v, i, "step"), view_u64(v, i, "begin_ns"), 0 };
	const struct shown *found =
		m->is_again ? bsearch(&key, m->shown, m->shown_count, sizeof(key), compare_shown)
			    : NULL;

	return found ? found->step : step_plus(0, key.number);
}

struct placed {
	int64_t step;
	size_t place;
	const union value *row;
};

/* Sorts rows by the step that is shown. */
static enum status put_in_order(const struct maker *m, const struct view *v, struct error *err)
{
	struct placed *all = m->is_again ? calloc(v->count + 1, sizeof(*all)) : NULL;

	if (!m->is_again)
		return ST_OK;
	if (!all)
		return fail_memory(err);
	for (size_t i = 0; i < v->count; i++)
		all[i] = (struct placed){ step_of(m, v, i), i, v->rows[i] };
	SORT_BY(all, v->count, UP(struct placed, step), UP(struct placed, place));
	for (size_t i = 0; i < v->count; i++)
		v->rows[i] = (union value *)(uintptr_t)all[i].row;
	free(all);
	return ST_OK;
}

/* ---- each step ---- */

/* Lists the GPUs with rows in a table, in the order of their numbers, up to GPUS_MOST. */
static void list_gpus(struct maker *m, const char *table)
{
	struct view v = below_rank(m, table);

	for (size_t i = 0; i < v.count; i++) {
		uint64_t device = view_u64(&v, i, "device");
		size_t at = 0;

		while (at < m->gpu_count && m->gpus[at] < device)
			at++;
		if (device == NO_U64 || m->gpu_count == GPUS_MOST ||
		    (at < m->gpu_count && m->gpus[at] == device))
			continue;
		memmove(&m->gpus[at + 1], &m->gpus[at], (m->gpu_count - at) * sizeof(*m->gpus));
		m->gpus[at] = device;
		m->gpu_count++;
	}
}

static unsigned long long place_of(const struct maker *m, uint64_t device)
{
	size_t at = 0;

	while (at < m->gpu_count && m->gpus[at] != device)
		at++;
	return at < m->gpu_count ? at : device;
}

static enum status put_memory(struct maker *m, struct error *err)
{
	struct view v = below_rank(m, "memory_steps");
	char group[48];

	TRY(put_in_order(m, &v, err));
	for (size_t i = 0; i < v.count; i++) {
		uint64_t device = view_u64(&v, i, "device");

		if (view_u64(&v, i, "max_bytes") == NO_U64)
			continue;
		if (device == NO_U64)
			snprintf(group, sizeof(group), "memory/host_");
		else
			snprintf(group, sizeof(group), "memory/gpu%llu_", place_of(m, device));
		put_point(m, view_u64(&v, i, "begin_ns"), step_of(m, &v, i),
			  view_number(&v, i, "max_bytes"), group, view_text(&v, i, "what"),
			  "_bytes");
	}
	return ST_OK;
}

/* ---- at the last step ---- */

static void put_times(struct maker *m, const char *name, uint64_t total_ns, uint64_t count)
{
	put_figure(m, "profiling/", name, "_avg_time", seconds(total_ns) / (double)count);
	put_figure(m, "profiling/", name, "_total_time", seconds(total_ns));
	put_figure(m, "profiling/", name, "_count", (double)count);
}

/* Writes the phases, and the program's other ranges. */
static void put_phases(struct maker *m)
{
	struct view v = below_rank(m, "phases"), actions = below_rank(m, "actions");

	for (size_t i = 0; i < v.count; i++) {
		const char *name = view_cell(&v, i, "name").text;
		uint64_t count = view_u64(&v, i, "count");
		uint64_t total_ns = view_u64(&v, i, "inclusive_ns");

		put_figure(m, "phases/", name, "_share", view_cell(&v, i, "wall_pct").f64 / 100);
		if (!count || count == NO_U64)
			continue;
		put_times(m, name, total_ns, count);
	}
	for (size_t i = 0; i < actions.count; i++) {
		const char *name = view_cell(&actions, i, "name").text;
		bool is_phase = false;

		for (size_t k = 0; k < v.count && !is_phase; k++)
			is_phase = view_u64(&v, k, "count") > 0 &&
				   !strcmp(view_cell(&v, k, "name").text, name);
		if (!is_phase)
			put_times(m, name, view_u64(&actions, i, "total_ns"),
				  view_u64(&actions, i, "count"));
	}
}

static enum status put_card(struct maker *m, struct error *err)
{
	struct buf card;

	buf_init(&card, CARD_BYTES);
	enum status status = format_md.write(m->how, &card, err);
	if (status == ST_OK)
		tfevents_put_text_card(m->out, m->last_ns, m->last_step, "summary", buf_text(&card),
				       card.len);
	buf_release(&card);
	return status;
}

/* ---- files ---- */

/* Writes a file name. It must contain "tfevents", and TensorBoard reads the files of a folder in
 * the order of their names. */
static void put_file_name(const struct maker *m, bool is_alone, struct buf *name)
{
	const char *host = m->rank[1].text && m->rank[1].text[0] ? m->rank[1].text : "host";

	if (!is_alone && m->rank[0].u64 != NO_U64)
		buf_putf(name, "r%llu/", (unsigned long long)m->rank[0].u64);
	else if (!is_alone)
		buf_putf(name, "p%llu/", (unsigned long long)m->rank[2].u64);
	buf_putf(name, "events.out.tfevents.%010llu.",
		 (unsigned long long)(m->first_ns / 1000000000u));
	for (host = strrchr(host, '/') ? strrchr(host, '/') + 1 : host; *host; host++)
		buf_put_byte(name, (uint8_t)(isalnum((unsigned char)*host) || *host == '-' ? *host
											   : '_'));
	buf_putf(name, ".%llu.0",
		 (unsigned long long)(m->rank[2].u64 == NO_U64 ? 0 : m->rank[2].u64));
}

static enum status put_rank(struct maker *m, bool is_alone, bool is_first, struct buf *name,
			    struct error *err)
{
	struct view steps = below_rank(m, "steps");

	if (steps.count)
		m->first_ns = m->last_ns = view_u64(&steps, 0, "begin_ns");
	put_file_name(m, is_alone, name);
	tfevents_put_version(m->out, m->first_ns);
	uint64_t wide = 10;

	TRY(vec_new(&m->shown, steps.count + 1, err));
	m->shown_count = steps.count;
	for (size_t i = 0; i < steps.count; i++) {
		m->shown[i].number = view_u64(&steps, i, "step");
		m->shown[i].begin_ns = view_u64(&steps, i, "begin_ns");
		while (wide <= m->shown[i].number && wide < (uint64_t)INT64_MAX / 10)
			wide *= 10;
	}
	qsort(m->shown, m->shown_count, sizeof(*m->shown), compare_shown);
	for (size_t i = 0; i < m->shown_count; i++) {
		struct shown *s = &m->shown[i];
		bool is_again = i && s[-1].number == s->number;

		s->step = is_again ? step_plus(s[-1].step, wide) : step_plus(0, s->number);
		m->is_again |= is_again;
	}
	TRY(put_in_order(m, &steps, err));
	for (size_t i = 0; i < steps.count; i++) {
		m->last_ns = view_u64(&steps, i, "begin_ns");
		m->last_step = step_of(m, &steps, i);
		put_figure(m, "step/time_s", "", "", seconds(view_u64(&steps, i, "wall_ns")));
	}
	list_gpus(m, "step_gpus");
	list_gpus(m, "memory_steps");
	static const char *const parts[][2] = {
		{ "compute_ns", "compute_share" },
		{ "exposed_comm_ns", "exposed_comm_share" },
		{ "exposed_copy_ns", "exposed_copy_share" },
		{ "idle_ns", "idle_share" },
	};
	struct view v = below_rank(m, "step_gpus");
	char group[32];

	TRY(put_in_order(m, &v, err));
	for (size_t i = 0; i < v.count; i++) {
		uint64_t all = 0;

		for (size_t k = 0; k < 4; k++)
			all += view_u64(&v, i, parts[k][0]);
		snprintf(group, sizeof(group), "gpu%llu/", place_of(m, view_u64(&v, i, "device")));
		for (size_t k = 0; all && k < 4; k++)
			put_point(m, view_u64(&v, i, "begin_ns"), step_of(m, &v, i),
				  view_number(&v, i, parts[k][0]) / (double)all, group, parts[k][1],
				  "");
	}
	TRY(put_memory(m, err));
	put_phases(m);
	return is_first ? put_card(m, err) : ST_OK;
}

static enum status tfevents_part(const struct format_request *how, size_t index, struct buf *name,
				 struct buf *out, bool *more, struct error *err)
{
	struct maker m = { .how = how, .out = out };
	struct view ranks;
	enum status status = ST_OK;

	TRY(views_new(&m.views, how->tables, err));
	ranks = view_find(m.views, how->tables, "ranks");
	*more = index < ranks.count;
	if (*more) {
		m.rank = ranks.rows[index];
		status = put_rank(&m, ranks.count == 1, !index, name, err);
	}
	free(m.shown);
	views_free(m.views, how->tables);
	TRY(status);
	TRY(buf_status(name, err));
	return buf_status(out, err);
}

/* Not possible: a single stream has no file names. The command line calls tfevents_part(). */
static enum status tfevents_write(const struct format_request *how, struct buf *out,
				  struct error *err)
{
	return fail(err, ST_USAGE, NOWHERE, "tfevents is a folder of files: -o FOLDER is needed");
}

const struct format_type format_tfevents = {
	.name = "tfevents",
	.help = "TensorBoard: scalars of steps, phases, memory, and the summary; -o names a folder",
	.write = tfevents_write,
	.part = tfevents_part,
};

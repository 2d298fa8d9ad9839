/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/detail/parts.h"

#include "convert/step.h"
#include "schemas/buf.h"
#include "schemas/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE_BYTES = 1024, SHAPE_UNASKED = 0, SHAPE_PLAIN, SHAPE_STANDS_FOR };

/* ---- events that are held, weighed and put ---- */

enum status detail_hold(struct detail *d, struct detail_held *h, const struct event *e,
			struct error *err)
{
	uint32_t words = e->vary ? trace_get_shape(d->trace, e->shape)->vary_count : 0;

	h->event = *e;
	h->event.vary = NULL;
	if (words > h->room) {
		uint64_t *bigger = realloc(h->vary, words * sizeof(*bigger));

		if (!bigger)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for the level of detail");
		h->vary = bigger;
		h->room = words;
	}
	h->words = words;
	if (!words)
		return ST_OK;
	memcpy(h->vary, e->vary, words * sizeof(*h->vary));
	h->event.vary = h->vary;
	return ST_OK;
}

/* The word of a shape's key; -1: it has none. */
static int find_key(const struct trace *t, uint32_t shape, const char *key)
{
	const struct shape *s = trace_get_shape(t, shape);

	for (uint32_t i = 0; i < s->vary_count; i++)
		if (strcmp(trace_text(t, s->vary[i].key, NULL), key) == 0)
			return (int)i;
	return -1;
}

static bool stands_for_others(struct detail *d, const struct event *e)
{
	uint8_t *known;

	if (!e->vary || e->shape >= d->shape_count)
		return false;
	known = &d->shapes[e->shape];
	if (*known == SHAPE_UNASKED)
		*known = find_key(d->trace, e->shape, DETAIL_COUNT_KEY) >= 0 &&
					 find_key(d->trace, e->shape, DETAIL_SUM_KEY) >= 0 ?
				 SHAPE_STANDS_FOR : SHAPE_PLAIN;
	return *known == SHAPE_STANDS_FOR;
}

void detail_worth(struct detail *d, const struct event *e, uint64_t *count, uint64_t *sum_ns,
		  uint64_t *longest_ns)
{
	int longest;

	*count = 1;
	*sum_ns = *longest_ns = e->end_ns - e->begin_ns;
	if (!stands_for_others(d, e))
		return;
	longest = find_key(d->trace, e->shape, DETAIL_LONGEST_KEY);
	*count = e->vary[find_key(d->trace, e->shape, DETAIL_COUNT_KEY)];
	*sum_ns = e->vary[find_key(d->trace, e->shape, DETAIL_SUM_KEY)];
	*longest_ns = longest >= 0 ? e->vary[longest] : *longest_ns;
}

enum status detail_put_kept(struct detail *d, const struct event *e, struct error *err)
{
	uint32_t process = trace_get_track(d->trace, e->track)->process;

	d->totals[process].kept++;
	if (e->correlation && (event_is_gpu_work(e) || e->kind == KIND_SYNC))
		detail_set_add(&d->ids, process, IDS_KEPT_GPU, e->correlation);
	return spool_put(d->spool, 0, e, 1, err);
}

/* Members of the event by which a viewer places it stay. */
static bool is_place(const struct trace *t, const struct attr *a)
{
	const char *key = trace_text(t, a->key, NULL);

	return strcmp(key, ".pid") == 0 || strcmp(key, ".tid") == 0 || strcmp(key, ".cat") == 0;
}

static enum status shape_make(struct detail *d, uint32_t of, uint32_t *out, struct error *err)
{
	static const struct {
		const char *key;
		uint8_t unit;
	} rows[] = { { DETAIL_COUNT_KEY, UNIT_COUNT }, { DETAIL_SUM_KEY, UNIT_NS },
		     { DETAIL_LONGEST_KEY, UNIT_NS } };
	const struct shape *old = trace_get_shape(d->trace, of);
	struct attr vary[sizeof(rows) / sizeof(*rows)] = { { .key = 0 } }, fixed[3];
	struct shape made = { .fixed = fixed, .vary = vary, .vary_count = 3 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		vary[i] = (struct attr){ .type = ATTR_U64, .unit = rows[i].unit };
		vary[i].key = trace_name(d->trace, rows[i].key, strlen(rows[i].key), err);
		if (!vary[i].key)
			return err->status;
	}
	for (uint32_t i = 0; i < old->fixed_count && made.fixed_count < 3; i++)
		if (is_place(d->trace, &old->fixed[i]))
			fixed[made.fixed_count++] = old->fixed[i];
	*out = trace_shape(d->trace, &made, err);
	return *out ? ST_OK : err->status;
}

/* The shape of what stands for events of this one. */
static enum status shape_find(struct detail *d, uint32_t *shape, struct error *err)
{
	uint32_t *made = &d->made_shapes[*shape < d->shape_count ? *shape : 0];

	if (!*made)
		TRY(shape_make(d, *shape, made, err));
	*shape = *made;
	return ST_OK;
}

enum status detail_put_made(struct detail *d, struct event *e, uint64_t count, uint64_t sum_ns,
			    uint64_t longest_ns, uint64_t records, struct error *err)
{
	struct detail_totals *t = &d->totals[trace_get_track(d->trace, e->track)->process];
	const uint64_t words[] = { count, sum_ns, longest_ns };

	t->merged += records;
	t->into++;
	TRY(shape_find(d, &e->shape, err));
	e->vary = words;
	return spool_put(d->spool, 0, e, 1, err);
}

/* ---- reading what is below ---- */

static unsigned fine_of(const struct detail *d, uint32_t process)
{
	return d->how.levels[process < d->how.level_count ? process : 0];
}

/* The level that keeps all that this fine one does not merge. */
static unsigned level_of(const struct detail *d, uint32_t process)
{
	return (fine_of(d, process) + DETAIL_FINE - 1) / DETAIL_FINE;
}

static enum status take(struct detail *d, const struct event *e, struct error *err)
{
	const struct track *k = trace_get_track(d->trace, e->track);
	unsigned fine = fine_of(d, k->process);
	struct detail_track *t = &d->tracks[e->track < d->track_count ? e->track : 0];

	if (fine > DETAIL_MOST)
		return ST_OK;
	d->totals[k->process].in++;
	if (!fine || e->track >= d->track_count)
		return detail_put_kept(d, e, err);
	if (k->home == HOME_COUNTER || k->home == HOME_POOL)
		return detail_bin_put(d, e, detail_level_at(fine, e->begin_ns), err);
	if (e->begin_ns >= t->merged_end_ns) /* else what nests could cross */
		t->level = detail_level_at(fine, e->begin_ns);
	return detail_group_put(d, e, t->level, err);
}

static enum status take_all(struct detail *d, struct error *err)
{
	struct batch batch;

	while ((d->fault = source_next(d->below, &batch, &d->why)) == ST_OK)
		for (size_t i = 0; i < batch.count; i++)
			TRY(take(d, &batch.events[i], err));
	for (uint32_t id = 1; id < d->track_count; id++) {
		TRY(detail_group_close(d, &d->tracks[id].group, err));
		TRY(detail_bin_close(d, d->tracks[id].bin, trace_get_track(d->trace, id)->home,
				     err));
	}
	return ST_OK;
}

/* ---- what the file says of it ---- */

const char *detail_put_time(uint64_t ns, char out[DETAIL_TEXT])
{
	static const char *const units[] = { "us", "ms", "s" };
	double value = (double)ns / 1e3;
	size_t unit = 0;

	for (; unit < 2 && value >= 1000; unit++)
		value /= 1e3;
	if (ns < 1000)
		snprintf(out, DETAIL_TEXT, "%u ns", (unsigned)ns);
	else
		snprintf(out, DETAIL_TEXT, "%.3g %s", value, units[unit]);
	return out;
}

static void put_note(const struct detail_totals *t, struct buf *out)
{
	char floor_text[DETAIL_TEXT];

	buf_putf(out, "%llu events: %llu kept, %llu merged into %llu; nothing of %s or longer",
		 (unsigned long long)t->in, (unsigned long long)t->kept,
		 (unsigned long long)t->merged, (unsigned long long)t->into,
		 detail_put_time(t->floor_ns, floor_text));
}

static enum status note_process(struct detail *d, uint32_t id, struct error *err)
{
	struct process p = *trace_get_process(d->trace, id);
	const struct shape *old = trace_get_shape(d->trace, p.shape);
	struct attr *fixed = calloc(old->fixed_count + 1u, sizeof(*fixed));
	struct shape made = { .fixed = fixed, .vary = old->vary, .vary_count = old->vary_count };
	uint32_t key = trace_name(d->trace, DETAIL_NOTE_KEY, strlen(DETAIL_NOTE_KEY), err);
	struct buf note;

	if (!fixed)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the level of detail");
	for (uint32_t i = 0; i < old->fixed_count; i++)
		if (old->fixed[i].key != key)
			fixed[made.fixed_count++] = old->fixed[i];
	buf_init(&note, NOTE_BYTES);
	put_note(&d->totals[id], &note);
	fixed[made.fixed_count++] = (struct attr){
		.key = key, .type = ATTR_TEXT,
		.bits = trace_name(d->trace, buf_text(&note), note.len, err),
	};
	buf_release(&note);
	p.shape = key ? trace_shape(d->trace, &made, err) : 0;
	free(fixed);
	if (!p.shape)
		return err->status;
	trace_set_process(d->trace, id, &p);
	return ST_OK;
}

static enum status notes_put(struct detail *d, struct error *err)
{
	for (uint32_t id = 1; id < d->process_count; id++) {
		struct detail_totals *t = &d->totals[id];

		if (!fine_of(d, id) || fine_of(d, id) > DETAIL_MOST)
			continue;
		t->floor_ns = detail_floor_ns(level_of(d, id));
		trace_lose(d->trace, id, LOSS_SUMMED, t->merged - t->into);
		TRY(note_process(d, id, err));
	}
	return ST_OK;
}

struct detail_totals detail_totals(const struct source *source, uint32_t process)
{
	const struct detail *d = (const struct detail *)source;
	struct detail_totals all = { .floor_ns = UINT64_MAX };

	for (uint32_t id = 0; id < d->process_count; id++) {
		const struct detail_totals *t = &d->totals[id];

		if (process && id != process)
			continue;
		all.in += t->in;
		all.kept += t->kept;
		all.merged += t->merged;
		all.into += t->into;
		all.arrows += t->arrows;
		all.dropped += t->dropped;
		if (t->floor_ns && t->floor_ns < all.floor_ns)
			all.floor_ns = t->floor_ns;
		if (t->floor_ns > all.highest_ns)
			all.highest_ns = t->floor_ns;
	}
	all.floor_ns = all.floor_ns == UINT64_MAX ? 0 : all.floor_ns;
	return all;
}

/* ---- the stage ---- */

/* What was joined to something that is merged now stands alone; false: it goes as well. */
static bool let_go(struct detail *d, struct event *e)
{
	uint32_t process = trace_get_track(d->trace, e->track)->process;
	struct detail_totals *t = &d->totals[process];
	bool is_gpu = event_is_gpu_work(e) || e->kind == KIND_SYNC, is_lost = false;

	if (e->kind == KIND_MARK && e->subkind != MARK_INSTANT) {
		is_lost = detail_set_has(&d->ids, process, IDS_FLOW, e->number);
		t->kept += !is_lost;
		t->arrows += is_lost;
		t->dropped += is_lost;
		if (is_lost)
			trace_lose(d->trace, process, LOSS_SUMMED, 1);
		return !is_lost;
	}
	if (!e->correlation || !(is_gpu || e->kind == KIND_API))
		return true;
	if (is_gpu)
		is_lost = detail_set_has(&d->ids, process, IDS_MERGED_HOST, e->correlation);
	else
		is_lost = detail_set_has(&d->ids, process, IDS_MERGED_GPU, e->correlation) &&
			  !detail_set_has(&d->ids, process, IDS_KEPT_GPU, e->correlation);
	if (!is_lost)
		return true;
	e->correlation = 0;
	t->arrows++;
	return true;
}

static enum status detail_next(struct source *source, struct batch *out, struct error *err)
{
	struct detail *d = (struct detail *)source;
	enum status status = ST_OK;
	uint32_t group;

	*out = (struct batch){ .count = 0 };
	if (d->how.step) /* what was looked at of it is not given again */
		TRY(step_hold(d->how.step, UINT64_MAX, err));
	while (!out->count && status == ST_OK) {
		size_t kept = 0;

		status = spool_next(d->spool, &group, out, err);
		for (size_t i = 0; status == ST_OK && d->ids.count && i < out->count; i++)
			if (let_go(d, &out->events[i]))
				out->events[kept++] = out->events[i];
		if (d->ids.count)
			out->count = status == ST_OK ? kept : 0;
	}
	if (status != ST_END || d->fault == ST_END)
		return status;
	status = d->fault;
	d->fault = ST_END;
	return fail(err, status, d->why.at, "%s", d->why.text);
}

static void held_release(struct detail_held *h)
{
	free(h->vary);
}

static void track_release(struct detail_track *t)
{
	for (unsigned i = 0; t->group.parts && i < DETAIL_PARTS; i++)
		held_release(&t->group.parts[i].first);
	free(t->group.parts);
	if (t->bin) {
		held_release(&t->bin->low);
		held_release(&t->bin->high);
	}
	free(t->bin);
	free(t->ends);
}

/* What only reading below needs. */
static void tracks_release(struct detail *d)
{
	for (uint32_t i = 0; d->tracks && i < d->track_count; i++)
		track_release(&d->tracks[i]);
	free(d->tracks);
	d->tracks = NULL;
}

static void detail_close(struct source *source)
{
	struct detail *d = (struct detail *)source;

	source_close(d->below);
	tracks_release(d);
	detail_set_release(&d->ids);
	spool_close(d->spool);
	free(d->totals);
	free(d->shapes);
	free(d->made_shapes);
	free(d);
}

static const struct source_type detail_type = {
	.name = "detail",
	.help = "the level of detail",
	.next = detail_next,
	.close = detail_close,
};

static enum status detail_begin(struct detail *d, struct error *err)
{
	d->track_count = trace_count(d->trace, TRACE_TRACKS) + 1;
	d->process_count = trace_count(d->trace, TRACE_PROCESSES) + 1;
	d->shape_count = trace_count(d->trace, TRACE_SHAPES) + 1;
	d->tracks = calloc(d->track_count, sizeof(*d->tracks));
	d->totals = calloc(d->process_count, sizeof(*d->totals));
	d->shapes = calloc(d->shape_count, 1);
	d->made_shapes = calloc(d->shape_count, sizeof(*d->made_shapes));
	if (!d->tracks || !d->totals || !d->shapes || !d->made_shapes)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the level of detail");
	return spool_open(&d->spool, d->trace, d->how.budget, err);
}

/* The shortest stretch of a phase that a picture at these levels needs. */
static uint64_t shortest_ns(const struct detail *d)
{
	unsigned least = DETAIL_LEVELS - 1;

	for (uint32_t id = 1; id < d->process_count; id++)
		least = fine_of(d, id) / DETAIL_FINE < least ? fine_of(d, id) / DETAIL_FINE : least;
	return detail_floor_ns(least);
}

enum status detail_open(struct source **out, struct source *below, struct trace *trace,
			const struct detail_request *how, struct error *err)
{
	struct detail *d = calloc(1, sizeof(*d));
	enum status status;

	*out = NULL;
	if (!d) {
		source_close(below);
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the level of detail");
	}
	d->source.type = &detail_type;
	d->below = below;
	d->trace = trace;
	d->how = *how;
	status = detail_begin(d, err);
	if (status == ST_OK && how->step)
		step_keep(how->step, shortest_ns(d));
	if (status == ST_OK)
		status = take_all(d, err);
	if (status == ST_OK)
		status = notes_put(d, err);
	if (status != ST_OK) {
		detail_close(&d->source);
		return status;
	}
	tracks_release(d);
	*out = &d->source;
	return ST_OK;
}

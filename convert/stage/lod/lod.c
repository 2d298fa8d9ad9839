/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/lod/internal.h"

#include "schemas/base/buf.h"
#include "schemas/base/vec.h"
#include "schemas/model/args.h"
#include "schemas/model/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINK_BYTES_PER_NS = 32, /* bandwidth of a fast host link: large copies count as long */
	INTERVAL_TIMES =
		16,         /* thresholds per interval; no merged event crosses an interval's end */
	SAME_THRESHOLD = 4, /* consecutive intervals with the same threshold */
	SPREAD = 8,         /* thresholds vary by up to 1/8 */
	NOTE_BYTES = 1024,
};

/* ---- thresholds ---- */

uint64_t lod_length_ns(const struct event *e)
{
	uint64_t ns = e->end_ns - e->begin_ns;

	if (e->kind == KIND_STEP ||
	    (e->kind == KIND_RANGE && (e->subkind == RANGE_PHASE || e->subkind == RANGE_PROFILER)))
		return UINT64_MAX;
	if (e->kind == KIND_MEMCPY && e->bytes / LINK_BYTES_PER_NS > ns)
		return e->bytes / LINK_BYTES_PER_NS;
	return ns;
}

static uint64_t interval_of(uint64_t min_ns)
{
	return min_ns ? min_ns * INTERVAL_TIMES : 1; /* at most LOD_MOST_NS: no overflow */
}

/* Multiples of the golden ratio are spread evenly over the range, however few they are. */
uint64_t lod_threshold_ns(uint64_t min_ns, uint64_t at_ns)
{
	uint32_t share = (uint32_t)(at_ns / interval_of(min_ns) / SAME_THRESHOLD) * 0x9E3779B9u;

	return min_ns + (uint64_t)((double)min_ns / SPREAD * share / UINT32_MAX);
}

uint64_t lod_all_from_ns(uint64_t min_ns)
{
	return min_ns ? min_ns + min_ns / SPREAD + 1 : 0;
}

/* ---- ids of arrows ---- */

static uint64_t id_key(uint32_t process, enum lod_what what, uint64_t id)
{
	return hash_word(hash_word((uint64_t)process << 2, (uint64_t)what), id / 64);
}

void lod_note_id(struct map *ids, uint32_t process, enum lod_what what, uint64_t id)
{
	uint64_t key = id_key(process, what, id);
	uint64_t *bits = ids->count < LOD_IDS_MOST ? map_put(ids, key, NULL) : map_find(ids, key);

	if (bits)
		*bits |= UINT64_C(1) << (id % 64);
}

bool lod_has_id(const struct map *ids, uint32_t process, enum lod_what what, uint64_t id)
{
	const uint64_t *bits = map_find(ids, id_key(process, what, id));

	return bits && (*bits >> (id % 64) & 1);
}

static const char *const keys[LOD_KEYS] = { LOD_COUNT_KEY, LOD_SUM_KEY, LOD_LONGEST_KEY };

/* ---- events that are held, weighed and put ---- */

enum status lod_hold(struct lod *d, struct lod_held *h, const struct event *e, struct error *err)
{
	uint32_t words = e->args ? trace_get_schema(d->trace, e->schema)->arg_count : 0;

	h->event = *e;
	h->event.args = NULL;
	if (!words)
		return ST_OK;
	TRY(vec_reserve(&h->args, &h->cap, words, err));
	memcpy(h->args, e->args, words * sizeof(*h->args));
	h->event.args = h->args;
	return ST_OK;
}

void lod_weigh(struct lod *d, const struct event *e, uint64_t *count, uint64_t *sum_ns,
	       uint64_t *longest_ns)
{
	uint64_t total, sum;

	*count = 1;
	*sum_ns = *longest_ns = e->end_ns - e->begin_ns;
	if (!event_arg(d->trace, e, d->keys[LOD_KEY_COUNT], &total) ||
	    !event_arg(d->trace, e, d->keys[LOD_KEY_SUM], &sum))
		return;
	*count = total;
	*sum_ns = sum;
	event_arg(d->trace, e, d->keys[LOD_KEY_LONGEST], longest_ns);
}

enum status lod_put_kept(struct lod *d, const struct event *e, struct error *err)
{
	uint32_t process = trace_get_track(d->trace, e->track)->process;

	d->totals[process].kept++;
	if (e->correlation && (event_is_gpu_work(e) || e->kind == KIND_SYNC))
		lod_note_id(&d->ids, process, IDS_KEPT_GPU, e->correlation);
	return spool_put(d->spool, 0, e, 1, err);
}

/* Makes the schema of merged events whose first event has the schema `of`. */
static enum status make_schema(struct lod *d, uint32_t of, uint32_t *out, struct error *err)
{
	const struct arg_schema *old = trace_get_schema(d->trace, of);
	struct attr args[LOD_KEYS], consts[3];
	struct arg_schema made = { .consts = consts, .args = args, .arg_count = LOD_KEYS };

	for (size_t i = 0; i < LOD_KEYS; i++) {
		args[i] = (struct attr){ .unit = i == LOD_KEY_COUNT ? UNIT_COUNT : UNIT_NS };
		args[i].key = trace_name(d->trace, keys[i], strlen(keys[i]), err);
		if (!args[i].key)
			return err->status;
	}
	for (uint32_t i = 0; i < old->const_count && made.const_count < 3; i++) {
		const char *key = trace_text(d->trace, old->consts[i].key, NULL);

		/* viewers place an event by these */
		if (strcmp(key, ".pid") == 0 || strcmp(key, ".tid") == 0 ||
		    strcmp(key, ".cat") == 0)
			consts[made.const_count++] = old->consts[i];
	}
	*out = trace_schema(d->trace, &made, err);
	return *out ? ST_OK : err->status;
}

enum status lod_put_made(struct lod *d, struct event *e, const struct lod_part *p,
			 struct error *err)
{
	struct lod_totals *t = &d->totals[trace_get_track(d->trace, e->track)->process];
	uint32_t *schema = &d->made_schemas[e->schema < d->schema_count ? e->schema : 0];
	const uint64_t words[] = { p->count, p->sum_ns, p->longest_ns };

	t->merged += p->records;
	t->into++;
	if (!*schema)
		TRY(make_schema(d, e->schema, schema, err));
	e->schema = *schema;
	e->args = words;
	return spool_put(d->spool, 0, e, 1, err);
}

/* ---- reading what is below ---- */

static uint64_t min_of(const struct lod *d, uint32_t process)
{
	return d->how.min_ns[process < d->how.count ? process : 0];
}

static enum status take(struct lod *d, const struct event *e, struct error *err)
{
	const struct track *k = trace_get_track(d->trace, e->track);
	uint64_t min_ns = min_of(d, k->process), interval_ns = interval_of(min_ns);
	struct lod_track *t = &d->tracks[e->track < d->track_count ? e->track : 0];

	if (min_ns == LOD_LEAVE_OUT)
		return ST_OK;
	d->totals[k->process].in++;
	if (!min_ns || e->track >= d->track_count)
		return lod_put_kept(d, e, err);
	if (k->type == TRACK_COUNTER || k->type == TRACK_ALLOCATOR)
		return lod_sample_put(d, e, e->begin_ns / interval_ns, err);
	if (e->begin_ns >= t->merged_end_ns) /* otherwise merged events could overlap */
		t->min_ns = lod_threshold_ns(min_ns, e->begin_ns);
	return lod_span_put(d, e, interval_ns, err);
}

/* ---- what the file says of it ---- */

const char *lod_put_time(uint64_t ns, char out[LOD_TEXT])
{
	static const char *const units[] = { "us", "ms", "s" };
	double value = (double)ns / 1e3;
	size_t unit = 0;

	for (; unit < 2 && value >= 1000; unit++)
		value /= 1e3;
	if (ns < 1000)
		snprintf(out, LOD_TEXT, "%u ns", (unsigned)ns);
	else
		snprintf(out, LOD_TEXT, "%.3g %s", value, units[unit]);
	return out;
}

/* Sets the attribute LOD_NOTE_KEY of a process, replacing an existing one. */
static enum status put_note(struct lod *d, uint32_t id, struct error *err)
{
	const struct lod_totals *t = &d->totals[id];
	struct process p = *trace_get_process(d->trace, id);
	const struct arg_schema *old = trace_get_schema(d->trace, p.schema);
	struct attr *consts = calloc(old->const_count + 1u, sizeof(*consts));
	struct arg_schema made = { .consts = consts,
				   .args = old->args,
				   .arg_count = old->arg_count };
	uint32_t key = trace_name(d->trace, LOD_NOTE_KEY, strlen(LOD_NOTE_KEY), err);
	char time[LOD_TEXT], note[NOTE_BYTES];

	if (!consts)
		return fail_memory(err);
	for (uint32_t i = 0; i < old->const_count; i++)
		if (old->consts[i].key != key)
			consts[made.const_count++] = old->consts[i];
	snprintf(
		note, sizeof(note),
		"%llu events: %llu kept, %llu merged into %llu; no event of %s or longer is merged",
		(unsigned long long)t->in, (unsigned long long)t->kept,
		(unsigned long long)t->merged, (unsigned long long)t->into,
		lod_put_time(t->from_ns, time));
	consts[made.const_count++] = (struct attr){
		.key = key,
		.type = ATTR_TEXT,
		.bits = trace_name(d->trace, note, strlen(note), err),
	};
	p.schema = key ? trace_schema(d->trace, &made, err) : 0;
	free(consts);
	if (!p.schema)
		return err->status;
	trace_set_process(d->trace, id, &p);
	return ST_OK;
}

struct lod_totals lod_totals(const struct source *source, uint32_t process)
{
	const struct lod *d = (const struct lod *)source;
	struct lod_totals all = { .in = 0 };

	for (uint32_t id = 0; id < d->process_count; id++) {
		const struct lod_totals *t = &d->totals[id];

		if (process && id != process)
			continue;
		all.in += t->in;
		all.kept += t->kept;
		all.merged += t->merged;
		all.into += t->into;
		all.arrows += t->arrows;
		all.dropped += t->dropped;
		if (t->from_ns && (!all.from_ns || t->from_ns < all.from_ns))
			all.from_ns = t->from_ns;
		if (t->to_ns > all.to_ns)
			all.to_ns = t->to_ns;
	}
	return all;
}

/* ---- the stage ---- */

/* Removes an event's arrow if the other end was merged.  Returns false if the event was only the
 * end of an arrow. */
static bool drop_arrow(struct lod *d, struct event *e)
{
	uint32_t process = trace_get_track(d->trace, e->track)->process;
	struct lod_totals *t = &d->totals[process];
	bool is_lost;

	if (e->kind == KIND_MARK && e->subkind != MARK_INSTANT) {
		is_lost = lod_has_id(&d->ids, process, IDS_FLOW, e->number);
		t->kept += !is_lost;
		t->arrows += is_lost;
		t->dropped += is_lost;
		if (is_lost)
			trace_lose(d->trace, process, LOSS_SUMMED, 1);
		return !is_lost;
	}
	if (!e->correlation)
		return true;
	if (event_is_gpu_work(e) || e->kind == KIND_SYNC)
		is_lost = lod_has_id(&d->ids, process, IDS_MERGED_HOST, e->correlation);
	else
		is_lost = e->kind == KIND_API &&
			  lod_has_id(&d->ids, process, IDS_MERGED_GPU, e->correlation) &&
			  !lod_has_id(&d->ids, process, IDS_KEPT_GPU, e->correlation);
	if (is_lost) {
		e->correlation = 0;
		t->arrows++;
	}
	return true;
}

static enum status lod_next(struct source *source, struct batch *out, struct error *err)
{
	struct lod *d = (struct lod *)source;
	enum status status = ST_OK;
	uint32_t group;

	while (!out->count && status == ST_OK) {
		size_t kept = 0;

		status = spool_next(d->spool, &group, out, err);
		for (size_t i = 0; status == ST_OK && d->ids.count && i < out->count; i++)
			if (drop_arrow(d, &out->events[i]))
				out->events[kept++] = out->events[i];
		if (d->ids.count)
			out->count = status == ST_OK ? kept : 0;
	}
	out->intervals = d->intervals.items; /* all intervals come with the first batch */
	out->interval_count = d->intervals.count;
	out->marks = d->marks;
	out->mark_count = d->mark_count;
	d->intervals.count = d->mark_count = 0;
	if (status != ST_END || d->fault == ST_END)
		return status;
	status = d->fault;
	d->fault = ST_END;
	return fail(err, status, d->why.at, "%s", d->why.text);
}

/* Frees the state that only read_below() uses. */
static void release_tracks(struct lod *d)
{
	for (uint32_t i = 0; d->tracks && i < d->track_count; i++) {
		struct lod_track *t = &d->tracks[i];

		for (unsigned k = 0; t->parts && k < LOD_PARTS; k++)
			free(t->parts[k].first.args);
		free(t->parts);
		if (t->bin) {
			free(t->bin->low.args);
			free(t->bin->high.args);
		}
		free(t->bin);
		free(t->ends);
	}
	free(d->tracks);
	d->tracks = NULL;
	map_release(&d->made_names);
}

static void lod_close(struct source *source)
{
	struct lod *d = (struct lod *)source;

	source_close(d->below);
	release_tracks(d);
	map_release(&d->ids);
	spool_close(d->spool);
	free(d->intervals.items);
	free(d->marks);
	free(d->totals);
	free(d->made_schemas);
	free(d);
}

static const struct source_type lod_type = {
	.name = "detail",
	.help = "the level of detail",
	.next = lod_next,
	.close = lod_close,
};

static enum status read_below(struct lod *d, struct error *err)
{
	d->track_count = trace_count(d->trace, TRACE_TRACKS) + 1;
	d->process_count = trace_count(d->trace, TRACE_PROCESSES) + 1;
	d->schema_count = trace_count(d->trace, TRACE_SCHEMAS) + 1;
	TRY(vec_new(&d->tracks, d->track_count, err));
	TRY(vec_new(&d->totals, d->process_count, err));
	TRY(vec_new(&d->made_schemas, d->schema_count, err));
	for (size_t i = 0; i < LOD_KEYS; i++)
		d->keys[i] = trace_find_name(d->trace, keys[i], strlen(keys[i]));
	TRY(spool_open(&d->spool, d->trace, d->how.budget, err));
	uint64_t least_ns = LOD_MOST_NS;
	struct batch batch;

	for (uint32_t id = 1; id < d->process_count; id++)
		least_ns = min_of(d, id) < least_ns ? min_of(d, id) : least_ns;
	do {
		d->fault = source_next(d->below, &batch, &d->why);
		for (size_t i = 0; i < batch.count; i++)
			TRY(take(d, &batch.events[i], err));
		for (size_t i = 0; i < batch.interval_count; i++)
			TRY(interval_list_add(&d->intervals, &batch.intervals[i],
					      least_ns ? least_ns : 1, err));
		TRY(vec_reserve(&d->marks, &d->mark_cap, d->mark_count + batch.mark_count, err));
		for (size_t i = 0; i < batch.mark_count; i++)
			d->marks[d->mark_count++] = batch.marks[i];
	} while (d->fault == ST_OK);
	for (struct lod_track *t = d->tracks; t < d->tracks + d->track_count; t++) {
		TRY(lod_spans_close(d, t, err));
		TRY(lod_samples_close(d, t, err));
	}
	for (uint32_t id = 1; id < d->process_count; id++) {
		struct lod_totals *t = &d->totals[id];

		if (!min_of(d, id) || min_of(d, id) == LOD_LEAVE_OUT)
			continue;
		t->from_ns = t->to_ns = lod_all_from_ns(min_of(d, id));
		trace_lose(d->trace, id, LOSS_SUMMED, t->merged - t->into);
		TRY(put_note(d, id, err));
	}
	return ST_OK;
}

enum status lod_open(struct source **out, struct source *below, struct trace *trace,
		     const struct lod_request *how, struct error *err)
{
	struct lod *d = calloc(1, sizeof(*d));

	*out = NULL;
	if (!d) {
		source_close(below);
		return fail_memory(err);
	}
	d->source.type = &lod_type;
	d->below = below;
	d->trace = trace;
	d->how = *how;
	enum status status = read_below(d, err);
	if (status != ST_OK) {
		lod_close(&d->source);
		return status;
	}
	release_tracks(d);
	*out = &d->source;
	return ST_OK;
}

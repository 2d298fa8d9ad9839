/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts slices, instants and samples of counters.
 *
 * An end closes the innermost slice of its track.  In most files the events of each track are in
 * time order, or each end follows its begin as in ours, so a stack for each track is enough.  If
 * the order of a track is violated, its begins and ends go through a spool of pairs from there on.
 */
#include "convert/source/perfetto/event_fast.h"

#include "convert/source/chrome/pairs.h"
#include "schemas/base/vec.h"

#include <stdio.h>

/* Field numbers of TrackEvent. */
enum {
	CATEGORY_IID = 3,
	ANNOTATION = 4,
	LEGACY = 6,
	TIME_DELTA_US = 1,
	TYPE = 9,
	NAME_IID = 10,
	TRACK = 11,
	EXTRA_VALUES = 12,
	TIME_US = 16,
	CATEGORY = 22,
	NAME = 23,
	VALUE = 30,
	EXTRA_TRACKS = 31,
	DOUBLE_VALUE = 44,
	EXTRA_DOUBLE_TRACKS = 45,
	EXTRA_DOUBLE_VALUES = 46,
	FLOW = 47,
	TERMINATING_FLOW = 48,
	GPU_CORRELATION = 3000,
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4, TYPE_COMPLETE = 100 };
enum { OPEN_MOST = 1 << 20, FLOWS_MOST = 1 << 20, ID_BYTES = 256 };

struct draft {
	uint64_t track, gpu_correlation, name_iid, category_iid;
	uint64_t time_us; /* time of an old writer's event */
	unsigned time_field;
	struct bytes name_text, category_text, legacy;
	uint32_t name, category; /* name ids */
	unsigned type;
	double value;
	int64_t begin_ns, duration_ns;
	uint32_t pair; /* identifies the pair of a begin or end in the spool of pairs */
};

/* ---- parsing an event ---- */

static double as_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Adds an arrow of the event or a sample of a counter in the same packet to r->refs. */
static void put_ref(struct pftrace_reader *r, struct pftrace_ref ref)
{
	if (r->ref_count < PFTRACE_LIST_MOST)
		r->refs[r->ref_count++] = ref;
	else
		pftrace_lose(r, LOSS_CEILING);
}

static void parse_ref(struct pftrace_reader *r, uint32_t field, uint64_t u64)
{
	if (field == FLOW || field == TERMINATING_FLOW)
		put_ref(r,
			(struct pftrace_ref){ .is = field == FLOW ? PFTRACE_FLOW : PFTRACE_FLOW_END,
					      .id = u64 });
	else if (field == EXTRA_TRACKS || field == EXTRA_DOUBLE_TRACKS)
		put_ref(r, (struct pftrace_ref){ .is = PFTRACE_SAMPLE_TRACK,
						 .is_double = field == EXTRA_DOUBLE_TRACKS,
						 .id = u64 });
	else if (field == EXTRA_VALUES)
		put_ref(r, (struct pftrace_ref){ .is = PFTRACE_SAMPLE,
						 .value = (double)(int64_t)u64 });
	else if (field == EXTRA_DOUBLE_VALUES)
		put_ref(r, (struct pftrace_ref){ .is = PFTRACE_SAMPLE,
						 .is_double = true,
						 .value = as_double(u64) });
}

/* Parses a TrackEvent.  Returns false if it is damaged. */
static bool parse(struct pftrace_reader *r, struct bytes b, struct draft *d)
{
	struct pb_field f, m;

	r->annotation_count = r->ref_count = 0;
	while (pb_next_padded(&b, &f)) {
		if (f.wire != PB_BYTES) {
			switch (f.number) {
			case TYPE:
				d->type = (unsigned)f.u64;
				break;
			case TRACK:
				d->track = f.u64;
				break;
			case NAME_IID:
				d->name_iid = f.u64;
				break;
			case CATEGORY_IID:
				d->category_iid = d->category_iid ? d->category_iid : f.u64;
				break;
			case TIME_DELTA_US:
			case TIME_US:
				d->time_us = f.u64;
				d->time_field = f.number;
				break;
			case VALUE:
				d->value = (double)(int64_t)f.u64;
				break;
			case DOUBLE_VALUE:
				d->value = as_double(f.u64);
				break;
			default:
				parse_ref(r, f.number, f.u64);
			}
			continue;
		}
		switch (f.number) {
		case ANNOTATION:
			if (r->annotation_count < PFTRACE_LIST_MOST)
				r->annotations[r->annotation_count++] = f.bytes;
			else
				pftrace_lose(r, LOSS_CEILING);
			break;
		case NAME:
			d->name_text = f.bytes;
			break;
		case CATEGORY:
			if (d->category_text.at == d->category_text.end)
				d->category_text = f.bytes;
			break;
		case LEGACY:
			d->legacy = f.bytes;
			break;
		case GPU_CORRELATION:
			while (!d->gpu_correlation && pb_next_padded(&f.bytes, &m))
				d->gpu_correlation = m.number == 1 ? m.u64 : 0;
			break;
		}
	}
	return !b.is_truncated;
}

/* Parses the legacy form of an event, which TRACE_EVENT's old macros and converted JSON use: its
 * type is a letter of Chrome's JSON.  A pair has the same category, scope and id, and the same
 * process if the id is a local one. */
static enum status parse_legacy(struct pftrace_reader *r, const struct pftrace_sequence *q,
				struct pftrace_track *t, struct draft *d, struct error *err)
{
	uint32_t category = pftrace_name(q, PFTRACE_CATEGORY, d->category_iid), scope = 0;
	struct bytes b = d->legacy;
	char key[ID_BYTES];
	bool is_local = false;
	unsigned phase = 0;
	struct pb_field f;
	uint64_t id = 0;

	while (pb_next_padded(&b, &f)) {
		if (f.number == 1)
			d->name_iid = d->name_iid ? d->name_iid : f.u64;
		else if (f.number == 2)
			phase = (unsigned)f.u64;
		else if (f.number == 3 && (int64_t)f.u64 < IMPORT_TIME_MOST / 1000)
			d->duration_ns = (int64_t)f.u64 * 1000;
		else if (f.number == 6 || f.number == 10 || f.number == 11) {
			id = f.u64;
			is_local = f.number == 10;
		} else if (f.number == 7 && f.wire == PB_BYTES)
			TRY(pftrace_text(r, f.bytes, &scope, err));
	}
	if (d->type)
		return ST_OK;
	d->type = phase == 'B'                   ? TYPE_BEGIN
		  : phase == 'E'                 ? TYPE_END
		  : phase == 'X'                 ? TYPE_COMPLETE
		  : phase == 'b' || phase == 'S' ? TYPE_BEGIN
		  : phase == 'e' || phase == 'F' ? TYPE_END
						 : TYPE_INSTANT;
	if (phase != 'b' && phase != 'S' && phase != 'e' && phase != 'F')
		return ST_OK;
	TRY(pftrace_text(r, d->category_text, &category, err));
	if (is_local && !t->process)
		TRY(pftrace_resolve(r, t, err));
	snprintf(key, sizeof(key), "%u %u %u %llu", category, scope, is_local ? t->process : 0,
		 (unsigned long long)id);
	return import_name(&r->to, key, strlen(key), &d->pair, err);
}

/* ---- arrows ---- */

/* Replaces the id of an arrow by a small number, because gaps in correlation ids mean lost records;
 * ids beyond the limit are kept.  *is_new: no end of this arrow was seen before. */
static enum status flow_number(struct pftrace_reader *r, uint64_t id, uint64_t *out, bool *is_new,
			       struct error *err)
{
	uint64_t *at = r->flows.count < FLOWS_MOST ? map_put(&r->flows, id, is_new)
						   : map_find(&r->flows, id);

	if (!at && r->flows.count < FLOWS_MOST)
		return fail_memory(err);
	*is_new = at && !*at;
	if (*is_new)
		*at = r->flows.count;
	*out = at ? *at : id;
	return ST_OK;
}

/* Converts arrows: between calls and GPU work they are correlation ids, others are marks at both
 * ends. */
enum status pftrace_flows(struct pftrace_reader *r, struct event *e, uint64_t gpu_correlation,
			  int64_t at_ns, struct error *err)
{
	bool is_correlation = e->kind == KIND_API || e->kind == KIND_SYNC || event_is_gpu_work(e);
	struct event mark = { .kind = KIND_MARK, .track = e->track };
	bool is_new;

	if (is_correlation && !e->correlation)
		e->correlation = gpu_correlation;
	for (unsigned i = 0; i < r->ref_count; i++) {
		if (r->refs[i].is > PFTRACE_FLOW_END || (is_correlation && e->correlation))
			continue;
		TRY(flow_number(r, r->refs[i].id, &mark.number, &is_new, err));
		mark.subkind =
			is_new && r->refs[i].is == PFTRACE_FLOW ? MARK_FLOW_BEGIN : MARK_FLOW_END;
		if (is_correlation) {
			e->correlation = mark.number;
		} else if (e->kind == KIND_MARK && e->subkind == MARK_INSTANT) {
			e->subkind = mark.subkind;
			e->number = e->number ? e->number : mark.number;
		} else if (import_times(&r->to, &mark, at_ns, 0)) {
			TRY(import_put(&r->to, &mark, err));
		}
	}
	return ST_OK;
}

/* ---- events ---- */

static enum status make_event(struct pftrace_reader *r, struct pftrace_sequence *q,
			      struct pftrace_track *t, struct draft *d, struct event *e,
			      struct error *err)
{
	struct kineto_place place = { .device = NO_ID, .context = NO_ID };
	struct json cat;
	bool is_known;

	d->name = pftrace_name(q, PFTRACE_NAME, d->name_iid);
	d->category = pftrace_name(q, PFTRACE_CATEGORY, d->category_iid);
	TRY(pftrace_text(r, d->name_text, &d->name, err));
	TRY(pftrace_text(r, d->category_text, &d->category, err));
	TRY(pftrace_classify(r, d->category, d->name, e, &is_known, err));
	if (d->type == TYPE_INSTANT && e->kind != KIND_ALLOC && e->kind != KIND_FREE) {
		is_known = is_known && e->kind == KIND_MARK;
		e->kind = KIND_MARK;
		e->subkind = MARK_INSTANT;
	}
	e->name = d->name;
	pftrace_name_subkind(r, e);
	if (r->annotation_count) {
		pftrace_args_begin(r);
		for (unsigned i = 0; i < r->annotation_count; i++)
			r->uses[i] = pftrace_arg_annotation(r, q, e->kind, r->annotations[i]);
		TRY(pftrace_args_end(r, e, &place, err));
	} else {
		import_begin(&r->to);
	}
	if (e->kind == KIND_STEP && e->name)
		pftrace_step_name(r, e);
	if (!is_known && d->category) {
		cat = pftrace_named(r, d->category);
		TRY(kineto_args_put_const(&r->args, ".cat", 4, &cat, err));
	}
	if (d->type == TYPE_END) /* only its arguments matter */
		return import_schema(&r->to, e, err);
	TRY(pftrace_place(r, t, e, &place, err));
	TRY(import_schema(&r->to, e, err));
	if ((d->type == TYPE_BEGIN || d->type == TYPE_INSTANT) && (!d->name_iid || d->name) &&
	    (!d->category_iid || d->category) && !d->gpu_correlation && !d->pair && !d->legacy.at &&
	    r->annotation_count < PFTRACE_LIST_MOST - 1) {
		memset(r->uses + r->annotation_count, PFTRACE_WHOLE, 2);
		pftrace_texts(d->category_text, d->name_text, r->annotations, &r->annotation_count);
		pftrace_learn(r, q, t, d->name_iid, d->category_iid, d->type == TYPE_INSTANT, e);
	}
	return pftrace_flows(r, e, d->gpu_correlation, d->begin_ns, err);
}

enum status pftrace_put(struct pftrace_reader *r, struct event *e, int64_t begin_ns, int64_t end_ns,
			struct error *err)
{
	if (!import_times(&r->to, e, begin_ns, end_ns - begin_ns))
		return pftrace_lose(r, LOSS_NO_TIME);
	return import_put(&r->to, e, err);
}

/* ---- pairs of begins and ends ---- */

static enum status put_pair(struct pftrace_reader *r, struct event *e, int64_t at_ns, bool is_begin,
			    uint32_t pair, struct error *err)
{
	if (!r->pairs)
		TRY(spool_open(&r->pairs, r->to.trace, &r->budget, err));
	e->path = (uint32_t)e->subkind + 1;
	e->subkind = is_begin ? PAIR_BEGIN : PAIR_END;
	e->step = pair;
	if (!import_times(&r->to, e, at_ns, 0))
		return pftrace_lose(r, LOSS_NO_TIME);
	return spool_put(r->pairs, 0, e, 1, err);
}

static uint32_t pair_of(const struct pftrace_reader *r, const struct pftrace_track *t)
{
	return PAIR_NESTS | (uint32_t)(t - r->tracks);
}

/* Closes the innermost slice; its entry is valid until another slice begins. */
static struct pftrace_open *close_open(struct pftrace_reader *r, struct pftrace_track *t,
				       uint32_t *place)
{
	struct pftrace_open *o = &r->opens[t->open - 1];

	*place = t->open;
	t->open = o->below;
	o->below = r->unused_open;
	r->unused_open = *place;
	return o;
}

/* Closes the innermost slice and takes its event out of the spool, because it must be changed. */
static enum status take_back(struct pftrace_reader *r, struct pftrace_track *t, struct event *e,
			     int64_t *begin_ns, struct error *err)
{
	uint32_t place;

	*begin_ns = close_open(r, t, &place)->begin_ns;
	if (pftrace_in_range(*begin_ns))
		return spool_take_back(r->to.spool, place, e, err);
	*e = (struct event){ .kind = KIND_RANGE }; /* it had no valid time */
	return ST_OK;
}

/* Switches a track to matching its begins and ends in time order. */
static enum status become_unordered(struct pftrace_reader *r, struct pftrace_track *t,
				    struct error *err)
{
	struct event e;
	int64_t begin_ns;

	t->is_unordered = true;
	while (t->open) {
		TRY(take_back(r, t, &e, &begin_ns, err));
		TRY(put_pair(r, &e, begin_ns, true, pair_of(r, t), err));
	}
	return ST_OK;
}

enum status pftrace_begin(struct pftrace_reader *r, struct pftrace_track *t, struct event *e,
			  uint32_t pair, const struct pftrace_template *like, int64_t at_ns,
			  struct error *err)
{
	bool launches = like ? pftrace_template_launches(like) : import_launches(&r->to, e);
	struct pftrace_open *o;
	uint32_t place;

	if (pair)
		return put_pair(r, e, at_ns, true, pair, err);
	if (t->open && r->opens[t->open - 1].begin_ns > at_ns)
		TRY(become_unordered(r, t, err));
	if (t->is_unordered)
		return put_pair(r, e, at_ns, true, pair_of(r, t), err);
	if (!r->unused_open) {
		if (r->open_count == OPEN_MOST)
			return fail(err, ST_CEILING, NOWHERE,
				    "more than %d slices are open at one time", OPEN_MOST);
		TRY(vec_reserve(&r->opens, &r->open_cap, r->open_count + 1, err));
		r->unused_open = (uint32_t)++r->open_count;
	}
	place = r->unused_open;
	o = &r->opens[place - 1];
	if (!like)
		TRY(import_desc(&r->to, e, err));
	r->unused_open = o->below;
	o->launcher = launches ? e->track : 0;
	o->name = e->name;
	o->shared = 0;
	o->begin_ns = at_ns;
	if (pftrace_in_range(at_ns)) {
		e->begin_ns = (uint64_t)(at_ns + SPOOL_BIAS);
		TRY(spool_begin(r->to.spool, e, place, err));
	}
	o->below = t->open;
	t->open = place;
	return ST_OK;
}

static enum status finish_open(struct pftrace_reader *r, struct pftrace_track *t, int64_t at_ns,
			       struct error *err)
{
	uint32_t place;
	const struct pftrace_open *o = close_open(r, t, &place);

	if (!pftrace_in_range(o->begin_ns))
		return pftrace_lose(r, LOSS_NO_TIME);
	return import_finish(&r->to, place, o->begin_ns, at_ns, o->launcher, err);
}

/* Finds the innermost open slice with the name of an end, if both have one; returns 0 if none. */
static uint32_t find_open(const struct pftrace_reader *r, const struct pftrace_track *t,
			  uint32_t name)
{
	uint32_t place = t->open;

	for (; place && name; place = r->opens[place - 1].below) {
		const struct pftrace_open *o = &r->opens[place - 1];
		uint32_t own = o->shared ? spool_shared(r->to.spool, o->shared)->name : o->name;

		if (!own || own == name)
			break;
	}
	return place;
}

static enum status take_end(struct pftrace_reader *r, struct pftrace_sequence *q,
			    struct pftrace_track *t, struct draft *d, struct error *err)
{
	struct event end = { .kind = KIND_RANGE };
	uint32_t place, name = pftrace_name(q, PFTRACE_NAME, d->name_iid);
	struct pftrace_open *o = t->open ? &r->opens[t->open - 1] : NULL;

	if (!d->pair && !t->is_unordered && (!o || o->begin_ns > d->begin_ns)) {
		TRY(become_unordered(r, t, err));
		o = NULL;
	}
	if (r->annotation_count)
		TRY(make_event(r, q, t, d, &end, err));
	TRY(pftrace_text(r, d->name_text, &name, err));
	if (d->pair || t->is_unordered) {
		end.name = name;
		return put_pair(r, &end, d->begin_ns, false, d->pair ? d->pair : pair_of(r, t),
				err);
	}
	place = find_open(r, t, name);
	if (!place) {
		r->damaged++;
		return ST_OK;
	}
	while (t->open != place) /* what is within ends with it */
		TRY(finish_open(r, t, d->begin_ns, err));
	if (end.schema) {
		struct event e;
		int64_t begin_ns;

		TRY(take_back(r, t, &e, &begin_ns, err));
		TRY(chrome_pair_args(r->to.trace, &e, &end, err));
		return pftrace_put(r, &e, begin_ns, d->begin_ns, err);
	}
	return finish_open(r, t, d->begin_ns, err);
}

enum status pftrace_end(struct pftrace_reader *r, struct pftrace_sequence *q,
			struct pftrace_track *t, int64_t at_ns, struct error *err)
{
	if (t->open && r->opens[t->open - 1].begin_ns <= at_ns && !t->is_unordered)
		return finish_open(r, t, at_ns, err);
	r->annotation_count = 0;
	return take_end(r, q, t, &(struct draft){ .type = TYPE_END, .begin_ns = at_ns }, err);
}

/* ---- counters ---- */

/* Adds a sample of an incremental counter to the sum of its sequence; *value becomes the sum. */
static enum status sum_sample(const struct pftrace_reader *r, struct pftrace_sequence *q,
			      const struct pftrace_track *t, double *value, struct error *err)
{
	uint64_t *bits = map_put(&q->sums, (uint64_t)(t - r->tracks), NULL);
	double sum;

	if (!bits)
		return fail_memory(err);
	memcpy(&sum, bits, sizeof(sum));
	*value += sum;
	memcpy(bits, value, sizeof(*value));
	return ST_OK;
}

static enum status put_sample_of(struct pftrace_reader *r, struct pftrace_sequence *q,
				 struct pftrace_track *t, double value, int64_t at_ns,
				 struct error *err)
{
	struct event e = { .kind = KIND_COUNTER, .value = value };

	if (t->is_derived && r->is_own)
		return ST_OK;
	if (t->multiplier)
		e.value *= (double)t->multiplier;
	if (t->is_incremental)
		TRY(sum_sample(r, q, t, &e.value, err));
	e.name = t->name;
	TRY(pftrace_place(r, t, &e, NULL, err));
	return pftrace_put(r, &e, at_ns, at_ns, err);
}

/* Puts samples of counters in the packet of an event: the first value belongs to the first track,
 * and so on. */
static enum status take_samples(struct pftrace_reader *r, struct pftrace_sequence *q, int64_t at_ns,
				struct error *err)
{
	unsigned count = r->ref_count, next[2] = { 0, 0 };
	struct pftrace_track *t;
	bool has_tracks = false;

	for (unsigned i = 0; i < count; i++)
		has_tracks |= r->refs[i].is == PFTRACE_SAMPLE_TRACK;
	for (unsigned i = 0; !has_tracks && i < q->counter_count; i++)
		put_ref(r, q->counters[i]);
	for (unsigned i = 0; i < count; i++) {
		const struct pftrace_ref *x = &r->refs[i];
		unsigned *at = &next[x->is_double];

		if (x->is != PFTRACE_SAMPLE)
			continue;
		while (*at < r->ref_count && (r->refs[*at].is != PFTRACE_SAMPLE_TRACK ||
					      r->refs[*at].is_double != x->is_double))
			++*at;
		if (*at == r->ref_count)
			break;
		TRY(pftrace_track_find(r, r->refs[(*at)++].id, &t, err));
		TRY(put_sample_of(r, q, t, x->value, at_ns, err));
	}
	return ST_OK;
}

/* ---- entry points ---- */

enum status pftrace_take_event(struct pftrace_reader *r, struct pftrace_sequence *q,
			       const struct pftrace_packet *p, struct error *err)
{
	struct draft d = { .track = q->track };
	struct event e = { 0 };
	struct pftrace_track *t;
	const uint64_t *thread;

	if (!parse(r, PFTRACE_MESSAGE(p, EVENT), &d)) {
		r->damaged++;
		return ST_OK;
	}
	if (d.time_field ? !pftrace_old_time(r, q, (uint32_t)p->numbers[PFTRACE_MACHINE], d.time_us,
					     d.time_field == TIME_DELTA_US, &d.begin_ns)
			 : !pftrace_time(r, q, p, &d.begin_ns))
		return pftrace_lose(r, LOSS_NO_TIME);
	if (!d.track && (thread = map_find(&r->sequence_threads, q->id)))
		d.track = *thread;
	if (r->ref_count)
		TRY(take_samples(r, q, d.begin_ns, err));
	TRY(pftrace_track_find(r, d.track, &t, err));
	if (d.legacy.at < d.legacy.end)
		TRY(parse_legacy(r, q, t, &d, err));
	if (t->is_derived && r->is_own)
		return ST_OK;
	if (d.type == TYPE_COUNTER)
		return put_sample_of(r, q, t, d.value, d.begin_ns, err);
	if (d.type == TYPE_END)
		return take_end(r, q, t, &d, err);
	if (d.type != TYPE_BEGIN && d.type != TYPE_INSTANT && d.type != TYPE_COMPLETE) {
		r->unread[0]++; /* a state, or a newer type */
		return ST_OK;
	}
	TRY(make_event(r, q, t, &d, &e, err));
	if (d.type == TYPE_BEGIN)
		return pftrace_begin(r, t, &e, d.pair, NULL, d.begin_ns, err);
	return pftrace_put(r, &e, d.begin_ns, d.begin_ns + d.duration_ns, err);
}

enum status pftrace_end_events(struct pftrace_reader *r, struct error *err)
{
	TRY(pftrace_end_samples(r, err));
	for (size_t i = 0; i < r->track_count; i++) {
		struct pftrace_track *t = &r->tracks[i];

		while (t->open) {
			struct event e;
			int64_t begin_ns;

			TRY(take_back(r, t, &e, &begin_ns, err));
			e.flags |= EVENT_NEVER_ENDED;
			TRY(pftrace_put(r, &e, begin_ns,
					r->to.last_ns > begin_ns ? r->to.last_ns : begin_ns, err));
		}
	}
	return r->pairs ? chrome_pairs_match(&r->to, r->pairs, err) : ST_OK;
}

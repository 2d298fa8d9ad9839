/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/evidence.h"
#include "analyze/report/where/where.h"

#include <stdio.h>

static RANK_TABLE_TYPE(behind, &table_ranks, EVIDENCE_COLUMNS, .nest = NEST_NEVER,
		       .null_texts = "range python path cause phase");

const struct evidence_type evidence_types[] = {
#define X(name, word, meaning) { word, meaning },
	EVIDENCE_LIST(X)
#undef X
};

/* Indices after the fixed selections: causes (host: one for each phase), phases of the step thread,
 * phases of GPU work. */
enum {
	AT_CAUSES = EVIDENCE_COUNT,
	AT_HOST_CAUSES = AT_CAUSES + CAUSE_COUNT,
	AT_PHASES = AT_HOST_CAUSES + SWEEP_PHASES,
	AT_WORK = AT_PHASES + SWEEP_PHASES,
	SELECTIONS = AT_WORK + SWEEP_PHASES,
};

struct item {
	uint64_t size, begin_ns;
	uint32_t process, track, gpu; /* track 0: the whole GPU */
	uint32_t name, range, python, path;
	uint32_t step; /* in the form of event.step */
	uint8_t phase;
	uint8_t cause; /* CAUSE_COUNT: none */
};
struct top { /* the largest first; of equal ones the earlier */
	struct item items[EVIDENCE_KEPT];
	size_t count;
};
static void put(struct accumulator *f, size_t selection, const struct item *item)
{
	struct top *t = (struct top *)f->state + selection;
	size_t at;

	if (!item->size || !acc_wants(f, item->process) ||
	    (t->count == EVIDENCE_KEPT && t->items[t->count - 1].size >= item->size))
		return;
	if (t->count < EVIDENCE_KEPT)
		t->count++;
	for (at = t->count - 1; at && t->items[at - 1].size < item->size; at--)
		t->items[at] = t->items[at - 1];
	t->items[at] = *item;
}

/* ---- events ----------------------------------------------------------------------------- */

static void put_event(struct accumulator *f, const struct event *e)
{
	struct item item = {
		.size = e->end_ns - e->begin_ns,
		.begin_ns = e->begin_ns,
		.track = e->track,
		.process = trace_get_track(f->trace, e->track)->process,
		.name = e->name,
		.range = trace_owner(f->trace, e->path),
		.path = e->path,
		.step = e->step,
		.phase = e->phase,
		.cause = CAUSE_COUNT,
		.gpu = NO_ID,
	};

	if (e->kind == KIND_ALLOC)
		item.size = e->bytes;
	if (e->kind == KIND_ALLOC || e->kind == KIND_API || e->kind == KIND_SYNC)
		put(f,
		    e->kind == KIND_ALLOC ? EVIDENCE_MEMORY
		    : e->kind == KIND_API ? EVIDENCE_LAUNCH
					  : EVIDENCE_SYNC,
		    &item);
	if (!event_is_gpu_work(e))
		return;
	put(f, EVIDENCE_GPU, &item);
	put(f, AT_WORK + (size_t)e->phase, &item);
	put(f, e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET ? EVIDENCE_COPY : EVIDENCE_KERNEL,
	    &item);
	if (sweep_class(f->sweep, e) == CLASS_COMM)
		put(f, EVIDENCE_COMM, &item);
}

static void put_interval(struct accumulator *f, const struct phase_interval *st)
{
	struct item item = {
		.size = st->end_ns - st->begin_ns,
		.begin_ns = st->begin_ns,
		.process = st->process,
		.track = context_step_thread(f->context, st->process),
		.step = st->step,
		.phase = st->phase,
		.cause = CAUSE_COUNT,
		.gpu = NO_ID,
	};

	put(f, EVIDENCE_HOST, &item);
	put(f, AT_PHASES + (size_t)st->phase, &item);
}

static enum status evidence_put(struct accumulator *f, const struct sorted_batch *w,
				struct error *err)
{
	for (size_t i = 0; i < w->in->count; i++)
		if (!(w->in->events[i].flags & EVENT_BEGAN_EARLIER))
			put_event(f, &w->in->events[i]);
	for (size_t i = 0; i < w->in->interval_count; i++)
		put_interval(f, &w->in->intervals[i]);
	for (size_t i = 0; i < w->segment_count; i++) {
		const struct segment *seg = &w->segments[i];
		static const enum evidence parts[] = { [PART_LEAD] = EVIDENCE_LEAD,
						       [PART_SPAN] = EVIDENCE_IDLE,
						       [PART_TAIL] = EVIDENCE_TAIL };
		struct item item = {
			.size = seg->end_ns - seg->begin_ns,
			.begin_ns = seg->begin_ns,
			.gpu = seg->gpu,
			.process = sweep_gpu(f->sweep, seg->gpu).process,
			.name = seg->name,
			.step = seg->step,
			.phase = seg->phase,
			.cause = CAUSE_COUNT,
		};

		put(f,
		    !seg->busy                 ? parts[seg->part]
		    : seg->busy & BUSY_COMPUTE ? EVIDENCE_COMPUTE
		    : seg->busy & BUSY_COMM    ? EVIDENCE_EXPOSED_COMM
					       : EVIDENCE_EXPOSED_COPY,
		    &item);
		if ((seg->busy & BUSY_COMPUTE) && (seg->busy & BUSY_COMM))
			put(f, EVIDENCE_OVERLAP_COMM, &item);
		if (seg->busy && seg->origin != ORIGIN_LAUNCH)
			put(f, EVIDENCE_UNATTRIBUTED, &item);
	}
	for (size_t i = 0; i < w->idle_count; i++) {
		const struct idle_segment *p = &w->idle[i];
		struct item item = {
			.size = p->end_ns - p->begin_ns,
			.begin_ns = p->begin_ns,
			.gpu = p->gpu,
			.process = sweep_gpu(f->sweep, p->gpu).process,
			.track = p->thread,
			.name = p->call,
			.range = p->range,
			.python = p->python,
			.path = p->path,
			.phase = p->phase,
			.cause = p->cause,
		};

		put(f, EVIDENCE_NOT_BUSY, &item);
		if (p->after_sync)
			put(f, EVIDENCE_AFTER_SYNC, &item);
		put(f,
		    p->cause == CAUSE_HOST ? AT_HOST_CAUSES + (size_t)p->phase
					   : AT_CAUSES + (size_t)p->cause,
		    &item);
	}
	return ST_OK;
}

/* ---- rows ------------------------------------------------------------------------------- */

enum { NAME_BYTES = 320 };

static const char *selection_text(const struct accumulator *f, size_t selection,
				  char out[NAME_BYTES])
{
	static const char *const prefixes[] = { "cause:host", "phase", "work" };
	size_t of_phase = selection - AT_HOST_CAUSES;

	if (selection < AT_CAUSES)
		return evidence_types[selection].word;
	if (selection < AT_HOST_CAUSES)
		snprintf(out, NAME_BYTES, "cause:%s", cause_types[selection - AT_CAUSES].word);
	else
		snprintf(out, NAME_BYTES, "%s:%s", prefixes[of_phase / SWEEP_PHASES],
			 context_phase(f->context, (unsigned)(of_phase % SWEEP_PHASES)).name);
	return out;
}

static const char *name_of(const struct accumulator *f, uint32_t name)
{
	return name ? trace_text(f->trace, name, NULL) : "";
}

static enum status text_put(struct accumulator *f, union value *row, size_t at, const char *text,
			    struct error *err)
{
	return text && text[0] ? acc_text(f, "behind", &row[at], text, err) : ST_OK;
}

static enum status end_item(struct accumulator *f, const char *selection, const struct item *item,
			    struct error *err)
{
	char track[NAME_BYTES], cause[NAME_BYTES] = "";
	union value keys[EVIDENCE_SIZE], *row;

	/* Write "GPU 0 stream 7", "pt_main_thread 100" or "GPU 0". */
	const struct track *k = item->track ? trace_get_track(f->trace, item->track) : NULL;
	unsigned long long id = k ? (unsigned long long)k->id : 0;
	if (!k)
		snprintf(track, NAME_BYTES, "GPU %u", sweep_gpu(f->sweep, item->gpu).device);
	else if (k->type == TRACK_STREAM)
		snprintf(track, NAME_BYTES, "GPU %u stream %llu", k->device, id);
	else if (strstr(name_of(f, k->name), "thread"))
		snprintf(track, NAME_BYTES, "%s", name_of(f, k->name));
	else
		snprintf(track, NAME_BYTES, "%s %llu", k->name ? name_of(f, k->name) : "thread",
			 id);
	keys[EVIDENCE_SELECTION].text = selection;
	keys[EVIDENCE_BEGIN].u64 = item->begin_ns;
	keys[EVIDENCE_TRACK].text = track;
	keys[EVIDENCE_NAME].text = name_of(f, item->name);
	TRY(acc_row(f, "behind", item->process, keys, &row, err));
	cell_raise(&row[EVIDENCE_SIZE], item->size);
	if (item->step && !(item->step & STEP_GAP))
		row[EVIDENCE_IN_STEP].u64 = item->step - 1;
	if (item->cause != CAUSE_COUNT)
		cause_text(f, (enum cause)item->cause, item->phase, cause, sizeof(cause));
	TRY(text_put(f, row, EVIDENCE_CAUSE, cause, err));
	TRY(text_put(f, row, EVIDENCE_RANGE, name_of(f, item->range), err));
	TRY(text_put(f, row, EVIDENCE_PYTHON, name_of(f, item->python), err));
	struct buf text;

	buf_init(&text, (size_t)1 << 20);
	path_put_text(f->trace, item->path, PATH_FOR_PEOPLE, &text);
	buf_put_byte(&text, '\0');
	enum status status = buf_status(&text, err);
	if (status == ST_OK)
		status = text_put(f, row, EVIDENCE_PATH, (const char *)text.data, err);
	buf_release(&text);
	TRY(status);
	if (!strcmp(selection, evidence_types[EVIDENCE_STEP].word))
		return ST_OK;
	return text_put(f, row, EVIDENCE_PHASE, context_phase(f->context, item->phase).name, err);
}

static enum status evidence_end(struct accumulator *f, struct error *err)
{
	const struct top *tops = f->state;
	unsigned phases = context_phase_count(f->context);
	char text[NAME_BYTES];

	for (uint32_t process = 1; process <= trace_count(f->trace, TRACE_PROCESSES); process++)
		for (size_t i = 0; i < f->steps[process].count; i++) {
			const struct step_row *s = &f->steps[process].rows[i];
			struct item item = {
				.size = s->end_ns - s->begin_ns,
				.begin_ns = s->begin_ns,
				.process = process,
				.track = context_step_thread(f->context, process),
				.step = (uint32_t)s->number + 1,
				.cause = CAUSE_COUNT,
				.gpu = NO_ID,
			};

			if (!s->is_out && s->is_counted && item.track)
				put(f, EVIDENCE_STEP, &item);
		}
	for (size_t i = 0; i < SELECTIONS; i++) {
		size_t phase = i < AT_HOST_CAUSES ? 0 : (i - AT_HOST_CAUSES) % SWEEP_PHASES;

		if (phase >= phases)
			continue;
		for (size_t k = 0; k < tops[i].count; k++)
			TRY(end_item(f, selection_text(f, i, text), &tops[i].items[k], err));
	}
	return ST_OK;
}

const struct report_type report_evidence = {
	.name = "behind",
	.help = "the events behind figures",
	.tables = TABLES(&table_behind),
	.state_size = SELECTIONS * sizeof(struct top),
	.needs_owners = true,
	.put = evidence_put,
	.end = evidence_end,
};

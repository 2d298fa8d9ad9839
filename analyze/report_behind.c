/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report_behind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct column behind_columns[] = {
	RANK_COLUMNS,
	{ "selection", NULL, CELL_TEXT, KEY, NULL, "behind which figure" },
	{ "begin_ns", NULL, CELL_U64, KEY, NULL, "since the Unix epoch" },
	{ "track", NULL, CELL_TEXT, KEY, NULL, "where it ran" },
	{ "name", NULL, CELL_TEXT, KEY, NULL, "of the event, or of the owner" },
	{ "size", NULL, CELL_U64, MAX, NULL, "nanoseconds; of memory bytes" },
	{ "range", NULL, CELL_TEXT, MAX, NULL, "innermost range around it or around its launch" },
	{ "python", NULL, CELL_TEXT, MAX, NULL, "innermost Python frame, likewise" },
	{ "cause", NULL, CELL_TEXT, MAX, NULL, "where nothing runs" },
	{ "phase", NULL, CELL_TEXT, MAX, NULL, "of its launch" },
	{ "step", NULL, CELL_U64, MIN, NULL, "of its launch; null: outside any" },
	{ .name = NULL },
};
static const struct table_type table_behind = {
	.name = "behind", .member = "behind", .under = &table_ranks, .nest = NEST_NEVER,
	.null_texts = "range python cause phase", .columns = behind_columns,
};

const char *behind_word(enum behind selection)
{
	static const char *const words[] = {
#define X(name, word, meaning) word,
		BEHIND_LIST(X)
#undef X
	};

	return words[selection];
}

const char *behind_meaning(enum behind selection)
{
	static const char *const meanings[] = {
#define X(name, word, meaning) meaning,
		BEHIND_LIST(X)
#undef X
	};

	return meanings[selection];
}

/* After the fixed selections: causes (host: one for each phase), phases of the host, of work. */
enum {
	AT_CAUSES = BEHIND_COUNT, AT_HOST_CAUSES = AT_CAUSES + CAUSE_COUNT,
	AT_PHASES = AT_HOST_CAUSES + SWEEP_PHASES, AT_WORK = AT_PHASES + SWEEP_PHASES,
	SELECTIONS = AT_WORK + SWEEP_PHASES,
};

struct item {
	uint64_t size, begin_ns;
	uint32_t process, track, gpu; /* track 0: the GPU as a whole */
	uint32_t name, range, python;
	uint32_t step;                /* as event.step */
	uint8_t phase;
	uint8_t cause;                /* CAUSE_COUNT: none */
};
struct top { /* the greatest first; of equal ones the one that came first */
	struct item items[BEHIND_KEPT];
	size_t count;
};
struct behind_state {
	struct top tops[SELECTIONS];
};

static void put(struct fold *f, size_t selection, const struct item *item)
{
	struct top *t = &((struct behind_state *)f->state)->tops[selection];
	size_t at;

	if (!item->size || !fold_wants(f, item->process) ||
	    (t->count == BEHIND_KEPT && t->items[t->count - 1].size >= item->size))
		return;
	if (t->count < BEHIND_KEPT)
		t->count++;
	for (at = t->count - 1; at && t->items[at - 1].size < item->size; at--)
		t->items[at] = t->items[at - 1];
	t->items[at] = *item;
}

/* ---- GPU time --------------------------------------------------------------------------- */

static void put_segment(struct fold *f, const struct segment *seg)
{
	static const enum behind parts[] = {
		[PART_LEAD] = BEHIND_LEAD, [PART_SPAN] = BEHIND_IDLE, [PART_TAIL] = BEHIND_TAIL,
	};
	struct item item = {
		.size = seg->end_ns - seg->begin_ns, .begin_ns = seg->begin_ns, .gpu = seg->gpu,
		.process = sweep_gpu(f->sweep, seg->gpu).process, .name = seg->name,
		.step = seg->step, .phase = seg->phase, .cause = CAUSE_COUNT,
	};

	if (!seg->busy) {
		put(f, parts[seg->part], &item);
		return;
	}
	if (seg->busy & BUSY_COMPUTE)
		put(f, BEHIND_COMPUTE, &item);
	else
		put(f, seg->busy & BUSY_COMM ? BEHIND_EXPOSED_COMM : BEHIND_EXPOSED_COPY, &item);
	if ((seg->busy & BUSY_COMPUTE) && (seg->busy & BUSY_COMM))
		put(f, BEHIND_OVERLAP_COMM, &item);
	if (seg->origin != ORIGIN_LAUNCH)
		put(f, BEHIND_UNATTRIBUTED, &item);
}

static void put_piece(struct fold *f, const struct piece *p)
{
	struct item item = {
		.size = p->end_ns - p->begin_ns, .begin_ns = p->begin_ns, .gpu = p->gpu,
		.process = sweep_gpu(f->sweep, p->gpu).process, .track = p->thread,
		.name = p->call, .range = p->range, .python = p->python, .phase = p->phase,
		.cause = p->cause,
	};

	put(f, BEHIND_NOT_BUSY, &item);
	if (p->after_sync)
		put(f, BEHIND_AFTER_SYNC, &item);
	put(f, p->cause == CAUSE_HOST ? AT_HOST_CAUSES + (size_t)p->phase
				      : AT_CAUSES + (size_t)p->cause, &item);
}

/* ---- events ----------------------------------------------------------------------------- */

static void put_event(struct fold *f, const struct event *e)
{
	struct item item = {
		.size = e->end_ns - e->begin_ns, .begin_ns = e->begin_ns, .track = e->track,
		.process = trace_get_track(f->trace, e->track)->process, .name = e->name,
		.range = e->owner, .step = e->step, .phase = e->phase, .cause = CAUSE_COUNT,
		.gpu = NO_ID,
	};

	if (e->kind == KIND_ALLOC) {
		item.size = e->bytes;
		put(f, BEHIND_MEMORY, &item);
	} else if (e->kind == KIND_API) {
		put(f, BEHIND_LAUNCH, &item);
	} else if (e->kind == KIND_SYNC) {
		put(f, BEHIND_SYNC, &item);
	}
	if (!event_is_gpu_work(e))
		return;
	put(f, BEHIND_GPU, &item);
	put(f, AT_WORK + (size_t)e->phase, &item);
	if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET)
		put(f, BEHIND_COPY, &item);
	else
		put(f, BEHIND_KERNEL, &item);
	if (e->kind == KIND_KERNEL && sweep_communicates(f->sweep, e->name))
		put(f, BEHIND_COMM, &item);
}

static void put_stretch(struct fold *f, const struct stretch *st)
{
	struct item item = {
		.size = st->end_ns - st->begin_ns, .begin_ns = st->begin_ns, .process = st->process,
		.track = step_thread(f->step, st->process), .step = st->step, .phase = st->phase,
		.cause = CAUSE_COUNT, .gpu = NO_ID,
	};

	put(f, BEHIND_HOST, &item);
	put(f, AT_PHASES + (size_t)st->phase, &item);
}

static enum status behind_put(struct fold *f, const struct warm *w, struct error *err)
{
	size_t i;

	for (i = 0; i < w->in->count; i++)
		if (!(w->in->events[i].flags & EVENT_BEGAN_EARLIER))
			put_event(f, &w->in->events[i]);
	for (i = 0; i < w->in->stretch_count; i++)
		put_stretch(f, &w->in->stretches[i]);
	for (i = 0; i < w->segment_count; i++)
		put_segment(f, &w->segments[i]);
	for (i = 0; i < w->piece_count; i++)
		put_piece(f, &w->pieces[i]);
	return ST_OK;
}

/* ---- rows ------------------------------------------------------------------------------- */

enum { NAME_BYTES = 320 };

static const char *selection_text(const struct fold *f, size_t selection, char out[NAME_BYTES])
{
	if (selection < AT_CAUSES)
		return behind_word((enum behind)selection);
	if (selection < AT_HOST_CAUSES)
		snprintf(out, NAME_BYTES, "cause:%s",
			 cause_word((enum cause)(selection - AT_CAUSES)));
	else if (selection < AT_PHASES)
		snprintf(out, NAME_BYTES, "cause:host:%s",
			 step_phase(f->step, (unsigned)(selection - AT_HOST_CAUSES)).name);
	else if (selection < AT_WORK)
		snprintf(out, NAME_BYTES, "phase:%s",
			 step_phase(f->step, (unsigned)(selection - AT_PHASES)).name);
	else
		snprintf(out, NAME_BYTES, "work:%s",
			 step_phase(f->step, (unsigned)(selection - AT_WORK)).name);
	return out;
}

/* "GPU 0 stream 7", "pt_main_thread 100", "GPU 0". */
static void track_text(const struct fold *f, const struct item *item, char out[NAME_BYTES])
{
	const struct track *k = item->track ? trace_get_track(f->trace, item->track) : NULL;
	unsigned long long id = k ? (unsigned long long)k->id : 0;

	if (!k)
		snprintf(out, NAME_BYTES, "GPU %u", sweep_gpu(f->sweep, item->gpu).device);
	else if (k->home == HOME_STREAM)
		snprintf(out, NAME_BYTES, "GPU %u stream %llu", k->device, id);
	else if (k->name && strstr(trace_text(f->trace, k->name, NULL), "thread"))
		snprintf(out, NAME_BYTES, "%s", trace_text(f->trace, k->name, NULL));
	else
		snprintf(out, NAME_BYTES, "%s%s%llu", k->name ?
			 trace_text(f->trace, k->name, NULL) : "thread", " ", id);
}

static const char *name_of(const struct fold *f, uint32_t name)
{
	return name ? trace_text(f->trace, name, NULL) : "";
}

static enum status text_put(struct fold *f, union value *row, size_t at, const char *text,
			    struct error *err)
{
	return text && text[0] ? fold_text(f, "behind", &row[at], text, err) : ST_OK;
}

static enum status end_item(struct fold *f, const char *selection, const struct item *item,
			    struct error *err)
{
	char track[NAME_BYTES], cause[NAME_BYTES] = "";
	union value keys[BEHIND_SIZE], *row;

	track_text(f, item, track);
	keys[BEHIND_SELECTION].text = selection;
	keys[BEHIND_BEGIN].u64 = item->begin_ns;
	keys[BEHIND_TRACK].text = track;
	keys[BEHIND_NAME].text = name_of(f, item->name);
	TRY(fold_row(f, "behind", item->process, keys, &row, err));
	cell_raise(&row[BEHIND_SIZE], item->size);
	if (item->step && !(item->step & STEP_GAP))
		row[BEHIND_IN_STEP].u64 = item->step - 1;
	if (item->cause != CAUSE_COUNT)
		cause_text(f, (enum cause)item->cause, item->phase, cause, sizeof(cause));
	TRY(text_put(f, row, BEHIND_CAUSE, cause, err));
	TRY(text_put(f, row, BEHIND_RANGE, name_of(f, item->range), err));
	TRY(text_put(f, row, BEHIND_PYTHON, name_of(f, item->python), err));
	if (!strcmp(selection, behind_word(BEHIND_STEP)))
		return ST_OK;
	return text_put(f, row, BEHIND_PHASE, step_phase(f->step, item->phase).name, err);
}

static void end_steps(struct fold *f)
{
	uint32_t process;
	size_t i;

	for (process = 1; process <= trace_count(f->trace, TRACE_PROCESSES); process++)
		for (i = 0; i < f->steps[process].count; i++) {
			const struct step_row *s = &f->steps[process].rows[i];
			struct item item = {
				.size = s->end_ns - s->begin_ns, .begin_ns = s->begin_ns,
				.process = process, .track = step_thread(f->step, process),
				.step = (uint32_t)s->number + 1, .cause = CAUSE_COUNT,
				.gpu = NO_ID,
			};

			if (!s->is_out && s->is_counted && item.track)
				put(f, BEHIND_STEP, &item);
		}
}

static enum status behind_end(struct fold *f, struct error *err)
{
	const struct behind_state *s = f->state;
	unsigned phases = step_phase_count(f->step);
	char text[NAME_BYTES];
	size_t i, k;

	end_steps(f);
	for (i = 0; i < SELECTIONS; i++) {
		size_t phase = i < AT_HOST_CAUSES ? 0 : (i - AT_HOST_CAUSES) % SWEEP_PHASES;

		if (phase >= phases)
			continue;
		for (k = 0; k < s->tops[i].count; k++)
			TRY(end_item(f, selection_text(f, i, text), &s->tops[i].items[k], err));
	}
	return ST_OK;
}

static const struct table_type *const behind_tables[] = { &table_behind, NULL };

const struct report_type report_behind = {
	.name = "behind",
	.help = "the events behind figures",
	.tables = behind_tables,
	.state_size = sizeof(struct behind_state),
	.needs_owners = true,
	.put = behind_put,
	.end = behind_end,
};

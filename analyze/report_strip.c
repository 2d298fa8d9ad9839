/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report_strip.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	OWN = PHASE_KNOWN, HOST_CLASSES, GPU_CLASSES = 5, CLASSES = HOST_CLASSES + GPU_CLASSES,
	FINE = STRIP_CELLS * 16, /* bins of a mark */
	BINS = FINE + FINE / 50, /* and of the gap that may join it */
};

static const char host_letters[HOST_CLASSES] = {
	[PHASE_OTHER] = '.', [PHASE_VALIDATION] = 'v', [PHASE_CHECKPOINT] = 'k',
	[PHASE_DATA] = 'd', [PHASE_OPTIMIZER] = 'o', [PHASE_BACKWARD] = 'b',
	[PHASE_FORWARD] = 'f', [PHASE_COMMUNICATION] = 'c', [OWN] = 'u',
};

struct strip {
	size_t row;
	uint64_t begin_ns, mark_end_ns;
	uint16_t used[BINS];        /* classes that have time there, a bit each */
	uint64_t ns[BINS][CLASSES]; /* the host's classes, then the GPU's; of those used */
};
_Static_assert(CLASSES <= 16, "a bit for each class");

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory for pictures of steps");
}

static enum status rows_reach(struct strips *s, size_t row, struct error *err)
{
	size_t count = s->count ? s->count : 64;
	struct strip_row *wider;

	if (row < s->count)
		return ST_OK;
	while (count <= row)
		count *= 2;
	wider = realloc(s->rows, count * sizeof(*wider));
	if (!wider)
		return no_memory(err);
	memset(wider + s->count, 0, (count - s->count) * sizeof(*wider));
	s->rows = wider;
	s->count = count;
	return ST_OK;
}

/* The class with the most time; `none` where there is no time at all. */
static char most(const uint64_t *ns, size_t count, const char *letters, char none)
{
	size_t i, best = 0;

	for (i = 1; i < count; i++)
		if (ns[i] > ns[best])
			best = i;
	return ns[best] ? letters[best] : none;
}

/* The gap up to the next mark joins, as far as can be told before all marks are known. */
static uint64_t end_of(const struct strip *strip, const struct step_list *steps)
{
	uint64_t length_ns = strip->mark_end_ns - strip->begin_ns, next_ns;

	if (strip->row + 1 >= steps->count)
		return strip->mark_end_ns;
	next_ns = steps->rows[strip->row + 1].begin_ns;
	if (next_ns > strip->mark_end_ns && (next_ns - strip->mark_end_ns) > length_ns / 100)
		return strip->mark_end_ns;
	return next_ns > strip->begin_ns ? next_ns : strip->mark_end_ns;
}

/* From bins to `count` cells: a bin that cells share is split as its width is. */
static void gather(const struct strip *strip, uint64_t end_ns, uint64_t (*cells)[CLASSES],
		   size_t count)
{
	double per_bin = (double)(strip->mark_end_ns - strip->begin_ns) * (double)count / FINE /
			 (double)(end_ns - strip->begin_ns);
	size_t i, cell;
	unsigned left;

	memset(cells, 0, count * sizeof(cells[0]));
	for (i = 0; i < BINS && (double)i * per_bin < (double)count; i++) {
		double over = ((double)(i + 1) * per_bin);

		cell = (size_t)((double)i * per_bin);
		over = over > (double)(cell + 1) ? (over - (double)(cell + 1)) / per_bin : 0;
		for (left = strip->used[i]; left; left &= left - 1) {
			unsigned k = (unsigned)__builtin_ctz(left);
			uint64_t next_ns = 0;

			if (over > 0)
				next_ns = (uint64_t)((double)strip->ns[i][k] * over);
			cells[cell][k] += strip->ns[i][k] - next_ns;
			if (next_ns && cell + 1 < count)
				cells[cell + 1][k] += next_ns;
		}
	}
}

/* idle time comes when its gap ends, which may be after this picture was due */
static void put_cells(struct strip_row *row, uint64_t (*cells)[CLASSES])
{
	size_t i;

	for (i = 0; i < STRIP_CELLS; i++) {
		row->host[i] = most(cells[i], HOST_CLASSES, host_letters, '.');
		row->gpu[i] = most(cells[i] + HOST_CLASSES, GPU_CLASSES, STRIP_GPU_LETTERS, 'i');
	}
}

static void put_bins(struct strip_row *row, uint64_t (*cells)[CLASSES], double width_ns)
{
	static const size_t classes[STRIP_SHARES] = { 0, 1, 2, 4 }; /* of STRIP_GPU_LETTERS */
	size_t i, k;

	for (i = 0; i < STRIP_BINS; i++) {
		row->host_bins[i] = most(cells[i], HOST_CLASSES, host_letters, '.');
		for (k = 0; k < STRIP_SHARES; k++) {
			double share = (double)cells[i][HOST_CLASSES + classes[k]] / width_ns;

			row->gpu_bins[i * STRIP_SHARES + k] =
				(char)('0' + lround(fmin(share, 1) * STRIP_SHARE));
		}
	}
}

static enum status keep_bins(struct strip_row *row, const struct strip *strip, uint64_t end_ns,
			     struct error *err)
{
	uint64_t (*cells)[CLASSES] = calloc(STRIP_BINS, sizeof(*cells));

	row->host_bins = calloc(1, STRIP_BINS + 1);
	row->gpu_bins = calloc(1, STRIP_BINS * STRIP_SHARES + 1);
	if (cells && row->host_bins && row->gpu_bins) {
		gather(strip, end_ns, cells, STRIP_BINS);
		put_bins(row, cells, (double)(end_ns - strip->begin_ns) / STRIP_BINS);
	}
	free(cells);
	return cells && row->host_bins && row->gpu_bins ? ST_OK : no_memory(err);
}

static enum status strip_keep(struct strips *s, const struct step_list *steps,
			      const struct strip *strip, struct error *err)
{
	uint64_t cells[STRIP_CELLS][CLASSES], end_ns = end_of(strip, steps);

	TRY(rows_reach(s, strip->row, err));
	gather(strip, end_ns, cells, STRIP_CELLS);
	put_cells(&s->rows[strip->row], cells);
	return s->bins ? keep_bins(&s->rows[strip->row], strip, end_ns, err) : ST_OK;
}

/* The picture of a row in the making; NULL in *out: it is done already, or not wanted. */
static enum status strip_find(struct strips *s, const struct step_list *steps, size_t row,
			      struct strip **out, struct error *err)
{
	struct strip **place = &s->open[row % STRIP_OPEN];
	const struct step_row *step = &steps->rows[row];

	*out = *place;
	if (*place && (*place)->row == row)
		return ST_OK;
	*out = NULL;
	if (row >= STRIP_ROWS || (*place && (*place)->row > row) ||
	    step->mark_end_ns - step->begin_ns < FINE)
		return ST_OK;
	if (*place)
		TRY(strip_keep(s, steps, *place, err));
	else
		*place = malloc(sizeof(**place));
	if (!*place)
		return no_memory(err);
	memset((*place)->used, 0, sizeof((*place)->used));
	(*place)->row = row;
	(*place)->begin_ns = step->begin_ns;
	(*place)->mark_end_ns = step->mark_end_ns;
	*out = *place;
	return ST_OK;
}

/* Shares [begin, end) out to the bins it touches. */
static void spread(struct strip *strip, uint64_t begin_ns, uint64_t end_ns, size_t class)
{
	double width_ns = (double)(strip->mark_end_ns - strip->begin_ns) / FINE;
	uint64_t bin_end_ns;
	size_t bin;

	if (begin_ns < strip->begin_ns)
		begin_ns = strip->begin_ns;
	if (begin_ns >= end_ns)
		return;
	for (bin = (size_t)((double)(begin_ns - strip->begin_ns) / width_ns);
	     begin_ns < end_ns && bin < BINS; bin++) {
		bin_end_ns = strip->begin_ns + (uint64_t)((double)(bin + 1) * width_ns);
		if (bin_end_ns > end_ns)
			bin_end_ns = end_ns;
		if (bin_end_ns <= begin_ns)
			continue;
		if (!(strip->used[bin] & 1u << class))
			strip->ns[bin][class] = 0;
		strip->used[bin] |= (uint16_t)(1u << class);
		strip->ns[bin][class] += bin_end_ns - begin_ns;
		begin_ns = bin_end_ns;
	}
}

enum status strips_stretch(struct strips *s, const struct step_list *steps, size_t row,
			   const struct stretch *st, struct error *err)
{
	struct strip *strip;

	TRY(strip_find(s, steps, row, &strip, err));
	if (strip)
		spread(strip, st->begin_ns, st->end_ns,
		       st->phase < PHASE_KNOWN ? st->phase : OWN);
	return ST_OK;
}

static size_t gpu_class(const struct segment *seg)
{
	if (seg->part != PART_SPAN)
		return 4;
	if (seg->busy & BUSY_COMPUTE)
		return 0;
	return seg->busy & BUSY_COMM ? 1 : seg->busy ? 2 : 3;
}

enum status strips_segment(struct strips *s, const struct step_list *steps, size_t row,
			   const struct segment *seg, struct error *err)
{
	struct strip *strip;

	if (!s->has_gpu)
		s->first_gpu = seg->gpu;
	s->has_gpu = true;
	if (seg->gpu != s->first_gpu)
		return ST_OK;
	TRY(strip_find(s, steps, row, &strip, err));
	if (strip)
		spread(strip, seg->begin_ns, seg->end_ns, HOST_CLASSES + gpu_class(seg));
	return ST_OK;
}

enum status strips_end(struct strips *s, const struct step_list *steps, struct error *err)
{
	size_t i;

	for (i = 0; i < STRIP_OPEN; i++)
		if (s->open[i])
			TRY(strip_keep(s, steps, s->open[i], err));
	return ST_OK;
}

void strips_release(struct strips *s)
{
	size_t i;

	for (i = 0; i < STRIP_OPEN; i++)
		free(s->open[i]);
	for (i = 0; i < s->count; i++) {
		free(s->rows[i].host_bins);
		free(s->rows[i].gpu_bins);
	}
	free(s->rows);
}

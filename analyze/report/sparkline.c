/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/sparkline.h"

#include "schemas/base/vec.h"

#include <math.h>
#include <stdlib.h>

enum {
	USERS = PHASE_PREFILL, /* all other phases, including those of servers */
	HOST_CLASSES,
	GPU_CLASSES = 5,
	CLASSES = HOST_CLASSES + GPU_CLASSES,
	MARK_BINS = SPARKLINE_CELLS * 16,  /* bins of a mark */
	BINS = MARK_BINS + MARK_BINS / 50, /* and of the gap that may join it */
};

static const char host_letters[HOST_CLASSES] = {
	[PHASE_OTHER] = '.',   [PHASE_VALIDATION] = 'v',    [PHASE_CHECKPOINT] = 'k',
	[PHASE_DATA] = 'd',    [PHASE_OPTIMIZER] = 'o',     [PHASE_BACKWARD] = 'b',
	[PHASE_FORWARD] = 'f', [PHASE_COMMUNICATION] = 'c', [USERS] = 'u',
};

struct span { /* of one class, stored in the low CLASS_BITS */
	uint64_t begin_ns, ns_and_class;
};
enum { CLASS_BITS = 4 };
_Static_assert(HOST_CLASSES <= 1 << CLASS_BITS, "a class fits");
/* The host's phase intervals or the GPU's segments, in order and without overlap. Only the time of
 * each class in a bin matters, so if there are too many spans, those of a bin are sorted by class
 * and joined. */
struct timeline {
	struct span *spans;
	size_t count, cap;
};
enum { SPANS_MAX = 1 << 14 };
enum timeline_of { TIMELINE_HOST, TIMELINE_GPU, TIMELINES };
_Static_assert(SPANS_MAX > BINS * HOST_CLASSES && SPANS_MAX > BINS * GPU_CLASSES, "a bin's fit");

struct sparkline {
	size_t row;
	uint64_t begin_ns, mark_end_ns;
	double width_ns; /* width of a bin */
	struct timeline timelines[TIMELINES];
};

/* Returns the letter of the class with most time; `none` if there is no time. */
static char most(const uint64_t *ns, size_t count, const char *letters, char none)
{
	size_t best = 0;

	for (size_t i = 1; i < count; i++)
		if (ns[i] > ns[best])
			best = i;
	return ns[best] ? letters[best] : none;
}

/* Returns the end of a step, which includes the gap up to the next mark if that is short. This is a
 * guess: not all marks are known. */
static uint64_t end_of(const struct sparkline *sparkline, const struct step_list *steps)
{
	uint64_t length_ns = sparkline->mark_end_ns - sparkline->begin_ns;

	if (sparkline->row + 1 >= steps->count)
		return sparkline->mark_end_ns;
	uint64_t next_ns = steps->rows[sparkline->row + 1].begin_ns;
	if (next_ns > sparkline->mark_end_ns &&
	    (next_ns - sparkline->mark_end_ns) > length_ns / 100)
		return sparkline->mark_end_ns;
	return next_ns > sparkline->begin_ns ? next_ns : sparkline->mark_end_ns;
}

static uint64_t span_end(const struct span *s)
{
	return s->begin_ns + (s->ns_and_class >> CLASS_BITS);
}

static size_t span_class(const struct span *s)
{
	return s->ns_and_class % (1 << CLASS_BITS);
}

static uint64_t bin_begin(const struct sparkline *sparkline, size_t bin)
{
	return sparkline->begin_ns + (uint64_t)((double)bin * sparkline->width_ns);
}

/* Splits bins among cells. Bins that end in a cell belong to it; the next bin may be shared with
 * the next cell, in proportion to the overlap. */
struct edge {                        /* bounds of a cell */
	uint64_t own_end_ns, end_ns; /* end of its own bins; of the shared bin */
	double over;                 /* share of the shared bin that the next cell gets */
};
struct gather {
	const struct sparkline *sparkline;
	uint64_t (*cells)[CLASSES];
	struct edge *edges; /* indexed by cell */
	size_t count, cell;
	uint64_t shared[CLASSES]; /* time in the shared bin, by class; bits in `used` */
	unsigned used;
};
_Static_assert((int)SPARKLINE_CELLS <= (int)SPARKLINE_BINS, "edges hold those of both pictures");

static void shared_split(struct gather *g)
{
	for (; g->used; g->used &= g->used - 1) {
		unsigned i = (unsigned)__builtin_ctz(g->used);
		uint64_t next_ns = (uint64_t)((double)g->shared[i] * g->edges[g->cell].over);

		g->cells[g->cell][i] += g->shared[i] - next_ns;
		if (g->cell + 1 < g->count)
			g->cells[g->cell + 1][i] += next_ns;
		g->shared[i] = 0;
	}
}

/* Adds [at_ns, end_ns) of a class up to the end of the cell's own or shared bins. Returns the end
 * of what was added. */
static uint64_t gather_part(struct gather *g, size_t class, uint64_t at_ns, uint64_t end_ns)
{
	const struct edge *e = &g->edges[g->cell];

	if (at_ns < e->own_end_ns) {
		end_ns = end_ns < e->own_end_ns ? end_ns : e->own_end_ns;
		g->cells[g->cell][class] += end_ns - at_ns;
		return end_ns;
	}
	end_ns = end_ns < e->end_ns ? end_ns : e->end_ns;
	g->shared[class] += end_ns - at_ns;
	g->used |= 1u << class;
	return end_ns;
}

/* Advances to the cell whose own or shared bins contain an instant; false: it is after the last. */
static bool cell_reach(struct gather *g, uint64_t at_ns)
{
	while (at_ns >= g->edges[g->cell].end_ns) {
		shared_split(g);
		if (g->cell + 1 == g->count)
			return false;
		g->cell++;
	}
	return true;
}

/* Adds a timeline. Most spans lie in one cell's own bins and are added at once, others in parts. */
static void gather_timeline(struct gather *g, const struct timeline *l, size_t first_class)
{
	uint64_t *cell = g->cells[0], own_end_ns = g->edges[0].own_end_ns;

	g->cell = 0;
	for (size_t i = 0; i < l->count; i++) {
		const struct span *s = &l->spans[i];
		uint64_t at_ns = s->begin_ns, end_ns = span_end(s);

		if (end_ns <= own_end_ns) {
			cell[first_class + span_class(s)] += end_ns - at_ns;
			continue;
		}
		while (at_ns < end_ns && cell_reach(g, at_ns))
			at_ns = gather_part(g, first_class + span_class(s), at_ns, end_ns);
		cell = g->cells[g->cell];
		own_end_ns = g->edges[g->cell].own_end_ns;
	}
	shared_split(g);
}

static void gather(const struct sparkline *sparkline, uint64_t end_ns, uint64_t (*cells)[CLASSES],
		   size_t count)
{
	struct edge edges[SPARKLINE_BINS];
	struct gather g = {
		.sparkline = sparkline, .cells = cells, .edges = edges, .count = count
	};

	memset(cells, 0, count * sizeof(cells[0]));
	double per_bin = (double)(sparkline->mark_end_ns - sparkline->begin_ns) * (double)count /
			 MARK_BINS / (double)(end_ns - sparkline->begin_ns);
	double per_cell = 1 / per_bin;

	for (size_t cell = 0; cell < g.count; cell++) {
		struct edge *e = &g.edges[cell];
		double next = (double)(cell + 1);
		size_t bin = (size_t)(next * per_cell); /* the first that ends outside */

		while ((double)bin * per_bin > next)
			bin--;
		while ((double)(bin + 1) * per_bin <= next)
			bin++;
		e->own_end_ns = e->end_ns = bin_begin(g.sparkline, bin);
		e->over = ((double)(bin + 1) * per_bin - next) / per_bin;
		if ((double)bin * per_bin < next)
			e->end_ns = bin_begin(g.sparkline, bin + 1);
	}
	gather_timeline(&g, &sparkline->timelines[TIMELINE_HOST], 0);
	gather_timeline(&g, &sparkline->timelines[TIMELINE_GPU], HOST_CLASSES);
}

/* Idle time is known when its gap ends, which may be after the picture was finished, so 'i' is the
 * default. */
static void put_cells(struct sparkline_row *row, uint64_t (*cells)[CLASSES])
{
	for (size_t i = 0; i < SPARKLINE_CELLS; i++) {
		row->host[i] = most(cells[i], HOST_CLASSES, host_letters, '.');
		row->gpu[i] =
			most(cells[i] + HOST_CLASSES, GPU_CLASSES, SPARKLINE_GPU_LETTERS, 'i');
	}
}

static void put_bins(struct sparkline_row *row, uint64_t (*cells)[CLASSES], double width_ns)
{
	static const size_t classes[SPARKLINE_SHARES] = { 0, 1, 2, 4 }; /* among the letters */

	for (size_t i = 0; i < SPARKLINE_BINS; i++) {
		row->host_bins[i] = most(cells[i], HOST_CLASSES, host_letters, '.');
		for (size_t k = 0; k < SPARKLINE_SHARES; k++) {
			double share = (double)cells[i][HOST_CLASSES + classes[k]] / width_ns;

			row->gpu_bins[i * SPARKLINE_SHARES + k] =
				(char)('0' + lround(fmin(share, 1) * SPARKLINE_SHARE));
		}
	}
}

static enum status keep_bins(struct sparkline_row *row, const struct sparkline *sparkline,
			     uint64_t end_ns, struct error *err)
{
	uint64_t(*cells)[CLASSES] = calloc(SPARKLINE_BINS, sizeof(*cells));

	row->host_bins = calloc(1, SPARKLINE_BINS + 1);
	row->gpu_bins = calloc(1, SPARKLINE_BINS * SPARKLINE_SHARES + 1);
	if (cells && row->host_bins && row->gpu_bins) {
		gather(sparkline, end_ns, cells, SPARKLINE_BINS);
		put_bins(row, cells, (double)(end_ns - sparkline->begin_ns) / SPARKLINE_BINS);
	}
	free(cells);
	return cells && row->host_bins && row->gpu_bins ? ST_OK : fail_memory(err);
}

static enum status sparkline_keep(struct sparklines *s, const struct step_list *steps,
				  const struct sparkline *sparkline, struct error *err)
{
	uint64_t cells[SPARKLINE_CELLS][CLASSES], end_ns = end_of(sparkline, steps);

	TRY(vec_reserve(&s->rows, &s->count, sparkline->row + 1,
			err)); /* new rows have no picture */
	gather(sparkline, end_ns, cells, SPARKLINE_CELLS);
	put_cells(&s->rows[sparkline->row], cells);
	return s->bins ? keep_bins(&s->rows[sparkline->row], sparkline, end_ns, err) : ST_OK;
}

static bool span_extend(struct timeline *l, uint64_t begin_ns, uint64_t ns, size_t class)
{
	struct span *last = l->count ? &l->spans[l->count - 1] : NULL;

	if (!last || span_class(last) != class || span_end(last) != begin_ns)
		return false;
	last->ns_and_class += ns << CLASS_BITS;
	return true;
}

static void span_add(struct timeline *l, uint64_t begin_ns, uint64_t ns, size_t class)
{
	l->spans[l->count++] = (struct span){ begin_ns, ns << CLASS_BITS | class };
}

/* Writes the sums of a bin as spans from its begin on. */
static void bin_put(struct timeline *l, uint64_t begin_ns, uint64_t sums[HOST_CLASSES])
{
	for (size_t i = 0; i < HOST_CLASSES; i++) {
		if (sums[i] && !span_extend(l, begin_ns, sums[i], i))
			span_add(l, begin_ns, sums[i], i);
		begin_ns += sums[i];
		sums[i] = 0;
	}
}

/* Allocates space for one more span. */
static enum status timeline_reserve(const struct sparkline *sparkline, struct timeline *l,
				    struct error *err)
{
	if (l->cap == SPANS_MAX) {
		/* Sort the spans of each bin by class and join them. */
		struct timeline joined = { .spans = malloc(SPANS_MAX * sizeof(*l->spans)),
					   .cap = SPANS_MAX };
		uint64_t sums[HOST_CLASSES] = { 0 };
		size_t bin = 0;
		if (!joined.spans)
			return fail_memory(err);
		for (size_t i = 0; i < l->count; i++) {
			uint64_t at_ns = l->spans[i].begin_ns, end_ns = span_end(&l->spans[i]),
				 to_ns;

			for (; at_ns < end_ns && bin < BINS; at_ns = to_ns) {
				for (; bin < BINS && at_ns >= bin_begin(sparkline, bin + 1); bin++)
					bin_put(&joined, bin_begin(sparkline, bin), sums);
				to_ns = bin_begin(sparkline, bin + 1);
				to_ns = to_ns < end_ns ? to_ns : end_ns;
				sums[span_class(&l->spans[i])] += to_ns - at_ns;
			}
		}
		bin_put(&joined, bin_begin(sparkline, bin), sums);
		free(l->spans);
		*l = joined;
		return ST_OK;
	}
	return vec_reserve(&l->spans, &l->cap, l->count + 1, err);
}

static inline enum status timeline_add(struct sparkline *sparkline, enum timeline_of which,
				       uint64_t begin_ns, uint64_t end_ns, size_t class,
				       struct error *err)
{
	struct timeline *l = &sparkline->timelines[which];

	begin_ns = later(begin_ns, sparkline->begin_ns);
	if (begin_ns >= end_ns || span_extend(l, begin_ns, end_ns - begin_ns, class))
		return ST_OK;
	if (l->count == l->cap)
		TRY(timeline_reserve(sparkline, l, err));
	span_add(l, begin_ns, end_ns - begin_ns, class);
	return ST_OK;
}

/* Begins a picture, and finishes the older one in its slot. */
static enum status sparkline_begin(struct sparklines *s, const struct step_list *steps, size_t row,
				   struct sparkline **out, struct error *err)
{
	struct sparkline **place = &s->open[row % SPARKLINES_OPEN];
	const struct step_row *step = &steps->rows[row];

	*out = NULL;
	if (row >= SPARKLINES_KEPT || (*place && (*place)->row > row) ||
	    step->mark_end_ns - step->begin_ns < MARK_BINS)
		return ST_OK;
	if (*place)
		TRY(sparkline_keep(s, steps, *place, err));
	else
		*place = calloc(1, sizeof(**place));
	if (!*place)
		return fail_memory(err);
	(*place)->row = row;
	(*place)->begin_ns = step->begin_ns;
	(*place)->mark_end_ns = step->mark_end_ns;
	(*place)->width_ns = (double)(step->mark_end_ns - step->begin_ns) / MARK_BINS;
	for (size_t i = 0; i < TIMELINES; i++)
		(*place)->timelines[i].count = 0;
	*out = *place;
	return ST_OK;
}

/* Finds or begins the open picture of a row; *out is NULL if it is finished or not wanted. */
static inline enum status sparkline_find(struct sparklines *s, const struct step_list *steps,
					 size_t row, struct sparkline **out, struct error *err)
{
	*out = s->open[row % SPARKLINES_OPEN];
	return *out && (*out)->row == row ? ST_OK : sparkline_begin(s, steps, row, out, err);
}

enum status sparklines_interval(struct sparklines *s, const struct step_list *steps, size_t row,
				const struct phase_interval *st, struct error *err)
{
	struct sparkline *sparkline;

	TRY(sparkline_find(s, steps, row, &sparkline, err));
	if (!sparkline)
		return ST_OK;
	return timeline_add(sparkline, TIMELINE_HOST, st->begin_ns, st->end_ns,
			    st->phase < USERS ? st->phase : USERS, err);
}

enum status sparklines_segment(struct sparklines *s, const struct step_list *steps, size_t row,
			       const struct segment *seg, uint64_t begin_ns, uint64_t end_ns,
			       struct error *err)
{
	enum { LEAD_OR_TAIL = CLASS_COUNT }; /* follows the classes, in the order of the letters */
	struct sparkline *sparkline;

	if (!s->has_gpu)
		s->first_gpu = seg->gpu;
	s->has_gpu = true;
	if (seg->gpu != s->first_gpu)
		return ST_OK;
	TRY(sparkline_find(s, steps, row, &sparkline, err));
	if (!sparkline)
		return ST_OK;
	return timeline_add(sparkline, TIMELINE_GPU, begin_ns, end_ns,
			    seg->part == PART_SPAN ? owner_class(seg->busy) : LEAD_OR_TAIL, err);
}

enum status sparklines_end(struct sparklines *s, const struct step_list *steps, struct error *err)
{
	for (size_t i = 0; i < SPARKLINES_OPEN; i++)
		if (s->open[i])
			TRY(sparkline_keep(s, steps, s->open[i], err));
	return ST_OK;
}

void sparklines_release(struct sparklines *s)
{
	for (size_t i = 0; i < SPARKLINES_OPEN; i++) {
		for (size_t timeline = 0; s->open[i] && timeline < TIMELINES; timeline++)
			free(s->open[i]->timelines[timeline].spans);
		free(s->open[i]);
	}
	for (size_t i = 0; i < s->count; i++) {
		free(s->rows[i].host_bins);
		free(s->rows[i].gpu_bins);
	}
	free(s->rows);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures of steps against plain arithmetic: each piece of time shared out to all bins that it
 * touches, and each bin to its cells.
 */
#include "analyze/report/sparkline.h"

#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	HOST = PHASE_PREFILL,
	GPU = 5,
	MARK_BINS = SPARKLINE_CELLS * 16,
	BINS = MARK_BINS + MARK_BINS / 50,
	BEGIN = 1000000,
	FEW = 300,
	MANY = 60000,
};
static const char letters[HOST] = {
	[PHASE_OTHER] = '.',   [PHASE_VALIDATION] = 'v',    [PHASE_CHECKPOINT] = 'k',
	[PHASE_DATA] = 'd',    [PHASE_OPTIMIZER] = 'o',     [PHASE_BACKWARD] = 'b',
	[PHASE_FORWARD] = 'f', [PHASE_COMMUNICATION] = 'c',
};

struct plain {
	uint64_t length_ns, end_ns; /* of the mark; where the step ends */
	uint64_t host[BINS][HOST], gpu[BINS][GPU];
};

static uint64_t bin_at(const struct plain *p, size_t bin)
{
	return BEGIN + (uint64_t)((double)bin * ((double)p->length_ns / MARK_BINS));
}

static uint64_t overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
	uint64_t from = a > b ? a : b, to = a_end < b_end ? a_end : b_end;

	return to > from ? to - from : 0;
}

static void plain_put(struct plain *p, uint64_t *ns, size_t classes, size_t class,
		      uint64_t begin_ns, uint64_t end_ns)
{
	size_t i = (size_t)((double)(begin_ns - BEGIN) / ((double)p->length_ns / MARK_BINS));

	for (i = i ? i - 1 : 0; i < BINS && bin_at(p, i) < end_ns; i++)
		ns[i * classes + class] +=
			overlap(begin_ns, end_ns, bin_at(p, i), bin_at(p, i + 1));
}

/* Time of a class in a cell. */
static uint64_t plain_cell(const struct plain *p, const uint64_t *ns, size_t classes, size_t class,
			   size_t cell, size_t count)
{
	double per_bin =
		(double)p->length_ns * (double)count / MARK_BINS / (double)(p->end_ns - BEGIN);
	uint64_t sum = 0, next_ns;
	size_t i;

	for (i = 0; i < BINS && (double)i * per_bin < (double)count; i++) {
		size_t own = (size_t)((double)i * per_bin);
		double over = (double)(i + 1) * per_bin - (double)(own + 1);

		next_ns = over > 0 ? (uint64_t)((double)ns[i * classes + class] * (over / per_bin))
				   : 0;
		if (own == cell)
			sum += ns[i * classes + class] - next_ns;
		if (own + 1 == cell)
			sum += next_ns;
	}
	return sum;
}

static char plain_letter(const struct plain *p, const uint64_t *ns, size_t classes,
			 const char *names, char none, size_t cell)
{
	uint64_t most = 0, mine;
	char letter = none;
	size_t i;

	for (i = 0; i < classes; i++) {
		mine = plain_cell(p, ns, classes, i, cell, SPARKLINE_CELLS);
		if (mine > most)
			letter = names[i];
		most = mine > most ? mine : most;
	}
	return letter;
}

static void compare(const struct plain *p, const struct sparkline_row *row)
{
	static const size_t shares[SPARKLINE_SHARES] = { 0, 1, 2, 4 };
	double width_ns = (double)(p->end_ns - BEGIN) / SPARKLINE_BINS;
	char host[SPARKLINE_CELLS + 1] = "", gpu[SPARKLINE_CELLS + 1] = "";
	char bins[SPARKLINE_BINS * SPARKLINE_SHARES + 1] = "";
	size_t i, k;

	for (i = 0; i < SPARKLINE_CELLS; i++) {
		host[i] = plain_letter(p, p->host[0], HOST, letters, '.', i);
		gpu[i] = plain_letter(p, p->gpu[0], GPU, SPARKLINE_GPU_LETTERS, 'i', i);
	}
	for (i = 0; i < SPARKLINE_BINS; i++)
		for (k = 0; k < SPARKLINE_SHARES; k++)
			bins[i * SPARKLINE_SHARES + k] =
				(char)('0' +
				       lround(fmin((double)plain_cell(p, p->gpu[0], GPU, shares[k],
								      i, SPARKLINE_BINS) /
							   width_ns,
						   1) *
					      SPARKLINE_SHARE));
	CHECK_STR(row->host, host);
	CHECK_STR(row->gpu, gpu);
	CHECK_STR(row->gpu_bins, bins);
}

/* Of a GPU: what a letter of SPARKLINE_GPU_LETTERS stands for. */
static struct segment segment_of(size_t class, uint64_t begin_ns, uint64_t end_ns)
{
	static const uint8_t busy[GPU] = { BUSY_COMPUTE | BUSY_COMM, BUSY_COMM, BUSY_COPY, 0, 0 };

	return (struct segment){ .begin_ns = begin_ns,
				 .end_ns = end_ns,
				 .busy = busy[class],
				 .part = class == GPU - 1 ? PART_TAIL : PART_SPAN };
}

static void fill(struct plain *p, struct sparklines *s, const struct step_list *steps,
		 size_t pieces, uint64_t *seed)
{
	uint64_t most_ns = 2 * (p->end_ns - BEGIN) / pieces, at_ns, end_ns, r;
	size_t class;

	for (at_ns = BEGIN; at_ns < p->end_ns; at_ns = end_ns) {
		r = random_u64(seed);
		end_ns = at_ns + 1 + (r >> 8) % most_ns;
		end_ns = end_ns < p->end_ns ? end_ns : p->end_ns;
		class = r % (GPU + 1);
		if (class < GPU) { /* else a hole */
			struct segment seg = segment_of(class, at_ns, end_ns);

			CHECK_OK(sparklines_segment(s, steps, 0, &seg, at_ns, end_ns, NULL), NULL);
			plain_put(p, p->gpu[0], GPU, class, at_ns, end_ns);
		}
		if ((r >> 4) % 4) {
			struct phase_interval st = { .begin_ns = at_ns,
						     .end_ns = end_ns,
						     .phase = (uint8_t)((r >> 40) % HOST) };

			CHECK_OK(sparklines_interval(s, steps, 0, &st, NULL), NULL);
			plain_put(p, p->host[0], HOST, st.phase, at_ns, end_ns);
		}
	}
}

/* A step of `pieces`, more or less, and the gap behind it that joins. */
static void check_step(uint64_t length_ns, uint64_t gap_ns, size_t pieces, uint64_t *seed)
{
	struct plain *p = calloc(1, sizeof(*p));
	struct step_row rows[2] = {
		{ .begin_ns = BEGIN, .mark_end_ns = BEGIN + length_ns },
		{ .begin_ns = BEGIN + length_ns + gap_ns, .mark_end_ns = BEGIN + 2 * length_ns },
	};
	struct step_list steps = { .rows = rows, .count = 2 };
	struct sparklines s = { .bins = true };

	if (!CHECK(p != NULL))
		return;
	p->length_ns = length_ns;
	p->end_ns = BEGIN + length_ns + gap_ns;
	fill(p, &s, &steps, pieces, seed);
	CHECK_OK(sparklines_end(&s, &steps, NULL), NULL);
	if (CHECK(s.count > 0))
		compare(p, &s.rows[0]);
	sparklines_release(&s);
	free(p);
}

void test_sparkline_cells(void)
{
	uint64_t seed = 8, i;

	for (i = 0; i < 10; i++) {
		check_step(MARK_BINS + i, 0, FEW, &seed);
		check_step(5000000 + 7 * i, 0, FEW, &seed);
		check_step(5000000 + 7 * i, 49999 - 1000 * i, FEW / 10, &seed);
	}
}

/* So many that those of a bin are joined. */
void test_sparkline_many_intervals(void)
{
	uint64_t seed = 9;

	check_step(40000000, 333333, MANY, &seed);
	check_step(40000000, 0, MANY, &seed);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The lines above the first block, and the last block: what was read, and can it be trusted. */
#include "analyze/text_page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *text_of(const struct view *v, size_t row, const char *column, const char *none)
{
	const char *text = v->count > row ? view_cell(v, row, column).text : NULL;

	return text && text[0] ? text : none;
}

/* " · " between what stands in a line. */
static unsigned dot(struct page *p, unsigned column)
{
	return column ? text_at(&p->text, column, TOKEN_DIM, " \xc2\xb7 ") : 0;
}

static unsigned put_ranks(struct page *p)
{
	uint64_t rank, world, largest = 0;
	char of[32] = "";
	size_t i;

	for (i = 0; i < p->ranks.count; i++) {
		world = view_cell(&p->ranks, i, "world_size").u64;
		largest = world > largest ? world : largest;
	}
	if (p->ranks.count == 1) {
		rank = view_cell(&p->ranks, 0, "rank").u64;
		if (rank == NO_U64 || largest == 1)
			return 0;
		if (largest)
			snprintf(of, sizeof(of), " of %llu", (unsigned long long)largest);
		return text_atf(&p->text, 0, TOKEN_DIM, "rank %llu%s", (unsigned long long)rank,
				of);
	}
	if (largest)
		snprintf(of, sizeof(of), " of %llu", (unsigned long long)largest);
	return text_atf(&p->text, 0, TOKEN_DIM, "%zu%s ranks", p->ranks.count, of);
}

static unsigned put_gpus(struct page *p, unsigned column)
{
	const char *name = text_of(&p->gpus, 0, "name", NULL);
	size_t i;

	if (!p->gpus.count)
		return text_at(&p->text, dot(p, column), TOKEN_DIM, "no GPU");
	for (i = 1; name && i < p->gpus.count; i++)
		if (strcmp(text_of(&p->gpus, i, "name", ""), name) != 0)
			name = "several models";
	column = dot(p, column);
	if (p->gpus.count > 1 && !name && p->gpus.count == p->ranks.count)
		return text_at(&p->text, column, TOKEN_DIM, "GPU model not in the files");
	if (p->gpus.count > 1)
		return text_atf(&p->text, column, TOKEN_DIM, "%zu GPUs, %.40s", p->gpus.count,
				name ? name : "model not in the files");
	if (view_cell(&p->gpus, 0, "device").u64 == NO_U64)
		return text_at(&p->text, column, TOKEN_DIM, name ? name : "a GPU");
	return text_atf(&p->text, column, TOKEN_DIM, "GPU %llu, %.40s",
			(unsigned long long)view_cell(&p->gpus, 0, "device").u64,
			name ? name : "model not in the file");
}

/* "6 steps, 5 to 10": of the first rank; ranks of one job have the same. */
static unsigned put_steps(struct page *p, unsigned column)
{
	struct view steps = page_of_rank(p, "steps", 0);
	uint64_t first, last;

	if (!p->has_steps || !steps.count)
		return text_at(&p->text, dot(p, column), TOKEN_DIM, "no step marked");
	first = view_cell(&steps, 0, "step").u64;
	last = view_cell(&steps, steps.count - 1, "step").u64;
	column = dot(p, column);
	if (steps.count == 1)
		return text_atf(&p->text, column, TOKEN_DIM, "1 step, %llu",
				(unsigned long long)first);
	return text_atf(&p->text, column, TOKEN_DIM, "%zu steps, %llu to %llu", steps.count,
			(unsigned long long)first, (unsigned long long)last);
}

void page_head(struct page *p)
{
	struct view inputs = page_view(p, "inputs");
	uint64_t events = page_sum(&inputs, "events");
	char count[NUMBER_TEXT], more[64] = "";
	unsigned column, room = p->text.width > 20 ? p->text.width - 10 : 10;

	if (inputs.count > 1)
		snprintf(more, sizeof(more), " and %zu more", inputs.count - 1);
	room -= text_width(more) < room ? text_width(more) : 0;
	column = text_cut(&p->text, 0, room, TOKEN_BOLD, text_of(&inputs, 0, "path", "?"));
	text_at(&p->text, column, TOKEN_DIM, more);
	text_right(&p->text, p->text.width, TOKEN_DIM, "summary");
	text_end(&p->text);
	column = put_steps(p, put_gpus(p, put_ranks(p)));
	column = text_at(&p->text, dot(p, column), TOKEN_DIM,
			 text_of(&inputs, 0, "format", "unknown format"));
	column = text_atf(&p->text, column, TOKEN_DIM, ", %s events",
			  count_text(count, events ? events : page_sum(&p->ranks, "events")));
	if (page_sum(&inputs, "synthetic"))
		text_at(&p->text, column, TOKEN_DIM, ", synthetic");
	text_end(&p->text);
}

/* ---- distrust --------------------------------------------------------------------------- */

static void distrust(struct page *p, const char *word, const char *first, const char *second)
{
	text_end(&p->text);
	text_atf(&p->text, 0, TOKEN_WARN, "! %s", word);
	text_wrap(&p->text, 14, 14, TOKEN_WARN, first);
	text_end(&p->text);
	if (!second)
		return;
	text_wrap(&p->text, 14, 14, TOKEN_WARN, second);
	text_end(&p->text);
}

static void distrust_sample(struct page *p)
{
	char line[256] = "";
	double low = INFINITY, high = 0;
	size_t i;

	for (i = 0; i < p->trust.count; i++) {
		double density = 100 * view_cell(&p->trust, i, "id_density").f64;

		if (view_cell(&p->trust, i, "sampled").u64 != 1)
			continue;
		low = density < low ? density : low;
		high = density > high ? density : high;
	}
	if (p->ranks.count == 1)
		snprintf(line, sizeof(line), "The file holds %.2f %% of its correlation ids. Where "
			 "nothing was seen,", low);
	else if (p->ranks.count == 2)
		snprintf(line, sizeof(line), "The files hold %.2f %% and %.2f %% of their "
			 "correlation ids. Where nothing was seen,",
			 100 * view_cell(&p->trust, 0, "id_density").f64,
			 100 * view_cell(&p->trust, 1, "id_density").f64);
	else
		snprintf(line, sizeof(line), "Files hold %.2f %% to %.2f %% of their correlation "
			 "ids. Where nothing was seen,", low, high);
	distrust(p, "SAMPLED", line, "the GPU may have been busy: do not read it as idle. What was "
				     "seen is a minimum.");
}

/* Losses that make figures untrue; what is drawn again, cut out or moved is none. */
static uint64_t lost_records(const struct page *p)
{
	static const char *const harmless[] = { "derived", "cut_out", "order" };
	struct view losses = page_view(p, "losses");
	uint64_t sum = 0;
	size_t i, k;

	for (i = 0; i < losses.count; i++) {
		const char *reason = view_cell(&losses, i, "reason").text;

		for (k = 0; k < 3 && strcmp(reason, harmless[k]); k++)
			;
		if (k == 3)
			sum += view_cell(&losses, i, "count").u64;
	}
	return sum;
}

/* Inputs that could not be read to their end: the first, and how many more. */
static void distrust_cut(struct page *p)
{
	struct view inputs = page_view(p, "inputs");
	const char *error = NULL;
	char line[320];
	size_t i, count = 0;

	for (i = inputs.count; i; i--) {
		if (!text_of(&inputs, i - 1, "error", NULL))
			continue;
		error = text_of(&inputs, i - 1, "error", NULL);
		count++;
	}
	if (!count)
		return;
	snprintf(line, sizeof(line), "%.80s.", error);
	if (count > 1)
		snprintf(line, sizeof(line), "%zu inputs end early, the first: %.50s.", count,
			 error);
	distrust(p, "CUT OFF", line, "All figures are of what could be read before that.");
}

void page_distrust(struct page *p)
{
	struct view inputs = page_view(p, "inputs");
	uint64_t lost = lost_records(p), unread = page_sum(&inputs, "unread_bytes");
	char line[256], count[NUMBER_TEXT];

	if (p->is_sampled)
		distrust_sample(p);
	distrust_cut(p);
	if (unread) {
		snprintf(line, sizeof(line), "The last %s bytes could not be read: what they held "
			 "is in no figure.", count_text(count, unread));
		distrust(p, "UNREAD", line, NULL);
	}
	if (lost) {
		snprintf(line, sizeof(line), "%s records are missing: times and counts are at "
			 "least what stands here.", count_text(count, lost));
		distrust(p, "LOST", line, NULL);
	}
	if (!p->gpus.count) {
		text_end(&p->text);
		text_at(&p->text, 0, TOKEN_BOLD, "NO GPU");
		text_at(&p->text, 14, TOKEN_BOLD,
			"No GPU event in this file: host phases only.");
		text_end(&p->text);
	}
}

/* ---- trust ------------------------------------------------------------------------------ */

/* Goes on at `column`, and on the next line where there is no room. */
__attribute__((format(printf, 4, 5)))
static unsigned say(struct page *p, unsigned column, enum token token, const char *fmt, ...)
{
	char words[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	return text_wrap(&p->text, column, 14, token, words);
}

static unsigned put_launches(struct page *p)
{
	uint64_t work = page_sum(&p->trust, "gpu_events");
	uint64_t with = page_sum(&p->trust, "with_launch");
	uint64_t calls = page_sum(&p->trust, "launches");
	uint64_t without = page_sum(&p->trust, "without_gpu_event");
	char a[NUMBER_TEXT], b[NUMBER_TEXT];
	unsigned column;

	if (!work)
		return say(p, 14, TOKEN_TEXT, "no GPU event and so no launch to check");
	if (with == work)
		column = say(p, 14, TOKEN_TEXT, "all %s GPU events have their launch",
			     count_text(a, work));
	else
		column = say(p, 14, TOKEN_TEXT, "%s of %s GPU events have their launch",
			     count_text(a, with), count_text(b, work));
	if (!calls || p->is_sampled)
		return column;
	if (!without)
		return say(p, column, TOKEN_TEXT, " and all %s launches their event",
			   count_text(a, calls));
	return say(p, column, TOKEN_TEXT, ", %s of %s launches their event",
		   count_text(a, calls - without), count_text(b, calls));
}

static bool all_true(const struct view *v, const char *column)
{
	size_t i;

	for (i = 0; i < v->count; i++)
		if (view_cell(v, i, column).u64 != 1)
			return false;
	return true;
}

static bool any_inferred(const struct page *p)
{
	struct view phases = page_view(p, "phases");
	size_t i;

	for (i = 0; i < phases.count; i++)
		if (view_cell(&phases, i, "inferred").u64 == 1)
			return true;
	return false;
}

/* Which ranks of the job are not here, or else what the tilde of a phase means. */
static void put_absent(struct page *p, unsigned column)
{
	uint64_t world = 0;
	size_t i;

	for (i = 0; i < p->ranks.count; i++)
		if (view_cell(&p->ranks, i, "world_size").u64 > world)
			world = view_cell(&p->ranks, i, "world_size").u64;
	if (p->ranks.count > 1 && world > p->ranks.count)
		say(p, column, TOKEN_DIM, " \xc2\xb7 %llu of the %llu ranks not given",
		    (unsigned long long)(world - p->ranks.count), (unsigned long long)world);
	else if (p->ranks.count == 1 && any_inferred(p))
		say(p, column, TOKEN_DIM, " \xc2\xb7 ~ inferred");
}

static void put_source(struct page *p)
{
	struct view windows = page_view(p, "windows"), inputs = page_view(p, "inputs");
	bool is_kineto = !strncmp(text_of(&inputs, 0, "format", ""), "Kineto", 6);
	struct time_unit unit = { 1e6, 1, "ms" };
	char own[NUMBER_TEXT];
	unsigned column;

	if (all_true(&p->trust, "counts_losses")) {
		column = say(p, 14, TOKEN_DIM, "%s, %s; the collector took %s ms",
			     lost_records(p) ? "records were lost" : "no record was lost",
			     all_true(&inputs, "whole") ? "the log was closed"
							: "the log was not closed",
			     time_text(own, (double)page_sum(&windows, "own_ns"), &unit));
	} else {
		column = say(p, 14, TOKEN_DIM, "%s",
			     is_kineto ? "Kineto reports neither losses nor its own cost"
				       : "losses and own cost are not in the file");
		if (p->ranks.count == 1)
			column = say(p, column, TOKEN_DIM, ": host times may be high");
	}
	put_absent(p, column);
	text_end(&p->text);
}

/* One reason, of all ranks together; each only where it stands first. */
static unsigned put_loss(struct page *p, unsigned column, const struct view *losses, size_t row)
{
	const char *reason = view_cell(losses, row, "reason").text;
	bool asked = !strcmp(reason, "cut_out"), moved = !strcmp(reason, "order");
	uint64_t sum = 0;
	char count[NUMBER_TEXT];
	size_t i;

	for (i = 0; i < losses->count; i++) {
		if (strcmp(view_cell(losses, i, "reason").text, reason) != 0)
			continue;
		if (i < row)
			return column;
		sum += view_cell(losses, i, "count").u64;
	}
	if (!strcmp(reason, "derived"))
		return column;
	if (column > 14)
		column = say(p, column, TOKEN_DIM, ", ");
	return say(p, column, asked || moved ? TOKEN_DIM : TOKEN_WARN, "%s %s",
		   count_text(count, sum),
		   asked ? "cut out" : moved ? "moved to keep order" : reason);
}

static void put_losses(struct page *p)
{
	struct view losses = page_view(p, "losses");
	unsigned column = 14;
	size_t i;

	for (i = 0; i < losses.count && column <= 80; i++)
		column = put_loss(p, column, &losses, i);
	if (column > 14)
		text_end(&p->text);
}

static void put_density(struct page *p, unsigned column)
{
	char a[NUMBER_TEXT], b[NUMBER_TEXT];
	size_t i;

	for (i = 0; p->is_sampled && i < p->trust.count && i < 2; i++)
		column = say(p, column, TOKEN_TEXT, "%s%s of %s%s",
			     i ? " and " : " \xc2\xb7 ",
			     count_text(a, view_cell(&p->trust, i, "ids").u64),
			     count_text(b, view_cell(&p->trust, i, "id_range").u64),
			     i + 1 == p->trust.count || i ? " ids" : "");
}

void page_trust(struct page *p)
{
	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "TRUST");
	put_density(p, put_launches(p));
	text_end(&p->text);
	put_source(p);
	put_losses(p);
}

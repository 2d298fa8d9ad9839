/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page/talk.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *text_of(const struct view *v, size_t row, const char *column, const char *none)
{
	const char *text = v->count > row ? view_cell(v, row, column).text : NULL;

	return text && text[0] ? text : none;
}

__attribute__((format(printf, 3, 4)))
static void say(struct talk *t, enum token token, const char *fmt, ...)
{
	char words[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	t->words(t, token, words);
}

/* false: nothing was said */
static bool say_ranks(const struct page *p, struct talk *t)
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
			return false;
		if (largest)
			snprintf(of, sizeof(of), " of %llu", (unsigned long long)largest);
		say(t, TOKEN_DIM, "rank %llu%s", (unsigned long long)rank, of);
		return true;
	}
	if (largest)
		snprintf(of, sizeof(of), " of %llu", (unsigned long long)largest);
	say(t, TOKEN_DIM, "%zu%s ranks", p->ranks.count, of);
	return true;
}

static void say_gpus(const struct page *p, struct talk *t)
{
	const char *name = text_of(&p->gpus, 0, "name", NULL);
	size_t i;

	if (!p->gpus.count) {
		say(t, TOKEN_DIM, "no GPU");
		return;
	}
	for (i = 1; name && i < p->gpus.count; i++)
		if (strcmp(text_of(&p->gpus, i, "name", ""), name) != 0)
			name = "several models";
	if (p->gpus.count > 1 && !name && p->gpus.count == p->ranks.count)
		say(t, TOKEN_DIM, "GPU model not in the files");
	else if (p->gpus.count > 1)
		say(t, TOKEN_DIM, "%zu GPUs, %.40s", p->gpus.count,
		    name ? name : "model not in the files");
	else if (view_cell(&p->gpus, 0, "device").u64 == NO_U64)
		say(t, TOKEN_DIM, "%.40s", name ? name : "a GPU");
	else
		say(t, TOKEN_DIM, "GPU %llu, %.40s",
		    (unsigned long long)view_cell(&p->gpus, 0, "device").u64,
		    name ? name : "model not in the file");
}

/* "6 steps, 5 to 10": of the first rank; ranks of one job have the same. */
static void say_steps(const struct page *p, struct talk *t)
{
	struct view steps = page_of_rank(p, "steps", 0);
	uint64_t first = UINT64_MAX, last = 0, number;
	size_t i;

	if (!p->has_steps || !steps.count) {
		say(t, TOKEN_DIM, "no step marked");
		return;
	}
	for (i = 0; i < steps.count; i++) { /* in order of time; numbers may begin anew */
		number = view_cell(&steps, i, "step").u64;
		first = number < first ? number : first;
		last = number > last ? number : last;
	}
	if (steps.count == 1)
		say(t, TOKEN_DIM, "1 step, %llu", (unsigned long long)first);
	else
		say(t, TOKEN_DIM, "%zu steps, %llu to %llu", steps.count,
		    (unsigned long long)first, (unsigned long long)last);
}

#define DOT " \xc2\xb7 "

void talk_head(const struct page *p, struct talk *t)
{
	struct view inputs = page_view(p, "inputs");
	uint64_t events = page_sum(&inputs, "events");
	char count[NUMBER_TEXT];

	if (!events)
		events = page_sum(&p->ranks, "events");
	if (say_ranks(p, t))
		say(t, TOKEN_DIM, DOT);
	say_gpus(p, t);
	say(t, TOKEN_DIM, DOT);
	say_steps(p, t);
	say(t, TOKEN_DIM, DOT "%s, %s event%s%s", text_of(&inputs, 0, "format", "unknown format"),
	    count_text(count, events), plural(events), page_sum(&inputs, "synthetic") ? ", synthetic" : "");
}

static void distrust_sample(const struct page *p, struct talk *t)
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
	t->distrust(t, "SAMPLED", line, "the GPU may have been busy: do not read it as idle. What was "
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
static void distrust_cut(const struct page *p, struct talk *t)
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
	t->distrust(t, "CUT OFF", line, "All figures are of what could be read before that.");
}

void talk_distrust(const struct page *p, struct talk *t)
{
	struct view inputs = page_view(p, "inputs");
	uint64_t lost = lost_records(p), unread = page_sum(&inputs, "unread_bytes");
	char line[256], count[NUMBER_TEXT];

	if (p->is_sampled)
		distrust_sample(p, t);
	distrust_cut(p, t);
	if (unread) {
		snprintf(line, sizeof(line), "The last %s byte%s could not be read: what stood "
			 "there is in no figure.", count_text(count, unread), plural(unread));
		t->distrust(t, "UNREAD", line, NULL);
	}
	if (lost) {
		snprintf(line, sizeof(line), "%s record%s missing: times and counts are at least "
			 "what stands here.", count_text(count, lost), lost == 1 ? " is" : "s are");
		t->distrust(t, "LOST", line, NULL);
	}
}

static void say_launches(const struct page *p, struct talk *t)
{
	uint64_t work = page_sum(&p->trust, "gpu_events");
	uint64_t with = page_sum(&p->trust, "with_launch");
	uint64_t calls = page_sum(&p->trust, "launches");
	uint64_t without = page_sum(&p->trust, "without_gpu_event");
	char a[NUMBER_TEXT], b[NUMBER_TEXT];

	if (!work) {
		say(t, TOKEN_TEXT, "no GPU event and so no launch to check");
		return;
	}
	if (with == work)
		say(t, TOKEN_TEXT, "all %s GPU events have their launch",
			     count_text(a, work));
	else
		say(t, TOKEN_TEXT, "%s of %s GPU events have their launch",
			     count_text(a, with), count_text(b, work));
	if (!calls || p->is_sampled)
		return;
	if (!without)
		say(t, TOKEN_TEXT, " and all %s launches their event", count_text(a, calls));
	else
		say(t, TOKEN_TEXT, ", %s of %s launches their event",
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
static void say_absent(const struct page *p, struct talk *t)
{
	uint64_t world = 0;
	size_t i;

	for (i = 0; i < p->ranks.count; i++)
		if (view_cell(&p->ranks, i, "world_size").u64 > world)
			world = view_cell(&p->ranks, i, "world_size").u64;
	if (p->ranks.count > 1 && world > p->ranks.count)
		say(t, TOKEN_DIM, " \xc2\xb7 %llu of the %llu ranks not given",
		    (unsigned long long)(world - p->ranks.count), (unsigned long long)world);
	else if (p->ranks.count == 1 && any_inferred(p))
		say(t, TOKEN_DIM, " \xc2\xb7 ~ inferred");
}

static void say_source(const struct page *p, struct talk *t)
{
	struct view windows = page_view(p, "windows"), inputs = page_view(p, "inputs");
	bool is_kineto = !strncmp(text_of(&inputs, 0, "format", ""), "Kineto", 6);
	struct time_unit unit = { 1e6, 1, "ms" };
	char own[NUMBER_TEXT];

	if (all_true(&p->trust, "counts_losses")) {
		say(t, TOKEN_DIM, "%s, %s; the collector took %s ms",
			     lost_records(p) ? "records were lost" : "no record was lost",
			     all_true(&inputs, "whole") ? "the log was closed"
							: "the log was not closed",
			     time_text(own, (double)page_sum(&windows, "own_ns"), &unit));
	} else {
		say(t, TOKEN_DIM, "%s",
			     is_kineto ? "Kineto reports neither losses nor its own cost"
				       : "losses and own cost are not in the file");
		if (p->ranks.count == 1)
			say(t, TOKEN_DIM, ": host times may be high");
	}
	say_absent(p, t);
	t->end(t);
}

/* One reason, of all ranks together; each only where it stands first.  Whether it was said. */
static bool say_loss(struct talk *t, const struct view *losses, size_t row, bool is_first)
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
			return false;
		sum += view_cell(losses, i, "count").u64;
	}
	if (!strcmp(reason, "derived"))
		return false;
	say(t, asked || moved ? TOKEN_DIM : TOKEN_WARN, "%s%s %s", is_first ? "" : ", ",
	    count_text(count, sum),
	    asked ? "cut out" : moved ? "moved to keep order" : reason);
	return true;
}

static void say_losses(const struct page *p, struct talk *t)
{
	struct view losses = page_view(p, "losses");
	bool some = false;
	size_t i;

	for (i = 0; i < losses.count; i++)
		some |= say_loss(t, &losses, i, !some);
	if (some)
		t->end(t);
}

static void say_density(const struct page *p, struct talk *t)
{
	char a[NUMBER_TEXT], b[NUMBER_TEXT];
	size_t i;

	for (i = 0; p->is_sampled && i < p->trust.count && i < 2; i++)
		say(t, TOKEN_TEXT, "%s%s of %s%s", i ? " and " : DOT,
		    count_text(a, view_cell(&p->trust, i, "ids").u64),
		    count_text(b, view_cell(&p->trust, i, "id_range").u64),
		    i + 1 == p->trust.count || i ? " ids" : "");
}

void talk_trust(const struct page *p, struct talk *t)
{
	say_launches(p, t);
	say_density(p, t);
	t->end(t);
	say_source(p, t);
	say_losses(p, t);
}

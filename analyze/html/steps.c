/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STEPS: two strips for each step on one scale - the host by phase, the GPU by stacked shares, so
 * that area is time.  Of many steps: the first, the fastest, the median, the slowest and some that
 * are much slower than the median.
 */
#include "analyze/html/put.h"
#include "analyze/page/walls.h"
#include "analyze/report/strip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_ALL = 12, ROWS_SLOW = 8, ROWS_MAX = ROWS_ALL + 4, GPU_HEIGHT = 100 };

static const struct {
	char letter;
	enum token token;
	const char *name;
} phases[] = {
	{ 'd', TOKEN_DATA, "data" },           { 'f', TOKEN_FORWARD, "forward" },
	{ 'b', TOKEN_BACKWARD, "backward" },   { 'o', TOKEN_OPTIMIZER, "optimizer" },
	{ 'c', TOKEN_COMM, "communication" },  { 'k', TOKEN_ASIDE, "checkpoint" },
	{ 'v', TOKEN_ASIDE, "validation" },    { 'u', TOKEN_OTHER, NULL },
	{ '.', TOKEN_OTHER, NULL },
};
enum { PHASES = sizeof(phases) / sizeof(phases[0]) };

struct picked { /* steps that are drawn */
	const union value *steps[ROWS_MAX];
	double wall_ns[ROWS_MAX];
	size_t count;
};

/* ---- which steps ------------------------------------------------------------------------ */

static bool is_picked(const struct picked *p, const union value *row)
{
	size_t i;

	for (i = 0; i < p->count; i++)
		if (p->steps[i] == row)
			return true;
	return false;
}

static void pick(struct picked *p, const struct view *steps, const struct walls *w, size_t i)
{
	const union value *row = steps->rows[w->rows[i]];

	if (p->count == ROWS_MAX || is_picked(p, row))
		return;
	p->steps[p->count] = row;
	p->wall_ns[p->count++] = w->in_order[i];
}

/* Of the counted steps the one with this wall; of several the last. */
static size_t find_wall(const struct walls *w, double wall_ns)
{
	double least = INFINITY;
	size_t i, best = 0;

	for (i = 0; i < w->count; i++)
		if (fabs(w->in_order[i] - wall_ns) <= least) {
			least = fabs(w->in_order[i] - wall_ns);
			best = i;
		}
	return best;
}

static void put_in_time_order(struct picked *p, size_t begin_column)
{
	size_t i, k;

	for (i = 1; i < p->count; i++)
		for (k = i; k && p->steps[k - 1][begin_column].u64 >
					 p->steps[k][begin_column].u64; k--) {
			const union value *step = p->steps[k];
			double wall_ns = p->wall_ns[k];

			p->steps[k] = p->steps[k - 1];
			p->wall_ns[k] = p->wall_ns[k - 1];
			p->steps[k - 1] = step;
			p->wall_ns[k - 1] = wall_ns;
		}
}

static struct picked picked_take(const struct view *steps, const struct walls *w)
{
	struct picked p = { .count = 0 };
	size_t i, slow = 0;

	for (i = 0; i < w->count && w->count <= ROWS_ALL; i++)
		pick(&p, steps, w, i);
	if (w->count <= ROWS_ALL)
		return p;
	pick(&p, steps, w, 0);
	pick(&p, steps, w, find_wall(w, w->sorted[0]));
	pick(&p, steps, w, find_wall(w, w->median));
	for (i = w->count; i && slow < ROWS_SLOW; i--, slow++)
		if (i == w->count || w->sorted[i - 1] > 1.5 * w->median)
			pick(&p, steps, w, find_wall(w, w->sorted[i - 1]));
	put_in_time_order(&p, table_column(steps->table, "begin_ns"));
	return p;
}

/* ---- strips ----------------------------------------------------------------------------- */

static enum token token_of_letter(char letter)
{
	size_t i;

	for (i = 0; i + 1 < PHASES; i++)
		if (phases[i].letter == letter)
			break;
	return phases[i].token;
}

/* Runs of one letter, a path for each colour. */
static void put_host(struct html *h, const char *bins)
{
	size_t i, end;

	html_raw(h, "<svg height=\"12\"><svg viewBox=\"0 0 600 12\" preserveAspectRatio=\"none\" "
		    "width=\"100%\" height=\"12\" shape-rendering=\"crispEdges\">");
	for (i = 0; bins[i]; i = end) {
		for (end = i; bins[end] == bins[i]; end++)
			;
		html_rawf(h, "<path class=\"%s\" d=\"M%zu 0h%zuv12h-%zuz\"/>",
			  html_token(token_of_letter(bins[i])), i, end - i, end - i);
	}
	html_raw(h, "</svg></svg>\n");
}

/* Upper edge of a class in a bin, in hundredths of the height: classes stand on each other. */
static unsigned top_of(const char *bin, size_t class)
{
	unsigned sum = 0;
	size_t i;

	for (i = 0; i <= class; i++)
		sum += (unsigned)(bin[i] - '0');
	return sum > STRIP_SHARE ? GPU_HEIGHT : sum * GPU_HEIGHT / STRIP_SHARE;
}

static void put_shares(struct html *h, const char *bins, size_t class, const char *name)
{
	size_t i, end;
	bool some = false;

	for (i = 0; i < STRIP_BINS; i = end) {
		const char *bin = bins + i * STRIP_SHARES;
		unsigned top = top_of(bin, class), bottom = class ? top_of(bin, class - 1) : 0;

		for (end = i + 1; end < STRIP_BINS; end++)
			if (memcmp(bin, bins + end * STRIP_SHARES, STRIP_SHARES) != 0)
				break;
		if (top == bottom)
			continue;
		if (!some)
			html_rawf(h, "<path class=\"%s\" d=\"", name);
		some = true;
		html_rawf(h, "M%zu %uh%zuv%uh-%zuz", i, GPU_HEIGHT - top, end - i, top - bottom,
			  end - i);
	}
	if (some)
		html_raw(h, "\"/>");
}

static void put_gpu(struct html *h, const char *bins)
{
	static const char letters[STRIP_SHARES] = { 'c', 'm', 'd', 'l' };
	size_t i;

	html_raw(h, "<svg height=\"26\"><rect width=\"100%\" height=\"26\" class=\"idle\"/>"
		    "<svg viewBox=\"0 0 600 100\" preserveAspectRatio=\"none\" width=\"100%\" "
		    "height=\"26\" shape-rendering=\"crispEdges\">");
	for (i = 0; i < STRIP_SHARES; i++)
		put_shares(h, bins, i, html_class_name(letters[i]));
	html_raw(h, "</svg></svg>\n");
}

/* Names of phases above the first row, each at the begin of its longest run. */
static void put_names(struct html *h, const char *bins, double width)
{
	size_t p, i, end, at, longest;

	html_raw(h, "<div class=\"labels\">");
	for (p = 0; p < PHASES; p++) {
		at = longest = 0;
		for (i = 0; bins[i]; i = end) {
			for (end = i; bins[end] == bins[i]; end++)
				;
			if (bins[i] == phases[p].letter && end - i > longest) {
				longest = end - i;
				at = i;
			}
		}
		if (phases[p].name && longest >= STRIP_BINS / 20)
			html_rawf(h, "<span style=\"left:%.2f%%;width:%.2f%%\">%s</span>",
				  (double)at / STRIP_BINS * width,
				  (double)longest / STRIP_BINS * width, phases[p].name);
	}
	html_raw(h, "</div><div></div>\n");
}

/* 1, 2 or 5 times a power of ten: at most five of them in `whole`. */
static double tick_of(double whole)
{
	double tick = pow(10, floor(log10(whole / 5)));

	if (tick * 5 >= whole)
		return tick;
	if (tick * 10 >= whole)
		return tick * 2;
	return tick * 25 >= whole ? tick * 5 : tick * 10;
}

static void put_axis(struct html *h, double most_ns, const struct time_unit *unit)
{
	double whole = most_ns / unit->ns, tick = tick_of(whole);
	int i;

	html_raw(h, "<div class=\"axis\">");
	for (i = 0; i * tick < whole * 0.96; i++)
		html_rawf(h, "<span style=\"left:%.2f%%\">%g%s%s</span>", 100 * i * tick / whole,
			  i * tick, i ? "" : " ", i ? "" : unit->name);
	html_rawf(h, "</div><div class=\"wall dim\" style=\"padding:0\">%s wall</div>\n",
		  unit->name);
}

static void put_step(struct html *h, const struct view *strips, double wall_ns, double most_ns,
		     bool is_first, const struct time_unit *unit)
{
	const char *host = view_cell(strips, 0, "host_bins").text;
	const char *gpu = view_cell(strips, 0, "gpu_bins").text;
	char text[NUMBER_TEXT];
	double width = 100 * wall_ns / most_ns;

	html_rawf(h, "<div class=\"who\"><b>%llu</b><span>%s</span></div>",
		  (unsigned long long)view_cell(strips, 0, "step").u64,
		  !is_first ? "" : gpu ? "host<br>GPU" : "host");
	html_rawf(h, "<div style=\"width:%.2f%%\">", width);
	put_host(h, host);
	if (gpu)
		put_gpu(h, gpu);
	html_rawf(h, "</div><div class=\"wall\">%s</div>\n",
		  time_text(text, wall_ns, unit));
}

static void put_strips(struct html *h, const struct view *steps, const struct walls *w)
{
	struct picked p = picked_take(steps, w);
	struct view all = page_view(&h->page, "strips"), strips;
	double most_ns = w->sorted[w->count - 1];
	struct time_unit unit = time_unit_of(most_ns, 1);
	size_t keys = table_keys(steps->type), i;
	bool some = false;

	for (i = 0; i < p.count; i++) {
		strips = view_below(&all, p.steps[i], keys);
		if (!strips.count || !view_cell(&strips, 0, "host_bins").text)
			continue;
		if (!some) {
			html_raw(h, "<div class=\"strips\">\n");
			put_names(h, view_cell(&strips, 0, "host_bins").text,
				  100 * p.wall_ns[i] / most_ns);
		}
		put_step(h, &strips, p.wall_ns[i], most_ns, !some, &unit);
		some = true;
	}
	if (!some)
		return;
	put_axis(h, most_ns, &unit);
	html_raw(h, "</div>\n<p class=\"note\">Upper strip: the host, by phase. Lower strip: the "
		    "GPU, in the colours of GPU time; height is the share of each bin. Work that "
		    "one step queues may run in the next.</p>\n");
}

/* ---- the section ------------------------------------------------------------------------ */

static void put_figure(struct html *h, const char *name, double ns, const struct time_unit *unit)
{
	char text[NUMBER_TEXT];

	html_section_note(h, "%s %s", name, time_text(text, ns, unit));
}

static void put_walls(struct html *h, const struct walls *w)
{
	struct time_unit unit = time_unit_of(w->sorted[w->count - 1], 1);

	html_section_note(h, w->count == w->all ? "%zu complete: " : "%zu of %zu counted: ",
			  w->count, w->all);
	if (w->count == 1) {
		put_figure(h, "wall", w->in_order[0], &unit);
	} else {
		put_figure(h, "min", w->sorted[0], &unit);
		put_figure(h, ", median", w->median, &unit);
		if (w->count >= P90_FROM)
			put_figure(h, ", p90", walls_quantile(w, 0.90), &unit);
		if (w->count >= P99_FROM)
			put_figure(h, ", p99", walls_quantile(w, 0.99), &unit);
		put_figure(h, ", max", w->sorted[w->count - 1], &unit);
	}
	html_section_note(h, " %s", unit.name);
}

/* A row for each rank, up to some. */
static enum status put_ranks(struct html *h, struct error *err)
{
	struct page *p = &h->page;
	char text[NUMBER_TEXT];
	enum status status = ST_OK;
	size_t i;

	html_section_note(h, "Wall time of counted steps, ms");
	html_section_body(h);
	html_raw(h, "<table><thead><tr><th></th><th>steps</th><th>min</th><th>median</th>"
		    "<th>max</th></tr></thead><tbody>\n");
	for (i = 0; i < p->ranks.count && i < RANK_LINES && status == ST_OK; i++) {
		struct time_unit unit = { 1e6, 1, "ms" };
		struct view steps = page_of_rank(p, "steps", i);
		struct walls w;

		status = walls_take(&steps, &w, err);
		html_raw(h, "<tr>");
		html_cell(h, "label", rank_text(p, i, text));
		html_rawf(h, "<td>%zu</td>", w.count);
		html_cell(h, "", w.count ? time_text(text, w.sorted[0], &unit) : "");
		html_cell(h, "", w.count ? time_text(text, w.median, &unit) : "");
		html_cell(h, "", w.count ? time_text(text, w.sorted[w.count - 1], &unit) : "");
		html_raw(h, "</tr>\n");
		walls_release(&w);
	}
	html_raw(h, "</tbody></table>\n");
	if (p->ranks.count > RANK_LINES)
		html_rawf(h, "<p class=\"note\">and %zu ranks more</p>\n",
			  p->ranks.count - RANK_LINES);
	return status;
}

enum status html_steps(struct html *h, struct error *err)
{
	struct view steps = page_of_rank(&h->page, "steps", 0);
	struct walls w = { .count = 0 };
	enum status status = ST_OK;

	html_section(h, "Steps");
	if (h->page.ranks.count > 1) {
		status = put_ranks(h, err);
		html_section_end(h);
		return status;
	}
	status = walls_take(&steps, &w, err);
	if (status == ST_OK && h->page.has_steps && w.count) {
		put_walls(h, &w);
		html_section_body(h);
		put_strips(h, &steps, &w);
	} else if (status == ST_OK) {
		html_section_body(h);
		html_raw(h, "none marked; the window counts as one step \xe2\x86\x92 "
			    "<code>tacho_step()</code>");
	}
	html_section_end(h);
	walls_release(&w);
	return status;
}

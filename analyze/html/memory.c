/* SPDX-License-Identifier: Apache-2.0 */
/* MEMORY: the level of one memory over the window, its peak and what it grows by. */
#include "analyze/html/put.h"
#include "analyze/page/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 150, TOP = 22, LABELS_MAX = 12 };

struct chart {
	const struct memory_row *row;
	struct view curves, steps;
	uint64_t begin_ns;
	double range_ns, top_bytes;
};

static double y_of(const struct chart *c, double bytes)
{
	return TOP + (HEIGHT - TOP) * (1 - bytes / c->top_bytes);
}

static double x_of(const struct chart *c, uint64_t ns)
{
	double off = ns > c->begin_ns ? (double)(ns - c->begin_ns) : 0;

	return off < c->range_ns ? 100 * off / c->range_ns : 100;
}

/* The level as an area of steps. */
static void put_area(struct html *h, const struct chart *c)
{
	const char *at = view_cell(&c->curves, 0, "points").text;
	double width = c->range_ns / (double)view_cell(&c->curves, 0, "width_ns").u64;
	uint64_t bytes;
	char *end;
	size_t i;

	html_rawf(h, "<svg viewBox=\"0 0 %.0f 100\" preserveAspectRatio=\"none\" x=\"0\" y=\"%d\" "
		     "width=\"100%%\" height=\"%d\" shape-rendering=\"crispEdges\">"
		     "<path class=\"compute\" d=\"M0 100", width, TOP, HEIGHT - TOP);
	/* until there is no figure: a damaged partial file may have letters */
	for (i = 1; bytes = strtoull(at, &end, 10), end > at; i++, at = end)
		html_rawf(h, "V%.1fH%zu", 100 * (1 - (double)bytes / c->top_bytes), i);
	html_raw(h, "V100z\"/></svg>\n");
}

static void put_grid(struct html *h, const struct chart *c)
{
	double gib = c->top_bytes / 1073741824, tick = pow(10, floor(log10(gib / 2))), at;
	bool small = gib < 0.5;
	double unit = small ? 1048576 : 1073741824;

	if (small)
		tick = pow(10, floor(log10(gib * 1024 / 2)));
	while (c->top_bytes / unit / tick > 4)
		tick *= 2;
	for (at = tick; at * unit < c->top_bytes; at += tick)
		html_rawf(h, "<line class=\"line\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>"
			     "<text class=\"dim\" x=\"-8\" y=\"%.1f\" text-anchor=\"end\">%s%g %s"
			     "</text>\n", y_of(c, at * unit), y_of(c, at * unit),
			  y_of(c, at * unit) + 4, c->row->absolute ? "" : "+", at,
			  small ? "MiB" : "GiB");
}

static void put_step_ticks(struct html *h, const struct chart *c)
{
	size_t every = c->steps.count / LABELS_MAX + 1, i;

	html_rawf(h, "<line class=\"line\" x1=\"0\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/>", HEIGHT,
		  HEIGHT);
	for (i = 0; i < c->steps.count && h->page.has_steps; i += every)
		html_rawf(h, "<line class=\"line\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>"
			     "<text class=\"dim\" x=\"%.2f%%\" dx=\"3\" y=\"%d\">%s%llu</text>\n",
			  x_of(c, view_cell(&c->steps, i, "begin_ns").u64),
			  x_of(c, view_cell(&c->steps, i, "begin_ns").u64), HEIGHT, HEIGHT + 5,
			  x_of(c, view_cell(&c->steps, i, "begin_ns").u64), HEIGHT + 16,
			  i ? "" : "step ",
			  (unsigned long long)view_cell(&c->steps, i, "step").u64);
}

static void put_peak(struct html *h, const struct chart *c)
{
	double x = x_of(c, c->row->peak_ns), y = y_of(c, (double)c->row->peak_bytes);
	char text[NUMBER_TEXT];

	html_rawf(h, "<circle cx=\"%.2f%%\" cy=\"%.1f\" r=\"2.5\" fill=\"var(--text)\"/>"
		     "<text x=\"%.2f%%\" y=\"%.1f\" text-anchor=\"%s\" font-weight=\"650\">peak %s%s",
		  x, y, x, y - 7, x > 70 ? "end" : "start", c->row->absolute ? "" : "+",
		  bytes_text(text, (double)c->row->peak_bytes));
	if (c->row->peak_phase) {
		html_raw(h, ", ");
		html_text(h, c->row->peak_phase);
	}
	html_raw(h, "</text>\n");
}

static bool reserved_fits(const struct memory_row *r)
{
	return r->reserved_bytes && (double)r->reserved_bytes < 2.5 * (double)r->peak_bytes;
}

static void put_reserved(struct html *h, const struct chart *c)
{
	double y = y_of(c, (double)c->row->reserved_bytes);
	char text[NUMBER_TEXT];

	if (!reserved_fits(c->row))
		return;
	html_rawf(h, "<line class=\"dash\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>"
		     "<text x=\"100%%\" y=\"%.1f\" text-anchor=\"end\">reserved %s</text>\n", y, y,
		  y + 15, bytes_text(text, (double)c->row->reserved_bytes));
}

static void put_chart(struct html *h, const struct memory_row *row)
{
	struct chart c = { .row = row };
	struct view all = page_view(&h->page, "memory_curves");

	c.curves = view_below(&all, row->cells, row->keys);
	c.steps = page_of_rank(&h->page, "steps", 0);
	if (!c.curves.count || !row->peak_bytes)
		return;
	c.begin_ns = view_cell(&c.curves, 0, "begin_ns").u64;
	c.range_ns = (double)view_cell(&c.curves, 0, "width_ns").u64;
	c.range_ns *= memory_points(view_cell(&c.curves, 0, "points").text);
	c.top_bytes = (double)row->peak_bytes * 1.02;
	if (reserved_fits(row))
		c.top_bytes = (double)row->reserved_bytes * 1.02;
	html_rawf(h, "<div class=\"memory\"><svg height=\"%d\">", HEIGHT + 20);
	put_area(h, &c);
	put_grid(h, &c);
	put_step_ticks(h, &c);
	put_reserved(h, &c);
	put_peak(h, &c);
	html_raw(h, "</svg></div>\n");
}

enum status html_memory(struct html *h, struct error *err)
{
	struct memory_rows rows;
	enum status status = memory_rows_take(&h->page, &rows, err);
	char words[MEMORY_WORDS];

	if (status != ST_OK || !rows.count)
		goto out;
	html_section(h, "Memory");
	html_section_note(h, "%s", memory_subject(&rows.rows[0]));
	html_section_body(h);
	put_chart(h, &rows.rows[0]);
	html_raw(h, "<p class=\"note\">");
	html_text(h, memory_sentence(&rows.rows[0], h->page.steps, words));
	html_raw(h, "</p>\n");
	html_section_end(h);
out:
	memory_rows_release(&rows);
	return status;
}

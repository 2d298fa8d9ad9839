/* SPDX-License-Identifier: Apache-2.0 */
/* Charts. Each is an <svg> without viewBox, so that its texts keep their size; positions are
 * percentages of its width. */
#include "analyze/format/html/html.h"
#include "analyze/report/sparkline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * ---- steps ------------------------------------------------------------------------------
 *
 * Two lines for each step on one scale: the host by phase, the GPU by stacked shares, so that areas
 * are proportional to time.
 */

enum { GPU_HEIGHT = 100 };

/* Returns how many bins from `i` on have the same letter. */
static size_t run_length(const char *bins, size_t i)
{
	size_t end = i;

	while (bins[end] && bins[end] == bins[i])
		end++;
	return end - i;
}

static void say_gpu(struct buf *out, const struct step_timeline *s)
{
	static const char *const names[SPARKLINE_SHARES] = { "compute", "exposed comm",
							     "exposed copy", "lead and tail" };
	size_t sums[SPARKLINE_SHARES] = { 0 };

	for (size_t i = 0; s->gpu[i]; i++)
		sums[i % SPARKLINE_SHARES] += (size_t)(s->gpu[i] - '0');
	html_rawf(out, "<svg height=\"26\" role=\"img\" aria-label=\"step %llu, GPU:",
		  (unsigned long long)s->step);
	for (size_t k = 0; k < SPARKLINE_SHARES; k++)
		html_rawf(out, " %s %zu %%", names[k],
			  100 * sums[k] / (SPARKLINE_BINS * SPARKLINE_SHARE));
	html_raw(out, "\">");
}

/* Draws the runs of one letter, with a path for each colour. */
static void draw_host(struct buf *out, const struct step_timeline *s)
{
	const char *bins = s->host;

	/* Describe the picture in words: "step 3, host: backward 71 %, forward 18 %". */
	size_t all = strlen(s->host);

	html_rawf(out, "<svg height=\"12\" role=\"img\" aria-label=\"step %llu, host:",
		  (unsigned long long)s->step);
	for (const struct phase_letter *p = phase_letters; p->name; p++) {
		size_t count = 0;

		for (const char *at = s->host; *at; at++)
			count += *at == p->letter;
		if (count)
			html_rawf(out, " %s %zu %%", p->name, (100 * count + all / 2) / all);
	}
	html_raw(out, "\">");
	html_raw(out, "<svg viewBox=\"0 0 600 12\" preserveAspectRatio=\"none\" "
		      "width=\"100%\" height=\"12\" shape-rendering=\"crispEdges\">");
	for (size_t i = 0, len; bins[i]; i += len) {
		len = run_length(bins, i);
		html_rawf(out, "<path class=\"%s\" d=\"M%zu 0h%zuv12h-%zuz\"/>",
			  html_token(token_of_letter(bins[i])), i, len, len);
	}
	html_raw(out, "</svg></svg>\n");
}

/* Returns the upper edge of a class in a bin, in hundredths of the height. Classes are stacked. */
static unsigned top_of(const char *bin, size_t class)
{
	unsigned sum = 0;

	for (size_t i = 0; i <= class; i++)
		sum += (unsigned)(bin[i] - '0');
	return sum > SPARKLINE_SHARE ? GPU_HEIGHT : sum * GPU_HEIGHT / SPARKLINE_SHARE;
}

static void draw_shares(struct buf *out, const char *bins, size_t class, const char *name)
{
	bool some = false;

	for (size_t i = 0, end; i < SPARKLINE_BINS; i = end) {
		const char *bin = bins + i * SPARKLINE_SHARES;
		unsigned top = top_of(bin, class), bottom = class ? top_of(bin, class - 1) : 0;

		for (end = i + 1; end < SPARKLINE_BINS; end++)
			if (memcmp(bin, bins + end * SPARKLINE_SHARES, SPARKLINE_SHARES) != 0)
				break;
		if (top == bottom)
			continue;
		if (!some)
			html_rawf(out, "<path class=\"%s\" d=\"", name);
		some = true;
		html_rawf(out, "M%zu %uh%zuv%uh-%zuz", i, GPU_HEIGHT - top, end - i, top - bottom,
			  end - i);
	}
	html_raw(out, some ? "\"/>" : "");
}

/* Returns whether no earlier run of this letter is as long, and no later one longer. */
static bool is_longest(const char *bins, size_t at, size_t longest)
{
	for (size_t i = 0, len; bins[i]; i += len) {
		len = run_length(bins, i);
		if (bins[i] == bins[at] && (len > longest || (len == longest && i < at)))
			return false;
	}
	return true;
}

/* Writes the names of phases above the first row, each at the begin of its longest run. A name may
 * extend to the next one, because the row may be short. */
static void draw_names(struct buf *out, const char *bins, double width)
{
	double scale = width / SPARKLINE_BINS;
	const struct phase_letter *last = NULL;
	size_t begin = 0;

	for (size_t i = 0, len = 0;; i += len) {
		const struct phase_letter *p = phase_letters;

		len = run_length(bins, i);
		while (p->name && p->letter != bins[i])
			p++;
		if (bins[i] && (!p->name || len < SPARKLINE_BINS / 20 || !is_longest(bins, i, len)))
			continue;
		if (last)
			html_rawf(out,
				  "<span style=\"left:%.2f%%;width:%.2f%%\"><span>%s</span></span>",
				  (double)begin * scale,
				  bins[i] ? (double)(i - begin) * scale
					  : 100 - (double)begin * scale,
				  last->name);
		else if (bins[i])
			html_raw(out, "<div class=\"labels\">");
		if (!bins[i])
			break;
		last = p;
		begin = i;
	}
	html_raw(out, last ? "</div><div></div>\n" : "");
}

/* Returns 1, 2 or 5 times a power of ten, so that at most five of them fit into `whole`. */
static double tick_of(double whole)
{
	double tick = pow(10, floor(log10(whole / 5)));

	if (tick * 5 >= whole)
		return tick;
	if (tick * 10 >= whole)
		return tick * 2;
	return tick * 25 >= whole ? tick * 5 : tick * 10;
}

void html_timelines(struct buf *out, const struct block *b)
{
	static const enum token classes[SPARKLINE_SHARES] = { TOKEN_COMPUTE, TOKEN_COMM, TOKEN_DATA,
							      TOKEN_LEAD };
	double most_ns = b->timelines.most_ns;
	char text[NUMBER_TEXT];

	html_raw(out, "<div class=\"strips\">\n");
	draw_names(out, b->timelines.rows[0].host, 100 * b->timelines.rows[0].wall_ns / most_ns);
	for (size_t i = 0; i < b->timelines.count; i++) {
		const struct step_timeline *s = &b->timelines.rows[i];

		html_rawf(out, "<div class=\"who\"><b>%llu</b><span>%s</span></div>",
			  (unsigned long long)s->step,
			  i        ? ""
			  : s->gpu ? "host<br>GPU"
				   : "host");
		html_rawf(out, "<div style=\"width:%.2f%%\">", 100 * s->wall_ns / most_ns);
		draw_host(out, s);
		if (s->gpu) {
			say_gpu(out, s);
			html_raw(out, "<rect width=\"100%\" height=\"26\" "
				      "class=\"idle\"/><svg viewBox=\"0 0 600 100\" "
				      "preserveAspectRatio=\"none\" width=\"100%\" height=\"26\" "
				      "shape-rendering=\"crispEdges\">");
			for (size_t k = 0; k < SPARKLINE_SHARES; k++)
				draw_shares(out, s->gpu, k, html_token(classes[k]));
			html_raw(out, "</svg></svg>\n");
		}
		html_rawf(out, "</div><div class=\"wall\">%s</div>\n",
			  time_text(text, s->wall_ns, &b->timelines.unit));
	}
	double whole = most_ns / b->timelines.unit.ns, tick = tick_of(whole);

	html_raw(out, "<div class=\"axis\">");
	for (int i = 0; i * tick < whole * 0.96; i++)
		html_rawf(out, "<span style=\"left:%.2f%%\">%g%s%s</span>", 100 * i * tick / whole,
			  i * tick, i ? "" : " ", i ? "" : b->timelines.unit.name);
	html_rawf(out, "</div><div class=\"wall dim\" style=\"padding:0\">%s wall</div>\n",
		  b->timelines.unit.name);
	html_raw(out, "</div>\n");
}

/* ---- memory ----------------------------------------------------------------------------- */

enum { HEIGHT = 165, TOP = 37, LABELS_WIDE = 230, DIGIT_WIDE = 8 }; /* pixels, for a phone */

struct chart {
	const struct curve *curve;
	double points, range_ns, top_bytes;
	const char *sign; /* "+" if the bytes are what was added, otherwise "" */
};

static double y_of(const struct chart *c, double bytes)
{
	return TOP + (HEIGHT - TOP) * (1 - bytes / c->top_bytes);
}

static double x_of(const struct chart *c, uint64_t ns)
{
	double off = ns > c->curve->begin_ns ? (double)(ns - c->curve->begin_ns) : 0;

	return off < c->range_ns ? 100 * off / c->range_ns : 100;
}

static void draw_grid(struct buf *out, const struct chart *c)
{
	double gib = c->top_bytes / 1073741824, tick = pow(10, floor(log10(gib / 2)));
	bool is_small = gib < 0.5;
	double unit = is_small ? 1048576 : 1073741824;

	if (is_small)
		tick = pow(10, floor(log10(gib * 1024 / 2)));
	while (c->top_bytes / unit / tick > 4)
		tick *= 2;
	for (double at = tick; at * unit < c->top_bytes; at += tick)
		html_rawf(out,
			  "<line class=\"line\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>"
			  "<text class=\"dim\" x=\"-8\" y=\"%.1f\" text-anchor=\"end\">%s%g %s"
			  "</text>\n",
			  y_of(c, at * unit), y_of(c, at * unit), y_of(c, at * unit) + 4, c->sign,
			  at, is_small ? "MiB" : "GiB");
}

static void draw_peak(struct buf *out, const struct chart *c)
{
	double x = x_of(c, c->curve->peak_ns), y = y_of(c, (double)c->curve->peak_bytes);
	char text[NUMBER_TEXT];

	html_rawf(out,
		  "<circle cx=\"%.2f%%\" cy=\"%.1f\" r=\"2.5\" fill=\"var(--text)\"/>"
		  /* the line of reserved memory may cross it */
		  "<text x=\"%.2f%%\" y=\"%.1f\" text-anchor=\"%s\" font-weight=\"650\" "
		  "paint-order=\"stroke\" stroke=\"var(--paper)\" stroke-width=\"4\">peak %s%s",
		  x, y, x, y - 7, x > 70 ? "end" : "start", c->sign,
		  bytes_text(text, (double)c->curve->peak_bytes));
	html_between(out, c->curve->peak_phase ? ", " : "", c->curve->peak_phase, "</text>\n");
}

void html_curve(struct buf *out, const struct curve *curve)
{
	double reserved = (double)curve->reserved_bytes, peak = (double)curve->peak_bytes;
	bool has_reserved = reserved > 0 && reserved < 2.5 * peak;
	struct chart c = { .curve = curve,
			   .top_bytes = (has_reserved ? reserved : peak) * 1.02,
			   .sign = curve->is_absolute ? "" : "+" };
	char text[NUMBER_TEXT];

	for (const char *at = curve->points; *at; at++)
		c.points += *at == ' ';
	c.range_ns = (double)curve->width_ns * c.points;
	html_rawf(out,
		  "<div class=\"memory\"><svg height=\"%d\" role=\"img\" "
		  "aria-label=\"memory over time, peak %s%s\">",
		  HEIGHT + 20, c.sign, bytes_text(text, peak));
	/* Draw the level as an area of steps. */
	const char *at = c.curve->points;
	uint64_t bytes;
	char *end;

	html_rawf(out,
		  "<svg viewBox=\"0 0 %.0f 100\" preserveAspectRatio=\"none\" x=\"0\" y=\"%d\" "
		  "width=\"100%%\" height=\"%d\" shape-rendering=\"crispEdges\">"
		  "<path class=\"compute\" d=\"M0 100",
		  c.points, TOP, HEIGHT - TOP);
	/* Stop at the first non-number: a damaged partial file may have letters. */
	for (size_t i = 1; bytes = strtoull(at, &end, 10), end > at; i++, at = end)
		html_rawf(out, "V%.1fH%zu", 100 * (1 - (double)bytes / c.top_bytes), i);
	html_raw(out, "V100z\"/></svg>\n");
	draw_grid(out, &c);
	size_t count = c.curve->step_count;
	int digits = snprintf(text, sizeof(text), "%llu",
			      count ? (unsigned long long)c.curve->steps[count - 1].number : 0);
	size_t every = count * (size_t)(digits + 2) * DIGIT_WIDE / LABELS_WIDE + 1;

	html_rawf(out,
		  "<line class=\"line\" x1=\"0\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/>"
		  "<text class=\"dim\" x=\"-8\" y=\"%d\" text-anchor=\"end\">%s</text>\n",
		  HEIGHT, HEIGHT, HEIGHT + 16, count ? "step" : "");
	for (size_t i = 0; i < count; i += every) {
		double x = x_of(&c, c.curve->steps[i].ns);

		html_rawf(out,
			  "<line class=\"line\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>"
			  "<text class=\"dim\" x=\"%.2f%%\" dx=\"3\" y=\"%d\">%llu</text>\n",
			  x, x, HEIGHT, HEIGHT + 5, x, HEIGHT + 16,
			  (unsigned long long)c.curve->steps[i].number);
	}
	if (has_reserved)
		html_rawf(out,
			  "<line class=\"dash\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>"
			  "<text x=\"100%%\" y=\"%d\" text-anchor=\"end\">reserved %s</text>\n",
			  y_of(&c, reserved), y_of(&c, reserved),
			  /* above the text of a peak of nearly the same height */
			  y_of(&c, peak) - y_of(&c, reserved) < 20 ? TOP - 22 : TOP - 5,
			  bytes_text(text, reserved));
	draw_peak(out, &c);
	html_raw(out, "</svg></div>\n");
}

/*
 * ---- flame graphs -----------------------------------------------------------------------
 *
 * Frames are below the frame around them. The focused one, by keyboard or touch, shows its whole
 * name at the bottom of the window.
 */

enum { FRAME_HEIGHT = 19 };

static void draw_frame(struct buf *out, const struct block *b, const struct flame_box *f)
{
	double share = 100 * f->ns / b->flame.whole_ns;
	struct time_unit unit = time_unit_of(f->ns / b->flame.steps, 2);
	char time[NUMBER_TEXT];

	html_rawf(out, "<i class=\"f-%s\"%s style=\"left:%.3f%%;top:%zupx;width:%.3f%%\" title=\"",
		  f->class, share > 1 ? " tabindex=\"0\"" : "", 100 * f->at_ns / b->flame.whole_ns,
		  (size_t)(f->depth - 1) * FRAME_HEIGHT, share);
	html_text(out, f->name);
	html_rawf(out, ": %s %s %s, %.1f %%\">", time_text(time, f->ns / b->flame.steps, &unit),
		  unit.name, b->flame.of, share);
	if (share > 2)
		html_text(out, f->name);
	html_raw(out, "</i>\n");
}

void html_flame(struct buf *out, const struct block *b)
{
	static const char *const classes[] = { "module", "operator", "range", "python",
					       "mark",   "kernel",   "comm",  "idle" };

	html_rawf(out,
		  "<div class=\"flame\" style=\"height:%zupx\" role=\"group\" "
		  "aria-label=\"flame graph\">\n",
		  b->flame.depth * FRAME_HEIGHT);
	for (size_t i = 0; i < b->flame.count; i++)
		draw_frame(out, b, &b->flame.boxes[i]);
	html_raw(out, "</div>\n<p class=\"key\">");
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		size_t k = 0;

		while (k < b->flame.count && strcmp(b->flame.boxes[k].class, classes[i]) != 0)
			k++;
		if (k < b->flame.count)
			html_rawf(out, "<span><i class=\"f-%s\"></i>%s</span> ", classes[i],
				  strcmp(classes[i], "mark") ? classes[i]
							     : "backward, recomputation");
	}
	html_raw(out, "</p>\n");
}

/* ---- matrices ---------------------------------------------------------------------------- */

enum { CELL_HEIGHT = 14, CELL_LABELS = 12, ROW_LABELS = 24 };

/* Returns n if every n-th of `count` names has space. */
static size_t stride_of(size_t count, size_t room)
{
	return count > room ? (count + room - 1) / room : 1;
}

void html_heat(struct buf *out, const struct heat *h)
{
	double most = 1, width = 88.0 / (double)(h->count ? h->count : 1);
	size_t columns = stride_of(h->count, CELL_LABELS),
	       rows = stride_of(h->row_count, ROW_LABELS);
	int height = h->row_count > 64 ? 4 : CELL_HEIGHT;

	for (size_t i = 0; i < h->row_count * h->count; i++)
		most = h->values[i] > most ? h->values[i] : most;
	html_rawf(out, "<svg height=\"%zu\" role=\"img\" aria-label=\"", /* space for two lines */
		  h->row_count * (size_t)height + 40);
	html_between(out, "", h->rows, " by ");
	html_text(out, h->columns);
	html_rawf(out, ", slowdown up to %.3f\">", most);
	html_between(out, "<text class=\"dim\" x=\"12%\" y=\"12\">", h->columns, "</text>");
	for (size_t k = 0; k < h->count; k += columns) {
		html_rawf(out, "<text x=\"%.2f%%\" y=\"28\">", 12 + width * (double)k);
		html_between(out, "", h->names[k], "</text>");
	}
	for (size_t i = 0; i < h->row_count; i++) {
		size_t y = 34 + i * (size_t)height;

		if (i % rows == 0) {
			html_rawf(out, "<text x=\"0\" y=\"%zu\">", y + 11);
			html_between(out, "", h->row_names[i], "</text>");
		}
		for (size_t k = 0; k < h->count; k++) {
			double value = h->values[i * h->count + k];
			double share = most > 1 ? (value - 1) / (most - 1) : 0;

			if (!isfinite(value))
				continue;
			html_rawf(out,
				  "<rect x=\"%.2f%%\" y=\"%zu\" width=\"%.2f%%\" height=\"%d\" "
				  "fill=\"var(--warn)\" fill-opacity=\"%.2f\"><title>",
				  12 + width * (double)k, y, width, height - 1,
				  0.05 + 0.95 * (share > 0 ? share : 0));
			html_between(out, "", h->row_names[i], ", ");
			html_text(out, h->names[k]);
			html_rawf(out, ": %.4f</title></rect>", value);
		}
	}
	html_raw(out, "</svg>\n");
}

/* ---- rooflines -------------------------------------------------------------------------- */

enum { ROOFLINE_HEIGHT = 300, TICK_STEP = 3 };

void html_roofline(struct buf *out, const struct block *b)
{
	double scale = ROOFLINE_HEIGHT / 100.0;

	html_rawf(out,
		  "<svg class=\"roofline\" height=\"%d\" role=\"group\" "
		  "aria-label=\"roofline of %zu operators\">\n",
		  ROOFLINE_HEIGHT + 34, b->roofline.count);
	for (int power = b->roofline.from; power <= b->roofline.to; power += TICK_STEP) {
		double x = 100.0 * (power - b->roofline.from) / (b->roofline.to - b->roofline.from);

		html_rawf(out,
			  "<line class=\"line\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"%d\"/>"
			  "<text class=\"dim\" x=\"%.2f%%\" y=\"%d\" "
			  "text-anchor=\"%s\">%s%d</text>\n",
			  x, x, ROOFLINE_HEIGHT, x, ROOFLINE_HEIGHT + 14,
			  x < 1    ? "start"
			  : x > 99 ? "end"
				   : "middle",
			  power < 0 ? "1/" : "", 1 << (power < 0 ? -power : power));
	}
	html_rawf(
		out,
		"<text class=\"dim\" x=\"100%%\" y=\"%d\" text-anchor=\"end\">FLOPs per byte</text>"
		"<line class=\"pen\" x1=\"0\" y1=\"%.1f\" x2=\"%.2f%%\" y2=\"%.1f\"/>"
		"<text x=\"4\" y=\"%.1f\">",
		ROOFLINE_HEIGHT + 30, b->roofline.slope_y * scale, b->roofline.top_x,
		b->roofline.top_y * scale, b->roofline.slope_y * scale - 48);
	html_between(out, "", b->roofline.memory, "</text>\n");
	for (size_t i = 0; i < b->roofline.roof_count; i++) {
		const struct roof *r = &b->roofline.roofs[i];

		html_rawf(out,
			  "<line class=\"pen\" x1=\"%.2f%%\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>"
			  "<text x=\"100%%\" y=\"%.1f\" text-anchor=\"end\">",
			  r->x, r->y * scale, r->y * scale, r->y * scale - 5);
		html_between(out, "", r->text, "</text>\n");
	}
	for (size_t i = 0; i < b->roofline.count; i++) {
		const struct roof_dot *d = &b->roofline.dots[i];

		html_rawf(out, "<circle class=\"%s\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"%.1f\"><title>",
			  html_token(d->is_memory ? TOKEN_DATA : TOKEN_FORWARD), d->x, d->y * scale,
			  d->radius);
		html_text(out, d->name);
		html_between(out, ": ", d->title, "</title></circle>\n");
	}
	html_rawf(out,
		  "</svg>\n<p class=\"key\"><span><i class=\"%s\"></i>bound by arithmetic</span> "
		  "<span><i class=\"%s\"></i>bound by memory</span> <span>area: GPU "
		  "time</span></p>\n",
		  html_token(TOKEN_FORWARD), html_token(TOKEN_DATA));
}

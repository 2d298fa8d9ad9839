/* SPDX-License-Identifier: Apache-2.0 */
/* The roofline of an HTML page: operators by intensity and rate, below their GPU's peaks. */
#include "analyze/format/page/internal.h"

#include <math.h>

/* Both axes are logarithmic: FLOPs per byte in powers of two, TFLOP/s in powers of ten. */
enum { DOTS = 60, ROOFS = 6, FROM_INTENSITY = -4, TO_INTENSITY = 14, DECADES = 5 };

static double across(double intensity)
{
	double at = (log2(intensity) - FROM_INTENSITY) / (TO_INTENSITY - FROM_INTENSITY);

	return 100 * fmin(fmax(at, 0), 1);
}

static double down(double tflops, double top)
{
	return 100 * fmin(fmax(log10(top / tflops) / DECADES, 0), 1);
}

/* Returns a peak of the rank's GPU in TFLOP/s or, for memory, in TB/s; 0: unknown. */
static double peak_of(const struct view *peaks, const char *what, uint64_t rank)
{
	for (size_t i = 0; i < peaks->count; i++)
		if (!strcmp(view_text(peaks, i, "what"), what) &&
		    view_u64(peaks, i, "rank") == rank)
			return (double)view_u64(peaks, i, "giga_per_s") / 1e3;
	return 0;
}

static bool is_product(const char *family)
{
	return !strcmp(family, "gemm") || !strcmp(family, "convolution") ||
	       !strcmp(family, "attention") || !strcmp(family, "moe");
}

void build_roofline(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "roofline"), peaks = page_view(p, "peaks");
	uint64_t rank = v.count ? view_u64(&v, 0, "rank") : 0;
	struct roof *roofs = blocks_take(b, ROOFS, sizeof(*roofs));
	struct roof_dot *dots = blocks_take(b, DOTS, sizeof(*dots));
	size_t roof_count = 0, count = 0;
	double memory = peak_of(&peaks, "memory", rank), top = 0, most_ns = 0;

	for (size_t i = 0; i < v.count; i++) {
		const char *family = view_text(&v, i, "family");
		double rate = *family ? peak_of(&peaks,
						is_product(family) ? view_text(&v, i, "number")
								   : "fp32 vector",
						rank)
				      : 0;
		size_t k = 0;

		if (!family || view_u64(&v, i, "rank") != rank || rate <= 0)
			continue;
		top = fmax(top, rate);
		most_ns = fmax(most_ns, view_number(&v, i, "gpu_ns"));
		while (k < roof_count && roofs[k].rate != rate)
			k++;
		if (k == roof_count && k < ROOFS)
			roofs[roof_count++] = (struct roof){
				.rate = rate,
				.text = is_product(family) ? view_text(&v, i, "number") : "vectors",
			};
	}
	if (memory <= 0 || top <= 0 || !roofs || !dots)
		return;
	for (size_t i = 0; i < v.count && count < DOTS; i++) {
		double intensity = view_cell(&v, i, "flops_per_byte").f64;
		double tflops = view_cell(&v, i, "tflops").f64, ns = view_number(&v, i, "gpu_ns");
		struct time_unit unit = time_unit_of(per_step(p, (uint64_t)ns), 2);

		if (view_u64(&v, i, "rank") != rank || !(intensity > 0) || !(tflops > 0))
			continue;
		dots[count++] = (struct roof_dot){
			.x = across(intensity),
			.y = down(tflops, top * 2),
			.radius = 3 + 9 * sqrt(ns / most_ns),
			.is_memory = !strcmp(view_text(&v, i, "bound"), "memory"),
			.name = blocks_text(b, "%s %s", view_text(&v, i, "name"),
					    view_text(&v, i, "shapes")),
			.title = blocks_text(
				b, "%s %s a %s, %s TFLOP/s, %s TB/s, %s %% of its %s bound%s%s",
				show_time(b, per_step(p, (uint64_t)ns), &unit), unit.name,
				step_word(p), show_number(b, tflops, 1),
				show_number(b, view_cell(&v, i, "tbytes").f64, 2),
				show_number(b, view_cell(&v, i, "of_bound_pct").f64, 0),
				view_text(&v, i, "bound"),
				view_cell(&v, i, "reason").text ? "; " : "",
				view_cell(&v, i, "reason").text ? view_text(&v, i, "reason") : ""),
		};
	}
	if (!count)
		return;
	for (size_t i = 0; i < roof_count; i++) {
		struct roof *r = &roofs[i];

		r->text = blocks_text(b, "%s %s TFLOP/s", r->text, show_number(b, r->rate, 0));
		r->x = across(r->rate / memory);
		r->y = down(r->rate, top * 2);
	}
	add_section(b, "Roofline",
		    "operators against the peaks of their GPU; both axes are logarithmic");
	struct block *block = add_block(b, BLOCK_ROOFLINE);
	double least = memory * exp2(FROM_INTENSITY);
	block->roofline.roofs = roofs;
	block->roofline.roof_count = roof_count;
	block->roofline.dots = dots;
	block->roofline.count = count;
	block->roofline.slope_y = down(least, top * 2);
	block->roofline.top_x = across(top / memory);
	block->roofline.top_y = down(top, top * 2);
	block->roofline.memory = blocks_text(b, "memory %s TB/s", show_number(b, memory, 2));
	block->roofline.from = FROM_INTENSITY;
	block->roofline.to = TO_INTENSITY;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The section MEMORY: the most important level over the window. */
#include "analyze/format/page/internal.h"

enum { OWNERS = 5 };

struct level { /* a row of the table `memory` */
	const union value *cells;
	const char *what, *peak_phase;
	uint64_t device, peak_bytes, peak_ns, reserved_bytes, at_peak_reserved_bytes;
	size_t row;
	bool is_absolute;
	uint32_t order;
};

/* Returns the rank of a level: GPUs before the host, and an allocator's level before a sampled
 * one. */
static uint32_t order_of(const struct level *a)
{
	static const char *const order[] = { "allocator", "cuda", "in_use", "pinned" };
	uint32_t i = 0;

	while (i < 3 && strcmp(order[i], a->what) != 0)
		i++;
	return i + (a->device == NO_U64 ? 8 : 0);
}

static struct level level_of(const struct page *p, const struct view *v, size_t i)
{
	struct view all = page_view(p, "memory_peaks"), peaks;
	struct level a = {
		.cells = v->rows[i],
		.row = i,
		.what = view_cell(v, i, "what").text,
		.peak_phase = view_cell(v, i, "peak_phase").text,
		.device = view_u64(v, i, "device"),
		.peak_bytes = view_u64(v, i, "peak_bytes"),
		.reserved_bytes = cell_or_0(v, i, "reserved_bytes"),
		.is_absolute = view_u64(v, i, "absolute") == 1,
	};

	a.order = order_of(&a);
	peaks = view_below(&all, a.cells, table_keys(v->type));
	if (peaks.count) {
		a.peak_ns = view_u64(&peaks, 0, "at_ns");
		a.at_peak_reserved_bytes = cell_or_0(&peaks, 0, "reserved_bytes");
	}
	return a;
}

/* Returns what the level measures: "Allocated on the GPU". */
static const char *subject_text(const struct level *a)
{
	bool is_host = a->device == NO_U64;

	if (!strcmp(a->what, "in_use"))
		return is_host ? "Resident memory of the process." : "In use on the GPU, sampled.";
	if (!strcmp(a->what, "pinned"))
		return "Pinned memory of the host.";
	if (a->is_absolute)
		return is_host ? "Allocated on the host." : "Allocated on the GPU.";
	return is_host ? "Allocated on the host since the window opened."
		       : "Allocated on the GPU since the window opened; earlier allocations are "
			 "not in the file.";
}

/* Returns sentences about unused memory at the peak, growth and spikes. */
static const char *sentence_text(const struct page *p, const struct view *v, const struct level *a,
				 struct blocks *b)
{
	uint64_t total = cell_or_0(v, a->row, "total_bytes");
	uint64_t spikes = view_u64(v, a->row, "spikes");
	uint64_t leak = view_u64(v, a->row, "leak");
	const char *out = "";

	if (a->at_peak_reserved_bytes > a->peak_bytes)
		out = blocks_text(b, "%.0f %% of the allocator's memory is unused at the peak. ",
				  100 - 100.0 * (double)a->peak_bytes /
						  (double)a->at_peak_reserved_bytes);
	if (total)
		out = blocks_text(b, "%sThe GPU has %s. ", out, show_bytes(b, (double)total));
	if (spikes)
		out = blocks_text(b, "%s%s step%s over 1.2 times the memory of the median step. ",
				  out, show_count(b, spikes), spikes == 1 ? " uses" : "s use");
	if (leak == NO_U64)
		return blocks_text(b, "%sLeak: unknown from %s step%s; 20 are needed.", out,
				   show_count(b, p->steps), plural(p->steps));
	if (!leak)
		return blocks_text(b, "%sNo leak: memory at the end of a step does not grow.", out);
	/* Resident memory may stay after it was freed, so its growth is not called a leak. */
	return blocks_text(b, "%sIt grows by %s each step%s.", out,
			   show_bytes(b, view_cell(v, a->row, "slope_bytes_per_step").f64),
			   a->device == NO_U64 && !strcmp(a->what, "in_use") ? "" : ": a leak");
}

static void add_curve(const struct page *p, const struct view *v, const struct level *a,
		      struct blocks *b)
{
	struct view all = page_view(p, "memory_curves"), steps = page_of_rank(p, "steps", 0);
	struct view curves = view_below(&all, a->cells, table_keys(v->type));
	struct curve_mark *marks = blocks_take(b, steps.count, sizeof(*marks));

	if (!curves.count || !a->peak_bytes || !marks)
		return;
	for (size_t i = 0; i < steps.count; i++)
		marks[i] = (struct curve_mark){ view_u64(&steps, i, "step"),
						view_u64(&steps, i, "begin_ns") };
	add_block(b, BLOCK_CURVE)->curve = (struct curve){
		.points = view_cell(&curves, 0, "points").text,
		.begin_ns = view_u64(&curves, 0, "begin_ns"),
		.width_ns = view_u64(&curves, 0, "width_ns"),
		.peak_ns = a->peak_ns,
		.peak_bytes = a->peak_bytes,
		.reserved_bytes = a->reserved_bytes,
		.peak_phase = a->peak_phase,
		.is_absolute = a->is_absolute,
		.steps = marks,
		.step_count = p->has_steps ? steps.count : 0,
	};
}

struct owner { /* a row of the table `memory_owners` */
	uint64_t live_bytes;
	const char *name; /* "": smaller and unknown ones */
	bool is_rest;
};

/* Lists the owners of memory at the peak. */
static void add_owners(const struct page *p, const struct view *v, const struct level *a,
		       struct blocks *b)
{
	unsigned width = name_width(p, 74);
	const struct block_column columns[] = {
		{ .title = "taken by, the innermost function first",
		  .width = width,
		  .class = "owner" },
		{ .title = "at the peak", .end = width + 13 },
		{ .title = "%", .end = width + 20 },
	};
	struct view every = page_view(p, "memory_owners");
	struct view of = view_below(&every, a->cells, table_keys(v->type));
	struct owner *all = blocks_take(b, of.count, sizeof(*all));

	if (!all || !of.count || !a->peak_bytes)
		return;
	for (size_t i = 0; i < of.count; i++)
		all[i] = (struct owner){ view_u64(&of, i, "live_bytes"), view_text(&of, i, "owner"),
					 !*view_text(&of, i, "owner") };
	SORT_BY(all, of.count, UP(struct owner, is_rest), DOWN(struct owner, live_bytes),
		UP(struct owner, name));
	struct block_table *t = ADD_TABLE(b, columns);

	for (size_t i = 0; i < of.count && i < OWNERS && all[i].live_bytes; i++) {
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		add_cell(r, all[i].is_rest ? "all others" : all[i].name);
		add_cell(r, show_bytes(b, (double)all[i].live_bytes));
		add_percent(b, r,
			    (int)((double)all[i].live_bytes * 1000 / (double)a->peak_bytes + 0.5));
	}
	if (of.count > OWNERS)
		add_sentencef(b, ROLE_NOTE, 0, "%zu more: --report memory", of.count - OWNERS);
}

void build_memory(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "memory");
	struct level *all = blocks_take(b, v.count, sizeof(*all));

	if (!all || !v.count)
		return;
	for (size_t i = 0; i < v.count; i++)
		all[i] = level_of(p, &v, i);
	SORT_BY(all, v.count, UP(struct level, order), DOWN(struct level, peak_bytes));
	add_section(b, "Memory", subject_text(&all[0]));
	add_curve(p, &v, &all[0], b);
	if (page_view(p, "snapshot").count)
		add_owners(p, &v, &all[0], b);
	add_sentence(b, ROLE_NOTE, 0, sentence_text(p, &v, &all[0], b));
}

void build_snapshot(const struct page *p, struct blocks *b)
{
	if (page_view(p, "snapshot").count)
		build_memory(p, b);
}

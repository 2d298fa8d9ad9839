/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences of a page: the inputs, the verdict, warnings, and reasons to trust it. */
#include "analyze/format/page/internal.h"

#include <math.h>

static const char *text_of(const struct view *v, size_t row, const char *column, const char *none)
{
	const char *text = v->count > row ? view_cell(v, row, column).text : NULL;

	return text && text[0] ? text : none;
}

/* ---- inputs ----------------------------------------------------------------------------- */

static uint64_t world_size(const struct page *p)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < p->ranks.count; i++) {
		uint64_t world = view_u64(&p->ranks, i, "world_size");

		largest = world > largest ? world : largest;
	}
	return largest;
}

/* Returns "rank 3 of 8"; NULL: there is only one rank. */
static const char *ranks_text(const struct page *p, struct blocks *b)
{
	uint64_t rank, world = world_size(p);
	const char *of = world ? blocks_text(b, " of %s", show_count(b, world)) : "";

	if (p->ranks.count != 1)
		return blocks_text(b, "%s%s ranks", show_count(b, p->ranks.count), of);
	rank = view_u64(&p->ranks, 0, "rank");
	if (rank == NO_U64 || world == 1)
		return NULL;
	return blocks_text(b, "rank %llu%s", (unsigned long long)rank, of);
}

/* Returns whether the input is a timeline. For files of an allocator or a collective library it
 * does not matter whether there is a GPU, launches or profiler overhead. */
static bool is_timeline(const struct page *p)
{
	const char *format = text_of(&p->inputs, 0, "format", "");

	return strcmp(format, "PyTorch memory snapshot") != 0 &&
	       strcmp(format, "PyTorch Flight Recorder") != 0;
}

/* Returns NULL if the table of GPUs was not requested, or the input cannot have GPUs. */
static const char *gpus_text(const struct page *p, struct blocks *b)
{
	const char *name = text_of(&p->gpus, 0, "name", NULL);
	const char *word = name && !strncmp(name, "TPU", 3) ? "device" : "GPU";

	if (!p->gpus.count)
		return page_has_table(p, "gpus") && is_timeline(p) ? "no GPU" : NULL;
	for (size_t i = 1; name && i < p->gpus.count; i++)
		if (strcmp(text_of(&p->gpus, i, "name", ""), name) != 0)
			name = "several models";
	if (p->gpus.count > 1 && !name && p->gpus.count == p->ranks.count)
		return "GPU model not in the files";
	if (p->gpus.count > 1)
		return blocks_text(b, "%s %ss, %s", show_count(b, p->gpus.count), word,
				   name ? name : "model not in the files");
	if (view_u64(&p->gpus, 0, "device") == NO_U64)
		return name ? name : "a GPU";
	return blocks_text(b, "%s %llu, %s", word,
			   (unsigned long long)view_u64(&p->gpus, 0, "device"),
			   name ? name : "model not in the file");
}

/* Returns "6 steps, 5 to 10" for the first rank; ranks of a job have the same steps. NULL: not
 * requested. */
static const char *steps_text(const struct page *p, struct blocks *b)
{
	struct view steps = page_of_rank(p, "steps", 0);
	struct view summed = page_of_rank(p, "steps_summed", 0);
	uint64_t first = UINT64_MAX, last = 0, count = steps.count, before = NO_U64;

	if (!p->has_steps || !steps.count)
		return page_has_table(p, "steps") ? "no step marked" : NULL;
	for (size_t i = 0; i < steps.count; i++) { /* in time order; numbers may restart */
		uint64_t number = view_u64(&steps, i, "step");

		first = number < first ? number : first;
		last = number > last ? number : last;
		/* a step in which one window ends and the next one begins has a row in each */
		bool is_cut = strstr(text_of(&steps, i, "flags", ""), "cut_off") != NULL;
		count -= is_cut && number == before;
		before = is_cut ? number : NO_U64;
	}
	count += summed.count ? view_u64(&summed, 0, "steps") : 0;
	if (count == 1)
		return blocks_text(b, "1 step, %llu", (unsigned long long)first);
	return blocks_text(b, "%s steps, %llu to %llu", show_count(b, count),
			   (unsigned long long)first, (unsigned long long)last);
}

void build_input(const struct page *p, struct blocks *b)
{
	struct block *new = add_block(b, BLOCK_INPUT);
	struct block_words *w = &new->input.words;
	uint64_t events = page_sum(&p->inputs, "events");
	const char *const about[] = { ranks_text(p, b), gpus_text(p, b), steps_text(p, b) };

	new->input.path = p->inputs.count ? view_cell(&p->inputs, 0, "path").text : NULL;
	new->input.path = new->input.path ? new->input.path : "?";
	new->input.more =
		p->inputs.count > 1 ? blocks_text(b, " and %zu more", p->inputs.count - 1) : "";
	new->input.report = p->report->name;
	if (!events)
		events = page_sum(&p->ranks, "events");
	for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++)
		if (about[i])
			add_spanf(b, w, TOKEN_DIM, "%s" DOT, about[i]);
	add_spanf(b, w, TOKEN_DIM, "%s, %s event%s%s",
		  text_of(&p->inputs, 0, "format", "unknown format"), show_count(b, events),
		  plural(events), page_sum(&p->inputs, "synthetic") ? ", synthetic" : "");
}

void build_verdict(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "verdict");
	const char *bound, *sentence, *more;

	if (!v.count)
		return;
	bound = view_cell(&v, 0, "bound").text;
	sentence = view_cell(&v, 0, "sentence").text;
	more = view_cell(&v, 0, "more").text;
	if (p->medium == MEDIUM_HTML && p->gpus.count && !strstr(sentence, " computes ") &&
	    !(more && strstr(more, " computes "))) {
		double window = (double)page_sum(&p->gpus, "window_ns");
		double compute = (double)page_sum(&p->gpus, "compute_ns");
		int tenths[2];

		percents((double[]){ compute, window - compute }, 2, window, 2, tenths);
		more = blocks_text(b, "%s%sThe GPU%s %s %s %% of the window.", more ? more : "",
				   more ? " " : "", plural(p->gpus.count),
				   p->gpus.count > 1 ? "compute" : "computes",
				   show_percent(b, tenths[0]));
	}
	struct block *new = add_block(b, BLOCK_VERDICT);
	if (view_cell(&v, 0, "host_bound").text)
		bound = view_cell(&v, 0, "host_bound").text;
	new->callout.label = blocks_text(
		b, "%s%s", bound,
		strncmp(bound, "NO ", 3) && strcmp(bound, "UNBALANCED") ? " BOUND" : "");
	new->callout.first = sentence;
	new->callout.second = more;
}

/* ---- warnings --------------------------------------------------------------------------- */

static void add_warning(struct blocks *b, const char *word, const char *first, const char *second)
{
	struct block *new = add_block(b, BLOCK_WARNING);

	new->callout.label = word;
	new->callout.first = first;
	new->callout.second = second;
}

static void warn_of_sample(const struct page *p, struct blocks *b)
{
	double low = INFINITY, high = 0, first, second;
	const char *line;

	for (size_t i = 0; i < p->trust.count; i++) {
		double density = 100 * view_cell(&p->trust, i, "id_density").f64;

		if (view_u64(&p->trust, i, "sampled") != 1)
			continue;
		low = density < low ? density : low;
		high = density > high ? density : high;
	}
	first = 100 * view_cell(&p->trust, 0, "id_density").f64;
	second = 100 * view_cell(&p->trust, 1, "id_density").f64;
	if (p->ranks.count == 1)
		line = blocks_text(
			b,
			"The file contains %.2f %% of its correlation ids. Where it shows nothing,",
			low);
	else if (p->ranks.count == 2)
		line = blocks_text(b,
				   "The files contain %.2f %% and %.2f %% of their correlation "
				   "ids. Where they show nothing,",
				   first, second);
	else
		line = blocks_text(b,
				   "The files contain %.2f %% to %.2f %% of their correlation ids. "
				   "Where they show nothing,",
				   low, high);
	add_warning(b, "SAMPLED", line, "the GPU may have been busy. All figures are minimums.");
}

/* Returns the number of lost records that make figures wrong. Records that were derived, filtered
 * or moved, and rows that no reader handles, do not. */
static uint64_t lost_records(const struct page *p)
{
	struct view losses = page_view(p, "losses");
	uint64_t sum = 0;

	for (size_t i = 0; i < losses.count; i++) {
		const char *reason = view_cell(&losses, i, "reason").text;

		if (strcmp(reason, "derived") && strcmp(reason, "cut_out") &&
		    strcmp(reason, "order") && strcmp(reason, "unread"))
			sum += view_u64(&losses, i, "count");
	}
	return sum;
}

/* Warns if ranks of a larger job have kernels but no communication. */
static void warn_of_silence(const struct page *p, struct blocks *b)
{
	uint64_t world = world_size(p);
	size_t silent = 0, which = 0;

	for (size_t i = 0; i < p->ranks.count && world > 1; i++) {
		struct view gpus = page_of_rank(p, "gpus", i);

		if (!page_sum(&gpus, "compute_ns") || page_sum(&gpus, "comm_ns"))
			continue;
		which = i;
		silent++;
	}
	if (!silent || p->is_sampled)
		return;
	add_warning(
		b, "SILENT",
		silent == 1
			? blocks_text(b,
				      "No kernel of %s (one of %s ranks) is known to communicate.",
				      rank_text(p, which, b), show_count(b, world))
			: blocks_text(b, "No kernel of %s of %s ranks is known to communicate.",
				      show_count(b, silent), show_count(b, world)),
		"If one does, its time counts as compute here; --phases can name it.");
}

/* Warns about unrecorded time, on which no verdict or finding is based. */
static void warn_of_unrecorded(const struct page *p, struct blocks *b)
{
	struct view causes = page_view(p, "idle_causes");
	uint64_t ns = 0, window_ns = page_sum(&p->gpus, "window_ns");

	for (size_t i = 0; i < causes.count; i++)
		if (!strcmp(view_cell(&causes, i, "cause").text, "unrecorded"))
			ns += view_u64(&causes, i, "ns");
	double pct = window_ns ? 100 * (double)ns / (double)window_ns : 0;
	if (p->is_sampled || pct < 1)
		return;
	add_warning(
		b, "UNRECORDED",
		blocks_text(b, "For %.1f %% of the window, work ran that is not in the file.", pct),
		"Launched work begins more than 1 ms late, or never. Do not read this time as "
		"idle.");
}

/* Warns about failed allocations in memory snapshots. */
static void warn_of_memory(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "out_of_memory");

	for (size_t i = 0; i < v.count && i < 3; i++) {
		const char *where = view_cell(&v, i, "where").text;

		add_warning(b, "MEMORY", view_cell(&v, i, "sentence").text,
			    where ? blocks_text(b, "Requested by %s.", where) : NULL);
	}
}

void build_warnings(const struct page *p, struct blocks *b)
{
	uint64_t lost = lost_records(p), unread = page_sum(&p->inputs, "unread_bytes");

	build_hang(p, b);
	warn_of_memory(p, b);
	/* Mention other runs in the folder. */
	struct view runs = page_view(p, "runs");

	for (size_t i = 0; i < runs.count; i++)
		if (view_u64(&runs, i, "analysed") == 1)
			add_warning(
				b, "RUNS",
				blocks_text(b, "This report covers run %zu of %zu in the folder%s.",
					    i + 1, runs.count,
					    i + 1 == runs.count ? ", the latest" : ""),
				"--run N selects another run, --run all combines them.");
	if (p->is_sampled)
		warn_of_sample(p, b);
	/* Inputs that could not be read to their end: the first one, and the number of others. */
	const char *error = NULL;
	size_t count = 0;

	for (size_t i = p->inputs.count; i; i--) {
		if (!text_of(&p->inputs, i - 1, "error", NULL))
			continue;
		error = text_of(&p->inputs, i - 1, "error", NULL);
		count++;
	}
	if (count)
		add_warning(b, "CUT OFF",
			    count == 1 ? blocks_text(b, "%s.", error)
				       : blocks_text(b, "%zu inputs end early, the first: %s.",
						     count, error),
			    "All figures cover only the part before that.");
	warn_of_unrecorded(p, b);
	warn_of_silence(p, b);
	if (unread)
		add_warning(
			b, "UNREAD",
			blocks_text(
				b,
				"No figure includes the last %s byte%s, which could not be read.",
				show_count(b, unread), plural(unread)),
			NULL);
	if (lost)
		add_warning(b, "LOST",
			    blocks_text(b, "%s record%s missing: times and counts are minimums.",
					show_count(b, lost), lost == 1 ? " is" : "s are"),
			    NULL);
}

/* ---- trust ------------------------------------------------------------------------------ */

static void add_launches(const struct page *p, struct block_words *w, struct blocks *b)
{
	uint64_t work = page_sum(&p->trust, "gpu_events");
	uint64_t with = page_sum(&p->trust, "with_launch");
	uint64_t calls = page_sum(&p->trust, "launches");
	uint64_t without = page_sum(&p->trust, "without_gpu_event");
	const char *all = show_count(b, work);

	if (!work && calls)
		add_spanf(b, w, TOKEN_TEXT,
			  "%s launch%s without GPU events: the GPU was not recorded",
			  show_count(b, calls), calls == 1 ? "" : "es");
	else if (with == work)
		add_spanf(b, w, TOKEN_TEXT, "all %s GPU events have a launch", all);
	else
		add_spanf(b, w, TOKEN_TEXT, "%s of %s GPU events have a launch",
			  show_count(b, with), all);
	all = show_count(b, calls);
	if (!work || !calls || p->is_sampled)
		return;
	if (!without)
		add_spanf(b, w, TOKEN_TEXT, ", and all %s launches a GPU event", all);
	else
		add_spanf(b, w, TOKEN_TEXT, ", and %s of %s launches a GPU event",
			  show_count(b, calls - without), all);
}

static bool all_true(const struct view *v, const char *column)
{
	for (size_t i = 0; i < v->count; i++)
		if (view_u64(v, i, column) != 1)
			return false;
	return true;
}

static void add_source(const struct page *p, struct blocks *b)
{
	struct view windows = page_view(p, "windows");
	const struct time_unit unit = { 1e6, 1, "ms" };
	struct block_words *w = add_words(b, ROLE_LINE, 14);
	bool is_kineto = !strncmp(text_of(&p->inputs, 0, "format", ""), "Kineto", 6);

	if (all_true(&p->trust, "counts_losses")) {
		add_spanf(b, w, TOKEN_DIM, "%s, %s; recording used %s ms",
			  lost_records(p) ? "records were lost" : "no record was lost",
			  all_true(&p->inputs, "whole") ? "the log was closed"
							: "the log was not closed",
			  show_time(b, (double)page_sum(&windows, "own_ns"), &unit));
	} else {
		add_span(b, w, TOKEN_DIM,
			 is_kineto ? "Kineto reports neither losses nor its overhead"
				   : "the file reports neither losses nor overhead");
		if (p->ranks.count == 1 && is_timeline(p))
			add_span(b, w, TOKEN_DIM, ": host times may be high");
	}
	/* Mention the ranks of the job that are missing, otherwise what the tilde of a phase
	 * means. */
	struct view phases = page_view(p, "phases");
	uint64_t world = world_size(p);
	bool is_inferred = false;

	for (size_t i = 0; i < phases.count; i++)
		is_inferred |= view_u64(&phases, i, "inferred") == 1;
	if (p->ranks.count > 1 && world > p->ranks.count)
		add_spanf(b, w, TOKEN_DIM, DOT "%s of the %s ranks are not in the inputs",
			  show_count(b, world - p->ranks.count), show_count(b, world));
	else if (p->ranks.count == 1 && is_inferred)
		add_span(b, w, TOKEN_DIM, DOT "~ inferred");
}

/* Adds each reason once, for all ranks together. */
static void add_losses(const struct page *p, struct blocks *b)
{
	struct view losses = page_view(p, "losses");
	struct block_words *w = NULL;

	for (size_t row = 0; row < losses.count; row++) {
		const char *reason = view_cell(&losses, row, "reason").text;
		bool is_asked = !strcmp(reason, "cut_out"), is_moved = !strcmp(reason, "order");
		bool is_no_loss = is_asked || is_moved || !strcmp(reason, "unread");
		bool is_death = !strcmp(reason, "death");
		bool is_first = true;
		uint64_t sum = 0;

		for (size_t i = 0; i < losses.count; i++) {
			if (strcmp(view_cell(&losses, i, "reason").text, reason) != 0)
				continue;
			is_first &= i >= row;
			sum += view_u64(&losses, i, "count");
		}
		if (!is_first || !strcmp(reason, "derived"))
			continue;
		reason = blocks_text(b, "%s%s %s", w ? ", " : "", show_count(b, sum),
				     is_asked   ? "cut out"
				     : is_moved ? "moved to keep order"
				     : is_death ? "or more of the GPU's last second before a death"
						: reason);
		w = w ? w : add_words(b, ROLE_LINE, 14);
		add_span(b, w, is_no_loss ? TOKEN_DIM : TOKEN_WARN, reason);
	}
}

void build_trust(const struct page *p, struct blocks *b)
{
	struct block_words *w = NULL;

	add_section(b, "Trust", NULL);
	if (page_sum(&p->trust, "gpu_events") || page_sum(&p->trust, "launches")) {
		w = add_words(b, ROLE_LINE, 14);
		add_launches(p, w, b);
	}
	for (size_t i = 0; w && p->is_sampled && i < p->trust.count && i < 2; i++)
		add_spanf(b, w, TOKEN_TEXT, "%s%s of %s%s", i ? " and " : DOT,
			  show_count(b, view_u64(&p->trust, i, "ids")),
			  show_count(b, view_u64(&p->trust, i, "id_range")),
			  i + 1 == p->trust.count || i ? " ids" : "");
	add_source(p, b);
	add_losses(p, b);
}

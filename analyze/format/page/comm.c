/* SPDX-License-Identifier: Apache-2.0 */
/* The section COMM: the collectives of all ranks together; and WAITING: which rank waits for
 * which. */
#include "analyze/format/page/internal.h"

#include "schemas/base/vec.h"

#include <math.h>

/* ---- collectives ------------------------------------------------------------------------ */

struct collective { /* one communicator, operation, type and size */
	const char *group, *operation, *type;
	uint64_t bytes; /* NO_U64: unknown, or several sizes */
	uint64_t ranks, calls, matched, total_ns, exposed_ns;
	double wait_ns, algorithm, bus; /* GB/s, over the rows where it is known; 0: none */
	bool is_done;
};

static const struct sort_key by_time[] = {
	DOWN(struct collective, total_ns), UP(struct collective, group), UP(struct collective, operation), UP(struct collective, type), UP(struct collective, bytes), { .type = SORT_NONE },
}, *const by_keys = by_time + 1;

/* Adds up equal rows of the ranks, and sorts by descending time. Returns their number. */
static size_t take_collectives(const struct view *v, struct collective *all)
{
	size_t count = 0;

	for (size_t i = 0; i < v->count; i++) {
		double algorithm = view_cell(v, i, "algorithm_gb_per_s").f64;
		double bus = view_cell(v, i, "bus_gb_per_s").f64;
		struct collective c = {
			.group = view_text(v, i, "group"),
			.operation = view_text(v, i, "operation"),
			.type = view_text(v, i, "type"),
			.bytes = view_u64(v, i, "size_bytes"),
			.ranks = view_u64(v, i, "group_size"),
			.calls = view_u64(v, i, "count"),
			.matched = view_u64(v, i, "matched"),
			.total_ns = view_u64(v, i, "total_ns"),
			.exposed_ns = view_u64(v, i, "exposed_ns"),
			.wait_ns = (double)cell_or_0(v, i, "wait_ns"),
		};

		/* weighted by the calls for the mean */
		c.algorithm = isnan(algorithm) ? 0 : algorithm * (double)c.calls;
		c.bus = isnan(bus) ? 0 : bus * (double)c.calls;
		all[i] = c;
	}
	sort_rows(all, v->count, sizeof(*all), by_keys);
	for (size_t i = 0; i < v->count; i++) {
		struct collective *to = count ? &all[count - 1] : NULL, from = all[i];

		if (!to || sort_compare(to, &from, by_keys)) {
			all[count++] = from;
			continue;
		}
		to->calls += from.calls;
		to->matched += from.matched;
		to->total_ns += from.total_ns;
		to->exposed_ns += from.exposed_ns;
		to->wait_ns += from.wait_ns;
		to->algorithm += from.algorithm;
		to->bus += from.bus;
		to->ranks = from.ranks > to->ranks ? from.ranks : to->ranks;
	}
	for (size_t i = 0; i < count; i++) {
		all[i].algorithm /= (double)all[i].calls;
		all[i].bus /= (double)all[i].calls;
	}
	sort_rows(all, count, sizeof(*all), by_time);
	return count;
}

/* Returns the text of a bandwidth, which is a lower bound if the time includes waiting. */
static const char *rate_text(const struct page *p, struct blocks *b, double value, bool is_matched)
{
	const char *sign = is_matched ? "" : is_text(p) ? "> " : "\xe2\x89\xa5 ";

	return value > 0 ? blocks_text(b, "%s%s", sign, show_number(b, value, 1)) : "";
}

static void add_collective(const struct page *p, const struct collective *c, double most_ns,
			   struct block_table *t, const struct time_unit *unit, struct blocks *b)
{
	struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
	double per = 1.0 / (double)p->window_steps;

	add_cellf(b, r, "%s %s", c->operation, c->type)->whole = c->group;
	add_cell(r, c->bytes == NO_U64 ? "?" : show_bytes(b, (double)c->bytes));
	add_number(b, r, (double)c->calls * per, 0);
	add_time(b, r, (double)c->total_ns * per, unit);
	add_time(b, r, (double)c->exposed_ns * per, unit);
	add_time(b, r, (double)(c->total_ns - c->exposed_ns) * per, unit);
	if (c->matched)
		add_time(b, r, c->wait_ns * per, unit);
	else
		add_cell(r, "?");
	add_bar(r, TOKEN_COMM, (double)c->total_ns / most_ns);
	add_cell(r, rate_text(p, b, c->algorithm, c->matched > 0));
	add_cell(r, rate_text(p, b, c->bus, c->matched > 0));
}

enum { COMM_SIZE = 1, COMM_BUS = 9 };

void build_comm(const struct page *p, struct blocks *b)
{
	struct block_column columns[] = {
		{ .width = 23, .class = "name" },
		{ .title = "size", .end = 34 },
		{ .title = "calls", .end = 43 },
		{ .title = "total", .end = 53 },
		{ .title = "exposed", .end = 62 },
		{ .title = "hidden", .hidden = IN(MEDIUM_HTML), .end = 71 },
		{ .title = "waiting", .end = 80 },
		{ .hidden = IN(MEDIUM_TEXT), .class = "one", .is_bar = true },
		{ .title = "alg GB/s", .hidden = IN(MEDIUM_HTML), .end = 90 },
		{ .title = "bus GB/s", .end = 100, .class = "median" },
	};
	static const struct block_column of_group[] = { { .width = 60 }, { .at = 62 } };
	struct view v = page_view(p, "comm");
	struct collective *all = blocks_take(b, v.count, sizeof(*all));
	size_t count = all ? take_collectives(&v, all) : 0, most = is_text(p) ? 24 : 8, lines = 0;
	struct block_table *t, *titles;

	if (!count && is_text(p)) {
		add_section(b, "Comm", NULL);
		add_sentence(b, ROLE_TEXT, 14, "no communication kernel in these files");
	}
	if (!count)
		return;
	struct time_unit unit = time_unit_of(per_step(p, all[0].total_ns), 2);
	struct block *head = add_section(b, is_text(p) ? "Comm" : "Communication",
					 is_text(p) ? blocks_text(b, "%s per step", unit.name)
						    : blocks_text(b, "%s per %s, mean of the ranks",
								  unit.name, step_word(p)));
	head->section.note_at = 5;
	/* HTML has no column in which nothing is known */
	columns[COMM_SIZE].hidden = columns[COMM_BUS].hidden = IN(MEDIUM_HTML);
	for (size_t i = 0; i < count; i++) {
		if (all[i].bytes != NO_U64)
			columns[COMM_SIZE].hidden = 0;
		if (all[i].bus > 0)
			columns[COMM_BUS].hidden = 0;
	}
	titles = t = ADD_TABLE(b, columns);
	t->class = "kernels five";
	/* in a terminal the rows of a communicator are grouped below its name */
	for (size_t first = 0; first < count && lines < most; first++) {
		struct collective *c = &all[first];

		if (!is_text(p)) {
			add_collective(p, c, (double)all[0].total_ns, t, &unit, b);
			lines++;
			continue;
		}
		if (c->is_done)
			continue;
		t = ADD_TABLE(b, of_group);
		t->has_no_titles = true;
		struct block_row *r = add_row(b, t, TOKEN_DIM, NULL);
		add_cell(r, *c->group ? c->group : "communicator not in the files");
		if (c->ranks)
			add_cellf(b, r, "%s ranks", show_count(b, c->ranks));
		t = ADD_TABLE(b, columns);
		t->has_no_titles = true;
		t->like = titles;
		for (size_t i = first; i < count; i++) {
			if (all[i].is_done || strcmp(all[i].group, c->group) != 0)
				continue;
			all[i].is_done = true;
			if (lines++ < most)
				add_collective(p, &all[i], (double)all[0].total_ns, t, &unit, b);
		}
	}
	if (count > most) {
		struct block_words *w = add_words(b, ROLE_NOTE, 0);

		add_spanf(b, w, TOKEN_DIM, "%zu more: ", count - most);
		add_span(b, w, TOKEN_CODE, is_text(p) ? "--format json or csv" : "--report comm");
	}
}

/* Writes "6 collectives a step, 23.84 ms: 18.54 exposed and 5.30 hidden beside compute". */
void build_comm_brief(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "comm");
	uint64_t calls = page_sum(&v, "count"), exposed = page_sum(&v, "exposed_ns");
	uint64_t hidden = page_sum(&v, "hidden_ns"), most_ns = 0;
	const struct time_unit unit = time_unit_of(per_step(p, exposed + hidden), 2);
	size_t most = v.count;

	if (!calls)
		return;
	add_section(b, is_text(p) ? "Comm" : "Communication", NULL);
	uint64_t per = (uint64_t)llround(per_step(p, calls));
	const char *both = "all hidden beside compute";
	if (!hidden)
		both = "all exposed";
	else if (exposed)
		both = blocks_text(b, "%s exposed and %s hidden beside compute",
				   show_time(b, per_step(p, exposed), &unit),
				   show_time(b, per_step(p, hidden), &unit));
	add_sentence(b, ROLE_TEXT, 14,
		     blocks_text(b, "%s collective%s a %s, %s %s: %s", show_count(b, per),
				 plural(per), step_word(p),
				 show_time(b, per_step(p, exposed + hidden), &unit), unit.name,
				 both));
	for (size_t i = 0; i < v.count; i++) {
		uint64_t ns = view_u64(&v, i, "total_ns");

		if (ns <= most_ns || isnan(view_cell(&v, i, "bus_gb_per_s").f64))
			continue;
		most_ns = ns;
		most = i;
	}
	if (most == v.count)
		return;
	double link = view_cell(&v, most, "link_gb_per_s").f64;
	const char *carries =
		isnan(link) ? ""
			    : blocks_text(b, "; the links carry %s GB/s", show_number(b, link, 0));
	add_sentence(b, ROLE_NOTE, 14,
		     blocks_text(b, "most is %s of %s: bus %s GB/s%s",
				 view_text(&v, most, "operation"),
				 show_bytes(b, (double)view_u64(&v, most, "size_bytes")),
				 rate_text(p, b, view_cell(&v, most, "bus_gb_per_s").f64,
					   view_u64(&v, most, "matched") > 0),
				 carries));
}

/* ---- waiting ---------------------------------------------------------------------------- */

enum { WAITS_SHOWN = 3 /* for many ranks: the latest ones */, FIGURES = 4, STRAGGLERS_SHOWN = 8 };

struct wait { /* waiting of one rank */
	size_t rank;
	uint64_t collectives, matched, last;
	double wait_ns, exposed_ns, late_ns, made_ns, saving_ns; /* per step of that rank */
};
struct waits {
	struct wait *rows;
	size_t count, shown;           /* by rank, or for many ranks the latest first */
	uint64_t collectives, matched; /* greatest values of a rank */
	double most_ns;                /* longest wait of a rank */
	double all_ns;                 /* sum over all ranks */
	const struct wait *latest;     /* the rank for which the job waits most; NULL: none */
	const char *why;               /* why some were not matched, or NULL */
};

static double per_step_of(const struct view *v, const char *column, uint64_t steps)
{
	return (double)cell_or_0(v, 0, column) / (double)(steps ? steps : 1);
}

static void take_waits(const struct page *p, struct waits *all, struct blocks *b)
{
	struct view groups = page_view(p, "groups");

	*all = (struct waits){ .rows = blocks_take(b, p->ranks.count, sizeof(*all->rows)) };
	for (size_t i = 0; all->rows && i < p->ranks.count; i++) {
		struct view v = page_of_rank(p, "waits", i);
		uint64_t steps = view_u64(&p->ranks, i, "window_steps") -
				 view_u64(&p->ranks, i, "settling_steps");
		struct wait *w = &all->rows[all->count];

		if (!v.count)
			continue;
		*w = (struct wait){
			.rank = i,
			.collectives = view_u64(&v, 0, "collectives"),
			.matched = view_u64(&v, 0, "matched"),
			.last = cell_or_0(&v, 0, "times_last"),
			.wait_ns = per_step_of(&v, "wait_ns", steps),
			.exposed_ns = per_step_of(&v, "exposed_wait_ns", steps),
			.late_ns = per_step_of(&v, "late_ns", steps),
			.made_ns = per_step_of(&v, "made_wait_ns", steps),
			.saving_ns = per_step_of(&v, "saving_ns", steps),
		};
		all->all_ns += w->wait_ns;
		all->most_ns = w->wait_ns > all->most_ns ? w->wait_ns : all->most_ns;
		if (w->collectives > all->collectives)
			all->collectives = w->collectives;
		all->matched = w->matched > all->matched ? w->matched : all->matched;
		all->count++;
	}
	if (all->count > RANK_LINES)
		SORT_BY(all->rows, all->count, DOWN(struct wait, saving_ns), UP(struct wait, rank));
	all->shown = all->count > RANK_LINES ? WAITS_SHOWN : all->count;
	for (size_t i = 0; i < all->count; i++)
		if (all->rows[i].saving_ns > (all->latest ? all->latest->saving_ns : 0))
			all->latest = &all->rows[i];
	for (size_t i = 0; i < groups.count && !all->why; i++)
		all->why = view_cell(&groups, i, "unmatched_because").text;
}

/* Returns "all ranks together wait 2.2 of 3.4 ms per step for rank 3, last in 24 of 24"; NULL: for
 * no rank. */
static const char *late_text(const struct page *p, const struct waits *all, struct blocks *b)
{
	const struct wait *w = all->latest;

	if (!w)
		return NULL;
	struct time_unit unit = time_unit_of(all->all_ns, 1);
	return blocks_text(
		b, "all ranks together wait %s of %s %s %s for %s, which is last in %s of %s",
		show_time(b, w->made_ns, &unit), show_time(b, all->all_ns, &unit), unit.name,
		p->has_steps ? "per step" : "in all", rank_text(p, w->rank, b),
		show_count(b, w->last), show_count(b, w->matched));
}

/* Returns "24 of 24 collectives matched between ranks"; NULL: there are no collectives. */
static const char *matched_text(const struct waits *all, struct blocks *b)
{
	if (!all->collectives)
		return NULL;
	return blocks_text(b, "%s of %s collectives matched between ranks%s%s%s",
			   show_count(b, all->matched), show_count(b, all->collectives),
			   all->why ? ": " : "", all->why ? all->why : "",
			   all->latest ? "" : "; no late rank");
}

static void add_some(struct blocks *b, enum role role, const char *text)
{
	if (!text)
		return;
	add_sentence(b, role, 14, text);
}

void build_waits_brief(const struct page *p, struct blocks *b)
{
	struct waits all;

	take_waits(p, &all, b);
	add_some(b, ROLE_STRONG, late_text(p, &all, b));
	add_some(b, ROLE_NOTE, matched_text(&all, b));
}

/* Adds the least, the median and the greatest of each figure, for many ranks. */
static void add_wait_spread(const struct waits *all, struct block_table *t,
			    const struct time_unit *unit, struct blocks *b)
{
	static const char *const names[] = { "min", "median", "max" };
	double *values = blocks_take(b, all->count, sizeof(*values)), figures[3][FIGURES];

	for (size_t k = 0; values && k < FIGURES; k++) {
		for (size_t i = 0; i < all->count; i++) {
			const struct wait *w = &all->rows[i];

			values[i] = (const double[]){ w->wait_ns, w->exposed_ns, w->late_ns,
						      w->made_ns }[k];
		}
		figures[1][k] = median_double(values, all->count);
		figures[0][k] = values[0];
		figures[2][k] = values[all->count - 1];
	}
	for (size_t i = 0; values && i < 3; i++) {
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		add_cell(r, names[i]);
		add_time(b, r, figures[i][0], unit);
		add_bar(r, TOKEN_COMM, 0);
		add_time(b, r, figures[i][1], unit);
		add_cell(r, NULL);
		add_time(b, r, figures[i][2], unit);
		add_time(b, r, figures[i][3], unit);
	}
}

static void add_waits(const struct page *p, const struct waits *all, struct blocks *b)
{
	struct time_unit unit = time_unit_of(all->most_ns, 2);
	const struct block_column columns[] = {
		{ .title = blocks_text(b, "%s per step", unit.name), .at = 14, .class = "label" },
		{ .title = "waits", .end = 36 },
		{ .hidden = IN(MEDIUM_TEXT), .class = "one", .is_bar = true },
		{ .title = "exposed", .end = 47 },
		{ .title = "last", .end = 58 },
		{ .title = "late", .end = 69 },
		{ .title = "makes wait", .hidden = IN(MEDIUM_HTML), .end = 80 },
		{ .title = "waits for", .end = 92, .class = "median" },
	};
	struct block_table *t = ADD_TABLE(b, columns);

	if (is_text(p) && all->count > all->shown)
		add_wait_spread(all, t, &unit, b);
	for (size_t i = 0; i < all->shown; i++) {
		const struct wait *w = &all->rows[i];
		struct view v = page_of_rank(p, "waits_for", w->rank);
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		add_cell(r, rank_text(p, w->rank, b));
		add_time(b, r, w->wait_ns, &unit);
		add_bar(r, TOKEN_COMM, all->most_ns > 0 ? w->wait_ns / all->most_ns : 0);
		add_time(b, r, w->exposed_ns, &unit);
		add_count(b, r, w->last);
		add_time(b, r, w->late_ns, &unit);
		add_time(b, r, w->made_ns, &unit);
		const char *for_rank = show_id(b, &v, 0, "for_rank");

		add_cell(r,
			 is_text(p) || !*for_rank ? for_rank : blocks_text(b, "rank %s", for_rank));
	}
}

void build_waits(const struct page *p, struct blocks *b)
{
	struct waits all = { .count = 0 };

	if (p->ranks.count > 1)
		take_waits(p, &all, b);
	const char *matched = matched_text(&all, b);
	const char *late = late_text(p, &all, b);
	if (is_text(p) && matched) {
		add_section(b, "Waiting", NULL);
		add_some(b, ROLE_TEXT, matched);
		add_some(b, ROLE_STRONG, late);
		if (all.matched)
			add_waits(p, &all, b);
	} else if (!is_text(p) && all.count) {
		add_section(b, "Ranks", "who waits for whom in the same collectives");
		if (late)
			add_sentence(b, ROLE_STRONG, 0, late);
		if (all.matched)
			add_waits(p, &all, b);
		if (all.matched && all.count > all.shown) {
			struct block_words *w = add_words(b, ROLE_NOTE, 0);

			add_spanf(b, w, TOKEN_DIM,
				  "%s more ranks: ", show_count(b, all.count - all.shown));
			add_span(b, w, TOKEN_CODE, "--report ranks");
		}
		if (matched)
			add_sentence(b, ROLE_NOTE, 0, matched);
	}
}

/* Lists the phases and steps in which ranks came last most. */
void build_stragglers(const struct page *p, struct blocks *b)
{
	static const struct block_column columns[] = {
		{ .title = "in step", .at = 14 },  { .title = "phase", .at = 26, .width = 14 },
		{ .title = "rank", .end = 47 },    { .title = "times", .end = 58 },
		{ .title = "late ms", .end = 69 }, { .title = "makes wait", .end = 80 },
	};
	struct view v = page_view(p, "stragglers");
	const struct time_unit unit = { 1e6, 2, "ms" };

	if (!v.count)
		return;
	add_section(b, "Came last", NULL);
	struct block_table *t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < v.count && i < STRAGGLERS_SHOWN; i++) {
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		add_cell(r, show_id(b, &v, i, "step"));
		add_cell(r, view_cell(&v, i, "phase").text);
		add_cell(r, show_id(b, &v, i, "rank"));
		add_count(b, r, view_u64(&v, i, "times_last"));
		add_time(b, r, view_number(&v, i, "late_ns"), &unit);
		add_time(b, r, view_number(&v, i, "made_wait_ns"), &unit);
	}
	if (v.count > STRAGGLERS_SHOWN)
		add_sentencef(b, ROLE_NOTE, 14, "%s more",
			      show_count(b, v.count - STRAGGLERS_SHOWN));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The section FRONTIER: the ranks and phases that determined the time of the job's steps. */
#include "analyze/format/page/internal.h"

enum { LINES = 8 /* and one for the rest */ };

struct share { /* a share of a step of the job */
	const char *who, *phase, *kind;
	double ns, mean_ns; /* per step; mean_ns: mean over all ranks */
	enum token token;
};

/* Lists the greatest shares by name and the rest in one row, but never a single share as the
 * rest. */
static size_t take_shares(const struct view *v, struct share rows[LINES + 1], struct blocks *b)
{
	bool has_rest = v->count > LINES + 1;
	size_t named = has_rest ? LINES : v->count;

	for (size_t i = 0; i < named; i++) {
		unsigned long long rank = view_u64(v, i, "rank"), pid = view_u64(v, i, "pid");
		struct share s = {
			.who = rank != NO_U64  ? blocks_text(b, "rank %llu", rank)
			       : pid != NO_U64 ? blocks_text(b, "pid %llu", pid)
					       : "together",
			.phase = view_text(v, i, "phase"),
			.kind = view_text(v, i, "kind"),
			.ns = view_number(v, i, "ns_per_step"),
			.mean_ns = view_number(v, i, "mean_ns_per_step"),
		};

		s.token = token_of_kind(s.kind);
		rows[i] = s;
	}
	if (!has_rest)
		return named;
	rows[LINES] = (struct share){ .who = blocks_text(b, "%zu more", v->count - LINES),
				      .phase = "",
				      .kind = "",
				      .token = TOKEN_OTHER };
	for (size_t i = LINES; i < v->count; i++) {
		rows[LINES].ns += view_number(v, i, "ns_per_step");
		rows[LINES].mean_ns += view_number(v, i, "mean_ns_per_step");
	}
	return LINES + 1;
}

/* Returns the phase and the kind for one HTML cell; a cause such as "host:forward" already has its
 * phase. */
static const char *what_text(const struct share *s, struct blocks *b)
{
	size_t phase = strlen(s->phase), kind = strlen(s->kind);

	if (!kind || (kind >= phase && !strcmp(s->kind + kind - phase, s->phase)))
		return s->kind;
	return blocks_text(b, "%s" DOT "%s", s->phase, s->kind);
}

void build_frontier(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "frontier"), total = page_view(p, "frontier_total");
	struct share rows[LINES + 1];
	double parts[LINES + 1], step_ns;
	int tenths[LINES + 1];

	if (!total.count || !v.count)
		return;
	size_t count = take_shares(&v, rows, b);
	step_ns = view_number(&total, 0, "ns_per_step");
	struct time_unit unit = time_unit_of(step_ns, 2);
	for (size_t i = 0; i < count; i++)
		parts[i] = rows[i].ns;
	percents(parts, count, step_ns, count - 1, tenths);
	add_section(b, "Frontier", is_text(p) ? NULL : "which rank determined the job's time");
	add_sentencef(b, ROLE_TEXT, 14,
		      "A step of the job takes %s %s (%s step%s). Each interval between "
		      "collectives counts as time of the rank that comes last. That rank is known "
		      "for %.0f %% of the time.%s",
		      show_time(b, step_ns, &unit), unit.name,
		      show_count(b, view_u64(&total, 0, "steps")),
		      plural(view_u64(&total, 0, "steps")),
		      percent_of(view_u64(&total, 0, "named_ns"), view_u64(&total, 0, "ns")),
		      view_u64(&total, 0, "left_out") ? " Not all collectives were kept." : "");
	const struct block_column columns[] = {
		{ .text = "last", .at = 14, .class = "label" },
		{ .title = "phase", .hidden = IN(MEDIUM_HTML), .at = 25, .width = 16 },
		{ .title = "what", .hidden = IN(MEDIUM_HTML), .at = 42, .width = 18 },
		{ .hidden = IN(MEDIUM_TEXT) },
		{ .title = unit.name, .end = 66 },
		{ .title = "% of step", .end = 78 },
		{ .hidden = IN(MEDIUM_TEXT), .class = "one", .is_bar = true },
		{ .title = "mean rank", .end = 89, .class = "median" },
		{ .title = "over mean", .end = 100, .class = "median" },
	};
	struct block_table *t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < count; i++) {
		const struct share *s = &rows[i];
		struct block_row *r = add_row(b, t, TOKEN_TEXT, *s->kind ? NULL : "rest");

		add_cell(r, s->who);
		add_cell(r, s->phase);
		add_cell(r, s->kind)->token = s->token == TOKEN_COMPUTE ? TOKEN_TEXT : s->token;
		add_cell(r, what_text(s, b))->class = "left";
		add_time(b, r, s->ns, &unit);
		add_percent(b, r, tenths[i]);
		add_bar(r, s->token, *s->kind && rows[0].ns > 0 ? s->ns / rows[0].ns : 0);
		add_time(b, r, s->mean_ns, &unit);
		for (size_t k = 0; k < r->used && !*s->kind; k++)
			r->cells[k].token = TOKEN_DIM;
		add_cell(r, show_signed(b, s->ns - s->mean_ns, &unit));
	}
}

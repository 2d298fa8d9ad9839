/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of Tacho logs that hung (DEFINITIONS.md 7): what their recorder reported when a step
 * did not end, and what was open where the recording broke off, mostly because the program died.
 */
#include "analyze/report/hang/internal.h"

#include "convert/name/rules.h"
#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

RANK_TABLE_TYPE(hang_open, &table_ranks, OPEN_COLUMNS, .nest = NEST_OBJECT, .is_finished = true,
		.is_seldom = true, .null_texts = "inside collective recorder stacks sentence");

/* A step hung if it was open for as long as this many usual ones, and for this time. */
enum { TIMES_USUAL = 10, LEAST_NS = 1000000000 };

struct open_range {
	uint64_t end_ns;
	uint32_t track, name;
	bool is_phase;
};

enum status hang_open_put(struct hang *s, const struct event *e, struct error *err)
{
	TRY(vec_reserve(&s->ranges, &s->range_cap, s->range_count + 1, err));
	s->ranges[s->range_count++] =
		(struct open_range){ e->end_ns, e->track, e->name, e->subkind == RANGE_PHASE };
	return ST_OK;
}

/* Returns the window in which the recording of a process broke off; NULL: it did not. */
static const struct window *broken_window(const struct accumulator *f, uint32_t process)
{
	const struct window *last = NULL;

	for (uint32_t i = 1; i <= trace_count(f->trace, TRACE_WINDOWS); i++) {
		const struct window *w = trace_get_window(f->trace, i);

		if (w->process == process && (!last || w->begin_ns >= last->begin_ns))
			last = w;
	}
	return last && last->cut_short ? last : NULL;
}

/* Sets how long the last step was open (0: it did not hang), and the median of the others. */
static enum status find_open_step(const struct accumulator *f, uint32_t process, uint64_t *open_ns,
				  uint64_t *usual_ns, struct error *err)
{
	const struct step_list *l = &f->steps[process];
	RELEASED_BY(vec_release) uint64_t *lengths = NULL;
	size_t count = 0;

	*open_ns = *usual_ns = 0;
	if (l->is_inferred || l->count < 2)
		return ST_OK;
	const struct step_row *last = &l->rows[l->count - 1];
	TRY(vec_new(&lengths, l->count, err));
	for (const struct step_row *s = l->rows; s < last; s++)
		if (s->is_counted)
			lengths[count++] = s->mark_end_ns - s->begin_ns;
	if (!count || last->is_out)
		return ST_OK;
	*usual_ns = (uint64_t)median_u64(lengths, count);
	uint64_t length = last->mark_end_ns - last->begin_ns;
	if (last->is_cut && broken_window(f, process) && length >= LEAST_NS && *usual_ns &&
	    length / TIMES_USUAL >= *usual_ns)
		*open_ns = length;
	return ST_OK;
}

/* Adds the ranges that were open on one thread at the end: that of a collective, if there is one.
 */
static enum status put_ranges(struct accumulator *f, uint32_t process, union value *row,
			      struct error *err)
{
	const struct hang *s = f->state;
	const struct open_range *collective = NULL, *any = NULL;
	char text[TEXT_BYTES] = "";
	uint64_t end_ns = 0;
	size_t len = 0;

	for (const struct open_range *r = s->ranges; r < s->ranges + s->range_count; r++) {
		if (acc_process(f, r->track) != process || r->end_ns < end_ns)
			continue;
		if (r->end_ns > end_ns)
			any = collective =
				NULL; /* the others were open at an earlier window's end */
		end_ns = r->end_ns;
		any = any ? any : r;
		if (name_rules_communicates(f->rules, trace_text(f->trace, r->name, NULL)))
			collective = r;
	}
	any = collective ? collective : any;
	for (const struct open_range *r = s->ranges; any && r < s->ranges + s->range_count; r++)
		if (r->track == any->track && r->end_ns == end_ns && len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%.100s",
						len ? ", in it " : "", r->is_phase ? "phase " : "",
						trace_text(f->trace, r->name, NULL));
	if (any)
		TRY(acc_text(f, "hang_open", &row[OPEN_INSIDE], text, err));
	return collective ? acc_text(f, "hang_open", &row[OPEN_COLLECTIVE],
				     trace_text(f->trace, collective->name, NULL), err)
			  : ST_OK;
}

bool hang_is_open(const struct accumulator *f, uint32_t process)
{
	struct table *t = tables_find(f->tables, "hang_open");
	union value keys[RANK_KEYS], *row;

	acc_rank(f, process, keys);
	for (size_t i = 0; (row = table_at(t, i)); i++)
		if (row[0].u64 == keys[0].u64 && !strcmp(row[1].text, keys[1].text) &&
		    row[2].u64 == keys[2].u64)
			return true;
	return false;
}

enum status hang_open_end(struct accumulator *f, struct error *err)
{
	for (uint32_t process = 1; process <= trace_count(f->trace, TRACE_PROCESSES); process++) {
		uint32_t about = trace_get_process(f->trace, process)->schema;
		const char *recorder = trace_attr_text(f->trace, about, "hang");
		const char *collective = trace_attr_text(f->trace, about, "hang_collective");
		const char *stacks = trace_attr_text(f->trace, about, "hang_stacks");
		const struct step_list *l = &f->steps[process];
		uint64_t open_ns, usual_ns;
		union value keys[RANK_KEYS], *row;

		TRY(find_open_step(f, process, &open_ns, &usual_ns, err));
		if ((!recorder && !open_ns) || !acc_wants(f, process))
			continue;
		TRY(acc_row(f, "hang_open", process, keys, &row, err));
		row[OPEN_NS].u64 = open_ns;
		row[OPEN_USUAL].u64 = usual_ns;
		row[OPEN_STEP].u64 = l->count ? l->rows[l->count - 1].number : 0;
		if (recorder)
			TRY(acc_text(f, "hang_open", &row[OPEN_RECORDER], recorder, err));
		if (stacks)
			TRY(acc_text(f, "hang_open", &row[OPEN_STACKS], stacks, err));
		if (open_ns)
			TRY(put_ranges(f, process, row, err));
		else if (collective)
			TRY(acc_text(f, "hang_open", &row[OPEN_COLLECTIVE], collective, err));
	}
	return ST_OK;
}

static void put_sentence(const union value *row, const struct rank_list *absent, char *out,
			 size_t size)
{
	const char *inside = row[OPEN_INSIDE].text;
	char rank[32] = "A process";
	size_t at;

	if (row[0].u64 != NO_U64)
		snprintf(rank, sizeof(rank), "Rank %llu", (unsigned long long)row[0].u64);
	if (row[OPEN_NS].u64)
		at = (size_t)snprintf(
			out, size,
			"%s was cut off in step %llu, which was open for %.1f s, %.0f times as "
			"long as usual%s%s",
			rank, (unsigned long long)row[OPEN_STEP].u64,
			(double)row[OPEN_NS].u64 / 1e9,
			(double)row[OPEN_NS].u64 / (double)row[OPEN_USUAL].u64, inside ? ": " : "",
			inside ? inside : "");
	else
		at = (size_t)snprintf(out, size, "%s hung: %s", rank, row[OPEN_RECORDER].text);
	if (at < size && row[OPEN_COLLECTIVE].text && absent->count)
		at += (size_t)snprintf(out + at, size - at, ", to which rank%s %s had not come",
				       absent->count > 1 ? "s" : "", absent->text);
	if (at < size)
		snprintf(out + at, size - at, ".");
}

enum status hang_open_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "hang_open"), *ranks = tables_find(all, "ranks");
	struct rank_list absent = { .count = 0 };
	char text[2 * TEXT_BYTES];
	union value *row, *of;

	for (size_t i = 0; (row = table_at(ranks, i)); i++) {
		bool is_inside = false;

		for (size_t k = 0; (of = table_at(t, k)); k++)
			is_inside |= of[0].u64 == row[0].u64 && of[OPEN_COLLECTIVE].text;
		if (!is_inside && row[0].u64 != NO_U64)
			rank_list_add(&absent, row[0].u64);
	}
	rank_list_text(&absent);
	for (size_t i = 0; (row = table_at(t, i)); i++) {
		put_sentence(row, &absent, text, sizeof(text));
		row[OPEN_SENTENCE].text = table_text(t, text, err);
		if (!row[OPEN_SENTENCE].text)
			return ST_CEILING;
	}
	return ST_OK;
}

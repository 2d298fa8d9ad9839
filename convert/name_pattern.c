/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/name_pattern.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	GROUPS_MOST = 200, /* in one another */
	ELEMENTS_MOST = 50000,
	SQUARES_MOST = 1000000,
	COUNT_MOST = 1000000000, /* more is as good as this */
	TIMES_MOST = 40000, /* regcomp() refuses more than 32,767 */
};

struct size {
	uint64_t elements, choices;
	bool takes; /* a letter at least: it cannot match nothing */
};

/* What stands in one group, or in none. */
struct level {
	struct size done;
	struct size last; /* element, which a repetition behind it is about */
	bool may_be_empty; /* by a branch before the one that is in `done` */
};

struct measure {
	struct level levels[GROUPS_MOST + 1];
	unsigned depth;
	const char *refused; /* why */
};

static uint64_t bounded(uint64_t count)
{
	return count < COUNT_MOST ? count : COUNT_MOST;
}

static void end_element(struct level *l)
{
	l->done.elements = bounded(l->done.elements + l->last.elements);
	l->done.choices = bounded(l->done.choices + l->last.choices);
	l->done.takes |= l->last.takes;
	l->last = (struct size){ 0 };
}

static void put_element(struct level *l, struct size size)
{
	end_element(l);
	l->last = size;
}

static void put_one(struct level *l, bool takes)
{
	put_element(l, (struct size){ .elements = 1, .takes = takes });
}

static void end_branch(struct level *l)
{
	end_element(l);
	l->done.choices = bounded(l->done.choices + 1);
	l->may_be_empty |= !l->done.takes;
	l->done.takes = false;
}

static const char *refuse(struct measure *m, const char *why)
{
	m->refused = why;
	return "";
}

/* How often an element stands; `most` UINT64_MAX: for ever. */
struct interval {
	uint64_t least, most;
};

/* The C library walks all ways through what takes no letter; many of it, or a loop, never end. */
static const char *repeat(struct measure *m, struct interval i, const char *at)
{
	struct size *last = &m->levels[m->depth].last;
	bool is_loop = i.most == UINT64_MAX;
	uint64_t times = is_loop ? i.least + 1 : i.most;

	if ((is_loop || times > 1) && last->elements && !last->takes)
		return refuse(m, "a repetition of what may be empty");
	last->choices = bounded(last->choices * times + (times > i.least ? times - i.least : 0));
	last->elements = bounded(last->elements * times);
	last->takes &= i.least > 0;
	return at;
}

static const char *take_number(const char *at, uint64_t *out, bool *given)
{
	*out = 0;
	for (*given = false; *at >= '0' && *at <= '9'; at++, *given = true)
		*out = *out * 10 + (uint64_t)(*at - '0') < TIMES_MOST ?
			       *out * 10 + (uint64_t)(*at - '0') : TIMES_MOST;
	return at;
}

/* {m} {m,} {m,n} {,n} from behind the brace; anything else is a brace that stands for itself. */
static const char *take_interval(struct measure *m, const char *at)
{
	struct interval i;
	bool has_least, has_most = false;
	const char *end = take_number(at, &i.least, &has_least);

	i.most = i.least;
	if (*end == ',') {
		end = take_number(end + 1, &i.most, &has_most);
		i.most = has_most ? i.most : UINT64_MAX;
	}
	if (*end == '}' && (has_least || has_most))
		return repeat(m, i, end + 1);
	put_one(&m->levels[m->depth], true);
	return at;
}

/* To behind the ] of a set, in which ] may stand first and in [: :], [. .] and [= =]. */
static const char *skip_set(const char *at)
{
	at += *at == '^';
	at += *at == ']';
	while (*at && *at != ']') {
		const char *end = NULL;

		if (*at == '[' && at[1] && strchr(":.=", at[1])) {
			const char close[] = { at[1], ']', 0 };

			end = strstr(at + 2, close);
		}
		at = end ? end + 2 : at + 1;
	}
	return at + (*at == ']');
}

static void end_group(struct measure *m)
{
	struct size inner;

	if (!m->depth) { /* stands for itself */
		put_one(&m->levels[0], true);
		return;
	}
	end_element(&m->levels[m->depth]);
	inner = m->levels[m->depth].done;
	inner.elements = bounded(inner.elements + 1);
	inner.takes &= !m->levels[m->depth--].may_be_empty;
	put_element(&m->levels[m->depth], inner);
}

/* One letter and what belongs to it. */
static const char *take(struct measure *m, const char *at)
{
	struct level *l = &m->levels[m->depth];

	switch (*at++) {
	case '(':
		if (m->depth == GROUPS_MOST)
			return refuse(m, "too many groups in one another");
		m->levels[++m->depth] = (struct level){ 0 };
		return at;
	case ')':
		end_group(m);
		return at;
	case '|':
		end_branch(l);
		return at;
	case '*':
		return repeat(m, (struct interval){ 0, UINT64_MAX }, at);
	case '?':
		return repeat(m, (struct interval){ 0, 1 }, at);
	case '+':
		return repeat(m, (struct interval){ 1, UINT64_MAX }, at);
	case '{':
		return take_interval(m, at);
	case '[':
		put_one(l, true);
		return skip_set(at);
	case '^':
	case '$':
		put_one(l, false);
		return at;
	case '\\':
		if (*at >= '1' && *at <= '9')
			return refuse(m, "references to a group are not taken");
		put_one(l, !*at || !strchr("bB<>`'", *at));
		return at + (*at != 0);
	default:
		put_one(l, true);
		return at;
	}
}

/* The whole of it, or why not; groups left open count as closed, regcomp() complains of them. */
static const char *measure(const char *match, struct size *out)
{
	struct measure m = { .depth = 0 };

	while (*match)
		match = take(&m, match);
	while (m.depth)
		end_group(&m);
	end_element(&m.levels[0]);
	*out = m.levels[0].done;
	return m.refused;
}

enum status pattern_compile(regex_t *out, const char *match, struct pattern_size *sum, char *why,
			    size_t why_size)
{
	struct size size;
	const char *refused = measure(match, &size);
	int code;

	sum->elements += size.elements;
	sum->squares += size.choices * size.choices;
	if (!refused && sum->elements > ELEMENTS_MOST)
		refused = "too large once its repetitions are spelt out";
	if (!refused && sum->squares > SQUARES_MOST)
		refused = "too many choices once its repetitions are spelt out";
	if (refused) {
		snprintf(why, why_size, "%s", refused);
		return ST_CEILING;
	}
	code = regcomp(out, match, REG_EXTENDED | REG_ICASE);
	if (!code)
		return ST_OK;
	regerror(code, out, why, why_size);
	return ST_FORMAT;
}

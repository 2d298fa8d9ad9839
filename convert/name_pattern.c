/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/name_pattern.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	GROUPS_MOST = 200, /* in one another */
	ELEMENTS_MOST = 100000,
	SQUARES_MOST = 1000000,
	COUNT_MOST = 1000000000, /* more is as good as this */
	TIMES_MOST = 40000, /* regcomp() refuses more than 32,767 */
};

struct size {
	uint64_t elements, choices;
};

/* What stands in one group, or in none. */
struct level {
	struct size done;
	struct size last; /* element, which a repetition behind it is about */
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
	l->last = (struct size){ 0 };
}

static void put_element(struct level *l, struct size size)
{
	end_element(l);
	l->last = size;
}

/* The last element stands `times` times, `choices` of which may be left out. */
static void repeat(struct level *l, uint64_t times, uint64_t choices)
{
	l->last.elements = bounded(l->last.elements * times);
	l->last.choices = bounded(l->last.choices * times + choices);
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
static const char *take_interval(struct level *l, const char *at)
{
	uint64_t least, most;
	bool has_least, has_most, is_range;
	const char *end = take_number(at, &least, &has_least);

	is_range = *end == ',';
	most = least;
	has_most = false;
	if (is_range)
		end = take_number(end + 1, &most, &has_most);
	if (*end != '}' || (!has_least && !has_most)) {
		put_element(l, (struct size){ .elements = 1 });
		return at;
	}
	if (is_range && !has_most)
		most = least + 1;
	repeat(l, most > least ? most : least + !least, most > least ? most - least : 0);
	return end + 1;
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
		put_element(&m->levels[0], (struct size){ .elements = 1 });
		return;
	}
	end_element(&m->levels[m->depth]);
	inner = m->levels[m->depth--].done;
	inner.elements = bounded(inner.elements + 1);
	put_element(&m->levels[m->depth], inner);
}

static const char *refuse(struct measure *m, const char *why)
{
	m->refused = why;
	return "";
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
		end_element(l);
		l->done.choices = bounded(l->done.choices + 1);
		return at;
	case '*':
	case '?':
		repeat(l, 1, 1);
		return at;
	case '+':
		repeat(l, 2, 1);
		return at;
	case '{':
		return take_interval(l, at);
	case '[':
		at = skip_set(at);
		break;
	case '\\':
		if (*at >= '1' && *at <= '9')
			return refuse(m, "references to a group are not taken");
		at += *at != 0;
		break;
	default:
		break;
	}
	put_element(l, (struct size){ .elements = 1 });
	return at;
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

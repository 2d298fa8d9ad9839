/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/replay/edit.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const causes[REPLAY_ACTIVITIES] = {
	[REPLAY_LAUNCH] = "launch",      [REPLAY_SYNC] = "sync",
	[REPLAY_COPY] = "blocking_copy", [REPLAY_ALLOCATOR] = "allocator",
	[REPLAY_COMPILE] = "compile",    [REPLAY_GC] = "gc",
};

bool edit_has(const struct edit_set *set, enum edit_type type)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->edits[i].type == type)
			return true;
	return false;
}

/* Splits "host:forward=0.5" into its word, the pattern after the colon and the value. */
static enum status split(const char *text, size_t len, char *word, char *pattern,
			 const char **value, struct error *err)
{
	const char *equals = memchr(text, '=', len), *colon;

	/* Kernel names may contain equals signs, so the last one counts. */
	for (const char *next = equals; next;
	     next = memchr(next + 1, '=', (size_t)(text + len - next - 1)))
		equals = next;
	if (!equals || len >= EDIT_TEXT)
		return fail(err, ST_USAGE, NOWHERE,
			    "--what-if %.*s: each edit has the form NAME=FACTOR and less than %d "
			    "bytes; write ? for a comma or semicolon in a name",
			    len < 60 ? (int)len : 60, text, EDIT_TEXT);
	colon = memchr(text, ':', (size_t)(equals - text));
	snprintf(word, EDIT_TEXT, "%.*s", (int)((colon ? colon : equals) - text), text);
	snprintf(pattern, EDIT_TEXT, "%.*s", colon ? (int)(equals - colon - 1) : 0,
		 colon ? colon + 1 : "");
	*value = equals + 1;
	return ST_OK;
}

static bool parse_factor(const char *value, size_t len, double *out)
{
	char text[32], *end;

	if (!len || len >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)len, value);
	*out = strtod(text, &end);
	return !*end && isfinite(*out) && *out >= 0 && *out <= 1000;
}

static bool is_work_word(const char *word)
{
	for (unsigned i = 0; i < WORK_COUNT; i++)
		if (!strcmp(word, work_words[i]))
			return true;
	return !strcmp(word, "short") || !strcmp(word, "short_comm") || !strcmp(word, "batched");
}

/* The forms of edits with other values than a FACTOR, and with patterns. */
static const struct edit_word {
	const char *word;
	enum edit_type type;
	enum { NO_PATTERN, MAY_PATTERN, PATTERN } pattern;
	const char *value; /* allowed instead of a factor */
	const char *form;
} edit_words[] = {
	{ "data", EDIT_DATA, NO_PATTERN, NULL, "data=F" },
	{ "launch", EDIT_LAUNCH, NO_PATTERN, "graph", "launch=graph" },
	{ "comm", EDIT_OVERLAP, NO_PATTERN, "overlap", "" },
	{ "comm", EDIT_COMM, NO_PATTERN, NULL, "comm=F or comm=overlap" },
	{ "copy", EDIT_COPY, MAY_PATTERN, NULL, "copy=F or copy:GLOB=F" },
	{ "host", EDIT_HOST, PATTERN, NULL, "host:PHASE=F" },
	{ "kernel", EDIT_KERNEL, PATTERN, NULL, "kernel:GLOB=F" },
	{ "work", EDIT_WORK, PATTERN, NULL, "work:KIND=F with KIND such as gemm or short" },
	{ "place", EDIT_PLACE, PATTERN, NULL, "place:GLOB=F" },
	{ "cause", EDIT_CAUSE, PATTERN, NULL,
	  "cause:{launch,sync,blocking_copy,allocator,compile,gc}=F" },
	{ "rank", EDIT_RANK, PATTERN, "median", "rank:NUMBER=median" },
};

/* Sets e->number from the pattern; false: the pattern names nothing. */
static bool pattern_read(struct edit *e)
{
	size_t digits = strspn(e->pattern, "0123456789");

	for (unsigned i = 0; e->type == EDIT_CAUSE && i < REPLAY_ACTIVITIES; i++)
		if (causes[i] && !strcmp(causes[i], e->pattern))
			e->number = i;
	if (e->type == EDIT_RANK)
		e->number = (unsigned)strtoul(e->pattern, NULL, 10);
	return (e->type != EDIT_CAUSE || e->number != REPLAY_OTHER) &&
	       (e->type != EDIT_WORK || is_work_word(e->pattern)) &&
	       (e->type != EDIT_RANK || (digits && digits < 10 && !e->pattern[digits]));
}

static enum status parse_one(struct edit *out, const char *text, size_t len, struct error *err)
{
	char word[EDIT_TEXT];
	const char *value = NULL, *form = NULL;

	*out = (struct edit){ .factor = 0 };
	TRY(split(text, len, word, out->pattern, &value, err));
	size_t value_len = (size_t)(text + len - value);
	bool has_pattern = out->pattern[0] != '\0';

	for (size_t i = 0; i < sizeof(edit_words) / sizeof(edit_words[0]); i++) {
		const struct edit_word *w = &edit_words[i];
		bool is_value = w->value ? value_len == strlen(w->value) &&
						   !memcmp(value, w->value, value_len)
					 : parse_factor(value, value_len, &out->factor);

		out->type = w->type;
		if (strcmp(word, w->word) != 0)
			continue;
		form = w->form;
		if (is_value && w->pattern != (has_pattern ? NO_PATTERN : PATTERN) &&
		    pattern_read(out))
			return ST_OK;
	}
	out->type = EDIT_COMM;
	if (!strcmp(word, "link"))
		form = "link=Nx, such as link=2x";
	if (!strcmp(word, "link") && !has_pattern && value_len > 1 && value[value_len - 1] == 'x' &&
	    parse_factor(value, value_len - 1, &out->factor) && out->factor > 0) {
		out->factor = 1 / out->factor;
		return ST_OK;
	}
	int shown = len < 60 ? (int)len : 60;
	if (!form)
		return fail(err, ST_USAGE, NOWHERE,
			    "--what-if %.*s: there is no such edit, only data, launch, comm, link, "
			    "copy, host, kernel, work, place, cause and rank",
			    shown, text);
	return fail(err, ST_USAGE, NOWHERE, "--what-if %.*s: write %s%s", shown, text, form,
		    strstr(form, "=F") ? ", with F from 0 to 1000" : "");
}

enum status edit_parse(struct edit_set *out, const char *text, size_t len, struct error *err)
{
	const char *end = text + len;

	*out = (struct edit_set){ .count = 0 };
	if (len >= sizeof(out->text))
		return fail(err, ST_USAGE, NOWHERE, "--what-if: a set is longer than %zu bytes",
			    sizeof(out->text) - 1);
	memcpy(out->text, text, len);
	for (const char *next; text <= end; text = next + 1) {
		next = memchr(text, ',', (size_t)(end - text));
		next = next ? next : end;
		if (out->count == EDITS_MAX)
			return fail(err, ST_USAGE, NOWHERE,
				    "--what-if: a set has more than %d edits", EDITS_MAX);
		TRY(parse_one(&out->edits[out->count++], text, (size_t)(next - text), err));
		if (edit_has(out, EDIT_RANK) &&
		    out->edits[0].type != out->edits[out->count - 1].type)
			return fail(err, ST_USAGE, NOWHERE,
				    "--what-if %.60s: ranks are replayed without other edits",
				    out->text);
	}
	return ST_OK;
}

enum status edit_sets_parse(struct edit_set **out, size_t *count, const char *text,
			    struct error *err)
{
	size_t sets = 1;

	for (const char *at = text; *at; at++)
		sets += *at == ';';
	*count = 0;
	*out = NULL;
	if (sets > EDIT_SETS_MAX)
		return fail(err, ST_USAGE, NOWHERE, "--what-if: more than %d sets", EDIT_SETS_MAX);
	*out = calloc(sets, sizeof(**out));
	if (!*out)
		return fail_memory(err);
	for (; *count < sets; ++*count) {
		size_t len = strcspn(text, ";");

		TRY(edit_parse(&(*out)[*count], text, len, err));
		text += len + 1;
	}
	return ST_OK;
}

size_t edit_places(struct edit_set *sets, size_t count, const char *globs[EDIT_PLACES],
		   size_t known)
{
	for (size_t i = 0; i < count; i++)
		for (struct edit *e = sets[i].edits; e < sets[i].edits + sets[i].count; e++) {
			if (e->type != EDIT_PLACE)
				continue;
			for (e->number = 0; e->number < known; e->number++)
				if (!strcmp(globs[e->number], e->pattern))
					break;
			if (e->number == known && known < EDIT_PLACES)
				globs[known++] = e->pattern;
		}
	return known;
}

bool edit_is_place(const char *glob, const char *name, const char *path)
{
	return !fnmatch(glob, name, 0) || !fnmatch(glob, path, 0);
}

static bool applies_to_work(const struct edit *e, const struct edit_subject *of)
{
	switch (e->type) {
	case EDIT_KERNEL:
		return of->work_class == CLASS_COMPUTE && !fnmatch(e->pattern, of->name, 0);
	case EDIT_WORK:
		return of->work_class != CLASS_COPY &&
		       (!strcmp(e->pattern, work_words[of->work]) ||
			(of->is_short &&
			 !strcmp(e->pattern,
				 of->work_class == CLASS_COMM ? "short_comm" : "short")) ||
			(of->is_batched && !strcmp(e->pattern, "batched")));
	case EDIT_COMM:
		return of->work_class == CLASS_COMM;
	case EDIT_COPY:
		return of->work_class == CLASS_COPY &&
		       (!e->pattern[0] || !fnmatch(e->pattern, of->name, FNM_CASEFOLD));
	default:
		return false;
	}
}

static bool applies_to_host(const struct edit *e, const struct edit_subject *of)
{
	switch (e->type) {
	case EDIT_DATA:
		return of->phase == PHASE_DATA && of->is_step_thread;
	case EDIT_LAUNCH:
		return of->phase != PHASE_DATA;
	case EDIT_HOST:
		return !fnmatch(e->pattern, of->name, 0);
	case EDIT_CAUSE:
		return e->number == of->activity;
	default:
		return false;
	}
}

double edit_factor(const struct edit_set *set, const struct edit_subject *of)
{
	double factor = 1;

	for (const struct edit *e = set->edits; e < set->edits + set->count; e++) {
		bool is_there = e->type == EDIT_PLACE && e->number < EDIT_PLACES &&
				of->places >> e->number & 1;

		if (is_there || (of->is_work ? applies_to_work(e, of) : applies_to_host(e, of)))
			factor *= e->factor;
	}
	return factor;
}

bool edit_drops_waits(const struct edit_set *set, unsigned activity)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->edits[i].type == EDIT_CAUSE && set->edits[i].number == activity &&
		    set->edits[i].factor <= 0)
			return true;
	return false;
}

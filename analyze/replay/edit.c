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

/* "host:forward" to its word and what stands behind the colon. */
static enum status split(const char *text, size_t len, char *word, char *pattern,
			 const char **value, struct error *err)
{
	const char *equals = memchr(text, '=', len), *colon;

	/* Kernel names may have an equals sign themselves, so the last one counts. */
	for (const char *next = equals; next;
	     next = memchr(next + 1, '=', (size_t)(text + len - next - 1)))
		equals = next;
	if (!equals || len >= EDIT_TEXT)
		return fail(err, ST_USAGE, NOWHERE, "--what-if %.*s: written as NAME=FACTOR",
			    len < 60 ? (int)len : 60, text);
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

static enum status parse_one(struct edit *out, const char *text, size_t len, struct error *err)
{
	char word[EDIT_TEXT];
	const char *value = NULL;

	*out = (struct edit){ .factor = 0 };
	TRY(split(text, len, word, out->pattern, &value, err));
	size_t value_len = (size_t)(text + len - value);
	bool is_good = parse_factor(value, value_len, &out->factor);
	bool has_pattern = out->pattern[0] != '\0';

	if (!strcmp(word, "launch") && value_len == 5 && !memcmp(value, "graph", 5)) {
		out->type = EDIT_LAUNCH;
		is_good = !has_pattern;
	} else if (!strcmp(word, "comm") && value_len == 7 && !memcmp(value, "overlap", 7)) {
		out->type = EDIT_OVERLAP;
		is_good = !has_pattern;
	} else if (!strcmp(word, "link")) {
		is_good = value_len > 1 && value[value_len - 1] == 'x' && !has_pattern &&
			  parse_factor(value, value_len - 1, &out->factor) && out->factor > 0;
		out->type = EDIT_COMM;
		out->factor = is_good ? 1 / out->factor : 0;
	} else if (!strcmp(word, "data") || !strcmp(word, "comm") || !strcmp(word, "copy")) {
		out->type = *word == 'd' ? EDIT_DATA : word[2] == 'm' ? EDIT_COMM : EDIT_COPY;
		is_good &= !has_pattern;
	} else if (!strcmp(word, "host") || !strcmp(word, "kernel")) {
		out->type = *word == 'h' ? EDIT_HOST : EDIT_KERNEL;
		is_good &= has_pattern;
	} else if (!strcmp(word, "cause")) {
		out->type = EDIT_CAUSE;
		for (unsigned i = 0; i < REPLAY_ACTIVITIES; i++)
			if (causes[i] && !strcmp(causes[i], out->pattern))
				out->activity = i;
		is_good &= out->activity != REPLAY_OTHER;
	} else {
		is_good = false;
	}
	if (is_good)
		return ST_OK;
	return fail(err, ST_USAGE, NOWHERE,
		    "--what-if %.*s: the edits are data=F, launch=graph, host:PHASE=F, "
		    "kernel:GLOB=F, comm=F, comm=overlap, link=Nx, copy=F, "
		    "cause:launch|sync|blocking_copy|allocator|compile|gc=F",
		    len < 60 ? (int)len : 60, text);
}

enum status edit_parse(struct edit_set *out, const char *text, size_t len, struct error *err)
{
	const char *end = text + len;

	*out = (struct edit_set){ .count = 0 };
	if (len >= sizeof(out->text))
		return fail(err, ST_USAGE, NOWHERE, "--what-if: a set longer than %zu bytes",
			    sizeof(out->text) - 1);
	memcpy(out->text, text, len);
	for (const char *next; text <= end; text = next + 1) {
		next = memchr(text, ',', (size_t)(end - text));
		next = next ? next : end;
		if (out->count == EDITS_MAX)
			return fail(err, ST_USAGE, NOWHERE,
				    "--what-if: more than %d edits in a set", EDITS_MAX);
		TRY(parse_one(&out->edits[out->count++], text, (size_t)(next - text), err));
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

double edit_host(const struct edit_set *set, unsigned phase, const char *phase_name,
		 unsigned activity, bool is_step_thread)
{
	double factor = 1;

	for (const struct edit *e = set->edits; e < set->edits + set->count; e++) {
		bool applies = (e->type == EDIT_DATA && phase == PHASE_DATA && is_step_thread) ||
			       (e->type == EDIT_LAUNCH && phase != PHASE_DATA) ||
			       (e->type == EDIT_HOST && !fnmatch(e->pattern, phase_name, 0)) ||
			       (e->type == EDIT_CAUSE && e->activity == activity);

		if (applies)
			factor *= e->factor;
	}
	return factor;
}

double edit_work(const struct edit_set *set, enum gpu_class class, const char *name)
{
	static const enum edit_type of[] = {
		[CLASS_COMPUTE] = EDIT_KERNEL, [CLASS_COMM] = EDIT_COMM, [CLASS_COPY] = EDIT_COPY
	};
	double factor = 1;

	for (const struct edit *e = set->edits; e < set->edits + set->count; e++)
		if (e->type == of[class] &&
		    (class != CLASS_COMPUTE || !fnmatch(e->pattern, name, 0)))
			factor *= e->factor;
	return factor;
}

static bool has_type(const struct edit_set *set, enum edit_type type)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->edits[i].type == type)
			return true;
	return false;
}

bool edit_overlaps(const struct edit_set *set)
{
	return has_type(set, EDIT_OVERLAP);
}

bool edit_is_graph(const struct edit_set *set)
{
	return has_type(set, EDIT_LAUNCH);
}

bool edit_drops_waits(const struct edit_set *set, unsigned activity)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->edits[i].type == EDIT_CAUSE && set->edits[i].activity == activity &&
		    set->edits[i].factor <= 0)
			return true;
	return false;
}

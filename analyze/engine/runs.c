/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/runs.h"

#include "convert/base/messages.h"
#include "schemas/base/quantity.h"
#include "schemas/base/sort.h"

#include <stdlib.h>

struct lifetime { /* when a process existed, according to one input */
	uint64_t rank, pid, begin_ns, end_ns, input_begin_ns;
	const char *host, *id, *path;
	size_t input;
};

/* Returns the processes of all inputs, grouped by input, inputs in the order of their first
 * instants. The caller frees the array. */
static struct lifetime *lifetimes_take(const struct engine_result *r, size_t *count)
{
	struct lifetime *all = calloc(r->window_count + 1, sizeof(*all));
	uint64_t *begins = malloc((r->input_count + 1) * sizeof(*begins));
	size_t n = 0, taken = 0;
	bool any_alone = false;

	*count = 0;
	if (!all || !begins) {
		free(all);
		free(begins);
		return NULL;
	}
	for (size_t i = 0; i < r->input_count; i++)
		begins[i] = UINT64_MAX;
	for (size_t i = 0; i < r->window_count; i++)
		any_alone |= !strstr(r->windows[i].host, BESIDE_MARK);
	for (size_t i = 0; i < r->window_count; i++) {
		const struct engine_window *w = &r->windows[i];

		/* beside traces, skip the inspector's file: it covers the whole job */
		if (any_alone && strstr(w->host, BESIDE_MARK))
			continue;
		all[taken++] =
			(struct lifetime){ w->rank, w->pid,  w->begin_ns, w->end_ns,
					   0,       w->host, w->run,      r->inputs[w->input].path,
					   w->input };
		begins[w->input] = w->begin_ns < begins[w->input] ? w->begin_ns : begins[w->input];
	}
	for (size_t i = 0; i < taken; i++)
		all[i].input_begin_ns = begins[all[i].input];
	SORT_BY(all, taken, UP(struct lifetime, input_begin_ns), UP(struct lifetime, path),
		UP(struct lifetime, input), UP(struct lifetime, rank), UP(struct lifetime, host),
		UP(struct lifetime, pid), UP(struct lifetime, begin_ns));
	for (size_t i = 0; i < taken; i++) {
		struct lifetime *last = n ? &all[n - 1] : NULL;

		/* merge the windows of one process */
		if (last && last->input == all[i].input && last->rank == all[i].rank &&
		    last->pid == all[i].pid && !strcmp(last->host, all[i].host)) {
			last->end_ns = later(last->end_ns, all[i].end_ns);
			continue;
		}
		all[n++] = all[i];
	}
	free(begins);
	*count = n;
	return all;
}

static bool are_of_two_runs(const struct lifetime *a, const struct lifetime *b)
{
	bool has_ranks = a->rank != NO_U64 && b->rank != NO_U64;
	bool is_same_host = !strcmp(a->host, b->host);

	if ((has_ranks && a->rank != b->rank) || (a->pid == b->pid && is_same_host) ||
	    (!has_ranks && (!is_same_host || a->id)))
		return false;
	return a->end_ns < b->begin_ns || b->end_ns < a->begin_ns;
}

/* Returns whether an input, lifetimes [first, end), cannot belong to run `number`, to which some of
 * the lifetimes before `first` belong. */
static bool begins_run(const struct runs *r, const struct lifetime *all, size_t first, size_t end,
		       uint32_t number)
{
	for (size_t i = 0; i < first; i++)
		for (size_t k = first; r->of_input[all[i].input] == number && k < end; k++)
			if (are_of_two_runs(&all[i], &all[k]))
				return true;
	return false;
}

enum status runs_find(struct runs *out, const struct engine_result *r, struct error *err)
{
	size_t count, end;
	struct lifetime *all = lifetimes_take(r, &count);

	*out = (struct runs){ .all = calloc(r->input_count + 1, sizeof(*out->all)),
			      .of_input = calloc(r->input_count + 1, sizeof(*out->of_input)) };
	if (!all || !out->all || !out->of_input) {
		free(all);
		return fail_memory(err);
	}
	for (size_t first = 0; first < count; first = end) {
		const char *id = NULL;

		for (end = first; end < count && all[end].input == all[first].input; end++)
			id = id ? id : all[end].id;
		uint32_t number = (uint32_t)out->count;

		while (number &&
		       (id ? !out->all[number - 1].id || strcmp(out->all[number - 1].id, id) != 0
			   : out->all[number - 1].id != NULL))
			number--;
		if (!number || begins_run(out, all, first, end, number)) {
			number = (uint32_t)++out->count;
			out->all[number - 1] = (struct run_of_inputs){ all[first].input_begin_ns,
								       id, all[first].path, 0 };
		}
		out->all[number - 1].inputs++;
		out->of_input[all[first].input] = number;
	}
	free(all);
	return ST_OK;
}

/* ---- the run that is wanted --------------------------------------------------------------- */

/* Returns the number in an argument of --run; 0 if there is none, or for "all". */
static size_t number_of(const char *option)
{
	char *end = NULL;
	unsigned long number = option && option[0] != '-' ? strtoul(option, &end, 10) : 0;

	return end && !*end ? number : 0;
}

enum status runs_option_check(const char *option, struct error *err)
{
	return !option || strcmp(option, "all") == 0 || number_of(option)
		       ? ST_OK
		       : fail(err, ST_USAGE, NOWHERE,
			      "--run %.40s: must be a number from 1 on, or all", option);
}

bool runs_matter(const char *option, const struct input_paths *paths)
{
	bool is_searched = false;

	for (size_t i = 0; i < paths->count && !option; i++)
		is_searched |= paths->searched[i];
	return is_searched || number_of(option) > 0;
}

enum status runs_choose(struct run_choice *c, const struct runs *runs, struct input_paths *paths,
			struct error *err)
{
	size_t wanted = number_of(c->option), kept = 0;
	char when[UNIT_TEXT];

	c->number = wanted ? wanted : runs->count;
	if (wanted > runs->count)
		return fail(err, ST_USAGE, NOWHERE, "--run %s: the inputs contain %zu run%s",
			    c->option, runs->count, runs->count == 1 ? "" : "s");
	for (size_t i = 0; runs->count > 1 && !c->is_quiet && i < runs->count; i++) {
		const struct run_of_inputs *run = &runs->all[i];

		say(c->tool, "run %zu, begun %s: %zu file%s, %.200s%s%s%s%s", i + 1,
		    unit_format_instant(run->begin_ns / 1000000000u * 1000000000u, when),
		    run->inputs, run->inputs == 1 ? "" : "s", run->path,
		    run->inputs == 1 ? "" : " and others", i + 1 == c->number ? ": " : "",
		    i + 1 == c->number ? c->verb : "",
		    i + 1 == c->number && !wanted ? ", the latest" : "");
	}
	for (size_t i = 0; i < paths->count; i++) {
		uint32_t run = runs->of_input[i];

		if ((paths->searched[i] || wanted) && run != NO_RUN && run != c->number) {
			free(paths->paths[i]);
			c->left_out++;
			continue;
		}
		paths->searched[kept] = paths->searched[i];
		paths->paths[kept++] = paths->paths[i];
	}
	paths->count = kept;
	return ST_OK;
}

enum status runs_read(struct engine_result *out, const struct engine_request *how,
		      struct error *err)
{
	static const struct report_type *const none[] = { NULL };
	struct engine_request whole = *how;

	whole.reports = none;
	whole.filter = NULL;
	whole.is_apart = true;
	whole.pictures = PICTURES_NONE;
	return engine_accumulate(out, &whole, err);
}

#define RUN_COLUMNS(X)                                                                             \
	X(RUN_NUMBER, "run", "run", U64, KEY, "number of the run, from 1, in order of time")       \
	X(RUN_BEGIN, "begin_ns", NULL, U64, MAX, "begin of the run since the Unix epoch")          \
	X(RUN_ID, "run_id", "id", TEXT, MAX, "recorded id of the run; null: known by its times")   \
	X(RUN_INPUTS, "inputs", "inputs", U64, SUM, "number of inputs of the run")                 \
	X(RUN_PATH, "path", "first input", TEXT, MAX, "path of the input that begins first")       \
	X(RUN_ANALYSED, "analysed", "analysed", BOOL, MAX, "all other tables describe this run")
TABLE(runs, RUN_COLUMNS, .null_texts = "run_id", .is_seldom = true);

enum status runs_put(const struct runs *r, size_t number, struct tables *tables, struct error *err)
{
	struct table *t = tables_find(tables, "runs");

	for (size_t i = 0; i < r->count; i++) {
		const struct run_of_inputs *run = &r->all[i];
		union value key = { .u64 = i + 1 }, *row;

		TRY(table_row(t, &key, &row, err));
		row[RUN_BEGIN].u64 = run->begin_ns;
		row[RUN_INPUTS].u64 = run->inputs;
		row[RUN_ANALYSED].u64 = i + 1 == number;
		row[RUN_PATH].text = table_text(t, run->path, err);
		row[RUN_ID].text = run->id ? table_text(t, run->id, err) : NULL;
		if (!row[RUN_PATH].text || (run->id && !row[RUN_ID].text))
			return ST_CEILING;
	}
	return ST_OK;
}

void runs_release(struct runs *r)
{
	free(r->all);
	free(r->of_input);
	*r = (struct runs){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a conversion that need reports.  They make a second pass over the inputs, by
 * tacho-analyze's engine. */
#include "convert/cli/internal.h"

#include "analyze/engine/runs.h"
#include "analyze/format/format.h"
#include "analyze/report/report_list.h"
#include "convert/base/parallel.h"

#include <stdlib.h>
#include <string.h>

#define TOOL     "tacho-convert"
#define PAGE_MAX ((size_t)256 << 20)
enum { COLUMNS = 100 };

/* Makes a request for the engine.  Errors of inputs are ignored, because the conversion reports
 * them; events before an error are in the tables. */
static struct engine_request request_of(const struct run *r, char *const *paths)
{
	return (struct engine_request){
		.paths = paths,
		.count = r->paths.count,
		.rules = r->rules,
		.filter = &r->filter,
		.memory_bytes = (size_t)r->common.memory_bytes,
		.threads = 1,
		.scratch = r->budget.scratch,
	};
}

static enum status run_engine(const struct run *r, struct tables **out, char *const *paths,
			      const struct report_type *const *reports, enum pictures pictures,
			      struct error *err)
{
	struct engine_request request = request_of(r, paths);
	struct engine_outcome *outcomes = calloc(r->paths.count, sizeof(*outcomes));
	enum status status;

	if (!outcomes)
		return fail_memory(err);
	request.reports = reports;
	request.pictures = pictures;
	status = engine_run(out, &request, outcomes, err);
	free(outcomes);
	return status;
}

enum status choose_run(struct run *r, struct error *err)
{
	struct run_choice choice = { r->own.run, TOOL, "converted", r->common.quiet, 0, 0 };
	struct engine_request request = request_of(r, r->paths.paths);
	unsigned cores = r->common.threads ? (unsigned)r->common.threads : usable_cores();
	struct engine_result result;
	struct runs runs = { .count = 0 };

	if (!runs_matter(choice.option, &r->paths) || (r->paths.count < 2 && !choice.option))
		return ST_OK;
	for (size_t i = 0; i < r->paths.count; i++)
		if (strcmp(r->paths.paths[i], "-") == 0)
			return choice.option ? fail(err, ST_USAGE, NOWHERE,
						    "--run %s: standard input can be read only "
						    "once",
						    choice.option)
					     : ST_OK;
	request.threads = cores < request.count ? cores : (unsigned)request.count;
	enum status status = runs_read(&result, &request, err);
	if (status == ST_OK)
		status = runs_find(&runs, &result, err);
	if (status == ST_OK)
		status = runs_choose(&choice, &runs, &r->paths, err);
	runs_release(&runs);
	engine_result_release(&result);
	return status;
}

enum status make_attachments(struct run *r, struct error *err)
{
	static const struct {
		const char *name;
		const struct format_type *type;
	} rows[ATTACHMENTS] = { { "report.txt", &format_text }, { "report.json", &format_json } };
	struct format_request how = { .reports = report_types, .is_utf8 = true, .width = COLUMNS };
	enum status status;

	for (size_t i = 0; i < ATTACHMENTS; i++)
		buf_init(&r->pages[i], PAGE_MAX);
	for (size_t i = 0; i < r->paths.count; i++)
		if (strcmp(r->paths.paths[i], "-") == 0) /* standard input can be read only once */
			return ST_OK;
	TRY(run_engine(r, &how.tables, r->paths.paths, report_types, PICTURES_CELLS, err));
	for (size_t i = status = 0; i < ATTACHMENTS && status == ST_OK; i++) {
		status = rows[i].type->write(&how, &r->pages[i], err);
		if (status == ST_OK)
			status = buf_status(&r->pages[i], err);
		r->attachments[i] =
			(struct sink_attachment){ rows[i].name, r->pages[i].data, r->pages[i].len };
	}
	r->attachment_count = status == ST_OK ? ATTACHMENTS : 0;
	tables_free(how.tables);
	return status;
}

enum status make_scalars(struct run *r, struct error *err)
{
	static const char *const names[] = { "summary", "phases", "steps", "memory" };
	const struct report_type *reports[sizeof(names) / sizeof(names[0]) + 1] = { NULL };
	struct format_request page = { .reports = reports, .width = COLUMNS };
	char **paths = calloc(r->paths.count, sizeof(*paths));
	enum status status;
	size_t count = 0;

	if (!paths)
		return fail_memory(err);
	for (size_t i = 0; i < r->paths.count; i++) /* standard input has a copy */
		paths[i] =
			strcmp(r->paths.paths[i], "-") == 0 ? r->size.copy_path : r->paths.paths[i];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		reports[count] = report_find(names[i], strlen(names[i]));
		count += reports[count] != NULL;
	}
	status = run_engine(r, &page.tables, paths, reports, (enum pictures)0, err);
	if (status == ST_OK)
		status = out_open(&r->scalars, r->common.output, true, err);
	if (status == ST_OK)
		status = format_parts_write(&format_tfevents, &page, r->scalars, err);
	tables_free(page.tables);
	free(paths);
	if (status == ST_OK || r->common.strict)
		return status;
	out_free(r->scalars); /* the traces do not need them */
	r->scalars = NULL;
	note_fault(r, "scalars and summary are omitted", err);
	return ST_OK;
}

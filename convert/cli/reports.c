/* SPDX-License-Identifier: Apache-2.0 */
/* What a conversion takes from the reports: a second pass over the inputs, by tacho-analyze's
 * engine. */
#include "convert/cli/internal.h"

#include "analyze/engine/engine.h"
#include "analyze/format/format.h"
#include "analyze/report/report_list.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_MAX ((size_t)256 << 20)
enum { COLUMNS = 100 };

/* The conversion reports faults of the inputs; what they held is in the tables all the same. */
static enum status run_engine(const struct run *r, struct tables **out, char *const *paths,
			      const struct report_type *const *reports, enum pictures pictures,
			      struct error *err)
{
	struct engine_request request = {
		.paths = paths,
		.count = r->paths.count,
		.reports = reports,
		.rules = r->rules,
		.filter = &r->filter,
		.memory_bytes = (size_t)r->common.memory_bytes,
		.threads = 1,
		.pictures = pictures,
		.scratch = r->budget.scratch,
	};
	struct engine_outcome *outcomes = calloc(r->paths.count, sizeof(*outcomes));
	enum status status;

	if (!outcomes)
		return fail_memory(err);
	status = engine_run(out, &request, outcomes, err);
	free(outcomes);
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
		if (strcmp(r->paths.paths[i], "-") == 0) /* can be read only once */
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
	for (size_t i = 0; i < r->paths.count; i++) /* standard input is gone, its copy is not */
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
	out_free(r->scalars); /* the traces are good without */
	r->scalars = NULL;
	note_fault(r, "scalars and summary are omitted", err);
	return ST_OK;
}

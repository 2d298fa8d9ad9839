/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/main/report.h"

#include "analyze/engine.h"
#include "analyze/format.h"
#include "analyze/options.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_MAX ((size_t)256 << 20)
enum { PAGE_WIDTH = 100 };

static enum status write_pages(struct report_papers *p, struct format_request *how,
			       struct error *err)
{
	static const struct {
		const char *name;
		const struct format_type *type;
	} rows[REPORT_PAPERS] = { { "report.txt", &format_text }, { "report.json", &format_json } };

	for (size_t i = 0; i < REPORT_PAPERS; i++) {
		TRY(rows[i].type->write(how, &p->pages[i], err));
		TRY(buf_status(&p->pages[i], err));
		p->papers[i] = (struct sink_paper){ rows[i].name, p->pages[i].data,
						    p->pages[i].len };
	}
	p->count = REPORT_PAPERS;
	return ST_OK;
}

static enum status run_engine(struct report_papers *p, const struct report_request *how,
			      struct engine_outcome *outcomes, struct error *err)
{
	const struct report_type *reports[REPORTS_ASKED + 1];
	struct tables *tables = NULL;
	struct engine_request request = {
		.paths = how->paths, .count = how->count, .reports = reports, .rules = how->rules,
		.cut = how->cut, .memory_bytes = how->memory_bytes, .threads = 1,
		.pictures = PICTURES_CELLS,
		.scratch = how->scratch,
	};
	enum status status;

	TRY(reports_parse("all", reports, err));
	status = engine_run(&tables, &request, outcomes, err);
	if (status == ST_OK)
		status = write_pages(p, &(struct format_request){ .tables = tables,
								   .reports = reports,
								   .is_utf8 = true,
								   .width = PAGE_WIDTH }, err);
	tables_free(tables);
	return status;
}

enum status report_papers_make(struct report_papers *p, const struct report_request *how,
			       struct error *err)
{
	struct engine_outcome *outcomes;
	enum status status;

	*p = (struct report_papers){ .count = 0 };
	for (size_t i = 0; i < REPORT_PAPERS; i++)
		buf_init(&p->pages[i], PAGE_MAX);
	for (size_t i = 0; i < how->count; i++)
		if (strcmp(how->paths[i], "-") == 0)
			return ST_OK;
	outcomes = calloc(how->count, sizeof(*outcomes));
	if (!outcomes)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for %zu inputs", how->count);
	status = run_engine(p, how, outcomes, err);
	free(outcomes);
	return status;
}

void report_papers_release(struct report_papers *p)
{
	for (size_t i = 0; i < REPORT_PAPERS; i++)
		buf_release(&p->pages[i]);
	*p = (struct report_papers){ .count = 0 };
}

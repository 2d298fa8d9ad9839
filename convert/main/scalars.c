/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/main/scalars.h"

#include "analyze/engine.h"
#include "analyze/format_parts.h"
#include "convert/out.h"

#include <stdlib.h>
#include <string.h>

enum { REPORTS_MOST = 5, CARD_COLUMNS = 100 };

/* Standard input is gone once it was converted. */
static bool can_read_again(const struct scalars_request *how)
{
	for (size_t i = 0; i < how->count; i++)
		if (strcmp(how->paths[i], "-") == 0)
			return false;
	return true;
}

static void choose(const struct report_type *reports[REPORTS_MOST])
{
	static const char *const names[] = { "summary", "phases", "steps", "memory" };
	size_t count = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		reports[count] = report_find(names[i], strlen(names[i]));
		count += reports[count] != NULL;
	}
	reports[count] = NULL;
}

static enum status run(struct tables **tables, const struct scalars_request *how,
		       const struct report_type *const *reports, struct error *err)
{
	struct engine_request request = {
		.paths = how->paths, .count = how->count, .reports = reports,
		.rules = how->rules, .cut = how->cut, .memory_bytes = how->memory_bytes,
		.threads = 1, .scratch = how->scratch,
	};
	struct engine_outcome *outcomes = calloc(how->count, sizeof(*outcomes));
	enum status status;

	if (!outcomes)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for %zu inputs", how->count);
	/* An input that ends early was told by the conversion; what it held is in the tables. */
	status = engine_run(tables, &request, outcomes, err);
	free(outcomes);
	return status;
}

enum status scalars_write(struct out **out, const struct scalars_request *how, struct error *err)
{
	const struct report_type *reports[REPORTS_MOST];
	struct format_request page = { .reports = reports, .width = CARD_COLUMNS };
	enum status status;

	*out = NULL;
	if (!can_read_again(how))
		return ST_OK;
	choose(reports);
	TRY(run(&page.tables, how, reports, err));
	status = out_open(out, how->folder, true, err);
	if (status == ST_OK)
		status = format_parts_write(&format_tfevents, &page, *out, err);
	tables_free(page.tables);
	return status;
}

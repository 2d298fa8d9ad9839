/* SPDX-License-Identifier: Apache-2.0 */
/* finished.h - what has to hold of finished reports; and they in every format, which may refuse. */
#ifndef TESTS_FUZZ_FINISHED_H
#define TESTS_FUZZ_FINISHED_H

#include "analyze/format/format.h"
#include "analyze/report/report_list.h"

#include <stdlib.h>

enum { FUZZ_PAGE_MAX = 1 << 22 };

/* Who prints relies on each text that null_texts does not name. */
static void fuzz_check_texts(struct table *t)
{
	const struct table_type *type = table_type(t);
	const union value *row;
	size_t i, k;

	for (i = 0; (row = table_at(t, i)); i++)
		for (k = 0; k < table_columns(type); k++)
			if (column_is_text(&type->columns[k]) && !row[k].text &&
			    !column_may_be_null(type, &type->columns[k]))
				abort();
}

static void fuzz_print_parts(const struct format_type *format, const struct format_request *how)
{
	struct buf name, part;
	bool more = true;
	size_t i;

	for (i = 0; more; i++) {
		buf_init(&name, FUZZ_PAGE_MAX);
		buf_init(&part, FUZZ_PAGE_MAX);
		if (format->part(how, i, &name, &part, &more, NULL) != ST_OK)
			more = false;
		buf_release(&name);
		buf_release(&part);
	}
}

static void fuzz_finished(struct tables *tables)
{
	static const struct format_type *const formats[] = {
#define X(name) &format_##name,
		FORMAT_LIST(X)
#undef X
	};
	struct format_request how = {
		.tables = tables, .reports = report_types, .width = 100, .is_utf8 = true
	};
	struct buf page;
	size_t i;

	for (i = 0; i < tables_count(tables); i++)
		fuzz_check_texts(tables_at(tables, i));
	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		buf_init(&page, FUZZ_PAGE_MAX);
		if (formats[i]->part)
			fuzz_print_parts(formats[i], &how);
		else
			formats[i]->write(&how, &page, NULL);
		buf_release(&page);
	}
}

#endif

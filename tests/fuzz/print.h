/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - the tables of finished reports in every format, of which any may refuse. */
#ifndef TESTS_FUZZ_PRINT_H
#define TESTS_FUZZ_PRINT_H

#include "analyze/format.h"

enum { FUZZ_PAGE_MAX = 1 << 22 };

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

static void fuzz_print(struct tables *tables)
{
	static const struct format_type *const formats[] = {
#define X(name) &format_##name,
		FORMAT_LIST(X)
#undef X
	};
	struct format_request how = { .tables = tables, .reports = reports(), .width = 100,
				      .is_utf8 = true };
	struct buf page;
	size_t i;

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

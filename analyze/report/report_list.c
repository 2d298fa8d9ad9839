/* SPDX-License-Identifier: Apache-2.0 */
/* Contains only the list and the look-up by name, so that no cycle of objects runs through it. */
#include "analyze/report/report_list.h"

#include "analyze/report/shared.h"

const struct report_type *const report_types[] = {
#define X(name) &report_##name,
	REPORT_LIST(X)
#undef X
		NULL,
};
const struct report_type *const report_parts[] = {
#define X(name) &report_##name,
	REPORT_LIST(X)
#undef X
		& report_attribution,
	NULL,
};

const struct report_type *report_find(const char *name, size_t len)
{
	for (size_t i = 0; report_types[i]; i++)
		if (strlen(report_types[i]->name) == len &&
		    !memcmp(report_types[i]->name, name, len))
			return report_types[i];
	return NULL;
}

size_t report_tables(const struct table_type *out[REPORT_TABLES_MAX])
{
	const struct report_type *r = &report_base;
	size_t count = 0, k;

	for (size_t i = 0; r; r = report_types[i++])
		for (const struct table_type *const *t = r->tables; *t; t++) {
			for (k = 0; k < count && out[k] != *t; k++)
				;
			if (k == count && (*t)->nest != NEST_NEVER && count < REPORT_TABLES_MAX)
				out[count++] = *t;
		}
	return count;
}

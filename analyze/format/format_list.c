/* SPDX-License-Identifier: Apache-2.0 */
/* Contains only the list and the look-up by name, so that no cycle of objects runs through it. */
#include "analyze/format/format.h"

const struct format_type *const format_types[] = {
#define X(name) &format_##name,
	FORMAT_LIST(X)
#undef X
		NULL,
};

const struct format_type *format_find(const char *name)
{
	for (size_t i = 0; format_types[i]; i++)
		if (!strcmp(format_types[i]->name, name))
			return format_types[i];
	return NULL;
}

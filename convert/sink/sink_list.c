/* SPDX-License-Identifier: Apache-2.0 */
/* Contains only the list and the search by name, so that no object file that sinks need depends on
 * all sinks. */
#include "convert/sink/sink.h"

#include <string.h>

const struct sink_type *const sink_types[] = {
#define X(name) &sink_##name,
	SINK_LIST(X)
#undef X
		NULL,
};

const struct sink_type *sink_find(const char *name)
{
	for (size_t i = 0; sink_types[i]; i++)
		if (strcmp(sink_types[i]->name, name) == 0)
			return sink_types[i];
	return NULL;
}

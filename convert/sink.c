/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink.h"

#include <string.h>

static const struct sink_type *const sinks[] = {
#define X(name) &sink_##name,
	SINK_LIST(X)
#undef X
};

const struct sink_type *sink_find(const char *name)
{
	for (size_t i = 0; i < sizeof(sinks) / sizeof(*sinks); i++)
		if (strcmp(sinks[i]->name, name) == 0)
			return sinks[i];
	return NULL;
}

const struct sink_type *sink_at(size_t i)
{
	return i < sizeof(sinks) / sizeof(*sinks) ? sinks[i] : NULL;
}

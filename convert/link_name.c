/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/link_name.h"

#include <string.h>

static bool has(const char *name, size_t len, const char *part)
{
	return memmem(name, len, part, strlen(part)) != NULL;
}

bool launch_name(const char *name, size_t len)
{
	if (!has(name, len, "Launch") && !has(name, len, "Memcpy") && !has(name, len, "Memset"))
		return false;
	/* describes work of a graph; runs a function on the host */
	return !has(name, len, "Node") && !has(name, len, "HostFunc");
}

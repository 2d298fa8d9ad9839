/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/call_name.h"

#include <string.h>

enum { VERSION_DIGITS = 4 };

size_t call_name_length(const char *name, size_t len)
{
	size_t digits = 0;

	while (digits < len && name[len - 1 - digits] >= '0' && name[len - 1 - digits] <= '9')
		digits++;
	if (digits < VERSION_DIGITS || len < digits + 3 ||
	    memcmp(name + len - digits - 2, "_v", 2) != 0)
		return len;
	return len - digits - 2;
}

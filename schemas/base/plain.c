/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/plain.h"

#include <string.h>

bool plain_ways;

void plain_set(const char *value)
{
	plain_ways = value && strcmp(value, "1") == 0;
}

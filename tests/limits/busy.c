/* SPDX-License-Identifier: Apache-2.0 */
/* busy.c - a program that does nothing but tell: N ranges and N / 1000 steps.  usage: busy N */
#include "collector/api/tacho.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000, i;
	uint32_t names[] = { tacho_name("first"), tacho_name("second"), tacho_name("third") };

	for (i = 0; i < count; i++) {
		if (i % 1000 == 0)
			tacho_step();
		tacho_range_push_id(names[i % 3]);
		tacho_range_pop();
	}
	return 0;
}

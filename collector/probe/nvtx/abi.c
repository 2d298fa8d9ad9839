/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/abi.h"

#include <stdbool.h>

unsigned nvtx_install(nvtx_get_table get_table, const struct nvtx_function_row *rows, size_t count)
{
	const struct nvtx_callbacks *table = get_table ? get_table(NVTX_TABLE_CALLBACKS) : NULL;
	unsigned fits = 0;

	if (!table || table->size < sizeof(*table) || !table->module)
		return 0;
	for (size_t i = 0; i < count; i++) {
		nvtx_function **at = NULL;
		unsigned places = 0;
		if (!table->module(rows[i].module, &at, &places) || !at ||
		    rows[i].place >= places || !at[rows[i].place])
			continue;
		*at[rows[i].place] = rows[i].function;
		fits++;
	}
	return fits;
}

static bool is_payload(const struct nvtx_extension *x)
{
	return x && x->size >= sizeof(*x) && x->module == NVTX_PAYLOAD && x->segment_count &&
	       x->segments && x->segments->places;
}

unsigned nvtx_install_extension(struct nvtx_extension *x, const struct nvtx_function_row *rows,
				size_t count)
{
	unsigned fits = 0;

	if (!is_payload(x))
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (rows[i].place >= x->segments->count)
			continue;
		x->segments->places[rows[i].place] = (intptr_t)rows[i].function;
		fits++;
	}
	return fits;
}

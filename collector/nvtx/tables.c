/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/nvtx/tables.h"

#include <stdbool.h>

unsigned nvtx_install(nvtx_get_table get_table, const struct nvtx_slot *slots, size_t count)
{
	const struct nvtx_callbacks *table = get_table ? get_table(NVTX_TABLE_CALLBACKS) : NULL;
	unsigned fits = 0, places;
	nvtx_function **at;
	size_t i;

	if (!table || table->size < sizeof(*table) || !table->module)
		return 0;
	for (i = 0; i < count; i++) {
		at = NULL;
		places = 0;
		if (!table->module(slots[i].module, &at, &places) || !at ||
		    slots[i].place >= places || !at[slots[i].place])
			continue;
		*at[slots[i].place] = slots[i].function;
		fits++;
	}
	return fits;
}

static bool is_payload(const struct nvtx_extension *x)
{
	return x && x->size >= sizeof(*x) && x->module == NVTX_PAYLOAD && x->segment_count &&
	       x->segments && x->segments->places;
}

unsigned nvtx_install_extension(struct nvtx_extension *x, const struct nvtx_slot *slots,
				size_t count)
{
	unsigned fits = 0;
	size_t i;

	if (!is_payload(x))
		return 0;
	for (i = 0; i < count; i++) {
		if (slots[i].place >= x->segments->count)
			continue;
		x->segments->places[slots[i].place] = (intptr_t)slots[i].function;
		fits++;
	}
	return fits;
}

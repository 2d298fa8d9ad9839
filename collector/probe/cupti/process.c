/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/internal.h"

#include "collector/probe/cupti/clock.h"
#include "collector/session/clock.h"

static struct {
	uint8_t zeroed;
	int thread_ids;
	bool has_zeroed, has_thread_ids;
} before;

bool cupti_process_set(const struct cupti_lib *lib)
{
	uint8_t yes = 1;
	size_t size = sizeof(before.zeroed), one = sizeof(yes);

	if (!before.has_zeroed)
		before.has_zeroed = lib->get_attribute && lib->set_attribute &&
				    lib->get_attribute(CUPTI_ATTRIBUTE_ZEROED, &size,
						       &before.zeroed) == CUPTI_OK;
	if (!before.has_thread_ids)
		before.has_thread_ids = lib->get_thread_id_type && lib->thread_id_type &&
					lib->get_thread_id_type(&before.thread_ids) == CUPTI_OK;
	/* our buffers are zeroed; where the attribute is refused, CUPTI zeroes them again */
	if (lib->set_attribute)
		lib->set_attribute(CUPTI_ATTRIBUTE_ZEROED, &one, &yes);
	return lib->thread_id_type && lib->thread_id_type(CUPTI_THREAD_ID_SYSTEM) == CUPTI_OK;
}

void cupti_process_reset(const struct cupti_lib *lib)
{
	size_t size = sizeof(before.zeroed);

	if (before.has_zeroed)
		lib->set_attribute(CUPTI_ATTRIBUTE_ZEROED, &size, &before.zeroed);
	if (before.has_thread_ids)
		lib->thread_id_type(before.thread_ids);
	before.has_zeroed = before.has_thread_ids = false;
}

static uint64_t realtime(void)
{
	return tick_clock_ns(CLOCK_REALTIME);
}

bool cupti_process_set_clock(const struct cupti_lib *lib)
{
	struct timespec while_it_drifts = { .tv_nsec = 1000000 };

	cupti_clock_note(true);
	if (!cupti_clock_is_strange())
		return true;
	nanosleep(&while_it_drifts, NULL);
	cupti_clock_note(true);
	if (!cupti_clock_is_steady() && lib->register_timestamp &&
	    lib->register_timestamp(realtime) == CUPTI_OK)
		cupti_clock_note(true);
	return false;
}

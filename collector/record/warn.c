/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record/warn.h"

#include "collector/config/config.h"
#include "collector/session/clock.h"
#include "schemas/base/buf.h"

#include <string.h>
#include <time.h>

/* The user has given it: it is not as the table has it. */
static bool is_given(const char *name, const char *text)
{
	const struct option_set sets[] = { { config_options, NULL }, { NULL, NULL } };
	const struct option *row = option_find(sets, name, NULL);

	return row && strcmp(row->fallback, text) != 0;
}

void warn_of_options(const struct config *c, struct buf *out)
{
	const struct window_spec *w = &c->window_spec;
	uint64_t end_ns = w->at_ns + w->duration_ns;

	if (w->at_ns && w->duration_ns && !w->every_ns && end_ns < tick_clock_ns(CLOCK_REALTIME))
		buf_putf(out, "--window %s: that time is past, so nothing will be recorded\n",
			 c->window);
	if (!c->ring && is_given("save-on", c->save_on) && !c->trigger_spec.hang_ns)
		buf_putf(out, "--save-on %s has no effect without --ring\n", c->save_on);
	if (!c->ring && is_given("ring-dir", c->ring_dir))
		buf_putf(out, "--ring-dir %s has no effect without --ring\n", c->ring_dir);
	if (c->beaten_preset)
		buf_putf(out, "--window %s is used, and not that of the preset given with it\n",
			 c->window);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the records that a dead process left in its arena to a log. */
#include "collector/arena/arena.h"
#include "collector/arena/texts.h"
#include "collector/config/config.h"
#include "collector/probe/nvtx/names.h"
#include "collector/probe/nvtx/open.h"
#include "collector/probe/probe.h"
#include "collector/recorder/recorder.h"
#include "collector/session/session.h"
#include "collector/store/writer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct probe_type probe_helper;
const struct probe_type *const recorder_probes[] = { &probe_api, &probe_nvtx, &probe_helper, NULL };

static bool read_settings(struct config *config)
{
	const struct arena_header *a = arena();
	const char *at = arena_at(a, a->environment), *end = at + a->environment_len;
	size_t count = 0;

	if (!a->environment || a->environment > a->bytes ||
	    a->environment_len > a->bytes - a->environment || !a->environment_len || end[-1])
		return false;
	char **words = calloc(a->environment_len / 2 + 2, sizeof(*words));
	if (!words)
		return false;
	for (; at < end; at += strlen(at) + 1)
		if (*at)
			words[count++] = (char *)(uintptr_t)at;
	enum status status = config_read(config, words, NULL);
	free(words);
	atomic_store(&config->late_rank, a->late_rank);
	return status == ST_OK;
}

bool recorder_adopt_late(void)
{
	nvtx_started_adopt();
	return nvtx_names_adopt();
}

bool recorder_adopt(struct config *config)
{
	threads_have_ranges(&nvtx_ranges);
	if (!names_adopt() || !recorder_adopt_late() || !threads_are_sound())
		return false;
	const struct arena_header *a = arena();
	uint32_t point = a->point & 1;
	tick_adopt((enum tick_source)a->tick_source, a->base_ns, a->points[point].tick,
		   a->points[point].ns);
	return read_settings(config);
}

/* Truncates the log to its committed bytes.  The writer died while it wrote; records that were not
 * committed are still in the rings. */
static void cut_log(void)
{
	const struct arena_header *a = arena();
	uint64_t bytes = a->committed[a->commit & 1].bytes;

	if (!*a->log || !memchr(a->log, '\0', ARENA_PATH) || bytes == ARENA_WHOLE)
		return;
	if (bytes ? truncate(a->log, (off_t)bytes) : unlink(a->log))
		return; /* the file was moved or removed */
}

bool recorder_read(int fd, struct config *config)
{
	return arena_adopt(fd, false) && recorder_adopt(config);
}

bool recorder_take_left(int fd, bool died_now)
{
	static struct config config;
	size_t len;

	/* The mapping is shared, so that a commit is valid for the next process if this one is
	 * killed, too. */
	if (!arena_adopt(fd, true) || !recorder_adopt(&config))
		return false;
	if (config.ring && !config.trigger_spec.death)
		return true;
	config.ring = 0; /* the contents of that ring are saved as another log */
	cut_log();
	uint64_t first = session_adopt(&config, died_now);
	return writer_put_left(&config, recorder_probes, first, arena()->pid,
			       name_text(arena()->command, &len));
}

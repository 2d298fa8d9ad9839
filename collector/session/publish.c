/* SPDX-License-Identifier: Apache-2.0 */
/* Tells readers of the arena about this process. */
#include "collector/session/internal.h"

#include "collector/arena/texts.h"
#include "schemas/base/buf.h"

#include <string.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 1 << 20 };
static struct buf settings; /* TACHO_ variables as they were first read */

void session_keep_settings(void)
{
	buf_init(&settings, ENVIRONMENT_MAX);
	for (char **e = environ; e && *e; e++)
		if (strncmp(*e, "TACHO_", 6) == 0)
			buf_put(&settings, *e, strlen(*e) + 1);
}

/*
 * A buffer of so many bytes in the arena, as the child of a bare clone() cannot allocate memory:
 * malloc() may be locked for ever.
 */
static struct buf arena_buf(struct arena_header *a, size_t bytes)
{
	uint64_t at = arena_alloc(bytes + 1);

	return (struct buf){ .data = at ? arena_at(a, at) : NULL,
			     .cap = at ? bytes : 0,
			     .ceiling = at ? bytes : 0 };
}

/* Publishes the command line and the settings, which are read again if another process makes a log
 * of the records that this process leaves. */
static void describe_process(struct arena_header *a)
{
	size_t bytes = settings.len + 1;

	for (char **e = environ; e && *e; e++)
		bytes += strlen(*e) + 1;
	struct buf words = arena_buf(a, bytes < ENVIRONMENT_MAX ? bytes : ENVIRONMENT_MAX);
	buf_put(&words, buf_text(&settings), settings.len + 1);
	for (char **e = environ; e && *e; e++)
		buf_put(&words, *e, strlen(*e) + 1);
	a->environment_len = (uint32_t)words.len;
	if (words.len)
		atomic_store_explicit(&a->environment, arena_offset(a, words.data),
				      memory_order_release);
	struct buf command = arena_buf(a, NAMES_TEXT_MAX);
	command_read(&command);
	a->command = name_find_text(buf_text(&command), command.len);
}

void session_publish_arena(void)
{
	struct arena_header *a = arena();

	a->tick_source = (uint32_t)tick_source;
	a->base_ns = tick_base_ns();
	tick_latest(&a->points[0].tick, &a->points[0].ns);
	a->late_rank = atomic_load(&session.config->late_rank);
	describe_process(a);
	session_publish_window();
	session_shared_move();
}

void session_publish_window(void)
{
	const struct tick_span *span = &session.shared->spans[session.shared->window % SPANS];

	if (!arena_is_mine())
		return;
	struct arena_header *a = arena();
	/* in this order, so that a reader that finds the process dead sees a whole window with a
	 * number */
	atomic_store_explicit(&a->window_end, span->end, memory_order_release);
	atomic_store_explicit(&a->window_begin, span->begin, memory_order_release);
	atomic_store_explicit(&a->window, session.shared->window, memory_order_release);
}

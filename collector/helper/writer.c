/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of store/writer.h in the program, which pass their arguments on to the recorder. */
#include "collector/arena/arena.h"
#include "collector/config/config.h"
#include "collector/helper/internal.h"
#include "collector/session/clock.h"
#include "collector/session/session.h"

#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)
enum { PATIENCE_MS = 1000 }; /* limit of waiting for a recorder that makes no space */

static bool send_parts(struct writer *w, unsigned type, const struct queue_part parts[QUEUE_PARTS])
{
	const struct timespec pause = { .tv_nsec = MS };
	struct queue *q = &w->shared->queue;

	bool sent = queue_send(q, type, parts);

	for (unsigned i = 0; !sent && i < PATIENCE_MS && !w->broken && !w->stuck; i++) {
		session_wake_writer();
		nanosleep(&pause, NULL);
		sent = queue_send(q, type, parts);
	}
	w->stuck = !sent;
	return sent;
}

static bool send(struct writer *w, unsigned type, const void *at, size_t len)
{
	return send_parts(w, type, (struct queue_part[QUEUE_PARTS]){ { at, len } });
}

/* Passes a new row of a table on.  If that fails, all further rows of the window are dropped,
 * because rows that refer to it would be wrong. */
static uint32_t define(struct writer *w, enum trace_table table, uint32_t id, unsigned type,
		       const struct queue_part parts[QUEUE_PARTS])
{
	if (id <= w->sent[table] || w->broken)
		return w->broken ? 0 : id;
	w->sent[table] = id;
	w->broken = !send_parts(w, type, parts);
	return w->broken ? 0 : id;
}

#define DEFINE(w, table, id, type, ...)                                                            \
	define(w, table, id, type, (struct queue_part[QUEUE_PARTS]){ __VA_ARGS__ })

void helper_reset(struct writer *w)
{
	trace_free(w->trace);
	w->trace = NULL;
	memset(w->sent, 0, sizeof(w->sent));
	w->log++;
	w->has_row = false;
	w->broken = false;
	w->broken = trace_new(&w->trace, w->config->memory / 4, NULL) != ST_OK ||
		    !send(w, MESSAGE_RESET, NULL, 0);
}

void helper_put_anchor(struct writer *w, uint64_t cupti_ns)
{
	struct anchor a = { .monotonic_ns = tick_clock_ns(CLOCK_MONOTONIC),
			    .realtime_ns = tick_clock_ns(CLOCK_REALTIME),
			    .cupti_ns = cupti_ns };

	send(w, MESSAGE_ANCHOR, &a, sizeof(a));
}

/* Counts rows in shared memory, where the counts remain available if the recorder no longer reads
 * messages. */
static void count_made(struct writer *w, uint64_t count, bool sent)
{
	atomic_fetch_add(&w->shared->made, count);
	if (!sent)
		atomic_fetch_add(&w->shared->lost, count);
}

void writer_wake(struct writer *w)
{
	helper_wake(w->shared);
}

bool writer_ready(struct writer *w)
{
	return writer_window_begin(w) && w->trace;
}

bool writer_has_log(const struct writer *w)
{
	return w->has_row || atomic_load(&w->shared->has_log);
}

uint64_t writer_log(const struct writer *w)
{
	return w->log + atomic_load(&w->shared->log); /* both only grow */
}

uint32_t writer_name(struct writer *w, const char *text, size_t len)
{
	uint32_t id = writer_ready(w) ? trace_name(w->trace, text, len, NULL) : 0;

	return DEFINE(w, TRACE_NAMES, id, MESSAGE_NAME, { text, len });
}

uint32_t writer_track(struct writer *w, const struct track *track)
{
	uint32_t id = writer_ready(w) ? trace_track(w->trace, track, NULL) : 0;

	return DEFINE(w, TRACE_TRACKS, id, MESSAGE_TRACK, { track, sizeof(*track) });
}

uint32_t writer_schema(struct writer *w, const struct arg_schema *schema)
{
	uint64_t counts[] = { schema->const_count, schema->arg_count };
	uint32_t id = writer_ready(w) ? trace_schema(w->trace, schema, NULL) : 0;

	return DEFINE(w, TRACE_SCHEMAS, id, MESSAGE_SCHEMA, { counts, sizeof(counts) },
		      { schema->consts, schema->const_count * sizeof(struct attr) },
		      { schema->args, schema->arg_count * sizeof(struct attr) });
}

uint32_t writer_desc(struct writer *w, const struct event_desc *desc)
{
	uint32_t id = writer_ready(w) ? trace_desc(w->trace, desc, NULL) : 0;

	return DEFINE(w, TRACE_DESCS, id, MESSAGE_DESC, { desc, sizeof(*desc) });
}

uint32_t writer_device(struct writer *w, const struct device *device)
{
	uint32_t id = writer_ready(w) ? trace_device(w->trace, device, NULL) : 0;

	return DEFINE(w, TRACE_DEVICES, id, MESSAGE_DEVICE, { device, sizeof(*device) });
}

void writer_set_attribute(struct writer *w, const char *key, const char *text, bool is_json)
{
	struct helper_attribute a = { is_json };

	send_parts(w, MESSAGE_ATTRIBUTE,
		   (struct queue_part[QUEUE_PARTS]){ { &a, sizeof(a) },
						     { key, strlen(key) + 1 },
						     { text, strlen(text) + 1 } });
}

void writer_name_track(struct writer *w, uint32_t track, uint32_t name)
{
	struct helper_pair p = { track, name };

	if (track)
		send(w, MESSAGE_TRACK_NAME, &p, sizeof(p));
}

void writer_put_ready(struct writer *w, const struct event *row, uint32_t desc)
{
	const struct event_desc *d = trace_get_desc(w->trace, desc);
	size_t args = row->args ? trace_get_schema(w->trace, d->schema)->arg_count : 0;
	struct helper_row r = { *row, desc };

	w->has_row = true;
	bool sent = !w->broken && desc &&
		    send_parts(w, MESSAGE_ROW,
			       (struct queue_part[QUEUE_PARTS]){
				       { &r, sizeof(r) }, { row->args, args * sizeof(uint64_t) } });
	count_made(w, 1, sent);
}

void writer_put(struct writer *w, const struct event *row, uint32_t desc)
{
	if (writer_ready(w))
		writer_put_ready(w, row, desc);
}

void writer_lose(struct writer *w, enum loss why, uint64_t count)
{
	struct helper_pair p = { why, count };

	if (count)
		count_made(w, count, send(w, MESSAGE_LOSS, &p, sizeof(p)));
}

void writer_own_cost(struct writer *w, uint64_t ns)
{
	struct helper_pair p = { 0, ns };

	if (ns)
		send(w, MESSAGE_COST, &p, sizeof(p));
}

bool writer_is_last(const struct writer *w)
{
	return false; /* the program is running */
}

bool writer_clips(const struct writer *w)
{
	return false;
}

uint64_t writer_drains_until(const struct writer *w)
{
	return UINT64_MAX;
}

bool writer_wants(const struct writer *w, unsigned kind)
{
	return w->config->kinds_mask >> kind & 1;
}

uint64_t writer_window_begin(const struct writer *w)
{
	return atomic_load(&w->shared->begin_ns);
}

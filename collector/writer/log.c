/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/command.h"
#include "collector/config.h"
#include "collector/session.h"
#include "collector/watch.h"
#include "collector/writer/inside.h"
#include "schemas/log_ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes of a log that says anything. */
enum { LEAST_LOG = 4096, BLOCKS_LEAST = 4 << 20 };
enum { ANCHOR_TRIES = 3, RING_TABLES_SHARE = 32 };

const struct config *writer_config(const struct writer *w)
{
	return w->config;
}

bool writer_has_log(const struct writer *w)
{
	return w->trace != NULL;
}

uint64_t writer_log(const struct writer *w)
{
	return w->log_number;
}

uint64_t writer_window_begin(const struct writer *w)
{
	return w->recording ? w->got.begin_ns : 0;
}

bool writer_is_recording(const struct writer *w)
{
	return w->recording;
}

bool writer_wants(const struct writer *w, unsigned kind)
{
	return w->config->kinds_mask >> kind & 1;
}

void writer_own_cost(struct writer *w, uint64_t ns)
{
	w->cost_ns += ns;
}

/* ---- blocks to the store ---- */

/*
 * All tables again, to the place that a ring has for that.  Where they take most of it they have
 * outgrown it, and the ring begins anew after this round, before rows are lost for want of a name.
 */
static bool renew_tables(struct writer *w)
{
	struct log_ring_fixed ring = { 0 };
	struct buf all;
	bool good;

	buf_init(&all, w->config->memory / 4);
	good = log_writer_tables(w->log, &all, NULL) == ST_OK &&
	       w->store->type->renew(w->store, all.data, all.len, NULL) == ST_OK;
	log_ring_divide(w->config->ring, w->config->memory / RING_TABLES_SHARE, &ring);
	w->outgrown = !good || all.len > ring.half_bytes / 2;
	buf_release(&all);
	return good;
}

static enum loss why_full(const struct writer *w)
{
	return w->outgrown ? LOSS_CEILING : LOSS_DISK;
}

static void store_block(struct writer *w, const struct log_block *block, const uint8_t *bytes,
			size_t len)
{
	if (w->renewed && block->kind != LOG_EVENTS)
		return; /* it was among them */
	if (block->kind == LOG_EVENTS && w->full) {
		trace_lose(w->trace, w->process, why_full(w), block->rows);
		return;
	}
	if (w->store->type->put(w->store, block->kind, bytes, len, NULL) == ST_OK)
		return;
	if (block->kind != LOG_EVENTS && w->store->type->renew && !w->full) {
		w->renewed = renew_tables(w);
		if (w->renewed)
			return;
	}
	w->full = true;
	if (block->kind == LOG_EVENTS)
		trace_lose(w->trace, w->process, LOSS_DISK, block->rows);
}

/* What the log's writer made, block by block. */
static void store_blocks(struct writer *w)
{
	struct buf *b = &w->blocks;
	struct log_block block;
	size_t at = 0, len, skipped;

	if (b->len >= LOG_FILE_HEADER_BYTES && !w->store->type->bytes(w->store)) {
		at = LOG_FILE_HEADER_BYTES;
		w->full |= w->store->type->put(w->store, 0, b->data, at, NULL) != ST_OK;
	}
	while (at < b->len && log_find_block(b->data + at, b->len - at, at, &block, &skipped,
					     NULL) == ST_OK) {
		len = LOG_HEADER_BYTES + block.size;
		store_block(w, &block, b->data + at + skipped, len);
		at += skipped + len;
	}
	w->renewed = false;
	buf_clear(b);
}

/* ---- the log ---- */

static void put_attr(struct writer *w, struct shape *shape, struct attr *room, const char *key,
		     const char *text, bool is_json)
{
	if (!text || !*text)
		return;
	room[shape->fixed_count++] = (struct attr){
		.key = writer_name(w, key, strlen(key)),
		.type = is_json ? ATTR_JSON : ATTR_TEXT,
		.bits = writer_name(w, text, strlen(text)),
	};
}

static void put_about(struct writer *w)
{
	struct attr attrs[4 + TOLD];
	struct shape shape = { .fixed = attrs };
	char ignored[DECIMAL_MAX + 1];
	size_t i;

	snprintf(ignored, sizeof(ignored), "%llu", (unsigned long long)w->ignored);
	put_attr(w, &shape, attrs, "tacho_version", TACHO_VERSION, false);
	put_attr(w, &shape, attrs, "tacho_clock", tick_name(), false);
	put_attr(w, &shape, attrs, "launcher", w->config->rank.launcher, false);
	/* starts of what had begun, stops of what had not, samples outside a window */
	put_attr(w, &shape, attrs, "ignored_calls", w->ignored ? ignored : NULL, false);
	for (i = 0; i < w->told_count; i++)
		put_attr(w, &shape, attrs, w->told[i].key, w->told[i].text, w->told[i].is_json);
	w->about.shape = writer_shape(w, &shape);
	w->told_more = false;
}

static struct told *find_told(struct writer *w, const char *key)
{
	struct told *t;

	for (t = w->told; t < w->told + w->told_count; t++)
		if (strcmp(t->key, key) == 0)
			return t;
	if (w->told_count == TOLD)
		return NULL;
	t->key = strdup(key);
	t->text = NULL;
	if (!t->key)
		return NULL;
	w->told_count++;
	return t;
}

void writer_tell(struct writer *w, const char *key, const char *text, bool is_json)
{
	struct told *t = find_told(w, key);

	if (!t || (t->text && strcmp(t->text, text) == 0))
		return;
	free(t->text);
	t->text = strdup(text);
	t->is_json = is_json;
	w->told_more = true;
}

static void put_process(struct writer *w)
{
	const struct config *c = w->config;
	struct buf command;

	buf_init(&command, 64 * 1024);
	command_read(&command);
	w->about = (struct process){ .pid = (uint32_t)getpid(), .rank = c->rank.rank,
				     .world_size = c->rank.world_size };
	w->about.host = writer_name(w, c->host, strlen(c->host));
	w->about.command = writer_name(w, buf_text(&command), command.len);
	put_about(w);
	w->process = trace_process(w->trace, &w->about, NULL);
	buf_release(&command);
}

/* The first watch that has a clock of its own. */
static uint64_t watch_clock(const struct writer *w)
{
	size_t i;

	for (i = 0; i < w->watch_count; i++)
		if (w->watches[i]->clock)
			return w->watches[i]->clock();
	return 0;
}

/* The narrowest of some readings of all clocks, one after the other. */
void writer_put_anchor(struct writer *w)
{
	struct anchor a = { .process = w->process }, best = { 0 };
	uint64_t narrowest = UINT64_MAX, after;
	int i;

	for (i = 0; i < ANCHOR_TRIES; i++) {
		a.monotonic_ns = tick_clock_ns(CLOCK_MONOTONIC);
		a.cupti_ns = watch_clock(w);
		a.realtime_ns = tick_clock_ns(CLOCK_REALTIME);
		after = tick_clock_ns(CLOCK_MONOTONIC);
		if (after - a.monotonic_ns >= narrowest)
			continue;
		narrowest = after - a.monotonic_ns;
		best = a;
		best.monotonic_ns += narrowest / 2;
	}
	trace_anchor(w->trace, &best, NULL);
}

void writer_put_window(struct writer *w)
{
	const char *spec = w->by ? w->by : w->config->window;
	struct window row = w->got;

	row.process = w->process;
	row.spec = writer_name(w, spec, strlen(spec));
	if (w->window_row)
		trace_set_window(w->trace, w->window_row, &row);
	else
		w->window_row = trace_window(w->trace, &row, NULL);
}

static void log_free(struct writer *w)
{
	if (w->store && !w->config->ring)
		w->disk_bytes += w->store->type->bytes(w->store);
	if (w->store)
		w->store->type->close(w->store);
	log_writer_free(w->log);
	trace_free(w->trace);
	buf_release(&w->blocks);
	w->store = NULL;
	w->log = NULL;
	w->trace = NULL;
	w->window_row = 0;
}

static enum status log_make(struct writer *w)
{
	const struct config *c = w->config;
	struct store_place place = { .folder = c->out, .host = c->host, .rank = c->rank.rank,
				     .pid = (uint32_t)getpid(), .max_bytes = c->max_disk,
				     .min_free = c->min_free };

	if (c->max_disk && w->disk_bytes + LEAST_LOG > c->max_disk)
		return fail(NULL, ST_CEILING, NOWHERE, "this process's logs have reached their limit");
	if (c->max_disk)
		place.max_bytes = c->max_disk - w->disk_bytes;
	TRY(trace_new(&w->trace, c->memory / 4, NULL));
	TRY(log_writer_new(&w->log, w->trace, c->memory / 4, NULL));
	if (c->ring) {
		place.folder = config_ring_dir(c);
		place.ring_bytes = c->ring;
		place.ring_tables = c->memory / RING_TABLES_SHARE;
	}
	TRY((c->ring ? &store_ring : &store_file)->open(&w->store, &place, NULL));
	return log_writer_begin(w->log, &w->blocks, NULL);
}

/* The log for a row that came; false: there is none to be had. */
static bool log_open(struct writer *w)
{
	if (w->trace)
		return true;
	if (w->broken || !w->recording)
		return false;
	buf_init(&w->blocks, BLOCKS_LEAST + w->config->memory / 4);
	w->log_number++;
	if (log_make(w) != ST_OK) {
		log_free(w);
		w->broken = true;
		return false;
	}
	trace_provenance(w->trace)->epoch_known = true;
	w->full = w->outgrown = false;
	put_process(w);
	writer_put_window(w);
	w->flushed_ns = tick_clock_ns(CLOCK_MONOTONIC);
	writer_put_anchor(w);
	return true;
}

void writer_flush_log(struct writer *w, uint64_t now_ns)
{
	if (w->told_more) {
		put_about(w);
		trace_set_process(w->trace, w->process, &w->about);
	}
	log_writer_flush(w->log, &w->blocks, NULL);
	store_blocks(w);
	w->flushed_ns = now_ns;
	if (w->store->type->beat)
		w->store->type->beat(w->store, tick_to_ns(tick_now()), w->drained_ns);
}

void writer_rest_log(struct writer *w)
{
	if (w->trace && w->store->type->save)
		writer_flush_log(w, tick_clock_ns(CLOCK_MONOTONIC));
	else
		writer_close_log(w);
}

void writer_close_log(struct writer *w)
{
	if (!w->trace)
		return;
	writer_put_anchor(w);
	w->ignored = session_ignored();
	put_about(w);
	trace_set_process(w->trace, w->process, &w->about);
	writer_flush_log(w, 0); /* first, so that what did not fit is counted in the end */
	log_writer_end(w->log, &w->blocks, NULL);
	store_blocks(w);
	log_free(w);
}

/* ---- rows ---- */

bool writer_ready(struct writer *w)
{
	return log_open(w);
}

uint32_t writer_name(struct writer *w, const char *text, size_t len)
{
	return log_open(w) ? trace_name(w->trace, text, len, NULL) : 0;
}

uint32_t writer_track(struct writer *w, const struct track *track)
{
	struct track row = *track;

	if (!log_open(w))
		return 0;
	row.process = w->process;
	return trace_track(w->trace, &row, NULL);
}

uint32_t writer_device(struct writer *w, const struct device *device)
{
	struct device row = *device;

	if (!log_open(w))
		return 0;
	row.process = w->process;
	return trace_device(w->trace, &row, NULL);
}

uint32_t writer_shape(struct writer *w, const struct shape *shape)
{
	return log_open(w) ? trace_shape(w->trace, shape, NULL) : 0;
}

uint32_t writer_site(struct writer *w, const struct site *site)
{
	return log_open(w) ? trace_site(w->trace, site, NULL) : 0;
}

void writer_name_track(struct writer *w, uint32_t track, uint32_t name)
{
	if (log_open(w) && track)
		trace_set_track_name(w->trace, track, name);
}

void writer_lose(struct writer *w, enum loss why, uint64_t count)
{
	if (count && log_open(w))
		trace_lose(w->trace, w->process, why, count);
}

void writer_put_ready(struct writer *w, const struct event *row, uint32_t site)
{
	if (w->full)
		trace_lose(w->trace, w->process, why_full(w), 1);
	else if (log_writer_put(w->log, row, site, 0, &w->blocks, NULL) != ST_OK)
		trace_lose(w->trace, w->process, LOSS_CEILING, 1);
	if (w->blocks.len)
		store_blocks(w);
}

struct log_places writer_places(const struct writer *w)
{
	if (w->full || !w->log)
		return (struct log_places){ 0 };
	return log_writer_places(w->log);
}

void writer_put(struct writer *w, const struct event *row, uint32_t site)
{
	const struct site *s;
	struct event e = *row;

	if (!log_open(w))
		return;
	if (!site) {
		trace_lose(w->trace, w->process, LOSS_CEILING, 1);
		return;
	}
	s = trace_get_site(w->trace, site);
	e.track = s->track;
	e.name = s->name;
	e.shape = s->shape;
	e.kind = s->kind;
	e.subkind = s->subkind;
	writer_put_ready(w, &e, site);
}

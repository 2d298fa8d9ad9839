/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/texts.h"
#include "collector/probe/probe.h"
#include "collector/store/internal.h"
#include "schemas/base/vec.h"
#include "schemas/log/ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* LEAST_LOG is the size of the smallest useful log. */
enum { LEAST_LOG = 4096, BLOCKS_LEAST = 4 << 20 };
enum { ANCHOR_TRIES = 3, RING_TABLES_SHARE = 32 };

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

bool writer_is_last(const struct writer *w)
{
	return w->is_last;
}

bool writer_clips(const struct writer *w)
{
	return w->clips;
}

uint64_t writer_drains_until(const struct writer *w)
{
	return w->drained_until;
}

void writer_has_stored(struct writer *w, bool closes)
{
	struct arena_header *a = arena();
	uint64_t commit = a ? atomic_load_explicit(&a->commit, memory_order_relaxed) + 1 : 0;
	unsigned parity = commit & 1;

	for (size_t i = 0; i < w->probe_count; i++)
		if (w->probes[i]->note_stored)
			w->probes[i]->note_stored(parity);
	if (a && arena_is_mine()) {
		a->committed[parity].until = w->drained_until < UINT64_MAX
						     ? w->drained_until
						     : a->committed[!parity].until;
		a->committed[parity].closed = w->closed;
		a->committed[parity].bytes = closes ? ARENA_WHOLE : w->store->type->bytes(w->store);
		atomic_store_explicit(&a->commit, commit, memory_order_release);
	}
	for (size_t i = 0; i < w->probe_count; i++)
		if (w->probes[i]->stored)
			w->probes[i]->stored();
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

static enum loss why_full(const struct writer *w)
{
	return w->outgrown ? LOSS_CEILING : LOSS_DISK;
}

static void lose_block(struct writer *w, const struct log_block *block)
{
	if (block->kind != LOG_EVENTS)
		return;
	trace_lose(w->trace, w->process, why_full(w), block->rows);
	w->rows -= block->rows;
}

static void store_block(struct writer *w, const struct log_block *block, const uint8_t *bytes,
			size_t len)
{
	if (w->renewed && block->kind != LOG_EVENTS)
		return; /* the table was stored together with all others */
	if (block->kind == LOG_EVENTS && w->full) {
		lose_block(w, block);
		return;
	}
	if (w->store->type->put(w->store, block->kind, bytes, len, NULL) == ST_OK)
		return;
	if (block->kind != LOG_EVENTS && w->store->type->renew && !w->full) {
		/*
		 * Stores all tables again in the ring's other half.  If they take most of it, they
		 * have outgrown the ring.  The ring then begins anew after this round, before rows
		 * are lost because a name does not fit.
		 */
		struct log_ring_consts ring = { 0 };
		struct buf all;

		buf_init(&all, w->config->memory / 4);
		bool good = log_writer_tables(w->log, &all, NULL) == ST_OK &&
			    w->store->type->renew(w->store, all.data, all.len, NULL) == ST_OK;
		log_ring_divide(w->config->ring, w->config->memory / RING_TABLES_SHARE, &ring);
		w->outgrown = !good || all.len > ring.half_bytes / 2;
		buf_release(&all);
		w->renewed = good;
		if (w->renewed)
			return;
	}
	w->full = true;
	lose_block(w, block);
}

/* Stores the blocks that the log_writer has made, one by one. */
static void store_blocks(struct writer *w)
{
	struct buf *b = &w->blocks;
	struct log_block block;
	size_t at = 0, skipped;

	if (b->len >= LOG_FILE_HEADER_BYTES && !w->store->type->bytes(w->store)) {
		at = LOG_FILE_HEADER_BYTES;
		w->full |= w->store->type->put(w->store, 0, b->data, at, NULL) != ST_OK;
	}
	while (at < b->len &&
	       log_find_block(b->data + at, b->len - at, at, &block, &skipped, NULL) == ST_OK) {
		size_t len = LOG_HEADER_BYTES + block.size;
		store_block(w, &block, b->data + at + skipped, len);
		at += skipped + len;
	}
	w->renewed = false;
	buf_clear(b);
}

/* ---- the log ---- */

static void put_attr(struct writer *w, struct arg_schema *schema, struct attr *attrs_out,
		     const char *key, const char *text, bool is_json)
{
	if (!text || !*text)
		return;
	attrs_out[schema->const_count++] = (struct attr){
		.key = writer_name(w, key, strlen(key)),
		.type = is_json ? ATTR_JSON : ATTR_TEXT,
		.bits = writer_name(w, text, strlen(text)),
	};
}

static void put_about(struct writer *w)
{
	struct attr attrs[5 + ATTRIBUTES];
	struct arg_schema schema = { .consts = attrs };
	char ignored[DECIMAL_MAX + 1];

	snprintf(ignored, sizeof(ignored), "%llu", (unsigned long long)w->ignored);
	put_attr(w, &schema, attrs, "tacho_version", TACHO_VERSION, false);
	put_attr(w, &schema, attrs, "tacho_clock", tick_name(), false);
	put_attr(w, &schema, attrs, "launcher", config_rank(w->config).launcher, false);
	put_attr(w, &schema, attrs, "run_id", w->config->run_id, false);
	/* ignored: starts while recording, stops and samples without a window */
	put_attr(w, &schema, attrs, "ignored_calls", w->ignored ? ignored : NULL, false);
	for (size_t i = 0; i < w->attribute_count; i++)
		put_attr(w, &schema, attrs, w->process_attribute[i].key,
			 w->process_attribute[i].text, w->process_attribute[i].is_json);
	w->about.schema = writer_schema(w, &schema);
	w->attributes_changed = false;
}

static struct process_attribute *find_attribute(struct writer *w, const char *key)
{
	struct process_attribute *t;

	for (t = w->process_attribute; t < w->process_attribute + w->attribute_count; t++)
		if (strcmp(t->key, key) == 0)
			return t;
	if (w->attribute_count == ATTRIBUTES)
		return NULL;
	t->key = strdup(key);
	t->text = NULL;
	if (!t->key)
		return NULL;
	w->attribute_count++;
	return t;
}

void writer_set_attribute(struct writer *w, const char *key, const char *text, bool is_json)
{
	struct process_attribute *t = find_attribute(w, key);

	if (!t || (t->text && strcmp(t->text, text) == 0))
		return;
	free(t->text);
	t->text = strdup(text);
	t->is_json = is_json;
	w->attributes_changed = true;
}

void writer_free_attributes(struct writer *w)
{
	for (; w->attribute_count > 0; w->attribute_count--) {
		free(w->process_attribute[w->attribute_count - 1].key);
		free(w->process_attribute[w->attribute_count - 1].text);
	}
	while (w->closed_count)
		free(w->closed_logs[--w->closed_count].path);
	free(w->closed_logs);
	free(w->first);
	w->closed_logs = NULL;
	w->closed_cap = 0;
}

/* Adds an anchor: the narrowest of several readings of all clocks. */
void writer_put_anchor(struct writer *w)
{
	struct anchor a = { .process = w->process }, best = { 0 };
	uint64_t narrowest = UINT64_MAX;

	for (int i = 0; i < ANCHOR_TRIES; i++) {
		a.monotonic_ns = tick_clock_ns(CLOCK_MONOTONIC);
		a.realtime_ns = tick_clock_ns(CLOCK_REALTIME);
		uint64_t after = tick_clock_ns(CLOCK_MONOTONIC);
		if (after - a.monotonic_ns >= narrowest)
			continue;
		narrowest = after - a.monotonic_ns;
		best = a;
		best.monotonic_ns += narrowest / 2;
	}
	trace_anchor(w->trace, &best, NULL);
}

void writer_add_anchor(struct writer *w, const struct anchor *anchor)
{
	struct anchor a = *anchor;

	a.process = w->process;
	if (w->trace)
		trace_anchor(w->trace, &a, NULL);
}

void writer_put_window(struct writer *w)
{
	const char *spec = w->by == BY_CONFIG ? w->config->window : session_by_text(w->by);
	struct window row = w->got;

	if (row.begin_ns < w->rotated_ns)
		row.begin_ns = w->rotated_ns;
	row.process = w->process;
	row.spec = writer_name(w, spec, strlen(spec));
	if (w->window_row)
		trace_set_window(w->trace, w->window_row, &row);
	else
		w->window_row = trace_window(w->trace, &row, NULL);
}

/* ---- the size of all logs of the process ---- */

/* Returns the size in bytes at which a log is closed and another begins; UINT64_MAX: no limit. */
static uint64_t rotation_bytes(const struct config *c)
{
	uint64_t share = c->max_disk ? c->max_disk / 8 : UINT64_MAX;

	return c->rotate && c->rotate < share ? c->rotate : share;
}

static void note_closed(struct writer *w)
{
	struct closed_log log = { .bytes = w->store->type->bytes(w->store), .rows = w->rows };

	for (int why = 1; why < LOSS_END; why++)
		log.rows += trace_lost(w->trace, w->process, (enum loss)why);
	w->disk_bytes += log.bytes;
	log.path = strdup(w->store->type->path(w->store));
	if (log.path &&
	    vec_reserve(&w->closed_logs, &w->closed_cap, w->closed_count + 1, NULL) == ST_OK)
		w->closed_logs[w->closed_count++] = log;
	else
		free(log.path);
}

/* Removes the oldest closed logs until a quarter of --max-disk is left for the open log, so that a
 * burst fits. */
static void remove_oldest(struct writer *w)
{
	uint64_t most = w->config->max_disk - w->config->max_disk / 4;
	size_t count = 0;

	for (; w->disk_bytes > most && count < w->closed_count; count++) {
		struct closed_log *log = &w->closed_logs[count];
		bool is_removed = unlink(log->path) == 0;

		w->removed += is_removed ? log->rows : 0;
		if (is_removed || errno == ENOENT)
			w->disk_bytes -= log->bytes; /* a log that stays still takes its place */
		free(log->path);
	}
	w->closed_count -= count;
	if (count)
		memmove(w->closed_logs, w->closed_logs + count,
			w->closed_count * sizeof(w->closed_logs[0]));
}

/*
 * The time of the window is divided between the logs, but a row is put whole into the log that is
 * open when it comes: a step that has begun before, and GPU work that CUPTI delivers later.  While
 * no log can be opened, the open one is kept.
 */
void writer_rotate(struct writer *w)
{
	const struct config *c = w->config;

	if (!w->trace || !w->recording || !w->program || c->ring ||
	    w->store->type->bytes(w->store) < rotation_bytes(c) ||
	    !store_has_space(c->out, c->min_free))
		return;
	struct window whole = w->got;
	w->got.end_ns = tick_to_ns(w->drained_until);
	if (w->got.end_ns <= w->rotated_ns) /* rotated before in this round */
		w->got.end_ns = w->rotated_ns + 1;
	writer_put_window(w);
	if (!w->first)
		w->first = strdup(w->store->type->path(w->store));
	writer_close_log(w);
	w->rotated_ns = w->got.end_ns;
	w->got = whole;
	w->window_row = 0;
}

static void log_free(struct writer *w)
{
	if (w->store && !w->config->ring)
		note_closed(w);
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
	struct store_place place = { .folder = c->out,
				     .host = c->host,
				     .rank = config_rank(c).rank,
				     .pid = w->pid,
				     .first = w->rotated_ns ? w->first : NULL,
				     .part = w->parts++,
				     .max_bytes = c->max_disk,
				     .min_free = c->min_free };

	if (c->max_disk && !c->ring)
		remove_oldest(w);
	if (c->max_disk && w->disk_bytes + LEAST_LOG > c->max_disk)
		return fail(NULL, ST_CEILING, NOWHERE,
			    "this process's logs have reached their limit");
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

/* Publishes the new log's path.  Nothing in the file belongs to the log until it is committed. */
static void publish_path(const struct writer *w)
{
	const char *path = w->store->type->path ? w->store->type->path(w->store) : "";
	struct arena_header *a = arena();

	if (!a || !arena_is_mine())
		return;
	snprintf(a->log, ARENA_PATH, "%s", strlen(path) < ARENA_PATH ? path : "");
	a->committed[a->commit & 1].bytes = 0;
}

/* Opens a log for a row if none is open.  Returns false if no log can be opened. */
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
	publish_path(w);
	trace_provenance(w->trace)->epoch_known = true;
	w->full = w->outgrown = false;
	const struct config *c = w->config;

	w->about = (struct process){ .pid = w->pid,
				     .rank = config_rank(c).rank,
				     .world_size = config_rank(c).world_size };
	w->about.host = writer_name(w, c->host, strlen(c->host));
	w->about.command = writer_name(w, w->command, strlen(w->command));
	put_about(w);
	w->process = trace_process(w->trace, &w->about, NULL);
	writer_put_window(w);
	if (w->removed)
		trace_lose(w->trace, w->process, LOSS_DISK, w->removed);
	w->rows = w->removed = 0;
	w->flushed_ns = tick_clock_ns(CLOCK_MONOTONIC);
	writer_put_anchor(w);
	return true;
}

void writer_flush_log(struct writer *w, uint64_t now_ns)
{
	struct rank rank = config_rank(w->config);

	if (w->attributes_changed || w->about.rank != rank.rank) {
		w->about.rank = rank.rank;
		w->about.world_size = rank.world_size;
		put_about(w);
		trace_set_process(w->trace, w->process, &w->about);
	}
	log_writer_flush(w->log, &w->blocks, NULL);
	store_blocks(w);
	writer_has_stored(w, false);
	w->flushed_ns = now_ns;
	w->rows_waiting = 0;
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

/* Sets an attribute with the processor time and memory that this process has used. */
static void note_own_use(struct writer *w)
{
	struct rusage used;
	char text[96];

	if (getrusage(RUSAGE_SELF, &used) != 0)
		return;
	double seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
			 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
	snprintf(text, sizeof(text), "%.3f s of a processor, %.1f MiB of memory", seconds,
		 (double)used.ru_maxrss / 1024);
	writer_set_attribute(w, "recorder_took", text, false);
}

void writer_note_hang(struct writer *w)
{
	const struct hang_texts *h = w->program ? w->program->hang : NULL;

	if (!h || !h->state[0])
		return;
	writer_set_attribute(w, "hang", h->state, false);
	if (h->collective[0])
		writer_set_attribute(w, "hang_collective", h->collective, false);
	if (h->stacks[0])
		writer_set_attribute(w, "hang_stacks", h->stacks, false);
}

void writer_close_log(struct writer *w)
{
	if (!w->trace)
		return;
	note_own_use(w);
	writer_note_hang(w);
	writer_put_anchor(w);
	w->ignored = session_ignored();
	put_about(w);
	trace_set_process(w->trace, w->process, &w->about);
	writer_flush_log(w, 0); /* first, so that END counts the rows that did not fit */
	writer_has_stored(w, true);
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

uint32_t writer_schema(struct writer *w, const struct arg_schema *schema)
{
	return log_open(w) ? trace_schema(w->trace, schema, NULL) : 0;
}

uint32_t writer_desc(struct writer *w, const struct event_desc *desc)
{
	return log_open(w) ? trace_desc(w->trace, desc, NULL) : 0;
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

void writer_put_ready(struct writer *w, const struct event *row, uint32_t desc)
{
	if (w->full)
		trace_lose(w->trace, w->process, why_full(w), 1);
	else if (log_writer_put(w->log, row, desc, 0, &w->blocks, NULL) != ST_OK)
		trace_lose(w->trace, w->process, LOSS_CEILING, 1);
	else
		w->rows++;
	if (w->blocks.len)
		store_blocks(w);
}

void writer_put(struct writer *w, const struct event *row, uint32_t desc)
{
	struct event e = *row;

	if (!log_open(w))
		return;
	if (!desc) {
		trace_lose(w->trace, w->process, LOSS_CEILING, 1);
		return;
	}
	const struct event_desc *s = trace_get_desc(w->trace, desc);
	e.track = s->track;
	e.name = s->name;
	e.schema = s->schema;
	e.kind = s->kind;
	e.subkind = s->subkind;
	w->rows_waiting++;
	writer_put_ready(w, &e, desc);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - the one thread: drains watches, makes rows to blocks, hands blocks to the store.
 *
 *	watches --rows--> writer (trace, log_writer) --blocks--> store --> file
 *
 * A log is opened when the first row of a window comes, so a window in which nothing happened
 * leaves no file.  It is closed, with its END block, when the last window is over, when asked, at
 * exit; what comes afterwards begins a new one.  Blocks close when full or after a second.
 *
 * writer_start(), writer_wake(), writer_wait() and writer_forget() may be called by any thread,
 * under the session's lock where they say so; all else belongs to the writer's own thread, which
 * is where the slots of a watch are called.
 */
#ifndef COLLECTOR_WRITER_H
#define COLLECTOR_WRITER_H

#include "collector/lane.h"
#include "schemas/log_writer.h"
#include "schemas/trace.h"

struct config;
struct watch_type;
struct writer;

/* Makes the thread; NULL without memory.  It lives until writer_quit(), with all signals blocked. */
struct writer *writer_start(const struct config *config, const struct watch_type *const *watches);
/* There is something to do.  Async-signal-safe. */
void writer_wake(struct writer *w);
/*
 * One whole round that begins after this call; with `close` the log is closed in it.  False:
 * `limit_ns` is over.
 */
bool writer_wait(struct writer *w, bool close, uint64_t limit_ns);
/* Closes the log and ends the thread, at most `limit_ns`; false: it goes on by itself. */
bool writer_quit(struct writer *w, uint64_t limit_ns);

/* ---- what a watch's drain() may call: ids are the log's own, 0 when a ceiling is reached ---- */

/* There is a log that rows can go to; it is opened by the first that asks.  Else all ids are 0. */
bool writer_ready(struct writer *w);
/* One is open now. */
bool writer_has_log(const struct writer *w);
/* The number of the log that rows go to now, from 1; ids of another number are void. */
uint64_t writer_log(const struct writer *w);
uint32_t writer_name(struct writer *w, const char *text, size_t len);
/* track->process is set here. */
uint32_t writer_track(struct writer *w, const struct track *track);
uint32_t writer_shape(struct writer *w, const struct shape *shape);
uint32_t writer_site(struct writer *w, const struct site *site);
/* device->process is set here. */
uint32_t writer_device(struct writer *w, const struct device *device);
/*
 * What is known of the process beyond its row: an attribute of it, in this log and in later ones
 * of this process until it is told again.  Needs no log.  `text` is copied.
 */
void writer_tell(struct writer *w, const char *key, const char *text, bool is_json);
/* The track's own name came late, or was changed. */
void writer_name_track(struct writer *w, uint32_t track, uint32_t name);
/* `row` need not hold what its site says. */
void writer_put(struct writer *w, const struct event *row, uint32_t site);
/* The same, faster, of one that holds the site's track and kind; writer_ready() was true for it. */
void writer_put_ready(struct writer *w, const struct event *row, uint32_t site);
/* Where rows of the open log may be put at once (log_writer.h); none where the log is full.  Good
 * until the next call here. */
struct log_places writer_places(const struct writer *w);
void writer_lose(struct writer *w, enum loss why, uint64_t count);
/* Time taken on the program's threads. */
void writer_own_cost(struct writer *w, uint64_t ns);
bool writer_wants(const struct writer *w, unsigned kind);
/* When the window began that is open; 0: none is. */
uint64_t writer_window_begin(const struct writer *w);
/* A window is open, or its end has not been dealt with. */
bool writer_is_recording(const struct writer *w);
const struct config *writer_config(const struct writer *w);

#endif

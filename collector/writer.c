/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/writer.h"

#include "collector/command.h"
#include "collector/config.h"
#include "collector/death.h"
#include "collector/session.h"
#include "collector/store.h"
#include "collector/watch.h"
#include "schemas/buf.h"
#include "schemas/log_writer.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEVER UINT64_MAX
#define MS UINT64_C(1000000)
enum {
	WATCHES = 8,
	PERIOD_MS = 100,     /* between two drains of rings that are nearly empty */
	GRACE_MS = 2,        /* for calls that were under way when a window ended */
	FLUSH_MS = 1000,     /* what a kill loses at most; also between anchors */
	BLOCKS_MAX = 4 << 20,
};

struct writer {
	const struct config *config;
	const struct watch_type *watches[WATCHES];
	size_t watch_count;
	bool opened, begun; /* the watches */
	pthread_t thread;
	_Atomic uint32_t bell; /* a futex: not 0 when there is something to do */

	/* Under `lock`. */
	pthread_mutex_t lock;
	pthread_cond_t done_more;
	uint64_t asked, done, close_asked;
	bool quit, finished;

	/* The thread's own: the log that is open, if one is. */
	uint64_t log_number;
	struct trace *trace;
	struct log_writer *log;
	struct store *store;
	struct buf blocks;
	uint32_t process;
	bool broken, full; /* no log can be had; no more fits in */
	uint64_t flushed_ns;

	/* The window that is open, if one is. */
	bool recording;
	struct window got;
	uint32_t window_row; /* of the trace; 0: none yet */
	uint64_t cost_ns, cpu_ns;
};

const struct config *writer_config(const struct writer *w)
{
	return w->config;
}

uint64_t writer_log(const struct writer *w)
{
	return w->log_number;
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

static void store_block(struct writer *w, const struct log_block *block, const uint8_t *bytes,
			size_t len)
{
	if (block->kind == LOG_EVENTS && w->full) {
		trace_lose(w->trace, w->process, LOSS_DISK, block->rows);
		return;
	}
	if (w->store->type->put(w->store, block->kind, bytes, len, NULL) == ST_OK)
		return;
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
	buf_clear(b);
}

/* ---- the log ---- */

static uint32_t put_attrs(struct writer *w, const char *const *pairs, size_t count)
{
	struct attr attrs[8];
	struct shape shape = { .fixed = attrs };
	size_t i;

	for (i = 0; i < count; i++) {
		if (!pairs[2 * i + 1] || !*pairs[2 * i + 1])
			continue;
		attrs[shape.fixed_count++] = (struct attr){
			.key = writer_name(w, pairs[2 * i], strlen(pairs[2 * i])),
			.type = ATTR_TEXT,
			.bits = writer_name(w, pairs[2 * i + 1], strlen(pairs[2 * i + 1])),
		};
	}
	return writer_shape(w, &shape);
}

static void put_process(struct writer *w)
{
	const struct config *c = w->config;
	const char *const about[] = { "tacho_version", TACHO_VERSION, "tacho_clock", tick_name(),
				      "launcher", c->rank.launcher };
	struct process p = { .pid = (uint32_t)getpid(), .rank = c->rank.rank,
			     .world_size = c->rank.world_size };
	struct buf command;

	buf_init(&command, 64 * 1024);
	command_read(&command);
	p.host = writer_name(w, c->host, strlen(c->host));
	p.command = writer_name(w, buf_text(&command), command.len);
	p.shape = put_attrs(w, about, sizeof(about) / sizeof(about[0]) / 2);
	w->process = trace_process(w->trace, &p, NULL);
	buf_release(&command);
}

static void put_anchor(struct writer *w)
{
	struct anchor a = { .process = w->process, .realtime_ns = tick_clock_ns(CLOCK_REALTIME),
			    .monotonic_ns = tick_clock_ns(CLOCK_MONOTONIC) };

	trace_anchor(w->trace, &a, NULL);
}

static void put_window(struct writer *w)
{
	struct window row = w->got;

	row.process = w->process;
	row.spec = writer_name(w, w->config->window, strlen(w->config->window));
	if (w->window_row)
		trace_set_window(w->trace, w->window_row, &row);
	else
		w->window_row = trace_window(w->trace, &row, NULL);
}

static void log_free(struct writer *w)
{
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

	TRY(trace_new(&w->trace, c->memory / 4, NULL));
	TRY(log_writer_new(&w->log, w->trace, c->memory / 4, NULL));
	TRY(store_file.open(&w->store, &place, NULL));
	return log_writer_begin(w->log, &w->blocks, NULL);
}

/* The log for a row that came; false: there is none to be had. */
static bool log_open(struct writer *w)
{
	if (w->trace)
		return true;
	if (w->broken || !w->recording)
		return false;
	buf_init(&w->blocks, BLOCKS_MAX);
	w->log_number++;
	if (log_make(w) != ST_OK) {
		log_free(w);
		w->broken = true;
		return false;
	}
	trace_provenance(w->trace)->epoch_known = true;
	w->full = false;
	put_process(w);
	put_window(w);
	w->flushed_ns = tick_clock_ns(CLOCK_MONOTONIC);
	put_anchor(w);
	return true;
}

static void log_flush(struct writer *w, uint64_t now_ns)
{
	log_writer_flush(w->log, &w->blocks, NULL);
	store_blocks(w);
	w->flushed_ns = now_ns;
}

static void log_close(struct writer *w)
{
	if (!w->trace)
		return;
	put_anchor(w);
	log_flush(w, 0); /* first, so that what did not fit is counted in the end */
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

void writer_put(struct writer *w, const struct event *row, uint32_t site)
{
	const struct site *s;
	struct event e = *row;

	if (!log_open(w))
		return;
	if (!site || w->full) {
		trace_lose(w->trace, w->process, site ? LOSS_DISK : LOSS_CEILING, 1);
		return;
	}
	s = trace_get_site(w->trace, site);
	e.track = s->track;
	e.name = s->name;
	e.shape = s->shape;
	e.kind = s->kind;
	e.subkind = s->subkind;
	if (log_writer_put(w->log, &e, site, 0, &w->blocks, NULL) != ST_OK)
		trace_lose(w->trace, w->process, LOSS_CEILING, 1);
	if (w->blocks.len)
		store_blocks(w);
}

/* ---- windows ---- */

static uint64_t cpu_now(void)
{
	return tick_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void open_watches(struct writer *w)
{
	size_t i, kept = 0;

	if (w->opened)
		return;
	w->opened = true;
	for (i = 0; i < w->watch_count; i++) {
		const struct watch_type *t = w->watches[i];

		if (!t->open || t->open(w->config, NULL) == ST_OK)
			w->watches[kept++] = t;
	}
	w->watch_count = kept;
}

static void begin_watches(struct writer *w, uint64_t now_ns)
{
	size_t i;

	open_watches(w);
	for (i = 0; i < w->watch_count && !w->begun; i++)
		if (w->watches[i]->begin)
			w->watches[i]->begin(now_ns, NULL);
	w->begun = true;
}

static void end_watches(struct writer *w, uint64_t now_ns)
{
	size_t i;

	for (i = 0; i < w->watch_count && w->begun; i++)
		if (w->watches[i]->end)
			w->watches[i]->end(now_ns, now_ns + FLUSH_MS * MS);
	w->begun = false;
}

static unsigned drain_watches(struct writer *w)
{
	uint64_t now_ns;
	unsigned fullest = 0, full;
	size_t i;

	tick_knot();
	now_ns = tick_to_ns(tick_now());
	for (i = 0; i < w->watch_count; i++) {
		full = w->watches[i]->drain ? w->watches[i]->drain(w, now_ns) : 0;
		fullest = full > fullest ? full : fullest;
	}
	return fullest;
}

static void window_begins(struct writer *w, const struct session_change *c)
{
	tick_knot();
	w->recording = true;
	w->broken = false;
	w->cost_ns = 0;
	w->cpu_ns = cpu_now();
	w->got = (struct window){ .begin_ns = tick_to_ns(c->at) };
	w->window_row = 0;
	if (w->trace)
		put_window(w);
	begin_watches(w, w->got.begin_ns);
}

static void wait_for_calls(void)
{
	struct timespec t = { .tv_nsec = GRACE_MS * MS };

	nanosleep(&t, NULL);
}

static void window_ends(struct writer *w, const struct session_change *c)
{
	size_t i;

	wait_for_calls();
	tick_knot();
	w->got.end_ns = tick_to_ns(c->at);
	w->got.cut_short = c->cut_short;
	end_watches(w, w->got.end_ns);
	drain_watches(w);
	for (i = 0; i < w->watch_count; i++)
		if (w->watches[i]->close_window)
			w->watches[i]->close_window(w, c->window);
	w->got.own_ns = w->cost_ns + cpu_now() - w->cpu_ns;
	w->recording = false;
	if (!w->trace)
		return;
	put_window(w);
	log_flush(w, tick_clock_ns(CLOCK_MONOTONIC));
}

static void take_change(struct writer *w, const struct session_change *c)
{
	if (c->kind == CHANGE_WARMUP)
		begin_watches(w, tick_to_ns(c->at));
	else if (c->kind == CHANGE_BEGIN)
		window_begins(w, c);
	else if (c->kind == CHANGE_CANCEL)
		end_watches(w, tick_to_ns(c->at));
	else if (w->recording)
		window_ends(w, c);
	if (c->final)
		log_close(w);
}

/* ---- the thread ---- */

void writer_wake(struct writer *w)
{
	if (!atomic_exchange_explicit(&w->bell, 1, memory_order_release))
		syscall(SYS_futex, &w->bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wait_for_bell(struct writer *w, uint64_t limit_ns)
{
	struct timespec t = { .tv_sec = (time_t)(limit_ns / 1000000000u),
			      .tv_nsec = (long)(limit_ns % 1000000000u) };

	/* woken for nothing is no harm: there is a round more */
	if (limit_ns && !atomic_load_explicit(&w->bell, memory_order_acquire))
		syscall(SYS_futex, &w->bell, FUTEX_WAIT_PRIVATE, 0,
			limit_ns == NEVER ? NULL : &t, NULL, 0);
	atomic_exchange_explicit(&w->bell, 0, memory_order_acquire);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_round(struct writer *w, unsigned fullest)
{
	uint64_t next = session_next_ns(), now = tick_clock_ns(CLOCK_REALTIME);
	uint64_t wait = NEVER, due;
	size_t i;

	if (next != NEVER)
		wait = next > now ? next - now : 0;
	if (!w->recording)
		return wait;
	wait = least(wait, fullest > 40 ? MS : fullest > 10 ? 10 * MS : PERIOD_MS * MS);
	now = tick_to_ns(tick_now());
	for (i = 0; i < w->watch_count; i++) {
		due = w->watches[i]->due ? w->watches[i]->due(now) : NEVER;
		wait = least(wait, due);
	}
	return wait;
}

/* Returns how full the fullest ring was. */
static unsigned work(struct writer *w)
{
	struct session_change change;
	unsigned fullest = 0;
	uint64_t now_ns;

	if (tick_clock_ns(CLOCK_REALTIME) >= session_next_ns())
		session_feed(WINDOW_TIME, tick_now(), 0, NULL);
	while (session_next_change(&change))
		take_change(w, &change);
	if (w->recording)
		fullest = drain_watches(w);
	now_ns = tick_clock_ns(CLOCK_MONOTONIC);
	if (!w->trace || now_ns - w->flushed_ns < FLUSH_MS * MS)
		return fullest;
	put_anchor(w);
	log_flush(w, now_ns);
	return fullest;
}

static void close_watches(struct writer *w)
{
	size_t i;

	for (i = 0; i < w->watch_count && w->opened; i++)
		if (w->watches[i]->close)
			w->watches[i]->close(w, tick_to_ns(tick_now()) + FLUSH_MS * MS);
	w->opened = false;
}

static void flush_now(struct writer *w, bool close)
{
	if (!w->trace)
		return;
	if (close && !w->recording)
		log_close(w);
	else
		log_flush(w, tick_clock_ns(CLOCK_MONOTONIC));
}

/* One round; false: it was the last. */
static bool serve(struct writer *w, unsigned *fullest)
{
	uint64_t asked, close_asked;
	bool quit, waited;

	pthread_mutex_lock(&w->lock);
	asked = w->asked;
	waited = asked != w->done;
	close_asked = w->close_asked;
	w->close_asked = 0;
	quit = w->quit;
	pthread_mutex_unlock(&w->lock);

	if (death_came()) {
		session_feed(WINDOW_EXIT, tick_now(), 0, NULL);
		quit = true;
	}
	*fullest = work(w);
	if (quit) {
		close_watches(w);
		log_close(w);
	} else if (waited) {
		flush_now(w, close_asked != 0);
	}

	pthread_mutex_lock(&w->lock);
	w->done = asked;
	w->finished = quit;
	pthread_cond_broadcast(&w->done_more);
	pthread_mutex_unlock(&w->lock);
	return !quit;
}

static void *writer_main(void *arg)
{
	struct writer *w = arg;
	unsigned fullest = 0;

	pthread_setname_np(pthread_self(), "tacho");
	while (serve(w, &fullest))
		wait_for_bell(w, next_round(w, fullest));
	if (death_came())
		death_go_on();
	return NULL;
}

static bool make_thread(struct writer *w)
{
	sigset_t all, before;
	int failed;

	/* the program's handlers run on its own threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&w->thread, NULL, writer_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !failed;
}

struct writer *writer_start(const struct config *config, const struct watch_type *const *watches)
{
	struct writer *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;

	if (!w)
		return NULL;
	w->config = config;
	while (watches[w->watch_count] && w->watch_count < WATCHES) {
		w->watches[w->watch_count] = watches[w->watch_count];
		w->watch_count++;
	}
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->done_more, &attr);
	pthread_condattr_destroy(&attr);
	if (!make_thread(w)) {
		free(w);
		return NULL;
	}
	death_watch(w);
	return w;
}

static struct timespec deadline(uint64_t limit_ns)
{
	uint64_t at = tick_clock_ns(CLOCK_MONOTONIC) + limit_ns;

	return (struct timespec){ .tv_sec = (time_t)(at / 1000000000u),
				  .tv_nsec = (long)(at % 1000000000u) };
}

bool writer_wait(struct writer *w, bool close, uint64_t limit_ns)
{
	struct timespec until = deadline(limit_ns);
	uint64_t ticket;
	bool done;

	pthread_mutex_lock(&w->lock);
	ticket = ++w->asked;
	if (close)
		w->close_asked = ticket;
	writer_wake(w);
	while (w->done < ticket && !w->finished)
		if (pthread_cond_timedwait(&w->done_more, &w->lock, &until) == ETIMEDOUT)
			break;
	done = w->done >= ticket || w->finished;
	pthread_mutex_unlock(&w->lock);
	return done;
}

bool writer_quit(struct writer *w, uint64_t limit_ns)
{
	struct timespec until = deadline(limit_ns);
	bool finished;

	pthread_mutex_lock(&w->lock);
	w->quit = true;
	writer_wake(w);
	while (!w->finished)
		if (pthread_cond_timedwait(&w->done_more, &w->lock, &until) == ETIMEDOUT)
			break;
	finished = w->finished;
	pthread_mutex_unlock(&w->lock);
	death_unwatch();
	if (finished)
		pthread_join(w->thread, NULL);
	return finished;
}

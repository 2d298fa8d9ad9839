/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe for CUPTI: GPU work and the CUDA calls that launch it.
 *
 * It starts in cuInit(), which calls InitializeInjection() if CUDA_INJECTION64_PATH names this
 * library.  In a process that loaded the library in another way, it starts at the first drain after
 * CUDA was initialised.  Between windows no activity kind is enabled.
 */
#include "collector/config/config.h"
#include "collector/probe/cupti/clock.h"
#include "collector/probe/cupti/pool.h"
#include "collector/probe/cupti/rows.h"
#include "collector/probe/cupti/internal.h"
#include "collector/probe/cupti/tables.h"
#include "collector/probe/cupti/client.h"
#include "collector/session/session.h"
#include "collector/probe/probe.h"
#include "collector/store/writer.h"
#include "schemas/base/buf.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS            UINT64_C(1000000)
#define EXIT_LIMIT_NS (2000 * MS)
#define CALL_LIMIT_NS (10000 * MS) /* limit of waiting for a call of CUPTI at the exit */
enum {
	FLUSH_MS = 1000,       /* period of flushes, which bounds the loss at a kill */
	BATCH = 32,            /* buffers whose tables are read before events of any of them */
	REQUEST_COST_NS = 100, /* estimated cost of pool_request() on a program's thread */
	TEXT_MAX = 16 * 1024,
	LATE_MS = 1,
	QUIET_S = 3,        /* seconds without a buffer until callbacks are registered again */
	QUIET_MAX_S = 48,   /* limit of QUIET_S, which doubles, as a program may be idle */
	RETRY_MS = 5000,    /* pause before another attempt to subscribe to CUPTI */
	STORM = 10000,      /* driver calls a second from which on they may be noise */
	STORM_SHARE = 1000, /* they are if fewer than 1 in 1000 is outside of runtime calls */
	ORPHANS = 16,       /* kernels with unknown calls until driver calls are recorded again */
};

int InitializeInjection(void) __attribute__((visibility("default")));

static struct {
	const struct config *config;
	_Atomic bool wanted;   /* a window is open or warms up */
	_Atomic bool injected; /* cuInit() of this process has called InitializeInjection() */
	_Atomic(struct writer *) writer; /* the writer that is woken when buffers run low */
	bool is_child;       /* child of a fork, which can use CUDA only after its own cuInit() */
	uint64_t gave_up_ns; /* time at which CUPTI refused to start; 0: it did not */
	_Atomic uint64_t at_cuda_begins_ns; /* cupti_client.on_ns of a start within cuInit() */
	_Atomic unsigned exit_hooks;
	bool was_alive;   /* CUDA was initialized when the window or its warmup began */
	uint64_t late_ns; /* longest delay of a start after its window began */
	uint64_t flushed_ns, requests;
	unsigned reported_version; /* version of the client's report that the log has */
	uint64_t moved;            /* sum of requested and completed buffers at the last check */
	uint64_t moved_ns, quiet_s, patience_s, steps;
	uint64_t lost;
	struct cupti_row_counts weighed;
	bool needs_driver;
	_Atomic pid_t hooked; /* process that registered last_words() */
} state;

/* ---- start ---- */

static void last_words(void)
{
	session_exit(EXIT_LIMIT_NS);
	/* The handlers after this one tear down CUPTI, which must not happen during a call of our
	 * writer. */
	if (getpid() == state.hooked && !cupti_client_is_dead())
		cupti_client_await_quiet(CALL_LIMIT_NS);
}

/*
 * Registers last_words().  Registered late, it runs before CUDA's own handlers, so that the last
 * buffers can be read.  It is registered with the first buffer, and also at the start, because a
 * program may end before we notice that buffer.
 */
static void hook_exit(unsigned so_far)
{
	state.hooked = getpid();
	if (atomic_compare_exchange_strong(&state.exit_hooks, &so_far, so_far + 1))
		atexit(last_words);
}

/* Needed because CUDA_INJECTION64_PATH may name another tool, or this library may be loaded after
 * CUDA's start. */
bool cupti_is_needed(void)
{
	const struct config *c = session_config();

	return c && config_wants_gpu(c) && !cupti_client_is_dead() &&
	       (!state.is_child || atomic_load(&state.injected)) && cuda_is_initialized();
}

/* Loads the library of another tool that CUDA would have loaded if tacho-record had not named
 * ours. */
static void inject_next(void)
{
	const char *path = getenv("TACHO_NEXT_INJECTION");
	void *handle = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*next)(void) = NULL;

	if (handle)
		*(void **)&next = dlsym(handle, "InitializeInjection");
	if (next && next != InitializeInjection)
		next();
}

int InitializeInjection(void)
{
	const struct config *c = session_config();
	static _Atomic bool was_here;
	sigset_t all, before;

	if (!atomic_exchange(&was_here, true))
		inject_next();
	if (!c || cupti_client_is_dead())
		return 1;
	bool is_first = !atomic_exchange(&state.injected, true); /* programs may call it, too */

	session_stop_working(); /* a data-loader worker would not use CUDA */
	if (!config_wants_gpu(c))
		return 1;
	session_needs_helper();
	if (!session_word_now())
		return 1;
	/* Threads that CUPTI creates must not receive signals for which the program's threads
	 * wait. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* An open window must begin before the first work, so it starts on this thread, for which
	 * CUDA waits. */
	if (!session_is_active() || !cupti_client_start(c))
		cupti_client_load(c);
	else if (is_first)
		atomic_store(&state.at_cuda_begins_ns, cupti_client.on_ns);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	hook_exit(0);
	session_thread(true); /* starts the helper */
	/* There was no helper yet to end a window that ended while this thread started it. */
	if (!session_is_active())
		cupti_client_stop(0);
	return 1;
}

static void try_start(void)
{
	uint64_t now_ns = tick_clock_ns(CLOCK_MONOTONIC);

	if (cupti_client_is_on() || cupti_client_is_dead())
		return;
	if (state.gave_up_ns &&
	    (!cupti_client.is_loaded || now_ns - state.gave_up_ns < RETRY_MS * MS))
		return;
	if (state.is_child && !atomic_load(&state.injected))
		return;
	if (!cuda_is_initialized())
		return;
	if (cupti_client_start(state.config))
		state.gave_up_ns = cupti_client_is_on() ? 0 : now_ns;
	hook_exit(0);
}

static void wake_writer(void)
{
	struct writer *w = atomic_load(&state.writer);

	if (w)
		writer_wake(w);
}

static enum status cupti_open(const struct config *config, struct error *err)
{
	state.config = config;
	if (!config_wants_gpu(config))
		return fail(err, ST_ABSENT, NOWHERE, "no GPU events are requested");
	return ST_OK;
}

static enum status cupti_begin(uint64_t now_ns, struct error *err)
{
	state.gave_up_ns = 0;
	state.quiet_s = 0;
	state.patience_s = QUIET_S;
	state.late_ns = 0;
	state.needs_driver = false;
	atomic_store(&state.wanted, true);
	state.was_alive = cuda_is_initialized();
	try_start();
	return ST_OK;
}

static void cupti_end(uint64_t now_ns, uint64_t deadline_ns)
{
	uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

	atomic_store(&state.wanted, false);
	cupti_client_stop(deadline_ns ? tick_clock_ns(CLOCK_MONOTONIC) + left_ns : 0);
}

/* ---- attributes of the log ---- */

__attribute__((format(printf, 2, 3))) static void add_sentence(struct buf *b, const char *format,
							       ...)
{
	va_list args;

	if (b->len)
		buf_put_text(b, "; ");
	va_start(args, format);
	buf_vputf(b, format, args);
	va_end(args);
}

static void set_attribute(struct writer *w, const char *key, struct buf *b, bool is_json)
{
	if (b->len && buf_status(b, NULL) == ST_OK)
		writer_set_attribute(w, key, buf_text(b), is_json);
	buf_clear(b);
}

/* Appends what is missing in this recording or may be wrong. */
static void put_doubts(struct buf *b, const struct cupti_report *t, uint64_t late)
{
	if (late)
		add_sentence(b, "recording of the GPU began %.1f ms after the window: %s",
			     (double)late / 1e6,
			     t->refused ? "another tool recorded before" : "a warm-up helps");
	if (t->foreign)
		add_sentence(b,
			     "%llu buffers of another tool came here: its own records are missing "
			     "there",
			     (unsigned long long)t->foreign);
	if (t->never_came)
		add_sentence(b,
			     "%llu buffers did not come back: another tool may have taken over, or "
			     "work never ended",
			     (unsigned long long)t->never_came);
	if (t->other[0])
		add_sentence(b,
			     "another copy of CUPTI is loaded, %s: what its users record is not "
			     "seen here, nor is it known whether both record well",
			     t->other);
	if (t->taken_ns)
		add_sentence(b,
			     "nothing was recorded for %.1f s with steps, until recording was "
			     "enabled again: another tool may have switched it off",
			     (double)t->taken_ns / 1e9);
	if (t->left_behind)
		add_sentence(b, "the GPU had work of a window to do longer than was waited for");
	if (t->clock_is_strange)
		add_sentence(b,
			     "CUPTI's clock was %.3f s off: another tool set it; work of that "
			     "time has no times where it ran at another rate",
			     (double)cupti_clock_off_ns() / 1e9);
	if (t->no_thread_ids)
		add_sentence(b, "threads of calls are told by other numbers than the kernel's");
}

/* Returns how late recording began in a window in which CUDA was in use from the start, in ns. */
static uint64_t late_ns(const struct writer *w)
{
	uint64_t begin_ns = writer_window_begin(w), on_ns = cupti_client.on_ns + tick_base_ns();

	if (cupti_client.on_ns == atomic_load(&state.at_cuda_begins_ns))
		return 0; /* there was no work before cuInit() */
	if (begin_ns && state.was_alive && on_ns > begin_ns + LATE_MS * MS)
		state.late_ns = on_ns - begin_ns > state.late_ns ? on_ns - begin_ns : state.late_ns;
	return state.late_ns;
}

static void set_attributes(struct writer *w)
{
	const struct cupti_client *t = &cupti_client;
	unsigned reported_version = cupti_client_report_version();
	struct buf b;

	if (reported_version == state.reported_version)
		return;
	state.reported_version = reported_version;
	buf_init(&b, TEXT_MAX);
	if (t->is_loaded) {
		char version[16];

		cupti_version_text(t->lib.api_version, version);
		buf_putf(&b, "%s (%u)", version, t->lib.api_version);
		set_attribute(w, "cupti_version", &b, false);
		writer_set_attribute(w, "cupti_library", t->lib.path, false);
		cupti_kinds_put_json(&t->kinds, &b);
		set_attribute(w, "cupti_kinds", &b, true);
		unsigned when = t->report.clock_is_strange ? FAULT_CLOCK : 0;
		const char *text;

		if (cupti_row_counts()->nodes)
			when |= FAULT_GRAPHS;
		if (t->report.starts > 1)
			when |= FAULT_SECOND_WINDOW;
		for (unsigned i = 0; (text = cupti_fault_message(t->lib.api_version, when, i)); i++)
			add_sentence(&b, "%s", text);
		set_attribute(w, "cupti_warnings", &b, false);
		writer_set_attribute(w, "cupti_graphs", t->report.graph_level ? "graph" : "node",
				     false);
		writer_set_attribute(w, "cupti_detached", t->report.detaches ? "yes" : "no", false);
		put_doubts(&b, &t->report, late_ns(w));
		set_attribute(w, "cupti_doubts", &b, false);
		if (t->report.behind_ns)
			buf_putf(&b, "the GPU was %.1f s behind when a window ended",
				 (double)t->report.behind_ns / 1e9);
		set_attribute(w, "cupti_behind", &b, false);
	}
	writer_set_attribute(w, "cupti_problem", t->report.problem, false);
	buf_release(&b);
}

/* ---- draining ---- */

static uint64_t steps_so_far(void)
{
	uint64_t sum = 0;

	for (struct thread_state *thread = session_threads(); thread; thread = thread_next(thread))
		sum += GET_RELAXED(thread->step_number);
	return sum;
}

/*
 * Another tool may replace our callbacks or disable our kinds.  Before CUDA 13.2 CUPTI does not
 * report this; the only sign is that no buffer comes or goes.  That is normal, too, while a GPU is
 * behind, because a flush keeps a buffer in which one record is incomplete.  So everything is
 * enabled again, and only later records show whether something was missed.
 */
static void look_for_others(void)
{
	uint64_t now_ns = tick_to_ns(tick_now()), moved = pool_completed() + pool_requested();
	uint64_t steps = steps_so_far();

	if (moved != state.moved || !state.moved_ns) {
		state.quiet_s = 0;
		state.patience_s = QUIET_S;
		state.moved_ns = now_ns;
		state.steps = steps;
	} else if (++state.quiet_s >= state.patience_s) {
		cupti_client_repair();
		if (steps > state.steps + 1)
			cupti_rows_watch(state.moved_ns, now_ns);
		state.quiet_s = 0;
		state.patience_s =
			state.patience_s < QUIET_MAX_S ? 2 * state.patience_s : QUIET_MAX_S;
	}
	state.moved = moved;
}

/*
 * A CUPTI that cannot exclude single calls (before 12.5) records every call of the driver,
 * including the many within calls of the runtime and noise.  While nearly all are of these, driver
 * calls are not recorded.  Kernels whose calls are unknown show that the driver launched them, so
 * driver calls are recorded again.
 */
static void weigh_driver_calls(void)
{
	const struct cupti_row_counts *now = cupti_row_counts(), *last = &state.weighed;
	uint64_t calls = now->driver - last->driver, only = now->driver_only - last->driver_only;
	uint64_t kernels = now->kernels - last->kernels, orphans = now->orphans - last->orphans;

	if (cupti_client.lib.enable_driver_call || state.needs_driver)
		return;
	if (cupti_client.kinds.on[CUPTI_DRIVER_CALL]) {
		if (calls > STORM && only < calls / STORM_SHARE)
			cupti_client_record_driver(false);
	} else if (orphans > ORPHANS && orphans > kernels / 4) {
		state.needs_driver = cupti_client_record_driver(true);
	}
	state.weighed = *now;
}

static void flush_sometimes(void)
{
	uint64_t now_ns = tick_clock_ns(CLOCK_MONOTONIC);

	if (!cupti_client_is_on() || now_ns - state.flushed_ns < FLUSH_MS * MS)
		return;
	if (state.flushed_ns) {
		cupti_client_flush();
		look_for_others();
		weigh_driver_calls();
	}
	state.flushed_ns = now_ns;
}

static size_t take_batch(struct pool_buffer batch[BATCH])
{
	size_t count = 0;

	while (count < BATCH && pool_next(&batch[count]))
		count++;
	for (size_t i = 0; i < count; i++)
		cupti_rows_tables(&batch[i]);
	return count;
}

static void put_buffers(struct writer *w)
{
	uint64_t begin_ns = writer_window_begin(w), warmup_ns = 0;
	struct pool_buffer batch[BATCH];
	size_t count;

	if (begin_ns)
		warmup_ns = cupti_client.on_ns + tick_base_ns();
	while ((count = take_batch(batch)) != 0)
		for (size_t i = 0; i < count; i++) {
			cupti_rows_put(w, &batch[i], warmup_ns, begin_ns);
			pool_give_back(&batch[i]);
		}
	if (writer_has_log(w))
		cupti_tables_put(w);
}

static void hand_over(struct writer *w)
{
	uint64_t dropped = cupti_client_take_dropped(), refused = cupti_client_take_refused();
	uint64_t requests = pool_requested();

	writer_lose(w, LOSS_CUPTI, dropped);
	writer_lose(w, LOSS_BUFFER, refused);
	writer_own_cost(w, (requests - state.requests) * REQUEST_COST_NS);
	state.requests = requests;
	state.lost += dropped + refused;
}

static unsigned cupti_drain(struct writer *w, uint64_t now_ns)
{
	if (cupti_client_is_dead())
		return 0;
	if (atomic_load(&state.wanted))
		try_start();
	if (cupti_client_was_on()) {
		atomic_store(&state.writer, w);
		cupti_client_on_low_buffers(wake_writer);
		if (pool_requested())
			hook_exit(1);
		cupti_clock_note(false);
		flush_sometimes();
		put_buffers(w);
		cupti_desc_name_streams(w);
		hand_over(w);
		uint64_t missed_ns = atomic_load(&state.wanted) ? 0 : cupti_rows_missed();
		if (missed_ns)
			cupti_client_note_taken(missed_ns);
	}
	set_attributes(w);
	return pool_fullness();
}

/* Returns buffers to the pool during a warmup, so that they do not run out. */
static void cupti_warmup(void)
{
	struct pool_buffer batch[BATCH];
	size_t count;

	if (cupti_client_is_dead())
		return;
	try_start();
	if (!cupti_client_was_on())
		return;
	cupti_clock_note(false);
	while ((count = take_batch(batch)) != 0)
		for (size_t i = 0; i < count; i++) {
			cupti_rows_drop(&batch[i]);
			pool_give_back(&batch[i]);
		}
	cupti_client_take_dropped();
	cupti_client_take_refused();
}

static void cupti_close_window(struct writer *w, uint64_t window)
{
	if (!cupti_client_was_on() || cupti_client_is_dead())
		return;
	cupti_rows_end(w);
	cupti_client_detach();
	set_attributes(w);
	if (state.config->graphs_level == GRAPHS_AUTO && state.lost)
		cupti_client_graph_level();
	state.lost = 0;
	state.moved_ns = 0;
	state.flushed_ns = 0;
}

static void cupti_close(struct writer *w, uint64_t deadline_ns)
{
	cupti_client_on_low_buffers(NULL);
	cupti_client_stop(tick_clock_ns(CLOCK_MONOTONIC) + (deadline_ns - tick_to_ns(tick_now())));
	if (cupti_client_was_on() && !cupti_client_is_dead() && writer_has_log(w)) {
		put_buffers(w);
		hand_over(w);
		cupti_rows_end(w);
	}
	cupti_client_detach();
}

static uint64_t cupti_clock(void)
{
	return cupti_client_was_on() && !cupti_client_is_dead() ? cupti_clock_now() : 0;
}

static void cupti_forked(void)
{
	cupti_client_forked();
	cupti_rows_forget();
	cupti_tables_forget();
	atomic_store(&state.injected, false);
	atomic_store(&state.wanted, false);
	atomic_store(&state.writer, NULL);
	state.is_child = true;
	state.gave_up_ns = 0;
	state.reported_version = cupti_client_report_version();
}

/* ---- doctor ---- */

static void try_kinds(const struct cupti_lib *lib, struct buf *out)
{
	struct cupti_subscriber *got = NULL;
	const char *text = NULL;
	char text_space[160];
	int result = CUPTI_OK;

	if (lib->subscribe && lib->unsubscribe)
		result = lib->subscribe(&got, NULL, NULL);
	if (result == CUPTI_OK)
		result = lib->enable(CUPTI_KERNEL);
	if (result == CUPTI_OK)
		lib->disable(CUPTI_KERNEL);
	else
		text = cupti_result_message(lib, result, text_space);
	if (got)
		lib->unsubscribe(got);
	buf_putf(out, "GPU work  %s\n", text ? text : "can be recorded");
}

static void cupti_doctor(struct buf *out)
{
	const struct config *c = session_config();
	struct cupti_lib lib;
	struct error err;
	const char *text;
	char version[16];

	if (cupti_lib_open(&lib, c ? c->cupti_lib : "", &err) != ST_OK) {
		buf_putf(out, "CUPTI     %s\n", err.text);
		return;
	}
	cupti_version_text(lib.api_version, version);
	buf_putf(out, "CUPTI     %s (%u), %s\n", version, lib.api_version, lib.path);
	for (unsigned i = 0; (text = cupti_fault_message(lib.api_version, FAULT_ANY, i)); i++)
		buf_putf(out, "          %s\n", text);
	try_kinds(&lib, out);
}

const struct probe_type probe_cupti = {
	.name = "cupti",
	.help = "work of the GPUs and calls of CUDA",
	.open = cupti_open,
	.begin = cupti_begin,
	.end = cupti_end,
	.behind = cupti_client_is_behind,
	.drain = cupti_drain,
	.warmup = cupti_warmup,
	.close_window = cupti_close_window,
	.clock = cupti_clock,
	.forked = cupti_forked,
	.close = cupti_close,
	.doctor = cupti_doctor,
};

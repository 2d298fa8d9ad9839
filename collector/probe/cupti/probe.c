/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe for CUPTI: GPU work and the CUDA calls that launch it.
 *
 * It starts in cuInit(), which calls InitializeInjection() where CUDA_INJECTION64_PATH names this
 * library.  In a process that has the library by other ways it starts at the first drain after CUDA
 * was initialized.  Between windows no activity kind is enabled.
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
#define CALL_LIMIT_NS (10000 * MS) /* of a call of CUPTI within which the process ends */
enum {
	FLUSH_MS = 1000,       /* what CUPTI holds at a kill at most */
	BATCH = 32,            /* buffers of which tables are taken before the events of any */
	REQUEST_COST_NS = 100, /* of pool_request() on a program's thread, about */
	TEXT_MAX = 16 * 1024,
	LATE_MS = 1,
	QUIET_S = 3,        /* without any buffer, until our callbacks are registered again */
	QUIET_MAX_S = 48,   /* it doubles each time, as a program may have nothing to do */
	RETRY_MS = 5000,    /* until another tool is asked again to let go of CUPTI */
	STORM = 10000,      /* calls of the driver in a second, */
	STORM_SHARE = 1000, /* of which one in so many says what no call of the runtime says */
	ORPHANS = 16,       /* kernels whose call is not known: the driver's are wanted again */
};

int InitializeInjection(void) __attribute__((visibility("default")));

static struct {
	const struct config *config;
	_Atomic bool wanted;             /* a window is open, or warms up */
	_Atomic bool injected;           /* by cuInit() of this process */
	_Atomic(struct writer *) writer; /* to be waked */
	bool is_child;       /* of a fork: its CUDA is alive only if that was called here */
	uint64_t gave_up_ns; /* when CUPTI refused; 0: it did not */
	_Atomic uint64_t at_cuda_begins_ns; /* cupti_client.on_ns of a start within cuInit() */
	_Atomic unsigned exit_hooks;
	bool was_alive;   /* CUDA was initialized when the window or its warmup began */
	uint64_t late_ns; /* the latest that it was */
	uint64_t flushed_ns, requests;
	unsigned reported_version; /* version of the client's report that the log has */
	uint64_t log;              /* the log that has it */
	uint64_t moved;            /* buffers requested and completed, at the last look */
	uint64_t moved_ns, quiet_s, patience_s, steps;
	uint64_t lost;
	struct cupti_row_counts weighed;
	bool needs_driver;
	_Atomic pid_t hooked; /* the process whose exit it is */
} state;

/* ---- coming to life ---- */

static void last_words(void)
{
	session_exit(EXIT_LIMIT_NS);
	/* what is behind us takes CUPTI to pieces: not while our writer is in it */
	if (getpid() == state.hooked && !cupti_client_is_dead())
		cupti_client_await_quiet(CALL_LIMIT_NS);
}

/*
 * Registered late, it runs before what CUDA has registered: the last buffers can be had.  Once with
 * the first buffer, but also at the start: a program may end before we see that buffer.
 */
static void hook_exit(unsigned so_far)
{
	state.hooked = getpid();
	if (atomic_compare_exchange_strong(&state.exit_hooks, &so_far, so_far + 1))
		atexit(last_words);
}

/* A tool of others may be named where CUDA looks for us, or we may have come later than CUDA. */
bool cupti_is_needed(void)
{
	const struct config *c = session_config();

	return c && config_wants_gpu(c) && !cupti_client_is_dead() &&
	       (!state.is_child || atomic_load(&state.injected)) && cuda_is_initialized();
}

/* The library of another tool that CUDA would have loaded, had tacho-record not named ours. */
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
	bool is_first = !atomic_exchange(&state.injected, true); /* a program may call it, too */

	session_stop_working(); /* a worker of a data loader has no need of CUDA */
	if (!config_wants_gpu(c))
		return 1;
	session_needs_helper();
	if (!session_word_now())
		return 1;
	/* threads that CUPTI makes get no signal that the program's threads wait for */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* a window that is open begins before the first work, on the thread that CUDA waits for */
	if (!session_is_active() || !cupti_client_start(c))
		cupti_client_load(c);
	else if (is_first)
		atomic_store(&state.at_cuda_begins_ns, cupti_client.on_ns);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	hook_exit(0);
	session_thread(true); /* the helper */
	/* a window that ended while this thread started it found no helper that would end it */
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

/* ---- telling ---- */

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

/* What is missing in this recording, or may be wrong. */
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

/* Of a window in which CUDA was alive from the start. */
static uint64_t late_ns(const struct writer *w)
{
	uint64_t begin_ns = writer_window_begin(w), on_ns = cupti_client.on_ns + tick_base_ns();

	if (cupti_client.on_ns == atomic_load(&state.at_cuda_begins_ns))
		return 0; /* there was no work before */
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
 * Another tool may put its callbacks in the place of ours, or disable our kinds.  Before CUDA 13.2
 * CUPTI does not tell; what shows is that no buffer comes or goes.  That is normal, too, while a
 * GPU is behind, because a flush leaves a buffer in which one record is incomplete.  So all is
 * enabled again, and only records can tell later whether something was missed.
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
 * A CUPTI that cannot leave out single calls (before 12.5) makes a record of every call of the
 * driver, also of the many that the runtime's calls and noise consist of.  While nearly all are of
 * these, none is recorded.  A kernel whose call is unknown shows that the driver launched it.
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

/* Buffers do not run out while nothing is kept. */
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

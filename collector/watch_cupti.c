/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the GPU did and who asked for it, from CUPTI.
 *
 * It begins in cuInit(), which calls InitializeInjection() where CUDA_INJECTION64_PATH names this
 * library; else, in a process that has it by other ways, at the first look after CUDA came to life.
 * Between windows nothing of CUPTI is on.
 */
#include "collector/config.h"
#include "collector/cupti/clock.h"
#include "collector/cupti/plan.h"
#include "collector/cupti/pool.h"
#include "collector/cupti/rows.h"
#include "collector/cupti/say.h"
#include "collector/cupti/site.h"
#include "collector/cupti/tables.h"
#include "collector/cupti/trace.h"
#include "collector/session.h"
#include "collector/watch.h"
#include "collector/writer.h"
#include "schemas/buf.h"
#include "schemas/records.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define EXIT_LIMIT_NS (2000 * MS)
enum {
	FLUSH_MS = 1000,     /* what CUPTI holds at a kill at most */
	BATCH = 32,          /* buffers of which tables are taken before the events of any */
	REQUEST_COST_NS = 100, /* of pool_request() on a program's thread, about */
	TEXT_MAX = 16 * 1024,
	LATE_MS = 1,
};

int InitializeInjection(void) __attribute__((visibility("default")));

static struct {
	const struct config *config;
	_Atomic bool wanted;   /* a window is open, or warms up */
	_Atomic bool injected; /* by cuInit() of this process */
	_Atomic(struct writer *) writer; /* to be waked */
	bool is_child;         /* of a fork: its CUDA is alive only if that was called here */
	bool gave_up;          /* until the next window */
	_Atomic unsigned exit_hooks;
	bool was_alive;        /* CUDA, when the window began or its warm-up did */
	uint64_t late_ns;      /* the latest that it was */
	uint64_t flushed_ns, requests;
	unsigned news;         /* as told */
	uint64_t log;          /* that it was told to */
	/* A second with steps and without buffers, after there were some. */
	uint64_t completed, steps, lost;
} state;

/* ---- coming to life ---- */

static void last_words(void)
{
	session_exit(EXIT_LIMIT_NS);
}

/*
 * Registered late, it runs before what CUDA has registered: the last buffers can be had.  Once with
 * the first buffer, but also at the start: a program may end before we see that buffer.
 */
static void hook_exit(unsigned so_far)
{
	if (atomic_compare_exchange_strong(&state.exit_hooks, &so_far, so_far + 1))
		atexit(last_words);
}

static bool wants_cupti(const struct config *c)
{
	struct cupti_choice choice = { .kinds_mask = c->kinds_mask, .memory = c->device_memory };

	return cupti_kinds_any(&choice);
}

int InitializeInjection(void)
{
	const struct config *c = session_config();

	if (!c || cupti_trace_is_dead())
		return 1;
	atomic_store(&state.injected, true);
	session_stop_working(); /* a worker of a data loader has no need of CUDA */
	if (!atomic_load(&session_word) || !wants_cupti(c))
		return 1;
	/* a window that is open begins before the first work, on the thread that CUDA waits for */
	if (session_is_warm())
		cupti_trace_start(c);
	else
		cupti_trace_load(c);
	hook_exit(0);
	session_lane(true); /* the writer */
	return 1;
}

static void try_start(void)
{
	if (state.gave_up || cupti_trace_is_on() || cupti_trace_is_dead())
		return;
	if (state.is_child && !atomic_load(&state.injected))
		return;
	if (!cuda_is_initialized())
		return;
	if (cupti_trace_start(state.config))
		state.gave_up = !cupti_trace_is_on();
	hook_exit(0);
}

static void ring(void)
{
	struct writer *w = atomic_load(&state.writer);

	if (w)
		writer_wake(w);
}

static enum status cupti_open(const struct config *config, struct error *err)
{
	state.config = config;
	if (!wants_cupti(config))
		return fail(err, ST_ABSENT, NOWHERE, "nothing of a GPU is asked for");
	return ST_OK;
}

static enum status cupti_begin(uint64_t now_ns, struct error *err)
{
	state.gave_up = false;
	atomic_store(&state.wanted, true);
	state.was_alive = cuda_is_initialized();
	try_start();
	return ST_OK;
}

static void cupti_end(uint64_t now_ns, uint64_t deadline_ns)
{
	uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

	atomic_store(&state.wanted, false);
	cupti_trace_stop(tick_clock_ns(CLOCK_MONOTONIC) + left_ns);
}

/* ---- telling ---- */

static void add_sentence(struct buf *b, const char *text)
{
	if (!text || !*text)
		return;
	if (b->len)
		buf_put_text(b, "; ");
	buf_put_text(b, text);
}

static void tell(struct writer *w, const char *key, struct buf *b, bool is_json)
{
	if (b->len && buf_status(b, NULL) == ST_OK)
		writer_tell(w, key, buf_text(b), is_json);
	buf_clear(b);
}

/* What makes this recording less than whole, or not to be trusted. */
static void put_doubts(struct buf *b, const struct cupti_told *t, uint64_t late)
{
	if (late)
		buf_putf(b, "recording of the GPU began %.1f ms after the window: a warm-up helps",
			 (double)late / 1e6);
	if (t->foreign)
		buf_putf(b, "%s%llu buffers of another tool came here: its own records are missing "
			 "there", b->len ? "; " : "", (unsigned long long)t->foreign);
	if (t->never_came)
		buf_putf(b, "%s%llu buffers did not come back: another tool may have taken over, or "
			 "work never ended", b->len ? "; " : "", (unsigned long long)t->never_came);
	if (t->gone)
		buf_putf(b, "%sanother tool switched off %u kinds of records", b->len ? "; " : "",
			 t->gone);
	if (t->silent_s)
		buf_putf(b, "%s%llu s with steps but without records: another tool may have taken "
			 "over", b->len ? "; " : "", (unsigned long long)t->silent_s);
	if (t->clock_is_strange)
		buf_putf(b, "%sCUPTI's clock was %.3f s off: another tool set it; times of work may be "
			 "wrong", b->len ? "; " : "", (double)cupti_clock_off_ns() / 1e9);
	if (t->no_thread_ids)
		add_sentence(b, "threads of calls are told by other numbers than the kernel's");
}

static void put_warnings(struct buf *b, const struct cupti_trace *t)
{
	unsigned when = t->told.clock_is_strange ? SAY_CLOCK : 0, i;
	const char *text;

	if (cupti_row_counts()->nodes)
		when |= SAY_GRAPHS;
	if (t->told.starts > 1)
		when |= SAY_AGAIN;
	for (i = 0; (text = cupti_say_version(t->lib.api_version, when, i)); i++)
		add_sentence(b, text);
}

static void put_sizes(struct buf *b, const struct cupti_lib *lib)
{
	const char *comma = "";
	unsigned i;

	buf_put_byte(b, '{');
	for (i = 0; i < CUPTI_KINDS; i++) {
		if (!lib->sizes[i])
			continue;
		buf_putf(b, "%s\"%u\":%u", comma, i, lib->sizes[i]);
		comma = ",";
	}
	buf_put_byte(b, '}');
}

static void put_version(struct buf *b, const struct cupti_lib *lib)
{
	char text[16];

	cupti_version_text(lib->api_version, text);
	buf_putf(b, "%s (%u)", text, lib->api_version);
}

/* Of a window in which CUDA was alive from the start. */
static uint64_t late_ns(const struct writer *w)
{
	uint64_t begin_ns = writer_window_begin(w), on_ns = cupti_trace.on_ns + tick_base_ns();

	if (begin_ns && state.was_alive && on_ns > begin_ns + LATE_MS * MS)
		state.late_ns = on_ns - begin_ns > state.late_ns ? on_ns - begin_ns : state.late_ns;
	return state.late_ns;
}

static void tell_all(struct writer *w)
{
	const struct cupti_trace *t = &cupti_trace;
	unsigned news = cupti_trace_news();
	struct buf b;

	if (news == state.news)
		return;
	state.news = news;
	buf_init(&b, TEXT_MAX);
	if (t->is_loaded) {
		put_version(&b, &t->lib);
		tell(w, "cupti_version", &b, false);
		writer_tell(w, "cupti_library", t->lib.path, false);
		put_sizes(&b, &t->lib);
		tell(w, "cupti_record_sizes", &b, true);
		cupti_kinds_tell(&t->kinds, &b);
		tell(w, "cupti_kinds", &b, true);
		put_warnings(&b, t);
		tell(w, "cupti_warnings", &b, false);
		writer_tell(w, "cupti_graphs", t->told.graph_level ? "graph" : "node", false);
		put_doubts(&b, &t->told, late_ns(w));
		tell(w, "cupti_doubts", &b, false);
	}
	writer_tell(w, "cupti_problem", t->told.problem, false);
	buf_release(&b);
}

/* ---- draining ---- */

static uint64_t steps_so_far(void)
{
	uint64_t sum = 0;
	struct lane *l;

	for (l = session_lanes(); l; l = l->next)
		sum += LANE_GET(l->step_number);
	return sum;
}

/* With a flush each second any work brings a buffer each second. */
static void listen(void)
{
	uint64_t completed = pool_completed(), steps = steps_so_far();

	if (state.completed && completed == state.completed && steps != state.steps)
		cupti_trace.told.silent_s++;
	state.completed = completed;
	state.steps = steps;
}

static void flush_sometimes(void)
{
	uint64_t now_ns = tick_clock_ns(CLOCK_MONOTONIC);

	if (!cupti_trace_is_on() || now_ns - state.flushed_ns < FLUSH_MS * MS)
		return;
	if (state.flushed_ns) {
		cupti_trace_flush();
		listen();
	}
	state.flushed_ns = now_ns;
}

static size_t take_batch(struct pool_buffer batch[BATCH])
{
	size_t count = 0, i;

	while (count < BATCH && pool_next(&batch[count]))
		count++;
	for (i = 0; i < count; i++)
		cupti_rows_tables(&batch[i]);
	return count;
}

static void put_buffers(struct writer *w)
{
	uint64_t begin_ns = writer_window_begin(w), warm_ns = 0;
	struct pool_buffer batch[BATCH];
	size_t count, i;

	if (begin_ns)
		warm_ns = cupti_trace.on_ns + tick_base_ns();
	while ((count = take_batch(batch)) != 0)
		for (i = 0; i < count; i++) {
			cupti_rows_put(w, &batch[i], warm_ns, begin_ns);
			pool_give_back(&batch[i]);
		}
	if (writer_has_log(w))
		cupti_tables_put(w);
}

static void hand_over(struct writer *w)
{
	uint64_t dropped = cupti_trace_take_dropped(), refused = cupti_trace_take_refused();
	uint64_t requests = pool_requested();

	writer_lose(w, LOSS_CUPTI, dropped);
	writer_lose(w, LOSS_BUFFER, refused);
	writer_own_cost(w, (requests - state.requests) * REQUEST_COST_NS);
	state.requests = requests;
	state.lost += dropped + refused;
}

static unsigned cupti_drain(struct writer *w, uint64_t now_ns)
{
	if (cupti_trace_is_dead())
		return 0;
	if (atomic_load(&state.wanted))
		try_start();
	if (cupti_trace_was_on()) {
		atomic_store(&state.writer, w);
		cupti_trace_bell(ring);
		if (pool_requested())
			hook_exit(1);
		cupti_clock_note(false);
		flush_sometimes();
		put_buffers(w);
		cupti_site_name_streams(w);
		hand_over(w);
	}
	tell_all(w);
	return pool_fullness();
}

/* Buffers do not run out while nothing is kept. */
static void cupti_warm(void)
{
	struct pool_buffer batch[BATCH];
	size_t count, i;

	if (cupti_trace_is_dead())
		return;
	try_start();
	if (!cupti_trace_was_on())
		return;
	cupti_clock_note(false);
	while ((count = take_batch(batch)) != 0)
		for (i = 0; i < count; i++) {
			cupti_rows_drop(&batch[i]);
			pool_give_back(&batch[i]);
		}
	cupti_trace_take_dropped();
	cupti_trace_take_refused();
}

/* Why there is nothing, though nothing went wrong. */
static void tell_absence(struct writer *w)
{
	if (cupti_trace.told.problem[0] || cupti_trace_is_dead() || cupti_trace_was_on())
		return;
	writer_tell(w, "cupti_absent", access("/proc/driver/nvidia", F_OK) == 0 ?
		    "the process did not start CUDA" :
		    "the process did not start CUDA, and this machine has no driver of NVIDIA",
		    false);
}

static void cupti_close_window(struct writer *w, uint64_t window)
{
	tell_absence(w);
	if (!cupti_trace_was_on() || cupti_trace_is_dead())
		return;
	cupti_rows_end(w);
	if (state.config->graphs_level == GRAPHS_AUTO && state.lost)
		cupti_trace_graph_level();
	state.lost = 0;
	state.completed = 0;
	state.flushed_ns = 0;
}

static void cupti_close(struct writer *w, uint64_t deadline_ns)
{
	cupti_trace_bell(NULL);
	if (cupti_trace_was_on() && !cupti_trace_is_dead() && writer_has_log(w)) {
		put_buffers(w);
		hand_over(w);
		cupti_rows_end(w);
	}
}

static uint64_t cupti_clock(void)
{
	return cupti_trace_was_on() && !cupti_trace_is_dead() ? cupti_clock_now() : 0;
}

static void cupti_forked(void)
{
	cupti_trace_forked();
	cupti_rows_forget();
	cupti_tables_forget();
	atomic_store(&state.injected, false);
	atomic_store(&state.wanted, false);
	atomic_store(&state.writer, NULL);
	state.is_child = true;
	state.gave_up = false;
	state.news = cupti_trace_news();
}

/* ---- doctor ---- */

static void try_kinds(const struct cupti_lib *lib, struct buf *out)
{
	struct cupti_subscriber *got = NULL;
	const char *text = NULL;
	char room[160];
	int result = CUPTI_OK;

	if (lib->subscribe && lib->unsubscribe)
		result = lib->subscribe(&got, NULL, NULL);
	if (result == CUPTI_OK)
		result = lib->enable(CUPTI_KERNEL);
	if (result == CUPTI_OK)
		lib->disable(CUPTI_KERNEL);
	else
		text = cupti_say_result(lib, result, room);
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
	unsigned i;

	if (cupti_lib_open(&lib, c ? c->cupti_lib : "", &err) != ST_OK) {
		buf_putf(out, "CUPTI     %s\n", err.text);
		return;
	}
	cupti_version_text(lib.api_version, version);
	buf_putf(out, "CUPTI     %s (%u), %s\n", version, lib.api_version, lib.path);
	for (i = 0; (text = cupti_say_version(lib.api_version, SAY_ALL, i)); i++)
		buf_putf(out, "          %s\n", text);
	try_kinds(&lib, out);
}

const struct watch_type watch_cupti = {
	.name = "cupti",
	.help = "work of the GPUs and calls of CUDA",
	.open = cupti_open,
	.begin = cupti_begin,
	.end = cupti_end,
	.drain = cupti_drain,
	.warm = cupti_warm,
	.close_window = cupti_close_window,
	.clock = cupti_clock,
	.forked = cupti_forked,
	.close = cupti_close,
	.doctor = cupti_doctor,
};

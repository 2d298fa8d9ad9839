/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe of the writer outside for facts that are only available inside the program: it sends
 * requests to the program's helper (helper/helper.h).  Without a helper it samples memory and
 * health itself, from outside.
 */
#include "collector/arena/arena.h"
#include "collector/config/config.h"
#include "collector/helper/helper.h"
#include "collector/probe/probe.h"
#include "collector/recorder/recorder.h"
#include "collector/session/session.h"
#include "collector/store/writer.h"
#include "schemas/base/buf.h"
#include "schemas/base/vec.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS      UINT64_C(1000000)
#define LOOK_NS (1000 * MS) /* period of checks for CUDA in a program with another tool */
enum {
	LIMIT_MS = 5000, /* limit for a request to the helper */
	LAST_MS = 30000, /* limit at the end of a program, which waits as long for CUPTI */
	ANSWER_MS = 20,  /* period of checks whether the program has died */
	BODY_MAX = 8 << 20,
	TABLES_MAX = 64 << 20,
};

static const struct probe_type *const from_outside[] = { &probe_memory, &probe_health };
enum { OUTSIDE = sizeof(from_outside) / sizeof(from_outside[0]) };

static struct {
	const struct config *config;
	struct helper *helper; /* NULL: the program has no helper */
	struct writer *writer; /* writer of the latest drain */
	bool opened[OUTSIDE];
	bool begun, told; /* a window or its warmup has begun; the helper has been told */
	uint64_t begun_ns, looked_ns;
	struct buf body;
	/* The rows of the program's ids, and the log's ids for them. */
	struct trace *trace;
	uint64_t log;
	uint32_t *descs;
	size_t desc_cap;
	uint32_t devices; /* number of devices that the log has */
	struct helper_stored read;
} state;

static struct helper *find_helper(void)
{
	if (!state.helper) {
		state.helper = arena_table_there(ARENA_HELPER, sizeof(struct helper));
		if (state.helper && !state.config) /* counts that a killed writer has stored */
			state.read = state.helper->stored[arena()->commit & 1];
	}
	return state.helper;
}

/* ---- rows ---- */

static uint32_t name_of(struct writer *w, uint32_t id)
{
	size_t len;
	const char *text = trace_text(state.trace, id, &len);

	return id ? writer_name(w, text, len) : 0;
}

static struct attr *attrs_of(struct writer *w, const struct attr *attrs, uint32_t count)
{
	struct attr *own = calloc(count + 1, sizeof(*own));

	for (uint32_t i = 0; own && i < count; i++) {
		own[i] = attrs[i];
		own[i].key = name_of(w, attrs[i].key);
		if (attrs[i].type == ATTR_TEXT || attrs[i].type == ATTR_JSON)
			own[i].bits = name_of(w, (uint32_t)attrs[i].bits);
	}
	return own;
}

static uint32_t schema_of(struct writer *w, uint32_t id)
{
	const struct arg_schema *s = trace_get_schema(state.trace, id);
	struct arg_schema own = *s;
	struct attr *consts = attrs_of(w, s->consts, s->const_count);
	struct attr *args = attrs_of(w, s->args, s->arg_count);

	own.consts = consts;
	own.args = args;
	id = id && consts && args ? writer_schema(w, &own) : 0;
	free(consts);
	free(args);
	return id;
}

static uint32_t track_of(struct writer *w, uint32_t id)
{
	struct track own = *trace_get_track(state.trace, id);

	own.name = name_of(w, own.name);
	return id ? writer_track(w, &own) : 0;
}

static void put_devices(struct writer *w)
{
	while (state.devices < trace_count(state.trace, TRACE_DEVICES)) {
		struct device own = *trace_get_device(state.trace, ++state.devices);

		own.name = name_of(w, own.name);
		own.schema = schema_of(w, own.schema);
		writer_device(w, &own);
	}
}

/* Returns whether rows can be put; discards the ids of another log. */
static bool is_ready(struct writer *w)
{
	if (!state.trace || !writer_ready(w))
		return false;
	if (writer_log_changed(w, &state.log)) {
		if (state.descs)
			memset(state.descs, 0, state.desc_cap * sizeof(*state.descs));
		state.devices = 0;
	}
	return true;
}

static uint32_t desc_of(struct writer *w, uint64_t id)
{
	const struct event_desc *d = trace_get_desc(state.trace, (uint32_t)id);
	struct event_desc own = *d;
	size_t before = state.desc_cap;

	if (!id || id > trace_count(state.trace, TRACE_DESCS))
		return 0;
	if (id >= before) {
		if (vec_reserve(&state.descs, &state.desc_cap, id + 1, NULL) != ST_OK)
			return 0;
		memset(state.descs + before, 0, (state.desc_cap - before) * sizeof(*state.descs));
	}
	if (!state.descs[id]) {
		own.track = track_of(w, d->track);
		own.name = name_of(w, d->name);
		own.schema = schema_of(w, d->schema);
		state.descs[id] = writer_desc(w, &own);
	}
	return state.descs[id];
}

static void put_row(struct writer *w, const uint8_t *at, size_t len)
{
	struct helper_row r;

	bool ready = is_ready(w);

	/* Only the killed writer had the descriptors of the rows that it did not read, so these
	 * rows are lost. */
	state.read.read += ready || state.config;
	if (len < sizeof(r) || !ready)
		return;
	memcpy(&r, at, sizeof(r));
	const struct event_desc *d = trace_get_desc(state.trace, (uint32_t)r.desc);
	size_t args = trace_get_schema(state.trace, d->schema)->arg_count;

	if (args * sizeof(uint64_t) > len - sizeof(r))
		args = 0;
	r.event.args = args ? (const uint64_t *)(const void *)(at + sizeof(r)) : NULL;
	writer_put(w, &r.event, desc_of(w, r.desc));
}

static void take_schema(const uint8_t *at, size_t len)
{
	uint64_t counts[2];
	struct arg_schema s;

	if (len < sizeof(counts))
		return;
	memcpy(counts, at, sizeof(counts));
	size_t most = (len - sizeof(counts)) / sizeof(struct attr);
	if (counts[0] > most || counts[1] > most - counts[0])
		return;
	s.consts = (const struct attr *)(const void *)(at + sizeof(counts));
	s.const_count = (uint32_t)counts[0];
	s.args = s.consts + counts[0];
	s.arg_count = (uint32_t)counts[1];
	trace_schema(state.trace, &s, NULL);
}

static void take_attribute(struct writer *w, const uint8_t *at, size_t len)
{
	const char *key = (const char *)at + sizeof(struct helper_attribute);
	struct helper_attribute a;

	if (len <= sizeof(a) || at[len - 1])
		return;
	memcpy(&a, at, sizeof(a));
	const char *text = key + strlen(key) + 1;
	if ((const uint8_t *)text < at + len)
		writer_set_attribute(w, key, text, a.is_json);
}

static void take_pair(struct writer *w, unsigned type, const uint8_t *at, size_t len)
{
	struct helper_pair p;

	if (len < sizeof(p))
		return;
	memcpy(&p, at, sizeof(p));
	if (type == MESSAGE_COST)
		writer_own_cost(w, p.value);
	else if (type == MESSAGE_LOSS && p.what < LOSS_END) {
		state.read.read += p.value;
		writer_lose(w, (enum loss)p.what, p.value);
	} else if (type == MESSAGE_TRACK_NAME && state.trace) {
		trace_set_track_name(state.trace, (uint32_t)p.what, (uint32_t)p.value);
		if (is_ready(w))
			writer_name_track(w, track_of(w, (uint32_t)p.what),
					  name_of(w, (uint32_t)p.value));
	}
}

static void take_row_of_table(unsigned type, const uint8_t *at, size_t len)
{
	if (type == MESSAGE_NAME)
		trace_name(state.trace, (const char *)at, len, NULL);
	else if (type == MESSAGE_SCHEMA)
		take_schema(at, len);
	else if (type == MESSAGE_TRACK && len == sizeof(struct track))
		trace_track(state.trace, (const void *)at, NULL);
	else if (type == MESSAGE_DESC && len == sizeof(struct event_desc))
		trace_desc(state.trace, (const void *)at, NULL);
	else if (type == MESSAGE_DEVICE && len == sizeof(struct device))
		trace_device(state.trace, (const void *)at, NULL);
}

static void take_message(struct writer *w, unsigned type, const uint8_t *at, size_t len)
{
	switch (type) {
	case MESSAGE_RESET:
		trace_free(state.trace);
		state.trace = NULL;
		trace_new(&state.trace, TABLES_MAX, NULL);
		state.log = 0;
		break;
	case MESSAGE_ROW:
		put_row(w, at, len);
		break;
	case MESSAGE_ATTRIBUTE:
		take_attribute(w, at, len);
		break;
	case MESSAGE_TRACK_NAME:
	case MESSAGE_LOSS:
	case MESSAGE_COST:
		take_pair(w, type, at, len);
		break;
	case MESSAGE_ANCHOR:
		if (len == sizeof(struct anchor))
			writer_add_anchor(w, (const void *)at);
		break;
	default:
		if (state.trace)
			take_row_of_table(type, at, len);
	}
}

static void read_queue(void)
{
	struct writer *w = state.writer;
	unsigned type;

	if (!w || !find_helper())
		return;
	while (queue_receive(&state.helper->queue, &type, &state.body)) {
		take_message(w, type, state.body.data, state.body.len);
		writer_rotate(w); /* a second of CUPTI's records may be larger than a log */
	}
	uint64_t lost = atomic_load(&state.helper->lost);
	if (writer_window_begin(w) && lost > state.read.lost) {
		writer_lose(w, LOSS_BUFFER, lost - state.read.lost);
		state.read.lost = lost;
	}
	if (state.trace && writer_has_log(w) && is_ready(w))
		put_devices(w);
	atomic_store(&state.helper->has_log, writer_has_log(w));
	atomic_store(&state.helper->log, writer_log(w));
}

/* ---- requests ---- */

static bool can_answer(void)
{
	return find_helper() && !atomic_load(&state.helper->absent) && !recorder_program_is_gone();
}

static bool is_done(void)
{
	return atomic_load_explicit(&state.helper->done, memory_order_acquire) ==
	       atomic_load_explicit(&state.helper->asked, memory_order_relaxed);
}

/* Waits for the helper and reads the queue in the meantime. */
static void wait_until_done(uint64_t limit_ns)
{
	uint64_t until_ns = tick_clock_ns(CLOCK_MONOTONIC) + limit_ns;
	struct timespec look = { .tv_nsec = ANSWER_MS * MS };

	while (can_answer()) {
		uint32_t done = atomic_load_explicit(&state.helper->done, memory_order_acquire);

		read_queue();
		if (is_done() || tick_clock_ns(CLOCK_MONOTONIC) >= until_ns)
			break;
		/* A spurious wake-up only costs one more round. */
		syscall(SYS_futex, &state.helper->done, FUTEX_WAIT, done, &look, NULL, 0);
	}
}

static void ask(enum helper_request request, uint64_t now_ns, uint64_t deadline_ns)
{
	struct helper *h = state.helper;

	h->request = request;
	h->now_ns = now_ns;
	h->deadline_ns = deadline_ns;
	atomic_fetch_add_explicit(&h->asked, 1, memory_order_release);
	helper_wake(h);
}

/* Tells a helper that was started later that a window or its warmup is open. */
static void tell_begin(void)
{
	if (!state.begun || state.told || !can_answer())
		return;
	state.told = true;
	ask(HELPER_BEGIN, state.begun_ns, 0);
	wait_until_done(LIMIT_MS * MS);
}

/* ---- the probe ---- */

static enum status helper_open(const struct config *config, struct error *err)
{
	state.config = config;
	buf_init(&state.body, BODY_MAX);
	for (size_t i = 0; i < OUTSIDE; i++)
		state.opened[i] = from_outside[i]->open(config, NULL) == ST_OK;
	return ST_OK;
}

static enum status helper_begin(uint64_t now_ns, struct error *err)
{
	state.begun = true;
	state.told = false;
	state.begun_ns = now_ns;
	for (size_t i = 0; i < OUTSIDE; i++)
		if (state.opened[i])
			from_outside[i]->begin(now_ns, NULL);
	tell_begin();
	return ST_OK;
}

static void helper_end(uint64_t now_ns, uint64_t deadline_ns)
{
	if (!state.told || !can_answer())
		return;
	ask(HELPER_END, now_ns, deadline_ns);
	if (deadline_ns)
		wait_until_done(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
}

static bool helper_behind(void)
{
	return state.told && can_answer() && !is_done();
}

/*
 * CUDA only notifies the library in CUDA_INJECTION64_PATH when it starts, which may be another
 * tool.  Then the threads of the program check for CUDA themselves, once libcuda.so is mapped.
 */
static void look_for_cuda(void)
{
	uint64_t now_ns = tick_clock_ns(CLOCK_MONOTONIC);
	char path[64], line[512];
	bool is_there = false;

	if (now_ns - state.looked_ns < LOOK_NS)
		return;
	state.looked_ns = now_ns;
	snprintf(path, sizeof(path), "%s/maps", session_proc());
	FILE *f = fopen(path, "re");
	while (f && !is_there && fgets(line, sizeof(line), f))
		is_there = strstr(line, "/libcuda.so") != NULL;
	if (f)
		fclose(f);
	if (is_there) {
		atomic_store(&arena()->has_cuda, true);
		session_look_again();
	}
}

static unsigned helper_drain(struct writer *w, uint64_t now_ns)
{
	unsigned full = 0;

	state.writer = w;
	if (!find_helper()) {
		for (size_t i = 0; i < OUTSIDE; i++)
			if (state.opened[i] && !writer_is_last(w))
				from_outside[i]->drain(w, now_ns);
		if (!writer_is_last(w))
			look_for_cuda();
		return 0;
	}
	atomic_store(&state.helper->begin_ns, writer_window_begin(w));
	tell_begin();
	full = queue_fullness(&state.helper->queue);
	if (state.told && session_is_asked() && is_done() && can_answer()) {
		ask(HELPER_DRAIN, now_ns, 0);
		wait_until_done(LIMIT_MS * MS);
	}
	read_queue();
	return full;
}

static void helper_note_stored(unsigned parity)
{
	if (find_helper())
		state.helper->stored[parity] = state.read;
}

/* Counts the rows that a killed writer had read and not stored; for the process that replaces
 * it. */
static void lose_read_by_killed(struct writer *w)
{
	uint64_t seen = state.read.read + state.read.lost, made = atomic_load(&state.helper->made);

	if (made > seen)
		writer_lose(w, LOSS_BUFFER, made - seen);
}

static void helper_warmup(void)
{
	tell_begin();
	if (!state.told || !can_answer())
		return;
	ask(HELPER_WARM_UP, 0, 0);
	wait_until_done(LIMIT_MS * MS);
}

/* Notes in the log why there is no GPU work although nothing went wrong. */
static void note_absence(struct writer *w)
{
	if (!state.config || !config_wants_gpu(state.config)) /* NULL: it was dead from the start */
		return;
	writer_set_attribute(
		w, "cupti_absent",
		access("/proc/driver/nvidia", F_OK) == 0
			? "the process did not start CUDA"
			: "the process did not start CUDA, and this machine has no driver of "
			  "NVIDIA",
		false);
}

static void helper_close_window(struct writer *w, uint64_t window)
{
	bool is_last = writer_is_last(w) || session_quits();

	state.begun = false;
	if (!find_helper()) {
		note_absence(w);
		return;
	}
	/*
	 * The next window has begun, or the program ends while CUPTI works.  No other request is
	 * sent, because it would replace a HELPER_END that the helper has not handled yet.
	 */
	if (state.told && can_answer())
		wait_until_done((is_last ? LAST_MS : LIMIT_MS) * MS);
	read_queue();
	if (!state.config)
		lose_read_by_killed(w);
	if (atomic_load(&state.helper->holds) &&
	    (is_last || session_quits() || recorder_program_is_gone()))
		writer_lose(w, LOSS_DEATH, 1);
	atomic_store(&state.helper->begin_ns, 0);
}

static uint64_t helper_due(uint64_t now_ns)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < OUTSIDE && !state.helper; i++)
		if (state.opened[i]) {
			uint64_t due = from_outside[i]->due(now_ns);
			least = due < least ? due : least;
		}
	return least;
}

static void helper_close(struct writer *w, uint64_t deadline_ns)
{
	uint64_t now_ns = tick_to_ns(tick_now());

	state.writer = w;
	if (!can_answer())
		return;
	ask(HELPER_CLOSE, now_ns, deadline_ns);
	wait_until_done(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
	read_queue();
}

const struct probe_type probe_helper = {
	.name = "helper",
	.help = "what only the program can be asked",
	.open = helper_open,
	.begin = helper_begin,
	.end = helper_end,
	.behind = helper_behind,
	.drain = helper_drain,
	.note_stored = helper_note_stored,
	.warmup = helper_warmup,
	.close_window = helper_close_window,
	.due = helper_due,
	.close = helper_close,
};

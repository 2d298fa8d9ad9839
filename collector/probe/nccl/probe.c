/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe for NCCL, as a plugin of its profiler interface.  The plugin is this library; tacho-record
 * names it in NCCL_PROFILER_PLUGIN.
 *
 *	collective,       a range on the thread that launched its kernel, from the begin of the
 *	point to point    launch, so that the launch is in it and the kernel takes its fields
 *	kernel channel    a mark when a channel of the kernel has ended, with the GPU's own times
 *	proxy operation   a mark when it has ended, with what its steps have waited for
 *
 * All are put like events of NVTX, with a domain and schemas of their own.  Outside of windows NCCL
 * is asked for no events.  Inside, a collective costs one record; channels and proxies (--nccl all)
 * make NCCL do more work in its proxy thread.
 */
#include "collector/probe/nccl/plugin.h"

#include "collector/arena/arena.h"
#include "collector/arena/lock.h"
#include "collector/arena/texts.h"
#include "collector/probe/nvtx/calls.h"
#include "collector/probe/nvtx/payload.h"
#include "collector/probe/probe.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum {
	COMMUNICATORS = 1024,
	TASKS = 8192, /* latest calls, which may have children */
	CHILDREN = 8192,
	TRIES = 64,
	CALLS_MASK = NCCL_COLLECTIVE | NCCL_POINT | NCCL_KERNEL_LAUNCH | NCCL_COPY_ENGINE,
	ALL_MASK = CALLS_MASK | NCCL_PROXY_OP | NCCL_PROXY_STEP | NCCL_KERNEL_CHANNEL,
};

/* ---- recorded fields ---- */

/* X(name in the log, member, type) */
/* clang-format off */
#define CALL_FIELDS(X)                                                                             \
	X("communicator", communicator, UINT64)                                                    \
	X("function", function, NVTX_REGISTERED_STRING_HANDLE) X("bytes", bytes, UINT64)           \
	X("element type", type, NVTX_REGISTERED_STRING_HANDLE) X("channels", channels, UINT64)     \
	X("ranks", ranks, UINT64) X("rank", rank, UINT64)
#define COLLECTIVE_FIELDS(X)                                                                       \
	CALL_FIELDS(X) X("sequence", sequence, UINT64)                                             \
	X("algorithm", algorithm, NVTX_REGISTERED_STRING_HANDLE)                                   \
	X("protocol", protocol, NVTX_REGISTERED_STRING_HANDLE) X("warps", warps, UINT64)           \
	X("root", root, UINT64)
#define POINT_FIELDS(X) CALL_FIELDS(X) X("from", from, UINT64) X("to", to, UINT64)
#define CHANNEL_FIELDS(X)                                                                          \
	X("communicator", communicator, UINT64) X("sequence", sequence, UINT64)                    \
	X("function", function, NVTX_REGISTERED_STRING_HANDLE) X("channel", channel, UINT64)       \
	X("gpu_begin_ns", gpu_begin_ns, UINT64) X("gpu_ns", gpu_ns, UINT64) X("seen_ns", took_ns, UINT64)
#define PROXY_FIELDS(X)                                                                            \
	X("communicator", communicator, UINT64) X("sequence", sequence, UINT64)                    \
	X("function", function, NVTX_REGISTERED_STRING_HANDLE) X("channel", channel, UINT64)       \
	X("from", from, UINT64) X("to", to, UINT64) X("steps", steps, UINT64)                      \
	X("bytes", bytes, UINT64) X("took_ns", took_ns, UINT64) X("gpu_wait_ns", waits[WAIT_GPU], UINT64) \
	X("peer_wait_ns", waits[WAIT_PEER], UINT64) X("network_wait_ns", waits[WAIT_NETWORK], UINT64)
/* clang-format on */
enum form { COLLECTIVE, POINT, CHANNEL, PROXY, FORMS };
static struct {
	uint32_t domain, nccl; /* our domain, and the domain of NCCL's own ranges */
	uint64_t schemas[FORMS];
	uint32_t names[FORMS]; /* names of marks */
} log_ids;

/* Returns the bytes of the fields.  Calls omit the fields at the end, which only channels and
 * proxies have. */
static size_t form_size(enum form form)
{
	return form < CHANNEL ? offsetof(struct nccl_fields, channel) : sizeof(struct nccl_fields);
}

/* A call, whose kernel and proxies may still be in progress.  A later call reuses its place. */
struct task {
	struct nccl_fields f;
	uint64_t begin;
	enum form form;
};
static _Atomic uint32_t task_count;

struct child {
	_Atomic bool is_used;
	uint8_t type, waits_for; /* waits_for: enum nccl_wait, WAITS: nothing; proxy steps only */
	struct nccl_fields f;
	uint64_t begin, since;   /* ticks */
	struct child *operation; /* proxy step: its operation */
};
static _Atomic uint32_t child_count;
static struct events {
	struct task tasks[TASKS];
	struct child children[CHILDREN];
} * events; /* NULL until there is a communicator, or without memory */

#define ENTRY(text, member, is)                                                                    \
	{ .name = text, .type = NVTX_TYPE_##is, .offset = offsetof(struct nccl_fields, member) },

static void prepare(void)
{
	static const struct nvtx_entry collective[] = { COLLECTIVE_FIELDS(ENTRY) },
				       point[] = { POINT_FIELDS(ENTRY) },
				       channel[] = { CHANNEL_FIELDS(ENTRY) },
				       proxy[] = { PROXY_FIELDS(ENTRY) };
	static const struct {
		const struct nvtx_entry *entries;
		size_t count;
	} forms[FORMS] = {
		[COLLECTIVE] = { collective, sizeof(collective) / sizeof(*collective) },
		[POINT] = { point, sizeof(point) / sizeof(*point) },
		[CHANNEL] = { channel, sizeof(channel) / sizeof(*channel) },
		[PROXY] = { proxy, sizeof(proxy) / sizeof(*proxy) },
	};

	static void *_Atomic memory;

	events = arena_once(&memory, sizeof(*events));
	log_ids.domain = nvtx_domain_find(name_find("NCCL profiler"));
	log_ids.nccl = nvtx_domain_find(name_find("NCCL"));
	log_ids.names[CHANNEL] = name_find("kernel channel");
	log_ids.names[PROXY] = name_find("proxy operation");
	for (unsigned i = 0; i < FORMS; i++)
		log_ids.schemas[i] = nvtx_schema_put(
			log_ids.domain,
			&(struct nvtx_schema){
				.mask = NVTX_SCHEMA_ENTRIES | NVTX_SCHEMA_COUNT | NVTX_SCHEMA_SIZE,
				.entries = forms[i].entries,
				.entry_count = forms[i].count,
				.size = form_size(i),
			});
}

static void put(enum form form, uint32_t name, const struct nccl_fields *f, uint64_t begin,
		uint64_t end)
{
	const struct nvtx_data data = { log_ids.schemas[form], form_size(form), f };
	struct nvtx_event what =
		nvtx_event_of_text(NVTX_MESSAGE_REGISTERED, (const void *)(uintptr_t)name);

	what.domain = log_ids.domain;
	what.payloads = &data;
	what.payload_count = 1;
	nvtx_put_whole(&what, form < CHANNEL ? KIND_RANGE : KIND_MARK, begin, end);
}

/* ---- communicators ---- */

static struct communicator {
	int *mask;     /* NCCL's mask of wanted events; NULL: the place is free */
	uint64_t hash; /* 0: the events have the hash */
	uint64_t ranks;
} communicators[COMMUNICATORS];
static struct lock lock = LOCK_INITIALIZER;
static int wanted; /* mask of events, 0 outside of windows; needs the lock */

/*
 * Needs the lock.  Uses the current state and not that of the notification, because the helper is
 * notified late, when another window may have begun.
 */
static void choose_events(bool is_warmup)
{
	enum config_nccl choice = session_config()->nccl_events;

	wanted = choice == NCCL_NO || !(is_warmup || session_is_recording()) ? 0
		 : choice == NCCL_ALL                                        ? ALL_MASK
									     : CALLS_MASK;
	for (unsigned i = 0; i < COMMUNICATORS; i++)
		if (communicators[i].mask)
			__atomic_store_n(communicators[i].mask, wanted, __ATOMIC_RELAXED);
}

void nccl_window_changed(void)
{
	lock_take_masked(&lock);
	choose_events(false);
	lock_release(&lock);
}

/* Adds a communicator.  Without a free place NCCL gets NULL as the context, and the communicator is
 * not recorded. */
static int add_communicator(void **context, int *mask, uint64_t hash, int ranks)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	unsigned i = 0;

	*context = NULL;
	*mask = 0;
	if (!session_config() || !names_open() || !nvtx_names_exist())
		return 0;
	pthread_once(&once, prepare);
	if (!events)
		return 0;
	session_needs_helper(); /* the helper begins and ends windows by time and by command */
	if (session_word_now())
		session_thread(true);
	lock_take_masked(&lock);
	if (session_is_recording()) /* the helper that was just started may not have begun yet */
		choose_events(false);
	while (i < COMMUNICATORS && communicators[i].mask)
		i++;
	if (i < COMMUNICATORS) {
		communicators[i] = (struct communicator){ mask, hash, (uint64_t)ranks };
		*context = &communicators[i];
		*mask = wanted;
	} else {
		nvtx_lose(1);
	}
	lock_release(&lock);
	return 0;
}

static int finalize(void *context)
{
	lock_take_masked(&lock);
	if (context)
		((struct communicator *)context)->mask = NULL;
	lock_release(&lock);
	return 0;
}

/* ---- events ---- */

/*
 * State of a thread.  NCCL launches a kernel, then starts the calls that it serves, then stops
 * them.
 */
static _Thread_local struct {
	uint64_t launch;       /* begin of the latest launch; 0: NCCL did not report it */
	uint64_t before;       /* end of the previous calls */
	unsigned begun, ended; /* numbers of calls of this launch */
} mine;

static void start_call(int version, const struct communicator *c, void **handle, const uint8_t *d,
		       uint64_t type)
{
	struct task *t = &events->tasks[atomic_fetch_add(&task_count, 1) % TASKS];

	t->f = nccl_read_call(version, d, type);
	if (c->hash) { /* since version 4 init() gets it */
		t->f.communicator = c->hash;
		t->f.ranks = c->ranks;
	}
	t->form = type == NCCL_POINT ? POINT : COLLECTIVE;
	t->begin = tick_now();
	mine.begun++;
	*handle = t;
}

/* Puts a call.  A kernel that serves several calls belongs to none of them. */
static void stop_call(struct task *t)
{
	uint64_t launch = mine.launch ? mine.launch : nvtx_open_begin(log_ids.nccl);
	uint64_t now = tick_now(), begin = t->begin;
	bool is_alone = mine.begun == 1;

	/* An NCCL that does not report launches may make several in one call of the program. */
	if (is_alone && launch)
		begin = launch > mine.before ? launch : mine.before;
	put(t->form, (uint32_t)t->f.function, &t->f, begin, is_alone ? now : begin);
	if (++mine.ended < mine.begun)
		return;
	mine.begun = mine.ended = 0;
	mine.launch = 0;
	mine.before = now;
}

static struct child *add_child(uint64_t type)
{
	for (unsigned i = 0; i < TRIES; i++) {
		struct child *c = &events->children[atomic_fetch_add(&child_count, 1) % CHILDREN];

		if (atomic_exchange(&c->is_used, true))
			continue;
		c->type = (uint8_t)type;
		c->waits_for = WAITS;
		c->f = (struct nccl_fields){ 0 };
		c->begin = c->since = tick_now();
		c->operation = NULL;
		return c;
	}
	nvtx_lose(1);
	return NULL;
}

static bool is_task(const void *handle)
{
	uintptr_t at = (uintptr_t)handle - (uintptr_t)events->tasks;

	return at < sizeof(events->tasks) && at % sizeof(struct task) == 0;
}

/* Copies the fields of the parent.  A parent in another process, whose proxy runs here, has no
 * address in ours. */
static void take_parent(struct nccl_fields *f, const uint8_t *d)
{
	const struct task *t = (const struct task *)(uintptr_t)nccl_u64(d, NCCL_AT_PARENT);

	if (!is_task(t))
		return;
	f->communicator = t->f.communicator;
	f->sequence = t->f.sequence;
	f->function = t->f.function;
}

static void start_operation(const struct communicator *c, struct child *made, const uint8_t *d)
{
	uint64_t peer = nccl_rank(d, NCCL_AT_PEER);
	int32_t pid, sends;

	memcpy(&pid, d + NCCL_AT_PID, sizeof(pid));
	memcpy(&sends, d + NCCL_AT_IS_SEND, sizeof(sends));
	made->f.communicator = c->hash;
	if (pid == getpid())
		take_parent(&made->f, d);
	made->f.channel = d[NCCL_AT_OP_CHANNEL];
	made->f.steps = nccl_rank(d, NCCL_AT_STEPS);
	made->f.from = sends ? nccl_rank(d, NCCL_AT_RANK) : peer;
	made->f.to = sends ? peer : nccl_rank(d, NCCL_AT_RANK);
}

static void start_child(int version, const struct communicator *c, void **handle, const uint8_t *d,
			uint64_t type)
{
	struct child *made = add_child(type);

	*handle = made;
	if (!made)
		return;
	if (type == NCCL_PROXY_OP) {
		start_operation(c, made, d);
	} else if (type == NCCL_PROXY_STEP) {
		made->operation = (struct child *)(uintptr_t)nccl_u64(d, NCCL_AT_PARENT);
	} else {
		made->f.communicator = c->hash;
		take_parent(&made->f, d);
		made->f.channel = d[NCCL_AT_CHANNEL];
		made->f.gpu_begin_ns = version > 3 ? nccl_u64(d, NCCL_AT_TIMER) : 0;
	}
}

static int start(int version, void *context, void **handle, const void *descriptor)
{
	const uint8_t *d = descriptor;
	uint64_t type = version < 5 ? d[0] : nccl_u64(d, 0);

	*handle = NULL;
	if (!context || !(session_word_now() & MODE_RECORD))
		return 0;
	switch (type) {
	case NCCL_COLLECTIVE:
	case NCCL_POINT:
	case NCCL_COPY_ENGINE:
		start_call(version, context, handle, d, type);
		break;
	case NCCL_PROXY_OP:
	case NCCL_PROXY_STEP:
	case NCCL_KERNEL_CHANNEL:
		start_child(version, context, handle, d, type);
		break;
	case NCCL_KERNEL_LAUNCH:
		mine.launch = tick_now();
	}
	return 0;
}

static bool is_child(const void *handle)
{
	uintptr_t at = (uintptr_t)handle - (uintptr_t)events->children;

	return at < sizeof(events->children) && at % sizeof(struct child) == 0;
}

static uint64_t ns_since(uint64_t begin)
{
	return (uint64_t)((double)(tick_now() - begin) * 1e9 / tick_per_second());
}

/* Adds the wait of a proxy step that ends now; only the proxy thread uses steps and operations. */
static void end_wait(struct child *step)
{
	if (step->waits_for < WAITS)
		step->f.waits[step->waits_for] += ns_since(step->since);
	step->since = tick_now();
}

static int record_state(void *handle, int state, const uint64_t *argument)
{
	struct child *c = handle;

	if (!is_child(handle))
		return 0;
	if (state == NCCL_CHANNEL_STOP && argument && c->f.gpu_begin_ns)
		c->f.gpu_ns = *argument - c->f.gpu_begin_ns;
	if (c->type == NCCL_PROXY_OP && state < NCCL_SEND_GPU && argument)
		c->f.bytes = *argument; /* before version 4: bytes of all steps so far */
	if (c->type != NCCL_PROXY_STEP)
		return 0;
	end_wait(c);
	c->waits_for =
		state == NCCL_SEND_GPU || state == NCCL_RECEIVE_GPU || state == NCCL_RECEIVE_FLUSH
			? WAIT_GPU
		: state == NCCL_SEND_PEER                                     ? WAIT_PEER
		: state == NCCL_SEND_NETWORK || state == NCCL_RECEIVE_NETWORK ? WAIT_NETWORK
									      : WAITS;
	if (argument && *argument)
		c->f.bytes = *argument;
	return 0;
}

static int stop(void *handle)
{
	struct child *c = handle, *operation;

	if (is_task(handle))
		stop_call(handle);
	if (!is_child(handle))
		return 0;
	if (c->type == NCCL_PROXY_STEP) {
		end_wait(c);
		operation = c->operation;
		if (is_child(operation) && operation->type == NCCL_PROXY_OP) {
			operation->f.bytes += c->f.bytes;
			for (unsigned i = 0; i < WAITS; i++)
				operation->f.waits[i] += c->f.waits[i];
		}
	} else {
		enum form form = c->type == NCCL_PROXY_OP ? PROXY : CHANNEL;

		uint64_t now = tick_now();

		c->f.took_ns = ns_since(c->begin);
		put(form, log_ids.names[form], &c->f, now, now);
	}
	atomic_store(&c->is_used, false);
	return 0;
}

/* ---- symbols that NCCL looks up ---- */

static int init_1(void **context, int *mask)
{
	return add_communicator(context, mask, 0, 0);
}

static int init_4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
		  int rank, void *log)
{
	return add_communicator(context, mask, hash, ranks);
}

static int init_5(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks,
		  int rank, void *log)
{
	return add_communicator(context, mask, hash, ranks);
}

#define VERSION(number, init)                                                                      \
	static int start_v##number(void *context, void **handle, const void *descriptor)           \
	{                                                                                          \
		return start(number, context, handle, descriptor);                                 \
	}                                                                                          \
	EXPORT extern struct nccl_profiler ncclProfiler_v##number;                                 \
	struct nccl_profiler ncclProfiler_v##number = { "Tacho", (void *)init, start_v##number,    \
							stop,    record_state, finalize,           \
							{ NULL } };
VERSION(1, init_1)
VERSION(2, init_1)
VERSION(3, init_1)
VERSION(4, init_4)
VERSION(5, init_5)
VERSION(6, init_5)
VERSION(7, init_5)

/* ---- the probe ---- */

static enum status nccl_open(const struct config *config, struct error *err)
{
	if (config->nccl_events == NCCL_NO)
		return fail(err, ST_ABSENT, NOWHERE, "NCCL is not requested");
	return ST_OK;
}

static enum status nccl_begin(uint64_t now_ns, struct error *err)
{
	lock_take_masked(&lock);
	choose_events(true);
	lock_release(&lock);
	return ST_OK;
}

static void nccl_end(uint64_t now_ns, uint64_t deadline_ns)
{
	nccl_window_changed();
}

/* The child has only one thread and cannot use its parent's communicators. */
static void nccl_forked(void)
{
	lock = (struct lock)LOCK_INITIALIZER;
	memset(communicators, 0, sizeof(communicators));
	wanted = 0;
}

const struct probe_type probe_nccl = {
	.name = "nccl",
	.help = "collectives as NCCL sees them: algorithm, protocol, channels, proxies",
	.open = nccl_open,
	.begin = nccl_begin,
	.end = nccl_end,
	.forked = nccl_forked,
};

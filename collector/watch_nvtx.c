/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX's handler: what the program says of itself, through ours instead of CUPTI's records.
 *
 * A range is pushed on the lane of its thread and put into the ring when it ends, like those of
 * tacho.h.  What a callback is given dies when it returns: a text that was seen before has a
 * number (names.h), any other is copied; nothing is parsed here.  Off: the nesting is kept,
 * because push and pop must return it.
 */
#include "collector/names.h"
#include "collector/nvtx_names.h"
#include "collector/nvtx_payload.h"
#include "collector/nvtx_rows.h"
#include "collector/nvtx_tables.h"
#include "collector/nvtx_text.h"
#include "collector/session.h"
#include "collector/watch.h"
#include "collector/writer.h"
#include "schemas/buf.h"
#include "schemas/json_text.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT __attribute__((visibility("default")))
enum { NOTHING_OPEN = -1, /* what push and pop return then */
        NEAR_DOMAINS = 12, WINDOWS_TOLD = 32 };

static _Atomic uint32_t thread_count, handler_count;
static _Atomic uint64_t lost_here; /* too deep, no memory */

/* ---- what a thread has: kept whether somebody records or not ---- */

struct nvtx_thread {
	uint32_t number, started; /* number: 0 until the first range with an id */
	uint32_t tid;
	uint32_t near[NEAR_DOMAINS]; /* depth, by domain */
	uint32_t *far;               /* of the others; mapped when one comes */
};
static _Thread_local struct nvtx_thread mine;

static void unmap_far(void *far)
{
	munmap(far, NVTX_DOMAINS * sizeof(uint32_t));
	mine.far = NULL;
}

static pthread_key_t far_key;
static pthread_once_t far_once = PTHREAD_ONCE_INIT;

static void make_far_key(void)
{
	pthread_key_create(&far_key, unmap_far);
}

/* One page for the life of the thread; NULL: no memory, and the nesting is not known. */
static __attribute__((noinline)) uint32_t *far_depths(void)
{
	void *p;

	if (mine.far)
		return mine.far;
	p = mmap(NULL, NVTX_DOMAINS * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	pthread_once(&far_once, make_far_key);
	pthread_setspecific(far_key, p);
	mine.far = p;
	return p;
}

static inline uint32_t *depth_of(uint32_t domain)
{
	uint32_t *far;

	if (LIKELY(domain < NEAR_DOMAINS))
		return &mine.near[domain];
	far = far_depths();
	return far ? &far[domain] : NULL;
}

static void lose_one(void)
{
	atomic_fetch_add_explicit(&lost_here, 1, memory_order_relaxed);
}

/* ---- the lane ---- */

static inline uint32_t word_now(void)
{
	return atomic_load_explicit(&session_word, memory_order_relaxed);
}

/* The lane of this thread with a stack for NVTX; NULL: none can be had. */
static struct lane *make_stack(struct lane *l)
{
	struct nvtx_stack *s = nvtx_stack_new();

	if (!s) {
		lose_one();
		return NULL;
	}
	atomic_store_explicit(&l->nvtx, s, memory_order_release);
	return l;
}

static inline struct nvtx_stack *stack_of(const struct lane *l)
{
	return atomic_load_explicit(&l->nvtx, memory_order_relaxed);
}

static inline struct lane *lane_for(uint32_t word)
{
	struct lane *l = lane_mine;

	if (UNLIKELY(!l || LANE_GET(l->seen) != word))
		l = session_lane(true);
	if (LIKELY(l && stack_of(l)))
		return l;
	return l ? make_stack(l) : NULL;
}

/* Of who ends something: without a lane there is nothing to end. */
static inline struct lane *lane_of(uint32_t word)
{
	struct lane *l = lane_mine;

	if (UNLIKELY(!l || LANE_GET(l->seen) != word))
		l = session_lane(false);
	return l && stack_of(l) ? l : NULL;
}

/* ---- what is said: into the draft of the stack ---- */

/* What all forms of a call come down to. */
struct said {
	uint32_t domain;
	int32_t message_type;
	const void *message;
	const struct nvtx_attributes *more; /* NULL: the text alone */
	const struct nvtx_data *payloads;   /* of the calls that take them as they are */
	size_t payload_count;
};

static inline uint32_t domain_of(const void *handle)
{
	uintptr_t domain = (uintptr_t)handle;

	return domain < NVTX_DOMAINS ? (uint32_t)domain : 0;
}

static void put_text(struct nvtx_draft *d, const char *text, size_t len)
{
	len = nvtx_text_fit(text, len, NVTX_TEXT_MAX);
	d->name = name_known(text, len);
	if (d->name)
		return;
	memcpy(nvtx_draft_room(d), text, len);
	nvtx_draft_text(d, len);
}

static void put_message(struct nvtx_draft *d, int32_t type, const void *message)
{
	size_t len;

	if (type == NVTX_MESSAGE_ASCII && message) {
		put_text(d, message, strnlen(message, NVTX_TEXT_MAX + 1));
	} else if (type == NVTX_MESSAGE_REGISTERED) {
		d->name = (uintptr_t)message <= NAMES_MAX ? (uint32_t)(uintptr_t)message : 0;
	} else if (type == NVTX_MESSAGE_WIDE) {
		len = nvtx_text_narrow(nvtx_draft_room(d), NVTX_TEXT_MAX, message);
		d->name = name_known(nvtx_draft_room(d), len);
		if (!d->name)
			nvtx_draft_text(d, len);
	}
}

#define HAS(attributes, member) \
	((attributes)->size >= offsetof(struct nvtx_attributes, member) + \
			       sizeof((attributes)->member))

static void put_payloads(struct nvtx_draft *d, uint32_t domain, const struct nvtx_data *data,
			 size_t count, bool at_end)
{
	size_t i;

	for (i = 0; data && i < count; i++)
		nvtx_payload_copy(d, domain, &data[i], at_end);
}

static void put_value(struct nvtx_draft *d, uint32_t domain, const struct nvtx_attributes *a)
{
	struct nvtx_tail *tail = nvtx_draft_tail(d);
	bool short_one = a->value_type >= NVTX_VALUE_U32;

	if (a->value_type == NVTX_VALUE_EXTENDED) {
		put_payloads(d, domain, (const struct nvtx_data *)(uintptr_t)a->value.u64,
			     a->payload_count > 0 ? (size_t)a->payload_count : 0, false);
	} else if (a->value_type > NVTX_VALUE_NONE && a->value_type <= NVTX_VALUE_F32) {
		tail->value_type = (uint8_t)a->value_type;
		tail->value = short_one ? a->value.u32 : a->value.u64;
	}
}

static uint64_t word_of(const struct said *what)
{
	const struct nvtx_attributes *a = what->more;
	uint64_t word = what->domain;

	if (a && HAS(a, category))
		word |= (uint64_t)a->category << NVTX_WORD_CATEGORY;
	if (a && HAS(a, color) && a->color_type == 1)
		word |= (uint64_t)nvtx_color_find(a->color) << NVTX_WORD_COLOR;
	return word;
}

static void put_said(struct nvtx_draft *d, const struct said *what)
{
	const struct nvtx_attributes *a = what->more;

	nvtx_draft_init(d, word_of(what));
	put_message(d, what->message_type, what->message);
	if (a && HAS(a, value))
		put_value(d, what->domain, a);
	put_payloads(d, what->domain, what->payloads, what->payload_count, false);
}

static struct said from_attributes(uint32_t domain, const struct nvtx_attributes *a)
{
	struct said what = { .domain = domain, .more = a };

	if (a && HAS(a, message)) {
		what.message_type = a->message_type;
		what.message = a->message;
	}
	return what;
}

static inline struct said from_text(int32_t type, const void *text)
{
	return (struct said){ .message_type = type, .message = text };
}

static struct said from_payloads(const void *domain, const struct nvtx_data *data, size_t count)
{
	return (struct said){ .domain = domain_of(domain), .payloads = data,
			      .payload_count = count };
}

/* ---- windows that wait for a range ---- */

static bool is_awaited(const struct nvtx_draft *d, uint32_t awaited)
{
	const char *text, *wanted;
	struct nvtx_torch t;
	size_t len, wanted_len;

	if (d->name)
		return d->name == awaited;
	text = (const char *)d->bytes + sizeof(struct nvtx_tail);
	wanted = name_text(awaited, &wanted_len);
	len = ((const struct nvtx_tail *)(const void *)d->bytes)->text_len;
	if (nvtx_text_torch(text, len, &t))
		len = t.name_len;
	return len == wanted_len && !memcmp(text, wanted, len);
}

static __attribute__((noinline)) void range_matters(uint32_t awaited, enum window_event event)
{
	size_t len;

	session_feed(event, tick_now(), 0, name_text(awaited, &len));
}

/* The draft's range begins: true when that has changed what is recorded. */
static bool begins(struct nvtx_draft *d)
{
	uint32_t awaited = atomic_load_explicit(&session_range, memory_order_relaxed);

	if (LIKELY(!awaited) || !is_awaited(d, awaited))
		return false;
	d->word |= UINT64_C(1) << NVTX_WORD_AWAITED;
	range_matters(awaited, WINDOW_RANGE_BEGIN);
	return true;
}

static void ends(uint64_t word)
{
	uint32_t awaited = atomic_load_explicit(&session_range, memory_order_relaxed);

	if (UNLIKELY(awaited && word >> NVTX_WORD_AWAITED & 1))
		range_matters(awaited, WINDOW_RANGE_END);
}

/* ---- push and pop, start and end, mark ---- */

static void push_open(uint32_t word, uint32_t level, const struct said *what)
{
	struct lane *l = lane_for(word);

	if (UNLIKELY(!l))
		return;
	put_said(&stack_of(l)->draft, what);
	if (UNLIKELY(begins(&stack_of(l)->draft)))
		session_lane(true); /* catches up; the draft is still there */
	nvtx_stack_push(stack_of(l), level, tick_now());
}

static inline int push(const struct said *what)
{
	uint32_t *depth = depth_of(what->domain), word = word_now(), level;

	if (UNLIKELY(!depth))
		return NOTHING_OPEN;
	level = (*depth)++;
	if (UNLIKELY(word))
		push_open(word, level, what);
	return (int)level;
}

/* A record of what the draft says. */
static void put_record(struct lane *l, unsigned kind, uint64_t begin, uint64_t end)
{
	struct nvtx_draft *d = &stack_of(l)->draft;
	struct ring_record r = {
		.begin = begin, .end = end, .word = d->word, .name = d->name,
		.kind = (uint8_t)kind, .flags = RING_NVTX, .more = (uint8_t)nvtx_draft_more(d),
		.subkind = kind == KIND_RANGE ? RANGE_NVTX : MARK_INSTANT,
	};

	lane_put_record(l, &r, d->bytes);
}

static void pop_open(uint32_t word, uint32_t domain, uint32_t level, const struct nvtx_data *data,
		     size_t count)
{
	struct lane *l = lane_of(word);
	uint64_t begin, end = tick_now();

	if (UNLIKELY(!l || !nvtx_stack_pop(stack_of(l), domain, level, &begin)))
		return;
	if (l->records) {
		put_payloads(&stack_of(l)->draft, domain, data, count, true);
		put_record(l, KIND_RANGE, begin, end);
	}
	ends(stack_of(l)->draft.word);
}

static inline int pop(uint32_t domain, const struct nvtx_data *data, size_t count)
{
	uint32_t *depth = depth_of(domain), word = word_now();

	if (UNLIKELY(!depth || !*depth))
		return NOTHING_OPEN;
	--*depth;
	if (UNLIKELY(word))
		pop_open(word, domain, *depth, data, count);
	return (int)*depth;
}

static void mark_now(uint32_t word, const struct said *what)
{
	struct lane *l = lane_for(word);
	uint64_t now;

	if (!l || !l->records)
		return;
	now = tick_now();
	put_said(&stack_of(l)->draft, what);
	put_record(l, KIND_MARK, now, now);
}

static inline void mark(const struct said *what)
{
	uint32_t word = word_now();

	if (UNLIKELY(word & MODE_RECORD))
		mark_now(word, what);
}

static uint64_t next_serial(void)
{
	if (UNLIKELY(!mine.number)) {
		mine.tid = (uint32_t)gettid();
		mine.number = 1 + (atomic_fetch_add_explicit(&thread_count, 1,
							     memory_order_relaxed) & 0x3ffff);
	}
	return (uint64_t)mine.number << 32 | ++mine.started;
}

static uint64_t start_open(uint32_t word, uint64_t serial, const struct said *what)
{
	struct lane *l = lane_for(word);
	uint64_t over;

	if (UNLIKELY(!l))
		return serial;
	put_said(&stack_of(l)->draft, what);
	if (UNLIKELY(begins(&stack_of(l)->draft)))
		session_lane(true);
	over = atomic_load_explicit(&session_over, memory_order_acquire);
	return nvtx_started_put(&stack_of(l)->draft, serial, mine.tid, tick_now(), over);
}

static inline uint64_t start(const struct said *what)
{
	uint64_t serial = next_serial();
	uint32_t word = word_now();

	return UNLIKELY(word) ? start_open(word, serial, what) : serial;
}

/* It was open at the ends of windows that nobody told of it. */
static void tell_started(struct lane *l, const struct nvtx_ended *e)
{
	uint64_t over = atomic_load_explicit(&session_over, memory_order_acquire), window;
	struct nvtx_draft *d = &stack_of(l)->draft;
	struct lane_span span;
	struct ring_record r;

	window = over > e->told + WINDOWS_TOLD ? over - WINDOWS_TOLD : e->told;
	while (window++ < over) {
		span = session_span(window);
		if (nvtx_open_record(&r, &span, e->begin, d->word, d->name, nvtx_draft_more(d)))
			ring_put_tail(&l->ring, &r, d->bytes);
	}
}

static void end_open(uint32_t word, uint64_t id, const struct nvtx_data *data, size_t count)
{
	struct lane *l = lane_for(word);
	struct nvtx_ended e;
	uint64_t now = tick_now();
	struct nvtx_draft *d;

	if (UNLIKELY(!l)) {
		nvtx_started_take(id, NULL, &e);
		return;
	}
	d = &stack_of(l)->draft;
	if (!nvtx_started_take(id, d, &e))
		return;
	tell_started(l, &e);
	if (l->records) {
		put_payloads(d, nvtx_word_domain(d->word), data, count, true);
		put_record(l, KIND_RANGE, e.begin, now);
	}
	ends(d->word);
}

static inline void end(uint64_t id, const struct nvtx_data *data, size_t count)
{
	uint32_t word = word_now();
	struct nvtx_ended e;

	if (UNLIKELY(word))
		end_open(word, id, data, count);
	else if (UNLIKELY(id >> NVTX_SERIAL_BITS))
		nvtx_started_take(id, NULL, &e);
}

/* ---- names: rare, with a short lock ---- */

/* A name that is to stay, whatever it came as. */
static uint32_t keep_name(int32_t type, const void *text)
{
	char narrow[NVTX_TEXT_MAX];

	if (type == NVTX_MESSAGE_REGISTERED)
		return (uintptr_t)text <= NAMES_MAX ? (uint32_t)(uintptr_t)text : 0;
	if (type == NVTX_MESSAGE_WIDE)
		return name_find_text(narrow, nvtx_text_narrow(narrow, sizeof(narrow), text));
	return name_find(type == NVTX_MESSAGE_ASCII ? text : NULL);
}

static const void *handle_of(uint32_t number)
{
	return (const void *)(uintptr_t)number;
}

/* NULL is no text that was registered: what does not fit is the empty one. */
static const void *string_handle(int32_t type, const void *text)
{
	uint32_t name = keep_name(type, text);

	if (!name)
		lose_one();
	return handle_of(name ? name : name_find(""));
}

static const void *domain_handle(int32_t type, const void *name)
{
	return handle_of(nvtx_domain_find(keep_name(type, name)));
}

static const void *resource_create(const void *domain, const struct nvtx_resource *r)
{
	static const struct {
		int32_t type;
		enum nvtx_thing thing;
	} rows[] = {
		{ NVTX_RESOURCE_THREAD, NVTX_THREAD }, { NVTX_RESOURCE_PTHREAD, NVTX_THREAD },
		{ NVTX_RESOURCE_CU_DEVICE, NVTX_DEVICE }, { NVTX_RESOURCE_CUDA_DEVICE, NVTX_DEVICE },
		{ NVTX_RESOURCE_CU_STREAM, NVTX_STREAM }, { NVTX_RESOURCE_CUDA_STREAM, NVTX_STREAM },
		{ NVTX_RESOURCE_CU_CONTEXT, NVTX_CONTEXT }, { NVTX_RESOURCE_CU_EVENT, NVTX_EVENT },
		{ NVTX_RESOURCE_CUDA_EVENT, NVTX_EVENT },
	};
	enum nvtx_thing thing = NVTX_OTHER;
	uint64_t id;
	size_t i;

	if (!r || r->size < sizeof(*r))
		return handle_of(1);
	id = r->id;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].type == r->type)
			thing = rows[i].thing;
	if (r->type == NVTX_RESOURCE_PTHREAD && id == (uint64_t)pthread_self())
		id = (uint64_t)gettid();
	else if (r->type == NVTX_RESOURCE_PTHREAD)
		thing = NVTX_OTHER; /* whose number nobody can tell */
	nvtx_thing_put(thing, id, keep_name(r->message_type, r->message));
	return handle_of(1);
}

/* ---- what goes into the tables ---- */

#define A NVTX_MESSAGE_ASCII
#define W NVTX_MESSAGE_WIDE
#define SAID(what) (&(struct said[1]){ what }[0])
#define TEXT(type, text) SAID(from_text(type, text))
#define ATTRIBUTES(domain, a) SAID(from_attributes(domain_of(domain), a))
#define PAYLOADS(domain, data, count) SAID(from_payloads(domain, data, count))
typedef const struct nvtx_attributes *attributes;
typedef const struct nvtx_data *payloads;

static void mark_ex(attributes a) { mark(ATTRIBUTES(NULL, a)); }
static void mark_a(const char *text) { mark(TEXT(A, text)); }
static void mark_w(const wchar_t *text) { mark(TEXT(W, text)); }
static uint64_t start_ex(attributes a) { return start(ATTRIBUTES(NULL, a)); }
static uint64_t start_a(const char *text) { return start(TEXT(A, text)); }
static uint64_t start_w(const wchar_t *text) { return start(TEXT(W, text)); }
static void range_end(uint64_t id) { end(id, NULL, 0); }
static int push_ex(attributes a) { return push(ATTRIBUTES(NULL, a)); }
static int push_a(const char *text) { return push(TEXT(A, text)); }
static int push_w(const wchar_t *text) { return push(TEXT(W, text)); }
static int range_pop(void) { return pop(0, NULL, 0); }

static void domain_mark(const void *d, attributes a) { mark(ATTRIBUTES(d, a)); }
static uint64_t domain_start(const void *d, attributes a) { return start(ATTRIBUTES(d, a)); }
static void domain_end(const void *d, uint64_t id) { end(id, NULL, 0); }
static int domain_push(const void *d, attributes a) { return push(ATTRIBUTES(d, a)); }
static int domain_pop(const void *d) { return pop(domain_of(d), NULL, 0); }

static void payload_mark(const void *d, payloads p, size_t n) { mark(PAYLOADS(d, p, n)); }
static int payload_push(const void *d, payloads p, size_t n) { return push(PAYLOADS(d, p, n)); }
static int payload_pop(const void *d, payloads p, size_t n) { return pop(domain_of(d), p, n); }
static uint64_t payload_start(const void *d, payloads p, size_t n)
{
	return start(PAYLOADS(d, p, n));
}
static void payload_end(const void *d, uint64_t id, payloads p, size_t n) { end(id, p, n); }

static const void *domain_create_a(const char *name) { return domain_handle(A, name); }
static const void *domain_create_w(const wchar_t *name) { return domain_handle(W, name); }
static const void *string_a(const void *d, const char *text) { return string_handle(A, text); }
static const void *string_w(const void *d, const wchar_t *text) { return string_handle(W, text); }
static void domain_category_a(const void *d, uint32_t category, const char *name)
{
	nvtx_category_put(domain_of(d), category, keep_name(A, name));
}
static void domain_category_w(const void *d, uint32_t category, const wchar_t *name)
{
	nvtx_category_put(domain_of(d), category, keep_name(W, name));
}
static void category_a(uint32_t c, const char *name) { domain_category_a(NULL, c, name); }
static void category_w(uint32_t c, const wchar_t *name) { domain_category_w(NULL, c, name); }
static void destroy(const void *handle) { }

#define NAMED(function, id_type, thing, type, text_type)                                           \
	static void function(id_type id, const text_type *name)                                    \
	{                                                                                          \
		nvtx_thing_put(thing, (uint64_t)(uintptr_t)id, keep_name(type, name));             \
	}
NAMED(thread_a, uint32_t, NVTX_THREAD, A, char)
NAMED(thread_w, uint32_t, NVTX_THREAD, W, wchar_t)
NAMED(device_a, int, NVTX_DEVICE, A, char)
NAMED(device_w, int, NVTX_DEVICE, W, wchar_t)
NAMED(context_a, const void *, NVTX_CONTEXT, A, char)
NAMED(context_w, const void *, NVTX_CONTEXT, W, wchar_t)
NAMED(stream_a, const void *, NVTX_STREAM, A, char)
NAMED(stream_w, const void *, NVTX_STREAM, W, wchar_t)
NAMED(event_a, const void *, NVTX_EVENT, A, char)
NAMED(event_w, const void *, NVTX_EVENT, W, wchar_t)

static uint64_t schema_register(const void *d, const struct nvtx_schema *s)
{
	return nvtx_schema_put(domain_of(d), s);
}
static uint64_t enum_register(const void *d, const struct nvtx_enum *e)
{
	return nvtx_enum_put(domain_of(d), e);
}
static uint8_t domain_is_enabled(const void *d) { return 1; }

#define F(module, place, function) { module, place, (nvtx_function)(function) }
static const struct nvtx_slot slots[] = {
	F(NVTX_CORE, 1, mark_ex), F(NVTX_CORE, 2, mark_a), F(NVTX_CORE, 3, mark_w),
	F(NVTX_CORE, 4, start_ex), F(NVTX_CORE, 5, start_a), F(NVTX_CORE, 6, start_w),
	F(NVTX_CORE, 7, range_end),
	F(NVTX_CORE, 8, push_ex), F(NVTX_CORE, 9, push_a), F(NVTX_CORE, 10, push_w),
	F(NVTX_CORE, 11, range_pop),
	F(NVTX_CORE, 12, category_a), F(NVTX_CORE, 13, category_w),
	F(NVTX_CORE, 14, thread_a), F(NVTX_CORE, 15, thread_w),
	F(NVTX_CUDA, 1, device_a), F(NVTX_CUDA, 2, device_w),
	F(NVTX_CUDA, 3, context_a), F(NVTX_CUDA, 4, context_w),
	F(NVTX_CUDA, 5, stream_a), F(NVTX_CUDA, 6, stream_w),
	F(NVTX_CUDA, 7, event_a), F(NVTX_CUDA, 8, event_w),
	F(NVTX_CUDART, 1, device_a), F(NVTX_CUDART, 2, device_w),
	F(NVTX_CUDART, 3, stream_a), F(NVTX_CUDART, 4, stream_w),
	F(NVTX_CUDART, 5, event_a), F(NVTX_CUDART, 6, event_w),
	F(NVTX_CORE2, 1, domain_mark), F(NVTX_CORE2, 2, domain_start),
	F(NVTX_CORE2, 3, domain_end), F(NVTX_CORE2, 4, domain_push), F(NVTX_CORE2, 5, domain_pop),
	F(NVTX_CORE2, 6, resource_create), F(NVTX_CORE2, 7, destroy),
	F(NVTX_CORE2, 8, domain_category_a), F(NVTX_CORE2, 9, domain_category_w),
	F(NVTX_CORE2, 10, string_a), F(NVTX_CORE2, 11, string_w),
	F(NVTX_CORE2, 12, domain_create_a), F(NVTX_CORE2, 13, domain_create_w),
	F(NVTX_CORE2, 14, destroy),
};
static const struct nvtx_slot payload_slots[] = {
	F(NVTX_PAYLOAD, 0, schema_register), F(NVTX_PAYLOAD, 1, enum_register),
	F(NVTX_PAYLOAD, 2, payload_mark), F(NVTX_PAYLOAD, 3, payload_push),
	F(NVTX_PAYLOAD, 4, payload_pop), F(NVTX_PAYLOAD, 5, payload_start),
	F(NVTX_PAYLOAD, 6, payload_end), F(NVTX_PAYLOAD, 7, domain_is_enabled),
};

/* ---- what NVTX calls: by each shared object that has it, on any thread ---- */

static bool is_wanted(void)
{
	const struct config *c = session_config();

	return c && c->nvtx && !c->forbidden;
}

/* Never 0, or NVTX unloads us; without functions it does nothing. */
EXPORT int InitializeInjectionNvtx2(nvtx_get_table get_table);
int InitializeInjectionNvtx2(nvtx_get_table get_table)
{
	if (is_wanted() && nvtx_install(get_table, slots, sizeof(slots) / sizeof(slots[0])))
		atomic_fetch_add_explicit(&handler_count, 1, memory_order_relaxed);
	return 1;
}

EXPORT int InitializeInjectionNvtxExtension(struct nvtx_extension *x);
int InitializeInjectionNvtxExtension(struct nvtx_extension *x)
{
	if (is_wanted())
		nvtx_install_extension(x, payload_slots,
				       sizeof(payload_slots) / sizeof(payload_slots[0]));
	return 1;
}

/* ---- the writer's side ---- */

static struct {
	uint64_t log;
	uint32_t things, domains;
	uint64_t lost;
} told;

/* XLA asks whether there is a handler, once, and then gives its annotations to that one alone. */
static void tell_domains(struct writer *w, uint32_t count)
{
	uint32_t xla = name_known("TSL", 3), i;

	for (i = told.domains; i < count; i++)
		if (i && nvtx_domain_name(i) == xla)
			writer_tell(w, "nvtx_note", "XLA gives its annotations to NVTX while there "
				    "is a handler: jax.profiler does not see them; with --no-nvtx "
				    "it does", false);
	told.domains = count;
}

/* What is named by an address cannot be found among CUPTI's numbers: all names are in the log. */
static void tell_things(struct writer *w, uint32_t count)
{
	static const char *const words[] = { "thread", "device", "stream", "context", "event",
					     "other" };
	struct buf out;
	uint32_t i;
	size_t len;

	buf_init(&out, 64 * 1024);
	for (i = 0; i < count && out.len < 60 * 1024; i++) {
		struct nvtx_named n = nvtx_thing_at(i);
		const char *text = name_text(n.name, &len);

		buf_putf(&out, "%s{\"%s\": %llu, \"name\": ", i ? ", " : "[", words[n.thing],
			 (unsigned long long)n.id);
		json_put_text(&out, text, len);
		buf_put_byte(&out, '}');
	}
	buf_put_byte(&out, ']');
	writer_tell(w, "nvtx_names", buf_text(&out), true);
	buf_release(&out);
}

static bool is_here(uint32_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%u", tid);
	return access(path, F_OK) == 0;
}

static void name_threads(struct writer *w, uint32_t count)
{
	const char *text;
	uint32_t i;
	size_t len;

	for (i = 0; i < count; i++) {
		struct nvtx_named n = nvtx_thing_at(i);

		if (n.thing != NVTX_THREAD || !is_here((uint32_t)n.id))
			continue;
		text = name_text(n.name, &len);
		writer_name_track(w, nvtx_rows_thread(w, (uint32_t)n.id),
				  writer_name(w, text, len));
	}
}

static uint64_t all_lost(void)
{
	uint64_t lost = atomic_load_explicit(&lost_here, memory_order_relaxed);
	struct nvtx_stack *s;
	struct lane *l;

	for (l = session_lanes(); l; l = l->next) {
		s = atomic_load_explicit(&l->nvtx, memory_order_acquire);
		if (s)
			lost += atomic_load_explicit(&s->lost, memory_order_relaxed);
	}
	return lost + nvtx_started_lost() + nvtx_payload_lost() + nvtx_names_lost();
}

static unsigned nvtx_drain(struct writer *w, uint64_t now_ns)
{
	uint32_t count = nvtx_thing_count(), domains = nvtx_domain_count();
	uint64_t lost = all_lost();

	if (domains != told.domains)
		tell_domains(w, domains);
	if (count && (count != told.things || writer_log(w) != told.log)) {
		tell_things(w, count);
		if (writer_ready(w))
			name_threads(w, count);
		told.things = count;
		told.log = writer_log(w);
	}
	if (lost != told.lost && writer_ready(w)) {
		writer_lose(w, LOSS_CEILING, lost - told.lost);
		told.lost = lost;
	}
	return 0;
}

static void put_late(struct lane *l, const struct ring_record *r, const void *tail, void *arg)
{
	struct writer *w = arg;

	if (writer_wants(w, r->kind) && writer_ready(w))
		nvtx_rows_put(w, 0, 0, r, tail);
}

static void nvtx_close_window(struct writer *w, uint64_t window)
{
	struct lane_span span = session_span(window);

	nvtx_started_tell(window, &span, put_late, w);
}

static void nvtx_forked(void)
{
	mine.number = 0;
	nvtx_started_clear();
}

static void nvtx_doctor(struct buf *out)
{
	if (!session_config()->nvtx)
		buf_put_text(out, "nvtx      is switched off\n");
	else
		buf_put_text(out, "nvtx      ranges are taken, without CUPTI\n");
}

const struct watch_type watch_nvtx = {
	.name = "nvtx",
	.help = "NVTX ranges and marks of the program and its libraries",
	.drain = nvtx_drain,
	.close_window = nvtx_close_window,
	.forked = nvtx_forked,
	.doctor = nvtx_doctor,
};

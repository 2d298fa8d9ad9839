/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - the work of a call of NVTX, on the calling thread.
 *
 * While recording is off, only the nesting is tracked, because push and pop must return it.
 * Otherwise a range is stored in the thread's state and put into the ring when it ends, like those
 * of tacho.h.  Arguments are valid only during the call: a text that has an id (arena/texts.h) is
 * stored as the id, and any other text is copied.  Nothing is parsed here.  Memory is allocated
 * only at a thread's first call, and no lock is taken.
 */
#pragma once

#include "collector/probe/nvtx/names.h"
#include "collector/probe/nvtx/abi.h"
#include "collector/session/session.h"

enum {
	NVTX_NOTHING_OPEN = -1, /* result of push and pop without an open range */
	NVTX_INLINE_DOMAINS = 12,
};

/* An event in the form that all kinds of calls are converted to; borrowed for the call. */
struct nvtx_event {
	uint32_t domain;
	int32_t message_type; /* enum nvtx_message */
	const void *message;
	const struct nvtx_attributes *more; /* NULL: there is only a text */
	const struct nvtx_data *payloads;   /* payloads of calls that have them as arguments */
	size_t payload_count;
};

/* Per-thread state that exists whether or not recording is on. */
struct nvtx_thread {
	uint32_t number, started; /* number: 0 until the first range with an id */
	uint32_t tid;
	uint32_t depths[NVTX_INLINE_DOMAINS]; /* depth, by domain */
	uint32_t *more_depths; /* depths of other domains; mapped at their first use */
};
extern _Thread_local struct nvtx_thread nvtx_mine HIDDEN;

/* nvtx_push(), nvtx_pop() and nvtx_mark() call these if the session is not off. */
void nvtx_push_open(uint32_t word, uint32_t level, const struct nvtx_event *what);
void nvtx_pop_open(uint32_t word, uint32_t domain, uint32_t level, const struct nvtx_data *data,
		   size_t count);
void nvtx_mark_now(uint32_t word, const struct nvtx_event *what);
/*
 * Puts a record of our own like that of a completed call of NVTX.  Does nothing if no window is
 * open.
 */
void nvtx_put_whole(const struct nvtx_event *what, unsigned kind, uint64_t begin, uint64_t end);
/* Returns the begin of this thread's innermost open range of the domain, or 0. */
uint64_t nvtx_open_begin(uint32_t domain);
/* Returns the depths of all domains, or NULL without memory; the nesting is then unknown. */
uint32_t *nvtx_more_depths(void);

/* Begins a range that any thread may end; returns its id, which is never 0. */
uint64_t nvtx_start(const struct nvtx_event *what);
void nvtx_end(uint64_t id, const struct nvtx_data *data, size_t count);

/* Allocates memory when NVTX is loaded, so that the first ranges of this thread make no system
 * call. */
void nvtx_prepare(void);
/* Resets the state in the child of a fork, on its only thread. */
void nvtx_calls_forked(void);

static inline uint32_t *nvtx_depth(uint32_t domain)
{
	if (__builtin_expect(domain < NVTX_INLINE_DOMAINS, 1))
		return &nvtx_mine.depths[domain];
	uint32_t *more_depths = nvtx_mine.more_depths ? nvtx_mine.more_depths : nvtx_more_depths();
	return more_depths ? &more_depths[domain] : NULL;
}

/* Begins a range and returns its level, from 0 on. */
static inline int nvtx_push(const struct nvtx_event *what)
{
	uint32_t *depth = nvtx_depth(what->domain), word = session_word_now(), level;

	if (__builtin_expect(!depth, 0))
		return NVTX_NOTHING_OPEN;
	level = (*depth)++;
	if (word)
		nvtx_push_open(word, level, what);
	return (int)level;
}

/* Ends the innermost range and returns its level. */
static inline int nvtx_pop(uint32_t domain, const struct nvtx_data *data, size_t count)
{
	uint32_t *depth = nvtx_depth(domain), word = session_word_now();

	if (__builtin_expect(!depth || !*depth, 0))
		return NVTX_NOTHING_OPEN;
	--*depth;
	if (word)
		nvtx_pop_open(word, domain, *depth, data, count);
	return (int)*depth;
}

static inline void nvtx_mark(const struct nvtx_event *what)
{
	uint32_t word = session_word_now();

	if (word & MODE_RECORD)
		nvtx_mark_now(word, what);
}

/* Whether the struct is long enough to have the member; older and newer copies of NVTX differ. */
#define NVTX_HAS(attributes, member)                                                               \
	((attributes)->size >=                                                                     \
	 offsetof(struct nvtx_attributes, member) + sizeof((attributes)->member))

/* Handles of domains are their numbers. */
static inline uint32_t nvtx_domain_of(const void *handle)
{
	uintptr_t domain = (uintptr_t)handle;

	return domain < NVTX_DOMAINS ? (uint32_t)domain : 0;
}

static inline struct nvtx_event nvtx_event_of_attributes(const void *domain,
							 const struct nvtx_attributes *a)
{
	struct nvtx_event what = { .domain = nvtx_domain_of(domain), .more = a };

	if (a && NVTX_HAS(a, message)) {
		what.message_type = a->message_type;
		what.message = a->message;
	}
	return what;
}

static inline struct nvtx_event nvtx_event_of_text(int32_t type, const void *text)
{
	return (struct nvtx_event){ .message_type = type, .message = text };
}

static inline struct nvtx_event nvtx_event_of_payloads(const void *domain,
						       const struct nvtx_data *data, size_t count)
{
	return (struct nvtx_event){ .domain = nvtx_domain_of(domain),
				    .payloads = data,
				    .payload_count = count };
}

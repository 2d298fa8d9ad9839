/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx/calls.h - what a call of NVTX does, on the thread that makes it.
 *
 * Off: the nesting is kept, because push and pop must return it.  Else a range is kept on the
 * thread's lane and put into the ring when it ends, like those of tacho.h.  What the call was given
 * dies when it returns: a text that was seen before has a number (names.h), any other is copied;
 * nothing is parsed here.  No allocation but a thread's first, no lock.
 */
#ifndef COLLECTOR_NVTX_CALLS_H
#define COLLECTOR_NVTX_CALLS_H

#include "collector/nvtx/names.h"
#include "collector/nvtx/tables.h"
#include "collector/session.h"

enum {
	NVTX_NOTHING_OPEN = -1, /* what push and pop return then */
	NVTX_NEAR_DOMAINS = 12,
};

/* What all forms of a call come down to; borrowed for the call. */
struct nvtx_said {
	uint32_t domain;
	int32_t message_type; /* enum nvtx_message */
	const void *message;
	const struct nvtx_attributes *more; /* NULL: the text alone */
	const struct nvtx_data *payloads;   /* of the calls that take them as they are */
	size_t payload_count;
};

/* What a thread has, whether somebody records or not. */
struct nvtx_thread {
	uint32_t number, started; /* number: 0 until the first range with an id */
	uint32_t tid;
	uint32_t near[NVTX_NEAR_DOMAINS]; /* depth, by domain */
	uint32_t *far;                    /* of the others; mapped when one comes */
};
extern _Thread_local struct nvtx_thread nvtx_mine HIDDEN;

/* By nvtx_push() and its like, when the session is not off. */
void nvtx_push_open(uint32_t word, uint32_t level, const struct nvtx_said *what);
void nvtx_pop_open(uint32_t word, uint32_t domain, uint32_t level, const struct nvtx_data *data,
		   size_t count);
void nvtx_mark_now(uint32_t word, const struct nvtx_said *what);
/* NULL: no memory, and the nesting is not known. */
uint32_t *nvtx_far_depths(void);

/* An id, never 0. */
uint64_t nvtx_start(const struct nvtx_said *what);
void nvtx_end(uint64_t id, const struct nvtx_data *data, size_t count);

/* In the child of a fork, on the one thread that there is. */
void nvtx_calls_forked(void);
/* What was too deep, or had no memory; only grows. */
uint64_t nvtx_calls_lost(void);
void nvtx_calls_lose(void);

static inline uint32_t nvtx_word_now(void)
{
	return atomic_load_explicit(&session_word, memory_order_relaxed);
}

static inline uint32_t *nvtx_depth(uint32_t domain)
{
	uint32_t *far;

	if (__builtin_expect(domain < NVTX_NEAR_DOMAINS, 1))
		return &nvtx_mine.near[domain];
	far = nvtx_mine.far ? nvtx_mine.far : nvtx_far_depths();
	return far ? &far[domain] : NULL;
}

/* The level of the range that begins, from 0. */
static inline int nvtx_push(const struct nvtx_said *what)
{
	uint32_t *depth = nvtx_depth(what->domain), word = nvtx_word_now(), level;

	if (__builtin_expect(!depth, 0))
		return NVTX_NOTHING_OPEN;
	level = (*depth)++;
	if (word)
		nvtx_push_open(word, level, what);
	return (int)level;
}

/* The level of the range that ends. */
static inline int nvtx_pop(uint32_t domain, const struct nvtx_data *data, size_t count)
{
	uint32_t *depth = nvtx_depth(domain), word = nvtx_word_now();

	if (__builtin_expect(!depth || !*depth, 0))
		return NVTX_NOTHING_OPEN;
	--*depth;
	if (word)
		nvtx_pop_open(word, domain, *depth, data, count);
	return (int)*depth;
}

static inline void nvtx_mark(const struct nvtx_said *what)
{
	uint32_t word = nvtx_word_now();

	if (word & MODE_RECORD)
		nvtx_mark_now(word, what);
}

/* A member is there when the struct is long enough: older and newer copies of NVTX differ. */
#define NVTX_HAS(attributes, member) \
	((attributes)->size >= offsetof(struct nvtx_attributes, member) + \
			       sizeof((attributes)->member))

/* Handles of domains are their numbers. */
static inline uint32_t nvtx_domain_of(const void *handle)
{
	uintptr_t domain = (uintptr_t)handle;

	return domain < NVTX_DOMAINS ? (uint32_t)domain : 0;
}

static inline struct nvtx_said nvtx_said_attributes(const void *domain,
						    const struct nvtx_attributes *a)
{
	struct nvtx_said what = { .domain = nvtx_domain_of(domain), .more = a };

	if (a && NVTX_HAS(a, message)) {
		what.message_type = a->message_type;
		what.message = a->message;
	}
	return what;
}

static inline struct nvtx_said nvtx_said_text(int32_t type, const void *text)
{
	return (struct nvtx_said){ .message_type = type, .message = text };
}

static inline struct nvtx_said nvtx_said_payloads(const void *domain, const struct nvtx_data *data,
						  size_t count)
{
	return (struct nvtx_said){ .domain = nvtx_domain_of(domain), .payloads = data,
				   .payload_count = count };
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_standin.h - a collector as small as it can be, and the checks that it makes of the
 * stand-in.
 *
 * Each row of STANDIN_ROWS runs in a process of its own (check_standin.c), with one of the builds;
 * so what a row switches stays switched, and a row may die.  A row must fail if the behaviour that
 * it is named for were missing.
 */
#ifndef TESTS_FAKE_CHECK_STANDIN_H
#define TESTS_FAKE_CHECK_STANDIN_H

#if __has_include(<cupti_activity.h>)

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_version.h>

#include "tests/fake/fake_cuda.h"
#include "tests/fake/fake_cupti.h"

/* clang-format off */
#define CUPTI_FUNCTIONS(X) \
	X(cuptiGetVersion) X(cuptiGetTimestamp) X(cuptiActivityRegisterCallbacks) \
	X(cuptiActivityEnable) X(cuptiActivityEnableAndDump) X(cuptiActivityDisable) \
	X(cuptiActivityFlushAll) X(cuptiActivityFlushPeriod) X(cuptiActivityGetNextRecord) \
	X(cuptiActivityGetNumDroppedRecords) X(cuptiActivitySetAttribute) \
	X(cuptiActivityGetAttribute) X(cuptiSetThreadIdType) X(cuptiSubscribe) \
	X(cuptiUnsubscribe) X(cuptiEnableCallback) X(cuptiFinalize) \
	X(cuptiActivityRegisterTimestampCallback) X(cuptiActivityPushExternalCorrelationId) \
	X(cuptiActivityPopExternalCorrelationId) X(cuptiGetResultString) X(cuptiGetCallbackName)
/* clang-format on */
struct cupti {
#define X(name) __typeof__(&name) name;
	CUPTI_FUNCTIONS(X)
#undef X
	/* not in every build */
	CUptiResult (*runtime_api)(CUpti_CallbackId, uint8_t);
	CUptiResult (*subscribe_v2)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *,
				    CUpti_SubscriberParams *);
	CUptiResult (*struct_size)(CUpti_ActivityKind, uint32_t, size_t *);
	CUptiResult (*enabled_kinds)(CUpti_SubscriberHandle, CUpti_ActivityKind *, uint32_t *,
				     uint32_t *);
};
extern struct cupti cupti;
extern struct fake_cupti_controls fake;
extern unsigned profile; /* 1204, 1300, 1305, 1400 */

/* What the client does; set before client_open(). */
struct client {
	size_t bytes, most;              /* of a buffer; records in it, 0 any */
	bool none, crooked, dirty, same; /* what one must not give; same: the first */
	bool flush_in_request, flush_in_complete, allocate, lock;
	_Atomic bool hold; /* a request does not return before it is false */
	/* what it saw */
	_Atomic unsigned requests, completions, empty, odd_context;
	_Atomic unsigned on_this_thread, on_others; /* completions, seen from `thread` */
	_Atomic unsigned requests_here;
	pthread_t thread;
};
extern struct client client;

struct seen {                  /* a record, in the order in which records came */
	_Atomic uint32_t kind; /* written last */
	uint32_t buffer;
	uint8_t bytes[320];
	const char *name_at; /* as it stood in the record */
	char name[64];       /* read in the completion */
};
enum { SEEN = 20000 };
extern struct seen *seen;
extern _Atomic unsigned seen_count;

/* Registers, enables the kinds (0 ends), as a collector would. */
void client_open(const unsigned *kinds);
#define OPEN(...) client_open((const unsigned[]){ __VA_ARGS__, 0 })
unsigned count_kind(unsigned kind);
/* The number-th record of a kind; fails the row if there is none. */
const struct seen *find_kind(unsigned kind, unsigned number);
struct fake_cupti_totals totals(void);
void launch(unsigned times);
void wait_ms(unsigned ms);

void check(bool good, const char *text, const char *file, int line);
#define CHECK(condition)    check((condition), #condition, __FILE__, __LINE__)
#define CHECK_EQ(got, want) check_eq((uint64_t)(got), (uint64_t)(want), #got, __FILE__, __LINE__)
void check_eq(uint64_t got, uint64_t want, const char *text, const char *file, int line);

/* name, how it must end (0: returns; else a signal) */
/* clang-format off */
#define STANDIN_ROWS(X) \
	X(lazy_request, 0) X(buffer_each_thread, 0) X(buffer_for_all, 0) X(most_records, 0) \
	X(cleared, 0) X(not_cleared, 0) X(dirty_is_seen, 0) X(crooked_is_seen, 0) \
	X(no_buffer_early, 6) X(no_buffer_late, 0) X(same_buffer_twice, 0) \
	X(same_buffer_until_now, 0) \
	X(worker_completes, 0) X(worker_by_hand, 0) X(flush_completes, 0) \
	X(both_complete, 0) X(empty_buffers, 0) \
	X(late_buffers, 0) X(thread_that_ended, 0) \
	X(kernel_before_call, 0) X(shuffled, 0) X(pair_has_one_id, 0) X(no_id_without_calls, 0) \
	X(external_before_call, 0) X(graph_by_node, 0) X(graph_as_whole, 0) X(graph_made_early, 0) \
	X(flush_withholds, 0) X(forced_gives_zeros, 0) X(flush_inside, 0) X(flush_blocks, 14) \
	X(flush_returns_nothing, 0) \
	X(dropped, 0) X(zero_and_reversed, 0) X(clock_steps, 0) X(unsettled, 0) \
	X(timestamp_callback, 0) \
	X(names_die, 0) X(names_stay, 0) X(names_are_freed, 0) X(names_move, 0) \
	X(memory_of_the_client, 0) \
	X(errors, 0) X(kinds_refused, 0) X(one_subscriber, 0) X(subscriber_is_called, 0) \
	X(foreign_takes_all, 0) X(foreign_buffers, 0) X(foreign_disables, 0) \
	X(peer_comes_with_copies, 0) X(filter, 0) X(device_once, 0) X(streams_announced, 0) \
	X(values, 0) X(noise, 0) X(thread_ids, 0) X(unknown_kind, 0) X(struct_sizes, 0) \
	X(enabled_kinds, 0) \
	X(fork_is_seen, 0) X(finalize, 0) X(finalize_crashes, 6) X(strict, 6) X(driver_crash, 6) \
	X(slow_calls, 0) X(load, 0) X(guarded, 0) X(books_balance, 0)
/* clang-format on */
#define X(name, signal) void row_##name(void);
STANDIN_ROWS(X)
#undef X

#endif
#endif

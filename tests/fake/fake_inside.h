/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_inside.h - between the files of the stand-in for libcupti.
 *
 *	libcuda --facts--> records --slots--> buffers --complete()--> client
 *
 * Locks, in the order in which they may nest: a lane's, then the pool's.  The client's callbacks
 * are called with the lane's lock held (request) or with none (complete).
 */
#ifndef TESTS_FAKE_INSIDE_H
#define TESTS_FAKE_INSIDE_H

#include "tests/fake/fake_cupti.h"
#include "tests/fake/fake_fact.h"

#if __has_include(<cupti_activity.h>) /* without CUPTI's headers there is no stand-in */

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))

enum { KINDS = 64, UNKNOWN_RESULT = 999 };

enum option {
#define X(name, value, help) OPTION_##name,
	FAKE_CUPTI_OPTIONS(X)
#undef X
		OPTION_COUNT
};
extern _Atomic int64_t fake_options[OPTION_COUNT];
#define OPTION(name) atomic_load_explicit(&fake_options[OPTION_##name], memory_order_relaxed)

/* What one build is (fake_cupti_profile.c). */
struct fake_profile {
	uint32_t version, newest_kind, strange_kind;
	uint32_t driver_names, runtime_names; /* callback ids below these have names */
	uint32_t newest_result;
	int no_driver;         /* what calls return without a driver */
	bool silent;           /* and so do all calls without exception */
	uint16_t sizes[KINDS]; /* of a record; 0: not served */
};
extern const struct fake_profile fake_profile;
uint32_t fake_version(void);

/* ---- fake_cupti_control.c ---- */

extern _Atomic bool fake_forked;
/* Something that a client must never do. */
void fake_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Every exported function begins with it: counts, and looks for what must not be. */
void fake_called(const char *function);
/* The client's callbacks stand between these. */
enum fake_place { PLACE_NONE, PLACE_REQUEST, PLACE_COMPLETE };
void fake_place_enter(enum fake_place place);
void fake_place_leave(void);
bool fake_is_inside(void);
/* CLOCK_REALTIME with the option's offset; or the client's callback. */
uint64_t fake_now(void);
uint64_t fake_realtime(void);
/* Of a number that is CLOCK_REALTIME. */
uint64_t fake_shift(uint64_t ns);
/* The client's clock at a number that is CLOCK_REALTIME, whatever its rate. */
uint64_t fake_stamp_at(uint64_t ns);
/* Counts up; true each `every`-th time, never for 0. */
bool fake_each(_Atomic uint64_t *counter, int64_t every);
/* The client must free it. */
void fake_lend_memory(void *memory);
void fake_write_report(const char *path);

/* ---- state that functions switch, records look at ---- */

struct fake_state {
	_Atomic bool enabled[KINDS];
	_Atomic bool implied_peer;   /* MEMCPY brings MEMCPY2 */
	_Atomic bool muted[3][1024]; /* by domain and callback id */
	_Atomic(CUpti_BuffersCallbackRequestFunc) request;
	_Atomic(CUpti_BuffersCallbackCompleteFunc) complete;
	_Atomic(CUpti_TimestampCallbackFunc) stamp;
	_Atomic(CUpti_CallbackFunc) callback;
	void *callback_data;
	_Atomic bool subscribed;
	_Atomic bool wanted[CUPTI_CB_DOMAIN_SIZE][1024];
	_Atomic uint8_t per_thread, zeroed, all_syncs;
	_Atomic uint64_t stamp_zero, stamp_since_ns; /* the client's clock when it was registered */
	_Atomic uint32_t thread_ids;
	_Atomic uint64_t first_enable_ns, flush_period_ms;
};
extern struct fake_state fake_state;

extern struct fake_counts {
	_Atomic uint64_t made[KINDS], handed[KINDS];
	_Atomic uint64_t dropped, unasked; /* unasked: since the client last read it */
	_Atomic uint64_t foreign, requests, completions, empty, shared, by_flush, by_worker;
	_Atomic uint64_t together, flushes, forced, enables, registers, finalizes, faults, lent;
	_Atomic uint64_t flushing, slowed; /* flushes under way; calls that took longer */
} fake_counts;

/* Whether the calls of CUPTI do anything; loads libcuda.so.1 when asked first. */
bool fake_has_driver(void);
/* Tells existing devices, contexts, streams. */
void fake_list(fake_watch watch);
void fake_set_tracing(bool on);
void fake_watch_driver(bool on);

/* ---- fake_cupti_records.c: facts become records ---- */

/* When both times are 0 in the record these come in when the work has ended (CLOCK_REALTIME). */
struct fake_pending {
	uint64_t begin_ns, end_ns, due_ns;
	uint32_t begin_at, end_at, completed_at; /* offsets in the record; completed_at 0: none */
};

void fake_watch_fact(const struct fake_fact *fact);
/* As this build has it; `given` bytes are known, what is beyond them is noise. */
void fake_put_record(unsigned kind, const void *record, size_t given,
		     const struct fake_pending *pending);
enum { NOISE = 0xA5 };
#define RECORD(name, r)                                                                            \
	CUpti_Activity##name r;                                                                    \
	memset(&(r), OPTION(noise) ? NOISE : 0, sizeof(r))
#define PUT(kind, r) fake_put_record((kind), &(r), sizeof(r), NULL)
static inline bool fake_is_on(unsigned kind)
{
	return atomic_load_explicit(&fake_state.enabled[kind], memory_order_relaxed);
}
uint32_t fake_thread_id(void);

/* ---- fake_cupti_calls.c ---- */

void fake_call_enter(const struct fake_fact *fact);
void fake_call_leave(const struct fake_fact *fact);
void fake_dump(unsigned kind, bool existing);
int fake_push_external(unsigned kind, uint64_t id);
int fake_pop_external(unsigned kind, uint64_t *id);
const char *fake_callback_name(unsigned domain, uint32_t cbid);

/* ---- fake_cupti_buffers.c ---- */

/* Room for the record in a buffer of this thread, and its bytes; `pending` may be NULL. */
bool fake_put(const void *record, size_t size, const struct fake_pending *pending);
int fake_flush(bool forced);
/* One round of CUPTI's thread. */
void fake_work_round(bool all);
void fake_worker_start(void);
void fake_buffers_forked(void);
void fake_buffers_end(void);
void fake_foreign_now(unsigned mode);

/* ---- fake_cupti_hand.c: what happens to a buffer around complete() ---- */

void fake_hand_over(uint8_t *bytes, size_t size, size_t valid, bool parse, bool by_flush,
		    bool foreign);

#endif
#endif

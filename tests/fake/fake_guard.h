/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_guard.h - libfake_guard.so, preloaded: what happens inside the client's callbacks.
 *
 * The stand-in, or a test program around calls of NVTX, says where the thread is; the guard stands
 * before malloc(), locks, clocks and I/O of the whole process and counts what is called there: in
 * `request` and `nvtx` nothing of it is allowed, in `complete` a lock alone.  Not for sanitizers,
 * which stand where it stands.
 *
 *	LD_PRELOAD=libfake_guard.so:libtacho.so FAKE_GUARD_REPORT=guard.json program
 *
 * guard.json: {"request": {"malloc": 0, ...}, "complete": {...}, "nvtx": {...}, "held": 0}.
 * FAKE_GUARD_STEP_NS=-1000000000 FAKE_GUARD_STEP_MS=500: CLOCK_REALTIME of the process steps by
 * that much, so long after its start.
 */
#ifndef TESTS_FAKE_GUARD_H
#define TESTS_FAKE_GUARD_H

#include <stdint.h>

#define FAKE_GUARD_PLACES(X) X(outside) X(request) X(complete) X(nvtx)
#define FAKE_GUARD_DEEDS(X)  X(malloc) X(free) X(lock) X(wait) X(io) X(map)

enum fake_guard_place {
#define X(name) GUARD_##name,
	FAKE_GUARD_PLACES(X)
#undef X
		GUARD_PLACES
};
enum fake_guard_deed {
#define X(name) DID_##name,
	FAKE_GUARD_DEEDS(X)
#undef X
		GUARD_DEEDS
};

void fake_guard_enter(int place);
void fake_guard_leave(void);
uint64_t fake_guard_count(int place, int deed);
/* Mutexes that this thread holds. */
unsigned fake_guard_held(void);
/* Memory that its receiver must free, and how much of it was not. */
void fake_guard_lend(void *memory);
uint64_t fake_guard_lent(void);
/* CLOCK_REALTIME of this process, from now on. */
void fake_guard_step(int64_t ns);

#endif

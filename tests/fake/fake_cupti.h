/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cupti.h - the stand-in for libcupti: how a test plays the GPU that is not there.
 *
 * Made by fake.mk; each folder goes on LD_LIBRARY_PATH, and is enough for a real program:
 *
 *	fake/12     libcupti.so.12   version 22, CUDA 12.4: smaller records, kinds to 52, no
 *	                             EnableRuntimeApi, Subscribe_v2, HWTrace ...
 *	fake/13     libcupti.so.13   version 130001, CUDA 13.0, from the headers' own structs
 *	fake/13.5   libcupti.so.13   version 130500: records of CUDA 13.5, kinds to 59, also
 *	                             GetStructSize, GetEnabledKinds, IsTracingSessionRunning;
 *	                             without a driver all calls fail, even GetVersion
 *	fake/14     libcupti.so.14   version 140000: all records larger, kind 60, result code 60
 *	fake/driver libcuda.so.1, libcudart.so.12 and .13      (fake_cuda.h)
 *	fake/nvml   libnvidia-ml.so.1                          (fake_nvml.c: FAKE_NVML_*)
 *	fake/fake_train, fake/fake_nvtx    programs that know what they did, and tell it as JSON
 *	fake/libfake_guard.so    preloaded: counts what callbacks must not do (fake_guard.h)
 *
 * A row of a table is then: variables, a program with its words, and what the log must hold.
 *
 *	B=build/fake; LD_LIBRARY_PATH=$B/13:$B/driver:$B/nvml \
 *	CUDA_INJECTION64_PATH=build/libtacho.so TACHO_WINDOW=all TACHO_OUT=log \
 *	FAKE_CUPTI_REPORT=cupti.json FAKE_CUPTI_SHUFFLE=1 FAKE_CUPTI_POISON_NAMES=1 \
 *	$B/fake_train --threads 4 --steps 100 >truth.json
 *
 * truth.json is what was launched; cupti.json, written when the process ends, is what was made of
 * it: records made, handed over and dropped by kind, calls by function, and *faults*: things that
 * the client must never do.  A good run has none.  For each kind
 *
 *	made = handed over in a buffer + dropped + still in CUPTI at the end
 *
 * and handed over = rows in the log + losses that the log counts.  Without FAKE_CUPTI_STRICT=1
 * faults are only counted; with it the first one aborts with its text on stderr.
 *
 * Every option below is a variable FAKE_CUPTI_NAME (upper case) read at load, and at any time
 * fake_cupti_set("name", value).  The functions are exported by every build; a program that did not
 * link it finds them with fake_cupti_find() - the copy that is loaded, whichever it is.
 *
 * A symbol can be taken away: sh tests/fake/without.sh B 13 cuptiActivityFlushPeriod makes
 * B/fake/13-without-cuptiActivityFlushPeriod.
 *
 * Unless an option says otherwise it behaves as facts are known of the real one: buffers are
 * requested lazily by the thread that makes the first record, completed by CUPTI's own thread or
 * the one that flushes; slots are taken at the launch, times come when the work is over; kernels
 * stand before the record of their API call; padding is not zero; names die with the buffer; a
 * flush does not wait for a buffer that CUPTI's own thread is completing at that moment.
 */
#ifndef TESTS_FAKE_CUPTI_H
#define TESTS_FAKE_CUPTI_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct fake_fact; /* tests/fake/fake_cuda.h */

/* name, default, what it does */
/* clang-format off */
#define FAKE_CUPTI_OPTIONS(X) \
	X(driver, -1, "0: as without a driver; 1: with one; -1: as libcuda.so.1 is there or not") \
	X(driver_crash, 0, "1: calls without a driver crash: all in builds 13.5 and 14 (as in " \
			   "the real 13.2), those that need it in the others") \
	X(api_version, 0, "what cuptiGetVersion says and version rules go by; 0: the build's own") \
	/* errors: a CUptiResult, 0 none */ \
	X(fail_subscribe, 0, "39: another tool, whose name Subscribe_v2 tells") \
	X(mixed, 0, "2: a tool that subscribed by the V2 interface is here: V1 gets 39, V2 not") \
	X(fail_register, 0, "of RegisterCallbacks") \
	X(fail_enable, 0, "of Enable and EnableAndDump, for the kind fail_kind") \
	X(fail_kind, 0, "0: all kinds") \
	X(fail_attribute, 0, "of SetAttribute") \
	X(fail_flush, 0, "of FlushAll") \
	X(fail_thread_id, 0, "of SetThreadIdType") \
	X(fail_dropped, 0, "of GetNumDroppedRecords") \
	X(fail_next, 0, "of GetNextRecord") \
	X(graph_conflict, 0, "1: GRAPH_TRACE and kernels exclude each other: 14") \
	/* buffers */ \
	X(per_thread, -1, "attribute 9: -1 as the version has it, 0 one buffer for all, 1 each") \
	X(worker_ms, 2, "how often CUPTI's thread hands over full buffers; 0: it does not run") \
	X(late_every, 0, "each n-th buffer, even when flushed by force, comes late_ms later") \
	X(late_ms, 200, "") \
	X(empty_every, 0, "each n-th completion: one more buffer comes back with nothing in it") \
	X(share_flush, 0, "1: a flush and CUPTI's thread complete buffers at the same time") \
	X(flush_blocks, 0, "1: FlushAll never returns if no buffer was requested yet") \
	X(flush_nothing, 0, "1: FlushAll(0) returns nothing") \
	X(flush_us, 0, "FlushAll takes this long") \
	X(enable_us, 0, "the first Enable takes this long") \
	X(after_us, 0, "a call takes so much longer after the first Enable, until Finalize") \
	X(drop_every, 0, "each n-th record is dropped") \
	X(miss_kind, 0, "one record of this kind is not made, and nobody is told") \
	X(miss_number, 2, "the how manieth of them") \
	/* records */ \
	X(shuffle, 0, "1: records of a buffer are in random order") \
	X(noise, 1, "padding and fields of later versions hold 0xA5, not 0") \
	X(poison_names, 1, "1: a name's memory is overwritten when its buffer was completed, " \
			   "and holds another name the next time; 2: it is freed") \
	X(zero_every, 0, "each n-th piece of work has times 0") \
	X(reverse_every, 0, "each n-th piece of work ends before it begins") \
	X(hold, 0, "1: no work ends; records stay incomplete until it is 0 again") \
	X(strange_every, 0, "each n-th record is followed by one of a kind that few know: " \
			    "19, 55, 59, 60") \
	/* clock */ \
	X(clock_offset_ns, 0, "CUPTI's clock against CLOCK_REALTIME; change it to make a step") \
	X(clock_raw, 0, "1: CUPTI's clock is CLOCK_MONOTONIC_RAW, as under WSL") \
	X(event_ticks, 0, "1: CUDA events have times of the GPU on a clock of its own") \
	X(unsettled_ms, 0, "so long after the first Enable") \
	X(unsettled_ns, 50000, "times of work are wrong by this") \
	/* another tool in this process */ \
	X(stamp_loses, 0, "1: with a timestamp callback kernels have no times") \
	X(foreign, 0, "1: it registers its callbacks, ours stop; 2: its buffers come to our " \
		      "complete; 3: it disables our kinds, registers a timestamp callback") \
	X(foreign_after, 0, "records until it does; 0: at the first record") \
	/* death */ \
	X(finalize_crashes, 0, "1: cuptiFinalize aborts") \
	X(strict, 0, "1: a fault aborts")
/* clang-format on */

/* Totals since load. */
struct fake_cupti_totals {
	uint64_t made, handed_over, dropped; /* records; dropped: also those already asked for */
	uint64_t foreign;                    /* records in buffers of the other tool */
	uint64_t requests, completions, empty, shared; /* shared: lent while still lent */
	uint64_t by_flush, by_worker; /* completions, by the thread that made them */
	uint64_t together;            /* completions while another one was under way */
	uint64_t flushes, forced_flushes, enabled, registered, finalized, faults;
	uint64_t lent; /* buffers that CUPTI has now */
};

/* result type, name, arguments, what it does */
/* clang-format off */
#define FAKE_CUPTI_CONTROLS(X) \
	X(bool, set, (const char *option, int64_t value), "false: no such option") \
	X(int64_t, get, (const char *option), "-1: no such option") \
	X(void, totals, (struct fake_cupti_totals * out), "") \
	X(uint64_t, made, (unsigned kind), "records of a kind") \
	X(uint64_t, handed_over, (unsigned kind), "of which the client was given the buffer") \
	X(uint64_t, size, (unsigned kind), "of a record; 0: no such kind") \
	X(const char *, fault, (unsigned number), "the text of a fault, from 0; NULL: no more") \
	X(uint64_t, calls, (const char *function), "of a function of CUPTI so far") \
	X(void, deliver, (bool all), "what CUPTI's thread does: full buffers; `all`: all of them") \
	X(void, drop, (uint64_t count), "so many records are lost") \
	X(bool, emit, (const void *record, size_t size), "a record of any kind by its first " \
	  "bytes, the rest is as `noise` says; false: its kind is not enabled") \
	X(void, tell, (const struct fake_fact *fact), "as if libcuda told it") \
	X(bool, report, (const char *path), "totals as JSON; FAKE_CUPTI_REPORT does it at the end")
/* clang-format on */

#define X(result, name, arguments, help) result fake_cupti_##name arguments;
FAKE_CUPTI_CONTROLS(X)
#undef X

struct fake_cupti_controls {
#define X(result, name, arguments, help) result(*name) arguments;
	FAKE_CUPTI_CONTROLS(X)
#undef X
};

/* `handle` of dlopen(), or NULL for the copy that is loaded.  False: there is none. */
static inline bool fake_cupti_find(struct fake_cupti_controls *out, void *handle)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.14" };
	void *symbol;
	size_t i;

	for (i = 0; !handle && i < sizeof(names) / sizeof(names[0]); i++)
		handle = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
	if (!handle)
		return false;
#define X(result, name, arguments, help)                                                           \
	symbol = dlsym(handle, "fake_cupti_" #name);                                               \
	if (!symbol)                                                                               \
		return false;                                                                      \
	memcpy(&out->name, &symbol, sizeof(symbol));
	FAKE_CUPTI_CONTROLS(X)
#undef X
	return true;
}

#endif

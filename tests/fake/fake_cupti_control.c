/* SPDX-License-Identifier: Apache-2.0 */
/* Options, faults, totals, the report, the clock: the test's side of the stand-in. */
#include "tests/fake/fake_inside.h"

#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FAULTS = 32, FAULT_TEXT = 160, FUNCTIONS = 96 };

_Atomic int64_t fake_options[OPTION_COUNT];
struct fake_counts fake_counts;
struct fake_state fake_state;
_Atomic bool fake_forked;

static const struct {
	const char *name;
	int64_t value;
} options[OPTION_COUNT] = {
#define X(name, value, help) { #name, value },
	FAKE_CUPTI_OPTIONS(X)
#undef X
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char faults[FAULTS][FAULT_TEXT];
static struct {
	_Atomic(const char *) name;
	_Atomic uint64_t count;
} functions[FUNCTIONS];
static _Thread_local enum fake_place place;

/* libfake_guard.so, if it is there. */
static void (*guard_enter)(int);
static void (*guard_leave)(void);
static unsigned (*guard_held)(void);
static void (*guard_lend)(void *);

/* ---- options ---- */

static int find_option(const char *name)
{
	int i;

	for (i = 0; i < OPTION_COUNT; i++)
		if (!strcmp(options[i].name, name))
			return i;
	return -1;
}

SHOWN bool fake_cupti_set(const char *option, int64_t value)
{
	int i = find_option(option);

	if (i >= 0)
		fake_options[i] = value;
	return i >= 0;
}

SHOWN int64_t fake_cupti_get(const char *option)
{
	int i = find_option(option);

	return i >= 0 ? fake_options[i] : -1;
}

static void find_guard(void)
{
	void *symbol;

	symbol = dlsym(RTLD_DEFAULT, "fake_guard_enter");
	memcpy(&guard_enter, &symbol, sizeof(symbol));
	symbol = dlsym(RTLD_DEFAULT, "fake_guard_leave");
	memcpy(&guard_leave, &symbol, sizeof(symbol));
	symbol = dlsym(RTLD_DEFAULT, "fake_guard_held");
	memcpy(&guard_held, &symbol, sizeof(symbol));
	symbol = dlsym(RTLD_DEFAULT, "fake_guard_lend");
	memcpy(&guard_lend, &symbol, sizeof(symbol));
}

static const char *report; /* at the end */

static void forked_child(void)
{
	fake_forked = true;
	fake_buffers_forked();
}

static __attribute__((constructor)) void start(void)
{
	char variable[80];
	const char *text;
	size_t n;
	int i;

	for (i = 0; i < OPTION_COUNT; i++) {
		n = (size_t)snprintf(variable, sizeof(variable), "FAKE_CUPTI_%s", options[i].name);
		while (n-- > 0)
			variable[n] = (char)toupper((unsigned char)variable[n]);
		text = getenv(variable);
		fake_options[i] = text ? strtoll(text, NULL, 0) : options[i].value;
	}
	/* per-thread buffers are the rule since 13.0 */
	fake_state.per_thread =
		OPTION(per_thread) < 0 ? fake_version() >= 100000 : OPTION(per_thread) != 0;
	report = getenv("FAKE_CUPTI_REPORT");
	find_guard();
	pthread_atfork(NULL, NULL, forked_child);
}

static __attribute__((destructor)) void finish(void)
{
	if (fake_counts.flushing && !fake_forked)
		fake_fault("the process ends while a thread is in FlushAll");
	if (report && !fake_forked) {
		fake_buffers_end();
		fake_write_report(report);
	}
}

/* ---- faults ---- */

void fake_fault(const char *format, ...)
{
	uint64_t number = atomic_fetch_add(&fake_counts.faults, 1);
	char text[FAULT_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (number < FAULTS) {
		pthread_mutex_lock(&lock);
		memcpy(faults[number], text, sizeof(text));
		pthread_mutex_unlock(&lock);
	}
	if (!OPTION(strict))
		return;
	dprintf(2, "stand-in for libcupti: %s\n", text);
	abort();
}

SHOWN const char *fake_cupti_fault(unsigned number)
{
	return number < FAULTS && number < fake_counts.faults ? faults[number] : NULL;
}

static void count_call(const char *function)
{
	unsigned i;

	for (i = 0; i < FUNCTIONS; i++) {
		const char *name = functions[i].name;

		if (!name && atomic_compare_exchange_strong(&functions[i].name, &name, function))
			name = function;
		if (name != function && strcmp(name, function) != 0)
			continue;
		functions[i].count++;
		return;
	}
}

/* What NVIDIA's own samples call in a completion, and what only reads. */
static bool is_harmless(const char *function)
{
	static const char *const names[] = { "cuptiActivityGetNumDroppedRecords",
					     "cuptiGetCallbackName", "cuptiGetVersion" };
	size_t i;

	if (!strcmp(function, "cuptiGetTimestamp"))
		return true;
	for (i = 0; place == PLACE_COMPLETE && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(function, names[i]))
			return true;
	return false;
}

void fake_called(const char *function)
{
	count_call(function);
	if (fake_forked)
		fake_fault("%s in the child of a fork", function);
	if (place != PLACE_NONE && !is_harmless(function))
		fake_fault("%s inside the callback for a buffer that was %s", function,
			   place == PLACE_REQUEST ? "requested" : "completed");
	if (place == PLACE_NONE && guard_held && guard_held() > 0)
		fake_fault("%s while a mutex is held", function);
}

SHOWN uint64_t fake_cupti_calls(const char *function)
{
	unsigned i;

	for (i = 0; i < FUNCTIONS && functions[i].name; i++)
		if (!strcmp(functions[i].name, function))
			return functions[i].count;
	return 0;
}

bool fake_is_inside(void)
{
	return place != PLACE_NONE;
}

void fake_place_enter(enum fake_place where)
{
	place = where;
	if (guard_enter)
		guard_enter(where == PLACE_REQUEST ? 1 : 2);
}

void fake_place_leave(void)
{
	place = PLACE_NONE;
	if (guard_leave)
		guard_leave();
}

void fake_lend_memory(void *memory)
{
	if (guard_lend)
		guard_lend(memory);
}

bool fake_each(_Atomic uint64_t *counter, int64_t every)
{
	if (every <= 0)
		return false;
	return (atomic_fetch_add(counter, 1) + 1) % (uint64_t)every == 0;
}

/* ---- clock ---- */

uint64_t fake_realtime(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t raw_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* From CLOCK_REALTIME to CLOCK_MONOTONIC_RAW, modulo 2^64, when nothing came between the readings.
 */
static uint64_t raw_distance(void)
{
	for (;;) {
		uint64_t before = raw_now(), real = fake_realtime(), after = raw_now();

		if (after - before < 2000)
			return before + (after - before) / 2 - real;
	}
}

uint64_t fake_shift(uint64_t ns)
{
	return ns + (uint64_t)OPTION(clock_offset_ns) + (OPTION(clock_raw) ? raw_distance() : 0);
}

uint64_t fake_now(void)
{
	CUpti_TimestampCallbackFunc stamp = fake_state.stamp;

	return stamp ? stamp() : fake_shift(fake_realtime());
}

/* It was looked at twice, which gives its rate. */
uint64_t fake_stamp_at(uint64_t ns)
{
	CUpti_TimestampCallbackFunc stamp = fake_state.stamp;
	uint64_t now_ns = fake_realtime(), zero_ns = fake_state.stamp_since_ns;
	double rate;

	if (!stamp)
		return fake_shift(ns);
	if (now_ns == zero_ns)
		return fake_state.stamp_zero;
	rate = (double)(stamp() - fake_state.stamp_zero) / (double)(now_ns - zero_ns);
	if (rate > 0.9 && rate < 1.1) /* it counts ns, and the rest is when it was looked at */
		rate = 1;
	return fake_state.stamp_zero + (uint64_t)(int64_t)((double)(int64_t)(ns - zero_ns) * rate);
}

/* ---- totals ---- */

static uint64_t sum(_Atomic uint64_t *of)
{
	uint64_t all = 0;
	unsigned i;

	for (i = 0; i < KINDS; i++)
		all += of[i];
	return all;
}

SHOWN void fake_cupti_totals(struct fake_cupti_totals *out)
{
	struct fake_counts *c = &fake_counts;

	*out = (struct fake_cupti_totals){
		.made = sum(c->made),
		.handed_over = sum(c->handed),
		.dropped = c->dropped,
		.foreign = c->foreign,
		.requests = c->requests,
		.completions = c->completions,
		.empty = c->empty,
		.shared = c->shared,
		.by_flush = c->by_flush,
		.by_worker = c->by_worker,
		.together = c->together,
		.flushes = c->flushes,
		.forced_flushes = c->forced,
		.enabled = c->enables,
		.registered = c->registers,
		.finalized = c->finalizes,
		.faults = c->faults,
		.lent = c->lent,
	};
}

SHOWN uint64_t fake_cupti_made(unsigned kind)
{
	return kind < KINDS ? fake_counts.made[kind] : 0;
}

SHOWN uint64_t fake_cupti_handed_over(unsigned kind)
{
	return kind < KINDS ? fake_counts.handed[kind] : 0;
}

SHOWN uint64_t fake_cupti_size(unsigned kind)
{
	return kind < KINDS ? fake_profile.sizes[kind] : 0;
}

SHOWN void fake_cupti_deliver(bool all)
{
	fake_work_round(all);
}

SHOWN void fake_cupti_drop(uint64_t count)
{
	fake_counts.dropped += count;
	fake_counts.unasked += count;
}

SHOWN void fake_cupti_tell(const struct fake_fact *fact)
{
	fake_watch_fact(fact);
}

static void write_kinds(int fd, const char *key, _Atomic uint64_t *of)
{
	const char *comma = "";
	unsigned i;

	dprintf(fd, ", \"%s\": {", key);
	for (i = 0; i < KINDS; i++) {
		if (!of[i])
			continue;
		dprintf(fd, "%s\"%u\": %llu", comma, i, (unsigned long long)of[i]);
		comma = ", ";
	}
	dprintf(fd, "}");
}

void fake_write_report(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	struct fake_cupti_totals t;
	const char *comma = "";
	unsigned i;

	if (fd < 0)
		return;
	fake_cupti_totals(&t);
	dprintf(fd, "{\"version\": %u", fake_version());
#define T(name) dprintf(fd, ", \"" #name "\": %llu", (unsigned long long)t.name)
	T(made), T(handed_over), T(dropped), T(foreign), T(requests), T(completions), T(empty);
	T(shared), T(by_flush), T(by_worker), T(together), T(flushes), T(forced_flushes);
	T(enabled), T(registered), T(finalized), T(lent), T(faults);
#undef T
	dprintf(fd, ", \"slowed\": %llu, \"on\": [", (unsigned long long)fake_counts.slowed);
	for (i = 0; i < KINDS; i++)
		if (fake_state.enabled[i]) {
			dprintf(fd, "%s%u", comma, i);
			comma = ", ";
		}
	dprintf(fd, "]");
	write_kinds(fd, "made_by_kind", fake_counts.made);
	write_kinds(fd, "handed_over_by_kind", fake_counts.handed);
	dprintf(fd, ", \"calls\": {");
	for (i = 0, comma = ""; i < FUNCTIONS && functions[i].name; i++, comma = ", ")
		dprintf(fd, "%s\"%s\": %llu", comma, functions[i].name,
			(unsigned long long)functions[i].count);
	dprintf(fd, "}, \"fault_texts\": [");
	for (i = 0, comma = ""; fake_cupti_fault(i); i++, comma = ", ")
		dprintf(fd, "%s\"%s\"", comma, fake_cupti_fault(i));
	dprintf(fd, "]}\n");
	close(fd);
}

SHOWN bool fake_cupti_report(const char *path)
{
	fake_write_report(path);
	return access(path, R_OK) == 0;
}

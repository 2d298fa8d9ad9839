/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx_program.c - the program that nvtx_run.sh records: it calls NVTX.
 *
 * It is not linked with libtacho, which NVTX finds by itself; the windows that it opens by hand go
 * through dlsym().  Returns 0 when what NVTX returned was right.
 */
#include "tests/fake/fake_guard.h"

#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int bad;

static void is(const char *what, long got, long wanted)
{
	if (got == wanted)
		return;
	printf("# %s: %ld, should be %ld\n", what, got, wanted);
	bad = 1;
}

static void pause_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* tacho_start() and its like, where the library is. */
static void call(const char *name)
{
	void (*function)(void);

	*(void **)&function = dlsym(RTLD_DEFAULT, name);
	if (function)
		function();
}

static nvtxEventAttributes_t event(const char *name)
{
	nvtxEventAttributes_t a;

	memset(&a, 0, sizeof(a));
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = name;
	return a;
}

/* ---- what is returned, whether somebody records or not ---- */

enum { DOMAINS = 40 };

static void levels_of_thread(void)
{
	nvtxDomainHandle_t domains[DOMAINS];
	nvtxEventAttributes_t a = event("in a domain");
	char name[32];
	int i;

	is("pop of nothing", nvtxRangePop() < 0, 1);
	is("the first", nvtxRangePushA("a"), 0);
	is("the second", nvtxRangePushW(L"b"), 1);
	for (i = 0; i < DOMAINS; i++) {
		snprintf(name, sizeof(name), "domain %d", i);
		domains[i] = nvtxDomainCreateA(name);
		is("a domain has a handle", domains[i] != NULL, 1);
		is("pop of nothing in a domain", nvtxDomainRangePop(domains[i]) < 0, 1);
		is("a domain's first", nvtxDomainRangePushEx(domains[i], &a), 0);
		is("a domain's second", nvtxDomainRangePushEx(domains[i], &a), 1);
	}
	is("the third", nvtxRangePushA("c"), 2);
	for (i = 0; i < DOMAINS; i++) {
		is("ends the second", nvtxDomainRangePop(domains[i]), 1);
		is("ends the first", nvtxDomainRangePop(domains[i]), 0);
		is("and no more", nvtxDomainRangePop(domains[i]) < 0, 1);
	}
	is("ends the third", nvtxRangePop(), 2);
	is("ends the second", nvtxRangePop(), 1);
	is("ends the first", nvtxRangePop(), 0);
	is("the same name is the same domain", nvtxDomainCreateA("domain 7") == domains[7], 1);
}

static void *levels_of_other(void *arg)
{
	levels_of_thread();
	return NULL;
}

static int act_levels(int unused)
{
	nvtxRangeId_t a, b;
	pthread_t thread;
	int i;

	levels_of_thread();
	pthread_create(&thread, NULL, levels_of_other, NULL);
	pthread_join(thread, NULL);
	a = nvtxRangeStartA("one");
	b = nvtxRangeStartA("two");
	is("ids", a && b && a != b, 1);
	nvtxRangeEnd(a);
	nvtxRangeEnd(b);
	nvtxRangeEnd(b);
	for (i = 0; i < 3000; i++)
		is("deep", nvtxRangePushA("deep"), i);
	for (i = 3000; i > 0; i--)
		is("from the deep", nvtxRangePop(), i - 1);
	is("enabled", nvtxDomainIsEnabled(nvtxDomainCreateA("domain 1")), 1);
	return bad;
}

/* The nesting goes on where windows begin and end, and after the last one. */
static int act_levels_windows(int count)
{
	int i;

	is("before", nvtxRangePushA("around all"), 0);
	for (i = 0; i < count; i++) {
		is("outside", nvtxRangePushA("outside"), 1);
		call("tacho_start");
		is("inside", nvtxRangePushA("inside"), 2);
		is("inside", nvtxRangePop(), 2);
		is("from outside", nvtxRangePop(), 1);
		is("to outside", nvtxRangePushA("to outside"), 1);
		call("tacho_stop");
		is("to outside", nvtxRangePop(), 1);
	}
	is("around all", nvtxRangePop(), 0);
	is("nothing", nvtxRangePop() < 0, 1);
	return bad;
}

/* ---- windows ---- */

static int act_epochs(int count)
{
	nvtxEventAttributes_t a = event("epoch_1");
	nvtxDomainHandle_t domain = nvtxDomainCreateA("loop");
	char name[64];
	int i;

	for (i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "epoch_%d", i);
		nvtxRangePushA(name);
		nvtxRangePushA("step");
		pause_ms(5);
		nvtxRangePop();
		nvtxRangePop();
		pause_ms(5);
	}
	/* as emit_nvtx says it, as a started range, in a domain */
	nvtxRangePushA("epoch_1, op_id = 77");
	nvtxRangePushA("from emit_nvtx");
	nvtxRangePop();
	nvtxRangePop();
	pause_ms(5);
	nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &a));
	pause_ms(5);
	nvtxMarkA("after");
	return bad;
}

/* Ranges around a window that time opens and closes; the thread does not come by. */
static void *sit(void *barrier)
{
	nvtxRangePushA("sitting");
	nvtxRangePushA("sitting, seq = 5, sizes = [[1, 2]]");
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	nvtxRangePop();
	nvtxRangePop();
	return NULL;
}

static int act_sitter(int count)
{
	pthread_barrier_t barrier;
	nvtxRangeId_t across;
	pthread_t thread;
	int i;

	across = nvtxRangeStartA("across");
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, sit, &barrier);
	pthread_barrier_wait(&barrier);
	nvtxRangePushA("middle");
	for (i = 0; i < count; i++) {
		nvtxRangePushA("step");
		pause_ms(1);
		nvtxRangePop();
	}
	nvtxRangePop();
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	nvtxRangeEnd(across);
	return bad;
}

/* ---- threads ---- */

static nvtxRangeId_t handed[200];

static void *end_all(void *arg)
{
	size_t i;

	for (i = 0; i < sizeof(handed) / sizeof(handed[0]); i++)
		nvtxRangeEnd(handed[i]);
	return NULL;
}

/* Begun here, ended there: the range is of the thread that began it. */
static int act_hand_over(int unused)
{
	nvtxEventAttributes_t a = event("handed over");
	pthread_t thread;
	size_t i;

	a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
	a.payload.llValue = -3;
	for (i = 0; i < sizeof(handed) / sizeof(handed[0]); i++)
		handed[i] = nvtxRangeStartEx(&a);
	pthread_create(&thread, NULL, end_all, NULL);
	pthread_join(thread, NULL);
	return bad;
}

static void *many_ranges(void *arg)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("threads");
	nvtxEventAttributes_t a = event("registered");
	int count = *(int *)arg, i;
	char text[100];

	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = nvtxDomainRegisterStringA(domain, "registered");
	for (i = 0; i < count; i++) {
		nvtxRangePushA("same");
		snprintf(text, sizeof(text), "aten::op%d, seq = %d, op_id = %d, sizes = [[%d, 2]]",
			 i % 10, i, 2 * i, i % 7);
		nvtxRangePushA(text);
		memset(text, 'x', sizeof(text) - 1); /* it was copied */
		nvtxDomainRangePushEx(domain, &a);
		nvtxRangePop();
		nvtxDomainRangePop(domain);
		nvtxRangeEnd(nvtxRangeStartA("started"));
		nvtxRangePop();
		if (i % 50 == 0)
			pause_ms(1);
	}
	return NULL;
}

static int act_threads(int count)
{
	pthread_t threads[6];
	size_t i;

	for (i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, many_ranges, &count);
	for (i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	return bad;
}

/* Windows come and go around threads that do not know of them. */
static int act_storm(int windows)
{
	pthread_t threads[4];
	int count = 2000, i;

	nvtxRangePushA("around");
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, many_ranges, &count);
	for (i = 0; i < windows; i++) {
		call("tacho_start");
		pause_ms(3);
		call("tacho_stop");
	}
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	is("around", nvtxRangePop(), 0);
	return bad;
}

static int act_churn(int count)
{
	pthread_t thread;
	int ranges = 5, i;

	for (i = 0; i < count; i++) {
		pthread_create(&thread, NULL, many_ranges, &ranges);
		pthread_join(thread, NULL);
	}
	return bad;
}

/* ---- life ---- */

static int act_fork(int code)
{
	nvtxRangeId_t id = nvtxRangeStartA("started by the parent");
	int status = 0;
	pid_t child;

	nvtxRangePushA("around the fork");
	child = fork();
	if (!child) {
		is("in the child", nvtxRangePushA("of the child"), 1);
		pause_ms(2);
		is("in the child", nvtxRangePop(), 1);
		is("the parent's", nvtxRangePop(), 0);
		nvtxRangeEnd(id);
		exit(bad ? 9 : 3);
	}
	waitpid(child, &status, 0);
	is("the child", WEXITSTATUS(status), 3);
	is("after the fork", nvtxRangePop(), 0);
	nvtxRangeEnd(id);
	return bad ? bad : code;
}

/* More than is kept: counted, and the program goes on. */
static int act_too_much(int unused)
{
	static nvtxRangeId_t ids[5000];
	char name[64];
	int i;

	for (i = 0; i < 5000; i++)
		ids[i] = nvtxRangeStartA("many at once");
	for (i = 0; i < 5000; i++)
		nvtxRangeEnd(ids[i]);
	for (i = 0; i < 2000; i++)
		nvtxRangePushA("too deep");
	for (i = 0; i < 2000; i++)
		nvtxRangePop();
	for (i = 0; i < 1100; i++) {
		snprintf(name, sizeof(name), "domain number %d", i);
		is("a handle", nvtxDomainCreateA(name) != NULL, 1);
	}
	for (i = 0; i < 300; i++) {
		nvtxEventAttributes_t a = event("coloured");

		a.colorType = NVTX_COLOR_ARGB;
		a.color = 0xff000000 + (uint32_t)i;
		nvtxMarkEx(&a);
	}
	return bad;
}

static int act_xla(int rounds)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("TSL");
	nvtxEventAttributes_t a = event("Thunk:#name=jit(f)/dot_general,hlo_op=fusion.3,"
					"unique_hlo_op_id=12#");
	int i;

	for (i = 0; i < rounds; i++) {
		nvtxDomainRangePushEx(domain, &a);
		nvtxDomainRangePop(domain);
	}
	return bad;
}

/* With tests/fake/fake_guard.c in the process: what a callback does that it must not. */
static const char *const deeds[] = {
#define X(name) #name,
	FAKE_GUARD_DEEDS(X)
#undef X
};

static int act_guarded(int count)
{
	uint64_t (*done)(int place, int deed);
	void (*enter)(int place), (*leave)(void);
	nvtxEventAttributes_t a = event("with a value");
	nvtxRangeId_t id;
	char text[80];
	int i;

	*(void **)&enter = dlsym(RTLD_DEFAULT, "fake_guard_enter");
	*(void **)&leave = dlsym(RTLD_DEFAULT, "fake_guard_leave");
	*(void **)&done = dlsym(RTLD_DEFAULT, "fake_guard_count");
	if (!enter || !leave || !done)
		return 8;
	a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	a.payload.dValue = 0.5;
	nvtxRangeEnd(nvtxRangeStartA("the thread's first")); /* which may take memory */
	nvtxRangePushA("the thread's first");
	nvtxRangePop();
	for (i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "aten::mm, seq = %d, sizes = [[%d]]", i, i);
		enter(GUARD_nvtx);
		nvtxRangePushA("same");
		nvtxRangePushA(text);
		nvtxRangePushW(L"wide");
		nvtxMarkEx(&a);
		id = nvtxRangeStartA(text);
		nvtxRangePop();
		nvtxRangePop();
		nvtxRangePop();
		nvtxRangeEnd(id);
		leave();
		if (i % 100 == 0)
			pause_ms(1);
	}
	for (i = 0; i < GUARD_DEEDS; i++)
		is(deeds[i], (long)done(GUARD_nvtx, i), 0);
	return bad;
}

static int act_exit(int code)
{
	nvtxRangePushA("outer");
	nvtxRangePushA("aten::mm, seq = 3");
	nvtxRangeStartA("never ended");
	exit(code);
}

/* All that a record may speak of, then a death that nobody can prepare for. */
static int act_killed(int rank)
{
	const nvtxPayloadSchemaEntry_t entry = { .type = NVTX_PAYLOAD_ENTRY_TYPE_INT32,
						 .name = "rank" };
	const nvtxPayloadSchemaAttr_t schema = {
		.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
		.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
		.entries = &entry,
		.numEntries = 1,
		.payloadStaticSize = sizeof(rank),
	};
	nvtxDomainHandle_t domain = nvtxDomainCreateA("loop");
	nvtxPayloadData_t data = { nvtxPayloadSchemaRegister(domain, &schema), sizeof(rank),
				   &rank };
	nvtxEventAttributes_t a = event("of a category");

	nvtxDomainNameCategoryA(domain, 7, "input");
	nvtxNameOsThreadA((uint32_t)getpid(), "the only one");
	a.category = 7;
	a.colorType = NVTX_COLOR_ARGB;
	a.color = 0xff102030;
	nvtxRangeStartA("started and open");
	nvtxRangePushA("pushed and open");
	nvtxDomainRangePushEx(domain, &a);
	nvtxMarkPayload(domain, &data, 1);
	nvtxDomainRangePop(domain);
	return raise(SIGKILL);
}

static const struct {
	const char *name;
	int (*act)(int number);
} acts[] = {
	{ "levels", act_levels },
	{ "levels-windows", act_levels_windows },
	{ "epochs", act_epochs },
	{ "sitter", act_sitter },
	{ "hand-over", act_hand_over },
	{ "threads", act_threads },
	{ "storm", act_storm },
	{ "churn", act_churn },
	{ "fork", act_fork },
	{ "too-much", act_too_much },
	{ "xla", act_xla },
	{ "guarded", act_guarded },
	{ "exit", act_exit },
	{ "killed", act_killed },
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc > 2 && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (!strcmp(acts[i].name, argv[1]))
			return acts[i].act(atoi(argv[2]));
	fprintf(stderr, "nvtx_program: no such act\n");
	return 2;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_libcupti.c - tells what a libcupti does without a driver, a line for each fact, so that
 *the lines of the stand-in and of the real library can be compared (compare_libcupti.sh).  Only
 *this program knows nothing of the stand-in.
 *
 *	compare_libcupti LIBRARY version|errors|sizes|results|names|walk [SEED]
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *library;

static void *find(const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		printf("missing %s\n", name);
	return symbol;
}
/* A function's address, as the type of the pointer it is stored in. */
#define FIND(pointer, name)                                                                        \
	do {                                                                                       \
		void *found = find(name);                                                          \
		memcpy(&(pointer), &found, sizeof(found));                                         \
	} while (0)

/* ---- version and clock ---- */

static void tell_version(void)
{
	int (*get_version)(uint32_t *), (*get_time)(uint64_t *);
	struct timespec before, after;
	uint32_t version = 0;
	uint64_t ns = 0;
	int rc;

	FIND(get_version, "cuptiGetVersion");
	FIND(get_time, "cuptiGetTimestamp");
	rc = get_version(&version);
	printf("version %d %" PRIu32 "\n", rc, version);
	if (rc)
		return; /* nothing more can be asked of it */
	printf("version null %d\n", get_version(NULL));
	get_time(&ns);
	clock_gettime(CLOCK_REALTIME, &before);
	rc = get_time(&ns);
	clock_gettime(CLOCK_REALTIME, &after);
	printf("timestamp %d realtime=%d\n", rc,
	       ns >= (uint64_t)before.tv_sec * 1000000000 + (uint64_t)before.tv_nsec &&
		       ns <= (uint64_t)after.tv_sec * 1000000000 + (uint64_t)after.tv_nsec);
	printf("timestamp null %d\n", get_time(NULL));
}

/* ---- result codes of calls, without a driver ---- */

static void request(uint8_t **buffer, size_t *size, size_t *records)
{
	puts("a buffer was requested");
	*buffer = NULL;
	*size = *records = 0;
}
static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	puts("a buffer was completed");
}
static uint64_t stamp(void)
{
	return 1;
}

static void call_with_number(const char *name, uint32_t from, uint32_t to)
{
	int (*call)(uint32_t);
	uint32_t i;

	FIND(call, name);
	for (i = from; call && i <= to; i++)
		printf("%s %" PRIu32 " %d\n", name, i, call(i));
}

static void call_with_byte(const char *name)
{
	int (*call)(uint8_t);

	FIND(call, name);
	if (call)
		printf("%s %d %d\n", name, call(0), call(1));
}

static void call_register(void)
{
	int (*call)(void *, void *);
	void *out, *in;
	void (*typed_request)(uint8_t **, size_t *, size_t *) = request;
	void (*typed_complete)(void *, uint32_t, uint8_t *, size_t, size_t) = complete;

	memcpy(&out, &typed_request, sizeof(out));
	memcpy(&in, &typed_complete, sizeof(in));
	FIND(call, "cuptiActivityRegisterCallbacks");
	printf("register null %d\n", call(NULL, NULL));
	printf("register first %d\n", call(out, NULL));
	printf("register second %d\n", call(NULL, in));
	printf("register %d\n", call(out, in));
}

static void call_subscribe(void)
{
	int (*subscribe)(void **, void *, void *), (*subscribe2)(void **, void *, void *, void *);
	int (*unsubscribe)(void *), (*domain)(uint32_t, void *, uint32_t);
	int (*callback)(uint32_t, void *, uint32_t, uint32_t);
	void *handle = NULL;

	FIND(subscribe, "cuptiSubscribe");
	FIND(subscribe2, "cuptiSubscribe_v2");
	FIND(unsubscribe, "cuptiUnsubscribe");
	FIND(domain, "cuptiEnableDomain");
	FIND(callback, "cuptiEnableCallback");
	printf("subscribe %d null %d\n", subscribe(&handle, NULL, NULL),
	       subscribe(NULL, NULL, NULL));
	if (subscribe2)
		printf("subscribe_v2 %d\n", subscribe2(&handle, NULL, NULL, NULL));
	printf("unsubscribe null %d\n", unsubscribe(NULL));
	printf("domain null %d callback null %d\n", domain(1, NULL, 1), callback(1, NULL, 1, 1));
}

static void call_attributes(void)
{
	int (*get)(uint32_t, size_t *, void *), (*set)(uint32_t, size_t *, void *);
	uint32_t i;

	FIND(get, "cuptiActivityGetAttribute");
	FIND(set, "cuptiActivitySetAttribute");
	for (i = 0; i <= 10; i++) {
		uint64_t value = 0;
		size_t size = sizeof(value);

		printf("attribute %" PRIu32 " get %d", i, get(i, &size, &value));
		size = sizeof(value);
		printf(" set %d\n", set(i, &size, &value));
	}
	printf("attribute null get %d set %d\n", get(0, NULL, NULL), set(0, NULL, NULL));
}

static void call_the_rest(void)
{
	int (*dropped)(void *, uint32_t, size_t *), (*push)(uint32_t, uint64_t);
	int (*pop)(uint32_t, uint64_t *), (*stamps)(void *), (*type)(uint32_t *);
	int (*last)(void), (*finalize)(void), (*api)(uint32_t, uint8_t);
	uint64_t (*typed_stamp)(void) = stamp, id = 0;
	size_t lost = 7;
	uint32_t number = 7;
	void *address;

	FIND(dropped, "cuptiActivityGetNumDroppedRecords");
	printf("dropped %d", dropped(NULL, 0, &lost));
	printf(" %zu null %d\n", lost, dropped(NULL, 0, NULL));
	FIND(push, "cuptiActivityPushExternalCorrelationId");
	FIND(pop, "cuptiActivityPopExternalCorrelationId");
	printf("push %d pop %d\n", push(3, 1), pop(3, &id));
	FIND(stamps, "cuptiActivityRegisterTimestampCallback");
	memcpy(&address, &typed_stamp, sizeof(address));
	printf("stamps %d null %d\n", stamps(address), stamps(NULL));
	FIND(type, "cuptiGetThreadIdType");
	printf("thread id type %d null %d\n", type(&number), type(NULL));
	FIND(api, "cuptiActivityEnableRuntimeApi");
	if (api)
		printf("runtime api %d\n", api(211, 0));
	FIND(api, "cuptiActivityEnableDriverApi");
	if (api)
		printf("driver api %d\n", api(307, 0));
	FIND(last, "cuptiGetLastError");
	printf("last error %d\n", last());
	FIND(finalize, "cuptiFinalize");
	printf("finalize %d\n", finalize());
}

static void tell_errors(void)
{
	call_register();
	call_with_number("cuptiActivityEnable", 0, 60);
	call_with_number("cuptiActivityDisable", 0, 60);
	call_with_number("cuptiActivityEnableAndDump", 8, 10);
	call_with_number("cuptiActivityFlushAll", 0, 1);
	call_with_number("cuptiActivityFlushPeriod", 0, 1);
	call_with_number("cuptiSetThreadIdType", 0, 2);
	call_with_byte("cuptiActivityEnableLatencyTimestamps");
	call_with_byte("cuptiActivityEnableHWTrace");
	call_with_byte("cuptiActivityEnableDeviceGraph");
	call_with_byte("cuptiActivityEnableAllocationSource");
	call_with_byte("cuptiActivityEnableAllSyncRecords");
	call_with_byte("cuptiActivityEnableCudaEventDeviceTimestamps");
	call_with_byte("cuptiActivityEnableLaunchAttributes");
	call_subscribe();
	call_attributes();
	call_the_rest();
}

/* ---- records ---- */

static int (*next_record)(uint8_t *, size_t, uint8_t **);
static _Alignas(8) uint8_t bytes[8192];

static void put_kind(size_t at, uint32_t kind)
{
	memcpy(bytes + at, &kind, sizeof(kind));
}

static void tell_sizes(void)
{
	uint32_t kind;

	FIND(next_record, "cuptiActivityGetNextRecord");
	for (kind = 0; kind < 90; kind++) {
		uint8_t *record = NULL, *first;
		size_t at;
		int rc;

		memset(bytes, 0, sizeof(bytes));
		for (at = 0; at < sizeof(bytes); at += 8)
			put_kind(at, kind);
		rc = next_record(bytes, sizeof(bytes), &record);
		first = record;
		printf("size %" PRIu32 " %d", kind, rc);
		rc = next_record(bytes, sizeof(bytes), &record);
		printf(" %d %td\n", rc, first ? record - first : 0);
	}
	printf("no buffer %d no record %d\n", next_record(NULL, 100, &(uint8_t *){ NULL }),
	       next_record(bytes, 100, NULL));
}

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 33) % below;
}

/* Kinds at every eighth byte, most of them known, then a walk that goes on after errors. */
static void walk(unsigned number)
{
	size_t valid = draw(8) ? draw(2000) : draw(120), at;
	unsigned strange = draw(4) ? 200 : 5, steps = 0;
	uint8_t *record = NULL;
	int rc;

	for (at = 0; at < sizeof(bytes); at += 8) {
		put_kind(at, draw(strange) ? 1 + draw(60) : draw(1u << 31));
		put_kind(at + 4, draw(1u << 31));
	}
	printf("walk %u valid %zu:", number, valid);
	do {
		rc = next_record(bytes, valid, &record);
		printf(" %d@%td", rc, record ? record - bytes : -1);
	} while (!rc && ++steps < 1000);
	printf(" %d\n", next_record(bytes, valid, &record));
}

static void tell_walks(uint64_t seed)
{
	unsigned i;

	random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	FIND(next_record, "cuptiActivityGetNextRecord");
	for (i = 0; i < 20000; i++)
		walk(i);
}

/* ---- texts ---- */

static void tell_results(void)
{
	int (*text)(int, const char **), (*message)(int, const char **), i;

	FIND(text, "cuptiGetResultString");
	FIND(message, "cuptiGetErrorMessage");
	for (i = -1; i <= 1000; i++) {
		const char *found = NULL;

		printf("result %d %d", i, text(i, &found));
		printf(" %s\n", found ? found : "null");
		if (message)
			printf("message %d %d\n", i, message(i, &found));
	}
	printf("result null %d\n", text(0, NULL));
}

static void tell_names(void)
{
	int (*name)(uint32_t, uint32_t, const char **);
	uint32_t domain, cbid;

	FIND(name, "cuptiGetCallbackName");
	for (domain = 0; domain < 8; domain++) {
		for (cbid = 0; cbid < 1000; cbid++) {
			const char *found = NULL;

			printf("name %" PRIu32 " %" PRIu32 " %d", domain, cbid,
			       name(domain, cbid, &found));
			printf(" %s\n", found ? found : "null");
		}
	}
	printf("name null %d\n", name(1, 1, NULL));
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	setbuf(stdout, NULL);
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (!strcmp(argv[2], "version"))
		tell_version();
	else if (!strcmp(argv[2], "errors"))
		tell_errors();
	else if (!strcmp(argv[2], "sizes"))
		tell_sizes();
	else if (!strcmp(argv[2], "results"))
		tell_results();
	else if (!strcmp(argv[2], "names"))
		tell_names();
	else if (!strcmp(argv[2], "walk"))
		tell_walks(argc > 3 ? strtoull(argv[3], NULL, 0) : 1);
	return 0;
}

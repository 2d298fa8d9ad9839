/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_mini.c - an injected library as small as it can be: turns CUPTI on when the driver is
 * initialised, counts records, writes them to FAKE_MINI_REPORT at exit.  It proves that a whole
 * program works with the stand-ins before there is a collector.
 */
#include <cupti_activity.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 256 << 10 };

static __typeof__(&cuptiActivityGetNextRecord) next_record;
static __typeof__(&cuptiActivityFlushAll) flush_all;
static __typeof__(&cuptiActivityDisable) disable;
static _Atomic unsigned long counts[64];
static _Atomic long lent;
static const unsigned kinds[] = { 10, 1, 2, 4, 5, 38, 36, 49, 51 };

static void request(uint8_t **buffer, size_t *size, size_t *most)
{
	lent++;
	*buffer = calloc(1, BYTES);
	*size = BYTES;
	*most = 0;
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;

	while (!next_record(buffer, valid, &record))
		counts[record->kind % 64]++;
	free(buffer);
	lent--;
}

/* A flush does not wait for what CUPTI's thread has under way. */
static void wait_for_all(void)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	int i;

	for (i = 0; i < 2000 && lent > 0; i++)
		nanosleep(&ms, NULL);
}

static void at_exit(void)
{
	const char *path = getenv("FAKE_MINI_REPORT"), *comma = "";
	FILE *f = path ? fopen(path, "w") : NULL;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		disable((CUpti_ActivityKind)kinds[i]);
	flush_all(0);
	flush_all(1);
	wait_for_all();
	if (!f)
		return;
	fputc('{', f);
	for (i = 0; i < 64; i++) {
		if (!counts[i])
			continue;
		fprintf(f, "%s\"%zu\": %lu", comma, i, counts[i]);
		comma = ", ";
	}
	fputs("}\n", f);
	fclose(f);
}

static void *find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		abort();
	return symbol;
}

int InitializeInjection(void);
int InitializeInjection(void)
{
	const char *name = getenv("FAKE_MINI_CUPTI");
	void *library = dlopen(name ? name : "libcupti.so.13", RTLD_NOW), *symbol;
	__typeof__(&cuptiActivityRegisterCallbacks) register_callbacks;
	__typeof__(&cuptiActivityEnable) enable;
	size_t i;

	if (!library)
		return 0;
	symbol = find(library, "cuptiActivityGetNextRecord");
	memcpy(&next_record, &symbol, sizeof(symbol));
	symbol = find(library, "cuptiActivityFlushAll");
	memcpy(&flush_all, &symbol, sizeof(symbol));
	symbol = find(library, "cuptiActivityDisable");
	memcpy(&disable, &symbol, sizeof(symbol));
	symbol = find(library, "cuptiActivityRegisterCallbacks");
	memcpy(&register_callbacks, &symbol, sizeof(symbol));
	symbol = find(library, "cuptiActivityEnable");
	memcpy(&enable, &symbol, sizeof(symbol));
	register_callbacks(request, complete);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		enable((CUpti_ActivityKind)kinds[i]);
	atexit(at_exit);
	return 1;
}

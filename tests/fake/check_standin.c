/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_standin.c - runs the rows of check_standin.h, each in a process of its own.
 *	check_standin PROFILE [ROW...]      PROFILE: 12, 13, 13.5, 14; libraries by LD_LIBRARY_PATH
 */
#include "tests/fake/check_standin.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct cupti cupti;
struct fake_cupti_controls fake;
struct client client = { .bytes = 64 << 10 };
struct seen *seen;
_Atomic unsigned seen_count;
unsigned profile;

static _Atomic bool failed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *_Atomic the_buffer;
static void *volatile allocated; /* so that the compiler leaves it in */

void check(bool good, const char *text, const char *file, int line)
{
	if (good)
		return;
	printf("#   %s:%d: not so: %s\n", file, line, text);
	failed = true;
}

void check_eq(uint64_t got, uint64_t want, const char *text, const char *file, int line)
{
	if (got == want)
		return;
	printf("#   %s:%d: %s is %llu, should be %llu\n", file, line, text, (unsigned long long)got,
	       (unsigned long long)want);
	failed = true;
}

/* ---- the client ---- */

static void request(uint8_t **buffer, size_t *size, size_t *most)
{
	uint8_t *bytes;

	client.requests++;
	client.requests_here += pthread_equal(pthread_self(), client.thread) != 0;
	if (client.flush_in_request)
		cupti.cuptiActivityFlushAll(0);
	if (client.lock) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	while (client.hold)
		wait_ms(1);
	*size = client.bytes;
	*most = client.most;
	bytes = client.same && the_buffer ? the_buffer : aligned_alloc(8, client.bytes + 8);
	memset(bytes, client.dirty ? 1 : 0, client.bytes);
	if (!the_buffer)
		the_buffer = bytes;
	*buffer = client.none ? NULL : client.crooked ? bytes + 4 : bytes;
}

static size_t name_offset(uint32_t kind)
{
	return kind == 3 || kind == 10 ? offsetof(CUpti_ActivityKernel10, name)
	       : kind == 8             ? offsetof(CUpti_ActivityDevice5, name)
				       : 0;
}

static void keep(const uint8_t *record, uint32_t buffer)
{
	unsigned i = seen_count++;
	struct seen *s = &seen[i < SEEN ? i : SEEN - 1];
	uint32_t kind;
	size_t size;

	memcpy(&kind, record, sizeof(kind));
	s->buffer = buffer;
	size = fake.size(kind);
	memcpy(s->bytes, record, size < sizeof(s->bytes) ? size : sizeof(s->bytes));
	if (name_offset(kind)) {
		memcpy(&s->name_at, record + name_offset(kind), sizeof(s->name_at));
		snprintf(s->name, sizeof(s->name), "%s", s->name_at);
	}
	s->kind = kind;
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;
	uint32_t number = client.completions++;

	client.empty += valid == 0;
	client.odd_context += context || stream;
	if (pthread_equal(pthread_self(), client.thread))
		client.on_this_thread++;
	else
		client.on_others++;
	if (client.flush_in_complete)
		cupti.cuptiActivityFlushAll(0);
	if (client.allocate) {
		allocated = malloc(100);
		free(allocated);
	}
	while (seen && valid && !cupti.cuptiActivityGetNextRecord(buffer, valid, &record))
		keep((const uint8_t *)record, number);
}

void client_open(const unsigned *kinds)
{
	client.thread = pthread_self();
	CHECK_EQ(cupti.cuptiActivityRegisterCallbacks(request, complete), 0);
	for (; *kinds; kinds++)
		CHECK_EQ(cupti.cuptiActivityEnable((CUpti_ActivityKind)*kinds), 0);
}

unsigned count_kind(unsigned kind)
{
	unsigned i, count = 0;

	for (i = 0; i < seen_count && i < SEEN; i++)
		count += seen[i].kind == kind;
	return count;
}

const struct seen *find_kind(unsigned kind, unsigned number)
{
	unsigned i;

	for (i = 0; i < seen_count && i < SEEN; i++)
		if (seen[i].kind == kind && number-- == 0)
			return &seen[i];
	printf("#   no record number %u of kind %u\n", number, kind);
	exit(1);
}

struct fake_cupti_totals totals(void)
{
	struct fake_cupti_totals t;

	fake.totals(&t);
	return t;
}

void launch(unsigned times)
{
	struct fake_work work = { .duration_ns = 1000 };
	char *names[] = { "kernel_a", "kernel_b", "kernel_c" };
	unsigned i;

	for (i = 0; i < times; i++) {
		fake_cuda_next(&work);
		cudaLaunchKernel(names[i % 3], 1 + i, 2, 3, 64, 1, 1, NULL, 512, NULL);
	}
}

void wait_ms(unsigned ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

/* ---- rows ---- */

static const struct row {
	const char *name;
	void (*run)(void);
	int signal;
} rows[] = {
#define X(name, signal) { #name, row_##name, signal },
	STANDIN_ROWS(X)
#undef X
};

static void *open_library(const char *name)
{
	static char file[32];

	profile = !strcmp(name, "12")     ? 1204
		  : !strcmp(name, "13")   ? 1300
		  : !strcmp(name, "13.5") ? 1305
					  : 1400;
	snprintf(file, sizeof(file), "libcupti.so.%.2s", name);
	return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

static void find_all(void *library)
{
	void *symbol;

#define X(name)                                                                                    \
	symbol = dlsym(library, #name);                                                            \
	memcpy(&cupti.name, &symbol, sizeof(symbol));                                              \
	CHECK(symbol != NULL);
	CUPTI_FUNCTIONS(X)
#undef X
	symbol = dlsym(library, "cuptiActivityEnableRuntimeApi");
	memcpy(&cupti.runtime_api, &symbol, sizeof(symbol));
	symbol = dlsym(library, "cuptiSubscribe_v2");
	memcpy(&cupti.subscribe_v2, &symbol, sizeof(symbol));
	symbol = dlsym(library, "cuptiActivityGetStructSize");
	memcpy(&cupti.struct_size, &symbol, sizeof(symbol));
	symbol = dlsym(library, "cuptiActivityGetEnabledKinds");
	memcpy(&cupti.enabled_kinds, &symbol, sizeof(symbol));
}

static int run_row(const char *build, const struct row *row)
{
	void *library = open_library(build);

	if (!library || !fake_cupti_find(&fake, library)) {
		printf("#   %s\n", dlerror());
		return 1;
	}
	find_all(library);
	seen = calloc(SEEN, sizeof(*seen));
	alarm(60);
	row->run();
	fflush(stdout);
	/* CUPTI's thread goes on: no memory is taken from under it */
	_exit(failed);
}

static bool row_passes(const char *self, const char *build, const struct row *row)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		execl(self, self, build, "-", row->name, (char *)NULL);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child)
		return false;
	if (row->signal)
		return WIFSIGNALED(status) && WTERMSIG(status) == row->signal;
	if (WIFSIGNALED(status))
		printf("#   signal %d\n", WTERMSIG(status));
	return status == 0;
}

static const struct row *find_row(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

int main(int argc, char **argv)
{
	size_t i;
	int bad = 0;

	if (argc == 4 && !strcmp(argv[2], "-"))
		return find_row(argv[3]) ? run_row(argv[1], find_row(argv[3])) : 2;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (argc > 2 && strcmp(argv[2], rows[i].name) != 0)
			continue;
		fflush(stdout);
		if (row_passes(argv[0], argv[1], &rows[i])) {
			printf("ok - %s %s\n", argv[1], rows[i].name);
		} else if (row_passes(argv[0], argv[1], &rows[i])) {
			/* the stand-in's work takes its time by the clock: on a busy machine, later
			 */
			printf("ok - %s %s # the second time\n", argv[1], rows[i].name);
		} else {
			printf("not ok - %s %s\n", argv[1], rows[i].name);
			bad = 1;
		}
	}
	return argc > 1 ? bad : 2;
}

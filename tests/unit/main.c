/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runner of the unit tests: `unit [PART-OF-A-NAME...]` runs the tests whose names hold one of
 * the arguments, or all.  One TAP line each, then "N passed, N failed"; exits 1 on a failure.
 */
#include "tests/unit/unit.h"

#include "schemas/base/plain.h"
#include "schemas/base/status.h"

#include <dirent.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct test {
	const char *name;
	void (*run)(void);
} tests[] = {
#define X(name) { #name, test_##name },
	TEST_LIST(X)
#undef X
};

/* Asked for by the address sanitizer: tests want to see NULL where memory is not to be had. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* Of the test that runs. */
static atomic_uint checks, failures;
static char skipped[200];

__attribute__((format(printf, 3, 4))) static bool judge(bool held, const char *file,
							const char *fmt, ...)
{
	va_list args;
	char text[1000];

	atomic_fetch_add(&checks, 1);
	if (held)
		return true;
	atomic_fetch_add(&failures, 1);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	printf("# %s:%s\n", file, text); /* one call: lines of threads do not mix */
	return false;
}

bool unit_check(bool held, const char *file, int line, const char *text)
{
	return judge(held, file, "%d: %s", line, text);
}

bool unit_check_u64(uint64_t got, uint64_t want, const char *file, int line, const char *text)
{
	return judge(got == want, file,
		     "%d: %s is %" PRIu64 " (0x%" PRIx64 "), not %" PRIu64 " (0x%" PRIx64 ")", line,
		     text, got, got, want, want);
}

bool unit_check_i64(int64_t got, int64_t want, const char *file, int line, const char *text)
{
	return judge(got == want, file, "%d: %s is %" PRId64 ", not %" PRId64, line, text, got,
		     want);
}

bool unit_check_f64(double got, double want, double slack, const char *file, int line,
		    const char *text)
{
	/* so written that a NaN fails */
	return judge(fabs(got - want) <= slack, file, "%d: %s is %.17g, not %.17g", line, text, got,
		     want);
}

bool unit_check_str(const char *got, const char *want, const char *file, int line, const char *text)
{
	bool held = got && want ? !strcmp(got, want) : got == want;

	return judge(held, file, "%d: %s is \"%s\", not \"%s\"", line, text, got ? got : "(null)",
		     want ? want : "(null)");
}

bool unit_check_mem(const void *got, const void *want, size_t len, const char *file, int line,
		    const char *text)
{
	const unsigned char *a = got, *b = want;
	size_t i = 0;

	if (len && (!a || !b))
		return judge(false, file, "%d: %s: one of the two is NULL", line, text);
	while (i < len && a[i] == b[i])
		i++;
	return judge(i == len, file, "%d: %s differs at byte %zu: 0x%02x, not 0x%02x", line, text,
		     i, i < len ? a[i] : 0, i < len ? b[i] : 0);
}

bool unit_check_ok(int status, const struct error *err, const char *file, int line,
		   const char *text)
{
	return judge(status == ST_OK, file, "%d: %s: %s%s%s", line, text,
		     status_text((enum status)status), status && err ? ": " : "",
		     status && err ? err->text : "");
}

void unit_skip(const char *why, ...)
{
	va_list args;

	va_start(args, why);
	vsnprintf(skipped, sizeof(skipped), why, args);
	va_end(args);
}

const char *unit_traces(void)
{
	const char *folder = getenv("TACHO_TRACES");

	if (!folder || !*folder)
		folder = "../shared/traces";
	return access(folder, R_OK | X_OK) == 0 ? folder : NULL;
}

size_t unit_kineto_traces(void (*check)(const char *path, void *arg), void *arg)
{
	const char *traces = unit_traces();
	struct dirent *entry;
	char path[1024];
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/kineto", traces ? traces : "");
	dir = traces ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir))) {
		if (!strstr(entry->d_name, ".json"))
			continue;
		snprintf(path, sizeof(path), "%s/kineto/%s", traces, entry->d_name);
		check(path, arg);
		count++;
	}
	if (dir)
		closedir(dir);
	if (!count)
		SKIP("no sample traces");
	return count;
}

static bool wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

static bool run(const struct test *test, unsigned number)
{
	checks = 0;
	failures = 0;
	skipped[0] = '\0';
	test->run();
	if (!checks && !skipped[0])
		judge(false, "tests/unit", " %s checks nothing", test->name);
	printf("%s %u - %s%s%s\n", failures ? "not ok" : "ok", number, test->name,
	       skipped[0] ? " # SKIP " : "", skipped);
	fflush(stdout);
	return !failures;
}

int main(int argc, char **argv)
{
	unsigned number = 0, failed = 0, skips = 0;
	size_t i;

	setlocale(LC_CTYPE, "C.UTF-8"); /* for the widths of characters */
	plain_set(getenv("TACHO_PLAIN"));
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (!wanted(tests[i].name, argc, argv))
			continue;
		failed += !run(&tests[i], ++number);
		skips += skipped[0] != '\0';
	}
	printf("1..%u\n", number);
	if (skips)
		printf("# %u skipped a part or all, as said above\n", skips);
	if (!number)
		printf("# no test of that name\n");
	printf("%u passed, %u failed\n", number - failed, failed);
	return failed || !number;
}

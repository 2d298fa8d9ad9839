/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record/internal.h"

#include "collector/config/config.h"
#include "schemas/base/buf.h"
#include "schemas/base/crc32c.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The library is in the tool's folder, as built, or in ../lib, as installed. */
enum status preload_find(const char *asked, char out[PATH_MAX], struct error *err)
{
	static const char *const places[] = { "libtacho.so", "../lib/libtacho.so.1",
					      "../lib64/libtacho.so.1" };
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (asked && realpath(asked, out))
		return ST_OK;
	if (asked || n < 0)
		return fail(err, ST_ABSENT, NOWHERE, "%s: no such library", asked ? asked : "");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		if (is_file(path) && realpath(path, out))
			return ST_OK;
	}
	return fail(err, ST_ABSENT, NOWHERE, "libtacho.so is not beside %s, nor in ../lib", self);
}

static void set_variable(const char *name, const char *value, void *arg)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* Sets a variable that holds one library, unless the user has set another one, which is
 * returned. */
static const char *name_library(const char *variable, const char *library)
{
	const char *other = getenv(variable);

	if (other && *other && strcmp(other, library) != 0)
		return other;
	setenv(variable, library, 1);
	return NULL;
}

/*
 * Names the folder of our sitecustomize.py, as built or as installed.  The library puts it before
 * each program's PYTHONPATH.  It makes the package `tacho` importable, and hands on to the
 * sitecustomize of others.
 */
static void set_hook(const char *library)
{
	static const char *const places[] = { ".", "..", "../share/tacho" };
	const char *end = strrchr(library, '/');
	char folder[2 * PATH_MAX], path[2 * PATH_MAX + 32];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(folder, sizeof(folder), "%.*s/%s/tacho/hook", (int)(end - library),
			 library, places[i]);
		snprintf(path, sizeof(path), "%s/sitecustomize.py", folder);
		if (!is_file(path) || !realpath(folder, path))
			continue;
		setenv("TACHO_HOOK", path, 1);
		return;
	}
}

/*
 * Returns whether a path can be in LD_PRELOAD, which is split at blanks and colons and in which
 * ld.so expands $. A folder with another name is replaced by a link with a plain name, in a folder
 * that only this user can write, which stays for later runs.
 */
static bool is_plain(const char *path)
{
	return !strpbrk(path, " \t\n:$");
}

static enum status make_link_folder(char *out, size_t cap, struct error *err)
{
	const char *base = getenv("TMPDIR");
	struct stat st;

	if (!base || base[0] != '/' || !is_plain(base))
		base = "/tmp";
	snprintf(out, cap, "%s/tacho-%u", base, (unsigned)geteuid());
	if (mkdir(out, 0700) != 0 && errno != EEXIST)
		return fail(err, ST_IO, NOWHERE, "%s: %s", out, strerror(errno));
	if (lstat(out, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & 077)
		return fail(err, ST_IO, NOWHERE,
			    "%s must be a folder that only this user can write", out);
	return ST_OK;
}

static enum status make_plain(const char *library, char out[PATH_MAX], struct error *err)
{
	const char *name = strrchr(library, '/');
	char folder[PATH_MAX], link[PATH_MAX + 16], now[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", (int)(name - library), library);
	TRY(make_link_folder(now, sizeof(now) / 2, err));
	snprintf(link, sizeof(link), "%s/%08x", now, crc32c(0, folder, strlen(folder)));
	ssize_t n = readlink(link, now, sizeof(now) - 1);
	now[n > 0 ? n : 0] = '\0';
	if (strcmp(now, folder) != 0) {
		unlink(link);
		if (symlink(folder, link) != 0 && errno != EEXIST)
			return fail(err, ST_IO, NOWHERE, "%s: %s", link, strerror(errno));
	}
	if (snprintf(out, PATH_MAX, "%s%s", link, name) >= PATH_MAX || !is_plain(out))
		return fail(err, ST_USAGE, NOWHERE, "%s cannot be preloaded", library);
	return ST_OK;
}

/* gcc's AddressSanitizer ends the program if it is not the first library, unless this option is
 * set. */
static void set_sanitizer_options(void)
{
	static const char ours[] = "verify_asan_link_order=0";
	const char *before = getenv("ASAN_OPTIONS");
	struct buf text;

	buf_init(&text, 1 << 20);
	buf_putf(&text, "%s", ours);
	if (before && *before) /* later options have precedence */
		buf_putf(&text, ":%s", before);
	setenv("ASAN_OPTIONS", buf_text(&text), 1);
	buf_release(&text);
}

/* Sets the start time for the run id.  A tacho-record for each rank would have a different time
 * each and so separate the ranks. */
static void set_start(const struct config *c)
{
	time_t now = time(NULL);
	char text[32], all[RUN_ID_MAX];
	struct tm tm;

	if (c->rank.rank != RANK_UNKNOWN || getenv(RUN_STARTED_VARIABLE) || !gmtime_r(&now, &tm))
		return;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	snprintf(all, sizeof(all), "%s %s %d", text, c->host, (int)getpid());
	setenv(RUN_STARTED_VARIABLE, all, 1);
}

enum status preload_set(const struct config *c, const char *found, struct preload_others *others,
			struct error *err)
{
	const char *before = getenv("LD_PRELOAD");
	char plain[PATH_MAX];
	struct buf preload;

	if (!is_plain(found)) {
		TRY(make_plain(found, plain, err));
		found = plain;
	}
	config_export(c, set_variable, NULL);
	others->cuda = name_library("CUDA_INJECTION64_PATH", found);
	if (others->cuda) { /* CUDA loads only one library: ours, which then loads the other */
		others->cuda = strdup(others->cuda);
		setenv("TACHO_NEXT_INJECTION", others->cuda ? others->cuda : "", 1);
		setenv("CUDA_INJECTION64_PATH", found, 1);
	}
	others->nvtx = c->nvtx ? name_library("NVTX_INJECTION64_PATH", found) : NULL;
	if (c->nccl_events != NCCL_NO) /* another tool's plugin has precedence */
		name_library("NCCL_PROFILER_PLUGIN", found);
	buf_init(&preload, 1 << 20);
	buf_put_text(&preload, found);
	if (before && *before)
		buf_putf(&preload, ":%s", before);
	setenv("LD_PRELOAD", buf_text(&preload), 1);
	buf_release(&preload);
	set_sanitizer_options();
	set_start(c);
	set_hook(found);
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record/internal.h"

#include "collector/arena/arena.h"
#include "collector/arena/introduce.h"
#include "collector/config/config.h"
#include "collector/recorder/recorder.h"
#include "collector/store/store.h"
#include "schemas/base/buf.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

static void put_library(const char *library, struct buf *out)
{
	size_t (*doctor)(char *text, size_t size);
	const char *(*version)(void);
	void *handle = dlopen(library, RTLD_NOW);
	char text[8192] = "";

	if (!handle) {
		buf_putf(out, "library   cannot be loaded: %s\n", dlerror());
		return;
	}
	*(void **)&doctor = dlsym(handle, "tacho_doctor");
	*(void **)&version = dlsym(handle, "tacho_version");
	if (!doctor || !version) {
		buf_putf(out, "library   %s is no libtacho\n", library);
		dlclose(handle);
		return;
	}
	doctor(text, sizeof(text));
	buf_put_text(out, text);
	if (strcmp(version(), TACHO_VERSION) != 0)
		buf_putf(out, "library   its version is not that of this tool, %s\n",
			 TACHO_VERSION);
	dlclose(handle);
}

/*
 * Appends what works in the processes of a command.  Each process reports when it ends, because
 * only there the libraries of its own environment are found.  Returns false if none of them has
 * loaded CUDA.
 */
static bool put_processes(const struct config *c, const char *library, char **command,
			  struct buf *out)
{
	char path[] = "/tmp/tacho-doctor-XXXXXX", text[8192];
	struct run run = { .command = command };
	struct preload_others others;
	size_t before;
	struct error err;
	int fd = mkstemp(path), kept;
	ssize_t n;

	if (fd < 0 || preload_set(c, library, &others, &err) != ST_OK)
		return false;
	setenv("TACHO_DOCTOR", path, 1);
	setenv("TACHO_WINDOW", "signal", 1); /* records nothing without a signal */
	kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC,
		     STDERR_FILENO + 1); /* run_command() replaces stdout */
	if (run_command(&run, &err) != ST_OK)
		buf_putf(out, "command   %s\n", err.text);
	dup2(kept, STDOUT_FILENO);
	close(kept);
	unsetenv("TACHO_DOCTOR");
	before = out->len;
	while ((n = read(fd, text, sizeof(text))) > 0)
		buf_put(out, text, (size_t)n);
	close(fd);
	unlink(path);
	if (out->len > before)
		return true;
	buf_put_text(out, "command   has loaded nothing of CUDA in any process\n");
	return false;
}

static bool is_of_others(const char *value, const char *library)
{
	return value && *value && strcmp(value, library) != 0;
}

static void put_recorder(struct buf *out)
{
	struct recorder recorder;
	struct error err;

	if (recorder_start(&recorder, 0, &err) != ST_OK) {
		buf_putf(out, "recorder  %s: nothing can be recorded\n", err.text);
		return;
	}
	buf_put_text(out,
		     recorder_settle(&recorder) == 0
			     ? "recorder  a process of its own writes logs; in a program with CUDA "
			       "or NCCL one thread helps it\n"
			     : "recorder  its process does not answer: nothing can be recorded\n");
	int filters = seccomp_filters("/proc/self");
	if (filters == FILTERS_UNKNOWN)
		buf_put_text(out,
			     "filters   the kernel does not tell seccomp filters: a program that "
			     "begins under one that kills may be killed\n");
	else
		buf_putf(out,
			 "filters   a program that begins under more than %d of seccomp is not "
			 "recorded\n",
			 filters);
}

/* Appends how the recorder sees programs from outside. */
static void put_watching(struct buf *out)
{
	int pair[2] = { -1, -1 }, fd = -1;
	char from = 1, to = 0;
	struct iovec theirs = { &from, 1 }, ours = { &to, 1 };

	arena_forbid(getenv("TACHO_WITHOUT"));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0)
		fd = recorder_pidfd(pair[0], getpid());
	arena_note(ARENA_READ, arena_allows(ARENA_READ) &&
				       process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == 1);
	close(fd);
	close(pair[0]);
	close(pair[1]);
	arena_doctor(out, "watching  ", "by pidfd; Python stacks by process_vm_readv\n");
}

void record_doctor(const struct config *c, const char *library, char **command, struct buf *out)
{
	static const char *const names[] = { "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
					     "LD_PRELOAD", "LD_AUDIT" };
	enum { NAMES = sizeof(names) / sizeof(names[0]) };
	char *set[NAMES]; /* never freed */

	for (size_t i = 0; i < NAMES; i++) /* before the library sets its own values */
		set[i] = is_of_others(getenv(names[i]), library) ? strdup(getenv(names[i])) : NULL;
	setenv("TACHO_CUPTI_LIB", c->cupti_lib,
	       1); /* the only option that the library needs here */
	if (!*command || !put_processes(c, library, command, out))
		put_library(library, out);
	const char *folder = c->out;
	struct error err;
	struct statvfs v;
	bool made = false;

	if (store_make_folder(folder, &made, &err) != ST_OK)
		buf_putf(out, "logs      %s\n", err.text);
	else if (access(folder, W_OK | X_OK) != 0 || statvfs(folder, &v) != 0)
		buf_putf(out, "logs      %s cannot be written to: %s\n", folder, strerror(errno));
	else
		buf_putf(out, "logs      %s can be written to, %.1f GiB free\n", folder,
			 (double)v.f_bavail * (double)v.f_frsize / (1 << 30));
	if (made)
		rmdir(folder);
	put_recorder(out);
	put_watching(out);
	if (c->rank.rank != RANK_UNKNOWN)
		buf_putf(out, "rank      %u of %u, by %s\n", c->rank.rank, c->rank.world_size,
			 c->rank.launcher);
	else
		buf_putf(out, "rank      none: no launcher's variable is set\n");
	for (size_t i = 0; i < NAMES; i++)
		if (set[i])
			buf_putf(out, "others    %s=%s is set: another tool may be at work\n",
				 names[i], set[i]);
}

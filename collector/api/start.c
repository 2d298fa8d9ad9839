/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the collector in a process, continues it in forked children, and ends it. */
#include "collector/api/tacho.h"
#include "collector/arena/arena.h"
#include "collector/arena/introduce.h"
#include "collector/config/config.h"
#include "collector/helper/helper.h"
#include "collector/probe/cupti/lib.h"
#include "collector/probe/nccl/plugin.h"
#include "collector/probe/nvtx/calls.h"
#include "collector/probe/nvtx/names.h"
#include "collector/probe/probe.h"
#include "collector/session/seen.h"
#include "collector/session/session.h"
#include "collector/session/signals.h"
#include "schemas/base/buf.h"
#include "schemas/base/plain.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_LIMIT_NS UINT64_C(2000000000)
enum { TEXT_MAX = 1 << 20 };

static struct config config;

static const struct session_helper helper = { cupti_is_needed, helper_start, nccl_window_changed };

/* Appends to the file `path` what works in this process, if it has loaded CUDA.  tacho-record
 * --doctor with a command uses it. */
static void tell_doctor(const char *path)
{
	int fd = cuda_is_loaded() ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	char text[8192];

	if (fd < 0)
		return;
	tacho_doctor(text, sizeof(text));
	dprintf(fd, "process   %d, %s\n%s", (int)getpid(), program_invocation_name, text);
	close(fd);
}

static void at_exit(void)
{
	const char *doctor = getenv("TACHO_DOCTOR");

	if (doctor)
		tell_doctor(doctor);
	session_exit(EXIT_LIMIT_NS);
}

static void before_fork(void)
{
	if (session_before_fork())
		nvtx_names_before_fork();
}

static void forked_parent(void)
{
	if (session_forked_parent())
		nvtx_names_unlock();
}

static void tell_probes(void)
{
	for (const struct probe_type *const *probe = probe_types; *probe; probe++)
		if ((*probe)->forked)
			(*probe)->forked();
}

static void forked_child(void)
{
	if (!session_forked_child())
		return;
	nvtx_names_unlock();
	tell_probes();
}

static void cloned_child(void)
{
	if (session_cloned_child())
		tell_probes();
}

/* Returns whether this process was started under a seccomp filter that the recorder does not
 * have. */
static bool starts_filtered(void)
{
	const char *text = secure_getenv(FILTERS_VARIABLE);

	return text && seccomp_has_more("/proc/self", atoi(text));
}

/*
 * Creates the shared memory now, because main() may forbid the system calls that it needs.  Without
 * tacho-record this would start a recorder for each process, and most make no event.
 */
static void introduce_early(void)
{
	if (!introduce_is_awaited())
		return;
	arena_set_early(true);
	session_prepare();
	arena_set_early(false);
}

/* A script may set PYTHONPATH to its own folders alone. */
static void keep_python_path(void)
{
	const char *hook = getenv("TACHO_HOOK"), *before = getenv("PYTHONPATH");
	struct buf text;

	if (!hook || (before && strstr(before, hook)))
		return;
	buf_init(&text, TEXT_MAX);
	buf_put_text(&text, hook);
	if (before && *before)
		buf_putf(&text, ":%s", before);
	setenv("PYTHONPATH", buf_text(&text), 1);
	buf_release(&text);
}

static void start(void)
{
	struct error err;

	keep_python_path();
	if (starts_filtered()) { /* the rest makes system calls, now and later */
		arena_stay_out(REFUSED_FILTER);
		session_stay_out();
		seen_open(getenv("TACHO_SEEN"));
		return;
	}
	/* A wrong setting must not stop the job, which runs unrecorded; tacho-record refuses it
	 * earlier. */
	if (config_read(&config, environ, &err) != ST_OK)
		dprintf(STDERR_FILENO, "tacho: error: %s; nothing is recorded\n", err.text);
	config.is_worker = command_is_worker();
	plain_set(getenv("TACHO_PLAIN"));
	arena_forbid(getenv("TACHO_WITHOUT"));
	char library[PATH_MAX] = "";
	Dl_info self;
	if (dladdr(&config, &self) && !realpath(self.dli_fname, library))
		library[0] = '\0';
	arena_keep_in(config.ring_dir, config.host, ARENA_FILE + config_ring_space(&config));
	bool is_reported = !config.forbidden && seen_open(getenv("TACHO_SEEN"));
	introduce_to(secure_getenv(INTRODUCE_VARIABLE), library, is_reported);
	session_init(&config, &helper);
	if (config.forbidden)
		return;
	arena_when_cloned(cloned_child);
	introduce_early();
	/* NVTX and CUDA initialise this library only through these variables, even if it is loaded
	 * already. */
	if (config.enabled && config.nvtx && *library)
		setenv("NVTX_INJECTION64_PATH", library, 0);
	if (config.enabled && *library)
		setenv("CUDA_INJECTION64_PATH", library, 0);
	if (config.enabled && config.window_spec.signal)
		signals_install_toggle(config.window_spec.signal);
	pthread_atfork(before_fork, forked_parent, forked_child);
	atexit(at_exit);
}

static __attribute__((constructor)) void constructor(void)
{
	int kept = errno;

	start();
	errno = kept; /* main() is to find 0 */
}

size_t tacho_doctor(char *text, size_t size)
{
	const struct probe_type *const *probe = probe_types;
	struct buf out;

	buf_init(&out, TEXT_MAX);
	buf_putf(&out, "library   libtacho %s is loaded\n", TACHO_VERSION);
	for (; *probe; probe++)
		if ((*probe)->doctor)
			(*probe)->doctor(&out);
	if (text && size)
		snprintf(text, size, "%s", buf_text(&out));
	size = out.len;
	buf_release(&out);
	return size;
}

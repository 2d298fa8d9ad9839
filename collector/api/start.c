/* SPDX-License-Identifier: Apache-2.0 */
/* How the collector comes to life in a process, lives on in its children, and ends. */
#include "collector/api/tacho.h"
#include "collector/arena/arena.h"
#include "collector/arena/introduce.h"
#include "collector/config/config.h"
#include "collector/control/control.h"
#include "collector/probe/probe.h"
#include "collector/probe/cupti/lib.h"
#include "collector/probe/nvtx/names.h"
#include "collector/session/seen.h"
#include "collector/session/session.h"
#include "collector/session/signals.h"
#include "collector/store/writer.h"
#include "schemas/base/plain.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXIT_LIMIT_NS UINT64_C(2000000000)

static struct config config;

static void quit_writer(struct writer *w, bool finished)
{
	control_stop();
	writer_quit(w, finished);
}

static void began(void)
{
	control_start(getpid());
}

static const struct writer_hooks writer_hooks = { writer_start, began, quit_writer };

/* For tacho-record --doctor with a command: what works here, where it has loaded CUDA. */
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
	session_before_fork();
	nvtx_names_lock();
}

static void forked_parent(void)
{
	nvtx_names_unlock();
	session_forked_parent();
}

static void forked_child(void)
{
	const struct probe_type *const *probe;

	nvtx_names_unlock();
	session_forked_child();
	signals_forked();
	control_forked();
	for (probe = probe_types; *probe; probe++)
		if ((*probe)->forked)
			(*probe)->forked();
}

static __attribute__((constructor)) void start(void)
{
	struct error err;

	/* the job must run, without being recorded; tacho-record has refused such a setting before
	 */
	if (config_read(&config, environ, &err) != ST_OK)
		dprintf(STDERR_FILENO, "tacho: error: %s; nothing is recorded\n", err.text);
	config.is_worker = command_is_worker();
	plain_set(getenv("TACHO_PLAIN"));
	arena_forbid(getenv("TACHO_WITHOUT"));
	char library[PATH_MAX] = "";
	Dl_info self;
	if (dladdr(&config, &self) && !realpath(self.dli_fname, library))
		library[0] = '\0';
	introduce_to(secure_getenv(INTRODUCE_VARIABLE), library);
	session_init(&config, probe_types, &writer_hooks);
	if (config.forbidden)
		return;
	seen_open(getenv("TACHO_SEEN"));
	/* NVTX loads its handler by this variable alone, also when we are in the process already */
	if (config.enabled && config.nvtx && *library)
		setenv("NVTX_INJECTION64_PATH", library, 0);
	if (config.enabled && config.window_spec.signal)
		signals_install_toggle(config.window_spec.signal);
	pthread_atfork(before_fork, forked_parent, forked_child);
	atexit(at_exit);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How the collector comes to life in a process, lives on in its children, and ends. */
#include "collector/command.h"
#include "collector/config.h"
#include "collector/control.h"
#include "collector/death.h"
#include "collector/session.h"
#include "collector/toggle.h"
#include "collector/trigger.h"
#include "collector/watch.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define EXIT_LIMIT_NS UINT64_C(2000000000)

static const struct watch_type *const watches[] = {
#define X(name) &watch_##name,
	WATCH_LIST(X)
#undef X
	NULL,
};
static struct config config;

static void at_exit(void)
{
	session_exit(EXIT_LIMIT_NS);
}

static void forked_child(void)
{
	const struct watch_type *const *watch;

	session_forked_child();
	death_forked();
	trigger_forked();
	toggle_forked();
	control_forked();
	for (watch = watches; *watch; watch++)
		if ((*watch)->forked)
			(*watch)->forked();
}

/* NVTX loads its handler by this variable alone, also when we are in the process already. */
static void handle_nvtx(void)
{
	char path[PATH_MAX];
	Dl_info self;

	if (config.nvtx && dladdr(&config, &self) && realpath(self.dli_fname, path))
		setenv("NVTX_INJECTION64_PATH", path, 0);
}

static __attribute__((constructor)) void start(void)
{
	/* a wrong setting is told by tacho-record; the job is let run and let alone */
	config_read(&config, environ, NULL);
	config.is_worker = command_is_worker();
	session_init(&config, watches);
	if (config.forbidden)
		return;
	if (config.enabled)
		handle_nvtx();
	if (config.enabled && config.window_spec.on_demand)
		toggle_watch();
	pthread_atfork(session_before_fork, session_forked_parent, forked_child);
	atexit(at_exit);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of a live program, in a separate process. */
#include "collector/arena/arena.h"
#include "collector/arena/texts.h"
#include "collector/config/config.h"
#include "collector/control/control.h"
#include "collector/recorder/recorder.h"
#include "collector/session/session.h"
#include "collector/store/writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LOOK_NS UINT64_C(50000000) /* period of checks while the program has made no event */

static struct {
	pid_t pid;
	int pidfd;
	_Atomic bool is_gone;
} program;

/* Notes that the program has ended.  This is also the handler of SIGTERM, which means that the
 * process runs another program, with another arena. */
static void note_gone(int number)
{
	atomic_store(&program.is_gone, true);
	session_wake_writer();
}

bool recorder_program_is_gone(void)
{
	if (program.pid && program.pidfd < 0 && kill(program.pid, 0) < 0 && errno == ESRCH)
		atomic_store(&program.is_gone, true);
	return atomic_load(&program.is_gone);
}

static bool is_gone(void)
{
	recorder_adopt_late();
	return recorder_program_is_gone();
}

static void *watch(void *arg)
{
	struct pollfd p = { .fd = program.pidfd, .events = POLLIN };

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	note_gone(0);
	return NULL;
}

static void start_watching(const struct recorded *r)
{
	struct sigaction end = { .sa_handler = note_gone };
	pthread_t thread;

	program.pid = (pid_t)r->pid;
	program.pidfd = r->pidfd;
	sigemptyset(&end.sa_mask);
	sigaction(SIGTERM, &end, NULL);
	sigaddset(&end.sa_mask, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &end.sa_mask, NULL);
	if (r->pidfd >= 0 && pthread_create(&thread, NULL, watch, NULL) != 0)
		program.pidfd = -1;
}

bool recorder_live(const struct recorded *r)
{
	static struct config config;
	struct writer_program who = {
		.pid = r->inner_pid, .is_gone = is_gone, .hang = r->hang, .is_alone = r->is_alone
	};
	size_t len;

	prctl(PR_SET_NAME, "tacho-writer");
	if (!arena_adopt(r->arena, true))
		return false;
	session_join(&config, r->pid);
	start_watching(r);
	/* The order matters, because the program may begin and die between the two checks. */
	for (bool gone = false; !session_has_begun(); gone = recorder_program_is_gone()) {
		if (gone)
			return true; /* the program has made no event */
		session_sleep(LOOK_NS);
	}
	if (!recorder_adopt(&config))
		return false;
	if (r->pid == r->inner_pid) /* the program has our PID namespace */
		session_runs_as((uint32_t)getpid());
	control_start((pid_t)r->pid);
	who.command = name_text(arena()->command, &len);
	writer_run(&config, recorder_probes, &who);
	return true;
}

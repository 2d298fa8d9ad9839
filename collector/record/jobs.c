/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record/internal.h"

#include "collector/config/config.h"
#include "collector/control/control.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 64, AGAIN_MS = 50 };

/* Returns the parent of a process, or 0 if there is no such process. */
static pid_t parent_of(pid_t pid)
{
	char text[COMMAND_STAT];
	const char *stat = command_stat((uint32_t)pid, text);
	int parent = 0;

	return stat && sscanf(stat, "%*c %d", &parent) == 1 ? parent : 0;
}

static bool descends(pid_t pid, pid_t root)
{
	for (int i = 0; i < DEPTH_MAX && pid > 1; i++, pid = parent_of(pid))
		if (pid == root)
			return true;
	return false;
}

/* Sends the request to all recorded processes below `root`; returns how many have received it. */
static unsigned tell_all(pid_t root, const char *what)
{
	char reply[CONTROL_REPLY + 1];
	DIR *d = opendir("/proc");
	struct dirent *entry;
	unsigned count = 0;

	while (d && (entry = readdir(d)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && descends(pid, root))
			count += control_ask(pid, what, reply, NULL) != ST_ABSENT;
	}
	if (d)
		closedir(d);
	return count;
}

void jobs_tell(pid_t root, const char *what)
{
	const struct timespec pause = { .tv_nsec = AGAIN_MS * 1000000L };

	if (fork() != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!tell_all(root, what) && parent_of(root))
		nanosleep(&pause, NULL);
	_exit(0);
}

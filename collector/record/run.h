/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - runs a command as env does, as far as its parent can: exit status, signals, terminal
 * stops, standard streams, signal mask and dispositions.
 *
 *	sent to the process group   has reached the command by itself
 *	sent to us alone            is passed on to the command
 *
 * The siginfo of a signal does not say which of both it was.  So a second child, the canary, lies
 *in the group with every signal blocked, and is asked whether the signal has reached it as well.
 *
 * What cannot be equal: SIGSTOP to us alone, and the sender (si_pid) of a signal that is passed on.
 */
#ifndef COLLECTOR_RECORD_RUN_H
#define COLLECTOR_RECORD_RUN_H

#include "schemas/base/status.h"

#include <stdbool.h>
#include <sys/types.h>

enum { RUN_NOT_EXECUTABLE = 126, RUN_NOT_FOUND = 127 }; /* as the shell has it */

struct run {
	char *const *command;
	/* A signal came that was sent to us alone; true: it was for us and is not passed on. */
	bool (*is_for_us)(int number, pid_t child, void *arg);
	void *arg;

	pid_t child;   /* 0: it could not be started */
	int status;    /* of the child, as of waitpid() */
	int exit_code; /* where it could not be started */
};

/*
 * Called first of all: where one of the standard streams is closed, no file of ours takes its
 * number, and the command finds it closed.
 */
void run_hold_streams(void);
/* Runs run->command to its end.  Once in a process, which has one thread. */
enum status run_command(struct run *run, struct error *err);
/* Ends this process as the command ended; returns the exit status where that cannot be. */
int run_end_as(int status);

#endif

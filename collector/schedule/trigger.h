/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.h - when the flight recorder's ring is saved: after a slow step, a hang, a signal or a
 * command.
 *
 * Pure, like window.h: no clock, thread or file; the same inputs fire at the same places.  Only the
 * writer thread uses it.  After a slow step has fired, others do not fire for a while, so that one
 * incident is saved in one log; a step that takes TRIGGER_WORSE times as long still fires.  Once as
 * many steps have been saved as are to be kept, a step fires only if it is longer than the shortest
 * of them, whose place it takes.  Slow steps that do not fire are counted.  Only a hang prevents
 * further hangs from firing for a while.  Requests by signal or command always fire.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
#define TRIGGER_LIST(X) X(NONE, "none") X(SLOW, "slow") X(HANG, "hang") X(SIGNAL, "signal") \
	X(DEATH, "death") X(COMMAND, "command")
/* clang-format on */
enum trigger_kind {
#define X(name, word) TRIGGER_##name,
	TRIGGER_LIST(X)
#undef X
};
const char *trigger_word(enum trigger_kind kind);

struct trigger_spec {
	double slow;       /* factor of the running median; 0: slow steps do not fire */
	uint64_t least_ns; /* shorter steps are not slow */
	uint64_t hang_ns;  /* 0: hangs do not fire */
	uint64_t cool_ns;  /* least time between two slow steps, or two hangs */
	uint64_t keep;     /* number of slow steps whose logs are kept, the longest ones */
	bool signal, death;
	int signal_number; /* signal to the program; 0: none, only to tacho-record */
	int stacks_signal; /* signal on which a program that hangs prints its stacks; 0: none */
};
/* Parses "slow=1.5,hang=300s,signal,death"; "signal=USR2" for a signal to the program; min=5ms,
 * cool=60s, keep=3, stacks=USR2; or "none". */
enum status trigger_parse(struct trigger_spec *out, const char *text, struct error *err);

enum {
	TRIGGER_STEPS = 64,    /* number of steps in the running median */
	TRIGGER_SETTLING = 10, /* first steps of a run, which are not representative */
	TRIGGER_LEAST = 10,    /* number of further steps before there is a median */
	TRIGGER_WORSE = 2,     /* a step that takes this many times the last one fires at once */
	TRIGGER_KEEP_MAX = 64,
};
struct trigger {
	struct trigger_spec spec;
	uint64_t took_ns[TRIGGER_STEPS], steps; /* steps: all so far, including the first ones */
	uint64_t threshold_ns;                  /* UINT64_MAX: no median yet */
	uint64_t cool_until_ns, last_ns; /* end of the pause, duration of the last slow step */
	bool cooling, hung;
	uint64_t hung_step, hang_until_ns;
	uint64_t kept_ns[TRIGGER_KEEP_MAX];
	unsigned kept;
};
struct trigger_fired {
	enum trigger_kind kind;
	uint64_t at_ns, step; /* step NOWHERE: no step */
	uint64_t value_ns, threshold_ns;
	unsigned place; /* place of a slow step among those kept; an older log there is removed */
};

void trigger_init(struct trigger *t, const struct trigger_spec *spec);
/* Adds the duration of a step to the running median. */
void trigger_learn(struct trigger *t, uint64_t took_ns);
/* Computes the threshold again; call it after one or more trigger_learn(). */
void trigger_settle(struct trigger *t);
/*
 * Feeds a step that ended at `now_ns`.  Returns whether it is to be saved.  If it is slow but not
 * to be saved, returns false with out->kind TRIGGER_SLOW.
 */
bool trigger_slow(struct trigger *t, uint64_t step, uint64_t took_ns, uint64_t now_ns,
		  struct trigger_fired *out);
/* Feeds a step that has been open since `since_ns`.  Returns whether it hangs and is to be
 * saved. */
bool trigger_hang(struct trigger *t, uint64_t step, uint64_t since_ns, uint64_t now_ns,
		  struct trigger_fired *out);

/* Signals to the program that a user may choose for windows and saves. */

/*
 * Parses "USR1", "SIGUSR1" or "10".  ST_USAGE: it is no signal, or one that cannot be used because
 * it ends or stops the program or reports a fault.
 */
enum status signal_parse(const char *text, size_t len, int *out, struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.h - when the flight recorder's ring is saved: a slow step, a hang, a signal, a command.
 *
 * Pure, like window.h: no clock, no thread, no file; the same inputs fire at the same places.
 * Writer thread only.  After a slow step has fired, others stay silent for a while, so that one
 * incident is saved in one log; but one that takes TRIGGER_WORSE times as long fires even so.  When
 * as many have been saved as are to be kept, one fires only if it is longer than the shortest of
 * them, whose place it takes.  Slow steps that do not fire are counted.  Hangs are silent for a
 * while after a hang only.  Requests by signal or command are always honoured.
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
	double slow;       /* times the running median; 0: not */
	uint64_t least_ns; /* a step that is shorter is not slow */
	uint64_t hang_ns;  /* 0: not */
	uint64_t cool_ns;  /* between two that fire by themselves */
	uint64_t keep;     /* slow steps of which a log is kept, the longest */
	bool signal, death;
	int signal_number; /* of the program itself; 0: none, tacho-record is sent one */
};
/* "slow=1.5,hang=300s,signal,death", "signal=USR2" for the program itself, and min=5ms, cool=60s,
 * keep=3; "none". */
enum status trigger_parse(struct trigger_spec *out, const char *text, struct error *err);

enum {
	TRIGGER_STEPS = 64,    /* of the running median */
	TRIGGER_SETTLING = 10, /* the first steps of a run, which are not representative */
	TRIGGER_LEAST = 10,    /* steps before there is a median */
	TRIGGER_WORSE = 2,     /* times as long as the last one: it does not wait */
	TRIGGER_KEEP_MAX = 64,
};
struct trigger {
	struct trigger_spec spec;
	uint64_t took_ns[TRIGGER_STEPS], steps; /* steps so far, including the first ones */
	uint64_t threshold_ns;                  /* UINT64_MAX: none yet */
	uint64_t cool_until_ns, last_ns; /* of slow steps: until when, and how long the last was */
	bool cooling, hung;
	uint64_t hung_step, hang_until_ns;
	uint64_t kept_ns[TRIGGER_KEEP_MAX];
	unsigned kept;
};
struct trigger_fired {
	enum trigger_kind kind;
	uint64_t at_ns, step; /* step NOWHERE: of none */
	uint64_t value_ns, threshold_ns;
	unsigned place; /* of a slow step among those kept; what was saved there before goes */
};

void trigger_init(struct trigger *t, const struct trigger_spec *spec);
/* Adds the duration of a step to the running median. */
void trigger_learn(struct trigger *t, uint64_t took_ns);
/* Computes the threshold again; call it after some trigger_learn(). */
void trigger_settle(struct trigger *t);
/*
 * A step ended at `now_ns`.  False: it took less than the threshold, or is not to be saved, in
 * which case out->kind is TRIGGER_SLOW.
 */
bool trigger_slow(struct trigger *t, uint64_t step, uint64_t took_ns, uint64_t now_ns,
		  struct trigger_fired *out);
/* A step has been open for `since_ns`. */
bool trigger_hang(struct trigger *t, uint64_t step, uint64_t since_ns, uint64_t now_ns,
		  struct trigger_fired *out);

/*
 * Signals that a user may name for windows and saves inside of the program.
 */

/*
 * "USR1", "SIGUSR1" or "10".  ST_USAGE: it is none, or one that cannot be had, since it ends or
 * stops the program whatever it does, or says that the program is at fault.
 */
enum status signal_parse(const char *text, size_t len, int *out, struct error *err);

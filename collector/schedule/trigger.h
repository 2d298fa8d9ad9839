/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.h - when the flight recorder's ring is saved: a slow step, a hang, a signal, a command.
 *
 * Pure, like window.h: no clock, no thread, no file; the same inputs fire at the same places.
 * Writer thread only.  After a slow step or a hang has fired, it stays silent for a while, so that
 * one incident is saved in one log.  Requests by signal or command are always honoured.
 */
#ifndef COLLECTOR_SCHEDULE_TRIGGER_H
#define COLLECTOR_SCHEDULE_TRIGGER_H

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
	bool signal, death;
	int signal_number; /* of the program itself; 0: none, tacho-record is sent one */
};
/* "slow=1.5,hang=300s,signal,death", "signal=USR2" for the program itself, and min=5ms, cool=60s;
 * "none". */
enum status trigger_parse(struct trigger_spec *out, const char *text, struct error *err);

enum {
	TRIGGER_STEPS = 64,    /* of the running median */
	TRIGGER_SETTLING = 10, /* the first steps of a run, which are not representative */
	TRIGGER_LEAST = 10,    /* steps before there is a median */
};
struct trigger {
	struct trigger_spec spec;
	uint64_t took_ns[TRIGGER_STEPS], steps; /* steps so far, including the first ones */
	uint64_t threshold_ns;                  /* UINT64_MAX: none yet */
	uint64_t cool_until_ns, hung_step;
	bool cooling, hung;
};
struct trigger_fired {
	enum trigger_kind kind;
	uint64_t at_ns, step; /* step NOWHERE: of none */
	uint64_t value_ns, threshold_ns;
};

void trigger_init(struct trigger *t, const struct trigger_spec *spec);
/* How long a step took. */
void trigger_learn(struct trigger *t, uint64_t took_ns);
/* The median so far, anew; after some learning. */
void trigger_settle(struct trigger *t);
/* A step over the threshold of its time ended at `now_ns`. */
bool trigger_slow(struct trigger *t, uint64_t step, uint64_t took_ns, uint64_t now_ns,
		  struct trigger_fired *out);
/* A step is open since so long. */
bool trigger_hang(struct trigger *t, uint64_t step, uint64_t since_ns, uint64_t now_ns,
		  struct trigger_fired *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - what a name means: a phase, a step, communication, a short name for people.
 *
 * The defaults are tables (analyze/DEFINITIONS.md 4, 2); a user's JSON file replaces the phases and
 * adds to the rest.  Rules are POSIX extended regular expressions, case ignored, first match wins;
 * one that would take regcomp() too much memory is refused.
 * Constant after load: any thread may ask.  Matching is slow; callers keep the answer per name id.
 *
 *	{"phases": [{"phase": "forward", "match": "^my_forward"}], "steps": ["^train_step"],
 *	 "communication": ["mynccl"]}
 */
#pragma once

#include "schemas/base/status.h"
#include "schemas/model/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Phases that Tacho knows; their ids are the same in every run.  A user's own phases, and unmapped
 * annotations (step.h), come after. */
/* clang-format off */
#define PHASE_LIST(X)                                                                              \
	X(OTHER, "other") X(VALIDATION, "validation") X(CHECKPOINT, "checkpoint") X(DATA, "data")  \
	X(OPTIMIZER, "optimizer") X(BACKWARD, "backward") X(FORWARD, "forward")                    \
	X(COMMUNICATION, "communication") X(PREFILL, "prefill") X(DECODE, "decode")              \
	X(MIXED, "mixed")
/* clang-format on */
enum phase {
#define X(name, word) PHASE_##name,
	PHASE_LIST(X)
#undef X
		PHASE_KNOWN, /* first id of a phase that is not in this list */
	PHASE_NONE = 255,    /* no rule matches */
};

struct name_rules;
/* `json` NULL: the defaults.  Errors name the rule. */
enum status name_rules_new(struct name_rules **out, const char *json, size_t len,
			   struct error *err);
void name_rules_free(struct name_rules *r); /* accepts NULL */

/* Phases with a name, PHASE_LIST first. */
unsigned name_rules_phase_count(const struct name_rules *r);
const char *name_rules_phase_name(const struct name_rules *r, unsigned phase);

/* Of an annotation's name; PHASE_NONE when no rule matches. */
unsigned name_rules_phase(const struct name_rules *r, const char *name);
/* Of a phase pushed through tacho.h: its name is a phase's own word, else the rules decide. */
unsigned name_rules_pushed(const struct name_rules *r, const char *name);
/* "ProfilerStep#12": true, *number = 12.  A match without a number gives UINT64_MAX. */
bool name_rules_step(const struct name_rules *r, const char *name, uint64_t *number);
/*
 * The annotations with which servers mark their steps are of several grammars, and one server may
 * write two for each step.  The grammar of a name that marks a step, from 1 on; 0: another mark.
 */
unsigned name_rules_grammar(const struct name_rules *r, const char *name);
/* A kernel that communicates: by the names of the libraries, without a user's rules ... */
bool name_communicates(const char *kernel);
/* ... and with them. */
bool name_rules_communicates(const struct name_rules *r, const char *kernel);
/* What GPU work does.  Of several classes that run at once the first one is what the GPU does: the
 * others are hidden behind it, and what is not hidden is exposed. */
enum gpu_class { CLASS_COMPUTE, CLASS_COMM, CLASS_COPY, CLASS_IDLE, CLASS_COUNT };
/* The class of GPU work; `communicates` is what name_rules_communicates() says about its name. */
static inline enum gpu_class event_class(const struct event *work, bool communicates)
{
	if (work->kind == KIND_MEMCPY || work->kind == KIND_MEMSET)
		return CLASS_COPY;
	return work->kind == KIND_KERNEL && communicates ? CLASS_COMM : CLASS_COMPUTE;
}
/* PHASE_DATA of a Python function that loads, decodes or prepares input, PHASE_CHECKPOINT of one
 * that saves the model, otherwise PHASE_NONE. */
unsigned name_function_phase(const char *python);
/* A range in which code is compiled: torch.compile's, Triton's and JAX's. */
bool name_compiles(const char *name);
/* A Python function with which a profiler begins or ends its own work. */
bool name_is_profiler(const char *python);
/* An op that only an autograd engine's thread runs. */
bool name_rules_autograd(const struct name_rules *r, const char *op);

/* A kernel's name for people, at most `width` columns (UTF-8).
 * Returns the bytes written, without the NUL; out[cap]. */
size_t name_short(const char *kernel, size_t width, char *out, size_t cap);

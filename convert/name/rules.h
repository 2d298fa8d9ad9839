/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - rules that map names to phases, steps and communication, and short names for people.
 *
 * The defaults are tables (analyze/DEFINITIONS.md 4, 2); a user's JSON file replaces the phases and
 * adds to the other tables.  Rules are POSIX extended regular expressions that ignore case; the
 * first match wins.  A rule for which regcomp() would need too much memory is refused.  Rules are
 * constant after loading, so any thread may use them.  Matching is slow, so callers should cache
 * results by name id.
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

/* Predefined phases.  Their ids are the same in every run; a user's own phases, and unmapped
 * annotations (context.h), come after. */
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
/* Makes rules from a user's file.  If `json` is NULL, only the defaults apply.  Error messages name
 * the rule. */
enum status name_rules_new(struct name_rules **out, const char *json, size_t len,
			   struct error *err);
void name_rules_free(struct name_rules *r); /* accepts NULL */

/* Returns the number of phases of the rules; those of PHASE_LIST come first. */
unsigned name_rules_phase_count(const struct name_rules *r);
const char *name_rules_phase_name(const struct name_rules *r, unsigned phase);

/* Returns the phase of an annotation's name, or PHASE_NONE if no rule matches. */
unsigned name_rules_phase(const struct name_rules *r, const char *name);
/* Returns the phase that was pushed through tacho.h: if its name is not the word of a phase, the
 * rules decide. */
unsigned name_rules_pushed(const struct name_rules *r, const char *name);
/* Returns whether the name marks a step, and its number: 12 for "ProfilerStep#12", UINT64_MAX if
 * the name has none. */
bool name_rules_step(const struct name_rules *r, const char *name, uint64_t *number);
/*
 * Returns the grammar of a name that marks a server's step, from 1 on; 0: another mark.  Servers
 * name their annotations in several grammars, and some write annotations of two grammars for each
 * step, of which only one may count.
 */
unsigned name_rules_grammar(const struct name_rules *r, const char *name);
/* Returns whether a kernel communicates, by the names of libraries. */
bool name_communicates(const char *kernel);
/* Returns whether a kernel communicates, by the names of libraries or the user's rules. */
bool name_rules_communicates(const struct name_rules *r, const char *kernel);
/* The classes of GPU work.  If several run at once, the GPU counts as doing the first of them.  The
 * others are hidden behind it; otherwise they are exposed. */
enum gpu_class { CLASS_COMPUTE, CLASS_COMM, CLASS_COPY, CLASS_IDLE, CLASS_COUNT };
/* Returns the class of GPU work; `communicates` is that of name_rules_communicates() for its name.
 */
static inline enum gpu_class event_class(const struct event *work, bool communicates)
{
	if (work->kind == KIND_MEMCPY || work->kind == KIND_MEMSET)
		return CLASS_COPY;
	return work->kind == KIND_KERNEL && communicates ? CLASS_COMM : CLASS_COMPUTE;
}
/* Returns PHASE_DATA for a Python function that loads, decodes or prepares input, PHASE_CHECKPOINT
 * for one that saves the model, PHASE_VALIDATION for one that validates it, otherwise PHASE_NONE.
 */
unsigned name_function_phase(const char *python);
/* Returns whether a range compiles code, for torch.compile, Triton or JAX. */
bool name_compiles(const char *name);
/* Returns whether a profiler begins or ends its own work in this Python function. */
bool name_is_profiler(const char *python);
/* Returns whether Inductor wrote the annotation around the code that it compiled.  It counts as an
 * operator, because its name does not describe what the host does. */
bool name_is_compiled(const char *annotation);
/* Returns whether only threads of an autograd engine run this operator. */
bool name_is_autograd(const char *op);

/* Writes a short kernel name for people to out[cap], at most `width` columns of UTF-8.  Returns the
 * length without the NUL. */
size_t name_short(const char *kernel, size_t width, char *out, size_t cap);

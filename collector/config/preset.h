/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preset.h - the option names of other profilers' guides, so that an existing configuration file,
 * environment or command line works here unchanged.
 *
 *	start_step: 10, end_step: 20     ->  window steps:10-20
 *	--profiling.active 3             ->  window schedule:wait=1,warmup=1,active=3,repeat=1
 *
 * The keys of one preset are combined into its window; keys that are not given have the guide's
 * defaults.  --preset NAME uses all defaults of a guide.  Each key may begin with "profiling.".  If
 * one source gives both, our own option has precedence over a preset.
 *
 * To add a key, add a row to PRESET_KEYS; to add a preset, add a row to PRESETS.
 */
#pragma once

#include "schemas/base/option.h"

#include <stdbool.h>

/*
 * X(id, guide's key, preset, default of the guide, our option, text for yes, text for no,
 * explanation).  Only switches have a text for no; in other rows {} stands for the value.  A key
 * without an option of ours is a part of its preset's window, or has no effect.
 */
/* clang-format off */
#define PRESET_KEYS(X)                                                                             \
	/* a window of steps, as in JAX profiler callbacks */                                      \
	X(START_STEP, "start-step", "steps", "10", NULL, NULL, NULL,                               \
	  "first step of the window")                                                              \
	X(END_STEP, "end-step", "steps", "20", NULL, NULL, NULL,                                   \
	  "step before which the window ends")                                                     \
	X(LOG_DIR, "log-dir", NULL, NULL, "out", "{}", NULL,                                       \
	  "folder for the logs, as out")                                                           \
	X(TRACE_MEMORY, "trace-memory", NULL, NULL, "sample", NULL, "none",                        \
	  "no: no memory samples")                                                                 \
	/* a memory sample every so many steps */                                                  \
	X(EVERY_N_STEPS, "profile-every-n-steps", "memory", "100", "sample", "steps={}", NULL,     \
	  "a memory sample every so many steps")                                                   \
	X(DEVICE_MEMORY, "log-device-memory", NULL, NULL, "sample", NULL, "none",                  \
	  "no: no memory samples")                                                                 \
	/* a window of some steps every so many minutes */                                         \
	X(FIRST_STEP, "profile-first-step", "periodic", "10", NULL, NULL, NULL,                    \
	  "the first window begins at this step")                                                  \
	X(N_STEPS, "profile-n-steps", "periodic", "5", NULL, NULL, NULL,                           \
	  "steps of each window")                                                                  \
	X(N_MINUTES, "profile-every-n-minutes", "periodic", "60", NULL, NULL, NULL,                \
	  "minutes from one window to the next; below 0: only one")                                \
	X(MAIN_ONLY, "main-process-only", "periodic", "yes", "ranks", "main", "all",               \
	  "yes: ranks main, no: ranks all")                                                        \
	X(PROFILE_LOG_DIR, "profile-log-dir", NULL, NULL, "out", "{}", NULL,                       \
	  "folder for the logs, as out")                                                           \
	X(UNUSED_EPOCHS, "every-n-epochs", NULL, NULL, NULL, NULL, NULL,                           \
	  "taken, and means nothing, as there")                                                    \
	X(UNUSED_STEPS, "every-n-steps", NULL, NULL, NULL, NULL, NULL,                             \
	  "taken, and means nothing, as there")                                                    \
	/* wait, warm up and record, as PyTorch's schedule */                                      \
	X(WAIT, "wait", "schedule", "1", NULL, NULL, NULL,                                         \
	  "steps of a cycle that are passed over")                                                 \
	X(WARMUP, "warmup", "schedule", "1", NULL, NULL, NULL,                                     \
	  "steps of a cycle that warm up")                                                         \
	X(ACTIVE, "active", "schedule", "3", NULL, NULL, NULL,                                     \
	  "steps of a cycle that are recorded")                                                    \
	X(REPEAT, "repeat", "schedule", "1", NULL, NULL, NULL,                                     \
	  "cycles; 0: for ever")                                                                   \
	X(PROFILE_MEMORY, "profile-memory", NULL, NULL, "kinds", "all,memory", NULL,               \
	  "yes: kinds all,memory")                                                                 \
	X(RECORD_SHAPES, "record-shapes", NULL, NULL, NULL, NULL, NULL,                            \
	  "taken; shapes come with the ranges of NVTX")                                            \
	X(WITH_STACK, "with-stack", NULL, NULL, "trace-python", "yes", "no",                       \
	  "as trace-python")                                                                       \
	/* the same in cycles of so many steps, as a Lightning callback */                         \
	X(CYCLE, "schedule-every-n-steps", "cyclic", "50", NULL, NULL, NULL,                       \
	  "a cycle begins every so many steps")                                                    \
	X(WAIT_STEPS, "wait-steps", "cyclic", "1", NULL, NULL, NULL,                               \
	  "steps of a cycle that are passed over")                                                 \
	X(WARMUP_STEPS, "warmup-steps", "cyclic", "1", NULL, NULL, NULL,                           \
	  "steps of a cycle that warm up")                                                         \
	X(ACTIVE_STEPS, "active-steps", "cyclic", "3", NULL, NULL, NULL,                           \
	  "steps of a cycle that are recorded")                                                    \
	X(CYCLES, "repeat-cycles", "cyclic", "2", NULL, NULL, NULL,                                \
	  "cycles; 0: for ever")                                                                   \
	X(OUTPUT_DIR, "output-dir", NULL, NULL, "out", "{}", NULL,                                 \
	  "folder for the logs, as out")
/* clang-format on */

enum preset_key {
#define X(id, name, preset, fallback, option, yes, no, what) PRESET_##id,
	PRESET_KEYS(X)
#undef X
		PRESET_KEY_COUNT,
};

/* X(name, window in terms of its keys (NULL: unchanged), default folder for the logs). */
/* clang-format off */
#define PRESETS(X)                                                                                 \
	X("steps", "steps:{start-step}-{end-step}", "logs/profiles")                               \
	X("memory", NULL, "logs/memory")                                                           \
	X("periodic", "every={profile-every-n-minutes}m,first={profile-first-step},"               \
		      "steps={profile-n-steps}", "tensorboard")                                    \
	X("schedule", "schedule:wait={wait},warmup={warmup},active={active},repeat={repeat}",      \
	  "profiler_traces")                                                                       \
	X("cyclic", "schedule:wait={wait-steps},warmup={warmup-steps},active={active-steps},"      \
		    "repeat={repeat-cycles},every={schedule-every-n-steps}", "outputs/profiler_logs")
/* clang-format on */

/* Texts are borrowed; NULL means that the key was not given. */
struct preset {
	const char *name;
	const char *values[PRESET_KEY_COUNT];
};
extern const struct option preset_options[];

/* Calls make("window", "steps:10-20", by_default) for each option that follows from the keys. */
typedef enum status (*preset_make_fn)(const char *option, const char *text, bool by_default,
				      void *arg, struct error *err);
enum status preset_make(const struct preset *p, preset_make_fn make, void *arg, struct error *err);
/* Returns whether a window was requested: by the name of a preset, or by a key that is part of a
 * window. */
bool preset_asks_window(const struct preset *p);
/* Writes a line that explains a key to `text`; returns the key's name. */
const char *preset_explain(unsigned key, char *text, size_t cap);

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config/config.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

/* A config from up to four variables. */
static bool read_four(struct config *c, const char *a, const char *b, const char *d, const char *e)
{
	char *envp[] = { (char *)(uintptr_t) "HOME=/", (char *)(uintptr_t)a, (char *)(uintptr_t)b,
			 (char *)(uintptr_t)d,         (char *)(uintptr_t)e, NULL };
	struct error err;

	return CHECK_OK(config_read(c, envp, &err), &err);
}

static void window_is(const char *a, const char *b, const char *d, const char *window)
{
	struct config c;

	if (read_four(&c, a, b, d, NULL)) {
		CHECK_STR(c.window, window);
		CHECK(c.enabled);
	}
	config_release(&c);
}

/* The library by itself: a guide's keys as variables are wish enough. */
void test_preset_windows(void)
{
	window_is("TACHO_PRESET=steps", NULL, NULL, "steps:10-20");
	window_is("TACHO_START_STEP=5", "TACHO_END_STEP=7", NULL, "steps:5-7");
	window_is("TACHO_END_STEP=12", NULL, NULL, "steps:10-12");
	window_is("TACHO_PRESET=periodic", NULL, NULL, "every=60m,first=10,steps=5");
	window_is("TACHO_PROFILE_EVERY_N_MINUTES=-1", "TACHO_PROFILE_N_STEPS=3", NULL,
		  "every=-1m,first=10,steps=3");
	window_is("TACHO_PRESET=schedule", NULL, NULL,
		  "schedule:wait=1,warmup=1,active=3,repeat=1");
	window_is("TACHO_PROFILING_WAIT=0", "TACHO_ACTIVE=5", NULL,
		  "schedule:wait=0,warmup=1,active=5,repeat=1");
	window_is("TACHO_PRESET=cyclic", NULL, NULL,
		  "schedule:wait=1,warmup=1,active=3,repeat=2,every=50");
	window_is("TACHO_SCHEDULE_EVERY_N_STEPS=10", "TACHO_REPEAT_CYCLES=4", NULL,
		  "schedule:wait=1,warmup=1,active=3,repeat=4,every=10");
	window_is("TACHO_PRESET=memory", NULL, NULL, "all");
	/* memory has no window of its own */
	window_is("TACHO_PRESET=memory", "TACHO_START_STEP=1", "TACHO_END_STEP=2", "steps:1-2");
	/* said outright in the same place */
	window_is("TACHO_PRESET=periodic", "TACHO_WINDOW=steps:1-2", NULL, "steps:1-2");
}

void test_preset_switches(void)
{
	struct config c;

	if (read_four(&c, "TACHO_PRESET=periodic", NULL, NULL, NULL)) {
		CHECK_STR(c.ranks, "main");
		CHECK(strstr(c.out, "/tensorboard") != NULL);
	}
	config_release(&c);
	if (read_four(&c, "TACHO_PRESET=periodic", "TACHO_MAIN_PROCESS_ONLY=False", "RANK=3",
		      "TACHO_OUT=/mine")) {
		CHECK_STR(c.ranks, "all");
		CHECK_STR(c.out, "/mine");
		CHECK(c.enabled);
	}
	config_release(&c);
	if (read_four(&c, "TACHO_PRESET=periodic", "RANK=3", NULL, NULL))
		CHECK(!c.enabled && c.forbidden);
	config_release(&c);
	if (read_four(&c, "TACHO_TRACE_MEMORY=false", "TACHO_LOG_DIR=/logs", "TACHO_WINDOW=all",
		      NULL)) {
		CHECK_STR(c.sample, "none");
		CHECK_STR(c.out, "/logs");
	}
	config_release(&c);
	if (read_four(&c, "TACHO_PROFILE_EVERY_N_STEPS=50", NULL, NULL, NULL)) {
		CHECK_STR(c.sample, "steps=50");
		CHECK_U64(c.sample_steps, 50);
		CHECK(c.enabled);
	}
	config_release(&c);
	if (read_four(&c, "TACHO_PRESET=memory", "TACHO_LOG_DEVICE_MEMORY=no", NULL, NULL))
		CHECK_STR(c.sample, "none");
	config_release(&c);
	if (read_four(&c, "TACHO_PROFILING_PROFILE_MEMORY=True", "TACHO_PROFILING_WITH_STACK=1",
		      "TACHO_WINDOW=all", "TACHO_RECORD_SHAPES=yes")) {
		CHECK(c.device_memory && c.trace_python);
		CHECK_STR(c.window, "all");
	}
	config_release(&c);
	if (read_four(&c, "TACHO_PROFILING_ENABLED=false", "TACHO_PRESET=cyclic", NULL, NULL))
		CHECK(!c.enabled && c.forbidden);
	config_release(&c);
	/* what the guide has and does not use; nobody asked for a window */
	if (read_four(&c, "TACHO_EVERY_N_EPOCHS=-1", "TACHO_EVERY_N_STEPS=-1", NULL, NULL))
		CHECK(!c.enabled && !c.forbidden);
	config_release(&c);
}

void test_preset_errors(void)
{
	static const struct {
		const char *a, *b, *text;
	} rows[] = {
		{ "TACHO_PRESET=often", NULL,
		  "--preset: often: must be steps, memory, periodic, schedule or cyclic" },
		{ "TACHO_START_STEP=1", "TACHO_WAIT=1",
		  "wait is a key of preset schedule, start-step of steps" },
		{ "TACHO_PRESET=cyclic", "TACHO_WAIT=1",
		  "wait is a key of preset schedule, --preset of cyclic" },
		{ "TACHO_START_STEP=30", NULL,
		  "--window: steps:30-20: the last step must be after the first" },
		{ "TACHO_WINDOW=all", "TACHO_MAIN_PROCESS_ONLY=maybe",
		  "main-process-only: maybe: must be yes or no" },
	};
	struct config c;
	struct error err;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *envp[] = { (char *)(uintptr_t)rows[i].a, (char *)(uintptr_t)rows[i].b, NULL };

		CHECK(config_read(&c, envp, &err) == ST_USAGE);
		CHECK_STR(err.text, rows[i].text);
		CHECK(c.forbidden && !c.enabled);
		CHECK_STR(c.window, "all");
		config_release(&c);
	}
}

/* Later sources win; keys of one guide from several of them make one window. */
void test_preset_sources(void)
{
	struct config c = { 0 };
	const struct option_set sets[] = { { config_options, &c },
					   { preset_options, &c.preset },
					   { NULL, NULL } };
	struct config_source before;
	struct error err;

	option_defaults(sets, NULL);
	config_source_begin(&c, &before);
	option_set_text(sets, "profiling.wait", "7", NULL);
	option_set_text(sets, "out", "mine", NULL);
	CHECK_OK(config_source_end(&c, &before, &err), &err);
	CHECK_STR(c.window, "schedule:wait=7,warmup=1,active=3,repeat=1");
	config_source_begin(&c, &before);
	option_set_text(sets, "profiling.active", "2", NULL);
	CHECK_OK(config_source_end(&c, &before, &err), &err);
	CHECK_STR(c.window, "schedule:wait=7,warmup=1,active=2,repeat=1");
	CHECK_STR(c.out, "mine");
	config_source_begin(&c, &before);
	option_set_text(sets, "window", "all", NULL);
	CHECK_OK(config_source_end(&c, &before, &err), &err);
	CHECK_STR(c.window, "all");
	CHECK_STR(c.ranks, "all");
	config_source_release(&c);
}

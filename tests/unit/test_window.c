/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/schedule/window.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#define S UINT64_C(1000000000)

/* What a run of steps 0, 1, 2 ... gives: i idle, w warm-up, r recorded; by step. */
static const char *run_steps(const char *spec_text, uint64_t first, unsigned count,
			     struct window_machine *w)
{
	static char states[128];
	struct window_spec spec;
	struct error err;
	unsigned i;
	bool again;

	if (!CHECK_OK(window_parse(&spec, spec_text, &err), &err))
		return "";
	window_init(w, &spec, 0);
	for (i = 0; i < count; i++) {
		struct window_input in = { .event = WINDOW_STEP,
					   .number = first + i,
					   .now_ns = i * S };

		/* as the hot path does: a step below that cannot matter */
		if (in.number >= window_next_step(w) || window_next_ns(w) <= in.now_ns)
			do {
				window_feed(w, &in, &again);
			} while (again);
		states[i] = "iwr"[w->state];
	}
	states[count] = '\0';
	return states;
}

void test_window_steps(void)
{
	struct window_machine w;

	CHECK_STR(run_steps("steps:3-6", 0, 10, &w), "iiirrriiii");
	CHECK_U64(w.windows, 1);
	CHECK(window_is_done(&w));
	CHECK(!w.cut_short);
	CHECK_STR(run_steps("steps:0-2", 0, 4, &w), "rrii");
	CHECK_STR(run_steps("steps:2", 0, 5, &w), "iirii");
	CHECK_STR(run_steps("steps:2-", 0, 5, &w), "iirrr");
	/* joined late, and too late: a run that goes on from a checkpoint */
	CHECK_STR(run_steps("steps:3-6", 4, 4, &w), "rrii");
	CHECK_STR(run_steps("steps:3-6", 100, 4, &w), "iiii");
	CHECK(window_is_done(&w));
}

void test_window_schedule(void)
{
	struct window_machine w;

	CHECK_STR(run_steps("schedule:wait=1,warmup=1,active=3,repeat=2", 0, 14, &w),
		  "iwrrriwrrriiii");
	CHECK_U64(w.windows, 2);
	CHECK(window_is_done(&w));
	CHECK_STR(run_steps("schedule:wait=1,warmup=1,active=3,repeat=1", 0, 8, &w), "iwrrriii");
	CHECK_STR(run_steps("schedule:wait=2,active=1", 0, 9, &w), "iiriiriir");
	CHECK(!window_is_done(&w));
	CHECK_STR(run_steps("schedule:active=2,warmup=1", 0, 7, &w), "wrrwrrw");
	CHECK_STR(run_steps("schedule:active=2", 0, 5, &w), "rrrrr");
	CHECK_U64(w.windows, 3);
	/* a cycle every ten steps; one that is longer takes its time */
	CHECK_STR(run_steps("schedule:wait=1,warmup=1,active=2,repeat=2,every=10", 0, 22, &w),
		  "iwrriiiiiiiwrriiiiiiii");
	CHECK_STR(run_steps("schedule:wait=1,active=2,every=2", 0, 9, &w), "irrirrirr");
	CHECK_STR(run_steps("schedule:skip_first=3,wait=1,active=1,repeat=2", 0, 9, &w),
		  "iiiiririi");
	/* counted from the first step seen */
	CHECK_STR(run_steps("schedule:wait=1,warmup=1,active=2,repeat=1", 1000, 6, &w), "iwrrii");
}

void test_window_every(void)
{
	struct window_machine w;

	/* one step a second; a window at the earliest 6 s after the last began */
	CHECK_STR(run_steps("every=6s,first=2,steps=2", 0, 16, &w), "iirriiiirriiiirr");
	CHECK_STR(run_steps("every=4,first=1,steps=2", 0, 12, &w), "irriirriirri");
	CHECK_STR(run_steps("every=-1,first=1,steps=2", 0, 8, &w), "irriiiii");
	CHECK_STR(run_steps("every=-1m,first=1,steps=2", 0, 8, &w), "irriiiii");
	CHECK_STR(run_steps("every=0m,first=1,steps=2", 0, 8, &w), "irrrrrrr");
	CHECK_U64(w.windows, 4);
	CHECK_STR(run_steps("every=4,first=1,steps=2,repeat=2", 0, 12, &w), "irriirriiiii");
}

static enum window_state feed(struct window_machine *w, enum window_event event, uint64_t now_ns,
			      const char *name)
{
	struct window_input in = { .event = event, .now_ns = now_ns, .name = name };
	bool again;

	return window_feed(w, &in, &again);
}

static bool make(struct window_machine *w, const char *text, uint64_t now_ns)
{
	struct window_spec spec;
	struct error err;

	if (!CHECK_OK(window_parse(&spec, text, &err), &err))
		return false;
	window_init(w, &spec, now_ns);
	return true;
}

void test_window_time(void)
{
	struct window_machine w;

	if (!make(&w, "delay=30s,for=10s", 100 * S))
		return;
	CHECK_U64(window_next_ns(&w), 130 * S);
	CHECK(feed(&w, WINDOW_TIME, 129 * S, NULL) == WINDOW_IDLE);
	CHECK(feed(&w, WINDOW_TIME, 130 * S, NULL) == WINDOW_RECORD);
	CHECK_U64(window_next_ns(&w), 140 * S);
	CHECK(feed(&w, WINDOW_TIME, 139 * S, NULL) == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_TIME, 140 * S, NULL) == WINDOW_IDLE);
	CHECK(window_is_done(&w));
	CHECK_U64(window_next_ns(&w), UINT64_MAX);

	if (!make(&w, "at=1970-01-01T00:05:00Z,for=5s", 100 * S))
		return;
	CHECK_U64(window_next_ns(&w), 300 * S);
	CHECK(feed(&w, WINDOW_TIME, 300 * S, NULL) == WINDOW_RECORD);
	/* a clock that steps back stands still */
	CHECK(feed(&w, WINDOW_TIME, 200 * S, NULL) == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_TIME, 304 * S, NULL) == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_TIME, 305 * S, NULL) == WINDOW_IDLE);
	CHECK(window_is_done(&w));

	if (!make(&w, "delay=10s,for=2s,every=10s", 0))
		return;
	CHECK(feed(&w, WINDOW_TIME, 10 * S, NULL) == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_TIME, 12 * S, NULL) == WINDOW_IDLE);
	CHECK_U64(window_next_ns(&w), 20 * S);
	CHECK(feed(&w, WINDOW_TIME, 20 * S, NULL) == WINDOW_RECORD);
}

static enum window_state feed_wall(struct window_machine *w, uint64_t now_ns, uint64_t wall_ns)
{
	struct window_input in = { .event = WINDOW_TIME, .now_ns = now_ns, .wall_ns = wall_ns };
	bool again;

	return window_feed(w, &in, &again);
}

void test_window_at(void)
{
	struct window_machine w;

	/* one clock counts from the boot, the other is the wall's */
	if (!make(&w, "at=1970-01-01T01:00:00Z,for=5s", 10 * S))
		return;
	CHECK(feed_wall(&w, 10 * S, 3590 * S) == WINDOW_IDLE);
	CHECK(window_waits_for_wall(&w));
	CHECK_U64(window_next_ns(&w), 20 * S);
	/* somebody sets the wall's clock back and forth */
	CHECK(feed_wall(&w, 12 * S, 3500 * S) == WINDOW_IDLE);
	CHECK_U64(window_next_ns(&w), 112 * S);
	CHECK(feed_wall(&w, 13 * S, 3602 * S) == WINDOW_RECORD);
	CHECK(!window_waits_for_wall(&w));
	CHECK_U64(window_next_ns(&w), 16 * S); /* it ends with those who came in time */
	CHECK(feed_wall(&w, 16 * S, 100 * S) == WINDOW_IDLE);
	CHECK(!w.cut_short && window_is_done(&w));

	/* come too late: not some other second */
	if (!make(&w, "at=1970-01-01T01:00:00Z,for=5s", 10 * S))
		return;
	CHECK(feed_wall(&w, 10 * S, 3605 * S) == WINDOW_IDLE);
	CHECK(window_is_done(&w));
	CHECK_U64(window_next_ns(&w), UINT64_MAX);

	/* a row of seconds: the next one */
	if (!make(&w, "at=1970-01-01T01:00:00Z,for=5s,every=1m", 10 * S))
		return;
	CHECK(feed_wall(&w, 10 * S, 3700 * S) == WINDOW_IDLE);
	CHECK_U64(window_next_ns(&w), 30 * S);
	CHECK(feed_wall(&w, 30 * S, 3720 * S) == WINDOW_RECORD);
	CHECK(feed_wall(&w, 35 * S, 3725 * S) == WINDOW_IDLE);
	CHECK_U64(window_next_ns(&w), 90 * S);

	if (!make(&w, "at=1970-01-01T01:00:00Z,steps=2", 10 * S))
		return;
	CHECK(feed_wall(&w, 10 * S, 3599 * S) == WINDOW_IDLE);
	CHECK_U64(window_next_step(&w), UINT64_MAX);
	CHECK(feed_wall(&w, 11 * S, 3600 * S) == WINDOW_IDLE);
	CHECK_U64(window_next_step(&w), 0);
}

void test_window_all(void)
{
	struct window_machine w;

	if (!make(&w, "all", 5))
		return;
	CHECK(feed(&w, WINDOW_TIME, 5, NULL) == WINDOW_RECORD);
	CHECK_U64(window_next_step(&w), UINT64_MAX);
	CHECK_U64(window_next_ns(&w), UINT64_MAX);
	/* everything is everything: no epoch ends it */
	CHECK(feed(&w, WINDOW_EPOCH_END, 6, NULL) == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_VALIDATION_BEGIN, 7, NULL) == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_EXIT, 8, NULL) == WINDOW_IDLE);
	CHECK(!w.cut_short);
	CHECK(feed(&w, WINDOW_START, 9, NULL) == WINDOW_IDLE);
	CHECK_U64(w.ignored, 1);
}

void test_window_cut_short(void)
{
	static const enum window_event cuts[] = { WINDOW_EPOCH_END, WINDOW_VALIDATION_BEGIN,
						  WINDOW_STOP, WINDOW_EXIT };
	struct window_machine w;
	size_t i;

	for (i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		CHECK_STR(run_steps("steps:1-9", 0, 3, &w), "irr");
		CHECK(feed(&w, cuts[i], 10 * S, NULL) == WINDOW_IDLE);
		CHECK(w.cut_short);
		CHECK(window_is_done(&w));
	}
	CHECK_STR(run_steps("schedule:wait=1,warmup=2,active=3,repeat=2", 0, 2, &w), "iw");
	CHECK(feed(&w, WINDOW_EPOCH_END, 10 * S, NULL) == WINDOW_IDLE);
	CHECK(w.cut_short);
	CHECK(!window_is_done(&w));
}

void test_window_by_hand(void)
{
	struct window_machine w;

	if (!make(&w, "signal", 0))
		return;
	CHECK(feed(&w, WINDOW_TIME, 1, NULL) == WINDOW_IDLE);
	CHECK(feed(&w, WINDOW_STOP, 2, NULL) == WINDOW_IDLE);
	CHECK_U64(w.ignored, 1);
	CHECK(feed(&w, WINDOW_START, 3, NULL) == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_START, 4, NULL) == WINDOW_RECORD);
	CHECK_U64(w.ignored, 2);
	CHECK(feed(&w, WINDOW_STOP, 5, NULL) == WINDOW_IDLE);
	CHECK(!w.cut_short);
	CHECK(feed(&w, WINDOW_START, 6, NULL) == WINDOW_RECORD);
	CHECK_U64(w.windows, 2);
	/* who began it by hand ends it */
	CHECK(feed(&w, WINDOW_EPOCH_END, 7, NULL) == WINDOW_RECORD);
	if (!make(&w, "signal,for=5ns", 0))
		return;
	CHECK(feed(&w, WINDOW_START, 3, NULL) == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_TIME, 8, NULL) == WINDOW_IDLE);
	CHECK(!w.cut_short);
	/* a window by hand takes nothing from the schedule */
	if (!make(&w, "steps:3-6", 0))
		return;
	CHECK(feed(&w, WINDOW_START, 1, NULL) == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_STOP, 2, NULL) == WINDOW_IDLE);
	CHECK(!w.cut_short && !window_is_done(&w));
	CHECK_U64(window_next_step(&w), 3);
}

void test_window_range(void)
{
	struct window_machine w;

	if (!make(&w, "nvtx=epoch_3", 0))
		return;
	CHECK(feed(&w, WINDOW_RANGE_BEGIN, 1, "epoch_2") == WINDOW_IDLE);
	CHECK(feed(&w, WINDOW_RANGE_BEGIN, 2, "epoch_3") == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_RANGE_END, 3, "forward") == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_RANGE_END, 4, "epoch_3") == WINDOW_IDLE);
	CHECK(!w.cut_short);
	/* within itself, or on two threads */
	CHECK(feed(&w, WINDOW_RANGE_BEGIN, 5, "epoch_3") == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_RANGE_BEGIN, 6, "epoch_3") == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_RANGE_END, 7, "epoch_3") == WINDOW_RECORD);
	CHECK(feed(&w, WINDOW_RANGE_END, 8, "epoch_3") == WINDOW_IDLE);
	CHECK(feed(&w, WINDOW_RANGE_END, 9, "epoch_3") == WINDOW_IDLE);
	CHECK_U64(w.windows, 2);
}

void test_window_parse_errors(void)
{
	static const char *const wrong[] = {
		"",
		"step:1-2",
		"steps:",
		"steps:5-5",
		"steps:9-3",
		"steps:a-b",
		"steps:1-2-3",
		"schedule:wait=1",
		"schedule:active=x",
		"schedule:active=3,every=5s",
		"delay=30",
		"delay=30s,for",
		"at=yesterday",
		"every=",
		"nvtx=",
		"all,steps=5",
		"delay=30s,,for=5s",
		"every=60m",
		"wait=3,steps=2",
		"signal,steps=5",
		"delay=1s,at=2026-01-01T00:00:00Z",
		"nvtx=a,steps=5",
		"nvtx=a,for=1s",
		"first=3,steps=5,repeat=2",
		"every=-x,steps=2",
		"schedule:active=3,for=5s",
		"steps:99999999999999999999999-",
		"nvtx=0123456789012345678901234567890123456789012345678901234567890123",
	};
	struct window_spec spec = { .first_step = 77 };
	struct error err;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (!CHECK(window_parse(&spec, wrong[i], &err) == ST_USAGE))
			printf("  taken: %s\n", wrong[i]);
	CHECK_U64(spec.first_step, 77);
	window_parse(&spec, "steps:20-10", &err);
	CHECK_STR(err.text, "steps:20-10: the last step must be after the first");
}

/* Whatever comes in whatever order: windows never overlap, and no state is invented. */
void test_window_any_input(void)
{
	static const char *const specs[] = { "all",
					     "steps:3-6",
					     "signal",
					     "every=3,first=1,steps=2",
					     "schedule:wait=1,warmup=1,active=2,repeat=3",
					     "delay=5ns,for=7ns,every=20ns",
					     "nvtx=a" };
	static const char *const names[] = { "a", "b" };
	uint64_t seed = 1, begun;
	struct window_machine w;
	unsigned i, k;
	bool again;

	for (k = 0; k < sizeof(specs) / sizeof(specs[0]); k++) {
		if (!make(&w, specs[k], 0))
			return;
		for (i = 0; i < 20000; i++) {
			struct window_input in;
			enum window_state before = w.state;

			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			in = (struct window_input){
				.event = (seed >> 33) % WINDOW_EXIT,
				.now_ns = i + (seed >> 60),
				.number = (seed >> 40) % 4 ? i / 3 : (seed >> 50) % 50,
				.name = names[seed >> 20 & 1],
			};
			begun = w.windows;
			window_feed(&w, &in, &again);
			if (w.windows != begun && !CHECK(before == WINDOW_IDLE))
				return;
			if (again && !CHECK(w.state == WINDOW_IDLE))
				return;
		}
		CHECK(w.windows > 0);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/schedule/trigger.h"
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#define MS UINT64_C(1000000)

static struct trigger_spec parse(const char *text)
{
	struct trigger_spec spec;
	struct error err = { 0 };

	CHECK_OK(trigger_parse(&spec, text, &err), &err);
	return spec;
}

void test_trigger_parse(void)
{
	static const char *const wrong[] = {
		"",          "slow",       "slow=",   "slow=1",      "slow=x",   "slow=1.5x",
		"hang=",     "hang=5",     "sig",     "signal,",     "slow=-2",  "death=1",
		"keep=0",    "keep=65",    "signal=", "signal=KILL", "signal=9", "signal=SEGV",
		"signal=65", "signal=USR3"
	};
	struct trigger_spec spec = parse("slow=1.5,hang=300s,signal,death");
	struct error err;

	CHECK_F64(spec.slow, 1.5, 0);
	CHECK_U64(spec.hang_ns, 300000 * MS);
	CHECK(spec.signal && spec.death);
	CHECK_U64((uint64_t)spec.signal_number, 0);
	CHECK_U64(spec.keep, 3);
	CHECK_U64(parse("keep=64").keep, 64);
	spec = parse("signal=USR2");
	CHECK(spec.signal && spec.signal_number == SIGUSR2);
	CHECK(parse("signal=SIGHUP").signal_number == SIGHUP);
	CHECK(parse("signal=10").signal_number == SIGUSR1);
	CHECK(parse("signal=40").signal_number == 40);
	spec = parse("none");
	CHECK(!spec.slow && !spec.hang_ns && !spec.signal && !spec.death);
	spec = parse("min=20ms,cool=1h,slow=3");
	CHECK_U64(spec.least_ns, 20 * MS);
	CHECK_U64(spec.cool_ns, 3600000 * MS);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_U64(trigger_parse(&spec, wrong[i], &err), ST_USAGE);
}

void test_trigger_slow(void)
{
	struct trigger_spec spec = parse("slow=2,min=1ms,cool=10s");
	struct trigger_fired fired;
	struct trigger t;

	trigger_init(&t, &spec);
	for (int i = 0; i < TRIGGER_SETTLING; i++) { /* these take long, and tell nothing */
		trigger_learn(&t, 900 * MS);
		trigger_settle(&t);
		CHECK(!trigger_slow(&t, (uint64_t)i, 900 * MS, 1, &fired));
	}
	for (int i = 0; i < TRIGGER_LEAST; i++)
		trigger_learn(&t, 10 * MS + (uint64_t)i);
	trigger_settle(&t);
	CHECK(t.threshold_ns >= 20 * MS && t.threshold_ns < 21 * MS);
	CHECK(!trigger_slow(&t, 30, 19 * MS, 5000 * MS, &fired));
	CHECK(trigger_slow(&t, 31, 30 * MS, 5000 * MS, &fired));
	CHECK_U64(fired.kind, TRIGGER_SLOW);
	CHECK_U64(fired.step, 31);
	CHECK_U64(fired.value_ns, 30 * MS);
	CHECK_U64(fired.threshold_ns, t.threshold_ns);
	CHECK(!trigger_slow(&t, 32, 30 * MS, 14999 * MS, &fired)); /* it is silent for a while */
	CHECK_U64(fired.kind, TRIGGER_SLOW);                       /* and is counted */
	CHECK(!trigger_slow(&t, 32, 10 * MS, 14999 * MS, &fired));
	CHECK_U64(fired.kind, TRIGGER_NONE);
	CHECK(trigger_slow(&t, 33, 30 * MS, 15000 * MS, &fired));
}

/* A small hiccup does not hide the stall that comes soon after it. */
void test_trigger_worse(void)
{
	struct trigger_spec spec = parse("slow=2,min=1ms,cool=1h,keep=2");
	struct trigger_fired fired;
	struct trigger t;

	trigger_init(&t, &spec);
	for (int i = 0; i < TRIGGER_SETTLING + TRIGGER_LEAST; i++)
		trigger_learn(&t, 1 * MS);
	trigger_settle(&t);
	CHECK(trigger_slow(&t, 60, 10 * MS, 1000 * MS, &fired));
	CHECK_U64(fired.place, 0);
	CHECK(!trigger_slow(&t, 61, 19 * MS, 1100 * MS, &fired));
	CHECK(trigger_slow(&t, 62, 20 * MS, 1200 * MS, &fired));
	CHECK_U64(fired.place, 1);
	CHECK(trigger_slow(&t, 63, 2000 * MS, 3000 * MS, &fired));
	CHECK_U64(fired.place, 0); /* in place of the one of 10 ms */
	CHECK(!trigger_slow(&t, 64, 3000 * MS, 5000 * MS, &fired));
	/* much later: it is longer than one of both that are kept, or it is not */
	CHECK(!trigger_slow(&t, 65, 15 * MS, 9000000 * MS, &fired));
	CHECK(trigger_slow(&t, 66, 30 * MS, 9000000 * MS, &fired));
	CHECK_U64(fired.place, 1);
}

/* A few slow steps among others move the median little; a new pace becomes the pace. */
void test_trigger_median(void)
{
	struct trigger_spec spec = parse("slow=1.5,min=1ns,cool=0s,keep=64");
	struct trigger_fired fired;
	struct trigger t;
	int fires = 0;

	trigger_init(&t, &spec);
	for (int i = 0; i < 200; i++) {
		uint64_t took = i % 10 == 9 ? 50 * MS : 10 * MS;

		fires += trigger_slow(&t, (uint64_t)i, took, (uint64_t)i * MS, &fired);
		trigger_learn(&t, took);
		trigger_settle(&t);
	}
	CHECK_U64((uint64_t)fires, 18); /* all but the two before there was a median */
	for (int i = 0; i < 100; i++) {
		fires += trigger_slow(&t, (uint64_t)i, 40 * MS, (uint64_t)(i + 200) * MS, &fired);
		trigger_learn(&t, 40 * MS);
		trigger_settle(&t);
	}
	CHECK(fires > 18 + 20 && fires < 18 + 40);
}

void test_trigger_hang(void)
{
	struct trigger_spec spec = parse("hang=5s,cool=1s");
	struct trigger_fired fired;
	struct trigger t;

	trigger_init(&t, &spec);
	CHECK(!trigger_hang(&t, 7, 1000 * MS, 5999 * MS, &fired));
	CHECK(trigger_hang(&t, 7, 1000 * MS, 6000 * MS, &fired));
	CHECK_U64(fired.kind, TRIGGER_HANG);
	CHECK_U64(fired.step, 7);
	CHECK_U64(fired.value_ns, 5000 * MS);
	CHECK(!trigger_hang(&t, 7, 1000 * MS, 90000 * MS, &fired)); /* once for each step */
	CHECK(trigger_hang(&t, 8, 91000 * MS, 99000 * MS, &fired));
	CHECK(!trigger_hang(&t, 9, 91000 * MS, 99900 * MS, &fired));  /* it is silent for a while */
	CHECK(!trigger_hang(&t, 9, 100000 * MS, 90000 * MS, &fired)); /* a clock that went back */
	spec = parse("slow=2");
	trigger_init(&t, &spec);
	CHECK(!trigger_hang(&t, 1, 0, UINT64_MAX, &fired));
}

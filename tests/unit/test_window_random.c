/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any order of calls, against an oracle that is slow and simple: it knows each schedule by the
 * sentence that describes it, looks at all that has happened so far, and knows no "next".
 */
#include "collector/schedule/window.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#define NONE UINT64_MAX
enum { INPUTS = 400, ROUNDS = 1000 };

enum schema { STEPS, SCHEDULE, EVERY_TIME, EVERY_STEPS, TIMES, ALL, RANGE, DEMAND };
struct spec_case {
	enum schema schema;
	uint64_t a, b, c, d, e; /* as the text says, see make_case() */
	char text[80];
};

struct oracle {
	struct spec_case spec;
	enum window_state state;
	bool by_hand, cut, exited;
	uint64_t scheduled, windows, ranges;
	uint64_t begin_ns, begin_step;     /* of the window that is open */
	uint64_t last_step_begun, last_ns; /* of the last planned, of the last at all */
	uint64_t origin;
};

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (seed >> 33) % below;
}

static void make_case(struct spec_case *s)
{
	*s = (struct spec_case){ .schema = (enum schema)draw(8),
				 .a = draw(9),
				 .b = 1 + draw(6),
				 .c = draw(3),
				 .d = draw(3),
				 .e = draw(20) };
	switch (s->schema) {
	case STEPS: /* from a, b steps */
		snprintf(s->text, sizeof(s->text), "steps:%d-%d", (int)s->a, (int)(s->a + s->b));
		break;
	case SCHEDULE: /* skip a; wait c, warm up d, b active; each e steps */
		snprintf(s->text, sizeof(s->text),
			 "schedule:first=%d,wait=%d,warmup=%d,active=%d,"
			 "every=%d",
			 (int)s->a, (int)s->c, (int)s->d, (int)s->b, (int)s->e + 1);
		break;
	case EVERY_TIME: /* from a, b steps, each e ns */
		snprintf(s->text, sizeof(s->text), "every=%dns,first=%d,steps=%d",
			 10 * (int)s->e + 1, (int)s->a, (int)s->b);
		break;
	case EVERY_STEPS: /* from a, b steps, each e steps, d times */
		snprintf(s->text, sizeof(s->text), "every=%d,first=%d,steps=%d,repeat=%d",
			 (int)s->e + 1, (int)s->a, (int)s->b, (int)s->d);
		break;
	case TIMES: /* after a, for b */
		snprintf(s->text, sizeof(s->text), "delay=%dns,for=%dns", 10 * (int)s->a + 1,
			 10 * (int)s->b);
		break;
	case ALL:
		strcpy(s->text, "all");
		break;
	case RANGE:
		strcpy(s->text, "nvtx=a");
		break;
	case DEMAND:
		strcpy(s->text, s->c ? "signal" : "signal,for=15ns");
		break;
	}
}

/* Does the spec begin a window at this input, where none is open? */
static bool oracle_begins(const struct oracle *o, const struct window_input *in)
{
	const struct spec_case *s = &o->spec;
	bool step = in->event == WINDOW_STEP, first = !o->scheduled;
	uint64_t cycle = s->c + s->d + s->b, at;

	switch (s->schema) {
	case STEPS:
		return step && first && in->number >= s->a && in->number < s->a + s->b;
	case SCHEDULE:
		if (cycle < s->e + 1)
			cycle = s->e + 1;
		for (at = o->origin + s->a + s->c; at < in->number; at += cycle)
			;
		return step && at == in->number;
	case EVERY_TIME:
		return step && in->number >= s->a &&
		       (!o->windows || in->now_ns >= o->last_ns + 10 * s->e + 1) &&
		       (first || in->number >= o->last_step_begun);
	case EVERY_STEPS:
		return step && (s->d == 0 || o->scheduled < s->d) &&
		       in->number >= (first ? s->a : o->last_step_begun + s->e + 1);
	case TIMES:
		return first && (step || in->event == WINDOW_TIME) && in->now_ns >= 10 * s->a + 1;
	case ALL:
		return first && (step || in->event == WINDOW_TIME);
	case RANGE:
		return in->event == WINDOW_RANGE_BEGIN && !strcmp(in->name, "a");
	case DEMAND:
		return false;
	}
	return false;
}

/* How many steps after its beginning it records; how many after that it ends. */
static bool oracle_is_over(struct oracle *o, const struct window_input *in)
{
	const struct spec_case *s = &o->spec;
	bool step = in->event == WINDOW_STEP, timed;

	timed = s->schema == TIMES || (s->schema == DEMAND && !s->c);
	if (timed && in->now_ns >= o->begin_ns + (s->schema == TIMES ? 10 * s->b : 15))
		return true;
	if (o->by_hand)
		return false;
	if (s->schema == STEPS)
		return step && in->number >= s->a + s->b;
	if (s->schema == SCHEDULE)
		return step && in->number >= o->begin_step + s->d + s->b;
	if (s->schema == EVERY_TIME || s->schema == EVERY_STEPS)
		return step && in->number >= o->begin_step + s->b;
	if (s->schema == RANGE && in->event == WINDOW_RANGE_BEGIN)
		o->ranges += !strcmp(in->name, "a");
	if (s->schema == RANGE && in->event == WINDOW_RANGE_END)
		o->ranges -= !strcmp(in->name, "a");
	return s->schema == RANGE && !o->ranges;
}

static bool oracle_is_bounded(const struct oracle *o)
{
	if (o->spec.schema == TIMES || (o->spec.schema == DEMAND && !o->spec.c))
		return true;
	return !o->by_hand && o->spec.schema != ALL && o->spec.schema != DEMAND;
}

static void oracle_begin(struct oracle *o, const struct window_input *in, bool by_hand)
{
	bool warmup = o->spec.schema == SCHEDULE && o->spec.d && !by_hand;

	o->state = warmup ? WINDOW_WARMUP : WINDOW_RECORD;
	o->by_hand = by_hand;
	o->windows++;
	o->scheduled += !by_hand;
	o->begin_ns = o->last_ns = in->now_ns;
	o->begin_step = in->number;
	o->ranges = 1;
	if (!by_hand)
		o->last_step_begun = in->number;
}

/* One input; a step may end one window and begin the next. */
static void oracle_feed(struct oracle *o, const struct window_input *in)
{
	enum window_event e = in->event;
	bool early = e == WINDOW_STOP || e == WINDOW_EXIT ||
		     ((e == WINDOW_EPOCH_END || e == WINDOW_VALIDATION_BEGIN) && !o->by_hand &&
		      oracle_is_bounded(o));

	if (o->exited)
		return;
	o->exited = e == WINDOW_EXIT;
	if (o->origin == NONE && e == WINDOW_STEP && o->state == WINDOW_IDLE)
		o->origin = in->number;
	if (o->state == WINDOW_IDLE) {
		if (e == WINDOW_START)
			oracle_begin(o, in, true);
		else if (!o->exited && oracle_begins(o, in))
			oracle_begin(o, in, false);
		return;
	}
	if (e == WINDOW_START)
		return;
	if (early) {
		o->cut = oracle_is_bounded(o) && !(o->by_hand && e == WINDOW_STOP);
		o->state = WINDOW_IDLE;
	} else if (oracle_is_over(o, in)) {
		o->cut = false;
		o->state = WINDOW_IDLE;
		if (e == WINDOW_STEP)
			oracle_feed(o, in);
	} else if (o->state == WINDOW_WARMUP && e == WINDOW_STEP &&
		   in->number >= o->begin_step + o->spec.d) {
		o->state = WINDOW_RECORD;
	}
}

static struct window_input draw_input(uint64_t *step, uint64_t *now_ns)
{
	static const enum window_event events[] = {
		WINDOW_STEP,        WINDOW_STEP,        WINDOW_STEP,      WINDOW_STEP,
		WINDOW_STEP,        WINDOW_STEP,        WINDOW_TIME,      WINDOW_TIME,
		WINDOW_RANGE_BEGIN, WINDOW_RANGE_BEGIN, WINDOW_RANGE_END, WINDOW_RANGE_END,
		WINDOW_START,       WINDOW_STOP,        WINDOW_EPOCH_END, WINDOW_VALIDATION_BEGIN,
	};
	struct window_input in = { .event = events[draw(16)], .name = draw(3) ? "a" : "b" };

	*now_ns += draw(12);
	in.now_ns = *now_ns;
	if (in.event != WINDOW_STEP)
		return in;
	*step += 1 + (draw(12) ? 0 : draw(9)); /* now and then the numbers jump */
	in.number = *step;
	if (!draw(300))
		in.event = WINDOW_EXIT;
	return in;
}

static void feed_all(struct window_machine *w, const struct window_input *in)
{
	bool again;

	do {
		window_feed(w, in, &again);
	} while (again);
}

/* As the library does it: most steps are not told, time alone is told when it is due. */
static void feed_what_matters(struct window_machine *w, const struct window_input *in)
{
	struct window_input time = { .event = WINDOW_TIME, .now_ns = in->now_ns };

	unsigned turns;

	/* each must get it on: a thread that waits for it would turn for ever */
	for (turns = 0; window_next_ns(w) <= in->now_ns && CHECK(turns < 3); turns++)
		feed_all(w, &time);
	if (in->event == WINDOW_STEP && in->number < window_next_step(w))
		return;
	feed_all(w, in);
}

static bool agree(const struct window_machine *w, const struct oracle *o)
{
	bool same = w->state == o->state && w->windows == o->windows;

	if (same && w->windows && w->state == WINDOW_IDLE)
		same = w->cut_short == o->cut;
	if (same && w->state != WINDOW_IDLE)
		same = w->by_hand == o->by_hand;
	return same;
}

static bool run_round(unsigned round)
{
	struct oracle o = { .origin = NONE };
	struct window_machine w;
	struct window_spec spec;
	uint64_t step = draw(4) - 1, now_ns = 0;
	unsigned i;

	make_case(&o.spec);
	if (!CHECK(window_parse(&spec, o.spec.text, NULL) == ST_OK))
		return false;
	window_init(&w, &spec, 0);
	for (i = 0; i < INPUTS; i++) {
		struct window_input in = draw_input(&step, &now_ns);

		feed_all(&w, &in);
		oracle_feed(&o, &in);
		if (agree(&w, &o))
			continue;
		printf("  %s, round %u, input %u: event %d step %d at %d: is %d, should be %d\n",
		       o.spec.text, round, i, (int)in.event, (int)in.number, (int)in.now_ns,
		       (int)w.state, (int)o.state);
		return CHECK(false);
	}
	return true;
}

/* Window, cut and state as the oracle has them, whatever the order of calls. */
void test_window_oracle(void)
{
	unsigned round;

	seed = 7;
	for (round = 0; round < ROUNDS; round++)
		if (!run_round(round))
			return;
}

/* What the hot path leaves out changes nothing: next_step and next_ns tell no lies. */
void test_window_hints(void)
{
	struct window_machine all, some;
	struct window_spec spec;
	struct spec_case c;
	unsigned round, i;

	seed = 11;
	for (round = 0; round < ROUNDS; round++) {
		uint64_t step = draw(4) - 1, now_ns = 0;

		make_case(&c);
		window_parse(&spec, c.text, NULL);
		window_init(&all, &spec, 0);
		window_init(&some, &spec, 0);
		for (i = 0; i < INPUTS; i++) {
			struct window_input in = draw_input(&step, &now_ns);
			struct window_input time = { .event = WINDOW_TIME, .now_ns = in.now_ns };

			feed_all(&all, &time); /* one may end, and one begin */
			feed_all(&all, &time);
			feed_all(&all, &in);
			feed_what_matters(&some, &in);
			if (all.state == some.state && all.windows == some.windows &&
			    all.cut_short == some.cut_short)
				continue;
			printf("  %s, round %u, input %u: event %d step %d at %d: all %d %d %d, "
			       "some %d %d %d\n",
			       c.text, round, i, (int)in.event, (int)in.number, (int)in.now_ns,
			       (int)all.state, (int)all.windows, all.cut_short, (int)some.state,
			       (int)some.windows, some.cut_short);
			CHECK(false);
			return;
		}
	}
}

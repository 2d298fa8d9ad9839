/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/window.h"

#include "schemas/unit.h"

#include <stddef.h>
#include <string.h>

#define NEVER UINT64_MAX

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > NEVER - b ? NEVER : a + b;
}

/* ---- the spec ---- */

static enum status parse_range(struct window_spec *s, const char *text, size_t len,
			       struct error *err)
{
	if (!len || len >= sizeof(s->range))
		return fail(err, ST_USAGE, NOWHERE, "a range's name has 1 to %d bytes",
			    WINDOW_RANGE_MAX - 1);
	memcpy(s->range, text, len);
	s->range[len] = '\0';
	return ST_OK;
}

/* "60m", or "500" steps; below 0: once only. */
static enum status parse_every(struct window_spec *s, const char *text, size_t len,
			       struct error *err)
{
	if (len > 1 && text[0] == '-') {
		s->repeat = 1;
		return unit_parse_count(text + 1, len - 1, &(uint64_t){ 0 }, err);
	}
	if (unit_parse_count(text, len, &s->every_steps, NULL) == ST_OK)
		return ST_OK;
	return unit_parse_time(text, len, &s->every_ns, err);
}

enum key_type { KEY_COUNT, KEY_TIME, KEY_INSTANT, KEY_EVERY, KEY_RANGE };
struct key {
	const char *name;
	enum key_type type;
	size_t at;
};
#define KEY(name, type, member) { name, type, offsetof(struct window_spec, member) }
static const struct key keys[] = {
	KEY("first", KEY_COUNT, first_step), KEY("skip_first", KEY_COUNT, first_step),
	KEY("wait", KEY_COUNT, wait),        KEY("warmup", KEY_COUNT, warmup),
	KEY("active", KEY_COUNT, active),    KEY("steps", KEY_COUNT, active),
	KEY("repeat", KEY_COUNT, repeat),    KEY("every", KEY_EVERY, every_ns),
	KEY("delay", KEY_TIME, delay_ns),    KEY("for", KEY_TIME, duration_ns),
	KEY("at", KEY_INSTANT, at_ns),       KEY("nvtx", KEY_RANGE, range),
	KEY("range", KEY_RANGE, range),
};

static enum status key_parse(const struct key *key, struct window_spec *s, const char *text,
			     size_t len, struct error *err)
{
	void *into = (char *)s + key->at;

	switch (key->type) {
	case KEY_COUNT:
		return unit_parse_count(text, len, into, err);
	case KEY_TIME:
		return unit_parse_time(text, len, into, err);
	case KEY_INSTANT:
		return unit_parse_instant(text, len, into, err);
	case KEY_EVERY:
		return parse_every(s, text, len, err);
	case KEY_RANGE:
		return parse_range(s, text, len, err);
	}
	return ST_USAGE;
}

static enum status parse_pair(struct window_spec *s, const char *text, size_t len,
			      struct error *err)
{
	const char *equals = memchr(text, '=', len);
	size_t i, name_len = equals ? (size_t)(equals - text) : len;

	if (len == 6 && !memcmp(text, "signal", 6)) {
		s->on_demand = true;
		return ST_OK;
	}
	for (i = 0; equals && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strlen(keys[i].name) == name_len && !memcmp(keys[i].name, text, name_len))
			return key_parse(&keys[i], s, equals + 1, len - name_len - 1, err);
	return fail(err, ST_USAGE, NOWHERE, "%.*s: unknown; see steps:A-B, schedule:..., every=, "
		    "delay=, at=, nvtx=, signal, all", (int)(name_len < 40 ? name_len : 40), text);
}

static enum status parse_pairs(struct window_spec *s, const char *text, struct error *err)
{
	size_t len;

	for (;; text += len + 1) {
		len = strcspn(text, ",");
		TRY(parse_pair(s, text, len, err));
		if (!text[len])
			return ST_OK;
	}
}

/* "10-20", "10-", "10" */
static enum status parse_steps(struct window_spec *s, const char *text, struct error *err)
{
	size_t len = strcspn(text, "-");
	uint64_t last;

	s->repeat = 1;
	TRY(unit_parse_count(text, len, &s->first_step, err));
	if (!text[len]) {
		s->active = 1;
		return ST_OK;
	}
	text += len + 1;
	if (!*text)
		return ST_OK;
	TRY(unit_parse_count(text, strlen(text), &last, err));
	if (last <= s->first_step)
		return fail(err, ST_USAGE, NOWHERE, "the last step is not after the first");
	s->active = last - s->first_step;
	return ST_OK;
}

static enum status parse_schedule(struct window_spec *s, const char *text, struct error *err)
{
	TRY(parse_pairs(s, text, err));
	s->cyclic = true;
	if (!s->active)
		return fail(err, ST_USAGE, NOWHERE, "a schedule needs active=STEPS");
	if (s->every_steps || s->every_ns || s->duration_ns)
		return fail(err, ST_USAGE, NOWHERE, "a schedule takes first, wait, warmup, active "
			    "and repeat only");
	return ST_OK;
}

static enum status parse_any(struct window_spec *s, const char *text, struct error *err)
{
	static const char steps[] = "steps:", schedule[] = "schedule:";

	if (!strcmp(text, "all"))
		return ST_OK;
	if (!strncmp(text, steps, sizeof(steps) - 1))
		return parse_steps(s, text + sizeof(steps) - 1, err);
	if (!strncmp(text, schedule, sizeof(schedule) - 1))
		return parse_schedule(s, text + sizeof(schedule) - 1, err);
	return parse_pairs(s, text, err);
}

enum status window_parse(struct window_spec *out, const char *text, struct error *err)
{
	struct window_spec spec;
	struct error why;
	enum status status;

	memset(&spec, 0, sizeof(spec));
	status = parse_any(&spec, text, &why);
	if (status != ST_OK)
		return fail(err, status, NOWHERE, "%.60s: %s", text, why.text);
	*out = spec;
	return ST_OK;
}

/* ---- the machine ---- */

static bool is_open_ended(const struct window_spec *s)
{
	return !s->active && !s->duration_ns && !s->range[0];
}

static bool counts_steps(const struct window_spec *s)
{
	return s->first_step || s->active || s->wait || s->warmup || s->every_steps;
}

static bool may_repeat(const struct window_machine *w)
{
	const struct window_spec *s = &w->spec;

	if (s->repeat)
		return w->windows < s->repeat;
	return !w->windows || s->cyclic || s->every_ns || s->every_steps || s->range[0];
}

/* No window of the spec's own will begin any more. */
static bool is_spent(const struct window_machine *w)
{
	return w->exited || w->spec.on_demand || !may_repeat(w);
}

static uint64_t cycle_of(const struct window_spec *s)
{
	return add(add(s->wait, s->warmup), s->active);
}

/* The first step of the cycle that is under way at `step` or comes next, after its wait. */
static uint64_t cycle_begin(const struct window_machine *w, uint64_t step)
{
	const struct window_spec *s = &w->spec;
	uint64_t from = add(w->origin, s->first_step), cycle = cycle_of(s), begin;

	if (step < from)
		return add(from, s->wait);
	begin = add(from, (step - from) / cycle * cycle);
	begin = add(begin, s->wait);
	/* a cycle that was joined late, but for its first step, is let pass */
	return step <= begin ? begin : add(begin, cycle);
}

static void plan(struct window_machine *w, uint64_t step)
{
	const struct window_spec *s = &w->spec;

	w->next_step = NEVER;
	if (is_spent(w) || !counts_steps(s))
		return;
	if (s->cyclic)
		w->next_step = w->origin_known ? cycle_begin(w, step) : 0;
	else if (!w->windows)
		w->next_step = s->first_step;
	else
		w->next_step = add(w->begin_step, s->every_steps);
}

void window_init(struct window_machine *w, const struct window_spec *spec, uint64_t now_ns)
{
	memset(w, 0, sizeof(*w));
	w->spec = *spec;
	w->now_ns = now_ns;
	w->next_ns = spec->at_ns ? spec->at_ns : add(now_ns, spec->delay_ns);
	w->record_step = w->end_step = w->end_ns = NEVER;
	plan(w, 0);
}

static void record(struct window_machine *w, const struct window_input *in)
{
	const struct window_spec *s = &w->spec;

	w->state = WINDOW_RECORD;
	w->begin_ns = in->now_ns;
	w->end_ns = s->duration_ns ? add(in->now_ns, s->duration_ns) : NEVER;
}

static void begin(struct window_machine *w, const struct window_input *in, bool by_hand)
{
	const struct window_spec *s = &w->spec;

	w->windows++;
	w->by_hand = by_hand;
	w->cut_short = false;
	w->state = WINDOW_WARMUP;
	w->begin_ns = in->now_ns;
	w->begin_step = in->event == WINDOW_STEP ? in->number : 0;
	w->record_step = w->end_step = w->end_ns = NEVER;
	if (by_hand || in->event != WINDOW_STEP) {
		record(w, in);
		return;
	}
	w->record_step = add(in->number, s->warmup);
	if (s->active)
		w->end_step = add(w->record_step, s->active);
	/* "steps:10-20" that is joined at 12 still ends at 20 */
	if (s->repeat == 1 && !s->cyclic && s->active && !s->every_ns && !s->every_steps)
		w->end_step = add(add(s->first_step, s->warmup), s->active);
	if (!s->warmup)
		record(w, in);
}

static void end(struct window_machine *w, const struct window_input *in, bool cut_short)
{
	const struct window_spec *s = &w->spec;

	w->state = WINDOW_IDLE;
	w->cut_short = cut_short;
	w->next_ns = s->every_ns ? add(w->begin_ns, s->every_ns) : 0;
	plan(w, in->event == WINDOW_STEP ? in->number : w->begin_step + 1);
}

/* "steps:10-20" and the first step seen is 1000. */
static bool is_past(const struct window_machine *w, uint64_t number)
{
	const struct window_spec *s = &w->spec;

	return s->repeat == 1 && !s->cyclic && s->active && !s->every_ns && !s->every_steps &&
	       !w->windows && number >= add(s->first_step, s->active);
}

static void idle_step(struct window_machine *w, const struct window_input *in)
{
	if (w->spec.cyclic && !w->origin_known) {
		w->origin_known = true;
		w->origin = in->number;
		plan(w, in->number);
	}
	if (is_past(w, in->number)) {
		w->next_step = NEVER;
		return;
	}
	if (w->spec.cyclic && in->number > w->next_step)
		plan(w, in->number);
	if (w->next_step != NEVER && in->number >= w->next_step && in->now_ns >= w->next_ns)
		begin(w, in, false);
}

static bool begins_by_time(const struct window_machine *w)
{
	return !is_spent(w) && !counts_steps(&w->spec) && !w->spec.range[0];
}

static void feed_idle(struct window_machine *w, const struct window_input *in)
{
	const char *range = w->spec.range;

	if (in->event == WINDOW_START)
		begin(w, in, true);
	else if (in->event == WINDOW_STOP)
		w->ignored++;
	else if (in->event == WINDOW_STEP && counts_steps(&w->spec) && !is_spent(w))
		idle_step(w, in);
	else if (in->event == WINDOW_RANGE_BEGIN && range[0] && !strcmp(range, in->name) &&
		 !is_spent(w) && in->now_ns >= w->next_ns)
		begin(w, in, false);
	else if ((in->event == WINDOW_TIME || in->event == WINDOW_STEP) && begins_by_time(w) &&
		 in->now_ns >= w->next_ns)
		begin(w, in, false);
}

static bool ends_early(const struct window_machine *w, enum window_event event)
{
	if (event == WINDOW_STOP || event == WINDOW_EXIT)
		return true;
	if (event == WINDOW_EPOCH_END || event == WINDOW_VALIDATION_BEGIN)
		return !is_open_ended(&w->spec);
	return false;
}

/* What was begun by hand for good is not cut short by its stop, nor is "all" by the exit. */
static bool is_cut(const struct window_machine *w, const struct window_input *in)
{
	return !is_open_ended(&w->spec) && !(w->by_hand && in->event == WINDOW_STOP);
}

static void feed_running(struct window_machine *w, const struct window_input *in)
{
	if (in->now_ns < w->begin_ns && w->end_ns != NEVER) {
		w->begin_ns = in->now_ns;
		w->end_ns = add(in->now_ns, w->spec.duration_ns);
	}
	if (in->event == WINDOW_START)
		w->ignored++;
	else if (ends_early(w, in->event))
		end(w, in, is_cut(w, in));
	else if (in->event == WINDOW_RANGE_END && w->spec.range[0] && !w->by_hand &&
		 !strcmp(w->spec.range, in->name))
		end(w, in, false);
	else if (in->event == WINDOW_STEP && in->number >= w->end_step)
		end(w, in, false);
	else if (in->now_ns >= w->end_ns)
		end(w, in, false);
	else if (in->event == WINDOW_STEP && w->state == WINDOW_WARMUP &&
		 in->number >= w->record_step)
		record(w, in);
}

enum window_state window_feed(struct window_machine *w, const struct window_input *in, bool *again)
{
	enum window_state before = w->state;

	if (w->exited) {
		w->ignored += in->event == WINDOW_START || in->event == WINDOW_STOP;
		*again = false;
		return w->state;
	}
	if (in->now_ns < w->now_ns && w->state == WINDOW_IDLE && !w->spec.at_ns &&
	    w->next_ns > w->now_ns) /* the clock stepped back: what was left is left */
		w->next_ns -= w->now_ns - in->now_ns;
	w->now_ns = in->now_ns;
	w->exited = in->event == WINDOW_EXIT;
	if (w->state == WINDOW_IDLE)
		feed_idle(w, in);
	else
		feed_running(w, in);
	/* only a step may begin the next window at the instant that ends the last one */
	*again = before != WINDOW_IDLE && w->state == WINDOW_IDLE && in->event == WINDOW_STEP;
	return w->state;
}

uint64_t window_next_step(const struct window_machine *w)
{
	if (w->exited)
		return NEVER;
	if (w->state == WINDOW_WARMUP)
		return w->record_step < w->end_step ? w->record_step : w->end_step;
	if (w->state == WINDOW_RECORD)
		return w->end_step;
	return w->now_ns >= w->next_ns ? w->next_step : NEVER;
}

uint64_t window_next_ns(const struct window_machine *w)
{
	if (w->exited)
		return NEVER;
	if (w->state != WINDOW_IDLE)
		return w->end_ns;
	if (begins_by_time(w))
		return w->next_ns;
	return w->next_step != NEVER && w->now_ns < w->next_ns ? w->next_ns : NEVER;
}

bool window_is_done(const struct window_machine *w)
{
	if (w->state != WINDOW_IDLE)
		return false;
	if (w->exited || is_spent(w))
		return true;
	return counts_steps(&w->spec) && w->next_step == NEVER;
}

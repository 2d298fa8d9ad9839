/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/schedule/window.h"
#include "collector/schedule/trigger.h"

#include "schemas/base/quantity.h"

#include <stddef.h>
#include <string.h>

static enum status parse_range(struct window_spec *s, const char *text, size_t len,
			       struct error *err)
{
	if (!len || len >= sizeof(s->range))
		return fail(err, ST_USAGE, NOWHERE, "the name of a range must have 1 to %d bytes",
			    WINDOW_RANGE_MAX - 1);
	memcpy(s->range, text, len);
	s->range[len] = '\0';
	return ST_OK;
}

/* Parses "60m", or "500" steps; a value below 0 means one window, and "0m" the next one as soon as
 * possible. */
static enum status parse_every(struct window_spec *s, const char *text, size_t len,
			       struct error *err)
{
	bool once = len > 1 && text[0] == '-';
	uint64_t steps = 0, ns = 0;

	text += once;
	len -= once;
	if (unit_parse_count(text, len, &steps, NULL) != ST_OK)
		TRY(unit_parse_time(text, len, &ns, err));
	if (once)
		s->repeat = 1;
	else if (steps)
		s->every_steps = steps;
	else
		s->every_ns = ns ? ns : 1;
	return ST_OK;
}

enum key_type { KEY_COUNT, KEY_TIME, KEY_INSTANT, KEY_EVERY, KEY_RANGE };
struct key {
	const char *name;
	enum key_type type;
	size_t at;
};
#define KEY(name, type, member)                                                                    \
	{                                                                                          \
		name, type, offsetof(struct window_spec, member)                                   \
	}
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
	if (equals && name_len == 6 && !memcmp(text, "signal", 6)) {
		s->on_demand = true;
		return signal_parse(equals + 1, len - 7, &s->signal, err);
	}
	for (i = 0; equals && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strlen(keys[i].name) == name_len && !memcmp(keys[i].name, text, name_len))
			return key_parse(&keys[i], s, equals + 1, len - name_len - 1, err);
	return fail(err, ST_USAGE, NOWHERE,
		    "%.*s: unknown; use steps:A-B, schedule:..., every=, "
		    "delay=, at=, nvtx=, signal, all",
		    (int)(name_len < 40 ? name_len : 40), text);
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

/* Parses "10-20", "10-" or "10". */
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
		return fail(err, ST_USAGE, NOWHERE, "the last step must be after the first");
	s->active = last - s->first_step;
	return ST_OK;
}

static enum status parse_schedule(struct window_spec *s, const char *text, struct error *err)
{
	TRY(parse_pairs(s, text, err));
	s->cyclic = true;
	if (!s->active)
		return fail(err, ST_USAGE, NOWHERE, "a schedule needs active=STEPS");
	if (s->every_ns || s->duration_ns || s->delay_ns || s->at_ns || s->range[0] || s->on_demand)
		return fail(err, ST_USAGE, NOWHERE,
			    "a schedule accepts only first, wait, warmup, active, repeat and "
			    "every=STEPS");
	return ST_OK;
}

/* Rejects combinations that make no sense; reports the first rule that is broken. */
static enum status check_pairs(const struct window_spec *s, struct error *err)
{
	bool steps = s->first_step || s->active || s->warmup || s->every_steps;
	bool length = s->active || s->duration_ns || s->range[0];
	const struct {
		bool wrong;
		const char *text;
	} rules[] = {
		{ s->wait, "wait= belongs to schedule:" },
		{ s->delay_ns && s->at_ns, "delay= and at= do not go together" },
		{ s->on_demand && (steps || s->range[0] || s->delay_ns || s->at_ns || s->every_ns ||
				   s->repeat),
		  "signal takes for= only" },
		{ s->range[0] && (steps || s->duration_ns || s->at_ns),
		  "nvtx= takes delay=, every=TIME and repeat= only" },
		{ (s->every_ns || s->every_steps) && !length, "every= needs steps= or for=" },
		{ s->repeat > 1 && !s->every_ns && !s->every_steps && !s->range[0],
		  "repeat= needs every=" },
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].wrong)
			return fail(err, ST_USAGE, NOWHERE, "%s", rules[i].text);
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
	TRY(parse_pairs(s, text, err));
	return check_pairs(s, err);
}

enum status window_parse(struct window_spec *out, const char *text, struct error *err)
{
	struct window_spec spec;
	struct error why;

	memset(&spec, 0, sizeof(spec));
	enum status status = parse_any(&spec, text, &why);
	if (status != ST_OK)
		return fail(err, status, NOWHERE, "%.60s: %s", text, why.text);
	*out = spec;
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/schedule/trigger.h"
#include "schemas/base/quantity.h"
#include "schemas/base/vec.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT64_MAX

static const struct trigger_spec defaults = { .least_ns = 5000000,
					      .cool_ns = 60000000000,
					      .keep = 3 };

const char *trigger_word(enum trigger_kind kind)
{
	static const char *const words[] = {
#define X(name, word) word,
		TRIGGER_LIST(X)
#undef X
	};

	return words[kind];
}

/* ---- parser of "slow=1.5,hang=300s" ---- */

static enum status parse_factor(const char *text, size_t len, double *out, struct error *err)
{
	char number[32], *end;

	if (!len || len >= sizeof(number) || strspn(text, "0123456789.") < len)
		return fail(err, ST_USAGE, NOWHERE, "slow= needs a number above 1, such as 1.5");
	memcpy(number, text, len);
	number[len] = '\0';
	*out = strtod(number, &end);
	if (*end || *out <= 1 || *out > 1e6)
		return fail(err, ST_USAGE, NOWHERE, "slow= needs a number above 1, such as 1.5");
	return ST_OK;
}

static bool begins(const char *text, size_t len, const char *key, size_t *key_len)
{
	*key_len = strlen(key);
	return len >= *key_len && memcmp(text, key, *key_len) == 0;
}

static enum status parse_word(struct trigger_spec *out, const char *text, size_t len,
			      struct error *err)
{
	static const struct {
		const char *key;
		size_t at;
	} times[] = {
		{ "hang=", offsetof(struct trigger_spec, hang_ns) },
		{ "min=", offsetof(struct trigger_spec, least_ns) },
		{ "cool=", offsetof(struct trigger_spec, cool_ns) },
	};
	size_t key;

	if (begins(text, len, "slow=", &key))
		return parse_factor(text + key, len - key, &out->slow, err);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (begins(text, len, times[i].key, &key))
			return unit_parse_time(text + key, len - key,
					       (uint64_t *)(void *)((char *)out + times[i].at),
					       err);
	if (begins(text, len, "keep=", &key)) {
		TRY(unit_parse_count(text + key, len - key, &out->keep, err));
		if (out->keep >= 1 && out->keep <= TRIGGER_KEEP_MAX)
			return ST_OK;
		return fail(err, ST_USAGE, NOWHERE, "keep= must be from 1 to %d", TRIGGER_KEEP_MAX);
	}
	if (begins(text, len, "stacks=", &key))
		return signal_parse(text + key, len - key, &out->stacks_signal, err);
	if (begins(text, len, "signal=", &key)) {
		out->signal = true;
		return signal_parse(text + key, len - key, &out->signal_number, err);
	}
	if (len == 6 && !memcmp(text, "signal", 6))
		out->signal = true;
	else if (len == 5 && !memcmp(text, "death", 5))
		out->death = true;
	else
		return fail(err, ST_USAGE, NOWHERE,
			    "%.*s: must be slow=1.5, hang=300s, signal, death, min=5ms, cool=60s, "
			    "keep=3, stacks=USR2 or none",
			    (int)(len < 40 ? len : 40), text);
	return ST_OK;
}

enum status trigger_parse(struct trigger_spec *out, const char *text, struct error *err)
{
	size_t len;

	*out = defaults;
	if (!strcmp(text, "none"))
		return ST_OK;
	for (;; text += len + 1) {
		len = strcspn(text, ",");
		TRY(parse_word(out, text, len, err));
		if (!text[len])
			return ST_OK;
	}
}

/* ---- decisions ---- */

void trigger_init(struct trigger *t, const struct trigger_spec *spec)
{
	memset(t, 0, sizeof(*t));
	t->spec = *spec;
	t->threshold_ns = NEVER;
}

void trigger_learn(struct trigger *t, uint64_t took_ns)
{
	if (t->steps++ >= TRIGGER_SETTLING)
		t->took_ns[(t->steps - 1 - TRIGGER_SETTLING) % TRIGGER_STEPS] = took_ns;
}

void trigger_settle(struct trigger *t)
{
	uint64_t sorted[TRIGGER_STEPS];

	if (!t->spec.slow || t->steps < TRIGGER_SETTLING + TRIGGER_LEAST)
		return;
	uint64_t count = t->steps - TRIGGER_SETTLING;
	count = count < TRIGGER_STEPS ? count : TRIGGER_STEPS;
	memcpy(sorted, t->took_ns, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare_u64);
	double limit = t->spec.slow * (double)sorted[count / 2];
	t->threshold_ns = limit < 1e18 ? (uint64_t)limit : NEVER;
	if (t->threshold_ns < t->spec.least_ns)
		t->threshold_ns = t->spec.least_ns;
}

/* Finds the place of a step that is to be saved among those that are kept; returns false if those
 * are all longer. */
static bool find_place(const struct trigger *t, uint64_t took_ns, unsigned *place)
{
	unsigned shortest = 0;

	*place = t->kept;
	if (t->kept < t->spec.keep)
		return true;
	for (unsigned i = 1; i < t->kept; i++)
		if (t->kept_ns[i] < t->kept_ns[shortest])
			shortest = i;
	*place = shortest;
	return t->kept && took_ns > t->kept_ns[shortest];
}

bool trigger_slow(struct trigger *t, uint64_t step, uint64_t took_ns, uint64_t now_ns,
		  struct trigger_fired *out)
{
	bool worse = took_ns / TRIGGER_WORSE >= t->last_ns;

	*out = (struct trigger_fired){ .kind = TRIGGER_NONE };
	if (took_ns < t->threshold_ns)
		return false;
	*out = (struct trigger_fired){ .kind = TRIGGER_SLOW,
				       .at_ns = now_ns,
				       .step = step,
				       .value_ns = took_ns,
				       .threshold_ns = t->threshold_ns };
	if (t->cooling && now_ns < t->cool_until_ns && !worse)
		return false;
	if (!find_place(t, took_ns, &out->place))
		return false;
	t->kept += out->place == t->kept;
	t->kept_ns[out->place] = took_ns;
	t->last_ns = took_ns;
	t->cooling = true;
	t->cool_until_ns = now_ns + t->spec.cool_ns;
	return true;
}

bool trigger_hang(struct trigger *t, uint64_t step, uint64_t since_ns, uint64_t now_ns,
		  struct trigger_fired *out)
{
	uint64_t took_ns = now_ns > since_ns ? now_ns - since_ns : 0;

	if (!t->spec.hang_ns || took_ns < t->spec.hang_ns)
		return false;
	if (t->hung && (t->hung_step == step || now_ns < t->hang_until_ns))
		return false;
	t->hung = true;
	t->hung_step = step;
	t->hang_until_ns = now_ns + t->spec.cool_ns;
	*out = (struct trigger_fired){ .kind = TRIGGER_HANG,
				       .at_ns = now_ns,
				       .step = step,
				       .value_ns = took_ns,
				       .threshold_ns = t->spec.hang_ns };
	return true;
}

static const struct {
	const char *name;
	int number;
} names[] = {
	{ "USR1", SIGUSR1 },   { "USR2", SIGUSR2 }, { "HUP", SIGHUP }, { "URG", SIGURG },
	{ "WINCH", SIGWINCH }, { "IO", SIGIO },     { "PWR", SIGPWR },
};

enum status signal_parse(const char *text, size_t len, int *out, struct error *err)
{
	const char *name = text;
	size_t name_len = len;
	uint64_t number;

	if (len > 3 && !memcmp(text, "SIG", 3)) {
		name += 3;
		name_len -= 3;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == name_len && !memcmp(names[i].name, name, name_len)) {
			*out = names[i].number;
			return ST_OK;
		}
	if (unit_parse_count(text, len, &number, NULL) == ST_OK) {
		*out = number <= 64 ? (int)number : 0;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (names[i].number == *out)
				return ST_OK;
		if (*out >= SIGRTMIN && *out <= SIGRTMAX)
			return ST_OK;
	}
	return fail(err, ST_USAGE, NOWHERE,
		    "signal=%.*s: must be USR1, USR2, HUP, URG, WINCH, IO, PWR or the number of a "
		    "real-time signal",
		    (int)(len < 40 ? len : 40), text);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of options: the first byte says whose, the rest is the value.  Taken or refused; what was
 * taken keeps its promises.
 */
#include "collector/config/config.h"
#include "convert/stage/filter/filter.h"
#include "schemas/base/buf.h"
#include "schemas/base/quantity.h"
#include "tests/fuzz/target.h"

static void try_window(const char *text)
{
	static const struct window_input inputs[] = {
		{ .event = WINDOW_STEP, .now_ns = 1000 },
		{ .event = WINDOW_TIME, .now_ns = 2000 },
		{ .event = WINDOW_RANGE_BEGIN, .now_ns = 2500, .name = "epoch_3" },
		{ .event = WINDOW_START, .now_ns = 3000 },
		{ .event = WINDOW_STEP, .now_ns = 60000000000, .number = 17 },
		{ .event = WINDOW_STOP, .now_ns = 70000000000 },
		{ .event = WINDOW_STEP, .now_ns = UINT64_MAX - 1, .number = UINT64_MAX - 1 },
		{ .event = WINDOW_EXIT, .now_ns = UINT64_MAX },
	};
	struct window_spec spec;
	struct window_machine w;
	size_t i;
	unsigned turns;
	bool again;

	if (window_parse(&spec, text, NULL) != ST_OK)
		return;
	window_init(&w, &spec, 500);
	for (i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
		for (turns = 0, again = true; again; turns++) {
			if (turns > 2)
				abort();
			window_feed(&w, &inputs[i], &again);
			window_next_step(&w);
			window_next_ns(&w);
		}
	if (w.state != WINDOW_IDLE)
		abort();
}

static void try_filter(const char *text, size_t at)
{
	struct filter filter = { 0 };
	const char **const fields[] = { &filter.steps,   &filter.from,  &filter.to,   &filter.ranks,
					&filter.devices, &filter.kinds, &filter.names };

	*fields[at] = text;
	if (filter_parse(&filter, NULL) != ST_OK)
		return;
	if ((filter.has_steps && filter.end_step < filter.first_step) ||
	    filter.rank_list.count > 64 || filter.device_list.count > 64)
		abort();
	filter_wants_rank(&filter, 5);
	filter_is_empty(&filter);
}

static void try_trigger(const char *text)
{
	struct trigger_spec spec;
	struct trigger t;
	struct trigger_fired fired;
	uint64_t i;

	if (trigger_parse(&spec, text, NULL) != ST_OK)
		return;
	trigger_init(&t, &spec);
	for (i = 0; i < 40; i++)
		trigger_learn(&t, i << i);
	trigger_settle(&t);
	trigger_slow(&t, 41, UINT64_MAX, UINT64_MAX, &fired);
	trigger_hang(&t, 42, 1, UINT64_MAX, &fired);
}

static void try_command(const char *text, size_t len)
{
	struct buf out;

	buf_init(&out, 1 << 16);
	command_mask(text, len, &out);
	buf_release(&out);
	command_names_worker(text, len);
}

/* "NAME=VALUE" lines, a NUL between two. */
static void try_environment(const char *text, size_t len)
{
	char *variables[34];
	struct config c;
	size_t count = 0, at;

	for (at = 0; at < len && count < 33; at += strlen(text + at) + 1)
		variables[count++] = (char *)(uintptr_t)text + at;
	variables[count] = NULL;
	config_read(&c, variables, NULL);
	config_release(&c);
	rank_find(variables);
}

/* The same as words of a command line. */
static void try_arguments(const char *text, size_t len)
{
	char *words[34] = { (char *)(uintptr_t) "tool" };
	struct config c = { 0 };
	struct filter filter = { 0 };
	const struct option_set sets[] = { { config_options, &c },
					   { preset_options, &c.preset },
					   { filter_options, &filter },
					   { NULL, NULL } };
	int count = 1, operands = 0;
	size_t at;

	for (at = 0; at < len && count < 33; at += strlen(text + at) + 1)
		words[count++] = (char *)(uintptr_t)text + at;
	option_defaults(sets, NULL);
	if (option_arguments(sets, count, words, &operands, NULL) == ST_OK &&
	    (operands < 0 || operands >= count || words[operands + 1]))
		abort();
}

static void try_units(const char *text)
{
	char out[UNIT_TEXT];
	uint64_t value, again;
	double share;

	if (unit_parse_size(text, strlen(text), &value, NULL) == ST_OK) {
		unit_format_size(value, out);
		if (unit_parse_size(out, strlen(out), &again, NULL) != ST_OK || value != again)
			abort();
	}
	if (unit_parse_time(text, strlen(text), &value, NULL) == ST_OK) {
		unit_format_time(value, out);
		if (unit_parse_time(out, strlen(out), &again, NULL) != ST_OK || value != again)
			abort();
	}
	if (unit_parse_instant(text, strlen(text), &value, NULL) == ST_OK) {
		unit_format_instant(value, out);
		if (unit_parse_instant(out, strlen(out), &again, NULL) != ST_OK || value != again)
			abort();
	}
	if (unit_parse_share(text, strlen(text), &share, NULL) == ST_OK &&
	    !(share >= 0 && share <= 1))
		abort();
}

static void try_lists(const char *text)
{
	struct config c = { 0 };
	uint64_t ns, steps;
	uint32_t mask;
	bool wanted;

	config_parse_sample(text, &ns, &steps, NULL);
	config_parse_kinds(text, &mask, NULL);
	config_parse_devices(&c, text);
	if (c.device_count > CONFIG_DEVICES)
		abort();
	rank_is_wanted(text, 3, &wanted, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned what = size ? data[0] % 16 : 0;
	char *text;

	if (!size || size > 4096)
		return 0;
	text = fuzz_all(data + 1, size - 1);
	if (what < 7)
		try_filter(text, what);
	else if (what < 10)
		try_window(text);
	else if (what == 10)
		try_trigger(text);
	else if (what == 11)
		try_command(text, size - 1);
	else if (what == 12)
		try_environment(text, size - 1);
	else if (what == 13)
		try_arguments(text, size - 1);
	else if (what == 14)
		try_units(text);
	else
		try_lists(text);
	free(text);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config/preset.h"

#include "schemas/base/buf.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 4096 };

struct preset_type {
	const char *name, *window, *out;
};
static const struct preset_type presets[] = {
#define X(name, window, out) { name, window, out },
	PRESETS(X)
#undef X
};

struct preset_row {
	const char *name, *preset, *fallback, *option, *yes, *no, *what;
};
static const struct preset_row rows[] = {
#define X(id, name, preset, fallback, option, yes, no, what)                                       \
	{ name, preset, fallback, option, yes, no, what },
	PRESET_KEYS(X)
#undef X
};

#define VALUE_AT(id) offsetof(struct preset, values[PRESET_##id])
const struct option preset_options[] = {
	{ "preset", 0, OPTION_TEXT, "NAME",
	  "a predefined window: steps, memory, periodic, schedule, or cyclic",
	  offsetof(struct preset, name), NULL },
#define X(id, name, preset, fallback, option, yes, no, what)                                       \
	{ name, 0, OPTION_TEXT, "VALUE", NULL, VALUE_AT(id), NULL },                               \
		{ "profiling." name, 0, OPTION_TEXT, "VALUE", NULL, VALUE_AT(id), NULL },
	PRESET_KEYS(X)
#undef X
		{ 0 }
};

static const struct preset_type *find_preset(const char *name)
{
	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++)
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
	return NULL;
}

/* Returns whether a key is a part of its preset's window: it has no option of its own. */
static bool is_part(const struct preset_row *row)
{
	return row->preset && !row->option;
}

static const char *value_of(const struct preset *p, const char *key, size_t len)
{
	for (size_t i = 0; i < PRESET_KEY_COUNT; i++)
		if (strlen(rows[i].name) == len && !memcmp(rows[i].name, key, len))
			return p->values[i] ? p->values[i] : rows[i].fallback;
	return NULL;
}

/*
 * Finds the preset that was named, or the one whose keys were given; *out is NULL when there is
 * none.
 */
static enum status choose(const struct preset *p, const struct preset_type **out, struct error *err)
{
	const char *name = p->name && *p->name ? p->name : NULL, *by = NULL;

	*out = NULL;
	if (name && !find_preset(name))
		return fail(err, ST_USAGE, NOWHERE,
			    "--preset: %.40s: must be steps, memory, periodic, schedule or cyclic",
			    name);
	for (size_t i = 0; i < PRESET_KEY_COUNT; i++) {
		if (!p->values[i] || !is_part(&rows[i]))
			continue;
		/* The preset "memory" has no window, so it can be combined with any other. */
		if (name && strcmp(name, rows[i].preset) != 0 && find_preset(name)->window)
			return fail(err, ST_USAGE, NOWHERE, "%s is a key of preset %s, %s of %s",
				    rows[i].name, rows[i].preset, by ? by : "--preset", name);
		name = rows[i].preset;
		by = rows[i].name;
	}
	*out = name ? find_preset(name) : NULL;
	return ST_OK;
}

bool preset_asks_window(const struct preset *p)
{
	for (size_t i = 0; i < PRESET_KEY_COUNT; i++)
		if (p->values[i] && rows[i].preset && !rows[i].option)
			return true;
	return (p->name && *p->name) || p->values[PRESET_EVERY_N_STEPS];
}

static void fill_in(const struct preset *p, const char *form, const char *value, struct buf *out)
{
	size_t len;

	for (; *form; form += len) {
		len = strcspn(form, "{");
		buf_put(out, form, len);
		if (!form[len])
			return;
		form += len + 1;
		len = strcspn(form, "}");
		buf_put_text(out, len ? value_of(p, form, len) : value);
		len++;
	}
}

static enum status make_text(const struct preset *p, const char *option, const char *form,
			     const char *value, bool by_default, preset_make_fn make, void *arg,
			     struct error *err)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	fill_in(p, form, value, &text);
	enum status status = buf_status(&text, err);
	if (status == ST_OK)
		status = make(option, buf_text(&text), by_default, arg, err);
	buf_release(&text);
	return status;
}

static enum status make_row(const struct preset *p, const struct preset_row *row, const char *value,
			    bool by_default, preset_make_fn make, void *arg, struct error *err)
{
	const char *form = row->yes;
	bool yes = true;

	if (!form || !strchr(form, '{')) {
		const struct option flag[] = { { row->name, 0, OPTION_FLAG, NULL, NULL, 0, NULL },
					       { 0 } };
		const struct option_set sets[] = { { flag, &yes }, { NULL, NULL } };

		TRY(option_set_text(sets, row->name, value, err));
		form = yes ? row->yes : row->no;
	}
	if (!form)
		return ST_OK;
	return make_text(p, row->option, form, value, by_default, make, arg, err);
}

enum status preset_make(const struct preset *p, preset_make_fn make, void *arg, struct error *err)
{
	const struct preset_type *preset;

	TRY(choose(p, &preset, err));
	if (preset && preset->window)
		TRY(make_text(p, "window", preset->window, "", false, make, arg, err));
	if (preset && preset->out)
		TRY(make("out", preset->out, true, arg, err));
	for (size_t i = 0; i < PRESET_KEY_COUNT; i++) {
		const char *value = p->values[i];
		if (!value && preset && rows[i].preset && !strcmp(rows[i].preset, preset->name))
			value = rows[i].fallback;
		if (value && rows[i].option)
			TRY(make_row(p, &rows[i], value, !p->values[i], make, arg, err));
	}
	return ST_OK;
}

const char *preset_explain(unsigned key, char *text, size_t cap)
{
	const struct preset_row *row = &rows[key];

	if (row->preset)
		snprintf(text, cap, "%s; preset %s has %s", row->what, row->preset, row->fallback);
	else
		snprintf(text, cap, "%s", row->what);
	return row->name;
}

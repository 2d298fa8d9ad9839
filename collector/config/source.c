/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config/config.h"

#include <stdlib.h>
#include <string.h>

/* Options that a preset can set, in the order of config.made. */
static const struct {
	const char *name;
	size_t at;
} made[CONFIG_MADE] = {
	{ "window", offsetof(struct config, window) },
	{ "sample", offsetof(struct config, sample) },
	{ "ranks", offsetof(struct config, ranks) },
	{ "kinds", offsetof(struct config, kinds) },
	{ "out", offsetof(struct config, out) },
};

static const char **text_of(struct config *c, size_t i)
{
	return (const char **)(void *)((char *)c + made[i].at);
}

void config_source_begin(struct config *c, struct config_source *before)
{
	before->preset = c->preset;
	for (size_t i = 0; i < CONFIG_MADE; i++) {
		before->texts[i] = *text_of(c, i);
		*text_of(c, i) = NULL;
	}
}

struct making {
	struct config *c;
	bool is_set[CONFIG_MADE]; /* this source gave the option itself */
};

static bool is_fallback(const struct config *c, size_t i)
{
	const struct option_set sets[] = { { config_options, NULL }, { NULL, NULL } };
	const struct option *row = option_find(sets, made[i].name, NULL);

	return row && strcmp(*text_of((struct config *)(uintptr_t)c, i), row->fallback) == 0;
}

static enum status make(const char *option, const char *text, bool by_default, void *arg,
			struct error *err)
{
	struct making *m = arg;
	const struct option_set sets[] = { { config_options, m->c }, { NULL, NULL } };
	size_t i;

	for (i = 0; i < CONFIG_MADE && strcmp(made[i].name, option) != 0; i++)
		;
	if (i == CONFIG_MADE) /* a flag, which needs no copy of the text */
		return option_set_text(sets, option, text, err);
	if (m->is_set[i]) {
		m->c->beaten_preset |= !by_default && !strcmp(option, "window");
		return ST_OK;
	}
	/* Defaults of a preset have the lowest precedence. */
	if (by_default && !is_fallback(m->c, i))
		return ST_OK;
	char *copy = strdup(text);
	if (!copy)
		return fail_memory(err);
	*text_of(m->c, i) = copy;
	free(m->c->made[i]);
	m->c->made[i] = copy;
	return ST_OK;
}

enum status config_source_end(struct config *c, const struct config_source *before,
			      struct error *err)
{
	struct making m = { .c = c };

	for (size_t i = 0; i < CONFIG_MADE; i++) {
		m.is_set[i] = *text_of(c, i) != NULL;
		if (!m.is_set[i])
			*text_of(c, i) = before->texts[i];
	}
	if (memcmp(&before->preset, &c->preset, sizeof(c->preset)) == 0)
		return ST_OK;
	return preset_make(&c->preset, make, &m, err);
}

void config_source_release(struct config *c)
{
	for (size_t i = 0; i < CONFIG_MADE; i++) {
		free(c->made[i]);
		c->made[i] = NULL;
	}
	memset(&c->preset, 0, sizeof(c->preset));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record/internal.h"
#include "collector/arena/arena.h"
#include "collector/config/config.h"
#include "collector/session/clock.h"
#include "schemas/base/arena.h"
#include "schemas/base/buf.h"
#include "schemas/base/quantity.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, TEXT_MAX = 65536, KEY_MAX = 2 * OPTION_NAME };

struct file {
	const char *text;
	size_t len;
	const struct option_set *sets;
};

/* Texts that options borrow until the process ends. */
static struct arena texts;

/* ---- offsets of keys, which cJSON does not report ---- */

/* Returns the end of the string that begins at `at`. */
static size_t skip_string(const struct file *f, size_t at)
{
	for (at++; at < f->len && f->text[at] != '"'; at++)
		at += f->text[at] == '\\';
	return at;
}

static bool is_key(const struct file *f, size_t end)
{
	for (end++; end < f->len && isspace((unsigned char)f->text[end]); end++)
		;
	return end < f->len && f->text[end] == ':';
}

/* Returns the offset of key number `outer` of the object, or of key number `inner` in that key's
 * object (-1: none). */
static uint64_t find_byte(const struct file *f, int outer, int inner)
{
	int depth = 0, count[2] = { -1, -1 };

	for (size_t at = 0; at < f->len; at++) {
		depth += f->text[at] == '{' || f->text[at] == '[';
		depth -= f->text[at] == '}' || f->text[at] == ']';
		if (f->text[at] != '"')
			continue;
		size_t end = skip_string(f, at);

		if (depth >= 1 && depth <= 2 && is_key(f, end)) {
			count[depth - 1]++;
			if (depth == 1)
				count[1] = -1;
			if (count[0] == outer && count[1] == inner)
				return at;
		}
		at = end;
	}
	return 0;
}

/* ---- reading ---- */

static enum status value_of(const cJSON *item, struct buf *out, struct error *err)
{
	const cJSON *part;

	if (cJSON_IsString(item))
		buf_put_text(out, item->valuestring);
	else if (cJSON_IsBool(item))
		buf_put_text(out, cJSON_IsTrue(item) ? "yes" : "no");
	else if (cJSON_IsNumber(item))
		buf_putf(out, "%.15g", item->valuedouble);
	else if (cJSON_IsArray(item))
		cJSON_ArrayForEach(part, item)
		{
			if (out->len)
				buf_put_byte(out, ',');
			TRY(cJSON_IsArray(part) ? ST_USAGE : value_of(part, out, err));
		}
	else
		return fail(err, ST_USAGE, NOWHERE,
			    "must be a text, a number, yes or no, or a list");
	return buf_status(out, err);
}

static enum status set_key(const struct file *f, const char *key, const cJSON *item,
			   struct error *err)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	enum status status = value_of(item, &text, err);
	char *copy = arena_text(&texts, buf_text(&text), text.len);
	buf_release(&text);
	TRY(status);
	if (!copy)
		return fail_memory(err);
	return option_set_text(f->sets, key, copy, err);
}

static enum status take_key(const struct file *f, const char *inside, const cJSON *item, int outer,
			    int inner, struct error *err)
{
	char name[KEY_MAX];
	struct error why;

	if (cJSON_IsNull(item) || strncmp(item->string, "//", 2) == 0)
		return ST_OK;
	snprintf(name, sizeof(name), "%s%s", inside, item->string);
	if (!option_find(f->sets, name, NULL)) /* report it by this name */
		snprintf(name, sizeof(name), "%s", item->string);
	enum status status = set_key(f, name, item, &why);
	if (status == ST_OK)
		return ST_OK;
	return fail(err, status, NOWHERE, "byte %llu: key \"%.60s\": %s",
		    (unsigned long long)find_byte(f, outer, inner), item->string, why.text);
}

static bool is_section(const cJSON *item)
{
	return cJSON_IsObject(item) && !strcmp(item->string, "profiling");
}

/*
 * Returns whether a member is ignored.  The file may belong to a program and have a section for us;
 * the rest of such a file, and other sections of any file, are not for us.
 */
static bool is_of_others(const struct file *f, const cJSON *item, bool has_section)
{
	return (has_section || cJSON_IsObject(item)) && !option_find(f->sets, item->string, NULL);
}

static enum status take_keys(const struct file *f, const cJSON *root, struct error *err)
{
	const cJSON *item, *part;
	bool has_section = false;
	int outer = 0;

	cJSON_ArrayForEach(item, root) has_section |= is_section(item);
	cJSON_ArrayForEach(item, root)
	{
		if (!is_section(item)) {
			if (!is_of_others(f, item, has_section))
				TRY(take_key(f, "", item, outer, -1, err));
			outer++;
			continue;
		}
		int inner = 0;
		cJSON_ArrayForEach(part, item)
			TRY(take_key(f, "profiling.", part, outer, inner++, err));
		outer++;
	}
	return ST_OK;
}

static enum status take_object(const struct file *f, struct error *err)
{
	const char *end = f->text;
	cJSON *root = cJSON_ParseWithLengthOpts(f->text, f->len, &end, false);
	enum status status;

	if (!root)
		return fail(err, ST_FORMAT, NOWHERE, "byte %llu: not a JSON object",
			    (unsigned long long)(end - f->text));
	if (cJSON_IsObject(root))
		status = take_keys(f, root, err);
	else
		status = fail(err, ST_FORMAT, NOWHERE, "byte 0: not a JSON object");
	cJSON_Delete(root);
	return status;
}

static bool is_yaml(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
}

/* Reads YAML in the same way as training programs, in Python: a child process prints it as JSON. */
static enum status read_yaml(const char *path, char *text, size_t *len, struct error *err)
{
	static const char script[] =
		"import json, sys\n"
		"try:\n"
		"    import yaml\n"
		"except ImportError:\n"
		"    sys.exit(1)\n"
		"with open(sys.argv[1], encoding='utf-8') as file:\n"
		"    json.dump(yaml.safe_load(file), sys.stdout, default=str)\n";
	char *const argv[] = { "python3", "-c", (char *)(uintptr_t)script, (char *)(uintptr_t)path,
			       NULL };
	posix_spawn_file_actions_t actions;
	int ends[2], status = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return fail(err, ST_IO, NOWHERE, "%s", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	int failed = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	for (ssize_t n = 1; !failed && n > 0 && *len < FILE_MAX;) {
		n = read(ends[0], text + *len, FILE_MAX - *len);
		*len += n > 0 ? (size_t)n : 0;
	}
	close(ends[0]);
	if (failed || waitpid(child, &status, 0) < 0 || status != 0)
		return fail(err, ST_FORMAT, NOWHERE,
			    "not read: a YAML file needs python3 with PyYAML, and must be valid");
	return ST_OK;
}

enum status record_config_take(const char *path, const struct option_set *sets, struct error *err)
{
	struct file file = { .sets = sets };
	enum status status = ST_OK;
	FILE *f = fopen(path, "rbe");
	struct error why;

	if (!f)
		return fail(err, ST_IO, NOWHERE, "%s: %s", path, strerror(errno));
	char *text = calloc(1, FILE_MAX + 1);
	if (text && is_yaml(path))
		status = read_yaml(path, text, &file.len, &why);
	else
		file.len = text ? fread(text, 1, FILE_MAX, f) : 0;
	file.text = text;
	fclose(f);
	if (!text)
		return fail_memory(err);
	arena_init(&texts, 2 * FILE_MAX);
	if (status == ST_OK)
		status = take_object(&file, &why);
	free(text);
	if (status != ST_OK)
		return fail(err, status, NOWHERE, "%s: %s", path, why.text);
	return ST_OK;
}

/* ---- writing ---- */

static cJSON *value_json(const struct option *row, const void *value)
{
	char text[UNIT_TEXT];

	if (row->type == OPTION_FLAG)
		return cJSON_CreateBool(*(const bool *)value);
	if (row->type == OPTION_TEXT)
		return cJSON_CreateString(*(const char *const *)value);
	if (row->type == OPTION_SIZE)
		return cJSON_CreateString(unit_format_size(*(const uint64_t *)value, text));
	if (row->type == OPTION_TIME)
		return cJSON_CreateString(unit_format_time(*(const uint64_t *)value, text));
	if (row->type == OPTION_SHARE)
		return cJSON_CreateNumber(*(const double *)value);
	return cJSON_CreateNumber((double)*(const uint64_t *)value);
}

static void add_remark(cJSON *root, const char *key, const char *text)
{
	char name[KEY_MAX];

	snprintf(name, sizeof(name), "//%s", key);
	cJSON_AddStringToObject(root, name, text);
}

static void add_options(cJSON *root, const struct config *c)
{
	struct buf text;

	for (const struct option *row = config_options; row->name; row++) {
		if (!row->help)
			continue;
		buf_init(&text, TEXT_MAX);
		buf_put_text(&text, row->help);
		if (row->fallback && *row->fallback)
			buf_putf(&text, "; default: %s", row->fallback);
		add_remark(root, row->name, buf_text(&text));
		buf_release(&text);
		cJSON_AddItemToObject(root, row->name, value_json(row, (const char *)c + row->at));
	}
}

static void add_guides(cJSON *root)
{
	char text[512], name[OPTION_NAME];

	add_remark(root, "preset", preset_options[0].help);
	cJSON_AddStringToObject(root, "preset", "");
	add_remark(root, "",
		   "keys that other profilers' guides use; they may lie in an object "
		   "\"profiling\", too");
	for (unsigned key = 0; key < PRESET_KEY_COUNT; key++) {
		snprintf(name, sizeof(name), "%s", preset_explain(key, text, sizeof(text)));
		for (char *p = name; *p; p++)
			*p = *p == '-' ? '_' : *p;
		add_remark(root, name, text);
	}
}

enum status record_config_print(const struct config *c, struct buf *out, struct error *err)
{
	cJSON *root = cJSON_CreateObject();

	add_options(root, c);
	add_guides(root);
	char *text = cJSON_Print(root);
	cJSON_Delete(root);
	if (!text)
		return fail_memory(err);
	buf_put_text(out, text);
	buf_put_byte(out, '\n');
	cJSON_free(text);
	return buf_status(out, err);
}

/* Returns whether the user has set the option to another value than its default. */
static bool is_given(const char *name, const char *text)
{
	const struct option_set sets[] = { { config_options, NULL }, { NULL, NULL } };
	const struct option *row = option_find(sets, name, NULL);

	return row && strcmp(row->fallback, text) != 0;
}

void warn_of_options(const struct config *c, struct buf *out)
{
	const struct window_spec *w = &c->window_spec;
	uint64_t end_ns = w->at_ns + w->duration_ns;

	if (w->at_ns && w->duration_ns && !w->every_ns && end_ns < tick_clock_ns(CLOCK_REALTIME))
		buf_putf(out, "--window %s: that time is past, so nothing will be recorded\n",
			 c->window);
	if (!c->ring && is_given("save-on", c->save_on) && !c->trigger_spec.hang_ns)
		buf_putf(out, "--save-on %s has no effect without --ring\n", c->save_on);
	if (!c->ring && is_given("ring-dir", c->ring_dir) && !arena_fits_in(c->ring_dir, 0))
		buf_putf(out, "--ring-dir %s has no effect without --ring unless it is on tmpfs\n",
			 c->ring_dir);
	if (c->beaten_preset)
		buf_putf(out, "--window %s is used, and not that of the preset given with it\n",
			 c->window);
}

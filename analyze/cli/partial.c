/* SPDX-License-Identifier: Apache-2.0 */
/* --partial and --merge: one report over inputs that many processes read. */
#include "analyze/cli/internal.h"

#include "analyze/engine/partial.h"
#include "analyze/report/report_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PARTIAL_MAX ((size_t)4 << 30)
#define BASELINES   ".tacho-baselines"
enum { CHUNK_BYTES = 1 << 20 };

void partial_settings(const struct tool *t, struct buf *out)
{
	const struct {
		const char *name, *value;
	} rows[] = {
		{ "steps", t->filter.steps },     { "from", t->filter.from },
		{ "to", t->filter.to },           { "ranks", t->filter.ranks },
		{ "devices", t->filter.devices }, { "kinds", t->filter.kinds },
		{ "names", t->filter.names },     { "what-if", t->own.what_if },
	};

	buf_putf(out, "cut=%d per-step=%d rules=%08x", engine_is_filtered(&t->filter),
		 t->own.per_step, t->rules_crc);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].value)
			buf_putf(out, " %s=%s", rows[i].name, rows[i].value);
}

enum status partial_make(struct tool *t, char *const *paths, size_t count, struct buf *out,
			 enum status *inputs, struct error *err)
{
	struct engine_result result = { .tables = NULL };
	struct engine_request how = tool_request(t, paths, count);
	struct buf settings;

	how.reports = report_parts;
	how.pictures = PICTURES_FINE;
	how.is_part = true;
	buf_init(&settings, CHUNK_BYTES);
	partial_settings(t, &settings);
	enum status status = engine_accumulate(&result, &how, err);
	if (status == ST_OK)
		status = engine_partial_put(&result, buf_text(&settings), out, err);
	if (status == ST_OK && inputs)
		*inputs = tool_judge(t, &result);
	engine_result_release(&result);
	buf_release(&settings);
	return status;
}

enum status run_partial(struct tool *t, char **operands, size_t count, struct error *err)
{
	struct input_paths paths = { .count = 0 };
	enum status status, inputs = ST_OK;

	if (t->common.output)
		return fail(err, ST_USAGE, NOWHERE,
			    "--partial already names the output: omit --output");
	status = tool_paths(t, operands, count, &paths, err);
	if (status == ST_OK)
		status = partial_make(t, paths.paths, paths.count, &t->page, &inputs, err);
	input_paths_free(&paths);
	if (status == ST_OK && inputs != ST_OK && t->common.strict)
		return inputs;
	t->common.output = t->own.partial;
	if (status == ST_OK)
		status = tool_write(t, t->page.data, t->page.len, err);
	return status != ST_OK ? status : inputs;
}

/* Reads the whole file, which its checksum covers. */
static enum status file_read(const char *path, struct buf *out, struct error *err)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
	enum status status = ST_OK;
	uint8_t *at;
	size_t got;

	if (!f)
		return fail(err, ST_IO, NOWHERE, "cannot be opened");
	buf_clear(out);
	do {
		at = buf_reserve(out, CHUNK_BYTES);
		got = at ? fread(at, 1, CHUNK_BYTES, f) : 0;
		out->len += got;
	} while (got);
	if (ferror(f))
		status = fail(err, ST_IO, NOWHERE, "cannot be read");
	if (f != stdin)
		fclose(f);
	return status == ST_OK ? buf_status(out, err) : status;
}

bool partial_is_filtered(const char *settings)
{
	return settings && !strncmp(settings, "cut=1", 5);
}

bool partial_is(const char *path)
{
	char head[sizeof(PARTIAL_MAGIC) - 1];
	FILE *f = fopen(path, "rb");
	bool is = f && fread(head, 1, sizeof(head), f) == sizeof(head) &&
		  !memcmp(head, PARTIAL_MAGIC, sizeof(head));

	if (f)
		fclose(f);
	return is;
}

enum status partial_read(const struct tool *t, const char *path, struct engine_result *r,
			 const char **settings, struct error *err)
{
	struct error own = { .at = NOWHERE };
	struct buf bytes;

	buf_init(&bytes, PARTIAL_MAX);
	enum status status = input_keep(path, &own);
	if (status == ST_OK)
		status = file_read(path, &bytes, &own);
	if (status == ST_OK)
		status = engine_partial_take(r, bytes.data, bytes.len,
					     (size_t)t->common.memory_bytes, settings, &own);
	buf_release(&bytes);
	return status == ST_OK ? ST_OK : fail(err, status, NOWHERE, "%.120s: %s", path, own.text);
}

char *baseline_path(const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", BASELINES, name) < 0 ? NULL : path;
}

enum status run_baseline(struct tool *t, char **operands, size_t count, struct error *err)
{
	char *path = baseline_path(t->own.baseline);
	enum status status;

	if (!path)
		return fail_memory(err);
	if (mkdir(BASELINES, 0777) != 0 && errno != EEXIST)
		status = fail(err, ST_IO, NOWHERE, "%s: %s", BASELINES, strerror(errno));
	else {
		t->own.partial = path;
		status = run_partial(t, operands, count, err);
	}
	free(path);
	return status;
}

enum status run_merge(struct tool *t, char **operands, size_t count, struct error *err)
{
	struct engine_result result;
	const char *settings = NULL;
	enum status status;

	if (!filter_is_empty(&t->filter) || t->own.per_step || t->own.phases)
		return fail(err, ST_USAGE, NOWHERE,
			    "--merge: give filters, --phases and --per-step with --partial");
	if (!count)
		return fail(err, ST_USAGE, NOWHERE, "no input; see --help");
	status = engine_result_init(&result, t->reports, (size_t)t->common.memory_bytes, err);
	for (size_t i = 0; i < count && status == ST_OK; i++)
		status = partial_read(t, operands[i], &result, &settings, err);
	if (status == ST_OK)
		status = tool_conclude(t, &result, partial_is_filtered(settings), err);
	engine_result_release(&result);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite database with events, names, tracks, processes, devices, shapes, windows and losses
 * (sqlite_tables.c), so that sqlite3, DuckDB or pandas answer own questions:
 *
 *	SELECT name, count(*), sum(dur_ns) FROM timeline WHERE kind = 'kernel' GROUP BY name
 *	ORDER BY 3 DESC LIMIT 10;
 *
 * One transaction without a journal into the output's temporary file; memory is SQLite's page
 * cache, and as much again while an index is sorted.  Standard output, which cannot seek, gets a
 * copy of a scratch file.
 */
#include "convert/out.h"
#include "convert/sink.h"
#include "convert/sink_words.h"
#include "convert/sqlite_tables.h"
#include "convert/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_CEILING = 256 << 20, COPY_BYTES = 64 * 1024 };

struct database {
	struct sink base;
	struct trace *trace;
	struct out *out;
	struct sqlite_tables tables;
	char *scratch; /* NULL: the output's own file is written */
	struct buf text;
};

/* ---- columns ---- */

static void bind_number(sqlite3_stmt *s, int column, bool is_there, uint64_t number)
{
	if (is_there)
		sqlite3_bind_int64(s, column, (sqlite3_int64)number);
}

/* A copy, made valid; the text that stands in d->text is its scratch. */
static void bind_text(struct database *d, sqlite3_stmt *s, int column, const char *text, size_t len)
{
	buf_clear(&d->text);
	words_put(&d->text, text, len);
	sqlite3_bind_text(s, column, buf_text(&d->text), (int)d->text.len, SQLITE_TRANSIENT);
}

static void bind_name(struct database *d, sqlite3_stmt *s, int column, uint32_t name)
{
	size_t len;
	const char *text = trace_text(d->trace, name, &len);

	if (name)
		bind_text(d, s, column, text, len);
}

static void bind_word(sqlite3_stmt *s, int column, const char *word)
{
	if (word[0])
		sqlite3_bind_text(s, column, word, -1, SQLITE_STATIC);
}

static void bind_fixed(struct database *d, sqlite3_stmt *s, int column, uint32_t shape)
{
	buf_clear(&d->text);
	words_put_fixed(&d->text, d->trace, shape);
	if (d->text.len)
		sqlite3_bind_text(s, column, buf_text(&d->text), (int)d->text.len,
				  SQLITE_TRANSIENT);
}

/* ---- tables that are complete before the first event ---- */

static enum status put_meta(struct database *d, const char *key, const char *text,
			    uint64_t number, struct error *err)
{
	sqlite3_stmt *s = d->tables.inserts[SQLITE_META];

	bind_word(s, 1, key);
	if (text)
		bind_text(d, s, 2, text, strlen(text));
	else
		bind_number(s, 2, true, number);
	return sqlite_put_row(&d->tables, SQLITE_META, err);
}

static enum status put_metas(struct database *d, struct error *err)
{
	const struct provenance *p = trace_provenance(d->trace);

	TRY(put_meta(d, "tool", "Tacho " TACHO_VERSION, 0, err));
	TRY(put_meta(d, "input", trace_text(d->trace, p->format, NULL), 0, err));
	TRY(put_meta(d, "whole", NULL, p->is_whole, err));
	TRY(put_meta(d, "synthetic", NULL, p->is_synthetic, err));
	return put_meta(d, "epoch_known", NULL, p->epoch_known, err);
}

static enum status put_names(struct database *d, struct error *err)
{
	sqlite3_stmt *s = d->tables.inserts[SQLITE_NAMES];

	for (uint32_t i = 1; i <= trace_count(d->trace, TRACE_NAMES); i++) {
		bind_number(s, 1, true, i);
		bind_name(d, s, 2, i);
		TRY(buf_status(&d->text, err));
		TRY(sqlite_put_row(&d->tables, SQLITE_NAMES, err));
	}
	return ST_OK;
}

static enum status put_processes(struct database *d, struct error *err)
{
	sqlite3_stmt *s = d->tables.inserts[SQLITE_PROCESSES];

	for (uint32_t i = 1; i <= trace_count(d->trace, TRACE_PROCESSES); i++) {
		const struct process *p = trace_get_process(d->trace, i);

		bind_number(s, 1, true, i);
		bind_name(d, s, 2, p->host);
		bind_number(s, 3, true, p->pid);
		bind_number(s, 4, p->rank != NO_RANK, p->rank);
		bind_number(s, 5, p->world_size > 0, p->world_size);
		bind_name(d, s, 6, p->command);
		bind_fixed(d, s, 7, p->shape);
		TRY(sqlite_put_row(&d->tables, SQLITE_PROCESSES, err));
	}
	return ST_OK;
}

static enum status put_devices(struct database *d, struct error *err)
{
	sqlite3_stmt *s = d->tables.inserts[SQLITE_DEVICES];

	for (uint32_t i = 1; i <= trace_count(d->trace, TRACE_DEVICES); i++) {
		const struct device *v = trace_get_device(d->trace, i);

		bind_number(s, 1, true, i);
		bind_number(s, 2, true, v->process);
		bind_number(s, 3, true, v->id);
		bind_name(d, s, 4, v->name);
		bind_fixed(d, s, 5, v->shape);
		TRY(sqlite_put_row(&d->tables, SQLITE_DEVICES, err));
	}
	return ST_OK;
}

static enum status put_tracks(struct database *d, struct error *err)
{
	sqlite3_stmt *s = d->tables.inserts[SQLITE_TRACKS];

	for (uint32_t i = 1; i <= trace_count(d->trace, TRACE_TRACKS); i++) {
		const struct track *k = trace_get_track(d->trace, i);

		bind_number(s, 1, true, i);
		bind_number(s, 2, true, k->process);
		bind_word(s, 3, words_home(k->home));
		bind_number(s, 4, k->name != 0, k->name);
		bind_number(s, 5, k->device != NO_ID, k->device);
		bind_number(s, 6, k->context != NO_ID && k->home != HOME_THREAD, k->context);
		bind_number(s, 7, k->home != HOME_COUNTER, k->id);
		TRY(sqlite_put_row(&d->tables, SQLITE_TRACKS, err));
	}
	return ST_OK;
}

static enum status put_shapes(struct database *d, struct error *err)
{
	sqlite3_stmt *s = d->tables.inserts[SQLITE_SHAPES];

	for (uint32_t i = 1; i <= trace_count(d->trace, TRACE_SHAPES); i++) {
		bind_number(s, 1, true, i);
		bind_fixed(d, s, 2, i);
		TRY(sqlite_put_row(&d->tables, SQLITE_SHAPES, err));
	}
	return ST_OK;
}

static enum status put_windows(struct database *d, struct error *err)
{
	sqlite3_stmt *s = d->tables.inserts[SQLITE_WINDOWS];

	for (uint32_t i = 1; i <= trace_count(d->trace, TRACE_WINDOWS); i++) {
		const struct window *w = trace_get_window(d->trace, i);

		bind_number(s, 1, true, w->process);
		bind_name(d, s, 2, w->spec);
		bind_number(s, 3, true, w->begin_ns);
		bind_number(s, 4, w->end_ns > 0, w->end_ns);
		bind_number(s, 5, true, w->own_ns);
		bind_number(s, 6, true, w->cut_short);
		TRY(sqlite_put_row(&d->tables, SQLITE_WINDOWS, err));
	}
	return ST_OK;
}

static enum status put_tables(struct database *d, struct error *err)
{
	TRY(put_metas(d, err));
	TRY(put_names(d, err));
	TRY(put_processes(d, err));
	TRY(put_devices(d, err));
	TRY(put_tracks(d, err));
	TRY(put_shapes(d, err));
	TRY(put_windows(d, err));
	return buf_status(&d->text, err);
}

/* ---- losses: known at the end ---- */

static enum status put_loss(struct database *d, uint32_t process, unsigned why, uint64_t count,
			    struct error *err)
{
	sqlite3_stmt *s = d->tables.inserts[SQLITE_LOSSES];

	if (!count)
		return ST_OK;
	bind_number(s, 1, process > 0, process);
	bind_word(s, 2, loss_text((enum loss)why));
	bind_number(s, 3, true, count);
	return sqlite_put_row(&d->tables, SQLITE_LOSSES, err);
}

static enum status put_losses(struct database *d, struct error *err)
{
	for (unsigned why = 0; why < LOSS_END; why++) {
		uint64_t rest = trace_lost(d->trace, 0, (enum loss)why);

		for (uint32_t i = 1; i <= trace_count(d->trace, TRACE_PROCESSES); i++) {
			uint64_t own = trace_lost(d->trace, i, (enum loss)why);

			rest -= own < rest ? own : rest;
			TRY(put_loss(d, i, why, own, err));
		}
		TRY(put_loss(d, 0, why, rest, err));
	}
	return ST_OK;
}

/* ---- events ---- */

static bool is_pool(const struct event *e)
{
	return e->kind == KIND_ALLOC || e->kind == KIND_FREE;
}

static bool has_correlation(const struct event *e)
{
	return e->correlation && !is_pool(e) && e->kind != KIND_STEP && e->kind != KIND_RANGE &&
	       e->kind != KIND_MARK && e->kind != KIND_COUNTER;
}

static void bind_members(sqlite3_stmt *s, const struct event *e)
{
	bool has_number = e->kind == KIND_STEP ||
			  ((e->kind == KIND_RANGE || e->kind == KIND_MARK) && e->number);

	bind_number(s, 8, has_correlation(e), e->correlation);
	bind_number(s, 9, e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET || is_pool(e), e->bytes);
	bind_number(s, 10, is_pool(e), e->address);
	if (e->kind == KIND_COUNTER)
		sqlite3_bind_double(s, 11, e->value);
	bind_number(s, 12, e->kind == KIND_API && e->flags & EVENT_RESULT, (uint64_t)e->result);
	bind_number(s, 13, has_number, e->number);
	bind_word(s, 14, e->flags & EVENT_BEGAN_EARLIER ? "began_earlier"
			 : e->flags & EVENT_NEVER_ENDED ? "never_ended"
							: "");
}

static void bind_kind(struct database *d, sqlite3_stmt *s, const struct event *e)
{
	struct words_text kind = words_kind(d->trace, e);
	char number[16];

	if (e->kind && e->kind < KIND_END) {
		sqlite3_bind_text(s, 4, kind.text, (int)kind.len, SQLITE_STATIC);
	} else if (kind.len) {
		bind_text(d, s, 4, kind.text, kind.len);
	} else {
		snprintf(number, sizeof(number), "kind_%u", e->kind);
		sqlite3_bind_text(s, 4, number, -1, SQLITE_TRANSIENT);
	}
}

/* The words of the event alone; those of its shape stand in `shapes`. */
static void bind_args(struct database *d, sqlite3_stmt *s, const struct event *e)
{
	const struct shape *shape = trace_get_shape(d->trace, e->shape);

	if (!e->vary || !shape->vary_count)
		return;
	buf_clear(&d->text);
	words_put_vary(&d->text, d->trace, e);
	if (d->text.len)
		sqlite3_bind_text(s, 16, buf_text(&d->text), (int)d->text.len, SQLITE_STATIC);
}

static enum status put_event(struct database *d, const struct event *e, struct error *err)
{
	sqlite3_stmt *s = d->tables.inserts[SQLITE_EVENTS];

	bind_number(s, 1, true, ++d->base.written);
	bind_number(s, 2, true, e->begin_ns);
	bind_number(s, 3, true, e->end_ns - e->begin_ns);
	bind_kind(d, s, e);
	bind_word(s, 5, words_class(e));
	bind_number(s, 6, e->name > 0, e->name);
	bind_number(s, 7, e->track > 0, e->track);
	bind_members(s, e);
	bind_number(s, 15, e->shape > 0, e->shape);
	bind_args(d, s, e);
	TRY(buf_status(&d->text, err));
	return sqlite_put_row(&d->tables, SQLITE_EVENTS, err);
}

/* ---- the sink ---- */

static void database_free(struct sink *sink)
{
	struct database *d = (struct database *)sink;

	if (!d)
		return;
	sqlite_release(&d->tables);
	if (d->scratch)
		unlink(d->scratch);
	temporary_forget(d->scratch);
	free(d->scratch);
	buf_release(&d->text);
	free(d);
}

/* Where the database is made. */
static enum status choose_file(struct database *d, const char *folder, const char **path,
			       struct error *err)
{
	int fd;

	*path = out_own_file(d->out);
	if (*path)
		return ST_OK;
	if (asprintf(&d->scratch, "%s/tacho-XXXXXX", folder) < 0) {
		d->scratch = NULL;
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a file's name");
	}
	fd = mkostemp(d->scratch, O_CLOEXEC);
	if (fd < 0)
		return fail(err, ST_IO, NOWHERE, "no scratch file in %s: %s", folder,
			    strerror(errno));
	temporary_note(d->scratch);
	close(fd);
	*path = d->scratch;
	return ST_OK;
}

static enum status database_open(struct sink **out, const struct sink_request *req,
				 struct error *err)
{
	struct database *d = calloc(1, sizeof(*d));
	const char *path;
	enum status st;

	*out = NULL;
	if (!d)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a database");
	d->base.type = &sink_sqlite;
	d->trace = req->trace;
	d->out = req->out;
	buf_init(&d->text, TEXT_CEILING);
	st = choose_file(d, req->budget->scratch ? req->budget->scratch : "/tmp", &path, err);
	if (st == ST_OK)
		st = sqlite_begin(&d->tables, path, err);
	if (st == ST_OK)
		st = put_tables(d, err);
	if (st != ST_OK) {
		database_free(&d->base);
		return st;
	}
	*out = &d->base;
	return ST_OK;
}

static enum status database_put(struct sink *sink, const struct event *events, size_t count,
				struct error *err)
{
	for (size_t i = 0; i < count; i++)
		TRY(put_event((struct database *)sink, &events[i], err));
	return ST_OK;
}

static enum status copy_scratch(struct database *d, struct error *err)
{
	enum status st = ST_OK;
	char *bytes = malloc(COPY_BYTES);
	int fd = open(d->scratch, O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;

	if (!bytes || fd < 0)
		st = fail(err, bytes ? ST_IO : ST_MEMORY, NOWHERE, "cannot read %s", d->scratch);
	while (st == ST_OK && (n = read(fd, bytes, COPY_BYTES)) > 0)
		st = out_write(d->out, bytes, (size_t)n, err);
	if (st == ST_OK && n < 0)
		st = fail(err, ST_IO, NOWHERE, "cannot read %s: %s", d->scratch, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(bytes);
	return st;
}

static enum status database_close(struct sink *sink, struct error *err)
{
	struct database *d = (struct database *)sink;

	TRY(put_losses(d, err));
	TRY(sqlite_finish(&d->tables, err));
	return d->scratch ? copy_scratch(d, err) : ST_OK;
}

const struct sink_type sink_sqlite = {
	.name = "sqlite",
	.help = "SQLite database: events, names, tracks, processes, losses; for sqlite3, DuckDB",
	.scope = SINK_WHOLE,
	.is_binary = true,
	.open = database_open,
	.put = database_put,
	.close = database_close,
	.free = database_free,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/cli/internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what XProf has cached ---- */

/* Returns whether XProf, and no other program, writes a file with this name next to those of a run.
 */
static bool is_xprof_cache(const char *name)
{
	static const char *const whole[] = { ".cached_tools.json", "cache_version.txt" };
	static const char *const ends[] = { ".SSTABLE", ".hlo_proto.pb", ".op_stats_v2.pb" };
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (strcmp(name, whole[i]) == 0)
			return true;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (len >= strlen(ends[i]) && strcmp(name + len - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

enum status remove_xprof_caches(const struct run *r, struct error *err)
{
	static const char runs[] = "plugins/profile/";
	const char *all = (const char *)r->names.data;
	enum status status = ST_OK;

	for (size_t i = 0; i < r->names.len && status == ST_OK; i += strlen(all + i) + 1) {
		struct dirent *entry;
		char *path;
		DIR *dir;

		if (strncmp(all + i, runs, strlen(runs)) != 0)
			continue;
		if (asprintf(&path, "%s/%.*s", r->common.output,
			     (int)(strrchr(all + i, '/') - (all + i)), all + i) < 0)
			return fail_memory(err);
		dir = opendir(path);
		while (dir && status == ST_OK && (entry = readdir(dir)) != NULL)
			if (is_xprof_cache(entry->d_name) &&
			    unlinkat(dirfd(dir), entry->d_name, 0) != 0)
				status = fail(err, ST_IO, NOWHERE,
					      "%s: cannot remove XProf's %s: %s", path,
					      entry->d_name, strerror(errno));
		if (dir)
			closedir(dir);
		free(path);
	}
	return status;
}

/* ---- one file ---- */

static enum status writer_start(struct file_writer *w, uint64_t ns, struct error *err)
{
	struct run *r = w->run;
	struct sink_request request = {
		.trace = w->trace,
		.budget = &r->budget,
		.process = w->process,
		.context = r->context,
		.rules = r->rules,
		.filter = &r->filter,
		.all_args = all_args(r),
		.is_alone = r->paths.count == 1 && trace_count(w->trace, TRACE_PROCESSES) == 1,
		.out = w->out,
		.attachments = r->attachments,
		.attachment_count = r->attachment_count,
		.names = &r->names,
		.may_exceed = r->size.is_on,
	};

	if (r->is_folder && !r->type->is_folder) {
		size_t at = r->names.len;

		TRY(sink_put_name("", r->type->file_name, w->trace, w->process, ns, &r->names,
				  err));
		TRY(out_begin(w->out, (const char *)r->names.data + at, err));
	}
	r->files++;
	return sink_open(&w->sink, r->type, &request, err);
}

static enum status writer_put(void *self, const struct batch *batch, struct error *err)
{
	struct file_writer *w = self;
	struct run *r = w->run;
	size_t first = 0;

	if (!w->sink) {
		while (w->process && first < batch->count &&
		       trace_get_track(w->trace, batch->events[first].track)->process != w->process)
			first++;
		if (first == batch->count)
			return ST_OK;
		TRY(writer_start(w, batch->events[first].begin_ns, err));
	}
	for (size_t i = 0; i < batch->count; i++)
		r->account.unknown_kind +=
			batch->events[i].kind == KIND_UNKNOWN &&
			(!w->process ||
			 trace_get_track(w->trace, batch->events[i].track)->process == w->process);
	return sink_put(w->sink, batch, err);
}

/* Completes the file after the last event of its process. */
static enum status writer_finish(struct file_writer *w, struct error *err)
{
	struct run *r = w->run;

	if (!w->sink)
		TRY(writer_start(w, 0, err));
	TRY(sink_close(w->sink, err));
	r->account.events_out += w->sink->written;
	r->account.left_out += w->sink->left_out;
	r->account.has_arrows |= w->sink->has_launches && w->sink->has_launched;
	w->viewer_bytes = w->sink->viewer_bytes;
	sink_free(w->sink);
	w->sink = NULL;
	return ST_OK;
}

enum status writer_open(struct run *r, size_t i, struct trace *trace, uint32_t process,
			struct error *err)
{
	struct file_writer *w = &r->writers[i];

	*w = (struct file_writer){ .out = w->out, .run = r, .trace = trace, .process = process };
	if (w->out)
		return ST_OK;
	TRY(out_open(&w->out, r->common.output, r->is_folder, err));
	/* If an input has many processes, only the first writer compresses with several threads. */
	out_set_threads(w->out, i && r->budget.threads ? 1 : r->budget.threads);
	return ST_OK;
}

enum status pump_writers(struct run *r, struct source *top, size_t count, bool *source_failed,
			 struct error *err)
{
	struct consumer consumers[WRITERS + 1] = { { NULL, NULL } };
	bool counts = r->size.is_on && r->size.attempt == 1;
	enum status status;

	for (size_t i = 0; i < count; i++)
		consumers[i] = (struct consumer){ writer_put, &r->writers[i] };
	consumers[count] = (struct consumer){ size_put, &r->size };
	status = pump(top, consumers, count + counts, note_events, r, source_failed, err);
	if (status != ST_OK && !*source_failed)
		return status;
	for (size_t i = 0; i < count; i++) {
		struct error own;
		enum status st = writer_finish(&r->writers[i], &own);

		if (st == ST_OK)
			continue;
		*source_failed = false;
		*err = own;
		return st;
	}
	return status;
}

/* ---- attempts under --max-size ---- */

void attempt_begin(struct run *r)
{
	r->before = (struct before){ r->account, r->files, r->names.len, r->worst };
}

enum status attempt_end(struct run *r, size_t count, const struct source *lod, bool *again,
			struct error *err)
{
	*again = false;
	if (!r->size.is_on)
		return ST_OK;
	for (size_t i = 0; i < count; i++) {
		const struct file_writer *w = &r->writers[i];

		TRY(out_end(w->out, err));
		size_note(&r->size, w->process, out_largest(w->out), r->own.max_size);
		size_note(&r->size, w->process, w->viewer_bytes, r->type->viewer_most);
	}
	TRY(size_again(&r->size, again, err));
	if (*again) {
		for (size_t i = 0; i < count; i++) {
			out_free(r->writers[i].out);
			r->writers[i].out = NULL;
		}
		r->account = r->before.account;
		r->files = r->before.files;
		r->names.len = r->before.names_len;
		r->worst = r->before.worst;
		return ST_OK;
	}
	size_keep(&r->size, lod);
	size_end(&r->size);
	for (size_t i = 0; r->is_folder && i < count; i++) {
		if (!r->done)
			TRY(out_open(&r->done, r->common.output, true, err));
		TRY(out_adopt(r->done, r->writers[i].out, err));
		out_free(r->writers[i].out);
		r->writers[i].out = NULL;
	}
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/main/run.h"

#include <string.h>

/* ---- names of files in a folder ---- */

/* A file of this process that no other of the run has the name of. */
static enum status begin_file(struct lane *l, uint64_t ns, struct error *err)
{
	struct run *r = l->run;
	size_t at = r->names.len;

	TRY(sink_put_new_name(r->type, l->trace, l->process, ns, &r->names, err));
	return out_begin(l->out, (const char *)r->names.data + at, err);
}

/* ---- lanes ---- */

static enum status lane_start(struct lane *l, uint64_t ns, struct error *err)
{
	struct run *r = l->run;
	struct sink_request request = {
		.trace = l->trace,
		.budget = &r->budget,
		.process = l->process,
		.step = r->step,
		.rules = r->rules,
		.all_args = strcmp(r->own.args, "full") == 0,
		.out = l->out,
		.papers = r->report.papers,
		.paper_count = r->report.count,
		.names = &r->names,
		.may_exceed = r->size.is_on,
		.is_per_node = r->own.per_node,
	};

	if (r->is_folder && !r->type->is_folder)
		TRY(begin_file(l, ns, err));
	r->files++;
	return r->type->open(&l->sink, &request, err);
}

static enum status lane_put(void *self, const struct event *events, size_t count,
			    struct error *err)
{
	struct lane *l = self;
	struct run *r = l->run;
	size_t first = 0;

	if (!l->sink) {
		while (l->process && first < count &&
		       trace_get_track(l->trace, events[first].track)->process != l->process)
			first++;
		if (first == count)
			return ST_OK;
		TRY(lane_start(l, events[first].begin_ns, err));
	}
	for (size_t i = 0; i < count; i++)
		r->account.unknown_kind += events[i].kind == KIND_UNKNOWN &&
			(!l->process ||
			 trace_get_track(l->trace, events[i].track)->process == l->process);
	return l->sink->type->put(l->sink, events, count, err);
}

/* After the last event of its process. */
static enum status lane_finish(struct lane *l, struct error *err)
{
	struct run *r = l->run;

	if (!l->sink)
		TRY(lane_start(l, 0, err));
	if (l->sink->type->close)
		TRY(l->sink->type->close(l->sink, err));
	r->account.events_out += l->sink->written;
	r->account.left_out += l->sink->left_out;
	l->viewer_bytes = l->sink->viewer_bytes;
	l->sink->type->free(l->sink);
	l->sink = NULL;
	return ST_OK;
}

enum status lane_open(struct run *r, size_t i, struct trace *trace, uint32_t process,
			     struct error *err)
{
	struct lane *l = &r->lanes[i];

	*l = (struct lane){.out = l->out, .run = r, .trace = trace, .process = process};
	if (l->out)
		return ST_OK;
	TRY(out_open(&l->out, r->common.output, r->is_folder, err));
	/* the first lane is the only one but where an input has many processes */
	out_set_threads(l->out, i && r->budget.threads ? 1 : r->budget.threads);
	return ST_OK;
}

enum status pump_lanes(struct run *r, struct source *top, size_t count, bool *source_failed,
			      struct error *err)
{
	struct consumer consumers[LANES + 1] = {{NULL, NULL}};
	bool counts = r->size.is_on && r->size.attempt == 1;
	enum status status;

	for (size_t i = 0; i < count; i++)
		consumers[i] = (struct consumer){lane_put, &r->lanes[i]};
	consumers[count] = (struct consumer){size_put, &r->size};
	status = pump(top, consumers, count + counts, passed, r, source_failed, err);
	if (status != ST_OK && !*source_failed)
		return status;
	for (size_t i = 0; i < count; i++) {
		struct error own;
		enum status st = lane_finish(&r->lanes[i], &own);

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
	r->before = (struct kept){r->account, r->files, r->names.len, r->worst};
}

static enum status attempt_keep(struct run *r, size_t count, struct error *err)
{
	for (size_t i = 0; r->is_folder && i < count; i++) {
		if (!r->done)
			TRY(out_open(&r->done, r->common.output, true, err));
		TRY(out_adopt(r->done, r->lanes[i].out, err));
		out_free(r->lanes[i].out);
		r->lanes[i].out = NULL;
	}
	return ST_OK;
}

static void attempt_undo(struct run *r, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		out_free(r->lanes[i].out);
		r->lanes[i].out = NULL;
	}
	r->account = r->before.account;
	r->files = r->before.files;
	r->names.len = r->before.names_len;
	r->worst = r->before.worst;
}

enum status attempt_end(struct run *r, size_t count, const struct source *detail,
			       bool *again, struct error *err)
{
	*again = false;
	if (!r->size.is_on)
		return ST_OK;
	for (size_t i = 0; i < count; i++) {
		const struct lane *l = &r->lanes[i];

		TRY(out_end(l->out, err));
		size_note(&r->size, l->process, out_largest(l->out), r->own.max_size);
		size_note(&r->size, l->process, l->viewer_bytes, r->type->viewer_most);
	}
	TRY(size_again(&r->size, again, err));
	if (*again) {
		attempt_undo(r, count);
		return ST_OK;
	}
	size_keep(&r->size, detail);
	size_end(&r->size);
	return attempt_keep(r, count, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorBoard's log folder: for each process the file of the PyTorch plugin (what the chrome sink
 * writes) and the XSpace of XProf,
 *
 *	<worker>.<ns>.pt.trace.json.gz
 *	plugins/profile/<run>/<host>.xplane.pb
 *
 * The run is named after the time of the first process's first event, as XProf's own runs are.  All
 * files of one call are of one run and count their times from one second, so that steps of several
 * hosts lie beside each other; a process that began before it counts from its own begin.  Scalars
 * and the text card are a report: analyze/format/tfevents/tfevents.c.
 */
#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "convert/sink/sink_list.h"
#include "convert/sink/tensorboard/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define RUNS      "plugins/profile/"
#define RUN_FORM  RUNS "%Y_%m_%d_%H_%M_%S/"

enum { NAME_BYTES = 1 << 16, RUN_BYTES = 64 };

struct tensorboard {
	struct sink base;
	struct trace *trace;
	struct out *out;
	struct buf *names;    /* borrowed: of files so far */
	struct buf own_names; /* where the caller keeps none */
	uint32_t process;
	uint64_t first_ns; /* of the process's events */
	bool started;
	struct sink *chrome; /* opened by the first event */
	struct sink_request request;
	struct tb_space *space;
};

static const struct sink_type xspace_file = { .file_name = "{host}-{rank}.xplane.pb" };

static void tensorboard_free(struct sink *s)
{
	struct tensorboard *t = (struct tensorboard *)s;

	if (!t)
		return;
	if (t->chrome)
		t->chrome->type->free(t->chrome);
	tb_space_free(t->space);
	buf_release(&t->own_names);
	free(t);
}

static enum status tensorboard_open(struct sink **out, const struct sink_request *req,
				    struct error *err)
{
	struct tensorboard *t = calloc(1, sizeof(*t));
	enum status status;

	*out = NULL;
	if (!t)
		return fail_memory(err);
	t->base.type = &sink_tensorboard;
	t->trace = req->trace;
	t->out = req->out;
	t->process = req->process;
	t->request = *req;
	buf_init(&t->own_names, NAME_BYTES);
	t->names = req->names ? req->names : &t->own_names;
	status = tb_space_open(&t->space, req, req->may_exceed ? UINT64_MAX : TB_SPACE_MOST, err);
	if (status != ST_OK) {
		tensorboard_free(&t->base);
		return status;
	}
	*out = &t->base;
	return ST_OK;
}

/* Begins the PyTorch plugin's file; events go into it as they come. */
static enum status start(struct tensorboard *t, uint64_t first_ns, struct error *err)
{
	size_t at = t->names->len;

	t->started = true;
	t->first_ns = first_ns;
	TRY(sink_put_new_name(&sink_chrome, t->trace, t->process, first_ns, t->names, err));
	TRY(out_begin(t->out, (const char *)t->names->data + at, err));
	return sink_chrome.open(&t->chrome, &t->request, err);
}

static enum status tensorboard_put(struct sink *s, const struct batch *batch, struct error *err)
{
	struct tensorboard *t = (struct tensorboard *)s;

	for (struct event *e = batch->events; e < batch->events + batch->count; e++) {
		struct batch one = { .events = e, .count = 1 };

		if (trace_get_track(t->trace, e->track)->process != t->process)
			continue;
		if (!t->started)
			TRY(start(t, e->begin_ns, err));
		TRY(t->chrome->type->put(t->chrome, &one, err));
		t->base.written++; /* the PyTorch plugin's file holds all of them */
		TRY(tb_space_put(t->space, e, err));
	}
	return ST_OK;
}

/* ---- the run ---- */

/* The run of an earlier process of this call, else one named after the first event; counts the
 * XSpaces of this call so far. */
static void name_run(const struct tensorboard *t, char run[RUN_BYTES], uint64_t *spaces)
{
	const char *all = (const char *)t->names->data, *slash = NULL, *earlier = NULL;
	time_t seconds = (time_t)(t->first_ns / SECOND_NS);
	struct tm utc;

	*spaces = 0;
	for (size_t i = 0; i < t->names->len; i += strlen(all + i) + 1) {
		if (strncmp(all + i, RUNS, strlen(RUNS)) != 0)
			continue;
		if (!(*spaces)++)
			earlier = all + i;
	}
	if (earlier)
		slash = strchr(earlier + strlen(RUNS), '/');
	if (slash && slash - earlier < RUN_BYTES - 1) {
		memcpy(run, earlier, (size_t)(slash - earlier) + 1);
		run[slash - earlier + 1] = '\0';
	} else if (!gmtime_r(&seconds, &utc) || !strftime(run, RUN_BYTES, RUN_FORM, &utc)) {
		snprintf(run, RUN_BYTES, "%s", RUNS "run/");
	}
}

/* run + file, with a NUL, that no other has; *file is where the file's own name begins. */
static enum status put_space_name(struct tensorboard *t, const char *run, size_t *at, size_t *file,
				  struct error *err)
{
	struct buf *names = t->names;
	bool is_taken = true;

	*at = names->len;
	for (unsigned attempt = 1; is_taken; attempt++) {
		names->len = *at;
		buf_put_text(names, run);
		*file = names->len;
		sink_put_file_name(&xspace_file, t->trace, t->process, t->first_ns, names);
		if (attempt > 1) { /* HOST-r0.2.xplane.pb */
			names->len -= strlen(".xplane.pb");
			buf_putf(names, ".%u.xplane.pb", attempt);
		}
		buf_put_byte(names, 0);
		TRY(buf_status(names, err));
		is_taken = sink_is_name_taken(names, *at);
	}
	return ST_OK;
}

static enum status write_space(struct tensorboard *t, struct error *err)
{
	uint64_t origin_ns = t->first_ns;
	struct tm utc = { 0 };
	char run[RUN_BYTES], *host;
	enum status status;
	size_t at, file;

	name_run(t, run, &t->space->call_at);
	/* Times count from the second in the run's name, or from an earlier first event. */
	if (strptime(run, RUN_FORM, &utc) && (uint64_t)timegm(&utc) * SECOND_NS < origin_ns)
		origin_ns = (uint64_t)timegm(&utc) * SECOND_NS;
	TRY(put_space_name(t, run, &at, &file, err));
	TRY(out_begin(t->out, (const char *)t->names->data + at, err));
	host = strdup((const char *)t->names->data + file);
	if (!host)
		return fail_memory(err);
	host[strlen(host) - strlen(".xplane.pb")] = '\0';
	status = tb_space_write(t->space, host, origin_ns, err);
	free(host);
	return status;
}

static enum status tensorboard_close(struct sink *s, struct error *err)
{
	struct tensorboard *t = (struct tensorboard *)s;

	if (!t->started)
		TRY(start(t, 0, err));
	TRY(t->chrome->type->close(t->chrome, err));
	TRY(write_space(t, err));
	s->viewer_bytes = t->space->bytes;
	return ST_OK;
}

const struct sink_type sink_tensorboard = {
	.name = "tensorboard",
	.help = "a log folder: PyTorch plugin, XProf (plugins/profile), scalars and a summary",
	.scope = SINK_PER_PROCESS,
	.is_folder = true,
	.viewer_most = TB_SPACE_MOST - 1,
	.file_name = "",
	.needs = NEED_STEP | NEED_LINK,
	.open = tensorboard_open,
	.put = tensorboard_put,
	.close = tensorboard_close,
	.free = tensorboard_free,
};

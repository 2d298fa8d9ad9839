/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes TensorBoard's log folder: for each process a file for the PyTorch plugin, made by the
 * chrome sink, and an XSpace for XProf:
 *
 *	<worker>.<ns>.pt.trace.json.gz
 *	plugins/profile/<run>/<host>.xplane.pb
 *	events.out.tfevents...          the program's own counters; several ranks have r0/, r1/
 *
 * The run is named after the time of the first process's first event, as XProf's own runs are.  All
 * files of one command belong to one run and count their times from the same second, so that a
 * viewer aligns the steps of several hosts; a process that began earlier counts from its own begin.
 * Other scalars and the text card are a report: analyze/format/tfevents/tfevents.c.
 */
#include "convert/output/output.h"
#include "convert/sink/tensorboard/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define RUNS      "plugins/profile/"
#define ENDING    ".xplane.pb"
#define RUN_FORM  RUNS "%Y_%m_%d_%H_%M_%S/"

enum { NAME_BYTES = 1 << 16, RUN_BYTES = 64 };

struct tensorboard {
	struct sink base;
	struct buf *names;    /* borrowed; names of the files so far */
	struct buf own_names; /* used if the caller keeps no names */
	uint64_t first_ns;    /* begin of the process's first event */
	struct sink *chrome;  /* NULL until the first event */
	struct sink_request request;
	struct tb_space *space;
	struct tb_scalars scalars;
};

static enum status tensorboard_open(struct sink *s, const struct sink_request *req,
				    struct error *err)
{
	struct tensorboard *t = (struct tensorboard *)s;

	t->request = *req;
	t->request.is_linked = true;
	buf_init(&t->own_names, NAME_BYTES);
	t->names = req->names ? req->names : &t->own_names;
	return tb_space_open(&t->space, req, req->may_exceed ? UINT64_MAX : TB_SPACE_MOST, err);
}

/* Begins the PyTorch plugin's file, to which events are written as they come. */
static enum status start(struct tensorboard *t, uint64_t first_ns, struct error *err)
{
	size_t at = t->names->len;

	t->first_ns = first_ns;
	TRY(sink_put_name("", sink_chrome.file_name, t->base.trace, t->base.process, first_ns,
			  t->names, err));
	TRY(out_begin(t->base.out, (const char *)t->names->data + at, err));
	return sink_open(&t->chrome, &sink_chrome, &t->request, err);
}

static enum status tensorboard_put(struct sink *s, const struct batch *batch, struct error *err)
{
	struct tensorboard *t = (struct tensorboard *)s;

	for (size_t i = 0; i < batch->interval_count; i++)
		if (batch->intervals[i].process == s->process)
			TRY(tb_input_put_interval(&t->space->input, &batch->intervals[i], err));
	for (size_t i = 0; i < batch->count; i++) {
		const struct event *e = &batch->events[i];

		if (trace_get_track(s->trace, e->track)->process != s->process)
			continue;
		if (!t->chrome)
			TRY(start(t, e->begin_ns, err));
		s->written++; /* the PyTorch plugin's file has all of them */
		TRY(tb_scalars_put(&t->scalars, s->trace, e, err));
		TRY(tb_space_put(t->space, e, err));
	}
	return t->chrome ? sink_put(t->chrome, batch, err) : ST_OK;
}

/* ---- the run ---- */

/* Returns the name of the run: that of an earlier process of this command, or one made from the
 * time of the first event.  *spaces is the number of XSpaces that this command has written. */
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

static enum status tensorboard_close(struct sink *s, struct error *err)
{
	struct tensorboard *t = (struct tensorboard *)s;
	struct tm utc = { 0 };
	char run[RUN_BYTES], *host;
	enum status status;
	uint64_t origin_ns;
	size_t at;

	if (!t->chrome)
		TRY(start(t, 0, err));
	TRY(sink_close(t->chrome, err));
	origin_ns = t->first_ns;
	name_run(t, run, &t->space->call_at);
	/* Times count from the second in the run's name, or from the first event if that is
	 * earlier. */
	if (strptime(run, RUN_FORM, &utc) && (uint64_t)timegm(&utc) * SECOND_NS < origin_ns)
		origin_ns = (uint64_t)timegm(&utc) * SECOND_NS;
	at = t->names->len;
	TRY(sink_put_name(run, "{host}-{rank}{.n}" ENDING, s->trace, s->process, t->first_ns,
			  t->names, err));
	TRY(out_begin(s->out, (const char *)t->names->data + at, err));
	host = strdup((const char *)t->names->data + at + strlen(run));
	if (!host)
		return fail_memory(err);
	host[strlen(host) - strlen(ENDING)] = '\0';
	status = tb_space_write(t->space, host, origin_ns, err);
	free(host);
	s->viewer_bytes = t->space->bytes;
	TRY(status);
	return t->scalars.count ? tb_scalars_write(&t->scalars, t->space, &t->request, err) : ST_OK;
}

static void tensorboard_release(struct sink *s)
{
	struct tensorboard *t = (struct tensorboard *)s;

	sink_free(t->chrome);
	tb_space_free(t->space);
	free(t->scalars.rows);
	buf_release(&t->own_names);
}

const struct sink_type sink_tensorboard = {
	.name = "tensorboard",
	.help = "a log folder: PyTorch plugin, XProf (plugins/profile), scalars and a summary",
	.scope = SINK_PER_PROCESS,
	.is_folder = true,
	.draws_arrows = true,
	.viewer_most = TB_SPACE_MOST - 1,
	.file_name = "",
	.needs = NEED_STEP | NEED_LINK,
	.size = sizeof(struct tensorboard),
	.open = tensorboard_open,
	.put = tensorboard_put,
	.close = tensorboard_close,
	.release = tensorboard_release,
};

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
 * and the text card are a report: analyze/format_tfevents.c.
 */
#include "convert/out.h"
#include "convert/sink.h"
#include "convert/tensorboard/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define RUNS "plugins/profile/"
#define RUN_FORM RUNS "%Y_%m_%d_%H_%M_%S/"

enum { NAME_BYTES = 1 << 16, RUN_BYTES = 64, NODE_LEAD_S = 10 };

struct tensorboard {
	struct sink base;
	struct trace *trace;
	struct out *out;
	struct buf *names; /* borrowed: of files so far */
	struct buf own_names; /* where the caller keeps none */
	uint32_t process;
	uint64_t first_ns; /* of the process's events */
	bool started;
	struct sink *chrome; /* opened by the first event */
	struct sink_request request;
	struct tb_space *space;
};

static const struct sink_type node_file = { .file_name = "{host}" };
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
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the writer of TensorBoard's "
			    "files");
	t->base.type = &sink_tensorboard;
	t->trace = req->trace;
	t->out = req->out;
	t->process = req->process;
	t->request = *req;
	buf_init(&t->own_names, NAME_BYTES);
	t->names = req->names ? req->names : &t->own_names;
	status = tb_space_open(&t->space, req,
			       req->may_exceed ? UINT64_MAX : TB_SPACE_MOST, err);
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

static enum status put_one(struct tensorboard *t, const struct event *e, struct error *err)
{
	bool kept;

	if (trace_get_track(t->trace, e->track)->process != t->process)
		return ST_OK;
	if (!t->started)
		TRY(start(t, e->begin_ns, err));
	TRY(t->chrome->type->put(t->chrome, e, 1, err));
	t->base.written++; /* the PyTorch plugin's file holds all of them */
	return tb_space_put(t->space, e, &kept, err);
}

static enum status tensorboard_put(struct sink *s, const struct event *events, size_t count,
				   struct error *err)
{
	struct tensorboard *t = (struct tensorboard *)s;

	for (size_t i = 0; i < count; i++)
		TRY(put_one(t, &events[i], err));
	return ST_OK;
}

/* ---- the run ---- */

/* The run of an earlier process of this call, or NULL. */
static const char *find_run(const struct buf *names)
{
	const char *all = (const char *)names->data;

	for (size_t i = 0; i < names->len; i += strlen(all + i) + 1)
		if (strncmp(all + i, RUNS, strlen(RUNS)) == 0)
			return all + i;
	return NULL;
}

static void name_run(const struct tensorboard *t, char run[RUN_BYTES])
{
	const char *known = find_run(t->names), *slash;
	time_t seconds = (time_t)(t->first_ns / SECOND_NS);
	struct tm utc;

	slash = known ? strchr(known + strlen(RUNS), '/') : NULL;
	if (slash && slash - known < RUN_BYTES - 1) {
		memcpy(run, known, (size_t)(slash - known) + 1);
		run[slash - known + 1] = '\0';
	} else if (!gmtime_r(&seconds, &utc) || !strftime(run, RUN_BYTES, RUN_FORM, &utc)) {
		snprintf(run, RUN_BYTES, "%s", RUNS "run/");
	}
}

/* XSpaces and pieces of this call so far. */
static uint64_t count_spaces(const struct buf *names)
{
	const char *all = (const char *)names->data;
	uint64_t count = 0;

	for (size_t i = 0; i < names->len; i += strlen(all + i) + 1)
		count += strncmp(all + i, RUNS, strlen(RUNS)) == 0;
	return count;
}

/* What the run's name says, at most the process's own begin. */
static uint64_t origin_of(const struct tensorboard *t, const char *run)
{
	struct tm utc = { 0 };
	uint64_t ns;

	if (!strptime(run, RUN_FORM, &utc))
		return t->first_ns;
	ns = (uint64_t)timegm(&utc) * SECOND_NS;
	return ns < t->first_ns ? ns : t->first_ns;
}

/* run + file, with a NUL, that no other has; *file is where the file's own name begins. */
static enum status put_space_name(struct tensorboard *t, const char *run, size_t *at, size_t *file,
				  struct error *err)
{
	struct buf *names = t->names;
	unsigned more = 2;
	bool is_taken;

	*at = names->len;
	do {
		is_taken = false;
		names->len = *at;
		buf_put_text(names, run);
		*file = names->len;
		sink_put_file_name(&xspace_file, t->trace, t->process, t->first_ns, names);
		if (more > 2) { /* HOST-r0.2.xplane.pb */
			names->len -= strlen(".xplane.pb");
			buf_putf(names, ".%u.xplane.pb", more - 1);
		}
		buf_put_byte(names, 0);
		TRY(buf_status(names, err));
		for (size_t i = 0; i < *at; i += strlen((const char *)names->data + i) + 1)
			is_taken |= !strcmp((const char *)names->data + i,
					    (const char *)names->data + *at);
		more++;
	} while (is_taken);
	return ST_OK;
}

/*
 * A piece of a host's file: run + HOST.FIRST-END-PLACE.part, by the numbers of its GPUs and its
 * place there; the roof makes one file of them.  What went before is told by the names.
 */
static enum status put_part_name(struct tensorboard *t, const char *run, size_t *at, size_t *file,
				 struct error *err)
{
	struct buf *names = t->names;
	struct tb_space *s = t->space;
	size_t len;

	*at = names->len;
	buf_put_text(names, run);
	*file = names->len;
	sink_put_file_name(&node_file, t->trace, t->process, t->first_ns, names);
	buf_put_byte(names, '.');
	TRY(buf_status(names, err));
	len = names->len - *at;
	for (const char *all = (const char *)names->data, *n = all; n < all + *at;
	     n += strlen(n) + 1) {
		unsigned first, end, place;
		int read = 0;

		if (strncmp(n, all + *at, len) != 0 ||
		    sscanf(n + len, "%u-%u-%u.part%n", &first, &end, &place, &read) != 3 ||
		    !read || n[len + (size_t)read])
			continue;
		s->first_device = end;
		s->rank_at++;
	}
	s->is_part = true;
	buf_putf(names, "%u-%u-%u.part", s->first_device, s->first_device + tb_space_devices(s),
		 s->rank_at);
	buf_put_byte(names, 0);
	return buf_status(names, err);
}

/* Ranks of a file count from one instant: one that began a little earlier has room. */
static enum status node_origin(const struct tensorboard *t, const char *run, uint64_t *origin_ns,
			       struct error *err)
{
	struct tm utc = { 0 };

	*origin_ns = t->first_ns;
	if (!strptime(run, RUN_FORM, &utc))
		return ST_OK;
	*origin_ns = (uint64_t)timegm(&utc) * SECOND_NS - NODE_LEAD_S * SECOND_NS;
	if (*origin_ns <= t->first_ns)
		return ST_OK;
	return fail(err, ST_USAGE, NOWHERE, "--per-node: a rank began more than %d s before the "
		    "first one; name it first, or leave --per-node out", (int)NODE_LEAD_S);
}

static enum status write_part(struct tensorboard *t, struct error *err)
{
	char run[RUN_BYTES], *host;
	enum status status;
	uint64_t origin_ns;
	size_t at, file;

	name_run(t, run);
	t->space->call_at = count_spaces(t->names);
	TRY(node_origin(t, run, &origin_ns, err));
	TRY(put_part_name(t, run, &at, &file, err));
	TRY(out_begin(t->out, (const char *)t->names->data + at, err));
	host = strdup((const char *)t->names->data + file);
	if (!host)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a host's name");
	*strrchr(host, '.') = '\0'; /* part */
	*strrchr(host, '.') = '\0'; /* its numbers */
	status = tb_space_write(t->space, host, origin_ns, err);
	free(host);
	return status;
}

static enum status write_space(struct tensorboard *t, struct error *err)
{
	char run[RUN_BYTES], *host;
	enum status status;
	size_t at, file;

	name_run(t, run);
	t->space->call_at = count_spaces(t->names);
	TRY(put_space_name(t, run, &at, &file, err));
	TRY(out_begin(t->out, (const char *)t->names->data + at, err));
	host = strdup((const char *)t->names->data + file);
	if (!host)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a host's name");
	host[strlen(host) - strlen(".xplane.pb")] = '\0';
	status = tb_space_write(t->space, host, origin_of(t, run), err);
	free(host);
	return status;
}

static enum status tensorboard_close(struct sink *s, struct error *err)
{
	struct tensorboard *t = (struct tensorboard *)s;

	if (!t->started)
		TRY(start(t, 0, err));
	TRY(t->chrome->type->close(t->chrome, err));
	TRY(t->request.is_per_node ? write_part(t, err) : write_space(t, err));
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

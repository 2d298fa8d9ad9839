/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One archive to send or keep: the log of all inputs, packed as -t log does; the report on it, made
 * by the roof; a manifest with SHA-256 checksums.  Every Tacho tool reads it again.
 *
 * An archive wants a member's size before its bytes, so the log waits in a scratch file.
 */
#include "convert/bundle_archive.h"
#include "convert/out.h"
#include "convert/sink.h"
#include "convert/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char log_name[] = "trace.tacho";

struct bundle_sink {
	struct sink base;
	struct sink_request own; /* of `log`: as ours, with its own output */
	struct out *out, *log_out;
	struct sink *log;
	struct bundle *bundle;
	char *scratch; /* path of the log */
};

static void bundle_sink_free(struct sink *sink)
{
	struct bundle_sink *b = (struct bundle_sink *)sink;

	if (!b)
		return;
	if (b->log)
		b->log->type->free(b->log);
	out_free(b->log_out);
	bundle_free(b->bundle);
	if (b->scratch)
		unlink(b->scratch);
	temporary_forget(b->scratch);
	free(b->scratch);
	free(b);
}

static enum status make_scratch(struct bundle_sink *b, const char *folder, struct error *err)
{
	int fd;

	if (asprintf(&b->scratch, "%s/tacho-XXXXXX", folder ? folder : "/tmp") < 0) {
		b->scratch = NULL;
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a file's name");
	}
	fd = mkostemp(b->scratch, O_CLOEXEC);
	if (fd < 0)
		return fail(err, ST_IO, NOWHERE, "no scratch file in %s: %s",
			    folder ? folder : "/tmp", strerror(errno));
	temporary_note(b->scratch);
	close(fd);
	return ST_OK;
}

static enum status open_log(struct bundle_sink *b, const struct sink_request *req,
			    struct error *err)
{
	TRY(bundle_new(&b->bundle, b->out, err));
	TRY(make_scratch(b, req->budget->scratch, err));
	TRY(out_open(&b->log_out, b->scratch, false, err));
	b->own = *req;
	b->own.out = b->log_out;
	return sink_log.open(&b->log, &b->own, err);
}

static enum status bundle_sink_open(struct sink **out, const struct sink_request *req,
				    struct error *err)
{
	struct bundle_sink *b = calloc(1, sizeof(*b));
	enum status st;

	*out = NULL;
	if (!b)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a bundle");
	b->base.type = &sink_bundle;
	b->out = req->out;
	st = open_log(b, req, err);
	if (st != ST_OK) {
		bundle_sink_free(&b->base);
		return st;
	}
	*out = &b->base;
	return ST_OK;
}

static enum status bundle_sink_put(struct sink *sink, const struct event *events, size_t count,
				   struct error *err)
{
	struct bundle_sink *b = (struct bundle_sink *)sink;

	TRY(b->log->type->put(b->log, events, count, err));
	b->base.written = b->log->written;
	return ST_OK;
}

static enum status bundle_sink_close(struct sink *sink, struct error *err)
{
	struct bundle_sink *b = (struct bundle_sink *)sink;

	TRY(b->log->type->close(b->log, err));
	TRY(out_commit(b->log_out, err));
	TRY(bundle_put_file(b->bundle, log_name, b->scratch, err));
	for (size_t i = 0; i < b->own.paper_count; i++) {
		const struct sink_paper *p = &b->own.papers[i];

		TRY(bundle_put(b->bundle, p->name, p->bytes, p->len, err));
	}
	return bundle_finish(b->bundle, b->base.written, err);
}

const struct sink_type sink_bundle = {
	.name = "bundle",
	.help = "log, report and checksums in one .tar.zst, .tar.gz or .zip",
	.scope = SINK_WHOLE,
	.is_binary = true,
	.wants_report = true,
	.open = bundle_sink_open,
	.put = bundle_sink_put,
	.close = bundle_sink_close,
	.free = bundle_sink_free,
};

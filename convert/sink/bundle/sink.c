/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One archive to send or keep: the log of all inputs, packed as -t log does; the report on it, made
 * by the command line; a manifest with SHA-256 checksums.  Every Tacho tool reads it again.
 *
 * An archive wants a member's size before its bytes, so the log waits in a scratch file.
 */
#include "convert/sink/bundle/archive.h"
#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "convert/base/temporary.h"
#include "convert/sink/sink_list.h"

#include <stdlib.h>

static const char log_name[] = "trace.tacho";

struct bundle_sink {
	struct sink base;
	struct sink_request own; /* of `log`: as ours, but for its own output */
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
	out_free(b->own.out);
	bundle_free(b->bundle);
	temporary_remove(&b->scratch);
	free(b);
}

static enum status bundle_sink_open(struct sink **out, const struct sink_request *req,
				    struct error *err)
{
	struct bundle_sink *b = calloc(1, sizeof(*b));
	const char *folder = req->budget->scratch ? req->budget->scratch : "/tmp";
	enum status st;

	*out = NULL;
	if (!b)
		return fail_memory(err);
	b->base.type = &sink_bundle;
	b->own = *req;
	b->own.out = NULL;
	st = bundle_new(&b->bundle, req->out, err);
	if (st == ST_OK)
		st = temporary_make(&b->scratch, folder, err);
	if (st == ST_OK)
		st = out_open(&b->own.out, b->scratch, false, err);
	if (st == ST_OK)
		st = sink_log.open(&b->log, &b->own, err);
	if (st != ST_OK) {
		bundle_sink_free(&b->base);
		return st;
	}
	*out = &b->base;
	return ST_OK;
}

static enum status bundle_sink_put(struct sink *sink, const struct batch *batch, struct error *err)
{
	struct bundle_sink *b = (struct bundle_sink *)sink;

	TRY(b->log->type->put(b->log, batch, err));
	b->base.written = b->log->written;
	return ST_OK;
}

static enum status bundle_sink_close(struct sink *sink, struct error *err)
{
	struct bundle_sink *b = (struct bundle_sink *)sink;

	TRY(b->log->type->close(b->log, err));
	TRY(out_commit(b->own.out, err));
	TRY(bundle_put_file(b->bundle, log_name, b->scratch, err));
	for (size_t i = 0; i < b->own.attachment_count; i++) {
		const struct sink_attachment *p = &b->own.attachments[i];

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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One archive to send or keep: the log of all inputs, compressed as by -t log; the report on it,
 * which the command line makes; and a manifest with SHA-256 checksums.  Every Tacho tool can read
 * it.
 *
 * An archive requires a member's size before its bytes, so the log waits in a scratch file.
 */
#include "convert/sink/bundle/internal.h"
#include "convert/output/output.h"
#include "convert/base/temporary.h"
#include "convert/sink/sink.h"

static const char log_name[] = "trace.tacho";

struct bundle_sink {
	struct sink base;
	struct sink_request request; /* request of `log`: like ours, but with its own output */
	struct sink *log;
	struct bundle *bundle;
	char *scratch; /* path of the log */
};

static enum status bundle_open(struct sink *sink, const struct sink_request *req, struct error *err)
{
	struct bundle_sink *b = (struct bundle_sink *)sink;
	const char *folder = req->budget->scratch ? req->budget->scratch : "/tmp";

	b->request = *req;
	b->request.out = NULL;
	TRY(bundle_new(&b->bundle, req->out, err));
	TRY(temporary_make(&b->scratch, folder, err));
	TRY(out_open(&b->request.out, b->scratch, false, err));
	return sink_open(&b->log, &sink_log, &b->request, err);
}

static enum status bundle_put_batch(struct sink *sink, const struct batch *batch, struct error *err)
{
	struct bundle_sink *b = (struct bundle_sink *)sink;

	TRY(sink_put(b->log, batch, err));
	sink->written = b->log->written;
	return ST_OK;
}

static enum status bundle_close(struct sink *sink, struct error *err)
{
	struct bundle_sink *b = (struct bundle_sink *)sink;

	TRY(sink_close(b->log, err));
	TRY(out_commit(b->request.out, err));
	TRY(bundle_put_file(b->bundle, log_name, b->scratch, err));
	for (size_t i = 0; i < b->request.attachment_count; i++) {
		const struct sink_attachment *p = &b->request.attachments[i];

		TRY(bundle_put(b->bundle, p->name, p->bytes, p->len, err));
	}
	return bundle_finish(b->bundle, sink->written, err);
}

static void bundle_release(struct sink *sink)
{
	struct bundle_sink *b = (struct bundle_sink *)sink;

	sink_free(b->log);
	out_free(b->request.out);
	bundle_free(b->bundle);
	temporary_remove(&b->scratch);
}

const struct sink_type sink_bundle = {
	.name = "bundle",
	.help = "log, report and checksums in one .tar.zst, .tar.gz or .zip",
	.scope = SINK_WHOLE,
	.is_binary = true,
	.wants_report = true,
	.size = sizeof(struct bundle_sink),
	.open = bundle_open,
	.put = bundle_put_batch,
	.close = bundle_close,
	.release = bundle_release,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's Chrome JSON, as Kineto has written it since 2021: {"traceEvents": [...], ...} or the
 * array alone.  It is in no order and its base time may stand last, so it is read once to its end,
 * through a spool.
 */
#include "convert/input/input.h"
#include "convert/source/kineto/import.h"

static int kineto_bid(const uint8_t *head, size_t len)
{
	size_t i;

	if (!json_begins(head, len, &i))
		return 0;
	if (head[i] == '[')
		return head_has(head, len, "\"ph\"") ? 80 : 10;
	if (head_has(head, len, "\"traceEvents\""))
		return 90;
	return head_has(head, len, "\"schemaVersion\"") ||
			       head_has(head, len, "\"distributedInfo\"") ||
			       head_has(head, len, "\"deviceProperties\"")
		       ? 70
		       : 20;
}

static enum status import(struct spool_source *s, struct kineto_import *k, struct input *in,
			  struct error *err)
{
	TRY(kineto_import_read(k, in, &s->fault, err));
	spool_source_clock(s, k->head.base_ns, k->to.first_ns);
	TRY(kineto_import_finish(k, input_path(in), err));
	trace_provenance(s->trace)->is_synthetic = k->head.is_synthetic;
	return import_provenance(&k->to, "Kineto JSON", &s->fault, err);
}

static enum status kineto_read(struct spool_source *s, struct input *in, const struct budget *left,
			       struct error *err)
{
	struct kineto_import k;
	enum status status;

	if (left->threads)
		input_read_ahead(in);
	TRY(spool_source_process(s, input_path(in), err));
	status = kineto_import_init(&k, s->trace, s->spool, s->process, err);
	if (status == ST_OK)
		status = import(s, &k, in, err);
	kineto_import_release(&k);
	return status;
}

static const struct spool_reader reader = { .own_bytes = 4 << 20,
					    .spools = 1,
					    .read = kineto_read };

const struct source_type source_kineto = {
	.name = "kineto",
	.help = "PyTorch profiler, Chrome JSON of Kineto or Cuspy (.pt.trace.json, .gz)",
	.bid = kineto_bid,
	.spooled = &reader,
	.next = spool_source_next,
	.close = spool_source_close,
};

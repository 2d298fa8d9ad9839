/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's Chrome JSON, as Kineto has written it since 2021: {"traceEvents": [...], ...} or the
 * bare array.  It is in no order and its base time may stand last, so it is read once to its end,
 * through a spool.
 */
#include "convert/input.h"
#include "convert/json/walk.h"
#include "convert/kineto/import.h"
#include "convert/spool/source.h"

static bool has(const uint8_t *head, size_t len, const char *text)
{
	return memmem(head, len, text, strlen(text)) != NULL;
}

static int kineto_bid(const uint8_t *head, size_t len)
{
	size_t i = len >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (i < len && (head[i] == ' ' || (head[i] >= '\t' && head[i] <= '\r')))
		i++;
	if (i == len || (head[i] != '{' && head[i] != '['))
		return 0;
	if (head[i] == '[')
		return has(head, len, "\"ph\"") ? 80 : 10;
	if (has(head, len, "\"traceEvents\""))
		return 90;
	return has(head, len, "\"schemaVersion\"") || has(head, len, "\"distributedInfo\"") ||
			       has(head, len, "\"deviceProperties\"")
		       ? 70
		       : 20;
}

static enum status fill_provenance(struct spool_source *s, const struct kineto_import *k,
				   struct error *err)
{
	struct provenance *p = trace_provenance(s->trace);

	p->format = trace_name(s->trace, "Kineto JSON", 11, err);
	if (!p->format)
		return err->status;
	p->is_whole = s->fault.status == ST_OK;
	p->is_synthetic = k->head.is_synthetic;
	p->events += k->events;
	return ST_OK;
}

static enum status import(struct spool_source *s, struct kineto_import *k, struct input *in,
			  struct error *err)
{
	TRY(kineto_import_read(k, in, &s->fault, err));
	spool_source_clock(s, k->head.base_ns, k->first_ns);
	TRY(kineto_import_finish(k, input_path(in), err));
	return fill_provenance(s, k, err);
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

static enum status kineto_open(struct source **out, struct input *in, struct trace *trace,
			       const struct budget *budget, const struct cut *wanted,
			       struct error *err)
{
	static const struct spool_plan plan = {
		.type = &source_kineto, .what = "a Kineto source", .own_bytes = 4 << 20,
		.spools = 1, .read = kineto_read,
	};

	(void)wanted; /* launches outside a cut are needed to place work inside */
	return spool_source_open(out, &plan, in, trace, budget, err);
}

const struct source_type source_kineto = {
	.name = "kineto",
	.help = "PyTorch profiler, Chrome JSON of Kineto (.pt.trace.json, .gz)",
	.bid = kineto_bid,
	.open = kineto_open,
	.next = spool_source_next,
	.close = spool_source_close,
};

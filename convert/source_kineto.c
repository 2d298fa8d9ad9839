/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's Chrome JSON, as Kineto has written it since 2021: {"traceEvents": [...], ...} or the
 * bare array.  It is in no order and its base time may stand last, so it is read once to its end,
 * through a spool.
 */
#include "convert/input.h"
#include "convert/kineto_import.h"

#include <stdlib.h>

enum { OWN_BYTES = 4 << 20 }; /* of the opening budget: windows and tables of the reader */

/* Times from here on are taken to be since the epoch (microseconds since 2001-09-09). */
#define EPOCH_NS ((int64_t)1000000000000000000)

struct kineto_source {
	struct source base;
	struct trace *trace;
	struct spool *spool;
	uint64_t base_ns;
	uint32_t process;
	struct error fault; /* what ended the input; told behind the events */
};

/* Before and behind the events of one input. */
struct reader {
	struct kineto_source *source;
	struct kineto_import import;
	struct json_scan scan;
	bool has_events; /* "traceEvents", or an array */
};

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

/* `input`: the fault is the input's, and what came before it counts. */
struct outcome {
	enum status status;
	bool input;
};

static struct outcome of_input(enum status status)
{
	return (struct outcome){ status, status == ST_FORMAT || status == ST_CUT ||
					     status == ST_CEILING || status == ST_IO };
}

static struct outcome of_house(enum status status)
{
	return (struct outcome){ status, false };
}

static struct outcome read_events(struct reader *r, struct error *err)
{
	bool end = false;
	enum status status;

	r->has_events = true;
	for (;;) {
		status = kineto_event_next(&r->import.event, &r->scan, &end, err);
		if (status != ST_OK || end)
			return of_input(status);
		status = kineto_import_event(&r->import, err);
		if (status != ST_OK)
			return of_house(status);
	}
}

/* A key of the top level that has no events, with its value; *key JSON_OBJECT_END: the last. */
static struct outcome read_key(struct reader *r, struct json *key, struct error *err)
{
	enum status status;
	struct json value;

	do {
		json_hold(&r->scan);
		status = json_next(&r->scan, key, err);
		if (status != ST_OK || key->type == JSON_OBJECT_END)
			return of_input(status);
		status = json_next(&r->scan, &value, err);
		if (status == ST_OK && value.type == JSON_ARRAY && kineto_is(key, "traceEvents")) {
			json_release(&r->scan);
			return read_events(r, err);
		}
		if (status == ST_OK)
			status = json_raw(&r->scan, &value, err);
		if (status != ST_OK)
			return of_input(status);
	} while (json_again(&r->scan));
	return of_house(kineto_head_put(&r->import.head, key, &value, err));
}

static struct outcome read_all(struct reader *r, struct error *err)
{
	struct outcome outcome;
	struct json token;

	outcome = of_input(json_next(&r->scan, &token, err));
	if (outcome.status != ST_OK)
		return outcome;
	if (token.type == JSON_ARRAY) {
		outcome = read_events(r, err);
	} else if (token.type == JSON_OBJECT) {
		do
			outcome = read_key(r, &token, err);
		while (outcome.status == ST_OK && token.type != JSON_OBJECT_END);
	}
	if (outcome.status == ST_OK)
		outcome = of_input(json_next(&r->scan, &token, err)); /* nothing may follow */
	return outcome;
}

/* JSON that is no trace is refused; a trace that has a fault is read up to it. */
static enum status judge(struct reader *r, struct outcome outcome, struct error *err)
{
	if (outcome.status != ST_OK && (!outcome.input || !r->has_events))
		return outcome.status;
	if (outcome.status == ST_OK &&
	    (!r->has_events || (r->import.elements && !r->import.told)))
		return fail(err, ST_FORMAT, 0, "JSON, but no trace: it has no traceEvents");
	if (outcome.status != ST_OK)
		r->source->fault = *err;
	return ST_OK;
}

static enum status fill_provenance(struct reader *r, struct error *err)
{
	struct provenance *p = trace_provenance(r->source->trace);

	p->format = trace_name(r->source->trace, "Kineto JSON", 11, err);
	if (!p->format)
		return err->status;
	p->is_whole = r->source->fault.status == ST_OK;
	p->is_synthetic = r->import.head.is_synthetic;
	p->epoch_known = r->source->base_ns ||
			 (r->import.events && r->import.first_ns >= EPOCH_NS);
	p->events += r->import.events;
	return ST_OK;
}

static enum status read_input(struct reader *r, struct input *in, struct error *err)
{
	struct kineto_source *s = r->source;
	struct error fault = { 0 };
	struct outcome outcome;

	json_open(&r->scan, in);
	outcome = read_all(r, &fault);
	*err = fault;
	TRY(judge(r, outcome, err));
	s->base_ns = r->import.head.base_ns;
	TRY(kineto_import_finish(&r->import, input_path(in), err));
	return fill_provenance(r, err);
}

/* A row of its own, whatever else the trace holds; its true identity is known at the end. */
static enum status make_process(struct kineto_source *s, const struct input *in,
				struct error *err)
{
	const char *path = input_path(in);
	struct process p = { .rank = NO_RANK };

	p.host = trace_name(s->trace, path, strlen(path), err);
	if (!p.host)
		return err->status;
	s->process = trace_process(s->trace, &p, err);
	return s->process ? ST_OK : err->status;
}

static enum status open_source(struct kineto_source *s, struct input *in,
			       const struct budget *budget, struct error *err)
{
	struct budget left = *budget;
	struct reader *r = calloc(1, sizeof(*r));
	enum status status;

	if (!r)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a reader of Kineto JSON");
	r->source = s;
	left.opening = left.opening > 2 * OWN_BYTES ? left.opening - OWN_BYTES : left.opening / 2;
	status = make_process(s, in, err);
	if (status == ST_OK)
		status = spool_open(&s->spool, s->trace, &left, err);
	if (status == ST_OK) {
		status = kineto_import_init(&r->import, s->trace, s->spool, s->process, err);
		if (status == ST_OK)
			status = read_input(r, in, err);
		kineto_import_release(&r->import);
	}
	free(r);
	return status;
}

static void kineto_close(struct source *source)
{
	struct kineto_source *s = (struct kineto_source *)source;

	spool_close(s->spool);
	free(s);
}

static enum status kineto_open(struct source **out, struct input *in, struct trace *trace,
			       const struct budget *budget, const struct cut *wanted,
			       struct error *err)
{
	struct kineto_source *s = calloc(1, sizeof(*s));
	struct error own = { 0 };
	enum status status;

	(void)wanted; /* launches outside a cut are needed to place work inside */
	*out = NULL;
	if (!s)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a Kineto source");
	s->base.type = &source_kineto;
	s->trace = trace;
	status = open_source(s, in, budget, &own);
	if (status != ST_OK) {
		if (err)
			*err = own;
		kineto_close(&s->base);
		return status;
	}
	*out = &s->base;
	return ST_OK;
}

/* From the spool's clock to that of the epoch. */
static uint64_t to_epoch(struct kineto_source *s, uint64_t biased_ns, uint64_t *early)
{
	int64_t ns = (int64_t)(biased_ns - (uint64_t)KINETO_BIAS) + (int64_t)s->base_ns;

	*early += ns < 0;
	return ns < 0 ? 0 : (uint64_t)ns;
}

static enum status kineto_next(struct source *source, struct batch *out, struct error *err)
{
	struct kineto_source *s = (struct kineto_source *)source;
	uint64_t early = 0, ignored = 0;
	enum status status;
	uint32_t group;
	size_t i;

	status = spool_next(s->spool, &group, out, err);
	if (status == ST_END && s->fault.status != ST_OK) {
		if (err)
			*err = s->fault;
		return s->fault.status;
	}
	for (i = 0; status == ST_OK && i < out->count; i++) {
		out->events[i].begin_ns = to_epoch(s, out->events[i].begin_ns, &early);
		out->events[i].end_ns = to_epoch(s, out->events[i].end_ns, &ignored);
	}
	if (early)
		trace_lose(s->trace, s->process, LOSS_DAMAGED, early);
	return status;
}

const struct source_type source_kineto = {
	.name = "kineto",
	.help = "PyTorch profiler, Chrome JSON of Kineto (.pt.trace.json, .gz)",
	.bid = kineto_bid,
	.open = kineto_open,
	.next = kineto_next,
	.close = kineto_close,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome JSON that is not Kineto's: viztracer, TensorFlow, Chrome, Perfetto's legacy export, a
 * person's own script.  {"traceEvents": [...], ...} or the bare array, of which the closing bracket
 * may be missing, as the format allows.  Read once to its end, through a spool.
 */
#include "convert/input.h"
#include "convert/json_trace.h"

#include <stdlib.h>

enum { OWN_BYTES = 4 << 20 };

/* Times from here on are taken to be since the epoch (2001-09-09). */
#define EPOCH_NS ((int64_t)1000000000000000000)

struct chrome_source {
	struct source base;
	struct trace *trace;
	struct spool *spool;
	uint64_t base_ns;
	struct error fault; /* what ended the input; told behind the events */
};

struct reader {
	struct chrome_source *source;
	struct json_trace import;
	struct json_scan scan;
	bool has_events, is_bare; /* "traceEvents", or an array */
};

static bool has(const uint8_t *head, size_t len, const char *text)
{
	return memmem(head, len, text, strlen(text)) != NULL;
}

/* What Kineto writes and hardly anybody else. */
static bool is_kineto(const uint8_t *head, size_t len)
{
	static const char *const signs[] = {
		"\"schemaVersion\"", "\"distributedInfo\"", "\"deviceProperties\"", "\"cpu_op\"",
		"\"cuda_runtime\"", "\"cuda_driver\"", "\"kernel\"", "\"gpu_memcpy\"",
		"\"gpu_memset\"", "\"user_annotation\"", "\"gpu_user_annotation\"", "ProfilerStep#",
		"\"Operator\"", "\"Kernel\"", "\"Memcpy\"", "\"Runtime\"", "\"cuda_sync\"",
		"\"ac2g\"", "\"fwdbwd\"", "\"cpu_instant_event\"", "\"hip_runtime\"",
		"\"python_function\"", "\"record_shapes\"", "PyTorch Profiler", "\"[memory]\"",
	};

	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (has(head, len, signs[i]))
			return true;
	return false;
}

static int chrome_bid(const uint8_t *head, size_t len)
{
	size_t i = len >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (i < len && (head[i] == ' ' || (head[i] >= '\t' && head[i] <= '\r')))
		i++;
	if (i == len || (head[i] != '{' && head[i] != '['))
		return 0;
	if (has(head, len, "\"viztracer_metadata\""))
		return 96;
	if (!has(head, len, "\"ph\"") || (head[i] == '{' && !has(head, len, "\"traceEvents\"")))
		return 5;
	return is_kineto(head, len) ? 55 : 95;
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
		status = json_trace_event(&r->import, err);
		if (status != ST_OK)
			return of_house(status);
	}
}

/* A key of the top level with its value; *key JSON_OBJECT_END: the last. */
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
	return of_house(json_trace_key(&r->import, key, &value, err));
}

/* The format lets writers leave out the last bracket of a bare array; a packed file that is cut off
 * is another matter. */
static bool may_end_here(const struct reader *r, const struct outcome *o)
{
	const uint8_t *bytes;
	size_t len;

	return r->is_bare && o->status == ST_CUT && o->input && r->scan.depth == 1 &&
	       input_peek(r->scan.in, 1, &bytes, &len, NULL) == ST_OK;
}

static struct outcome read_all(struct reader *r, struct error *err)
{
	struct outcome outcome;
	struct json token;

	outcome = of_input(json_next(&r->scan, &token, err));
	if (outcome.status != ST_OK)
		return outcome;
	r->is_bare = token.type == JSON_ARRAY;
	if (r->is_bare) {
		outcome = read_events(r, err);
		if (may_end_here(r, &outcome))
			return of_house(ST_OK);
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

	p->format = trace_name(r->source->trace, "Chrome JSON", 11, err);
	if (!p->format)
		return err->status;
	p->is_whole = r->source->fault.status == ST_OK;
	p->epoch_known = r->source->base_ns ||
			 (r->import.events && r->import.first_ns >= EPOCH_NS);
	p->events += r->import.events;
	return ST_OK;
}

static enum status read_input(struct reader *r, struct input *in, struct error *err)
{
	struct error fault = { 0 };
	struct outcome outcome;

	json_open(&r->scan, in);
	outcome = read_all(r, &fault);
	*err = fault;
	TRY(judge(r, outcome, err));
	r->source->base_ns = r->import.base_ns;
	TRY(json_trace_finish(&r->import, err));
	return fill_provenance(r, err);
}

static enum status open_source(struct chrome_source *s, struct input *in,
			       const struct budget *budget, struct error *err)
{
	struct budget left = *budget;
	struct reader *r = calloc(1, sizeof(*r));
	enum status status;

	if (!r)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a reader of Chrome JSON");
	r->source = s;
	left.opening = left.opening > 2 * OWN_BYTES ? left.opening - OWN_BYTES : left.opening / 2;
	left.opening /= 2; /* events, and pairs that are not joined yet */
	status = spool_open(&s->spool, s->trace, &left, err);
	if (status == ST_OK) {
		status = json_trace_init(&r->import, s->trace, s->spool, &left, input_path(in),
					 err);
		if (status == ST_OK)
			status = read_input(r, in, err);
		json_trace_release(&r->import);
	}
	free(r);
	return status;
}

static void chrome_close(struct source *source)
{
	struct chrome_source *s = (struct chrome_source *)source;

	spool_close(s->spool);
	free(s);
}

static enum status chrome_open(struct source **out, struct input *in, struct trace *trace,
			       const struct budget *budget, const struct cut *wanted,
			       struct error *err)
{
	struct chrome_source *s = calloc(1, sizeof(*s));
	struct error own = { 0 };
	enum status status;

	(void)wanted;
	*out = NULL;
	if (!s)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a source of Chrome JSON");
	s->base.type = &source_chrome;
	s->trace = trace;
	status = open_source(s, in, budget, &own);
	if (status != ST_OK) {
		if (err)
			*err = own;
		chrome_close(&s->base);
		return status;
	}
	*out = &s->base;
	return ST_OK;
}

/* From the spool's clock to that of the epoch. */
static uint64_t to_epoch(const struct chrome_source *s, uint64_t biased_ns, uint64_t *early)
{
	int64_t ns = (int64_t)(biased_ns - (uint64_t)JSON_TRACE_BIAS) + (int64_t)s->base_ns;

	*early += ns < 0;
	return ns < 0 ? 0 : (uint64_t)ns;
}

static enum status chrome_next(struct source *source, struct batch *out, struct error *err)
{
	struct chrome_source *s = (struct chrome_source *)source;
	uint64_t early = 0, ignored = 0;
	uint32_t group;
	enum status status = spool_next(s->spool, &group, out, err);

	if (status == ST_END && s->fault.status != ST_OK) {
		if (err)
			*err = s->fault;
		return s->fault.status;
	}
	for (size_t i = 0; status == ST_OK && i < out->count; i++) {
		out->events[i].begin_ns = to_epoch(s, out->events[i].begin_ns, &early);
		out->events[i].end_ns = to_epoch(s, out->events[i].end_ns, &ignored);
	}
	if (early)
		trace_lose(s->trace, 0, LOSS_DAMAGED, early);
	return status;
}

const struct source_type source_chrome = {
	.name = "chrome",
	.help = "other Chrome JSON: viztracer, TensorFlow, Chrome, Perfetto's legacy export",
	.bid = chrome_bid,
	.open = chrome_open,
	.next = chrome_next,
	.close = chrome_close,
};

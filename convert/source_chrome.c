/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome JSON that is not Kineto's: viztracer, TensorFlow, Chrome, Perfetto's legacy export, a
 * person's own script.  {"traceEvents": [...], ...} or the bare array, of which the closing bracket
 * may be missing, as the format allows.  Read once to its end, through a spool.
 */
#include "convert/input.h"
#include "convert/json/trace.h"
#include "convert/json/walk.h"
#include "convert/spool/source.h"

#include <stdlib.h>

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

static enum status take_event(void *self, struct error *err)
{
	return json_trace_event(self, err);
}

static enum status take_key(void *self, const struct json *key, const struct json *value,
			    struct error *err)
{
	return json_trace_key(self, key, value, err);
}

static enum status fill_provenance(struct spool_source *s, const struct json_trace *j,
				   struct error *err)
{
	struct provenance *p = trace_provenance(s->trace);

	p->format = trace_name(s->trace, "Chrome JSON", 11, err);
	if (!p->format)
		return err->status;
	p->is_whole = s->fault.status == ST_OK;
	p->events += j->events;
	return ST_OK;
}

static enum status import(struct spool_source *s, struct json_trace *j, struct input *in,
			  struct error *err)
{
	struct json_walk *w = calloc(1, sizeof(*w));
	enum status status;

	if (!w)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a reader of Chrome JSON");
	w->self = j;
	w->event = &j->event;
	w->take_event = take_event;
	w->take_key = take_key;
	w->may_stay_open = true;
	status = json_walk(w, in, &s->fault, err);
	free(w);
	TRY(status);
	spool_source_clock(s, j->base_ns, j->first_ns);
	TRY(json_trace_finish(j, err));
	return fill_provenance(s, j, err);
}

static enum status chrome_read(struct spool_source *s, struct input *in, const struct budget *left,
			       struct error *err)
{
	struct json_trace j;
	enum status status;

	if (left->threads)
		input_read_ahead(in);
	status = json_trace_init(&j, s->trace, s->spool, left, input_path(in), err);
	if (status == ST_OK)
		status = import(s, &j, in, err);
	json_trace_release(&j);
	return status;
}

static enum status chrome_open(struct source **out, struct input *in, struct trace *trace,
			       const struct budget *budget, const struct cut *wanted,
			       struct error *err)
{
	static const struct spool_plan plan = {
		.type = &source_chrome, .what = "a source of Chrome JSON", .own_bytes = 4 << 20,
		.spools = 2, /* events, and pairs that are not joined yet */
		.read = chrome_read,
	};

	(void)wanted;
	return spool_source_open(out, &plan, in, trace, budget, err);
}

const struct source_type source_chrome = {
	.name = "chrome",
	.help = "other Chrome JSON: viztracer, TensorFlow, Chrome, Perfetto's legacy export",
	.bid = chrome_bid,
	.open = chrome_open,
	.next = spool_source_next,
	.close = spool_source_close,
};

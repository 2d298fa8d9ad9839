/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome JSON that is not Kineto's: viztracer, TensorFlow, Chrome, Perfetto's legacy export, a
 * person's own script.  {"traceEvents": [...], ...} or the array alone, of which the closing
 * bracket may be missing, as the format allows.  Read once to its end, through a spool.
 */
#include "convert/input/input.h"
#include "convert/source/chrome/import.h"
#include "convert/source/kineto/document.h"
#include "convert/source/source_list.h"
#include "convert/source/spooled.h"

/* What Kineto writes and hardly anybody else. */
static bool is_kineto(const uint8_t *head, size_t len)
{
	static const char *const signs[] = { "\"schemaVersion\"",
					     "\"distributedInfo\"",
					     "\"deviceProperties\"",
					     "\"cpu_op\"",
					     "\"cuda_runtime\"",
					     "\"cuda_driver\"",
					     "\"kernel\"",
					     "\"gpu_memcpy\"",
					     "\"gpu_memset\"",
					     "\"user_annotation\"",
					     "\"gpu_user_annotation\"",
					     "ProfilerStep#",
					     "\"Operator\"",
					     "\"Kernel\"",
					     "\"Memcpy\"",
					     "\"Runtime\"",
					     "\"cuda_sync\"",
					     "\"ac2g\"",
					     "\"fwdbwd\"",
					     "\"cpu_instant_event\"",
					     "\"hip_runtime\"",
					     "\"python_function\"",
					     "\"record_shapes\"",
					     "PyTorch Profiler",
					     "\"[memory]\"" };

	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (head_has(head, len, signs[i]))
			return true;
	return false;
}

static int chrome_bid(const uint8_t *head, size_t len)
{
	size_t i;

	if (!json_begins(head, len, &i))
		return 0;
	if (head_has(head, len, "\"viztracer_metadata\""))
		return 96;
	if (!head_has(head, len, "\"ph\"") ||
	    (head[i] == '{' && !head_has(head, len, "\"traceEvents\"")))
		return 5;
	return is_kineto(head, len) ? 55 : 95;
}

static enum status take_event(void *self, struct error *err)
{
	return chrome_import_event(self, err);
}

static enum status take_key(void *self, const struct json *key, const struct json *value,
			    struct error *err)
{
	return chrome_import_key(self, key, value, err);
}

static enum status import(struct spool_source *s, struct chrome_import *j, struct input *in,
			  struct error *err)
{
	struct json_walk walk = { .self = j,
				  .event = &j->event,
				  .take_event = take_event,
				  .take_key = take_key,
				  .may_stay_open = true };

	TRY(json_walk(&walk, in, &s->fault, err));
	spool_source_clock(s, j->base_ns, j->to.first_ns);
	TRY(chrome_import_finish(j, err));
	return import_provenance(&j->to, "Chrome JSON", &s->fault, err);
}

static enum status chrome_read(struct spool_source *s, struct input *in, const struct budget *left,
			       struct error *err)
{
	struct chrome_import j;
	enum status status;

	if (left->threads)
		input_read_ahead(in);
	status = chrome_import_init(&j, s->trace, s->spool, left, input_path(in), err);
	if (status == ST_OK)
		status = import(s, &j, in, err);
	chrome_import_release(&j);
	return status;
}

static const struct spool_reader reader = {
	.own_bytes = 4 << 20,
	.spools = 2, /* events, and pairs that are not matched yet */
	.read = chrome_read,
};

const struct source_type source_chrome = {
	.name = "chrome",
	.help = "other Chrome JSON: viztracer, TensorFlow, Chrome, Perfetto's legacy export",
	.bid = chrome_bid,
	.spooled = &reader,
	.next = spool_source_next,
	.close = spool_source_close,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/head.h"

#include "convert/source/kineto/event.h"
#include "schemas/model/records.h"

enum { HEAD_BYTES = 1 << 20 };

#define BASE_MOST ((uint64_t)1 << 62) /* 2116, in nanoseconds */

enum status kineto_head_init(struct kineto_head *h, struct kineto_args *args, struct error *err)
{
	struct trace *trace = args->to->trace;
	struct attr imported = { .type = ATTR_TEXT, .key = trace_name(trace, ".imported", 9, err) };

	*h = (struct kineto_head){ .args = args, .rank = NO_RANK };
	buf_init(&h->attrs, HEAD_BYTES);
	buf_init(&h->devices, HEAD_BYTES);
	imported.bits = imported.key ? trace_name(trace, "kineto", 6, err) : 0;
	if (!imported.bits)
		return err->status;
	buf_put(&h->attrs, &imported, sizeof(imported));
	return ST_OK;
}

void kineto_head_release(struct kineto_head *h)
{
	buf_release(&h->attrs);
	buf_release(&h->devices);
}

static bool small_number(const struct json *value, uint32_t *out)
{
	uint64_t v;

	if (value->type != JSON_NUMBER || !json_u64(value->text, value->len, &v) || v >= NO_RANK)
		return false;
	*out = (uint32_t)v;
	return true;
}

/* "distributedInfo": {"rank": 1, "world_size": 2, ...}; the scanner has checked the text. */
static enum status take_distributed(struct kineto_head *h, const struct json *value,
				    struct error *err)
{
	struct json_scan s;
	struct json key, v;

	json_open_text(&s, value->text, value->len);
	TRY(json_next(&s, &key, err));
	if (key.type != JSON_OBJECT)
		return ST_OK;
	for (;;) {
		TRY(json_next(&s, &key, err));
		if (key.type != JSON_KEY)
			return ST_OK;
		TRY(json_next(&s, &v, err));
		if (kineto_is(&key, "rank"))
			small_number(&v, &h->rank);
		else if (kineto_is(&key, "world_size"))
			small_number(&v, &h->world_size);
		TRY(json_skip(&s, &v, err));
	}
}

/* One object of "deviceProperties": all but its id and name are constants of the device. */
static enum status take_device(struct kineto_head *h, struct json_scan *s, struct buf *attrs,
			       struct error *err)
{
	struct device d = { .id = (uint32_t)(h->devices.len / sizeof(d)) };
	struct kineto_member m;

	buf_clear(attrs);
	for (;;) {
		TRY(json_next(s, &m.key, err));
		if (m.key.type != JSON_KEY)
			break;
		TRY(json_next(s, &m.value, err));
		TRY(json_raw(s, &m.value, err));
		if (kineto_is(&m.key, "id") && small_number(&m.value, &d.id))
			continue;
		if (kineto_is(&m.key, "name") && m.value.type == JSON_STRING) {
			d.name = kineto_name(h->args, &m.value, err);
			if (!d.name)
				return err->status;
			continue;
		}
		TRY(kineto_attr_append(h->args, attrs, &m.key, &m.value, err));
	}
	d.schema = kineto_schema_of(h->args->to->trace, attrs, err);
	if (attrs->len && !d.schema)
		return err->status;
	buf_put(&h->devices, &d, sizeof(d));
	return buf_status(&h->devices, err);
}

static enum status take_devices(struct kineto_head *h, const struct json *value, struct error *err)
{
	enum status status = ST_OK;
	struct json_scan s;
	struct json token;
	struct buf attrs;

	json_open_text(&s, value->text, value->len);
	json_hold(&s);
	TRY(json_next(&s, &token, err));
	buf_init(&attrs, HEAD_BYTES);
	while (status == ST_OK) {
		status = json_next(&s, &token, err);
		if (status != ST_OK || token.type == JSON_ARRAY_END)
			break;
		if (token.type == JSON_OBJECT)
			status = take_device(h, &s, &attrs, err);
		else
			status = json_skip(&s, &token, err);
	}
	buf_release(&attrs);
	return status;
}

static enum status take_key(struct kineto_head *h, const struct json *key, const struct json *value,
			    struct error *err)
{
	if (kineto_is(key, "deviceProperties") && value->type == JSON_ARRAY) {
		TRY(take_devices(h, value, err));
		if (h->devices.len)
			return ST_OK;
	}
	if (kineto_is(key, "distributedInfo"))
		TRY(take_distributed(h, value, err));
	if (kineto_is(key, "baseTimeNanoseconds") &&
	    (value->type != JSON_NUMBER || !json_u64(value->text, value->len, &h->base_ns) ||
	     h->base_ns >= BASE_MOST)) {
		h->base_ns = 0;
		h->damaged++;
	}
	if (kineto_is(key, "synthetic"))
		h->is_synthetic = value->type == JSON_TRUE || kineto_is(value, "true") ||
				  (value->type == JSON_NUMBER && value->text[0] == '1');
	if (kineto_is(key, "host_name") && value->type == JSON_STRING) {
		h->host = kineto_name(h->args, value, err);
		if (!h->host)
			return err->status;
	}
	return kineto_attr_append(h->args, &h->attrs, key, value, err);
}

enum status kineto_head_put(struct kineto_head *h, const struct json *key, const struct json *value,
			    struct error *err)
{
	h->args->repairs = 0;
	TRY(take_key(h, key, value, err));
	h->damaged += h->args->repairs > 0;
	return ST_OK;
}

/*
 * The host in HOST_PID.TIME.pt.trace.json, as PyTorch's TensorBoard handler names its files; a
 * name of another form has none.
 */
static size_t host_of_name(const char *name)
{
	const char *end = strstr(name, ".pt.trace.json"), *p;

	if (!end)
		return 0;
	p = end;
	while (p > name && (unsigned)(p[-1] - '0') < 10)
		p--;
	if (p < end && p > name && p[-1] == '.')
		end = p - 1;
	p = end;
	while (p > name && (unsigned)(p[-1] - '0') < 10)
		p--;
	return p < end && p > name + 1 && p[-1] == '_' ? (size_t)(p - 1 - name) : 0;
}

enum status kineto_head_finish(struct kineto_head *h, uint32_t process, uint32_t pid,
			       uint32_t command, const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct process p = { .host = h->host,
			     .command = command,
			     .pid = pid,
			     .rank = h->rank,
			     .world_size = h->world_size };
	struct trace *trace = h->args->to->trace;
	size_t host = host_of_name(name);

	if (!p.host && host && !(p.host = trace_name(trace, name, host, err)))
		return err->status;
	p.schema = kineto_schema_of(trace, &h->attrs, err);
	if (!p.schema)
		return err->status;
	trace_set_process(trace, process, &p);
	for (size_t i = 0; i < h->devices.len / sizeof(struct device); i++) {
		struct device d;

		memcpy(&d, h->devices.data + i * sizeof(d), sizeof(d));
		d.process = process;
		if (!trace_device(trace, &d, err))
			return err->status;
	}
	return ST_OK;
}

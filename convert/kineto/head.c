/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/kineto/head.h"

#include "convert/kineto/event.h"
#include "schemas/records.h"

enum { HEAD_BYTES = 1 << 20 };

#define BASE_MOST ((uint64_t)1 << 62) /* 2116, in nanoseconds */

enum status kineto_head_init(struct kineto_head *h, struct kineto_args *args, struct error *err)
{
	uint32_t key, text;

	*h = (struct kineto_head){ .trace = args->trace, .args = args, .rank = NO_RANK };
	buf_init(&h->attrs, HEAD_BYTES);
	buf_init(&h->devices, HEAD_BYTES);
	key = trace_name(h->trace, ".imported", 9, err);
	text = key ? trace_name(h->trace, "kineto", 6, err) : 0;
	if (!text)
		return err->status;
	buf_put(&h->attrs, &(struct attr){ .key = key, .type = ATTR_TEXT, .bits = text },
		sizeof(struct attr));
	return ST_OK;
}

void kineto_head_release(struct kineto_head *h)
{
	buf_release(&h->attrs);
	buf_release(&h->devices);
}

static enum status put_attr(struct kineto_head *h, struct buf *list, const struct json *key,
			    const struct json *value, struct error *err)
{
	struct attr attr = { .unit = UNIT_NONE };

	attr.key = kineto_name(h->args, key, err);
	if (!attr.key)
		return err->status;
	TRY(kineto_attr(h->args, value, &attr, err));
	buf_put(list, &attr, sizeof(attr));
	return buf_status(list, err);
}

static bool small_number(const struct json *value, uint32_t *out)
{
	uint64_t v;

	if (value->type != JSON_NUMBER || !json_u64(value->text, value->len, &v) || v >= NO_RANK)
		return false;
	*out = (uint32_t)v;
	return true;
}

/* "distributedInfo": {"rank": 1, "world_size": 2, ...}; the text is known to be valid. */
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

/* One object of "deviceProperties": id and name to the row, the rest to its shape. */
static enum status take_device(struct kineto_head *h, struct json_scan *s, struct buf *attrs,
			       struct error *err)
{
	struct device d = { .id = (uint32_t)(h->devices.len / sizeof(d)) };
	struct kineto_member m;
	struct shape shape;

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
		TRY(put_attr(h, attrs, &m.key, &m.value, err));
	}
	shape = (struct shape){ .fixed = (const struct attr *)(const void *)attrs->data,
				.fixed_count = (uint32_t)(attrs->len / sizeof(struct attr)) };
	d.shape = shape.fixed_count ? trace_shape(h->trace, &shape, err) : 0;
	if (shape.fixed_count && !d.shape)
		return err->status;
	buf_put(&h->devices, &d, sizeof(d));
	return buf_status(&h->devices, err);
}

static enum status take_devices(struct kineto_head *h, const struct json *value,
				struct error *err)
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

static enum status take_key(struct kineto_head *h, const struct json *key,
			    const struct json *value, struct error *err)
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
	return put_attr(h, &h->attrs, key, value, err);
}

enum status kineto_head_put(struct kineto_head *h, const struct json *key,
			    const struct json *value, struct error *err)
{
	h->args->repairs = 0;
	TRY(take_key(h, key, value, err));
	h->damaged += h->args->repairs > 0;
	return ST_OK;
}

/*
 * The host in HOST_PID.TIME.pt.trace.json, as PyTorch's TensorBoard handler names its files; a
 * name that is not of that form says nothing.
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
	struct process p = { .host = h->host, .command = command, .pid = pid, .rank = h->rank,
			     .world_size = h->world_size };
	struct shape shape = { .fixed = (const struct attr *)(const void *)h->attrs.data,
			       .fixed_count = (uint32_t)(h->attrs.len / sizeof(struct attr)) };
	size_t i, host = host_of_name(name);

	if (!p.host && host && !(p.host = trace_name(h->trace, name, host, err)))
		return err->status;
	p.shape = trace_shape(h->trace, &shape, err);
	if (!p.shape)
		return err->status;
	trace_set_process(h->trace, process, &p);
	for (i = 0; i < h->devices.len / sizeof(struct device); i++) {
		struct device d;

		memcpy(&d, h->devices.data + i * sizeof(d), sizeof(d));
		d.process = process;
		if (!trace_device(h->trace, &d, err))
			return err->status;
	}
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/import.h"

enum { DEVICES_BYTES = 1 << 20, MEMBERS_BYTES = 32 << 20 };

#define BASE_MOST ((uint64_t)1 << 62) /* the year 2116, in nanoseconds */

enum status kineto_head_init(struct kineto_import *k, struct error *err)
{
	struct kineto_head *h = &k->head;

	*h = (struct kineto_head){ .rank = NO_RANK };
	import_init(&h->attrs, k->to.trace, NULL, 0);
	buf_init(&h->members, MEMBERS_BYTES);
	buf_init(&h->devices, DEVICES_BYTES);
	return import_text(&h->attrs, ".imported", "kineto", 6, err);
}

void kineto_head_release(struct kineto_head *h)
{
	import_release(&h->attrs);
	buf_release(&h->members);
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

/* Reads "distributedInfo": {"rank": 1, "world_size": 2, ...}. */
static enum status take_distributed(struct kineto_head *h, const struct json *value,
				    struct error *err)
{
	const struct kineto_member *m;

	TRY(kineto_members_read(&h->members, value, err));
	for (size_t i = 0, count = kineto_members(&h->members, &m); i < count; i++) {
		if (kineto_is(&m[i].key, "rank"))
			small_number(&m[i].value, &h->rank);
		else if (kineto_is(&m[i].key, "world_size"))
			small_number(&m[i].value, &h->world_size);
	}
	return ST_OK;
}

/* Reads an object of "deviceProperties".  All members but its id and name become constants of the
 * device. */
static enum status take_device(struct kineto_import *k, const struct json *value, struct error *err)
{
	struct kineto_head *h = &k->head;
	struct device d = { .id = (uint32_t)(h->devices.len / sizeof(d)) };
	const struct kineto_member *m;

	TRY(kineto_members_read(&h->members, value, err));
	import_begin(&k->to);
	for (size_t i = 0, count = kineto_members(&h->members, &m); i < count; i++) {
		if (kineto_is(&m[i].key, "id") && small_number(&m[i].value, &d.id))
			continue;
		if (kineto_is(&m[i].key, "name") && m[i].value.type == JSON_STRING)
			TRY(kineto_name(&k->args, &m[i].value, &d.name, err));
		else
			TRY(kineto_put_member(&k->args, &k->to, &m[i], err));
	}
	TRY(import_schema_id(&k->to, &d.schema, err));
	buf_put(&h->devices, &d, sizeof(d));
	return buf_status(&h->devices, err);
}

static enum status take_devices(struct kineto_import *k, const struct json *value,
				struct error *err)
{
	struct json_scan s;
	struct json token;

	json_open_text(&s, value->text, value->len);
	json_hold(&s);
	TRY(json_next(&s, &token, err));
	for (;;) {
		TRY(json_next(&s, &token, err));
		if (token.type == JSON_ARRAY_END)
			return ST_OK;
		TRY(json_raw(&s, &token, err));
		if (token.type == JSON_OBJECT)
			TRY(take_device(k, &token, err));
	}
}

enum status kineto_head_put(struct kineto_import *k, const struct kineto_member *m,
			    struct error *err)
{
	const struct json *key = &m->key, *value = &m->value;
	struct kineto_head *h = &k->head;
	bool are_devices = kineto_is(key, "deviceProperties") && value->type == JSON_ARRAY;

	k->args.repairs = 0;
	if (are_devices)
		TRY(take_devices(k, value, err));
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
	if (kineto_is(key, "host_name") && value->type == JSON_STRING)
		TRY(kineto_name(&k->args, value, &h->host, err));
	if (!are_devices || !h->devices.len)
		TRY(kineto_put_member(&k->args, &h->attrs, m, err));
	h->damaged += k->args.repairs > 0;
	return ST_OK;
}

/*
 * Returns the length of the host in HOST_PID.TIME.pt.trace.json, the name that PyTorch's
 * TensorBoard handler uses, or 0 if `name` has another form.
 */
static size_t host_of_name(const char *name)
{
	const char *end = strstr(name, ".pt.trace.json"), *p = end;

	if (!end)
		return 0;
	while (p > name && (unsigned)(p[-1] - '0') < 10)
		p--;
	if (p < end && p > name && p[-1] == '.')
		end = p - 1;
	p = end;
	while (p > name && (unsigned)(p[-1] - '0') < 10)
		p--;
	return p < end && p > name + 1 && p[-1] == '_' ? (size_t)(p - 1 - name) : 0;
}

enum status kineto_head_finish(struct kineto_import *k, uint32_t command, const char *path,
			       struct error *err)
{
	const struct kineto_head *h = &k->head;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct process p = { .host = h->host,
			     .command = command,
			     .pid = (uint32_t)k->tracks.pid.number,
			     .rank = h->rank,
			     .world_size = h->world_size };
	size_t host = host_of_name(name);

	if (!p.host && host)
		TRY(import_name(&k->to, name, host, &p.host, err));
	TRY(import_schema_id(&k->head.attrs, &p.schema, err));
	trace_set_process(k->to.trace, k->to.process, &p);
	for (size_t i = 0; i < h->devices.len / sizeof(struct device); i++) {
		struct device d;

		memcpy(&d, h->devices.data + i * sizeof(d), sizeof(d));
		d.process = k->to.process;
		if (!trace_device(k->to.trace, &d, err))
			return err->status;
	}
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/import.h"

#include "schemas/log/log.h"
#include "schemas/model/call.h"

#include <string.h>

enum { ATTRS_BYTES = 1 << 20 };

void import_init(struct import *m, struct trace *trace, struct spool *spool, uint32_t process)
{
	*m = (struct import){ .trace = trace,
			      .spool = spool,
			      .process = process,
			      .first_ns = INT64_MAX,
			      .last_ns = INT64_MIN };
	buf_init(&m->consts, ATTRS_BYTES);
	buf_init(&m->args, ATTRS_BYTES);
	buf_init(&m->words, ATTRS_BYTES);
}

void import_release(struct import *m)
{
	buf_release(&m->consts);
	buf_release(&m->args);
	buf_release(&m->words);
}

void import_lose(struct import *m, enum loss why, uint64_t count)
{
	trace_lose(m->trace, m->process, why, count);
}

enum status import_name(struct import *m, const char *text, size_t len, uint32_t *name,
			struct error *err)
{
	*name = trace_name(m->trace, text, len, err);
	return *name ? ST_OK : err->status;
}

void import_begin(struct import *m)
{
	buf_clear(&m->consts);
	buf_clear(&m->args);
	buf_clear(&m->words);
}

void import_attr(struct import *m, const struct attr *attr, bool is_arg)
{
	struct attr arg = *attr;

	if (!is_arg || arg.type > ATTR_F64 || m->words.len >= LOG_LAYOUT_ARG * sizeof(uint64_t)) {
		buf_put(&m->consts, attr, sizeof(*attr));
		return;
	}
	arg.bits = 0;
	buf_put(&m->args, &arg, sizeof(arg));
	buf_put_u64(&m->words, attr->bits);
}

enum status import_attr_named(struct import *m, const char *key, size_t len, struct attr *attr,
			      bool is_arg, struct error *err)
{
	TRY(import_name(m, key, len, &attr->key, err));
	import_attr(m, attr, is_arg);
	return ST_OK;
}

enum status import_number(struct import *m, const char *key, int64_t number, bool is_arg,
			  struct error *err)
{
	struct attr a = { .type = number < 0 ? ATTR_I64 : ATTR_U64, .bits = (uint64_t)number };

	return import_attr_named(m, key, strlen(key), &a, is_arg, err);
}

enum status import_text(struct import *m, const char *key, const char *text, size_t len,
			struct error *err)
{
	struct attr attr = { .type = ATTR_TEXT };
	uint32_t value;

	TRY(import_name(m, key, strlen(key), &attr.key, err));
	TRY(import_name(m, text, len, &value, err));
	attr.bits = value;
	import_attr(m, &attr, false);
	return ST_OK;
}

enum status import_schema_id(struct import *m, uint32_t *schema, struct error *err)
{
	struct arg_schema s = {
		.consts = (const struct attr *)(const void *)m->consts.data,
		.args = (const struct attr *)(const void *)m->args.data,
		.const_count = (uint32_t)(m->consts.len / sizeof(struct attr)),
		.arg_count = (uint32_t)(m->args.len / sizeof(struct attr)),
	};

	*schema = 0;
	TRY(buf_status(&m->consts, err));
	TRY(buf_status(&m->args, err));
	TRY(buf_status(&m->words, err));
	if (!s.const_count && !s.arg_count)
		return ST_OK;
	*schema = trace_schema(m->trace, &s, err);
	return *schema ? ST_OK : err->status;
}

enum status import_schema(struct import *m, struct event *e, struct error *err)
{
	TRY(import_schema_id(m, &e->schema, err));
	e->args = m->words.len ? (const uint64_t *)(const void *)m->words.data : NULL;
	return ST_OK;
}

bool import_times(struct import *m, struct event *e, int64_t begin_ns, int64_t dur_ns)
{
	if (begin_ns > IMPORT_TIME_MOST || begin_ns < -IMPORT_TIME_MOST ||
	    dur_ns > IMPORT_TIME_MOST)
		return false;
	if (dur_ns < 0) {
		dur_ns = 0;
		import_lose(m, LOSS_DAMAGED, 1);
	}
	if (begin_ns < m->first_ns)
		m->first_ns = begin_ns;
	if (begin_ns + dur_ns > m->last_ns)
		m->last_ns = begin_ns + dur_ns;
	e->begin_ns = (uint64_t)(begin_ns + SPOOL_BIAS);
	e->end_ns = e->begin_ns + (uint64_t)dur_ns;
	return true;
}

bool import_launches(const struct import *m, const struct event *e)
{
	size_t len;
	const char *name;

	if (e->kind != KIND_API || e->subkind == API_OF_KERNEL)
		return e->kind == KIND_API;
	name = trace_text(m->trace, e->name, &len);
	return call_launches(name, len);
}

enum status import_desc(struct import *m, const struct event *e, struct error *err)
{
	struct event_desc desc = { .track = e->track,
				   .name = e->name,
				   .schema = e->schema,
				   .kind = e->kind,
				   .subkind = e->subkind };

	return trace_desc(m->trace, &desc, err) ? ST_OK : err->status;
}

enum status import_put(struct import *m, const struct event *e, struct error *err)
{
	TRY(import_desc(m, e, err));
	return import_put_again(m, e, import_launches(m, e), err);
}

enum status import_put_again(struct import *m, const struct event *e, bool launches,
			     struct error *err)
{
	if (launches)
		trace_add_launches(m->trace, e->track, 1);
	m->events++;
	return spool_put(m->spool, 0, e, 1, err);
}

enum status import_provenance(struct import *m, const char *format, const struct error *fault,
			      struct error *err)
{
	struct provenance *p = trace_provenance(m->trace);

	TRY(import_name(m, format, strlen(format), &p->format, err));
	p->is_whole = fault->status == ST_OK;
	p->events += m->events;
	return ST_OK;
}

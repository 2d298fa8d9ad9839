/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/nsys/rows.h"

#include "convert/link_name.h"
#include "convert/nsys/columns.h"
#include "schemas/log.h"

#include <stdio.h>
#include <string.h>

enum {
	COLUMNS_MAX = 128,
	ATTRS_BYTES = 1 << 20,
	UNREAD_BYTES = 16 * 1024,
	SQL_BYTES = NSYS_NAME_BYTES + 128,
	NVTX_MARK = 34, NVTX_RANGE = 59, NVTX_START_END = 60, NVTX_DOMAIN = 75,
	NVTXT_MARK = 65, NVTXT_RANGE = 70, NVTXT_START_END = 71, /* of text files */
	NO_MEMORY_KIND = 7, /* of the export, which counts from 0 where CUPTI counts from 1 */
};

#define TIME_MOST ((int64_t)1 << 61)

/* The table at hand. */
struct reading {
	struct nsys_import *n;
	const struct nsys_table *table;
	sqlite3_stmt *rows;
	int count;
	struct nsys_column columns[COLUMNS_MAX];
	int64_t last_row;
	uint64_t seen;
};

/* A row while it becomes an event. */
struct draft {
	struct event event;
	struct track track;
	int64_t begin_ns, end_ns;
	bool has_begin, has_end, has_tid, is_no_event;
	uint64_t global;
	int64_t name_id, domain;
	const char *name_text;
	size_t name_len;
	unsigned name_rank;
};

void nsys_import_init(struct nsys_import *n, struct trace *trace, struct spool *spool,
		      struct nsys_db *db)
{
	*n = (struct nsys_import){ .trace = trace, .spool = spool, .db = db };
	buf_init(&n->fixed, ATTRS_BYTES);
	buf_init(&n->vary, ATTRS_BYTES);
	buf_init(&n->words, ATTRS_BYTES);
	buf_init(&n->unread, UNREAD_BYTES);
}

void nsys_import_release(struct nsys_import *n)
{
	sqlite3_finalize(n->string);
	n->string = NULL;
	nsys_map_release(&n->strings);
	nsys_map_release(&n->processes);
	nsys_map_release(&n->threads);
	nsys_map_release(&n->domains);
	nsys_map_release(&n->devices);
	nsys_map_release(&n->contexts);
	buf_release(&n->fixed);
	buf_release(&n->vary);
	buf_release(&n->words);
	buf_release(&n->unread);
}

/* ---- texts and processes ---- */

enum status nsys_string(struct nsys_import *n, int64_t id, uint32_t *name, struct error *err)
{
	const char *text = NULL;

	*name = nsys_map_find(&n->strings, (uint64_t)id);
	if (*name)
		return ST_OK;
	if (!n->string)
		n->string = nsys_db_ask(n->db, "SELECT value FROM StringIds WHERE id = ?1");
	if (n->string) {
		sqlite3_bind_int64(n->string, 1, id);
		if (sqlite3_step(n->string) == SQLITE_ROW)
			text = (const char *)sqlite3_column_text(n->string, 0);
	}
	if (text) {
		*name = trace_name(n->trace, text, (size_t)sqlite3_column_bytes(n->string, 0),
				   err);
		if (!*name) {
			sqlite3_reset(n->string);
			return err->status;
		}
		TRY(nsys_map_put(&n->strings, (uint64_t)id, *name, err));
	}
	if (n->string)
		sqlite3_reset(n->string);
	return ST_OK;
}

enum status nsys_process(struct nsys_import *n, uint64_t global, uint32_t *process,
			 struct error *err)
{
	struct process p = { .host = n->host, .pid = NSYS_PID(global), .rank = NO_RANK };

	*process = nsys_map_find(&n->processes, global >> 24);
	if (*process)
		return ST_OK;
	*process = trace_process(n->trace, &p, err);
	if (!*process)
		return err->status;
	return nsys_map_put(&n->processes, global >> 24, *process, err);
}

/* ---- columns of a table ---- */

static enum status resolve_all(struct reading *r, struct error *err)
{
	int count = sqlite3_column_count(r->rows) - 1; /* behind the number of the row */

	r->count = count < COLUMNS_MAX ? count : COLUMNS_MAX;
	for (int i = 0; i < r->count; i++) {
		const char *name = sqlite3_column_name(r->rows, i + 1);

		TRY(nsys_column(r->n->trace, r->table->kind, name ? name : "", &r->columns[i],
				err));
	}
	return ST_OK;
}

/* ---- values of a row ---- */

static void put_attr(struct nsys_import *n, const struct nsys_column *c, uint8_t type, uint64_t bits)
{
	struct attr attr = { .key = c->key, .type = type, .unit = c->unit, .bits = bits };

	if (c->varies && type <= ATTR_F64 &&
	    n->words.len < LOG_LAYOUT_VARY * sizeof(uint64_t)) {
		attr.bits = 0;
		buf_put(&n->vary, &attr, sizeof(attr));
		buf_put_u64(&n->words, bits);
	} else {
		buf_put(&n->fixed, &attr, sizeof(attr));
	}
}

static void put_number(struct nsys_import *n, const struct nsys_column *c, int64_t v)
{
	put_attr(n, c, v < 0 ? ATTR_I64 : ATTR_U64, (uint64_t)v);
}

static enum status put_text(struct nsys_import *n, const struct nsys_column *c, const char *text,
			    size_t len, struct error *err)
{
	uint32_t name;

	if (!text || !len || (len == 2 && memcmp(text, "[]", 2) == 0))
		return ST_OK;
	name = trace_name(n->trace, text, len, err);
	if (!name)
		return err->status;
	put_attr(n, c, ATTR_TEXT, name);
	return ST_OK;
}

/* Whatever it is, as an attribute. */
static enum status put_value(struct reading *r, int i, struct error *err)
{
	const struct nsys_column *c = &r->columns[i];
	double real;
	uint64_t bits;

	switch (sqlite3_column_type(r->rows, i + 1)) {
	case SQLITE_INTEGER:
		put_number(r->n, c, sqlite3_column_int64(r->rows, i + 1));
		return ST_OK;
	case SQLITE_FLOAT:
		real = sqlite3_column_double(r->rows, i + 1);
		memcpy(&bits, &real, sizeof(bits));
		put_attr(r->n, c, ATTR_F64, bits);
		return ST_OK;
	case SQLITE_TEXT:
		return put_text(r->n, c, (const char *)sqlite3_column_text(r->rows, i + 1),
				(size_t)sqlite3_column_bytes(r->rows, i + 1), err);
	}
	return ST_OK;
}

static void take_name(struct reading *r, int i, struct draft *d)
{
	const struct nsys_column *c = &r->columns[i];
	int type = sqlite3_column_type(r->rows, i + 1);

	if (c->rank >= d->name_rank)
		return;
	if (type == SQLITE_TEXT) {
		d->name_text = (const char *)sqlite3_column_text(r->rows, i + 1);
		d->name_len = (size_t)sqlite3_column_bytes(r->rows, i + 1);
		d->name_rank = c->rank;
	} else if (type == SQLITE_INTEGER) {
		d->name_text = NULL;
		d->name_id = sqlite3_column_int64(r->rows, i + 1);
		d->name_rank = c->rank;
	}
}

static void take_nvtx_type(struct draft *d, int64_t type)
{
	switch (type) {
	case NVTX_MARK:
	case NVTXT_MARK:
		d->event.kind = KIND_MARK;
		d->event.subkind = MARK_INSTANT;
		d->has_end = true;
		d->end_ns = INT64_MIN; /* its begin */
		break;
	case NVTX_RANGE:
	case NVTX_START_END:
	case NVTXT_RANGE:
	case NVTXT_START_END:
		break;
	default:
		d->is_no_event = true; /* names of domains, categories, threads */
	}
}

static bool is_pool(const struct draft *d)
{
	return d->track.home == HOME_POOL;
}

/* A whole number that has a meaning; false: it has none for this kind, or is out of range. */
static bool take_number(struct reading *r, int i, struct draft *d, int64_t v)
{
	const struct nsys_column *c = &r->columns[i];
	bool is_id = v >= 0 && v < NO_ID;

	switch (c->role) {
	case NSYS_BEGIN:
		d->begin_ns = v;
		d->has_begin = v <= TIME_MOST && v >= -TIME_MOST;
		return true;
	case NSYS_END:
		if (d->event.kind != KIND_MARK)
			d->end_ns = v;
		d->has_end = v <= TIME_MOST && v >= -TIME_MOST;
		return true;
	case NSYS_DEVICE:
		if (is_id)
			d->track.device = (uint32_t)v;
		return is_id && d->track.home != HOME_THREAD;
	case NSYS_CONTEXT:
		if (is_id)
			d->track.context = (uint32_t)v;
		return is_id && d->track.home != HOME_THREAD;
	case NSYS_STREAM:
		if (d->track.home != HOME_STREAM)
			return false;
		d->track.id = (uint64_t)v;
		return true;
	case NSYS_GLOBAL_PID:
		if (!d->has_tid)
			d->global = (uint64_t)v;
		return true;
	case NSYS_GLOBAL_TID:
		d->global = (uint64_t)v;
		return d->has_tid = true;
	case NSYS_END_TID:
		return v == (int64_t)d->global;
	case NSYS_JOIN:
		if (d->event.kind == KIND_MARK || d->event.kind == KIND_RANGE || is_pool(d))
			return false;
		d->event.correlation = v > 0 ? (uint64_t)v : 0;
		return true;
	case NSYS_ADDRESS:
		d->event.address = (uint64_t)v;
		return is_pool(d);
	case NSYS_BYTES:
		d->event.bytes = v > 0 ? (uint64_t)v : 0;
		return v >= 0 && (is_pool(d) || event_is_gpu_work(&d->event));
	case NSYS_RESULT:
		if (d->event.kind != KIND_API)
			return false;
		d->event.result = v;
		d->event.flags |= EVENT_RESULT;
		return true;
	case NSYS_SUBKIND:
		d->event.subkind = v >= 0 && v < 256 ? (uint8_t)v : 0;
		return v >= 0 && v < 256;
	case NSYS_API_CLASS:
		if (d->event.kind == KIND_API && v == 1)
			d->event.subkind = API_DRIVER;
		return true;
	case NSYS_NVTX_TYPE:
		take_nvtx_type(d, v);
		return true;
	case NSYS_DOMAIN:
		d->domain = v;
		return true;
	case NSYS_OPERATION:
		if (is_pool(d))
			d->event.kind = v == 1 ? KIND_FREE : KIND_ALLOC;
		return is_pool(d);
	}
	return false;
}

static enum status take_value(struct reading *r, int i, struct draft *d, struct error *err)
{
	const struct nsys_column *c = &r->columns[i];
	int type = sqlite3_column_type(r->rows, i + 1);
	int64_t v = type == SQLITE_INTEGER ? sqlite3_column_int64(r->rows, i + 1) : 0;
	uint32_t name = 0;

	if (type == SQLITE_NULL || c->role == NSYS_SKIP)
		return ST_OK;
	if (c->role == NSYS_NAME) {
		take_name(r, i, d);
		return ST_OK;
	}
	if (c->role == NSYS_MEMORY_KIND && type == SQLITE_INTEGER) {
		put_number(r->n, c, v >= 0 && v < NO_MEMORY_KIND ? v + 1 : 0);
		return ST_OK;
	}
	if (c->role == NSYS_TEXT_ID && type == SQLITE_INTEGER) {
		TRY(nsys_string(r->n, v, &name, err));
		if (name)
			put_attr(r->n, c, ATTR_TEXT, name);
		return ST_OK;
	}
	if (c->role >= NSYS_BEGIN && type == SQLITE_INTEGER && take_number(r, i, d, v))
		return ST_OK;
	return put_value(r, i, err);
}

/* ---- a row becomes an event ---- */

static void lose(struct nsys_import *n, uint32_t process, enum loss why)
{
	trace_lose(n->trace, process, why, 1);
}

/* False: it has no usable times. */
static bool take_times(struct nsys_import *n, struct draft *d, uint32_t process)
{
	struct event *e = &d->event;
	bool is_instant = e->kind == KIND_MARK || d->track.home == HOME_POOL;
	int64_t begin, end;

	if (!d->has_begin || d->begin_ns + n->epoch_ns < 0)
		return false;
	begin = d->begin_ns + n->epoch_ns;
	end = d->has_end && !is_instant ? d->end_ns + n->epoch_ns : begin;
	if (!is_instant && !d->has_end) {
		if (e->kind != KIND_RANGE)
			return false;
		end = n->last_ns > d->begin_ns ? n->last_ns + n->epoch_ns : begin;
		e->flags |= EVENT_NEVER_ENDED;
	} else if (end < begin) {
		end = begin;
		lose(n, process, LOSS_DAMAGED);
	}
	e->begin_ns = (uint64_t)begin;
	e->end_ns = (uint64_t)end;
	return true;
}

static enum status take_event_name(struct nsys_import *n, struct draft *d, struct error *err)
{
	if (d->name_text) {
		d->event.name = trace_name(n->trace, d->name_text, d->name_len, err);
		return d->event.name ? ST_OK : err->status;
	}
	return d->name_rank < UINT8_MAX ? nsys_string(n, d->name_id, &d->event.name, err) : ST_OK;
}

/* Some exports say GPU 0 of every wait; a context is of one GPU, which its kernels have shown. */
static enum status settle_device(struct nsys_import *n, const struct event *e, struct track *t,
				 struct error *err)
{
	uint64_t key = (uint64_t)t->process << 32 | t->context;
	uint32_t known = nsys_map_find(&n->contexts, key);

	if (t->home != HOME_STREAM || t->context == NO_ID)
		return ST_OK;
	if (known && e->kind == KIND_SYNC)
		t->device = known - 1;
	else if (!known && event_is_gpu_work(e) && t->device != NO_ID)
		return nsys_map_put(&n->contexts, key, t->device + 1, err);
	return ST_OK;
}

static enum status take_track(struct nsys_import *n, struct draft *d, struct error *err)
{
	struct track *t = &d->track;
	uint64_t key;

	TRY(settle_device(n, &d->event, t, err));
	key = (uint64_t)t->process << 32 | t->device;
	if (t->home == HOME_THREAD) {
		t->id = NSYS_TID(d->global);
		t->device = t->context = NO_ID;
	}
	d->event.track = trace_track(n->trace, t, err);
	if (!d->event.track)
		return err->status;
	if (t->home == HOME_THREAD && !nsys_map_find(&n->threads, d->global))
		return nsys_map_put(&n->threads, d->global, d->event.track, err);
	if (t->home != HOME_STREAM || t->device == NO_ID || nsys_map_find(&n->devices, key))
		return ST_OK;
	return nsys_map_put(&n->devices, key, 1, err);
}

/* Attributes that are of no column. */
static enum status put_words(struct reading *r, const struct draft *d, struct error *err)
{
	struct nsys_import *n = r->n;
	struct nsys_column c = { 0 };
	uint32_t domain = nsys_map_find(&n->domains, (uint64_t)d->domain);

	if (d->domain && d->track.home == HOME_THREAD) {
		c.key = trace_name(n->trace, "domain", 6, err);
		if (!c.key)
			return err->status;
		if (domain)
			put_attr(n, &c, ATTR_TEXT, domain);
		else
			put_number(n, &c, d->domain);
	}
	if (!r->table->cat)
		return ST_OK;
	c.key = trace_name(n->trace, ".cat", 4, err);
	return c.key ? put_text(n, &c, r->table->cat, strlen(r->table->cat), err) : err->status;
}

static enum status take_shape(struct nsys_import *n, struct event *e, struct error *err)
{
	struct shape s = {
		.fixed = (const struct attr *)(const void *)n->fixed.data,
		.vary = (const struct attr *)(const void *)n->vary.data,
		.fixed_count = (uint32_t)(n->fixed.len / sizeof(struct attr)),
		.vary_count = (uint32_t)(n->vary.len / sizeof(struct attr)),
	};

	TRY(buf_status(&n->fixed, err));
	TRY(buf_status(&n->vary, err));
	TRY(buf_status(&n->words, err));
	if (!s.fixed_count && !s.vary_count)
		return ST_OK;
	e->shape = trace_shape(n->trace, &s, err);
	e->vary = s.vary_count ? (const uint64_t *)(const void *)n->words.data : NULL;
	return e->shape ? ST_OK : err->status;
}

static bool launches(struct trace *trace, uint32_t name)
{
	size_t len;
	const char *text = trace_text(trace, name, &len);

	return launch_name(text, len);
}

static enum status put_event(struct nsys_import *n, struct event *e, struct error *err)
{
	struct site site;

	TRY(take_shape(n, e, err));
	site = (struct site){ .track = e->track, .name = e->name, .shape = e->shape,
			      .kind = e->kind, .subkind = e->subkind };
	if (!trace_site(n->trace, &site, err))
		return err->status;
	if (e->kind == KIND_API && launches(n->trace, e->name))
		trace_add_launches(n->trace, e->track, 1);
	n->events++;
	return spool_put(n->spool, 0, e, 1, err);
}

static enum status import_row(struct reading *r, struct error *err)
{
	const struct nsys_table *t = r->table;
	struct nsys_import *n = r->n;
	struct draft d = {
		.event = { .kind = t->kind, .subkind = t->subkind },
		.track = { .home = t->home, .device = NO_ID, .context = NO_ID },
		.name_rank = UINT8_MAX,
	};

	if (t->kind == KIND_SYNC)
		d.track.id = UINT32_MAX; /* of a context, not of a stream */
	buf_clear(&n->fixed);
	buf_clear(&n->vary);
	buf_clear(&n->words);
	for (int i = 0; i < r->count && !d.is_no_event; i++)
		TRY(take_value(r, i, &d, err));
	if (d.is_no_event)
		return ST_OK;
	TRY(nsys_process(n, d.global, &d.track.process, err));
	if (!take_times(n, &d, d.track.process)) {
		lose(n, d.track.process, LOSS_NO_TIME);
		return ST_OK;
	}
	TRY(take_event_name(n, &d, err));
	TRY(take_track(n, &d, err));
	TRY(put_words(r, &d, err));
	return put_event(n, &d.event, err);
}

/* ---- a table ---- */

static void note_fault(struct reading *r)
{
	char what[SQL_BYTES];

	if (r->n->fault.status != ST_OK)
		return;
	snprintf(what, sizeof(what), "table %s is damaged after %llu rows", r->table->name,
		 (unsigned long long)r->seen);
	nsys_db_fault(r->n->db, what, &r->n->fault);
}

/* A row with a value that is too long to be loaded is counted; the table goes on behind it. */
static bool pass_long_row(struct reading *r)
{
	char sql[SQL_BYTES];
	int64_t row;

	snprintf(sql, sizeof(sql), "SELECT min(rowid) FROM \"%s\" WHERE rowid > %lld",
		 r->table->name, (long long)r->last_row);
	sqlite3_reset(r->rows);
	if (!nsys_db_number(r->n->db, sql, &row))
		return false;
	lose(r->n, 0, LOSS_CEILING);
	r->last_row = row;
	sqlite3_bind_int64(r->rows, 1, row);
	return true;
}

static enum status read_rows(struct reading *r, struct error *err)
{
	for (;;) {
		int code = sqlite3_step(r->rows);

		if (code == SQLITE_DONE)
			return ST_OK;
		if (code == SQLITE_TOOBIG && pass_long_row(r))
			continue;
		if (code == SQLITE_NOMEM)
			return nsys_db_fault(r->n->db, r->table->name, err);
		if (code != SQLITE_ROW || r->seen >= r->n->db->rows_max) {
			note_fault(r);
			return ST_OK;
		}
		r->last_row = sqlite3_column_int64(r->rows, 0);
		r->seen++;
		TRY(import_row(r, err));
	}
}

static enum status read_table(struct nsys_import *n, const struct nsys_table *table,
			      struct error *err)
{
	struct reading r = { .n = n, .table = table, .last_row = INT64_MIN };
	char sql[SQL_BYTES];
	enum status status;

	if (!nsys_db_has(n->db, table->name))
		return ST_OK;
	n->any_table = true;
	snprintf(sql, sizeof(sql), "SELECT rowid, * FROM \"%s\" WHERE rowid > ?1", table->name);
	r.rows = nsys_db_ask(n->db, sql);
	if (!r.rows) {
		note_fault(&r);
		return ST_OK;
	}
	sqlite3_bind_int64(r.rows, 1, INT64_MIN);
	status = resolve_all(&r, err);
	if (status == ST_OK)
		status = read_rows(&r, err);
	sqlite3_finalize(r.rows);
	return status;
}

enum status nsys_import_tables(struct nsys_import *n, struct error *err)
{
	const struct nsys_table *t;

	for (size_t i = 0; (t = nsys_table_at(i)); i++)
		TRY(read_table(n, t, err));
	return ST_OK;
}

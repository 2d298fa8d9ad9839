/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/nsys/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	COLUMNS_MAX = 128,
	NVTX_MARK = 34,
	NVTX_RANGE = 59,
	NVTX_START_END = 60,
	NVTXT_MARK = 65,
	NVTXT_RANGE = 70,
	NVTXT_START_END = 71, /* the last three come from NVTXT files */
	NO_MEMORY_KIND = 7,   /* the export counts kinds from 0, CUPTI from 1 */
	IDS_MOST = 1 << 24,
};

#define PID(global) ((uint32_t)((global) >> 24) & 0xffffff)
#define TID(global) ((uint32_t)(global)&0xffffff)

/* State of reading a table. */
struct reading {
	struct nsys_import *n;
	const struct nsys_table *table;
	sqlite3_stmt *rows;
	int count;
	struct nsys_column columns[COLUMNS_MAX];
	int64_t last_row;
	uint64_t row_count;
};

/* State of a row while it is converted to an event. */
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

/* ---- texts and processes ---- */

enum status nsys_keep(struct map *m, uint64_t key, uint32_t value, struct error *err)
{
	uint64_t *place = map_put(m, key, NULL);

	if (!place)
		return fail_memory(err);
	*place = value;
	return m->count > IDS_MOST
		       ? fail(err, ST_CEILING, NOWHERE, "more than %d texts or threads", IDS_MOST)
		       : ST_OK;
}

enum status nsys_text(struct nsys_import *n, sqlite3_stmt *s, int column, uint32_t *name,
		      struct error *err)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	*name = 0;
	return text ? import_name(&n->to, text, (size_t)sqlite3_column_bytes(s, column), name, err)
		    : ST_OK;
}

enum status nsys_string(struct nsys_import *n, int64_t id, uint32_t *name, struct error *err)
{
	enum status status = ST_OK;

	*name = nsys_find(&n->strings, (uint64_t)id);
	if (*name)
		return ST_OK;
	if (!n->string)
		n->string = database_ask(n->db, "SELECT value FROM StringIds WHERE id = ?1");
	sqlite3_bind_int64(n->string, 1, id);
	if (database_row(n->string))
		status = nsys_text(n, n->string, 0, name, err);
	if (*name)
		status = nsys_keep(&n->strings, (uint64_t)id, *name, err);
	sqlite3_reset(n->string);
	return status;
}

/* ---- values of a row ---- */

static void put_attr(struct nsys_import *n, const struct nsys_column *c, uint8_t type,
		     uint64_t bits)
{
	struct attr attr = c->attr;

	attr.type = type;
	attr.bits = bits;
	import_attr(&n->to, &attr, c->is_arg);
}

static void put_number(struct nsys_import *n, const struct nsys_column *c, int64_t v)
{
	put_attr(n, c, v < 0 ? ATTR_I64 : ATTR_U64, (uint64_t)v);
}

/* Adds a value of any type as an attribute. */
static enum status put_value(struct reading *r, int i, struct error *err)
{
	const struct nsys_column *c = &r->columns[i];
	const char *text;
	uint32_t name;
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
		text = (const char *)sqlite3_column_text(r->rows, i + 1);
		if (!text || !sqlite3_column_bytes(r->rows, i + 1) || strcmp(text, "[]") == 0)
			return ST_OK;
		TRY(nsys_text(r->n, r->rows, i + 1, &name, err));
		put_attr(r->n, c, ATTR_TEXT, name);
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

static bool is_allocation(const struct draft *d)
{
	return d->track.type == TRACK_ALLOCATOR;
}

/* Stores a whole number according to its column's role.  Returns false if events of this kind have
 * no such member or the number is out of range. */
static bool take_number(struct reading *r, int i, struct draft *d, int64_t v)
{
	const struct nsys_column *c = &r->columns[i];
	bool is_id = v >= 0 && v < NO_ID;

	switch (c->role) {
	case NSYS_BEGIN:
		d->begin_ns = v;
		d->has_begin = v <= IMPORT_TIME_MOST && v >= -IMPORT_TIME_MOST;
		return true;
	case NSYS_END:
		if (d->event.kind != KIND_MARK)
			d->end_ns = v;
		d->has_end = v <= IMPORT_TIME_MOST && v >= -IMPORT_TIME_MOST;
		return true;
	case NSYS_DEVICE:
		if (is_id)
			d->track.device = (uint32_t)v;
		return is_id && d->track.type != TRACK_THREAD;
	case NSYS_CONTEXT:
		if (is_id)
			d->track.context = (uint32_t)v;
		return is_id && d->track.type != TRACK_THREAD;
	case NSYS_STREAM:
		if (d->track.type != TRACK_STREAM)
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
	case NSYS_CORRELATION:
		if (d->event.kind == KIND_MARK || d->event.kind == KIND_RANGE || is_allocation(d))
			return false;
		d->event.correlation = v > 0 ? (uint64_t)v : 0;
		return true;
	case NSYS_ADDRESS:
		d->event.address = (uint64_t)v;
		return is_allocation(d);
	case NSYS_BYTES:
		d->event.bytes = v > 0 ? (uint64_t)v : 0;
		return v >= 0 && (is_allocation(d) || event_is_gpu_work(&d->event));
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
		if (v == NVTX_MARK || v == NVTXT_MARK) {
			d->event.kind = KIND_MARK;
			d->event.subkind = MARK_INSTANT;
			d->has_end = true;
			d->end_ns = INT64_MIN; /* replaced by the begin */
		} else if (v != NVTX_RANGE && v != NVTX_START_END && v != NVTXT_RANGE &&
			   v != NVTXT_START_END) {
			d->is_no_event = true; /* a name of a domain, category or thread */
		}
		return true;
	case NSYS_DOMAIN:
		d->domain = v;
		return true;
	case NSYS_OPERATION:
		if (is_allocation(d))
			d->event.kind = v == 1 ? KIND_FREE : KIND_ALLOC;
		return is_allocation(d);
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

/* Sets the event's times.  Returns false if the row has no usable ones. */
static bool take_times(struct nsys_import *n, struct draft *d, uint32_t process)
{
	struct event *e = &d->event;
	bool is_instant = e->kind == KIND_MARK || d->track.type == TRACK_ALLOCATOR;
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
		trace_lose(n->to.trace, process, LOSS_DAMAGED, 1);
	}
	e->begin_ns = (uint64_t)begin;
	e->end_ns = (uint64_t)end;
	return true;
}

/* Corrects the GPU of a wait: some exports write GPU 0 for every wait.  A context belongs to one
 * GPU, which its kernels have shown. */
static enum status settle_device(struct nsys_import *n, const struct event *e, struct track *t,
				 struct error *err)
{
	uint64_t key = (uint64_t)t->process << 32 | t->context;
	uint32_t gpu = nsys_find(&n->contexts, key);

	if (t->type != TRACK_STREAM || t->context == NO_ID)
		return ST_OK;
	if (gpu && e->kind == KIND_SYNC)
		t->device = gpu - 1;
	else if (!gpu && event_is_gpu_work(e) && t->device != NO_ID)
		return nsys_keep(&n->contexts, key, t->device + 1, err);
	return ST_OK;
}

static enum status take_track(struct nsys_import *n, struct draft *d, struct error *err)
{
	struct track *t = &d->track;

	TRY(settle_device(n, &d->event, t, err));
	if (t->type == TRACK_THREAD) {
		t->id = TID(d->global);
		t->device = t->context = NO_ID;
	}
	d->event.track = trace_track(n->to.trace, t, err);
	if (!d->event.track)
		return err->status;
	if (t->type == TRACK_THREAD && !nsys_find(&n->threads, d->global))
		return nsys_keep(&n->threads, d->global, d->event.track, err);
	return ST_OK;
}

/* Adds attributes that do not come from a single column. */
static enum status put_words(struct reading *r, const struct draft *d, struct error *err)
{
	struct import *to = &r->n->to;
	uint32_t domain = nsys_find(&r->n->domains, (uint64_t)d->domain);
	struct attr a = { .type = ATTR_TEXT, .bits = domain };

	if (d->domain && d->track.type == TRACK_THREAD) {
		if (!domain) {
			a.type = d->domain < 0 ? ATTR_I64 : ATTR_U64;
			a.bits = (uint64_t)d->domain;
		}
		TRY(import_attr_named(to, "domain", 6, &a, false, err));
	}
	return r->table->cat ? import_text(to, ".cat", r->table->cat, strlen(r->table->cat), err)
			     : ST_OK;
}

/* Reads names of PyTorch's emit_nvtx(), which records operators as ranges and appends the number of
 * the call to each name: "aten::mm, seq = 12, op_id = 345". */
static enum status take_torch(struct nsys_import *n, struct draft *d, struct error *err)
{
	static const char *const spaces[] = { "aten::", "autograd::",  "torch::",      "prim::",
					      "c10d::", "quantized::", "torchvision::" };
	static const char *const tails[] = { ", seq = ", ", op_id = " };
	size_t len = d->name_len;

	for (size_t i = 0; i < 2; i++) {
		size_t key_len = strlen(tails[i]) - strlen(",  = ");
		const char *at = memmem(d->name_text, d->name_len, tails[i], strlen(tails[i]));
		struct attr a = { .type = ATTR_U64 };

		if (!at)
			continue;
		a.bits = strtoull(at + strlen(tails[i]), NULL, 10);
		TRY(import_attr_named(&n->to, tails[i] + 2, key_len, &a, true, err));
		if ((size_t)(at - d->name_text) < len)
			len = (size_t)(at - d->name_text);
	}
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (strncmp(d->name_text, spaces[i], strlen(spaces[i])) == 0)
			d->event.subkind = RANGE_OP;
	if (len < d->name_len && memmem(d->name_text, len, "Backward", 8))
		d->event.subkind = RANGE_OP;
	d->name_len = len;
	return ST_OK;
}

static enum status import_row(struct reading *r, struct error *err)
{
	const struct nsys_table *t = r->table;
	struct nsys_import *n = r->n;
	struct draft d = {
		.event = { .kind = t->kind, .subkind = t->subkind },
		.track = { .type = t->type, .device = NO_ID, .context = NO_ID },
		.name_rank = UINT8_MAX,
	};

	if (t->kind == KIND_SYNC)
		d.track.id = UINT32_MAX; /* belongs to a context, not to a stream */
	import_begin(&n->to);
	for (int i = 0; i < r->count && !d.is_no_event; i++)
		TRY(take_value(r, i, &d, err));
	if (d.is_no_event)
		return ST_OK;
	d.track.process = nsys_find(&n->processes, d.global >> 24);
	if (!d.track.process) {
		struct process p = { .host = n->host, .pid = PID(d.global), .rank = NO_RANK };

		d.track.process = trace_process(n->to.trace, &p, err);
		if (!d.track.process)
			return err->status;
		TRY(nsys_keep(&n->processes, d.global >> 24, d.track.process, err));
	}
	if (!take_times(n, &d, d.track.process)) {
		trace_lose(n->to.trace, d.track.process, LOSS_NO_TIME, 1);
		return ST_OK;
	}
	if (d.name_text) {
		if (d.event.kind == KIND_RANGE)
			TRY(take_torch(n, &d, err));
		TRY(import_name(&n->to, d.name_text, d.name_len, &d.event.name, err));
	} else if (d.name_rank < UINT8_MAX) {
		TRY(nsys_string(n, d.name_id, &d.event.name, err));
	}
	TRY(take_track(n, &d, err));
	TRY(put_words(r, &d, err));
	TRY(import_schema(&n->to, &d.event, err));
	return import_put(&n->to, &d.event, err);
}

/* ---- a table ---- */

static void note_fault(struct reading *r)
{
	char what[NSYS_SQL_BYTES];

	if (r->n->fault.status != ST_OK)
		return;
	snprintf(what, sizeof(what), "table %s is damaged after %llu rows", r->table->name,
		 (unsigned long long)r->row_count);
	database_fault(r->n->db, what, &r->n->fault);
}

/* Counts a row with a value that is too long to be loaded, and continues after it. */
static bool pass_long_row(struct reading *r)
{
	char sql[NSYS_SQL_BYTES];
	int64_t row;

	snprintf(sql, sizeof(sql), "SELECT min(rowid) FROM \"%s\" WHERE rowid > %lld",
		 r->table->name, (long long)r->last_row);
	sqlite3_reset(r->rows);
	if (!database_number(r->n->db, sql, &row))
		return false;
	import_lose(&r->n->to, LOSS_CEILING, 1);
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
			return database_fault(r->n->db, r->table->name, err);
		if (code != SQLITE_ROW || r->row_count >= r->n->db->rows_max) {
			note_fault(r);
			return ST_OK;
		}
		r->last_row = sqlite3_column_int64(r->rows, 0);
		r->row_count++;
		TRY(import_row(r, err));
	}
}

static enum status read_table(struct nsys_import *n, const struct nsys_table *table,
			      struct error *err)
{
	struct reading r = { .n = n, .table = table, .last_row = INT64_MIN };
	RELEASED_BY(database_end) sqlite3_stmt *rows = NULL;
	char sql[NSYS_SQL_BYTES];
	bool has_times = false;
	int count;

	if (!database_has(n->db, table->name))
		return ST_OK;
	n->any_table = true;
	snprintf(sql, sizeof(sql), "SELECT rowid, * FROM \"%s\" WHERE rowid > ?1", table->name);
	r.rows = rows = database_ask(n->db, sql);
	if (!rows) {
		note_fault(&r);
		return ST_OK;
	}
	sqlite3_bind_int64(r.rows, 1, INT64_MIN);
	count = sqlite3_column_count(r.rows) - 1; /* without the leading rowid */
	r.count = count < COLUMNS_MAX ? count : COLUMNS_MAX;
	for (int i = 0; i < r.count; i++) {
		const char *name = sqlite3_column_name(rows, i + 1);

		TRY(nsys_column(&n->to, table->kind, name ? name : "", &r.columns[i], err));
		has_times |= r.columns[i].role == NSYS_BEGIN;
	}
	if (has_times)
		return read_rows(&r, err);
	nsys_meta_leave(n, table->name); /* CUDA events of older exports have no time */
	return ST_OK;
}

enum status nsys_import_tables(struct nsys_import *n, struct error *err)
{
	for (const struct nsys_table *t = nsys_tables; t->name; t++)
		TRY(read_table(n, t, err));
	return ST_OK;
}

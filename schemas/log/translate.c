/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/vec.h"
#include "schemas/log/read.h"

#include <stdlib.h>

enum {
	ROWS_MISSING = 8 * LOG_BLOCK_ROWS, /* most consecutive ids that may be missing */
	ROWS_FIRST = 16,                   /* first capacity of vec_grow() */
	ARENA_FIRST = 4096,                /* bytes: many logs may be open at once */
};

enum status log_translation_new(struct log_translation **out, struct trace *t, size_t ceiling,
				struct error *err)
{
	struct log_translation *x;

	*out = NULL;
	TRY(vec_new(&x, 1, err));
	x->trace = t;
	arena_init(&x->arena, ceiling);
	x->arena.next_bytes = ARENA_FIRST;
	buf_init(&x->part, ceiling / 4);
	x->names.row_bytes = x->processes.row_bytes = sizeof(uint32_t);
	x->windows.row_bytes = x->anchors.row_bytes = sizeof(uint32_t);
	x->keys.row_bytes = sizeof(struct file_keys);
	x->schemas.row_bytes = sizeof(struct file_schema);
	x->tracks.row_bytes = sizeof(struct file_track);
	x->layouts.row_bytes = sizeof(struct file_layout);
	x->descs.row_bytes = sizeof(struct log_desc);
	x->losses.row_bytes = sizeof(struct file_losses);
	*out = x;
	return ST_OK;
}

static void rows_release(struct rows *r)
{
	free(r->at);
	*r = (struct rows){ .row_bytes = r->row_bytes };
}

/* Frees the tables that only other tables need; events need descriptors and layouts. */
static void release_tables(struct log_translation *x)
{
	rows_release(&x->names);
	rows_release(&x->keys);
	rows_release(&x->schemas);
	rows_release(&x->processes);
	rows_release(&x->tracks);
	rows_release(&x->windows);
	rows_release(&x->anchors);
	rows_release(&x->losses);
	buf_release(&x->part);
}

void log_translation_change(struct log_translation *x, log_change_fn change, void *arg)
{
	x->change = change;
	x->change_arg = arg;
}

void log_translation_free(struct log_translation *x)
{
	if (!x)
		return;
	release_tables(x);
	rows_release(&x->layouts);
	rows_release(&x->descs);
	arena_release(&x->arena);
	free(x);
}

/* ---- rows ---- */

/* Makes a table hold row `id`.  A file may omit some ids, but must not make us allocate memory for
 * arbitrary ones. */
static enum status rows_reach(struct log_translation *x, struct rows *r, uint32_t id,
			      uint64_t offset, struct error *err)
{
	size_t before = r->cap, wider = 2 * before > id ? 2 * before : (size_t)id + 1;

	if (id && id < r->count)
		return ST_OK;
	if (!id || id - r->count > ROWS_MISSING)
		return fail(err, ST_FORMAT, offset, "table row %u comes after row %u", id,
			    r->count ? r->count - 1 : 0);
	if (id >= before) {
		if (arena_is_full(&x->arena, (wider + ROWS_FIRST - before) * r->row_bytes))
			return fail(err, ST_CEILING, offset,
				    "the tables of the log exceed their memory limit");
		TRY(vec_grow(&r->at, &r->cap, id + (size_t)1, r->row_bytes, err));
		x->arena.ceiling -= (r->cap - before) * r->row_bytes;
	}
	r->count = id + 1;
	return ST_OK;
}

void *log_rows_get(const struct rows *r, uint64_t id)
{
	return id < r->count ? (char *)r->at + id * r->row_bytes : NULL;
}

uint32_t log_name_of(struct log_translation *x, uint64_t id)
{
	const uint32_t *to = log_rows_get(&x->names, id);

	if (!id)
		return 0;
	if (!to)
		x->missing = "a name";
	return to ? *to : 0;
}

uint32_t log_process_of(struct log_translation *x, uint64_t id)
{
	const uint32_t *to = log_rows_get(&x->processes, id);

	if (!id)
		return 0;
	if (!to || !*to)
		x->missing = "a process";
	return to ? *to : 0;
}

void *log_arena_take(struct log_translation *x, size_t bytes, struct error *err)
{
	void *p = arena_take(&x->arena, bytes, 0);

	if (!p)
		intern_refuse(&x->arena, bytes, err);
	return p;
}

enum status log_schema_of(struct log_translation *x, uint64_t id, const struct file_layout *l,
			  uint32_t *to, struct error *err)
{
	const struct file_schema *f = log_rows_get(&x->schemas, id);
	struct arg_schema schema = { 0 };
	struct attr *more = NULL;

	*to = 0;
	if (id && (!f || !f->came)) {
		x->missing = "a shape";
		return ST_OK;
	}
	if (id) {
		schema.consts = f->attrs;
		schema.const_count = f->count;
	}
	if (l) {
		schema.args = l->args;
		schema.arg_count = l->layout.arg_count;
	}
	if (l && l->kind_attr.key) {
		more = malloc((schema.const_count + 1) * sizeof(*more));
		if (!more)
			return fail_memory(err);
		if (schema.const_count)
			memcpy(more, schema.consts, schema.const_count * sizeof(*more));
		more[schema.const_count++] = l->kind_attr;
		schema.consts = more;
	}
	if (schema.const_count || schema.arg_count)
		*to = trace_schema(x->trace, &schema, err);
	free(more);
	return *to || !(schema.const_count || schema.arg_count) ? ST_OK : err->status;
}

/* ---- blocks ---- */

static enum status take_one(struct log_translation *x, const struct log_block *block, uint32_t id,
			    struct bytes *in, struct error *err)
{
	const struct log_row_reader *type = &log_row_readers[block->kind];
	struct bytes row, *from = in;

	if (type->rows)
		TRY(rows_reach(x, (struct rows *)((char *)x + type->rows), id, block->offset, err));
	if (type->has_length) {
		row = take_part(in, take_varint(in));
		from = &row;
	}
	x->missing = NULL;
	TRY(type->members ? log_take_struct(x, block->kind, id, from, err)
			  : type->take(x, id, from, err));
	if (from->is_truncated)
		return fail(err, ST_FORMAT, block->offset, "table row %u is truncated", id);
	if (x->missing)
		return fail(err, ST_FORMAT, block->offset, "table row %u needs %s that is missing",
			    id, x->missing);
	return ST_OK;
}

static enum status take_end(struct log_translation *x, const struct log_block *block,
			    const uint8_t *payload, struct error *err)
{
	struct bytes in = bytes_init(payload, block->raw_size);
	uint64_t kinds = take_varint(&in), events = 0;

	for (uint64_t i = 0; i < kinds && !in.is_truncated; i++) {
		take_varint(&in);
		events += take_varint(&in);
	}
	if (in.is_truncated)
		return fail(err, ST_FORMAT, block->offset, "END block is truncated");
	x->ended = true;
	x->end_events = events;
	return ST_OK;
}

enum status log_take_table(struct log_translation *x, const struct log_block *block,
			   const uint8_t *payload, struct error *err)
{
	struct error own;

	if (!err)
		err = &own;
	if (block->kind == LOG_END)
		return take_end(x, block, payload, err);
	x->ended = false;
	x->desc = (struct log_desc_sums){ 0 };
	if (block->kind >= LOG_BLOCK_KIND_END ||
	    (!log_row_readers[block->kind].take && !log_row_readers[block->kind].members))
		return fail(err, ST_FORMAT, block->offset, "block of kind %u is not a table",
			    block->kind);
	if (block->flags & LOG_PART) {
		/* Append this part of a long row, and read the row if it was the last part. */
		struct bytes in = bytes_init(payload, block->raw_size), row;
		uint64_t id = take_varint(&in), total = take_varint(&in), offset = take_varint(&in);

		if (!offset) {
			buf_clear(&x->part);
			x->part_kind = block->kind;
			x->part_id = (uint32_t)id;
			x->part_total = total;
		}
		if (in.is_truncated || id > UINT32_MAX - 1 || block->kind != x->part_kind ||
		    id != x->part_id || total != x->part_total || offset != x->part.len ||
		    bytes_left(&in) > total - offset)
			return fail(err, ST_FORMAT, block->offset,
				    "part of a table row does not match the previous part");
		buf_put(&x->part, in.at, bytes_left(&in));
		TRY(buf_status(&x->part, err));
		if (x->part.len < total)
			return ST_OK;
		row = bytes_init(x->part.data, x->part.len);
		TRY(take_one(x, block, (uint32_t)id, &row, err));
		buf_clear(&x->part);
		return ST_OK;
	}
	struct bytes in = bytes_init(payload, block->raw_size);
	uint64_t first = take_varint(&in);
	struct error row_err, first_err = { .status = ST_OK };

	for (uint32_t i = 0; i < block->rows; i++) {
		if (first + i > UINT32_MAX - 1 || in.is_truncated)
			return fail(err, ST_FORMAT, block->offset,
				    "table block does not have the stated number of rows");
		enum status st = take_one(x, block, (uint32_t)(first + i), &in, &row_err);
		if (st == ST_OK)
			continue;
		if (first_err.status == ST_OK)
			first_err = row_err;
		if (st != ST_FORMAT || in.is_truncated || !x->missing)
			break;
	}
	if (first_err.status == ST_OK && bytes_left(&in))
		return fail(err, ST_FORMAT, block->offset,
			    "table block has %zu bytes after its rows", bytes_left(&in));
	if (first_err.status != ST_OK)
		*err = first_err;
	return first_err.status;
}

void log_translation_finish(struct log_translation *x)
{
	struct provenance *p = trace_provenance(x->trace);

	for (uint32_t id = 1; id < x->tracks.count; id++) {
		const struct file_track *k = log_rows_get(&x->tracks, id);

		if (k->to)
			trace_add_launches(x->trace, k->to, k->launches);
	}
	for (uint32_t id = 1; id < x->losses.count; id++) {
		const struct file_losses *row = log_rows_get(&x->losses, id);
		const uint32_t *process = log_rows_get(&x->processes, id - 1);

		for (unsigned why = 0; why < LOSS_END; why++)
			if (row->counts[why])
				trace_lose(x->trace, process && id > 1 ? *process : 0, why,
					   row->counts[why]);
	}
	p->is_synthetic |= (x->meta & META_SYNTHETIC) != 0;
	p->epoch_known = !(x->meta & META_NO_EPOCH);
	release_tables(x);
}

const struct log_desc *log_descs(const struct log_translation *x, size_t *count)
{
	*count = x->descs.count;
	return x->descs.at;
}

const struct log_layout *log_layout(const struct log_translation *x, uint16_t layout)
{
	const struct file_layout *l = log_rows_get(&x->layouts, layout);

	return l && l->came ? &l->layout : NULL;
}

bool log_translation_ended(const struct log_translation *x, uint64_t *events)
{
	*events = x->end_events;
	return x->ended && !(x->meta & META_FROM_PART);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/tensorboard/internal.h"

#include <stdlib.h>

enum { TEXT_MOST = 64 * 1024, ENTRIES_CEILING = 256 << 20 };

/* Stats that readers search on a host's plane have the first ids, in this order. */
static const char *const keys[] = {
	"group_id",
	"correlation_id",
	"flow",
	"_r",
	"step_num",
	"value",
	"tf_op",
	"hlo_op",
	"hlo_module",
	"program_id",
	"name",
	"is_eager",
	"equation",
	"shape",
	XSTAT_CLASS_NAME,
	XSTAT_KIND_NAME,
	"process_id",
	"allocator_name",
	"fragmentation",
	"bytes_reserved",
	"bytes_allocated",
	"bytes_available",
	"peak_bytes_in_use",
	"requested_bytes",
	"allocation_bytes",
	"addr",
	"data_type",
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

void tb_names_init(struct tb_names *n, const struct trace *trace)
{
	*n = (struct tb_names){ .trace = trace };
	buf_init(&n->entries, ENTRIES_CEILING);
	buf_init(&n->constants, ENTRIES_CEILING);
}

void tb_names_release(struct tb_names *n)
{
	free(n->rows);
	hash_release(&n->index);
	buf_release(&n->entries);
	buf_release(&n->constants);
	n->rows = NULL;
}

void tb_names_clear(struct tb_names *n)
{
	hash_clear(&n->index);
	n->count = 0;
	n->events = n->stats = 0;
	buf_clear(&n->entries);
	buf_clear(&n->constants);
}

enum status tb_names_status(const struct tb_names *n, struct error *err)
{
	TRY(buf_status(&n->entries, err));
	TRY(buf_status(&n->constants, err));
	return n->status == ST_OK ? ST_OK : fail_memory(err);
}

/* ---- rows ---- */

static uint64_t row_hash(enum tb_domain domain, uint64_t a, uint64_t b)
{
	return hash_word(hash_word(domain, a), b);
}

struct tb_row *tb_find(const struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b)
{
	struct tb_row key = { .a = a, .b = b, .domain = domain };
	uint32_t item = hash_find(&n->index, row_hash(domain, a, b), n->rows, sizeof(key), &key,
				  offsetof(struct tb_row, id));

	return item == HASH_NONE ? NULL : &n->rows[item];
}

struct tb_row *tb_add(struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b,
		      uint64_t id)
{
	struct tb_row *row = &n->none;

	if (vec_reserve(&n->rows, &n->cap, n->count + 1, NULL) != ST_OK ||
	    hash_add(&n->index, row_hash(domain, a, b), (uint32_t)n->count, NULL) != ST_OK)
		n->status = ST_MEMORY;
	else
		row = &n->rows[n->count++];
	*row = (struct tb_row){ .a = a, .b = b, .domain = domain, .id = id };
	return row;
}

/* ---- entries ---- */

_Static_assert((int)EVENT_META_ID == (int)STAT_META_ID &&
		       (int)EVENT_META_NAME == (int)STAT_META_NAME,
	       "both maps have one layout");

static uint64_t new_entry(struct tb_names *n, uint32_t field, uint64_t id, const char *text,
			  size_t len, const struct buf *stats)
{
	struct buf *b = &n->entries;
	size_t entry = pb_begin(b, field), value, name;

	pb_put_u64(b, ENTRY_KEY, id);
	value = pb_begin(b, ENTRY_VALUE);
	pb_put_u64(b, EVENT_META_ID, id);
	name = pb_begin(b, EVENT_META_NAME);
	sink_put_utf8(text, len < TEXT_MOST ? len : TEXT_MOST, true, b);
	pb_end(b, name);
	if (stats)
		buf_put(b, stats->data, stats->len);
	pb_end(b, value);
	pb_end(b, entry);
	return id;
}

uint64_t tb_new_stat(struct tb_names *n, const char *text, size_t len)
{
	return new_entry(n, PLANE_STAT_METADATA, KEYS + ++n->stats, text, len, NULL);
}

uint64_t tb_new_event(struct tb_names *n, const char *text, size_t len, const struct buf *stats)
{
	return new_entry(n, PLANE_EVENT_METADATA, ++n->events, text, len, stats);
}

uint64_t tb_key(struct tb_names *n, const char *text)
{
	size_t len = strlen(text);
	uint64_t where = hash_text(text, len), id = 0;
	const struct tb_row *row = tb_find(n, TB_KEY, where, 0);

	if (row)
		return row->id;
	while (id < KEYS && strcmp(keys[id], text) != 0)
		id++;
	id = id < KEYS ? new_entry(n, PLANE_STAT_METADATA, id + 1, text, len, NULL)
		       : tb_new_stat(n, text, len);
	return tb_add(n, TB_KEY, where, 0, id)->id;
}

uint64_t tb_name(struct tb_names *n, uint32_t name)
{
	const struct tb_row *row = tb_find(n, TB_NAME, name, 0);
	size_t len;
	const char *text = trace_text(n->trace, name, &len);

	return row ? row->id : tb_add(n, TB_NAME, name, 0, tb_new_stat(n, text, len))->id;
}

/* ---- stats ---- */

/* Most stats are shorter than 128 bytes, so pb_end() need not move bytes. */
void tb_stat(struct buf *b, uint32_t field, uint64_t key, uint32_t type, uint64_t bits)
{
	size_t at = pb_begin(b, field);

	pb_put_u64(b, XSTAT_METADATA_ID, key);
	if (type == XSTAT_DOUBLE)
		pb_put_fixed64(b, type, bits);
	else
		pb_put_u64(b, type, bits);
	pb_end(b, at);
}

void tb_stat_f64(struct buf *b, uint32_t field, uint64_t key, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	tb_stat(b, field, key, XSTAT_DOUBLE, bits);
}

void tb_stat_text(struct buf *b, uint32_t field, uint64_t key, const char *text, size_t len)
{
	size_t at = pb_begin(b, field), value;

	pb_put_u64(b, XSTAT_METADATA_ID, key);
	value = pb_begin(b, XSTAT_TEXT);
	sink_put_utf8(text, len, true, b);
	pb_end(b, value);
	pb_end(b, at);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/tensorboard/names.h"

#include "convert/sink/sink.h"

#include "schemas/base/pb.h"
#include "schemas/proto/xspace.h"

#include <stdlib.h>

enum { TEXT_MOST = 64 * 1024 };

static const char *const keys[] = {
#define X(text) text,
	TB_KEY_LIST(X)
#undef X
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

void tb_names_init(struct tb_names *n, const struct trace *trace)
{
	*n = (struct tb_names){ .trace = trace };
	buf_init(&n->entries, TB_ENTRIES_BYTES);
	buf_init(&n->constants, TB_ENTRIES_BYTES);
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

/* ---- rows ---- */

static uint64_t row_hash(enum tb_domain domain, uint64_t a, uint64_t b)
{
	return hash_word(hash_word(domain, a), b);
}

struct tb_row *tb_find(const struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b)
{
	uint64_t hash = row_hash(domain, a, b);
	uint32_t item;

	for (size_t at = hash_first(&n->index, hash);
	     (item = hash_item(&n->index, &at, hash)) != HASH_NONE; at = hash_next(&n->index, at)) {
		struct tb_row *row = &n->rows[item];

		if (row->a == a && row->b == b && row->domain == domain)
			return row;
	}
	return NULL;
}

enum status tb_add(struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b, uint64_t id,
		   struct tb_row **row, struct error *err)
{
	if (!id)
		return err->status;
	TRY(vec_reserve(&n->rows, &n->cap, n->count + 1, err));
	TRY(hash_add(&n->index, row_hash(domain, a, b), (uint32_t)n->count, err));
	*row = &n->rows[n->count++];
	**row = (struct tb_row){ .a = a, .b = b, .id = id, .domain = (uint8_t)domain };
	return ST_OK;
}

/* ---- entries ---- */

static uint64_t new_entry(struct tb_names *n, uint32_t field, uint64_t id, const char *text,
			  size_t len, const struct buf *stats, struct error *err)
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
	return buf_status(b, err) == ST_OK ? id : 0;
}

_Static_assert((int)EVENT_META_ID == (int)STAT_META_ID &&
		       (int)EVENT_META_NAME == (int)STAT_META_NAME,
	       "both maps have one layout");

uint64_t tb_new_stat(struct tb_names *n, const char *text, size_t len, struct error *err)
{
	return new_entry(n, PLANE_STAT_METADATA, KEYS + ++n->stats, text, len, NULL, err);
}

uint64_t tb_new_event(struct tb_names *n, const char *text, size_t len, const struct buf *stats,
		      struct error *err)
{
	return new_entry(n, PLANE_EVENT_METADATA, ++n->events, text, len, stats, err);
}

uint64_t tb_key(struct tb_names *n, const char *text, struct error *err)
{
	size_t len = strlen(text);
	uint64_t where = hash_text(text, len), id = 0;
	struct tb_row *row = tb_find(n, TB_KEY, where, 0);

	if (row)
		return row->id;
	while (id < KEYS && strcmp(keys[id], text) != 0)
		id++;
	id = id < KEYS ? new_entry(n, PLANE_STAT_METADATA, id + 1, text, len, NULL, err)
		       : tb_new_stat(n, text, len, err);
	return tb_add(n, TB_KEY, where, 0, id, &row, err) == ST_OK ? id : 0;
}

uint64_t tb_name(struct tb_names *n, uint32_t name, struct error *err)
{
	struct tb_row *row = tb_find(n, TB_NAME, name, 0);
	const char *text;
	size_t len;

	if (row)
		return row->id;
	text = trace_text(n->trace, name, &len);
	if (tb_add(n, TB_NAME, name, 0, tb_new_stat(n, text, len, err), &row, err) != ST_OK)
		return 0;
	return row->id;
}

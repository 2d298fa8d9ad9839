/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/tensorboard/names.h"

#include "schemas/hash.h"
#include "schemas/pb.h"
#include "schemas/xspace.h"

#include <stdlib.h>

enum { FIRST_CAP = 1024, TEXT_MOST = 64 * 1024 };

static const char *const known[] = {
#define X(text) text,
	TB_KEY_LIST(X)
#undef X
};
enum { KNOWN = sizeof(known) / sizeof(known[0]) };

void tb_names_init(struct tb_names *n, const struct trace *trace)
{
	*n = (struct tb_names){ .trace = trace };
	buf_init(&n->entries, TB_ENTRIES_BYTES);
	buf_init(&n->constants, TB_ENTRIES_BYTES);
}

void tb_names_release(struct tb_names *n)
{
	free(n->pairs);
	buf_release(&n->entries);
	buf_release(&n->constants);
	n->pairs = NULL;
}

void tb_names_clear(struct tb_names *n)
{
	if (n->pairs)
		memset(n->pairs, 0, n->cap * sizeof(*n->pairs));
	n->count = 0;
	n->events = n->stats = 0;
	buf_clear(&n->entries);
	buf_clear(&n->constants);
}

/* ---- pairs ---- */

static struct tb_pair *place_of(struct tb_pair *pairs, size_t cap, uint8_t domain, uint64_t a,
				uint64_t b)
{
	size_t i = hash_word(hash_word(domain, a), b) & (cap - 1);

	while (pairs[i].id &&
	       (pairs[i].a != a || pairs[i].b != b || pairs[i].domain != domain))
		i = (i + 1) & (cap - 1);
	return &pairs[i];
}

static enum status grow(struct tb_names *n, struct error *err)
{
	size_t cap = n->cap ? n->cap * 2 : FIRST_CAP;
	struct tb_pair *pairs = calloc(cap, sizeof(*pairs));

	if (!pairs)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the names of an XSpace");
	for (size_t i = 0; i < n->cap; i++) {
		struct tb_pair *p = &n->pairs[i];

		if (p->id)
			*place_of(pairs, cap, p->domain, p->a, p->b) = *p;
	}
	free(n->pairs);
	n->pairs = pairs;
	n->cap = cap;
	return ST_OK;
}

struct tb_pair *tb_find(const struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b)
{
	struct tb_pair *row = n->cap ? place_of(n->pairs, n->cap, (uint8_t)domain, a, b) : NULL;

	return row && row->id ? row : NULL;
}

enum status tb_add(struct tb_names *n, enum tb_domain domain, uint64_t a, uint64_t b, uint64_t id,
		   struct tb_pair **row, struct error *err)
{
	if (!id)
		return err->status;
	if (n->count * 2 >= n->cap)
		TRY(grow(n, err));
	*row = place_of(n->pairs, n->cap, (uint8_t)domain, a, b);
	**row = (struct tb_pair){ .a = a, .b = b, .id = id, .domain = (uint8_t)domain };
	n->count++;
	return ST_OK;
}

/* ---- entries ---- */

/* The bytes of one well-formed character at the beginning of text, or 0. */
static size_t utf8_whole(const uint8_t *p, size_t len)
{
	size_t more = p[0] < 0x80 ? 0 : p[0] < 0xC2 ? 9 : p[0] < 0xE0 ? 1 : p[0] < 0xF0 ? 2
		      : p[0] < 0xF5 ? 3 : 9;

	if (more >= len || more == 9)
		return more == 0 && len ? 1 : 0;
	for (size_t i = 1; i <= more; i++)
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
	    (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
		return 0;
	return more + 1;
}

bool tb_put_utf8(struct buf *out, const char *text, size_t len)
{
	const uint8_t *p = (const uint8_t *)text;
	bool repaired = false;

	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_whole(p + i, len - i);
		if (n) {
			buf_put(out, p + i, n);
			continue;
		}
		buf_put_text(out, "\xEF\xBF\xBD");
		repaired = true;
		n = 1;
	}
	return repaired;
}

static void put_text_field(struct buf *b, uint32_t field, const char *text, size_t len)
{
	size_t at = pb_begin(b, field);

	tb_put_utf8(b, text, len < TEXT_MOST ? len : TEXT_MOST);
	pb_end(b, at);
}

static uint64_t new_entry(struct tb_names *n, uint32_t field, uint64_t id, const char *text,
			  size_t len, const struct buf *stats, struct error *err)
{
	struct buf *b = &n->entries;
	size_t entry = pb_begin(b, field), value;

	pb_put_u64(b, ENTRY_KEY, id);
	value = pb_begin(b, ENTRY_VALUE);
	pb_put_u64(b, EVENT_META_ID, id);
	put_text_field(b, EVENT_META_NAME, text, len);
	if (stats)
		buf_put(b, stats->data, stats->len);
	pb_end(b, value);
	pb_end(b, entry);
	return buf_status(b, err) == ST_OK ? id : 0;
}

_Static_assert((int)EVENT_META_ID == (int)STAT_META_ID &&
	       (int)EVENT_META_NAME == (int)STAT_META_NAME, "both maps have one layout");

uint64_t tb_new_stat(struct tb_names *n, const char *text, size_t len, struct error *err)
{
	return new_entry(n, PLANE_STAT_METADATA, n->first + KNOWN + ++n->stats, text, len, NULL,
			 err);
}

uint64_t tb_new_event(struct tb_names *n, const char *text, size_t len, const struct buf *stats,
		      struct error *err)
{
	return new_entry(n, PLANE_EVENT_METADATA, n->first + ++n->events, text, len, stats, err);
}

static uint64_t new_key(struct tb_names *n, const char *text, struct error *err)
{
	for (uint64_t i = 0; i < KNOWN; i++)
		if (strcmp(known[i], text) == 0)
			return new_entry(n, PLANE_STAT_METADATA, i + 1, text, strlen(text), NULL,
					 err);
	return tb_new_stat(n, text, strlen(text), err);
}

uint64_t tb_key(struct tb_names *n, const char *text, struct error *err)
{
	uint64_t where = hash_text(text, strlen(text));
	struct tb_pair *row = tb_find(n, TB_KEY, where, 0);

	if (row)
		return row->id;
	if (tb_add(n, TB_KEY, where, 0, new_key(n, text, err), &row, err) != ST_OK)
		return 0;
	return row->id;
}

uint64_t tb_name(struct tb_names *n, uint32_t name, struct error *err)
{
	struct tb_pair *row = tb_find(n, TB_NAME, name, 0);
	const char *text;
	size_t len;

	if (row)
		return row->id;
	text = trace_text(n->trace, name, &len);
	if (tb_add(n, TB_NAME, name, 0, tb_new_stat(n, text, len, err), &row, err) != ST_OK)
		return 0;
	return row->id;
}

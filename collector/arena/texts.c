/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/texts.h"

#include "collector/arena/arena.h"
#include "collector/arena/lock.h"
#include "schemas/base/bytes.h"
#include "schemas/base/hash.h"

#include <errno.h>
#include <string.h>

enum { BUCKETS = 1 << 15, ROWS_FIRST = 4096, BYTES_FIRST = 64 << 10 };

struct row {
	uint32_t at, len; /* place in `bytes` of the table */
	uint32_t hash;    /* upper half of the hash */
	uint32_t next;    /* next lower id in its bucket; 0: none */
};
/* The table in the arena.  A row is complete before its bucket refers to it. */
struct table {
	_Atomic uint32_t count;
	_Atomic uint32_t lock;        /* between this process and the recorder, see lock.h */
	uint32_t used;                /* bytes in use */
	uint32_t rows_mapped, mapped; /* parts of `rows` and `bytes` that are mapped, which grow */
	_Atomic uint32_t buckets[BUCKETS]; /* newest id of each hash */
	_Alignas(4096) struct row rows[NAMES_MAX + 1];
	_Alignas(4096) char bytes[NAMES_BYTES];
};
/* The table for lookups: that of this process, or in a child that of its parent, which it only
 * reads. */
static struct table *_Atomic texts;
/* What this process has mapped of it.  A parent maps more, and adds texts there, that its child
 * lacks. */
static _Atomic uint32_t rows_here, bytes_here;
static struct lock lock = LOCK_INITIALIZER;
static const struct arena_texts place = {
	sizeof(struct table),
	{ { 0, offsetof(struct table, rows) + ROWS_FIRST * sizeof(struct row) },
	  { offsetof(struct table, bytes), BYTES_FIRST } },
};
static bool may_map = true; /* not in the recorder, which cannot map pages for the program */

static struct table *table_now(void)
{
	return atomic_load_explicit(&texts, memory_order_acquire);
}

/*
 * Compares texts without memcmp(), which in a program with ThreadSanitizer is its own function.
 * That does not know of the atomics here and would report a race.
 */
static bool is_same(const char *a, const char *b, size_t len)
{
	for (; len >= 8; len -= 8, a += 8, b += 8)
		if (get_u64((const uint8_t *)a) != get_u64((const uint8_t *)b))
			return false;
	while (len && a[len - 1] == b[len - 1])
		len--;
	return !len;
}

static bool is_here(const struct table *t, uint32_t id)
{
	return id < atomic_load_explicit(&rows_here, memory_order_relaxed) &&
	       t->rows[id].at + t->rows[id].len <
		       atomic_load_explicit(&bytes_here, memory_order_relaxed);
}

static uint32_t search(struct table *t, const char *text, size_t len, uint64_t hash)
{
	uint32_t id = atomic_load_explicit(&t->buckets[hash % BUCKETS], memory_order_acquire);

	for (; id && is_here(t, id); id = t->rows[id].next) {
		const struct row *r = &t->rows[id];
		if (r->hash == (uint32_t)(hash >> 32) && r->len == len &&
		    is_same(t->bytes + r->at, text, len))
			return id;
	}
	return 0;
}

/* Doubles the mapped part of `all` items at `first`; returns false if that fails. */
static bool map_more(uint32_t *mapped, _Atomic uint32_t *here, uint32_t all, const void *first,
		     size_t size)
{
	uint32_t more = *mapped < all - *mapped ? *mapped : all - *mapped;
	uint64_t at = arena_offset(arena(), first) + *mapped * size;

	if (!more || !may_map || !arena_open_pages(at, more * size))
		return false;
	*mapped += more;
	atomic_store_explicit(here, *mapped, memory_order_relaxed);
	return true;
}

/* Adds a text unless another thread has added it in the meantime; returns its id. */
static uint32_t add(struct table *t, const char *text, size_t len, uint64_t hash)
{
	uint32_t id = atomic_load_explicit(&t->count, memory_order_relaxed) + 1;
	_Atomic uint32_t *bucket = &t->buckets[hash % BUCKETS];
	uint32_t found = search(t, text, len, hash);

	if (found)
		return found;
	if (id > NAMES_MAX || len + 1 > NAMES_BYTES - t->used)
		return 0;
	if (id >= t->rows_mapped &&
	    !map_more(&t->rows_mapped, &rows_here, NAMES_MAX + 1, t->rows, sizeof(t->rows[0])))
		return 0;
	if (t->used + len + 1 > t->mapped &&
	    !map_more(&t->mapped, &bytes_here, NAMES_BYTES, t->bytes, 1))
		return 0;
	memcpy(t->bytes + t->used, text, len);
	t->rows[id] = (struct row){ .at = t->used,
				    .len = (uint32_t)len,
				    .hash = (uint32_t)(hash >> 32),
				    .next = atomic_load_explicit(bucket, memory_order_relaxed) };
	t->used += (uint32_t)len + 1;
	atomic_store_explicit(bucket, id, memory_order_release);
	atomic_store_explicit(&t->count, id, memory_order_release);
	return id;
}

/* Returns the table of this process's own arena, with all texts of the previous one, or NULL
 * without memory. */
static struct table *own_table(void)
{
	struct table *before = table_now(), *t;
	uint32_t rows = rows_here, bytes = bytes_here;

	if (arena_is_mine()) /* NULL if there was no memory to copy the texts */
		return before == arena_at(arena(), arena()->texts) ? before : NULL;
	if (!arena_make(&place))
		return NULL;
	t = arena_at(arena(), arena()->texts);
	rows_here = t->rows_mapped = ROWS_FIRST;
	bytes_here = t->mapped = BYTES_FIRST;
	/* The parent continues to add texts to its table; those after this count are not copied. */
	uint32_t count = before ? atomic_load_explicit(&before->count, memory_order_acquire) : 0;
	for (uint32_t id = 1; id <= count; id++) {
		const struct row *r = &before->rows[id];
		if (id >= rows || r->at + r->len >= bytes)
			break;
		const char *text = before->bytes + r->at;
		if (add(t, text, r->len, hash_text(text, r->len)) != id)
			return NULL;
	}
	atomic_store_explicit(&texts, t, memory_order_release);
	return t;
}

bool names_open(void)
{
	if (!lock_take_masked(&lock))
		return false;
	bool good = own_table() != NULL;
	lock_release(&lock);
	return good;
}

bool names_adopt(void)
{
	struct table *t = arena_at(arena(), arena()->texts);

	if (arena()->bytes < arena()->texts + sizeof(*t) || t->count > NAMES_MAX)
		return false;
	for (uint32_t id = 1; id <= t->count; id++)
		if (t->rows[id].len > NAMES_TEXT_MAX || t->rows[id].next >= id ||
		    t->rows[id].at > NAMES_BYTES - t->rows[id].len)
			return false;
	may_map = false;
	rows_here = NAMES_MAX + 1;
	bytes_here = NAMES_BYTES;
	atomic_store_explicit(&texts, t, memory_order_release);
	return true;
}

uint32_t name_lookup(const char *text, size_t len)
{
	struct table *t = table_now();

	return t ? search(t, text, len, hash_text(text, len)) : 0;
}

static size_t fitting(const char *text, size_t len)
{
	if (len <= NAMES_TEXT_MAX)
		return len;
	for (len = NAMES_TEXT_MAX; len && ((uint8_t)text[len] & 0xc0) == 0x80; len--)
		;
	return len;
}

uint32_t name_find_text(const char *text, size_t len)
{
	struct table *t = table_now();

	len = fitting(text, len);
	uint64_t hash = hash_text(text, len);
	uint32_t id = t ? search(t, text, len, hash) : 0;
	int kept = errno; /* calls of tacho.h do not change errno */
	if (id)
		return id;
	if (!(arena_is_mine() ? lock_take(&lock) : lock_take_masked(&lock)))
		return 0;
	t = own_table();
	if (t) {
		lock_take_word(&t->lock);
		id = add(t, text, len, hash);
		lock_release_word(&t->lock);
	}
	errno = kept;
	lock_release(&lock);
	return id;
}

uint32_t name_find(const char *text)
{
	text = text ? text : "";
	return name_find_text(text, strnlen(text, NAMES_TEXT_MAX + 1));
}

const char *name_text(uint32_t id, size_t *len)
{
	struct table *t = table_now();

	*len = 0;
	if (!id || id > name_count() || !is_here(t, id))
		return "";
	*len = t->rows[id].len;
	return t->bytes + t->rows[id].at;
}

uint32_t name_count(void)
{
	struct table *t = table_now();

	return t ? atomic_load_explicit(&t->count, memory_order_acquire) : 0;
}

bool names_before_fork(void)
{
	return lock_take(&lock);
}

void names_after_fork(void)
{
	lock_release(&lock);
}

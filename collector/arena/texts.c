/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/texts.h"

#include "collector/arena/arena.h"
#include "collector/arena/lock.h"
#include "schemas/base/hash.h"

#include <string.h>

enum { BUCKETS = 1 << 19, OPEN_AT_ONCE = 1 << 20 };

struct row {
	uint32_t at, len; /* in `bytes` of the table */
	uint32_t hash;    /* upper half */
	uint32_t unused;  /* so that rows are found by a shift */
};
/* In the arena.  A bucket is written once, after its row is complete. */
struct table {
	_Atomic uint32_t count;
	_Atomic uint32_t lock;             /* of this process and the recorder, see lock.h */
	uint32_t used, opened;             /* of `bytes`: pages open as they are needed */
	_Atomic uint32_t buckets[BUCKETS]; /* ids by hash */
	struct row rows[NAMES_MAX + 1];
	_Alignas(4096) char bytes[NAMES_BYTES];
};
/* The table that is looked into: this process's, or in a child its parent's, which it only reads.
 */
static struct table *_Atomic texts;
static struct lock lock = LOCK_INITIALIZER;
static bool may_open = true; /* not in the recorder, as that opens no pages of the program's */

static struct table *table_now(void)
{
	return atomic_load_explicit(&texts, memory_order_acquire);
}

/* The id; or 0, and *bucket is the free bucket where the search ended. */
static uint32_t search(struct table *t, const char *text, size_t len, uint64_t hash, size_t *bucket)
{
	size_t i = hash % BUCKETS;

	for (;; i = (i + 1) % BUCKETS) {
		uint32_t id = atomic_load_explicit(&t->buckets[i], memory_order_acquire);
		if (!id)
			break;
		const struct row *r = &t->rows[id];
		if (r->hash == (uint32_t)(hash >> 32) && r->len == len &&
		    !memcmp(t->bytes + r->at, text, len))
			return id;
	}
	*bucket = i;
	return 0;
}

/* Adds it, unless another thread has done so meanwhile. */
static uint32_t add(struct table *t, const char *text, size_t len, uint64_t hash)
{
	uint32_t id = atomic_load_explicit(&t->count, memory_order_relaxed) + 1;
	size_t bucket;
	uint32_t found = search(t, text, len, hash, &bucket);

	if (found)
		return found;
	if (id > NAMES_MAX || len + 1 > NAMES_BYTES - t->used)
		return 0;
	for (; t->used + len + 1 > t->opened; t->opened += OPEN_AT_ONCE)
		if (!may_open ||
		    !arena_open_pages(arena_offset(arena(), t->bytes + t->opened), OPEN_AT_ONCE))
			return 0;
	memcpy(t->bytes + t->used, text, len);
	t->rows[id] =
		(struct row){ .at = t->used, .len = (uint32_t)len, .hash = (uint32_t)(hash >> 32) };
	t->used += (uint32_t)len + 1;
	atomic_store_explicit(&t->buckets[bucket], id, memory_order_release);
	atomic_store_explicit(&t->count, id, memory_order_release);
	return id;
}

/* The table of this process's own arena, with all texts of the one before; NULL: no memory. */
static struct table *own_table(void)
{
	struct table *before = table_now(), *t;

	if (arena_is_mine()) /* if there was no memory to copy into it, it has no table */
		return before == arena_at(arena(), arena()->texts) ? before : NULL;
	if (!arena_make(sizeof(*t)) ||
	    !arena_open_pages(arena()->texts, offsetof(struct table, bytes)))
		return NULL;
	t = arena_at(arena(), arena()->texts);
	/* A parent goes on adding to its own table: what comes behind this count is not copied. */
	uint32_t count = before ? atomic_load_explicit(&before->count, memory_order_acquire) : 0;
	for (uint32_t id = 1; id <= count; id++) {
		const struct row *r = &before->rows[id];
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
		if (t->rows[id].len > NAMES_TEXT_MAX ||
		    t->rows[id].at > NAMES_BYTES - t->rows[id].len)
			return false;
	may_open = false;
	atomic_store_explicit(&texts, t, memory_order_release);
	return true;
}

uint32_t name_lookup(const char *text, size_t len)
{
	struct table *t = table_now();
	size_t bucket;

	return t ? search(t, text, len, hash_text(text, len), &bucket) : 0;
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
	size_t bucket;

	len = fitting(text, len);
	uint64_t hash = hash_text(text, len);
	uint32_t id = t ? search(t, text, len, hash, &bucket) : 0;
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
	if (!id || id > name_count())
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

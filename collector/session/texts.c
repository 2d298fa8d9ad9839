/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/texts.h"

#include "collector/session/lock.h"
#include "schemas/base/hash.h"

#include <stdatomic.h>
#include <string.h>

enum { BUCKETS = 1 << 19 };

struct name {
	const char *text;
	uint32_t len;
	uint32_t hash; /* upper half */
};
static struct name names[NAMES_MAX + 1];
static char texts[NAMES_BYTES];
static size_t texts_used;
static _Atomic uint32_t count;
/* Ids by hash.  A bucket is written once, after its row of `names` is complete. */
static _Atomic uint32_t buckets[BUCKETS];
static struct lock lock = LOCK_INITIALIZER;

/* The id; or 0, and *bucket is the free bucket where the search ended. */
static uint32_t search(const char *text, size_t len, uint64_t hash, size_t *bucket)
{
	size_t i = hash % BUCKETS;

	for (;; i = (i + 1) % BUCKETS) {
		uint32_t id = atomic_load_explicit(&buckets[i], memory_order_acquire);
		if (!id)
			break;
		const struct name *n = &names[id];
		if (n->hash == (uint32_t)(hash >> 32) && n->len == len &&
		    !memcmp(n->text, text, len))
			return id;
	}
	*bucket = i;
	return 0;
}

static uint32_t add(const char *text, size_t len, uint64_t hash)
{
	uint32_t id = atomic_load_explicit(&count, memory_order_relaxed) + 1;
	size_t bucket;
	uint32_t found =
		search(text, len, hash, &bucket); /* another thread has added it meanwhile */

	if (found)
		return found;
	if (id > NAMES_MAX || len + 1 > sizeof(texts) - texts_used)
		return 0;
	memcpy(texts + texts_used, text, len);
	names[id] = (struct name){ .text = texts + texts_used,
				   .len = (uint32_t)len,
				   .hash = (uint32_t)(hash >> 32) };
	texts_used += len + 1;
	atomic_store_explicit(&buckets[bucket], id, memory_order_release);
	atomic_store_explicit(&count, id, memory_order_release);
	return id;
}

uint32_t name_lookup(const char *text, size_t len)
{
	size_t bucket;

	return search(text, len, hash_text(text, len), &bucket);
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
	size_t bucket;

	len = fitting(text, len);
	uint64_t hash = hash_text(text, len);
	uint32_t id = search(text, len, hash, &bucket);
	if (id)
		return id;
	lock_take(&lock);
	id = add(text, len, hash);
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
	if (!id || id > atomic_load_explicit(&count, memory_order_acquire)) {
		*len = 0;
		return "";
	}
	*len = names[id].len;
	return names[id].text;
}

uint32_t name_count(void)
{
	return atomic_load_explicit(&count, memory_order_acquire);
}

void names_before_fork(void)
{
	lock_take(&lock);
}

void names_after_fork(void)
{
	lock_release(&lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/names.h"

#include "collector/arena/arena.h"
#include "collector/arena/lock.h"

#include <stdatomic.h>
#include <string.h>

enum { COLORS = 255, OBJECTS = 6144 };

/*
 * The tables are in the arena, or in our own memory if there is no arena or no space in it.  Rows
 * below a count are complete and constant: the count is stored last.
 */
struct tables {
	uint32_t domains[NVTX_DOMAINS]; /* used from 1 to `domain_count` */
	struct nvtx_named objects[OBJECTS];
	_Atomic uint64_t colors[COLORS]; /* ARGB + 1; 0: free */
	_Atomic uint32_t domain_count, object_count;
	_Atomic uint64_t lost;
	uint64_t told, stored[2]; /* of `lost`: in a log, stored (by parity) */
	struct nvtx_schemas schemas;
};
static void *_Atomic own_memory;
/* The tables for lookups.  A child of fork() uses its parent's until it has its own. */
static struct tables *_Atomic tables; /* NULL until they are needed */
static struct lock lock = LOCK_INITIALIZER;

#define COUNT_OF(count)         atomic_load_explicit(&(count), memory_order_acquire)
#define SET_COUNT(count, value) atomic_store_explicit(&(count), (value), memory_order_release)

static struct tables *tables_now(void)
{
	struct tables *t = atomic_load_explicit(&tables, memory_order_acquire), *none = NULL;

	if (t)
		return t;
	t = arena_once(&own_memory, sizeof(*t));
	return atomic_compare_exchange_strong(&tables, &none, t) ? t : none;
}

bool nvtx_names_exist(void)
{
	return tables_now();
}

/* Needs the lock.  Returns the tables of this process, with a copy of the previous ones. */
static struct tables *own_tables(void)
{
	struct tables *before = tables_now(), *t = arena_table(ARENA_NVTX, sizeof(*t));

	if (!t)
		t = arena_once(&own_memory, sizeof(*t));
	if (!t)
		return before; /* a child continues with its copy of the parent's tables */
	if (t == before)
		return t;
	uint32_t count = COUNT_OF(before->domain_count), named = COUNT_OF(before->object_count);
	memcpy(t->domains, before->domains, sizeof(t->domains));
	memcpy(t->objects, before->objects, named * sizeof(t->objects[0]));
	for (unsigned i = 0; i < COLORS; i++)
		atomic_store_explicit(&t->colors[i], atomic_load(&before->colors[i]),
				      memory_order_relaxed);
	atomic_store(&t->lost, atomic_load(&before->lost));
	t->told = before->told;
	SET_COUNT(t->domain_count, count);
	SET_COUNT(t->object_count, named);
	count = COUNT_OF(before->schemas.count);
	memcpy(t->schemas.rows, before->schemas.rows, count * sizeof(t->schemas.rows[0]));
	const struct nvtx_schema_row *last = count ? &t->schemas.rows[count - 1] : NULL;

	t->schemas.entry_count = last ? last->first + last->count : 0;
	memcpy(t->schemas.entries, before->schemas.entries,
	       t->schemas.entry_count * sizeof(t->schemas.entries[0]));
	SET_COUNT(t->schemas.count, count);
	atomic_store_explicit(&tables, t, memory_order_release);
	return t;
}

void nvtx_names_own(void)
{
	if (!lock_take_masked(&lock))
		return;
	own_tables();
	lock_release(&lock);
}

bool nvtx_names_adopt(void)
{
	struct tables *t = arena_table_there(ARENA_NVTX, sizeof(*t));

	if (t && (t->domain_count >= NVTX_DOMAINS || t->object_count > OBJECTS ||
		  t->schemas.count > NVTX_SCHEMAS))
		return false;
	for (uint32_t i = 0; t && i < t->schemas.count; i++)
		if (t->schemas.rows[i].first > NVTX_ENTRIES ||
		    t->schemas.rows[i].count > NVTX_ENTRIES - t->schemas.rows[i].first)
			return false;
	if (!t)
		return nvtx_names_exist();
	if (t == atomic_load(&tables))
		return true;
	t->told = t->stored[arena()->commit & 1];
	atomic_store_explicit(&tables, t, memory_order_release);
	return true;
}

bool nvtx_names_lock(void)
{
	return lock_take_masked(&lock);
}

void nvtx_names_before_fork(void)
{
	lock_take_until(&lock, UINT64_MAX); /* holders block signals, so none is interrupted */
}

void nvtx_names_unlock(void)
{
	lock_release(&lock);
}

const struct nvtx_schemas *nvtx_schemas(void)
{
	return &tables_now()->schemas;
}

struct nvtx_schemas *nvtx_schemas_own(void)
{
	return &own_tables()->schemas;
}

uint64_t nvtx_lost(void)
{
	const struct tables *t = tables_now();

	return atomic_load_explicit(&t->lost, memory_order_relaxed) - t->told;
}

void nvtx_lost_is_told(uint64_t count)
{
	tables_now()->told += count;
}

void nvtx_lost_is_stored(unsigned parity)
{
	tables_now()->stored[parity] = tables_now()->told;
}

void nvtx_lose(uint64_t count)
{
	if (count && nvtx_names_exist())
		atomic_fetch_add_explicit(&tables_now()->lost, count, memory_order_relaxed);
}

/* ---- domains ---- */

static uint32_t add_domain(struct tables *t, uint32_t name)
{
	uint32_t count = COUNT_OF(t->domain_count) + 1;

	for (uint32_t i = 1; i < count; i++)
		if (t->domains[i] == name)
			return i;
	if (count == NVTX_DOMAINS) {
		nvtx_lose(1);
		return NVTX_DOMAINS - 1;
	}
	t->domains[count] = name;
	SET_COUNT(t->domain_count, count);
	return count;
}

uint32_t nvtx_domain_find(uint32_t name)
{
	if (!lock_take_masked(&lock)) {
		nvtx_lose(1);
		return NVTX_DOMAINS - 1;
	}
	uint32_t domain = add_domain(own_tables(), name);
	lock_release(&lock);
	return domain;
}

uint32_t nvtx_domain_name(uint32_t domain)
{
	return domain && domain < nvtx_domain_count() ? tables_now()->domains[domain] : 0;
}

uint32_t nvtx_domain_count(void)
{
	return COUNT_OF(tables_now()->domain_count) + 1;
}

/* ---- colours: few, without a lock ---- */

unsigned nvtx_color_find(uint32_t argb)
{
	uint64_t wanted = (uint64_t)argb + 1, there;
	struct tables *t = tables_now();

	for (unsigned i = 0; i < COLORS; i++) {
		there = atomic_load_explicit(&t->colors[i], memory_order_relaxed);
		if (!there && atomic_compare_exchange_strong(&t->colors[i], &there, wanted))
			return i + 1;
		if (there == wanted)
			return i + 1;
	}
	nvtx_lose(1);
	return 0;
}

uint32_t nvtx_color(unsigned color)
{
	if (!color || color > COLORS)
		return 0;
	return (uint32_t)(atomic_load_explicit(&tables_now()->colors[color - 1],
					       memory_order_relaxed) -
			  1);
}

/* ---- threads, devices, streams, categories ---- */

void nvtx_object_put(enum nvtx_object object, uint64_t id, uint32_t name)
{
	if (nvtx_object_name(object, id) == name)
		return;
	if (!lock_take_masked(&lock)) {
		nvtx_lose(1);
		return;
	}
	struct tables *t = own_tables();
	uint32_t count = COUNT_OF(t->object_count);
	if (count < OBJECTS) {
		t->objects[count] = (struct nvtx_named){ object, id, name };
		SET_COUNT(t->object_count, count + 1);
	} else {
		nvtx_lose(1);
	}
	lock_release(&lock);
}

uint32_t nvtx_object_name(enum nvtx_object object, uint64_t id)
{
	const struct tables *t = tables_now();

	for (uint32_t i = COUNT_OF(t->object_count); i > 0; i--)
		if (t->objects[i - 1].object == object && t->objects[i - 1].id == id)
			return t->objects[i - 1].name;
	return 0;
}

uint32_t nvtx_object_count(void)
{
	return COUNT_OF(tables_now()->object_count);
}

struct nvtx_named nvtx_object_at(uint32_t i)
{
	return tables_now()->objects[i];
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/names.h"

#include "collector/arena/lock.h"

#include <stdatomic.h>

enum { COLORS = 255, OBJECTS = 6144 };

/* Rows below a count are complete and constant: the count is stored last. */
static uint32_t domains[NVTX_DOMAINS];
static struct nvtx_named objects[OBJECTS];
static _Atomic uint32_t domain_count = 1, object_count;
static _Atomic uint64_t colors[COLORS]; /* ARGB + 1; 0: free */
static _Atomic uint64_t lost;
static struct lock lock = LOCK_INITIALIZER;

#define COUNT_OF(count)         atomic_load_explicit(&(count), memory_order_acquire)
#define SET_COUNT(count, value) atomic_store_explicit(&(count), (value), memory_order_release)

void nvtx_names_lock(void)
{
	lock_take(&lock);
}

void nvtx_names_unlock(void)
{
	lock_release(&lock);
}

uint64_t nvtx_lost(void)
{
	return atomic_load_explicit(&lost, memory_order_relaxed);
}

void nvtx_lose(uint64_t count)
{
	if (count)
		atomic_fetch_add_explicit(&lost, count, memory_order_relaxed);
}

/* ---- domains ---- */

static uint32_t add_domain(uint32_t name)
{
	uint32_t count = COUNT_OF(domain_count), i;

	for (i = 1; i < count; i++)
		if (domains[i] == name)
			return i;
	if (count == NVTX_DOMAINS) {
		nvtx_lose(1);
		return NVTX_DOMAINS - 1;
	}
	domains[count] = name;
	SET_COUNT(domain_count, count + 1);
	return count;
}

uint32_t nvtx_domain_find(uint32_t name)
{
	lock_take(&lock);
	uint32_t domain = add_domain(name);
	lock_release(&lock);
	return domain;
}

uint32_t nvtx_domain_name(uint32_t domain)
{
	return domain && domain < COUNT_OF(domain_count) ? domains[domain] : 0;
}

uint32_t nvtx_domain_count(void)
{
	return COUNT_OF(domain_count);
}

/* ---- colours: few, found without a lock ---- */

unsigned nvtx_color_find(uint32_t argb)
{
	uint64_t wanted = (uint64_t)argb + 1, there;

	for (unsigned i = 0; i < COLORS; i++) {
		there = atomic_load_explicit(&colors[i], memory_order_relaxed);
		if (!there && atomic_compare_exchange_strong(&colors[i], &there, wanted))
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
	return (uint32_t)(atomic_load_explicit(&colors[color - 1], memory_order_relaxed) - 1);
}

/* ---- threads, devices, streams, categories ---- */

void nvtx_object_put(enum nvtx_object object, uint64_t id, uint32_t name)
{
	if (nvtx_object_name(object, id) == name)
		return;
	lock_take(&lock);
	uint32_t count = COUNT_OF(object_count);
	if (count < OBJECTS) {
		objects[count] = (struct nvtx_named){ object, id, name };
		SET_COUNT(object_count, count + 1);
	} else {
		nvtx_lose(1);
	}
	lock_release(&lock);
}

uint32_t nvtx_object_name(enum nvtx_object object, uint64_t id)
{
	for (uint32_t i = COUNT_OF(object_count); i > 0; i--)
		if (objects[i - 1].object == object && objects[i - 1].id == id)
			return objects[i - 1].name;
	return 0;
}

uint32_t nvtx_object_count(void)
{
	return COUNT_OF(object_count);
}

struct nvtx_named nvtx_object_at(uint32_t i)
{
	return objects[i];
}

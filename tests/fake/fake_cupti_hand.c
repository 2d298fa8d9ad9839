/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moment in which a buffer is the client's again: records are shuffled, names get a memory that
 * lasts until complete() returns and holds other names the next time.
 */
#include "tests/fake/fake_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 512, SLOT_BYTES = 8192, PLACES = 2048, POISON = 0xDB };

struct names { /* of one buffer */
	struct names *next;
	char *memory;            /* SLOTS of SLOT_BYTES */
	const char *was[PLACES]; /* by a hash of the pointer */
	char *now[PLACES];
	unsigned used[SLOTS], count; /* places, in the order in which they came */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct names *spare;
static _Atomic uint64_t turns, empty_counter;
static _Atomic unsigned under_way;

/* ---- order ---- */

static size_t size_of(const uint8_t *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind < KINDS ? fake_profile.sizes[kind] : 0;
}

static void shuffle(uint8_t *bytes, size_t valid)
{
	size_t *starts = malloc((valid / 8 + 1) * sizeof(*starts)), count = 0, at, i, j, size;
	uint8_t *copy = malloc(valid + 1);
	unsigned seed = (unsigned)turns + 1;

	for (at = 0; starts && copy && at < valid && (size = size_of(bytes + at)); at += size)
		starts[count++] = at;
	if (count < 2)
		goto out;
	memcpy(copy, bytes, valid);
	for (i = count - 1; i > 0; i--) {
		j = (size_t)rand_r(&seed) % (i + 1);
		at = starts[i];
		starts[i] = starts[j];
		starts[j] = at;
	}
	for (i = 0, at = 0; i < count; i++, at += size) {
		size = size_of(copy + starts[i]);
		memcpy(bytes + at, copy + starts[i], size);
	}
out:
	free(starts);
	free(copy);
}

/* ---- names ---- */

#define AT(name, field) offsetof(CUpti_Activity##name, field)
static const struct {
	uint32_t kind;
	size_t at;
} pointers[] = {
	{ 3, AT(Kernel10, name) }, { 10, AT(Kernel10, name) },  { 11, AT(Name, name) },
	{ 12, AT(Marker2, name) }, { 12, AT(Marker2, domain) }, { 26, AT(Function, name) },
	{ 49, AT(Memory4, name) }, { 52, AT(Jit2, cachePath) },
};

static struct names *names_take(void)
{
	struct names *n;

	pthread_mutex_lock(&lock);
	n = spare;
	if (n)
		spare = n->next;
	pthread_mutex_unlock(&lock);
	if (!n)
		n = calloc(1, sizeof(*n));
	if (n && !n->memory)
		n->memory = calloc(SLOTS, SLOT_BYTES);
	return n;
}

static unsigned place_of(const struct names *n, const char *name)
{
	unsigned i = (unsigned)((uintptr_t)name >> 3) % PLACES;

	while (n->was[i] && n->was[i] != name)
		i = (i + 1) % PLACES;
	return i;
}

static void collect(struct names *n, const char *name)
{
	unsigned place = place_of(n, name);

	if (n->was[place] || n->count == SLOTS || strlen(name) >= SLOT_BYTES - 1)
		return;
	n->was[place] = name;
	n->used[n->count++] = place;
}

/* The same memory as the last time, for other names. */
static void assign(struct names *n)
{
	bool heap = OPTION(poison_names) == 2;
	uint64_t turn = turns++;
	unsigned i;

	for (i = 0; i < n->count; i++) {
		const char *name = n->was[n->used[i]];
		char *slot = heap ? malloc(strlen(name) + 1)
				  : n->memory + (i + turn) % n->count * SLOT_BYTES;

		if (slot)
			strcpy(slot, name);
		n->now[n->used[i]] = slot;
	}
}

static void walk(uint8_t *bytes, size_t valid, struct names *n, bool replace)
{
	size_t at, size, i;
	uint32_t kind;
	char *name;

	for (at = 0; at < valid && (size = size_of(bytes + at)); at += size) {
		memcpy(&kind, bytes + at, sizeof(kind));
		for (i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
			uint8_t *field = bytes + at + pointers[i].at;

			if (pointers[i].kind != kind)
				continue;
			memcpy(&name, field, sizeof(name));
			if (!name)
				continue;
			if (!replace)
				collect(n, name);
			else if (n->now[place_of(n, name)])
				memcpy(field, &n->now[place_of(n, name)], sizeof(name));
		}
	}
}

static struct names *lend_names(uint8_t *bytes, size_t valid)
{
	struct names *n = OPTION(poison_names) ? names_take() : NULL;

	if (!n || !n->memory)
		return n;
	walk(bytes, valid, n, false);
	assign(n);
	walk(bytes, valid, n, true);
	return n;
}

static void poison(struct names *n)
{
	unsigned i;

	for (i = 0; i < n->count; i++) {
		char *slot = n->now[n->used[i]];
		size_t length = slot ? strlen(n->was[n->used[i]]) + 1 : 0;

		memset(slot ? slot : n->memory, POISON, length);
		if (slot && (slot < n->memory || slot >= n->memory + SLOTS * SLOT_BYTES))
			free(slot);
		n->was[n->used[i]] = NULL;
		n->now[n->used[i]] = NULL;
	}
	n->count = 0;
	pthread_mutex_lock(&lock);
	n->next = spare;
	spare = n;
	pthread_mutex_unlock(&lock);
}

/* ---- handing over ---- */

static void call(uint8_t *bytes, size_t size, size_t valid)
{
	CUpti_BuffersCallbackCompleteFunc complete = fake_state.complete;

	if (!complete)
		return;
	fake_counts.completions++;
	if (!valid)
		fake_counts.empty++;
	if (atomic_fetch_add(&under_way, 1) > 0)
		fake_counts.together++;
	fake_place_enter(PLACE_COMPLETE);
	complete(NULL, 0, bytes, size, valid);
	fake_place_leave();
	under_way--;
}

static void one_more_empty(void)
{
	CUpti_BuffersCallbackRequestFunc request = fake_state.request;
	uint8_t *bytes = NULL;
	size_t size = 0, most = 0;

	if (!request)
		return;
	fake_counts.requests++;
	fake_place_enter(PLACE_REQUEST);
	request(&bytes, &size, &most);
	fake_place_leave();
	if (bytes)
		call(bytes, size, 0);
}

void fake_hand_over(uint8_t *bytes, size_t size, size_t valid, bool parse, bool by_flush,
		    bool foreign)
{
	struct names *names = NULL;

	if (parse && OPTION(shuffle))
		shuffle(bytes, valid);
	if (parse && !foreign)
		names = lend_names(bytes, valid);
	if (by_flush)
		fake_counts.by_flush++;
	else
		fake_counts.by_worker++;
	call(bytes, size, valid);
	if (names)
		poison(names);
	if (fake_each(&empty_counter, OPTION(empty_every)))
		one_more_empty();
}

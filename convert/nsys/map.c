/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/nsys/map.h"

#include "schemas/hash.h"

#include <stdlib.h>

enum { MAP_FIRST = 64, MAP_MOST = 1 << 24 };

static struct nsys_pair *place(const struct nsys_map *m, uint64_t key)
{
	size_t at = hash_word(0, key) & (m->cap - 1);

	while (m->rows[at].value && m->rows[at].key != key)
		at = (at + 1) & (m->cap - 1);
	return &m->rows[at];
}

uint32_t nsys_map_find(const struct nsys_map *m, uint64_t key)
{
	return m->cap ? place(m, key)->value : 0;
}

static enum status grow(struct nsys_map *m, struct error *err)
{
	struct nsys_map old = *m;

	if (m->count >= MAP_MOST)
		return fail(err, ST_CEILING, NOWHERE, "more than %d texts or threads", MAP_MOST);
	m->cap = old.cap ? old.cap * 2 : MAP_FIRST;
	m->rows = calloc(m->cap, sizeof(*m->rows));
	if (!m->rows) {
		*m = old;
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a list of ids");
	}
	for (size_t i = 0; i < old.cap; i++)
		if (old.rows[i].value)
			*place(m, old.rows[i].key) = old.rows[i];
	free(old.rows);
	return ST_OK;
}

enum status nsys_map_put(struct nsys_map *m, uint64_t key, uint32_t value, struct error *err)
{
	struct nsys_pair *p;

	if (m->count * 2 >= m->cap)
		TRY(grow(m, err));
	p = place(m, key);
	m->count += !p->value;
	*p = (struct nsys_pair){ key, value };
	return ST_OK;
}

void nsys_map_release(struct nsys_map *m)
{
	free(m->rows);
	*m = (struct nsys_map){ 0 };
}

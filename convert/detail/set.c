/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/detail/parts.h"

#include <stdlib.h>

enum {
	PAGE_SHIFT = 9, /* ids in a page */
	PAGE_WORDS = (1 << PAGE_SHIFT) / 64,
	PAGES_MOST = 1 << 17,
};

struct detail_page {
	uint64_t id;      /* of its first, without the low bits */
	uint32_t process; /* 0: free */
	uint32_t what;
	uint64_t bits[PAGE_WORDS];
};

void detail_set_release(struct detail_set *s)
{
	free(s->pages);
	*s = (struct detail_set){ 0 };
}

/* The page, or the free place where it would be; NULL: there is no table yet. */
static struct detail_page *find(const struct detail_set *s, uint32_t process, uint32_t what,
				uint64_t id)
{
	uint64_t hash = (id ^ ((uint64_t)process << 34) ^ ((uint64_t)what << 60)) *
			UINT64_C(0x9E3779B97F4A7C15);

	for (size_t i = (size_t)(hash >> 32); s->room; i++) {
		struct detail_page *p = &s->pages[i & (s->room - 1)];

		if (!p->process || (p->id == id && p->process == process && p->what == what))
			return p;
	}
	return NULL;
}

static bool grow(struct detail_set *s)
{
	struct detail_set bigger = { .room = s->room ? s->room * 2 : 64, .count = s->count };

	if (s->count * 2 < s->room)
		return true;
	if (bigger.room > 2 * PAGES_MOST)
		return false;
	bigger.pages = calloc(bigger.room, sizeof(*bigger.pages));
	if (!bigger.pages)
		return false;
	for (size_t i = 0; i < s->room; i++)
		if (s->pages[i].process)
			*find(&bigger, s->pages[i].process, s->pages[i].what, s->pages[i].id) =
				s->pages[i];
	free(s->pages);
	*s = bigger;
	return true;
}

void detail_set_add(struct detail_set *s, uint32_t process, enum detail_what what, uint64_t id)
{
	struct detail_page *p = find(s, process, what, id >> PAGE_SHIFT);

	if (!p || !p->process) {
		if (!process || !grow(s))
			return;
		p = find(s, process, what, id >> PAGE_SHIFT);
		s->count++;
		p->id = id >> PAGE_SHIFT;
		p->process = process;
		p->what = what;
	}
	p->bits[id / 64 % PAGE_WORDS] |= UINT64_C(1) << (id % 64);
}

bool detail_set_has(const struct detail_set *s, uint32_t process, enum detail_what what,
		    uint64_t id)
{
	const struct detail_page *p = find(s, process, what, id >> PAGE_SHIFT);

	return p && p->process && (p->bits[id / 64 % PAGE_WORDS] >> (id % 64) & 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool/sort.h"

#include "convert/spool/row.h"

#include <string.h>

/*
 * A radix sort from the lowest digit up: stable, and the same time for any order that comes in.
 * The end, which only decides between equal begins, is not a digit: groups of equal begins are
 * small, and a merge sort sets them right without making every key longer.
 */
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

enum digit_of { OF_BEGIN, OF_GROUP };

struct digit {
	enum digit_of of;
	unsigned shift;
	uint64_t base;
};

static inline size_t digit_get(const struct digit *d, const struct key *k)
{
	uint64_t v = d->of == OF_BEGIN ? k->begin_ns - d->base : k->group;

	return (size_t)(v >> d->shift) & (DIGITS - 1);
}

static void digit_pass(const struct digit *d, const struct key *from, struct key *to, size_t count)
{
	size_t at[DIGITS] = { 0 }, sum = 0, n, i;

	for (i = 0; i < count; i++)
		at[digit_get(d, &from[i])]++;
	for (i = 0; i < DIGITS; i++) {
		n = at[i];
		at[i] = sum;
		sum += n;
	}
	for (i = 0; i < count; i++)
		to[at[digit_get(d, &from[i])]++] = from[i];
}

static void digits_sort(struct digit d, uint64_t range, struct key *keys, struct key *spare,
			size_t count)
{
	struct key *from = keys, *to = spare, *swap;

	for (d.shift = 0; d.shift < 64 && range >> d.shift; d.shift += DIGIT_BITS) {
		digit_pass(&d, from, to, count);
		swap = from;
		from = to;
		to = swap;
	}
	if (from != keys)
		memcpy(keys, from, count * sizeof(*keys));
}

/* Two neighbouring rows by end descending; of equal ones that of `a`, which came first. */
static void ends_merge(const struct key *a, size_t a_count, const struct key *b, size_t b_count,
		       struct key *to, const uint8_t *rows)
{
	while (a_count && b_count) {
		if (row_duration(rows + b->row) > row_duration(rows + a->row)) {
			*to++ = *b++;
			b_count--;
		} else {
			*to++ = *a++;
			a_count--;
		}
	}
	memcpy(to, a, a_count * sizeof(*to));
	memcpy(to + a_count, b, b_count * sizeof(*to));
}

static void ends_sort(struct key *keys, struct key *spare, size_t count,
		      const uint8_t *rows)
{
	struct key *from = keys, *to = spare, *swap;
	size_t width, at, a, b;

	for (width = 1; width < count; width *= 2) {
		for (at = 0; at < count; at += a + b) {
			a = count - at < width ? count - at : width;
			b = count - at - a < width ? count - at - a : width;
			ends_merge(from + at, a, from + at + a, b, to + at, rows);
		}
		swap = from;
		from = to;
		to = swap;
	}
	if (from != keys)
		memcpy(keys, from, count * sizeof(*keys));
}

static void ties_sort(struct key *keys, struct key *spare, size_t count,
		      const uint8_t *rows)
{
	size_t at, end;

	for (at = 0; at < count; at = end) {
		end = at + 1;
		while (end < count && keys[end].begin_ns == keys[at].begin_ns)
			end++;
		if (end - at > 1)
			ends_sort(keys + at, spare, end - at, rows);
	}
}

void keys_sort(struct key *keys, struct key *spare, size_t count, const uint8_t *rows)
{
	struct digit begin = { .of = OF_BEGIN, .base = UINT64_MAX }, group = { .of = OF_GROUP };
	uint64_t last_ns = 0;
	uint32_t last_group = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		begin.base = keys[i].begin_ns < begin.base ? keys[i].begin_ns : begin.base;
		last_ns = keys[i].begin_ns > last_ns ? keys[i].begin_ns : last_ns;
		last_group = keys[i].group > last_group ? keys[i].group : last_group;
	}
	if (!count)
		return;
	digits_sort(begin, last_ns - begin.base, keys, spare, count);
	ties_sort(keys, spare, count, rows);
	digits_sort(group, last_group, keys, spare, count);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report_comm.h"

#include <string.h>

/* Digits of five bits of a number, and one that says whether more follow: 64 letters that stand in
 * any text as they are. */
enum { FIRST_LETTER = '0' };
#define SPAN_MOST ((UINT64_C(1) << 60) - 1) /* some thirty years */

void packed_put(struct buf *out, uint64_t value)
{
	for (; value >= 32; value >>= 5)
		buf_put_byte(out, (uint8_t)(FIRST_LETTER + 32 + value % 32));
	buf_put_byte(out, (uint8_t)(FIRST_LETTER + value));
}

uint64_t packed_take(const char **at)
{
	uint64_t value = 0;
	unsigned shift = 0, digit;

	do {
		digit = (unsigned)(**at - FIRST_LETTER);
		if (!**at || digit > 63)
			return value;
		++*at;
		value |= shift < 64 ? (uint64_t)(digit % 32) << shift : 0;
		shift += 5;
	} while (digit >= 32);
	return value;
}

void met_put(struct buf *out, const struct met *m, struct met_last *last)
{
	uint64_t end = 0;
	size_t i;

	packed_put(out, zigzag((int64_t)(m->index - last->index)));
	packed_put(out, zigzag((int64_t)(m->place - last->place)));
	packed_put(out, m->ns);
	packed_put(out, m->bytes + 1); /* unknown is 0 */
	packed_put(out, m->bare_count);
	for (i = 0; i < m->bare_count; i++) {
		packed_put(out, m->bare[i].at_ns - end);
		packed_put(out, m->bare[i].span_ns);
		packed_put(out, m->bare[i].span_ns - m->bare[i].exposed_ns);
		end = m->bare[i].at_ns + m->bare[i].span_ns;
	}
	*last = (struct met_last){ m->index, m->place };
}

bool met_take(const char **packed, struct met *m, struct met_last *last)
{
	const char *begin = *packed;
	uint64_t end = 0, hidden, count;
	size_t i;

	if (!begin || !*begin)
		return false;
	m->index = last->index + (uint64_t)unzigzag(packed_take(packed));
	m->place = last->place + (uint64_t)unzigzag(packed_take(packed));
	m->ns = packed_take(packed);
	m->bytes = packed_take(packed) - 1;
	count = packed_take(packed);
	m->bare_count = count < BARE_MOST ? (size_t)count : BARE_MOST;
	for (i = 0; i < m->bare_count; i++) {
		m->bare[i].at_ns = end + packed_take(packed);
		m->bare[i].span_ns = packed_take(packed) & SPAN_MOST;
		hidden = packed_take(packed);
		if (hidden > m->bare[i].span_ns)
			hidden = m->bare[i].span_ns;
		m->bare[i].exposed_ns = m->bare[i].span_ns - hidden;
		end = m->bare[i].at_ns + m->bare[i].span_ns;
	}
	*last = (struct met_last){ m->index, m->place };
	return *packed != begin; /* or it is no such text */
}

uint64_t met_exposed(const struct met *m, uint64_t wait_ns)
{
	uint64_t sum = 0, part;
	size_t i;

	for (i = 0; i < m->bare_count && m->bare[i].at_ns < wait_ns; i++) {
		const struct bare *b = &m->bare[i];

		part = wait_ns - b->at_ns < b->span_ns ? wait_ns - b->at_ns : b->span_ns;
		sum += b->span_ns == b->exposed_ns
			       ? part
			       : (uint64_t)((double)part / (double)b->span_ns *
					    (double)b->exposed_ns);
	}
	return sum;
}

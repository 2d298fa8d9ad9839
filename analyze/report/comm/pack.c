/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/comm/comm.h"

/* A digit has five bits of a number and one bit that tells whether more digits follow: 64 letters
 * that need no escaping in any text. */
enum { FIRST_LETTER = '0' };
#define SPAN_MOST ((UINT64_C(1) << 60) - 1) /* about thirty years */

void packed_put(struct buf *out, uint64_t value)
{
	for (; value >= 32; value >>= 5)
		buf_put_byte(out, (uint8_t)(FIRST_LETTER + 32 + value % 32));
	buf_put_byte(out, (uint8_t)(FIRST_LETTER + value));
}

bool packed_next(const char **at, uint64_t *value)
{
	unsigned shift = 0, digit;

	*value = 0;
	do {
		digit = (unsigned)(**at - FIRST_LETTER);
		if (!**at || digit > 63)
			return false;
		++*at;
		*value |= shift < 64 ? (uint64_t)(digit % 32) << shift : 0;
		shift += 5;
	} while (digit >= 32);
	return shift <= 65;
}

uint64_t packed_take(const char **at)
{
	uint64_t value;

	packed_next(at, &value);
	return value;
}

void call_pack(struct buf *out, const struct rank_call *m, struct packed_last *last)
{
	uint64_t end = 0;

	packed_put(out, zigzag((int64_t)(m->index - last->index)));
	packed_put(out, zigzag((int64_t)(m->place - last->place)));
	packed_put(out, m->ns);
	packed_put(out, m->bytes + 1); /* 0 means unknown */
	packed_put(out, m->exposed_count);
	for (size_t i = 0; i < m->exposed_count; i++) {
		packed_put(out, m->exposed[i].at_ns - end);
		packed_put(out, m->exposed[i].span_ns);
		packed_put(out, m->exposed[i].span_ns - m->exposed[i].exposed_ns);
		end = m->exposed[i].at_ns + m->exposed[i].span_ns;
	}
	*last = (struct packed_last){ m->index, m->place };
}

bool call_unpack(const char **packed, struct rank_call *m, struct packed_last *last)
{
	const char *begin = *packed;
	uint64_t end = 0;

	if (!begin || !*begin)
		return false;
	m->index = last->index + (uint64_t)unzigzag(packed_take(packed));
	m->place = last->place + (uint64_t)unzigzag(packed_take(packed));
	m->ns = packed_take(packed);
	m->bytes = packed_take(packed) - 1;
	uint64_t count = packed_take(packed);
	m->exposed_count = count < EXPOSED_MOST ? (size_t)count : EXPOSED_MOST;
	for (size_t i = 0; i < m->exposed_count; i++) {
		m->exposed[i].at_ns = end + packed_take(packed);
		m->exposed[i].span_ns = packed_take(packed) & SPAN_MOST;
		uint64_t hidden = packed_take(packed);
		if (hidden > m->exposed[i].span_ns)
			hidden = m->exposed[i].span_ns;
		m->exposed[i].exposed_ns = m->exposed[i].span_ns - hidden;
		end = m->exposed[i].at_ns + m->exposed[i].span_ns;
	}
	*last = (struct packed_last){ m->index, m->place };
	return *packed != begin; /* otherwise it is not such a text */
}

uint64_t call_exposed_ns(const struct rank_call *m, uint64_t wait_ns)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->exposed_count && m->exposed[i].at_ns < wait_ns; i++) {
		const struct exposed_interval *b = &m->exposed[i];

		uint64_t part = wait_ns - b->at_ns < b->span_ns ? wait_ns - b->at_ns : b->span_ns;
		sum += b->span_ns == b->exposed_ns ? part
						   : (uint64_t)((double)part / (double)b->span_ns *
								(double)b->exposed_ns);
	}
	return sum;
}

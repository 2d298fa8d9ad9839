/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool/row.h"

size_t row_encode(const struct event *e, uint32_t words, uint8_t *out)
{
	uint8_t *p = out + ROW_HEAD;

	*p++ = e->kind;
	*p++ = e->subkind;
	*p++ = e->phase;
	*p++ = e->flags;
	p += put_varint(p, e->end_ns - e->begin_ns);
	p += put_varint(p, e->track);
	p += put_varint(p, e->name);
	p += put_varint(p, e->schema);
	p += put_varint(p, e->correlation);
	p += put_varint(p, e->bytes);
	p += put_varint(p, e->step);
	p += put_varint(p, e->owner);
	p += put_varint(p, words);
	for (uint32_t i = 0; i < words; i++)
		p += put_varint(p, e->args[i]);
	put_u32(out, (uint32_t)(p - out) - ROW_HEAD);
	return (size_t)(p - out);
}

void row_decode(struct bytes *in, uint64_t begin_ns, struct event *e, uint32_t *words)
{
	uint32_t size = take_u32(in), bits = take_u32(in);

	(void)size; /* only who copies rows needs it */
	*e = (struct event){
		.begin_ns = begin_ns,
		.kind = (uint8_t)bits,
		.subkind = (uint8_t)(bits >> 8),
		.phase = (uint8_t)(bits >> 16),
		.flags = (uint8_t)(bits >> 24),
	};
	e->end_ns = begin_ns + take_varint(in);
	e->track = (uint32_t)take_varint(in);
	e->name = (uint32_t)take_varint(in);
	e->schema = (uint32_t)take_varint(in);
	e->correlation = take_varint(in);
	e->bytes = take_varint(in);
	e->step = (uint32_t)take_varint(in);
	e->owner = (uint32_t)take_varint(in);
	*words = (uint32_t)take_varint(in);
}

void row_words(struct bytes *in, uint64_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		words[i] = take_varint(in);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that equal an earlier one except for numbers.  A begin that becomes an event is kept as a
 * template: the bytes of its annotations, and where their numbers went.  The next begin of the same
 * name, track and bytes becomes that event with its own numbers, without lookups.
 */
#include "convert/source/perfetto/event_fast.h"

#include "schemas/base/plain.h"

#include <stdlib.h>

enum { TEMPLATES = 1024 /* a power of two */, PROBES = 4, PARTS_MOST = 24, BYTES_MOST = 640 };
enum { STATE_NEEDED = 2, TYPE_BEGIN = 1, TYPE_END = 2 };

struct part {         /* of a template: an annotation */
	uint16_t len; /* of its bytes that have to be the same: without its number */
	uint8_t use;  /* PFTRACE_WHOLE: they are all */
	uint8_t word; /* of KINETO_WORD: which */
	bool is_double, is_negative;
	uint64_t value; /* of KINETO_KEPT: it has to be the same */
};
struct pftrace_template {
	uint64_t track, name, category, sequence, generation; /* generation 0: unused */
	struct event event;
	bool launches;
	unsigned part_count, word_count;
	struct part parts[PARTS_MOST];
	uint8_t bytes[BYTES_MOST];
};
struct begin { /* or an end: what its packet says */
	uint64_t time, sequence, type, track, name, category;
	struct bytes annotations[PARTS_MOST];
	unsigned annotation_count;
};

/* ---- the packet ------------------------------------------------------------------------- */

/* A length and so many bytes; NULL: they are not there. */
static inline const uint8_t *part_of(const uint8_t *p, const uint8_t *end, struct bytes *out)
{
	uint64_t len;

	p = pb_varint(p, &len);
	if (!p || p > end || len > (uint64_t)(end - p))
		return NULL;
	*out = bytes_init(p, (size_t)len);
	return p + len;
}

/* A field of TrackEvent whose key has two bytes: an arrow.  NULL: another one. */
static const uint8_t *flow_of(struct pftrace_reader *r, const uint8_t *p, const uint8_t *end)
{
	bool is_begin = p[-1] == 0xf9 && *p == 2; /* flow_ids, terminating_flow_ids: fixed64 */

	if ((!is_begin && (p[-1] != 0x81 || *p != 3)) || end - p < 9 || r->ref_count > 1)
		return NULL;
	r->refs[r->ref_count++] =
		(struct pftrace_ref){ .is = is_begin ? PFTRACE_FLOW : PFTRACE_FLOW_END,
				      .id = get_u64(p + 1) };
	return p + 9;
}

static bool event_of(struct pftrace_reader *r, struct bytes event, struct begin *b)
{
	const uint8_t *p = event.at, *end = event.end;

	r->ref_count = 0;
	while (p && p < end) {
		switch (*p++) {
		case 3 << 3:
			p = b->category ? NULL : pb_varint(p, &b->category);
			break;
		case 4 << 3 | PB_BYTES:
			p = b->annotation_count == PARTS_MOST
				    ? NULL
				    : part_of(p, end, &b->annotations[b->annotation_count++]);
			break;
		case 9 << 3:
			p = pb_varint(p, &b->type);
			break;
		case 10 << 3:
			p = pb_varint(p, &b->name);
			break;
		case 11 << 3:
			p = pb_varint(p, &b->track);
			break;
		default:
			p = flow_of(r, p, end);
		}
	}
	return p == end;
}

/* False: it has more than a time, a sequence and an event, or something is odd. */
static bool packet_of(struct pftrace_reader *r, struct bytes packet, struct begin *b)
{
	const uint8_t *p = packet.at, *end = packet.end;
	struct bytes event = { .at = NULL };
	uint64_t flags = 0;

	while (p && p < end) {
		switch (*p++) {
		case 8 << 3:
			p = pb_varint(p, &b->time);
			break;
		case 10 << 3:
			p = pb_varint(p, &b->sequence);
			break;
		case 11 << 3 | PB_BYTES:
			p = part_of(p, end, &event);
			break;
		case 13 << 3:
			p = pb_varint(p, &flags);
			break;
		default:
			return false;
		}
	}
	return p == end && event.at && !(flags & ~(uint64_t)STATE_NEEDED) && event_of(r, event, b);
}

/* ---- templates -------------------------------------------------------------------------- */

static struct pftrace_template *place_of(struct pftrace_reader *r, uint64_t track, uint64_t name,
					 unsigned probe)
{
	uint64_t hash = (track ^ name << 20) * UINT64_C(0x9e3779b97f4a7c15);

	return &r->templates[((hash >> 32) + probe) % TEMPLATES];
}

/* Fills the numbers in; false: it is not like this one. */
static bool is_like(const struct pftrace_template *t, const struct begin *b,
		    const struct pftrace_sequence *q, struct event *e, uint64_t *words)
{
	const uint8_t *bytes = t->bytes;

	if (t->track != b->track || t->name != b->name || t->category != b->category ||
	    t->sequence != q->id || t->generation != q->generation ||
	    t->part_count != b->annotation_count)
		return false;
	*e = t->event;
	for (unsigned i = 0; i < t->part_count; bytes += t->parts[i++].len) {
		const struct part *part = &t->parts[i];
		const struct bytes *a = &b->annotations[i];
		size_t len = bytes_left(a);
		uint64_t v = 0;

		if (len < part->len || memcmp(a->at, bytes, part->len) != 0)
			return false;
		if (part->use == PFTRACE_UNUSED)
			continue;
		if (part->use == PFTRACE_WHOLE) {
			if (len != part->len)
				return false;
			continue;
		}
		if (part->is_double) {
			v = get_u64(a->at + part->len);
			if (len != part->len + sizeof(v) || (v >> 52 & 0x7ff) == 0x7ff)
				return false; /* infinity and the like are words */
		} else if (pb_varint(a->at + part->len, &v) != a->end ||
			   ((int64_t)v < 0) != part->is_negative) {
			return false;
		}
		switch (part->use) {
		case KINETO_WORD:
			words[part->word] = v;
			break;
		case KINETO_CORRELATION:
		case PFTRACE_NUMBER:
			e->number = v;
			break;
		case KINETO_BYTES:
		case PFTRACE_BYTES:
			e->bytes = v;
			break;
		case PFTRACE_RESULT:
			e->result = (int64_t)v;
			break;
		default:
			if (v != part->value)
				return false;
		}
		if (!v && (part->use == KINETO_CORRELATION || part->use == KINETO_BYTES))
			return false;
	}
	e->args = t->word_count ? words : NULL;
	return true;
}

/* How much of an annotation comes before its number, or, where it is not used, before its value; 0:
 * it has none, or more. */
static size_t number_begins(struct bytes annotation, struct part *part)
{
	const uint8_t *begin = annotation.at;
	struct pb_field key, number;

	if (!pb_next_padded(&annotation, &key) || (key.number != 1 && key.number != 10))
		return 0;
	size_t at = (size_t)(annotation.at - begin) + 1;

	if (part->use == PFTRACE_UNUSED)
		return at - 1;
	if (!pb_next_padded(&annotation, &number) || annotation.at != annotation.end)
		return 0;
	part->value = number.u64;
	part->is_double = number.wire == PB_FIXED64;
	part->is_negative = !part->is_double && (int64_t)number.u64 < 0;
	return number.number == 3 || number.number == 4 || number.number == 5 || number.number == 7
		       ? at
		       : 0;
}

void pftrace_learn(struct pftrace_reader *r, const struct pftrace_sequence *q, uint64_t track,
		   uint64_t name, uint64_t category, const struct event *e)
{
	struct pftrace_template *t = place_of(r, track, name, r->learned++ % PROBES);
	const struct arg_schema *schema = trace_get_schema(r->to.trace, e->schema);
	size_t at = 0;

	t->generation = 0;
	t->word_count = e->args ? schema->arg_count : 0;
	t->part_count = r->annotation_count;
	if (r->annotation_count > PARTS_MOST || t->word_count > PARTS_MOST)
		return;
	for (unsigned i = 0, words = 0; i < r->annotation_count; i++) {
		const struct bytes *bytes = &r->annotations[i];
		struct part *part = &t->parts[i];
		uint8_t use = r->uses[i];

		*part = (struct part){ .use = use < PFTRACE_MEMBER
						      ? use
						      : r->args.uses[use - PFTRACE_MEMBER] };
		part->len = (uint16_t)number_begins(*bytes, part);
		if (!part->len && part->use == KINETO_KEPT) {
			part->use = PFTRACE_WHOLE;
			part->len = (uint16_t)bytes_left(bytes);
		}
		if (!part->len || part->use == PFTRACE_ODD || part->use == KINETO_MINUS_BYTES ||
		    bytes_left(bytes) > BYTES_MOST - at)
			return;
		if (part->use == KINETO_WORD) {
			part->word = (uint8_t)words;
			if (words >= t->word_count || e->args[words++] != part->value)
				return;
		}
		memcpy(t->bytes + at, bytes->at, part->len);
		at += part->len;
	}
	t->track = track;
	t->name = name;
	t->category = category;
	t->sequence = q->id;
	t->event = *e;
	t->launches = import_launches(&r->to, e);
	t->generation = trace_desc(r->to.trace,
				   &(struct event_desc){ e->track, e->name, e->schema, e->kind,
							 e->subkind },
				   NULL)
				? q->generation
				: 0;
}

bool pftrace_template_launches(const struct pftrace_template *t)
{
	return t->launches;
}

bool pftrace_templates_new(struct pftrace_reader *r)
{
	r->templates = calloc(TEMPLATES, sizeof(*r->templates));
	return r->templates != NULL;
}

/* ---- the whole -------------------------------------------------------------------------- */

enum status pftrace_take_like(struct pftrace_reader *r, struct bytes packet, bool *is_taken,
			      struct error *err)
{
	struct begin b; /* its list is not worth to be cleared */
	const struct pftrace_template *like = NULL;
	uint64_t words[PARTS_MOST];
	struct pftrace_packet p;
	struct pftrace_sequence *q;
	struct pftrace_track *t;
	struct event e;
	int64_t at_ns;

	*is_taken = false;
	b.time = b.sequence = b.type = b.track = b.name = b.category = b.annotation_count = 0;
	if (plain_ways || !packet_of(r, packet, &b) || r->last_sequence >= r->sequence_count)
		return ST_OK;
	q = &r->sequences[r->last_sequence];
	if (q->id != b.sequence) {
		const uint64_t *known = map_find(&r->sequence_ids, b.sequence);

		if (!known)
			return ST_OK;
		r->last_sequence = *known;
		q = &r->sequences[*known];
	}
	b.track = b.track ? b.track : q->track;
	if (!q->has_state || !b.track || (b.type != TYPE_BEGIN && b.type != TYPE_END))
		return ST_OK;
	TRY(pftrace_track_find(r, b.track, &t, err));
	if (!t->is_derived || !r->is_own) {
		if (b.type == TYPE_END && (b.annotation_count || r->ref_count))
			return ST_OK;
		for (unsigned i = 0; b.type == TYPE_BEGIN && !like; i++) {
			if (i == PROBES)
				return ST_OK;
			like = place_of(r, b.track, b.name, i);
			like = is_like(like, &b, q, &e, words) ? like : NULL;
		}
	}
	*is_taken = true;
	p.has = 1u << PFTRACE_TIME;
	p.numbers[PFTRACE_TIME] = b.time;
	p.numbers[PFTRACE_CLOCK] = p.numbers[PFTRACE_MACHINE] = 0;
	if (!pftrace_time(r, q, &p, &at_ns))
		return pftrace_lose(r, LOSS_NO_TIME);
	if (t->is_derived && r->is_own)
		return ST_OK;
	if (!like)
		return pftrace_end(r, q, t, at_ns, err);
	TRY(pftrace_flows(r, &e, 0, at_ns, err));
	return pftrace_begin(r, t, &e, 0, like, at_ns, err);
}

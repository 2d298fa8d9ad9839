/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts packets that equal an earlier one except for numbers.  A begin that became an event is
 * kept as a template: the bytes of its annotations, and where their numbers went.  The next begin
 * with the same name and bytes becomes that event with its own numbers, without lookups.  Templates
 * are found by a hash of everything that must be the same.
 */
#include "convert/source/perfetto/event_fast.h"

#include "schemas/base/plain.h"

#include <stdlib.h>

enum {
	TEMPLATES = 1 << 14, /* a power of two, as is PLACED */
	PLACED = 1 << 13,
	PROBES = 4,
	PARTS_MOST = 24,
	LINE_BYTES = 64, /* of the cache */
	BYTES_MOST = 640,
	PARTS_BYTES_MOST = 3 << 20, /* for all templates */
};
enum { STATE_NEEDED = 2, TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3 };

struct part {         /* an annotation of a template */
	uint16_t len; /* length of the bytes before its number */
	uint8_t use;  /* PFTRACE_WHOLE: it has no number */
	uint8_t word; /* KINETO_WORD: index of the argument */
	bool is_double, is_negative;
	uint64_t value; /* KINETO_KEPT: the number must equal it */
};
struct pftrace_template { /* two cache lines */
	/* generation 0: unused; track 0: any thread */
	uint64_t name, category, sequence, generation, track;
	struct part *parts;  /* part_count of them, then their bytes */
	uint32_t id;         /* never reused */
	uint32_t last_track; /* trace's track of the last event, for any thread */
	uint16_t part_count, word_count;
	bool launches, is_instant, is_fixed; /* is_fixed: no number varies */
	struct event event;
};
struct pftrace_templates {
	struct pftrace_template *rows; /* TEMPLATES rows, inside `memory` */
	void *memory;
	/* Pairs (template's id << 32 | track) for which the descriptor is interned, by hash. */
	uint64_t placed[PLACED];
	size_t parts_bytes;
	uint32_t learned;
};
struct begin { /* the fields of a begin, end or instant */
	uint64_t time, sequence, type, track, name, category;
	struct bytes category_text, name_text;
	struct bytes annotations[PARTS_MOST + 2]; /* a begin's texts follow its annotations */
	unsigned annotation_count;
};

/* ---- the packet ------------------------------------------------------------------------- */

/* Reads a length and so many bytes.  Returns NULL if they exceed `end`. */
static inline const uint8_t *part_of(const uint8_t *p, const uint8_t *end, struct bytes *out)
{
	uint64_t len;

	p = pb_varint(p, &len);
	if (!p || p > end || len > (uint64_t)(end - p))
		return NULL;
	*out = (struct bytes){ .at = p, .end = p + len };
	return p + len;
}

/* Reads a field of TrackEvent whose key has two bytes: a text or an arrow.  Returns NULL for any
 * other field. */
static const uint8_t *rest_of(struct pftrace_reader *r, const uint8_t *p, const uint8_t *end,
			      struct begin *b)
{
	bool is_begin = p[-1] == 0xf9 && *p == 2; /* flow_ids, terminating_flow_ids: fixed64 */

	if (p[-1] == 0xb2 && *p == 1)
		return b->category_text.at ? NULL : part_of(p + 1, end, &b->category_text);
	if (p[-1] == 0xba && *p == 1)
		return part_of(p + 1, end, &b->name_text);
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
			p = rest_of(r, p, end, b);
		}
	}
	return p == end;
}

/* Parses a packet.  Returns false if it contains more than a time, a sequence, an event and its
 * writer, or anything unusual. */
static inline bool packet_of(struct pftrace_reader *r, const struct bytes *packet, struct begin *b)
{
	const uint8_t *p = packet->at, *end = packet->end;
	struct bytes event = { .at = NULL };
	uint64_t flags = 0, ignored;

	while (p && p < end) {
		switch (*p++) {
		case 8 << 3:
			p = b->time ? NULL : pb_varint(p, &b->time);
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
		case 3 << 3: /* the user */
			p = pb_varint(p, &ignored);
			break;
		case 0xf8: /* the process */
			p = *p == 4 ? pb_varint(p + 1, &ignored) : NULL;
			break;
		default:
			return false;
		}
	}
	return p == end && event.at && !(flags & ~(uint64_t)STATE_NEEDED) && event_of(r, event, b);
}

/* ---- templates -------------------------------------------------------------------------- */

/* Returns the first `len` bytes of a word, in its upper bytes. */
static inline uint64_t first_bytes(uint64_t word, size_t len)
{
	return word << (64 - 8 * len);
}

/* Compares texts that are followed by PB_PADDING bytes. */
static inline bool bytes_same(const uint8_t *a, const uint8_t *b, size_t len)
{
	return len && len <= 8 ? !first_bytes(get_u64(a) ^ get_u64(b), len) : !memcmp(a, b, len);
}

/* Hashes the bytes that must be the same in an annotation that begins with its key.  In our own
 * files texts may be unused. */
static inline uint64_t hash_annotation(uint64_t hash, struct bytes a, bool is_own)
{
	const uint8_t *p = a.at;
	size_t len = bytes_left(&a);
	uint64_t key = 0;

	if (len && *p == (1 << 3 | PB_VARINT))
		p = pb_varint(p + 1, &key);
	else if (len > 1 && *p == (10 << 3 | PB_BYTES) && p[1] < 0x80)
		p += 2 + p[1];
	if (p && p > a.at && p < a.end &&
	    (is_own || *p == 3 << 3 || *p == 4 << 3 || *p == (5 << 3 | PB_FIXED64) || *p == 7 << 3))
		len = (size_t)(p - a.at) + 1;
	if (len && len <= 8)
		return (hash ^ first_bytes(get_u64(a.at), len)) * HASH_A;
	return hash_word(hash, hash_text((const char *)a.at, len));
}

/* Hashes a begin.  `track` is 0 for threads, because events are the same on each thread. */
static inline __attribute__((always_inline)) uint64_t
hash_of(const struct pftrace_reader *r, uint64_t sequence, uint64_t track, uint64_t name,
	uint64_t category, const struct bytes *annotations, unsigned count)
{
	uint64_t hash = (sequence << 48 ^ category << 32 ^ track ^ name) * HASH_A;

	for (unsigned i = 0; i < count; i++)
		hash = hash_annotation(hash ^ hash >> 32, annotations[i], r->is_own);
	return (hash ^ hash >> 32) * HASH_A >> 32;
}

static inline uint64_t track_of(const struct pftrace_track *t)
{
	return t->made_id && t->made.type == TRACK_THREAD ? 0 : t->uuid;
}

/* Returns whether a begin equals the template, and fills its numbers into *e and `words`. */
static inline bool is_like(const struct pftrace_template *t, const struct begin *b,
			   const struct pftrace_sequence *q, uint64_t track, struct event *e,
			   uint64_t *words)
{
	const uint8_t *bytes = t->parts ? (const uint8_t *)(t->parts + t->part_count) : NULL;

	if (__builtin_expect((t->name ^ b->name) | (t->category ^ b->category) |
				     (t->sequence ^ q->id) | (t->generation ^ q->generation) |
				     (t->track ^ track) | (t->part_count ^ b->annotation_count) |
				     (t->is_instant != (b->type == TYPE_INSTANT)),
			     0))
		return false;
	*e = t->event;
	for (unsigned i = 0; t->parts && i < t->part_count; bytes += t->parts[i++].len) {
		const struct part *part = &t->parts[i];
		const struct bytes *a = &b->annotations[i];
		size_t len = bytes_left(a);
		uint64_t v = 0;

		if (len < part->len || !bytes_same(a->at, bytes, part->len))
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
				return false; /* infinity and NaN become texts */
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

/* Returns the length of an annotation before its number, or before its value if it is unused; 0 if
 * it has no number, or more than one value. */
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

static void forget(struct pftrace_templates *x, struct pftrace_template *t)
{
	for (unsigned i = 0; t->parts && i < t->part_count; i++)
		x->parts_bytes -= sizeof(*t->parts) + t->parts[i].len;
	free(t->parts);
	*t = (struct pftrace_template){ .generation = 0 };
}

/* Fills `parts` and `bytes`.  Returns false if another event with the same bytes might not be
 * equal. */
static bool learn_parts(const struct pftrace_reader *r, const struct event *e,
			struct pftrace_template *t, struct part *parts, uint8_t *bytes, size_t *len)
{
	*len = 0;
	t->is_fixed = true;
	for (unsigned i = 0, words = 0; i < t->part_count; i++) {
		const struct bytes *annotation = &r->annotations[i];
		struct part *part = &parts[i];
		uint8_t use = r->uses[i];

		*part = (struct part){ .use = use < PFTRACE_MEMBER
						      ? use
						      : r->args.uses[use - PFTRACE_MEMBER] };
		part->len = (uint16_t)(use == PFTRACE_WHOLE ? bytes_left(annotation)
							    : number_begins(*annotation, part));
		if (!part->len && part->use == KINETO_KEPT) {
			part->use = PFTRACE_WHOLE;
			part->len = (uint16_t)bytes_left(annotation);
		}
		if (!part->len || part->use == PFTRACE_ODD || part->use == KINETO_MINUS_BYTES ||
		    bytes_left(annotation) > BYTES_MOST - *len)
			return false;
		if (part->use == KINETO_WORD) {
			part->word = (uint8_t)words;
			if (words >= t->word_count || e->args[words++] != part->value)
				return false;
		}
		t->is_fixed &= part->use == PFTRACE_WHOLE || part->use == PFTRACE_UNUSED;
		memcpy(bytes + *len, annotation->at, part->len);
		*len += part->len;
	}
	return true;
}

void pftrace_learn(struct pftrace_reader *r, const struct pftrace_sequence *q,
		   const struct pftrace_track *track, uint64_t name, uint64_t category,
		   bool is_instant, const struct event *e)
{
	const struct arg_schema *schema = trace_get_schema(r->to.trace, e->schema);
	struct pftrace_templates *x = r->templates;
	struct pftrace_template *t, made = {
		.name = name,
		.category = category,
		.sequence = q->id,
		.track = track_of(track),
		.event = *e,
		.id = ++x->learned,
		.word_count = (uint16_t)(e->args ? schema->arg_count : 0),
		.part_count = (uint16_t)r->annotation_count,
		.launches = import_launches(&r->to, e),
		.is_instant = is_instant,
		.generation = q->generation,
	};
	struct part parts[PARTS_MOST + 2];
	uint8_t bytes[BYTES_MOST];
	size_t len;
	uint64_t hash;

	if (plain_ways || r->annotation_count > PARTS_MOST + 2 || made.word_count > PARTS_MOST ||
	    !learn_parts(r, e, &made, parts, bytes, &len))
		return;
	hash = hash_of(r, q->id, made.track, name, category, r->annotations, made.part_count);
	t = &x->rows[(hash + made.id % PROBES) % TEMPLATES];
	for (unsigned i = 0; i < PROBES && t->generation; i++)
		t = &x->rows[(hash + i) % TEMPLATES];
	forget(x, t);
	if (made.part_count) {
		size_t size = made.part_count * sizeof(*parts);

		made.parts =
			x->parts_bytes < PARTS_BYTES_MOST ? malloc(size + len + PB_PADDING) : NULL;
		if (!made.parts)
			return;
		memcpy(made.parts, parts, size);
		memcpy((uint8_t *)made.parts + size, bytes, len);
		x->parts_bytes += size + len;
	}
	*t = made;
}

bool pftrace_template_launches(const struct pftrace_template *t)
{
	return t->launches;
}

bool pftrace_templates_new(struct pftrace_reader *r)
{
	struct pftrace_templates *x = r->templates = calloc(1, sizeof(*x));

	if (!x)
		return false;
	x->memory = calloc(TEMPLATES + 1, sizeof(*x->rows));
	x->rows = (void *)(((uintptr_t)x->memory + sizeof(*x->rows) - 1) &
			   ~(uintptr_t)(LINE_BYTES - 1));
	return x->memory != NULL;
}

void pftrace_templates_free(struct pftrace_reader *r)
{
	struct pftrace_templates *x = r->templates;

	for (unsigned i = 0; x && x->learned && i < TEMPLATES; i++)
		free(x->rows[i].parts);
	free(x ? x->memory : NULL);
	free(x);
}

/* Sets *like to the template that the begin equals and *e to the event, or *like to NULL. */
static inline enum status find_like(struct pftrace_reader *r, const struct begin *b,
				    const struct pftrace_sequence *q, const struct pftrace_track *t,
				    struct event *e, uint64_t *words,
				    struct pftrace_template **like, struct error *err)
{
	uint64_t track = track_of(t), *placed, key;
	uint64_t hash =
		hash_of(r, q->id, track, b->name, b->category, b->annotations, b->annotation_count);

	for (unsigned i = 0; i < PROBES && !*like; i++) {
		struct pftrace_template *x = &r->templates->rows[(hash + i) % TEMPLATES];

		*like = is_like(x, b, q, track, e, words) ? x : NULL;
	}
	if (!*like || track)
		return ST_OK;
	e->track = t->made_id;
	if ((*like)->last_track == e->track)
		return ST_OK;
	(*like)->last_track = e->track;
	key = (uint64_t)(*like)->id << 32 | e->track;
	placed = &r->templates->placed[key * HASH_A >> 32 & (PLACED - 1)];
	if (*placed == key)
		return ST_OK;
	*placed = key;
	return import_desc(&r->to, e, err);
}

/* ---- entry point ------------------------------------------------------------------------- */

enum status pftrace_take_fast(struct pftrace_reader *r, const struct bytes *packet,
			      struct error *err)
{
	struct begin b; /* not initialized, because its list is large */
	struct pftrace_template *like = NULL;
	uint64_t words[PARTS_MOST];
	struct pftrace_sequence *q;
	struct pftrace_track *t;
	struct event e;
	int64_t at_ns;

	b.time = b.sequence = b.type = b.track = b.name = b.category = b.annotation_count = 0;
	b.name_text = b.category_text = (struct bytes){ .at = NULL };
	if (!packet_of(r, packet, &b))
		return pftrace_take_any(r, packet, err);
	q = pftrace_near_sequence(r, b.sequence);
	if (!q) {
		const uint64_t *known = map_find(&r->sequence_ids, b.sequence);

		if (!known)
			return pftrace_take_any(r, packet, err);
		r->near_sequences[b.sequence % PFTRACE_NEAR] = (uint32_t)*known;
		q = &r->sequences[*known];
	}
	b.track = b.track ? b.track : q->track;
	if (!q->has_state || !b.track || !b.type || b.type > TYPE_INSTANT)
		return pftrace_take_any(r, packet, err);
	TRY(pftrace_track_find(r, b.track, &t, err));
	if (!t->is_derived || !r->is_own) {
		if (b.type == TYPE_END &&
		    (b.annotation_count || r->ref_count || b.name || b.name_text.at))
			return pftrace_take_any(r, packet, err);
		if (b.type != TYPE_END) {
			pftrace_texts(b.category_text, b.name_text, b.annotations,
				      &b.annotation_count);
			TRY(find_like(r, &b, q, t, &e, words, &like, err));
			if (!like)
				return pftrace_take_any(r, packet, err);
		}
	}
	if (!pftrace_time_of(r, q, b.time, &at_ns))
		return pftrace_lose(r, LOSS_NO_TIME);
	if (t->is_derived && r->is_own)
		return ST_OK;
	if (!r->ref_count && (!like || (like->is_fixed && !like->is_instant)))
		TRY(pftrace_same_learn(r, packet, b.time, q, t, like ? &e : NULL,
				       like && like->launches, err));
	if (!like)
		return pftrace_end(r, q, t, at_ns, err);
	if (r->ref_count)
		TRY(pftrace_flows(r, &e, 0, at_ns, err));
	return like->is_instant ? pftrace_put(r, &e, at_ns, at_ns, err)
				: pftrace_begin(r, t, &e, 0, like, at_ns, err);
}

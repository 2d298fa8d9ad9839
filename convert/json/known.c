/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/json/known.h"

#include "schemas/hash.h"

#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
	HEADS = 4096, /* a power of two */
	TRIES = 24,   /* rows of a chain that are compared */
	PAD = 16,     /* bytes behind each run, so that it can be compared in whole vectors */
	NODES_FIRST = 64,
	INLINE_BYTES = 64, /* of a run; longer ones are memcmp()'s */
};

/* A run and the hole behind it, or the end of an element: a leaf. */
struct json_known_node {
	uint32_t run, run_len; /* in texts */
	uint32_t child, sibling; /* child: the one that matched last */
	uint8_t class, use;
	bool is_leaf;
	/* of a leaf */
	uint8_t depth;    /* nodes of its path */
	uint32_t path;    /* in paths: their numbers */
	uint32_t payload; /* in payloads */
	uint32_t next;    /* the leaf that followed it */
};

void json_known_init(struct json_known *k, size_t payload_bytes, size_t ceiling)
{
	*k = (struct json_known){ .payload_bytes = payload_bytes, .ceiling = ceiling };
	buf_init(&k->texts, ceiling);
	buf_init(&k->paths, ceiling);
	buf_init(&k->payloads, ceiling);
}

void json_known_forget(struct json_known *k)
{
	buf_clear(&k->texts);
	buf_clear(&k->paths);
	buf_clear(&k->payloads);
	k->node_count = k->nodes ? 1 : 0;
	if (k->nodes)
		k->nodes[0] = (struct json_known_node){ 0 };
	k->last = 0;
	if (k->heads)
		memset(k->heads, 0, HEADS * sizeof(*k->heads));
}

void json_known_release(struct json_known *k)
{
	buf_release(&k->texts);
	buf_release(&k->paths);
	buf_release(&k->payloads);
	free(k->nodes);
	free(k->heads);
	k->nodes = NULL;
	k->heads = NULL;
}

/* Comparing */

static inline bool same_bytes(const uint8_t *a, const uint8_t *b, size_t len)
{
#ifdef __SSE2__
	size_t i = 0;

	if (len > INLINE_BYTES)
		return memcmp(a, b, len) == 0;
	for (; i + 16 <= len; i += 16)
		if (_mm_movemask_epi8(_mm_cmpeq_epi8(
			    _mm_loadu_si128((const __m128i *)(const void *)(a + i)),
			    _mm_loadu_si128((const __m128i *)(const void *)(b + i)))) != 0xffff)
			return false;
	if (i < len) {
		unsigned same = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(
			_mm_loadu_si128((const __m128i *)(const void *)(a + i)),
			_mm_loadu_si128((const __m128i *)(const void *)(b + i))));

		return !(~same & ((1u << (len - i)) - 1));
	}
	return true;
#else
	return memcmp(a, b, len) == 0;
#endif
}

/* The run of `n` stands at *p, and a number of its class behind it; *p behind both. */
static inline bool node_matches(const struct json_known *k, const struct json_known_node *n,
				const uint8_t **p, const uint8_t *end, struct json_number *number)
{
	if ((size_t)(end - *p) < (size_t)n->run_len + JSON_NUMBER_ROOM)
		return false;
	if (!same_bytes(*p, k->texts.data + n->run, n->run_len))
		return false;
	if (n->is_leaf) {
		*p += n->run_len;
		return true;
	}
	if (!json_number_read((const char *)*p + n->run_len, (const char *)end, number) ||
	    (n->class != number->class && n->class != JSON_ANY_CLASS))
		return false;
	number->use = n->use;
	*p += n->run_len + number->len;
	return true;
}

/* Behind a quote: the first key of a time or an id; what stands before it may be a first run. */
static bool is_number_key(const uint8_t *p)
{
	uint32_t key = get_u32(p);

	return key == 0x3a227374 /* ts": */ || key == 0x3a226469 /* id": */ ||
	       key == 0x22727564 /* dur" */;
}

static const uint8_t *find_number_key(const uint8_t *p, const uint8_t *end)
{
#ifdef __SSE2__
	for (; end - p >= 16 + 8; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		unsigned quotes = (unsigned)_mm_movemask_epi8(
			_mm_cmpeq_epi8(v, _mm_set1_epi8('"')));

		for (; quotes; quotes &= quotes - 1) {
			const uint8_t *at = p + __builtin_ctz(quotes) + 1;

			if (is_number_key(at))
				return at;
		}
	}
#endif
	for (; end - p >= 8; p++)
		if (*p == '"' && is_number_key(p + 1))
			return p + 1;
	return NULL;
}

/* The chain of first runs that may stand at p, by the text before that key. */
static uint32_t *head_of(const struct json_known *k, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *key;

	if (end - p > JSON_KNOWN_TEXT_MOST)
		end = p + JSON_KNOWN_TEXT_MOST;
	key = find_number_key(p, end);
	return key ? &k->heads[hash_text((const char *)p, (size_t)(key - p)) & (HEADS - 1)] : NULL;
}

/* Of a chain, the one that matches; it comes first next time. */
static uint32_t chain_find(struct json_known *k, uint32_t *head, const uint8_t **p,
			   const uint8_t *end, struct json_number *number)
{
	uint32_t *link = head;

	for (unsigned i = 0; *link && i < TRIES; i++, link = &k->nodes[*link].sibling) {
		uint32_t found = *link;
		struct json_known_node *n = &k->nodes[found];

		if (!node_matches(k, n, p, end, number))
			continue;
		*link = n->sibling;
		n->sibling = *head;
		*head = found;
		return found;
	}
	return 0;
}

static const uint32_t *leaf_path(const struct json_known *k, const struct json_known_node *leaf)
{
	return (const uint32_t *)(const void *)k->paths.data + leaf->path;
}

/* The leaf of the element at *p, or 0; *p behind it. */
static uint32_t find_leaf(struct json_known *k, const uint8_t **p, const uint8_t *end,
			  struct json_found *found)
{
	const struct json_known_node *expected = &k->nodes[k->nodes[k->last].next];
	const uint32_t *path = expected->is_leaf ? leaf_path(k, expected) : NULL;
	unsigned left = path ? expected->depth : 0;
	uint32_t at = 0;

	found->count = 0;
	for (;;) {
		struct json_number *number = &found->numbers[found->count];

		if (left && node_matches(k, &k->nodes[*path], p, end, number)) {
			at = *path++;
			left--;
		} else {
			uint32_t *head = at ? &k->nodes[at].child : head_of(k, *p, end);

			left = 0;
			at = head ? chain_find(k, head, p, end, number) : 0;
			if (!at)
				return 0;
		}
		if (k->nodes[at].is_leaf)
			return at;
		found->count++;
	}
}

bool json_known_find(struct json_known *k, struct json_scan *s, struct json_found *found)
{
	const uint8_t *p = s->at;
	uint32_t leaf;

	if (k->node_count < 2 || json_is_first(s))
		return false;
	leaf = find_leaf(k, &p, s->end, found);
	if (!leaf)
		return false;
	found->payload = k->payloads.data + k->nodes[leaf].payload;
	k->nodes[k->last].next = leaf;
	k->last = leaf;
	k->found++;
	s->at = p;
	return true;
}

/* Learning */

static bool room_for_nodes(struct json_known *k, unsigned count)
{
	uint32_t cap = k->node_cap ? k->node_cap : NODES_FIRST;
	struct json_known_node *bigger;

	while (cap - k->node_count < count + 1)
		cap *= 2;
	if (cap == k->node_cap)
		return true;
	bigger = realloc(k->nodes, cap * sizeof(*bigger));
	if (!bigger)
		return false;
	k->nodes = bigger;
	k->node_cap = cap;
	if (!k->node_count)
		k->nodes[k->node_count++] = (struct json_known_node){ 0 };
	return true;
}

/* Room for an element; what was learnt before is forgotten when it would be too much. */
static bool room_for(struct json_known *k, size_t len, unsigned count)
{
	size_t nodes = k->node_count + count + 1, used;

	if (!k->heads && !(k->heads = calloc(HEADS, sizeof(*k->heads))))
		return false;
	used = nodes * sizeof(*k->nodes) + k->texts.len + k->paths.len + k->payloads.len +
	       k->payload_bytes + len + (count + 1) * (PAD + sizeof(uint32_t));
	if (used > k->ceiling)
		json_known_forget(k);
	return room_for_nodes(k, count + 1);
}

static uint32_t node_find(struct json_known *k, uint32_t first, const struct json_known_node *like,
			  const char *run)
{
	uint32_t at = first;

	while (at) {
		const struct json_known_node *n = &k->nodes[at];

		if (n->run_len == like->run_len && n->is_leaf == like->is_leaf &&
		    n->class == like->class && n->use == like->use &&
		    memcmp(k->texts.data + n->run, run, n->run_len) == 0)
			return at;
		at = n->sibling;
	}
	return 0;
}

/* The node of a run below *head, new unless it is there. */
static uint32_t node_put(struct json_known *k, uint32_t *head, struct json_known_node like,
			 const char *run)
{
	static const char pad[PAD];
	uint32_t at = node_find(k, *head, &like, run);

	if (at)
		return at;
	like.run = (uint32_t)k->texts.len;
	like.sibling = *head;
	buf_put(&k->texts, run, like.run_len);
	buf_put(&k->texts, pad, PAD);
	at = k->node_count++;
	k->nodes[at] = like;
	*head = at;
	return at;
}

/* What the hole's number is; false: it is none that can be found again. */
static bool hole_class(const struct json_hole *hole, uint8_t *class)
{
	char copy[2 * JSON_NUMBER_ROOM] = { 0 };
	struct json_number number;

	if (hole->len > JSON_NUMBER_ROOM)
		return false;
	memcpy(copy, hole->text, hole->len);
	if (!json_number_read(copy, copy + sizeof(copy), &number) || number.len != hole->len)
		return false;
	*class = hole->any_class ? (uint8_t)JSON_ANY_CLASS : number.class;
	return true;
}

static void *leaf_payload(struct json_known *k, uint32_t leaf, const uint32_t *path, unsigned depth)
{
	struct json_known_node *n = &k->nodes[leaf];

	if (!n->depth) {
		k->learnt++;
		n->depth = (uint8_t)depth;
		n->path = (uint32_t)(k->paths.len / sizeof(*path));
		n->payload = (uint32_t)k->payloads.len;
		buf_put(&k->paths, path, depth * sizeof(*path));
		if (buf_reserve(&k->payloads, k->payload_bytes)) {
			memset(k->payloads.data + k->payloads.len, 0, k->payload_bytes);
			k->payloads.len += k->payload_bytes;
		}
	}
	if (buf_status(&k->texts, NULL) != ST_OK || buf_status(&k->paths, NULL) != ST_OK ||
	    buf_status(&k->payloads, NULL) != ST_OK) {
		json_known_forget(k);
		return NULL;
	}
	k->nodes[k->last].next = leaf;
	k->last = leaf;
	return k->payloads.data + n->payload;
}

void *json_known_add(struct json_known *k, const char *text, size_t len,
		     const struct json_hole *holes, unsigned count)
{
	const char *at = text, *end = text + len;
	uint32_t path[JSON_HOLES_MOST + 1], *head;
	uint8_t classes[JSON_HOLES_MOST];
	unsigned i;

	if (!count || count > JSON_HOLES_MOST || len > JSON_KNOWN_TEXT_MOST)
		return NULL;
	for (i = 0; i < count; i++)
		if (!hole_class(&holes[i], &classes[i]))
			return NULL;
	if (!room_for(k, len, count))
		return NULL;
	head = head_of(k, (const uint8_t *)text, (const uint8_t *)end);
	if (!head)
		return NULL;
	for (i = 0; i <= count; i++) {
		struct json_known_node like = { .is_leaf = i == count };
		const char *stop = i < count ? holes[i].text : end;

		like.run_len = (uint32_t)(stop - at);
		if (i < count) {
			like.class = classes[i];
			like.use = holes[i].use;
		}
		path[i] = node_put(k, head, like, at);
		head = &k->nodes[path[i]].child;
		at = i < count ? stop + holes[i].len : end;
	}
	return leaf_payload(k, path[count], path, count + 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/json/known.h"

#include "schemas/hash.h"

#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
	HEADS = 4096,   /* these are powers of two */
	AFTERS = 4096,
	SHARES = 512,
	TRIES = 24,     /* rows of a chain that are compared */
	PAD = 16,       /* bytes behind each run, so that it can be compared in whole vectors */
	NODES_FIRST = 64,
};

/* A run and the hole behind it, or the end of an element: a leaf. */
struct json_known_node {
	uint32_t run, run_len; /* in texts */
	uint32_t child, sibling; /* child: the one that matched last */
	uint8_t class, use;
	bool is_leaf;
	/* of a leaf */
	uint8_t depth;    /* nodes of its path */
	uint32_t path;    /* in steps: its first */
	uint32_t payload; /* in payloads */
	uint32_t next;    /* the leaf that followed it; of a first run: that came of it last */
	uint32_t most;    /* bytes that may be looked at to tell whether it stands there */
};

/* A node of the path of a leaf, with what is needed to follow it. */
struct step {
	uint32_t node, run;
	uint16_t run_len;
	uint8_t class, use;
};

struct json_known_tables {
	uint32_t heads[HEADS];     /* chains of first runs, by hash */
	uint32_t after_two[AFTERS];   /* leaves, by those before them */
	uint32_t after_three[AFTERS];
	uint32_t shares[SHARES];   /* nodes whose run others have too, by hash */
};

void json_known_init(struct json_known *k, size_t payload_bytes, size_t ceiling)
{
	*k = (struct json_known){ .payload_bytes = payload_bytes, .ceiling = ceiling };
	buf_init(&k->texts, ceiling);
	buf_init(&k->steps, ceiling);
	buf_init(&k->payloads, ceiling);
}

void json_known_forget(struct json_known *k)
{
	buf_clear(&k->texts);
	buf_clear(&k->steps);
	buf_clear(&k->payloads);
	k->node_count = k->nodes ? 1 : 0;
	if (k->nodes)
		k->nodes[0] = (struct json_known_node){ 0 };
	memset(k->last, 0, sizeof(k->last));
	if (k->tables)
		memset(k->tables, 0, sizeof(*k->tables));
}

void json_known_release(struct json_known *k)
{
	buf_release(&k->texts);
	buf_release(&k->steps);
	buf_release(&k->payloads);
	free(k->nodes);
	free(k->tables);
	k->nodes = NULL;
	k->tables = NULL;
}

/* Comparing */

#ifdef __SSE2__
static inline __m128i same16(const uint8_t *a, const uint8_t *b)
{
	return _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
			      _mm_loadu_si128((const __m128i *)(const void *)b));
}

/* `len` bytes, 17 to 32, or 33 to 64: from both ends, over each other in the middle. */
static inline __m128i same32(const uint8_t *a, const uint8_t *b, size_t len)
{
	return _mm_and_si128(same16(a, b), same16(a + len - 16, b + len - 16));
}

static inline __m128i same64(const uint8_t *a, const uint8_t *b, size_t len)
{
	return _mm_and_si128(same32(a, b, 32), same32(a + len - 32, b + len - 32, 32));
}

static inline bool all_same(__m128i same)
{
	return _mm_movemask_epi8(same) == 0xffff;
}
#endif

/* PAD bytes behind `len` may be looked at. */
static inline bool same_bytes(const uint8_t *a, const uint8_t *b, size_t len)
{
#ifdef __SSE2__
	for (; len > 64; a += 64, b += 64, len -= 64)
		if (!all_same(same64(a, b, 64)))
			return false;
	if (len > 32)
		return all_same(same64(a, b, len));
	if (len > 16)
		return all_same(same32(a, b, len));
	return !(~(unsigned)_mm_movemask_epi8(same16(a, b)) & ((1u << len) - 1));
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
	if (memcmp(*p, k->texts.data + n->run, n->run_len) != 0)
		return false;
	if (n->is_leaf) {
		*p += n->run_len;
		return true;
	}
	if (!json_number_take_any(*p + n->run_len, number) ||
	    (n->class != number->class && n->class != JSON_ANY_CLASS))
		return false;
	number->use = n->use;
	*p += n->run_len + number->len;
	return true;
}

/* Behind a quote: the first key of a time or an id; what stands before it may be a first run. */
static inline bool is_number_key(const uint8_t *p)
{
	uint32_t key = get_u32(p);

	return key == 0x3a227374 /* ts": */ || key == 0x3a226469 /* id": */ ||
	       key == 0x22727564 /* dur" */;
}

static const uint8_t *find_number_key(const uint8_t *p, const uint8_t *end)
{
#ifdef __SSE2__
	for (; end - p >= 16 + 8; p += 16) { /* a quote and a first letter of those */
		__m128i quote = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i letter = _mm_loadu_si128((const __m128i *)(const void *)(p + 1));
		__m128i first = _mm_or_si128(
			_mm_cmpeq_epi8(letter, _mm_set1_epi8('t')),
			_mm_or_si128(_mm_cmpeq_epi8(letter, _mm_set1_epi8('d')),
				     _mm_cmpeq_epi8(letter, _mm_set1_epi8('i'))));
		unsigned at = (unsigned)_mm_movemask_epi8(
			_mm_and_si128(first, _mm_cmpeq_epi8(quote, _mm_set1_epi8('"'))));

		for (; at; at &= at - 1)
			if (is_number_key(p + __builtin_ctz(at) + 1))
				return p + __builtin_ctz(at) + 1;
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
	if (!key)
		return NULL;
	return &k->tables->heads[hash_text((const char *)p, (size_t)(key - p)) & (HEADS - 1)];
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

/* The node to which the path of `leaf` leads from *p, which is moved; 0: not one step. */
static inline uint32_t follow(const struct json_known *k, uint32_t leaf, const uint8_t **p,
			      const uint8_t *end, struct json_found *found)
{
	const struct json_known_node *n = &k->nodes[leaf];
	const struct step *step = (const struct step *)(const void *)k->steps.data + n->path;
	const struct step *last = step + n->depth - 1;
	const uint8_t *at = *p, *texts = k->texts.data;
	struct json_number *number = found->numbers;
	uint32_t node = 0;

	if (end - at < n->most)
		return 0;
	for (; same_bytes(at, texts + step->run, step->run_len); step++, number++) {
		const uint8_t *after = at + step->run_len;

		if (step == last) {
			at = after;
			node = leaf;
			break;
		}
		after = json_number_take(after, number);
		if (!after || (step->class != number->class && step->class != JSON_ANY_CLASS))
			break;
		number->use = step->use;
		node = step->node;
		at = after;
	}
	*p = at;
	found->count = (unsigned)(number - found->numbers);
	return node;
}

static inline uint32_t *after_two(const struct json_known *k)
{
	uint64_t hash = ((uint64_t)k->last[1] << 32 | k->last[0]) * HASH_A;

	return &k->tables->after_two[hash >> 52 & (AFTERS - 1)];
}

static inline uint32_t *after_three(const struct json_known *k)
{
	uint64_t two = ((uint64_t)k->last[1] << 32 | k->last[0]) * HASH_A;

	return &k->tables->after_three[(two + k->last[2] * HASH_B) >> 52 & (AFTERS - 1)];
}

enum { GUESSES = 4 };

/* A leaf that may stand at p, the likeliest first; with the last of them *head is set. */
static inline uint32_t guess(const struct json_known *k, unsigned i, const uint8_t *p,
			     const uint8_t *end, uint32_t **head)
{
	if (i == 0)
		return *after_three(k);
	if (i == 1)
		return *after_two(k);
	if (i == 2)
		return k->nodes[k->last[0]].next;
	*head = head_of(k, p, end);
	return *head ? k->nodes[**head].next : 0;
}

/* The leaf of the element at *p, or 0; *p behind it. */
static uint32_t find_leaf(struct json_known *k, const uint8_t **p, const uint8_t *end,
			  struct json_found *found)
{
	uint32_t at = 0, tried = 0, *head = NULL;

	found->count = 0;
	for (unsigned i = 0; i < GUESSES && !at; i++) {
		uint32_t leaf = guess(k, i, *p, end, &head);

		if (leaf && leaf != tried)
			at = follow(k, leaf, p, end, found);
		tried = leaf;
	}
	while (!k->nodes[at].is_leaf) {
		if (at)
			head = &k->nodes[at].child;
		at = head ? chain_find(k, head, p, end, &found->numbers[found->count]) : 0;
		if (!at)
			return 0;
		found->count += !k->nodes[at].is_leaf;
	}
	return at;
}

/* What follows what. */
static inline void leaf_passed(struct json_known *k, uint32_t leaf)
{
	const struct step *steps = (const struct step *)(const void *)k->steps.data;

	*after_three(k) = leaf;
	*after_two(k) = leaf;
	k->nodes[k->last[0]].next = leaf;
	k->nodes[steps[k->nodes[leaf].path].node].next = leaf;
	k->last[2] = k->last[1];
	k->last[1] = k->last[0];
	k->last[0] = leaf;
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
	leaf_passed(k, leaf);
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

	if (!k->tables && !(k->tables = calloc(1, sizeof(*k->tables))))
		return false;
	used = nodes * sizeof(*k->nodes) + k->texts.len + k->steps.len + k->payloads.len +
	       k->payload_bytes + len + (count + 1) * (PAD + sizeof(struct step));
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

/* Where the text of a run stands: most are those of many elements, and better in the cache once. */
static uint32_t run_put(struct json_known *k, const char *run, size_t len)
{
	static const char pad[PAD];
	uint32_t *share = &k->tables->shares[hash_text(run, len) & (SHARES - 1)];
	const struct json_known_node *n = &k->nodes[*share];
	uint32_t at = (uint32_t)k->texts.len;

	if (*share && n->run_len == len && memcmp(k->texts.data + n->run, run, len) == 0)
		return n->run;
	*share = k->node_count; /* which it will be */
	buf_put(&k->texts, run, len);
	buf_put(&k->texts, pad, PAD);
	return at;
}

/* The node of a run below *head, new unless it is there. */
static uint32_t node_put(struct json_known *k, uint32_t *head, struct json_known_node like,
			 const char *run)
{
	uint32_t at = node_find(k, *head, &like, run);

	if (at)
		return at;
	like.run = run_put(k, run, like.run_len);
	like.sibling = *head;
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
	if (!json_number_take_any((const uint8_t *)copy, &number) || number.len != hole->len)
		return false;
	*class = hole->any_class ? (uint8_t)JSON_ANY_CLASS : number.class;
	return true;
}

static void leaf_init(struct json_known *k, uint32_t leaf, const uint32_t *path, unsigned depth)
{
	struct json_known_node *n = &k->nodes[leaf];

	k->learnt++;
	n->depth = (uint8_t)depth;
	n->path = (uint32_t)(k->steps.len / sizeof(struct step));
	n->payload = (uint32_t)k->payloads.len;
	n->most = JSON_NUMBER_ROOM;
	for (unsigned i = 0; i < depth; i++) {
		const struct json_known_node *of = &k->nodes[path[i]];
		struct step step = { .node = path[i], .run = of->run,
				     .run_len = (uint16_t)of->run_len, .class = of->class,
				     .use = of->use };

		n->most += of->run_len + JSON_NUMBER_LEN_MOST;
		buf_put(&k->steps, &step, sizeof(step));
	}
	if (buf_reserve(&k->payloads, k->payload_bytes)) {
		memset(k->payloads.data + k->payloads.len, 0, k->payload_bytes);
		k->payloads.len += k->payload_bytes;
	}
}

static void *leaf_payload(struct json_known *k, uint32_t leaf, const uint32_t *path, unsigned depth)
{
	struct json_known_node *n = &k->nodes[leaf];

	if (!n->depth)
		leaf_init(k, leaf, path, depth);
	if (buf_status(&k->texts, NULL) != ST_OK || buf_status(&k->steps, NULL) != ST_OK ||
	    buf_status(&k->payloads, NULL) != ST_OK) {
		json_known_forget(k);
		return NULL;
	}
	leaf_passed(k, leaf);
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
	for (i = 0; i < count; i++) {
		if (holes[i].text < at || !hole_class(&holes[i], &classes[i]))
			return NULL; /* the same member twice makes a hole twice */
		at = holes[i].text + holes[i].len;
	}
	at = text;
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

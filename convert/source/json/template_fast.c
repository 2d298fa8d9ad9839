/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/json/template_fast.h"

#include "schemas/base/hash.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
	HEADS = 4096, /* these are powers of two */
	AFTERS = 4096,
	SHARES = 512,
	TRIES = 24, /* nodes of a chain that are compared */
	PAD = 16,   /* bytes after each run, so that it can be compared in whole vectors */
};

/* A run and the placeholder after it, or the end of a template, which is called a leaf. */
struct json_node {
	uint32_t run, run_len; /* in texts */
	uint32_t child;        /* the node after it that matched last */
	uint32_t sibling;      /* the next node after the same path */
	uint8_t class, use;
	bool is_leaf;
	/* The rest is for leaves, except where noted. */
	uint8_t depth;    /* nodes of its path */
	uint32_t path;    /* index of its first step */
	uint32_t payload; /* offset in payloads */
	uint32_t next;    /* the leaf that followed it; of a first run: the last leaf below it */
	uint32_t most;    /* bytes that a comparison may look at */
};

/* A node of the path of a leaf, with what is needed to follow it. */
struct step {
	uint32_t node, run;
	uint16_t run_len;
	uint8_t class, use;
};

struct json_template_tables {
	uint32_t heads[HEADS];      /* chains of first runs, by hash */
	uint32_t after_two[AFTERS]; /* the leaf that followed the last two, by their hash */
	uint32_t after_three[AFTERS];
	uint32_t shares[SHARES]; /* nodes whose run others have too, by hash */
};

void json_templates_init(struct json_templates *k, size_t payload_bytes, size_t ceiling)
{
	*k = (struct json_templates){ .payload_bytes = payload_bytes, .ceiling = ceiling };
	buf_init(&k->texts, ceiling);
	buf_init(&k->steps, ceiling);
	buf_init(&k->payloads, ceiling);
}

void json_templates_forget(struct json_templates *k)
{
	buf_clear(&k->texts);
	buf_clear(&k->steps);
	buf_clear(&k->payloads);
	k->node_count = k->nodes ? 1 : 0;
	if (k->nodes)
		k->nodes[0] = (struct json_node){ 0 };
	memset(k->last, 0, sizeof(k->last));
	if (k->tables)
		memset(k->tables, 0, sizeof(*k->tables));
}

void json_templates_release(struct json_templates *k)
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

/* `len` bytes, 17 to 32, or 33 to 64: vectors from both ends, which overlap in the middle. */
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

/* May look at PAD bytes after `len`. */
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

/* Whether the run of `n` stands at *p, with a number of its class after it; moves *p past both. */
static inline bool node_matches(const struct json_templates *k, const struct json_node *n,
				const uint8_t **p, const uint8_t *end, struct json_number *number)
{
	if ((size_t)(end - *p) < (size_t)n->run_len + JSON_NUMBER_REACH)
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

/* At p, after a quote, is a key whose value differs by element: a time, a duration or an id. */
static inline bool is_number_key(const uint8_t *p)
{
	uint32_t key = get_u32(p);

	return key == 0x3a227374 /* ts": */ || key == 0x3a226469 /* id": */ ||
	       key == 0x22727564 /* dur" */;
}

static const uint8_t *find_number_key(const uint8_t *p, const uint8_t *end)
{
#ifdef __SSE2__
	for (; end - p >= 16 + 8; p += 16) { /* a quote, and a first letter of those keys */
		__m128i quote = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i letter = _mm_loadu_si128((const __m128i *)(const void *)(p + 1));
		__m128i first =
			_mm_or_si128(_mm_cmpeq_epi8(letter, _mm_set1_epi8('t')),
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

/* The chain of the first runs that may stand at p, by the text before the first such key. */
static uint32_t *head_of(const struct json_templates *k, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *key;

	if (end - p > JSON_TEMPLATE_TEXT_MOST)
		end = p + JSON_TEMPLATE_TEXT_MOST;
	key = find_number_key(p, end);
	if (!key)
		return NULL;
	return &k->tables->heads[hash_text((const char *)p, (size_t)(key - p)) & (HEADS - 1)];
}

/* The node of a chain that matches, 0: none does.  It is moved to the front of its chain. */
static uint32_t chain_find(struct json_templates *k, uint32_t *head, const uint8_t **p,
			   const uint8_t *end, struct json_number *number)
{
	uint32_t *link = head;

	for (unsigned i = 0; *link && i < TRIES; i++, link = &k->nodes[*link].sibling) {
		uint32_t found = *link;
		struct json_node *n = &k->nodes[found];

		if (!node_matches(k, n, p, end, number))
			continue;
		*link = n->sibling;
		n->sibling = *head;
		*head = found;
		return found;
	}
	return 0;
}

/* The last node on the path of `leaf` that matches from *p on, 0: none does.  Moves *p past it. */
static inline uint32_t follow(const struct json_templates *k, uint32_t leaf, const uint8_t **p,
			      const uint8_t *end, struct json_match *match)
{
	const struct json_node *n = &k->nodes[leaf];
	const struct step *step = (const struct step *)(const void *)k->steps.data + n->path;
	const struct step *last = step + n->depth - 1;
	const uint8_t *at = *p, *texts = k->texts.data;
	struct json_number *number = match->numbers;
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
	match->count = (unsigned)(number - match->numbers);
	return node;
}

static inline uint32_t *after_two(const struct json_templates *k)
{
	uint64_t hash = ((uint64_t)k->last[1] << 32 | k->last[0]) * HASH_A;

	return &k->tables->after_two[hash >> 52 & (AFTERS - 1)];
}

static inline uint32_t *after_three(const struct json_templates *k)
{
	uint64_t two = ((uint64_t)k->last[1] << 32 | k->last[0]) * HASH_A;

	return &k->tables->after_three[(two + k->last[2] * HASH_B) >> 52 & (AFTERS - 1)];
}

enum { PREDICTIONS = 4 };

/* A leaf that may stand at p, the likeliest first.  The last of them also sets *head. */
static inline uint32_t predict(const struct json_templates *k, unsigned i, const uint8_t *p,
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

/* The leaf that matches at *p, which is moved past it; 0: none does. */
static uint32_t find_leaf(struct json_templates *k, const uint8_t **p, const uint8_t *end,
			  struct json_match *match)
{
	uint32_t at = 0, tried = 0, *head = NULL;

	match->count = 0;
	for (unsigned i = 0; i < PREDICTIONS && !at; i++) {
		uint32_t leaf = predict(k, i, *p, end, &head);

		if (leaf && leaf != tried)
			at = follow(k, leaf, p, end, match);
		tried = leaf;
	}
	while (!k->nodes[at].is_leaf) {
		if (at)
			head = &k->nodes[at].child;
		at = head ? chain_find(k, head, p, end, &match->numbers[match->count]) : 0;
		if (!at)
			return 0;
		match->count += !k->nodes[at].is_leaf;
	}
	return at;
}

/* Remembers which leaf followed which. */
static inline void leaf_passed(struct json_templates *k, uint32_t leaf)
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

bool json_templates_find(struct json_templates *k, struct json_scan *s, struct json_match *match)
{
	const uint8_t *p = s->at;
	uint32_t leaf;

	if (k->node_count < 2 || json_is_first(s))
		return false;
	leaf = find_leaf(k, &p, s->end, match);
	if (!leaf)
		return false;
	match->payload = k->payloads.data + k->nodes[leaf].payload;
	leaf_passed(k, leaf);
	k->found++;
	s->at = p;
	return true;
}

/* Adding */

/* Reserves what a template needs.  Where that would be too much, all that is kept is forgotten. */
static bool reserve(struct json_templates *k, size_t len, unsigned count)
{
	size_t nodes = k->node_count + count + 1, used;

	if (!k->tables && !(k->tables = calloc(1, sizeof(*k->tables))))
		return false;
	used = nodes * sizeof(*k->nodes) + k->texts.len + k->steps.len + k->payloads.len +
	       k->payload_bytes + len + (count + 1) * (PAD + sizeof(struct step));
	if (used > k->ceiling)
		json_templates_forget(k);
	if (vec_reserve(&k->nodes, &k->node_cap, k->node_count + count + 3, NULL) != ST_OK)
		return false;
	k->node_count += !k->node_count; /* node 0 stands for none */
	return true;
}

/* Where the text of a run is kept: most runs are those of many templates and are kept once, which
 * needs less of the cache. */
static uint32_t run_put(struct json_templates *k, const char *run, size_t len)
{
	static const char pad[PAD];
	uint32_t *share = &k->tables->shares[hash_text(run, len) & (SHARES - 1)];
	const struct json_node *n = &k->nodes[*share];
	uint32_t at = (uint32_t)k->texts.len;

	if (*share && n->run_len == len && memcmp(k->texts.data + n->run, run, len) == 0)
		return n->run;
	*share = k->node_count; /* which it will be */
	buf_put(&k->texts, run, len);
	buf_put(&k->texts, pad, PAD);
	return at;
}

/* The node of a run in the chain *head, added unless it is there. */
static uint32_t node_put(struct json_templates *k, uint32_t *head, struct json_node like,
			 const char *run)
{
	for (uint32_t at = *head; at; at = k->nodes[at].sibling) {
		const struct json_node *n = &k->nodes[at];

		if (n->run_len == like.run_len && n->is_leaf == like.is_leaf &&
		    n->class == like.class && n->use == like.use &&
		    memcmp(k->texts.data + n->run, run, n->run_len) == 0)
			return at;
	}
	like.run = run_put(k, run, like.run_len);
	like.sibling = *head;
	k->nodes[k->node_count] = like;
	*head = k->node_count++;
	return *head;
}

/* How the number is written; false: so that it cannot be found again. */
static bool placeholder_class(const struct json_placeholder *number, uint8_t *class)
{
	char copy[2 * JSON_NUMBER_REACH] = { 0 };
	struct json_number read;

	if (number->len > JSON_NUMBER_REACH)
		return false;
	memcpy(copy, number->text, number->len);
	if (!json_number_take_any((const uint8_t *)copy, &read) || read.len != number->len)
		return false;
	*class = number->any_class ? (uint8_t)JSON_ANY_CLASS : read.class;
	return true;
}

static void *leaf_payload(struct json_templates *k, uint32_t leaf, const uint32_t *path,
			  unsigned depth)
{
	struct json_node *n = &k->nodes[leaf];

	if (!n->depth) {
		k->added++;
		n->depth = (uint8_t)depth;
		n->path = (uint32_t)(k->steps.len / sizeof(struct step));
		n->payload = (uint32_t)k->payloads.len;
		n->most = JSON_NUMBER_REACH;
		for (unsigned i = 0; i < depth; i++) {
			const struct json_node *of = &k->nodes[path[i]];
			struct step step = { .node = path[i],
					     .run = of->run,
					     .run_len = (uint16_t)of->run_len,
					     .class = of->class,
					     .use = of->use };

			n->most += of->run_len + JSON_NUMBER_LEN_MOST;
			buf_put(&k->steps, &step, sizeof(step));
		}
		if (buf_reserve(&k->payloads, k->payload_bytes)) {
			memset(k->payloads.data + k->payloads.len, 0, k->payload_bytes);
			k->payloads.len += k->payload_bytes;
		}
	}
	if (buf_status(&k->texts, NULL) != ST_OK || buf_status(&k->steps, NULL) != ST_OK ||
	    buf_status(&k->payloads, NULL) != ST_OK) {
		json_templates_forget(k);
		return NULL;
	}
	leaf_passed(k, leaf);
	return k->payloads.data + n->payload;
}

void *json_templates_add(struct json_templates *k, const char *text, size_t len,
			 const struct json_placeholder *numbers, unsigned count)
{
	const char *at = text, *end = text + len;
	uint32_t path[JSON_PLACEHOLDERS_MOST + 1], *head;
	uint8_t classes[JSON_PLACEHOLDERS_MOST];

	if (!count || count > JSON_PLACEHOLDERS_MOST || len > JSON_TEMPLATE_TEXT_MOST)
		return NULL;
	for (unsigned i = 0; i < count; i++) {
		if (numbers[i].text < at || !placeholder_class(&numbers[i], &classes[i]))
			return NULL; /* a member that is repeated makes a placeholder twice */
		at = numbers[i].text + numbers[i].len;
	}
	at = text;
	if (!reserve(k, len, count))
		return NULL;
	head = head_of(k, (const uint8_t *)text, (const uint8_t *)end);
	if (!head)
		return NULL;
	for (unsigned i = 0; i <= count; i++) {
		struct json_node like = { .is_leaf = i == count };
		const char *stop = i < count ? numbers[i].text : end;

		like.run_len = (uint32_t)(stop - at);
		if (i < count) {
			like.class = classes[i];
			like.use = numbers[i].use;
		}
		path[i] = node_put(k, head, like, at);
		head = &k->nodes[path[i]].child;
		at = i < count ? stop + numbers[i].len : end;
	}
	return leaf_payload(k, path[count], path, count + 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json/known.h - elements of an array that read as one before them did, but for some numbers.
 *
 * A trace repeats itself: the same kernel on the same stream, with other times.  Whoever has read
 * an element with the scanner says which of its numbers may be others (holes) and what it made of
 * it; from then on an element with the same text around such numbers is found by comparing bytes,
 * and is valid JSON because that text was.  The text between two holes is a run; elements are paths
 * in a tree of runs.  Which element follows which ones is remembered, so mostly one path is
 * compared.
 *
 * What has been learnt stays below a ceiling: when that is reached, all of it is forgotten.
 */
#ifndef CONVERT_JSON_KNOWN_H
#define CONVERT_JSON_KNOWN_H

#include "convert/json/number.h"

enum {
	JSON_HOLES_MOST = 24,        /* of an element */
	JSON_KNOWN_TEXT_MOST = 8192, /* bytes of an element */
};

struct json_hole { /* when an element is learnt */
	const char *text; /* of the number, in the element */
	size_t len;
	uint8_t use; /* the caller's */
	bool any_class; /* else one that is written otherwise is not the same element */
};

struct json_found {
	const void *payload; /* what was learnt; until the next add or find */
	struct json_number numbers[JSON_HOLES_MOST]; /* in the holes */
	unsigned count;
};

struct json_known {
	size_t payload_bytes, ceiling;
	struct json_known_node *nodes; /* [0] is none */
	struct buf texts, steps, payloads;
	uint32_t node_count, node_cap;
	struct json_known_tables *tables; /* allocated with the first element */
	uint32_t last[3]; /* the leaf that was found or learnt last, and those before it */
	uint64_t found, learnt; /* elements so far */
};

void json_known_init(struct json_known *k, size_t payload_bytes, size_t ceiling);
void json_known_release(struct json_known *k);
void json_known_forget(struct json_known *k);

/* True: the scanner has passed an element that is known.  It stands behind an element, no hold. */
bool json_known_find(struct json_known *k, struct json_scan *s, struct json_found *found);

/*
 * `text` is an element with all that stands before it from the end of the one before, holes are in
 * the order of their places.  Room for its payload, zeroed if it is new; NULL: it is not to be
 * learnt (too long, no memory: the scanner will read it again).
 */
void *json_known_add(struct json_known *k, const char *text, size_t len,
		     const struct json_hole *holes, unsigned count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_fast.h - recognises elements of an array that differ from an earlier one only in
 * numbers.
 *
 * A trace repeats itself: the same kernel runs on the same stream at other times.  Whoever has read
 * an element with the scanner adds it as a template: its text, which of its numbers may differ
 * (placeholders), and what it made of it (a payload).  From then on, an element with the same text
 * around such numbers is found by comparing bytes, and is valid JSON because that text was.
 *
 * It remembers which template follows which, so it usually compares the bytes with only one.  When
 * the templates reach a ceiling, all of them are dropped.
 */
#pragma once

#include "convert/source/json/number_fast.h"

enum {
	JSON_PLACEHOLDERS_MOST = 24,    /* of a template */
	JSON_TEMPLATE_TEXT_MOST = 8192, /* bytes of a template */
};

struct json_placeholder {
	const char *text; /* of the number, in the element */
	size_t len;
	uint8_t use;    /* the caller's */
	bool any_class; /* false: a number that is written otherwise does not match */
};

struct json_match {
	const void *payload; /* of the template; until the next add or find */
	struct json_number numbers[JSON_PLACEHOLDERS_MOST]; /* in its placeholders */
	unsigned count;
	uint32_t template; /* its number */
};

struct json_templates {
	size_t payload_bytes, ceiling;
	struct buf templates; /* struct json_template; number 0 stands for none */
	struct buf texts, steps, payloads;
	struct json_template_tables *tables; /* allocated with the first template */
	uint64_t last;                       /* numbers of the last templates, eight bits of each */
	uint64_t found, added;               /* elements and templates so far */
};

void json_templates_init(struct json_templates *k, size_t payload_bytes, size_t ceiling);
void json_templates_release(struct json_templates *k);
void json_templates_forget(struct json_templates *k);

/* The scanner stands after an element, without a hold.  True: it has passed one that matches. */
bool json_templates_find(struct json_templates *k, struct json_scan *s, struct json_match *match);

/*
 * The `len` bytes before the scanner are an element with all that stands before it from the end of
 * the one before; placeholders are in the order of their places.  Returns its payload, zeroed if it
 * is new, or NULL where it is not kept (too long, no memory: the scanner will read its like again).
 */
void *json_templates_add(struct json_templates *k, const struct json_scan *s, size_t len,
			 const struct json_placeholder *numbers, unsigned count);

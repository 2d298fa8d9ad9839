/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_fast.h - recognizes elements of an array that differ from an earlier one only in
 * numbers.
 *
 * A trace repeats itself: the same kernel runs on the same stream at other times.  A caller that
 * has read an element with the scanner adds it as a template: its text, which of its numbers may
 * differ (placeholders), and the caller's result (a payload).  From then on, an element with the
 * same text around such numbers is found by comparing bytes; it is valid JSON because that text
 * was.
 *
 * The matcher remembers which template follows which, so it usually compares the bytes with only
 * one.  When the templates reach a ceiling, all of them are dropped.
 */
#pragma once

#include "convert/source/json/number_fast.h"

enum {
	JSON_PLACEHOLDERS_MOST = 24,    /* placeholders of a template */
	JSON_TEMPLATE_TEXT_MOST = 8192, /* bytes of a template */
};

struct json_placeholder {
	const char *text; /* the number's text, inside the element */
	size_t len;
	uint8_t use;    /* for the caller */
	bool any_class; /* false: only numbers of the same json_class match */
};

struct json_match {
	const void *payload; /* the template's payload, valid until the next add or find */
	struct json_number numbers[JSON_PLACEHOLDERS_MOST]; /* values of the placeholders */
	unsigned count;
	uint32_t template; /* number of the template */
};

struct json_templates {
	size_t payload_bytes, ceiling;
	struct buf templates; /* struct json_template; number 0 is unused */
	struct buf texts, steps, payloads;
	struct json_template_tables *tables; /* allocated with the first template */
	uint64_t last;                       /* numbers of the latest templates, eight bits each */
	uint64_t found, added;               /* elements found and templates added so far */
};

void json_templates_init(struct json_templates *k, size_t payload_bytes, size_t ceiling);
void json_templates_release(struct json_templates *k);
void json_templates_forget(struct json_templates *k);

/* Skips the next element if it matches a template, and returns whether it does.  The scanner stands
 * after an element and has no hold. */
bool json_templates_find(struct json_templates *k, struct json_scan *s, struct json_match *match);

/*
 * Adds the element in the `len` bytes before the scanner's position as a template.  These bytes
 * begin at the end of the previous element; `numbers` are in the order of their positions.  Returns
 * the payload, zeroed if it is new, or NULL if no template was kept (too long, no memory); the
 * scanner then has to read the next such element again.
 */
void *json_templates_add(struct json_templates *k, const struct json_scan *s, size_t len,
			 const struct json_placeholder *numbers, unsigned count);

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/json/template_fast.h"

#include "schemas/base/hash.h"

#include <stdlib.h>

enum {
	CHAINS = 4096, /* a power of two, as is SHARES */
	AFTER_SHIFT = 52,
	SHARES = 512,
	KEY_MEMBERS = 6,
	TRIES = 24, /* templates compared per chain */
};

struct json_template {
	uint32_t step, step_count; /* no number follows the last step */
	uint32_t payload;          /* offset in `payloads` */
	uint32_t most;             /* bytes that a comparison may read */
	uint32_t sibling;          /* next template of its chain */
};

/* The text before a placeholder, and the class of the placeholder's number. */
struct step {
	uint32_t text; /* offset in `texts` */
	uint16_t len;
	uint8_t class, use;
};

struct json_template_tables {
	uint32_t chains[CHAINS]; /* heads of chains by hash of the first members */
	uint32_t after[2][1 << (64 - AFTER_SHIFT)]; /* predicted templates, see after() */
	uint32_t shares[SHARES]; /* index + 1 of a step with a given text, by its hash */
};

void json_templates_init(struct json_templates *k, size_t payload_bytes, size_t ceiling)
{
	*k = (struct json_templates){ .payload_bytes = payload_bytes, .ceiling = ceiling };
	buf_init(&k->templates, ceiling);
	buf_init(&k->texts, ceiling);
	buf_init(&k->steps, ceiling);
	buf_init(&k->payloads, ceiling);
}

void json_templates_forget(struct json_templates *k)
{
	buf_clear(&k->templates);
	buf_clear(&k->texts);
	buf_clear(&k->steps);
	buf_clear(&k->payloads);
	k->last = 0;
	if (k->tables)
		memset(k->tables, 0, sizeof(*k->tables));
}

void json_templates_release(struct json_templates *k)
{
	buf_release(&k->templates);
	buf_release(&k->texts);
	buf_release(&k->steps);
	buf_release(&k->payloads);
	free(k->tables);
	k->tables = NULL;
}

static inline struct json_template *template_at(const struct json_templates *k, uint32_t number)
{
	return (struct json_template *)(void *)k->templates.data + number;
}

/*
 * Returns the chain of the templates that may match at `p`, by a hash of the members before the
 * first number.  In traces these are mostly category and name, in which commas separate KEY_MEMBERS
 * parts.
 */
static uint32_t *chain_at(const struct json_templates *k, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *at = p, *comma, *value;

	for (unsigned i = 0; i < KEY_MEMBERS; i++) {
		comma = memchr(at, ',', (size_t)(end - at));
		if (!comma)
			return NULL;
		for (value = comma; value > at && value[-1] <= '9' && value[-1] >= '-';)
			value--;
		if (value > at + 1 && value < comma && value[value[-1] == ' ' ? -2 : -1] == ':')
			break;
		at = comma + 1;
	}
	return &k->tables->chains[hash_text((const char *)p, (size_t)(at - p)) & (CHAINS - 1)];
}

static inline const struct step *steps_of(const struct json_templates *k, uint32_t number)
{
	return (const struct step *)(const void *)k->steps.data + template_at(k, number)->step;
}

/*
 * Returns the end of the element at `p` if it matches the template, otherwise NULL.  *match
 * contains the progress of the previously compared template: steps that both have in common are not
 * compared again, and fail where they failed before.
 */
static const uint8_t *matches(const struct json_templates *k, uint32_t number, const uint8_t *p,
			      const uint8_t *end, struct json_match *match)
{
	const struct json_template *t = template_at(k, number);
	const struct step *steps = steps_of(k, number), *tried = steps_of(k, match->template);
	unsigned i = 0, last = t->step_count - 1;

	if (!number || number == match->template || end - p < t->most)
		return NULL;
	while (match->template && i < last && memcmp(&steps[i], &tried[i], sizeof(*steps)) == 0) {
		if (i == match->count)
			return NULL;
		p = (const uint8_t *)match->numbers[i].text + match->numbers[i].len;
		i++;
	}
	match->template = number;
	for (;; i++) {
		struct json_number *n = &match->numbers[i];

		match->count = i;
		if (memcmp(p, k->texts.data + steps[i].text, steps[i].len) != 0)
			return NULL;
		p += steps[i].len;
		if (i == last)
			return p;
		p = json_number_take(p, n);
		if (!p || (steps[i].class != n->class && steps[i].class != JSON_ANY_CLASS))
			return NULL;
		n->use = steps[i].use;
	}
}

/* Returns the slot with the template that followed the latest eight templates (i = 0) or two (i =
 * 1) the last time. */
static inline uint32_t *after(const struct json_templates *k, unsigned i)
{
	return &k->tables->after[i][(i ? k->last & 0xffff : k->last) * HASH_A >> AFTER_SHIFT];
}

/* Records that template `number` followed the latest ones. */
static inline void passed(struct json_templates *k, uint32_t number)
{
	*after(k, 0) = *after(k, 1) = number;
	k->last = k->last << 8 ^ number;
}

bool json_templates_find(struct json_templates *k, struct json_scan *s, struct json_match *match)
{
	const uint8_t *end = NULL;
	uint32_t *chain, *link;

	if (!k->templates.len || json_is_first(s))
		return false;
	match->count = match->template = 0;
	for (unsigned i = 0; i < 2 && !end; i++)
		end = matches(k, *after(k, i), s->at, s->end, match);
	link = chain = end ? NULL : chain_at(k, s->at, s->end);
	for (unsigned i = 0; link && *link && !end && i < TRIES; i++) {
		struct json_template *t = template_at(k, *link);

		end = matches(k, *link, s->at, s->end, match);
		if (end) { /* move it to the front of its chain */
			*link = t->sibling;
			t->sibling = *chain;
			*chain = match->template;
		}
		link = &t->sibling;
	}
	if (!end)
		return false;
	match->payload = k->payloads.data + template_at(k, match->template)->payload;
	passed(k, match->template);
	k->found++;
	s->at = end;
	return true;
}

/* ---- adding ---- */

/* Stores the text of a step and returns its offset.  Most texts occur in many templates and are
 * stored once. */
static uint32_t text_put(struct json_templates *k, const char *text, size_t len)
{
	uint32_t *share = &k->tables->shares[hash_text(text, len) & (SHARES - 1)];
	const struct step *steps = (const struct step *)(const void *)k->steps.data;
	const struct step *of = *share ? steps + *share - 1 : NULL;

	if (of && of->len == len && memcmp(k->texts.data + of->text, text, len) == 0)
		return of->text;
	buf_put(&k->texts, text, len);
	*share = (uint32_t)(k->steps.len / sizeof(*of)) + 1; /* the step added next */
	return (uint32_t)(k->texts.len - len);
}

/* Sets *class to the form of the number.  Returns false if json_number_take() cannot parse it, so
 * that it would not be found again. */
static bool placeholder_class(const struct json_placeholder *number, uint8_t *class)
{
	char copy[2 * JSON_NUMBER_REACH] = { 0 };
	struct json_number read;

	if (number->len > JSON_NUMBER_REACH)
		return false;
	memcpy(copy, number->text, number->len);
	if (!json_number_take((const uint8_t *)copy, &read) || read.len != number->len)
		return false;
	*class = number->any_class ? (uint8_t)JSON_ANY_CLASS : read.class;
	return true;
}

/* Returns the template of a chain that has the sizes of `t` and these placeholders and matches the
 * element, or 0 if no such template is among the first TRIES. */
static uint32_t find_same(const struct json_templates *k, uint32_t number,
			  const struct json_template *t, const uint8_t *text, const uint8_t *end,
			  const struct json_placeholder *numbers)
{
	unsigned count = t->step_count - 1;
	struct json_match match = { .count = 0 };

	for (unsigned i = 0; number && i < TRIES; number = template_at(k, number)->sibling, i++) {
		const struct json_template *like = template_at(k, number);
		unsigned same = 0;

		if (like->most != t->most || like->step_count != t->step_count ||
		    !matches(k, number, text, end, &match))
			continue;
		while (same < count && match.numbers[same].text == numbers[same].text &&
		       match.numbers[same].use == numbers[same].use)
			same++;
		if (same == count)
			return number;
	}
	return 0;
}

void *json_templates_add(struct json_templates *k, const struct json_scan *s, size_t len,
			 const struct json_placeholder *numbers, unsigned count)
{
	const uint8_t *text = s->at - len;
	struct json_template t = { .step_count = count + 1,
				   .most = JSON_NUMBER_REACH + (uint32_t)len };
	uint8_t classes[JSON_PLACEHOLDERS_MOST];
	const char *at = (const char *)text;
	uint32_t *chain, found;

	if (!count || count > JSON_PLACEHOLDERS_MOST || len > JSON_TEMPLATE_TEXT_MOST ||
	    (!k->tables && !(k->tables = calloc(1, sizeof(*k->tables)))))
		return NULL;
	for (unsigned i = 0; i < count; i++) {
		if (numbers[i].text < at || !placeholder_class(&numbers[i], &classes[i]))
			return NULL; /* a repeated member uses a placeholder twice */
		at = numbers[i].text + numbers[i].len;
		t.most += JSON_NUMBER_LEN_MOST - (uint32_t)numbers[i].len;
	}
	if (k->templates.len + k->texts.len + k->steps.len + k->payloads.len + 2 * sizeof(t) +
		    k->payload_bytes + len + (count + 1) * sizeof(struct step) >
	    k->ceiling)
		json_templates_forget(k);
	chain = chain_at(k, text, s->at);
	if (!chain)
		return NULL;
	found = find_same(k, *chain, &t, text, s->end, numbers);
	if (!found) {
		if (!k->templates.len) /* number 0 is unused */
			buf_put(&k->templates, &(struct json_template){ 0 }, sizeof(t));
		t.step = (uint32_t)(k->steps.len / sizeof(struct step));
		t.payload = (uint32_t)k->payloads.len;
		t.sibling = *chain;
		at = (const char *)text;
		for (unsigned i = 0; i <= count; i++) {
			const char *stop = i < count ? numbers[i].text : (const char *)s->at;
			struct step step = { .len = (uint16_t)(stop - at) };

			step.text = text_put(k, at, step.len);
			if (i < count) {
				step.class = classes[i];
				step.use = numbers[i].use;
				at = stop + numbers[i].len;
			}
			buf_put(&k->steps, &step, sizeof(step));
		}
		found = (uint32_t)(k->templates.len / sizeof(t));
		buf_put(&k->templates, &t, sizeof(t));
		buf_fill(&k->payloads, 0, k->payload_bytes);
		*chain = found;
		k->added++;
	}
	if (buf_status(&k->templates, NULL) != ST_OK || buf_status(&k->texts, NULL) != ST_OK ||
	    buf_status(&k->steps, NULL) != ST_OK || buf_status(&k->payloads, NULL) != ST_OK) {
		json_templates_forget(k);
		return NULL;
	}
	passed(k, found);
	return k->payloads.data + template_at(k, found)->payload;
}

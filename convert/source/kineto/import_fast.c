/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/cuspy.h"
#include "convert/source/kineto/import.h"
#include "schemas/base/plain.h"

enum { TEMPLATE_BYTES = 3 << 20 };

struct outcome {            /* payload of a template: the events of its elements */
	struct event event; /* without its times and placeholders */
	bool is_derived, launches;
};

void kineto_fast_init(struct kineto_fast *f)
{
	json_templates_init(&f->templates, sizeof(struct outcome), TEMPLATE_BYTES);
	f->number_count = 0;
	f->is_off = plain_ways;
}

void kineto_fast_number(struct kineto_fast *f, const struct json *number, enum kineto_use use)
{
	if (!f || number->type != JSON_NUMBER || f->number_count > JSON_PLACEHOLDERS_MOST)
		return; /* too many numbers: the element gets no template */
	f->numbers[f->number_count++] = (struct json_placeholder){
		.text = number->text,
		.len = number->len,
		.use = (uint8_t)use,
		.any_class = use >= KINETO_BEGIN,
	};
}

void kineto_fast_learn(struct kineto_import *k, const struct event *e)
{
	struct kineto_fast *f = &k->fast;
	struct outcome *o;

	if (f->is_off || k->document.event.is_first || f->number_count > JSON_PLACEHOLDERS_MOST)
		return;
	if (e && (e->kind == KIND_COUNTER || k->args.repairs || k->args.repeated))
		return;
	/* Sort the numbers by position, because members have no fixed order and a template needs
	 * this. */
	for (unsigned i = 1; i < f->number_count; i++) {
		struct json_placeholder moved = f->numbers[i];
		unsigned at = i;

		for (; at && f->numbers[at - 1].text > moved.text; at--)
			f->numbers[at] = f->numbers[at - 1];
		f->numbers[at] = moved;
	}
	o = json_templates_add(&f->templates, &k->document.scan, k->document.event.text_len,
			       f->numbers, f->number_count);
	if (!o)
		return;
	*o = (struct outcome){ .is_derived = !e };
	if (!e)
		return;
	o->event = *e;
	o->event.args = NULL;
	o->launches = import_launches(&k->to, e);
}

struct filled { /* values of an element's placeholders */
	int64_t begin_ns, duration_ns;
	uint64_t words[JSON_PLACEHOLDERS_MOST];
	unsigned word_count;
};

/* Stores a number's value.  Returns false if import.c would store it elsewhere. */
static bool fill(const struct json_number *n, struct filled *f, struct event *e)
{
	double real;

	switch (n->use) {
	case KINETO_WORD:
		real = n->class > JSON_NEGATIVE ? json_number_f64(n) : 0;
		memcpy(&f->words[f->word_count], &real, sizeof(real));
		if (n->class <= JSON_NEGATIVE)
			f->words[f->word_count] =
				n->class == JSON_WHOLE ? n->digits : 0 - n->digits;
		f->word_count++;
		return n->class != JSON_NEGATIVE || n->digits <= INT64_MAX;
	case KINETO_BEGIN:
		return json_number_us_to_ns(n, &f->begin_ns);
	case KINETO_DURATION:
		return json_number_us_to_ns(n, &f->duration_ns) && f->duration_ns >= 0;
	case KINETO_CORRELATION:
		e->number = n->digits;
		return n->digits > 0;
	case KINETO_BYTES:
		e->bytes = n->digits;
		return n->digits > 0 && n->digits <= INT64_MAX;
	case KINETO_MINUS_BYTES:
		e->bytes = n->digits;
		return n->digits <= INT64_MAX;
	}
	return true;
}

bool kineto_fast_take(struct kineto_import *k, struct json_scan *s, enum status *status,
		      struct error *err)
{
	const uint8_t *at = s->at;
	struct json_match match;
	const struct outcome *o;
	struct filled f;
	struct event e;
	bool is_filled = true;

	if (k->fast.is_off || !json_templates_find(&k->fast.templates, s, &match))
		return false;
	o = match.payload;
	*status = ST_OK;
	for (unsigned i = 0; o->is_derived && i < match.count; i++)
		if (match.numbers[i].use == KINETO_ARROW &&
		    match.numbers[i].digits >= CUSPY_DEPENDENCIES) {
			s->at = at;
			return false;
		}
	if (o->is_derived) {
		import_lose(&k->to, LOSS_DERIVED, 1);
		return true;
	}
	e = o->event;
	f.begin_ns = f.duration_ns = 0;
	f.word_count = 0;
	for (unsigned i = 0; i < match.count && is_filled; i++)
		is_filled = fill(&match.numbers[i], &f, &e);
	if (!is_filled || !import_times(&k->to, &e, f.begin_ns, f.duration_ns)) {
		s->at = at; /* let the scanner read the element */
		return false;
	}
	if (f.word_count)
		e.args = f.words;
	*status = import_put_again(&k->to, &e, o->launches, err);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/kineto/known.h"

enum { KNOWN_BYTES = 3 << 20 };

struct known { /* what an element becomes */
	struct event event; /* but for its times and what is in holes */
	bool is_derived, launches;
};

void kineto_known_init(struct kineto_import *k)
{
	json_known_init(&k->known, sizeof(struct known), KNOWN_BYTES);
}

void kineto_known_hole(struct kineto_import *k, const struct json *number, enum kineto_use use)
{
	if (number->type != JSON_NUMBER || k->hole_count > JSON_HOLES_MOST)
		return; /* one too many: it is not learnt */
	k->holes[k->hole_count++] = (struct json_hole){
		.text = number->text, .len = number->len, .use = (uint8_t)use,
		.any_class = use >= KINETO_BEGIN,
	};
}

/* By place: members may stand in any order. */
static void sort_holes(struct kineto_import *k)
{
	for (unsigned i = 1; i < k->hole_count; i++) {
		struct json_hole hole = k->holes[i];
		unsigned at = i;

		for (; at && k->holes[at - 1].text > hole.text; at--)
			k->holes[at] = k->holes[at - 1];
		k->holes[at] = hole;
	}
}

void kineto_known_learn(struct kineto_import *k, const struct event *e)
{
	struct known *known;

	if (k->scans_all || k->event.is_first || k->hole_count > JSON_HOLES_MOST)
		return;
	if (e && (e->kind == KIND_COUNTER || k->args.repairs || k->args.repeated))
		return;
	sort_holes(k);
	known = json_known_add(&k->known, k->event.text, k->event.text_len, k->holes,
			       k->hole_count);
	if (!known)
		return;
	*known = (struct known){ .is_derived = !e };
	if (!e)
		return;
	known->event = *e;
	known->event.vary = NULL;
	known->launches = kineto_launches(e, &k->event);
}

struct filled { /* from the numbers of an element */
	int64_t begin_ns, duration_ns;
	uint64_t words[JSON_HOLES_MOST];
	unsigned word_count;
};

static uint64_t word_of(const struct json_number *n)
{
	double real;
	uint64_t bits;

	if (n->class == JSON_WHOLE)
		return n->digits;
	if (n->class == JSON_NEGATIVE)
		return 0 - n->digits;
	real = json_number_f64(n);
	memcpy(&bits, &real, sizeof(bits));
	return bits;
}

/* False: the scanner's way makes something else of it. */
static bool fill_number(const struct json_number *n, struct filled *f, struct event *e)
{
	switch (n->use) {
	case KINETO_WORD:
		f->words[f->word_count++] = word_of(n);
		return n->class != JSON_NEGATIVE || n->digits <= INT64_MAX;
	case KINETO_BEGIN:
		return json_number_us_to_ns(n, &f->begin_ns) &&
		       f->begin_ns <= KINETO_TIME_MOST && f->begin_ns >= -KINETO_TIME_MOST;
	case KINETO_DURATION:
		return json_number_us_to_ns(n, &f->duration_ns) && f->duration_ns >= 0 &&
		       f->duration_ns <= KINETO_TIME_MOST;
	case KINETO_JOIN:
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

static bool fill(const struct json_found *found, struct filled *f, struct event *e)
{
	f->begin_ns = f->duration_ns = 0;
	f->word_count = 0;
	for (unsigned i = 0; i < found->count; i++)
		if (!fill_number(&found->numbers[i], f, e))
			return false;
	e->begin_ns = (uint64_t)(f->begin_ns + SPOOL_BIAS);
	e->end_ns = e->begin_ns + (uint64_t)f->duration_ns;
	if (f->word_count)
		e->vary = f->words;
	return true;
}

bool kineto_known_take(void *self, struct json_scan *s, enum status *status, struct error *err)
{
	struct kineto_import *k = self;
	const uint8_t *at = s->at;
	struct json_found found;
	const struct known *known;
	struct filled f;
	struct event e;

	if (!json_known_find(&k->known, s, &found))
		return false;
	known = found.payload;
	*status = ST_OK;
	if (known->is_derived) {
		k->derived++;
		return true;
	}
	e = known->event;
	if (!fill(&found, &f, &e)) {
		s->at = at; /* as if it had not been found */
		return false;
	}
	if (f.begin_ns < k->first_ns)
		k->first_ns = f.begin_ns;
	if (known->launches)
		trace_add_launches(k->trace, e.track, 1);
	k->events++;
	*status = spool_put(k->spool, 0, &e, 1, err);
	return true;
}

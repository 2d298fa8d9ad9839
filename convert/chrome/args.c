/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/chrome/plan.h"

#include "schemas/json_text.h"

#include <stdlib.h>
#include <string.h>

enum { PLANS_CEILING = 8 << 20, TEXT_CEILING = 64 << 20 };

static uint32_t sms_of_track(const struct trace *t, const struct track *k)
{
	uint32_t row = k->device == NO_ID ? 0 : trace_find_device(t, k->process, k->device);
	const struct attr *a = trace_find_attr(t, trace_get_device(t, row)->shape, "numSms");

	return a && a->type == ATTR_U64 && a->bits <= UINT32_MAX ? (uint32_t)a->bits : 0;
}

enum status chrome_args_new(struct chrome_args **out, const struct trace *trace, bool is_native,
			    bool all_args, struct error *err)
{
	struct chrome_args *a = calloc(1, sizeof(*a));

	*out = NULL;
	if (!a)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the texts of arguments");
	a->trace = trace;
	a->is_native = is_native;
	a->all_args = all_args;
	a->shapes = trace_count(trace, TRACE_SHAPES) + 1;
	a->tracks = trace_count(trace, TRACE_TRACKS) + 1;
	a->by_shape = calloc(a->shapes, sizeof(struct plan *));
	a->track_sms = calloc(a->tracks, sizeof(*a->track_sms));
	arena_init(&a->arena, PLANS_CEILING);
	buf_init(&a->text, TEXT_CEILING);
	if (!a->by_shape || !a->track_sms) {
		chrome_args_free(a);
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the texts of arguments");
	}
	for (uint32_t id = 1; is_native && id < a->tracks; id++)
		a->track_sms[id] = sms_of_track(trace, trace_get_track(trace, id));
	*out = a;
	return ST_OK;
}

void chrome_args_free(struct chrome_args *a)
{
	if (!a)
		return;
	arena_release(&a->arena);
	buf_release(&a->text);
	free(a->by_shape);
	free(a->track_sms);
	free(a);
}

static void forget_plans(struct chrome_args *a)
{
	arena_release(&a->arena);
	arena_init(&a->arena, PLANS_CEILING);
	memset(a->by_shape, 0, a->shapes * sizeof(struct plan *));
}

static struct plan *find_plan(struct chrome_args *a, const struct event *e)
{
	size_t at = e->shape < a->shapes ? e->shape : 0;
	struct plan *p = a->by_shape[at];

	while (p && (p->kind != e->kind || p->subkind != e->subkind))
		p = p->next;
	if (p)
		return p;
	p = chrome_plan_make(a, e);
	if (!p) {
		forget_plans(a);
		a->arena.ceiling = TEXT_CEILING; /* one that is too large for the usual room */
		p = chrome_plan_make(a, e);
		a->arena.ceiling = PLANS_CEILING > a->arena.used ? PLANS_CEILING : a->arena.used;
	}
	if (!p)
		return NULL;
	p->next = a->by_shape[at];
	a->by_shape[at] = p;
	return p;
}

/* What was not there is not written: an import kept a 0 that stood there in its shape. */
static bool is_absent(const struct chrome_args *a, const struct piece *p, const struct event *e,
		      const struct track *k)
{
	switch (p->slot) {
	case SLOT_JOIN:
		return e->correlation == 0;
	case SLOT_BYTES:
	case SLOT_SIGNED_BYTES:
		return e->bytes == 0 && !a->is_native;
	case SLOT_ADDRESS:
		return e->address == 0 && !a->is_native;
	case SLOT_VARY:
		return !e->vary;
	case SLOT_DEVICE:
		return k->device == NO_ID;
	case SLOT_CONTEXT:
		return k->context == NO_ID;
	case SLOT_STREAM:
		return k->home != HOME_STREAM;
	case SLOT_BANDWIDTH:
		return e->end_ns == e->begin_ns;
	case SLOT_PER_SM:
		return e->track >= a->tracks || !a->track_sms[e->track];
	case SLOT_POOL_TYPE:
		return k->context == NO_ID && !a->is_native;
	default:
		return false;
	}
}

/* What the slot holds of an event, for who writes it again; HOLE_NONE: the same for each. */
static enum chrome_hole hole_of(const struct piece *p)
{
	static const uint8_t holes[] = {
		[SLOT_JOIN] = HOLE_JOIN,
		[SLOT_BYTES] = HOLE_BYTES,
		[SLOT_ADDRESS] = HOLE_JOIN, /* the same word */
		[SLOT_VALUE] = HOLE_VALUE,
		[SLOT_BANDWIDTH] = HOLE_BANDWIDTH,
	};

	return p->slot < sizeof(holes) ? holes[p->slot] : HOLE_NONE;
}

static enum chrome_hole hole_of_vary(uint8_t type)
{
	switch (type) {
	case ATTR_U64:
		return HOLE_VARY_U64;
	case ATTR_I64:
		return HOLE_VARY_I64;
	case ATTR_F64:
		return HOLE_VARY_F64;
	default:
		return HOLE_NONE;
	}
}

static void put_slot(struct buf *b, const struct chrome_args *a, const struct piece *p,
		     const struct event *e, const struct track *k)
{
	switch (p->slot) {
	case SLOT_TEXT:
		break;
	case SLOT_VARY:
		json_put_value(b, a->trace, p->type, e->vary[p->vary]);
		break;
	case SLOT_JOIN:
		buf_put_u64_text(b, e->correlation);
		break;
	case SLOT_BYTES:
		buf_put_u64_text(b, e->bytes);
		break;
	case SLOT_DEVICE:
		buf_put_u64_text(b, k->device);
		break;
	case SLOT_CONTEXT:
		buf_put_u64_text(b, k->context);
		break;
	case SLOT_STREAM:
		buf_put_i64_text(b, (int64_t)k->id);
		break;
	case SLOT_SIGNED_BYTES:
		buf_put_i64_text(b, (int64_t)(e->kind == KIND_FREE ? 0 - e->bytes : e->bytes));
		break;
	case SLOT_ADDRESS:
		buf_put_u64_text(b, e->address);
		break;
	case SLOT_VALUE:
		json_put_f64(b, e->value);
		break;
	case SLOT_BANDWIDTH:
		json_put_f64(b, (double)e->bytes / (double)(e->end_ns - e->begin_ns));
		break;
	case SLOT_PER_SM:
		json_put_f64(b, p->amount / a->track_sms[e->track]);
		break;
	case SLOT_POOL_TYPE:
		buf_put_u64_text(b, k->context == NO_ID ? k->device != NO_ID : k->context);
		break;
	case SLOT_POOL_DEVICE:
		buf_put_i64_text(b, k->device == NO_ID ? -1 : (int64_t)k->device);
		break;
	}
}

static void note_hole(struct chrome_holes *h, size_t begin, const struct piece *p,
		      const struct event *e)
{
	if (p->slot == SLOT_VARY)
		chrome_holes_add(h, begin, hole_of_vary(p->type), p->vary);
	else if (p->slot == SLOT_SIGNED_BYTES)
		chrome_holes_add(h, begin,
				 e->kind == KIND_FREE ? HOLE_GIVEN_BYTES : HOLE_TAKEN_BYTES, 0);
	else if (hole_of(p) != HOLE_NONE)
		chrome_holes_add(h, begin, hole_of(p), 0);
}

const struct plan *chrome_args_plan(struct chrome_args *a, const struct event *e,
				    struct chrome_members *members)
{
	const struct plan *p = find_plan(a, e);

	if (p)
		*members = p->members;
	return p;
}

void chrome_args_put(const struct chrome_args *a, const struct plan *p, struct buf *b,
		     const struct event *e, struct chrome_holes *holes)
{
	const struct track *k = trace_get_track(a->trace, e->track);
	bool first = true;

	for (size_t i = 0; i < p->count; i++) {
		const struct piece *piece = &p->pieces[i];
		size_t begin;

		if (is_absent(a, piece, e, k))
			continue;
		buf_put_text(b, first ? ", \"args\": {" : ", ");
		buf_put(b, piece->text, piece->len);
		begin = b->len;
		put_slot(b, a, piece, e, k);
		note_hole(holes, begin, piece, e);
		first = false;
	}
	if (!first)
		buf_put_byte(b, '}');
}

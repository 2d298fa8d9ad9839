/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/chrome/args.h"

#include "schemas/base/json_text.h"
#include "schemas/model/records.h"

#include <stdlib.h>
#include <string.h>

enum {
	TEMPLATES_CEILING = 8 << 20,
	REST_CEILING = 1 << 20,
	NATIVE_PARTS = 8,
};

enum status chrome_args_init(struct chrome_args *a, const struct trace *t, bool is_native,
			     bool all_args, struct error *err)
{
	*a = (struct chrome_args){ .is_native = is_native, .all_args = all_args };
	a->tracks = trace_count(t, TRACE_TRACKS) + 1;
	a->track_sms = calloc(a->tracks, sizeof(*a->track_sms));
	TRY(templates_init(&a->templates, t, TEMPLATES_CEILING, err));
	if (!a->track_sms)
		return fail_memory(err);
	for (uint32_t id = 1; is_native && id < a->tracks; id++) {
		const struct track *k = trace_get_track(t, id);
		uint32_t row = k->device == NO_ID ? 0 : trace_find_device(t, k->process, k->device);
		const struct attr *sms =
			trace_find_attr(t, trace_get_device(t, row)->schema, "numSms");

		if (sms && sms->type == ATTR_U64 && sms->bits <= UINT32_MAX)
			a->track_sms[id] = (uint32_t)sms->bits;
	}
	return ST_OK;
}

void chrome_args_release(struct chrome_args *a)
{
	templates_release(&a->templates);
	free(a->track_sms);
	a->track_sms = NULL;
}

/* ---- making a template ---- */

struct draft {
	struct chrome_args *a;
	struct template *made;
	struct buf *text; /* the part at hand: that of a->templates */
	bool is_full;
};

static void put_key(struct draft *d, const char *key, size_t len)
{
	json_put_text(d->text, key, len);
	buf_put_text(d->text, ": ");
}

static void add(struct draft *d, struct placeholder at)
{
	d->is_full |= !template_add(&d->a->templates, d->made, at);
}

static void add_const(struct draft *d)
{
	add(d, (struct placeholder){ .source = ARG_CONST });
}

static void put_value(struct draft *d, const struct arg *arg)
{
	json_put_value(d->text, d->a->templates.trace, arg->at.type, arg->bits);
}

/* ".cat" and the like are members of the event itself. */
static void add_member(struct draft *d, const char *key, size_t len, const struct arg *arg,
		       struct buf *rest)
{
	struct chrome_members *m = &((struct chrome_template *)d->made)->members;
	const struct {
		const char *key;
		const char **into;
	} members[] = {
		{ ".cat", &m->cat }, { ".ph", &m->ph }, { ".pid", &m->pid }, { ".tid", &m->tid }
	};

	put_value(d, arg);
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		if (strlen(members[i].key) != len || memcmp(members[i].key, key, len) != 0)
			continue;
		*members[i].into =
			arena_text(&d->a->templates.arena, buf_text(d->text), d->text->len);
		d->is_full |= !*members[i].into;
		buf_clear(d->text);
		return;
	}
	buf_put_text(rest, ", ");
	json_put_text(rest, key + 1, len - 1);
	buf_put_text(rest, ": ");
	buf_put(rest, d->text->data, d->text->len);
	buf_clear(d->text);
}

static void add_arg(struct draft *d, size_t i, struct buf *rest)
{
	const struct arg_list *list = &d->a->templates.list;
	const struct arg *arg = &list->args[i], *items[ARG_PLACES];
	bool is_own_name = !arg->word && (d->a->all_args || !d->a->is_native);
	const char *word = is_own_name ? arg->name : arg->word;
	size_t len = is_own_name ? arg->name_len : arg->word_len, count;
	uint64_t sum;

	if (!word)
		return;
	if (arg->at.source != ARG_CONST) {
		put_key(d, word, len);
		add(d, arg->at);
	} else if (len && word[0] == '.') {
		add_member(d, word, len, arg, rest);
	} else if (arg->place >= 0) { /* `"grid": [1, 2, 3]` */
		count = arg_array(list, i, items);
		if (!count)
			return;
		put_key(d, word, len - 3);
		for (size_t n = 0; n < count; n++) {
			buf_put_text(d->text, n ? ", " : "[");
			put_value(d, items[n]);
		}
		buf_put_byte(d->text, ']');
		add_const(d);
	} else if (len && word[0] == '+') { /* `"shared memory": static + dynamic` */
		if (!arg_sum(list, i, &sum))
			return;
		put_key(d, word + 1, len - 1);
		buf_put_u64_text(d->text, sum);
		add_const(d);
	} else {
		put_key(d, word, len);
		put_value(d, arg);
		add_const(d);
	}
}

static bool has(const struct draft *d, const char *name)
{
	const struct arg_list *l = &d->a->templates.list;

	for (size_t i = 0; i < l->count; i++)
		if (l->args[i].name_id && strcmp(l->args[i].name, name) == 0)
			return true;
	return false;
}

/* The product of three whole numbers of the schema; 0: not all are known. */
static double product_of(const struct draft *d, const char *const fields[3])
{
	const struct arg_list *l = &d->a->templates.list;
	double product = 1;

	for (size_t n = 0; n < 3; n++) {
		double factor = 0;

		for (size_t i = 0; i < l->count; i++) {
			const struct arg *arg = &l->args[i];

			if (arg->at.source == ARG_CONST && arg->at.type <= ATTR_I64 &&
			    strcmp(arg->name, fields[n]) == 0)
				factor = (double)arg->bits;
		}
		product *= factor;
	}
	return product;
}

/* What Kineto adds to what CUPTI recorded, so that its readers find it. */
static void add_native(struct draft *d, const struct event *e)
{
	static const char *const grid[3] = { "grid_x", "grid_y", "grid_z" };
	static const char *const block[3] = { "block_x", "block_y", "block_z" };
	double blocks = product_of(d, grid), threads = product_of(d, block);
	const struct {
		const char *field, *word;
		double factor;
	} per_sm[] = { { "blocks_per_sm", "blocks per SM", blocks },
		       { "warps_per_sm", "warps per SM", blocks * threads / 32 } };
	const char *sync = sync_kind_word(e->subkind);

	for (size_t i = 0; e->kind == KIND_KERNEL && i < 2; i++) {
		if (per_sm[i].factor <= 0 || has(d, per_sm[i].field))
			continue;
		put_key(d, per_sm[i].word, strlen(per_sm[i].word));
		add(d, (struct placeholder){ .source = CHROME_PER_SM });
		d->made->parts[d->made->part_count - 1].factor = per_sm[i].factor;
	}
	if ((e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET) && !has(d, "bandwidth")) {
		put_key(d, "memory bandwidth (GB/s)", 23);
		add(d, (struct placeholder){ .source = ARG_BANDWIDTH, .type = ATTR_F64 });
	}
	if ((event_is_gpu_work(e) || e->kind == KIND_API) && !has(d, "external_id")) {
		put_key(d, "External id", 11); /* 0: no operator launched it */
		buf_put_byte(d->text, '0');
		add_const(d);
	}
	if (e->kind == KIND_SYNC && sync[0] && !has(d, "kind_text")) {
		put_key(d, "cuda_sync_kind", 14);
		json_put_text(d->text, sync, strlen(sync));
		add_const(d);
	}
	if (e->kind == KIND_COUNTER) {
		put_key(d, "value", 5);
		add(d, (struct placeholder){ .source = ARG_VALUE, .type = ATTR_F64 });
	}
}

static enum status make(void *self, const struct event *e, struct template **out, struct error *err)
{
	struct chrome_args *a = self;
	struct templates *t = &a->templates;
	struct draft d = { .a = a, .text = &t->text };
	struct chrome_members *members;
	struct buf rest;

	TRY(arg_list_make(&t->list, t->trace, e->kind, e->schema, !a->is_native, err));
	d.made = template_new(t, e, sizeof(struct chrome_template), t->list.count + NATIVE_PARTS);
	if (!d.made)
		return ST_OK;
	buf_init(&rest, REST_CEILING);
	for (size_t i = 0; i < t->list.count; i++)
		add_arg(&d, i, &rest);
	if (a->is_native)
		add_native(&d, e);
	members = &((struct chrome_template *)d.made)->members;
	members->rest = arena_text(&t->arena, buf_text(&rest), rest.len);
	if (!d.is_full && members->rest && rest.status == ST_OK && t->text.status == ST_OK)
		*out = d.made;
	buf_release(&rest);
	return ST_OK;
}

enum status chrome_args_find(struct chrome_args *a, const struct event *e,
			     const struct chrome_template **out, struct error *err)
{
	struct template *p = template_find(&a->templates, e);

	if (!p)
		TRY(template_make(&a->templates, e, make, a, &p, err));
	*out = (struct chrome_template *)p;
	return ST_OK;
}

/* ---- writing ---- */

void chrome_args_put(const struct chrome_args *a, const struct template *p, struct buf *b,
		     const struct event *e, struct chrome_notes *notes)
{
	const struct trace *t = a->templates.trace;
	const struct track *k = trace_get_track(t, e->track);
	bool first = true;

	for (size_t i = 0; i < p->part_count; i++) {
		const struct template_part *part = &p->parts[i];
		unsigned source = part->at.source;
		uint32_t sms = e->track < a->tracks ? a->track_sms[e->track] : 0;
		uint64_t bits = 0;
		size_t begin;

		if (source == CHROME_PER_SM
			    ? !sms
			    : source != ARG_CONST && !arg_bits(part->at, e, k, &bits))
			continue;
		/* An import kept a 0 that stood there in its schema. */
		if (!a->is_native && (((source == ARG_BYTES || source == ARG_SIGNED_BYTES ||
					source == ARG_ADDRESS) &&
				       !bits) ||
				      (source == ARG_ALLOCATOR_TYPE && k->context == NO_ID)))
			continue;
		buf_put_text(b, first ? ", \"args\": {" : ", ");
		buf_put(b, part->bytes, part->len);
		first = false;
		begin = b->len;
		if (source == CHROME_PER_SM)
			json_put_f64(b, part->factor / sms);
		else if (source != ARG_CONST)
			json_put_value(b, t, part->at.type, bits);
		chrome_note(notes, begin, part->at);
	}
	if (!first)
		buf_put_byte(b, '}');
}

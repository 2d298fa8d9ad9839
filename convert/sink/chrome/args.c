/* SPDX-License-Identifier: Apache-2.0 */
/* What Kineto writes between the braces of "args".  The text for one schema is made once. */
#include "convert/sink/chrome/internal.h"

#include "schemas/base/json_text.h"
#include "schemas/model/records.h"

#include <string.h>

static void put_key(struct templates *t, const char *key, size_t len)
{
	json_put_text(&t->text, key, len);
	buf_put_text(&t->text, ": ");
}

static void put_const(struct templates *t, const struct arg *arg)
{
	json_put_value(&t->text, t->trace, arg->at.type, arg->bits);
}

static const struct placeholder none = { .source = ARG_CONST };

static void add_arg(struct chrome_args *a, struct template *p, size_t i)
{
	struct templates *t = &a->templates;
	const struct arg *arg = &t->list.args[i], *items[ARG_PLACES];
	bool is_own_name = !arg->word && (a->all_args || t->is_import);
	const char *word = is_own_name ? arg->name : arg->word;
	size_t len = is_own_name ? arg->name_len : arg->word_len, count;
	uint64_t sum;

	if (!word || (len && word[0] == '.' && arg->at.source == ARG_CONST))
		return; /* a member of the event itself */
	if (arg->at.source != ARG_CONST) {
		put_key(t, word, len);
	} else if (arg->place >= 0) { /* `"grid": [1, 2, 3]` */
		count = arg_array(&t->list, i, items);
		if (!count)
			return;
		put_key(t, word, len - 3);
		for (size_t n = 0; n < count; n++) {
			buf_put_text(&t->text, n ? ", " : "[");
			put_const(t, items[n]);
		}
		buf_put_byte(&t->text, ']');
	} else if (len && word[0] == '+') { /* `"shared memory": static + dynamic` */
		if (!arg_sum(&t->list, i, &sum))
			return;
		put_key(t, word + 1, len - 1);
		buf_put_u64_text(&t->text, sum);
	} else {
		put_key(t, word, len);
		put_const(t, arg);
	}
	template_add(t, p, arg->at);
}

static bool has(const struct arg_list *l, const char *name)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->args[i].name_id && strcmp(l->args[i].name, name) == 0)
			return true;
	return false;
}

/* The product of the fields NAME_x, NAME_y and NAME_z of the schema; 0: not all are known. */
static double volume(const struct arg_list *l, const char *name)
{
	double product = 1;

	for (char axis = 'x'; axis <= 'z'; axis++) {
		double factor = 0;

		for (size_t i = 0; i < l->count; i++) {
			const struct arg *arg = &l->args[i];
			size_t len = strlen(name);

			if (arg->at.source == ARG_CONST && arg->at.type <= ATTR_I64 &&
			    arg->name_len == len + 2 && strncmp(arg->name, name, len) == 0 &&
			    arg->name[len] == '_' && arg->name[len + 1] == axis)
				factor = (double)arg->bits;
		}
		product *= factor;
	}
	return product;
}

/* What Kineto adds to what CUPTI recorded, so that its readers find it. */
static void add_native(struct templates *t, const struct event *e, struct template *p)
{
	double blocks = volume(&t->list, "grid"), threads = volume(&t->list, "block");
	const struct {
		const char *field, *word;
		double factor;
	} per_sm[] = { { "blocks_per_sm", "blocks per SM", blocks },
		       { "warps_per_sm", "warps per SM", blocks * threads / 32 } };
	const char *sync = sync_kind_word(e->subkind);

	for (size_t i = 0; e->kind == KIND_KERNEL && i < 2; i++) {
		if (per_sm[i].factor <= 0 || has(&t->list, per_sm[i].field))
			continue;
		put_key(t, per_sm[i].word, strlen(per_sm[i].word));
		template_add(t, p, (struct placeholder){ .source = CHROME_PER_SM });
		if (!t->is_full)
			p->parts[p->part_count - 1].factor = per_sm[i].factor;
	}
	if ((e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET) && !has(&t->list, "bandwidth")) {
		put_key(t, "memory bandwidth (GB/s)", 23);
		template_add(t, p,
			     (struct placeholder){ .source = ARG_BANDWIDTH, .type = ATTR_F64 });
	}
	if ((event_is_gpu_work(e) || e->kind == KIND_API) && !has(&t->list, "external_id")) {
		put_key(t, "External id", 11); /* 0: no operator launched it */
		buf_put_byte(&t->text, '0');
		template_add(t, p, none);
	}
	if (e->kind == KIND_SYNC && sync[0] && !has(&t->list, "kind_text")) {
		put_key(t, "cuda_sync_kind", 14);
		json_put_word(&t->text, sync);
		template_add(t, p, none);
	}
	if (e->kind == KIND_COUNTER) {
		put_key(t, "value", 5);
		template_add(t, p, (struct placeholder){ .source = ARG_VALUE, .type = ATTR_F64 });
	}
}

static enum status make(void *self, const struct event *e, struct template *p, struct error *err)
{
	struct chrome_args *a = self;

	for (size_t i = 0; i < a->templates.list.count; i++)
		add_arg(a, p, i);
	if (!a->templates.is_import)
		add_native(&a->templates, e, p);
	return ST_OK;
}

enum status chrome_args_init(struct chrome_args *a, const struct trace *t, bool is_import,
			     bool all_args, struct error *err)
{
	static const struct template_type type = {
		.size = sizeof(struct template), .ceiling = 8 << 20, .more_parts = 8, .make = make
	};

	a->all_args = all_args;
	TRY(templates_init(&a->templates, &type, a, t, err));
	a->templates.is_import = is_import;
	return ST_OK;
}

/* The number of multiprocessors of a track's device; 0: unknown. */
static uint32_t count_sms(const struct trace *t, const struct track *k)
{
	uint32_t row = k->device == NO_ID ? 0 : trace_find_device(t, k->process, k->device);
	const struct attr *sms = trace_find_attr(t, trace_get_device(t, row)->schema, "numSms");

	return sms && sms->type == ATTR_U64 && sms->bits <= UINT32_MAX ? (uint32_t)sms->bits : 0;
}

enum status chrome_args_put(struct chrome_args *a, struct buf *b, const struct event *e,
			    struct chrome_notes *notes, struct error *err)
{
	const struct trace *t = a->templates.trace;
	const struct track *k = trace_get_track(t, e->track);
	struct template *p = template_find(&a->templates, e);
	bool is_first = true;

	if (!p)
		TRY(template_make(&a->templates, e, &p, err));
	for (size_t i = 0; i < p->part_count; i++) {
		const struct template_part *part = &p->parts[i];
		unsigned source = part->at.source;
		uint32_t sms = source == CHROME_PER_SM ? count_sms(t, k) : 0;
		uint64_t bits = 0;
		size_t begin;

		if (source == CHROME_PER_SM
			    ? !sms
			    : source != ARG_CONST && !arg_bits(part->at, e, k, &bits))
			continue;
		/* An import kept a 0 that stood there in its schema. */
		if (a->templates.is_import &&
		    (((source == ARG_BYTES || source == ARG_SIGNED_BYTES ||
		       source == ARG_ADDRESS) &&
		      !bits) ||
		     (source == ARG_ALLOCATOR_TYPE && k->context == NO_ID)))
			continue;
		buf_put_text(b, is_first ? ", \"args\": {" : ", ");
		buf_put(b, part->bytes, part->len);
		is_first = false;
		begin = b->len;
		if (source == CHROME_PER_SM)
			json_put_f64(b, part->factor / sms);
		else if (source != ARG_CONST)
			json_put_value(b, t, part->at.type, bits);
		chrome_note(notes, begin, part->at);
	}
	if (!is_first)
		buf_put_byte(b, '}');
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Writes "args" of events as Kineto does. */
#include "convert/sink/chrome/internal.h"
#include "convert/stage/path_sums.h"
#include "schemas/base/json_text.h"
#include "schemas/model/records.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The event whose arguments are being written, and their destination. */
struct writing {
	const struct arg_list *list;
	const struct trace *trace;
	const struct event *event;
	const struct track *track;
	struct buf *buf;
	struct chrome_notes *notes;
	bool is_import, has_operators, any;
};

static void put_key(struct writing *w, const char *key, size_t len)
{
	buf_put_text(w->buf, w->any ? ", " : ", \"args\": {");
	w->any = true;
	json_put_text(w->buf, key, len);
	buf_put_text(w->buf, ": ");
}

/* Appends a member of the event, or an argument that differs from event to event, if the event has
 * it. */
static void put_value(struct writing *w, const char *key, size_t len, struct placeholder at)
{
	uint64_t bits = 0;
	size_t begin;

	if (!arg_bits(at, w->event, w->track, &bits))
		return;
	/* If the imported file had a 0 here, its schema contains it. */
	if (w->is_import && (((at.source == ARG_BYTES || at.source == ARG_SIGNED_BYTES ||
			       at.source == ARG_ADDRESS) &&
			      !bits) ||
			     (at.source == ARG_ALLOCATOR_TYPE && w->track->context == NO_ID)))
		return;
	put_key(w, key, len);
	begin = w->buf->len;
	json_put_value(w->buf, w->trace, at.type, bits);
	chrome_note(w->notes, begin, at);
}

static void put_arg(struct writing *w, size_t i, bool all_args)
{
	const struct arg *arg = &w->list->args[i], *items[ARG_PLACES];
	bool is_own_name = !arg->word && (all_args || w->is_import);
	const char *word = is_own_name ? arg->name : arg->word;
	size_t len = is_own_name ? arg->name_len : arg->word_len, count;
	uint64_t sum;

	if (!word)
		return;
	if (arg->at.source != ARG_CONST) {
		put_value(w, word, len, arg->at);
	} else if (len && word[0] == '.') {
		return;               /* a member of the JSON event, not an argument */
	} else if (arg->place >= 0) { /* `"grid": [1, 2, 3]` */
		count = arg_array(w->list, i, items);
		if (count)
			put_key(w, word, len - 3);
		for (size_t n = 0; n < count; n++) {
			buf_put_text(w->buf, n ? ", " : "[");
			json_put_value(w->buf, w->trace, items[n]->at.type, items[n]->bits);
		}
		buf_put_text(w->buf, count ? "]" : "");
	} else if (len && word[0] == '+') { /* `"shared memory": static + dynamic` */
		if (!arg_sum(w->list, i, &sum))
			return;
		put_key(w, word + 1, len - 1);
		buf_put_u64_text(w->buf, sum);
	} else {
		put_key(w, word, len);
		json_put_value(w->buf, w->trace, arg->at.type, arg->bits);
	}
}

static bool has(const struct arg_list *l, const char *name)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->args[i].name_id && strcmp(l->args[i].name, name) == 0)
			return true;
	return false;
}

/* Returns the product of the fields NAME_x, NAME_y and NAME_z of the schema, or 0 if one is
 * missing. */
static double volume(const struct writing *w, const char *name)
{
	double product = 1;
	char field[16];

	for (int axis = 'x'; axis <= 'z'; axis++) {
		snprintf(field, sizeof(field), "%s_%c", name, axis);
		product *= (double)trace_attr_number(w->trace, w->event->schema, field);
	}
	return product;
}

/* Appends the arguments that Kineto computes from CUPTI's records, because its readers expect them.
 */
static void put_native(struct writing *w)
{
	const struct event *e = w->event;
	const struct track *k = w->track;
	const char *sync = sync_kind_word(e->subkind);

	if (e->kind == KIND_KERNEL) {
		uint32_t row =
			k->device == NO_ID ? 0 : trace_find_device(w->trace, k->process, k->device);
		const struct attr *sms = trace_find_attr(
			w->trace, trace_get_device(w->trace, row)->schema, "numSms");
		double blocks = volume(w, "grid"), warps = blocks * volume(w, "block") / 32;
		bool is_known =
			sms && sms->type == ATTR_U64 && sms->bits && sms->bits <= UINT32_MAX;

		if (is_known && blocks > 0 && !has(w->list, "blocks_per_sm")) {
			put_key(w, "blocks per SM", 13);
			json_put_f64(w->buf, blocks / (double)sms->bits);
		}
		if (is_known && warps > 0 && !has(w->list, "warps_per_sm")) {
			put_key(w, "warps per SM", 12);
			json_put_f64(w->buf, warps / (double)sms->bits);
		}
	}
	if ((e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET) && !has(w->list, "bandwidth"))
		put_value(w, "memory bandwidth (GB/s)", 23,
			  (struct placeholder){ .source = ARG_BANDWIDTH, .type = ATTR_F64 });
	if (w->has_operators && chrome_collective(w->trace, e)) {
		put_value(w, "External id", 11,
			  (struct placeholder){ .source = ARG_CORRELATION, .type = ATTR_U64 });
	} else if ((event_is_gpu_work(e) || e->kind == KIND_API) && !has(w->list, "external_id")) {
		put_key(w, "External id", 11); /* 0: no operator launched it */
		buf_put_byte(w->buf, '0');
	}
	if (e->kind == KIND_SYNC && sync[0] && !has(w->list, "kind_text")) {
		put_key(w, "cuda_sync_kind", 14);
		json_put_word(w->buf, sync);
	}
	if (e->kind == KIND_COUNTER)
		put_value(w, "value", 5,
			  (struct placeholder){ .source = ARG_VALUE, .type = ATTR_F64 });
}

enum status chrome_put_args(struct chrome_args *a, struct buf *b, const struct event *e,
			    struct chrome_notes *notes, struct error *err)
{
	struct writing w = { .list = &a->list,
			     .trace = a->trace,
			     .event = e,
			     .track = trace_get_track(a->trace, e->track),
			     .buf = b,
			     .notes = notes,
			     .is_import = a->is_import,
			     .has_operators = a->has_operators };

	if (a->schema != e->schema || a->kind != e->kind)
		TRY(arg_list_make(&a->list, a->trace, e->kind, e->schema, a->is_import, err));
	a->schema = e->schema;
	a->kind = e->kind;
	for (size_t i = 0; i < a->list.count; i++)
		put_arg(&w, i, a->all_args);
	if (!a->is_import)
		put_native(&w);
	if (a->all_args && path_is_argument(a->trace, e)) {
		buf_clear(&a->path);
		path_put_text(a->trace, e->path, PATH_FOR_PEOPLE, &a->path);
		put_key(&w, PATH_KEY, strlen(PATH_KEY));
		json_put_text(b, buf_text(&a->path), a->path.len);
		notes->is_odd = true; /* a cached text is shared by all paths */
	}
	if (w.any)
		buf_put_byte(b, '}');
	return ST_OK;
}

/*
 * TensorBoard's PyTorch plugin recognizes communication only by PyTorch's operators:
 * nccl:all_reduce and four others, which are joined to kernels by their External id.  Tacho records
 * only the kernels, so an operator is written for each at the time of its launch, with the size
 * found in the ranges around the launch.
 */

const char *chrome_collective(const struct trace *t, const struct event *e)
{
	static const char *const words[][2] = {
		{ "AllReduce", "nccl:all_reduce" },
		{ "AllGather", "nccl:all_gather" },
		{ "ReduceScatter", "nccl:reduce_scatter" },
		{ "Broadcast", "nccl:broadcast" },
		{ "Reduce", "nccl:reduce" },
	};
	const char *name = trace_text(t, e->name, NULL);

	if (e->kind != KIND_KERNEL || !e->correlation || strncasecmp(name, "nccl", 4) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(name, words[i][0]))
			return words[i][1];
	return NULL;
}

void chrome_put_operator(struct buf *b, const struct chrome_file *f, const struct event *e,
			 const struct launch *from, struct collectives *collectives)
{
	const char *word = chrome_collective(f->trace, e);
	struct collective found;
	const struct track *k;

	if (!word || !from ||
	    strncmp(trace_text(f->trace, trace_owner(f->trace, from->path), NULL), "nccl:", 5) ==
		    0) /* the operator exists */
		return;
	collectives_find(collectives, e, from, &found);
	k = trace_get_track(f->trace, from->track);
	buf_putf(b,
		 ",\n{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": %lld, "
		 "\"tid\": %lld",
		 word, (long long)chrome_pid(f->trace, k), (long long)k->id);
	buf_put_text(b, ", \"ts\": ");
	chrome_put_time(b, f, from->begin_ns);
	buf_put_text(b, ", \"dur\": ");
	chrome_put_us(b, from->end_ns - from->begin_ns);
	buf_putf(b, ", \"args\": {\"External id\": %llu, ", (unsigned long long)e->correlation);
	/* The plugin multiplies dimensions by the element size.  It knows the size of bytes, but
	 * not of most other types. */
	if (found.bytes != UINT64_MAX)
		buf_putf(b, "\"Input Dims\": [[%llu]], \"Input type\": [\"unsigned char\"]}}",
			 (unsigned long long)found.bytes);
	else
		buf_put_text(b, "\"Input Dims\": [], \"Input type\": []}}");
}

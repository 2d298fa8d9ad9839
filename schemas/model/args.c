/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/model/args.h"

#include "schemas/base/buf.h"
#include "schemas/base/json_text.h"
#include "schemas/base/vec.h"
#include "schemas/model/records.h"

#include <stdlib.h>
#include <string.h>

void json_put_value(struct buf *b, const struct trace *t, uint8_t type, uint64_t bits)
{
	const char *text;
	double f64;
	size_t len;

	switch (type) {
	case ATTR_I64:
		buf_put_i64_text(b, (int64_t)bits);
		break;
	case ATTR_F64:
		memcpy(&f64, &bits, sizeof(f64));
		json_put_f64(b, f64);
		break;
	case ATTR_TEXT:
		text = trace_text(t, (uint32_t)bits, &len);
		json_put_text(b, text, len);
		break;
	case ATTR_JSON:
		text = trace_text(t, (uint32_t)bits, &len);
		buf_put(b, text, len);
		break;
	default:
		buf_put_u64_text(b, bits);
	}
}

const struct attr *event_arg(const struct trace *t, const struct event *e, uint32_t key,
			     uint64_t *bits)
{
	const struct arg_schema *s = trace_get_schema(t, e->schema);

	for (uint32_t i = 0; key && e->args && i < s->arg_count; i++) {
		if (s->args[i].key != key)
			continue;
		*bits = e->args[i];
		return &s->args[i];
	}
	return NULL;
}

/* ---- the list ---- */

void arg_list_release(struct arg_list *l)
{
	free(l->args);
	*l = (struct arg_list){ 0 };
}

static void set_word(struct arg *a, const struct field *f)
{
	a->is_field = f != NULL;
	a->word = f ? f->arg : a->name;
	a->word_len = !f ? a->name_len : f->arg ? strlen(f->arg) : 0;
}

/* Returns the source of a field that is a member of the event or its track, or ARG_CONST for other
 * fields. */
static enum arg_source member_source(const struct field *f, unsigned kind)
{
	static const struct {
		const char *name;
		uint8_t source;
	} tracks[] = { { "device", ARG_DEVICE },
		       { "context", ARG_CONTEXT },
		       { "stream", ARG_STREAM },
		       { "device_type", ARG_ALLOCATOR_TYPE } };
	bool is_memory = kind == KIND_ALLOC || kind == KIND_FREE;

	if (f->place == PLACE_CORRELATION)
		return is_memory ? ARG_ADDRESS : ARG_CORRELATION;
	if (f->place == PLACE_VALUE && (kind == KIND_MEMCPY || kind == KIND_MEMSET))
		return ARG_BYTES;
	if (f->place == PLACE_VALUE && is_memory)
		return ARG_SIGNED_BYTES;
	for (size_t i = 0; f->place == PLACE_TRACK && i < sizeof(tracks) / sizeof(*tracks); i++)
		if (strcmp(f->name, tracks[i].name) == 0)
			return is_memory && tracks[i].source == ARG_DEVICE ? ARG_ALLOCATOR_DEVICE
									   : tracks[i].source;
	return ARG_CONST;
}

/* Kineto writes the device before the address and size of memory, and other members in the order of
 * the record. */
static void add_members(struct arg_list *l, const struct record *r, unsigned kind)
{
	bool is_memory = kind == KIND_ALLOC || kind == KIND_FREE;

	for (int pass = 0; pass <= is_memory; pass++) {
		for (size_t i = 0; i < r->field_count; i++) {
			const struct field *f = &r->fields[i];
			enum arg_source source = f->arg ? member_source(f, kind) : ARG_CONST;
			bool is_signed = source == ARG_STREAM || source == ARG_SIGNED_BYTES ||
					 source == ARG_ALLOCATOR_DEVICE;
			struct arg *a = &l->args[l->count];

			if (source == ARG_CONST ||
			    (is_memory && (f->place == PLACE_TRACK) != (pass == 0)))
				continue;
			*a = (struct arg){ .name = f->name, .place = -1 };
			a->name_len = strlen(a->name);
			a->at.source = (uint8_t)source;
			a->at.type = is_signed ? ATTR_I64 : ATTR_U64;
			set_word(a, f);
			l->count++;
		}
	}
}

enum status arg_list_make(struct arg_list *l, const struct trace *t, unsigned kind, uint32_t schema,
			  bool is_import, struct error *err)
{
	const struct arg_schema *s = trace_get_schema(t, schema);
	const struct record *r = record_of_kind(kind);
	size_t count = (size_t)s->arg_count + s->const_count;

	l->count = 0;
	TRY(vec_reserve(&l->args, &l->cap, count + (r ? r->field_count : 0), err));
	for (size_t i = 0; i < count; i++) {
		bool is_const = i >= s->arg_count;
		size_t index = is_const ? i - s->arg_count : i;
		const struct attr *attr = is_const ? &s->consts[index] : &s->args[index];

		if (i == s->arg_count && r)
			add_members(l, r, kind);
		struct arg *a = &l->args[l->count++];
		*a = (struct arg){ .name_id = attr->key, .place = -1, .bits = attr->bits };
		a->name = trace_text(t, attr->key, &a->name_len);
		a->at = (struct placeholder){ is_const ? ARG_CONST : ARG_EVENT, attr->type,
					      (uint16_t)index };
		if (is_import)
			set_word(a, r ? record_field(r, a->name, a->name_len) : NULL);
		else
			set_word(a, kind_field(kind, a->name, a->name_len));
		if (is_const && a->word && a->word_len > 3 && a->word[a->word_len - 1] == ']' &&
		    a->word[a->word_len - 3] == '[')
			a->place = a->word[a->word_len - 2] - '0';
	}
	if (!s->const_count && r)
		add_members(l, r, kind);
	return ST_OK;
}

size_t arg_array(const struct arg_list *l, size_t first, const struct arg *items[ARG_PLACES])
{
	const struct arg *begin = &l->args[first];
	size_t count = 0;

	for (int place = 0; place < ARG_PLACES; place++) {
		for (size_t i = 0; i < l->count; i++) {
			const struct arg *a = &l->args[i];

			if (a->place != place || a->word_len != begin->word_len ||
			    memcmp(a->word, begin->word, a->word_len - 3) != 0)
				continue;
			items[count++] = a;
			break;
		}
		if (!count || items[0] != begin)
			return 0;
	}
	return count;
}

bool arg_sum(const struct arg_list *l, size_t first, uint64_t *sum)
{
	const struct arg *begin = &l->args[first];

	*sum = 0;
	for (size_t i = 0; i < l->count; i++) {
		const struct arg *a = &l->args[i];

		if (a->at.source != ARG_CONST || !a->word || a->word_len != begin->word_len ||
		    memcmp(a->word, begin->word, a->word_len) != 0)
			continue;
		if (i < first)
			return false;
		*sum += a->bits;
	}
	return true;
}

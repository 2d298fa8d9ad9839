/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/xplane/import.h"

#include "schemas/records.h"

#include <stdio.h>
#include <stdlib.h>

enum { ATTRS_MOST = 256, TOKEN_BYTES = 32 };

/* Numbers that repeat from event to event; others vary. */
static const char *const repeating[] = {
	"device_id", "context_id", "program_id", "_a", "_pt", "_ct", "is_eager", "data_type",
	"device_ordinal", "index_on_host", "cuda_graph_id", "bytes_reserved", "cuda_graph_exec_id",
	"theoretical_occupancy_pct", "occupancy_min_grid_size", "occupancy_suggested_block_size",
	"flops", "model_flops", "bytes_accessed", "symbol_id", "process_id",
};

static bool repeats(const char *key)
{
	for (size_t i = 0; i < sizeof(repeating) / sizeof(repeating[0]); i++)
		if (strcmp(key, repeating[i]) == 0)
			return true;
	return false;
}

static const struct attr *find_attr(const struct buf *list, uint32_t key)
{
	const struct attr *attrs = (const struct attr *)(const void *)list->data;

	for (size_t i = 0; i < list->len / sizeof(*attrs); i++)
		if (attrs[i].key == key)
			return &attrs[i];
	return NULL;
}

static bool same_value(const struct attr *a, const struct attr *b)
{
	return a->bits == b->bits &&
	       (a->type == b->type || (a->type <= ATTR_I64 && b->type <= ATTR_I64));
}

static enum status put_attr(struct xplane_import *x, const struct attr *a, bool varies,
			    struct error *err)
{
	struct buf *list = varies ? &x->vary : &x->fixed;
	const struct attr *fixed = find_attr(&x->fixed, a->key);

	if (x->fixed.len + x->vary.len >= ATTRS_MOST * sizeof(*a) || fixed ||
	    find_attr(&x->vary, a->key)) { /* the first of a name counts */
		x->names.damaged += !fixed || !same_value(fixed, a);
		return ST_OK;
	}
	buf_put(list, a, sizeof(*a));
	if (varies)
		buf_put_u64(&x->words, a->bits);
	TRY(buf_status(list, err));
	return buf_status(&x->words, err);
}

enum status xplane_attr(struct xplane_import *x, const char *key, uint8_t type, uint64_t bits,
			bool varies, struct error *err)
{
	struct attr a = { .type = type, .bits = bits };

	a.key = trace_name(x->trace, key, strlen(key), err);
	return a.key ? put_attr(x, &a, varies, err) : err->status;
}

enum status xplane_attr_value(struct xplane_import *x, const struct xplane_value *v,
			      struct error *err)
{
	struct attr a = { .key = v->key, .type = v->type, .bits = v->bits };
	bool varies = v->type != ATTR_TEXT && !v->is_constant &&
		      !repeats(trace_text(x->trace, v->key, NULL));

	return put_attr(x, &a, varies, err);
}

enum status xplane_attrs_shape(struct xplane_import *x, uint32_t *shape, struct error *err)
{
	struct shape s = {
		.fixed = (const struct attr *)(const void *)x->fixed.data,
		.vary = (const struct attr *)(const void *)x->vary.data,
		.fixed_count = (uint32_t)(x->fixed.len / sizeof(struct attr)),
		.vary_count = (uint32_t)(x->vary.len / sizeof(struct attr)),
	};

	*shape = 0;
	if (!s.fixed_count && !s.vary_count)
		return ST_OK;
	*shape = trace_shape(x->trace, &s, err);
	return *shape ? ST_OK : err->status;
}

/* ---- details: tokens of one text ---- */

/* By CUPTI's number of a kind of memory. */
static const char *const memory_words[] = {
	"unknown", "pageable", "pinned", "device", "array", "managed", "device_static",
	"managed_static",
};

static unsigned memory_kind(const char *word)
{
	unsigned i;

	for (i = 0; i < sizeof(memory_words) / sizeof(memory_words[0]); i++)
		if (strcmp(word, memory_words[i]) == 0)
			return i;
	return 0;
}

enum detail_form { AS_NUMBER, AS_TRIPLE, AS_REAL, AS_BYTES, AS_MEMORY };
static const struct detail {
	const char *word;
	uint8_t kind, form;
	const char *field; /* of records.def, or a name of our own */
} details[] = {
	{ "regs", KIND_KERNEL, AS_NUMBER, "registers" },
	{ "static_shared", KIND_KERNEL, AS_NUMBER, "static_shared" },
	{ "dynamic_shared", KIND_KERNEL, AS_NUMBER, "dynamic_shared" },
	{ "grid", KIND_KERNEL, AS_TRIPLE, "grid_" },
	{ "block", KIND_KERNEL, AS_TRIPLE, "block_" },
	{ "occ_pct", KIND_KERNEL, AS_REAL, "occ_pct" },
	{ "private_mem", KIND_KERNEL, AS_NUMBER, "private_mem" },
	{ "group_mem", KIND_KERNEL, AS_NUMBER, "group_mem" },
	{ "num_bytes", KIND_MEMCPY, AS_BYTES, NULL },
	{ "size", KIND_MEMCPY, AS_BYTES, NULL },
	{ "kind_src", KIND_MEMCPY, AS_MEMORY, "src_kind" },
	{ "kind_dst", KIND_MEMCPY, AS_MEMORY, "dst_kind" },
	{ "async", KIND_MEMCPY, AS_NUMBER, "async" },
	{ "dest", KIND_MEMCPY, AS_NUMBER, "dest" },
	{ "num_bytes", KIND_MEMSET, AS_BYTES, NULL },
	{ "kind", KIND_MEMSET, AS_MEMORY, "memory_kind" },
	{ "async", KIND_MEMSET, AS_NUMBER, "async" },
};

static const struct detail *find_detail(unsigned kind, const char *word)
{
	for (size_t i = 0; i < sizeof(details) / sizeof(details[0]); i++)
		if (details[i].kind == kind && strcmp(details[i].word, word) == 0)
			return &details[i];
	return NULL;
}

static enum status put_number(struct xplane_import *x, unsigned kind, const char *key,
			      uint64_t number, struct error *err)
{
	const struct field *f = kind_field(kind, key, strlen(key));
	struct attr a = { .type = ATTR_U64, .unit = f ? f->unit : UNIT_NONE, .bits = number };

	a.key = trace_name(x->trace, key, strlen(key), err);
	return a.key ? put_attr(x, &a, false, err) : err->status;
}

static enum status put_triple(struct xplane_import *x, const struct detail *d, const char *text,
			      struct error *err)
{
	char key[TOKEN_BYTES], *end;

	for (int i = 0; i < 3; i++) {
		unsigned long n = strtoul(text, &end, 10);

		snprintf(key, sizeof(key), "%s%c", d->field, "xyz"[i]);
		TRY(put_number(x, d->kind, key, end == text ? 1 : n, err));
		text = *end == ',' ? end + 1 : end;
	}
	return ST_OK;
}

static enum status put_detail(struct xplane_import *x, const struct detail *d, const char *text,
			      struct event *e, struct error *err)
{
	uint64_t bits;
	double real;

	switch ((enum detail_form)d->form) {
	case AS_NUMBER:
		return put_number(x, d->kind, d->field, strtoull(text, NULL, 10), err);
	case AS_MEMORY:
		return put_number(x, d->kind, d->field, memory_kind(text), err);
	case AS_BYTES:
		e->bytes = strtoull(text, NULL, 10);
		return ST_OK;
	case AS_TRIPLE:
		return put_triple(x, d, text, err);
	case AS_REAL:
		break;
	}
	real = strtod(text, NULL);
	memcpy(&bits, &real, sizeof(bits));
	return xplane_attr(x, d->field, ATTR_F64, bits, false, err);
}

/* "key:value", of any length: a long one is no detail that is known. */
static enum status take_token(struct xplane_import *x, const char *token, size_t len,
			      struct event *e, bool *known, struct error *err)
{
	const struct detail *d;
	char word[TOKEN_BYTES * 2], *value;

	*known = false;
	if (len >= sizeof(word))
		return ST_OK;
	memcpy(word, token, len);
	word[len] = '\0';
	value = strchr(word, ':');
	if (!value)
		return ST_OK;
	*value++ = '\0';
	d = find_detail(e->kind, word);
	*known = d != NULL;
	return d ? put_detail(x, d, value, e, err) : ST_OK;
}

enum status xplane_attr_details(struct xplane_import *x, const struct xplane_value *v,
				struct event *e, bool *taken, struct error *err)
{
	size_t len, at = 0, end;
	const char *text = trace_text(x->trace, (uint32_t)v->bits, &len);
	bool known, all = true;

	*taken = false;
	if (v->type != ATTR_TEXT)
		return ST_OK;
	for (; at < len; at = end + 1) {
		for (end = at; end < len && text[end] != ' ' && text[end] != '\n'; end++)
			;
		if (end == at)
			continue;
		TRY(take_token(x, text + at, end - at, e, &known, err));
		all = all && known;
	}
	*taken = all; /* what is not known whole is kept as it is, too */
	return ST_OK;
}

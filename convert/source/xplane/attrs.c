/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/xplane/internal.h"

#include "schemas/model/records.h"

#include <stdio.h>
#include <stdlib.h>

enum { ATTRS_MOST = 256, TOKEN_BYTES = 32, ATTR_KEY_BYTES = 128 };

/* Keys whose numbers repeat from event to event; other numbers are argument values. */
static const char *const repeating[] = { "device_id",
					 "context_id",
					 "program_id",
					 "_a",
					 "_pt",
					 "_ct",
					 "is_eager",
					 "data_type",
					 "device_ordinal",
					 "index_on_host",
					 "cuda_graph_id",
					 "bytes_reserved",
					 "cuda_graph_exec_id",
					 "theoretical_occupancy_pct",
					 "occupancy_min_grid_size",
					 "occupancy_suggested_block_size",
					 "flops",
					 "model_flops",
					 "bytes_accessed",
					 "symbol_id",
					 "process_id" };

static const struct attr *find_attr(const struct buf *list, uint32_t key)
{
	const struct attr *attrs = (const struct attr *)(const void *)list->data;

	for (size_t i = 0; i < list->len / sizeof(*attrs); i++)
		if (attrs[i].key == key)
			return &attrs[i];
	return NULL;
}

/*
 * Adds an attribute.  A stat may be repeated, as JAX's `_src` is in each of its events: readers use
 * the first one.  A second one with another value is kept under a key of its own.
 */
static enum status put_attr(struct xplane_import *x, const struct attr *a, bool is_arg,
			    struct error *err)
{
	const struct attr *before = find_attr(&x->to.consts, a->key);
	struct attr again = *a;
	char key[ATTR_KEY_BYTES];

	before = before ? before : find_attr(&x->to.args, a->key);
	if (before && before->bits == a->bits &&
	    (before->type == a->type || (before->type <= ATTR_I64 && a->type <= ATTR_I64)))
		return ST_OK;
	if (before) {
		snprintf(key, sizeof(key), "%.*s.2", ATTR_KEY_BYTES - 3,
			 trace_text(x->to.trace, a->key, NULL));
		TRY(import_name(&x->to, key, strlen(key), &again.key, err));
		if (find_attr(&x->to.consts, again.key) || find_attr(&x->to.args, again.key))
			return ST_OK;
	}
	if (x->to.consts.len + x->to.args.len >= ATTRS_MOST * sizeof(*a))
		x->damaged++;
	else
		import_attr(&x->to, &again, is_arg);
	return ST_OK;
}

enum status xplane_attr(struct xplane_import *x, const char *key, uint8_t type, uint64_t bits,
			bool is_arg, struct error *err)
{
	struct attr a = { .type = type, .bits = bits };

	TRY(import_name(&x->to, key, strlen(key), &a.key, err));
	return put_attr(x, &a, is_arg, err);
}

enum status xplane_attr_value(struct xplane_import *x, const struct xplane_value *v,
			      struct error *err)
{
	struct attr a = { .key = v->key, .type = v->type, .bits = v->bits };
	bool is_arg = v->type != ATTR_TEXT && !v->is_constant;

	for (size_t i = 0; is_arg && i < sizeof(repeating) / sizeof(repeating[0]); i++)
		is_arg = strcmp(trace_text(x->to.trace, v->key, NULL), repeating[i]) != 0;
	return put_attr(x, &a, is_arg, err);
}

/* ---- details: tokens of one text ---- */

enum token_form { AS_NUMBER, AS_TRIPLE, AS_REAL, AS_BYTES, AS_MEMORY };
static const struct token {
	const char *word;
	uint8_t kind, form;
	const char *field; /* key in records.def, or a name of our own */
} tokens[] = {
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

static enum status put_number(struct xplane_import *x, unsigned kind, const char *key,
			      uint64_t number, struct error *err)
{
	const struct field *f = kind_field(kind, key, strlen(key));
	struct attr a = { .type = ATTR_U64, .unit = f ? f->unit : UNIT_NONE, .bits = number };

	TRY(import_name(&x->to, key, strlen(key), &a.key, err));
	return put_attr(x, &a, false, err);
}

static enum status put_token(struct xplane_import *x, const struct token *t, const char *text,
			     struct event *e, struct error *err)
{
	char key[TOKEN_BYTES], *end;
	uint64_t bits;
	double real;

	switch ((enum token_form)t->form) {
	case AS_NUMBER:
		return put_number(x, t->kind, t->field, strtoull(text, NULL, 10), err);
	case AS_MEMORY:
		return put_number(x, t->kind, t->field, memory_kind_of_xprof(text), err);
	case AS_BYTES:
		e->bytes = strtoull(text, NULL, 10);
		return ST_OK;
	case AS_TRIPLE:
		for (int i = 0; i < 3; i++) {
			unsigned long n = strtoul(text, &end, 10);

			snprintf(key, sizeof(key), "%s%c", t->field, "xyz"[i]);
			TRY(put_number(x, t->kind, key, end == text ? 1 : n, err));
			text = *end == ',' ? end + 1 : end;
		}
		return ST_OK;
	case AS_REAL:
		break;
	}
	real = strtod(text, NULL);
	memcpy(&bits, &real, sizeof(bits));
	return xplane_attr(x, t->field, ATTR_F64, bits, false, err);
}

/* Reads "key:value"; *is_token is false if the event's kind has no such key. */
static enum status take_token(struct xplane_import *x, const char *token, size_t len,
			      struct event *e, bool *is_token, struct error *err)
{
	char word[TOKEN_BYTES * 2], *value;

	*is_token = false;
	if (len >= sizeof(word))
		return ST_OK;
	memcpy(word, token, len);
	word[len] = '\0';
	value = strchr(word, ':');
	if (!value)
		return ST_OK;
	*value++ = '\0';
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
		if (tokens[i].kind == e->kind && strcmp(tokens[i].word, word) == 0) {
			*is_token = true;
			return put_token(x, &tokens[i], value, e, err);
		}
	return ST_OK;
}

enum status xplane_attr_details(struct xplane_import *x, const struct xplane_value *v,
				struct event *e, bool *taken, struct error *err)
{
	size_t len, at = 0, end;
	const char *text = trace_text(x->to.trace, (uint32_t)v->bits, &len);
	bool is_token, all = true;

	*taken = false;
	if (v->type != ATTR_TEXT)
		return ST_OK;
	for (; at < len; at = end + 1) {
		for (end = at; end < len && text[end] != ' ' && text[end] != '\n'; end++)
			;
		if (end == at)
			continue;
		TRY(take_token(x, text + at, end - at, e, &is_token, err));
		all = all && is_token;
	}
	*taken = all; /* otherwise the caller keeps the text too */
	return ST_OK;
}

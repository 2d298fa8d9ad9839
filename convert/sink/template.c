/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/template.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_CEILING = 64 << 20 };

enum status templates_init(struct templates *t, const struct template_type *type, void *self,
			   const struct trace *trace, struct error *err)
{
	*t = (struct templates){ .type = type, .self = self, .trace = trace };
	t->schemas = (size_t)trace_count(trace, TRACE_SCHEMAS) + 1;
	t->by_schema = calloc(t->schemas, sizeof(*t->by_schema));
	arena_init(&t->arena, type->ceiling);
	buf_init(&t->text, TEXT_CEILING);
	return t->by_schema ? ST_OK : fail_memory(err);
}

void templates_release(struct templates *t)
{
	arena_release(&t->arena);
	buf_release(&t->text);
	arg_list_release(&t->list);
	free(t->by_schema);
	*t = (struct templates){ 0 };
}

/* Makes a template.  *out stays NULL if the arena is full. */
static enum status try_make(struct templates *t, const struct event *e, struct template **out,
			    struct error *err)
{
	struct template *p = arena_take(&t->arena, t->type->size, 0);

	t->list.count = 0;
	if (!t->is_lean || e->flags & EVENT_STANDS_FOR)
		TRY(arg_list_make(&t->list, t->trace, e->kind, e->schema, false, err));
	if (!p)
		return ST_OK;
	p->kind = e->kind;
	p->subkind = e->subkind;
	p->part_cap = (uint32_t)(t->list.count + t->type->more_parts);
	p->parts = arena_take(&t->arena, p->part_cap * sizeof(*p->parts), 0);
	buf_clear(&t->text);
	t->is_full = !p->parts;
	if (p->parts)
		TRY(t->type->make(t->self, e, p, err));
	if (!t->is_full && t->text.status == ST_OK)
		*out = p;
	return ST_OK;
}

enum status template_make(struct templates *t, const struct event *e, struct template **out,
			  struct error *err)
{
	struct template **first = &t->by_schema[e->schema < t->schemas ? e->schema : 0];

	*out = NULL;
	TRY(try_make(t, e, out, err));
	if (!*out) {
		arena_release(&t->arena);
		arena_init(&t->arena, TEXT_CEILING); /* one may exceed the usual ceiling */
		memset(t->by_schema, 0, t->schemas * sizeof(*t->by_schema));
		TRY(try_make(t, e, out, err));
		t->arena.ceiling =
			t->type->ceiling > t->arena.used ? t->type->ceiling : t->arena.used;
	}
	if (!*out)
		return fail(err, ST_CEILING, NOWHERE,
			    "the arguments of one event exceed the memory limit");
	(*out)->next = *first;
	*first = *out;
	return ST_OK;
}

void template_add(struct templates *t, struct template *p, struct placeholder at)
{
	size_t len = t->text.len;
	uint8_t *bytes = arena_take(&t->arena, len + TEMPLATE_SLACK, 1);

	t->is_full |= !bytes || t->text.status != ST_OK || p->part_count == p->part_cap;
	if (!t->is_full) {
		memcpy(bytes, buf_text(&t->text), len);
		p->parts[p->part_count++] =
			(struct template_part){ .bytes = bytes, .len = (uint32_t)len, .at = at };
	}
	buf_clear(&t->text);
}

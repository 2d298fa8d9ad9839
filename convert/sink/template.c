/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/template.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_CEILING = 64 << 20 };

enum status templates_init(struct templates *t, const struct trace *trace, size_t ceiling,
			   struct error *err)
{
	*t = (struct templates){ .trace = trace, .ceiling = ceiling };
	t->schemas = (size_t)trace_count(trace, TRACE_SCHEMAS) + 1;
	t->by_schema = calloc(t->schemas, sizeof(*t->by_schema));
	arena_init(&t->arena, ceiling);
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

enum status template_make(struct templates *t, const struct event *e, template_maker make,
			  void *self, struct template **out, struct error *err)
{
	struct template **first = &t->by_schema[e->schema < t->schemas ? e->schema : 0];

	*out = NULL;
	TRY(make(self, e, out, err));
	if (!*out) {
		arena_release(&t->arena);
		arena_init(&t->arena, TEXT_CEILING); /* one may be larger than the usual ceiling */
		memset(t->by_schema, 0, t->schemas * sizeof(*t->by_schema));
		TRY(make(self, e, out, err));
		t->arena.ceiling = t->ceiling > t->arena.used ? t->ceiling : t->arena.used;
	}
	if (!*out)
		return fail(err, ST_CEILING, NOWHERE,
			    "one event's arguments need more memory than allowed");
	(*out)->next = *first;
	*first = *out;
	return ST_OK;
}

struct template *template_new(struct templates *t, const struct event *e, size_t size, size_t parts)
{
	struct template *p = arena_take(&t->arena, size, 0);

	if (!p)
		return NULL;
	memset(p, 0, size);
	p->kind = e->kind;
	p->subkind = e->subkind;
	p->part_cap = (uint32_t)parts;
	p->parts = arena_take(&t->arena, parts * sizeof(*p->parts), 0);
	buf_clear(&t->text);
	return p->parts ? p : NULL;
}

bool template_add(struct templates *t, struct template *p, struct placeholder at)
{
	size_t len = t->text.len;
	uint8_t *bytes = arena_take(&t->arena, len + TEMPLATE_SLACK, 1);

	if (!bytes || t->text.status != ST_OK || p->part_count == p->part_cap)
		return false;
	memcpy(bytes, buf_text(&t->text), len);
	memset(bytes + len, 0, TEMPLATE_SLACK);
	p->parts[p->part_count++] =
		(struct template_part){ .bytes = bytes, .len = (uint32_t)len, .at = at };
	buf_clear(&t->text);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - how events of one kind, subkind and argument schema are written: constant bytes with
 * placeholders between them.
 *
 * Each format has its own bytes and its own encoding of values; what it makes once is kept here.
 * Memory is bounded: when the arena is full all templates are dropped, to be made again as needed.
 */
#ifndef CONVERT_SINK_TEMPLATE_H
#define CONVERT_SINK_TEMPLATE_H

#include "schemas/base/arena.h"
#include "schemas/base/buf.h"
#include "schemas/model/args.h"

/* The key of one argument, encoded, and the placeholder for its value behind it. */
struct template_part {
	const uint8_t *bytes;
	uint32_t len;
	struct placeholder at; /* ARG_CONST: there is none, the bytes hold the value too */
	double factor;         /* for placeholders of the format's own */
};
enum { TEMPLATE_SLACK = 16 }; /* bytes behind those of a part that may be read */

/* The first member of each format's own structure. */
struct template
{
	struct template *next; /* of the same schema */
	uint8_t kind, subkind;
	uint32_t part_count, part_cap;
	struct template_part *parts;
};

struct templates {
	const struct trace *trace; /* borrowed */
	size_t ceiling;
	struct arena arena;
	struct template **by_schema;
	size_t schemas;
	struct buf text;      /* scratch: the bytes of the part at hand */
	struct arg_list list; /* scratch: the arguments of the template at hand */
};

enum status templates_init(struct templates *t, const struct trace *trace, size_t ceiling,
			   struct error *err);
void templates_release(struct templates *t); /* accepts a zeroed one */

/* Makes a template in the arena; *out stays NULL when the arena is full. */
typedef enum status (*template_maker)(void *self, const struct event *e, struct template **out,
				      struct error *err);
/* Makes and keeps a template; ST_CEILING when even an empty arena has no place for it. */
enum status template_make(struct templates *t, const struct event *e, template_maker make,
			  void *self, struct template **out, struct error *err);

/* The template for an event, which stays until the next is made; NULL: it is to be made. */
static inline struct template *template_find(const struct templates *t, const struct event *e)
{
	struct template *p = t->by_schema[e->schema < t->schemas ? e->schema : 0];

	while (p && (p->kind != e->kind || p->subkind != e->subkind))
		p = p->next;
	return p;
}

/* For makers: a zeroed template of `size` bytes with place for so many parts; NULL: full. */
struct template *template_new(struct templates *t, const struct event *e, size_t size,
			      size_t parts);
/* Takes the bytes out of t->text into the next part; false: the arena is full. */
bool template_add(struct templates *t, struct template *p, struct placeholder at);

#endif

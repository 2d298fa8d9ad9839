/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - caches how events of one kind, subkind and argument schema are written, as constant
 * bytes with placeholders between them.
 *
 * Each format has its own bytes and its own encoding of values.  Memory is bounded: when the arena
 * is full, all templates are dropped and made again as needed.
 */
#pragma once

#include "schemas/base/arena.h"
#include "schemas/base/buf.h"
#include "schemas/model/args.h"

/* The encoded key of one argument, and the placeholder for the value after it. */
struct template_part {
	const uint8_t *bytes;
	uint32_t len;
	struct placeholder at; /* ARG_CONST: no placeholder, because the bytes include the value */
};
enum { TEMPLATE_SLACK = 16 }; /* readable bytes after those of a part */

/* The first member of each format's own structure. */
struct template
{
	struct template *next; /* next template of the same schema */
	uint8_t kind, subkind;
	uint32_t part_count, part_cap;
	struct template_part *parts;
};

struct template_type {
	size_t size;       /* size of the format's own structure */
	size_t ceiling;    /* memory limit of all templates in bytes */
	size_t more_parts; /* parts in addition to one per argument */
	/* Fills a zeroed template from t->list, which has the arguments of the event. */
	enum status (*make)(void *self, const struct event *e, struct template *p,
			    struct error *err);
};
struct templates {
	const struct template_type *type;
	void *self;                /* passed to type->make */
	const struct trace *trace; /* borrowed */
	bool is_lean;              /* only events that stand for others have arguments */
	struct arena arena;
	struct template **by_schema;
	size_t schemas;
	/* The next members belong to the template that is being made. */
	struct arg_list list;
	struct buf text; /* the bytes of the next part */
	bool is_full;    /* the template does not fit into the arena */
};

enum status templates_init(struct templates *t, const struct template_type *type, void *self,
			   const struct trace *trace, struct error *err);
void templates_release(struct templates *t); /* accepts a zeroed one */

/* Makes and caches a template for events such as `e`.  Returns ST_CEILING if it does not even fit
 * into an empty arena. */
enum status template_make(struct templates *t, const struct event *e, struct template **out,
			  struct error *err);

/* Returns the template for an event, or NULL if there is none yet.  It is valid until the next
 * template is made. */
static inline struct template *template_find(const struct templates *t, const struct event *e)
{
	struct template *p = t->by_schema[e->schema < t->schemas ? e->schema : 0];

	while (p && (p->kind != e->kind || p->subkind != e->subkind))
		p = p->next;
	return p;
}

/* Moves the bytes of t->text to the next part of a template.  Only `make` may call this. */
void template_add(struct templates *t, struct template *p, struct placeholder at);

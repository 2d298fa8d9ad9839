/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/operators/operators.h"

#include "convert/name/name.h"
#include "schemas/base/vec.h"

/* Returns in *out the annotation of the server's step around an operator, if its model needs it,
 * otherwise 0. */
static enum status step_of(struct accumulator *f, const struct event *e, uint32_t *out,
			   struct error *err)
{
	struct operators *s = f->state;
	const char *text;

	*out = 0;
	TRY(vec_reserve(&s->names, &s->name_cap, (size_t)e->name + 1, err));
	struct op_name *name = &s->names[e->name];
	if (!name->category) {
		text = trace_text(f->trace, e->name, NULL);
		name->category = operator_category(text);
		name->rule = model_rule_of(text);
	}
	for (uint32_t at = model_wants_step(name->rule) ? e->path : 0; at;) {
		const struct path_node *n = trace_get_path(f->trace, at);

		if (n->class == RANGE_ANNOTATION &&
		    model_is_step(trace_text(f->trace, n->name, NULL))) {
			*out = n->name;
			break;
		}
		at = n->parent;
	}
	return ST_OK;
}

/* Returns a constant text argument as a name id; 0: none. */
static uint32_t text_of(const struct trace *t, uint32_t schema, const char *key)
{
	const struct attr *a = trace_find_attr(t, schema, key);

	return a && a->type >= ATTR_TEXT ? (uint32_t)a->bits : 0;
}

static enum status shape_of(struct accumulator *f, const struct op_row *row, uint32_t *out,
			    struct error *err)
{
	struct operators *s = f->state;
	struct op_shape new = { .process = row->process,
				.name = row->name,
				.shapes = text_of(f->trace, row->schema, "input_dims"),
				.types = text_of(f->trace, row->schema, "input_type") };
	uint64_t hash = hash_word((uint64_t) new.name << 32 | new.process,
				  (uint64_t) new.shapes << 32 | new.types);

	*out = hash_find(&s->by_shape, hash, s->shapes, sizeof(new), &new,
			 offsetof(struct op_shape, seen));
	if (*out != HASH_NONE)
		return ST_OK;
	TRY(vec_reserve(&s->shapes, &s->shape_cap, s->shape_count + 1, err));
	*out = (uint32_t)s->shape_count;
	s->shapes[s->shape_count++] = new;
	return hash_add(&s->by_shape, hash, *out, err);
}

/* Finds or adds a row. Operators with the same shapes may differ in other constant arguments; their
 * rows are added up at the end. */
enum status operator_row(struct accumulator *f, uint32_t process, const struct event *e,
			 uint32_t *out, struct error *err)
{
	struct operators *s = f->state;
	struct op_row new = { .process = process, .name = e->name, .schema = e->schema };

	TRY(step_of(f, e, &new.step, err));
	uint64_t hash =
		hash_word((uint64_t)e->name << 32 | e->schema, (uint64_t) new.step << 32 | process);

	*out = hash_find(&s->by_key, hash, s->rows, sizeof(new), &new,
			 offsetof(struct op_row, cost));
	if (*out != HASH_NONE)
		return ST_OK;
	*out = (uint32_t)s->row_count;
	struct model_call call = { .name = trace_text(f->trace, new.name, NULL),
				   .rule = s->names[new.name].rule,
				   .dims = trace_attr_text(f->trace, new.schema, "input_dims"),
				   .types = trace_attr_text(f->trace, new.schema, "input_type"),
				   .concrete = trace_attr_text(f->trace, new.schema,
							       "concrete_inputs") };

	call.step = new.step ? trace_text(f->trace, new.step, NULL) : NULL;
	new.has_model = model_of(&call, &new.cost);
	TRY(shape_of(f, &new, &new.shape, err));
	TRY(vec_reserve(&s->rows, &s->row_cap, s->row_count + 1, err));
	s->rows[s->row_count++] = new;
	return hash_add(&s->by_key, hash, (uint32_t)s->row_count - 1, err);
}

enum status operator_cell(struct operators *s, uint32_t process, uint32_t step, uint8_t phase,
			  struct roofline_cell **out, struct error *err)
{
	uint64_t hash = hash_word((uint64_t)process << 32 | step, phase);
	struct roofline_cell new = { .process = process, .step = step, .phase = phase };
	uint32_t number = hash_find(&s->by_cell, hash, s->cells, sizeof(new), &new,
				    offsetof(struct roofline_cell, phase) + 1);

	if (number != HASH_NONE) {
		*out = &s->cells[number];
		return ST_OK;
	}
	TRY(vec_reserve(&s->cells, &s->cell_cap, s->cell_count + 1, err));
	*out = &s->cells[s->cell_count];
	**out = new;
	return hash_add(&s->by_cell, hash, (uint32_t)s->cell_count++, err);
}

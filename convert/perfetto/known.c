/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/perfetto/known.h"

#include "convert/perfetto/wire.h"

#include <stdlib.h>

enum status perfetto_names_init(struct perfetto_names *n, struct perfetto_args *args,
				struct error *err)
{
	*n = (struct perfetto_names){.args = args};
	n->known = calloc(PERFETTO_KNOWN, sizeof(*n->known));
	return n->known ? ST_OK : fail(err, ST_MEMORY, NOWHERE, "no memory for a list of names");
}

void perfetto_names_release(struct perfetto_names *n)
{
	free(n->known);
	n->known = NULL;
}

/* Of the trace where it has the name, which is in the file then; else the plan's own. */
static enum status find_name(struct perfetto_names *n, const struct event *e,
			     const struct perfetto_plan *plan, uint64_t *out, struct error *err)
{
	struct perfetto_file *f = n->args->file;

	*out = plan->name;
	if (!e->name || e->name > f->names)
		return ST_OK;
	*out = e->name;
	return perfetto_need_name(f, SPACE_NAME, e->name, err);
}

enum status perfetto_known_make(struct perfetto_names *n, const struct event *e, unsigned flags,
				const struct perfetto_known **out, struct error *err)
{
	struct perfetto_known *k, made = {.flags = (uint8_t)flags, .is_taken = true};
	uint64_t name;

	made.which = (uint64_t)e->shape << 32 | e->name;
	made.what = (uint16_t)(e->subkind << 8 | e->kind);
	TRY(perfetto_plan(n->args, e, &made.plan, err));
	TRY(find_name(n, e, made.plan, &name, err));
	if (name)
		made.len = (uint8_t)(wire_put_ids(made.bytes, name, made.plan->category) -
				     made.bytes);
	if (n->forgotten != n->args->forgotten) { /* those before have plans that are gone */
		memset(n->known, 0, PERFETTO_KNOWN * sizeof(*n->known));
		n->forgotten = n->args->forgotten;
	}
	k = made.plan->has_text ? &n->odd : perfetto_known_place(n, made.which, made.what);
	*k = made;
	*out = k;
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/findings/launched.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"
#include "schemas/model/records.h"

#include <stdlib.h>
#include <string.h>

enum { RANGES_MAX = 1 << 14 /* of one thread */ };

struct span {
	uint64_t begin_ns, end_ns;
};
struct spans { /* of one thread, without overlap */
	struct span *items;
	size_t count, cap;
};
struct threads { /* indexed by track */
	struct spans *items;
	size_t cap;
};
enum name_flag { NAME_ASKED = 1, NAME_FSDP = 2, NAME_PRODUCT = 4 };
struct bytes_copied {
	uint64_t all, of_fsdp;
};
struct launched {
	const struct trace *trace;
	uint32_t name_count, schema_count, process_count;
	uint8_t *names;  /* enum name_flag */
	uint8_t *is_odd; /* cache by product's schema, two parts; 0: none, 1: no, 2: yes */
	struct threads odd, fsdp;
	struct bytes_copied *copied; /* by process id */
};

enum status launched_open(struct launched **out, const struct trace *trace, struct error *err)
{
	struct launched *l = *out = calloc(1, sizeof(*l));

	if (!l)
		return fail_memory(err);
	l->trace = trace;
	l->name_count = trace_count(trace, TRACE_NAMES);
	l->schema_count = trace_count(trace, TRACE_SCHEMAS);
	l->process_count = trace_count(trace, TRACE_PROCESSES);
	l->names = calloc((size_t)l->name_count + 1, 1);
	l->is_odd = calloc((size_t)l->schema_count + 1, 2);
	l->copied = calloc((size_t)l->process_count + 1, sizeof(*l->copied));
	return l->names && l->is_odd && l->copied ? ST_OK : fail_memory(err);
}

static void threads_release(struct threads *t)
{
	for (size_t i = 0; t->items && i < t->cap; i++)
		free(t->items[i].items);
	free(t->items);
}

void launched_close(struct launched *l)
{
	if (!l)
		return;
	threads_release(&l->odd);
	threads_release(&l->fsdp);
	free(l->names);
	free(l->is_odd);
	free(l->copied);
	free(l);
}

/* Adds a span; overlapping ones are joined. */
static enum status span_put(struct threads *all, const struct event *range, struct error *err)
{
	TRY(vec_reserve(&all->items, &all->cap, (size_t)range->track + 1, err));
	struct spans *t = &all->items[range->track];
	struct span *last = t->count ? &t->items[t->count - 1] : NULL;

	if (last && range->begin_ns < last->end_ns) {
		if (last->end_ns < range->end_ns)
			last->end_ns = range->end_ns;
		return ST_OK;
	}
	if (t->count == RANGES_MAX) {
		t->count /= 2;
		memmove(t->items, t->items + t->count, t->count * sizeof(*t->items));
	}
	TRY(vec_reserve(&t->items, &t->cap, t->count + 1, err));
	t->items[t->count++] = (struct span){ range->begin_ns, range->end_ns };
	return ST_OK;
}

static bool span_has(const struct threads *all, const struct launch *launch)
{
	if (!launch || launch->track >= all->cap)
		return false;
	const struct spans *t = &all->items[launch->track];
	size_t at;

	SEARCH(at, 0, t->count, t->items[at].begin_ns <= launch->begin_ns);
	return at && launch->begin_ns < t->items[at - 1].end_ns;
}

/* ---- shapes ----------------------------------------------------------------------------- */

enum { DIMENSIONS = 4, ALIGNED = 8 /* elements of 16 bits in one load of 16 bytes */ };
struct shape {
	uint64_t at[DIMENSIONS];
	size_t count;
};

/* Returns the list with index `place` in "[[4, 8], [8, 2], []]". */
static struct shape shape_at(const char *text, size_t place)
{
	struct shape s = { .count = 0 };
	size_t lists = 0;

	for (text = strchr(text, '['); text && *text; text++) {
		if (*text != '[' || lists++ != place + 1)
			continue;
		while (s.count < DIMENSIONS && *text && *text != ']') {
			char *end;

			s.at[s.count] = strtoull(text + 1, &end, 10);
			if (end == text + 1)
				break;
			s.count++;
			text = end + strspn(end, " ");
		}
		if (*text != ']')
			s.count = 0;
		return s;
	}
	return s;
}

static const char *text_of(const struct trace *t, uint32_t schema, const char *key)
{
	const struct attr *a = trace_find_attr(t, schema, key);

	return a && (a->type == ATTR_JSON || a->type == ATTR_TEXT)
		       ? trace_text(t, (uint32_t)a->bits, NULL)
		       : NULL;
}

/* Returns the elements from one row or column of a matrix to the next; 0: not a plain matrix. */
static uint64_t row_of(const struct shape *strides)
{
	if (strides->count < 2)
		return 0;
	const uint64_t *last = &strides->at[strides->count - 1];
	return last[0] == 1 ? last[-1] : last[-1] == 1 ? last[0] : 0;
}

static const struct {
	const char *name;
	size_t first; /* index of its first matrix among its inputs */
} products[] = {
	{ "aten::mm", 0 },
	{ "aten::bmm", 0 },
	{ "aten::addmm", 1 },
	{ "aten::baddbmm", 1 },
	{ "aten::_addmm_activation", 1 },
};
enum { PRODUCTS = sizeof(products) / sizeof(products[0]) };

static size_t product_of(const char *name)
{
	size_t i = 0;

	while (i < PRODUCTS && strcmp(products[i].name, name) != 0)
		i++;
	return i;
}

static bool shape_is_odd(const struct trace *t, const struct event *op, bool is_backward)
{
	const char *types = text_of(t, op->schema, "input_type");
	const char *dims = text_of(t, op->schema, "input_dims");
	const char *strides = text_of(t, op->schema, "input_strides");
	size_t i = product_of(trace_text(t, op->name, NULL));

	if (i == PRODUCTS || !dims || !types ||
	    !(strstr(types, "Half") || strstr(types, "BFloat16")))
		return false;
	struct shape a = shape_at(dims, products[i].first);
	struct shape b = shape_at(dims, products[i].first + 1);
	if (a.count < 2 || b.count != a.count || a.at[a.count - 1] != b.at[b.count - 2])
		return false;
	uint64_t m = a.at[a.count - 2], k = a.at[a.count - 1], n = b.at[b.count - 1];
	if (m <= 1 || n <= 1 || k <= 1)
		return false; /* a product with a vector */
	if (n % ALIGNED)
		return true;
	if (!strides)
		return !is_backward && k % ALIGNED; /* a gradient may be transposed */
	struct shape of_a = shape_at(strides, products[i].first);
	struct shape of_b = shape_at(strides, products[i].first + 1);
	return row_of(&of_a) % ALIGNED || row_of(&of_b) % ALIGNED;
}

/* ---- events ----------------------------------------------------------------------------- */

enum status launched_range(struct launched *l, const struct event *range, struct error *err)
{
	bool is_backward = range->phase == PHASE_BACKWARD;

	if (range->name > l->name_count || range->schema > l->schema_count)
		return ST_OK;
	if (!l->names[range->name]) {
		const char *text = trace_text(l->trace, range->name, NULL);
		bool is_fsdp = strstr(text, "FSDP") || strstr(text, "FullyShardedDataParallel");

		l->names[range->name] = (uint8_t)(NAME_ASKED | (is_fsdp ? NAME_FSDP : 0) |
						  (product_of(text) < PRODUCTS ? NAME_PRODUCT : 0));
	}
	if (l->names[range->name] & NAME_FSDP)
		return span_put(&l->fsdp, range, err);
	if (!(l->names[range->name] & NAME_PRODUCT))
		return ST_OK;
	uint8_t *is_odd = &l->is_odd[2 * (size_t)range->schema + is_backward];
	if (!*is_odd)
		*is_odd = shape_is_odd(l->trace, range, is_backward) ? 2 : 1;
	return *is_odd == 2 ? span_put(&l->odd, range, err) : ST_OK;
}

bool launched_is_odd(const struct launched *l, const struct launch *launch)
{
	return span_has(&l->odd, launch);
}

void launched_copy(struct launched *l, uint32_t process, const struct event *copy,
		   const struct launch *launch)
{
	if (process > l->process_count || copy->kind != KIND_MEMCPY ||
	    copy->subkind != copy_kind_of_word("HtoD", 4))
		return;
	l->copied[process].all += copy->bytes;
	if (span_has(&l->fsdp, launch))
		l->copied[process].of_fsdp += copy->bytes;
}

bool launched_offloads(const struct launched *l, uint32_t process)
{
	return process <= l->process_count &&
	       2 * l->copied[process].of_fsdp > l->copied[process].all;
}

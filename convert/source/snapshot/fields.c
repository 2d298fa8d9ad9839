/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/snapshot/internal.h"

#include "schemas/base/vec.h"

#include <string.h>

enum { STACK_BYTES = 1 << 14 };

/* ---- stacks ----------------------------------------------------------------------------- */

static enum status stack_put(struct snapshot *s, const struct stack *stack, uint64_t *place,
			     struct error *err)
{
	TRY(vec_reserve(&s->stacks, &s->stack_cap, s->stack_count + 2, err));
	if (!s->stack_count)
		s->stacks[s->stack_count++] = (struct stack){ 0 };
	s->stacks[s->stack_count] = *stack;
	*place = s->stack_count++;
	return ST_OK;
}

enum status stack_named(struct snapshot *s, enum stack_kind kind, uint32_t of, uint32_t *place,
			struct error *err)
{
	static const char *const texts[STACK_KINDS] = {
		[STACK_NONE] = "(no stack was recorded)",
		[STACK_EARLIER] = "(taken before the recording)",
		[STACK_FREED] = "(earlier, freed at %.*s)",
	};
	/* Ids of lists are numbers of values in the pickle, which are far smaller. */
	uint64_t key = UINT64_MAX - ((uint64_t)of * STACK_KINDS + kind), *known;
	struct stack stack = { .whole = 0 };
	size_t len = 0;
	const char *where = of ? trace_text(s->to.trace, s->stacks[of].where, &len) : "";
	struct buf text;
	bool is_new;

	known = map_put(&s->stack_of, key, &is_new);
	if (!known)
		return fail_memory(err);
	if (is_new) {
		buf_init(&text, STACK_BYTES);
		buf_putf(&text, texts[kind], (int)len, where);
		enum status status =
			import_name(&s->to, buf_text(&text), text.len, &stack.where, err);
		buf_release(&text);
		TRY(status);
		TRY(stack_put(s, &stack, known, err));
	}
	*place = (uint32_t)*known;
	return ST_OK;
}

/* Sets *place to the index in `stacks` of a list of frames. */
static enum status stack_take(struct snapshot *s, struct pickle_value **at, uint32_t *place,
			      struct error *err)
{
	const struct pickle_value *frames = pickle_keep(s->values, at);
	struct stack stack;
	uint64_t *known;
	struct buf text;
	bool is_new;
	enum status status;

	*place = 0;
	if (!frames)
		return err->status;
	if (frames->type != PICKLE_LIST || !frames->count)
		return ST_OK;
	known = map_put(&s->stack_of, frames->id, &is_new);
	if (!known)
		return fail_memory(err);
	if (is_new) {
		buf_init(&text, STACK_BYTES);
		pickle_put_where(&text, frames);
		status = import_name(&s->to, buf_text(&text), text.len, &stack.where, err);
		buf_clear(&text);
		size_t i = 0;
		for (; i < frames->count && text.len < STACK_BYTES / 2; i++)
			pickle_put_frame(&text, frames->items[i], i ? "\n" : "", true);
		if (i < frames->count)
			buf_putf(&text, "\n(%zu more)", frames->count - i);
		if (status == ST_OK)
			status = import_name(&s->to, buf_text(&text), text.len, &stack.whole, err);
		buf_release(&text);
		TRY(status);
		TRY(stack_put(s, &stack, known, err));
	}
	*place = (uint32_t)*known;
	return ST_OK;
}

/* ---- fields ----------------------------------------------------------------------------- */

enum field_type { NUMBER, VALUE, PAIR, FRAMES };
static const struct {
	const char *key;
	enum field_type type;
	size_t at; /* offset in struct entry */
} fields[] = {
	{ "action", VALUE, offsetof(struct entry, action) },
	{ "addr", NUMBER, offsetof(struct entry, at.address) },
	{ "address", NUMBER, offsetof(struct entry, at.address) },
	{ "size", NUMBER, offsetof(struct entry, at.size) },
	{ "stream", NUMBER, offsetof(struct entry, at.stream) },
	{ "time_us", NUMBER, offsetof(struct entry, time_us) },
	{ "frames", FRAMES, 0 },
	{ "device_free", NUMBER, offsetof(struct entry, device_free) },
	{ "pool_id", PAIR, offsetof(struct entry, at.pool) },
	{ "segment_pool_id", PAIR, offsetof(struct entry, at.pool) },
	{ "user_metadata", VALUE, offsetof(struct entry, texts[TEXT_METADATA]) },
	{ "compile_context", VALUE, offsetof(struct entry, texts[TEXT_CONTEXT]) },
	{ "category", VALUE, offsetof(struct entry, texts[TEXT_CATEGORY]) },
	{ "state", VALUE, offsetof(struct entry, state) },
	{ "requested_size", NUMBER, offsetof(struct entry, requested) },
	{ "real_size", NUMBER, offsetof(struct entry, requested) },
	{ "device", NUMBER, offsetof(struct entry, device) },
	{ "total_size", NUMBER, offsetof(struct entry, total) },
	{ "segment_type", VALUE, offsetof(struct entry, type) },
	{ "is_expandable", NUMBER, offsetof(struct entry, is_expandable) },
	{ "blocks", VALUE, offsetof(struct entry, blocks) },
	{ "name", VALUE, offsetof(struct entry, name) },
	{ "stage", VALUE, offsetof(struct entry, stage) },
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* Finds the field of a key.  A key is one text value in the whole pickle, so its id identifies the
 * field. */
static enum status field_find(struct snapshot *s, const struct pickle_value *key, size_t *field,
			      struct error *err)
{
	bool is_new;
	uint64_t *known = map_put(&s->field_of, key->id, &is_new);

	if (!known)
		return fail_memory(err);
	for (*field = 0; is_new && *field < FIELDS; ++*field)
		if (!strcmp(fields[*field].key, pickle_text(key, "")))
			break;
	if (is_new)
		*known = *field;
	*field = *known;
	return ST_OK;
}

enum status entry_read(struct snapshot *s, struct pickle_value *v, struct entry *out,
		       struct error *err)
{
	*out = (struct entry){ .requested = -1 };
	for (size_t i = 0; v->type == PICKLE_DICT && i + 1 < v->count; i += 2) {
		const struct pickle_value *key = v->items[i], *one = v->items[i + 1];
		char *at = (char *)out;
		size_t field = FIELDS;

		if (key->type != PICKLE_TEXT)
			continue;
		TRY(field_find(s, key, &field, err));
		if (field == FIELDS)
			continue;
		at += fields[field].at;
		out->has_time |= at == (char *)&out->time_us && one->type == PICKLE_INT;
		out->has_address |= at == (char *)&out->at.address;
		if (fields[field].type == FRAMES) {
			TRY(stack_take(s, &v->items[i + 1], &out->at.stack, err));
		} else if (fields[field].type == VALUE) {
			memcpy(at, &one, sizeof(one));
		} else if (fields[field].type == NUMBER) {
			int64_t number = pickle_int(one, 0);

			memcpy(at, &number, sizeof(number));
		} else if (one->type == PICKLE_LIST && one->count == 2) {
			for (size_t k = 0; k < 2; k++)
				out->at.pool[k] = pickle_int(one->items[k], 0);
		}
	}
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What an event's shape says, and which range launched it. */
#include "convert/sink/tensorboard/space.h"
#include "schemas/proto/xspace.h"

#include <ctype.h>

/* ---- what of a shape is looked at ---- */

const struct attr *tb_const_attr(const struct tb_space *s, const struct event *e, const char *key)
{
	return trace_find_attr(s->trace, e->schema, key);
}

uint64_t tb_const_u64(const struct tb_space *s, const struct event *e, const char *key)
{
	const struct attr *a = tb_const_attr(s, e, key);

	return a && a->type <= ATTR_I64 ? a->bits : 0;
}

static bool key_is(const struct tb_space *s, const struct attr *a, const char *word)
{
	return strcmp(trace_text(s->trace, a->key, NULL), word) == 0;
}

/* The word of a varying number; false: the shape has no such. */
bool tb_arg_bits(const struct tb_space *s, const struct event *e, const char *key, uint64_t *bits)
{
	const struct arg_schema *schema = trace_get_schema(s->trace, e->schema);

	for (uint32_t i = 0; e->args && i < schema->arg_count; i++) {
		if (!key_is(s, &schema->args[i], key))
			continue;
		*bits = e->args[i];
		return true;
	}
	return false;
}

/* ---- which range launched it ---- */

/* XProf's form is scope/name:type; what its pattern has no place for becomes one dot. */
static void put_op_part(struct buf *b, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool good = isalnum((unsigned char)text[i]) || strchr("_/>-", text[i]);

		if (good && text[i])
			buf_put_byte(b, (uint8_t)text[i]);
		else if (!b->len || b->data[b->len - 1] != '.')
			buf_put_byte(b, '.');
	}
}

static void put_type(struct buf *b, const char *text, size_t len)
{
	size_t at = len;

	while (at && (isalnum((unsigned char)text[at - 1]) || text[at - 1] == '_'))
		at--;
	if (at == len || isdigit((unsigned char)text[at])) {
		buf_put_text(b, "range");
		return;
	}
	for (; at < len; at++)
		buf_put_byte(b, (uint8_t)tolower((unsigned char)text[at]));
}

static const char *phase_word(const struct tb_space *s, unsigned phase)
{
	return s->context && phase < context_phase_count(s->context)
		       ? context_phase(s->context, phase).name
		       : "other";
}

enum status tb_put_op(struct tb_space *s, const struct event *e, struct error *err)
{
	struct tb_row *row = tb_find(&s->names, TB_SCOPE, e->owner, e->phase);
	struct buf *b = &s->scratch;
	const char *text;
	size_t len;

	TB_KEY_OR_FAIL(key, "tf_op");
	if (!row) {
		text = trace_text(s->trace, e->owner, &len);
		if (!len) {
			text = "no_range";
			len = strlen(text);
		}
		buf_clear(b);
		put_op_part(b, phase_word(s, e->phase), strlen(phase_word(s, e->phase)));
		buf_put_byte(b, '/');
		put_op_part(b, text, len);
		buf_put_byte(b, ':');
		put_type(b, text, len);
		TRY(tb_add(&s->names, TB_SCOPE, e->owner, e->phase,
			   tb_new_stat(&s->names, buf_text(b), b->len, err), &row, err));
	}
	tb_stat_ref(&s->event, XEVENT_STATS, key, row->id);
	return ST_OK;
}

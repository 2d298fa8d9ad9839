/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SAVED, the row with the reason and time at which a log was saved from the ring of a flight
 * recorder.  The reader turns it into attributes of its process, and shortens windows to what the
 * ring still held.
 */
#include "schemas/log/read.h"
#include "schemas/log/ring.h"
#include "schemas/log/write.h"
#include "schemas/model/records.h"

#include <stdio.h>

/* The numbers of the row in their order, and the attributes that they become. */
static const struct saved_number {
	uint16_t offset;
	uint8_t size, plus; /* plus: added to the stored value, so that NOWHERE is 0 */
	uint8_t unit;
	const char *key; /* NULL: it becomes no attribute */
} numbers[] = {
#define NUMBER(member, plus, unit, key)                                                            \
	{                                                                                          \
		offsetof(struct log_saved, member), sizeof(((struct log_saved *)NULL)->member),    \
			plus, unit, key                                                            \
	}
	NUMBER(at_ns, 0, UNIT_NS, "saved_at"),
	NUMBER(step, 1, UNIT_ID, "saved_step"),
	NUMBER(value_ns, 0, UNIT_NS, "saved_value"),
	NUMBER(threshold_ns, 0, UNIT_NS, "saved_threshold"),
	NUMBER(from_ns, 0, UNIT_NS, "saved_from"),
	NUMBER(until_ns, 0, UNIT_NS, "saved_until"),
	NUMBER(alive_ns, 0, UNIT_NS, "saved_alive"),
	NUMBER(torn, 0, UNIT_COUNT, "saved_torn"),
	NUMBER(torn_rows, 0, 0, NULL),
	NUMBER(left_out_rows, 0, 0, NULL),
	NUMBER(by_itself, 0, 0, NULL),
};
enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]), ATTRS = NUMBERS + 3, SENTENCE = 160 };

void log_put_saved(const struct log_saved *s, struct buf *out)
{
	struct buf payload, row;

	buf_init(&payload, LOG_BLOCK_BYTES);
	buf_init(&row, LOG_BLOCK_BYTES / 2);
	buf_put_varint(&row, 1); /* the process, which is the only one of its log */
	buf_put_varint(&row, strlen(s->why));
	buf_put_text(&row, s->why);
	for (size_t i = 0; i < NUMBERS; i++) {
		uint64_t value = 0;

		memcpy(&value, (const char *)s + numbers[i].offset, numbers[i].size);
		buf_put_varint(&row, value + numbers[i].plus);
	}
	buf_put_varint(&payload, 1); /* first id */
	buf_put_varint(&payload, row.len);
	buf_put(&payload, row.data, row.len);
	if (buf_status(&row, NULL) == ST_OK && buf_status(&payload, NULL) == ST_OK)
		log_put_table_block(&payload, LOG_SAVED, 0, 1, out);
	buf_release(&row);
	buf_release(&payload);
}

/* Shortens windows to what the ring still held. */
static void shorten_windows(struct log_translation *x, const struct log_saved *n)
{
	for (uint32_t id = 1; id < x->windows.count; id++) {
		const uint32_t *to = log_rows_get(&x->windows, id);
		struct window w = *trace_get_window(x->trace, *to);

		if (!*to)
			continue;
		if (!w.end_ns && n->by_itself && n->until_ns > w.begin_ns)
			w.end_ns = n->until_ns;
		if (w.begin_ns < n->from_ns) {
			w.begin_ns = w.end_ns && w.end_ns < n->from_ns ? w.end_ns : n->from_ns;
			w.own_ns = 0; /* it was measured over the whole window */
		}
		trace_set_window(x->trace, *to, &w);
	}
}

static void add_text(struct log_translation *x, struct attr *attrs, uint32_t *count,
		     const char *key, const char *text, size_t len)
{
	attrs[*count] = (struct attr){ .key = trace_name(x->trace, key, strlen(key), NULL),
				       .type = ATTR_TEXT,
				       .bits = trace_name(x->trace, text, len, NULL) };
	*count += attrs[*count].key && attrs[*count].bits;
}

static void add_sentences(struct log_translation *x, struct attr *attrs, uint32_t *count,
			  const char *why, int len, const struct log_saved *n)
{
	char text[SENTENCE], step[40] = "";
	double tail = n->alive_ns > n->until_ns ? (double)(n->alive_ns - n->until_ns) / 1e9 : 0;

	if (len > SENTENCE / 2)
		len = SENTENCE / 2;
	if (n->step != NOWHERE)
		snprintf(step, sizeof(step), " in step %llu", (unsigned long long)n->step);
	if (n->value_ns)
		snprintf(text, sizeof(text), "%.*s%s: %.3f ms, the limit was %.3f ms", len, why,
			 step, (double)n->value_ns / 1e6, (double)n->threshold_ns / 1e6);
	else
		snprintf(text, sizeof(text), "%.*s%s", len, why, step);
	add_text(x, attrs, count, "saved_why", text, strlen(text));
	if (n->by_itself || !n->until_ns)
		return;
	snprintf(text, sizeof(text),
		 "events may be missing at the end: the process lived at least %.1f s longer than "
		 "the complete part, and one more second of GPU work may be lost",
		 tail);
	add_text(x, attrs, count, "saved_tail", text, strlen(text));
}

enum status log_take_saved(struct log_translation *x, uint32_t id, struct bytes *in,
			   struct error *err)
{
	uint32_t process = log_process_of(x, take_varint(in)), before_count, count;
	uint64_t len = take_varint(in);
	const char *why = take_text(in, len);
	struct arg_schema schema = { 0 };
	struct log_saved n = { .why = NULL };
	uint64_t values[NUMBERS];
	struct attr *attrs;

	for (unsigned i = 0; i < NUMBERS; i++) {
		uint64_t value = values[i] = bytes_left(in) ? take_varint(in) : 0;

		value = numbers[i].size == sizeof(bool) ? value != 0 : value - numbers[i].plus;
		memcpy((char *)&n + numbers[i].offset, &value, numbers[i].size);
	}
	if (in->is_truncated || x->missing || !why || !process)
		return ST_OK;
	struct process p = *trace_get_process(x->trace, process);
	const struct arg_schema *before = trace_get_schema(x->trace, p.schema);
	before_count = count = before->const_count;
	attrs = log_arena_take(x, (before_count + ATTRS) * sizeof(*attrs), err);
	if (!attrs)
		return err->status;
	if (before_count)
		memcpy(attrs, before->consts, before_count * sizeof(*attrs));
	add_text(x, attrs, &count, "saved_on", why, len);
	for (unsigned i = 0; i < NUMBERS; i++) {
		const char *key = numbers[i].key;

		if (!values[i] || !key)
			continue;
		attrs[count] = (struct attr){ .key = trace_name(x->trace, key, strlen(key), err),
					      .unit = numbers[i].unit,
					      .bits = values[i] - numbers[i].plus };
		count += attrs[count].key != 0;
	}
	add_sentences(x, attrs, &count, why, len < SENTENCE ? (int)len : SENTENCE, &n);
	shorten_windows(x, &n);
	trace_lose(x->trace, process, LOSS_DISK, n.left_out_rows);
	/* If the number of rows is unknown, each block counts as one row. */
	trace_lose(x->trace, process, LOSS_DAMAGED, n.torn_rows ? n.torn_rows : n.torn);
	schema.consts = attrs;
	schema.const_count = count;
	p.schema = trace_schema(x->trace, &schema, err);
	if (!p.schema)
		return err->status;
	trace_set_process(x->trace, process, &p);
	return ST_OK;
}

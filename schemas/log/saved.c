/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SAVED, the row that says why and when a log was saved from the ring of a flight recorder.  Read,
 * it becomes attributes of its process, and windows are cut to what the ring still held.
 */
#include "schemas/log/read.h"
#include "schemas/log/ring.h"
#include "schemas/model/records.h"

#include <stdio.h>

/* The numbers of the row in their order, which are the members of struct log_saved, and the
 * attributes that they become. */
#define SAVED_NUMBERS(X)                                                                           \
	X(at_ns, "saved_at", UNIT_NS)                                                              \
	X(step_next, "saved_step", UNIT_ID)                                                        \
	X(value_ns, "saved_value", UNIT_NS)                                                        \
	X(threshold_ns, "saved_threshold", UNIT_NS)                                                \
	X(from_ns, "saved_from", UNIT_NS)                                                          \
	X(until_ns, "saved_until", UNIT_NS)                                                        \
	X(alive_ns, "saved_alive", UNIT_NS)                                                        \
	X(torn, "saved_torn", UNIT_COUNT)                                                          \
	X(torn_rows, NULL, 0)                                                                      \
	X(left_out_rows, NULL, 0)                                                                  \
	X(by_itself, NULL, 0)
struct saved_numbers {
#define X(member, key, unit) uint64_t member;
	SAVED_NUMBERS(X)
#undef X
};
static const struct {
	const char *key; /* NULL: it becomes no attribute */
	uint8_t unit;
} attributes[] = {
#define X(member, key, unit) { key, unit },
	SAVED_NUMBERS(X)
#undef X
};
enum { NUMBERS = sizeof(attributes) / sizeof(attributes[0]), ATTRS = NUMBERS + 3, SENTENCE = 160 };

void log_put_saved(const struct log_saved *s, struct buf *out)
{
	struct saved_numbers n = {
		.at_ns = s->at_ns,
		.step_next = s->step == NOWHERE ? 0 : s->step + 1,
		.value_ns = s->value_ns,
		.threshold_ns = s->threshold_ns,
		.from_ns = s->from_ns,
		.until_ns = s->until_ns,
		.alive_ns = s->alive_ns,
		.torn = s->torn,
		.torn_rows = s->torn_rows,
		.left_out_rows = s->left_out_rows,
		.by_itself = s->by_itself,
	};
	uint8_t header[LOG_HEADER_BYTES];
	struct buf payload, row;
	struct log_block block = { .kind = LOG_SAVED, .rows = 1 };

	buf_init(&payload, LOG_BLOCK_BYTES);
	buf_init(&row, LOG_BLOCK_BYTES / 2);
	buf_put_varint(&row, 1); /* the process, which is the only one of its log */
	buf_put_varint(&row, strlen(s->why));
	buf_put_text(&row, s->why);
	for (size_t i = 0; i < NUMBERS; i++)
		buf_put_varint(&row, ((const uint64_t *)&n)[i]);
	buf_put_varint(&payload, 1); /* first id */
	buf_put_varint(&payload, row.len);
	buf_put(&payload, row.data, row.len);
	if (buf_status(&row, NULL) == ST_OK && buf_status(&payload, NULL) == ST_OK) {
		block.size = block.raw_size = (uint32_t)payload.len;
		log_put_block_header(&block, payload.data, header);
		buf_put(out, header, sizeof(header));
		buf_put(out, payload.data, payload.len);
	}
	buf_release(&row);
	buf_release(&payload);
}

/* Cuts windows to what the ring still held. */
static void cut_windows(struct log_translation *x, const struct saved_numbers *n)
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
			  const char *why, int len, const struct saved_numbers *n)
{
	char text[SENTENCE], step[40] = "";
	double tail = n->alive_ns > n->until_ns ? (double)(n->alive_ns - n->until_ns) / 1e9 : 0;

	if (len > SENTENCE / 2)
		len = SENTENCE / 2;
	if (n->step_next)
		snprintf(step, sizeof(step), " in step %llu", (unsigned long long)n->step_next - 1);
	if (n->value_ns)
		snprintf(text, sizeof(text), "%.*s%s: %.3f ms, the limit was %.3f ms", len, why,
			 step, (double)n->value_ns / 1e6, (double)n->threshold_ns / 1e6);
	else
		snprintf(text, sizeof(text), "%.*s%s", len, why, step);
	add_text(x, attrs, count, "saved_why", text, strlen(text));
	if (n->by_itself || !n->until_ns)
		return;
	snprintf(text, sizeof(text),
		 "the end is not known: the process lived %.1f s or more after "
		 "the last that is surely complete, and a GPU's work of one more second may lack",
		 tail);
	add_text(x, attrs, count, "saved_tail", text, strlen(text));
}

enum status log_take_saved(struct log_translation *x, uint32_t id, struct bytes *in,
			   struct error *err)
{
	uint32_t process = log_process_of(x, take_varint(in)), known_count, count;
	uint64_t len = take_varint(in);
	const char *why = take_text(in, len);
	struct arg_schema schema = { 0 };
	struct saved_numbers n;
	struct attr *attrs;

	for (unsigned i = 0; i < NUMBERS; i++)
		((uint64_t *)&n)[i] = bytes_left(in) ? take_varint(in) : 0;
	if (in->is_truncated || x->missing || !why || !process)
		return ST_OK;
	struct process p = *trace_get_process(x->trace, process);
	const struct arg_schema *known = trace_get_schema(x->trace, p.schema);
	known_count = count = known->const_count;
	attrs = log_arena_take(x, (known_count + ATTRS) * sizeof(*attrs), err);
	if (!attrs)
		return err->status;
	if (known_count)
		memcpy(attrs, known->consts, known_count * sizeof(*attrs));
	add_text(x, attrs, &count, "saved_on", why, len);
	for (unsigned i = 0; i < NUMBERS; i++) {
		const char *key = attributes[i].key;
		const uint64_t *number = (const uint64_t *)&n + i;

		if (!*number || !key)
			continue;
		attrs[count] = (struct attr){ .key = trace_name(x->trace, key, strlen(key), err),
					      .unit = attributes[i].unit,
					      .bits = *number - (number == &n.step_next) };
		count += attrs[count].key != 0;
	}
	add_sentences(x, attrs, &count, why, len < SENTENCE ? (int)len : SENTENCE, &n);
	cut_windows(x, &n);
	trace_lose(x->trace, process, LOSS_DISK, n.left_out_rows);
	/* Where the rows are not known, each block counts as one at least. */
	trace_lose(x->trace, process, LOSS_DAMAGED, n.torn_rows ? n.torn_rows : n.torn);
	schema.consts = attrs;
	schema.const_count = count;
	p.schema = trace_schema(x->trace, &schema, err);
	if (!p.schema)
		return err->status;
	trace_set_process(x->trace, process, &p);
	return ST_OK;
}

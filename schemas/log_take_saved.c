/* SPDX-License-Identifier: Apache-2.0 */
/* SAVED, a flight recorder's row, becomes attributes of its process; its windows end with it. */
#include "schemas/log_read.h"

#include "schemas/records.h"

#include <stdio.h>

/* Numbers of the row, in its order. */
enum { AT, STEP, VALUE, THRESHOLD, FROM, UNTIL, ALIVE, TORN, TORN_ROWS, LEFT_OUT, BY_ITSELF, NUMBERS };
static const struct {
	const char *key; /* NULL: it is none */
	uint8_t unit;
} numbers[NUMBERS] = {
	[AT] = { "saved_at", UNIT_NS },
	[STEP] = { "saved_step", UNIT_ID },
	[VALUE] = { "saved_value", UNIT_NS },
	[THRESHOLD] = { "saved_threshold", UNIT_NS },
	[FROM] = { "saved_from", UNIT_NS },
	[UNTIL] = { "saved_until", UNIT_NS },
	[ALIVE] = { "saved_alive", UNIT_NS },
	[TORN] = { "saved_torn", UNIT_COUNT },
};
enum { ATTRS = NUMBERS + 3, SENTENCE = 160 };

/* Of a window, what the ring still had. */
static void cut_windows(struct log_translation *x, const uint64_t n[NUMBERS])
{
	for (uint32_t id = 1; id < x->windows.count; id++) {
		const uint32_t *to = log_rows_get(&x->windows, id);
		struct window w = *trace_get_window(x->trace, *to);

		if (!*to)
			continue;
		if (!w.end_ns && n[BY_ITSELF] && n[UNTIL] > w.begin_ns)
			w.end_ns = n[UNTIL];
		if (w.begin_ns < n[FROM]) {
			w.begin_ns = w.end_ns && w.end_ns < n[FROM] ? w.end_ns : n[FROM];
			w.own_ns = 0; /* it was of the whole window */
		}
		trace_set_window(x->trace, *to, &w);
	}
}

/* What is known of a process, and more. */
static enum status add_attrs(struct log_translation *x, uint32_t process, const struct attr *more,
			     uint32_t count, struct error *err)
{
	struct process p = *trace_get_process(x->trace, process);
	const struct shape *known = trace_get_shape(x->trace, p.shape);
	struct attr *attrs = log_arena_room(x, (known->fixed_count + count) * sizeof(*attrs), err);
	struct shape shape = { .fixed = attrs, .fixed_count = known->fixed_count + count };

	if (!attrs)
		return err->status;
	if (known->fixed_count)
		memcpy(attrs, known->fixed, known->fixed_count * sizeof(*attrs));
	memcpy(attrs + known->fixed_count, more, count * sizeof(*attrs));
	p.shape = trace_shape(x->trace, &shape, err);
	if (!p.shape)
		return err->status;
	trace_set_process(x->trace, process, &p);
	return ST_OK;
}

static void put_text(struct log_translation *x, struct attr *attrs, uint32_t *count,
		     const char *key, const char *text, size_t len)
{
	attrs[*count] = (struct attr){ .key = trace_name(x->trace, key, strlen(key), NULL),
				       .type = ATTR_TEXT,
				       .bits = trace_name(x->trace, text, len, NULL) };
	*count += attrs[*count].key && attrs[*count].bits;
}

static void put_sentences(struct log_translation *x, struct attr *attrs, uint32_t *count,
			  const char *why, int len, const uint64_t n[NUMBERS])
{
	char text[SENTENCE], step[40] = "";
	double tail = n[ALIVE] > n[UNTIL] ? (double)(n[ALIVE] - n[UNTIL]) / 1e9 : 0;

	if (len > SENTENCE / 2)
		len = SENTENCE / 2;
	if (n[STEP])
		snprintf(step, sizeof(step), " in step %llu", (unsigned long long)n[STEP] - 1);
	if (n[VALUE])
		snprintf(text, sizeof(text), "%.*s%s: %.3f ms, the limit was %.3f ms", len, why,
			 step, (double)n[VALUE] / 1e6, (double)n[THRESHOLD] / 1e6);
	else
		snprintf(text, sizeof(text), "%.*s%s", len, why, step);
	put_text(x, attrs, count, "saved_why", text, strlen(text));
	if (n[BY_ITSELF] || !n[UNTIL])
		return;
	snprintf(text, sizeof(text), "the end is not known: the process lived %.1f s or more after "
		 "the last that is surely complete, and a GPU's work of one more second may lack",
		 tail);
	put_text(x, attrs, count, "saved_tail", text, strlen(text));
}

enum status log_take_saved(struct log_translation *x, uint32_t id, struct bytes *in,
			   struct error *err)
{
	uint32_t process = log_process_of(x, take_varint(in)), count = 0;
	uint64_t len = take_varint(in), n[NUMBERS];
	const char *why = take_text(in, len);
	struct attr attrs[ATTRS];

	for (unsigned i = 0; i < NUMBERS; i++)
		n[i] = bytes_left(in) ? take_varint(in) : 0;
	if (in->cut || x->missing || !why || !process)
		return ST_OK;
	put_text(x, attrs, &count, "saved_on", why, len);
	for (unsigned i = 0; i < NUMBERS; i++) {
		const char *key = numbers[i].key;

		if (!n[i] || !key)
			continue;
		attrs[count] = (struct attr){ .key = trace_name(x->trace, key, strlen(key), err),
					      .unit = numbers[i].unit, .bits = n[i] - (i == STEP) };
		count += attrs[count].key != 0;
	}
	put_sentences(x, attrs, &count, why, len < SENTENCE ? (int)len : SENTENCE, n);
	cut_windows(x, n);
	trace_lose(x->trace, process, LOSS_DISK, n[LEFT_OUT]);
	/* at least one row of each, where nobody knows how many */
	trace_lose(x->trace, process, LOSS_DAMAGED, n[TORN_ROWS] ? n[TORN_ROWS] : n[TORN]);
	return add_attrs(x, process, attrs, count, err);
}

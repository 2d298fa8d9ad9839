/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads GPU work in Perfetto's own messages: stages, each with a queue, and counters.  Cuspy writes
 * all GPU work in this form.  Its queues are not the streams; these are in the extra data, as texts
 * with the same keys as Kineto's or similar ones.
 */
#include "convert/source/perfetto/internal.h"

#include "convert/source/kineto/cuspy.h"
#include "convert/source/kineto/import.h"
#include "schemas/base/json_text.h"
#include "schemas/model/records.h"

#include <ctype.h>
#include <strings.h>

enum { WAITS_MOST = 4, STAGE_FIELDS = 22 };
static const char *const wait_keys[WAITS_MOST] = { "event_wait_ids[0]", "event_wait_ids[1]",
						   "event_wait_ids[2]", "event_wait_ids[3]" };

static struct json key_of_word(const char *word)
{
	return (struct json){ .type = JSON_STRING, .text = word, .len = strlen(word) };
}

/* Returns our key for a key with another spelling. */
static struct json key_of(struct json name)
{
	static const char *const words[][2] = {
		{ "device id", "device" },
		{ "context id", "context" },
		{ "stream id", "stream" },
		{ "registers_per_thread", "registers per thread" },
		{ "shared_mem_dynamic", "dynamic_shared" },
		{ "shared_mem_static", "static_shared" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (name.len == strlen(words[i][0]) && !memcmp(name.text, words[i][0], name.len))
			return key_of_word(words[i][1]);
	return name;
}

/* Adds a text, or a number, array or object if the text is its JSON. */
static void put_text(struct pftrace_reader *r, struct json key, struct bytes text)
{
	struct json value = pftrace_json(text);
	char first = value.len ? value.text[0] : '\0';
	size_t at = r->values.len;
	bool is_number = isdigit((unsigned char)first) || first == '-';

	if ((!is_number && first != '[' && first != '{') || !json_is_value(value.text, value.len)) {
		pftrace_arg(r, key, value);
		return;
	}
	buf_put(&r->values, value.text, value.len);
	pftrace_arg_made(r, key,
			 is_number      ? JSON_NUMBER
			 : first == '[' ? JSON_ARRAY
					: JSON_OBJECT,
			 at);
}

static void put_extra(struct pftrace_reader *r, struct bytes extra)
{
	struct bytes name = bytes_init(NULL, 0), value = name;
	struct pb_field f;

	while (pb_next_padded(&extra, &f)) {
		if (f.number == 1 && f.wire == PB_BYTES)
			name = f.bytes;
		else if (f.number == 2 && f.wire == PB_BYTES)
			value = f.bytes;
	}
	if (bytes_left(&name))
		put_text(r, key_of(pftrace_json(name)), value);
}

static void put_number(struct pftrace_reader *r, struct json key, uint64_t value)
{
	size_t at = r->values.len;

	buf_put_u64_text(&r->values, value);
	pftrace_arg_made(r, key, JSON_NUMBER, at);
}

static void put_size(struct pftrace_reader *r, const char *key, struct bytes size)
{
	uint64_t xyz[3] = { 1, 1, 1 };
	struct pb_field f;
	size_t at = r->values.len;

	while (pb_next_padded(&size, &f))
		if (f.number <= 3)
			xyz[f.number - 1] = f.u64;
	buf_putf(&r->values, "[%llu,%llu,%llu]", (unsigned long long)xyz[0],
		 (unsigned long long)xyz[1], (unsigned long long)xyz[2]);
	pftrace_arg_made(r, key_of_word(key), JSON_ARRAY, at);
}

static void put_launch(struct pftrace_reader *r, const struct pftrace_sequence *q, struct bytes b)
{
	struct pb_field f, m;

	while (pb_next_padded(&b, &f)) {
		struct json key = { .type = JSON_END };
		struct pb_field value = { 0 };

		if (f.number < 3)
			put_size(r, f.number == 1 ? "grid" : "block", f.bytes);
		while (f.number == 3 && pb_next_padded(&f.bytes, &m)) {
			if (m.number == 1)
				key = pftrace_named(r, pftrace_name(q, PFTRACE_ARG_NAME, m.u64));
			else if (m.number == 2)
				key = pftrace_json(m.bytes);
			else
				value = m;
		}
		if (!key.len)
			continue;
		if (value.number == 3 || value.number == 4)
			put_number(r, key_of(key), value.u64);
		else if (value.number == 6)
			pftrace_arg(r, key_of(key), pftrace_json(value.bytes));
		else if (value.number == 7)
			pftrace_arg(r, key_of(key),
				    pftrace_named(r, pftrace_name(q, PFTRACE_TEXT, value.u64)));
	}
}

/* Adds the arguments.  `numbers` is indexed by the fields of GpuRenderStageEvent. */
static void parse(struct pftrace_reader *r, const struct pftrace_sequence *q, struct bytes b,
		  uint64_t numbers[STAGE_FIELDS], struct bytes *name)
{
	unsigned waits = 0;
	struct pb_field f;

	while (pb_next_padded(&b, &f)) {
		if (f.number == 18 && waits < WAITS_MOST) /* no known writer packs them */
			put_number(r, key_of_word(wait_keys[waits++]), f.u64);
		else if (f.wire == PB_VARINT && f.number < STAGE_FIELDS)
			numbers[f.number] = f.u64;
		else if (f.number == 6)
			put_extra(r, f.bytes);
		else if (f.number == 17)
			*name = f.bytes;
		else if (f.number == 21)
			put_launch(r, q, f.bytes);
	}
	r->damaged += b.is_truncated;
}

/* Classifies by the stage's name; any other name is a kernel. */
static void classify(const char *stage, struct event *e)
{
	static const struct {
		const char *part;
		uint8_t kind, subkind;
	} rows[] = {
		{ "memcpy", KIND_MEMCPY, 0 },
		{ "copy", KIND_MEMCPY, 0 },
		{ "memset", KIND_MEMSET, 0 },
		{ "annotation", KIND_RANGE, RANGE_GPU_ANNOTATION },
		{ "event", KIND_RANGE, RANGE_OTHER },
		{ "host", KIND_RANGE, RANGE_OTHER },
	};

	e->kind = KIND_KERNEL;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (strcasestr(stage, rows[i].part)) {
			e->kind = rows[i].kind;
			e->subkind = rows[i].subkind;
			return;
		}
}

/* Finds or adds the row of a queue of a GPU and a process. */
static enum status find_queue(struct pftrace_reader *r, struct pftrace_sequence *q,
			      uint32_t machine, const uint64_t numbers[STAGE_FIELDS],
			      struct pftrace_track **out, struct error *err)
{
	const uint64_t *pid = map_find(&q->names[PFTRACE_CONTEXT], numbers[5]);
	uint32_t queue = pftrace_name(q, PFTRACE_SPEC, numbers[13]), process = 0;
	uint64_t uuid = hash_word(hash_word(machine, numbers[11]), queue);

	if (pid)
		TRY(pftrace_process_need(r, machine, (uint32_t)*pid, &process, err));
	TRY(pftrace_track_find(r, hash_word(uuid, process), out, err));
	if ((*out)->process)
		return ST_OK;
	(*out)->name = queue;
	TRY(pftrace_resolve(r, *out, err));
	(*out)->process = process ? process : (*out)->process;
	(*out)->is_gpu = true;
	(*out)->device = numbers[11] < NO_ID ? (uint32_t)numbers[11] : NO_ID;
	return ST_OK;
}

enum status pftrace_take_stage(struct pftrace_reader *r, struct pftrace_sequence *q,
			       const struct pftrace_packet *p, struct error *err)
{
	uint64_t numbers[STAGE_FIELDS] = { 0 };
	struct bytes text = bytes_init(NULL, 0);
	struct event e = { 0 };
	struct kineto_place place;
	struct pftrace_track *t;
	char copy[CUSPY_NAME];
	uint32_t stage, kernel;
	struct json cat, name;
	int64_t begin_ns;

	if (!pftrace_time(r, q, p, &begin_ns))
		return pftrace_lose(r, LOSS_NO_TIME);
	pftrace_args_begin(r);
	parse(r, q, PFTRACE_MESSAGE(p, GPU_STAGE), numbers, &text);
	stage = pftrace_name(q, PFTRACE_SPEC, numbers[14]);
	kernel = pftrace_name(q, PFTRACE_KERNEL, numbers[19]);
	cat = pftrace_named(r, stage);
	classify(cat.text, &e);
	e.name = pftrace_name(q, PFTRACE_NAME, numbers[20]);
	TRY(pftrace_text(r, text, &e.name, err));
	if (!e.name || e.name == stage)
		e.name = kernel ? kernel : stage;
	name = r->element.name = pftrace_named(r, e.name);
	TRY(pftrace_args_end(r, &e, &place, err));
	if (cuspy_name(&r->element, e.kind, copy)) {
		name = key_of_word(copy);
		TRY(import_name(&r->to, name.text, name.len, &e.name, err));
	}
	kineto_name_subkind(&name, &e);
	if (e.kind == KIND_RANGE && e.subkind == RANGE_OTHER)
		TRY(kineto_args_put_const(&r->args, ".cat", 4, &cat, err));
	TRY(find_queue(r, q, (uint32_t)p->numbers[PFTRACE_MACHINE], numbers, &t, err));
	TRY(pftrace_place(r, t, &e, &place, err));
	if (!e.correlation && event_is_gpu_work(&e))
		e.correlation = numbers[1];
	TRY(import_schema(&r->to, &e, err));
	if (numbers[2] > (uint64_t)IMPORT_TIME_MOST)
		return pftrace_lose(r, LOSS_NO_TIME);
	return pftrace_put(r, &e, begin_ns, begin_ns + (int64_t)numbers[2], err);
}

/* ---- counters ---- */

static uint64_t counter_uuid(const struct pftrace_sequence *q, uint64_t iid, uint64_t counter)
{
	return hash_word(hash_word(hash_word(~UINT64_C(0), iid ? q->id : 0), iid), counter);
}

enum status pftrace_describe_counters(struct pftrace_reader *r, const struct pftrace_sequence *q,
				      uint64_t iid, struct bytes descriptor, uint64_t gpu,
				      struct error *err)
{
	static const struct {
		uint8_t measure, unit;
	} units[] = { { 7, UNIT_BYTES }, { 15, UNIT_MHZ },     { 19, UNIT_NS },
		      { 29, UNIT_WATT }, { 34, UNIT_CELSIUS }, { 37, UNIT_PERCENT } };
	struct pb_field f, m;

	while (pb_next_padded(&descriptor, &f)) {
		struct pftrace_track *t;
		uint64_t id = 0, unit = 0, direction = 0;
		uint32_t name = 0;

		if (f.number != 1 || f.wire != PB_BYTES)
			continue;
		while (pb_next_padded(&f.bytes, &m)) {
			if (m.number == 1)
				id = m.u64;
			else if (m.number == 2)
				TRY(pftrace_text(r, m.bytes, &name, err));
			else if (m.number == 7 && !unit)
				unit = m.u64;
			else if (m.number == 11)
				direction = m.u64;
		}
		TRY(pftrace_track_find(r, counter_uuid(q, iid, id), &t, err));
		t->form = PFTRACE_COUNTER;
		t->name = name;
		t->is_forward = direction == 2;
		t->gpu = gpu < NO_ID ? (uint32_t)gpu + 1 : 0;
		for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
			t->unit = units[i].measure == unit ? units[i].unit : t->unit;
	}
	return ST_OK;
}

/* Puts a sample.  Unless its descriptor says otherwise, a sample covers the time since the previous
 * one. */
static enum status put_sample(struct pftrace_reader *r, struct pftrace_track *t, int64_t at_ns,
			      double value, struct error *err)
{
	struct event e = { .kind = KIND_COUNTER, .name = t->name, .value = value };
	int64_t begin_ns = t->is_forward ? at_ns : t->sample_ns;
	bool is_first = !t->is_forward && !t->is_sampled;

	t->is_sampled = true;
	t->sample_ns = at_ns;
	if (is_first)
		return ST_OK;
	if (!t->process) {
		TRY(pftrace_resolve(r, t, err));
		t->device = t->gpu ? t->gpu - 1 : t->device;
	}
	TRY(pftrace_place(r, t, &e, NULL, err));
	return pftrace_put(r, &e, begin_ns, begin_ns, err);
}

enum status pftrace_end_samples(struct pftrace_reader *r, struct error *err)
{
	for (size_t i = 0; i < r->track_count; i++) {
		struct pftrace_track *t = &r->tracks[i];

		if (t->is_sampled && !t->is_forward)
			TRY(put_sample(r, t, t->sample_ns, 0, err));
	}
	return ST_OK;
}

enum status pftrace_take_counter(struct pftrace_reader *r, struct pftrace_sequence *q,
				 const struct pftrace_packet *p, struct error *err)
{
	uint64_t iid = 0, gpu = 0;
	struct bytes b = PFTRACE_MESSAGE(p, GPU_COUNTER);
	struct pb_field f, m;
	bool has_samples = false;
	int64_t at_ns;

	while (pb_next_padded(&b, &f)) {
		iid = f.number == 4 ? f.u64 : iid;
		gpu = f.number == 3 ? f.u64 : gpu;
		has_samples |= f.number == 2;
	}
	for (b = PFTRACE_MESSAGE(p, GPU_COUNTER); pb_next_padded(&b, &f);)
		if (f.number == 1 && f.wire == PB_BYTES)
			TRY(pftrace_describe_counters(r, q, 0, f.bytes, gpu, err));
	/* a packet that only describes counters needs no time */
	if (!has_samples)
		return ST_OK;
	if (!pftrace_time(r, q, p, &at_ns))
		return pftrace_lose(r, LOSS_NO_TIME);
	for (b = PFTRACE_MESSAGE(p, GPU_COUNTER); pb_next_padded(&b, &f);) {
		struct pftrace_track *t;
		uint64_t id = 0;
		double value = 0;

		if (f.number != 2 || f.wire != PB_BYTES)
			continue;
		while (pb_next_padded(&f.bytes, &m)) {
			if (m.number == 1)
				id = m.u64;
			else if (m.number == 2)
				value = (double)(int64_t)m.u64;
			else if (m.number == 3)
				memcpy(&value, &m.u64, sizeof(value));
		}
		TRY(pftrace_track_find(r, counter_uuid(q, iid, id), &t, err));
		TRY(put_sample(r, t, at_ns, value, err));
	}
	return ST_OK;
}

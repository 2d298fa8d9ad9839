/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a newer writer might make it: kinds, columns, members and blocks that nobody knows. */
#include "tests/unit/log_files.h"
#include "convert/source/source.h"
#include "tests/unit/unit.h"

#include "schemas/log/log.h"
#include "schemas/model/records.h"
#include "schemas/model/trace.h"

#include <string.h>

enum { CEILING = 16 << 20, NEW_KIND = 200, NEW_ROLE = 23, NEW_BLOCK = 77 };

static void put_text(struct buf *b, const char *text)
{
	buf_put_varint(b, strlen(text));
	buf_put_text(b, text);
}

static void put_column(struct buf *b, const char *name, unsigned role, unsigned type, unsigned unit)
{
	put_text(b, name);
	buf_put_byte(b, (uint8_t)role);
	buf_put_byte(b, (uint8_t)type);
	buf_put_byte(b, (uint8_t)unit);
}

static void end_block(struct buf *file, unsigned kind, unsigned rows, struct buf *payload)
{
	log_put_block(file, kind, 0, rows, payload, 0, 0);
	buf_clear(payload);
}

/* A row that begins with its length. */
static void put_row(struct buf *b, struct buf *row)
{
	buf_put_varint(b, row->len);
	buf_put(b, row->data, row->len);
	buf_clear(row);
}

static void put_varints(struct buf *b, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_put_varint(b, words[i]);
}
#define PUT(b, ...)                                                                                \
	put_varints(b, (const uint64_t[]){ __VA_ARGS__ },                                          \
		    sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void put_tables(struct buf *file, struct buf *b, struct buf *row)
{
	static const char *const names[] = { "node", "spin", "charm", "mass" };

	PUT(b, 1);
	for (size_t i = 0; i < 4; i++)
		put_text(b, names[i]);
	end_block(file, LOG_NAMES, 4, b);
	PUT(b, 1, 2, 3); /* two keys: charm, of a type that nobody knows, and mass */
	buf_put_byte(b, 9);
	buf_put_byte(b, 200);
	PUT(b, 4);
	buf_put_byte(b, ATTR_I64);
	buf_put_byte(b, UNIT_BYTES);
	end_block(file, LOG_KEYS, 1, b);
	PUT(b, 1, 1, 55, 3); /* charm 55, mass -2 */
	end_block(file, LOG_SCHEMAS, 1, b);
	PUT(b, 1);
	PUT(row, 1, 0, 4711, 0, 2, 0, 99, 98, 97); /* three members too many */
	put_row(b, row);
	end_block(file, LOG_PROCESSES, 1, b);
	PUT(b, 1);
	PUT(row, TRACK_THREAD, 1); /* most members are missing */
	put_row(b, row);
	end_block(file, LOG_TRACKS, 1, b);
	PUT(b, 1, 2, 3);
	end_block(file, NEW_BLOCK, 1, b);
}

static void put_layouts(struct buf *file, struct buf *b, struct buf *row)
{
	PUT(b, 1);
	PUT(row, NEW_KIND);
	put_text(row, "quantum");
	PUT(row, 5);
	put_column(row, "site", LOG_DESC, ATTR_U64, UNIT_ID);
	put_column(row, "qubits", LOG_VALUE, ATTR_U64, UNIT_COUNT);
	put_column(row, "begin", LOG_BEGIN, ATTR_U64, UNIT_NS);
	put_column(row, "energy", NEW_ROLE, ATTR_F64, UNIT_WATT);
	put_column(row, "end", LOG_LENGTH, ATTR_U64, UNIT_NS);
	put_row(b, row);
	PUT(row, KIND_KERNEL);
	put_text(row, "kernel");
	PUT(row, 6);
	put_column(row, "tensor_cycles", NEW_ROLE, ATTR_U64, 250);
	put_column(row, "correlation", NEW_ROLE, ATTR_U64, UNIT_ID); /* by its name */
	put_column(row, "begin", LOG_BEGIN, ATTR_U64, UNIT_NS);
	put_column(row, "grid_id", LOG_ARG, ATTR_I64, UNIT_ID);
	put_column(row, "watts", LOG_CORRELATION, ATTR_F64,
		   UNIT_WATT); /* this kind's join has another name */
	put_column(row, "site", LOG_DESC, ATTR_U64, UNIT_ID);
	buf_put_text(row, "something behind the columns");
	put_row(b, row);
	end_block(file, LOG_FIELDS, 2, b);
	PUT(b, 1);
	PUT(b, 1, 6, 2, 4, 2); /* layout 1, subkind 6, track 1, name 2, shape 1 */
	PUT(b, 2, 0, 0, 0, 1); /* layout 2, track 1, name 2, shape 0 */
	end_block(file, LOG_DESCS, 2, b);
}

static void put_constant(struct buf *b, uint64_t word)
{
	PUT(b, 0, word, 0);
}

/* Words of one byte each. */
static void put_bytes(struct buf *b, uint64_t base, uint64_t divisor, const char *bytes)
{
	buf_put_byte(b, 0x20);
	PUT(b, base, divisor, strlen(bytes));
	buf_put_text(b, bytes);
}

static void put_events(struct buf *file, struct buf *b)
{
	double energy = 2.5;
	uint64_t bits;

	memcpy(&bits, &energy, sizeof(bits));
	put_constant(b, 1);
	put_constant(b, 12);
	put_bytes(b, 1000, 10, "\x01\x02"); /* 1010, 1020 */
	put_constant(b, bits);
	put_constant(b, 5);
	log_put_block(file, LOG_EVENTS, 1, 2, b, 1010, 1025);
	buf_clear(b);
	put_constant(b, 777);
	put_constant(b, 90);
	put_bytes(b, 1000, 1, "\x0b\x0c"); /* 1011, 1012 */
	put_constant(b, 6);
	put_constant(b, bits);
	put_constant(b, 2);
	log_put_block(file, LOG_EVENTS, 2, 2, b, 1011, 1012);
	buf_clear(b);
}

static void make_file(struct buf *file)
{
	uint8_t header[LOG_FILE_HEADER_BYTES];
	struct buf b, row;

	buf_init(&b, LOG_BLOCK_BYTES);
	buf_init(&row, LOG_BLOCK_BYTES);
	buf_init(file, 1 << 20);
	log_put_file_header(header);
	buf_put(file, header, sizeof(header));
	put_tables(file, &b, &row);
	put_layouts(file, &b, &row);
	put_events(file, &b);
	buf_release(&b);
	buf_release(&row);
}

static const struct attr *attr_of(const struct trace *t, const struct attr *attrs, uint32_t count,
				  const char *key)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(trace_text(t, attrs[i].key, NULL), key) == 0)
			return &attrs[i];
	return NULL;
}

static void check_args(const struct trace *t, const struct event *e, const char *key, uint64_t word,
		       unsigned unit)
{
	const struct arg_schema *s = trace_get_schema(t, e->schema);
	const struct attr *a = attr_of(t, s->args, s->arg_count, key);

	if (!CHECK(a != NULL))
		return;
	CHECK_U64(e->args[a - s->args], word);
	CHECK_U64(a->unit, unit);
}

static void check_unknown(const struct trace *t, const struct event *e)
{
	const struct arg_schema *s = trace_get_schema(t, e->schema);
	const struct attr *charm = trace_find_attr(t, e->schema, "charm");
	const struct attr *kind = trace_find_attr(t, e->schema, ".kind");
	double energy = 2.5;
	uint64_t bits;

	memcpy(&bits, &energy, sizeof(bits));
	CHECK_U64(e->kind, KIND_UNKNOWN);
	CHECK_U64(e->subkind, 6);
	CHECK_U64(e->end_ns - e->begin_ns, 5);
	CHECK_STR(trace_text(t, e->name, NULL), "spin");
	CHECK_U64(s->const_count, 3);
	CHECK(charm && charm->type == ATTR_U64 && charm->unit == 200 && charm->bits == 55);
	if (CHECK(kind && kind->type == ATTR_TEXT))
		CHECK_STR(trace_text(t, (uint32_t)kind->bits, NULL), "quantum");
	CHECK_U64(s->arg_count, 2);
	check_args(t, e, "qubits", 12, UNIT_COUNT);
	check_args(t, e, "energy", bits, UNIT_WATT);
}

static void check_kernel(const struct trace *t, const struct event *e)
{
	const struct arg_schema *s = trace_get_schema(t, e->schema);

	CHECK_U64(e->kind, KIND_KERNEL);
	CHECK_U64(e->correlation, 90);
	CHECK_U64(e->end_ns, e->begin_ns);
	CHECK_U64(s->const_count, 0);
	CHECK_U64(s->arg_count, 3);
	check_args(t, e, "tensor_cycles", 777, 250);
	check_args(t, e, "grid_id", 6, UNIT_ID);
	check_args(t, e, "watts", UINT64_C(0x4004000000000000), UNIT_WATT);
}

void test_log_newer_writer(void)
{
	static const struct budget budget = { .opening = CEILING, .scratch = "/tmp" };
	static const uint64_t begins[] = { 1010, 1011, 1012, 1020 };
	struct buf file;
	struct trace *t;
	struct input *in;
	struct source *s = NULL;
	struct batch batch;
	struct error err = { 0 };

	make_file(&file);
	in = log_input(file.data, file.len);
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	CHECK_OK(source_log.open(&s, in, t, &budget, NULL, &err), &err);
	CHECK_U64(trace_lost(t, 0, LOSS_DAMAGED), 0);
	CHECK_U64(trace_lost(t, 0, (enum loss)0), 1); /* the block of a kind that nobody knows */
	CHECK_U64(trace_get_process(t, 1)->pid, 4711);
	if (s && CHECK_OK(source_log.next(s, &batch, &err), &err) && CHECK_U64(batch.count, 4)) {
		for (size_t i = 0; i < 4; i++)
			CHECK_U64(batch.events[i].begin_ns, begins[i]);
		check_unknown(t, &batch.events[0]);
		check_kernel(t, &batch.events[1]);
		check_kernel(t, &batch.events[2]);
		check_unknown(t, &batch.events[3]);
	}
	if (s)
		source_log.close(s);
	input_close(in);
	trace_free(t);
	buf_release(&file);
}

/* Columns that point forward, or have no rows enough, cost their block and say why. */
void test_log_column_refused(void)
{
	static const struct {
		const char *payload; /* of layout 2 */
		size_t len;
	} wrong[] = {
		{ "\x03\x05\x00", 3 },                     /* refers to column 5 */
		{ "\x04\x00\x00", 3 },                     /* a gap that is no begin */
		{ "\x02\x00\x00", 3 },                     /* by a site that comes later */
		{ "\x0f\x00\x00", 3 },                     /* an unknown transform */
		{ "\x50\x00\x00", 3 },                     /* an unknown packing */
		{ "\x20\x00\x01\x03\x01\x02\x03", 7 },     /* three bytes for two rows */
		{ "\x10\x00\x01\x03\x01\x02\x03", 7 },     /* three varints for two rows */
		{ "\x10\x00\x01\x02\x81\x82", 6 },         /* varints without an end */
		{ "\x20\x00\x01\xff\xff\xff\xff\x0f", 8 }, /* a length of 4 GB */
		{ "\x80", 1 },
		{ "", 0 },
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct buf file, b;
		struct trace *t;
		struct error err = { 0 };
		uint64_t events;

		make_file(&file);
		buf_init(&b, LOG_BLOCK_BYTES);
		buf_put(&b, wrong[i].payload, wrong[i].len);
		log_put_block(&file, LOG_EVENTS, 2, 2, &b, 1011, 1012);
		CHECK_OK(trace_new(&t, CEILING, &err), &err);
		CHECK_U64(log_read(file.data, file.len, t, &events, &err), ST_END);
		CHECK_U64(events, 4);
		CHECK_U64(trace_lost(t, 0, LOSS_DAMAGED), 2);
		trace_free(t);
		buf_release(&b);
		buf_release(&file);
	}
}

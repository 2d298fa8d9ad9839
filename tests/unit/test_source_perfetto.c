/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perfetto's packets, made here of text: whole, odd, cut and damaged.
 *
 * A line is a packet.  "8:5" is field 8 with the number 5, "2'main'" a text, "11{9:1}" a message,
 * "47!9" eight bytes of a whole number, "44%1.5" of a floating one.  The seed of the fuzzer is made
 * of the same text.
 */
#include "convert/input/input.h"
#include "convert/source/source.h"
#include "schemas/base/pb.h"
#include "schemas/base/plain.h"
#include "schemas/model/records.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define EPOCH UINT64_C(1700000000000000000)

/* clang-format off */
static const char packets[] =
	"6{1{1:6 2:1000} 1{1:1 2:1700000000000001000} 1{1:3 2:500}} 10:9\n"
	"6{1{1:6 2:2000} 1{1:64 2:7 3:1 4:1000}} 10:1 13:1 59{58:64 11{11:10 31:20}}\n"
	/* names before their use, a thread's descriptor behind it */
	"10:1 13:2 12{1{1:1 2'cpu_op'} 2{1:1 2'aten::mm'} 2{1:2 2'inner'} 3{1:1 2'Sequence number'} "
	"3{1:2 2'shape'} 29{1:5 2'bf16'}}\n"
	"8:1 10:1 13:2 11{9:1 10:1 3:1 4{1:1 3:77} 4{1:2 12{3:4} 12{4:8}} 4{10'nested' "
	"11{10'a' 2:1} 11{10'b\"' 17:5}} 4{10'left' 6'x'} 12:640}\n"
	"8:1 10:1 13:2 11{9:1 10:2 47!55}\n"
	"8:2 10:1 13:2 11{9:2 4{10'late' 3:3}}\n"
	"8:3 10:1 13:2 11{9:2}\n"
	"8:4 10:1 13:2 11{9:3 23'mark' 48!55}\n"
	"60{1:10 4{1:5 2:6 5'main'}}\n"
	"60{1:9 3{1:5 2'python3' 6'trainer'}}\n"
	"60{1:20 2'watts' 5:9 8{6'W' 4:2}}\n"
	/* out of order on its track; another clock; a child of the process */
	"60{1:30 2'row' 5:9}\n"
	"8:700 58:3 10:2 13:1 11{9:1 11:30 23'outer'}\n"
	"8:800 58:3 10:2 11{9:1 11:30 23'second' 22'cuda_runtime'}\n"
	"8:750 58:3 10:2 11{9:1 11:30 23'first'}\n"
	"8:760 58:3 10:2 11{9:2 11:30}\n"
	"8:820 58:3 10:2 11{9:2 11:30}\n"
	"8:900 58:3 10:2 11{9:2 11:30}\n"
	"8:1300 10:2 11{9:4 11:20 44%2.5}\n"
	/* never ended; an old event of its own length; an id's pair */
	"8:1400 10:2 11{9:1 11:30 23'open'}\n"
	"8:1500 10:2 11{11:31 23'old' 6{2:88 3:2}}\n"
	"8:1600 10:2 11{11:31 23'async' 22'net' 6{2:98 10:4}}\n"
	"8:1700 10:2 11{11:31 22'net' 6{2:101 10:4}}\n"
	/* work of a GPU, as Cuspy writes it */
	"10:3 13:1 12{24{1:1 2'Kernel' 4:2} 24{1:2 2'Memcpy'} 24{1:100 2'Stream 7'} 23{1:8 2:5 3:4} "
	"1000{1:3 2'_Z3mulv' 3'mul()'} 1001{1:4 2'registers_per_thread'}}\n"
	"8:1800 10:3 13:2 53{1:42 2:100 5:8 11:0 13:100 14:1 19:3 21{1{1:16 2:2 3:1} 2{1:128} "
	"3{1:4 4:32}} 6{1'stream id' 2'7'} 6{1'correlation' 2'41'} 18:40}\n"
	"8:1900 10:3 13:2 53{1:43 2:50 5:8 11:0 13:100 14:2 6{1'bytes' 2'4096'} "
	"6{1'copy kind' 2'HtoD'} 6{1'src kind' 2'pinned'} 6{1'dst kind' 2'device'}}\n"
	"8:1790 10:3 13:2 11{9:1 11:10 23'cudaLaunchKernel' 22'cuda_runtime' 3000{1:41}}\n"
	"8:1795 10:3 13:2 11{9:2 11:10}\n"
	"10:3 13:2 12{47{1:1 2{1{1:6 2'power' 7:29 11:2}} 3:0}}\n"
	"8:1950 10:3 13:2 52{4:1 2{1:6 3%300.5}}\n"
	/* without state, of other sources, of no kind */
	"8:1960 10:4 13:2 11{9:3 10:1}\n"
	"8:1970 10:4 1{1:1}\n"
	"8:1970 10:4 500{1:1}\n"
	"8:1970 10:4 33{1:1}\n";
/* clang-format on */

/* ---- text to packets ---- */

static const char *encode_fields(struct buf *b, const char *at)
{
	while (*at && *at != '\n' && *at != '}') {
		uint32_t field = (uint32_t)strtoul(at, (char **)&at, 10);
		char form = *at++;
		size_t begin, len;

		if (form == ':') {
			pb_put_u64(b, field, strtoull(at, (char **)&at, 10));
		} else if (form == '!') {
			pb_put_fixed64(b, field, strtoull(at, (char **)&at, 10));
		} else if (form == '%') {
			pb_put_f64(b, field, strtod(at, (char **)&at));
		} else if (form == '\'') {
			len = strcspn(at, "'");
			pb_put_bytes(b, field, at, len);
			at += len + 1;
		} else if (CHECK(form == '{')) {
			begin = pb_begin(b, field);
			at = encode_fields(b, at) + 1;
			pb_end(b, begin);
		} else {
			return at + strlen(at);
		}
		at += *at == ' ';
	}
	return at;
}

static void encode(struct buf *b, const char *text)
{
	buf_init(b, 1 << 20);
	while (*text) {
		size_t begin = pb_begin(b, 1);

		text = encode_fields(b, text);
		pb_end(b, begin);
		text += *text == '\n';
	}
}

/* ---- reading ---- */

struct made {
	struct folder folder;
	struct trace *trace;
	struct input *in;
	struct source *source;
	struct event *all;
	size_t count;
	struct error err;
	enum status status;
	struct buf *said; /* what each event says, in words; NULL: nobody asks */
};

static void say_attrs(struct buf *b, const struct trace *t, const struct attr *all, uint32_t count,
		      const uint64_t *words)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bits = words ? words[i] : all[i].bits;

		buf_putf(b, " %s:%u:%u", trace_text(t, all[i].key, NULL), all[i].type, all[i].unit);
		if (all[i].type > ATTR_F64)
			buf_putf(b, "=%s", trace_text(t, (uint32_t)bits, NULL));
		else
			buf_putf(b, "=%llx", (unsigned long long)bits);
	}
}

static void say_events(struct buf *b, const struct trace *t, const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		const struct event *e = &batch->events[i];
		const struct arg_schema *s = trace_get_schema(t, e->schema);
		const struct track *k = trace_get_track(t, e->track);

		buf_putf(b, "%s %u/%u %llx %llx n%llx b%llx f%x on %u.%llx.%u",
			 trace_text(t, e->name, NULL), e->kind, e->subkind,
			 (unsigned long long)e->begin_ns, (unsigned long long)e->end_ns,
			 (unsigned long long)e->number, (unsigned long long)e->bytes, e->flags,
			 k->type, (unsigned long long)k->id, k->device);
		say_attrs(b, t, s->consts, e->schema ? s->const_count : 0, NULL);
		say_attrs(b, t, s->args, e->args ? s->arg_count : 0, e->args);
		buf_put_byte(b, '\n');
	}
}

static void open_path(struct made *m, const char *path)
{
	struct budget budget = { .opening = 4 << 20, .resident = 65536, .scratch = "/tmp" };

	struct batch batch;

	m->all = NULL;
	m->count = 0;
	m->err = (struct error){ 0 };
	CHECK_OK(trace_new(&m->trace, 64 << 20, &m->err), &m->err);
	if (CHECK_OK(input_open(&m->in, path, "/tmp", &m->err), &m->err))
		m->status = source_open(&m->source, m->in, m->trace, &budget, NULL, &m->err);
	while (m->status == ST_OK && source_next(m->source, &batch, &m->err) == ST_OK) {
		if (m->said)
			say_events(m->said, m->trace, &batch);
		m->all = realloc(m->all, (m->count + batch.count) * sizeof(*m->all));
		memcpy(m->all + m->count, batch.events, batch.count * sizeof(*m->all));
		m->count += batch.count;
	}
}

static void close_trace(struct made *m)
{
	free(m->all);
	source_close(m->source);
	input_close(m->in);
	trace_free(m->trace);
	m->source = NULL;
}

static void open_bytes(struct made *m, const void *bytes, size_t len)
{
	*m = (struct made){ .trace = NULL };
	folder_make(&m->folder);
	open_path(m, folder_write(&m->folder, "t.pftrace", bytes, len));
}

static void open_text(struct made *m, const char *text)
{
	struct buf b;

	encode(&b, text);
	open_bytes(m, b.data, b.len);
	buf_release(&b);
}

static void close_made(struct made *m)
{
	close_trace(m);
	folder_remove(&m->folder);
}

static const struct event *find(const struct made *m, const char *name)
{
	static const struct event none = { .kind = KIND_END };

	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(trace_text(m->trace, m->all[i].name, NULL), name))
			return &m->all[i];
	fprintf(stderr, "\tno event %s\n", name);
	CHECK(!"the event is there");
	return &none;
}

static const char *text_attr(const struct made *m, const struct event *e, const char *key)
{
	const char *text = trace_attr_text(m->trace, e->schema, key);

	return text ? text : "";
}

static void check_times(const struct event *e, uint64_t begin, uint64_t end)
{
	CHECK_U64(e->begin_ns - EPOCH, begin);
	CHECK_U64(e->end_ns - EPOCH, end);
}

static const struct track *track_of(const struct made *m, const struct event *e)
{
	return trace_get_track(m->trace, e->track);
}

static void check_slices(const struct made *m)
{
	const struct event *e = find(m, "aten::mm");
	const struct process *p = trace_get_process(m->trace, track_of(m, e)->process);

	check_times(e, 3000, 9000); /* 2000, and deltas of 1 us: the clock's own 7 is no time */
	CHECK(e->kind == KIND_RANGE && e->subkind == RANGE_OP && e->number == 77);
	CHECK(track_of(m, e)->type == TRACK_THREAD && track_of(m, e)->id == 6);
	CHECK_STR(trace_text(m->trace, track_of(m, e)->name, NULL), "main");
	CHECK_U64(p->pid, 5);
	CHECK_STR(trace_text(m->trace, p->command, NULL), "trainer");
	CHECK_STR(trace_text(m->trace, p->host, NULL), "t.pftrace");
	CHECK_STR(text_attr(m, e, "shape"), "[4,8]");
	CHECK_STR(text_attr(m, e, "nested"), "{\"a\":true,\"b\\\"\":\"bf16\"}");
	CHECK_STR(text_attr(m, e, "left"), "x");
	e = find(m, "inner");
	check_times(e, 4000, 6000);
	CHECK_U64(trace_attr_number(m->trace, e->schema, "late"), 3);
	CHECK(e->kind == KIND_RANGE && e->subkind == RANGE_ANNOTATION);
	e = find(m, "mark");
	CHECK(e->kind == KIND_MARK && e->subkind == MARK_FLOW_END && e->number == 1);
	check_times(find(m, "outer"), 1200, 1400);
	e = find(m, "first"); /* the track is in no order: by time they are within each other */
	check_times(e, 1250, 1260);
	CHECK(track_of(m, e)->type == TRACK_THREAD && track_of(m, e)->id > UINT32_MAX);
	CHECK_STR(trace_text(m->trace, track_of(m, e)->name, NULL), "row");
	e = find(m, "second");
	check_times(e, 1300, 1320);
	CHECK(e->kind == KIND_API && e->subkind == API_RUNTIME);
	e = find(m, "open");
	CHECK(e->flags & EVENT_NEVER_ENDED && e->end_ns - EPOCH == 13000);
	check_times(find(m, "old"), 1500, 3500);
	check_times(find(m, "async"), 1600, 1700);
	CHECK_STR(text_attr(m, find(m, "async"), ".cat"), "net");
	for (size_t i = 0, begins = 0; i < m->count; i++) {
		begins += m->all[i].kind == KIND_MARK && m->all[i].subkind == MARK_FLOW_BEGIN;
		if (i + 1 == m->count)
			CHECK_U64(begins, 1);
	}
}

static void check_gpu(const struct made *m)
{
	const struct event *e = find(m, "mul()");
	const struct event *call = find(m, "cudaLaunchKernel");

	check_times(e, 1800, 1900);
	CHECK(e->kind == KIND_KERNEL && e->correlation == 41 && call->correlation == 41);
	CHECK(track_of(m, e)->type == TRACK_STREAM && track_of(m, e)->id == 7);
	CHECK(track_of(m, e)->device == 0);
	CHECK_U64(track_of(m, e)->process, track_of(m, call)->process);
	CHECK_U64(trace_attr_number(m->trace, e->schema, "grid_x"), 16);
	CHECK_U64(trace_attr_number(m->trace, e->schema, "grid_y"), 2);
	CHECK_U64(trace_attr_number(m->trace, e->schema, "block_x"), 128);
	CHECK_U64(trace_attr_number(m->trace, e->schema, "registers"), 32);
	CHECK_U64(trace_launches(m->trace, call->track), 1);
	e = find(m, "Memcpy HtoD (Pinned -> Device)");
	CHECK(e->kind == KIND_MEMCPY && e->subkind == 1 && e->bytes == 4096);
	CHECK_U64(e->correlation, 43);
	e = find(m, "power");
	CHECK(e->kind == KIND_COUNTER && e->value == 300.5);
	CHECK(track_of(m, e)->unit == UNIT_WATT && track_of(m, e)->device == 0);
}

static void check_counters(const struct made *m)
{
	double sum = 0;
	unsigned count = 0;

	for (size_t i = 0; i < m->count; i++)
		if (m->all[i].kind == KIND_COUNTER && track_of(m, &m->all[i])->unit == UNIT_WATT &&
		    track_of(m, &m->all[i])->device == NO_ID) {
			sum += m->all[i].value;
			count++;
		}
	CHECK_U64(count, 2); /* beside an event, and by itself; twice the value each */
	CHECK(sum == 2 * 640 + 2 * 2.5);
}

static void check_all(const struct made *m)
{
	const struct attr *unread;

	CHECK_U64(m->count, 16);
	check_slices(m);
	check_gpu(m);
	check_counters(m);
	CHECK(trace_provenance(m->trace)->epoch_known && trace_provenance(m->trace)->is_whole);
	CHECK_U64(trace_lost(m->trace, 0, LOSS_DAMAGED), 1); /* without state */
	CHECK_U64(trace_lost(m->trace, 0, LOSS_UNREAD), 2);
	unread = trace_find_attr(m->trace, trace_get_process(m->trace, 1)->schema,
				 "packets_not_read");
	if (CHECK(unread != NULL))
		CHECK_STR(trace_text(m->trace, (uint32_t)unread->bits, NULL),
			  "ftrace_events (1), field 500 (1)");
}

void test_perfetto_source_events(void)
{
	struct made m;

	open_text(&m, packets);
	if (CHECK_OK(m.status, &m.err))
		check_all(&m);
	close_made(&m);
}

/* The same in gzip, and in packets that are compressed as zlib and as gzip have it. */
void test_perfetto_source_compressed(void)
{
	struct buf plain, outer;
	uint8_t packed[8192];
	struct made m = { .trace = NULL };

	encode(&plain, packets);
	folder_make(&m.folder);
	open_path(&m, folder_gzip(&m.folder, "t.pftrace", plain.data, plain.len, 0));
	if (CHECK_OK(m.status, &m.err))
		check_all(&m);
	close_made(&m);
	for (int bits = MAX_WBITS; bits <= MAX_WBITS + 16; bits += 16) {
		z_stream z = { .next_in = plain.data,
			       .avail_in = (uInt)plain.len,
			       .next_out = packed,
			       .avail_out = sizeof(packed) };
		size_t begin;

		CHECK(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
		CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
		deflateEnd(&z);
		buf_init(&outer, 1 << 20);
		begin = pb_begin(&outer, 1);
		pb_put_bytes(&outer, 50, packed, z.total_out);
		pb_end(&outer, begin);
		open_bytes(&m, outer.data, outer.len);
		if (CHECK_OK(m.status, &m.err))
			check_all(&m);
		close_made(&m);
		open_bytes(&m, outer.data, outer.len - 40); /* it is cut: no packet is whole */
		CHECK(m.count == 0);
		close_made(&m);
		outer.data[outer.len / 2] ^=
			0x55; /* its middle is damaged: what is before counts */
		open_bytes(&m, outer.data, outer.len);
		CHECK_U64(m.status, ST_OK);
		CHECK(m.count < 16 && trace_lost(m.trace, 0, LOSS_DAMAGED) > 0);
		close_made(&m);
		buf_release(&outer);
	}
	buf_release(&plain);
}

/* One number or text is another: what becomes of it. */
void test_perfetto_source_odd(void)
{
	static const struct {
		const char *from, *to;
		size_t events;
		uint64_t damaged, no_time;
	} cases[] = {
		{ "8:1500 10:2", "8:18446744073709551615 10:2", 15, 1, 1 },
		{ "8:1500 10:2", "8:9000000000000000000 10:2", 15, 1, 1 },
		{ "8:1500 10:2", "10:2", 15, 1, 1 },
		{ "8:1500 10:2", "8:1500 58:77 10:2", 15, 1, 1 },
		{ "8:1500 10:2", "8:1500 58:9 10:2", 15, 1, 1 },
		{ "8:820 58:3", "8:720 58:3", 16, 1, 0 }, /* an end before all that is open */
		{ "53{1:42 2:100", "53{1:42 2:18446744073709551615", 15, 1, 1 },
		{ "14:1 19:3", "14:77 19:78", 16, 1, 0 }, /* numbers that stand for nothing */
		{ "13:100 14:2", "14:2", 16, 1, 0 },
		{ "3{1:4 4:32}", "3{1:9 4:32} 3{2'' 4:1} 3{4:1}", 16, 1, 0 },
		{ "5:8 11:0 13:100 14:1", "5:9 11:4294967295 13:100 14:1", 16, 1, 0 },
		{ "6{2:88 3:2}", "6{2:88 3:18446744073709551615}", 16, 2, 0 },
		{ "6{2:88 3:2}", "6{2:88 3:9223372036854775807}", 16, 1, 0 },
		{ "6{2:88 3:2}", "6{2:200}", 16, 1, 0 },
		{ "60{1:30 2'row' 5:9}", "60{1:30 5:30}", 16, 1, 0 }, /* its own parent */
		{ "60{1:30 2'row' 5:9}", "60{1:30 5:29}\n60{1:29 5:30}", 16, 1, 0 },
		{ "60{1:10 4{1:5 2:6 5'main'}}", "60{1:10}", 16, 1, 0 },
		{ "60{1:9 3{1:5 2'python3' 6'trainer'}}", "60{1:9 3{}}", 16, 1, 0 },
		{ "4{10'left' 6'x'}", "4{10'left'} 4{6'x'} 4{10'left' 8{}} 4{10'left' 9'{'}", 16, 1,
		  0 },
		{ "4{10'left' 6'x'}", "4{10'left' 6'x'} 4{10'left' 6'y'}", 16, 1, 0 },
		{ "1{1:64 2:7 3:1 4:1000}", "1{1:64 2:7 3:1 4:18446744073709551615}", 16, 1, 0 },
		{ "59{58:64 11{11:10 31:20}}", "59{58:64 11{11:10}}", 15, 1, 0 },
		{ "13:1 59{58:64", "42:1 59{58:64", 11, 6, 0 }, /* a loss, and no state since */
		{ "11{9:2 4{10'late' 3:3}}", "11{9:2 4{10'late' 3:3", 16, 1, 0 },
		{ "11{9:2 4{10'late' 3:3}}", "11{9:5}", 16, 1, 0 },
		{ "52{4:1 2{1:6 3%300.5}}", "52{4:9 2{1:6 3%300.5} 2{1:6 2:1}}", 17, 1, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *at = strstr(packets, cases[i].from);
		char text[2 * sizeof(packets)];
		struct made m;

		if (!CHECK(at != NULL))
			continue;
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - packets), packets, cases[i].to,
			 at + strlen(cases[i].from));
		open_text(&m, text);
		if (!CHECK_OK(m.status, &m.err) || !CHECK_U64(m.count, cases[i].events) ||
		    !CHECK_U64(trace_lost(m.trace, 0, LOSS_DAMAGED), cases[i].damaged) ||
		    !CHECK_U64(trace_lost(m.trace, 0, LOSS_NO_TIME), cases[i].no_time))
			fprintf(stderr, "\tin %s\n", cases[i].to);
		close_made(&m);
	}
}

static uint32_t dice(uint32_t *state, uint32_t sides)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % sides;
}

/* A begin and its end, or an instant, like many others; now and then another key, type, or meaning
 * of a number, names of its own, or a sequence whose times count from the packet before. */
static void put_slice(struct buf *b, uint32_t *state, unsigned at)
{
	static const char *const kinds[] = {
		"3:%u", "3:%u", "4:%u", "3:%u", "4:18446744073709551%u", "5%%%u.5", "2:%u", "6'%u'"
	};
	unsigned name = 1 + dice(state, 3), count = dice(state, 8) ? 3 : dice(state, 5);

	if (!dice(state, 20)) /* a name that comes to be another one */
		buf_putf(b, "10:1 13:2 12{2{1:%u 2'name%u'}}\n", name, dice(state, 4));
	if (!dice(state, 60))
		buf_putf(
			b,
			"10:1 13:1 12{1{1:1 2'cuda_runtime'} 1{1:2 2'kernel'} 2{1:1 "
			"2'cudaLaunchKernel'} "
			"2{1:2 2'mm'} 3{1:1 2'correlation'} 3{1:2 2'stream'} 3{1:3 2'External id'} "
			"3{1:4 2'flops'}}\n");
	unsigned counts = !dice(state, 3), is_text = !dice(state, 3), is_instant = !dice(state, 6);

	buf_putf(b, "8:%u 10:%u 13:2", counts ? 1 + dice(state, 9) : 10 * at, 1 + counts);
	buf_put_text(b, dice(state, 2) ? " 3:1000 79:70000" : "");
	buf_putf(b, " 11{9:%u 11:%u", is_instant ? 3 : 1, 40 + dice(state, 2));
	if (is_text)
		buf_putf(b, " 23'%s name of %u' 22'%s'", dice(state, 2) ? "R\10" : "a",
			 dice(state, 5), dice(state, 5) ? "kernel" : "");
	else
		buf_putf(b, " 10:%u 3:%u", name, 1 + dice(state, 2));
	if (!dice(state, 3))
		buf_putf(b, " 47!%u", 1 + dice(state, 5));
	for (unsigned i = 0; i < count; i++) {
		buf_putf(b, " 4{1:%u ", 1 + (i + dice(state, 20) / 19) % 4);
		buf_putf(b, kinds[dice(state, 10) ? i : dice(state, 8)],
			 dice(state, i == 1 ? 2 : 90));
		buf_put_text(b, dice(state, 50) ? "}" : " 3:7}");
	}
	if (!dice(state, 9))
		buf_putf(b, " 4{1:4 12{3:%u} 12{3:1}}", dice(state, 3));
	buf_put_text(b, "}\n");
	if (is_instant)
		return;
	buf_putf(b, "8:%u 10:%u 13:2 11{9:2 11:%u%s}\n",
		 counts ? dice(state, 9) : 10 * at + 5 + dice(state, 9), 1 + counts,
		 40 + dice(state, 2), is_text ? " 23'a'" : "");
}

/* A begin or end that says nothing but its time, as most do; now and then the same bytes come to
 * mean something else, are no longer known, or have a time that is earlier or stands twice. */
static void put_lean(struct buf *b, uint32_t *state, unsigned at)
{
	unsigned sequence = 1 + !dice(state, 3), counts = sequence == 2;
	unsigned time = counts            ? dice(state, 9)
			: dice(state, 25) ? 10 * at
					  : 10 * at - dice(state, 9) * at / 9;

	if (!dice(state, 40))
		buf_putf(b, "10:1 13:2 59{11{11:%u}}\n", 40 + dice(state, 30));
	if (!dice(state, 90))
		buf_putf(b, "10:%u 42:1\n", sequence);
	if (!dice(state, 30))
		buf_putf(b,
			 "10:%u 13:1 59{58:%u 11{11:%u}} 12{2{1:1 2'n%u'} 2{1:2 2'mm'} "
			 "1{1:1 2'kernel'}}\n",
			 sequence, counts ? 64 : 6, 40 + dice(state, 30), dice(state, 3));
	if (dice(state, 2))
		buf_putf(b, "8:%u 11{3:1 9:1 10:%u} 10:%u 13:2%s\n", time, 1 + dice(state, 2),
			 sequence, dice(state, 8) ? "" : " 8:5");
	else
		buf_putf(b, "8:%u 11{9:2} 10:%u 13:2\n", time, sequence);
}

/* Samples of an incremental counter add up for each sequence since its state was cleared; the SDK
 * leaves counters of a known type without a name; a counter of a GPU is described without a time,
 * and its samples say what was before them.
 */
void test_perfetto_source_counters(void)
{
	static const char text[] = "10:1 13:1 60{1:7 2'added' 8{5:1}}\n"
				   "10:2 13:1 60{1:8 8{1:2}}\n"
				   "8:100 10:1 13:2 11{9:4 11:7 30:100}\n"
				   "8:150 10:2 13:2 11{9:4 11:7 30:50}\n"
				   "8:200 10:1 13:2 11{9:4 11:7 30:10}\n"
				   "10:1 13:1\n"
				   "8:250 10:1 13:2 11{9:4 11:7 30:1}\n"
				   "8:300 10:2 13:2 11{9:4 11:7 30:5}\n"
				   "8:350 10:2 13:2 11{9:4 11:8 30:9}\n"
				   "10:3 52{3:0 1{1{1:4 2'clock'}}}\n"
				   "8:400 10:3 52{2{1:4 2:1500}}\n"
				   "8:450 10:3 52{2{1:4 2:1700}}\n";
	static const struct {
		const char *name;
		double value;
	} want[] = { { "added", 100 },  { "added", 50 }, { "added", 110 },
		     { "added", 1 },    { "added", 55 }, { "thread_instruction_count", 9 },
		     { "clock", 1700 }, { "clock", 0 } };
	struct made m;

	open_text(&m, text);
	if (CHECK_OK(m.status, &m.err) && CHECK_U64(m.count, 8)) {
		CHECK_U64(m.all[7].begin_ns - m.all[6].begin_ns, 50);
		for (size_t i = 0; i < m.count; i++) {
			CHECK_STR(trace_text(m.trace, m.all[i].name, NULL), want[i].name);
			CHECK(m.all[i].value == want[i].value);
		}
	}
	CHECK_U64(trace_lost(m.trace, 0, LOSS_NO_TIME), 0);
	close_made(&m);
}

/* An end of an outer slice by its name ends the inner ones, and one of another name nothing; old
 * events have their times in microseconds of the monotonic clock or since the event before. */
void test_perfetto_source_old(void)
{
	static const char text[] = "8:1000 10:1 13:1 6{1{1:6 2:5000000} 1{1:3 2:4000000}} "
				   "44{1:5 2:6 6:4000} 60{1:40 4{1:5 2:6}} 59{11{11:40}}\n"
				   "10:1 11{9:1 16:4001 23'outer'}\n"
				   "10:1 11{9:1 1:2 23'inner'}\n"
				   "10:1 11{9:2 1:3 23'other'}\n"
				   "10:1 11{9:2 1:1 23'outer'}\n"
				   "10:1 11{9:2 1:1}\n"
				   "10:1 42:1\n"
				   "10:1 11{9:1 1:1 23'lost'}\n";
	static const struct {
		const char *name;
		uint64_t begin_us, dur_us;
	} want[] = { { "outer", 5001, 5 }, { "inner", 5002, 4 } };
	struct made m;

	open_text(&m, text);
	if (CHECK_OK(m.status, &m.err) && CHECK_U64(m.count, 2))
		for (size_t i = 0; i < m.count; i++) {
			const struct event *e = &m.all[i];

			CHECK_STR(trace_text(m.trace, e->name, NULL), want[i].name);
			CHECK_U64(e->begin_ns, want[i].begin_us * 1000);
			CHECK_U64(e->end_ns - e->begin_ns, want[i].dur_us * 1000);
		}
	CHECK_U64(trace_lost(m.trace, 0, LOSS_DAMAGED), 2);
	CHECK_U64(trace_lost(m.trace, 0, LOSS_NO_TIME), 1);
	close_made(&m);
}

/* A file without events still says what it is and what it holds. */
void test_perfetto_source_empty(void)
{
	const struct arg_schema *said;
	struct made m;

	open_text(&m, "10:1 1{1:0}\n10:1 1{1:1}\n");
	if (CHECK_OK(m.status, &m.err) && CHECK_U64(trace_count(m.trace, TRACE_PROCESSES), 1)) {
		said = trace_get_schema(m.trace, trace_get_process(m.trace, 1)->schema);
		CHECK(said->const_count == 1 &&
		      !strcmp(trace_text(m.trace, (uint32_t)said->consts->bits, NULL),
			      "ftrace_events (2)"));
	}
	close_made(&m);
}

/* By templates, by the bytes, and without both: the same events, arguments and losses. */
void test_perfetto_source_twice(void)
{
	for (uint32_t seed = 1; seed <= 12; seed++) {
		struct buf text, said[2];
		uint32_t state = seed;

		buf_init(&text, 1 << 20);
		buf_put_text(&text, "10:1 13:1 12{2{1:1 2'first'}}\n60{1:40 4{1:5 2:6}}\n60{1:41 "
				    "4{1:5 2:7}}\n8:1 10:2 13:1 59{58:64} 12{2{1:1 2'mm'}} "
				    "6{1{1:6 2:1} 1{1:64 2:0 3:1}}\n");
		for (unsigned i = 1; i <= 500; i++) {
			put_slice(&text, &state, i);
			for (unsigned k = 3 * dice(&state, 3); k; k--)
				put_lean(&text, &state, i);
		}
		buf_put_byte(&text, 0);
		for (size_t i = 0; i < 2; i++) {
			struct buf packed;
			struct made m = { .said = &said[i] };

			plain_ways = i == 1;
			buf_init(&said[i], 16 << 20);
			encode(&packed, (const char *)text.data);
			folder_make(&m.folder);
			open_path(&m,
				  folder_write(&m.folder, "t.pftrace", packed.data, packed.len));
			CHECK(m.count > 400);
			for (unsigned why = 0; why < LOSS_END; why++)
				buf_putf(
					&said[i], "%llu ",
					(unsigned long long)trace_lost(m.trace, 0, (enum loss)why));
			for (uint32_t k = 1; k <= trace_count(m.trace, TRACE_TRACKS); k++)
				buf_putf(&said[i], "%llu ",
					 (unsigned long long)trace_launches(m.trace, k));
			buf_release(&packed);
			close_made(&m);
		}
		plain_ways = false;
		CHECK_STR(buf_text(&said[0]), buf_text(&said[1]));
		buf_release(&text);
		buf_release(&said[0]);
		buf_release(&said[1]);
	}
}

/* The last time of a packet counts, also if the packet equals an earlier one except for the first
 * time, and that was 0. */
void test_perfetto_source_two_times(void)
{
	struct buf text;
	struct made m;

	buf_init(&text, 1 << 16);
	buf_put_text(&text, "10:1 13:1 60{1:40 4{1:5 2:6}} 12{2{1:1 2'n'}} 59{11{11:40}}\n");
	for (unsigned i = 0; i < 20; i++)
		buf_putf(&text, "8:%u 11{9:1 10:1} 10:1 13:2 8:500\n8:600 11{9:2} 10:1 13:2\n",
			 i < 9 ? 0 : 300);
	open_text(&m, buf_text(&text));
	CHECK_U64(m.count, 20);
	for (size_t i = 0; i < m.count; i++)
		CHECK(m.all[i].begin_ns == 500 && m.all[i].end_ns == 600);
	buf_release(&text);
	close_made(&m);
}

/* Which begins and ends belong together, as the trace processor pairs them: asynchronous ones by
 * category, scope and id, and by process if the id is a local one; on a track whose events are not
 * in order, ends by their names. */
void test_perfetto_source_pairs(void)
{
	static const char head[] = "10:1 13:1 60{1:10 4{1:5 2:6}} 59{11{11:10}} 12{1{1:1 2'cat'}}\n"
				   "10:2 13:1 60{1:20 4{1:7 2:8}} 59{11{11:20}} 12{1{1:1 2'cat'} "
				   "1{1:2 2'other'}}\n";
	static const struct {
		const char *text;
		uint64_t first, second; /* durations; 0: there is no second */
		uint64_t damaged;
	} cases[] = {
		{ "8:100 10:1 11{3:1 23'x' 6{2:98 10:4}}\n8:150 10:2 11{3:1 23'x' 6{2:98 10:4}}\n"
		  "8:300 10:1 11{3:1 6{2:101 10:4}}\n8:400 10:2 11{3:1 6{2:101 10:4}}\n",
		  200, 250, 0 },
		{ "8:100 10:1 11{3:1 23'x' 6{2:98 11:4}}\n8:400 10:2 11{22'cat' 6{2:101 11:4}}\n",
		  300, 0, 0 },
		{ "8:100 10:1 11{3:1 23'x' 6{2:98 11:4}}\n8:400 10:2 11{3:2 6{2:101 11:4}}\n", 300,
		  0, 1 }, /* never ended: until the last end of the file */
		{ "8:100 10:1 11{3:1 23'x' 6{2:98 6:4 7's'}}\n"
		  "8:150 10:1 11{3:1 23'x' 6{2:98 6:4 7't'}}\n"
		  "8:300 10:1 11{3:1 6{2:101 6:4 7's'}}\n8:400 10:1 11{3:1 6{2:101 6:4 7't'}}\n",
		  200, 250, 0 },
		{ "8:100 10:1 11{9:1 23'outer'}\n8:300 10:1 11{9:1 23'x'}\n"
		  "8:200 10:1 11{9:2 23'else'}\n8:400 10:1 11{9:2 23'x'}\n8:500 10:1 11{9:2}\n",
		  400, 100, 1 },
		{ "8:300 10:1 11{9:1 23'outer'}\n8:200 10:1 11{9:1 23'outer'}\n"
		  "8:400 10:1 11{9:1 23'x'}\n8:500 10:1 11{9:2 23'outer'}\n8:600 10:1 11{9:2}\n",
		  400, 200, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[1024];
		struct made m;

		snprintf(text, sizeof(text), "%s%s", head, cases[i].text);
		open_text(&m, text);
		if (!CHECK(m.count > (cases[i].second != 0)) ||
		    !CHECK_U64(m.all[0].end_ns - m.all[0].begin_ns, cases[i].first) ||
		    (cases[i].second &&
		     !CHECK_U64(m.all[1].end_ns - m.all[1].begin_ns, cases[i].second)) ||
		    !CHECK_U64(trace_lost(m.trace, 0, LOSS_DAMAGED), cases[i].damaged))
			fprintf(stderr, "\tin case %zu\n", i);
		close_made(&m);
	}
}

/* A key whose numbers repeat in other files has another one in each event here: the schemas do not
 * grow with the events. */
void test_perfetto_source_values(void)
{
	enum { SLICES = 10000 };
	struct buf text, packed, said;
	struct made m = { .said = &said };
	const char *at;
	char value[32];

	buf_init(&text, 2 << 20);
	buf_init(&said, 4 << 20);
	buf_put_text(&text, "60{1:40 4{1:5 2:6}}\n");
	for (unsigned i = 1; i <= SLICES; i++)
		buf_putf(&text, "8:%u 11{9:1 11:40 23'n' 4{10'size' 3:%u}}\n8:%u 11{9:2 11:40}\n",
			 10 * i, 7 * i, 10 * i + 5);
	encode(&packed, buf_text(&text));
	folder_make(&m.folder);
	open_path(&m, folder_write(&m.folder, "t.pftrace", packed.data, packed.len));
	CHECK_U64(m.count, SLICES);
	CHECK(trace_count(m.trace, TRACE_SCHEMAS) < SLICES / 2);
	at = buf_text(&said);
	for (unsigned i = 1; i <= SLICES && at; i++) {
		snprintf(value, sizeof(value), " size:%u:0=%x\n", ATTR_U64, 7 * i);
		at = strstr(at, value);
	}
	CHECK(at != NULL);
	buf_release(&text);
	buf_release(&packed);
	buf_release(&said);
	close_made(&m);
}

/* Each file that is cut gives a beginning of the events and says so. */
void test_perfetto_source_cut(void)
{
	struct buf b;
	size_t whole = 0, ends = 0;

	encode(&b, packets);
	for (size_t len = 1; len < b.len; len++) {
		struct made m;

		open_bytes(&m, b.data, len);
		if (m.status == ST_OK) {
			whole += trace_provenance(m.trace)->is_whole;
			CHECK(m.count <= 16);
		} else {
			CHECK(m.err.text[0] != 0);
		}
		close_made(&m);
	}
	for (const char *at = packets; (at = strchr(at, '\n')); at++)
		ends++;
	CHECK_U64(whole, ends - 1); /* a cut between two packets cannot be told */
	buf_release(&b);
}

void test_perfetto_source_damaged(void)
{
	struct buf b;
	unsigned readable = 0;
	uint64_t random = 1;

	encode(&b, packets);
	for (unsigned i = 0; i < 400; i++) {
		uint8_t *bytes = malloc(b.len);
		struct made m;

		memcpy(bytes, b.data, b.len);
		for (size_t k = 0; k < b.len / 100; k++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			bytes[(random >> 33) % b.len] = (uint8_t)(random >> 20);
		}
		open_bytes(&m, bytes, b.len);
		readable += m.status == ST_OK && m.count;
		for (size_t k = 1; k < m.count; k++)
			CHECK(m.all[k].begin_ns >= m.all[k - 1].begin_ns);
		close_made(&m);
		free(bytes);
	}
	CHECK(readable > 100); /* the others do not begin as a trace any more */
	buf_release(&b);
}

/* Other protobufs, texts and lengths that lie are not taken for it. */
void test_perfetto_source_bid(void)
{
	static const struct {
		const char *text;
		int bid;
	} cases[] = {
		{ "8:5 10:1", 90 },
		{ "50'packed'", 90 },
		{ "60{1:1}", 90 },
		{ "1{1:0 2{1:100}}", 90 },            /* the kernel's events */
		{ "1:7 2'/device:GPU:0' 3{1:1}", 0 }, /* an XPlane */
		{ "2'/host:CPU' 3{1:1}", 0 },
		{ "8'text' 10:1", 0 },
	};
	const struct source_type *type = &source_perfetto;
	uint8_t lies[] = { 0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x40, 0x05, 0x50, 0x01 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf b;

		encode(&b, cases[i].text);
		CHECK_U64((uint64_t)type->bid(b.data, b.len), (uint64_t)cases[i].bid);
		buf_release(&b);
	}
	CHECK_U64((uint64_t)type->bid(lies, sizeof(lies)), 90); /* it may go on */
	CHECK_U64((uint64_t)type->bid((const uint8_t *)"\n\n{}", 4), 0);
	CHECK_U64((uint64_t)type->bid((const uint8_t *)"\n", 1), 0);
}

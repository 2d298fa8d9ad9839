/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "convert/sink/sink.h"
#include "tests/unit/sink_files.h"
#include "tests/unit/unit.h"

#include "convert/sink/chrome/internal.h"
#include "schemas/base/json_text.h"
#include "schemas/base/plain.h"

#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* Numbers of all lengths. */
static uint64_t some_number(uint64_t *state)
{
	return random_u64(state) >> random_u64(state) % 64;
}

static void same_u64(struct buf *want, uint64_t v)
{
	uint8_t got[DIGITS_MOST];

	buf_clear(want);
	buf_put_u64_text(want, v);
	CHECK_U64(digits_put_u64(got, v) - got, want->len);
	CHECK_MEM(got, want->data, want->len);
	buf_clear(want);
	buf_put_i64_text(want, (int64_t)v);
	CHECK_U64(digits_put_i64(got, (int64_t)v) - got, want->len);
	CHECK_MEM(got, want->data, want->len);
	buf_clear(want);
	chrome_put_us(want, v);
	CHECK_U64(digits_put_us(got, v) - got, want->len);
	CHECK_MEM(got, want->data, want->len);
}

static void same_time(struct buf *want, struct digits_clock *clock, uint64_t at_ns)
{
	uint8_t got[DIGITS_MOST];

	buf_clear(want);
	chrome_put_us(want, at_ns - clock->base_ns);
	CHECK_U64(digits_put_time(got, clock, at_ns) - got, want->len);
	CHECK_MEM(got, want->data, want->len);
}

static unsigned same_f64(struct buf *want, double v)
{
	uint8_t got[DIGITS_MOST], *end = digits_put_short_f64(got, v);

	if (!end)
		return 0;
	buf_clear(want);
	json_put_f64(want, v);
	CHECK_U64(end - got, want->len);
	CHECK_MEM(got, want->data, want->len);
	return 1;
}

void test_chrome_digits(void)
{
	static const double odd[] = { 0,      -0.0,  0.5,    100,  0.0875,           0.1 + 0.2,
				      0.0001, 0.001, 1e10,   1e11, 99999999999.9999, 1.00005,
				      -3,     1e300, 1.0 / 3 };
	struct digits_clock clock = { .base_ns = 5 };
	uint64_t state = 11, ten = 1;
	unsigned shorts = 0;
	struct buf want;

	buf_init(&want, 1000);
	for (unsigned i = 0; i <= 19; i++, ten *= 10) {
		same_u64(&want, ten);
		same_u64(&want, ten - 1);
		same_time(&want, &clock, ten + 5);
		same_time(&want, &clock, ten + 4);
	}
	same_u64(&want, UINT64_MAX);
	same_u64(&want, (uint64_t)INT64_MIN);
	for (unsigned i = 0; i < 100000; i++) {
		same_u64(&want, some_number(&state));
		same_time(&want, &clock, 5 + some_number(&state) % (UINT64_MAX - 5));
		shorts += same_f64(&want, (double)some_number(&state) / 10000);
		shorts += same_f64(&want, (double)(some_number(&state) % 1000000) / 3);
	}
	for (unsigned i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		shorts += same_f64(&want, odd[i]);
	CHECK(shorts > 50000); /* it is worth it */
	buf_release(&want);
}

/* ---- texts that are kept ---- */

/* `<key KEY=JOIN>` */
static void put_plain(struct buf *b, struct chrome_notes *notes, unsigned key, uint64_t join)
{
	size_t begin;

	chrome_notes_begin(notes, b);
	buf_putf(b, "<key %u=", key);
	begin = b->len;
	buf_put_u64_text(b, join);
	chrome_note(notes, begin, (struct placeholder){ .source = ARG_CORRELATION });
	buf_putf(b, "; %.*s>", (int)(key % 500),
		 "................................................"
		 "..........................................................................");
}

/* More keys than there is room for: what is found is right, and all is forgotten now and then. */
void test_chrome_text_bound(void)
{
	enum { KEYS = CHROME_TEXT_ENTRIES + 1000, EVENTS = 4 * KEYS };
	struct chrome_texts texts;
	struct chrome_notes notes;
	struct buf want;
	struct error err;
	unsigned kept = 0;
	uint8_t *room = malloc(CHROME_TEXT_MOST);

	buf_init(&want, 10000);
	CHECK_OK(chrome_texts_init(&texts, &err), &err);
	for (unsigned i = 0; i < EVENTS; i++) {
		/* some all the time, most a few times */
		unsigned key = i / 8 % 2 ? i / 16 % 7 : i / 4;
		struct event e = { .name = key, .correlation = i + 1, .kind = KIND_API };
		const struct chrome_text *text = chrome_texts_find(&texts, chrome_key_of(&e));

		buf_clear(&want);
		put_plain(&want, &notes, key, e.correlation);
		if (!text) {
			chrome_texts_note(&texts, chrome_key_of(&e), &notes);
			continue;
		}
		kept++;
		CHECK(text->most <= CHROME_TEXT_MOST);
		CHECK_U64(chrome_text_put(&texts, text, room, &e, 0) - room, want.len);
		CHECK_MEM(room, want.data, want.len);
	}
	CHECK(kept > EVENTS / 2);
	CHECK(texts.count < CHROME_TEXT_ENTRIES);
	chrome_texts_release(&texts);
	buf_release(&want);
	free(room);
}

/* ---- the sink: the first event of a key is written the plain way, others the fast way ---- */

static uint32_t some_shape(struct sink_run *run, uint64_t *state)
{
	static const char *const keys[] = { "grid_x", "registers", "my key", "bandwidth", "cbid" };
	static const uint8_t types[] = { ATTR_U64, ATTR_I64, ATTR_F64, ATTR_U64, ATTR_U64 };
	struct attr consts[2], args[3];
	size_t arg_count = random_u64(state) % 4;

	consts[0] = run_number(run, keys[random_u64(state) % 5], random_u64(state) % 50);
	consts[1] = run_text(run, "a \"text\"", "b\\c");
	for (size_t i = 0; i < arg_count; i++) {
		args[i] = run_number(run, i ? "v1" : "external_id", 0);
		args[i].type = types[random_u64(state) % 5];
		if (random_u64(state) % 10 == 0)
			args[i].type = ATTR_TEXT;
	}
	return run_schema(run, consts, 1 + random_u64(state) % 2, args, arg_count);
}

/* `like` says which of few it is alike, `state` what differs. */
static void some_event(struct sink_run *run, uint64_t like, uint64_t *state, double at_us,
		       uint64_t *words)
{
	static const char *const names[] = { NULL, "op", "cudaLaunchKernel_v7000",
					     "a \"quoted\" \n name" };
	uint32_t tracks[] = { run_thread(run, 9),           run_thread(run, 12345678),
			      run_stream(run, 0, 7),        run_stream(run, 1, 20),
			      run_counter(run, 0, "watts"), run_pool(run, 1) };
	unsigned kind = 1 + (unsigned)(random_u64(&like) % (KIND_END - 1));
	double length_us = random_u64(state) % 3 ? (double)(random_u64(state) % 100000) / 1000 : 0;
	struct event *e = run_event(run, kind, tracks[random_u64(&like) % 6],
				    names[random_u64(&like) % 4], at_us, at_us + length_us);

	e->subkind = (uint8_t)(kind == KIND_API ? API_RUNTIME : random_u64(&like) % 4);
	e->correlation = random_u64(state) % 4 ? some_number(state) : 0;
	e->bytes = random_u64(state) % 4 ? some_number(state) : 0;
	if (kind == KIND_COUNTER)
		e->value = (double)(random_u64(state) % 100000) /
			   (double)(1 + random_u64(state) % 100);
	e->schema = random_u64(&like) % 4 ? some_shape(run, &like) : 0;
	for (size_t i = 0; i < 3; i++)
		words[i] = random_u64(state) % 8 ? random_u64(state) % 3 : some_number(state) >> 12;
	if (random_u64(state) % 8)
		e->args = words;
}

/* What stands between the rows of letter M and the end. */
static const char *body(struct buf *text, size_t *len)
{
	const char *begin = buf_text(text), *end = strstr(begin, "\n  ]\n}\n"), *at;

	while ((at = strstr(begin, "\n{\"ph\": \"M\"")) != NULL)
		begin = strchr(at + 1, '\n');
	CHECK(begin && end && begin <= end);
	*len = end ? (size_t)(end - begin) : 0;
	return begin;
}

/* The same in other ways: by a sink for each event, which never has a kept text, or plain. */
static void write_alone(struct sink_run *run, bool all_args, struct buf *out)
{
	struct sink_run one = *run;
	struct buf text;
	size_t len;

	for (size_t i = 0; i < run->count; i++) {
		const char *at;

		one.events[0] = run->events[i];
		one.count = 1;
		if (!sink_run_write(&one, &sink_chrome, all_args, &text))
			return;
		at = body(&text, &len);
		buf_put(out, at, len + (i + 1 < run->count)); /* the comma is not there */
		if (i + 1 < run->count)
			out->data[out->len - 1] = ',';
		buf_release(&text);
	}
}

static void same_alone(struct sink_run *run, bool all_args)
{
	struct buf text, plain, alone;
	const char *at;
	size_t len;

	buf_init(&alone, 16 << 20);
	write_alone(run, all_args, &alone);
	if (sink_run_write(run, &sink_chrome, all_args, &text)) {
		at = body(&text, &len);
		CHECK_U64(len, alone.len);
		CHECK_MEM(at, alone.data, len < alone.len ? len : alone.len);
	}
	plain_ways = true;
	if (sink_run_write(run, &sink_chrome, all_args, &plain)) {
		CHECK_U64(plain.len, text.len);
		CHECK_MEM(plain.data, text.data, plain.len < text.len ? plain.len : text.len);
	}
	plain_ways = false;
	buf_release(&plain);
	buf_release(&text);
	buf_release(&alone);
}

void test_chrome_text_random(void)
{
	uint64_t words[64][3], state = 5;

	for (unsigned round = 0; round < 12; round++) {
		struct sink_run run;
		struct attr keys[1];

		sink_run_make(&run);
		keys[0] = run_number(&run, "baseTimeNanoseconds", 1700000000000000000u + 500000);
		if (round % 2) /* some events are before its base */
			run_import(&run, keys, 1);
		for (size_t i = 0; i < 64; i++)
			some_event(&run, 1 + round * 8 + random_u64(&state) % 5, &state,
				   (double)i * 20 + (double)i / 1000, words[i]);
		same_alone(&run, round % 4 < 2);
		sink_run_release(&run);
	}
}

/* The operator beside a kernel of NCCL has the bytes that the range of its launch says. */
void test_chrome_operator_size(void)
{
	const uint64_t bytes = 4096;
	struct collectives *c = NULL;
	struct chrome_file file;
	struct launch launch;
	struct event *kernel, *range;
	struct sink_run run;
	struct buf out;

	sink_run_make(&run);
	range = run_event(&run, KIND_RANGE, run_thread(&run, 7), "ncclAllReduce", 10, 20);
	range->schema =
		run_schema(&run, (struct attr[]){ run_text(&run, "collective", "ncclAllReduce") },
			   1, (struct attr[]){ run_number(&run, "bytes", 0) }, 1);
	range->args = &bytes;
	kernel = run_event(&run, KIND_KERNEL, run_stream(&run, 0, 7), "ncclDevKernel_AllReduce", 30,
			   40);
	kernel->correlation = 5;
	launch = (struct launch){ .track = range->track,
				  .begin_ns = range->begin_ns + 1000,
				  .end_ns = range->begin_ns + 2000 };
	file = chrome_file(run.trace, run.process, range->begin_ns);
	buf_init(&out, 1 << 16);
	CHECK_OK(collectives_new(&c, run.trace, NULL), NULL);
	CHECK_OK(collectives_note(c, range, NULL), NULL);
	chrome_put_operator(&out, &file, kernel, &launch, c);
	CHECK(strstr(buf_text(&out), "\"nccl:all_reduce\"") != NULL);
	CHECK(strstr(buf_text(&out),
		     "\"Input Dims\": [[4096]], \"Input type\": [\"unsigned char\"]") != NULL);
	buf_clear(&out);
	launch.begin_ns = range->end_ns + 1; /* outside of the range nobody knows */
	chrome_put_operator(&out, &file, kernel, &launch, c);
	CHECK(strstr(buf_text(&out), "\"Input Dims\": []") != NULL);
	collectives_free(c);
	buf_release(&out);
	sink_run_release(&run);
}

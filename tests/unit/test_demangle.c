/* SPDX-License-Identifier: Apache-2.0 */
/* Mangled names: read from a log as the C++ text, and shortened where they are too long. */
#include "convert/source/source_list.h"
#include "schemas/base/utf8.h"
#include "schemas/log/writer.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

enum { CEILING = 16 << 20 };

/* A log of three events: a kernel and a range of one mangled name, a kernel that is not C++. */
static void write_kernels(struct buf *file)
{
	static const char *const names[] = { "_ZN2at6native4fillIfEEvPT_i", "_Z", "device_kernel" };
	struct track track = { .device = NO_ID, .context = NO_ID, .type = TRACK_THREAD };
	struct error err = { 0 };
	struct log_writer *w;
	struct trace *t;

	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	track.process = trace_process(t, &(struct process){ .pid = 7 }, &err);
	struct attr grid = { .key = trace_name(t, "grid_x", 6, &err), .bits = 9 };
	struct arg_schema schema = { &grid, NULL, 1, 0 };
	CHECK_OK(log_writer_new(&w, t, CEILING, &err), &err);
	log_writer_begin(w, file, &err);
	for (unsigned i = 0; i < 4; i++) {
		const char *name = names[i % 3];
		struct event_desc desc = { .track = trace_track(t, &track, &err),
					   .name = trace_name(t, name, strlen(name), &err),
					   .schema = trace_schema(t, &schema, &err),
					   .kind = i == 3 ? KIND_RANGE : KIND_KERNEL };
		struct event e = { .begin_ns = 1000 + i, .end_ns = 1000 + i, .kind = desc.kind };

		e.track = desc.track;
		CHECK_OK(log_writer_put(w, &e, trace_desc(t, &desc, &err), 0, file, &err), &err);
	}
	CHECK_OK(log_writer_end(w, file, &err), &err);
	log_writer_free(w);
	trace_free(t);
}

void test_source_log_mangled(void)
{
	static const char *const wanted[] = { "void at::native::fill<float>(float*, int)", "_Z",
					      "device_kernel", "_ZN2at6native4fillIfEEvPT_i" };
	const struct budget budget = { .opening = CEILING, .resident = 1 << 16, .scratch = "/tmp" };
	struct source *s = NULL;
	struct error err = { 0 };
	struct input *in;
	struct batch batch;
	struct trace *t;
	struct buf file;
	size_t seen = 0;

	buf_init(&file, CEILING);
	write_kernels(&file);
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	in = log_input(file.data, file.len);
	CHECK_OK(source_log.open(&s, in, t, &budget, NULL, &err), &err);
	while (s && source_log.next(s, &batch, &err) == ST_OK)
		for (size_t i = 0; i < batch.count && seen < 4; i++, seen++) {
			const struct event *e = &batch.events[i];
			const struct attr *was = trace_find_attr(t, e->schema, "mangled");

			CHECK_STR(trace_text(t, e->name, NULL), wanted[seen]);
			CHECK(trace_find_attr(t, e->schema, "grid_x")->bits == 9);
			CHECK(!was == (seen > 0));
			if (was)
				CHECK_STR(trace_text(t, (uint32_t)was->bits, NULL), wanted[3]);
		}
	CHECK_U64(seen, 4);
	if (s)
		source_log.close(s);
	input_close(in);
	trace_free(t);
	buf_release(&file);
}

/* Texts that differ anywhere stay different, whole characters stay whole. */
void test_utf8_shorten(void)
{
	char text[300], one[100], other[100];

	for (size_t len = 0; len < sizeof(text); len++) {
		memset(text, 'a', len);
		size_t got = utf8_shorten(text, len, one, sizeof(one));

		CHECK(got == strlen(one) && got == (len < sizeof(one) ? len : got));
		CHECK(got < sizeof(one) && got + 4 >= (len < 95 ? len : 95));
		for (size_t at = 0; at < len; at++) {
			text[at] = 'b';
			utf8_shorten(text, len, other, sizeof(other));
			CHECK(strcmp(one, other) != 0);
			text[at] = 'a';
		}
	}
	for (size_t shift = 0; shift < 3; shift++) {
		memset(text, 'a', sizeof(text));
		for (size_t at = shift; at + 3 <= sizeof(text); at += 3)
			memcpy(text + at, "\xe2\x82\xac", 3);
		size_t len = shift + (sizeof(text) - shift) / 3 * 3;
		utf8_shorten(text, len, one, sizeof(one));
		for (size_t at = 0; one[at]; at += utf8_sequence(one + at, strlen(one + at)))
			if (!CHECK(utf8_sequence(one + at, strlen(one + at))))
				break;
	}
}

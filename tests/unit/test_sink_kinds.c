/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each kind of events in each format: it is in the output or counted as having no place there, and
 * formats that people read show its value.  A kind that was added to the model and forgotten in a
 * format fails here, with the name of the file.
 */
#include "convert/sink/sink.h"
#include "schemas/model/records.h"
#include "tests/unit/sink_files.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

enum { BYTES = 7654321 };
static const double sample = 7654.5;

static const enum track_type track_types[KIND_END] = {
#define X(name, number, word, type, help) [number] = TRACK_##type,
	KIND_LIST(X)
#undef X
};

static uint32_t track_of(struct sink_run *run, unsigned kind)
{
	switch (track_types[kind]) {
	case TRACK_STREAM:
		return run_stream(run, 1, 7);
	case TRACK_THREAD:
		return run_thread(run, 100);
	case TRACK_ALLOCATOR:
		return run_pool(run, 1);
	case TRACK_COUNTER:
		break;
	}
	return run_counter(run, 1, "a counter");
}

/* The field that is the value of the kind; NULL: it has none. */
static const struct field *value_of(unsigned kind)
{
	const struct record *r = record_of_kind(kind);

	for (size_t i = 0; i < r->field_count; i++)
		if (r->fields[i].place == PLACE_VALUE)
			return &r->fields[i];
	return NULL;
}

static void put_event(struct sink_run *run, unsigned kind, const struct field *value)
{
	struct event *e = run_event(run, kind, track_of(run, kind), "a name", 2, 2);

	if (kind != KIND_ALLOC && kind != KIND_FREE && track_types[kind] != TRACK_COUNTER)
		e->end_ns += 1000;
	if (kind == KIND_API)
		e->flags = EVENT_RESULT;
	if (value && value->type == FIELD_F64)
		e->value = sample;
	else if (value)
		e->bytes = BYTES;
}

/* Kineto has no result of a call in its JSON. */
static bool shows_value(const struct sink_type *type, unsigned kind)
{
	return (type == &sink_chrome && kind != KIND_API) || type == &sink_text ||
	       type == &sink_csv;
}

static void check_kind(const struct sink_type *type, unsigned kind)
{
	const struct field *value = value_of(kind);
	struct sink_run with, without;
	struct buf out, none;
	char text[200] = "", digits[32];

	sink_run_make(&with);
	sink_run_make(&without);
	put_event(&with, kind, value);
	track_of(&without, kind);
	run_name(&without, "a name");
	snprintf(digits, sizeof(digits), value && value->type == FIELD_F64 ? "7654.5" : "%d",
		 BYTES);
	bool good = sink_run_write(&with, type, true, &out);
	good = sink_run_write(&without, type, true, &none) && good;
	if (good && !trace_lost(with.trace, 0, LOSS_NO_PLACE)) {
		if (out.len == none.len && !memcmp(out.data, none.data, out.len))
			snprintf(text, sizeof(text),
				 "convert/sink: format %s leaves out kind %s and counts no loss",
				 type->name, kind_word(kind));
		else if (type == &sink_chrome && strstr(buf_text(&out), "\"unknown\""))
			snprintf(text, sizeof(text),
				 "convert/sink/chrome/sink.c: forms[] has no row for kind %s",
				 kind_word(kind));
		else if (value && shows_value(type, kind) && !strstr(buf_text(&out), digits))
			snprintf(text, sizeof(text),
				 "convert/sink: format %s does not write `%s` of kind %s",
				 type->name, value->name, kind_word(kind));
		CHECK_STR(text, "");
	}
	buf_release(&out);
	buf_release(&none);
	sink_run_release(&with);
	sink_run_release(&without);
}

/* Folders and bundles are tested by themselves; memory is of memory and steps only,
 * folded and pprof have sums of GPU work and ranges, a snapshot is one of snapshots only. */
static bool is_one_file(const struct sink_type *type)
{
	return !type->is_folder && type != &sink_bundle && type != &sink_memory &&
	       type != &sink_folded && type != &sink_pprof && type != &sink_snapshot;
}

void test_sink_kinds(void)
{
	for (size_t i = 0; sink_types[i]; i++)
		for (unsigned kind = 1; kind < KIND_END && is_one_file(sink_types[i]); kind++)
			check_kind(sink_types[i], kind);
}

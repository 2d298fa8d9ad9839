/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/model/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 64 << 20 };

static struct trace *trace_of(size_t ceiling)
{
	struct error err = { 0 };
	struct trace *t = NULL;

	CHECK_OK(trace_new(&t, ceiling, &err), &err);
	return t;
}

static uint32_t name_of(struct trace *t, const char *text)
{
	struct error err = { 0 };

	return trace_name(t, text, strlen(text), &err);
}

void test_trace_names(void)
{
	struct trace *t = trace_of(ROOM);
	char text[64];
	uint32_t i, bad = 0;
	size_t len;

	for (i = 0; i < 50000; i++) {
		snprintf(text, sizeof(text), "kernel_with_a_long_name_%u", i);
		bad += name_of(t, text) != i + 1;
	}
	for (i = 0; i < 50000; i++) {
		snprintf(text, sizeof(text), "kernel_with_a_long_name_%u", i);
		bad += name_of(t, text) != i + 1;
		bad += strcmp(trace_text(t, i + 1, NULL), text) != 0;
		bad += trace_find_name(t, text, strlen(text)) != i + 1;
	}
	CHECK_U64(bad, 0);
	CHECK_U64(trace_count(t, TRACE_NAMES), 50000);
	CHECK_U64(trace_find_name(t, "absent", 6), 0);
	CHECK_STR(trace_text(t, 0, &len), "");
	CHECK_U64(len, 0);
	CHECK_STR(trace_text(t, 50001, NULL), "");
	trace_free(t);
}

/* Any bytes, of any length: the tail of the hash, NULs inside, nothing at all. */
void test_trace_name_bytes(void)
{
	struct trace *t = trace_of(ROOM);
	char zeros[40] = { 0 };
	uint32_t ids[41];
	size_t len, got;

	for (len = 0; len <= 40; len++)
		ids[len] = trace_name(t, zeros, len, NULL);
	for (len = 0; len <= 40; len++) {
		CHECK_U64(ids[len], len + 1);
		trace_text(t, ids[len], &got);
		CHECK_U64(got, len);
	}
	CHECK_U64(trace_name(t, NULL, 0, NULL), 1);
	CHECK_U64(trace_find_name(t, zeros, 17), 18);
	trace_free(t);
}

/* Rows are borrowed until trace_free(), so growth must not move them. */
void test_trace_rows_stay(void)
{
	struct trace *t = trace_of(ROOM);
	uint32_t first = name_of(t, "first"), i;
	const char *text = trace_text(t, first, NULL);
	struct event_desc desc = { .track = 7, .name = first, .kind = 1 };
	const struct event_desc *row;

	CHECK_U64(trace_desc(t, &desc, NULL), 1);
	row = trace_get_desc(t, 1);
	for (i = 0; i < 100000; i++) {
		desc.schema = i;
		desc.subkind = (uint8_t)(i & 3);
		if (trace_desc(t, &desc, NULL) != i + 1)
			break;
	}
	CHECK_U64(i, 100000);
	CHECK(row == trace_get_desc(t, 1));
	CHECK_U64(row->track, 7);
	CHECK_U64(trace_get_desc(t, 100000)->schema, 99999);
	CHECK_U64(trace_get_desc(t, 100001)->track, 0);
	CHECK(text == trace_text(t, first, NULL));
	trace_free(t);
}

void test_trace_processes(void)
{
	struct trace *t = trace_of(ROOM);
	struct process p = { .host = 1, .pid = 40, .rank = NO_RANK };
	uint32_t id = trace_process(t, &p, NULL), other;

	p.pid = 41;
	other = trace_process(t, &p, NULL);
	CHECK_U64(id, 1);
	CHECK_U64(other, 2);
	p.rank = 3; /* learnt late: found by its new identity, no longer by the old one */
	p.world_size = 8;
	trace_set_process(t, other, &p);
	CHECK_U64(trace_process(t, &p, NULL), 2);
	CHECK_U64(trace_get_process(t, 2)->world_size, 8);
	p.rank = NO_RANK;
	CHECK_U64(trace_process(t, &p, NULL), 3);
	trace_set_process(t, 99, &p);
	CHECK_U64(trace_get_process(t, 99)->pid, 0);
	CHECK_U64(trace_count(t, TRACE_PROCESSES), 3);
	trace_free(t);
}

void test_trace_devices(void)
{
	struct trace *t = trace_of(ROOM);
	struct device d = { .process = 1, .id = 3 };

	CHECK_U64(trace_find_device(t, 1, 3), 0);
	CHECK_U64(trace_device(t, &d, NULL), 1);
	d.name = 5; /* the name may come later than the device */
	CHECK_U64(trace_device(t, &d, NULL), 1);
	CHECK_U64(trace_get_device(t, 1)->name, 5);
	d.process = 2;
	CHECK_U64(trace_device(t, &d, NULL), 2);
	CHECK_U64(trace_find_device(t, 2, 3), 2);
	CHECK_U64(trace_find_device(t, 2, 4), 0);
	trace_free(t);
}

void test_trace_tracks(void)
{
	struct trace *t = trace_of(ROOM);
	struct track k = {
		.type = TRACK_THREAD, .process = 1, .device = NO_ID, .context = NO_ID, .id = 7
	};
	uint32_t thread = trace_track(t, &k, NULL);

	k.name = 9;
	CHECK_U64(trace_track(t, &k, NULL), thread);
	CHECK_U64(trace_get_track(t, thread)->name, 9);
	trace_set_track_name(t, thread, 10);
	CHECK_U64(trace_get_track(t, thread)->name, 10);
	k.type = TRACK_STREAM;
	CHECK(trace_track(t, &k, NULL) != thread);
	k.type = TRACK_COUNTER; /* of counters the name is part of what they are */
	CHECK_U64(trace_track(t, &k, NULL), 3);
	k.name = 11;
	CHECK_U64(trace_track(t, &k, NULL), 4);
	trace_set_track_name(t, 4, 12);
	k.name = 12;
	CHECK_U64(trace_track(t, &k, NULL), 4);
	trace_add_launches(t, thread, 5);
	trace_add_launches(t, thread, 2);
	trace_add_launches(t, 77, 2);
	CHECK_U64(trace_launches(t, thread), 7);
	CHECK_U64(trace_launches(t, 77), 0);
	trace_free(t);
}

void test_trace_schemas(void)
{
	struct trace *t = trace_of(ROOM);
	struct attr consts[2] = { { .key = name_of(t, "grid_x"), .type = ATTR_I64, .bits = 4 },
				  { .key = name_of(t, "note"), .type = ATTR_TEXT, .bits = 1 } };
	struct attr args[1] = { { .key = name_of(t, "External id"), .type = ATTR_U64 } };
	struct arg_schema s = { consts, args, 2, 1 }, none = { NULL, NULL, 0, 0 };
	uint32_t id = trace_schema(t, &s, NULL);

	CHECK_U64(id, 1);
	args[0].bits = 99; /* says nothing */
	CHECK_U64(trace_schema(t, &s, NULL), 1);
	consts[0].bits = 5;
	CHECK_U64(trace_schema(t, &s, NULL), 2);
	consts[0].bits = 4;
	consts[0].type = ATTR_U64;
	CHECK_U64(trace_schema(t, &s, NULL), 3);
	s.arg_count = 0;
	CHECK_U64(trace_schema(t, &s, NULL), 4);
	CHECK_U64(trace_schema(t, &none, NULL), 5);
	CHECK_U64(trace_schema(t, &none, NULL), 5);
	memset(consts, 0, sizeof(consts)); /* was copied */
	if (!CHECK(trace_find_attr(t, 1, "grid_x") != NULL))
		return;
	CHECK_U64(trace_find_attr(t, 1, "grid_x")->bits, 4);
	CHECK(trace_find_attr(t, 1, "External id") == NULL);
	CHECK(trace_find_attr(t, 1, "absent") == NULL);
	CHECK(trace_find_attr(t, 0, "grid_x") == NULL);
	CHECK_U64(trace_get_schema(t, 1)->arg_count, 1);
	CHECK_U64(trace_get_schema(t, 6)->const_count, 0);
	trace_free(t);
}

void test_trace_windows(void)
{
	struct trace *t = trace_of(ROOM);
	struct window w = { .process = 1, .begin_ns = 10 };
	struct anchor a = { .process = 1, .realtime_ns = 5 };

	CHECK_U64(trace_window(t, &w, NULL), 1);
	CHECK_U64(trace_window(t, &w, NULL), 2);
	w.end_ns = 30;
	trace_set_window(t, 2, &w);
	trace_set_window(t, 3, &w);
	CHECK_U64(trace_get_window(t, 1)->end_ns, 0);
	CHECK_U64(trace_get_window(t, 2)->end_ns, 30);
	CHECK_U64(trace_get_window(t, 3)->end_ns, 0);
	CHECK_U64(trace_anchor(t, &a, NULL), 1);
	CHECK_U64(trace_get_anchor(t, 1)->realtime_ns, 5);
	CHECK_U64(trace_get_anchor(t, 2)->realtime_ns, 0);
	trace_provenance(t)->events = 12;
	CHECK_U64(trace_provenance(t)->events, 12);
	trace_free(t);
}

void test_trace_losses(void)
{
	struct trace *t = trace_of(ROOM);
	struct process p = { .pid = 1 };
	uint32_t process = trace_process(t, &p, NULL);

	trace_lose(t, process, LOSS_RING, 3);
	trace_lose(t, 0, LOSS_RING, 4);
	trace_lose(t, process, LOSS_CUT_OUT, 100);
	trace_lose(t, process, LOSS_ORDER, 100);
	trace_lose(t, process, (enum loss)200, 1);
	CHECK_U64(trace_lost(t, process, LOSS_RING), 3);
	CHECK_U64(trace_lost(t, 0, LOSS_RING), 7);
	CHECK_U64(trace_lost_total(t, process), 4);
	CHECK_U64(trace_lost_total(t, 0), 8);
	CHECK_U64(trace_lost(t, 0, LOSS_CUT_OUT), 100);
	CHECK_STR(loss_text(LOSS_DAMAGED), "damaged");
	CHECK_STR(loss_text((enum loss)200), "unknown");
	trace_free(t);
}

/* Beyond the ceiling nothing is added, and what was there stays findable. */
void test_trace_ceiling(void)
{
	struct error err = { 0 };
	struct trace *t = trace_of(100000);
	char text[64];
	uint32_t i, n, bad = 0;

	for (i = 1; i < 100000; i++) {
		snprintf(text, sizeof(text), "name %u", i);
		if (!trace_name(t, text, strlen(text), &err))
			break;
	}
	CHECK(i > 1000 && i < 10000);
	CHECK_U64(err.status, ST_CEILING);
	CHECK(err.text[0]);
	n = trace_count(t, TRACE_NAMES);
	CHECK_U64(n, i - 1);
	for (i = 1; i <= n; i++) {
		snprintf(text, sizeof(text), "name %u", i);
		bad += trace_name(t, text, strlen(text), NULL) != i;
	}
	CHECK_U64(bad, 0);
	trace_free(t);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include "schemas/log/log.h"
#include "schemas/log/tables.h"
#include "schemas/log/writer.h"
#include "schemas/model/records.h"
#include "schemas/model/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 64 << 20, CEILING = 64 << 20 };

static bool same_text(const struct trace *a, uint32_t x, const struct trace *b, uint32_t y)
{
	return strcmp(trace_text(a, x, NULL), trace_text(b, y, NULL)) == 0;
}

static void check_processes(const struct trace *a, const struct trace *b)
{
	uint32_t count = trace_count(a, TRACE_PROCESSES);

	CHECK_U64(trace_count(b, TRACE_PROCESSES), count);
	for (uint32_t id = 1; id <= count; id++) {
		const struct process *p = trace_get_process(a, id), *q = trace_get_process(b, id);

		CHECK(same_text(a, p->host, b, q->host) && same_text(a, p->command, b, q->command));
		CHECK(p->pid == q->pid && p->rank == q->rank && p->world_size == q->world_size);
		CHECK_U64(trace_get_schema(b, q->schema)->const_count,
			  trace_get_schema(a, p->schema)->const_count);
		for (unsigned why = 0; why < LOSS_END; why++)
			CHECK_U64(trace_lost(b, id, why), trace_lost(a, id, why));
	}
	CHECK_U64(trace_lost(b, 0, LOSS_CUPTI), trace_lost(a, 0, LOSS_CUPTI));
}

static void check_others(const struct trace *a, const struct trace *b)
{
	for (unsigned table = TRACE_DEVICES; table < TRACE_TABLE_COUNT; table++)
		if (table != TRACE_SCHEMAS && table != TRACE_DESCS)
			CHECK_U64(trace_count(b, table), trace_count(a, table));
	for (uint32_t id = 1; id <= trace_count(a, TRACE_WINDOWS); id++) {
		const struct window *w = trace_get_window(a, id), *v = trace_get_window(b, id);

		CHECK(same_text(a, w->spec, b, v->spec) && w->begin_ns == v->begin_ns &&
		      w->end_ns == v->end_ns && w->own_ns == v->own_ns &&
		      w->cut_short == v->cut_short && w->process == v->process);
	}
	for (uint32_t id = 1; id <= trace_count(a, TRACE_ANCHORS); id++) {
		const struct anchor *x = trace_get_anchor(a, id), *y = trace_get_anchor(b, id);

		CHECK(x->process == y->process && x->realtime_ns == y->realtime_ns &&
		      x->monotonic_ns == y->monotonic_ns && x->cupti_ns == y->cupti_ns);
	}
	for (uint32_t id = 1; id <= trace_count(a, TRACE_DEVICES); id++) {
		const struct device *d = trace_get_device(a, id), *e = trace_get_device(b, id);

		CHECK(same_text(a, d->name, b, e->name) && d->id == e->id);
	}
	for (uint32_t id = 1; id <= trace_count(a, TRACE_TRACKS); id++)
		CHECK_U64(trace_launches(b, id), trace_launches(a, id));
}

/* Read all of `file` into a new trace. */
static struct trace *read_tables(const struct buf *file, uint64_t *events)
{
	struct trace *trace = NULL;
	struct error err = { 0 };

	CHECK_OK(trace_new(&trace, CEILING, &err), &err);
	CHECK_U64(log_read(file->data, file->len, trace, events, &err), ST_END);
	CHECK_STR(err.text, "");
	return trace;
}

void test_log_tables_come_back(void)
{
	struct log_run run;
	struct buf file;
	struct trace *trace;
	uint64_t events;

	buf_init(&file, FILE_MAX);
	if (log_run_make(&run, 41, 2000, 9) && log_run_write(&run, 700, true, &file)) {
		trace = read_tables(&file, &events);
		CHECK_U64(events, 2000);
		check_processes(run.trace, trace);
		check_others(run.trace, trace);
		CHECK(trace_provenance(trace)->is_whole);
		CHECK(trace_provenance(trace)->epoch_known);
		CHECK(!trace_provenance(trace)->is_synthetic);
		CHECK_U64(trace_provenance(trace)->events, 2000);
		CHECK_STR(trace_text(trace, trace_provenance(trace)->format, NULL), "Tacho log");
		trace_free(trace);
	}
	buf_release(&file);
	log_run_release(&run);
}

/* A process that was killed: no END, and all blocks are there. */
void test_log_without_end(void)
{
	struct log_run run;
	struct buf file;
	struct trace *trace;
	uint64_t events;

	buf_init(&file, FILE_MAX);
	if (log_run_make(&run, 43, 500, 1) && log_run_write(&run, 0, false, &file)) {
		trace = read_tables(&file, &events);
		CHECK_U64(events, 500);
		CHECK(!trace_provenance(trace)->is_whole);
		CHECK_U64(trace_provenance(trace)->unread_bytes, 0);
		trace_free(trace);
	}
	buf_release(&file);
	log_run_release(&run);
}

static uint32_t text(struct trace *t, const char *s)
{
	return trace_name(t, s, strlen(s), NULL);
}

/* A writer over a trace of one process and one thread, to be fed by hand. */
struct hand {
	struct trace *trace;
	struct log_writer *log;
	struct buf file;
	uint32_t track, desc;
};

static void hand_open(struct hand *h)
{
	struct process p = { .pid = 7, .rank = NO_RANK };
	struct track k = { .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID, .id = 7 };
	struct event_desc s = { .kind = KIND_RANGE };

	CHECK_OK(trace_new(&h->trace, CEILING, NULL), NULL);
	p.host = text(h->trace, "node");
	k.process = trace_process(h->trace, &p, NULL);
	s.track = h->track = trace_track(h->trace, &k, NULL);
	s.name = text(h->trace, "step");
	h->desc = trace_desc(h->trace, &s, NULL);
	buf_init(&h->file, FILE_MAX);
	CHECK_OK(log_writer_new(&h->log, h->trace, CEILING, NULL), NULL);
	CHECK_OK(log_writer_begin(h->log, &h->file, NULL), NULL);
}

static void hand_put(struct hand *h, uint32_t desc, uint64_t begin_ns, uint64_t end_ns)
{
	struct event e = {
		.begin_ns = begin_ns, .end_ns = end_ns, .track = h->track, .kind = KIND_RANGE
	};

	CHECK_OK(log_writer_put(h->log, &e, desc, 0, &h->file, NULL), NULL);
}

static struct trace *hand_close(struct hand *h, uint64_t *events)
{
	struct trace *trace;

	CHECK_OK(log_writer_end(h->log, &h->file, NULL), NULL);
	trace = read_tables(&h->file, events);
	log_writer_free(h->log);
	return trace;
}

static void hand_release(struct hand *h)
{
	trace_free(h->trace);
	buf_release(&h->file);
}

/* Rows that change after they were written: the last one holds. */
void test_log_late_news(void)
{
	struct hand h;
	struct trace *trace;
	struct process p;
	struct window w = { .process = 1, .begin_ns = 5 };
	uint64_t events;
	uint32_t window;

	hand_open(&h);
	window = trace_window(h.trace, &w, NULL);
	hand_put(&h, h.desc, 100, 200);
	CHECK_OK(log_writer_flush(h.log, &h.file, NULL), NULL);
	p = *trace_get_process(h.trace, 1);
	p.rank = 3;
	p.world_size = 8;
	trace_set_process(h.trace, 1, &p);
	trace_set_track_name(h.trace, h.track, text(h.trace, "main"));
	w.end_ns = 900;
	trace_set_window(h.trace, window, &w);
	trace_lose(h.trace, 1, LOSS_RING, 2);
	hand_put(&h, h.desc, 300, 400);
	CHECK_OK(log_writer_flush(h.log, &h.file, NULL), NULL);
	trace_lose(h.trace, 1, LOSS_RING, 3);
	trace_add_launches(h.trace, h.track, 11);
	trace = hand_close(&h, &events);
	CHECK_U64(events, 2);
	CHECK_U64(trace_count(trace, TRACE_PROCESSES), 1);
	CHECK_U64(trace_get_process(trace, 1)->rank, 3);
	CHECK_U64(trace_get_process(trace, 1)->world_size, 8);
	CHECK_STR(trace_text(trace, trace_get_track(trace, 1)->name, NULL), "main");
	CHECK_U64(trace_count(trace, TRACE_WINDOWS), 1);
	CHECK_U64(trace_get_window(trace, 1)->end_ns, 900);
	CHECK_U64(trace_lost(trace, 1, LOSS_RING), 5);
	CHECK_U64(trace_launches(trace, 1), 11);
	trace_free(trace);
	hand_release(&h);
}

/* A flush without news appends nothing. */
void test_log_idle_flush(void)
{
	struct hand h;
	size_t len;
	uint64_t events;

	hand_open(&h);
	hand_put(&h, h.desc, 100, 200);
	CHECK_OK(log_writer_flush(h.log, &h.file, NULL), NULL);
	len = h.file.len;
	CHECK_OK(log_writer_flush(h.log, &h.file, NULL), NULL);
	CHECK_U64(h.file.len, len);
	trace_free(hand_close(&h, &events));
	hand_release(&h);
}

/* A name of 100 KB and a shape of 40 KB go in pieces. */
void test_log_long_rows(void)
{
	enum { LONG = 100000, KEYS = 8000 };
	struct hand h;
	struct attr *attrs = calloc(KEYS, sizeof(*attrs));
	char *name = malloc(LONG);
	struct arg_schema schema = { .consts = attrs, .const_count = KEYS };
	struct event_desc desc;
	struct trace *trace;
	uint64_t events;
	size_t len;

	hand_open(&h);
	for (size_t i = 0; i < LONG; i++)
		name[i] = (char)('a' + i % 23);
	for (uint32_t i = 0; i < KEYS; i++)
		attrs[i] = (struct attr){ .key = text(h.trace, i % 2 ? "odd" : "even"),
					  .type = ATTR_U64,
					  .bits = UINT64_MAX - i };
	desc = *trace_get_desc(h.trace, h.desc);
	desc.name = trace_name(h.trace, name, LONG, NULL);
	desc.schema = trace_schema(h.trace, &schema, NULL);
	hand_put(&h, trace_desc(h.trace, &desc, NULL), 1, 2);
	trace = hand_close(&h, &events);
	CHECK_U64(events, 1);
	trace_text(trace, trace_find_name(trace, name, LONG), &len);
	CHECK_U64(len, LONG);
	if (CHECK_U64(trace_count(trace, TRACE_SCHEMAS), 1) &&
	    CHECK_U64(trace_get_schema(trace, 1)->const_count, KEYS))
		CHECK_U64(trace_get_schema(trace, 1)->consts[KEYS - 1].bits, UINT64_MAX - KEYS + 1);
	trace_free(trace);
	hand_release(&h);
	free(attrs);
	free(name);
}

/* Where the first tables are damaged, their repetition serves the events of before and behind. */
void test_log_tables_repeated(void)
{
	struct hand h;
	struct trace *trace;
	struct error err = { 0 };
	uint64_t events;

	hand_open(&h);
	hand_put(&h, h.desc, 100, 200);
	CHECK_OK(log_writer_flush(h.log, &h.file, NULL), NULL);
	log_writer_repeat(h.log);
	hand_put(&h, h.desc, 300, 400);
	CHECK_OK(log_writer_end(h.log, &h.file, NULL), NULL);
	trace = read_tables(&h.file, &events);
	CHECK_U64(events, 2);
	CHECK_U64(trace_count(trace, TRACE_DESCS), 1);
	CHECK_U64(trace_count(trace, TRACE_TRACKS), 1);
	trace_free(trace);
	h.file.data[LOG_FILE_HEADER_BYTES + LOG_HEADER_BYTES + 3] ^= 1; /* the names */
	CHECK_OK(trace_new(&trace, CEILING, &err), &err);
	CHECK_U64(log_read(h.file.data, h.file.len, trace, &events, &err), ST_END);
	CHECK_U64(events, 2);
	CHECK(trace_lost(trace, 0, LOSS_DAMAGED) > 0);
	CHECK(!trace_provenance(trace)->is_whole);
	trace_free(trace);
	log_writer_free(h.log);
	hand_release(&h);
}

/* More tracks than slots: longer gaps, the same events. */
void test_log_many_tracks(void)
{
	enum { TRACKS = 300 };
	struct hand h;
	uint32_t descs[TRACKS];
	struct trace *trace;
	uint64_t events;

	hand_open(&h);
	for (uint32_t i = 0; i < TRACKS; i++) {
		struct track k = { .type = TRACK_THREAD,
				   .process = 1,
				   .device = NO_ID,
				   .context = NO_ID,
				   .id = 100 + i };
		struct event_desc s = *trace_get_desc(h.trace, h.desc);

		s.track = trace_track(h.trace, &k, NULL);
		descs[i] = trace_desc(h.trace, &s, NULL);
	}
	for (uint32_t i = 0; i < 9000; i++) {
		h.track = trace_get_desc(h.trace, descs[i * 7 % TRACKS])->track;
		hand_put(&h, descs[i * 7 % TRACKS], 1000 * i, 1000 * i + 500 + i % 13);
	}
	trace = hand_close(&h, &events);
	CHECK_U64(events, 9000);
	CHECK_U64(trace_lost_total(trace, 0), 0);
	trace_free(trace);
	hand_release(&h);
}

/* A block whose rows are not in order comes out in order. */
void test_log_unsorted(void)
{
	struct hand h;
	struct trace *trace;
	uint64_t events;

	hand_open(&h);
	for (uint32_t i = 0; i < 20000; i++)
		hand_put(&h, h.desc, 5000 + i * 7919 % 20011, 30000);
	trace = hand_close(&h, &events); /* which checks the order */
	CHECK_U64(events, 20000);
	CHECK_U64(trace_lost(trace, 0, LOSS_ORDER), 0);
	trace_free(trace);
	hand_release(&h);
}

/* Nothing is written over a ceiling, and nothing that is half. */
void test_log_writer_ceiling(void)
{
	struct hand h;
	struct event e = { .begin_ns = 1, .end_ns = 2, .kind = KIND_RANGE };
	struct error err = { 0 };

	hand_open(&h);
	log_writer_free(h.log);
	CHECK_OK(log_writer_new(&h.log, h.trace, 100000, NULL), NULL);
	CHECK_U64(log_writer_put(h.log, &e, h.desc, 0, &h.file, &err), ST_CEILING);
	CHECK_STR(err.text, "the writer of a log exceeds its memory limit");
	CHECK_U64(log_writer_put(h.log, &e, 99, 0, &h.file, &err), ST_FORMAT);
	log_writer_free(h.log);
	hand_release(&h);
}

/* Kernels as a training loop launches them: what a record costs, plain. */
void test_log_bytes_per_kernel(void)
{
	enum { KERNELS = 100000, LOOP = 500 };
	struct hand h;
	struct trace *trace;
	uint32_t descs[LOOP];
	uint64_t events, state = 3, now = UINT64_C(1700000000000000000), correlation = 1000;
	size_t before;

	hand_open(&h);
	for (uint32_t i = 0; i < LOOP; i++) {
		struct event_desc s = *trace_get_desc(h.trace, h.desc);
		char name[32];

		snprintf(name, sizeof(name), "kernel %u", i * 7 % 150);
		s.name = text(h.trace, name);
		s.kind = KIND_KERNEL;
		descs[i] = trace_desc(h.trace, &s, NULL);
	}
	CHECK_OK(log_writer_flush(h.log, &h.file, NULL), NULL);
	before = h.file.len;
	for (uint32_t i = 0; i < KERNELS; i++) {
		uint64_t usual = 2000 + i % LOOP * i % LOOP * 11;
		struct event e = { .track = h.track, .kind = KIND_KERNEL };

		e.begin_ns = now + 800 + random_u64(&state) % 900;
		e.end_ns = e.begin_ns + (usual + random_u64(&state) % (usual / 8)) / 32 * 32;
		e.correlation = correlation += 1 + random_u64(&state) % 4;
		now = e.end_ns;
		CHECK_OK(log_writer_put(h.log, &e, descs[i % LOOP], 0, &h.file, NULL), NULL);
	}
	CHECK_OK(log_writer_flush(h.log, &h.file, NULL), NULL);
	CHECK_F64((double)(h.file.len - before) / KERNELS, 6.0, 1.5); /* at most 7.5 */
	trace = hand_close(&h, &events);
	CHECK_U64(events, KERNELS);
	trace_free(trace);
	hand_release(&h);
}

/* More layouts than encoders have memory: blocks are small, and all is there. */
void test_log_writer_many_layouts(void)
{
	enum { LAYOUTS = 40, EVENTS = 4000 };
	struct hand h;
	struct trace *trace;
	uint32_t descs[LAYOUTS];
	uint64_t events, word = 5;

	hand_open(&h);
	log_writer_free(h.log);
	CHECK_OK(log_writer_new(&h.log, h.trace, 3 << 20, NULL), NULL);
	for (uint32_t i = 0; i < LAYOUTS; i++) {
		struct attr args = { .key = 1 + i % 2, .type = ATTR_U64, .unit = (uint8_t)i };
		struct arg_schema schema = { .args = &args, .arg_count = 1 };
		struct event_desc s = *trace_get_desc(h.trace, h.desc);

		s.schema = trace_schema(h.trace, &schema, NULL);
		descs[i] = trace_desc(h.trace, &s, NULL);
	}
	for (uint32_t i = 0; i < EVENTS; i++) {
		struct event e = { .begin_ns = 10 + i,
				   .end_ns = 20 + i,
				   .track = h.track,
				   .kind = KIND_RANGE,
				   .args = &word };

		CHECK_OK(log_writer_put(h.log, &e, descs[i / 7 % LAYOUTS], 0, &h.file, NULL), NULL);
	}
	trace = hand_close(&h, &events);
	CHECK_U64(events, EVENTS);
	CHECK_U64(trace_count(trace, TRACE_SCHEMAS), LAYOUTS);
	trace_free(trace);
	hand_release(&h);
}

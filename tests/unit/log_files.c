/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/log_files.h"

#include "convert/source/source.h"
#include "schemas/log/log.h"
#include "schemas/log/writer.h"
#include "schemas/model/records.h"
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	TRACKS = 7,
	NAMES = 40,
	DESCS = 120,
	SCHEMAS = DESCS / 2,
	SCHEMA_KEYS = 6,
	CEILING = 256 << 20,
};

static uint64_t below(uint64_t *state, uint64_t limit)
{
	return random_u64(state) % limit;
}

static uint32_t name(struct trace *t, const char *text)
{
	return trace_name(t, text, strlen(text), NULL);
}

static uint32_t numbered(struct trace *t, const char *what, uint64_t number)
{
	char text[64];

	snprintf(text, sizeof(text), "%s %llu", what, (unsigned long long)number);
	return name(t, text);
}

static void make_attrs(struct trace *t, uint64_t *state, struct attr *attrs, uint32_t count,
		       const char *what, bool numbers)
{
	for (uint32_t i = 0; i < count; i++) {
		unsigned type = (unsigned)below(state, numbers ? 3 : 5);
		uint64_t bits = random_u64(state) >> below(state, 64);
		char text[64];

		if (type >= ATTR_TEXT) {
			snprintf(text, sizeof(text), "[%llu, \"text\"]",
				 (unsigned long long)below(state, 30));
			bits = name(t, text);
		}
		attrs[i].key = numbered(t, what, i * 3 + below(state, 3));
		attrs[i].type = (uint8_t)type;
		attrs[i].unit = (uint8_t)below(state, 5);
		attrs[i].bits = bits;
	}
}

static uint32_t make_schema(struct trace *t, uint64_t *state, unsigned args_max)
{
	struct attr consts[SCHEMA_KEYS], args[SCHEMA_KEYS];
	struct arg_schema schema = { .consts = consts, .args = args };

	schema.const_count = (uint32_t)below(state, SCHEMA_KEYS);
	schema.arg_count = (uint32_t)below(state, args_max + 1);
	make_attrs(t, state, consts, schema.const_count, "key", false);
	make_attrs(t, state, args, schema.arg_count, "number", true);
	if (!schema.const_count && !schema.arg_count)
		return 0;
	return trace_schema(t, &schema, NULL);
}

static void make_tables(struct trace *t, uint64_t *state, unsigned rows)
{
	for (unsigned i = 0; i < rows; i++) {
		struct process p = { .host = numbered(t, "host", i),
				     .command = name(t, "train"),
				     .pid = 100 + i,
				     .rank = i % 2 ? NO_RANK : i,
				     .world_size = 8,
				     .schema = make_schema(t, state, 0) };
		struct device d = { .process = trace_process(t, &p, NULL),
				    .id = i % 3,
				    .name = name(t, "GPU"),
				    .schema = make_schema(t, state, 0) };
		struct window w = { .process = d.process,
				    .spec = name(t, "steps:1-3"),
				    .begin_ns = 1000 + i,
				    .end_ns = 2000,
				    .own_ns = 7,
				    .cut_short = i % 2 };
		struct anchor a = { .process = d.process,
				    .realtime_ns = random_u64(state),
				    .monotonic_ns = i,
				    .cupti_ns = 5 };

		trace_device(t, &d, NULL);
		trace_window(t, &w, NULL);
		trace_anchor(t, &a, NULL);
		trace_lose(t, d.process, LOSS_RING, i + 1);
	}
	trace_lose(t, 0, LOSS_CUPTI, 77);
}

static void make_descs(struct trace *t, uint64_t *state, struct event_desc *descs, unsigned count)
{
	uint32_t tracks[TRACKS], schemas[SCHEMAS], schema_count = count / 2;

	for (unsigned i = 0; i < TRACKS; i++) {
		struct track k = { .type = (enum track_type)(i % 4),
				   .process = 1,
				   .device = i % 2,
				   .name = numbered(t, "track", i),
				   .context = NO_ID,
				   .id = random_u64(state),
				   .unit = UNIT_BYTES };

		tracks[i] = trace_track(t, &k, NULL);
		trace_add_launches(t, tracks[i], i * 5);
	}
	for (unsigned i = 0; i < schema_count; i++)
		schemas[i] = make_schema(t, state, SCHEMA_KEYS);
	for (unsigned i = 0; i < count; i++) {
		descs[i].track = tracks[below(state, TRACKS)];
		descs[i].name = numbered(t, "event", below(state, NAMES));
		descs[i].schema = schemas[below(state, schema_count)];
		descs[i].kind = (uint8_t)below(state, KIND_END);
		descs[i].subkind = (uint8_t)below(state, 10);
		trace_desc(t, &descs[i], NULL);
	}
}

static int compare(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	if (event_before(a, b) || event_before(b, a))
		return event_before(a, b) ? -1 : 1;
	return a->step < b->step ? -1 : a->step > b->step;
}

static void make_event(struct log_run *run, uint64_t *state, struct event *e,
		       const struct event_desc *desc, uint64_t *now)
{
	unsigned shift = (unsigned)below(state, 40);

	*now += below(state, 4) * 1000;
	*e = (struct event){
		.begin_ns = *now,
		.track = desc->track,
		.name = desc->name,
		.schema = desc->schema,
		.kind = desc->kind,
		.subkind = desc->subkind,
	};
	e->begin_ns += below(state, 50) ? 0 : random_u64(state) >> 30;
	e->flags = below(state, 10) ? 0 : (uint8_t)below(state, 16);
	e->correlation = below(state, 3) ? *now / 1000 : random_u64(state) >> shift;
	e->bytes = random_u64(state) >> shift;
	e->end_ns =
		e->begin_ns + (below(state, 4) ? below(state, 40) * 32 : random_u64(state) >> 30);
}

/* Numbers as recordings have them, for each way to code a column. */
static uint64_t make_word(const struct event *e, uint64_t *state, uint32_t key, size_t i)
{
	switch (key) {
	case 0:
		return i * 3;
	case 1:
		return e->end_ns + below(state, 3) * 32;
	case 2:
		return e->correlation + 7;
	case 3:
		return e->schema * UINT64_C(0x1234567) + (below(state, 9) ? 0 : i);
	default:
		return random_u64(state) >> below(state, 60);
	}
}

bool log_run_make(struct log_run *run, uint64_t seed, size_t count, unsigned tables)
{
	uint64_t state = seed * 2 + 1, now = UINT64_C(1700000000000000000), *word;
	unsigned desc_count = count < 1000 ? 10 : DESCS;
	struct event_desc descs[DESCS];

	memset(run, 0, sizeof(*run));
	if (!CHECK_OK(trace_new(&run->trace, CEILING, NULL), NULL))
		return false;
	trace_provenance(run->trace)->epoch_known = true;
	make_tables(run->trace, &state, tables);
	make_descs(run->trace, &state, descs, desc_count);
	run->events = calloc(count + 1, sizeof(*run->events));
	run->args = calloc(count * SCHEMA_KEYS + 1, sizeof(*run->args));
	run->count = count;
	word = run->args;
	for (size_t i = 0; i < count; i++) {
		struct event *e = &run->events[i];
		uint32_t args;

		make_event(run, &state, e, &descs[below(&state, desc_count)], &now);
		e->step = (uint32_t)i;
		args = trace_get_schema(run->trace, e->schema)->arg_count;
		e->args = args ? word : NULL;
		for (uint32_t k = 0; k < args; k++)
			*word++ = make_word(e, &state, k, i);
	}
	qsort(run->events, count, sizeof(run->events[0]), compare);
	for (size_t i = 0; i < count; i++)
		run->events[i].step = 0;
	return true;
}

void log_run_release(struct log_run *run)
{
	trace_free(run->trace);
	free(run->events);
	free(run->args);
	memset(run, 0, sizeof(*run));
}

static uint32_t desc_of(struct trace *t, const struct event *e)
{
	struct event_desc desc = { e->track, e->name, e->schema, e->kind, e->subkind };

	return trace_desc(t, &desc, NULL);
}

/* How many before this one begin and end as it does. */
static uint32_t order_of(const struct log_run *run, size_t at)
{
	const struct event *e = &run->events[at];
	uint32_t order = 0;

	for (; at && !event_before(e - 1, e) && !event_before(e, e - 1); at--, e--)
		order++;
	return order;
}

static size_t strayed(const struct log_run *run, size_t i)
{
	size_t first = i - i % run->stray, end = first + run->stray;

	return (end < run->count ? end : run->count) - 1 - (i - first);
}

bool log_run_write(const struct log_run *run, size_t flush_every, bool with_end, struct buf *out)
{
	struct log_writer *w;
	struct error err = { 0 };
	bool good;

	if (!CHECK_OK(log_writer_new(&w, run->trace, CEILING, &err), &err))
		return false;
	good = CHECK_OK(log_writer_begin(w, out, &err), &err);
	for (size_t i = 0; i < run->count && good; i++) {
		size_t at = run->stray ? strayed(run, i) : i;
		const struct event *e = &run->events[at];

		good = log_writer_put(w, e, desc_of(run->trace, e), order_of(run, at), out, &err) ==
		       ST_OK;
		if (good && flush_every && i % flush_every == flush_every - 1)
			good = log_writer_flush(w, out, &err) == ST_OK;
	}
	if (good && with_end)
		good = log_writer_end(w, out, &err) == ST_OK;
	else if (good)
		good = log_writer_flush(w, out, &err) == ST_OK;
	CHECK_STR(err.text, "");
	log_writer_free(w);
	return good;
}

struct input *log_input(const void *bytes, size_t len)
{
	char path[64];
	struct input *in = NULL;
	struct error err = { 0 };
	int fd = memfd_create("log", 0);

	if (!CHECK(fd >= 0))
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (CHECK(write(fd, bytes, len) == (ssize_t)len))
		CHECK_OK(input_open(&in, path, "/tmp", &err), &err);
	close(fd);
	return in;
}

static bool text_same(const struct trace *a, uint32_t x, const struct trace *b, uint32_t y)
{
	size_t len, other;
	const char *text = trace_text(a, x, &len), *twin = trace_text(b, y, &other);

	return len == other && memcmp(text, twin, len) == 0;
}

static bool attr_same(const struct trace *a, const struct attr *x, const struct trace *b,
		      const struct attr *y, bool with_bits)
{
	if (!text_same(a, x->key, b, y->key) || x->type != y->type || x->unit != y->unit)
		return false;
	if (!with_bits)
		return true;
	if (x->type == ATTR_TEXT || x->type == ATTR_JSON)
		return text_same(a, (uint32_t)x->bits, b, (uint32_t)y->bits);
	return x->bits == y->bits;
}

static bool schema_same(const struct trace *a, uint32_t x, const struct trace *b, uint32_t y)
{
	const struct arg_schema *s = trace_get_schema(a, x), *r = trace_get_schema(b, y);

	if (s->const_count != r->const_count || s->arg_count != r->arg_count)
		return false;
	for (uint32_t i = 0; i < s->const_count; i++)
		if (!attr_same(a, &s->consts[i], b, &r->consts[i], true))
			return false;
	for (uint32_t i = 0; i < s->arg_count; i++)
		if (!attr_same(a, &s->args[i], b, &r->args[i], false))
			return false;
	return true;
}

static bool track_same(const struct trace *a, uint32_t x, const struct trace *b, uint32_t y)
{
	const struct track *k = trace_get_track(a, x), *l = trace_get_track(b, y);

	return k->type == l->type && k->device == l->device && k->context == l->context &&
	       k->id == l->id && k->unit == l->unit && text_same(a, k->name, b, l->name) &&
	       trace_get_process(a, k->process)->pid == trace_get_process(b, l->process)->pid;
}

bool log_same(const struct trace *a, const struct event *x, const struct trace *b,
	      const struct event *y)
{
	uint32_t args = trace_get_schema(a, x->schema)->arg_count;

	return x->begin_ns == y->begin_ns && x->end_ns == y->end_ns &&
	       x->correlation == y->correlation && x->bytes == y->bytes && x->kind == y->kind &&
	       x->subkind == y->subkind && x->flags == y->flags && x->step == y->step &&
	       text_same(a, x->name, b, y->name) && track_same(a, x->track, b, y->track) &&
	       schema_same(a, x->schema, b, y->schema) &&
	       (!args || memcmp(x->args, y->args, args * sizeof(*x->args)) == 0);
}

enum { ALONE = 1 << 16, OF_MANY = 1 << 14 };

static struct source *open_log(struct input *in, struct trace *trace, size_t resident,
			       enum status *st, struct error *err)
{
	struct budget budget = { .opening = CEILING, .resident = resident, .scratch = "/tmp" };
	struct source *s = NULL;

	*st = source_log.open(&s, in, trace, &budget, NULL, err);
	return s;
}

static size_t run_compare(const struct log_run *run, const void *bytes, size_t len, size_t resident)
{
	struct input *in = log_input(bytes, len);
	struct trace *trace = NULL;
	struct error err = { 0 };
	struct batch batch;
	enum status st = trace_new(&trace, CEILING, &err);
	struct source *s = open_log(in, trace, resident, &st, &err);
	size_t same = 0;

	while (s && (st = source_log.next(s, &batch, &err)) == ST_OK)
		for (size_t i = 0; i < batch.count; i++)
			same += same < run->count &&
				log_same(run->trace, &run->events[same], trace, &batch.events[i]);
	CHECK_U64(st, ST_END);
	CHECK_STR(err.text, "");
	if (s)
		source_log.close(s);
	trace_free(trace);
	input_close(in);
	return same;
}

size_t log_run_compare(const struct log_run *run, const void *bytes, size_t len)
{
	size_t alone = run_compare(run, bytes, len, ALONE);

	CHECK_U64(run_compare(run, bytes, len, OF_MANY), alone);
	return alone;
}

static enum status read_all(const void *bytes, size_t len, size_t resident, struct trace *trace,
			    uint64_t *events, struct error *err)
{
	struct input *in = log_input(bytes, len);
	enum status st;
	struct source *s = open_log(in, trace, resident, &st, err);
	struct batch batch;
	uint64_t begin_ns = 0, end_ns = 0;

	*events = 0;
	while (s && (st = source_log.next(s, &batch, err)) == ST_OK) {
		for (size_t i = 0; i < batch.count; i++) {
			const struct event *e = &batch.events[i];
			struct event last = { .begin_ns = begin_ns, .end_ns = end_ns };

			if (e->end_ns < e->begin_ns || (begin_ns && event_before(e, &last)))
				CHECK(!"an event out of order");
			begin_ns = e->begin_ns;
			end_ns = e->end_ns;
		}
		*events += batch.count;
	}
	if (s)
		source_log.close(s);
	input_close(in);
	return st;
}

enum status log_read(const void *bytes, size_t len, struct trace *trace, uint64_t *events,
		     struct error *err)
{
	return read_all(bytes, len, ALONE, trace, events, err);
}

enum status log_read_sparing(const void *bytes, size_t len, struct trace *trace, uint64_t *events,
			     struct error *err)
{
	return read_all(bytes, len, OF_MANY, trace, events, err);
}

void log_put_block(struct buf *out, unsigned kind, unsigned layout, unsigned rows,
		   const struct buf *payload, uint64_t begin_ns, uint64_t end_ns)
{
	struct log_block block = {
		.size = (uint32_t)payload->len,
		.raw_size = (uint32_t)payload->len,
		.rows = rows,
		.kind = (uint16_t)kind,
		.layout = (uint16_t)layout,
		.flags = kind == LOG_EVENTS ? LOG_SORTED : 0,
		.first_begin_ns = begin_ns,
		.last_begin_ns = end_ns,
		.last_end_ns = end_ns,
	};
	uint8_t header[LOG_HEADER_BYTES];

	log_put_block_header(&block, payload->data, header);
	buf_put(out, header, sizeof(header));
	buf_put(out, payload->data, payload->len);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables and events made of any bytes, written as a log, packed or not, and read again: the same
 * events in the same order, with the same texts, attributes and numbers.
 */
#include "convert/input/input.h"
#include "convert/source/source.h"
#include "schemas/base/buf.h"
#include "schemas/log/writer.h"
#include "tests/fuzz/target.h"

enum { EVENTS = 400, DESCS = 8, KEYS = 4, FILE_MAX = 8 << 20 };

struct run {
	struct trace *trace;
	struct event_desc descs[DESCS];
	struct event events[EVENTS];
	uint64_t args[EVENTS][KEYS];
	size_t count;
};

static uint32_t make_name(struct trace *t, struct fuzz_bytes *b)
{
	char *text = fuzz_text(b);
	uint32_t id = trace_name(t, text, strlen(text), NULL);

	free(text);
	return id;
}

/* Keys of one shape differ; none is a field of a record, whose type is fixed. */
static uint32_t make_schema(struct trace *t, struct fuzz_bytes *b)
{
	struct attr consts[KEYS], args[KEYS];
	struct arg_schema schema = { consts, args, fuzz_below(b, KEYS + 1),
				     fuzz_below(b, KEYS + 1) };
	char key[16];
	uint32_t i;

	for (i = 0; i < schema.const_count + schema.arg_count; i++) {
		struct attr *a =
			i < schema.const_count ? &consts[i] : &args[i - schema.const_count];
		bool is_const = i < schema.const_count;

		snprintf(key, sizeof(key), "fuzz %u", i);
		*a = (struct attr){ .key = trace_name(t, key, strlen(key), NULL),
				    .type = (uint8_t)fuzz_below(b, is_const ? 4 : 3) };
		if (a->type == ATTR_TEXT)
			a->bits = make_name(t, b);
		else if (is_const)
			a->bits = fuzz_number(b, 8);
	}
	return schema.const_count + schema.arg_count ? trace_schema(t, &schema, NULL) : 0;
}

static void make_desc(struct run *r, struct fuzz_bytes *b, struct event_desc *s)
{
	struct process p = { .host = make_name(r->trace, b),
			     .pid = fuzz_below(b, 3),
			     .rank = fuzz_below(b, 4),
			     .world_size = 4 };
	struct track k = { .type = (enum track_type)fuzz_below(b, 4),
			   .device = fuzz_below(b, 2),
			   .context = NO_ID,
			   .id = fuzz_number(b, 2) };

	k.process = trace_process(r->trace, &p, NULL);
	k.name = make_name(r->trace, b);
	s->track = trace_track(r->trace, &k, NULL);
	s->name = make_name(r->trace, b);
	s->schema = make_schema(r->trace, b);
	s->kind = (uint8_t)fuzz_below(b, KIND_END);
	s->subkind = (uint8_t)fuzz_number(b, 1);
	trace_desc(r->trace, s, NULL);
}

/* Few bytes an event: most are like the one before. */
static void make_event(struct run *r, struct fuzz_bytes *b, uint64_t *now)
{
	unsigned how = (unsigned)fuzz_number(b, 1), k;
	struct event *e = &r->events[r->count];
	const struct event_desc *s = &r->descs[how % DESCS];
	uint64_t *args = r->args[r->count];

	*now += how & 8 ? fuzz_number(b, 5) : how >> 4;
	if (*now > UINT64_MAX / 4)
		*now = UINT64_MAX / 4;
	*e = (struct event){ .begin_ns = *now,
			     .end_ns = *now,
			     .track = s->track,
			     .name = s->name,
			     .schema = s->schema,
			     .kind = s->kind,
			     .subkind = s->subkind,
			     .correlation = r->count };
	if (how & 16)
		e->end_ns += fuzz_number(b, 1 + how % 7);
	if (how & 32)
		e->correlation = fuzz_number(b, 8);
	if (how & 64)
		e->bytes = fuzz_number(b, 8);
	if (how & 128)
		e->flags = (uint8_t)fuzz_below(b, 16);
	for (k = 0; k < KEYS; k++)
		args[k] = how & 64 ? fuzz_number(b, 8) : e->end_ns + k;
	if (trace_get_schema(r->trace, s->schema)->arg_count)
		e->args = args;
	e->step = (uint32_t)r->count++; /* to sort by */
}

static int compare(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	if (event_before(a, b) || event_before(b, a))
		return event_before(a, b) ? -1 : 1;
	return a->step < b->step ? -1 : a->step > b->step;
}

static bool write_log(struct run *r, unsigned flush_every, struct buf *out)
{
	struct log_writer *w;
	uint32_t order = 0;
	size_t i;
	bool good;

	if (log_writer_new(&w, r->trace, 16 << 20, NULL) != ST_OK)
		return false;
	good = log_writer_begin(w, out, NULL) == ST_OK;
	for (i = 0; i < r->count && good; i++) {
		const struct event *e = &r->events[i];
		struct event_desc s = { e->track, e->name, e->schema, e->kind, e->subkind };

		order = i && !event_before(e - 1, e) ? order + 1 : 0;
		good = log_writer_put(w, e, trace_desc(r->trace, &s, NULL), order, out, NULL) ==
		       ST_OK;
		if (good && flush_every && i % flush_every == 0)
			good = log_writer_flush(w, out, NULL) == ST_OK;
	}
	good = good && log_writer_end(w, out, NULL) == ST_OK;
	log_writer_free(w);
	return good && buf_status(out, NULL) == ST_OK;
}

static void check_text(const struct trace *a, uint32_t x, const struct trace *b, uint32_t y)
{
	size_t len, other;
	const char *text = trace_text(a, x, &len), *twin = trace_text(b, y, &other);

	if (len != other || memcmp(text, twin, len) != 0)
		abort();
}

static void check_schema(const struct trace *a, uint32_t x, const struct trace *b, uint32_t y)
{
	const struct arg_schema *s = trace_get_schema(a, x), *r = trace_get_schema(b, y);
	uint32_t i;

	if (s->const_count != r->const_count || s->arg_count != r->arg_count)
		abort();
	for (i = 0; i < s->const_count; i++) {
		check_text(a, s->consts[i].key, b, r->consts[i].key);
		if (s->consts[i].type == ATTR_TEXT)
			check_text(a, (uint32_t)s->consts[i].bits, b, (uint32_t)r->consts[i].bits);
		else if (s->consts[i].bits != r->consts[i].bits)
			abort();
	}
	for (i = 0; i < s->arg_count; i++)
		check_text(a, s->args[i].key, b, r->args[i].key);
}

static void check_event(const struct trace *a, const struct event *x, const struct trace *b,
			const struct event *y)
{
	const struct track *k = trace_get_track(a, x->track), *l = trace_get_track(b, y->track);
	uint32_t args = trace_get_schema(a, x->schema)->arg_count;

	if (x->begin_ns != y->begin_ns || x->end_ns != y->end_ns ||
	    x->correlation != y->correlation || x->bytes != y->bytes || x->kind != y->kind ||
	    x->subkind != y->subkind || x->flags != y->flags || k->type != l->type ||
	    k->device != l->device || k->id != l->id)
		abort();
	check_text(a, x->name, b, y->name);
	check_text(a, k->name, b, l->name);
	check_schema(a, x->schema, b, y->schema);
	if (args && memcmp(x->args, y->args, args * sizeof(*x->args)) != 0)
		abort();
}

static void check_log(const struct run *r, const struct buf *file)
{
	struct budget budget = { .opening = 8 << 20, .resident = 65536, .scratch = "/tmp" };
	struct source *source = NULL;
	struct trace *t = NULL;
	struct input *in = NULL;
	struct batch batch;
	char path[64];
	int fd = fuzz_file(file->data, file->len, path);
	enum status st;
	size_t at = 0, i;

	if (input_open(&in, path, "/tmp", NULL) != ST_OK ||
	    trace_new(&t, 32 << 20, NULL) != ST_OK ||
	    source_log.open(&source, in, t, &budget, NULL, NULL) != ST_OK)
		abort();
	while ((st = source_next(source, &batch, NULL)) == ST_OK)
		for (i = 0; i < batch.count; i++, at++) {
			if (at >= r->count)
				abort();
			check_event(r->trace, &r->events[at], t, &batch.events[i]);
		}
	if (st != ST_END || at != r->count || !trace_provenance(t)->is_whole)
		abort();
	source_close(source);
	input_close(in);
	trace_free(t);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run r;
	struct fuzz_bytes b = { data, data + size };
	unsigned flush_every = fuzz_below(&b, 100), i;
	uint64_t now = UINT64_C(1700000000000000000);
	struct buf file;

	r.count = 0;
	if (trace_new(&r.trace, 16 << 20, NULL) != ST_OK)
		return 0;
	trace_provenance(r.trace)->epoch_known = true;
	for (i = 0; i < DESCS; i++)
		make_desc(&r, &b, &r.descs[i]);
	while (r.count < EVENTS && b.at < b.end)
		make_event(&r, &b, &now);
	qsort(r.events, r.count, sizeof(r.events[0]), compare);
	buf_init(&file, FILE_MAX);
	if (write_log(&r, flush_every, &file))
		check_log(&r, &file);
	buf_release(&file);
	trace_free(r.trace);
	return 0;
}

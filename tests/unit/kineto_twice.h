/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto_twice.h - a Kineto text read with and without import_fast.h: two digests
 * that must be the same, of all events in the order of the spool, all tables, losses and faults.
 */
#ifndef TESTS_UNIT_KINETO_TWICE_H
#define TESTS_UNIT_KINETO_TWICE_H

#include "convert/input/input.h"
#include "convert/source/kineto/import.h"
#include "schemas/base/plain.h"

struct kineto_digest {
	struct buf all; /* the whole of it, for the first difference */
	uint64_t events;
	struct {
		uint64_t taken, learnt;
	} fast; /* how many elements were taken from templates, and how many became one */
};

static inline void digest_event(struct kineto_digest *d, const struct trace *t,
				const struct event *e)
{
	uint32_t words = e->args ? trace_get_schema(t, e->schema)->arg_count : 0;
	struct event plain = *e;

	plain.args = NULL;
	buf_put(&d->all, &plain, sizeof(plain));
	buf_put(&d->all, e->args, words * sizeof(*e->args));
	d->events++;
}

static inline void digest_tables(struct kineto_digest *d, const struct trace *t)
{
	for (uint32_t i = 1; i <= trace_count(t, TRACE_NAMES); i++) {
		size_t len;
		const char *text = trace_text(t, i, &len);

		buf_put(&d->all, text, len + 1);
	}
	for (uint32_t i = 1; i <= trace_count(t, TRACE_TRACKS); i++) {
		const struct track *k = trace_get_track(t, i);

		buf_put_u64(&d->all, k->id);
		buf_put_u64(&d->all, (uint64_t)k->device << 32 | k->context);
		buf_put_u64(&d->all, (uint64_t)k->type << 32 | k->name);
		buf_put_u64(&d->all, trace_launches(t, i));
	}
	for (uint32_t i = 1; i <= trace_count(t, TRACE_DESCS); i++) {
		const struct event_desc *s = trace_get_desc(t, i);

		buf_put_u64(&d->all, (uint64_t)s->track << 32 | s->name);
		buf_put_u64(&d->all,
			    (uint64_t)s->schema << 32 | (uint32_t)s->kind << 8 | s->subkind);
	}
	buf_put_u64(&d->all, trace_count(t, TRACE_SCHEMAS));
	for (unsigned why = 0; why < LOSS_END; why++)
		buf_put_u64(&d->all, trace_lost(t, 0, (enum loss)why));
}

static inline void digest_fault(struct kineto_digest *d, const struct error *fault)
{
	buf_put_u64(&d->all, (uint64_t)fault->status);
	buf_put_u64(&d->all, fault->status == ST_OK ? 0 : fault->at);
	if (fault->status != ST_OK)
		buf_put_text(&d->all, fault->text);
}

static inline void digest_import(struct kineto_digest *d, struct input *in, struct trace *t,
				 struct spool *spool)
{
	struct process p = { .rank = NO_RANK };
	struct kineto_import k;
	struct error fault = { 0 }, err = { 0 };
	struct batch batch;
	uint32_t group;
	enum status status;

	status = kineto_import_init(&k, t, spool, trace_process(t, &p, &err), &err);
	if (status == ST_OK)
		status = kineto_import_read(&k, in, &fault, &err);
	if (status == ST_OK)
		status = kineto_import_finish(&k, "a.json", &err);
	buf_put_u64(&d->all, (uint64_t)status);
	digest_fault(d, status == ST_OK ? &fault : &err);
	buf_put_u64(&d->all, (uint64_t)k.to.first_ns);
	buf_put_u64(&d->all, k.to.events);
	d->fast.taken = k.fast.templates.found;
	d->fast.learnt = k.fast.templates.added;
	while (status == ST_OK && spool_next(spool, &group, &batch, NULL) == ST_OK)
		for (size_t i = 0; i < batch.count; i++)
			digest_event(d, t, &batch.events[i]);
	kineto_import_release(&k);
}

/* Of the file at `path`; to be released with kineto_digest_release(). */
static inline void kineto_digest_init(struct kineto_digest *d, const char *path, bool is_plain)
{
	struct budget budget = { .opening = 8 << 20, .resident = 65536, .scratch = "/tmp" };
	struct trace *t = NULL;
	struct input *in = NULL;
	struct spool *spool = NULL;

	*d = (struct kineto_digest){ 0 };
	plain_ways = is_plain;
	buf_init(&d->all, (size_t)512 << 20);
	if (trace_new(&t, 64 << 20, NULL) == ST_OK &&
	    input_open(&in, path, "/tmp", NULL) == ST_OK &&
	    spool_open(&spool, t, &budget, NULL) == ST_OK) {
		digest_import(d, in, t, spool);
		digest_tables(d, t);
	}
	plain_ways = false;
	spool_close(spool);
	input_close(in);
	trace_free(t);
}

static inline void kineto_digest_release(struct kineto_digest *d)
{
	buf_release(&d->all);
}

static inline bool kineto_digest_same(const struct kineto_digest *a, const struct kineto_digest *b)
{
	return a->all.status == ST_OK && a->all.len == b->all.len && a->all.len &&
	       memcmp(a->all.data, b->all.data, a->all.len) == 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/chrome/head.h"

#include "convert/chrome/args.h"
#include "schemas/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kineto's grid for baseTimeNanoseconds: ranks that started in the same quarter share a base. */
#define BASE_GRID_S 7889238u
enum { GPU_SORT_INDEX = 5000000, DEVICE_GAP_MAX = 64 };

static uint64_t find_base(const struct trace *t, const struct process *p, bool is_native,
			  uint64_t first_ns)
{
	const struct attr *a = trace_find_attr(t, p->shape, "baseTimeNanoseconds");

	if (a && (a->type == ATTR_U64 || a->type == ATTR_I64))
		return a->bits;
	if (!is_native)
		return 0; /* an older file: microseconds since the epoch */
	return first_ns / 1000000000u / BASE_GRID_S * BASE_GRID_S * 1000000000u;
}

struct chrome_file chrome_file(const struct trace *trace, uint32_t process, uint64_t first_ns)
{
	const struct process *p = trace_get_process(trace, process);
	bool is_native = !trace_find_attr(trace, p->shape, ".imported");

	return (struct chrome_file){
		.trace = trace,
		.process = process,
		.is_native = is_native,
		.base_ns = find_base(trace, p, is_native, first_ns),
		.first_ns = first_ns,
	};
}

/* ---- keys before the events ---- */

/* Valid JSON with a space after each colon and comma. */
static void put_spaced(struct buf *b, const char *json, size_t len)
{
	bool in_text = false;

	for (size_t i = 0; i < len; i++) {
		char c = json[i];

		buf_put_byte(b, (uint8_t)c);
		if (in_text && c == '\\' && i + 1 < len)
			buf_put_byte(b, (uint8_t)json[++i]);
		else if (c == '"')
			in_text = !in_text;
		else if (!in_text && (c == ':' || c == ',') && i + 1 < len && json[i + 1] != ' ')
			buf_put_byte(b, ' ');
	}
}

static void put_key_value(struct buf *b, const struct trace *t, const struct attr *attr)
{
	size_t len;
	const char *text = trace_text(t, attr->key, &len);

	json_put_text(b, text, len);
	buf_put_text(b, ": ");
	if (attr->type != ATTR_JSON) {
		json_put_value(b, t, attr->type, attr->bits);
		return;
	}
	text = trace_text(t, (uint32_t)attr->bits, &len);
	put_spaced(b, text, len);
}

static bool key_is(const struct trace *t, const struct attr *attr, const char *word)
{
	return strcmp(trace_text(t, attr->key, NULL), word) == 0;
}

static void put_device(struct buf *b, const struct trace *t, const struct device *d)
{
	const struct shape *s = trace_get_shape(t, d->shape);
	const char *name;
	size_t len;

	buf_putf(b, "    {\"id\": %u", d->id);
	name = trace_text(t, d->name, &len);
	if (len || d->shape) {
		buf_put_text(b, ", \"name\": ");
		json_put_text(b, name, len);
	}
	for (size_t i = 0; i < s->fixed_count; i++) {
		if (key_is(t, &s->fixed[i], "id") || key_is(t, &s->fixed[i], "name"))
			continue;
		buf_put_text(b, ", ");
		put_key_value(b, t, &s->fixed[i]);
	}
	buf_put_byte(b, '}');
}

/* The row of the least device id >= `from` that something is known of; 0: there is none. */
static uint32_t next_device(const struct chrome_file *f, uint32_t from)
{
	uint32_t count = trace_count(f->trace, TRACE_DEVICES), best = 0;

	for (uint32_t id = 1; id <= count; id++) {
		const struct device *d = trace_get_device(f->trace, id);

		if (d->process == f->process && d->id >= from && (d->name || d->shape) &&
		    (!best || d->id < trace_get_device(f->trace, best)->id))
			best = id;
	}
	return best;
}

/* Readers take the place in the list for the id, so a place without a device is kept free. */
static void put_devices(struct buf *b, const struct chrome_file *f)
{
	uint32_t place = 0, row;

	buf_put_text(b, "  \"deviceProperties\": [");
	while ((row = next_device(f, place)) != 0) {
		const struct device *d = trace_get_device(f->trace, row);

		if (d->id - place > DEVICE_GAP_MAX)
			break;
		for (; place < d->id; place++)
			buf_putf(b, "%s\n    {\"id\": %u}", place ? "," : "", place);
		buf_put_text(b, place ? ",\n" : "\n");
		put_device(b, f->trace, d);
		place = d->id + 1;
	}
	buf_put_text(b, place ? "\n  ],\n" : "],\n");
}

/* Written by the functions around, or not a key of the file at all. */
static bool is_ours(const struct chrome_file *f, const struct attr *attr)
{
	const struct trace *t = f->trace;

	return trace_text(t, attr->key, NULL)[0] == '.' || key_is(t, attr, "traceEvents") ||
	       key_is(t, attr, "baseTimeNanoseconds") ||
	       (key_is(t, attr, "deviceProperties") && next_device(f, 0));
}

/* Top-level keys of the file that the process was imported from: distributedInfo first, because
 * the first `"rank": N` of a file counts. */
static void put_imported(struct buf *b, const struct chrome_file *f, const struct shape *s)
{
	const struct trace *t = f->trace;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < s->fixed_count; i++) {
			if (is_ours(f, &s->fixed[i]) ||
			    key_is(t, &s->fixed[i], "distributedInfo") != (pass == 0))
				continue;
			buf_put_text(b, "  ");
			put_key_value(b, t, &s->fixed[i]);
			buf_put_text(b, ",\n");
		}
	}
}

static void put_native(struct buf *b, const struct trace *t, const struct process *p)
{
	const char *text;
	size_t len;

	buf_put_text(b, "  \"schemaVersion\": 1,\n");
	if (p->rank != NO_RANK)
		buf_putf(b, "  \"distributedInfo\": {\"rank\": %u, \"world_size\": %u},\n",
			 p->rank, p->world_size);
	text = trace_text(t, p->host, &len);
	if (len) {
		buf_put_text(b, "  \"host_name\": ");
		json_put_text(b, text, len);
		buf_put_text(b, ",\n");
	}
	buf_put_text(b, "  \"displayTimeUnit\": \"ms\",\n");
}

void chrome_put_head(struct buf *b, const struct chrome_file *f)
{
	const struct process *p = trace_get_process(f->trace, f->process);
	const struct shape *s = trace_get_shape(f->trace, p->shape);

	buf_put_text(b, "{\n");
	if (f->is_native)
		put_native(b, f->trace, p);
	else
		put_imported(b, f, s);
	if (f->is_native || next_device(f, 0))
		put_devices(b, f);
	if (f->base_ns)
		buf_putf(b, "  \"baseTimeNanoseconds\": %llu,\n", (unsigned long long)f->base_ns);
	buf_put_text(b, "  \"traceEvents\": [");
}

/* ---- times and places ---- */

void chrome_put_us(struct buf *b, uint64_t ns)
{
	unsigned rest = (unsigned)(ns % 1000);

	buf_put_u64_text(b, ns / 1000);
	if (rest) {
		char text[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
				(char)('0' + rest % 10)};
		buf_put(b, text, sizeof(text));
	}
}

void chrome_put_time(struct buf *b, const struct chrome_file *f, uint64_t at_ns)
{
	if (at_ns < f->base_ns)
		buf_put_byte(b, '-');
	chrome_put_us(b, at_ns < f->base_ns ? f->base_ns - at_ns : at_ns - f->base_ns);
}

void chrome_put_ts(struct buf *b, const struct chrome_file *f, uint64_t at_ns)
{
	buf_put_text(b, ", \"ts\": ");
	chrome_put_time(b, f, at_ns);
}

int64_t chrome_pid(const struct trace *trace, const struct track *k)
{
	bool on_gpu = k->home == HOME_STREAM || (k->home == HOME_COUNTER && k->device != NO_ID);

	if (!on_gpu)
		return (int64_t)trace_get_process(trace, k->process)->pid;
	return k->device == NO_ID ? 0 : (int64_t)k->device;
}

/* ---- rows of letter M ---- */

struct metas {
	struct buf *b;
	const struct chrome_file *f;
	bool any;
};

static void begin_meta(struct metas *m, const char *name, int64_t pid, int64_t tid,
		       const char *key)
{
	buf_put_text(m->b, m->any ? ",\n" : "\n");
	m->any = true;
	buf_putf(m->b, "{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %lld, \"tid\": %lld", name,
		 (long long)pid, (long long)tid);
	chrome_put_ts(m->b, m->f, m->f->first_ns);
	buf_putf(m->b, ", \"args\": {\"%s\": ", key);
}

static void put_text_meta(struct metas *m, const char *name, int64_t pid, int64_t tid,
			  const char *key, const char *text, size_t len)
{
	begin_meta(m, name, pid, tid, key);
	json_put_text(m->b, text, len);
	buf_put_text(m->b, "}}");
}

static void put_sort_meta(struct metas *m, const char *name, int64_t pid, int64_t tid,
			  int64_t number)
{
	begin_meta(m, name, pid, tid, "sort_index");
	buf_put_i64_text(m->b, number);
	buf_put_text(m->b, "}}");
}

static void put_process_meta(struct metas *m, int64_t pid, const char *label, int64_t sort)
{
	const struct process *p = trace_get_process(m->f->trace, m->f->process);
	size_t len;
	const char *name = trace_text(m->f->trace, p->command, &len);

	put_text_meta(m, "process_name", pid, 0, "name", len ? name : "python", len ? len : 6);
	put_text_meta(m, "process_labels", pid, 0, "labels", label, strlen(label));
	put_sort_meta(m, "process_sort_index", pid, 0, sort);
}

static void put_track_meta(struct metas *m, const struct track *k)
{
	int64_t pid = chrome_pid(m->f->trace, k), tid = (int64_t)k->id;
	size_t len;
	const char *name = trace_text(m->f->trace, k->name, &len);
	char made[64];

	if (!len && !m->f->is_native) /* the file named all it had; this row may be made up */
		return;
	if (!len) {
		len = (size_t)snprintf(made, sizeof(made), "%s %lld ",
				       k->home == HOME_STREAM ? "stream" : "thread",
				       (long long)tid);
		name = made;
	}
	put_text_meta(m, "thread_name", pid, tid, "name", name, len);
	put_sort_meta(m, "thread_sort_index", pid, tid, tid);
}

/* Threads first, then devices, each in one stretch; of equal rows the named one first. */
static int compare_tracks(const void *a, const void *b)
{
	const struct track *x = *(const struct track *const *)a;
	const struct track *y = *(const struct track *const *)b;

	if (x->home != y->home)
		return x->home == HOME_THREAD ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->name == 0) - (y->name == 0);
}

static size_t take_tracks(const struct chrome_file *f, const struct track **tracks)
{
	uint32_t count = trace_count(f->trace, TRACE_TRACKS);
	size_t taken = 0;

	for (uint32_t id = 1; id <= count; id++) {
		const struct track *k = trace_get_track(f->trace, id);

		if (k->process == f->process &&
		    (k->home == HOME_STREAM || k->home == HOME_THREAD))
			tracks[taken++] = k;
	}
	return taken;
}

/* Tracks of a stream differ by context too; a viewer's row is (device, stream). */
static bool same_row(const struct track *a, const struct track *b)
{
	return a->home == b->home && a->device == b->device && a->id == b->id;
}

enum status chrome_put_metas(struct buf *b, const struct chrome_file *f, struct error *err)
{
	struct metas m = {.b = b, .f = f};
	int64_t pid = trace_get_process(f->trace, f->process)->pid;
	const struct track **tracks =
		calloc(trace_count(f->trace, TRACE_TRACKS) + 1, sizeof(*tracks));
	char label[32];

	if (!tracks)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a list of tracks");
	size_t count = take_tracks(f, tracks);
	qsort(tracks, count, sizeof(*tracks), compare_tracks);
	put_process_meta(&m, pid, "CPU", pid);
	for (size_t i = 0; i < count; i++) {
		const struct track *k = tracks[i], *before = i ? tracks[i - 1] : NULL;

		if (before && same_row(before, k))
			continue;
		if (k->home == HOME_STREAM && (!before || before->home != HOME_STREAM ||
					       before->device != k->device)) {
			int64_t device = chrome_pid(f->trace, k);

			snprintf(label, sizeof(label), "GPU %lld", (long long)device);
			put_process_meta(&m, device, label, GPU_SORT_INDEX + device);
		}
		put_track_meta(&m, k);
	}
	free(tracks);
	return ST_OK;
}

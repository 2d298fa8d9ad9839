/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/chrome/internal.h"

#include "schemas/base/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kineto rounds baseTimeNanoseconds down to this grid, so that ranks that started in the same
 * quarter share a base. */
#define BASE_GRID_S 7889238u
enum { GPU_SORT_INDEX = 5000000, DEVICE_GAP_MAX = 64 };

struct chrome_file chrome_file(const struct trace *trace, uint32_t process, uint64_t first_ns)
{
	const struct process *p = trace_get_process(trace, process);
	const struct attr *base = trace_find_attr(trace, p->schema, "baseTimeNanoseconds");
	struct chrome_file f = {
		.trace = trace,
		.process = process,
		.is_native = !trace_find_attr(trace, p->schema, ".imported"),
		.first_ns = first_ns,
	};

	if (base && (base->type == ATTR_U64 || base->type == ATTR_I64))
		f.base_ns = base->bits;
	else if (f.is_native) /* otherwise an older file: times since the epoch */
		f.base_ns = first_ns / 1000000000u / BASE_GRID_S * BASE_GRID_S * 1000000000u;
	return f;
}

/* ---- keys before the events ---- */

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
	/* The text is valid JSON; append a space after each colon and comma. */
	bool in_text = false;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		buf_put_byte(b, (uint8_t)c);
		if (in_text && c == '\\' && i + 1 < len)
			buf_put_byte(b, (uint8_t)text[++i]);
		else if (c == '"')
			in_text = !in_text;
		else if (!in_text && (c == ':' || c == ',') && i + 1 < len && text[i + 1] != ' ')
			buf_put_byte(b, ' ');
	}
}

static bool key_is(const struct trace *t, const struct attr *attr, const char *word)
{
	return strcmp(trace_text(t, attr->key, NULL), word) == 0;
}

/* Returns the row of the device with the least id >= `from` that has a name or attributes, or 0. */
static uint32_t next_device(const struct chrome_file *f, uint32_t from)
{
	uint32_t count = trace_count(f->trace, TRACE_DEVICES), best = 0;

	for (uint32_t id = 1; id <= count; id++) {
		const struct device *d = trace_get_device(f->trace, id);

		if (d->process == f->process && d->id >= from && (d->name || d->schema) &&
		    (!best || d->id < trace_get_device(f->trace, best)->id))
			best = id;
	}
	return best;
}

/* Readers use the index in the list as the id, so indices without a device are filled. */
static void put_devices(struct buf *b, const struct chrome_file *f)
{
	const struct trace *t = f->trace;
	uint32_t index = 0, row;

	buf_put_text(b, "  \"deviceProperties\": [");
	while ((row = next_device(f, index)) != 0) {
		const struct device *d = trace_get_device(t, row);
		const struct arg_schema *s = trace_get_schema(t, d->schema);
		size_t len;
		const char *name = trace_text(t, d->name, &len);

		if (d->id - index > DEVICE_GAP_MAX)
			break;
		for (; index < d->id; index++)
			buf_putf(b, "%s\n    {\"id\": %u}", index ? "," : "", index);
		buf_putf(b, "%s\n    {\"id\": %u", index ? "," : "", d->id);
		if (len || d->schema) {
			buf_put_text(b, ", \"name\": ");
			json_put_text(b, name, len);
		}
		for (size_t i = 0; i < s->const_count; i++) {
			if (key_is(t, &s->consts[i], "id") || key_is(t, &s->consts[i], "name"))
				continue;
			buf_put_text(b, ", ");
			put_key_value(b, t, &s->consts[i]);
		}
		buf_put_byte(b, '}');
		index = d->id + 1;
	}
	buf_put_text(b, index ? "\n  ],\n" : "],\n");
}

/*
 * Appends the top-level keys of the file that the process was imported from, without those that are
 * written anyway or were not keys of the file. distributedInfo comes first, because readers use the
 * first `"rank": N` of a file.
 */
static void put_imported(struct buf *b, const struct chrome_file *f, const struct arg_schema *s)
{
	const struct trace *t = f->trace;

	for (size_t i = 0; i < 2 * (size_t)s->const_count; i++) {
		const struct attr *a = &s->consts[i % s->const_count];
		bool is_first_pass = i < s->const_count;

		if (trace_text(t, a->key, NULL)[0] == '.' || key_is(t, a, "traceEvents") ||
		    key_is(t, a, OWN_KEY) || key_is(t, a, "baseTimeNanoseconds") ||
		    (key_is(t, a, "deviceProperties") && next_device(f, 0)) ||
		    key_is(t, a, "distributedInfo") != is_first_pass)
			continue;
		buf_put_text(b, "  ");
		put_key_value(b, t, a);
		buf_put_text(b, ",\n");
	}
}

void chrome_put_head(struct buf *b, const struct chrome_file *f)
{
	const struct process *p = trace_get_process(f->trace, f->process);
	size_t len;
	const char *host = trace_text(f->trace, p->host, &len);

	buf_put_text(b, "{\n  \"" OWN_KEY "\": \"Tacho\",\n");
	if (f->is_native) {
		buf_put_text(b, "  \"schemaVersion\": 1,\n");
		if (p->rank != NO_RANK)
			buf_putf(b, "  \"distributedInfo\": {\"rank\": %u, \"world_size\": %u},\n",
				 p->rank, p->world_size);
		if (len) {
			buf_put_text(b, "  \"host_name\": ");
			json_put_text(b, host, len);
			buf_put_text(b, ",\n");
		}
		buf_put_text(b, "  \"displayTimeUnit\": \"ms\",\n");
	} else {
		put_imported(b, f, trace_get_schema(f->trace, p->schema));
	}
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
		char text[4] = { '.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
				 (char)('0' + rest % 10) };
		buf_put(b, text, sizeof(text));
	}
}

void chrome_put_time(struct buf *b, const struct chrome_file *f, uint64_t at_ns)
{
	if (at_ns < f->base_ns)
		buf_put_byte(b, '-');
	chrome_put_us(b, at_ns < f->base_ns ? f->base_ns - at_ns : at_ns - f->base_ns);
}

int64_t chrome_pid(const struct trace *trace, const struct track *k)
{
	bool on_gpu = k->type == TRACK_STREAM || (k->type == TRACK_COUNTER && k->device != NO_ID);

	if (!on_gpu)
		return (int64_t)trace_get_process(trace, k->process)->pid;
	return k->device == NO_ID ? 0 : (int64_t)k->device;
}

/* ---- rows of letter M ---- */

/* Appends a row.  If `text` is NULL, the value is `number`. */
static void put_meta(struct buf *b, const struct chrome_file *f, const char *name, int64_t pid,
		     int64_t tid, const char *key, const char *text, size_t len, int64_t number)
{
	bool is_first = b->len && b->data[b->len - 1] == '[';

	buf_putf(b, "%s{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %lld, \"tid\": %lld, \"ts\": ",
		 is_first ? "\n" : ",\n", name, (long long)pid, (long long)tid);
	chrome_put_time(b, f, f->first_ns);
	buf_putf(b, ", \"args\": {\"%s\": ", key);
	if (text)
		json_put_text(b, text, len);
	else
		buf_put_i64_text(b, number);
	buf_put_text(b, "}}");
}

static void put_process_meta(struct buf *b, const struct chrome_file *f, int64_t pid,
			     const char *label, int64_t sort)
{
	const struct process *p = trace_get_process(f->trace, f->process);
	size_t len;
	const char *name = trace_text(f->trace, p->command, &len);

	put_meta(b, f, "process_name", pid, 0, "name", len ? name : "python", len ? len : 6, 0);
	put_meta(b, f, "process_labels", pid, 0, "labels", label, strlen(label), 0);
	put_meta(b, f, "process_sort_index", pid, 0, "sort_index", NULL, 0, sort);
}

/* Sorts threads first, then streams by device; of equal rows, the one with a name comes first. */
static int compare_tracks(const void *a, const void *b)
{
	const struct track *x = *(const struct track *const *)a;
	const struct track *y = *(const struct track *const *)b;

	if (x->type != y->type)
		return x->type == TRACK_THREAD ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->name == 0) - (y->name == 0);
}

static void put_track_meta(struct buf *b, const struct chrome_file *f, const struct track *k)
{
	int64_t pid = chrome_pid(f->trace, k), tid = (int64_t)k->id;
	size_t len;
	const char *name = trace_text(f->trace, k->name, &len);
	char made[64];

	/* An imported file has names for all its rows.  A row without one may be made up, and an id
	 * that no thread can have stands for a text that the events themselves have. */
	if (!f->is_native && (!len || (k->type == TRACK_THREAD && k->id > UINT32_MAX)))
		return;
	if (!len) {
		len = (size_t)snprintf(made, sizeof(made), "%s %lld ",
				       k->type == TRACK_STREAM ? "stream" : "thread",
				       (long long)tid);
		name = made;
	}
	put_meta(b, f, "thread_name", pid, tid, "name", name, len, 0);
	put_meta(b, f, "thread_sort_index", pid, tid, "sort_index", NULL, 0, tid);
}

enum status chrome_put_metas(struct buf *b, const struct chrome_file *f, struct error *err)
{
	int64_t pid = trace_get_process(f->trace, f->process)->pid;
	uint32_t track_count = trace_count(f->trace, TRACE_TRACKS);
	const struct track **tracks = calloc(track_count + 1, sizeof(*tracks));
	size_t count = 0;
	char label[32];

	if (!tracks)
		return fail_memory(err);
	for (uint32_t id = 1; id <= track_count; id++) {
		const struct track *k = trace_get_track(f->trace, id);

		if (k->process == f->process &&
		    (k->type == TRACK_STREAM || k->type == TRACK_THREAD))
			tracks[count++] = k;
	}
	qsort(tracks, count, sizeof(*tracks), compare_tracks);
	put_process_meta(b, f, pid, "CPU", pid);
	for (size_t i = 0; i < count; i++) {
		const struct track *k = tracks[i], *before = i ? tracks[i - 1] : NULL;
		bool is_same_device =
			before && before->type == k->type && before->device == k->device;

		/* Streams may differ only by context, but a viewer's row is (device, stream). */
		if (is_same_device && before->id == k->id)
			continue;
		if (k->type == TRACK_STREAM && !is_same_device) {
			int64_t device = chrome_pid(f->trace, k);

			snprintf(label, sizeof(label), "GPU %lld", (long long)device);
			put_process_meta(b, f, device, label, GPU_SORT_INDEX + device);
		}
		put_track_meta(b, f, k);
	}
	free(tracks);
	return ST_OK;
}

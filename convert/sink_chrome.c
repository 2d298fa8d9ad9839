/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome JSON that Kineto would have written, so that HTA and TensorBoard's plugin read it:
 * spaced (`"rank": 0`), distributedInfo on a line of its own before the events, microseconds since
 * baseTimeNanoseconds, name and dur on every span, integers for pid and tid, finite numbers only.
 */
#include "convert/chrome_args.h"
#include "convert/out.h"
#include "convert/sink.h"
#include "schemas/json_text.h"
#include "schemas/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kineto's grid for baseTimeNanoseconds: ranks that started in the same quarter share a base. */
#define BASE_GRID_S 7889238u
enum { LINES_BYTES = 32 * 1024, LINES_CEILING = 64 << 20, GPU_SORT_INDEX = 5000000 };

struct chrome {
	struct sink base;
	struct trace *trace;
	struct out *out;
	uint32_t process;
	bool is_native; /* recorded by us, not imported from a Kineto file */
	bool started, any;
	uint64_t base_ns;
	struct chrome_args *args;
	struct buf lines, members;
};

static enum status flush_lines(struct chrome *c, size_t over, struct error *err)
{
	if (c->lines.len < over && c->lines.status == ST_OK)
		return ST_OK;
	TRY(buf_status(&c->lines, err));
	TRY(out_write(c->out, c->lines.data, c->lines.len, err));
	buf_clear(&c->lines);
	return ST_OK;
}

/* ---- what stands around the events ---- */

/* Valid JSON with a space after each colon and comma: HTA finds the rank by `"rank":\s+`. */
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

static void put_attr_spaced(struct chrome *c, const struct attr *attr)
{
	const char *text;
	size_t len;

	if (attr->type != ATTR_JSON) {
		chrome_put_attr(&c->lines, c->trace, attr);
		return;
	}
	text = trace_text(c->trace, (uint32_t)attr->bits, &len);
	put_spaced(&c->lines, text, len);
}

static void put_device(struct chrome *c, const struct device *d)
{
	const struct shape *s = trace_get_shape(c->trace, d->shape);
	struct buf *b = &c->lines;
	const char *name;
	size_t len;

	buf_putf(b, "    {\"id\": %u, \"name\": ", d->id);
	name = trace_text(c->trace, d->name, &len);
	json_put_text(b, name, len);
	for (size_t i = 0; i < s->fixed_count; i++) {
		const char *key = trace_text(c->trace, s->fixed[i].key, &len);

		if (strcmp(key, "id") == 0 || strcmp(key, "name") == 0)
			continue;
		buf_put_text(b, ", ");
		json_put_text(b, key, len);
		buf_put_text(b, ": ");
		put_attr_spaced(c, &s->fixed[i]);
	}
	buf_put_byte(b, '}');
}

static void put_devices(struct chrome *c)
{
	uint32_t count = trace_count(c->trace, TRACE_DEVICES);
	bool any = false;

	buf_put_text(&c->lines, "  \"deviceProperties\": [");
	for (uint32_t id = 1; id <= count; id++) {
		const struct device *d = trace_get_device(c->trace, id);

		if (d->process != c->process)
			continue;
		buf_put_text(&c->lines, any ? ",\n" : "\n");
		put_device(c, d);
		any = true;
	}
	buf_put_text(&c->lines, any ? "\n  ],\n" : "],\n");
}

/* Top-level keys of the file that the process was imported from. */
static void put_imported(struct chrome *c, const struct shape *s)
{
	for (size_t i = 0; i < s->fixed_count; i++) {
		size_t len;
		const char *key = trace_text(c->trace, s->fixed[i].key, &len);

		if (strcmp(key, "deviceProperties") == 0 ||
		    strcmp(key, "baseTimeNanoseconds") == 0)
			continue;
		buf_put_text(&c->lines, "  ");
		json_put_text(&c->lines, key, len);
		buf_put_text(&c->lines, ": ");
		put_attr_spaced(c, &s->fixed[i]);
		buf_put_text(&c->lines, ",\n");
	}
}

static void put_native(struct chrome *c, const struct process *p)
{
	struct buf *b = &c->lines;
	const char *text;
	size_t len;

	buf_put_text(b, "  \"schemaVersion\": 1,\n");
	if (p->rank != NO_RANK)
		buf_putf(b, "  \"distributedInfo\": {\"rank\": %u, \"world_size\": %u},\n",
			 p->rank, p->world_size);
	text = trace_text(c->trace, p->host, &len);
	if (len) {
		buf_put_text(b, "  \"host_name\": ");
		json_put_text(b, text, len);
		buf_put_text(b, ",\n");
	}
	buf_put_text(b, "  \"displayTimeUnit\": \"ms\",\n");
}

static void put_head(struct chrome *c)
{
	const struct process *p = trace_get_process(c->trace, c->process);

	buf_put_text(&c->lines, "{\n");
	if (c->is_native)
		put_native(c, p);
	else
		put_imported(c, trace_get_shape(c->trace, p->shape));
	put_devices(c);
	if (c->base_ns)
		buf_putf(&c->lines, "  \"baseTimeNanoseconds\": %llu,\n",
			 (unsigned long long)c->base_ns);
	buf_put_text(&c->lines, "  \"traceEvents\": [");
}

/* One line of "ph": "M". */
static void put_meta(struct chrome *c, const char *name, int64_t pid, int64_t tid, bool is_text,
		     const char *key, const char *text, size_t len, int64_t number)
{
	struct buf *b = &c->lines;

	buf_put_text(b, c->any ? ",\n" : "\n");
	c->any = true;
	buf_putf(b, "{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %lld, \"tid\": %lld, \"ts\": 0, "
		    "\"args\": {\"%s\": ",
		 name, (long long)pid, (long long)tid, key);
	if (is_text)
		json_put_text(b, text, len);
	else
		buf_put_i64_text(b, number);
	buf_put_text(b, "}}");
}

static void put_process_meta(struct chrome *c, int64_t pid, const char *label, int64_t sort)
{
	const struct process *p = trace_get_process(c->trace, c->process);
	const char *name;
	size_t len;

	name = trace_text(c->trace, p->command, &len);
	put_meta(c, "process_name", pid, 0, true, "name", len ? name : "python",
		 len ? len : 6, 0);
	put_meta(c, "process_labels", pid, 0, true, "labels", label, strlen(label), 0);
	put_meta(c, "process_sort_index", pid, 0, false, "sort_index", NULL, 0, sort);
}

static void put_track_meta(struct chrome *c, const struct track *k)
{
	int64_t pid = k->home == HOME_STREAM ? (int64_t)k->device
					     : (int64_t)trace_get_process(c->trace, k->process)->pid;
	int64_t tid = (int64_t)k->id;
	size_t len;
	const char *name = trace_text(c->trace, k->name, &len);
	char made[64];

	if (!len) {
		len = (size_t)snprintf(made, sizeof(made), "%s %lld ",
				       k->home == HOME_STREAM ? "stream" : "thread",
				       (long long)tid);
		name = made;
	}
	put_meta(c, "thread_name", pid, tid, true, "name", name, len, 0);
	put_meta(c, "thread_sort_index", pid, tid, false, "sort_index", NULL, 0, tid);
}

/* Tracks of a stream differ by context too; a viewer's row is (device, stream). */
static bool is_first_of_row(const struct chrome *c, uint32_t id)
{
	const struct track *k = trace_get_track(c->trace, id);

	for (uint32_t i = 1; i < id; i++) {
		const struct track *o = trace_get_track(c->trace, i);

		if (o->home == k->home && o->process == k->process && o->device == k->device &&
		    o->id == k->id)
			return false;
	}
	return true;
}

static bool device_was_seen(const struct chrome *c, uint32_t before, uint32_t device)
{
	for (uint32_t i = 1; i < before; i++) {
		const struct track *o = trace_get_track(c->trace, i);

		if (o->home == HOME_STREAM && o->process == c->process && o->device == device)
			return true;
	}
	return false;
}

static void put_metas(struct chrome *c)
{
	uint32_t count = trace_count(c->trace, TRACE_TRACKS);
	int64_t pid = trace_get_process(c->trace, c->process)->pid;
	char label[32];

	put_process_meta(c, pid, "CPU", pid);
	for (uint32_t id = 1; id <= count; id++) {
		const struct track *k = trace_get_track(c->trace, id);

		if (k->process != c->process || k->home == HOME_POOL || k->home == HOME_COUNTER)
			continue;
		if (k->home == HOME_STREAM && !device_was_seen(c, id, k->device)) {
			snprintf(label, sizeof(label), "GPU %u", k->device);
			put_process_meta(c, k->device, label, GPU_SORT_INDEX + (int64_t)k->device);
		}
		if (is_first_of_row(c, id))
			put_track_meta(c, k);
	}
}

/* ---- events ---- */

/* Category and letter of each kind; a NULL category: none is written. */
static const struct form {
	const char *cat, *ph;
} forms[KIND_END] = {
	[KIND_UNKNOWN] = {"unknown", "X"},
	[KIND_KERNEL] = {"kernel", "X"},
	[KIND_MEMCPY] = {"gpu_memcpy", "X"},
	[KIND_MEMSET] = {"gpu_memset", "X"},
	[KIND_GRAPH] = {"kernel", "X"},
	[KIND_SYNC] = {"cuda_sync", "X"},
	[KIND_API] = {"cuda_runtime", "X"},
	[KIND_RANGE] = {"cpu_op", "X"},
	[KIND_JIT] = {"overhead", "X"},
	[KIND_OVERHEAD] = {"overhead", "X"},
	[KIND_STEP] = {"user_annotation", "X"},
	[KIND_MARK] = {NULL, "i"},
	[KIND_ALLOC] = {"cpu_instant_event", "i"},
	[KIND_FREE] = {"cpu_instant_event", "i"},
	[KIND_COUNTER] = {NULL, "C"},
};

static const char *range_cat(unsigned class)
{
	switch (class) {
	case RANGE_PHASE:
	case RANGE_NVTX:
	case RANGE_GC:
		return "user_annotation"; /* what Kineto has for an interval that a person named */
	default:
		return range_class_word(class);
	}
}

static const char *cat_of(const struct event *e)
{
	if (e->kind == KIND_RANGE)
		return range_cat(e->subkind);
	if (e->kind == KIND_API && e->subkind == API_DRIVER)
		return "cuda_driver";
	return forms[e->kind < KIND_END ? e->kind : KIND_UNKNOWN].cat;
}

static const char *ph_of(const struct event *e)
{
	if (e->kind == KIND_MARK && e->subkind != MARK_INSTANT)
		return e->subkind == MARK_FLOW_BEGIN ? "s" : "f";
	return forms[e->kind < KIND_END ? e->kind : KIND_UNKNOWN].ph;
}

/* "HtoD" copies of ours have no name of their own. */
static void put_made_name(struct chrome *c, const struct event *e)
{
	const struct track *k = trace_get_track(c->trace, e->track);
	const char *text;
	size_t len;

	switch (e->kind) {
	case KIND_MEMCPY:
		buf_putf(&c->lines, "\"Memcpy %s\"", copy_kind_word(e->subkind));
		break;
	case KIND_MEMSET:
		buf_put_text(&c->lines, "\"Memset (Device)\"");
		break;
	case KIND_GRAPH:
		buf_put_text(&c->lines, "\"CUDA graph\"");
		break;
	case KIND_STEP:
		buf_putf(&c->lines, "\"ProfilerStep#%llu\"", (unsigned long long)e->number);
		break;
	case KIND_ALLOC:
	case KIND_FREE:
		buf_put_text(&c->lines, "\"[memory]\"");
		break;
	case KIND_COUNTER:
		text = trace_text(c->trace, k->name, &len);
		json_put_text(&c->lines, text, len);
		break;
	default:
		buf_putf(&c->lines, "\"%s\"", kind_word(e->kind));
	}
}

static void put_name(struct chrome *c, const struct event *e)
{
	size_t len;
	const char *text = trace_text(c->trace, e->name, &len);

	if (e->name && e->kind != KIND_STEP)
		json_put_text(&c->lines, text, len);
	else
		put_made_name(c, e);
}

/* Microseconds, with a fraction only where there is one. */
static void put_us(struct buf *b, uint64_t ns)
{
	unsigned rest = (unsigned)(ns % 1000);

	buf_put_u64_text(b, ns / 1000);
	if (rest) {
		char text[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
				(char)('0' + rest % 10)};
		buf_put(b, text, sizeof(text));
	}
}

static void put_ts(struct chrome *c, uint64_t at_ns)
{
	buf_put_text(&c->lines, ", \"ts\": ");
	if (at_ns < c->base_ns)
		buf_put_byte(&c->lines, '-');
	put_us(&c->lines, at_ns < c->base_ns ? c->base_ns - at_ns : at_ns - c->base_ns);
}

static void put_where(struct chrome *c, const struct track *k, const struct chrome_members *m)
{
	struct buf *b = &c->lines;
	bool on_gpu = k->home == HOME_STREAM ||
		      (k->home == HOME_COUNTER && k->device != NO_ID);

	buf_put_text(b, ", \"pid\": ");
	if (m->pid)
		buf_put_text(b, m->pid);
	else if (on_gpu)
		buf_put_u64_text(b, k->device == NO_ID ? 0 : k->device);
	else
		buf_put_u64_text(b, trace_get_process(c->trace, k->process)->pid);
	buf_put_text(b, ", \"tid\": ");
	if (m->tid)
		buf_put_text(b, m->tid);
	else
		buf_put_i64_text(b, (int64_t)k->id);
}

/* Calls from which Kineto begins an arrow; all else that is correlated ends one. */
static bool begins_arrow(const struct event *e, const char *name)
{
	static const char *const calls[] = {
		"cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaGraphLaunch",
		"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaStreamWaitEvent",
		"cudaMemcpy", "cudaMemset", "cuLaunchKernel", "hipLaunchKernel", "hipMemcpy",
		"hipMemset", "hipExtLaunch", "hipModuleLaunch", "hipExtModuleLaunch",
		"hipGraphLaunch",
	};

	if (e->kind != KIND_API)
		return false;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (strncmp(name, calls[i], strlen(calls[i])) == 0)
			return true;
	return false;
}

static void put_arrow(struct chrome *c, const struct event *e, const struct chrome_members *m)
{
	struct buf *b = &c->lines;
	const char *name = trace_text(c->trace, e->name, NULL);
	bool begins = begins_arrow(e, name);

	buf_put_text(b, begins ? ",\n{\"ph\": \"s\", \"id\": " : ",\n{\"ph\": \"f\", \"id\": ");
	buf_put_u64_text(b, e->correlation);
	put_where(c, trace_get_track(c->trace, e->track), m);
	put_ts(c, e->begin_ns);
	buf_put_text(b, ", \"cat\": \"ac2g\", \"name\": \"ac2g\"");
	buf_put_text(b, begins ? "}" : ", \"bp\": \"e\"}");
}

static bool has_arrow(const struct event *e)
{
	return e->correlation && (event_is_gpu_work(e) || e->kind == KIND_API);
}

static enum status put_event(struct chrome *c, const struct event *e, struct error *err)
{
	struct buf *b = &c->lines;
	struct chrome_members m;

	buf_clear(&c->members);
	if (!chrome_args_put(c->args, &c->members, e, c->is_native, &m))
		return fail(err, ST_CEILING, NOWHERE,
			    "the texts of arguments need more memory than allowed");
	const char *cat = cat_of(e), *ph = ph_of(e);

	buf_put_text(b, c->any ? ",\n{\"ph\": " : "\n{\"ph\": ");
	c->any = true;
	if (m.ph)
		buf_put_text(b, m.ph);
	else
		buf_putf(b, "\"%s\"", ph);
	if (m.cat || cat) {
		buf_put_text(b, ", \"cat\": ");
		if (m.cat)
			buf_put_text(b, m.cat);
		else
			buf_putf(b, "\"%s\"", cat);
	}
	buf_put_text(b, ", \"name\": ");
	put_name(c, e);
	put_where(c, trace_get_track(c->trace, e->track), &m);
	put_ts(c, e->begin_ns);
	if (ph[0] == 'X') {
		buf_put_text(b, ", \"dur\": ");
		put_us(b, e->end_ns - e->begin_ns);
	} else if (e->kind == KIND_MARK && e->number) {
		buf_putf(b, ", \"id\": %llu", (unsigned long long)e->number);
	}
	buf_put_text(b, m.rest);
	if (c->members.len) {
		buf_put_text(b, ", ");
		buf_put(b, c->members.data, c->members.len);
	}
	buf_put_byte(b, '}');
	if (has_arrow(e))
		put_arrow(c, e, &m);
	return flush_lines(c, LINES_BYTES, err);
}

static uint64_t find_base(const struct chrome *c, uint64_t first_ns)
{
	const struct process *p = trace_get_process(c->trace, c->process);
	const struct attr *a = trace_find_attr(c->trace, p->shape, "baseTimeNanoseconds");

	if (a)
		return a->bits;
	if (!c->is_native)
		return 0; /* an older file: microseconds since the epoch */
	return first_ns / 1000000000u / BASE_GRID_S * BASE_GRID_S * 1000000000u;
}

static enum status start(struct chrome *c, uint64_t first_ns, struct error *err)
{
	c->base_ns = find_base(c, first_ns);
	c->started = true;
	put_head(c);
	put_metas(c);
	return flush_lines(c, LINES_BYTES, err);
}

/* ---- the sink ---- */

static void chrome_free(struct sink *s)
{
	struct chrome *c = (struct chrome *)s;

	if (!c)
		return;
	chrome_args_free(c->args);
	buf_release(&c->lines);
	buf_release(&c->members);
	free(c);
}

static enum status chrome_open(struct sink **out, const struct sink_request *req,
			       struct error *err)
{
	struct chrome *c = calloc(1, sizeof(*c));
	const struct process *p = trace_get_process(req->trace, req->process);

	*out = NULL;
	if (!c)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the writer of Chrome JSON");
	c->base.type = &sink_chrome;
	c->trace = req->trace;
	c->out = req->out;
	c->process = req->process;
	c->is_native = !trace_find_attr(req->trace, p->shape, ".imported");
	buf_init(&c->lines, LINES_CEILING);
	buf_init(&c->members, LINES_CEILING);
	enum status st = chrome_args_new(&c->args, req->trace, err);
	if (st != ST_OK) {
		chrome_free(&c->base);
		return st;
	}
	*out = &c->base;
	return ST_OK;
}

static enum status chrome_put(struct sink *s, const struct event *events, size_t count,
			      struct error *err)
{
	struct chrome *c = (struct chrome *)s;

	if (count && !c->started)
		TRY(start(c, events[0].begin_ns, err));
	for (size_t i = 0; i < count; i++)
		if (trace_get_track(c->trace, events[i].track)->process == c->process)
			TRY(put_event(c, &events[i], err));
	return ST_OK;
}

static enum status chrome_close(struct sink *s, struct error *err)
{
	struct chrome *c = (struct chrome *)s;

	if (!c->started)
		TRY(start(c, 0, err));
	buf_put_text(&c->lines, "\n  ]\n}\n");
	return flush_lines(c, 0, err);
}

const struct sink_type sink_chrome = {
	.name = "chrome",
	.help = "Chrome JSON as Kineto writes it: HTA, TensorBoard's PyTorch plugin, Perfetto",
	.scope = SINK_PER_PROCESS,
	.open = chrome_open,
	.put = chrome_put,
	.close = chrome_close,
	.free = chrome_free,
};

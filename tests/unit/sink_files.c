/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sink_files.h"

#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "convert/output/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE_NS 1700000000000000000u

enum { CEILING = 256 << 20 };

void sink_run_make(struct sink_run *run)
{
	struct process p = { .pid = 100, .rank = 3, .world_size = 4 };
	struct error err;

	memset(run, 0, sizeof(*run));
	CHECK_OK(trace_new(&run->trace, CEILING, &err), &err);
	p.host = run_name(run, "node");
	p.command = run_name(run, "train \"x\"");
	run->process = trace_process(run->trace, &p, &err);
	CHECK(run->process != 0);
}

void sink_run_release(struct sink_run *run)
{
	trace_free(run->trace);
	run->trace = NULL;
}

uint32_t run_name(struct sink_run *run, const char *text)
{
	struct error err;
	uint32_t id = trace_name(run->trace, text, strlen(text), &err);

	CHECK(id != 0);
	return id;
}

static uint32_t make_track(struct sink_run *run, struct track track)
{
	struct error err;
	uint32_t id;

	track.process = run->process;
	id = trace_track(run->trace, &track, &err);
	CHECK(id != 0);
	return id;
}

uint32_t run_thread(struct sink_run *run, uint64_t tid)
{
	return make_track(
		run, (struct track){
			     .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID, .id = tid });
}

uint32_t run_stream(struct sink_run *run, uint32_t device, uint64_t stream)
{
	return make_track(
		run, (struct track){
			     .type = TRACK_STREAM, .device = device, .context = 1, .id = stream });
}

uint32_t run_pool(struct sink_run *run, uint32_t device)
{
	return make_track(run, (struct track){ .type = TRACK_ALLOCATOR,
					       .device = device,
					       .context = NO_ID,
					       .id = 100 });
}

uint32_t run_counter(struct sink_run *run, uint32_t device, const char *name)
{
	return make_track(run, (struct track){ .type = TRACK_COUNTER,
					       .device = device,
					       .context = NO_ID,
					       .name = run_name(run, name) });
}

struct attr run_text(struct sink_run *run, const char *key, const char *text)
{
	return (struct attr){ .key = run_name(run, key),
			      .type = ATTR_TEXT,
			      .bits = run_name(run, text) };
}

struct attr run_number(struct sink_run *run, const char *key, uint64_t number)
{
	return (struct attr){ .key = run_name(run, key), .type = ATTR_U64, .bits = number };
}

uint32_t run_schema(struct sink_run *run, const struct attr *consts, size_t const_count,
		    const struct attr *args, size_t arg_count)
{
	struct arg_schema s = { consts, args, (uint32_t)const_count, (uint32_t)arg_count };
	struct error err;
	uint32_t id = trace_schema(run->trace, &s, &err);

	CHECK(id != 0);
	return id;
}

void run_import(struct sink_run *run, const struct attr *keys, size_t count)
{
	struct process p = *trace_get_process(run->trace, run->process);
	struct attr all[16];

	all[0] = run_number(run, ".imported", 1);
	memcpy(all + 1, keys, count * sizeof(*keys));
	p.schema = run_schema(run, all, count + 1, NULL, 0);
	trace_set_process(run->trace, run->process, &p);
}

struct event *run_event(struct sink_run *run, unsigned kind, uint32_t track, const char *name,
			double begin_us, double end_us)
{
	struct event *e = &run->events[run->count++];

	*e = (struct event){
		.begin_ns = BASE_NS + (uint64_t)(begin_us * 1000 + 0.5),
		.end_ns = BASE_NS + (uint64_t)(end_us * 1000 + 0.5),
		.kind = (uint8_t)kind,
		.track = track,
		.name = name ? run_name(run, name) : 0,
	};
	return e;
}

static bool read_file(const char *path, struct buf *out)
{
	size_t len;
	void *bytes = folder_read(path, &len);

	buf_put(out, bytes, len);
	free(bytes);
	buf_text(out);
	return CHECK(bytes != NULL) && CHECK(out->status == ST_OK);
}

/* In two batches: what a sink keeps of the first must outlive it. */
static enum status put_all(struct sink *sink, struct event *events, size_t count, struct error *err)
{
	size_t half = count / 2;

	struct batch first = { .events = events, .count = half }, none = { .count = 0 };
	struct batch rest = { .events = events + half, .count = count - half };

	if (half)
		TRY(sink_put(sink, &first, err));
	if (count > half)
		TRY(sink_put(sink, &rest, err));
	TRY(sink_put(sink, &none, err));
	return sink_close(sink, err);
}

bool sink_run_write(struct sink_run *run, const struct sink_type *type, bool all_args,
		    struct buf *out)
{
	struct budget budget = { .opening = CEILING, .resident = 65536, .scratch = "/tmp" };
	struct sink_request request = { .trace = run->trace,
					.budget = &budget,
					.process = type->scope == SINK_WHOLE ? 0 : run->process,
					.all_args = all_args };
	struct sink *sink = NULL;
	struct folder folder;
	struct error err = { 0 };
	bool good = false;

	buf_init(out, CEILING);
	folder_make(&folder);
	if (CHECK_OK(out_open(&request.out, folder_path(&folder, "f"), false, &err), &err) &&
	    CHECK_OK(sink_open(&sink, type, &request, &err), &err)) {
		good = CHECK_OK(put_all(sink, run->events, run->count, &err), &err) &&
		       CHECK_OK(out_commit(request.out, &err), &err);
		sink_free(sink);
	}
	out_free(request.out);
	good = good && read_file(folder_path(&folder, "f"), out);
	folder_remove(&folder);
	return good;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/perfetto/internal.h"
#include "schemas/base/vec.h"
#include "schemas/model/records.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	TRACKS_MOST = 1 << 20,
	PROCESSES_MOST = 1 << 16,
	PARENTS_MOST = 16,
	NAME_MOST = 512,
};
#define ROW_TIDS ((uint64_t)1 << 42) /* numbers of rows that are no threads, above any tid */

/* ---- processes ---- */

enum status pftrace_process_find(struct pftrace_reader *r, uint32_t machine, uint32_t pid,
				 struct pftrace_process **out, struct error *err)
{
	bool is_new;
	uint64_t *at = map_put(&r->process_ids, (uint64_t)machine << 32 | pid, &is_new);

	if (!at)
		return fail_memory(err);
	if (is_new) {
		if (r->process_count == PROCESSES_MOST)
			return fail(err, ST_CEILING, NOWHERE, "more than %d processes",
				    PROCESSES_MOST);
		TRY(vec_reserve(&r->processes, &r->process_cap, r->process_count + 1, err));
		*at = r->process_count;
		r->processes[r->process_count++] = (struct pftrace_process){
			.machine = machine, .pid = pid, .own_pid = pid, .rank = NO_RANK
		};
	}
	*out = &r->processes[*at];
	return ST_OK;
}

enum status pftrace_process_need(struct pftrace_reader *r, uint32_t machine, uint32_t pid,
				 uint32_t *process, struct error *err)
{
	struct pftrace_process *p;

	TRY(pftrace_process_find(r, machine, pid, &p, err));
	if (!p->id) {
		struct process made = { .host = p->host ? p->host : r->host,
					.pid = p->own_pid,
					.rank = p->rank,
					.world_size = p->rank != NO_RANK ? r->world_size : 0 };
		char host[NAME_MOST];

		if (machine && !p->host) { /* each machine has its own pids */
			snprintf(host, sizeof(host), "%.400s, machine %u",
				 trace_text(r->to.trace, r->host, NULL), machine);
			TRY(import_name(&r->to, host, strlen(host), &made.host, err));
		}
		p->id = trace_process(r->to.trace, &made, err);
		if (!p->id)
			return err->status;
		made.command = p->command;
		trace_set_process(r->to.trace, p->id, &made);
	}
	*process = p->id;
	return ST_OK;
}

enum status pftrace_process_of_gpu(struct pftrace_reader *r, uint32_t *process, struct error *err)
{
	const struct pftrace_process *only = r->process_count == 1 ? r->processes : NULL;

	return pftrace_process_need(r, only ? only->machine : 0, only ? only->pid : 0, process,
				    err);
}

static const char *text_of(struct bytes bytes, char out[NAME_MOST])
{
	snprintf(out, NAME_MOST, "%.*s", (int)bytes_left(&bytes), (const char *)bytes.at);
	return out;
}

/* Reads the host in the name that Tacho gives a process: "rank 3 (node-a)". */
static enum status take_own_name(struct pftrace_reader *r, struct bytes name,
				 struct pftrace_process *p, struct error *err)
{
	char text[NAME_MOST], host[NAME_MOST] = "";
	unsigned rank;

	if (sscanf(text_of(name, text), "rank %u (%511[^)]", &rank, host) < 1)
		return ST_OK;
	return host[0] ? import_name(&r->to, host, strlen(host), &p->host, err) : ST_OK;
}

static enum status describe_process(struct pftrace_reader *r, struct pftrace_track *t,
				    struct bytes b, uint32_t rank, struct error *err)
{
	struct bytes whole = b, name = bytes_init(NULL, 0), command = name;
	struct pftrace_process *p;
	char text[NAME_MOST];
	struct pb_field f;
	unsigned pid;

	t->form = PFTRACE_PROCESS;
	t->pid = 0;
	while (pb_next_padded(&b, &f))
		if (f.number == 1)
			t->pid = (uint32_t)f.u64;
	TRY(pftrace_process_find(r, t->machine, t->pid, &p, err));
	while (pb_next_padded(&whole, &f)) {
		if (f.wire != PB_BYTES)
			continue;
		if (f.number == 2 && !bytes_left(&command))
			command = f.bytes;
		else if (f.number == 6)
			name = f.bytes;
		else if (f.number == 8 && r->is_own &&
			 sscanf(text_of(f.bytes, text), "pid %u", &pid) == 1)
			p->own_pid = pid;
	}
	if (r->is_own) {
		p->rank = rank;
		TRY(take_own_name(r, name, p, err));
	} else if (bytes_left(&name)) {
		command = name;
	}
	if (bytes_left(&command))
		TRY(import_name(&r->to, (const char *)command.at, bytes_left(&command), &p->command,
				err));
	return ST_OK;
}

/* ---- descriptors ---- */

static enum status describe_thread(struct pftrace_reader *r, struct pftrace_track *t,
				   struct bytes b, struct error *err)
{
	struct pftrace_process *p;
	struct pb_field f;

	t->form = PFTRACE_THREAD;
	while (pb_next_padded(&b, &f)) {
		if (f.number == 1)
			t->pid = (uint32_t)f.u64;
		else if (f.number == 2)
			t->tid = f.u64;
		else if (f.number == 5 && f.wire == PB_BYTES)
			TRY(pftrace_text(r, f.bytes, &t->name, err));
	}
	return pftrace_process_find(r, t->machine, t->pid, &p, err);
}

static enum status describe_counter(struct pftrace_reader *r, struct pftrace_track *t,
				    struct bytes b, struct error *err)
{
	static const char *const names[] = { NULL, "thread_time", "thread_instruction_count" };
	static const uint8_t units[] = { UNIT_NONE, UNIT_NS, UNIT_COUNT, UNIT_BYTES };
	struct pb_field f;

	t->form = PFTRACE_COUNTER;
	while (pb_next_padded(&b, &f)) {
		/* the SDK does not name counters of a known type */
		if (f.number == 1 && f.u64 && f.u64 < sizeof(names) / sizeof(names[0]) && !t->name)
			TRY(pftrace_text(r, bytes_init(names[f.u64], strlen(names[f.u64])),
					 &t->name, err));
		if (f.number == 3 && f.u64 < sizeof(units))
			t->unit = units[f.u64];
		else if (f.number == 4)
			t->multiplier = (int64_t)f.u64;
		else if (f.number == 5)
			t->is_incremental = f.u64 != 0;
		for (unsigned i = 1; f.number == 6 && f.wire == PB_BYTES && i < UNIT_END; i++)
			if (strlen(unit_name(i)) == bytes_left(&f.bytes) &&
			    !memcmp(unit_name(i), f.bytes.at, bytes_left(&f.bytes)))
				t->unit = (uint8_t)i;
	}
	return ST_OK;
}

enum status pftrace_track_add(struct pftrace_reader *r, uint64_t uuid, struct pftrace_track **out,
			      struct error *err)
{
	uint64_t *at = map_find(&r->track_ids, uuid);

	if (!at) {
		at = map_put(&r->track_ids, uuid, NULL);
		if (!at)
			return fail_memory(err);
		if (r->track_count == TRACKS_MOST)
			return fail(err, ST_CEILING, NOWHERE, "more than %d tracks", TRACKS_MOST);
		TRY(vec_reserve(&r->tracks, &r->track_cap, r->track_count + 1, err));
		*at = r->track_count;
		r->tracks[r->track_count++] = (struct pftrace_track){ .uuid = uuid };
	}
	r->near_tracks[uuid * HASH_A >> 32 & (PFTRACE_NEAR - 1)] = (uint32_t)*at;
	*out = &r->tracks[*at];
	return ST_OK;
}

enum status pftrace_describe(struct pftrace_reader *r, uint32_t machine, struct bytes descriptor,
			     struct error *err)
{
	struct bytes process = bytes_init(NULL, 0), thread = process, counter = process, b;
	uint32_t rank = NO_RANK;
	struct pftrace_track *t;
	bool has_counter = false;
	uint64_t uuid = 0;
	struct pb_field f;

	for (b = descriptor; pb_next_padded(&b, &f);)
		uuid = f.number == 1 ? f.u64 : uuid;
	TRY(pftrace_track_find(r, uuid, &t, err));
	t->machine = machine;
	for (b = descriptor; pb_next_padded(&b, &f);) {
		if (f.number == 5 && f.wire != PB_BYTES) {
			t->parent = f.u64;
			t->has_parent = true;
		} else if (f.number == 12) {
			rank = (uint32_t)f.u64;
		}
		if (f.wire != PB_BYTES)
			continue;
		if (f.number == 2 || f.number == 10 || f.number == 13)
			TRY(pftrace_text(r, f.bytes, &t->name, err));
		process = f.number == 3 ? f.bytes : process;
		thread = f.number == 4 ? f.bytes : thread;
		counter = f.number == 8 ? f.bytes : counter;
		has_counter |= f.number == 8;
		if (f.number == 14) {
			t->is_derived = bytes_left(&f.bytes) == strlen(OWN_DERIVED) &&
					!memcmp(f.bytes.at, OWN_DERIVED, strlen(OWN_DERIVED));
			TRY(pftrace_text(r, f.bytes, &t->description, err));
		}
	}
	if (b.is_truncated)
		r->damaged++;
	if (process.at < process.end)
		TRY(describe_process(r, t, process, rank, err));
	if (thread.at < thread.end)
		TRY(describe_thread(r, t, thread, err));
	return has_counter ? describe_counter(r, t, counter, err) : ST_OK;
}

enum status pftrace_describe_sequence(struct pftrace_reader *r, uint32_t machine, uint64_t sequence,
				      struct bytes thread, struct error *err)
{
	/* No writer uses this number, so no other track can have it. */
	uint64_t uuid = hash_word(hash_word(0, sequence), machine) | 1, *at;
	struct pftrace_track *t;

	TRY(pftrace_track_find(r, uuid, &t, err));
	t->machine = machine;
	at = map_put(&r->sequence_threads, sequence, NULL);
	if (!at)
		return fail_memory(err);
	*at = uuid;
	return describe_thread(r, t, thread, err);
}

/* ---- the track of an event ---- */

/* Finds the number after a word in the name of a row: "Stream 7", "STREAM [7]". */
static bool number_behind(const char *text, const char *word, uint64_t *out)
{
	const char *at = strcasestr(text, word);

	if (!at)
		return false;
	at += strlen(word);
	for (unsigned i = 0; i < 2 && (*at == ' ' || *at == '[' || *at == '#' || *at == ':'); i++)
		at++;
	if (!isdigit((unsigned char)*at))
		return false;
	*out = strtoull(at, NULL, 10);
	return true;
}

/* Reads GPU, stream and context from the names of the row and of the rows above it. */
static void read_name(struct pftrace_reader *r, struct pftrace_track *t,
		      const struct pftrace_track *from)
{
	static const char *const words[] = { "gpu", "agent", "device" };
	const char *text = trace_text(r->to.trace, from->name, NULL);
	uint64_t number;

	/* In our own files the GPU is in the name of the row above. */
	for (size_t i = from == t && r->is_own ? 3 : 0;
	     t->device == NO_ID && i < sizeof(words) / sizeof(*words); i++)
		if (number_behind(text, words[i], &number) && number < NO_ID) {
			t->device = (uint32_t)number;
			t->description = t->description ? t->description : from->description;
		}
	if (from != t)
		return;
	t->has_stream = number_behind(text, "stream", &t->stream) ||
			number_behind(text, "queue", &t->stream);
	if (number_behind(text, ", context", &number) && number < NO_ID)
		t->context = (uint32_t)number;
	if (r->is_own && !strncmp(text, "No stream", 9)) {
		t->has_stream = true;
		t->stream = NO_ID;
	}
}

enum status pftrace_resolve(struct pftrace_reader *r, struct pftrace_track *t, struct error *err)
{
	static const char overlapping[] = ": overlapping";
	const struct pftrace_track *up = t;
	uint32_t place = (uint32_t)(t - r->tracks);
	const char *text;
	size_t len;

	t->row = place;
	t->device = t->context = NO_ID;
	for (unsigned i = 0; i < PARENTS_MOST; i++) {
		const uint64_t *at;

		if (up->form == PFTRACE_PROCESS || up->form == PFTRACE_THREAD) {
			t->tid = up->form == PFTRACE_THREAD ? up->tid : t->tid;
			break;
		}
		read_name(r, t, up);
		at = up->has_parent ? map_find(&r->track_ids, up->parent) : NULL;
		if (!at || up == &r->tracks[*at])
			break;
		up = &r->tracks[*at];
	}
	text = trace_text(r->to.trace, t->name, &len);
	if (r->is_own && up != t && up->form == PFTRACE_THREAD && len > sizeof(overlapping) &&
	    !strcmp(text + len - (sizeof(overlapping) - 1), overlapping))
		t->row = (uint32_t)(up - r->tracks);
	t->is_gpu = r->is_own && t->has_stream && t->form != PFTRACE_COUNTER;
	if (up->form == PFTRACE_PROCESS || up->form == PFTRACE_THREAD)
		return pftrace_process_need(r, up->machine, up->pid, &t->process, err);
	return pftrace_process_of_gpu(r, &t->process, err);
}

/* Sets the name of a track.  In our own files it follows the number of a stream: "Stream 7
 * (compute): waits". */
static enum status name_made(struct pftrace_reader *r, const struct pftrace_track *t,
			     struct error *err)
{
	uint32_t name = r->tracks[t->row].name;
	const char *text = trace_text(r->to.trace, name, NULL), *end;

	if (t->made.type == TRACK_COUNTER || t->made.type == TRACK_ALLOCATOR)
		return ST_OK;
	if (t->made.type == TRACK_STREAM && r->is_own) {
		text = strstr(text, " (");
		end = text ? strrchr(text, ')') : NULL;
		if (!end)
			return ST_OK;
		TRY(import_name(&r->to, text + 2, (size_t)(end - text - 2), &name, err));
	}
	if (name && !trace_get_track(r->to.trace, t->made_id)->name)
		trace_set_track_name(r->to.trace, t->made_id, name);
	return ST_OK;
}

static uint64_t thread_number(const struct pftrace_reader *r, const struct pftrace_track *t)
{
	const struct pftrace_track *row = &r->tracks[t->row];

	return row->form == PFTRACE_THREAD ? row->tid : ROW_TIDS + t->row;
}

enum status pftrace_place(struct pftrace_reader *r, struct pftrace_track *t, struct event *e,
			  const struct kineto_place *place, struct error *err)
{
	struct track k = { .device = NO_ID, .context = NO_ID }, *m = &t->made;
	bool is_gpu = event_is_gpu_work(e) || e->kind == KIND_SYNC ||
		      (e->kind == KIND_RANGE && e->subkind == RANGE_GPU_ANNOTATION);
	struct device device = { 0 };

	if (!t->process)
		TRY(pftrace_resolve(r, t, err));
	k.process = t->process;
	if (e->kind == KIND_COUNTER || e->kind == KIND_ALLOC || e->kind == KIND_FREE) {
		k.type = e->kind == KIND_COUNTER ? TRACK_COUNTER : TRACK_ALLOCATOR;
		k.device = place && place->has_device ? place->device : t->device;
		k.name = e->kind == KIND_COUNTER ? t->name : 0;
		k.unit = e->kind == KIND_COUNTER ? t->unit : 0;
		if (place && k.type == TRACK_ALLOCATOR) {
			k.id = place->has_stream ? (uint64_t)place->stream : 0;
			k.context = place->context;
		}
	} else if (is_gpu || t->is_gpu) {
		k.type = TRACK_STREAM;
		k.device = place && place->has_device ? place->device
			   : t->device != NO_ID       ? t->device
			   : r->is_own                ? NO_ID
						      : 0;
		k.context = place && place->context != NO_ID ? place->context : t->context;
		k.id = place && place->has_stream ? (uint64_t)place->stream
		       : t->has_stream            ? t->stream
						  : thread_number(r, t);
	} else {
		k.type = TRACK_THREAD;
		k.id = thread_number(r, t);
	}
	e->track = t->made_id;
	if (t->made_id && m->type == k.type && m->device == k.device && m->context == k.context &&
	    m->id == k.id)
		return ST_OK;
	*m = k;
	e->track = t->made_id = trace_track(r->to.trace, &k, err);
	if (!e->track)
		return err->status;
	device.process = k.process;
	device.name = t->description;
	device.id = k.device;
	if (k.device != NO_ID && k.device < PFTRACE_GPUS && r->gpu_names[k.device])
		device.name = r->gpu_names[k.device];
	if (k.type == TRACK_STREAM && k.device != NO_ID &&
	    !trace_find_device(r->to.trace, k.process, k.device) &&
	    !trace_device(r->to.trace, &device, err))
		return err->status;
	return name_made(r, t, err);
}

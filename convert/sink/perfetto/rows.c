/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/perfetto/internal.h"

#include "convert/source/source.h"
#include "schemas/model/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum {
	NAMES_CEILING = 16 << 20,
	TRACKS_MOST = 1 << 15, /* tracks per process: the low bits of their numbers */
	GPU_RANK = 1000,       /* GPUs are shown below the host's rows */
	STREAM_RANK = 100,
	OTHER_RANK = 1 << 30,
	RANKED_PID = 1000000000, /* greater than every pid of a system */
	UNKNOWN_PID = 2000000000,
	NAME_MOST = 300,
	RANKS_MOST = INT32_MAX / TOP_COUNT - 1,
	HAS_TWIN = 1 << 28, /* a bit of place_of: a stream in another context has the same id */
};
/* The same number in all files, so that concatenated files have one overview. */
#define OVERVIEW_UUID (UINT64_C(1) << 60)

/* Fields of TrackDescriptor in schemas/proto/perfetto.proto. */
enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD_OF = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER_UNIT = 8,
	TRACK_CHILD_ORDERING = 11,
	TRACK_RANK = 12,
	TRACK_DESCRIPTION = 14,
	CHILDREN_BY_RANK = 3,
};

/* ---- GPUs and their streams ---- */

static int compare_streams(const void *a, const void *b, void *self)
{
	const struct perfetto_rows *r = self;
	uint32_t one = *(const uint32_t *)a, two = *(const uint32_t *)b;
	const struct track *x = trace_get_track(r->file->trace, one);
	const struct track *y = trace_get_track(r->file->trace, two);

	if (r->gpu_of[one] != r->gpu_of[two])
		return r->gpu_of[one] < r->gpu_of[two] ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->context < y->context ? -1 : x->context > y->context;
}

/* Lists the GPUs, and sorts the streams of each. */
static enum status find_streams(struct perfetto_rows *r, struct error *err)
{
	const struct trace *t = r->file->trace;
	uint32_t *order = calloc(r->track_count + 1, sizeof(*order)), place = 0;
	size_t count = 0;

	if (!order)
		return fail_memory(err);
	for (uint32_t id = 1; id <= r->track_count; id++) {
		const struct track *k = trace_get_track(t, id);

		if (k->type != TRACK_STREAM && k->device == NO_ID)
			continue;
		r->gpu_of[id] = r->processes[k->process].gpus;
		while (r->gpu_of[id] && r->gpus[r->gpu_of[id] - 1].device != k->device)
			r->gpu_of[id] = r->gpus[r->gpu_of[id] - 1].next;
		if (!r->gpu_of[id]) {
			r->gpus[r->gpu_count++] =
				(struct perfetto_gpu){ .process = k->process,
						       .device = k->device,
						       .next = r->processes[k->process].gpus };
			r->gpu_of[id] = r->processes[k->process].gpus = (uint32_t)r->gpu_count;
		}
		if (k->type == TRACK_STREAM)
			order[count++] = id;
	}
	qsort_r(order, count, sizeof(*order), compare_streams, r);
	for (size_t i = 0; i < count; i++) {
		uint32_t id = order[i], before = i ? order[i - 1] : 0;
		bool is_same_gpu = before && r->gpu_of[id] == r->gpu_of[before];
		bool is_twin =
			is_same_gpu && trace_get_track(t, id)->id == trace_get_track(t, before)->id;

		place = is_same_gpu ? place + 1 : 0;
		r->place_of[id] = place % HAS_TWIN | (is_twin ? HAS_TWIN : 0);
		if (is_twin)
			r->place_of[before] |= HAS_TWIN;
	}
	free(order);
	return ST_OK;
}

/* ---- numbers of processes ---- */

static bool is_ranked(const struct process *p)
{
	return p->rank != NO_RANK && p->world_size != 1 && p->rank < UNKNOWN_PID - RANKED_PID;
}

/* Finds out whether the processes of the trace have different pids. */
static enum status has_own_pids(const struct perfetto_rows *r, bool *out, struct error *err)
{
	RELEASED_BY(map_release) struct map taken = { .count = 0 };

	*out = true;
	for (uint32_t id = 1; id <= r->process_count && *out; id++) {
		uint32_t pid = trace_get_process(r->file->trace, id)->pid;

		if (!map_put(&taken, pid, out))
			return fail_memory(err);
		*out = *out && pid && pid < RANKED_PID;
	}
	return ST_OK;
}

/*
 * Sets the pids in the file.  A timeline has the pids of the system if they differ.  Processes of
 * several hosts or containers may share a pid but not a rank.  So there, and in files that may be
 * concatenated, pids are made from ranks; a process without a rank keeps its pid if no other has
 * it.
 */
static enum status number_processes(struct perfetto_rows *r, uint32_t process, struct error *err)
{
	int32_t unknown = UNKNOWN_PID;
	struct map taken = { .count = 0 };
	bool keeps_pids = false;
	enum status status = process ? ST_OK : has_own_pids(r, &keeps_pids, err);

	for (uint32_t id = 1; id <= r->process_count && status == ST_OK; id++) {
		const struct process *p = trace_get_process(r->file->trace, id);
		int32_t pid = p->pid < RANKED_PID ? (int32_t)p->pid : 0;
		bool is_new = true;

		if (is_ranked(p) && !keeps_pids)
			pid = RANKED_PID + (int32_t)p->rank;
		if (!map_put(&taken, (uint64_t)pid, &is_new))
			status = fail_memory(err);
		if (!is_new || !pid)
			pid = unknown < INT32_MAX ? unknown++ : unknown;
		r->processes[id].space = perfetto_space_of(r->file->trace, id);
		r->processes[id].pid = pid;
	}
	map_release(&taken);
	return status;
}

/* ---- the whole ---- */

enum status perfetto_rows_init(struct perfetto_rows *r, struct perfetto_file *file,
			       uint32_t process, struct error *err)
{
	*r = (struct perfetto_rows){ .file = file };
	wire_head_init(&r->heads.begin, SLICE_BEGIN, file->sequence, false);
	wire_head_init(&r->heads.wide, SLICE_BEGIN, file->sequence, true);
	wire_head_init(&r->heads.instant, INSTANT, file->sequence, false);
	wire_head_init(&r->heads.wide_instant, INSTANT, file->sequence, true);
	wire_head_init(&r->heads.end, SLICE_END, file->sequence, false);
	wire_head_init(&r->heads.counter, COUNTER, file->sequence, false);
	r->track_count = trace_count(file->trace, TRACE_TRACKS);
	r->process_count = trace_count(file->trace, TRACE_PROCESSES);
	arena_init(&r->arena, NAMES_CEILING);
	TRY(vec_new(&r->processes, r->process_count + 1, err));
	TRY(vec_new(&r->gpus, r->track_count + 1, err));
	TRY(vec_new(&r->gpu_of, r->track_count + 1, err));
	TRY(vec_new(&r->place_of, r->track_count + 1, err));
	TRY(vec_new(&r->rows, (r->track_count + 1) * ROLE_COUNT, err));
	TRY(find_streams(r, err));
	return number_processes(r, process, err);
}

void perfetto_rows_release(struct perfetto_rows *r)
{
	for (struct perfetto_row *row = r->made; row; row = row->before) {
		for (size_t i = 0; i < row->subtrack_count; i++)
			free(row->subtracks[i].ends);
		free(row->subtracks);
	}
	arena_release(&r->arena);
	free(r->processes);
	free(r->gpus);
	free(r->gpu_of);
	free(r->place_of);
	free(r->rows);
	*r = (struct perfetto_rows){ 0 };
}

/* ---- descriptors ---- */

/* Returns a copy as valid UTF-8, or NULL if the arena is full. */
static char *keep_utf8(struct perfetto_rows *r, const char *text, size_t len)
{
	const char *valid = perfetto_utf8(r->file, text, len);

	return arena_text(&r->arena, valid, r->file->text.len);
}

/* Returns a number for another track of a process, or 0 if all are used. */
static uint64_t new_uuid(struct perfetto_rows *r, uint32_t process)
{
	struct perfetto_process *p = &r->processes[process];

	if (p->tracks + 1 == TRACKS_MOST)
		return 0;
	return p->space * TRACKS_MOST + ++p->tracks;
}

/* Begins the packet of a track's descriptor, and returns its offset for end_descriptor(). */
static size_t begin_descriptor(struct perfetto_rows *r, uint64_t uuid)
{
	struct buf *b = perfetto_begin_packet(r->file);
	size_t at;

	pb_put_u64(b, PACKET_SEQUENCE, r->file->sequence - 1);
	at = pb_begin(b, PACKET_TRACK);
	pb_put_u64(b, TRACK_UUID, uuid);
	return at;
}

static enum status end_descriptor(struct perfetto_rows *r, size_t at, struct error *err)
{
	pb_end(&r->file->packet, at);
	return perfetto_end_packet(r->file, err);
}

/* Makes "rank 3 (node-a)", or the command of a process without a rank. */
static void process_name(const struct trace *t, const struct process *p, char name[NAME_MOST])
{
	const char *host = trace_text(t, p->host, NULL);

	if (is_ranked(p))
		snprintf(name, NAME_MOST, "rank %u%s%.200s%s", p->rank, host[0] ? " (" : "", host,
			 host[0] ? ")" : "");
	else
		snprintf(name, NAME_MOST, "%.200s",
			 p->command ? trace_text(t, p->command, NULL) : "process");
}

static enum status need_process(struct perfetto_rows *r, uint32_t id, struct error *err)
{
	struct perfetto_process *own = &r->processes[id];
	const struct trace *t = r->file->trace;
	const struct process *p = trace_get_process(t, id);
	struct buf *b = &r->file->packet;
	char label[32], name[NAME_MOST];
	size_t len, at, process;
	const char *command = trace_text(t, p->command, &len);

	if (own->uuid)
		return ST_OK;
	own->uuid = new_uuid(r, id);
	snprintf(label, sizeof(label), "pid %u", p->pid);
	process_name(t, p, name);
	at = begin_descriptor(r, own->uuid);
	process = pb_begin(b, TRACK_PROCESS);
	pb_put_u64(b, 1, (uint64_t)own->pid);
	if (len)
		pb_put_text(b, 2, perfetto_utf8(r->file, command, len));
	pb_put_text(b, 6, perfetto_utf8(r->file, name, strlen(name)));
	if (own->pid != (int64_t)p->pid) /* otherwise viewers show the pid */
		pb_put_text(b, 8, label);
	pb_end(b, process);
	if (p->rank <= INT32_MAX)
		pb_put_u64(b, TRACK_RANK, p->rank);
	return end_descriptor(r, at, err);
}

static enum status need_overview(struct perfetto_rows *r, struct error *err)
{
	struct buf *b = &r->file->packet;
	size_t at;

	if (r->has_overview)
		return ST_OK;
	r->has_overview = true;
	at = begin_descriptor(r, OVERVIEW_UUID);
	/* Viewers that do not support this order sort by name, so the name begins with a blank. */
	pb_put_text(b, TRACK_NAME, " Overview");
	pb_put_u64(b, TRACK_CHILD_ORDERING, CHILDREN_BY_RANK);
	pb_put_u64(b, TRACK_RANK, (uint64_t)(int64_t)INT32_MIN);
	return end_descriptor(r, at, err);
}

static enum status need_gpu_group(struct perfetto_rows *r, uint32_t gpu, struct error *err)
{
	struct perfetto_gpu *g = &r->gpus[gpu - 1];
	const struct trace *t = r->file->trace;
	const struct device *device =
		trace_get_device(t, trace_find_device(t, g->process, g->device));
	struct buf *b = &r->file->packet;
	char name[32] = "GPU";
	size_t len, at;
	const char *text = trace_text(t, device->name, &len);

	if (g->uuid)
		return ST_OK;
	g->uuid = new_uuid(r, g->process);
	if (g->device != NO_ID)
		snprintf(name, sizeof(name), "GPU %u", g->device);
	at = begin_descriptor(r, g->uuid);
	pb_put_text(b, TRACK_NAME, name);
	pb_put_u64(b, TRACK_PARENT, r->processes[g->process].uuid);
	pb_put_u64(b, TRACK_CHILD_ORDERING, CHILDREN_BY_RANK);
	pb_put_u64(b, TRACK_RANK, g->device < GPU_RANK ? GPU_RANK + g->device : INT32_MAX);
	if (len)
		pb_put_text(b, TRACK_DESCRIPTION, perfetto_utf8(r->file, text, len));
	return end_descriptor(r, at, err);
}

static void put_counter(struct buf *b, const char *unit)
{
	static const struct {
		const char *word;
		uint8_t unit;
	} units[] = { { "ns", 1 }, { "count", 2 }, { "B", 3 }, { "bytes", 3 } };
	size_t at = pb_begin(b, TRACK_COUNTER_UNIT), i = 0, count = sizeof(units) / sizeof(*units);

	while (i < count && strcmp(units[i].word, unit ? unit : "") != 0)
		i++;
	if (i < count)
		pb_put_u64(b, 3, units[i].unit);
	else if (unit && unit[0])
		pb_put_text(b, 6, unit);
	pb_end(b, at);
}

static enum status put_subtrack(struct perfetto_rows *r, const struct perfetto_row *row,
				uint64_t uuid, struct error *err)
{
	const struct perfetto_process *p = &r->processes[row->process];
	uint64_t tid = row->thread ? trace_get_track(r->file->trace, row->thread)->id : 0;
	size_t at = begin_descriptor(r, uuid), thread;
	struct buf *b = &r->file->packet;
	char name[NAME_MOST];

	/* A row with an id that no thread can have stands for a text, which is its name. */
	if (row->thread && uuid == row->first_uuid && tid <= INT32_MAX) {
		if (!tid) /* viewers reserve thread 0 */
			tid = UNKNOWN_PID + (uint64_t)row->thread;
		thread = pb_begin(b, TRACK_THREAD_OF);
		pb_put_u64(b, 1, (uint64_t)p->pid);
		pb_put_u64(b, 2, tid);
		pb_put_text(b, 5, row->name);
		pb_end(b, thread);
	} else if (row->thread && uuid != row->first_uuid) {
		snprintf(name, sizeof(name), "%.200s: overlapping", row->name);
		pb_put_text(b, TRACK_NAME, perfetto_utf8(r->file, name, strlen(name)));
		pb_put_u64(b, TRACK_PARENT, row->first_uuid);
	} else {
		pb_put_text(b, TRACK_NAME, row->name);
		pb_put_u64(b, TRACK_PARENT,
			   row->on_top ? OVERVIEW_UUID
			   : row->gpu  ? r->gpus[row->gpu - 1].uuid
				       : p->uuid);
		if (row->form == FORM_COUNTER)
			put_counter(b, row->unit);
	}
	pb_put_u64(b, TRACK_RANK, (uint64_t)row->rank);
	if (row->is_derived)
		pb_put_text(b, TRACK_DESCRIPTION, OWN_DERIVED);
	return end_descriptor(r, at, err);
}

/* ---- subtracks ---- */

/* Adds a subtrack.  *out is NULL if there are SUBTRACKS_MOST or no numbers left for tracks. */
static enum status add_subtrack(struct perfetto_rows *r, struct perfetto_row *row,
				struct perfetto_subtrack **out, struct error *err)
{
	struct perfetto_subtrack *s;
	uint64_t uuid;

	*out = NULL;
	TRY(need_process(r, row->process, err));
	if (row->on_top)
		TRY(need_overview(r, err));
	else if (row->gpu)
		TRY(need_gpu_group(r, row->gpu, err));
	uuid = row->subtrack_count < SUBTRACKS_MOST ? new_uuid(r, row->process) : 0;
	if (!uuid)
		return ST_OK;
	TRY(vec_reserve(&row->subtracks, &row->subtrack_cap, row->subtrack_count + 1, err));
	s = &row->subtracks[row->subtrack_count];
	if (!row->subtrack_count++)
		row->first_uuid = uuid;
	wire_track_init(&s->track, uuid);
	*out = s;
	return put_subtrack(r, row, uuid, err);
}

enum status perfetto_row_first(struct perfetto_rows *r, struct perfetto_row *row,
			       const struct wire_track **out, struct error *err)
{
	struct perfetto_subtrack *s = row->subtracks;

	if (!row->subtrack_count)
		TRY(add_subtrack(r, row, &s, err));
	*out = s ? &s->track : NULL;
	return ST_OK;
}

enum status perfetto_row_place_more(struct perfetto_rows *r, struct perfetto_row *row,
				    uint64_t begin_ns, uint64_t end_ns,
				    const struct wire_track **out, struct error *err)
{
	struct perfetto_subtrack *s;

	for (size_t i = 1; i < row->subtrack_count; i++) {
		s = &row->subtracks[i];
		*out = &s->track;
		if (perfetto_subtrack_take(s, row->form == FORM_NESTED, begin_ns, end_ns))
			return ST_OK;
	}
	TRY(add_subtrack(r, row, &s, err));
	*out = s && perfetto_subtrack_take(s, true, begin_ns, end_ns) ? &s->track : NULL;
	return ST_OK;
}

/* ---- rows ---- */

static enum status add_row(struct perfetto_rows *r, const struct perfetto_row *what,
			   struct perfetto_row **out, struct error *err)
{
	struct perfetto_row *row = arena_take(&r->arena, sizeof(*row), 0);

	*out = row;
	if (!row || !what->name)
		return fail(err, ST_CEILING, NOWHERE, "too many tracks for a Perfetto file");
	*row = *what;
	row->before = r->made;
	r->made = row;
	return ST_OK;
}

/* Returns the name of a row in the overview.  It names the process if the job may have several. */
static const char *top_name(struct perfetto_rows *r, const struct perfetto_row *row)
{
	const struct trace *t = r->file->trace;
	const struct process *p = trace_get_process(t, row->process);
	uint32_t device = row->gpu ? r->gpus[row->gpu - 1].device : NO_ID;
	char whose[NAME_MOST], own[32], name[2 * NAME_MOST];

	process_name(t, p, whose);
	snprintf(own, sizeof(own), "%s", row->name);
	if (device != NO_ID)
		snprintf(own, sizeof(own), "GPU %u time", device);
	if (is_ranked(p))
		snprintf(name, sizeof(name), "%s: %s", whose, own);
	else if (r->process_count > 1)
		snprintf(name, sizeof(name), "%s (pid %u): %s", whose, p->pid, own);
	else
		snprintf(name, sizeof(name), "%s", own);
	return keep_utf8(r, name, strlen(name));
}

enum status perfetto_row_need(struct perfetto_rows *r, struct perfetto_row **row,
			      const struct perfetto_row *like, uint32_t process, uint32_t gpu,
			      struct error *err)
{
	struct perfetto_row what = *like;
	const struct process *p;

	if (*row)
		return ST_OK;
	what.is_derived = !what.is_memory || r->has_memory;
	what.gpu = gpu;
	what.process = gpu ? r->gpus[gpu - 1].process : process;
	if (what.on_top) {
		p = trace_get_process(r->file->trace, what.process);
		what.rank += gpu && r->gpus[gpu - 1].device < TOP_COUNT - TOP_GPU
				     ? (int32_t)r->gpus[gpu - 1].device
				     : 0;
		what.rank += TOP_COUNT * (int32_t)(p->rank < RANKS_MOST ? p->rank : RANKS_MOST);
		what.name = top_name(r, &what);
	}
	return add_row(r, &what, row, err);
}

/* Makes a name such as "Stream 7", with the context if several streams have this id, and the
 * stream's own name. */
static const char *stream_name(struct perfetto_rows *r, uint32_t track, enum perfetto_role role)
{
	static const char *const roles[] = { "", ": waits", ": ranges" };
	const struct track *k = trace_get_track(r->file->trace, track);
	char name[320], own[32], context[32] = "", more[220] = "";
	size_t len;
	const char *text = trace_text(r->file->trace, k->name, &len);

	while (len && text[len - 1] == ' ')
		len--;
	if (k->id == NO_ID || k->id > INT64_MAX)
		snprintf(own, sizeof(own), "No stream");
	else
		snprintf(own, sizeof(own), "Stream %llu", (unsigned long long)k->id);
	if (r->place_of[track] & HAS_TWIN && k->context != NO_ID)
		snprintf(context, sizeof(context), ", context %u", k->context);
	if (len && len < 200 && (len != strlen(own) || strncasecmp(text, own, len) != 0))
		snprintf(more, sizeof(more), " (%.*s)", (int)len, text);
	snprintf(name, sizeof(name), "%s%s%s%s", own, context, more, roles[role]);
	return keep_utf8(r, name, strlen(name));
}

/* Returns the name of a track that is not a stream. */
static const char *track_name(struct perfetto_rows *r, const struct track *k)
{
	size_t len;
	const char *text = trace_text(r->file->trace, k->name, &len);
	char name[32];

	if (len)
		return keep_utf8(r, text, len);
	if (k->type == TRACK_ALLOCATOR)
		return "Allocations";
	if (k->type == TRACK_COUNTER)
		return "counter";
	if (k->id > INT64_MAX || (k->id > UINT32_MAX && k->type == TRACK_THREAD))
		return "no thread";
	snprintf(name, sizeof(name), "thread %llu", (unsigned long long)k->id);
	return keep_utf8(r, name, strlen(name));
}

enum status perfetto_row_make(struct perfetto_rows *r, uint32_t track, enum perfetto_role role,
			      struct perfetto_row **out, struct error *err)
{
	const struct track *k = trace_get_track(r->file->trace, track);
	bool on_stream = k->type == TRACK_STREAM, on_thread = k->type == TRACK_THREAD;
	int32_t place = (int32_t)(r->place_of[track] % HAS_TWIN);
	struct perfetto_row what = {
		.process = k->process,
		.gpu = r->gpu_of[track],
		.thread = on_thread ? track : 0,
		.form = on_stream && role == ROLE_MAIN ? FORM_FLAT : FORM_NESTED,
	};

	if (k->type == TRACK_COUNTER) {
		what.form = FORM_COUNTER;
		what.unit = unit_name(k->unit);
	}

	what.rank = on_stream ? STREAM_RANK + place * ROLE_COUNT + (int32_t)role
			      : OTHER_RANK + (int32_t)(track % OTHER_RANK);
	what.name = on_stream ? stream_name(r, track, role) : track_name(r, k);
	TRY(add_row(r, &what, out, err));
	r->rows[(size_t)track * ROLE_COUNT + role] = *out;
	return ST_OK;
}

/* ---- slices and samples of rows that no track is in ---- */

enum status perfetto_put_sample(struct perfetto_rows *r, struct perfetto_row *row, uint64_t at_ns,
				double value, bool *has_place, struct error *err)
{
	const struct wire_track *subtrack;
	uint8_t *at;

	TRY(perfetto_row_first(r, row, &subtrack, err));
	if (has_place)
		*has_place = subtrack != NULL;
	if (!subtrack)
		return ST_OK;
	at = out_cursor_reserve(&r->file->cursor, WIRE_MOST);
	if (!at)
		return out_cursor_flush(&r->file->cursor, err);
	r->file->cursor.at = wire_put_sample(at, at_ns, &r->heads.counter, subtrack, value);
	return ST_OK;
}

enum status perfetto_put_span(struct perfetto_rows *r, struct perfetto_row *row, uint64_t name,
			      uint64_t number, uint64_t category, uint64_t begin_ns,
			      uint64_t end_ns, struct error *err)
{
	struct perfetto_heads *h = &r->heads;
	const struct wire_track *subtrack;
	uint8_t *begin, *p;

	TRY(perfetto_row_place(r, row, begin_ns, end_ns, &subtrack, err));
	if (!subtrack)
		return ST_OK;
	begin = out_cursor_reserve(&r->file->cursor, WIRE_MOST);
	if (!begin)
		return out_cursor_flush(&r->file->cursor, err);
	p = wire_begin(begin, begin_ns, &h->begin, subtrack, 0);
	p = name ? wire_put_name(p, name) : wire_put_numbered(p, "step ", number);
	p = wire_put_category(p, category);
	wire_end(begin, &h->begin, begin_ns, p, 0);
	r->file->cursor.at = wire_put_end(p, end_ns, &h->end, subtrack);
	return ST_OK;
}

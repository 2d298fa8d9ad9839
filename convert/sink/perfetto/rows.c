/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/perfetto/rows.h"

#include "schemas/model/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum {
	NAMES_CEILING = 16 << 20,
	TRACKS_MOST = 1 << 15, /* of a process: the low bits of their numbers */
	GPU_RANK = 1000,       /* GPUs stand below what is the host's */
	STREAM_RANK = 100,
	OTHER_RANK = 1 << 30,
	RANKED_PID = 1000000000, /* above every pid that a system gives out */
	UNKNOWN_PID = 2000000000,
	HAS_TWIN =
		1 << 28, /* a bit of place_of: another stream has the number, in another context */
};

/* ---- GPUs and their streams ---- */

uint32_t perfetto_find_gpu(const struct perfetto_rows *r, uint32_t process, uint32_t device)
{
	uint32_t at = r->processes[process].gpus;

	while (at && r->gpus[at - 1].device != device)
		at = r->gpus[at - 1].next;
	return at;
}

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

/* Lists the GPUs, and orders the streams of each. */
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
		r->gpu_of[id] = perfetto_find_gpu(r, k->process, k->device);
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

/* Processes of several hosts may share a pid but no rank, so ranks make pids in the file; a process
 * without a rank keeps its pid if no other has it. */
static int compare_pids(const void *a, const void *b, void *self)
{
	const struct perfetto_rows *r = self;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int32_t one = r->processes[x].pid, two = r->processes[y].pid;

	if (one != two)
		return one < two ? -1 : 1;
	return x < y ? -1 : x > y;
}

static enum status number_processes(struct perfetto_rows *r, struct error *err)
{
	uint32_t *order = calloc(r->process_count + 1, sizeof(*order));
	int32_t before = 0, unknown = UNKNOWN_PID;

	if (!order)
		return fail_memory(err);
	for (uint32_t id = 1; id <= r->process_count; id++) {
		const struct process *p = trace_get_process(r->file->trace, id);

		order[id - 1] = id;
		r->processes[id].space = perfetto_space_of(r->file->trace, id);
		if (is_ranked(p))
			r->processes[id].pid = RANKED_PID + (int32_t)p->rank;
		else
			r->processes[id].pid = p->pid < RANKED_PID ? (int32_t)p->pid : 0;
	}
	qsort_r(order, r->process_count, sizeof(*order), compare_pids, r);
	for (size_t i = 0; i < r->process_count; i++) {
		int32_t *pid = &r->processes[order[i]].pid, wanted = *pid;

		if (wanted == before)
			*pid = unknown < INT32_MAX ? unknown++ : unknown;
		before = wanted;
	}
	free(order);
	return ST_OK;
}

/* ---- the whole ---- */

enum status perfetto_rows_init(struct perfetto_rows *r, struct perfetto_file *file,
			       struct error *err)
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
	r->processes = calloc(r->process_count + 1, sizeof(*r->processes));
	r->gpus = calloc(r->track_count + 1, sizeof(*r->gpus));
	r->gpu_of = calloc(r->track_count + 1, sizeof(*r->gpu_of));
	r->place_of = calloc(r->track_count + 1, sizeof(*r->place_of));
	r->rows = calloc((r->track_count + 1) * ROLE_COUNT, sizeof(*r->rows));
	if (!r->processes || !r->gpus || !r->gpu_of || !r->place_of || !r->rows)
		return fail_memory(err);
	TRY(find_streams(r, err));
	return number_processes(r, err);
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

/* A copy as valid UTF-8; NULL: the arena is full. */
static char *keep_utf8(struct perfetto_rows *r, const char *text, size_t len)
{
	const char *valid = perfetto_utf8(r->file, text, len);

	return arena_text(&r->arena, valid, r->file->text.len);
}

/* A number for another track of a process; 0: all are used. */
static uint64_t new_uuid(struct perfetto_rows *r, uint32_t process)
{
	struct perfetto_process *p = &r->processes[process];

	if (p->tracks + 1 == TRACKS_MOST)
		return 0;
	return p->space * TRACKS_MOST + ++p->tracks;
}

static enum status put_descriptor(struct perfetto_rows *r, Perfetto__TrackDescriptor *d,
				  struct error *err)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	d->has_uuid = true;
	packet.track_descriptor = d;
	return perfetto_put_packet(r->file, &packet, err);
}

static enum status need_process(struct perfetto_rows *r, uint32_t id, struct error *err)
{
	struct perfetto_process *own = &r->processes[id];
	const struct process *p = trace_get_process(r->file->trace, id);
	Perfetto__TrackDescriptor d = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
	char label[32], *labels = label, *command, name[300];
	const char *host = trace_text(r->file->trace, p->host, NULL);
	size_t len;

	if (own->uuid)
		return ST_OK;
	d.uuid = own->uuid = new_uuid(r, id);
	snprintf(label, sizeof(label), "pid %u", p->pid);
	if (is_ranked(p))
		snprintf(name, sizeof(name), "rank %u%s%.200s%s", p->rank, host[0] ? " (" : "",
			 host, host[0] ? ")" : "");
	else
		snprintf(name, sizeof(name), "%.200s",
			 p->command ? trace_text(r->file->trace, p->command, NULL) : "process");
	process.process_name = keep_utf8(r, name, strlen(name));
	command = (char *)trace_text(r->file->trace, p->command, &len);
	command = keep_utf8(r, command, len);
	if (!process.process_name || !command)
		return fail(err, ST_CEILING, NOWHERE, "no room for the names of processes");
	if (len) {
		process.cmdline = &command;
		process.n_cmdline = 1;
	}
	process.process_labels = &labels;
	process.n_process_labels = 1;
	process.has_pid = true;
	process.pid = own->pid;
	d.process = &process;
	d.has_sibling_order_rank = p->rank <= INT32_MAX;
	d.sibling_order_rank = (int32_t)p->rank;
	return put_descriptor(r, &d, err);
}

static enum status need_gpu_group(struct perfetto_rows *r, uint32_t gpu, struct error *err)
{
	struct perfetto_gpu *g = &r->gpus[gpu - 1];
	const struct trace *t = r->file->trace;
	Perfetto__TrackDescriptor d = PERFETTO__TRACK_DESCRIPTOR__INIT;
	const struct device *device;
	char name[32] = "GPU";
	const char *text;
	size_t len;

	if (g->uuid)
		return ST_OK;
	g->uuid = d.uuid = new_uuid(r, g->process);
	if (g->device != NO_ID)
		snprintf(name, sizeof(name), "GPU %u", g->device);
	device = trace_get_device(t, trace_find_device(t, g->process, g->device));
	text = trace_text(t, device->name, &len);
	d.name = name;
	d.description = len ? perfetto_utf8(r->file, text, len) : NULL;
	d.has_parent_uuid = d.has_child_ordering = d.has_sibling_order_rank = true;
	d.parent_uuid = r->processes[g->process].uuid;
	d.child_ordering = PERFETTO__TRACK_DESCRIPTOR__CHILD_ORDERING__EXPLICIT;
	d.sibling_order_rank = g->device < GPU_RANK ? (int32_t)(GPU_RANK + g->device) : INT32_MAX;
	return put_descriptor(r, &d, err);
}

static void set_unit(Perfetto__CounterDescriptor *c, const char *unit)
{
	static const struct {
		const char *word;
		int unit;
	} units[] = { { "ns", PERFETTO__COUNTER_DESCRIPTOR__UNIT__TIME_NS },
		      { "B", PERFETTO__COUNTER_DESCRIPTOR__UNIT__SIZE_BYTES },
		      { "bytes", PERFETTO__COUNTER_DESCRIPTOR__UNIT__SIZE_BYTES },
		      { "count", PERFETTO__COUNTER_DESCRIPTOR__UNIT__COUNT } };

	for (size_t i = 0; unit && i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(units[i].word, unit) != 0)
			continue;
		c->has_unit = true;
		c->unit = units[i].unit;
		return;
	}
	c->unit_name = unit && unit[0] ? (char *)unit : NULL;
}

static enum status put_subtrack(struct perfetto_rows *r, const struct perfetto_row *row,
				uint64_t uuid, struct error *err)
{
	Perfetto__TrackDescriptor d = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ThreadDescriptor thread = PERFETTO__THREAD_DESCRIPTOR__INIT;
	Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
	char name[300];

	d.uuid = uuid;
	d.has_sibling_order_rank = true;
	d.sibling_order_rank = row->rank;
	if (row->thread && uuid == row->first_uuid) {
		uint64_t tid = trace_get_track(r->file->trace, row->thread)->id;

		/* Thread 0 is the system's, and readers take 32 bits: others are made up. */
		thread.has_pid = thread.has_tid = true;
		thread.pid = r->processes[row->process].pid;
		thread.tid =
			tid && tid <= INT32_MAX ? (int64_t)tid : UNKNOWN_PID + (int64_t)row->thread;
		thread.thread_name = (char *)row->name;
		d.thread = &thread;
		return put_descriptor(r, &d, err);
	}
	d.name = (char *)row->name;
	if (row->thread) {
		snprintf(name, sizeof(name), "%.200s: overlapping", row->name);
		d.name = perfetto_utf8(r->file, name, strlen(name));
	}
	if (row->form == FORM_COUNTER) {
		set_unit(&counter, row->unit);
		d.counter = &counter;
	}
	d.has_parent_uuid = true;
	d.parent_uuid = row->gpu ? r->gpus[row->gpu - 1].uuid : r->processes[row->process].uuid;
	if (row->thread)
		d.parent_uuid = row->first_uuid;
	return put_descriptor(r, &d, err);
}

/* ---- subtracks ---- */

/* One more subtrack; NULL: there are SUBTRACKS_MOST, or no numbers left for tracks. */
static enum status add_subtrack(struct perfetto_rows *r, struct perfetto_row *row,
				struct perfetto_subtrack **out, struct error *err)
{
	struct perfetto_subtrack *s;
	uint64_t uuid;

	*out = NULL;
	TRY(need_process(r, row->process, err));
	if (row->gpu)
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

enum status perfetto_row_add(struct perfetto_rows *r, const struct perfetto_row *what,
			     struct perfetto_row **out, struct error *err)
{
	struct perfetto_row *row = arena_take(&r->arena, sizeof(*row), 0);

	*out = row;
	if (!row || !what->name)
		return fail(err, ST_CEILING, NOWHERE,
			    "more rows than a Perfetto file has room for");
	*row = *what;
	row->before = r->made;
	r->made = row;
	return ST_OK;
}

/* "Stream 7", with the context where several streams have the number, and the stream's own name. */
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

/* The name of a track that is no stream. */
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
	TRY(perfetto_row_add(r, &what, out, err));
	r->rows[(size_t)track * ROLE_COUNT + role] = *out;
	return ST_OK;
}

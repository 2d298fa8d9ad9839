/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of events: kernels, copies, allocations, regions of threads, samples, counters. */
#include "convert/source/rocpd/internal.h"

#include "schemas/model/records.h"

#include <stdio.h>
#include <string.h>

struct reading { /* a row of the table at hand, while it becomes an event */
	struct rocpd_import *p;
	sqlite3_stmt *s;
	struct event event;
	struct track track;
};

/* What each statement begins with: the number of the row, and what all events have. */
enum { ROW, BEGIN, END, PROCESS, THREAD, STACK, OWN };
#define HEAD(begin, end)                                                                           \
	"SELECT d.rowid, " begin ", " end ", <d.[pid]>, <d.[tid]>, <e.[stack_id]>, "
#define EVENTS "LEFT JOIN [rocpd_event{}] e ON e.id = d.event_id AND e.guid = d.guid "
#define REST   "WHERE d.rowid > ?1 ORDER BY d.rowid"

static int64_t number(const struct reading *r, int column)
{
	return sqlite3_column_int64(r->s, column);
}

static bool is_null(const struct reading *r, int column)
{
	return sqlite3_column_type(r->s, column) == SQLITE_NULL;
}

static enum status put_number(struct reading *r, int column, const char *key, struct error *err)
{
	int64_t v = number(r, column);
	struct attr a = { .type = v < 0 ? ATTR_I64 : ATTR_U64, .bits = (uint64_t)v };

	return is_null(r, column) ? ST_OK
				  : import_attr_named(&r->p->to, key, strlen(key), &a, false, err);
}

/* The event in its track, with the attributes at hand. */
static enum status put_event(struct reading *r, struct error *err)
{
	struct import *to = &r->p->to;
	int64_t begin = number(r, BEGIN);

	if (is_null(r, BEGIN) || is_null(r, END) ||
	    !import_times(to, &r->event, begin, number(r, END) - begin)) {
		import_lose(to, LOSS_NO_TIME, 1);
		return ST_OK;
	}
	r->event.track = trace_track(to->trace, &r->track, err);
	if (!r->event.track)
		return err->status;
	TRY(import_schema(to, &r->event, err));
	return import_put(to, &r->event, err);
}

/* A stream of the agent in a column; false: that is no GPU which is known. */
static bool is_on_gpu(struct reading *r, int agent, int stream, int queue)
{
	int64_t id = number(r, agent);

	if (is_null(r, agent) || id < 0 || (size_t)id >= r->p->agent_cap ||
	    !r->p->agents[id].is_gpu)
		return false;
	r->track.type = TRACK_STREAM;
	r->track.device = r->p->agents[id].index;
	r->track.id = (uint64_t)(is_null(r, stream) ? number(r, queue) : number(r, stream));
	return true;
}

static void set_thread(struct reading *r)
{
	uint64_t tid = rocpd_find(&r->p->threads, number(r, THREAD));

	r->track.type = TRACK_THREAD;
	r->track.id = tid ? tid - 1 : (uint64_t)number(r, THREAD);
}

/* ---- kernels ---------------------------------------------------------------------------- */

enum {
	KERNEL_AGENT = OWN,
	KERNEL_STREAM,
	KERNEL_QUEUE,
	KERNEL_NAME,
	KERNEL_OTHER_NAME,
	KERNEL_EVENT,
	KERNEL_SHARED,
	KERNEL_REGISTERS,
	KERNEL_GRAPH,
	KERNEL_NODE,
	KERNEL_GRID,
	KERNEL_GROUP = KERNEL_GRID + 3
};
static const char kernel_sql[] = HEAD(
	"<d.[start]>",
	"<d.[end]>") "<d.[agent_id]>, <d.[stream_id]>, <d.[queue_id]>, <k.[display_name]>, "
		     "<k.[kernel_name]>, "
		     "<d.[event_id]>, <d.[group_segment_size]>, <k.[arch_vgpr_count]>, "
		     "<d.[graph_exec_id]>, "
		     "<d.[graph_node_id]>, <d.[grid_size_x]>, <d.[grid_size_y]>, "
		     "<d.[grid_size_z]>, "
		     "<d.[workgroup_size_x]>, <d.[workgroup_size_y]>, <d.[workgroup_size_z]> "
		     "FROM [rocpd_kernel_dispatch{}] d LEFT JOIN [rocpd_info_kernel_symbol{}] k "
		     "ON k.id = d.kernel_id AND k.guid = d.guid " EVENTS REST;

static enum status take_kernel(struct reading *r, struct error *err)
{
	static const char *const blocks[] = { "block_x", "block_y", "block_z" };
	static const char *const grids[] = { "grid_x", "grid_y", "grid_z" };

	if (!is_on_gpu(r, KERNEL_AGENT, KERNEL_STREAM, KERNEL_QUEUE)) {
		import_lose(&r->p->to, LOSS_DAMAGED, 1);
		return ST_OK;
	}
	r->event.kind = KIND_KERNEL;
	TRY(rocpd_text(r->p, r->s, KERNEL_NAME, &r->event.name, err));
	if (!r->event.name)
		TRY(rocpd_text(r->p, r->s, KERNEL_OTHER_NAME, &r->event.name, err));
	TRY(put_number(r, KERNEL_SHARED, "dynamic_shared", err));
	TRY(put_number(r, KERNEL_REGISTERS, "registers", err));
	if (number(r, KERNEL_GRAPH)) { /* 0: launched by itself */
		TRY(put_number(r, KERNEL_GRAPH, "graph", err));
		TRY(put_number(r, KERNEL_NODE, "graph_node", err));
	}
	/* A grid is counted in work-items there, and in groups of them here. */
	for (int i = 0; i < 3; i++) {
		int64_t group = number(r, KERNEL_GROUP + i), items = number(r, KERNEL_GRID + i);
		struct attr a = { .type = ATTR_U64 };

		if (group <= 0 || items < 0)
			continue;
		a.bits = (uint64_t)(items / group + (items % group != 0));
		TRY(import_attr_named(&r->p->to, grids[i], 6, &a, false, err));
		a.bits = (uint64_t)group;
		TRY(import_attr_named(&r->p->to, blocks[i], 7, &a, false, err));
	}
	if (r->p->has_counters && !is_null(r, KERNEL_EVENT)) {
		TRY(rocpd_keep(&r->p->dispatches, number(r, KERNEL_EVENT),
			       (uint64_t)number(r, BEGIN), err));
		TRY(rocpd_keep(&r->p->dispatch_gpus, number(r, KERNEL_EVENT), r->track.device,
			       err));
	}
	return put_event(r, err);
}

/* ---- copies ----------------------------------------------------------------------------- */

enum { COPY_TO = OWN, COPY_FROM, COPY_STREAM, COPY_QUEUE, COPY_NAME, COPY_SIZE };
static const char copy_sql[] =
	HEAD("<d.[start]>", "<d.[end]>") "<d.[dst_agent_id]>, <d.[src_agent_id]>, <d.[stream_id]>, "
					 "<d.[queue_id]>, <n.[string]>, "
					 "<d.[size]> FROM [rocpd_memory_copy{}] d LEFT JOIN "
					 "[rocpd_string{}] n ON n.id = d.name_id "
					 "AND n.guid = d.guid " EVENTS REST;

static enum status take_copy(struct reading *r, struct error *err)
{
	bool from_gpu = is_on_gpu(r, COPY_FROM, COPY_STREAM, COPY_QUEUE);
	uint32_t from = r->track.device;
	bool to_gpu = is_on_gpu(r, COPY_TO, COPY_STREAM, COPY_QUEUE);
	uint32_t name;
	char text[32];

	/* A copy between two GPUs lies on the one that it reads, as CUPTI has it. */
	if (from_gpu)
		r->track.device = from;
	if (!from_gpu && !to_gpu) {
		import_lose(&r->p->to, LOSS_NO_PLACE, 1); /* between two places of the host */
		return ST_OK;
	}
	snprintf(text, sizeof(text), "%s",
		 !from_gpu                                    ? "HtoD"
		 : !to_gpu                                    ? "DtoH"
		 : number(r, COPY_FROM) == number(r, COPY_TO) ? "DtoD"
							      : "PtoP");
	r->event.kind = KIND_MEMCPY;
	r->event.subkind = (uint8_t)copy_kind_of_word(text, 4);
	r->event.bytes = (uint64_t)(number(r, COPY_SIZE) > 0 ? number(r, COPY_SIZE) : 0);
	TRY(rocpd_text(r->p, r->s, COPY_NAME, &name, err));
	if (name) {
		size_t len;
		const char *operation = trace_text(r->p->to.trace, name, &len);

		TRY(import_text(&r->p->to, "operation", operation, len, err));
	}
	memmove(text + 7, text, 5);
	memcpy(text, "Memcpy ", 7);
	TRY(import_name(&r->p->to, text, strlen(text), &r->event.name, err));
	return put_event(r, err);
}

/* ---- allocations ------------------------------------------------------------------------ */

enum { ALLOC_AGENT = OWN, ALLOC_TYPE, ALLOC_ADDRESS, ALLOC_SIZE };
static const char alloc_sql[] =
	HEAD("<d.[start]>", "<d.[end]>") "<d.[agent_id]>, <d.[type]>, <d.[address]>, <d.[size]> "
					 "FROM [rocpd_memory_allocate{}] d " EVENTS REST;

static enum status take_allocation(struct reading *r, struct error *err)
{
	const char *type = (const char *)sqlite3_column_text(r->s, ALLOC_TYPE);
	bool is_free = type && !strcmp(type, "FREE");
	int64_t address = number(r, ALLOC_ADDRESS), size = number(r, ALLOC_SIZE);

	if (!type || (!is_free && strcmp(type, "ALLOC") != 0)) {
		r->p->unread++;
		return ST_OK;
	}
	if (is_free && !address)
		return ST_OK; /* giving back nothing is allowed */
	if (is_free && size <= 0)
		size = (int64_t)rocpd_find(&r->p->allocations, address);
	else if (!is_free)
		TRY(rocpd_keep(&r->p->allocations, address, (uint64_t)(size > 0 ? size : 0), err));
	if (is_free)
		map_remove(&r->p->allocations, (uint64_t)address);
	r->event.kind = is_free ? KIND_FREE : KIND_ALLOC;
	r->event.bytes = (uint64_t)(size > 0 ? size : 0);
	r->event.address = (uint64_t)address;
	if (is_on_gpu(r, ALLOC_AGENT, ALLOC_SIZE, ALLOC_SIZE))
		r->track.id = 0;
	else
		set_thread(r);
	r->track.type = TRACK_ALLOCATOR;
	return put_event(r, err);
}

/* ---- regions and samples ---------------------------------------------------------------- */

enum { REGION_NAME = OWN, REGION_CATEGORY, REGION_MESSAGE };
#define REGION_COLUMNS                                                                             \
	"<n.[string]>, <c.[string]>, CASE WHEN json_valid(e.extdata) THEN "                        \
	"json_extract(e.extdata, "                                                                 \
	"'$.message') END "
#define CATEGORIES "LEFT JOIN [rocpd_string{}] c ON c.id = e.category_id AND c.guid = e.guid "
static const char region_sql[] = HEAD("<d.[start]>", "<d.[end]>") REGION_COLUMNS
	"FROM [rocpd_region{}] d LEFT JOIN [rocpd_string{}] n ON n.id = d.name_id AND "
	"n.guid = d.guid " EVENTS CATEGORIES REST;
static const char sample_sql[] =
	"SELECT d.rowid, <d.[timestamp]>, <d.[timestamp]>, <t.[pid]>, <t.[tid]>, "
	"NULL, " REGION_COLUMNS
	"FROM [rocpd_sample{}] d LEFT JOIN [rocpd_track{}] t ON t.id = d.track_id AND "
	"t.guid = d.guid LEFT JOIN [rocpd_string{}] n ON n.id = t.name_id AND n.guid = "
	"t.guid " EVENTS CATEGORIES REST;

static enum status take_region(struct reading *r, struct error *err)
{
	const char *category = (const char *)sqlite3_column_text(r->s, REGION_CATEGORY);

	category = category ? category : "";
	set_thread(r);
	r->event.kind = KIND_RANGE;
	r->event.subkind = RANGE_OTHER;
	if (strstr(category, "MARKER")) {
		r->event.subkind = RANGE_NVTX; /* ROCTx is NVTX under another name */
		TRY(rocpd_text(r->p, r->s, REGION_MESSAGE, &r->event.name, err));
	} else if (!strncmp(category, "HIP_", 4)) {
		r->event.kind = KIND_API;
		r->event.subkind = API_RUNTIME;
	} else if (!strncmp(category, "HSA_", 4)) {
		r->event.kind = KIND_API;
		r->event.subkind = API_DRIVER;
	} else if (category[0]) {
		TRY(import_text(&r->p->to, ".cat", category, strlen(category), err));
	}
	if (!r->event.name)
		TRY(rocpd_text(r->p, r->s, REGION_NAME, &r->event.name, err));
	return put_event(r, err);
}

static enum status take_sample(struct reading *r, struct error *err)
{
	set_thread(r);
	r->event.kind = KIND_MARK;
	TRY(rocpd_text(r->p, r->s, REGION_MESSAGE, &r->event.name, err));
	if (!r->event.name)
		TRY(rocpd_text(r->p, r->s, REGION_NAME, &r->event.name, err));
	return put_event(r, err);
}

/* ---- counters --------------------------------------------------------------------------- */

enum { COUNTER_EVENT = OWN, COUNTER_NAME, COUNTER_VALUE };
static const char counter_sql[] =
	"SELECT d.rowid, 0, 0, <i.[pid]>, NULL, NULL, <d.[event_id]>, <i.[name]>, <d.[value]> "
	"FROM [rocpd_pmc_event{}] d LEFT JOIN [rocpd_info_pmc{}] i ON i.id = d.pmc_id AND "
	"i.guid = d.guid " REST;

/* A counter of a kernel is a sample where the kernel begins. */
static enum status take_counter(struct reading *r, struct error *err)
{
	int64_t of = number(r, COUNTER_EVENT);
	const uint64_t *at = map_find(&r->p->dispatches, (uint64_t)of);
	struct import *to = &r->p->to;

	if (!at) {
		r->p->unread++;
		return ST_OK;
	}
	r->event.kind = KIND_COUNTER;
	r->event.value = sqlite3_column_double(r->s, COUNTER_VALUE);
	TRY(rocpd_text(r->p, r->s, COUNTER_NAME, &r->event.name, err));
	r->track.type = TRACK_COUNTER;
	r->track.device = (uint32_t)rocpd_find(&r->p->dispatch_gpus, of);
	r->track.name = r->event.name;
	if (!import_times(to, &r->event, (int64_t)*at, 0)) {
		import_lose(to, LOSS_NO_TIME, 1);
		return ST_OK;
	}
	r->event.track = trace_track(to->trace, &r->track, err);
	if (!r->event.track)
		return err->status;
	TRY(import_schema(to, &r->event, err));
	return import_put(to, &r->event, err);
}

/* ---- tables ----------------------------------------------------------------------------- */

static const struct table {
	const char *name, *sql;
	enum status (*take)(struct reading *r, struct error *err);
} tables[] = {
	{ "rocpd_kernel_dispatch", kernel_sql, take_kernel },
	{ "rocpd_memory_copy", copy_sql, take_copy },
	{ "rocpd_memory_allocate", alloc_sql, take_allocation },
	{ "rocpd_region", region_sql, take_region },
	{ "rocpd_sample", sample_sql, take_sample },
	{ "rocpd_pmc_event", counter_sql, take_counter },
};
/* Their rows say nothing that the tables above do not have, but for dependencies. */
static const char *const unread[] = { "rocpd_graph_launch", "rocpd_hip_event",
				      "rocpd_event_operation" };

static void note_fault(struct rocpd_import *p, const char *table, uint64_t rows)
{
	char what[128];

	if (p->fault.status != ST_OK)
		return;
	snprintf(what, sizeof(what), "table %s is damaged after %llu rows", table,
		 (unsigned long long)rows);
	database_fault(p->db, what, &p->fault);
}

/* The row after one that is too long to be loaded. */
static bool pass_long_row(struct rocpd_import *p, sqlite3_stmt *s, const char *table, int64_t *last)
{
	char sql[256];

	snprintf(sql, sizeof(sql), "SELECT min(rowid) FROM [%s%s] WHERE rowid > %lld", table,
		 p->uuid, (long long)*last);
	sqlite3_reset(s);
	if (!database_number(p->db, sql, last))
		return false;
	import_lose(&p->to, LOSS_CEILING, 1);
	sqlite3_bind_int64(s, 1, *last);
	return true;
}

static enum status read_row(struct rocpd_import *p, const struct table *t, sqlite3_stmt *s,
			    struct error *err)
{
	struct reading r = { .p = p, .s = s, .track = { .device = NO_ID, .context = NO_ID } };

	import_begin(&p->to);
	r.track.process = (uint32_t)rocpd_find(&p->processes, number(&r, PROCESS));
	if (!r.track.process) {
		import_lose(&p->to, LOSS_DAMAGED, 1);
		return ST_OK;
	}
	/* GPU work has the stack of the call that launched it. */
	r.event.correlation = is_null(&r, STACK) ? 0 : (uint64_t)number(&r, STACK);
	return t->take(&r, err);
}

static enum status read_table(struct rocpd_import *p, const struct table *t, struct error *err)
{
	char name[128];
	sqlite3_stmt *s;
	int64_t last = INT64_MIN;
	uint64_t rows = 0;
	enum status status = ST_OK;

	snprintf(name, sizeof(name), "%s%s", t->name, p->uuid);
	if (!database_has(p->db, name))
		return ST_OK;
	p->any_table = true;
	s = rocpd_ask(p, t->sql);
	if (!s) {
		note_fault(p, t->name, 0);
		return ST_OK;
	}
	sqlite3_bind_int64(s, 1, last);
	while (status == ST_OK) {
		int code = sqlite3_step(s);

		if (code == SQLITE_DONE)
			break;
		if (code == SQLITE_TOOBIG && pass_long_row(p, s, t->name, &last))
			continue;
		if (code == SQLITE_NOMEM)
			status = database_fault(p->db, t->name, err);
		else if (code != SQLITE_ROW || rows >= p->db->rows_max) {
			note_fault(p, t->name, rows);
			break;
		} else {
			last = sqlite3_column_int64(s, ROW);
			rows++;
			status = read_row(p, t, s, err);
		}
	}
	sqlite3_finalize(s);
	return status;
}

enum status rocpd_read_rows(struct rocpd_import *p, struct error *err)
{
	char sql[128];
	int64_t count;

	/* Where there are counters it has to be known when the kernels began. */
	snprintf(sql, sizeof(sql), "SELECT 1 FROM [rocpd_pmc_event%s]", p->uuid);
	p->has_counters = database_number(p->db, sql, &count);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		TRY(read_table(p, &tables[i], err));
	for (size_t i = 0; i < sizeof(unread) / sizeof(unread[0]); i++) {
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM [%s%s]", unread[i], p->uuid);
		if (database_number(p->db, sql, &count) && count > 0)
			p->unread += (uint64_t)count;
	}
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads rocprofv3's JSON (--output-format json): {"rocprofiler-sdk-tool": [process, ...]}, in which
 * each process has its agents, names and kernels and then its records.  It is read token by token,
 * and only the names are kept, so that the file may have any length.
 */
#include "convert/input/input.h"
#include "convert/source/json/scan.h"
#include "convert/source/kineto/document.h"
#include "convert/source/rocpd/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOP       "rocprofiler-sdk-tool"
#define PROCESSES TOP "[]"
enum { NAMES_BYTES = 48 << 20, TEXTS_BYTES = 1 << 20, PATH_BYTES = 128, FIELDS_MOST = 18 };

struct sample { /* a counter of the current dispatch */
	int64_t counter;
	double value;
};
struct reader {
	struct rocpd_import base;
	struct json_scan scan;
	char path[PATH_BYTES]; /* of the current value, such as "agents[].id.handle" */
	struct rocpd_row row;  /* fields of the current record */
	struct buf texts;      /* texts of the current record; a cell's number is the offset */
	struct buf names;      /* for each name: registers of a kernel as 32 bits, text, NUL */
	struct map kernels, markers, counters, operations; /* id to offset in `names`, plus 1 */
	struct buf samples;
	struct process who;
	uint32_t process; /* id in the trace; 0: not added yet */
	uint32_t kinds, operations_of_kind;
	bool is_begun; /* a process was found */
};

/* ---- fields of a record ----------------------------------------------------------------- */

/* Returns the text in a cell, or NULL if the cell is not a text. */
static const char *text_of(const struct reader *r, int column)
{
	const struct rocpd_cell *cell = &r->row.cells[column];

	return cell->text ? (const char *)r->texts.data + cell->number : NULL;
}

static int64_t number_of(const struct reader *r, int column)
{
	return r->row.cells[column].number;
}

/* Stores a text in a cell.  Several texts of one field, such as a command's words, are joined. */
static void read_text(struct reader *r, const struct json *value, struct rocpd_cell *cell)
{
	size_t before = r->texts.len;

	if (cell->text && before)
		r->texts.data[before - 1] = ' ';
	json_decode(value->text, value->len, &r->texts);
	buf_put_byte(&r->texts, '\0');
	if (buf_status(&r->texts, NULL) != ST_OK) {
		r->texts.status = ST_OK; /* too long: the text is dropped */
		r->texts.len = before;
		if (cell->text && before)
			r->texts.data[before - 1] = '\0';
	} else if (!cell->text) {
		*cell = (struct rocpd_cell){ .text = "", .number = (int64_t)before };
	}
}

static void read_number(const struct json *value, struct rocpd_cell *cell)
{
	uint64_t big = 0;

	*cell = (struct rocpd_cell){ .real = json_f64(value->text, value->len) };
	cell->is_there = json_i64(value->text, value->len, &cell->number);
	if (!cell->is_there && json_u64(value->text, value->len, &big)) {
		cell->is_there = true;
		cell->number = (int64_t)big;
	}
}

/* Stores a text in a cell as events.c expects it. */
static void set_cell(struct reader *r, int column, const char *text)
{
	r->row.cells[column] = (struct rocpd_cell){ .is_there = text,
						    .text = text,
						    .len = text ? strlen(text) : 0 };
}

static enum status keep_name(struct reader *r, struct map *m, int64_t id, const char *text,
			     uint32_t registers, struct error *err)
{
	size_t at = r->names.len;

	if (!text)
		return ST_OK;
	buf_put(&r->names, &registers, sizeof(registers));
	buf_put(&r->names, text, strlen(text) + 1);
	if (r->names.status == ST_CEILING) {
		r->names.status = ST_OK; /* drop this name */
		r->names.len = at;
		import_lose(&r->base.to, LOSS_CEILING, 1);
		return ST_OK;
	}
	TRY(buf_status(&r->names, err));
	return rocpd_keep(m, id, (uint64_t)at + 1, err);
}

/* Returns the name of `id`, or NULL if there is none. */
static const char *name_of(const struct reader *r, const struct map *m, int64_t id,
			   uint32_t *registers)
{
	uint64_t at = rocpd_find(m, id);
	uint32_t own;

	if (!at)
		return NULL;
	memcpy(&own, r->names.data + at - 1, sizeof(own));
	if (registers)
		*registers = own;
	return (const char *)r->names.data + at - 1 + sizeof(own);
}

static int64_t operation_id(uint32_t kind, uint32_t operation)
{
	return (int64_t)((uint64_t)kind << 32 | operation);
}

/* ---- data that precedes the events -------------------------------------------------------- */

static enum status need_process(struct reader *r, struct error *err)
{
	if (r->process)
		return ST_OK;
	r->process = trace_process(r->base.to.trace, &r->who, err);
	return r->process ? rocpd_keep(&r->base.processes, 0, r->process, err) : err->status;
}

static enum status name_if_any(struct reader *r, int column, uint32_t *name, struct error *err)
{
	const char *text = text_of(r, column);

	return text && *text ? import_name(&r->base.to, text, strlen(text), name, err) : ST_OK;
}

enum { META_PID, META_HOST, META_COMMAND };
static enum status take_metadata(struct reader *r, struct error *err)
{
	r->who.pid = (uint32_t)number_of(r, META_PID);
	TRY(name_if_any(r, META_HOST, &r->who.host, err));
	return name_if_any(r, META_COMMAND, &r->who.command, err);
}

enum { AGENT_ID, AGENT_TYPE, AGENT_INDEX, AGENT_GPU, AGENT_PRODUCT, AGENT_NAME };
static enum status take_agent(struct reader *r, struct error *err)
{
	const struct rocpd_cell *index = &r->row.cells[AGENT_INDEX];
	struct device device;

	if (number_of(r, AGENT_TYPE) != 2) /* 1: CPU, 2: GPU, as in HSA */
		return ST_OK;
	TRY(need_process(r, err));
	device = (struct device){ .process = r->process,
				  .id = (uint32_t)(index->is_there ? index->number
								   : number_of(r, AGENT_GPU)) };
	TRY(rocpd_keep(&r->base.gpus, number_of(r, AGENT_ID), (uint64_t)device.id + 1, err));
	TRY(name_if_any(r, AGENT_PRODUCT, &device.name, err));
	if (!device.name)
		TRY(name_if_any(r, AGENT_NAME, &device.name, err));
	return trace_device(r->base.to.trace, &device, err) ? ST_OK : err->status;
}

enum { NAMED_ID, NAMED, NAMED_ELSE, NAMED_LAST, NAMED_REGISTERS };
static enum status take_counter_name(struct reader *r, struct error *err)
{
	return keep_name(r, &r->counters, number_of(r, NAMED_ID), text_of(r, NAMED), 0, err);
}

static enum status take_marker(struct reader *r, struct error *err)
{
	return keep_name(r, &r->markers, number_of(r, NAMED_ID), text_of(r, NAMED), 0, err);
}

/* A kind follows its operations, because they are nested in it. */
static enum status take_kind(struct reader *r, struct error *err)
{
	r->operations_of_kind = 0;
	return keep_name(r, &r->operations, operation_id(r->kinds++, UINT32_MAX), text_of(r, NAMED),
			 0, err);
}

static enum status take_operation(struct reader *r, struct error *err)
{
	const char *name = text_of(r, NAMED_ELSE);

	r->row.cells[NAMED_ELSE].text = NULL; /* the next operation starts a new text */
	return keep_name(r, &r->operations, operation_id(r->kinds, r->operations_of_kind++), name,
			 0, err);
}

static enum status take_symbol(struct reader *r, struct error *err)
{
	const char *name = NULL;

	for (int i = NAMED; i <= NAMED_LAST && (!name || !*name); i++)
		name = text_of(r, i);
	return keep_name(r, &r->kernels, number_of(r, NAMED_ID), name,
			 (uint32_t)number_of(r, NAMED_REGISTERS), err);
}

/* ---- events ------------------------------------------------------------------------------- */

enum { KIND = ROCPD_COLUMNS - 2, OPERATION }; /* only kernels use these cells otherwise */

static enum status put_row(struct reader *r, enum rocpd_table table, struct error *err)
{
	TRY(need_process(r, err));
	r->row.cells[ROCPD_PROCESS] = (struct rocpd_cell){ .is_there = true };
	return rocpd_take(&r->row, table, err);
}

static const char *operation_of(const struct reader *r)
{
	return name_of(
		r, &r->operations,
		operation_id((uint32_t)number_of(r, KIND), (uint32_t)number_of(r, OPERATION)),
		NULL);
}

static enum status take_kernel(struct reader *r, struct error *err)
{
	struct rocpd_cell *id = &r->row.cells[ROCPD_KERNEL_NAME];
	uint32_t registers = 0;
	char number[48];
	const char *name = name_of(r, &r->kernels, id->number, &registers);

	snprintf(number, sizeof(number), "kernel %lld", (long long)id->number);
	set_cell(r, ROCPD_KERNEL_NAME, name && *name ? name : number);
	r->row.cells[ROCPD_KERNEL_REGISTERS] =
		(struct rocpd_cell){ .is_there = name, .number = registers };
	return put_row(r, ROCPD_KERNELS, err);
}

static enum status take_copy(struct reader *r, struct error *err)
{
	set_cell(r, ROCPD_COPY_NAME, operation_of(r));
	return put_row(r, ROCPD_COPIES, err);
}

/* The operations end in ALLOCATE or FREE, also for virtual memory; the address is hexadecimal. */
static enum status take_allocation(struct reader *r, struct error *err)
{
	const char *operation = operation_of(r);
	const char *address = text_of(r, ROCPD_ALLOC_ADDRESS);

	if (address)
		r->row.cells[ROCPD_ALLOC_ADDRESS] =
			(struct rocpd_cell){ .is_there = true,
					     .number = (int64_t)strtoull(address, NULL, 16) };
	set_cell(r, ROCPD_ALLOC_TYPE,
		 !operation                      ? NULL
		 : strstr(operation, "FREE")     ? "FREE"
		 : strstr(operation, "ALLOCATE") ? "ALLOC"
						 : NULL);
	return put_row(r, ROCPD_ALLOCATIONS, err);
}

static enum status take_region(struct reader *r, struct error *err)
{
	uint32_t kind = (uint32_t)number_of(r, KIND);

	set_cell(r, ROCPD_REGION_NAME, operation_of(r));
	set_cell(r, ROCPD_REGION_CATEGORY,
		 name_of(r, &r->operations, operation_id(kind, UINT32_MAX), NULL));
	set_cell(r, ROCPD_REGION_MESSAGE, name_of(r, &r->markers, number_of(r, ROCPD_STACK), NULL));
	return put_row(r, ROCPD_REGIONS, err);
}

enum { SAMPLE_COUNTER = ROCPD_OWN + 1, SAMPLE_VALUE };
static enum status take_sample(struct reader *r, struct error *err)
{
	struct rocpd_cell *value = &r->row.cells[SAMPLE_VALUE];
	struct sample s = { .counter = number_of(r, SAMPLE_COUNTER), .value = value->real };

	buf_put(&r->samples, &s, sizeof(s));
	return buf_status(&r->samples, err);
}

/* Converts the counters of a dispatch.  The row is reused for each counter, which refers to event
 * 0. */
static enum status take_counters(struct reader *r, struct error *err)
{
	const struct sample *samples = (const struct sample *)(const void *)r->samples.data;
	size_t count = r->samples.len / sizeof(*samples);
	uint64_t gpu = rocpd_find(&r->base.gpus, number_of(r, ROCPD_OWN));

	buf_clear(&r->samples);
	if (!gpu) {
		import_lose(&r->base.to, LOSS_DAMAGED, 1);
		return ST_OK;
	}
	TRY(rocpd_keep(&r->base.dispatches, 0, (uint64_t)number_of(r, ROCPD_BEGIN), err));
	TRY(rocpd_keep(&r->base.dispatch_gpus, 0, gpu - 1, err));
	for (size_t i = 0; i < count; i++) {
		memset(r->row.cells, 0, sizeof(r->row.cells));
		set_cell(r, ROCPD_COUNTER_NAME, name_of(r, &r->counters, samples[i].counter, NULL));
		r->row.cells[ROCPD_COUNTER_VALUE].real = samples[i].value;
		TRY(put_row(r, ROCPD_COUNTERS, err));
	}
	return ST_OK;
}

static enum status count_unread(struct reader *r, struct error *err)
{
	(void)err;
	r->base.unread++;
	return ST_OK;
}

/* ---- the document ------------------------------------------------------------------------- */

#define WORK                                                                                       \
	{ ROCPD_BEGIN, "start_timestamp" }, { ROCPD_END, "end_timestamp" },                        \
		{ ROCPD_THREAD, "thread_id" },                                                     \
	{                                                                                          \
		ROCPD_STACK, "correlation_id.internal"                                             \
	}
#define CALL                                                                                       \
	WORK, { KIND, "kind" },                                                                    \
	{                                                                                          \
		OPERATION, "operation"                                                             \
	}
#define REGION                                                                                     \
	take_region,                                                                               \
	{                                                                                          \
		CALL                                                                               \
	}
#define UNREAD                                                                                     \
	count_unread,                                                                              \
	{                                                                                          \
		{                                                                                  \
			0, NULL                                                                    \
		}                                                                                  \
	}
static const struct record {
	const char *path;
	enum status (*take)(struct reader *r, struct error *err);
	struct {
		int column;
		const char *path; /* relative to the record's path; NULL ends the list */
	} fields[FIELDS_MOST];
} records[] = {
	{ "metadata",
	  take_metadata,
	  { { META_PID, "pid" }, { META_HOST, "node.hostname" }, { META_COMMAND, "command[]" } } },
	{ "agents[]",
	  take_agent,
	  { { AGENT_ID, "id.handle" },
	    { AGENT_TYPE, "type" },
	    { AGENT_INDEX, "logical_node_type_id" },
	    { AGENT_GPU, "gpu_index" },
	    { AGENT_PRODUCT, "product_name" },
	    { AGENT_NAME, "name" } } },
	{ "counters[]", take_counter_name, { { NAMED_ID, "id.handle" }, { NAMED, "name" } } },
	{ "strings.buffer_records[]", take_kind, { { NAMED, "kind" } } },
	{ "strings.buffer_records[].operations[]", take_operation, { { NAMED_ELSE, "" } } },
	{ "strings.marker_api[]", take_marker, { { NAMED_ID, "key" }, { NAMED, "value" } } },
	{ "kernel_symbols[]",
	  take_symbol,
	  { { NAMED_ID, "kernel_id" },
	    { NAMED, "formatted_kernel_name" },
	    { NAMED_ELSE, "demangled_kernel_name" },
	    { NAMED_LAST, "kernel_name" },
	    { NAMED_REGISTERS, "arch_vgpr_count" } } },
	{ "callback_records.counter_collection[]",
	  take_counters,
	  { { ROCPD_BEGIN, "dispatch_data.start_timestamp" },
	    { ROCPD_OWN, "dispatch_data.dispatch_info.agent_id.handle" } } },
	{ "callback_records.counter_collection[].records[]",
	  take_sample,
	  { { SAMPLE_COUNTER, "counter_id.handle" }, { SAMPLE_VALUE, "value" } } },
	{ "buffer_records.kernel_dispatch[]",
	  take_kernel,
	  { WORK,
	    { ROCPD_KERNEL_AGENT, "dispatch_info.agent_id.handle" },
	    { ROCPD_KERNEL_QUEUE, "dispatch_info.queue_id.handle" },
	    { ROCPD_KERNEL_STREAM, "stream_id.handle" },
	    { ROCPD_KERNEL_NAME, "dispatch_info.kernel_id" },
	    { ROCPD_KERNEL_SHARED, "dispatch_info.group_segment_size" },
	    { ROCPD_KERNEL_GRID, "dispatch_info.grid_size.x" },
	    { ROCPD_KERNEL_GRID + 1, "dispatch_info.grid_size.y" },
	    { ROCPD_KERNEL_GRID + 2, "dispatch_info.grid_size.z" },
	    { ROCPD_KERNEL_GROUP, "dispatch_info.workgroup_size.x" },
	    { ROCPD_KERNEL_GROUP + 1, "dispatch_info.workgroup_size.y" },
	    { ROCPD_KERNEL_GROUP + 2, "dispatch_info.workgroup_size.z" } } },
	{ "buffer_records.memory_copy[]",
	  take_copy,
	  { CALL,
	    { ROCPD_COPY_TO, "dst_agent_id.handle" },
	    { ROCPD_COPY_FROM, "src_agent_id.handle" },
	    { ROCPD_COPY_STREAM, "stream_id.handle" },
	    { ROCPD_COPY_SIZE, "bytes" } } },
	{ "buffer_records.memory_allocation[]",
	  take_allocation,
	  { CALL,
	    { ROCPD_ALLOC_AGENT, "agent_id.handle" },
	    { ROCPD_ALLOC_ADDRESS, "address" },
	    { ROCPD_ALLOC_SIZE, "allocation_size" } } },
	{ "buffer_records.hip_api[]", REGION },
	{ "buffer_records.hsa_api[]", REGION },
	{ "buffer_records.marker_api[]", REGION },
	{ "buffer_records.rccl_api[]", REGION },
	{ "buffer_records.rocdecode_api[]", REGION },
	{ "buffer_records.rocjpeg_api[]", REGION },
	{ "buffer_records.scratch_memory[]", UNREAD },
	{ "buffer_records.pc_sample_host_trap[]", UNREAD },
	{ "buffer_records.pc_sample_stochastic[]", UNREAD },
};

/* Records an error of the scanner as the error that ends the input. */
static enum status scanned(struct reader *r, enum status status, const struct error *err)
{
	if (status != ST_OK && status != ST_MEMORY)
		r->base.fault = *err;
	return status;
}

static enum status next_token(struct reader *r, struct json *out, struct error *err)
{
	return scanned(r, json_next(&r->scan, out, err), err);
}

static void take_field(struct reader *r, const struct record *in, const struct json *value)
{
	const char *path = r->path + strlen(in->path);

	path += *path == '.';
	for (int i = 0; i < FIELDS_MOST && in->fields[i].path; i++) {
		struct rocpd_cell *cell = &r->row.cells[in->fields[i].column];

		if (strcmp(path, in->fields[i].path) != 0)
			continue;
		if (value->type == JSON_STRING)
			read_text(r, value, cell);
		else if (value->type == JSON_NUMBER)
			read_number(value, cell);
	}
}

/* Reads the value that begins with `first`, whose path has `len` bytes.  `in` is the record to
 * which it belongs, or NULL. */
static enum status read_process(struct reader *r, const struct json *first, struct error *err);
static enum status read_value(struct reader *r, const struct json *first, size_t len,
			      const struct record *in, struct error *err)
{
	const struct record *own = NULL;
	struct json token = *first;

	if (!strcmp(r->path, PROCESSES))
		return read_process(r, first, err);
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]) && !own && r->is_begun; i++)
		own = !strcmp(records[i].path, r->path) ? &records[i] : NULL;
	if (own && !in) { /* a nested record shares the row of the outer one */
		memset(r->row.cells, 0, sizeof(r->row.cells));
		buf_clear(&r->texts);
	}
	if (own)
		in = own;
	if (first->type == JSON_ARRAY && len + 2 < PATH_BYTES) {
		memcpy(r->path + len, "[]", 3);
		for (;;) {
			TRY(next_token(r, &token, err));
			if (token.type == JSON_ARRAY_END)
				break;
			TRY(read_value(r, &token, len + 2, in, err));
		}
	} else if (first->type == JSON_OBJECT) {
		for (;;) {
			size_t at = len;

			TRY(next_token(r, &token, err));
			if (token.type == JSON_OBJECT_END)
				break;
			bool fits = len + 2 + token.len < PATH_BYTES;
			if (fits) {
				if (len)
					r->path[at++] = '.';
				memcpy(r->path + at, token.text, token.len);
				at += token.len;
				r->path[at] = '\0';
			}
			TRY(next_token(r, &token, err));
			TRY(fits ? read_value(r, &token, at, in, err)
				 : scanned(r, json_skip(&r->scan, &token, err), err));
		}
	} else if (first->type == JSON_ARRAY) {
		TRY(scanned(r, json_skip(&r->scan, first, err), err));
	} else if (in) {
		take_field(r, in, first);
	}
	r->path[len] = '\0';
	return own ? own->take(r, err) : ST_OK;
}

static enum status read_process(struct reader *r, const struct json *first, struct error *err)
{
	rocpd_clear(&r->base);
	map_clear(&r->kernels);
	map_clear(&r->markers);
	map_clear(&r->counters);
	map_clear(&r->operations);
	buf_clear(&r->names);
	r->who = (struct process){ .rank = NO_RANK };
	r->process = r->kinds = r->operations_of_kind = 0;
	r->path[0] = '\0';
	r->is_begun = true;
	TRY(read_value(r, first, 0, NULL, err));
	strcpy(r->path, PROCESSES);
	return ST_OK;
}

static enum status rocprof_read(struct spool_source *s, struct input *in, const struct budget *left,
				struct error *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct json token;
	enum status status;

	(void)left;
	if (!r)
		return fail_memory(err);
	r->row.p = &r->base;
	import_init(&r->base.to, s->trace, s->spool, 0);
	buf_init(&r->texts, TEXTS_BYTES);
	buf_init(&r->names, NAMES_BYTES);
	buf_init(&r->samples, TEXTS_BYTES);
	json_open(&r->scan, in);
	status = next_token(r, &token, err);
	if (status == ST_OK)
		status = read_value(r, &token, 0, NULL, err);
	if (status == ST_OK)
		status = next_token(r, &token, err); /* fails if anything follows */
	if (status == ST_OK && !r->is_begun)
		status = fail(err, ST_FORMAT, 0, "JSON, but not of rocprofv3: it has no " TOP);
	if (r->is_begun && r->base.fault.status != ST_OK)
		status = ST_OK;
	if (status == ST_OK && r->base.unread)
		import_lose(&r->base.to, LOSS_UNREAD, r->base.unread);
	if (status == ST_OK)
		status = import_provenance(&r->base.to, "rocprofv3 JSON", &r->base.fault, err);
	spool_source_clock(s, 0, r->base.to.first_ns);
	s->fault = r->base.fault;
	rocpd_release(&r->base);
	map_release(&r->kernels);
	map_release(&r->markers);
	map_release(&r->counters);
	map_release(&r->operations);
	buf_release(&r->texts);
	buf_release(&r->names);
	buf_release(&r->samples);
	free(r);
	return status;
}

static int rocprof_bid(const uint8_t *head, size_t len)
{
	size_t at;

	return json_begins(head, len, &at) && head_has(head, len, "\"" TOP "\"") ? 97 : 0;
}

static const struct spool_reader reader = {
	.own_bytes = NAMES_BYTES,
	.spools = 1,
	.read = rocprof_read,
};

const struct source_type source_rocprof = {
	.name = "rocprof",
	.help = "ROCm's rocprofv3, JSON",
	.bid = rocprof_bid,
	.spooled = &reader,
	.next = spool_source_next,
	.close = spool_source_close,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Converts rows to events: kernels, copies, allocations, regions of threads, samples, counters. */
#include "convert/source/rocpd/internal.h"

#include "schemas/model/records.h"

#include <stdio.h>
#include <string.h>

static int64_t number(const struct rocpd_row *r, int column)
{
	return r->cells[column].number;
}

static bool is_null(const struct rocpd_row *r, int column)
{
	return !r->cells[column].is_there;
}

/* Returns "" if the cell is not a text. */
static const char *text_of(const struct rocpd_row *r, int column)
{
	return r->cells[column].text ? r->cells[column].text : "";
}

/* Interns the text of a cell; *name is 0 if there is none. */
static enum status put_name(struct rocpd_row *r, int column, uint32_t *name, struct error *err)
{
	const struct rocpd_cell *cell = &r->cells[column];

	*name = 0;
	return cell->text && cell->len ? import_name(&r->p->to, cell->text, cell->len, name, err)
				       : ST_OK;
}

static enum status put_number(struct rocpd_row *r, int column, const char *key, struct error *err)
{
	int64_t v = number(r, column);
	struct attr a = { .type = v < 0 ? ATTR_I64 : ATTR_U64, .bits = (uint64_t)v };

	return is_null(r, column) ? ST_OK
				  : import_attr_named(&r->p->to, key, strlen(key), &a, false, err);
}

/* Puts the event on its track, with the attributes added so far. */
static enum status put_event_at(struct rocpd_row *r, int64_t begin_ns, int64_t duration_ns,
				struct error *err)
{
	struct import *to = &r->p->to;

	if (!import_times(to, &r->event, begin_ns, duration_ns)) {
		import_lose(to, LOSS_NO_TIME, 1);
		return ST_OK;
	}
	r->event.track = trace_track(to->trace, &r->track, err);
	if (!r->event.track)
		return err->status;
	TRY(import_schema(to, &r->event, err));
	return import_put(to, &r->event, err);
}

static enum status put_event(struct rocpd_row *r, struct error *err)
{
	int64_t begin = number(r, ROCPD_BEGIN);

	if (is_null(r, ROCPD_BEGIN) || is_null(r, ROCPD_END)) {
		import_lose(&r->p->to, LOSS_NO_TIME, 1);
		return ST_OK;
	}
	return put_event_at(r, begin, (int64_t)((uint64_t)number(r, ROCPD_END) - (uint64_t)begin),
			    err);
}

/* Sets the track to a stream of the agent in column `agent`.  Returns false if that is not a known
 * GPU. */
static bool is_on_gpu(struct rocpd_row *r, int agent, int stream, int queue)
{
	uint64_t found = is_null(r, agent) ? 0 : rocpd_find(&r->p->gpus, number(r, agent));

	if (!found)
		return false;
	r->track.type = TRACK_STREAM;
	r->track.device = (uint32_t)(found - 1);
	r->track.id = (uint64_t)(is_null(r, stream) ? number(r, queue) : number(r, stream));
	return true;
}

static void set_thread(struct rocpd_row *r)
{
	uint64_t tid = rocpd_find(&r->p->threads, number(r, ROCPD_THREAD));

	r->track.type = TRACK_THREAD;
	r->track.id = tid ? tid - 1 : (uint64_t)number(r, ROCPD_THREAD);
}

/* ---- ids --------------------------------------------------------------------------------- */

enum { IDS_MOST = 1 << 24 };

enum status rocpd_keep(struct map *m, int64_t id, uint64_t value, struct error *err)
{
	uint64_t *place = map_put(m, (uint64_t)id, NULL);

	if (!place)
		return fail_memory(err);
	*place = value;
	return m->count > IDS_MOST ? fail(err, ST_CEILING, NOWHERE, "more than %d ids", IDS_MOST)
				   : ST_OK;
}

void rocpd_clear(struct rocpd_import *p)
{
	map_clear(&p->processes);
	map_clear(&p->threads);
	map_clear(&p->gpus);
	map_clear(&p->dispatches);
	map_clear(&p->dispatch_gpus);
	map_clear(&p->allocations);
}

void rocpd_release(struct rocpd_import *p)
{
	import_release(&p->to);
	map_release(&p->processes);
	map_release(&p->threads);
	map_release(&p->gpus);
	map_release(&p->dispatches);
	map_release(&p->dispatch_gpus);
	map_release(&p->allocations);
}

/* ---- kernels ---------------------------------------------------------------------------- */

static enum status take_kernel(struct rocpd_row *r, struct error *err)
{
	static const char *const blocks[] = { "block_x", "block_y", "block_z" };
	static const char *const grids[] = { "grid_x", "grid_y", "grid_z" };

	if (!is_on_gpu(r, ROCPD_KERNEL_AGENT, ROCPD_KERNEL_STREAM, ROCPD_KERNEL_QUEUE)) {
		import_lose(&r->p->to, LOSS_DAMAGED, 1);
		return ST_OK;
	}
	r->event.kind = KIND_KERNEL;
	TRY(put_name(r, ROCPD_KERNEL_NAME, &r->event.name, err));
	if (!r->event.name)
		TRY(put_name(r, ROCPD_KERNEL_OTHER_NAME, &r->event.name, err));
	TRY(put_number(r, ROCPD_KERNEL_SHARED, "dynamic_shared", err));
	TRY(put_number(r, ROCPD_KERNEL_REGISTERS, "registers", err));
	if (number(r, ROCPD_KERNEL_GRAPH)) { /* 0: not launched by a graph */
		TRY(put_number(r, ROCPD_KERNEL_GRAPH, "graph", err));
		TRY(put_number(r, ROCPD_KERNEL_NODE, "graph_node", err));
	}
	/* rocprofv3 counts a grid in work-items, Tacho in workgroups. */
	for (int i = 0; i < 3; i++) {
		int64_t group = number(r, ROCPD_KERNEL_GROUP + i),
			items = number(r, ROCPD_KERNEL_GRID + i);
		struct attr a = { .type = ATTR_U64 };

		if (group <= 0 || items < 0)
			continue;
		a.bits = (uint64_t)(items / group + (items % group != 0));
		TRY(import_attr_named(&r->p->to, grids[i], 6, &a, false, err));
		a.bits = (uint64_t)group;
		TRY(import_attr_named(&r->p->to, blocks[i], 7, &a, false, err));
	}
	if (r->p->has_counters && !is_null(r, ROCPD_KERNEL_EVENT)) {
		TRY(rocpd_keep(&r->p->dispatches, number(r, ROCPD_KERNEL_EVENT),
			       (uint64_t)number(r, ROCPD_BEGIN), err));
		TRY(rocpd_keep(&r->p->dispatch_gpus, number(r, ROCPD_KERNEL_EVENT), r->track.device,
			       err));
	}
	return put_event(r, err);
}

/* ---- copies ----------------------------------------------------------------------------- */

static enum status take_copy(struct rocpd_row *r, struct error *err)
{
	bool from_gpu = is_on_gpu(r, ROCPD_COPY_FROM, ROCPD_COPY_STREAM, ROCPD_COPY_QUEUE);
	uint32_t from = r->track.device;
	bool to_gpu = is_on_gpu(r, ROCPD_COPY_TO, ROCPD_COPY_STREAM, ROCPD_COPY_QUEUE);
	const char *kind;
	uint32_t name;
	char text[32];

	/* A copy between two GPUs is on the GPU that it reads, as in CUPTI. */
	if (from_gpu)
		r->track.device = from;
	if (!from_gpu && !to_gpu) {
		import_lose(&r->p->to, LOSS_NO_PLACE, 1); /* from host to host */
		return ST_OK;
	}
	kind = !from_gpu                                                ? "HtoD"
	       : !to_gpu                                                ? "DtoH"
	       : number(r, ROCPD_COPY_FROM) == number(r, ROCPD_COPY_TO) ? "DtoD"
									: "PtoP";
	r->event.kind = KIND_MEMCPY;
	r->event.subkind = (uint8_t)copy_kind_of_word(kind, 4);
	r->event.bytes =
		(uint64_t)(number(r, ROCPD_COPY_SIZE) > 0 ? number(r, ROCPD_COPY_SIZE) : 0);
	TRY(put_name(r, ROCPD_COPY_NAME, &name, err));
	if (name) {
		size_t len;
		const char *operation = trace_text(r->p->to.trace, name, &len);

		TRY(import_text(&r->p->to, "operation", operation, len, err));
	}
	snprintf(text, sizeof(text), "Memcpy %s", kind);
	TRY(import_name(&r->p->to, text, strlen(text), &r->event.name, err));
	return put_event(r, err);
}

/* ---- allocations ------------------------------------------------------------------------ */

static enum status take_allocation(struct rocpd_row *r, struct error *err)
{
	const char *type = text_of(r, ROCPD_ALLOC_TYPE);
	bool is_free = !strcmp(type, "FREE");
	int64_t address = number(r, ROCPD_ALLOC_ADDRESS), size = number(r, ROCPD_ALLOC_SIZE);

	if (!is_free && strcmp(type, "ALLOC") != 0) {
		r->p->unread++;
		return ST_OK;
	}
	if (is_free && !address)
		return ST_OK; /* freeing NULL is allowed */
	if (is_free && size <= 0)
		size = (int64_t)rocpd_find(&r->p->allocations, address);
	else if (!is_free)
		TRY(rocpd_keep(&r->p->allocations, address, (uint64_t)(size > 0 ? size : 0), err));
	if (is_free)
		map_remove(&r->p->allocations, (uint64_t)address);
	r->event.kind = is_free ? KIND_FREE : KIND_ALLOC;
	r->event.bytes = (uint64_t)(size > 0 ? size : 0);
	r->event.address = (uint64_t)address;
	if (is_on_gpu(r, ROCPD_ALLOC_AGENT, ROCPD_ALLOC_SIZE, ROCPD_ALLOC_SIZE))
		r->track.id = 0;
	else
		set_thread(r);
	r->track.type = TRACK_ALLOCATOR;
	return put_event(r, err);
}

/* ---- regions and samples ---------------------------------------------------------------- */

static enum status take_region(struct rocpd_row *r, struct error *err)
{
	const char *category = text_of(r, ROCPD_REGION_CATEGORY);

	set_thread(r);
	r->event.kind = KIND_RANGE;
	r->event.subkind = RANGE_OTHER;
	if (strstr(category, "MARKER")) {
		r->event.subkind = RANGE_NVTX; /* ROCTx corresponds to NVTX */
		TRY(put_name(r, ROCPD_REGION_MESSAGE, &r->event.name, err));
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
		TRY(put_name(r, ROCPD_REGION_NAME, &r->event.name, err));
	return put_event(r, err);
}

static enum status take_sample(struct rocpd_row *r, struct error *err)
{
	set_thread(r);
	r->event.kind = KIND_MARK;
	TRY(put_name(r, ROCPD_REGION_MESSAGE, &r->event.name, err));
	if (!r->event.name)
		TRY(put_name(r, ROCPD_REGION_NAME, &r->event.name, err));
	return put_event(r, err);
}

/* ---- counters --------------------------------------------------------------------------- */

/* Converts a counter of a kernel to a sample at the kernel's begin. */
static enum status take_counter(struct rocpd_row *r, struct error *err)
{
	int64_t of = number(r, ROCPD_COUNTER_EVENT);
	const uint64_t *at = map_find(&r->p->dispatches, (uint64_t)of);

	if (!at) {
		r->p->unread++;
		return ST_OK;
	}
	r->event.kind = KIND_COUNTER;
	r->event.value = r->cells[ROCPD_COUNTER_VALUE].real;
	TRY(put_name(r, ROCPD_COUNTER_NAME, &r->event.name, err));
	r->track.type = TRACK_COUNTER;
	r->track.device = (uint32_t)rocpd_find(&r->p->dispatch_gpus, of);
	r->track.name = r->event.name;
	return put_event_at(r, (int64_t)*at, 0, err);
}

enum status rocpd_take(struct rocpd_row *r, enum rocpd_table table, struct error *err)
{
	static enum status (*const take[ROCPD_TABLES])(struct rocpd_row * r, struct error * err) = {
		[ROCPD_KERNELS] = take_kernel,         [ROCPD_COPIES] = take_copy,
		[ROCPD_ALLOCATIONS] = take_allocation, [ROCPD_REGIONS] = take_region,
		[ROCPD_SAMPLES] = take_sample,         [ROCPD_COUNTERS] = take_counter,
	};

	import_begin(&r->p->to);
	r->event = (struct event){ .begin_ns = 0 };
	r->track = (struct track){ .process = (uint32_t)rocpd_find(&r->p->processes,
								   number(r, ROCPD_PROCESS)),
				   .device = NO_ID,
				   .context = NO_ID };
	if (!r->track.process) {
		import_lose(&r->p->to, LOSS_DAMAGED, 1);
		return ST_OK;
	}
	/* GPU work has the stack id of the call that launched it. */
	r->event.correlation = (uint64_t)number(r, ROCPD_STACK);
	return take[table](r, err);
}

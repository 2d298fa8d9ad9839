/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe for NVTX: its injected handler, used instead of CUPTI's marker records.
 *
 * This file has the functions for NVTX's tables, and the probe. calls.h has the work of each call,
 * and rows.h turns records into rows of the log.
 */
#include "collector/probe/cupti/lib.h"
#include "collector/arena/texts.h"
#include "collector/probe/nvtx/calls.h"
#include "collector/probe/nvtx/payload.h"
#include "collector/probe/nvtx/rows.h"
#include "collector/probe/nvtx/text.h"
#include "collector/probe/probe.h"
#include "collector/probe/rows.h"
#include "collector/store/writer.h"
#include "schemas/base/buf.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- events ---- */

/* The five forms of a call, by their arguments; each passes on a struct nvtx_event. */
#define EVENT_CALL(name, result, parameters, event)                                                \
	static result name parameters                                                              \
	{                                                                                          \
		struct nvtx_event e = event;                                                       \
                                                                                                   \
		return EVENT_HANDLER(&e);                                                          \
	}
#define EVENT_CALLS(prefix, result)                                                                \
	EVENT_CALL(prefix##_ex, result, (const struct nvtx_attributes *a),                         \
		   nvtx_event_of_attributes(NULL, a))                                              \
	EVENT_CALL(prefix##_a, result, (const char *text),                                         \
		   nvtx_event_of_text(NVTX_MESSAGE_ASCII, text))                                   \
	EVENT_CALL(prefix##_w, result, (const wchar_t *text),                                      \
		   nvtx_event_of_text(NVTX_MESSAGE_WIDE, text))                                    \
	EVENT_CALL(domain_##prefix, result, (const void *domain, const struct nvtx_attributes *a), \
		   nvtx_event_of_attributes(domain, a))                                            \
	EVENT_CALL(payload_##prefix, result,                                                       \
		   (const void *domain, const struct nvtx_data *data, size_t count),               \
		   nvtx_event_of_payloads(domain, data, count))
#define EVENT_HANDLER nvtx_mark
EVENT_CALLS(mark, void)
#undef EVENT_HANDLER
#define EVENT_HANDLER nvtx_start
EVENT_CALLS(start, uint64_t)
#undef EVENT_HANDLER
#define EVENT_HANDLER nvtx_push
EVENT_CALLS(push, int)
#undef EVENT_HANDLER

static void range_end(uint64_t id)
{
	nvtx_end(id, NULL, 0);
}

static void domain_end(const void *domain, uint64_t id)
{
	nvtx_end(id, NULL, 0);
}

static void payload_end(const void *domain, uint64_t id, const struct nvtx_data *data, size_t count)
{
	nvtx_end(id, data, count);
}

static int range_pop(void)
{
	return nvtx_pop(0, NULL, 0);
}

static int domain_pop(const void *domain)
{
	return nvtx_pop(nvtx_domain_of(domain), NULL, 0);
}

static int payload_pop(const void *domain, const struct nvtx_data *data, size_t count)
{
	return nvtx_pop(nvtx_domain_of(domain), data, count);
}

/* ---- names: rare, with a short lock ---- */

/* Returns the id of a name of any message type. */
static uint32_t keep_name(int32_t type, const void *text)
{
	char narrow[NVTX_TEXT_MAX];

	if (type == NVTX_MESSAGE_REGISTERED)
		return (uintptr_t)text <= NAMES_MAX ? (uint32_t)(uintptr_t)text : 0;
	if (type == NVTX_MESSAGE_WIDE)
		return name_find_text(narrow, nvtx_text_narrow(narrow, sizeof(narrow), text));
	return name_find(type == NVTX_MESSAGE_ASCII ? text : NULL);
}

static const void *handle_of(uint32_t number)
{
	return (const void *)(uintptr_t)number;
}

/* Returns the handle of a text.  NULL is no valid handle, so texts that do not fit become the empty
 * text. */
static const void *string_handle(int32_t type, const void *text)
{
	uint32_t name = keep_name(type, text);

	if (!name)
		nvtx_lose(1);
	return handle_of(name ? name : name_find(""));
}

static const void *domain_handle(int32_t type, const void *name)
{
	return handle_of(nvtx_domain_find(keep_name(type, name)));
}

/* Names a stream by its id, because its address has no meaning for readers of the log. */
static void name_stream(const void *stream, uint32_t name)
{
	struct cupti_stream_ids ids;

	if (cupti_ids_of_stream(stream, &ids))
		nvtx_object_put(NVTX_STREAM_ID, cupti_ids_word(ids.context, ids.stream), name);
}

static void name_device(int device, uint32_t name)
{
	nvtx_object_put(NVTX_DEVICE, (uint64_t)device, name);
}

static void name_thread(uint32_t tid, uint32_t name)
{
	nvtx_object_put(NVTX_THREAD, tid, name);
}

/* Stores names of threads, devices and streams.  Names of contexts, events and the program's own
 * objects are ignored, because no record would have them. */
static const void *resource_create(const void *domain, const struct nvtx_resource *r)
{
	if (!r || r->size < sizeof(*r))
		return handle_of(1);
	uint32_t name = keep_name(r->message_type, r->message);
	switch (r->type) {
	case NVTX_RESOURCE_THREAD:
		name_thread((uint32_t)r->id, name);
		break;
	case NVTX_RESOURCE_PTHREAD: /* the tid of another pthread_t is unknown */
		if (r->id == (uint64_t)pthread_self())
			name_thread((uint32_t)syscall(SYS_gettid), name);
		break;
	case NVTX_RESOURCE_CU_DEVICE:
	case NVTX_RESOURCE_CUDA_DEVICE:
		name_device((int)r->id, name);
		break;
	case NVTX_RESOURCE_CU_STREAM:
	case NVTX_RESOURCE_CUDA_STREAM:
		name_stream((const void *)(uintptr_t)r->id, name);
		break;
	}
	return handle_of(1);
}

/* Functions that exist for ASCII and for wide text. */
#define TEXT_CALLS(suffix, form, text_type)                                                        \
	static const void *domain_create_##suffix(const text_type *name)                           \
	{                                                                                          \
		return domain_handle(NVTX_MESSAGE_##form, name);                                   \
	}                                                                                          \
	static const void *string_##suffix(const void *domain, const text_type *text)              \
	{                                                                                          \
		return string_handle(NVTX_MESSAGE_##form, text);                                   \
	}                                                                                          \
	static void domain_category_##suffix(const void *domain, uint32_t category,                \
					     const text_type *name)                                \
	{                                                                                          \
		nvtx_object_put(NVTX_CATEGORY, nvtx_category(nvtx_domain_of(domain), category),    \
				keep_name(NVTX_MESSAGE_##form, name));                             \
	}                                                                                          \
	static void category_##suffix(uint32_t category, const text_type *name)                    \
	{                                                                                          \
		domain_category_##suffix(NULL, category, name);                                    \
	}
TEXT_CALLS(a, ASCII, char)
TEXT_CALLS(w, WIDE, wchar_t)

/* Does nothing, because other records may still refer to the name. */
static void destroy(const void *handle)
{
}

#define NAMED(what, id_type, suffix, form, text_type)                                              \
	static void what##_##suffix(id_type id, const text_type *name)                             \
	{                                                                                          \
		name_##what(id, keep_name(NVTX_MESSAGE_##form, name));                             \
	}
NAMED(thread, uint32_t, a, ASCII, char)
NAMED(thread, uint32_t, w, WIDE, wchar_t)
NAMED(device, int, a, ASCII, char)
NAMED(device, int, w, WIDE, wchar_t)
NAMED(stream, const void *, a, ASCII, char)
NAMED(stream, const void *, w, WIDE, wchar_t)

static uint64_t schema_register(const void *domain, const struct nvtx_schema *s)
{
	return nvtx_schema_put(nvtx_domain_of(domain), s);
}

static uint64_t enum_register(const void *domain, const struct nvtx_enum *e)
{
	return nvtx_enum_put(nvtx_domain_of(domain), e);
}

/* Always reports the domain as enabled: callers query this before registering anything. */
static uint8_t domain_is_enabled(const void *domain)
{
	return 1;
}

/* ---- the tables ---- */

/* A function of ours and its place in a table. */
struct nvtx_function_row {
	uint8_t module, place;
	nvtx_function function;
};
#define F(module, place, function)                                                                 \
	{                                                                                          \
		module, place, (nvtx_function)(function)                                           \
	}
static const struct nvtx_function_row function_rows[] = {
	F(NVTX_CORE, 1, mark_ex),
	F(NVTX_CORE, 2, mark_a),
	F(NVTX_CORE, 3, mark_w),
	F(NVTX_CORE, 4, start_ex),
	F(NVTX_CORE, 5, start_a),
	F(NVTX_CORE, 6, start_w),
	F(NVTX_CORE, 7, range_end),
	F(NVTX_CORE, 8, push_ex),
	F(NVTX_CORE, 9, push_a),
	F(NVTX_CORE, 10, push_w),
	F(NVTX_CORE, 11, range_pop),
	F(NVTX_CORE, 12, category_a),
	F(NVTX_CORE, 13, category_w),
	F(NVTX_CORE, 14, thread_a),
	F(NVTX_CORE, 15, thread_w),
	F(NVTX_CUDA, 1, device_a),
	F(NVTX_CUDA, 2, device_w),
	F(NVTX_CUDA, 5, stream_a),
	F(NVTX_CUDA, 6, stream_w),
	F(NVTX_CUDART, 1, device_a),
	F(NVTX_CUDART, 2, device_w),
	F(NVTX_CUDART, 3, stream_a),
	F(NVTX_CUDART, 4, stream_w),
	F(NVTX_CORE2, 1, domain_mark),
	F(NVTX_CORE2, 2, domain_start),
	F(NVTX_CORE2, 3, domain_end),
	F(NVTX_CORE2, 4, domain_push),
	F(NVTX_CORE2, 5, domain_pop),
	F(NVTX_CORE2, 6, resource_create),
	F(NVTX_CORE2, 7, destroy),
	F(NVTX_CORE2, 8, domain_category_a),
	F(NVTX_CORE2, 9, domain_category_w),
	F(NVTX_CORE2, 10, string_a),
	F(NVTX_CORE2, 11, string_w),
	F(NVTX_CORE2, 12, domain_create_a),
	F(NVTX_CORE2, 13, domain_create_w),
	F(NVTX_CORE2, 14, destroy),
};
static const struct nvtx_function_row payload_function_rows[] = {
	F(NVTX_PAYLOAD, 0, schema_register), F(NVTX_PAYLOAD, 1, enum_register),
	F(NVTX_PAYLOAD, 2, payload_mark),    F(NVTX_PAYLOAD, 3, payload_push),
	F(NVTX_PAYLOAD, 4, payload_pop),     F(NVTX_PAYLOAD, 5, payload_start),
	F(NVTX_PAYLOAD, 6, payload_end),     F(NVTX_PAYLOAD, 7, domain_is_enabled),
};

/* ---- entry points, which each shared object with NVTX calls on any thread ---- */

static bool is_wanted(void)
{
	const struct config *c = session_config();

	return c && c->nvtx && !c->forbidden && nvtx_names_exist();
}

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/*
 * Writes our functions to the table of this copy of NVTX, except for those that it does not have.
 * Never returns 0, after which NVTX would unload this library.
 */
EXPORT int InitializeInjectionNvtx2(nvtx_get_table get_table);
int InitializeInjectionNvtx2(nvtx_get_table get_table)
{
	const struct nvtx_callbacks *table = get_table ? get_table(NVTX_TABLE_CALLBACKS) : NULL;

	if (!is_wanted() || !table || table->size < sizeof(*table) || !table->module)
		return 1;
	nvtx_prepare();
	for (size_t i = 0; i < ROWS(function_rows); i++) {
		const struct nvtx_function_row *row = &function_rows[i];
		nvtx_function **at = NULL;
		unsigned places = 0;

		if (table->module(row->module, &at, &places) && at && row->place < places &&
		    at[row->place])
			*at[row->place] = row->function;
	}
	return 1;
}

EXPORT int InitializeInjectionNvtxExtension(struct nvtx_extension *x);
int InitializeInjectionNvtxExtension(struct nvtx_extension *x)
{
	if (!is_wanted() || !x || x->size < sizeof(*x) || x->module != NVTX_PAYLOAD ||
	    !x->segment_count || !x->segments || !x->segments->places)
		return 1;
	for (size_t i = 0; i < ROWS(payload_function_rows); i++)
		if (payload_function_rows[i].place < x->segments->count)
			x->segments->places[payload_function_rows[i].place] =
				(intptr_t)payload_function_rows[i].function;
	return 1;
}

/* ---- writer thread ---- */

static struct {
	uint64_t log;
	uint32_t objects, domains;
} reported;

/* XLA checks once whether there is a handler, and then passes its annotations only to the
 * handler. */
static void note_xla_domain(struct writer *w, uint32_t count)
{
	uint32_t xla = name_lookup("TSL", 3), i;

	for (i = reported.domains; i < count; i++)
		if (i && nvtx_domain_name(i) == xla)
			writer_set_attribute(
				w, "nvtx_note",
				"XLA gives its annotations to NVTX while there "
				"is a handler: jax.profiler does not see them; with --no-nvtx "
				"it does",
				false);
	reported.domains = count;
}

static bool is_here(const struct writer *w, uint32_t tid)
{
	char path[64];

	if (writer_is_last(w)) {
		const struct thread_state *thread = session_threads();
		while (thread && thread->tid != tid)
			thread = thread_next(thread);
		return thread;
	}
	snprintf(path, sizeof(path), "%s/task/%u", session_proc(), tid);
	return access(path, F_OK) == 0;
}

static void name_threads(struct writer *w, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct nvtx_named n = nvtx_object_at(i);

		if (n.object != NVTX_THREAD || !is_here(w, (uint32_t)n.id))
			continue;
		writer_name_track(w, probe_thread_track(w, (uint32_t)n.id, NULL),
				  probe_name(w, n.name));
	}
}

static unsigned nvtx_drain(struct writer *w, uint64_t now_ns)
{
	uint32_t count = nvtx_object_count(), domains = nvtx_domain_count();
	uint64_t lost = nvtx_lost();

	if (domains != reported.domains)
		note_xla_domain(w, domains);
	if (count && writer_ready(w) &&
	    (count != reported.objects || writer_log(w) != reported.log)) {
		name_threads(w, count);
		reported.objects = count;
		reported.log = writer_log(w);
	}
	if (lost && writer_ready(w)) {
		writer_lose(w, LOSS_CEILING, lost);
		nvtx_lost_is_told(lost);
	}
	return 0;
}

static void put_late(struct thread_state *thread, const struct ring_record *r, const void *tail,
		     void *arg)
{
	struct writer *w = arg;

	if (!writer_wants(w, r->kind) || !writer_ready(w))
		return;
	session_note_late();
	nvtx_rows_put(w, 0, 0, r, tail);
}

static void nvtx_close_window(struct writer *w, uint64_t window)
{
	struct tick_span span = session_span(window);

	nvtx_started_put_open(window, &span, put_late, w);
}

static void nvtx_doctor(struct buf *out)
{
	if (!session_config()->nvtx)
		buf_put_text(out, "nvtx      is switched off\n");
	else
		buf_put_text(out, "nvtx      ranges are taken, without CUPTI\n");
}

const struct probe_type probe_nvtx = {
	.name = "nvtx",
	.help = "NVTX ranges and marks of the program and its libraries",
	.drain = nvtx_drain,
	.note_stored = nvtx_lost_is_stored,
	.close_window = nvtx_close_window,
	.forked = nvtx_calls_forked,
	.doctor = nvtx_doctor,
};

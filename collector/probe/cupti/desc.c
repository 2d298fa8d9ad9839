/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/internal.h"

#include "collector/probe/cupti/tables.h"
#include "collector/probe/rows.h"
#include "collector/arena/texts.h"
#include "collector/probe/nvtx/names.h"
#include "collector/store/writer.h"

#include <stdio.h>
#include <string.h>

static uint32_t name_of(struct writer *w, const char *text)
{
	return writer_name(w, text, strlen(text));
}

/* ---- names ---- */

static enum cupti_domain domain_of(const struct cupti_layout *p)
{
	return p->subkind == API_DRIVER ? CUPTI_DRIVER : CUPTI_RUNTIME;
}

bool cupti_desc_is_noise(const struct cupti_layout *p, const uint8_t *record)
{
	enum { NOT_READY = 600 }; /* result of a query, which is no wait */

	if (p->record->kind == KIND_API)
		return cupti_call_is_noise(domain_of(p), get_u32(record + 4));
	for (unsigned i = 0; p->record->kind == KIND_SYNC && i < p->const_count; i++)
		if (!strcmp(p->const_fields[i]->name, "result"))
			return get_u32(record + p->const_fields[i]->offset) == NOT_READY;
	return false;
}

/* Returns a name for records that have none, or NULL.  Unknown numbers get the first name of a
 * list. */
static const char *made_name(const struct cupti_layout *p, const uint8_t *record)
{
	enum { DECOMPRESS = 54, MEMORY_POOL = 50, JIT = 52 };
	/* Kineto's names for CUpti_ActivityOverheadKind. */
	static const char *const overheads[] = { "Unknown",
						 "Buffer Flush",
						 "Instrumentation",
						 "Resource",
						 "Runtime Triggered Module Loading",
						 "Lazy Function Loading",
						 "Command Buffer Full",
						 "Activity Buffer Request",
						 "UVM Activity Init" };
	enum { OVERHEADS = sizeof(overheads) / sizeof(overheads[0]) };
	static const char *const jits[] = { "JIT", "JIT cache load", "JIT cache store",
					    "JIT compilation" };
	static const char *const pools[] = { "memory pool", "memory pool created",
					     "memory pool destroyed", "memory pool trimmed" };
	uint32_t first = get_u32(record + 4), operation = get_u32(record + 8);

	switch (p->record->cupti) {
	case CUPTI_OVERHEAD:
		return first == 1 ? "Driver Compiler"
				  : overheads[first >> 16 < OVERHEADS ? first >> 16 : 0];
	case JIT:
		return jits[operation < 4 ? operation : 0];
	case MEMORY_POOL:
		return pools[first < 4 ? first : 0];
	case CUPTI_CUDA_EVENT:
		return "CUDA event";
	case DECOMPRESS:
		return "Memory decompression";
	default:
		return NULL;
	}
}

static uint32_t desc_name(struct writer *w, const struct cupti_layout *p, const uint8_t *record)
{
	if (p->record->kind == KIND_API) {
		uint32_t cbid = get_u32(record + 4);
		char made[48];
		size_t len;
		const char *name = cupti_call_name(domain_of(p), cbid, &len);

		if (name)
			return writer_name(w, name, len);
		snprintf(made, sizeof(made), "%s call %u",
			 p->subkind == API_DRIVER ? "driver" : "runtime", cbid);
		return name_of(w, made);
	}
	if (p->name_at)
		return probe_name(w, get_u32(record + p->name_at));
	const char *made = made_name(p, record);
	return made ? name_of(w, made) : 0;
}

/* ---- tracks ---- */

/* Streams of the open log, which may get their names later. */
enum { STREAMS = 1024 };
static struct {
	struct {
		uint64_t word;
		uint32_t track, name;
	} rows[STREAMS];
	unsigned count;
	uint32_t objects; /* number of named objects at the last check */
	uint64_t log;
} streams;

static void note_stream(struct writer *w, uint32_t track, const struct track *row)
{
	unsigned i;

	if (writer_log_changed(w, &streams.log))
		streams.count = 0;
	for (i = 0; i < streams.count && streams.rows[i].track != track; i++)
		;
	if (i == STREAMS || !track)
		return;
	streams.rows[i].word = cupti_ids_word(row->context, (uint32_t)row->id);
	streams.rows[i].track = track;
	streams.count += i == streams.count;
}

void cupti_desc_name_streams(struct writer *w)
{
	uint32_t objects = nvtx_object_count(), name;

	if (objects == streams.objects || streams.log != writer_log(w) || !writer_has_log(w))
		return;
	streams.objects = objects;
	for (unsigned i = 0; i < streams.count; i++) {
		name = nvtx_object_name(NVTX_STREAM_ID, streams.rows[i].word);
		if (name && name != streams.rows[i].name)
			writer_name_track(w, streams.rows[i].track, probe_name(w, name));
		streams.rows[i].name = name;
	}
}

static uint32_t stream_track(struct writer *w, uint32_t device, uint32_t context, uint32_t stream)
{
	struct track track = {
		.type = TRACK_STREAM, .device = device, .context = context, .id = stream
	};
	uint32_t id, name = nvtx_object_name(NVTX_STREAM_ID, cupti_ids_word(context, stream));

	track.name = probe_name(w, name);
	id = writer_track(w, &track);
	note_stream(w, id, &track);
	return id;
}

/* Before CUDA 12.4, overhead records have the low half of pthread_self() instead of a thread id. */
static bool has_thread_ids;

void cupti_desc_open(uint32_t api_version)
{
	has_thread_ids = api_version >= 22;
}

static uint32_t desc_track(struct writer *w, const struct cupti_layout *p, const uint8_t *record)
{
	uint32_t device = (uint32_t)read_number(record, &p->device);
	uint32_t context = (uint32_t)read_number(record, &p->context);
	struct track pool = { .type = TRACK_ALLOCATOR, .device = device, .context = NO_ID };

	if (p->record->cupti == CUPTI_OVERHEAD) {
		/*
		 * CUpti_ActivityObjectKind determines the object of the ids: a thread, or a device,
		 * context or stream.
		 */
		enum { PROCESS = 1, THREAD = 2, DEVICE = 3, CONTEXT = 4, STREAM = 5 };
		uint32_t kind = get_u32(record + 8), first = get_u32(record + 12);

		if (kind == THREAD && has_thread_ids)
			return probe_thread_track(w, get_u32(record + 16), NULL);
		if (kind == PROCESS || kind == THREAD || kind < DEVICE || kind > STREAM)
			return probe_thread_track(w, first, NULL);
		return stream_track(w, first, kind >= CONTEXT ? get_u32(record + 16) : NO_ID,
				    kind == STREAM ? get_u32(record + 20) : 0);
	}
	if (p->thread.bytes)
		return probe_thread_track(w, (uint32_t)read_number(record, &p->thread), NULL);
	if (p->stream.bytes && !p->device.bytes)
		device = cupti_tables_device(context);
	else if (p->stream.bytes)
		cupti_tables_note(device, context);
	if (p->stream.bytes)
		return stream_track(w, device, context, (uint32_t)read_number(record, &p->stream));
	if (p->context.bytes)
		pool.context = context;
	return writer_track(w, &pool);
}

/* ---- argument schemas ---- */

static uint8_t attr_type(const struct field *f)
{
	return f->type == FIELD_I32 || f->type == FIELD_I64 ? ATTR_I64 : ATTR_U64;
}

static struct attr const_attr(struct writer *w, const struct field *f, const uint8_t *record)
{
	struct cupti_number n = cupti_number_of(f);
	struct attr attr = { .key = name_of(w, f->name), .type = attr_type(f), .unit = f->unit };

	attr.bits = read_number(record, &n);
	if (f->type == FIELD_STR) {
		attr.type = ATTR_TEXT;
		attr.bits = probe_name(w, (uint32_t)attr.bits);
	}
	return attr;
}

uint32_t cupti_desc_make(struct writer *w, const struct cupti_layout *p, const uint8_t *record,
			 uint32_t *track)
{
	struct event_desc desc = { .kind = p->record->kind, .subkind = p->subkind };

	if (p->kind.bytes)
		desc.subkind = (uint8_t)read_number(record, &p->kind);
	desc.track = *track = desc_track(w, p, record);
	desc.name = desc_name(w, p, record);
	struct attr consts[LAYOUT_CONSTS], args[LAYOUT_ARGS];
	struct arg_schema schema = { .consts = consts, .args = args, .arg_count = p->arg_count };

	for (unsigned i = 0; i < p->const_count; i++) {
		struct attr attr = const_attr(w, p->const_fields[i], record);

		if (attr.type != ATTR_TEXT || attr.bits) /* omit missing texts */
			consts[schema.const_count++] = attr;
	}
	for (unsigned i = 0; i < p->arg_count; i++)
		args[i] = (struct attr){ .key = name_of(w, p->arg_fields[i]->name),
					 .type = attr_type(p->arg_fields[i]),
					 .unit = p->arg_fields[i]->unit };
	desc.schema = writer_schema(w, &schema);
	if (!desc.track || !desc.schema)
		return 0;
	return writer_desc(w, &desc);
}

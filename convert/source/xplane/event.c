/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/xplane/internal.h"

#include "schemas/model/call.h"
#include "schemas/model/records.h"

#include <stdio.h>

/* Times of a line that are at least this (2001) count from the epoch, not from the profile's begin.
 * */
#define ABSOLUTE_NS ((int64_t)1000000000000000000)

enum { PS = 1000 };

struct draft { /* state of an XEvent while it is converted */
	struct event event;
	struct xplane_place *place;
	struct track track;
	int64_t metadata_id, offset_ps, duration_ps;
	bool is_aggregate;                    /* it has a count instead of a time */
	struct xplane_value roles[XROLE_END]; /* key 0: missing, or used already */
	double value;                         /* value of a counter */
	bool has_value;
};

static bool role_u64(const struct xplane_import *x, const struct draft *d, enum xplane_role role,
		     uint64_t *out)
{
	return d->roles[role].key && xplane_value_u64(x, &d->roles[role], out);
}

/* ---- stats ---- */

static enum status take_value(struct xplane_import *x, struct draft *d,
			      const struct xplane_value *v, struct error *err)
{
	if (!v->key)
		return ST_OK;
	if (d->place->is_counters && !d->has_value && v->type != ATTR_TEXT) {
		if (v->type == ATTR_F64)
			memcpy(&d->value, &v->bits, sizeof(d->value));
		else
			d->value = v->type == ATTR_I64 ? (double)(int64_t)v->bits : (double)v->bits;
		d->has_value = true;
	} else if (v->role == XROLE_NONE || d->roles[v->role].key) {
		TRY(xplane_attr_value(x, v, err));
	} else {
		d->roles[v->role] = *v;
	}
	return ST_OK;
}

static enum status take_fields(struct xplane_import *x, struct draft *d, struct bytes event,
			       struct error *err)
{
	const struct xplane_event_name *name;
	struct xplane_value v;
	struct pb_field f;

	while (pb_next(&event, &f)) {
		if (f.wire == PB_VARINT) {
			if (f.number == XEVENT_METADATA_ID)
				d->metadata_id = (int64_t)f.u64;
			else if (f.number == XEVENT_OFFSET_PS)
				d->offset_ps = (int64_t)f.u64;
			else if (f.number == XEVENT_DURATION_PS)
				d->duration_ps = (int64_t)f.u64;
			else if (f.number == XEVENT_OCCURRENCES)
				d->is_aggregate = true;
		} else if (f.number == XEVENT_STATS && f.wire == PB_BYTES) {
			TRY(xplane_value_take(x, f.bytes, &v, err));
			TRY(take_value(x, d, &v, err));
		}
	}
	x->damaged += event.is_truncated;
	name = xplane_event_name(x, d->metadata_id);
	if (!name) {
		x->damaged++;
		return ST_OK;
	}
	d->event.name = name->name;
	for (uint32_t i = 0; i < name->count; i++) {
		memcpy(&v, x->values.data + (name->first + i) * sizeof(v), sizeof(v));
		TRY(take_value(x, d, &v, err));
	}
	return ST_OK;
}

/* ---- times ---- */

/* Rounds down, also for negative numbers. */
static int64_t ns_of(int64_t ps)
{
	return ps / PS - (ps % PS < 0);
}

/* Sets the event's times; *usable is false if it has none.  Parts of nanoseconds become attributes.
 * */
static enum status take_times(struct xplane_import *x, struct draft *d, bool *usable,
			      struct error *err)
{
	int64_t line_ns = d->place->timestamp_ns, begin_ns, end_ps;

	*usable = false;
	if (d->is_aggregate || line_ns > IMPORT_TIME_MOST || line_ns < -IMPORT_TIME_MOST)
		return ST_OK;
	if (d->duration_ps < 0) {
		d->duration_ps = 0;
		x->damaged++;
	}
	if (__builtin_add_overflow(d->offset_ps, d->duration_ps, &end_ps))
		return ST_OK;
	x->is_absolute |= line_ns >= ABSOLUTE_NS;
	if (line_ns < ABSOLUTE_NS)
		line_ns += x->base_ns;
	begin_ns = line_ns + ns_of(d->offset_ps);
	if (line_ns + ns_of(end_ps) < 0)
		return ST_OK;
	if (begin_ns < 0) {
		begin_ns = 0;
		x->damaged++;
	}
	*usable = true;
	d->event.begin_ns = (uint64_t)begin_ns;
	d->event.end_ns = (uint64_t)(line_ns + ns_of(end_ps));
	if (d->offset_ps % PS == 0 && d->duration_ps % PS == 0)
		return ST_OK;
	TRY(xplane_attr(x, ".offset_ps", ATTR_U64,
			(uint64_t)(d->offset_ps - ns_of(d->offset_ps) * PS), true, err));
	return xplane_attr(x, ".duration_ps", ATTR_U64, (uint64_t)(d->duration_ps % PS), true, err);
}

/* ---- classification ---- */

static bool begins(const char *name, const char *with)
{
	return strncasecmp(name, with, strlen(with)) == 0;
}

/* CUPTI's copyKind, by the names that XLA's tracers for NVIDIA and AMD and Tacho use. */
static const struct copy_name {
	const char *begin;
	uint8_t kind;
} copy_names[] = {
	{ "MemcpyDToD (P2P)", 10 }, { "MemcpyP2P", 10 },         { "CopyPeer", 10 },
	{ "MemcpyHToD", 1 },        { "MemcpyH2D", 1 },          { "MemcpyDToH", 2 },
	{ "MemcpyD2H", 2 },         { "MemcpyDToD", 8 },         { "MemcpyD2D", 8 },
	{ "MemcpyHToH", 9 },        { "MemcpyH2H", 9 },          { "CopyHostToDevice", 1 },
	{ "CopyDeviceToHost", 2 },  { "CopyDeviceToDevice", 8 }, { "Memcpy", 0 },
};

static bool classify_copy(struct draft *d, const char *name)
{
	bool is_copy = d->roles[XROLE_MEMCPY_DETAILS].key;
	size_t i = 0;

	while (i < sizeof(copy_names) / sizeof(copy_names[0]) && !begins(name, copy_names[i].begin))
		i++;
	if (i < sizeof(copy_names) / sizeof(copy_names[0])) {
		d->event.subkind = copy_names[i].kind;
		is_copy = true;
	}
	if (is_copy)
		d->event.kind = KIND_MEMCPY;
	return is_copy;
}

static void classify_device(struct draft *d, const char *name)
{
	d->event.kind = KIND_KERNEL;
	if (d->place->is_derived) {
		d->event.kind = KIND_RANGE;
		d->event.subkind = RANGE_GPU_ANNOTATION;
		return;
	}
	if (d->place->is_tpu || d->roles[XROLE_KERNEL_DETAILS].key || classify_copy(d, name))
		return;
	if (d->roles[XROLE_MEMSET_DETAILS].key || begins(name, "Memset"))
		d->event.kind = KIND_MEMSET;
	else if (d->roles[XROLE_GRAPH_EXEC].key || begins(name, "CudaGraphExec"))
		d->event.kind = KIND_GRAPH;
	else if (!d->roles[XROLE_CORRELATION].key) { /* derived, such as a module's span */
		d->event.kind = KIND_RANGE;
		d->event.subkind = RANGE_GPU_ANNOTATION;
	}
}

/* Classifies a memory event; an allocator named "GPU_6_bfc" belongs to device 6. */
static void classify_memory(struct xplane_import *x, struct draft *d, bool is_free)
{
	uint64_t device = NO_ID;
	const struct xplane_value *v = &d->roles[XROLE_ALLOCATOR];
	const char *text =
		v->type == ATTR_TEXT ? trace_text(x->to.trace, (uint32_t)v->bits, NULL) : "";
	unsigned number;

	d->event.kind = is_free ? KIND_FREE : KIND_ALLOC;
	if (sscanf(text, "GPU_%9u", &number) == 1 || sscanf(text, "gpu%9u", &number) == 1)
		device = number;
	else if (!role_u64(x, d, XROLE_ORDINAL, &device) || device > NO_ID)
		device = NO_ID;
	d->track.type = TRACK_ALLOCATOR;
	d->track.device = (uint32_t)device;
	d->track.name = 0;
	d->track.context = device != NO_ID; /* Kineto's device type: 1 is CUDA, 0 the host */
}

/* Restores the class of an event that Tacho wrote.  Returns false if the event was not written by
 * Tacho. */
static bool classify_own(struct xplane_import *x, struct draft *d)
{
	const struct xplane_value *c = &d->roles[XROLE_CLASS], *k = &d->roles[XROLE_KIND];
	uint32_t class_name = c->key && c->type == ATTR_TEXT ? (uint32_t)c->bits : 0;
	uint32_t kind_name = k->key && k->type == ATTR_TEXT ? (uint32_t)k->bits : 0;
	const char *class = trace_text(x->to.trace, class_name, NULL);
	const char *word = trace_text(x->to.trace, kind_name, NULL);
	unsigned kind = kind_of_word(word, strlen(word));

	if (kind == KIND_SYNC || kind == KIND_MARK || kind == KIND_JIT || kind == KIND_OVERHEAD) {
		d->event.kind = (uint8_t)kind;
		d->roles[XROLE_KIND].key = 0;
		return true;
	}
	for (unsigned i = RANGE_OTHER; class[0] && i <= RANGE_GC; i++) {
		if (strcmp(class, range_class_word(i)) != 0)
			continue;
		d->event.subkind = (uint8_t)i;
		d->roles[XROLE_CLASS].key = 0;
		return true;
	}
	return false;
}

static bool is_api_name(const char *name)
{
	return begins(name, "cu") || begins(name, "hip") || begins(name, "hsa");
}

/* Returns the details of a call's work, or NULL if the event has none. */
static const struct xplane_value *call_details(const struct draft *d)
{
	static const uint8_t roles[] = { XROLE_KERNEL_DETAILS, XROLE_MEMCPY_DETAILS,
					 XROLE_MEMSET_DETAILS };

	for (size_t i = 0; i < sizeof(roles); i++)
		if (d->roles[roles[i]].key)
			return &d->roles[roles[i]];
	return NULL;
}

/* Returns the subkind of a call.  TensorFlow names a call after its work: a kernel, or "MemcpyH2D".
 * */
static uint8_t class_of_call(const struct xplane_import *x, const struct draft *d, const char *name)
{
	const struct xplane_value *v = d->place->is_host ? call_details(d) : NULL;

	if (v && !call_launches(name, strlen(name)))
		return API_OF_KERNEL; /* such as cutlass_... */
	if (is_api_name(name))
		return begins(name, "cu") && !begins(name, "cuda") ? API_DRIVER : API_RUNTIME;
	return v && !d->roles[XROLE_KERNEL_DETAILS].key && v->type == ATTR_TEXT &&
			       strstr(trace_text(x->to.trace, (uint32_t)v->bits, NULL), "async:1")
		       ? API_OF_ASYNC_COPY
		       : API_RUNTIME;
}

static void classify_host(struct xplane_import *x, struct draft *d, const char *name)
{
	uint64_t id;

	d->event.kind = KIND_RANGE;
	if (classify_own(x, d))
		return;
	if (strcmp(name, "MemoryAllocation") == 0 || strcmp(name, "MemoryDeallocation") == 0) {
		classify_memory(x, d, name[6] == 'D');
		return;
	}
	if (d->roles[XROLE_ROOT].key &&
	    (role_u64(x, d, XROLE_STEP_NUM, &id) || role_u64(x, d, XROLE_ITER_NUM, &id))) {
		d->event.kind = KIND_STEP;
		return;
	}
	if (role_u64(x, d, XROLE_CORRELATION, &id) &&
	    (is_api_name(name) ||
	     (d->place->is_host && (call_details(d) || call_launches(name, strlen(name)))))) {
		d->event.kind = KIND_API;
		d->event.subkind = class_of_call(x, d, name);
		return;
	}
	if (name[0] == '$')
		d->event.subkind = RANGE_PYTHON;
	else if (strncmp(name, "NVTX:", 5) == 0)
		d->event.subkind = RANGE_NVTX;
	else /* frameworks name their own functions in C++ syntax */
		d->event.subkind = strstr(name, "::") ? RANGE_OP : RANGE_ANNOTATION;
}

/* ---- stats that become members ---- */

static void use(struct xplane_import *x, struct draft *d, enum xplane_role role, uint64_t *member)
{
	if (!d->roles[role].key)
		return;
	if (role_u64(x, d, role, member))
		d->roles[role].key = 0;
	else
		x->damaged++; /* wrong type: it remains an attribute */
}

static enum status use_details(struct xplane_import *x, struct draft *d, struct error *err)
{
	static const uint8_t roles[KIND_END] = { [KIND_KERNEL] = XROLE_KERNEL_DETAILS,
						 [KIND_MEMCPY] = XROLE_MEMCPY_DETAILS,
						 [KIND_MEMSET] = XROLE_MEMSET_DETAILS };
	struct xplane_value *v = &d->roles[roles[d->event.kind]];
	bool taken;

	if (!v->key)
		return ST_OK;
	TRY(xplane_attr_details(x, v, &d->event, &taken, err));
	if (taken)
		v->key = 0;
	x->damaged += v->key && v->type != ATTR_TEXT;
	return ST_OK;
}

static enum status take_members(struct xplane_import *x, struct draft *d, struct error *err)
{
	struct event *e = &d->event;
	uint64_t total;

	TRY(use_details(x, d, err));
	switch (e->kind) {
	case KIND_STEP:
		d->roles[XROLE_ROOT].key = 0;
		use(x, d, d->roles[XROLE_STEP_NUM].key ? XROLE_STEP_NUM : XROLE_ITER_NUM,
		    &e->number);
		break;
	case KIND_ALLOC:
	case KIND_FREE:
		use(x, d, XROLE_ADDRESS, &e->address);
		use(x, d, XROLE_TAKEN, &e->bytes);
		if (role_u64(x, d, XROLE_ALLOCATED, &total)) {
			d->roles[XROLE_ALLOCATED].key = 0;
			TRY(xplane_attr(x, "total_allocated", ATTR_I64, total, true, err));
		}
		break;
	}
	if (event_is_gpu_work(e) || e->kind == KIND_API)
		use(x, d, XROLE_CORRELATION, &e->correlation);
	for (size_t i = 1; i < XROLE_END; i++)
		if (d->roles[i].key)
			TRY(xplane_attr_value(x, &d->roles[i], err));
	return ST_OK;
}

enum status xplane_import_event(struct xplane_import *x, struct bytes event,
				struct xplane_place *place, struct error *err)
{
	struct draft d = { .place = place, .track = place->track };
	const char *name;
	bool usable, own;

	import_begin(&x->to);
	TRY(take_fields(x, &d, event, err));
	TRY(take_times(x, &d, &usable, err));
	if (!usable || (place->is_counters && !d.has_value)) {
		import_lose(&x->to, LOSS_NO_TIME, 1);
		return ST_OK;
	}
	name = trace_text(x->to.trace, d.event.name, NULL);
	if (place->is_counters) {
		d.event.kind = KIND_COUNTER;
		d.event.value = d.value;
		d.track = (struct track){ .type = TRACK_COUNTER,
					  .process = x->to.process,
					  .name = d.event.name,
					  .device = place->device,
					  .context = NO_ID };
	} else if (place->is_gpu) {
		classify_device(&d, name);
	} else {
		classify_host(x, &d, name);
	}
	TRY(take_members(x, &d, err));
	/* All events of a line whose track has the line's type are on one track. */
	own = d.track.type == place->track.type;
	d.event.track =
		own && place->track_id ? place->track_id : trace_track(x->to.trace, &d.track, err);
	if (!d.event.track)
		return err->status;
	if (own)
		place->track_id = d.event.track;
	TRY(import_schema(&x->to, &d.event, err));
	return import_put(&x->to, &d.event, err);
}

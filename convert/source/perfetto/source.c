/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Perfetto's traces of any writer: TrackEvents, GPU stages and GPU counters.  Files of
 * tacho-convert are restored event by event.  Packets of other data sources are counted by their
 * names.
 */
#include "convert/input/input.h"
#include "convert/source/perfetto/event_fast.h"
#include "schemas/base/plain.h"
#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>

enum { STATE_CLEARED = 1, STATE_NEEDED = 2, GPU_MEMORY = 71 };
enum {
	INTERNED_MOST = 2 << 20,
	SEQUENCES_MOST = 1 << 16,
	LIST_BYTES = 1 << 20,
	VALUES_BYTES = 32 << 20,
	UNREAD_BYTES = 16 * 1024,
	PACKETS_LOOKED = 16, /* packets that the bid examines */
};

/* The fields of TracePacket that are read. */
static const uint8_t parts[] = {
	[6] = PFTRACE_SNAPSHOT, [8] = PFTRACE_TIME,         [10] = PFTRACE_SEQUENCE,
	[11] = PFTRACE_EVENT,   [12] = PFTRACE_INTERNED,    [13] = PFTRACE_FLAGS,
	[41] = PFTRACE_CLEARED, [42] = PFTRACE_DROPPED,     [44] = PFTRACE_THREAD_OF,
	[50] = PFTRACE_PACKED,  [52] = PFTRACE_GPU_COUNTER, [53] = PFTRACE_GPU_STAGE,
	[58] = PFTRACE_CLOCK,   [59] = PFTRACE_DEFAULTS,    [60] = PFTRACE_TRACK,
	[98] = PFTRACE_MACHINE, [126] = PFTRACE_ATTRIBUTES, [128] = PFTRACE_GPU_INFO,
};

/* Other messages by field and name; a name that begins with '-' describes the recording and
 * contains no events. */
static const char packet_names[] =
	" 1:ftrace_events 2:process_tree 4:inode_file_map 5:chrome_events 7:sys_stats"
	" 9:process_stats 33:-trace_config 34:-ftrace_stats 35:-trace_stats"
	" 36:-synchronization_marker 37:profile_packet 39:android_log"
	" 43:-process_descriptor 45:-system_info 46:-trigger 51:-chrome_metadata"
	" 54:streaming_profile_packet 61:module_symbols 62:vulkan_memory_event"
	" 63:gpu_log 65:vulkan_api_event 66:perf_sample 67:-cpu_info 68:smaps_packet"
	" 69:-service_event 71:gpu_mem_total_event 72:-extension_descriptor"
	" 78:-ui_state 88:network_packet 89:-trace_uuid"
	" 90:-track_event_range_of_interest 124:-trace_provenance"
	" 129:generic_gpu_frequency_event 133:zstd_compressed_packets 135:stack_sample ";

static const char *name_of_packet(uint32_t field, int *len)
{
	const char *name;
	char key[16];

	snprintf(key, sizeof(key), " %u:", field);
	name = strstr(packet_names, key);
	name = name ? name + strlen(key) : "";
	*len = (int)strcspn(name, " ");
	return name;
}

/* Splits a packet into its parts.  Returns false if it is damaged. */
static bool split(struct bytes b, struct pftrace_packet *p)
{
	struct pb_field f;

	p->has = p->unread = 0;
	memset(p->numbers, 0, sizeof(p->numbers));
	while (pb_next_padded(&b, &f)) {
		unsigned part = f.number < sizeof(parts) ? parts[f.number] : 0;

		if (f.wire == PB_VARINT && part && part < PFTRACE_NUMBERS) {
			p->numbers[part] = f.u64;
			p->has |= 1u << part;
		} else if (f.wire == PB_BYTES && part >= PFTRACE_NUMBERS) {
			p->messages[part - PFTRACE_NUMBERS] = f.bytes;
			p->has |= 1u << part;
		} else if (f.wire == PB_BYTES && !part) {
			p->unread = f.number;
		}
	}
	return !b.is_truncated;
}

/* ---- the bid ---- */

/* Returns whether TracePacket can have this field. */
static bool is_plausible(const struct pb_field *f)
{
	static const uint8_t numbers[] = { 3, 8, 10, 13, 41, 42, 58, 79, 87, 98 };
	bool is_number = f->number < 256 && memchr(numbers, (int)f->number, sizeof(numbers));

	return f->number <= 1000 && (f->wire == PB_VARINT) == is_number;
}

static int pftrace_bid(const uint8_t *head, size_t len)
{
	struct bytes b = bytes_init(head, len);
	bool is_packet = false;

	for (unsigned i = 0; i < PACKETS_LOOKED && bytes_left(&b); i++) {
		uint64_t key = take_varint(&b), size = take_varint(&b), left = bytes_left(&b);
		struct bytes packet = take_part(&b, size < left ? size : left);
		struct pb_field f;

		if (key != (1 << 3 | PB_BYTES) || packet.is_truncated)
			return 0;
		while (pb_next(&packet, &f)) {
			if (!is_plausible(&f))
				return 0;
			/* field 1, for events of the kernel, is a number in an XPlane */
			is_packet |= f.number == 1 || f.number == 8 || f.number == 10 ||
				     f.number == 50 || f.number == 60;
		}
		if (packet.is_truncated && size <= left)
			return 0;
	}
	return is_packet ? 90 : 0;
}

/* ---- the first pass: everything that events refer to ---- */

static bool is_text(struct bytes text, const char *word)
{
	return bytes_left(&text) == strlen(word) && !memcmp(text.at, word, strlen(word));
}

/* Reads the attributes that Tacho writes about the file. */
static void take_attributes(struct pftrace_reader *r, struct bytes b)
{
	struct pb_field f, m;

	while (pb_next_padded(&b, &f)) {
		struct bytes key = bytes_init(NULL, 0);
		uint64_t number = 0;

		while (pb_next_padded(&f.bytes, &m)) {
			key = m.number == 1 ? m.bytes : key;
			number = m.number == 2 ? m.u64 : number;
		}
		r->is_own |= is_text(key, OWN_KEY);
		r->is_synthetic |= is_text(key, "tacho.synthetic") && number;
		r->is_cut |= is_text(key, "tacho.complete") && !number;
		if (is_text(key, "tacho.world_size"))
			r->world_size = (uint32_t)number;
	}
}

static enum status take_gpus(struct pftrace_reader *r, struct bytes b, struct error *err)
{
	struct pb_field f, m;

	for (unsigned gpu = 0; gpu < PFTRACE_GPUS && pb_next_padded(&b, &f); gpu++)
		while (pb_next_padded(&f.bytes, &m)) /* its name, or better the model */
			if (m.number == 3 || (m.number == 1 && !r->gpu_names[gpu]))
				TRY(pftrace_text(r, m.bytes, &r->gpu_names[gpu], err));
	return ST_OK;
}

static enum status take_referred(struct pftrace_reader *r, const struct pftrace_packet *p,
				 struct error *err)
{
	uint32_t machine = (uint32_t)p->numbers[PFTRACE_MACHINE];

	if (PFTRACE_HAS(p, SNAPSHOT))
		TRY(pftrace_clocks_add(r, machine, PFTRACE_MESSAGE(p, SNAPSHOT), err));
	if (PFTRACE_HAS(p, ATTRIBUTES))
		take_attributes(r, PFTRACE_MESSAGE(p, ATTRIBUTES));
	if (PFTRACE_HAS(p, GPU_INFO))
		TRY(take_gpus(r, PFTRACE_MESSAGE(p, GPU_INFO), err));
	if (PFTRACE_HAS(p, TRACK))
		TRY(pftrace_describe(r, machine, PFTRACE_MESSAGE(p, TRACK), err));
	if (PFTRACE_HAS(p, THREAD_OF))
		TRY(pftrace_describe_sequence(r, machine, p->numbers[PFTRACE_SEQUENCE],
					      PFTRACE_MESSAGE(p, THREAD_OF), err));
	return ST_OK;
}

static enum status take_first(struct pftrace_reader *r, const struct bytes *packet,
			      struct error *err)
{
	struct pftrace_packet p;

	if (!plain_ways && pftrace_is_event_alone(r, packet))
		return ST_OK;
	if (!split(*packet, &p)) /* the second pass counts it */
		return ST_OK;
	if (PFTRACE_HAS(&p, PACKED))
		TRY(pftrace_unpack(r, PFTRACE_MESSAGE(&p, PACKED), err));
	TRY(take_referred(r, &p, err));
	/* In our own files everything precedes the events that need it, so one pass is enough. */
	return r->is_own ? ST_END : ST_OK;
}

/* ---- the second pass: events ---- */

static enum status find_sequence(struct pftrace_reader *r, uint64_t id,
				 struct pftrace_sequence **out, struct error *err)
{
	bool is_new;
	uint64_t *at;

	*out = pftrace_near_sequence(r, id);
	if (*out)
		return ST_OK;
	at = map_put(&r->sequence_ids, id, &is_new);
	if (!at)
		return fail_memory(err);
	if (is_new) {
		if (r->sequence_count == SEQUENCES_MOST)
			return fail(err, ST_CEILING, NOWHERE, "more than %d packet sequences",
				    SEQUENCES_MOST);
		TRY(vec_reserve(&r->sequences, &r->sequence_cap, r->sequence_count + 1, err));
		*at = r->sequence_count;
		r->sequences[r->sequence_count++] =
			(struct pftrace_sequence){ .id = id, .generation = 1, .event_ns = -1 };
	}
	r->near_sequences[id % PFTRACE_NEAR] = (uint32_t)*at;
	*out = &r->sequences[*at];
	return ST_OK;
}

enum status pftrace_text(struct pftrace_reader *r, struct bytes text, uint32_t *name,
			 struct error *err)
{
	if (text.at == text.end)
		return ST_OK;
	return import_name(&r->to, (const char *)text.at, bytes_left(&text), name, err);
}

enum status pftrace_lose(struct pftrace_reader *r, enum loss why)
{
	import_lose(&r->to, why, 1);
	return ST_OK;
}

static enum status take_row(struct pftrace_reader *r, struct pftrace_sequence *q, uint32_t field,
			    struct bytes row, struct error *err)
{
	static const uint16_t fields[] = {
		[PFTRACE_CATEGORY] = 1,    [PFTRACE_NAME] = 2,     [PFTRACE_KEY] = 3,
		[PFTRACE_TEXT] = 29,       [PFTRACE_SPEC] = 24,    [PFTRACE_KERNEL] = 1000,
		[PFTRACE_ARG_NAME] = 1001, [PFTRACE_CONTEXT] = 23, [PFTRACE_COUNTERS] = 47,
	};
	uint64_t iid = 0, number = 0, *at;
	struct bytes text = bytes_init(NULL, 0);
	unsigned space = 0;
	struct pb_field f;
	uint32_t name = 0;
	bool is_new;

	while (space <= PFTRACE_COUNTERS && fields[space] != field)
		space++;
	while (space <= PFTRACE_COUNTERS && pb_next_padded(&row, &f)) {
		if (f.number == 1)
			iid = f.u64;
		else if (f.wire == PB_VARINT && f.number == (space == PFTRACE_COUNTERS ? 3 : 2))
			number = f.u64; /* the pid of a context, the GPU of counters */
		else if (f.number == 2 ||
			 (f.number == 3 && space == PFTRACE_KERNEL && bytes_left(&f.bytes)))
			text = f.bytes; /* for a kernel, the demangled name */
	}
	if (!iid)
		return ST_OK;
	if (space == PFTRACE_COUNTERS)
		return pftrace_describe_counters(r, q, iid, text, number, err);
	if (r->interned == INTERNED_MOST)
		return fail(err, ST_CEILING, NOWHERE, "more than %d interned texts", INTERNED_MOST);
	TRY(pftrace_text(r, text, &name, err));
	at = map_put(&q->names[space], iid, &is_new);
	if (!at)
		return fail_memory(err);
	r->interned += is_new;
	number = space == PFTRACE_CONTEXT ? number : name;
	/* An event whose name or category was unknown gets no template; other texts may have been
	 * missing. */
	q->generation +=
		is_new ? space != PFTRACE_NAME && space != PFTRACE_CATEGORY : *at != number;
	*at = number;
	return ST_OK;
}

static void take_defaults(struct pftrace_sequence *q, struct bytes b)
{
	struct pb_field f, m;

	while (pb_next_padded(&b, &f)) {
		if (f.number == 58)
			q->clock = (uint32_t)f.u64;
		while (f.number == 11 && pb_next_padded(&f.bytes, &m)) {
			if (m.number == 11)
				q->track = m.u64;
			else if ((m.number == 31 || m.number == 45) &&
				 q->counter_count < PFTRACE_DEFAULT_COUNTERS)
				q->counters[q->counter_count++] =
					(struct pftrace_ref){ PFTRACE_SAMPLE_TRACK, m.number == 45,
							      m.u64, 0 };
		}
	}
}

/* Updates the state of the sequence to which later packets refer. */
static enum status take_state(struct pftrace_reader *r, struct pftrace_sequence *q,
			      const struct pftrace_packet *p, struct error *err)
{
	struct bytes b;
	struct pb_field f;

	if (p->numbers[PFTRACE_DROPPED]) {
		q->has_state = false;
		q->generation++;
		q->event_ns = -1;
	}
	if (p->numbers[PFTRACE_FLAGS] & STATE_CLEARED || p->numbers[PFTRACE_CLEARED]) {
		for (unsigned i = 0; i < PFTRACE_SPACES; i++) {
			r->interned -= q->names[i].count;
			map_clear(&q->names[i]);
		}
		map_clear(&q->sums);
		q->track = q->counter_count = q->clock = 0;
		q->generation++;
		q->has_state = true;
	}
	if (PFTRACE_HAS(p, THREAD_OF))
		pftrace_old_begin(q, PFTRACE_MESSAGE(p, THREAD_OF));
	if (PFTRACE_HAS(p, INTERNED)) {
		for (b = PFTRACE_MESSAGE(p, INTERNED); pb_next_padded(&b, &f);)
			TRY(take_row(r, q, f.number, f.bytes, err));
		r->damaged += b.is_truncated;
	}
	if (PFTRACE_HAS(p, DEFAULTS)) {
		q->generation++;
		q->track = q->counter_count = q->clock = 0;
		take_defaults(q, PFTRACE_MESSAGE(p, DEFAULTS));
	}
	if (!PFTRACE_HAS(p, SNAPSHOT))
		return ST_OK;
	return pftrace_clocks_set(r, q, (uint32_t)p->numbers[PFTRACE_MACHINE],
				  PFTRACE_MESSAGE(p, SNAPSHOT), err);
}

static void leave_packet(struct pftrace_reader *r, uint32_t field)
{
	int len;

	if (name_of_packet(field, &len)[0] != '-' && !(r->is_own && field == GPU_MEMORY))
		r->unread[field < PFTRACE_FIELDS ? field : 0]++;
}

enum status pftrace_take_any(struct pftrace_reader *r, const struct bytes *packet,
			     struct error *err)
{
	struct pftrace_packet p;
	struct pftrace_sequence *q = NULL;

	if (!split(*packet, &p)) {
		r->damaged++;
		return ST_OK;
	}
	if (PFTRACE_HAS(&p, PACKED))
		TRY(pftrace_unpack(r, PFTRACE_MESSAGE(&p, PACKED), err));
	if (r->is_own && !PFTRACE_HAS(&p, EVENT))
		TRY(take_referred(r, &p, err));
	TRY(find_sequence(r, p.numbers[PFTRACE_SEQUENCE], &q, err));
	if (p.numbers[PFTRACE_FLAGS] & STATE_CLEARED || p.numbers[PFTRACE_DROPPED] ||
	    p.has & (1u << PFTRACE_CLEARED | 1u << PFTRACE_INTERNED | 1u << PFTRACE_DEFAULTS |
		     1u << PFTRACE_SNAPSHOT | 1u << PFTRACE_THREAD_OF))
		TRY(take_state(r, q, &p, err));
	if (p.unread)
		leave_packet(r, p.unread);
	if (!(p.has & (1u << PFTRACE_EVENT | 1u << PFTRACE_GPU_STAGE | 1u << PFTRACE_GPU_COUNTER)))
		return ST_OK;
	if (p.numbers[PFTRACE_FLAGS] & STATE_NEEDED && !q->has_state) {
		r->damaged++; /* its ids cannot be resolved */
		return ST_OK;
	}
	if (PFTRACE_HAS(&p, EVENT))
		TRY(pftrace_take_event(r, q, &p, err));
	if (PFTRACE_HAS(&p, GPU_STAGE))
		TRY(pftrace_take_stage(r, q, &p, err));
	if (PFTRACE_HAS(&p, GPU_COUNTER))
		TRY(pftrace_take_counter(r, q, &p, err));
	return ST_OK;
}

/* ---- the end ---- */

/* Adds what was not read as an attribute of each process. */
static enum status name_unread(struct pftrace_reader *r, struct error *err)
{
	enum status status = ST_OK;
	uint32_t schema, process;
	bool has_process = false;
	struct buf text;
	int len;

	buf_init(&text, UNREAD_BYTES);
	for (uint32_t i = 0; i < PFTRACE_FIELDS; i++) {
		const char *name;

		if (!r->unread[i])
			continue;
		name = name_of_packet(i, &len);
		import_lose(&r->to, LOSS_UNREAD, r->unread[i]);
		buf_put_text(&text, text.len ? ", " : "");
		if (len)
			buf_put(&text, name, (size_t)len);
		else
			buf_putf(&text, i ? "field %u" : "other", i);
		buf_putf(&text, " (%llu)", (unsigned long long)r->unread[i]);
	}
	for (size_t i = 0; i < r->process_count; i++)
		has_process |= r->processes[i].id != 0;
	if (!has_process) /* create one to hold the attribute */
		status = pftrace_process_of_gpu(r, &process, err);
	import_begin(&r->to);
	if (text.len && status == ST_OK)
		status = import_text(&r->to, "packets_not_read", buf_text(&text), text.len, err);
	buf_release(&text);
	TRY(status);
	TRY(import_schema_id(&r->to, &schema, err));
	for (size_t i = 0; i < r->process_count && schema; i++) {
		struct process p = *trace_get_process(r->to.trace, r->processes[i].id);

		p.schema = schema;
		if (r->processes[i].id)
			trace_set_process(r->to.trace, r->processes[i].id, &p);
	}
	return ST_OK;
}

static enum status read_all(struct pftrace_reader *r, struct input *in, struct error *err)
{
	const char *path = input_path(in), *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	struct error first = { 0 };

	TRY(import_name(&r->to, name, strlen(name), &r->host, err));
	TRY(kineto_args_init(&r->args, &r->to, err));
	if (!pftrace_templates_new(r) || !pftrace_sames_new(r))
		return fail_memory(err);
	r->take = take_first;
	r->run = plain_ways ? NULL : pftrace_pass_alone;
	TRY(pftrace_packets(r, in, &first, err));
	pftrace_clocks_to_epoch(r);
	r->is_unpacking = false;
	r->damaged = 0;
	r->take = plain_ways ? pftrace_take_any : pftrace_take_fast;
	r->run = plain_ways ? NULL : pftrace_take_sames;
	TRY(pftrace_packets(r, in, &r->s->fault, err));
	TRY(pftrace_end_events(r, err));
	if (r->damaged)
		import_lose(&r->to, LOSS_DAMAGED, r->damaged);
	TRY(name_unread(r, err));
	spool_source_clock(r->s, 0, r->to.first_ns);
	trace_provenance(r->to.trace)->is_synthetic = r->is_synthetic;
	TRY(import_provenance(&r->to, "Perfetto trace", &r->s->fault, err));
	trace_provenance(r->to.trace)->is_whole &= !r->is_cut;
	return ST_OK;
}

static void release(struct pftrace_reader *r)
{
	import_release(&r->to);
	kineto_args_release(&r->args);
	buf_release(&r->element.args);
	buf_release(&r->values);
	for (size_t i = 0; i < r->sequence_count; i++) {
		for (unsigned k = 0; k < PFTRACE_SPACES; k++)
			map_release(&r->sequences[i].names[k]);
		map_release(&r->sequences[i].sums);
		free(r->sequences[i].clocks);
	}
	free(r->sequences);
	pftrace_templates_free(r);
	pftrace_sames_free(r);
	free(r->tracks);
	free(r->processes);
	free(r->readings);
	free(r->opens);
	map_release(&r->sequence_ids);
	map_release(&r->sequence_threads);
	map_release(&r->track_ids);
	map_release(&r->process_ids);
	map_release(&r->flows);
	map_release(&r->classes);
	spool_close(r->pairs);
	free(r);
}

static enum status pftrace_read(struct spool_source *s, struct input *in, const struct budget *left,
				struct error *err)
{
	struct pftrace_reader *r = calloc(1, sizeof(*r));
	enum status status;

	if (!r)
		return fail_memory(err);
	r->s = s;
	r->budget = *left;
	import_init(&r->to, s->trace, s->spool, 0);
	buf_init(&r->element.args, LIST_BYTES);
	buf_init(&r->values, VALUES_BYTES);
	status = input_random(in, err);
	if (status == ST_OK)
		status = read_all(r, in, err);
	release(r);
	return status;
}

static const struct spool_reader reader = {
	.own_bytes = 8 << 20,
	.spools = 2, /* events, and pairs of tracks without time order */
	.read = pftrace_read,
};

const struct source_type source_perfetto = {
	.name = "perfetto",
	.help = "Perfetto's protobuf (.pftrace): Cuspy, rocprofv3, Perfetto's SDK, our own",
	.bid = pftrace_bid,
	.spooled = &reader,
	.next = spool_source_next,
	.close = spool_source_close,
};

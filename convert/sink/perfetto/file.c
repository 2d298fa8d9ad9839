/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/perfetto/file.h"

#include "convert/sink/sink.h"
#include "schemas/model/call.h"
#include "schemas/base/hash.h"
#include "schemas/base/json_text.h"
#include "schemas/base/pb.h"

#include <stdlib.h>
#include <string.h>

enum {
	PACKET_CEILING = 256 << 20,
	STATE_CLEARED = 1,
	STATE_NEEDED = 2,
	CLOCK_REALTIME_ID = 1,
	CLOCK_TRACE_ID = 6,
	TRACE_PACKET_FIELD = 1,
	RANK_BITS = 17, /* of a track's number: rank and, above it, a hash */
	HASH_BITS = 16,
	SEQUENCES = 2, /* of a file */
	ATTRIBUTES = 8,
};

uint64_t perfetto_space_of(const struct trace *t, uint32_t process)
{
	const struct process *p = trace_get_process(t, process);
	uint64_t rank_mask = (UINT64_C(1) << RANK_BITS) - 1, hash, rank;
	const char *host;
	size_t len;

	host = trace_text(t, p->host, &len);
	hash = hash_word(hash_text(host, len), (uint64_t)p->pid << 32 | p->rank);
	rank = p->rank != NO_RANK && p->rank + 1 < rank_mask / 2 ? p->rank + 1
								 : hash >> 40 | (rank_mask / 2 + 1);
	return (hash & ((1u << HASH_BITS) - 1)) << RANK_BITS | (rank & rank_mask);
}

/* ---- packets ---- */

enum status perfetto_put_packet(struct perfetto_file *f, Perfetto__TracePacket *packet,
				struct error *err)
{
	size_t len;
	uint8_t *room;

	if (!packet->has_trusted_packet_sequence_id)
		packet->trusted_packet_sequence_id = f->sequence - 1;
	packet->has_trusted_packet_sequence_id = true;
	len = perfetto__trace_packet__get_packed_size(packet);
	buf_clear(&f->packet);
	pb_put_key(&f->packet, TRACE_PACKET_FIELD, PB_BYTES);
	buf_put_varint(&f->packet, len);
	room = buf_reserve(&f->packet, len);
	if (room)
		f->packet.len += perfetto__trace_packet__pack(packet, room);
	TRY(buf_status(&f->packet, err));
	return out_cursor_put(&f->cursor, f->packet.data, f->packet.len, err);
}

/* ---- texts ---- */

char *perfetto_utf8(struct perfetto_file *f, const char *text, size_t len)
{
	buf_clear(&f->text);
	f->repaired += sink_put_utf8(text, len, false, &f->text);
	buf_text(&f->text);
	return f->text.data ? (char *)f->text.data : "";
}

static enum status write_text(struct perfetto_file *f, enum perfetto_space space, uint64_t iid,
			      const char *text, size_t len, struct error *err)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedName name = PERFETTO__INTERNED_NAME__INIT, *names = &name;
	Perfetto__InternedString value = PERFETTO__INTERNED_STRING__INIT, *values = &value;
	Perfetto__InternedName ***of_space[] = { &data.event_categories, &data.event_names,
						 &data.debug_annotation_names };
	size_t *const counts[] = { &data.n_event_categories, &data.n_event_names,
				   &data.n_debug_annotation_names };
	char *valid = perfetto_utf8(f, text, len);

	TRY(buf_status(&f->text, err));
	name.has_iid = value.has_iid = value.has_str = true;
	name.iid = value.iid = iid;
	name.name = valid;
	value.str = (ProtobufCBinaryData){ f->text.len, (uint8_t *)valid };
	if (space == SPACE_TEXT) {
		data.debug_annotation_string_values = &values;
		data.n_debug_annotation_string_values = 1;
	} else {
		*of_space[space] = &names;
		*counts[space] = 1;
	}
	packet.interned_data = &data;
	packet.has_sequence_flags = packet.has_trusted_packet_sequence_id = true;
	packet.sequence_flags = STATE_NEEDED;
	packet.trusted_packet_sequence_id = f->sequence;
	return perfetto_put_packet(f, &packet, err);
}

enum status perfetto_write_name(struct perfetto_file *f, enum perfetto_space space, uint32_t name,
				struct error *err)
{
	size_t len;
	const char *text = trace_text(f->trace, name, &len);

	f->known[space][name / 64] |= UINT64_C(1) << (name % 64);
	if (space == SPACE_NAME && !strncmp(text, "cu", 2)) /* a range of the user's keeps it */
		len = call_name_length(text, len);
	return write_text(f, space, name, text, len, err);
}

enum status perfetto_word(struct perfetto_file *f, enum perfetto_space space, const char *text,
			  uint64_t *out, struct error *err)
{
	size_t i;

	for (i = 0; i < f->word_count; i++)
		if (f->words[i].space == space && strcmp(f->words[i].text, text) == 0)
			break;
	*out = (uint64_t)f->names + 1 + i;
	if (i < f->word_count)
		return ST_OK;
	if (i == PERFETTO_WORDS)
		return fail(err, ST_CEILING, NOWHERE,
			    "more words than a Perfetto file has room for");
	f->words[i].text = text;
	f->words[i].space = space;
	f->word_count++;
	return write_text(f, space, *out, text, strlen(text), err);
}

/* ---- the head ---- */

/* The trace's clock is that of the epoch; without one the viewer shows times since the start. */
static enum status put_clocks(struct perfetto_file *f, struct error *err)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__ClockSnapshot__Clock clocks[2] = { PERFETTO__CLOCK_SNAPSHOT__CLOCK__INIT,
						     PERFETTO__CLOCK_SNAPSHOT__CLOCK__INIT };
	Perfetto__ClockSnapshot__Clock *rows[2] = { &clocks[0], &clocks[1] };
	static const uint32_t ids[2] = { CLOCK_TRACE_ID, CLOCK_REALTIME_ID };

	for (size_t i = 0; i < 2; i++) {
		clocks[i].has_clock_id = clocks[i].has_timestamp = true;
		clocks[i].clock_id = ids[i];
		clocks[i].timestamp = UINT64_C(1000000000); /* any instant: they are the same */
	}
	snapshot.n_clocks = 2;
	snapshot.clocks = rows;
	packet.clock_snapshot = &snapshot;
	return perfetto_put_packet(f, &packet, err);
}

enum status perfetto_file_init(struct perfetto_file *f, struct trace *trace, struct out *out,
			       uint32_t process, struct error *err)
{
	uint64_t space = perfetto_space_of(trace, process ? process : 1);
	Perfetto__TracePacket begin = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TracePacket order = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackDescriptor root = PERFETTO__TRACK_DESCRIPTOR__INIT;
	size_t words;

	*f = (struct perfetto_file){ .trace = trace, .cursor = { .out = out } };
	f->names = trace_count(trace, TRACE_NAMES);
	f->sequence = (uint32_t)(space & ((1u << RANK_BITS) - 1)) * SEQUENCES + 1;
	words = (size_t)f->names / 64 + 1;
	buf_init(&f->packet, PACKET_CEILING);
	buf_init(&f->text, PACKET_CEILING);
	for (unsigned i = 0; i < SPACE_COUNT; i++) {
		f->known[i] = calloc(words, sizeof(uint64_t));
		if (!f->known[i])
			return fail_memory(err);
	}
	if (trace_provenance(trace)->epoch_known)
		TRY(put_clocks(f, err));
	begin.has_sequence_flags = begin.has_trusted_packet_sequence_id = true;
	begin.sequence_flags = STATE_CLEARED;
	begin.trusted_packet_sequence_id = f->sequence;
	TRY(perfetto_put_packet(f, &begin, err));
	/* Newer viewers then show processes and threads in the order of their ranks. */
	root.has_uuid = root.has_process_ordering = root.has_thread_ordering = true;
	root.process_ordering = root.thread_ordering = 1;
	order.track_descriptor = &root;
	return perfetto_put_packet(f, &order, err);
}

void perfetto_file_release(struct perfetto_file *f)
{
	for (unsigned i = 0; i < SPACE_COUNT; i++)
		free(f->known[i]);
	buf_release(&f->packet);
	buf_release(&f->text);
	*f = (struct perfetto_file){ 0 };
}

/* ---- what the file says of itself ---- */

struct attributes {
	Perfetto__TraceAttributes__Attribute rows[ATTRIBUTES], *at[ATTRIBUTES];
	size_t count;
};

static Perfetto__TraceAttributes__Attribute *add(struct attributes *a, const char *key)
{
	Perfetto__TraceAttributes__Attribute *row = &a->rows[a->count];

	perfetto__trace_attributes__attribute__init(row);
	row->key = (char *)key;
	a->at[a->count++] = row;
	return row;
}

static void add_number(struct attributes *a, const char *key, uint64_t number)
{
	Perfetto__TraceAttributes__Attribute *row = add(a, key);

	row->has_long_value = true;
	row->long_value = (int64_t)number;
}

enum status perfetto_put_attributes(struct perfetto_file *f, uint32_t process, uint64_t written,
				    struct error *err)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TraceAttributes all = PERFETTO__TRACE_ATTRIBUTES__INIT;
	const struct provenance *from = trace_provenance(f->trace);
	struct attributes a = { .count = 0 };
	size_t len;
	const char *format = trace_text(f->trace, from->format, &len);

	add(&a, "tacho.version")->string_value = TACHO_VERSION;
	add_number(&a, "tacho.events", written);
	add_number(&a, "tacho.lost", trace_lost_total(f->trace, process));
	add_number(&a, "tacho.repaired_texts", f->repaired);
	add_number(&a, "tacho.complete", from->is_whole);
	if (from->is_synthetic)
		add_number(&a, "tacho.synthetic", 1);
	if (len)
		add(&a, "tacho.source")->string_value = perfetto_utf8(f, format, len);
	all.attribute = a.at;
	all.n_attribute = a.count;
	packet.trace_attributes = &all;
	return perfetto_put_packet(f, &packet, err);
}

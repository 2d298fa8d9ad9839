/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/perfetto_reading.h"

#include "convert/sink/sink.h"
#include "tests/unit/unit.h"

#include "schemas/base/pb.h"

#include <string.h>

/* ---- reading ---- */

/* Nothing is in a message but what its .proto knows, at any depth. */
static bool is_known(const ProtobufCMessage *m)
{
	if (m->n_unknown_fields)
		return false;
	for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
		const char *at = (const char *)m + f->offset;

		if (f->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if (f->label != PROTOBUF_C_LABEL_REPEATED) {
			const ProtobufCMessage *inner = *(ProtobufCMessage *const *)at;

			if (inner && !is_known(inner))
				return false;
			continue;
		}
		for (size_t k = 0; k < *(const size_t *)((const char *)m + f->quantifier_offset);
		     k++)
			if (!is_known((*(ProtobufCMessage *const *const *)at)[k]))
				return false;
	}
	return true;
}

static bool read_packets(struct reading *r, const struct buf *file)
{
	struct bytes b = bytes_init(file->data, file->len);
	struct pb_field f;

	r->count = 0;
	while (pb_next(&b, &f)) {
		Perfetto__TracePacket *p =
			perfetto__trace_packet__unpack(NULL, bytes_left(&f.bytes), f.bytes.at);

		if (!CHECK(f.number == 1 && f.wire == PB_BYTES) || !CHECK(p != NULL))
			return false;
		if (!CHECK(r->count < PACKETS))
			return false;
		r->packets[r->count++] = p;
		CHECK(is_known(&p->base));
		CHECK(p->has_trusted_packet_sequence_id);
	}
	return CHECK(!b.is_truncated && bytes_left(&b) == 0);
}

void forget(struct reading *r)
{
	for (size_t i = 0; i < r->count; i++)
		perfetto__trace_packet__free_unpacked(r->packets[i], NULL);
	r->count = 0;
}

bool read_run(struct sink_run *run, bool all_args, struct reading *r)
{
	struct buf file;
	bool good = sink_run_write(run, &sink_perfetto, all_args, &file) && read_packets(r, &file);

	buf_release(&file);
	return good;
}

static const char *named(Perfetto__InternedName **rows, size_t count, uint64_t iid)
{
	return count && rows[0]->iid == iid ? rows[0]->name : NULL;
}

/* A string value, until the next call. */
const char *valued(const Perfetto__InternedString *row, uint64_t iid)
{
	static char text[256];

	if (row->iid != iid || !CHECK(row->str.len < sizeof(text)))
		return NULL;
	if (row->str.len) /* data is NULL of an empty one */
		memcpy(text, row->str.data, row->str.len);
	text[row->str.len] = '\0';
	return text;
}

/* The text of a number, which must have been written before the packet `before`. */
const char *text_of(const struct reading *r, enum perfetto_space space, uint64_t iid, size_t before)
{
	for (size_t i = 0; i < before; i++) {
		const Perfetto__InternedData *d = r->packets[i]->interned_data;
		const char *found = NULL;

		if (!d)
			continue;
		if (space == SPACE_CATEGORY)
			found = named(d->event_categories, d->n_event_categories, iid);
		if (space == SPACE_NAME)
			found = named(d->event_names, d->n_event_names, iid);
		if (space == SPACE_KEY)
			found = named(d->debug_annotation_names, d->n_debug_annotation_names, iid);
		if (space == SPACE_TEXT && d->n_debug_annotation_string_values)
			found = valued(d->debug_annotation_string_values[0], iid);
		if (found)
			return found;
	}
	return NULL;
}

const Perfetto__TrackDescriptor *track_of(const struct reading *r, uint64_t uuid)
{
	for (size_t i = 0; i < r->count; i++) {
		const Perfetto__TrackDescriptor *d = r->packets[i]->track_descriptor;

		if (d && d->uuid == uuid)
			return d;
	}
	return NULL;
}

/* The place of the n-th packet of this type with this name; PACKETS: none. */
size_t find(const struct reading *r, Perfetto__TrackEvent__Type type, const char *name, unsigned n)
{
	for (size_t i = 0; i < r->count; i++) {
		const Perfetto__TrackEvent *e = r->packets[i]->track_event;
		const char *own;

		if (!e || e->type != type)
			continue;
		own = e->name ? e->name : text_of(r, SPACE_NAME, e->name_iid, i);
		if (own && strcmp(own, name) == 0 && n-- == 0)
			return i;
	}
	return PACKETS;
}

/* ns from the n-th begin of a name to the end behind it; UINT64_MAX: there is none. */
uint64_t length_of(const struct reading *r, const char *name, unsigned n)
{
	size_t at = find(r, BEGIN, name, n);
	const Perfetto__TracePacket *begin, *end;

	if (at + 1 >= r->count)
		return UINT64_MAX;
	begin = r->packets[at];
	end = r->packets[at + 1];
	if (!end->track_event || end->track_event->type != END ||
	    end->track_event->track_uuid != begin->track_event->track_uuid)
		return UINT64_MAX;
	return end->timestamp - begin->timestamp;
}

const Perfetto__TrackEvent *event_at(const struct reading *r, size_t at)
{
	static const Perfetto__TrackEvent none = PERFETTO__TRACK_EVENT__INIT;

	return CHECK(at < r->count) ? r->packets[at]->track_event : &none;
}

const Perfetto__DebugAnnotation *arg_of(const struct reading *r, size_t at, const char *key)
{
	const Perfetto__TrackEvent *e = event_at(r, at);

	for (size_t i = 0; i < e->n_debug_annotations; i++) {
		const char *own = text_of(r, SPACE_KEY, e->debug_annotations[i]->name_iid, at);

		if (CHECK(own != NULL) && strcmp(own, key) == 0)
			return e->debug_annotations[i];
	}
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_reading.h - what the Perfetto sink made of a small trace, as protobuf-c reads it.
 */
#ifndef TESTS_UNIT_PERFETTO_READING_H
#define TESTS_UNIT_PERFETTO_READING_H

#include "convert/sink/perfetto/internal.h"
#include "schemas/proto/perfetto.pb-c.h"
#include "tests/unit/sink_files.h"

enum { PACKETS = 4096 };

struct reading {
	Perfetto__TracePacket *packets[PACKETS];
	size_t count;
};

#define BEGIN PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN
#define END   PERFETTO__TRACK_EVENT__TYPE__SLICE_END

/* False: a failed check.  Every packet is known to its .proto in all it has. */
bool read_run(struct sink_run *run, bool all_args, struct reading *r);
void forget(struct reading *r);

/* The text of a number, which must have been written before the packet `before`; until the next
 * call.  NULL: there is none. */
const char *text_of(const struct reading *r, enum perfetto_space space, uint64_t iid,
		    size_t before);
/* A string value, until the next call. */
const char *valued(const Perfetto__InternedString *row, uint64_t iid);
const Perfetto__TrackDescriptor *track_of(const struct reading *r, uint64_t uuid);
/* The place of the n-th packet of this type with this name; PACKETS: none. */
size_t find(const struct reading *r, Perfetto__TrackEvent__Type type, const char *name, unsigned n);
/* ns from the n-th begin of a name to the end behind it; UINT64_MAX: there is none. */
uint64_t length_of(const struct reading *r, const char *name, unsigned n);
/* Never NULL. */
const Perfetto__TrackEvent *event_at(const struct reading *r, size_t at);
const Perfetto__DebugAnnotation *arg_of(const struct reading *r, size_t at, const char *key);

#endif

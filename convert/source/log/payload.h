/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.h - extended payloads of NVTX, which a log keeps as bytes and schemas (LOG.md, section
 * 12), as arguments of their events; inside of the source.
 *
 * Fields of nested schemas are named "outer.inner", elements of short arrays "name[0]"; arrays
 * without a constant length become one JSON text.  Bytes are not trusted, and reading never passes
 * their end.  What NCCL and XLA register gets the names that other sources use.
 */
#ifndef CONVERT_SOURCE_LOG_PAYLOAD_H
#define CONVERT_SOURCE_LOG_PAYLOAD_H

#include "convert/source/log/index.h"
#include "schemas/model/event.h"

enum { LOG_PAYLOAD_ARGS = 64 }; /* argument values of an event after decoding, at most */

/*
 * Decodes the payloads of an event whose argument values are at `args`, which has place for
 * LOG_PAYLOAD_ARGS: replaces its arguments and, where a field is its message, its name.  An event
 * without payloads stays as it is.  Returns how many fields had no place.
 */
uint64_t log_payload_decode(struct trace *trace, struct event *e, uint64_t *args);

/*
 * Adds to the trace what the payloads of all events of a log will need, so that its tables are
 * complete before the first event.  *has_any: some event has payloads.
 */
enum status log_payload_scan(const struct log_index *index, bool *has_any, struct error *err);

#endif

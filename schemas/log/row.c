/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/row.h"

#include "schemas/model/records.h"

#include <string.h>

/* clang-format off */
#define MEMBER(type, object, member) \
	{ type, sizeof(((struct object *)NULL)->member), offsetof(struct object, member) }
/* clang-format on */

const struct row_member log_process_row[] = {
	MEMBER(ROW_NAME, process, host),
	MEMBER(ROW_NAME, process, command),
	MEMBER(ROW_NUMBER, process, pid),
	MEMBER(ROW_ID, process, rank),
	MEMBER(ROW_NUMBER, process, world_size),
	MEMBER(ROW_SCHEMA, process, schema),
	{ 0 },
};
const struct row_member log_device_row[] = {
	MEMBER(ROW_PROCESS, device, process),
	MEMBER(ROW_ID, device, id),
	MEMBER(ROW_NAME, device, name),
	MEMBER(ROW_SCHEMA, device, schema),
	{ 0 },
};
const struct row_member log_track_row[] = {
	MEMBER(ROW_TRACK_TYPE, track_row, track.type),
	MEMBER(ROW_PROCESS, track_row, track.process),
	MEMBER(ROW_NAME, track_row, track.name),
	MEMBER(ROW_ID, track_row, track.device),
	MEMBER(ROW_ID, track_row, track.context),
	MEMBER(ROW_NUMBER, track_row, track.id),
	MEMBER(ROW_NUMBER, track_row, track.unit),
	MEMBER(ROW_NUMBER, track_row, launches),
	{ 0 },
};
const struct row_member log_window_row[] = {
	MEMBER(ROW_PROCESS, window, process),
	MEMBER(ROW_NAME, window, spec),
	MEMBER(ROW_NUMBER, window, begin_ns),
	MEMBER(ROW_NUMBER, window, end_ns),
	MEMBER(ROW_NUMBER, window, own_ns),
	MEMBER(ROW_FLAG, window, cut_short),
	{ 0 },
};
const struct row_member log_anchor_row[] = {
	MEMBER(ROW_PROCESS, anchor, process),
	MEMBER(ROW_NUMBER, anchor, realtime_ns),
	MEMBER(ROW_NUMBER, anchor, monotonic_ns),
	MEMBER(ROW_NUMBER, anchor, cupti_ns),
	{ 0 },
};

/* Members are little-endian numbers of `size` bytes, which bytes.h ensures. */
uint64_t row_member_get(const struct row_member *m, const void *row)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)row + m->offset, m->size);
	return m->type == ROW_ID ? (uint32_t)(value + 1) : value;
}

void row_member_set(const struct row_member *m, void *row, uint64_t value)
{
	if (m->type == ROW_ID)
		value = (uint32_t)value - 1;
	else if (m->type == ROW_FLAG)
		value = value != 0;
	else if (m->type == ROW_TRACK_TYPE && value > TRACK_COUNTER)
		value = TRACK_THREAD; /* a type of a newer writer */
	memcpy((char *)row + m->offset, &value, m->size);
}

const struct field *log_member(unsigned kind, enum log_role role)
{
	const struct record *r = record_of_kind(kind);
	unsigned place = role == LOG_CORRELATION ? PLACE_CORRELATION : PLACE_VALUE;

	for (size_t i = 0; r && i < r->field_count; i++)
		if (r->fields[i].place == place)
			return &r->fields[i];
	return NULL;
}

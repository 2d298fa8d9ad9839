/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - definitions for both the writer and the reader of a log's tables; only the codec uses it.
 *
 * Rows of NAMES, KEYS, SCHEMAS and DESCS follow one another.  Those of the other tables begin with
 * their length, so that an older reader can skip members at their end.  If such a row is a struct
 * of the trace, its members are listed once, here, for both directions.
 */
#pragma once

#include "schemas/log/log.h"
#include "schemas/model/trace.h"

/* The names in FIELDS of a column whose member is no field of the kind. */
#define LOG_NO_CORRELATION "join"
#define LOG_NO_VALUE       "amount"

/* Bits of a META row. */
enum log_meta {
	META_SYNTHETIC = 1,
	META_NO_EPOCH = 2,  /* times are not since the Unix epoch */
	META_FROM_PART = 4, /* made from an input that was not whole */
	META_IMPORTED = 8,  /* made from an input of another format */
};

/* How a member is stored, and what it refers to. */
enum row_type {
	ROW_NUMBER,
	ROW_FLAG,
	ROW_ID, /* an identifier that can be absent (NO_ID): stored plus one */
	ROW_TRACK_TYPE,
	ROW_NAME, /* this and the next two are ids of the file's tables */
	ROW_PROCESS,
	ROW_SCHEMA,
};
struct row_member {
	uint8_t type, size; /* enum row_type; bytes in the struct */
	uint16_t offset;    /* in the struct */
};
/* Lists the members of a row of trace_row() in their order on disk; size 0 ends the list. */
extern const struct row_member log_process_row[], log_device_row[], log_track_row[],
	log_window_row[], log_anchor_row[];

uint64_t row_member_get(const struct row_member *m, const void *row);
void row_member_set(const struct row_member *m, void *row, uint64_t value);

/* Returns the field of records.def that is the correlation or value of events of the kind, or NULL.
 * The column has its name. */
struct field;
const struct field *log_member(unsigned kind, enum log_role role);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - what writer and reader of a log's tables must agree on; inside of the codec.
 *
 * Rows of NAMES, KEYS, SCHEMAS and DESCS follow one another.  Those of the other tables begin with
 * their length, so that an older reader leaves a member at their end unread.  Where such a row is a
 * struct of the trace, its members are listed once, here, for both directions.
 */
#pragma once

#include "schemas/log/log.h"
#include "schemas/model/trace.h"

/* The names of these columns in FIELDS where the kind has no field for the member. */
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
	ROW_NAME, /* this one and the next two are ids of the file's tables */
	ROW_PROCESS,
	ROW_SCHEMA,
};
struct row_member {
	uint8_t type, size; /* enum row_type; bytes in the struct */
	uint16_t offset;    /* in the struct */
};
/* The members of a row of trace_row() in their order on disk; ended by size 0. */
extern const struct row_member log_process_row[], log_device_row[], log_track_row[],
	log_window_row[], log_anchor_row[];

uint64_t row_member_get(const struct row_member *m, const void *row);
void row_member_set(const struct row_member *m, void *row, uint64_t value);

/* The field of records.def that is this member (correlation or value) of events of the kind, by
 * whose name its column goes; or NULL. */
struct field;
const struct field *log_member(unsigned kind, enum log_role role);

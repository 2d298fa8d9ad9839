/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_row.h - what writer and reader of a log's tables must agree on; inside of the codec.
 *
 * Rows of NAMES, KEYS, SHAPES and SITES stand one after the other; those of the other tables begin
 * with their length, so that a member more at their end stays unread by an older reader.
 */
#ifndef SCHEMAS_LOG_ROW_H
#define SCHEMAS_LOG_ROW_H

#include "schemas/log.h"

/* How a column of FIELDS says that its kind has no field for a member. */
#define LOG_NO_JOIN "join"
#define LOG_NO_AMOUNT "amount"

/* Bits of a META row. */
enum log_meta {
	META_SYNTHETIC = 1,
	META_NO_EPOCH = 2,    /* times are not since the Unix epoch */
	META_FROM_PART = 4,   /* made from an input that was not whole */
	META_IMPORTED = 8,    /* made from an input of another format */
};

/* Identifiers that may be none are stored plus one. */
static inline uint64_t log_put_id(uint32_t id)
{
	return (uint32_t)(id + 1);
}

static inline uint32_t log_take_id(uint64_t stored)
{
	return (uint32_t)stored - 1;
}

/* The field of records.def that is this member of events of the kind, by its name; or NULL. */
struct field;
const struct field *log_member(unsigned kind, enum log_role role);

#endif

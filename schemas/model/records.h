/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.h - the rows of records.def as constant tables, for any thread.
 */
#pragma once

#include "schemas/model/event.h"

/* The numbers are on disk: append only. */
enum unit {
	UNIT_NONE,
	UNIT_NS,
	UNIT_BYTES,
	UNIT_COUNT,
	UNIT_ID,
	UNIT_ENUM,
	UNIT_FLAG,
	UNIT_PERCENT,
	UNIT_WATT,
	UNIT_CELSIUS,
	UNIT_MHZ,
	UNIT_END,
};
const char *unit_name(unsigned unit); /* "ns"; "" for UNIT_NONE and numbers of a newer writer */

enum field_type {
	FIELD_U8,
	FIELD_U16,
	FIELD_U32,
	FIELD_U64,
	FIELD_I32,
	FIELD_I64,
	FIELD_F64,
	FIELD_STR,
	FIELD_JSON,
};
enum field_place {
	PLACE_BEGIN,
	PLACE_END,
	PLACE_CORRELATION,
	PLACE_VALUE,
	PLACE_NAME,
	PLACE_SUBKIND,
	PLACE_TRACK,
	PLACE_CONST,
	PLACE_ARG,
};
struct field {
	const char *name;
	uint8_t type, unit, place;
	bool from_cupti;
	uint16_t offset; /* bytes from the begin of the CUPTI record */
	uint32_t since;  /* first cuptiGetVersion() with the field; 0: all versions */
	const char *arg; /* Kineto's spelling (see records.def); NULL: Kineto does not write the
			    field */
};
struct record {
	uint16_t number; /* on disk */
	uint8_t kind;
	uint16_t cupti; /* CUPTI_ACTIVITY_KIND_*; 0: a record of our own */
	const char *word, *help;
	const struct field *fields;
	size_t field_count;
};
/* Returns all rows in the order of records.def. */
const struct record *records(size_t *count);
/* Returns the first record of a kind, or NULL. */
const struct record *record_of_kind(unsigned kind);
/* Finds a field by its name in records.def; returns NULL if there is none. */
const struct field *record_field(const struct record *r, const char *name, size_t len);
/* Finds a field by Kineto's spelling without the "+"; of several rows, the first. */
const struct field *record_arg(const struct record *r, const char *arg, size_t len);
/* Finds the meaning of an argument's key: the first such field in the records of a kind. */
const struct field *kind_field(unsigned kind, const char *name, size_t len);

const char *kind_word(unsigned kind);                /* "kernel"; "" for unknown */
unsigned kind_of_word(const char *word, size_t len); /* KIND_UNKNOWN when there is none */
const char *range_class_word(unsigned class);        /* "cpu_op"; "range" for unknown */
/* Returns the word of a copy kind (CUPTI's copyKind 1..10, Nsight Systems' 11..13), such as "HtoD",
 * or "" for other numbers. */
const char *copy_kind_word(unsigned copy_kind);
/* Returns the name of a copy kind, such as "Memcpy HtoD", or "Memcpy" for other numbers. */
const char *copy_kind_name(unsigned copy_kind);
unsigned copy_kind_of_word(const char *word, size_t len); /* 0 when there is none */
/* Words for a memory kind of CUPTI (CUpti_ActivityMemoryKind). */
struct memory_words {
	const char *xprof, *kineto;
};
const struct memory_words *memory_words(uint64_t memory_kind);
unsigned memory_kind_of_xprof(const char *word); /* 0, "unknown", when there is none */
/* The subkind of a synchronisation: CUPTI's CUpti_ActivitySynchronizationType. */
enum sync_kind {
	SYNC_EVENT = 1,
	SYNC_STREAM_WAIT, /* a stream waits for an event, and no thread does */
	SYNC_STREAM,
	SYNC_CONTEXT,
	SYNC_KIND_END,
};
/* Returns Kineto's name, such as "Stream Sync"; "" for unknown numbers. */
const char *sync_kind_word(unsigned sync_kind);
unsigned sync_kind_of_word(const char *word, size_t len); /* 0 when there is none */

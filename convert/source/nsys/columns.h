/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - which tables of an Nsight Systems export become events, and what their columns
 * mean.  Constant tables; a newer export is a row more.
 */
#ifndef CONVERT_SOURCE_NSYS_COLUMNS_H
#define CONVERT_SOURCE_NSYS_COLUMNS_H

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

struct nsys_table {
	const char *name;
	uint8_t kind, subkind, type;
	const char *cat; /* of a range that is none of ours, else NULL */
};
const struct nsys_table *nsys_table_at(size_t i); /* NULL past the last */

enum nsys_role {
	NSYS_OTHER, /* unknown here: kept under its own name */
	NSYS_SKIP,
	NSYS_FIELD, /* an attribute; its place is that of records.def, else the constants */
	NSYS_BEGIN,
	NSYS_END,
	NSYS_DEVICE,
	NSYS_CONTEXT,
	NSYS_STREAM,
	NSYS_GLOBAL_PID,
	NSYS_GLOBAL_TID,
	NSYS_END_TID,
	NSYS_CORRELATION,
	NSYS_ADDRESS,
	NSYS_BYTES,
	NSYS_RESULT,
	NSYS_SUBKIND,
	NSYS_API_CLASS,
	NSYS_NVTX_TYPE,
	NSYS_DOMAIN,
	NSYS_OPERATION,   /* of memory: 0 taken, 1 given back */
	NSYS_MEMORY_KIND, /* an attribute, counted as CUPTI does */
	NSYS_TEXT_ID,     /* an attribute: a text by its id */
	NSYS_NAME,        /* a text or the id of one; of several the lowest `rank` that is there */
};

struct nsys_column { /* for events of one kind */
	uint8_t role, unit;
	uint8_t rank; /* NSYS_NAME: the lowest that is there counts */
	bool is_arg;  /* as an attribute */
	uint32_t key; /* the name of that attribute */
};
/* What a column of this name is. */
enum status nsys_column(struct trace *trace, unsigned kind, const char *name,
			struct nsys_column *out, struct error *err);

#endif

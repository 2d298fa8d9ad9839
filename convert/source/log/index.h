/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h - what is in a log: its tables, and where its blocks of events are; inside of the source.
 */
#ifndef CONVERT_SOURCE_LOG_INDEX_H
#define CONVERT_SOURCE_LOG_INDEX_H

#include "convert/source/log/cursor.h"
#include "convert/source/source.h"

/* Its owner frees `blocks` and `tables`. */
struct log_index {
	const struct input *in;
	struct trace *trace;
	struct log_translation *tables;
	struct log_block *blocks; /* of events, in the order of the file */
	size_t count, block_cap;
	size_t ceiling;     /* bytes of blocks[] */
	struct error fault; /* returned after everything that was readable; ST_OK: none */
};

/*
 * Fills an index whose `in`, `trace`, `tables` and `ceiling` are set, by one walk over the block
 * headers.  Damage is counted as lost records, and where the framing is damaged it is the fault
 * too.  The ring of a flight recorder is walked as the log that would be saved from it.
 */
enum status log_index_read(struct log_index *index, struct error *err);

#endif

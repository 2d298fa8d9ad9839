/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log/walk.h - what stands in a log: its tables, and where its blocks of events are; inside of
 * source_log.  The ring of a flight recorder is walked as the log that would be saved from it.
 */
#ifndef CONVERT_LOG_WALK_H
#define CONVERT_LOG_WALK_H

#include "convert/log/cursor.h"
#include "convert/source.h"

/* Filled by the walk; who has it frees `blocks` and `tables`. */
struct log_has {
	const struct input *in;
	struct trace *trace;
	struct log_translation *tables;
	struct log_block *blocks;   /* of events, in the order of the file */
	size_t count, block_room;
	size_t ceiling;             /* bytes of blocks[] */
	struct error fault;         /* to be told when all else has been; ST_OK: none */
};

/* `in`, `trace`, `tables` and `ceiling` are set.  Damage is counted, or the fault. */
enum status log_walk(struct log_has *s, struct error *err);

#endif

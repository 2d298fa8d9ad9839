/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfevents.h - records of TensorBoard's event files: u64 length, its masked CRC-32C, the message,
 * its masked CRC-32C.  No state; appends to a buffer, whose status is to be asked at the end.
 *
 * One file is one run of TensorBoard; the version comes first.  Texts are UTF-8.
 */
#pragma once

#include "schemas/base/buf.h"

/* The first record of a file. */
void tfevents_put_version(struct buf *out, uint64_t wall_ns);
/* A point of the chart `tag`; tags with a slash are grouped by what stands before it. */
void tfevents_put_scalar(struct buf *out, uint64_t wall_ns, int64_t step, const char *tag,
			 double value);
/* Markdown, shown by the text plugin. */
void tfevents_put_text_card(struct buf *out, uint64_t wall_ns, int64_t step, const char *tag,
			    const char *text, size_t len);
/* Any message as a record. */
void tfevents_put_record(struct buf *out, const void *message, size_t len);

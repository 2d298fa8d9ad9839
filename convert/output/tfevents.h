/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfevents.h - records of TensorBoard's event files: u64 length, its masked CRC-32C, the message,
 * its masked CRC-32C.  The functions append to a buffer, whose status the caller checks at the end.
 *
 * One file is one run of TensorBoard; the version record comes first.  Texts are UTF-8.
 */
#pragma once

#include "schemas/base/buf.h"

/* Appends the version, which is the first record of a file. */
void tfevents_put_version(struct buf *out, uint64_t wall_ns);
/* Appends a point of the chart `tag`; tags are grouped by the part before a slash. */
void tfevents_put_scalar(struct buf *out, uint64_t wall_ns, int64_t step, const char *tag,
			 double value);
/* Appends Markdown, which TensorBoard's text plugin shows. */
void tfevents_put_text_card(struct buf *out, uint64_t wall_ns, int64_t step, const char *tag,
			    const char *text, size_t len);
/* Appends any message as a record. */
void tfevents_put_record(struct buf *out, const void *message, size_t len);

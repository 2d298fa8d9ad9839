/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx/rows.h - records of NVTX to rows of the log: text, colours, payloads become attributes.
 *
 * What frameworks write into texts is understood here and not in a callback: PyTorch's operators
 * (emit_nvtx) become ranges of class OP with sequence number and shapes, as Kineto has them; XLA's
 * titles and NCCL's payloads become attributes (hlo_op, hlo_module, comms_id, bytes ...).
 *
 * State is static; the writer's thread only.
 */
#ifndef COLLECTOR_NVTX_ROWS_H
#define COLLECTOR_NVTX_ROWS_H

#include "collector/ring.h"

struct writer;

/*
 * A record with RING_NVTX and its tail, as a row on `track`; the log is open.  A range that another
 * thread started goes to the track of that one.
 */
void nvtx_rows_put(struct writer *w, uint32_t track, uint32_t tid, const struct ring_record *r,
		   const uint8_t *tail);

/* The track of a thread of this process, made and named when needed. */
uint32_t nvtx_rows_thread(struct writer *w, uint32_t tid);

#endif

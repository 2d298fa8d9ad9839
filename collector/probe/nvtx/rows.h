/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - turns records of NVTX into rows of the log: texts and colours become attributes,
 * payloads stay bytes.
 *
 * Texts that frameworks write are parsed here and not in a callback: PyTorch's operators
 * (emit_nvtx) become ranges of class OP with sequence number and input shapes, as in Kineto; XLA's
 * titles become attributes (hlo_op, hlo_module ...).
 *
 * State is static; writer thread only.
 */
#pragma once

#include "collector/arena/ring.h"

struct writer;

/*
 * Puts a record with RING_NVTX and its tail as a row on `track`; the log is open.  A range that
 * another thread started goes to the track of that thread.
 */
void nvtx_rows_put(struct writer *w, uint32_t track, uint32_t tid, const struct ring_record *r,
		   const uint8_t *tail);

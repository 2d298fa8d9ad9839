/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main/node.h - a TensorBoard folder after its files have their names.  Of the roof.
 *
 * A run that is written again keeps its name, and XProf would show what it had cached of the old
 * one: its caches go.  With --per-node the sink leaves one piece for each rank, an XSpace of its own;
 * those of a host become one (convert/main/pieces.h).
 */
#ifndef CONVERT_MAIN_NODE_H
#define CONVERT_MAIN_NODE_H

#include "schemas/buf.h"

/* `names`: of all files of the run in `folder`, each with its NUL. */
enum status node_tidy(const char *folder, const struct buf *names, struct error *err);
/* Makes HOST.xplane.pb of HOST.FIRST-END-PLACE.part; what would be larger than `most` stays one
 * file a rank.  *apart: how many hosts that was so for. */
enum status node_join(const char *folder, const struct buf *names, uint64_t most, unsigned *apart,
		      struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* sink_list.h - the registry of writers of formats, in the order of --help. */
#ifndef CONVERT_SINK_SINK_LIST_H
#define CONVERT_SINK_SINK_LIST_H

#include "convert/sink/sink.h"

/* clang-format off */
#define SINK_LIST(X)                                                                               \
	X(chrome) X(perfetto) X(memory) X(text) X(csv) X(sqlite) X(parquet) X(bundle) X(log)       \
	X(tensorboard) X(folded) X(pprof)
/* clang-format on */

#define X(name) extern const struct sink_type sink_##name;
SINK_LIST(X)
#undef X

extern const struct sink_type *const sink_types[];   /* ends with NULL */
const struct sink_type *sink_find(const char *name); /* NULL when there is none */

#endif

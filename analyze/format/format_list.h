/* SPDX-License-Identifier: Apache-2.0 */
/* format_list.h - the registry of formats of reports, in the order of --help. */
#ifndef ANALYZE_FORMAT_FORMAT_LIST_H
#define ANALYZE_FORMAT_FORMAT_LIST_H

#include "analyze/format/format.h"

#define FORMAT_LIST(X) X(text) X(json) X(csv) X(md) X(html) X(tfevents)

#define X(name) extern const struct format_type format_##name;
FORMAT_LIST(X)
#undef X

extern const struct format_type *const format_types[];   /* ends with NULL */
const struct format_type *format_find(const char *name); /* NULL: there is none */

#endif

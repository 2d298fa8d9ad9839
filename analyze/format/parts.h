/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - the files of a format that writes several, into a folder that the caller opened.
 */
#ifndef ANALYZE_FORMAT_PARTS_H
#define ANALYZE_FORMAT_PARTS_H

#include "analyze/format/format.h"

struct out;

/* All of type->part, each begun as a file of `folder`, which is not committed. */
enum status format_parts_write(const struct format_type *type, const struct format_request *how,
			       struct out *folder, struct error *err);

#endif

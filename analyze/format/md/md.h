/* SPDX-License-Identifier: Apache-2.0 */
/* md.h - draws blocks as Markdown. */
#pragma once

#include "analyze/format/page/block.h"
#include "schemas/base/buf.h"

void md_draw(struct buf *out, const struct blocks *b);

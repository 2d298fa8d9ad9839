/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/parts.h"

#include "convert/output/output.h"

enum { NAME_BYTES = 4096 };
#define PART_BYTES ((size_t)1 << 30)

static enum status put_part(struct out *folder, struct buf *name, const struct buf *bytes,
			    struct error *err)
{
	TRY(out_begin(folder, buf_text(name), err));
	return out_write(folder, bytes->data, bytes->len, err);
}

enum status format_parts_write(const struct format_type *type, const struct format_request *how,
			       struct out *folder, struct error *err)
{
	enum status status = ST_OK;
	struct buf name, bytes;
	bool more = true;

	buf_init(&name, NAME_BYTES);
	buf_init(&bytes, PART_BYTES);
	for (size_t i = 0; status == ST_OK && more; i++) {
		buf_clear(&name);
		buf_clear(&bytes);
		status = type->part(how, i, &name, &bytes, &more, err);
		if (status == ST_OK && more)
			status = put_part(folder, &name, &bytes, err);
	}
	buf_release(&name);
	buf_release(&bytes);
	return status;
}

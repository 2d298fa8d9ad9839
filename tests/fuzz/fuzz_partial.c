/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file of --partial, its header made right: read or refused; what was read finishes
 * and prints in every format.
 */
#include "analyze/engine/partial.h"
#include "analyze/format.h"
#include "schemas/crc32c.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print(struct engine_result *r)
{
	static const struct format_type *const formats[] = { &format_text, &format_json, &format_md,
							     &format_html };
	struct format_request how = { .tables = r->tables, .reports = reports(), .width = 100,
				      .is_utf8 = true };
	struct buf page;
	size_t i;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		buf_init(&page, 1 << 22);
		formats[i]->write(&how, &page, NULL);
		buf_release(&page);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct engine_result r;
	const char *settings = NULL;

	memcpy(copy, data, size);
	if (size >= PARTIAL_HEADER_BYTES) {
		memcpy(copy, "TACHOPRT", 8);
		put_u32(copy + 8, PARTIAL_VERSION);
		put_u32(copy + 12, crc32c(0, copy + PARTIAL_HEADER_BYTES,
					  size - PARTIAL_HEADER_BYTES));
		put_u64(copy + 16, size - PARTIAL_HEADER_BYTES);
	}
	if (engine_result_init(&r, reports(), 16 << 20, NULL) == ST_OK &&
	    engine_partial_take(&r, copy, size, 16 << 20, &settings, NULL) == ST_OK &&
	    engine_result_finish(&r, false, NULL) == ST_OK)
		print(&r);
	engine_result_release(&r);
	free(copy);
	return 0;
}

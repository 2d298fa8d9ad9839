/* SPDX-License-Identifier: Apache-2.0 */
/* log_sign.h - magic, sizes and checksums of whatever stands there as blocks of a log. */
#ifndef TESTS_FUZZ_LOG_SIGN_H
#define TESTS_FUZZ_LOG_SIGN_H

#include "schemas/base/bytes.h"
#include "schemas/base/crc32c.h"
#include "schemas/log/log.h"

#include <string.h>

static inline void log_sign(uint8_t *bytes, size_t size)
{
	size_t at = LOG_FILE_HEADER_BYTES;

	if (size < at)
		return;
	log_put_file_header(bytes);
	while (size - at >= LOG_HEADER_BYTES) {
		uint8_t *header = bytes + at;
		size_t left = size - at - LOG_HEADER_BYTES, len = get_u32(header + 16) % 4096;

		len = len < left ? len : left;
		memcpy(header, "TBLK", 4);
		put_u32(header + 16, (uint32_t)len);
		if (!(header[10] & LOG_DEFLATED))
			put_u32(header + 20, (uint32_t)len);
		put_u32(header + 28, crc32c(0, header + LOG_HEADER_BYTES, len));
		put_u32(header + 4, crc32c(0, header + 8, LOG_HEADER_BYTES - 8));
		at += LOG_HEADER_BYTES + len;
	}
}

#endif

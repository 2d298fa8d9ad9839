/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.h - the checksum of log blocks and of tfevents records (CRC-32C, Castagnoli).
 *
 * Any thread may call any of these; there is nothing to initialise.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * `crc` is 0 at the start and what the last call returned when going on.  Uses the instruction
 * where the processor has it.
 */
uint32_t crc32c(uint32_t crc, const void *p, size_t len);

/* The same without the instruction; for machines that lack it, and for the tests. */
uint32_t crc32c_software(uint32_t crc, const void *p, size_t len);

/* As TFRecord stores it, so that a checksum of bytes that hold checksums stays good. */
uint32_t crc32c_masked(const void *p, size_t len);

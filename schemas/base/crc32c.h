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
 * Returns the checksum of `len` bytes.  `crc` is 0 for the first part and the result of the
 * previous call for each further part.  Uses the processor's instruction if there is one.
 */
uint32_t crc32c(uint32_t crc, const void *p, size_t len);

/* Computes the same without the instruction, for machines that lack it and for the tests. */
uint32_t crc32c_software(uint32_t crc, const void *p, size_t len);

/* Returns the checksum as TFRecord stores it: masked, so that checksums of data that contains it
 * are sound. */
uint32_t crc32c_masked(const void *p, size_t len);

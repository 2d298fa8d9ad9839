/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a log.  The bytes are taken as they are, and then once more with every checksum made
 * right, which a fuzzer cannot guess.
 */
#include "tests/fuzz/log_sign.h"
#include "convert/source/source.h"
#include "tests/fuzz/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	fuzz_source(&source_log, data, size);
	memcpy(copy, data, size);
	log_sign(copy, size);
	fuzz_source(&source_log, copy, size);
	free(copy);
	return 0;
}

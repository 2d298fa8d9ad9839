/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as Chrome JSON of another tool, also inside a tar or zip archive. */
#include "tests/fuzz/source.h"
#include "convert/source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_source(&source_chrome, data, size);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an Nsight Systems export: SQLite, through the file system of source nsys. */
#include "tests/fuzz/source.h"
#include "convert/source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_source(&source_nsys, data, size);
}

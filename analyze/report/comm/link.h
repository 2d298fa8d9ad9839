/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - what the links of a GPU can carry, by its name (DEFINITIONS.md 7). */
#ifndef ANALYZE_REPORT_COMM_LINK_H
#define ANALYZE_REPORT_COMM_LINK_H

#include <stdint.h>

/* GB/s in one direction between `ranks` GPUs of this name, NULL: unknown.  `group` names the ranks
 * of the communicator, "0 [0, 1]", where it is known: ranks stand on servers in the order of their
 * numbers.  0: unknown. */
double link_gb_per_s(const char *gpu, const char *group, uint64_t ranks);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* nsys/map.h - 64-bit ids of a file to ids of the trace; open addressing, up to a ceiling. */
#ifndef CONVERT_NSYS_MAP_H
#define CONVERT_NSYS_MAP_H

#include "schemas/status.h"

#include <stddef.h>
#include <stdint.h>

struct nsys_pair {
	uint64_t key;
	uint32_t value; /* 0: free */
};
struct nsys_map {
	struct nsys_pair *rows;
	size_t count, cap; /* cap: 0 or a power of two */
};

uint32_t nsys_map_find(const struct nsys_map *m, uint64_t key); /* 0: none */
enum status nsys_map_put(struct nsys_map *m, uint64_t key, uint32_t value, struct error *err);
void nsys_map_release(struct nsys_map *m);

#endif

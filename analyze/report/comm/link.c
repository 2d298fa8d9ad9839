/* SPDX-License-Identifier: Apache-2.0 */
/* What the links of a GPU can carry (DEFINITIONS.md 7). */
#include "analyze/report/comm/link.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * GB/s in one direction, as the makers state them; the first whose words the GPU's name has. Within
 * a server: NVIDIA's data sheets state NVLink for both directions together (P100 160, V100 300,
 * A100 600, A800 and H800 400, H100 and H200 900, B200 1,800), AMD's state Infinity Fabric to all
 * seven others (MI300X 896, MI350X 1,075) or three (MI210 300); without either, PCIe with 16 lanes
 * (3.0: 16, 4.0: 32, 5.0: 64).  Between servers: the InfiniBand adapters of the makers' own
 * servers, for each GPU (DGX-1: 4 x 100 Gbit/s for 8; DGX A100: 200; DGX H100 and B200: 400; MI300X
 * platforms: 400). 0 is unknown: a bridge may be there or not.
 */
static const struct {
	const char *name, *also; /* NULL: no further word */
	double within, between;
	unsigned gpus; /* that one server, or one NVLink domain, has */
} links[] = {
	{ "GB300", NULL, 900, 0, 72 },     { "GB200", NULL, 900, 50, 72 },
	{ "B300", NULL, 900, 0, 8 },       { "B200", NULL, 900, 50, 8 },
	{ "GH200", NULL, 0, 50, 1 },       { "H200 NVL", NULL, 0, 0, 8 },
	{ "H100 NVL", NULL, 0, 0, 8 },     { "H100", "PCIe", 64, 0, 8 },
	{ "H800", "PCIe", 64, 0, 8 },      { "H800", NULL, 200, 50, 8 },
	{ "H100", NULL, 450, 50, 8 },      { "H200", NULL, 450, 50, 8 },
	{ "H20", NULL, 450, 50, 8 },       { "A800", "PCIe", 32, 0, 8 },
	{ "A800", NULL, 200, 25, 8 },      { "A100", "PCIe", 32, 0, 8 },
	{ "A100", NULL, 300, 25, 8 },      { "V100", "PCIe", 16, 0, 8 },
	{ "V100", "SXM", 150, 6.25, 8 },   { "P100", "PCIe", 16, 0, 8 },
	{ "P100", "SXM", 80, 6.25, 8 },    { "Tesla T4", NULL, 16, 0, 8 },
	{ "NVIDIA L40", NULL, 32, 0, 8 },  { "NVIDIA L4", NULL, 32, 0, 8 },
	{ "NVIDIA A10G", NULL, 32, 0, 8 }, { "RTX 4090", NULL, 32, 0, 8 },
	{ "MI355X", NULL, 537.6, 50, 8 },  { "MI350X", NULL, 537.6, 50, 8 },
	{ "MI325X", NULL, 448, 50, 8 },    { "MI300X", NULL, 448, 50, 8 },
	{ "MI210", NULL, 150, 0, 4 },
};

/* Whether the ranks that a communicator names, or as many, can be in one server. */
static bool fits(const char *group, uint64_t ranks, unsigned gpus)
{
	const char *at = strchr(group, '[');
	bool is_whole = at && strchr(at, ']');
	unsigned long server = 0;
	bool any = false;

	if (ranks > gpus)
		return false;
	while (is_whole && *(at += strcspn(at, "0123456789"))) {
		char *end;
		unsigned long one = strtoul(at, &end, 10) / gpus;

		if (any && one != server)
			return false;
		server = one;
		any = true;
		at = end;
	}
	return true;
}

double link_gb_per_s(const char *gpu, const char *group, uint64_t ranks)
{
	for (size_t i = 0; gpu && ranks > 1 && i < sizeof(links) / sizeof(links[0]); i++)
		if (strcasestr(gpu, links[i].name) &&
		    (!links[i].also || strcasestr(gpu, links[i].also)))
			return fits(group, ranks, links[i].gpus) ? links[i].within
								 : links[i].between;
	return 0;
}

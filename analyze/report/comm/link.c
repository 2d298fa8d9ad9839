/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidths of GPU links (DEFINITIONS.md 7), and repeated step numbers. */
#include "analyze/report/comm/comm.h"
#include "schemas/base/sort.h"

#include <stdlib.h>

/* clang-format off */
/* GB/s in one direction. The first row whose words are in the GPU's name is used. Within a server
 * the sources give NVLink and Infinity Fabric for both directions together, so here is half of it;
 * PCIe is 16 lanes of the generation in the data sheet (3: 16, 4: 32, 5: 64). Between servers it is
 * the adapter that the vendor's own server has for each GPU. 0: no source was found, or a bridge is
 * optional. */
static const struct {
	const char *name, *also; /* NULL: no second word */
	double within, between;
	unsigned gpus; /* GPUs in one server or NVLink domain */
} links[] = {
	{ "GB300", NULL, 900, 0, 72 },       /* NVIDIA Blackwell Ultra brief: NVLink 5, 1,800 */
	{ "GB200", NULL, 900, 0, 72 },       /* NVIDIA Blackwell architecture brief: 1,800 */
	{ "B300", NULL, 900, 0, 8 },         /* NVIDIA HGX B300 table: 1,800 */
	{ "B200", NULL, 900, 50, 8 },        /* NVIDIA HGX B200 table: 1,800; DGX BasePOD reference
					      * architecture: 8 ConnectX-7 of 400 Gbit/s */
	{ "GH200", NULL, 0, 0, 1 },
	{ "H200 NVL", NULL, 0, 0, 8 },       /* with bridges or without */
	{ "H100 NVL", NULL, 0, 0, 8 },
	{ "H100", "PCIe", 64, 0, 8 },        /* H100 PCIe product brief PB-11133: PCIe 5 */
	{ "H800", "PCIe", 64, 0, 8 },        /* as the H100 */
	{ "H800", NULL, 200, 50, 8 },        /* DeepSeek-V3 technical report: 400; 400 Gbit/s */
	{ "H100", NULL, 450, 50, 8 },        /* NVIDIA Hopper white paper: 900; DGX BasePOD reference
					      * architecture: 8 ConnectX-7 of 400 Gbit/s */
	{ "H200", NULL, 450, 50, 8 },        /* H200 data sheet: 900; the same */
	{ "H20", NULL, 450, 0, 8 },          /* press on the HGX H20: 900 */
	{ "A800", "PCIe", 32, 0, 8 },        /* as the A100 */
	{ "A800", NULL, 200, 0, 8 },         /* NVIDIA to Reuters, 2022-11-08: 400 */
	{ "A100", "PCIe", 32, 0, 8 },        /* A100 data sheet: PCIe 4 */
	{ "A100", NULL, 300, 25, 8 },        /* A100 data sheet: 600; DGX SuperPOD reference
					      * architecture RA-09950: 8 adapters of 200 Gbit/s */
	{ "V100", "PCIe", 16, 0, 8 },        /* Tesla V100 PCIe product brief PB-08744: PCIe 3 */
	{ "V100", "SXM", 150, 0, 8 },        /* Dell EMC Ready Solutions for AI 1.0: 150 one way */
	{ "P100", "PCIe", 16, 0, 8 },        /* P100 data sheet: PCIe 3 */
	{ "P100", "SXM", 80, 0, 8 },         /* Dell EMC Ready Solutions for AI 1.0: 80 one way */
	{ "Tesla T4", NULL, 16, 0, 8 },      /* T4 data sheet: PCIe 3 */
	{ "NVIDIA L40", NULL, 32, 0, 8 },    /* L40S data sheet: PCIe 4 */
	{ "NVIDIA L4", NULL, 32, 0, 8 },     /* L4 data sheet: PCIe 4 */
	{ "NVIDIA A10G", NULL, 32, 0, 8 },   /* A10 data sheet: PCIe 4 */
	{ "RTX 4090", NULL, 32, 0, 8 },      /* NVIDIA Ada white paper: PCIe 4 */
	{ "MI355X", NULL, 537.6, 0, 8 },     /* AMD CDNA 4 white paper: 7 links of 153.6 */
	{ "MI350X", NULL, 537.6, 0, 8 },     /* the same */
	{ "MI325X", NULL, 448, 0, 8 },       /* MI325X data sheet: 896 */
	{ "MI300X", NULL, 448, 0, 8 },       /* AMD CDNA 3 white paper: 7 links of 128 */
	{ "MI210", NULL, 150, 0, 4 },        /* AMD CDNA 2 white paper: 300 in a group of four */
};
/* clang-format on */

/* Returns whether the ranks of a communicator, or as many, fit into one server. */
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

struct numbered {
	uint64_t number;
	size_t row;
};

static bool ascends(const struct step_list *steps)
{
	for (size_t i = 1; i < steps->count; i++)
		if (steps->rows[i].number <= steps->rows[i - 1].number)
			return false;
	return true;
}

enum status step_repeats_find(const struct step_list *steps, struct step_repeat **out,
			      struct error *err)
{
	struct numbered *sorted;

	*out = NULL;
	if (ascends(steps))
		return ST_OK;
	sorted = malloc(steps->count * sizeof(*sorted));
	*out = malloc(steps->count * sizeof(**out));
	if (!sorted || !*out) {
		free(sorted);
		return fail_memory(err);
	}
	for (size_t i = 0; i < steps->count; i++)
		sorted[i] = (struct numbered){ steps->rows[i].number, i };
	SORT_BY(sorted, steps->count, UP(struct numbered, number), UP(struct numbered, row));
	size_t end;
	for (size_t first = 0; first < steps->count; first = end) {
		for (end = first; end < steps->count && sorted[end].number == sorted[first].number;
		     end++)
			(*out)[sorted[end].row].nth = (uint32_t)(end - first);
		for (size_t i = first; i < end; i++)
			(*out)[sorted[i].row].times = (uint32_t)(end - first);
	}
	free(sorted);
	return ST_OK;
}

struct step_repeat step_repeat_at(const struct step_repeat *all, uint32_t row)
{
	if (!row)
		return (struct step_repeat){ 0 };
	return all ? all[row - 1] : (struct step_repeat){ .nth = 0, .times = 1 };
}

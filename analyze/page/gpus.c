/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page/gpus.h"

#include <stdio.h>
#include <stdlib.h>

const struct gpu_class gpu_classes[CLASS_ROWS] = {
	{ "compute_ns", "compute", 'c', true },
	{ "exposed_comm_ns", "exposed comm", 'm', true },
	{ "exposed_copy_ns", "exposed copy", 'd', true },
	{ "idle_ns", "idle", 'i', true },
	{ "lead_ns", "lead", 'l', false },
	{ "tail_ns", "tail", 'l', false },
};

char gpu_class_letter(const struct page *p, size_t class)
{
	return p->is_sampled && class >= CLASS_IDLE_ROW ? 'u' : gpu_classes[class].letter;
}

void gpu_parts(const struct view *v, size_t row, double parts[CLASS_ROWS])
{
	size_t i;

	for (i = 0; i < CLASS_ROWS; i++)
		parts[i] = (double)view_cell(v, row, gpu_classes[i].column).u64;
}

const char *gpu_label(const struct page *p, size_t gpu, char label[GPU_LABEL])
{
	uint64_t rank = view_cell(&p->gpus, gpu, "rank").u64;
	uint64_t device = view_cell(&p->gpus, gpu, "device").u64;

	if (p->ranks.count == 1)
		snprintf(label, GPU_LABEL, "GPU %llu", (unsigned long long)device);
	else if (rank == NO_U64)
		snprintf(label, GPU_LABEL, "%llu",
			 (unsigned long long)view_cell(&p->gpus, gpu, "pid").u64);
	else if (p->gpus.count > p->ranks.count)
		snprintf(label, GPU_LABEL, "%llu GPU %llu", (unsigned long long)rank,
			 (unsigned long long)device);
	else
		snprintf(label, GPU_LABEL, "rank %llu", (unsigned long long)rank);
	return label;
}

struct worst {
	size_t gpu;
	double share;
};

static int compare_worst(const void *pa, const void *pb)
{
	const struct worst *a = pa, *b = pb;

	if (a->share != b->share)
		return a->share < b->share ? -1 : 1;
	return (a->gpu > b->gpu) - (a->gpu < b->gpu);
}

size_t gpus_choose(const struct page *p, size_t chosen[RANK_LINES])
{
	size_t count = p->gpus.count, i, n = 0;
	struct worst *all;

	if (count <= RANK_LINES) {
		for (i = 0; i < count; i++)
			chosen[i] = i;
		return count;
	}
	all = calloc(count, sizeof(*all));
	if (!all)
		return 0;
	for (i = 0; i < count; i++) {
		double window = (double)view_cell(&p->gpus, i, "window_ns").u64;

		all[i].gpu = i;
		all[i].share = (double)view_cell(&p->gpus, i, "not_busy_ns").u64 /
			       (window > 0 ? window : 1);
	}
	qsort(all, count, sizeof(*all), compare_worst);
	chosen[n++] = all[0].gpu;
	chosen[n++] = all[(count - 1) / 2].gpu;
	for (i = 3; i; i--)
		chosen[n++] = all[count - i].gpu;
	free(all);
	return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* page/gpus.h - the classes of a GPU's time, and which of many GPUs get a line. */
#ifndef ANALYZE_PAGE_GPUS_H
#define ANALYZE_PAGE_GPUS_H

#include "analyze/text/page.h"

enum { CLASS_IDLE_ROW = 3, CLASS_LEAD_ROW, CLASS_TAIL_ROW, CLASS_ROWS };
struct gpu_class {
	const char *column, *label;
	char letter;
	bool always; /* lead and tail are left out where they are nothing */
};
extern const struct gpu_class gpu_classes[CLASS_ROWS];

/* Where nothing was seen in a sampled file nobody knows whether the GPU was idle. */
char gpu_class_letter(const struct page *p, size_t class);
/* Nanoseconds of each class. */
void gpu_parts(const struct view *v, size_t row, double parts[CLASS_ROWS]);

/* "rank 0", "GPU 1", or both where both differ. */
enum { GPU_LABEL = 64 };
const char *gpu_label(const struct page *p, size_t gpu, char out[GPU_LABEL]);
/*
 * Which GPUs get a line: all of a few, else the least, the median and the most of time that is not
 * busy, and two more of the worst.
 */
size_t gpus_choose(const struct page *p, size_t chosen[RANK_LINES]);

#endif

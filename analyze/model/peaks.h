/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peaks.h - the peak rates of a GPU, from its vendor's data sheet or from a file of the user's.
 *
 * Rates are dense, in TFLOP/s (INT8: TOP/s), with accumulation in FP32.  They are per device as
 * traces count devices: a die of an MI250 is one.
 */
#pragma once

#include "analyze/model/model.h"
#include "schemas/base/status.h"

#include <stdint.h>

enum { PEAKS_NAME = 64 };
struct peaks {
	const char *name;           /* of the data sheet: "H100 SXM"; constant */
	const char *source;         /* constant */
	float matrix[NUMBER_COUNT]; /* by tensor or matrix cores; 0: it has none for the type */
	float fp64, fp32;           /* by plain arithmetic; 0: unknown */
	float memory_gb, link_gb;   /* GB/s; links in both directions together; 0: unknown */
	float pcie_gb;              /* of 16 lanes in both directions together */
	float sparse;               /* what a rate is multiplied with for 2:4 sparsity */
	float boost_mhz;            /* at which the rates hold; 0: unknown */
};
/* What the input says about a device; 0 and "" if it says nothing. */
struct peaks_device {
	const char *name;
	uint64_t units, warp, major, minor, memory; /* SMs or CUs; bytes */
};
/* NULL: unknown GPU.  `file`: from peaks_load(), or NULL. */
struct peaks_file;
const struct peaks *peaks_find(const struct peaks_file *file, const struct peaks_device *device);

/* TFLOP/s of a cost; 0: unknown.  `is_tf32`: a kernel of it says that it rounds to TF32. */
double peaks_rate(const struct peaks *p, const struct model_cost *cost, bool is_tf32);

/*
 * A file has a line for each GPU: a part of its name, a colon, and words of the form key=number
 * with fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 (matrix), fp64_vector, fp32_vector (TFLOP/s),
 * memory, link, pcie (GB/s), mhz.  What a line does not say stays as in the data sheet.  Lines that
 * begin with # are comments.
 */
enum status peaks_load(struct peaks_file **out, const char *text, size_t len, struct error *err);
void peaks_free(struct peaks_file *file); /* accepts NULL */
/* Rows of the table for tests; NULL past the end. */
const struct peaks *peaks_row(size_t index, const char **pattern);

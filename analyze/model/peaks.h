/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peaks.h - the peak rates of a GPU, from its vendor's data sheet or from the user's file.
 *
 * Rates are dense, in TFLOP/s (INT8: TOP/s), with accumulation in FP32. They are per device as
 * traces count devices: a die of an MI250 is one.
 */
#pragma once

#include "analyze/model/model.h"
#include "schemas/base/status.h"

#include <stdint.h>

enum { PEAKS_NAME = 64 };
struct peaks {
	const char *name;           /* name of the data sheet: "H100 SXM"; constant */
	const char *source;         /* constant */
	float matrix[NUMBER_COUNT]; /* with tensor or matrix cores; 0: the type is not supported */
	float fp64, fp32;           /* without them; 0: unknown */
	float memory_gb, link_gb;   /* GB/s; links in both directions together; 0: unknown */
	float pcie_gb;              /* 16 lanes, both directions together */
	float sparse;               /* factor for 2:4 sparsity */
	float boost_mhz;            /* clock for which the rates hold; 0: unknown */
};
/* A device as the input describes it; 0 and "" for what is missing. */
struct peaks_device {
	const char *name;
	uint64_t units, warp, major, minor, memory; /* SMs or CUs; bytes */
};
/* Returns NULL for an unknown GPU. `file`: from peaks_load(), or NULL. */
struct peaks_file;
const struct peaks *peaks_find(const struct peaks_file *file, const struct peaks_device *device);

/* Returns the TFLOP/s that apply to a cost; 0: unknown. `is_tf32`: the name of one of its kernels
 * shows that it rounds to TF32. */
double peaks_rate(const struct peaks *p, const struct model_cost *cost, bool is_tf32);

/* A file has a line for each GPU: a part of its name, a colon, and words of the form key=number
 * with fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 (matrix), fp64_vector, fp32_vector (TFLOP/s),
 * memory, link, pcie (GB/s), mhz. Keys that are missing keep the value of the data sheet. Lines
 * that begin with # are comments. */
enum status peaks_load(struct peaks_file **out, const char *text, size_t len, struct error *err);
void peaks_free(struct peaks_file *file); /* accepts NULL */
/* For tests: returns a row of the table; NULL past the end. */
const struct peaks *peaks_row(size_t index, const char **pattern);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operator.h - what an operator of a framework computes, by its name.
 *
 * Names are those of PyTorch's dispatcher ("aten::addmm"), of libraries that register operators
 * there, of autograd's functions ("AddmmBackward0") and of torch.compile's kernels
 * ("triton_poi_fused_add_0").  Stateless; whoever asks for every event keeps the answer by name.
 */
#ifndef CONVERT_NAME_OPERATOR_H
#define CONVERT_NAME_OPERATOR_H

/* "gemm", "convolution", "attention", ... or "other"; constant, never NULL. */
const char *operator_category(const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle.h - the C++ text of a mangled name, as the C++ runtime writes it.
 *
 * CUPTI gives kernels their mangled names, while PyTorch's profiler, Nsight and everything that
 * looks for "ncclDevKernel" or "at::native" know the C++ text.  Any thread may ask; a name takes
 * some milliseconds and megabytes at most, however hostile.
 */
#ifndef CONVERT_NAME_DEMANGLE_H
#define CONVERT_NAME_DEMANGLE_H

/* To be freed by the caller; NULL: the name is not mangled, or has in it what is not read. */
char *name_demangle(const char *name);

#endif

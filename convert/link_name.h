/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_name.h - which calls of CUDA's and HIP's runtime and driver put work on a GPU.
 *
 * The one list, for every reader and for the stage that links: by the call's name alone, whatever
 * version its end says.  Stateless.
 */
#ifndef CONVERT_LINK_NAME_H
#define CONVERT_LINK_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* `name` need not end with a zero. */
bool launch_name(const char *name, size_t len);

#endif

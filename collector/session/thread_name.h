/* SPDX-License-Identifier: Apache-2.0 */
/* thread_name.h - the current name of a thread of this process. */
#ifndef COLLECTOR_SESSION_THREAD_NAME_H
#define COLLECTOR_SESSION_THREAD_NAME_H

#include <stddef.h>
#include <stdint.h>

enum { COMM_MAX = 32 };

/* Returns the length; not terminated.  0: the thread has ended. */
size_t comm_read(uint32_t tid, char out[COMM_MAX]);

#endif

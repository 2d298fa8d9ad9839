/* SPDX-License-Identifier: Apache-2.0 */
/* comm.h - the name of a thread of this process, as the kernel has it now. */
#ifndef COLLECTOR_COMM_H
#define COLLECTOR_COMM_H

#include <stddef.h>
#include <stdint.h>

enum { COMM_MAX = 32 };

/* Its length, not terminated; 0: the thread is gone. */
size_t comm_read(uint32_t tid, char out[COMM_MAX]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/thread_name.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

size_t comm_read(uint32_t tid, char out[COMM_MAX])
{
	char path[64];
	ssize_t n = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, out, COMM_MAX);
		close(fd);
	}
	while (n > 0 && out[n - 1] == '\n')
		n--;
	return n > 0 ? (size_t)n : 0;
}

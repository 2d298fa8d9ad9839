/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/health/host.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A small file as text; false: there is none. */
static bool read_text(const char *path, char *text, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, cap - 1) : -1;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static void put(struct host_values *out, enum health_host what, double value)
{
	out->value[what] = value;
	out->known |= UINT64_C(1) << what;
}

/* The number of the word of /proc/PID/stat, from 3; its second may hold blanks and brackets. */
static uint64_t stat_word(const char *text, unsigned number)
{
	const char *at = strrchr(text, ')');

	for (unsigned i = 2; at && i < number; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

void health_host_sample(struct host_state *state, const char *proc, uint64_t now_ns,
			struct host_values *out)
{
	enum { MAJOR_FAULTS = 12, USER = 14, SYSTEM = 15 };
	double passed_ns = (double)(now_ns - state->sampled_ns);
	bool has_before = state->sampled_ns && now_ns > state->sampled_ns;
	struct host_state now = { .sampled_ns = now_ns };
	char path[64], text[1024];

	out->known = 0;
	snprintf(path, sizeof(path), "%s/stat", proc);
	if (read_text(path, text, sizeof(text))) {
		uint64_t ticks = stat_word(text, USER) + stat_word(text, SYSTEM);

		now.processor_ns = ticks * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
		now.faults = stat_word(text, MAJOR_FAULTS);
		if (has_before && now.processor_ns >= state->processor_ns)
			put(out, HEALTH_processor_share,
			    (double)(now.processor_ns - state->processor_ns) / passed_ns * 100);
		if (has_before && now.faults >= state->faults)
			put(out, HEALTH_page_faults, (double)(now.faults - state->faults));
	}
	snprintf(path, sizeof(path), "%s/schedstat", proc);
	if (read_text(path, text, sizeof(text))) {
		const char *second = strchr(text, ' ');

		now.wait_ns = second ? strtoull(second, NULL, 10) : 0;
		if (has_before && second && now.wait_ns >= state->wait_ns)
			put(out, HEALTH_runnable_wait,
			    (double)(now.wait_ns - state->wait_ns) / passed_ns * 100);
	}
	const char *some = read_text("/proc/pressure/memory", text, sizeof(text))
				   ? strstr(text, "avg10=")
				   : NULL;
	if (some)
		put(out, HEALTH_memory_pressure, strtod(some + 6, NULL));
	*state = now;
}

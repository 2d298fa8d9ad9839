/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the questions of arena_filters(). */
#include "collector/arena/arena.h"
#include "collector/arena/introduce.h"
#include "collector/recorder/recorder.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Returns whether a process has this arena and a thread with more filters than the recorder. */
static bool is_any_filtered(const struct recorded *c, int filters)
{
	char line[PATH_MAX + 100], path[300], file[64];
	struct stat st = { 0 };
	bool is_any = false;
	glob_t found;
	unsigned uid;

	fstat(c->arena, &st);
	snprintf(file, sizeof(file), " %02x:%02x %llu ", major(st.st_dev), minor(st.st_dev),
		 (unsigned long long)st.st_ino);
	if (glob("/proc/[0-9]*/task/[0-9]*", GLOB_NOSORT, NULL, &found) != 0)
		return true;
	for (size_t i = 0; i < found.gl_pathc && !is_any; i++) {
		if (!seccomp_has_more(found.gl_pathv[i], filters))
			continue;
		snprintf(path, sizeof(path), "%s/maps", found.gl_pathv[i]);
		FILE *f = fopen(path, "re");
		bool is_hidden =
			!f && errno == EACCES; /* it can be this one, if it is this user's */
		if (is_hidden) {
			snprintf(path, sizeof(path), "%s/status", found.gl_pathv[i]);
			f = fopen(path, "re");
		}
		while (f && !is_any && fgets(line, sizeof(line), f))
			is_any = is_hidden ? sscanf(line, "Uid: %u", &uid) == 1 && uid == geteuid()
					   : strstr(line, file) != NULL;
		if (f)
			fclose(f);
	}
	globfree(&found);
	return is_any;
}

bool recorder_answer(const struct recorded *c, int filters)
{
	enum { AT = offsetof(struct arena_header, look_state) };
	uint64_t looks[1 + ARENA_LOOKS];
	int any_filtered = -1;
	bool is_asked = false;
	char proc[32];

	if (pread(c->arena, looks, sizeof(looks), AT) != sizeof(looks))
		return false;
	for (size_t i = 0; i < 1 + ARENA_LOOKS; i++) {
		uint64_t look = looks[i];
		if (!look || look & (LOOK_ANSWERS | LOOK_CLOSED))
			continue;
		/* In another PID namespace the thread's number is unknown, so use that of the
		 * process. */
		snprintf(proc, sizeof(proc), "/proc/%u",
			 c->pid == c->inner_pid ? (uint32_t)look : c->pid);
		if (look & LOOK_ANY && any_filtered < 0)
			any_filtered = is_any_filtered(c, filters);
		bool is_filtered = look & LOOK_ANY ? any_filtered : seccomp_has_more(proc, filters);
		look = look & LOOK_SILENT ? 0 : look | (is_filtered ? LOOK_FILTERED : LOOK_PLAIN);
		(void)!pwrite(c->arena, &look, sizeof(look), (off_t)(AT + i * sizeof(look)));
		is_asked = true;
	}
	return is_asked;
}

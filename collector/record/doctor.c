/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record/internal.h"

#include "collector/config/config.h"
#include "collector/store/store.h"
#include "schemas/base/buf.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void put_library(const char *library, struct buf *out)
{
	size_t (*doctor)(char *text, size_t size);
	const char *(*version)(void);
	void *handle = dlopen(library, RTLD_NOW);
	char text[8192] = "";

	if (!handle) {
		buf_putf(out, "library   cannot be loaded: %s\n", dlerror());
		return;
	}
	*(void **)&doctor = dlsym(handle, "tacho_doctor");
	*(void **)&version = dlsym(handle, "tacho_version");
	if (!doctor || !version) {
		buf_putf(out, "library   %s is no libtacho\n", library);
		dlclose(handle);
		return;
	}
	doctor(text, sizeof(text));
	buf_put_text(out, text);
	if (strcmp(version(), TACHO_VERSION) != 0)
		buf_putf(out, "library   its version is not that of this tool, %s\n",
			 TACHO_VERSION);
	dlclose(handle);
}

static bool is_of_others(const char *value, const char *library)
{
	return value && *value && strcmp(value, library) != 0;
}

void record_doctor(const struct config *c, const char *library, struct buf *out)
{
	static const char *const names[] = { "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
					     "LD_PRELOAD", "LD_AUDIT" };
	enum { NAMES = sizeof(names) / sizeof(names[0]) };
	bool is_set[NAMES];

	for (size_t i = 0; i < NAMES; i++) /* before the library sets its own */
		is_set[i] = is_of_others(getenv(names[i]), library);
	setenv("TACHO_CUPTI_LIB", c->cupti_lib,
	       1); /* the one option that the library looks at here */
	put_library(library, out);
	const char *folder = c->out;
	struct error err;
	struct statvfs v;
	bool made = false;

	if (store_make_folder(folder, &made, &err) != ST_OK)
		buf_putf(out, "logs      %s\n", err.text);
	else if (access(folder, W_OK | X_OK) != 0 || statvfs(folder, &v) != 0)
		buf_putf(out, "logs      %s cannot be written to: %s\n", folder, strerror(errno));
	else
		buf_putf(out, "logs      %s can be written to, %.1f GiB free\n", folder,
			 (double)v.f_bavail * (double)v.f_frsize / (1 << 30));
	if (made)
		rmdir(folder);
	if (c->rank.rank != RANK_UNKNOWN)
		buf_putf(out, "rank      %u of %u, by %s\n", c->rank.rank, c->rank.world_size,
			 c->rank.launcher);
	else
		buf_putf(out, "rank      none: no launcher's variable is set\n");
	for (size_t i = 0; i < NAMES; i++)
		if (is_set[i])
			buf_putf(out, "others    %s=%s is set: another tool may be at work\n",
				 names[i], getenv(names[i]));
}

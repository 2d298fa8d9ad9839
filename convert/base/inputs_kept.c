/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/base/inputs_kept.h"

#include "schemas/base/vec.h"

#include <string.h>
#include <unistd.h>

static char **kept;
static size_t count, cap;

/* Calls stat() each time, because the inode of a deleted input may belong to another file by now.
 * */
bool inputs_kept_has(const struct stat *st)
{
	for (size_t i = 0; i < count; i++) {
		struct stat now;
		int rc = strcmp(kept[i], "-") ? stat(kept[i], &now) : fstat(STDIN_FILENO, &now);

		if (rc == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino)
			return true;
	}
	return false;
}

enum status inputs_kept_note(const char *path, size_t len, struct error *err)
{
	TRY(vec_reserve(&kept, &cap, count + 1, err));
	kept[count] = strndup(path, len);
	if (!kept[count])
		return fail_memory(err);
	count++;
	return ST_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/base/inputs_kept.h"

#include "schemas/base/vec.h"

static struct identity {
	dev_t device;
	ino_t inode;
} * kept;
static size_t count, cap;

bool inputs_kept_has(const struct stat *st)
{
	for (size_t i = 0; i < count; i++)
		if (kept[i].device == st->st_dev && kept[i].inode == st->st_ino)
			return true;
	return false;
}

enum status inputs_kept_note(const struct stat *st, struct error *err)
{
	if (!S_ISREG(st->st_mode))
		return ST_OK;
	TRY(vec_reserve(&kept, &cap, count + 1, err));
	kept[count++] = (struct identity){ st->st_dev, st->st_ino };
	return ST_OK;
}

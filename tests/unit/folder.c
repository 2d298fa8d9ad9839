/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"

#include "tests/unit/unit.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

void folder_make(struct folder *s)
{
	*s = (struct folder){ .folder = "/tmp/tacho-test-XXXXXX" };
	if (!CHECK(mkdtemp(s->folder) != NULL))
		s->folder[0] = '\0';
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *ftw)
{
	(void)st;
	(void)what;
	(void)ftw;
	return remove(path);
}

void folder_remove(struct folder *s)
{
	if (s->folder[0])
		nftw(s->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *folder_path(struct folder *s, const char *name)
{
	char *slash;

	snprintf(s->path, sizeof(s->path), "%s/%s", s->folder, name);
	for (slash = s->path + strlen(s->folder) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(s->path, 0700);
		*slash = '/';
	}
	return s->path;
}

const char *folder_write(struct folder *s, const char *name, const void *bytes, size_t len)
{
	FILE *f = fopen(folder_path(s, name), "wb");

	if (!CHECK(f != NULL))
		return s->path;
	CHECK(fwrite(bytes, 1, len, f) == len);
	CHECK(fclose(f) == 0);
	return s->path;
}

const char *folder_gzip(struct folder *s, const char *name, const void *bytes, size_t len,
			int append)
{
	gzFile f = gzopen(folder_path(s, name), append ? "ab6" : "wb6");

	if (!CHECK(f != NULL))
		return s->path;
	CHECK(len == 0 || gzwrite(f, bytes, (unsigned)len) == (int)len);
	CHECK(gzclose(f) == Z_OK);
	return s->path;
}

void *folder_read(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	char *bytes = f && fstat(fileno(f), &st) == 0 ? malloc((size_t)st.st_size + 1) : NULL;

	*len = bytes ? fread(bytes, 1, (size_t)st.st_size, f) : 0;
	if (bytes)
		bytes[*len] = '\0';
	if (f)
		fclose(f);
	return bytes;
}

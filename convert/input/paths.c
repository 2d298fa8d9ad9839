/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input.h"

#include "convert/input/archive.h"
#include "convert/input/shelf.h"
#include "schemas/buf.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	DEPTH_MAX = 32,                   /* folders in folders */
	PATHS_BYTES = 256 * 1024 * 1024, /* of all texts */
};

/* Ends of names that say "trace"; each also with an ending of packed_ends. */
static const char *const trace_ends[] = { ".tacho", ".json", ".xplane.pb", ".sqlite" };
static const char *const packed_ends[] = { "", ".gz", ".zst", ".xz", ".bz2", ".lz4" };

struct walk {
	struct buf texts;   /* paths, each with its NUL */
	struct buf offsets; /* size_t into texts, one for each path */
	struct buf searched; /* bool, one for each path */
	struct buf path;    /* of the folder being read */
	const char *scratch;
};

static bool name_ends(const char *name, size_t len, const char *end)
{
	size_t end_len = strlen(end);

	return len > end_len && memcmp(name + len - end_len, end, end_len) == 0;
}

bool input_name_says_trace(const char *name)
{
	size_t i, j, len = strlen(name);

	if (name[0] == '.')
		return false;
	for (i = 0; i < sizeof(packed_ends) / sizeof(packed_ends[0]); i++) {
		size_t packed = strlen(packed_ends[i]);

		if (packed && !name_ends(name, len, packed_ends[i]))
			continue;
		for (j = 0; j < sizeof(trace_ends) / sizeof(trace_ends[0]); j++)
			if (name_ends(name, len - packed, trace_ends[j]))
				return true;
	}
	return false;
}

static void put_path(struct walk *w, const char *path, bool searched)
{
	size_t offset = w->texts.len;

	buf_put(&w->texts, path, strlen(path) + 1);
	buf_put(&w->offsets, &offset, sizeof(offset));
	buf_put(&w->searched, &searched, sizeof(searched));
}

static enum status walk_status(const struct walk *w, struct error *err)
{
	TRY(buf_status(&w->texts, err));
	TRY(buf_status(&w->offsets, err));
	TRY(buf_status(&w->searched, err));
	return buf_status(&w->path, err);
}

static enum status walk_folder(struct walk *w, unsigned depth, struct error *err);

/* One name in the folder w->path.  Links to folders are left alone: they may go in circles. */
static enum status walk_name(struct walk *w, const char *name, unsigned depth, struct error *err)
{
	size_t len = w->path.len;
	enum status status = ST_OK;
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return ST_OK;
	if (len && w->path.data[len - 1] != '/')
		buf_put_byte(&w->path, '/');
	buf_put_text(&w->path, name);
	TRY(walk_status(w, err));
	if (lstat(buf_text(&w->path), &st) == 0 && S_ISDIR(st.st_mode)) {
		status = walk_folder(w, depth + 1, err);
	} else if (input_name_says_trace(name) && stat(buf_text(&w->path), &st) == 0 &&
		   !S_ISDIR(st.st_mode)) {
		put_path(w, buf_text(&w->path), true);
		status = walk_status(w, err);
	}
	w->path.len = len;
	return status;
}

static enum status walk_folder(struct walk *w, unsigned depth, struct error *err)
{
	enum status status = ST_OK;
	struct dirent *entry;
	DIR *dir;

	if (depth > DEPTH_MAX)
		return ST_OK;
	dir = opendir(buf_text(&w->path));
	if (!dir)
		return fail(err, ST_IO, NOWHERE, "folder %s cannot be read: %s",
			    buf_text(&w->path), strerror(errno));
	while (status == ST_OK && (entry = readdir(dir)))
		status = walk_name(w, entry->d_name, depth, err);
	closedir(dir);
	return status;
}

static int compare_offsets(const void *a, const void *b, void *texts)
{
	const char *base = texts;

	return strcmp(base + *(const size_t *)a, base + *(const size_t *)b);
}

/* By name, those from `first` on: bytes of w->offsets. */
static void sort_paths(struct walk *w, size_t first)
{
	size_t count = (w->offsets.len - first) / sizeof(size_t);

	if (count)
		qsort_r(w->offsets.data + first, count, sizeof(size_t), compare_offsets, w->texts.data);
}

struct listing {
	struct walk *walk;
	const char *file;
	size_t count;
};

static enum status put_member(void *self, const char *address, struct error *err)
{
	struct listing *l = self;
	struct buf *path = &l->walk->path;

	buf_clear(path);
	buf_put_text(path, l->file);
	buf_put_byte(path, ':');
	buf_put_text(path, address);
	TRY(walk_status(l->walk, err));
	put_path(l->walk, buf_text(path), true);
	l->count++;
	return walk_status(l->walk, err);
}

/* An archive of several traces is a path for each, FILE:MEMBER; all else is itself, and a fault is
 * told when it is opened. */
static enum status put_file(struct walk *w, const char *operand, bool is_regular,
			    struct error *err)
{
	struct listing l = { .walk = w, .file = operand };
	size_t texts = w->texts.len, offsets = w->offsets.len, searched = w->searched.len;
	enum status status = is_regular ? input_shelf_list(operand, w->scratch, put_member, &l,
								   NULL)
					: ST_OK; /* a pipe is opened once */

	TRY(walk_status(w, err));
	if (status == ST_OK && l.count > 1) {
		sort_paths(w, offsets);
		return ST_OK;
	}
	w->texts.len = texts;
	w->offsets.len = offsets;
	w->searched.len = searched;
	put_path(w, operand, false);
	return walk_status(w, err);
}

static enum status find_operand(struct walk *w, const char *operand, struct error *err)
{
	size_t first = w->offsets.len;
	struct stat st;
	bool is_there = stat(operand, &st) == 0;

	if (!is_there || !S_ISDIR(st.st_mode))
		return put_file(w, operand, is_there && S_ISREG(st.st_mode), err);
	buf_clear(&w->path);
	buf_put_text(&w->path, operand);
	TRY(walk_folder(w, 0, err));
	if (w->offsets.len == first)
		return fail(err, ST_FORMAT, NOWHERE,
			    "folder %s holds no traces (no *.tacho, *.json, *.json.gz)", operand);
	sort_paths(w, first);
	return ST_OK;
}

/* Pointers and texts in one allocation. */
static enum status paths_make(struct input_paths *out, const struct walk *w, struct error *err)
{
	size_t i, count = w->offsets.len / sizeof(size_t);
	size_t list = count * sizeof(char *);
	char *texts;

	out->paths = malloc(list + count * sizeof(bool) + w->texts.len + 1);
	if (!out->paths)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for %zu paths", count);
	out->searched = (bool *)((char *)out->paths + list);
	if (count)
		memcpy(out->searched, w->searched.data, count * sizeof(bool));
	texts = (char *)(out->searched + count);
	if (w->texts.len)
		memcpy(texts, w->texts.data, w->texts.len);
	for (i = 0; i < count; i++) {
		size_t offset;

		memcpy(&offset, w->offsets.data + i * sizeof(offset), sizeof(offset));
		out->paths[i] = texts + offset;
	}
	out->count = count;
	return ST_OK;
}

enum status input_paths_find(struct input_paths *out, char *const *operands, size_t count,
			     const char *scratch, struct error *err)
{
	enum status status = ST_OK;
	struct walk w = { .scratch = scratch };
	size_t i;

	*out = (struct input_paths){ 0 };
	buf_init(&w.texts, PATHS_BYTES);
	buf_init(&w.offsets, PATHS_BYTES);
	buf_init(&w.searched, PATHS_BYTES);
	buf_init(&w.path, PATHS_BYTES);
	for (i = 0; i < count && status == ST_OK; i++)
		status = find_operand(&w, operands[i], err);
	if (status == ST_OK)
		status = paths_make(out, &w, err);
	buf_release(&w.texts);
	buf_release(&w.offsets);
	buf_release(&w.searched);
	buf_release(&w.path);
	return status;
}

void input_paths_free(struct input_paths *p)
{
	free(p->paths);
	input_shelf_clear();
	*p = (struct input_paths){ 0 };
}

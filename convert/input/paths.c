/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/input.h"

#include "convert/base/inputs_kept.h"
#include "convert/input/internal.h"
#include "schemas/base/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 32 /* nested folders */, PATHS_MOST = 1 << 20 };

/* Extensions of traces; one of packed_ends may follow. */
static const char *const trace_ends[] = { ".tacho",          ".json",       ".xplane.pb",
					  ".sqlite",         "_results.db", ".pftrace",
					  ".perfetto-trace", ".pickle",     ".pkl" };
/* Parts of the names that NCCL's inspector uses: HOST-pid123.log. */
static const char inspector_end[] = ".log", inspector_part[] = "-pid";
static const char *const packed_ends[] = { "", ".gz", ".zst", ".xz", ".bz2", ".lz4" };

struct search {
	struct input_paths *out;
	const char *scratch;
	const char *archive; /* operand whose members are being listed */
};

static enum status fail_empty(const char *folder, bool has_special, struct error *err)
{
	char ends[128] = "";

	for (size_t i = 0, len = 0; i < sizeof(trace_ends) / sizeof(trace_ends[0]); i++)
		len += (size_t)snprintf(ends + len, sizeof(ends) - len, "%s*%s", i ? ", " : "",
					trace_ends[i]);
	return fail(err, ST_FORMAT, NOWHERE, "folder %s contains no traces%s (no %s)", folder,
		    has_special ? ", FIFOs, devices and sockets aside" : "", ends);
}

static bool name_ends(const char *name, size_t len, const char *end)
{
	size_t end_len = strlen(end);

	return len > end_len && memcmp(name + len - end_len, end, end_len) == 0;
}

bool input_name_says_trace(const char *name)
{
	size_t len = strlen(name);

	if (name[0] == '.')
		return false;
	/* PyTorch's dumps end in the rank, after any name. */
	if (len && isdigit((unsigned char)name[len - 1]) && !strchr(name, '.'))
		return true;
	for (size_t i = 0; i < sizeof(packed_ends) / sizeof(packed_ends[0]); i++) {
		size_t packed = strlen(packed_ends[i]);

		if (packed && !name_ends(name, len, packed_ends[i]))
			continue;
		if (name_ends(name, len - packed, inspector_end) && strstr(name, inspector_part))
			return true;
		for (size_t j = 0; j < sizeof(trace_ends) / sizeof(trace_ends[0]); j++)
			if (name_ends(name, len - packed, trace_ends[j]))
				return true;
	}
	return false;
}

/* Adds a path, of which the list becomes the owner.  `path` is NULL if memory was short. */
static enum status add(struct input_paths *p, char *path, bool searched, struct error *err)
{
	enum status status = path ? ST_OK : fail_memory(err);

	if (status == ST_OK)
		status = vec_reserve(&p->paths, &p->paths_cap, p->count + 1, err);
	if (status == ST_OK)
		status = vec_reserve(&p->searched, &p->searched_cap, p->count + 1, err);
	if (status == ST_OK && p->count == PATHS_MOST)
		status = fail(err, ST_CEILING, NOWHERE, "more than %d files", PATHS_MOST);
	if (status != ST_OK) {
		free(path);
		return status;
	}
	p->searched[p->count] = searched;
	p->paths[p->count++] = path;
	return ST_OK;
}

/*
 * Adds a file that was found in a folder, and takes ownership of `path`.  Anything but a regular
 * file (a FIFO, a device, a socket) is left out: opening it may block forever, and reading it may
 * have side effects.
 */
static enum status add_found(struct input_paths *p, char *path, struct error *err)
{
	struct stat st;
	bool is_there = stat(path, &st) == 0;
	enum status status = ST_OK;

	if (is_there && S_ISREG(st.st_mode)) {
		status = inputs_kept_note(path, strlen(path), err);
		if (status == ST_OK)
			return add(p, path, true, err);
	}
	p->special += is_there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
	free(path);
	return status;
}

/* Searches a folder recursively.  Links to folders are not followed, because they may form cycles.
 * */
static enum status search_folder(struct search *s, const char *folder, unsigned depth,
				 struct error *err)
{
	const char *slash = folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/";
	enum status status = ST_OK;
	struct dirent *entry;
	DIR *dir;

	if (depth > DEPTH_MAX)
		return ST_OK;
	dir = opendir(folder);
	if (!dir)
		return fail(err, ST_IO, NOWHERE, "folder %s cannot be read: %s", folder,
			    strerror(errno));
	while (status == ST_OK && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		struct stat st;
		char *path;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (asprintf(&path, "%s%s%s", folder, slash, name) < 0) {
			status = fail_memory(err);
			break;
		}
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
			status = search_folder(s, path, depth + 1, err);
		} else if (input_name_says_trace(name)) {
			status = add_found(s->out, path, err);
			continue;
		} else if (s->out->other_count < INPUT_OTHERS_MOST) {
			s->out->others[s->out->other_count++] = path;
			continue;
		}
		free(path);
	}
	closedir(dir);
	return status;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status add_member(void *self, const char *address, struct error *err)
{
	struct search *s = self;
	char *path;

	if (asprintf(&path, "%s:%s", s->archive, address) < 0)
		path = NULL;
	return add(s->out, path, true, err);
}

enum status input_keep(const char *operand, struct error *err)
{
	const char *end = operand + strlen(operand);

	for (; end; end = memrchr(operand, ':', (size_t)(end - operand)))
		TRY(inputs_kept_note(operand, (size_t)(end - operand), err));
	return ST_OK;
}

static enum status search_operand(struct search *s, const char *operand, struct error *err)
{
	struct error own = { .status = ST_OK };
	struct input_paths *p = s->out;
	size_t first = p->count;
	enum status status = ST_FORMAT;
	struct stat st;
	bool is_there = stat(operand, &st) == 0, is_folder = is_there && S_ISDIR(st.st_mode);

	TRY(input_keep(operand, err));
	if (is_folder) {
		TRY(search_folder(s, operand, 0, err));
		if (p->count == first)
			return fail_empty(operand, p->special > 0, err);
	} else if (is_there && S_ISREG(st.st_mode)) { /* other files can be opened only once */
		s->archive = operand;
		status = archive_cache_list(operand, s->scratch, add_member, s, &own);
	}
	if (status == ST_MEMORY || status == ST_CEILING) {
		*err = own;
		return status;
	}
	if (is_folder || (status == ST_OK && p->count - first > 1)) {
		qsort(p->paths + first, p->count - first, sizeof(*p->paths), compare_paths);
		return ST_OK;
	}
	/* Opening the file reports what is wrong with it. */
	while (p->count > first)
		free(p->paths[--p->count]);
	return add(p, strdup(operand), false, err);
}

enum status input_paths_find(struct input_paths *out, char *const *operands, size_t count,
			     const char *scratch, struct error *err)
{
	struct search s = { .out = out, .scratch = scratch };
	enum status status = ST_OK;

	*out = (struct input_paths){ .count = 0 };
	for (size_t i = 0; i < count && status == ST_OK; i++)
		status = search_operand(&s, operands[i], err);
	return status;
}

char *input_identity(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct stat st = { .st_size = 0 }; /* a member of an archive has no size */
	char *identity;

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		st.st_size = 0;
	if (asprintf(&identity, "%s %lld", name, (long long)st.st_size) < 0)
		return NULL;
	return identity;
}

void input_paths_free(struct input_paths *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->paths[i]);
	free(p->paths);
	free(p->searched);
	for (size_t i = 0; i < p->other_count; i++)
		free(p->others[i]);
	archive_cache_clear();
	*p = (struct input_paths){ 0 };
}

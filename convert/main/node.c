/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/main/node.h"

#include "convert/main/pieces.h"
#include "convert/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNS "plugins/profile/"
#define PART ".part"
#define SPACE ".xplane.pb"

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), own = strlen(end);

	return len >= own && strcmp(text + len - own, end) == 0;
}

static const char *next_name(const struct buf *names, const char *at)
{
	const char *all = (const char *)names->data;

	at = at ? at + strlen(at) + 1 : all;
	return names->len && at < all + names->len ? at : NULL;
}

/* ---- caches ---- */

/* What XProf writes beside the files of a run, and nobody else. */
static bool is_cache(const char *name)
{
	static const char *const whole[] = { ".cached_tools.json", "cache_version.txt" };
	static const char *const ends[] = { ".SSTABLE", ".hlo_proto.pb", ".op_stats_v2.pb" };

	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (strcmp(name, whole[i]) == 0)
			return true;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (ends_in(name, ends[i]))
			return true;
	return false;
}

static enum status tidy_run(const char *folder, const char *run, size_t len, struct error *err)
{
	enum status status = ST_OK;
	struct dirent *entry;
	char *path;
	DIR *dir;

	if (asprintf(&path, "%s/%.*s", folder, (int)len, run) < 0)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a folder's name");
	dir = opendir(path);
	while (dir && status == ST_OK && (entry = readdir(dir)) != NULL)
		if (is_cache(entry->d_name) && unlinkat(dirfd(dir), entry->d_name, 0) != 0)
			status = fail(err, ST_IO, NOWHERE, "%s: cannot remove XProf's %s: %s", path,
				      entry->d_name, strerror(errno));
	if (dir)
		closedir(dir);
	free(path);
	return status;
}

enum status node_tidy(const char *folder, const struct buf *names, struct error *err)
{
	const char *last = NULL;
	size_t last_len = 0;

	for (const char *at = NULL; (at = next_name(names, at)) != NULL;) {
		const char *slash = strrchr(at, '/');
		size_t len = slash ? (size_t)(slash - at) : 0;

		if (strncmp(at, RUNS, strlen(RUNS)) != 0 ||
		    (last && len == last_len && strncmp(last, at, len) == 0))
			continue;
		TRY(tidy_run(folder, at, len, err));
		last = at;
		last_len = len;
	}
	return ST_OK;
}

/* ---- one file for a host ---- */

/* "plugins/profile/RUN/HOST" of a piece; 0: it is none. */
static size_t host_length(const char *name)
{
	const char *dot = ends_in(name, PART) ? name + strlen(name) - strlen(PART) : NULL;

	while (dot && dot > name && *--dot != '.')
		;
	return dot ? (size_t)(dot - name) : 0;
}

static enum status take_piece(struct pieces *p, enum pieces_pass pass, const char *folder,
			      const char *piece, bool is_first, struct error *err)
{
	enum status status;
	char *path;

	if (asprintf(&path, "%s/%s", folder, piece) < 0)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a file's name");
	status = pieces_take(p, pass, path, is_first, err);
	free(path);
	return status;
}

/* All pieces of the host of `first`, in order, for each pass. */
static enum status take_pieces(struct pieces *p, const char *folder, const struct buf *names,
			       const char *first, struct error *err)
{
	size_t len = host_length(first);

	for (unsigned pass = 0; pass < PIECES_PASSES; pass++) {
		if (pass == PIECES_HOST)
			TRY(pieces_begin_host(p, err));
		for (const char *at = first; at; at = next_name(names, at))
			if (host_length(at) == len && strncmp(at, first, len) == 0)
				TRY(take_piece(p, pass, folder, at, at == first, err));
	}
	return ST_OK;
}

/* Pieces of the host of `first`, in order, as one file. */
static enum status join_pieces(const char *folder, const struct buf *names, const char *first,
			       const char *made, const char *name, struct error *err)
{
	struct pieces p = { .name = name };
	enum status status;
	int to = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (to < 0)
		return fail(err, ST_IO, NOWHERE, "cannot create %s: %s", name, strerror(errno));
	temporary_note(made);
	p.to = to;
	status = take_pieces(&p, folder, names, first, err);
	if (close(to) != 0 && status == ST_OK)
		status = fail(err, ST_IO, NOWHERE, "cannot write %s: %s", name, strerror(errno));
	if (status == ST_OK && rename(made, name) != 0)
		status = fail(err, ST_IO, NOWHERE, "cannot name %s: %s", name, strerror(errno));
	if (status != ST_OK)
		unlink(made);
	temporary_forget(made);
	return status;
}

/* Removes the pieces of a host or, `keep`, gives each the name of a file of its own. */
static enum status part_with(const char *folder, const struct buf *names, const char *first,
			     bool keep, struct error *err)
{
	size_t len = host_length(first);

	for (const char *at = first; at; at = next_name(names, at)) {
		char *path, *name;

		if (host_length(at) != len || strncmp(at, first, len) != 0)
			continue;
		if (asprintf(&path, "%s/%s", folder, at) < 0)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for a file's name");
		if (asprintf(&name, "%.*s" SPACE, (int)(strlen(path) - strlen(PART)), path) < 0) {
			free(path);
			return fail(err, ST_MEMORY, NOWHERE, "no memory for a file's name");
		}
		if (keep)
			rename(path, name);
		else
			unlink(path);
		temporary_forget(path);
		free(path);
		free(name);
	}
	return ST_OK;
}

static uint64_t bytes_of(const char *folder, const struct buf *names, const char *first)
{
	size_t len = host_length(first);
	uint64_t bytes = 0;

	for (const char *at = first; at; at = next_name(names, at)) {
		struct stat st;
		char *path;

		if (host_length(at) != len || strncmp(at, first, len) != 0 ||
		    asprintf(&path, "%s/%s", folder, at) < 0)
			continue;
		bytes += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
		free(path);
	}
	return bytes;
}

static enum status join_host(const char *folder, const struct buf *names, const char *first,
			     struct error *err)
{
	char *name = NULL, *made = NULL;
	enum status status = ST_OK;

	if (asprintf(&name, "%s/%.*s" SPACE, folder, (int)host_length(first), first) < 0)
		name = NULL;
	if (name && asprintf(&made, "%s.%ld.part", name, (long)getpid()) < 0)
		made = NULL;
	if (!made)
		status = fail(err, ST_MEMORY, NOWHERE, "no memory for a file's name");
	else
		status = join_pieces(folder, names, first, made, name, err);
	free(made);
	free(name);
	return status;
}

static bool is_first(const struct buf *names, const char *piece)
{
	size_t len = host_length(piece);

	for (const char *at = NULL; (at = next_name(names, at)) != NULL && at != piece;)
		if (host_length(at) == len && strncmp(at, piece, len) == 0)
			return false;
	return true;
}

/* What is not done with yet, lest a fault or a signal leaves it. */
static void each_piece(const char *folder, const struct buf *names, void (*act)(const char *path))
{
	for (const char *at = NULL; (at = next_name(names, at)) != NULL;) {
		char *path;

		if (!host_length(at) || asprintf(&path, "%s/%s", folder, at) < 0)
			continue;
		act(path);
		free(path);
	}
}

static void remove_piece(const char *path)
{
	unlink(path);
	temporary_forget(path);
}

static enum status join_all(const char *folder, const struct buf *names, uint64_t most,
			    unsigned *apart, struct error *err)
{
	for (const char *at = NULL; (at = next_name(names, at)) != NULL;) {
		bool fits;

		if (!host_length(at) || !is_first(names, at))
			continue;
		fits = bytes_of(folder, names, at) <= most;
		*apart += !fits;
		if (fits)
			TRY(join_host(folder, names, at, err));
		TRY(part_with(folder, names, at, !fits, err));
	}
	return ST_OK;
}

enum status node_join(const char *folder, const struct buf *names, uint64_t most, unsigned *apart,
		      struct error *err)
{
	enum status status;

	each_piece(folder, names, temporary_note);
	status = join_all(folder, names, most, apart, err);
	if (status != ST_OK)
		each_piece(folder, names, remove_piece);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/input.h"

#include "convert/base/temporary.h"
#include "convert/input/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WINDOW_BYTES = 256 * 1024, /* small enough to stay in the second-level cache */
	COPY_BYTES = 256 * 1024,
	BOMB_BYTES = 256 * 1024 * 1024, /* an input that unpacks to more than this and ... */
	BOMB_RATIO = 200,               /* ... more than this many times its size is not a trace */
};

enum { MILLION = 1000000 };

struct input {
	char *path, *scratch;
	int fd;
	bool owns_fd;
	uint64_t file_bytes;        /* size of a regular file; 0: unknown */
	struct unpack *unpack;      /* of the file; NULL after the end */
	struct archive_in *archive; /* the archive in `unpack`; NULL: no archive */
	struct unpack *member;      /* the member of `archive` */
	char *member_name;          /* NULL: the only trace in the archive */
	struct input_ahead *ahead;  /* NULL: bytes are unpacked on demand */
	struct error fault;         /* the error that stopped unpacking */

	/* Bytes that were read but not skipped: view[at .. at + len). */
	const uint8_t *view; /* `window`, or a block of `ahead` */
	uint8_t *window;
	size_t cap, at, len;
	uint64_t skipped;
	bool ended;
	_Atomic uint64_t packed_bytes; /* consumed from the file; for input_look() */
	_Atomic uint32_t given;        /* millionths plus 1; 0: nothing was reported */

	bool is_random, is_passed; /* is_passed: input_passed() counts, not input_read_at() */
	int random_fd;             /* `fd` itself, or the scratch file */
	uint64_t size;
};

/* Reads the decompressed bytes of the file; an unpack_from. */
static enum status read_unpacked(void *self, void *out, size_t cap, size_t *got, struct error *err)
{
	return unpack_read(((struct input *)self)->unpack, out, cap, got, err);
}

/* Opens the archive in a path "FILE:MEMBER" and sets in->member_name.  Returns -1 if there is none.
 * */
static int open_archive(struct input *in)
{
	for (char *colon = strchr(in->path, ':'); colon; colon = strchr(colon + 1, ':')) {
		struct stat st;
		int fd = -1;

		*colon = '\0';
		if (stat(in->path, &st) == 0 && S_ISREG(st.st_mode))
			fd = open(in->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		*colon = ':';
		if (fd < 0)
			continue;
		in->member_name = strdup(colon + 1);
		return archive_cache_seek(fd, in->member_name);
	}
	errno = ENOENT;
	return -1;
}

static enum status open_file(struct input *in, struct error *err)
{
	struct stat st;

	if (strcmp(in->path, "-") == 0) {
		in->fd = STDIN_FILENO;
	} else {
		in->fd = open(in->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (in->fd < 0 && errno == ENOENT)
			in->fd = open_archive(in);
		in->owns_fd = true;
	}
	if (in->fd < 0)
		return fail(err, ST_IO, NOWHERE, "cannot be opened: %s", strerror(errno));
	if (fstat(in->fd, &st) != 0)
		return fail(err, ST_IO, NOWHERE, "cannot be examined: %s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return fail(err, ST_IO, NOWHERE, "is a folder");
	if (S_ISREG(st.st_mode))
		in->file_bytes = (uint64_t)st.st_size;
	return ST_OK;
}

/* Determines the compression and the archive format.  An error of the first bytes is returned when
 * they are read. */
static enum status open_inside(struct input *in, struct error *err)
{
	TRY(unpack_open(&in->unpack, unpack_from_fd, &in->fd, err));
	if (!archive_is(in->unpack)) {
		if (!in->member_name)
			return ST_OK;
		return fail(err, ST_FORMAT, NOWHERE, "is not in an archive");
	}
	TRY(archive_in_open(&in->archive, read_unpacked, in, in->member_name, err));
	return unpack_open(&in->member, archive_in_read, in->archive, err);
}

/* Reads the input's bytes, on the reader's thread or on the one that reads ahead. */
static enum status read_inside(void *self, void *out, size_t cap, size_t *got, struct error *err)
{
	struct input *in = self;
	enum status status = in->member ? unpack_read(in->member, out, cap, got, err)
					: read_unpacked(in, out, cap, got, err);

	atomic_store_explicit(&in->packed_bytes, unpack_packed(in->unpack), memory_order_relaxed);
	return status;
}

void input_read_ahead(struct input *in)
{
	bool is_packed = in->unpack && (in->archive || !unpack_is_plain(in->unpack));

	if (in->file_bytes && is_packed && !in->ahead && !in->is_random)
		input_ahead_open(&in->ahead, read_inside, in, NULL);
}

enum status input_open(struct input **out, const char *path, const char *scratch, struct error *err)
{
	struct input *in = calloc(1, sizeof(*in));
	enum status status;

	*out = NULL;
	if (!in)
		return fail_memory(err);
	in->fd = in->random_fd = -1;
	in->path = strdup(path);
	in->scratch = strdup(scratch ? scratch : "/tmp");
	if (!in->path || !in->scratch)
		status = fail_memory(err);
	else
		status = open_file(in, err);
	if (status == ST_OK)
		status = open_inside(in, err);
	if (status != ST_OK) {
		input_close(in);
		return status;
	}
	*out = in;
	return ST_OK;
}

/* Frees everything that only forward reading needs, so that 1,024 inputs at their end stay small.
 * */
static void release_window(struct input *in)
{
	input_ahead_close(in->ahead);
	in->ahead = NULL;
	unpack_close(in->member);
	archive_in_close(in->archive);
	unpack_close(in->unpack);
	in->member = in->unpack = NULL;
	in->archive = NULL;
	free(in->window);
	in->view = in->window = NULL;
	in->cap = in->at = in->len = 0;
}

void input_close(struct input *in)
{
	if (!in)
		return;
	release_window(in);
	if (in->random_fd >= 0 && in->random_fd != in->fd)
		close(in->random_fd);
	if (in->owns_fd && in->fd >= 0)
		close(in->fd);
	free(in->path);
	free(in->member_name);
	free(in->scratch);
	free(in);
}

const char *input_path(const struct input *in)
{
	return strcmp(in->path, "-") == 0 ? "(stdin)" : in->path;
}

/* ---- reading forward ---- */

/* Makes space in the window for `want` bytes from the current position, and for an efficient read.
 * */
static enum status window_reserve(struct input *in, size_t want, struct error *err)
{
	size_t cap = in->cap ? in->cap : WINDOW_BYTES;
	bool is_lent = in->view != in->window;
	uint8_t *moved = in->window;

	if (!is_lent && in->at && in->len)
		memmove(in->window, in->window + in->at, in->len);
	while (cap < want + WINDOW_BYTES / 2)
		cap *= 2;
	if (cap != in->cap)
		moved = realloc(in->window, cap);
	if (!moved)
		return fail_memory(err);
	if (is_lent && in->len)
		memcpy(moved, in->view + in->at, in->len);
	in->view = in->window = moved;
	in->cap = cap;
	in->at = 0;
	return ST_OK;
}

/* Reads until `want` bytes are available, or to the end. */
static enum status window_fill(struct input *in, size_t want, struct error *err)
{
	while (!in->ended && in->len < want) {
		const uint8_t *bytes = in->view ? in->view + in->at : NULL;
		size_t before = in->len;

		if (in->ahead && before <= INPUT_AHEAD_KEEP) { /* fits in front of the next block */
			input_ahead_lend(in->ahead, &bytes, &in->len, &in->fault);
			in->view = bytes;
			in->at = 0;
		} else {
			size_t got = 0;

			TRY(window_reserve(in, want, err));
			if (in->ahead) {
				input_ahead_lend(in->ahead, &bytes, &got, &in->fault);
				TRY(window_reserve(in, in->len + got, err));
				if (got)
					memcpy(in->window + in->len, bytes, got);
			} else if (read_inside(in, in->window + in->len, in->cap - in->len, &got,
					       &in->fault) != ST_OK) {
				got = 0;
			}
			in->len += got;
		}
		in->ended = in->len == before;
	}
	return ST_OK;
}

enum status input_peek(struct input *in, size_t want, const uint8_t **bytes, size_t *len,
		       struct error *err)
{
	*bytes = (const uint8_t *)"";
	*len = 0;
	if (want > INPUT_PEEK_MAX)
		want = INPUT_PEEK_MAX;
	if (in->len < want && !in->ended)
		TRY(window_fill(in, want, err));
	if (in->len) {
		*bytes = in->view + in->at;
		*len = in->len;
		return ST_OK;
	}
	if (!in->ended)
		return ST_OK;
	release_window(in);
	if (in->fault.status != ST_OK && err)
		*err = in->fault;
	return in->fault.status;
}

void input_skip(struct input *in, size_t len)
{
	if (len > in->len)
		len = in->len;
	in->at += len;
	in->len -= len;
	in->skipped += len;
}

uint64_t input_at(const struct input *in)
{
	return in->skipped;
}

/* ---- random access ---- */

/* Copies all decompressed bytes to the scratch file; the error that ended them remains in
 * in->fault. */
static enum status copy_to_scratch(struct input *in, struct error *err)
{
	while (!in->ended || in->len) {
		const uint8_t *bytes;
		uint64_t packed;
		size_t len;

		if (input_peek(in, COPY_BYTES, &bytes, &len, err) != ST_OK || !len)
			break;
		TRY(temporary_write(in->random_fd, bytes, len, err));
		in->size += len;
		packed = atomic_load_explicit(&in->packed_bytes, memory_order_relaxed);
		if (in->size > BOMB_BYTES && in->size / BOMB_RATIO > packed)
			return fail(err, ST_FORMAT, in->size,
				    "unpacks to more than %d times its size, which no trace does",
				    BOMB_RATIO);
		input_skip(in, len);
	}
	return ST_OK;
}

enum status input_random(struct input *in, struct error *err)
{
	struct stat st;
	enum status status;

	if (in->is_random)
		return ST_OK;
	if (in->file_bytes && in->unpack && !in->archive && unpack_is_plain(in->unpack)) {
		if (fstat(in->fd, &st) != 0)
			return fail(err, ST_IO, NOWHERE, "cannot be examined: %s", strerror(errno));
		in->random_fd = in->fd;
		in->size = (uint64_t)st.st_size;
		status = ST_OK;
	} else if (in->skipped) {
		return fail(err, ST_IO, in->skipped, "cannot read earlier bytes again");
	} else {
		in->random_fd = temporary_open(in->scratch);
		if (in->random_fd < 0)
			return fail(err, ST_IO, NOWHERE, "cannot create a temporary file in %s: %s",
				    in->scratch, strerror(errno));
		status = copy_to_scratch(in, err);
	}
	in->is_random = status == ST_OK;
	in->ended = true; /* for forward reading */
	release_window(in);
	return status;
}

uint64_t input_size(const struct input *in)
{
	return in->size;
}

enum status input_read_at(const struct input *in, uint64_t at, void *bytes, size_t len, size_t *got,
			  struct error *err)
{
	uint8_t *to = bytes;

	*got = 0;
	if (len && at >= in->size && in->fault.status != ST_OK) {
		if (err)
			*err = in->fault;
		return in->fault.status;
	}
	while (*got < len) {
		ssize_t n = pread(in->random_fd, to + *got, len - *got, (off_t)(at + *got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(err, ST_IO, at, "cannot be read: %s", strerror(errno));
		if (n == 0)
			break;
		*got += (size_t)n;
	}
	if (in->random_fd == in->fd && !in->is_passed) /* otherwise unpacking counted the bytes */
		atomic_fetch_add_explicit(&((struct input *)(uintptr_t)in)->packed_bytes, *got,
					  memory_order_relaxed);
	return ST_OK;
}

void input_note(struct input *in, uint64_t given, uint64_t all)
{
	double share = all ? (double)given / (double)all : 1;

	atomic_store_explicit(&in->given, 1 + (uint32_t)(share * MILLION), memory_order_relaxed);
}

void input_passed(struct input *in, uint64_t done, uint64_t all)
{
	if (!in->is_passed) /* set before other threads read */
		in->is_passed = true;
	if (in->random_fd == in->fd)
		atomic_store_explicit(&in->packed_bytes,
				      (uint64_t)((double)done / (double)all * (double)in->size),
				      memory_order_relaxed);
	else
		input_note(in, done, all);
}

void input_look(const struct input *in, struct input_progress *out)
{
	uint32_t given = atomic_load_explicit(&in->given, memory_order_relaxed);
	uint64_t done = atomic_load_explicit(&in->packed_bytes, memory_order_relaxed);

	out->all_bytes = in->file_bytes;
	out->read_bytes = in->file_bytes && done > in->file_bytes ? in->file_bytes : done;
	out->share = in->file_bytes ? (double)out->read_bytes / (double)in->file_bytes : 0;
	if (given) /* reading and delivering take about equally long */
		out->share = (out->share + (double)(given - 1) / MILLION) / 2;
}

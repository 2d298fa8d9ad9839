/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/output/output.h"

#include "convert/base/inputs_kept.h"
#include "convert/base/parallel.h"
#include "convert/base/temporary.h"
#include "convert/output/gzip.h"
#include "schemas/base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BLOCK_BYTES = 256 * 1024,
	RESERVE_MOST = 64 * 1024,
	BLOCKS = 3,     /* one is filled while the others are written */
	GZIP_LEVEL = 3, /* output is 1/4 larger than at 6, more than twice as fast */
};

/* A file that is complete under its temporary name and will be renamed by the commit. */
struct out_made {
	char *temporary, *name;
};

struct out_block {
	size_t filled;
	uint64_t at; /* offset in the file */
	int fault;   /* errno of the writing thread; 0: none */
	uint8_t bytes[BLOCK_BYTES];
};

struct out {
	char *folder; /* NULL: a single file */
	char *name;   /* path of the current file; NULL: standard output */
	char *temporary;
	int fd; /* -1: no open file */
	struct gzip *gzip;
	struct out_made *made;
	size_t made_count, made_cap;
	uint64_t bytes, stored;
	uint64_t ended, largest; /* bytes of all ended files; of the largest one */
	unsigned threads;
	struct job_queue *crew;           /* writes blocks of a regular file; NULL: not started */
	struct out_block *now;            /* the block that is being filled */
	struct out_block *blocks[BLOCKS]; /* NULL: not allocated yet */
	size_t turn;                      /* index of `now` in `blocks` */
	uint64_t given;                   /* bytes of the open file that were passed to `crew` */
	struct error error;               /* the first error; status ST_OK: none */
};

static enum status broken(struct out *o, struct error *err)
{
	if (o->error.status != ST_OK && err)
		*err = o->error;
	return o->error.status;
}

static enum status cannot_write(const struct out *o, int fault, struct error *err)
{
	return fail(err, ST_IO, NOWHERE, "cannot write %s: %s",
		    o->name ? o->name : "standard output", strerror(fault));
}

/* Writes to the file's current position, or at offset `at` if that is >= 0.  Returns 0 or errno. */
static int write_all(int fd, const uint8_t *bytes, size_t len, off_t at)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = at < 0 ? write(fd, bytes + done, len - done)
				   : pwrite(fd, bytes + done, len - done, at + (off_t)done);

		if (n < 0 && errno != EINTR)
			return errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static enum status write_file(void *self, const void *bytes, size_t len, struct error *err)
{
	struct out *o = self;
	int fault = write_all(o->fd, bytes, len, -1);

	if (fault)
		return cannot_write(o, fault, err);
	o->stored += len;
	return ST_OK;
}

/* Refuses to overwrite an input, which is read while the output is written and may be the only
 * copy. */
static enum status refuse_input(const char *name, const struct stat *st, struct error *err)
{
	return S_ISREG(st->st_mode) && inputs_kept_has(st)
		       ? fail(err, ST_USAGE, NOWHERE,
			      "%s is an input and is not overwritten: choose another output", name)
		       : ST_OK;
}

/* Begins the file `name`, of which `o` becomes the owner, under a temporary name in the same
 * folder. */
static enum status begin_file(struct out *o, char *name, struct error *err)
{
	size_t len = name ? strlen(name) : 0;
	struct stat st;
	bool is_there = name && stat(name, &st) == 0;

	o->name = name;
	if (!name)
		return fail_memory(err);
	if (is_there)
		TRY(refuse_input(name, &st, err));
	/* A device or pipe (/dev/null) is opened itself, because a rename would replace it. */
	if (is_there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		o->fd = open(name, O_WRONLY | O_CLOEXEC);
		return o->fd >= 0 ? ST_OK
				  : fail(err, ST_IO, NOWHERE, "cannot open %s: %s", name,
					 strerror(errno));
	}
	if (asprintf(&o->temporary, "%s.%ld.part", name, (long)getpid()) < 0) {
		o->temporary = NULL;
		return fail_memory(err);
	}
	temporary_note(o->temporary);
	o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (o->fd < 0)
		return fail(err, ST_IO, NOWHERE, "cannot create %s: %s", name, strerror(errno));
	if (len <= 3 || strcmp(name + len - 3, ".gz") != 0)
		return ST_OK;
	TRY(gzip_new(&o->gzip, GZIP_LEVEL, write_file, o, err));
	gzip_set_threads(o->gzip, o->threads);
	return ST_OK;
}

/* ---- blocks, written by another thread while the next is filled ---- */

static void write_block(void *self, void *job)
{
	const struct out *o = self;
	struct out_block *p = job;

	p->fault = write_all(o->fd, p->bytes, p->filled, (off_t)p->at);
}

/* Takes written blocks back: all of them, or one if no other block is free. */
static enum status settle_blocks(struct out *o, bool all, struct error *err)
{
	struct out_block *p;
	int fault = 0;

	while (o->crew && (all || job_queue_is_full(o->crew)) &&
	       (p = job_queue_take(o->crew)) != NULL) {
		o->stored += p->filled;
		fault = fault ? fault : p->fault;
		p->filled = 0;
		p->fault = 0;
	}
	return fault ? cannot_write(o, fault, err) : ST_OK;
}

static enum status next_block(struct out *o, struct error *err)
{
	size_t turn = o->now ? (o->turn + 1) % BLOCKS : 0;

	if (!o->blocks[turn])
		o->blocks[turn] = calloc(1, sizeof(*o->blocks[turn]));
	if (!o->blocks[turn])
		return fail_memory(err);
	o->turn = turn;
	o->now = o->blocks[turn];
	return ST_OK;
}

/* Passes the full block to the writing thread.  Only regular files have one: a pipe or terminal is
 * written by the caller's thread, so that signals end it as usual. */
static enum status give_block(struct out *o, struct error *err)
{
	struct out_block *p = o->now;

	if (!o->crew)
		TRY(job_queue_open(&o->crew, 1, BLOCKS - 1, write_block, o, err));
	TRY(settle_blocks(o, false, err));
	p->at = o->given;
	o->given += p->filled;
	TRY(next_block(o, err));
	job_queue_give(o->crew, p);
	return ST_OK;
}

/* Writes the current block.  `is_all`: the file is this one block and needs no thread. */
static enum status flush_block(struct out *o, bool is_all, struct error *err)
{
	struct out_block *p = o->now;
	size_t len = p->filled;

	o->bytes += len;
	if (!len)
		return ST_OK;
	if (o->fd >= 0 && o->threads && o->temporary && !o->gzip && !is_all)
		return give_block(o, err);
	p->filled = 0;
	if (o->fd < 0)
		return fail(err, ST_USAGE, NOWHERE, "no file of the folder was started");
	if (o->gzip)
		return gzip_put(o->gzip, p->bytes, len, err);
	return write_file(o, p->bytes, len, err);
}

/* Adds a complete file to the list for the commit, which takes ownership of its paths. */
static enum status keep_made(struct out *o, struct error *err)
{
	TRY(vec_reserve(&o->made, &o->made_cap, o->made_count + 1, err));
	o->made[o->made_count++] = (struct out_made){ o->temporary, o->name };
	o->temporary = o->name = NULL;
	return ST_OK;
}

/* Ends the open file: all bytes are written, but nothing is renamed yet. */
static enum status end_file(struct out *o, struct error *err)
{
	enum status status = flush_block(o, !o->crew, err);

	if (status == ST_OK)
		status = settle_blocks(o, true, err);
	job_queue_close(o->crew);
	o->crew = NULL;
	o->given = 0;
	TRY(status);
	if (o->gzip) {
		TRY(gzip_finish(o->gzip, err));
		gzip_free(o->gzip);
		o->gzip = NULL;
	}
	if (!o->temporary) /* standard output, a device, or no file yet */
		return ST_OK;
	uint64_t size = o->bytes - o->ended;
	struct stat st;
	if (!o->stored && fstat(o->fd, &st) == 0) /* a library has written the file */
		size = o->stored = (uint64_t)st.st_size;
	o->ended = o->bytes;
	o->largest = size > o->largest ? size : o->largest;
	int rc = close(o->fd);
	o->fd = -1;
	if (rc != 0)
		return fail(err, ST_IO, NOWHERE, "cannot write %s: %s", o->name, strerror(errno));
	return keep_made(o, err);
}

static enum status make_folders(char *path, struct error *err)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int rc = mkdir(path, 0777);
		int why = errno;
		*slash = '/';
		if (rc != 0 && why != EEXIST)
			return fail(err, ST_IO, NOWHERE, "cannot make a folder for %s: %s", path,
				    strerror(why));
	}
	return ST_OK;
}

enum status out_open(struct out **out, const char *path, bool is_folder, struct error *err)
{
	bool to_stdout = !path || strcmp(path, "-") == 0;
	struct out *o;
	struct stat stdout_file;
	enum status st = ST_OK;

	*out = NULL;
	if (to_stdout && is_folder)
		return fail(err, ST_USAGE, NOWHERE, "the output has several files: use -o FOLDER");
	/* If standard output was closed, an input may have its descriptor. */
	if (to_stdout && fstat(STDOUT_FILENO, &stdout_file) == 0 &&
	    (fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) != O_RDONLY)
		TRY(refuse_input("standard output", &stdout_file, err));
	TRY(vec_new(&o, 1, err));
	o->fd = -1;
	if (to_stdout)
		o->fd = STDOUT_FILENO;
	else if (is_folder)
		o->folder = strdup(path);
	else
		st = begin_file(o, strdup(path), err);
	if (st == ST_OK)
		st = next_block(o, err);
	if (st != ST_OK) {
		out_free(o);
		return st;
	}
	*out = o;
	return ST_OK;
}

void out_set_threads(struct out *o, unsigned threads)
{
	o->threads = threads;
	if (o->gzip)
		gzip_set_threads(o->gzip, threads);
}

enum status out_begin(struct out *o, const char *name, struct error *err)
{
	char *path;
	enum status st;

	TRY(broken(o, err));
	if (strstr(name, "..") || name[0] == '/' || !o->folder)
		return fail(err, ST_USAGE, NOWHERE, "%s is not a valid name of a file in a folder",
			    name);
	st = end_file(o, &o->error);
	if (st == ST_OK && asprintf(&path, "%s/%s", o->folder, name) < 0)
		st = fail_memory(&o->error);
	else if (st == ST_OK && (st = make_folders(path, &o->error)) != ST_OK)
		free(path);
	else if (st == ST_OK)
		st = begin_file(o, path, &o->error);
	return st == ST_OK ? ST_OK : broken(o, err);
}

uint8_t *out_reserve(struct out *o, size_t want)
{
	if (want > RESERVE_MOST || o->error.status != ST_OK)
		return NULL;
	if (BLOCK_BYTES - o->now->filled < want && flush_block(o, false, &o->error) != ST_OK)
		return NULL;
	return o->now->bytes + o->now->filled;
}

void out_advance(struct out *o, size_t len)
{
	o->now->filled += len;
}

enum status out_write(struct out *o, const void *bytes, size_t len, struct error *err)
{
	const uint8_t *at = bytes;

	while (len) {
		size_t part = len < RESERVE_MOST ? len : RESERVE_MOST;
		uint8_t *cap = out_reserve(o, part);

		if (!cap)
			return broken(o, err);
		memcpy(cap, at, part);
		out_advance(o, part);
		at += part;
		len -= part;
	}
	return broken(o, err);
}

uint8_t *out_cursor_more(struct out_cursor *p, size_t want)
{
	out_advance(p->out, (size_t)(p->at - p->from));
	p->from = p->at = out_reserve(p->out, OUT_CURSOR_MOST);
	p->end = p->at ? p->at + OUT_CURSOR_MOST : NULL;
	return p->at && want <= OUT_CURSOR_MOST ? p->at : NULL;
}

enum status out_cursor_put(struct out_cursor *p, const void *bytes, size_t len, struct error *err)
{
	uint8_t *cap = len <= OUT_CURSOR_MOST ? out_cursor_reserve(p, len) : NULL;

	if (!cap) {
		TRY(out_cursor_flush(p, err));
		return out_write(p->out, bytes, len, err);
	}
	memcpy(cap, bytes, len);
	p->at += len;
	return ST_OK;
}

enum status out_cursor_flush(struct out_cursor *p, struct error *err)
{
	out_advance(p->out, (size_t)(p->at - p->from));
	p->from = p->at = p->end = NULL;
	return out_write(p->out, "", 0, err);
}

const char *out_own_file(const struct out *o)
{
	return o->fd >= 0 && !o->folder && !o->gzip ? o->temporary : NULL;
}

const char *out_name(const struct out *o)
{
	return o->name;
}

enum status out_commit(struct out *o, struct error *err)
{
	TRY(broken(o, err));
	if (end_file(o, &o->error) != ST_OK)
		return broken(o, err);
	for (size_t i = 0; i < o->made_count; i++) {
		struct out_made *m = &o->made[i];

		if (!m->temporary)
			continue;
		if (rename(m->temporary, m->name) != 0)
			return fail(err, ST_IO, NOWHERE, "cannot name %s: %s", m->name,
				    strerror(errno));
		temporary_forget(m->temporary);
		free(m->temporary);
		m->temporary = NULL;
	}
	return ST_OK;
}

static void remove_temporary(const char *path)
{
	if (path)
		unlink(path);
	temporary_forget(path);
}

void out_free(struct out *o)
{
	if (!o)
		return;
	gzip_free(o->gzip);
	job_queue_close(o->crew);
	for (size_t i = 0; i < BLOCKS; i++)
		free(o->blocks[i]);
	if (o->fd >= 0 && o->fd != STDOUT_FILENO)
		close(o->fd);
	remove_temporary(o->temporary);
	for (size_t i = 0; i < o->made_count; i++) {
		remove_temporary(o->made[i].temporary);
		free(o->made[i].temporary);
		free(o->made[i].name);
	}
	free(o->made);
	free(o->temporary);
	free(o->name);
	free(o->folder);
	free(o);
}

enum status out_end(struct out *o, struct error *err)
{
	TRY(broken(o, err));
	return end_file(o, &o->error) == ST_OK ? ST_OK : broken(o, err);
}

uint64_t out_largest(const struct out *o)
{
	return o->largest;
}

enum status out_adopt(struct out *o, struct out *other, struct error *err)
{
	TRY(out_end(other, err));
	TRY(out_end(o, err));
	while (other->made_count) {
		struct out_made *m = &other->made[other->made_count - 1];

		o->temporary = m->temporary;
		o->name = m->name;
		if (keep_made(o, err) != ST_OK) {
			o->temporary = o->name = NULL; /* `other` still owns them */
			return err->status;
		}
		other->made_count--;
	}
	o->bytes += other->bytes;
	o->ended = o->bytes;
	o->stored += other->stored;
	other->stored = other->bytes = other->ended = 0;
	return ST_OK;
}

bool out_names_folder(const char *path)
{
	struct stat st;

	if (!path || !path[0])
		return false;
	return path[strlen(path) - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

uint64_t out_bytes(const struct out *o)
{
	return o->bytes + o->now->filled;
}

uint64_t out_stored(const struct out *o)
{
	return o->stored;
}

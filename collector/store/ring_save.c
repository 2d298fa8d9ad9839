/* SPDX-License-Identifier: Apache-2.0 */
/* Saves a ring's blocks as a log.  The ring's writer does so, or tacho-record after the process has
 * died. */
#include "collector/config/config.h"
#include "collector/store/store.h"
#include "schemas/base/buf.h"
#include "schemas/log/ring.h"
#include "schemas/log/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
	TABLES_MAX = 64 << 20, /* for the tables, which give the kinds of blocks */
	SPARE = 72 * 1024,     /* for SAVED, END and the reserve of a file store */
};

struct saving {
	struct log_ring *ring;
	const struct store_place *place;
	struct store *to;
	struct trace *trace;
	struct log_translation *tables;
	struct log_saved why;
	uint64_t table_bytes, skip_bytes; /* bytes of the oldest events, which do not fit */
	uint64_t events[KIND_END];
	struct buf block; /* header and payload */
};

/* Loads a complete block into s->block.  ST_FORMAT: the block is damaged. */
static enum status load(struct saving *s, const struct log_block *block, struct error *err)
{
	size_t len = LOG_HEADER_BYTES + block->size, got = 0;

	buf_clear(&s->block);
	if (!buf_reserve(&s->block, len))
		return buf_status(&s->block, err);
	TRY(s->ring->read(s->ring->arg, block->offset, s->block.data, len, &got, err));
	if (got < len)
		return fail(err, ST_FORMAT, block->offset, "block of the ring is cut off");
	s->block.len = len;
	log_ring_number(s->block.data, 0);
	return log_check(block, s->block.data + LOG_HEADER_BYTES, err);
}

static enum status put(struct saving *s, unsigned kind, struct error *err)
{
	return s->to->type->put(s->to, kind, s->block.data, s->block.len, err);
}

/* Notes the time from which on the log is complete: events before the first kept block may be lost.
 */
static void note_begin(struct saving *s, const struct log_block *first, uint64_t number)
{
	if (number == 1)
		return;
	s->why.from_ns =
		number == s->ring->saved + 1 ? s->ring->saved_until_ns : first->last_end_ns;
}

static enum status copy_events(struct saving *s, struct error *err)
{
	uint64_t number, kept = 0;
	struct log_block block;
	enum status st;

	while ((st = log_ring_next_events(s->ring, &block, &number, err)) == ST_OK) {
		if (number <= s->ring->saved)
			continue;
		if (s->skip_bytes) {
			s->skip_bytes -= s->skip_bytes < block.size ? s->skip_bytes : block.size;
			s->why.left_out_rows += block.rows;
			continue;
		}
		st = load(s, &block, err);
		if (st == ST_FORMAT) {
			s->why.torn++;
			s->why.torn_rows += block.rows;
			continue;
		}
		TRY(st);
		if (!kept++)
			note_begin(s, &block, number);
		st = put(s, LOG_EVENTS, err);
		if (st == ST_OK) {
			const struct log_layout *layout = log_layout(s->tables, block.layout);

			s->events[layout ? layout->kind : KIND_UNKNOWN] += block.rows;
		} else
			s->why.left_out_rows += block.rows;
	}
	return st == ST_END ? ST_OK : st;
}

static enum status put_end(struct saving *s, struct error *err)
{
	struct log_mark *mark;

	TRY(log_mark_new(&mark, s->trace, TABLES_MAX, err));
	buf_clear(&s->block);
	enum status st = log_put_end(mark, s->events, &s->block, err);
	log_mark_free(mark);
	TRY(st);
	return put(s, LOG_END, err);
}

static uint64_t space_for_events(const struct saving *s)
{
	uint64_t space = UINT64_MAX, free_bytes, taken = SPARE + s->table_bytes;
	struct statvfs v;

	if (statvfs(s->place->folder, &v) == 0) {
		free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
		space = free_bytes > s->place->min_free ? free_bytes - s->place->min_free : 0;
	}
	if (s->place->max_bytes && s->place->max_bytes < space)
		space = s->place->max_bytes;
	return space > taken ? space - taken : 0;
}

/* Finds how many bytes of the oldest events must be left out. */
static enum status measure(struct saving *s, struct error *err)
{
	uint64_t number, bytes = 0;
	struct log_ring *r = malloc(sizeof(*r));
	struct log_block block;
	enum status st;

	if (!r)
		return fail_memory(err);
	memcpy(r, s->ring, sizeof(*r));
	while ((st = log_ring_next_table(r, &block, err)) == ST_OK)
		s->table_bytes += LOG_HEADER_BYTES + block.size;
	while (st == ST_END && (st = log_ring_next_events(r, &block, &number, err)) == ST_OK) {
		bytes += number > s->ring->saved ? LOG_HEADER_BYTES + block.size : 0;
		st = ST_END;
	}
	free(r);
	if (st != ST_END)
		return st;
	if (!bytes)
		return ST_END;
	uint64_t space = space_for_events(s);
	if (!space)
		return fail(err, ST_CEILING, NOWHERE, "no room to save the ring as a log");
	s->skip_bytes = bytes > space ? bytes - space : 0;
	return ST_OK;
}

static enum status copy(struct saving *s, bool ended, struct error *err)
{
	uint8_t header[LOG_FILE_HEADER_BYTES];

	log_put_file_header(header);
	TRY(s->to->type->put(s->to, 0, header, sizeof(header), err));
	struct log_block block;
	enum status st;

	while ((st = log_ring_next_table(s->ring, &block, err)) == ST_OK) {
		st = load(s, &block, err);
		if (st == ST_FORMAT) {
			s->why.torn++;
			continue;
		}
		TRY(st);
		log_take_table(s->tables, &block, s->block.data + LOG_HEADER_BYTES, NULL);
		TRY(put(s, block.kind, err));
	}
	TRY(st == ST_END ? ST_OK : st);
	TRY(copy_events(s, err));
	buf_clear(&s->block);
	log_put_saved(&s->why, &s->block);
	TRY(buf_status(&s->block, err));
	TRY(put(s, LOG_SAVED, err));
	return ended ? put_end(s, err) : ST_OK;
}

enum status store_save(struct log_ring *r, const struct store_place *place,
		       const struct log_saved *why, bool ended, uint64_t *bytes, struct error *err)
{
	struct saving s = { .ring = r, .place = place, .why = *why };

	*bytes = 0;
	buf_init(&s.block, LOG_HEADER_BYTES + 2 * LOG_BLOCK_BYTES);
	s.why.until_ns = r->until_ns;
	s.why.alive_ns = r->alive_ns;
	s.why.by_itself = ended;
	s.why.torn = r->missing;
	s.why.torn_rows = r->missing_rows;
	enum status st = store_make_folder(place->folder, NULL, err);
	if (st == ST_OK)
		st = measure(&s, err);
	if (st == ST_OK)
		st = trace_new(&s.trace, TABLES_MAX, err);
	if (st == ST_OK)
		st = log_translation_new(&s.tables, s.trace, TABLES_MAX, err);
	if (st == ST_OK)
		st = store_file.open(&s.to, place, err);
	if (st == ST_OK)
		st = copy(&s, ended, err);
	if (s.to) {
		*bytes = s.to->type->bytes(s.to);
		s.to->type->close(s.to);
	}
	log_translation_free(s.tables);
	trace_free(s.trace);
	buf_release(&s.block);
	return st;
}

/* ---- of a process that is gone ---- */

static enum status read_file(const void *arg, uint64_t at, void *bytes, size_t len, size_t *got,
			     struct error *err)
{
	ssize_t n;

	for (*got = 0; *got < len; *got += (size_t)n) {
		n = pread(*(const int *)arg, (uint8_t *)bytes + *got, len - *got,
			  (off_t)(at + *got));
		if (n < 0 && errno == EINTR) {
			n = 0;
			continue;
		}
		if (n < 0)
			return fail(err, ST_IO, at, "%s", strerror(errno));
		if (n == 0)
			break;
	}
	return ST_OK;
}

static bool is_alive(const struct log_ring_consts *f)
{
	char host[LOG_RING_HOST] = "";

	gethostname(host, sizeof(host) - 1);
	return f->started && strcmp(host, f->host) == 0 &&
	       store_process_began(f->pid) == f->started;
}

static enum status save_left(struct log_ring *r, const char *folder, const char *word,
			     uint64_t *bytes, struct error *err)
{
	struct store_place place = { .folder = folder,
				     .host = r->consts.host,
				     .rank = r->consts.rank,
				     .pid = r->consts.pid,
				     .max_bytes = r->consts.max_bytes,
				     .min_free = r->consts.min_free };
	struct log_saved why;

	if (strchr(r->consts.host, '/'))
		return fail(err, ST_FORMAT, NOWHERE, "the ring's host is none");
	if (is_alive(&r->consts))
		return fail(err, ST_ABSENT, NOWHERE,
			    "the process that writes the ring is still running");
	if (!folder)
		return ST_END;
	log_ring_saved(r, word, &why);
	return store_save(r, &place, &why, false, bytes, err);
}

enum status store_open_left(const char *path, int flags, int *fd, struct error *err)
{
	struct stat file;

	/* non-blocking, because the path may be a FIFO */
	*fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (*fd < 0)
		return fail(err, errno == EACCES ? ST_ABSENT : ST_IO, NOWHERE, "%s: %s", path,
			    strerror(errno));
	if (fstat(*fd, &file) != 0 || !S_ISREG(file.st_mode))
		return fail(err, ST_FORMAT, NOWHERE, "it is no file");
	if (file.st_uid != geteuid()) /* its contents name the files that would be written */
		return fail(err, ST_ABSENT, NOWHERE, "it is another user's");
	return ST_OK;
}

enum status store_save_left(const char *path, const char *folder, const char *word, uint64_t *bytes,
			    struct error *err)
{
	struct log_ring *r = malloc(sizeof(*r));
	int fd = -1;

	*bytes = 0;
	enum status st = r ? store_open_left(path, O_RDONLY, &fd, err) : fail_memory(err);
	if (st == ST_OK)
		st = log_ring_open(r, read_file, &fd, err);
	if (st == ST_OK)
		st = save_left(r, folder, word, bytes, err);
	if (fd >= 0)
		close(fd);
	free(r);
	return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool_row.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum row_bit {
	ROW_JOIN = 1,    /* correlation, address or number */
	ROW_AMOUNT = 2,  /* bytes, result or value as varint */
	ROW_DOUBLE = 4,  /* ... as eight bytes, where that is shorter */
	ROW_WORDS = 8,   /* vary words at the end */
	ROW_STAGE = 16,  /* step, owner, phase */
	ROW_FLAGS = 32,
};

static uint8_t row_bits(const struct event *e, uint32_t words)
{
	uint8_t bits = 0;

	if (e->correlation)
		bits |= ROW_JOIN;
	if (e->bytes)
		bits |= e->bytes >> 56 ? ROW_DOUBLE : ROW_AMOUNT;
	if (words)
		bits |= ROW_WORDS;
	if (e->step || e->owner || e->phase)
		bits |= ROW_STAGE;
	if (e->flags)
		bits |= ROW_FLAGS;
	return bits;
}

static uint8_t *put(uint8_t *out, uint64_t v)
{
	return out + put_varint(out, v);
}

size_t row_encode(struct row_state *state, const struct event *e, uint32_t words, uint8_t *out)
{
	uint8_t bits = row_bits(e, words), *at = out;
	uint32_t i;

	*at++ = bits;
	*at++ = e->kind;
	*at++ = e->subkind;
	at = put(at, e->begin_ns - state->begin_ns);
	at = put(at, e->end_ns - e->begin_ns);
	at = put(at, e->track);
	at = put(at, e->name);
	at = put(at, e->shape);
	state->begin_ns = e->begin_ns;
	if (bits & ROW_JOIN) {
		at = put(at, zigzag((int64_t)(e->correlation - state->join)));
		state->join = e->correlation;
	}
	if (bits & ROW_AMOUNT)
		at = put(at, e->bytes);
	if (bits & ROW_DOUBLE) {
		put_u64(at, e->bytes);
		at += 8;
	}
	if (bits & ROW_STAGE) {
		at = put(at, e->step);
		at = put(at, e->owner);
		*at++ = e->phase;
	}
	if (bits & ROW_FLAGS)
		*at++ = e->flags;
	for (i = 0; i < words; i++)
		at = put(at, e->vary[i]);
	return (size_t)(at - out);
}

void row_decode(struct row_state *state, struct bytes *in, struct event *e, bool *has_words)
{
	uint8_t bits = take_u8(in);

	*e = (struct event){ .kind = take_u8(in) };
	e->subkind = take_u8(in);
	state->begin_ns += take_varint(in);
	e->begin_ns = state->begin_ns;
	e->end_ns = e->begin_ns + take_varint(in);
	e->track = (uint32_t)take_varint(in);
	e->name = (uint32_t)take_varint(in);
	e->shape = (uint32_t)take_varint(in);
	if (bits & ROW_JOIN) {
		state->join += (uint64_t)take_zigzag(in);
		e->correlation = state->join;
	}
	if (bits & ROW_AMOUNT)
		e->bytes = take_varint(in);
	if (bits & ROW_DOUBLE)
		e->bytes = take_u64(in);
	if (bits & ROW_STAGE) {
		e->step = (uint32_t)take_varint(in);
		e->owner = (uint32_t)take_varint(in);
		e->phase = take_u8(in);
	}
	if (bits & ROW_FLAGS)
		e->flags = take_u8(in);
	*has_words = bits & ROW_WORDS;
}

void row_words(struct bytes *in, uint64_t *words, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		words[i] = take_varint(in);
}

struct scratch {
	int fd;
	uint64_t size;
	const char *folder;
};

static int scratch_file(const char *folder)
{
	char path[4096];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	/* a file system that knows no file without a name */
	if (snprintf(path, sizeof(path), "%s/tacho-XXXXXX", folder) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

enum status scratch_open(struct scratch **out, const char *folder, struct error *err)
{
	struct scratch *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a scratch file");
	s->folder = folder ? folder : "/tmp";
	s->fd = scratch_file(s->folder);
	if (s->fd < 0) {
		fail(err, ST_IO, NOWHERE, "scratch folder %s: %s", s->folder, strerror(errno));
		free(s);
		return ST_IO;
	}
	*out = s;
	return ST_OK;
}

void scratch_close(struct scratch *s)
{
	if (!s)
		return;
	close(s->fd);
	free(s);
}

enum status scratch_write(struct scratch *s, const void *bytes, size_t len, struct error *err)
{
	const char *at = bytes;
	ssize_t n;

	while (len) {
		n = pwrite(s->fd, at, len, (off_t)s->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(err, ST_IO, NOWHERE, "scratch folder %s: %s", s->folder,
				    n ? strerror(errno) : "nothing was written");
		at += n;
		len -= (size_t)n;
		s->size += (uint64_t)n;
	}
	return ST_OK;
}

uint64_t scratch_size(const struct scratch *s)
{
	return s ? s->size : 0;
}

enum status scratch_read(const struct scratch *s, uint64_t at, void *bytes, size_t len,
			 struct error *err)
{
	char *to = bytes;
	ssize_t n;

	while (len) {
		n = pread(s->fd, to, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(err, ST_IO, NOWHERE, "scratch folder %s: %s", s->folder,
				    n ? strerror(errno) : "the scratch file became shorter");
		to += n;
		len -= (size_t)n;
		at += (uint64_t)n;
	}
	return ST_OK;
}

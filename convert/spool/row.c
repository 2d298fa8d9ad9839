/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool/row.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * A row: its bits, kind and subkind; the sizes of its values in two bits each; the values, of one,
 * two, four or eight bytes; what few events have; the words, with their sizes before each four.
 * Not the shortest form, but read and written without a branch for each byte.
 */
enum row_bit {
	ROW_WORDS = 1, /* vary words at the end */
	ROW_STAGE = 2, /* step, owner, phase */
	ROW_FLAGS = 4,
	ROW_JOIN = 8, /* correlation, address or number: as distance from the last one */
};

enum row_value { OF_BEGIN, OF_DURATION, OF_TRACK, OF_NAME, OF_SHAPE, OF_JOIN, OF_AMOUNT, VALUES };

enum { HEAD_BYTES = 5, STAGE_BYTES = 9, GROUP = 4, GROUP_MOST = 1 + 8 * GROUP };

_Static_assert(HEAD_BYTES + VALUES * 8 + STAGE_BYTES + 1 + 8 <= ROW_MOST, "a row has its room");

static const uint64_t masks[4] = { 0xff, 0xffff, 0xffffffff, UINT64_MAX };

/* Eight bytes are written, of which those that count stay. */
static inline uint8_t *put_sized(uint8_t *at, uint64_t v, unsigned slot, unsigned *sizes)
{
	unsigned size = (v > 0xff) + (v > 0xffff) + (v > 0xffffffff);

	*sizes |= size << 2 * slot;
	put_u64(at, v);
	return at + (1u << size);
}

static inline uint64_t take_sized(const uint8_t **at, unsigned slot, unsigned sizes)
{
	unsigned size = sizes >> 2 * slot & 3;
	uint64_t v = get_u64(*at) & masks[size];

	*at += 1u << size;
	return v;
}

static uint8_t *put_words(uint8_t *at, const uint64_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i += GROUP) {
		uint8_t *head = at++;
		unsigned sizes = 0;

		for (uint32_t j = i; j < count && j < i + GROUP; j++)
			at = put_sized(at, words[j], j - i, &sizes);
		*head = (uint8_t)sizes;
	}
	return at;
}

size_t row_encode(struct row_state *state, const struct event *e, uint32_t words, uint8_t *out)
{
	uint8_t bits = words ? ROW_WORDS : 0, *at = out + HEAD_BYTES;
	unsigned sizes = 0;

	at = put_sized(at, e->begin_ns - state->begin_ns, OF_BEGIN, &sizes);
	at = put_sized(at, e->end_ns - e->begin_ns, OF_DURATION, &sizes);
	at = put_sized(at, e->track, OF_TRACK, &sizes);
	at = put_sized(at, e->name, OF_NAME, &sizes);
	at = put_sized(at, e->shape, OF_SHAPE, &sizes);
	at = put_sized(at, e->correlation ? zigzag((int64_t)(e->correlation - state->join)) : 0,
		       OF_JOIN, &sizes);
	at = put_sized(at, e->bytes, OF_AMOUNT, &sizes);
	state->begin_ns = e->begin_ns;
	if (e->correlation) {
		bits |= ROW_JOIN;
		state->join = e->correlation;
	}
	if (e->step || e->owner || e->phase) {
		bits |= ROW_STAGE;
		put_u32(at, e->step);
		put_u32(at + 4, e->owner);
		at[8] = e->phase;
		at += STAGE_BYTES;
	}
	if (e->flags) {
		bits |= ROW_FLAGS;
		*at++ = e->flags;
	}
	out[0] = bits;
	out[1] = e->kind;
	out[2] = e->subkind;
	put_u16(out + 3, (uint16_t)sizes);
	if (words)
		at = put_words(at, e->vary, words);
	return (size_t)(at - out);
}

/* ROW_MOST bytes may be looked at; returns those used. */
static size_t decode(struct row_state *state, const uint8_t *row, struct event *e, bool *has_words)
{
	const uint8_t *at = row + HEAD_BYTES;
	unsigned sizes = get_u16(row + 3);
	uint64_t join;

	*e = (struct event){ .kind = row[1], .subkind = row[2] };
	state->begin_ns += take_sized(&at, OF_BEGIN, sizes);
	e->begin_ns = state->begin_ns;
	e->end_ns = e->begin_ns + take_sized(&at, OF_DURATION, sizes);
	e->track = (uint32_t)take_sized(&at, OF_TRACK, sizes);
	e->name = (uint32_t)take_sized(&at, OF_NAME, sizes);
	e->shape = (uint32_t)take_sized(&at, OF_SHAPE, sizes);
	join = take_sized(&at, OF_JOIN, sizes);
	if (row[0] & ROW_JOIN)
		e->correlation = state->join += (uint64_t)unzigzag(join);
	e->bytes = take_sized(&at, OF_AMOUNT, sizes);
	if (row[0] & ROW_STAGE) {
		e->step = get_u32(at);
		e->owner = get_u32(at + 4);
		e->phase = at[8];
		at += STAGE_BYTES;
	}
	if (row[0] & ROW_FLAGS)
		e->flags = *at++;
	*has_words = row[0] & ROW_WORDS;
	return (size_t)(at - row);
}

void row_decode(struct row_state *state, struct bytes *in, struct event *e, bool *has_words)
{
	uint8_t last[ROW_MOST] = { 0 };
	size_t left = bytes_left(in);

	if (left >= ROW_MOST) {
		in->at += decode(state, in->at, e, has_words);
		return;
	}
	if (left)
		memcpy(last, in->at, left);
	take_bytes(in, decode(state, last, e, has_words));
}

static size_t take_group(const uint8_t *group, uint64_t *words, uint32_t count)
{
	const uint8_t *at = group + 1;

	for (uint32_t i = 0; i < count; i++)
		words[i] = take_sized(&at, i, *group);
	return (size_t)(at - group);
}

void row_words(struct bytes *in, uint64_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i += GROUP) {
		uint32_t n = count - i < GROUP ? count - i : GROUP;
		uint8_t last[GROUP_MOST + 8] = { 0 };
		size_t left = bytes_left(in);

		if (left >= sizeof(last)) {
			in->at += take_group(in->at, words + i, n);
			continue;
		}
		if (left)
			memcpy(last, in->at, left);
		take_bytes(in, take_group(last, words + i, n));
	}
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

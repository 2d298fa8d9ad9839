/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool/row.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * A row: a head with its bits, the sizes of its values less one in three bits each, and its kind;
 * its subkind; the values, of one to eight bytes; what few events have; how many words, and they,
 * with their sizes before each four.  Not the shortest form, but read and written without a branch
 * for each byte.  The begin of a run's row stands right behind the head.
 */
enum row_bit {
	ROW_WORDS = 1, /* vary words at the end */
	ROW_STAGE = 2, /* step, owner, phase */
	ROW_FLAGS = 4,
};

enum row_value { OF_DURATION, OF_TRACK, OF_NAME, OF_SHAPE, OF_JOIN, OF_AMOUNT, OF_BEGIN, VALUES };

enum {
	SIZE_BITS = 3,
	SIZES_SHIFT = 3, /* in the head */
	KIND_SHIFT = SIZES_SHIFT + VALUES * SIZE_BITS,
	LONG = 255,      /* a size or count that stands behind it in four bytes */
	SIZE_MOST = 5,
	HEAD_BYTES = 4, STAGE_BYTES = 9,
	GROUP = 4, GROUP_HEAD = 2, GROUP_MOST = GROUP_HEAD + 8 * GROUP,
	COPY_BYTES = 32,
};

_Static_assert(KIND_SHIFT + 8 == 32, "a head has its four bytes");
_Static_assert(SIZE_MOST + HEAD_BYTES + 1 + VALUES * 8 + STAGE_BYTES + 1 + 5 + GROUP_HEAD + 8 <=
		       ROW_MOST,
	       "a row has its room");
_Static_assert(ROW_WORD_MOST * GROUP >= GROUP_MOST, "words have theirs");

/* Eight bytes are written, of which those that count stay. */
static inline uint8_t *put_sized(uint8_t *at, uint64_t v, unsigned shift, uint32_t *sizes)
{
	unsigned more = (63u - (unsigned)__builtin_clzll(v | 1)) / 8;

	*sizes |= more << shift;
	put_u64(at, v);
	return at + more + 1;
}

static inline uint64_t take_sized(const uint8_t **at, unsigned shift, uint32_t sizes)
{
	unsigned more = sizes >> shift & 7;
	uint64_t v = get_u64(*at) << (56 - 8 * more) >> (56 - 8 * more);

	*at += more + 1;
	return v;
}

static inline uint8_t *put_value(uint8_t *at, uint64_t v, enum row_value slot, uint32_t *head)
{
	return put_sized(at, v, SIZES_SHIFT + slot * SIZE_BITS, head);
}

static inline uint64_t take_value(const uint8_t **at, enum row_value slot, uint32_t head)
{
	return take_sized(at, SIZES_SHIFT + slot * SIZE_BITS, head);
}

static uint8_t *put_words(uint8_t *at, const uint64_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i += GROUP) {
		uint8_t *head = at;
		uint32_t sizes = 0;

		at += GROUP_HEAD;
		for (uint32_t j = i; j < count && j < i + GROUP; j++)
			at = put_sized(at, words[j], (j - i) * SIZE_BITS, &sizes);
		put_u16(head, (uint16_t)sizes);
	}
	return at;
}

static uint8_t *put_count(uint8_t *at, uint32_t count)
{
	*at = count < LONG ? (uint8_t)count : LONG;
	if (count < LONG)
		return at + 1;
	put_u32(at + 1, count);
	return at + 5;
}

static inline const uint8_t *take_count(const uint8_t *at, uint32_t *count)
{
	*count = *at;
	if (*count < LONG)
		return at + 1;
	*count = get_u32(at + 1);
	return at + 5;
}

size_t row_encode(const struct event *e, uint32_t words, uint8_t *out)
{
	uint8_t *row = out + 1, *at = row + HEAD_BYTES;
	uint32_t head = (uint32_t)e->kind << KIND_SHIFT;
	size_t size;

	*at++ = e->subkind;
	at = put_value(at, e->end_ns - e->begin_ns, OF_DURATION, &head);
	at = put_value(at, e->track, OF_TRACK, &head);
	at = put_value(at, e->name, OF_NAME, &head);
	at = put_value(at, e->shape, OF_SHAPE, &head);
	at = put_value(at, e->correlation, OF_JOIN, &head);
	at = put_value(at, e->bytes, OF_AMOUNT, &head);
	if (e->step || e->owner || e->phase) {
		head |= ROW_STAGE;
		put_u32(at, e->step);
		put_u32(at + 4, e->owner);
		at[8] = e->phase;
		at += STAGE_BYTES;
	}
	if (e->flags) {
		head |= ROW_FLAGS;
		*at++ = e->flags;
	}
	if (words) {
		head |= ROW_WORDS;
		at = put_words(put_count(at, words), e->vary, words);
	}
	put_u32(row, head);
	size = (size_t)(at - row);
	if (size < LONG) {
		*out = (uint8_t)size;
		return 1 + size;
	}
	memmove(out + SIZE_MOST, row, size);
	put_count(out, (uint32_t)size);
	return SIZE_MOST + size;
}

uint64_t row_duration(const uint8_t *row)
{
	uint32_t size;
	const uint8_t *head = take_count(row, &size), *at = head + HEAD_BYTES + 1;

	return take_value(&at, OF_DURATION, get_u32(head));
}

/* From subkind on; returns what is behind the count of words. */
static inline const uint8_t *take_values(const uint8_t *at, uint32_t head, uint64_t begin_ns,
					 struct event *e, uint32_t *words)
{
	*e = (struct event){ .begin_ns = begin_ns, .kind = (uint8_t)(head >> KIND_SHIFT),
			     .subkind = *at++ };
	e->end_ns = begin_ns + take_value(&at, OF_DURATION, head);
	e->track = (uint32_t)take_value(&at, OF_TRACK, head);
	e->name = (uint32_t)take_value(&at, OF_NAME, head);
	e->shape = (uint32_t)take_value(&at, OF_SHAPE, head);
	e->correlation = take_value(&at, OF_JOIN, head);
	e->bytes = take_value(&at, OF_AMOUNT, head);
	if (head & ROW_STAGE) {
		e->step = get_u32(at);
		e->owner = get_u32(at + 4);
		e->phase = at[8];
		at += STAGE_BYTES;
	}
	if (head & ROW_FLAGS)
		e->flags = *at++;
	*words = 0;
	return head & ROW_WORDS ? take_count(at, words) : at;
}

const uint8_t *row_open(const uint8_t *row, uint64_t begin_ns, struct event *e, uint32_t *words)
{
	uint32_t size;
	const uint8_t *at = take_count(row, &size);

	return take_values(at + HEAD_BYTES, get_u32(at), begin_ns, e, words);
}

size_t row_room(const uint8_t *row)
{
	uint32_t size;

	take_count(row, &size);
	return size + 8 + COPY_BYTES;
}

size_t row_move(const uint8_t *row, uint64_t since_ns, uint8_t *out)
{
	uint32_t size;
	const uint8_t *from = take_count(row, &size);
	uint32_t head = get_u32(from);
	uint8_t *at = put_value(out + HEAD_BYTES, since_ns, OF_BEGIN, &head);

	put_u32(out, head);
	size -= HEAD_BYTES;
	if (size <= COPY_BYTES) /* mostly: in one piece, what is too much is written over */
		memcpy(at, from + HEAD_BYTES, COPY_BYTES);
	else
		memcpy(at, from + HEAD_BYTES, size);
	return (size_t)(at - out) + size;
}

/* ROW_MOST bytes may be looked at; returns those used. */
static inline size_t decode(uint64_t *begin_ns, const uint8_t *row, struct event *e,
			    uint32_t *words)
{
	const uint8_t *at = row + HEAD_BYTES;
	uint32_t head = get_u32(row);

	*begin_ns += take_value(&at, OF_BEGIN, head);
	return (size_t)(take_values(at, head, *begin_ns, e, words) - row);
}

/* The last rows of what is in memory, with zeros behind them. */
static void decode_last(uint64_t *begin_ns, struct bytes *in, struct event *e, uint32_t *words)
{
	uint8_t last[ROW_MOST] = { 0 };
	size_t left = bytes_left(in);

	if (left)
		memcpy(last, in->at, left);
	take_bytes(in, decode(begin_ns, last, e, words));
}

void row_decode(uint64_t *begin_ns, struct bytes *in, struct event *e, uint32_t *words)
{
	if (bytes_left(in) >= ROW_MOST)
		in->at += decode(begin_ns, in->at, e, words);
	else
		decode_last(begin_ns, in, e, words);
}

static inline size_t take_group(const uint8_t *group, uint64_t *words, uint32_t count)
{
	const uint8_t *at = group + GROUP_HEAD;
	uint32_t sizes = get_u16(group);

	for (uint32_t i = 0; i < count; i++, sizes >>= SIZE_BITS)
		words[i] = take_sized(&at, 0, sizes);
	return (size_t)(at - group);
}

static void group_last(struct bytes *in, uint64_t *words, uint32_t count)
{
	uint8_t last[GROUP_MOST + 8] = { 0 };
	size_t left = bytes_left(in);

	if (left)
		memcpy(last, in->at, left < sizeof(last) ? left : sizeof(last));
	take_bytes(in, take_group(last, words, count));
}

void row_words(struct bytes *in, uint64_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i += GROUP) {
		uint32_t n = count - i < GROUP ? count - i : GROUP;

		if (bytes_left(in) >= GROUP_MOST + 8)
			in->at += take_group(in->at, words + i, n);
		else
			group_last(in, words + i, n);
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

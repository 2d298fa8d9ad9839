/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/main/pieces.h"

#include "schemas/buf.h"
#include "schemas/pb.h"
#include "schemas/xspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 16, HEAD_BYTES = 64 };

struct field { /* of an XSpace; all of them have a length */
	uint64_t begin, at, end; /* of its key, of what is in it, behind it */
	uint32_t number;
	bool is_host, is_run;
};

/* A plane of ours begins with its id and name. */
static bool is_named(struct bytes plane, const char *name)
{
	struct pb_field f;

	while (pb_next(&plane, &f))
		if (f.number == PLANE_NAME && f.wire == PB_BYTES)
			return (size_t)(f.bytes.end - f.bytes.at) == strlen(name) &&
			       memcmp(f.bytes.at, name, strlen(name)) == 0;
	return false;
}

/* *more is false at the end of the piece. */
static enum status next_field(int fd, const char *path, struct field *f, bool *more,
			      struct error *err)
{
	uint8_t head[HEAD_BYTES];
	ssize_t got = pread(fd, head, sizeof(head), (off_t)f->end);
	struct bytes b = { .at = head, .end = head + (got > 0 ? got : 0) };
	uint64_t key, len;

	*more = got > 0;
	if (got < 0)
		return fail(err, ST_IO, NOWHERE, "%s: %s", path, strerror(errno));
	if (!got)
		return ST_OK;
	key = take_varint(&b);
	len = take_varint(&b);
	if (b.cut || (key & 7) != PB_BYTES)
		return fail(err, ST_FORMAT, (int64_t)f->end, "%s is no piece of ours", path);
	f->begin = f->end;
	f->at = f->begin + (uint64_t)(b.at - head);
	f->end = f->at + len;
	f->number = (uint32_t)(key >> 3);
	f->is_host = f->number == SPACE_PLANES && is_named(b, XPLANE_HOST);
	f->is_run = f->number == SPACE_HOSTNAMES ||
		    (f->number == SPACE_PLANES && is_named(b, XPLANE_ENVIRONMENT));
	return ST_OK;
}

static enum status put(struct pieces *p, const uint8_t *bytes, size_t len, struct error *err)
{
	while (len) {
		ssize_t n = write(p->to, bytes, len);

		if (n < 0 && errno != EINTR)
			return fail(err, ST_IO, NOWHERE, "cannot write %s: %s", p->name,
				    strerror(errno));
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return ST_OK;
}

static enum status copy(struct pieces *p, int from, uint64_t at, uint64_t end, struct error *err)
{
	static uint8_t bytes[COPY_BYTES];

	while (at < end) {
		size_t want = end - at < COPY_BYTES ? (size_t)(end - at) : COPY_BYTES;
		ssize_t got = pread(from, bytes, want, (off_t)at);

		if (got <= 0)
			return fail(err, ST_IO, NOWHERE, "cannot read a part of %s again: %s",
				    p->name, got ? strerror(errno) : "it is shorter now");
		TRY(put(p, bytes, (size_t)got, err));
		at += (uint64_t)got;
	}
	return ST_OK;
}

enum status pieces_begin_host(struct pieces *p, struct error *err)
{
	uint8_t head[1 + VARINT_MAX] = { SPACE_PLANES << 3 | PB_BYTES };

	return p->host_len ? put(p, head, 1 + put_varint(head + 1, p->host_len), err) : ST_OK;
}

static enum status take_fields(struct pieces *p, enum pieces_pass pass, int fd, const char *path,
			       bool is_first, struct error *err)
{
	struct field f = { 0 };
	bool more;

	for (;;) {
		TRY(next_field(fd, path, &f, &more, err));
		if (!more)
			return ST_OK;
		if (pass == PIECES_COUNT)
			p->host_len += f.is_host ? f.end - f.at : 0;
		else if (pass == PIECES_HOST && f.is_host)
			TRY(copy(p, fd, f.at, f.end, err));
		else if (pass == PIECES_REST && !f.is_host && (is_first || !f.is_run))
			TRY(copy(p, fd, f.begin, f.end, err));
	}
}

enum status pieces_take(struct pieces *p, enum pieces_pass pass, const char *path, bool is_first,
			struct error *err)
{
	enum status status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return fail(err, ST_IO, NOWHERE, "%s: %s", path, strerror(errno));
	status = take_fields(p, pass, fd, path, is_first, err);
	close(fd);
	return status;
}

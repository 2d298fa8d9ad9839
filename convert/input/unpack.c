/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/internal.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PACKED_BYTES = 256 * 1024, /* compressed bytes per read */
	FIRST_BYTES = 4096,        /* the first read; all inputs are opened before one is read */
	READ_BYTES = 1 << 30,      /* most bytes per read(2) */
};

enum packing { PLAIN, GZIP, ARCHIVE };

/* Compression formats and the bytes with which they begin. */
static const struct magic {
	const char *name;
	uint8_t bytes[6], len;
	enum packing packing;
	int (*filter)(struct archive *); /* for ARCHIVE */
} magics[] = {
	{ "gzip", { 0x1f, 0x8b }, 2, GZIP, NULL },
	{ "zstd", { 0x28, 0xb5, 0x2f, 0xfd }, 4, ARCHIVE, archive_read_support_filter_zstd },
	{ "xz", { 0xfd, '7', 'z', 'X', 'Z', 0 }, 6, ARCHIVE, archive_read_support_filter_xz },
	{ "bzip2", { 'B', 'Z', 'h' }, 3, ARCHIVE, archive_read_support_filter_bzip2 },
	{ "lz4", { 0x04, 0x22, 0x4d, 0x18 }, 4, ARCHIVE, archive_read_support_filter_lz4 },
};

struct unpack {
	unpack_from from;
	void *self;                /* passed to `from` */
	const struct magic *magic; /* NULL: not compressed */
	uint8_t *packed;           /* buffer of PACKED_BYTES */
	size_t at, len;            /* range in `packed` that is not used yet */
	bool packed_end;
	uint64_t packed_total, given;
	struct error fault; /* returned after all bytes before it */
	bool ended;

	struct inflater *inflater;
	bool between; /* between two members of a gzip file */

	struct archive *archive;
	bool first_given; /* the bytes that identified the format were consumed */

	uint8_t head[UNPACK_HEAD_BYTES]; /* bytes that unpack_head() read */
	size_t head_at, head_len;
};

/* Moves the remaining compressed bytes to the front and reads more. */
static enum status refill(struct unpack *u, struct error *err)
{
	size_t cap = u->packed_total ? PACKED_BYTES : FIRST_BYTES, got;

	if (u->at)
		memmove(u->packed, u->packed + u->at, u->len);
	u->at = 0;
	if (u->packed_end || u->len == PACKED_BYTES)
		return ST_OK;
	TRY(u->from(u->self, u->packed + u->len, cap - u->len, &got, err));
	u->len += got;
	u->packed_total += got;
	u->packed_end = got == 0;
	return ST_OK;
}

/* Reads until there are at least `want` compressed bytes, or no more. */
static enum status want_packed(struct unpack *u, size_t want, struct error *err)
{
	while (u->len < want && !u->packed_end)
		TRY(refill(u, err));
	return ST_OK;
}

/* gzip: consecutive members, possibly padded with zeros. */

static enum status gzip_next_member(struct unpack *u, struct error *err)
{
	TRY(want_packed(u, 2, err));
	if (u->len >= 2 && memcmp(u->packed + u->at, magics[0].bytes, 2) == 0) {
		inflater_reset(u->inflater);
		u->between = false;
		return ST_OK;
	}
	while (u->len) { /* tapes and block devices pad with zeros */
		if (u->packed[u->at])
			return fail(err, ST_FORMAT, u->given,
				    "the gzip data is followed by something else");
		u->at++;
		u->len--;
		TRY(want_packed(u, 1, err));
	}
	u->ended = true;
	return ST_OK;
}

static enum status gzip_inflate(struct unpack *u, uint8_t *out, size_t cap, size_t *got,
				struct error *err)
{
	const uint8_t *in = u->packed + u->at;
	size_t left = u->len;
	enum inflate_outcome outcome = inflater_step(u->inflater, &in, &left, out, cap, got);

	u->at += u->len - left;
	u->len = left;
	u->between = outcome == INFLATE_END;
	if (outcome == INFLATE_NO_MEMORY)
		return fail_memory(err);
	if (outcome == INFLATE_DAMAGED)
		return fail(err, ST_FORMAT, u->given + *got, "the gzip data is damaged: %s",
			    inflater_fault(u->inflater));
	if (outcome == INFLATE_STARVED && u->packed_end)
		return fail(err, ST_TRUNCATED, u->given + *got,
			    "the gzip data is truncated after %llu packed bytes",
			    (unsigned long long)u->packed_total);
	return ST_OK;
}

static enum status gzip_read(struct unpack *u, uint8_t *out, size_t cap, size_t *got,
			     struct error *err)
{
	*got = 0;
	while (!*got && !u->ended) {
		if (u->between)
			TRY(gzip_next_member(u, err));
		else {
			TRY(want_packed(u, 1, err));
			TRY(gzip_inflate(u, out, cap, got, err));
		}
	}
	return ST_OK;
}

/* The other formats, through libarchive with one filter and the format `raw`. */

static la_ssize_t archive_take(struct archive *a, void *data, const void **bytes)
{
	struct unpack *u = data;
	struct error err = { 0 };

	if (u->first_given) {
		u->at += u->len; /* skip the block that was returned last */
		u->len = 0;
		if (refill(u, &err) != ST_OK) {
			archive_set_error(a, EIO, "%s", err.text);
			return ARCHIVE_FATAL;
		}
	}
	u->first_given = true;
	*bytes = u->packed + u->at;
	return (la_ssize_t)u->len;
}

static enum status archive_fault(struct unpack *u, struct error *err)
{
	const char *text = archive_error_string(u->archive);

	if (u->packed_end)
		return fail(err, ST_TRUNCATED, u->given, "the %s data is truncated or damaged: %s",
			    u->magic->name, text ? text : "unknown fault");
	return fail(err, ST_FORMAT, u->given, "the %s data is damaged: %s", u->magic->name,
		    text ? text : "unknown fault");
}

static enum status archive_start(struct unpack *u, struct error *err)
{
	struct archive_entry *entry;
	int code;

	u->archive = archive_read_new();
	if (!u->archive)
		return fail_memory(err);
	/* ARCHIVE_WARN: libarchive would start an external program, which no input may cause */
	if (u->magic->filter(u->archive) != ARCHIVE_OK)
		return fail(err, ST_ABSENT, NOWHERE, "this libarchive cannot unpack %s",
			    u->magic->name);
	archive_read_support_format_raw(u->archive);
	archive_read_support_format_empty(u->archive);
	if (archive_read_open(u->archive, u, NULL, archive_take, NULL) != ARCHIVE_OK)
		return archive_fault(u, err);
	code = archive_read_next_header(u->archive, &entry);
	u->ended = code == ARCHIVE_EOF;
	return u->ended || code == ARCHIVE_OK || code == ARCHIVE_WARN ? ST_OK
								      : archive_fault(u, err);
}

static enum status archive_read_some(struct unpack *u, uint8_t *out, size_t cap, size_t *got,
				     struct error *err)
{
	la_ssize_t n;

	*got = 0;
	if (!u->archive)
		TRY(archive_start(u, err));
	if (u->ended)
		return ST_OK;
	n = archive_read_data(u->archive, out, cap < READ_BYTES ? cap : READ_BYTES);
	if (n < 0)
		return archive_fault(u, err);
	*got = (size_t)n;
	u->ended = n == 0;
	return ST_OK;
}

enum status unpack_from_fd(void *fd, void *out, size_t cap, size_t *got, struct error *err)
{
	ssize_t n;

	do
		n = read(*(const int *)fd, out, cap < READ_BYTES ? cap : READ_BYTES);
	while (n < 0 && errno == EINTR);
	*got = n > 0 ? (size_t)n : 0;
	return n >= 0 ? ST_OK : fail(err, ST_IO, NOWHERE, "cannot be read: %s", strerror(errno));
}

static enum status plain_read(struct unpack *u, uint8_t *out, size_t cap, size_t *got,
			      struct error *err)
{
	if (u->len) { /* bytes that identified the format */
		*got = u->len < cap ? u->len : cap;
		memcpy(out, u->packed + u->at, *got);
		u->at += *got;
		u->len -= *got;
		return ST_OK;
	}
	TRY(u->from(u->self, out, cap, got, err));
	u->packed_total += *got;
	u->ended = *got == 0;
	return ST_OK;
}

enum status unpack_open(struct unpack **out, unpack_from from, void *self, struct error *err)
{
	struct unpack *u = calloc(1, sizeof(*u));
	enum status status;

	*out = NULL;
	if (!u || !(u->packed = malloc(PACKED_BYTES))) {
		free(u);
		return fail_memory(err);
	}
	u->from = from;
	u->self = self;
	status = want_packed(u, sizeof(magics[0].bytes), err);
	for (size_t i = 0; status == ST_OK && i < sizeof(magics) / sizeof(magics[0]); i++)
		if (u->len >= magics[i].len &&
		    memcmp(u->packed, magics[i].bytes, magics[i].len) == 0)
			u->magic = &magics[i];
	if (status == ST_OK && u->magic && u->magic->packing == GZIP)
		status = inflater_open(&u->inflater, INFLATE_FASTEST, err);
	if (status != ST_OK) {
		unpack_close(u);
		return status;
	}
	*out = u;
	return ST_OK;
}

void unpack_close(struct unpack *u)
{
	if (!u)
		return;
	inflater_close(u->inflater);
	if (u->archive)
		archive_read_free(u->archive);
	free(u->packed);
	free(u);
}

const uint8_t *unpack_head(struct unpack *u, size_t *len)
{
	size_t got = 1, have = 0;

	while (have < sizeof(u->head) && got &&
	       unpack_read(u, u->head + have, sizeof(u->head) - have, &got, NULL) == ST_OK)
		have += got;
	*len = u->head_len = have;
	return u->head;
}

enum status unpack_read(struct unpack *u, uint8_t *out, size_t cap, size_t *got, struct error *err)
{
	enum status status = ST_OK;

	*got = u->head_len < cap ? u->head_len : cap;
	if (*got) {
		memcpy(out, u->head + u->head_at, *got);
		u->head_at += *got;
		u->head_len -= *got;
		return ST_OK;
	}
	if (!u->ended && u->fault.status == ST_OK) {
		enum packing packing = u->magic ? u->magic->packing : PLAIN;

		status = packing == PLAIN  ? plain_read(u, out, cap, got, &u->fault)
			 : packing == GZIP ? gzip_read(u, out, cap, got, &u->fault)
					   : archive_read_some(u, out, cap, got, &u->fault);
		u->given += *got;
	}
	if (status != ST_OK)
		u->fault.status = status;
	if (*got || u->fault.status == ST_OK)
		return ST_OK;
	if (err)
		*err = u->fault;
	return u->fault.status;
}

bool unpack_is_plain(const struct unpack *u)
{
	return !u->magic;
}

uint64_t unpack_packed(const struct unpack *u)
{
	return u->packed_total - u->len;
}

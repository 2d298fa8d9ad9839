/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/internal.h"

#include "schemas/base/utf8.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_BYTES = 64 * 1024,
	TAR_MAGIC_AT = 257,
	SUM_AT = 148,
	SUM_BYTES = 8,
	HEAD_BYTES = 256, /* bytes to recognize our reports and manifests */
	ADDRESS_BYTES = 1024,
};

struct archive_in {
	unpack_from from;
	void *self; /* passed to `from` */
	struct archive *archive;
	struct error fault; /* error of `from`, which libarchive would reduce to a text */
	bool is_named;      /* opened by its address */
	bool at_end;
	uint64_t member; /* number of the current member, from 1 */
	char address[ADDRESS_BYTES];
	uint8_t pending[HEAD_BYTES]; /* bytes of the member that were read ahead */
	size_t pending_at, pending_len;
	uint8_t block[BLOCK_BYTES];
};

/*
 * Returns whether the bytes begin a tar archive.  Any file may contain "ustar" at that offset, so
 * the checksum must match too: the sum of the header's bytes in octal, computed with blanks in
 * place of the checksum itself (POSIX pax).
 */
static bool is_tar(const uint8_t *head, size_t len)
{
	unsigned sum = SUM_BYTES * ' ', stated = 0;
	size_t i;

	if (len < UNPACK_HEAD_BYTES || memcmp(head + TAR_MAGIC_AT, "ustar", 5) != 0)
		return false;
	for (i = 0; i < UNPACK_HEAD_BYTES; i++)
		if (i < SUM_AT || i >= SUM_AT + SUM_BYTES)
			sum += head[i];
	for (i = SUM_AT; i < SUM_AT + SUM_BYTES; i++)
		if (head[i] >= '0' && head[i] < '8')
			stated = stated * 8 + (head[i] - '0');
		else if (head[i] != ' ' || stated)
			break;
	return stated == sum;
}

bool archive_begins(const uint8_t *head, size_t len)
{
	if (len >= 4 && memcmp(head, "PK", 2) == 0 &&
	    ((head[2] == 3 && head[3] == 4) || (head[2] == 5 && head[3] == 6)))
		return true;
	return is_tar(head, len);
}

bool archive_is(struct unpack *u)
{
	size_t len;
	const uint8_t *head = unpack_head(u, &len);

	return archive_begins(head, len);
}

static la_ssize_t give(struct archive *archive, void *data, const void **bytes)
{
	struct archive_in *a = data;
	size_t got = 0;

	if (a->from(a->self, a->block, sizeof(a->block), &got, &a->fault) != ST_OK) {
		archive_set_error(archive, EIO, "%s", a->fault.text);
		return ARCHIVE_FATAL;
	}
	*bytes = a->block;
	return (la_ssize_t)got;
}

static enum status broken(struct archive_in *a, struct error *err)
{
	const char *text = archive_error_string(a->archive);

	if (a->fault.status != ST_OK) {
		if (err)
			*err = a->fault;
		return a->fault.status;
	}
	return fail(err, text && strstr(text, "runcated") ? ST_TRUNCATED : ST_FORMAT, NOWHERE,
		    "the archive is damaged or unreadable: %s", text ? text : "unknown fault");
}

/* ---- members ---- */

/* Returns whether a terminal shows the name as it is, so that it can be an address. */
static bool is_printable(const char *text)
{
	size_t len = strlen(text);

	for (size_t at = 0; at < len;) {
		size_t n = utf8_sequence(text + at, len - at);
		const char *next = text + at;

		if (!n || utf8_is_control(utf8_next(&next)))
			return false;
		at += n;
	}
	return len > 0 && len < ADDRESS_BYTES && text[0] != '#';
}

/* Finds the next member with the name of a trace, or the one with the address `wanted`.  Sets
 * a->at_end if there is none. */
static enum status next_member(struct archive_in *a, const char *wanted, struct error *err)
{
	struct archive_entry *entry;

	for (;;) {
		int code = archive_read_next_header(a->archive, &entry);
		const char *name, *slash;

		a->at_end = code == ARCHIVE_EOF;
		if (a->at_end)
			return ST_OK;
		if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
			return broken(a, err);
		a->member++;
		name = archive_entry_pathname(entry);
		name = name ? name : "";
		slash = strrchr(name, '/');
		if (archive_entry_filetype(entry) != AE_IFREG ||
		    !input_name_says_trace(slash ? slash + 1 : name))
			continue;
		if (is_printable(name))
			snprintf(a->address, sizeof(a->address), "%s", name);
		else
			snprintf(a->address, sizeof(a->address), "#%llu",
				 (unsigned long long)a->member);
		if (!wanted || strcmp(wanted, a->address) == 0)
			return ST_OK;
	}
}

static enum status fill_pending(struct archive_in *a, struct error *err)
{
	a->pending_at = a->pending_len = 0;
	while (a->pending_len < HEAD_BYTES) {
		la_ssize_t n = archive_read_data(a->archive, a->pending + a->pending_len,
						 HEAD_BYTES - a->pending_len);

		if (n < 0 && !a->pending_len)
			return broken(a, err);
		if (n <= 0)
			break;
		a->pending_len += (size_t)n;
	}
	return ST_OK;
}

/* Returns whether the member is a report or manifest next to the logs of a bundle. */
static bool is_own_report(const struct archive_in *a)
{
	return memmem(a->pending, a->pending_len, "\"schema\": \"tacho.", 17) ||
	       memmem(a->pending, a->pending_len, "\"schema\":\"tacho.", 16) ||
	       memmem(a->pending, a->pending_len, "\"schema\":\t\"tacho.", 17);
}

static enum status find_member(struct archive_in *a, const char *wanted, struct error *err)
{
	do {
		TRY(next_member(a, wanted, err));
		if (a->at_end)
			break;
		TRY(fill_pending(a, err));
	} while (!wanted && is_own_report(a));
	return ST_OK;
}

enum status archive_in_open(struct archive_in **out, unpack_from from, void *self,
			    const char *member, struct error *err)
{
	struct archive_in *a = calloc(1, sizeof(*a));
	enum status status = ST_OK;

	*out = NULL;
	if (!a || !(a->archive = archive_read_new())) {
		free(a);
		return fail_memory(err);
	}
	a->from = from;
	a->self = self;
	a->is_named = member != NULL;
	archive_read_support_format_tar(a->archive);
	archive_read_support_format_gnutar(a->archive);
	archive_read_support_format_zip_streamable(a->archive);
	if (archive_read_open(a->archive, a, NULL, give, NULL) != ARCHIVE_OK)
		status = broken(a, err);
	if (status == ST_OK)
		status = find_member(a, member, err);
	if (status == ST_OK && a->at_end && member)
		status = fail(err, ST_FORMAT, NOWHERE, "the archive has no such member");
	else if (status == ST_OK && a->at_end)
		status = fail(err, ST_FORMAT, NOWHERE,
			      "an archive that holds no trace (none of its files is named like "
			      "one; an archive inside it stays closed)");
	if (status != ST_OK) {
		archive_in_close(a);
		return status;
	}
	*out = a;
	return ST_OK;
}

void archive_in_close(struct archive_in *a)
{
	if (!a)
		return;
	archive_read_free(a->archive);
	free(a);
}

/* Returns an error if a second trace follows, because it would silently be left out. */
static enum status look_for_more(struct archive_in *a, struct error *err)
{
	if (a->is_named || a->at_end)
		return ST_OK;
	TRY(find_member(a, NULL, err));
	if (a->at_end)
		return ST_OK;
	a->at_end = true;
	a->pending_len = 0;
	return fail(err, ST_FORMAT, NOWHERE,
		    "the archive contains several traces (the second is %s), but only the first "
		    "can be read from standard input",
		    a->address);
}

enum status archive_in_read(void *archive, void *out, size_t cap, size_t *got, struct error *err)
{
	struct archive_in *a = archive;
	la_ssize_t n;

	*got = 0;
	if (a->pending_len) {
		*got = a->pending_len < cap ? a->pending_len : cap;
		memcpy(out, a->pending + a->pending_at, *got);
		a->pending_at += *got;
		a->pending_len -= *got;
		return ST_OK;
	}
	if (a->at_end)
		return ST_OK;
	n = archive_read_data(a->archive, out, cap);
	if (n < 0)
		return broken(a, err);
	*got = (size_t)n;
	return n ? ST_OK : look_for_more(a, err);
}

enum status archive_in_list(struct archive_in *a, archive_name each, void *self, struct error *err)
{
	while (!a->at_end) {
		TRY(each(self, a->address, err));
		if (next_member(a, NULL, err) != ST_OK)
			break; /* reading the member reports the error */
	}
	return ST_OK;
}

uint64_t archive_in_at(const struct archive_in *a)
{
	int64_t at = archive_read_header_position(a->archive);

	return at > 0 ? (uint64_t)at : 0;
}

bool archive_in_is_over(const struct archive_in *a)
{
	return a->at_end;
}

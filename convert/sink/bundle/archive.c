/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/bundle/archive.h"

#include "convert/sink/bundle/sha256.h"
#include "convert/output/output.h"

#include <archive.h>
#include <archive_entry.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	COPY_BYTES = 64 * 1024,
	NAME_BYTES = 512,
	STEM_BYTES = 256,
	/* The time of all files, so that the same input gives the same bytes; zip writes a time
	 * before 1980 the same way in all time zones. */
	MADE_S = 0,
};

struct bundle {
	struct out *out;
	struct archive *archive;
	cJSON *files;          /* the manifest's list */
	struct error fault;    /* of the output, kept over libarchive */
	char stem[STEM_BYTES]; /* the folder in the archive */
};

/* Endings of names.  The output itself deflates a name that ends in .gz (output.h). */
static const struct ending {
	const char *text;
	int (*format)(struct archive *);
	int (*filter)(struct archive *);
} endings[] = {
	{ ".tar.zst", archive_write_set_format_pax_restricted, archive_write_add_filter_zstd },
	{ ".tzst", archive_write_set_format_pax_restricted, archive_write_add_filter_zstd },
	{ ".tar.gz", archive_write_set_format_pax_restricted, archive_write_add_filter_none },
	{ ".tar", archive_write_set_format_pax_restricted, archive_write_add_filter_none },
	{ ".zip", archive_write_set_format_zip, archive_write_add_filter_none },
};

static la_ssize_t give(struct archive *archive, void *data, const void *bytes, size_t len)
{
	struct bundle *b = data;

	if (out_write(b->out, bytes, len, &b->fault) == ST_OK)
		return (la_ssize_t)len;
	archive_set_error(archive, EIO, "%s", b->fault.text);
	return -1;
}

static enum status broken(struct bundle *b, struct error *err)
{
	const char *text = archive_error_string(b->archive);

	if (b->fault.status != ST_OK) {
		if (err)
			*err = b->fault;
		return b->fault.status;
	}
	return fail(err, ST_IO, NOWHERE, "the archive cannot be written: %s",
		    text ? text : "unknown fault");
}

static enum status open_archive(struct bundle *b, const char *name, struct error *err)
{
	const struct ending *e = endings;
	const char *slash = strrchr(name, '/');
	size_t len, count = sizeof(endings) / sizeof(*endings);

	for (; e < endings + count; e++) {
		size_t n = strlen(e->text);

		len = strlen(name);
		if (len > n && strcmp(name + len - n, e->text) == 0)
			break;
	}
	if (e == endings + count)
		return fail(err, ST_USAGE, NOWHERE,
			    "a bundle's name ends in .tar.zst, .tar.gz, .tar or .zip");
	name = slash ? slash + 1 : name;
	len = strlen(name);
	len -= len > strlen(e->text) ? strlen(e->text) : 0;
	snprintf(b->stem, sizeof(b->stem), "%.*s", (int)(len < 200 ? len : 200), name);
	if (!b->stem[0] || b->stem[0] == '.')
		snprintf(b->stem, sizeof(b->stem), "bundle");
	if (e->format(b->archive) != ARCHIVE_OK)
		return broken(b, err);
	/* ARCHIVE_WARN: it would start a program of that name, which no output shall do */
	if (e->filter(b->archive) != ARCHIVE_OK)
		return fail(err, ST_ABSENT, NOWHERE, "this libarchive cannot pack %s", e->text);
	archive_write_set_bytes_in_last_block(b->archive, 1);
	if (archive_write_open(b->archive, b, NULL, give, NULL) != ARCHIVE_OK)
		return broken(b, err);
	return ST_OK;
}

enum status bundle_new(struct bundle **result, struct out *out, struct error *err)
{
	const char *name = out_name(out);
	struct bundle *b = calloc(1, sizeof(*b));
	enum status status;

	*result = NULL;
	if (!b || !(b->files = cJSON_CreateArray()) || !(b->archive = archive_write_new())) {
		status = fail_memory(err);
	} else {
		b->out = out;
		status = open_archive(b, name ? name : "bundle.tar.zst", err);
	}
	if (status != ST_OK) {
		bundle_free(b);
		return status;
	}
	*result = b;
	return ST_OK;
}

void bundle_free(struct bundle *b)
{
	if (!b)
		return;
	if (b->archive) {
		archive_write_fail(b->archive); /* nothing more is written */
		archive_write_free(b->archive);
	}
	cJSON_Delete(b->files);
	free(b);
}

/* ---- members ---- */

static enum status begin(struct bundle *b, const char *name, uint64_t bytes, struct error *err)
{
	struct archive_entry *entry = archive_entry_new();
	char path[NAME_BYTES];
	int code;

	if (!entry)
		return fail_memory(err);
	snprintf(path, sizeof(path), "%s/%s", b->stem, name);
	archive_entry_set_pathname(entry, path);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_size(entry, (la_int64_t)bytes);
	archive_entry_set_mtime(entry, MADE_S, 0);
	code = archive_write_header(b->archive, entry);
	archive_entry_free(entry);
	return code == ARCHIVE_OK ? ST_OK : broken(b, err);
}

static enum status put_bytes(struct bundle *b, const void *bytes, size_t len, struct error *err)
{
	return !len || archive_write_data(b->archive, bytes, len) == (la_ssize_t)len
		       ? ST_OK
		       : broken(b, err);
}

static enum status note(struct bundle *b, const char *name, struct sha256 *sha, uint64_t bytes,
			struct error *err)
{
	char text[SHA256_TEXT];
	cJSON *file = cJSON_CreateObject();

	if (!file || !cJSON_AddItemToArray(b->files, file) ||
	    !cJSON_AddStringToObject(file, "name", name) ||
	    !cJSON_AddNumberToObject(file, "bytes", (double)bytes) ||
	    !cJSON_AddStringToObject(file, "sha256", sha256_text(sha, text)))
		return fail_memory(err);
	return ST_OK;
}

enum status bundle_put(struct bundle *b, const char *name, const void *bytes, size_t len,
		       struct error *err)
{
	struct sha256 sha;

	sha256_init(&sha);
	sha256_put(&sha, bytes, len);
	TRY(begin(b, name, len, err));
	TRY(put_bytes(b, bytes, len, err));
	return note(b, name, &sha, len, err);
}

enum status bundle_put_file(struct bundle *b, const char *name, const char *path, struct error *err)
{
	static _Thread_local uint8_t block[COPY_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct sha256 sha;
	struct stat st = { .st_size = 0 };
	enum status status = ST_OK;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) != 0)
		status = fail(err, ST_IO, NOWHERE, "the scratch file cannot be read: %s",
			      strerror(errno));
	sha256_init(&sha);
	if (status == ST_OK)
		status = begin(b, name, (uint64_t)st.st_size, err);
	for (uint64_t left = (uint64_t)st.st_size; status == ST_OK && left;) {
		n = read(fd, block, left < COPY_BYTES ? (size_t)left : COPY_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0) {
			sha256_put(&sha, block, (size_t)n);
			status = put_bytes(b, block, (size_t)n, err);
			left -= (uint64_t)n;
		} else {
			status = fail(err, ST_IO, NOWHERE, "the scratch file cannot be read: %s",
				      n < 0 ? strerror(errno) : "it is shorter than it was");
		}
	}
	if (status == ST_OK)
		status = note(b, name, &sha, (uint64_t)st.st_size, err);
	if (fd >= 0)
		close(fd);
	return status;
}

/* ---- the end ---- */

enum status bundle_finish(struct bundle *b, uint64_t events, struct error *err)
{
	cJSON *m = cJSON_CreateObject();
	char *text = NULL;
	enum status status;

	if (m && cJSON_AddStringToObject(m, "schema", "tacho.manifest/1") &&
	    cJSON_AddStringToObject(m, "tool", "Tacho " TACHO_VERSION) &&
	    cJSON_AddNumberToObject(m, "events", (double)events) &&
	    cJSON_AddItemToObject(m, "files", b->files)) {
		b->files = NULL; /* the manifest owns it now */
		text = cJSON_Print(m);
	}
	cJSON_Delete(m);
	if (!text)
		return fail_memory(err);
	status = begin(b, "manifest.json", strlen(text), err);
	if (status == ST_OK)
		status = put_bytes(b, text, strlen(text), err);
	cJSON_free(text);
	if (status == ST_OK && archive_write_close(b->archive) != ARCHIVE_OK)
		status = broken(b, err);
	return status;
}

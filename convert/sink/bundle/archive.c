/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/bundle/internal.h"

#include "convert/output/output.h"
#include "schemas/base/buf.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	COPY_BYTES = 64 * 1024,
	NAME_BYTES = 512,
	STEM_BYTES = 256,
	MANIFEST_CEILING = 1 << 20,
	/* Modification time of all files, so that the same input gives the same bytes.  zip writes
	 * a time before 1980 the same way in all time zones. */
	MADE_S = 0,
};

struct bundle {
	struct out *out;
	struct archive *archive;
	struct buf files;      /* the manifest's list, as JSON */
	struct error fault;    /* error of the output, because libarchive keeps only its text */
	char stem[STEM_BYTES]; /* the folder in the archive */
};

/* Formats by the ending of the name.  The output itself compresses if its name ends in .gz
 * (output.h). */
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
	const struct ending *e = endings, *end = endings + sizeof(endings) / sizeof(*endings);
	const char *slash = strrchr(name, '/');
	size_t len = strlen(name);

	while (e < end &&
	       (len <= strlen(e->text) || strcmp(name + len - strlen(e->text), e->text) != 0))
		e++;
	if (e == end)
		return fail(err, ST_USAGE, NOWHERE,
			    "the name of a bundle must end in .tar.zst, .tar.gz, .tar or .zip");
	name = slash ? slash + 1 : name;
	len = strlen(name);
	len -= len > strlen(e->text) ? strlen(e->text) : 0;
	snprintf(b->stem, sizeof(b->stem), "%.*s", (int)(len < 200 ? len : 200), name);
	if (!b->stem[0] || b->stem[0] == '.')
		snprintf(b->stem, sizeof(b->stem), "bundle");
	if (e->format(b->archive) != ARCHIVE_OK)
		return broken(b, err);
	/* ARCHIVE_WARN means that libarchive would run an external program, which no output may do.
	 */
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
	if (!b || !(b->archive = archive_write_new())) {
		free(b);
		return fail_memory(err);
	}
	b->out = out;
	buf_init(&b->files, MANIFEST_CEILING);
	status = open_archive(b, name ? name : "bundle.tar.zst", err);
	if (status == ST_OK)
		*result = b;
	else
		bundle_free(b);
	return status;
}

void bundle_free(struct bundle *b)
{
	if (!b)
		return;
	archive_write_fail(b->archive); /* prevents further writing */
	archive_write_free(b->archive);
	buf_release(&b->files);
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
	return archive_write_data(b->archive, bytes, len) == (la_ssize_t)len ? ST_OK
									     : broken(b, err);
}

/* Writes a member with `size` bytes of `file`, and adds it to the manifest. */
static enum status put_stream(struct bundle *b, const char *name, FILE *file, uint64_t size,
			      struct error *err)
{
	static _Thread_local uint8_t block[COPY_BYTES];
	char text[SHA256_TEXT];
	struct sha256 sha;
	size_t n;

	sha256_init(&sha);
	TRY(begin(b, name, size, err));
	for (uint64_t left = size; left; left -= n) {
		n = fread(block, 1, left < COPY_BYTES ? (size_t)left : COPY_BYTES, file);
		if (!n)
			return fail(err, ST_IO, NOWHERE, "cannot read the temporary file: %s",
				    ferror(file) ? strerror(errno)
						 : "it became shorter while it was read");
		sha256_put(&sha, block, n);
		TRY(put_bytes(b, block, n, err));
	}
	/* the layout is that of cJSON */
	buf_putf(&b->files,
		 "%s{\n\t\t\t\"name\":\t\"%s\",\n\t\t\t\"bytes\":\t%llu,\n"
		 "\t\t\t\"sha256\":\t\"%s\"\n\t\t}",
		 b->files.len ? ", " : "", name, (unsigned long long)size, sha256_text(&sha, text));
	return ST_OK;
}

enum status bundle_put(struct bundle *b, const char *name, const void *bytes, size_t len,
		       struct error *err)
{
	FILE *file = fmemopen((void *)(uintptr_t)bytes, len, "r");
	enum status status = file ? put_stream(b, name, file, len, err) : fail_memory(err);

	if (file)
		fclose(file);
	return status;
}

enum status bundle_put_file(struct bundle *b, const char *name, const char *path, struct error *err)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	enum status status;

	if (!file || fstat(fileno(file), &st) != 0)
		status = fail(err, ST_IO, NOWHERE, "cannot read the temporary file: %s",
			      strerror(errno));
	else
		status = put_stream(b, name, file, (uint64_t)st.st_size, err);
	if (file)
		fclose(file);
	return status;
}

enum status bundle_finish(struct bundle *b, uint64_t events, struct error *err)
{
	RELEASED_BY(buf_release) struct buf text;

	buf_init(&text, 2 * MANIFEST_CEILING);
	buf_putf(&text,
		 "{\n\t\"schema\":\t\"tacho.manifest/1\",\n\t\"tool\":\t\"Tacho " TACHO_VERSION
		 "\",\n\t\"events\":\t%llu,\n\t\"files\":\t[%s]\n}",
		 (unsigned long long)events, buf_text(&b->files));
	TRY(buf_status(&b->files, err));
	TRY(buf_status(&text, err));
	TRY(begin(b, "manifest.json", text.len, err));
	TRY(put_bytes(b, text.data, text.len, err));
	return archive_write_close(b->archive) == ARCHIVE_OK ? ST_OK : broken(b, err);
}

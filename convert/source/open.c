/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/source.h"

#include "convert/input/input.h"
#include "convert/source/spooled.h"
#include "schemas/base/bytes.h"
#include "schemas/log/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	HEAD_BYTES = 64 * 1024,
	SHOWN_BYTES = 16,
	CLAIM = 50,       /* least bid that claims a file */
	GUESS = 60,       /* greatest bid of a reader that recognized only the container */
	OWN_BYTES = 4096, /* the first bytes of an output, which contain our mark */
	SQLITE_ID_AT = 68,
};

/* Returns the reader with the highest remaining bid and clears that bid.  Returns NULL if no bid
 * remains. */
static const struct source_type *best_bidder(int bids[SOURCE_TYPES])
{
	size_t best = 0, i;

	for (i = 1; source_types[i]; i++)
		if (bids[i] > bids[best])
			best = i;
	if (bids[best] <= 0)
		return NULL;
	bids[best] = 0;
	return source_types[best];
}

static void ask_bidders(int bids[SOURCE_TYPES], const uint8_t *head, size_t len)
{
	for (size_t i = 0; source_types[i]; i++)
		bids[i] = source_types[i]->bid(head, len < HEAD_BYTES ? len : HEAD_BYTES);
}

/* Fails with what the file is, or with its first bytes: as text if they are text, otherwise in
 * hexadecimal. */
static enum status refuse(const char *path, const uint8_t *head, size_t len, struct error *err)
{
	char shown[SHOWN_BYTES * 3 + 1] = "";
	size_t i, used = 0, n = len < SHOWN_BYTES ? len : SHOWN_BYTES;
	const char *known = source_known(path, head, len);
	bool is_text = true;

	if (known)
		return fail(err, ST_FORMAT, 0, "not a trace that Tacho reads, but %s", known);
	for (i = 0; i < n; i++)
		is_text = is_text && ((head[i] >= 0x20 && head[i] < 0x7f) ||
				      (head[i] >= '\t' && head[i] <= '\r'));
	for (i = 0; i < n; i++)
		used += (size_t)snprintf(shown + used, sizeof(shown) - used,
					 is_text ? "%c"
					 : i     ? " %02x"
						 : "%02x",
					 head[i]);
	return fail(err, ST_FORMAT, 0, "not a trace that Tacho reads (it begins with %s%s%s%s)",
		    is_text ? "'" : "the bytes ", shown, is_text ? "'" : "", len > n ? " ..." : "");
}

enum status source_open_as(struct source **out, const struct source_type *type, struct input *in,
			   struct trace *trace, const struct budget *budget,
			   const struct filter *wanted, struct error *err)
{
	return type->spooled ? spool_source_open(out, type, in, trace, budget, err)
			     : type->open(out, in, trace, budget, wanted, err);
}

enum status source_open(struct source **out, struct input *in, struct trace *trace,
			const struct budget *budget, const struct filter *wanted, struct error *err)
{
	const struct source_type *type;
	struct error own = { 0 }, first = { 0 };
	enum status status, worst = ST_OK;
	const uint8_t *head;
	int bids[SOURCE_TYPES], most = 0;
	size_t len;

	*out = NULL;
	TRY(input_peek(in, HEAD_BYTES, &head, &len, err));
	if (!len)
		return fail(err, ST_FORMAT, 0, "the input is empty");
	ask_bidders(bids, head, len);
	for (size_t i = 0; source_types[i]; i++)
		most = bids[i] > most ? bids[i] : most;
	type = best_bidder(bids);
	if (!type || (most <= GUESS && source_known(input_path(in), head, len)))
		return refuse(input_path(in), head, len, err);
	for (; type; type = best_bidder(bids)) {
		status = source_open_as(out, type, in, trace, budget, wanted, &own);
		if (status == ST_OK)
			return ST_OK;
		*out = NULL;
		if (worst == ST_OK) { /* the best bidder's error is best */
			worst = status;
			first = own;
		}
		if (status != ST_FORMAT || input_at(in))
			break; /* the reader consumed input, so another one cannot start over */
	}
	if (err)
		*err = first;
	return worst;
}

static bool head_contains(const uint8_t *head, size_t len, const char *text)
{
	return memmem(head, len < OWN_BYTES ? len : OWN_BYTES, text, strlen(text)) != NULL;
}

/* Returns whether a file is an output of Tacho.  Bytes 68 to 71 of SQLite's header are the
 * application id. */
static bool is_own(const uint8_t *head, size_t len)
{
	static const char sqlite[] = "SQLite format 3";

	if (len >= SQLITE_ID_AT + 4 && !memcmp(head, sqlite, sizeof(sqlite)))
		return !memcmp(head + SQLITE_ID_AT, SQLITE_OWN_ID, 4);
	return head_contains(head, len, OWN_KEY) && head_contains(head, len, "Tacho");
}

/* The identities (input_identity()) of all found files, sorted.  The list is built when the first
 * log needs it. */
struct identities {
	char **all;
	size_t count;
};

static int compare_identities(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status identities_make(struct identities *p, const struct input_paths *paths,
				   struct error *err)
{
	if (p->all)
		return ST_OK;
	p->all = calloc(paths->count + 1, sizeof(*p->all));
	while (p->all && p->count < paths->count &&
	       (p->all[p->count] = input_identity(paths->paths[p->count])))
		p->count++;
	if (p->count < paths->count)
		return fail_memory(err);
	qsort(p->all, p->count, sizeof(*p->all), compare_identities);
	return ST_OK;
}

/*
 * Returns the list of files from which a log was made, or no bytes if its head contains none.  The
 * recorder's logs have no META block.  Bytes after the head are not read.
 */
static struct bytes sources_of_log(const uint8_t *head, size_t len)
{
	struct log_block block = { .kind = LOG_NAMES };
	size_t skipped;

	for (uint64_t at = LOG_FILE_HEADER_BYTES;
	     at < len && log_find_block(head + at, len - at, at, &block, &skipped, NULL) == ST_OK &&
	     block.kind != LOG_EVENTS;
	     at = block.offset + LOG_HEADER_BYTES + block.size) {
		uint64_t payload = block.offset + LOG_HEADER_BYTES;

		if (block.kind != LOG_META || payload + block.size > len)
			continue;
		struct bytes row = bytes_init(head + payload, block.size);
		/* skip the first id, the size of the row, its bits and a format */
		for (unsigned i = 0; i < 4; i++)
			take_varint(&row);
		return take_part(&row, take_varint(&row));
	}
	return bytes_init(NULL, 0);
}

/* Sets *is_made to whether the log paths[log] was made from another file that was found. */
static enum status ask_sources(struct identities *p, const struct input_paths *paths, size_t log,
			       struct bytes sources, bool *is_made, struct error *err)
{
	char *own, *text, *save = NULL;

	*is_made = false;
	if (!bytes_left(&sources))
		return ST_OK;
	TRY(identities_make(p, paths, err));
	own = input_identity(paths->paths[log]);
	text = strndup((const char *)sources.at, bytes_left(&sources));
	for (char *at = own && text ? strtok_r(text, "\n", &save) : NULL; at && !*is_made;
	     at = strtok_r(NULL, "\n", &save))
		*is_made = strcmp(at, own) != 0 &&
			   bsearch(&at, p->all, p->count, sizeof(*p->all), compare_identities);
	bool is_full = own && text;
	free(own);
	free(text);
	return is_full ? ST_OK : fail_memory(err);
}

/*
 * Sets *claimed to whether some reader claims paths[i], a file found in a folder, and *own to
 * whether Tacho wrote it.  A file that cannot be read counts as claimed, so that opening it reports
 * the error.
 */
static enum status ask_found(const struct input_paths *paths, size_t i,
			     struct identities *identities, const char *scratch, bool *claimed,
			     bool *own, struct error *err)
{
	struct input *in = NULL;
	const uint8_t *head;
	const char *path = paths->paths[i];
	const char *slash = strrchr(path, '/'), *name = slash ? slash : path;
	const char *colon = strrchr(name, ':'); /* before a member's name */
	bool is_log = strstr(colon ? colon : name, ".tacho") != NULL;
	enum status status = ST_OK;
	int bids[SOURCE_TYPES];
	size_t len;

	*claimed = true;
	if (is_log && paths->count == 1)
		return ST_OK;
	if (input_open(&in, path, scratch, NULL) != ST_OK ||
	    input_peek(in, HEAD_BYTES, &head, &len, NULL) != ST_OK) {
		input_close(in);
		return ST_OK;
	}
	if (is_log) {
		status = ask_sources(identities, paths, i, sources_of_log(head, len), own, err);
	} else {
		ask_bidders(bids, head, len);
		*claimed = false;
		for (size_t k = 0; source_types[k]; k++)
			*claimed = *claimed || bids[k] >= CLAIM;
		*own = is_own(head, len);
	}
	input_close(in);
	return status;
}

/* Returns whether `path` ends with `end`, with or without .gz: a member of an archive may be packed
 * too. */
static bool path_ends(const char *path, const char *end)
{
	size_t len = strlen(path), cut = strlen(end);

	len -= len > 3 && !strcmp(path + len - 3, ".gz") ? 3 : 0;
	return len > cut && !strncmp(path + len - cut, end, cut);
}

/* Returns whether paths[json], named HOST.trace.json or perfetto_trace.json, is next to the XSpace
 * that it shows. */
static bool is_twin(const struct input_paths *paths, size_t json)
{
	const char *path = paths->paths[json], *slash = strrchr(path, '/');
	size_t folder = slash ? (size_t)(slash + 1 - path) : 0, host;
	bool is_of_all = path_ends(path, "perfetto_trace.json");

	if (!path_ends(path, ".trace.json") && !is_of_all)
		return false;
	host = (size_t)(strstr(path + folder, is_of_all ? "perfetto" : ".trace.json") - path);
	for (size_t i = 0; i < paths->count; i++) {
		const char *other = paths->paths[i];
		const char *end =
			strstr(other + (strlen(other) > folder ? folder : 0), ".xplane.pb");

		if (end && !strncmp(other, path, folder) && !strchr(other + folder, '/') &&
		    (is_of_all || ((size_t)(end - other) == host && !strncmp(other, path, host))))
			return true;
	}
	return false;
}

enum found { FOUND_INPUT, FOUND_NO_TRACE, FOUND_OWN, FOUND_TWIN };

/* Removes the files that `found` marks as `what` and returns their number.  Keeps them if no other
 * file would remain, unless they are FOUND_NO_TRACE. */
static size_t leave_out(struct input_paths *paths, enum found *found, enum found what)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < paths->count; i++)
		count += found[i] == what;
	if (count == paths->count && what != FOUND_NO_TRACE)
		return 0;
	for (size_t i = 0; i < paths->count; i++) {
		if (found[i] == what) {
			free(paths->paths[i]);
			continue;
		}
		found[kept] = found[i];
		paths->searched[kept] = paths->searched[i];
		paths->paths[kept++] = paths->paths[i];
	}
	paths->count = kept;
	return count;
}

/* Replaces `err` by the kind of the first found file that is no trace but of a known kind. */
static void name_other(const struct input_paths *paths, const char *scratch, struct error *err)
{
	const char *known = NULL;

	for (size_t i = 0; i < paths->other_count && !known; i++) {
		struct input *in = NULL;
		const uint8_t *head;
		size_t len;

		if (input_open(&in, paths->others[i], scratch, NULL) == ST_OK &&
		    input_peek(in, HEAD_BYTES, &head, &len, NULL) == ST_OK)
			known = source_known(paths->others[i], head, len);
		if (known)
			fail(err, ST_FORMAT, NOWHERE, "no trace was found, but %s is %s",
			     paths->others[i], known);
		input_close(in);
	}
}

enum status source_paths_find(struct input_paths *out, char *const *operands, size_t count,
			      const char *scratch, struct passed_over *passed, struct error *err)
{
	struct identities identities = { .all = NULL };
	enum status status = ST_OK;
	enum found *found;

	*passed = (struct passed_over){ 0 };
	status = input_paths_find(out, operands, count, scratch, err);
	if (status == ST_FORMAT)
		name_other(out, scratch, err);
	found = status == ST_OK ? calloc(out->count + 1, sizeof(*found)) : NULL;
	if (status == ST_OK && !found)
		status = fail_memory(err);
	for (size_t i = 0; i < out->count && status == ST_OK; i++) {
		bool own = false, claimed;

		if (!out->searched[i])
			continue;
		status = ask_found(out, i, &identities, scratch, &claimed, &own, err);
		if (!claimed)
			found[i] = FOUND_NO_TRACE;
		else if (is_twin(out, i))
			found[i] = FOUND_TWIN;
		else if (own)
			found[i] = FOUND_OWN;
	}
	while (identities.count)
		free(identities.all[--identities.count]);
	free(identities.all);
	if (status != ST_OK) {
		free(found);
		input_paths_free(out);
		return status;
	}
	for (size_t i = 0; i < out->count && out->other_count < INPUT_OTHERS_MOST; i++)
		if (found[i] == FOUND_NO_TRACE &&
		    (out->others[out->other_count] = strdup(out->paths[i])))
			out->other_count++;
	passed->no_trace = leave_out(out, found, FOUND_NO_TRACE);
	passed->twin = leave_out(out, found, FOUND_TWIN);
	passed->own = leave_out(out, found, FOUND_OWN);
	free(found);
	if (out->count)
		return ST_OK;
	fail(err, ST_FORMAT, NOWHERE,
	     passed->no_trace == 1 ? "the only file found is not a trace"
				   : "none of the %zu files found is a trace",
	     passed->no_trace);
	name_other(out, scratch, err);
	return ST_FORMAT;
}

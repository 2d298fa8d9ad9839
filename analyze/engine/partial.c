/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/partial.h"

#include "analyze/engine/table_partial.h"
#include "schemas/base/crc32c.h"

#include <stdio.h>

enum { AT_VERSION = 8, AT_CRC = 12, AT_LENGTH = 16, STATUS_MAX = 64 };

/* ---- writing ---------------------------------------------------------------------------- */

enum status engine_partial_put(const struct engine_result *r, const char *settings, struct buf *out,
			       struct error *err)
{
	struct partial_writer w = { .out = out };
	size_t begin = out->len;

	buf_fill(out, 0, PARTIAL_HEADER_BYTES);
	partial_put_text(&w, settings);
	buf_put_varint(out, r->input_count);
	for (size_t i = 0; i < r->input_count; i++) {
		const struct engine_input *in = &r->inputs[i];
		const struct engine_outcome *o = &in->outcome;

		partial_put_text(&w, in->path);
		buf_put_varint(w.out, o->status);
		buf_put_byte(w.out, o->is_in_tables);
		buf_put_varint(w.out, o->damaged);
		buf_put_varint(w.out, o->error.at + 1);
		partial_put_text(&w, o->status == ST_OK ? NULL : o->error.text);
	}
	/* Write the windows in the order of inputs: threads have added them in any order. */
	buf_put_varint(w.out, r->window_count);
	for (size_t input = 0; input < r->input_count; input++)
		for (size_t i = 0; i < r->window_count; i++)
			if (r->windows[i].input == input) {
				const struct engine_window *of = &r->windows[i];
				buf_put_varint(w.out, of->rank + 1);
				partial_put_text(&w, of->host);
				buf_put_varint(w.out, of->pid + 1);
				buf_put_varint(w.out, of->begin_ns);
				buf_put_varint(w.out, of->end_ns);
				buf_put_varint(w.out, of->input);
			}
	partial_put_tables(&w, r->tables);
	TRY(partial_writer_release(&w, err));
	uint8_t *header = out->data + begin;
	memcpy(header, PARTIAL_MAGIC, sizeof(PARTIAL_MAGIC) - 1);
	put_u32(header + AT_VERSION, PARTIAL_VERSION);
	put_u64(header + AT_LENGTH, out->len - begin - PARTIAL_HEADER_BYTES);
	put_u32(header + AT_CRC,
		crc32c(0, header + PARTIAL_HEADER_BYTES, out->len - begin - PARTIAL_HEADER_BYTES));
	return ST_OK;
}

/* ---- reading ---------------------------------------------------------------------------- */

static enum status inconsistent(struct error *err)
{
	return fail(err, ST_FORMAT, NOWHERE, "the partial result is inconsistent");
}

static enum status take_input(struct partial_reader *r, struct engine_result *into,
			      struct error *err)
{
	struct engine_outcome o = { .status = ST_OK };
	const char *path, *text;

	TRY(partial_take_text(r, &path, err));
	uint64_t status = take_varint(&r->in);
	o.is_in_tables = take_u8(&r->in) == 1;
	o.damaged = take_varint(&r->in);
	o.error.at = take_varint(&r->in) - 1;
	TRY(partial_take_text(r, &text, err));
	if (r->in.is_truncated || !path || status >= STATUS_MAX || status == ST_END)
		return inconsistent(err);
	/* an input that was read to its end must be in the tables; otherwise finish() would have
	 * nothing and report no error */
	if (status == ST_OK && !o.is_in_tables)
		return inconsistent(err);
	o.status = (enum status)status;
	o.error.status = o.status;
	if (text)
		snprintf(o.error.text, sizeof(o.error.text), "%s", text);
	return engine_result_input(into, path, &o, err);
}

static enum status take_window(struct partial_reader *r, struct engine_result *into, size_t first,
			       struct error *err)
{
	struct engine_window w = { .path = NULL };

	w.rank = take_varint(&r->in) - 1;
	TRY(partial_take_text(r, &w.host, err));
	w.pid = take_varint(&r->in) - 1;
	w.begin_ns = take_varint(&r->in);
	w.end_ns = take_varint(&r->in);
	w.input = take_varint(&r->in);
	if (r->in.is_truncated || !w.host || w.input >= into->input_count - first)
		return inconsistent(err);
	w.input += first;
	return engine_result_window(into, &w, err);
}

static enum status take_body(struct partial_reader *r, struct engine_result *into,
			     const char **settings, struct error *err)
{
	size_t first = into->input_count;
	const char *found;
	uint64_t count, i;

	TRY(partial_take_text(r, &found, err));
	if (!found)
		return inconsistent(err);
	if (!*settings)
		*settings = found;
	if (strcmp(*settings, found) != 0)
		return fail(
			err, ST_USAGE, NOWHERE,
			"made with different filters, rules or --per-step than the previous ones");
	for (count = take_varint(&r->in), i = 0; i < count && !r->in.is_truncated; i++)
		TRY(take_input(r, into, err));
	for (count = take_varint(&r->in), i = 0; i < count && !r->in.is_truncated; i++)
		TRY(take_window(r, into, first, err));
	if (r->in.is_truncated)
		return inconsistent(err);
	TRY(partial_take_tables(r, err));
	return bytes_left(&r->in) || r->in.is_truncated ? inconsistent(err) : ST_OK;
}

enum status engine_partial_take(struct engine_result *r, const void *bytes, size_t len,
				size_t ceiling, const char **settings, struct error *err)
{
	const uint8_t *header = bytes;
	struct partial_reader reader = { .tables = r->tables, .ceiling = ceiling };

	if (len < PARTIAL_HEADER_BYTES ||
	    memcmp(header, PARTIAL_MAGIC, sizeof(PARTIAL_MAGIC) - 1) != 0)
		return fail(err, ST_FORMAT, NOWHERE, "not a partial result of tacho-analyze");
	if (get_u32(header + AT_VERSION) != PARTIAL_VERSION)
		return fail(err, ST_FORMAT, NOWHERE,
			    "a partial result of version %u; this program reads version %d",
			    get_u32(header + AT_VERSION), PARTIAL_VERSION);
	len -= PARTIAL_HEADER_BYTES;
	if (get_u64(header + AT_LENGTH) != len)
		return fail(err, get_u64(header + AT_LENGTH) > len ? ST_TRUNCATED : ST_FORMAT,
			    NOWHERE, "truncated: %zu of %llu bytes", len,
			    (unsigned long long)get_u64(header + AT_LENGTH));
	if (crc32c(0, header + PARTIAL_HEADER_BYTES, len) != get_u32(header + AT_CRC))
		return fail(err, ST_FORMAT, NOWHERE, "damaged: its checksum is wrong");
	reader.in = bytes_init(header + PARTIAL_HEADER_BYTES, len);
	enum status status = take_body(&reader, r, settings, err);
	partial_reader_release(&reader);
	return status;
}

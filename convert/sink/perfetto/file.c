/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/perfetto/internal.h"

#include "convert/sink/sink.h"
#include "convert/source/source.h"
#include "convert/stage/path_sums.h"
#include "schemas/model/call.h"

#include <stdlib.h>
#include <string.h>

enum {
	PACKET_CEILING = 256 << 20,
	STATE_CLEARED = 1,
	STATE_NEEDED = 2,
	CLOCK_REALTIME_ID = 1,
	CLOCK_TRACE_ID = 6,
	RANK_BITS = 17, /* bits of a track's number: the rank and, above it, a hash */
	HASH_BITS = 16,
	SEQUENCES = 2, /* sequences per file */
};

uint64_t perfetto_space_of(const struct trace *t, uint32_t process)
{
	const struct process *p = trace_get_process(t, process);
	uint64_t rank_mask = (UINT64_C(1) << RANK_BITS) - 1, hash, rank;
	size_t len;
	const char *host = trace_text(t, p->host, &len);

	hash = hash_word(hash_text(host, len), (uint64_t)p->pid << 32 | p->rank);
	rank = p->rank != NO_RANK && p->rank + 1 < rank_mask / 2 ? p->rank + 1
								 : hash >> 40 | (rank_mask / 2 + 1);
	return (hash & ((1u << HASH_BITS) - 1)) << RANK_BITS | (rank & rank_mask);
}

struct buf *perfetto_begin_packet(struct perfetto_file *f)
{
	buf_clear(&f->packet);
	f->packet_at = pb_begin(&f->packet, 1);
	return &f->packet;
}

enum status perfetto_end_packet(struct perfetto_file *f, struct error *err)
{
	pb_end(&f->packet, f->packet_at);
	TRY(buf_status(&f->packet, err));
	return out_cursor_put(&f->cursor, f->packet.data, f->packet.len, err);
}

/* ---- texts ---- */

const char *perfetto_utf8(struct perfetto_file *f, const char *text, size_t len)
{
	buf_clear(&f->text);
	f->repaired += sink_put_utf8(text, len, false, &f->text);
	return buf_text(&f->text);
}

static enum status write_text(struct perfetto_file *f, enum perfetto_space space, uint64_t iid,
			      const char *text, size_t len, struct error *err)
{
	static const uint8_t fields[] = {
		[SPACE_CATEGORY] = 1, [SPACE_NAME] = 2, [SPACE_KEY] = 3, [SPACE_TEXT] = 29
	};
	struct buf *b = perfetto_begin_packet(f);
	const char *valid = perfetto_utf8(f, text, len);
	size_t data, row;

	TRY(buf_status(&f->text, err));
	pb_put_u64(b, PACKET_SEQUENCE, f->sequence);
	data = pb_begin(b, PACKET_INTERNED);
	row = pb_begin(b, fields[space]);
	pb_put_u64(b, 1, iid);
	pb_put_bytes(b, 2, valid, f->text.len);
	pb_end(b, row);
	pb_end(b, data);
	pb_put_u64(b, PACKET_FLAGS, STATE_NEEDED);
	return perfetto_end_packet(f, err);
}

enum status perfetto_write_name(struct perfetto_file *f, enum perfetto_space space, uint32_t name,
				struct error *err)
{
	size_t len;
	const char *text = trace_text(f->trace, name, &len);

	f->written[space][name / 64] |= UINT64_C(1) << (name % 64);
	if (space == SPACE_NAME && !strncmp(text, "cu", 2)) /* only calls of CUDA */
		len = call_name_length(text, len);
	return write_text(f, space, name, text, len, err);
}

enum status perfetto_word(struct perfetto_file *f, enum perfetto_space space, const char *text,
			  uint64_t *out, struct error *err)
{
	size_t i;

	for (i = 0; i < f->word_count; i++)
		if (f->words[i].space == space && strcmp(f->words[i].text, text) == 0)
			break;
	*out = (uint64_t)f->names + 1 + i;
	if (i < f->word_count)
		return ST_OK;
	if (i == PERFETTO_WORDS)
		return fail(err, ST_CEILING, NOWHERE, "too many strings for a Perfetto file");
	f->words[i].text = text;
	f->words[i].space = space;
	f->word_count++;
	return write_text(f, space, *out, text, strlen(text), err);
}

enum status perfetto_need_path(struct perfetto_file *f, uint32_t path, uint64_t *out,
			       struct error *err)
{
	uint64_t bit = UINT64_C(1) << (path % 64);
	struct buf text;
	enum status status = ST_OK;

	*out = (uint64_t)f->names + PERFETTO_WORDS + 1 + path;
	TRY(vec_reserve(&f->written_paths, &f->written_path_words, path / 64 + 1, err));
	if (f->written_paths[path / 64] & bit)
		return ST_OK;
	f->written_paths[path / 64] |= bit;
	buf_init(&text, PACKET_CEILING);
	path_put_text(f->trace, path, PATH_FOR_PEOPLE, &text);
	status = write_text(f, SPACE_TEXT, *out, buf_text(&text), text.len, err);
	buf_release(&text);
	return status;
}

/* ---- the head ---- */

/* Appends an attribute.  If `text` is NULL, the value is `number`. */
static void put_attribute(struct buf *b, const char *key, const char *text, uint64_t number)
{
	size_t at = pb_begin(b, 1);

	pb_put_text(b, 1, key);
	if (text)
		pb_put_text(b, 3, text);
	else
		pb_put_u64(b, 2, number);
	pb_end(b, at);
}

enum status perfetto_file_init(struct perfetto_file *f, struct trace *trace, struct out *out,
			       uint32_t process, struct error *err)
{
	static const uint8_t clocks[] = { CLOCK_TRACE_ID, CLOCK_REALTIME_ID };
	uint64_t space = perfetto_space_of(trace, process ? process : 1);
	struct buf *b;
	size_t at;

	*f = (struct perfetto_file){ .trace = trace, .cursor = { .out = out } };
	f->names = trace_count(trace, TRACE_NAMES);
	f->sequence = (uint32_t)(space & ((1u << RANK_BITS) - 1)) * SEQUENCES + 1;
	buf_init(&f->packet, PACKET_CEILING);
	buf_init(&f->text, PACKET_CEILING);
	for (unsigned i = 0; i < SPACE_COUNT; i++) {
		TRY(vec_new(&f->written[i], (size_t)f->names / 64 + 1, err));
	}
	/* The trace's clock counts from the epoch.  If the epoch is unknown, the viewer shows times
	 * since the start. */
	if (trace_provenance(trace)->epoch_known) {
		b = perfetto_begin_packet(f);
		at = pb_begin(b, PACKET_CLOCKS);
		for (size_t i = 0; i < 2; i++) {
			size_t clock = pb_begin(b, 1);

			pb_put_u64(b, 1, clocks[i]);
			pb_put_u64(b, 2, 1000000000); /* any instant: clocks are equal */
			pb_end(b, clock);
		}
		pb_end(b, at);
		pb_put_u64(b, PACKET_SEQUENCE, f->sequence - 1);
		TRY(perfetto_end_packet(f, err));
	}
	b = perfetto_begin_packet(f);
	pb_put_u64(b, PACKET_SEQUENCE, f->sequence - 1);
	at = pb_begin(b, PACKET_ATTRIBUTES);
	put_attribute(b, OWN_KEY, "Tacho", 0); /* in the first bytes, for our readers */
	put_attribute(b, "tacho.world_size", NULL,
		      trace_get_process(trace, process ? process : 1)->world_size);
	pb_end(b, at);
	TRY(perfetto_end_packet(f, err));
	b = perfetto_begin_packet(f);
	pb_put_u64(b, PACKET_SEQUENCE, f->sequence);
	pb_put_u64(b, PACKET_FLAGS, STATE_CLEARED);
	TRY(perfetto_end_packet(f, err));
	/* This makes newer viewers show processes and threads in the order of their ranks. */
	b = perfetto_begin_packet(f);
	pb_put_u64(b, PACKET_SEQUENCE, f->sequence - 1);
	at = pb_begin(b, PACKET_TRACK);
	pb_put_u64(b, 1, 0); /* uuid of the root */
	pb_put_u64(b, 19, 1);
	pb_put_u64(b, 20, 1);
	pb_end(b, at);
	return perfetto_end_packet(f, err);
}

void perfetto_file_release(struct perfetto_file *f)
{
	for (unsigned i = 0; i < SPACE_COUNT; i++)
		free(f->written[i]);
	free(f->written_paths);
	buf_release(&f->packet);
	buf_release(&f->text);
	*f = (struct perfetto_file){ 0 };
}

/* ---- what the file says of itself ---- */

enum status perfetto_put_attributes(struct perfetto_file *f, uint32_t process, uint64_t written,
				    struct error *err)
{
	const struct provenance *from = trace_provenance(f->trace);
	size_t len;
	const char *format = trace_text(f->trace, from->format, &len);
	struct buf *b = perfetto_begin_packet(f);

	pb_put_u64(b, PACKET_SEQUENCE, f->sequence - 1);
	size_t at = pb_begin(b, PACKET_ATTRIBUTES);
	put_attribute(b, "tacho.version", TACHO_VERSION, 0);
	put_attribute(b, "tacho.events", NULL, written);
	put_attribute(b, "tacho.lost", NULL, trace_lost_total(f->trace, process));
	put_attribute(b, "tacho.repaired_texts", NULL, f->repaired);
	put_attribute(b, "tacho.complete", NULL, from->is_whole);
	if (from->is_synthetic)
		put_attribute(b, "tacho.synthetic", NULL, 1);
	if (len)
		put_attribute(b, "tacho.source", perfetto_utf8(f, format, len), 0);
	pb_end(b, at);
	return perfetto_end_packet(f, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - one file of Perfetto's format: its packets, and the texts that they point to.
 *
 * A text is written once, when it is first used; from then on its number stands for it.  Events are
 * on one sequence and descriptors of tracks on another.  Numbers of sequences, tracks and arrows
 * are made from rank, host and pid, so that files of ranks may be put behind each other.
 */
#ifndef CONVERT_SINK_PERFETTO_FILE_H
#define CONVERT_SINK_PERFETTO_FILE_H

#include "convert/output/output.h"
#include "schemas/base/buf.h"
#include "schemas/proto/perfetto.pb-c.h"
#include "schemas/model/trace.h"

enum perfetto_space { SPACE_CATEGORY, SPACE_NAME, SPACE_KEY, SPACE_TEXT, SPACE_COUNT };
enum { PERFETTO_WORDS = 512 };

struct perfetto_file {
	struct trace *trace;          /* borrowed */
	uint32_t sequence;            /* of events; that of descriptors is one less */
	uint32_t names;               /* ids below are the trace's, above those of `words` */
	uint64_t *known[SPACE_COUNT]; /* a bit for each name that was written */
	struct {                      /* constant texts of ours */
		const char *text;
		unsigned space;
	} words[PERFETTO_WORDS];
	size_t word_count;
	uint64_t repaired; /* texts with bytes that were no UTF-8 */
	struct buf packet, text;
	struct out_cursor cursor;
};

/* Begins the file: `process` 0 is one of all processes. */
enum status perfetto_file_init(struct perfetto_file *f, struct trace *trace, struct out *out,
			       uint32_t process, struct error *err);
void perfetto_file_release(struct perfetto_file *f); /* accepts a zeroed one */

/* One packet, of the sequence of descriptors unless it names one. */
enum status perfetto_put_packet(struct perfetto_file *f, Perfetto__TracePacket *packet,
				struct error *err);

enum status perfetto_write_name(struct perfetto_file *f, enum perfetto_space space, uint32_t name,
				struct error *err);
/* The text of a name of the trace is in the file; then its id stands for it. */
static inline enum status perfetto_need_name(struct perfetto_file *f, enum perfetto_space space,
					     uint32_t name, struct error *err)
{
	if (f->known[space][name / 64] >> (name % 64) & 1)
		return ST_OK;
	return perfetto_write_name(f, space, name, err);
}
/* Of a constant text, which is kept by its address: the number that stands for it, by a search. */
enum status perfetto_word(struct perfetto_file *f, enum perfetto_space space, const char *text,
			  uint64_t *out, struct error *err);

/* What the file says of itself and of how much was lost; `process` 0: of all. */
enum status perfetto_put_attributes(struct perfetto_file *f, uint32_t process, uint64_t written,
				    struct error *err);

/* The text as UTF-8 without a NUL, until the next call; bytes that are none become U+FFFD. */
char *perfetto_utf8(struct perfetto_file *f, const char *text, size_t len);

/* The high bits of all numbers of a process: its rank and a hash of its identity. */
uint64_t perfetto_space_of(const struct trace *t, uint32_t process);

#endif

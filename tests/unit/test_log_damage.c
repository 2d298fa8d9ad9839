/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include "schemas/base/crc32c.h"
#include "schemas/log/log.h"
#include "schemas/model/trace.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 64 << 20, CEILING = 64 << 20 };

struct reading {
	enum status status;
	struct error err;
	uint64_t events, lost, unread;
	bool is_whole;
};

static struct reading read_bytes(const void *bytes, size_t len)
{
	struct reading r = { 0 };
	struct trace *trace;

	trace_new(&trace, CEILING, NULL);
	r.status = log_read(bytes, len, trace, &r.events, &r.err);
	r.lost = trace_lost(trace, 0, LOSS_DAMAGED);
	r.unread = trace_provenance(trace)->unread_bytes;
	r.is_whole = trace_provenance(trace)->is_whole;
	trace_free(trace);
	return r;
}

static bool make_file(struct buf *file, uint64_t seed, size_t events, size_t flush_every)
{
	struct log_run run;
	bool good;

	buf_init(file, FILE_MAX);
	good = log_run_make(&run, seed, events, 1) && log_run_write(&run, flush_every, true, file);
	log_run_release(&run);
	return good;
}

/* Some bytes of a block of events are others, and its checksums are right: near its begin, where
 * its sites are, and such that numbers end where they did. */
static void spoil(struct buf *file, uint64_t *state)
{
	uint8_t header[LOG_HEADER_BYTES];
	struct log_block block = { 0 };
	size_t at = LOG_FILE_HEADER_BYTES, skipped, victim = 0;

	for (unsigned events = 0; at < file->len; at += LOG_HEADER_BYTES + block.size) {
		log_find_block(file->data + at, file->len - at, at, &block, &skipped, NULL);
		if (block.kind == LOG_EVENTS && random_u64(state) % ++events == 0)
			victim = at;
	}
	log_find_block(file->data + victim, file->len - victim, victim, &block, &skipped, NULL);
	for (unsigned i = 0; i < 1 + random_u64(state) % 3; i++)
		file->data[victim + LOG_HEADER_BYTES + random_u64(state) % (block.size / 8)] ^=
			(uint8_t)(1 + random_u64(state) % 127);
	log_put_block_header(&block, file->data + victim + LOG_HEADER_BYTES, header);
	memcpy(file->data + victim, header, sizeof(header));
}

/* Of a block that is damaged inside, one of many logs gives and loses what one alone does. */
void test_log_damage_of_many(void)
{
	uint64_t state = 777, lost = 0;

	for (unsigned seed = 1; seed <= 40; seed++) {
		struct log_run run;
		struct buf file;
		struct trace *traces[2];
		uint64_t events[2];
		struct error err = { 0 };

		buf_init(&file, FILE_MAX);
		log_run_make(&run, seed, 40000, 1);
		run.stray = 1 + seed % 12;
		log_run_write(&run, 0, true, &file);
		spoil(&file, &state);
		trace_new(&traces[0], CEILING, NULL);
		trace_new(&traces[1], CEILING, NULL);
		CHECK_U64(log_read(file.data, file.len, traces[0], &events[0], &err),
			  log_read_sparing(file.data, file.len, traces[1], &events[1], &err));
		CHECK_U64(events[1], events[0]);
		CHECK_U64(trace_lost(traces[1], 0, LOSS_DAMAGED),
			  trace_lost(traces[0], 0, LOSS_DAMAGED));
		CHECK_U64(trace_lost(traces[1], 0, LOSS_ORDER),
			  trace_lost(traces[0], 0, LOSS_ORDER));
		lost += trace_lost(traces[0], 0, LOSS_DAMAGED);
		trace_free(traces[0]);
		trace_free(traces[1]);
		log_run_release(&run);
		buf_release(&file);
	}
	CHECK(lost > 0);
}

/* The block whose header is at `at`. */
static struct log_block block_at(const struct buf *file, size_t at)
{
	struct log_block block = { 0 };
	size_t skipped;

	CHECK_OK(log_find_block(file->data + at, file->len - at, at, &block, &skipped, NULL), NULL);
	CHECK_U64(skipped, 0);
	return block;
}

void test_log_cut_anywhere(void)
{
	struct buf file;
	size_t border = LOG_FILE_HEADER_BYTES, next = border;
	uint64_t whole = 0; /* events of the blocks before the cut */
	struct log_block block = { 0 };

	if (!make_file(&file, 3, 60, 30))
		return;
	for (size_t len = 0; len <= file.len; len++) {
		struct reading r = read_bytes(file.data, len);

		if (len < LOG_FILE_HEADER_BYTES) {
			CHECK(r.status == (len ? ST_TRUNCATED : ST_FORMAT));
			continue;
		}
		if (len == next) {
			whole += block.kind == LOG_EVENTS ? block.rows : 0;
			border = next;
			if (len < file.len)
				block = block_at(&file, len);
			next += LOG_HEADER_BYTES + block.size;
		}
		CHECK_U64(r.status, len == border ? ST_END : ST_TRUNCATED);
		CHECK_U64(r.unread, len - border);
		CHECK_U64(r.events, whole);
		CHECK_U64(r.lost, 0);
		CHECK_U64(r.is_whole, len == file.len);
		if (r.status == ST_TRUNCATED)
			CHECK_U64(r.err.at, border);
	}
	CHECK_U64(whole, 60);
	buf_release(&file);
}

void test_log_cut_text(void)
{
	struct buf file;
	struct reading r;
	struct log_block block;
	uint8_t header[LOG_HEADER_BYTES];

	if (!make_file(&file, 3, 30, 0))
		return;
	r = read_bytes(file.data, LOG_FILE_HEADER_BYTES + 10);
	CHECK_STR(r.err.text, "block header is truncated: 10 of 64 bytes");
	CHECK_U64(r.err.at, LOG_FILE_HEADER_BYTES);
	block = block_at(&file, LOG_FILE_HEADER_BYTES);
	block.size = block.raw_size = 4096 - LOG_HEADER_BYTES;
	buf_fill(&file, 0, 4096); /* bytes for its checksum */
	log_put_block_header(&block, file.data, header);
	memcpy(file.data + LOG_FILE_HEADER_BYTES, header, sizeof(header));
	r = read_bytes(file.data, LOG_FILE_HEADER_BYTES + 1234);
	CHECK_STR(r.err.text, "record block is truncated: 1,234 of 4,096 bytes");
	buf_release(&file);
}

/* One byte in a hundred is another: no crash, what is read is in order, nothing is made up. */
void test_log_damage_everywhere(void)
{
	struct buf file;
	uint64_t state = 12345, total = 0;
	uint8_t *bytes;

	if (!make_file(&file, 5, 400, 40))
		return;
	bytes = malloc(file.len);
	for (unsigned seed = 0; seed < 1000; seed++) {
		struct reading r;
		/* from one byte to one in a hundred */
		size_t changes = file.len / 100 >> random_u64(&state) % 9;

		memcpy(bytes, file.data, file.len);
		for (size_t i = 0; i <= changes; i++)
			bytes[LOG_FILE_HEADER_BYTES +
			      random_u64(&state) % (file.len - LOG_FILE_HEADER_BYTES)] ^=
				(uint8_t)(1 + random_u64(&state) % 255);
		r = read_bytes(bytes, file.len);
		CHECK(r.events <= 400);
		CHECK(!r.is_whole);
		CHECK(r.events == 400 || r.lost || r.status != ST_END);
		CHECK(r.status == ST_END || r.err.text[0]);
		CHECK(r.status == ST_END || r.status == ST_TRUNCATED || r.status == ST_FORMAT);
		total += r.events;
	}
	CHECK(total > 1000 * 60); /* and much is read where few bytes are damaged */
	free(bytes);
	buf_release(&file);
}

/* A damaged block in the middle costs its rows and no others. */
void test_log_damaged_block_is_skipped(void)
{
	struct buf file;
	size_t at = LOG_FILE_HEADER_BYTES;

	if (!make_file(&file, 7, 900, 300))
		return;
	while (at < file.len) {
		struct log_block block = block_at(&file, at);
		struct reading r;

		if (block.kind == LOG_EVENTS) {
			file.data[at + LOG_HEADER_BYTES + block.size / 2] ^= 0x40;
			r = read_bytes(file.data, file.len);
			CHECK_U64(r.status, ST_END);
			CHECK_U64(r.events, 900 - block.rows);
			CHECK_U64(r.lost, block.rows);
			file.data[at + LOG_HEADER_BYTES + block.size / 2] ^= 0x40;
			/* Its header: found again at the next one. */
			file.data[at + 20] ^= 1;
			r = read_bytes(file.data, file.len);
			CHECK_U64(r.status, ST_FORMAT);
			CHECK_U64(r.err.at, at);
			CHECK(strstr(r.err.text, "no valid block") != NULL);
			CHECK_U64(r.events, 900 - block.rows);
			CHECK_U64(r.lost, 1);
			file.data[at + 20] ^= 1;
		}
		at += LOG_HEADER_BYTES + block.size;
	}
	CHECK_U64(read_bytes(file.data, file.len).events, 900);
	buf_release(&file);
}

static void sign_header(uint8_t *header)
{
	put_u32(header + 4, crc32c(0, header + 8, LOG_HEADER_BYTES - 8));
}

/* Each member of a header with the worst numbers, its checksum right. */
void test_log_header_out_of_range(void)
{
	static const struct {
		uint8_t at, width;
	} members[] = {
		{ 8, 2 },  { 10, 2 }, { 12, 2 }, { 14, 2 }, { 16, 4 }, { 20, 4 },
		{ 24, 4 }, { 28, 4 }, { 32, 8 }, { 40, 8 }, { 48, 8 }, { 56, 8 },
	};
	static const uint64_t values[] = { 0,          1,          2,
					   0x7fff,     0x8001,     0xffff,
					   0x7fffffff, 0xffffffff, UINT64_C(10) << 30,
					   INT64_MAX,  UINT64_MAX };
	struct buf file;
	uint8_t *bytes;

	if (!make_file(&file, 9, 100, 30))
		return;
	bytes = malloc(file.len);
	for (size_t at = LOG_FILE_HEADER_BYTES; at < file.len;
	     at += LOG_HEADER_BYTES + block_at(&file, at).size) {
		for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++) {
			for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
				struct reading r;

				memcpy(bytes, file.data, file.len);
				memcpy(bytes + at + members[m].at, &values[v], members[m].width);
				sign_header(bytes + at);
				r = read_bytes(bytes, file.len);
				CHECK(r.events <= 100 + LOG_BLOCK_ROWS);
				CHECK(r.status == ST_END || r.err.text[0]);
			}
		}
	}
	free(bytes);
	buf_release(&file);
}

/* The payload of every block with each byte changed and signed again: checksums do not help. */
void test_log_payload_lies(void)
{
	static const uint8_t values[] = { 0x01, 0x80, 0xff };
	struct buf file;
	uint8_t *bytes;

	if (!make_file(&file, 11, 40, 20))
		return;
	bytes = malloc(file.len);
	for (size_t at = LOG_FILE_HEADER_BYTES; at < file.len;) {
		struct log_block block = block_at(&file, at);

		for (size_t i = 0; i < block.size; i++) {
			for (size_t v = 0; v < sizeof(values); v++) {
				struct log_block lie = block;
				uint8_t *payload = bytes + at + LOG_HEADER_BYTES;
				struct reading r;

				if ((i + v) % sizeof(values))
					continue;
				memcpy(bytes, file.data, file.len);
				payload[i] = values[v];
				log_put_block_header(&lie, payload, bytes + at);
				r = read_bytes(bytes, file.len);
				CHECK(r.events <= 40);
				CHECK(r.status == ST_END || r.err.text[0]);
			}
		}
		at += LOG_HEADER_BYTES + block.size;
	}
	free(bytes);
	buf_release(&file);
}

/* Noise behind a good file header, and no header at all. */
void test_log_noise(void)
{
	uint64_t state = 99;
	uint8_t bytes[3000];

	for (unsigned seed = 0; seed < 50; seed++) {
		struct reading r;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)random_u64(&state);
		r = read_bytes(bytes, sizeof(bytes));
		CHECK_U64(r.status, ST_FORMAT);
		log_put_file_header(bytes);
		r = read_bytes(bytes, sizeof(bytes));
		CHECK_U64(r.status, ST_FORMAT);
		CHECK_STR(r.err.text, "the last 2,984 bytes contain no block");
		CHECK_U64(r.unread, 2984);
	}
}

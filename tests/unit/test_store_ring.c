/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of a flight recorder against a model: random blocks, a kill at any instruction. */
#include "collector/config/config.h"
#include "collector/store/store.h"
#include "schemas/base/buf.h"
#include "schemas/log/ring.h"
#include "schemas/log/tables.h"
#include "tests/unit/folder.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RING = 1 << 20 };

static uint64_t random_state;

static uint32_t rnd(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 11) % below;
}

/* Block `number` of a kind: the same bytes whenever they are asked for. */
static size_t make_block(unsigned kind, uint64_t number, uint32_t most, uint8_t *out)
{
	uint64_t word = number * UINT64_C(0x9e3779b97f4a7c15) + kind;
	struct log_block block = { .kind = (uint16_t)kind, .rows = (uint32_t)(number % 8192) };

	block.size = block.raw_size = (uint32_t)(word >> 20) % most;
	block.first_begin_ns = block.last_begin_ns = number;
	block.last_end_ns = number + 1;
	for (uint32_t i = 0; i < block.size; i++) {
		word = word * UINT64_C(6364136223846793005) + 1442695040888963407u;
		out[LOG_HEADER_BYTES + i] = (uint8_t)(word >> 56);
	}
	log_put_block_header(&block, out + LOG_HEADER_BYTES, out);
	return LOG_HEADER_BYTES + block.size;
}

struct model {
	struct store *store;
	struct folder folder;
	char path[600];
	uint64_t events, tables, first_table; /* put so far; of those that hold, the first */
	uint32_t most;
};

static bool model_open(struct model *m, uint64_t seed)
{
	struct store_place place = { .folder = "",
				     .host = "host",
				     .rank = 3,
				     .pid = 77,
				     .ring_bytes = RING,
				     .ring_tables = 1 << 20 };
	struct error err = { 0 };

	memset(m, 0, sizeof(*m));
	random_state = seed * 77777 + 12345;
	folder_make(&m->folder);
	place.folder = m->folder.folder;
	m->most = LOG_BLOCK_BYTES;
	snprintf(m->path, sizeof(m->path), "%s/host.r3.p77.ring", m->folder.folder);
	return CHECK_OK(store_ring.open(&m->store, &place, &err), &err);
}

static void model_close(struct model *m)
{
	if (m->store)
		store_ring.close(m->store);
	folder_remove(&m->folder);
}

static bool put_event(struct model *m)
{
	static uint8_t bytes[LOG_HEADER_BYTES + LOG_BLOCK_BYTES];
	size_t len = make_block(LOG_EVENTS, m->events + 1, m->most, bytes);

	m->events++;
	return store_ring.put(m->store, LOG_EVENTS, bytes, len, NULL) == ST_OK;
}

/* A table block; when there is no room, all that "hold": the last three and this one. */
static bool put_table(struct model *m)
{
	static uint8_t bytes[4 * (LOG_HEADER_BYTES + LOG_BLOCK_BYTES)];
	size_t len = make_block(LOG_NAMES, m->tables + 1, m->most, bytes);
	enum status st = store_ring.put(m->store, LOG_NAMES, bytes, len, NULL);

	m->tables++;
	if (st == ST_OK)
		return true;
	m->first_table = m->tables > 4 ? m->tables - 4 : 0;
	len = 0;
	for (uint64_t i = m->first_table; i < m->tables; i++)
		len += make_block(LOG_NAMES, i + 1, m->most, bytes + len);
	return st == ST_CEILING && store_ring.renew(m->store, bytes, len, NULL) == ST_OK;
}

/* ---- reading, and what must hold ---- */

static uint64_t bytes_read;

static enum status read_fd(const void *arg, uint64_t at, void *bytes, size_t len, size_t *got,
			   struct error *err)
{
	ssize_t n = pread(*(const int *)arg, bytes, len, (off_t)at);

	*got = n > 0 ? (size_t)n : 0;
	bytes_read += *got;
	return ST_OK;
}

static bool is_block(int fd, const struct log_block *block, unsigned kind, uint64_t number,
		     uint32_t most)
{
	static uint8_t want[LOG_HEADER_BYTES + LOG_BLOCK_BYTES];
	static uint8_t got[LOG_HEADER_BYTES + LOG_BLOCK_BYTES];
	size_t len = make_block(kind, number, most, want);

	return block->kind == kind && block->size + LOG_HEADER_BYTES == len &&
	       pread(fd, got, len, (off_t)block->offset) == (ssize_t)len &&
	       memcmp(got + LOG_HEADER_BYTES, want + LOG_HEADER_BYTES, len - LOG_HEADER_BYTES) == 0;
}

struct seen {
	uint64_t lowest, highest, bytes, tables, missing;
	bool good; /* all blocks whole, in an unbroken row */
};

static struct seen look(const char *path, uint64_t first_table, uint32_t most)
{
	static struct log_ring r;
	struct seen s = { .good = true };
	struct log_block block;
	uint64_t number, next = 0;
	int fd = open(path, O_RDONLY);

	if (log_ring_open(&r, read_fd, &fd, NULL) != ST_OK)
		s.good = false;
	while (s.good && log_ring_next_table(&r, &block, NULL) == ST_OK)
		s.good = is_block(fd, &block, LOG_NAMES, first_table + ++s.tables, most);
	while (s.good && log_ring_next_events(&r, &block, &number, NULL) == ST_OK) {
		s.good =
			is_block(fd, &block, LOG_EVENTS, number, most) && (!next || number == next);
		next = number + 1;
		s.bytes += LOG_HEADER_BYTES + block.size;
	}
	s.lowest = r.lowest;
	s.highest = r.highest;
	s.missing = r.missing;
	s.good = s.good && (!next || next == r.highest + 1);
	close(fd);
	return s;
}

void test_store_ring_random(void)
{
	static const uint32_t most[] = { 1, 40, 300, 5000, LOG_BLOCK_BYTES };
	struct model m;
	struct seen s;

	for (size_t round = 0; round < sizeof(most) / sizeof(most[0]); round++) {
		bool good = true;

		if (!model_open(&m, round + 1))
			return;
		m.most = most[round];
		for (int i = 0; i < 3000 && good; i++) {
			good = rnd(20) ? put_event(&m) : put_table(&m);
			if (rnd(40))
				continue;
			s = look(m.path, m.first_table, m.most);
			good = CHECK(good) && CHECK(s.good) && CHECK_U64(s.highest, m.events) &&
			       CHECK_U64(s.tables, m.tables - m.first_table) &&
			       CHECK_U64(s.missing, 0);
		}
		s = look(m.path, m.first_table, m.most);
		CHECK(s.good);
		/* no more is lost than the place of the blocks that did not fit */
		if (s.lowest > 1)
			CHECK(s.bytes > (RING - LOG_RING_HEADER - 2 * 131072) / 2);
		model_close(&m);
	}
}

/* Whatever a byte says, a reader ends, and believes no block that is not whole. */
void test_store_ring_damage(void)
{
	static uint8_t bytes[RING];
	struct model m;
	char path[700];
	ssize_t len;
	int fd;

	if (!model_open(&m, 9))
		return;
	m.most = 3000;
	for (int i = 0; i < 900; i++)
		(void)(rnd(20) ? put_event(&m) : put_table(&m));
	snprintf(path, sizeof(path), "%s/copy", m.folder.folder);
	fd = open(m.path, O_RDONLY);
	len = read(fd, bytes, sizeof(bytes));
	close(fd);
	CHECK(len > RING / 2);
	for (int i = 0; i < 300; i++) {
		static struct log_ring r;
		struct log_block block;
		uint64_t number, blocks = 0;
		uint32_t at[40];
		uint8_t before[40];
		size_t cut = rnd(4) ? (size_t)len : rnd((uint32_t)len);

		for (int k = 0; k < 40; k++) {
			at[k] = rnd(k % 2 ? (uint32_t)len : 400);
			before[k] = bytes[at[k]];
			bytes[at[k]] ^= (uint8_t)(i % 3 ? 1u << rnd(8) : rnd(256));
		}
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		CHECK(write(fd, bytes, cut) == (ssize_t)cut);
		if (log_ring_open(&r, read_fd, &fd, NULL) == ST_OK) {
			while (log_ring_next_table(&r, &block, NULL) == ST_OK)
				CHECK(++blocks < RING);
			while (log_ring_next_events(&r, &block, &number, NULL) == ST_OK)
				CHECK(++blocks < RING);
		}
		close(fd);
		for (int k = 39; k >= 0; k--)
			bytes[at[k]] = before[k];
	}
	model_close(&m);
}

/* ---- death ---- */

/* A child that writes and writes; killed after some time that nobody knows. */
void test_store_ring_killed(void)
{
	for (int round = 0; round < 60; round++) {
		struct timespec t = { .tv_nsec = 0 };
		struct model m;
		struct seen s;
		pid_t pid;

		if (!model_open(&m, (uint64_t)round + 100))
			return;
		m.most = round % 2 ? 2000 : LOG_BLOCK_BYTES;
		store_ring.close(m.store); /* the child has its own */
		m.store = NULL;
		t.tv_nsec = 1000000 + rnd(12000000);
		pid = fork();
		if (pid == 0) {
			struct store_place place = { .folder = m.folder.folder,
						     .host = "host",
						     .rank = 3,
						     .pid = 77,
						     .ring_bytes = RING,
						     .ring_tables = 1 << 20 };

			if (store_ring.open(&m.store, &place, NULL) != ST_OK)
				_exit(1);
			for (int i = 0; i < 3; i++)
				put_table(&m);
			for (;;)
				put_event(&m);
		}
		nanosleep(&t, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (access(m.path, R_OK) == 0) {
			struct stat st;

			CHECK(stat(m.path, &st) == 0);
			s = look(m.path, 0, m.most);
			/* it may have been killed before the header stood */
			CHECK(s.good || !s.highest);
			CHECK(s.missing <= 1);
			if (s.highest)
				CHECK_U64(s.tables, 3);
		}
		unlink(m.path);
		model_close(&m);
	}
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

enum { STEPPED = 4, STEPPED_MOST = 700 };

/* Traced: fills the ring to its end, stops, and begins the next round. */
static void traced_child(struct model *m)
{
	static uint8_t bytes[STEPPED][LOG_HEADER_BYTES + STEPPED_MOST];
	uint64_t left = RING - LOG_RING_HEADER - 2 * 131072;
	size_t len[STEPPED], i;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(1);
	for (i = 0; i < 3; i++)
		put_table(m);
	for (;;) {
		size_t next =
			log_ring_pad(make_block(LOG_EVENTS, m->events + 1, m->most, bytes[0]));

		if (next > left)
			break;
		left -= next;
		put_event(m);
	}
	for (i = 0; i < STEPPED; i++)
		len[i] = make_block(LOG_EVENTS, m->events + 1 + i, m->most, bytes[i]);
	raise(SIGSTOP);
	for (i = 0; i < STEPPED; i++)
		store_ring.put(m->store, LOG_EVENTS, bytes[i], len[i], NULL);
	_exit(0);
}

static enum status read_bytes(const void *arg, uint64_t at, void *bytes, size_t len, size_t *got,
			      struct error *err)
{
	*got = at >= RING ? 0 : RING - at < len ? RING - at : len;
	memcpy(bytes, (const uint8_t *)arg + at, *got);
	return ST_OK;
}

/* As look(), by checksums alone, because it is done so often. */
static struct seen look_quickly(const uint8_t *file)
{
	static struct log_ring r;
	struct seen s = { .good = log_ring_open(&r, read_bytes, file, NULL) == ST_OK };
	struct log_block block;
	uint64_t number, next = 0;

	while (s.good && log_ring_next_table(&r, &block, NULL) == ST_OK)
		s.tables++;
	while (s.good && log_ring_next_events(&r, &block, &number, NULL) == ST_OK) {
		s.good = log_check(&block, file + block.offset + LOG_HEADER_BYTES, NULL) == ST_OK &&
			 (!next || number == next);
		next = number + 1;
	}
	s.highest = r.highest;
	s.missing = r.missing;
	s.good = s.good && next == r.highest + 1;
	return s;
}

/* One instruction of the child; false: it has ended. */
static bool step(pid_t pid)
{
	int status;

	return ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid &&
	       WIFSTOPPED(status);
}

static void step_through(pid_t pid, const uint8_t *file)
{
	static uint8_t before[RING];
	uint64_t until_ms = now_ms() + 20000, states = 0, torn = 0, first = 0;
	struct seen s = { .good = true };

	while (step(pid) && now_ms() < until_ms) {
		if (states && memcmp(before, file, RING) == 0)
			continue;
		memcpy(before, file, RING);
		s = look_quickly(before);
		if (!CHECK(s.good) || !CHECK_U64(s.tables, 3) || !CHECK(s.missing <= 1))
			break;
		first = first ? first : s.highest;
		torn += s.missing;
		states++;
	}
	/* each block is seen unfinished, and finished */
	CHECK(states > STEPPED * 10);
	CHECK(torn > STEPPED);
	CHECK_U64(s.highest, first + STEPPED);
}

/* At each instruction of the writer the file holds whole blocks in an unbroken row. */
void test_store_ring_each_instruction(void)
{
	const uint8_t *file;
	struct model m;
	int status, fd;
	pid_t pid;

	if (!model_open(&m, 7))
		return;
	m.most = STEPPED_MOST;
	store_ring.close(m.store); /* its mapping is not for children: they have their own */
	m.store = NULL;
	pid = fork();
	if (pid == 0) {
		struct store_place place = { .folder = m.folder.folder,
					     .host = "host",
					     .rank = 3,
					     .pid = 77,
					     .ring_bytes = RING,
					     .ring_tables = 1 << 20 };

		if (store_ring.open(&m.store, &place, NULL) == ST_OK)
			traced_child(&m);
		_exit(1);
	}
	if (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		fd = open(m.path, O_RDONLY);
		file = mmap(NULL, RING, PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
		if (CHECK(file != MAP_FAILED)) {
			step_through(pid, file);
			munmap((void *)(uintptr_t)file, RING);
		}
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	} else {
		SKIP("this machine lets nobody trace a child");
	}
	unlink(m.path);
	model_close(&m);
}

/* ---- saving ---- */

static size_t count_blocks(const char *path, unsigned kind, size_t *len)
{
	static uint8_t bytes[2 * RING];
	struct log_block block;
	size_t at = LOG_FILE_HEADER_BYTES, skipped, count = 0;
	FILE *f = fopen(path, "rb");

	*len = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	if (f)
		fclose(f);
	if (!CHECK_OK(log_take_file_header(bytes, *len, NULL), NULL))
		return 0;
	while (at < *len &&
	       log_find_block(bytes + at, *len - at, at, &block, &skipped, NULL) == ST_OK) {
		CHECK_U64(skipped, 0);
		CHECK(log_check(&block, bytes + at + LOG_HEADER_BYTES, NULL) == ST_OK);
		count += block.kind == kind;
		at += LOG_HEADER_BYTES + block.size;
	}
	CHECK_U64(at, *len);
	return count;
}

/* What the events take is read of a ring, not the rest of its file. */
void test_store_ring_reads_little(void)
{
	static struct log_ring r;
	struct log_block block;
	uint64_t number, count = 0;
	struct model m;

	if (!model_open(&m, 12))
		return;
	m.most = 100;
	put_table(&m);
	for (int i = 0; i < 5; i++)
		put_event(&m);
	int fd = open(m.path, O_RDONLY);
	bytes_read = 0;
	CHECK_OK(log_ring_open(&r, read_fd, &fd, NULL), NULL);
	while (log_ring_next_events(&r, &block, &number, NULL) == ST_OK)
		count++;
	CHECK_U64(count, 5);
	CHECK(bytes_read < RING / 8);
	close(fd);
	model_close(&m);
}

/* Two saves share no block, the second begins behind the first; a limit costs the oldest. */
void test_store_ring_saves(void)
{
	struct store_place place = { .host = "host", .rank = RANK_UNKNOWN, .pid = 5 };
	struct log_saved why = { .why = "command", .step = NOWHERE };
	struct error err = { 0 };
	char path[700];
	struct model m;
	uint64_t bytes;
	size_t len;

	if (!model_open(&m, 11))
		return;
	m.most = 2000;
	place.folder = m.folder.folder;
	put_table(&m);
	for (int i = 0; i < 100; i++)
		put_event(&m);
	CHECK_OK(store_ring.save(m.store, &place, &why, &bytes, &err), &err);
	snprintf(path, sizeof(path), "%s/host.rx.p5.0.tacho", m.folder.folder);
	CHECK_U64(count_blocks(path, LOG_EVENTS, &len), 100);
	CHECK_U64(len, bytes);
	CHECK_U64(count_blocks(path, LOG_NAMES, &len), 1);
	CHECK_U64(count_blocks(path, LOG_SAVED, &len), 1);
	CHECK_U64(count_blocks(path, LOG_END, &len), 1);
	CHECK(store_ring.save(m.store, &place, &why, &bytes, &err) == ST_END);
	for (int i = 0; i < 7; i++)
		put_event(&m);
	CHECK_OK(store_ring.save(m.store, &place, &why, &bytes, &err), &err);
	snprintf(path, sizeof(path), "%s/host.rx.p5.1.tacho", m.folder.folder);
	CHECK_U64(count_blocks(path, LOG_EVENTS, &len), 7);
	for (int i = 0; i < 500; i++)
		put_event(&m);
	place.max_bytes = 200 * 1024;
	CHECK_OK(store_ring.save(m.store, &place, &why, &bytes, &err), &err);
	CHECK(bytes <= 200 * 1024 && bytes > 100 * 1024);
	model_close(&m);
}

/* A ring that is left: by a process that lives, by one that is gone. */
void test_store_ring_left(void)
{
	struct store_place place = { .host = "",
				     .rank = 0,
				     .pid = (uint32_t)getpid(),
				     .ring_bytes = RING,
				     .ring_tables = 1 << 20 };
	static uint8_t block[LOG_HEADER_BYTES + LOG_BLOCK_BYTES];
	char host[64] = "", path[700], log[700];
	struct error err = { 0 };
	struct folder folder;
	struct store *s;
	uint64_t bytes;
	size_t len;
	pid_t pid;

	folder_make(&folder);
	gethostname(host, sizeof(host) - 1);
	place.host = host;
	place.folder = folder.folder;
	if (!CHECK_OK(store_ring.open(&s, &place, &err), &err))
		return;
	len = make_block(LOG_EVENTS, 1, 500, block);
	CHECK_OK(store_ring.put(s, LOG_EVENTS, block, len, &err), &err);
	snprintf(path, sizeof(path), "%s/%s.r0.p%u.ring", folder.folder, host, place.pid);
	CHECK(store_save_left(path, folder.folder, "death", &bytes, &err) == ST_ABSENT);
	store_ring.close(s);
	CHECK(access(path, F_OK) != 0);
	pid = fork();
	if (pid == 0) {
		place.pid = (uint32_t)getpid();
		if (store_ring.open(&s, &place, NULL) == ST_OK)
			store_ring.put(s, LOG_EVENTS, block, len, NULL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	snprintf(path, sizeof(path), "%s/%s.r0.p%d.ring", folder.folder, host, (int)pid);
	CHECK(store_save_left(path, NULL, "death", &bytes, &err) == ST_END);
	CHECK_OK(store_save_left(path, folder.folder, "death", &bytes, &err), &err);
	snprintf(log, sizeof(log), "%s/%s.r0.p%d.0.tacho", folder.folder, host, (int)pid);
	CHECK_U64(count_blocks(log, LOG_EVENTS, &len), 1);
	CHECK_U64(count_blocks(log, LOG_END, &len), 0);
	folder_remove(&folder);
}

void test_store_ring_place(void)
{
	struct store_place place = { .folder = "/proc", .host = "h", .pid = 1, .ring_bytes = RING };
	struct error err = { 0 };
	struct store *s;

	CHECK_STR(store_network_name(0x6969), "nfs");
	CHECK_STR(store_network_name(0xffffffffff534d42), "cifs"); /* f_type may be signed */
	CHECK(store_network_name(0x01021994) == NULL);             /* tmpfs */
	CHECK(store_network_name(0xef53) == NULL);                 /* ext4 */
	CHECK(store_ring.open(&s, &place, &err) == ST_IO);
	place.folder = "/tmp";
	place.ring_bytes = 4096;
	CHECK(store_ring.open(&s, &place, &err) == ST_USAGE);
	place.ring_bytes = RING;
	place.min_free = (uint64_t)1 << 60;
	CHECK(store_ring.open(&s, &place, &err) == ST_CEILING);
	CHECK(access("/tmp/h.r0.p1.ring", F_OK) != 0);
}

/* A ring is an input like any other, and so is what is left of one that was cut off. */
void test_store_ring_is_read(void)
{
	struct error err = { 0 };
	struct log_run run;
	struct log_block block;
	struct model m;
	struct buf log, ring;
	struct trace *trace;
	size_t at = LOG_FILE_HEADER_BYTES, skipped, cut;
	uint64_t events;
	FILE *f;

	buf_init(&log, 8 << 20);
	buf_init(&ring, 2 * RING);
	if (!log_run_make(&run, 77, 4000, 1) || !log_run_write(&run, 500, false, &log) ||
	    !model_open(&m, 3))
		return;
	while (at < log.len &&
	       log_find_block(log.data + at, log.len - at, at, &block, &skipped, NULL) == ST_OK) {
		CHECK_OK(store_ring.put(m.store, block.kind, log.data + at,
					LOG_HEADER_BYTES + block.size, &err),
			 &err);
		at += LOG_HEADER_BYTES + block.size;
	}
	store_ring.beat(m.store, 2000, 1000);
	f = fopen(m.path, "rb");
	if (CHECK(f != NULL) && buf_reserve(&ring, RING))
		ring.len = fread(ring.data, 1, RING, f);
	if (f)
		fclose(f);
	CHECK_U64(log_run_compare(&run, ring.data, ring.len), run.count);
	for (cut = ring.len; cut > 4096; cut -= cut / 7) {
		CHECK_OK(trace_new(&trace, 64 << 20, &err), &err);
		CHECK(log_read(ring.data, cut, trace, &events, &err) ==
		      (cut == ring.len ? ST_END : ST_TRUNCATED));
		CHECK(events <= run.count);
		trace_free(trace);
	}
	model_close(&m);
	log_run_release(&run);
	buf_release(&log);
	buf_release(&ring);
}

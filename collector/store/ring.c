/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder's ring: a shared mapping of a local file, whose pages outlive the process.
 *
 * The order of stores matters.  First the blocks that will be overwritten are invalidated, oldest
 * first; then the body of the new block is written, and its first eight bytes last.  So at any
 * instant the file holds complete blocks without gaps.
 */
#include "collector/config/config.h"
#include "collector/store/store.h"
#include "schemas/log/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { PATH_CAP = 4096 };

struct store_ring {
	struct store store;
	struct log_ring_consts consts;
	uint8_t *map;
	char path[PATH_CAP];
	int fd;
	bool unsaved;  /* the last save failed: keep the file for tacho-record */
	uint64_t put;  /* bytes stored so far */
	unsigned half; /* index of the half with valid tables */
	uint64_t table_at,
		table_number; /* position within the half, and number, of the next block */
	uint64_t event_at,
		event_number; /* position within the events, and number, of the next block */
	bool wrapped;         /* the end of the ring was reached at least once */
};

/* ---- the file ---- */

static const struct {
	unsigned long type;
	const char *name;
} network[] = {
	{ 0x6969, "nfs" },      { 0x517b, "smb" },        { 0xff534d42, "cifs" },
	{ 0xfe534d42, "smb2" }, { 0x00c36400, "ceph" },   { 0x0bd00bd0, "lustre" },
	{ 0x47504653, "gpfs" }, { 0x19830326, "beegfs" }, { 0x01021997, "9p" },
	{ 0x65735546, "fuse" }, { 0x5346414f, "afs" },    { 0x6b414653, "afs" },
	{ 0x73757245, "coda" }, { 0x20030528, "pvfs2" },  { 0x7461636f, "ocfs2" },
	{ 0x01161970, "gfs2" }, { 0xaad7aaea, "panfs" },  { 0x013111a8, "ibrix" },
	{ 0x564c, "ncp" },
};

const char *store_network_name(unsigned long type)
{
	for (size_t i = 0; i < sizeof(network) / sizeof(network[0]); i++)
		if (network[i].type == (type & 0xffffffff))
			return network[i].name;
	return NULL;
}

enum status store_ring_folder(const char *folder, struct error *err)
{
	struct statfs fs;

	TRY(store_make_folder(folder, NULL, err));
	if (statfs(folder, &fs) != 0)
		return fail(err, ST_IO, NOWHERE, "%s: %s", folder, strerror(errno));
	const char *name = store_network_name((unsigned long)fs.f_type);
	if (!name)
		return ST_OK;
	return fail(err, ST_USAGE, NOWHERE,
		    "%s is on a network file system (%s): a ring needs a local folder, such as "
		    "--ring-dir /dev/shm",
		    folder, name);
}

uint64_t store_process_began(uint32_t pid)
{
	char text[COMMAND_STAT];
	const char *p = command_stat(pid, text);
	unsigned long long began = 0;

	for (int i = 3; p && i < 22; i++)
		p = strchr(p + 1, ' ');
	return p && sscanf(p, "%llu", &began) == 1 ? began : 0;
}

/*
 * Allocates the file's blocks, because a store into an unallocated page raises SIGBUS on a full
 * disk.
 */
static enum status reserve_space(int fd, uint64_t size, struct error *err)
{
	int failed;

	do
		failed = posix_fallocate(fd, 0, (off_t)size);
	while (failed == EINTR);
	if (!failed)
		return ST_OK;
	return fail(err, failed == ENOSPC ? ST_CEILING : ST_IO, NOWHERE,
		    "no room for a ring of %llu bytes: %s", (unsigned long long)size,
		    strerror(failed));
}

static enum status check_min(int fd, uint64_t min_free, struct error *err)
{
	struct statvfs v;

	if (!min_free || fstatvfs(fd, &v) != 0 || (uint64_t)v.f_bavail * v.f_frsize >= min_free)
		return ST_OK;
	return fail(err, ST_CEILING, NOWHERE,
		    "a ring would leave less free disk space than --min-free");
}

/* Fails if the file was truncated, because touching its mapping would raise SIGBUS. */
static enum status check_file(const struct store_ring *s, struct error *err)
{
	struct stat st;

	return fstat(s->fd, &st) == 0 && (uint64_t)st.st_size < s->consts.size
		       ? fail(err, ST_IO, NOWHERE, "the ring's file was truncated")
		       : ST_OK;
}

static void ring_close(struct store *store)
{
	struct store_ring *s = (struct store_ring *)store;

	if (s->map)
		munmap(s->map, s->consts.size);
	if (s->fd >= 0) {
		if (!s->unsaved)
			unlink(s->path);
		close(s->fd);
	}
	free(s);
}

static void set_word(struct store_ring *s, enum log_ring_word word, uint64_t value)
{
	atomic_store_explicit((_Atomic uint64_t *)(void *)(s->map + word), value,
			      memory_order_release);
}

static enum status open_ring(struct store_ring *s, const struct store_place *place,
			     struct error *err)
{
	s->consts = (struct log_ring_consts){
		.pid = place->pid,
		.rank = place->rank,
		.max_bytes = place->max_bytes,
		.min_free = place->min_free,
		.started = store_process_began(place->pid),
	};
	snprintf(s->consts.host, sizeof(s->consts.host), "%s", place->host);
	if (!log_ring_divide(place->ring_bytes, place->ring_tables, &s->consts))
		return fail(err, ST_USAGE, NOWHERE, "a ring must have at least 1M");
	TRY(store_ring_folder(place->folder, err));
	char rank[16] = "x";

	if (place->rank != RANK_UNKNOWN)
		snprintf(rank, sizeof(rank), "%u", place->rank);
	if (snprintf(s->path, sizeof(s->path), "%s/%s.r%s.p%u.ring", place->folder, place->host,
		     rank, place->pid) >= (int)sizeof(s->path))
		return fail(err, ST_USAGE, NOWHERE, "the folder's name is too long");
	unlink(s->path); /* left by an earlier process or window with this pid */
	s->fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (s->fd < 0)
		return fail(err, ST_IO, NOWHERE, "%s: %s", s->path, strerror(errno));
	TRY(reserve_space(s->fd, s->consts.size, err));
	TRY(check_min(s->fd, place->min_free, err));
	s->map = mmap(NULL, s->consts.size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (s->map == MAP_FAILED) {
		s->map = NULL;
		return fail(err, ST_IO, NOWHERE, "%s: %s", s->path, strerror(errno));
	}
	s->event_number = s->table_number = 1;
	set_word(s, LOG_RING_TABLES, s->table_number << 1);
	log_ring_put_consts(&s->consts, s->map);
	return ST_OK;
}

static enum status ring_open_store(struct store **out, const struct store_place *place,
				   struct error *err)
{
	struct store_ring *s = calloc(1, sizeof(*s));

	if (!s)
		return fail_memory(err);
	s->store.type = &store_ring;
	s->fd = -1;
	enum status status = open_ring(s, place, err);
	if (status != ST_OK) {
		ring_close(&s->store);
		return status;
	}
	*out = &s->store;
	return ST_OK;
}

/* ---- blocks ---- */

/* Invalidates the blocks in this area, oldest first. */
static void take_away(uint8_t *at, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += LOG_RING_ALIGN)
		atomic_store_explicit((_Atomic uint64_t *)(void *)(at + i), 0,
				      memory_order_release);
}

/* Writes a block; the last store makes it valid. */
static void put_block(uint8_t *to, const uint8_t *bytes, size_t len, uint64_t number)
{
	uint8_t header[LOG_HEADER_BYTES];
	uint64_t first;

	memcpy(header, bytes, sizeof(header));
	log_ring_number(header, number);
	memcpy(&first, header, sizeof(first));
	memcpy(to + sizeof(header), bytes + sizeof(header), len - sizeof(header));
	memcpy(to + sizeof(first), header + sizeof(first), sizeof(header) - sizeof(first));
	atomic_store_explicit((_Atomic uint64_t *)(void *)to, first, memory_order_release);
}

static uint8_t *half_of(struct store_ring *s, unsigned half)
{
	return s->map + LOG_RING_HEADER + half * s->consts.half_bytes;
}

static enum status put_table(struct store_ring *s, const uint8_t *bytes, size_t len,
			     struct error *err)
{
	uint64_t size = log_ring_pad(len);
	uint8_t *half = half_of(s, s->half);

	if (size > s->consts.half_bytes - s->table_at)
		return fail(err, ST_CEILING, NOWHERE, "the ring's room for tables is full");
	if (size <
	    s->consts.half_bytes - s->table_at) /* end the list of blocks before older blocks */
		take_away(half + s->table_at + size, LOG_RING_ALIGN);
	put_block(half + s->table_at, bytes, len, s->table_number);
	s->table_at += size;
	s->table_number++;
	return ST_OK;
}

static void put_events(struct store_ring *s, const uint8_t *bytes, size_t len, uint32_t rows)
{
	uint8_t *events = half_of(s, 2);
	uint64_t size = log_ring_pad(len);

	set_word(s, LOG_RING_BEGUN_ROWS, rows);
	set_word(s, LOG_RING_BEGUN, s->event_number);
	if (size > s->consts.event_bytes - s->event_at) {
		take_away(events + s->event_at, s->consts.event_bytes - s->event_at);
		s->event_at = 0;
		s->wrapped = true;
	}
	if (s->wrapped)
		take_away(events + s->event_at, size);
	put_block(events + s->event_at, bytes, len, s->event_number);
	s->event_at += size;
	s->event_number++;
}

static enum status ring_put_block(struct store *store, unsigned kind, const uint8_t *bytes,
				  size_t len, struct error *err)
{
	struct store_ring *s = (struct store_ring *)store;
	struct log_block block;
	size_t skipped;

	if (kind == 0) { /* each saved log gets its own header */
		s->put += len;
		return ST_OK;
	}
	TRY(check_file(s, err));
	if (log_find_block(bytes, len, 0, &block, &skipped, err) != ST_OK || skipped)
		return fail(err, ST_FORMAT, NOWHERE, "no block to put into a ring");
	if (kind != LOG_EVENTS)
		TRY(put_table(s, bytes, len, err));
	else
		put_events(s, bytes, len, block.rows);
	s->put += len;
	return ST_OK;
}

static enum status ring_renew(struct store *store, const uint8_t *bytes, size_t len,
			      struct error *err)
{
	struct store_ring *s = (struct store_ring *)store;
	uint64_t first = s->table_number, at_before = s->table_at;
	struct log_block block;
	size_t at = 0, skipped;
	enum status status = ST_OK;

	TRY(check_file(s, err));
	s->half ^= 1;
	s->table_at = 0;
	while (status == ST_OK && at < len) {
		if (log_find_block(bytes + at, len - at, at, &block, &skipped, err) != ST_OK)
			break;
		status = put_table(s, bytes + at, LOG_HEADER_BYTES + block.size, err);
		at += LOG_HEADER_BYTES + block.size;
	}
	if (status != ST_OK) {
		s->half ^= 1;
		s->table_at = at_before;
		s->table_number = first;
		return status;
	}
	set_word(s, LOG_RING_TABLES, first << 1 | s->half);
	return ST_OK;
}

static void ring_beat(struct store *store, uint64_t now_ns, uint64_t until_ns)
{
	struct store_ring *s = (struct store_ring *)store;

	if (check_file(s, NULL) != ST_OK)
		return;
	set_word(s, LOG_RING_ALIVE, now_ns);
	if (until_ns)
		set_word(s, LOG_RING_UNTIL, until_ns);
}

static enum status read_map(const void *arg, uint64_t at, void *bytes, size_t len, size_t *got,
			    struct error *err)
{
	const struct store_ring *s = arg;

	*got = at >= s->consts.size ? 0 : s->consts.size - at < len ? s->consts.size - at : len;
	memcpy(bytes, s->map + at, *got);
	return ST_OK;
}

static enum status ring_save(struct store *store, const struct store_place *place,
			     struct log_saved *why, uint64_t *bytes, struct error *err)
{
	struct store_ring *s = (struct store_ring *)store;

	TRY(check_file(s, err));
	struct log_ring *r = malloc(sizeof(*r));
	if (!r)
		return fail_memory(err);
	enum status status = log_ring_open(r, read_map, s, err);
	if (status == ST_OK)
		status = store_save(r, place, why, true, bytes, err);
	if (status == ST_OK) {
		set_word(s, LOG_RING_SAVED_UNTIL, r->until_ns);
		set_word(s, LOG_RING_SAVED, r->highest);
	}
	s->unsaved = status != ST_OK && status != ST_END;
	free(r);
	return status;
}

static void ring_leave(struct store *store)
{
	((struct store_ring *)store)->unsaved = true;
}

static uint64_t ring_bytes_put(const struct store *store)
{
	return ((const struct store_ring *)store)->put;
}

const struct store_type store_ring = {
	.open = ring_open_store,
	.put = ring_put_block,
	.bytes = ring_bytes_put,
	.close = ring_close,
	.renew = ring_renew,
	.beat = ring_beat,
	.leave = ring_leave,
	.save = ring_save,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - where finished blocks go.  This is the seat of the flight recorder.
 *
 *	watches -> writer (rows -> blocks) -> store --file--> <host>.r<rank>.p<pid>.<n>.tacho
 *	                                          \--ring--> a fixed-size MAP_SHARED local file
 *
 * window.h says *when rows are made*, the store says *where the bytes are*: machines that do not
 * know each other.  Writer thread only.  A store that has refused one block of events refuses all
 * later ones: what is in it has no holes, and it is the writer who counts.  A ring refuses none: a
 * new block of events takes the place of the oldest.  Tables are kept apart there, in one of two
 * halves; when one is full the writer gives all that hold again, which go into the other.
 *
 * To add a store: store_NAME.c that exports `const struct store_type store_NAME`.
 */
#ifndef COLLECTOR_STORE_H
#define COLLECTOR_STORE_H

#include "schemas/log.h"

#include <stdbool.h>
#include <stddef.h>

struct store {
	const struct store_type *type;
};

struct log_saved;

struct store_place {
	const char *folder; /* made when it is not there */
	const char *host;
	uint32_t rank;      /* RANK_UNKNOWN: written as x */
	uint32_t pid;
	uint64_t max_bytes; /* 0: no limit */
	uint64_t min_free;  /* of the file system; 0: no limit */
	uint64_t ring_bytes, ring_tables; /* of a ring: its size, and most of a half for tables */
};

struct store_type {
	const char *name;
	enum status (*open)(struct store **out, const struct store_place *place,
			    struct error *err);
	/*
	 * Whole bytes or none.  `kind` 0 is the file's header.  ST_CEILING: the disk or its limit
	 * is full; tables, losses and END of a full store may still fit, so try them.
	 */
	enum status (*put)(struct store *s, unsigned kind, const uint8_t *bytes, size_t len,
			   struct error *err);
	uint64_t (*bytes)(const struct store *s); /* put so far */
	void (*close)(struct store *s);           /* frees; a ring is removed */

	/* Of a ring, else NULL. */

	/* Blocks of all tables that hold, after a put() of one was refused with ST_CEILING.
	 * ST_CEILING: they do not fit either; nothing was changed. */
	enum status (*renew)(struct store *s, const uint8_t *bytes, size_t len, struct error *err);
	/* All that was known at `until_ns` is in it; 0: only a sign of life, at `now_ns`. */
	void (*beat)(struct store *s, uint64_t now_ns, uint64_t until_ns);
	/* What came since the last save, as a log at `place`; what `why` says of the ring itself is
	 * filled in.  *bytes: its size. */
	enum status (*save)(struct store *s, const struct store_place *place, struct log_saved *why,
			    uint64_t *bytes, struct error *err);
};
extern const struct store_type store_file, store_ring;

/*
 * Whether a ring can be in this folder, which is made.  ST_USAGE: it is not on this machine, and
 * err says so.
 */
enum status store_ring_folder(const char *folder, struct error *err);
/* "nfs", by the number of statfs(); NULL: a local one. */
const char *store_network_name(unsigned long type);

/*
 * A ring that was left behind, as a log of its own in `folder`; `word` says why.  ST_ABSENT: its
 * process is alive.  ST_END: there is nothing in it that was not saved before, or `folder` is NULL.
 * The ring's file stays.
 */
enum status store_save_left(const char *path, const char *folder, const char *word,
			    uint64_t *bytes, struct error *err);
/* The blocks of a ring as a log; `ended`: with an END block. */
struct log_ring;
enum status store_save(struct log_ring *r, const struct store_place *place,
		       const struct log_saved *why, bool ended, uint64_t *bytes,
		       struct error *err);
/* Field 22 of /proc/PID/stat: when the process began; 0: there is none. */
uint64_t store_process_began(uint32_t pid);

/* Makes a folder and those that it lies in; *made (may be NULL): it was not there. */
enum status store_make_folder(const char *folder, bool *made, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - where finished blocks go: a file, or the flight recorder's ring.
 *
 *	probes -> writer (rows -> blocks) -> store --file-->
 *<host>.r<rank>.p<pid>.<n>[_<part>].tacho
 *	                                          \--ring--> a MAP_SHARED file of constant size
 *
 * A log that continues another one, which had become large enough, has the name of the first with a
 * part number, so that readers find the logs that belong together.
 *
 * window.h decides when rows are made, the store decides where their bytes go; neither uses the
 * other.  Writer thread only.  A file that has refused one block of events refuses all later
 * ones, so that its content has no gaps; the writer counts the loss.  A ring replaces its oldest
 * events instead.  It keeps tables in one of two halves: when that is full, the writer passes all
 * valid tables again, and they go into the other half.
 *
 * To add a store, write NAME.c with `const struct store_type store_NAME`.
 */
#pragma once

#include "schemas/log/log.h"

#include <stdbool.h>
#include <stddef.h>

struct store {
	const struct store_type *type;
};

struct log_saved;

enum { STORE_PATH_MAX = 4096 };

struct store_place {
	const char *folder; /* made if it does not exist */
	const char *host;
	uint32_t rank; /* RANK_UNKNOWN is written as x */
	uint32_t pid;
	const char *first;  /* path of the log that this one continues; NULL: none */
	uint32_t part;      /* lowest part number of a log that continues another one */
	uint64_t max_bytes; /* 0: no limit */
	uint64_t min_free;  /* keep free on the file system; 0: no limit */
	char *path;         /* STORE_PATH_MAX bytes for the path of the opened file, or NULL */
	uint64_t ring_bytes,
		ring_tables; /* size of a ring, and of each half of its tables at most */
};

struct store_type {
	enum status (*open)(struct store **out, const struct store_place *place, struct error *err);
	/*
	 * Stores all bytes or none.  `kind` 0 is the file's header.  ST_CEILING: the disk or the
	 * limit is full.  Tables, losses and END may still fit, so the caller tries to store them.
	 */
	enum status (*put)(struct store *s, unsigned kind, const uint8_t *bytes, size_t len,
			   struct error *err);
	uint64_t (*bytes)(const struct store *s);   /* bytes stored so far */
	void (*close)(struct store *s);             /* frees the store; removes a ring */
	const char *(*path)(const struct store *s); /* path of a log's file; NULL for a ring */

	/* The next functions are NULL except for a ring. */

	/*
	 * Stores the blocks of all valid tables, after put() of a table returned ST_CEILING.
	 * ST_CEILING: they do not fit either, and nothing was changed.
	 */
	enum status (*renew)(struct store *s, const uint8_t *bytes, size_t len, struct error *err);
	/*
	 * States that all events up to `until_ns` are in the ring, and that the process was alive
	 * at `now_ns`.  `until_ns` 0: only the latter.
	 */
	void (*beat)(struct store *s, uint64_t now_ns, uint64_t until_ns);
	/* Makes close() keep the file, because the process died. */
	void (*leave)(struct store *s);
	/*
	 * Saves the events since the last save as a log at `place`, and completes `why`.  *bytes is
	 * set to the size of the log.
	 */
	enum status (*save)(struct store *s, const struct store_place *place, struct log_saved *why,
			    uint64_t *bytes, struct error *err);
};
extern const struct store_type store_file, store_ring;

/*
 * Makes the folder and checks that it can contain a ring.  ST_USAGE: it is on a network file
 * system.
 */
enum status store_ring_folder(const char *folder, struct error *err);
/* Returns the name of a network file system by the type of statfs(), such as "nfs", or NULL for a
 * local one. */
const char *store_network_name(unsigned long type);

/*
 * Saves a ring that a process left as a log in `folder`; `word` is the reason.  ST_ABSENT: the
 * process is alive.  ST_END: all events were saved before, or `folder` is NULL.  The ring's file is
 * kept.
 */
enum status store_save_left(const char *path, const char *folder, const char *word, uint64_t *bytes,
			    struct error *err);
/*
 * Opens a file that a process of this user left; `flags` are those of open().  The caller closes
 * *fd unless it is -1, whatever is returned.  ST_ABSENT: the file belongs to another user.
 */
enum status store_open_left(const char *path, int flags, int *fd, struct error *err);
/* Writes the blocks of a ring as a log.  If `ended` is set, the log gets an END block. */
struct log_ring;
enum status store_save(struct log_ring *r, const struct store_place *place,
		       const struct log_saved *why, bool ended, uint64_t *bytes, struct error *err);
/* Returns the start time of a process, field 22 of /proc/PID/stat, or 0 if there is no such
 * process. */
uint64_t store_process_began(uint32_t pid);

/* Returns whether a log of more than a few tables could be made in this folder now. */
bool store_has_space(const char *folder, uint64_t min_free);
/* Makes a folder and its parents.  *made (`made` may be NULL) is set to whether the folder was new.
 */
enum status store_make_folder(const char *folder, bool *made, struct error *err);

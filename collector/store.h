/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - where finished blocks go.  This is the seat of the flight recorder.
 *
 *	watches -> writer (rows -> blocks) -> store --file--> <host>.r<rank>.p<pid>.<n>.tacho
 *	                                          \--ring--> a fixed-size MAP_SHARED local file
 *
 * window.h says *when rows are made*, the store says *where the bytes are*: machines that do not
 * know each other.  Writer thread only.  A store that has refused one block of events refuses all
 * later ones: what is in it has no holes, and it is the writer who counts.
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

struct store_place {
	const char *folder; /* made when it is not there */
	const char *host;
	uint32_t rank;      /* RANK_UNKNOWN: written as x */
	uint32_t pid;
	uint64_t max_bytes; /* 0: no limit */
	uint64_t min_free;  /* of the file system; 0: no limit */
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
	uint64_t (*bytes)(const struct store *s); /* kept so far */
	void (*close)(struct store *s);           /* frees */
};
extern const struct store_type store_file;

/* Makes a folder and those that it lies in; *made (may be NULL): it was not there. */
enum status store_make_folder(const char *folder, bool *made, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - functions of several probes that make rows: tracks of threads, counters, descriptors.
 *
 * Writer thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct event;
struct writer;

/* Returns the log's id of a text that has an id of arena/texts.h. */
uint32_t probe_name(struct writer *w, uint32_t id);

/*
 * Returns the track of a thread of this process.  Its name is that of NVTX, otherwise that of the
 * system, otherwise, for a thread that has ended, `fallback` (NULL: none).
 */
uint32_t probe_thread_track(struct writer *w, uint32_t tid, const char *fallback);

/* Reads a small file as text without its last newline.  Returns its length, or 0 if it is missing
 * or empty. */
size_t probe_read(const char *path, char *text, size_t cap);

/*
 * Puts a sample of a counter of a device (NO_ID: of the host).  *desc is the counter's descriptor
 * in this log; the function sets it if it is 0.
 */
void probe_put_counter(struct writer *w, uint32_t *desc, uint32_t device, const char *name,
		       uint8_t unit, uint64_t at_ns, double value);

/* Clips a row of a dead process to the begin of its log, because the row may begin in an earlier
 * one. */
void probe_clip(const struct writer *w, struct event *e);

/* A cache of descriptors of one log, by three words that determine them.  A zeroed struct is
 * empty. */
struct desc_cache {
	uint64_t log;
	struct {
		uint64_t key[3];
		uint32_t desc;
	} * rows; /* one row for each hash, which keeps the latest; NULL until the first use */
};
struct ring_record;
/*
 * Returns the place of the descriptor of a record with this name, kind and `word` on the track.  It
 * is 0 if the cache does not have it; the caller then sets it.
 */
uint32_t *desc_cache_find(struct desc_cache *c, const struct writer *w, uint32_t track,
			  const struct ring_record *r, uint64_t word);

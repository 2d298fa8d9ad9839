/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - what probes share to make rows: tracks of threads, and descriptors by what they are of.
 *
 * Writer thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct event;
struct writer;

/* The log's id of a text that has an id of arena/texts.h. */
uint32_t probe_name(struct writer *w, uint32_t id);

/*
 * The track of a thread of this process, with the name that the program gave it through NVTX, else
 * that of the system, else `fallback` (NULL: none) for one that has ended.
 */
uint32_t probe_thread_track(struct writer *w, uint32_t tid, const char *fallback);

/* A small file as text, without its last newline; 0: there is none, or nothing in it. */
size_t probe_read(const char *path, char *text, size_t cap);

/*
 * A sample of a counter of a device (NO_ID: of the host); *desc is its descriptor in this log, 0
 * until there is one.
 */
void probe_put_counter(struct writer *w, uint32_t *desc, uint32_t device, const char *name,
		       uint8_t unit, uint64_t at_ns, double value);

/* Of what a dead process left: a row begins where its log does, which another may come before. */
void probe_clip(const struct writer *w, struct event *e);

/* Descriptors of one log by three words that they follow from.  Zeroed: empty. */
struct desc_cache {
	uint64_t log;
	struct {
		uint64_t key[3];
		uint32_t desc;
	} * rows; /* one for each hash: the last one stays; NULL until the first */
};
struct ring_record;
/*
 * The descriptor of a record with this name, kind and `word` on the track; 0: it is not there yet,
 * and the caller sets it.
 */
uint32_t *desc_cache_find(struct desc_cache *c, const struct writer *w, uint32_t track,
			  const struct ring_record *r, uint64_t word);

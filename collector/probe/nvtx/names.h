/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - what a program named through NVTX: domains, categories, colours, threads, things.
 *
 * Tables in the arena that only grow, to a ceiling; what is over it is counted.  Names are ids of
 * arena/texts.h.  Adding takes a short lock and is done when something is registered, never for an
 * event; looking up takes none, any thread.
 */
#pragma once

#include "schemas/model/nvtx.h"

#include <stdbool.h>
#include <stdint.h>

enum { NVTX_DOMAINS = 1024 }; /* the last one stands for all that are too many */

/* From 1: 0 is the default domain.  The same name gives the same domain, so none is ever freed. */
uint32_t nvtx_domain_find(uint32_t name);
/* 0 for the default domain and for numbers that are none. */
uint32_t nvtx_domain_name(uint32_t domain);
uint32_t nvtx_domain_count(void);

/* From 1; 0: over the ceiling. */
unsigned nvtx_color_find(uint32_t argb);
uint32_t nvtx_color(unsigned color);

/* What has a name. */
enum nvtx_object {
	NVTX_THREAD,    /* id: gettid() */
	NVTX_DEVICE,    /* CUDA's ordinal */
	NVTX_STREAM_ID, /* cupti_ids_word() */
	NVTX_CATEGORY,  /* nvtx_category() */
};
static inline uint64_t nvtx_category(uint32_t domain, uint32_t category)
{
	return (uint64_t)domain << 32 | category;
}
struct nvtx_named {
	enum nvtx_object object;
	uint64_t id;
	uint32_t name;
};
/* The last name counts. */
void nvtx_object_put(enum nvtx_object object, uint64_t id, uint32_t name);
/* 0: it has no name. */
uint32_t nvtx_object_name(enum nvtx_object object, uint64_t id);
/* Namings so far, and one of them. */
uint32_t nvtx_object_count(void);
struct nvtx_named nvtx_object_at(uint32_t i);

/* What of NVTX did not fit, or had no memory: names, ranges, payloads.  Only grows. */
void nvtx_lose(uint64_t count);
/* What no log has yet; the writer says what one has got, and what of that is stored. */
uint64_t nvtx_lost(void);
void nvtx_lost_is_told(uint64_t count);
void nvtx_lost_is_stored(unsigned parity);

/*
 * Schemas of payloads, in the same tables.  Rows below the count are complete and constant.  One
 * that is registered again gets a new row, and the newest row is valid.
 */
enum { NVTX_SCHEMAS = 1024, NVTX_ENTRIES = 16384 };
struct nvtx_schemas {
	_Atomic uint32_t count;
	uint32_t entry_count; /* under the lock */
	struct nvtx_schema_row {
		uint64_t id;
		uint32_t domain;
		uint32_t first, count; /* entries */
		struct nvtx_type type; /* size 0: unknown */
	} rows[NVTX_SCHEMAS];
	/* Of an enum: type is the value, flags whether it is a flag. */
	struct nvtx_schema_entry {
		uint64_t type, length;
		uint32_t flags, name; /* name: id of texts.h */
		uint32_t offset;      /* in a static schema */
		uint32_t spare;
	} entries[NVTX_ENTRIES];
};
const struct nvtx_schemas *nvtx_schemas(void);
/* Under the lock: those of this process, to be added to. */
struct nvtx_schemas *nvtx_schemas_own(void);

/* Whether there is memory for them: if not, nothing else here may be called. */
bool nvtx_names_exist(void);
/* Puts the tables into this process's arena, if they are not there yet. */
void nvtx_names_own(void);
/* After arena_adopt(): takes the tables in it; false: they are damaged. */
bool nvtx_names_adopt(void);
/* For what else is registered.  False: a handler of the program asks, over a fork() of its thread.
 */
bool nvtx_names_lock(void);
/* The same without a system call. */
void nvtx_names_before_fork(void);
void nvtx_names_unlock(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - names that a program gave through NVTX: domains, categories, colours, threads, objects.
 *
 * The tables are in the arena and only grow, up to a ceiling; what exceeds it is counted.  Names
 * are ids of arena/texts.h.  Adding takes a short lock and happens at registrations, never for an
 * event; looking up takes no lock and is allowed on any thread.
 */
#pragma once

#include "schemas/model/nvtx.h"

#include <stdbool.h>
#include <stdint.h>

enum { NVTX_DOMAINS = 1024 }; /* the last one stands for all beyond the ceiling */

/* Finds or adds a domain and returns its number, from 1 on; 0 is the default domain.  The same name
 * gives the same domain, so domains are never freed. */
uint32_t nvtx_domain_find(uint32_t name);
/* Returns the name of a domain, or 0 for the default domain and unknown numbers. */
uint32_t nvtx_domain_name(uint32_t domain);
uint32_t nvtx_domain_count(void);

/* Finds or adds a colour and returns its number, from 1 on, or 0 over the ceiling. */
unsigned nvtx_color_find(uint32_t argb);
uint32_t nvtx_color(unsigned color);

/* Kinds of named objects. */
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
/* Names an object.  The latest name is valid. */
void nvtx_object_put(enum nvtx_object object, uint64_t id, uint32_t name);
/* Returns the name of an object, or 0. */
uint32_t nvtx_object_name(enum nvtx_object object, uint64_t id);
/* Return the number of nvtx_object_put() so far, and number `i` of them. */
uint32_t nvtx_object_count(void);
struct nvtx_named nvtx_object_at(uint32_t i);

/* Counts names, ranges and payloads that did not fit or had no memory. */
void nvtx_lose(uint64_t count);
/* nvtx_lost() returns the count that is in no log yet.  The writer reports with the other two how
 * much it put into a log, and that this is stored. */
uint64_t nvtx_lost(void);
void nvtx_lost_is_told(uint64_t count);
void nvtx_lost_is_stored(unsigned parity);

/*
 * Schemas of payloads, in the same tables.  Rows below the count are complete and constant.  A
 * schema that is registered again gets a new row, and the newest row is valid.
 */
enum { NVTX_SCHEMAS = 1024, NVTX_ENTRIES = 16384 };
struct nvtx_schemas {
	_Atomic uint32_t count;
	uint32_t entry_count; /* needs the lock */
	struct nvtx_schema_row {
		uint64_t id;
		uint32_t domain;
		uint32_t first, count; /* entries of the schema */
		struct nvtx_type type; /* size 0: unknown */
	} rows[NVTX_SCHEMAS];
	/* In an enum, `type` is the value, and `flags` is 1 for a flag. */
	struct nvtx_schema_entry {
		uint64_t type, length;
		uint32_t flags, name; /* name: id of texts.h */
		uint32_t offset;      /* bytes, in a static schema */
		uint32_t spare;
	} entries[NVTX_ENTRIES];
};
const struct nvtx_schemas *nvtx_schemas(void);
/* Needs the lock.  Returns the tables of this process, to which rows can be added. */
struct nvtx_schemas *nvtx_schemas_own(void);

/* Returns whether there is memory for the tables; if not, no other function here may be called. */
bool nvtx_names_exist(void);
/* Moves the tables to this process's arena if they are not there yet. */
void nvtx_names_own(void);
/* Uses the tables of an arena after arena_adopt(); returns false if they are damaged. */
bool nvtx_names_adopt(void);
/* Takes the lock for other registrations.  Returns false in a signal handler that interrupted a
 * fork() of its own thread. */
bool nvtx_names_lock(void);
/* Takes the lock without a system call. */
void nvtx_names_before_fork(void);
void nvtx_names_unlock(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lib.h - finds and opens the CUPTI of this process.
 *
 * No header of CUPTI is needed: the functions that are called are declared here and looked up by
 * name.  A missing function is NULL, and its feature is off.  Results are numbers (CUptiResult); 0
 * is success, and an unknown number is an error like any other.  The sizes of records are measured
 * with the library itself, because padding and tails differ from version to version.
 *
 * The struct is filled once by cupti_lib_open() and constant afterwards; the library is never
 * unloaded.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CUPTI_KINDS = 96,   /* CUPTI_ACTIVITY_KIND_*, with space for new ones */
	CUPTI_CALLS = 1536, /* callback ids of a domain: 13.0 has 807 and 523 */
	CUPTI_PATH = 512,
};
enum cupti_domain { CUPTI_DRIVER = 1, CUPTI_RUNTIME = 2, CUPTI_DOMAINS };

/* Results that are handled by name; see internal.h. */
enum cupti_result {
	CUPTI_OK = 0,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_INVALID_KIND = 21,
	CUPTI_NO_PRIVILEGE = 35,
	CUPTI_TAKEN = 39, /* another subscriber is active */
	CUPTI_UNKNOWN = 999,
};
enum { CUPTI_ATTRIBUTE_ZEROED = 5 };
enum { CUPTI_THREAD_ID_SYSTEM = 1, CUPTI_FLUSH_FORCED = 1, CUPTI_CALLBACK_EXIT = 1 };

struct cupti_subscriber;
typedef void (*cupti_request_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				  size_t valid);
typedef void (*cupti_callback_fn)(void *user, int domain, uint32_t cbid, const void *data);
struct cupti_subscriber_params {
	size_t size; /* bytes of this struct */
	const char *name;
	char *old_name;
	size_t old_name_size;
};

/* X(member, symbol, arguments); the first CUPTI_MUST functions are required. */
/* clang-format off */
#define CUPTI_FUNCTIONS(X)                                                                         \
	X(version, "cuptiGetVersion", (uint32_t * version))                                        \
	X(next_record, "cuptiActivityGetNextRecord",                                               \
	  (uint8_t * buffer, size_t valid, uint8_t * *record))                                     \
	X(register_callbacks, "cuptiActivityRegisterCallbacks",                                    \
	  (cupti_request_fn request, cupti_complete_fn complete))                                  \
	X(enable, "cuptiActivityEnable", (int kind))                                               \
	X(disable, "cuptiActivityDisable", (int kind))                                             \
	X(flush_all, "cuptiActivityFlushAll", (uint32_t flag))                                     \
	X(enable_and_dump, "cuptiActivityEnableAndDump", (int kind))                               \
	X(dropped, "cuptiActivityGetNumDroppedRecords",                                            \
	  (void *context, uint32_t stream, size_t *count))                                         \
	X(timestamp, "cuptiGetTimestamp", (uint64_t * ns))                                         \
	X(set_attribute, "cuptiActivitySetAttribute", (int attribute, size_t *size, void *value))  \
	X(get_attribute, "cuptiActivityGetAttribute", (int attribute, size_t *size, void *value))  \
	X(thread_id_type, "cuptiSetThreadIdType", (int type))                                      \
	X(get_thread_id_type, "cuptiGetThreadIdType", (int *type))                                 \
	X(register_timestamp, "cuptiActivityRegisterTimestampCallback",                            \
	  (uint64_t(*timestamp)(void)))                                                            \
	X(all_sync_records, "cuptiActivityEnableAllSyncRecords", (uint8_t on))                     \
	X(callback_name, "cuptiGetCallbackName",                                                   \
	  (int domain, uint32_t cbid, const char **name))                                          \
	X(result_text, "cuptiGetResultString", (int result, const char **text))                    \
	X(subscribe, "cuptiSubscribe",                                                             \
	  (struct cupti_subscriber * *out, cupti_callback_fn callback, void *user))                \
	X(subscribe_2, "cuptiSubscribe_v2",                                                        \
	  (struct cupti_subscriber * *out, cupti_callback_fn callback, void *user,                 \
	   struct cupti_subscriber_params *params))                                                \
	X(unsubscribe, "cuptiUnsubscribe", (struct cupti_subscriber * subscriber))                 \
	X(enable_domain, "cuptiEnableDomain",                                                      \
	  (uint32_t on, struct cupti_subscriber * subscriber, int domain))                         \
	X(enable_runtime_call, "cuptiActivityEnableRuntimeApi", (uint32_t cbid, uint8_t on))       \
	X(enable_driver_call, "cuptiActivityEnableDriverApi", (uint32_t cbid, uint8_t on))         \
	X(context_id, "cuptiGetContextId", (void * context, uint32_t * id))                        \
	X(stream_id, "cuptiGetStreamIdEx",                                                         \
	  (void * context, void * stream, uint8_t per_thread, uint32_t * id))                      \
	X(record_size, "cuptiActivityGetStructSize", (int kind, uint32_t version, size_t *size))   \
	X(finalize, "cuptiFinalize", (void))
/* clang-format on */
enum { CUPTI_MUST = 6 };

struct cupti_lib {
	void *handle; /* NULL: none */
	char path[CUPTI_PATH];
	bool was_loaded;             /* another part of the process had loaded it */
	uint32_t api_version;        /* cuptiGetVersion(): 22 is 12.4, 130001 is 13.0 */
	uint16_t sizes[CUPTI_KINDS]; /* bytes of a record; 0: the library does not have the kind */
#define X(member, symbol, arguments) int(*member) arguments;
	CUPTI_FUNCTIONS(X)
#undef X
};

/*
 * Opens the copy that is loaded, otherwise `asked` (a path or soname; "": none), otherwise the one
 * that fits the CUDA runtime or driver of this process.  ST_ABSENT: there is none, or it cannot be
 * used; *lib is then closed.
 */
enum status cupti_lib_open(struct cupti_lib *lib, const char *asked, struct error *err);
/* Gets the path of another copy that is loaded, whose records we do not get; "": there is none. */
void cupti_lib_other(const struct cupti_lib *lib, char path[CUPTI_PATH]);
/* Writes the CUDA version of a CUPTI, such as "12.4" or "13.0".  Needs no library. */
void cupti_version_text(uint32_t api_version, char out[16]);

/* Returns whether the driver, the runtime or CUPTI is loaded. */
bool cuda_is_loaded(void);
/* Returns whether libcuda.so.1 is loaded and cuInit() was called in this process.  The query of the
 * driver has no side effect. */
bool cuda_is_initialized(void);
/* Returns whether CUDA is in use in this process and events from CUPTI are wanted. */
bool cupti_is_needed(void);
/* Returns the highest CUDA version of the driver, such as 12040 for 12.4, or 0 if none is
 * loaded. */
unsigned cuda_driver_version(void);
/* Returns the CUDA context of the calling thread, or NULL. */
void *cuda_current_context(void);

/*
 * The ids in CUPTI's records of a stream whose handle the program passed to NVTX.  They must be
 * queried on the program's thread while the handle is valid and its context is current; later they
 * cannot be found.  Any thread, no lock.
 */
struct cupti_stream_ids {
	uint32_t context, stream;
};
/* Sets the library for these queries, which must stay valid.  NULL: CUPTI must not be called any
 * more. */
void cupti_ids_open(const struct cupti_lib *lib);
/* Gets the ids of a stream.  Returns false if CUPTI is not loaded yet or does not report them. */
bool cupti_ids_of_stream(const void *stream, struct cupti_stream_ids *out);
/* Returns both ids in one word, as nvtx/names.h stores them. */
uint64_t cupti_ids_word(uint32_t context, uint32_t stream);

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/internal.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEWEST_MAJOR = 16, OLDEST_MAJOR = 12, SAMPLE_BYTES = 8192 };

/* ---- loaded libraries ---- */

struct loaded {
	const char *wanted, *but; /* prefix of the file name; a path to ignore, or NULL */
	char path[CUPTI_PATH];
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct loaded *l = arg;
	const char *name = strrchr(info->dlpi_name, '/');

	name = name ? name + 1 : info->dlpi_name;
	if (strncmp(name, l->wanted, strlen(l->wanted)) != 0 ||
	    (l->but && strcmp(info->dlpi_name, l->but) == 0))
		return 0;
	snprintf(l->path, sizeof(l->path), "%s", info->dlpi_name);
	return 1;
}

/* Finds a loaded library.  dlopen() is not used, because its lock may be held for seconds while
 * other constructors run. */
static bool find_loaded(const char *wanted, struct loaded *l)
{
	*l = (struct loaded){ .wanted = wanted };
	return dl_iterate_phdr(look_at, l) != 0;
}

void cupti_lib_other(const struct cupti_lib *lib, char path[CUPTI_PATH])
{
	struct loaded l = { .wanted = "libcupti.so", .but = lib->path };

	dl_iterate_phdr(look_at, &l);
	memcpy(path, l.path, CUPTI_PATH);
}

/* Returns 12 for a loaded libcudart.so.12, or 0 if there is none. */
static unsigned runtime_major(struct loaded *runtime)
{
	static const char stem[] = "libcudart.so.";

	if (!find_loaded(stem, runtime))
		return 0;
	const char *at = strstr(runtime->path, stem);
	return at ? (unsigned)atoi(at + sizeof(stem) - 1) : 0;
}

static void *driver_symbol(const char *name)
{
	static const char file[] = "libcuda.so.1";
	struct loaded l;

	if (!find_loaded(file, &l))
		return NULL;
	void *handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
	void *symbol = handle ? dlsym(handle, name) : NULL;
	if (handle)
		dlclose(handle);
	return symbol;
}

unsigned cuda_driver_version(void)
{
	int (*get_version)(int *);
	void *symbol = driver_symbol("cuDriverGetVersion");
	int version = 0;

	memcpy(&get_version, &symbol, sizeof(get_version));
	if (!get_version || get_version(&version) != 0)
		return 0;
	return (unsigned)version;
}

bool cuda_is_loaded(void)
{
	struct loaded l;

	return find_loaded("libcuda.so.1", &l) || find_loaded("libcudart.so", &l) ||
	       find_loaded("libcupti.so", &l);
}

bool cuda_is_initialized(void)
{
	int (*get_count)(int *);
	void *symbol = driver_symbol("cuDeviceGetCount");
	int count;

	memcpy(&get_count, &symbol, sizeof(get_count));
	return get_count && get_count(&count) == 0;
}

void *cuda_current_context(void)
{
	int (*get_current)(void **);
	void *symbol = driver_symbol("cuCtxGetCurrent"), *context = NULL;

	memcpy(&get_current, &symbol, sizeof(get_current));
	return get_current && get_current(&context) == 0 ? context : NULL;
}

/* ---- finding ---- */

static bool take(struct cupti_lib *lib, const char *name, int flags)
{
	struct link_map *map;

	lib->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags);
	if (!lib->handle)
		return false;
	lib->was_loaded = flags & RTLD_NOLOAD;
	snprintf(lib->path, sizeof(lib->path), "%.*s", CUPTI_PATH - 1, name);
	if (dlinfo(lib->handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name && *map->l_name)
		snprintf(lib->path, sizeof(lib->path), "%s", map->l_name);
	return true;
}

static bool take_major(struct cupti_lib *lib, unsigned major, int flags)
{
	char name[32];

	snprintf(name, sizeof(name), "libcupti.so.%u", major);
	return take(lib, name, flags);
}

/* Opens a copy that is loaded already.  The same file name with another path would be a second
 * library with a separate state. */
static bool take_loaded(struct cupti_lib *lib, unsigned fitting)
{
	if (fitting && take_major(lib, fitting, RTLD_NOLOAD))
		return true;
	for (unsigned major = NEWEST_MAJOR; major >= OLDEST_MAJOR; major--)
		if (take_major(lib, major, RTLD_NOLOAD))
			return true;
	return take(lib, "libcupti.so", RTLD_NOLOAD);
}

/* Tries the folders in which wheels and toolkits have CUPTI, relative to their libcudart. */
static bool take_beside(struct cupti_lib *lib, const struct loaded *runtime, unsigned major)
{
	static const char *const places[] = { "", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/",
					      "../../../extras/CUPTI/lib64/" };
	const char *slash = strrchr(runtime->path, '/');
	char name[CUPTI_PATH + 64];

	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(name, sizeof(name), "%.*s/%slibcupti.so.%u", (int)(slash - runtime->path),
			 runtime->path, places[i], major);
		if (take(lib, name, 0))
			return true;
	}
	return false;
}

static bool take_any(struct cupti_lib *lib, unsigned newest)
{
	char name[64];

	for (unsigned major = newest; major >= OLDEST_MAJOR; major--)
		if (take_major(lib, major, 0))
			return true;
	for (unsigned major = newest; major >= OLDEST_MAJOR; major--) {
		snprintf(name, sizeof(name), "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.%u",
			 major);
		if (take(lib, name, 0))
			return true;
	}
	return false;
}

static enum status find(struct cupti_lib *lib, const char *asked, struct error *err)
{
	struct loaded runtime;
	unsigned fitting = runtime_major(&runtime), driver;

	if (take_loaded(lib, fitting))
		return ST_OK;
	if (*asked && !take(lib, asked, 0))
		return fail(err, ST_ABSENT, NOWHERE, "%s cannot be loaded", asked);
	if (lib->handle)
		return ST_OK;
	if (fitting && (take_beside(lib, &runtime, fitting) || take_major(lib, fitting, 0)))
		return ST_OK;
	driver = cuda_driver_version() / 1000; /* a CUPTI newer than the driver would not work */
	if (take_any(lib, driver ? driver : NEWEST_MAJOR))
		return ST_OK;
	return fail(err, ST_ABSENT, NOWHERE,
		    "no libcupti.so.%u or older was found: install the "
		    "wheel nvidia-cuda-cupti or set --cupti-lib",
		    driver ? driver : NEWEST_MAJOR);
}

/* ---- symbols, versions, sizes ---- */

static const struct {
	const char *symbol;
	size_t at;
} functions[] = {
#define X(member, symbol, arguments) { symbol, offsetof(struct cupti_lib, member) },
	CUPTI_FUNCTIONS(X)
#undef X
};

static enum status look_up(struct cupti_lib *lib, struct error *err)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *symbol = dlsym(lib->handle, functions[i].symbol);

		memcpy((char *)lib + functions[i].at, &symbol, sizeof(symbol));
		if (!symbol && i < CUPTI_MUST)
			return fail(err, ST_ABSENT, NOWHERE, "%s has no %s", lib->path,
				    functions[i].symbol);
	}
	return ST_OK;
}

/* Returns whether there is a driver.  Without one, some versions of CUPTI fail at any call, and
 * 13.2 crashes. */
static bool has_driver(void)
{
	static const char file[] = "libcuda.so.1";
	struct loaded l;

	if (find_loaded(file, &l))
		return true;
	void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
	if (handle)
		dlclose(handle);
	return handle != NULL;
}

/* Returns the size of a record of the kind.  In the sample a record may begin at every eighth byte,
 * so CUPTI's step to the next record is the size. */
static uint16_t stride(const struct cupti_lib *lib, uint32_t kind)
{
	static _Alignas(8) uint8_t bytes[SAMPLE_BYTES];
	uint8_t *first = NULL, *second = NULL;

	memset(bytes, 0, sizeof(bytes));
	for (size_t at = 0; at < sizeof(bytes); at += 8)
		memcpy(bytes + at, &kind, sizeof(kind));
	if (lib->next_record(bytes, sizeof(bytes), &first) != CUPTI_OK || !first)
		return 0;
	second = first;
	if (lib->next_record(bytes, sizeof(bytes), &second) != CUPTI_OK || second <= first)
		return 0;
	return (uint16_t)(second - first);
}

enum status cupti_lib_open(struct cupti_lib *lib, const char *asked, struct error *err)
{
	memset(lib, 0, sizeof(*lib));
	TRY(find(lib, asked, err));
	enum status status = look_up(lib, err);
	if (status == ST_OK && !has_driver())
		status = fail(err, ST_ABSENT, NOWHERE,
			      "no driver: libcuda.so.1 is not found, so %s "
			      "is not tried; a container needs its GPU (--gpus all)",
			      lib->path);
	if (status == ST_OK && lib->version(&lib->api_version) != CUPTI_OK)
		status = fail(err, ST_ABSENT, NOWHERE,
			      "%s does not work: the driver is missing or too old", lib->path);
	if (status == ST_OK) {
		for (uint32_t kind = 1; kind < CUPTI_KINDS; kind++) {
			lib->sizes[kind] = stride(lib, kind);
			size_t size = 0;
			if (!lib->sizes[kind] && lib->record_size &&
			    lib->record_size((int)kind, 0, &size) == CUPTI_OK &&
			    size < SAMPLE_BYTES)
				lib->sizes[kind] = (uint16_t)size;
		}
	} else
		lib->handle = NULL; /* never closed, because unloading it may crash */
	return status;
}

void cupti_version_text(uint32_t api_version, char out[16])
{
	static const struct {
		uint8_t api;
		const char *text;
	} old[] = { { 18, "12.0" }, { 20, "12.2" }, { 21, "12.3" }, { 22, "12.4" }, { 23, "12.5" },
		    { 24, "12.6" }, { 26, "12.8" }, { 27, "12.9" }, { 28, "12.9" } };

	if (api_version >= 100000) {
		snprintf(out, 16, "%u.%u", api_version / 10000, api_version / 100 % 100);
		return;
	}
	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++)
		if (old[i].api == api_version) {
			snprintf(out, 16, "%s", old[i].text);
			return;
		}
	snprintf(out, 16, "API %u", api_version);
}

/* ---- ids of streams ---- */

/* Handles 0, 1 and 2 are no addresses: the default stream, the legacy default stream, the
 * per-thread one. */
enum { STREAM_PER_THREAD = 2 };

static _Atomic(const struct cupti_lib *) asked;

void cupti_ids_open(const struct cupti_lib *lib)
{
	atomic_store_explicit(&asked, lib, memory_order_release);
}

bool cupti_ids_of_stream(const void *stream, struct cupti_stream_ids *out)
{
	const struct cupti_lib *lib = atomic_load_explicit(&asked, memory_order_acquire);
	uint8_t per_thread = (uintptr_t)stream == STREAM_PER_THREAD;
	void *handle = (uintptr_t)stream > STREAM_PER_THREAD ? (void *)(uintptr_t)stream : NULL;

	if (!lib || !lib->stream_id || !lib->context_id)
		return false;
	void *context = cuda_current_context();
	return context && lib->context_id(context, &out->context) == CUPTI_OK &&
	       lib->stream_id(context, handle, per_thread, &out->stream) == CUPTI_OK;
}

uint64_t cupti_ids_word(uint32_t context, uint32_t stream)
{
	return (uint64_t)context << 32 | stream;
}

/* ---- settings of the process ---- */

static struct {
	uint8_t zeroed;
	int thread_ids;
	bool has_zeroed, has_thread_ids;
} before;

bool cupti_lib_set_process(const struct cupti_lib *lib)
{
	uint8_t yes = 1;
	size_t size = sizeof(before.zeroed), one = sizeof(yes);

	if (!before.has_zeroed)
		before.has_zeroed = lib->get_attribute && lib->set_attribute &&
				    lib->get_attribute(CUPTI_ATTRIBUTE_ZEROED, &size,
						       &before.zeroed) == CUPTI_OK;
	if (!before.has_thread_ids)
		before.has_thread_ids = lib->get_thread_id_type && lib->thread_id_type &&
					lib->get_thread_id_type(&before.thread_ids) == CUPTI_OK;
	/* Our buffers are zeroed already.  If the attribute is refused, CUPTI zeroes them again. */
	if (lib->set_attribute)
		lib->set_attribute(CUPTI_ATTRIBUTE_ZEROED, &one, &yes);
	return lib->thread_id_type && lib->thread_id_type(CUPTI_THREAD_ID_SYSTEM) == CUPTI_OK;
}

void cupti_lib_reset_process(const struct cupti_lib *lib)
{
	size_t size = sizeof(before.zeroed);

	if (before.has_zeroed)
		lib->set_attribute(CUPTI_ATTRIBUTE_ZEROED, &size, &before.zeroed);
	if (before.has_thread_ids)
		lib->thread_id_type(before.thread_ids);
	before.has_zeroed = before.has_thread_ids = false;
}

/* ---- messages for results and versions ---- */

static const struct {
	int result;
	const char *text;
} results[] = {
	{ 8, "CUPTI has no memory left" },
	{ 14, "another tool records this process in a way that excludes ours: end it" },
	{ 15,
	  "no usable driver: nvidia-smi should work here; a container needs its GPU (--gpus all)" },
	{ 33, "the virtual GPU does not allow tracing: its host's administrator can" },
	{ 35, "the driver lets only administrators trace: load the nvidia module with "
	      "NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN" },
	{ 36, "an older profiling interface is in use in this process: do without that tool" },
	{ 38, "this CUPTI does not have the older profiling interface any more" },
	{ 39, "another tool traces this process (torch.profiler, Nsight, a debugger): end it, or "
	      "record "
	      "without it" },
	{ 40, "the virtual GPU does not allow tracing: its host's administrator can" },
	{ 41, "the GPU is in confidential computing mode, which forbids tracing" },
	{ 42, "this model of GPU does not allow tracing" },
	{ 43,
	  "this part of a GPU (MIG) does not allow tracing: use the whole GPU, or a newer driver" },
	{ 45, "the driver of this Windows host does not allow tracing under WSL: update it" },
	{ 999,
	  "no usable driver: nvidia-smi should work here; a container needs its GPU (--gpus all)" },
};

const char *cupti_result_message(const struct cupti_lib *lib, int result, char space[160])
{
	unsigned driver = cuda_driver_version();
	const char *name = NULL;
	char version[16];

	cupti_version_text(lib->api_version, version);
	/* An example is driver 535 with a wheel of 12.8: nvidia-smi works, and CUPTI does not. */
	if ((result == CUPTI_NOT_INITIALIZED || result == CUPTI_UNKNOWN) && driver &&
	    driver / 1000 * 100 + driver % 1000 / 10 <
		    (unsigned)(strtod(version, NULL) * 100 + 0.5)) {
		snprintf(space, 160,
			 "the driver is of CUDA %u.%u and CUPTI of CUDA %s: update the driver, or "
			 "use an older nvidia-cuda-cupti",
			 driver / 1000, driver % 1000 / 10, version);
		return space;
	}
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].result == result)
			return results[i].text;
	if (!lib->result_text || lib->result_text(result, &name) != CUPTI_OK || !name)
		name = "an unknown result";
	snprintf(space, 160, "CUPTI refuses: %s (%d)", name, result);
	return space;
}

static const struct {
	uint32_t from, to; /* cuptiGetVersion(), both inclusive */
	unsigned needs;    /* conditions that must all be met */
	const char *text;
} faults[] = {
	{ 0, 17, 0, "CUPTI is older than CUDA 12.0: not tried" },
	{ 18, 23, FAULT_GRAPHS,
	  "CUPTI before CUDA 12.6 can crash or lose kernels of graphs that are "
	  "recorded by node: --graphs graph" },
	{ 24, 130001, FAULT_CLOCK,
	  "CUPTI before CUDA 13.1 may give kernels no times when another tool has "
	  "set its clock" },
	{ 130000, 130000, 0, "CUPTI of CUDA 13.0.0 can hang or crash: use that of 13.0 Update 1" },
	{ 18, 130100, FAULT_GRAPHS | FAULT_SECOND_WINDOW,
	  "CUPTI before CUDA 13.1 Update 1 may correlate graphs "
	  "wrongly from the second window on" },
	{ 130200, 130299, 0, "CUPTI of CUDA 13.2 makes each call slower than that of 13.3" },
};

const char *cupti_fault_message(uint32_t api_version, unsigned when, unsigned number)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (faults[i].from <= api_version && api_version <= faults[i].to &&
		    (faults[i].needs & ~when) == 0 && number-- == 0)
			return faults[i].text;
	return NULL;
}

bool cupti_can_finalize(uint32_t api_version)
{
	static const struct {
		uint32_t from, to;
	} good[] = { { 24, 28 }, { 130001, 139999 } }; /* from 12.6 on, except for the first 13.0 */

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (good[i].from <= api_version && api_version <= good[i].to)
			return true;
	return false;
}

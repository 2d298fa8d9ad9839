/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/internal.h"

#include "schemas/base/buf.h"
#include "schemas/model/call.h"

#include <string.h>

/* ---- calls ---- */

/* A star matches any end; suffixes for per-thread streams ("_ptsz", "_ptds") are ignored. */
static const char *const noise[] = {
	"__cudaGet*",
	"__cudaInitModule",
	"__cudaPopCallConfiguration",
	"__cudaPushCallConfiguration",
	"__cudaRegister*",
	"__cudaUnregister*",
	"cudaCreateChannelDesc",
	"cudaDeviceCanAccessPeer",
	"cudaDeviceGet*",
	"cudaDriverGetVersion",
	"cudaEventElapsedTime*",
	"cudaEventQuery",
	"cudaFuncGet*",
	"cudaGetDevice",
	"cudaGetDeviceCount",
	"cudaGetDeviceFlags",
	"cudaGetDriverEntryPoint*",
	"cudaGetError*",
	"cudaGetExportTable",
	"cudaGetFuncBySymbol",
	"cudaGetKernel",
	"cudaGetLastError",
	"cudaGetSymbol*",
	"cudaHostGet*",
	"cudaMemPoolGet*",
	"cudaMemRangeGet*",
	"cudaOccupancy*",
	"cudaPeekAtLastError",
	"cudaPointerGetAttributes",
	"cudaRuntimeGetVersion",
	"cudaSetDevice",
	"cudaStreamGet*",
	"cudaStreamIsCapturing",
	"cudaStreamQuery",
	"cudaThreadExchangeStreamCaptureMode",
	"cudaThreadGet*",
	"cuCtxGet*",
	"cuCtxPopCurrent*",
	"cuCtxPushCurrent*",
	"cuCtxSetCurrent",
	"cuDeviceCanAccessPeer",
	"cuDeviceComputeCapability",
	"cuDeviceGet*",
	"cuDevicePrimaryCtxGetState",
	"cuDeviceTotalMem*",
	"cuDriverGet*",
	"cuEventElapsedTime*",
	"cuEventQuery",
	"cuFuncGet*",
	"cuFuncIsLoaded",
	"cuGetError*",
	"cuGetExportTable",
	"cuGetProcAddress*",
	"cuKernelGet*",
	"cuLibraryGet*",
	"cuLogs*",
	"cuMemGetAccess",
	"cuMemGetAddressRange*",
	"cuMemGetAllocation*",
	"cuMemHostGet*",
	"cuMemPoolGet*",
	"cuMemRangeGet*",
	"cuModuleEnumerateFunctions",
	"cuModuleGet*",
	"cuOccupancy*",
	"cuPointerGet*",
	"cuStreamGet*",
	"cuStreamIsCapturing*",
	"cuStreamQuery",
	"cuTensorMap*",
	"cuThreadExchangeStreamCaptureMode",
};

struct call {
	const char *name; /* borrowed from the library; NULL: no such call */
	uint16_t len;
	bool is_noise;
};
static struct call calls[CUPTI_DOMAINS][CUPTI_CALLS];

static size_t without_streams(const char *name, size_t len)
{
	if (len > 5 && (!memcmp(name + len - 5, "_ptsz", 5) || !memcmp(name + len - 5, "_ptds", 5)))
		return len - 5;
	return len;
}

static bool matches(const char *pattern, const char *name, size_t len)
{
	size_t stem = strlen(pattern);

	if (pattern[stem - 1] == '*')
		return len >= stem - 1 && memcmp(pattern, name, stem - 1) == 0;
	return len == stem && memcmp(pattern, name, len) == 0;
}

bool cupti_name_is_noise(const char *name, size_t len)
{
	len = without_streams(name, call_name_length(name, len));
	for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
		if (matches(noise[i], name, len))
			return true;
	return false;
}

void cupti_calls_open(const struct cupti_lib *lib)
{
	memset(calls, 0, sizeof(calls));
	for (uint32_t domain = CUPTI_DRIVER; domain < CUPTI_DOMAINS && lib->callback_name;
	     domain++) {
		for (uint32_t cbid = 1; cbid < CUPTI_CALLS; cbid++) {
			struct call *c = &calls[domain][cbid];

			const char *name = NULL;
			if (lib->callback_name((int)domain, cbid, &name) != CUPTI_OK || !name)
				continue;
			c->name = name;
			c->len = (uint16_t)call_name_length(name, strlen(name));
			c->is_noise = cupti_name_is_noise(name, strlen(name));
		}
	}
}

static const struct call *find(enum cupti_domain domain, uint32_t cbid)
{
	static const struct call none;

	return domain < CUPTI_DOMAINS && cbid < CUPTI_CALLS ? &calls[domain][cbid] : &none;
}

const char *cupti_call_name(enum cupti_domain domain, uint32_t cbid, size_t *len)
{
	const struct call *c = find(domain, cbid);

	*len = c->len;
	return c->name;
}

bool cupti_call_is_noise(enum cupti_domain domain, uint32_t cbid)
{
	return find(domain, cbid)->is_noise;
}

/* Asks CUPTI not to record noise. */
static void mute_noise(const struct cupti_lib *lib, enum cupti_domain domain)
{
	int (*mute)(uint32_t, uint8_t) =
		domain == CUPTI_DRIVER ? lib->enable_driver_call : lib->enable_runtime_call;

	for (uint32_t cbid = 1; mute && cbid < CUPTI_CALLS; cbid++)
		if (calls[domain][cbid].is_noise)
			mute(cbid, 0);
}

/* ---- kinds ---- */

#define BIT(kind) (1u << KIND_##kind)
#define WORK      (BIT(KERNEL) | BIT(MEMCPY) | BIT(MEMSET))
#define ANY       UINT32_MAX

enum when { ALWAYS, NODES, GRAPHS, MEMORY }; /* NODES, GRAPHS: by graph level; MEMORY: if named */

/*
 * The kinds in the order of enabling: tables first, and calls before the work that they launch.
 * Copies and sets come with kernels, because graphs with such nodes leak device buffers while those
 * kinds are off.  KERNEL (3) is never enabled, because it serialises kernels.
 */
static const struct {
	uint16_t kind;
	uint8_t when;
	bool dump; /* also report existing objects */
	bool work;
	uint32_t wanted; /* enabled for any of these kinds of events */
} table[] = {
	{ 8, ALWAYS, true, false, ANY },         /* DEVICE */
	{ 9, ALWAYS, true, false, ANY },         /* CONTEXT */
	{ 5, ALWAYS, false, false, BIT(API) },   /* RUNTIME */
	{ 4, ALWAYS, false, false, BIT(API) },   /* DRIVER */
	{ 39, ALWAYS, false, false, BIT(API) },  /* EXTERNAL_CORRELATION */
	{ 38, ALWAYS, false, false, BIT(SYNC) }, /* SYNCHRONIZATION */
	{ 36, ALWAYS, false, false, BIT(SYNC) }, /* CUDA_EVENT: the events that waits are for */
	{ 17, ALWAYS, false, false, BIT(OVERHEAD) },
	{ 52, ALWAYS, false, false, BIT(JIT) },
	{ 49, MEMORY, false, false, ANY },              /* MEMORY2 */
	{ 50, MEMORY, false, false, ANY },              /* MEMORY_POOL */
	{ 51, GRAPHS, false, true, BIT(GRAPH) | WORK }, /* GRAPH_TRACE */
	{ 1, ALWAYS, false, true, WORK },               /* MEMCPY */
	{ 22, ALWAYS, false, true, WORK },              /* MEMCPY2: from GPU to GPU */
	{ 2, ALWAYS, false, true, WORK },               /* MEMSET */
	{ 54, ALWAYS, false, false, BIT(MEMCPY) },      /* MEM_DECOMPRESS */
	{ 10, ALWAYS, false, true, BIT(KERNEL) },       /* CONCURRENT_KERNEL */
};
enum { TABLE = sizeof(table) / sizeof(table[0]), TABLES = 2 };

static bool is_chosen(size_t i, const struct cupti_choice *c)
{
	if (table[i].when == GRAPHS && !c->graph_level)
		return false;
	if (table[i].when == MEMORY && !c->memory)
		return false;
	return (table[i].wanted & c->kinds_mask) != 0;
}

static int enable(const struct cupti_lib *lib, int kind, bool dump)
{
	int result = CUPTI_UNKNOWN;

	if (dump && lib->enable_and_dump)
		result = lib->enable_and_dump(kind);
	return result == CUPTI_OK ? result : lib->enable(kind);
}

/* Excludes noise from the kinds.  Enabling a kind resets this. */
static void restrict_kinds(const struct cupti_lib *lib, const struct cupti_kinds *k)
{
	if (k->on[CUPTI_RUNTIME_CALL])
		mute_noise(lib, CUPTI_RUNTIME);
	if (k->on[CUPTI_DRIVER_CALL])
		mute_noise(lib, CUPTI_DRIVER);
	/* Otherwise each query of an event that has not happened yet would be a record. */
	if (k->on[38] && lib->all_sync_records)
		lib->all_sync_records(0);
}

void cupti_kinds_enable(const struct cupti_lib *lib, const struct cupti_choice *choice,
			struct cupti_kinds *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < TABLE; i++)
		if (is_chosen(i, choice)) {
			int result = enable(lib, table[i].kind, table[i].dump);
			int kind = table[i].kind;

			out->asked[kind] = true;
			out->results[kind] = result;
			out->asked_count++;
			out->work_asked |= table[i].work;
			if (result == CUPTI_OK) {
				out->on[kind] = true;
				out->on_count++;
				out->work_on |= table[i].work;
			} else if (result != CUPTI_INVALID_KIND) {
				out->refusal = result;
			}
		}
	if (out->work_on || (out->on_count > TABLES && !out->work_asked))
		out->refusal = CUPTI_OK;
	if (choice->no_driver)
		cupti_kinds_set(lib, out, CUPTI_DRIVER_CALL, false);
	restrict_kinds(lib, out);
}

void cupti_kinds_set(const struct cupti_lib *lib, struct cupti_kinds *k, int kind, bool on)
{
	if (!k->asked[kind] || k->results[kind] != CUPTI_OK || k->on[kind] == on)
		return;
	k->on[kind] = on;
	if (on)
		lib->enable(kind);
	else
		lib->disable(kind);
}

void cupti_kinds_enable_again(const struct cupti_lib *lib, const struct cupti_kinds *k)
{
	for (size_t i = 0; i < TABLE; i++)
		if (k->on[table[i].kind])
			lib->enable(table[i].kind);
	restrict_kinds(lib, k);
}

/* Disables work first, so that no work is recorded without its call. */
void cupti_kinds_disable(const struct cupti_lib *lib, const struct cupti_kinds *k)
{
	for (size_t i = TABLE; i-- > 0;)
		if (k->on[table[i].kind])
			lib->disable(table[i].kind);
}

void cupti_kinds_put_json(const struct cupti_kinds *k, struct buf *out)
{
	const char *comma = "";
	unsigned i;

	buf_put_text(out, "{\"on\":[");
	for (i = 0; i < CUPTI_KINDS; i++) {
		if (!k->on[i])
			continue;
		buf_putf(out, "%s%u", comma, i);
		comma = ",";
	}
	buf_put_text(out, "],\"off\":{");
	for (i = 0, comma = ""; i < CUPTI_KINDS; i++) {
		if (!k->asked[i] || k->on[i])
			continue;
		buf_putf(out, "%s\"%u\":%d", comma, i, k->results[i]);
		comma = ",";
	}
	buf_put_text(out, "}}");
}

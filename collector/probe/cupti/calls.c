/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/internal.h"

#include "schemas/model/call.h"

#include <string.h>

/* A star stands for any end; a suffix for per-thread streams ("_ptsz", "_ptds") never matters. */
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
	const char *name; /* the library's, for good; NULL: none */
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

unsigned cupti_calls_mute(const struct cupti_lib *lib, enum cupti_domain domain)
{
	int (*mute)(uint32_t, uint8_t) =
		domain == CUPTI_DRIVER ? lib->enable_driver_call : lib->enable_runtime_call;
	unsigned muted = 0;

	for (uint32_t cbid = 1; mute && cbid < CUPTI_CALLS; cbid++)
		if (calls[domain][cbid].is_noise && mute(cbid, 0) == CUPTI_OK)
			muted++;
	return muted;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* libfake_nvtx_named.so - gives names by NVTX for a program that is built without its headers. */
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <sys/syscall.h>
#include <unistd.h>

void fake_nvtx_init(void);
void fake_nvtx_name_stream(void *stream, const char *name, int by_driver);
void fake_nvtx_name_thing(int device, const char *device_name, const char *thread_name);

void fake_nvtx_init(void)
{
	nvtxInitialize(NULL);
}

void fake_nvtx_name_stream(void *stream, const char *name, int by_driver)
{
	if (by_driver)
		nvtxNameCuStreamA((CUstream)stream, name);
	else
		nvtxNameCudaStreamA((cudaStream_t)stream, name);
}

void fake_nvtx_name_thing(int device, const char *device_name, const char *thread_name)
{
	nvtxNameCudaDeviceA(device, device_name);
	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), thread_name);
}

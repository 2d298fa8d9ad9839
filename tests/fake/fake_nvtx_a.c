/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A framework: PyTorch's ranges of the default domain, as torch.autograd.profiler.emit_nvtx writes
 * them; wide strings; categories, colours, payloads; a domain of its own.
 */
#include "tests/fake/fake_nvtx.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <stdio.h>
#include <string.h>
#include <wchar.h>

static nvtxEventAttributes_t attributes(const char *name)
{
	nvtxEventAttributes_t a;

	memset(&a, 0, sizeof(a));
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = name;
	return a;
}

static void torch(fake_nvtx_tell tell, unsigned rounds)
{
	static const char *const names[] = {
		"aten::linear, seq = 41, sizes = [[64, 512], [512, 512], [512]]",
		"aten::addmm, op_id = 1007, sizes = [[512], [64, 512], [512, 512], [], []]",
		"autograd::engine::evaluate_function: AddmmBackward0, seq = 41",
		"AddmmBackward0, seq = 41, op_id = 1010",
		"Optimizer.step#Adam.step",
		"nn.Module: Linear_0",
		"DataLoader, it's \"quoted\" \\ and \xc3\xbcml\xc3\xa4uts",
	};
	unsigned i, n;

	for (i = 0; i < rounds; i++)
		for (n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
			nvtxRangePushA(names[n]);
			nvtxRangePop();
		}
	for (n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		tell(NULL, "push", names[n], rounds, "torch");
}

static void wide(fake_nvtx_tell tell, unsigned rounds)
{
	nvtxRangeId_t id;
	unsigned i;

	for (i = 0; i < rounds; i++) {
		nvtxRangePushW(L"wide \u00fcber \U0001f600");
		nvtxMarkW(L"wide mark");
		nvtxRangePop();
		id = nvtxRangeStartW(L"wide start");
		nvtxRangeEnd(id);
	}
	tell(NULL, "push",
	     "wide \xc3\xbc"
	     "ber \xf0\x9f\x98\x80",
	     rounds, NULL);
	tell(NULL, "mark", "wide mark", rounds, NULL);
	tell(NULL, "start", "wide start", rounds, NULL);
}

static void categories(fake_nvtx_tell tell)
{
	nvtxEventAttributes_t a = attributes("with everything");

	nvtxNameCategoryA(7, "input");
	nvtxNameCategoryW(8, L"compute");
	a.category = 7;
	a.colorType = NVTX_COLOR_ARGB;
	a.color = 0xFF00FF80;
	a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
	a.payload.llValue = -42;
	nvtxRangePushEx(&a);
	nvtxRangePop();
	a.message.ascii = "a double";
	a.category = 8;
	a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	a.payload.dValue = 2.5;
	nvtxMarkEx(&a);
	a.message.ascii = "an unsigned";
	a.category = 9; /* nobody named it */
	a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
	a.payload.uiValue = 4000000000u;
	nvtxMarkEx(&a);
	tell(NULL, "category", "input", 1, "7");
	tell(NULL, "category", "compute", 1, "8");
	tell(NULL, "push", "with everything", 1, "category=7 payload=-42 color=ff00ff80");
	tell(NULL, "mark", "a double", 1, "category=8 payload=2.5");
	tell(NULL, "mark", "an unsigned", 1, "category=9 payload=4000000000");
}

/* Attributes as an older or a newer NVTX has them, and without a message. */
static void strange_attributes(fake_nvtx_tell tell)
{
	struct {
		nvtxEventAttributes_t known;
		char more[32];
	} longer;
	nvtxEventAttributes_t a = attributes("of an older NVTX");

	a.size = 40; /* what is beyond is not there */
	a.message.ascii = NULL;
	nvtxMarkEx(&a);
	memset(&longer, 0x5A, sizeof(longer));
	longer.known = attributes("of a newer NVTX");
	longer.known.size = sizeof(longer);
	nvtxMarkEx(&longer.known);
	a = attributes(NULL);
	nvtxRangePushEx(&a);
	nvtxRangePop();
	a.messageType = 77;
	nvtxMarkEx(&a);
	tell(NULL, "mark", "", 1, "attributes of 40 bytes, without a message");
	tell(NULL, "mark", "of a newer NVTX", 1, "attributes of 80 bytes");
	tell(NULL, "push", "", 1, "message NULL");
	tell(NULL, "mark", "", 1, "a kind of message that nobody knows");
}

static void own_domain(fake_nvtx_tell tell, unsigned rounds)
{
	nvtxDomainHandle_t d = nvtxDomainCreateA("framework");
	nvtxDomainHandle_t w = nvtxDomainCreateW(L"wide domain");
	nvtxStringHandle_t s = nvtxDomainRegisterStringA(d, "registered");
	nvtxStringHandle_t ws = nvtxDomainRegisterStringW(w, L"registered wide");
	nvtxEventAttributes_t a = attributes("plain");
	nvtxRangeId_t id;
	unsigned i;

	nvtxDomainNameCategoryA(d, 7, "another seven");
	for (i = 0; i < rounds; i++) {
		a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
		a.message.registered = s;
		a.category = 7;
		nvtxDomainRangePushEx(d, &a);
		nvtxRangePushA("of the default domain between");
		nvtxDomainRangePop(d); /* stacks of domains do not know each other */
		nvtxRangePop();
		a.message.registered = ws;
		id = nvtxDomainRangeStartEx(w, &a);
		nvtxDomainRangeEnd(w, id);
		a = attributes("plain");
		nvtxDomainMarkEx(d, &a);
	}
	nvtxDomainDestroy(w);
	tell("framework", "domain", "framework", 1, NULL);
	tell("wide domain", "domain", "wide domain", 1, NULL);
	tell("framework", "string", "registered", 1, NULL);
	tell("wide domain", "string", "registered wide", 1, NULL);
	tell("framework", "category", "another seven", 1, "7");
	tell("framework", "push", "registered", rounds, "category=7");
	tell(NULL, "push", "of the default domain between", rounds, NULL);
	tell("wide domain", "start", "registered wide", rounds, NULL);
	tell("framework", "mark", "plain", rounds, NULL);
}

static void resources(fake_nvtx_tell tell)
{
	nvtxDomainHandle_t d = nvtxDomainCreateA("framework");
	nvtxResourceAttributes_t r;
	nvtxResourceHandle_t handle;

	memset(&r, 0, sizeof(r));
	r.version = NVTX_VERSION;
	r.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
	r.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
	r.identifier.ullValue = 0x7000;
	r.messageType = NVTX_MESSAGE_TYPE_ASCII;
	r.message.ascii = "a queue";
	handle = nvtxDomainResourceCreate(d, &r);
	nvtxDomainResourceDestroy(handle);
	nvtxNameCudaDeviceA(0, "the device");
	nvtxNameCudaStreamA((cudaStream_t)0x10, "compute stream");
	nvtxNameCudaStreamW((cudaStream_t)0x20, L"copy stream");
	nvtxNameOsThreadW(1, L"thread one");
	tell("framework", "resource", "a queue", 1, "pointer=0x7000");
	tell(NULL, "resource", "the device", 1, "cuda device 0");
	tell(NULL, "resource", "compute stream", 1, "cuda stream 0x10");
	tell(NULL, "resource", "copy stream", 1, "cuda stream 0x20");
	tell(NULL, "thread", "thread one", 1, "1");
}

void fake_nvtx_part_a(fake_nvtx_tell tell, unsigned rounds)
{
	torch(tell, rounds);
	wide(tell, rounds);
	categories(tell);
	strange_attributes(tell);
	own_domain(tell, rounds);
	resources(tell);
}

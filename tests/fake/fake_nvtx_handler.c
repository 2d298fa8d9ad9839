/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvtx_handler.c - the simplest handler of NVTX: writes what it is told, a line for each, to
 * FAKE_NVTX_LOG.  It proves that fake_nvtx says what it claims to say.
 *
 *	kind <tab> domain or - <tab> name <tab> bytes of payload
 */
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

struct domain {
	char name[64];
};
struct text {
	char utf8[256];
};

static struct domain domains[64];
static struct text texts[256];
static _Atomic unsigned domain_count, text_count;
static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int level;
static _Atomic uint64_t last_id, last_schema = NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START;

static void say(const char *kind, nvtxDomainHandle_t domain, const char *name, size_t payload)
{
	const struct domain *d = (const struct domain *)domain;

	pthread_mutex_lock(&lock);
	if (out) {
		fprintf(out, "%s\t%s\t%s\t%zu\n", kind, d ? d->name : "-", name, payload);
		fflush(out);
	}
	pthread_mutex_unlock(&lock);
}

static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80)
		return to[0] = (char)c, 1;
	if (c < 0x800) {
		to[0] = (char)(0xC0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xE0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xF0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

static const char *narrow(const wchar_t *text, char room[256])
{
	size_t n = 0;

	for (; text && *text && n < 250; text++)
		n += put_utf8(room + n, (uint32_t)*text);
	room[n] = '\0';
	return room;
}

static const char *message(const nvtxEventAttributes_t *a, char room[256])
{
	switch (a->messageType) {
	case NVTX_MESSAGE_TYPE_ASCII:
		return a->message.ascii ? a->message.ascii : "";
	case NVTX_MESSAGE_TYPE_UNICODE:
		return narrow(a->message.unicode, room);
	case NVTX_MESSAGE_TYPE_REGISTERED:
		return ((const struct text *)a->message.registered)->utf8;
	default:
		return "";
	}
}

static void say_event(const char *kind, nvtxDomainHandle_t d, const nvtxEventAttributes_t *a)
{
	const nvtxPayloadData_t *p = (const nvtxPayloadData_t *)(uintptr_t)a->payload.ullValue;
	char room[256];
	size_t bytes = 0, i;

	if (a->payloadType == NVTX_PAYLOAD_TYPE_EXT)
		for (i = 0; p && i < (size_t)a->reserved0; i++)
			bytes += p[i].size < 100000 ? p[i].size : 0;
	else if (a->payloadType)
		bytes = 8;
	say(kind, d, message(a, room), bytes);
}

/* ---- events ---- */

#define W(text) narrow((text), (char[256]){ 0 })

static void mark_ex(const nvtxEventAttributes_t *a)
{
	say_event("mark", NULL, a);
}
static void mark_a(const char *name)
{
	say("mark", NULL, name, 0);
}
static void mark_w(const wchar_t *name)
{
	say("mark", NULL, W(name), 0);
}
static nvtxRangeId_t start_ex(const nvtxEventAttributes_t *a)
{
	say_event("start", NULL, a);
	return ++last_id;
}
static nvtxRangeId_t start_a(const char *name)
{
	say("start", NULL, name, 0);
	return ++last_id;
}
static nvtxRangeId_t start_w(const wchar_t *name)
{
	say("start", NULL, W(name), 0);
	return ++last_id;
}
static void range_end(nvtxRangeId_t id)
{
	say("end", NULL, "", 0);
}
static int push_ex(const nvtxEventAttributes_t *a)
{
	say_event("push", NULL, a);
	return level++;
}
static int push_a(const char *name)
{
	say("push", NULL, name, 0);
	return level++;
}
static int push_w(const wchar_t *name)
{
	say("push", NULL, W(name), 0);
	return level++;
}
static int pop(void)
{
	say("pop", NULL, "", 0);
	return level ? --level : -1;
}
static void d_mark(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a)
{
	say_event("mark", d, a);
}
static nvtxRangeId_t d_start(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a)
{
	say_event("start", d, a);
	return ++last_id;
}
static void d_end(nvtxDomainHandle_t d, nvtxRangeId_t id)
{
	say("end", d, "", 0);
}
static int d_push(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a)
{
	say_event("push", d, a);
	return 0;
}
static int d_pop(nvtxDomainHandle_t d)
{
	say("pop", d, "", 0);
	return 0;
}

/* ---- names ---- */

static void category_a(uint32_t c, const char *name)
{
	say("category", NULL, name, c);
}
static void category_w(uint32_t c, const wchar_t *name)
{
	say("category", NULL, W(name), c);
}
static void d_category_a(nvtxDomainHandle_t d, uint32_t c, const char *name)
{
	say("category", d, name, c);
}
static void thread_a(uint32_t t, const char *name)
{
	say("thread", NULL, name, 0);
}
static void thread_w(uint32_t t, const wchar_t *name)
{
	say("thread", NULL, W(name), 0);
}
static nvtxResourceHandle_t resource(nvtxDomainHandle_t d, nvtxResourceAttributes_t *a)
{
	say("resource", d, a->message.ascii, 0);
	return (nvtxResourceHandle_t)a;
}
static void device_a(int device, const char *name)
{
	say("resource", NULL, name, 0);
}
static void stream_a(void *stream, const char *name)
{
	say("resource", NULL, name, 0);
}
static void stream_w(void *stream, const wchar_t *name)
{
	say("resource", NULL, W(name), 0);
}

static nvtxStringHandle_t string_a(nvtxDomainHandle_t d, const char *text)
{
	struct text *t = &texts[text_count++ % 256];

	snprintf(t->utf8, sizeof(t->utf8), "%s", text);
	say("string", d, text, 0);
	return (nvtxStringHandle_t)t;
}
static nvtxStringHandle_t string_w(nvtxDomainHandle_t d, const wchar_t *text)
{
	return string_a(d, W(text));
}
static nvtxDomainHandle_t domain_a(const char *name)
{
	struct domain *d = &domains[domain_count++ % 64];

	snprintf(d->name, sizeof(d->name), "%s", name);
	say("domain", (nvtxDomainHandle_t)d, name, 0);
	return (nvtxDomainHandle_t)d;
}
static nvtxDomainHandle_t domain_w(const wchar_t *name)
{
	return domain_a(W(name));
}

/* ---- extended payloads ---- */

static uint64_t schema(nvtxDomainHandle_t d, const nvtxPayloadSchemaAttr_t *a)
{
	say("schema", d, a->name, a->payloadStaticSize);
	if (a->fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID)
		return a->schemaId;
	return last_schema++;
}
static uint64_t enumeration(nvtxDomainHandle_t d, const nvtxPayloadEnumAttr_t *a)
{
	say("enum", d, a->name, a->numEntries);
	return a->schemaId;
}
static void p_mark(nvtxDomainHandle_t d, const nvtxPayloadData_t *p, size_t n)
{
	say("mark", d, "", p->size);
}
static int p_push(nvtxDomainHandle_t d, const nvtxPayloadData_t *p, size_t n)
{
	say("push", d, "", p->size);
	return 0;
}
static int p_pop(nvtxDomainHandle_t d, const nvtxPayloadData_t *p, size_t n)
{
	say("pop", d, "", p->size);
	return 0;
}
static nvtxRangeId_t p_start(nvtxDomainHandle_t d, const nvtxPayloadData_t *p, size_t n)
{
	say("start", d, "", p->size);
	return ++last_id;
}
static void p_end(nvtxDomainHandle_t d, nvtxRangeId_t id, const nvtxPayloadData_t *p, size_t n)
{
	say("end", d, "", p->size);
}

/* ---- what NVTX looks for ---- */

struct slot {
	unsigned module, number;
	void (*function)(void);
};
#define S(module, number, function)                                                                \
	{                                                                                          \
		(module), (number), (void (*)(void))(function)                                     \
	}
static const struct slot slots[] = {
	S(1, 1, mark_ex),      S(1, 2, mark_a),    S(1, 3, mark_w),    S(1, 4, start_ex),
	S(1, 5, start_a),      S(1, 6, start_w),   S(1, 7, range_end), S(1, 8, push_ex),
	S(1, 9, push_a),       S(1, 10, push_w),   S(1, 11, pop),      S(1, 12, category_a),
	S(1, 13, category_w),  S(1, 14, thread_a), S(1, 15, thread_w), S(4, 1, device_a),
	S(4, 3, stream_a),     S(4, 4, stream_w),  S(5, 1, d_mark),    S(5, 2, d_start),
	S(5, 3, d_end),        S(5, 4, d_push),    S(5, 5, d_pop),     S(5, 6, resource),
	S(5, 8, d_category_a), S(5, 10, string_a), S(5, 11, string_w), S(5, 12, domain_a),
	S(5, 13, domain_w),
};

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
	const NvtxExportTableCallbacks *table = get_table(NVTX_ETID_CALLBACKS);
	const char *path = getenv("FAKE_NVTX_LOG");
	NvtxFunctionTable functions;
	unsigned count;
	size_t i;

	pthread_mutex_lock(&lock);
	if (!out && path)
		out = fopen(path, "a");
	pthread_mutex_unlock(&lock);
	for (i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (table->GetModuleFunctionTable((NvtxCallbackModule)slots[i].module, &functions,
						  &count) &&
		    slots[i].number < count)
			*functions[slots[i].number] = (NvtxFunctionPointer)slots[i].function;
	say("initialize", NULL, "", 0);
	return 1;
}

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);
int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
	intptr_t *to = module->segments->functionSlots;

	if (module->moduleId != 2 || module->segments->slotCount < 7)
		return 1;
	to[0] = (intptr_t)schema;
	to[1] = (intptr_t)enumeration;
	to[2] = (intptr_t)p_mark;
	to[3] = (intptr_t)p_push;
	to[4] = (intptr_t)p_pop;
	to[5] = (intptr_t)p_start;
	to[6] = (intptr_t)p_end;
	say("extension", NULL, "", module->segments->slotCount);
	return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/internal.h"

#include "schemas/base/buf.h"
#include "schemas/model/event.h"

#include <string.h>

#define BIT(kind) (1u << KIND_##kind)
#define WORK      (BIT(KERNEL) | BIT(MEMCPY) | BIT(MEMSET))
#define ANY       UINT32_MAX

enum when { ALWAYS, NODES, GRAPHS, MEMORY }; /* by level of graphs; by name */

/*
 * In the order of enabling: tables, the calls before the work that they launch.  Copies and sets
 * come with kernels: graphs that have such nodes leak device buffers while those kinds are off.
 * Never KERNEL (3): it lets kernels run one after the other only.
 */
static const struct {
	uint16_t kind;
	uint8_t when;
	bool dump; /* also report what exists already */
	bool work;
	uint32_t wanted; /* for any of these */
} table[] = {
	{ 8, ALWAYS, true, false, ANY },         /* DEVICE */
	{ 9, ALWAYS, true, false, ANY },         /* CONTEXT */
	{ 37, ALWAYS, true, false, ANY },        /* STREAM */
	{ 5, ALWAYS, false, false, BIT(API) },   /* RUNTIME */
	{ 4, ALWAYS, false, false, BIT(API) },   /* DRIVER */
	{ 39, ALWAYS, false, false, BIT(API) },  /* EXTERNAL_CORRELATION */
	{ 38, ALWAYS, false, false, BIT(SYNC) }, /* SYNCHRONIZATION */
	{ 36, ALWAYS, false, false, BIT(SYNC) }, /* CUDA_EVENT: what waits are for */
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
enum { TABLE = sizeof(table) / sizeof(table[0]), TABLES = 3 };

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

/* Leaves out of the kinds what is noise; Enable takes that back. */
static void restrict_kinds(const struct cupti_lib *lib, const struct cupti_kinds *k)
{
	if (k->on[5])
		cupti_calls_mute(lib, CUPTI_RUNTIME);
	if (k->on[4])
		cupti_calls_mute(lib, CUPTI_DRIVER);
	/* else each query of an event that has not come is a record */
	if (k->on[38] && lib->all_sync_records)
		lib->all_sync_records(0);
}

bool cupti_kinds_any(const struct cupti_choice *choice)
{
	for (size_t i = TABLES; i < TABLE; i++)
		if (is_chosen(i, choice))
			return true;
	return false;
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
	restrict_kinds(lib, out);
}

void cupti_kinds_enable_again(const struct cupti_lib *lib, const struct cupti_kinds *k)
{
	for (size_t i = 0; i < TABLE; i++)
		if (k->on[table[i].kind])
			lib->enable(table[i].kind);
	restrict_kinds(lib, k);
}

/* Work first, so that what is launched meanwhile has its call, or neither. */
void cupti_kinds_disable(const struct cupti_lib *lib, const struct cupti_kinds *k)
{
	for (size_t i = TABLE; i-- > 0;)
		if (k->on[table[i].kind])
			lib->disable(table[i].kind);
}

unsigned cupti_kinds_gone(const struct cupti_lib *lib, const struct cupti_kinds *k)
{
	/*
	 * CUPTI does not say whether the size is in bytes or in entries: the array is large enough
	 * for both
	 */
	int kinds[CUPTI_KINDS * sizeof(int)];
	uint32_t size = CUPTI_KINDS * sizeof(int), count = 0, i;
	bool there[CUPTI_KINDS] = { false };
	unsigned gone = 0;

	if (!lib->enabled_kinds || lib->enabled_kinds(NULL, kinds, &size, &count) != CUPTI_OK)
		return 0;
	for (i = 0; i < count && i < CUPTI_KINDS; i++)
		if ((unsigned)kinds[i] < CUPTI_KINDS)
			there[kinds[i]] = true;
	for (i = 0; i < CUPTI_KINDS; i++)
		gone += k->on[i] && !there[i];
	return gone;
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

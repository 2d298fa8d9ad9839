/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the descriptor of a call, in all versions of NCCL's profiler interface. */
#include "collector/probe/nccl/plugin.h"

#include "collector/arena/texts.h"

#include <stdbool.h>

/*
 * Offsets of members that differ by version; 0: the version has no such member.  The type has 8
 * bytes from version 5 on and one byte before; the address of the parent is at 8, the rank at 16.
 * In version 1 function, type, algorithm and protocol are numbers of one byte, in later ones texts.
 */
struct nccl_layout {
	uint8_t communicator; /* before version 4: its hash; later init() gets it */
	struct {
		uint8_t sequence, function, count, root, type, channels, warps, algorithm, protocol;
	} collective;
	struct {
		uint8_t function, count, type, peer, channels;
	} point;
};
static const struct nccl_layout layouts[] = {
	[1] = { 32, { 40, 48, 72, 80, 84, 104, 105, 106, 107 }, { 40, 64, 56, 72, 0 } },
	[2] = { 32, { 40, 48, 72, 80, 88, 104, 105, 112, 120 }, { 40, 64, 56, 72, 0 } },
	[3] = { 32, { 40, 48, 72, 80, 88, 96, 97, 104, 112 }, { 40, 64, 56, 72, 0 } },
	[4] = { 0, { 24, 32, 56, 64, 72, 80, 81, 88, 96 }, { 24, 48, 40, 56, 60 } },
};
enum { LAST_LAYOUT = 4 }; /* later versions only have further members at the end */

static const char *const functions[] = { "Broadcast", "Reduce",   "AllGather", "ReduceScatter",
					 "AllReduce", "SendRecv", "Send",      "Recv" },
			 *const algorithms[] = { "TREE",
						 "RING",
						 "COLLNET_DIRECT",
						 "COLLNET_CHAIN",
						 "NVLS",
						 "NVLS_TREE",
						 "PAT" },
			 *const protocols[] = { "LL", "LL128", "SIMPLE" };
/* NCCL's types by their numbers: NCCL's name, PyTorch's name, bytes. */
static const struct {
	const char *name, *type;
	unsigned bytes;
} types[] = {
	{ "ncclInt8", "Char", 1 },
	{ "ncclUint8", "Byte", 1 },
	{ "ncclInt32", "Int", 4 },
	{ "ncclUint32", "UInt32", 4 },
	{ "ncclInt64", "Long", 8 },
	{ "ncclUint64", "UInt64", 8 },
	{ "ncclFloat16", "Half", 2 },
	{ "ncclFloat32", "Float", 4 },
	{ "ncclFloat64", "Double", 8 },
	{ "ncclBfloat16", "BFloat16", 2 },
	{ "ncclFloat8e4m3", "Float8e4m3", 1 },
	{ "ncclFloat8e5m2", "Float8e5m2", 1 },
};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static uint32_t text_id(const char *text)
{
	uint32_t id = text ? name_lookup(text, strnlen(text, NAMES_TEXT_MAX)) : 0;

	return id || !text ? id : name_find(text);
}

/* Returns the id of a text, or of the text for a number in version 1. */
static uint32_t read_text(int version, const uint8_t *d, unsigned at, const char *const *names,
			  size_t count)
{
	if (version > 1)
		return text_id((const char *)(uintptr_t)nccl_u64(d, at));
	return d[at] < count ? text_id(names[d[at]]) : 0;
}

static void read_size(int version, const uint8_t *d, unsigned type_at, unsigned count_at,
		      struct nccl_fields *f)
{
	const char *name = version > 1 ? (const char *)(uintptr_t)nccl_u64(d, type_at) : NULL;
	size_t i = version > 1 ? 0 : d[type_at];

	while (name && i < COUNT(types) && strcmp(types[i].name, name) != 0)
		i++;
	if (i < COUNT(types) && (name || version == 1)) {
		f->type = text_id(types[i].type);
		f->bytes = nccl_u64(d, count_at) * types[i].bytes;
	} else {
		f->type = text_id(name);
	}
}

struct nccl_fields nccl_read_call(int version, const uint8_t *d, uint64_t type)
{
	const struct nccl_layout *l = &layouts[version < LAST_LAYOUT ? version : LAST_LAYOUT];
	struct nccl_fields f = { 0 };

	f.rank = nccl_rank(d, NCCL_AT_RANK);
	if (l->communicator)
		f.communicator = nccl_u64(d, l->communicator);
	if (type == NCCL_POINT) {
		uint64_t peer = nccl_rank(d, l->point.peer);
		size_t len;

		f.function = read_text(version, d, l->point.function, functions, COUNT(functions));
		read_size(version, d, l->point.type, l->point.count, &f);
		bool sends = !strcmp(name_text((uint32_t)f.function, &len), "Send");
		f.from = sends ? f.rank : peer;
		f.to = sends ? peer : f.rank;
		f.channels = l->point.channels ? d[l->point.channels] : 0;
		return f;
	}
	f.sequence = nccl_u64(d, l->collective.sequence);
	f.function = read_text(version, d, l->collective.function, functions, COUNT(functions));
	f.root = nccl_rank(d, l->collective.root);
	read_size(version, d, l->collective.type, l->collective.count, &f);
	if (type == NCCL_COPY_ENGINE) { /* it has no further fields */
		f.algorithm = text_id("copy engine");
		return f;
	}
	f.channels = d[l->collective.channels];
	f.warps = d[l->collective.warps];
	f.algorithm = read_text(version, d, l->collective.algorithm, algorithms, COUNT(algorithms));
	f.protocol = read_text(version, d, l->collective.protocol, protocols, COUNT(protocols));
	return f;
}

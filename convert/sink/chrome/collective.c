/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorBoard's PyTorch plugin knows communication by PyTorch's operators alone: nccl:all_reduce
 * and four others, joined to kernels by their External id.  What we recorded has the kernels, so
 * beside each an operator is written where its launch was, with the size that the launch's ranges
 * say.
 */
#include "convert/sink/chrome/internal.h"

#include "convert/stage/context/context.h"

#include <string.h>
#include <strings.h>

const char *chrome_collective(const struct trace *t, const struct event *e)
{
	static const char *const words[][2] = {
		{ "AllReduce", "nccl:all_reduce" },
		{ "AllGather", "nccl:all_gather" },
		{ "ReduceScatter", "nccl:reduce_scatter" },
		{ "Broadcast", "nccl:broadcast" },
		{ "Reduce", "nccl:reduce" },
	};
	const char *name = trace_text(t, e->name, NULL);

	if (e->kind != KIND_KERNEL || !e->correlation || strncasecmp(name, "nccl", 4) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(name, words[i][0]))
			return words[i][1];
	return NULL;
}

void chrome_put_operator(struct buf *b, const struct chrome_file *f, const struct event *e,
			 const struct launch *from, struct collectives *collectives)
{
	const char *word = chrome_collective(f->trace, e);
	struct collective found;
	const struct track *k;

	if (!word || !from ||
	    strncmp(trace_text(f->trace, trace_owner(f->trace, from->path), NULL), "nccl:", 5) ==
		    0) /* it is there */
		return;
	collectives_find(collectives, e, from, &found);
	k = trace_get_track(f->trace, from->track);
	buf_putf(b,
		 ",\n{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": %lld, "
		 "\"tid\": %lld",
		 word, (long long)chrome_pid(f->trace, k), (long long)k->id);
	buf_put_text(b, ", \"ts\": ");
	chrome_put_time(b, f, from->begin_ns);
	buf_put_text(b, ", \"dur\": ");
	chrome_put_us(b, from->end_ns - from->begin_ns);
	buf_putf(b, ", \"args\": {\"External id\": %llu, ", (unsigned long long)e->correlation);
	/* The plugin multiplies; of bytes it knows the size, of most other types it does not. */
	if (found.bytes != UINT64_MAX)
		buf_putf(b, "\"Input Dims\": [[%llu]], \"Input type\": [\"unsigned char\"]}}",
			 (unsigned long long)found.bytes);
	else
		buf_put_text(b, "\"Input Dims\": [], \"Input type\": []}}");
}

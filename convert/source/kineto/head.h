/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head.h - what stands around the events of a Kineto file: versions, rank, GPUs, the base
 * of its times.  Any of it may stand after the events, so the rows are made at the end.
 */
#ifndef CONVERT_SOURCE_KINETO_HEAD_H
#define CONVERT_SOURCE_KINETO_HEAD_H

#include "convert/source/kineto/args.h"

struct kineto_head {
	struct kineto_args *args;
	struct buf attrs;   /* struct attr: all keys but the GPUs, in the order of the file */
	struct buf devices; /* struct device, process 0 */
	uint64_t base_ns, damaged;
	uint32_t host, rank, world_size;
	bool is_synthetic;
};

enum status kineto_head_init(struct kineto_head *h, struct kineto_args *args, struct error *err);
void kineto_head_release(struct kineto_head *h);

/* Takes one key of the top level with its raw value. */
enum status kineto_head_put(struct kineto_head *h, const struct json *key, const struct json *value,
			    struct error *err);
/* Completes `process` by all that was read, and adds its GPUs. */
enum status kineto_head_finish(struct kineto_head *h, uint32_t process, uint32_t pid,
			       uint32_t command, const char *path, struct error *err);

#endif

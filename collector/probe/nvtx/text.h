/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - parses texts of ranges that frameworks write.
 *
 * The functions are pure and read text[0..len), which needs no NUL; results point into it.  They
 * return false for any other text, all of which is then the name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/*
 * PyTorch's emit_nvtx: "aten::mm, seq = 12, op_id = 3, sizes = [[2, 3], []], input_op_ids =
 * [(1,0)]", of which each part may be missing.  The name is the text before the first part.
 */
struct nvtx_torch {
	size_t name_len;
	bool has_seq, has_op, is_operator; /* is_operator: an operator of the framework */
	uint64_t seq, op_id;
	const char *sizes, *inputs; /* brackets included; NULL: none */
	size_t sizes_len, inputs_len;
};
bool nvtx_text_torch(const char *text, size_t len, struct nvtx_torch *out);
/* Appends a list of numbers as JSON, without blanks, with "[" for "(". */
void nvtx_text_json(struct buf *out, const char *list, size_t len);

/*
 * XLA writes "Thunk:#name=jit(f)/dot,hlo_op=fusion.3#", with key=value between the marks.  A comma
 * belongs to the value unless a key follows it.
 */
struct nvtx_pair {
	const char *key, *value;
	size_t key_len, value_len;
};
enum { NVTX_PAIRS = 16 };
struct nvtx_xla {
	size_t head_len; /* length of "Thunk" */
	struct nvtx_pair pairs[NVTX_PAIRS];
	unsigned count;
};
bool nvtx_text_xla(const char *text, size_t len, struct nvtx_xla *out);

/* Converts NCCL's "ncclAllReduce" to PyTorch's name "allreduce"; returns NULL if it is no
 * collective. */
const char *nvtx_text_collective(const char *text, size_t len);

/*
 * Converts a wide text to UTF-8, at most `cap` bytes, without splitting a character; invalid code
 * points become U+FFFD.  Returns the number of bytes.
 */
size_t nvtx_text_narrow(char *out, size_t cap, const void *wide);
/* Returns the length of text[0..len) truncated to `cap` bytes without splitting a character. */
size_t nvtx_text_fit(const char *text, size_t len, size_t cap);

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/text.h"

#include "schemas/base/buf.h"
#include "schemas/base/utf8.h"

#include <string.h>
#include <wchar.h>

/* ---- PyTorch ---- */

struct cursor {
	const char *at, *end;
};

static bool take(struct cursor *c, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0)
		return false;
	c->at += len;
	return true;
}

static bool take_number(struct cursor *c, uint64_t *out)
{
	const char *first = c->at;
	uint64_t v = 0;

	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
		if (v > (UINT64_MAX - 9) / 10)
			return false;
		v = v * 10 + (uint64_t)(*c->at - '0');
	}
	*out = v;
	return c->at > first;
}

static bool take_signed(struct cursor *c)
{
	uint64_t v;

	take(c, "-");
	if (c->at + 1 < c->end && c->at[0] == '0' && c->at[1] >= '0' && c->at[1] <= '9')
		return false; /* JSON does not allow leading zeros */
	return take_number(c, &v);
}

enum { LIST_DEPTH = 4 };

/* Parses a list of numbers and lists, such as "[1, [2, 3], (4,5)]". */
static bool take_list(struct cursor *c)
{
	char close[LIST_DEPTH];
	int depth = 0;
	bool value = true; /* a value must follow, unless the list is empty */

	for (;;) {
		if (value && (take(c, "[") || take(c, "("))) {
			if (depth == LIST_DEPTH)
				return false;
			close[depth++] = c->at[-1] == '[' ? ']' : ')';
			if (c->at < c->end && *c->at != close[depth - 1])
				continue;
		} else if (value && (!depth || !take_signed(c))) {
			return false;
		}
		value = false;
		if (depth && c->at < c->end && *c->at == close[depth - 1]) {
			c->at++;
			if (--depth == 0)
				return true;
		} else {
			value = take(c, ",");
			if (!value)
				return false;
			take(c, " ");
		}
	}
}

static bool take_text_list(struct cursor *c, const char **list, size_t *len)
{
	*list = c->at;
	if (!take_list(c))
		return false;
	*len = (size_t)(c->at - *list);
	return true;
}

/* Parses the parts up to the end; returns false if there is anything else. */
static bool take_parts(struct cursor *c, struct nvtx_torch *out)
{
	bool good = c->at < c->end;

	while (good && c->at < c->end) {
		if (take(c, ", seq = "))
			good = !out->has_seq && (out->has_seq = take_number(c, &out->seq));
		else if (take(c, ", op_id = "))
			good = !out->has_op && (out->has_op = take_number(c, &out->op_id));
		else if (take(c, ", sizes = "))
			good = !out->sizes && take_text_list(c, &out->sizes, &out->sizes_len);
		else if (take(c, ", input_op_ids = "))
			good = !out->inputs && take_text_list(c, &out->inputs, &out->inputs_len);
		else
			good = false;
	}
	return good;
}

bool nvtx_text_torch(const char *text, size_t len, struct nvtx_torch *out)
{
	struct cursor c = { text, text + len };
	const char *comma = text;

	while ((comma = memchr(comma, ',', (size_t)(c.end - comma))) != NULL) {
		*out = (struct nvtx_torch){ .name_len = (size_t)(comma - text) };
		c.at = comma++;
		if (!take_parts(&c, out))
			continue;
		out->is_operator = out->has_seq || memmem(text, out->name_len, "::", 2) != NULL;
		return true;
	}
	return false;
}

void nvtx_text_json(struct buf *out, const char *list, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (list[i] == ' ')
			continue;
		buf_put_byte(out, (uint8_t)(list[i] == '(' ? '[' : list[i] == ')' ? ']' : list[i]));
	}
}

/* ---- XLA ---- */

/* Returns the length of "key" if the text begins with "key=", otherwise 0. */
static size_t key_at(const char *text, const char *end)
{
	const char *p = text;

	while (p < end && ((*p >= 'a' && *p <= 'z') || *p == '_'))
		p++;
	return p < end && *p == '=' ? (size_t)(p - text) : 0;
}

static const char *value_end(const char *text, const char *end)
{
	const char *p;

	for (p = text; p < end; p++)
		if (*p == ',' && key_at(p + 1, end))
			break;
	return p;
}

bool nvtx_text_xla(const char *text, size_t len, struct nvtx_xla *out)
{
	const char *marks = memmem(text, len, ":#", 2), *end = text + len, *p;

	if (!marks || marks == text || marks + 3 > end || *--end != '#')
		return false;
	out->head_len = (size_t)(marks - text);
	out->count = 0;
	for (p = marks + 2; p < end; p++) { /* skips the comma */
		size_t key_len = key_at(p, end);
		if (!key_len || out->count == NVTX_PAIRS)
			return false;
		struct nvtx_pair *pair = &out->pairs[out->count++];
		*pair = (struct nvtx_pair){ .key = p,
					    .key_len = key_len,
					    .value = p + key_len + 1 };
		p = value_end(pair->value, end);
		pair->value_len = (size_t)(p - pair->value);
	}
	return out->count > 0;
}

/* ---- NCCL ---- */

const char *nvtx_text_collective(const char *text, size_t len)
{
	static const struct {
		const char *call, *word;
	} rows[] = {
		{ "ncclAllReduce", "allreduce" },
		{ "ncclAllGather", "allgather" },
		{ "ncclReduceScatter", "reduce_scatter" },
		{ "ncclBroadcast", "broadcast" },
		{ "ncclBcast", "broadcast" },
		{ "ncclReduce", "reduce" },
		{ "ncclAlltoAll", "all_to_all" },
		{ "ncclAllToAll", "all_to_all" },
		{ "ncclAllToAllv", "all_to_allv" },
		{ "ncclGather", "gather" },
		{ "ncclScatter", "scatter" },
		{ "ncclSend", "send" },
		{ "ncclRecv", "recv" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strlen(rows[i].call) == len && !memcmp(rows[i].call, text, len))
			return rows[i].word;
	return NULL;
}

/* ---- characters ---- */

size_t nvtx_text_narrow(char *out, size_t cap, const void *wide)
{
	const wchar_t *w = wide;
	char bytes[4];
	size_t len = 0, n;

	for (; w && *w; w++, len += n) {
		n = utf8_put(bytes, (uint32_t)*w);
		if (n > cap - len)
			break;
		memcpy(out + len, bytes, n);
	}
	return len;
}

size_t nvtx_text_fit(const char *text, size_t len, size_t cap)
{
	if (len <= cap)
		return len;
	for (len = cap; len && ((uint8_t)text[len] & 0xc0) == 0x80; len--)
		;
	return len;
}

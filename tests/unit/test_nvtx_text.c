/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/text.h"
#include "schemas/base/buf.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

/* "name|seq|op_id|sizes|inputs", an operator with "*"; "-" where there is none. */
static const char *torch(const char *text)
{
	static char out[1024];
	struct nvtx_torch t;
	struct buf json, inputs;

	if (!nvtx_text_torch(text, strlen(text), &t))
		return "no";
	buf_init(&json, 4096);
	buf_init(&inputs, 4096);
	nvtx_text_json(&json, t.sizes ? t.sizes : "-", t.sizes ? t.sizes_len : 1);
	nvtx_text_json(&inputs, t.inputs ? t.inputs : "-", t.inputs ? t.inputs_len : 1);
	snprintf(out, sizeof(out), "%.*s%s|%d|%d|%s|%s", (int)t.name_len, text,
		 t.is_operator ? "*" : "", t.has_seq ? (int)t.seq : -1,
		 t.has_op ? (int)t.op_id : -1, buf_text(&json), buf_text(&inputs));
	buf_release(&json);
	buf_release(&inputs);
	return out;
}

void test_nvtx_text_torch(void)
{
	static const char *const rows[][2] = {
		{ "aten::mm, seq = 12, op_id = 3, sizes = [[2, 3], [3, 4]]",
		  "aten::mm*|12|3|[[2,3],[3,4]]|-" },
		{ "aten::mm, seq = 12", "aten::mm*|12|-1|-|-" },
		{ "aten::empty, op_id = 7", "aten::empty*|-1|7|-|-" },
		{ "aten::cat, sizes = [[], [1]]", "aten::cat*|-1|-1|[[],[1]]|-" },
		{ "aten::cat, sizes = []", "aten::cat*|-1|-1|[]|-" },
		{ "aten::add, op_id = 5, sizes = [[-1]], input_op_ids = [(3,0), (4,1)]",
		  "aten::add*|-1|5|[[-1]]|[[3,0],[4,1]]" },
		{ "autograd::engine::evaluate_function: AddmmBackward0, seq = 41",
		  "autograd::engine::evaluate_function: AddmmBackward0*|41|-1|-|-" },
		/* record_function() under emit_nvtx: the user's word, not an operator */
		{ "## forward ##, op_id = 9", "## forward ##|-1|9|-|-" },
		{ "a, b, seq = 1", "a, b*|1|-1|-|-" },
		{ ", seq = 1", "*|1|-1|-|-" },
		{ "aten::mm", "no" },
		{ "", "no" },
		{ "a, seq = ", "no" },
		{ "a, seq = x", "no" },
		{ "a, seq = 1 ", "no" },
		{ "a, seq = 1, seq = 2", "a, seq = 1*|2|-1|-|-" },
		{ "a, seq = 99999999999999999999", "no" },
		{ "a, sizes = [1", "no" },
		{ "a, sizes = [1]]", "no" },
		{ "a, sizes = [1,]", "no" },
		{ "a, sizes = [,1]", "no" },
		{ "a, sizes = [1 2]", "no" },
		{ "a, sizes = [01]", "no" },
		{ "a, sizes = [-]", "no" },
		{ "a, sizes = [(1]", "no" },
		{ "a, sizes = [\"x\"]", "no" },
		{ "a, sizes = 5", "no" },
		{ "a, sizes = [[[[[1]]]]]", "no" },
	};
	char text[200];
	size_t i, len;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(torch(rows[i][0]), rows[i][1]);
	/* cut anywhere it is read or it is not, and never beyond */
	snprintf(text, sizeof(text),
		 "aten::add, seq = 1, op_id = 5, sizes = [[1, 2]], "
		 "input_op_ids = [(3,0)]");
	for (len = 0; len <= strlen(text); len++) {
		struct nvtx_torch t;
		bool good = nvtx_text_torch(text, len, &t);

		CHECK(!good ||
		      (t.name_len <= len && (!t.sizes || t.sizes + t.sizes_len <= text + len)));
	}
}

static const char *xla(const char *text)
{
	static char out[1024];
	struct nvtx_xla x;
	size_t n;
	unsigned i;

	if (!nvtx_text_xla(text, strlen(text), &x))
		return "no";
	n = (size_t)snprintf(out, sizeof(out), "%.*s", (int)x.head_len, text);
	for (i = 0; i < x.count; i++)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "|%.*s>%.*s",
				      (int)x.pairs[i].key_len, x.pairs[i].key,
				      (int)x.pairs[i].value_len, x.pairs[i].value);
	return out;
}

void test_nvtx_text_xla(void)
{
	static const char *const rows[][2] = {
		{ "XlaModule:#prefix=jit(f)/vmap(a,b),hlo_module=jit_f,program_id=7#",
		  "XlaModule|prefix>jit(f)/vmap(a,b)|hlo_module>jit_f|program_id>7" },
		{ "Thunk:#hlo_op=fusion.3,unique_hlo_op_id=4#",
		  "Thunk|hlo_op>fusion.3|unique_hlo_op_id>4" },
		{ "Thunk:#name=,hlo_op=x#", "Thunk|name>|hlo_op>x" },
		{ "Thunk:#name=a#b,hlo_op=x#", "Thunk|name>a#b|hlo_op>x" },
		{ "Thunk:##", "no" },
		{ "Thunk:#", "no" },
		{ ":#a=b#", "no" },
		{ "", "no" },
		{ "Thunk:#hlo_op=x", "no" },
		{ "Thunk:#Hlo=x#", "no" },
		{ "Thunk", "no" },
		{ "T:#a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=1,k=2,l=3,m=4,n=5,o=6,p=7,q=8#", "no" },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(xla(rows[i][0]), rows[i][1]);
}

void test_nvtx_text_collective(void)
{
	CHECK_STR(nvtx_text_collective("ncclAllReduce", 13), "allreduce");
	CHECK_STR(nvtx_text_collective("ncclReduceScatter", 17), "reduce_scatter");
	CHECK(!nvtx_text_collective("ncclAllReduceX", 14));
	CHECK(!nvtx_text_collective("ncclCommInitRank", 16));
	CHECK(!nvtx_text_collective("", 0));
}

void test_nvtx_text_characters(void)
{
	char out[32];
	size_t n;

	n = nvtx_text_narrow(out, sizeof(out), L"a\u00fc\u20ac\U0001f600");
	CHECK_U64(n, 10);
	CHECK_MEM(out, "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80", 10);
	CHECK_U64(nvtx_text_narrow(out, 9, L"a\u00fc\u20ac\U0001f600"), 6); /* whole ones only */
	CHECK_U64(nvtx_text_narrow(out, 9, L""), 0);
	CHECK_U64(nvtx_text_narrow(out, 9, NULL), 0);
	n = nvtx_text_narrow(out, sizeof(out), (const wchar_t[]){ 0xd800, 0x7fffffff, 0 });
	CHECK_U64(n, 6);
	CHECK_MEM(out, "\xef\xbf\xbd\xef\xbf\xbd", 6);
	CHECK_U64(nvtx_text_fit("a\xc3\xbc", 3, 3), 3);
	CHECK_U64(nvtx_text_fit("a\xc3\xbc", 3, 2), 1);
	CHECK_U64(nvtx_text_fit("abc", 3, 2), 2);
	CHECK_U64(nvtx_text_fit("\x80\x80", 2, 1), 0);
}

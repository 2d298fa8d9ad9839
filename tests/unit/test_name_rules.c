/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "convert/name/rules.h"
#include "convert/name/name.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct name_rules *rules_of(const char *json)
{
	struct error err = { 0 };
	struct name_rules *r = NULL;

	CHECK_OK(name_rules_new(&r, json, json ? strlen(json) : 0, &err), &err);
	return r;
}

/* The error's text for rules that must be refused. */
static const char *refusal(const char *json, enum status want)
{
	static struct error err;
	struct name_rules *r = NULL;

	memset(&err, 0, sizeof(err));
	CHECK_U64(name_rules_new(&r, json, strlen(json), &err), want);
	CHECK(r == NULL);
	name_rules_free(r);
	return err.text;
}

void test_name_rules_phases(void)
{
	static const struct {
		const char *name, *phase;
	} rows[] = {
		{ "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "data" },
		{ "enumerate(DataPipe)#x", "data" },
		{ "## copy_batch_to_gpu ##", "data" },
		{ "dataload", "data" },
		{ "Data_Load", "data" },
		{ "Optimizer.step#SGD.step", "optimizer" },
		{ "Optimizer.zero_grad#SGD.zero_grad", "optimizer" },
		{ "## zero_grad ##", "optimizer" },
		{ "## backward ##", "backward" },
		{ "BACKWARD", "backward" },
		{ "my backward", NULL },
		{ "## forward ##", "forward" },
		{ "DistributedDataParallel.forward", "forward" },
		{ "FullyShardedDataParallel.forward", "forward" },
		{ "Module.forward", NULL },
		{ "validation of epoch 3", "validation" },
		{ "## eval ##", "validation" },
		{ "Evaluate", "validation" },
		{ "invalid", NULL },
		{ "save_checkpoint", "checkpoint" },
		{ "## checkpoint ##", "checkpoint" },
		{ "valid_forward_dataload", "validation" }, /* the first rule */
		{ "forward of the optimizer", "optimizer" },
		{ "data", NULL },
		{ "## sparse_data_dist ##", NULL },
		{ "", NULL },
	};
	struct name_rules *r = rules_of(NULL);

	if (!CHECK(r != NULL))
		return;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned phase = name_rules_phase(r, rows[i].name);

		if (rows[i].phase)
			CHECK_STR(name_rules_phase_name(r, phase), rows[i].phase);
		else
			CHECK_U64(phase, PHASE_NONE);
	}
	CHECK_U64(name_rules_phase_count(r), PHASE_KNOWN);
	CHECK_STR(name_rules_phase_name(r, PHASE_OTHER), "other");
	CHECK_STR(name_rules_phase_name(r, 200), "");
	name_rules_free(r);
}

/* What servers write around their steps: phase, batch, padded, prefill, decode, tokens, grammar. */
void test_name_rules_serving(void)
{
	enum { NO = SERVING_UNKNOWN };
	static const struct {
		const char *name, *phase;
		struct serving_step step;
		unsigned grammar;
	} rows[] = {
		{ "execute_context_2(14721)_generation_0(0)",
		  "prefill",
		  { 2, NO, 2, 0, 14721 },
		  1 },
		{ "execute_context_0(0)_generation_64(64)", "decode", { 64, NO, 0, 64, 64 }, 1 },
		{ "execute_8192_context_9(sq8155sk8430sqsq7sqsk6)_generation_37(sq37sk3sqsq3sqsk3)",
		  "mixed",
		  { 46, NO, 9, 37, 8192 },
		  1 },
		{ "step[EXTEND bs=2 toks=14721]", "prefill", { 2, NO, 2, 0, 14721 }, 2 },
		{ "step[DECODE bs=64]", "decode", { 64, NO, 0, 64, 64 }, 2 },
		{ "step[MIXED bs=62]", "mixed", { 62, NO, NO, NO, NO }, 2 },
		{ "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12]",
		  "mixed",
		  { 2, NO, 1, 1, 6 },
		  2 },
		{ "step[TARGET_VERIFY bs=3]", NULL, { 3, NO, NO, NO, NO }, 2 },
		{ "prefill[bs=2 tok=14721 ctx=[7803, 6918]]",
		  "prefill",
		  { 2, NO, 2, 0, 14721 },
		  3 },
		{ "decode[bs=117/128 tok=117 d=117]", "decode", { 117, 128, 0, 117, 117 }, 3 },
		{ "execute_diffusion_4_1024x1024", NULL, { 4, NO, NO, NO, NO }, 4 },
	};
	static const char *const none[] = {
		"execute_context_2(1",
		"execute_context_a(1)_generation_0(0)",
		"step[EXTEND]",
		"prefill[bs=]",
		"execute_diffusion_",
		"step[DECODE bs=99999999999]",
		"",
	};
	struct name_rules *r = rules_of(NULL);
	struct serving_step step;
	uint64_t number;

	if (!CHECK(r != NULL))
		return;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned phase = name_rules_phase(r, rows[i].name);
		char cut[100];

		number = 7;
		CHECK(name_rules_step(r, rows[i].name, &number) && number == UINT64_MAX);
		CHECK_U64(name_rules_grammar(r, rows[i].name), rows[i].grammar);
		if (rows[i].phase)
			CHECK_STR(name_rules_phase_name(r, phase), rows[i].phase);
		else
			CHECK_U64(phase, PHASE_NONE);
		CHECK(serving_step_of(rows[i].name, &step));
		CHECK(memcmp(&step, &rows[i].step, sizeof(step)) == 0);
		for (size_t len = strlen(rows[i].name); len--;) {
			snprintf(cut, sizeof(cut), "%.*s", (int)len, rows[i].name);
			serving_step_of(cut, &step);
		}
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		CHECK(!serving_step_of(none[i], &step));
	CHECK(name_rules_step(r, "ProfilerStep#1", &number));
	CHECK_U64(name_rules_grammar(r, "ProfilerStep#1"), 0);
	name_rules_free(r);
	r = rules_of("{\"steps\": [\"^mine\"]}");
	CHECK(r && !name_rules_step(r, "step[DECODE bs=64]", &number));
	name_rules_free(r);
}

/* What is pushed through tacho.h is a phase's word, or a name like any other. */
void test_name_rules_pushed(void)
{
	struct name_rules *r = rules_of(NULL);

	if (!CHECK(r != NULL))
		return;
	CHECK_U64(name_rules_pushed(r, "data"), PHASE_DATA);
	CHECK_U64(name_rules_pushed(r, "Communication"), PHASE_COMMUNICATION);
	CHECK_U64(name_rules_pushed(r, "other"), PHASE_OTHER);
	CHECK_U64(name_rules_pushed(r, "zero_grad"), PHASE_OPTIMIZER);
	CHECK_U64(name_rules_pushed(r, "warm the cache"), PHASE_NONE);
	name_rules_free(r);
}

void test_name_rules_steps(void)
{
	struct name_rules *r = rules_of("{\"steps\": [\"^train_step\", \"^it<([0-9]+)>\"]}");
	uint64_t number = 7;

	if (!CHECK(r != NULL))
		return;
	CHECK(name_rules_step(r, "ProfilerStep#12", &number));
	CHECK_U64(number, 12);
	CHECK(name_rules_step(r, "ProfilerStep # 3", &number));
	CHECK_U64(number, 3);
	CHECK(name_rules_step(r, "train_step v2 of 40", &number));
	CHECK_U64(number, 40);
	CHECK(name_rules_step(r, "it<5> of 9", &number));
	CHECK_U64(number, 5);
	CHECK(name_rules_step(r, "train_step", &number));
	CHECK(number == UINT64_MAX);
	CHECK(name_rules_step(r, "train_step 99999999999999999999", &number));
	CHECK(number == UINT64_MAX);
	CHECK(!name_rules_step(r, "ProfilerStep*", &number));
	CHECK(!name_rules_step(r, "my ProfilerStep#1", &number));
	CHECK(!name_rules_step(r, "XlaModule:jit_train_step", &number)); /* there are own rules */
	name_rules_free(r);
	r = rules_of(NULL);
	CHECK(r && name_rules_step(r, "XlaModule:jit_train_step_2", &number));
	CHECK(number == UINT64_MAX); /* that is no step's number */
	CHECK(r && name_rules_step(r, "XlaModule:pmap__Update", &number));
	CHECK(r && !name_rules_step(r, "XlaModule:jit_convert_element_type", &number));
	CHECK(r && !name_rules_step(r, "Thunk:train", &number));
	name_rules_free(r);
}

void test_python_names(void)
{
	CHECK(name_function_phase("torch/utils/data/dataloader.py(628): __next__") == PHASE_DATA);
	CHECK(name_function_phase("/usr/lib/torch/utils/data/_utils/fetch.py(50): fetch") ==
	      PHASE_DATA);
	CHECK(name_function_phase("$dataloader.py:630 __next__") == PHASE_DATA);
	CHECK(name_function_phase(
		      "transformers/pipelines/video_classification.py(129): preprocess") ==
	      PHASE_DATA);
	CHECK(name_function_phase("my.py(1): _load_images") == PHASE_DATA);
	CHECK(name_function_phase("$input.py:7 decode_jpeg") == PHASE_DATA);
	CHECK(name_function_phase("my.py(1): image_preprocess") == PHASE_NONE);
	CHECK(name_function_phase("migrain/train.py(3): step") == PHASE_NONE);
	CHECK(name_function_phase("preprocess/train.py(3): main") == PHASE_NONE);
	CHECK(name_function_phase("model.py(10): decode") == PHASE_NONE);
	CHECK(name_function_phase("<built-in method load_data>") == PHASE_NONE);
	CHECK(name_function_phase("torch/serialization.py(945): save") == PHASE_CHECKPOINT);
	CHECK(name_function_phase("trainer.py(7): _save_checkpoint") == PHASE_CHECKPOINT);
	CHECK(name_function_phase("torch/serialization.py(9): load") == PHASE_NONE);
	CHECK(name_function_phase("torch/utils/checkpoint.py(3): checkpoint") == PHASE_NONE);
	CHECK(name_function_phase("train.py(3): validate") == PHASE_VALIDATION);
	CHECK(name_function_phase("t/train.py(3): run_eval_epoch") == PHASE_VALIDATION);
	CHECK(name_function_phase("pytorch/loops/evaluation_loop.py(3): run") == PHASE_VALIDATION);
	CHECK(name_function_phase("torch/nn/modules/module.py(3): eval") == PHASE_NONE);
	CHECK(name_function_phase("transformers/utils.py(3): validate_kwargs") == PHASE_NONE);
	CHECK(name_function_phase("train.py(3): evaluates") == PHASE_NONE);
	CHECK(name_is_layer("aten::conv2d") && !name_is_layer("aten::conv2d_"));
	CHECK(name_compiles("_compile.compile_inner (dynamo_timed)"));
	CHECK(name_compiles("triton/compiler/compiler.py(226): compile"));
	CHECK(name_compiles("$compiler.py:272 backend_compile"));
	CHECK(!name_compiles("triton/compiler/compiler.py(5): launch_metadata"));
	CHECK(!name_compiles("Torch-Compiled Region: 0/0"));
	CHECK(name_is_profiler("$profiler.py:101 start_trace"));
	CHECK(name_is_profiler("torch/profiler/profiler.py(681): _stop_trace"));
	CHECK(!name_is_profiler("server.py(3): start_trace"));
	CHECK(!name_is_profiler("torch/profiler/profiler.py(3): restart_traces"));
}

void test_name_rules_kernels(void)
{
	struct name_rules *r = rules_of("{\"communication\": [\"mynccl$\", \"^fabric\"]}");

	if (!CHECK(r != NULL))
		return;
	CHECK(name_rules_communicates(r, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"));
	CHECK(name_rules_communicates(r, "void cross_device_reduce_1stage<half>"));
	CHECK(name_rules_communicates(r, "MULTIMEM_ALL_REDUCE_KERNEL"));
	CHECK(name_rules_communicates(r, "Fabric_put"));
	CHECK(!name_rules_communicates(r, "my_fabric"));
	CHECK(!name_rules_communicates(r, "reduce_kernel"));
	CHECK(name_is_autograd("autograd::engine::evaluate_function: AddBackward0"));
	CHECK(name_is_autograd("torch::autograd::CppNode<MyBackward>"));
	CHECK(!name_is_autograd("aten::convolution_backward"));
	CHECK(!name_is_autograd("my autograd::engine::x"));
	name_rules_free(r);
}

void test_name_communication(void)
{
	static const char *const yes[] = {
		"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
		"ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16",
		"mscclKernel_Sum_half_LL",
		"void mscclpp::collective::allreducePacket<__half>(__half*)",
		"void nvshmemi_proxy_wait(int)",
		"_ZN7deep_ep9internode8dispatchILi2EEEvPi",
		"void dpsk::ep::internode::combine<(Mode)0, 4>(void*)",
		"void dpsk::ep::internode::cached_notify(int)",
		"_ZN4dpsk2ep9intranode7combineEv",
		"void uccl::internode::notify_dispatch<true>(int)",
		"void mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16>(mori::moe::Args)",
		"EpCombineInterNodeV1Kernel_bf16",
		"void pplx::a2a_kernels::combine(int)",
		"a2a_dispatch_send_kernel",
		"moeA2ACombineKernel(int)",
		"void quickreduce::allreduce_prototype_twoshot<quickreduce::Codec>(int)",
		"void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(int)",
		"_ZN4vllm26cross_device_reduce_1stageI6__halfLi2EEEv",
		"void aiter::allreduce_fusion_kernel_1stage<c10::BFloat16>(int)",
		"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<"
		"(Pattern)1, __half>(int)",
		"moereduce_allreduce_fusion_kernel_oneshot_lamport",
		"void tensorrt_llm::kernels::twoShotAllReduceKernel<__half, 8>(int)",
		"userbuffers_fp16_sum_inplace_gpu_rr_rs_oop",
		"kuserbuffers_pushrecv(int, int)",
		"void (anonymous namespace)::multimem_all_gather_kernel<16>(char*)",
		"void c10d::symmetric_memory::barrier_kernel(unsigned int**)",
		"all_to_all_v2d",
		"all-reduce-start.3",
		"oneccl_allreduce_pcie",
		"HcclAllReduce",
		"hcom_broadcast__491_4_1",
		"void bytedance::flux::barrier_all_kernel(int)",
	};
	static const char *const no[] = {
		"",
		"<",
		"reduce_kernel",
		"void at::native::reduce_kernel<512, 1, ReduceOp<float, AllReduce> >(float)",
		"void at::native::smallGatherKernel<float>(float*)",
		"overall_reduce_kernel",
		"call_reduce",
		"void blockAllReduce<SumOp, float>(float*)",
		"warp_all_reduce_softmax",
		"triton_poi_fused_all_reduce_0",
		"triton_red_fused__to_copy_all_gather_into_tensor_wait_tensor_3",
		"hybrid_epilogue_kernel",
		"hcompute",
		"all_reduced_rows",
		"void gemm_all_reduce_kernel<float>(float*)",
		"void cutlass::Kernel<bytedance::flux::GemmReduceScatter>(int)",
		"void bytedance::flux::gemm_rs<int>(int)",
		"occlusion_kernel",
		"scatter_reduce_kernel",
		"memori::fill",
	};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!CHECK(name_communicates(yes[i])))
			printf("  %s\n", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (!CHECK(!name_communicates(no[i])))
			printf("  %s\n", no[i]);
}

/* A user's phases replace ours; new ones get ids of their own. */
void test_name_rules_own(void)
{
	struct name_rules *r = rules_of("{\"phases\": ["
					"{\"phase\": \"Forward\", \"match\": \"^fwd\"},"
					"{\"phase\": \"rollout\", \"match\": \"act|env\"},"
					"{\"phase\": \"learn\", \"match\": \"^ppo\"},"
					"{\"phase\": \"ROLLOUT\", \"match\": \"^play\"}]}");

	if (!CHECK(r != NULL))
		return;
	CHECK_U64(name_rules_phase_count(r), PHASE_KNOWN + 2);
	CHECK_U64(name_rules_phase(r, "FWD 1"), PHASE_FORWARD);
	CHECK_U64(name_rules_phase(r, "my env"), PHASE_KNOWN);
	CHECK_U64(name_rules_phase(r, "play"), PHASE_KNOWN);
	CHECK_STR(name_rules_phase_name(r, PHASE_KNOWN), "rollout");
	CHECK_U64(name_rules_phase(r, "ppo"), PHASE_KNOWN + 1);
	CHECK_U64(name_rules_phase(r, "Optimizer.step"), PHASE_NONE);
	name_rules_free(r);
	r = rules_of("{}");
	CHECK_U64(name_rules_phase(r, "Optimizer.step"), PHASE_OPTIMIZER);
	name_rules_free(r);
}

void test_name_rules_refused(void)
{
	CHECK(strstr(refusal("{\"phases\": [{\"phase\": \"a\", \"match\": \"x\"},"
			     "{\"phase\": \"b\", \"match\": \"(\"}]}",
			     ST_FORMAT),
		     "rule 2 of \"phases\", \"(\""));
	CHECK(strstr(refusal("{\"steps\": [1]}", ST_FORMAT), "rule 1 of \"steps\""));
	CHECK(strstr(refusal("{\"phases\": [{\"phase\": \"a\"}]}", ST_FORMAT), "\"match\""));
	CHECK(strstr(refusal("{\"phases\": [{\"phase\": \"\", \"match\": \"a\"}]}", ST_FORMAT),
		     "has no name"));
	CHECK(strstr(refusal("{\"phase\": []}", ST_FORMAT), "\"phase\" is not a list of rules"));
	CHECK(strstr(refusal("{\"steps\": {}}", ST_FORMAT), "not a list"));
	CHECK(strstr(refusal("[]", ST_FORMAT), "JSON object"));
	CHECK(strstr(refusal("{\"steps\": [", ST_FORMAT), "not valid JSON"));
	CHECK(strstr(refusal("", ST_FORMAT), "not valid JSON"));
}

/* Many phases of one's own are refused, not mixed up. */
void test_name_rules_ceiling(void)
{
	char *json = malloc(200 * 64), *p = json;

	if (!CHECK(json != NULL))
		return;
	p += sprintf(p, "{\"phases\": [");
	for (int i = 0; i < 200; i++)
		p += sprintf(p, "%s{\"phase\": \"p%d\", \"match\": \"^p%d$\"}", i ? "," : "", i, i);
	strcpy(p, "]}");
	CHECK(strstr(refusal(json, ST_CEILING), "more than 128 custom phases"));
	free(json);
}

/* What regcomp() would spell out without end is refused before; what is long but plain is not. */
void test_name_rules_sizes(void)
{
	static const struct {
		const char *part; /* `times` times, between the other two */
		size_t times;
		const char *before, *after, *why; /* NULL: taken */
	} rows[] = {
		{ "+", 8, "step ", "([0-9]*)", NULL },
		{ "+", 64, "^|rain_step ", "([0-9]*)", "too large" },
		{ "{1,9}", 3, "a", "", "too large" },
		{ "{1,9}", 2, "a", "", NULL },
		{ "{255}", 2, "a", "", "too large" },
		{ "){255}", 2, "((ab", "", "too large" },
		{ "{1,99}", 3, "(a|b)", "", "too large" },
		{ "{99,}", 3, "(ab)", "", "too large" },
		{ "{,9999999999999999999999}", 1, "a", "", "too large" },
		{ "{2000}", 1, "(ab?)", "", "too large" },
		{ "{300}", 1, "(ab?)", "", NULL },
		{ "*", 1, "(a|b*c?)", "", NULL },
		{ "){,7}", 5, "(((((a", "", "too large" },
		{ "*?", 1, "step.", "([0-9]+)", NULL }, /* as others write a lazy one */
		{ "{1,1500}", 1, "a", "", "too large" },
		{ "{200}", 1, "(a[]x]?)", "", NULL },
		{ "{200}", 3, "a\\\\", "", "too large" },
		{ "\\\\{900}", 3, "a", "", NULL },
		{ "[{900}]", 3, "a", "", NULL },
		{ "[]{900}]", 3, "a", "", NULL },
		{ "[^]{900}", 1, "a", "", "Unmatched [" },
		{ "aten::mm|", 400, "", "x", NULL },
		{ "aten::mm|", 1200, "", "x", "too large" },
		{ "aten::mm", 500, "", "", NULL },
		{ "aten::mm ", 600, "", "", "too large" },
		{ "(", 100, "", "a", "Unmatched" },
		{ "(", 4000, "", "a", "Unmatched" },
		{ "a?", 2000, "", "", NULL },
		{ "\\\\1", 1, "(ab*)*", "c", "references" },
	};
	static char json[1 << 18];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct name_rules *r = NULL;
		char *p = json + sprintf(json, "{\"steps\": [\"%s", rows[i].before);
		struct error err = { 0 };
		enum status status;

		for (size_t k = 0; k < rows[i].times; k++)
			p = stpcpy(p, rows[i].part);
		sprintf(p, "%s\"]}", rows[i].after);
		status = name_rules_new(&r, json, strlen(json), &err);
		if (!CHECK(rows[i].why ? status != ST_OK && strstr(err.text, rows[i].why)
				       : status == ST_OK))
			fprintf(stderr, "\trow %zu, %zu times %s: %s\n", i, rows[i].times,
				rows[i].part, err.text);
		name_rules_free(r);
	}
}

/* The table pays for all its rules together. */
void test_name_rules_size_of_all(void)
{
	static const char rule[] = "\"(ab?){200}\", ";
	char json[10 * sizeof(rule) + 100] = "{\"steps\": [";

	for (int i = 0; i < 7; i++)
		strcat(json, rule);
	strcat(json, "\"x\"]}");
	CHECK(strstr(refusal(json, ST_CEILING), "rule 5 of \"steps\""));
}

struct short_row {
	const char *kernel;
	size_t width;
	const char *want;
};

static void check_short(const struct short_row *rows, size_t count)
{
	char out[256];

	for (size_t i = 0; i < count; i++) {
		size_t len = name_short(rows[i].kernel, rows[i].width, out, sizeof(out));

		CHECK_STR(out, rows[i].want);
		CHECK_U64(len, strlen(out));
	}
}

void test_name_short_cut(void)
{
	static const struct short_row rows[] = {
		{ "volta_sgemm_128x32_nt", 30, "volta_sgemm_128x32_nt" },
		{ "split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_"
		  "cta_per_row_1",
		  61, "split_embedding_backward_codegen_row…ted_kernel_cta_per_row_1" },
		{ "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 58,
		  "ncclKernel_AllReduce_RING_LL_Sum_float" },
		{ "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, float "
		  "const*)",
		  58, "dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>" },
		{ "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 0, false, true, "
		  "false, true>(int)",
		  58, "implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, …>" },
		{ "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, "
		  "int>, false>(int*)",
		  40, "DeviceRadixSortOnesweepKernel<…>" },
		{ "void cub::DeviceRadixSortOnesweepKernel<long>(int*)", 20,
		  "DeviceRadixS…pKernel" },
		{ "void cub::Init<cub::ScanTileState<int, true> >(cub::ScanTileState<int, true>)",
		  58, "Init<ScanTileState<int, true>>" },
		{ "Memcpy HtoD (Pageable -> Device)", 58, "Memcpy HtoD (Pageable -> Device)" },
		{ "größenordnungskern_größe", 12, "größeno…röße" },
		{ "", 10, "" },
		{ "kernel", 0, "" },
		{ "kernel", 1, "k" },
	};

	check_short(rows, sizeof(rows) / sizeof(rows[0]));
}

void test_name_short_wrapper(void)
{
	static const struct short_row rows[] = {
		{ "void at::native::vectorized_elementwise_kernel<4, "
		  "at::native::AddFunctor<float>, "
		  "at::detail::Array<char*, 3> >(int, at::native::AddFunctor<float>)",
		  58, "AddFunctor<float> · vectorized_elementwise_kernel" },
		{ "void at::native::vectorized_elementwise_kernel<4, "
		  "at::native::AddFunctor<float>, "
		  "at::detail::Array<char*, 3> >(int, at::native::AddFunctor<float>)",
		  40, "AddFunctor<float> · vectorized_elementw…" },
		{ "void at::native::vectorized_elementwise_kernel<4, "
		  "at::native::AddFunctor<float>, "
		  "at::detail::Array<char*, 3> >(int)",
		  20, "AddFunctor<float>" },
		{ "void at::native::vectorized_elementwise_kernel<4, "
		  "at::native::BinaryFunctor<float, float, float, "
		  "at::native::binary_internal::MulFunctor<float> >, "
		  "at::detail::Array<char*, 3> >(int)",
		  58, "MulFunctor<float> · vectorized_elementwise_kernel" },
		{ "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<"
		  "at::native::(anonymous namespace)::direct_copy_kernel_cuda("
		  "at::TensorIteratorBase&)::{lambda()#2}::operator()() const::"
		  "{lambda()#14}::operator()() const::{lambda(float)#1}>("
		  "at::TensorIteratorBase&, int)::{lambda(int)#1}>(int)",
		  58, "direct_copy_kernel_cuda · elementwise_kernel" },
		{ "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
		  "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::"
		  "operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, "
		  "float, 4> >(int)",
		  58, "sum_functor<float, float, float> · reduce_kernel" },
		{ "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::("
		  "anonymous namespace)::TensorListMetadata<2>, AdamFunctor<float>, float>(int)",
		  58, "AdamFunctor<float> · multi_tensor_apply_kernel" },
		{ "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>("
		  "cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4::Params)",
		  58, "cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4" },
		{ "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, "
		  "void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>("
		  "c10::BFloat16*, long)",
		  58, "fused_add_rms_norm_kernel<BFloat16, 8>" },
		{ "void cudnn::ops::nchwToNhwcKernel<float, (cudnnKernelDataType_t)2, "
		  "3ul>(int)",
		  58, "nchwToNhwcKernel<float, 2, 3>" },
	};

	check_short(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Mangled, by the C++ runtime where there is one; no text makes it stumble. */
void test_name_short_any(void)
{
	char out[8], text[300], wide[256];

	name_short("_ZN2at6native4fillIfEEvPT_i", 40, wide, sizeof(wide));
	CHECK(strcmp(wide, "fill<float>") == 0 || strcmp(wide, "fill") == 0);
	CHECK_U64(name_short("a_long_name_for_little_room", 40, out, sizeof(out)), 0);
	CHECK_U64(name_short("short", 40, out, sizeof(out)), 5);
	CHECK_U64(name_short("short", 40, out, 0), 0);
	for (unsigned seed = 1; seed < 2000; seed++) {
		static const char signs[] = "<>(){}[]:, *&-ab1_Z\xc3\xa4";
		unsigned state = seed * 2654435761u;
		size_t i, len = seed % 299;

		for (i = 0; i < len; i++) {
			state = state * 1664525u + 1013904223u;
			text[i] = signs[(state >> 16) % (sizeof(signs) - 1)];
		}
		text[len] = '\0';
		if (name_short(text, seed % 70, wide, sizeof(wide)) >= sizeof(wide))
			CHECK(!"more than there is room for");
	}
}

/* How a rule begins is looked at first; the whole rule says the same. */
void test_name_rules_prefix(void)
{
	static const char *const patterns[] = {
		"^abc",     "^abc*d",     "^abc?",
		"^ab+c",    "^abc{0,1}d", "^abc|x",
		"^(abc|x)", "abc",        "^",
		"^a",       "^a*",        "^a.c",
		"^ab[c]",   "^abc$",      "^0123456789012345678901234567890123456789",
	};
	static const char *const names[] = {
		"",
		"a",
		"ab",
		"abc",
		"ABC",
		"Abcd",
		"abd",
		"abccd",
		"xabc",
		"x",
		"bc",
		"abbc",
		"ac",
		"0123456789012345678901234567890123456789x",
		"01234567890123456789012345678901",
	};
	char json[100];

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct name_rules *r;
		regex_t whole;

		snprintf(json, sizeof(json),
			 "{\"phases\": [{\"phase\": \"p\", \"match\": \"%s\"}]}", patterns[i]);
		r = rules_of(json);
		if (!CHECK(r && !regcomp(&whole, patterns[i], REG_EXTENDED | REG_ICASE)))
			return;
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			CHECK_U64(name_rules_phase(r, names[k]) != PHASE_NONE,
				  regexec(&whole, names[k], 0, NULL, 0) == 0);
		regfree(&whole);
		name_rules_free(r);
	}
}

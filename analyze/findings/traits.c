/* SPDX-License-Identifier: Apache-2.0 */
/* What a job already uses, by the names in its input, so that advice does not contradict the trace,
 * for example to use CUDA graphs if graphs are launched. */
#include "analyze/findings/internal.h"

enum { TRAIT_WORD = RANK_KEYS, TRAIT_THERE };
#define TRAITS_COLUMNS(X)                                                                          \
	X(TRAITS_TRAIT = RANK_KEYS, "trait", NULL, TEXT, KEY, "property of the job, by names")     \
	X(TRAITS_THERE, "there", NULL, BOOL, MAX, "the input has such names")
RANK_TABLE(traits, &table_ranks, TRAITS_COLUMNS, .nest = NEST_NEVER);

static const char *trait_word(enum trait trait)
{
	static const char *const words[] = {
#define X(name, word) word,
		TRAIT_LIST(X)
#undef X
	};

	return words[trait];
}

/* Parts of names, case-sensitive. */
static const struct {
	const char *part;
	enum trait trait;
} parts[] = {
	{ "GraphLaunch", TRAIT_GRAPHS },
	{ "StreamBeginCapture", TRAIT_CAPTURE },
	{ "CompiledFxGraph", TRAIT_COMPILED },
	{ "Torch-Compiled Region", TRAIT_COMPILED },
	{ "CompiledFunction", TRAIT_COMPILED },
	{ "triton_poi_fused", TRAIT_COMPILED },
	{ "triton_red_fused", TRAIT_COMPILED },
	{ "triton_per_fused", TRAIT_COMPILED },
	{ "FSDP", TRAIT_FSDP },
	{ "FullyShardedDataParallel", TRAIT_FSDP },
	{ "deep_ep", TRAIT_EXPERTS },
	{ "deepep", TRAIT_EXPERTS },
	{ "::ep::", TRAIT_EXPERTS },
	{ "fused_moe", TRAIT_EXPERTS },
	{ "MoE", TRAIT_EXPERTS },
	{ "moe_", TRAIT_EXPERTS },
	{ ".py(", TRAIT_FRAMES },
	{ "volta_", TRAIT_VOLTA },
	{ "_SingleProcessDataLoaderIter", TRAIT_LOADER_ALONE },
	{ "_MultiProcessingDataLoaderIter", TRAIT_LOADER_WORKERS },
};

enum status traits_end(struct accumulator *f, bool offloads, struct error *err)
{
	bool there[TRAIT_COUNT] = { [TRAIT_OFFLOAD] = offloads };
	union value keys[TRAIT_WORD + 1], *row;
	uint32_t process = 0, count = trace_count(f->trace, TRACE_PROCESSES);

	for (uint32_t name = 1; name <= trace_count(f->trace, TRACE_NAMES); name++) {
		const char *text = trace_text(f->trace, name, NULL);

		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			if (!there[parts[i].trait] && strstr(text, parts[i].part))
				there[parts[i].trait] = true;
	}
	/* prefer a process with a GPU */
	for (uint32_t i = 1; i <= count; i++)
		if (acc_wants(f, i) && (!process || (sweep_process(f->sweep, i).has_gpu &&
						     !sweep_process(f->sweep, process).has_gpu)))
			process = i;
	if (!process)
		return ST_OK;
	for (int i = 0; i < TRAIT_COUNT; i++) {
		if (!there[i])
			continue;
		keys[TRAIT_WORD].text = trait_word((enum trait)i);
		TRY(acc_row(f, "traits", process, keys, &row, err));
		row[TRAIT_THERE].u64 = 1;
	}
	return ST_OK;
}

bool facts_has(const struct facts *f, enum trait trait)
{
	struct table *t = tables_find(f->tables, "traits");

	for (size_t i = 0; t && i < table_count(t); i++)
		if (!strcmp(table_at(t, i)[TRAIT_WORD].text, trait_word(trait)))
			return true;
	return false;
}

const char *facts_loader_advice(const struct facts *f)
{
	if (facts_has(f, TRAIT_LOADER_ALONE))
		return "set num_workers to 4 or more (now 0: the loader runs on the step thread) "
		       "and pin_memory=True; preprocess offline";
	if (facts_has(f, TRAIT_LOADER_WORKERS))
		return "increase num_workers and prefetch_factor; set persistent_workers=True; "
		       "preprocess offline";
	return facts_recorder(f) == RECORDER_PYTORCH
		       ? "decode and preprocess ahead, in DataLoader workers, on the GPU or "
			 "offline, instead of between steps"
		       : NULL;
}

enum recorder facts_recorder(const struct facts *f)
{
	static const struct {
		const char *format;
		enum recorder recorder;
	} recorders[] = {
		{ "Kineto", RECORDER_PYTORCH },      { "Nsight", RECORDER_NSYS },
		{ "XSpace", RECORDER_XPROF },        { "Tacho", RECORDER_TACHO },
		{ "inspector", RECORDER_INSPECTOR },
	};
	struct table *t = tables_find(f->tables, "inputs");
	const char *format =
		t && table_count(t) ? table_at(t, 0)[table_column(t, "format")].text : NULL;

	for (size_t i = 0; format && i < sizeof(recorders) / sizeof(recorders[0]); i++)
		if (strcasestr(format, recorders[i].format))
			return recorders[i].recorder;
	return RECORDER_OTHER;
}

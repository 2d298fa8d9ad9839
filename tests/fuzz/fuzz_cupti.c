/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of CUPTI records of any contents, of several versions, in several windows: the walk, the
 * tables, the rows.  Texts that records point at are ours; all numbers are the fuzzer's.
 */
#include "collector/config.h"
#include "collector/cupti_calls.h"
#include "collector/cupti_clock.h"
#include "collector/cupti_join.h"
#include "collector/cupti_names.h"
#include "collector/cupti_plan.h"
#include "collector/cupti_rows.h"
#include "collector/cupti_tables.h"
#include "collector/tick.h"
#include "collector/writer_in.h"
#include "tests/fuzz/target.h"

#include <ftw.h>
#include <sys/stat.h>

enum { BYTES = 1 << 14 };

static const struct version {
	uint32_t api;
	uint16_t sizes[CUPTI_KINDS];
} versions[] = {
	{ 22, { [1] = 88, [2] = 88, [4] = 40, [5] = 40, [9] = 24, [10] = 208, [17] = 48,
		[22] = 96, [36] = 24, [37] = 24, [38] = 40, [39] = 24, [49] = 120, [50] = 72,
		[51] = 56, [52] = 72 } },
	{ 130001, { [1] = 96, [2] = 88, [4] = 40, [5] = 40, [9] = 32, [10] = 216, [17] = 48,
		    [22] = 96, [36] = 56, [37] = 24, [38] = 56, [39] = 24, [49] = 128, [50] = 80,
		    [51] = 56, [52] = 72, [54] = 64, [60] = 48 } },
	{ 130401, { [1] = 112, [2] = 104, [4] = 40, [5] = 40, [10] = 248, [38] = 56 } },
};
static struct cupti_lib lib;

static int walk(uint8_t *bytes, size_t len, uint8_t **record)
{
	uint8_t *at = *record ? *record : bytes;
	uint32_t kind;

	if (*record) {
		memcpy(&kind, at, sizeof(kind));
		at += lib.sizes[kind];
	}
	if (at >= bytes + len)
		return 12;
	*record = at;
	return 0;
}

static int realtime(uint64_t *ns)
{
	*ns = tick_clock_ns(CLOCK_REALTIME);
	return 0;
}

static int call_name(int domain, uint32_t cbid, const char **name)
{
	*name = "cudaLaunchKernel_v7000";
	return cbid % 3 ? 0 : 1;
}

/* Kinds in turn by the input; what the fuzzer gives lies over zeros. */
static size_t fill(struct fuzz_bytes *b, uint8_t *bytes)
{
	static const char *const texts[] = { "", "void gemm<float>(int)", "\xff\xfe", "a", NULL };
	static const uint8_t kinds[] = { 1, 2, 4, 5, 9, 10, 10, 10, 17, 22, 36, 37, 38, 39, 49, 50,
					 51, 52, 54, 60 };
	size_t len = 0;

	while (b->at < b->end && len + 256 < BYTES) {
		uint32_t kind = kinds[fuzz_below(b, sizeof(kinds))];
		uint8_t *record = bytes + len;
		const uint16_t *at = cupti_family_texts(kind);
		unsigned i, puts = fuzz_below(b, 12);

		if (!lib.sizes[kind])
			continue;
		memset(record, 0, lib.sizes[kind]);
		while (puts--) {
			uint64_t place = fuzz_number(b, 1) % (lib.sizes[kind] / 4) * 4;
			uint64_t value = fuzz_number(b, 1 + place % 8);
			size_t room = lib.sizes[kind] - place;

			if (value & 1) /* a time of about now */
				value += tick_clock_ns(CLOCK_REALTIME) - 1000000;
			memcpy(record + place, &value, room < 8 ? room : 8);
		}
		memcpy(record, &kind, sizeof(kind));
		for (i = 0; i < PLAN_TEXTS && at[i]; i++) {
			uintptr_t text = (uintptr_t)texts[fuzz_below(b, 5)];

			memcpy(record + at[i], &text, sizeof(text));
		}
		len += lib.sizes[kind];
	}
	return len;
}

static void hand_over(struct writer *w, uint8_t *bytes, size_t len, unsigned how)
{
	struct pool_buffer buffer = { .bytes = bytes, .valid = len,
				      .completed_ns = tick_clock_ns(CLOCK_MONOTONIC) };
	uint64_t records;

	if (how % 8 == 7) {
		cupti_names_drop(&lib, bytes, len);
		return;
	}
	buffer.marks = cupti_names_keep(&lib, bytes, len, &records);
	cupti_rows_tables(&buffer);
	if (how % 8 == 6)
		cupti_rows_drop(&buffer);
	else
		cupti_rows_put(w, &buffer, 0, how & 32 ? tick_clock_ns(CLOCK_REALTIME) : 0);
}

/* As if nothing had come yet; plans and calls are made again only where they differ. */
static void open_version(const struct version *v, uint32_t kinds_mask)
{
	static const struct version *made;
	static uint32_t made_mask;

	lib = (struct cupti_lib){ .next_record = walk, .api_version = v->api,
				  .callback_name = call_name };
	memcpy(lib.sizes, v->sizes, sizeof(lib.sizes));
	tick_init("monotonic");
	if (made != v || made_mask != kinds_mask) {
		cupti_plan_open(&lib, kinds_mask);
		cupti_calls_open(&lib);
		made = v;
		made_mask = kinds_mask;
	}
	cupti_rows_forget();
	cupti_tables_forget();
	cupti_join_forget();
	cupti_rows_open(&lib);
	cupti_clock_open(realtime);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[BYTES];
	static struct writer writer;
	struct fuzz_bytes b = { data, data + size };
	unsigned how = (unsigned)fuzz_number(&b, 1), turns;
	char folder[] = "/dev/shm/fuzz-XXXXXX", out[64];
	char *variables[] = { out, (char *)(uintptr_t)"TACHO_WINDOW=all",
			      (char *)(uintptr_t)(how & 16 ? "TACHO_KINDS=kernel" : "TACHO_KINDS=all"),
			      NULL };
	struct config config;

	if (size < 8 || size > 4096 || !mkdtemp(folder))
		return 0;
	snprintf(out, sizeof(out), "TACHO_OUT=%s", folder);
	config_read(&config, variables, NULL);
	memset(&writer, 0, sizeof(writer));
	writer.config = &config;
	writer.recording = true;
	open_version(&versions[how % 3], config.kinds_mask);
	for (turns = 0; turns < 3 && b.at < b.end; turns++)
		hand_over(&writer, bytes, fill(&b, bytes), (unsigned)fuzz_number(&b, 1));
	cupti_rows_end(&writer);
	writer_close_log(&writer);
	config_release(&config);
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}

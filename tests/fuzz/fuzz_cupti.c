/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of CUPTI records of any contents, of several versions, in several windows: the walk, the
 * tables, the rows.  Texts that records point at are ours; all numbers are the fuzzer's.  All comes
 * twice: in runs, and one by one, which must count the same.
 */
#include "collector/config/config.h"
#include "collector/probe/cupti/internal.h"
#include "collector/probe/cupti/clock.h"
#include "collector/probe/cupti/layout.h"
#include "collector/probe/cupti/rows.h"
#include "collector/probe/cupti/tables.h"
#include "collector/session/clock.h"
#include "collector/store/internal.h"
#include "tests/fuzz/target.h"
#include "tests/unit/cupti_library.h"

#include <ftw.h>
#include <sys/stat.h>

enum { BYTES = 1 << 14 };

static struct cupti_lib lib;

/* Kinds in turn by the input; what the fuzzer gives lies over zeros. */
static size_t fill(struct fuzz_bytes *b, uint8_t *bytes)
{
	static const char *const texts[] = { "", "void gemm<float>(int)", "\xff\xfe", "a", NULL };
	static const uint8_t kinds[] = { 1,  2,  4,  5,  9,  10, 10, 10, 17, 22,
					 36, 37, 38, 39, 49, 50, 51, 52, 54, 60 };
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
		for (i = 0; i < LAYOUT_TEXTS && at[i]; i++) {
			uintptr_t text = (uintptr_t)texts[fuzz_below(b, 5)];

			memcpy(record + at[i], &text, sizeof(text));
		}
		len += lib.sizes[kind];
	}
	return len;
}

struct turn {
	uint8_t bytes[BYTES];
	size_t len;
	unsigned how;
	uint64_t monotonic_ns, realtime_ns;
};

static void hand_over(struct writer *w, const struct turn *t, bool in_runs)
{
	static _Alignas(8) uint8_t bytes[BYTES];
	struct pool_buffer buffer = { .bytes = bytes,
				      .valid = t->len,
				      .completed_ns = t->monotonic_ns };

	memcpy(bytes, t->bytes, sizeof(bytes));
	if (t->how % 8 == 7) {
		cupti_names_drop(&lib, bytes, t->len);
		return;
	}
	buffer.marks = cupti_names_keep(&lib, bytes, t->len);
	if (t->len && !(buffer.marks & MARK_EVEN))
		abort();
	if (!in_runs)
		buffer.marks &= ~(unsigned)MARK_EVEN;
	cupti_rows_tables(&buffer);
	if (t->how % 8 == 6)
		cupti_rows_drop(&buffer);
	else
		cupti_rows_put(w, &buffer, 0, t->how & 32 ? t->realtime_ns : 0);
}

/* As if nothing had come yet; plans and calls are made again only where they differ. */
static void open_version(unsigned version, uint32_t kinds_mask)
{
	static unsigned made = LIBRARIES;
	static uint32_t made_mask;

	library_open(&lib, version);
	lib.sizes[CUPTI_DEVICE] = 0; /* its text would be freed */
	lib.sizes[CUPTI_OVERHEAD] = lib.sizes[CUPTI_OVERHEAD] ? 48 : 0;
	library_sizes = lib.sizes;
	tick_init("monotonic");
	if (made != version || made_mask != kinds_mask) {
		cupti_layouts_open(&lib, kinds_mask);
		cupti_calls_open(&lib);
		made = version;
		made_mask = kinds_mask;
	}
	cupti_rows_forget();
	cupti_tables_forget();
	cupti_rows_open(&lib);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static struct cupti_row_counts record(const struct config *config, const struct turn *turns,
				      size_t count, bool in_runs)
{
	static struct writer writer;
	size_t i;

	memset(&writer, 0, sizeof(writer));
	writer.config = config;
	writer.recording = true;
	writer.command = "fuzz";
	for (i = 0; i < count; i++)
		hand_over(&writer, &turns[i], in_runs);
	cupti_rows_end(&writer);
	writer_close_log(&writer);
	writer_free_attributes(&writer);
	return *cupti_row_counts();
}

static void check_same(struct cupti_row_counts a, struct cupti_row_counts b)
{
	if (a.rows != b.rows || a.nodes != b.nodes || a.no_time != b.no_time ||
	    a.unknown != b.unknown || a.unwanted != b.unwanted || a.noise != b.noise ||
	    a.early != b.early)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct turn turns[3];
	struct fuzz_bytes b = { data, data + size };
	unsigned how = (unsigned)fuzz_number(&b, 1);
	char folder[] = "/dev/shm/fuzz-XXXXXX", out[64];
	char *variables[] = {
		out, (char *)(uintptr_t) "TACHO_WINDOW=all",
		(char *)(uintptr_t)(how & 16 ? "TACHO_KINDS=kernel" : "TACHO_KINDS=all"), NULL
	};
	struct cupti_row_counts counts;
	struct config config;
	size_t count = 0;

	if (size < 8 || size > 4096 || !mkdtemp(folder))
		return 0;
	snprintf(out, sizeof(out), "TACHO_OUT=%s", folder);
	config_read(&config, variables, NULL);
	open_version(how % LIBRARIES, config.kinds_mask);
	cupti_clock_open(library_realtime);
	for (; count < 3 && b.at < b.end; count++) {
		turns[count].len = fill(&b, turns[count].bytes);
		turns[count].how = (unsigned)fuzz_number(&b, 1);
		turns[count].monotonic_ns = tick_clock_ns(CLOCK_MONOTONIC);
		turns[count].realtime_ns = tick_clock_ns(CLOCK_REALTIME);
	}
	counts = record(&config, turns, count, true);
	open_version(how % LIBRARIES, config.kinds_mask);
	check_same(counts, record(&config, turns, count, false));
	config_release(&config);
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}

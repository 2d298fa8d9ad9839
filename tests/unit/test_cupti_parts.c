/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's parts for CUPTI, each by itself: buffers, clock, calls, sentences. */
#include "collector/probe/cupti/clock.h"
#include "collector/probe/cupti/internal.h"
#include "collector/probe/cupti/layout.h"
#include "collector/probe/cupti/pool.h"
#include "collector/probe/cupti/lib.h"
#include "collector/arena/texts.h"
#include "collector/session/clock.h"
#include "schemas/base/buf.h"
#include "tests/unit/cupti_library.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- buffers ---- */

enum { BUFFER = 2 * 65536, BUFFERS = 8, SMALL = 2 * BUFFERS };

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

enum { TURNS = 1024, MORE = TURNS + 3 };

/*
 * All of one size first, then small ones, singles, and at last places that are lent again; each of
 * its own kind, and clear.
 */
static void ask_for_too_much(void)
{
	size_t size, most, count[5] = { 0 }, dirty = 0, i;
	enum pool_place place;
	uint32_t index;
	uint8_t *bytes;

	for (i = 0; i < BUFFERS - 1 + SMALL + 8192 + MORE; i++) {
		pool_request(&bytes, &size, &most);
		dirty += !is_zero(bytes, size);
		place = pool_find(bytes, &index, &size);
		count[place]++;
		if (place == POOL_SINGLE || place == POOL_SHARED)
			most--;
		if (most)
			break;
		memset(bytes, 7, size);
	}
	CHECK_U64(dirty, 0);
	CHECK_U64(count[POOL_OURS], BUFFERS - 1); /* one is lent since before */
	CHECK_U64(count[POOL_SMALL], SMALL);
	CHECK_U64(count[POOL_SINGLE], 8192);
	CHECK_U64(count[POOL_SHARED], MORE);
}

void test_cupti_pool(void)
{
	uint8_t *first, *bytes, other[64];
	size_t size, most;
	uint32_t index;
	struct pool_buffer b;

	if (!CHECK(pool_open(2 * BUFFER * BUFFERS, BUFFER)))
		return;
	CHECK(pool_open(1, 1)); /* again: nothing changes */
	CHECK(!pool_next(&b));
	pool_request(&first, &size, &most);
	CHECK_U64(size, BUFFER);
	CHECK_U64(most, 0);
	CHECK_U64((uintptr_t)first % 8, 0);
	CHECK(is_zero(first, size));
	CHECK_U64(pool_find(first, &index, &size), POOL_OURS);
	CHECK_U64(pool_find(other, &index, &size), POOL_FOREIGN);
	CHECK_U64(pool_find(first + 8, &index, &size), POOL_FOREIGN);
	memset(first, 7, 1000);
	pool_find(first, &index, &size);
	pool_complete(index, 1000, 42, 5);
	CHECK(pool_fullness() > 0);
	if (CHECK(pool_next(&b))) {
		CHECK(b.bytes == first);
		CHECK_U64(b.valid, 1000);
		CHECK_U64(b.completed_ns, 42);
		CHECK_U64(b.marks, 5);
		pool_give_back(&b);
	}
	CHECK_U64(pool_fullness(), 0);
	pool_request(&bytes, &size, &most);
	CHECK(bytes == first); /* warm, and clear again */
	CHECK(is_zero(bytes, size));
	ask_for_too_much();
}

/* ---- clock ---- */

static int64_t offset_ns;

static int moved(uint64_t *ns)
{
	*ns = tick_clock_ns(CLOCK_MONOTONIC) + UINT64_C(1700000000000000000) + (uint64_t)offset_ns;
	return 0;
}

static void pause_ms(long ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

static uint64_t told(uint64_t cupti_ns, uint64_t before_ns)
{
	struct cupti_epoch epoch = { .first = UINT64_MAX, .last = UINT64_MAX };
	uint64_t ns = cupti_clock_convert(cupti_ns, before_ns, &epoch);

	/* what was remembered says the same */
	CHECK_U64(cupti_clock_convert(cupti_ns, before_ns, &epoch), ns);
	return ns;
}

static bool near(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) < 3000000; /* a machine that is busy */
}

void test_cupti_clock(void)
{
	uint64_t before, after, cupti_before, cupti_after, now;

	tick_init("monotonic");
	offset_ns = 0;
	cupti_clock_open(moved);
	before = tick_clock_ns(CLOCK_MONOTONIC);
	moved(&cupti_before);
	pause_ms(20);
	cupti_clock_note(true);
	offset_ns = -5000000000; /* set back by 5 s, in between two notes */
	pause_ms(20);
	cupti_clock_note(true);
	after = tick_clock_ns(CLOCK_MONOTONIC);
	moved(&cupti_after);
	cupti_clock_note(true);
	now = tick_clock_ns(CLOCK_MONOTONIC);
	CHECK(near(told(cupti_before, now), tick_base_ns() + before));
	CHECK(near(told(cupti_after, now), tick_base_ns() + after));
	CHECK_U64(told(12345, now), 0);
	CHECK_U64(told(cupti_after + UINT64_C(3600000000000), now), 0);
	/* forward */
	offset_ns = 3600000000000;
	pause_ms(5);
	cupti_clock_note(true);
	moved(&cupti_after);
	CHECK_U64(told(cupti_after, UINT64_MAX / 2), 0); /* it may be of another rate */
	CHECK(!cupti_clock_is_steady());
	cupti_clock_note(true);
	CHECK(near(told(cupti_after, UINT64_MAX / 2),
		   tick_base_ns() + tick_clock_ns(CLOCK_MONOTONIC)));
	CHECK(near(told(cupti_before, now), tick_base_ns() + before));
	CHECK(cupti_clock_off_ns() > 1000000000);
}

static int ticks(uint64_t *ns)
{
	*ns = tick_clock_ns(CLOCK_MONOTONIC) / 10 * 21;
	return 0;
}

/* Times of a clock of another rate are refused: no distance is right for two of them. */
void test_cupti_clock_in_ticks(void)
{
	uint64_t tick;

	cupti_clock_open(ticks);
	for (int i = 0; i < 20; i++) {
		pause_ms(1);
		ticks(&tick);
		cupti_clock_note(true);
		CHECK(cupti_clock_is_strange() && !cupti_clock_is_steady());
		CHECK_U64(told(tick, UINT64_MAX / 2), 0);
	}
}

/* Without steps a time is moved by a constant, to the nanosecond. */
void test_cupti_clock_is_exact(void)
{
	uint64_t a, now;
	int i;

	offset_ns = 7;
	cupti_clock_open(moved);
	moved(&a);
	for (i = 0; i < 20; i++)
		cupti_clock_note(true);
	now = tick_clock_ns(CLOCK_MONOTONIC);
	CHECK_U64(told(a + 123456789, now + 1000000000) - told(a, now), 123456789);
	CHECK_U64(told(a - 60000000000, now) + 60000000000, told(a, now));
}

/* ---- calls ---- */

void test_cupti_noise(void)
{
	static const struct {
		const char *name;
		bool is_noise;
	} calls[] = {
		{ "cudaLaunchKernel_v7000", false },
		{ "cudaLaunchKernel_ptsz_v7000", false },
		{ "cudaGetDevice_v3020", true },
		{ "cudaGetDeviceProperties_v12000", false }, /* takes its time */
		{ "cudaGetLastError_v3020", true },
		{ "cudaStreamIsCapturing_ptsz_v10000", true },
		{ "cudaEventQuery_v3020", true },
		{ "cudaEventRecord_v3020", false },
		{ "cudaStreamSynchronize_v3020", false },
		{ "cudaMalloc_v3020", false },
		{ "cuLaunchKernelEx", false },
		{ "cuCtxGetCurrent", true },
		{ "cuCtxSynchronize", false },
		{ "cuMemGetInfo_v2", false },
		{ "cuGetProcAddress_v2", true },
		{ "cuStreamQuery_ptsz", true },
		{ "cuGraphLaunch", false },
		{ "", false },
	};
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!CHECK(cupti_name_is_noise(calls[i].name, strlen(calls[i].name)) ==
			   calls[i].is_noise))
			CHECK_STR(calls[i].name, "");
}

/* ---- names ---- */

static void put_kernels(uint8_t *bytes, char (*texts)[16], unsigned count)
{
	enum { SIZE = 216, NAME = 104 };
	unsigned i;

	for (i = 0; i < count; i++) {
		const char *text = texts[i / 2];
		uint8_t kind = 10;

		memcpy(bytes + (size_t)i * SIZE, &kind, sizeof(kind));
		memcpy(bytes + (size_t)i * SIZE + NAME, &text, sizeof(text));
	}
}

static void check_names(const uint8_t *bytes, char (*texts)[16], unsigned count)
{
	unsigned i, wrong = 0;
	uint64_t id;
	size_t len;

	for (i = 0; i < count; i++) {
		memcpy(&id, bytes + (size_t)i * 216 + 104, sizeof(id));
		wrong += strcmp(name_text((uint32_t)id, &len), texts[i / 2]) != 0;
	}
	CHECK_U64(wrong, 0);
}

/* Each pointer becomes the id of its text, however many there are; a walk that the sizes explain.
 */
void test_cupti_names(void)
{
	enum { KERNELS = 2000, BYTES = KERNELS * 216 + 64 };
	static char texts[KERNELS / 2][16];
	uint8_t *bytes = calloc(1, BYTES);
	struct cupti_lib lib;
	uint32_t call = 5;
	unsigned i;

	library_open(&lib, LIBRARY_13_0);
	cupti_layouts_open(&lib, UINT32_MAX);
	for (i = 0; i < KERNELS / 2; i++)
		snprintf(texts[i], sizeof(texts[i]), "kernel %u", i);
	put_kernels(bytes, texts, KERNELS);
	CHECK_U64(cupti_names_keep(&lib, bytes, KERNELS * 216), MARK_EVEN);
	check_names(bytes, texts, KERNELS);
	/* a size that the walk does not go by, a kind without one, a record that is cut off */
	put_kernels(bytes, texts, 3);
	lib.sizes[10] = 208;
	CHECK_U64(cupti_names_keep(&lib, bytes, 3 * 216), 0);
	put_kernels(bytes, texts, 2);
	memcpy(bytes + 216, &call, sizeof(call));
	CHECK_U64(cupti_names_keep(&lib, bytes, 216 + 40), 0);
	lib.sizes[10] = 0;
	put_kernels(bytes, texts, 1);
	CHECK_U64(cupti_names_keep(&lib, bytes, 216), 0);
	lib.sizes[10] = 216;
	put_kernels(bytes, texts, 2);
	CHECK_U64(cupti_names_keep(&lib, bytes, 216 + 100), 0);
	free(bytes);
}

/* ---- plans ---- */

/* The mask has no times, no ids that differ each time, no padding. */
void test_cupti_plan_mask(void)
{
	struct cupti_lib lib = { .api_version = 130001, .sizes = { [10] = 216, [5] = 40 } };
	static _Alignas(8) uint8_t record[LAYOUT_WORDS * 8];
	const struct cupti_family *f;
	const struct cupti_layout *p;

	cupti_layouts_open(&lib, UINT32_MAX);
	f = cupti_family_of(CUPTI_KERNEL, record);
	if (!CHECK(f != NULL))
		return;
	p = cupti_layout_of(f, record, 0);
	CHECK_U64(p->mask[16 / 8] | p->mask[24 / 8], 0); /* start, end */
	CHECK_U64(p->mask[96 / 8], 0);                   /* gridId */
	CHECK_U64(p->mask[88 / 8], 0xffffffff);          /* localMemoryTotal; not correlationId */
	CHECK_U64(p->mask[104 / 8], UINT64_MAX);         /* name */
	CHECK_U64(p->mask[112 / 8], 0);                  /* reserved0 */
	CHECK_U64(p->mask[0], UINT64_C(0xffffffff00000000)); /* not the kind; registers ... */
	CHECK_U64(p->mask[208 / 8], 0xff);                   /* isDeviceLaunched, not its padding */
	CHECK_U64(p->arg_count, 1);
	CHECK(cupti_family_of(CUPTI_KERNEL_SERIAL, record) == f);
	CHECK(cupti_family_of(12, record) == NULL);
	CHECK(cupti_family_of(1u << 31, record) == NULL);
	CHECK(cupti_layout_of(cupti_family_of(5, record), record, 0)->wanted);
	cupti_layouts_open(&lib, 1u << KIND_KERNEL);
	CHECK(!cupti_layout_of(cupti_family_of(5, record), record, 0)->wanted);
}

/* ---- kinds ---- */

static int refused_kind;
static unsigned enabled_order[64], enabled_count;

static int enable(int kind)
{
	enabled_order[enabled_count++ % 64] = (unsigned)kind;
	return kind == refused_kind ? CUPTI_NO_PRIVILEGE : CUPTI_OK;
}

static unsigned place_of(unsigned kind)
{
	unsigned i;

	for (i = 0; i < enabled_count && enabled_order[i] != kind; i++)
		;
	return i;
}

void test_cupti_kinds(void)
{
	struct cupti_lib lib = { .enable = enable, .disable = enable };
	struct cupti_choice choice = { .kinds_mask = UINT32_MAX };
	struct cupti_kinds kinds;
	struct buf b;

	enabled_count = 0;
	cupti_kinds_enable(&lib, &choice, &kinds);
	CHECK_U64(kinds.refusal, CUPTI_OK);
	CHECK(kinds.on[10] && kinds.on[1] && kinds.on[2] && kinds.on[22] && kinds.on[5]);
	CHECK(!kinds.on[49] && !kinds.on[51] && !kinds.on[3]);
	CHECK(place_of(5) < place_of(10) && place_of(1) < place_of(10));
	choice.kinds_mask = 1u << KIND_KERNEL;
	choice.memory = true;
	choice.graph_level = true;
	cupti_kinds_enable(&lib, &choice, &kinds);
	CHECK(kinds.on[10] && kinds.on[1] && kinds.on[2] && kinds.on[49] && kinds.on[51]);
	CHECK(!kinds.on[5] && !kinds.on[38]);
	choice = (struct cupti_choice){ .kinds_mask = 1u << KIND_STEP | 1u << KIND_RANGE };
	refused_kind = 10;
	choice.kinds_mask = UINT32_MAX;
	cupti_kinds_enable(&lib, &choice, &kinds);
	CHECK_U64(kinds.refusal, CUPTI_OK); /* copies are recorded */
	CHECK_U64(kinds.results[10], CUPTI_NO_PRIVILEGE);
	buf_init(&b, 4096);
	cupti_kinds_put_json(&kinds, &b);
	CHECK(strstr(buf_text(&b), "\"off\":{\"10\":35}") != NULL);
	buf_release(&b);
	refused_kind = 0;
}

/* ---- sentences ---- */

void test_cupti_sentences(void)
{
	struct cupti_lib lib = { 0 };
	char room[160], text[16];

	CHECK(strstr(cupti_result_message(&lib, 35, room),
		     "NVreg_RestrictProfilingToAdminUsers=0"));
	CHECK(strstr(cupti_result_message(&lib, 39, room), "another tool"));
	CHECK(strstr(cupti_result_message(&lib, 4711, room), "4711"));
	CHECK(cupti_fault_message(17, 0, 0) != NULL);
	CHECK(cupti_fault_message(22, 0, 0) == NULL);
	CHECK(cupti_fault_message(130301, FAULT_ANY, 0) == NULL);
	CHECK(strstr(cupti_fault_message(130200, 0, 0), "13.2"));
	CHECK(cupti_fault_message(130001, 0, 0) == NULL);
	CHECK(cupti_fault_message(130001, FAULT_GRAPHS, 0) == NULL);
	CHECK(cupti_fault_message(130001, FAULT_GRAPHS | FAULT_SECOND_WINDOW, 0) != NULL);
	CHECK(cupti_fault_message(130001, FAULT_CLOCK, 0) != NULL);
	CHECK(!cupti_can_finalize(22));
	CHECK(!cupti_can_finalize(130000));
	CHECK(cupti_can_finalize(26));
	CHECK(cupti_can_finalize(130001));
	cupti_version_text(22, text);
	CHECK_STR(text, "12.4");
	cupti_version_text(130202, text);
	CHECK_STR(text, "13.2");
	cupti_version_text(19, text);
	CHECK_STR(text, "API 19");
}

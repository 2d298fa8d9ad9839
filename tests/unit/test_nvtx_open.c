/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/texts.h"
#include "collector/session/thread_state.h"
#include "collector/probe/nvtx/names.h"
#include "collector/probe/nvtx/open.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void say(struct nvtx_draft *d, uint32_t domain, const char *text)
{
	nvtx_draft_init(d, domain);
	memcpy(nvtx_draft_text_space(d), text, strlen(text));
	nvtx_draft_text(d, strlen(text));
}

static const char *text_of(const uint8_t *bytes)
{
	static char out[NVTX_TEXT_MAX + 1];
	struct nvtx_tail tail;

	memcpy(&tail, bytes, sizeof(tail));
	memcpy(out, bytes + sizeof(tail), tail.text_len);
	out[tail.text_len] = '\0';
	return out;
}

static struct nvtx_stack *new_stack(void)
{
	struct nvtx_stack *s = nvtx_stack_new();

	CHECK(s != NULL);
	return s;
}

static void free_stack(struct nvtx_stack *s)
{
	munmap(s, sizeof(*s));
}

/* The text of what was popped, or "". */
static const char *pop(struct nvtx_stack *s, uint32_t domain, uint32_t level)
{
	uint64_t begin = 0;

	return nvtx_stack_pop(s, domain, level, &begin) ? text_of(s->draft.bytes) : "";
}

static bool push(struct nvtx_stack *s, uint32_t domain, uint32_t level, const char *text)
{
	say(&s->draft, domain, text);
	return nvtx_stack_push(s, level, 100 + level);
}

void test_nvtx_stack_domains(void)
{
	struct nvtx_stack *s = new_stack();

	if (!s)
		return;
	CHECK_STR(pop(s, 0, 0), "");
	push(s, 0, 0, "a0");
	push(s, 1, 0, "b0");
	push(s, 0, 1, "a1");
	push(s, 1, 1, "b1");
	/* each domain nests for itself */
	CHECK_STR(pop(s, 0, 1), "a1");
	CHECK_U64(s->depth, 4); /* below another one's */
	CHECK_STR(pop(s, 1, 1), "b1");
	CHECK_U64(s->depth, 2);
	push(s, 1, 1, "b1 again, and longer than the one before it was");
	CHECK_STR(pop(s, 0, 0), "a0");
	CHECK_STR(pop(s, 1, 1), "b1 again, and longer than the one before it was");
	CHECK_STR(pop(s, 1, 0), "b0");
	CHECK_U64(s->depth, 0);
	CHECK_U64(s->used, 0);
	free_stack(s);
}

/* Pushed while nothing was kept: the levels say what belongs together. */
void test_nvtx_stack_levels(void)
{
	struct nvtx_stack *s = new_stack();
	uint64_t lost = nvtx_lost();
	unsigned i;

	if (!s)
		return;
	push(s, 0, 5, "level 5");
	CHECK_STR(pop(s, 0, 6), ""); /* its push was not seen */
	CHECK_STR(pop(s, 0, 5), "level 5");
	CHECK_STR(pop(s, 0, 4), "");
	push(s, 0, 7, "a leftover");
	CHECK_STR(pop(s, 0, 2), "");
	CHECK_STR(pop(s, 0, 7), ""); /* forgotten: what is below it was popped */
	nvtx_stack_clear(s);
	CHECK_U64(s->depth, 0);
	for (i = 0; i < NVTX_DEPTH + 5; i++)
		CHECK(push(s, 0, i, "deep") == (i < NVTX_DEPTH));
	CHECK_U64(nvtx_lost() - lost, 5);
	for (i = NVTX_DEPTH + 5; i > 0; i--)
		CHECK_STR(pop(s, 0, i - 1), i > NVTX_DEPTH ? "" : "deep");
	CHECK_U64(s->used, 0);
	free_stack(s);
}

/* A range that is open at a window's end keeps the length of a long tail. */
void test_nvtx_open_record(void)
{
	const struct tick_span window = { .begin = 10, .end = 100 };
	struct ring_record r;

	CHECK(nvtx_open_record(&r, &window, 20, 7, 3, 340));
	CHECK_U64(r.more, 340);
	CHECK_U64(r.name, 3);
}

void test_nvtx_stack_texts(void)
{
	struct nvtx_stack *s = new_stack();
	char text[NVTX_TEXT_MAX + 1];
	uint64_t lost = nvtx_lost();
	unsigned kept = 0;

	if (!s)
		return;
	memset(text, 'x', NVTX_TEXT_MAX);
	text[NVTX_TEXT_MAX] = '\0';
	while (kept < 100 && push(s, 0, kept, text))
		kept++;
	CHECK_U64(kept, NVTX_TAILS / (4095 + 16 + 17)); /* full, which is counted */
	CHECK_U64(nvtx_lost() - lost, 1);
	CHECK_STR(pop(s, 0, kept - 1), text);
	free_stack(s);
}

void test_nvtx_draft_pieces(void)
{
	static struct nvtx_draft d;
	struct nvtx_payload_header payload;
	uint64_t lost = nvtx_lost();
	uint8_t *at;
	size_t i;

	nvtx_draft_init(&d, 0);
	d.name = 3;
	CHECK_U64(nvtx_draft_more(&d), 0); /* a name says all */
	at = nvtx_draft_add_payload(&d, 77, 5);
	if (!CHECK(at != NULL))
		return;
	memcpy(at, "abcde", 5);
	memcpy(nvtx_draft_extra(&d, 3), "fgh", 3);
	CHECK_U64(nvtx_draft_more(&d), 2); /* 16 + 16 + 8 bytes */
	memcpy(&payload, d.bytes + sizeof(struct nvtx_tail), sizeof(payload));
	CHECK(payload.schema == 77 && payload.size == 5 && payload.extra == 3);
	CHECK_MEM(d.bytes + sizeof(struct nvtx_tail) + sizeof(payload), "abcdefgh", 8);
	CHECK(!nvtx_draft_add_payload(&d, 1, RING_TAIL_MAX));
	CHECK(!nvtx_draft_add_payload(&d, 1, SIZE_MAX));
	CHECK(!nvtx_draft_extra(&d, RING_TAIL_MAX));
	CHECK_U64(nvtx_lost() - lost, 3);
	for (i = 0; i < 300; i++)
		nvtx_draft_add_payload(&d, 1, 1);
	CHECK_U64(nvtx_draft_tail(&d)->payloads, 255);
	CHECK(nvtx_draft_more(&d) <= 255);
}

/* What was told: names of the ranges and their flags. */
static char last_window[2000];
static unsigned attribute_count;

static void put(struct thread_state *thread, const struct ring_record *r, const void *tail,
		void *arg)
{
	size_t len = strlen(last_window);

	attribute_count++;
	snprintf(last_window + len, sizeof(last_window) - len, "%.99s:%llu-%llu:%u ",
		 r->more ? text_of(tail) : "", (unsigned long long)r->begin,
		 (unsigned long long)r->end, r->flags & ~RING_NVTX);
}

void test_nvtx_stack_tell(void)
{
	const struct tick_span window = { 101, 110 };
	struct nvtx_stack *s = new_stack();

	if (!s)
		return;
	last_window[0] = '\0';
	push(s, 0, 0, "early"); /* begins at 100 */
	push(s, 1, 9, "other"); /* 109 */
	push(s, 0, 10, "late"); /* 110: not in this window any more */
	nvtx_stack_put_open(s, NULL, &window, put, NULL);
	CHECK_STR(last_window, "early:101-110:3 other:109-110:2 ");
	CHECK_STR(pop(s, 0, 0), "early"); /* nothing was changed */
	free_stack(s);
}

void test_nvtx_started(void)
{
	static struct nvtx_draft d;
	const struct tick_span window = { 150, 200 };
	struct nvtx_ended e = { 0, 0 };
	uint64_t a, b;

	nvtx_started_clear();
	last_window[0] = '\0';
	say(&d, 3, "first");
	a = nvtx_started_put(&d, UINT64_C(1) << 32 | 1, 77, 100, 4);
	say(&d, 0, "second");
	b = nvtx_started_put(&d, UINT64_C(1) << 32 | 2, 78, 160, 4);
	CHECK(a && b && a != b && a >> NVTX_SERIAL_BITS);
	nvtx_started_put_open(5, &window, put, NULL);
	CHECK_STR(last_window, "first:150-200:3 second:160-200:2 ");
	nvtx_started_put_open(5, &window, put, NULL); /* once */
	CHECK_STR(last_window, "first:150-200:3 second:160-200:2 ");
	memset(&d, 0xff, sizeof(d.word));
	CHECK(nvtx_started_take(a, &d, &e));
	CHECK_STR(text_of(d.bytes), "first");
	CHECK_U64(nvtx_draft_tail(&d)->tid, 77);
	CHECK_U64(d.word, 3 | 1 << NVTX_WORD_STARTED);
	CHECK(e.begin == 100 && e.last_window == 5);
	CHECK(!nvtx_started_take(a, &d, &e)); /* twice */
	CHECK(!nvtx_started_take(0, &d, &e));
	CHECK(!nvtx_started_take(UINT64_MAX, &d, &e));
	CHECK(!nvtx_started_take(b + 1, &d, &e));
	CHECK(nvtx_started_take(b, NULL, &e));
}

void test_nvtx_started_ceiling(void)
{
	static struct nvtx_draft d;
	static uint64_t ids[NVTX_STARTED + 10];
	static char text[NVTX_TEXT_MAX + 1];
	uint64_t lost = nvtx_lost(), i, kept = 0;
	struct nvtx_ended e;

	nvtx_started_clear();
	memset(text, 'y', NVTX_TEXT_MAX);
	for (i = 0; i < NVTX_STARTED + 10; i++) {
		say(&d, 0, text);
		ids[i] = nvtx_started_put(&d, i + 1, 1, i, 0);
		kept += ids[i] >> NVTX_SERIAL_BITS != 0;
	}
	CHECK_U64(kept, NVTX_STARTED);
	CHECK_U64(nvtx_lost() - lost, 10);
	CHECK(nvtx_started_take(ids[17], &d, &e));
	CHECK_U64(e.begin, 17);
	CHECK_U64(strlen(text_of(d.bytes)), NVTX_STARTED_BYTES - sizeof(struct nvtx_tail));
	nvtx_started_clear();
	CHECK(!nvtx_started_take(ids[18], &d, &e));
}

/* Ranges that come and go on three threads while a fourth tells what is open. */
static struct nvtx_stack *busy;
static _Atomic bool stop;

static void *come_and_go(void *arg)
{
	static const char *const names[] = { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
					     "bbbbbbbbbbbbbbbbb", "c" };
	uint64_t number = (uint64_t)(uintptr_t)arg, serial = number << 32, id;
	static struct nvtx_draft drafts[4];
	struct nvtx_draft *d = &drafts[number];
	struct nvtx_ended e;
	unsigned i, bad = 0;

	for (i = 0; i < 30000; i++) {
		say(d, 0, names[i % 3]);
		id = nvtx_started_put(d, ++serial, 1, i, 0);
		if (number == 1) {
			push(busy, 0, 0, names[i % 3]);
			push(busy, 1, 0, names[(i + 1) % 3]);
			bad += strcmp(text_of(busy->draft.bytes), names[(i + 1) % 3]) != 0;
			pop(busy, 0, 0);
			pop(busy, 1, 0);
		}
		bad += !nvtx_started_take(id, d, &e) || e.begin != i;
	}
	return (void *)(uintptr_t)bad;
}

static void check_text(struct thread_state *thread, const struct ring_record *r, const void *tail,
		       void *arg)
{
	char text[64];
	struct nvtx_tail t;
	size_t i;

	memcpy(&t, tail, sizeof(t));
	if (!CHECK(t.text_len < sizeof(text)))
		return;
	memcpy(text, (const char *)tail + sizeof(t), t.text_len);
	for (i = 1; i < t.text_len; i++)
		if (text[i] != text[0])
			CHECK(!"a text that is of two");
	attribute_count++;
}

static void *tell_all(void *arg)
{
	const struct tick_span window = { 0, UINT64_MAX };
	uint64_t number = 0;

	while (!stop) {
		nvtx_stack_put_open(busy, NULL, &window, check_text, NULL);
		nvtx_started_put_open(++number, &window, check_text, NULL);
	}
	return NULL;
}

void test_nvtx_open_threads(void)
{
	pthread_t threads[3], teller;
	void *bad;
	size_t i;

	busy = new_stack();
	if (!busy)
		return;
	CHECK(names_open()); /* its table is in the arena */
	nvtx_started_clear();
	stop = false;
	pthread_create(&teller, NULL, tell_all, NULL);
	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, come_and_go, (void *)(uintptr_t)(i + 1));
	for (i = 0; i < 3; i++) {
		pthread_join(threads[i], &bad);
		CHECK_U64((uintptr_t)bad, 0);
	}
	stop = true;
	pthread_join(teller, NULL);
	free_stack(busy);
}

/* A handler that comes over a fork() gets no name, and leaves the fork its lock. */
void test_nvtx_names_in_fork(void)
{
	nvtx_names_before_fork();
	CHECK_U64(nvtx_domain_find(name_find("of a handler")), NVTX_DOMAINS - 1);
	CHECK(!nvtx_names_lock());
	nvtx_names_unlock();
	CHECK(nvtx_domain_find(name_find("of a handler")) < NVTX_DOMAINS - 1);
	CHECK(nvtx_names_lock());
	nvtx_names_unlock();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/arena.h"
#include "collector/config/config.h"
#include "collector/session/internal.h"
#include "collector/store/store.h"
#include "collector/api/tacho.h"
#include "collector/probe/nvtx/calls.h"
#include "collector/probe/nvtx/open.h"
#include "collector/probe/probe.h"
#include "collector/store/writer.h"
#include "schemas/log/tables.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a store of a file ---- */

static enum status store_put(struct store *s, unsigned kind, size_t len)
{
	static uint8_t bytes[LOG_BLOCK_BYTES];

	return s->type->put(s, kind, bytes, len, NULL);
}

void test_store_file_limit(void)
{
	struct store_place place = { .host = "node1", .rank = 3, .pid = 77, .max_bytes = 100000 };
	struct folder folder;
	struct store *s;
	struct error err;
	struct stat st;
	char deep[128];
	int i;

	folder_make(&folder);
	snprintf(deep, sizeof(deep), "%s/a/b", folder.folder);
	place.folder = deep;
	if (!CHECK_OK(store_file.open(&s, &place, &err), &err))
		return;
	CHECK(store_put(s, 0, LOG_FILE_HEADER_BYTES) == ST_OK);
	for (i = 0; store_put(s, LOG_EVENTS, 10000) == ST_OK && i < 100; i++)
		;
	/* room is kept back for what closes the log */
	CHECK_U64(i, 7);
	CHECK(store_put(s, LOG_EVENTS, 1) == ST_CEILING); /* no holes */
	CHECK(store_put(s, LOG_LOSSES, 500) == ST_OK);
	CHECK(store_put(s, LOG_END, 24000) == ST_OK);
	CHECK(store_put(s, LOG_NAMES, 24000) == ST_CEILING);
	CHECK_U64(s->type->bytes(s), 16 + 70000 + 24500);
	s->type->close(s);
	if (CHECK(stat(folder_path(&folder, "a/b/node1.r3.p77.0.tacho"), &st) == 0))
		CHECK_U64(st.st_size, 16 + 70000 + 24500);
	/* a name that is taken is left alone */
	if (CHECK_OK(store_file.open(&s, &place, &err), &err))
		s->type->close(s);
	CHECK(stat(folder_path(&folder, "a/b/node1.r3.p77.1.tacho"), &st) == 0);
	folder_remove(&folder);
}

void test_store_file_refused(void)
{
	struct store_place place = { .folder = "/proc/no/such", .host = "x", .pid = 1 };
	struct store *s;
	struct error err;

	CHECK(store_file.open(&s, &place, &err) == ST_IO);
	CHECK(strstr(err.text, "/proc/no/such") != NULL);
}

/* ---- writer and session, with a watch that makes what it likes ---- */

static _Atomic int opened, begun, ended, closed_windows;
static _Atomic uint64_t wanted_rows;
static uint64_t rows_put;

static enum status fake_open(const struct config *config, struct error *err)
{
	opened++;
	return ST_OK;
}

static enum status fake_begin(uint64_t now_ns, struct error *err)
{
	begun++;
	return ST_OK;
}

static void fake_end(uint64_t now_ns, uint64_t deadline_ns)
{
	ended++;
}

static unsigned fake_drain(struct writer *w, uint64_t now_ns)
{
	struct track track = { .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID, .id = 7 };
	struct event_desc desc = { .kind = KIND_MARK };
	struct event e = { .begin_ns = now_ns, .end_ns = now_ns };

	if (rows_put == wanted_rows)
		return 0;
	desc.track = writer_track(w, &track);
	desc.name = writer_name(w, "made up", 7);
	for (; rows_put < wanted_rows; rows_put++) {
		e.number = rows_put;
		writer_put(w, &e, writer_desc(w, &desc));
	}
	writer_put(w, &e, 0); /* over a ceiling */
	writer_lose(w, LOSS_RING, 5);
	return 0;
}

static void fake_close_window(struct writer *w, uint64_t window)
{
	closed_windows++;
}

static const struct probe_type fake = {
	.name = "fake",
	.help = "for this test",
	.open = fake_open,
	.begin = fake_begin,
	.end = fake_end,
	.drain = fake_drain,
	.close_window = fake_close_window,
};

struct told {
	uint64_t events, told, ring, ceiling;
	uint32_t windows, anchors;
	bool whole, has_name;
};

static void read_log(const char *path, struct told *told)
{
	struct log_translation *x;
	struct log_block block;
	struct trace *t;
	size_t len, at = LOG_FILE_HEADER_BYTES, skipped;
	uint8_t *bytes = folder_read(path, &len);

	memset(told, 0, sizeof(*told));
	trace_new(&t, 1 << 20, NULL);
	log_translation_new(&x, t, 1 << 20, NULL);
	while (at < len &&
	       log_find_block(bytes + at, len - at, at, &block, &skipped, NULL) == ST_OK) {
		if (block.kind == LOG_EVENTS)
			told->events += block.rows;
		else
			CHECK(log_take_table(x, &block, bytes + at + LOG_HEADER_BYTES, NULL) ==
			      ST_OK);
		at += skipped + LOG_HEADER_BYTES + block.size;
	}
	told->whole = log_translation_ended(x, &told->told);
	log_translation_finish(x);
	told->windows = trace_count(t, TRACE_WINDOWS);
	told->anchors = trace_count(t, TRACE_ANCHORS);
	told->ring = trace_lost(t, 0, LOSS_RING);
	told->ceiling = trace_lost(t, 0, LOSS_CEILING);
	told->has_name = trace_find_name(t, "made up", 7) != 0;
	log_translation_free(x);
	trace_free(t);
	free(bytes);
}

static size_t files_in(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	size_t count = 0;

	while (d && (e = readdir(d)) != NULL)
		count += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return count;
}

static const char *log_path(struct folder *folder, unsigned n)
{
	char name[128];

	snprintf(name, sizeof(name), "%s.rx.p%d.%u.tacho", session_config()->host, getpid(), n);
	return folder_path(folder, name);
}

static bool configure(struct config *config, const char *folder)
{
	char out[128], *envp[] = { "TACHO_WINDOW=signal", "TACHO_SAMPLE=none", out, NULL };
	struct error err;

	snprintf(out, sizeof(out), "TACHO_OUT=%s", folder);
	return CHECK_OK(config_read(config, envp, &err), &err);
}

static const struct probe_type *const probes[] = { &fake, NULL };

static bool take_arena(int fd)
{
	return true;
}

static bool is_gone(void)
{
	return false;
}

static void *run_writer(void *config)
{
	static const struct writer_program who = { .command = "unit", .is_gone = is_gone };
	struct writer_program program = who;

	program.pid = (uint32_t)getpid();
	while (!session_has_begun())
		session_sleep(1000000);
	writer_run(config, probes, &program);
	return NULL;
}

/* As where a handler interrupts the thread, which has not seen a change of the window. */
static void enter_unseen(struct thread_state *mine)
{
	session_enter();
	atomic_store(&mine->own->agreed_word, 0);
}

/* Ranges that begin or end while the thread itself holds the lock. */
static void check_ranges_without_lock(struct thread_state *mine)
{
	const struct nvtx_event event = nvtx_event_of_text(NVTX_MESSAGE_ASCII, "range");
	uint64_t before = atomic_load(&mine->ring.lost);

	CHECK_U64((unsigned)nvtx_push(&event), 0);
	CHECK_U64((unsigned)nvtx_push(&event), 1);
	tacho_range_push("range");
	const struct nvtx_stack *stack = thread_nvtx(mine);
	CHECK(stack && stack->depth == 2 && mine->depth == 1);
	enter_unseen(mine);
	CHECK_U64((unsigned)nvtx_pop(0, NULL, 0), 1);
	tacho_range_pop();
	session_leave();
	CHECK(stack->depth == 1 && mine->depth == 0);
	CHECK_U64(atomic_load(&mine->ring.lost), before + 2);

	/* its end is that of no range around it */
	tacho_range_push("outer");
	enter_unseen(mine);
	tacho_range_push("range");
	session_leave();
	tacho_range_pop();
	CHECK_U64(mine->depth, 1);
	tacho_range_pop();
	CHECK_U64((unsigned)nvtx_pop(0, NULL, 0), 0);
	CHECK(stack->depth == 0 && mine->depth == 0);
}

/* One test: there is one session in a process, and its end is for good. */
void test_writer_windows_to_logs(void)
{
	static struct config config;
	struct folder folder;
	struct told told;
	pthread_t thread;

	folder_make(&folder);
	if (!configure(&config, folder.folder))
		return;
	CHECK_U64((unsigned)tacho_state(), TACHO_OFF);
	arena_forked(false); /* the arena of tests before has been handed to nobody */
	arena_introduce_by(take_arena);
	session_init(&config, NULL);
	pthread_create(&thread, NULL, run_writer, &config);
	CHECK_U64((unsigned)tacho_state(), TACHO_ARMED);
	tacho_stop(); /* nothing to stop */
	CHECK_U64(session_ignored(), 1);

	/* a window in which nothing happens leaves no file */
	tacho_start();
	CHECK_U64((unsigned)tacho_state(), TACHO_RECORDING);
	tacho_start();
	CHECK_U64(session_ignored(), 2);
	tacho_flush();
	tacho_stop();
	CHECK_U64((unsigned)tacho_state(), TACHO_ARMED);
	CHECK(opened == 1 && begun == 1 && ended == 1 && closed_windows == 1);
	CHECK_U64(files_in(folder.folder), 0);

	/* a log is whole when stop returns; the next window begins a new one */
	tacho_start();
	wanted_rows = 20000;
	tacho_flush();
	CHECK_U64(files_in(folder.folder), 1);
	read_log(log_path(&folder, 0), &told);
	CHECK(told.events == 20000 && !told.whole);
	tacho_stop();
	read_log(log_path(&folder, 0), &told);
	CHECK(told.whole && told.has_name);
	CHECK_U64(told.told, 20000);
	CHECK_U64(told.ring, 5);
	CHECK_U64(told.ceiling, 1);
	CHECK_U64(told.windows, 1);
	CHECK(told.anchors >= 2);
	tacho_start();
	struct thread_state *mine = thread_mine;
	session_enter(); /* as where a handler interrupts it */
	thread_mine = NULL;
	tacho_mark("in a handler");
	thread_mine = mine;
	session_leave();
	CHECK_U64(atomic_load(&session_threads()->ring.lost), 1);
	check_ranges_without_lock(mine);
	wanted_rows = 20010;
	session_exit(2000000000);
	pthread_join(thread, NULL);
	CHECK_U64((unsigned)tacho_state(), TACHO_OFF);
	read_log(log_path(&folder, 1), &told);
	CHECK(told.whole && told.told == 10);
	CHECK(begun == 3 && ended == 3);
	tacho_start();
	CHECK_U64((unsigned)tacho_state(), TACHO_OFF);
	folder_remove(&folder);
}

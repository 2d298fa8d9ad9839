/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/arena.h"
#include "collector/arena/texts.h"
#include "collector/session/internal.h"
#include "collector/session/thread_state.h"
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* An arena is a process's for good: each of these runs in a child. */
static bool in_child(bool (*run)(void))
{
	int status = 0;

	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		arena_forked(false);
		_exit(!run());
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

static int kept_fd = -1;

static bool keep(int fd)
{
	kept_fd = dup(fd);
	return kept_fd >= 0;
}

/* An arena with three names and a thread that has put a range, as another process gets it. */
static struct thread_state *make_arena(void)
{
	arena_introduce_by(keep);
	arena_limit(4 << 20, 1 << 20);
	if (!names_open() || name_find("one") != name_find("one") || !name_find("two"))
		return NULL;
	struct thread_state *thread = thread_new(4096);
	if (!thread)
		return NULL;
	arena()->threads = arena_offset(arena(), thread);
	thread->records = true;
	thread_push(thread, name_find("two"), RANGE_PHASE);
	thread_pop(thread);
	return kept_fd >= 0 ? thread : NULL;
}

static bool adopts(void)
{
	size_t len;

	return arena_adopt(kept_fd, false) && names_adopt() && threads_are_sound() &&
	       !strcmp(name_text(name_lookup("two", 3), &len), "two");
}

static bool reads_range(void)
{
	static uint8_t tail[RING_TAIL_MAX];
	struct ring_record r;
	size_t len;

	if (!adopts())
		return false;
	struct thread_state *thread = arena_at(arena(), arena()->threads);
	return ring_poll(&thread->ring) == 1 && ring_next(&thread->ring, true, &r, tail) &&
	       r.kind == KIND_RANGE && !strcmp(name_text(r.name, &len), "two");
}

static bool is_handed_over(void)
{
	return make_arena() && in_child(reads_range) && in_child(adopts);
}

void test_arena_handed_over(void)
{
	CHECK(in_child(is_handed_over));
}

static bool begins_with_unclosed(void)
{
	static struct config config;

	return adopts() && session_adopt(&config, false) == 2;
}

/* Window 2 has ended, and a drain of its rows was stored, but not what was open at its end. */
static bool takes_unclosed(void)
{
	if (!make_arena())
		return false;
	struct session_shared *s = arena_at(arena(), ARENA_SESSION);
	for (uint64_t i = 1; i <= 3; i++)
		s->spans[i] = (struct tick_span){ 100 * i, 100 * i + 100 };
	arena()->window = 3;
	arena()->committed[0].until = 350;
	arena()->committed[0].closed = 1;
	return in_child(begins_with_unclosed);
}

void test_arena_window_unclosed(void)
{
	CHECK(in_child(takes_unclosed));
}

static bool damage_is_found(void)
{
	struct thread_state *thread = make_arena();
	bool good = thread != NULL;

	if (!good)
		return false;
	struct arena_header *a = arena();
	struct arena_header kept = *a;
	a->magic++;
	good &= !in_child(adopts);
	*a = kept;
	a->bytes++;
	good &= !in_child(adopts);
	*a = kept;
	a->threads = a->bytes - 64;
	good &= !in_child(adopts);
	*a = kept;
	thread->next = kept.threads; /* a ring of threads */
	good &= !in_child(adopts);
	thread->next = 0;
	thread->ring.bits = 30;
	good &= !in_child(adopts);
	thread->ring.bits = 7;
	return good & in_child(adopts);
}

void test_arena_damaged(void)
{
	CHECK(in_child(damage_is_found));
}

static bool child_has_own_names(void)
{
	uint32_t one = name_find("one"), fresh = name_find("of the child");
	size_t len;

	return one && one == name_lookup("one", 3) && fresh &&
	       !strcmp(name_text(fresh, &len), "of the child") && arena_is_mine();
}

static bool names_are_inherited(void)
{
	return make_arena() && in_child(child_has_own_names) && !name_lookup("of the child", 12);
}

/* The ids of a parent are valid in its child, and what the child adds is not its parent's. */
void test_arena_names_of_child(void)
{
	CHECK(in_child(names_are_inherited));
}

static bool exit_waits_for_no_zombie(void)
{
	const uint64_t hour_ns = UINT64_C(3600000000000);
	siginfo_t info;
	pid_t recorder = fork();

	if (recorder == 0)
		_exit(0);
	if (recorder < 0 || !make_arena() ||
	    waitid(P_PID, (id_t)recorder, &info, WEXITED | WNOWAIT) != 0)
		return false;
	session_runs_as((uint32_t)recorder);
	atomic_store(&arena()->begun, true);
	alarm(60);
	return !session_quit(hour_ns);
}

/* A recorder that ended at once, as one that cannot load its libraries, delays no exit. */
void test_arena_dead_recorder(void)
{
	CHECK(in_child(exit_waits_for_no_zombie));
}

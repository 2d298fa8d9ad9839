/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a step that does not end: the state of its process, and of the other processes. */
#include "collector/arena/arena.h"
#include "collector/arena/texts.h"
#include "collector/config/config.h"
#include "collector/probe/nvtx/open.h"
#include "collector/probe/nvtx/text.h"
#include "collector/recorder/recorder.h"
#include "collector/session/session.h"
#include "collector/store/writer.h"
#include "schemas/base/buf.h"
#include "schemas/base/quantity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MOST = 256 << 10, STACK_SECONDS = 10, NAME_MOST = 200 };

/* ---- watching, in the recorder ---- */

/* Returns the thread with the most steps of those that are in a step.  The program writes the
 * fields atomically at the same time. */
static struct thread_state *stepping(const struct arena_header *a)
{
	uint64_t at = atomic_load_explicit(&a->threads, memory_order_acquire);
	uint64_t most = a->bytes / sizeof(struct thread_state);
	struct thread_state *best = NULL;

	for (; at && most; most--) {
		if (at % _Alignof(struct thread_state) ||
		    at > a->bytes - sizeof(struct thread_state))
			return NULL;
		struct thread_state *thread = arena_at(a, at);
		if (GET_RELAXED(thread->step_open) &&
		    (!best || GET_RELAXED(thread->steps_done) > GET_RELAXED(best->steps_done)))
			best = thread;
		at = thread->next;
	}
	return best;
}

static bool is_mapped(struct recorded *r)
{
	struct stat st;

	if (r->watched)
		return true;
	/* If the file could be truncated while it is read, SIGBUS would end this process. */
	int seals = fcntl(r->arena, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(r->arena, &st) != 0 ||
	    st.st_size < ARENA_HEADER)
		return false;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, r->arena, 0);
	if (p == MAP_FAILED)
		return false;
	r->watched = p;
	r->watched_bytes = (size_t)st.st_size;
	return true;
}

void recorder_unwatch(struct recorded *r)
{
	if (r->watched)
		munmap((void *)(uintptr_t)r->watched, r->watched_bytes);
	r->watched = NULL;
}

bool recorder_hangs(struct recorded *r, uint64_t hang_ns, uint64_t now_ns)
{
	if (!is_mapped(r) || r->watched->bytes != r->watched_bytes)
		return false;
	const struct thread_state *thread = stepping(r->watched);
	uint64_t begin = thread ? GET_RELAXED(thread->step_begin) : 0;
	if (begin != r->step_begin) {
		r->step_begin = begin;
		r->since_ns = now_ns;
		r->is_told = r->was_told = false;
	}
	return begin && now_ns - r->since_ns >= hang_ns;
}

/* ---- reports, each in a separate process ---- */

/* Facts about a process for the last line of the report. */
struct standing {
	uint32_t rank, world_size;
	char collective[sizeof(
		((struct hang_texts *)0)->collective)]; /* "": it is in no collective */
};
struct telling {
	struct buf out;
	struct standing *standing;
	bool any; /* there is output for this thread */
};

static void put_open(struct thread_state *thread, const struct ring_record *r, const void *tail,
		     void *arg)
{
	struct telling *t = arg;
	const char *text;
	size_t len;

	if (r->kind == KIND_STEP)
		return;
	text = name_text(r->name, &len);
	if (!r->name && r->more) {
		struct nvtx_tail head;
		size_t room = r->more * RING_PLACE - sizeof(head);
		memcpy(&head, tail, sizeof(head));
		text = (const char *)tail + sizeof(head);
		len = head.text_len < room ? head.text_len : room;
	}
	const char *collective = nvtx_text_collective(text, len);
	if (collective)
		snprintf(t->standing->collective, sizeof(t->standing->collective), "%s",
			 collective);
	if (!t->any)
		buf_putf(&t->out, "tacho:   thread %u %.15s: ", thread->tid, thread->thread_name);
	buf_putf(&t->out, "%s%s %.*s", t->any ? ", in it " : "",
		 collective                  ? "collective"
		 : r->subkind == RANGE_PHASE ? "phase"
					     : "range",
		 (int)(len < NAME_MOST ? len : NAME_MOST), text);
	t->any = true;
}

static void put_threads(struct telling *t)
{
	const struct tick_span all = { 0, UINT64_MAX };

	for (struct thread_state *thread = session_threads(); thread;
	     thread = thread_next(thread)) {
		t->any = false;
		if (!GET_RELAXED(thread->dead))
			thread_put_open(thread, &all, put_open, t);
		if (t->any)
			buf_put_byte(&t->out, '\n');
	}
}

static bool is_python(uint32_t pid)
{
	char path[64], program[512];

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	ssize_t n = readlink(path, program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = '\0';
	return strstr(program, "python");
}

/*
 * By py-spy, which knows C frames too.  Where it is not installed, by the interpreter of the
 * program, which knows where its own structures have their fields; it only reads memory.
 */
static void become_reader(uint32_t pid)
{
	const char *hook = getenv("TACHO_HOOK");
	char number[16], script[PATH_MAX], python[64];

	snprintf(number, sizeof(number), "%u", pid);
	snprintf(python, sizeof(python), "/proc/%u/exe", pid);
	snprintf(script, sizeof(script), "%s/../_stacks.py", hook ? hook : "");
	unsetenv("LD_PRELOAD");
	execlp("py-spy", "py-spy", "dump", "--nonblocking", "--pid", number, (char *)NULL);
	if (hook)
		execl(python, "python", "-I", "-S", "-B", script, number, (char *)NULL);
	_exit(127);
}

/* What is said of the process; the exit status. */
static int read_stacks(uint32_t pid, struct buf *said)
{
	char part[4096];
	int ends[2], status = 0;
	ssize_t n;

	if (pipe(ends) != 0)
		return 127;
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		alarm(STACK_SECONDS);
		become_reader(pid);
	}
	close(ends[1]);
	while (child > 0 && (n = read(ends[0], part, sizeof(part))) > 0)
		buf_put(said, part, (size_t)n);
	close(ends[0]);
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
		       ? WEXITSTATUS(status)
		       : 1;
}

/* Copies a text for the writer, which may read `to` at any time: the first byte comes last. */
static void note(char *to, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	if (!len)
		return;
	memcpy(to + 1, text + 1, len - 1);
	memset(to + len, 0, size - len);
	atomic_store((_Atomic char *)to, text[0]);
}

/* Writes the lines of both readers as one, of the main thread first: "inner (file:line), outer
 * (file:line); Thread 7: inner ...". */
static void note_stacks(struct hang_texts *hang, const char *lines)
{
	static char out[sizeof(hang->stacks)];
	const char *at = strstr(lines, "Thread ");
	bool begins = true; /* a thread */
	size_t used = 0;

	for (size_t len; at && *at; at += len + (at[len] != '\0')) {
		size_t blanks = strspn(at, " "), left = sizeof(out) - used;
		int n = 0;

		len = strcspn(at, "\n");
		if (len > blanks && blanks)
			n = snprintf(out + used, left, "%s%.*s", begins ? "" : ", ",
				     (int)(len - blanks), at + blanks);
		else if (len && used)
			n = snprintf(out + used, left, "; %.*s: ", (int)len, at);
		begins = len ? !blanks : begins;
		used += (size_t)n < left ? (size_t)n : left - 1;
	}
	note(hang->stacks, sizeof(hang->stacks), out);
}

/* Writes the lines about a process as one: "step 2 had not ended for 1s; thread 7 python: ...". */
static void note_state(struct hang_texts *hang, const char *lines, const char *step)
{
	char out[sizeof(hang->state)];
	size_t used = (size_t)snprintf(out, sizeof(out), "%s", step);

	for (const char *at = lines + strcspn(lines, "\n"); *at; at += strcspn(at, "\n")) {
		at += strspn(at, "\n");
		at += !strncmp(at, "tacho:   ", 9) ? 9 : 0;
		if (*at && used < sizeof(out))
			used += (size_t)snprintf(out + used, sizeof(out) - used, "; %.*s",
						 (int)strcspn(at, "\n"), at);
	}
	note(hang->state, sizeof(hang->state), out);
}

/* Prints the Python stacks of a process, and copies them to `hang` (may be NULL). */
static void put_python(struct buf *out, uint32_t pid, struct hang_texts *hang)
{
	char *line, *rest = NULL;
	struct buf said;

	if (!is_python(pid))
		return;
	buf_init(&said, TEXT_MOST);
	int status = read_stacks(pid, &said);
	if (!status && hang)
		note_stacks(hang, buf_text(&said));
	if (status == 127)
		buf_put_text(out,
			     "tacho:   no Python stacks: neither py-spy nor the program's Python "
			     "can be run\n");
	else if (status)
		buf_put_text(out, "tacho:   no Python stacks:\n");
	for (line = strtok_r((char *)(uintptr_t)buf_text(&said), "\n", &rest);
	     line && status != 127; line = strtok_r(NULL, "\n", &rest))
		buf_putf(out, "tacho:   %.300s\n", line);
	buf_release(&said);
}

/* Sends the signal on which Python's faulthandler prints stacks, unless it would end the program.
 */
static void ask_for_stacks(struct buf *out, uint32_t pid, int number)
{
	char path[64], text[8192], *caught;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	caught = strstr(text, "\nSigCgt:");
	if (caught && strtoull(caught + sizeof("\nSigCgt:") - 1, NULL, 16) >> (number - 1) & 1 &&
	    kill((pid_t)pid, number) == 0)
		buf_putf(out, "tacho:   signal %d was sent: the program prints its stacks\n",
			 number);
	else
		buf_putf(out, "tacho:   signal %d was not sent: the program does not handle it\n",
			 number);
}

static void tell(struct recorded *r, bool hangs, uint64_t now_ns, struct standing *standing)
{
	static struct config config;
	struct telling t = { .standing = standing };
	char since[UNIT_TEXT], step[64];

	if (!recorder_read(r->arena, &config))
		return;
	buf_init(&t.out, TEXT_MOST);
	standing->rank = config_rank(&config).rank;
	standing->world_size = config_rank(&config).world_size;
	const struct thread_state *thread = stepping(arena());
	bool again = hangs &&
		     r->was_told; /* a rank that hangs later needs only what this one waits for */
	buf_put_text(&t.out, "tacho: ");
	if (standing->rank != RANK_UNKNOWN)
		buf_putf(&t.out, "rank %u, ", standing->rank);
	buf_putf(&t.out, "process %u: ", r->inner_pid);
	unit_format_time((now_ns - r->since_ns) / 1000000 * 1000000, since);
	if (!thread)
		buf_put_text(&t.out, "in no step\n");
	else
		buf_putf(&t.out, "step %llu %s %s\n",
			 (unsigned long long)GET_RELAXED(thread->step_number),
			 hangs ? "hangs: it has not ended for" : "is open for", since);
	put_threads(&t);
	if (hangs && thread && r->hang) {
		snprintf(step, sizeof(step), "step %llu had not ended for %s",
			 (unsigned long long)GET_RELAXED(thread->step_number), since);
		note(r->hang->collective, sizeof(r->hang->collective), standing->collective);
		note_state(r->hang, buf_text(&t.out), step);
	}
	if (hangs && !again)
		put_python(&t.out, r->pid, r->hang);
	if (hangs && !again && config.trigger_spec.stacks_signal)
		ask_for_stacks(&t.out, r->pid, config.trigger_spec.stacks_signal);
	(void)!write(STDERR_FILENO, buf_text(&t.out), again ? 0 : t.out.len);
	buf_release(&t.out);
}

/* ---- which rank waits for which ---- */

static void put_ranks(struct buf *out, const struct standing *all, size_t count, bool waits)
{
	const char *before = "";

	for (size_t i = 0; i < count; i++)
		if (all[i].rank != RANK_UNKNOWN && !all[i].collective[0] != waits) {
			buf_putf(out, "%s%u", before, all[i].rank);
			before = ", ";
		}
}

static void conclude(const struct standing *all, size_t count)
{
	const struct standing *waiting = NULL;
	size_t known = 0, absent = 0;
	struct buf out;

	for (size_t i = 0; i < count; i++) {
		known += all[i].rank != RANK_UNKNOWN;
		absent += all[i].rank != RANK_UNKNOWN && !all[i].collective[0];
		waiting = all[i].rank != RANK_UNKNOWN && all[i].collective[0] ? &all[i] : waiting;
	}
	if (!waiting || (!absent && waiting->world_size <= known))
		return;
	buf_init(&out, TEXT_MOST);
	buf_put_text(&out, "tacho: rank ");
	put_ranks(&out, all, count, true);
	buf_putf(&out, " waits in %s", waiting->collective);
	if (absent) {
		buf_put_text(&out, ", to which rank ");
		put_ranks(&out, all, count, false);
		buf_put_text(&out, " has not come");
	}
	if (waiting->world_size > known)
		buf_putf(&out, "%s %zu of %u ranks are not recorded here", absent ? ";" : ", and",
			 waiting->world_size - known, waiting->world_size);
	buf_put_byte(&out, '\n');
	(void)!write(STDERR_FILENO, buf_text(&out), out.len);
	buf_release(&out);
}

void recorder_tell_hang(struct recorded *all, size_t count, uint64_t hang_ns, uint64_t now_ns)
{
	size_t bytes = count * sizeof(struct standing);
	struct standing *standings =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (standings == MAP_FAILED)
		return;
	for (size_t i = 0; i < count; i++) {
		bool hangs = recorder_hangs(&all[i], hang_ns, now_ns);

		standings[i].rank = RANK_UNKNOWN;
		pid_t child = fork(); /* static state: one arena for each process */
		if (child == 0) {
			tell(&all[i], hangs, now_ns, &standings[i]);
			_exit(0);
		}
		while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	conclude(standings, count);
}

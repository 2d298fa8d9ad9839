/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory that a recorded process shares with its recorder: one mapping of a memfd or
 * file.
 *
 *	0          header     struct arena_header
 *	4096       session    the state of windows (session/internal.h)
 *	16384      texts      the table of texts.h
 *	...        areas      thread states and rings, as arena_alloc() returned them
 *
 * Data in it refers to other data by offsets, so that another process can map it at another
 * address.  The descriptor is closed as soon as it is mapped.  Core dumps do not contain it.
 *
 * The program maps only the parts that it needs at first, because mlockall() fails if a process has
 * mapped more than RLIMIT_MEMLOCK, which is 8 MiB for most users.  Mappings grow in place when more
 * is needed.  Therefore they lie far below those of the C library, where the address space is free.
 *
 * A forked child inherits the mapping but must not write to it.  A flag in memory of
 * arena_private(), which the kernel clears in children, tells whether this process owns the arena.
 * A child creates its own arena when it needs one.  A child that was created without
 * pthread_atfork() handlers, as by a bare clone(), notices by the same memory that it is new.  A
 * child that shares its parent's memory (CLONE_VM, vfork()) cannot be told from the parent without
 * a system call for each event.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
	ARENA_VERSION = 10,
	ARENA_SESSION = 4096,
	ARENA_HEADER = 16384,
	ARENA_PATH = 1024,
	ARENA_LOOKS = 64,
};
/* Tables of probes that exist once for each process. */
enum arena_table { ARENA_NVTX, ARENA_NVTX_STARTED, ARENA_HELPER, ARENA_TABLES };
#define ARENA_WHOLE UINT64_MAX
#define ARENA_MAGIC UINT64_C(0x316f686361742e2e) /* "..tacho1" */

struct arena_header {
	uint64_t magic;
	uint32_t version, pid;
	uint64_t bytes;                        /* size of the arena */
	_Atomic uint64_t used;                 /* offset of the first byte that is not allocated */
	_Atomic uint64_t threads;              /* offset of the newest thread state; 0: none */
	uint64_t texts;                        /* offset of the table of texts */
	_Atomic uint64_t tables[ARENA_TABLES]; /* offset of each table; 0: it does not exist */

	/* Another process converts ticks to time with these; only `point` and `points` change. */
	uint32_t tick_source;
	_Atomic uint32_t point; /* index of the valid element of `points` */
	uint64_t base_ns;
	struct {
		uint64_t tick, ns;
	} points[2]; /* the latest calibration point */

	/* Offset of the environment, in the form of /proc/PID/environ; 0: it is not stored. */
	_Atomic uint64_t environment;
	uint32_t environment_len;
	uint32_t command;           /* id of the command line in the table of texts.h */
	_Atomic uint64_t late_rank; /* value for `late_rank` of struct config */

	/* Number, begin and end (ticks) of the latest window; number 0: there was none, end 0: it
	 * is open. */
	_Atomic uint64_t window, window_begin, window_end;

	/*
	 * State of the log at the latest commit.  A store to `commit` makes one entry of
	 * `committed` valid, here and in each ring (ring.h): that of the number's parity.  Bytes of
	 * the log's file beyond `bytes` are not part of the log.
	 */
	_Atomic uint64_t commit;
	struct {
		uint64_t until;  /* tick; events that ended later are not in the log; 0: no limit is
				    known */
		uint64_t closed; /* number of the last window that is completely in a log */
		_Atomic uint64_t bytes; /* size of the log's file; ARENA_WHOLE: no log is open */
	} committed[2];
	/*
	 * `late` is the number of ranges and steps that were open at the end of a window on threads
	 * that make no further event.  Commit `late_commit` writes them.  If the writer is killed
	 * before that commit, they are lost.
	 */
	uint64_t late, late_commit;
	_Atomic uint32_t begun; /* the program has recorded an event */
	_Atomic uint32_t
		writer_died;       /* explicit calls of the program must not wait for the writer */
	_Atomic uint32_t has_cuda; /* the writer has found CUDA in the program */
	/* For arena_filters(): LOOK_CLOSED, LOOK_SILENT or 0, then questions and answers. */
	_Atomic uint64_t look_state, looks[ARENA_LOOKS];
	_Atomic uint64_t beat_ns; /* latest time at which the recorder ran; CLOCK_REALTIME, because
				   * no namespace shifts it */
	char log[ARENA_PATH];     /* path of the latest log; "": there is no log, or its path is too
				     long */
	char file[ARENA_PATH];    /* path of the arena's file; "": the file has no name */
};

/* Features that a kernel may lack, and the consequence if it does. */
/* clang-format off */
#define ARENA_NEEDS(X)                                                                             \
	X(MEMFD, "memfd", "memfd_create(): the rings are in a file of /dev/shm without a name")    \
	X(NOEXEC, "noexec", "MFD_NOEXEC_SEAL: the memory may be mapped as code")                   \
	X(SEALS, "seals", "file seals: the memory's size can be changed by who holds it")          \
	X(PLACE, "place", "MAP_FIXED_NOREPLACE: all memory is mapped at once, see mlockall()")     \
	X(WIPE, "wipe", "MADV_WIPEONFORK: a child of a bare clone() writes to its parent's rings") \
	X(PEER, "peer", "SO_PEERPIDFD: a program is found by its number")                          \
	X(PIDFD, "fd_open", "pidfd_open(): the recorder polls whether programs ended")             \
	X(READ, "readv", "process_vm_readv(): no Python stacks of a program that hangs")
/* clang-format on */
enum arena_need {
#define X(name, word, without) ARENA_##name,
	ARENA_NEEDS(X)
#undef X
		ARENA_NEED_COUNT,
};

/*
 * Makes later arenas of this process files FOLDER/HOST.pPID.TIME.rings, if arena_fits_in(folder,
 * bytes) when the arena is created.  Such a file outlives the program and its recorder if both are
 * killed.  Its lock (flock) is held as long as a process maps the file or has a descriptor that
 * comes from the program.  Both texts are borrowed.
 */
void arena_keep_in(const char *folder, const char *host, uint64_t bytes);
/* Returns whether the folder is on tmpfs and has at least `bytes` of free space. */
bool arena_fits_in(const char *folder, uint64_t bytes);
enum { ARENA_FILE = 10 << 20 }; /* initial size of such a file in bytes */
/* Removes the file of the arena with this descriptor, if it has one. */
void arena_remove_file(int fd);
/*
 * Sets the space for thread states and rings in arenas that are created later: `bytes` is the
 * limit, and `first` of them are mapped when the arena is created.
 */
void arena_limit(size_t bytes, size_t first);
/* For tests: makes this process act as if the kernel lacked the named features ("memfd,seals");
 * NULL: no feature. */
void arena_forbid(const char *words);
/* Notes whether the kernel has a feature; returns `works`. */
bool arena_note(enum arena_need need, bool works);
/* Returns whether a feature may be used. */
bool arena_allows(enum arena_need need);
/* Appends `title` and the features that arena_note() found missing, or `if_whole` if there are
 * none. */
void arena_doctor(struct buf *out, const char *title, const char *if_whole);

/*
 * Sets a function that is called with the descriptor of each new arena, before it is closed.  It
 * returns false if no recorder has taken the descriptor.
 */
void arena_introduce_by(bool (*introduce)(int fd));
/* Returns whether a recorder has received this process's arena. */
bool arena_is_introduced(void);
/*
 * Sets whether the process is early, that is before its first event.  An early arena is released
 * again if no recorder takes it, and arena_make() may create another one later.
 */
void arena_set_early(bool early);
bool arena_is_early(void);
/* Reason why no recorder has the arena. */
enum arena_refusal {
	REFUSED_MEMORY,
	REFUSED_SPACE,
	REFUSED_FILE_SIZE,
	REFUSED_DESCRIPTORS,
	REFUSED_RECORDER,
	REFUSED_FILTER,
	REFUSED_CLONE, /* forked while an event was being recorded */
};
/* Ensures that this process never creates an arena; makes no system call. */
void arena_stay_out(enum arena_refusal why);
/*
 * Asks the recorder whether this thread has more seccomp filters than the recorder.  If so, the
 * thread must not make system calls.  The question goes through the arena of this process, or
 * through that of its parent after a fork.  The function makes no system call.  An answer takes up
 * to LOOK_MS.  After LOOK_LIMIT_MS without one, later calls do not wait until the recorder has
 * looked again.  The child of a bare clone() does not know its number, so it asks about all
 * processes that map this arena.
 */
enum arena_filters { FILTERS_SAME, FILTERS_MORE, FILTERS_NO_ANSWER };
enum arena_filters arena_filters(void);
enum {
	LOOK_MS = 10,         /* the recorder looks at all arenas at this interval */
	LOOK_OFTEN_MS = 1,    /* interval after a question, because more questions usually follow */
	BEAT_MS = 100,        /* the recorder updates `beat_ns` at this interval */
	LOOK_LIMIT_MS = 1000, /* a question expires after this time; a recorder without a beat
			       * counts as dead */
};
/* arena_header.looks: the lower 32 bits are the number of the asking thread, 0 without a question;
 * the upper bits are the answer. */
#define LOOK_FILTERED (UINT64_C(1) << 32)
#define LOOK_PLAIN    (UINT64_C(2) << 32)
#define LOOK_CLOSED   (UINT64_C(4) << 32)  /* there will be no more answers */
#define LOOK_SILENT   (UINT64_C(8) << 32)  /* the latest question had no answer */
#define LOOK_ANY      (UINT64_C(16) << 32) /* a question about all processes with this arena */
#define LOOK_ANSWERS  (LOOK_FILTERED | LOOK_PLAIN)
/* Returns the latest reason; `*limit` is the resource limit (RLIMIT_...) that was too low. */
enum arena_refusal arena_refused(uint64_t *limit);
/*
 * Maps the arena of another process as the arena of this process: shared, so that each process sees
 * the stores of the other, or as a private copy.  Returns false if the file is not an arena.
 */
bool arena_adopt(int fd, bool is_shared);
/* Returns whether this process may write to the arena; false in a child until it has its own. */
bool arena_is_mine(void);
/* Size of the table of texts, in whole pages, and the two parts of it that are mapped at first. */
struct arena_texts {
	size_t bytes;
	struct {
		size_t at, bytes;
	} first[2]; /* first[0].at is 0 */
};
/*
 * Creates the arena of this process, unless it exists.  Returns false if memory is missing, or if
 * this process is a child that must not have an arena.
 */
bool arena_make(const struct arena_texts *texts);
/* Must be called in the child of fork().  `inside`: a signal handler forked while its thread was
 * changing the arena. */
void arena_forked(bool inside);
/*
 * Sets a function that the child of a bare clone() calls at its first event, through
 * arena_notice_clone(), which returns whether it did so.  The function must call arena_cloned(),
 * which frees all locks.  Without MADV_WIPEONFORK it is never called.
 */
void arena_when_cloned(void (*call)(void));
bool arena_notice_clone(void);
void arena_cloned(void);
/* In such a child, learns the id of this thread by a system call; returns false if it is known. */
bool arena_learn_number(void);
/* Returns the id of this thread (gettid()), in general without a system call. */
uint32_t arena_thread_number(void);
/* Must be called before fork(), and after it in both processes. */
void arena_before_fork(void);
void arena_after_fork(void);

/* Returns the mapped arena, which may be the parent's; NULL before the first arena_make(). */
struct arena_header *arena(void);
static inline void *arena_at(const struct arena_header *a, uint64_t offset)
{
	return (uint8_t *)(uintptr_t)a + offset;
}
static inline uint64_t arena_offset(const struct arena_header *a, const void *p)
{
	return (uint64_t)((const uint8_t *)p - (const uint8_t *)a);
}
/*
 * Allocates whole zeroed pages, which are never freed.  Returns their offset, or 0 if the arena is
 * full.  Takes no lock and makes no system call, unless the mapping must grow.
 */
uint64_t arena_alloc(size_t bytes);
/* Maps enough of the arena that a later arena_alloc(bytes) makes no system call. */
void arena_want(size_t bytes);
/*
 * Returns a table of this process's arena, and creates it, zeroed, if it does not exist.  Returns
 * NULL if the arena belongs to another process or is full.  Only one thread at a time may call it
 * for the same table.
 */
void *arena_table(enum arena_table which, size_t bytes);
/* Returns a table that exists, as in an adopted arena, or NULL. */
void *arena_table_there(enum arena_table which, size_t bytes);
/*
 * Maps `bytes` of the table of texts from `offset` on; the page before `offset` must be mapped.
 * Calls arena_filters() first if a system call could end the process.  Returns false if the pages
 * cannot be mapped.
 */
bool arena_open_pages(uint64_t offset, size_t bytes);

/*
 * Returns zeroed private pages, which the first call maps and stores in `*at`, or NULL without
 * memory.  It is for data that few programs need: mlockall() counts the whole data segment.  Any
 * thread may call it.
 */
void *arena_once(void *_Atomic *at, size_t bytes);
/* Returns zeroed private pages, which the kernel clears in a child where it has MADV_WIPEONFORK, or
 * NULL without memory. */
void *arena_private(size_t bytes);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - the memory that a recorded process shares: one mapping of one memfd, or of a file.
 *
 *	0          header     what is where
 *	4096       session    the state of windows (session/internal.h)
 *	16384      texts      the table of texts.h
 *	...        areas      thread states, rings, as arena_alloc() gives them out
 *
 * Data in it refers to other data by offsets, so that another process can map it at another
 * address.  The descriptor is closed as soon as it is mapped.  Core dumps do not contain it.
 *
 * The program maps little of it at first, as mlockall() fails where all that is mapped is more than
 * RLIMIT_MEMLOCK, which is 8 MiB for most users.  Mappings grow in place when more is needed.  So
 * they lie far below those of the C library, where no other mapping comes in their way.
 *
 * A forked child inherits the mapping, but must not write to it: memory of arena_private(), which
 * the kernel wipes in children, says which process owns the arena.  The child of fork() makes its
 * own arena when it needs one.  A child for which pthread_atfork() handlers did not run has none.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum { ARENA_VERSION = 9, ARENA_SESSION = 4096, ARENA_HEADER = 16384, ARENA_PATH = 1024 };
/* What probes keep for the whole process. */
enum arena_table { ARENA_NVTX, ARENA_NVTX_STARTED, ARENA_HELPER, ARENA_TABLES };
#define ARENA_WHOLE UINT64_MAX
#define ARENA_MAGIC UINT64_C(0x316f686361742e2e) /* "..tacho1" */

struct arena_header {
	uint64_t magic;
	uint32_t version, pid;
	uint64_t bytes; /* of the whole */
	_Atomic uint64_t used;
	_Atomic uint64_t threads;              /* offset of the newest thread state; 0: none */
	uint64_t texts;                        /* offset of the table of texts */
	_Atomic uint64_t tables[ARENA_TABLES]; /* offsets of what probes keep; 0: there is none */

	/* What another process needs to convert ticks to time; constant except `points`. */
	uint32_t tick_source;
	_Atomic uint32_t point; /* which of the two is valid */
	uint64_t base_ns;
	struct {
		uint64_t tick, ns;
	} points[2]; /* the latest calibration */

	/* Words as in /proc/PID/environ, at this offset; 0: not there. */
	_Atomic uint64_t environment;
	uint32_t environment_len;
	uint32_t command;           /* the text of the command line, an id of texts.h */
	_Atomic uint64_t late_rank; /* of struct config */

	/* The latest window, in ticks; number 0: none, end 0: it is open. */
	_Atomic uint64_t window, window_begin, window_end;

	/*
	 * What the log already holds.  One store to `commit` makes the entry of its parity valid,
	 * here and in each ring (ring.h).  Bytes of the log's file beyond `bytes` are not part of
	 * it.
	 */
	_Atomic uint64_t commit;
	struct {
		uint64_t until;  /* tick: what ended later is not in the log; 0: there is none */
		uint64_t closed; /* windows up to this one are wholly in a log */
		_Atomic uint64_t bytes; /* of the log's file; ARENA_WHOLE: it is not open */
	} committed[2];
	/*
	 * So many ranges and steps, which were open at a window's end on threads that make no
	 * event, are in that commit.  A writer that is killed before it loses them.
	 */
	uint64_t late, late_commit;
	_Atomic uint32_t begun;       /* the program has made an event */
	_Atomic uint32_t writer_died; /* nobody will do what the program waits for */
	_Atomic uint32_t has_cuda;    /* the writer has seen CUDA in the program */
	_Atomic uint64_t look;        /* see arena_filters() */
	_Atomic uint64_t
		beat_ns;       /* the recorder has run; CLOCK_REALTIME, as no namespace shifts it */
	char log[ARENA_PATH];  /* path of the latest log; "": none, or its path is too long */
	char file[ARENA_PATH]; /* path of this memory; "": it has none */
};

/* Features that a kernel may lack, and what happens without each. */
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
 * Arenas of this process are files FOLDER/HOST.pPID.TIME.rings, if arena_fits_in() as each is made.
 * Such a file outlives the program and its recorder if both are killed.  Whoever maps it, or has
 * its descriptor from the program, holds its lock (flock).  Both texts are borrowed.
 */
void arena_keep_in(const char *folder, const char *host, uint64_t bytes);
/* Whether the folder is on tmpfs, and so many bytes are free there. */
bool arena_fits_in(const char *folder, uint64_t bytes);
enum { ARENA_FILE = 10 << 20 }; /* that such a file takes at first */
/* Removes the file of the arena with this descriptor, if it has one. */
void arena_remove_file(int fd);
/*
 * Sets the bytes of threads and rings in arenas that are made from now on: the limit, and how many
 * of them are mapped at first.
 */
void arena_limit(size_t bytes, size_t first);
/* For tests: acts as if the kernel lacked these features ("memfd,seals"); NULL: none. */
void arena_forbid(const char *words);
/* Notes whether the kernel has a feature; returns `works`. */
bool arena_note(enum arena_need need, bool works);
/* Returns whether a feature may be used. */
bool arena_allows(enum arena_need need);
/* Appends `title` and what this process has noted as lacking, or else `if_whole`. */
void arena_doctor(struct buf *out, const char *title, const char *if_whole);

/*
 * Sets a function that is called with the descriptor of each new arena, before it is closed.  It
 * returns false if no recorder has taken the descriptor.
 */
void arena_introduce_by(bool (*introduce)(int fd));
/* Whether a recorder has this process's arena. */
bool arena_is_introduced(void);
/*
 * Early, before any event, an arena that cannot be introduced is not kept, and may be made later.
 */
void arena_set_early(bool early);
bool arena_is_early(void);
/* Why no recorder has it. */
enum arena_refusal {
	REFUSED_MEMORY,
	REFUSED_SPACE,
	REFUSED_FILE_SIZE,
	REFUSED_DESCRIPTORS,
	REFUSED_RECORDER,
	REFUSED_FILTER,
	REFUSED_CLONE, /* it was forked by clone() alone, or while an event was made */
};
/* Makes this process one that has no arena, and makes no system calls for one. */
void arena_stay_out(enum arena_refusal why);
/*
 * Asks the recorder that has the arena of this process, or of the one that it was forked from,
 * whether this thread is under more seccomp filters than the recorder: it must make no system call.
 * Takes up to LOOK_MS and makes none.  Where there is no answer later questions do not wait for
 * one, until the recorder looks again.
 */
enum arena_filters { FILTERS_SAME, FILTERS_MORE, FILTERS_NO_ANSWER };
enum arena_filters arena_filters(void);
enum {
	LOOK_MS = 10,      /* between two looks of the recorder at all arenas */
	LOOK_OFTEN_MS = 1, /* after a question, as others follow */
	BEAT_MS = 100,     /* between two notes that the recorder runs */
	LOOK_LIMIT_MS =
		1000, /* after which there is no answer, or no recorder since its last note */
};
/* Of arena_header.look: the lower half is the number of the thread that asks; 0: nobody does. */
#define LOOK_FILTERED (UINT64_C(1) << 32)
#define LOOK_PLAIN    (UINT64_C(2) << 32)
#define LOOK_CLOSED   (UINT64_C(4) << 32) /* nobody will answer any more */
#define LOOK_SILENT   (UINT64_C(8) << 32) /* the latest question had no answer */
/* *limit: the process's resource limit that is too small. */
enum arena_refusal arena_refused(uint64_t *limit);
/*
 * Maps the arena of another process as the arena of this one: shared, so that each sees what the
 * other stores, or as a private copy.  False: the file is no arena.
 */
bool arena_adopt(int fd, bool is_shared);
/* Whether this process may write to the arena; false in a child until it has its own. */
bool arena_is_mine(void);
/* The table of texts in whole pages, and the parts of it that are mapped at first. */
struct arena_texts {
	size_t bytes;
	struct {
		size_t at, bytes;
	} first[2]; /* the first of them begins at 0 */
};
/*
 * Makes the arena of this process; does nothing if it exists.  False: out of memory, or this is a
 * child that must not have one.
 */
bool arena_make(const struct arena_texts *texts);
/* Call it in the child of fork(); `inside`: by a handler over a thread that changes the arena. */
void arena_forked(bool inside);
/* The number of this thread, without a system call. */
uint32_t arena_thread_number(void);
/* To be called before and after fork(), in both processes. */
void arena_before_fork(void);
void arena_after_fork(void);

/* The arena as it is mapped; NULL before the first arena_make(). */
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
 * Returns the offset of zeroed whole pages, which are never freed; 0: the arena is full.  Takes no
 * lock and makes no system call, unless it must grow.
 */
uint64_t arena_alloc(size_t bytes);
/* Makes it grow now, so that arena_alloc() of so many bytes makes no system call. */
void arena_want(size_t bytes);
/*
 * A table of this process's arena; a new one is zeroed.  NULL: the arena belongs to another process
 * or is full.  Only one thread at a time may call it for the same table.
 */
void *arena_table(enum arena_table which, size_t bytes);
/* The same table of an adopted arena; NULL: it has none. */
void *arena_table_there(enum arena_table which, size_t bytes);
/*
 * Maps the pages of the table of texts from `offset` on, before which a page is mapped.  Where the
 * process may make no system call it asks arena_filters() first.  False: they cannot be mapped.
 */
bool arena_open_pages(uint64_t offset, size_t bytes);

/*
 * Zeroed pages of this process's own, which *at is set to at the first call: what few programs need
 * is not in our data segment, as mlockall() counts that.  NULL: no memory.
 */
void *arena_once(void *_Atomic *at, size_t bytes);
/* Zeroed pages of this process alone, which are zero again in any child; NULL: no memory. */
void *arena_private(size_t bytes);

# SPDX-License-Identifier: Apache-2.0
"""The table: programs, what is done to them, how they are recorded."""
import signal

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000

# name: sources, and the command that builds @ of them; None: it cannot be built here
C = "-D_GNU_SOURCE -O1 -g -w -pthread"
BUILT = {
    "c": ("actor.c", "gcc " + C + " -o @ actor.c -ldl"),
    "c-cuda": ("actor.c", "gcc " + C + " -DCUDA -o @ actor.c -ldl"),
    "c-static": ("actor.c", "gcc " + C + " -DSTATIC -static -o @ actor.c"),
    "c-asan-gcc": ("actor.c", "gcc " + C + " -fsanitize=address -o @ actor.c -ldl"),
    "c-asan-clang": ("actor.c", "clang " + C + " -fsanitize=address -o @ actor.c -ldl"),
    "c-tsan-gcc": ("actor.c", "gcc " + C + " -fsanitize=thread -o @ actor.c -ldl"),
    "c-tsan-clang": ("actor.c", "clang " + C + " -fsanitize=thread -o @ actor.c -ldl"),
    "c-msan-clang": ("actor.c", "clang " + C + " -fsanitize=memory -o @ actor.c -ldl"),
    "c-ubsan-clang": ("actor.c", "clang " + C + " -fsanitize=undefined -o @ actor.c -ldl"),
    "c++": ("lang.cc", "g++ -O1 -pthread -o @ lang.cc"),
    "c++-asan": ("lang.cc", "g++ -O1 -pthread -fsanitize=address -o @ lang.cc"),
    "c++-tsan": ("lang.cc", "g++ -O1 -pthread -fsanitize=thread -o @ lang.cc"),
    "rust": ("lang.rs", "rustc -o @ lang.rs"),
    "go": ("lang.go", "go build -o @ lang.go"),
    "java": ("Lang.java", "mkdir @.classes && javac -d @.classes Lang.java && "
                          "printf '#!/bin/sh\\nexec java -cp %s.classes Lang \"$@\"\\n' @ >@ && chmod +x @"),
}
# what is started as it is; a Python is each that the machine has
STARTED = {"node": ["node", "lang.js"], "bash": ["bash", "lang.sh"], "dash": ["dash", "lang.sh"],
           "perl": ["perl", "lang.pl"]}
PYTHONS = ["python2.7"] + ["python3.%d" % minor for minor in range(6, 16)]

# how it is recorded
MODES = {
    "whole": [],
    "window": ["--window", "steps:3-6"],
    "ring": ["--ring", "2M", "--save-on", "slow=3,death"],
    "signal": ["--window", "signal", "--ring", "2M"],
    "file": ["--ring-dir", "/dev/shm"],
    "linked": None,  # without tacho-record: the library is in the program, and a variable says what it records
}
ALL = ("whole", "window", "ring")
# acts of actor.c that leave a log, whole
RECORDED = ("exit", "return", "atexit", "masks", "descriptors", "threads", "children", "limits",
            "daemonize", "fork", "vfork_exec", "spawn", "sigchld", "cancel", "fork_in_handler", "memory", "forget")

# the steps that such a log has; a child that begins under a filter is not recorded
STEPS = {"filter": 20, "filter_thread": 20, "strict_thread": 20, "filter_fork": 0, "filter_exec": 0, "lock_memory": 20, "generations": 142,
         "lock_and_grow": 20, "filter_raw_fork": 10, "raw_fork": 310, "raw_storm": 50, "shares_memory": 10, "small_stacks": 250,
         "bad_pointer": 70, "namespace": 10, "close_range": 25, "traced": 10, "atfork": 18, "thread_end": 5,
         "fork_storm": 100, "exec_again": 31}

# the same of steps and ranges, with those that are counted as lost: on a busy machine a ring may come late
COUNTED = {"crowd": 10000, "crowd_at_once": 10000}

# what there is to see instead, where it cannot be equal: process 1 of a PID namespace adopts each orphan
# a filter that kills before the first event, at which a process without tacho-record introduces itself
INSTEAD = {"c-adopts/first/linked": {"output": b"a child\n"}, "c-filter-0/linked": {"output": b"", "status": -31}}


def one(number):
    return ("one", number)


def group(number):
    return ("group", number)


ROWS = []  # program, words, what is done to it, mode


def rows(program, words, done=None, modes=ALL):
    ROWS.extend((program, words.split(), done, mode) for mode in modes)


# ends
for words in ("exit 0", "exit 7", "exit 255", "_exit 7", "quick_exit 7", "exit_group 7", "return", "abort",
              "segv", "exit_in_thread", "main_pthread_exit", "last_thread", "atexit", "exit_in_handler",
              "stack_overflow"):
    rows("c", words)
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE, signal.SIGALRM,
               signal.SIGTERM, signal.SIGKILL, signal.SIGPROF, signal.SIGWINCH, signal.SIGRTMIN + 3):
    rows("c", "raise %d" % number, modes=("whole", "ring"))
rows("c", "raise_twice 15", modes=("whole", "ring"))
# signals: to the program alone, to its group, by the shell's tools
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
               signal.SIGKILL):
    rows("c", "work", one(number))
    rows("c", "work", group(number), modes=("whole", "ring"))
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGWINCH,
               signal.SIGTSTP, signal.SIGRTMIN + 2):
    rows("c", "count", one(number), modes=("whole",))
    rows("c", "count", group(number), modes=("whole",))
rows("c", "count 1", group(signal.SIGTERM), modes=("ring",))
rows("c", "count", one(signal.SIGTERM), modes=("window", "ring"))
rows("c", "checkpoint", one(signal.SIGTERM))
rows("c", "checkpoint", group(signal.SIGTERM))
rows("c", "checkpoint", ("timeout-once", 0.7))
rows("c", "work", ("timeout", 0.5))
rows("c", "work", ("timeout-kill", 0.5), modes=("whole", "ring"))
rows("c", "poll", one(signal.SIGTERM))
rows("c", "poll", group(signal.SIGUSR2), modes=("whole", "ring"))
rows("c", "poll", group(signal.SIGWINCH), modes=("whole",))
rows("c", "poll", ("stopped", 0.3), modes=("whole", "ring"))
rows("c", "count", ("stopped", 0.3), modes=("whole",))
for number in (signal.SIGUSR1, signal.SIGUSR2): # to the group, they are the program's
    rows("c", "raise %d" % number, modes=("signal",))
    rows("c", "work", group(number), modes=("signal",))
rows("c", "sigwait", one(signal.SIGTERM), modes=("whole", "ring"))
rows("c", "sigwait", group(signal.SIGUSR1), modes=("whole",))
rows("c", "signalfd", one(signal.SIGTERM), modes=("whole", "ring"))
rows("c", "value", ("queue", 41), modes=("whole",))
# what it finds where it starts
rows("c", "masks")
rows("c", "masks", ("ignored", [signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT]))
rows("c", "masks", ("blocked", [signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM]), modes=("whole",))
rows("c", "exit 7", ("ignored", [signal.SIGCHLD]))
rows("c", "work", ("alarm", 0.4), modes=("whole",))
rows("c", "descriptors")
rows("c", "descriptors", ("closed", [0]), modes=("whole",))
rows("c", "threads")
rows("c", "children")
rows("c", "limits", modes=("whole",))
rows("c", "environment", modes=("whole",))
rows("c", "forget")
for closed in ([0], [1], [2], [0, 1, 2]):
    rows("c", "streams", ("closed", closed), modes=("whole", "ring"))
rows("c", "daemonize")
rows("c", "close_all", modes=("whole", "ring"))
rows("c", "reuse", modes=("whole", "ring"))
# children
for words in ("fork 4", "raw_fork 4", "vfork_exec", "vfork_term", "spawn", "sigchld", "exec", "daemon",
              "reparent"):
    rows("c", words)
# locks and unwinding
rows("c", "cancel")
rows("c", "fork_in_handler", modes=("whole", "ring"))
rows("c", "jump_out", modes=("whole", "ring"))
# fences
rows("c", "userns")
rows("c", "seccomp")
for kind in range(4):  # its process or thread is killed, an error is returned, a signal is raised
    rows("c", "filter %d" % kind, modes=ALL + ("file",))
    rows("c", "filter %d" % kind, ("limit", "RLIMIT_AS", 1 << 28), modes=("whole", "file"))
    for words in ("filter_thread", "filter_threads", "filter_names", "filter_fork", "filter_exec"):
        rows("c", "%s %d" % (words, kind), modes=("whole", "file"))
rows("c", "filter_thread 0", modes=("window", "ring"))
rows("c", "filter 0", modes=("linked",))
rows("c", "filter 2", modes=("linked",))
rows("c", "strict_thread", modes=("whole", "ring"))
rows("c", "errno", modes=("whole", "ring", "linked"))
rows("c", "generations 70", modes=("whole",))
rows("c", "opens 16", modes=("whole", "ring"))
rows("c", "opens 8", modes=("whole",))
rows("c", "file_size", modes=("whole", "ring"))
rows("c", "cpu", modes=("whole",))
rows("c", "memory", ("limit", "RLIMIT_AS", 1 << 30), modes=("whole", "ring"))
rows("c", "exit 3", ("limit", "RLIMIT_NOFILE", 8), modes=("whole", "ring"))
rows("c", "exit 3", ("limit", "RLIMIT_STACK", 1 << 20), modes=("whole",))
rows("c", "exit 3", ("limit", "RLIMIT_FSIZE", 0), modes=("whole", "ring"))
rows("c", "exit 3", ("limit", "RLIMIT_NPROC", 1), modes=("whole",))
for how in range(12):  # current, or future, too; before or after events; in main, a thread, a child
    rows("c", "lock_memory %d" % how, ("locks", 8 << 20), modes=("whole",))
    rows("c", "lock_memory %d" % how, modes=("whole",))
for how in (0, 1, 3, 11):
    rows("c", "lock_memory %d" % how, ("locks", 8 << 20), modes=("ring", "file", "linked"))
rows("c", "lock_and_grow 8", ("locks", 8 << 20), modes=("whole", "ring"))
rows("c", "lock_and_grow 40", modes=("whole",))
rows("c", "stop_self")
for words in ("filter_raw_fork 0", "filter_raw_fork 3", "raw_storm 8", "shares_memory", "crowd 1000", "crowd_at_once 1000", "small_stacks 50", "bad_pointer",
              "close_range", "traced", "atfork", "thread_end", "fork_storm 100", "exec_again 30",
              "namespace %d" % CLONE_NEWPID,
              "namespace %d" % (CLONE_NEWPID | CLONE_NEWNET), "namespace %d" % CLONE_NEWNET, "namespace %d" % CLONE_NEWNS):
    rows("c", words, modes=("whole",))
rows("c", "bad_pointer", modes=("ring", "linked"))
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
    rows("c", "kill_group %d" % number, modes=("whole", "ring"))
# with CUDA, where CUPTI is asked by a thread of ours: on the stand-ins.  Not "threads"; not "masks": where there is a
# thread the C library has a handler of its own; not "fork_in_handler": a fork copies what CUPTI's buffers hold, and a
# hundred of them take longer than a row may.
for words in ("exit 7", "_exit 7", "quick_exit 7", "exit_group 7", "return", "abort", "segv", "exit_in_thread", "atexit",
              "exit_in_handler", "descriptors", "children", "daemonize", "fork 4", "raw_fork 4", "vfork_exec",
              "vfork_term", "spawn", "sigchld", "exec", "daemon", "reparent", "cancel", "jump_out"):
    rows("c-cuda", words)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGKILL):
    rows("c-cuda", "work", one(number))
    rows("c-cuda", "work", group(number), modes=("whole", "ring"))
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGWINCH, signal.SIGTSTP):
    rows("c-cuda", "count", one(number), modes=("whole",))
    rows("c-cuda", "count", group(number), modes=("whole",))
rows("c-cuda", "checkpoint", one(signal.SIGTERM))
rows("c-cuda", "checkpoint", ("timeout-once", 0.7))
rows("c-cuda", "work", ("timeout", 0.5))
rows("c-cuda", "work", ("timeout-kill", 0.5), modes=("whole",))
rows("c-cuda", "poll", one(signal.SIGTERM))
rows("c-cuda", "sigwait", one(signal.SIGTERM), modes=("whole",))
rows("c-cuda", "signalfd", one(signal.SIGTERM), modes=("whole",))
rows("c-cuda", "opens 16", modes=("whole",))
# without tacho-record
for program in ("c", "c-cuda"):
    for words in ("exit 7", "_exit 7", "return", "abort", "segv", "exit_in_thread", "atexit", "descriptors",
                  "daemonize", "fork 4", "raw_fork 4", "vfork_exec", "vfork_term", "spawn", "sigchld", "daemon",
                  "cancel", "jump_out"):
        rows(program, words, modes=("linked",))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGKILL):
        rows(program, "work", one(number), modes=("linked",))
    for number in (signal.SIGTERM, signal.SIGWINCH, signal.SIGTSTP):
        rows(program, "count", group(number), modes=("linked",))
    rows(program, "checkpoint", one(signal.SIGTERM), modes=("linked",))
    rows(program, "poll", one(signal.SIGTERM), modes=("linked",))
    rows(program, "work", ("timeout", 0.5), modes=("linked",))
for words in ("masks", "threads", "children", "fork_in_handler", "main_pthread_exit", "last_thread", "seccomp", "userns", "opens 16"):
    rows("c", words, modes=("linked",))
rows("c", "exit 7", ("ignored", [signal.SIGCHLD]), modes=("linked",))
for program in ("c", "c-cuda"):  # it adopts orphans, and the recorder is none of them
    rows(program, "reparent", modes=("linked",))
rows("c", "adopts", modes=("linked",))
rows("c", "adopts", ("first",), modes=("linked", "whole"))
for words in ("exit 7", "_exit 7", "adopts", "reparent", "fork 4", "daemon", "threads", "descriptors"):
    rows("c", words, ("inside",))
rows("c", "exit 3", ("limit", "RLIMIT_NOFILE", 8), modes=("linked",))
rows("c", "exit 3", ("limit", "RLIMIT_NPROC", 1), modes=("linked",))
# not started
rows("none", "", modes=("whole", "ring"))
rows("no-program", "", modes=("whole", "ring"))
rows("folder", "", modes=("whole",))
rows("no-interpreter", "", modes=("whole",))
# with its rings in a file
for words in ("exit 7", "_exit 7", "segv", "descriptors", "masks", "threads", "limits", "close_all", "reuse", "fork 4", "raw_fork 4",
              "vfork_exec", "daemon", "exec", "seccomp", "userns", "opens 8", "file_size", "cancel", "fork_in_handler"):
    rows("c", words, modes=("file",))
rows("c", "work", one(signal.SIGKILL), modes=("file",))
rows("c", "exit 3", ("limit", "RLIMIT_FSIZE", 0), modes=("file",))
rows("c", "memory", ("limit", "RLIMIT_AS", 1 << 30), modes=("file",))
# other compilers
for program in ("c-static", "c-asan-gcc", "c-asan-clang", "c-tsan-gcc", "c-tsan-clang", "c-msan-clang",
                "c-ubsan-clang"):
    rows(program, "exit 7", modes=("whole", "ring"))
    rows(program, "count", one(signal.SIGTERM), modes=("whole",))
    if program != "c-tsan-clang":  # ends too early for the same each time
        rows(program, "work", one(signal.SIGUSR1), modes=("whole",))
    rows(program, "spawn", modes=("whole",))
rows("c-asan-gcc", "segv", modes=("whole",))
rows("c-tsan-gcc", "lock_and_grow 8", modes=("whole",))  # threads that look for the same names
rows("c-setuid", "exit 7", modes=("whole", "ring"))
rows("c-setuid", "count", one(signal.SIGTERM), modes=("whole",))
for program in ("c++", "c++-asan", "c++-tsan"):
    for words in ("exit", "throw", "threads"):
        rows(program, words, modes=("whole",))
    rows(program, "count", group(signal.SIGTERM), modes=("whole",))
rows("c++", "terminate", modes=("whole", "ring"))
for words in ("exit", "child", "panic", "threads"):
    rows("rust", words, modes=("whole",))
rows("rust", "work", one(signal.SIGTERM), modes=("whole", "ring"))
rows("rust", "work", group(signal.SIGINT), modes=("whole",))
# interpreters
for program in ("node", "java", "bash", "dash", "perl", "go"):
    rows(program, "exit", modes=("whole", "ring"))
    rows(program, "child", modes=("whole",))
    rows(program, "count", one(signal.SIGTERM), modes=("whole",))
    rows(program, "count", group(signal.SIGTERM), modes=("whole",))
    rows(program, "work", one(signal.SIGTERM), modes=("whole",))
for program in ("bash", "dash"):
    rows(program, "pipe", modes=("whole",))
    rows(program, "job", modes=("whole",))
for program in PYTHONS:
    for words in ("exit", "raise", "dispositions", "processes", "fork"):
        rows(program, words, modes=("whole",))
    rows(program, "warnings", modes=("whole",))
    rows(program, "dispositions", modes=("ring", "signal"))
    rows(program, "count", group(signal.SIGTERM), modes=("whole",))
    rows(program, "count", one(signal.SIGUSR1), modes=("whole",))
    rows(program, "work", one(signal.SIGTERM), modes=("whole",))
    rows(program, "work", one(signal.SIGINT), modes=("ring",))

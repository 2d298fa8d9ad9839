# SPDX-License-Identifier: Apache-2.0
"""Runs each row of the table alone and recorded: status, output and errors are to be equal.

	python3 tests/hostile/run.py --bin build [--third] [WORD...]    rows whose names hold all words
"""
import argparse
import concurrent.futures
import glob
import os
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import table

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 10  # seconds until a row hangs
NOBODY = 65534
REPORT = 99  # the descriptor by which a program reports whose streams are closed; the same in each run


def name_of(row):
    program, words, done, mode = row
    text = "-".join([program] + words)
    if done:
        parts = [str(int(p)) if isinstance(p, int) else "+".join(str(int(n)) for n in p)
                 if isinstance(p, list) else str(p) for p in done]
        text += "/" + "-".join(parts)
    return "%s/%s" % (text, mode)


CANNOT_START = ("none", "no-program", "folder", "no-interpreter")


class Programs:
    """Commands of programs, built when they are first asked for."""

    def __init__(self, work, built):
        self.work, self.built, self.kept = work, built, {}

    def command(self, program):
        """None: the machine has no compiler or interpreter for it."""
        if program not in self.kept:
            self.kept[program] = self.find(program)
        return self.kept[program]

    def find(self, program):
        if program == "c-cuda" and not os.path.exists(os.path.join(self.built, "fake", "13", "libcupti.so.13")):
            return None
        if program in table.BUILT:
            return self.build(program)
        if program in table.STARTED:
            words = table.STARTED[program]
            return [words[0], os.path.join(HERE, words[1])] if shutil.which(words[0]) else None
        if program in table.PYTHONS:
            return self.python(program)
        if program == "c-setuid":
            return self.setuid()
        path = os.path.join(self.work, program)
        if program == "no-program":
            with open(path, "w", encoding="ascii") as f:
                f.write("no program\n")
        elif program == "folder":
            os.mkdir(path)
        elif program == "no-interpreter":
            with open(path, "w", encoding="ascii") as f:
                f.write("#!/none\n")
            os.chmod(path, 0o755)
        return [path]

    def build(self, program):
        path = os.path.join(self.work, "bin-" + program)
        command = table.BUILT[program][1].replace("@", shlex.quote(path))
        done = subprocess.run(command, shell=True, cwd=HERE, capture_output=True)
        return [path] if done.returncode == 0 and os.path.exists(path) else None

    @staticmethod
    def python(program):
        """The interpreter itself: a shim of pyenv is a shell that looks for it."""
        version = program[len("python"):]
        places = glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/%s" % (version, program)))
        path = shutil.which(program)
        for place in sorted(places) + [path] * bool(path):
            done = subprocess.run([place, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
            if done.returncode == 0:
                return [done.stdout.strip(), os.path.join(HERE, "lang.py")]
        return None

    def setuid(self):
        base = self.command("c")
        if not base or os.geteuid() != 0:
            return None
        path = os.path.join(self.work, "setuid")
        shutil.copy(base[0], path)
        os.chmod(path, 0o4755)
        return [path]


def prepare(done, report, as_nobody):
    """What the new process does to itself before it becomes the program."""
    def before():
        os.setsid()
        os.dup2(report, REPORT)
        if done[0] == "locks":
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (done[1], done[1]))
        if as_nobody or done[0] == "locks":  # root may lock what it likes
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        if done[0] == "closed":
            for fd in done[1]:
                os.close(fd)
        elif done[0] == "ignored":
            for number in done[1]:
                signal.signal(number, signal.SIG_IGN)
        elif done[0] == "blocked":
            signal.pthread_sigmask(signal.SIG_BLOCK, done[1])
        elif done[0] == "limit":
            limit = getattr(resource, done[1])
            resource.setrlimit(limit, (done[2], done[2]))
        elif done[0] == "alarm":
            signal.setitimer(signal.ITIMER_REAL, done[1])
    return before


def wait_ready(process, until):
    """Reads up to the line "ready", which all do that wait for something."""
    got = b""
    while b"ready\n" not in got and time.monotonic() < until:
        if select.select([process.stdout], [], [], 0.1)[0]:
            byte = os.read(process.stdout.fileno(), 4096)
            if not byte:
                break
            got += byte
    return got


def act(process, done):
    time.sleep(0.05)  # it waits by now
    if done[0] == "one":
        os.kill(process.pid, done[1])
    elif done[0] == "group":
        os.killpg(process.pid, done[1])
    elif done[0] == "queue":
        subprocess.run(["kill", "-s", str(int(signal.SIGRTMIN) + 1), "-q", str(done[1]), str(process.pid)],
                       check=True)
    elif done[0] == "stopped":
        os.killpg(process.pid, signal.SIGTSTP)
        time.sleep(done[1])
        os.killpg(process.pid, signal.SIGCONT)
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGTERM)


def wrapped(command, done):
    if done[0] == "timeout":
        return ["timeout", str(done[1])] + command
    if done[0] == "timeout-once":
        # without --foreground timeout signals the program and then its group; two signals so near each
        # other may be one, alone as well as recorded
        return ["timeout", "--foreground", str(done[1])] + command
    if done[0] == "timeout-kill":
        return ["timeout", "-s", "KILL", str(done[1])] + command
    if done[0] == "first":
        return ["unshare", "-p", "-f"] + command
    return command


def observe(command, done, as_nobody=False, more={}):
    """What there is to see from outside: status, output, errors; "hangs" where it does not end."""
    report, write = os.pipe()
    environment = dict(os.environ, ACTOR_REPORT=str(REPORT), TERM="dumb", **more)
    done = done or ("nothing",)
    process = subprocess.Popen(wrapped(command, done), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, close_fds=False, env=environment,
                               preexec_fn=prepare(done, write, as_nobody))
    os.close(write)
    until = time.monotonic() + LIMIT
    out = b""
    try:
        if done[0] in ("one", "group", "queue", "stopped"):
            out = wait_ready(process, until)
            act(process, done)
        rest, err = process.communicate(timeout=max(1, until - time.monotonic()))
        out, status = out + rest, process.returncode
    except (subprocess.TimeoutExpired, ProcessLookupError):
        status, err = "hangs", b""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()
    with os.fdopen(report, "rb") as f:
        told = f.read() if status != "hangs" else b""
    # what tacho.py says once under an old Python, by design
    err = re.sub(rb"tacho: Python [23]\.\d+ is older than [^\n]*\n", b"", err)
    # whether a shell had a child when the signal came to its group is chance, alone as well as recorded
    err = re.sub(rb"(?m)^(\S*lang\.sh: .*)?Terminated.*\n", b"", err)
    # numbers of processes and threads, and addresses, in what sanitizers and runtimes print
    err = re.sub(rb"0x[0-9a-f]+|==\d+==|pid=\d+|\(\d+\)|T\d+\b", b"*", err)
    return {"status": status, "output": out, "errors": err, "report": told}


class Runner:
    def __init__(self, bin_folder, work, built):
        self.bin, self.work, self.built, self.alone = bin_folder, work, built, {}
        self.programs = Programs(work, built)

    def plain(self, row, command):
        key = name_of(row).rsplit("/", 1)[0]
        if key not in self.alone:
            # what cannot be started is started by env, of which the status counts; its words are its own
            cannot = row[0] in CANNOT_START
            seen = observe(["env"] * cannot + command, row[2], row[0] == "c-setuid", self.cuda(row))
            self.alone[key] = {"status": seen["status"]} if cannot else seen
        return self.alone[key]

    def cuda(self, row):
        fake = os.path.abspath(os.path.join(self.built, "fake"))
        places = ":".join(os.path.join(fake, name) for name in ("13", "driver", "nvml"))
        return {"LD_LIBRARY_PATH": places} if row[0] == "c-cuda" else {}

    def recorded(self, row, command):
        folder = tempfile.mkdtemp(dir=self.work)
        os.chmod(folder, 0o777)
        # no descriptor of the program's is above: what it opens is the same
        record = [os.path.join(self.bin, "tacho-record"), "-q", "--out", os.path.join(folder, "log")]
        if row[3] == "linked":
            variables = {"LD_PRELOAD": os.path.join(self.bin, "libtacho.so"), "TACHO_WINDOW": "all",
                         "TACHO_OUT": os.path.join(folder, "log")}
            got = observe(command, row[2], False, dict(self.cuda(row), **variables))
        else:
            got = observe(record + table.MODES[row[3]] + ["--"] + command, row[2], row[0] == "c-setuid", self.cuda(row))
        log = os.path.join(folder, "log")
        logs = len([name for name in os.listdir(log) if name.endswith(".tacho")]) if os.path.isdir(log) else 0
        if row[3] in ("whole", "file") and row[1][:1] and row[1][0] in table.STEPS:
            got["steps"] = self.sum(log, r"^sum kind=10 name=step count=(\d+)") if logs else 0
        if row[3] == "whole" and row[1][:1] and row[1][0] in table.COUNTED:
            got["counted"] = self.sum(log, r"^(?:sum .* name=(?:step|work) count=|lost )(\d+) ") if logs else 0
        shutil.rmtree(folder, ignore_errors=True)
        # else the row would compare the program with itself
        if row[0] in ("c", "c-cuda") and row[3] in ("whole", "linked") and row[1][0] in table.RECORDED and \
                row[2] in (None, ("inside",)) and not logs:
            got["errors"] += b"nothing was recorded"
        return got

    def sum(self, folder, pattern):
        """Of the numbers that match in what is told of all logs."""
        total = 0
        for name in os.listdir(folder):
            told = subprocess.run([os.path.join(self.built, "tests", "dump"), os.path.join(folder, name)],
                                  capture_output=True, text=True).stdout
            total += sum(int(n) for n in re.findall(pattern, told, re.M))
        return total

    def run(self, row):
        """None: it cannot be run here; else what differs, as text."""
        command = self.programs.command(row[0])
        if command is None:
            return None
        command = command + row[1]
        if row[2] in (("first",), ("inside",)) and subprocess.run(["unshare", "-p", "-f", "true"], capture_output=True).returncode:
            return None
        if row[2] == ("inside",):  # process 1 of its namespace, and tacho-record is outside
            command = ["unshare", "-p", "-f"] + command
        want = dict(self.plain(row, command), **table.INSTEAD.get(name_of(row), {}))
        if row[3] in ("whole", "file") and row[1][:1] and row[1][0] in table.STEPS:
            want["steps"] = table.STEPS[row[1][0]]
        if row[3] == "whole" and row[1][:1] and row[1][0] in table.COUNTED:
            want["counted"] = table.COUNTED[row[1][0]]
        got = self.recorded(row, command)
        return "; ".join("%s %r, should be %r" % (key, got[key], want[key]) for key in want if got[key] != want[key])


def judge(runner, row):
    """One row, once more where it fails: programs wait for each other, and a busy machine may be late."""
    name = name_of(row)
    differs = runner.run(row)
    if differs is None:
        return name, "skipped", "nothing here to build or start %s" % row[0]
    if differs:
        runner.alone.pop(name.rsplit("/", 1)[0], None)
        differs = runner.run(row)
    return name, "failed" if differs else "passed", differs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--third", action="store_true")
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    rows = [row for i, row in enumerate(table.ROWS)
            if (not args.third or i % 3 == 0) and all(word in name_of(row) for word in args.words)]
    work = tempfile.mkdtemp(prefix="hostile.")
    os.chmod(work, 0o755)
    for name in ("tacho-record", "libtacho.so"):  # where another user can read them
        shutil.copy(os.path.join(args.bin, name), work)
    shutil.copytree(os.path.join(args.bin, "tacho"), os.path.join(work, "tacho"))
    for variable in [name for name in os.environ if name.startswith("TACHO_")] + ["LD_PRELOAD", "RANK", "PYTHONPATH"]:
        os.environ.pop(variable, None)
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    try:
        runner = Runner(work, work, args.bin)
        for row in rows:
            runner.programs.command(row[0])
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, result, text in pool.map(lambda row: judge(runner, row), rows):
                counts[result] += 1
                if result != "passed" or args.words:
                    print("%s %s%s" % ("not ok" if result == "failed" else "ok", name,
                                       "" if result == "passed" else " # %s: %s" % (result, text)), flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print("hostile: %d passed, %d failed; %d that this machine lacks a program for"
          % (counts["passed"], counts["failed"], counts["skipped"]))
    return 1 if counts["failed"] or not rows else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""A disk that fills at every write, calls that are interrupted and cut short, slow pipes, signals.

usage: faults.py --bin BUILD [--only WORD] [--few]

fault.c stands between the tool and its files.  For each row the Nth call that writes fails, for
every N until none is left to fail: one sentence on standard error, an exit code, the old output
untouched and nothing else left, neither beside the output nor in TMPDIR.  A fault that costs nothing
(a reservation of space, say) may be got over: then the output is whole.  --few: of many calls of one
row fewer, and of signals half.
"""
import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import tool_names  # noqa: E402

ENOSPC, EIO = 28, 5
IO = 5  # the exit code, schemas/base/status.h
MOST = 60  # calls of one row that are tried one by one; beyond that some
SIGNALS = 6


def read(path):
    with open(path, "rb") as f:
        return f.read()


def tree(folder):
    """What lies below a folder: name to bytes."""
    found = {}
    for where, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(where, name)
            found[os.path.relpath(path, folder)] = read(path)
    return found


class Run:
    """The rows of one table, and what came of them."""

    def __init__(self, a, scratch):
        self.bin, self.scratch, self.only = os.path.abspath(a.bin), scratch, a.only
        self.fault = os.path.join(self.bin, "tests", "libfault.so")
        self.most, self.signals = (MOST // 3, SIGNALS // 2) if a.few else (MOST, SIGNALS)
        self.passed = self.failed = 0
        self.out, self.tmp = os.path.join(scratch, "out"), os.path.join(scratch, "tmp")

    def tool(self, name):
        return os.path.join(self.bin, name)

    def check(self, held, what, why=""):
        if held:
            self.passed += 1
            return
        self.failed += 1
        print(f"not ok - {what}: {why}")

    def wanted(self, name):
        return not self.only or self.only in name

    def anew(self):
        for path in (self.out, self.tmp):
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)

    def run(self, command, **more):
        env = dict(os.environ, TMPDIR=self.tmp, LC_ALL="C.UTF-8")
        env.update({k: str(v) for k, v in more.items()})
        return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=120, check=False)

    def with_fault(self, command, **more):
        log = os.path.join(self.scratch, "log")
        if os.path.exists(log):
            os.unlink(log)
        done = self.run(command, LD_PRELOAD=self.fault, FAULT_LOG=log, **more)
        # a line for each process: what is recorded is written by another than the program
        lines = [line.split() for line in read(log).decode().splitlines()] if os.path.exists(log) else []
        failed = [line[1] for line in lines if line[1] != "-"]
        return done, max((int(line[0]) for line in lines), default=0), failed[0] if failed else "-"

    def sentence(self, done, tool):
        """One sentence: no line but those that begin with the tool's name and one account."""
        lines = done.stderr.decode(errors="replace").strip().split("\n")
        bad = [line for line in lines if not line.startswith(tool + ": ")]
        return lines if lines[0] and len(lines) <= 2 and not bad else None


def fill(r, name, command, output, folder=False):
    """Every call that writes fails once, the rest of the disk stays full."""
    tool = os.path.basename(command[0])
    r.anew()
    r.run(command)
    whole = tree(r.out)
    r.anew()
    _, calls, _ = r.with_fault(command)
    tried = got_over = 0
    for n in list(range(1, min(calls, r.most) + 1)) + list(range(r.most + 7, calls + 1, 1 + calls // (r.most * 2 // 3))):
        r.anew()
        if not folder:
            with open(output, "wb") as f:
                f.write(b"OLD")
        before = tree(r.out)
        done, _, what = r.with_fault(command, FAULT_AT=n, FAULT_ERRNO=ENOSPC if n % 3 else EIO)
        tried += 1
        where = f"{name}, call {n} of {calls} ({what})"
        if what == "-":
            continue
        if done.returncode == 0:
            got_over += 1
            r.check(tree(r.out) == whole, where, "it says all is well, but the output is not whole")
        else:
            r.check(done.returncode == IO, where, f"exit code {done.returncode}: {done.stderr[-200:]}")
            r.check(r.sentence(done, tool), where, f"not one sentence: {done.stderr[:400]}")
            left = tree(r.out)
            # of a folder, files that were finished before stay: each is whole
            if folder:
                left = {k: v for k, v in left.items() if whole.get(k) != v}
            r.check(left == before, where, f"left {sorted(left)}")
        r.check(not os.listdir(r.tmp), where, f"left in TMPDIR: {os.listdir(r.tmp)}")
    r.check(tried > 0, name, "no call was made to fail")
    print(f"# {name}: {calls} calls, {tried} made to fail, {got_over} got over")


def short(r, name, command):
    """One byte at a time and EINTR by turns: the same bytes as without."""
    r.anew()
    first = r.run(command)
    whole = tree(r.out)
    for step in (1, 997):
        r.anew()
        done, _, _ = r.with_fault(command, FAULT_SHORT=step, FAULT_PIPES=1)
        r.check(done.returncode == first.returncode and tree(r.out) == whole
                and done.stdout == first.stdout, f"{name}, {step} bytes a call", done.stderr[:300])


def killed(r, name, command, output, number, folder=False):
    """A signal at some moment: nothing is left, the old output is whole."""
    rng = random.Random(7)
    r.anew()
    begin = time.time()
    r.run(command)
    took = time.time() - begin
    whole = tree(r.out)  # of one that was ended when its output had its name already
    ended = 0
    for n in range(4 * r.signals):
        if n >= r.signals and ended:  # on a busy machine the first run took longer than the others
            break
        r.anew()
        if not folder:
            with open(output, "wb") as f:
                f.write(b"OLD")
        before = tree(r.out)
        p = subprocess.Popen(command, env=dict(os.environ, TMPDIR=r.tmp), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        time.sleep(took * rng.random())
        p.send_signal(number)
        p.wait()
        if p.returncode == 0:
            continue
        ended += 1
        r.check(p.returncode == -number, f"{name}, signal {number}", f"exit code {p.returncode}")
        left = {k: v for k, v in tree(r.out).items() if before.get(k) != v and whole.get(k) != v}
        parts = [k for k in left if ".part" in k or "XXXX" in k or not folder]
        r.check(not parts, f"{name}, signal {number}", f"left {sorted(left)}")
        r.check(not os.listdir(r.tmp), f"{name}, signal {number}", f"left {os.listdir(r.tmp)} in TMPDIR")
    r.check(ended > 0, f"{name}, signal {number}", "was never in time")


def rows(r, small, big):
    convert, analyze = r.tool("tacho-convert"), r.tool("tacho-analyze")
    for kind, name in [("chrome", "o.json.gz"), *((kind, tool_names.output(kind)) for kind in tool_names.formats(r.bin))]:
        output = os.path.join(r.out, name)
        command = [convert, "-q", small, "-t", kind, "-o", output]
        folder = name.endswith("/")
        yield f"{kind} {name}", command, output, folder, [convert, "-q", big, "-t", kind, "-o", output]
    log = small.replace(".json", ".tacho")
    yield ("chrome of a log, threads", [convert, "-q", "--threads", "2", log, "-t", "chrome", "-o",
                                        os.path.join(r.out, "o.json")], os.path.join(r.out, "o.json"), False, None)
    for kind in tool_names.report_formats(r.bin):
        output = os.path.join(r.out, tool_names.output(kind))
        yield (f"report {kind}", [analyze, "-q", small, "--format", kind, "-o", output], output,
               output.endswith("/"), [analyze, "-q", big, "--format", kind, "-o", output])
    output = os.path.join(r.out, "o.partial")
    yield ("partial", [analyze, "-q", small, "--partial", output], output, False,
           [analyze, "-q", big, "--partial", output])


def pipes(r, small):
    """Slow pipes in and out, a reader that goes away, a device that is full."""
    convert, analyze = r.tool("tacho-convert"), r.tool("tacho-analyze")
    r.anew()
    for tool, args in ((convert, ["-q", "-t", "csv"]), (convert, ["-q", "-t", "chrome"]), (analyze, ["-q"])):
        name = f"{os.path.basename(tool)} {args[-1]}"
        whole = r.run([tool, small] + args)
        p = subprocess.Popen([tool, "-"] + args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=dict(os.environ, TMPDIR=r.tmp))
        data, got = read(small), []
        os.set_blocking(p.stdout.fileno(), False)
        for at in range(0, len(data), len(data) // 40 + 1):
            p.stdin.write(data[at:at + len(data) // 40 + 1])
            p.stdin.flush()
            time.sleep(0.005)
            got.append(p.stdout.read(100) or b"")
        p.stdin.close()
        while p.poll() is None:
            got.append(p.stdout.read(4096) or b"")
            time.sleep(0.0005)
        got.append(p.stdout.read() or b"")
        said = b"".join(got)
        same = re.sub(rb"\(stdin\)|[^ \"]*small.json", b"INPUT", said) == re.sub(
            rb"\(stdin\)|[^ \"]*small.json", b"INPUT", whole.stdout)
        r.check(p.returncode == whole.returncode and len(said) > 100 and (same or tool == analyze),
                f"{name}: slow pipes", f"{p.returncode}, {len(said)} of {len(whole.stdout)} bytes")
        p.stderr.close()
        p.stdout.close()
        # the reader goes away
        p = subprocess.Popen([tool, small] + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=dict(os.environ, TMPDIR=r.tmp))
        p.stdout.close()
        said = p.stderr.read()
        p.wait()
        r.check(p.returncode in (-signal.SIGPIPE, 128 + signal.SIGPIPE) or p.returncode > 0,
                f"{name}: nobody reads", f"{p.returncode} {said[:200]}")
        r.check(not os.listdir(r.tmp), f"{name}: nobody reads", f"left {os.listdir(r.tmp)}")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([tool, small] + args, stdout=full, stderr=subprocess.PIPE, check=False)
        r.check(done.returncode > 0 and b"No space left" in done.stderr and done.stderr.count(b"\n") == 1,
                f"{name}: /dev/full", f"{done.returncode} {done.stderr[:300]}")
        done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", tool, small] + args, stderr=subprocess.PIPE,
                              check=False)
        r.check(done.returncode > 0 and done.stderr.count(b"\n") == 1, f"{name}: no standard output",
                f"{done.returncode} {done.stderr[:300]}")


def recorded(r, name, command, numbers):
    """The collector's file fills: the program runs to its end, the log is readable, losses are told."""
    r.anew()
    _, calls, _ = r.with_fault(command)
    r.check(calls > 3, name, f"only {calls} calls")
    tried, latest = 0, 0
    for n in numbers(calls):
        r.anew()
        done, _, what = r.with_fault(command, FAULT_AT=n)
        where = f"{name}, call {n} of {calls} ({what})"
        r.check(done.returncode == 0, where, f"exit code {done.returncode} {done.stderr[-200:]}")
        for log in (f for f in os.listdir(r.out) if f.endswith(".tacho")):
            path = os.path.join(r.out, log)
            got = r.run([r.tool("tacho-convert"), "-q", path, "-t", "csv"])
            r.check(got.returncode in (0, 4) or os.path.getsize(path) < 100, where,
                    f"its log: {got.returncode} {got.stderr[:200]}")
        if what != "-":  # how many blocks are written hangs on when the writer wakes
            tried, latest = tried + 1, n
    r.check(latest * 2 > calls, name, f"of {calls} calls none after {latest} failed")
    print(f"# {name}: {calls} calls, {tried} made to fail, the last of them {latest}")


def recorder(r):
    record, sample = r.tool("tacho-record"), r.tool("samples/train_mlp")
    recorded(r, "recorder of a training", [record, "-q", "--out", r.out, "--", sample],
             lambda calls: [*range(1, 7), *range(7, calls + 1, 3)])
    recorded(r, "recorder of many events", [record, "-q", "--out", r.out, "--", r.tool("tests/busy"), "1000000"],
             lambda calls: [*range(1, 31), *range(31, calls + 1, 7), calls])


def main():
    # What a shell puts in the background ignores SIGINT, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--few", action="store_true")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        r = Run(a, scratch)
        make = [r.tool("samples/generate"), "--kineto", "--out", scratch, "--events"]
        subprocess.run(make + ["400"], check=True, stdout=subprocess.DEVNULL)
        small, big = os.path.join(scratch, "small.json"), os.path.join(scratch, "big.json")
        os.rename(os.path.join(scratch, "r0.json"), small)
        subprocess.run(make + ["120000"], check=True, stdout=subprocess.DEVNULL)
        os.rename(os.path.join(scratch, "r0.json"), big)
        subprocess.run([r.tool("tacho-convert"), "-q", small, "-t", "log", "-o",
                        os.path.join(scratch, "small.tacho")], check=True)
        for name, command, output, folder, longer in rows(r, small, big):
            if not r.wanted(name):
                continue
            fill(r, name, command, output, folder)
            short(r, name, command)
            if longer:
                killed(r, name, longer, output, signal.SIGINT, folder)
                killed(r, name, longer, output, signal.SIGTERM, folder)
        if r.wanted("pipes"):
            pipes(r, small)
        if r.wanted("recorder"):
            recorder(r)
        print(f"faults: {r.passed} passed, {r.failed} failed")
        return r.failed != 0


if __name__ == "__main__":
    sys.exit(main())

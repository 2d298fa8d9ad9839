# SPDX-License-Identifier: Apache-2.0
"""Every tool under `ulimit -v`, on inputs many times as large as the ceiling it was given.

usage: memory.py --bin BUILD [--only WORD] [--times 20]

How much address space a tool takes for nothing (its libraries, a thread's stack, its fixed buffers)
is found with a tiny input, by halving; then the large one must pass with a ceiling of CEILING or REPORTS
more than that, and no error.  An input of JSON has so many times the ceiling in its file.  A log packs
too well for that: its events have so many times the ceiling as they stand in memory, 64 bytes each, and
its file is told beside.  What every result says is compared with that of no limit.
"""
import argparse
import concurrent.futures
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [TESTS, os.path.join(TESTS, "oracle")]

import snapshots  # noqa: E402
import tool_names  # noqa: E402

MB = 1 << 20
CEILING = 16 * MB
# Where a report is made: of 2^20 calls of a process is known what they launched, and shares of steps,
# cells of operators and paths are kept in bounded tables.
REPORTS = 96 * MB  # tables, and the points that findings are replayed from, in three forms
RECORD_BYTES = 32  # of a range, in the ring of its thread
EVENT_BYTES = {"json": 225, "tacho": 64}  # of generate --kineto in its file; in memory


def digest(path):
    """Of a file, or of all below a folder."""
    h = hashlib.sha256()
    if os.path.isdir(path):
        for where, folders, files in os.walk(path):
            folders.sort()
            for name in sorted(files):
                h.update(name.encode())
                h.update(digest(os.path.join(where, name)).encode())
        return h.hexdigest()
    with open(path, "rb") as f:
        for piece in iter(lambda: f.read(MB), b""):
            h.update(piece)
    return h.hexdigest()


def run(command, limit, tmp):
    """Exit code and talk under `limit` bytes of address space; 0: no limit."""
    if limit:
        command = ["sh", "-c", f'ulimit -v {limit >> 10}; exec "$@"', "sh"] + command
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=dict(os.environ, TMPDIR=tmp, LC_ALL="C"), check=False)
    return done.returncode, done.stderr.decode(errors="replace").strip()


def least(command, tmp, worked=lambda: True):
    """Bytes of address space that a command needs, to 1 MB."""
    low, high = 4 * MB, 1024 * MB
    while high - low > MB:
        middle = (low + high) // 2
        if run(command, middle, tmp)[0] == 0 and worked():
            high = middle
        else:
            low = middle
    return high


class Table:
    def __init__(self, a, scratch):
        self.bin, self.only, self.scratch = os.path.abspath(a.bin), a.only, scratch
        self.passed = self.failed = 0

    def row(self, name, tool, args, files, output, ceiling):
        """`files`: of the tiny and of the large input: path and what is told of its size."""
        if self.only and self.only not in name:
            return
        (tiny, _), (large, size) = files
        memory = CEILING if ceiling == CEILING else ceiling // 2  # a report's rows grow with the steps
        command = [os.path.join(self.bin, tool)] + args + ["-q", "--threads", "1", "--memory", str(memory)]
        folders = [os.path.join(self.scratch, side) for side in ("under", "whole")]
        for folder in folders:
            os.makedirs(folder)
        outs = [os.path.join(folder, output) for folder in folders]
        base = least(command + [tiny, "-o", outs[0]], self.scratch)
        with concurrent.futures.ThreadPoolExecutor() as pool:  # an output's name may be in it
            (code, said), whole = pool.map(lambda out, limit: run(command + [large, "-o", out], limit, self.scratch),
                                           outs, [base + ceiling, 0])
            sums = list(pool.map(lambda out: os.path.exists(out) and digest(out), outs))
        good = code == 0 and sums[0] and sums[0] == sums[1]
        self.passed += good
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} - {name}: {size} under {ceiling // MB} MB and {base // MB} MB for "
              f"nothing{'' if good else f': {code} {said[:200]} {whole}'}", flush=True)
        for folder in folders:
            shutil.rmtree(folder)

    def many_gpus(self, name, gpus, ceiling):
        """All reports of a process with so many GPUs: the memory that is resident at most."""
        if self.only and self.only not in name:
            return
        path = os.path.join(self.scratch, "gpus.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"schemaVersion": 1, "traceEvents": [')
            for i in range(gpus):
                f.write('%s{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": %d, '
                        '"dur": 1, "args": {"correlation": %d}},\n{"ph": "X", "cat": "kernel", "name": "k", "pid": %d, '
                        '"tid": 7, "ts": %d, "dur": 5, "args": {"device": %d, "stream": 7, "correlation": %d}}' %
                        (",\n" if i else "", 10 * i, i + 1, i, 10 * i + 3, i, i + 1))
            f.write("]}")
        self.resident(name, ["tacho-analyze", "-r", "all", "-f", "json"], path, ceiling)
        os.unlink(path)

    def resident(self, name, command, path, ceiling):
        """The memory that a tool has at most."""
        command = [os.path.join(self.bin, command[0]), "-q", "--memory", str(ceiling), "-o", "/dev/null",
                   *command[1:], path]
        pid = os.posix_spawn(command[0], command, dict(os.environ, TMPDIR=self.scratch))
        _, status, usage = os.wait4(pid, 0)
        good = status == 0 and usage.ru_maxrss << 10 <= ceiling
        self.passed += good
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} - {name}: {usage.ru_maxrss >> 10} MB under {ceiling // MB} MB, exit {status}")

    def many_names(self, name, steps, ceiling):
        """All reports of so many steps, each with a range of its own name and a kernel."""
        if self.only and self.only not in name:
            return
        path, row = os.path.join(self.scratch, "names.json"), ',\n{"ph": "X", "cat": "%s", "name": "%s", "pid": 9, "tid": %d, ' \
            '"ts": %d, "dur": %d, "args": {"correlation": %d}}'
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"schemaVersion": 1, "traceEvents": [{}')
            for i in range(steps):
                at = 1000 * i
                for one in (("user_annotation", f"ProfilerStep#{i}", 9, at, 900, 0),
                            ("user_annotation", f"range {i}", 9, at + 50, 300, 0), ("cpu_op", "aten::mm", 9, at + 100, 50, 0),
                            ("cuda_runtime", "cudaLaunchKernel", 9, at + 110, 10, i + 1), ("kernel", "k", 7, at + 130, 200, i + 1)):
                    f.write(row % one)
            f.write("]}")
        self.resident(name, ["tacho-analyze", "-r", "all", "-f", "json"], path, ceiling)
        os.unlink(path)

    def many_paths(self, name, each, ceiling):
        """A program with each * each * each call paths, a tenth of which launch a kernel; nothing of it is lost."""
        if self.only and self.only not in name:
            return
        path, row = os.path.join(self.scratch, "paths.json"), ',\n{"ph": "X", "cat": "%s", "name": "%s%d", "pid": 9, "tid": %d, ' \
            '"ts": %d, "dur": %d, "args": {"correlation": %d}}'
        at = work = 0
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"schemaVersion": 1, "traceEvents": [{}')
            for a in range(each):
                f.write(row % ("cpu_op", "a", a, 9, at, each * each * 3, 0))
                for b in range(each):
                    f.write(row % ("user_annotation", "b", b, 9, at, each * 3, 0))
                    for c in range(each):
                        f.write(row % ("cpu_op", "c", c, 9, at, 2, 0))
                        if c % 10 == 0:
                            work += 1
                            f.write(row % ("cuda_runtime", "cudaLaunchKernel", c, 9, at, 1, work))
                            f.write(row % ("kernel", "k", c, 7, at + 1, 5, work))
                        at += 3
            f.write("]}")
        self.resident(f"{name}, all reports", ["tacho-analyze", "-r", "all", "-f", "json"], path, ceiling)
        for sink in ("folded", "pprof", "perfetto"):
            self.resident(f"{name}, {sink}", ["tacho-convert", "-t", sink], path, ceiling)
        done = subprocess.run([os.path.join(self.bin, "tacho-convert"), "-q", "-t", "folded", "-o", "-", path],
                              stdout=subprocess.PIPE, check=True)
        found = sum(int(line.rsplit(b" ", 1)[1]) for line in done.stdout.splitlines())
        self.passed += found == 5000 * work
        self.failed += found != 5000 * work
        print(f"{'ok' if found == 5000 * work else 'not ok'} - {name}: {found} ns of GPU work, all are {5000 * work}")
        os.unlink(path)

    def large_snapshot(self, name, size, ceiling):
        """A memory snapshot several times as large as what a tool may have: its reports, and a part of it as a snapshot."""
        if self.only and self.only not in name:
            return
        path = os.path.join(self.scratch, "snapshot.pickle")
        snapshots.write_large(path, size)
        self.resident(f"{name}, report", ["tacho-analyze", "-r", "summary,memory,snapshot", "-f", "json"], path, ceiling)
        self.resident(f"{name}, a part", ["tacho-convert", "-t", "snapshot", "--from", "5s", "--to", "6s"], path, ceiling)
        os.unlink(path)

    def recorder(self, name, args, events):
        """A recorded program: its records are many times what the recording may hold."""
        if self.only and self.only not in name:
            return
        out = os.path.join(self.scratch, "logs")
        os.makedirs(out, exist_ok=True)
        record, busy = os.path.join(self.bin, "tacho-record"), os.path.join(self.bin, "tests", "busy")
        command = [record, "-q", "--out", out, "--memory", f"{CEILING // MB}M"] + args + ["--", busy]

        def recorded():
            """With less the program runs, but without a recorder: that takes no memory."""
            logs = os.listdir(out)
            for f in logs:
                os.unlink(os.path.join(out, f))
            return bool(logs) or "--ring" in args

        base = least(command + ["1000"], self.scratch, recorded)
        recorded()
        code, said = run(command + [str(events)], base + CEILING, self.scratch)
        logs = [os.path.join(out, f) for f in os.listdir(out)]
        read = [run([os.path.join(self.bin, "tacho-analyze"), "-q", f], 0, self.scratch)[0] for f in logs]
        # a ring that nobody saved leaves nothing
        good = code == 0 and len(logs) == ("--ring" not in args) and not any(read)
        self.passed += good
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} - {name}: {events * RECORD_BYTES // MB} MB of records under "
              f"{CEILING // MB} MB and {base // MB} MB for nothing{'' if good else f': {code} {said[:200]} {logs} {read}'}")
        for f in logs:
            os.unlink(f)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--times", type=int, default=20)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        t = Table(a, scratch)

        def made(how, ceiling):
            """Of the tiny and the large input: path and size, as told."""
            found = []
            for name, size in (("tiny", 400 * EVENT_BYTES[how]), (f"{ceiling // MB}", a.times * ceiling)):
                path = os.path.join(scratch, f"{name}.{how}")
                events = size // EVENT_BYTES[how] + 1
                if not os.path.exists(path):
                    subprocess.run([os.path.join(a.bin, "samples/generate"), "--out", scratch, "--events", str(events)]
                                   + (["--kineto"] if how == "json" else []), check=True, stdout=subprocess.DEVNULL)
                    os.rename(os.path.join(scratch, f"r0.{how}"), path)
                size = os.path.getsize(path)
                found.append((path, f"{size // MB} MB" if how == "json" else
                              f"{events * EVENT_BYTES[how] // MB} MB of events, {size // MB} MB in their file,"))
            return found

        for sink in tool_names.formats(a.bin):
            ceiling = REPORTS if sink in ("bundle", "tensorboard") else CEILING
            t.row(f"JSON to {sink}", "tacho-convert", ["-t", sink], made("json", ceiling), tool_names.output(sink), ceiling)
        for sink in ("chrome", "perfetto", "log"):
            t.row(f"log to {sink}", "tacho-convert", ["-t", sink], made("tacho", CEILING), "l." + sink, CEILING)
        for how in ("json", "tacho"):
            t.row(f"reports of {how}", "tacho-analyze", ["--format", "json"], made(how, REPORTS), "o.report", REPORTS)
        t.many_gpus("4,000 GPUs", 4000, 256 * MB)
        t.many_names("200,000 steps and names of ranges", 200000, 256 * MB)
        t.many_paths("1,000,000 call paths", 100, 256 * MB)
        if a.times >= 20:  # six minutes to write it
            t.large_snapshot("a memory snapshot of 1 GB", 1000 * 1000 * 1000, 256 * MB)
        events = a.times * CEILING // RECORD_BYTES
        t.recorder("recording", ["--sample", "none"], events)
        t.recorder("flight recorder", ["--sample", "none", "--ring", "8M", "--save-on", "signal"], events)
        print(f"memory: {t.passed} passed, {t.failed} failed")
        return t.failed != 0


if __name__ == "__main__":
    sys.exit(main())

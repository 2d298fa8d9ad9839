# SPDX-License-Identifier: Apache-2.0
"""Every tool under `ulimit -v`, on inputs twenty times as large as the ceiling it was given.

usage: memory.py --bin BUILD [--only WORD]

How much address space a tool takes for nothing (its libraries, a thread's stack, its fixed buffers)
is found with a tiny input, by halving; then the large one must pass with the ceiling of --memory
more than that, and no error.  What every result says is compared with that of no limit.
"""
import argparse
import hashlib
import os
import resource
import subprocess
import sys
import tempfile

MB = 1 << 20
CEILING = 16 * MB
REPORTS = 64 * MB  # where a report is made, or a database's pages and sorted lines are kept
TIMES = 20
RECORD_BYTES = 32  # of a range, in the ring of its thread
BYTES_OF_EVENT = 226  # of generate --kineto
SINKS = ["chrome", "perfetto", "memory", "text", "csv", "sqlite", "bundle", "log", "tensorboard"]


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
    def before():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    done = subprocess.run(command, preexec_fn=before, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=dict(os.environ, TMPDIR=tmp, LC_ALL="C"), check=False)
    return done.returncode, done.stderr.decode(errors="replace").strip()


def least(command, tmp):
    """Bytes of address space that a command needs, to 1 MB."""
    low, high = 4 * MB, 1024 * MB
    while high - low > MB:
        middle = (low + high) // 2
        if run(command, middle, tmp)[0] == 0:
            high = middle
        else:
            low = middle
    return high


class Table:
    def __init__(self, a, scratch):
        self.bin, self.only, self.scratch = os.path.abspath(a.bin), a.only, scratch
        self.passed = self.failed = 0

    def row(self, name, tool, args, tiny, large, output, ceiling):
        if self.only and self.only not in name:
            return
        tool = os.path.join(self.bin, tool)
        out = os.path.join(self.scratch, output)
        args = args + ["-q", "--threads", "1", "--memory", f"{CEILING // MB}M"]
        base = least([tool, tiny] + args + ["-o", out], self.scratch)
        limit = base + ceiling
        code, said = run([tool, large] + args + ["-o", out], limit, self.scratch)
        under = digest(out) if os.path.exists(out) else "none"
        whole = run([tool, large] + args + ["-o", out], 0, self.scratch)
        good = code == 0 and under == digest(out)
        self.passed += good
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} - {name}: {os.path.getsize(large) // MB} MB under {ceiling // MB} "
              f"MB and {base // MB} MB for nothing{'' if good else f': {code} {said[:200]} {whole}'}")
        if os.path.isdir(out):
            for where, _, files in os.walk(out):
                for f in files:
                    os.unlink(os.path.join(where, f))


    def recorder(self, name, args, events):
        """A recorded program: its records are twenty times what the recording may hold."""
        if self.only and self.only not in name:
            return
        out = os.path.join(self.scratch, "logs")
        os.makedirs(out, exist_ok=True)
        record, busy = os.path.join(self.bin, "tacho-record"), os.path.join(self.bin, "tests", "busy")
        command = [record, "-q", "--out", out, "--memory", f"{CEILING // MB}M"] + args + ["--", busy]
        base = least(command + ["1000"], self.scratch)
        for f in os.listdir(out):
            os.unlink(os.path.join(out, f))
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
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        t = Table(a, scratch)
        files = {}
        for name, events in (("tiny", 400), ("large", TIMES * CEILING // BYTES_OF_EVENT)):
            for how in ("json", "tacho"):
                subprocess.run([os.path.join(a.bin, "samples/generate"), "--out", scratch, "--events", str(events)]
                               + (["--kineto"] if how == "json" else []), check=True, stdout=subprocess.DEVNULL)
                files[name, how] = os.path.join(scratch, f"{name}.{how}")
                os.rename(os.path.join(scratch, f"r0.{how}"), files[name, how])
        for sink in SINKS:
            folder = "/" if sink == "tensorboard" else ""
            name = {"bundle": "o.tar.gz", "sqlite": "o.db"}.get(sink, "o." + sink) + folder
            t.row(f"JSON to {sink}", "tacho-convert", ["-t", sink], files["tiny", "json"], files["large", "json"],
                  name, REPORTS if sink in ("sqlite", "bundle", "tensorboard") else CEILING)
        for sink in ("chrome", "perfetto", "log"):
            t.row(f"log to {sink}", "tacho-convert", ["-t", sink], files["tiny", "tacho"],
                  files["large", "tacho"], "l." + sink, CEILING)
        for how in ("json", "tacho"):
            t.row(f"reports of {how}", "tacho-analyze", ["--format", "json"], files["tiny", how],
                  files["large", how], "o.report", REPORTS)
        events = TIMES * CEILING // RECORD_BYTES
        t.recorder("recording", ["--sample", "none"], events)
        t.recorder("flight recorder", ["--sample", "none", "--ring", "8M", "--save-on", "signal"], events)
        print(f"memory: {t.passed} passed, {t.failed} failed")
        return t.failed != 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Inputs that grow twice as large cost twice as much, and no more: instructions, counted by callgrind.

usage: linear.py --bin BUILD [--only WORD]

Each shape is made with N and with 2 N parts; the instructions of a report on it may grow by MOST.
"""
import argparse
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

MOST = 2.3
TRACE = b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}'
OTHER = b'{"a": 1}'


def archive(path, n):
    """Members of an archive, of which the last is a trace."""
    with tarfile.open(path, "w") as out:
        for i in range(n):
            data = TRACE if i == n - 1 else OTHER
            member = tarfile.TarInfo(f"part-{i:06}.json")
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))


def folders(path, n):
    """Folders in folders, up to 16 deep."""
    for i in range(n):
        depth = "/".join(f"d{i // 16}-{k}" for k in range(i % 16 + 1))
        os.makedirs(os.path.join(path, depth), exist_ok=True)
        with open(os.path.join(path, depth, "x.json"), "wb") as f:
            f.write(TRACE if i == n - 1 else OTHER)


def events(path, rows, head=""):
    with open(path, "w", encoding="utf-8") as f:
        f.write('{' + head + '"traceEvents": [' + ",\n".join(json.dumps(r) for r in rows) + "]}")


def pairs(n, name):
    """Ranges that begin one in the other, and end so."""
    at = [{"ph": "b", "cat": "x", "id": 1, "name": name(i), "pid": 1, "tid": 1, "ts": i, "args": {"n": i}}
          for i in range(n)]
    return at + [{"ph": "e", "cat": "x", "id": 1, "name": name(n - 1 - i), "pid": 1, "tid": 1, "ts": n + i}
                 for i in range(n)]


def steps(path, n, number=lambda i: i):
    """Marked steps with an operator each, whose shapes are its own, and a kernel."""
    row = {"ph": "X", "pid": 1, "tid": 1}
    events(path, [dict(row, **more) for i in range(n) for more in (
        {"cat": "user_annotation", "name": f"ProfilerStep#{number(i)}", "ts": 1000 * i, "dur": 900},
        {"cat": "cpu_op", "name": "aten::mm", "ts": 1000 * i + 100, "dur": 50,
         "args": {"Input Dims": [[i + 1, 64], [64, 64]], "Input type": ["float", "float"]}},
        {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1000 * i + 110, "dur": 10, "args": {"correlation": i + 1}},
        {"cat": "kernel", "name": "k", "tid": 7, "ts": 1000 * i + 130, "dur": 200, "args": {"correlation": i + 1}})],
           '"schemaVersion": 1, ')


def operators(path, n):
    """A step of a job without a GPU, of operators that have each a name of its own."""
    row = {"ph": "X", "pid": 1, "tid": 1}
    events(path, [dict(row, cat="user_annotation", name="ProfilerStep#1", ts=0, dur=100 * n)] +
           [dict(row, cat="cpu_op", name=f"aten::add_{i}", ts=100 * i, dur=90) for i in range(n)],
           '"schemaVersion": 1, ')


def names(path, n):
    """Two programs with ranges of the same names, in turn."""
    events(path, [{"ph": "X", "cat": "user_annotation", "name": f"range {i}", "pid": pid, "tid": pid, "ts": 10 * i, "dur": 5}
                  for i in range(n) for pid in (1, 2)], '"schemaVersion": 1, ')


SHAPES = [
    ("members of an archive", 4000, archive, ".tar", "summary"),
    ("folders in folders", 800, folders, "", "summary"),
    ("nested async ranges of one name", 4000, lambda p, n: events(p, pairs(n, lambda i: "f")), ".json", "summary"),
    ("nested async ranges", 4000, lambda p, n: events(p, pairs(n, lambda i: f"f{i}")), ".json", "summary"),
    ("nested async ranges in a file of Kineto", 8000,
     lambda p, n: events(p, pairs(n, lambda i: f"f{i}"), '"schemaVersion": 1, '), ".json", "summary"),
    ("steps, and shapes of operators", 10000, steps, ".json", "roofline"),
    ("names of operators on the CPU", 2000, operators, ".json", "findings"),
    ("steps of two epochs", 10000, lambda p, n: steps(p, n, lambda i: i % (n // 2)), ".json", "roofline"),
    ("names of ranges of two programs", 10000, names, ".json", "phases"),
]


def instructions(binary, report, path, scratch):
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch}/callgrind",
                           binary, "-q", "-r", report, path, "-o", "/dev/null"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, env=dict(os.environ, TMPDIR=scratch, LC_ALL="C"), check=False)
    said = done.stderr.decode(errors="replace")
    found = re.search(r"Collected : (\d+)", said)
    return int(found.group(1)) if done.returncode == 0 and found else said[-300:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, n, make, end, report in SHAPES:
            if a.only not in name:
                continue
            counts = []
            for size in (n, 2 * n):
                path = os.path.join(scratch, f"{name.replace(' ', '-')}-{size}{end}")
                make(path, size)
                counts.append(instructions(os.path.join(a.bin, "tacho-analyze"), report, path, scratch))
            good = all(isinstance(c, int) for c in counts) and counts[1] <= MOST * counts[0]
            passed += good
            failed += not good
            print(f"{'ok' if good else 'not ok'} - {name}: {n} and {2 * n} take {counts} instructions", flush=True)
    print(f"linear: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Partial results: in any grouping and order the same bytes as one process.

usage: check_partial.py --bin BUILD

Eight generated ranks in 1, 2, 3 and 8 partial results, merged in several orders, in every format;
one input alone, with its pictures; inputs that are damaged; a rank that is there twice; settings
that differ; and, where mpirun is, the same from several processes.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import counts

FORMATS = [("text", "summary"), ("text", "all"), ("json", "all"), ("json", "summary"),
           ("html", "summary"), ("md", "summary"), ("csv", "kernels"), ("csv", "idle"),
           ("csv", "launches"), ("csv", "steps")]
RANKS = 8


class Check(counts.Counts):
    """The tool, and what held of it."""

    def __init__(self, tool):
        super().__init__()
        self.tool = tool

    def run(self, *args, before=()):
        """Exit code, standard output, standard error."""
        done = subprocess.run([*before, self.tool, *args], capture_output=True)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def groups_of(paths, count):
    """The paths in so many groups, unevenly."""
    return [paths[i::count] for i in range(count)]


def partials_make(check, folder, groups, options=()):
    """A partial result of each group."""
    made = []
    for i, group in enumerate(groups):
        out = os.path.join(folder, f"part-{len(groups)}-{i}")
        rc, _, said = check.run("-q", "--partial", out, *options, *group)
        check.that(rc == 0, f"--partial of {len(group)} inputs: {rc} {said}")
        made.append(out)
    return made


def same_as_one(check, folder, paths):
    """Every format, every grouping, several orders."""
    want = {f: check.run("-q", "-f", f[0], "-r", f[1], *paths) for f in FORMATS}
    for what, got in want.items():
        check.that(got[0] == 0 and len(got[1]) > 100, f"one process, {what}: {got[0]} {got[2]}")
    for count in (1, 2, 3, RANKS):
        parts = partials_make(check, folder, groups_of(paths, count))
        orders = [parts, parts[::-1]] if count > 1 else [parts]
        if count == RANKS:
            orders.append(parts[3:] + parts[:3])
        for order in orders:
            for (form, report), one in want.items():
                got = check.run("-q", "--merge", "-f", form, "-r", report, *order)
                check.that(got[:2] == one[:2],
                           f"{count} partial results, {form} {report}: {got[0]} {got[2]}")


def alone(check, folder, path):
    """One input: its pictures are there too."""
    part = partials_make(check, folder, [[path]])
    for form, report in FORMATS:
        one = check.run("-q", "-f", form, "-r", report, path)
        got = check.run("-q", "--merge", "-f", form, "-r", report, *part)
        check.that(one[:2] == got[:2], f"one input, {form} {report}")


def cut(check, folder, paths):
    """What was asked of the fold is asked of all or of none."""
    options = ["--steps", "2-6", "--per-step"]
    parts = partials_make(check, folder, groups_of(paths, 2), options)
    one = check.run("-q", "-f", "json", "-r", "all", *options, *paths)
    got = check.run("-q", "--merge", "-f", "json", "-r", "all", *parts)
    check.that(one[:2] == got[:2] and one[0] == 0, "cut and per step")
    parts[1:] = partials_make(check, folder, [paths[1:]])
    rc, _, said = check.run("--merge", *parts)
    check.that(rc == 2 and "different filters" in said, f"settings that differ: {rc} {said}")
    rc, _, said = check.run("--merge", "--steps", "1", parts[0])
    check.that(rc == 2 and "--partial" in said, f"a cut of a merge: {rc} {said}")


def faults(check, folder, paths):
    """A rank twice, a damaged input, an unreadable one, and files that are no partial results."""
    double = os.path.join(folder, "double" + os.path.splitext(paths[0])[1])
    shutil.copy(paths[0], double)
    parts = partials_make(check, folder, [[paths[0]], [double]])
    rc, _, said = check.run("--merge", *parts)
    check.that(rc == 2 and "same rank" in said and "double" in said and
               os.path.basename(paths[0]) in said, f"a rank twice: {rc} {said}")
    broken = os.path.join(folder, "broken" + os.path.splitext(paths[0])[1])
    with open(paths[0], "rb") as f, open(broken, "wb") as g:
        whole = f.read()
        g.write(whole[:len(whole) * 2 // 3])
    words = os.path.join(folder, "words.json")
    with open(words, "w", encoding="ascii") as f:
        f.write("no trace")
    for name, bad in (("cut off", broken), ("unreadable", words)):
        one = check.run("-q", "-f", "json", "-r", "all", bad, paths[1])
        made = []
        for i, path in enumerate((bad, paths[1])):
            made.append(os.path.join(folder, f"bad-{i}"))
            rc, _, _ = check.run("-q", "--partial", made[-1], path)
            check.that(rc == (one[0] if i == 0 else 0), f"--partial of an input {name}: {rc}")
        got = check.run("-q", "--merge", "-f", "json", "-r", "all", *made)
        check.that(got == one and one[0] == 4, f"an input {name}: {got[0]} {one[0]} {got[2]}")
        made.append(made[1] + "-again")
        shutil.copy(made[1], made[2])
        rc, _, said = check.run("--merge", *made)
        check.that(rc == 2 and "same rank" in said and os.path.basename(bad) in said,
                   f"an input {name} and a rank twice: {rc} {said}")
    rc, _, said = check.run("--merge", paths[0])
    check.that(rc == 4 and "not a partial result" in said, f"a trace is none: {rc} {said}")
    with open(parts[0], "rb") as f:
        whole = bytearray(f.read())
    for name, change, word in (("version", lambda b: b.__setitem__(8, 9), "version 9"),
                               ("damage", lambda b: b.__setitem__(len(b) // 2,
                                                                  b[len(b) // 2] ^ 1), "damaged"),
                               ("cut", lambda b: b.__delitem__(slice(-7, None)), "truncated")):
        one = bytearray(whole)
        change(one)
        with open(os.path.join(folder, "hurt"), "wb") as f:
            f.write(one)
        rc, _, said = check.run("--merge", os.path.join(folder, "hurt"))
        check.that(rc == 4 and word in said, f"{name}: {rc} {said}")


def ends_anywhere(check, folder, path):
    """An input that ends early: what is refused of one process is refused of the merge, in the same words."""
    with open(path, "rb") as f:
        whole = f.read()
    short, part = os.path.join(folder, "short.tacho"), os.path.join(folder, "short.partial")
    for size in sorted({*range(0, 400, 9), *range(400, len(whole), len(whole) // 60)}):
        with open(short, "wb") as f:
            f.write(whole[:size])
        one = check.run("-f", "json", "-r", "all", short)
        check.run("-q", "--partial", part, short)
        got = check.run("-f", "json", "-r", "all", "--merge", part)
        check.that(one == got and one[0] in (0, 4), f"{size} bytes: {one[0]} {got[0]} {got[2]}")


def several_processes(check, build, paths):
    """mpirun: the same bytes; skipped where there is none."""
    if not shutil.which("mpirun") or not os.path.exists(os.path.join(build, "libtacho-mpi.so")):
        print("partial: no mpirun or built without mpi.h: that part is skipped")
        return
    for count in (2, 3):
        before = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(count)]
        for form, report in FORMATS[:5]:
            one = check.run("-q", "-f", form, "-r", report, *paths)
            got = check.run("-q", "-f", form, "-r", report, *paths, before=before)
            check.that(one[:2] == got[:2],
                       f"mpirun -n {count}, {form} {report}: {got[0]} {got[2][:300]}")
    with tempfile.TemporaryDirectory() as folder:   # two runs of two ranks in one folder
        for number in range(4):
            begin, pid = 10 ** 6 * (1 + number // 2), 100 + number
            rows = [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": pid,
                     "tid": 1, "ts": begin, "dur": 5, "args": {"correlation": 1}},
                    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,
                     "ts": begin + 9, "dur": 50 + number,
                     "args": {"device": 0, "stream": 7, "correlation": 1}}]
            with open(os.path.join(folder, f"{number}.json"), "w", encoding="ascii") as out:
                json.dump({"distributedInfo": {"rank": number % 2, "world_size": 2},
                           "traceEvents": rows}, out)
        for more in ([], ["--run", "1"], ["--run", "all"]):
            one = check.run("-q", "-f", "json", "-r", "kernels", *more, folder)
            got = check.run("-q", "-f", "json", "-r", "kernels", *more, folder,
                            before=["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"])
            check.that(one[:2] == got[:2] and one[0] == 0,
                       f"mpirun of two runs {more}: {got[0]} {got[2][:300]}")


def main():
    """Makes the ranks, runs all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    build = parser.parse_args().bin
    check = Check(os.path.abspath(os.path.join(build, "tacho-analyze")))
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "job")
        subprocess.run([os.path.join(build, "samples/generate"), "--out", made, "--events", "1500",
                        "--ranks", str(RANKS), "--seed", "5"], check=True, capture_output=True)
        paths = sorted(glob.glob(os.path.join(made, "**", "*.tacho"), recursive=True))
        check.that(len(paths) == RANKS, f"{RANKS} ranks were generated, not {len(paths)}")
        same_as_one(check, folder, paths)
        alone(check, folder, paths[2])
        cut(check, folder, paths)
        faults(check, folder, paths)
        ends_anywhere(check, folder, paths[1])
        several_processes(check, build, paths)
    print(f"partial results: {check.passed} passed, {check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())

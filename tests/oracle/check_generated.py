# SPDX-License-Identifier: Apache-2.0
"""What is true of generated jobs by construction, against what tacho-analyze says of them.

usage: check_generated.py --bin BUILD

Logs and Kineto files of several sizes, ranks and seeds; every figure that samples/generate knows
must come back to the nanosecond, from the log, from the Kineto file, and from the packed log.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

JOBS = [  # events, ranks, seed, more options
    (2000, 1, 1, []), (30000, 3, 2, []), (30000, 4, 3, ["--slow-rank", "2"]),
    (5000, 2, 4, ["--kineto"]),
]
GPU_KEYS = ("span_ns", "compute_ns", "comm_ns", "exposed_comm_ns", "copy_ns", "exposed_copy_ns",
            "kernels", "copies")
PHASE_KEYS = ("data", "forward", "backward", "optimizer")


def figures(rank):
    """The figures of one rank of a report, named as in truth.json."""
    gpu = rank["gpus"][0]
    phases = {p["name"]: p["wall_ns"] for p in rank["phases"]}
    got = {k: gpu[k] for k in GPU_KEYS}
    got.update({p + "_ns": phases.get(p, 0) for p in PHASE_KEYS})
    got["steps"] = len(rank["steps"])
    got["wall_ns"] = sum(s["wall_ns"] for s in rank["steps"])
    return got


def report(tool, paths):
    out = subprocess.run([tool, "-q", "--format", "json", "--report",
                          "summary,phases,steps,kernels,copies", *paths],
                         capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"tacho-analyze failed on {paths}: {out.stderr}")
    return json.loads(out.stdout)


def compare(what, truth, got):
    """Phases that the log calls settling are left out of means, so all steps must count here."""
    wrong = {k: (got[k], truth[k]) for k in got if got[k] != truth[k]}
    print("ok" if not wrong else "not ok", "-", what,
          "" if not wrong else f": got, truth: {wrong}")
    return not wrong


def check_job(args, folder, job):
    events, ranks, seed, more = job
    subprocess.run([f"{args.bin}/samples/generate", "--out", folder, "--events", str(events),
                    "--ranks", str(ranks), "--seed", str(seed), *more], check=True)
    with open(f"{folder}/truth.json") as f:
        truth = json.load(f)
    ending = "json" if "--kineto" in more else "tacho"
    good = bad = 0
    for form in ("as written", "packed"):
        paths = [f"{folder}/r{r}.{ending}" for r in range(ranks)]
        if form == "packed":
            for path in paths:
                subprocess.run([f"{args.bin}/tacho-convert", "-q", path, "-t", "log", "-o",
                                path + ".packed"], check=True)
            paths = [p + ".packed" for p in paths]
        got = {r["rank"]: r for r in report(f"{args.bin}/tacho-analyze", paths)["ranks"]}
        for t in truth:
            what = f"{events} events, seed {seed}, {ending} {form}, rank {t['rank']}"
            ok = compare(what, t, figures(got[t["rank"]]))
            good, bad = good + ok, bad + (not ok)
    return good, bad


def check_together(args):
    """Only findings that a page shows are replayed together: of this job two of the first five."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{args.bin}/samples/generate", "--out", folder, "--events", "20000", "--ranks",
                        "4", "--slow-rank", "2"], check=True)
        paths = [f"{folder}/r{rank}.tacho" for rank in range(4)]
        got = json.loads(subprocess.run([f"{args.bin}/tacho-analyze", "-q", "--format", "json", "--report",
                                         "findings", *paths], stdout=subprocess.PIPE, check=True).stdout)
    replayed = [n for n, row in enumerate(got["findings"], 1) if row["is_replayed"]]
    numbers = [int(n) for n in re.findall(r"[0-9]+", got["together"]["places"])]
    ok = numbers == [n for n in replayed if n <= 5][:3] and len(replayed) > len(numbers)
    print(f"{'ok' if ok else 'not ok'} - together: {numbers} of {replayed}")
    return ok


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    args = parser.parse_args()
    passed = failed = 0
    for job in JOBS:
        with tempfile.TemporaryDirectory() as folder:
            good, bad = check_job(args, folder, job)
        passed, failed = passed + good, failed + bad
    ok = check_together(args)
    passed, failed = passed + ok, failed + (not ok)
    print(f"generated jobs: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Jobs without a GPU: what their steps wait for is a finding, and its saving what the job gains.

usage: check_cpu.py --bin BUILD

Ranks of small Kineto jobs that train on CPUs with gloo, made from times that are known: a slow rank,
input, validation, code outside of phases, a slow step; and a log in which Python's garbage collector runs.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import labelled_findings    # noqa: E402
import log_file             # noqa: E402
from check_ranks import Checks, Job     # noqa: E402

RANKS, STEPS, TRANSFER, OPTIMIZER = 3, 4, 400, 300
COMM = {"cpu_comm": 1000 * TRANSFER}


def job(folder, name, data=0, validation=0, compute=2000, slow=None, more=0, beside=0,
        loop=0):
    """Paths, and how long a step of the job is, us: all leave the all-reduce together."""
    longest = data + validation + compute + (more if slow is not None else 0)
    step = longest + TRANSFER + OPTIMIZER + loop
    paths = []
    for rank in range(RANKS):
        mine = compute + (more if rank == slow else 0)
        events = []
        for number in range(STEPS):
            at = 1000 + number * step
            rows = [("user_annotation", f"ProfilerStep#{number}", at, at + step)]
            for cat, what, length in (
                    ("user_annotation", "enumerate(DataLoader)#_Iter.__next__", data),
                    ("user_annotation", "validation", validation), ("cpu_op", "aten::mm", mine)):
                rows += [(cat, what, at, at + length)] if length else []
                at += length
            end = 1000 + number * step + longest + TRANSFER
            rows += [("user_annotation", "gloo:all_reduce", at, end),
                     ("user_annotation", "Optimizer.step#SGD.step", end, end + OPTIMIZER)]
            events += [Job.event(cat, what, 400 + rank, 400 + rank, a, b, {}) for cat, what, a, b in rows]
            # on threads of autograd and of gloo
            events += [Job.event("cpu_op", name, 400 + rank, 500 + rank, end - TRANSFER + 50,
                                 end - TRANSFER + 50 + length, {})
                       for name, length in (("aten::mul", beside), ("c10d::allreduce_", 300)) if length]
        paths.append(f"{folder}/{name}{rank}.json")
        with open(paths[-1], "w") as f:
            json.dump({"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": rank,
                                                               "world_size": RANKS},
                       "traceEvents": events}, f)
    return paths, step


def findings(args, paths):
    out = subprocess.run([f"{args.bin}/tacho-analyze", "-q", "--format", "json", "--report",
                          "findings", *paths], capture_output=True, text=True, check=True)
    got = json.loads(out.stdout)
    return {f["rule"]: f for f in got["findings"]}


def check_jobs(t, args, folder):
    even, step = job(folder, "even")
    t.equal("nothing but what is transferred", {name: f["saving_ns_per_step"] for name, f in
                                               findings(args, even).items()}, COMM)
    for slow in range(RANKS):
        paths, longer = job(folder, "slow", slow=slow, more=1500)
        found = findings(args, paths)
        t.equal(f"rank {slow} is slow", set(found), {"cpu_straggler", *COMM})
        t.equal(f"rank {slow} is slow, transfer", found["cpu_comm"]["saving_ns_per_step"],
                COMM["cpu_comm"])
        one = found.get("cpu_straggler", {"saving_ns_per_step": 0, "evidence": ""})
        t.equal(f"rank {slow} is slow, saving", one["saving_ns_per_step"], 1000 * (longer - step))
        t.true(f"rank {slow} is slow, in words: {one['evidence']}",
               f"Rank {slow} communicates for 400" in one["evidence"] and
               "most extra time in forward: 1.5 ms" in one["evidence"])
        page = subprocess.run([f"{args.bin}/tacho-analyze", "-q", *paths], capture_output=True,
                              text=True, check=True).stdout
        t.true(f"rank {slow} is slow, on the page: {page}", f"rank {slow} communicates" in page)
    for rule, what in (("cpu_input", {"data": 900}), ("cpu_validation", {"validation": 700})):
        paths, longer = job(folder, rule, **what)
        found = findings(args, paths)
        t.equal(rule, {name: f["saving_ns_per_step"] for name, f in found.items()},
                {rule: 1000 * (longer - step), **COMM})
    for rule, few, enough in (("cpu_input", {"data": 130}, {"data": 160}),
                              ("cpu_validation", {"validation": 130}, {"validation": 160}),
                              ("cpu_loop", {"loop": 500}, {"loop": 900})):
        t.equal(f"{rule}, a share of any loop", set(findings(args, job(folder, rule, **few)[0])),
                set(COMM))
        t.equal(f"{rule}, a larger share", set(findings(args, job(folder, rule, **enough)[0])),
                {rule, *COMM})
    beside, _ = job(folder, "beside", beside=150)
    t.equal("an operator beside it", {name: f["saving_ns_per_step"] for name, f in
                                      findings(args, beside).items()},
            {"cpu_comm": 1000 * (TRANSFER - 150)})


def check_slow_step(t, args, folder):
    """Of eight steps one takes 30 instead of 10 ms."""
    events, at = [], 1000
    for number in range(8):
        took = 30000 if number == 5 else 10000
        events += [Job.event("user_annotation", f"ProfilerStep#{number}", 1, 1, at, at + took, {}),
                   Job.event("cpu_op", "aten::mm", 1, 1, at, at + took, {})]
        at += took
    path = f"{folder}/slow.json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"schemaVersion": 1, "traceEvents": events}, f)
    found = findings(args, [path])
    t.equal("a slow step", {name: f["saving_ns_per_step"] for name, f in found.items()},
            {"slow_steps": 20000000 // 8})
    t.true("a slow step, which", "the slowest is step 5 with 30" in found["slow_steps"]["evidence"])


def check_collections(t, args, folder):
    """The first step of a log settles; its collections are in none that is counted."""
    rows = []
    for number in range(4):
        at = 10000 * number
        rows += [Job.event("user_annotation", f"ProfilerStep#{number}", 1, 1, at, at + 10000, {}),
                 Job.event("cpu_op", "aten::mm", 1, 1, at + 100, at + 9000, {}),
                 Job.event("gc", "gc generation 2", 1, 2, at + 9000, at + 9800, {}),
                 Job.event("gc", "gc generation 0", 1, 3, at + 9500, at + 9900, {})]
    path = f"{folder}/gc.tacho"
    with open(path, "wb") as f:
        f.write(log_file.of_rows(rows, (0, 4 * labelled_findings.STEP)))
    found = findings(args, [path])
    t.equal("collections", {name: f["saving_ns_per_step"] for name, f in found.items()},
            {"cpu_gc": 900000})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    args = parser.parse_args()
    t = Checks()
    with tempfile.TemporaryDirectory() as folder:
        check_jobs(t, args, folder)
        check_slow_step(t, args, folder)
        check_collections(t, args, folder)
    print(f"cpu: {t.good} passed, {t.bad} failed")
    return t.bad != 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No finding promises more than is gained: random jobs, made again without what each rule is about.

    check_bounds.py --bin DIR [--random N] [--first SEED] [--only RULE]

PROVED has a rule and the function that makes its jobs: what a step takes with and without the fault
is known by construction.  Rules about memory promise no time; the bytes that they name are those
of a brute force over the file.  check_findings.py demands a bound of every rule, here or in
verdict.PARTS.
"""
import argparse
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import gauges               # noqa: E402
import log_file             # noqa: E402
from check_traces import Checks, ROOT   # noqa: E402
from random_trainings import BASE_NS, COMPUTE, MAIN, SIDE, Run  # noqa: E402

GIB = 1 << 30


class Bounds:
    """Runs the tool on the jobs of one rule and compares."""

    def __init__(self, binaries, folder):
        self.tool, self.folder = os.path.join(binaries, "tacho-analyze"), folder
        self.checks, self.found = Checks(), 0

    def findings(self, paths):
        done = subprocess.run([self.tool, "-q", "-f", "json", "--report", "findings", *paths],
                              stdout=subprocess.PIPE, check=True)
        return {row["rule"]: row for row in json.loads(done.stdout)["findings"]}

    def path(self, name):
        return os.path.join(self.folder, name)

    def gained(self, label, rule, paths, ns, of, least=0.0):
        """`ns`: by how much a step of `of` ns is shorter without the fault; the finding promises at
        most that, and at least this share of it where nothing hides the fault."""
        row, ns = self.findings(paths).get(rule), max(ns, 0)
        if row is None:
            self.checks.say(not least or ns < 0.25 * of, f"{label} is found", f"{ns} of {of} ns")
            return
        self.found += 1
        saves, slack = row["saving_ns_per_step"], 0.005 * of
        self.checks.say(saves <= ns + slack, f"{label} promises no more than is gained",
                        f"{saves} of {of} ns, gained {ns}")
        self.checks.say(saves >= least * ns - slack, f"{label} promises what is gained",
                        f"{saves} of {of} ns, gained {ns}")

    def silent(self, label, rule, paths):
        """What is made without the fault."""
        self.checks.say(rule not in self.findings(paths), f"{label} is not found without it", str(paths))

    def bytes(self, label, rule, paths, wanted):
        """`wanted`: the evidence, with the bytes of the file; None: there is no finding."""
        row = self.findings(paths).get(rule)
        self.checks.same(f"{label} is found", row is not None, wanted is not None)
        if row is None:
            return
        self.found += 1
        self.checks.same(f"{label} promises no time", (row["saving_ns_per_step"], row["most_ns_per_step"],
                                                       row["is_replayed"], row["edits"]), (0, 0, False, None))
        self.checks.same(f"{label} names the bytes of the file", row["evidence"], wanted)


# ---- clocks and links --------------------------------------------------------------------------

def median_step(run):
    """A step ends when its mark has ended and all work that was launched before that; the first one
    that counts is left out.  Of a log that is the second one."""
    begins = {args["correlation"]: begin for _, category, _, begin, _, args in run.events
              if category == "cuda_runtime"}
    work = [(begins[args["correlation"]], end) for _, _, _, _, end, args in run.events if "stream" in args]
    marks = sorted(end for name, _, _, _, end, _ in run.events if name.startswith("ProfilerStep#"))
    ends = [max([mark] + [end for launch, end in work if launch < mark]) for mark in marks]
    ends = ends[run.is_log:]
    return statistics.median(after - before for before, after in zip(ends, ends[1:]))


def counted(log, end_ns, counters, device=0, samples=40):
    """Samples of a GPU that is busy, over a whole run; what does not change comes once."""
    for name, value in counters.items():
        track = log.track(log_file.COUNTER, name, name, device=device)
        is_once = name.endswith(("_base", "_max"))
        for place in range(1 if is_once else samples):
            at = BASE_NS + end_ns * (place + 1) // (samples + 1)
            log.put("counter", track, name, at, at, amount=float(value), group=100 + device)


def one_gpu(b, rng, rule, edits, counters):
    """A random training on one GPU that is slower by these edits."""
    seed = 2 * rng.randrange(10 ** 6) + 1
    slow, fast = Run(seed, edits), Run(seed, "")
    of, label = median_step(slow), f"{rule}, training {seed} with {edits}"
    for run, values in ((slow, counters), (fast, {"sm_clock": 2000, "sm_clock_max": 2000})):
        log = run.log_of()
        counted(log, max(event[4] for event in run.events), {"gpu_utilization": 97, **values})
        with open(b.path("clock.tacho"), "wb") as out:
            out.write(log.bytes())
        if run is slow:
            b.gained(label, rule, [b.path("clock.tacho")], of - median_step(fast), of)
        else:
            b.silent(label, rule, [b.path("clock.tacho")])


def clocked_job(b, limits, clocks, full_us, transfer_us):
    """Ranks that compute the same and leave each collective together, at these clocks; paths, and how
    long a step is, in ns."""
    steps, top, paths = 4, max(clocks), []
    mine = [round(full_us * top / clock) for clock in clocks]
    step = max(mine) + transfer_us
    for rank, clock in enumerate(clocks):
        log = log_file.Log(rank=rank, world=len(clocks), pid=100 + rank)
        log.window(BASE_NS, BASE_NS + 1000 * steps * step)

        def put(cat, name, begin, end, tid=MAIN, **args):
            log_file.put_row(log, {"cat": cat, "name": name, "ts": begin, "dur": end - begin, "tid": tid,
                                   "args": args}, BASE_NS)

        for place in range(steps):
            at = place * step
            put("user_annotation", f"ProfilerStep#{place}", at, at + step)
            for number, (name, begin, end) in enumerate((
                    ("gemm", at, at + mine[rank]),
                    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + mine[rank], at + step)), 2 * place + 1):
                launch = max(begin - 50, 0)
                put("cuda_runtime", "cudaLaunchKernel", launch, launch + 5, correlation=number)
                put("kernel", name, begin, end, COMPUTE, correlation=number, device=0, stream=COMPUTE)
        counted(log, 1000 * steps * step, {"gpu_utilization": 99, "sm_clock": clock,
                                           **(limits(top) if clock < top else {})})
        paths.append(b.path(f"clock{rank}.tacho"))
        with open(paths[-1], "wb") as out:
            out.write(log.bytes())
    return paths, 1000 * step


def several_gpus(b, rng, rule, limits):
    """Some have a lower clock, for which the others wait."""
    ranks, top = rng.randint(2, 5), rng.randint(1200, 2000)
    slow = rng.sample(range(ranks), 1 if rule == "slow_gpu" else rng.randint(1, ranks - 1))
    low = round(top * rng.uniform(0.4, 0.9))
    speeds = [low if rank in slow else top for rank in range(ranks)]
    work = rng.randint(2, 60) * 100, rng.randint(1, 20) * 100
    label = f"{rule}, GPUs at {speeds} MHz"
    paths, step = clocked_job(b, limits, speeds, *work)
    b.gained(label, rule, paths, step - 1000 * sum(work), step, 0.98)
    b.silent(label, rule, clocked_job(b, limits, [top] * ranks, *work)[0])


def clocks(rule, limits):
    """Compute takes as much longer as the clock is lower."""
    def make(b, rng):
        if rule != "slow_gpu":
            share, top = rng.uniform(0.4, 0.95), rng.randint(1000, 2000)
            one_gpu(b, rng, rule, f"kernel:*={1 / share:.6f}", {"sm_clock": share * top, **limits(top)})
        several_gpus(b, rng, rule, limits)
    return make


def slot(b, rng):
    lanes, generation = rng.choice((1, 2, 4, 8)), rng.choice((3, 4, 5))
    slower = 16 // lanes * 2 ** (5 - generation)
    one_gpu(b, rng, "slow_slot", f"copy:HtoD*={slower},copy:DtoH*={slower}", {
        "sm_clock": 1500, "pcie_width": lanes, "pcie_width_max": 16, "pcie_generation": generation,
        "pcie_generation_max": 5})


# ---- memory ------------------------------------------------------------------------------------

def memory_job(b, levels, reserved, total_bytes, busy_us, step_us=10000):
    """`levels` of each step: bytes in use at its begin, in it and at its end.  The GPU waits for the
    host but for `busy_us` of each step."""
    rows, address, now = [], 0, 0

    def put(cat, name, begin, end, tid, **args):
        rows.append({"ph": "X", "cat": cat, "name": name, "pid": 0 if cat == "kernel" else 1, "tid": tid,
                     "ts": begin, "dur": end - begin, "args": args})

    for number, (base, *more) in enumerate(levels):
        at = number * step_us
        put("user_annotation", f"ProfilerStep#{number}", at, at + step_us, MAIN)
        put("cpu_op", "aten::mm", at + 1, at + step_us - busy_us - 1, MAIN)
        put("cuda_runtime", "cudaLaunchKernel", at + step_us - busy_us - 10, at + step_us - busy_us - 5, MAIN,
            correlation=number + 1)
        put("kernel", "gemm", at + step_us - busy_us, at + step_us, COMPUTE, correlation=number + 1, device=0,
            stream=COMPUTE)
        for place, level in enumerate((base, *more)):
            address += 512
            rows.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": MAIN,
                         "ts": at + 10 + 100 * place,
                         "args": {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": level - now,
                                  "Total Allocated": level, "Total Reserved": reserved[number]}})
            now = level
    path = b.path("memory.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem": total_bytes}],
                   "traceEvents": rows}, out)
    return path


def random_levels(rng, steps, growth=0):
    low = rng.randint(1, 40) * GIB // 10
    return [(low + number * growth + rng.randint(0, 1 << 20), low + number * growth + rng.randint(0, 4 * GIB),
             low + number * growth + rng.randint(0, 1 << 20)) for number in range(steps)]


def leak(b, rng):
    """Growth of the least level of a step: that of the file, and none without what is kept."""
    steps, growth = rng.randint(20, 60), rng.randint(1, 400) << 20
    state = rng.getstate()
    for grows in (growth, 0):
        rng.setstate(state)
        levels = random_levels(rng, steps, grows)
        carried = [min(step + before[-1:]) for step, before in zip(levels, [levels[0], *levels])]
        slope, error = gauges.growth(carried)
        peak = max(max(step) for step in levels)
        is_leak = slope > 3 * error and slope * steps > 0.01 * peak
        path = memory_job(b, levels, [peak] * steps, 1 << 37, 9000)
        b.bytes(f"memory_leak of {grows} bytes a step", "memory_leak", [path],
                "Memory that is still allocated at the end of a step grows by "
                f"{slope / 2 ** 20:.1f} MiB each step." if is_leak else None)
        b.checks.say(is_leak == bool(grows) or not is_leak, "nothing grows without what is kept")


def fragments(b, rng):
    levels = random_levels(rng, rng.randint(3, 8))
    peak = max(max(step) for step in levels)
    reserved = [int(peak * rng.uniform(1, 1.8)) for _ in levels]
    most = max(reserved)
    path = memory_job(b, levels, reserved, 1 << 37, 9000)
    b.bytes(f"fragmentation, {most} of {peak}", "fragmentation", [path],
            f"The allocator reserves {most / GIB:.2f} GiB, but at most {peak / GIB:.2f} GiB were allocated."
            if most >= 1.3 * peak and most - peak >= GIB else None)


def room(b, rng):
    """The GPU waits for launches for most of each step, and has memory left."""
    levels = random_levels(rng, rng.randint(3, 8))
    peak, total, busy = max(max(step) for step in levels), rng.randint(4, 40) * GIB, rng.randint(1000, 9000)
    path = memory_job(b, levels, [peak] * len(levels), total, busy)
    # the window ends with the last step
    idle = (10000 - busy) / 100
    bound = 10000 - busy > busy / 3
    b.bytes(f"headroom, {peak} of {total}, {idle} % idle", "headroom", [path],
            f"The peak uses {peak / GIB:.2f} of the GPU's {total / GIB:.2f} GiB, and the GPU is not busy for "
            f"{idle:.0f} % of the window." if peak <= total / 2 and idle >= 20 and bound else None)


# ---- zeros -------------------------------------------------------------------------------------

def zeros(b, rng):
    seed = rng.randrange(10 ** 6)
    with_zeros, without = Run(seed, "", zeros=True), Run(seed, "place:*zero_grad*=0", zeros=True)
    with_zeros.write(b.path("zeros.json"))
    of = median_step(with_zeros)
    b.gained(f"zero_grad, training {seed}", "zero_grad", [b.path("zeros.json")], of - median_step(without), of)
    Run(seed, "").write(b.path("zeros.json"))
    b.silent(f"zero_grad, training {seed}", "zero_grad", [b.path("zeros.json")])


# ---- jobs without a GPU ------------------------------------------------------------------------

FAULTS = {      # what a part of a step is: category and name; None: nothing is open
    "data": ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "validation": ("user_annotation", "validation"),
    "checkpoint": ("user_annotation", "save_checkpoint"),
    "loop": None,
    "gc": ("python_function", "<built-in function collect>"),
    "gemm": ("cpu_op", "aten::mm"),
    "small": ("cpu_op", "aten::add"),
}


def cpu_job(b, rng_seed, plan, name):
    """Ranks that train on CPUs with gloo; paths, and how long a step is, in ns."""
    rng = random.Random(rng_seed)
    ranks, steps = plan["ranks"], 4
    own = [sum(plan["parts"].values()) + plan["late"].get(rank, 0) for rank in range(ranks)]
    transfer = plan["transfer"] if ranks > 1 else 0
    step, paths = max(own) + transfer + plan["optimizer"], []
    for rank in range(ranks):
        rows = []

        def put(cat, what, begin, end, tid=MAIN):
            rows.append({"ph": "X", "cat": cat, "name": what, "pid": 400 + rank, "tid": tid, "ts": begin / 1000,
                         "dur": (end - begin) / 1000, "args": {}})

        for number in range(steps):
            at = 10 ** 9 + number * step
            put("user_annotation", f"ProfilerStep#{number}", at, at + step)
            end = at + max(own) + transfer
            parts = list(plan["parts"].items())
            rng.shuffle(parts)
            for part, ns in parts + [("late", plan["late"].get(rank, 0))]:
                if part == "small":
                    for place in range(ns // 25000):
                        put(*FAULTS[part], at + place * 25000, at + place * 25000 + plan["short"])
                elif ns:
                    fault = FAULTS[part] if part in FAULTS else FAULTS["gemm"]
                    if fault:
                        put(*fault, at, at + ns)
                at += ns
            if ranks > 1:
                put("user_annotation", "gloo:all_reduce", at, end)
            put("user_annotation", "Optimizer.step#Adam.step", end, end + plan["optimizer"])
            put("cpu_op", "aten::_fused_adam_", end, end + plan["optimizer"])
        paths.append(b.path(f"{name}{rank}.json"))
        with open(paths[-1], "w", encoding="utf-8") as out:
            json.dump({"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": ranks},
                       "traceEvents": rows}, out)
    return paths, step


def cpu_plan(rng, rule):
    plan = {"ranks": rng.randint(1, 4), "transfer": rng.randint(1, 9) * 100_000, "short": rng.randint(3, 19) * 1000,
            "optimizer": rng.randint(1, 9) * 100_000, "late": {},
            "parts": {part: rng.randint(2, 60) * 100_000 for part in rng.sample(sorted(FAULTS), rng.randint(1, 4))}}
    # many short operators make the code between them their own
    plan["parts"].setdefault("gemm", rng.randint(2, 60) * 100_000)
    if rule == "cpu_small_ops":
        plan["parts"].pop("loop", None)
    elif "small" in plan["parts"]:
        plan["parts"].pop("small")
    if rule in ("cpu_comm", "cpu_straggler"):
        plan["ranks"] = max(plan["ranks"], 2)
    return plan


def cpu(part, rule, left=0.0, least=0.97):
    """Made again with `left` of a part of each step."""
    def make(b, rng):
        plan, seed = cpu_plan(rng, rule), rng.random()
        if part in FAULTS:
            plan["parts"][part] = rng.randint(10, 200) * 100_000
        elif part == "late":
            plan["late"] = {rng.randrange(plan["ranks"]): rng.randint(5, 90) * 100_000}
        paths, step = cpu_job(b, seed, plan, "cpu")
        if part in FAULTS:
            plan["parts"][part] = round(left * plan["parts"][part])
        else:
            plan[part] = {} if part == "late" else 0
        others, without = cpu_job(b, seed, plan, "without")
        b.gained(f"{rule} beside {plan}", rule, paths, step - without, step, least)
        if not left:
            b.silent(f"{rule} beside {plan}", rule, others)
    return make


PROVED = {
    "clock_below_base": clocks("clock_below_base", lambda top: {"sm_clock_base": top}),
    "throttled": clocks("throttled", lambda top: {"sm_clock_max": top, "clock_limits": 0x20}),
    "slow_gpu": clocks("slow_gpu", lambda top: {}),
    "slow_slot": slot,
    "memory_leak": leak, "fragmentation": fragments, "headroom": room, "zero_grad": zeros,
    "cpu_input": cpu("data", "cpu_input"),
    "cpu_validation": cpu("validation", "cpu_validation"),
    "cpu_checkpoint": cpu("checkpoint", "cpu_checkpoint"),
    "cpu_loop": cpu("loop", "cpu_loop"),
    "cpu_gc": cpu("gc", "cpu_gc"),
    "cpu_comm": cpu("transfer", "cpu_comm"),
    "cpu_straggler": cpu("late", "cpu_straggler"),
    # operators that are made faster usually take two thirds
    "cpu_operators": cpu("gemm", "cpu_operators", left=2 / 3),
    "cpu_small_ops": cpu("small", "cpu_small_ops"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build"))
    parser.add_argument("--random", type=int, default=12, help="jobs of each rule")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="tacho-bounds-") as folder:
        for rule, make in PROVED.items():
            if options.only not in rule:
                continue
            b = Bounds(options.bin, folder)
            for seed in range(options.first, options.first + options.random):
                make(b, random.Random(f"{rule} {seed}"))
            b.checks.say(b.found >= options.random / 4, f"{rule} is in enough of its jobs", str(b.found))
            print(f"{rule}: found in {b.found} jobs")
            passed, failed = passed + b.checks.passed, failed + b.checks.failed
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

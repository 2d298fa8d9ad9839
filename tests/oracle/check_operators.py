#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators by brute force (analyze/DEFINITIONS.md 8) beside `--report operators`.

    check_operators.py --bin DIR [--traces DIR] [--random N] [--first SEED]

Random files and real ones, each figure to the nanosecond, and the same GPU time by the frames of
`tacho-convert -t folded`; and TraceLens' ops_summary.csv where there is one.
"""
import argparse
import ast
import collections
import csv
import decimal
import glob
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LAUNCHES = ("cuda_runtime", "cuda_driver", "Runtime")
WORK = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")
OPERATORS = ("cpu_op", "Operator")
# What TraceLens calls a category and what we do; its "other" is any.
CATEGORIES = {"GEMM": ("gemm",), "CONV_fwd": ("convolution",), "CONV_bwd": ("convolution",),
              "NORM_fwd": ("normalization",), "NORM_bwd": ("normalization",),
              "RMSNorm": ("normalization",), "SDPA_fwd": ("attention",), "RoPE_fwd": ("rope",),
              "InferenceAttention": ("attention",), "reduce": ("reduction",),
              "triton": ("compiled",), "multi_tensor_apply": ("optimizer",),
              "elementwise": ("elementwise", "copy", "indexing", "loss", "random")}
# In files of 2021 these are of category Operator, too.
MARKS = ("(backward)", "(recompute)")
ANNOTATIONS = ("ProfilerStep#", "enumerate(DataLoader)", "Optimizer.")


def ns(us):
    """Exact: microseconds since 1970 with three decimals are more than a float holds."""
    return int(decimal.Decimal(str(us)) * 1000)


class Call:
    def __init__(self, event):
        self.name = event["name"]
        self.begin = ns(event["ts"])
        self.end = self.begin + ns(event["dur"])
        args = event.get("args", {})
        self.shape = tuple(None if args.get(part) is None else json.dumps(args[part])
                           for part in ("Input Dims", "Input type"))
        self.above, self.has_work = None, False

    def stack(self):
        call = self
        while call is not None:
            yield call
            call = call.above


def figures(events, with_shapes):
    """{name or (name, shapes, types): figures}, found without a stack: each call looks at all."""
    threads, launches = collections.defaultdict(list), {}
    for event in events:
        if event.get("ph") != "X" or "dur" not in event:
            continue
        if event.get("cat") in OPERATORS and not event["name"].startswith(ANNOTATIONS):
            threads[event["pid"], event["tid"]].append(Call(event))
        elif event.get("cat") in LAUNCHES and "correlation" in event.get("args", {}):
            number, before = event["args"]["correlation"], None
            before = launches.get(number)
            if before is None or ns(event["ts"]) < ns(before["ts"]):
                launches[number] = event
    rows = collections.defaultdict(lambda: dict.fromkeys(
        ("calls", "gpu_calls", "host_ns", "host_self_ns", "gpu_self_ns", "gpu_ns"), 0))

    def key(call):
        return (call.name,) + call.shape if with_shapes else call.name

    for calls in threads.values():
        calls.sort(key=lambda call: (call.begin, -call.end))
        open_calls = []
        for call in calls:
            while open_calls and open_calls[-1].end <= call.begin:
                open_calls.pop()
            call.above = open_calls[-1] if open_calls else None
            open_calls.append(call)
            rows[key(call)]["calls"] += 1
            rows[key(call)]["host_self_ns"] += call.end - call.begin
            if call.above is not None:
                rows[key(call.above)]["host_self_ns"] -= min(call.end, call.above.end) - call.begin
        for one in {key(call) for call in calls}:
            until = 0
            for call in calls:
                if key(call) == one:
                    rows[one]["host_ns"] += max(0, call.end - max(call.begin, until))
                    until = max(until, call.end)
    for event in events:
        if event.get("ph") != "X" or event.get("cat") not in WORK:
            continue
        launch = launches.get(event.get("args", {}).get("correlation"))
        if launch is None:
            continue
        at, inner = ns(launch["ts"]), None
        for call in threads.get((launch["pid"], launch["tid"]), []):
            if call.begin > at:
                break
            if at < call.end:
                inner = call
        if inner is None:
            continue
        rows[key(inner)]["gpu_self_ns"] += ns(event["dur"])
        around = [call for call in threads[launch["pid"], launch["tid"]]
                  if call.begin <= at < call.end]
        for one in {key(call) for call in around}:
            rows[one]["gpu_ns"] += ns(event["dur"])
        for call in around:
            rows[key(call)]["gpu_calls"] += not call.has_work
            call.has_work = True
    return rows


def nests(events):
    """Whether operators nest: else a path may go through what has ended."""
    threads = collections.defaultdict(list)
    for event in events:
        if event.get("cat") in OPERATORS and "dur" in event:
            threads[event["pid"], event["tid"]].append((ns(event["ts"]), -ns(event["dur"])))
    for calls in threads.values():
        ends = []
        for begin, less in sorted(calls):
            while ends and ends[-1] <= begin:
                ends.pop()
            if ends and begin - less > ends[-1]:
                return False
            ends.append(begin - less)
    return True


class Checks:
    def __init__(self, binaries):
        self.tool, self.passed, self.failed = os.path.join(binaries, "tacho-analyze"), 0, 0
        self.converter = os.path.join(binaries, "tacho-convert")

    def expect(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        if not good and self.failed < 40:
            print("FAIL " + text, file=sys.stderr)

    def report(self, path):
        done = subprocess.run([self.tool, path, "--report", "operators", "-f", "json", "--quiet"],
                              stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["ranks"]

    def compare_folded(self, path, events, rows):
        """Folded stacks: nothing is lost, and what is below a frame is the operator's GPU time.

        What stands before the last mark is the forward that a backward belongs to, not what was open;
        where something is run again, what was open stands there, too."""
        done = subprocess.run([self.converter, path, "-t", "folded", "-o", "-", "--quiet"],
                              stdout=subprocess.PIPE, check=True)
        whole, below, is_again = 0, collections.Counter(), False
        for line in done.stdout.decode().splitlines():
            stack, value = line.rsplit(" ", 1)
            whole += int(value)
            frames = stack.split(";")[:-1]
            marks = [place for place, frame in enumerate(frames) if frame in MARKS]
            is_again |= "(recompute)" in frames
            for frame in set(frames[marks[-1] if marks else 0:]):
                below[frame] += int(value)
        wanted = sum(ns(event["dur"]) for event in events
                     if event.get("ph") == "X" and event.get("cat") in WORK)
        self.expect(whole == wanted, f"{path}: folded stacks have {whole} ns, not {wanted}")
        for row in [] if is_again or not nests(events) else rows:
            self.expect(below[row["name"].replace(";", ":")] == row["gpu_ns"],
                        f"{path}: {below[row['name']]} ns below {row['name']}")

    def compare(self, path, events):
        ranks = self.report(path)
        if any(event.get("cat") in WORK for event in events):   # otherwise it is host time
            self.compare_folded(path, events, ranks[0]["operators"])
        for table, with_shapes in (("operators", False), ("operator_shapes", True)):
            found = {}
            for row in ranks[0][table]:
                key = row["name"]
                if with_shapes:
                    key = (key,) + tuple(json.dumps(json.loads(row[part])) if row[part] else None
                                         for part in ("shapes", "types"))
                found[repr(key)] = row
            wanted = {repr(key): row for key, row in figures(events, with_shapes).items()}
            self.expect(found.keys() == wanted.keys(),
                        f"{path} {table}: {len(found)} rows, not {len(wanted)}")
            for key, row in wanted.items():
                for name, value in row.items():
                    have = found.get(key, {}).get(name)
                    self.expect(have == max(value, 0), f"{path} {table} {key} {name}: {have}, "
                                f"not {value}")


def random_events(seed):
    rng = random.Random(seed)
    events, correlation = [], 0

    def put(name, cat, tid, begin, end, **args):
        events.append({"ph": "X", "name": name, "cat": cat, "pid": 0 if cat == "kernel" else 5,
                       "tid": tid, "ts": begin / 1000, "dur": (end - begin) / 1000, "args": args})

    def operator(tid, begin, end, depth):
        nonlocal correlation
        args = {}
        if rng.random() < 0.7:
            args = {"Input Dims": [[rng.choice((2, 4))], []], "Input type": ["float", ""]}
        if rng.random() < 0.5:
            args["Concrete Inputs"] = ["", str(rng.randint(0, 3))]
        put(rng.choice(("aten::add", "aten::mm", "aten::linear", "my::op")), "cpu_op", tid, begin,
            end, **args)
        at = begin + rng.randint(0, 500)
        while at + 2000 < end and rng.random() < 0.85:
            until = min(at + rng.randint(1000, 40000), end)
            if depth < 5 and rng.random() < 0.6:
                operator(tid, at, until, depth + 1)
            else:
                correlation += 1
                put("cudaLaunchKernel", "cuda_runtime", tid, at, until, correlation=correlation)
                if rng.random() < 0.9:
                    begin_gpu = until + rng.randint(0, 10**6)
                    put(rng.choice(("gemm", "add")), "kernel", 7, begin_gpu,
                        begin_gpu + rng.randint(100, 90000), correlation=correlation, device=0,
                        stream=7)
            at = until + rng.randint(0, 3000)

    for tid in (11, 12):
        at = 10**6
        for _ in range(rng.randint(5, 40)):
            until = at + rng.randint(3000, 200000)
            operator(tid, at, until, 0)
            at = until + rng.randint(0, 5000)
    if rng.random() < 0.5:      # whole microseconds: what nested may overlap, touch, have no length
        for event in events:
            end = event["ts"] + event["dur"]
            event["ts"] = float(int(event["ts"]))
            event["dur"] = float(max(0, int(end - event["ts"]) + rng.randint(-1, 1)))
    events.sort(key=lambda event: event["ts"])
    return events


def check_tracelens(checks, traces):
    """On AMD GPUs its direct time leaves out memsets."""
    for path in sorted(glob.glob(os.path.join(traces, "tracelens", "*", "ops_summary.csv"))):
        name = os.path.basename(os.path.dirname(path))
        trace = os.path.join(traces, "kineto", name + ".json.gz")
        if not os.path.exists(trace):
            continue    # of a replayed graph: its operators are those of another file
        with gzip.open(trace) as file:
            events = json.load(file)["traceEvents"]
        if any("hip" in event.get("name", "") for event in events
               if event.get("cat") == "cuda_runtime"):
            events = [event for event in events if event.get("cat") != "gpu_memset"]
        rows, wanted = figures(events, False), collections.Counter()
        ours = {row["name"]: row["category"] for row in checks.report(trace)[0]["operators"]}
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file):
                wanted[row["name"]] += float(row["total_direct_kernel_time_sum"])
                for theirs in re.findall(r"'(\w+)'", row["Categories"]):
                    checks.expect(ours[row["name"]] in CATEGORIES.get(theirs, ours[row["name"]]),
                                  f"{name} {row['name']}: {ours[row['name']]}, TraceLens {theirs}")
        for operator, us in wanted.items():
            have = rows[operator]["gpu_self_ns"] / 1000
            checks.expect(abs(have - us) <= 0.002 * max(us, 10),
                          f"{name} {operator}: {have} us, TraceLens {us}")
        rows, wanted = figures(events, True), collections.Counter()
        with open(path.replace("ops_summary", "ops_unique_args"), encoding="utf-8") as file:
            for row in csv.DictReader(file):
                shape = (row[part] and json.dumps(ast.literal_eval(row[part]))
                         for part in ("Input Dims", "Input type"))
                wanted[row["name"], *(text or None for text in shape)] += \
                    float(row["total_direct_kernel_time_sum"])
        checks.expect(len(wanted) > 5, f"{name}: {len(wanted)} operators by shapes")
        for operator, us in wanted.items():
            have = rows[operator]["gpu_self_ns"] / 1000
            checks.expect(abs(have - us) <= 0.002 * max(us, 10),
                          f"{name} {operator}: {have} us, TraceLens {us}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    parser.add_argument("--random", type=int, default=40)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    checks = Checks(args.bin)
    csv.field_size_limit(1 << 30)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.random):
            path = os.path.join(folder, f"{seed}.json")
            events = random_events(seed)
            with open(path, "w", encoding="utf-8") as out:
                json.dump({"schemaVersion": 1, "traceEvents": events}, out)
            checks.compare(path, events)
    if os.path.isdir(os.path.join(args.traces, "kineto")):
        found = 0
        for name in ("h100_qwen_0.5b_inference", "h100_timesformer", "mi300_resnet_act_checkpoint",
                     "torch_compile_triton", "v100_resnet50_slow_loader_2021", "b200_eager",
                     "a100_ddp_rank0of2_nccl_args", "event_sync", "v100_cuda_graphs_rank1of2",
                     "../judged/dlrm_8ranks/rank0"):
            path = os.path.join(args.traces, "kineto", name + ".json.gz")
            if not os.path.exists(path):
                continue    # one of the largest, which are left out unless FULL=1
            found += 1
            with gzip.open(path) as file:
                checks.compare(path, json.load(file, parse_float=decimal.Decimal)["traceEvents"])
        checks.expect(found >= 6, f"{found} real traces")
        check_tracelens(checks, args.traces)
    else:
        print(f"skip real traces: no files in {args.traces}/kineto (set TACHO_TRACES)")
    print(f"operators: {checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())

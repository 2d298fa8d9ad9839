#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of CUDA graphs (analyze/DEFINITIONS.md 8, "Captured operators").

    check_captures.py --bin DIR [--traces DIR] [--random N] [--first SEED]

Random captures, in the replay's own file and in a folder beside it, joined here by the place that the
generator gave each kernel; what nobody can tell stays without an operator.  On the samples of vLLM
and SGLang, the operators that TraceLens finds, within its rounding.
"""
import argparse
import collections
import csv
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FIGURES = ("capture_kernels", "capture_gpu_self_ns", "capture_gpu_ns")


class File:
    def __init__(self):
        self.events, self.now, self.correlation = [], 10**6, 0

    def put(self, name, cat, begin, end=None, **args):
        if end is None:
            self.now += 500
            end = self.now
        place = {"pid": 0, "tid": 7} if cat in ("kernel", "gpu_memcpy") else {"pid": 5, "tid": 5}
        self.events.append({"ph": "X", "name": name, "cat": cat, "ts": begin / 1000,
                            "dur": (end - begin) / 1000, "args": args, **place})

    def call(self, name, **args):
        begin, self.correlation = self.now, self.correlation + 1
        self.put(name, "cuda_runtime", begin, correlation=self.correlation, **args)
        return self.correlation

    def write(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 0},
                       "traceEvents": self.events}, out)


class Graph:
    """What one capture holds: of each node its kernel and the operators around its call."""

    def __init__(self, rng, size, names):
        self.size, self.nodes = size, []
        for _ in range(rng.randint(1, 12)):
            inner = rng.choice(("aten::mm", "aten::add", "my::attention"))
            outer = rng.choice(((), (("aten::linear", "[[2,4]]"),)))
            self.nodes.append((rng.choice(names), ((inner, f"[[{size},4]]"),) + outer))

    def capture(self, file, says_kernels, rng):
        begin = file.now
        file.call("cudaStreamBeginCapture")
        for kernel, operators in self.nodes:
            begins = []
            for _ in operators:
                begins.append(file.now)
                file.now += 100
            if kernel == "Memcpy DtoD":
                file.call("cudaMemcpyAsync")
            else:
                file.call("cudaLaunchKernel", **({"kernel": kernel} if says_kernels else {}))
            for (name, shapes), at in zip(operators, reversed(begins)):
                file.put(name, "cpu_op", at, **{"Input Dims": json.loads(shapes)})
        if rng.random() < 0.3:      # a call on another stream runs at once and is no node
            number = file.call("cudaLaunchKernel", kernel="eager")
            file.put("eager", "kernel", file.now + 10, correlation=number, device=0, stream=8)
        file.call("cudaStreamEndCapture")
        if self.size:
            file.put(f"capture_{self.size}_FULL", "user_annotation", begin)

    def replay(self, file, rng, says_ids, is_lost=None):
        """{(operator, shapes): figures} of one launch; `is_lost`: a node that does not run."""
        begin = file.now
        number, gained = file.call("cudaGraphLaunch"), collections.Counter()
        at, places = file.now, list(range(len(self.nodes)))
        if says_ids:
            rng.shuffle(places)     # branches run in any order
        for place in places:
            if place == is_lost:
                continue
            kernel, operators = self.nodes[place]
            ns = rng.randint(100, 9000)
            args = {"graph node id": 100 + place} if says_ids else {}
            file.put(kernel, "gpu_memcpy" if "Memcpy" in kernel else "kernel", at, at + ns,
                     correlation=number, device=0, stream=7, **args)
            at += ns + 5
            lost = self.nodes[is_lost][0] if is_lost is not None else None
            if kernel == lost:      # as often in the capture as not: nobody knows which
                continue
            gained[operators[0], "capture_kernels"] += 1
            gained[operators[0], "capture_gpu_self_ns"] += ns
            for one in set(operators):
                gained[one, "capture_gpu_ns"] += ns
        file.now = max(file.now, at)
        file.put(f"step[DECODE bs={self.size - 1}]" if self.size else "ProfilerStep#3",
                 "user_annotation", begin)
        return gained


class Checks:
    def __init__(self, binaries):
        self.tool, self.passed, self.failed = os.path.join(binaries, "tacho-analyze"), 0, 0

    def expect(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        if not good and self.failed < 30:
            print("FAIL " + text, file=sys.stderr)

    def rank(self, *args):
        done = subprocess.run([self.tool, *args, "-r", "operators,modules", "-f", "json", "-q"],
                              stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["ranks"][0]

    def random_case(self, folder, seed):
        rng = random.Random(seed)
        says_kernels, is_beside = rng.random() < 0.6, rng.random() < 0.5
        names = ("gemm", "add", "Memcpy DtoD", "norm")
        sizes = rng.sample((2, 4, 8, 16), rng.randint(1, 3)) if rng.random() < 0.7 else [0]
        graphs = [Graph(rng, size, names) for size in sorted(sizes)]
        lost = None
        if says_kernels and len(graphs) == 1 and rng.random() < 0.4:
            lost = rng.randrange(len(graphs[0].nodes))
        replayed = File()
        captured = File() if is_beside else replayed
        for graph in graphs:
            graph.capture(captured, says_kernels, rng)
        wanted, launches = collections.Counter(), 0
        says_ids = rng.random() < 0.3
        for graph in rng.choices(graphs, k=rng.randint(1, 5)):
            wanted += graph.replay(replayed, rng, says_ids, lost)
            launches += lost is None or len(graph.nodes) > 1
        path = os.path.join(folder, f"{seed}.json")
        replayed.write(path)
        args = [path]
        if is_beside:
            captured.write(os.path.join(folder, f"{seed}.captures", "one.json"))
            args += ["--capture", os.path.join(folder, f"{seed}.captures")]
        rank = self.rank(*args)
        found = collections.Counter()
        for row in rank["operator_shapes"]:
            for figure in FIGURES:
                found[(row["name"], row["shapes"]), figure] += row[figure] or 0
        self.expect(+found == +wanted, f"seed {seed}: {+found}\n  not {+wanted}")
        graph = rank["graphs"] or {"attributed": 0, "attributed_gpu_ns": 0, "launches": 0}
        for key, figure in (("attributed", "capture_kernels"),
                            ("attributed_gpu_ns", "capture_gpu_self_ns")):
            self.expect(graph[key] == sum(n for (_, name), n in wanted.items() if name == figure),
                        f"seed {seed} {key}: {graph[key]}")
        self.expect(graph["launches"] == launches, f"seed {seed}: {graph['launches']} launches")
        by_name = collections.Counter()
        for row in rank["operators"]:
            by_name["capture_gpu_self_ns"] += row["capture_gpu_self_ns"] or 0
        self.expect(by_name["capture_gpu_self_ns"] == graph["attributed_gpu_ns"],
                    f"seed {seed}: by name {by_name}")
        # 100 columns hold what the graphs did, and operators without other work stand in its order
        page = subprocess.run([self.tool, *args, "-r", "operators", "-q"], stdout=subprocess.PIPE, check=True,
                              env={**os.environ, "COLUMNS": "100"}).stdout.decode().split("OPERATOR SHAPES")[0]
        titles = page.split("\n")[1]
        self.expect(all((f"  {title} " in titles) == (graph["attributed"] > 0) for title in ("graph self", "graph")),
                    f"seed {seed}: {titles}")
        only = [row["capture_gpu_self_ns"] or 0 for row in rank["operators"] if not row["gpu_self_ns"]]
        self.expect(only == sorted(only, reverse=True), f"seed {seed}: order {only}")

    def two_sizes(self, folder):
        """Equal captures of two sizes: a launch whose step says no size belongs to neither."""
        rng, file = random.Random(1), File()
        graph = Graph(rng, 4, ("gemm",))
        for size in (4, 8):
            graph.size = size
            graph.capture(file, True, random.Random(5))
        graph.size = 0
        graph.replay(file, rng, False)
        path = os.path.join(folder, "sizes.json")
        file.write(path)
        rank = self.rank(path)
        self.expect(rank["graphs"]["attributed"] == 0 and rank["graphs"]["replayed"] ==
                    len(graph.nodes), f"two sizes: {rank['graphs']}")

    def tracelens(self, traces):
        for path in sorted(glob.glob(os.path.join(traces, "graphs", "*"))):
            name = os.path.basename(path)
            table = os.path.join(traces, "tracelens", name, "ops_summary.csv")
            rank = self.rank(glob.glob(os.path.join(path, "*.json.gz"))[0], "--capture",
                             os.path.join(path, "capture_traces"))
            graphs = rank["graphs"]
            self.expect(graphs["attributed"] == graphs["replayed"] > 400, f"{name}: {graphs}")
            found, wanted = collections.Counter(), collections.Counter()
            within = [row for row in rank["modules"] if "/" not in row["path"]]
            self.expect(sum(row["capture_gpu_ns"] or 0 for row in within) ==
                        graphs["attributed_gpu_ns"], f"{name}: modules {within}")
            for row in rank["operators"]:
                # TraceLens leaves the number behind a profiler's own operator out
                key = row["name"].rstrip("0123456789").rstrip("_") \
                    if row["name"].startswith("sglang_profiler::") else row["name"]
                found[key] += (row["gpu_self_ns"] + (row["capture_gpu_self_ns"] or 0)) / 1000
            with open(table, encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    if not row["name"].startswith("hip"):   # a launch below no operator
                        wanted[row["name"]] += float(row["total_direct_kernel_time_sum"])
            for operator, us in wanted.items():
                self.expect(abs(found[operator] - us) <= 0.001 * max(us, 20),
                            f"{name} {operator}: {found[operator]} us, TraceLens {us}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    parser.add_argument("--random", type=int, default=60)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    checks = Checks(args.bin)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.random):
            checks.random_case(folder, seed)
        checks.two_sizes(folder)
    if os.path.isdir(os.path.join(args.traces, "graphs")):
        checks.tracelens(args.traces)
    else:
        print(f"skip real traces: no files in {args.traces}/graphs (set TACHO_TRACES)")
    print(f"captures: {checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())

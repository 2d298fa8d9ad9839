#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPU work that says itself what it is of (analyze/DEFINITIONS.md 4, "Scopes of XLA").

    check_scopes.py --bin DIR [--traces DIR] [--random N] [--first SEED]

Random names as JAX makes them, with transformations around scopes, and the kernels of real XSpace
files as `-t csv` has them: operators and modules, forward, backward and recomputation, beside sums
that are made here.
"""
import argparse
import collections
import csv
import glob
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
AROUND = re.compile(r"^(transpose|jvp|vmap|checkpoint|remat)\((.*)\)$")


def parts_of(name):
    parts, depth = [""], 0
    for letter in name:
        depth += (letter == "(") - (letter == ")")
        if letter == "/" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def understood(args):
    """(scopes, operation, pass) of the stats of a kernel; None: they say nothing."""
    tf_op, name, hlo = args.get("tf_op") or "", args.get("name_stat") or "", args.get("hlo_op")
    text = tf_op if "/" in tf_op else name
    if ":" in text.rsplit("/", 1)[-1]:
        text = text[:text.rindex(":")]
    if not hlo and "/" not in text:
        return None
    scopes, direction = [], "forward"
    for part in parts_of(text) if text else []:
        while AROUND.match(part):
            word, part = AROUND.match(part).groups()
            if word == "transpose" and direction == "forward":
                direction = "backward"
        if part == "rematted_computation":
            direction = "recompute"
        if part == "gradient_tape":
            direction = "backward"
        scopes.append("" if part in ("rematted_computation", "checkpoint", "remat",
                                     "gradient_tape") else part)
    operation = ""
    if scopes and "(" not in scopes[-1]:
        operation = scopes.pop() if "/" in text else ""
        scopes = scopes if "/" in text else []
    if not operation and hlo:
        operation = re.sub(r"(?<=.)\.\d+$", "", hlo)
    return [scope for scope in scopes if scope], operation, direction


class Checks:
    def __init__(self, binaries):
        self.binaries, self.passed, self.failed = binaries, 0, 0

    def run(self, tool, *args):
        return subprocess.run([os.path.join(self.binaries, tool), *args, "-q"],
                              stdout=subprocess.PIPE, check=True).stdout.decode()

    def same(self, label, found, wanted):
        self.passed += found == wanted
        self.failed += found != wanted
        if found != wanted and self.failed < 20:
            print(f"FAIL {label}: {found}\n  not {wanted}", file=sys.stderr)

    def compare(self, label, path, kernels):
        """`kernels`: (arguments, ns) of each."""
        operators, modules = collections.Counter(), collections.Counter()
        for args, ns in kernels:
            meant = understood(args)
            if meant is None:
                continue
            scopes, operation, direction = meant
            if operation:
                operators[operation] += ns
                operators[operation, "calls"] += 1
            for depth in range(1, len(scopes) + 1):
                modules["/".join(scopes[:depth]), direction] += ns
        rank = json.loads(self.run("tacho-analyze", path, "-r", "operators,modules", "-f",
                                   "json"))["ranks"][0]
        found = collections.Counter()
        for row in rank["operators"]:
            if row["gpu_self_ns"]:
                found[row["name"]] += row["gpu_self_ns"]
                # all kernels of one run of an operation are a call where its cost is known
                kernels_of = operators[row["name"], "calls"]
                is_by_run = row["tflops"] is not None and 0 < row["calls"] < kernels_of
                found[row["name"], "calls"] += kernels_of if is_by_run else row["calls"]
        self.same(f"{label} operators", found, operators)
        found = collections.Counter()
        for row in rank["modules"]:
            for direction in ("forward", "backward", "recompute"):
                if row[f"{direction}_gpu_ns"]:
                    found[row["path"], direction] += row[f"{direction}_gpu_ns"]
        self.same(f"{label} modules", found, modules)


def random_name(rng):
    parts = ["jit(step)"]
    for _ in range(rng.randint(0, 3)):
        scope = rng.choice(("Dense_0", "Block_1", "", "bsd,de->bse", "checkpoint",
                            "rematted_computation"))
        for word in rng.sample(("jvp", "transpose", "vmap", "remat"), rng.choice((0, 0, 1, 2))):
            scope = f"{word}({scope})"
        parts.append(scope)
    if rng.random() < 0.9:
        parts.append(rng.choice(("dot_general", "add", "reduce_sum")))
    return "/".join(parts)


def random_case(checks, folder, seed):
    rng, events, kernels = random.Random(seed), [], []
    for i in range(rng.randint(1, 60)):
        args, ns = {"device": 0, "stream": 7}, rng.randint(1, 9999)
        kind = rng.randrange(5)
        if kind == 0:
            args["tf_op"] = "XlaModule:"
            args["name_stat"] = rng.choice((random_name(rng), "kernel", "jit(step)"))
        elif kind == 1:
            args["tf_op"] = random_name(rng) + rng.choice((":", ":dot_general", ""))
        elif kind == 2:
            args["tf_op"] = "gradient_tape/model/dense/MatMul:MatMul"
        if rng.random() < 0.7:
            args["hlo_op"] = rng.choice(("fusion.12", "fusion", "custom-call.1", "wrapped_add.x"))
        events.append({"ph": "X", "cat": "kernel", "name": f"k{i % 3}", "pid": 0, "tid": 7,
                       "ts": i * 20, "dur": ns / 1000, "args": args})
        kernels.append((args, ns))
    path = os.path.join(folder, f"{seed}.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"schemaVersion": 1, "traceEvents": events}, out)
    checks.compare(f"seed {seed}", path, kernels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    parser.add_argument("--random", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    checks = Checks(args.bin)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.random):
            random_case(checks, folder, seed)
    paths = sorted(glob.glob(os.path.join(args.traces, "xplane", "*.pb")))
    if not paths:
        print(f"skip real traces: no files in {args.traces}/xplane (set TACHO_TRACES)")
    for path in paths:
        rows = csv.DictReader(io.StringIO(checks.run("tacho-convert", path, "-t", "csv", "--args",
                                                     "full")))
        kernels = [(json.loads(row["args"] or "{}"), int(row["dur_ns"])) for row in rows
                   if row["kind"] in ("kernel", "memcpy", "memset")]
        checks.compare(os.path.basename(path), path, kernels)
    print(f"scopes: {checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())

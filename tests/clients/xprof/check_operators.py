#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""XProf's statistics of the framework's operations beside our report of operators, of XSpaces of JAX.

    check_operators.py --bin DIR [--traces DIR]

Both give each kernel to one operation, so that the time of all is the same but for XProf's row IDLE.  By name
they differ where a kernel is a fusion: XProf asks the program for the operation at its root, we give the
kernel to the fusion that it says it is of.  So an operation of ours that XProf has, too, has no more there, and
the same unless fusions have it as root.

What all operations compute and move is what XProf's cost analysis says of them.  It leaves out cuBLAS, so that these
are counted here from the sizes in the text of the operation, and counts a convolution for each of its kernels.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from check_xprof import device_ops, rows, tool

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
FILES = ("jax_te_mi300", "jax_conv_mi300_8gpu")
ROOTS = ("dot_general", "transpose")    # of fusions in these files


def costs(path):
    """FLOPs and bytes of all operations of a file."""
    table = rows(tool("hlo_stats", [path]))
    runs = max(row["occurrences"] for row in table if row["category"] == "loop fusion")
    total = [0, 0]
    for row in table:
        calls, seconds = row["occurrences"], row["avg_self_time"] / 1e6
        expression = row["hlo_op_expression"]
        flops, moved = (row["model_flop_rate"] or 0) * 1e9, (row["measured_memory_bw"] or 0) * 2 ** 30
        flops, moved = flops * seconds, moved * seconds
        if re.match(r"%custom-call", expression):
            out, a, b = [[int(n) for n in sizes.split(",")] for sizes in
                         re.findall(r"bf16\[([\d,]+)\]", expression)]
            flops = 2 * out[0] * out[1] * max(set(a) & set(b))
            moved = 2 * sum(sizes[0] * sizes[1] for sizes in (out, a, b))
        if "conv" in row["hlo_op_name"] and row["category"] == "custom-call":
            calls = runs
        total[0] += calls * flops
        total[1] += calls * moved
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=os.path.join(ROOT, "build"))
    parser.add_argument("--traces", default=os.environ.get("TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    args = parser.parse_args()
    passed = failed = 0
    for name in FILES:
        path = os.path.join(args.traces, "xplane", name + ".xplane.pb")
        if not os.path.exists(path):
            print(f"skip {name}: not in {args.traces}/xplane (set TACHO_TRACES)")
            continue
        theirs, ours = collections.Counter(), collections.Counter()
        with tempfile.TemporaryDirectory() as folder:   # XProf writes its caches beside what it reads
            copy = shutil.copy(path, folder)
            for row in device_ops([copy]):
                theirs[row["type"]] += row["total_self_time"]
            want = costs(copy)
        done = subprocess.run([os.path.join(args.bin, "tacho-analyze"), path, "-q", "-r", "operators", "-f", "json"],
                              stdout=subprocess.PIPE, check=True)
        have = [0, 0]
        for rank in json.loads(done.stdout)["ranks"]:
            for row in rank["operators"]:
                have = [have[0] + (row["flops"] or 0), have[1] + (row["bytes"] or 0)]
                ours[row["name"]] += row["gpu_self_ns"] / 1000
        theirs.pop("IDLE", None)
        whole = sum(theirs.values()), sum(ours.values())
        checks = [(abs(whole[0] - whole[1]) <= 1e-6 * whole[0] and whole[0] > 0, f"all operations: {whole}")]
        for key in theirs.keys() & {key for key, value in ours.items() if value}:
            good = ours[key] <= theirs[key] + 0.01 if key in ROOTS else abs(ours[key] - theirs[key]) < 0.01
            checks.append((good, f"{key}: {theirs[key]} us, ours {ours[key]}"))
        for what, got, wanted in zip(("FLOPs", "bytes"), have, want):
            checks.append((abs(got - wanted) <= 1e-4 * wanted > 0, f"{what}: {got}, XProf {wanted}"))
        checks.append((len(checks) > 1, "no operation has one name in both"))
        for good, text in checks:
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(f"not ok - {name} {text}", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""XProf's statistics of the framework's operations beside our report of operators, of XSpaces of JAX.

    check_operators.py --bin DIR [--traces DIR]

Both give each kernel to one operation, so that the time of all is the same but for XProf's row IDLE.  By name
they differ where a kernel is a fusion: XProf asks the program for the operation at its root, we give the
kernel to the fusion that it says it is of.  So an operation of ours that XProf has, too, has no more there, and
the same unless fusions have it as root.
"""
import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

from check_xprof import device_ops

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
FILES = ("jax_te_mi300", "jax_conv_mi300_8gpu")
ROOTS = ("dot_general", "transpose")    # of fusions in these files


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
            for row in device_ops([shutil.copy(path, folder)]):
                theirs[row["type"]] += row["total_self_time"]
        done = subprocess.run([os.path.join(args.bin, "tacho-analyze"), path, "-q", "-r", "operators", "-f", "json"],
                              stdout=subprocess.PIPE, check=True)
        for rank in json.loads(done.stdout)["ranks"]:
            for row in rank["operators"]:
                ours[row["name"]] += row["gpu_self_ns"] / 1000
        theirs.pop("IDLE", None)
        whole = sum(theirs.values()), sum(ours.values())
        checks = [(abs(whole[0] - whole[1]) <= 1e-6 * whole[0] and whole[0] > 0, f"all operations: {whole}")]
        for key in theirs.keys() & {key for key, value in ours.items() if value}:
            good = ours[key] <= theirs[key] + 0.01 if key in ROOTS else abs(ours[key] - theirs[key]) < 0.01
            checks.append((good, f"{key}: {theirs[key]} us, ours {ours[key]}"))
        checks.append((len(checks) > 1, "no operation has one name in both"))
        for good, text in checks:
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(f"not ok - {name} {text}", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

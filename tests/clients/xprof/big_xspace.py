#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recording whose XSpace would be over 2 GiB, which no reader of protobuf opens (make check-big).

    big_xspace.py --bin DIR [--events N] [--folder FOLDER]

Without a word of --max-size every file stays below 2 GiB, the tool says what it merged, and XProf's
own reader finds the kernels' time in it.  Takes some four minutes of one core and 6 GB of disk, so it
is no part of make check.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import check_xprof

LIMIT = 2 ** 31 - 1


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    return done.returncode, done.stderr


def files(folder):
    return {os.path.join(where, name): os.path.getsize(os.path.join(where, name))
            for where, _, names in os.walk(folder) for name in names}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--bin", required=True)
    options.add_argument("--events", type=int, default=60_000_000)
    options.add_argument("--folder")
    asked = options.parse_args()
    tools = os.path.abspath(asked.bin)
    with tempfile.TemporaryDirectory(dir=asked.folder) as work:
        made, out = os.path.join(work, "made"), os.path.join(work, "tb")
        subprocess.run([f"{tools}/samples/generate", "--out", made, "--events",
                        str(asked.events)], check=True, stdout=subprocess.DEVNULL)
        log, convert = f"{made}/r0.tacho", f"{tools}/tacho-convert"
        report = json.loads(subprocess.run(
            [f"{tools}/tacho-analyze", "-q", log, "--report", "kernels", "--format", "json"],
            check=True, capture_output=True).stdout)
        begin = time.monotonic()
        code, said = run(convert, log, "-t", "tensorboard", "-o", out)
        print(said.strip())
        sizes = files(out)
        check_xprof.check("exit code", code, 0)
        check_xprof.check("files over the limit", [s for s in sizes.values() if s > LIMIT], [])
        check_xprof.check("says what it merged", bool(re.search("merged into", said)), True)
        print(f"{asked.events} events: {time.monotonic() - begin:.0f} s, "
              f"{max(sizes.values(), default=0)} bytes at most")
        # one that stands for several lasts from the first's begin to the last's end
        want = sum(row["total_ns"] for row in report["ranks"][0]["kernels"]) / 1e3
        shown = sum(row[1] for row in check_xprof.kernel_stats(check_xprof.spaces(out)).values())
        check_xprof.check(f"XProf: {shown:.0f} us of kernels, {want:.0f} recorded",
                          0.95 < shown / want < 1.25, True)
    print(f"big XSpace: {check_xprof.good} passed, {check_xprof.bad} failed")
    return check_xprof.bad > 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The same input and options give the same bytes: at another hour, from another folder, with another
TMPDIR, locale and time zone, at any number of threads, with another user's environment.

usage: same.py --bin BUILD

Reports in every format, partial files and what they merge to, logs and bundles.  What differs is said
with the first place where it does.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import tool_names  # noqa: E402


def read_all(path):
    """Bytes of a file, or of all files below a folder with their names."""
    if not os.path.isdir(path):
        with open(path, "rb") as f:
            return f.read()
    found = b""
    for where, folders, files in os.walk(path):
        folders.sort()
        for name in sorted(files):
            full = os.path.join(where, name)
            found += os.path.relpath(full, path).encode() + b"\0" + read_all(full)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    a = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        binary = os.path.abspath(a.bin)
        convert, analyze = os.path.join(binary, "tacho-convert"), os.path.join(binary, "tacho-analyze")
        data = os.path.join(scratch, "data")
        for how, name in ((["--kineto"], "json"), ([], "tacho")):
            subprocess.run([os.path.join(binary, "samples/generate"), "--out", data, "--events", "30000", "--ranks",
                            "3", "--slow-rank", "1"] + how, check=True, stdout=subprocess.DEVNULL)
        inputs = [f"data/r{i}.json" for i in range(3)]
        logs = [f"data/r{i}.tacho" for i in range(3)]
        every = ",".join(tool_names.reports(binary))
        rows = [(f"report {kind}", analyze, logs + ["--report", "kernels" if kind == "csv" else every, "--format", kind],
                 tool_names.output(kind)) for kind in tool_names.report_formats(binary)]
        rows += [(f"report of JSON, {kind}", analyze, inputs + ["--format", kind], "o") for kind in ("json", "html")]
        rows += [("one input, per step", analyze, [logs[0], "--per-step", "--format", "json"], "o"),
                 ("diff", analyze, ["--diff", logs[0], logs[1]], "o"),
                 ("partial", analyze, logs[:2], "o.partial"),
                 ("log of JSON", convert, [inputs[0], "-t", "log"], "o.tacho"),
                 ("log of three", convert, inputs + ["-t", "log"], "o.tacho"),
                 ("bundle", convert, [inputs[0], "-t", "bundle"], "o.tar.gz"),
                 ("bundle, zip", convert, [logs[0], "-t", "bundle"], "o.zip")]
        ways = [("plainly", {}, "1", "one"),
                ("another place and time", {"TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8",
                                            "HOME": "/nowhere", "USER": "somebody", "COLUMNS": "57"}, "3", "two"),
                ("all cores, C locale", {"LC_ALL": "C.UTF-8", "TZ": "America/St_Johns"}, "0", "a longer name/three")]
        outputs = {}
        for what, more, threads, where in ways:
            place = os.path.join(scratch, where)
            os.makedirs(os.path.join(place, "tmp"))
            os.symlink(data, os.path.join(place, "data")) if threads != "1" else shutil.copytree(
                data, os.path.join(place, "data"))
            env = dict({k: v for k, v in os.environ.items() if not k.startswith(("LC_", "TZ"))},
                       TMPDIR=os.path.join(place, "tmp"), LC_ALL="C.UTF-8")
            env.update(more)
            for name, tool, args, out in rows:
                target = ["--partial", out] if name == "partial" else ["-o", out]
                done = subprocess.run([tool, "-q", "--threads", threads] + args + target, cwd=place, env=env,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
                path = os.path.join(place, out)
                got = (done.returncode, read_all(path) if os.path.exists(path) else b"", done.stdout)
                if name == "diff" and done.returncode not in (0, 3) or name != "diff" and done.returncode != 0:
                    print(f"not ok - {name}, {what}: {done.returncode} {done.stderr[:300]}")
                    failed += 1
                shutil.rmtree(path, ignore_errors=True)
                if os.path.exists(path):
                    os.unlink(path)
                first = outputs.setdefault(name, got)
                if first == got and len(got[1]) > 50:
                    passed += 1
                    continue
                failed += 1
                at = next((i for i, (x, y) in enumerate(zip(first[1], got[1])) if x != y), min(len(first[1]), len(got[1])))
                print(f"not ok - {name}, {what}: differs at byte {at} of {len(first[1])}, {len(got[1])}: "
                      f"{first[1][max(0, at - 40):at + 40]} {got[1][max(0, at - 40):at + 40]}")
            time.sleep(1.1)  # another second
    print(f"same: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

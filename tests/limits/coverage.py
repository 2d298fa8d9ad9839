# SPDX-License-Identifier: Apache-2.0
"""Lines that ran, of all lines that can: per folder, and the twenty files of which least ran.

usage: coverage.py BUILD       a build with COV=1 in which tests have run
"""
import collections
import json
import os
import subprocess
import sys

FOLDERS = ("schemas", "collector", "convert", "analyze")


def main():
    build = sys.argv[1]
    data = [os.path.join(where, name) for where, _, names in os.walk(build) for name in names
            if name.endswith(".gcda")]
    lines = collections.defaultdict(dict)  # file: {line: whether it ran in any object}
    for at in range(0, len(data), 40):
        done = subprocess.run(["gcov", "--json-format", "--stdout"] + data[at:at + 40], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for text in done.stdout.splitlines():
            for file in json.loads(text)["files"]:
                name = os.path.normpath(file["file"])
                if name.split("/")[0] in FOLDERS and name.endswith((".c", ".h")):
                    for line in file["lines"]:
                        number = line["line_number"]
                        lines[name][number] = lines[name].get(number, False) or line["count"] > 0
    files = sorted((100 * sum(of.values()) / len(of), name, sum(of.values()), len(of))
                   for name, of in lines.items() if of)
    for folder in FOLDERS:
        ran = sum(f[2] for f in files if f[1].startswith(folder + "/"))
        of = sum(f[3] for f in files if f[1].startswith(folder + "/"))
        print(f"{folder:10} {100 * ran / max(of, 1):5.1f} %  {ran} of {of} lines")
    ran, of = sum(f[2] for f in files), sum(f[3] for f in files)
    print(f"{'all':10} {100 * ran / max(of, 1):5.1f} %  {ran} of {of} lines, {len(files)} files")
    print("least covered:")
    for percent, name, ran, of in files[:20]:
        print(f"  {percent:5.1f} %  {name}  ({of - ran} of {of} lines did not run)")
    there = [os.path.join(where, f) for folder in FOLDERS for where, _, names in os.walk(folder) for f in names]
    missing = [f for f in there if f.endswith(".c") and f not in lines]
    if missing:
        print("no code, or in no program that ran:", " ".join(sorted(missing)))


if __name__ == "__main__":
    main()

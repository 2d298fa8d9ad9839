#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pprof's own tool and a flame-graph viewer read what `-t pprof` and `-t folded` write.

    check_flame.py --bin DIR

Each node of the viewer's tree is compared with `--report stacks`, which tests/oracle/check_paths.py
compares with a brute force; totals of every type with what `go tool pprof` says.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../oracle"))
import check_paths  # noqa: E402
from flamegraph_textual.parsers import parse  # noqa: E402

TYPES = ("calls", "gpu_ns", "host_ns", "alloc_bytes")


def marked(row):
    return row["name"] if row["name"] is not None else f"({row['class']})"


def nodes_of(rank):
    """{names from the root: figures with all below}"""
    rows = {row["node"]: row for row in rank["paths"]}
    below = collections.defaultdict(lambda: [0] * len(TYPES))
    for row in rank["paths"]:
        if row["class"] == "idle":
            continue
        path, at = [], row
        while at["above"] is not None:
            name = re.sub(r"^\S+\.py\(\d+\): ", "", marked(at))
            path.insert(0, name)
            at = rows[at["above"]]
        for depth in range(len(path) + 1):
            for place, key in enumerate(TYPES):
                below[tuple(path[:depth])][place] += row[key]
    return {path: tuple(values) for path, values in below.items() if any(values)}


def tree_of(stack, above=()):
    """{names from the root: figures}; the viewer has frames of one name apart by their file."""
    found = collections.defaultdict(lambda: [0] * len(stack.values))
    for child in stack.children:
        for path, values in tree_of(child, above + (child.name,)).items():
            found[path] = [a + b for a, b in zip(found[path], values)]
    found[above] = [a + b for a, b in zip(found[above], stack.values)]
    return found


class Checks:
    passed = failed = 0

    def expect(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        if not good and self.failed < 30:
            print("not ok - " + text, file=sys.stderr)

    def one(self, binaries, folder, seed):
        path = check_paths.write(folder, f"{seed}.json", check_paths.Job(seed).events)
        done = subprocess.run([os.path.join(binaries, "tacho-analyze"), path, "-q", "-r", "stacks",
                               "-f", "json"], stdout=subprocess.PIPE, check=True)
        wanted = nodes_of(json.loads(done.stdout)["ranks"][0])
        out = {}
        for kind, name in (("pprof", "p.pprof"), ("pprof", "p.pb.gz"), ("folded", "p.folded")):
            out[name] = os.path.join(folder, name)
            subprocess.run([os.path.join(binaries, "tacho-convert"), path, "-q", "-t", kind, "-o",
                            out[name]], check=True)
        for name in ("p.pprof", "p.pb.gz"):
            with open(out[name], "rb") as file:
                profile = parse(file.read(), name)
            found = {node: tuple(values) for node, values in tree_of(profile.root_stack).items()}
            self.expect([kind.sample_type for kind in profile.sample_types] ==
                        ["calls", "gpu", "host", "alloc"], f"{seed} {name}: {profile.sample_types}")
            for node in found.keys() | wanted.keys():
                self.expect(found.get(node) == wanted.get(node),
                            f"{seed} {name} {node}: {found.get(node)}, not {wanted.get(node)}")
        with open(out["p.folded"], "rb") as file:
            profile = parse(file.read(), "p.folded")
        for node, values in tree_of(profile.root_stack).items():
            if not any(".py(" in name for name in node):
                self.expect(values[0] == wanted[node][1], f"{seed} folded {node}: {values}")
        self.expect(profile.root_stack.values[0] == wanted[()][1], f"{seed} folded: the whole")
        for place, kind in enumerate(("calls", "gpu", "host", "alloc")):
            done = subprocess.run(["go", "tool", "pprof", "-raw", out["p.pprof"]],
                                  stdout=subprocess.PIPE, check=True)
            rows = re.findall(rb"^ +(\d+) +(\d+) +(\d+) +(\d+):", done.stdout, re.M)
            whole = sum(int(row[place]) for row in rows)
            self.expect(whole == wanted[()][place], f"{seed} {kind}: go tool pprof has {whole}")
            top = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index", kind,
                                  out["p.pprof"]], stdout=subprocess.PIPE, check=True)
            self.expect(b"Type: " + kind.encode() in top.stdout and
                        (b"% of " in top.stdout or not whole), f"{seed} {kind}: {top.stdout[:200]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    args = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, 6):
            checks.one(args.bin, folder, seed)
    print(f"flame graphs: {checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())

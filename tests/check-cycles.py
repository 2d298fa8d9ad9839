#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cycles of objects, by the symbols that they define and need.

An include shows what a file may use; the symbol table shows what it does use.  Files that need each
other, directly or around a circle, cannot be read or linked one without the other.  This prints each
such group and fails when one has more than 8 files.

    python3 tests/check-cycles.py BUILD
"""
import os
import subprocess
import sys

MOST = 8
LAYERS = ("schemas", "collector", "convert", "analyze")


def objects(build):
    for layer in LAYERS:
        for folder, _, files in os.walk(os.path.join(build, layer)):
            yield from (os.path.join(folder, f) for f in files if f.endswith(".o") and ".pb-c" not in f)


def symbols(path):
    """(defined, needed) global symbols of an object."""
    defined, needed = set(), set()
    for line in subprocess.run(["nm", "-g", path], capture_output=True, text=True, check=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        (needed if kind in "Uvw" else defined).add(name)
    return defined, needed


def cycles(graph):
    """Strongly connected components of more than one node (Tarjan's algorithm, without recursion)."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in graph:
        work = [(root, iter(graph[root]))] if root not in index else []
        if work:
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
        while work:
            node, edges = work[-1]
            for other in edges:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(graph[other])))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    if len(group) > 1:
                        found.append(sorted(group))
    return sorted(found, key=len, reverse=True)


def main():
    build = sys.argv[1]
    tables = {os.path.relpath(p, build)[:-2]: symbols(p) for p in sorted(objects(build))}
    if len(tables) < 100:
        sys.exit(f"cycles: only {len(tables)} objects under {build}: build first")
    # main() stands in three tools; it belongs to nobody.
    owner = {s: name for name, (defined, _) in tables.items() for s in defined if s != "main"}
    graph = {name: sorted({owner[s] for s in needed if s in owner} - {name}) for name, (_, needed) in tables.items()}
    found = cycles(graph)
    for group in found:
        print(f"# {len(group)} files: {' '.join(group)}")
    bad = sum(len(group) > MOST for group in found)
    print(f"cycles: {len(tables) - bad} passed, {bad} failed")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The calling-context tree by brute force (analyze/DEFINITIONS.md 4 and 8) beside `--report stacks`.

    check_paths.py --bin DIR [--traces DIR] [--random N] [--first SEED]

Random training jobs with modules, a backward on a thread of its own, checkpointing, and memory. Each
node to the nanosecond; modules from these nodes; sums over all nodes are the whole, and two windows
of a rank are the sum of both. On real traces the wholes, and each arrow from a forward operator to
its backward.
"""
import argparse
import collections
import glob
import gzip
import html
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import check_memory     # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RANGES = ("cpu_op", "Operator", "user_annotation", "python_function")
WORK = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")
KERNELS = ("gemm", "void vectorized_elementwise_kernel<4>(int)")
BACKWARD, RECOMPUTE = ("", "backward"), ("", "recompute")
MEASURES = ("gpu_ns", "host_ns", "alloc_bytes", "calls")


def ns(us):
    return round(float(us) * 1000)


class Job:
    """A training job, written as its profiler would."""

    def __init__(self, seed, start=10**6):
        self.rng, self.now, self.events = random.Random(seed), start, []
        self.correlation, self.number, self.nodes, self.live = 0, 100, [], {}
        self.blocks = self.rng.randint(1, 3)
        self.recomputes = self.rng.random() < 0.6
        for step in range(self.rng.randint(1, 5)):
            begin = self.now
            self.step()
            self.put(f"ProfilerStep#{step + 4}", "user_annotation", 11, begin)

    def put(self, name, cat, tid, begin, **args):
        self.pause()
        self.events.append({"ph": "X", "name": name, "cat": cat, "pid": 5, "tid": tid,
                            "ts": begin / 1000, "dur": (self.now - begin) / 1000, "args": args})

    def pause(self):
        self.now += self.rng.randint(1, 3000)

    def launch(self, tid):
        self.pause()
        begin, self.correlation = self.now, self.correlation + 1
        self.put("cudaLaunchKernel", "cuda_runtime", tid, begin, correlation=self.correlation)
        at = self.now + self.rng.randint(0, 10**5)
        self.events.append({"ph": "X", "name": self.rng.choice(KERNELS), "cat": "kernel",
                            "pid": 0, "tid": 7, "ts": at / 1000,
                            "dur": self.rng.randint(100, 50000) / 1000,
                            "args": {"correlation": self.correlation, "device": 0, "stream": 7}})

    def memory(self, tid):
        """Something is taken, or half as often what was taken longest ago or anything is given back."""
        self.pause()
        address, size = self.rng.getrandbits(40), self.rng.randint(1, 9) * 512
        if self.live and self.rng.random() < 0.33:
            address = self.rng.choice((min(self.live), next(iter(self.live))))
            size = -self.live.pop(address)
        else:
            self.live[address] = size
        self.events.append({"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event",
                            "pid": 5, "tid": tid, "ts": self.now / 1000,
                            "args": {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size,
                                     "Total Allocated": sum(self.live.values())}})

    def operator(self, name, tid, inner=0, **args):
        self.pause()
        begin = self.now
        if inner:
            self.operator(name + "_inner", tid, inner - 1, **args)
        for _ in range(self.rng.randint(0, 2)):
            self.launch(tid)
        if self.rng.random() < 0.4:
            self.memory(tid)
        self.put(name, "cpu_op", tid, begin, **args)

    def forward(self, name, tid, keeps=True):
        """Operators of one number, of which the last to begin makes the node."""
        for which in range(self.rng.randint(1, 3)):
            self.operator(f"aten::{name}{which}", tid, self.rng.randint(0, 1),
                          **{"Sequence number": self.number, "Fwd thread id": 0})
        if keeps:
            self.nodes.append((self.number, name))
        self.number += 1

    def block(self, which, tid, keeps=True):
        self.pause()
        begin = self.now
        for part in ("Linear", "ReLU"):
            self.pause()
            inner = self.now
            if self.rng.random() < 0.5:
                frame = self.now
                self.forward(part, tid, keeps)
                self.put("net.py(12): forward", "python_function", tid, frame)
            else:
                self.forward(part, tid, keeps)
            self.put(f"nn.Module: {part}_{which}", "python_function", tid, inner)
        self.put(f"nn.Module: Block_{which}", "python_function", tid, begin)

    def step(self):
        self.pause()
        begin, self.nodes = self.now, []
        differentiates = self.rng.random() < 0.3    # the backward is to get a backward itself
        for which in range(self.blocks):
            self.block(which, 11)
        self.put("nn.Module: Net_0", "python_function", 11, begin)
        self.forward("loss", 11)
        for number, name in reversed(self.nodes):
            self.pause()
            begin = self.now
            args = {"Sequence number": number, "Fwd thread id": 1}
            self.pause()
            inner = self.now
            if self.recomputes and self.rng.random() < 0.3:
                self.block(self.rng.randrange(self.blocks), 12, False)
            elif self.recomputes and not differentiates and self.rng.random() < 0.2:
                if self.rng.random() < 0.5:
                    self.operator("aten::linear", 12, **{"Sequence number": self.number, "Fwd thread id": 0})
                self.forward("again", 12, False)
            self.operator(f"aten::{name}_backward", 12, self.rng.randint(0, 1),
                          **({"Sequence number": self.number, "Fwd thread id": 0} if differentiates else {}))
            self.put(f"{name}Backward0", "cpu_op", 12, inner, **args)
            self.put(f"autograd::engine::evaluate_function: {name}Backward0", "cpu_op", 12, begin,
                     **args)
        self.operator("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 12)
        self.pause()
        begin = self.now
        for group in ("weights", "biases")[:self.rng.randint(0, 2)]:    # named by who calls it
            self.pause()
            inner = self.now
            self.operator("aten::_foreach_add_", 11)
            self.put(f"group of {group}", "user_annotation", 11, inner)
        self.launch(11)
        self.put("Optimizer.step#SGD.step", "user_annotation", 11, begin)


def is_mark(path_part):
    return path_part in (BACKWARD, RECOMPUTE)


class Tree:
    """{path: figures}; a path is a tuple of (name, class), found by looking at all ranges again."""

    def __init__(self, events):
        self.nodes = collections.defaultdict(lambda: dict.fromkeys(MEASURES, 0))
        self.threads = collections.defaultdict(list)
        launches = {}
        for event in events:
            if event.get("ph") != "X" or "dur" not in event:
                continue
            begin, end = ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])
            if event["cat"] in RANGES and not event["name"].startswith("ProfilerStep#"):
                self.threads[event["tid"]].append(
                    {"begin": begin, "end": end, "name": event["name"], "cat": event["cat"],
                     "number": event["args"].get("Sequence number"),
                     "thread": event["args"].get("Fwd thread id")})
            elif event["cat"] == "cuda_runtime":
                launches[event["args"]["correlation"]] = (event["tid"], begin)
        for ranges in self.threads.values():
            ranges.sort(key=lambda one: (one["begin"], -one["end"]))
        everything = sorted((one["begin"], -one["end"], tid, place)
                            for tid, ranges in self.threads.items()
                            for place, one in enumerate(ranges))
        self.numbers, self.modules = {}, {}
        self.plain, self.forward = collections.Counter(), 0  # when a node last had an operator without a number
        for _, _, tid, place in everything:
            self.enter(tid, self.threads[tid][place])
        for event in events:
            if event.get("cat") in WORK:
                tid, at = launches[event["args"]["correlation"]]
                leaf = self.nodes[self.path(tid, at) + ((event["name"], "gpu_work"),)]
                leaf["gpu_ns"] += ns(event["dur"])
                leaf["calls"] += 1
            elif event.get("name") == "[memory]" and event["args"]["Bytes"] > 0:
                self.nodes[self.path(event["tid"], ns(event["ts"]))]["alloc_bytes"] += \
                    event["args"]["Bytes"]

    def open_at(self, tid, at, but=None):
        found = [one for one in self.threads[tid]
                 if one is not but and one["begin"] <= at < one["end"] and "path" in one]
        return found[-1] if found else None

    def path(self, tid, at):
        inner = self.open_at(tid, at)
        return inner["path"] if inner else ()

    def enter(self, tid, one):
        outer = self.open_at(tid, one["begin"], one)
        path = outer["path"] if outer else ()
        passes = [part for part in path if is_mark(part)]
        if one["cat"] == "cpu_op" and one["thread"]:
            if not (outer and outer["number"] == one["number"] and outer["thread"]):
                path = self.numbers.get(one["number"], path) + (BACKWARD,)
        elif one["cat"] == "cpu_op" and one["name"].startswith("autograd::") and not passes:
            path += (BACKWARD,)
        elif passes:
            since = path[max(place for place, part in enumerate(path) if is_mark(part)):]
            has_module = any(name.startswith("nn.Module: ") for name, _ in since)
            if one["name"].startswith("nn.Module: ") and not has_module:
                path = self.modules[one["name"]] + (RECOMPUTE,)
            elif one["cat"] == "cpu_op" and passes[-1] == BACKWARD and "Backward" not in one["name"]:
                operators = [name for name, cat in path if cat == "cpu_op"]
                has_frames = any(other["cat"] == "python_function" and "path" in other and
                                 other["begin"] <= one["begin"] < other["end"] for other in self.threads[tid])
                if one["number"] is None and ("Backward" in operators[-1] or "autograd::" in operators[-1]):
                    self.plain[tid] = one["begin"]
                if one["number"] is not None and one["name"] == "aten::linear":
                    self.plain[tid] = one["begin"]
                if one["number"] is not None and self.plain[tid] > self.forward and not has_frames:
                    path += (RECOMPUTE,)
        elif one["cat"] == "cpu_op" and one["number"] is not None:
            self.forward = one["begin"]
        one["path"] = path + ((one["name"], one["cat"]),)
        if one["number"] is not None and not one["thread"]:
            self.numbers[one["number"]] = one["path"]
        if not any(is_mark(part) for part in one["path"]):
            self.modules.setdefault(one["name"], one["path"])
        node = self.nodes[one["path"]]
        node["calls"] += 1
        node["host_ns"] += one["end"] - one["begin"]
        if outer:
            self.nodes[outer["path"]]["host_ns"] -= one["end"] - one["begin"]


def module_path(path):
    """The modules of a path; a module behind its own mark is the one before that."""
    found = []
    for place, (name, _) in enumerate(path):
        if name.startswith("nn.Module: "):
            name = name[len("nn.Module: "):]
            if not (place and path[place - 1] == RECOMPUTE and found and found[-1] == name):
                found.append(name)
    return tuple(found)


def modules(nodes):
    rows = collections.defaultdict(collections.Counter)
    for path, node in nodes.items():
        marks = [part[1] for part in path if is_mark(part)]
        inside = module_path(path)
        for depth in range(1, len(inside) + 1):
            row = rows["/".join(inside[:depth])]
            row[(marks[-1] if marks else "forward") + "_gpu_ns"] += node["gpu_ns"]
            row["host_ns"] += node["host_ns"]
            row["alloc_bytes"] += node["alloc_bytes"]
        if inside:
            rows["/".join(inside)]["gpu_self_ns"] += node["gpu_ns"]
    return rows


def place(path):
    """The innermost module with a star for its number, or the outermost operator; and the line."""
    marks = [part[1] for part in path if is_mark(part)]
    named = [name[len("nn.Module: "):] for name, _ in path if name.startswith("nn.Module: ")]
    notes = [name for name, kind in path if kind == "user_annotation"]
    operators = [name for name, kind in path if kind == "cpu_op"]
    lines = [name for name, _ in path if name.startswith("net.py(12)")]
    name = named[-1] if named else notes[-1] if notes else operators[0] if operators else ""
    name = name.removeprefix("autograd::engine::evaluate_function: ")
    star = name.rsplit("_", 1)[0] + "_*" if named else name
    form = (marks[-1] + " of " if marks else "") + "{}" + (" (net.py:12)" if lines else "")
    return (form.format(star), form.format(name)) if name else ("net.py:12",) * 2 if lines else ("", "")


def boxes_of(graph):
    """[(left, top, width, title)], left and width in percent."""
    return [(float(at), int(y), float(width), html.unescape(title))
            for at, y, width, title in re.findall(r'style="left:([0-9.]+)%;top:([0-9]+)px;width:([0-9.]+)%" title="(.*?)">', graph)]


class Checks:
    def __init__(self, binaries):
        self.tool, self.passed, self.failed = os.path.join(binaries, "tacho-analyze"), 0, 0
        self.named = 0      # findings whose place was compared

    def expect(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        if not good and self.failed < 40:
            print("FAIL " + text, file=sys.stderr)

    def report(self, *options):
        done = subprocess.run([self.tool, *options, "-r", "stacks,modules,memory,summary", "-f", "json", "-q"],
                              stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["ranks"]

    def nodes(self, rank, label):
        """{path: row}, and whether the sums over all are the whole."""
        rows = {row["node"]: row for row in rank["paths"]}
        found = {}
        for row in rank["paths"]:
            path, at = [], row
            while at["above"] is not None:
                path.append((at["name"] or "", at["class"]))
                at = rows[at["above"]]
            found[tuple(reversed(path))] = row
        self.expect(len(found) == len(rows), f"{label}: {len(rows)} nodes, {len(found)} paths")
        idle = sum(gpu["lead_ns"] + gpu["idle_ns"] + gpu["tail_ns"] for gpu in rank["gpus"])
        have = sum(row["idle_ns"] for row in rank["paths"])
        self.expect(have == idle, f"{label}: {have} ns of idle time, not {idle}")
        return found

    def wholes(self, rank, events, label):
        work = sum(ns(event["dur"]) for event in events
                   if event.get("ph") == "X" and event.get("cat") in WORK)
        spans = collections.defaultdict(list)
        for event in events:
            if event.get("ph") == "X" and event.get("cat") in RANGES and event.get("dur") and \
               not event["name"].startswith("ProfilerStep"):
                begin = ns(event["ts"])
                spans[event["pid"], event["tid"]].append((begin, begin + ns(event["dur"])))
        host = 0
        for thread in spans.values():
            reach = 0
            for begin, end in sorted(thread):
                host += max(end - max(begin, reach), 0)
                reach = max(reach, end)
        taken = sum(max(event["args"].get("Bytes", 0), 0) for event in events
                    if event.get("name") == "[memory]")
        for key, wanted in (("gpu_ns", work), ("host_ns", host), ("alloc_bytes", taken)):
            have = sum(row[key] for row in rank["paths"])
            self.expect(have == wanted, f"{label} {key}: {have} in all, not {wanted}")

    def compare(self, path, events):
        rank, tree = self.report(path)[0], Tree(events)
        found, wanted = self.nodes(rank, path), tree.nodes
        self.compare_memory(path, events, tree)
        self.wholes(rank, events, path)
        for node, row in wanted.items():
            have = found.get(node, dict.fromkeys(MEASURES, 0))
            for key in MEASURES:
                self.expect(have[key] == row[key],
                            f"{path} {node} {key}: {have[key]}, not {row[key]}")
        for node, row in found.items():
            self.expect(node in wanted or not any(row[key] for key in MEASURES),
                        f"{path}: {node} is not in the brute force")
        self.expect(sum(row["gpu_ns"] for row in rank["stacks"]) <=
                    sum(row["gpu_ns"] for row in rank["paths"]), f"{path}: stacks add up to more")
        self.compare_places(path, wanted)
        self.compare_flame(path, wanted)
        rows = {row["path"]: row for row in rank["modules"]}
        self.expect(rows.keys() == modules(wanted).keys(), f"{path}: modules {sorted(rows)}")
        for name, row in modules(wanted).items():
            for key, value in row.items():
                have = rows.get(name, {}).get(key)
                self.expect(have == value, f"{path} module {name} {key}: {have}, not {value}")

    def compare_memory(self, path, events, tree):
        """Who took what is live at the peak and what the steps leave behind, by path."""
        rows = sorted((ns(event["ts"]), event) for event in events if event["name"] == "[memory]")
        begins = sorted(ns(event["ts"]) for event in events if event["name"].startswith("ProfilerStep#"))
        gauge, live_at = check_memory.Gauge(), {}
        for at, event in rows:
            args = event["args"]
            for begin in (begins[1], begins[-1]) if len(begins) > 2 else ():
                if at >= begin and begin not in live_at:
                    live_at[begin] = dict(gauge.live)
            gauge.put(at, args["Bytes"], args["Addr"], args["Total Allocated"],
                      lambda tid=event["tid"], at=at: tree.path(tid, at))
        gauge.fall()
        done = subprocess.run([self.tool, path, "-r", "memory", "-f", "json", "-q"], stdout=subprocess.PIPE, check=True)
        found = {row["path"]: row for row in json.loads(done.stdout)["ranks"][0]["memory"][0]["peaks"][0]["paths"]}
        wanted = collections.defaultdict(lambda: [0, 0, 0])
        moments = [gauge.owners] + [collections.Counter() for _ in range(2)]
        for place, begin in enumerate((begins[1], begins[-1]) if len(begins) > 2 else ()):
            for owner, size in live_at.get(begin, gauge.live).values():
                moments[place + 1][owner] += size
        for place, moment in enumerate(moments):
            for owner, size in moment.items():
                wanted[";".join(name or f"({kind})" for name, kind in owner) or "(no range)"][place] += size
        for name, row in found.items():
            have = [row["live_bytes"], row["second_step_bytes"], row["last_step_bytes"]]
            self.expect(have == wanted[name], f"{path} memory of {name}: {have}, not {wanted[name]}")
            per_step = (have[2] - have[1]) / (len(begins) - 2) if len(begins) > 2 else None
            self.expect(row["growth_bytes_per_step"] == per_step or
                        abs(row["growth_bytes_per_step"] - per_step) < 1e-3, f"{path} growth of {name}: {row}")
        left = [name for name, row in wanted.items() if row[0] and name not in found]
        most = sorted((row[0] for row in wanted.values()), reverse=True)
        self.expect(all(wanted[name][0] <= most[31] for name in left if len(most) > 31) and
                    (not left or len(most) > 31),
                    f"{path}: {len(left)} paths with memory are left out")

    def compare_places(self, path, nodes):
        """The place with most time of elementwise kernels, and its share."""
        done = subprocess.run([self.tool, path, "-r", "findings", "-f", "json", "-q"],
                              stdout=subprocess.PIPE, check=True)
        where = [row["where"] for row in json.loads(done.stdout)["findings"]
                 if row["rule"] == "elementwise"]
        if not where:
            return
        sums, exact = collections.Counter(), collections.defaultdict(set)
        for node, row in nodes.items():
            if node and node[-1] == (KERNELS[1], "gpu_work"):
                star, name = place(node[:-1])
                sums[star] += row["gpu_ns"]
                exact[star].add(name)
        whole = sum(sums.values())
        if whole == sums[""]:
            return
        most = max(value for star, value in sums.items() if star)
        tops = {star if len(exact[star]) > 1 else min(exact[star])
                for star, value in sums.items() if value == most and star}
        found = re.match(r"<?([0-9.,]+) of <?([0-9.,]+) (\S+) in (.*?)(?: \u00b7 |$)", where[0])
        self.expect(found and found.group(4) in tops, f"{path}: {where[0]!r}, not {tops}")
        if found:
            share = float(found.group(1).replace(",", "")) / max(float(found.group(2).replace(",", "")), 0.05)
            self.expect(abs(share - most / whole) < 0.08 or found.group(3) == "ms",
                        f"{path}: {where[0]!r}, not {most} of {whole}")
            self.named += 1

    def compare_windows(self, folder, paths):
        """The tree of several inputs of one rank is the sum of theirs, in one run or by partials."""
        alone = collections.Counter()
        for path in paths:
            for row in self.report(path)[0]["paths"]:
                for key in MEASURES + ("idle_ns",):
                    alone[row["node"], key] += row[key]
        whole = self.report(*paths)
        together = {(row["node"], key): row[key]
                    for row in whole[0]["paths"] for key in MEASURES + ("idle_ns",)}
        self.expect(len(whole) == 1 and together == dict(alone), f"{paths[0]}: windows do not add up")
        parts = []
        for place, path in enumerate(reversed(paths)):
            parts.append(os.path.join(folder, f"{place}.part"))
            subprocess.run([self.tool, "-q", "--partial", parts[-1], path], check=True)
        again = self.report("--merge", *parts)
        self.expect(again[0]["paths"] == whole[0]["paths"] and
                    again[0]["modules"] == whole[0]["modules"], f"{paths[0]}: partials differ")
        self.expect(again[0]["memory"] == whole[0]["memory"] and whole[0]["memory"][0]["peaks"][0]["paths"],
                    f"{paths[0]}: memory of partials differs")

    def compare_flame(self, path, nodes):
        """The page's flame graphs: each frame lies below one that it fits in, as wide as its share."""
        page = subprocess.run([self.tool, "-q", path, "-f", "html"], stdout=subprocess.PIPE,
                              check=True).stdout.decode()
        graphs = re.findall(r'<div class="flame".*?\n</div>\n', page, re.S)
        self.expect(len(graphs) == 2 and "<script" not in page, f"{path}: {len(graphs)} flame graphs")
        for graph in graphs:
            boxes = boxes_of(graph)
            for at, y, width, title in boxes:
                self.expect(not y or any(y - 19 == row and left - 0.01 <= at and
                                         at + width <= left + wide + 0.01
                                         for left, row, wide, _ in boxes), f"{path}: {title} hangs in the air")
        whole = sum(row["gpu_ns"] for row in nodes.values())
        shares = collections.Counter()
        for node, row in nodes.items():
            if node:
                shares[node[0][0].removeprefix("nn.Module: ") if node[0] != BACKWARD else "(backward)"] += \
                    100 * row["gpu_ns"] / whole
        for _, y, width, title in boxes_of(graphs[0]) if graphs else []:
            if not y:
                name = title.rsplit(": ", 1)[0]
                self.expect(abs(shares[name] - width) < 0.01, f"{path}: {title} is {width} % wide, not "
                            f"{shares[name]}")

    def compare_diff(self, paths):
        """Places of both sides are paired by name, each with its share of its side."""
        done = subprocess.run([self.tool, "-q", "--diff", *paths, "-f", "json"],
                              stdout=subprocess.PIPE, check=False)
        rows = {(row["cause"], row["range"]): row for row in json.loads(done.stdout)["model"]}
        for side, path in zip(("a_ns", "b_ns"), paths):
            sums, rank = collections.Counter(), self.report(path)[0]
            for node, row in self.nodes(rank, path).items():
                if node and node[-1][1] == "idle":
                    sums[node[-1][0], place(node[:-1])[0]] += row["idle_ns"]
                elif node and node[-1][1] == "gpu_work":
                    work = "elementwise" if node[-1][0] == KERNELS[1] else "gemm"
                    sums[work, place(node[:-1])[0]] += row["gpu_ns"]
            whole, all_ns = sum(sums.values()), sum(row[side] for row in rows.values())
            for key, value in sums.items():
                have = rows.get(key, {}).get(side, 0) / max(all_ns, 1)
                self.expect(abs(have - value / whole) < 1e-4, f"{path} {key}: {have} of all in --diff, "
                            f"not {value / whole}")

    def compare_arrows(self, path, events):
        """Each arrow of the profiler leads from the operator that we put the backward below."""
        begins = {ns(event["ts"]): event for event in events
                  if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "Operator")}
        ends = {event["id"]: event for event in events
                if event.get("cat") == "fwdbwd" and event.get("ph") == "f"}
        wanted = collections.Counter()
        for event in events:
            if event.get("cat") == "fwdbwd" and event.get("ph") == "s" and event["id"] in ends:
                forward = begins.get(ns(event["ts"]))
                backward = begins.get(ns(ends[event["id"]]["ts"]))
                if forward and backward and backward["name"].startswith("autograd::engine"):
                    wanted[forward["name"], backward["name"]] += 1
        found = collections.Counter()
        for node, row in self.nodes(self.report(path)[0], path).items():
            if len(node) > 2 and node[-2] == BACKWARD:
                found[node[-3][0], node[-1][0]] += row["calls"]
        for pair, count in wanted.items():
            self.expect(found[pair] >= count, f"{path} {pair}: {found[pair]} calls, {count} arrows")


def compare_arguments(checks, binaries, folder, path, events):
    """GPU work and memory say their call path in Chrome JSON and Perfetto, which readers of ours find
    again instead of reading it."""
    def convert(source, kind, *options):
        out = os.path.join(folder, f"{kind}{len(os.listdir(folder))}")
        subprocess.run([os.path.join(binaries, "tacho-convert"), source, "-q", "-t", kind, "-o", out,
                        *options], check=True)
        return out

    def arguments(chrome):
        with open(chrome, encoding="utf-8") as file:
            return collections.Counter((event["name"], str(event["ts"]), event["args"]["call path"])
                                       for event in json.load(file)["traceEvents"]
                                       if "call path" in event.get("args", ()))
    tree = Tree(events)
    chrome, perfetto = convert(path, "chrome", "--args", "full"), convert(path, "perfetto")
    found = collections.Counter()
    for (name, _, text), count in arguments(chrome).items():
        found[name, text] += count
    wanted = collections.Counter()
    for node, row in tree.nodes.items():
        frames = [name or f"({kind})" for name, kind in node]
        if node and node[-1][1] == "gpu_work" and len(node) > 1:
            wanted[node[-1][0], " > ".join(frames[:-1])] += row["calls"]
    wanted.update(("[memory]", " > ".join(name or f"({kind})" for name, kind in
                                          tree.path(event["tid"], ns(event["ts"]))))
                  for event in events if event["name"] == "[memory]" and event["args"]["Bytes"] > 0
                  and tree.path(event["tid"], ns(event["ts"])))
    checks.expect(found == wanted, f"{path}: {(found - wanted, wanted - found)}")
    with open(perfetto, "rb") as file:
        texts = file.read()
    checks.expect(all(text.encode() in texts for _, text in wanted), f"{path}: not all are in Perfetto's file")
    for source in (chrome, perfetto):
        again = convert(source, "chrome", "--args", "full")
        checks.expect(arguments(again) == arguments(chrome), f"{path}: {source} comes back otherwise")
        with open(convert(source, "csv", "--args", "full"), "rb") as file:
            has_text = b"call path" in file.read()
        checks.expect(not has_text and
                      checks.report(source)[0]["paths"] == checks.report(path)[0]["paths"],
                      f"{path}: {source} is read otherwise")
    for kind in ("chrome", "perfetto"):
        with open(convert(path, kind, "--args", "lean"), "rb") as file:
            checks.expect(b"call path" not in file.read(), f"{path}: {kind} with --args lean says paths")


def write(folder, name, events, rank=None):
    path = os.path.join(folder, name)
    world = {"distributedInfo": {"rank": rank, "world_size": 2}} if rank is not None else {}
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"schemaVersion": 1, **world, "traceEvents": events}, out)
    return path


def compare_log(checks, binaries, folder, path):
    """A log made of a file has all that paths are made of: each report, and folded stacks."""
    log, answers = os.path.join(folder, "run.tacho"), {}
    converter = os.path.join(binaries, "tacho-convert")
    subprocess.run([converter, path, "-t", "log", "-o", log, "-q"], check=True)
    for source in (path, log):
        done = subprocess.run([os.path.join(binaries, "tacho-analyze"), source, "-f", "json", "-q", "-r",
                               "operators,modules,stacks,nvtx,serving"], stdout=subprocess.PIPE,
                              check=True)
        folded = subprocess.run([converter, source, "-t", "folded", "-o", "-", "-q"],
                                stdout=subprocess.PIPE, check=True).stdout
        answers[source] = json.loads(done.stdout)["ranks"], sorted(folded.splitlines())
    checks.expect(answers[path][0] == answers[log][0], f"{path}: its log has other reports")
    checks.expect(answers[path][1] == answers[log][1], f"{path}: its log has other stacks")
    os.unlink(log)


NAMES = 16384   # TABLE_NAMES of analyze/engine/table.h


def check_many_names(checks, binary, folder, steps=20000):
    """A range of its own name in each step: so many rows, and one with all the rest."""
    events = []
    for step in range(steps):
        at = 1000 + 101 * step
        common = {"ph": "X", "pid": 9, "tid": 9}
        word = f"{step * 7919 % 1000003:x}y"
        events += [dict(common, cat="user_annotation", name=f"ProfilerStep#{step}", ts=at, dur=100),
                   dict(common, cat="user_annotation", name=f"batch {word}", ts=at + 2, dur=90),
                   dict(common, cat="cuda_runtime", name="cudaLaunchKernel", ts=at + 8, dur=5,
                        args={"correlation": step + 1}),
                   {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 20,
                    "dur": 50, "args": {"device": 0, "stream": 7, "correlation": step + 1}}]
    path = write(folder, "names.json", events)
    report = json.loads(subprocess.run(
        [os.path.join(binary, "tacho-analyze"), path, "-r", "nvtx,modules,findings", "-f", "json"],
        stdout=subprocess.PIPE, check=True).stdout)
    rank = report["ranks"][0]
    for table, key, column, want in (("nvtx", "name", "host_ns", steps * 190_000),
                                     ("modules", "path", "gpu_self_ns", steps * 50_000)):
        rows = rank[table]
        checks.expect(len(rows) == NAMES + 1 and "(other)" in [row[key] for row in rows],
                      f"{table}: {len(rows)} rows of {steps} names")
        checks.expect(sum(row[column] for row in rows) == want, f"{table}: not all of {want}")
    where = report["findings"][0]["where"]
    checks.expect("more" in where or "(other)" in where, f"where: {where}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    parser.add_argument("--random", type=int, default=30)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    checks = Checks(args.bin)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.random):
            events = Job(seed).events
            checks.compare(write(folder, f"{seed}.json", events), events)
        for seed in range(args.first, args.first + min(args.random, 4)):
            compare_arguments(checks, args.bin, folder, os.path.join(folder, f"{seed}.json"), Job(seed).events)
        windows = [write(folder, f"window{place}.json", Job(args.first + place,
                                                            10**6 + place * 10**10).events, 0)
                   for place in range(3)]
        checks.compare_windows(folder, windows)
        for seed in range(args.first, args.first + min(args.random, 6)):
            checks.compare_diff([os.path.join(folder, f"{one}.json") for one in (seed, args.first)])
        checks.expect(checks.named, "no finding has a place")
        check_many_names(checks, args.bin, folder)
    if not os.path.isdir(os.path.join(args.traces, "kineto")):
        print(f"skip real traces: no files in {args.traces}/kineto (set TACHO_TRACES)")
    for path in sorted(glob.glob(os.path.join(args.traces, "kineto", "*.json.gz"))):
        if os.path.getsize(path) > 4 << 20:
            continue
        with gzip.open(path) as file:
            events = json.load(file)
        events = events if isinstance(events, list) else events["traceEvents"]
        checks.compare_arrows(path, events)
    for name in ("kineto/b200_eager.json.gz", "kineto/h100_timesformer.json.gz",
                 "graphs/sglang_decode/capture_traces/bs_32_rank0.json.gz",
                 "xplane/jax_te_mi300.xplane.pb"):
        if os.path.exists(os.path.join(args.traces, name)):
            with tempfile.TemporaryDirectory() as folder:
                compare_log(checks, args.bin, folder, os.path.join(args.traces, name))
    print(f"paths: {checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Report `memory` against a plain reading of the same files, and against planted growth.

The oracle keeps a list of levels and a dict of live allocations, nothing clever: levels are what
the allocator says it gave out in all ("Total Allocated"), else what came less what went, never
below nothing; the owner of an allocation is the op or annotation that began last of those open on
its thread, else the Python function; owners of the peak are those when the level falls first after
it.
"""
import argparse
import collections
import glob
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kineto   # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
NAMED = {"cpu_op", "operator", "user_annotation"}


class Counts:
    def __init__(self):
        self.good = self.bad = 0
        self.lines = None

    def same(self, what, got, want):
        self.good += got == want
        self.bad += got != want
        if got != want:
            self.tell("not ok - %s: got %r, want %r" % (what, got, want))

    def tell(self, line):
        """Printed, or kept where somebody set `lines`."""
        if self.lines is None:
            print(line)
        else:
            self.lines.append(line)

    def holds(self, what, condition, more=""):
        self.same("%s %s" % (what, more), bool(condition), True)


def analyze(binary, path):
    done = subprocess.run([os.path.join(binary, "tacho-analyze"), path, "-q", "-r", "memory,steps", "-f", "json"],
                          capture_output=True, timeout=600, check=True)
    return json.loads(done.stdout)["ranks"]


def instants(path):
    """`[memory]` rows in order of time: (ns, thread, device or None, bytes, address, total)."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", errors="replace") as f:
        top = json.load(f, parse_float=kineto.Decimal)
    base = top.get("baseTimeNanoseconds", 0) if isinstance(top, dict) else 0
    rows = []
    for row in top["traceEvents"] if isinstance(top, dict) else top:
        if row.get("name") != "[memory]" or row.get("ph") not in ("i", "I"):
            continue
        args = row["args"]
        device = args["Device Id"] if args.get("Device Type", 0) == 1 and args["Device Id"] >= 0 else None
        rows.append((base + kineto.nanoseconds(row["ts"]), (row["pid"], row["tid"]), device, args["Bytes"],
                     args.get("Addr", 0), args.get("Total Allocated")))
    rows.sort(key=lambda r: r[0])
    return rows


def totals(path):
    """Device: bytes of memory that it has, as the file's head says."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", errors="replace") as f:
        top = json.load(f)
    said = top.get("deviceProperties", []) if isinstance(top, dict) else []
    return {one["id"]: one["totalGlobalMem"] for one in said if "totalGlobalMem" in one}


class Owners:
    """Innermost open range of a thread at an instant, by looking at all of them."""

    def __init__(self, path):
        self.named, self.python = collections.defaultdict(list), collections.defaultdict(list)
        for e in kineto.load(path).events:
            if e.length == 0 or e.name.startswith("ProfilerStep#"):
                continue
            if e.category in NAMED:
                self.named[(e.pid, e.tid)].append(e)
            elif e.category == "python_function":
                self.python[(e.pid, e.tid)].append(e)

    def of(self, thread, at):
        for table in (self.named, self.python):
            rows = [e for e in table[thread] if e.begin <= at < e.end]
            if rows:
                return max(rows, key=lambda e: (e.begin, -e.end, e.index)).name
        return ""


class Gauge:
    def __init__(self):
        self.levels, self.live, self.total = [], {}, 0
        self.peak, self.owners, self.rising = -1, {}, False

    def fall(self):
        if self.rising:
            self.owners = collections.Counter()
            for owner, size in self.live.values():
                self.owners[owner] += size
        self.rising = False

    def put(self, at, size, address, total, owner):
        if size < 0:
            self.fall()
            self.live.pop(address, None)
        elif address and size:
            self.live[address] = (owner(), size)
        self.total = max(self.total + size, 0)
        level = self.total if total is None else total
        if self.levels and level < self.levels[-1][1]:
            self.fall()
        self.levels.append((at, level))
        if level > self.peak:
            self.peak, self.rising = level, True


def steps_of(levels, steps):
    """Least and most in each step: from its begin to the next, with the level carried into it."""
    answer = {}
    for i, (number, begin, _) in enumerate(steps):
        end = steps[i + 1][1] if i + 1 < len(steps) else float("inf")
        inside = [level for at, level in levels if begin <= at < end]
        before = [level for at, level in levels if at < begin]
        seen = inside + before[-1:]
        if seen:
            answer[number] = (min(seen), max(seen))
    return answer


def check_file(counts, binary, path, with_owners):
    name = os.path.basename(path).split(".")[0]
    check_rank(counts, name, path, analyze(binary, path)[0], with_owners)


def check_rank(counts, name, path, rank, with_owners):
    rows = instants(path)
    if not rows:
        counts.same(name + ": no memory", rank["memory"], [])
        return
    owners = Owners(path) if with_owners else None
    gauges = collections.defaultdict(Gauge)
    for at, thread, device, size, address, total in rows:
        gauges[device].put(at, size, address, total, lambda: owners.of(thread, at) if owners else "")
    got = {m["device"]: m for m in rank["memory"]}
    counts.same(name + ": devices", sorted(got, key=str), sorted(gauges, key=str))
    steps = [(s["step"], s["begin_ns"], s["wall_ns"]) for s in rank["steps"]]
    total = totals(path)
    for device, gauge in gauges.items():
        gauge.fall()
        m, label = got[device], "%s: device %s: " % (name, device)
        counts.same(label + "peak", m["peak_bytes"], gauge.peak)
        counts.same(label + "samples", m["samples"], len(gauge.levels))
        counts.same(label + "total", m["total_bytes"], total.get(device))
        counts.same(label + "steps", {s["step"]: (s["min_bytes"], s["max_bytes"]) for s in m["steps"]},
                    steps_of(gauge.levels, steps))
        if not owners:
            continue
        seen = {o["owner"]: o["live_bytes"] for o in m["peaks"][0]["owners"] if o["owner"]}
        want = {k: v for k, v in gauge.owners.items() if k and v}
        largest = sorted(want.values(), reverse=True)[:len(seen)]
        counts.same(label + "owners", sorted(seen.values(), reverse=True), largest)
        counts.holds(label + "owners by name", all(want.get(k) == v for k, v in seen.items()), (seen, want))
        counts.same(label + "live bytes add up", sum(o["live_bytes"] for o in m["peaks"][0]["owners"]), gauge.peak)


def planted(folder, seed, steps, growth, noise):
    """A job whose least level of a step grows by `growth` bytes and moves by `noise`."""
    rng, events, total, address = random.Random(seed), [], 10 ** 9, 1
    for step in range(steps):
        t = 1_000_000 + step * 1000
        events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d" % step, "pid": 1, "tid": 1,
                       "ts": t, "dur": 1000})
        kept, passing = growth, 10 ** 8 + int(rng.gauss(0, noise))
        for at, size in ((100, passing), (600, kept - passing)):
            total += size
            events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1,
                           "ts": t + at, "args": {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size,
                                                  "Total Allocated": total + int(rng.gauss(0, noise)), "Total Reserved": 2 * 10 ** 9}})
            address += 1
    path = os.path.join(folder, "planted%d.json" % seed)
    with open(path, "w") as f:
        json.dump({"schemaVersion": 1, "traceEvents": events}, f)
    return path


def check_totals(counts, binary):
    """Three GPUs: two sizes, and one of which the file says nothing; memory of the host has none."""
    head = [{"id": 0, "totalGlobalMem": 1 << 34}, {"id": 1, "totalGlobalMem": 1 << 37}, {"id": 2, "name": "GPU"}]
    events = [{"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1000 + at,
               "args": {"Device Type": int(device >= 0), "Device Id": device, "Addr": at, "Bytes": 512,
                        "Total Allocated": 512}} for at, device in enumerate((-1, 2, 1, 0), 1)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "totals.json")
        with open(path, "w") as f:
            json.dump({"schemaVersion": 1, "deviceProperties": head, "traceEvents": events}, f)
        check_rank(counts, "totals", path, analyze(binary, path)[0], True)


def check_growth(counts, binary):
    found = alarms = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(20):
            leak = analyze(binary, planted(folder, seed, 40, 2_000_000, 1_000_000))[0]["memory"][0]
            flat = analyze(binary, planted(folder, seed + 100, 40, 0, 1_000_000))[0]["memory"][0]
            found += leak["leak"] is True and abs(leak["slope_bytes_per_step"] - 2e6) < 3 * leak["slope_error_bytes"]
            alarms += flat["leak"] is not False
        short = analyze(binary, planted(folder, 300, 19, 2_000_000, 0))[0]["memory"][0]
        counts.same("19 steps: cannot tell", short["leak"], None)
    counts.holds("planted growth is found", found >= 19, found)
    counts.same("no growth raises no alarm", alarms, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=os.path.join(ROOT, "build"))
    parser.add_argument("--traces", default=os.environ.get("TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    args = parser.parse_args()
    counts = Counts()
    check_growth(counts, args.bin)
    check_totals(counts, args.bin)
    paths = sorted(glob.glob(os.path.join(args.traces, "kineto", "*.json.gz")))
    if not paths:
        print("memory: no shared traces here: planted ones only")
    for path in paths:
        check_file(counts, args.bin, path, os.path.getsize(path) < 1_500_000)
    print("%d passed, %d failed" % (counts.good, counts.bad))
    return counts.bad > 0


if __name__ == "__main__":
    sys.exit(main())

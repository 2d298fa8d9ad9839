#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's memory snapshots: levels, peaks and who held them, against a walk backwards through the ring.

    check_snapshot.py --bin DIR

A GPU is not at hand: snapshots.py makes the dictionaries of PyTorch's writers, with an allocator of its own.  What the
ring lost is known here, because the generator keeps all entries.
"""
import argparse
import json
import os
import pickle
import random
import subprocess
import tempfile

import snapshots

MIB = 1 << 20
bad = good = 0


def expect(holds, what):
    global bad, good
    good, bad = good + bool(holds), bad + (not holds)
    if not holds:
        print("not ok - " + what)


class Tool:
    def __init__(self, binaries):
        self.binaries = binaries

    def run(self, name, *words):
        return subprocess.run([os.path.join(self.binaries, name), *words, "-q"], capture_output=True)

    def report(self, path, names):
        done = self.run("tacho-analyze", path, "-f", "json", "-r", names)
        expect(done.returncode == 0, f"{path}: {done.returncode} {done.stderr.decode()[:300]}")
        return json.loads(done.stdout)["ranks"][0] if done.stdout else {}


def where(frames):
    """The innermost four functions of the program, else of Python, else of anything."""
    python = [f for f in frames if f["filename"].endswith(".py")]
    own = [f for f in python if "/torch/" not in f["filename"]]
    return " < ".join(f"{f['filename'].split('/')[-1]}:{f['line']} {f['name']}" for f in (own or python or frames)[:4])


def walk(snapshot, device):
    """(bytes, reserved, owners) after each entry, last first: from the blocks at the end backwards."""
    live = {b["address"]: (b.get("requested_size", b["size"]), where(b["frames"])) for s in snapshot["segments"]
            if s["device"] == device for b in s["blocks"] if b["state"] != "inactive"}
    reserved = sum(s["total_size"] for s in snapshot["segments"] if s["device"] == device)
    size = sum(n for n, _ in live.values())
    for e in reversed(snapshot["device_traces"][device]):
        yield size, reserved, live
        if e["action"] == "alloc":
            size -= live.pop(e["addr"])[0]
        elif e["action"] == "free_completed":
            live[e["addr"]] = e["size"], where(e["frames"])
            size += e["size"]
        elif e["action"] in ("segment_alloc", "segment_map"):
            reserved -= e["size"]
        elif e["action"] in ("segment_free", "segment_unmap"):
            reserved += e["size"]
    yield size, reserved, live


def owners_of(live):
    out = {}
    for size, name in live.values():
        out[name] = out.get(name, 0) + size
    return out


def check_levels(tool, path, snapshot, label):
    rows = {m["device"]: m for m in tool.report(path, "memory").get("memory", [])}
    for device, trace in enumerate(snapshot["device_traces"]):
        peak, at_peak = -1, None
        for size, _, live in walk(snapshot, device):
            if size >= peak:
                peak, at_peak = size, owners_of(live)
        row = rows.get(device, {})
        expect(row.get("peak_bytes") == peak, f"{label}, GPU {device}: peak {row.get('peak_bytes')}, want {peak}")
        got = {o["owner"]: o["live_bytes"] for o in row["peaks"][-1]["owners"]} if row else {}
        most = sorted(at_peak.items(), key=lambda kv: (-kv[1], kv[0]))[:5]
        expect(all(got.get(name) == size for name, size in most), f"{label}, GPU {device}: owners {got}, want {most}")


def check_events(tool, path, snapshot, label):
    """Each entry's totals, in a csv of all arguments."""
    text = tool.run("tacho-convert", path, "-t", "csv", "--args", "full").stdout.decode()
    want = {}
    for device, trace in enumerate(snapshot["device_traces"]):
        levels = list(walk(snapshot, device))[::-1][1:]
        for e, (size, reserved, _) in zip(trace, levels):
            if e["action"] in ("alloc", "free_completed"):
                want[device, e["addr"], e["time_us"], e["action"][0]] = (size, reserved)
    import csv
    got = 0
    rows = list(csv.DictReader(text.splitlines()))
    for row in rows:
        if row["kind"] not in ("alloc", "free") or not row["args"]:
            continue
        args = json.loads(row["args"])
        key = (int(row["device"]), int(row["address"]), int(row["time_ns"]) // 1000, row["kind"][0])
        if key in want:
            got += 1
            have = (args["total_allocated"], args["total_reserved"])
            if have != want[key]:
                expect(False, f"{label}: {key} has {have}, want {want[key]}")
                return
    expect(got == len(want), f"{label}: {got} of {len(want)} entries")


def check_kinds(tool, folder):
    number = 0
    for seed in range(12):
        rng = random.Random(seed)
        snapshot = snapshots.train(seed, ring=rng.choice((None, 50, 200, 333)), devices=1 + seed % 3,
                                   expandable=seed % 2 == 1, leak=rng.choice((0, 3 * MIB)), pending=seed % 4 != 3)
        writers = {f"protocol {p}": lambda s, p=p: pickle.dumps(s, protocol=p) for p in (2, 3, 4, 5)}
        writers["C++"] = snapshots.pickle_of_cpp
        for name in (list(writers) if seed < 2 else [list(writers)[seed % 5]]):
            number += 1
            path = os.path.join(folder, f"s{number}_rank{seed}.pickle")
            with open(path, "wb") as file:
                file.write(writers[name](snapshot))
            check_levels(tool, path, snapshot, f"seed {seed}, {name}")
            check_events(tool, path, snapshot, f"seed {seed}, {name}")
            expect(tool.report(path, "memory").get("rank") == seed, f"seed {seed}: rank of the name")
    old = snapshots.older(snapshots.train(3, ring=100))
    path = os.path.join(folder, "old.pickle")
    with open(path, "wb") as file:
        pickle.dump(old, file, protocol=4)
    want = sum(h["real_size"] for s in old["segments"] for b in s["blocks"] for h in b.get("history", []))
    done = tool.run("tacho-convert", path, "-t", "csv", "--args", "full").stdout.decode()
    last = [line for line in done.splitlines() if ",alloc," in line or ",free," in line][-1]
    expect(f'""total_allocated"":{want},' in last.replace(" ", ""), f"older: {last[:300]}, want {want}")


def check_report(tool, folder):
    """What segments hold at the end, what memory another stream used, and how it was when memory ran out."""
    for seed in range(16):
        rng = random.Random(seed)
        snapshot, allocators = snapshots.train_with(
            seed, ring=rng.choice((None, 80, 250)), devices=1 + seed % 2, expandable=seed % 3 == 1, oom=True,
            limit=rng.choice((120, 150, 190, 400)) * MIB, scale=1 + seed % 2)
        path = os.path.join(folder, f"report{seed}.pickle")
        with open(path, "wb") as file:
            pickle.dump(snapshot, file, protocol=2 + seed % 4)
        got = tool.report(path, "snapshot")
        want = {}
        for s in snapshot["segments"]:
            row = want.setdefault((s["device"], s["stream"], s["segment_type"]), dict.fromkeys(
                ("segments", "reserved_bytes", "allocated_bytes", "requested_bytes", "rounding_bytes", "pending_bytes",
                 "inactive_bytes", "largest_inactive_bytes", "free_blocks"), 0))
            sizes = {k: [b for b in s["blocks"] if b["state"] == k]
                     for k in ("active_allocated", "active_pending_free", "inactive")}
            row["segments"] += 1
            row["reserved_bytes"] += s["total_size"]
            for key, state in (("allocated", "active_allocated"), ("pending", "active_pending_free"), ("inactive", "inactive")):
                row[key + "_bytes"] += sum(b["size"] for b in sizes[state])
            row["requested_bytes"] += sum(b["requested_size"] for b in sizes["active_allocated"])
            row["rounding_bytes"] = row["allocated_bytes"] - row["requested_bytes"]
            row["largest_inactive_bytes"] = max([row["largest_inactive_bytes"]] + [b["size"] for b in sizes["inactive"]])
            row["free_blocks"] += len(sizes["inactive"])
        have = {(r["device"], r["stream"], r["size_class"]): {k: r[k] for k in next(iter(want.values()))}
                for r in got["snapshot"]}
        expect(have == want, f"seed {seed}: {have}, want {want}")
        ooms = [f for a in allocators for f in a.failures if any(
            e["action"] == "oom" and e["size"] == f["requested_bytes"] for e in snapshot["device_traces"][a.device])]
        rows = got["out_of_memory"]
        kept = sum(e["action"] == "oom" for t in snapshot["device_traces"] for e in t)
        expect(len(rows) == kept, f"seed {seed}: {len(rows)} of {kept} failures")
        for device, a in enumerate(allocators):
            mine = [r for r in rows if r["device"] == device]
            for row, truth in zip(mine, a.failures[len(a.failures) - len(mine):]):
                expect({k: row[k] for k in truth} == truth, f"seed {seed}, GPU {device}: {row}, want {truth}")
                free = truth["reserved_bytes"] - truth["allocated_bytes"]
                left = truth["device_free_bytes"]
                cause = ("other pool" if truth["largest_inactive_bytes"] >= truth["requested_bytes"] else
                         "fragmentation" if left + free >= truth["requested_bytes"] else
                         "awaiting free" if left + free + truth["pending_bytes"] >= truth["requested_bytes"] else "full")
                expect(row["cause"] == cause, f"seed {seed}: {row['cause']}, want {cause}")
        if kept:
            page = tool.run("tacho-analyze", path).stdout.decode()
            expect("MEMORY" in page and "was asked for" in page, f"seed {seed}: {page[:400]}")
        held = {}
        for device, trace in enumerate(snapshot["device_traces"]):
            for e, after in zip(trace, trace[1:] + [{}]):
                if e["action"] == "free_requested" and (after.get("action"), after.get("addr")) != ("free_completed", e["addr"]):
                    key = device, where(e["frames"])
                    n, size = held.get(key, (0, 0))
                    held[key] = n + 1, size + e["size"]
        have = {(r["device"], r["where"]): (r["blocks"], r["bytes"]) for r in got["held"]}
        expect(have == held, f"seed {seed}: held {have}, want {held}")


def check_hostile(tool, folder):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {folder}/owned",)

    path = os.path.join(folder, "snapshot.pickle")
    whole = pickle.dumps(snapshots.train(1, ring=60, devices=2), protocol=4)
    rng = random.Random(1)
    evil = [pickle.dumps({"device_traces": [[Evil()]], "segments": []}, protocol=p) for p in (2, 4)]
    every = list(range(400)) + [rng.randrange(len(whole)) for _ in range(100)]
    cuts = evil + [whole[:end] for end in every]
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(len(whole) // 100):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        cuts.append(bytes(damaged))
    for data in cuts:
        with open(path, "wb") as file:
            file.write(data)
        done = tool.run("tacho-analyze", path, "-r", "memory")
        lines = done.stderr.decode(errors="replace").splitlines()
        expect(done.returncode in (0, 2, 4, 6) and len(lines) <= 3, f"{data[:20]!r}: {done.returncode} {lines}")
    for data in evil:
        with open(path, "wb") as file:
            file.write(data)
        said = tool.run("tacho-analyze", path).stderr.decode()
        expect("posix.system" in said or "os.system" in said, said)
    expect(not os.path.exists(os.path.join(folder, "owned")), "something was run")


def check_large(tool, folder):
    """30 MB through 48 MB of memory, most of which the program's code and libraries are: of what is given away nothing stays."""
    path = os.path.join(folder, "large.pickle")
    entries = snapshots.write_large(path, 30 * MIB)
    done = subprocess.run(["sh", "-c", 'ulimit -v 400000; exec "$0" "$@"', os.path.join(tool.binaries, "tacho-convert"), path,
                           "--memory", "32M", "-t", "csv", "-o", os.devnull], capture_output=True)
    said = done.stderr.decode()
    expect(done.returncode == 0 and "events in" in said and entries > 100_000, f"large: {done.returncode} {said}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    tool = Tool(os.path.abspath(parser.parse_args().bin))
    with tempfile.TemporaryDirectory() as folder:
        check_kinds(tool, folder)
        check_report(tool, folder)
        check_hostile(tool, folder)
        check_large(tool, folder)
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())

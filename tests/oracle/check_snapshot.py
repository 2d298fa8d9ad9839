#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's memory snapshots: levels, peaks and who held them, against a walk backwards through the ring.

    check_snapshot.py --bin DIR

A GPU is not at hand: snapshots.py makes the dictionaries of PyTorch's writers, with an allocator of its own.  What the
ring lost is known here, because the generator keeps all entries.
"""
import argparse
import csv
import datetime
import json
import os
import pickle
import pickletools
import random
import re
import sqlite3
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


HANDS_ON = ("/torch/", "/einops/", "/jaxtyping/", "/functools.py", "/contextlib.py")


def operators(frames):
    """Of C++: operators without their overloads, and nodes of autograd, each once where it calls itself."""
    names = []
    for f in frames:
        op = re.match(r"at::_ops::(\w+?)(_[A-Z]\w*)?::", f["name"])
        node = re.match(r"torch::autograd::.*?([^:]+)::apply\(", f["name"])
        names += ["aten::" + op[1]] if op else [node[1]] if node else []
    return [name for name, before in zip(names, [None, *names]) if name != before]


def where(frames):
    """The innermost four functions of the program, else of Python, else operators, else anything."""
    python = [f for f in frames if f["filename"].endswith(".py")]
    own = [f for f in python if not any(part in f["filename"] for part in HANDS_ON)]
    if not python and operators(frames):
        return " < ".join(operators(frames)[:4])
    return " < ".join(f"{f['filename'].split('/')[-1]}:{f['line']} {f['name']}" for f in (own or python or frames)[:4])


def takers(snapshot, device):
    """Who took what each free_completed gives back, and whether a free has a stack of its own."""
    live, out, has_own = {}, {}, False
    for i, e in enumerate(snapshot["device_traces"][device]):
        frames = e.get("frames", [])
        if e["action"] == "alloc":
            live[e["addr"]] = frames
        elif e["action"] == "free_completed":
            has_own |= live.get(e["addr"], frames) != frames
            out[i] = live.pop(e["addr"], None)
    return out, has_own


def owner(frames, earlier):
    return where(frames) if frames else "(taken before the recording)" if earlier else "(no stack was recorded)"


def walk(snapshot, device):
    """(bytes, reserved, owners) after each entry, last first: from the blocks at the end backwards."""
    took = takers(snapshot, device)[0]
    has_own = any(takers(snapshot, other)[1] for other in range(len(snapshot["device_traces"])))
    in_ring = set()
    for e in snapshot["device_traces"][device]:
        if e["action"] in ("alloc", "free_completed"):
            (in_ring.add if e["action"] == "alloc" else in_ring.discard)(e["addr"])
    live = {b["address"]: (b.get("requested_size", b["size"]), owner(b["frames"], b["address"] not in in_ring))
            for s in snapshot["segments"] if s["device"] == device for b in s["blocks"] if b["state"] != "inactive"}
    reserved = sum(s["total_size"] for s in snapshot["segments"] if s["device"] == device)
    size = sum(n for n, _ in live.values())
    for i, e in reversed(list(enumerate(snapshot["device_traces"][device]))):
        yield size, reserved, live
        if e["action"] == "alloc":
            size -= live.pop(e["addr"])[0]
        elif e["action"] == "free_completed":
            frames = e.get("frames", []) if took[i] is None else took[i]
            live[e["addr"]] = e["size"], owner(frames, took[i] is None)
            if took[i] is None and frames and has_own:
                live[e["addr"]] = e["size"], f"(earlier, freed at {where(frames)})"
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
                                   expandable=seed % 2 == 1, leak=rng.choice((0, 3 * MIB)), pending=seed % 4 != 3,
                                   native_stacks=seed % 3 == 1)
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
        page = tool.run("tacho-analyze", path).stdout.decode()
        if kept:
            expect("MEMORY" in page and "were requested" in page and "MiB" in page, f"seed {seed}: {page[:400]}")
        expect("A memory snapshot has no times" in " ".join(page.split()), f"seed {seed}: what the page is about: {page[:600]}")
        expect("   host   \xb7" not in page, f"seed {seed}: a strip without a phase: {page[:900]}")
        steps = tool.report(path, "memory")["memory"][0]["steps"]
        expect(len(steps) < 2 or "STEPS" not in page or "memory at most: min" in page, f"seed {seed}: no memory of steps: {page[:900]}")
        level = max(tool.report(path, "memory")["memory"], key=lambda row: row["peak_bytes"])
        owner = max(level["peaks"][0]["owners"], key=lambda o: o["live_bytes"])
        line = [line for line in page.splitlines() if line.startswith(owner["owner"][:10]) and line.endswith(
            f"{100 * owner['live_bytes'] / level['peak_bytes']:.1f}")]
        expect(line, f"seed {seed}: {owner} is not on the page: {page[:900]}")
        expect("cpu_loop" not in page, f"seed {seed}: advice on code that a snapshot does not know: {page[:900]}")
        held = {}
        for device, trace in enumerate(snapshot["device_traces"]):
            for e, after in zip(trace, trace[1:] + [{}]):
                if e["action"] == "free_requested" and (after.get("action"), after.get("addr")) != ("free_completed", e["addr"]):
                    key = device, where(e["frames"])
                    n, size = held.get(key, (0, 0))
                    held[key] = n + 1, size + e["size"]
        have = {(r["device"], r["where"]): (r["blocks"], r["bytes"]) for r in got["held"]}
        expect(have == held, f"seed {seed}: held {have}, want {held}")


def entries_of(snapshot, device, low=0, high=1 << 62):
    """What an entry says; free_requested is written anew where no other stream kept the memory, with the time of what follows."""
    return [(e["action"], e.get("addr", e.get("device_free")), e["size"], e["stream"],
             e["time_us"], [(f["filename"], f["line"], f["name"]) for f in e.get("frames") or []])
            for e in snapshot["device_traces"][device] if low <= e["time_us"] < high and e["action"] != "free_requested"]


def check_written(tool, folder):
    """-t snapshot: the whole comes back; a part has what was there at its end, and PyTorch's own order of things."""
    for seed in range(8):
        snapshot = snapshots.train(seed, devices=1 + seed % 2, expandable=seed % 3 == 1, oom=seed == 2, limit=64 * MIB if seed == 2 else 8 << 30,
                                   ring=(None, 150)[seed % 2])
        path, out = os.path.join(folder, f"w{seed}_rank3.pickle"), os.path.join(folder, "cut.pickle")
        with open(path, "wb") as file:
            pickle.dump(snapshot, file, protocol=4)

        def cut(*words):
            done = tool.run("tacho-convert", path, "-t", "snapshot", "-o", out, *words)
            expect(done.returncode == 0, f"seed {seed}: {done.stderr.decode()[:300]}")
            with open(out, "rb") as file:
                return pickle.load(file)

        whole = cut()
        for device in range(len(snapshot["device_traces"])):
            expect(entries_of(whole, device) == entries_of(snapshot, device), f"seed {seed}: entries of device {device} differ")
        keys = ("device", "address", "total_size", "stream", "segment_type", "segment_pool_id", "is_expandable")

        def segments(s):
            return sorted([tuple(g[k] for k in keys) + tuple((b["address"], b["requested_size"], b["state"], where(b["frames"]))
                           for b in g["blocks"] if b["state"] != "inactive") for g in s["segments"]])
        expect(segments(whole) == segments(snapshot), f"seed {seed}: segments differ")
        for g in whole["segments"]:
            at = g["address"]
            for b in g["blocks"]:
                expect(b["address"] == at, f"seed {seed}: a hole before {b['address']}")
                at += b["size"]
            expect(at == g["address"] + g["total_size"], f"seed {seed}: blocks of {at - g['address']} of {g['total_size']} bytes")
        expect([(a["name"], a["stage"], a["time_us"]) for a in whole["external_annotations"] if a["device"] == 0 and a["stage"] == "START"] ==
               [(a["name"], a["stage"], a["time_us"]) for a in snapshot["external_annotations"] if a["device"] == 0 and a["stage"] == "START"],
               f"seed {seed}: annotations differ")
        expect(bool(whole["allocator_settings"]["expandable_segments"]) == (seed % 3 == 1), f"seed {seed}: settings")
        with open(out, "rb") as file:
            again = tool.report(file.name, "memory,snapshot")
        want = tool.report(path, "memory,snapshot")
        expect({k: again.get(k) for k in ("memory", "memory_owners", "snapshot")} == {k: want.get(k) for k in ("memory", "memory_owners", "snapshot")},
               f"seed {seed}: reports of what was written differ")
        trace = snapshot["device_traces"][0]
        low, high = trace[len(trace) // 3]["time_us"], trace[2 * len(trace) // 3]["time_us"]
        part = cut("--from", f"{low}us", "--to", f"{high}us", "--devices", "0") if low < 10**12 else cut(
            "--from", iso(low), "--to", iso(high), "--devices", "0")
        expect(entries_of(part, 0) == entries_of(snapshot, 0, low, high), f"seed {seed}: entries of a part differ")
        levels = list(walk(snapshot, 0))[::-1]
        size, reserved, _ = levels[sum(e["time_us"] < high for e in trace)]
        live = sum(b["requested_size"] for g in part["segments"] for b in g["blocks"] if b["state"] != "inactive")
        expect((live, sum(g["total_size"] for g in part["segments"])) == (size, reserved),
               f"seed {seed}: a part ends with {live}, {sum(g['total_size'] for g in part['segments'])}, want {size}, {reserved}")
        expect(all(g["device"] == 0 for g in part["segments"]), f"seed {seed}: another device")
        for words in (("--names", "x"), ("--steps", "1-2")):
            expect(tool.run("tacho-convert", path, "-t", "snapshot", "-o", out, *words).returncode == 2, f"{words} are taken")
        # Other formats, read again.
        tool.run("tacho-convert", path, "-t", "perfetto", "-o", out + ".pftrace")
        rows = [[{key: json.loads(value or "{}") if key == "args" else value for key, value in row.items() if key not in ("host", "thread", "rank")}
                 for row in csv.DictReader(tool.run("tacho-convert", name, "-t", "csv", "--args", "full").stdout.decode().splitlines())]
                for name in (path, out + ".pftrace")]
        expect(rows[0] == rows[1] and len(rows[0]) > 50, f"seed {seed}: rows of Perfetto's file differ")
        expect(tool.report(out + ".pftrace", "memory")["memory"] == want["memory"], f"seed {seed}: memory of Perfetto's file")
        if os.path.exists(out + ".db"):
            os.remove(out + ".db")
        tool.run("tacho-convert", path, "-t", "sqlite", "-o", out + ".db")
        got = sqlite3.connect(out + ".db").execute(
            "SELECT device, SUM(bytes * (kind = 'alloc')) - SUM(bytes * (kind = 'free')), SUM(kind = 'free'), "
            "MAX(json_extract(args, '$.total_allocated')) FROM timeline WHERE kind IN ('alloc', 'free') GROUP BY device").fetchall()
        want = [(device, size, sum(e["action"] == "free_completed" for e in entries), max(level[0] for level in walk(snapshot, device)))
                for device, entries in enumerate(snapshot["device_traces"]) for size, _, _ in [next(walk(snapshot, device))]]
        expect(got == want, f"seed {seed}: SQLite has {got}, want {want}")


def most_at_once(data):
    """The most items that one APPENDS takes: PyTorch's page hands them on as arguments of a call, of which a browser has a limit."""
    outer, count, most = [], 0, 0
    for op, _, _ in pickletools.genops(data):
        if op.name == "MARK":
            outer.append(count)
            count = 0
        elif op.name in ("APPENDS", "SETITEMS"):
            most = max(most, count) if op.name == "APPENDS" else most
            count = outer.pop()
        else:
            count += {"TUPLE2": -1, "PROTO": 0, "BINPUT": 0, "LONG_BINPUT": 0, "STOP": 0}.get(op.name, 1)
    return most


def check_long(tool, folder):
    snapshot = snapshots.train(1, steps=40, scale=4)
    path, out = os.path.join(folder, "long.pickle"), os.path.join(folder, "long.out")
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)
    tool.run("tacho-convert", path, "-t", "snapshot", "-o", out)
    with open(out, "rb") as file:
        data = file.read()
    expect(entries_of(pickle.loads(data), 0) == entries_of(snapshot, 0), "entries of a long snapshot differ")
    expect(900 < most_at_once(data) <= 1000, f"{most_at_once(data)} items at once")


def iso(us):
    return datetime.datetime.fromtimestamp(us / 1e6, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


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


def check_fields(tool, folder):
    """Each field missing or odd, as other versions and damage have it; without history, and with it turned off."""
    path = os.path.join(folder, "field.pickle")
    for at, value, document in snapshots.odd_documents(snapshots.train(2, devices=2, oom=True, ring=80)):
        with open(path, "wb") as file:
            pickle.dump(document, file, protocol=4)
        done = tool.run("tacho-analyze", path, "-r", "memory,snapshot")
        expect(done.returncode in (0, 4), f"{at} is {value}: {done.returncode} {done.stderr.decode(errors='replace')[:200]}")
        done = tool.run("tacho-convert", path, "-t", "snapshot", "-o", path + ".out")
        expect(done.returncode in (0, 4), f"{at} is {value}, written: {done.returncode} {done.stderr.decode(errors='replace')[:200]}")
        if done.returncode == 0:
            with open(path + ".out", "rb") as file:
                expect("segments" in pickle.load(file), f"{at} is {value}: what is written is no snapshot")
    whole = snapshots.train(4, devices=2)
    for traces in ([], [[], []], None):
        document = dict(whole, device_traces=traces)
        if traces is None:
            del document["device_traces"]
        for g in document["segments"]:
            for b in g["blocks"]:
                b.pop("frames", None)
        with open(path, "wb") as file:
            pickle.dump(document, file, protocol=2)
        got = tool.report(path, "memory,snapshot")
        want = {d: sum(g["total_size"] for g in whole["segments"] if g["device"] == d) for d in (0, 1)}
        rows = got.get("snapshot", [])
        have = {d: sum(r["reserved_bytes"] for r in rows if r["device"] == d) for d in (0, 1)}
        expect(have == want, f"device_traces {traces}: reserved {have}, want {want}")


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
        check_written(tool, folder)
        check_long(tool, folder)
        check_hostile(tool, folder)
        check_fields(tool, folder)
        check_large(tool, folder)
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own trace processor must find in our files what is in the traces.

usage: check_trace_processor.py --bin BUILD [--only TEXT]

Per kind and name: how often, and the sum of durations; depth; arrows; counters; what GPUs did,
against tacho-analyze; no import error.  What is expected is made from -t text by this file's own
rules.  Then the same of files of ranks put behind each other, of gzip, and of our Chrome JSON.
"""
import argparse
import collections
import glob
import gzip
import json
import os
import re
import shutil
import sys
import tempfile

import world

KINETO = ["a100_ddp_rank0of2_nccl_args", "event_sync_3_streams", "mi250_minitoy_rocm",
          "torch_compile_triton", "cpu_only_rank34", "vllm_piecewise_graphs"]
if os.environ.get("FULL"):
    KINETO.append("h100_qwen_0.5b_inference")  # large, and of the kinds of the others
JOB = ["job128_sampled_rank0", "job128_sampled_rank1"]
IS_DERIVED = """(t.name glob '*Steps' or t.name glob '*Phases' or t.name glob '*GPU*time' or
                 t.name = 'Allocations')"""
SLICES = {"kernel", "memcpy", "memset", "graph"}
OVERVIEW = ["Steps", "Phases", "GPU time"]
SAMPLES = {"alloc", "free", "counter"}
OWN_CATEGORY = {"range", "mark"}  # may have that of the file that they are from
QUERIES = {
    "stats": "select name, value from stats where value > 0 and severity in ('error', 'data_loss')",
    "slices": f"""select s.category, s.name, count(*), sum(s.dur), min(s.dur) from slice s
                  join track t on t.id = s.track_id where not coalesce({IS_DERIVED}, 0)
                  group by s.category, s.name""",
    "derived": f"""select t.name, s.category, count(*), sum(s.dur) from slice s
                   join track t on t.id = s.track_id where {IS_DERIVED} group by 1, 2""",
    "overview": """include perfetto module viz.summary.track_event;
                   select g.name from _track_event_tracks_ordered_groups g
                   join track p on p.id = g.parent_id where p.name = ' Overview'
                   order by g.order_id""",
    "first": """include perfetto module viz.summary.track_event;
                select name from _track_event_tracks_ordered_groups
                where parent_id is null and name is not null order by order_id limit 1""",
    "depth": "select coalesce(max(s.depth), -1) from slice s join thread_track t on t.id = s.track_id",
    "flows": "select count(*) from flow",
    "backwards": """select count(*) from flow f join slice a on a.id = f.slice_out
                    join slice b on b.id = f.slice_in where a.ts > b.ts""",
    "counters": """select t.name, count(*) from counter c join counter_track t on t.id = c.track_id
                   group by t.name""",
    "busy": """select min(c.value), max(c.value) from counter c join counter_track t on
               t.id = c.track_id where t.name = 'GPU busy'""",
    "queue": """select min(c.value), max(c.value) from counter c join counter_track t on
                t.id = c.track_id where t.name = 'Queue length'""",
    "processes": "select name, pid from process where pid > 0 order by name",
    "threads": "select count(*) from slice s join thread_track t on t.id = s.track_id",
    "streams": """select distinct t.name from slice s join track t on t.id = s.track_id
                  where t.name glob 'Stream*'""",
    "odd": """select name from (select name from track union select name from thread)
              where name glob 'thread [0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]*'""",
    "spans": "select distinct name from track where name glob 'Spans*'",
    "bounds": "select min(ts), max(ts + dur) from slice",
    "named": "select count(*) from slice where name is null",
}


class Check:
    def __init__(self):
        self.count = self.bad = 0

    def same(self, what, got, want):
        self.count += 1
        if got != want:
            self.bad += 1
            print(f"not ok - {what}: {str(got)[:300]}, expected {str(want)[:300]}")


# ---- what is expected ----

def call_name(name):
    """Without CUPTI's version behind it."""
    head, _, digits = name.rpartition("_v")
    return head if name.startswith("cu") and len(digits) >= 4 and digits.isdigit() else name


def by_name(events):
    found = collections.defaultdict(lambda: [0, 0])
    for e in events:
        if e.kind in SAMPLES:
            continue
        cell = found["" if e.kind in OWN_CATEGORY else e.kind, call_name(e.name)]
        cell[0] += 1
        cell[1] += e.duration
    return {key: tuple(cell) for key, cell in found.items()}


def arrows(events):
    """A row of slices of one id is joined one by one; of two calls in each other the outer counts."""
    ends, last = collections.Counter(), {}
    for e in events:
        correlation = e.args.get("correlation")
        if e.kind == "mark" and ("flow_begin" in e.args or "flow_end" in e.args):
            ends[e.process, e.name, e.args.get("flow_begin") or e.args["flow_end"]] += 1
        if e.kind == "api":
            last[e.track] = correlation
        if e.kind == "driver" and correlation == last.get(e.track, "0"):
            continue
        if correlation and (e.kind in SLICES or e.kind in ("api", "driver", "sync")):
            ends[e.process, correlation] += 1
    return sum(count - 1 for count in ends.values())


def depth(events):
    """Of slices on threads, each in the first lane where it is within what is open."""
    lanes, most = collections.defaultdict(list), -1
    for e in events:
        if "thread" not in e.track.split() or e.kind in SAMPLES or e.kind == "mark":
            continue
        for lane in lanes[e.track] + [None]:
            if lane is None:
                lane = []
                lanes[e.track].append(lane)
            while lane and lane[-1] <= e.begin:
                lane.pop()
            if not lane or e.end <= lane[-1]:
                break
        most = max(most, len(lane)) if lanes[e.track][0] is lane else most
        lane.append(e.end)
    return most


def has_marks(events):
    return any(e.kind == "mark" for e in events)


# ---- our file ----

def check_slices(check, answers, events):
    want, got = by_name(events), collections.defaultdict(lambda: [0, 0])
    words = {kind for kind, _ in want}
    for category, name, count, total, _ in answers["slices"]:
        cell = got[category if category in words else "", name or ""]
        cell[0] += count
        cell[1] += total
    got = {key: tuple(cell) for key, cell in got.items()}
    for key in want.keys() | got.keys():
        check.same(f"slices of {key}", got.get(key), want.get(key))
    check.same("slices that did not end", [row for row in answers["slices"] if row[4] < 0], [])


def check_derived(check, answers, report):
    gpus = [gpu for rank in report["ranks"] for gpu in rank["gpus"]]
    got = collections.Counter()
    for name, category, _, total in answers["derived"]:
        got[category] += total if name.endswith("time") else 0
    for category, key in (("compute", "compute_ns"), ("comm", "exposed_comm_ns"),
                          ("data", "exposed_copy_ns")):
        check.same(f"GPU time, {category}", got.get(category, 0), sum(gpu[key] for gpu in gpus))
    steps = sum(count for name, _, count, _ in answers["derived"] if name.endswith("Steps"))
    marks = sum(len(rank.get("steps", [])) for rank in report["ranks"])
    if marks > len(report["ranks"]): # one alone may be the window, not a mark
        check.same("steps", steps, marks)


def check_overview(check, answers):
    """Steps and GPU time of all ranks, by rank and within it in this order, above all else."""
    names = [name for name, in answers["overview"]]
    parts = [(re.match(r"rank (\d+)", name), name.split(": ")[-1]) for name in names]
    rows = [(int(rank[1]) if rank else -1, OVERVIEW.index(re.sub(r" \d+", "", row)), row)
            for rank, row in parts]
    check.same("order of the overview", rows, sorted(rows))
    has_any = any(name != "Allocations" for name, *_ in answers["derived"])
    check.same("an overview", bool(names), has_any)
    if names:
        check.same("what stands above all", answers["first"], [[" Overview"]])
    check.same("rows that are named by a made-up number", answers["odd"], [])


def check_file(check, trace, events, report=None):
    answers = world.ask(trace, QUERIES)
    check.same("import errors", answers["stats"], [])
    check.same("slices without a name", answers["named"], [[0]])
    check_slices(check, answers, events)
    check.same("arrows", answers["flows"], [[arrows(events)]])
    check.same("arrows backwards", answers["backwards"], [[0]])
    if not has_marks(events):
        check.same("depth", answers["depth"], [[depth(events)]])
    got = dict(answers["counters"])
    memory = sum(e.kind in ("alloc", "free") for e in events)
    check.same("samples of memory",
               got.get("Memory allocated", 0) + got.get("Host memory allocated", 0), memory)
    check.same("samples of memory where queries for GPUs look", got.get("GPU Memory", 0),
               got.get("Memory allocated", 0))
    check_overview(check, answers)
    work = [e for e in events if e.kind in SLICES]
    if work:
        check.same("GPU busy", [0 <= v <= 100 for v in answers["busy"][0]], [True, True])
        check.same("GPU busy at its most", answers["busy"][0][1] > 0,
                   sum(e.duration for e in work) > 0 and answers["busy"][0][1] > 0)
    if answers["queue"][0][0] is not None:
        check.same("queue length", [answers["queue"][0][0], answers["queue"][0][1] >= 1], [0, True])
    if report:
        check_derived(check, answers, report)
    return answers


def analyze(tool, *paths):
    return json.loads(world.run(tool, "-q", "-f", "json", "-r", "summary,steps", *paths))


def write(convert, out, *inputs, args=None):
    world.run(convert, *inputs, "-t", "perfetto", "-o", out, "-q",
              *(["--args", args] if args else []))
    return out


def check_input(check, tools, folder, name, *paths):
    """One timeline of the inputs, lean, as it is without an option, and gzip."""
    events = world.events(tools.convert, *paths)
    report = analyze(tools.analyze, *paths)
    lean = write(tools.convert, os.path.join(folder, name + ".lean.pftrace"), *paths, args="lean")
    full = write(tools.convert, os.path.join(folder, name + ".pftrace"), *paths)
    packed = write(tools.convert, os.path.join(folder, name + ".pftrace.gz"), *paths)
    answers = check_file(check, lean, events, report)
    check_file(check, full, events, report)
    with gzip.open(packed) as stream, open(full, "rb") as plain:
        check.same("gzip", stream.read() == plain.read(), True)
    check_full(check, full, events)
    if len(paths) == 1:
        check_arguments(check, full, paths[0])
    check_paths(check, tools, full, lean, *paths)
    check_pids(check, answers, report)
    spans = any(e.name == "PyTorch Profiler (0)" for e in events)
    check.same("the row of the profiler's own span", answers["spans"],
               [["Spans / PyTorch Profiler"]] if spans else [])
    print(f"  {name}: {len(events)} events, {answers['flows'][0][0]} arrows, "
          f"{len(answers['streams'])} streams")
    return events


def check_pids(check, answers, report):
    """Processes of one timeline keep the pids that the system gave them."""
    pids = sorted(rank["pid"] for rank in report["ranks"])
    if len(set(pids)) == len(pids) and all(pids):
        check.same("pids", sorted(pid for _, pid in answers["processes"]), pids)


def check_full(check, trace, events):
    """Arguments of kernels, in full: correlation ids and grids as sums."""
    rows = world.ask(trace, {
        "correlation": """select count(*), sum(a.int_value) from slice s join args a using (arg_set_id)
                          where s.category = 'kernel' and a.key = 'debug.correlation'""",
        "grid": """select sum(a.int_value) from slice s join args a using (arg_set_id)
                   where s.category = 'kernel' and a.key = 'debug.grid[0]'""",
        "bytes": """select sum(a.int_value) from slice s join args a using (arg_set_id)
                    where s.category = 'memcpy' and a.key = 'debug.bytes'""",
        "memory": """select count(*) from slice s join track t on t.id = s.track_id
                     where t.name = 'Allocations'"""})
    kernels = [e for e in events if e.kind == "kernel"]
    ids = [int(e.args["correlation"]) for e in kernels if "correlation" in e.args]
    check.same("correlation ids", rows["correlation"], [[len(ids), sum(ids) if ids else None]])
    grids = [int(e.args["grid_x"]) for e in kernels if "grid_x" in e.args]
    check.same("grids", rows["grid"], [[sum(grids) if grids else None]])
    copies = [int(e.args.get("bytes", 0)) for e in events if e.kind == "memcpy"]
    check.same("bytes of copies", rows["bytes"], [[sum(copies) if copies else None]])
    check.same("allocations", rows["memory"],
               [[sum(e.kind in ("alloc", "free") for e in events)]])


ARGUMENTS = ["registers per thread", "est. achieved occupancy %", "Input Dims", "Input type", "Sequence number",
             "Group size", "In msg nelems", "dtype"]


def check_arguments(check, trace, path):
    """Without an option the panel of an event has what the file says of it."""
    if not path.endswith(".json.gz"):
        return
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as stream:
        spans = [e.get("args", {}) for e in json.load(stream, strict=False)["traceEvents"] if e.get("ph") == "X"]
    keys = {word: "debug." + word.replace(".", "_") for word in ARGUMENTS}
    rows = world.ask(trace, {word: f"""select count(distinct s.id) from slice s join args a using (arg_set_id)
                                       where substr(a.key, 1, {len(key)}) = '{key}'""" for word, key in keys.items()})
    for word in ARGUMENTS:
        check.same(f"arguments {word}", rows[word], [[sum(word in args for args in spans)]])


def check_paths(check, tools, full, lean, *paths):
    """GPU work says the call path of its launch: as many slices as have one, and as long."""
    query = {"paths": """select count(*), sum(s.dur) from slice s join args a using (arg_set_id)
                         where a.key = 'debug.call path' and length(a.string_value) > 0 and s.dur > 0"""}
    ranks = json.loads(world.run(tools.analyze, "-q", "-f", "json", "-r", "stacks", *paths))["ranks"]
    below = [row for rank in ranks for row in rank["paths"] if row["class"] == "gpu_work"
             and row["above"] not in [root["node"] for root in rank["paths"] if root["above"] is None]]
    wanted = [sum(row["calls"] for row in below), sum(row["gpu_ns"] for row in below) or None]
    check.same("call paths", world.ask(full, query)["paths"], [wanted])
    check.same("call paths, lean", world.ask(lean, query)["paths"], [[0, None]])


def check_ranks(check, tools, folder, paths, ranks):
    """Files of ranks behind each other are one timeline, plain and gzip."""
    out = os.path.join(folder, "ranks")
    os.mkdir(out)
    world.run(tools.convert, *paths, "-t", "perfetto", "-o", out, "-q")
    files = sorted(glob.glob(os.path.join(out, "*.pftrace")))
    check.same("files of ranks", len(files), ranks)
    whole = os.path.join(folder, "cat.pftrace")
    packed = os.path.join(folder, "cat.pftrace.gz")
    with open(whole, "wb") as stream, open(packed, "wb") as small:
        for path in files:
            with open(path, "rb") as part:
                data = part.read()
            stream.write(data)
            small.write(gzip.compress(data))
    events = world.events(tools.convert, *paths)
    for path in (whole, packed):
        answers = check_file(check, path, events)
        names = [name for name, _ in answers["processes"] if name and name.startswith("rank")]
        check.same("processes", len(names), ranks)
    print(f"  {ranks} files of ranks behind each other, plain and gzip: {len(events)} events")
    shutil.rmtree(out)


# ---- counters of a trace ----

def check_counters(check, tools, folder):
    """Counters that the input has: each sample of each, of two processes, with its exact value."""
    source = os.path.join(folder, "counters.json")
    want, rows = set(), []
    for i in range(200):
        pid, own = 10 + i % 2, (i - 40) * 1.5
        rows.append({"ph": "C", "name": "watts", "pid": pid, "ts": i, "args": {"value": own}})
        rows.append({"ph": "C", "name": "queue", "pid": pid, "ts": i + 0.5,
                     "args": {"in": i, "out": 2.0 ** 40 + i}})
        want |= {("watts", pid, i * 1000, own), ("queue in", pid, i * 1000 + 500, float(i)),
                 ("queue out", pid, i * 1000 + 500, 2.0 ** 40 + i)}
    with open(source, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": rows + [
            {"ph": "X", "name": "n", "pid": 10, "tid": 1, "ts": 0, "dur": 1}]}, file)
    log = os.path.join(folder, "counters.tacho")
    world.run(tools.convert, source, "-t", "log", "-o", log, "-q")
    for what, path in (("of a JSON", source), ("of a log", log)):
        out = write(tools.convert, os.path.join(folder, "counters.pftrace"), path)
        answers = world.ask(out, {"stats": QUERIES["stats"], "counters": """
            select t.name, p.pid, c.ts, c.value from counter c
            join process_counter_track t on t.id = c.track_id join process p using (upid)"""})
        got = {(name, pid, int(ts), value) for name, pid, ts, value in answers["counters"]}
        base = min((ts for _, _, ts, _ in got), default=0)
        got = {(name, pid, ts - base, value) for name, pid, ts, value in got}
        check.same(f"import errors of counters {what}", answers["stats"], [])
        check.same(f"counters {what}, missing", sorted(want - got)[:5], [])
        check.same(f"counters {what}, more", sorted(got - want)[:5], [])
    print(f"  counters: {len(want)} samples")


# ---- our Chrome JSON in the same reader ----

def check_chrome(check, tools, folder, path):
    """Intervals of one row that overlap are dropped by this reader, and it says how many."""
    out = os.path.join(folder, "chrome.json")
    world.run(tools.convert, path, "-t", "chrome", "-o", out, "-q")
    events = [e for e in world.events(tools.convert, path) if e.kind in ("kernel", "memcpy")]
    rows = world.ask(out, {
        "slices": """select name, count(*), sum(dur) from slice where category in ('kernel',
                     'gpu_memcpy') group by name""",
        "flows": "select count(*) from flow",
        "stats": """select name, value from stats where value > 0 and
                    severity in ('error', 'data_loss')"""})
    dropped = dict(rows["stats"]).pop("slice_drop_overlapping_complete_event", 0)
    others = {name for name, _ in rows["stats"]} - {"slice_drop_overlapping_complete_event"}
    check.same("import errors of Chrome JSON", others, set())
    got = {name: (count, total) for name, count, total in rows["slices"]}
    want = collections.defaultdict(lambda: (0, 0))
    for e in events:
        want[e.name] = (want[e.name][0] + 1, want[e.name][1] + e.duration)
    if dropped:
        seen = sum(count for count, _ in got.values())
        check.same("kernels in Chrome JSON, with those dropped",
                   seen <= len(events) <= seen + dropped, True)
    else:
        check.same("kernels in Chrome JSON", got, dict(want))
    check.same("arrows in Chrome JSON", rows["flows"][0][0] > 0 or not arrows(events), True)
    print(f"  Chrome JSON of {os.path.basename(path)}: {len(events)} kernels and copies, "
          f"{dropped} dropped")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--only", default="")
    tools = parser.parse_args()
    tools.convert = os.path.join(tools.bin, "tacho-convert")
    tools.analyze = os.path.join(tools.bin, "tacho-analyze")
    generate = os.path.join(tools.bin, "samples", "generate")
    check = Check()
    print(f"  Perfetto {world.VERSION}")
    with tempfile.TemporaryDirectory() as folder:
        job = os.path.join(folder, "job")
        world.run(generate, "--out", job, "--events", "20000", "--ranks", "3")
        logs = sorted(glob.glob(os.path.join(job, "*.tacho")))
        if tools.only in "counters":
            check_counters(check, tools, folder)
        if tools.only in "generated":
            check_input(check, tools, folder, "generated", *logs)
            check_ranks(check, tools, folder, logs, 3)
            check_chrome(check, tools, folder, logs[0])
        kineto = os.path.join(world.TRACES, "kineto")
        if not os.path.isdir(kineto):
            print(f"  no traces in {world.TRACES}: files of others are left out")
            return check
        paths = {name: os.path.join(kineto, name + ".json.gz") for name in KINETO + JOB}
        for name in KINETO:
            if tools.only in name:
                check_input(check, tools, folder, name, paths[name])
                check_chrome(check, tools, folder, paths[name])
        if tools.only in "job128":
            both = [paths[name] for name in JOB]
            check_input(check, tools, folder, "job128", *both)
            check_ranks(check, tools, folder, both, 2)
    return check


if __name__ == "__main__":
    check = main()
    print(f"trace processor: {check.count - check.bad} passed, {check.bad} failed")
    sys.exit(check.bad > 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The six rules by which PyTorch validates its traces (field `checks`), recomputed from the JSON.

    check_rules.py --bin DIR [--traces DIR] [--random N]

torch/profiler/_trace_validator.py says the rules; here they are as analyze/DEFINITIONS.md 8 has
them. Random files break each rule often, real files hardly ever.
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

from check_traces import Checks     # noqa: E402

BACKWARD = "autograd::engine::evaluate_function: "
FIELDS = ("Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size")
CALLS = ("cuda_runtime", "cuda_driver")


def count_rules(events):
    """Check -> how many events break its rule."""
    events = sorted((e for e in events if isinstance(e, dict) and e.get("ph") == "X"),
                    key=lambda e: float(e["ts"]))
    calls = [e for e in events if e.get("cat") in CALLS and "correlation" in e.get("args", {})]
    begins = {e["args"]["correlation"]: float(e["ts"]) for e in reversed(calls)}
    records = {e["args"]["correlation"]: float(e["ts"]) for e in reversed(calls)
               if "EventRecord" in e["name"]}
    first = calls[0]["args"]["correlation"] if calls else 0
    kernels = collections.defaultdict(list)
    operators = collections.defaultdict(set)
    broken = collections.Counter()
    for e in events:
        if e.get("cat") == "kernel":
            a = e["args"]
            kernels[a.get("device"), a.get("stream")].append(
                (float(e["ts"]), float(e["ts"]) + float(e.get("dur", 0))))
    for e in events:
        a, ts = e.get("args") or {}, float(e["ts"])
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and a.get("correlation"):
            broken["order"] += begins.get(a["correlation"], ts) > ts
        if a.get("cuda_sync_kind") in ("Stream Wait Event", "Event Sync"):
            record = int(a.get("wait_on_cuda_event_record_corr_id", -1))
            is_known = calls and float(calls[0]["ts"]) < ts and record >= first
            broken["waits"] += bool(record <= 0 or is_known and records.get(record, ts + 1) > ts)
        if a.get("cuda_sync_kind") == "Stream Sync":
            broken["stream_syncs"] += any(
                begin < ts < end for begin, end in kernels[a.get("device"), a.get("stream")])
        if e.get("name") == "record_param_comms":
            broken["comms"] += any(field not in a for field in FIELDS)
        if e.get("name", "").startswith(BACKWARD) and a.get("Sequence number"):
            operators[a["Sequence number"]].add(e["name"])
    broken["sequences"] = sum(len(names) > 1 for names in operators.values())
    return {name: broken[name] for name in ("order", "waits", "stream_syncs", "comms", "sequences")}


def random_events(rng):
    """Two streams, calls that launch and record, waits of every kind, operators."""
    events, ts = [], 1700000000000000.0
    calls, stream_end = [], {7: ts, 9: ts}
    number = rng.choice((1, 5000))

    def put(cat, name, begin, dur, tid, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 0 if tid < 10 else 50,
                       "tid": tid, "ts": begin, "dur": dur, "args": args})

    for _ in range(rng.randrange(5, 80)):
        ts += rng.randrange(1, 30)
        number += 1
        stream = rng.choice((7, 9))
        where = {"device": 0, "context": 1, "stream": stream, "correlation": number}
        kind = rng.randrange(7)
        if kind < 2:
            put("cuda_runtime", "cudaLaunchKernel", ts, 2, 50, correlation=number)
            begin = max(stream_end[stream], ts + rng.choice((3, 3, 3, -5)))
            stream_end[stream] = begin + rng.randrange(1, 40)
            put("kernel", "gemm", begin, stream_end[stream] - begin, stream, **where)
        elif kind == 2:
            put("cuda_runtime", rng.choice(("cudaEventRecord", "cudaEventRecordWithFlags")), ts, 1,
                50, correlation=number)
            calls.append(number)
        elif kind == 3:
            name = rng.choice(("Stream Wait Event", "Event Sync"))
            record = rng.choice(calls + [number + rng.randrange(1, 9), number - 1, -1, 1])
            args = {"wait_on_cuda_event_record_corr_id": record} if rng.random() < 0.9 else {}
            put("cuda_sync", name, ts, 1, stream, cuda_sync_kind=name, **args, **where)
        elif kind == 4:
            put("cuda_sync", "Stream Sync", ts, 1, stream, cuda_sync_kind="Stream Sync", **where)
        elif kind == 5:
            args = {field: 4 for field in FIELDS if rng.random() < 0.9}
            args.update({f: "x" for f in ("Collective name", "dtype") if f in args})
            put("cpu_op", "record_param_comms", ts, 1, 50, **args)
        else:
            put("cpu_op", BACKWARD + rng.choice(("MmBackward0", "AddBackward0")), ts, 1, 50,
                **{"Sequence number": rng.randrange(1, 40)})
    return events


def compare(options, checks, label, path, events):
    out = subprocess.run([os.path.join(options.bin, "tacho-analyze"), "-r", "check", "-f", "json",
                          path], capture_output=True, check=False)
    if out.returncode:
        checks.say(False, label, out.stderr.decode()[:200])
        return
    want = count_rules(events)
    rows = {row["check"]: row["count"] for row in json.loads(out.stdout)["ranks"][0]["checks"]}
    checks.same(label, {name: rows.get(name) for name in want}, want)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--traces")
    parser.add_argument("--random", type=int, default=60)
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.random):
            path = os.path.join(folder, "random.json")
            events = random_events(random.Random(seed))
            with open(path, "w", encoding="utf-8") as out:
                json.dump({"traceEvents": events}, out)
            compare(options, checks, f"random {seed}", path, events)
    pattern = os.path.join(options.traces or "-", "kineto", "*.json.gz")
    for path in sorted(glob.glob(pattern)):
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as text:
            events = json.load(text, strict=False)["traceEvents"]
        compare(options, checks, os.path.basename(path), path, events)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())

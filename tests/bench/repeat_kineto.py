# SPDX-License-Identifier: Apache-2.0
"""Repeat a Kineto trace N times with fresh ids and steps: real shapes at sizes that nobody ships.

usage: repeat_kineto.py IN.json[.gz] N OUT.json[.gz]

Each copy is moved behind the one before by a whole number of microseconds; correlation ids,
External ids, flow ids, sequence numbers and the numbers of ProfilerStep# go on counting, so every
copy is a training run of its own length and nothing joins across copies.  Memory stays that of one
copy.
"""
import gzip
import json
import re
import sys

# args that are ids: moved by (largest + 1) per copy
IDS = ("correlation", "External id", "external id", "Ev Idx", "Record function id",
       "Sequence number", "Python id", "Python parent id")
STEP = re.compile(r"^(ProfilerStep#)(\d+)$")


def opener(path, mode):
    return gzip.open(path, mode, compresslevel=1) if path.endswith(".gz") else open(path, mode)


def spans(events):
    """First begin, last end in microseconds, and the largest id and number of steps."""
    timed = [e for e in events if isinstance(e.get("ts"), (int, float)) and e.get("ph") != "M"]
    first = min(e["ts"] for e in timed)
    last = max(e["ts"] + e.get("dur", 0) for e in timed)
    top = max((e["args"][k] for e in events for k in IDS
               if isinstance(e.get("args", {}).get(k), int)), default=0)
    steps = [int(m.group(2)) for e in events if (m := STEP.match(str(e.get("name", ""))))]
    return first, last, top + 1, (max(steps) - min(steps) + 1 if steps else 0)


def moved(event, shift, ids, steps):
    e = dict(event)
    if "ts" in e:
        e["ts"] = e["ts"] + shift
    if e.get("ph") in ("s", "f", "t") and isinstance(e.get("id"), int):
        e["id"] += ids
    if isinstance(e.get("args"), dict):
        e["args"] = {k: v + ids if k in IDS and isinstance(v, int) and v >= 0 else v
                     for k, v in e["args"].items()}
    m = STEP.match(str(e.get("name", "")))
    if m:
        e["name"] = m.group(1) + str(int(m.group(2)) + steps)
    return e


def main(source, count, target):
    with opener(source, "rb") as f:
        trace = json.loads(f.read(), strict=False)
    events = trace.pop("traceEvents")
    first, last, ids, steps = spans(events)
    length = int(last - first) + 1000
    head = json.dumps(trace)[:-1]
    with opener(target, "wt") as out:
        out.write(head + (", " if len(head) > 1 else "") + '"traceEvents": [\n')
        for copy in range(count):
            for i, e in enumerate(events):
                if copy and e.get("ph") == "M":
                    continue
                out.write(",\n" if copy or i else "")
                out.write(json.dumps(moved(e, copy * length, copy * ids, copy * steps)))
        out.write("\n]}\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])

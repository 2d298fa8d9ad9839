#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps whose numbers come again, in every format and in every report that has steps.

    check_again.py --bin DIR

Two marks of one number are two steps: a second epoch, validation between, a loop begun anew.
A trace of Kineto and a log, with steps right behind each other and apart, inside an annotation that
begins with the first of them, each with a kernel and an allocation of its own. What each format
says of them is read back: by Tacho where it reads the format, else from the bytes.
"""
import argparse
import csv
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import log_file     # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BASE = 1_700_000_000_000_000_000
# number, begin and length in us: next to each other, and 20 us (more than 1 %) apart
STEPS = [(7, 100, 100), (7, 200, 100), (12, 300, 100), (7, 420, 150), (12, 570, 100)]
GROUPS = [7, 107, 12, 207, 112]
PID, THREAD, STREAM = 40, 40, 7


class Checks:
    def __init__(self):
        self.good = self.bad = 0

    def same(self, what, got, want):
        self.good += got == want
        self.bad += got != want
        if got != want:
            print(f"not ok - {what}: got {got}, want {want}")


def row(category, name, begin, length, tid=THREAD, **args):
    return {"cat": category, "name": name, "ts": begin, "dur": length, "tid": tid, "args": args}


def rows(mark):
    made = [row("user_annotation", "epoch 0", 100, 560)]
    for place, (number, begin, length) in enumerate(STEPS):
        made += [mark(number, begin, length),
                 row("user_annotation", "forward", begin, 30),
                 row("cuda_runtime", "cudaLaunchKernel", begin + 10, 5, correlation=place + 1),
                 row("kernel", "gemm", begin + 40, 10 * (place + 1), tid=STREAM, device=0,
                     stream=STREAM, correlation=place + 1)]
    return made


def amount(place):
    """What the allocator says in a step: (us, address, bytes, total)."""
    return STEPS[place][1] + 7, 4096 * (place + 1), 512, 512 * (place + 1)


def kineto(path):
    events = [{"ph": "X", "pid": 0 if one["cat"] == "kernel" else PID, **one} for one in rows(
        lambda number, begin, length: row("user_annotation", f"ProfilerStep#{number}", begin,
                                          length))]
    for place in range(len(STEPS)):
        at, address, size, total = amount(place)
        events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]",
                       "pid": PID, "tid": THREAD, "ts": at, "args": {
                           "Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size,
                           "Total Allocated": total, "Total Reserved": 99999}})
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({"schemaVersion": 1, "baseTimeNanoseconds": BASE, "traceEvents": events}, stream)


def log(path):
    made = log_file.Log()
    made.window(BASE, BASE + 700_000)
    for one in rows(lambda number, begin, length: row("step", "step", begin, length,
                                                      number=number)):
        log_file.put_row(made, one, BASE)
    for place in range(len(STEPS)):
        at, address, size, total = amount(place)
        track = made.track(log_file.POOL, THREAD, device=0)
        made.put("alloc", track, "[memory]", BASE + 1000 * at, BASE + 1000 * at, join=address,
                 amount=size, totals=(total, 99999))
    with open(path, "wb") as stream:
        stream.write(made.bytes())


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def report(options, path, names, *more):
    out = run(f"{options.bin}/tacho-analyze", "-q", "-f", "json", "-r", names, *more, path)
    return json.loads(out)["ranks"][0]


def convert(options, path, form, out, *more):
    run(f"{options.bin}/tacho-convert", "-q", "-t", form, "-o", out, *more, path)
    return out


def walls():
    """(number, begin, end): a gap of 1 % belongs to the step before."""
    return [(number, BASE + 1000 * begin, 1000 * length) for number, begin, length in STEPS]


def steps_of(rank):
    return [(one["step"], one["begin_ns"], one["wall_ns"]) for one in rank["steps"]]


# ---- what other formats say ------------------------------------------------------------------


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """(field, number or bytes) of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def perfetto_steps(path):
    """Names of slices on tracks named "Steps", in order."""
    with open(path, "rb") as stream:
        packets = [dict(fields(packet)) for field, packet in fields(stream.read()) if field == 1]
    tracks, found = set(), []
    for packet in packets:
        track = dict(fields(packet.get(60, b"")))
        if track.get(2) == b"Steps":
            tracks.add(track[1])
    own = {}        # of a sequence: the track that its events are on if they do not say
    for packet in packets:
        event = dict(fields(packet.get(11, b"")))
        usual = dict(fields(dict(fields(packet.get(59, b""))).get(11, b"")))
        if 11 in usual:
            own[packet.get(10)] = usual[11]
        if event and event.get(11, own.get(packet.get(10))) in tracks and 23 in event:
            found.append(event[23].decode())
    return found


def table(text):
    return list(csv.DictReader(text.splitlines()))


def scalars(path, tag):
    """Steps of the points of a tag of an events file of TensorBoard."""
    found = []
    with open(path, "rb") as stream:
        data = stream.read()
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at:at + 8], "little")
        event = dict(fields(data[at + 12:at + 12 + size]))
        at += 16 + size
        for field, value in fields(event.get(5, b"")):
            if field == 1 and dict(fields(value)).get(1) == tag.encode():
                found.append(event.get(2, 0))
    return found


# ---- the checks ------------------------------------------------------------------------------


def whole_microseconds(steps):
    """Readers of JSON drop a range that touches the next: ours end 2 ns before it, and only a gap
    closes."""
    return [(number, begin, (wall + 999) // 1000 * 1000) for number, begin, wall in steps]


def check_tensorboard(t, options, name, path, folder):
    out = convert(options, path, "tensorboard", f"{folder}/{name}.board")
    space, = glob.glob(f"{out}/plugins/profile/*/*.xplane.pb")
    events = table(run(f"{options.bin}/tacho-convert", "-q", "-t", "csv", "-o", "-", space))
    shown = [one for one in events if one["stream"] == "-559038737"]
    t.same(f"{name}: steps of an XSpace", [(int(one["name"]), int(one["time_ns"]),
                                            int(one["dur_ns"])) for one in shown], walls())
    t.same(f"{name}: their groups", [json.loads(one["args"])["group_id"] for one in shown], GROUPS)
    t.same(f"{name}: groups of their kernels", [
        json.loads(one["args"])["group_id"] for one in events if one["kind"] == "kernel"], GROUPS)
    t.same(f"{name}: an XSpace, read again", steps_of(report(options, space, "steps")), walls())
    plugin, = glob.glob(f"{out}/*.pt.trace.json.gz")
    t.same(f"{name}: the file of PyTorch's plugin",
           whole_microseconds(steps_of(report(options, plugin, "steps"))), walls())
    points, = glob.glob(f"{out}/events.out.tfevents.*")
    for tag in ("step/time_s", "gpu0/compute_share", "memory/gpu0_allocator_bytes"):
        t.same(f"{name}: points of {tag}", scalars(points, tag), sorted(GROUPS))


def check_formats(t, options, name, path, folder):
    for form, ending in (("log", "tacho"), ("chrome", "json"), ("bundle", "bundle.tar")):
        out = convert(options, path, form, f"{folder}/{name}.again.{ending}")
        t.same(f"{name}: as {form}", whole_microseconds(steps_of(report(options, out, "steps"))),
               walls())
    out = convert(options, path, "perfetto", f"{folder}/{name}.pftrace")
    t.same(f"{name}: the row Steps of Perfetto", perfetto_steps(out),
           [f"step {one[0]}" for one in STEPS])
    out = convert(options, path, "memory", f"{folder}/{name}.memory.json")
    with open(out, encoding="utf-8") as stream:
        got = [(one["step"], one["memory"]["cuda:0"]["bytes_in_use"]) for one in json.load(stream)]
    t.same(f"{name}: memory profile", got, [(one[0], amount(place)[3])
                                            for place, one in enumerate(STEPS)])
    marks = [one for one in table(run(f"{options.bin}/tacho-convert", "-q", "-t", "csv", "-o", "-",
                                      path))
             if one["kind"] == "step" or one["name"].startswith("ProfilerStep")]
    t.same(f"{name}: marks of a CSV", [int(one["time_ns"]) for one in marks],
           [BASE + 1000 * one[1] for one in STEPS])
    check_tensorboard(t, options, name, path, folder)


def check_reports(t, options, name, path):
    rank = report(options, path, "summary,steps,phases,memory,slow,critical,kernels", "--per-step")
    t.same(f"{name}: steps", steps_of(rank), walls())
    t.same(f"{name}: GPU time of each", [one["gpus"][0]["compute_ns"] for one in rank["steps"]],
           [10_000 * (place + 1) for place in range(len(STEPS))])
    t.same(f"{name}: memory of each", [(one["step"], one["begin_ns"], one["max_bytes"])
                                       for one in rank["memory"][0]["steps"]],
           [(one[0], BASE + 1000 * one[1], amount(place)[3]) for place, one in enumerate(STEPS)])
    t.same(f"{name}: kernels per step and number", {
        cell["step"]: cell["compute_ns"] for cell in rank["cells"] if cell["compute_ns"]},
        {7: 70_000, 12: 80_000})    # a cell has the number alone: of all steps with it
    forward, = (one for one in rank["phases"] if one["name"] == "forward")
    t.same(f"{name}: forward of all", (forward["count"], forward["wall_ns"]),
           (5, 150_000) if not name == "log" else (4, 120_000))     # its first step settles


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(ROOT, "build"))
    options = parser.parse_args()
    t = Checks()
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (("kineto", kineto), ("log", log)):
            path = f"{folder}/{name}.{'json' if name == 'kineto' else 'tacho'}"
            write(path)
            check_reports(t, options, name, path)
            check_formats(t, options, name, path, folder)
    print(f"numbers that come again: {t.good} passed, {t.bad} failed")
    return t.bad != 0


if __name__ == "__main__":
    sys.exit(main())

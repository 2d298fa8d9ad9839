# SPDX-License-Identifier: Apache-2.0
"""--max-size, against the same conversion without it.

usage: check_detail.py --bin BUILD

Each file is written whole and at some sizes as Chrome JSON, Perfetto trace, TensorBoard folder, text
and log.  What is asked of each: no file is larger, none has under 60 % of what it may, the bytes are the
same twice, the account is right; and of those that can be read again, by way of CSV: sums of durations and numbers of events by track,
kind and class are those of the whole, long events are all there, and nothing overlaps that did not.
"""
import argparse
import collections
import concurrent.futures
import csv
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import counts

FILES = ["h100_timesformer.json.gz", "v100_ddp_rank1of2_memory.json.gz",
         "job128_sampled_rank0.json.gz"]
SHARES = [0.92, 0.6, 0.2, 0.06]  # of the whole
LOG_SHARES = [0.92, 0.75, 0.6]  # a log is small but for its names, which stay
LEAST = 0.6  # of the size that was asked for
GENERATED = 20000  # events of few lengths: at one floor nearly all are there, at the next few
READABLE = {"chrome": "json", "log": "tacho", "tensorboard": ""}
FORMATS = {**READABLE, "perfetto": "pftrace", "text": "txt"}
ACCOUNT = re.compile(r"--max-size: (\d+) of (\d+) events are kept, and (\d+) short ones are merged into "
                     r"(\d+); every event of ([\d.e+]+) (ns|us|ms|s) ")
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
TRACK = ("pid", "thread", "device", "context", "stream")


def files_of(path):
    """Of a file or a folder: name and bytes as a viewer unpacks them, without scalars."""
    names = [path] if os.path.isfile(path) else sorted(
        os.path.join(at, n) for at, _, found in os.walk(path) for n in found if "tfevents" not in n)
    for name in names:
        with (gzip.open if name.endswith(".gz") else open)(name, "rb") as f:
            yield os.path.relpath(name, path), f.read()


def rows_of(tool, path):
    text = subprocess.run([tool, path, "-t", "csv", "-q", "--args", "full"], check=True,
                          capture_output=True).stdout.decode(errors="replace")
    for row in csv.DictReader(text.splitlines()):
        args = json.loads(row["args"]) if row["args"] else {}
        if len(row["thread"]) > 12:  # a row with a text for a number: ids are given as they come
            row["thread"] = args.get(".tid", "")
        begin, dur = int(row["time_ns"]), int(row["dur_ns"] or 0)
        yield row, args, begin, dur


def is_span(row):
    return row["kind"] not in ("counter", "alloc", "free") and \
        not (row["kind"] == "mark" and row["class"] != "instant")


def kind_of(row, path):
    """Kind and class; in an XSpace a call is told from an annotation by its correlation id."""
    if os.path.isdir(path) and (row["kind"] == "api" or row["class"] == "user_annotation"):
        return "host", ""
    return row["kind"], row["class"] if row["kind"] == "range" else ""


class Facts:
    """Of one file, read once: sums by track, kind and class; what pools were left with; spans that stand
    for themselves; spans of a thread that end inside another one that began before."""

    def __init__(self, tool, path):
        self.sums = collections.defaultdict(lambda: [0, 0])
        self.pools, self.spans, self.crossings = collections.Counter(), collections.Counter(), 0
        self.stacks = collections.defaultdict(list)
        for row, args, begin, dur in rows_of(tool, path):
            if is_span(row):
                self.put_span(row, args, begin, dur, kind_of(row, path))
            elif row["kind"] in ("alloc", "free"):
                self.pools[row["pid"], row["device"]] += int(row["bytes"]) * (
                    1 if row["kind"] == "alloc" else -1)
        self.sums = dict(self.sums)

    def put_span(self, row, args, begin, dur, kind):
        own = self.sums[tuple(row[k] for k in TRACK) + kind]
        own[0] += args.get("stands_for", 1)
        own[1] += args.get("sum_ns", dur)
        if "stands_for" not in args:
            self.spans[(*kind, row["name"], begin, dur)] += 1
        if row["stream"]:
            return
        stack = self.stacks[row["pid"], row["thread"]]
        while stack and stack[-1] <= begin:
            stack.pop()
        self.crossings += bool(stack) and begin + dur > stack[-1]
        stack.append(begin + dur)

    def long(self, floor_ns):
        return collections.Counter({span: n for span, n in self.spans.items() if span[-1] >= floor_ns})


def digest(path):
    return [(name, hashlib.sha256(data).hexdigest()) for name, data in files_of(path)]


def convert(tool, source, kind, out, *more):
    run = subprocess.run([tool, source, "-t", kind, "-o", out, *more], capture_output=True, text=True)
    return run.returncode, run.stderr


def read_again(path):
    """What a reader takes: of a TensorBoard folder the XSpace."""
    return os.path.join(path, "plugins") if os.path.isdir(path) else path


def check_read(checks, what, whole, sized, floor_ns):
    before, after = whole.sums, sized.sums
    checks.that(before == after, f"{what}: sums by track and kind: "
                f"{[(k, before.get(k), after.get(k)) for k in before | after if before.get(k) != after.get(k)][:3]}")
    checks.that(whole.pools == sized.pools, f"{what}: bytes that pools were left with")
    lost = whole.long(floor_ns) - sized.long(floor_ns)
    checks.that(not lost, f"{what}: long events are gone: {list(lost)[:3]}")
    checks.that(sized.crossings <= whole.crossings, f"{what}: spans cross that did not")


def check_json(checks, what, path):
    for name, data in files_of(path):
        if ".json" not in (name if name != "." else path):
            continue
        try:
            notes = json.loads(data).get("tacho.max_size", "")
            checks.that("merged into" in notes, f"{what}: {name} does not say what was merged")
        except ValueError as why:
            checks.that(False, f"{what}: {name}: {why}")


def check_size(checks, tool, source, kind, whole, facts, folder, share):
    size = int(max(len(data) for _, data in files_of(whole)) * share)
    ending = FORMATS[kind]
    what = f"{os.path.basename(source)} -t {kind} --max-size {size}"
    paths = [os.path.join(folder, f"{n}.{ending}" if ending else n) for n in ("a", "b")]
    for path in paths:
        rc, said = convert(tool, source, kind, path, "--max-size", str(size))
        checks.that(rc == 0, f"{what}: exit {rc}: {said}")
        if rc:
            return
    largest = max(len(data) for _, data in files_of(paths[0]))
    checks.that(largest <= size, f"{what}: {largest} bytes")
    checks.that(largest >= size * LEAST, f"{what}: only {largest} bytes")
    checks.that(digest(paths[0]) == digest(paths[1]), f"{what}: not the same bytes twice")
    found = ACCOUNT.search(said)
    checks.that(found, f"{what}: no account of what was merged: {said}")
    if not found:
        return
    kept, count_in, merged, into = map(int, found.groups()[:4])
    checks.that(0 < into < merged <= count_in and kept + into < count_in, f"{what}: {said}")
    check_json(checks, what, paths[0])
    if kind in READABLE:
        floor_ns = float(found[5]) * UNITS[found[6]] * 1.001
        check_read(checks, what, facts, Facts(tool, read_again(paths[0])), floor_ns)
    else:
        data = b"".join(data for _, data in files_of(paths[0]))
        checks.that(b"stands_for" in data and b" more" in data, f"{what}: says of none")


def check_format(tool, source, kind):
    """What was found of one file in one format; by itself, so that many go side by side."""
    checks = counts.Counts()
    with tempfile.TemporaryDirectory() as folder:
        if source.endswith(".log"):  # a log, of the same
            log = os.path.join(folder, "in.tacho")
            convert(tool, source.removesuffix(".log"), "log", log)
            source = log
        whole = os.path.join(folder, f"whole.{FORMATS[kind]}" if FORMATS[kind] else "whole")
        rc, said = convert(tool, source, kind, whole)
        checks.that(rc == 0, f"{source} -t {kind}: {said}")
        facts = Facts(tool, read_again(whole)) if kind in READABLE else None
        for i, share in enumerate(LOG_SHARES if kind == "log" else SHARES):
            own = os.path.join(folder, str(i))
            os.makedirs(own)
            check_size(checks, tool, source, kind, whole, facts, own, share)
    return checks.passed, checks.failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--files", nargs="*")
    args = parser.parse_args()
    tool = os.path.join(args.bin, "tacho-convert")
    traces = os.environ.get("TACHO_TRACES", "../shared/traces")
    sources = []
    if os.path.isdir(traces):
        sources = [os.path.join(traces, "kineto", name) for name in args.files or FILES]
        sources.append(sources[0] + ".log")
    else:
        print("detail: no sample traces, generated ones alone")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ProcessPoolExecutor() as workers:
        subprocess.run([os.path.join(args.bin, "samples", "generate"), "--kineto", "--out", folder, "--events",
                        str(GENERATED)], check=True, stdout=subprocess.DEVNULL)
        sources += [os.path.join(folder, "r0.json"), os.path.join(folder, "r0.json.log")]
        work = [(tool, source, kind) for source in sources for kind in FORMATS]
        found = list(workers.map(check_format, *zip(*work)))
    passed, failed = map(sum, zip(*found))
    print(f"detail: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

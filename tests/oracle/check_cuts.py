# SPDX-License-Identifier: Apache-2.0
"""Each cut of analyze/DEFINITIONS.md 1 in each format: what is in the output is what was asked for.

usage: check_cuts.py --bin BUILD

A job of two ranks with two GPUs each, made here, goes through every format of tacho-convert with
every cut.  The output is read by a reader of its own, in plain Python (JSON, protobuf field by field,
SQL, CSV, the columns of the text), and held against the events of the job that the definition of the
cut leaves, clipped where it clips.
"""
import argparse
import calendar
import collections
import csv
import fnmatch
import glob
import gzip
import io
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients/xprof"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tool_names  # noqa: E402
from xspace import fields  # noqa: E402

BASE_NS = 1_700_000_000_000_000_000
STEP_NS, STEPS, RANKS, GPUS, SHIFT_NS = 1_000_000, 4, 2, 2, 37_000

Event = collections.namedtuple("Event", "kind name begin end rank device step total")


# ---- the job

def job():
    """Kernels run a step later than they are launched; allocations are instants on the host."""
    for rank in range(RANKS):
        for step in range(STEPS):
            t = BASE_NS + step * STEP_NS + rank * SHIFT_NS
            yield Event("range", f"ProfilerStep#{step}", t, t + 990_000, rank, None, step, None)
            for gpu in range(GPUS):
                for i, (call, work) in enumerate((("cudaLaunchKernel", f"gemm_{gpu}"),
                                                  ("cudaMemcpyAsync", "Memcpy HtoD"),
                                                  ("cudaMemsetAsync", "Memset"))):
                    at = t + gpu * 100_000 + i * 30_000 + 10_000
                    yield Event("range", f"aten::op{i}", at, at + 25_500, rank, None, step, None)
                    yield Event("api", call, at + 1_000, at + 6_250, rank, None, step, None)
                    yield Event(("kernel", "memcpy", "memset")[i], work, at + 900_000,
                                at + 920_125, rank, gpu, step, None)
                at = t + 500_000 + gpu * 1_000
                yield Event("alloc" if step % 2 == 0 else "free", "[memory]", at, at, rank, gpu,
                            step, 512 * (step + 1 + gpu))


def kineto(events, rank):
    """The job's events of a rank as PyTorch writes them; a launch stands before its work."""
    rows, correlation = [], 0
    for e in (e for e in events if e.rank == rank):
        row = {"ph": "X", "name": e.name, "pid": 100 + rank, "tid": 100 + rank,
               "ts": (e.begin - BASE_NS) / 1000, "dur": (e.end - e.begin) / 1000}
        if e.kind == "range":
            row["cat"] = "user_annotation" if "#" in e.name else "cpu_op"
        elif e.kind == "api":
            correlation += 1
            row.update(cat="cuda_runtime", args={"correlation": correlation})
        elif e.kind in ("alloc", "free"):
            del row["dur"]
            row.update(ph="i", cat="cpu_instant_event", s="t",
                       args={"Device Type": 1, "Device Id": e.device, "Addr": 4096,
                             "Bytes": 512 if e.kind == "alloc" else -512,
                             "Total Allocated": e.total, "Total Reserved": 65536})
        else:
            row.update(cat={"kernel": "kernel"}.get(e.kind, f"gpu_{e.kind}"), pid=e.device, tid=7,
                       name={"memcpy": "Memcpy HtoD (Pageable -> Device)",
                             "memset": "Memset (Device)"}.get(e.kind, e.name),
                       args={"device": e.device, "stream": 7, "context": 1,
                             "correlation": correlation, **({} if e.kind == "kernel" else
                                                            {"bytes": 4096})})
        rows.append(row)
    return {"schemaVersion": 1, "host_name": "node", "baseTimeNanoseconds": BASE_NS,
            "distributedInfo": {"rank": rank, "world_size": RANKS}, "traceEvents": rows}


# ---- what a cut leaves, by its definition; times are relative to the first event of all ranks, whether
# each has a file or not

def by_time(from_us, to_us):
    def left(e):
        first, end = BASE_NS + from_us * 1000, BASE_NS + to_us * 1000
        begin, stop = max(e.begin, first), min(e.end, end)
        inside = first <= e.begin < end if e.begin == e.end else begin < stop
        return e._replace(begin=begin, end=stop) if inside else None
    return left


def only(test):
    return lambda e: e if test(e) else None


LATE = 10**9  # us
SECOND = "2023-11-14T22:13:20"  # BASE_NS
CUTS = (
    ((), only(lambda e: True)),
    (("--steps", "1-3"), only(lambda e: 1 <= e.step < 3)),
    (("--from", "1530us"), by_time(1530, LATE)),
    (("--to", "2215us"), by_time(0, 2215)),
    (("--from", "1023us", "--to", "2932us"), by_time(1023, 2932)),
    (("--from", f"{SECOND}.001023Z", "--to", f"{SECOND}.002932Z"), by_time(1023, 2932)),
    (("--ranks", "1"), only(lambda e: e.rank == 1)),
    (("--devices", "1"), only(lambda e: e.device in (1, None))),
    (("--kinds", "kernel,memcpy"), only(lambda e: e.kind in ("kernel", "memcpy"))),
    (("--kinds", "alloc,free,range"), only(lambda e: e.kind in ("alloc", "free", "range"))),
    (("--names", "gemm*"), only(lambda e: fnmatch.fnmatch(e.name, "gemm*"))),
    (("--names", "*m*", "--devices", "0", "--steps", "2"), only(
        lambda e: "m" in e.name and e.device in (0, None) and e.step == 2)),
)


# ---- readers: (name, begin, end) of each event; what a format has no place for is said in FORMATS

def read_chrome(path):
    for name in glob.glob(f"{path}/*.json") + glob.glob(f"{path}/*.json.gz"):
        data = open(name, "rb").read()
        trace = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
        base = int(trace["baseTimeNanoseconds"])
        for e in trace["traceEvents"]:
            begin = base + round(e.get("ts", 0) * 1000)
            if e["ph"] == "X":
                yield e["name"], begin, begin + round(e["dur"] * 1000)
            elif e["ph"] == "i":
                yield e["name"], begin, begin


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            begin = int(row["time_ns"])
            yield row["name"], begin, begin + int(row["dur_ns"])


def read_text(path):
    since = r"# times are ms since (\S+?)(\.\d+)?Z"
    for line in open(path, encoding="utf-8"):
        if line.startswith("#"):
            told = re.match(since, line)
            if told:
                base = calendar.timegm(time.strptime(told[1], "%Y-%m-%dT%H:%M:%S")) * 10**9
                base += round(float(told[2] or 0) * 1e9)
            continue
        found = re.match(r" *(\d+\.\d{6}) +(-|\d+\.\d{6}) +(\w+) +(.*?)  +(\S.*)", line)
        begin = base + round(float(found[1]) * 1e6)
        name = re.split("  +", found[5])[0]
        yield name, begin, begin + round(float(found[2].replace("-", "0")) * 1e6)


def read_sqlite(path):
    db = sqlite3.connect(path)
    yield from db.execute("SELECT name, begin_ns, begin_ns + dur_ns FROM timeline")
    db.close()


OVERVIEW = 1 << 60  # the track above steps, phases and time of GPUs of all ranks


def read_perfetto(path):
    """Slices and instants, a stack of slices for each track, without what is drawn of several events together."""
    names, stacks, tracks = {}, collections.defaultdict(list), {}
    for _, packet in fields(open(path, "rb").read()):
        packet = list(fields(packet))
        one = dict(packet)
        for number, interned in fields(one.get(12, b"")):
            row = dict(fields(interned))
            if number == 2:
                names[one.get(10), row[1]] = row[2].decode()
        if 60 in one:
            row = dict(fields(one[60]))
            tracks[row[1]] = row.get(5)
        if 11 not in one or tracks[dict(fields(one[11]))[11]] == OVERVIEW:
            continue
        event = dict(fields(one[11]))
        kind, track, name = event.get(9), event[11], event.get(23, b"").decode()
        name = name or names.get((one.get(10), event.get(10)), "")
        if kind == 1:
            stacks[track].append((name, one[8]))
        elif kind == 2:
            yield *stacks[track].pop(), one[8]
        elif kind == 3:
            yield name, one[8], one[8]
    assert not any(stacks.values()), "a slice is not closed"


def read_space(path):
    """Lines of work and of threads; memory too."""
    planes = [value for number, value in fields(open(path, "rb").read()) if number == 1]
    origin, rows = 0, []
    for plane in planes:
        names, stats, lines, own = {}, {}, [], []
        for number, value in fields(plane):
            if number == 3:
                lines.append(value)
            elif number in (4, 5):
                row = dict(fields(dict(fields(value))[2]))
                (names if number == 4 else stats)[row[1]] = row[2].decode()
            elif number == 6:
                own.append(dict(fields(value)))
        for stat in own:
            if stats[stat[1]] == "profile_start_time":
                origin = stat[3]
        for line in lines:
            whole = list(fields(line))
            if dict(whole).get(2) == b"Steps":
                continue
            for event in (dict(fields(value)) for number, value in whole if number == 4):
                rows.append((names[event[1]], event[2], event[3]))
    for name, offset, length in rows:
        begin = origin + offset // 1000
        yield name, begin, begin + length // 1000


def read_tensorboard(path):
    """Both files of a rank hold the same events."""
    found = collections.Counter()
    for name in glob.glob(f"{path}/plugins/profile/*/*.xplane.pb"):
        found.update(named(row) for row in read_space(name))
    chrome = collections.Counter(named(row) for row in read_chrome(path))
    assert chrome == found, f"{sum(chrome.values())} in JSON, {sum(found.values())} in XSpaces"
    yield from read_chrome(path)


class Reader:
    def __init__(self, convert):
        self.convert = convert

    def log(self, path):
        subprocess.run([self.convert, "-q", path, "-t", "csv", "-o", f"{path}.csv"], check=True)
        yield from read_csv(f"{path}.csv")

    def bundle(self, path):
        """The manifest, and the logs in it."""
        with zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if n.endswith(".tacho")]
            assert names, archive.namelist()
            for i, name in enumerate(names):
                out = f"{path}.{i}.tacho"
                with open(out, "wb") as file:
                    file.write(archive.read(name))
                yield from self.log(out)


def read_memory(path):
    """Per rank and step what each GPU had in use last, and at most."""
    for name in glob.glob(f"{path}/*.json"):
        rank = int(re.search(r"r(\d+)", os.path.basename(name))[1])
        for row in json.load(open(name, encoding="utf-8")):
            for device, memory in row["memory"].items():
                yield (rank, row["step"], device, memory["bytes_in_use"],
                       memory["peak_bytes_in_use"])


def memory_of(events):
    """The same of the events: one allocation a step and GPU."""
    for e in events:
        if e.kind in ("alloc", "free"):
            yield e.rank, e.step, f"cuda:{e.device}", e.total, e.total


def named(row):
    """Copies and fills have a name of each viewer's own; allocations that of their kind."""
    name = re.sub(r"^(Memcpy|Memset).*", r"\1", row[0])
    return (re.sub(r"^(\[memory\]|Memory(All|Deall)ocation|alloc|free)$", "[memory]", name),
            row[1], row[2])


def formats(convert):
    """Format: the ending of its output, its reader, whether each rank has a file."""
    own = Reader(convert)
    return {
        "chrome": ("/", read_chrome),
        "perfetto": (".pftrace", read_perfetto),
        "tensorboard": ("/", read_tensorboard),
        "csv": (".csv", read_csv),
        "sqlite": (".db", read_sqlite),
        "text": (".txt", read_text),
        "log": (".tacho", own.log),
        "bundle": (".zip", own.bundle),
        "memory": ("/", read_memory),
    }


# ---- the table

class Check:
    def __init__(self, convert):
        self.convert, self.good, self.bad = convert, 0, 0

    def verdict(self, what, good, why=""):
        self.good, self.bad = self.good + bool(good), self.bad + (not good)
        if not good:
            print("not ok -", what, str(why)[:600])

    def row(self, format_, row, cut, events, inputs, work):
        ending, read = row
        want = [left for left in (cut[1](e) for e in events) if left]
        out = f"{work}/out{ending}"
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run([self.convert, *inputs, "-t", format_, "-o", out, *cut[0]],
                              capture_output=True, text=True)
        what = f"{format_} {' '.join(cut[0])}"
        if done.returncode:
            self.verdict(what, False, done.stderr)
            return
        if format_ == "memory":
            want, got = collections.Counter(memory_of(want)), collections.Counter(read(out))
        else:
            want = collections.Counter(named((e.name, e.begin, e.end)) for e in want)
            got = collections.Counter(named(event) for event in read(out))
        self.verdict(what, got == want, f"{sum((want - got).values())} missing, "
                     f"{sum((got - want).values())} more: {list((want - got))[:2]} "
                     f"{list((got - want))[:2]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    check = Check(os.path.abspath(f"{args.bin}/tacho-convert"))
    events = list(job())
    with tempfile.TemporaryDirectory() as work:
        inputs = [f"{work}/rank{rank}.json" for rank in range(RANKS)]
        for rank, path in enumerate(inputs):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(kineto(events, rank), file)
        table = formats(check.convert)
        # parquet: the rows of sqlite once more, which tests/clients/parquet compares; folded: sums,
        # which check_operators.py and tests/clients/flame compare, and so of pprof;
        # snapshot: of snapshots alone, in check_snapshot.py
        unread = set(tool_names.formats(args.bin)) ^ {*table, "parquet", "folded", "pprof"}
        check.verdict("every format has a reader", not unread,
                      f"formats() of tests/oracle/check_cuts.py must have {', '.join(sorted(unread))}")
        for format_, row in table.items():
            if args.only not in format_:
                continue
            for cut in CUTS:
                check.row(format_, row, cut, events, inputs, work)
    print(f"cuts: {check.good} passed, {check.bad} failed")
    return check.bad != 0


if __name__ == "__main__":
    sys.exit(main())

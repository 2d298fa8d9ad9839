# SPDX-License-Identifier: Apache-2.0
"""What comes back of a trace that went through a format, and what every conversion says of itself.

usage: check_round_trips.py --bin BUILD [--all]

  Kineto -> chrome, and Kineto -> log -> chrome: every element of traceEvents with all its members
      and arguments, but for the arrows that a writer draws from correlation ids, which are compared
      as the set of pairs that they join, and for what is in LEFT (with the reason).
  any input -> sqlite, csv, log, bundle: every event, by kind, and time by kernel name.
  each conversion prints events in, events out and why they differ: in - out is what it says.
  every source inside gz, zst, xz, tar, tar.gz, zip, a folder, and standard input gives the same.
"""
import argparse
import collections
import csv
import glob
import gzip
import io
import json
import lzma
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from decimal import ROUND_HALF_UP, Decimal

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz"))
import seeds  # noqa: E402

DERIVED = {"ac2g", "async_cpu_to_gpu", "async", "async_gpu"}  # arrows from correlation ids
SMALL, LARGE = 200_000, 2_500_000
# Names of a stream's row, which Tacho makes from the GPU: a wait that is on no stream (-1), and row 0,
# of which Kineto thinks as a thread of the GPU.
OF_GPU_ROWS = {("thread_name", 0, -1), ("thread_name", 0, 0)}
NOT_LOST = ("flow events that", "rows of tables that are not read", "moved up")


class Tools:
    def __init__(self, folder):
        self.convert, self.analyze = f"{folder}/tacho-convert", f"{folder}/tacho-analyze"
        self.generate = f"{folder}/samples/generate"
        self.good = self.bad = 0

    def verdict(self, what, good, why=""):
        good = bool(good)
        self.good, self.bad = self.good + good, self.bad + (not good)
        print("ok" if good else "not ok", "-", what, "" if good else why)

    def run(self, *words, data=None):
        """The account of one conversion: events in, out, what is said of the difference."""
        done = subprocess.run([self.convert, *words], input=data, capture_output=True)
        said = done.stderr.decode()
        found = re.search(r"(\d+) events in, (\d+) out(?: \((.*?)\))?[;,]", said)
        if done.returncode or not found:
            self.verdict(f"{' '.join(words)}", False, said)
            return 0, 0, done.stdout
        self.last = int(found[1]), int(found[2]), found[3] or ""
        return self.last[0], self.last[1], done.stdout


def load(path):
    data = open(path, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return json.loads(data.decode("utf-8", "replace"), strict=False, parse_float=Decimal)


def ns(value):
    return int((Decimal(value) * 1000).to_integral_value(ROUND_HALF_UP))


def digits(value):
    """Files of 2021 write some ids as text; a number comes back."""
    text = value.removeprefix("stream ") if isinstance(value, str) else ""
    return int(text) if text.isdigit() else value


def freeze(value):
    if isinstance(value, dict):
        return tuple(sorted((k, freeze(v)) for k, v in value.items()))
    if isinstance(value, list):
        return tuple(freeze(v) for v in value)
    if isinstance(value, (Decimal, float)):
        return float(value)
    if isinstance(value, bool):
        return ("bool", value)
    return value


# ---- Kineto -> Kineto

def whole(event):
    """Has what Kineto defines: a letter, and times where it needs them."""
    if not isinstance(event, dict) or not isinstance(event.get("ph"), str):
        return False
    try:
        ns(event["ts"])
        return event["ph"] != "X" or ns(event["dur"]) >= 0
    except (KeyError, ArithmeticError, ValueError, TypeError):
        return False


def elements(trace):
    """Elements as a multiset, arrows as the pairs they join, names of rows as a set."""
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    base = int(trace.get("baseTimeNanoseconds", 0)) if isinstance(trace, dict) else 0
    rest, ends, names = collections.Counter(), collections.defaultdict(set), {}
    for e in events:
        if not isinstance(e, dict):
            continue
        if e.get("ph") == "M":
            if e.get("name") in ("process_name", "thread_name"):
                names[e["name"], digits(e.get("pid")), digits(e.get("tid"))] = freeze(e.get("args"))
            continue
        if not whole(e):
            continue
        if e["ph"] in "sft" and e.get("cat") in DERIVED:
            ends[e["id"]].add(e["ph"])
            continue
        e = dict(e)
        e["ts"] = ns(e["ts"]) + base
        e.update({k: digits(e[k]) for k in ("pid", "tid") if k in e})
        if "dur" in e:
            e["dur"] = ns(e["dur"])
        if e.get("name") == "[memory]":
            e.setdefault("cat", "cpu_instant_event")  # files of 2021 leave it out
        if e.get("args") == {}:
            del e["args"]
        rest[freeze(e)] += 1
    pairs = {i for i, letters in ends.items() if {"s", "f"} <= letters}
    return rest, pairs, {(*key, args) for key, args in names.items()}  # the last one counts


def check_kineto(t, path, work):
    name = os.path.basename(path).removesuffix(".json.gz")
    want, pairs, names = elements(load(path))
    # a process or thread without events has no row that could carry its name
    rows = {(dict(e).get("pid"), dict(e).get("tid")) for e in want}
    pids = {pid for pid, _ in rows}
    ways = ("chrome", "log, then chrome")
    for how in ways[os.path.getsize(path) > SMALL:]:  # the longer way is both
        out = f"{work}/back.json"
        source = path
        if how != "chrome":
            source = f"{work}/way.tacho"
            t.run(path, "-t", "log", "-o", source)
        t.run(source, "-t", "chrome", "--args", "full", "-o", out)
        got, got_pairs, got_names = elements(json.loads(open(out, encoding="utf-8").read(),
                                                        parse_float=Decimal))
        for element in [e for e in got if "call path" in dict(dict(e).get("args") or ())]:
            kept = tuple(a for a in dict(element)["args"] if a[0] != "call path")
            got[tuple((k, kept if k == "args" else v) for k, v in element)] += got.pop(element)
        missing, more = want - got, got - want
        t.verdict(f"{name} -> {how}: {sum(want.values())} elements",
                  not missing and not more,
                  f"{sum(missing.values())} missing, {sum(more.values())} more:\n"
                  f"  {next(iter(missing), '')}\n  {next(iter(more), '')}")
        lost = pairs - got_pairs
        t.verdict(f"{name} -> {how}: {len(pairs)} arrows", not lost,
                  f"{len(lost)} missing, such as {sorted(lost)[:3]}")
        lost = {n for n in names - got_names if n[1] in pids and n[:3] not in OF_GPU_ROWS and
                (n[0] == "process_name" or (n[1], n[2]) in rows)}
        t.verdict(f"{name} -> {how}: {len(names)} names", not lost, str(sorted(lost)[:2]))


def check_phases(t, work):
    """Ranges of categories that no tool knows, and of none, are the same phases in what is written of them."""
    path, at, events = f"{work}/unknown.json", 1000, []
    for step in range(5):
        events.append({"ph": "X", "name": "step", "pid": 7, "tid": 7, "ts": at, "dur": 900, "args": {"number": step}})
        for name, length in (("data", 100), ("forward", 300), ("backward", 400), ("optimizer", 50)):
            events.append({"ph": "X", "cat": "mine", "name": name, "pid": 7, "tid": 7, "ts": at, "dur": length})
            at += length
        at += 150
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"traceEvents": events}, f)
    want = phases_of(t, path)
    t.verdict("phases of unknown categories", {"forward", "backward", "optimizer"} <= set(want), str(want))
    for way in (("chrome",), ("chrome", "chrome"), ("log", "chrome"), ("perfetto", "chrome")):
        source = path
        for number, form in enumerate(way):
            out = f"{work}/unknown{number}.{'json' if form == 'chrome' else form}"
            t.run(source, "-t", form, "-o", out)
            source = out
        got = phases_of(t, source)
        t.verdict(f"phases of unknown categories through {way}", got == want, f"{got}, {want} before")


def phases_of(t, path):
    done = subprocess.run([t.analyze, "-q", path, "-r", "phases", "-f", "json"], capture_output=True, check=True)
    return {p["name"]: p["wall_ns"] for p in json.loads(done.stdout)["ranks"][0]["phases"]}


# ---- tables

def check_tables(t, path, work, what):
    kinds = []
    events_in, _, _ = t.run(path, "-t", "sqlite", "-o", f"{work}/a.db")
    db = sqlite3.connect(f"{work}/a.db")
    kinds.append(("sqlite", dict(db.execute("SELECT kind, count(*) FROM events GROUP BY 1"))))
    times = dict(db.execute("SELECT name, sum(dur_ns) FROM timeline WHERE kind = 'kernel' "
                            "GROUP BY 1"))
    t.verdict(f"{what}: the database is sound",
              db.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    db.close()
    for ending in ("csv", "log", "bundle"):
        out = f"{work}/a.{'tar.zst' if ending == 'bundle' else ending}"
        t.run(path, "-t", ending, "-o", out)
        if ending != "csv":
            t.run(out, "-t", "csv", "-o", f"{work}/b.csv")
            out = f"{work}/b.csv"
        with open(out, newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        kinds.append((ending, dict(collections.Counter(r["kind"] for r in rows))))
        if ending == "csv":
            own = collections.Counter()
            for r in rows:
                if r["kind"] == "kernel":
                    own[r["name"]] += int(r["dur_ns"])
            t.verdict(f"{what}: {len(times)} kernels have the same time in csv and sqlite",
                      dict(own) == times)
            bad = [r for r in rows if r["args"] and not isinstance(json.loads(r["args"]), dict)]
            t.verdict(f"{what}: arguments in csv are JSON objects", not bad)
    t.verdict(f"{what}: {events_in} events in sqlite, csv, log and bundle",
              all(k == kinds[0][1] for _, k in kinds) and
              sum(kinds[0][1].values()) == events_in > 0, str(kinds))
    report = subprocess.run([t.analyze, "-q", path, "-r", "kernels", "-f", "json"],
                            capture_output=True, check=True).stdout
    ours = collections.Counter()
    for rank in json.loads(report)["ranks"]:
        for k in rank["kernels"]:
            ours[k["name"]] += k["total_ns"]
    t.verdict(f"{what}: SQL by kernel name is the report's", dict(ours) == times,
              f"{set(ours.items()) ^ set(times.items())}"[:300])


# ---- accounts

# What Perfetto's format does not keep; CONTRIBUTING, "What an output keeps", says why.
NOT_KEPT = {"inputs", "host", "checks", "losses", "total_bytes", "findings"}  # advice is by recorder


def kept(value):
    """A report without that, and without the order and the numbers of rows that follow from it."""
    if isinstance(value, dict):
        return {key: kept(item) for key, item in value.items() if key not in NOT_KEPT}
    return [kept(item) for item in value] if isinstance(value, list) else value


def check_perfetto(t, path, work, what):
    """Every event of a Perfetto file of ours, and the reports on it."""
    out, rows = f"{work}/back.pftrace", []
    t.run("-t", "perfetto", "-o", out, path)
    for i, source in enumerate((path, out)):
        t.run("-t", "csv", "-o", f"{work}/back{i}.csv", source)
        with open(f"{work}/back{i}.csv", newline="") as text:
            rows.append(sorted(tuple(row[key] for key in ("time_ns", "dur_ns", "kind", "name", "device", "stream",
                                                          "correlation", "bytes", "address", "value", "number"))
                               for row in csv.DictReader(text)))
    t.verdict(f"{what} -> perfetto -> csv: {len(rows[0])} events", rows[0] == rows[1],
              str([pair for pair in zip(*rows) if pair[0] != pair[1]][:3]))
    reports = "summary,steps,phases,kernels,copies,launches,operators,memory,roofline"
    json_ = [json.loads(subprocess.run([t.analyze, "--report", reports, "--format", "json", source],
                                       capture_output=True).stdout) for source in (path, out)]
    a, b = (kept(value) for value in json_)
    t.verdict(f"{what} -> perfetto: reports", a == b,
              str([key for x, y in zip(a["ranks"], b["ranks"]) for key in x if x[key] != y.get(key)]))


def check_account(t, path, format_, work, what):
    # formats of a file for each process, or of several files, make a folder
    out = f"{work}/account-{format_}" + {"bundle": ".zip", "tensorboard": "/", "chrome": "/",
                                         "memory": "/"}.get(format_, "")
    shutil.rmtree(out, ignore_errors=True)
    t.run(path, "-t", format_, "-o", out)
    events_in, events_out, why = t.last
    reasons = [r for r in why.split(", ") if r and not r.split(" ", 1)[1].startswith(NOT_LOST)]
    left = sum(int(r.split(" ", 1)[0]) for r in reasons)
    t.verdict(f"{what} -> {format_}: {events_in} in, {events_out} out" + (f" ({why})" if why else ""),
              events_in > 0 and (events_out >= events_in or events_in - events_out <= left))


# ---- every source in every container

def containers(path, work):
    """(what, arguments, standard input) of the same bytes."""
    data = open(path, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    name = os.path.basename(path).removesuffix(".gz")
    base = f"{work}/box"
    shutil.rmtree(base, ignore_errors=True)
    os.makedirs(f"{base}/folder/deep")
    plain = f"{base}/folder/deep/{name}"
    open(plain, "wb").write(data)
    yield "plain", [plain], None
    yield "folder", [f"{base}/folder"], None
    yield "standard input", ["-"], data
    for ending, packed in (("gz", gzip.compress(data, 1)), ("xz", lzma.compress(data, preset=0)),
                           ("zst", zstd(data))):
        open(f"{base}/{name}.{ending}", "wb").write(packed)
        yield ending, [f"{base}/{name}.{ending}"], None
        yield f"{ending} by standard input", ["-"], packed
    for ending, mode in (("tar", "w"), ("tar.gz", "w:gz"), ("tar.xz", "w:xz")):
        with tarfile.open(f"{base}/a.{ending}", mode) as tar:
            tar.add(plain, f"../../{name}")
        yield ending, [f"{base}/a.{ending}"], None
    yield "tar by standard input", ["-"], open(f"{base}/a.tar", "rb").read()
    open(f"{base}/a.tar.zst", "wb").write(zstd(open(f"{base}/a.tar", "rb").read()))
    yield "tar.zst", [f"{base}/a.tar.zst"], None
    with zipfile.ZipFile(f"{base}/a.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("notes.txt", "no trace")
        z.write(plain, f"run/{name}")
    yield "zip", [f"{base}/a.zip"], None
    yield "zip by standard input", ["-"], open(f"{base}/a.zip", "rb").read()
    with tarfile.open(f"{base}/gz.tar", "w") as tar:
        info = tarfile.TarInfo(f"{name}.gz")
        packed = gzip.compress(data, 1)
        info.size = len(packed)
        tar.addfile(info, io.BytesIO(packed))
    yield "gz in tar", [f"{base}/gz.tar"], None


def zstd(data):
    """One frame of raw blocks (RFC 8878): Python 3.11 has no zstd of its own."""
    out = bytearray(b"\x28\xb5\x2f\xfd" + bytes([0xe0]) + len(data).to_bytes(8, "little"))
    step = 1 << 17
    for at in range(0, max(len(data), 1), step):
        piece = data[at:at + step]
        out += ((len(piece) << 3) | (at + step >= len(data))).to_bytes(3, "little") + piece
    return bytes(out)


def made_inputs(t, work, log):
    """Every format that is read, made here: there are no traces of others everywhere."""
    subprocess.run([t.convert, "-q", log, "-t", "chrome", "-o", f"{work}/made.json"], check=True)
    yield "kineto, made", f"{work}/made.json"
    subprocess.run([t.convert, "-q", log, "-t", "tensorboard", "-o", f"{work}/made-tb"], check=True)
    yield "xplane, made", glob.glob(f"{work}/made-tb/plugins/profile/*/*.xplane.pb")[0]
    seeds.nsys(f"{work}/made.sqlite", "tests/unit/test_source_nsys.c")
    yield "nsys, made", f"{work}/made.sqlite"


def check_containers(t, path, work, what):
    want, done = None, []
    for box, words, data in containers(path, work):
        _, _, out = t.run(*words, "-t", "csv", "-o", f"{work}/c.csv", data=data)
        with open(f"{work}/c.csv", newline="", encoding="utf-8") as f:
            # a name of the file itself stands for the host where the format has none
            rows = [{**r, "host": ""} for r in csv.DictReader(f)]
        want = want or rows
        done.append(box)
        if rows != want or not rows:
            t.verdict(f"{what} in {box}", False, f"{len(rows)} rows, {len(want)} in the plain file")
    t.verdict(f"{what}: {len(want)} events in each of {len(done)} containers", len(done) == 17)


# ---- names that break formats

EVIL = 'a "quoted" \\ back, comma \n line \t tab \x01\x02 bell \x7f \u2028 caf\u00e9 </script> '


def evil_inputs(work):
    raw = EVIL.encode() + b"\xff\xfe\xc3("
    inner = b"".join(b"\\u%04x" % c if c < 32 else b'\\"' if c == 34 else b"\\\\" if c == 92
                     else bytes([c]) for c in raw)
    for what, cat in (("kineto", b'"cpu_op"'), ("chrome", b'"other"')):
        path = f"{work}/{what}-evil.json"
        open(path, "wb").write(
            b'{"traceEvents": [{"ph": "X", "cat": ' + cat + b', "name": "' + inner + b'", '
            b'"pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {"' + inner + b'": "' + inner +
            b'"}}, {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "' +
            inner + b'"}}]}')
        yield what, path
    path = f"{work}/evil.sqlite"
    if os.path.exists(path):
        os.unlink(path)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE NVTX_EVENTS(start, end, eventType, text, globalTid, jsonText)")
    db.execute("INSERT INTO NVTX_EVENTS VALUES(1000, 2000, 59, CAST(? AS TEXT), 16777217, "
               "CAST(? AS TEXT))", (raw, raw))
    db.commit()
    db.close()
    yield "nsys", path


def check_evil(t, work):
    for what, path in evil_inputs(work):
        for format_ in ("chrome", "csv", "sqlite", "log"):
            t.run(path, "-t", format_, "-o", f"{work}/evil.out", "--args", "full")
            data = open(f"{work}/evil.out", "rb").read()
            if format_ == "chrome":
                found = json.loads(data.decode("utf-8", "strict"))["traceEvents"]
                names = [e["name"] for e in found if e["ph"] == "X"]
                t.verdict(f"{what} with an evil name: chrome JSON is strict UTF-8 JSON",
                          len(names) == 1 and names[0].startswith(EVIL), str(names))
            elif format_ == "csv":
                rows = list(csv.DictReader(io.StringIO(data.decode("utf-8", "strict"),
                                                       newline="")))
                t.verdict(f"{what} with an evil name: csv", len(rows) == 1 and
                          rows[0]["name"].startswith(EVIL) and
                          (not rows[0]["args"] or json.loads(rows[0]["args"])), str(rows))
        for report in ("json", "csv"):
            out = subprocess.run([t.analyze, "-q", path, "-f", report, "-r", "phases"],
                                 capture_output=True)
            text = out.stdout.decode("utf-8", "strict")
            if report == "json":
                json.loads(text)
            t.verdict(f"{what} with an evil name: report as {report}",
                      out.returncode == 0 and bool(text), out.stderr.decode())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--all", action="store_true", help="the largest file too (a minute)")
    args = parser.parse_args()
    traces = os.environ.get("TACHO_TRACES", "../shared/traces")
    t = Tools(args.bin)
    help_ = subprocess.run([t.convert, "--help"], capture_output=True, text=True).stdout
    # check_snapshot has the inputs that can become a snapshot
    formats = set(re.findall(r"^  (\w+) ", help_[help_.index("Formats for -t"):
                                             help_.index("Formats of an INPUT")], re.M)) - {"snapshot"}
    kineto = sorted(glob.glob(f"{traces}/kineto/*.json.gz"))
    if not kineto:
        print(f"no traces at {traces}: those of other people are skipped")
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([t.generate, "--out", f"{work}/made", "--events", "3000"], check=True)
        inputs = [("log", glob.glob(f"{work}/made/*.tacho")[0])]
        open(f"{work}/chrome.json", "w").write(json.dumps({"traceEvents": [
            {"ph": ph, "name": f"n{i % 7}", "pid": 1 + i % 2, "tid": i % 3, "ts": i * 1.25,
             **({"dur": 1.125} if ph == "X" else {}), "args": {"i": i}}
            for i in range(300) for ph in ("X", "B", "E", "C", "i")]}))
        inputs.append(("chrome", f"{work}/chrome.json"))
        for path in kineto:
            if args.all or os.path.getsize(path) < LARGE:
                check_kineto(t, path, work)
        for what, pattern in (("kineto", "kineto/job128_sampled_rank0.json.gz"),
                              ("nsys", "nsys/h100_2gpu_1s.sqlite"),
                              ("xplane", "xplane/jax_te_mi300.xplane.pb")):
            if os.path.exists(f"{traces}/{pattern}"):
                inputs.append((what, f"{traces}/{pattern}"))
        for what, path in made_inputs(t, work, inputs[0][1]):
            check_containers(t, path, work, what)
        for what, path in inputs:
            check_tables(t, path, work, what)
            for format_ in formats:
                check_account(t, path, format_, work, what)
            check_containers(t, path, work, what)
        for name in ("a100_ddp_rank0of2_nccl_args", "h100_qwen_0.5b_inference", "event_sync_3_streams",
                     "v100_resnet50_slow_loader_2021", "v100_cuda_graphs_rank1of2"):
            if os.path.exists(f"{traces}/kineto/{name}.json.gz"):
                check_perfetto(t, f"{traces}/kineto/{name}.json.gz", work, name)
        check_evil(t, work)
        check_phases(t, work)
    print(f"round trips: {t.good} passed, {t.bad} failed")
    return t.bad != 0


if __name__ == "__main__":
    sys.exit(main())

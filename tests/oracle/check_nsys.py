# SPDX-License-Identifier: Apache-2.0
"""An Nsight Systems export, asked in plain SQL, against what Tacho makes of it.

usage: check_nsys.py --bin BUILD

The oracle is the export itself and Python's sqlite3: kernels, copies, fills, calls, waits and NVTX
ranges by name with their counts, times and bytes.  Tacho's side is its own database (-t sqlite), and
for kernels and copies the report as well.
"""
import argparse
import collections
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
CUPTI = "CUPTI_ACTIVITY_KIND_"
SUMS = {  # what: (SQL on the export, SQL on Tacho's database)
    "kernels by name": (
        f"SELECT s.value, count(*), sum(end - start), min(start), max(end) FROM {CUPTI}KERNEL k "
        "JOIN StringIds s ON s.id = k.demangledName GROUP BY 1",
        "SELECT name, count(*), sum(dur_ns), min(begin_ns), max(begin_ns + dur_ns) FROM timeline "
        "WHERE kind = 'kernel' GROUP BY 1"),
    "kernels by process, GPU, stream and grid": (
        f"SELECT globalPid / 16777216 % 16777216, deviceId, streamId, gridX, count(*) "
        f"FROM {CUPTI}KERNEL GROUP BY 1, 2, 3, 4",
        "SELECT pid, device, stream, json_extract(shape_args, '$.grid_x'), count(*) FROM timeline "
        "WHERE kind = 'kernel' GROUP BY 1, 2, 3, 4"),
    "copies by direction": (
        f"SELECT copyKind, count(*), sum(end - start), sum(bytes) FROM {CUPTI}MEMCPY GROUP BY 1",
        "SELECT class, count(*), sum(dur_ns), sum(bytes) FROM events WHERE kind = 'memcpy' "
        "GROUP BY 1"),
    "fills": (
        f"SELECT count(*), sum(end - start), sum(bytes) FROM {CUPTI}MEMSET",
        "SELECT count(*), sum(dur_ns), sum(bytes) FROM events WHERE kind = 'memset'"),
    "calls by name and result": (
        f"SELECT s.value, returnValue, count(*), sum(end - start), sum(correlationId) "
        f"FROM {CUPTI}RUNTIME r JOIN StringIds s ON s.id = r.nameId GROUP BY 1, 2",
        "SELECT name, result, count(*), sum(dur_ns), sum(correlation) FROM timeline "
        "WHERE kind = 'api' GROUP BY 1, 2"),
    "calls by thread": (
        f"SELECT globalTid / 16777216 % 16777216, globalTid % 16777216, count(*) "
        f"FROM {CUPTI}RUNTIME GROUP BY 1, 2",
        "SELECT pid, thread, count(*) FROM timeline WHERE kind = 'api' GROUP BY 1, 2"),
    "kernels joined to their calls": (
        f"SELECT s.value, count(*), sum(k.start - r.start) FROM {CUPTI}KERNEL k "
        f"JOIN {CUPTI}RUNTIME r ON r.correlationId = k.correlationId AND "
        "r.globalTid / 16777216 = k.globalPid / 16777216 "
        "JOIN StringIds s ON s.id = r.nameId GROUP BY 1",
        "SELECT a.name, count(*), sum(k.begin_ns - a.begin_ns) FROM timeline k JOIN timeline a "
        "ON a.correlation = k.correlation AND a.pid = k.pid AND a.kind = 'api' "
        "WHERE k.kind = 'kernel' GROUP BY 1"),
    "waits by type": (
        f"SELECT syncType, count(*), sum(end - start) FROM {CUPTI}SYNCHRONIZATION GROUP BY 1",
        "SELECT class, count(*), sum(dur_ns) FROM events WHERE kind = 'sync' GROUP BY 1"),
    "overhead": (
        f"SELECT count(*), sum(end - start) FROM {CUPTI}OVERHEAD",
        "SELECT count(*), sum(dur_ns) FROM events WHERE kind = 'overhead'"),
    "NVTX ranges by text": (
        # PyTorch adds the number of the call to the name; what it calls an operator is one.
        "SELECT CASE WHEN instr(name, ', seq = ') THEN substr(name, 1, instr(name, ', seq = ') - 1) "
        "WHEN instr(name, ', op_id = ') THEN substr(name, 1, instr(name, ', op_id = ') - 1) "
        "ELSE name END, count(*), sum(length) FROM (SELECT coalesce(text, (SELECT value FROM "
        "StringIds WHERE id = textId)) AS name, end - start AS length FROM NVTX_EVENTS "
        "WHERE eventType IN (59, 60)) GROUP BY 1",
        "SELECT name, count(*), sum(dur_ns) FROM timeline WHERE class = 'nvtx' OR class = 'cpu_op' "
        "GROUP BY 1"),
    "threads": (
        "SELECT DISTINCT t.globalTid % 16777216, s.value FROM ThreadNames t JOIN StringIds s "
        f"ON s.id = t.nameId WHERE t.globalTid IN (SELECT globalTid FROM {CUPTI}RUNTIME)",
        "SELECT DISTINCT k.number, n.text FROM tracks k JOIN names n ON n.id = k.name "
        "WHERE k.home = 'thread' AND k.id IN (SELECT track FROM events WHERE kind = 'api')"),
}
SYNCS = {1: "event", 2: "stream_wait", 3: "stream", 4: "context"}


def rows(db, sql, words=None, base=0):
    """Rows as a sorted list; numbers of enums as Tacho's words, times from the epoch."""
    got = []
    for row in db.execute(sql):
        row = list(row)
        if words:
            row[0] = words.get(row[0], row[0])
        if base:
            row[3:5] = [row[3] + base, row[4] + base]
        got.append(tuple(row))
    return sorted(got, key=repr)


def verdict(what, good, why=""):
    print("ok" if good else "not ok", "-", what, why if not good else "")
    return good


def check_sums(export, made):
    utc, = export.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
    start, = export.execute("SELECT startTime FROM ANALYSIS_DETAILS").fetchone()
    words = {"copies by direction": COPIES, "waits by type": SYNCS}
    for what, (theirs, ours) in SUMS.items():
        base = utc - start if what == "kernels by name" else 0
        want, got = rows(export, theirs, words.get(what), base), rows(made, ours)
        yield verdict(f"{what}: {len(want)} rows", want == got and len(want) > 0,
                      f"{want[:2]} but {got[:2]}")


def check_report(tool, path, export):
    out = subprocess.run([tool, "-q", path, "-r", "kernels,copies", "-f", "json"], check=True,
                         capture_output=True).stdout
    kernels, copies = collections.Counter(), collections.Counter()
    for rank in json.loads(out)["ranks"]:
        for k in rank["kernels"]:
            kernels[k["name"], "n"] += k["count"]
            kernels[k["name"], "ns"] += k["total_ns"]
        for c in rank["copies"]:
            copies[c["direction"], "n"] += c["count"]
            copies[c["direction"], "ns"] += c["total_ns"]
            copies[c["direction"], "bytes"] += c["bytes"]
    want = collections.Counter()
    for name, n, ns, *_ in export.execute(SUMS["kernels by name"][0]):
        want[name, "n"], want[name, "ns"] = n, ns
    yield verdict("the report's kernels", kernels == want and len(want) > 0)
    want = collections.Counter()
    for kind, n, ns, size in export.execute(SUMS["copies by direction"][0]):
        for key, value in (("n", n), ("ns", ns), ("bytes", size)):
            want[COPIES[kind], key] = value
    got = {k: v for k, v in copies.items() if k[0] in COPIES.values()}
    yield verdict("the report's copies", got == dict(want), f"{got} but {dict(want)}")


def projected(export):
    """What nvtx_gpu_proj_sum of nsys is defined as, in each process: of each range the time from the
    begin of the first work that a call in it began to the end of the last. By name: ranges, their
    lengths, work, its length, that time; and all work by the names around its call."""
    calls, ranges = collections.defaultdict(list), collections.defaultdict(list)
    works = collections.defaultdict(list)
    for kind in ("KERNEL", "MEMCPY", "MEMSET"):
        for pid, correlation, begin, end in export.execute(
                f"SELECT globalPid >> 24, correlationId, start, end FROM {CUPTI}{kind}"):
            works[pid, correlation].append((begin, end))
    for thread, correlation, begin in export.execute(
            f"SELECT globalTid, correlationId, start FROM {CUPTI}RUNTIME ORDER BY start, end DESC"):
        if (thread >> 24, correlation) in works:    # of a call in a call the outer one
            calls[thread].append((begin, works.pop((thread >> 24, correlation))))
    for thread, begin, end, name in export.execute(
            "SELECT globalTid, start, end, text FROM NVTX_EVENTS WHERE eventType = 59 AND end > start"):
        ranges[thread].append((begin, end, name.split(", op_id")[0].split(", seq")[0]))
    rows, paths = collections.defaultdict(lambda: [0] * 5), collections.Counter()
    for thread, all_ranges in ranges.items():
        inside = [[] for _ in all_ranges]
        for begin, pieces in calls[thread]:
            around = [place for place, one in enumerate(all_ranges) if one[0] <= begin < one[1]]
            around.sort(key=lambda place: (all_ranges[place][0], -all_ranges[place][1]))
            names = tuple(all_ranges[place][2] for place in around)
            paths[thread >> 24, names] += sum(end - start for start, end in pieces)
            for place in around:
                inside[place] += pieces
        for (begin, end, name), pieces in zip(all_ranges, inside):
            row = rows[thread >> 24, name]
            row[0], row[1] = row[0] + 1, row[1] + end - begin
            row[2], row[3] = row[2] + len(pieces), row[3] + sum(last - first for first, last in pieces)
            row[4] += max(last for _, last in pieces) - min(first for first, _ in pieces) if pieces else 0
    return rows, paths


def check_ranges(tool, path, export):
    out = subprocess.run([tool, "-q", path, "-r", "nvtx,stacks", "-f", "json"], check=True,
                         capture_output=True).stdout
    rows, paths = projected(export)
    wanted, found, stacks, launched = set(), set(), collections.Counter(), collections.Counter()
    for (_, name), row in rows.items():
        if "::" not in name or not name.split("::")[0].islower():   # those of PyTorch's are operators
            wanted.add((name, *row))
    for rank in json.loads(out)["ranks"]:
        nodes = {row["node"]: row for row in rank["paths"]}
        for row in rank["nvtx"]:
            found.add((row["name"], row["calls"], row["host_ns"], row["works"], row["gpu_ns"],
                       row["projected_ns"]))
        for row in rank["paths"]:
            names, at = [], nodes.get(row["above"])
            while at and at["above"] is not None:
                names.insert(0, at["name"])
                at = nodes[at["above"]]
            if row["class"] == "gpu_work":
                stacks[tuple(names)] += row["gpu_ns"]
    for (_, names), length in paths.items():
        launched[names] += length
    yield verdict(f"projection of {len(wanted)} NVTX ranges", wanted == found and len(wanted) > 50,
                  f"{sorted(wanted - found)[:2]} but {sorted(found - wanted)[:2]}")
    good = [names for names, length in launched.items() if names and stacks[names] == length]
    yield verdict(f"GPU time below {len(launched)} chains of NVTX ranges",
                  len(good) == len([names for names in launched if names]) > 20,
                  str([(n, v, stacks[n]) for n, v in launched.items() if stacks[n] != v][:2]))
    whole = sum(export.execute(f"SELECT sum(end - start) FROM {CUPTI}{kind}").fetchone()[0]
                for kind in ("KERNEL", "MEMCPY", "MEMSET"))
    yield verdict("GPU time of all paths", sum(stacks.values()) == whole, f"{sum(stacks.values())}, not {whole}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    args = parser.parse_args()
    path = os.path.join(os.environ.get("TACHO_TRACES", "../shared/traces"), "nsys",
                        "h100_2gpu_1s.sqlite")
    if not os.path.exists(path):
        print(f"no export at {path}: skipped\nnsys: 0 passed, 0 failed")
        return 0
    export = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([f"{args.bin}/tacho-convert", "-q", path, "-t", "sqlite", "-o",
                        f"{work}/made.db"], check=True)
        made = sqlite3.connect(f"{work}/made.db")
        results = list(check_sums(export, made))
        made.close()
    results += check_report(f"{args.bin}/tacho-analyze", path, export)
    results += check_ranges(f"{args.bin}/tacho-analyze", path, export)
    print(f"nsys: {sum(results)} passed, {results.count(False)} failed")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())

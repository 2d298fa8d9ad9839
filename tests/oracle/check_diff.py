# SPDX-License-Identifier: Apache-2.0
"""--diff: exit codes, sums to the nanosecond, and planted changes where they were planted.

usage: check_diff.py --bin BUILD

Small Kineto files whose every nanosecond is known; what changes between A and B has to stand first,
under its own class, phase, cause and name.
"""
import argparse
import csv
import html.parser
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

import counts

STEPS = 40


class Check(counts.Counts):
    """The tool, and what held of it."""

    def __init__(self, tool):
        super().__init__()
        self.tool = tool

    def diff(self, a, b, *options):
        """Exit code, the JSON, standard error."""
        done = subprocess.run([self.tool, "--diff", "-q", "-f", "json", *options, a, b],
                              capture_output=True, text=True)
        got = json.loads(done.stdout) if done.stdout else None
        return done.returncode, got, done.stderr


class Balanced(html.parser.HTMLParser):
    """What was opened and not closed."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise ValueError(f"</{tag}>")


def job_write(path, seed, rank=0, steps=STEPS, noise=0.01, epoch=None, **change):
    """Steps of data, forward, backward: a kernel, a copy and a collective each; times in us."""
    rng = random.Random(seed)
    events, at, ids = [], 1000, 0

    def put(cat, name, ts, dur, tid, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 0 if tid == 7 else 9,
                       "tid": tid, "ts": ts, "dur": dur, "args": args})

    def work(cat, name, ts, dur):
        nonlocal ids
        ids += 1
        call = "cudaMemcpyAsync" if cat == "gpu_memcpy" else "cudaLaunchKernel"
        put("cuda_runtime", call, ts, 5, 9, correlation=ids)
        put(cat, name, ts + 10, dur, 7, device=0, stream=7, correlation=ids)
        return ts + 10 + dur

    for step in range(steps):
        begin = at
        wobble = lambda us: max(1, round(us * (1 + noise * rng.gauss(0, 1))))
        data = wobble(change.get("data", 200))
        put("user_annotation", "enumerate(DataLoader)#_next", at, data, 9)
        at += data
        at = work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at, wobble(60))
        put("user_annotation", "forward", at, wobble(300), 9)
        at = work("kernel", "gemm_forward", at, wobble(change.get("gemm", 800)))
        put("user_annotation", "backward", at, 1000, 9)
        at = work("kernel", "gemm_backward", at, wobble(900))
        at = work("kernel", "ncclDevKernel_AllReduce", at, wobble(change.get("comm", 150)))
        put("user_annotation", f"ProfilerStep#{step % (epoch or steps)}", begin, at - begin, 9)
    with open(path, "w", encoding="ascii") as f:
        json.dump({"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": events}, f)
    return path


def adds_up(check, got, what):
    """Parts make the mean step, owners their part."""
    for side in ("a", "b"):
        total = sum(p[side + "_ns"] for p in got["parts"])
        check.that(total == got[side]["mean_ns"], f"{what}: parts of {side}")
        check.that(sum(p[side + "_ns"] for p in got["parts"] if p["class"] != "outside_steps") ==
                   got[side]["window_ns"], f"{what}: window of {side}")
    for part in got["parts"]:
        check.that(part["b_ns"] - part["a_ns"] == part["difference_ns"], f"{what}: {part}")
        if part["phase"] is None:
            continue
        mine = [o for o in got["owners"]
                if (o["class"], o["phase"]) == (part["class"], part["phase"])]
        check.that(sum(o["difference_ns"] for o in mine) == part["difference_ns"] and
                   sum(o["a_ns"] for o in mine) == part["a_ns"], f"{what}: owners of {part}")


def same_as_cells(check, paths, side, what):
    """What the reports say of the same file, divided: classes, and not busy by cause."""
    out = subprocess.run([check.tool, "-q", "-f", "json", "-r", "summary,phases", *paths],
                         capture_output=True, text=True, check=True).stdout
    ranks = json.loads(out)["ranks"]
    gpus = [g for r in ranks for g in r["gpus"]]
    share = Fraction(len(ranks), len(gpus) * sum(r["window_steps"] for r in ranks))
    want = {}
    for gpu in gpus:
        for key in ("compute", "exposed_comm", "exposed_copy", "idle", "lead", "tail"):
            want[key] = want.get(key, 0) + gpu[key + "_ns"] * share
    for key, ns in want.items():
        mine = [p for p in side[1] if p["class"] == key]
        got = sum(p[side[0] + "_ns"] for p in mine)
        check.that(abs(got - ns) <= len(mine) + len(side[2]), f"{what}: {key} {got} {float(ns)}")
    cells = {}
    for rank in ranks:
        for cell in rank["cells"]:
            for key in ("compute", "exposed_comm", "exposed_copy"):
                at = (key, cell["phase"])
                cells[at] = cells.get(at, 0) + cell[key + "_ns"] * share
    for (key, phase), ns in cells.items():
        got = sum(p[side[0] + "_ns"] for p in side[1]
                  if (p["class"], p["phase"]) == (key, phase))
        check.that(abs(got - ns) <= len(side[2]) + 1, f"{what}: {key} of {phase}")


def planted(check, folder):
    """One change each; the verdict, its exit code, and the first row."""
    a = job_write(os.path.join(folder, "a.json"), 1)
    again = job_write(os.path.join(folder, "again.json"), 2)
    rc, got, said = check.diff(a, a)
    check.that(rc == 0 and got["verdict"] == "no_difference" and got["difference_ns"] == 0 and
               all(p["difference_ns"] == 0 for p in got["parts"]), f"A/A: {rc} {said}")
    rc, got, said = check.diff(a, again)
    check.that(rc == 0 and got["verdict"] == "no_difference", f"A/A of other seeds: {rc} {said}")
    same_as_cells(check, [a], ("a", got["parts"], got["owners"]), "cells")
    epochs = job_write(os.path.join(folder, "epochs.json"), 1, epoch=STEPS // 4)
    _, got, _ = check.diff(a, epochs)
    check.that(len({json.dumps({**got[side], "path": None}) for side in ("a", "b")}) == 1,
               f"steps that are numbered anew in each epoch: {got['a']} {got['b']}")
    for name, change, first, owner in (
            ("gemm", {"gemm": 900}, ("compute", "forward", None), "gemm_forward"),
            ("data", {"data": 300}, ("idle", None, "data"), None),
            ("comm", {"comm": 300}, ("exposed_comm", "backward", None), "ncclDevKernel_AllReduce")):
        b = job_write(os.path.join(folder, name + ".json"), 3, **change)
        rc, got, said = check.diff(a, b)
        check.that(rc == 3 and got["verdict"] == "slower" and "slower" in said,
                   f"{name}: {rc} {said}")
        part = got["parts"][0]
        check.that((part["class"], part["phase"], part["cause"]) == first, f"{name}: first {part}")
        check.that(abs(part["difference_ns"] - 1000 * (change[name] - {"gemm": 800, "data": 200,
                   "comm": 150}[name])) < 15000, f"{name}: by {part['difference_ns']}")
        if owner:
            check.that(got["owners"][0]["name"] == owner, f"{name}: owner {got['owners'][0]}")
        adds_up(check, got, name)
        rc, got, _ = check.diff(a, b, "--fail-over", "50%")
        check.that(rc == 0 and got["verdict"] == "slower_below_fail_over", f"{name}: 50 %: {rc}")
        rc, got, _ = check.diff(b, a)
        check.that(rc == 0 and got["verdict"] == "faster", f"{name}: faster: {rc}")


def series_write(path, seed, slower=0.0, steps=200, variation=0.03, correlation=0.3):
    """Steps of one kernel each, whose walls are a series of that variation and correlation."""
    rng = random.Random(seed)
    z, at, events = rng.gauss(0, 1), 1000, []
    for step in range(steps):
        wall = round(20000 * (1 + slower) * (1 + variation * z))
        z = correlation * z + (1 - correlation ** 2) ** 0.5 * rng.gauss(0, 1)
        args = {"device": 0, "stream": 7, "correlation": step + 1}
        events += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 9,
                    "tid": 9, "ts": at, "dur": wall},
                   {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9,
                    "tid": 9, "ts": at + 10, "dur": 5, "args": {"correlation": step + 1}},
                   {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 20,
                    "dur": wall - 40, "args": args}]
        at += wall
    with open(path, "w", encoding="ascii") as f:
        json.dump({"traceEvents": events}, f)
    return path


def chance(check, folder):
    """DEFINITIONS 8 from end to end, on a few seeds; tests/unit/test_diff.c has a hundred."""
    found = alarms = 0
    for seed in range(6):
        a = series_write(os.path.join(folder, "sa.json"), 2 * seed + 100)
        b = series_write(os.path.join(folder, "sb.json"), 2 * seed + 101)
        c = series_write(os.path.join(folder, "sc.json"), 2 * seed + 101, 0.02)
        alarms += check.diff(a, b, "--fail-over", "1%")[0] == 3
        rc, got, _ = check.diff(a, c, "--fail-over", "1%")
        found += rc == 3
        check.that(0.5 < got["a"]["effective_steps"] / 200 * (1 + got["a"]["correlation"]) /
                   (1 - got["a"]["correlation"]) < 1.5, "effective steps")
        adds_up(check, got, f"seed {seed}")
    check.that(found == 6 and alarms == 0, f"planted {found} of 6, alarms {alarms}")


def cannot(check, folder):
    """Too few steps, and steps that vary too much."""
    a = job_write(os.path.join(folder, "one.json"), 1, steps=1)
    b = job_write(os.path.join(folder, "wild.json"), 2, steps=6, noise=0.4)
    c = job_write(os.path.join(folder, "wild2.json"), 3, steps=6, noise=0.4)
    rc, got, _ = check.diff(a, b)
    check.that(rc == 0 and got["verdict"] == "cannot_tell" and "too few" in got["sentence"] and
               got["interval_ns"] is None, f"one step: {rc}")
    adds_up(check, got, "one step")
    rc, got, _ = check.diff(b, c, "--fail-over", "1%")
    check.that(rc == 0 and got["verdict"] == "cannot_tell" and got["needed_steps"] > 50 and
               "it needs about" in got["sentence"], f"wild: {rc} {got['sentence']}")


def few(check, folder):
    """Three steps: what every one of them takes longer is found, what one alone takes is named."""
    a = series_write(os.path.join(folder, "few_a.json"), 7, steps=3, variation=0.1)
    b = series_write(os.path.join(folder, "few_b.json"), 7, 0.043, steps=3, variation=0.1)
    rc, got, _ = check.diff(a, b)
    check.that(rc == 3 and got["verdict"] == "slower" and got["is_paired"] and
               "step by step" in got["sentence"], f"three steps: {rc} {got['sentence']}")
    check.that("compute in" in got["reason"] and "gemm" in got["reason"], got["reason"])
    check.that([s["b_ns"] - s["a_ns"] for s in got["steps"]] ==
               [s["difference_ns"] for s in got["steps"]] and len(got["steps"]) == 3 and
               not any(s["is_apart"] for s in got["steps"]), f"their steps: {got['steps']}")
    mean = sum(s["difference_ns"] for s in got["steps"]) / 3
    check.that(abs(mean - got["difference_ns"]) < 1, "pairs have the difference of the means")
    c = series_write(os.path.join(folder, "few_c.json"), 70, steps=3, variation=0.05)
    rc, got, _ = check.diff(a, c)
    check.that(rc == 0 and not got["is_paired"], f"other seeds: {rc} {got['sentence']}")
    with open(a, encoding="ascii") as f:
        rows = json.load(f)
    for row in rows["traceEvents"]:     # the host stops for 40 ms in step 1
        stop = 1000 + rows["traceEvents"][0]["dur"] + 5000
        if row["ts"] > stop:
            row["ts"] += 40000
        elif row["ts"] + row["dur"] > stop:
            row["dur"] += 40000
    with open(c, "w", encoding="ascii") as f:
        json.dump(rows, f)
    _, got, _ = check.diff(a, c)
    check.that([s["step"] for s in got["steps"] if s["is_apart"]] == [1] and
               "Step 1 changed unlike the others: +40.000 ms" in got["reason"], f"one step: {got['reason']}")


def unlike(check, folder):
    """Another GPU and other options are said before the times; what did not change is one row."""
    a, b = os.path.join(folder, "a.json"), os.path.join(folder, "other.json")
    with open(a, encoding="ascii") as f:
        rows = json.load(f)
    check.that(not check.diff(a, a)[1]["unlike"], "A/A is alike")
    at = next(row for row in rows["traceEvents"] if row["name"] == "forward")
    rows["traceEvents"].append({**at, "cat": "python_function", "name": "train.py(3): step"})
    at["args"] = {**at.get("args", {}), "Input Dims": [[4, 4]], "Input type": ["float"]}
    rows["deviceProperties"] = [{"id": 0, "name": "NVIDIA A100"}]
    with open(b, "w", encoding="ascii") as f:
        json.dump(rows, f)
    _, got, _ = check.diff(a, b)
    want = [("GPUs", "", "NVIDIA A100"), ("recording options", "", "Python frames, shapes")]
    check.that([(u["what"], u["a"], u["b"]) for u in got["unlike"]] == want, str(got["unlike"]))
    page = subprocess.run([check.tool, "--diff", "-q", a, b], capture_output=True, text=True).stdout
    check.that(page.find("not the same GPUs") in range(1, page.find("WHERE IT WENT")),
               "unlike GPUs come first")
    check.that(" unchanged" in page and "\ncompute" not in page, f"unchanged rows: {page}")


def places(check, folder):
    """Where the GPU waits longer: the place is in the reason."""
    a, b = (os.path.join(folder, name) for name in ("a.json", "data.json"))
    _, got, _ = check.diff(a, b)
    first = got["places"][0]
    check.that((first["cause"], first["range"]) == ("data", "enumerate(DataLoader)#_next") and
               "idle by data" in got["reason"] and "enumerate(DataLoader)#_next" in got["reason"],
               f"place: {first} {got['reason']}")
    for side in ("a", "b"):
        waits = sum(p[side + "_ns"] for p in got["parts"] if p["class"] in ("idle", "lead", "tail"))
        check.that(abs(sum(p[side + "_ns"] for p in got["places"]) - waits) <=
                   len(got["places"]) + len(got["parts"]), "places add up to what is not busy")


def folders(check, folder):
    """Several ranks a side, not as many; other formats; the width of the page."""
    for side, ranks, gemm in (("left", 4, 800), ("right", 3, 880)):
        os.mkdir(os.path.join(folder, side))
        for rank in range(ranks):
            job_write(os.path.join(folder, side, f"rank{rank}.json"), 10 + rank, rank, gemm=gemm)
    left, right = os.path.join(folder, "left"), os.path.join(folder, "right")
    rc, got, said = check.diff(left, right)
    check.that(rc == 3 and got["a"]["ranks"] == 4 and got["b"]["ranks"] == 3, f"ranks: {said}")
    check.that(got["parts"][0]["phase"] == "forward" and got["owners"][0]["name"] == "gemm_forward",
               "ranks: first row")
    adds_up(check, got, "ranks")
    same_as_cells(check, [left], ("a", got["parts"], got["owners"]), "ranks")
    run = lambda *more: subprocess.run([check.tool, "--diff", "-q", left, right, *more],
                                       capture_output=True, text=True)
    page = run()
    check.that(page.returncode == 3 and max(map(len, page.stdout.splitlines())) <= 100, "page")
    for word in ("WHERE IT WENT", "slower by", "gemm_forward", "mean step"):
        check.that(word in page.stdout, f"page: {word}")
    rows = list(csv.DictReader(io.StringIO(run("-f", "csv").stdout)))
    parts = [r for r in rows if r["what"] == "part"]
    check.that(sum(int(r["a_ns"]) for r in parts) == got["a"]["mean_ns"] and
               len(rows) == len(got["parts"]) + len(got["owners"]) + len(got["edits"]) +
               (got["unexplained_ns"] is not None), "csv")
    check.that([(r["name"], int(r["difference_ns"])) for r in rows if r["what"] == "edit"] ==
               [(f"{r['edit']} of {r['of']}", r["difference_ns"]) for r in got["edits"]],
               "csv of edits")
    check.that("| compute | forward |" in run("-f", "md").stdout, "md")
    page = run("-f", "html").stdout
    parser = Balanced()
    parser.feed(page)
    check.that(not parser.open and "gemm_forward" in page and "slower by" in page and
               "http:" not in page, f"html: {parser.open}")


def wrong(check, folder):
    """Wrong use, bad inputs."""
    a = os.path.join(folder, "a.json")
    run = lambda *more: subprocess.run([check.tool, "--diff", "-q", *more], capture_output=True,
                                       text=True)
    for code, args in ((2, [a]), (2, [a, a, a]), (2, [a, a, "-f", "tfevents"]),
                       (2, [a, a, "--merge"]), (2, [a, a, "--fail-over", "much"]),
                       (5, [a, a + ".missing"])):
        done = run(*args)
        check.that(done.returncode == code and done.stderr, f"{args[1:]}: {done.returncode}")


def type_fits(value, want):
    """Of JSON Schema."""
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool,
             "null": type(None), "object": dict, "array": list}
    want = [want] if isinstance(want, str) else want
    return any(isinstance(value, kinds[w]) and (w == "boolean" or not isinstance(value, bool))
               for w in want)


def schema(check, folder):
    """--diff --schema is of what is printed."""
    text = subprocess.run([check.tool, "--diff", "--schema"], capture_output=True, text=True,
                          check=True).stdout
    want = json.loads(text)
    stored = os.path.join(os.path.dirname(__file__), "../../schemas/diff.schema.json")
    with open(stored, encoding="utf-8") as f:
        check.that(f.read() == text, "schemas/diff.schema.json is what --diff --schema prints")
    _, got, _ = check.diff(os.path.join(folder, "a.json"), os.path.join(folder, "gemm.json"))
    check.that(set(want["required"]) == set(got) == set(want["properties"]), "schema: top")
    for name, objects in (("side", [got["a"], got["b"]]), ("part", got["parts"]),
                          ("owner", got["owners"]), ("place", got["places"]),
                          ("step", got["steps"]), ("unlike", got["unlike"])):
        of = want["$defs"][name]
        for one in objects:
            check.that(set(one) == set(of["required"]) == set(of["properties"]) and
                       all(type_fits(v, of["properties"][k]["type"]) for k, v in one.items()),
                       f"schema: {name} {one}")


def main():
    """All of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    check = Check(os.path.abspath(os.path.join(parser.parse_args().bin, "tacho-analyze")))
    with tempfile.TemporaryDirectory() as folder:
        for part in (planted, chance, cannot, few, unlike, places, folders, wrong, schema):
            part(check, folder)
    print(f"diff: {check.passed} passed, {check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())

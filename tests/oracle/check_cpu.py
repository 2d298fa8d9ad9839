# SPDX-License-Identifier: Apache-2.0
"""Jobs without a GPU: what their steps wait for is a finding, and its saving what the job gains.

usage: check_cpu.py --bin BUILD

Ranks of small Kineto jobs that train on CPUs with gloo, made from times that are known: a slow rank,
input, validation, code outside of phases, a slow step; and a log in which Python's garbage collector runs.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import labelled_findings    # noqa: E402
import log_file             # noqa: E402
import units                # noqa: E402
from check_ranks import Checks, Job     # noqa: E402

RANKS, STEPS, TRANSFER, OPTIMIZER = 3, 4, 400, 300
COMPUTE = 2000
COMM = {"cpu_comm": 1000 * TRANSFER, "cpu_operators": round(1000 * COMPUTE / 3)}


def job(folder, name, data=0, loads=None, validation=0, compute=COMPUTE, slow=None, more=0, beside=0,
        loop=0, checkpoint=0):
    """Paths, and how long a step of the job is, us: all leave the all-reduce together."""
    longest = data + validation + checkpoint + compute + (more if slow is not None else 0)
    step = longest + TRANSFER + OPTIMIZER + loop
    paths = []
    for rank in range(RANKS):
        mine = compute + (more if rank == slow else 0)
        events = []
        for number in range(STEPS):
            at = 1000 + number * step
            rows = [("user_annotation", f"ProfilerStep#{number}", at, at + step)]
            for cat, what, length in (
                    ("user_annotation", "enumerate(DataLoader)#_Iter.__next__",
                     data if loads in (None, rank) else data // 4),
                    ("user_annotation", "validation", validation),
                    ("user_annotation", "save_checkpoint", checkpoint), ("cpu_op", "aten::mm", mine)):
                rows += [(cat, what, at, at + length)] if length else []
                at += length
            end = 1000 + number * step + longest + TRANSFER
            rows += [("user_annotation", "gloo:all_reduce", at, end),
                     ("user_annotation", "Optimizer.step#SGD.step", end, end + OPTIMIZER)]
            events += [Job.event(cat, what, 400 + rank, 400 + rank, a, b, {}) for cat, what, a, b in rows]
            # on threads of autograd and of gloo
            events += [Job.event("cpu_op", name, 400 + rank, 500 + rank, end - TRANSFER + 50,
                                 end - TRANSFER + 50 + length, {})
                       for name, length in (("aten::mul", beside), ("c10d::allreduce_", 300)) if length]
        paths.append(f"{folder}/{name}{rank}.json")
        with open(paths[-1], "w") as f:
            json.dump({"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": rank,
                                                               "world_size": RANKS},
                       "traceEvents": events}, f)
    return paths, step


def findings(args, paths):
    out = subprocess.run([f"{args.bin}/tacho-analyze", "-q", "--format", "json", "--report",
                          "findings", *paths], capture_output=True, text=True, check=True)
    got = json.loads(out.stdout)
    wrong = units.mixed_in_report(got)
    return {f"units differ: {wrong[0]}": got} if wrong else {f["rule"]: f for f in got["findings"]}


def check_jobs(t, args, folder):
    even, step = job(folder, "even")
    t.equal("nothing but what is transferred", {name: f["saving_ns_per_step"] for name, f in
                                               findings(args, even).items()}, COMM)
    for slow in range(RANKS):
        paths, longer = job(folder, "slow", slow=slow, more=1500)
        found = findings(args, paths)
        t.equal(f"rank {slow} is slow", set(found), {"cpu_straggler", *COMM})
        t.equal(f"rank {slow} is slow, transfer", found["cpu_comm"]["saving_ns_per_step"],
                COMM["cpu_comm"])
        one = found.get("cpu_straggler", {"saving_ns_per_step": 0, "evidence": ""})
        t.equal(f"rank {slow} is slow, saving", one["saving_ns_per_step"], 1000 * (longer - step))
        t.true(f"rank {slow} is slow, in words: {one['evidence']}",
               f"Rank {slow} communicates for 0.40 ms" in one["evidence"] and
               "most extra time in forward: 1.5 ms" in one["evidence"])
        page = subprocess.run([f"{args.bin}/tacho-analyze", "-q", *paths], capture_output=True,
                              text=True, check=True).stdout
        t.true(f"rank {slow} is slow, on the page: {page}", f"rank {slow} communicates" in page)
    for rule, what in (("cpu_input", {"data": 900}), ("cpu_validation", {"validation": 700}),
                       ("cpu_checkpoint", {"checkpoint": 800})):
        paths, longer = job(folder, rule, **what)
        found = findings(args, paths)
        t.equal(rule, {name: f["saving_ns_per_step"] for name, f in found.items()},
                {rule: 1000 * (longer - step), **COMM})
    for rule, few, enough in (("cpu_input", {"data": 130}, {"data": 160}),
                              ("cpu_validation", {"validation": 130}, {"validation": 160}),
                              ("cpu_checkpoint", {"checkpoint": 130}, {"checkpoint": 160}),
                              ("cpu_loop", {"loop": 500}, {"loop": 900})):
        t.equal(f"{rule}, a share of any loop", set(findings(args, job(folder, rule, **few)[0])),
                set(COMM))
        t.equal(f"{rule}, a larger share", set(findings(args, job(folder, rule, **enough)[0])),
                {rule, *COMM})
    for rank in range(RANKS):
        said = findings(args, job(folder, "loads", data=900, loads=rank)[0])["cpu_input"]
        t.true(f"input of rank {rank} takes longer: {said['evidence']}",
               f"of rank {rank} waits for or prepares input for 900 \u00b5s of a step, that of the "
               "average rank for 450 \u00b5s." in said["evidence"] and
               f"on rank {rank}" in said["brief"])
    even_input = findings(args, job(folder, "input", data=900)[0])["cpu_input"]["evidence"]
    t.true(f"no rank is apart: {even_input}", "rank" not in even_input)
    beside, _ = job(folder, "beside", beside=150)
    t.equal("an operator beside it", {name: f["saving_ns_per_step"] for name, f in
                                      findings(args, beside).items()},
            {**COMM, "cpu_comm": 1000 * (TRANSFER - 150)})


STEP = 10000
MARK = "user_annotation", "ProfilerStep#"


def one_rank(folder, name, rows, steps=4, mark=STEP):
    """A file whose steps take 10 ms and have these rows: category, name, begin and end in us, arguments."""
    events = []
    for number in range(steps):
        at = 1000 + number * STEP
        for cat, what, begin, end, *more in [("user_annotation", f"ProfilerStep#{number}", 0, mark), *rows]:
            events.append(Job.event(cat, what, 1, 1, at + begin, at + end, more[0] if more else {}))
    path = f"{folder}/{name}.json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"schemaVersion": 1, "traceEvents": events}, f)
    return path


def numbered(number, forward=0):
    return {"Sequence number": number, "Fwd thread id": forward}


def training(number=5, begin=0):
    """Forward and backward, 2 + 3 ms."""
    node = "autograd::engine::evaluate_function: AddmmBackward0"
    return [("cpu_op", "aten::linear", begin, begin + 2000, numbered(number)),
            ("cpu_op", "aten::addmm", begin + 10, begin + 1900, numbered(number)),
            ("cpu_op", node, begin + 2000, begin + 5000, numbered(number, 1)),
            ("cpu_op", "AddmmBackward0", begin + 2000, begin + 5000, numbered(number, 1)),
            ("cpu_op", "aten::mm", begin + 2000, begin + 5000)]


def frame(what, begin, end):
    return ("python_function", what, begin, end)


def small(count, length, apart):
    return [("cpu_op", "aten::add", i * apart, i * apart + length) for i in range(count)]


CALL = "train.py(7): main"
STEP_CALL = frame("torch/profiler/profiler.py(766): step", 0, 200)
# what happens in each step, the findings and what they save, us; a part of the first one's texts
ONE_RANK = {
    "training": (training(), {"cpu_loop": 5000, "cpu_operators": 5000 / 3},
                 "Matrix products take 5.0 ms of a step, 50 % of it, on the CPU: aten::mm 3.0 ms, aten::linear 2.0 ms."),
    "operators of a fifth": ([("cpu_op", "aten::relu", 0, 2001)], {"cpu_operators": 2001 / 3, "cpu_loop": 7999},
                             "code outside"),
    "operators of less": ([("cpu_op", "aten::relu", 0, 1999)], {"cpu_loop": 8001}, "code outside"),
    "convolution": ([("cpu_op", "aten::conv2d", 0, 3000, numbered(5)), ("cpu_op", "aten::convolution", 1, 2999),
                     ("cpu_op", "ConvolutionBackward0", 3000, 9800, numbered(5, 1)),
                     ("cpu_op", "aten::convolution_backward", 3000, 9000)], {"cpu_operators": 3000},
                    "aten::convolution_backward 6.0 ms, aten::conv2d 3.0 ms"),
    "small operators": (small(400, 10, 25), {"cpu_small_ops": 10000, "cpu_operators": 4000 / 3}, "400 operators a step"),
    "operators of 20 us": (small(400, 20, 25), {"cpu_operators": 8000 / 3}, "Operators of one kind"),
    "few small operators": (small(50, 10, 200), {"cpu_loop": 9500}, "code outside"),
    "validation without gradients": (
        [*training(), ("cpu_op", "aten::linear", 6000, 8000), ("cpu_op", "aten::relu", 8000, 9000)],
        {"cpu_validation": 3000, "cpu_loop": 2000, "cpu_operators": 5000 / 3}, "without gradients"),
    "a teacher": ([("cpu_op", "aten::linear", 0, 3000), ("cpu_op", "aten::relu", 3000, 3500), *training(begin=4000)],
                  {"cpu_operators": 8000 / 3}, "Matrix products"),
    "the same with gradients": (
        [*training(), ("cpu_op", "aten::linear", 6000, 8000, numbered(6)), ("cpu_op", "aten::relu", 8000, 9000, numbered(7))],
        {"cpu_operators": 7000 / 3, "cpu_loop": 2000}, "Matrix products"),
    "the first number of a thread": (
        [("cpu_op", "aten::linear", 0, 2000, numbered(0)), ("cpu_op", "aten::relu", 2000, 3000, numbered(1)),
         *training(begin=4000)], {"cpu_operators": 7000 / 3, "cpu_loop": 2000}, "Matrix products"),
    "averages without gradients": ([*training(), ("cpu_op", "aten::mul_", 6000, 9000)],
                                   {"cpu_loop": 2000, "cpu_operators": 5000 / 3}, "Matrix products"),
    "a function that validates": ([*training(), frame("train.py(9): evaluate", 6000, 9500)],
                                  {"cpu_validation": 3500, "cpu_operators": 5000 / 3}, "validation"),
    "a function of PyTorch": ([*training(), frame("torch/fx/shapes.py(9): evaluate", 6000, 9500)],
                              {"cpu_loop": 5000, "cpu_operators": 5000 / 3}, "code outside"),
    "a function that trains, too": ([frame("train.py(9): validate", 0, 9999), *training()],
                                    {"cpu_loop": 5000, "cpu_validation": 2000, "cpu_operators": 3000 / 3}, "code outside"),
    "collected by the program": ([*training(), frame("<built-in function collect>", 6000, 9500)],
                                 {"cpu_gc": 3500, "cpu_operators": 5000 / 3}, "garbage"),
    "compiled code": ([("cpu_op", "Torch-Compiled Region", 0, 6000), ("cpu_op", "CompiledFunction", 10, 5900),
                       ("cpu_op", "aten::addmm", 20, 5800)], {"cpu_operators": 2000, "cpu_loop": 4000}, "Compiled functions take 6.0 ms"),
    "code": ([*training(), frame(CALL, 6000, 9500)], {"cpu_loop": 5000, "cpu_operators": 5000 / 3}, "code outside"),
}


def check_operators(t, args, path):
    """On pages: their calls, time and share of a step of 10 ms, the longest first."""
    for form in ("text", "md", "html"):
        page = subprocess.run([f"{args.bin}/tacho-analyze", "-q", "-f", form, path], capture_output=True, text=True, check=True).stdout
        words = re.sub(r"<[^>]*>|\|", " ", page)
        rows = re.findall(r"aten::(\w+) +([\d.]+) +([\d.]+) +([\d.]+)", words)
        t.equal(f"operators, {form}", rows, [("mm", "1", "3.00", "30.0"), ("linear", "1", "2.00", "20.0")])


def check_one_rank(t, args, folder):
    for name, (rows, want, words) in ONE_RANK.items():
        found = findings(args, [one_rank(folder, "one", rows)])
        t.equal(name, {rule: f["saving_ns_per_step"] for rule, f in found.items()},
                {rule: round(1000 * us) for rule, us in want.items()})
        t.true(f"{name}, in words: {found}", any(words in f["evidence"] for f in found.values()))
        for rule, times in (("cpu_operators", 3), ("cpu_loop", 1)):
            of = re.match(r"[<\d.]+ of <?([\d.]+) ms", (found.get(rule) or {}).get("where") or "")
            t.true(f"{name}, {rule} is where it is", not of or
                   float(of[1]) * 1e6 <= 1.01 * times * found[rule]["saving_ns_per_step"] + 5e4)
        t.true(f"{name}, no more than a step", all(f["saving_ns_per_step"] <= 1000 * STEP for f in found.values()))
    loader = ("user_annotation", "enumerate(DataLoader)#_%sIter.__next__", 3000, 4000)
    for kind, words in ((None, {"cpu_operators": "before the loop", "cpu_input": "DataLoader workers, on the GPU"}),
                        ("SingleProcessDataLoader", {"cpu_operators": "loader's workers", "cpu_input": "num_workers"}),
                        ("MultiProcessingDataLoader", {"cpu_operators": "loader's workers", "cpu_input": "prefetch_factor"})):
        rows = [("cpu_op", "aten::rand", 0, 3000), (loader[0], loader[1] % kind, *loader[2:]) if kind else
                frame("train.py(9): preprocess", 3000, 4000)]
        found = findings(args, [one_rank(folder, "random", rows)])
        t.true(f"advice with {kind or 'no loader'}: {found}", all(part in found[rule]["advice"]
               and (kind or "the loader" not in found[rule]["advice"]) for rule, part in words.items()))
    check_operators(t, args, one_rank(folder, "operators", ONE_RANK["training"][0]))
    found = findings(args, [one_rank(folder, "place", ONE_RANK["code"][0])])
    out = [("cpu_op", "aten::conv2d", 0, 3000), ("cpu_op", "aten::conv2d", 6000, 9000)]
    outside = findings(args, [one_rank(folder, "place", out, mark=5000)])["cpu_operators"]
    t.equal("operators outside of steps", (outside["saving_ns_per_step"], outside["where"]), (1000000, ""))
    t.equal("whose code", found["cpu_loop"]["where"], "3.5 of 3.5 ms in train.py:7")
    t.true("code that is known", "name this code" not in found["cpu_loop"]["advice"])
    found = findings(args, [one_rank(folder, "place", ONE_RANK["convolution"][0])])
    t.equal("where it convolves", found["cpu_operators"]["where"],
            "6.0 of 9.0 ms in backward of aten::conv2d \u00b7 3.0 in aten::conv2d")
    t.true("what helps", "channels_last" in found["cpu_operators"]["advice"])
    for rows in (ONE_RANK["compiled code"][0], [("cpu_op", "CompiledFunction", 9000, 9900), *small(300, 10, 25)],
                 [("cpu_op", "CompiledFunction", 9000, 9900), ("cpu_op", "my::op", 0, 8000)]):
        found = findings(args, [one_rank(folder, "compiled", rows)])
        t.true(f"compiled code is not to be compiled: {found}", not any("torch.compile" in f["advice"] for f in found.values())
               and any("graph breaks" in f["advice"] for f in found.values()))


def check_validation_steps(t, args, folder):
    """Steps of their own without a backward are validation, the first behind a training step, too; a teacher
    before the backward of its step is forward."""
    events = []
    for number, kind in enumerate("VTVVTVt"):
        at = 1000 + number * STEP
        again = [("cpu_op", "aten::linear", 0, 3000), ("cpu_op", "aten::relu", 3500, 6000)]
        rows = {"V": again, "T": training(number=9), "t": again + training(number=9, begin=6000)[:3]}[kind]
        for cat, what, begin, end, *more in [("user_annotation", f"ProfilerStep#{number}", 0, STEP - (number == 2)), *rows]:
            events.append(Job.event(cat, what, 1, 1, at + begin, min(at + end, at + STEP - 1), more[0] if more else {}))
    path = f"{folder}/validation.json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"schemaVersion": 1, "traceEvents": events}, f)
    out = subprocess.run([f"{args.bin}/tacho-analyze", "-q", "--format", "json", "--report", "phases", path],
                         capture_output=True, text=True, check=True)
    got = {row["name"]: row["wall_ns"] // 1000 for row in json.loads(out.stdout)["ranks"][0]["phases"]}
    many = []       # more than are waited for: the step before decides
    for number, kind in enumerate("TVV"):
        at = 1000 + number * 3 * STEP
        rows = training(number=9) if kind == "T" else [("cpu_op", "aten::linear", 0, 100)] + [
            ("cpu_op", "aten::relu", 110 + i * 0.4, 110.4 + i * 0.4) for i in range(70000)]
        for cat, what, begin, end, *more in [("user_annotation", f"ProfilerStep#{number}", 0, 3 * STEP), *rows]:
            many.append(Job.event(cat, what, 1, 1, at + begin, at + end, more[0] if more else {}))
    with open(f"{folder}/many.json", "w", encoding="utf-8") as f:
        json.dump({"schemaVersion": 1, "traceEvents": many}, f)
    long = subprocess.run([f"{args.bin}/tacho-analyze", "-q", "--format", "json", "--report", "phases", f"{folder}/many.json"],
                          capture_output=True, text=True, check=True)
    rows = {row["name"]: row["wall_ns"] // 1000 for row in json.loads(long.stdout)["ranks"][0]["phases"]}
    t.equal("long steps of validation", {name: rows.get(name) for name in ("validation", "forward")},
            {"validation": 28100, "forward": 2000 + 28100})
    t.equal("steps of validation", {name: got.get(name) for name in ("validation", "forward", "backward")},
            {"validation": 4 * 5500, "forward": 2 * 2000 + 5500 + 2000, "backward": 2 * 3000 + 1999})


def check_short_marks(t, args, folder):
    """With Python functions torch.profiler may end a mark with its own function step()."""
    def walls(name, rows, mark):
        out = subprocess.run([f"{args.bin}/tacho-analyze", "-q", "--format", "json", "--report", "steps",
                              one_rank(folder, name, rows, mark=mark)], capture_output=True, text=True, check=True)
        return [s["wall_ns"] // 1000 for s in json.loads(out.stdout)["ranks"][0]["steps"] if s["counted"]]
    t.equal("marks that end with step()", walls("short", [STEP_CALL, *training()], 100), [STEP] * 3)
    t.equal("such marks of nobody's", walls("short", training(), 100), [100] * 4)
    t.equal("marks that go on", walls("whole", [STEP_CALL, *training()], STEP - 50), [STEP] * 3 + [STEP - 50])


def check_slow_step(t, args, folder):
    """Of eight steps one takes 30 instead of 10 ms."""
    events, at = [], 1000
    for number in range(8):
        took = 30000 if number == 5 else 10000
        events += [Job.event("user_annotation", f"ProfilerStep#{number}", 1, 1, at, at + took, {}),
                   Job.event("cpu_op", "aten::mm", 1, 1, at, at + took, {})]
        at += took
    path = f"{folder}/slow.json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"schemaVersion": 1, "traceEvents": events}, f)
    found = findings(args, [path])
    t.equal("a slow step", {name: f["saving_ns_per_step"] for name, f in found.items()},
            {"slow_steps": 20000000 // 8, "cpu_operators": round(100e6 / 8 / 3)})
    t.true("a slow step, which", "the slowest is step 5 with 30" in found["slow_steps"]["evidence"])


def check_collections(t, args, folder):
    """The first step of a log settles; its collections are in none that is counted."""
    rows = []
    for number in range(4):
        at = 10000 * number
        rows += [Job.event("user_annotation", f"ProfilerStep#{number}", 1, 1, at, at + 10000, {}),
                 Job.event("cpu_op", "aten::mm", 1, 1, at + 100, at + 9000, {}),
                 Job.event("gc", "gc generation 2", 1, 2, at + 9000, at + 9800, {}),
                 Job.event("gc", "gc generation 0", 1, 3, at + 9500, at + 9900, {})]
    path = f"{folder}/gc.tacho"
    with open(path, "wb") as f:
        f.write(log_file.of_rows(rows, (0, 4 * labelled_findings.STEP)))
    found = findings(args, [path])
    t.equal("collections", {name: f["saving_ns_per_step"] for name, f in found.items()},
            {"cpu_gc": 900000, "cpu_operators": round(8900000 / 3)})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    args = parser.parse_args()
    t = Checks()
    with tempfile.TemporaryDirectory() as folder:
        check_jobs(t, args, folder)
        check_one_rank(t, args, folder)
        check_short_marks(t, args, folder)
        check_validation_steps(t, args, folder)
        check_slow_step(t, args, folder)
        check_collections(t, args, folder)
    print(f"cpu: {t.good} passed, {t.bad} failed")
    return t.bad != 0


if __name__ == "__main__":
    sys.exit(main())

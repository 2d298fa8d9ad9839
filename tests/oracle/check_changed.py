#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real traces that are changed in a known manner: the report changes by that and nothing else.

    check_changed.py --bin DIR [--traces DIR] [--only TEXT]

A row of CHANGES has the trace, what is done to its rows, and what is asked of the reports of both.
What is done gives the rows, or the rows and what their reports have to say.  JOBS are made of one
trace: four ranks of it, of which one is changed, while the others wait for it.
"""
import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import check_traces         # noqa: E402
import perturb              # noqa: E402


def without_marks(rows):
    return [row for row in rows if not str(row.get("name", "")).startswith("ProfilerStep")]


def without_names(rows):
    """Neither marks nor a name says what backward is; sequence numbers do."""
    for row in rows:
        name = str(row.get("name", ""))
        if row.get("cat") == "cpu_op" and ("Backward" in name or "autograd::engine" in name):
            row["name"] = "run_node"
        if row.get("ph") == "M" and "name" in (row.get("args") or {}):
            row["args"]["name"] = str(row["args"]["name"]).replace("pt_autograd_", "thread ")
    return without_marks(rows)


def with_stray_ids(rows):
    """Three events of other calls than theirs, as recorders have them at times."""
    mine = [row for row in rows if row.get("cat") == "kernel"][5:8]
    for place, row in enumerate(mine):
        row["args"]["correlation"] = 2 ** 32 - 1 - 1000 * place
    return rows


def thinned(rows):
    """Every 300th kernel with its launch, and all that has no id."""
    return [row for row in rows if "correlation" not in (row.get("args") or {})
            or row["args"]["correlation"] % 2000 == 0]


def without_tenth(rows):
    """Every tenth kernel is lost; its launch is there."""
    kernels = [row for row in rows if row.get("cat") == "kernel"]
    gone = {id(row) for row in sorted(kernels, key=lambda row: row["ts"])[5::10]}
    return [row for row in rows if id(row) not in gone]


def without_ids(rows):
    """No call says which work is its own."""
    for row in rows:
        (row.get("args") or {}).pop("correlation", None)
    return rows


def begun_by_a_profiler(rows):
    """Five seconds of a profiler's own start before anything else, with what it calls."""
    first = min(row["ts"] for row in rows if row.get("ph") == "X")
    host = next(row for row in rows if row.get("cat") == "cpu_op")
    for name, begin, length in (("$profiler.py:101 start_trace", 5e6, 5e6 - 10),
                                ("<built-in method init>", 4e6, 1e6)):
        rows.append({"ph": "X", "cat": "python_function", "name": name, "pid": host["pid"],
                     "tid": host["tid"], "ts": first - begin, "dur": length, "args": {}})
    return rows


def with_pauses(rows):
    """12 ms of nothing after each step."""
    ends = sorted(row["ts"] + row["dur"] for row in rows if row.get("ph") == "X" and
                  row.get("cat") in ("user_annotation", "Operator") and
                  str(row.get("name", "")).startswith("ProfilerStep"))
    for row in rows:
        if isinstance(row.get("ts"), (int, float)):
            row["ts"] += 12000 * sum(end <= row["ts"] for end in ends[:-1])
    return rows


def gpu_by_phase(report):
    """us of GPU work by the phase that launched it; single events on the edge of a mark aside."""
    return {row["name"]: row["gpu_busy_ns"] // 1000 for row in report["ranks"][0]["phases"]
            if row["gpu_busy_ns"]}


def same_phases(checks, label, before, after, _):
    checks.same(f"{label}: GPU work by phase", gpu_by_phase(after), gpu_by_phase(before))


def verdict_of(report):
    return report["verdict"]["bound"], report["ranks"][0]["trust"]["sampled"]


def same_verdict(checks, label, before, after, _):
    checks.same(f"{label}: verdict and whether it is a sample", verdict_of(after),
                verdict_of(before))


def is_sample(checks, label, _, after, __):
    checks.same(f"{label}: verdict and whether it is a sample", verdict_of(after),
                ("NO VERDICT", True))


def same_idle(checks, label, before, after, _):
    got, want = ([{cause["cause"]: cause["ns"] for cause in row["idle_causes"]}
                  for row in report["ranks"][0]["gpus"]] for report in (after, before))
    checks.same(f"{label}: idle time by cause", got, want)


def idle_by_cause(report):
    return {row["cause"]: row["ns"] for row in report["ranks"][0]["gpus"][0]["idle_causes"]}


def lost_is_unrecorded(checks, label, before, after, _):
    """What lost kernels leave free, and their time, is no other cause's."""
    was, got = idle_by_cause(before), idle_by_cause(after)
    lost = sum(gpu["not_busy_ns"] for gpu in after["ranks"][0]["gpus"]) - sum(
        gpu["not_busy_ns"] for gpu in before["ranks"][0]["gpus"])
    checks.say(got.get("unrecorded", 0) - was.get("unrecorded", 0) >= lost,
               f"{label}: {lost} ns and more are unrecorded", str(got.get("unrecorded")))
    more = {cause: ns - was.get(cause, 0) for cause, ns in got.items() if cause != "unrecorded"}
    checks.say(max(more.values()) <= 0.01 * lost, f"{label}: no other cause has more", str(more))


def nothing_matches(checks, label, before, after, _):
    trust = after["ranks"][0]["trust"]
    checks.same(f"{label}: launches, with work", (trust["launches"], trust["with_launch"]),
                (before["ranks"][0]["trust"]["launches"], 0))
    checks.say(after["verdict"]["bound"] == "NO VERDICT" and "no launch can be matched" in
               after["verdict"]["sentence"], f"{label}: is said", after["verdict"]["sentence"])


def outside_is_pauses(checks, label, before, after, _):
    """A step no longer reaches to the next, so what little lay between them is outside, too."""
    count = len(after["ranks"][0]["steps"]) - 1
    got, was = (sum(row["wall_ns"] for row in report["ranks"][0]["outside_steps"]) / 1e6
                for report in (after, before))
    checks.say(12 * count <= got - was < 12 * count + 1, f"{label}: time outside of steps",
               f"{was} ms became {got} ms")


def phases_are(want):
    """`want`: phase -> ms of GPU work."""
    def ask(checks, label, _, after, __):
        got = gpu_by_phase(after)
        checks.same(f"{label}: ms of GPU work by phase",
                    {phase: round(got.get(phase, 0) / 1000, 1) for phase in want}, want)
    return ask


def unchanged(rows):
    return rows


# ---- pauses: one cause grows by a known time, and nothing else does ----

def figures(report):
    """ns of the first GPU: what is busy by class, and what is not by cause."""
    gpu = report["ranks"][0]["gpus"][0]
    made = {key: gpu[key] for key in ("compute_ns", "exposed_comm_ns", "exposed_copy_ns")}
    return {**made, **{row["cause"]: row["ns"] for row in gpu["idle_causes"]}}


def grows(checks, label, before, after, told):
    """told: key (the begin of one), us, and words of the diff's reason, of the first page's rules."""
    was, got = figures(before), figures(after)
    more = {key: ns - was.get(key, 0) for key, ns in got.items()}
    mine = [key for key in more if key.startswith(told["key"])]
    ns = round(1000 * told["us"])
    checks.say(abs(sum(more[key] for key in mine) - ns) <= 1000,
               f"{label}: {told['key']} has {ns} ns more", str(more))
    rest = {key: ns for key, ns in more.items() if key not in mine and abs(ns) > 1000}
    checks.same(f"{label}: nothing else has", rest, {})
    diff = after["diff"]
    checks.say(abs(diff["b"]["mean_ns"] - diff["a"]["mean_ns"] - ns / told["steps"]) <= 1000,
               f"{label}: a step is {ns / told['steps']} ns longer", str(diff["difference_ns"]))
    checks.say(diff["verdict"] in told.get("diff", ("slower", "slower_below_fail_over")),
               f"{label}: the diff says so", diff["verdict"])
    for word in told["words"]:
        checks.say(word.lower() in diff["reason"].lower(), f"{label}: its reason has {word!r}", diff["reason"])
    if "slow" in told:
        grew = [row["grew_ns"] for row in after["ranks"][0]["slow_steps"] if row["what"] == "idle"
                and row["step"] == told["slow"]]
        checks.say(any(abs(grown - ns) < 0.1 * ns for grown in grew),
                   f"{label}: what grew in step {told['slow']}", str(grew))
    for rule, words in told.get("rules", {}).items():
        found = [row for row in after["findings"] if row["rule"] == rule]
        checks.say(bool(found) and all(word in found[0]["evidence"] for word in words),
                   f"{label}: {rule} says {words}", str(found))


def with_pauses_of(rows, found, factor, **told):
    """Each GPU event lasts `factor` times longer, at the instant beside it."""
    pauses = [(at, factor * row["dur"]) for at, row in found]
    return perturb.pause(rows, pauses), {
        "us": sum(us for _, us in pauses), "steps": len(perturb.marks(rows)), **told}


def slower_collectives(rows):
    found = perturb.alone(rows, [row for row in perturb.spans(rows) if row["cat"] == "kernel" and
                                 "nccl" in row["name"].lower()])
    return with_pauses_of(rows, found, 1, key="exposed_comm", words=("exposed_comm", "AllReduce"))


def slower_gemm(rows):
    total = {}
    for row in perturb.spans(rows):
        if row["cat"] == "kernel" and "gemm" in row["name"]:
            total[row["name"]] = total.get(row["name"], 0) + row["dur"]
    name = max(total, key=total.get)
    found = perturb.alone(rows, [row for row in perturb.spans(rows) if row["name"] == name])
    return with_pauses_of(rows, found, 1, key="compute", words=("compute", name[:12]))


def slower_uploads(rows):
    found = perturb.alone(rows, [row for row in perturb.spans(rows) if "HtoD" in row["name"]])
    return with_pauses_of(rows, found, 4, key="exposed_copy", words=("exposed_copy", "HtoD"))


def stalls(ms, of=slice(None), where=None, call=None, key="host:", words=("host:",), **told):
    """A pause in steps while the GPU and calls do nothing, in which a call may be open."""
    def change(rows):
        steps = perturb.marks(rows)
        found = [perturb.quiet(rows, mark, where) for mark in steps[of]]
        perturb.pause(rows, [(at, 1000 * ms) for at in found])
        for place, at in enumerate(found if call else ()):
            rows.append({"ph": "X", "cat": "cuda_runtime", "name": call, "pid": steps[0]["pid"],
                         "tid": steps[0]["tid"], "ts": int(at) + 1 + 1000 * ms * place,
                         "dur": 1000 * ms - 2, "args": {"correlation": 4000000 + place}})
        lost = 2 * len(found) if call else 0
        return rows, {"us": 1000 * ms * len(found) - lost, "steps": len(steps), "key": key,
                      "words": words, "slack": lost, **told}
    return change


def grows_but_call(checks, label, before, after, told):
    """The edges of the call are the host's."""
    told = {**told, "us": told["us"] + told["slack"]}
    shared = figures(after)
    host = [key for key in shared if key.startswith("host:")]
    was = figures(before)
    moved = sum(shared[key] - was.get(key, 0) for key in host)
    checks.say(0 <= moved <= 1000 * told["slack"], f"{label}: the host has the edges", str(moved))
    for key in host:
        after["ranks"][0]["gpus"][0]["idle_causes"] = [
            {"cause": row["cause"], "ns": was.get(row["cause"], 0)} if row["cause"] in host else
            {"cause": row["cause"], "ns": row["ns"] + moved} if row["cause"] == told["key"] else row
            for row in after["ranks"][0]["gpus"][0]["idle_causes"]]
        break
    grows(checks, label, before, after, told)


def shuffled(rows):
    """What is told of threads stays in its order: a thread may have two names."""
    told = [row for row in rows if row.get("ph") == "M"]
    rest = [row for row in rows if row.get("ph") != "M"]
    random.Random(4).shuffle(rest)
    return told + rest


def same_report(checks, label, before, after, _):
    checks.same(f"{label}: the report", {k: v for k, v in after.items() if k not in ("diff", "inputs")},
                {k: v for k, v in before.items() if k != "inputs"})


def renamed(rows):
    """Ranges that no rule maps; autograd's threads still say what backward is."""
    for row in rows:
        if row.get("cat") in ("user_annotation", "gpu_user_annotation"):
            for word in ("forward", "backward", "optimizer"):
                row["name"] = str(row["name"]).replace(f"## {word} ##", f"part {len(word)}")
    return rows


def same_advice(checks, label, before, after, _):
    """What is to be done about communication does not hang on names of phases."""
    got, want = ([(row["rule"], row["advice"]) for row in report["findings"]
                  if row["rule"] in ("exposed_comm", "slow_link")] for report in (after, before))
    checks.same(f"{label}: advice", got, want)
    checks.same(f"{label}: verdict", after["verdict"]["bound"], before["verdict"]["bound"])


def early_gpu(rows):
    for row in rows:
        if row.get("cat") in perturb.GPU:
            row["ts"] -= 60
    return rows


def early_is_said(checks, label, before, after, _):
    got, was = ({row["check"]: (row["verdict"], row["count"]) for row in report["ranks"][0]["checks"]}
                for report in (after, before))
    checks.same(f"{label}: no work begins before its launch at first", was["order"], ("good", 0))
    checks.say(got["order"][0] != "good" and got["order"][1] > 100,
               f"{label}: work that begins before its launch", str(got["order"]))


# ---- jobs of four ranks ----

RANKS = 4


def collectives(rows):
    return sorted((row for row in perturb.spans(rows) if row["cat"] == "kernel" and
                   "nccl" in row["name"].lower()), key=lambda row: row["ts"])


def instants(rows):
    """(begin, an instant at which it is alone) of collectives that have one."""
    work = perturb.covers([row for row in perturb.spans(rows) if row["cat"] in perturb.GPU and
                           "nccl" not in row["name"].lower()])
    for row in collectives(rows):
        for part in range(1, 20):
            at = int(row["ts"] + row["dur"] * part / 20) + 0.4321
            if row["ts"] < at < row["ts"] + row["dur"] and not work(at):
                yield row["ts"], at
                break


def job(document, folder, slow, pauses, shift=0):
    """A folder of ranks; the others wait for the slow one in the collective behind each pause."""
    text = json.dumps(document)
    meets = list(instants(document["traceEvents"]))
    waits = [(next(at for begin, at in meets if begin >= when), us) for when, us in pauses]
    for rank in range(RANKS):
        own = json.loads(text)
        rows = perturb.pause(own["traceEvents"], pauses if rank == slow else waits)
        for row in rows:
            args = row.get("args") or {}
            if "Process Group Ranks" in args:
                args["Process Group Ranks"] = str(list(range(RANKS)))
                args["Group size"] = RANKS
            if rank == RANKS - 1 and isinstance(row.get("ts"), (int, float)):
                row["ts"] += shift
        own["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": RANKS}
        own["traceEvents"] = rows
        with open(os.path.join(folder, f"rank{rank}.json"), "w", encoding="utf-8") as stream:
            json.dump(own, stream)
    return folder


def first_meetings(rows):
    """Of each step: an instant before its first collective with one that is alone."""
    meets = [begin for begin, _ in instants(rows)]
    for mark in perturb.marks(rows):
        inside = [begin for begin in meets if mark["ts"] < begin < mark["ts"] + mark["dur"]]
        yield int(min(inside)) - 0.5679


def computing(rows, share):
    """30 % more of each kernel that is alone and that a collective follows."""
    last = max(begin for begin, _ in instants(rows))
    return [(at, share * row["dur"]) for at, row in perturb.alone(rows, [
        row for row in perturb.spans(rows) if row["cat"] == "kernel" and
        "nccl" not in row["name"].lower()]) if at < last]


def waits_of(report):
    return {rank["rank"]: rank["waits"] for rank in report["ranks"]}


def finding(report, rule):
    return next((row for row in report["findings"] if row["rule"] == rule), None)


def blames(checks, label, report, slow, ns, of, steps):
    """The named rank makes the others wait for `ns` in all, and no other is named."""
    made = {rank: row["made_wait_ns"] for rank, row in waits_of(report).items()}
    checks.say(abs(made[slow] / (RANKS - 1) - ns) <= 0.01 * ns + 1000 * of,
               f"{label}: rank {slow} makes the others wait for {(RANKS - 1) * ns} ns", str(made))
    checks.same(f"{label}: who came last", {row["rank"] for row in report["stragglers"]}, {slow})
    found = finding(report, "straggler")
    gain = ns / steps
    checks.say(bool(found) and f"Rank {slow} " in found["evidence"] and
               gain - 1000 <= found["saving_ns_per_step"] <= 1.25 * gain + 1000,
               f"{label}: straggler saves {gain} ns of a step", str(found))


def check_jobs(checks, binary, path, folder):
    document = load(path)
    rows = document["traceEvents"]
    steps = perturb.marks(rows)
    begins = list(first_meetings(rows))

    def ask(slow, pauses, shift=0):
        report = check_traces.analyze(binary, job(document, folder, slow, pauses, shift),
                                      "--report", "ranks,comm,findings")
        if isinstance(report, str):
            checks.say(False, "a job of four ranks runs", report)
        return report

    even = ask(None, [])
    checks.same("m0: equal ranks, who came last", even["stragglers"], [])
    checks.same("m0: equal ranks, findings of one rank", [
        row["rule"] for row in even["findings"] if row["rule"] in ("straggler", "imbalance")], [])
    late = ask(2, [(begins[1], 20000)])
    made = {rank: row["made_wait_ns"] for rank, row in waits_of(late).items()}
    checks.same("m1: one late step, who came last", [(row["step"], row["rank"])
                for row in late["stragglers"]],
                [(int(steps[1]["name"].split("#")[1]), 2)])
    checks.say(abs(made[2] - 60e6) < 1e5, "m1: 60 ms are waited for rank 2", str(made))
    pauses = computing(rows, 0.3)
    slower = ask(1, pauses)
    blames(checks, "m2: a rank that computes 30 % slower", slower, 1,
           1000 * sum(us for _, us in pauses), len(steps) * 10, len(steps))
    checks.say(bool(finding(slower, "imbalance")) and "rank 1" in finding(slower, "imbalance")["evidence"],
               "m2: imbalance names it", str(finding(slower, "imbalance")))
    moved = ask(None, [], shift=7000)
    checks.same("m3: a clock that is 7 ms ahead changes nothing",
                (waits_of(moved), moved["verdict"], moved["findings"]),
                (waits_of(even), even["verdict"], even["findings"]))
    first = ask(0, [(at, 10000) for at in begins])
    blames(checks, "m4: a rank late once in each step", first, 0, 10e6 * len(begins), len(steps),
           len(steps))


DDP = "kineto/v100_ddp_rank1of2_memory"
SMALL = "kineto/a100_ddp_rank0of2_nccl_args"
LOADER = "kineto/v100_resnet50_slow_loader_2021"
CHANGES = [
    ("kineto/v100_ddp_rank1of2_memory", "without marks", without_marks, same_phases),
    ("kineto/a100_ddp_rank0of2_nccl_args", "without marks", without_marks, same_phases),
    ("kineto/mi300_resnet_act_checkpoint", "without marks", without_marks, same_phases),
    ("kineto/v100_resnet50_slow_loader_2021", "without marks", without_marks, same_phases),
    ("kineto/a100_ddp_rank0of2_nccl_args", "without names", without_names, same_phases),
    ("kineto/mi300_resnet_act_checkpoint", "without names", without_names, same_phases),
    ("kineto/a100_ddp_rank0of2_nccl_args", "with stray ids", with_stray_ids, same_verdict),
    ("kineto/event_sync_3_streams", "with stray ids", with_stray_ids, same_verdict),
    ("kineto/h100_qwen_0.5b_inference", "with stray ids", with_stray_ids, same_verdict),
    ("kineto/v100_ddp_rank1of2_memory", "thinned", thinned, is_sample),
    ("kineto/job128_sampled_rank0", "as it is", unchanged, is_sample),
    ("kineto/compare_base", "with stray ids", with_stray_ids, is_sample),
    ("kineto/b200_eager", "begun by a profiler", begun_by_a_profiler, same_idle),
    ("kineto/h100_qwen_0.5b_inference", "begun by a profiler", begun_by_a_profiler, same_idle),
    ("kineto/v100_ddp_rank1of2_memory", "with pauses", with_pauses, outside_is_pauses),
    ("kineto/v100_resnet50_slow_loader_2021", "with pauses", with_pauses, outside_is_pauses),
    ("kineto/v100_ddp_rank1of2_memory", "without every tenth kernel", without_tenth,
     lost_is_unrecorded),
    ("kineto/b200_eager", "without every tenth kernel", without_tenth,
     lost_is_unrecorded),
    ("kineto/v100_ddp_rank1of2_memory", "without ids", without_ids, nothing_matches),
    (DDP, "p1: collectives that take twice as long", slower_collectives, grows),
    (DDP, "p2: 40 ms in one step", stalls(
        40, slice(3, 4), words=("host:", "step 5"), diff=("cannot_tell",), slow=5), grows),
    (SMALL, "p3: 5 ms in each step", stalls(5), grows),
    (SMALL, "p4: 8 ms of .item() in each step", stalls(
        8, call="cudaStreamSynchronize", key="sync", words=("sync",),
        rules={"host_sync": ("8.0 ms",)}), grows_but_call),
    (SMALL, "p7: a product that takes twice as long", slower_gemm, grows),
    (SMALL, "p8: shuffled", shuffled, same_report),
    (LOADER, "p11: uploads that take five times as long", slower_uploads, grows),
    (SMALL, "p19: an operator that computes 300 ms on the host", stalls(
        300, rules={"launch_bound": ("aten::", "Most of it is CPU work of ")}), grows),
    (LOADER, "p12: a loader that takes 30 ms more", stalls(
        30, where="__next__", key="data", words=("data",), rules={"data_wait": ("input",)}), grows),
    (SMALL, "p13: ranges with other names", renamed, same_advice),
    (SMALL, "p15: the GPU's clock is early", early_gpu, early_is_said),
    (SMALL, "p18: 3 ms of cudaMalloc in each step", stalls(
        3, call="cudaMalloc", key="allocator", words=("allocator",),
        rules={"allocator": ("3.0 ms",)}), grows_but_call),
    ("judged/param_resnet_kineto", "as it is", unchanged, phases_are({"backward": 2786.5})),
    ("judged/param_linear_kineto", "as it is", unchanged, phases_are({"backward": 224.8})),
]


def load(path):
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as stream:
        return json.load(stream, strict=False)


def compared(binary, one, other):
    out = subprocess.run([binary, "-q", "--format", "json", "--diff", one, other],
                         capture_output=True, text=True, check=False)
    return json.loads(out.stdout) if out.stdout else {"verdict": out.stderr}


def check_row(checks, binary, path, row, folder):
    name, word, change, ask = row
    label = f"{name.split('/')[1]} {word}"
    reports = ("--report", "summary,findings,check,steps,slow")
    before = check_traces.analyze(binary, path, *reports)
    after, told = before, None
    if change is not unchanged:
        document = load(path)
        made = change(document["traceEvents"])
        document["traceEvents"], told = made if isinstance(made, tuple) else (made, None)
        changed = os.path.join(folder, "changed.json")
        with open(changed, "w", encoding="utf-8") as stream:
            json.dump(document, stream)
        after = check_traces.analyze(binary, changed, *reports)
        if told and isinstance(after, dict):
            after["diff"] = compared(binary, path, changed)
    for report in (before, after):
        if isinstance(report, str):
            checks.say(False, f"{label} runs", report)
            return
    ask(checks, label, before, after, told)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(check_traces.ROOT, "build"))
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(check_traces.ROOT, "..", "shared", "traces")))
    parser.add_argument("--only", default="", help="only rows that have this text")
    return parser.parse_args()


def main():
    options = arguments()
    checks = check_traces.Checks()
    binary = os.path.join(options.bin, "tacho-analyze")
    with tempfile.TemporaryDirectory(prefix="tacho-changed-") as folder:
        for row in CHANGES:
            path = os.path.join(options.traces, row[0] + ".json.gz")
            if options.only not in f"{row[0]} {row[1]}":
                continue
            if not os.path.exists(path):
                print(f"skip {row[0]}: not in {options.traces} (set TACHO_TRACES)")
                continue
            check_row(checks, binary, path, row, folder)
        path = os.path.join(options.traces, SMALL + ".json.gz")
        if options.only in "jobs" and os.path.exists(path):
            os.mkdir(os.path.join(folder, "ranks"))
            check_jobs(checks, binary, path, os.path.join(folder, "ranks"))
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())

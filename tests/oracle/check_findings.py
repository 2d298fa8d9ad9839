#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Labelled runs: the right finding wins with the saving that was built in, the others are silent.

    check_findings.py --bin DIR [--only TEXT] [--keep DIR]

Every rule that `tacho-analyze` can print must have a run where it is right, one where it is silent, and a
proof that it promises no more than there is: here, or in check_bounds.py.
"""
import argparse
import dataclasses
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import check_bounds         # noqa: E402
import check_traces         # noqa: E402
import labelled_findings    # noqa: E402
import labelled_logs        # noqa: E402
import random_verdicts      # noqa: E402
import verdict              # noqa: E402

RARE = 300
# They are silent in the scenes of others: one step of RARE says nothing of what they are about.
ALWAYS = {"slow_kernels", "gc_pause", "long_tail", "fragmentation"}
ODD = re.compile(r"(?<![\d.,])0 .s of|\b1 (kernels|copies|fills|steps|calls|launch calls)\b|nan|inf\b|\(null\)"
                 r"|  |\b0 (kernels|copies)|\.\.|(?<![\w.:,#])(?<!step )\d{4}|\d,\d+\.\d MiB")
PLACES = re.compile(r"<?[\d.,]+ of <?[\d.,]+ (s|ms|\u00b5s) in ")


def report(binary, paths):
    run = check_traces.analyze(binary, paths[0], *paths[1:], "--report", "findings")
    return run if isinstance(run, dict) else {"error": run}


def check_words(checks, name, row, scene):
    checks.say(scene.advice in row["advice"], f"{name} advice says {scene.advice!r}",
               row["advice"])
    checks.say(scene.evidence in row["evidence"], f"{name} evidence says {scene.evidence!r}",
               row["evidence"])
    checks.say(row["evidence"].endswith(".") and len(row["evidence"]) < 395 and
               not ODD.search(row["evidence"]), f"{name} evidence is a sentence",
               row["evidence"])


def check_brief(checks, name, rows):
    """Something of it stands in the list next to the prompt, before the advice."""
    for row in rows:
        brief = row["brief"]
        checks.say(3 < len(brief) <= 40 and not ODD.search(brief) and not brief.endswith("."),
                   f"{name}: {row['rule']} in a few words", brief)


def check_places(checks, name, rows):
    """They are in the unit of the savings, which is that of the longest step they are shares of."""
    step_ns = max([row["saving_ns_per_step"] / row["share_of_step"] * 100 for row in rows
                   if row["share_of_step"]], default=0)
    unit = "s" if step_ns > 9.999e9 else "ms" if step_ns > 0.999e6 else "\u00b5s"
    for row in rows:
        said = PLACES.match(row["where"] or "")
        checks.say(said[1] == unit if said else not row["where"],
                   f"{name}: places of {row['rule']} in {unit}", row["where"])
    if "long_launches" in {row["rule"] for row in rows}:    # what long ones took is theirs alone
        for row in rows:
            whole = re.match(r"[\d.,]+ of ([\d.,]+) ", row["where"] or "")
            ns = {"s": 1e9, "ms": 1e6, "\u00b5s": 1e3}[unit]
            checks.say(not whole or not row["rule"].startswith("l")
                       or float(whole[1].replace(",", "")) * ns <= row["most_ns_per_step"] + ns / 9,
                       f"{name}: {row['rule']} counts its own time", row["where"])


def check_scene(checks, name, scene, got, is_whole=True):
    """`is_whole`: all time is in steps that count."""
    if "error" in got:
        checks.say(False, f"{name} runs", got["error"])
        return
    rows = got["findings"]
    named = {row["rule"]: row for row in rows}
    said = got["verdict"]
    checks.same(f"{name} verdict", (said["bound"], said["also"]), (scene.verdict, scene.also))
    checks.say(not scene.also or f" {scene.also} weighs nearly as much: " in said["sentence"],
               f"{name} verdict in words", said["sentence"])
    if scene.verdict == "INPUT":
        loader = "without a loader" not in name
        checks.say(("for the data loader" in said["sentence"]) == loader,
                   f"{name}: a loader is named where there is one", said["sentence"])
    if is_whole and not (scene.before or scene.setup or scene.ranks > 1):
        checks.same(f"{name} verdict by its figures", verdict.verdict(got),
                    (scene.verdict, scene.also))
    want = {scene.rule, *scene.companions} - {None}
    checks.same(f"{name} findings", sorted(named), sorted(want))
    check_brief(checks, name, rows)
    check_places(checks, name, rows)
    for words in scene.unsaid:
        checks.say(not any(words in row["advice"] for row in rows), f"{name} {words!r} unsaid")
    twice = verdict.counted_twice_ns(got)
    checks.say(twice <= 0, f"{name} counts idle time once", f"{twice:.0f} ns too much")
    checks.same(f"{name} promises no more than there is", verdict.beyond(got), [])
    row = named.get(scene.rule)
    if scene.rule is None or row is None:
        return
    saving = row["saving_ns_per_step"] / 1000
    checks.say(abs(saving - scene.saving) <= 0.5 * 1e-3 + 1e-6 * scene.saving,
               f"{name} saving of {scene.saving:.3f} us", f"got {saving}")
    if scene.first:
        checks.say(rows[0]["rule"] == scene.rule and
                   all(other["saving_ns_per_step"] < row["saving_ns_per_step"]
                       for other in rows[1:]), f"{name} is the first",
                   str([(one["rule"], one["saving_ns_per_step"]) for one in rows]))
    check_words(checks, name, row, scene)
    checks.say("ranges such as ## embed" not in row["evidence"] or " in ## embed ##" in row["where"],
               f"{name}: the place of what it says", row["where"])


def check_settling(checks, name, scene, got):
    """The families, and all of compute, are a counted step, no more and no less, with the time of the rule."""
    rank, rows = got["ranks"][0], {row["family"]: row["most_ns"] for row in got["families"]}
    checks.same(f"{name}: steps", [rank[key] for key in ("complete_steps", "window_steps", "settling_steps")],
                [scene.steps - 1, scene.steps, 1])
    whole = sum(rows.values()) + 2 * rows["COMPUTE"]
    checks.say(abs(whole - 1000 * labelled_findings.STEP) < 10, f"{name}: all families are a step", str(rows))
    hole = scene.hole[1] - scene.hole[0]
    checks.say(abs(3 * rows["COMPUTE"] - 1000 * (labelled_findings.STEP - hole)) < 10,
               f"{name}: compute of a counted step", str(rows))


def check_page_and_diff(checks, name, scene, binary, path):
    """What a page and a diff have per step is of as many steps as the window holds."""
    page = subprocess.run([binary, path], capture_output=True, text=True, check=False).stdout
    checks.say(f" = window / {scene.steps}\n" in page, f"{name}: the page's steps", page[-2000:])
    run = subprocess.run([binary, "--diff", path, path, "-f", "json"], capture_output=True,
                         text=True, check=False)
    got = json.loads(run.stdout)
    checks.same(f"{name}: complete steps of a side", got["a"]["steps"], scene.steps - 1)
    parts = {row["class"]: row["a_ns"] for row in got["parts"]}
    beside = parts.get("outside_steps", 0)
    after = 9000000 / scene.steps if scene.rule == "long_tail" else 0
    checks.say(abs(beside + after) < 10, f"{name}: a diff's parts are a step", str(parts))


def check_all(checks, binary, folder, only):
    tested = set()
    for name, scene in labelled_findings.scenes().items():
        tested.add(scene.rule)
        if only not in name:
            continue
        paths = []
        for rank, trace in enumerate(labelled_findings.traces(scene)):
            paths.append(os.path.join(folder, f"{name.replace(' ', '_')}.{rank}.json"))
            labelled_findings.write(paths[-1], trace)
        check_scene(checks, name, scene, report(binary, paths))
    for scene, data in labelled_logs.findings():
        tested.add(scene.rule)
        path = os.path.join(folder, f"{scene.rule}.tacho")
        with open(path, "wb") as stream:
            stream.write(data)
        got = report(binary, [path])
        check_scene(checks, f"log of {scene.rule}", scene, got, False)
        check_settling(checks, f"log of {scene.rule}", scene, got)
        check_page_and_diff(checks, f"log of {scene.rule}", scene, binary, path)
    return tested


def check_apart(checks, binary, folder):
    """A rank that starts late makes the first step of a log wait, which settles; a later step says what it costs."""
    for late_step, bound in ((0, "COMPUTE"), (3, "UNBALANCED")):
        paths = [os.path.join(folder, f"apart{late_step}.{rank}.tacho") for rank in range(2)]
        for path, data in zip(paths, labelled_logs.apart(500000, late_step)):
            with open(path, "wb") as stream:
                stream.write(data)
        got, name = report(binary, paths), f"a rank late in step {late_step}"
        waits = [rank["waits"]["wait_ns"] for rank in got["ranks"]]
        checks.same(f"{name}: waiting", waits, [500000000 if late_step else 0, 0])
        checks.same(f"{name}: all matched", [rank["waits"]["matched"] for rank in got["ranks"]], [10, 10])
        checks.same(f"{name}: waiting of the window", got["ranks"][0]["gpus"][0]["exposed_comm_wait_ns"], 500000000)
        checks.same(f"{name}: bound", got["verdict"]["bound"], bound)
        mean_ns = 10000000 + (500000000 / 9 if late_step else 0)
        want = 500000000 / 9 if late_step else 7200000
        checks.say(abs(got["verdict"]["ns_per_step"] - want) < 10 and
                   abs(got["verdict"]["share"] - 100 * want / mean_ns) < 0.01,
                   f"{name}: of a step", str(got["verdict"]))
        where = [row["where"] for row in got["findings"] if row["rule"] == "exposed_comm"]
        checks.say(bool(where) and where[0].startswith("100 of 100 % in backward") == (not late_step),
                   f"{name}: places of a wait in a settling step are in percent", str(where))


def check_verdicts(checks, binary, folder):
    """Those that are no family."""
    rows = {
        "NO GPU": [labelled_findings.cpu_only()],
        "NO VERDICT": labelled_findings.sampled(),
        "NO VERDICT ": [labelled_findings.start_only()],
        "NO VERDICT  ": [labelled_findings.start_that_copies()],
        "UNBALANCED": labelled_findings.sampled(2, labelled_findings.unequal),
    }
    for bound, traces in rows.items():
        paths = []
        for rank, trace in enumerate(traces):
            paths.append(os.path.join(folder, f"verdict.{rank}.json"))
            labelled_findings.write(paths[-1], trace)
        got = report(binary, paths)
        checks.same(f"verdict {bound}", got.get("verdict", got).get("bound"), bound.strip())
    path = os.path.join(folder, "verdict.0.json")
    for trace, words in ((labelled_findings.cpu_only(), "The step thread runs code outside of all phases for 9.9 ms"),
                         (labelled_findings.unrecorded_gpu(),
                          "1,200 launches but no GPU events: the GPU was not recorded")):
        labelled_findings.write(path, trace)
        got = report(binary, [path])["verdict"]
        recorded = "1,200" not in words
        checks.say(got["bound"] == "NO GPU" and words in got["sentence"] and
                   got["host_bound"] == ("HOST" if recorded else None),
                   "whether a GPU was not recorded", got["sentence"])
    path = os.path.join(folder, "cut.json")
    labelled_findings.write(path, labelled_findings.traces(
        labelled_findings.scenes()["data_wait"])[0])
    with open(path, "r+b") as stream:
        stream.truncate(os.path.getsize(path) * 2 // 3)
    got = check_traces.analyze(binary, path, "--report", "findings")
    good = isinstance(got, str) or got["verdict"]["bound"] == "NO VERDICT"
    checks.say(good, "no verdict on a file that was cut", str(got)[:200])


def check_random(checks, binary, folder, count):
    """Of random jobs the cause that costs most wins, and one that costs nearly as much is named."""
    wrong, near = [], 0
    path = os.path.join(folder, "random.json")
    for seed in range(count):
        trace, savings = random_verdicts.make(seed)
        labelled_findings.write(path, trace)
        got = report(binary, [path])
        first, second = sorted(savings, key=savings.get, reverse=True)[:2]
        said = got["verdict"]["bound"], got["verdict"]["also"]
        share = savings[second] / savings[first]
        near += share >= 0.8
        if share <= 1 / 1.5:
            good = said == (first, None)
        elif share >= 0.85:
            good = set(said) == {first, second}
        else:
            good = said[0] == first
        good &= got["findings"][0]["rule"] in random_verdicts.FIRST[said[0]]
        good &= not verdict.beyond(got) and verdict.counted_twice_ns(got) <= 0
        wrong += [] if good else [(seed, savings, said, got["findings"][0]["rule"])]
    checks.same(f"verdicts of {count} random jobs, {near} with two causes nearly alike", wrong[:3],
                [])


def check_silent(checks, binary, folder, only):
    """What happens in one of RARE steps, in which that rule applies, is not worth a finding."""
    silent = set()
    for name, scene in labelled_findings.scenes().items():
        if scene.rule in silent or scene.rule in ALWAYS:
            continue
        silent.add(scene.rule)
        if only not in name:
            continue
        paths = []
        for rank, trace in enumerate(labelled_findings.traces(
                dataclasses.replace(scene, steps=RARE, every=RARE))):
            paths.append(os.path.join(folder, f"rare.{rank}.json"))
            labelled_findings.write(paths[-1], trace)
        found = {row["rule"] for row in report(binary, paths)["findings"]}
        checks.say(scene.rule not in found, f"{name} in one of {RARE} steps", str(found))
    return silent


def rules_in_source():
    """Names in the tables of rules."""
    names = set()
    for path in glob.glob(os.path.join(check_traces.ROOT, "analyze", "findings", "*.c")):
        with open(path, encoding="utf-8") as stream:
            for table in stream.read().split("const struct rule rules_")[1:]:
                names.update(re.findall(r"\t\{ \"(\w+)\",", table))
    return names


def check_complete(checks, tested, silent):
    """Each rule has a run where it is right, one where it is silent, and a bound that is tested."""
    rules, proved = rules_in_source(), set(check_bounds.PROVED)
    bounded = {rule for part in verdict.PARTS.values() for rule in part} | proved
    checks.same("every rule has a run", sorted(rules - tested - proved), [])
    checks.same("every rule has a silent run", sorted(rules - silent - ALWAYS - proved), [])
    checks.same("every rule has a bound", sorted(rules - bounded), [])
    checks.same("rules that are gone", sorted((ALWAYS | bounded) - rules), [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(check_traces.ROOT, "build"))
    parser.add_argument("--only", default="")
    parser.add_argument("--random", type=int, default=100, help="how many random jobs")
    parser.add_argument("--keep", default="", help="a folder to leave the runs in")
    options = parser.parse_args()
    checks = check_traces.Checks()
    binary = os.path.join(options.bin, "tacho-analyze")
    with tempfile.TemporaryDirectory(prefix="tacho-findings-") as folder:
        folder = options.keep or folder
        tested = check_all(checks, binary, folder, options.only)
        check_complete(checks, tested, check_silent(checks, binary, folder, options.only))
        check_verdicts(checks, binary, folder)
        check_apart(checks, binary, folder)
        check_random(checks, binary, folder, options.random)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of servers by brute force (analyze/DEFINITIONS.md 3) beside `--report serving`.

    check_serving.py --bin DIR [--traces DIR] [--random N] [--first SEED]

Random files of each grammar, and the real ones, whose batch sizes are known.
"""
import argparse
import collections
import json
import os
import random
import statistics
import sys
import tempfile

from check_traces import Checks, analyze

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
REAL = {  # file: phase, batch, prefill, decode, tokens
    "graphs/vllm_decode_full/graph_execution.json.gz": ("decode", 32, 0, 32, 32),
    "graphs/sglang_decode/sglang_Qwen3-8B_decode.json.gz": ("decode", 32, 0, 32, 32),
    "kineto/vllm_piecewise_graphs.json.gz": ("mixed", 46, 9, 37, 8192),
}


def annotation(grammar, phase, c, g, prompt, r):
    """The name, and (batch, padded, prefill, decode, tokens) as far as it says them."""
    if grammar == "vllm":
        return (f"execute_context_{c}({prompt})_generation_{g}({g})",
                (c + g, None, c, g, prompt + g))
    if grammar == "vllm detailed":
        sums = "sk9sqsq9sqsk9"
        return (f"execute_{prompt + g}_context_{c}(sq{prompt}{sums})_generation_{g}(sq{g}{sums})",
                (c + g, None, c, g, prompt + g))
    word = {"prefill": "EXTEND", "decode": "DECODE", "mixed": "MIXED"}[phase]
    if grammar == "sglang":
        if phase == "mixed":
            return f"step[{word} bs={c + g}]", (c + g, None, None, None, None)
        tokens = f" toks={prompt}" if c else ""
        return f"step[{word} bs={c + g}{tokens}]", (c + g, None, c, g, prompt or g)
    if grammar == "sglang detailed":
        return (f"step[{word} bs={c + g} c={c} g={g} c_sq={prompt} c_sk=9 g_sq={g} g_sk=9]",
                (c + g, None, c, g, prompt + g))
    if phase == "prefill":
        return f"prefill[bs={c} tok={prompt} ctx=[1, 2]]", (c, None, c, 0, prompt)
    padded = g + r.randrange(9)
    return f"decode[bs={g}/{padded} tok={g} d={g}]", (g, padded, 0, g, g)


def random_job(r):
    grammar = r.choice(["vllm", "vllm detailed", "sglang", "sglang detailed", "atom"])
    events, steps, at = [], [], 1000
    most = r.choice([1, 8, 100])
    for _ in range(r.choice([1, 5, 60, 150])):
        phase = r.choices(
            ["decode", "prefill", "mixed"], [40, 1, 0 if grammar == "atom" else 1])[0]
        c = 0 if phase == "decode" else r.randint(1, most)
        g = 0 if phase == "prefill" else r.randint(max(1, most * 9 // 10), most)
        name, said = annotation(grammar, phase, c, g, c * 7, r)
        length = r.randint(80, 120)
        steps.append((at, at + length, phase, said))
        rows = [(name, at, length)]
        if grammar.startswith("vllm") and r.random() < 0.5:  # SGLang's own stands inside
            rows.append((f"step[DECODE bs={c + g}]", at + 1, length - 2))
        for text, begin, wide in rows:
            events.append({"ph": "X", "cat": "user_annotation", "name": text, "ts": begin,
                           "dur": wide, "pid": 7, "tid": 7})
        at += length + r.choices([0, 1, 50, 500], [40, 20, 20, 1])[0]
    r.shuffle(events)
    return {"traceEvents": events}, steps


def expected(steps):
    marks = [end - begin for begin, end, _, _ in steps]
    median = statistics.median(marks)
    largest = max(said[0] for *_, said in steps)
    runs, best = 0, (0, 0)
    for i, (begin, _, _, said) in enumerate(steps):
        goes_on = i and begin <= steps[i - 1][1] + int(median * 1000) / 1000
        runs = (runs if goes_on else 0) + 1 if said[0] * 10 >= largest * 9 else 0
        best = max(best, (runs, -i))
    steady = set()
    if best[0] >= 32:
        steady = set(range(-best[1] - best[0] + 1, -best[1] + 1))
    rows, sums = [], collections.defaultdict(lambda: [0] * 7)
    for i, (begin, end, phase, said) in enumerate(steps):
        following = steps[i + 1][0] if i + 1 < len(steps) else None
        joins = following is not None and following - end <= int(median * 1000 / 100) / 1000
        wall = ((following if joins else end) - begin) * 1000
        rows.append((i, phase, *said, wall, i in steady))
        one, said_wall = sums[phase], wall if said[4] is not None else 0
        for k, part in enumerate((1, wall, said[0], said[4] or 0, i in steady,
                                  (said[4] or 0) * (i in steady), said_wall * (i in steady))):
            one[k] += part
    return rows, {phase: tuple(one) for phase, one in sums.items()}


def got_of(report):
    rank = report["ranks"][0]
    rows = [tuple(row[key] for key in (
        "step", "phase", "batch_size", "padded_batch", "prefill_requests", "decode_requests",
        "tokens", "wall_ns", "steady")) for row in rank.get("serving_steps", [])]
    sums = {row["phase"]: tuple(row[key] for key in (
        "steps", "wall_ns", "requests", "tokens", "steady_steps", "steady_tokens",
        "steady_wall_ns")) for row in rank.get("serving", [])}
    return rows, sums


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    parser.add_argument("--random", type=int, default=60)
    parser.add_argument("--first", type=int, default=1)
    options = parser.parse_args()
    tool, checks, steady = os.path.join(options.bin, "tacho-analyze"), Checks(), 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "job.json")
        for seed in range(options.first, options.first + options.random):
            job, steps = random_job(random.Random(seed))
            with open(path, "w", encoding="utf-8") as out:
                json.dump(job, out)
            report = analyze(tool, path, "-q", "-r", "serving")
            rows, sums = expected(steps)
            if isinstance(report, str):
                checks.say(False, f"random {seed}", report)
                continue
            got = got_of(report)
            steady += any(row[-1] for row in rows)
            checks.same(f"random {seed}: {len(rows)} steps", got[0], rows)
            checks.same(f"random {seed}: by phase", got[1], sums)
    if options.random >= 60:
        checks.say(steady > 2, "some jobs have a steady state", str(steady))
    for name, want in REAL.items():
        path = os.path.join(options.traces, name)
        if not os.path.exists(path):
            print(f"skip {name}: not there")
            continue
        report = analyze(tool, path, "-q", "-r", "serving")
        rows = got_of(report)[0] if not isinstance(report, str) else report
        checks.same(name, [(row[1], row[2], *row[4:7]) for row in rows], [want])
    print(f"{checks.passed} passed, {checks.failed} failed")
    return checks.failed > 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--baseline, --junit and --annotate: a kept run compares as the run itself does, and what is written
for those who build and test is read again.

    check_baselines.py --bin DIR
"""
import argparse
import json
import os
import subprocess
import tempfile
import xml.etree.ElementTree as xml

bad = good = 0


def expect(holds, what):
    global bad, good
    good, bad = good + bool(holds), bad + (not holds)
    if not holds:
        print("not ok - " + what)


def write_run(path, steps, kernel_us, gpu="NVIDIA <H100> & \"more\""):
    events = []
    for i in range(steps):
        begin = i * (kernel_us + 2_000)
        jitter = (i * 7919) % 13
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "ts": begin,
             "dur": kernel_us + 1_900, "pid": 1, "tid": 1},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": begin + 10, "dur": 5,
             "pid": 1, "tid": 1, "args": {"correlation": i + 1}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "ts": begin + 20, "dur": kernel_us + jitter,
             "pid": 0, "tid": 7, "args": {"correlation": i + 1, "device": 0, "stream": 7}}]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": gpu}],
                   "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}, file)


class Tool:
    def __init__(self, binaries, folder):
        self.tool, self.folder = os.path.join(binaries, "tacho-analyze"), folder

    def __call__(self, *words):
        done = subprocess.run([self.tool, *words, "-q"], cwd=self.folder, capture_output=True)
        return done.returncode, done.stdout.decode(), done.stderr.decode()


def without_paths(text):
    whole = json.loads(text)
    for side in "ab":
        del whole[side]["path"]
    return whole


def check_kept(run):
    """Faster, slower, equal: the answer is that of both runs themselves."""
    for a, b, code in (("a.json", "b.json", 3), ("b.json", "a.json", 0), ("a.json", "a.json", 0)):
        expect(run(a, "--baseline", "main")[0] == 0, f"keep {a}")
        direct, kept = run("--diff", a, b, "-f", "json"), run("--diff", b, "--baseline", "main", "-f", "json")
        expect(direct[0] == kept[0] == code, f"{a} {b}: exit {direct[0]} and {kept[0]}, want {code}")
        expect(without_paths(direct[1]) == without_paths(kept[1]), f"{a} {b}: other figures")
        # both sides may be files of --partial
        run("--partial", "a.part", a), run("--partial", "b.part", b)
        parts = run("--diff", "a.part", "b.part", "-f", "json")
        expect(without_paths(direct[1]) == without_paths(parts[1]), f"{a} {b}: other figures of parts")
    code, _, said = run("--diff", "b.json", "--baseline", "main", "--steps", "2-5")
    expect(code == 2 and "stored with different options" in said and "steps=2-5" in said, said)
    code, _, said = run("--diff", "b.json", "--baseline", "none")
    expect(code != 0 and ".tacho-baselines/none" in said, said)


def check_damage(run, folder):
    run("a.json", "--baseline", "main")
    path = os.path.join(folder, ".tacho-baselines", "main")
    with open(path, "rb") as file:
        whole = file.read()
    for end in [*range(8, 64), *range(64, len(whole), len(whole) // 40)]:
        with open(path, "wb") as file:
            file.write(whole[:end])
        code, out, said = run("--diff", "b.json", "--baseline", "main")
        expect(code in (4, 1, 2, 5) and not out and said.count("\n") == 1 and "main" in said,
               f"cut at {end}: exit {code}, {said}")


def check_junit(run, folder):
    for a, b, failures in (("a.json", "b.json", 1), ("a.json", "a.json", 0)):
        code, out, _ = run("--diff", a, b, "--junit", "j.xml", "--annotate")
        suite = xml.parse(os.path.join(folder, "j.xml")).getroot().find("testsuite")
        cases = suite.findall("testcase")
        expect(int(suite.get("failures")) == failures == len(suite.findall("testcase/failure")), "failures")
        expect(int(suite.get("tests")) == len(cases) == 2, "tests")
        expect(int(suite.get("skipped")) == len(suite.findall("testcase/skipped")), "skipped")
        said = json.loads(run("--diff", a, b, "-f", "json")[1])
        expect(cases[1].find("system-out").text.startswith(said["sentence"]), "the sentence")
        expect(("By replay of the median step" in cases[1].find("system-out").text) ==
               (len(said["edits"]) > 0 and said["unexplained_ns"] is not None), "edits")
        numbers = {p.get("name"): int(p.get("value")) for p in suite.find("properties")}
        expect(numbers == {"a.mean_step_ns": said["a"]["mean_ns"], "b.mean_step_ns": said["b"]["mean_ns"]},
               "means")
        line = out.splitlines()[-1]
        expect(line.startswith("::error " if failures else "::notice "), line)
        expect(said["sentence"].replace("%", "%25") in line and code == (3 if failures else 0), line)
    run("--diff", "a.json", "other.json", "--junit", "j.xml")
    suite = xml.parse(os.path.join(folder, "j.xml")).getroot().find("testsuite")
    text = suite.find("testcase[@name='equal conditions']/system-out").text
    expect("<H100> & \"more\"" in text and "AMD" in text, text)


def check_usage(run):
    for words in (("a.json", "--junit", "x"), ("a.json", "--annotate"), ("a.json", "--baseline", "a/b"),
                  ("a.json", "--baseline", ".."), ("--diff", "a.json", "b.json", "--baseline", "main"),
                  ("--diff", "a.json", "b.json", "--annotate", "-f", "json"),
                  ("a.json", "--baseline", "m", "--partial", "p")):
        code, _, said = run(*words)
        expect(code == 2 and said.count("\n") == 1, f"{words}: {code} {said}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    binaries = os.path.abspath(parser.parse_args().bin)
    with tempfile.TemporaryDirectory() as folder:
        write_run(os.path.join(folder, "a.json"), 40, 8_000)
        write_run(os.path.join(folder, "b.json"), 40, 8_900)
        write_run(os.path.join(folder, "other.json"), 40, 8_000, "AMD MI300X")
        run = Tool(binaries, folder)
        check_kept(run)
        check_damage(run, folder)
        check_junit(run, folder)
        check_usage(run)
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())

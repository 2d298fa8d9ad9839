# SPDX-License-Identifier: Apache-2.0
"""Pages in terminals of five widths: no line is longer than asked, no figure is cut.  Nothing is written as 0.0, also for
a browser; pages of jobs without a GPU do not speak of one; times of a sentence have one unit.

usage: widths.py --bin BUILD [TRACE...]

Every report of the traces (default: jobs that are generated here) is printed at each width.  Lines are
measured as a terminal does; a figure of a narrow page must stand in the widest page of the same report too.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oracle"))

import units    # noqa: E402

WIDTHS = [200, 140, 100, 80, 60]
FIGURE = re.compile(r"(?<=  )[0-9][0-9,]*\.[0-9]+(?=  |$)", re.M)
GLUED = re.compile(r"^ +(where|wher(?!e)|try)[^ ]")  # the label of a place or a remedy, at its words
NOTHING = re.compile(r"(?<![0-9.,])0\.0+(?![0-9])")  # a dash where there is nothing, <0.1 where there is little
NO_GPU = re.compile(r"no GPU|NO GPU")
WITHOUT = "-without-gpu"  # the same job
SPREAD = re.compile(r"(min|median|p90|p99|max) ([0-9][0-9,.]*[0-9])")  # of steps: on every page
CUT = re.compile(r"  [0-9][0-9,.]*…( |$)")


def columns(line):
    """Of a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def page(tool, args, width):
    env = dict(os.environ, COLUMNS=str(width), LC_ALL="C.UTF-8", NO_COLOR="1")
    done = subprocess.run([tool, "-q"] + args, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode()


def other_pages(tool, args):
    """For a browser as its reader sees it, and for Markdown."""
    browser = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page(tool, args + ["-f", "html"], 100), flags=re.S)
    return {"html": browser, "md": page(tool, args + ["-f", "md"], 100)}


def check_words(tool, args):
    pages = dict(other_pages(tool, args), text=page(tool, args, 100))
    has_operators = set()
    for name, text in pages.items():
        if args[0].endswith(WITHOUT) and not re.search(r"\b[A-Z]+ BOUND\b", text):
            yield f"{name}: does not say what bounds the job"
        if "not known" in text and "replay may save" in text:
            yield f"{name}: speaks of a replay that there is not"
        for clause in units.mixed(text) if name == "md" else []:
            yield f"{name}: units differ: {clause}"
        for line in text.split("\n"):
            if NOTHING.search(line):
                yield f"{name}: {NOTHING.search(line)[0]} in: {line[:120]}"
            if args[0].endswith(WITHOUT) and line.lstrip("# ").upper().startswith("OPERATORS"):
                has_operators.add(name)
            if name == "html" and args[0].endswith(WITHOUT) and "(replay)" in line:
                yield f"html: speaks of a replay that there is not: {line[:120]}"
            if args[0].endswith(WITHOUT) and "GPU" in NO_GPU.sub("", line):
                yield f"{name}: speaks of a GPU: {line[:120]}"
    if args[0].endswith(WITHOUT) and has_operators != set(pages):
        yield f"operators are in {sorted(has_operators)} only"


def check(tool, args):
    """What is wrong with the pages of one command line."""
    widest = spread = None
    for width in WIDTHS:
        text = page(tool, args, width)
        figures = set(FIGURE.findall(text))
        widest = figures if widest is None else widest
        found = set(SPREAD.findall(" ".join(text.split())))
        spread = found if spread is None else spread
        if found != spread:
            yield f"{width}: {found} for {spread}"
        if len(text) < 50:
            yield f"{width}: no page"
        for line in text.split("\n"):
            if columns(line) > width:
                yield f"{width}: {columns(line)} columns: {line}"
            if CUT.search(line):
                yield f"{width}: a figure is cut: {line}"
            if GLUED.search(line):
                yield f"{width}: a label runs into its words: {line}"
        for figure in sorted(figures - widest):
            yield f"{width}: {figure} is not in the widest page"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("traces", nargs="*")
    a = parser.parse_args()
    tool = os.path.join(os.path.abspath(a.bin), "tacho-analyze")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        rows = [[path] for path in a.traces]
        if not rows:
            for ranks in ("1", "3", "12"):
                where = os.path.join(scratch, ranks)
                subprocess.run([os.path.join(a.bin, "samples/generate"), "--out", where, "--events", "20000",
                                "--ranks", ranks, "--slow-rank", "0"], check=True, stdout=subprocess.DEVNULL)
                subprocess.run([os.path.join(a.bin, "tacho-convert"), "-q", where, "--kinds", "range", "-t", "chrome", "-o", where + WITHOUT],
                               check=True)
                rows += [[where], [where + WITHOUT], [where, "--steps", "3"]]
            rows.append(["--diff", os.path.join(scratch, "3/r0.tacho"), os.path.join(scratch, "3/r1.tacho")])
        for inputs in rows:
            for reports in ([],) if inputs[0] == "--diff" else (["-r", "summary"], ["-r", "all"]):
                wrong = list(check(tool, inputs + reports))
                if reports == ["-r", "summary"]:
                    wrong += check_words(tool, inputs)
                for line in wrong[:10]:
                    print(f"not ok - {' '.join(inputs + reports)}: {line}")
                passed += not wrong
                failed += bool(wrong)
    print(f"widths: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

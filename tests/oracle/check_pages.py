#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages for people (html, md) of every shared trace and of a hostile one.

Well-formed and escaped, nothing fetched, under 2 MB; the figures of html and md are those of the
terminal's page; colours have the contrast that the style sheet promises.
"""
import argparse
import glob
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import units    # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
VOID = {"meta", "br", "link", "rect", "path", "line", "circle"}
HOSTILE = '<script>alert("1")</script>&"\'|`](x) \u202e\x01</td></table><img src=x onerror=y>'


class Page(html.parser.HTMLParser):
    """Balanced or an error; collects what stands in cells and what a browser would fetch or run."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.errors, self.cells, self.text, self.bars = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag in ("script", "link", "img", "iframe", "object") or any(
                a.startswith("on") or (a in ("src", "href") and not attrs[a].startswith("#")) for a in attrs):
            self.errors.append("<%s %r> fetches or runs" % (tag, attrs))
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        width = re.match(r"width:([\d.]+)%", attrs.get("style", ""))
        if tag == "i" and width:
            self.bars.append(float(width.group(1)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.errors.append("</%s> closes nothing" % tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_data(self, data):
        self.text.append(data)
        if self.cells and self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


class Counts:
    def __init__(self):
        self.good = self.bad = 0

    def holds(self, what, condition, more=""):
        self.good += bool(condition)
        self.bad += not condition
        if not condition:
            print("not ok - %s %s" % (what, str(more)[:300]))


def analyze(tool, words):
    done = subprocess.run([tool, *words], capture_output=True, timeout=600, env={**os.environ, "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "replace")


def figures(text):
    return re.findall(r"(?<![\w.,])\d[\d,]*\.\d+(?![\w.])", text)


def check_units(counts, name, *pages):
    mixed = [clause for page in pages for clause in units.mixed(page)]
    counts.holds(name + ": times of a sentence have one unit", not mixed, mixed)


def check_head(counts, name, source):
    head = re.search(r"<h1>(.*?)</h1>", source, re.S)
    counts.holds(name + ": one sentence heads the page", head and not re.search(r"\. [A-Z-]", head[1]), head and head[1])


def check_page(counts, tool, path):
    name = os.path.basename(path)
    code, text, _ = analyze(tool, [path, "-q"])
    hcode, source, err = analyze(tool, [path, "-q", "-f", "html"])
    counts.holds(name + ": html has text's exit code", code == hcode, err)
    dashes = re.search(r"\u2212 *\u2013", text)  # what a replay saves is known, 0 too
    counts.holds(name + ": a saving is a number", not dashes, dashes and text[dashes.start():][:80])
    page = Page()
    page.feed(source)
    page.close()
    counts.holds(name + ": well-formed", not page.errors and not page.open, page.errors or page.open)
    check_head(counts, name, source)
    counts.holds(name + ": nothing from elsewhere", not re.search(r"https?://|url\((?!#)|@import", source))
    counts.holds(name + ": under 2 MB", len(source) < 2_000_000, len(source))
    counts.holds(name + ": bars fit", all(0 <= w <= 100.01 for w in page.bars), page.bars)
    block = text[text.index("GPU TIME"):].split("\n\n")[0].split("\n") if "GPU TIME" in text else []
    identity = figures("\n".join(line[2:36] for line in block[2:]))
    said = " ".join(page.text)
    missing = [f for f in identity if f not in figures(said)]
    counts.holds(name + ": the identity of the terminal", "no GPU" in said or (identity and not missing), missing)
    mcode, md, err = analyze(tool, [path, "-q", "-f", "md"])
    counts.holds(name + ": md has text's exit code", code == mcode, err)
    rows = [line for line in md.split("\n") if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    starts = [i for i, row in enumerate(rows) if row.startswith("|---")]
    even = all(widths[i] == widths[i - 1] for i in starts)
    counts.holds(name + ": tables of md are even", rows and even, widths)
    check_units(counts, name, md, "\n".join(page.text))
    return source, md


def hostile(folder):
    """A small job whose every name would break a page."""
    events, t = [], 1_000_000.0
    for step in range(3):
        events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d" % step, "pid": 1, "tid": 1,
                       "ts": t, "dur": 900.0})
        for i in range(4):
            n = step * 4 + i + 1
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                           "ts": t + 10 + i * 100, "dur": 5.0, "args": {"correlation": n}})
            events.append({"ph": "X", "cat": "kernel", "name": HOSTILE + str(i), "pid": 0, "tid": 7, "ts": t + 30 + i * 100,
                           "dur": 50.0, "args": {"correlation": n, "device": 0, "stream": 7, "context": 1}})
        events.append({"ph": "X", "cat": "user_annotation", "name": HOSTILE, "pid": 1, "tid": 1, "ts": t + 500, "dur": 300.0})
        t += 1000
    path = os.path.join(folder, "hostile<b>.json")
    with open(path, "w") as f:
        json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": HOSTILE}], "traceEvents": events}, f)
    return path


def luminance(colour):
    colour = colour.lstrip("#")
    if len(colour) == 3:
        colour = "".join(c * 2 for c in colour)
    parts = [int(colour[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    a, b = sorted((luminance(a), luminance(b)))
    return (b + 0.05) / (a + 0.05)


def check_colours(counts, source):
    style = source[source.index("<style>"):source.index("</style>")]
    themes = re.findall(r":root\{([^}]*)\}", style)
    counts.holds("two themes", len(themes) == 2)
    for theme in themes:
        tokens = dict(re.findall(r"--(\w+):(#[0-9a-f]+)", theme))
        for token, least in (("text", 6.1), ("dim", 6.1), ("warn", 6.1), ("compute", 3.2), ("comm", 3.2), ("data", 3.2),
                             ("forward", 3.2), ("backward", 3.2), ("optimizer", 3.2), ("aside", 3.2), ("other", 3.2)):
            value = contrast(tokens[token], tokens["paper"])
            counts.holds("contrast of %s" % token, value >= least, "%.2f" % value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=os.path.join(ROOT, "build"))
    parser.add_argument("--traces", default=os.environ.get("TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    args = parser.parse_args()
    tool = os.path.join(args.bin, "tacho-analyze")
    counts = Counts()
    with tempfile.TemporaryDirectory() as folder:
        source, md = check_page(counts, tool, hostile(folder))
        check_colours(counts, source)
        counts.holds("md: no raw HTML", not re.search(r"(?<!\\)<", md))
        paths = sorted(glob.glob(os.path.join(args.traces, "kineto", "*.json.gz")))
        if not paths:
            print("pages: no shared traces here: the made one only")
        for path in paths:
            check_page(counts, tool, path)
        for pattern in ("judged/*", "xplane/*.pb", "nsys/*", "straggler/timeline*", "graphs/*/*.gz", "rocprof/*.gz"):
            for path in sorted(glob.glob(os.path.join(args.traces, pattern))):
                if not path.endswith(".md"):
                    check_units(counts, os.path.basename(path), analyze(tool, [path, "-q", "-f", "md"])[1])
                    check_head(counts, os.path.basename(path), analyze(tool, [path, "-q", "-f", "html"])[1])
    print("%d passed, %d failed" % (counts.good, counts.bad))
    return counts.bad > 0


if __name__ == "__main__":
    sys.exit(main())

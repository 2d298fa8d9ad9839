#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of the tools give the same bytes: the outputs of many command lines, side by side.

    compare_builds.py --record REF --bin OLD_BUILD                      keeps what OLD_BUILD gives
    compare_builds.py --against REF --bin NEW_BUILD [--quick] [WORD...] compares NEW_BUILD with it

For changes that must not change anything: exit code, standard error and each byte of each output.
Inputs are the real traces (--traces, $TACHO_TRACES or ../shared/traces), jobs of samples/generate, logs
and parts that the build makes of these, and damaged copies. A case is one command line and has no other
name; --list prints all of them. --quick takes those of small inputs. Of WORDs a case must have all.
"""
import argparse
import concurrent.futures
import difflib
import fcntl
import glob
import gzip
import hashlib
import json
import os
import random
import resource
import shlex
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import zlib

import tool_names

QUICK_BYTES = 130_000   # a larger trace is none of --quick
LONGEST_S = 300         # a command that runs so long hangs, and is killed
OUTPUTS = ["chrome -o o.json", "chrome --args full -o o.json", "perfetto -o o.pftrace", "perfetto --args full -o o.pftrace",
           "tensorboard -o o/", "csv -o o.csv", "csv --args full -o o.csv", "text --args full", "sqlite -o o.db",
           "parquet -o o/",
           "memory -o o.json", "bundle -o o.tar", "log -o o.tacho"]
# A case that begins with one of these and a width prints to a terminal of such colours.
TERMINALS = {"plain": {}, "dark": {"COLORTERM": "truecolor"}, "light": {"COLORTERM": "24bit", "COLORFGBG": "0;15"}}
DRAWN = [f"{colours}:{width}" for colours in TERMINALS for width in (80, 120)]
FORMATS = ["-f text", "-f html", "-f md", "-f tfevents -o o/"]
ANALYSES = [
    "-r summary,phases,steps --per-step -f json", "--compat hta -f json", "--compat hta", "--view lightning -r phases",
    "--view metrics -r phases", "--phases made/rules.json -r summary,phases,kernels"]
DIFFS = [f"-f {kind}" for kind in ("text", "html", "md", "json", "csv")] + ["--fail-over 1%", "--phases made/rules.json"]
CUTS = ["--steps 6-8", "--steps 3", "--from 2ms --to 300ms", "--kinds kernel,memcpy", "--kinds api,range,step",
        "--names '*gemm*'", "--devices 0", "--ranks 1-2"]
RULES = {"phases": [{"phase": "load", "match": "[Dd]ata"}, {"phase": "forward", "match": "^aten::conv"}],
         "steps": ["^ProfilerStep"], "communication": ["nccl", "gemm"]}
K, J, SQLITE = "traces/kineto/", "traces/judged/", "traces/nsys/h100_2gpu_1s.sqlite"
DLRM, SLOW, FOUR = J + "dlrm_8ranks", K + "v100_resnet50_slow_loader_2021.json.gz", J + "v100_resnet50_four_workers_2021.json.gz"
JOB, SMALL = [K + f"job128_sampled_rank{i}.json.gz" for i in (0, 1)], K + "no_rank.json.gz"
# Inputs, each with: is it small?
GENERATED = [("one", True, "--events 8000"), ("seed7", True, "--events 4000 --seed 7 --kineto"),
             ("slow", True, "--events 4000 --ranks 3 --slow-rank 1 --seed 2"),
             ("clocks", True, "--events 4000 --ranks 4 --ranks-per-host 2 --skew-ns 150000 --drift-ns 2000"),
             ("kineto", False, "--events 30000 --ranks 2 --kineto --seed 3"), ("big", False, "--events 120000 --seed 4")]
SEVERAL = [(DLRM, True), (" ".join(JOB), True), ("made/clocks", True), ("made/slow", True), ("traces/xplane", True),
           ("made/kineto", False), ("traces/graphs/sglang_decode", False), ("traces/graphs/vllm_decode_full", False)]
PAIRS = [(K + "compare_base.json.gz", K + "compare_test.json.gz", True), (SLOW, FOUR, False), (FOUR, SLOW, False),
         (*JOB, True), ("made/slow", "made/clocks", True), (JOB[0], JOB[0], True)]
TO_CUT = [(SLOW, False), ("made/clocks", True), ("made/one/r0.tacho", True), (DLRM, True), (SQLITE, False)]
TO_DAMAGE = {"json": K + "a100_simple_add_sync.json.gz", "gz": SMALL, "tacho": "made/one/r0.tacho",
             "pb": "traces/xplane/jax_te_mi300.xplane.pb", "sqlite": SQLITE}
PARTS = {"a": f"{DLRM}/rank0.json.gz {DLRM}/rank5.json.gz", "b": f"{DLRM}/rank3.json.gz", "c": JOB[0], "d": JOB[1]}
# What --explain knows beside the keys of the JSON schema: causes, phases, rules of findings, paths of both.
FIGURES = """lost before_window unknown graph_internal stream_wait launch dispatch profiler compile sync blocking_copy
    allocator gc data host validation checkpoint optimizer backward forward other unattributed data_wait device_copy
    elementwise exposed_comm exposed_download exposed_upload fp32_conv fp32_gemm fp8 fragmentation gc_pause graph_gaps
    headroom host_sync late_start launch_bound layout long_launches long_tail loop_overhead memory_leak memset_fill
    one_kernel optimizer_host optimizer_loop pageable_copy peer_copy short_kernels slow_steps small_collectives straggler
    unfused_attention unused_parameters zero_grad gpus.idle_ns phases.data.wall_ns host:forward exposd_com""".split()
TOOLS = ["tacho-convert", "tacho-analyze", "tacho-record"]
LINES = [f"{tool} {word}" for tool in TOOLS for word in ("", "--help", "--version")] + [
    *(f"/bin/cat build/man/{tool}.1" for tool in TOOLS), "tacho-record --print-config", "tacho-record --window steps:9-1 -- true",
    "tacho-record --preset periodic --print-config", "tacho-record --memory 1X -- true", "tacho-record --ctl 1",
    "samples/train_mlp --steps 8", "tacho-analyze --schema", "tacho-analyze --schema --diff", "tacho-analyze --schema --compat hta",
    f"tacho-convert {SMALL} -t tape", f"tacho-convert {SMALL} -t csv --kinds kernels", f"tacho-convert {SMALL} -t csv --from noon",
    f"tacho-convert {SMALL} missing.json -t csv", f"tacho-analyze {SMALL} missing.json", f"tacho-analyze {SMALL} -f pdf",
    f"tacho-analyze {SMALL} -r gaps", "tacho-analyze traces/straggler", "tacho-convert traces/tracelens -t csv",
    *(f"tacho-convert - -t {kind} <{SMALL}" for kind in ("chrome", "csv", "text", "perfetto", "sqlite", "log", "bundle", "memory")),
    *(f"tacho-convert {SMALL} -t {kind}" for kind in (
        "chrome -o o.json.gz", "perfetto -o o.pftrace.gz", "csv -o o.csv.gz", "bundle -o o.tar.gz", "bundle -o o.tar.zst",
        "bundle -o o.zip"))]


def log_of(inputs):
    """Where the log of these inputs is made."""
    return "made/" + inputs.replace("/", "_").replace(" ", "_") + ".tacho"


def find_inputs(traces):
    """Each readable input with: is it small?  And those that must be refused in the same words."""
    found = [f for f in sorted(glob.glob(f"{traces}/**", recursive=True)) if os.path.isfile(f)]
    refused = [f for f in found if "/straggler/" in f and not f.endswith(".gz") or "/rocprof/" in f or f.endswith("details.json")]
    good = [f for f in found if f.endswith((".json.gz", ".pb", ".sqlite")) and f not in refused]
    good = [("traces/" + os.path.relpath(f, traces), os.path.getsize(f) <= QUICK_BYTES) for f in good]
    good = [one for one in good if DLRM not in one[0] or one[0].endswith("rank0.json.gz")]
    good += [(f"made/{name}/r0." + ("json" if "--kineto" in how else "tacho"), quick) for name, quick, how in GENERATED]
    return good, ["traces/" + os.path.relpath(f, traces) for f in refused]


def make_cases(traces, figures, formats, reports):
    """Three lists of (command line, is it quick): each may read what those before it have made."""
    every = "-r " + ",".join(reports)
    pages = [f"{every} -f {kind}" for kind in ("text", "html", "md", "json")] + FORMATS
    analyses = pages + [f"-r {report} -f csv" for report in reports] + ANALYSES
    known = {how.split()[0] for how in OUTPUTS}
    outputs = OUTPUTS + [f"{kind} -o {tool_names.output(kind)}" for kind in formats if kind not in known]
    inputs, refused = find_inputs(traces)
    jobs = [(f"samples/generate --out made/{name} {how}", quick) for name, quick, how in GENERATED]
    made = [(f"tacho-convert {paths} -t log -o {log_of(paths)}", quick) for paths, quick in inputs + SEVERAL]
    made += [(f"tacho-analyze --partial made/{name}.part {paths}", True) for name, paths in PARTS.items()]
    cases = []

    def add(quick, *lines):
        cases.extend((line, quick) for line in lines)

    add(True, *LINES, *(f"{how} {path}" for path in refused for how in ("tacho-convert -t csv", "tacho-analyze")))
    for paths, quick in inputs + SEVERAL:
        for p in (paths, log_of(paths)):
            add(quick, *(f"tacho-convert {p} -t {kind}" for kind in outputs), f"tacho-analyze {p} {every} -f json")
        add(quick, *(f"tacho-analyze {paths} {how}" for how in analyses if how != f"{every} -f json"))
        add(quick, *(f"{terminal} tacho-analyze {paths}" for terminal in DRAWN), f"dark:100 tacho-analyze {paths} {every}")
        add(quick, f"tacho-convert {paths} -t chrome --max-size 100K -o o.json")
    for paths, quick in SEVERAL:
        add(quick, *(f"tacho-convert {paths} -t {kind} -o o/" for kind in ("chrome", "perfetto", "memory")))
        add(quick, *(f"tacho-convert {paths} -t csv --align {how}" for how in ("anchors", "collectives", "none")))
    for parts in ("b a", "c d", "a b c d", "a a"):
        names = " ".join(f"made/{part}.part" for part in parts.split())
        add(True, *(f"tacho-analyze --merge {names} {how}" for how in pages))
    for a, b, quick in PAIRS:
        add(quick, *(f"tacho-analyze --diff {a} {b} {how}" for how in DIFFS))
        add(quick, *(f"{terminal} tacho-analyze --diff {a} {b}" for terminal in DRAWN))
    for path, quick in TO_CUT:
        for how in ("convert {} -t csv", "convert {} -t text", "convert {} -t chrome -o o/", "convert {} -t log -o o.tacho",
                    "analyze {}", f"analyze {{}} {every} -f json"):
            add(quick, *(f"tacho-{how.format(path)} {cut}" for cut in CUTS))
    for how in ("--threads 1 --memory 32M", "--threads 4"):
        add(False, *(f"tacho-convert {SLOW} -t {kind} {how}" for kind in outputs), f"tacho-analyze {SLOW} {every} {how}")
    for figure in sorted({*figures, *FIGURES}):
        add(True, f"tacho-analyze --explain {figure}")
        add(figure in FIGURES, f"tacho-analyze --explain {figure} made/one")
        add(False, f"tacho-analyze --explain {figure} {DLRM}/rank0.json.gz", f"tacho-analyze --explain {figure} made/slow")
    add(False, *(f"dark:100 tacho-analyze --explain {figure} {SLOW}" for figure in FIGURES))
    for ending in TO_DAMAGE:
        for how in ("convert -t csv", "convert -t chrome --strict -o o.json", "analyze -r check,summary"):
            add(ending != "sqlite", *(f"tacho-{how} made/wrong{i}.{ending}" for i in range(6)))
    return jobs, made, cases


def write_inputs(work):
    """Rules of phases; six copies of an input of each kind: three cut short, three with wrong bytes."""
    with open(f"{work}/made/rules.json", "w", encoding="utf-8") as f:
        json.dump(RULES, f)
    chance = random.Random(1)
    for ending, path in TO_DAMAGE.items():
        with (gzip.open if ending == "json" else open)(f"{work}/{path}", "rb") as f:
            data = f.read()
        for i in range(6):
            wrong = bytearray(data[:len(data) * (i + 1) // 4] if i < 3 else data)
            for _ in range(0 if i < 3 else 4 ** (i - 2)):
                wrong[chance.randrange(len(wrong))] = chance.randrange(256)
            with open(f"{work}/made/wrong{i}.{ending}", "wb") as f:
                f.write(wrong)


def read_terminal(side):
    """All that a command writes to its terminal."""
    got = b""
    while True:
        try:
            piece = os.read(side, 65536)
        except OSError:     # nobody has the other side open any more
            piece = b""
        if not piece:
            os.close(side)
            return got
        got += piece


class Machine:
    """Runs commands of one build, each in a new folder with links to all that it reads."""

    def __init__(self, build, traces, work):
        self.work, self.links = work, {"traces": traces, "build": build, "made": f"{work}/made"}
        os.mkdir(f"{work}/made")
        os.symlink(traces, f"{work}/traces")
        self.env = {"PATH": "/usr/bin:/bin", "TZ": "UTC", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "COLUMNS": "100",
                    "TMPDIR": work, "HOME": work, "TACHO_THREADS": "2"}

    def execute(self, argv, folder, terminal):
        """Exit code, standard error, standard output.  A last word <FILE is standard input."""
        given = f"{folder}/{argv.pop()[1:]}" if argv[-1].startswith("<") else "/dev/null"
        colours, width = terminal.split(":") if terminal else ("plain", "0")
        side, other = os.openpty() if terminal else (None, subprocess.PIPE)
        if terminal:
            fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 50, int(width), 0, 0))
        with open(given, "rb") as stdin:
            child = subprocess.Popen(argv, cwd=folder, env={**self.env, **TERMINALS[colours]}, stdin=stdin, stdout=other,
                                     stderr=subprocess.PIPE)
        watch = threading.Timer(LONGEST_S, child.kill)
        watch.start()
        if terminal:
            os.close(other)
        drawn = read_terminal(side) if terminal else b""
        printed, said = child.communicate()
        watch.cancel()
        return child.returncode, said, printed or drawn

    def run(self, line):
        """Bytes by name: exit code, standard error and output, and each file that was written."""
        argv, folder = shlex.split(line), tempfile.mkdtemp(dir=self.work)
        for name, to in self.links.items():
            os.symlink(to, f"{folder}/{name}")
        terminal = argv.pop(0) if ":" in argv[0] else None
        argv[0] = argv[0] if argv[0].startswith("/") else "build/" + argv[0]
        code, *printed = self.execute(argv, folder, terminal)
        found = {"exit code": b"%d\n" % code}
        for name, data in zip(("standard error", "standard output"), printed):  # without folders of this run
            found[name] = data.replace(self.links["build"].encode(), b"BUILD").replace(self.work.encode(), b"WORK")
        for option in {"-o", "--out", "--partial"} & set(argv):
            path = os.path.join(folder, argv[argv.index(option) + 1]).rstrip("/")
            for file in [path, *glob.glob(path + "/**", recursive=True, include_hidden=True)]:
                if os.path.isfile(file):
                    with open(file, "rb") as f:
                        found[os.path.relpath(file, folder)] = f.read()
        shutil.rmtree(folder)
        return found


class Reference:
    """What a build gave: index.json of hashes by case and output, and the bytes of each hash, packed."""

    def __init__(self, folder):
        self.folder, self.index = folder, {}

    def keep(self, line, found):
        self.index[line] = {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
        for name, digest in self.index[line].items():
            if not os.path.exists(f"{self.folder}/{digest}"):
                with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as f:
                    f.write(zlib.compress(found[name], 1))
                os.rename(f.name, f"{self.folder}/{digest}")

    def read(self, digest):
        with open(f"{self.folder}/{digest}", "rb") as f:
            return zlib.decompress(f.read())

    def compare(self, line, found):
        """What differs, in lines of text."""
        kept = self.index.get(line, {})
        for name in sorted({*kept, *found}):
            if name not in kept or name not in found:
                yield f"{name}: only the " + ("new build has it" if name in found else "reference has it")
            elif hashlib.sha256(found[name]).hexdigest() != kept[name]:
                yield from (f"{name}: {text}" for text in difference(self.read(kept[name]), found[name]))


def lines_of(data):
    """The text in an output: unpacked, of a database its statements; None where there is no text."""
    try:
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        if data[:15] == b"SQLite format 3":
            base = sqlite3.connect(":memory:")
            base.deserialize(data)
            return list(base.iterdump())
        return None if b"\0" in data else data.decode().split("\n")
    except (UnicodeDecodeError, sqlite3.Error, OSError, EOFError):
        return None


def difference(old, new):
    """Of texts the first 20 lines of a diff, else the first place where two outputs differ."""
    a, b = lines_of(old), lines_of(new)
    if a is not None and b is not None:
        begin = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        # A diff of whole files may take minutes; what follows the first difference is enough.
        a, b = a[begin:begin + 100], b[begin:begin + 100]
        diff = difflib.unified_diff(a, b, f"old, from line {begin + 1}", "new", n=0, lineterm="")
        yield from (text[:200] for text, _ in zip(diff, range(22)))
        if max(map(len, a + b), default=0) < 200 and a != b:
            return
    at = len(os.path.commonprefix([old, new]))
    yield f"byte {at} of {len(old)}: {old[max(0, at - 30):at + 40]}"
    yield f"byte {at} of {len(new)}: {new[max(0, at - 30):at + 40]}"


def keys_of(schema):
    """Names of all properties in a JSON schema."""
    below = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else []
    mine = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return set(mine).union(*(keys_of(part) for part in below))


def help_of(reference, machine, tool):
    """What both builds have is compared: that of the reference, where there is one."""
    kept = reference.index.get(f"{tool} --help")
    text = reference.read(kept["standard output"]) if kept else machine.run(f"{tool} --help")["standard output"]
    return text.decode()


def run_all(a, reference, machine):
    schema = json.loads(machine.run("tacho-analyze --schema")["standard output"])
    formats, reports = (tool_names.listed(help_of(reference, machine, tool), heading) for tool, heading in (
        ("tacho-convert", tool_names.FORMATS), ("tacho-analyze", tool_names.REPORTS)))
    rounds = make_cases(machine.links["traces"], keys_of(schema), formats, reports)
    rounds = [[line for line, quick in cases if quick or not a.quick] for cases in rounds]
    asked = {line for cases in rounds for line in cases if all(word in line for word in a.words)}
    if a.list:
        print("\n".join(line for cases in rounds for line in cases if line in asked))
        return 0
    unseen = set(reference.index) - asked if a.against and not a.quick and not a.words else set()
    bad, begin = [f"not ok - {line}\n    only the reference has it" for line in sorted(unseen)], time.monotonic()
    print("\n".join(bad), end="\n" if bad else "")

    def run(line):
        found = machine.run(line)
        if line in asked and a.record:
            reference.keep(line, found)
        return line, list(reference.compare(line, found)) if line in asked and a.against else []

    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for number, cases in enumerate(rounds):
            if number == 1:
                write_inputs(machine.work)
            # What others read is made in any case.
            for line, said in pool.map(run, [line for line in cases if line in asked or number < 2]):
                bad += [line] if said else []
                if said or a.verbose:
                    print(("not ok - " if said else "ok - ") + line, *said, sep="\n    ", flush=True)
    if a.record:
        with open(f"{a.record}/index.json", "w", encoding="utf-8") as f:
            json.dump(reference.index, f, indent=0, sort_keys=True)
    used = [sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    print(f"{time.monotonic() - begin:.0f} s; of CPU time {used[0]:.0f} s in the tools, {used[1]:.0f} s in this script")
    print(f"compare_builds: {len(asked | unseen) - len(bad)} passed, {len(bad)} failed")
    return bool(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the build")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", metavar="REF")
    what.add_argument("--against", metavar="REF")
    what.add_argument("--list", action="store_true")
    parser.add_argument("--traces", default=os.environ.get("TACHO_TRACES", "../shared/traces"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true", help="name what is equal, too")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="commands at a time (default 2)")
    parser.add_argument("words", nargs="*")
    a = parser.parse_args()
    if not os.path.isdir(f"{a.traces}/kineto"):
        parser.error(f"no traces at {a.traces}")
    reference = Reference(a.record or a.against)
    if a.record:
        os.makedirs(a.record, exist_ok=True)
    elif a.against:
        with open(f"{a.against}/index.json", encoding="utf-8") as f:
            reference.index = json.load(f)
    with tempfile.TemporaryDirectory(prefix="compare_builds.") as work:
        return run_all(a, reference, Machine(os.path.realpath(a.bin), os.path.realpath(a.traces), os.path.realpath(work)))


if __name__ == "__main__":
    sys.exit(main())

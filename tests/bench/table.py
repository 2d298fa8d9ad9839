#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ours beside peers and limits on the same input in one run; how cost grows with size.

    table.py --bin BUILD [--big N] [--most EVENTS] [--ranks N] [--rank-events EVENTS] [--turns N]
             [--only TEXT]

Each command is a process of its own, timed from outside; the best of --turns runs counts. `x` is
the reference's seconds over ours (above 1: ours is faster). CPU is user and system time together:
where it is above the seconds, several cores worked. A peer whose environment is not there is left
out, and that is said.
"""
import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../.."))
TRACES = os.environ.get("TACHO_TRACES", os.path.join(ROOT, "../shared/traces"))
TRACE = "v100_ddp_rank1of2_memory.json.gz"
PEER_HOME = {"hta": "torch", "tb_plugin": "torch", "perfetto": "perfetto", "xprof": "xprof"}


class Cost:
    """The best of some runs of one command."""

    def __init__(self, seconds, cpu, peak):
        self.seconds, self.cpu, self.peak = seconds, cpu, peak


class Bench:
    def __init__(self, options):
        self.bin, self.turns, self.only = os.path.abspath(options.bin), options.turns, options.only
        self.work = os.path.join(self.bin, "bench")
        self.left_out = []
        os.makedirs(self.work, exist_ok=True)

    def path(self, name):
        return os.path.join(self.work, name)

    def tool(self, name):
        return os.path.join(self.bin, name)

    def once(self, command):
        """One run, started by something small: the peak of a process counts from before exec."""
        done = subprocess.run(self.limit("run", *command), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"table.py: exit {done.returncode} of {' '.join(command)}")
        seconds, cpu, peak = map(float, done.stdout.split())
        return Cost(seconds, cpu, peak / 1024)

    def measure(self, command, turns=None):
        runs = [self.once(command) for _ in range(turns or self.turns)]
        return Cost(min(r.seconds for r in runs), min(r.cpu for r in runs),
                    max(r.peak for r in runs))

    def make(self, *command):
        """An input that a row needs."""
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def peer(self, name, path):
        """The command of a peer, or None where it is not installed."""
        python = sys.executable
        if name in PEER_HOME:
            python = os.path.join(self.bin, f"clients-{PEER_HOME[name]}-venv/bin/python")
        if name == "simdjson":
            command = [self.tool("bench_simdjson"), path, "1"]
        else:
            command = [python, os.path.join(HERE, "peer.py"), name, path]
        if os.path.exists(command[0]):
            return command
        if name not in self.left_out:
            self.left_out.append(name)
        return None

    def limit(self, *words):
        return [self.tool("bench_limits"), *words]

    def convert(self, source, form, out, *more):
        return [self.tool("tacho-convert"), "-q", source, "-t", form, "-o", out, *more]

    def report(self, source, *more):
        return [self.tool("tacho-analyze"), "-q", source, "-o", self.path("report.txt"), *more]

    # ---- rows ----

    def head(self, title):
        print(f"\n== {title}\n{'':44} {'s':>8} {'CPU s':>8} {'a second':>14} {'MB':>6}   "
              f"{'beside':32} {'s':>8} {'MB':>7} {'x':>7}")

    def row(self, what, ours, amount, beside, turns=None):
        """`beside`: (what it is called, command) each; one line of ours for each of them."""
        if self.only and self.only not in what:
            return
        cost = self.measure(ours, turns)
        speed = f"{amount[0] / cost.seconds / 1e6:9.1f} {amount[1]}"
        mine = f"{what:44} {cost.seconds:8.3f} {cost.cpu:8.3f} {speed:>14} {cost.peak:6.1f}"
        for name, command in beside or [("", None)]:
            if command:
                peer = self.measure(command, turns)
                print(f"{mine}   {name:32} {peer.seconds:8.3f} {peer.peak:7.1f} "
                      f"{peer.seconds / cost.seconds:7.1f}", flush=True)
            elif mine.strip():
                print(mine, flush=True)
            mine = " " * len(mine)


def entries_of(bench, log):
    """Events of a log, as the log sink counts them."""
    done = subprocess.run([bench.tool("tacho-convert"), log, "-t", "text", "-o", "/dev/null"],
                          capture_output=True, text=True)
    numbers = [word.replace(",", "") for word in done.stderr.split()]
    return max([int(word) for word in numbers if word.isdigit()] or [1])


def one_file(bench):
    source = os.path.join(TRACES, "kineto", TRACE)
    log, plain, xspace = bench.path("one.tacho"), bench.path("one.json"), None
    text = bench.path("text.json")
    with open(text, "wb") as out:
        subprocess.run(["gzip", "-dc", source], stdout=out, check=True)
    bench.make(*bench.convert(source, "log", log))
    bench.make(*bench.convert(log, "chrome", plain))
    board = bench.path("board")
    shutil.rmtree(board, ignore_errors=True)
    bench.make(*bench.convert(source, "tensorboard", board))
    for folder, _, names in os.walk(board):
        for name in names:
            xspace = os.path.join(folder, name) if name.endswith(".xplane.pb") else xspace
    events, size = entries_of(bench, log), os.path.getsize(text)
    mb, m = (size, "MB"), (events, "M events")
    bench.head(f"{TRACE}: {size} bytes of JSON, {events} events")
    bench.row("Kineto .json.gz to report", bench.report(source), mb,
              [("HTA, seven analyses", bench.peer("hta", source)),
               ("TensorBoard's PyTorch plugin", bench.peer("tb_plugin", source))])
    bench.row("Kineto .json.gz to log", bench.convert(source, "log", bench.path("out.tacho")), mb,
              [("json.load", bench.peer("json", source)),
               ("Perfetto's trace processor (WASM)", bench.peer("perfetto", source)),
               ("cJSON, of the text", bench.limit("cjson", text)),
               ("simdjson, of the text", bench.peer("simdjson", text)),
               ("zlib alone", bench.limit("inflate", source))])
    bench.row("the same, --threads 1", bench.convert(source, "log", bench.path("out.tacho"),
                                                     "--threads", "1"), mb, None)
    bench.row("log to report", bench.report(log), m,
              [("HTA, from the .json.gz", bench.peer("hta", source))])
    bench.row("log to the summary alone", bench.report(log, "-r", "summary"), m, None)
    bench.row("log to Chrome JSON", bench.convert(log, "chrome", plain), m,
              [("a printf for each event", bench.limit("sprintf", bench.path("s.json"), str(events)))])
    bench.row("log to Chrome .json.gz", bench.convert(log, "chrome", bench.path("one.json.gz")), m,
              [("zlib 6 alone, of that text", bench.limit("deflate", plain))])
    bench.row("log to Perfetto", bench.convert(log, "perfetto", bench.path("one.pftrace")), m,
              [("its trace processor reads that",
                bench.peer("perfetto", bench.path("one.pftrace")))])
    bench.row("XSpace to report", bench.report(xspace), m,
              [("XProf: overview, kernels", bench.peer("xprof", xspace))])


def many_times(bench, times):
    source = os.path.join(TRACES, "kineto", TRACE)
    big, log = bench.path(f"x{times}.json.gz"), bench.path("big.tacho")
    if not os.path.exists(big):
        bench.make(sys.executable, os.path.join(HERE, "repeat_kineto.py"), source, str(times), big)
    size = int(subprocess.run(f"gzip -dc '{big}' | wc -c", shell=True, capture_output=True,
                              text=True, check=True).stdout)
    bench.make(*bench.convert(big, "log", log))
    events = entries_of(bench, log)
    mb, m = (size, "MB"), (events, "M events")
    bench.head(f"the same training {times} times: {size} bytes of JSON, {events} events")
    bench.row("Kineto .json.gz to report", bench.report(big), mb,
              [("HTA, seven analyses", bench.peer("hta", big)),
               ("json.load", bench.peer("json", big))], turns=1)
    bench.row("Kineto .json.gz to log", bench.convert(big, "log", bench.path("out.tacho")), mb,
              [("Perfetto's trace processor (WASM)", bench.peer("perfetto", big)),
               ("zlib alone", bench.limit("inflate", big))])
    bench.row("log to report", bench.report(log), m, None)
    bench.row("log to Chrome JSON", bench.convert(log, "chrome", bench.path("out.json")), m,
              [("a printf for each event", bench.limit("sprintf", bench.path("s.json"), str(events))),
               ("the disk: 1 GB and fsync", bench.limit("write", bench.path("w"), "1000"))])
    bench.row("log to Chrome .json.gz", bench.convert(log, "chrome", bench.path("out.json.gz")), m,
              None)
    bench.row("log to Perfetto", bench.convert(log, "perfetto", bench.path("out.pftrace")), m, None)
    for name in ("out.json", "out.json.gz", "out.pftrace", "out.tacho", "s.json"):
        if os.path.exists(bench.path(name)):
            os.unlink(bench.path(name))


def growth(bench, most):
    """Ten times as many events each: cost of one, and memory."""
    print("\n== how cost grows: ns an event (CPU), and peak MB, of a generated log")
    kinds = [("to report", lambda log: bench.report(log)),
             ("to Chrome JSON", lambda log: bench.convert(log, "chrome", "/dev/null")),
             ("to Perfetto", lambda log: bench.convert(log, "perfetto", "/dev/null")),
             ("to a packed log", lambda log: bench.convert(log, "log", "/dev/null"))]
    print(f"{'events':>12}" + "".join(f"{name:>26}" for name, _ in kinds))
    count = 100000
    while count <= most:
        folder = bench.path("grown")
        shutil.rmtree(folder, ignore_errors=True)
        bench.make(bench.tool("samples/generate"), "--out", folder, "--events", str(count))
        log = os.path.join(folder, "r0.tacho")
        costs = [bench.measure(command(log)) for _, command in kinds]
        print(f"{count:>12}" + "".join(f"{c.cpu / count * 1e9:14.0f} ns {c.peak:6.1f} MB"
                                       for c in costs), flush=True)
        shutil.rmtree(folder)
        count *= 10


def ranks(bench, count, each):
    """The same events as one rank and as many: cost of one, and memory of one input more."""
    total = count * each
    print(f"\n== {total} generated events as one rank and as {count}: ns an event (CPU), peak MB; KB of an "
          f"input more\n{'':44}{'one rank':>22}{count:>16} ranks{'x':>8}{'KB':>8}")
    folders = []
    for n in (1, count):
        folders.append(bench.path(f"ranks{n}"))
        shutil.rmtree(folders[-1], ignore_errors=True)
        bench.make(bench.tool("samples/generate"), "--out", folders[-1], "--ranks", str(n),
                   "--events", str(total // n))
    for what, command in (
            ("report", bench.report),
            ("one timeline, Perfetto",
             lambda folder: bench.convert(folder, "perfetto", "/dev/null", "--threads", "1"))):
        one, many = [bench.measure(command(folder), 1) for folder in folders]
        more = (many.peak - one.peak) * 1024 / (count - 1)
        print(f"{what:44}{one.cpu / total * 1e9:10.0f} ns {one.peak:5.0f} MB"
              f"{many.cpu / total * 1e9:10.0f} ns {many.peak:5.0f} MB{many.cpu / one.cpu:8.2f}{more:8.1f}",
              flush=True)
    for folder in folders:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--big", type=int, default=20)
    parser.add_argument("--most", type=int, default=10000000)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--rank-events", type=int, default=20000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    bench = Bench(options)
    if os.path.exists(os.path.join(TRACES, "kineto", TRACE)):
        one_file(bench)
        if options.big:
            many_times(bench, options.big)
    else:
        print(f"no traces at {TRACES}: the rows on real files are left out")
    growth(bench, options.most)
    if options.ranks:
        ranks(bench, options.ranks, options.rank_events)
    for name in bench.left_out:
        print(f"{name}: its environment is not here (make check-clients makes it): left out")


if __name__ == "__main__":
    main()

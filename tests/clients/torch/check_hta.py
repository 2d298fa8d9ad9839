#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTA must answer the same before and after: Kineto JSON -> our log -> Chrome JSON.

    hta_roundtrip.py --bin DIR [--traces DIR] [--only TEXT] [--self]

Every analysis of HTA named in ANALYSES runs on the original and on the round trip. An analysis that
fails in HTA on the original must fail with the same error on the round trip; both are said. --self
compares the original with itself and needs none of our programs. Exit 1 on any difference.

HTA sorts by time alone and with an unstable sort, so some answers (queue length, bandwidth, idle
time of overlapping kernels) hang on the order in which rows of the same time stand in the file. An
answer that differs is therefore asked for again with the rows of both files in one order: it
passes, and says so, if the two agree then and the original's own answer moved, too.
"""
import argparse
import contextlib
import glob
import gzip
import io
import json
import logging
import math
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
PAIRS = [("job128_sampled_rank0", "job128_sampled_rank1")]      # one job: read together

ANALYSES = {
    "temporal breakdown": lambda ta: ta.get_temporal_breakdown(visualize=False),
    "idle time": lambda ta: ta.get_idle_time_breakdown(
        ranks=ta.t.get_ranks(), visualize=False, show_idle_interval_stats=True),
    "comm-comp overlap": lambda ta: ta.get_comm_comp_overlap(visualize=False),
    "kernel breakdown": lambda ta: ta.get_gpu_kernel_breakdown(visualize=False,
                                                              num_kernels=100000),
    "memory bandwidth": lambda ta: ta.get_memory_bw_summary(ranks=ta.t.get_ranks()),
    "queue length": lambda ta: ta.get_queue_length_summary(ranks=ta.t.get_ranks()),
    "launch stats": lambda ta: ta.get_cuda_kernel_launch_stats(ranks=ta.t.get_ranks(),
                                                               visualize=False),
    "operator delay": lambda ta: ta.get_aten_op_kernels_and_delay(ranks=ta.t.get_ranks()),
    "user annotations": lambda ta: ta.get_gpu_user_annotation_breakdown(visualize=False),
    "profiler steps": lambda ta: ta.get_profiler_steps(),
    "rows after filter": lambda ta: {rank: len(ta.t.get_trace(rank)) for rank in ta.t.get_ranks()},
}
SLOW = "operator delay"             # asked once, with all steps, of files below this size
SLOW_BYTES = 1 << 20
# Columns that name a row by its place in the file, which a round trip does not promise to keep.
PLACES = {"index", "index_correlation", "python_id", "level_0"}


def value_text(value):
    """A cell as text; floats to nine digits, since sums in another order differ in the last."""
    if isinstance(value, float) or type(value).__name__.startswith("float"):
        return "nan" if math.isnan(value) else f"{float(value):.9g}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(value_text(item) for item in value) + "]"
    if hasattr(value, "item"):
        return value_text(value.item())
    return str(value)


def plain(answer):
    """An answer of HTA as lists of text that compare; rows of a table are sorted."""
    if hasattr(answer, "reset_index"):
        table = answer.reset_index(allow_duplicates=True)
        keep = [place for place, name in enumerate(table.columns) if name not in PLACES]
        rows = [[value_text(row[place]) for place in keep] for row in table.itertuples(index=False)]
        return {"columns": [str(table.columns[place]) for place in keep], "rows": sorted(rows)}
    if isinstance(answer, dict):
        return {str(key): plain(value) for key, value in sorted(answer.items())}
    if isinstance(answer, (list, tuple)):
        return [plain(value) for value in answer]
    return value_text(answer)


def answers(files, keep_last, asked):
    """analysis -> answer, or the error it died of; loading is an analysis too."""
    from hta.trace_analysis import TraceAnalysis
    with quiet():
        try:
            analysis = TraceAnalysis(trace_files=dict(files), trace_dir="/",
                                     include_last_profiler_step=keep_last)
        except Exception as error:      # HTA raises whatever pandas does
            return {"load": f"fails with {type(error).__name__}: {error}"}
        result = {}
        for name in asked:
            try:
                result[name] = plain(ANALYSES[name](analysis))
            except Exception as error:
                result[name] = f"fails with {type(error).__name__}: {str(error)[:80]}"
    return result


@contextlib.contextmanager
def quiet():
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), \
            contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def rank_of(path):
    with gzip.open(path) as stream:
        head = json.load(stream)
    info = head.get("distributedInfo") if isinstance(head, dict) else None
    return info.get("rank", 0) if isinstance(info, dict) else 0


def found_rank(path):
    """The rank that HTA itself would find in a file; it wants white space after the colon."""
    from hta.common.trace_file import create_rank_to_trace_dict
    with quiet():
        good, ranks = create_rank_to_trace_dict([path])
    return next(iter(ranks)) if good and len(ranks) == 1 else None


def run(*command):
    done = subprocess.run(command, capture_output=True)
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RuntimeError(f"{os.path.basename(command[0])} exit {done.returncode}: "
                           f"{words[-1] if words else 'no message'}")


def round_trip(convert, path, folder):
    base = os.path.basename(path).removesuffix(".json.gz")
    log = os.path.join(folder, f"{base}.tacho")
    back = os.path.join(folder, f"{base}.json.gz")
    run(convert, path, "-t", "log", "-o", log, "--quiet")
    run(convert, log, "-t", "chrome", "-o", back, "--quiet")
    return back


def difference(one, two):
    """The first difference of two plain answers in words."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in list(one) + [key for key in two if key not in one]:
            if one.get(key) != two.get(key):
                return f"{key}: {difference(one.get(key), two.get(key))}"
    if isinstance(one, list) and isinstance(two, list):
        if len(one) != len(two):
            return f"{len(one)} before, {len(two)} after"
        for here, there in zip(one, two):
            if here != there:
                return difference(here, there)
    return f"before {str(one)[:150]} after {str(two)[:150]}"


class Counts:
    """Collects the lines of one group, so that groups can run side by side."""

    def __init__(self):
        self.passed = self.failed = 0
        self.lines = []

    def say(self, good, label, detail=""):
        self.passed += good
        self.failed += not good
        self.lines.append(f"{'ok' if good else 'not ok'} - {label}"
                          f"{': ' + detail if detail and not good else ''}")


def show(results):
    """Prints what the groups found, in order; the exit code."""
    passed = failed = 0
    for counts in results:
        passed += counts.passed
        failed += counts.failed
        print("\n".join(counts.lines), flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def digits(value):
    return "".join(letter for letter in str(value) if letter.isdigit() or letter == "-")


def row_order(row):
    """A total order of rows that both files share, whatever their order and spelling."""
    args = row.get("args") or {}
    return (row["ts"], -row["dur"], str(row.get("cat")).lower(), row["name"], str(row["pid"]),
            digits(row["tid"]), str(args.get("correlation")),
            str(args.get("External id", args.get("external id"))), str(args.get("Input Dims")))


def in_one_order(path, folder, mark):
    name = os.path.join(folder, f"{mark}-{os.path.basename(path)}")
    if os.path.exists(name):
        return name
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as stream:
        document = json.load(stream, strict=False)
    rows = [row for row in document["traceEvents"] if row.get("ph") == "X" and "dur" in row]
    document["traceEvents"] = sorted(rows, key=row_order)
    with gzip.open(name, "wt", encoding="utf-8", compresslevel=1) as stream:
        json.dump(document, stream)
    return name


def compare(counts, label, before, after, again):
    """`again` gives both answers, of some analyses, with the rows of the files in one order."""
    names = list(before) + [name for name in after if name not in before]
    odd = [name for name in names if before.get(name) != after.get(name)]
    ordered = again(odd) if odd else None
    for name in names:
        one, two = before.get(name), after.get(name)
        tail = f" (HTA {one})" if isinstance(one, str) and one.startswith("fails") else ""
        good = one == two
        if not good:
            good = (ordered[0].get(name) == ordered[1].get(name)
                    and ordered[0].get(name) != one)
            tail += " in one order of rows, on which HTA's answer hangs" if good else ""
        counts.say(good, f"{label} {name}{tail}", difference(one, two))


def check(options, group, paths):
    """Lines and counts of one group of files; runs in a process of its own."""
    counts = Counts()
    label = " + ".join(group)
    originals = {rank_of(path): path for path in paths}
    folder = tempfile.mkdtemp(prefix="tacho-hta-")
    try:
        backs = dict(originals)
        if not options.self:
            convert = os.path.join(options.bin, "tacho-convert")
            backs = {rank: round_trip(convert, path, folder) for rank, path in originals.items()}
            for rank, path in backs.items():
                counts.say(found_rank(path) == rank, f"{label} HTA finds rank {rank}",
                           str(found_rank(path)))
        large = max(os.path.getsize(path) for path in paths) >= SLOW_BYTES
        if large:
            counts.lines.append(f"note {label}: {SLOW} is not asked of a file of this size")
        for keep_last in (False, True):
            asked = [name for name in ANALYSES if name != SLOW or (keep_last and not large)]
            words = f"{label}{', with the last step,' if keep_last else ''}"
            compare(counts, words, answers(originals, keep_last, asked),
                    answers(backs, keep_last, asked),
                    lambda odd, last=keep_last: [
                        answers({rank: in_one_order(path, folder, mark)
                                 for rank, path in files.items()}, last, odd)
                        for mark, files in (("before", originals), ("after", backs))])
    except RuntimeError as error:
        counts.say(False, f"{label} round trip", str(error))
    finally:
        shutil.rmtree(folder)
    return counts


def groups_of(folder, only):
    paths = {os.path.basename(path).removesuffix(".json.gz"): path
             for path in sorted(glob.glob(os.path.join(folder, "kineto", "*.json.gz")))}
    paired = {name for pair in PAIRS for name in pair}
    groups = [pair for pair in PAIRS if all(name in paths for name in pair)]
    groups += [(name,) for name in paths if name not in paired]
    return [(group, [paths[name] for name in group]) for group in groups
            if any(only in name for name in group)]


def options_of(text):
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(ROOT, "build"),
                        help="folder of tacho-convert")
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    parser.add_argument("--only", default="", help="only files whose name has this text")
    parser.add_argument("--self", action="store_true", help="the original against itself")
    return parser.parse_args()


def main():
    options = options_of(__doc__)
    groups = groups_of(options.traces, options.only)
    if not groups:
        print(f"skip HTA round trip: no files in {options.traces}/kineto (set TACHO_TRACES)")
    with ProcessPoolExecutor(2) as pool:
        waiting = [pool.submit(check, options, group, paths) for group, paths in groups]
        return show(one.result() for one in waiting)


if __name__ == "__main__":
    sys.exit(main())

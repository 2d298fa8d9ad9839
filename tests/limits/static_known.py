# SPDX-License-Identifier: Apache-2.0
"""What the analysers find and what of it was looked at: each row says why it is none.

usage: static_known.py FOLDER FILES       FOLDER has TOOL.out; FILES: how many were looked at

A row: the file, a part of the check's name, a part of the line of code that it is about, the reason.  It
answers every finding of that check on such a line of that file, however lines move.  A row that answers
nothing any more is to be taken out, which is said and is no failure: versions of tools differ.
"""
import os
import re
import sys

BOTH = "the count that is looked at and the pointer are set together"
TABLE = "texts are never NULL but for null_texts, which these tables have not (table.h)"
HELD = "a table asks only about rows that it holds"
GAVE = "an id that the table gave out has a row"
FILLED = "as many as are read were filled by a loop of the caller"
LAYOUT = "both counts of argument values are those of one layout"
TRACK = "trace_get_track() never gives NULL (trace.h)"
ADDED = "the call before it has succeeded, so there is one"
KNOWN = [
    ("analyze/report/operators/operators.c", "NonNullParamChecker", "memmove(t->calls", "only a full list is halved"),
    ("convert/sink/data_tables.c", "CallAndMessage", "makers[table].put", "the two tables without a maker have returned"),
    ("collector/arena/spawn.c", "memleak", "return 0;", "without stacks there is nothing to give back"),
    ("collector/probe/api/probe.c", "identicalInnerCondition", "return *found;", "the id is returned, not whether there is one"),
    ("collector/session/seen.c", "memleak", "return at == MAP_FAILED", "the page is the process's as long as it lives"),
    ("schemas/model/trace.c", "dereference of NULL ‘row’", "", HELD),
    ("schemas/log/tables.c", "dereference of NULL ‘row’", "", HELD),
    ("schemas/log/put_rows.c", "dereference of NULL", "r->kind", GAVE),
    ("schemas/log/translate.c", "dereference of NULL", "k->to", GAVE),
    ("analyze/engine/table_partial.c", "use-of-uninitialized-value", "columns[i]", FILLED),
    ("collector/config/preset.c", "dereference of NULL", "find_preset(name)->", "it was found before, or is a row's own"),
    ("schemas/base/buf.h", "use of NULL", "strlen(text)", "a key in a preset's text is a row, and has a fallback"),
    ("analyze/report/check/judge.c", "core.NullDereference", "row[FACT_windows_held]", "table_row() fills it or fails"),
    ("analyze/format/diff/diff.c", "core.NullDereference", "*p = (struct diff_part)", "there are as many parts as owners, made before"),
    ("analyze/engine/hist.c", "UndefinedBinaryOperatorResult", "octave", "a bucket is one of bucket_of(), so octaves are below 60"),
    ("analyze/findings/spread.c", "core.NullDereference", "sums[0]", "there are names only where there was memory"),
    ("analyze/findings/spread.c", "dereference of possibly-NULL ‘sums’", "", "there are names only where there was memory"),
    ("convert/name/rules.c", "core.NullDereference", "r->own_count", "vec_new() has succeeded"),
    ("convert/cli/main.c", "core.NullDereference", "r->type->", "find_type() returns ST_USAGE where there is none"),
    ("schemas/log/tables.c", "dereference of NULL", "intern_row(&m->layouts", GAVE),
    ("schemas/model/intern.c", "use of NULL", "memcpy(intern_row(t, t->count)", ADDED),
    ("schemas/log/log.h", "core.NullDereference", "args", LAYOUT),
    ("schemas/model/args.h", "dereference of NULL", "k->", TRACK),
    ("schemas/model/args.h", "core.NullDereference", "k->", TRACK),
    ("schemas/base/buf.h", "core.NonNullParamChecker", "memcpy(place", "NULL comes with length 0 only, which has returned"),
    ("schemas/base/buf.h", "uninitvar", "memcpy(place", "the call that tells the length has filled the bytes"),
    ("schemas/model/args.c", "compareBoolExpressionWithInt", "pass <= is_memory", "one pass more where it is memory"),
    ("schemas/base/vec.c", "memleak", "", "the caller's pointer has been given the memory"),
    ("analyze/format/page/ranks.c", "core.NullDereference", "", "a job has at least one rank"),
    ("analyze/format/page/ranks.c", "core.NonNullParamChecker", "", BOTH),
    ("analyze/format/page/gpus.c", "unknownEvaluationOrder", "", "designators of an array, no side effects"),
    ("analyze/report/comm/collectives.c", "dereference of NULL", "match", BOTH),
    ("analyze/report/comm/collectives.c", "core.NullDereference", "match", BOTH),
    ("convert/stage/context/context.c", "core.NonNullParamChecker", "", BOTH),
    ("convert/stage/context/context.c", "deadcode.DeadStores", "fault", "it has a value on every path"),
    ("analyze/cli/mcp_tools.c", "memleak", "", "the list has the path, which is freed with it"),
    ("analyze/format/page/roofline.c", "nullPointerRedundantCheck", "", "view_text() never gives NULL"),
    ("analyze/report/where/stacks.c", "objectIndex", "gpu_ns)[k]", "the measures are members that follow one another"),
    ("analyze/report/where/stacks.c", "core.NullDereference", "", BOTH),
    ("analyze/report/where/nvtx.c", "core.NullDereference", "r->name", BOTH),
    ("convert/stage/context/autograd.c", "core.NullDereference", "", ADDED),
    ("convert/source/open.c", "use-of-uninitialized-value", "bids[k]", FILLED),
    ("collector/probe/nvtx/calls.c", "dereference of NULL", "", "a thread that makes events has its stack"),
    ("collector/probe/health/gpu.c", "resourceLeak", "", "the driver's library stays loaded for good, its functions are kept"),
    ("analyze/engine/table.c", "null-argument", "memcmp(table_at(", HELD),
    ("analyze/engine/table.c", "dereference of NULL", "compare_value(", HELD),
    ("analyze/engine/table.c", "core.NullDereference", "compare_value(", HELD),
    ("convert/source/log/payload.c", "dereference of NULL", "memcpy(&header", "so many bytes are left, looked for before"),
    ("analyze/report/sparkline.c", "core.NullDereference", "spans[", BOTH),
    ("convert/name/mangled.h", "use-of-uninitialized-value", "longjmp", "a function that gives up returns nothing"),
    ("convert/source/perfetto/frames.c", "dereference of NULL", "f->z", "what has no input has what unpacks it"),
    ("convert/source/perfetto/frames.c", "core.NullDereference", "f->z", "what has no input has what unpacks it"),
    ("convert/source/perfetto/event.c", "core.NullDereference", "o->", "a row without an open event is unordered"),
    ("convert/source/perfetto/event_fast.c", "core.NullDereference", "e->args[words++]", BOTH),
    ("convert/source/perfetto/source.c", "CallAndMessage", "PFTRACE_MESSAGE", "a message whose bit is set has its bytes"),
    ("convert/source/perfetto/source.c", "CallAndMessage", "describe_sequence", "a message whose bit is set has its bytes"),
    ("collector/probe/nvtx/payload.c", "core.NullDereference", "s->first", "only a schema that was found has a static form"),
    ("convert/input/input.c", "core.NonNullParamChecker", "in->window, in->window + in->at", "there are bytes, so there is a window"),
    ("convert/input/input.c", "core.NonNullParamChecker", "moved, in->view", "there are bytes, so there is a view"),
    ("convert/source/chrome/pairs.c", "core.NullDereference", "k->", "key_find() gives a key or fails"),
    ("convert/stage/context/ids.c", "uninitvar", "gaps", "the loop before it has filled as many as are sorted"),
    ("convert/stage/filter/parse.c", "nullPointer", "*mask", "without a list of numbers there is a mask"),
    ("analyze/cause/cause.c", "core.NullDereference", "", BOTH),
    ("analyze/replay/run.c", "dereference of NULL ‘f’", "", "only moves that have no factors leave it NULL"),
    ("convert/cli/outputs.c", "possible-null-argument", "", "the loop runs only with a folder"),
]


def source_line(file, number):
    with open(file, encoding="utf-8", errors="replace") as f:
        lines = f.read().split("\n")
    return lines[number - 1] if number <= len(lines) else ""


def main():
    folder, looked_at = sys.argv[1], sys.argv[2]
    passed = failed = 0
    used = set()
    for tool in ("gcc", "tidy", "cppcheck"):
        with open(os.path.join(folder, tool + ".out"), encoding="utf-8", errors="replace") as f:
            found = sorted({line.strip() for line in f if line.strip()})
        left = 0
        for line in found:
            m = re.match(r"(?:\./)?([^:]+):(\d+)(?::\d+)?: (.*)", line)
            if m:
                code = source_line(m.group(1), int(m.group(2))) if os.path.exists(m.group(1)) else ""
                row = next((i for i, k in enumerate(KNOWN) if k[0] == m.group(1) and k[1] in m.group(3)
                            and k[2] in code), None)
                if row is not None:
                    used.add(row)
                    continue
            left += 1
            print(f"not ok - {tool}: {line}")
        print(f"{'not ok' if left else 'ok'} - {tool}: {looked_at} files, {len(found)} findings, {left} unanswered")
        passed += not left
        failed += left != 0
    for i, known in enumerate(KNOWN):
        if i not in used:
            print(f"# answers nothing here: {known[0]} {known[1]}")
    print(f"static: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

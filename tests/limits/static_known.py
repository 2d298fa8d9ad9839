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
TABLE = "cells of keys are never NULL: table_row() keeps texts, and partial files without one are refused"
KNOWN = [
    ("schemas/log.h", "core.NullDereference", "vary", "log_site's layout says how many there are room for"),
    ("schemas/buf.h", "core.NonNullParamChecker", "memcpy(room", "NULL comes with length 0 only, which has returned"),
    ("collector/nvtx_payload.c", "core.NonNullParamChecker", "memcpy(&v, p", "bytes of a payload, looked for above"),
    ("collector/writer_save.c", "core.NullDereference", "store->type", "while there is a trace there is a store"),
    ("samples/generate.c", "core.CallAndMessage", "fprintf(f", "the truth of a rank is filled by its run"),
    ("schemas/buf.h", "uninitvar", "", "its callers hand over what a library filled through a pointer"),
    ("schemas/bytes.h", "shiftTooManyBitsSigned", "v >> 63", "an arithmetic shift in gcc and clang, and the fastest"),
    ("analyze/cause.c", "core.NullDereference", "stretches[", BOTH),
    ("analyze/check_judge.c", "core.NullDereference", "row[FACT_windows_held]", "table_row() fills it or fails"),
    ("analyze/diff.c", "core.NonNullParamChecker", "strcmp(p->", "the first part has an owner's class and names"),
    ("analyze/explain_find.c", "deadcode.DeadStores", "before = table_by", "it is compared with t in the condition"),
    ("analyze/explain_find.c", "arrayIndexThenCheck", "a[i] && i < 64", "a text ends with a NUL that may be read"),
    ("analyze/hist.c", "UndefinedBinaryOperatorResult", "octave", "buckets are below HIST_BUCKETS, so octaves below 64"),
    ("analyze/html/steps.c", "FloatLoopCounter", "at += tick", "some ten ticks of an axis, each a number to print"),
    ("analyze/html/work.c", "insecureAPI.strcpy", "strcat(more, \" more\")", "a number of 20 digits at most, and room for 32"),
    ("analyze/report_phases.c", "core.NullDereference", "gaps[", BOTH),
    ("analyze/rule_spread.c", "core.NullDereference", "sums[0]", "there are names only where there was memory"),
    ("analyze/rule_gpu.c", "insecureAPI.strcpy", "span_text(b, hidden)", "eight bytes more than a span's text"),
    ("analyze/page/phases.c", "core.NonNullParamChecker", "strcmp(", TABLE),
    ("convert/json/pairs.c", "core.NullDereference", "o->event", BOTH),
    ("convert/main.c", "core.NullDereference", "r->type->", "find_type() returns ST_USAGE where there is none"),
    ("convert/main/open.c", "uninitialized.UndefReturn", "err->status", "fail() fills it"),
    ("convert/spool.c", "uninitialized.Assign", "keys[", BOTH),
    ("convert/spool/runs.c", "core.DivideZero", "bytes / r->count", "there is a run, or it is not opened"),
    ("convert/xplane/names.c", "too-small-loop-variable", "XROLE_END", "an enum of some forty"),
    ("collector/record_doctor.c", "resourceLeak", "", "libtacho.so cannot be unloaded, so it is not tried"),
    ("convert/name_short.c", "resourceLeak", "", "libstdc++ stays loaded for good, its function is kept"),
    ("collector/nvtx_open.c", "memleak", "", "mmap(): handed to the caller, who keeps it for good"),
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

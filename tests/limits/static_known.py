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
LAYOUT = "both counts of varying words are those of one layout"
KNOWN = [
    ("schemas/trace.c", "dereference of NULL ‘row’", "", HELD),
    ("schemas/log_tables.c", "dereference of NULL ‘row’", "", HELD),
    ("schemas/log_tables.c", "dereference of NULL", "table_row(&m->layouts", GAVE),
    ("schemas/log_put_rows.c", "dereference of NULL", "r->kind", GAVE),
    ("schemas/log_translate.c", "dereference of NULL", "k->to", GAVE),
    ("schemas/log_take_saved.c", "use-of-uninitialized-value", "n[", FILLED),
    ("collector/nvtx/schema.c", "use-of-uninitialized-value", "w[i]", FILLED),
    ("analyze/table_partial.c", "use-of-uninitialized-value", "columns[i]", FILLED),
    ("analyze/text/comm.c", "use-of-uninitialized-value", "figures[", FILLED),
    ("convert/detail/set.c", "dereference of NULL", "", "a set that has grown has pages, so each id has a place"),
    ("collector/preset.c", "dereference of NULL", "find_preset(name)->", "it was found before, or is a row's own"),
    ("schemas/buf.h", "use of NULL", "strlen(text)", "a key in a preset's text is a row, and has a fallback"),
    ("schemas/log.h", "analyzer-null-dereference", "vary", LAYOUT),
    ("schemas/log.h", "core.NullDereference", "vary", LAYOUT),
    ("schemas/buf.h", "core.NonNullParamChecker", "memcpy(room", "NULL comes with length 0 only, which has returned"),
    ("schemas/buf.h", "uninitvar", "memcpy(room", "the call that tells the length has filled the bytes"),
    ("collector/nvtx/payload.c", "core.NonNullParamChecker", "memcpy(&v, p", "so many bytes are left, looked for before"),
    ("analyze/cause.c", "core.NullDereference", "stretches[", BOTH),
    ("analyze/check_judge.c", "core.NullDereference", "row[FACT_windows_held]", "table_row() fills it or fails"),
    ("analyze/diff.c", "core.NonNullParamChecker", "strcmp(p->", "of equal classes both have a phase, or both a cause"),
    ("analyze/hist.c", "UndefinedBinaryOperatorResult", "octave", "a bucket is one of bucket_of(), so octaves are below 60"),
    ("analyze/report_phases.c", "core.NullDereference", "gaps[", BOTH),
    ("analyze/rule_spread.c", "core.NullDereference", "sums[0]", "there are names only where there was memory"),
    ("analyze/page/phases.c", "core.NonNullParamChecker", "strcmp(", TABLE),
    ("convert/json/pairs.c", "core.NullDereference", "o->event", BOTH),
    ("convert/main.c", "core.NullDereference", "r->type->", "find_type() returns ST_USAGE where there is none"),
    ("convert/spool.c", "core.NullDereference", "keys[", "both callers of keys_order() set them where there are events"),
    ("schemas/log_column_put.c", "shift-count-overflow", ">> ", "gcc 12 takes a vector for one of its elements"),
    ("convert/step/lists.c", "core.NullDereference", "l->items[", BOTH),
    ("convert/step/lists.c", "core.NonNullParamChecker", "memmove(l->items", BOTH),
    ("convert/spool/runs.c", "core.DivideZero", "bytes / r->count", "there is a run, or it is not opened"),
    ("convert/name_short.c", "resourceLeak", "", "libstdc++ stays loaded for good, its function is kept"),
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

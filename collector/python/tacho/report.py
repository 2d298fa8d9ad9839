# SPDX-License-Identifier: Apache-2.0
"""Reports of tacho-analyze as Python tables: lists of dictionaries, or frames.

    import tacho.report

    tables = tacho.report.tables("logs/", reports="summary,kernels", ranks="0-3")
    slowest = max(tables["kernels"], key=lambda row: row["total_ns"])
    frame = tacho.report.frame(tables["kernels"])      # of pandas, or of Arrow

`tacho-analyze --schema` lists the columns, and analyze/DEFINITIONS.md defines each figure. The module
runs tacho-analyze as a separate process, so it needs only Python.
"""
import json
import os
import shutil
import subprocess
import warnings
from typing import Any, Dict, List, Optional

__all__ = ["ReportError", "frame", "read", "tables"]

Row = Dict[str, Any]
_SLOWER, _DAMAGED = 3, 4  # exit codes with which there is a report all the same


class ReportError(Exception):
    """tacho-analyze failed; `status` is its exit code."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _tool() -> str:
    """The path of tacho-analyze: TACHO_ANALYZE, next to the package (wheel, build), or on PATH."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for path in (os.environ.get("TACHO_ANALYZE"), os.path.join(here, "tacho.libs", "tacho-analyze"),
                 os.path.join(here, "tacho-analyze"), os.path.join(here, "../../bin/tacho-analyze"),
                 shutil.which("tacho-analyze")):
        if path and os.access(path, os.X_OK):
            return path
    raise ReportError("tacho-analyze is not there; TACHO_ANALYZE may say where it is", 127)


def read(*inputs: str, reports: str = "summary", **options: Any) -> Dict[str, Any]:
    """Return the parsed output of `tacho-analyze --format json`.

    inputs: traces or folders. reports: comma-separated names. options: those of the command line,
    with underscores for dashes, and True for options without a value (what_if="data=0",
    steps="10-20", per_step=True, diff=True). Damage in a trace gives a warning, any other error a
    ReportError.
    """
    words: List[str] = [] if options.get("diff") else ["--report=" + reports]
    for name, value in options.items():
        if value is not None and value is not False:
            option = "--" + name.replace("_", "-")
            words.append(option if value is True else "%s=%s" % (option, value))
    done = subprocess.run([_tool(), *words, "--format=json", "--quiet", "--", *map(str, inputs)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode not in (0, _SLOWER, _DAMAGED) or not done.stdout:
        raise ReportError(said or "tacho-analyze: exit %d" % done.returncode, done.returncode)
    if said:
        warnings.warn(said, stacklevel=3)
    result: Dict[str, Any] = json.loads(done.stdout.decode("utf-8"))
    return result


# Columns that a table hands to those below it; a job has many ranks, a rank many GPUs and steps.
_KEYS = {"ranks": ("rank", "host", "pid"), "steps": ("step", "begin_ns"), "gpus": ("device",),
         "memory": ("device", "what")}
_OUTERMOST = ("", "ranks")


def _is_table(cell: Any, above: str) -> bool:
    """An empty list below steps or findings is a text of no words."""
    if isinstance(cell, list):
        return isinstance(cell[0], dict) if cell else above in _OUTERMOST
    return isinstance(cell, dict)


def _flatten(into: Dict[str, List[Row]], name: str, value: Any, above: Row) -> None:
    table = into.setdefault(name, [])
    for given in value if isinstance(value, list) else [value]:
        row = dict(above)
        row.update((key, cell) for key, cell in given.items() if not _is_table(cell, name))
        table.append(row)
        keys = dict(above)
        keys.update((key, row[key]) for key in _KEYS.get(name, ()) if key in row)
        for key, cell in given.items():
            if _is_table(cell, name):
                _flatten(into, key if name == "ranks" else name + "_" + key, cell, keys)


def tables(*inputs: str, reports: str = "summary", **options: Any) -> Dict[str, List[Row]]:
    """Return each table of read() as a list of rows, by its name.

    A table below a rank has the rank's keys as columns (rank, host, pid). A table below a GPU, step
    or memory also has the keys of these, and its name begins with that of the table above:
    steps_gpus. A table of the whole job is called job_NAME if a rank has a table NAME. A single
    object in JSON becomes a table of one row; single figures of the job are the row of "job".
    """
    found: Dict[str, List[Row]] = {}
    whole = read(*inputs, reports=reports, **options)
    _flatten(found, "ranks", whole.pop("ranks", []), {})
    for name, value in whole.items():
        if _is_table(value, ""):
            _flatten(found, "job_" + name if name in found else name, value, {})
        else:
            found.setdefault("job", [{}])[0][name] = value
    return found


def frame(rows: List[Row], columns: Optional[List[str]] = None) -> Any:
    """Return the rows as a pandas.DataFrame or, without pandas, as a pyarrow.Table. Raise
    ImportError without both.

    columns: the columns and their order (default: all).
    """
    names = columns or list(dict.fromkeys(key for row in rows for key in row))
    try:
        import pandas
        return pandas.DataFrame([[row.get(name) for name in names] for row in rows], columns=names)
    except ImportError:
        pass
    try:
        import pyarrow
    except ImportError:
        raise ImportError("a frame needs pandas or pyarrow") from None
    return pyarrow.table({name: [row.get(name) for row in rows] for name in names})

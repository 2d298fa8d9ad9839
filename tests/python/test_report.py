# SPDX-License-Identifier: Apache-2.0
"""tacho.report: the tables of a report are those of its JSON and of its CSV."""
import csv
import io
import os
import subprocess
import sys
import unittest
import warnings

import common

sys.path.insert(0, os.path.join(common.ROOT, "collector", "python"))
os.environ.setdefault("TACHO_ENABLED", "0")
import tacho.report  # noqa: E402
from common import Case  # noqa: E402

REPORTS = "summary,steps,kernels,copies,idle,launches,memory,operators,replay,check"


class Report(Case):
    def setUp(self):
        super().setUp()
        os.environ["TACHO_ANALYZE"] = os.path.join(common.BIN, "tacho-analyze")
        self.folder = self.path("job")
        subprocess.run([os.path.join(common.BIN, "samples", "generate"), "--out", self.folder,
                        "--events", "6000", "--ranks", "2"], check=True, stdout=subprocess.DEVNULL)

    def test_rows_are_those_of_csv(self):
        tables = tacho.report.tables(self.folder, reports=REPORTS)
        compared = 0
        for name in ("steps", "kernels", "copies", "idle", "launches", "operators", "checks"):
            report = "check" if name == "checks" else name
            text = common.tool("tacho-analyze", self.folder, "--report", report, "-f", "csv", "-q")
            want = list(csv.DictReader(io.StringIO(text)))
            got = tables[name]
            self.assertEqual(len(got), len(want), name)
            key = "wall_ns" if name == "steps" else "total_ns" if name == "kernels" else None
            if key:
                self.assertEqual(sorted(row[key] for row in got),
                                 sorted(int(row[key]) for row in want), name)
            self.assertLessEqual({"rank", "host", "pid"}, set(got[0]) if got else {"rank", "host", "pid"})
            compared += len(got)
        self.assertGreater(compared, 50)

    def test_every_row_of_the_json_is_there_once(self):
        whole = tacho.report.read(self.folder, reports=REPORTS)
        tables = tacho.report.tables(self.folder, reports=REPORTS)
        for name in ("kernels", "phases", "gpus"):
            self.assertEqual(len(tables[name]), sum(len(rank[name]) for rank in whole["ranks"]))
        steps = [(rank["rank"], step["step"], gpu["device"], gpu["compute_ns"])
                 for rank in whole["ranks"] for step in rank["steps"] for gpu in step["gpus"]]
        self.assertEqual([(row["rank"], row["step"], row["device"], row["compute_ns"])
                          for row in tables["steps_gpus"]], steps)
        self.assertEqual(len(tables["job_what_if"]), len(whole["what_if"]))
        self.assertEqual(tables["verdict"], [whole["verdict"]])

    def test_options_and_errors(self):
        one = tacho.report.tables(self.folder, reports="kernels", ranks="1")
        self.assertEqual({row["rank"] for row in one["kernels"]}, {1})
        edited = tacho.report.read(self.folder, what_if="data=0")
        self.assertIn("data=0", [row["edits"] for row in edited["what_if"]])
        compared = tacho.report.read(self.folder, self.folder, diff=True)
        self.assertEqual(compared["verdict"], "no_difference")
        with self.assertRaises(tacho.report.ReportError) as caught:
            tacho.report.tables(os.path.join(self.folder, "nothing.tacho"))
        self.assertIn("nothing.tacho", str(caught.exception))
        with self.assertRaises(tacho.report.ReportError) as caught:
            tacho.report.tables(self.folder, reports="krnels")
        self.assertEqual(caught.exception.status, 2)
        with self.assertRaises(tacho.report.ReportError): # the option's own name counts as well
            tacho.report.tables(self.folder, report="krnels")
        path = os.path.join(self.folder, "r0.tacho")
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(data[:-16])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.assertTrue(tacho.report.tables(path, reports="kernels")["ranks"])
        self.assertEqual(len(said), 1)

    def test_frame_without_pandas_says_so(self):
        missing = [name for name in ("pandas", "pyarrow") if not _is_there(name)]
        rows = [{"a": 1, "b": "x"}, {"a": 2}]
        if len(missing) == 2:
            with self.assertRaises(ImportError):
                tacho.report.frame(rows)
        else:
            self.assertEqual(len(tacho.report.frame(rows)), 2)


def _is_there(name):
    try:
        __import__(name)
        return True
    except ImportError:
        return False


if __name__ == "__main__":
    unittest.main()

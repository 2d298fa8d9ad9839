#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make check-python: the package tacho and the operators' files, with the plain interpreter.

    run.py --bin DIR [WORD...]      only tests whose name has one of the words
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import common  # noqa: E402

if __name__ == "__main__":
    if "--bin" in sys.argv:
        common.BIN = os.path.abspath(sys.argv[sys.argv.index("--bin") + 1])
    if common.has_sanitizers():
        print("the library has sanitizers, and the interpreter has none: nothing to run")
        print("python: 0 passed, 0 failed")
        sys.exit(0)
    sys.exit(common.main("python", unittest.defaultTestLoader.discover(HERE, "test_*.py")))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tacho/_keys.py: the names of all options, from what tacho-record --print-config prints."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    KEYS = {key.lstrip("/").replace("_", "-") for key in json.load(file)} - {""}
print('# SPDX-License-Identifier: Apache-2.0\n'
      '"""The names of all options; made by keys.py (make regenerate)."""\n'
      'from __future__ import annotations\n\nKEYS = frozenset((')
for each in sorted(KEYS):
    print('    "%s",' % each)
print("))")

# SPDX-License-Identifier: Apache-2.0
"""Settings from files, mappings, dataclasses and keywords, as variables that the library reads."""
from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ._keys import KEYS
from ._library import is_forbidden, is_in_process, is_true, lib, print_once

_SECTIONS = ("profiling", "tacho")  # other sections of a file are those of other programs


class _Unreadable(Exception):
    """The error in a configuration."""


def _read_file(path: Any) -> Any:
    name = os.fsdecode(path)
    with open(path, encoding="utf-8") as file:
        if not name.endswith((".yaml", ".yml")):
            return json.load(file)
        try:
            import yaml
        except ImportError:
            raise _Unreadable("%s: Python's package PyYAML is needed, and not installed"
                              % name) from None
        try:
            return yaml.safe_load(file)
        except yaml.YAMLError as why:
            raise _Unreadable("%s: %s" % (name, " ".join(str(why).split()))) from None


def _read_config(config: Any) -> Dict[str, Any]:
    """Reads a file by its path, a mapping, or an object with fields such as a dataclass."""
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    if not isinstance(config, (str, bytes, os.PathLike)):
        fields = getattr(config, "__dataclass_fields__", None)
        if fields is None:
            fields = getattr(config, "__dict__", None)
        if fields is None:
            raise _Unreadable("%.60r is neither a file, a mapping, nor an object with fields"
                              % (config,))
        return {name: getattr(config, name) for name in fields}
    try:
        settings = _read_file(config)
    except (OSError, ValueError) as why:
        raise _Unreadable("%s: %s" % (os.fsdecode(config), why)) from None
    if isinstance(settings, dict):
        return settings
    raise _Unreadable("%s: not an object with keys" % os.fsdecode(config))


def _key_of(name: str) -> str:
    """As KEYS spells it."""
    key = name.lower().replace("_", "-").replace(".", "-")
    for section in _SECTIONS:
        if key.startswith(section + "-"):
            key = key[len(section) + 1:]
    return key


def _leaves(settings: Mapping[Any, Any]) -> Iterator[Tuple[str, Any, bool]]:
    """(key, value, whether it is meant for us) of each value."""
    own = any(isinstance(settings.get(name), Mapping) for name in _SECTIONS)
    for name, value in settings.items():
        if name in _SECTIONS and isinstance(value, Mapping):
            for inner, part in value.items():
                yield str(inner), part, True
        elif not isinstance(value, Mapping):
            yield str(name), value, not own


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(_value_text(part) for part in value)
    return str(value)


def _variables(settings: Mapping[Any, Any], unknown: List[str]) -> Dict[str, str]:
    """Variables and their values; adds the keys that are none of ours to `unknown`."""
    found = {}
    for name, value, ours in _leaves(settings):
        key = _key_of(name)
        if value is None or name.startswith("//"):  # a comment
            continue
        if key in KEYS:
            found["TACHO_" + key.upper().replace("-", "_")] = _value_text(value)
        elif ours:
            unknown.append(name)
    return found


def _complain_of_unknown(who: str, names: List[str]) -> None:
    import difflib  # seldom needed, and slow to import
    for name in names:
        close = difflib.get_close_matches(_key_of(name), KEYS, 1)
        hint = "; did you mean %s?" % close[0].replace("-", "_") if close else ""
        print_once("%s: there is no option %s%s" % (who, name, hint))


def _has_effect(who: str, variables: Mapping[str, str]) -> bool:
    """Settings come before the library does."""
    if not lib.is_loaded and not is_in_process():
        return True
    names = ", ".join(sorted(name[len("TACHO_"):].lower() for name, value in variables.items()
                             if (name, value) != ("TACHO_ENABLED", "yes")))
    if names and lib.load():
        why = ("the library is loaded already" if not os.environ.get("LD_PRELOAD") else
               "tacho-record has options of its own, and they decide")
        print_once("%s: no effect of %s: %s" % (who, names, why))
    return False


def take(who: str, config: Any, options: Mapping[str, Any]) -> bool:
    """Does configure() for a caller of this name."""
    unknown: List[str] = []
    lib.refused = False
    try:
        settings = _variables(_read_config(config), unknown)
    except _Unreadable as why:
        lib.refused = not is_in_process()
        print_once("error: %s%s" % (why, "; nothing is recorded" if lib.refused else ""))
        return False
    stronger = _variables(options, unknown)
    if unknown and not is_forbidden():
        _complain_of_unknown(who, unknown)
    if not _has_effect(who, {**settings, **stronger}):
        return False
    if unknown and not settings and not stronger:
        return False  # to record everything is not what was asked for
    for name, value in settings.items():
        os.environ.setdefault(name, value)  # the environment takes precedence over a file
    os.environ.update(stronger)
    os.environ.setdefault("TACHO_ENABLED", "yes")
    return True


def take_variable_file() -> None:
    """Takes the file that TACHO_CONFIG names; called before the library is loaded."""
    path = os.environ.get("TACHO_CONFIG")
    if not path or is_forbidden():
        return
    unknown: List[str] = []
    try:
        settings = _variables(_read_config(path), unknown)
    except _Unreadable as why:
        lib.refused = not is_in_process()
        print_once("error: %s%s" % (why, "; nothing is recorded" if lib.refused else ""))
        return
    _complain_of_unknown(path, unknown)
    for name, value in settings.items():
        os.environ.setdefault(name, value)


def configure(config: Any = None, **options: Any) -> bool:
    """Set options of tacho-record, from a JSON or YAML file, a mapping or a dataclass, and by
    keyword: configure(window="steps:10-20", out="logs").

    Call it before any other function. It returns False, changes nothing and prints why if the
    library is already loaded (as under tacho-record), if an option does not exist, or if the
    file cannot be read; in the last case nothing is recorded.
    """
    return take("configure", config, options)

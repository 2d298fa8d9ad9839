# SPDX-License-Identifier: Apache-2.0
"""The functions of libtacho, which is loaded at the first use of one."""
from __future__ import annotations

import atexit
import ctypes
import os
import sys
from typing import Any, Dict, Iterator, List, Optional

OFF, ARMED, RECORDING = 0, 1, 2

# Function, result, arguments, and whether it may wait; then the GIL is released during the call.
_FUNCTIONS = (
    ("tacho_state", ctypes.c_int, (), False),
    ("tacho_version", ctypes.c_char_p, (), False),
    ("tacho_start", None, (), True),
    ("tacho_stop", None, (), True),
    ("tacho_save", None, (), True),
    ("tacho_step", None, (), False),
    ("tacho_step_number", None, (ctypes.c_uint64,), False),
    ("tacho_step_cancel", None, (), False),
    ("tacho_epoch_end", None, (), False),
    ("tacho_validation_begin", None, (), False),
    ("tacho_name", ctypes.c_uint32, (ctypes.c_char_p,), False),
    ("tacho_phase_push_id", None, (ctypes.c_uint32,), False),
    ("tacho_phase_pop", None, (), False),
    ("tacho_range_push_id", None, (ctypes.c_uint32,), False),
    ("tacho_range_push_class", None, (ctypes.c_uint32, ctypes.c_uint), False),
    ("tacho_range_pop", None, (), False),
    ("tacho_counter_id", None, (ctypes.c_uint32, ctypes.c_double), False),
    ("tacho_mark", None, (ctypes.c_char_p,), False),
    ("tacho_memory_sample", None, (), False),
    ("tacho_total", None, (ctypes.c_uint32, ctypes.POINTER(ctypes.c_double),
                           ctypes.POINTER(ctypes.c_uint64)), False),
    ("tacho_summary_reset", None, (), False),
    ("tacho_flush", None, (), True),
)
_printed: List[str] = []


def print_once(text: str) -> None:
    """Prints a line on stderr, each text once in a process."""
    if text not in _printed and len(_printed) < 16:
        _printed.append(text)
        try:
            sys.stderr.write("tacho: %s\n" % text)
        except (OSError, ValueError, AttributeError):
            pass  # stderr is closed or missing


def is_true(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def is_forbidden() -> bool:
    return os.environ.get("TACHO_ENABLED", "").strip().lower() in ("0", "false", "no", "off")


def is_in_process() -> bool:
    """Whether tacho-record loaded the library, or the program is linked with it."""
    return hasattr(ctypes.CDLL(None), "tacho_step")


def _nothing(*args: Any) -> int:
    return 0


class _Calls:
    """Has the functions of tacho.h as attributes, without their prefix; all of them from the first
    use on, so that configure() can come before."""

    def __init__(self) -> None:
        self._found: Optional[bool] = None
        self.refused = False  # a configuration cannot be read: nothing is recorded

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self._found is not None:
            raise AttributeError(name)
        self.load()
        return getattr(self, name)

    @property
    def is_loaded(self) -> bool:
        return self._found is not None

    def load(self) -> bool:
        """Loads the library if needed; returns whether there is one."""
        if self._found is None:
            from ._settings import take_variable_file  # it needs this module
            take_variable_file()
            if is_forbidden() or self.refused or not self._find():
                for row in _FUNCTIONS:
                    setattr(self, row[0][len("tacho_"):], _nothing)
                self._found = False
                return False
            atexit.register(self._close_if_interrupted)
            if is_true("TACHO_TRACE_PYTHON") or is_true("TACHO_WITH_STACK"):
                from ._python import trace_python
                trace_python()
        return bool(self._found)

    def _close_if_interrupted(self) -> None:
        """After Ctrl-C Python ends itself by the signal, when all else is done; then nothing of C
        that waits for exit() is called."""
        if getattr(sys, "last_type", None) is KeyboardInterrupt:
            self.stop()

    def _find(self) -> bool:
        why = "libtacho runs on Linux only"
        if sys.platform.startswith("linux"):
            for path in _places():
                try:
                    self._take(path)
                    return True
                except (OSError, AttributeError) as error:
                    why = str(error)
        print_once("%s; nothing is recorded" % why)
        return False

    def _take(self, path: Optional[str]) -> None:
        quick = ctypes.PyDLL(path)
        waits = ctypes.CDLL(path)
        quick.tacho_step  # AttributeError: this is not libtacho
        for name, result, arguments, may_wait in _FUNCTIONS:
            function = getattr(waits if may_wait else quick, name, None)
            if function is None:  # the library is older than this package
                function = _nothing
            else:
                function.restype = result
                function.argtypes = arguments
            setattr(self, name[len("tacho_"):], function)
        self._found = True


def _places() -> Iterator[Optional[str]]:
    """Places of the library: loaded already, TACHO_LIBRARY, beside the package."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    library = os.environ.get("TACHO_LIBRARY")
    if is_in_process():
        yield None
    if library:
        yield library
        return
    for name in ("libtacho.so", "tacho.libs/libtacho.so", "../../build/libtacho.so",
                 "../../lib/libtacho.so.1"):
        path = os.path.join(here, name)
        if os.path.exists(path):
            yield path
    yield "libtacho.so.1"


lib: Any = _Calls()
ids: Dict[str, int] = {}


def id_of(name: str) -> int:
    """The library's number of a name."""
    number = ids.get(name)
    if number is None:
        number = ids[name] = lib.name(str(name).encode("utf-8", "replace"))
    return number


def available() -> bool:
    """Whether the library is available and TACHO_ENABLED is not 0."""
    return bool(lib.load())


def version() -> str:
    """The version of the library, such as "0.1.0"; empty without a library."""
    text = lib.version()
    return text.decode() if text else ""

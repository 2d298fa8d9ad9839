# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start under tacho-record, which puts this folder on PYTHONPATH.

It makes the package `tacho` importable behind all others of that name, calls tacho when a framework
has been imported (without one nothing more is loaded), takes its folder from sys.path again, and
hands on to the `sitecustomize` that would have been imported without it. The syntax is that of
Python 2.7, under which it does no more than that.
"""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_FOLDER = os.path.dirname(os.path.dirname(_HERE))
# When one of these modules has been imported, its program may train.
_FRAMEWORKS = ("torch", "jax", "lightning.pytorch.trainer.trainer",
               "pytorch_lightning.trainer.trainer", "deepspeed.runtime.engine")


class _Finder(object):
    """Finds `tacho`, and sees frameworks come. A module is found by the finders of Python, and its
    loader does its work as ever; its exec_module() is ours for the one call."""

    def __init__(self, watched):
        self.watched = watched
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if name == "tacho":
            return self._find_tacho(path, target)
        if name not in self.watched or name in self.busy:
            return None
        self.busy.add(name)
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find else None
                if spec is not None:
                    self._watch(spec)
                    return spec
        finally:
            self.busy.discard(name)
        return None

    @staticmethod
    def _find_tacho(path, target):
        for finder in sys.meta_path:
            if not isinstance(finder, _Finder) and hasattr(finder, "find_spec"):
                spec = finder.find_spec("tacho", path, target)
                if spec is not None and spec.origin is not None:
                    return spec
        paths = sys.modules["_frozen_importlib_external"].PathFinder
        return paths.find_spec("tacho", [_FOLDER], target)

    @staticmethod
    def _watch(spec):
        loader = spec.loader
        run = getattr(loader, "exec_module", None)

        def exec_module(module):
            del loader.exec_module
            run(module)
            try:
                from tacho import _auto
                _auto.on_import(module.__name__, module)
            except Exception as why:  # the program runs on
                sys.stderr.write("tacho: %s: %s; no automatic steps\n" % (module.__name__, why))

        try:
            if run is not None:
                loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader of somebody else's, which takes no attribute


def _is_yes(name):
    return os.environ.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def _print_stacks_on(words):
    """--save-on stacks=USR2: the signal on which the stacks of all threads are printed to stderr."""
    for word in words.split(","):
        name = word[len("stacks="):] if word.startswith("stacks=") else ""
        if name:
            import faulthandler
            import signal
            name = name.upper()
            number = int(name) if name.isdigit() else getattr(signal, "SIG" + name[3 * name.startswith("SIG"):])
            faulthandler.register(number, all_threads=True)


def _begin():
    sys.path[:] = [each for each in sys.path if os.path.abspath(each) != _HERE]
    if sys.version_info < (3, 8):
        sys.path.append(_FOLDER)
        return
    if _is_yes("TACHO_ENABLED"):
        _print_stacks_on(os.environ.get("TACHO_SAVE_ON", ""))
    watched = _FRAMEWORKS if _is_yes("TACHO_AUTO") and _is_yes("TACHO_ENABLED") else ()
    sys.meta_path.insert(0, _Finder(watched))


_begin()
# What Python does next without us; ImportError is what site expects where there is none.
del sys.modules["sitecustomize"]
import sitecustomize  # noqa: E402,F401

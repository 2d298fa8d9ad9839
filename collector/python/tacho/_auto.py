# SPDX-License-Identifier: Apache-2.0
"""Detects steps and phases of a program without marks, from the calls of its framework.

The folder hook/ calls on_import() when a framework has been imported; _torch.py, _jax.py and
_lightning.py then tell the object below what happens.

A step is one iteration of the training loop. It begins when the first batch is fetched after an
optimizer step or, without a data loader, right after the optimizer step. A forward pass in
evaluation mode before any training shows that this is a validation loop, not a step.
"""
from __future__ import annotations

import atexit
import sys
import threading
from typing import Any, Dict, List, Optional, Set

from . import _marks
from ._library import available, id_of, lib
from ._python import tracer
from ._settings import take

FRAMEWORKS = ("torch", "jax", "lightning.pytorch.trainer.trainer",
              "pytorch_lightning.trainer.trainer", "deepspeed.runtime.engine")


class Marks:
    """Automatic steps and phases of one thread: the optimizer's, at first the main thread.

    Marks of the program take precedence: after its first step() there are no automatic steps;
    inside its phases, and for names that it uses, there are no automatic phases.
    """

    def __init__(self) -> None:
        self._thread: Optional[int] = threading.main_thread().ident
        self._steps = True                # the program makes none
        self._open = False                # a step of ours
        self._stepped = False             # in it an optimizer has stepped
        self._trained = False             # in it there was a forward or backward pass of training
        self._last = False                # its batch is the last of the loader
        self._loaded: Set[int] = set()    # data sets that were fetched from in it
        self._training: Set[int] = set()  # data sets that were fetched from before a backward pass
        self._validation: Set[int] = set()
        self._order: List[int] = []       # optimizers, as they first came
        self._optimizer: Optional[int] = None  # the one that steps
        self._evaluated = self._evaluated_before = False  # before the training, in this step, the last
        self._calls: List[str] = []       # phases of calls of models that are open, "" if none
        self._phases: List[str] = []      # ours that are open, innermost last
        self._inside = 0                  # phases of the program that are open
        self._theirs: Set[str] = set()    # names of phases of the program

    def _is_ours(self) -> bool:
        return threading.get_ident() == self._thread

    # what the program marks

    def leave_steps(self) -> None:
        """Called when the program marks its own steps."""
        if self._steps:
            self._steps = False
            if self._open:
                self._cancel()

    def enter_phase(self, name: str) -> None:
        if self._is_ours():
            self._inside += 1
        self._theirs.add(name)

    def exit_phase(self) -> None:
        if self._inside and self._is_ours():
            self._inside -= 1

    # phases

    def begin(self, name: str) -> bool:
        """Begins a phase; end() must follow if this returns True."""
        if not self._is_ours() or self._inside or name in self._theirs or name in self._phases:
            return False
        lib.phase_push_id(id_of(name))
        self._phases.append(name)
        return True

    def end(self, name: str) -> None:
        """Ends a phase, and those within it that an exception has left open."""
        while self._is_ours() and name in self._phases:
            lib.range_pop()
            if self._phases.pop() == name:
                return

    # steps

    def _begin_step(self) -> None:
        while self._phases:
            self.end(self._phases[-1])
        self._calls = []
        lib.step()
        if tracer.wanted:
            tracer.follow()
        self._set_open(True)

    def _end_step(self) -> None:
        lib.step()
        self._cancel()

    def _cancel(self) -> None:
        lib.step_cancel()
        self._set_open(False)

    def _set_open(self, is_open: bool) -> None:
        self._open = is_open
        self._stepped = self._trained = self._last = False
        self._loaded = set()

    def _follow(self) -> bool:
        return self._steps and self._is_ours()

    def fetch(self, data: int) -> None:
        """Called before a batch of the data set with this number is fetched."""
        if not self._follow():
            return
        if data in self._validation:
            if self._open and self._stepped:  # the loop of the training has ended
                self._end_step()
            return
        if not self._open or self._stepped:
            self._begin_step()
        self._loaded.add(data)

    def exhausted(self) -> None:
        """Called when there was no batch. Some loaders ask for it before they return the last."""
        if not self._follow() or not self._open or self._stepped:
            return
        if self._trained:
            self._last = True
        else:
            self._cancel()

    def begin_forward(self, training: bool) -> None:
        """Called before a model runs; end_forward() follows. Nested calls belong to this one."""
        if not self._is_ours():
            return
        name = ""
        if not self._calls:
            name = self._forward(training)
            name = name if self.begin(name) else ""
        self._calls.append(name)

    def end_forward(self) -> None:
        if self._calls and self._is_ours():
            self.end(self._calls.pop())

    def _forward(self, training: bool) -> str:
        """Sees whether it belongs to a step; returns the name of the phase."""
        if training:
            if self._steps:
                self._train()
            return "forward"
        if self._trained or self._loaded & self._training:
            return "forward"
        self._evaluated = True
        if self._evaluated_before:  # a teacher, or a policy: each step has it
            return "forward"
        if self._steps:
            self._validation |= self._loaded
            if self._open and not self._stepped:
                self._cancel()
        return "validation" if self._order else "forward"

    def backward(self) -> None:
        if self._follow():
            self._train()
            self._training |= self._loaded
            self._validation -= self._loaded

    def _train(self) -> None:
        if not self._open:
            self._begin_step()
        self._trained = True

    def begin_optimizer(self, optimizer: int, phase: str = "optimizer") -> None:
        """An optimizer steps, on a thread that then is the one of the steps; or all of a step is
        one call."""
        if not self._is_ours():
            if self._open or self._phases or self._optimizer is not None:
                return
            self._thread = threading.get_ident()
        if self._optimizer is not None and self._optimizer != optimizer:
            return  # inside of another
        self._optimizer = optimizer
        if self._follow():
            if self._open and not self._trained and optimizer not in self._order and self._order:
                self._cancel()  # a second optimizer at the end of the same step
            elif not self._open:
                self._begin_step()
        self.begin(phase)

    def end_optimizer(self, optimizer: int, phase: str = "optimizer") -> None:
        if self._optimizer != optimizer or not self._is_ours():
            return
        self.end(phase)
        self._optimizer = None
        if optimizer not in self._order:
            self._order.append(optimizer)
        if not self._follow():
            return
        self._stepped = True
        self._evaluated, self._evaluated_before = False, self._evaluated
        if self._last:
            self._end_step()
        elif not self._loaded and optimizer == self._order[-1]:
            self._begin_step()

    def at_exit(self) -> None:
        """Discards the step that began after the last one."""
        if self._open and self._steps and not self._trained and self._is_ours():
            self._cancel()


_marks_of: Dict[str, Marks] = {}


def marks() -> Marks:
    """Returns the marks of the process."""
    if not _marks_of:
        _marks_of["process"] = Marks()
        _marks.set_automatic(_marks_of["process"])
        atexit.register(_marks_of["process"].at_exit)
    return _marks_of["process"]


_installed: Set[str] = set()


def on_import(name: str, module: Any) -> None:
    """Called when a framework has been imported."""
    if name in _installed or not available():
        return
    _installed.add(name)
    if name == "torch":
        from ._torch import install
    elif name == "jax":
        from ._jax import install
    elif name.endswith(".trainer.trainer"):
        from ._lightning import install
    else:
        from ._torch import install_deepspeed as install
    install(module, marks())


def automatic(config: Any = None, **options: Any) -> None:
    """Detect steps and phases of PyTorch, Lightning, DeepSpeed and JAX, as tacho-record does by
    default. Call this once after importing them, in a program that runs without tacho-record. The
    options are those of configure().
    """
    if config is not None or options:
        take("automatic", config, options)
    for name in FRAMEWORKS:
        module = sys.modules.get(name)
        if module is not None:
            on_import(name, module)

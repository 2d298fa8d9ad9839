# SPDX-License-Identifier: Apache-2.0
"""Callbacks of training loops."""
from __future__ import annotations

import os
import sys
from typing import Any, Optional

from ._auto import automatic
from ._library import RECORDING, lib, print_once
from ._marks import epoch_end, flush, start, state, step, stop, validation_begin
from ._python import watch_gc
from ._settings import take


class Callback:
    """`config` and `options` are those of configure(), including other profilers' keys."""

    def __init__(self, config: Any = None, watch_collections: bool = True,
                 **options: Any) -> None:
        if config is not None or options:
            take(type(self).__name__, config, options)
        if watch_collections:
            watch_gc()


class TorchCallback(Callback):
    """For a training loop, used like torch.profiler: call step() after each step (or epoch).

        with tacho.TorchCallback(wait=1, warmup=1, active=3, repeat=1) as profiler:
            for batch in loader:
                train(batch)
                profiler.step()
    """

    def start(self) -> None:
        """Begin the first step."""
        step()

    def step(self) -> None:
        """End a step, and begin the next one."""
        step()

    def stop(self) -> None:
        """End training; the log is complete on return, after two seconds at most."""
        lib.step_cancel()  # the last step() has begun a step that does not exist
        stop()

    def __enter__(self) -> TorchCallback:
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()


def _window_is_of_steps() -> bool:
    window = os.environ.get("TACHO_WINDOW", "")
    keys = ("TACHO_START_STEP", "TACHO_END_STEP")
    return window.startswith("steps:") or not window and any(key in os.environ for key in keys)


class JaxCallback(Callback):
    """For trainers that call on_training_start(), on_training_step() after each step,
    on_training_epoch_end() and on_validation_epoch_start(). A trainer that does not call
    on_training_epoch_start() loses the first step of each further epoch.

    The end of an epoch ends a window, except a window of given steps (start_step and end_step, or
    window="steps:10-30"), which continues in the next epoch.
    """

    def on_training_start(self, *args: Any, **kwargs: Any) -> None:
        """Begin the first step."""
        step()

    def on_training_epoch_start(self, *args: Any, **kwargs: Any) -> None:
        """Begin the first step of the epoch."""
        lib.step_cancel()
        step()

    def on_training_step(self, step_metrics: Any = None, epoch_idx: Optional[int] = None,
                         step_idx: Optional[int] = None, *args: Any, **kwargs: Any) -> None:
        """End step `step_idx`, and begin the next one."""
        step(None if step_idx is None else int(step_idx) + 1)

    def on_training_epoch_end(self, *args: Any, **kwargs: Any) -> None:
        """Discard the step that began after the last one, and end a running window."""
        if not _window_is_of_steps():
            lib.step_cancel()
            epoch_end()

    def on_validation_epoch_start(self, *args: Any, **kwargs: Any) -> None:
        """Like on_training_epoch_end(); validation steps are not recorded as training steps."""
        lib.step_cancel()
        if not _window_is_of_steps():
            validation_begin()

    def on_training_end(self, *args: Any, **kwargs: Any) -> None:
        """End the last window, and write everything to the log."""
        lib.step_cancel()
        epoch_end()
        flush()

    def start_trace(self, step_idx: Optional[int] = None) -> None:
        """Begin a window by hand; prints a warning when one is open."""
        if state() == RECORDING:
            print_once("a window is open already")
        start()

    def stop_trace(self) -> None:
        """End the window, if one is open."""
        stop()


class _HuggingFaceHooks(Callback):
    """Steps and phases come from PyTorch."""

    def __init__(self, config: Any = None, watch_collections: bool = True,
                 **options: Any) -> None:
        super().__init__(config, watch_collections, **options)
        automatic()

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        flush()


def HuggingFaceCallback(config: Any = None, watch_collections: bool = True,  # noqa: N802
                        **options: Any) -> Any:
    """A callback for the Trainer of `transformers`:
    Trainer(callbacks=[tacho.HuggingFaceCallback(window="steps:10-20")]). It is not needed
    under tacho-record.
    """
    base = getattr(sys.modules.get("transformers"), "TrainerCallback", object)
    made = type("HuggingFaceCallback", (_HuggingFaceHooks, base), {"__module__": "tacho"})
    return made(config, watch_collections, **options)

# SPDX-License-Identifier: Apache-2.0
"""Steps and actions of Lightning's trainer."""
from __future__ import annotations

import functools
import sys
import threading
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._callbacks import Callback
from ._library import available, lib
from ._marks import Named, epoch_end, flush, phase, range, step, validation_begin

class LightningHooks(Callback):
    """Records steps of Lightning's trainer, and each action that its profiler times as a range.

    Actions come from the trainer's own profiler: its start() and stop() are wrapped. Actions that
    are listed in PHASES also become phases.
    """

    # The end of an action's name, and its phase. Reports recognise other actions by their names
    # ("train_dataloader_next", "optimizer_step").
    PHASES = ((".training_step", "forward"), (".backward", "backward"),
              (".validation_step", "validation"), (".train_dataloader_next", "data"),
              (".optimizer_step", "optimizer"), (".optimizer_zero_grad", "optimizer"))
    DEPTH = 60

    def __init__(self, config: Any = None, watch_collections: bool = True,
                 **options: Any) -> None:
        super().__init__(config, watch_collections, **options)
        self._profiler: Any = None
        self._open = threading.local()  # .actions: (name, ranges pushed), innermost last
        self._pushed: Dict[str, Tuple[Named, ...]] = {}

    def __getstate__(self) -> Dict[str, Any]:  # a trainer with several processes pickles callbacks
        return {"_profiler": None, "_pushed": {}}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._open = threading.local()

    def _ranges_of(self, action: str) -> Tuple[Named, ...]:
        found = self._pushed.get(action)
        if found is None:
            words = [word for end, word in self.PHASES if action.endswith(end)]
            found = self._pushed[action] = (range(action),) + tuple(map(phase, words[:1]))
        return found

    def _actions(self) -> List[Tuple[str, int]]:
        actions: Optional[List[Tuple[str, int]]] = getattr(self._open, "actions", None)
        if actions is None:
            actions = self._open.actions = []
        return actions

    def _begin(self, action: str) -> None:
        actions = self._actions()
        if len(actions) < self.DEPTH:
            ranges = self._ranges_of(action)
            actions.append((action, len(ranges)))
            for each in ranges:
                each.__enter__()

    def _end(self, action: str) -> None:
        actions = self._actions()
        if not any(name == action for name, _ in actions):
            return  # it began before the callback was set up
        while actions:
            name, count = actions.pop()
            while count:
                lib.range_pop()
                count -= 1
            if name == action:
                return

    def _watch(self, profiler: Any) -> None:
        begin, end = profiler.start, profiler.stop

        def start_action(action_name: str, *args: Any, **kwargs: Any) -> Any:
            self._begin(action_name)
            return begin(action_name, *args, **kwargs)

        def stop_action(action_name: str, *args: Any, **kwargs: Any) -> Any:
            try:
                return end(action_name, *args, **kwargs)
            finally:
                self._end(action_name)

        profiler.start, profiler.stop = start_action, stop_action
        self._profiler = profiler

    def leave(self) -> None:
        if self._profiler is not None:
            self._profiler.__dict__.pop("start", None)
            self._profiler.__dict__.pop("stop", None)
            self._profiler = None
        for name, _ in reversed(list(self._actions())):
            self._end(name)

    def setup(self, trainer: Any, pl_module: Any, stage: Any = None) -> None:
        profiler = getattr(trainer, "profiler", None)
        if self._profiler is None and hasattr(profiler, "__dict__") and available():
            self._watch(profiler)

    def teardown(self, trainer: Any, pl_module: Any, stage: Any = None) -> None:
        self.leave()
        flush()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        epoch_end()
        self.leave()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int,
                             *args: Any) -> None:
        step()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        epoch_end()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if not getattr(trainer, "sanity_checking", False):
            validation_begin()


def LightningCallback(config: Any = None, watch_collections: bool = True,  # noqa: N802
                      **options: Any) -> Any:
    """A callback for the Trainer of `lightning` or `pytorch_lightning`, whichever is imported:
    Trainer(callbacks=[tacho.LightningCallback(wait_steps=1, warmup_steps=1, active_steps=3)]).
    """
    bases = tuple(getattr(sys.modules[name], "Callback")
                  for name in ("lightning.pytorch", "pytorch_lightning")
                  if hasattr(sys.modules.get(name), "Callback"))
    made = type("LightningCallback", (LightningHooks,) + bases, {"__module__": "tacho"})
    return made(config, watch_collections, **options)


class _Actions(LightningHooks):
    """The actions of a trainer that has no callback of ours; the steps come from PyTorch."""

    def on_train_batch_start(self, *args: Any) -> None:
        pass


def install(trainers: Any, marks: Any) -> None:
    """Watches the profiler of each Trainer while it runs, in the process in which it runs."""
    run = trainers.Trainer._run

    @functools.wraps(run)
    def _run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(each, LightningHooks) for each in getattr(self, "callbacks", ())):
            return run(self, *args, **kwargs)
        actions = _Actions(watch_collections=False)
        actions.setup(self, None)
        try:
            return run(self, *args, **kwargs)
        finally:
            actions.leave()
    trainers.Trainer._run = _run

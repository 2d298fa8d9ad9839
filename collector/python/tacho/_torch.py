# SPDX-License-Identifier: Apache-2.0
"""What PyTorch does, for automatic steps and phases: data loaders, models, autograd, optimizers."""
from __future__ import annotations

import contextlib
import functools
import gc
import sys
from typing import Any, Callable, Dict, List, Tuple

from ._auto import Marks


def is_compiling(torch: Any) -> bool:
    """Whether torch.compile reads the call that is at work: then a hook is to leave no trace."""
    asked = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return bool(asked and asked())


class Hook:
    """A hook of a module, which is copied and pickled as a callable that does nothing: what holds
    a model knows nothing of us."""

    def __init__(self, call: Callable[..., None]) -> None:
        self._call = call

    def __call__(self, *args: Any) -> None:
        self._call(*args)

    def __deepcopy__(self, memo: Any) -> Hook:
        return self

    def __reduce__(self) -> Tuple[Any, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")


class _Models:
    """Finds the outermost models, once there is something to train, and puts hooks on them.

    Hooks for all modules would cost each call of each layer, and torch.compile would compile again
    when they go. So the modules that are in no other module get one each; and if no forward pass
    is seen of them, those inside of them, three levels down.
    """

    LEVELS = 3

    def __init__(self, torch: Any, marks: Marks) -> None:
        self._torch, self._marks = torch, marks
        self._level = 0
        self._handles: Dict[int, List[Any]] = {}
        self.seen = False  # a forward pass

    def find(self) -> None:
        if self.seen or self._level >= self.LEVELS:
            return
        self._level += 1
        module = self._torch.nn.Module
        every = [thing for thing in gc.get_objects() if issubclass(type(thing), module)]
        inside = set()
        for one in every:
            inside.update(map(id, (one.__dict__.get("_modules") or {}).values()))
        level = [one for one in every if id(one) not in inside]
        for _ in range(1, self._level):
            level = [part for one in level
                     for part in (one.__dict__.get("_modules") or {}).values() if part is not None]
        for one in level:
            if id(one) not in self._handles:
                self._watch(one)

    def _watch(self, module: Any) -> None:
        always = {"always_call": True}
        try:
            before = module.register_forward_pre_hook(Hook(self._before))
            try:
                after = module.register_forward_hook(Hook(self._after), **always)
            except TypeError:  # before PyTorch 2.1
                after = module.register_forward_hook(Hook(self._after))
            self._handles[id(module)] = [before, after]
        except (AttributeError, RuntimeError, TypeError):
            pass  # a module that takes no hooks

    def forget(self, module: Any) -> None:
        """Takes the hooks away again, for torch.jit.script."""
        for part in module.modules():
            for handle in self._handles.pop(id(part), ()):
                handle.remove()

    def _before(self, module: Any, *args: Any) -> None:
        if is_compiling(self._torch):
            return
        self.seen = True
        training = bool(getattr(module, "training", False)) and self._torch.is_grad_enabled()
        self._marks.begin_forward(training)

    def _after(self, module: Any, *args: Any) -> None:
        if not is_compiling(self._torch):
            self._marks.end_forward()


def _wrap(holder: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replaces a function by make(function), if it is there."""
    function = getattr(holder, name, None)
    if function is not None:
        setattr(holder, name, functools.wraps(function)(make(function)))


def _watch_data(torch: Any, marks: Marks, models: _Models) -> None:
    from torch.utils.data import dataloader

    def fetching(fetch: Any) -> Any:
        def __next__(self: Any) -> Any:
            models.find()
            marks.fetch(id(getattr(self, "_dataset", None)))
            began = marks.begin("data")
            try:
                return fetch(self)
            except StopIteration:
                marks.exhausted()
                raise
            finally:
                if began:
                    marks.end("data")
        return __next__
    _wrap(dataloader._BaseDataLoaderIter, "__next__", fetching)


def _watch_backward(torch: Any, marks: Marks, models: _Models) -> None:
    def backward(run: Any) -> Any:
        def run_backward(*args: Any, **kwargs: Any) -> Any:
            if is_compiling(torch):
                return run(*args, **kwargs)
            marks.backward()
            began = marks.begin("backward")
            try:
                return run(*args, **kwargs)
            finally:
                if began:
                    marks.end("backward")
        return run_backward
    # what both backward() and grad() call, where there is such a thing
    inner = hasattr(torch.autograd, "_engine_run_backward")
    _wrap(torch.autograd, "_engine_run_backward" if inner else "backward", backward)


def _watch_optimizers(torch: Any, marks: Marks, models: _Models) -> None:
    def before(optimizer: Any, *args: Any) -> None:
        if not is_compiling(torch):
            models.find()
            marks.begin_optimizer(id(optimizer))

    def after(optimizer: Any, *args: Any) -> None:
        if not is_compiling(torch):
            marks.end_optimizer(id(optimizer))

    optimizers = sys.modules["torch.optim.optimizer"]  # torch.optim deletes its name
    if hasattr(optimizers, "register_optimizer_step_pre_hook"):
        optimizers.register_optimizer_step_pre_hook(before)
        optimizers.register_optimizer_step_post_hook(after)
        return

    def stepping(run: Any) -> Any:
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            before(self)
            try:
                return run(self, *args, **kwargs)
            finally:
                after(self)
        return step

    def hooking(hook: Any) -> Any:  # before PyTorch 2.0: it wraps step() of each class once
        def _hook_for_profile(self: Any) -> None:
            known = getattr(type(self).step, "hooked", None)
            hook(self)
            if not known:
                _wrap(type(self), "step", stepping)
        return _hook_for_profile
    _wrap(optimizers.Optimizer, "_hook_for_profile", hooking)


def _watch_scaler(torch: Any, marks: Marks) -> None:
    """A gradient scaler leaves out the optimizer's step where a gradient is infinite; that is the
    end of a training step all the same."""
    def scaling(run: Any) -> Any:
        def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            marks.begin_optimizer(id(optimizer))
            try:
                return run(self, optimizer, *args, **kwargs)
            finally:
                marks.end_optimizer(id(optimizer))
        return step
    for path in ("amp.grad_scaler", "cuda.amp.grad_scaler"):
        place = torch
        for part in path.split("."):
            place = getattr(place, part, None)
        if "step" in vars(getattr(place, "GradScaler", object)):
            _wrap(place.GradScaler, "step", scaling)
            return


def install(torch: Any, marks: Marks) -> None:
    models = _Models(torch, marks)
    _watch_data(torch, marks, models)
    _watch_backward(torch, marks, models)
    _watch_optimizers(torch, marks, models)
    _watch_scaler(torch, marks)

    def scripting(run: Any) -> Any:
        def get_hook_stubs(module: Any) -> Any:
            models.forget(module)
            return run(module)
        return get_hook_stubs
    _wrap(getattr(torch.jit, "_recursive", None), "get_hook_stubs", scripting)


def install_deepspeed(engine: Any, marks: Marks) -> None:
    """DeepSpeed steps its optimizers in parts; its engine knows where a step ends."""
    def stepping(run: Any) -> Any:
        def _take_model_step(self: Any, *args: Any, **kwargs: Any) -> Any:
            marks.begin_optimizer(id(self))
            try:
                return run(self, *args, **kwargs)
            finally:
                marks.end_optimizer(id(self))
        return _take_model_step
    _wrap(engine.DeepSpeedEngine, "_take_model_step", stepping)

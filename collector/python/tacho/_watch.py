# SPDX-License-Identifier: Apache-2.0
"""Modules of a PyTorch model as ranges."""
from __future__ import annotations

import sys
from typing import Any, Dict, List

from ._library import available, id_of, lib

_handles: Dict[int, List[Any]] = {}


def watch(model: Any, on: bool = True) -> Any:
    """Record each call of each module of a PyTorch model as a range, with the module's name in the
    model ("encoder.layers.0.attention") or, for the model itself, that of its class. Returns the
    model. With on=False the hooks are removed.
    """
    for handle in _handles.pop(id(model), ()):
        handle.remove()
    if not on or not available():
        return model
    from ._torch import Hook, is_compiling
    torch = sys.modules["torch"]

    def watch_one(module: Any, name: str) -> List[Any]:
        number = id_of(name)
        depth = [0]  # a call that raised may have left no end

        def before(*args: Any) -> None:
            if not is_compiling(torch):
                lib.range_push_id(number)
                depth[0] += 1

        def after(*args: Any) -> None:
            if depth[0] and not is_compiling(torch):
                depth[0] -= 1
                lib.range_pop()
        first = module.register_forward_pre_hook(Hook(before))
        try:
            return [first, module.register_forward_hook(Hook(after), always_call=True)]
        except TypeError:  # before PyTorch 2.1
            return [first, module.register_forward_hook(Hook(after))]

    _handles[id(model)] = [handle for name, module in model.named_modules()
                           for handle in watch_one(module, name or type(model).__name__)]
    return model

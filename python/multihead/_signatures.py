"""inspect.signature for the compiled functions: read from the text that nanobind keeps of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from inspect import Signature


def _signature(function: Any) -> Signature:
    import ast
    from inspect import Parameter, Signature

    text, _, values = function.__nb_signature__[0]
    named = re.sub(r"\\=?(\d+)", r"_\1", text)
    made = ast.parse(f"{named}: pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    given = made.args
    default = lambda node: Parameter.empty if node is None else values[int(node.id[1:])]
    first = [(a.arg, Parameter.POSITIONAL_ONLY) for a in given.posonlyargs]
    first += [(a.arg, Parameter.POSITIONAL_OR_KEYWORD) for a in given.args]
    behind = [None] * (len(first) - len(given.defaults)) + given.defaults
    parts = [Parameter(name, kind, default=default(d)) for (name, kind), d in zip(first, behind)]
    parts += [Parameter(a.arg, Parameter.KEYWORD_ONLY, default=default(d)) for a, d in zip(given.kwonlyargs, given.kw_defaults)]
    parts += [Parameter(given.kwarg.arg, Parameter.VAR_KEYWORD)] if given.kwarg else []
    return Signature(parts)


def _without_self(method: Any) -> Signature:
    whole = _signature(method)
    return whole.replace(parameters=list(whole.parameters.values())[1:])


def install() -> None:
    """Functions and methods of the compiled part get a __signature__; its types are of its own domain, nobody else's."""
    bound = _core.KVCache(1, 1, 1, capacity=1).append
    for kind, read in ((type(_core.attention), _signature), (type(_core.KVCache.append), _signature), (type(bound), _without_self)):
        _core.add_to_type(kind, "__signature__", property(read))

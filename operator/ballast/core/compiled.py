"""Where the compiled loops come from: a library that was built for this very source, or numba.

A checkout's environment holds the library where a compiler is (``deploy/library.py`` builds it); loading it imports neither numba nor
LLVM, which is most of what a first plan would cost.  Elsewhere numba compiles each loop when it is first called and keeps it on disk.
The images hold the library and no numba: a call that the library was not built for is then made by Python itself, slowly, and a warning
says so.

The library's name holds a digest of the loops' source, so that one of another version is never loaded; it is built for any processor
of its kind.  Both ways compile the same source and return the same integers.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np

CORE: Final = Path(__file__).parent
NAME: Final = "ballast_kernels"
"""The library as Python imports it."""
SOURCES: Final = (
    "leadership.reorder_changes",
    "leadership.reorder_relax",
    "leadership.reorder_round",
    "planner.bound.kernels",
    "planner.problem.problem",
    "planner.search.loops.arrays",
    "planner.search.loops.forced",
    "planner.search.loops.kernels",
    "planner.search.loops.relief",
    "planner.search.loops.swaps",
)
"""The modules with compiled loops, and those whose constants and types they take; a test holds that it is all of them."""


def library_path(core: Path = CORE) -> Path:
    """The library for the loops in this folder and this Python, whether or not it has been built."""
    digest = sha256()
    for source in SOURCES:
        digest.update((core / f"{source.replace('.', '/')}.py").read_bytes())
    return Path(sys.prefix, "lib", "ballast", f"{NAME}-{digest.hexdigest()[:16]}{EXTENSION_SUFFIXES[0]}")


@cache
def library() -> ModuleType | None:
    """The library, loaded; None where none has been built for this source."""
    path = library_path()
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location(NAME, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no extension module.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def describe(arguments: tuple[Any, ...]) -> str:
    """The types of a call: each array's number of dtype and its rank, ``i`` and ``b`` for scalars, ``T…E`` for tuples.

    The library's functions do not check what they are given; those that were built for one description are called with no other.
    """
    parts = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            parts.append(f"a{value.dtype.num}d{value.ndim}" if value.flags.c_contiguous else "strided")
        elif isinstance(value, tuple):
            parts.append(f"T{describe(value)}E")
        elif isinstance(value, (bool, np.bool_)):
            parts.append("b")
        elif isinstance(value, (int, np.integer)):
            parts.append("i")
        else:
            parts.append("other")
    return "".join(parts)


def symbol(module: str, function: str, described: str) -> str:
    """The library's name for a loop that is called with such arguments."""
    return f"{module.removeprefix('ballast.core.').replace('.', '_')}_{function}_{described}"


class Kernel:
    """One loop of the library; what it was not built for, numba compiles, or Python runs as it stands where there is no numba."""

    def __init__(self, function: Any, built: Mapping[str, Any], options: Mapping[str, bool]) -> None:
        self.function: FunctionType = function
        self.built = built
        self.options = options

    def __call__(self, *arguments: Any) -> Any:
        """Run it on these."""
        name = symbol(self.function.__module__, self.function.__name__, describe(arguments))
        found = self.built.get(name)
        return self.by_numba(*arguments) if found is None else found(*arguments)

    @cached_property
    def by_numba(self) -> Callable[..., Any]:
        """The same loop, and those that it calls, compiled here."""
        if importlib.util.find_spec("numba") is None:
            warnings.warn(f"{self.function.__name__} is not compiled for these arguments: slow", stacklevel=3)
            return self.function
        from numba import njit  # noqa: PLC0415 — it takes half a second, and is rarely needed

        known = self.function.__globals__
        called = {n: known[n].by_numba for n in self.function.__code__.co_names if isinstance(known.get(n), Kernel)}
        alone = FunctionType(self.function.__code__, {**known, **called}, self.function.__name__)
        compiled: Callable[..., Any] = njit(nogil=True, **self.options)(alone)
        return compiled


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop over integers and arrays of them; it runs without the interpreter's lock."""
    return _compile(function)


def part(function: Callable[..., Any]) -> Any:
    """Compile what other loops call in theirs, and which makes no array.

    So it need not count who uses the arrays that it is given, which would cost more than what it does with them.
    """
    return _compile(function, _nrt=False)


def _compile(function: Callable[..., Any], **options: bool) -> Any:
    built = library()
    if built is not None:
        return Kernel(function, vars(built), options)
    from numba import njit  # noqa: PLC0415 — it takes half a second, and is needed only here

    return njit(cache=True, nogil=True, **options)(function)

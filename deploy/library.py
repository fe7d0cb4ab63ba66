"""Builds the library of the planner's compiled loops, which a process loads without numba and LLVM (``ballast.core.compiled``).

``python library.py`` makes plans of every kind with numba (``kernels.py``), takes the types that each loop was called with, compiles all of
them for any processor of this kind, and puts the library where this environment looks for it.  It needs setuptools, a C++ compiler and
Python's headers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

# Before numba is imported, which reads it then.
os.environ["NUMBA_CPU_NAME"] = "generic"

from numba import pycc, types
from numba.core import compiler
from numba.core.registry import CPUDispatcher
from numba.np import numpy_support

from ballast.core import compiled

sys.path.insert(0, str(Path(__file__).parent))
from kernels import kernels, make_plans


def by_name() -> dict[tuple[str, str], CPUDispatcher]:
    """Every compiled loop of the core by its module and name."""
    return {(loop.py_func.__module__, name.rpartition(".")[2]): loop for name, loop in kernels().items()}


def describe(given: tuple[Any, ...]) -> str | None:
    """Numba's types as ``compiled.describe`` says them of values; None where some are never passed from outside."""
    parts: list[str | None] = []
    for one in given:
        if isinstance(one, types.Array) and one.layout == "C":
            parts.append(f"a{numpy_support.as_dtype(one.dtype).num}d{one.ndim}")
        elif isinstance(one, (types.Tuple, types.UniTuple)):
            inner = describe(tuple(one))
            parts.append(None if inner is None else f"T{inner}E")
        elif one == types.boolean:
            parts.append("b")
        elif one == types.int64:
            parts.append("i")
        else:
            parts.append(None)
    said = [part for part in parts if part is not None]
    return "".join(said) if len(said) == len(parts) else None


def released() -> compiler.Flags:
    """The flags of numba's own, and the interpreter's lock released while a loop runs."""
    flags = compiler.Flags()
    flags.release_gil = True
    return flags


def build_library(target: Path, loops: dict[tuple[str, str], CPUDispatcher]) -> None:
    """Compile what the loops were called with into one extension module; ``target`` appears when it is whole."""
    pycc.compiler.Flags = released
    library = pycc.CC(compiled.NAME, source_module=sys.modules[__name__])
    for (module, name), loop in loops.items():
        for signature, overload in loop.overloads.items():
            described = describe(signature)
            if described is not None:
                library.export(compiled.symbol(module, name, described), overload.signature)(loop.py_func)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        os.environ["LDFLAGS"] = "-s"
        library.output_dir, library.output_file = folder, target.name
        library.compile()
        (Path(folder) / target.name).replace(target)


def main() -> int:
    """0 when the library is there."""
    target = compiled.library_path()
    if not target.exists():
        make_plans()
        # What numba finds compiled on disk counts as well; of loops that only other loops call, it then knows nothing.
        build_library(target, by_name())
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Builds the library of the planner's compiled loops, which a process loads without numba and LLVM (``ballast.core.compiled``).

``python library.py`` makes plans of every kind with numba (``small_clusters.py``), takes the types that each loop was called with, compiles
all of them for any processor of this kind, and puts the library where this environment looks for it.  It needs setuptools, Python's headers
and a C++ compiler: that of the package ``ziglang`` where it is installed, else the machine's.  It fails when a loop was never called: then
a plan that calls it is missing there.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import pkgutil
import platform
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

# Before numba is imported, which reads them then.  A loop that it finds compiled on disk would not tell what it calls.
os.environ["NUMBA_CPU_NAME"] = "generic"
os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp()

from numba import types
from numba.core import compiler
from numba.core.registry import CPUDispatcher
from numba.np import numpy_support

import ballast.core
from ballast.core import compiled

sys.path.insert(0, str(Path(__file__).parent))
from small_clusters import make_plans

# Numba and its compilers leave files of their own behind.
tempfile.tempdir = os.environ["TMPDIR"] = os.environ["NUMBA_CACHE_DIR"]
atexit.register(shutil.rmtree, tempfile.tempdir)

GLIBC = "2.28"
"""The oldest C library that the wheels of the lock run on."""
Loops = dict[tuple[str, str], CPUDispatcher]
"""By module and name."""


def find_loops() -> Loops:
    """Every compiled loop of the core."""
    found = {}
    for info in pkgutil.walk_packages(ballast.core.__path__, "ballast.core."):
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            if isinstance(value, CPUDispatcher) and value.py_func.__module__ == info.name:
                found[info.name, value.py_func.__name__] = value
    return found


def never_called(loops: Loops) -> list[str]:
    """Loops that no plan called, neither directly nor in another loop."""
    inside = {name for loop in loops.values() if loop.signatures for name in loop.py_func.__code__.co_names}
    return sorted(".".join(key) for key, loop in loops.items() if not loop.signatures and key[1] not in inside)


def describe(given: tuple[Any, ...]) -> str | None:
    """Numba's types as ``compiled.describe`` says them of values; None where some are never passed from outside."""
    parts: list[str | None] = []
    for one in given:
        if isinstance(one, types.Array) and one.layout == "C":
            parts.append(f"a{numpy_support.as_dtype(one.dtype).num}d{one.ndim}")
        elif isinstance(one, types.BaseTuple):
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


def use_zig() -> None:
    """Compile with zig, for any processor of this kind; of the machine's own it would use all that it has."""
    for variable, words in (("CC", "cc"), ("CXX", "c++"), ("LDSHARED", "cc -shared")):
        target = f"{platform.machine()}-linux-gnu.{GLIBC}"
        os.environ[variable] = f"{shlex.quote(sys.executable)} -m ziglang {words} -target {target}"


def build_library(target: Path, loops: Loops) -> None:
    """Compile what the loops were called with into one extension module; ``target`` appears when it is whole."""
    if importlib.util.find_spec("ziglang"):
        use_zig()
    from numba import pycc  # noqa: PLC0415 — it asks for the compiler when it is imported

    pycc.compiler.Flags = released
    library = pycc.CC(compiled.NAME, source_module=sys.modules[__name__])
    for (module, name), loop in loops.items():
        for signature, overload in loop.overloads.items():
            described = describe(signature)
            if described is not None:
                library.export(compiled.symbol(module, name, described), overload.signature)(loop.py_func)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        os.environ |= {"LDFLAGS": "-s", "ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
        library.output_dir, library.output_file = folder, target.name
        library.compile()
        (Path(folder) / target.name).replace(target)


def main() -> int:
    """0 when the library is there."""
    target = compiled.library_path()
    if target.exists():
        return 0
    make_plans()
    loops = find_loops()
    if missing := never_called(loops):
        print(f"never called: {', '.join(missing)}", file=sys.stderr)
        return 1
    build_library(target, loops)
    return 0


if __name__ == "__main__":
    sys.exit(main())

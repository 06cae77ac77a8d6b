"""The calls of libmemplan (harness/lib/memplan.h), by ctypes; statuses become exceptions."""

from __future__ import annotations

import ctypes
import os
from typing import Any, List, Optional, Type

NATIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native")


class MemplanError(Exception):
    """memplan cannot do what was asked for; the message says why."""


class InputError(MemplanError, ValueError):
    """A file or an argument is wrong."""


class Infeasible(MemplanError):
    """It is proved that no plan fits the capacity."""


class InvalidPlan(MemplanError):
    """The verifier refused a plan; the message names two buffers that overlap, or what else is wrong."""


class BudgetError(MemplanError):
    """The budget or time ended before there was a plan; one may exist."""


class Unavailable(MemplanError):
    """Not in this build, or the planner cannot take this problem."""


class OutOfMemory(MemplanError, MemoryError):
    """The machine's memory ran out."""


def _load() -> ctypes.CDLL:
    path = os.environ.get("MEMPLAN_LIBRARY") or os.path.join(NATIVE, "libmemplan.so")
    try:
        lib = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"memplan: {error}") from None
    pointer, text, u32, u64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64
    out = ctypes.POINTER(pointer)
    for name, result, *arguments in (
            ("version", text), ("ctx_new", pointer), ("ctx_free", None, pointer), ("message", text, pointer),
            ("set", ctypes.c_int, pointer, text, text), ("load", ctypes.c_int, pointer, text, out),
            ("task_new", ctypes.c_int, pointer, text, out), ("task_free", None, pointer),
            ("add", ctypes.c_int, pointer, text, u64, u32, u32, u32, pointer),
            ("add_all", ctypes.c_int, pointer, u32, pointer, pointer, pointer, pointer),
            ("add_before", ctypes.c_int, pointer, u32, u32), ("add_in_place", ctypes.c_int, pointer, u32, u32),
            ("fix", ctypes.c_int, pointer, u32, u64), ("set_capacity", ctypes.c_int, pointer, u64),
            ("count", u32, pointer), ("name", text, pointer, u32), ("bytes", u64, pointer, u32),
            ("run", ctypes.c_int, pointer, text, out), ("verify", ctypes.c_int, pointer, pointer, out),
            ("offsets", None, pointer, pointer), ("text", text, pointer), ("plan_free", None, pointer),
            ("peak_bytes", u64, pointer), ("bound_bytes", u64, pointer), ("claim_of", ctypes.c_int, pointer),
            ("planner_name", text, u32)):
        function = getattr(lib, "memplan_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


lib = _load()


def version() -> str:
    """Version of the library, such as "0.1.0"."""
    return str(lib.memplan_version().decode())


def planners() -> List[str]:
    """Names that `planner=` takes, in the order of every report."""
    names: List[str] = []
    while (name := lib.memplan_planner_name(len(names))) is not None:
        names.append(name.decode())
    return names


class Context:
    """A context of the library and, once there are any, one task and one plan; ends all three."""

    def __init__(self) -> None:
        self.ctx: Any = lib.memplan_ctx_new()
        if not self.ctx:
            raise OutOfMemory("memplan: out of memory")
        self.task = ctypes.c_void_p()
        self.plan = ctypes.c_void_p()

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: object) -> None:
        if self.plan:
            lib.memplan_plan_free(self.plan)
        if self.task:
            lib.memplan_task_free(self.task)
        lib.memplan_ctx_free(self.ctx)

    def message(self) -> str:
        return str(lib.memplan_message(self.ctx).decode(errors="replace"))

    def hold(self, status: int, refused: Type[MemplanError] = InputError) -> None:
        """Raises the exception of a status; refused: that of MEMPLAN_EINVALID."""
        if status != 0:
            kinds = (MemplanError, OutOfMemory, InputError, BudgetError, refused, Unavailable)
            raise kinds[status](self.message())

    def set(self, name: str, value: Optional[object]) -> None:
        """Changes a setting, unless value is None; a truth value is on or off."""
        if value is not None:
            text = ("on" if value else "off") if isinstance(value, bool) else str(value)
            self.hold(lib.memplan_set(self.ctx, name.encode(), text.encode()))

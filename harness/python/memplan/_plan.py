"""Plans: of lists of buffers, and of models."""

from __future__ import annotations

import ctypes
import functools
import json
import os
from array import array
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._native import Context, Infeasible, InputError, InvalidPlan, lib

if TYPE_CHECKING:
    import numpy

    Lives = Union[Sequence[Tuple[float, float]], "numpy.ndarray[Any, Any]"]
    Sizes = Union[Sequence[int], "numpy.ndarray[Any, Any]"]
    from ._program import Check, Explanation

MOST_STEP = 2**32 - 1


class Plan:
    """An offset for each buffer of one arena; accepted by a verifier that shares no code with any planner."""

    bytes: int
    """Size of the arena."""
    offsets: Union[List[int], "numpy.ndarray[Any, Any]"]
    """Offset of each buffer [byte]: a numpy array of uint64 if arrays came in, else a list."""
    optimal: bool
    """Proved: no valid plan needs less than `bytes`."""
    bound: int
    """Proved: no valid plan needs less than this [byte]."""
    sizes: List[int]
    """Bytes of each buffer."""
    names: List[str]
    """Name of each buffer: its own, or "#3"."""

    def __init__(self, context: Context, numpy_out: bool) -> None:
        n = lib.memplan_count(context.task)
        offset = (ctypes.c_uint64 * n)()
        lib.memplan_offsets(context.plan, offset)
        self.bytes = lib.memplan_peak_bytes(context.plan)
        self.bound = lib.memplan_bound_bytes(context.plan)
        self.optimal = lib.memplan_claim_of(context.plan) == 1 or self.bytes == self.bound
        self.offsets = _as_numpy(offset) if numpy_out else list(offset)
        self.sizes = [lib.memplan_bytes(context.task, i) for i in range(n)]
        names = (lib.memplan_name(context.task, i) for i in range(n))
        self.names = [f"#{i}" if name is None else name.decode(errors="replace") for i, name in enumerate(names)]
        text = lib.memplan_text(context.plan)
        if text is None:
            raise InputError(context.message())
        self._text = text

    def __repr__(self) -> str:
        return f"Plan(bytes={self.bytes}, bound={self.bound}, optimal={self.optimal}, buffers={len(self.names)})"

    @property
    def places(self) -> Dict[str, Tuple[int, int]]:
        """(offset, bytes) of each name."""
        return {name: (int(at), size) for name, at, size in zip(self.names, self.offsets, self.sizes)}

    @functools.cached_property
    def certificate(self) -> Optional[Dict[str, Any]]:
        """The proof of the bound, as planners/verify/CERTIFICATES.md describes it: buffers that conflict pairwise, or a refutation
        of every smaller arena. None: the bound needs none, or there is none."""
        found = json.loads(self._text)["certificate"]
        assert found is None or isinstance(found, dict)
        return found

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the plan file: all of the problem, the offsets and the certificate. memplan's commands take it, as does check."""
        with open(path, "wb") as f:
            f.write(self._text + b"\n")

    def certify(self) -> str:
        """Has the claim checked by a program that knows the certificate alone and no search; what it says. InvalidPlan: it is false."""
        from ._program import certify
        return certify(self)

    def explain(self, **options: object) -> "Explanation":
        """As `memplan.explain` of this plan."""
        from ._program import explain
        return explain(self, **options)

    def check(self, **options: Any) -> "Check":
        """As `memplan.check` of this plan."""
        from ._program import check
        return check(self, **options)


def _as_numpy(offset: Any) -> Any:
    import numpy
    return numpy.array(offset, dtype=numpy.uint64)


def _is_numpy(*values: object) -> bool:
    return any(type(v).__module__ == "numpy" for v in values)


def _listed(values: Any) -> List[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _numbers(code: str, what: str, values: Iterable[Any]) -> "array[int]":
    numbers = array(code)
    for i, value in enumerate(values):
        try:
            numbers.append(value)
        except (TypeError, OverflowError):
            raise InputError(f"{what}[{i}] is {value!r}; a whole number from 0 to 2^{8 * numbers.itemsize} - 1 is possible") from None
    return numbers


def _steps(lives: Any) -> Tuple["array[int]", "array[int]"]:
    """Births and deaths as steps. Times that are large, negative or fractions are numbered in their order: what meets stays the same."""
    births, deaths = [], []
    for i, life in enumerate(_listed(lives)):
        try:
            birth, death = life
            good = birth < death
        except (TypeError, ValueError):
            raise InputError(f"lives[{i}] is {life!r}; a pair (birth, death) is possible") from None
        if not good:
            raise InputError(f"lives[{i}]: birth {birth!r} is not before death {death!r}")
        births.append(birth)
        deaths.append(death)
    times = births + deaths
    if any(type(t) is not int for t in times) or min(times, default=0) < 0 or max(times, default=0) > 4 * len(births) + 64:
        number = {t: i for i, t in enumerate(sorted(set(times)))}
        births, deaths = [number[t] for t in births], [number[t] for t in deaths]
    return _numbers("I", "lives", births), _numbers("I", "lives", deaths)


def _pointer(numbers: "array[int]") -> ctypes.c_void_p:
    return ctypes.c_void_p(numbers.buffer_info()[0])


def _build(c: Context, lives: Any, sizes: Any, align: Any, names: Optional[Sequence[str]], capacity: Optional[int],
           before: Iterable[Tuple[int, int]], in_place: Iterable[Tuple[int, int]], fixed: Mapping[int, int]) -> None:
    """Makes the task of the arguments of plan."""
    size = _numbers("Q", "sizes", _listed(sizes))
    n = len(size)
    aligns = _numbers("I", "align", [align] * n if isinstance(align, int) or not hasattr(align, "__len__") else _listed(align))
    birth, death = (array("I", bytes(4 * n)),) * 2 if lives is None else _steps(lives)
    for what, there in (("lives", len(birth)), ("align", len(aligns)), ("names", n if names is None else len(names))):
        if there != n:
            raise InputError(f"there are {n} sizes and {there} {what}: as many are possible")
    c.hold(lib.memplan_task_new(c.ctx, b"buffers", ctypes.byref(c.task)))
    if names is None:
        c.hold(lib.memplan_add_all(c.task, n, _pointer(size), _pointer(aligns), _pointer(birth), _pointer(death)))
    else:
        for i, name in enumerate(names):
            c.hold(lib.memplan_add(c.task, str(name).encode(), size[i], aligns[i], birth[i], death[i], None))
    for add, pairs in ((lib.memplan_add_before, before), (lib.memplan_add_in_place, in_place)):
        for a, b in pairs:
            c.hold(add(c.task, a, b))
    for buffer, offset in fixed.items():
        c.hold(lib.memplan_fix(c.task, buffer, offset))
    if capacity is not None:
        if not 0 <= capacity < 2**64:
            raise InputError(f"capacity is {capacity}; bytes from 0 to 2^64 - 1 are possible")
        c.hold(lib.memplan_set_capacity(c.task, capacity))


def plan(lives: Optional["Lives"], sizes: "Sizes", *, align: Union[int, "Sizes"] = 1, capacity: Optional[int] = None,
         names: Optional[Sequence[str]] = None, before: Iterable[Tuple[int, int]] = (), in_place: Iterable[Tuple[int, int]] = (),
         fixed: Optional[Mapping[int, int]] = None, planner: str = "portfolio", budget: Optional[int] = None,
         time_limit: Optional[float] = None, threads: Optional[int] = None, seed: Optional[int] = None) -> Plan:
    """Plans buffers: two whose lives meet never overlap.

    lives       half-open (birth, death) of each buffer, or an array [n, 2]: what dies at 3 may lend its bytes to what is born at 3.
                None: `before` decides.
    sizes       bytes of each buffer, above 0
    align       power of two that divides each offset: one for all, or one a buffer
    capacity    bytes of the arena. Infeasible is raised where it is proved that none fits
    names       of the buffers, for messages and files
    before      (a, b): a's last use is before b's first in every execution; without lives. Transitive pairs may be left out
    in_place    (input, output): the output may lie at the very offset of the input, which dies at the step after the output's birth
    fixed       {buffer: offset} of those that are placed already
    planner     of memplan.planners(), with parameters as "exact:proof=1"; portfolio tries the quick ones, then searches
    budget      ticks of work, the same on any machine; time_limit [s] is only a safety net
    threads     of the search; seed: of those planners that draw

    Raises InputError, Infeasible, BudgetError or Unavailable."""
    with Context() as c:
        for name, value in (("budget", budget), ("time-limit", time_limit), ("threads", threads), ("seed", seed)):
            c.set(name, value)
        _build(c, lives, sizes, align, names, capacity, before, in_place, fixed or {})
        c.hold(lib.memplan_run(c.task, planner.encode(), ctypes.byref(c.plan)), Infeasible)
        return Plan(c, _is_numpy(lives, sizes))


def verify(lives: Optional["Lives"], sizes: "Sizes", offsets: "Sizes", *, align: Union[int, "Sizes"] = 1, capacity: Optional[int] = None,
           names: Optional[Sequence[str]] = None, before: Iterable[Tuple[int, int]] = (), in_place: Iterable[Tuple[int, int]] = (),
           fixed: Optional[Mapping[int, int]] = None) -> Plan:
    """Judges offsets of another planner; arguments as `plan`. Its bytes, and a bound. InvalidPlan names the first two buffers that
    overlap."""
    with Context() as c:
        _build(c, lives, sizes, align, names, capacity, before, in_place, fixed or {})
        offset = _numbers("Q", "offsets", _listed(offsets))
        if len(offset) != lib.memplan_count(c.task):
            raise InputError(f"there are {lib.memplan_count(c.task)} sizes and {len(offset)} offsets: as many are possible")
        c.hold(lib.memplan_verify(c.task, _pointer(offset), ctypes.byref(c.plan)), InvalidPlan)
        return Plan(c, _is_numpy(lives, sizes, offsets))


def plan_onnx(path: Union[str, "os.PathLike[str]"], *, dims: Optional[Mapping[str, int]] = None, order: Optional[str] = None,
              safety: Optional[str] = None, in_place: Optional[bool] = None, views: Optional[bool] = None, pin: Optional[str] = None,
              capacity: Optional[int] = None, planner: str = "portfolio", budget: Optional[int] = None,
              time_limit: Optional[float] = None, threads: Optional[int] = None, seed: Optional[int] = None) -> Plan:
    """Plans the values of an ONNX model; `places` gives (offset, bytes) by name.

    path      the model; a .tflite or .graph file, a list in CSV or a network of the zoo ("resnet50:batch=4") are taken, too
    dims      {"batch": 4}: of a dimension that the model leaves open
    order     of the operations: "given" (the model's), or a search by name; see `memplan list orders`
    safety    "serial", "parallel" (right in every topological execution) or "streams:K"
    in_place  whether outputs may overwrite inputs; views: whether reshapes and concats share bytes
    pin       what stays outside the arena: "weights,inputs,outputs" unless given

    The others are those of `plan`."""
    with Context() as c:
        for name, size in (dims or {}).items():
            c.set("dim", f"{name}={size}")
        for name, value in (("order", order), ("safety", safety), ("in-place", in_place), ("views", views), ("pin", pin),
                            ("capacity", capacity), ("budget", budget), ("time-limit", time_limit), ("threads", threads), ("seed", seed)):
            c.set(name, value)
        c.hold(lib.memplan_load(c.ctx, os.fsencode(path), ctypes.byref(c.task)))
        c.hold(lib.memplan_run(c.task, planner.encode(), ctypes.byref(c.plan)), Infeasible)
        return Plan(c, False)

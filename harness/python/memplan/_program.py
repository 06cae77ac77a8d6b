"""What the program `memplan` does beyond the library: explain, check, certify. It runs as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

from ._native import NATIVE, BudgetError, InputError, InvalidPlan, MemplanError, Unavailable

if TYPE_CHECKING:
    from ._plan import Plan

    Source = Union[str, "os.PathLike[str]", Plan]

_EXIT = {1: InvalidPlan, 2: InputError, 3: BudgetError, 4: Unavailable}


def program() -> str:
    """Path of the program."""
    return os.environ.get("MEMPLAN") or os.path.join(NATIVE, "memplan")


def main() -> None:
    """The command line `memplan`."""
    os.execv(program(), ["memplan"] + sys.argv[1:])


def _words(options: Dict[str, Any]) -> List[str]:
    """in_place=False to --in-place off; what is None is left out."""
    words: List[str] = []
    for name, value in options.items():
        if value is not None:
            words += ["--" + name.replace("_", "-"), ("on" if value else "off") if isinstance(value, bool) else str(value)]
    return words


def _run(words: List[str]) -> Tuple[int, str, str]:
    """Exit status, output, and the message."""
    done = subprocess.run([program()] + words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    message = done.stderr.strip().rpartition("\n")[2]
    return done.returncode, done.stdout, message[9:] if message.startswith("memplan: ") else message


def _result(words: List[str], judged: Tuple[int, ...] = ()) -> Tuple[Dict[str, Any], str]:
    """The JSON object that a command prints, and its message; judged: statuses beside 0 that are an answer."""
    status, out, message = _run(words + ["--json"])
    if status != 0 and status not in judged:
        raise _EXIT.get(status, MemplanError)(message or f"memplan ended with status {status}")
    found = json.loads(out)
    assert isinstance(found, dict)
    return found, message


class _File:
    """A source as a path: a plan becomes a plan file while it is used."""

    def __init__(self, source: "Source") -> None:
        self.source = source
        self.folder: Optional["tempfile.TemporaryDirectory[str]"] = None

    def __enter__(self) -> Tuple[str, bool]:
        """The path, and whether it is that of a plan of ours."""
        if isinstance(self.source, (str, os.PathLike)):
            return os.fspath(self.source), False
        self.folder = tempfile.TemporaryDirectory(prefix="memplan")
        path = os.path.join(self.folder.name, "plan.json")
        self.source.save(path)
        return path, True

    def __exit__(self, *_: object) -> None:
        if self.folder is not None:
            self.folder.cleanup()


@dataclass(frozen=True)
class Explanation:
    """What an arena is made of at its highest point, what forces its height, and what would lower it."""

    bytes: int
    """Size of the arena."""
    bound: int
    """Proved: no plan of the same problem needs less [byte]."""
    step: Optional[int]
    """The step at which it is highest. None: any two may be alive at once."""
    parts: List[Dict[str, Any]]
    """From the base to the end: {kind, name, bytes, offset, made_by, kept_by, from, until}; kinds such as value, alignment, hole."""
    height: Dict[str, Any]
    """{by, bytes, buffers}: the buffers that prove the height ("conflicts"), or the chain that makes it."""
    suggestions: List[Dict[str, Any]]
    """Lowest first: {kind, planned_bytes, command, ..}; each was planned."""
    json: Dict[str, Any] = field(repr=False)
    """All that the command says."""


def explain(source: "Source", **options: object) -> Explanation:
    """Explains a plan, a plan file, or a graph that is planned first (an ONNX file, a list, ..). options are those of the command:
    time_limit=5, planner="exact", in_place=False, .. (memplan explain --help)."""
    with _File(source) as (path, _):
        found, _ = _result(["explain", path] + _words(options))
    return Explanation(found["arena_bytes"], found["bound_bytes"], found["step"], found["parts"], found["height"], found["suggestions"],
                       found)


@dataclass(frozen=True)
class Check:
    """What the gate says of a plan."""

    ok: bool
    """Within the tolerance."""
    verdict: str
    """ok, improved, beyond, undecided (the search ended first), refused (invalid), impossible (below what is proved)."""
    bytes: Optional[int]
    """Of the plan. None: refused."""
    bound: Optional[int]
    """Proved: no plan needs less."""
    optimum: Optional[int]
    """Proved least. None: not known."""
    message: str
    """The reason, on one line; empty if ok."""
    json: Dict[str, Any] = field(repr=False)
    """The whole row (results/SCHEMA.md)."""


def check(source: "Source", *, graph: Optional[str] = None, against: Optional[str] = None, tolerance: Optional[str] = None,
          **options: object) -> Check:
    """Holds a plan to the proven optimum of its own problem, or to a baseline.

    source     a Plan, or a file of any format of `memplan check --help`: XLA's dump, a .tflite, PyTorch's snapshot, ..
    graph      the graph or list that the file's offsets belong to, where the format has offsets alone
    against    "optimum", or a baseline
    tolerance  such as "1%", above which it is beyond

    A verdict is returned, whatever it is; InputError: the file is none that can be read."""
    with _File(source) as (path, _):
        words = ["check"] + ([graph] if graph is not None else []) + ["--plan", path]
        found, message = _result(words + _words({"against": against, "tolerance": tolerance, **options}), judged=(1, 3))
    status = found.get("exit_status", 0)
    if found.get("verdict") is None:
        raise _EXIT.get(status, MemplanError)(message)
    return Check(status == 0, found["verdict"], found["planned_bytes"], found["bound_bytes"], found["optimum_bytes"], message, found)


def certify(plan: "Plan") -> str:
    """What `memplan certify` says of a plan's claim."""
    with _File(plan) as (path, _):
        status, out, message = _run(["certify", path])
    if status != 0:
        raise _EXIT.get(status, MemplanError)(message)
    return out.strip().removeprefix(path + ": ")

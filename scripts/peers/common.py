"""What the scripts beside this one share: running memplan, medians, tables.

A table is results/tables/peers_NAME.tsv: heads, then a line a case; heads that begin with ~ hold times. `memplan paper` makes
the tables of results/APPENDIX.md from it.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", ".."))


def data_folder():
    """Where scripts/data.sh has put the lists and models of others."""
    command = [os.path.join(ROOT, "scripts", "data.sh"), "--where"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


class Failed(Exception):
    """A command that ended badly; its last line says why."""


def options(about, cases, rounds=5):
    """The command line that all the scripts have."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("cases", nargs="*", default=cases, help="graphs or lists (default: %(default)s)")
    parser.add_argument("--memplan", default=os.path.join(ROOT, "build", "release", "memplan"), help="the program")
    parser.add_argument("--rounds", type=int, default=rounds, help="turns of memplan and the peer (%(default)s)")
    parser.add_argument("-o", "--output", help="the table (results/tables/peers_NAME.tsv)")
    return parser


# Threads of a peer spin for a while before they sleep; those of memplan do so, too, where one program runs at a time.
SPINNING = {**os.environ, "GOMP_SPINCOUNT": "10000"}


def command(words, **more):
    """Standard output of a command; Failed where it ends badly."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Failed(f"{os.path.basename(words[0])} {words[1]}: exit {done.returncode}: {last}")
    return done


def memplan(program, *words):
    """One JSON object of memplan, which prints one a result."""
    return json.loads(command([program, *words, "--json"], env=SPINNING).stdout.splitlines()[-1])


def itself(script, *words):
    """A measurement of the peer in a process of its own, which prints one JSON object last; and its standard error."""
    done = command([sys.executable, script, "--one", *words])
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def median(values):
    return statistics.median(values)


def mib(size):
    return f"{size / 2**20:.3f}"


def ratio(ours, theirs):
    return f"{ours / theirs:.3f}" if theirs else "-"


def resident():
    """Peak resident set of this process so far. [byte]"""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def with_workspaces(row):
    """The arena of values and that of the operations' workspaces. [byte]"""
    return row["planned_bytes"] + row["workspace_bytes"]


def packed(row):
    """Weights that were reordered once and are kept beside the others. [byte]"""
    return (row["holds"] or {}).get("packed", 0)


def say(text):
    print(text, file=sys.stderr, flush=True)


def write_table(path, heads, lines):
    """All or nothing: a full disk or a kill leaves the old table."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), delete=False, encoding="utf-8") as out:
        for line in [heads, *lines]:
            out.write("\t".join(str(cell) for cell in line) + "\n")
    os.chmod(out.name, 0o644)
    os.replace(out.name, path)
    say(f"wrote {path}, {len(lines)} lines")


def table_path(given, name):
    return given or os.path.join(ROOT, "results", "tables", f"peers_{name}.tsv")


def case_name(case):
    return os.path.basename(case).removesuffix(".onnx").removesuffix(".csv")

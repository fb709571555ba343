"""Hostile inputs: damaged models, sparse matrices, tables and summaries, each tried in a child process.

A child that is killed by a signal has read or written out of bounds; one that ends in an exception that is not
meant for users has a missing check; one that decides by NaN has a missing check, too.
"""

from __future__ import annotations

import copy
import faulthandler
import io
import json
import os
import resource
import signal
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

REFUSALS = (ValueError, TypeError, OSError, ImportError, ArithmeticError)  # what the command line explains
SECONDS = 20  # of computing, for one input; a reader that needs longer is not linear

MEMORY = 8 << 30  # bytes of a child's addresses, most of them the compiler's

WORKED, REFUSED, TRACEBACK, CRASH = "worked", "refused", "traceback", "crash"
SILENT_NAN, SLOW, GREEDY = "silent NaN", "slow", "greedy"
AGAINST_SCHEMA, NO_ANSWER = "against its schema", "no answer"  # of a service
_OVER = (signal.SIGPROF, signal.SIGALRM)
BAD = (TRACEBACK, CRASH, SILENT_NAN, SLOW, GREEDY, AGAINST_SCHEMA, NO_ANSWER)


class NotFiniteError(Exception):
    """A decision was made by a number that is not finite."""


def judge(work: Callable[[Any], None], item: Any) -> str:
    """Return what became of one input, in this process."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of casts that overflow: what comes of them is looked at
            work(item)
    except REFUSALS:
        return REFUSED
    except NotFiniteError:
        return SILENT_NAN
    except MemoryError:
        return GREEDY
    except Exception as error:
        print(f"{type(error).__name__}: {error}"[:300], file=sys.stderr)
        return TRACEBACK
    return WORKED


def tried(work: Callable[[Any], None], items: Iterable[Any], batch: int = 50) -> Counter[str]:
    """Return how many inputs ended in which way; whole batches share a child, and a crash is blamed on one."""
    found: Counter[str] = Counter()
    waiting = list(items)
    for start in range(0, len(waiting), batch):
        found += _in_child(work, waiting[start : start + batch])
    return found


def _in_child(work: Callable[[Any], None], items: Sequence[Any]) -> Counter[str]:
    """Run inputs one after another in a child; each verdict is written as soon as it is known."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        faulthandler.disable()  # a crash is counted, not described
        for over in _OVER:
            signal.signal(over, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for item in items:
            # Computing is what counts: a machine may have other work. One that only waits hangs.
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(30 * SECONDS)
            os.write(write, f"{judge(work, item)}\n".encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found = Counter(pipe.read().splitlines())
    _, status = os.waitpid(child, 0)
    done = found.total()
    if done < len(items):
        by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        found[SLOW if by in _OVER else CRASH] += 1
        found += _in_child(work, items[done + 1 :])
    return found


# Damage ------------------------------------------------------------------------------------------------


def damaged_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an array of another shape, type, order or with other values."""
    flat, numbers = array.reshape(-1), array.dtype.kind in "biufc"
    extreme = [np.nan, np.inf, -np.inf, 1e308, -1e308, 2**62, -1, -(2**62), 0]
    ways: list[Callable[[], np.ndarray]] = [
        lambda: flat[: rng.integers(0, len(flat) + 1)],
        lambda: np.concatenate([flat, flat]),
        lambda: array.astype(
            rng.choice(["f2", "f4", "f8", "i1", "i4", "i8", "?", "S3", "c8"] if numbers else ["S3", "U1"])
        ),
        lambda: np.asfortranarray(array),
        lambda: array.T,
        lambda: array[..., None],
        lambda: np.zeros((0, *array.shape[1:]), array.dtype),
        lambda: array.astype(array.dtype.newbyteorder()),
        lambda: np.array(rng.choice(extreme)),
    ]
    if len(flat):

        def with_extreme() -> np.ndarray:
            changed = flat.copy()
            with np.errstate(all="ignore"):
                value = np.array(rng.choice(extreme)).astype(array.dtype, copy=False)
            changed[rng.integers(len(flat))] = value
            return changed.reshape(array.shape)

        ways += [with_extreme] * 4
    with np.errstate(all="ignore"):
        return ways[rng.integers(len(ways))]()


def damaged_json(document: Any, rng: np.random.Generator) -> Any:
    """Return a document with one node removed, replaced or nested."""
    document = copy.deepcopy(document)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, inner in items:
            places.append((node, key))
            walk(inner)

    walk(document)
    if not places:
        return None
    node, key = places[rng.integers(len(places))]
    values = [None, [], {}, "", "x" * 50, -1, 1e300, True, [[]], {"value": None}, "<script>", 2**70]
    how = rng.integers(3)
    if how == 0 and isinstance(node, dict):
        del node[key]
    elif how == 1:
        other, other_key = places[rng.integers(len(places))]
        node[key] = copy.deepcopy(other[other_key])
    else:
        node[key] = values[rng.integers(len(values))]
    return document


def damaged_model(path: Path, rng: np.random.Generator) -> bytes:
    """Return a model file with one array, one node of its schema, or one byte changed."""
    if rng.random() < 0.1:
        content = bytearray(path.read_bytes())
        content[rng.integers(len(content))] ^= int(rng.integers(1, 256))
        return bytes(content)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in members if name.endswith(".npy")]
    if arrays and rng.random() < 0.7:
        name = arrays[rng.integers(len(arrays))]
        held = np.load(io.BytesIO(members[name]), allow_pickle=False)
        sink = io.BytesIO()
        np.save(sink, damaged_array(held, rng), allow_pickle=False)
        members[name] = sink.getvalue()
    else:
        schema = damaged_json(json.loads(members["schema.json"]), rng)
        members["schema.json"] = json.dumps(schema).encode()
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def damaged_csr(X: sparse.csr_array, rng: np.random.Generator) -> sparse.csr_array:
    """Return a sparse matrix of which one part does not fit the others; SciPy does not look."""
    bad = X.copy()
    part = rng.choice(["data", "indices", "indptr"])
    changed = damaged_array(getattr(bad, part), rng)
    setattr(bad, part, np.atleast_1d(changed))
    return bad


def damaged_csv(text: bytes, rng: np.random.Generator) -> bytes:
    """Return a table with bytes changed, lines cut, cells replaced or quotes added."""
    content = bytearray(text)
    cells = [
        b"9999-12-31", b"0001-01-01", b"1e38", b"-1e400", b"nan", b"inf", b'"', b'""', b"a\",\"b", b"\x00", b"\xff\xfe",
        b"=1+1", b"'", b"", b"\r", b"\n\n", b"01.01.20000", b"3+", b"1,5", b"\xe2\x80\xae", b"x" * 5000,
    ]  # fmt: skip
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(content)))
        how = rng.integers(4)
        if how == 0:
            content[at] = int(rng.integers(256))
        elif how == 1:
            del content[at : at + int(rng.integers(1, 60))]
        elif how == 2:
            content[at:at] = cells[rng.integers(len(cells))]
        else:
            begin = content.rfind(b",", 0, at) + 1
            end = content.find(b",", at)
            content[begin : end if end > 0 else len(content)] = cells[rng.integers(len(cells))]
    return bytes(content)

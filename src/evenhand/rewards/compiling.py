"""Tries a user's own reward function in plain Python, and compiles it to the type that the loop calls."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numba import cfunc, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

# The type of a user's own reward term; see `Custom`.
CUSTOM = types.float64(types.int64, types.int64, types.int64, types.float64[:, ::1], types.float64[:, :, ::1])

TRIES = 20  # the number of policies on which a function is tried before training


def _seen_by(function: Callable[..., float] | None) -> Any:
    """Return the outside values that a function reads, as a key: Numba freezes them when it compiles.

    If values can't be compared, the key is unique.
    """
    if function is None:
        return None
    try:
        outside = inspect.getclosurevars(function)
        seen = {**outside.globals, **outside.nonlocals}
        for name, value in list(seen.items()):
            if isinstance(value, ModuleType):  # settings.CAP is frozen too
                seen |= {f"{name}.{at}": getattr(value, at, None) for at in function.__code__.co_names}
        key = tuple((name, type(value), _comparable(value)) for name, value in sorted(seen.items()))
        hash(key)
    except (TypeError, ValueError):
        return object()
    return key


def _comparable(value: Any) -> Any:
    return (value.shape, value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else value


def _once(work: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the work; repeat it for another function, or if the outside values it reads have changed."""
    kept = functools.lru_cache(maxsize=64)(lambda function, seen, *more: work(function, *more))

    @functools.wraps(work)
    def remembered(function: Callable[..., float] | None, *more: Any) -> Any:
        plain = function.py_func if isinstance(function, Dispatcher) else function
        return kept(plain, _seen_by(plain), *more)

    return remembered


@_once
def compile_custom(function: Callable[..., float] | None) -> Any:
    """Compile a user's reward function to the type that the loop calls; None gives a placeholder."""
    if function is None:
        return cfunc(CUSTOM)(lambda action, label, group, policies, rates: 0.0)
    try:
        return cfunc(CUSTOM, error_model="numpy")(function)
    except (NumbaError, TypeError) as error:
        raise ValueError(
            f"Numba can't compile the reward function {getattr(function, '__name__', function)!r}; expected "
            "plain arithmetic on (action, label, group, policies, rates) that returns a number. Numba says: "
            f"{_reason(str(error))}"
        ) from error


def _reason(text: str) -> str:
    r"""Return the reason from Numba's error message, without the compiler stage and the colours.

    >>> _reason("Failed in nopython mode pipeline (step: x)\nUnknown attribute 'x'\n\nFile ...")
    "Unknown attribute 'x'"
    """
    lines = [line.strip() for line in re.sub(r"\x1b\[\d*m", "", text).splitlines()]
    told = [line for line in lines if line and not line.startswith("Failed in")]
    ends = next((at for at, line in enumerate(told) if at and line.startswith(("File", "During"))), len(told))
    return " ".join(told[: min(ends, 4)])


@_once
def try_custom(
    function: Callable[..., float], n_groups: int, n_actions: int, logged: bool, labelled: bool
) -> None:
    """Call a user's reward function in plain Python with arguments as in training, and raise its errors.

    The compiled loop can't raise them: it would print the error at every step and continue. Policies and
    rates are uniform at first, then random, and more and more sure. In a log, a missing label is -1.
    """
    rng, name = np.random.default_rng(0), getattr(function, "__name__", function)
    even, labels = np.full(n_actions, 1 / n_actions), [*[-1] * logged, *range(n_actions * labelled)]
    for sure in np.linspace(0, 0.999, TRIES):
        drawn = rng.dirichlet(0.3 * np.ones(n_actions), size=(n_groups, n_actions + 2))
        shares = (1 - sure) * even + sure * drawn
        shares.flags.writeable = False  # the loop uses these arrays afterwards, so a function must only read
        policies, rates = shares[:, 0], shares[:, 1:]
        for action, label, group in itertools.product(range(n_actions), labels, range(n_groups)):
            where = (
                f"The reward function {name!r}, for {action=}, {label=}, {group=} and "
                f"policies={policies.round(3).tolist()},"
            )
            try:
                earned = float(function(action, label, group, policies, rates))
            except Exception as error:
                raise ValueError(f"{where} raised {type(error).__name__}: {error}") from error
            if not np.isfinite(earned):
                raise ValueError(f"{where} returned {earned}, but expected a finite number.")

"""Combines the compiled lines of all registered terms into two functions for the training loop.

The source of both functions is generated line by line, in the order of the registry. In a chain of small
functions, Numba would count array references at every call, which takes longer than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from evenhand.jit import jit
from evenhand.rewards.pull import Pull
from evenhand.rewards.registry import TERMS
from evenhand.rewards.term import other_at

PAIR = "policies[{0}, k], policies[{1}, k], logs[{0}, k], logs[{1}, k]"


def _fill_rewards() -> Iterator[str]:
    """Generate the function that fills the rewards of the actions `first` to `last` − 1."""
    yield "def made(terms, kl, first, last, label, group, policies, logs, draws, expected, state, rewards):"
    noted = [at for at, term in enumerate(TERMS) if getattr(term.lines, "note", None)]
    for at in noted:
        yield f"    kept_{at} = note_{at}(terms[{at}], kl, group, policies, logs)"
    yield "    for k in range(first, last):"
    yield "        reward = 0.0"
    for pulls, run in groupby(enumerate(TERMS), key=lambda item: issubclass(item[1], Pull)):
        if pulls:
            yield "        for turn in range(1, policies.shape[0]):"
            yield "            other = other_at(group, turn, policies.shape[0])"
        for at, term in run:
            own, labelled = f"terms[{at}]", " and label >= 0" if term.of_labels else ""
            if pulls:
                pair = PAIR.format("group", "other")
                yield f"            if {own}.weight > 0.0:"
                yield f"                apart = apart_{at}({pair}, draws[other] == k, expected)"
                yield f"                reward -= {own}.weight * apart / (policies.shape[0] - 1)"
            else:
                yield f"        if terms.active[{at}]{labelled}:"
                given = f"{own}, reward, {f'kept_{at}' if at in noted else 0.0}"
                yield f"            reward = earn_{at}({given}, k, label, group, policies, state)"
    yield "        rewards[k] = reward"


def _listen() -> Iterator[str]:
    """Generate the function that fills listener g's logit gradient; `weight` is that of a sampled action."""
    yield "def made(weights, expected, action, heard, weight, acting, g, policies, logs, out):"
    yield "    n_groups, n_actions = policies.shape"
    yield "    for k in range(n_actions):"
    yield "        out[k] = 0.0"
    for at, term in enumerate(TERMS):
        if issubclass(term, Pull):
            pair = PAIR.format("acting", "g")
            yield f"    if weights[{at}] > 0.0:"
            yield f"        share, total = weights[{at}] / (n_groups - 1), 0.0"
            yield "        for k in range(n_actions):"
            yield "            if expected or k == heard:"
            yield f"                total += total_{at}({pair}, k == action, expected)"
            yield "        for k in range(n_actions):"
            yield f"            out[k] += heard_{at}(share, total, {pair}, k == action, k == heard, expected)"
    yield "    if not expected:"
    yield "        for k in range(n_actions):"
    yield "            out[k] *= weight"


def _compiled(lines: Iterator[str]) -> Any:
    parts = {
        f"{name}_{at}": line for at, term in enumerate(TERMS) for name, line in term.lines._asdict().items()
    }
    parts["other_at"] = other_at
    exec("\n".join(lines), parts)
    return jit(inline="always", cache=False)(parts["made"])  # the loop that includes it is cached


fill_rewards, listen = _compiled(_fill_rewards()), _compiled(_listen())

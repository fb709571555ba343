"""A certificate beside Z3, which Fairify (Biswas and Rajan, 2023) asks whether a network treats any pair differently.

    pip install z3-solver
    python experiments/certificates_z3.py --time-limit 90

Two questions about the same two policies and the same possible people. First Fairify's: is there anybody whom they
decide differently? Then what a certificate proves: is anybody decided differently by more than the proven bound, which
tangents say in terms of logits? The encoding is ours, from the paper's description: one flag per category, a number per
range, rectified units as conditions; without Fairify's partitions and pruning, which our policies of one small layer
hardly need. Z3 is asked in both orders of the groups. Writes results/certificates/z3.csv.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise, permutations
from typing import Any

import asking
import numpy as np
import pandas as pd
import z3
from certificates import deployed

from evenhand import certify
from evenhand.auditing.certificate.domain import possible_people
from evenhand.auditing.certificate.held import held_by, mixture


def short(number: float) -> float:
    """Return a number as policies have it, in single precision: long fractions would slow Z3 down."""
    return float(f"{number:.7g}")


def beyond(gap: float, u: Any, v: Any) -> list[Any]:
    """Return what holds where probabilities are more than `gap` apart: u − v above tangents of a convex h."""
    steep = gap / np.sqrt(1 - gap**2)
    conditions = []
    for at in np.linspace(-3, 3, 25):
        h = 2 * np.arctanh(gap) + 2 * np.arcsinh(steep * np.cosh(at))
        slope = 2 * steep * np.sinh(at) / np.sqrt(1 + (steep * np.cosh(at)) ** 2)
        conditions.append(u - v >= short(h) + short(slope) * ((u + v) / 2 - short(at)))
    return conditions


def encoded(two: Any, domain: Any) -> tuple[z3.Solver, list[Any]]:
    """Return the possible people as conditions, and the two policies' logits of one of them."""
    solver, flags, numbers = z3.Solver(), [], []
    low, high, whole = domain.ends()
    for at in range(len(low)):
        flags.append(z3.Bool(f"flag {at}"))
        if high[at] > low[at]:
            number = z3.Int(f"number {at}") if whole[at] else z3.Real(f"number {at}")
            solver.add(number >= float(low[at]), number <= float(high[at]))
        else:
            number = z3.RealVal(float(low[at]))
        numbers.append(z3.ToReal(number) if z3.is_int(number) else number)
    for begin, end in pairwise(domain.first.tolist()):
        solver.add(z3.PbEq([(flag, 1) for flag in flags[begin:end]], 1))
    active = []
    for unit, start in enumerate(two.start):
        adds = [
            z3.If(flag, short(base) + short(slope) * number, 0.0)
            for flag, number, base, slope in zip(
                flags, numbers, two.base[:, unit], two.slope[:, unit], strict=True
            )
        ]
        before = z3.Real(f"unit {unit}")
        solver.add(before == short(start) + z3.Sum(adds))
        active.append(z3.If(before > 0, before, 0.0))
    half = len(active) // 2
    logits = []
    for policy, bias in enumerate(two.bias):
        mine = slice(policy * half, (policy + 1) * half)
        pairs = zip(two.weights[mine], active[mine], strict=True)
        logits.append(short(bias) + z3.Sum([short(weight) * one for weight, one in pairs]))
    return solver, logits


def asked(mixed: Any, n_groups: int, gap: float, limit: float) -> tuple[str, float]:
    """Return Z3's answer for any two groups, and its processor seconds; at most so many by the clock."""
    began, answers, until = time.process_time(), [], time.monotonic() + limit
    for one, other in permutations(range(n_groups), 2):
        solver, (u, v) = encoded(mixed.two(one, other), mixed.domain)
        solver.add(u >= 0, v <= 0, *beyond(gap, u, v))
        solver.set("timeout", max(1, int(1000 * (until - time.monotonic()))))
        answers.append(str(solver.check()))
        if answers[-1] == "sat":
            break
    words = {"sat": "yes", "unsat": "no", "unknown": "no answer"}
    found = "sat" if "sat" in answers else "unknown" if "unknown" in answers else "unsat"
    return words[found], time.process_time() - began


def rows(names: list[str], layers: list[int], limit: float) -> Iterator[dict[str, object]]:
    for name in names:
        for hidden in layers:
            model, train, _ = deployed(name, "networks", 20.0, hidden)
            certify(model, train, time_limit=0)  # compiles
            began = time.process_time()
            found = certify(model, train, time_limit=limit).flip
            ours = time.process_time() - began
            held = held_by(model, train)
            domain = possible_people(held.contexts, held.kinds, held.categories, held.gaps, {})
            mixed, n_groups = mixture(held.policies, domain, held.encode), len(held.policies.groups_)
            flip, seconds = asked(mixed, n_groups, 0.0, limit)
            more, again = asked(mixed, n_groups, found.bound, limit)
            yield {
                "dataset": name, "hidden": hidden,
                "flip_found": found.gap, "flip_bound": found.bound, "flip_certified": found.certified,
                "processor_seconds": ours, "anybody": flip, "anybody_processor_seconds": seconds,
                "beyond": more, "beyond_processor_seconds": again,
                "time_limit": limit, "z3": z3.get_version_string(),
            }  # fmt: skip


def main() -> None:
    told = asking.asked(
        __doc__,
        "results/certificates",
        datasets=["compas", "german"],
        hidden=[5, 20],
        time_limit={"default": 90, "type": float},
    )
    found = []
    for row in rows(told.datasets, told.hidden, told.time_limit):
        found.append(row)
        print(row, flush=True)
        pd.DataFrame(found).to_csv(told.out / "z3.csv", index=False)


if __name__ == "__main__":
    main()

"""The tilt of a bound: where its tangent touches, and the prices of two things that people have to be.

Of those decided differently, the first policy's logit is above the boundary (its price is above 0) and the
second's below (below 0). Those near a real person have values whose costs sum to at most 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.auditing.certificate.policies import Aim, TwoPolicies
from evenhand.jit import jit


@jit()
def weigh(two: TwoPolicies, aim: Aim, tilt: Any, up: Any, down: Any) -> tuple[float, float, float]:
    """Write how much each pair's units count; return what is not in them, and what both logits count."""
    odds = aim.gap / np.sqrt(1 - aim.gap**2)
    height = odds * np.cosh(tilt[0])
    steep = 2 * odds * np.sinh(tilt[0]) / np.sqrt(1 + height**2)
    one, other = 1 - steep / 2 + max(tilt[1], 0.0), 1 + steep / 2 + max(-tilt[1], 0.0)
    constant = steep * tilt[0] - 2 * np.arcsinh(height) - np.log((1 + aim.gap) / (1 - aim.gap))
    if not np.isnan(aim.boundary):
        constant -= aim.boundary * tilt[1]
    less, more = min(one, other), abs(one - other)
    apart = less * aim.slip + (more * aim.first if one > other else more * aim.second)
    constant += min(apart, one * aim.first + other * aim.second)
    hidden = len(two.weights) // 2
    for pair in range(len(two.plus)):
        unit = two.plus[pair]
        up[pair] = max(0.0, (one if unit < hidden else -other) * two.weights[unit])
        unit = two.minus[pair]
        down[pair] = max(0.0, (-one if unit < hidden else other) * two.weights[unit])
    return constant + one * two.bias[0] - other * two.bias[1], one, other


@jit()
def mend(
    two: TwoPolicies, aim: Aim, units: Any, said: Any, far: float, state: Any, up: Any, down: Any,
    lines: Any, tilt: Any, by: float,
) -> None:  # fmt: skip
    """Turn all lines, the tangent and the prices so that the bound falls by `by` for one person.

    `said` is what trees add for the person, `far` what the person's values cost.
    """
    hidden = len(units) // 2
    active = np.maximum(units, 0) * two.weights
    u, v = active[:hidden].sum() + two.bias[0] + said[0], active[hidden:].sum() + two.bias[1] + said[1]
    way, short = (u + v) / 2 - tilt[0], 0.0
    if not np.isnan(aim.boundary):
        short = aim.boundary - (u if tilt[1] > 0 or u < aim.boundary else v)
    far = far if far > 0 or tilt[2] > 0 else 0.0
    size, step = max(way**2 + short**2 + far**2, 1e-12), 0.0
    for turn in range(2):  # first the size of all that can be turned, then the turns
        for pair in range(len(up)):
            line, one, other = lines[pair, state[pair]], units[two.plus[pair]], units[two.minus[pair]]
            rise = -one if state[pair] else one
            extra = line[0] > 0 or rise > 0
            share = down[pair] > 0 and (line[1] < 1 if other > 0 else line[1] > 0)
            if turn:
                line[0] = max(0.0, line[0] + step * rise) if extra else line[0]
                line[1] = min(1.0, max(0.0, line[1] + step * other / down[pair])) if share else line[1]
            else:
                size += (one**2 if extra else 0.0) + (other**2 if share else 0.0)
        step = by / size
    tilt[1] += step * short
    tilt[2] = max(0.0, tilt[2] + step * far)
    odds = aim.gap / np.sqrt(1 - aim.gap**2)
    if odds > 0:
        bend = 2 * odds * np.cosh(tilt[0]) * (1 + odds**2) / (1 + (odds * np.cosh(tilt[0])) ** 2) ** 1.5
        move = min(1.0, max(-1.0, min(1.0, step / bend) * way))
        tilt[0] = min(20.0, max(-20.0, tilt[0] + move))

"""The library's defaults on Adult, against the same mini-batches in PyTorch, and whole fits against others', in one run.

    python benchmarks/defaults.py            # needs: pip install 'evenhand[compare]', and torch (optional)

First, people met per second: batches of 32, 20 hidden units, joint Adam, expected rewards, with and without `Parity`,
beside a PyTorch loop of the same arithmetic, which multiplies both policies of a batch at once. Then a whole fit,
beside scikit-learn's boosted trees and fairlearn's ExponentiatedGradient around a logistic regression
(`boosting.py` has it around trees). All on one thread. Contenders take turns, several times over, and the best time of each counts: seconds of the
processor, so that a busy machine costs nobody anything.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import options
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from boosting import adult, best_of
from evenhand import CooperativeBandits, Likelihood, LogRatio, Parity
from evenhand.bandits.kernels.subnormal import flushed_to_zero
from evenhand.baselines import ExponentiatedGradientClassifier

BATCH, HIDDEN, WEIGHT, RATE, STEPS = 32, 20, 20.0, 0.003, 320_000
OURS, EVEN = "evenhand", "evenhand, with parity"


def bandits(parity: bool = False, **options) -> CooperativeBandits:
    reward = Likelihood() + LogRatio() + Parity(bound=0.0) if parity else None
    return CooperativeBandits(WEIGHT, reward=reward, random_state=0, **options)


def torch_loop(X, y, s, steps: int) -> Callable[[], object] | None:
    """Likelihood + LogRatio with batches and joint Adam: the policies' mean by Adam, their differences slower."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    rows, labels = torch.from_numpy(X), torch.from_numpy(y.astype(np.int64))
    groups = torch.from_numpy(np.unique(s, return_inverse=True)[1])
    drawn = torch.Generator().manual_seed(0)

    def begin(*shape: int):
        first = torch.randn(1, *shape, generator=drawn) / shape[0] ** 0.5
        return first.repeat(2, *[1] * len(shape)).requires_grad_()

    weights = [begin(X.shape[1], HIDDEN), begin(1, HIDDEN), begin(HIDDEN, 2), begin(1, 2)]
    slots = [
        [torch.zeros_like(w[0]) for _ in range(2)] + [torch.zeros_like(w[:1])] + [torch.zeros_like(w)]
        for w in weights
    ]

    @torch.no_grad()
    def move(n: int, rate: float) -> None:
        undo, scale = 1 - 0.9**n, 1 - 0.999**n
        for weight, (mean, squares, far, apart) in zip(weights, slots, strict=True):
            common = weight.grad.mean(0)
            differences = weight.grad - common
            mean.lerp_(common, 0.1)
            squares.lerp_(common**2, 0.001)
            apart.lerp_(differences, 0.1)
            far.lerp_((differences**2).mean(0, keepdim=True), 0.001)
            weight -= rate * (mean / undo) / ((squares / scale).sqrt() + 1e-8)
            weight -= rate / (1 + WEIGHT) * (apart / undo) / ((far / scale).sqrt() + 1e-8)
            weight.grad = None

    def run() -> None:
        for n in range(steps // BATCH):
            if n % (len(rows) // BATCH) == 0:
                order = torch.randperm(len(rows), generator=drawn)
            at = order[(n % (len(rows) // BATCH)) * BATCH :][:BATCH]
            hidden = torch.relu(rows[at] @ weights[0] + weights[1])
            logs = torch.log_softmax(hidden @ weights[2] + weights[3], -1)  # (2, people, actions)
            who, people = groups[at], torch.arange(BATCH)
            own, other = logs[who, people], logs[1 - who, people]
            apart = (own.exp() * (own - other)).sum(1)
            loss = (WEIGHT * apart - own[people, labels[at]]).mean()
            loss.backward()
            move(n + 1, RATE * (1 - n * BATCH / steps))

    return run


def people_met(X, y, s, rounds: int) -> dict[str, float]:
    """Return people met per second."""
    compact, few = sparse.csr_array(X), 16_000
    contenders: dict[str, Callable[[], object]] = {}
    for name, parity in ((OURS, False), (EVEN, True)):
        model = bandits(parity, steps=STEPS, learning_rate=RATE)
        model.fit(compact, y, sensitive_features=s)  # compiles, or reads what was compiled before
        contenders[name] = lambda model=model: model.fit(compact, y, sensitive_features=s)
    loop = torch_loop(X, y, s, few)
    if loop is not None:
        contenders["PyTorch loop, the same batches"] = loop
    seconds = best_of(contenders, rounds)
    return {name: (STEPS if name in (OURS, EVEN) else few) / value for name, value in seconds.items()}


def whole_fits(X, y, s, rounds: int) -> dict[str, float]:
    """Return the seconds of a whole fit with each one's defaults."""
    compact = sparse.csr_array(X)
    contenders: dict[str, Callable[[], object]] = {
        OURS: lambda: bandits().fit(compact, y, sensitive_features=s),
        EVEN: lambda: bandits(parity=True).fit(compact, y, sensitive_features=s),
        "HistGradientBoosting, unfair": lambda: HistGradientBoostingClassifier(random_state=0).fit(X, y),
    }
    seconds = best_of(contenders, rounds)
    name, game = (
        "ExponentiatedGradient around logistic regression",
        ExponentiatedGradientClassifier(LogisticRegression()),
    )
    return seconds | best_of(
        {name: lambda: game.fit(X, y, sensitive_features=s)}, 1
    )  # too long for several rounds


def main() -> None:
    arguments = options.asked(__doc__, json=True, rounds=5)
    options.need("pip install 'evenhand[compare]'", "fairlearn")
    X, y, s = adult()
    y = np.unique(y, return_inverse=True)[1]
    with threadpool_limits(1), flushed_to_zero():  # as our loop does for itself, so that peers have it too
        met = people_met(X, y, s, arguments.rounds)
        seconds = whole_fits(X, y, s, arguments.rounds)
    print(f"Defaults on Adult, one thread\n{'':52}{'people/s':>12}{'evenhand is':>16}")
    for name, value in met.items():
        print(f"{name:52}{value:>12,.0f}{met[OURS] / value:>13.1f} ×")
    print(f"\nA whole fit, {len(y):,} people\n{'':52}{'seconds':>12}{'evenhand is':>16}")
    for name, value in seconds.items():
        print(f"{name:52}{value:>12.2f}{value / seconds[OURS]:>13.1f} ×")
    options.write({"people_per_second": met, "seconds_of_a_fit": seconds}, arguments.json)


if __name__ == "__main__":
    main()

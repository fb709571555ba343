"""A training run: its state, its start, and training in chunks with checkpoints in between."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from evenhand import network
from evenhand.bandits import kernels
from evenhand.bandits.kernels.structs import Moments, Options, People, Rows
from evenhand.checks import JobFailedError
from evenhand.network import Network
from evenhand.rewards.rates import Rates

HISTORY = ("step", "reward", "mean_reward", "mean_divergence")
MOST_ROWS = 1000  # of the history that online learning keeps, so that a model doesn't grow without limit


class TrainingDivergedError(JobFailedError, ArithmeticError):
    """The reward or the policies are no longer finite. The message says what to change."""


@dataclass
class Training:
    """Policies in training, with all that is needed to continue: optimiser, running rates, seed, history."""

    policies: Network
    moments: Moments
    rates: Rates
    seed: int
    step: int = 0
    kind: str = ""  # of the updates that the moments belong to: 'sgd', 'adam' or 'joint'
    history: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in HISTORY})

    @classmethod
    def begin(
        cls, *, n_features: int, n_hidden: int, n_actions: int, n_groups: int, seed: int, shared_start: bool,
        dtype: Any = np.float32,
    ) -> Training:  # fmt: skip
        """Draw the initial policies, one per group or the same for all, and clear the rest."""
        rng = np.random.default_rng(seed)
        n_drawn = 1 if shared_start else n_groups
        drawn = [network.start(n_features, n_hidden, n_actions, rng) for _ in range(n_drawn)]
        starts = drawn * (n_groups // n_drawn)
        policies = Network(*(np.stack(parts).astype(dtype) for parts in zip(*starts, strict=True)))
        return cls.of(policies, seed)

    @classmethod
    def of(cls, policies: Network, seed: int, step: int = 0) -> Training:
        """Return a training run that continues from these policies, with no other state."""
        return cls(policies, _no_moments(policies), no_rates(0, *policies.b2.shape), seed, step)

    def goes_on_with(self, policies: Network) -> Training:
        """Return this run with other policies, and with the optimiser's state cleared."""
        history = {name: list(column) for name, column in self.history.items()}
        return replace(self, policies=policies, moments=_no_moments(policies), kind="", history=history)

    def make_room(self, *, n_rate_terms: int, buffers: bool, kind: str = "") -> None:
        """Allocate what this reward and optimiser need, at the start or after a change between calls.

        Moments start again if the kind of updates has changed, running rates if the number of bounded terms
        has changed.
        """
        if kind != self.kind:
            self.moments, self.kind = _no_moments(self.policies), kind
        if buffers and self.moments.gradient.W1.shape != self.policies.W1.shape:
            gradient, first, second = (_like(self.policies, kept=True, more=more) for more in (0, 1, 1))
            self.moments = self.moments._replace(gradient=gradient, first=first, second=second)
        if len(self.rates.rates) != n_rate_terms:
            self.rates = no_rates(n_rate_terms, *self.policies.b2.shape)

    def check(self, n_features: int, n_actions: int, n_groups: int) -> None:
        """Raise unless every array has the shape, type and values that the compiled loops rely on."""
        try:
            fits = self._fits(n_features, n_actions, n_groups)
        except (
            AttributeError,
            TypeError,
            IndexError,
            KeyError,
        ) as error:  # a part has a completely different type
            raise ValueError(f"The model is damaged: {error}.") from error
        if not fits:
            raise ValueError("The model is damaged: its step or its optimiser's counts are not counts.")

    def check_history(self) -> None:
        """Raise unless the history, read from a file, can be continued."""
        for name in HISTORY:
            kept = self.history.get(name) if isinstance(self.history, dict) else None
            if not isinstance(kept, list) or not np.isfinite(np.array(kept, dtype=np.float64)).all():
                raise ValueError(f"The model is damaged: its history of {name!r} is not a list of numbers.")

    def _fits(self, n_features: int, n_actions: int, n_groups: int) -> bool:
        n_hidden, kind = self.policies.b1.shape[-1], self.policies.b1.dtype
        full = (
            (n_groups, n_features, n_hidden), (n_groups, n_hidden), (n_groups, n_actions, n_hidden),
            (n_groups, n_actions),
        )  # fmt: skip
        rates = (len(self.rates.rates), n_groups, n_actions + 1, n_actions)
        # The optimiser has all of its buffers or none: with some of them, loops would run out of bounds.
        kept = bool(self.moments.gradient.W1.size)
        same(self.policies, full, kind if kind in (np.float32, np.float64) else np.dtype(np.float32))
        same(self.rates, (rates, rates, (n_groups, n_actions + 1)), np.float64)
        same(self.moments[3:], ((n_groups,), (1 + n_groups,)), np.int64)
        for part, more in zip(self.moments[:3], (0, 1, 1), strict=True):
            sizes = tuple((n_groups + more, *(kept * size for size in shape[1:])) for shape in full)
            same(part, sizes, kind)
        counts = (self.step, *self.moments.updates.tolist(), *self.moments.pending.tolist())
        return all(isinstance(count, int) and 0 <= count < 2**53 for count in counts)

    def run(
        self,
        rows: Rows,
        people: People,
        terms: Any,
        options: Options,
        *,
        remedy: str,
        checkpoint: Callable[[int], bool | None] | None = None,
    ) -> None:
        """Train up to `options.end`, and extend the history; a checkpoint that returns True stops early."""
        every = options.interval
        direct = options.batch_size == 1 and not options.adam and options.weight_decay == 0
        kind = "joint" if options.apart > 0 else "adam" if options.adam else "sgd"
        self.make_room(n_rate_terms=len(terms.rates.bound), buffers=not direct, kind=kind)
        # A failed fit leaves no model. Online learning can catch the error and continue from here.
        before = None if options.horizon else copy.deepcopy((self.policies, self.moments, self.rates))
        told = people.shares if len(people.actions) and len(people.shares) else None
        while self.step < options.end:
            # Without checkpoints, the whole run is one call.
            until = options.end if checkpoint is None else self.step - self.step % every + every
            n_steps = min(until, options.end) - self.step
            history = np.zeros((-(-n_steps // every), 3))
            done = kernels.train(
                self.policies, self.moments, rows, people, terms, self.rates, options,
                self.step, n_steps, history, told,
            )  # fmt: skip
            if done < n_steps or not all(np.isfinite(part).all() for part in self.policies):
                if before is not None:
                    self.policies, self.moments, self.rates = before
                raise diverged(self.step + done + 1, remedy)
            self.write_down(history)
            self.step += done
            if checkpoint is not None and checkpoint(self.step):
                break
        if not options.horizon:
            for column in self.history.values():
                del column[:-MOST_ROWS]

    def write_down(self, history: Any) -> None:
        """Add intervals to the history: each has the sums of reward and divergence, and the step count."""
        accumulated = self.history["reward"][-1] if self.history["reward"] else 0.0
        step = self.step
        for reward, divergence, count in history:
            if count:
                step += int(count)
                accumulated += reward
                self.history["step"].append(step)
                self.history["reward"].append(accumulated)
                self.history["mean_reward"].append(reward / count)
                self.history["mean_divergence"].append(divergence / count)


class Run(NamedTuple):
    """A training run with all that it needs, and the remedy to suggest if it diverges."""

    training: Training
    rows: Rows
    people: People
    terms: Any
    options: Options
    remedy: str


def diverged(step: int, remedy: str) -> TrainingDivergedError:
    """Return the error for a run that is no longer finite at a step."""
    return TrainingDivergedError(
        f"Training diverged at step {step}: the reward or the policies are no longer finite numbers. {remedy}"
    )


def same(arrays: Any, shapes: tuple[tuple[int, ...], ...], kind: Any) -> None:
    """Raise unless the arrays are contiguous and finite, and have these shapes and this type."""
    for array, shape in zip(arrays, shapes, strict=True):
        if array.shape != shape or array.dtype != kind or not array.flags.c_contiguous:
            raise ValueError(
                f"The model is damaged: it holds an array of shape {array.shape} of {array.dtype}, but "
                f"expected {shape} of {np.dtype(kind)}."
            )
        if not np.isfinite(array).all():
            raise ValueError("The model is damaged: it holds numbers that are not finite.")


def _like(policies: Network, *, kept: bool, more: int = 0) -> Network:
    """Return zeros shaped like the policies, with `more` extra groups; empty arrays if not `kept`."""
    shapes = ((len(part) + more, *(kept * size for size in part.shape[1:])) for part in policies)
    return Network(*(np.zeros(shape, policies.b1.dtype) for shape in shapes))


def _no_moments(policies: Network) -> Moments:
    """Return the optimiser's initial state; its buffers are allocated when they are needed."""
    updates, pending = (np.zeros(len(policies.b2) + more, np.int64) for more in (0, 1))
    gradient, first, second = (_like(policies, kept=False, more=more) for more in (0, 1, 1))
    return Moments(gradient, first, second, updates, pending)


def no_rates(n_terms: int, n_groups: int, n_actions: int) -> Rates:
    """Return running rates before the first step."""
    shape = (n_terms, n_groups, n_actions + 1, n_actions)
    return Rates(np.full(shape, 1 / n_actions), np.zeros(shape), np.zeros((n_groups, n_actions + 1)))
